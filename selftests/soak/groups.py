# SPDX-License-Identifier: GPL-2.0
"""The groups of a soak, their programs, and what has to be so at their end."""

import itertools
import json
import os
import signal
import sys

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from order import Order, Violation, lives_of

MEMBER = os.path.join(PROJECT, 'build', 'selftests', 'soak_member')
REPLICA = os.path.join(PROJECT, 'selftests', 'soak', 'replica.py')


class Program:
    """A member, or a replica of the store, on a host."""

    def __init__(self, group, host, tag):
        self.group = group
        self.host = host
        self.tag = tag
        self.record = os.path.join(group.run.cluster.out, f'{group.name}.{tag}')
        self.receiver = False           # it has no lane
        self.killed = False             # by us, with -9
        self.leaves = False             # for good, without being killed
        self.inside = None              # (number, members) of the view that it told of last
        self.said = []                  # what else it has told
        self.process = group.run.cluster.start(host, group.words(self), on_line=self.hear)

    def __str__(self):
        return f'program {self.tag} of group {self.group.name} on host {self.host}'

    def hear(self, _process, stream, line):
        words = line.split()
        if stream == 'stdout' and words and words[0] == 'view':
            self.inside = tuple(map(int, words[1:]))
        elif words and words[0] in ('in', 'out'):
            self.inside = None
        self.said.append(line)

    @property
    def running(self):
        return self.process.running

    def signal(self, sig):
        if self.running:
            self.killed |= sig == signal.SIGKILL
            self.leaves |= sig in (signal.SIGUSR2, signal.SIGTERM)
            self.process.signal(sig)

    def check_status(self):
        """It has not ended by itself."""
        if self.running or self.killed or self.host in self.group.run.dead:
            return
        if self.process.status or not self.leaves:
            raise Violation(f'{self} ended with status {self.process.status}: '
                            f'{" / ".join(self.said[-5:])}')


class Group:
    """Programs that talk, and write down what they read."""

    def __init__(self, run, name, hosts):
        self.run = run
        self.name = name
        self.hosts = hosts
        self.programs = []
        draw = run.draw
        self.options = ['--group', name, '--max', draw.choice([100, 1000, 4000]),
                        '--window', draw.choice([8192, 65536])]
        self.gaps = draw.choice([(2000, 5000), (5000, 20000), (20000, 100000)])

    def words(self, program):
        draw = self.run.draw
        found = [MEMBER, *self.options, '--tag', program.tag, '--record', program.record,
                 '--gap', draw.randint(*self.gaps), '--burst', draw.choice([1, 1, 4, 16])]
        first = program.tag == 1
        found += ['--first'] if first else []
        found += ['--detached'] if draw.random() < 0.3 else []
        program.receiver = draw.random() < 0.1 and not first
        found += ['--receiver'] if program.receiver else []
        return found

    def start(self, host):
        self.programs.append(Program(self, host, len(self.programs) + 1))

    def running(self):
        return [p for p in self.programs if p.running]

    def check_statuses(self):
        for p in self.programs:
            p.check_status()

    def whole(self):
        """Are all programs in one view, which has nobody else?"""
        there = self.running()
        inside = {p.inside for p in there}
        return not there or len(inside) == 1 and (inside.pop() or (0, 0))[1] == len(there)

    def order(self):
        """The one order of all that was read."""
        lives = []
        for p in self.programs:
            if os.path.exists(p.record):
                lost = p.killed or p.host in self.run.dead
                lives += lives_of(p.record, p.tag, not lost)
        return Order(lives)

    def excuse(self):
        """Why the group cannot go on; None if it has to.

        It can with more than half of the hosts of its last view. A host of these is lost to it once
        it is dead, or no program runs there any more that was let in by then. Where faults met, it
        may also have failed there, or be in a part that suspects the others, for good: who saw to
        it that these are no majority was lost after that. If there was one fault at a time neither
        is an excuse.
        """
        order = self.order()
        members = order.views[order.last][1] if order.views else {}
        hosts = set(members.values())
        lives = {life.uid: life for life in order.lives if life.uid in members}
        there = set()
        for uid, life in lives.items():
            p = self.programs[life.tag - 1]
            failed = life.end not in (None, 'end')
            if p.running and p.host not in self.run.dead and \
                    (life.end is None or failed and not self.run.several):
                there.add(members[uid])
        if self.run.several:
            there = self.trusting(there)
        if 2 * len(there) <= len(hosts):
            return f'of the hosts of view {order.last}, {sorted(hosts)}, {sorted(there)} are left'
        return None

    def trusting(self, hosts):
        """As many of some hosts as there can be of which none suspects another."""
        suspects = {host: self.run.suspects(host, self.name) for host in hosts}
        for n in range(len(hosts), 0, -1):
            for some in itertools.combinations(sorted(hosts), n):
                if not any(suspects[host] & set(some) for host in some):
                    return set(some)
        return set()

    def end(self):
        """All that run read to one end; how many messages there were."""
        there = self.running()
        # a stream to which nobody sends has no end
        last = signal.SIGUSR2 if all(p.receiver for p in there) else signal.SIGTERM
        for p in there:
            p.signal(last)
        if not self.run.wait_for(lambda: not self.running()):
            raise Violation(f'group {self.name} does not end: {self.show()}')
        self.check_statuses()
        return self.order().total()

    def give_up(self):
        for p in self.running():
            p.signal(signal.SIGKILL)
        self.run.wait_for(lambda: not self.running())

    def show(self):
        return '; '.join(f'{p}: {p.inside}, {" / ".join(p.said[-3:])}' for p in self.running())


class Store(Group):
    """Replicas of examples/store.py, which is asked what it has at the end."""

    def words(self, program):
        others = [h for h in self.hosts if h != program.host]
        self.run.draw.shuffle(others)
        return ['/usr/bin/python3', '-B', REPLICA, program.tag, self.run.address(program.host),
                *(['-'] if program.tag == 1 else []),
                *map(self.run.address, [*others, program.host])]

    def whole(self):
        """Are all up to date?"""
        return all(p.inside for p in self.running())

    def excuse(self):
        """Its replicas do not write down views: whoever goes on must not be killed too often."""
        if any(p.killed for p in self.programs) or self.run.dead:
            return 'its replicas were killed'
        if self.run.several and not any(p.inside for p in self.programs):
            return 'it has failed for all its replicas'
        return None

    def end(self):
        """All replicas are alike; how many keys they have."""
        there = self.running()
        for p in there:
            p.signal(signal.SIGTERM)
        if not self.run.wait_for(lambda: not self.running()):
            # they do not say that they wait for a majority
            if not self.excuse():
                raise Violation(f'the store does not end: {self.show()}')
            self.run.given_up += 1
            self.give_up()
            return 0
        self.check_statuses()
        found = []
        for p in there:
            found.append(json.loads(next(line for line in reversed(p.said)
                                         if line.startswith('{'))))
            if found[-1] != found[0]:
                raise Violation(f'{p} has another store than {there[0]}: '
                                f'{sorted(set(found[0].items()) ^ set(found[-1].items()))[:10]}')
        return len(found[0]) if found else 0
