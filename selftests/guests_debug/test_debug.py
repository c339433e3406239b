# SPDX-License-Identifier: GPL-2.0
"""Groups on x86 with two processors, full preemption and every checker of the kernel.

Emulation and checkers make it slow: what is here is short.
"""

import os
import re
import subprocess
import sys

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import Cluster

BIN = os.path.join(PROJECT, 'build', 'selftests')
NODES = 3
MESSAGES = 300


@pytest.fixture(scope='module')
def guest():
    """One guest that is three nodes. Its end is a test too: unloading, leaks, locks, the log."""
    subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'selftests', 'socket')], check=True)
    cluster = Cluster(kernel='debug', nodes=1, addrs=NODES, smp=2, module=True, timeout=500)
    cluster.open()
    yield cluster
    cluster.close()


def group(cluster, name, *options):
    """A member on each node, each sending; all must have received the same."""
    addrs = cluster.env(0)['SPINDLE_ADDRS'].split()
    assert len(addrs) == NODES
    members = []
    for addr in addrs:
        contact = ['--contact', addrs[0]] if members else []
        members.append(cluster.start(0, [
            os.path.join(BIN, 'member'), '--name', name, '--addr', addr, *contact, '--members',
            str(NODES), '--messages', str(MESSAGES), '--max', '1000', *options]))
    seen = set()
    for p in members:
        status = p.wait(240)
        assert status == 0, f'status {status}\n{p.stdout}{p.stderr}\n{cluster.log(0)[-3000:]}'
        received, sent, order = re.search(r'^done (\d+) (\d+) (\w+)$', p.stdout, re.M).groups()
        assert int(sent) == MESSAGES
        seen.add((int(received), order))
    assert len(seen) == 1 and seen.pop()[0] == NODES * MESSAGES
    cluster.check_logs()


def test_group(guest):
    group(guest, 'main')


def test_group_with_threads_and_a_small_window(guest):
    group(guest, 'small', '--threads', '--window', '8192', '--depth', '16')


def test_killed_member(guest):
    """Loss of a member while messages flow; the group is taken apart under the checkers."""
    addrs = guest.env(0)['SPINDLE_ADDRS'].split()
    members = []
    for addr in addrs:
        contact = ['--contact', addrs[0]] if members else []
        members.append(guest.start(0, [
            os.path.join(BIN, 'member'), '--name', 'killed', '--addr', addr, *contact,
            '--members', str(NODES), '--messages', str(10 ** 9), '--max', '500']))
    for p in members:
        p.wait_output('sending', 120)
    members[1].signal(9)
    for p in (members[0], members[2]):
        assert p.wait(120) == 3, p.output
        assert 'failed ECONNRESET' in p.stdout
    guest.check_logs()


def test_unload(guest):
    """The module leaves, nothing was leaked, no checker has complained."""
    guest.finish()
