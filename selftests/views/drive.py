# SPDX-License-Identifier: GPL-2.0
"""A group of views_member programs in guests: started, told what to do, followed, judged."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.realpath(os.path.join(HERE, '..', '..'))
for _path in (HERE, os.path.join(PROJECT, 'scripts')):
    if _path not in sys.path:
        sys.path.insert(0, _path)

# pylint: disable=wrong-import-position
import judge
from vmlib import Cluster, Error, GuestDied, KernelComplaint, Timeout

BIN = os.path.join(PROJECT, 'build', 'selftests', 'views_member')
# what a node of which nothing is heard is given, and how much slower all else is
SUSPECT_MS = {'uml': 700, 'uml-debug': 1500}
SLOWNESS = {'uml': 1, 'uml-debug': 2}


def build():
    subprocess.run(['make', '-s', '-C', HERE], check=True)


def suspect_ms(kernel):
    return SUSPECT_MS.get(kernel, 2500)


def slowness(kernel):
    return SLOWNESS.get(kernel, 4)


class Wrong(Error):
    """The group did not do in time what it must."""


class Seen:
    """A view as a program has told of it."""

    def __init__(self, ns, number, seq, rank, members, gone):
        self.ns = ns
        self.number = number
        self.seq = seq
        self.rank = rank                # own
        self.members = members          # [(uid, addr)]
        self.gone = gone                # {uid: reason}

    @property
    def uid(self):
        return self.members[self.rank][0] if 0 <= self.rank < len(self.members) else None

    @property
    def addrs(self):
        """Addresses of its nodes, by rank."""
        return list(dict.fromkeys(addr for _, addr in self.members))

    def __repr__(self):
        return f'view {self.number}: ' + ' '.join(f'{u}@{a}' for u, a in self.members)


def parse_view(words):
    number, gone = int(words[2]), {}
    words = [w for w in words if w]
    members = [(int(u), a) for u, _, a in
               (m.partition('@') for m in words[5].split(',') if m)] if words[5] != 'gone' else []
    for pair in words[-1].split(',') if words[-1] != 'gone' else []:
        uid, _, reason = pair.partition(':')
        gone[int(uid)] = int(reason)
    return Seen(int(words[1]), number, int(words[3]), int(words[4]), members, gone)


class Program:
    """One views_member."""

    def __init__(self, group, node, addr, tag):
        self.group = group
        self.node = node
        self.addr = addr
        self.tag = tag
        self.log = os.path.join(group.c.out, f'{group.name}.{tag}.log')
        self.process = None
        self.lock = threading.Lock()
        self.views = []                 # of the current incarnation, and those before
        self.firsts = {}                # view: ns of its first message
        self.suspicions = []            # (ns, view, rank)
        self.ends = []                  # (ns, errno's name or '0')
        self.rest = None                # words of the last line 'rest' or 'waits'
        self.joins = 0
        self.dying = None
        self.leaving = False            # told to leave, or killed
        self.lines = []

    def start(self, argv):
        self.process = self.group.c.start(self.node, [BIN, *argv], on_line=self.hear)

    def hear(self, _process, stream, line):
        words = line.split(' ')
        with self.lock:
            self.lines.append(line if stream == 'stdout' else f'! {line}')
            if words[0] == 'view':
                self.views.append(parse_view(words))
            elif words[0] == 'first':
                self.firsts.setdefault(int(words[2]), int(words[1]))
            elif words[0] == 'suspected':
                self.suspicions.append(tuple(map(int, words[1:4])))
            elif words[0] in ('rest', 'waits'):
                self.rest = words
            elif words[0] == 'end':
                self.ends.append((int(words[1]), ' '.join(words[2:])))
            elif words[0] == 'joined':
                self.joins += 1
            elif words[0] == 'dying':
                self.dying = int(words[1])

    @property
    def view(self):
        """The view it is in now, or None."""
        with self.lock:
            if not self.views or not self.process.running or len(self.ends) >= self.joins:
                return None
            last = self.views[-1]
            # one of an incarnation that has ended does not count
            return last if not self.ends or last.ns > self.ends[-1][0] else None

    @property
    def running(self):
        return self.process.running

    def tell(self, sig):
        self.process.signal(sig)

    def told(self):
        """The last lines, for a report."""
        with self.lock:
            return '\n'.join(f'    {line[:200]}' for line in self.lines[-8:])

    def __repr__(self):
        return f'{self.tag}@{self.addr}'


class Group:
    """Its programs, and what the driver knows of them."""

    tags = 100

    def __init__(self, cluster, name, rng=None, **options):
        self.c = cluster
        self.name = name
        self.rng = rng or random.Random(1)
        self.slow = slowness(cluster.kernel.name)
        self.suspect = options.pop('suspect_ms', suspect_ms(cluster.kernel.name))
        self.create = {'suspect_ms': self.suspect, **options.pop('create', {})}
        self.logs = options.pop('logs', True)
        self.options = options          # of each program
        self.programs = []
        self.rested = None
        self.alive = []

    # programs

    def addresses(self, node):
        return self.c.env(node)['SPINDLE_ADDRS'].split()

    def add(self, node=0, index=0, create=False, contacts=None, **options):
        """Start a program on an address of a node."""
        addr = self.addresses(node)[index]
        Group.tags += 1
        p = Program(self, node, addr, Group.tags)
        options = {**self.options, **(self.create if create else {}), **options}
        argv = ['--addr', addr, '--name', self.name, '--tag', p.tag]
        argv += ['--log', p.log] if self.logs else []
        if create:
            argv += ['--create']
        argv += ['--contacts', ','.join(contacts or self.contacts(addr))]
        for key, value in options.items():
            flag = f'--{key.replace("_", "-")}'
            if value is True:
                argv += [flag]
            elif value not in (None, False):
                argv += [flag, value]
        p.start(argv)
        self.programs.append(p)
        return p

    def contacts(self, own):
        """Where a program joins: where members are, then everywhere else."""
        there = list(dict.fromkeys(p.addr for p in self.members() if p.addr != own))
        self.rng.shuffle(there)
        rest = [a for i in range(self.c.nodes) for a in self.addresses(i)
                if a not in there and a != own]
        self.rng.shuffle(rest)
        # an address of the own node is one, too, when another member is there
        return (there + rest)[:20] or [own]

    def open(self, places, **options):
        """The first members: on each of these (node, index); the first makes the group."""
        first = self.add(*places[0], create=True, **options)
        first.process.wait_output('joined', 20 * self.slow)
        return [first, *(self.add(*place, contacts=[first.addr]) for place in places[1:])]

    def members(self):
        """Programs that are in a view, and were not told to leave it."""
        return [p for p in self.programs if not p.leaving and p.running and p.view]

    def expected(self):
        """Programs that are members, or are on their way in."""
        return [p for p in self.programs if not p.leaving and p.running]

    # faults

    def kill_program(self, p):
        p.leaving = True
        p.tell(signal.SIGKILL)

    def leave(self, p, sig=signal.SIGTERM):
        p.leaving = True
        p.tell(sig)

    def kill_guest(self, node):
        for p in self.programs:
            if p.node == node:
                p.leaving = True
        self.c.kill(node)

    # waiting

    def wait(self, condition, seconds, what):
        """Until it holds; Wrong after so long."""
        end = time.monotonic() + seconds * self.slow
        with self.c.changed:
            ok = self.c.changed.wait_for(condition, max(0, end - time.monotonic()))
        if not ok:
            raise Wrong(f'{self.name}: not in {seconds * self.slow:.0f} s: {what}\n{self.told()}')

    def told(self):
        return '\n'.join(f'  program {p} on node {p.node}'
                         f'{"" if p.running else " (ended)"}{" (leaving)" if p.leaving else ""}\n'
                         f'{p.told()}' for p in self.programs
                         if p.running and not p.leaving or p in self.programs[-3:])

    def together(self):
        """Are all that should be members in one view, and nobody else?"""
        wanted = self.expected()
        views = [p.view for p in wanted]
        if not views or None in views or len({v.number for v in views}) != 1:
            return False
        return sorted(v.uid or 0 for v in views) == sorted(u for u, _ in views[0].members)

    def settle(self, seconds=20):
        """Until everybody who is to be a member is one, and nobody else."""
        # a rejoining program tries its contacts in turn, and one that is dead takes its time
        self.wait(self.together, seconds + 4 * self.suspect / 1000, 'all in one view')

    def wait_without(self, gone, seconds=10):
        """Until all others have had a message in a view without these programs."""
        uids = {u for p in gone for u in [p.views[-1].uid if p.views else None]}
        others = [p for p in self.members() if p not in gone]

        def away():
            return all(p.view and not uids & {u for u, _ in p.view.members} for p in others)
        self.wait(away, seconds + 3 * self.suspect / 1000,
                  f'a view without {", ".join(map(str, gone))}')
        return others

    def wait_flow(self, programs=None, seconds=10):
        """Until each has been given a message in the view it is in."""
        programs = programs or self.members()
        self.wait(lambda: all(p.view and p.view.number in p.firsts or not p.running
                              for p in programs), seconds + 2 * self.suspect / 1000,
                  'messages flow')

    # the end

    def at_rest(self, programs):
        words = [p.rest for p in programs]
        if None in words or any(w[0] != 'rest' for w in words):
            return False
        return len({(w[1], w[2]) for w in words}) == 1 and \
            all(p.view and str(p.view.number) == w[1] for p, w in zip(programs, words)) and \
            all(w[5] == w[6] == w[3] for w in words)

    def bring_to_rest(self, seconds=15):
        """Nobody sends; all have been given everything, and know that all were."""
        self.alive = self.members()
        for p in self.alive:
            p.rest = None
            p.tell(signal.SIGUSR1)
        self.wait(lambda: self.at_rest(self.alive), seconds,
                  'all at rest at one place, all stable')
        self.rested = int(self.alive[0].rest[2]) if self.alive else None

    def go_on(self):
        for p in self.members():
            p.tell(signal.SIGUSR2)

    def close(self, how=None, seconds=15):
        """All members leave, one way or another."""
        how = how or self.rng.choice(['leave', 'leave', 'roll', 'shutdown', 'close'])
        left = self.members()
        self.rng.shuffle(left)
        sig = {'shutdown': signal.SIGHUP, 'close': signal.SIGINT}.get(how, signal.SIGTERM)
        for p in left:
            self.leave(p, sig)
            if how == 'roll':
                self.wait(lambda p=p: not p.running, seconds, f'{p} leaves')
        self.wait(lambda: not any(p.running for p in left), seconds, f'all end ({how})')
        self.stop()

    def stop(self):
        """Whatever still runs is killed."""
        for p in self.programs:
            if p.running:
                try:
                    p.leaving = True
                    p.tell(signal.SIGCONT)
                    p.tell(signal.SIGKILL)
                    p.process.wait(20)
                except (GuestDied, Timeout):
                    pass

    def judge(self):
        """What the logs say, once all programs have ended."""
        found = []
        for p in self.programs:
            if os.path.exists(p.log):
                found += judge.read(p.log)
        return judge.judge(found, [p.tag for p in self.alive], self.rested)

    def statuses(self):
        """Programs that ended in a way of their own: a failed check, a crash."""
        return [f'program {p} on node {p.node}: status {p.process.status}\n{p.told()}'
                for p in self.programs
                if p.process.status not in (None, 0, 3, -signal.SIGKILL)]

    def finish(self, how=None):
        """Rest, leave, judge; what is wrong, as a list of lines."""
        self.bring_to_rest()
        self.close(how)
        return self.verdict()

    def verdict(self):
        res = self.judge()
        res.violations += self.statuses()
        return res


class Clock:
    """What a guest's CLOCK_MONOTONIC says when the host's says 0, in ns.

    A question takes t0 to t1 on the host and is answered with g: the difference lies between
    t0 - g and t1 - g. Many questions leave a narrow bound.
    """

    def __init__(self, cluster, node):
        self.low, self.high = -float('inf'), float('inf')
        self.answers = []
        self.event = threading.Event()
        self.process = cluster.start(node, [BIN, '--clock'], on_line=self.hear)
        self.process.wait_output('ready', 20)

    def hear(self, _process, _stream, line):
        if line.startswith('clock '):
            self.answers.append((int(line.split()[1]), time.monotonic_ns()))
            self.event.set()

    def ask(self, times=20):
        for _ in range(times):
            self.event.clear()
            asked = time.monotonic_ns()
            self.process.signal(signal.SIGWINCH)
            if self.event.wait(5):
                said, heard = self.answers[-1]
                self.low = max(self.low, asked - said)
                self.high = min(self.high, heard - said)
        return self

    @property
    def offset(self):
        return (self.low + self.high) / 2

    @property
    def error(self):
        """At most this much, in ns; negative: the clocks do not run alike."""
        return (self.high - self.low) / 2

    def host(self, ns):
        return ns + self.offset

    def close(self):
        if self.process.running:
            self.process.signal(signal.SIGKILL)


def seconds_of(text):
    """'90', '90s', '2m', '1h' in seconds."""
    match = re.fullmatch(r'([\d.]+)([smh]?)', text)
    if not match:
        raise ValueError(text)
    return float(match[1]) * {'': 1, 's': 1, 'm': 60, 'h': 3600}[match[2]]


__all__ = ['Cluster', 'Clock', 'Error', 'Group', 'GuestDied', 'KernelComplaint', 'Timeout',
           'Wrong', 'build', 'slowness', 'suspect_ms']
