# SPDX-License-Identifier: GPL-2.0
"""The benchmark of failures: from a kill to the first message in the view that follows."""

import os
import random
import signal
import sys
import time

from lab import PROJECT, Error, Result, median, say

sys.path.insert(0, os.path.join(PROJECT, 'selftests', 'views'))

import drive    # pylint: disable=wrong-import-position

GUESTS = 4
# as fast as the group goes with so few messages of each on their way
LOAD = {'pace': -1, 'own_window': 4, 'max': 1000, 'deadline': 120, 'seconds': 3500,
        'rejoin': True, 'sync_ms': 0}
KINDS = {
    'program': 'a program is killed',
    'guest': 'a guest is killed',
    'leader': 'the guest of rank 0 is killed',
    'cut': 'a guest is cut off',
}
ABOUT = (
    'Members on several guests send as fast as they can, with few messages of each on the way. One fails; '
    'the time ends when the last of the survivors has read its first message in the view without '
    'it. Detection is the time until the first survivor has read that a node is suspected; a '
    'program that is killed is announced by its kernel, and nobody suspects anything. The rest is the '
    'protocol: from the first suspicion to the last survivor\'s first message.')
CLOCKS = (
    'Clocks: a killed program reads the clock of its guest just before; kills and cuts of guests are stamped '
    'with the host\'s clock just before. CLOCK_MONOTONIC of a user-mode guest is the host\'s but for a '
    'constant, which is bounded by questions and answers between both: the narrowest of many leaves an '
    'error of at most {:.2f} ms, in this run.')


class Failures:
    """A group on guests, one member after the other failing."""

    def __init__(self, lab, cluster):
        self.lab = lab
        self.c = cluster
        self.rng = random.Random(1)
        self.clocks = {}
        self.error = 0
        self.group = None

    def clock(self, node):
        """Of a guest since its boot."""
        guest = self.c.guests[node]
        known = self.clocks.get(node)
        if not known or known[0] is not guest:
            clock = drive.Clock(self.c, node)
            clock.ask(30)
            known = self.clocks[node] = (guest, clock)
            if clock.error < 0:
                raise Error(f'the clock of guest {node} does not run as the host\'s')
            self.error = max(self.error, clock.error)
        return known[1]

    def open(self, name, each=1, **load):
        """A group with so many members on each guest."""
        places = [(i, 0) for _ in range(each) for i in range(self.c.nodes)]
        self.group = drive.Group(self.c, name, self.rng, suspect_ms=0, logs=False, create={
            'members': len(places), 'max_members': 64}, **{**LOAD, **load})
        # what it is by default, where something is to be waited for
        self.group.suspect = 2000
        self.group.open(places)
        self.group.settle(60)
        self.group.wait_flow()
        for node in range(self.c.nodes):
            self.clock(node)

    def close(self):
        self.group.close('leave')

    def round_trip(self, seconds):
        """Median ns from sending to reading the own message, which every node has then."""
        time.sleep(seconds)
        self.group.bring_to_rest(60)
        found = median([int(p.rest[7]) for p in self.group.alive if int(p.rest[8])])
        self.group.go_on()
        self.group.wait_flow()
        return found

    # one failure of each kind; the time on the host's clock, and who failed

    def program(self):
        p = self.rng.choice(self.group.members())
        p.leaving = True
        p.tell(signal.SIGQUIT)
        self.group.wait(lambda: not p.running, 20, f'{p} is killed')
        return self.clock(p.node).host(p.dying), [p]

    def programs_of(self, node):
        return [p for p in self.group.members() if p.node == node]

    def some_node(self, leader):
        members = self.group.members()
        first = next(p.node for p in members if p.addr == members[0].view.addrs[0])
        return first if leader else self.rng.choice(
            [n for n in range(self.c.nodes) if n != first])

    def guest(self, leader=False):
        node = self.some_node(leader)
        gone = self.programs_of(node)
        began = time.monotonic_ns()
        self.group.kill_guest(node)
        return began, gone

    def leader(self):
        return self.guest(True)

    def cut(self):
        node = self.some_node(False)
        gone = self.programs_of(node)
        began = time.monotonic_ns()
        self.c.link(node, cut=True)
        return began, gone

    def mend(self, kind, gone):
        """As many members as before."""
        node = gone[0].node
        if kind == 'cut':
            self.c.link(node, heal=True)
        else:
            if kind in ('guest', 'leader'):
                self.c.restart(node)
            for _ in gone:
                self.group.add(node)
        self.group.settle(60)
        self.group.wait_flow()
        for p in list(self.group.programs):
            if not p.running:
                self.group.programs.remove(p)

    def one(self, kind):
        """A failure and what comes of it, in ms."""
        marks = {p: len(p.suspicions) for p in self.group.members()}
        uids = {p: p.view.uid for p in marks}
        began, gone = getattr(self, kind)()
        others = self.group.wait_without(gone, 30)
        self.group.wait_flow(others, 30)
        lost = {uids[p] for p in gone}
        firsts, detected = [], []
        for p in others:
            clock = self.clock(p.node)
            # the first one without all of them: more than one may fail with a guest
            view = next(v for v in p.views if v.ns and lost & set(v.gone) and
                        not lost & {u for u, _ in v.members})
            after = min((n for n in p.firsts if n >= view.number), default=None)
            firsts.append(clock.host(p.firsts[after]) - began)
            detected += [clock.host(ns) - began for ns, _, _ in p.suspicions[marks[p]:]
                         if ns <= view.ns]
        detection = max(0, min(detected)) if detected else 0
        self.mend(kind, gone)
        return {'kind': kind, 'ms': max(firsts) / 1e6, 'soonest_ms': min(firsts) / 1e6,
                'detection_ms': detection / 1e6, 'suspected': bool(detected),
                'protocol_ms': (max(firsts) - detection) / 1e6, 'survivors': len(others)}

    def series(self, kind, count):
        found = []
        began = time.monotonic()
        for i in range(count):
            self.lab.note_load()
            found.append(self.one(kind))
            if (i + 1) % 20 == 0 or i + 1 == count:
                say(f'{kind}, {i + 1} of {count}: {time.monotonic() - began:.0f} s')
        return found


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def figures(values):
    return [round(f, 2) for f in (min(values), percentile(values, 0.1), median(values),
                                  percentile(values, 0.9), percentile(values, 0.99), max(values))]


def failover(lab):
    """Kills, of each kind so many."""
    drive.build()
    count = lab.rounds or (3 if lab.quick else 100)
    res = Result('failover', 'From a failure to the next view', ABOUT)
    found, trips = {}, {}
    with lab.guests(nodes=GUESTS, mem='256M', timeout=20000, modparam='suspect_ms=1000') as c:
        f = Failures(lab, c)
        f.open('idle', pace=20, own_window=1)
        trips['idle'] = f.round_trip(2 if lab.quick else 10) / 1e6
        f.close()
        for kind in KINDS:
            f.open(kind, 2 if kind == 'program' else 1)
            trips[kind] = f.round_trip(2 if lab.quick else 10) / 1e6
            found[kind] = f.series(kind, count)
            f.close()
            c.check_logs()
        error = f.error / 1e6
    columns = ['', 'kills', 'min', '10 %', 'median', '90 %', '99 %', 'max']
    for title, key in (('From the failure to the last survivor\'s first message in the next view, ms', 'ms'),
                       ('Until the first survivor suspects, ms', 'detection_ms'),
                       ('The protocol: the first less the second, ms', 'protocol_ms')):
        res.tables.append((title, columns, [
            [KINDS[kind], len(runs), *figures([r[key] for r in runs])]
            for kind, runs in found.items()]))
    rows, ratios = [], []
    for kind, runs in found.items():
        mid = median([r['protocol_ms'] for r in runs])
        ratios += [r['protocol_ms'] / trips[kind] for r in runs]
        rows.append([KINDS[kind], round(mid, 2), round(trips[kind], 2), round(mid / trips[kind], 1),
                     round(mid / trips['idle'], 1)])
    res.tables.append((f'The protocol in group-wide round trips; one without load takes '
                       f'{trips["idle"]:.2f} ms',
                       ['', 'protocol, ms', 'round trip under that load, ms', 'of these',
                        'of those without load'], rows))
    for runs in found.values():
        lab.runs += [{k: round(v, 3) if isinstance(v, float) else v for k, v in r.items()}
                     for r in runs]
    res.keys = {
        **{f'{kind}_ms': round(median([r['ms'] for r in runs]), 2)
           for kind, runs in found.items()},
        'protocol_rtts': round(median(ratios), 1),
        'protocol_idle_rtts': round(median([r['protocol_ms'] / trips['idle']
                                            for runs in found.values() for r in runs]), 1),
        'detection_ms': round(median([r['detection_ms'] for runs in found.values() for r in runs
                                      if r['kind'] != 'program']), 2),
        'program_suspicions': sum(r['suspected'] for r in found['program']),
        'kills': sum(map(len, found.values())), 'guests': GUESTS,
    }
    for title, key in (('Failure to the first message of the next view', 'ms'),
                       ('Protocol alone', 'protocol_ms')):
        # no y: a histogram
        res.plots.append((title, 'ms', 'failures', {
            kind: [(r[key], None) for r in runs] for kind, runs in found.items()}, True))
    res.notes += [
        CLOCKS.format(error),
        'A group-wide round trip is the median time from the call that sends a message until its '
        'sender has read it from the order, which is after every node has received it; it was '
        'measured in the same groups, before the first failure of each kind.']
    return res
