# SPDX-License-Identifier: GPL-2.0
"""The judge of logs: that it says nothing of good ones, and names what is wrong in others."""

import copy
import errno
import os
import socket
import struct
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position,redefined-outer-name
import judge as j


def address(node):
    return f'10.77.0.{node + 1}'


class World:
    """A group that does what it should, and the logs of its members as they are written."""

    def __init__(self):
        self.members = []               # tags of those in the view
        self.logs = {}                  # tag: bytearray
        self.inc = {}                   # tag: incarnation
        self.uid = {}
        self.view = 0
        self.seq = -1
        self.count = {}
        self.uids = 0
        self.silent = set()             # those that read nothing any more

    def put(self, tag, kind, flags=0, rank=0, rtag=0, number=0, seq=None, inc=None, sum_=0,
            view=None):
        if tag in self.silent:
            return
        self.logs[tag] += j.RECORD.pack(
            kind, flags, rank, rtag, number, self.view if view is None else view,
            self.seq if seq is None else seq, 0, self.inc[tag] if inc is None else inc, sum_)

    def change(self, come=(), go=None):
        """The next view."""
        go = go or {}
        gone = [(tag, self.members.index(tag), reason) for tag, reason in go.items()]
        self.members = [t for t in self.members if t not in go]
        for tag in come:
            self.inc[tag] = self.inc.get(tag, -1) + 1
            self.silent.discard(tag)
            if tag not in self.logs:
                self.logs[tag] = bytearray()
                where = struct.unpack('>I', socket.inet_aton(address(tag)))[0]
                self.put(tag, j.HELLO, rtag=tag, seq=where)
            self.put(tag, j.OPEN)
            self.uids += 1
            self.uid[tag] = self.uids
            self.count[tag] = 0
            self.members.append(tag)
        self.view += 1
        for tag in self.members:
            self.put(tag, j.EVENT, j.VIEW, number=len(self.members), sum_=len(gone), inc=0)
            for rank, other in enumerate(self.members):
                flags = (j.SELF if other == tag else 0) | (j.JOINED if other in come else 0)
                self.put_member(tag, 0, rank, other, flags, 0)
            for other, rank, reason in gone:
                self.put_member(tag, 1, rank, other, 0, reason)

    def put_member(self, tag, gone, rank, other, flags, reason):
        where = struct.unpack('<I', socket.inet_aton(address(other)))[0]
        self.put(tag, j.MEMBER, gone, rank, self.uid[other], reason << 32 | flags, inc=where)

    def say(self, rounds=3, tags=None):
        for _ in range(rounds):
            for rank, tag in enumerate(self.members):
                self.seq += 1
                if tags and tag not in tags or tag in self.silent:
                    continue
                number, self.count[tag] = self.count[tag], self.count[tag] + 1
                self.put(tag, j.SENT, number=number, sum_=number * 7)
                for other in self.members:
                    self.put(other, j.MESSAGE, 0, rank, tag, number, inc=self.inc[tag],
                             sum_=number * 7)

    def leave(self, tag):
        self.put(tag, j.ORDER, j.LEAVE)
        self.change(go={tag: j.LEFT})
        self.put(tag, j.END)

    def evict(self, tag, error=errno.ECONNABORTED):
        self.put(tag, j.EVENT, j.EVICTED, inc=error)
        self.put(tag, j.END, sum_=error)

    def parsed(self):
        return {tag: j.parse(bytes(data)) for tag, data in self.logs.items()}

    def judge(self, alive=None):
        found = [i for incs in self.parsed().values() for i in incs]
        return j.judge(found, alive, self.seq if alive else None)


@pytest.fixture
def world():
    """Everything that may happen has happened, and nothing was wrong."""
    w = World()
    w.change(come=[0, 1, 2])
    w.say()
    w.change(come=[3])
    w.say(tags=[0, 2, 3])
    w.leave(1)
    w.say()
    # 2 is killed with its guest: it has read less than the others
    w.silent.add(2)
    w.say(2, tags=[0, 3])
    w.change(go={2: j.LOST})
    w.say()
    # 0 is cut off and comes again; what it sent last was lost
    w.put(0, j.SENT, number=w.count[0])
    w.evict(0)
    w.change(go={0: j.LOST})
    w.say()
    w.change(come=[0, 1, 4])
    w.say(4)
    # a program is killed
    w.silent.add(4)
    w.change(go={4: j.EXITED})
    w.say()
    return w


ALIVE = [0, 1, 3]


def test_nothing_wrong(world):
    res = world.judge(ALIVE)
    assert not res.violations
    assert res.views == 7 and res.incarnations == 7
    assert res.messages > 40 and res.deliveries > 2 * res.messages
    assert [m.addr for m in res.last_view.members] == [address(t) for t in (3, 0, 1)]


def test_a_torn_tail_is_left_out(world):
    whole = len(j.parse(bytes(world.logs[2]))[0].messages)
    world.logs[2] = world.logs[2][:-20]
    assert len(j.parse(bytes(world.logs[2]))[0].messages) == whole - 1
    world.logs[2] += bytes(2000)
    assert not world.judge(ALIVE).violations


def test_a_view_cut_short_is_left_out(world):
    # all of the first view but its last member
    world.logs[1] = world.logs[1][:(2 + 1 + 2) * j.RECORD.size]
    assert not j.parse(bytes(world.logs[1]))[0].views
    assert not world.judge([0, 3]).violations


def messages(inc):
    return [k for k, x in enumerate(inc.stream) if isinstance(x, j.Message)]


def lose_one(incs):
    s = incs[3][0].stream
    del s[messages(incs[3][0])[5]]


def lose_one_of_a_failed_member(incs):
    s = incs[2][0].stream
    del s[messages(incs[2][0])[4]]


def lose_one_everywhere(incs):
    seq = incs[3][0].stream[messages(incs[3][0])[1]].seq
    for found in incs.values():
        for inc in found:
            inc.stream = [x for x in inc.stream if isinstance(x, j.View) or x.seq != seq]


def lose_the_end(incs):
    del incs[3][0].stream[-1]


def lose_the_end_of_one_that_left(incs):
    s = incs[1][0].stream
    del s[messages(incs[1][0])[-1]]


def lose_what_was_sent(incs):
    incs[3][0].sent.append((incs[3][0].sent[-1][0] + 1, 0, 0))


def lose_what_a_killed_program_sent(incs):
    incs[4][0].sent.append((incs[4][0].sent[-1][0] + 1, 0, 0))


def deliver_twice(incs):
    for found in incs.values():
        for inc in found:
            for x in inc.messages:
                if x.tag == 3 and x.number >= 5:
                    x.number -= 1


def deliver_twice_to_one(incs):
    s = incs[0][0].stream
    at = messages(incs[0][0])[3]
    s.insert(at, s[at])


def swap_two(incs):
    s = incs[0][0].stream
    a, b = messages(incs[0][0])[3:5]
    s[a], s[b] = s[b], s[a]


def swap_two_with_their_places(incs):
    s = incs[0][0].stream
    a, b = messages(incs[0][0])[3:5]
    s[a], s[b] = s[b], s[a]
    s[a].seq, s[b].seq = s[b].seq, s[a].seq


def other_bytes(incs):
    s = incs[0][0].stream
    s[messages(incs[0][0])[0]].sum += 1


def bad_sum(incs):
    s = incs[0][0].stream
    s[messages(incs[0][0])[0]].flags = j.BAD_SUM


def bad_info(incs):
    s = incs[0][0].stream
    s[messages(incs[0][0])[0]].flags = j.BAD_INFO


def wrong_sender(incs):
    for found in incs.values():
        for inc in found:
            inc.messages[0].rank = 1 - min(1, inc.messages[0].rank)


def no_such_rank(incs):
    incs[0][0].stream[messages(incs[0][0])[0]].rank = 60


def view_too_late(incs):
    s = incs[3][0].stream
    at = s.index(incs[3][0].views[1])
    s[at], s[at + 1] = s[at + 1], s[at]


def view_too_early(incs):
    s = incs[3][0].stream
    at = s.index(incs[3][0].views[1])
    s[at], s[at - 1] = s[at - 1], s[at]


def view_elsewhere(incs):
    incs[3][0].views[1].seq -= 1


def view_skipped(incs):
    s = incs[3][0].stream
    s.remove(incs[3][0].views[2])


def other_members(incs):
    incs[3][0].views[1].members.pop(0)


def other_reason(incs):
    incs[3][0].views[1].gone[0].reason = j.EXITED


def other_flags(incs):
    incs[3][0].views[1].members[0].flags ^= j.JOINED


def split(incs):
    """A minority goes on by itself."""
    view = j.View(4, incs[2][0].reached, 0)
    last = incs[2][0].views[-1]
    view.members = [copy.copy(m) for m in last.members if m.flags & j.SELF]
    view.members[0].rank = 0
    view.gone = [j.Member(m.uid, m.rank, m.addr, 0, j.LOST) for m in last.members
                 if not m.flags & j.SELF]
    incs[2][0].stream.append(view)


def not_in_it(incs):
    for m in incs[3][0].views[2].members:
        m.flags &= ~j.SELF


def another_uid(incs):
    for m in incs[3][0].views[2].members:
        m.flags ^= j.SELF


def uid_again(incs):
    for found in incs.values():
        for inc in found:
            for view in inc.views:
                for m in view.members + view.gone:
                    if m.uid == 5:
                        m.uid = 2


def order_of_ranks(incs):
    for found in incs.values():
        for inc in found:
            for view in inc.views:
                if view.number == 6:
                    view.members.reverse()
                    for rank, m in enumerate(view.members):
                        m.rank = rank


def vanishes(incs):
    for found in incs.values():
        for inc in found:
            for view in inc.views:
                if view.number == 4:
                    view.gone = []


def before_any_view(incs):
    s = incs[0][1].stream
    s.remove(incs[0][1].views[0])


def before_its_view(incs):
    x = copy.copy(incs[3][0].messages[0])
    first = incs[0][1].views[0]
    x.seq = first.seq
    incs[0][1].stream.insert(0, x)
    incs[0][1].stream.remove(first)
    incs[0][1].stream.insert(0, first)


def ends_untold(incs):
    incs[0][0].events = [e for e in incs[0][0].events if e[0] != j.EVICTED]


def told_otherwise(incs):
    incs[0][0].end = errno.ENETDOWN


def goes_on(incs):
    incs[0][0].events = [(e[0], e[1], e[2], e[3], e[4] - 1, e[5]) for e in incs[0][0].events]


def ends_without_leaving(incs):
    incs[1][0].orders = []


def put_out_and_not_told(incs):
    incs[0][0].end = 0
    incs[0][0].events = []


def put_out_and_alive(incs):
    incs[0].pop()


@pytest.mark.parametrize('kind,harm', [
    ('lost', lose_one), ('lost', lose_one_of_a_failed_member), ('lost', lose_one_everywhere),
    ('lost', lose_the_end), ('lost', lose_the_end_of_one_that_left), ('lost', lose_what_was_sent),
    ('lost', lose_what_a_killed_program_sent),
    ('duplicate', deliver_twice), ('order', deliver_twice_to_one), ('order', swap_two),
    ('agreement', swap_two_with_their_places), ('agreement', other_bytes),
    ('content', bad_sum), ('content', bad_info), ('uid', wrong_sender), ('views', no_such_rank),
    ('views', view_too_late), ('order', view_too_early), ('agreement', view_elsewhere),
    ('views', view_skipped), ('agreement', other_members), ('agreement', other_reason),
    ('agreement', split), ('flags', other_flags), ('own', not_in_it), ('own', another_uid), ('uid', uid_again),
    ('history', order_of_ranks), ('history', vanishes), ('views', before_any_view),
    ('order', before_its_view), ('fate', ends_untold), ('fate', told_otherwise),
    ('fate', goes_on), ('fate', ends_without_leaving), ('fate', put_out_and_not_told),
    ('fate', put_out_and_alive),
], ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_violation(world, kind, harm):
    incs = world.parsed()
    harm(incs)
    found = [i for some in incs.values() for i in some]
    res = j.judge(found, ALIVE, world.seq)
    assert kind in res.kinds, res.violations


def test_views_that_change_nothing():
    w = World()
    w.change(come=[0, 1])
    for _ in range(j.MOST_SAME - 1):
        w.change()
    assert not w.judge().violations
    w.change()
    assert 'idle' in w.judge().kinds


def test_many_of_a_kind_are_not_all_told(world):
    incs = world.parsed()
    for x in incs[3][0].messages:
        x.sum += 1
    res = j.judge([i for some in incs.values() for i in some])
    assert len(res.violations) == j.MOST + 1 and res.kinds['agreement'] > j.MOST + 1


def test_everybody_says_the_last():
    w = World()
    w.change(come=[0, 1])
    w.say()
    for tag in (0, 1):
        w.put(tag, j.ORDER, j.SHUTDOWN)
    for tag in (0, 1):
        w.put(tag, j.END)
    assert not w.judge().violations
    w.logs[0] = w.logs[0].replace(j.RECORD.pack(j.ORDER, j.SHUTDOWN, 0, 0, 0, 1, w.seq, 0, 0, 0),
                                  b'')
    assert 'fate' in w.judge().kinds


def test_command_line(world, tmp_path):
    paths = []
    for tag, data in world.logs.items():
        paths.append(str(tmp_path / f'{tag}.log'))
        with open(paths[-1], 'wb') as f:
            f.write(data)
    judge = [os.path.join(HERE, 'judge.py')]
    done = subprocess.run([*judge, *paths], text=True, stdout=subprocess.PIPE, check=True)
    assert ' 0 violations' in done.stdout.splitlines()[-1]
    done = subprocess.run([*judge, '--dump', *paths], text=True, stdout=subprocess.PIPE, check=True)
    assert '0.1 on 10.77.0.1:' in done.stdout
    with open(paths[3], 'r+b') as f:
        f.seek(600 * 1)
        f.truncate(480)
    with open(paths[3], 'ab') as f:
        f.write(world.logs[3][576:])
    done = subprocess.run([*judge, *paths], text=True, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 1, done.stdout
