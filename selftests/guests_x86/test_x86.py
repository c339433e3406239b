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
    """All have received the same, in one order, and the kernel says nothing to it; how much."""
    seen = set()
    for p in members:
        expect(cluster, p, 0)
        received, _, order = re.search(r'^done (\d+) (\d+) (\w+)$', p.stdout, re.M).groups()
        seen.add((int(received), order))
    assert len(seen) == 1, f'broken: {seen}'
    cluster.check_logs()
    return int(received)


def everything(received):
    assert received == NODES * MESSAGES, f'broken: received {received} of {NODES * MESSAGES}'


def test_group(guest):
    everything(same_order(guest, start(guest, 'main', MESSAGES)))


def test_group_with_threads_and_a_small_window(guest):
    everything(same_order(guest, start(guest, 'small', MESSAGES, '--threads', '--window', '8192',
                                       '--depth', '16')))


def test_killed_member(guest):
    """Loss of a member while messages flow: the view changes under the checkers."""
    members = start(guest, 'killed', 2 ** 63)
    for p in members:
        p.wait_output('sending', BOUND)
    rank = re.search(r'^active (\d+)$', members[1].stdout, re.M)[1]
    members[1].signal(signal.SIGKILL)
    others = [members[0], members[2]]
    for p in others:
        p.wait_output(f'view 2 2 {rank}:exited\n', BOUND)
        p.wait_output('flows 2\n', BOUND)
    for p in others:
        p.signal(signal.SIGTERM)
    same_order(guest, others)


def test_unload(guest):
    """The module leaves, nothing was leaked, the kernel had nothing to say."""
    guest.finish()
