#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A replicated store of keys and values, on nothing but a Spindle socket.

store.py OWN-ADDRESS [ADDRESS-OF-ANY-MEMBER]

Without the second address it begins a group of one; others join it at any time. Commands come
by lines of standard input: "set KEY VALUE", "del KEY", "get KEY", "all" and "quit". What is read
is read from memory; what is written goes through the group, and every replica applies it at the
same place of the one order. Who joins is sent the state by a member that the group names.
"""

import errno
import json
import os
import select
import socket
import struct
import sys
import time

SOL_SPINDLE, CREATE, JOIN, RECVINFO, EVENTS = 0x5350, 1, 2, 4, 10
CMSG_TO, F_STATE, MSG_EVENT = 2, 1 << 9, 0x8000
PRIVATE, UP_TO_DATE = 1 << 2, 1 << 3
EVENT_VIEW, EVENT_STATE = 1, 3
RECEIVER, SELF, STALE, GIVES = 1 << 2, 1 << 3, 1 << 4, 1 << 5
PART = 8192                                     # bytes of state in a message, and a little more
MAX_LINE = 500                                  # characters, so that a message is below 16 KiB
WORDS = {'set': 2, 'del': 1, 'get': 1, 'all': 0, 'quit': 0}


def joined(address, contact):
    """A member's socket."""
    with open('/sys/module/spindle/parameters/family', encoding='ascii') as f:
        s = socket.socket(int(f.read()), socket.SOCK_SEQPACKET)
    s = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 0, fileno=s.detach())
    s.bind((address, 0))
    s.setsockopt(SOL_SPINDLE, RECVINFO, 1)
    s.setsockopt(SOL_SPINDLE, EVENTS, 1 << EVENT_VIEW | 1 << EVENT_STATE)
    if not contact:
        s.setsockopt(SOL_SPINDLE, CREATE, struct.pack('=64s6I32x', b'store', 1, 0, 0, 0, 0, F_STATE))
        return s
    where = struct.pack('=HH4s24x', socket.AF_INET, 0, socket.inet_aton(contact))
    while True:
        try:
            s.setsockopt(SOL_SPINDLE, JOIN, struct.pack('=64s32s56x', b'store', where))
            return s
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                raise
            time.sleep(0.1)                     # the first one is not there yet


class Store:
    """One replica."""

    def __init__(self, s):
        self.socket = s
        self.data = {}
        self.held = []          # while not up to date: writes to be applied then; else None
        self.giver = None       # uid of who sends the state
        self.stale = set()      # uids of members that are not up to date
        self.served = set()     # of these, those whose state is in self.out
        self.uid = None
        self.out = []           # messages to be sent: bytes and control messages
        self.ends = False       # once these are sent

    def apply(self, key, value):
        if self.held is not None:
            self.held.append((key, value))
        elif value is None:
            self.data.pop(key, None)
        else:
            self.data[key] = value

    def serve(self):
        """Send all there is here, as of this place in the order, to who has not been sent it."""
        for uid in self.stale - self.served:
            self.served.add(uid)
            part, size = {}, 0
            for key, value in self.data.items():
                part[key] = value
                size += len(json.dumps([key, value]))
                if size > PART:
                    self.send_to(uid, part, 0)
                    part, size = {}, 0
            self.send_to(uid, part, UP_TO_DATE)

    def send_to(self, uid, part, flags):
        to = struct.pack('=IIII', uid, flags, 0, 0)
        self.out.append((json.dumps(part).encode(), [(SOL_SPINDLE, CMSG_TO, to)]))

    def begin_anew(self, giver):
        """What another one had begun to send counts no more, nor what was written before."""
        self.giver = giver
        self.data = {}
        self.held = []

    def view(self, event):
        """A view begins."""
        count, _, each = struct.unpack_from('=3I', event, 24)
        members = [struct.unpack_from('=16s4I', event, 64 + i * each) for i in range(count)]
        first = self.uid is None
        self.uid = next(uid for _, _, uid, flags, _ in members if flags & SELF)
        self.stale = {uid for _, _, uid, flags, _ in members if flags & STALE}
        senders = [uid for _, _, uid, flags, _ in members if not flags & RECEIVER]
        giver = next((uid for _, _, uid, flags, _ in members if flags & GIVES), None)
        if first and self.uid not in self.stale:
            self.held = None                            # it begins the group
        elif self.uid in self.stale and giver != self.giver:
            self.begin_anew(giver)
        if giver == self.uid:
            self.serve()
        elif self.stale and giver is None and senders[0] == self.uid:
            self.send_to(self.uid, {}, UP_TO_DATE)      # all who knew anything have gone

    def up_to_date(self, uid):
        """So is a member from here on."""
        self.stale.discard(uid)
        if uid == self.uid:
            held, self.held = self.held, None
            for write in held or []:
                self.apply(*write)
        if self.giver is None and self.uid in self.stale:
            self.begin_anew(uid)                        # the first of those who began with nothing
        elif self.giver is None and uid == self.uid:
            self.serve()

    def receive(self):
        data, control, flags, _ = self.socket.recvmsg(65536, 64)
        if not flags & socket.MSG_EOR:
            sys.exit('the group has ended')
        if flags & MSG_EVENT:
            kind, number = struct.unpack_from('=II', data)
            if kind == EVENT_VIEW:
                self.view(data)
            else:
                self.up_to_date(number)
            return
        about = struct.unpack('=QQII', control[0][2])[3]
        if not about & PRIVATE:
            self.apply(*json.loads(data))
            return
        self.data.update(json.loads(data))
        if about & UP_TO_DATE:
            self.up_to_date(self.uid)

    def send_next(self):
        """Send what has waited for longest."""
        try:
            self.socket.sendmsg([self.out[0][0]], self.out[0][1], socket.MSG_DONTWAIT)
        except OSError as e:
            if e.errno == errno.ENETDOWN:       # no majority is heard: wait until one is
                time.sleep(0.1)
            if e.errno in (errno.ENETDOWN, errno.EAGAIN):
                return
            if e.errno != errno.EHOSTUNREACH:   # who was to have it has gone
                raise
        self.out.pop(0)

    def command(self, line):
        word, *rest = line.split(maxsplit=2) or ['']
        if len(line) > MAX_LINE or len(rest) != WORDS.get(word):
            print('what?', flush=True)
        elif word == 'set':
            self.out.append((json.dumps(rest).encode(), []))
        elif word == 'del':
            self.out.append((json.dumps([rest[0], None]).encode(), []))
        elif word == 'quit':
            self.ends = True
        elif self.held is not None:
            print('not up to date', flush=True)
        else:
            print(self.data.get(*rest, '') if rest else json.dumps(self.data, sort_keys=True), flush=True)

    def run(self):
        """Whatever comes first: one thread that never waits for room, so that it always reads."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        typed = b''
        while self.out or not self.ends:
            poll.register(self.socket, select.POLLIN | (select.POLLOUT if self.out else 0))
            for fd, what in poll.poll():
                if fd == 0:
                    typed += os.read(0, 4096) or b'\nquit\n'
                    *lines, typed = typed.split(b'\n')
                    for line in filter(None, lines):
                        self.command(line.decode(errors='replace'))
                elif what & ~select.POLLOUT:
                    self.receive()
                else:
                    self.send_next()


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    Store(joined(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None)).run()
