# SPDX-License-Identifier: GPL-2.0
"""The harness that runs Spindle in guests; README.md is its manual."""

from .base import Error, GuestDied, KernelComplaint, Timeout
from .cluster import Cluster, Process, Result

__all__ = ['Cluster', 'Process', 'Result', 'Error', 'GuestDied', 'KernelComplaint', 'Timeout']
