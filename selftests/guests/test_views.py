# SPDX-License-Identifier: GPL-2.0
"""Views that change under load: each fault once, in three guests, and many nodes in one.

Every test ends with all members at rest at one place of the stream, and with a judge that
compares what all of them were given, message by message (selftests/views).

SPINDLE_TEST_KERNEL chooses the kernel (default: uml-debug), SPINDLE_TEST_DOORBELLS the
doorbells, SPINDLE_TEST_SOAK the minutes of the random series.
"""

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'selftests', 'views'))

# pylint: disable=wrong-import-position,redefined-outer-name
import drive
import judge as judges
from drive import Cluster, Group

KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml-debug')
DOORBELLS = os.environ.get('SPINDLE_TEST_DOORBELLS', 'polled completion').split()
SOAK_MINUTES = os.environ.get('SPINDLE_TEST_SOAK', '0.7')
SUSPECT = drive.suspect_ms(KERNEL) / 1000
SLOW = drive.slowness(KERNEL)
NAMES = (f'v{i}' for i in itertools.count())
# every sixteenth message is an object: it travels in blocks
LOAD = {'pace': 200 // SLOW, 'max': 1000, 'large': 60000, 'own_window': 32, 'rejoin': True,
        'deadline': 60 * SLOW, 'seconds': 200}

# what one doorbell says, the other does as well: only what is cheap is run with both
both = pytest.mark.parametrize('guests', DOORBELLS, indirect=True)
one = pytest.mark.parametrize('guests', DOORBELLS[:1], indirect=True)

drive.build()


class Guests:
    """Three guests for all tests under one doorbell; new ones when these are spoilt."""

    def __init__(self, doorbell):
        self.doorbell = doorbell
        self.cluster = None
        self.groups = []

    def up(self):
        if self.cluster and any(g.dead and not g.killed for g in self.cluster.guests):
            self.down()
        if not self.cluster:
            cluster = Cluster(kernel=KERNEL, nodes=3, module=True, timeout=1500,
                              modparam=f'doorbell={self.doorbell}')
            cluster.open()
            self.cluster = cluster
        return self

    def down(self):
        if self.cluster:
            self.cluster.close()
            self.cluster = None

    def group(self, places=((0, 0), (1, 0), (2, 0)), members=None, wait=True, create=None,
              **options):
        """A group under load with a member in each place, complete."""
        g = Group(self.cluster, next(NAMES), random.Random(1), create={
            'members': members or len(places), 'max_members': 64, **(create or {})},
            **{**LOAD, **options})
        self.groups.append(g)
        g.open(list(places))
        if wait:
            g.settle()
            g.wait_flow()
            # some load before anything happens
            time.sleep(0.2)
        return g

    def mend(self):
        """After a test, however it went."""
        for g in self.groups:
            g.stop()
        self.groups = []
        c = self.cluster
        for guest in c.guests:
            if guest.paused:
                c.resume(guest.rank)
            c.link(guest.rank, heal=True)
        for guest in list(c.guests):
            if guest.killed:
                c.restart(guest.rank)
        c.check_logs()


@pytest.fixture
def guests(request, clusters):
    held = clusters.setdefault(request.param, Guests(request.param))
    held.up()
    yield held
    held.mend()


def finish(group, how=None):
    """All rest, leave and are compared."""
    res = group.finish(how)
    assert not res.violations, '\n'.join(res.violations)
    assert res.messages > 0
    return res


def reason_of(group, p):
    """Why a program was put out of its view, as a member says that stayed."""
    uid = next(v.uid for v in reversed(p.views) if v.uid is not None)
    for other in group.members():
        for view in other.views:
            if uid in view.gone:
                return view.gone[uid]
    return None


# coming and going

@both
@pytest.mark.parametrize('how', ['leave', 'roll', 'shutdown', 'close'])
def test_a_group_forms_talks_and_ends(guests, how):
    g = guests.group()
    res = finish(g, how)
    assert len(res.last_view.members) <= 3


@one
@pytest.mark.parametrize('members', [1, 3])
def test_groups_form_one_after_another(guests, members):
    """All that is new at a start is new at once: connections, memory, keys, the first view."""
    for _ in range(8):
        g = guests.group(members=members, pace=-1, own_window=16)
        finish(g, 'close')


@both
def test_members_come_and_go_under_load(guests):
    g = guests.group(places=[(0, 0)], members=1)
    first = g.programs[0]
    # in a herd, several on a node
    for node in (1, 2, 2, 1, 0):
        g.add(node)
    g.settle()
    g.wait_flow()
    assert len(first.view.members) == 6
    g.leave(g.programs[2])
    g.wait(lambda: not g.programs[2].running, 15, 'it leaves')
    assert g.programs[2].ends[-1][1] == '0'
    assert reason_of(g, g.programs[2]) == judges.LEFT
    # the one that made it is none that is needed
    g.leave(first, signal.SIGINT)
    g.wait(lambda: not first.running, 15, 'it ends')
    g.settle()
    assert reason_of(g, first) == judges.EXITED
    finish(g)


@one
def test_all_are_replaced_one_after_another(guests):
    g = guests.group()
    for old in list(g.programs):
        fresh = g.add(old.node)
        g.wait(lambda fresh=fresh: fresh.view, 20, 'it comes in')
        g.leave(old)
        g.wait(lambda old=old: not old.running, 15, 'it leaves')
    g.settle()
    g.wait_flow()
    finish(g)


@one
def test_a_second_member_joins_through_another_node(guests):
    g = guests.group()
    addrs = [p.addr for p in g.programs]
    for node in range(3):
        for contact in addrs:
            p = g.add(node, contacts=[contact])
            g.settle()
            g.leave(p)
            # and the next one comes while it goes
    g.settle()
    g.wait_flow()
    finish(g)


@one
def test_a_receiver_joins(guests):
    g = guests.group(places=[(0, 0), (1, 0)])
    listener = g.add(2, receiver=True)
    g.settle()
    g.wait_flow()
    assert listener.view
    finish(g)


# programs

@both
@pytest.mark.parametrize('victim', [0, 2])
def test_killed_program(guests, victim):
    """Its kernel says so at once: nobody waits for a heartbeat."""
    g = guests.group(create={'suspect_ms': 10000})
    p = g.programs[victim]
    began = time.monotonic()
    g.kill_program(p)
    others = g.wait_without([p], 8)
    g.wait_flow(others)
    assert time.monotonic() - began < 9
    assert reason_of(g, p) == judges.EXITED
    assert not any(o.suspicions for o in others)
    g.add(p.node)
    g.settle()
    finish(g)


@one
def test_two_programs_killed_in_a_row(guests):
    g = guests.group(places=[(0, 0), (1, 0), (2, 0), (2, 0)])
    for p in (g.programs[0], g.programs[2]):
        g.kill_program(p)
    g.settle()
    g.wait_flow()
    finish(g)


@one
def test_a_program_that_does_not_read_is_put_out(guests):
    g = guests.group(create={'evict_ms': 1000 * SLOW, 'window': 16384, 'depth': 64,
                             'suspect_ms': 10000}, max=500)
    p = g.programs[1]
    p.tell(signal.SIGSTOP)
    others = g.wait_without([p], 12)
    g.wait_flow(others)
    assert reason_of(g, p) == judges.SLOW
    p.tell(signal.SIGCONT)
    g.settle()
    # it was told, and has come again
    assert p.ends and p.ends[0][1] not in ('0', 'EPIPE')
    finish(g)


# guests

@both
@pytest.mark.parametrize('victim', [0, 2])
def test_killed_guest(guests, victim):
    g = guests.group()
    p = g.programs[victim]
    g.kill_guest(victim)
    others = g.wait_without([p])
    g.wait_flow(others)
    assert reason_of(g, p) == judges.LOST
    guests.cluster.restart(victim)
    g.add(victim)
    g.settle()
    g.wait_flow()
    finish(g)


@one
@pytest.mark.parametrize('victim', [0, 2])
def test_guest_is_back_before_it_is_missed(guests, victim):
    """What it was is put out, and what it is comes in."""
    g = guests.group(create={'suspect_ms': 3000 * SLOW})
    g.kill_guest(victim)
    guests.cluster.restart(victim)
    g.add(victim)
    g.settle()
    g.wait_flow()
    finish(g)


@one
def test_a_program_and_a_guest_in_a_row(guests):
    g = guests.group(places=[(0, 0), (1, 0), (2, 0), (1, 0)])
    g.kill_program(g.programs[1])
    g.kill_guest(0)
    g.settle()
    g.wait_flow()
    finish(g)


@one
def test_short_pause(guests):
    """Shorter than what makes suspicious: nothing happens."""
    g = guests.group(create={'suspect_ms': 5000 * SLOW})
    view = g.programs[0].view.number
    guests.cluster.pause(2)
    time.sleep(0.7)
    guests.cluster.resume(2)
    g.settle()
    g.wait_flow()
    assert {p.view.number for p in g.programs} == {view}
    finish(g)


@both
@pytest.mark.parametrize('victim', [0, 2])
def test_long_pause(guests, victim):
    """It is put out, learns of it when it goes on, and comes again."""
    g = guests.group()
    p = g.programs[victim]
    guests.cluster.pause(victim)
    others = g.wait_without([p])
    g.wait_flow(others)
    assert reason_of(g, p) == judges.LOST
    guests.cluster.resume(victim)
    g.settle()
    assert p.ends and p.ends[0][1] in ('ECONNABORTED', 'ENETDOWN')
    finish(g)


@both
@pytest.mark.parametrize('victim', [0, 1])
def test_cut_off_and_healed(guests, victim):
    """Alone it is no majority and stops; the others go on; it comes again."""
    g = guests.group()
    p = g.programs[victim]
    guests.cluster.link(victim, cut=True)
    others = g.wait_without([p])
    g.wait_flow(others)
    g.wait(lambda: p.ends, 10 + 3 * SUSPECT, 'the one that is cut off learns of it')
    assert p.ends[0][1] == 'ENETDOWN'
    guests.cluster.link(victim, heal=True)
    g.settle()
    finish(g)


@one
def test_short_cut(guests):
    g = guests.group(create={'suspect_ms': 8000 * SLOW})
    view = g.programs[0].view.number
    guests.cluster.link(1, cut=True)
    time.sleep(0.3)
    guests.cluster.link(1, heal=True)
    g.settle()
    g.wait_flow()
    assert {p.view.number for p in g.programs} == {view}
    finish(g)


@one
@pytest.mark.parametrize('pair', [(0, 1), (1, 2)], ids=str)
def test_cut_between_two(guests, pair):
    """Both reach the third: one of them goes, the other stays."""
    g = guests.group()
    guests.cluster.link(*pair, cut=True)
    third = next(p for p in g.programs if p.node not in pair)
    g.wait(lambda: third.view and len(third.view.members) == 2, 10 + 4 * SUSPECT,
           'a view of two')
    guests.cluster.link(*pair, heal=True)
    g.settle()
    g.wait_flow()
    finish(g)


# majorities

@one
def test_a_minority_stops(guests):
    g = guests.group(rejoin=False)
    for victim in (0, 1):
        g.kill_guest(victim)
    p = g.programs[2]
    assert p.process.wait(30 * SLOW) == 3
    assert p.ends[0][1] == 'ENETDOWN'
    res = g.verdict()
    assert not res.violations, '\n'.join(res.violations)


@one
def test_half_goes_on_with_rank_0(guests):
    g = guests.group(places=[(0, 0), (1, 0)])
    g.kill_guest(1)
    g.settle()
    g.wait_flow()
    finish(g)


@one
def test_half_without_rank_0_stops(guests):
    g = guests.group(places=[(0, 0), (1, 0)], rejoin=False)
    # who joins may come in before the other is known to be rank 0
    zero = next(p for p in g.programs if p.view.rank == 0)
    g.kill_guest(zero.node)
    p = next(p for p in g.programs if p is not zero)
    assert p.process.wait(30 * SLOW) == 3
    assert p.ends[0][1] == 'ENETDOWN'


@one
def test_without_a_majority_by_option(guests):
    g = guests.group(create={'minority': True})
    g.kill_guest(0)
    g.kill_guest(1)
    g.settle()
    g.wait_flow()
    assert len(g.programs[2].view.members) == 1
    finish(g)


@one
def test_groups_of_other_nodes_are_left_alone(guests):
    whole, pair = guests.group(), guests.group(places=[(0, 0), (1, 0)])
    view = pair.programs[0].view.number
    whole.kill_guest(2)
    whole.settle()
    whole.wait_flow()
    assert {p.view.number for p in pair.programs} == {view}
    finish(whole)
    assert {p.view.number for p in pair.programs} == {view}
    finish(pair)


# many nodes in one guest

@pytest.mark.parametrize('doorbell', DOORBELLS[:1])
def test_sixteen_nodes_in_one_guest(doorbell):
    rng = random.Random(4)
    with Cluster(kernel=KERNEL, addrs=16, mem='1536M', timeout=400, module=True,
                 modparam=f'doorbell={doorbell}') as c:
        g = Group(c, 'sixteen', rng, create={
            'members': 4, 'max_members': 64, 'window': 65536, 'depth': 64},
            suspect_ms=10000 * SLOW,
            **{**LOAD, 'pace': 20 // SLOW, 'own_window': 8, 'max': 500})
        g.open([(0, i) for i in range(4)])
        for i in range(4, 16):
            g.add(0, i)
        g.settle(40)
        g.wait_flow()
        for _ in range(12):
            p = rng.choice(g.members())
            g.leave(p, rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL]))
            time.sleep(rng.choice([0, 0.1]))
            if rng.random() < 0.6:
                g.add(0, rng.randrange(16))
        g.settle(40)
        g.wait_flow()
        finish(g)


# the random series

def test_soak():
    done = subprocess.run([os.path.join(PROJECT, 'scripts', 'soak'), '--minutes', SOAK_MINUTES,
                           '--seed', '7', '--kernel', 'uml'], text=True, check=False, timeout=420,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r'soak: [\d.]+ minutes, \d+ faults, 0 violations', last), done.stdout
    assert done.returncode == 0
