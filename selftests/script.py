# SPDX-License-Identifier: GPL-2.0
"""One of the project's scripts, run by a test."""

import os
import subprocess

import pytest

PROJECT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def script(name, *args, timeout=2000):
    """The output of a run that must succeed; a hang ends it."""
    try:
        done = subprocess.run([os.path.join(PROJECT, 'scripts', name), *args], text=True,
                              check=False, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as e:
        said = (e.stdout or b'').decode(errors='replace')
        pytest.fail(f'no end after {timeout} s\n{said}')
    assert done.returncode == 0, done.stdout
    return done.stdout
