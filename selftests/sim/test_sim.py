# SPDX-License-Identifier: GPL-2.0
"""The simulator: seeds, named scenarios, schedules and planted bugs, each a case.

Each seed is a group whose members stay, one whose members come and go, and some
agreements. SPINDLE_TEST_SEEDS chooses how many; fewer run with sanitizers, too.
"""

import glob
import os
import re
import subprocess

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
SEEDS = int(os.environ.get('SPINDLE_TEST_SEEDS', '5000'))
JOBS = str(len(os.sched_getaffinity(0)))


def sim(*args, timeout=1200):
    """The output of a run that must succeed; a hang ends it."""
    try:
        done = subprocess.run([os.path.join(PROJECT, 'scripts', 'sim'), *args], text=True,
                              check=False, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as e:
        said = (e.stdout or b'').decode(errors='replace')
        pytest.fail(f'no end after {timeout} s\n{said}')
    assert done.returncode == 0, done.stdout
    return done.stdout


def names(what):
    return [line.split()[0] for line in sim('--list').splitlines()] if what == 'scenarios' else \
        sorted(os.path.basename(path)[:-4]
               for path in glob.glob(os.path.join(PROJECT, 'selftests/sim/mutants/*.sed')))


def test_seeds():
    assert f'sim: {SEEDS} seeds, 0 violations' in sim('--seeds', str(SEEDS), '--jobs', JOBS)


def test_seeds_with_sanitizers():
    n = max(SEEDS // 25, 1)
    # others than those above
    said = sim('--asan', '--seeds', str(n), '--from', '1000000', '--jobs', JOBS)
    assert f'sim: {n} seeds, 0 violations' in said


def test_schedules():
    assert re.search(r'^schedules: \d{5} checked, 0 wrong$', sim('--schedules'), re.M)


def test_schedules_with_sanitizers():
    assert ' checked, 0 wrong' in sim('--schedules', '--brief', '--asan')


@pytest.mark.parametrize('name', names('scenarios'))
def test_scenario(name):
    assert 'scenarios: 0 failed' in sim('--scenario', name)


@pytest.mark.parametrize('name', ['tiny-queue', 'hostile', 'hostile-objects', 'object-wedge',
                                  'reconnect', 'quarantine'])
def test_scenario_with_sanitizers(name):
    assert 'scenarios: 0 failed' in sim('--asan', '--scenario', name)


@pytest.mark.parametrize('name', names('mutants'))
def test_mutant_is_found(name):
    assert 'mutants: 1 found of 1' in sim('--mutants', name)
