# SPDX-License-Identifier: GPL-2.0
"""One run of a soak: hosts, groups on some of them, faults at random, and what came of it.

All of it is drawn from the seed and happens in virtual time: the same seed is the same run.
"""

import collections
import heapq
import itertools
import os
import random
import re
import shlex
import signal

from groups import Group, Store, Violation
from vmlib import Cluster

SOON = 60               # virtual seconds for what has to happen when all is well
LOOK = 4                # of these, before somebody looks whether it can


class Run:
    """What is there, and what is wrong with it."""

    def __init__(self, seed, kernel, out=None, say=None):
        self.seed = seed
        self.draw = draw = random.Random(seed)
        self.say = say or (lambda text: None)
        self.nodes = draw.randint(3, 8)
        self.suspect = draw.choice([0.2, 0.5, 1.0])
        self.modparam = (f'suspect_ms={int(1000 * self.suspect)} '
                         f'doorbell={draw.choice(["polled", "completion"])}')
        self.cluster = Cluster(
            kernel=kernel, nodes=self.nodes, module=True, modparam=self.modparam, seed=seed,
            out=out, cost='slow', delay=draw.choice(['20us', '20us', '100us', '500us']),
            jitter=draw.choice(['0us', '10us', '100us']), loss=draw.choice(['0%', '0%', '0.01%']),
            timeout=20000, leaks=False)
        self.several = draw.random() < 0.7      # faults at a time
        self.groups = []
        self.given_up = 0               # of the groups, which could not go on
        self.events = []                # a heap of (time, number, what to do)
        self.numbers = itertools.count()
        self.watched = []               # (condition, what to do once it holds)
        self.at_suspicion = []          # what to do when a node is suspected next
        self.dead = set()
        self.paused = collections.Counter()
        self.away = set()               # hosts whose module is being taken out and put in again
        self.cuts = collections.Counter()
        self.faults = collections.Counter()

    def tell(self, what):
        self.say(f'{self.cluster.now():.6f}: {what}')

    # what may be done

    def address(self, host):
        return self.cluster.env(host)['SPINDLE_ADDR']

    def suspects(self, address, name):
        """The addresses of the nodes that a host says it suspects in a group."""
        host, = [h for h in range(self.nodes) if self.address(h) == address]
        sst = self.cluster.run(host, f'cat /sys/kernel/debug/spindle/{address}/{name}/sst',
                               timeout=SOON).stdout
        nodes = dict(re.findall(r'^node (\d+) (\S+)', sst, re.M))
        own = re.search(r'^view \d+ self (\d+)', sst, re.M)
        said = own and re.search(rf'^report {own[1]} suspects (0x\w+)', sst, re.M)
        return {nodes[rank] for rank in nodes if said and int(said[1], 16) >> int(rank) & 1}

    def alive(self):
        """Hosts that take commands."""
        return [h for h in range(self.nodes)
                if h not in self.dead and h not in self.away and not self.paused[h]]

    def later(self, seconds, what):
        heapq.heappush(self.events, (self.cluster.now() + seconds, next(self.numbers), what))

    def wait_for(self, condition, seconds=SOON):
        return self.cluster.wait_for(condition, seconds)

    def go_on_until(self, end):
        """Do what is due by then."""
        c = self.cluster
        while c.now() < end:
            until = min(end, self.events[0][0]) if self.events else end
            # what is left of a nanosecond is no time
            c.wait_for(lambda until=until: any(condition() for condition, _ in self.watched) or
                       self.events and self.events[0][0] < until, max(until - c.now(), 1e-6))
            for pair in [p for p in self.watched if p[0]()]:
                self.watched.remove(pair)
                pair[1]()
            while self.events and self.events[0][0] <= c.now():
                heapq.heappop(self.events)[2]()
            for group in self.groups:
                group.check_statuses()

    def start(self, group, host):
        """A program, as soon as the host can start one."""
        if host in self.dead:
            return
        if host in self.alive():
            group.start(host)
        else:
            self.later(0.1, lambda: self.start(group, host))

    def cut(self, pairs):
        for pair in pairs:
            self.cuts[pair] += 1
            if self.cuts[pair] == 1:
                self.cluster.link(*pair, cut=True, directed=True)

    def heal(self, pairs):
        for pair in pairs:
            self.cuts[pair] -= 1
            if not self.cuts[pair]:
                self.cluster.link(*pair, heal=True, directed=True)

    def kill(self, host):
        # a majority of the hosts stays, so that there is somebody to look at
        if 2 * (len(self.dead) + 1) >= self.nodes or host in self.dead:
            return False
        self.dead.add(host)
        self.cluster.kill(host)
        return True

    def pause(self, host, seconds):
        self.paused[host] += 1
        if self.paused[host] == 1:
            self.cluster.pause(host)
        self.later(seconds, lambda: self.resume(host))

    def resume(self, host):
        self.paused[host] -= 1
        if not self.paused[host] and host not in self.dead:
            self.cluster.resume(host)

    # faults; each returns whether it could be

    def any_host(self):
        """A host that can be treated badly; often the one that leads a group."""
        alive = self.alive() or [h for h in range(self.nodes) if h not in self.dead]
        leaders = [p.host for g in self.groups for p in g.running()[:1] if p.host in alive]
        return self.draw.choice(leaders if leaders and self.draw.random() < 0.5 else alive)

    def long_or_short(self):
        """Longer than a node may be silent, or not as long."""
        return self.suspect * self.draw.choice([self.draw.uniform(0.05, 0.6),
                                                self.draw.uniform(1.2, 3)])

    def fault_kill(self):
        return self.kill(self.any_host())

    def fault_kill_two(self):
        """At once, or the second while the first is found out about and put out of the view."""
        if not self.kill(self.any_host()):
            return False
        host, after = self.any_host(), self.draw.uniform(0, 0.001)
        if self.draw.random() < 0.3:
            self.kill(host)
        else:
            self.at_suspicion.append(lambda: self.later(after, lambda: self.kill(host)))
        return True

    def fault_pause(self):
        self.pause(self.any_host(), self.long_or_short())
        return True

    def cut_for_a_while(self, pairs):
        self.cut(pairs)
        self.later(self.long_or_short(), lambda: self.heal(pairs))
        return True

    def fault_cut_pair(self):
        a, b = self.draw.sample(range(self.nodes), 2)
        return self.cut_for_a_while([(a, b), (b, a)])

    def fault_cut_one_way(self):
        return self.cut_for_a_while([tuple(self.draw.sample(range(self.nodes), 2))])

    def fault_cut_off(self):
        host = self.any_host()
        others = [h for h in range(self.nodes) if h != host]
        return self.cut_for_a_while([(host, h) for h in others] + [(h, host) for h in others])

    def fault_halves(self):
        hosts = self.draw.sample(range(self.nodes), self.nodes)
        one, other = hosts[:self.nodes // 2], hosts[self.nodes // 2:]
        return self.cut_for_a_while([*itertools.product(one, other),
                                     *itertools.product(other, one)])

    def fault_lossy_wires(self):
        host, loss = self.any_host(), self.draw.uniform(0.1, 2)
        self.cluster.link(host, loss=f'{loss:.2f}%')
        self.later(self.long_or_short(), lambda: self.cluster.link(host, loss=0))
        return True

    def fault_slow_wires(self):
        host, delay = self.any_host(), self.draw.uniform(1, 20)
        self.cluster.link(host, delay=f'{delay:.2f}ms')
        self.later(self.long_or_short(), lambda: self.cluster.link(host, delay=0))
        return True

    def fault_connection(self):
        """It breaks, and is made again."""
        a, b = self.any_host(), self.draw.randrange(self.nodes)
        if a == b or a not in self.alive():
            return False
        where, peer = f'/sys/kernel/debug/spindle/{self.address(a)}', self.address(b)
        self.cluster.start(a, ['sh', '-c', f'[ ! -e {where} ] || {{ echo {peer} > {where}/cut; '
                               f'echo -{peer} > {where}/cut; }}'])
        return True

    def talkers(self):
        return [g for g in self.groups if not isinstance(g, Store)]

    def with_program(self, what, groups=None):
        there = [p for g in groups or self.groups for p in g.running() if p.host in self.alive()]
        if there:
            what(self.draw.choice(there))
        return bool(there)

    def fault_kill_program(self):
        """It is killed, and another one comes a little later."""
        def kill(program):
            program.signal(signal.SIGKILL)
            self.later(self.draw.uniform(0, 1),
                       lambda: self.start(program.group, self.draw.choice(program.group.hosts)))
        return self.with_program(kill)

    def fault_leave(self):
        """A program leaves in order, and comes again."""
        return self.with_program(lambda program: program.signal(signal.SIGUSR1), self.talkers())

    def fault_stop_program(self):
        """It does not read for a while."""
        def stop(program):
            program.signal(signal.SIGSTOP)
            self.later(self.long_or_short(), lambda: program.signal(signal.SIGCONT))
        return self.with_program(stop)

    def fault_roll(self):
        """Another program for each of a group, one after another, until none is left."""
        group = self.draw.choice(self.talkers())
        gap = self.draw.uniform(0.02, 0.3)
        for i, program in enumerate(group.running()):
            host = self.draw.choice(group.hosts)
            self.later(i * gap, lambda host=host: self.start(group, host))
            self.later((i + 0.5) * gap, lambda program=program: program.signal(signal.SIGUSR2))
        return True

    def fault_reload(self):
        """The module is taken out of a host, and put in again; its programs begin anew."""
        host = self.any_host()
        if host not in self.alive():
            return False
        there = [p for g in self.groups for p in g.running() if p.host == host]
        for p in there:
            p.signal(signal.SIGKILL)
        self.away.add(host)
        words = shlex.join(['insmod', self.cluster.guests[host].module, *self.modparam.split()])
        process = self.cluster.start(host, f'until rmmod spindle 2>/dev/null; do sleep 0.05; done; '
                                     f'exec {words}')
        def again():
            self.away.discard(host)
            if host in self.dead:
                return
            if process.status:
                raise Violation(f'host {host}: insmod: {process.stderr}')
            for p in there:
                self.start(p.group, host)
        self.watched.append((lambda: not process.running, again))
        return True

    # the run

    def hear(self, _process, _stream, _line):
        """A host suspects another one."""
        todo, self.at_suspicion = self.at_suspicion, []
        for what in todo:
            what()

    def begin(self):
        """Two or three groups, each on some of the hosts, with every program in."""
        draw = self.draw
        for host in range(self.nodes):
            self.cluster.start(host, ['grep', '--line-buffered', 'does not answer', '/dev/kmsg'],
                               on_line=self.hear)
        for i in range(draw.randint(2, 3)):
            hosts = draw.sample(range(self.nodes), draw.randint(3, self.nodes))
            # sometimes several programs of a group on a host
            hosts += draw.choices(hosts, k=draw.choice([0, 0, 1, 3]))
            self.groups.append(Group(self, f'g{i}', hosts))
        if draw.random() < 0.4:
            self.groups.append(Store(self, 'store', draw.sample(range(self.nodes), 3)))
        for group in self.groups:
            for host in group.hosts:
                group.start(host)
        self.must(lambda: all(g.whole() for g in self.groups), 'form')

    def look(self):
        """Keep what hosts say of their groups, for whoever looks for a cause."""
        for host in self.alive():
            said = self.cluster.run(host, 'cd /sys/kernel/debug/spindle && '
                                    'grep -s . */*/sst */*/activity */*/posts', timeout=SOON).stdout
            with open(os.path.join(self.cluster.out, f'look.{host}'), 'w', encoding='utf-8') as f:
                f.write(said)

    def must(self, condition, what):
        ok = self.wait_for(condition)
        for group in self.groups:
            group.check_statuses()
        if not ok:
            self.look()
            raise Violation(f'the groups do not {what}: ' +
                            ' // '.join(g.show() for g in self.groups))

    def some_fault(self):
        kind = self.draw.choice([name for name in dir(self) if name.startswith('fault_')])

        def happen():
            if self.alive() and getattr(self, kind)():
                self.faults[kind[6:].replace('_', ' ')] += 1
                self.tell(kind[6:].replace('_', ' '))
        return happen

    def suffer(self):
        """Faults at random times, of which the later ones find what the earlier ones have done.

        In some runs all has to be well between one and the next.
        """
        draw = self.draw
        if not self.several:
            for _ in range(draw.randint(2, 6)):
                self.later(draw.uniform(0, 0.1), self.some_fault())
                self.mend()
            return
        seconds = draw.uniform(1, 4)
        for _ in range(draw.randint(4, 14)):
            self.later(draw.uniform(0, seconds), self.some_fault())
        self.mend()

    def mend(self):
        """Wait for the end of all faults, and until programs have come together."""
        began = self.cluster.now()
        while self.events or self.watched:
            if self.cluster.now() > began + 10 * SOON:
                raise Violation('faults that do not end: a host, or its module, hangs')
            self.go_on_until(self.events[0][0] if self.events else self.cluster.now() + 0.1)
        self.tell('all is mended')
        self.settle()
        self.tell('all have come together')

    def settle(self):
        """Nothing is wrong any more: all programs that are left come together."""
        for _ in range(0, SOON, LOOK):
            self.go_on_until(self.cluster.now() + LOOK / 10)
            if self.wait_for(lambda: all(g.whole() for g in self.groups), LOOK):
                return
            for group in [g for g in self.groups if not g.whole()]:
                excuse = group.excuse()
                if excuse:
                    self.tell(f'group {group.name} is given up: {excuse}')
                    self.given_up += 1
                    group.give_up()
        self.must(lambda: all(g.whole() for g in self.groups), 'come together')

    def go(self):
        """All of it; how many messages there were, and virtual seconds."""
        with self.cluster as c:
            self.tell('booted')
            self.begin()
            self.tell('all programs are in')
            self.suffer()
            with open(os.path.join(c.out, 'store.end'), 'w', encoding='ascii') as f:
                f.writelines(f'{p.tag}\n' for g in self.groups if isinstance(g, Store)
                             for p in g.running())
            try:
                total = sum(group.end() for group in self.groups)
            except Violation:
                self.look()
                raise
            seconds = c.now()
        return total, seconds
