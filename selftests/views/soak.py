# SPDX-License-Identifier: GPL-2.0
"""A series of random faults under load, drawn from a seed; see scripts/soak --help."""

import argparse
import os
import random
import shutil
import signal
import sys
import time

import drive
from drive import Cluster, Error, Group, GuestDied, KernelComplaint, Timeout, Wrong

KEEP = os.path.join(drive.PROJECT, 'build', 'soak')
# the last episode begins while there is time left, and has so much for itself
EPISODE_SECONDS = 240
MOST_KEPT = 10


def say(text):
    print(f'soak: {text}', flush=True)


class Series:
    """Cluster after cluster, episode after episode, until the time is up."""

    def __init__(self, args):
        self.args = args
        self.rng = random.Random(args.seed)
        self.start = time.monotonic()
        self.end = self.start + 60 * args.minutes
        self.faults = {}
        self.violations = 0
        self.episodes = 0
        self.messages = 0
        self.deliveries = 0
        self.views = 0
        self.unprovoked = 0
        self.kept = 0

    def left(self):
        return self.end - time.monotonic()

    def fault(self, name):
        self.faults[name] = self.faults.get(name, 0) + 1

    def violate(self, text, cluster=None):
        self.violations += 1
        print(f'soak: VIOLATION: {text}', flush=True)
        if cluster and cluster.dir and self.kept < MOST_KEPT:
            self.kept += 1
            where = os.path.join(KEEP, f'{self.args.seed}-{self.episodes}')
            os.makedirs(where, exist_ok=True)
            for guest in cluster.guests:
                shutil.copy(guest.log, where)
            for name in os.listdir(cluster.out):
                shutil.copy(os.path.join(cluster.out, name), where)
            say(f'logs are kept in {os.path.relpath(where)}')

    def run(self):
        kinds = {'guests': guests_series, 'nodes': nodes_series}
        names = self.args.only or list(kinds)
        while self.left() > 0 and self.violations < self.args.most:
            # in turns, so that a short run has both
            name = names.pop(0)
            names.append(name)
            try:
                kinds[name](self)
            except KernelComplaint as e:
                self.violate(str(e))
            except Error as e:
                self.violate(f'{name}: {e}')
        shutil.rmtree(KEEP, ignore_errors=True) if not self.kept else None
        minutes = (time.monotonic() - self.start) / 60
        say(f'{self.episodes} episodes, {self.views} views, {self.messages} messages, '
            f'{self.deliveries} deliveries, {self.unprovoked} evictions without a fault; faults: '
            + ', '.join(f'{n} {k}' for k, n in sorted(self.faults.items())))
        print(f'soak: {minutes:.1f} minutes, {sum(self.faults.values())} faults, '
              f'{self.violations} violations', flush=True)
        return 1 if self.violations else 0

    def cluster(self, **kwargs):
        doorbell = self.rng.choice(['polled', 'completion'])
        return Cluster(kernel=self.args.kernel, modparam=f'doorbell={doorbell}',
                       timeout=10 * EPISODE_SECONDS, module=True, **kwargs)

    def episode(self, cluster, play):
        """One group's life; true when the cluster can be used again."""
        self.episodes += 1
        seed = self.rng.getrandbits(32)
        group = Group(cluster, f'soak{self.episodes}', random.Random(seed))
        began = time.monotonic()
        found = []
        try:
            play(self, group)
            group.bring_to_rest()
            group.close()
            clean = True
        except (Wrong, Timeout, GuestDied) as e:
            found.append(str(e))
            clean = False
        try:
            group.stop()
            cluster.check_logs()
        except KernelComplaint as e:
            found.append(str(e))
            clean = False
        except Error as e:
            found.append(f'{group.name}: {e}')
            clean = False
        if not clean and group.rested is None:
            group.alive = []
        res = group.verdict()
        found += [f'{group.name}: {text}' for text in res.violations]
        for text in found:
            self.violate(text, cluster)
        self.messages += res.messages
        self.deliveries += res.deliveries
        self.views += res.views
        say(f'{time.monotonic() - self.start:.0f} s: {group.name} on {cluster.nodes} guest'
            f'{"s" * (cluster.nodes > 1)}, seed {seed}, {time.monotonic() - began:.1f} s: {res}')
        if clean:
            for p in group.programs:
                if os.path.exists(p.log):
                    os.unlink(p.log)
        return clean


def load_of(rng, slow, members):
    """How the programs of one group send."""
    pace = rng.choice([20, 100, 300, -1])
    return {
        # what one guest's processor, and the host's, can bear
        'pace': pace if pace < 0 else max(5, pace // slow * 4 // max(4, members)),
        'own_window': rng.choice([4, 16, 64]),
        'max': rng.choice([64, 500, 4000]),
        'large': rng.choice([0, 20000, 200000]),
        'rejoin': True,
        'deadline': 60 * slow,
        'seconds': EPISODE_SECONDS,
    }


def group_of(rng):
    """What the group is made with."""
    return {'window': rng.choice([16384, 65536, 262144]), 'depth': rng.choice([64, 256]),
            'max_members': 64}


# (a) several guests

class Struck:
    """A fault that has not been undone."""

    def __init__(self, kind, nodes, undo, until):
        self.kind = kind
        self.nodes = set(nodes)
        self.undo = undo
        self.until = until


class Field:
    """Guests, a group on them, and what is broken at the moment."""

    def __init__(self, series, group):
        self.series = series
        self.g = group
        self.c = group.c
        self.rng = group.rng
        self.struck = []
        self.hit = set()                # programs that a fault explains the end of

    def node_of(self, addr):
        return next(i for i in range(self.c.nodes) if addr in self.g.addresses(i))

    def down(self):
        return set().union(*(s.nodes for s in self.struck))

    def may_strike(self, nodes):
        """Does the group go on without these? By the rule of the majority, and cautiously."""
        down = self.down() | set(nodes)
        views = [p.view for p in self.g.members() if p.node not in down]
        views = [v for v in views if v]
        if not views:
            return False
        view = max(views, key=lambda v: v.number)
        inside = [self.node_of(a) for a in view.addrs]
        # those on their way in may be in the next one
        coming = {p.node for p in self.g.expected()} - set(inside)
        size = len(inside) + len(coming)
        well = [n for n in inside if n not in down]
        return 2 * len(well) > size or \
            2 * len(well) == size and not coming and inside[0] in well

    def strike(self):
        """One fault, if there is one that leaves a majority; true when there was."""
        kinds = [self.kill_guest, self.pause_short, self.pause_long, self.cut, self.cut_pair,
                 self.kill_program, self.leave_program, self.roll]
        weights = [3, 2, 3, 3, 1, 3, 2, 1]
        for kind in self.rng.choices(kinds, weights, k=8):
            nodes = [i for i in range(self.c.nodes) if i not in self.down()]
            if nodes and kind(self.rng.choice(nodes)):
                self.series.fault(kind.__name__)
                return True
        return False

    def add(self, kind, nodes, undo, seconds):
        for p in self.g.programs:
            if p.node in nodes:
                self.hit.add(p)
        self.struck.append(Struck(kind, nodes, undo, time.monotonic() + seconds))

    def programs_on(self, node):
        return [p for p in self.g.expected() if p.node == node]

    def replace(self, node, count):
        for _ in range(count):
            self.g.add(node)

    def kill_guest(self, node):
        if not self.may_strike([node]):
            return False
        count = len(self.programs_on(node))
        self.g.kill_guest(node)

        def undo():
            self.c.restart(node)
            self.replace(node, count)
        self.add('kill_guest', [node], undo, self.rng.uniform(0, 4) * self.g.suspect / 1000)
        return True

    def pause(self, node, seconds):
        if not self.may_strike([node]):
            return False
        self.c.pause(node)
        self.add('pause', [node], lambda: self.c.resume(node), seconds)
        return True

    def pause_short(self, node):
        return self.pause(node, self.rng.uniform(0.1, 0.6) * self.g.suspect / 1000)

    def pause_long(self, node):
        return self.pause(node, self.rng.uniform(1, 4) * self.g.suspect / 1000)

    def cut(self, node):
        if not self.may_strike([node]):
            return False
        self.c.link(node, cut=True)
        self.add('cut', [node], lambda: self.c.link(node, heal=True),
                 self.rng.uniform(0.1, 4) * self.g.suspect / 1000)
        return True

    def cut_pair(self, node):
        """Both still reach the rest: one of them goes."""
        others = [i for i in range(self.c.nodes) if i != node and i not in self.down()]
        other = self.rng.choice(others) if others else None
        if other is None or not self.may_strike([node, other]):
            return False
        self.c.link(node, other, cut=True)
        self.add('cut_pair', [node, other], lambda: self.c.link(node, other, heal=True),
                 self.rng.uniform(0.1, 4) * self.g.suspect / 1000)
        return True

    def kill_program(self, node):
        here = [p for p in self.programs_on(node) if p.view]
        if not here or len(self.g.members()) < 2:
            return False
        p = self.rng.choice(here)
        self.g.kill_program(p)
        self.struck.append(Struck('kill_program', [], lambda: self.replace(node, 1),
                                  time.monotonic() + self.rng.uniform(0, 1)))
        return True

    def leave_program(self, node):
        here = [p for p in self.programs_on(node) if p.view]
        if not here or len(self.g.members()) < 2:
            return False
        p = self.rng.choice(here)
        self.g.leave(p, self.rng.choice([signal.SIGTERM, signal.SIGINT]))
        self.struck.append(Struck('leave', [], lambda: self.replace(node, 1),
                                  time.monotonic() + self.rng.uniform(0, 1)))
        return True

    def roll(self, _node):
        """Members leave and others come in their place, one after another."""
        if self.struck:
            return False
        for p in self.g.members():
            fresh = self.g.add(p.node)
            self.g.wait(lambda fresh=fresh: fresh.view, 20, f'{fresh} comes in')
            self.g.leave(p)
            self.g.wait(lambda p=p: not p.running, 15, f'{p} leaves')
        return True

    def mend(self, all_of_them=False):
        """Undo what is due."""
        for s in list(self.struck):
            if all_of_them or time.monotonic() >= s.until:
                self.struck.remove(s)
                s.undo()

    def let_go(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.mend()
            time.sleep(0.02)

    def unprovoked(self):
        """Members that were put out though nothing was done to their guest."""
        return sum(len(p.ends) for p in self.g.programs if p.ends and p not in self.hit and
                   p.ends[0][1] != '0')


def play_guests(series, group):
    rng, c = group.rng, group.c
    places = [(i, 0) for i in range(c.nodes)]
    if rng.random() < 0.3:
        places += [(rng.randrange(c.nodes), 0)]
    group.options.update(load_of(rng, group.slow, len(places)))
    group.create.update(group_of(rng), members=rng.choice([1, len(places)]))
    group.open(places)
    group.settle(30)
    group.wait_flow()
    field = Field(series, group)
    faults = rng.randint(2, 6)
    try:
        for _ in range(faults):
            if not field.strike():
                field.let_go(0.3)
                continue
            # now and then the next one comes before anybody knows of this one
            field.let_go(rng.choice([0, 0.1, 0.5, 1.5]) * group.slow * rng.uniform(0.2, 2))
            if rng.random() < 0.4:
                field.mend(True)
                group.settle(30)
                group.wait_flow()
    finally:
        field.mend(True)
    group.settle(30)
    group.wait_flow()
    time.sleep(0.5)
    series.unprovoked += field.unprovoked()


def guests_series(series):
    nodes = series.args.guests or series.rng.choice([3, 3, 4, 5])
    with series.cluster(nodes=nodes, mem='256M' if series.args.kernel == 'uml' else '512M') as c:
        for _ in range(series.rng.randint(2, 4)):
            if not series.episode(c, play_guests):
                # what is left of it is not trusted
                break
            if series.left() < 0 or series.violations >= series.args.most:
                break


# (b) many nodes in one guest

def play_nodes(series, group):
    rng = group.rng
    addrs = len(group.addresses(0))
    first = rng.randint(1, 6)
    group.options.update(load_of(rng, group.slow, addrs))
    if group.options['pace'] < 0:
        group.options['own_window'] = 2
    group.create.update(group_of(rng), members=rng.choice([1, first]))
    # sixteen nodes share a processor: what takes long is not dead
    group.create['suspect_ms'] = group.suspect = 4 * group.suspect
    group.open([(0, i) for i in range(first)])
    group.settle(30)
    stopped = []
    for _ in range(rng.randint(10, 40)):
        busy = {p.addr for p in group.expected()}
        free = [i for i, a in enumerate(group.addresses(0)) if a not in busy]
        inside = group.members()
        what = rng.choices(['join', 'leave', 'exit', 'kill', 'stop'], [6, 2, 1, 2, 1])[0]
        if what == 'join' and (free or rng.random() < 0.3):
            for _ in range(rng.choice([1, 1, 2, 5])):
                if free:
                    group.add(0, free.pop(rng.randrange(len(free))))
        elif what == 'stop' and inside:
            p = rng.choice(inside)
            p.tell(signal.SIGSTOP)
            stopped.append((time.monotonic() + rng.uniform(0, 0.5) * group.slow, p))
        elif what in ('leave', 'exit', 'kill') and len(inside) > 1:
            group.leave(rng.choice(inside), {'leave': signal.SIGTERM, 'exit': signal.SIGINT,
                                             'kill': signal.SIGKILL}[what])
        else:
            continue
        series.fault(f'node_{what}')
        time.sleep(rng.choice([0, 0, 0.02, 0.1, 0.4]) * group.slow)
        for when, p in list(stopped):
            if time.monotonic() > when:
                stopped.remove((when, p))
                p.tell(signal.SIGCONT)
        if len(group.expected()) > 2 * addrs:
            group.settle(30)
    for _, p in stopped:
        p.tell(signal.SIGCONT)
    group.settle(40)
    group.wait_flow()


def nodes_series(series):
    with series.cluster(addrs=16, mem='1536M') as c:
        for _ in range(series.rng.randint(1, 3)):
            if not series.episode(c, play_nodes):
                break
            if series.left() < 0 or series.violations >= series.args.most:
                break


def parser():
    top = argparse.ArgumentParser(
        prog='scripts/soak', description='Random faults under load in guests, judged message by '
        'message. (guests) 3 to 5 guests: SIGKILL of a guest, pauses, cuts, programs killed, '
        'members rolling out and in. (nodes) 16 nodes in one guest with joins and leaves. The last '
        'line is "soak: M minutes, K faults, V violations"; the status is 0 when V is.')
    top.add_argument('--minutes', type=float, default=5, metavar='M',
                     help='begin no episode after that time (default: 5)')
    top.add_argument('--seed', type=int, metavar='S', help='draw everything from this one')
    top.add_argument('--guests', type=int, choices=range(3, 9), metavar='N',
                     help='that many guests (default: 3 to 5, drawn)')
    top.add_argument('--kernel', default='uml', choices=['uml', 'uml-debug', 'debian-6.1',
                                                         'debian-6.12'])
    top.add_argument('--only', action='append', choices=['guests', 'nodes'],
                     help='this kind of episode, can be repeated')
    top.add_argument('--most', type=int, default=10, metavar='V',
                     help='end after so many violations (default: 10)')
    return top


def main(argv=None):
    args = parser().parse_args(argv)
    if args.seed is None:
        args.seed = random.SystemRandom().getrandbits(32)
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.default_int_handler)
    say(f'seed {args.seed}, kernel {args.kernel}, {args.minutes:g} minutes')
    try:
        drive.build()
        return Series(args).run()
    except KeyboardInterrupt:
        say('interrupted')
        return 130
    except Error as e:
        print(f'soak: {e}', file=sys.stderr)
        return 1
