# SPDX-License-Identifier: GPL-2.0
"""The harness that runs Spindle in guests; README.md is its manual."""

from .base import Error, GuestDied, KernelComplaint, Timeout
from .cluster import PATIENT, Cluster, Process, Result

__all__ = ['PATIENT', 'Cluster', 'Process', 'Result', 'Error', 'GuestDied', 'KernelComplaint',
           'Timeout']
