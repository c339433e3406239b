# SPDX-License-Identifier: GPL-2.0
"""spindle-cp in three guests: what comes, what is refused, and what is left when somebody dies.

SPINDLE_TEST_KERNEL chooses the kernel (default: uml-debug), SPINDLE_TEST_DOORBELLS the
doorbells, of which the first is taken.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import Cluster

KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml-debug')
DOORBELL = os.environ.get('SPINDLE_TEST_DOORBELLS', 'polled').split()[0]
TOOL = os.path.join(PROJECT, 'build', 'tools', 'spindle-cp')
HOSTILE = os.path.join(PROJECT, 'build', 'selftests', 'cp_hostile')
NAMES = (f'c{i}' for i in itertools.count())
MIB = 1 << 20
LEFTOVER = re.compile(r'^\.(.*)\.spindle-[a-z0-5]{6}$')
# of a group whose nodes die: what a node that is not heard is given
SUSPECT = {'uml': '700', 'uml-debug': '2000'}.get(KERNEL, '3000')

subprocess.run(['make', '-s', '-C', PROJECT, 'tools'], check=True)
subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'selftests', 'cp')], check=True)


def quoted(words):
    return ' '.join("'" + str(w).replace("'", "'\\''") + "'" for w in words)


class Guests:
    """The cluster, and a fresh directory in each of its guests for every test."""

    def __init__(self):
        self.c = Cluster(kernel=KERNEL, nodes=3, module=True, timeout=1500,
                         modparam=f'doorbell={DOORBELL}')
        self.c.open()
        self.where = None
        self.started = []

    def begin(self):
        self.where = f'/tmp/{next(NAMES)}'
        for node in range(3):
            self.c.run(node, f'mkdir -p {self.where}/src {self.where}/dst', check=True)

    def end(self):
        for p in self.started:
            if p.running:
                p.signal(signal.SIGKILL)
                p.wait(20)
        self.started = []
        for node in range(3):
            if self.c.guests[node].killed:
                self.c.restart(node)
            elif self.where:
                self.c.run(node, f'umount {self.where}/dst 2>/dev/null; rm -rf {self.where}')
            self.c.link(node, heal=True, rate=0)
        self.c.check_logs()

    def sh(self, node, command, timeout=60):
        return self.c.run(node, f'cd {self.where or "/tmp"} && {command}', timeout=timeout,
                          check=True).stdout

    def addr(self, node):
        return self.c.env(node)['SPINDLE_ADDR']

    def start(self, node, words, cwd):
        p = self.c.start(node, f'cd {self.where}/{cwd} && exec ' + quoted(words))
        self.started.append(p)
        return p

    def send(self, *files, receivers=2, options=(), group='cp'):
        return self.start(0, [TOOL, '-A', self.addr(0), '-n', receivers, '--suspect-ms', SUSPECT,
                              '--json', *options, *files, f'{group}:'], 'src')

    def receive(self, node, *options, group='cp'):
        return self.start(node, [TOOL, '-A', self.addr(node), *options,
                                 f'{group}@{self.addr(0)}:', 'dst'], '.')

    def sums(self, node, where):
        """{path: SHA-256} of the files below a directory."""
        said = self.sh(node, f'cd {where} && find . -type f -exec sha256sum {{}} +')
        return dict(reversed(line.split('  ', 1)) for line in said.splitlines())

    def all(self, node, where='dst'):
        """Every name below a directory, one that must not be there too."""
        return sorted(self.sh(node, f'cd {where} && find . -mindepth 1 -printf "%P\\n"')
                      .splitlines())

    def leftovers(self, node):
        return [name for name in self.all(node) if LEFTOVER.match(os.path.basename(name))]

    def fill(self, name, size, node=0, where='src'):
        self.sh(node, f'head -c {size} /dev/urandom > {where}/{name}')

    def wait_part(self, node, name, size):
        """Until so much of a file has come."""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            said = self.sh(node, 'ls -ln dst/.*.spindle-* 2>/dev/null || true')
            sizes = [int(line.split()[4]) for line in said.splitlines()
                     if f'/.{name}.' in line]
            if sizes and max(sizes) >= size:
                return
            time.sleep(0.05)
        raise AssertionError(f'{size} bytes of {name} did not come: {said}')


@pytest.fixture(scope='module')
def guests_of_module():
    guests = Guests()
    try:
        yield guests
        guests.c.finish()
    finally:
        guests.c.close()


@pytest.fixture
def guests(guests_of_module):
    guests_of_module.begin()
    yield guests_of_module
    guests_of_module.end()


def result(p, status):
    """What the sender reports, once it has ended so."""
    got = p.wait(90)
    assert got == status, (got, p.stdout, p.stderr)
    said = json.loads(p.stdout.splitlines()[-1])
    assert said['ok'] == (status == 0), said
    said['by'] = {r['address']: r for r in said['receivers']}
    return said


def ended(p, status):
    got = p.wait(60)
    assert got == status, (got, p.stdout, p.stderr)
    return p.stderr


# a segment a third of a MiB, so that little is under way
SMALL = ['--max-object', '1M', '--segment', '341k']


def test_files_of_several_sizes(guests):
    """None at all, less than a message, an object, and more than the largest object."""
    for size in (0, 1, 4096, 16384, 16385, 341 * 1024, MIB + 1, 20 * MIB + 4711):
        guests.fill(f'f{size}', size)
    want = guests.sums(0, 'src')
    assert len(want) == 8
    receivers = [guests.receive(1), guests.receive(2)]
    sender = guests.send(*sorted(name[2:] for name in want), options=['--progress'])
    said = result(sender, 0)
    for p in receivers:
        ended(p, 0)
    assert said['files'] == 8 and said['failed'] == 0
    assert said['bytes'] == sum(int(name[3:]) for name in want)
    assert {r['state'] for r in said['receivers']} == {'ok'}
    assert {r['bytes'] for r in said['receivers']} == {said['bytes']}
    assert sorted(said['by']) == [guests.addr(1), guests.addr(2)]
    assert '100 %' in sender.stderr and '/s' in sender.stderr
    for node in (1, 2):
        assert guests.sums(node, 'dst') == want
        assert len(guests.all(node)) == 8
    # nothing of the group is left
    for node in range(3):
        assert guests.sh(node, f'ls /sys/kernel/spindle/{guests.addr(node)} 2>/dev/null || true') \
            == ''


def test_a_tree(guests):
    """Modes, times and links; links are not followed."""
    guests.sh(0, 'cd src && mkdir -p tree/a/b/c tree/empty && echo x > outside'
              ' && ln -s ../../outside tree/a/link && ln -s /etc tree/abs && ln -s nowhere tree/b'
              ' && echo 1 > tree/a/b/c/deep && echo 2 > "tree/a b\nc" && : > tree/-x'
              ' && chmod 751 tree/a/b && chmod 400 tree/a/b/c/deep && chmod 4755 tree/-x'
              ' && touch -d 2001-02-03T04:05:06.789 tree/a/b/c/deep tree/a/b tree/empty'
              ' && touch -h -d 1999-01-01 tree/abs && mkfifo tree/pipe && mkdir tree/locked'
              ' && echo 3 > tree/locked/in && chmod 555 tree/locked')
    show = "cd {} && find tree -printf '%P|%y|%m|%T@|%l\\n' | sort"
    receivers = [guests.receive(1), guests.receive(2)]
    sender = guests.send('tree/')
    # but the pipe, which is none of the three
    said = result(sender, 1)
    assert 'tree/pipe: neither file, directory nor link' in sender.stderr
    assert said['files'] == 4 and said['directories'] == 6 and said['links'] == 3
    assert said['failed'] == 1 and {r['state'] for r in said['receivers']} == {'ok'}
    guests.sh(0, 'cd src && rm tree/pipe && chmod 755 tree/-x')

    def listed(node, where):
        lines = guests.sh(node, show.format(where)).splitlines()
        # the top one has changed as the pipe went
        return [line for line in lines if not line.startswith('|d|')]
    want = listed(0, 'src')
    for p in receivers:
        ended(p, 0)
    for node in (1, 2):
        assert listed(node, 'dst') == want
        assert guests.sh(node, 'cat dst/tree/a/b/c/deep "dst/tree/a b\nc"') == '1\n2\n'


def test_it_refuses_to_overwrite(guests):
    guests.sh(0, 'cd src && echo new > a && echo new > b && mkdir -p d && echo new > d/c && '
              'ln -s new l')
    guests.sh(1, 'cd dst && echo old > a && ln -s old l')
    guests.sh(2, 'cd dst && mkdir -p d/c')
    receivers = [guests.receive(1), guests.receive(2)]
    said = result(guests.send('a', 'b', 'd', 'l'), 1)
    assert 'a: File exists' in ended(receivers[0], 1)
    assert 'd/c: Is a directory' in ended(receivers[1], 1)
    one, two = said['by'][guests.addr(1)], said['by'][guests.addr(2)]
    assert one['state'] == 'failed' and one['failed'] == 2 and one['error'] == 'a: File exists'
    assert two['state'] == 'failed' and two['failed'] == 1
    assert guests.sh(1, 'cat dst/a dst/b dst/d/c; readlink dst/l') == 'old\nnew\nnew\nold\n'
    assert guests.sh(2, 'cat dst/a dst/b; readlink dst/l') == 'new\nnew\nnew\n'
    assert guests.all(1) == ['a', 'b', 'd', 'd/c', 'l']
    # and if it may
    receivers = [guests.receive(1, '--overwrite'), guests.receive(2, '--overwrite')]
    said = result(guests.send('a', 'b', 'd', 'l'), 1)
    ended(receivers[0], 0)
    # a directory is nothing that a file replaces
    ended(receivers[1], 1)
    assert said['by'][guests.addr(1)]['state'] == 'ok'
    assert guests.sh(1, 'cat dst/a dst/b dst/d/c; readlink dst/l') == 'new\nnew\nnew\nnew\n'


def test_skip_same(guests):
    """What all have is not sent; what one lacks is, and the others lose nothing."""
    guests.fill('big', 3 * MIB)
    guests.fill('two', 5000)
    guests.sh(0, 'cd src && ln -s big l && : > none')
    names = ['big', 'two', 'l', 'none']
    receivers = [guests.receive(1), guests.receive(2)]
    said = result(guests.send(*names, options=SMALL), 0)
    for p in receivers:
        ended(p, 0)
    assert said['same'] == 0 and said['spared'] == 0
    guests.sh(1, 'touch -d 2005-05-05 dst/big')
    receivers = [guests.receive(1), guests.receive(2)]
    said = result(guests.send(*names, options=[*SMALL, '--skip-same']), 0)
    for p in receivers:
        ended(p, 0)
    assert said['same'] == 3 and said['spared'] == 3 * MIB + 5000
    assert {r['same'] for r in said['receivers']} == {4}
    assert guests.sh(1, 'date -r dst/big +%Y') == '2005\n'
    # one has another content, of the same length; the other one has nothing
    guests.fill('big', 3 * MIB, node=1, where='dst')
    guests.sh(2, 'rm dst/two')
    receivers = [guests.receive(1), guests.receive(2)]
    said = result(guests.send(*names, options=[*SMALL, '--skip-same']), 1)
    assert 'big: File exists' in ended(receivers[0], 1)
    ended(receivers[1], 0)
    assert guests.sums(2, 'dst') == guests.sums(0, 'src')
    assert guests.sums(1, 'dst')['./big'] != guests.sums(0, 'src')['./big']
    receivers = [guests.receive(1, '--overwrite'), guests.receive(2)]
    result(guests.send(*names, options=[*SMALL, '--skip-same']), 0)
    for p in receivers:
        ended(p, 0)
    assert guests.sums(1, 'dst') == guests.sums(0, 'src')


@pytest.mark.parametrize('how', ['program', 'guest'])
def test_a_receiver_dies_in_the_middle(guests, how):
    """The sender goes on with the other one, and says who was lost."""
    guests.fill('big', 24 * MIB)
    guests.fill('after', 100000)
    guests.c.link(0, rate='100mbit')
    receivers = [guests.receive(1), guests.receive(2)]
    sender = guests.send('big', 'after', options=SMALL)
    guests.wait_part(2, 'big', MIB)
    if how == 'guest':
        guests.c.kill(2)
    else:
        receivers[1].signal(signal.SIGKILL)
    said = result(sender, 1)
    ended(receivers[0], 0)
    assert said['files'] == 2 and said['failed'] == 0
    assert said['by'][guests.addr(1)]['state'] == 'ok'
    lost = said['by'][guests.addr(2)]
    assert lost['state'] == 'lost'
    assert lost['error'] == ('its program has ended' if how == 'program' else
                             'its node is not heard any more')
    assert guests.sums(1, 'dst') == guests.sums(0, 'src')
    if how == 'program':
        assert [LEFTOVER.match(name)[1] for name in guests.all(2)] == ['big']


@pytest.mark.parametrize('how', ['program', 'guest', 'signal'])
def test_the_sender_dies_in_the_middle(guests, how):
    """Receivers end with an error and a temporary file, with which a second run goes on."""
    size = 32 * MIB
    keep = f'{guests.c.out}/kept'
    guests.fill('big', size)
    guests.sh(0, f'cp src/big {keep}')
    guests.c.link(0, rate='100mbit')
    receivers = [guests.receive(1), guests.receive(2)]
    sender = guests.send('big', options=SMALL)
    for node in (1, 2):
        guests.wait_part(node, 'big', MIB)
    if how == 'guest':
        guests.c.kill(0)
    else:
        sender.signal(signal.SIGKILL if how == 'program' else signal.SIGTERM)
    for p in receivers:
        said = ended(p, 1)
        assert ('the sender has given up' if how == 'signal' else 'the sender is lost') in said
    for node in (1, 2):
        assert [LEFTOVER.match(name)[1] for name in guests.all(node)] == ['big']
    if how == 'guest':
        guests.c.restart(0)
        guests.c.run(0, f'mkdir -p {guests.where}/src && cp {keep} {guests.where}/src/big',
                     check=True)
    elif how == 'signal':
        assert result(sender, 1)['error'].startswith('ended by a signal')
    guests.c.link(0, rate=0)
    receivers = [guests.receive(1), guests.receive(2)]
    said = result(guests.send('big', options=[*SMALL, '--skip-same']), 0)
    for p in receivers:
        ended(p, 0)
    assert MIB // 2 <= said['spared'] < size
    for node in (1, 2):
        assert guests.all(node) == ['big']
        assert guests.sums(node, 'dst') == guests.sums(0, 'src')


def test_a_leftover_of_another_file_is_of_no_use(guests):
    guests.fill('big', 3 * MIB)
    guests.fill('.big.spindle-abcdef', MIB, node=1, where='dst')
    guests.sh(2, 'ln -s /etc/passwd dst/.big.spindle-abcdef')
    receivers = [guests.receive(1), guests.receive(2)]
    said = result(guests.send('big', options=[*SMALL, '--skip-same']), 0)
    for p in receivers:
        ended(p, 0)
    assert said['spared'] == 0
    assert guests.all(1) == ['big']
    assert guests.all(2) == ['.big.spindle-abcdef', 'big']
    for node in (1, 2):
        assert guests.sums(node, 'dst')['./big'] == guests.sums(0, 'src')['./big']


@pytest.mark.parametrize('mount,error', [
    ('size=1m', 'No space left on device'), ('ro', 'Read-only file system')])
def test_a_directory_that_cannot_take_it(guests, mount, error):
    """That one goes, and says why; the others get all."""
    guests.fill('big', 5 * MIB)
    guests.fill('after', 1000)
    guests.sh(1, f'mount -t tmpfs -o {mount} none dst')
    receivers = [guests.receive(1), guests.receive(2)]
    sender = guests.send('big', 'after', options=SMALL)
    said = result(sender, 1)
    assert f'big: {error}' in ended(receivers[0], 1)
    ended(receivers[1], 0)
    assert said['files'] == 2
    assert said['by'][guests.addr(1)]['state'] == 'left'
    assert said['by'][guests.addr(1)]['error'] == f'big: {error}'
    assert said['by'][guests.addr(2)]['state'] == 'ok'
    assert f'receiver {guests.addr(1)} gives up: big: {error}' in sender.stderr
    assert guests.all(1) == []
    assert guests.sums(2, 'dst') == guests.sums(0, 'src')


def test_nobody_is_left(guests):
    guests.fill('big', 5 * MIB)
    guests.sh(1, 'mount -t tmpfs -o size=1m none dst')
    receiver = guests.receive(1)
    said = result(guests.send('big', receivers=1, options=SMALL), 1)
    ended(receiver, 1)
    assert 'no receiver is left' in said['error']


@pytest.mark.parametrize('skip', [[], ['--skip-same']], ids=['plain', 'skip-same'])
def test_a_source_that_becomes_shorter(guests, skip):
    """Its receivers are told; the files before and behind it are not concerned."""
    for name, size in (('a', 1000), ('big', 24 * MIB), ('c', 1000)):
        guests.fill(name, size)
    guests.c.link(0, rate='100mbit')
    receivers = [guests.receive(1), guests.receive(2)]
    sender = guests.send('a', 'big', 'c', options=[*SMALL, *skip])
    guests.wait_part(1, 'big', MIB)
    guests.sh(0, 'truncate -s 2M src/big')
    said = result(sender, 1)
    assert 'big: it became shorter while it was sent' in said['error']
    assert said['files'] == 2 and said['failed'] == 1
    for p in receivers:
        assert 'big: the sender has given it up: Stale file handle' in ended(p, 1)
    assert {r['state'] for r in said['receivers']} == {'failed'}
    for node in (1, 2):
        assert guests.all(node) == ['a', 'c']


def test_a_file_that_cannot_be_read(guests):
    """It is said at once where it is; the others come."""
    guests.sh(0, 'cd src && echo 1 > a && echo 2 > b && mkdir d && echo 3 > d/c')
    receiver = guests.receive(1)
    sender = guests.send('a', 'nowhere', 'b', 'd', receivers=1)
    said = result(sender, 1)
    ended(receiver, 0)
    assert said['failed'] == 1 and said['error'] == 'nowhere: No such file or directory'
    assert guests.all(1) == ['a', 'b', 'd', 'd/c']


LONG = 'x' * 256
NOT_ALLOWED = 'a name that is not allowed'
RULES = 'does not keep to the rules'
HARM = [
    (['name', '/tmp/evil'], NOT_ALLOWED, []),
    (['name', '../evil'], NOT_ALLOWED, []),
    (['name', 'a/../../evil'], NOT_ALLOWED, []),
    (['name', '..'], NOT_ALLOWED, []),
    (['name', '.'], NOT_ALLOWED, []),
    (['name', './evil'], NOT_ALLOWED, []),
    (['name', 'a//evil'], NOT_ALLOWED, []),
    (['name', 'evil/'], NOT_ALLOWED, []),
    (['name', ''], NOT_ALLOWED, []),
    (['name', LONG], NOT_ALLOWED, []),
    (['name', '/'.join('x' * 129)], NOT_ALLOWED, []),
    (['dir', '../evil'], NOT_ALLOWED, []),
    (['dir', '/tmp/evil'], NOT_ALLOWED, []),
    (['nul'], RULES, []),
    (['short'], NOT_ALLOWED, []),
    (['twice'], RULES, ['once']),
    (['size'], RULES, []),
    (['less'], RULES, []),
    (['huge'], RULES, []),
]


@pytest.mark.parametrize('words,error,left', HARM,
                         ids=[' '.join(h[0])[:24] or 'nothing' for h in HARM])
def test_harm_ends_it(guests, words, error, left):
    receiver = guests.receive(1)
    hostile = guests.start(0, [HOSTILE, guests.addr(0), 'cp', *words], 'src')
    assert error in ended(receiver, 1)
    assert hostile.wait(60) == 0
    assert 'left: ' in hostile.stdout and 'done' not in hostile.stdout
    assert guests.all(1) == left
    assert guests.sh(1, f'ls -d /tmp/evil {guests.where}/evil /evil evil 2>/dev/null || true') == ''


def test_no_link_is_followed(guests):
    """One that was there, one that has just come, and one in the place of a file."""
    guests.sh(1, 'mkdir out && ln -s ../out dst/there && ln -s ../out/evil dst/file')
    for words in (['name', 'there/evil'], ['link', 'new', '../out'], ['link', 'abs', '/tmp'],
                  ['swap', 'both', '../out/evil'], ['name', 'file'], ['dir', 'there']):
        receiver = guests.receive(1)
        hostile = guests.start(0, [HOSTILE, guests.addr(0), 'cp', *words], 'src')
        ended(receiver, 1)
        assert hostile.wait(60) == 0
        assert 'failed: ' in hostile.stdout and 'done' in hostile.stdout
    # also if links may be replaced: then they are, and not followed
    receiver = guests.receive(1, '--overwrite')
    guests.start(0, [HOSTILE, guests.addr(0), 'cp', 'swap', 'file', '../out/evil'], 'src')
    ended(receiver, 0)
    assert guests.sh(1, 'cat dst/file') == 'evil\n'
    assert guests.all(1, 'out') == []
    assert guests.all(1) == ['abs', 'both', 'file', 'new', 'there']
    assert guests.sh(1, 'ls /tmp/evil 2>/dev/null || true') == ''


def test_a_hash_that_is_wrong(guests):
    receiver = guests.receive(1)
    hostile = guests.start(0, [HOSTILE, guests.addr(0), 'cp', 'hash'], 'src')
    assert 'hash: Bad message' in ended(receiver, 1)
    assert hostile.wait(60) == 0
    assert 'failed: hash: Bad message' in hostile.stdout and 'done' in hostile.stdout
    assert guests.all(1) == []


def test_rights_that_a_file_does_not_get(guests):
    receiver = guests.receive(1)
    guests.start(0, [HOSTILE, guests.addr(0), 'cp', 'mode'], 'src')
    ended(receiver, 0)
    assert guests.sh(1, 'stat -c %a dst/mode') == '777\n'


def test_messages_of_others_are_passed_over(guests):
    receiver = guests.receive(1)
    guests.start(0, [HOSTILE, guests.addr(0), 'cp', 'other'], 'src')
    ended(receiver, 0)
    assert guests.sh(1, 'cat dst/other') == 'evil\n'


def test_who_does_not_come(guests):
    guests.fill('a', 10)
    sender = guests.send('a', options=['--timeout', '2'])
    receiver = guests.receive(1, '--timeout', '3')
    assert sender.wait(30) == 1
    assert 'not all 2 receivers have come within 2 s' in sender.stderr
    assert receiver.wait(30) == 1
    lonely = guests.receive(2, '--timeout', '1', group='nobody')
    assert lonely.wait(30) == 1
    assert 'cannot be joined' in lonely.stderr


@pytest.mark.parametrize('words,error', [
    ([], 'FILE... NAME:'),
    (['g:'], 'FILE... NAME:'),
    (['a', 'b'], 'is a group'),
    (['g:', 'd'], 'where is the group'),
    (['g@10.0.0.1:', 'd', 'e'], 'one directory'),
    (['a', 'g@10.0.0.1:'], 'own address'),
    (['a', ':'], 'is a group'),
    (['a', 'x' * 64 + ':'], 'no name for a group'),
    (['--overwrite', 'a', 'g:'], 'for who receives'),
    (['--skip-same', 'g@10.0.0.1:', 'd'], 'for who sends'),
    (['-n', '0', 'a', 'g:'], 'a number from 1'),
    (['--algorithm', 'best', 'a', 'g:'], 'no such choice'),
    (['--block', '1', 'a', 'g:'], 'a number from 4096'),
])
def test_options_that_make_no_sense(words, error):
    done = subprocess.run([TOOL, '-A', '10.0.0.1', *words], text=True, check=False, timeout=20,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 2 and error in done.stdout, done.stdout
