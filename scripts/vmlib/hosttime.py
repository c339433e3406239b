# SPDX-License-Identifier: GPL-2.0
"""Guests on the host's clock: the switch between them, and the thread that listens to them."""

import contextlib
import selectors
import signal
import socket
import threading
import time

from . import guests
from .base import Error, GuestDied, Timeout
from .world import SLACK, World

# UML's terminal stops for good when it is given more than 4 KiB that nobody has read yet
WINDOW = 2048
TAKE_SECONDS = 300                      # for what a guest that runs must have read by then


class HostTime(World):
    """Time passes by itself."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self._lock = threading.Lock()   # of the switch
        self._thread = None
        self._wake = None
        self._selector = None

    def _boot(self, life):
        c = self.cluster
        self._ether, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in c.guests]
        ports = [pair[0].fileno() for pair in pairs]
        try:
            self._hold_ethernet('switch', [its.fileno(), c.seed, *ports], life,
                                [its.fileno(), *ports])
            self._ether.settimeout(60 * SLACK)
            for line in c.first_links():
                self.tell(line)
            self._start_thread()
            for guest, (port, wire) in zip(c.guests, pairs):
                port.close()
                guests.boot(c, guest, wire, life)
                self._selector.register(guest.channel, selectors.EVENT_READ, ('guest', guest))
                self._wake.send(b'g')
        finally:
            its.close()
            for pair in pairs:
                pair[0].close()
                pair[1].close()

    # the thread that listens

    def _start_thread(self):
        self._wake, listen = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listen, selectors.EVENT_READ, ('wake', None))
        self._selector.register(self._control, selectors.EVENT_READ, ('control', None))
        self._thread = threading.Thread(target=self._listen, args=(listen,), daemon=True)
        self._thread.start()

    def _listen(self, wake):
        with wake, self._selector:
            while not self._stop:
                for key, _ in self._selector.select(1):
                    kind, guest = key.data
                    if kind == 'wake':
                        wake.recv(64)
                    elif kind == 'control':
                        self._serve_asker()
                    else:
                        self._hear(guest)

    def _hear(self, guest):
        try:
            data = guest.channel.recv(1 << 18)
        except OSError:
            data = b''
        if not data:
            self._selector.unregister(guest.channel)
        self.cluster.hear(guest, data)

    # what the cluster asks for

    @staticmethod
    def now():
        return time.monotonic()

    def wait(self, condition, seconds):
        with self.cluster.changed:
            return self.cluster.changed.wait_for(condition, seconds)

    @staticmethod
    def between(call):
        """Have something done for one that asks from outside."""
        return call()

    def send(self, guest, data):
        """Not to be called by the thread that listens: it may wait for the guest to read."""
        with guest.send_lock:
            for at in range(0, len(data), WINDOW // 2):
                piece = data[at:at + WINDOW // 2]
                with guest.read:
                    if not guest.read.wait_for(
                            lambda: guest.dead or guest.paused or guest.unread < WINDOW // 2,
                            TAKE_SECONDS):
                        raise Timeout(f'node {guest.rank} takes no commands')
                    if guest.dead or guest.channel is None:
                        raise GuestDied(f'node {guest.rank} is gone ({guest.dead})')
                    guest.unread += len(piece)
                try:
                    guest.channel.sendall(piece)
                except OSError as e:
                    raise GuestDied(f'node {guest.rank} is gone ({e})') from e

    def tell(self, line):
        """A command to the switch; its reply."""
        with self._lock:
            self._ether.sendall(line.encode() + b'\n')
            reply = b''
            while not reply.endswith(b'\n'):
                data = self._ether.recv(1 << 16)
                if not data:
                    raise Error('the switch is gone')
                reply += data
        return self._checked(line, reply.decode().strip())

    def kill(self, guest):
        guests.signal_pid(guest.pid, signal.SIGKILL)
        self.tell(f'port {guest.rank} stalled=1')

    def pause(self, guest):
        self.tell(f'port {guest.rank} stalled=1')
        guests.signal_pid(guest.pid, signal.SIGSTOP)

    def resume(self, guest):
        guests.signal_pid(guest.pid, signal.SIGCONT)
        self.tell(f'port {guest.rank} stalled=0')

    def finish(self):
        """Nothing is left to be told of a good run."""

    def stop(self):
        super().stop()
        if self._thread:
            # it may have ended by itself
            with contextlib.suppress(OSError):
                self._wake.send(b'x')
            self._thread.join(10)
            self._thread = None

    def end(self):
        super().end()
        for sock in [self._wake, *(g.channel for g in self.cluster.guests)]:
            if sock:
                sock.close()
        self._wake = None
        for guest in self.cluster.guests:
            guest.channel = None
