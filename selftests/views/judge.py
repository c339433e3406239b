#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compare the logs of a group's members: one order, nothing lost, one history of views.

A log is what views_member.c has written. What a member was given must be what everybody
else was given between the same two places of the stream, so all that anybody was given
is put together, and each member is held against it.
"""

import argparse
import errno
import os
import socket
import struct
import sys

# the first view of all is after place -1
RECORD = struct.Struct('<BBHIQQqQII')
HELLO, OPEN, MESSAGE, SENT, EVENT, MEMBER, REFUSED, ORDER, END, NO_JOIN = range(1, 11)
LEAVE, SHUTDOWN, CLOSE = 1, 2, 3
VIEW, SUSPECTED, SLOW_EVENT, EVICTED, CURRENT = 1, 2, 3, 4, 5
NONE, LEFT, EXITED, LOST, SLOW = range(5)
JOINED, STATE, RECEIVER, SELF = 1, 2, 4, 8
REASONS = ['none', 'left', 'exited', 'lost', 'slow']
BAD_SUM, BAD_INFO = 1, 2
MOST_SAME = 3           # views in a row that change nothing
MOST = 12               # violations of one kind that are told of one by one


class Member:
    """A member in a view."""

    __slots__ = ('uid', 'rank', 'addr', 'flags', 'reason')

    def __init__(self, uid, rank, addr, flags, reason):
        self.uid = uid
        self.rank = rank
        self.addr = addr
        self.flags = flags
        self.reason = reason

    def key(self):
        """What must be the same in everybody's eyes."""
        return self.uid, self.rank, self.addr, self.reason

    def __repr__(self):
        gone = f':{REASONS[self.reason]}' if 0 < self.reason < 5 else ''
        if self.flags & ~SELF:
            gone += f'+{self.flags & ~SELF}'
        return f'{self.uid}@{self.addr}{gone}'


class View:
    """A view as one member has seen it begin."""

    def __init__(self, number, seq, ns):
        self.number = number
        self.seq = seq
        self.ns = ns
        self.members = []
        self.gone = []

    def key(self):
        return self.seq, tuple(m.key() for m in self.members), tuple(m.key() for m in self.gone)

    def flags(self):
        return [m.flags & ~SELF for m in self.members + self.gone]

    def uids(self):
        return [m.uid for m in self.members]

    def __repr__(self):
        gone = f' gone {self.gone}' if self.gone else ''
        return f'view {self.number} after {self.seq}: {self.members}{gone}'


class Message:
    """A message as one member was given it."""

    __slots__ = ('seq', 'view', 'rank', 'tag', 'inc', 'number', 'sum', 'flags', 'ns')

    def __init__(self, seq, view, rank, tag, inc, number, sum_, flags=0, ns=0):
        self.seq = seq
        self.view = view
        self.rank = rank
        self.tag = tag
        self.inc = inc
        self.number = number
        self.sum = sum_
        self.flags = flags
        self.ns = ns

    def key(self):
        return self.view, self.rank, self.tag, self.inc, self.number, self.sum

    def __repr__(self):
        return f'message {self.number} of {self.tag}.{self.inc} (rank {self.rank}, view ' \
               f'{self.view}, seq {self.seq})'


class Incarnation:
    """One membership of a program: from a join to its end."""

    def __init__(self, tag, inc, addr):
        self.tag = tag
        self.inc = inc
        self.addr = addr
        self.opened = False
        self.stream = []                # View and Message, as they came
        self.events = []                # (type, view, subject, error, place in the stream, ns)
        self.sent = []                  # (number, sum, ns)
        self.orders = []
        self.refused = []
        self.end = None                 # errno; None: the log just ends

    @property
    def name(self):
        return f'{self.tag}.{self.inc}'

    @property
    def views(self):
        return [x for x in self.stream if isinstance(x, View)]

    @property
    def messages(self):
        return [x for x in self.stream if isinstance(x, Message)]

    @property
    def uid(self):
        for view in self.views:
            own = [m.uid for m in view.members if m.flags & SELF]
            if own:
                return own[0]
        return None

    @property
    def reached(self):
        """The last place of the stream that it knows of."""
        return max((x.seq for x in self.stream), default=-2)


def err_name(number):
    return errno.errorcode.get(number, str(number))


def parse(data):
    """The incarnations in a log; a record that is not whole at its end is left out."""
    found = {}
    # a page that never left its guest reads as zeros: the tail is lost
    written = data.rstrip(b'\0')
    if len(data) - len(written) > RECORD.size:
        data = written
    tag, addr, view, due = None, '', None, 0
    order = []

    def at(inc):
        if inc not in found:
            found[inc] = Incarnation(tag, inc, addr)
            order.append(inc)
        return found[inc]

    current = None
    for kind, flags, rank, rtag, number, rview, seq, ns, inc, sum_ in RECORD.iter_unpack(
            data[:len(data) // RECORD.size * RECORD.size]):
        if kind == MESSAGE:
            current.stream.append(Message(seq, rview, rank, rtag, inc, number, sum_, flags, ns))
        elif kind == SENT:
            current.sent.append((number, sum_, ns))
        elif kind == EVENT:
            view = None
            if flags == VIEW:
                view = View(rview, seq, ns)
                due = number + sum_
                current.stream.append(view)
            error = inc - (1 << 32) if inc >> 31 else inc
            current.events.append((flags, rview, rank, error, len(current.stream), ns))
        elif kind == MEMBER:
            member = Member(rtag, rank, socket.inet_ntoa(struct.pack('<I', inc)),
                            number & 0xffffffff, number >> 32)
            (view.gone if flags else view.members).append(member)
        elif kind == HELLO:
            tag, addr = rtag, socket.inet_ntoa(struct.pack('>I', seq))
        elif kind == OPEN:
            current = at(inc)
            current.opened = True
        elif kind == REFUSED:
            at(inc).refused.append((flags, sum_))
        elif kind == ORDER:
            at(inc).orders.append(flags)
        elif kind == END:
            at(inc).end = sum_
        elif kind != NO_JOIN:
            raise ValueError(f'a record of type {kind}')
    if view and len(view.members) + len(view.gone) < due:
        # cut off in the middle of it
        current.stream.remove(view)
    return [found[inc] for inc in order if found[inc].opened]


def read(path):
    with open(path, 'rb') as f:
        return parse(f.read())


class Verdict:
    """What was found: violations, and how much was compared."""

    def __init__(self):
        self.violations = []
        self.kinds = {}
        self.messages = 0
        self.deliveries = 0
        self.views = 0
        self.incarnations = 0
        self.last_view = None

    def add(self, kind, text):
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if self.kinds[kind] <= MOST:
            self.violations.append(f'{kind}: {text}')
        elif self.kinds[kind] == MOST + 1:
            self.violations.append(f'{kind}: and more')

    def __str__(self):
        return f'{self.incarnations} incarnations, {self.views} views, {self.messages} messages, ' \
               f'{self.deliveries} deliveries, {len(self.violations)} violations'


class Judge:
    """The logs of one group, and what the driver knows of it."""

    def __init__(self, incarnations, alive=None, rested=None):
        self.all = [i for i in incarnations if i.stream]
        self.alive = set(alive or ())   # tags whose last incarnation was a member at the end
        self.rested = rested            # place that all of these had reached then
        self.res = Verdict()
        self.given = {}                 # seq: message, of whoever read it first
        self.views = {}                 # number: (view, name)
        self.fresh = {}                 # number: is it known only from who came with it
        self.by_uid = {}                # uid: (tag, inc)
        self.gone = {}                  # uid: (view in which it is no more, reason)

    def run(self):
        for inc in self.all:
            self.one(inc)
        self.history()
        self.order()
        self.complete()
        self.fates()
        res = self.res
        res.incarnations = len(self.all)
        res.messages = len(self.given)
        res.deliveries = sum(len(i.messages) for i in self.all)
        res.views = len(self.views)
        if self.views:
            res.last_view = self.views[max(self.views)][0]
        return res

    # what one member's stream says by itself, gathered on the way

    def one(self, inc):
        add = self.res.add
        view, last, uid = None, -2, None
        for x in inc.stream:
            if isinstance(x, View):
                if view and x.number != view.number + 1:
                    add('views', f'{inc.name} installs view {x.number} after {view.number}')
                if x.seq < last:
                    add('order', f'{inc.name}: view {x.number} after {x.seq} comes behind {last}')
                uid = self.own(inc, x, uid)
                self.agree(inc, x)
                view, last = x, max(last, x.seq)
                continue
            if view is None:
                add('views', f'{inc.name} is given {x} before any view')
                view = View(x.view, -2, 0)
            elif x.view != view.number:
                add('views', f'{inc.name} is given {x} in view {view.number}')
            if x.seq <= last:
                add('order', f'{inc.name} is given {x} behind {last}')
            last = max(last, x.seq)
            if x.flags & BAD_SUM:
                add('content', f'{inc.name}: {x} is not what was sent')
            if x.flags & BAD_INFO:
                add('content', f'{inc.name}: what the kernel says of {x} does not fit')
            self.sender(inc, x, view)
            known = self.given.setdefault(x.seq, x)
            if known is not x and known.key() != x.key():
                add('agreement', f'{inc.name} is given {x}, another one {known}')

    def own(self, inc, view, uid):
        own = [m for m in view.members if m.flags & SELF]
        if len(own) != 1:
            self.res.add('own', f'{inc.name} is {len(own)} times in {view}')
            return uid
        own = own[0]
        if uid not in (None, own.uid):
            self.res.add('own', f'{inc.name} was uid {uid}, is {own.uid} in {view}')
        if own.addr != inc.addr:
            self.res.add('own', f'{inc.name} on {inc.addr} is {own} in {view}')
        self.is_uid(own.uid, inc.tag, inc.inc)
        return own.uid

    def is_uid(self, uid, tag, number):
        known = self.by_uid.setdefault(uid, (tag, number))
        if known != (tag, number):
            self.res.add('uid', f'{uid} is {tag}.{number} and {known[0]}.{known[1]}')

    def sender(self, inc, x, view):
        if not view.members:
            return
        if x.rank >= len(view.members):
            self.res.add('views', f'{inc.name}: no rank {x.rank} for {x} in {view}')
        else:
            self.is_uid(view.members[x.rank].uid, x.tag, x.inc)

    def agree(self, inc, view):
        known, name = self.views.setdefault(view.number, (view, inc.name))
        # who comes with a view cannot know who was in the one before
        fresh = {id(view): view is inc.views[0], id(known): self.fresh.get(view.number, False)}
        self.fresh.setdefault(view.number, fresh[id(view)])
        if any(fresh.values()):
            if known.key()[:2] != view.key()[:2]:
                self.res.add('agreement', f'{inc.name} has {view}, {name} {known}')
            if not fresh[id(view)]:
                # one that stayed knows better
                self.views[view.number] = view, inc.name
                self.fresh[view.number] = False
        elif known.key() != view.key():
            self.res.add('agreement', f'{inc.name} has {view}, {name} {known}')
        elif view.flags() != known.flags():
            self.res.add('flags', f'{inc.name} has {view}, {name} {known}')

    # the history of views

    def history(self):
        add = self.res.add
        seen, before, same = set(), None, 0
        for number in sorted(self.views):
            view = self.views[number][0]
            uids = view.uids()
            if [m.rank for m in view.members] != list(range(len(uids))):
                add('history', f'ranks are not in order in {view}')
            if len(set(uids)) != len(uids):
                add('history', f'somebody is twice in {view}')
            gone = {m.uid: m.reason for m in view.gone}
            for uid, reason in gone.items():
                self.gone.setdefault(uid, (view, reason))
                if reason in (NONE,) or reason >= len(REASONS):
                    add('history', f'{uid} is gone for reason {reason} in {view}')
            if before and before.number == number - 1 and not self.fresh[number]:
                old = before.uids()
                stayed = [u for u in old if u not in gone]
                if not set(gone) <= set(old):
                    add('history', f'{view}: who is gone was not in {before}')
                if uids[:len(stayed)] != stayed:
                    add('history', f'{view}: those of {before} do not stay in their order')
                come = uids[len(stayed):]
                if any(u in seen for u in come):
                    add('history', f'{view}: a uid is given again')
                if come != [m.uid for m in view.members if m.flags & JOINED]:
                    add('history', f'{view}: {come} come, the flags say otherwise')
                same = same + 1 if not come and not gone else 0
                if same == MOST_SAME:
                    add('idle', f'{same + 1} views with the same members, up to {view}')
                if view.seq < before.seq:
                    add('history', f'{view} is before {before}')
            seen.update(uids)
            before = view

    # the messages, all together

    def order(self):
        add = self.res.add
        expected = {}
        for seq in sorted(self.given):
            x = self.given[seq]
            who = (x.tag, x.inc)
            want = expected.get(who, 0)
            if x.number < want:
                add('duplicate', f'{x}, after {want - 1}')
            elif x.number > want:
                add('lost', f'{who[0]}.{who[1]}: {want} to {x.number - 1} before {x}')
            expected[who] = max(want, x.number + 1)
        self.delivered = expected

    # each member against all that was given

    def complete(self):
        places = sorted(self.given)
        for inc in self.all:
            if not inc.views:
                continue
            low, high = inc.views[0].seq, inc.reached
            uid = inc.uid
            if inc.end == 0 and uid in self.gone:
                # it was to read all until the view that is without it
                high = max(high, self.gone[uid][0].seq)
            if inc.tag in self.alive and self.rested is not None and self.is_last(inc):
                high = max(high, self.rested)
            mine = {x.seq for x in inc.messages}
            missing = [s for s in places if low < s <= high and s not in mine]
            if missing:
                self.res.add('lost', f'{inc.name} was not given {len(missing)} messages that others '
                             f'were, the first: {self.given[missing[0]]}; it reached {high}')
            early = [s for s in mine if s <= low]
            if early:
                self.res.add('order', f'{inc.name} was given {self.given[min(early)]}, before its '
                             f'first view {inc.views[0]}')

    def is_last(self, inc):
        return inc.inc == max(i.inc for i in self.all if i.tag == inc.tag)

    # what became of each

    def fates(self):
        add = self.res.add
        for inc in self.all:
            uid = inc.uid
            if uid is None:
                continue
            at_end = inc.tag in self.alive and self.is_last(inc)
            view, reason = self.gone.get(uid, (None, NONE))
            evicted = [e for e in inc.events if e[0] == EVICTED]
            if evicted and evicted[0][4] < len(inc.stream):
                add('fate', f'{inc.name} goes on after it was told that it is put out')
            # who did not read is told by the errno: its stream is cut
            if inc.end and not evicted and reason != SLOW:
                add('fate', f'{inc.name} ends with {err_name(inc.end)}, and was not told')
            if inc.end and evicted and evicted[0][3] != inc.end:
                add('fate', f'{inc.name} ends with {err_name(inc.end)}, and was told '
                    f'{err_name(evicted[0][3])}')
            if inc.end == 0 and LEAVE not in inc.orders and not self.all_shut():
                add('fate', f'the stream of {inc.name} ends, and it did not leave')
            if view and max(v.number for v in inc.views) >= view.number:
                add('fate', f'{inc.name} has installed {view}, in which it is not')
            if reason == LEFT and LEAVE not in inc.orders:
                add('fate', f'{inc.name} left, and was not told to')
            if at_end and (view and not inc.orders or inc.end):
                add('fate', f'{inc.name} was to live, but is gone '
                    f'({REASONS[reason]}, {err_name(inc.end) if inc.end else "no error"})')
            if reason in (LOST, SLOW) and inc.end == 0 and not inc.orders:
                add('fate', f'{inc.name} was put out ({REASONS[reason]}) and not told')
            if inc.end:
                continue
            if reason in (LEFT, EXITED) or inc.end == 0 or at_end:
                self.all_sent(inc)

    def all_shut(self):
        """Did all members of the last view say their last?"""
        last = self.views[max(self.views)][0]
        shut = {i.uid for i in self.all if SHUTDOWN in i.orders}
        return all(m.uid in shut or m.flags & RECEIVER for m in last.members)

    def all_sent(self, inc):
        have = self.delivered.get((inc.tag, inc.inc), 0)
        lost = [n for n, _, _ in inc.sent if n >= have]
        if lost:
            self.res.add('lost', f'{inc.name} sent {lost[0]} to {lost[-1]}, which nobody was given')


def judge(incarnations, alive=None, rested=None):
    return Judge(incarnations, alive, rested).run()


def dump(inc):
    print(f'{inc.name} on {inc.addr}: {len(inc.messages)} messages, {len(inc.sent)} sent, end '
          f'{"none" if inc.end is None else err_name(inc.end) if inc.end else 0}, '
          f'orders {inc.orders}')
    last = None
    for x in inc.stream:
        if isinstance(x, View):
            if last:
                print(f'  ... {last}')
            print(f'  {x.ns / 1e9:.6f} {x}')
            last = None
        else:
            if not last:
                print(f'  {x.ns / 1e9:.6f} {x}')
            last = x
    if last:
        print(f'  {last.ns / 1e9:.6f} {last}')
    for kind, view, subject, error, _, ns in inc.events:
        if kind != VIEW:
            print(f'  {ns / 1e9:.6f} event {kind} in view {view}, subject {subject}, error {error}')


def main():
    top = argparse.ArgumentParser(description='Judge the logs of one group.')
    top.add_argument('logs', nargs='+', metavar='LOG')
    top.add_argument('--dump', action='store_true', help='show what is in them, too')
    args = top.parse_args()
    incarnations = [inc for path in args.logs for inc in read(path)]
    if args.dump:
        for inc in incarnations:
            dump(inc)
    res = judge(incarnations)
    for text in res.violations:
        print(text)
    print(f'judge: {len(args.logs)} logs, {res}')
    return 1 if res.violations else 0


if __name__ == '__main__':
    sys.dont_write_bytecode = True
    try:
        status = main()
    except BrokenPipeError:
        status = 0
        os.close(1)
    sys.exit(status)
