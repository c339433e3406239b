# SPDX-License-Identifier: GPL-2.0
"""Drive the hostile user (fuzz.c) in guests, one after the other, and judge what it leaves."""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from vmlib import Cluster, Error, kernels

PROGRAM = os.path.join(PROJECT, 'build', 'selftests', 'fuzz')
FOUND = os.path.join(PROJECT, 'build', 'fuzz')
NODES = 6
GUEST_SECONDS = 600     # then a new guest, so that what it has kept comes to light
GRACE = 900             # seconds beyond its time that a guest may take for its end


class Outcome:
    """What the inputs of some guests came to."""

    def __init__(self):
        self.inputs = 0
        self.places = 0
        self.kept = 0
        self.live = [0, 0, 0, 0]        # rounds, messages, others' messages, views
        self.complaints = []            # texts

    def take(self, text):
        done = re.search(r'^done: (\d+) inputs, \d+ complaints, (\d+) kept, (\d+) places', text,
                         re.M)
        if done:
            self.inputs += int(done[1])
            self.kept = max(self.kept, int(done[2]))
            self.places = max(self.places, int(done[3]))
        live = re.search(r'^live: (\d+) rounds, (\d+) messages, (\d+) of others, (\d+) views', text,
                         re.M)
        if live:
            self.live = [a + int(b) for a, b in zip(self.live, live.groups())]
        self.complaints += re.findall(r'^complaint: .*', text, re.M)
        return done and live


def build():
    subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'selftests', 'fuzz')], check=True)


def module_of(kernel):
    """A module that says where it passes, where the kernel can tell."""
    kernel = kernels.ensure(kernel)
    return kernels.build_module(kernel, kunit=False, kcov=True) if kernel.kcov else True


def run_guest(kernel, module, argv, bound, outcome, modparam='', smp=None):
    """One guest's worth; what went wrong goes to the outcome, with its inputs to build/fuzz."""
    out = tempfile.mkdtemp(prefix='fuzz.')
    before = len(outcome.complaints)
    p = None
    try:
        with Cluster(kernel=kernel, addrs=NODES, module=module, mem='1G', timeout=bound,
                     out=out, modparam=modparam, smp=smp) as c:
            # paths of guests: SPINDLE_OUT is the same there
            p = c.start(0, [PROGRAM, *argv(out)])
            try:
                status = p.wait(bound)
            finally:
                outcome.take(p.stdout)
            if status and len(outcome.complaints) == before:
                outcome.complaints.append(f'complaint: status {status}: {p.stdout[-2000:]}'
                                          f'{p.stderr[-2000:]}')
    except Error as e:
        outcome.complaints.append(f'complaint: {type(e).__name__}: {e}')
    finally:
        if len(outcome.complaints) > before:
            save(out, outcome.complaints[before:], p.stdout if p else '')
        corpus = os.path.join(out, 'corpus')
        text = ''
        if os.path.exists(corpus):
            with open(corpus, encoding='ascii') as f:
                text = f.read()
        shutil.rmtree(out, ignore_errors=True)
    return text


def save(out, complaints, text):
    """What a complaint can be traced with: the log, and the inputs that ran last."""
    os.makedirs(FOUND, exist_ok=True)
    where = tempfile.mkdtemp(prefix=time.strftime('%m%d-%H%M%S.'), dir=FOUND)
    for path in glob.glob(os.path.join(out, '*')):
        shutil.copy(path, where)
    with open(os.path.join(where, 'complaints'), 'w', encoding='utf-8') as f:
        f.write('\n'.join(complaints) + '\n\n' + text)
    print(f'fuzz: {complaints[0].splitlines()[0][:300]}\nfuzz: kept in '
          f'{os.path.relpath(where, PROJECT)}', flush=True)


def fuzz(kernel, seconds, seed=1, workers=4, modparam='', smp=None, kept=None):
    """Go on for so long, in as many guests as it takes.

    Inputs that came to new places go on from guest to guest, and in the file kept.
    """
    outcome = Outcome()
    module = module_of(kernel)
    end = time.monotonic() + seconds
    corpus = ''
    if kept and os.path.exists(kept):
        with open(kept, encoding='ascii') as f:
            corpus = f.read()
    with tempfile.TemporaryDirectory(prefix='fuzz.') as state:
        while (left := end - time.monotonic()) > 1:
            path = os.path.join(state, 'corpus')
            with open(path, 'w', encoding='ascii') as f:
                f.write(corpus)
            chunk = int(min(left, GUEST_SECONDS)) or 1

            def argv(out, path=path, chunk=chunk, seed=seed):
                shutil.copy(path, os.path.join(out, 'before'))
                return ['-s', str(chunk), '-S', str(seed), '-w', str(workers),
                        '-c', os.path.join(out, 'before')]

            failed = len(outcome.complaints)
            corpus += run_guest(kernel, module, argv, chunk + GRACE, outcome, modparam, smp)
            seed += 1
            if len(outcome.complaints) - failed and len(outcome.complaints) > 20:
                break
    if kept:
        with open(kept, 'w', encoding='ascii') as f:
            f.write(corpus)
    if isinstance(module, str):
        print(f'fuzz: {outcome.places} places of the module passed by the calls themselves, '
              f'{outcome.kept} inputs kept')
    return outcome


def replay(kernel, path, times, modparam='', smp=None):
    """Run the inputs of a file again."""
    outcome = Outcome()

    def argv(out):
        shutil.copy(path, os.path.join(out, 'again'))
        return ['-r', os.path.join(out, 'again'), '-t', str(times)]

    run_guest(kernel, module_of(kernel), argv, GRACE, outcome, modparam, smp)
    return outcome


def main():
    parser = argparse.ArgumentParser(
        prog='scripts/fuzz', description='A hostile user, beside a live group.', epilog=(
            'The last line says how many inputs there were and how many complaints; the status is '
            '0 when there were none. What was found is kept in build/fuzz/: the kernel log, and '
            'last.N, the input that worker N ran, for --replay.'))
    parser.add_argument('--minutes', type=float, default=1, metavar='M')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--kernel', choices=kernels.NAMES, default='uml-debug')
    parser.add_argument('--workers', type=int, default=4, help='inputs side by side')
    parser.add_argument('--doorbell', choices=['auto', 'polled', 'completion'], default='auto')
    parser.add_argument('--smp', type=int, help='processors of the guest (not of uml)')
    parser.add_argument('--corpus', metavar='FILE', help='begin with these inputs, and add to them')
    parser.add_argument('--replay', metavar='FILE', help='run the inputs of a file, one a line')
    parser.add_argument('--times', type=int, default=1, help='how often, with --replay')
    args = parser.parse_args()
    modparam = f'doorbell={args.doorbell}'
    began = time.monotonic()
    build()
    try:
        if args.replay:
            outcome = replay(args.kernel, args.replay, args.times, modparam, args.smp)
        else:
            outcome = fuzz(args.kernel, args.minutes * 60, args.seed, args.workers, modparam,
                           args.smp, args.corpus)
    except KeyboardInterrupt:
        return 130
    print('fuzz: live group: {} rounds, {} messages received, {} of others, {} views'.format(
        *outcome.live))
    minutes = (time.monotonic() - began) / 60 if args.replay else args.minutes
    print(f'fuzz: {round(minutes, 2):g} minutes, {outcome.inputs} inputs, '
          f'{len(outcome.complaints)} complaints', flush=True)
    return 1 if outcome.complaints or not outcome.inputs else 0
