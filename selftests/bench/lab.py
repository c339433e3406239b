# SPDX-License-Identifier: GPL-2.0
"""What the benchmarks are made with: guests, runs in them, medians, a result."""

import contextlib
import json
import os
import statistics
import sys
import time

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from vmlib import PATIENT, Cluster, Error
from vmlib.base import make
from vmlib.virtual import parse_cost

PERF = os.path.join(PROJECT, 'build', 'tools', 'spindle-perf')
RUNS = os.path.join(PROJECT, 'build', 'bench')
RAW = os.path.join(RUNS, 'raw_verbs')
SEQUENCER = os.path.join(RUNS, 'sequencer')
MTU_PAYLOAD = 4096
KB = 1024
RUN_SECONDS = 900               # bound of one run of spindle-perf


def say(text):
    print(f'bench: {text}', file=sys.stderr, flush=True)


def build():
    for part in ('userlib/tools', 'selftests/bench'):
        make(part)


def median(values):
    """Of those that are numbers."""
    values = [v for v in values if v == v]
    return statistics.median(values) if values else float('nan')


def spread(values):
    """Half the distance between the extremes, in per cent of the median."""
    mid = median(values)
    return 100 * (max(values) - min(values)) / 2 / mid if mid else 0.0


def arguments(options):
    """{'no_verify': True, 'n': 5} as words of a command line."""
    words = []
    for name, value in options.items():
        flag = f'-{name}' if len(name) == 1 else f'--{name.replace("_", "-")}'
        if value is True:
            words.append(flag)
        elif value not in (None, False):
            words += [f'{flag}={value}'] if len(name) > 1 else [flag, str(value)]
    return words


def cpu_seconds(pid):
    """Processor time that a guest has taken: a process and, on UML, those of its programs."""
    ticks, queue = 0, [pid]
    while queue:
        at = queue.pop()
        try:
            with open(f'/proc/{at}/stat', encoding='ascii') as f:
                words = f.read().rpartition(')')[2].split()
            ticks += int(words[11]) + int(words[12])
            for task in os.listdir(f'/proc/{at}/task'):
                with open(f'/proc/{at}/task/{task}/children', encoding='ascii') as f:
                    queue += map(int, f.read().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ticks / os.sysconf('SC_CLK_TCK')


class Marks:
    """What a run took of the host's processors between its marks."""

    def __init__(self, pid):
        self.pid = pid
        self.at = {}

    def hear(self, _process, stream, line):
        if stream == 'stderr' and line in ('begin', 'end'):
            self.at[line] = cpu_seconds(self.pid)

    @property
    def seconds(self):
        return self.at['end'] - self.at['begin'] if len(self.at) == 2 else None


class Lab:
    """The guests of one benchmark, one cluster after the other."""

    def __init__(self, kernel, quick, mode, rounds=None, fabric=None, cost=None):
        self.kernel = kernel
        self.fabric = fabric            # rate,delay of one in virtual time
        self.cost = cost                # of computing there
        self.quick = quick
        self.mode = mode
        self.rounds = rounds            # instead of a benchmark's own number
        self.boots = []                 # what was booted, for the record
        self.runs = []                  # every run of spindle-perf
        self.port = 7100
        self.load = []
        self.numbers = {}               # of messages, for runs that need one

    @contextlib.contextmanager
    def guests(self, nodes=1, addrs=1, mem='1536M', module=True, **kwargs):
        kwargs.setdefault('timeout', 3600)
        if self.fabric:
            kwargs['rate'], kwargs['delay'] = self.fabric.split(',')
            kwargs['cost'] = self.cost
        modparam = f'{PATIENT} {kwargs.pop("modparam", "")}'
        with Cluster(kernel=self.kernel, nodes=nodes, addrs=addrs, mem=mem, module=module,
                     modparam=modparam, **kwargs) as cluster:
            self.boots.append({'guests': nodes, 'addresses': addrs, 'memory': mem})
            yield cluster

    def note_load(self):
        self.load.append(os.getloadavg()[0])

    def perf(self, cluster, members, **options):
        """spindle-perf with that many local members in guest 0; its JSON."""
        options = {'mode': self.mode, 'verify': 'order', 'stats': True, **options}
        addrs = cluster.env(0)['SPINDLE_ADDRS'].split()[:members]
        if options.get('D') and 'null' not in options['optimise'] and options['optimise'] != 'all':
            options = self.as_many(cluster, addrs, options)
        return self.collect([self.perf_start(cluster, 0, addrs, options)], options)[0]

    def as_many(self, cluster, addrs, options):
        """The options with a number of messages that takes about as long as was asked for."""
        known = json.dumps([len(addrs), options], sort_keys=True)
        if known not in self.numbers:
            first = {**options, 'D': None, 'n': 4}
            probe = self.collect([self.perf_start(cluster, 0, addrs, first)], first)[0]
            self.runs.pop()
            flows = probe['options']['senders'] * probe['options']['active']
            self.numbers[known] = max(
                4, round(probe['messages_per_second'] * options['D'] / flows))
        return {**options, 'D': None, 'n': self.numbers[known]}

    def perf_start(self, cluster, node, addrs, options):
        """Start it on a node of a cluster."""
        options = {'timeout': RUN_SECONDS, **options}
        argv = [PERF, '-A', ','.join(addrs), '--json', '--marks', *arguments(options)]
        self.note_load()
        marks = Marks(cluster.guests[node].pid)
        process = cluster.start(node, argv, on_line=marks.hear)
        process.marks = marks
        return process

    def perf_across(self, cluster, **options):
        """One member on each guest; the JSON of each."""
        options = {'mode': self.mode, 'verify': 'order', 'stats': True, **options}
        addrs = [cluster.env(i)['SPINDLE_ADDR'] for i in range(cluster.nodes)]
        processes = [self.perf_start(cluster, i, [addrs[i]], {
            **options, 'members': cluster.nodes, 'contact': addrs[0] if i else '-'})
            for i in range(cluster.nodes)]
        return self.collect(processes, options)

    def collect(self, processes, options):
        found = []
        for p in processes:
            status = p.wait(RUN_SECONDS + 30)
            if status:
                raise Error(f'spindle-perf {options}: status {status}\n{p.stdout}{p.stderr}')
            found.append({**json.loads(p.stdout), 'cpu_seconds': p.marks.seconds})
        for run in found:
            for phase in ('forming', 'warming', 'ending'):
                if run[f'{phase}_seconds'] > 8:
                    say(f'{phase} took {run[f"{phase}_seconds"]:.1f} s: {options}')
        hashes = {tuple(g['hash'] for g in run['groups']) for run in found}
        if options.get('verify') != 'none' and len(hashes) != 1:
            raise Error(f'spindle-perf {options}: the guests received different sequences')
        self.runs += [{'asked': options, **run} for run in found]
        return found

    # raw verbs

    def raw_pair(self, cluster, server, client, what, *args, address=None):
        """Start a pair of raw_verbs; both processes."""
        self.port += 1
        address = address or cluster.env(server)['SPINDLE_ADDR']
        serving = cluster.start(server, [RAW, 'serve', address, self.port])
        serving.wait_output('ready', 30)
        return serving, cluster.start(client, [RAW, what, address, self.port, *args])

    @staticmethod
    def raw_result(pair):
        words = []
        for p in reversed(pair):
            if p.wait(150):
                raise Error(f'raw_verbs: status {p.status}: {p.stdout}{p.stderr}')
            words += p.stdout.split()
        return {k: float(v) for k, _, v in (w.partition('=') for w in words if '=' in w)}

    def raw_bandwidth(self, cluster, size, seconds, depth=64):
        """Bytes/s of one stream of writes between two addresses of guest 0."""
        self.note_load()
        pair = self.raw_pair(cluster, 0, 0, 'bw', size, seconds, depth)
        return self.raw_result(pair)['bytes_per_second']

    def raw_write(self, cluster, server, client, size, count):
        """Latencies of a write and its completion."""
        return self.raw_result(self.raw_pair(cluster, server, client, 'write', size, count))

    def raw_latency(self, cluster, server, client, size, count, how):
        self.note_load()
        return self.raw_result(self.raw_pair(cluster, server, client, 'lat', size, count, how))

    # TCP

    def sequencer(self, cluster, what, *args):
        """A sequencer over TCP, a member on each guest: what each has found."""
        self.note_load()
        self.port += 1
        address = cluster.env(0)['SPINDLE_ADDR']
        processes = [cluster.start(i, [SEQUENCER, what, address, self.port, i, cluster.nodes,
                                       *args]) for i in range(cluster.nodes)]
        found = []
        for p in processes:
            if p.wait(150):
                raise Error(f'sequencer {what} {args}: status {p.status}: {p.stdout}{p.stderr}')
            words = dict(word.split('=') for word in p.stdout.split())
            found.append({k: v if k == 'hash' else float(v) for k, v in words.items()})
        if len({(run['messages'], run['hash']) for run in found}) != 1:
            raise Error(f'sequencer {what} {args}: the guests received different sequences')
        return found

    def sequencer_latency(self, cluster, size, count, pause_us, sender):
        found = self.sequencer(cluster, 'lat', size, count, pause_us, sender)
        return found[sender]

    @staticmethod
    def frames(cluster):
        """Frames that have gone over all wires, once they are quiet."""
        count, before = 0, None
        while count != before:
            cluster.sleep(0.3)
            before, count = count, sum(wire['frames'] for wire in cluster.stats().values())
        return count

    def perftest_bandwidth(self, cluster, size, counts):
        """Bytes/s of ib_write_bw between two addresses of guest 0, by the clock: two lengths."""
        seconds = []
        address = cluster.env(0)['SPINDLE_ADDR']
        for count in counts:
            self.port += 1
            common = ['ib_write_bw', '-R', '-F', '-s', size, '-n', count, '-p', self.port]
            server = cluster.start(0, common)
            time.sleep(0.7)
            began = time.monotonic()
            if cluster.start(0, [*common, address]).wait(150):
                raise Error('ib_write_bw failed')
            seconds.append(time.monotonic() - began)
            server.wait(30)
        # a difference that is nearly nothing says nothing
        longer = seconds[1] - seconds[0]
        return size * (counts[1] - counts[0]) / longer if longer > 0.5 else float('nan')

    def environment(self):
        """What a figure depends on, without naming the machine."""
        if self.fabric:
            return {'kernel': self.kernel, 'boots': self.boots, 'fabric': self.fabric,
                    'costs_ns': parse_cost(self.cost),
                    'rdma': f'soft-RoCE, path MTU {MTU_PAYLOAD}'}
        return {
            'kernel': self.kernel,
            'boots': [b for i, b in enumerate(self.boots) if b not in self.boots[:i]],
            'cpus_of_host': os.cpu_count(),
            'cpus_of_guest': 1 if self.kernel.startswith('uml') else 2,
            'rdma': f'soft-RoCE, path MTU {MTU_PAYLOAD}',
            'load_of_host': [round(min(self.load), 1), round(max(self.load), 1)]
                            if self.load else [],
        }


def alternate(contenders, rounds):
    """Run {name: function} in turns, ABAB...; {name: [results]}."""
    found = {name: [] for name in contenders}
    for i in range(rounds):
        for name, function in contenders.items():
            began = time.monotonic()
            found[name].append(function())
            say(f'{name}, {i + 1} of {rounds}: {time.monotonic() - began:.1f} s')
    return found


def rate(run):
    return run['bytes_per_second']


def median_rate(runs):
    return median([rate(r) for r in runs])


def cpu_rate(run):
    """Bytes delivered to a member for each second of processor that the guest took."""
    return run['bytes'] / run['cpu_seconds'] if run.get('cpu_seconds') else float('nan')


def median_cpu_rate(runs):
    return median([cpu_rate(r) for r in runs])


def counted(run, name, idle=False):
    return run.get('idle_counters' if idle else 'counters', {}).get(name, 0)


def written(run):
    """Requests that write something at a peer: RDMA writes, and rows that are sent instead."""
    return counted(run, 'rdma_writes') + counted(run, 'sends') - counted(run, 'wakes_sent')


def per_message(runs, name):
    """What was counted on all nodes for each message delivered there, of all runs together."""
    delivered = sum(counted(r, 'delivered') for r in runs)
    total = sum(written(r) if name == 'writes' else counted(r, name) for r in runs)
    return total / delivered if delivered else 0.0


class Result:
    """What a benchmark found: keys for the last line, tables, plots, remarks."""

    def __init__(self, name, title, about):
        self.name = name
        self.title = title
        self.about = about
        self.keys = {}
        self.paper = []                 # (what, the paper, here)
        self.tables = []                # (title, columns, rows)
        self.plots = []                 # (title, x, y, {label: [(x, y)]}, logarithmic)
        self.notes = []

    def line(self):
        return f'bench {self.name}: ' + ' '.join(f'{k}={v}' for k, v in self.keys.items())


def mb(value):
    """Bytes/s as MB/s."""
    return round(value / 1e6, 2)
