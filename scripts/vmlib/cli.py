# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/vm."""

import argparse
import contextlib
import json
import os
import signal
import socket
import sys

from . import kernels
from .base import Error, GuestDied, KernelComplaint, Timeout, runs_dir, say
from .cluster import Cluster

GRACE = 5       # seconds that a command has for its end after SIGINT or SIGTERM
LINK_KEYS = ('rate', 'delay', 'loss', 'jitter')
LINK_WORDS = 'rate=, delay=, loss= or jitter='


def main(argv=None):
    args = parser().parse_args(argv)
    try:
        return args.call(args)
    except (Error, OSError) as e:
        say(str(e))
        return 1
    except KeyboardInterrupt:
        return 130


def parser():
    top = argparse.ArgumentParser(prog='vm', description='Run anything in guests.')
    subs = top.add_subparsers(required=True, metavar='COMMAND')

    run = subs.add_parser('run', help='boot guests and run a command in them')
    run.add_argument('--kernel', default='uml', metavar='K[,K...]',
                     help=f'of all guests, or one for each: {", ".join(kernels.NAMES)}')
    run.add_argument('--nodes', type=int, default=1, metavar='N')
    run.add_argument('--addrs', type=int, default=1, metavar='N', help='addresses of each guest')
    run.add_argument('--smp', type=int, metavar='N', help='CPUs of each guest (not on UML)')
    run.add_argument('--mem', help='memory of each guest, as 512M')
    run.add_argument('--link', default='', metavar='rate=,delay=,loss=,jitter=',
                     help='cables of that rate, wires of that delay and loss')
    run.add_argument('--seed', type=int, default=1,
                     help='decides which frames are lost; in virtual time, on the whole run')
    run.add_argument('--cost', metavar='zero|NAME=NS,...',
                     help='what computing takes in virtual time: syscall=, resched=, tx=, rx=')
    run.add_argument('--pcap', metavar='FILE',
                     help='capture what crossed the wires (virtual time only)')
    run.add_argument('--faults', metavar='FILE', help='what is to happen when: lines of SECONDS '
                     'after the start of the command, and link, kill, pause or resume as below')
    run.add_argument('--node', type=int, metavar='I', help='run the command there only')
    run.add_argument('--timeout', type=float, default=300, metavar='S')
    run.add_argument('--quiet', action='store_true', help='only what the command prints')
    run.add_argument('--module', action=argparse.BooleanOptionalAction, default=None,
                     help='insert spindle.ko (default: when there is a kmod/)')
    run.add_argument('--modparam', default='', metavar='"A=1 B=2"')
    run.add_argument('--siw', action='store_true',
                     help='software iWARP instead of soft-RoCE (kernels built here)')
    run.add_argument('--kunit', action='store_true', help='run the KUnit suites at insmod')
    run.add_argument('--append', default='', help='more for the kernel command line')
    run.add_argument('--env', action='append', default=[], metavar='NAME=VALUE')
    run.add_argument('--out', metavar='DIR', help='keep SPINDLE_OUT and the kernel logs there')
    run.add_argument('--leaks', action=argparse.BooleanOptionalAction, default=None,
                     help='scan with kmemleak at the end (default: on debug kernels)')
    run.add_argument('argv', nargs=argparse.REMAINDER, metavar='-- COMMAND',
                     help='one word with blanks or shell syntax in it goes to sh')
    run.set_defaults(call=cmd_run)

    kernel = subs.add_parser('kernel', help='make sure a kernel is there, print its files')
    kernel.add_argument('kernel', choices=kernels.NAMES)
    kernel.set_defaults(call=cmd_kernel)

    module = subs.add_parser('module', help='build spindle.ko, print its path')
    module.add_argument('kernel', choices=kernels.NAMES)
    module.add_argument('--kunit', action=argparse.BooleanOptionalAction, default=None,
                        help='with its KUnit suites (default: where the kernel has KUnit)')
    module.set_defaults(call=cmd_module)

    ps = subs.add_parser('ps', help='list what runs')
    ps.set_defaults(call=cmd_ps)

    link = subs.add_parser('link', help='change the wire between two nodes of a run',
                           usage='vm link [--id ID] [--directed] A [B] '
                                 '{cut|heal|rate=R|delay=D|loss=L|jitter=J}...')
    link.add_argument('--directed', action='store_true', help='from A to B only')
    link.add_argument('words', nargs='+')
    link.set_defaults(call=cmd_link)
    stats = subs.add_parser('stats', help='what went over the wires of a run')
    stats.set_defaults(call=cmd_stats)
    for name, text in (('kill', 'crash a node'), ('pause', 'stop a node'),
                       ('resume', 'let it go on')):
        sub = subs.add_parser(name, help=text)
        sub.add_argument('node', type=int)
        sub.set_defaults(call=cmd_node, do=name)
        sub.add_argument('--id')
    for sub in (link, stats):
        sub.add_argument('--id', help='which run (default: the newest)')
    return top


def parse_link(text):
    settings = {}
    for part in filter(None, text.split(',')):
        key, eq, value = part.partition('=')
        if key not in LINK_KEYS or not eq:
            raise Error(f'--link {part}: {LINK_WORDS} wanted')
        if value:
            settings[key] = value
    return settings


def cmd_run(args):
    argv = args.argv[1:] if args.argv[:1] == ['--'] else args.argv
    if not argv:
        raise Error('no command to run')
    # "make check" and 'a; b' are for a shell, as with ssh
    command = argv[0] if len(argv) == 1 else argv
    env = dict(pair.partition('=')[::2] for pair in args.env)
    if args.node is not None and not 0 <= args.node < args.nodes:
        raise Error(f'no node {args.node}')
    caught = []
    # a signal during boot or checks ends those; one during the command goes to it
    run = Run(args, command, env)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, lambda number, _: run.interrupt(number, caught))
    try:
        return run.go()
    except Interrupted:
        return 128 + caught[0]


class Interrupted(BaseException):
    """A signal to the harness outside of the command's time."""


class Run:
    """One "vm run"."""

    def __init__(self, args, command, env):
        self.args = args
        self.command = command
        self.env = env
        self.commanding = False
        self.signals = []
        self.interrupted_by = None

    def interrupt(self, number, caught):
        caught.append(number)
        if self.commanding and len(caught) < 3:
            self.signals.append(number)
        else:
            raise Interrupted

    def go(self):
        args = self.args
        cluster = Cluster(kernel=args.kernel, nodes=args.nodes, addrs=args.addrs, smp=args.smp,
                          mem=args.mem, module=args.module, modparam=args.modparam,
                          kunit=args.kunit, append=args.append, seed=args.seed, out=args.out,
                          leaks=args.leaks, timeout=args.timeout, quiet=args.quiet,
                          siw=args.siw, cost=args.cost, pcap=args.pcap,
                          **parse_link(args.link))
        status = 0
        faults = read_faults(args.faults) if args.faults else []
        try:
            with cluster:
                for seconds, request in faults:
                    cluster.at(seconds, lambda request=request: cluster.do(request))
                status = self.run_command(cluster)
        except KernelComplaint as e:
            say(str(e))
            status = status or 1
        if cluster.digest and not args.quiet:
            print(cluster.digest, file=sys.stderr, flush=True)
        return status

    def run_command(self, cluster):
        nodes = range(self.args.nodes) if self.args.node is None else [self.args.node]
        prefixed = len(nodes) > 1

        def show(process, stream, line):
            to = sys.stdout if stream == 'stdout' else sys.stderr
            print(f'{process.node}: {line}' if prefixed else line, file=to, flush=True)

        self.commanding = True
        running = []
        for i in nodes:
            running.append(cluster.start(i, self.command, self.env, on_line=show))
        self.wait_all(cluster, running)
        self.commanding = False
        status = 0
        for p in running:
            if p.status is None:
                # a node that was killed by request may leave its command without a status
                if not cluster.guests[p.node].killed:
                    status = status or 1
                continue
            if p.status and not self.args.quiet:
                say(f'node {p.node}: status {p.status}')
            status = status or (p.status if p.status >= 0 else 128 - p.status)
        if self.interrupted_by:
            status = 128 + self.interrupted_by
        return status

    def wait_all(self, cluster, running):
        deadline = cluster.now() + cluster.left()
        while any(p.running for p in running):
            while self.signals:
                sig = self.signals.pop(0)
                # asked twice: no more patience
                self.forward(running, signal.SIGKILL if self.interrupted_by else sig)
                self.interrupted_by = self.interrupted_by or sig
                deadline = min(deadline, cluster.now() + GRACE)
            if cluster.now() > deadline:
                self.forward(running, signal.SIGKILL)
                if not self.interrupted_by:
                    left = ', '.join(str(p.node) for p in running if p.running)
                    raise Timeout(f'no end after {cluster.timeout:.0f} s on node {left}')
                break
            cluster.wait_for(lambda: not any(p.running for p in running) or self.signals, 0.2)

    @staticmethod
    def forward(running, sig):
        for p in running:
            if p.running:
                with contextlib.suppress(GuestDied):
                    p.signal(sig)


def cmd_kernel(args):
    kernel = kernels.ensure(args.kernel)
    for what in ('image', 'modules', 'kdir', 'release'):
        print(f'{what}={getattr(kernel, what)}')
    return 0


def cmd_module(args):
    print(kernels.build_module(kernels.ensure(args.kernel), args.kunit))
    return 0


def ask(run_id, **request):
    """Have a running cluster do something."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(30)
        s.connect(os.path.join(runs_dir(), run_id, 'control'))
        with s.makefile('rw') as f:
            f.write(json.dumps(request) + '\n')
            f.flush()
            reply = json.loads(f.readline() or '{"error": "the run ended"}')
    if 'error' in reply:
        raise Error(reply['error'])
    return reply['ok']


def runs():
    """What runs, newest last: (id, info)."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(runs_dir()):
            with contextlib.suppress(OSError, Error, ValueError):
                found.append((entry.stat().st_ctime, entry.name, ask(entry.name, do='info')))
    return [(name, info) for _, name, info in sorted(found, key=lambda f: f[0])]


def chosen(args):
    if args.id:
        return args.id
    there = runs()
    if not there:
        raise Error('nothing runs')
    return there[-1][0]


def cmd_ps(_args):
    for run_id, info in runs():
        print(f'{run_id} pid {info["pid"]} {info["kernel"]}')
        for i, node in enumerate(info['nodes']):
            print(f'  node {i} pid {node["pid"]} {node["state"]} {node["log"]}')
    return 0


def link_request(words, directed=False):
    """What Cluster.do() takes, of "A [B] cut|heal|rate=... ..."."""
    request = {'do': 'link', 'directed': directed}
    words = list(words)
    if not words or not words[0].isdigit():
        raise Error('the number of a node wanted')
    request['a'] = int(words.pop(0))
    if words and words[0].isdigit():
        request['b'] = int(words.pop(0))
    if not words:
        raise Error(f'cut, heal, {LINK_WORDS} wanted')
    for word in words:
        key, eq, value = word.partition('=')
        if word in ('cut', 'heal'):
            request[word] = True
        elif eq and key in LINK_KEYS:
            request[key] = value
        else:
            raise Error(f'{word}: cut, heal, {LINK_WORDS} wanted')
    return request


def read_faults(path):
    """[(seconds, request)] of a file; # begins a comment."""
    found = []
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            words = line.partition('#')[0].split()
            if not words:
                continue
            try:
                at, what, *rest = words
                if what == 'link':
                    directed = '--directed' in rest
                    request = link_request([w for w in rest if w != '--directed'], directed)
                elif what in ('kill', 'pause', 'resume'):
                    node, = rest
                    request = {'do': what, 'node': int(node)}
                else:
                    raise Error(f'{what}: link, kill, pause or resume wanted')
                found.append((float(at), request))
            except (Error, ValueError, TypeError) as e:
                raise Error(f'{path}, line {number}: {e}') from e
    return found


def cmd_link(args):
    ask(chosen(args), **link_request(args.words, args.directed))
    return 0


def cmd_node(args):
    ask(chosen(args), do=args.do, node=args.node)
    return 0


def cmd_stats(args):
    print('from to frames bytes lost dropped held')
    for a, b, s in ask(chosen(args), do='stats'):
        print(a, b, s['frames'], s['bytes'], s['lost'], s['dropped'], s['held'])
    return 0
