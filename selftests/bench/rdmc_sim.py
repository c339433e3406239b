# SPDX-License-Identifier: GPL-2.0
"""Large objects to many nodes, simulated: the module's schedules over a network of flows.

Figures and sections are those of the RDMC paper (Behrens, Jha, Birman, Tremel: RDMC: A Reliable
RDMA Multicast for Large Objects, 2018); the numbers of its figure 8 are in the technical report.
"""

import json
import os
import subprocess

from lab import PROJECT, Error, Result, median, say

SIM = os.path.join(PROJECT, 'selftests', 'sim')
PROGRAM = os.path.join(PROJECT, 'build', 'sim', 'rdmc')

ABOUT = (
    'The schedules of ``kmod/core/schedule.c``, run as an engine runs them, over a simulated network; '
    '``Documentation/rdmc.rst`` says what the simulation does and leaves out. Where nothing else is said, '
    'objects are 256 blocks of 1 MiB and adapters carry 20 Gbit/s each way: those of Sierra, where the paper '
    'measured 512 nodes.')
# 62084 us for 257 steps, 60944 of them blocks on the network: table 1
OVERHEAD = 4.4
# "latencies as high as 20 microseconds"
JITTER = {'overhead': OVERHEAD, 'latency': '2:20'}
# "roughly 100 us", once in a transfer of 256 blocks to three nodes: figure 5
DELAYS = {**JITTER, 'delay': '100:0.0013'}
# "inconsistent bandwidths, which in the worst case were as low as 3 Gb/s"; what is not said is how
# often. 4.4 makes of 512 nodes the 6 Gb/s that were measured.
CONGESTED = {**DELAYS, 'path': '4.4:20'}
WORST = {**DELAYS, 'path': '3:20'}
SCENES = {'quiet': JITTER, 'congested': CONGESTED, 'worst': WORST}
READY = {
    'one in all': {},
    'two in all': {'ahead': 2},
    'two a peer': {'ahead': 2, 'each': True},
}
LINK = 20


class Simulator:
    """Runs the program; keeps what came of it for the record."""

    def __init__(self, lab):
        self.lab = lab
        done = subprocess.run(['make', '-s', '-C', SIM, 'rdmc'], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Error(f'make -C {SIM} rdmc:\n{done.stdout}')

    def runs(self, **options):
        words = []
        for name, value in options.items():
            words += [f'--{name}'] if value is True else [f'--{name}', str(value)]
        done = subprocess.run([PROGRAM, *words], text=True, check=False, timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            raise Error(f'rdmc {" ".join(words)}: {done.stderr}')
        found = [json.loads(line) for line in done.stdout.splitlines()]
        took = [r['seconds'] for r in found]
        self.lab.runs.append({'asked': options, 'runs': len(found), 'seconds': median(took),
                              'least': min(took), 'most': max(took),
                              'first_node': median([r['first'] for r in found]),
                              'between_racks': found[0]['between_racks']})
        return found

    def seconds(self, **options):
        """Median until the last node has it all."""
        return median([r['seconds'] for r in self.runs(**options)])


def ms(seconds):
    return round(1000 * seconds, 1)


def gbit(seconds, size=256 << 20):
    return round(8 * size / seconds / 1e9, 2)


def scale(sim, res, quick):
    """Figure 8: how long many copies take."""
    sizes = [2, 16, 512] if quick else [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
                                        384, 512, 768, 1024]
    runs = 1 if quick else 5
    copy = sim.seconds(nodes=2, **JITTER)
    took = {name: {n: sim.seconds(nodes=n, runs=runs, **scene) for n in sizes}
            for name, scene in SCENES.items()}
    sequential = {n: sim.seconds(nodes=n, algorithm='sequential', **JITTER)
                  for n in sizes if n <= 512}
    res.tables.append((
        'Figure 8: one object to all nodes, ms, and in copies',
        ['nodes', *(f'{n}, {unit}' for n in SCENES for unit in ('ms', 'copies')),
         'sequential, ms', 'copies'],
        [[n, *(f for name in SCENES
               for f in (ms(took[name][n]), round(took[name][n] / copy, 2))),
          *((ms(sequential[n]), round(sequential[n] / copy, 1)) if n in sequential else ('-', '-'))]
         for n in sizes]))
    res.plots.append(('Figure 8: 256 MiB to all nodes', 'nodes', 'seconds', {
        **{name: list(found.items()) for name, found in took.items()},
        'sequential, quiet': list(sequential.items()),
        'the paper, pipeline': [(512, 256 * 8 * 2**20 / 6e9)]}, True))
    ratio = {name: found[512] / copy for name, found in took.items()}
    res.keys |= {'sim512': round(ratio['congested'], 2), 'sim512_quiet': round(ratio['quiet'], 2),
                 'sim512_worst': round(ratio['worst'], 2),
                 'gbit512': gbit(took['congested'][512]),
                 'sequential512': round(sequential[512] / copy, 1)}
    res.paper.append(('512 nodes, in copies (figure 8)', '4', f'{ratio["congested"]:.2f}'))
    res.paper.append(('512 nodes, Gbit/s', '6 (*congested* is fitted to it)',
                      f'{gbit(took["congested"][512])}'))
    if not quick:
        grows = 100 * (took['congested'][512] / took['congested'][128] - 1)
        res.keys['grows128_512_pct'] = round(grows, 1)
        res.paper.append(('512 nodes over 128', '"almost the same"', f'{grows:.1f} % more'))
    return copy


def readiness(sim, res, copy, quick):
    """What nodes are ready for decides whether blocks get in each other's way."""
    scenes = {'no jitter': {'overhead': OVERHEAD}, **SCENES}
    took = {ready: {name: sim.seconds(nodes=512, runs=1 if quick else 5, **how, **scene)
                    for name, scene in scenes.items()} for ready, how in READY.items()}
    res.tables.append((
        'What a node is ready for: 512 nodes, in copies', ['ready for', *scenes],
        [[ready, *(round(s / copy, 2) for s in found.values())]
         for ready, found in took.items()]))
    res.keys['each512_quiet'] = round(took['two a peer']['quiet'] / copy, 2)


def delays(sim, res, quick):
    """Section 4.5, 1: one send is late."""
    undisturbed = sim.seconds(nodes=64)
    block = 8 * 2**20 / (LINK * 1e9)
    rows, worst = [], 0
    for part in (0.25, 1) if quick else (0.25, 0.5, 1, 2, 10):
        row = [part]
        for how in READY.values():
            found = [(r['seconds'] - undisturbed) / (part * block) for r in sim.runs(
                nodes=64, runs=20 if quick else 200, delay=f'{1e6 * part * block:.3f}:one', **how)]
            row += [round(median(found), 2), round(max(found), 2)]
            if not how:
                worst = max(worst, *found)
        rows.append(row)
    res.tables.append((
        'Section 4.5: 64 nodes, one send is late: what the object loses, in delays',
        ['delay, in blocks', *(f'{name}: {what}' for name in READY for what in ('median', 'most'))],
        rows))
    res.keys['delay_cost'] = round(worst, 3)
    res.paper.append(('a send that is late delays the object by', 'at most as much',
                      f'{worst:.3f} of it'))


def slow_link(sim, res, quick):
    """Section 4.5, 2: one link is slow."""
    nodes, dims = 64, 6
    full = {'pipeline': sim.seconds(nodes=nodes),
            'chain': sim.seconds(nodes=nodes, algorithm='chain')}
    parts = [1, 0.5, 0.1] if quick else [1, 0.9, 0.75, 0.5, 0.25, 0.1]
    links = ['0:1', '5:7'] if quick else ['0:1', '0:32', '1:3', '5:7', '31:63', '62:63']
    bound = {p: dims * p / (1 + (dims - 1) * p) for p in parts}
    found = {name: {p: min(full['pipeline'] / sim.seconds(nodes=nodes, slow=f'{link}:{LINK * p}', **how)
                           for link in links) for p in parts} for name, how in READY.items()}
    chain = {p: full['chain'] / sim.seconds(nodes=nodes, algorithm='chain', slow=f'5:6:{LINK * p}')
             for p in parts}
    res.tables.append((
        'Section 4.5: 64 nodes, one slow link: what is left of the rate',
        ["T'/T", "l T' / (T + (l - 1) T')", *READY, 'chain'],
        [[p, round(bound[p], 3), *(round(found[name][p], 3) for name in READY), round(chain[p], 3)]
         for p in parts]))
    ours = found[next(iter(READY))]
    res.plots.append(('Section 4.5: one slow link, 64 nodes', "T'/T", 'part of the rate', {
        'the formula': list(bound.items()), 'pipeline': list(ours.items()),
        'ready for two a peer': list(found['two a peer'].items()),
        'chain': list(chain.items())}, False))
    res.keys['slow_link_pct'] = round(100 * ours[0.5], 1)
    res.paper.append(('one link at half the rate, 64 nodes: left of the rate', 'at least 85.6 %',
                      f'{100 * ours[0.5]:.1f} %'))


def racks(sim, res, copy, quick):
    """Hybrid: racks whose links to the others are narrow."""
    nodes, rack = (64, 8) if quick else (512, 32)
    contenders = {
        'pipeline': {'scattered': True}, 'pipeline, ranks by rack': {},
        'hybrid': {'algorithm': 'hybrid', 'scattered': True},
        'chain, ranks by rack': {'algorithm': 'chain'},
    }
    ratios = [1, 4] if quick else [1, 2, 4, 8, 16]
    took = {name: {r: sim.seconds(nodes=nodes, racks=f'{rack}:{r}', overhead=OVERHEAD, **how) / copy
                   for r in ratios} for name, how in contenders.items()}
    res.tables.append((
        f'{nodes} nodes in racks of {rack}: in copies', ['adapters over link', *contenders],
        [[r, *(round(took[name][r], 2) for name in contenders)] for r in ratios]))
    res.plots.append((f'{nodes} nodes in racks of {rack}', 'rates of adapters over that of the link',
                      'copies', {name: list(found.items()) for name, found in took.items()}, False))
    res.keys['hybrid_gain4'] = round(took['pipeline'][4] / took['hybrid'][4], 2)


def algorithms(sim, res, quick):
    """Figure 4: Fractus, 100 Gbit/s."""
    kinds = ['sequential', 'tree', 'chain', 'pipeline']
    for size in (256, 8):
        res.tables.append((
            f'Figure 4: {size} MiB at 100 Gbit/s, ms', ['nodes', *kinds],
            [[n, *(round(1000 * sim.seconds(nodes=n, blocks=size, gbit=100, algorithm=kind,
                                            **JITTER), 2) for kind in kinds)]
             for n in ((4, 16) if quick else (2, 3, 4, 6, 8, 12, 16))]))


def rdmc_sim(lab):
    """No guests: a simulation."""
    res = Result('rdmc-sim', 'Large objects, simulated', ABOUT)
    sim = Simulator(lab)
    copy = scale(sim, res, lab.quick)
    for part in (readiness, racks):
        part(sim, res, copy, lab.quick)
        say(f'{part.__name__} done')
    for part in (delays, slow_link, algorithms):
        part(sim, res, lab.quick)
        say(f'{part.__name__} done')
    res.keys['runs'] = sum(r['runs'] for r in lab.runs)
    res.notes += [
        'A *copy* is the same object to one other node, on a quiet network. *Quiet*: each message takes 2 '
        f'to 20 us, each send costs its node {OVERHEAD} us (from the paper\'s table 1). *Congested*: besides, '
        'one send in 770 is 100 us late (its figure 5), and the path of each block carries between 4.4 and 20 '
        'Gbit/s. *Worst*: between 3, the worst that was seen, and 20. The paper does not say how often paths '
        'were how slow. 4.4 was chosen so that 512 nodes get the 6 Gbit/s that it measured, so that row is '
        'a fit; how the time grows with the nodes, and all the rest, is not.',
        'A node is ready for *one in all*: for the next block in the order of its steps, and for no other; or '
        'for the next *two in all*; or for the next *two a peer*, from every peer.',
        'A delay lasts for one send of one node, drawn anew in each run. Slow links are those between '
        'the root and a neighbour, and between others; the worst of them counts.']
    return res
