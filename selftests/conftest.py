# SPDX-License-Identifier: GPL-2.0
"""What all tests share: which of them keep to one worker, and what a failure leaves behind.

Tests that share a fixture (a guest, a directory) run one after the other in one worker of
pytest-xdist; any other test runs in whichever worker is free.
"""

import contextlib
import gc
import os
import re
import shlex
import sys

import pytest

SELFTESTS = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(SELFTESTS)
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from vmlib import Cluster, GuestDied, KernelComplaint

FAILURES = os.path.join(PROJECT, 'build', 'check', 'failures')
# What is broken, however busy the machine was: never run again.
BROKEN = re.compile(
    r'\bbroken: |the kernel of node \d+ complained|ended by itself|'
    r'received different sequences|is not what (was|it) sent|one order: no')
# But this is QEMU's: without KVM its processors may go on with an int3 that the kernel has put
# into its code for a moment, and taken out again. The module puts none there.
EMULATOR = re.compile(r'\bint3: 0000 \[#')
# Parts whose tests depend on guests, and so on the time that the host gives them.
IN_GUESTS = ('guests', 'guests_x86', 'harness', 'bench')
# The longest groups begin first.
FIRST = ('guests', 'guests_x86', 'bench', 'harness')


def pytest_configure(config):
    """With autogroups a session has one share of the processors, and each worker is to have one."""
    if hasattr(config, 'workerinput'):
        with contextlib.suppress(PermissionError):
            os.setsid()


def part_of(item):
    return os.path.relpath(item.path, SELFTESTS).split(os.sep)[0]


def shared(item):
    """The fixtures of a test, with their parameters, that it shares with other tests."""
    params = item.callspec.params if hasattr(item, 'callspec') else {}
    return [f'{name}-{params[name]}' if name in params else name
            for name, definitions in sorted(item._fixtureinfo.name2fixturedefs.items())
            # pytest's own ones have no place
            if definitions[-1].baseid and definitions[-1].scope != 'function']


# before pytest-xdist looks for the groups
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        group = re.sub(r'[^\w.-]+', '-', ' '.join([part_of(item), *shared(item)]))
        if shared(item):
            item.add_marker(pytest.mark.xdist_group(group))
        # so that -k finds tests by their fixtures
        item.extra_keyword_matches.update(item.fixturenames)
    items.sort(key=lambda item: FIRST.index(part_of(item)) if part_of(item) in FIRST else len(FIRST))


def slug(nodeid):
    """A test's name as that of a directory."""
    name = plain(nodeid).rpartition('/')[2].replace('.py::', '-')
    return re.sub(r'[^\w.-]+', '-', name).strip('-')[:120]


def complaints():
    """What this process's guests have said by now: their kernels, and programs of what is broken.

    Of several members, one that received something else ends, and the others only see that.
    """
    said = []
    # those of tests before are none of this one's
    gc.collect()
    for cluster in list(Cluster.all):
        with contextlib.suppress(KernelComplaint):
            cluster.check_logs()
        said += cluster.complaints
        said += [line for line in cluster.output().splitlines() if BROKEN.search(line)]
    return '\n'.join(said)


def keep(nodeid, text):
    """Write down what is known of a failure, the kernels' logs included."""
    where = os.path.join(FAILURES, slug(nodeid))
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, 'failure.txt'), 'a', encoding='utf-8') as f:
        f.write(f'{nodeid}\n{text}\n')
    for i, cluster in enumerate(list(Cluster.all)):
        for rank, log in enumerate(cluster.logs()):
            name = f'cluster{i}-{cluster.guests[rank].kernel.name}-node{rank}.log'
            with open(os.path.join(where, name), 'w', encoding='utf-8') as f:
                f.write(log)


def replay(item):
    """How to have a run in virtual time again, with all tests before it in the same guests."""
    if re.search(r'\[(uml|debian|debug)', item.nodeid) or \
            not any(cluster.virtual for cluster in Cluster.all):
        return ''
    tests = [item]
    mark = item.get_closest_marker('xdist_group')
    if mark:
        group = [i for i in item.session.items if i.get_closest_marker('xdist_group') == mark]
        program = getattr(item, 'originalname', '') == 'test_program'
        # a program's tests run together, whichever fails
        tests = group if program else group[:group.index(item) + 1]
    where = os.path.join(FAILURES, slug(item.nodeid))
    path = os.path.join(where, 'replay')
    os.makedirs(where, exist_ok=True)
    chosen = [f'{k}={shlex.quote(v)}' for k, v in os.environ.items() if k.startswith('SPINDLE_')]
    with open(path, 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\n' + shlex.join(['cd', os.getcwd()]) + '\n' + ' '.join(
            [*chosen, '/usr/bin/python3 -B -m pytest -v -p no:cacheprovider',
             f'--rootdir={shlex.quote(PROJECT)}',
             *(shlex.quote(plain(os.path.join(PROJECT, i.nodeid))) for i in tests)]) + '\n')
    return f'replay: sh {os.path.relpath(path, PROJECT)}'


def plain(nodeid):
    """A test's name without the group that pytest-xdist adds."""
    return nodeid.partition('@')[0]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    said = complaints()
    text = f'{report.when}: {report.longreprtext}\n{said}'
    if said:
        report.sections.append(('kernel', said))
    command = replay(item)
    if command:
        report.sections.append(('virtual time', command))
        text += f'\n{command}'
    keep(item.nodeid, text)
    broken = not EMULATOR.search(text) and (
        BROKEN.search(text) or call.excinfo.errisinstance((KernelComplaint, GuestDied)))
    # in virtual time it would only happen again
    unsteady = not broken and not command and report.when != 'teardown' and \
        part_of(item) in IN_GUESTS
    prop = ('again', 'yes' if unsteady else 'no')
    # the last report of a test brings its properties
    item.user_properties.append(prop)
    report.user_properties.append(prop)
