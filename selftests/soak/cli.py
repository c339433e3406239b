# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/soak."""

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from groups import PROJECT
from run import Run, Violation
from vmlib import Error
from vmlib.base import make
from vmlib.kernels import build_module, ensure

SOAK = os.path.join(PROJECT, 'scripts', 'soak')


def parse():
    top = argparse.ArgumentParser(
        prog='scripts/soak', description='Draw faults against groups on several virtual machines, '
        'for a time, and compare what all members received. Each run is another seed, in virtual '
        'time, and so can be had again exactly. The last line is "soak: M minutes, K faults, V '
        'violations"; the status is 1 if there were violations.')
    top.add_argument('--minutes', type=float, default=1, metavar='M',
                     help='of the host: no run begins later (default: 1)')
    top.add_argument('--seed', type=int, metavar='S', help='of the first run (default: the time)')
    top.add_argument('--once', action='store_true', help='one run alone, and tell of its faults')
    top.add_argument('--kernel', default='virtual', choices=['virtual', 'virtual-debug'])
    top.add_argument('--jobs', type=int, default=os.cpu_count(), metavar='N',
                     help='runs side by side (default: a processor each)')
    top.add_argument('--out', metavar='DIR', help='with --once: keep the kernels\' logs there')
    args = top.parse_args()
    if args.seed is None:
        args.seed = int(time.time()) if not args.once else 1
    return args


def once(args):
    """One run. Its last line is JSON, for the one below."""
    run = Run(args.seed, args.kernel, args.out, say=lambda text: print(text, flush=True))
    print(f'seed {args.seed}: {run.nodes} hosts, {run.modparam}', flush=True)
    found = {'messages': 0, 'seconds': 0, 'violation': None}
    try:
        found['messages'], found['seconds'] = run.go()
    except (Error, Violation) as e:
        found['violation'] = f'{type(e).__name__}: {e}'
    found['faults'] = run.faults
    found['given_up'] = run.given_up
    found['digest'] = run.cluster.digest
    print(json.dumps(found), flush=True)
    return 1 if found['violation'] else 0


def ended(seed, log):
    """What a run that has ended found."""
    log.seek(0)
    text = log.read()
    try:
        return json.loads(text.splitlines()[-1])
    except (ValueError, IndexError):
        return {'messages': 0, 'seconds': 0, 'faults': {}, 'given_up': 0, 'digest': None,
                'violation': f'the run of seed {seed} did not end in order:\n{text[-3000:]}'}


class Soak:
    """Runs until the time is over."""

    def __init__(self, args):
        self.args = args
        self.began = time.monotonic()
        self.running = {}               # seed: (process, log)
        self.faults = collections.Counter()
        self.runs = self.messages = self.seconds = self.given_up = self.violations = 0

    def start(self, seed):
        log = tempfile.TemporaryFile('w+', encoding='utf-8')
        argv = [sys.executable, SOAK, '--once', '--kernel', self.args.kernel, '--seed', str(seed)]
        # it ends with us
        self.running[seed] = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'TERM', *argv], stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT), log

    def take(self, seed, found):
        self.runs += 1
        self.messages += found['messages']
        self.seconds += found['seconds']
        self.faults.update(found['faults'])
        self.given_up += found['given_up']
        replay = f'scripts/soak --kernel {self.args.kernel} --once --seed {seed}'
        print(f'seed {seed}: {sum(found["faults"].values())} faults, {found["messages"]} messages, '
              f'{found["seconds"]:.1f} virtual s, {found["digest"]}', flush=True)
        if found['violation']:
            self.violations += 1
            print(f'violation: {found["violation"]}\nreplay: {replay}', flush=True)

    def go(self):
        seed = self.args.seed
        try:
            while True:
                over = time.monotonic() > self.began + 60 * self.args.minutes
                while not over and len(self.running) < self.args.jobs:
                    self.start(seed)
                    seed += 1
                for done in [s for s, (p, _) in self.running.items() if p.poll() is not None]:
                    with self.running.pop(done)[1] as log:
                        self.take(done, ended(done, log))
                if over and not self.running:
                    return
                time.sleep(0.05)
        finally:
            for p, _ in self.running.values():
                p.send_signal(signal.SIGTERM)
            for p, _ in self.running.values():
                p.wait()

    def say(self):
        minutes = (time.monotonic() - self.began) / 60
        print(f'{self.runs} runs, {self.messages} messages, {self.seconds / 60:.1f} virtual '
              f'minutes, {self.given_up} groups that no majority was left of')
        print('; '.join(f'{kind} {n}' for kind, n in sorted(self.faults.items())))
        print(f'soak: {minutes:.1f} minutes, {sum(self.faults.values())} faults, '
              f'{self.violations} violations', flush=True)


def main():
    args = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        make('selftests/socket')
        build_module(ensure(args.kernel))
        if args.once:
            return once(args)
        soak = Soak(args)
        try:
            soak.go()
        finally:
            soak.say()
    except Error as e:
        print(f'soak: {e}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if soak.violations else 0
