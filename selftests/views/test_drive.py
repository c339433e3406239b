# SPDX-License-Identifier: GPL-2.0
"""What drives groups in guests, as far as it needs no guest."""

import os
import random
import subprocess
import sys
import types

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position
import drive
import soak

SOAK = os.path.join(drive.PROJECT, 'scripts', 'soak')


class Fake:
    """In place of a cluster, and of a process in it."""

    running = True
    status = None
    kernel = types.SimpleNamespace(name='uml')
    out = '/nowhere'
    nodes = 3

    def env(self, node):
        return {'SPINDLE_ADDRS': f'10.77.0.{node + 1}'}


def program(group, node, *lines):
    p = drive.Program(group, node, f'10.77.0.{node + 1}', 7)
    p.process = Fake()
    for line in lines:
        p.hear(p.process, 'stdout', line)
    group.programs.append(p)
    return p


def view(number, uids, rank, gone=''):
    members = ','.join(f'{u}@10.77.0.{u}' for u in uids)
    return f'view 100 {number} {10 * number} {rank} {members} gone {gone}'


def group(*ranks, uids=(1, 2, 3), number=4):
    g = drive.Group(Fake(), 'g')
    for node, rank in enumerate(ranks):
        program(g, node, 'joined 5 0', *([] if rank is None else [view(number, uids, rank)]))
    return g


def test_lines_of_a_program():
    g = group()
    p = program(g, 1, 'joined 5 0', view(3, [1, 2], 1), 'first 120 3 31',
                'suspected 150 3 0', 'view 160 4 40 0 2@10.77.0.2 gone 1:3')
    assert p.view.number == 4 and p.view.uid == 2 and p.view.gone == {1: 3}
    assert p.views[0].addrs == ['10.77.0.1', '10.77.0.2']
    assert p.firsts == {3: 120} and p.suspicions == [(150, 3, 0)]
    p.hear(p.process, 'stdout', 'rest 4 44 10 30 10 10 5000 10')
    assert g.at_rest([p])
    p.hear(p.process, 'stdout', 'end 170 ECONNABORTED')
    assert p.view is None and p.ends == [(170, 'ECONNABORTED')]
    # it comes again
    p.hear(p.process, 'stdout', 'joined 180 1')
    assert p.view is None
    p.hear(p.process, 'stdout', 'view 190 6 60 1 3@10.77.0.3,4@10.77.0.2 gone')
    assert p.view.uid == 4 and p.view.gone == {}


def test_together():
    assert group(0, 1, 2).together()
    assert not group(0, 1).together()
    assert not group(0, 1, None).together()
    g = group(0, 1, 2)
    g.programs[1].hear(None, 'stdout', view(5, (1, 2), 1))
    assert not g.together()


@pytest.mark.parametrize('ranks,uids,down,strike,may', [
    ((0, 1, 2), (1, 2, 3), [], [2], True),
    ((0, 1, 2), (1, 2, 3), [1], [2], False),
    ((0, 1), (1, 2), [], [1], True),            # half, with rank 0
    ((0, 1), (1, 2), [], [0], False),           # half, without
    ((1, 0), (2, 1), [], [0], True),            # node 1 has rank 0
    ((0, 1, None), (1, 2), [], [1], False),     # the third may be in the next view
    ((0, 1, 2), (1, 2, 3), [], [1, 2], False),
])
def test_a_majority_is_left(ranks, uids, down, strike, may):
    field = soak.Field(None, group(*ranks, uids=uids))
    if down:
        field.add('cut', down, None, 0)
    assert field.may_strike(strike) == may


def test_bounds_of_a_clock():
    clock = drive.Clock.__new__(drive.Clock)
    clock.low, clock.high = 90, 110
    assert clock.host(1000) == 1100 and clock.error == 10


def test_load_is_bearable():
    for seed in range(50):
        load = soak.load_of(random.Random(seed), 2, 16)
        assert load['pace'] == -1 or 5 <= load['pace'] <= 75


@pytest.mark.parametrize('args', [['--minutes', 'x'], ['--guests', '2'], ['--only', 'all'],
                                  ['--kernel', 'none'], ['word']], ids=' '.join)
def test_options_without_sense(args):
    done = subprocess.run([SOAK, *args], check=False, stderr=subprocess.DEVNULL, timeout=20)
    assert done.returncode == 2
