# SPDX-License-Identifier: GPL-2.0
"""Guests on a virtual clock: the harness takes part in it, by way of the calendar.

While Python runs no virtual time passes; it passes in wait() alone. What is said to a guest is
there a tenth of a millisecond later.
"""

import contextlib
import glob
import os
import socket
import struct
import threading
import time

from . import guests
from .base import Error, GuestDied, Timeout, read, runs_dir, write
from .world import World

# see calendar.c
MSG = struct.Struct('<IIQ')
GUEST = struct.Struct('<I')
ACK, START, WAIT, RUN = 0, 1, 3, 6
FRAME, CHANNEL, COMMAND, GONE = 0x100, 0x101, 0x102, 0x104
NS = 10 ** 9
CHUNK = 8192                            # bytes of a message to a guest
SLICE = NS // 4                         # until who asks from outside is heard
HOST_SECONDS = 600                      # of the host's time, for a slice
COMPUTE_SECONDS = 300                   # of the host's time, for a guest without a system call

# ns of CPU time: a system call, cond_resched(), a frame sent, a frame received; README.md says
# where they are from
COSTS = {'syscall': 200, 'resched': 100, 'tx': 300, 'rx': 500}
PRESETS = {
    'default': COSTS,
    'zero': dict.fromkeys(COSTS, 0),
    # about what it costs a guest with the debug kernel: its time passes about as fast as the host's
    'slow': {'syscall': 5000, 'resched': 2000, 'tx': 10000, 'rx': 15000},
}
# of the Ethernet where nothing else was asked for
RATE = '100gbit'


def parse_cost(text):
    """{name: ns} of a preset's name, or 'tx=100,rx=200' (the others by default)."""
    text = text or 'default'
    if text in PRESETS:
        return PRESETS[text]
    costs = dict(COSTS)
    for part in text.split(','):
        name, _, value = part.partition('=')
        if name not in COSTS or not value.isdigit():
            raise Error(f'cost {part}: one of {", ".join(COSTS)}, and ns')
        costs[name] = int(value)
    return costs


@contextlib.contextmanager
def one_processor(run):
    """Have the processes that are started meanwhile on one processor of the host.

    They wait for one another all the time, and to wake one on another processor takes ten times
    as long as to change to it. The processor is that of the fewest runs; it is noted in the
    run's directory, for the next.
    """
    before = os.sched_getaffinity(0)
    taken = []
    for path in glob.glob(os.path.join(runs_dir(), '*', 'processor')):
        with contextlib.suppress(FileNotFoundError):
            taken.append(int(read(path)))
    chosen = min(sorted(before), key=taken.count)
    write(os.path.join(run, 'processor'), str(chosen))
    os.sched_setaffinity(0, {chosen})       # of this thread alone
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class VirtualTime(World):
    """Time passes when all that happens in it has happened."""

    def __init__(self, cluster, cost=None, pcap=None):
        super().__init__(cluster)
        self.costs = parse_cost(cost)
        self._pcap = os.path.abspath(pcap) if pcap else None
        self._time = 0                  # ns
        self._waiting = False           # the calendar has our WAIT, and we no RUN
        self._in = bytearray()
        self._out = bytearray()         # said, but not sent
        self._replies = []
        self._lock = threading.RLock()  # who has it lets time pass
        self._asked = []                # by threads that serve who asks from outside
        self._faults = []               # (ns, callable), in order
        if cluster.rate is None:
            cluster.rate = RATE

    def _boot(self, life):
        with one_processor(self.cluster.dir):
            self._start(life)
        if self._message()[0] != ACK:
            raise Error('the calendar speaks another language')
        threading.Thread(target=self._listen, daemon=True).start()

    def _start(self, life):
        c = self.cluster
        path = os.path.join(c.dir, 'calendar')
        # no path may be on a guest's command line: all on it decides on the run
        self._hold_ethernet('calendar', ['calendar', c.nodes, c.seed, COMPUTE_SECONDS,
                                         *([self._pcap] if self._pcap else [])], life, cwd=c.dir)
        self._ether = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end = time.monotonic() + HOST_SECONDS
        while self._ether.connect_ex(path):
            if self._keeper.poll() is not None or time.monotonic() > end:
                raise Error(f'the calendar did not start: {self.ethernet_log()}')
            time.sleep(0.002)
        self._ether.settimeout(1)
        for line in c.first_links():
            self._put(COMMAND, line.encode())
        self._out += MSG.pack(START, 1, c.nodes)
        self._ether.sendall(self._out)
        self._out.clear()
        for guest in c.guests:
            guests.boot_virtual(c, guest, life)

    # who asks from outside

    def _listen(self):
        with contextlib.suppress(OSError, AttributeError):
            while not self._stop:
                self._serve_asker()

    def between(self, call):
        """Have something done between two steps of who lets time pass now, if anybody does."""
        done = threading.Event()
        answer = []
        self._asked.append((call, answer, done))
        while not done.wait(0.02):
            if self._stop:
                raise Error('the run ended')
            if self._lock.acquire(blocking=False):
                try:
                    self._answer()
                finally:
                    self._lock.release()
        if isinstance(answer[0], Exception):
            raise answer[0]
        return answer[0]

    def _answer(self):
        while self._asked:
            call, answer, done = self._asked.pop(0)
            try:
                answer.append(call())
            except (Error, ValueError, KeyError, TypeError, IndexError) as e:
                answer.append(e)
            done.set()

    # the calendar

    def _put(self, op, data):
        self._out += MSG.pack(op, len(data), 0) + data

    def _read(self, length):
        end = time.monotonic() + HOST_SECONDS
        while len(self._in) < length:
            try:
                data = self._ether.recv(1 << 18)
            except socket.timeout as e:
                for g in self.cluster.guests:
                    if not self.cluster.boot_time and g.keeper and g.keeper.poll() is not None:
                        raise Error(f'node {g.rank} did not come up:\n{g.log_text()[-2000:]}') from e
                if time.monotonic() > end:
                    raise Timeout(f'nothing has happened for {HOST_SECONDS} s of the host') from e
                continue
            if not data:
                raise Error(f'the calendar is gone: {self.ethernet_log()}')
            self._in += data
        data = bytes(self._in[:length])
        del self._in[:length]
        return data

    def _message(self):
        op, length, at = MSG.unpack(self._read(MSG.size))
        return op, at, self._read(length) if op >= FRAME else b''

    def _step(self, until):
        """Let time pass until something is heard, or to a time."""
        if self._waiting:
            # what was heard last has raised something
            self._hear()
        self._ether.sendall(self._out + MSG.pack(WAIT, 0, until))
        self._out.clear()
        self._waiting = True
        self._hear()

    def _hear(self):
        while True:
            op, at, data = self._message()
            if op == RUN:
                self._time = at
                self._waiting = False
                return
            if op in (CHANNEL, GONE):
                guest = self.cluster.guests[GUEST.unpack_from(data)[0]]
                data = data[GUEST.size:]
                # only now: what hears it may look at the clock
                self._time = at
                if op == GONE:
                    guest.why = data.decode()
                    data = b''
                self.cluster.hear(guest, data)
            elif op == COMMAND:
                self._replies.append(data.decode())

    # what the cluster asks for

    def now(self):
        return self._time / NS

    def wait(self, condition, seconds):
        with self._lock:
            end = self._time + int(seconds * NS)
            while not condition():
                if self._time >= end:
                    return False
                self._answer()
                while self._faults and self._faults[0][0] <= self._time:
                    self._faults.pop(0)[1]()
                upto = min(end, self._time + SLICE)
                if self._faults:
                    upto = min(upto, max(self._faults[0][0], self._time + 1))
                self._step(upto)
            return condition()

    def at(self, seconds, call):
        """Have something done at a time, by whoever lets it pass then."""
        self._faults.append((int(seconds * NS), call))
        self._faults.sort(key=lambda fault: fault[0])

    def send(self, guest, data):
        if guest.dead or self._ether is None:
            raise GuestDied(f'node {guest.rank} is gone ({guest.dead})')
        for at in range(0, len(data), CHUNK):
            self._put(CHANNEL, GUEST.pack(guest.rank) + data[at:at + CHUNK])

    def tell(self, line):
        """A command to the calendar; its reply, once it has happened."""
        with self._lock:
            self._put(COMMAND, line.encode())
            while not self._replies:
                self._step(self._time + SLICE)
            return self._checked(line, self._replies.pop(0))

    def kill(self, guest):
        self.tell(f'kill {guest.rank}')

    def pause(self, guest):
        self.tell(f'pause {guest.rank}')

    def resume(self, guest):
        self.tell(f'resume {guest.rank}')

    def finish(self):
        """The last line of a good run."""
        ns, frames, digest, _ = self.tell('digest').split()
        self.cluster.digest = f'virtual: {int(ns) / NS:.6f} s, {frames} frames, digest {digest}'

    def end(self):
        if self._ether:
            # the calendar ends with its harness, when it has written what it captured
            with contextlib.suppress(OSError):
                self._ether.settimeout(HOST_SECONDS)
                self._ether.shutdown(socket.SHUT_WR)
                while self._ether.recv(1 << 18):
                    pass
            self._ether.close()
            self._ether = None
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
        super().end()
