# SPDX-License-Identifier: GPL-2.0
"""Groups on x86 with two processors: on the kernels of users, and on one that is
preempted everywhere and has every checker.

Emulation makes it slow, so what is here is short; selftests/guests has the rest.
"""

import os
import re
import signal
import subprocess
import sys

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import Cluster

KERNELS = ['debian-6.1', 'debian-6.12', 'debug']
BIN = os.path.join(PROJECT, 'build', 'selftests')
ADDRS = 8
NODES = 3
MESSAGES = 1000
BOUND = 240             # of one member, s


@pytest.fixture(scope='module', params=KERNELS)
def guest(request):
    """One guest that is several nodes, of which most tests use three."""
    subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'selftests', 'socket')], check=True)
    cluster = Cluster(kernel=request.param, nodes=1, addrs=ADDRS, smp=2, module=True, timeout=900)
    try:
        cluster.open()
        yield cluster
    finally:
        cluster.close()


def start(cluster, name, messages, *options):
    """A member on each node, all sending."""
    addrs = cluster.env(0)['SPINDLE_ADDRS'].split()[:NODES]
    assert len(addrs) == NODES
    members = []
    for addr in addrs:
        contact = ['--contact', addrs[0]] if members else []
        members.append(cluster.start(0, [
            os.path.join(BIN, 'member'), '--name', name, '--addr', addr, *contact,
            '--members', str(NODES), '--messages', str(messages), '--max', '1000',
            '--seconds', str(BOUND), *options]))
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
    assert len(seen) == 1 and seen.pop()[0] == NODES * MESSAGES
    cluster.check_logs()


def test_group(guest):
    same_order(guest, start(guest, 'main', MESSAGES))


def test_group_with_threads_and_a_small_window(guest):
    same_order(guest, start(guest, 'small', MESSAGES, '--threads', '--window', '8192', '--depth',
                            '16'))


# Of the C programs, what shows most where processors and preemption are real: large objects,
# and members that come, go and die.
CHOSEN = [
    ('objects_test', ['two_nodes', 'sizes_about_the_edges', 'a_sender_waits_for_room']),
    ('views_test', ['leave_by_request', 'close_loses_nothing', 'killed_under_load']),
]


@pytest.mark.parametrize('program,names', CHOSEN, ids=[c[0] for c in CHOSEN])
def test_chosen(guest, program, names):
    if guest.kernel.name != 'debug':
        pytest.skip('selftests/guests runs them on others')
    p = guest.start(0, [os.path.join(BIN, program), *names], env={'SPINDLE_TIMEOUT_SCALE': 10})
    expect(guest, p, 0)
    assert len(re.findall(r'^ok \d+ - \w+$', p.stdout, re.M)) == len(names), p.stdout
    guest.check_logs()


def test_killed_member(guest):
    """Loss of members while messages flow: views change under the checkers."""
    members = start(guest, 'killed', 2 ** 63)
    for p in members:
        p.wait_output('sending', BOUND)
    for p in members:
        p.signal(signal.SIGKILL)
        p.wait(BOUND)
    guest.check_logs()


def test_unload(guest):
    """The module leaves, nothing was leaked, the kernel had nothing to say."""
    guest.finish()
