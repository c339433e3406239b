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

SOL_SPINDLE, GROUP_CREATE, GROUP_JOIN = 0x5350, 1, 2


def number_in(path):
    with open(path, encoding='ascii') as f:
        return int(f.read())


def opened(address):
    """A Spindle socket bound to the address; Python takes it for one of a family it knows."""
    s = socket.socket(number_in('/sys/module/spindle/parameters/family'), socket.SOCK_SEQPACKET)
    s = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 0, fileno=s.detach())
    s.bind((address, 0))
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


def rank_in(address):
    """Of an unknown family's address Python gives the bytes behind the family."""
    _, data = address
    return struct.unpack_from('=HI', data)[1]


def main():
    address, contact, group, members, source, target = sys.argv[1:]
    s = opened(address)
    if contact == '-':
        create(s, group, int(members))
    else:
        join(s, group, contact)
    threading.Thread(target=send_lines, args=(s, source)).start()
    received = 0
    with open(target, 'wb') as out:
        while True:
            data, _, flags, sender = s.recvmsg(16384)
            if not flags & socket.MSG_EOR:
                break                           # the end of the stream, not an empty line
            out.write(b'%d %s\n' % (rank_in(sender), data))
            if received % 1000 == 0:
                print('at', received, flush=True)
            received += 1
    posts = number_in(f'/sys/kernel/spindle/{address}/{group}/counters/posts')
    print('end rank', rank_in(s.getsockname()), 'received', received, 'posts', posts)


if __name__ == '__main__':
    main()
