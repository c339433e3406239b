# SPDX-License-Identifier: GPL-2.0
"""A cluster of guests with the Ethernet between them."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
import weakref

from . import base, complaints, guests, kernels
from .base import Error, GuestDied, KernelComplaint, Timeout, runs_dir, say
from .hosttime import HostTime
from .virtual import VirtualTime
from .world import SLACK

UNITS = {
    'rate': {'bit': 1, 'kbit': 1e3, 'mbit': 1e6, 'gbit': 1e9, '': 1e6},
    'delay': {'s': 1e9, 'ms': 1e6, 'us': 1e3, 'ns': 1, '': 1e6},
    'jitter': {'s': 1e9, 'ms': 1e6, 'us': 1e3, 'ns': 1, '': 1e6},
    'loss': {'%': 1e4, '': 1e4},
}


# Parameters of the module with which no node is taken for lost because the host is busy.
PATIENT = 'suspect_ms=600000'

# for each of the steps that end a run, on all nodes together
STEP_SECONDS = 45

# Seconds for one guest to boot, insert the module and take commands, with two idle processors
# of 2026; the other kernels' are emulated. How much longer it takes is how slow a guest is.
BOOT_SECONDS = {'uml': 0.6, 'uml-debug': 2, 'debug': 15}
BOOT_SECONDS_EMULATED = 6


def quantity(kind, value):
    """'10mbit', '2ms', '0.1%' (or a plain number: Mbit/s, ms, %) in what the Ethernet takes."""
    match = re.fullmatch(r'([\d.]+)\s*([a-z%]*?)(/s|ps)?', str(value).strip().lower())
    if not match or match[2] not in UNITS[kind]:
        raise Error(f'{kind}={value}: a number with one of {", ".join(UNITS[kind])}')
    return int(float(match[1]) * UNITS[kind][match[2]])


def choose_kernels(names, nodes):
    """The kernel of each node: one for all, or with commas one for each of them."""
    each = names.split(',')
    if len(each) not in (1, nodes):
        raise Error(f'kernel {names}: one for all, or one for each of {nodes} nodes')
    there = {name: kernels.ensure(name) for name in each}
    if len(there) > 1 and any(k.virtual for k in there.values()):
        raise Error(f'kernel {names}: guests in virtual time have the same one')
    return [there[name] for name in each] * (nodes // len(each))


class Result:
    """What a finished command left: status (negative: signal), stdout, stderr."""

    def __init__(self, status, stdout, stderr):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def output(self):
        return self.stdout + self.stderr

    def __repr__(self):
        return f'Result(status={self.status}, stdout={self.stdout!r}, stderr={self.stderr!r})'


class Process:
    """A command in a guest."""

    def __init__(self, cluster, guest, number, on_line):
        self.node = guest.rank
        self.status = None
        self.end_time = None
        self._cluster = cluster
        self._guest = guest
        self._number = number
        self._on_line = on_line
        self._out = {guests.STDOUT: bytearray(), guests.STDERR: bytearray()}
        self._partial = {guests.STDOUT: b'', guests.STDERR: b''}
        self._lost = None

    @property
    def stdout(self):
        return bytes(self._out[guests.STDOUT]).decode(errors='replace')

    @property
    def stderr(self):
        return bytes(self._out[guests.STDERR]).decode(errors='replace')

    @property
    def running(self):
        return self.status is None and self._lost is None

    def wait(self, timeout=60):
        """The exit status; Timeout, or GuestDied when the guest went away under it.

        Timeouts are for an idle host: they are multiplied by the cluster's patience.
        """
        self.wait_for(lambda: False, timeout, 'end')
        return self.status

    def wait_for(self, condition, timeout=60, what='show what was waited for'):
        """Wait until condition() holds (true) or the command ended (false)."""
        timeout = min(timeout * self._cluster.patience, self._cluster.left())
        ok = self._cluster.wait_for(lambda: condition() or not self.running, timeout)
        if condition():
            return True
        if self._lost:
            raise GuestDied(f'node {self.node} is gone ({self._lost})')
        if not ok:
            raise Timeout(f'the command on node {self.node} did not {what} in {timeout:.1f} s; '
                          f'its output: {self.stdout[-2000:]}{self.stderr[-2000:]}')
        return False

    def wait_output(self, text, timeout=60):
        """Wait until text stands in stdout; Error when the command ends without it."""
        if not self.wait_for(lambda: text in self.stdout, timeout, f'print {text!r}'):
            raise Error(f'the command on node {self.node} ended ({self.status}) without {text!r}: '
                        f'{self.stdout[-2000:]}{self.stderr[-2000:]}')

    def signal(self, sig=signal.SIGTERM):
        """Send a signal to the command and what it started (its process group)."""
        self._cluster.send(self._guest, guests.SIGNAL, self._number, guests.signal_payload(sig))

    def _take(self, stream, data):
        self._out[stream] += data
        if self._on_line:
            *lines, rest = (self._partial[stream] + data).split(b'\n')
            self._partial[stream] = rest
            for line in lines:
                self._on_line(self, 'stdout' if stream == guests.STDOUT else 'stderr',
                              line.decode(errors='replace'))

    def _end(self, status=None, lost=None):
        for stream, rest in self._partial.items():
            if rest and self._on_line:
                self._take(stream, b'\n')
        self.end_time = self._cluster.now()
        self.status = status
        self._lost = lost


class Cluster:
    """N guests and their Ethernet; see README.md for the arguments."""

    all = weakref.WeakSet()             # for those who keep the logs of what failed

    def __init__(self, kernel='uml', nodes=1, addrs=1, smp=None, module=None, modparam='',
                 kunit=False, append='', mem=None, seed=1, rate=None, delay=None, loss=None,
                 jitter=None, out=None, show=(), allow=(), leaks=None, timeout=3600, quiet=True,
                 siw=False, cost=None, pcap=None):
        if not 1 <= nodes <= 64 or not 1 <= addrs <= 250:
            raise Error('1 to 64 nodes, and 1 to 250 addresses each')
        own = choose_kernels(kernel, nodes)
        self.kernel = kernel            # its name, or the guests' ones with commas
        self.virtual = own[0].virtual
        if any(k.uml for k in own) and (smp or 1) > 1:
            raise Error('UML has one CPU')
        if not self.virtual and (cost or pcap or jitter):
            raise Error(f'cost, pcap and jitter are for virtual time, kernel {kernel} has the host\'s')
        if siw and any(k.built not in kernels.BUILT for k in own):
            raise Error(f'kernel {kernel} has no software iWARP')
        self.nodes = nodes
        self.addrs = addrs
        self.smp = smp
        if module is None:
            module = all(os.path.exists(os.path.join(base.PROJECT, p)) for p in ('Kbuild', 'kmod'))
        modules = {k: kernels.build_module(k) for k in dict.fromkeys(own)} if module else {}
        self.modparam = modparam
        self.kunit = kunit
        if kunit and not all(k.kunit for k in own):
            raise Error(f'kernel {kernel} has no KUnit')
        self.append = append
        self.mem = mem
        self.seed = seed
        self.wire = {'delay': delay, 'loss': loss, 'jitter': jitter}
        self.rate = rate
        self.show = show
        self.allow = list(allow)
        if leaks and not any(k.debug for k in own):
            raise Error(f'kernel {kernel} has no kmemleak')
        self.leaks = leaks is None or leaks
        self.quiet = quiet
        self.siw = siw
        self.timeout = timeout
        self.end = None                 # of its life, on its clock
        self.keep = os.path.abspath(out) if out else None
        self.changed = threading.Condition(threading.RLock())
        self.guests = [guests.Guest(i, k, modules.get(k)) for i, k in enumerate(own)]
        self.dir = None
        self.id = None
        self.out = None
        self.boot_time = None
        self.patience = SLACK
        self.digest = None              # of a run in virtual time, at its end
        self.world = VirtualTime(self, cost, pcap) if self.virtual else HostTime(self)
        self._numbers = 0
        self._checked = {}
        self._last_logs = None          # once it is closed
        self.complaints = []            # all that check_logs() has found
        Cluster.all.add(self)

    # life

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.finish()
            elif issubclass(kind, Exception):
                # what was raised matters more; a kernel's complaint may be its cause
                try:
                    self.check_logs()
                except KernelComplaint as e:
                    if not isinstance(value, KernelComplaint):
                        print(e, file=sys.stderr)
        finally:
            self.close()

    def open(self):
        """Boot the guests and wait until they take commands."""
        start = time.monotonic()
        try:
            self._prepare()
            self.world.boot()
            self.end = self.now() + self.timeout
            self._wait_ready()
            self._insert_module()
        except BaseException:
            self.close()
            raise
        self.boot_time = time.monotonic() - start
        if not self.virtual:
            self.patience = SLACK * max(1, self.boot_time / self._boot_seconds())
        if not self.quiet:
            say(f'{self.nodes} x {self.kernel} up in {self.boot_time:.1f} s (id {self.id})')

    def _boot_seconds(self):
        """What the boot takes on an idle host."""
        each = [BOOT_SECONDS.get(g.kernel.name, BOOT_SECONDS_EMULATED) for g in self.guests]
        return max(*each, sum(each) / 2)

    def _prepare(self):
        os.makedirs(runs_dir(), mode=0o700, exist_ok=True)
        for _ in range(10):
            try:
                self.dir = tempfile.mkdtemp(prefix='', dir=runs_dir())
                break
            except FileNotFoundError:
                # the last run to end removes an empty directory
                os.makedirs(runs_dir(), mode=0o700, exist_ok=True)
        else:
            raise Error(f'no run directory in {runs_dir()}')
        self.id = os.path.basename(self.dir)
        self.out = self.keep or os.path.join(self.dir, 'out')
        os.makedirs(self.out, exist_ok=True)
        for guest in self.guests:
            guest.log = os.path.join(self.dir, f'node{guest.rank}.log')
            base.write(guest.log, '')
        for kernel in dict.fromkeys(g.kernel for g in self.guests):
            if not kernel.uml or kernel.virtual:
                guests.make_initramfs(kernel, guests.initramfs(self, kernel))

    def first_links(self):
        """What the Ethernet is told before anybody is there."""
        if self.rate is not None:
            for guest in self.guests:
                yield f'port {guest.rank} rate={quantity("rate", self.rate)}'
        wire = ' '.join(f'{k}={quantity(k, v)}' for k, v in self.wire.items() if v is not None)
        if wire:
            for a, b in itertools.permutations(range(self.nodes), 2):
                yield f'link {a} {b} {wire}'

    # its clock: the host's, or the guests' own

    def now(self):
        """Seconds, since whenever."""
        return self.world.now()

    def wait_for(self, condition, seconds):
        """Let time pass until condition() holds, which it returns, or for so many seconds."""
        return self.world.wait(condition, seconds)

    def sleep(self, seconds):
        self.wait_for(lambda: False, seconds)

    def left(self):
        """Seconds of its life."""
        return max(0, self.end - self.now()) if self.end is not None else self.timeout

    def _wait_ready(self):
        bound = SLACK * (60 if all(g.kernel.uml for g in self.guests) else 120)
        self.wait_for(lambda: any(g.dead or g.failed for g in self.guests) or
                      all(g.ready for g in self.guests), min(bound + 5 * self.nodes, self.left()))
        for guest in self.guests:
            why = guest.failed or guest.dead or (None if guest.ready else 'no answer in time')
            if why:
                tail = '\n'.join(guest.log_text().splitlines()[-25:])
                raise Error(f'node {guest.rank} did not come up: {why}\n{tail}')

    def _insert_module(self):
        params = shlex.split(self.modparam)
        for p in [self.start(guest.rank, ['insmod', guest.module, *params])
                  for guest in self.guests if guest.module]:
            if p.wait(60):
                tail = '\n'.join(self.guests[p.node].log_text().splitlines()[-25:])
                raise Error(f'node {p.node}: insmod: {p.stderr.strip()}\n{tail}')

    def close(self):
        """End everything at once; nothing is left of the run but what out= asked for."""
        with contextlib.suppress(OSError):
            if self.keep and self.dir:
                for guest in self.guests:
                    shutil.copy(guest.log, self.keep)
        self.world.stop()
        for guest in self.guests:
            if guest.pid and guest.keeper.poll() is None:
                guests.signal_pid(guest.pid, signal.SIGKILL)
        if self.dir:
            # the run's directory goes with its last keeper
            self._last_logs = self.logs()
        self.world.end()
        for guest in self.guests:
            guest.dead = guest.dead or 'the cluster was closed'
        if self.dir:
            base.remove_tree(self.dir)
            with contextlib.suppress(OSError):
                os.rmdir(runs_dir())
            self.dir = None

    # what guests say

    def hear(self, guest, data):
        """Bytes from a guest; nothing at all: it is gone."""
        with self.changed:
            if not data:
                self._bury(guest)
            for kind, number, payload in guest.frames(data):
                self._take_frame(guest, kind, number, payload)
            self.changed.notify_all()

    def _take_frame(self, guest, kind, number, payload):
        p = guest.commands.get(number)
        if kind == guests.READY:
            guest.ready = True
        elif kind == guests.TAKEN:
            guest.took(int.from_bytes(payload, 'little'))
        elif kind == guests.ASK:
            self.send(guest, guests.PARAMS, 0, ' '.join(guests.init_params(self, guest)).encode())
        elif kind == guests.FAILED:
            guest.failed = payload.decode(errors='replace')
        elif kind in (guests.STDOUT, guests.STDERR) and p:
            p._take(kind, payload)
        elif kind == guests.EXIT and p:
            p._end(status=guests.status_of(int.from_bytes(payload, 'little')))

    def _bury(self, guest):
        guest.dead = 'killed' if guest.killed else guest.why or 'its kernel ended'
        guest.paused = False
        guest.took(0)
        for p in guest.commands.values():
            if p.running:
                p._end(lost=guest.dead)

    # commands

    def send(self, guest, kind, number, payload):
        """A frame to the first process of a guest."""
        self.world.send(guest, guests.HEAD.pack(len(payload), number, kind) + payload)

    def env(self, node):
        """The environment of commands on a node."""
        own = guests.addresses(node, self.nodes, self.addrs)
        peers = [a for i in range(self.nodes)
                 for a in guests.addresses(i, self.nodes, self.addrs)]
        passed = {k: v for k, v in os.environ.items()
                  if k in ('LANG', 'LC_ALL', 'TERM', 'HOME', 'USER', 'LD_LIBRARY_PATH') or
                  k.startswith('SPINDLE_') and k != 'SPINDLE_CACHE'}
        return {**passed,
                'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                'SPINDLE_RANK': str(node), 'SPINDLE_NODES': str(self.nodes),
                'SPINDLE_ADDR': own[0], 'SPINDLE_ADDRS': ' '.join(own),
                'SPINDLE_PEERS': ' '.join(peers), 'SPINDLE_KERNEL': self.guests[node].kernel.built,
                'SPINDLE_OUT': self.out, **({'SPINDLE_SIW': '1'} if self.siw else {})}

    def start(self, node, command, env=None, cwd=None, on_line=None):
        """Start an argument list, or a string for sh, on a node; a Process."""
        guest = self.guests[node]
        argv = ['sh', '-c', command] if isinstance(command, str) else [str(a) for a in command]
        with self.changed:
            self._numbers += 1
            number = self._numbers
            p = Process(self, guest, number, on_line)
            guest.commands[number] = p
        merged = {**self.env(node), **{k: str(v) for k, v in (env or {}).items()}}
        try:
            self.send(guest, guests.START, number,
                      guests.start_payload(argv, merged, cwd or os.getcwd()))
        except Error:
            del guest.commands[number]
            raise
        return p

    def run(self, node, command, timeout=60, check=False, env=None, cwd=None):
        """Run a command to its end; a Result. With check a status other than 0 is an Error."""
        p = self.start(node, command, env, cwd)
        try:
            p.wait(timeout)
        except Timeout:
            with contextlib.suppress(GuestDied):
                p.signal(signal.SIGKILL)
            raise
        if check and p.status:
            raise Error(f'node {node}: {command}: status {p.status}\n{p.stdout}{p.stderr}')
        return Result(p.status, p.stdout, p.stderr)

    # wires and nodes

    def link(self, a, b=None, cut=None, heal=False, rate=None, delay=None, loss=None,
             jitter=None, directed=False):
        """Change the wire between two nodes, in both directions unless directed.

        cut and heal break and mend it; rate ('100mbit'), delay ('2ms'), loss ('0.1%') and, in
        virtual time, jitter ('1us') stay until changed, 0 ends them. Without b it is node a's own
        cable, of which rate alone can be changed, or the wires to all others for the rest.
        """
        others = [i for i in range(self.nodes) if i != a] if b is None else [b]
        if b is None and rate is not None:
            self.world.tell(f'port {a} rate={quantity("rate", rate)}')
            rate = None
        settings = []
        if cut or heal:
            settings.append(f'cut={int(bool(cut))}')
        for kind, value in (('rate', rate), ('delay', delay), ('loss', loss),
                            ('jitter', jitter)):
            if value is not None:
                settings.append(f'{kind}={quantity(kind, value)}')
        if not settings:
            return
        for other in others:
            self.world.tell(f'link {a} {other} {" ".join(settings)}')
            if not directed:
                self.world.tell(f'link {other} {a} {" ".join(settings)}')

    def stats(self):
        """What went over the wires: {(a, b): {frames, bytes, lost, dropped, held}}."""
        keys = ('frames', 'bytes', 'lost', 'dropped', 'held')
        rows = [list(map(int, row.split()))
                for row in self.world.tell('stats').split(';') if not row.startswith('ok')]
        return {(r[0], r[1]): dict(zip(keys, r[2:])) for r in rows}

    def kill(self, node):
        """The node crashes: SIGKILL of its guest. Returns when it is gone."""
        guest = self.guests[node]
        if guest.dead:
            return
        guest.killed = True
        self.world.kill(guest)
        if not self.wait_for(lambda: guest.dead, 20 * self.patience):
            raise Timeout(f'node {node} did not end')

    def pause(self, node):
        """Stop the guest; the others' frames to it are lost once its buffers are full."""
        guest = self._alive(node)
        guest.paused = True
        self.world.pause(guest)

    def resume(self, node):
        guest = self._alive(node)
        self.world.resume(guest)
        guest.paused = False

    def _alive(self, node):
        guest = self.guests[node]
        if guest.dead:
            raise GuestDied(f'node {node} is gone ({guest.dead})')
        return guest

    # the kernel's word

    def log(self, node):
        """The kernel log of a node so far."""
        return self.guests[node].log_text()

    def logs(self):
        """The kernel logs of all nodes so far, also after the end."""
        if self._last_logs is None:
            return [g.log_text() if g.log and os.path.exists(g.log) else '' for g in self.guests]
        return self._last_logs

    def check_logs(self):
        """Raise KernelComplaint for what the kernels said since the last look."""
        found = []
        for guest, log in zip(self.guests, self.logs()):
            lines = log.splitlines()
            since = self._checked.get(guest.rank, 0)
            hits = [(i, line) for i, line in
                    complaints.find(lines, guest.kernel.name, self.allow, self.kunit) if i >= since]
            self._checked[guest.rank] = len(lines)
            if hits:
                found.append(f'the kernel of node {guest.rank} complained:\n'
                             f'{complaints.excerpt(lines, hits)}')
            if guest.dead and not guest.killed and not found and self.dir:
                tail = '\n'.join(lines[-25:])
                found.append(f'node {guest.rank} ended by itself:\n{tail}')
        if found:
            self.complaints += found
            raise KernelComplaint('\n'.join(found))

    def output(self):
        """What all commands have printed so far, also after the end."""
        return '\n'.join(p.stdout + p.stderr for g in self.guests for p in g.commands.values())

    def finish(self):
        """What a good run ends with: commands ended, module out, checkers asked, logs read."""
        problems = []
        alive = [g for g in self.guests if g.ready and not g.dead]
        for guest in alive:
            if guest.paused:
                self.resume(guest.rank)
        last = self._end_commands(alive)
        # no other kernel has lockdep and kmemleak
        debug = [g for g in alive if g.kernel.debug]
        for where, what, command in self._last_steps(alive, debug):
            for p in [self._try_start(g.rank, command) for g in where if not g.dead]:
                if p is None:
                    continue
                try:
                    if p.wait(STEP_SECONDS):
                        problems.append(f'node {p.node}: {what}: {p.stdout}{p.stderr}'.strip())
                except (Timeout, GuestDied) as e:
                    problems.append(f'node {p.node}: {what}: {e}')
            if what == 'the module leaves':
                last = self.now()
        if self.leaks and any(not g.dead for g in debug):
            problems += self._scan_leaks(debug, last)
        try:
            self.check_logs()
        except KernelComplaint as e:
            problems.append(str(e))
        self.world.finish()
        if problems:
            raise KernelComplaint('\n'.join(problems))

    def _try_start(self, node, command):
        try:
            return self.start(node, command)
        except GuestDied:
            return None

    def _end_commands(self, alive):
        running = [p for g in alive for p in list(g.commands.values()) if p.running]
        for guest in alive:
            with contextlib.suppress(GuestDied):
                self.send(guest, guests.SIGNAL, 0, guests.signal_payload(signal.SIGKILL))
        for p in running:
            with contextlib.suppress(GuestDied, Timeout):
                p.wait(10)
        return max([p.end_time for g in alive for p in g.commands.values() if p.end_time] or [0])

    def _last_steps(self, alive, debug):
        """Commands, on which guests, and what it means when one fails."""
        hung = int(30 * self.patience)
        if self.guests[0].module:
            yield (alive, 'the module leaves',
                   f'test ! -d /sys/module/spindle || timeout -s KILL {hung} rmmod spindle')
        # what still holds the device shows here
        device = 'siw0' if self.siw else 'rxe0'
        yield (alive, 'the RDMA device leaves',
               f'test ! -d /sys/class/infiniband/{device} || '
               f'timeout -s KILL {hung} rdma link delete {device}')
        yield (debug, 'lockdep turned itself off',
               "awk '/debug_locks:/ && $2 == 0 { exit 1 }' /proc/lockdep_stats")

    def _scan_leaks(self, alive, last):
        # kmemleak does not report what is younger than five seconds
        self.sleep(max(0, min(last + 5.3 - self.now(), self.left())))
        problems = []
        scan = ('cd /sys/kernel/debug && echo scan > kmemleak && echo scan > kmemleak && '
                'cat kmemleak')
        for p in [self._try_start(g.rank, scan) for g in alive if not g.dead]:
            if p is None:
                continue
            try:
                if p.wait(4 * STEP_SECONDS) or p.stdout:
                    problems.append(f'node {p.node}: kmemleak: {p.stdout[:6000]}{p.stderr}')
            except (Timeout, GuestDied) as e:
                problems.append(f'node {p.node}: kmemleak: {e}')
        return problems

    # control from outside

    def serve(self, asker):
        """One that asks at the control socket."""
        with asker, contextlib.suppress(OSError):
            asker.settimeout(10 * SLACK)
            with asker.makefile('rw') as f:
                try:
                    request = json.loads(f.readline())
                    reply = {'ok': self.world.between(lambda: self.do(request))}
                except (Error, ValueError, KeyError, TypeError, IndexError) as e:
                    reply = {'error': str(e) or type(e).__name__}
                f.write(json.dumps(reply) + '\n')

    def at(self, seconds, call):
        """In virtual time: have something done so many seconds from now, while others wait."""
        if not self.virtual:
            raise Error(f'kernel {self.kernel} has no virtual time')
        self.world.at(self.now() + seconds, call)

    def do(self, request):
        """Something that was asked for from outside, or by a file of faults."""
        request = dict(request)
        what = request.pop('do')
        if what == 'info':
            return {'id': self.id, 'pid': os.getpid(), 'kernel': self.kernel,
                    'nodes': [{'pid': g.pid, 'log': g.log,
                               'state': self._state(g)} for g in self.guests]}
        if what == 'stats':
            return [[a, b, s] for (a, b), s in self.stats().items()]
        for key in ('node', 'a', 'b'):
            if request.get(key) is not None and not 0 <= request[key] < self.nodes:
                raise Error(f'no node {request[key]}')
        if what not in ('link', 'kill', 'pause', 'resume'):
            raise Error(f'no command {what}')
        return getattr(self, what)(**request)

    def _state(self, guest):
        if guest.dead:
            return 'killed' if guest.killed else 'dead'
        return 'paused' if guest.paused else 'running' if guest.ready else 'booting'
