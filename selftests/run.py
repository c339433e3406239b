#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run the parts of the tests side by side, each within a bound, and sum them up."""

import argparse
import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET

SELFTESTS = os.path.dirname(os.path.realpath(__file__))
PROJECT = os.path.dirname(SELFTESTS)
LOGS = os.path.join(PROJECT, 'build', 'check')
VM = os.path.join(PROJECT, 'scripts', 'vm')
BEAT = 30               # seconds between lines of progress
GRACE = 60              # seconds for what is interrupted to put its guests away
KERNEL_BOUND = 1800     # seconds to build or fetch one

# In the order in which they are made: what others wait for first.
KERNELS = ['debian-6.1', 'debian-6.12', 'uml', 'uml-debug', 'debug', 'kcsan']
FAILURES = ('failure', 'error')


class Part:
    """One run of pytest.

    Parts of a lane run one after the other, lanes beside each other. What keeps no
    time in a guest is polite: it takes what the guests leave of the processors.
    """

    def __init__(self, name, bound, kernels=(), lane='guests', path=None, env=None, quick=None,
                 full=False):
        self.name = name
        self.bound = bound
        self.kernels = list(kernels)
        self.lane = lane
        self.path = path or name
        self.env = env or {}
        self.quick = quick              # what --quick changes in env; None: not part of it
        self.full = full                # only with --full, or when named
        self.process = None
        self.state = 'waits'
        self.results = []               # (kind, test, text)
        self.log = os.path.join(LOGS, f'{name}.log')
        self.xml = os.path.join(LOGS, f'{name}.xml')

    def count(self, *kinds):
        return sum(r[0] in kinds for r in self.results)


PARTS = [
    Part('build', 300, lane='host', quick={}),
    Part('userlib', 900, lane='host', quick={'SPINDLE_TEST_STEPS': '60000'}),
    Part('views', 120, lane='host', quick={}),
    Part('sim', 2400, lane='host', quick={'SPINDLE_TEST_SEEDS': '500'}),
    Part('coverage', 900, lane='host'),
    Part('model', 600, lane='host', quick={}),
    Part('lint', 1500, ['debian-6.1', 'debian-6.12', 'uml'], lane='host', quick={}),
    Part('harness', 600, ['uml']),
    Part('bench', 900, ['uml'], quick={}),
    Part('fuzz', 900, ['uml-debug'],
         quick={'SPINDLE_TEST_KERNEL': 'uml', 'SPINDLE_TEST_SECONDS': '20'}),
    Part('faults', 600, ['uml'], quick={}),
    Part('kunit', 300, ['uml-debug'], quick={'SPINDLE_TEST_KERNEL': 'uml'}),
    Part('guests', 4000, ['uml', 'uml-debug'],
         quick={'SPINDLE_TEST_KERNEL': 'uml', 'SPINDLE_TEST_DOORBELLS': 'polled'}),
    Part('guests_x86', 1200, ['debian-6.1', 'debian-6.12', 'debug']),
    Part('guests_debian', 3000, ['debian-6.1', 'uml'], path='guests', full=True,
         env={'SPINDLE_TEST_KERNEL': 'debian-6.1'}),
    Part('guests_debug', 6 * 3600, ['debug', 'uml'], path='guests/test_guests.py', full=True,
         env={'SPINDLE_TEST_KERNEL': 'debug', 'SPINDLE_TEST_DOORBELLS': 'polled'}),
    Part('kcsan', 3 * 3600, ['kcsan'], full=True),
]


class Check:
    """All of it."""

    def __init__(self, parts):
        self.parts = parts
        self.start = time.monotonic()
        self.made = {}                  # kernel: Event
        self.lost = {}                  # kernel: why it could not be made
        self.stopping = False
        self.lock = threading.Lock()
        self.running = set()            # processes
        self.lanes = []                 # threads

    def say(self, text):
        with self.lock:
            print(f'check: {time.monotonic() - self.start:4.0f} s: {text}', flush=True)

    def spawn(self, argv, log, env, polite):
        """A process in a session of its own; with autogroups its niceness counts there only."""
        if polite:
            argv = ['sh', '-c', '{ echo 5 >/proc/self/autogroup; } 2>/dev/null; '
                    'exec nice -n 5 "$@"', 'sh', *argv]
        with open(log, 'wb') as out:
            with self.lock:
                if self.stopping:
                    return None
                p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, cwd=PROJECT,
                                     stderr=subprocess.STDOUT, start_new_session=True,
                                     env={**os.environ, **env})
                self.running.add(p)
        return p

    def reap(self, p, bound):
        """Wait for it; true when it came to its end within the bound."""
        try:
            p.wait(bound)
            return True
        except subprocess.TimeoutExpired:
            self.interrupt(p)
            return False
        finally:
            self.running.discard(p)

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

    def make_kernels(self, names):
        for name in names:
            began = time.monotonic()
            log = os.path.join(LOGS, f'kernel-{name}.log')
            p = self.spawn([VM, 'kernel', name], log, {}, polite=True)
            if p is None:
                return
            ended = self.reap(p, KERNEL_BOUND)
            if self.stopping:
                return
            if not ended or p.returncode:
                self.lost[name] = tail(log)
                self.say(f'kernel {name} could not be made, see {relative(log)}')
            elif time.monotonic() - began > 3:
                self.say(f'kernel {name} made in {time.monotonic() - began:.0f} s')
            self.made[name].set()

    def run_lane(self, parts):
        for part in parts:
            for name in part.kernels:
                while not self.made[name].wait(1):
                    if self.stopping:
                        return
            lost = [f'no kernel {n}\n{self.lost[n]}' for n in part.kernels if n in self.lost]
            if lost:
                part.results = [('error', part.name, '\n'.join(lost))]
                part.state = 'done'
            elif not self.stopping:
                self.run_part(part)

    def run_part(self, part):
        for path in (part.log, part.xml):
            if os.path.exists(path):
                os.unlink(path)
        began = time.monotonic()
        self.say(f'{part.name} begins')
        p = self.spawn(['/usr/bin/python3', '-B', '-m', 'pytest', '-v', '-p', 'no:cacheprovider',
                        '--color=no', '--tb=short', f'--junitxml={part.xml}', '-o',
                        'junit_logging=no',
                        *(os.path.join(SELFTESTS, name) for name in part.path.split())],
                       part.log, part.env, part.lane == 'host')
        if p is None:
            return
        part.process, part.state = p, 'runs'
        ended = self.reap(p, part.bound)
        part.results = results_of(part)
        if self.stopping:
            return
        if not ended:
            part.results.append(('error', part.name, f'no end within {part.bound} s, '
                                 f'in {unfinished(part.log)}\n{tail(part.log)}'))
        elif p.returncode not in (0, 1) or not part.results:
            part.results.append(('error', part.name, f'pytest: status {p.returncode}\n'
                                 f'{tail(part.log)}'))
        part.state = 'done'
        self.say(f'{part.name} ends after {time.monotonic() - began:.0f} s: {totals([part])}')

    def beat(self):
        """Say now and then what goes on."""
        while not self.stopping:
            time.sleep(BEAT)
            going = [f'{p.name} ({len(verdicts(p.log))} done)' for p in self.parts
                     if p.state == 'runs']
            making = [n for n, event in self.made.items() if not event.is_set()][:1]
            going += [f'making kernel {n}' for n in making]
            if not self.stopping:
                self.say('; '.join(going) or 'nothing runs')

    def stop(self):
        """End what runs, all at once."""
        with self.lock:
            self.stopping = True
            running = list(self.running)
        threads = [threading.Thread(target=self.interrupt, args=[p]) for p in running]
        for thread in threads:
            thread.start()
        for thread in [*threads, *self.lanes]:
            thread.join(GRACE + 10)

    def run(self):
        wanted = {n for part in self.parts for n in part.kernels}
        kernels = [n for n in KERNELS if n in wanted]
        self.made = {n: threading.Event() for n in kernels}
        lanes = {}
        for part in self.parts:
            lanes.setdefault(part.lane, []).append(part)
        self.lanes = [threading.Thread(target=self.run_lane, args=[lane], daemon=True)
                      for lane in lanes.values()]
        for thread in [threading.Thread(target=self.make_kernels, args=[kernels], daemon=True),
                       threading.Thread(target=self.beat, daemon=True), *self.lanes]:
            thread.start()
        for thread in self.lanes:
            thread.join()
        self.stopping = True


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


VERDICT = re.compile(r'^(\S+::.*?) (PASSED|FAILED|SKIPPED|ERROR)\b.*', re.M)


def verdicts(log):
    """What pytest -v has said so far, for a run that left nothing better."""
    return VERDICT.findall(text_of(log))


def unfinished(log):
    """The test that ran when all ended."""
    begun = [line for line in text_of(log).splitlines()
             if re.match(r'\S+::', line) and not VERDICT.match(line)]
    return begun[-1].strip() if begun else 'no test'


def results_of(part):
    if not os.path.exists(part.xml):
        kinds = {'PASSED': 'passed', 'FAILED': 'failure', 'SKIPPED': 'skipped', 'ERROR': 'error'}
        return [(kinds[kind], test, '') for test, kind in verdicts(part.log)]
    found = {}
    for case in ET.parse(part.xml).iter('testcase'):
        name = f'{part.name}: {case.get("name")}'
        # one whose guest fails at the end too is there twice
        key = (case.get('classname'), name)
        kind, text = found.get(key, ('passed', ''))
        for mark in case:
            if mark.tag in FAILURES or (mark.tag == 'skipped' and kind == 'passed'):
                kind = mark.tag
                text += (mark.get('message') or mark.text or '') + '\n'
        found[key] = (kind, text)
    return [(kind, name, text) for (_, name), (kind, text) in found.items()]


def totals(parts):
    def count(*kinds):
        return sum(part.count(*kinds) for part in parts)

    return f'{count("passed")} passed, {count(*FAILURES)} failed, {count("skipped")} skipped'


def summary(parts, interrupted):
    told = 0
    for part in parts:
        if part.state != 'done' and interrupted:
            part.results.append(('error', part.name, 'interrupted'))
        for kind, test, text in part.results:
            lines = text.strip().splitlines()
            if kind == 'skipped':
                print(f'skipped: {test}: {lines[0] if lines else ""}')
            elif kind in FAILURES:
                print(f'FAILED: {test} (see {relative(part.log)})')
                told += 1
                most = 12 if told <= 20 else 1
                print(''.join(f'    {line[:200]}\n' for line in lines[:most]), end='')
    print(totals(parts), flush=True)
    failed = sum(part.count(*FAILURES) for part in parts)
    passed = sum(part.count('passed') for part in parts)
    return 0 if passed and not failed else 1


def chosen():
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(prog='scripts/check', description='Run all tests.', epilog=(
        'The last line says how many passed; the status is 0 when none failed and some passed. '
        'Logs: build/check/.'))
    parser.add_argument('--quick', action='store_true',
                        help='minutes: fewer seeds, the fast kernel, one doorbell')
    parser.add_argument('--full', action='store_true',
                        help="hours: also every guest test on Debian's kernel and the x86 debug "
                        'kernel, emulated, and the search for data races')
    parser.add_argument('--only', action='append', choices=names, metavar='PART',
                        help=f'this part, can be repeated: {", ".join(names)}')
    parser.add_argument('--list', action='store_true', help='list the parts')
    args = parser.parse_args()
    if args.only:
        parts = [part for part in PARTS if part.name in args.only]
    elif args.quick:
        parts = [part for part in PARTS if part.quick is not None]
    else:
        parts = [part for part in PARTS if args.full or not part.full]
    if args.quick:
        for part in parts:
            part.env.update(part.quick or {})
            kernel = part.env.get('SPINDLE_TEST_KERNEL')
            if kernel:
                part.kernels = [kernel]
    if args.list:
        for part in parts:
            print(f'{part.name:14} at most {part.bound} s')
        sys.exit(0)
    return parts


def main():
    parts = chosen()
    os.makedirs(LOGS, exist_ok=True)
    # held until the end
    lock = os.open(os.path.join(LOGS, 'lock'), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print('check: another one runs in this checkout', file=sys.stderr)
        return 1
    check = Check(parts)

    def interrupted(signum, frame):
        raise KeyboardInterrupt

    # one that was started in the background has SIGINT ignored, and so would its children
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, interrupted)
    try:
        check.run()
    except KeyboardInterrupt:
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, signal.SIG_IGN)
        check.say('interrupted')
        check.stop()
        summary(parts, True)
        return 130
    return summary(parts, False)


if __name__ == '__main__':
    sys.exit(main())
