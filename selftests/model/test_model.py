# SPDX-License-Identifier: GPL-2.0
"""The model of the view change: all states of small groups, and planted bugs."""

import os
import re
import subprocess

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))


def model(*args, timeout=400):
    """The output of a run that must succeed; a hang ends it."""
    try:
        done = subprocess.run([os.path.join(PROJECT, 'scripts', 'model'), *args], text=True,
                              check=False, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as e:
        said = (e.stdout or b'').decode(errors='replace')
        pytest.fail(f'no end after {timeout} s\n{said}')
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_all_states():
    found = re.fullmatch(r'model: (\d+) states, 0 errors', model()[-1])
    # a rule that is never enabled would leave few
    assert found and int(found.group(1)) > 1000000


def test_mutants_are_found():
    found = re.fullmatch(r'mutants: (\d+) found of (\d+)', model('--mutants')[-1])
    assert found and found.group(1) == found.group(2) and int(found.group(2)) > 5
