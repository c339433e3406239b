# SPDX-License-Identifier: GPL-2.0
"""Large objects between guests whose cables are the limit, beside MPI, TCP and plain writes.

Figures, tables and sections are those of the RDMC paper (Behrens, Jha, Birman, Tremel: RDMC: A
Reliable RDMA Multicast for Large Objects, 2018).
"""

import itertools
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from lab import (KB, MPI, OBJECTS, PROJECT, TCP, Error, Result, cpu_seconds, median, say, spread)

sys.path.insert(0, os.path.join(PROJECT, 'selftests', 'views'))

import drive    # pylint: disable=wrong-import-position

MB = 1 << 20
RUN_SECONDS = 270
MBIT = 50
# full queues of a slow cable take longer than the usual time for an answer
PARAMETERS = 'ack_timeout=19'
MEMORY = '384M'
FIRST = 256 * KB                # to make connections
MPI_PACKAGES = ['mpich', 'libmpich-dev']
# enum spindle_algorithm
ALGORITHMS = {'auto': 0, 'sequential': 1, 'chain': 2, 'tree': 3, 'pipeline': 4}


def build_mpi():
    """False: there is no MPI, and it cannot be installed."""
    if not shutil.which('mpicc.mpich'):
        say(f'installing {" ".join(MPI_PACKAGES)}')
        done = subprocess.run(
            ['apt-get', '-q', '-y', 'install', '--no-install-recommends', *MPI_PACKAGES],
            env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'}, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            say(f'no MPI: {done.stdout[-500:]}')
            return False
    source = os.path.join(PROJECT, 'selftests', 'bench', 'mpi_bcast.c')
    if not os.path.exists(MPI) or os.path.getmtime(MPI) < os.path.getmtime(source):
        subprocess.run(['mpicc.mpich', '-O2', '-Wall', '-o', MPI, source], check=True)
    return True


class Sent:
    """One object: who has it when, in ns of the host's clock."""

    def __init__(self):
        self.len = 0
        self.call = None                # the call that sends it begins, ends
        self.sent = None
        self.there = {}                 # by guest: poll() says so
        self.read = {}                  # it has been read
        self.moved = {}                 # what the kernel says

    @property
    def seconds(self):
        """From the call until the last guest has read it."""
        return (max(self.read.values()) - self.call) / 1e9

    @property
    def skew(self):
        """Between the first and the last receiver that has all of it."""
        here = [m['here'] for m in self.moved.values() if m['here'] != m['begun']]
        return (max(here) - min(here)) / 1e9 if here else 0


class Throttled:
    """Guests with cables of a rate, their clocks, and what runs on them."""

    def __init__(self, lab, cluster, mbit):
        self.lab = lab
        self.c = cluster
        self.mbit = mbit
        self.names = 0
        for i in range(cluster.nodes):
            cluster.link(i, rate=f'{mbit}mbit')
        self.addrs = [cluster.env(i)['SPINDLE_ADDR'] for i in range(cluster.nodes)]
        self.clocks = [drive.Clock(cluster, i) for i in range(cluster.nodes)]
        for clock in self.clocks:
            clock.ask(30)
            if clock.error < 0:
                raise Error('the clock of a guest does not run as the host\'s')

    @property
    def clock_error_ms(self):
        return max(clock.error for clock in self.clocks) / 1e6

    def objects(self, groups, sends, flight=1):
        """Send objects in groups.

        groups: [{'nodes': [the first is the sender], 'block': 0, 'flags': 0}]; sends: [(group,
        algorithm, bytes)]. Each sender has so many under way at once. [[Sent] of each group]
        """
        self.names += 1
        self.lab.note_load()
        most = max(size for _, _, size in sends)
        found = [[] for _ in groups]
        processes = []
        for node in range(self.c.nodes):
            mine = [i for i, g in enumerate(groups) if node in g['nodes']]
            if not mine:
                continue
            words = [OBJECTS, self.addrs[node]]
            for i in mine:
                g = groups[i]
                words.append(f'o{self.names}.{i},{self.addrs[g["nodes"][0]]},{len(g["nodes"])},'
                             f'{g.get("block", 0)},{g.get("flags", 0)},{most}')
            words += ['--', flight]
            words += [f'{mine.index(i)},{ALGORITHMS[algorithm]},{size}'
                      for i, algorithm, size in sends if groups[i]['nodes'][0] == node]
            processes.append((self.c.start(node, words), node, mine))
        for p, _, _ in processes:
            if not p.wait_for(lambda p=p: 'ready' in p.stdout, 90):
                raise Error('; '.join(f'objects on guest {node}: status {q.status}: {q.stderr}'
                                      for q, node, _ in processes))
        for p, _, _ in processes:
            p.signal(signal.SIGUSR1)
        for p, node, mine in processes:
            if p.wait(RUN_SECONDS + 20):
                raise Error(f'objects on guest {node}: status {p.status}: {p.stderr}')
            self.hear(p.stdout, node, [found[i] for i in mine])
        return found

    def hear(self, text, node, groups):
        """Fill in what one program printed."""
        host = self.clocks[node].host
        for line in text.splitlines():
            what, *words = line.split()
            if what not in ('sent', 'read', 'moved'):
                continue
            sent = groups[int(words[0])]
            nr = int(words[1])
            while len(sent) <= nr:
                sent.append(Sent())
            s = sent[nr]
            if what == 'sent':
                s.len = int(words[2])
                s.call, s.sent = host(int(words[3])), host(int(words[4]))
            elif what == 'read':
                s.there[node], s.read[node] = host(int(words[3])), host(int(words[4]))
            else:
                at = {k[:-3]: int(v) for k, v in zip(words, words[1:]) if k.endswith('_ns')}
                s.moved[node] = {k: host(v) if v else None for k, v in at.items()}
                s.moved[node]['blocks'] = int(words[words.index('blocks') + 1])

    # others over the same cables; the seconds of each time, until the last has it

    def spans(self, root, lines):
        """From (guest, 'bcast NR RANK BEGIN END') of all; a 0 is no time."""
        begun, ended = {}, {}
        for node, line in lines:
            what, *words = line.split()
            if what != 'bcast':
                continue
            nr, _, begin, end = map(int, words)
            host = self.clocks[node].host
            if node == root and begin:
                begun[nr] = host(begin)
            if end:
                ended[nr] = max(ended.get(nr, 0), host(end))
        if not begun or begun.keys() != ended.keys():
            raise Error('some said nothing')
        return [(ended[nr] - begun[nr]) / 1e9 for nr in sorted(begun)]

    def tcp(self, nodes, size, times):
        """One copy to each receiver, all at once."""
        self.lab.note_load()
        self.lab.port += 1
        serving = [self.c.start(i, [TCP, 'serve', self.lab.port, size, times]) for i in nodes[1:]]
        for p in serving:
            p.wait_output('ready', 30)
        sender = self.c.start(nodes[0], [TCP, 'send', self.lab.port, size, times,
                                         *(self.addrs[i] for i in nodes[1:])])
        lines = []
        for p in [sender, *serving]:
            if p.wait(RUN_SECONDS + 20):
                raise Error(f'tcp_fan on guest {p.node}: status {p.status}: {p.stderr}')
            lines += [(p.node, line) for line in p.stdout.splitlines()]
        return self.spans(nodes[0], lines)

    def mpi(self, nodes, size, times, **more):
        """MPI_Bcast. Its launcher says what to run where, and that is done here."""
        self.lab.note_load()
        first = self.addrs[nodes[0]]
        env = {'UCX_TLS': 'tcp,self', 'UCX_NET_DEVICES': 'eth0', 'HOME': '/tmp', **more}
        manager = self.c.start(nodes[0], [
            'mpiexec.hydra', '-launcher', 'manual', '-hosts', ','.join(self.addrs[i] for i in nodes),
            '-localhost', first, '-prepend-rank', '-n', len(nodes), '-ppn', 1, MPI, size, times],
            env=env)
        manager.wait_output('HYDRA_LAUNCH_END', 30)
        words = [line.split()[1:] for line in manager.stdout.splitlines()
                 if line.startswith('HYDRA_LAUNCH:')]
        proxies = []
        for node, argv in zip(nodes, words):
            at = argv.index('--control-port') + 1
            argv[at] = f'{first}:{argv[at].rpartition(":")[2]}'
            proxies.append(self.c.start(node, argv, env=env))
        # it does not end by itself with a launcher that is no program
        whole = manager.wait_for(
            lambda: manager.stdout.count(' bcast ') == len(nodes) * times, RUN_SECONDS, 'be over')
        for p in [manager, *proxies]:
            p.signal(signal.SIGKILL)
        if not whole:
            raise Error(f'mpiexec: {manager.output[-2000:]}'
                        f'{"".join(p.output for p in proxies)[-2000:]}')
        # it speaks for all of them
        lines = []
        for line in manager.stdout.splitlines():
            rank, _, rest = line.partition('] ')
            if rest:
                lines.append((nodes[int(rank[1:])], rest))
        return self.spans(nodes[0], lines)

    def writes(self, size):
        """Seconds of one copy to one other node, by RDMA writes alone."""
        self.lab.note_load()
        pair = self.lab.raw_pair(self.c, 1, 0, 'bw', 128 * KB, 3, 16)
        return size / self.lab.raw_result(pair)['bytes_per_second']

    def cpu(self):
        return sum(cpu_seconds(g.pid) for g in self.c.guests)


def note(lab, sent, **asked):
    """For the record."""
    lab.runs.append({'asked': asked, 'seconds': sent if isinstance(sent, float) else sent.seconds})


# figure 4, table 1, and what there is beside it

ABOUT = (
    'Each guest has one node, and a cable that carries so little that it is the limit: a full-duplex one, by a '
    'switch that keeps frames back and drops none. Times are from the call that sends an object, '
    'out of its own pages, until the last program has read it from its socket, with the copy out of '
    'it. Groups are ordered ones: nobody reads an object before every node has it. A *copy* is the same object '
    'written to one other node by RDMA writes alone, without any copying. MPI is MPICH, which came with the '
    'distribution, over TCP; the fan-out is one TCP stream to each receiver, all at once.')
KINDS = ['pipeline', 'chain', 'tree', 'sequential']


def rdmc(lab):
    res = Result('rdmc', 'Large objects: algorithms, and others', ABOUT)
    sizes = [2, 4] if lab.quick else [2, 3, 4, 6, 8]
    size = 4 * MB if lab.quick else 8 * MB
    rounds = lab.rounds or (2 if lab.quick else 3)
    with_mpi = build_mpi()
    drive.build()
    names = [*KINDS, *(['MPI_Bcast'] if with_mpi else []), 'TCP fan-out']
    took = {name: {} for name in names}
    with lab.guests(nodes=max(sizes), mem=MEMORY, modparam=PARAMETERS) as c:
        t = Throttled(lab, c, MBIT)
        copy = median([t.writes(size) for _ in range(2 if lab.quick else 3)])
        for n in sizes:
            nodes = list(range(n))
            began, cpu = time.monotonic(), t.cpu()
            found = t.objects([{'nodes': nodes}], [(0, k, FIRST) for k in KINDS] +
                              [(0, k, size) for k in KINDS * rounds])[0][len(KINDS):]
            load = (t.cpu() - cpu) / (time.monotonic() - began)
            for kind, sent in zip(KINDS * rounds, found):
                took[kind].setdefault(n, []).append(sent.seconds)
                note(lab, sent, members=n, algorithm=kind, size=size)
            if with_mpi:
                took['MPI_Bcast'][n] = t.mpi(nodes, size, rounds)
            took['TCP fan-out'][n] = t.tcp(nodes, size, min(rounds, 2))
            say(f'{n} members: ' + ', '.join(
                f'{name} {median(took[name][n]) / copy:.2f}' for name in names) +
                f' copies, {load:.2f} processors')
        clocks = t.clock_error_ms
    mid = {name: {n: median(v) for n, v in by.items()} for name, by in took.items()}
    label = f'{size // MB} MiB, cables of {MBIT} Mbit/s'
    res.tables.append((f'Figure 4: {label}, in copies of {copy:.2f} s', ['members', *names], [
        [n, *(round(mid[name][n] / copy, 3) for name in names)] for n in sizes]))
    res.plots.append((f'Figure 4: {label}', 'members', 'seconds', {
        name: list(mid[name].items()) for name in names}, False))
    large = [n for n in sizes if n >= 4]
    res.keys['vs_best'] = round(max(
        mid['pipeline'][n] / min(mid[k][n] for k in KINDS[1:]) for n in large), 3)
    if with_mpi:
        res.keys['vs_mpi'] = round(max(mid['pipeline'][n] / mid['MPI_Bcast'][n]
                                       for n in sizes if n > 2), 3)
        gain = [mid['MPI_Bcast'][n] / mid['pipeline'][n] for n in sizes if n > 2]
        res.paper.append(('MPI_Bcast over the pipeline, 3 members and more', '1.03 to 3 times',
                          f'{min(gain):.2f} to {max(gain):.2f} times'))
    res.keys['vs_tcp'] = round(max(mid['pipeline'][n] / mid['TCP fan-out'][n] for n in large), 3)
    rdmc_parts(lab, res)
    res.keys['members'] = max(sizes)
    res.notes.append(
        f'Clocks of guests are compared by questions and answers; they err by {clocks:.2f} ms at most. '
        'MPICH takes a binomial tree for fewer than eight processes, and scatters and gathers from eight '
        'on. It does not sleep while it waits, and takes what the host has of processors.')
    return res


def rdmc_parts(lab, res):
    """Four members, a larger object: against writes alone; table 1; skew."""
    n, size = 4, (8 if lab.quick else 32) * MB
    rounds = lab.rounds or (2 if lab.quick else 7)
    with lab.guests(nodes=n, mem='512M', modparam=PARAMETERS) as c:
        t = Throttled(lab, c, MBIT)
        alone, sent = [], []
        for i in range(rounds):
            alone.append(t.writes(size))
            found = t.objects([{'nodes': list(range(n))}], [
                (0, 'pipeline', FIRST), (0, 'pipeline', size)])[0]
            sent.append(found[1])
            note(lab, found[1], members=n, algorithm='pipeline', size=size)
            say(f'{i + 1} of {rounds}: {found[1].seconds:.2f} s, to one {alone[-1]:.2f}')
    copy = median(alone)
    line = size / (MBIT * 1e6 / 8)
    parts = [times(s, copy) for s in sent]
    mid = {k: median([p[k] for p in parts]) for k in parts[0]}
    total = median([s.seconds for s in sent])
    block = copy * mid['block'] / size
    skew = median([s.skew for s in sent]) / block
    res.tables.append((
        f'Table 1: {size // MB} MiB to 3 others, {mid["blocks"]:.0f} blocks; the node that has it '
        'last', ['', 'ms', '%'],
        [[name, round(1000 * mid[name], 1), round(100 * mid[name] / total, 2)]
         for name in PARTS] + [['total', round(1000 * total, 1), 100]]))
    res.tables.append((
        'The same object to one node, and to all', ['', 's', 'spread %'],
        [[name, round(median(v), 3), round(spread(v), 1)] for name, v in
         (('writes to one', alone), ('pipeline to 3', [s.seconds for s in sent]))] +
        [['the cable, without headers', round(line, 3), 0]]))
    res.keys |= {'vs_unicast': round(total / copy, 3), 'vs_line': round(total / line, 3),
                 'overhead_pct': round(100 * sum(mid[k] for k in OVERHEAD) / total, 2),
                 'engine_pct': round(100 * sum(mid[k] for k in OVERHEAD if 'copy' not in k) / total,
                                     2),
                 'skew_blocks': round(skew, 2), 'mbit': MBIT, 'size_mib': size // MB}
    res.paper += [('4 members, in copies', f'{62084 / 60944:.2f} (table 1, of its blocks)',
                   f'{total / copy:.3f}'),
                  ('what is not on the network', '1 %', f'{res.keys["overhead_pct"]} %')]
    res.notes.append(
        '*Remote setup* ends when the root has posted the first block, *remote block transfers* '
        'when the first block has come to the node of the table; *waiting* is by how much the rest took longer than '
        'the same blocks written to one node. Block transfers are not overhead, the others are; '
        '*engine_pct* is without the copies between programs and kernel. ib_write_bw polls, and cannot tell '
        'the time in a guest of user-mode Linux; no program is faster than the cable, *vs_line*.')


PARTS = ['pinning', 'remote setup', 'remote block transfers', 'block transfers', 'waiting',
         'delivery', 'copy out']
OVERHEAD = ['pinning', 'remote setup', 'waiting', 'delivery', 'copy out']


def times(sent, copy):
    """Table 1: where the time went; the node that has it last, and the root."""
    root = next(i for i, m in sent.moved.items() if m['here'] == m['begun'])
    far = max((i for i in sent.moved if i != root), key=lambda i: sent.moved[i]['here'])
    m, r = sent.moved[far], sent.moved[root]
    blocks = m['blocks']
    block = 1 << (sent.len // blocks - 1).bit_length()
    # of the steps of a schedule it sees all but those before its first block
    rest = (blocks - 1) * copy / blocks
    last = max(sent.read.values())
    took = {
        'pinning': r['begun'] - sent.call,
        'remote setup': r['first'] - r['begun'],
        'remote block transfers': m['first'] - r['first'],
        'block transfers': rest * 1e9,
        'waiting': m['here'] - m['first'] - rest * 1e9,
        'delivery': max(sent.there.values()) - m['here'],
        'copy out': last - max(sent.there.values()),
    }
    return {**{k: v / 1e9 for k, v in took.items()}, 'block': block, 'blocks': blocks}


# figure 6

def rdmc_blocks(lab):
    res = Result('rdmc-blocks', 'Large objects: sizes of blocks', (
        'The binomial pipeline in groups of four, each guest with a cable of its own that is the '
        'limit. Bandwidth is the size of the object by the time until the last program has read it.'))
    sizes = [256 * KB, 4 * MB] if lab.quick else [64 * KB, 256 * KB, MB, 4 * MB, 16 * MB]
    blocks = [16 * KB, 256 * KB] if lab.quick else [4 * KB, 16 * KB, 64 * KB, 256 * KB, MB]
    rounds = lab.rounds or (2 if lab.quick else 4)
    drive.build()
    took = {}
    with lab.guests(nodes=4, mem=MEMORY, modparam=PARAMETERS) as c:
        t = Throttled(lab, c, MBIT)
        for block in [*blocks, 0]:
            found = t.objects([{'nodes': [0, 1, 2, 3], 'block': block}],
                              [(0, 'pipeline', size) for size in [FIRST] + sizes * rounds])[0][1:]
            for size, sent in zip(sizes * rounds, found):
                took.setdefault((size, block), []).append(sent.seconds)
                note(lab, sent, size=size, block=block)
            say(f'blocks of {block}: done')
    rate = {k: 8 * k[0] / median(v) / 1e6 for k, v in took.items()}
    title = f'Figure 6: 4 members, cables of {MBIT} Mbit/s'
    res.tables.append((f'{title}: Mbit/s', ['block', *(kib(s) for s in sizes)], [
        [kib(b) if b else 'by size', *(round(rate[s, b], 1) for s in sizes)]
        for b in [*blocks, 0]]))
    res.plots.append((title, 'KiB a block', 'Mbit/s', {
        kib(s): [(b // KB, rate[s, b]) for b in blocks] for s in sizes}, True))
    # how much of the best block the choice by size gives
    res.keys = {'chosen_pct': round(100 * min(
        rate[s, 0] / max(rate[s, b] for b in blocks) for s in sizes), 1),
        'best_mbit': round(max(rate.values()), 1), 'mbit': MBIT}
    res.paper.append(('with larger blocks', 'first faster, then slower', ', '.join(
        f'{kib(s)}: best with {kib(max(blocks, key=lambda b, s=s: rate[s, b]))}' for s in sizes)))
    return res


def kib(size):
    return f'{size // MB} MiB' if size >= MB else f'{size // KB} KiB'


# figures 9, 10

def rdmc_overlap(lab):
    res = Result('rdmc-overlap', 'Large objects in groups that overlap', (
        'Guests with cables of their own that are the limit. Figure 10: all guests are in all groups, each of '
        'which has one sender; all send at once, and the rate is the bytes of all their objects by the '
        'time until all of them have been read everywhere. Figure 9: one node sends objects to three others '
        'of which any three are a group, one after the other, of the sizes of the trace in section 5.2.2: '
        'lognormal with its median and mean, scaled as the link is.'))
    drive.build()
    overlap(lab, res)
    three_node_writes(lab, res)
    return res


def overlap(lab, res):
    sizes = [2, 4] if lab.quick else [2, 4, 6, 8]
    size = (1 if lab.quick else 4) * MB
    rounds = lab.rounds or (1 if lab.quick else 3)
    who = {'all': lambda n: n, 'half': lambda n: n // 2, 'one': lambda n: 1}
    took = {}
    with lab.guests(nodes=max(sizes), mem=MEMORY, modparam=PARAMETERS) as c:
        t = Throttled(lab, c, MBIT)
        for n in sizes:
            for name, senders in who.items():
                groups = [{'nodes': [i, *(k for k in range(n) if k != i)]}
                          for i in range(senders(n))]
                found = t.objects(groups, [(i, 'auto', s) for s in [FIRST] + [size] * rounds
                                           for i in range(len(groups))])
                begun = min(g[1].call for g in found)
                ended = max(max(s.read.values()) for g in found for s in g[1:])
                seconds = (ended - begun) / 1e9
                took[n, name] = rounds * len(groups) * size / seconds
                lab.runs.append({'asked': {'members': n, 'senders': name, 'size': size},
                                 'seconds': seconds})
                say(f'{n} members, {name} send: {8 * took[n, name] / 1e6:.1f} Mbit/s')
    full = MBIT * 1e6 / 8

    def bound(n, name):
        """Of the link that has most to carry: a receiver's, or the one sender's."""
        m = who[name](n)
        return full * m / (m - 1 if m == n else m) if m > 1 else full

    res.tables.append((
        f'Figure 10: {size // MB} MiB, cables of {MBIT} Mbit/s: Mbit/s in sum',
        ['members', *(f for name in who for f in (f'{name} send', '% of what links allow'))],
        [[n, *(f for name in who for f in (
            round(8 * took[n, name] / 1e6, 1), round(100 * took[n, name] / bound(n, name), 1)))]
         for n in sizes]))
    res.plots.append((f'Figure 10: {size // MB} MiB', 'members', 'Mbit/s', {
        f'{name} send': [(n, 8 * took[n, name] / 1e6) for n in sizes] for name in who}, False))
    most = sizes[-1]
    res.keys['overlap_pct'] = round(100 * took[most, 'all'] / bound(most, 'all'), 1)
    res.paper.append((f'all of {most} send: of what the links allow', '"quite close to the limits"',
                      f'{res.keys["overlap_pct"]} %'))


def three_node_writes(lab, res):
    replicas = 4 if lab.quick else 6
    count = 6 if lab.quick else 40
    # median 12 MB, mean 29 MB
    part = 16
    sigma = math.sqrt(2 * math.log(29 / 12))
    rng = random.Random(9)
    groups = [{'nodes': [0, *some]} for some in itertools.combinations(range(1, replicas + 1), 3)]
    writes = [(rng.randrange(len(groups)),
               min(16 * MB, max(4 * KB, int(rng.lognormvariate(math.log(12e6 / part), sigma)))))
              for _ in range(count)]
    kinds = ['pipeline', 'tree', 'sequential']
    took = {}
    with lab.guests(nodes=replicas + 1, mem=MEMORY, modparam=PARAMETERS) as c:
        t = Throttled(lab, c, MBIT)
        for kind in kinds:
            # the first to each makes connections
            first = [(g, kind, 64 * KB) for g in range(len(groups))]
            found = t.objects(groups, first + [(g, kind, size) for g, size in writes])
            took[kind] = [s for g in found for s in g[1:]]
            say(f'{kind}: median {median([s.seconds for s in took[kind]]):.2f} s')
            for s in took[kind]:
                note(lab, s, algorithm=kind, size=s.len)
    mid = {k: median([s.seconds for s in v]) for k, v in took.items()}
    mean = {k: sum(s.seconds for s in v) / len(v) for k, v in took.items()}
    rate = {k: 8 * sum(s.len for s in v) / sum(s.seconds for s in v) / 1e6 for k, v in took.items()}
    res.tables.append((
        f'Figure 9: {count} writes to 3 of {replicas} nodes, median 12/{part} MB, mean 29/{part} MB',
        ['', 'median s', 'mean s', 'Mbit/s replicated'],
        [[k, round(mid[k], 3), round(mean[k], 3), round(rate[k], 1)] for k in kinds]))
    res.plots.append((f'Figure 9: writes to 3 of {replicas} nodes', 'seconds', '% of writes', {
        k: [(s, 100 * (i + 1) / count) for i, s in enumerate(sorted(s.seconds for s in took[k]))]
        for k in kinds}, False))
    for other, paper in (('tree', 'almost twice'), ('sequential', 'around three times')):
        res.keys[f'writes_vs_{other}'] = round(mean[other] / mean['pipeline'], 2)
        res.paper.append((f'figure 9: {other} over pipeline', paper,
                          f'{res.keys[f"writes_vs_{other}"]} times'))
    res.paper.append(('replicated, of the sender\'s link', '93 %',
                      f'{100 * rate["pipeline"] / MBIT:.0f} %'))
    res.keys['mbit'] = MBIT
