# SPDX-License-Identifier: GPL-2.0
"""A short run of the hostile user, and the syzkaller description against the header.

SPINDLE_TEST_KERNEL chooses the kernel (default: uml-debug), SPINDLE_TEST_SECONDS how long.
"""

import os
import re
import subprocess
import sys

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'selftests', 'fuzz'))

# pylint: disable=wrong-import-position
import drive

KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml-debug')
SECONDS = int(os.environ.get('SPINDLE_TEST_SECONDS', '45'))
HEADER = os.path.join(PROJECT, 'uapi', 'linux', 'spindle.h')
SYZLANG = os.path.join(PROJECT, 'Documentation', 'syzkaller', 'spindle.txt')


def test_hostile_user():
    drive.build()
    outcome = drive.fuzz(KERNEL, SECONDS)
    assert not outcome.complaints, '\n'.join(outcome.complaints)
    # it got somewhere: inputs ran, joined the live group, and were heard there
    assert outcome.inputs >= 10
    rounds, messages, _, views = outcome.live
    assert rounds and messages and views > 6


# The description for syzkaller

def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def evaluate(expressions):
    """What they are in C."""
    lines = ''.join(f'printf("%llu\\n", (unsigned long long)({e}));\n' for e in expressions)
    source = f'''#include <stdio.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <linux/spindle.h>
int main(void) {{ {lines} return 0; }}
'''
    program = os.path.join(PROJECT, 'build', f'syzlang.{os.getpid()}')
    os.makedirs(os.path.dirname(program), exist_ok=True)
    try:
        subprocess.run(['gcc', '-x', 'c', '-I', os.path.join(PROJECT, 'uapi'), '-o', program, '-'],
                       input=source, text=True, check=True)
        done = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE)
    finally:
        if os.path.exists(program):
            os.unlink(program)
    return [int(line) for line in done.stdout.split()]


def test_syzlang_is_complete():
    header, text = read(HEADER), read(SYZLANG)
    options = set(re.findall(r'#define (SPINDLE_\w+)\s+\d+\s+/\* (?:set|get)', header))
    assert len(options) == 17
    for option in options:
        uses = re.search(rf'#define {option}\s+\d+\s+/\* (\S+)', header)[1]
        assert ('set' not in uses) or f'setsockopt${option}(' in text, option
        assert ('get' not in uses) or f'getsockopt${option}(' in text, option
    others = re.findall(r'#define (SPINDLE_CMSG_\w+|SIOC\w+|SPINDLE_F_(?!ALL)\w+|'
                        r'SPINDLE_WANT_(?!ALL)\w+)\s', header)
    others += re.findall(r'\b(SPINDLE_ALG_\w+),', header)
    for name in others:
        assert re.search(rf'\b{name}\b', text), name
    structs = set(re.findall(r'^struct (\w+) \{', header, re.M))
    # only the kernel writes these
    for name in structs - {'spindle_status', 'spindle_delivery'}:
        assert re.search(rf'^{name} \{{', text, re.M), name


def test_syzlang_numbers():
    numbers = dict(re.findall(r'^(\w+) = (\d+)$', read(SYZLANG + '.const'), re.M))
    own = numbers.pop('SOCK_SEQPACKET_NONBLOCK')
    assert int(own) == evaluate(['SOCK_SEQPACKET | SOCK_NONBLOCK'])[0]
    names = [n for n in numbers if not n.startswith('__NR_')]
    assert dict(zip(names, evaluate(names))) == {n: int(numbers[n]) for n in names}
    used = re.sub(r'\$\w+|#.*', '', read(SYZLANG))
    for name in re.findall(r'\b(?:SPINDLE|SIOC|SOL|MSG|SHUT|PROT|MAP|AF)_?[A-Z_]+\b', used):
        assert name in numbers, name


class Layout:
    """Sizes of what the description says."""

    def __init__(self, text):
        self.bodies = dict(re.findall(r'^(\w+) \{\n(.*?)^\}', text, re.M | re.S))
        self.resources = dict(re.findall(r'^resource (\w+)\[(\w+)\]', text, re.M))
        self.numbers = {n: int(v) for n, v in
                        re.findall(r'^(\w+) = (\d+)$', read(SYZLANG + '.const'), re.M)}

    def of(self, kind):
        """(size, alignment); an array of no fixed length counts nothing."""
        if match := re.fullmatch(r'int(\d+)(be)?(\[.*\])?', kind):
            return int(match[1]) // 8, int(match[1]) // 8
        kind = kind.removesuffix(' (out)')
        if kind == 'fd':
            return 4, 4
        if kind in self.resources:
            return self.of(self.resources[kind])
        if kind == 'bool32':
            return 4, 4
        if kind.startswith('ptr64['):
            return 8, 8
        if kind in self.bodies:
            return self.struct(kind)
        name, inner = re.fullmatch(r'(\w+)\[(.*)\]', kind).groups()
        what, _, last = inner.rpartition(', ')
        if name == 'string':
            return self.numbers[last], 1
        if name == 'array':
            size, align = self.of(what)
            if ':' in last:
                return 0, align
            return size * (self.numbers.get(last) or int(last)), align
        return self.of(last)

    def struct(self, name):
        size, most = 0, 1
        for field in self.bodies[name].strip().splitlines():
            one, align = self.of(field.split(None, 1)[1])
            size = -(-size // align) * align + one
            most = max(most, align)
        return -(-size // most) * most, most


def test_syzlang_sizes():
    layout = Layout(read(SYZLANG))
    names = [n for n in layout.bodies if re.search(rf'^struct {n} \{{', read(HEADER), re.M)]
    assert len(names) >= 14
    sizes = {n: layout.struct(n)[0] for n in names}
    # its members come after it
    sizes['spindle_event'] -= 4 * layout.struct('spindle_event_member')[0]
    assert sizes == dict(zip(names, evaluate([f'sizeof(struct {n})' for n in names])))
