#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Make the kernels, run the tests under pytest, run once more what may be unsteady, sum up."""

import argparse
import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET

SELFTESTS = os.path.dirname(os.path.realpath(__file__))
PROJECT = os.path.dirname(SELFTESTS)
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from vmlib.base import cache_dir

LOGS = os.path.join(PROJECT, 'build', 'check')
UNSTEADY = os.path.join(LOGS, 'unsteady')
FAILED = os.path.join(LOGS, 'failures')          # conftest.py writes there
VM = os.path.join(PROJECT, 'scripts', 'vm')
BEAT = 30               # seconds between lines of progress
GRACE = 60              # seconds for what is interrupted to put its guests away
TEST_BOUND = 2400       # seconds of one test; a program's tests count as its first one
BOUND = 80 * 60         # seconds of all tests
FULL_BOUND = 24 * 3600
MOST_UNSTEADY = 2
FAILURES = ('failure', 'error')

PARTS = ['build', 'userlib', 'sim', 'model', 'coverage', 'lint', 'harness', 'bench', 'kunit',
         'guests', 'guests_x86', 'soak']
# What --quick leaves out, and how it runs the rest.
SLOW = ['harness', 'guests_x86']
QUICK = {'SPINDLE_TEST_KERNEL': 'virtual', 'SPINDLE_TEST_SEEDS': '500'}
FULL = {'SPINDLE_TEST_FULL': '1', 'SPINDLE_TEST_SEEDS': '50000'}
# Kernels in the order in which they are made; which parts need them.
KERNELS = {
    'debian-6.1': ['lint', 'guests', 'guests_x86'],
    'debian-6.12': ['lint', 'harness', 'guests', 'guests_x86'],
    'uml': ['lint', 'harness', 'bench', 'kunit', 'guests', 'soak'],
    'uml-debug': ['kunit', 'guests', 'soak'],
    'debug': ['guests', 'guests_x86'],
}

# Until its parent ends.
SPINNER = 'import os\np = os.getppid()\nwhile os.getppid() == p:\n    sum(range(100000))'


class Check:
    """All of it."""

    def __init__(self, args):
        self.args = args
        self.parts = args.only or [p for p in PARTS if not args.quick or p not in SLOW]
        self.env = dict(os.environ, **(QUICK if args.quick else FULL if args.full else {}))
        self.start = time.monotonic()
        self.doing = 'nothing'
        self.log = os.path.join(LOGS, 'tests.log')
        self.results = {}               # test: (kind, text, may it be run again)
        self.unsteady = []
        self.over = threading.Event()

    def say(self, text):
        print(f'check: {time.monotonic() - self.start:4.0f} s: {text}', flush=True)

    # processes

    def spin(self):
        """Processes that keep the processors busy, each in a session (and autogroup) of its own."""
        return [subprocess.Popen([sys.executable, '-c', SPINNER], start_new_session=True)
                for _ in range(self.args.busy)]

    def run(self, argv, log, bound):
        """Run a command to its end; its status, None when it was not there in time."""
        with open(log, 'wb') as out, subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=PROJECT,
                env=self.env, start_new_session=True) as p:
            try:
                return p.wait(bound)
            except subprocess.TimeoutExpired:
                self.interrupt(p)
                return None
            except BaseException:
                self.interrupt(p)
                raise

    @staticmethod
    def interrupt(p):
        """As ^C would, so that guests are put away; else as it must be."""
        p.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(GRACE)
        # what is left of its session; the keepers of guests have their own
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()

    # the steps

    def make_kernels(self):
        """True when all that the tests need are there."""
        for name, users in KERNELS.items():
            if not set(users) & set(self.parts) or (name == 'debug' and not self.args.full) or \
                    (self.args.quick and name == 'uml-debug'):
                continue
            self.doing = f'making kernel {name}'
            began = time.monotonic()
            log = os.path.join(LOGS, f'kernel-{name}.log')
            if self.run([VM, 'kernel', name], log, BOUND) != 0:
                self.results[f'kernel {name}'] = ('error', tail(log), False)
                return False
            if time.monotonic() - began > 3:
                self.say(f'kernel {name} made in {time.monotonic() - began:.0f} s')
        return True

    def pytest(self, name, what, workers):
        """Run tests; {test: (kind, text, may it be run again)}."""
        self.log, xml = (os.path.join(LOGS, f'{name}.{end}') for end in ('log', 'xml'))
        self.doing = name
        argv = ['/usr/bin/python3', '-B', '-m', 'pytest', '-v', '-p', 'no:cacheprovider',
                '--color=no', '--tb=short', f'--junitxml={xml}', '-o', 'junit_logging=no',
                f'--rootdir={PROJECT}', f'--timeout={TEST_BOUND}']
        if workers:
            argv += ['-n', str(workers), '--dist', 'loadgroup']
        for path in (self.log, xml):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        status = self.run([*argv, *what], self.log, FULL_BOUND if self.args.full else BOUND)
        results = results_of(xml, self.log)
        failed = any(kind in FAILURES for kind, _, _ in results.values())
        if status not in (0, 1) or not results or status == 1 and not failed:
            why = 'no end in time' if status is None else f'pytest: status {status}'
            results[f'pytest ({name})'] = ('error', f'{why}\n{tail(self.log)}', False)
        return results

    def run_again(self):
        """What may have failed for want of time, alone now; passing, it is unsteady."""
        again = [t for t, (kind, _, again) in self.results.items() if kind in FAILURES and again]
        if not again:
            return
        self.say(f'running {len(again)} tests once more, alone')
        results = self.pytest('again', again, 0)
        # one that ends badly has passed nothing
        whole = set(results) == set(again)
        for test in again:
            if whole and results[test][0] == 'passed':
                self.results[test] = ('passed', '', False)
                self.unsteady.append(test)

    def beat(self):
        """Say now and then what goes on."""
        while not self.over.wait(BEAT):
            if self.doing.startswith('making'):
                self.say(self.doing)
                continue
            done, total, going = progress(self.log)
            self.say(f'{done} of {total or "?"} done; now {", ".join(going) or "nothing"}')

    def go(self):
        busy = []
        threading.Thread(target=self.beat, daemon=True).start()
        try:
            busy = self.spin()
            if self.make_kernels():
                self.results.update(self.pytest(
                    'tests', [os.path.join('selftests', p) for p in self.parts],
                    self.args.workers))
                for part in self.parts:
                    if not any(t.startswith(f'selftests/{part}/') for t in self.results):
                        self.results[part] = ('error', 'no test of it has run', False)
                self.run_again()
        finally:
            self.over.set()
            for p in busy:
                p.kill()
                p.wait()

    # the end

    def count(self, *kinds):
        return sum(kind in kinds for kind, _, _ in self.results.values())

    def totals(self):
        return (f'{self.count("passed")} passed, {self.count(*FAILURES)} failed, '
                f'{self.count("skipped")} skipped')

    def summary(self):
        """Print what came of it; true when all is well."""
        told = 0
        for test, (kind, text, _) in self.results.items():
            lines = text.strip().splitlines()
            if kind == 'skipped':
                print(f'skipped: {test}: {lines[0] if lines else ""}')
            elif kind in FAILURES:
                print(f'FAILED: {test} (see {relative(self.log)} and {relative(FAILED)}/)')
                told += 1
                most = 12 if told <= 20 else 1
                print(''.join(f'    {line[:200]}\n' for line in lines[:most]), end='')
        for test in self.unsteady:
            print(f'unsteady: {test} (log kept at {relative(keep_unsteady(test))})')
        if len(self.unsteady) > MOST_UNSTEADY:
            self.results['steadiness'] = ('failure', '', False)
            print(f'FAILED: {len(self.unsteady)} unsteady tests, more than {MOST_UNSTEADY}')
        print(self.totals(), flush=True)
        return self.count('passed') > 0 and not self.count(*FAILURES)


# What pytest has said

VERDICT = re.compile(r'^(?:\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|SKIPPED|ERROR) (\S.*?)|'
                     r'(\S+::.*?) (PASSED|FAILED|SKIPPED|ERROR)\b.*?) *$', re.M)


def plain(test):
    """A test's name without the group that pytest-xdist adds."""
    return test.partition('@')[0].strip()


def verdicts(text):
    """{test: verdict} in the output of pytest -v, with and without workers."""
    return {plain(m[2] or m[3]): m[1] or m[4] for m in VERDICT.finditer(text)}


def progress(log):
    """How many tests are done, of how many, and those that run."""
    text = text_of(log)
    done = verdicts(text)
    total = re.search(r'^gw0 \[(\d+)\]|^collected (\d+) items', text, re.M)
    begun = {plain(line) for line in text.splitlines() if re.match(r'selftests/\S+::', line)}
    going = sorted(t.rpartition('::')[2][:60] for t in begun - set(done) if ' ' not in t[-8:])
    return len(done), total and int(total[1] or total[2]), going[-4:]


def results_of(xml, log):
    """{test: (kind, text, may it be run again)}."""
    if not os.path.exists(xml):
        kinds = {'PASSED': 'passed', 'FAILED': 'failure', 'SKIPPED': 'skipped', 'ERROR': 'error'}
        return {test: (kinds[verdict], '', False)
                for test, verdict in verdicts(text_of(log)).items()}
    found = {}
    for case in ET.parse(xml).iter('testcase'):
        path = case.get('classname').replace('.', '/')
        test = f'{path}.py::{plain(case.get("name"))}'
        # one whose guest fails at the end too is there twice
        kind, text, again = found.get(test, ('passed', '', True))
        for mark in case:
            if mark.tag in FAILURES or (mark.tag == 'skipped' and kind == 'passed'):
                kind = mark.tag
                text += (mark.get('message') or mark.text or '') + '\n'
        said = [p.get('value') for p in case.iter('property') if p.get('name') == 'again']
        found[test] = (kind, text, again and 'no' not in said and ('yes' in said or kind == 'passed'))
    return found


def relative(path):
    return os.path.relpath(path, PROJECT)


def text_of(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as f:
            return f.read()
    except FileNotFoundError:
        return ''


def tail(path, lines=15):
    return '\n'.join(text_of(path).splitlines()[-lines:])


def keep_unsteady(test):
    """Move what is known of its first failure to where it stays."""
    for where in glob.glob(os.path.join(FAILED, '*')):
        if plain(text_of(os.path.join(where, 'failure.txt')).partition('\n')[0]) == test:
            os.makedirs(UNSTEADY, exist_ok=True)
            return shutil.move(where, os.path.join(UNSTEADY, os.path.basename(where)))
    return UNSTEADY


# What passed is on record

def git(*args):
    return subprocess.run(['git', '-C', PROJECT, *args], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()


def clean_commit():
    """HEAD, if the tree is just that."""
    return None if git('status', '--porcelain') else git('rev-parse', 'HEAD') or None


def record(commit):
    return os.path.join(cache_dir(), 'checks', commit)


def note_green(check, commit):
    os.makedirs(os.path.dirname(record(commit)), exist_ok=True)
    with open(record(commit), 'w', encoding='utf-8') as f:
        json.dump({'date': time.strftime('%Y-%m-%d %H:%M:%S %z'), 'totals': check.totals(),
                   'seconds': round(time.monotonic() - check.start), 'full': check.args.full,
                   'busy': check.args.busy, 'unsteady': check.unsteady}, f)


def was_green():
    commit = clean_commit()
    if commit is None:
        print('check: the tree has uncommitted changes')
        return 1
    if not os.path.exists(record(commit)):
        print(f'check: {commit[:12]} is not known to have passed')
        return 1
    print(f'check: {commit[:12]}: {text_of(record(commit))}')
    return 0


def parse():
    parser = argparse.ArgumentParser(prog='scripts/check', description='Run all tests.', epilog=(
        'The last line says how many passed; the status is 0 when none failed and some passed. '
        'Logs: build/check/. Documentation/testing.rst says what is in which.'))
    parser.add_argument('--quick', action='store_true',
                        help='minutes: fewer seeds, the fast kernel, one doorbell')
    parser.add_argument('--full', action='store_true', help='hours: every guest test on every '
                        'kernel under both doorbells, the x86 debug kernel, more seeds')
    parser.add_argument('--only', action='append', choices=PARTS, metavar='PART',
                        help=f'this part, can be repeated: {", ".join(PARTS)}')
    parser.add_argument('--busy', type=int, default=0, metavar='N',
                        help='keep N processes spinning beside the tests')
    parser.add_argument('--workers', type=int, default=os.cpu_count() + 1, metavar='N',
                        help='tests that run side by side (default: one more than processors)')
    parser.add_argument('--was-green', action='store_true',
                        help='only tell whether this very commit has passed')
    parser.add_argument('--list', action='store_true', help='only list the parts')
    return parser.parse_args()


def main():
    args = parse()
    if args.was_green:
        return was_green()
    check = Check(args)
    if args.list:
        print('\n'.join(check.parts))
        return 0
    os.makedirs(LOGS, exist_ok=True)
    # held until the end
    lock = os.open(os.path.join(LOGS, 'lock'), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print('check: another one runs in this checkout', file=sys.stderr)
        return 1
    for where in (FAILED, UNSTEADY):
        shutil.rmtree(where, ignore_errors=True)

    def interrupted(signum, frame):
        raise KeyboardInterrupt

    # one that was started in the background has SIGINT ignored, and so would its children
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, interrupted)
    commit = clean_commit()
    try:
        check.go()
    except KeyboardInterrupt:
        check.results[check.doing] = ('error', 'interrupted', False)
        check.summary()
        return 130
    ok = check.summary()
    # what was chosen by hand may be less than all
    chosen = args.only or args.quick or \
        any(k.startswith('SPINDLE_TEST_') or k == 'PYTEST_ADDOPTS' for k in os.environ)
    if ok and not chosen and commit and commit == clean_commit():
        note_green(check, commit)
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
