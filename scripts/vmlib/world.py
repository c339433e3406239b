# SPDX-License-Identifier: GPL-2.0
"""What the guests of a cluster live in; hosttime.py and virtual.py are the two kinds."""

import contextlib
import os
import socket
import threading

from . import guests
from .base import Error, helper

# A bound is there to end what hangs, and the load may come after the boot.
SLACK = 5


class World:
    """The process that is the Ethernet, and who asks from outside."""

    def __init__(self, cluster):
        self.cluster = cluster
        self._life = None               # open for as long as the guests may live
        self._keeper = None
        self._control = None
        self._ether = None              # a socket to the Ethernet's process
        self._stop = False

    def boot(self):
        """Start the Ethernet and the guests."""
        life, self._life = os.pipe()
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control.bind(os.path.join(self.cluster.dir, 'control'))
        self._control.listen(16)
        try:
            self._boot(life)
        finally:
            os.close(life)

    def _boot(self, life):
        raise NotImplementedError

    def _hold_ethernet(self, name, args, life, fds=(), cwd=None):
        self._keeper, _ = guests.hold(
            [helper(name), *map(str, args)], life, fds,
            os.path.join(self.cluster.dir, 'ethernet.log'), rmdir=self.cluster.dir, cwd=cwd)

    def ethernet_log(self):
        """What the Ethernet's process had to say."""
        with contextlib.suppress(OSError):
            with open(os.path.join(self.cluster.dir, 'ethernet.log'), encoding='utf-8') as f:
                return f.read().strip()
        return ''

    def _checked(self, line, reply):
        if reply.startswith('error'):
            raise Error(f'{line}: {reply}')
        return reply

    def _serve_asker(self):
        # each in a thread of its own: it may wait for the Ethernet
        asker, _ = self._control.accept()
        threading.Thread(target=self.cluster.serve, args=(asker,), daemon=True).start()

    def stop(self):
        """No guest is heard any more; they are killed then."""
        self._stop = True

    def end(self):
        """Nothing is left of it."""
        if self._life is not None:
            os.close(self._life)
            self._life = None
        for keeper in [*(g.keeper for g in self.cluster.guests), self._keeper]:
            if keeper:
                keeper.wait(20 * SLACK)
        for sock in [self._ether, self._control]:
            if sock:
                sock.close()
        self._ether = self._control = None
