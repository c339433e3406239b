#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One member of a group: what stream.c does, with nothing but Python's own library.

stream.py ADDRESS CONTACT|- GROUP MEMBERS FILE OUT
"""

import errno
import socket
import struct
import sys
import threading
import time

SOL_SPINDLE, GROUP_CREATE, GROUP_JOIN, EVENTS = 0x5350, 1, 2, 10
WANT_VIEW, MSG_EVENT = 1 << 1, 0x8000


def number_in(path):
    with open(path, encoding='ascii') as f:
        return int(f.read())


def opened(address):
    """A Spindle socket bound to the address; Python takes it for one of a family it knows."""
    s = socket.socket(number_in('/sys/module/spindle/parameters/family'), socket.SOCK_SEQPACKET)
    s = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 0, fileno=s.detach())
    s.bind((address, 0))
    s.setsockopt(SOL_SPINDLE, EVENTS, WANT_VIEW)
    return s


def create(s, name, members):
    s.setsockopt(SOL_SPINDLE, GROUP_CREATE,
                 struct.pack('=64s6I32x', name.encode(), members, 0, 0, 0, 0, 0))


def join(s, name, contact):
    where = struct.pack('=HH4s24x', socket.AF_INET, 0, socket.inet_aton(contact))
    while True:
        try:
            s.setsockopt(SOL_SPINDLE, GROUP_JOIN, struct.pack('=64s32s24x32x', name.encode(), where))
            return
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                raise
            time.sleep(0.02)                    # the creator is not there yet


def send_lines(s, path):
    with open(path, 'rb') as f:
        for line in f:
            s.send(line.rstrip(b'\n'))
    s.shutdown(socket.SHUT_WR)


def rank_in(sender):
    """Of an unknown family's address Python gives 14 bytes behind the family."""
    _, data = sender
    return struct.unpack_from('=HI', data)[1]


def view_in(event):
    """The view's number and the addresses of its members."""
    view, _, count, _, size = struct.unpack_from('=QQ3I', event, 8)
    return view, [socket.inet_ntoa(event[i * size + 76:i * size + 80]) for i in range(count)]


def main():
    address, contact, group, members, source, target = sys.argv[1:]
    s = opened(address)
    if contact == '-':
        create(s, group, int(members))
    else:
        join(s, group, contact)
    threading.Thread(target=send_lines, args=(s, source), daemon=True).start()
    received = 0
    with open(target, 'wb') as out:
        while True:
            data, _, flags, sender = s.recvmsg(16384)
            if not flags & socket.MSG_EOR:
                break                           # the end of the stream, not an empty line
            if flags & MSG_EVENT:
                view, addresses = view_in(data)
                out.write(f'view {view} {" ".join(addresses)}\n'.encode())
                print('view', view, 'at', received, flush=True)
                continue
            out.write(b'%s %s\n' % (addresses[rank_in(sender)].encode(), data))
            received += 1
            if received % 1000 == 0:
                print('at', received, flush=True)
    posts = number_in(f'/sys/kernel/spindle/{address}/{group}/counters/posts')
    print('end received', received, 'posts', posts)


if __name__ == '__main__':
    main()
