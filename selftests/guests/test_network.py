# SPDX-License-Identifier: GPL-2.0
"""A network that is not kind: what tc netem does to packets, devices and links that go and come.

Three guests, a member in each, small messages and large objects. Each case ends with all
members at rest at one place of the stream, and with the judge of selftests/views, which
compares what all of them were given message by message: nothing may be lost, doubled or out
of order, and who is put out must have been told so.

SPINDLE_TEST_KERNEL=uml-debug takes that kernel, else it is uml. SPINDLE_TEST_NETWORK=long runs
every case with both doorbells and ten times the load; without it a choice of them is run once.
"""

import itertools
import os
import random
import sys
import time

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'selftests', 'views'))

# pylint: disable=wrong-import-position,redefined-outer-name
import drive
from drive import Cluster, Group
from vmlib import guests as vmguests

# others have their netem in modules that guests do not have
KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml')
KERNEL = KERNEL if KERNEL.startswith('uml') else 'uml'
LONG = os.environ.get('SPINDLE_TEST_NETWORK') == 'long'
DOORBELLS = ['polled', 'completion'] if LONG else ['polled']
SLOW = drive.slowness(KERNEL)
MESSAGES = 3000 if LONG else 300        # of each member, at least
NAMES = (f'n{i}' for i in itertools.count())
# UML's own interface does not come up again once it was down: a bridge above it does
DEV = 'br0'
BRIDGE = """set -e
addr=$(ip -o -4 addr show dev eth0 | awk '{ print $4; exit }')
rdma link delete rxe0
ip link add br0 type bridge
ip addr flush dev eth0
ip link set eth0 master br0
ip link set br0 up
ip addr add "$addr" dev br0
rdma link add rxe0 type rxe netdev br0
"""
COUNTERS = '/sys/class/infiniband/rxe0/ports/1/hw_counters'
# every sixteenth message is an object: it travels in blocks
LOAD = {'pace': 200 // SLOW, 'max': 1000, 'large': 60000, 'own_window': 32, 'rejoin': True,
        'deadline': 120 * SLOW, 'seconds': 400}
# nobody is suspected for what the network does here
PATIENT = {'suspect_ms': 20000 * SLOW}

# name: (what netem does, counter of the device that tells, is it in the short run)
NETEM = {
    'loss-0.1': ('loss 0.1%', None, False),
    'loss-1': ('loss 1%', 'out_of_seq_request', True),
    'loss-5': ('loss 5%', 'out_of_seq_request', False),
    'reorder': ('delay 2ms reorder 80% 50%', 'out_of_seq_request', True),
    'duplicate': ('duplicate 3%', 'duplicate_request', True),
    'corrupt': ('corrupt 1%', 'out_of_seq_request', True),
    'delay': ('delay 3ms', None, False),
    'jitter': ('delay 4ms 3ms 25%', 'out_of_seq_request', False),
    'all': ('delay 1ms 500us loss 1% duplicate 1% corrupt 0.5%', 'out_of_seq_request', False),
}
CASES = [name for name, (_, _, short) in NETEM.items() if short or LONG]

drive.build()


class Guests:
    """Three guests for all cases under one doorbell."""

    def __init__(self, doorbell):
        self.doorbell = doorbell
        self.cluster = None
        self.groups = []

    def up(self):
        if self.cluster and any(g.dead for g in self.cluster.guests):
            self.down()
        if not self.cluster:
            cluster = Cluster(kernel=KERNEL, nodes=3, module=True, timeout=3000,
                              modparam=f'doorbell={self.doorbell}')
            cluster.open()
            self.cluster = cluster
            self.all(BRIDGE)
            for node in range(3):
                self.neighbours(node)

    def down(self):
        if self.cluster:
            self.cluster.close()
            self.cluster = None

    def neighbours(self, node):
        """ARP has no checksum: what netem makes of its packets is not to be believed."""
        for other in range(3):
            if other != node:
                addr = self.cluster.env(other)['SPINDLE_ADDR']
                self.run(node, f'ip neigh replace {addr} lladdr {vmguests.mac(other)} '
                         f'dev {DEV} nud permanent')

    def run(self, node, command):
        return self.cluster.run(node, command, check=True).stdout

    def all(self, command):
        for p in [self.cluster.start(node, command) for node in range(3)]:
            assert p.wait(60) == 0, f'{command}: {p.stdout}{p.stderr}'

    def count(self, counter):
        return sum(int(self.run(node, f'cat {COUNTERS}/{counter}')) for node in range(3))

    def group(self, create=None, **options):
        """A group under load with a member on each guest."""
        g = Group(self.cluster, next(NAMES), random.Random(1), create={
            'members': 3, 'max_members': 64, **(create or {})}, **{**LOAD, **options})
        self.groups.append(g)
        g.open([(0, 0), (1, 0), (2, 0)])
        g.settle(40)
        g.wait_flow(seconds=20)
        return g

    def delivered(self, g, node):
        """Messages that a node's group has delivered so far."""
        addr = self.cluster.env(node)['SPINDLE_ADDR']
        return int(self.run(node, f'cat /sys/kernel/spindle/{addr}/{g.name}/counters/delivered'))

    def let_flow(self, g, messages=3 * MESSAGES, seconds=60):
        """Until so many messages more were delivered, of all together."""
        wanted = self.delivered(g, 1) + messages
        end = time.monotonic() + seconds * SLOW * (10 if LONG else 1)
        while self.delivered(g, 1) < wanted:
            assert time.monotonic() < end, f'no {messages} messages in time:\n{g.told()}'
            time.sleep(0.2)

    def mend(self):
        """After a case, however it went."""
        for g in self.groups:
            g.stop()
        self.groups = []
        if any(g.dead for g in self.cluster.guests):
            return
        for node in range(3):
            self.run(node, f'tc qdisc del dev eth0 root 2>/dev/null; ip link set {DEV} up; '
                     'test -d /sys/class/infiniband/rxe0 || '
                     f'rdma link add rxe0 type rxe netdev {DEV}')
            self.neighbours(node)
        self.cluster.check_logs()


@pytest.fixture(params=DOORBELLS)
def guests(request, clusters):
    held = clusters.setdefault(request.param, Guests(request.param))
    held.up()
    yield held
    held.mend()


def finish(group):
    """All rest, leave and are compared."""
    group.bring_to_rest(60)
    group.close(seconds=60)
    res = group.verdict()
    assert not res.violations, '\n'.join(res.violations)
    assert res.messages > 0
    return res


def unmoved(group, view):
    """All are still in the view they were in."""
    assert {p.view.number for p in group.programs} == {view}
    assert not any(p.ends for p in group.programs)


# packets

@pytest.mark.parametrize('case', CASES)
def test_netem(guests, case):
    what, counter, _ = NETEM[case]
    g = guests.group(PATIENT)
    view = g.programs[0].view.number
    before = guests.count(counter) if counter else 0
    guests.all(f'tc qdisc add dev eth0 root netem {what}')
    guests.let_flow(g)
    # still under the same fault
    g.bring_to_rest(60)
    g.go_on()
    guests.let_flow(g, 100)
    if counter:
        assert guests.count(counter) > before, f'{what} did nothing'
    unmoved(g, view)
    finish(g)


@pytest.mark.skipif(not LONG, reason='only with SPINDLE_TEST_NETWORK=long')
@pytest.mark.parametrize('case', ['loss-5', 'reorder', 'all'])
def test_netem_and_views(guests, case):
    """Members come and go, and a group is formed, while packets suffer."""
    guests.all(f'tc qdisc add dev eth0 root netem {NETEM[case][0]}')
    g = guests.group(PATIENT)
    for node in (1, 2, 0):
        fresh = g.add(node)
        g.settle(60)
        guests.let_flow(g, 100)
        g.leave(fresh)
        g.wait(lambda fresh=fresh: not fresh.running, 60, 'it leaves')
    g.settle(60)
    finish(g)


@pytest.mark.skipif(not LONG, reason='only with SPINDLE_TEST_NETWORK=long')
def test_faults_of_one_node(guests):
    """What one node suffers holds up the others, and puts nobody out."""
    g = guests.group(PATIENT)
    view = g.programs[0].view.number
    for case in ('loss-5', 'jitter', 'corrupt'):
        guests.run(2, f'tc qdisc replace dev eth0 root netem {NETEM[case][0]}')
        guests.let_flow(g, MESSAGES)
    unmoved(g, view)
    finish(g)


# devices and links

@pytest.mark.parametrize('victim', [0, 2] if LONG else [2])
def test_device_deleted_and_added_again(guests, victim):
    """Its programs are told at once, the others go on; then they come again."""
    g = guests.group()
    p = g.programs[victim]
    for _ in range(5 if LONG else 2):
        ends = len(p.ends)
        guests.run(victim, 'timeout -s KILL 60 rdma link delete rxe0')
        g.wait(lambda ends=ends: len(p.ends) > ends, 20, 'it is told')
        assert p.ends[-1][1] == 'ENODEV'
        others = g.wait_without([p], 20)
        g.wait_flow(others)
        guests.run(victim, f'rdma link add rxe0 type rxe netdev {DEV}')
        g.settle(60)
        g.wait_flow(seconds=20)
    finish(g)


def test_link_down_and_up(guests):
    """Shorter than what makes suspicious: nothing happens."""
    g = guests.group(PATIENT)
    view = g.programs[0].view.number
    for _ in range(10 if LONG else 2):
        guests.run(1, f'ip link set {DEV} down; sleep 0.3; ip link set {DEV} up')
        guests.neighbours(1)
        guests.let_flow(g, 100)
    unmoved(g, view)
    finish(g)


@pytest.mark.parametrize('victim', [0, 2] if LONG else [2])
def test_link_down_for_long(guests, victim):
    """It is put out and knows it, the others go on; it comes again."""
    g = guests.group()
    p = g.programs[victim]
    guests.run(victim, f'ip link set {DEV} down')
    others = g.wait_without([p], 20)
    g.wait_flow(others)
    g.wait(lambda: p.ends, 30, 'it learns of it')
    assert p.ends[0][1] in ('ENETDOWN', 'ECONNABORTED')
    guests.run(victim, f'ip link set {DEV} up')
    guests.neighbours(victim)
    g.settle(60)
    g.wait_flow(seconds=20)
    finish(g)
