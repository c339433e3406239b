# SPDX-License-Identifier: GPL-2.0
"""Groups on x86 with two processors: on the kernels of users, and on one that is
preempted everywhere and has every checker.

Emulation makes it slow, so what is here is short; selftests/guests has the rest.
"""

import os
import re
import signal
import sys

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import PATIENT, Cluster
from vmlib.base import make

KERNELS = ['debian-6.1', 'debian-6.12']
# its build takes longer than the rest of the check
if os.environ.get('SPINDLE_TEST_FULL') == '1':
    KERNELS.append('debug')
BIN = os.path.join(PROJECT, 'build', 'selftests')
NODES = 3
MESSAGES = 1000
BOUND = 120             # of one member on an idle host, s


@pytest.fixture(scope='module', params=KERNELS)
def guest(request):
    """One guest that is three nodes."""
    make('selftests/socket')
    cluster = Cluster(kernel=request.param, nodes=1, addrs=NODES, smp=2, module=True, timeout=10000,
                      modparam=PATIENT)
    try:
        cluster.open()
        yield cluster
    finally:
        cluster.close()


def start(cluster, name, messages, *options):
    """A member on each node, all sending."""
    addrs = cluster.env(0)['SPINDLE_ADDRS'].split()
    assert len(addrs) == NODES
    members = []
    for addr in addrs:
        contact = ['--contact', addrs[0]] if members else []
        members.append(cluster.start(0, [
            os.path.join(BIN, 'member'), '--name', name, '--addr', addr, *contact,
            '--members', str(NODES), '--messages', str(messages), '--max', '1000',
            *options]))
    return members


def expect(cluster, p, status):
    got = p.wait(BOUND)
    assert got == status, f'status {got}\n{p.stdout}{p.stderr}\n{cluster.log(0)[-3000:]}'


def same_order(cluster, members):
    """All have received everything, in one order, and the kernel says nothing to it."""
    seen = set()
    for p in members:
        expect(cluster, p, 0)
        received, sent, order = re.search(r'^done (\d+) (\d+) (\w+)$', p.stdout, re.M).groups()
        assert int(sent) == MESSAGES
        seen.add((int(received), order))
    assert seen == {(NODES * MESSAGES, order)}, f'broken: {seen}'
    cluster.check_logs()


def test_group(guest):
    same_order(guest, start(guest, 'main', MESSAGES))


def test_group_with_threads_and_a_small_window(guest):
    same_order(guest, start(guest, 'small', MESSAGES, '--threads', '--window', '8192', '--depth',
                            '16'))


def test_killed_member(guest):
    """Loss of a member while messages flow: the group is taken apart under the checkers."""
    members = start(guest, 'killed', 2 ** 63)
    for p in members:
        p.wait_output('sending', BOUND)
    members[1].signal(signal.SIGKILL)
    for p in (members[0], members[2]):
        expect(guest, p, 3)
        assert 'failed ECONNRESET' in p.stdout
    guest.check_logs()


def test_unload(guest):
    """The module leaves, nothing was leaked, the kernel had nothing to say."""
    guest.finish()
