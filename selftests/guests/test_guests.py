# SPDX-License-Identifier: GPL-2.0
"""The module in guests: the C selftests in one of them, and groups across several.

Each test of the C programs is a case of its own here. A program runs once for
all its chosen tests, in a guest that they share; when a test takes the guest
down with it, the rest goes on in a new one.

SPINDLE_TEST_KERNEL chooses the kernel (default: uml-debug), SPINDLE_TEST_DOORBELLS
the doorbells.
"""

import itertools
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import Cluster, Error, GuestDied, KernelComplaint, Timeout

KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml-debug')
DOORBELLS = os.environ.get('SPINDLE_TEST_DOORBELLS', 'polled completion').split()
BIN = os.path.join(PROJECT, 'build', 'selftests')
PROGRAMS = ['socket_test', 'objects_test', 'rings_test', 'detach_test', 'slow_test', 'sysfs_test',
            'events_test', 'keys_test', 'keys_peer_test', 'views_test', 'group_test', 'hostile_test',
            'peer_test', 'limits_test', 'module_test']
SCALE = {'uml': 1, 'uml-debug': 1, 'debian-6.1': 2, 'debian-6.12': 2}.get(KERNEL, 4)
ADDRS = 16
MAX_BOOTS = 8                           # of new guests, for tests that end theirs
FOREVER = str(2 ** 64 - 1)
# within this time it is known whom the others wait for
NODE_LOST = 20 * SCALE


def build():
    for part in ('socket', 'userlib'):
        subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'selftests', part)], check=True)


def names_of(program):
    done = subprocess.run([os.path.join(BIN, program), '--list'], check=True, text=True,
                          stdout=subprocess.PIPE)
    return done.stdout.split()


build()
CASES = [(program, name) for program in PROGRAMS for name in names_of(program)]


# One guest with many addresses, for the C programs

class Outcome:
    """What became of one C test."""

    def __init__(self, ok, text, skipped=False):
        self.ok = ok
        self.text = text
        self.skipped = skipped


def parse(text):
    """The outcomes in a TAP stream, by name, and the lines after the last of them."""
    found, notes = {}, []
    for line in text.splitlines():
        match = re.match(r'(not )?ok \d+ - (\w+)(.*)', line)
        if match:
            why = '\n'.join([*notes, line])
            found[match[2]] = Outcome(not match[1], why, '# SKIP' in match[3])
            notes = []
        elif not line.startswith(('TAP version', '1..')):
            notes.append(line)
    return found, '\n'.join(notes)


class SharedGuest:
    """A guest for all programs under one doorbell."""

    def __init__(self, doorbell):
        self.doorbell = doorbell
        self.cluster = None
        self.boots = 0
        self.outcomes = {}
        self.complaints = {}

    def up(self):
        if self.cluster is None:
            self.boots += 1
            cluster = Cluster(kernel=KERNEL, nodes=1, addrs=ADDRS, module=True, timeout=3000, mem='1G',
                              modparam=f'doorbell={self.doorbell}')
            cluster.open()
            self.cluster = cluster
        return self.cluster

    def down(self):
        if self.cluster:
            self.cluster.close()
            self.cluster = None

    def run(self, program, names):
        """Run the tests that have no outcome yet."""
        outcomes = self.outcomes.setdefault(program, {})
        while left := [n for n in names if n not in outcomes]:
            if self.boots >= MAX_BOOTS:
                for name in left:
                    outcomes[name] = Outcome(False, 'not run: too many guests went down before')
                break
            self.run_once(program, left, outcomes)
        return outcomes

    def run_once(self, program, left, outcomes):
        cluster = self.up()
        p = cluster.start(0, [os.path.join(BIN, program), *left],
                          env={'SPINDLE_TIMEOUT_SCALE': SCALE})
        end = ''
        try:
            p.wait(1500)
        except (GuestDied, Timeout) as e:
            end = str(e)
        found, rest = parse(p.stdout)
        outcomes.update(found)
        said = self.complain(program)
        culprit = next((n for n in left if n not in found), None)
        if culprit:
            log = '\n'.join(cluster.log(0).splitlines()[-60:])
            outcomes[culprit] = Outcome(False, f'{end}\n{rest}\n{p.stderr}\n{said}\n{log}')
            self.down()

    def complain(self, program):
        try:
            self.cluster.check_logs()
        except KernelComplaint as e:
            self.complaints[program] = self.complaints.get(program, '') + str(e)
            return str(e)
        return ''


@pytest.fixture(scope='session', params=DOORBELLS)
def shared(request):
    guest = SharedGuest(request.param)
    yield guest
    try:
        if guest.cluster:
            # the module and the device leave, nothing was leaked
            guest.cluster.finish()
    finally:
        guest.down()


def chosen(request, program):
    """The tests of the program that this run of pytest wants under the same doorbell."""
    own = request.node.callspec.params['shared']
    return [item.callspec.params['case'][1] for item in request.session.items
            if getattr(item, 'callspec', None) and 'case' in item.callspec.params and
            item.callspec.params['case'][0] == program and
            item.callspec.params['shared'] == own]


@pytest.mark.parametrize('case', CASES, ids=lambda case: f'{case[0]}-{case[1]}')
def test_program(shared, case, request):
    program, name = case
    if name not in shared.outcomes.get(program, {}):
        shared.run(program, chosen(request, program) or [name])
    outcome = shared.outcomes[program][name]
    if outcome.skipped:
        pytest.skip(outcome.text)
    assert outcome.ok, outcome.text


@pytest.mark.parametrize('program', PROGRAMS)
def test_kernel_is_content_with(shared, program):
    """The kernel log of what ran before has no complaint in it."""
    if program not in shared.outcomes:
        pytest.skip('not run')
    assert program not in shared.complaints, shared.complaints[program]


# Several guests

@pytest.fixture(scope='module', params=DOORBELLS)
def trio(request):
    """Three guests for tests that leave them as they found them."""
    cluster = Cluster(kernel=KERNEL, nodes=3, module=True, timeout=1500,
                      modparam=f'doorbell={request.param}')
    with cluster:
        yield cluster


@pytest.fixture(params=DOORBELLS)
def fresh(request):
    """Three guests for one test that treats them badly."""
    cluster = Cluster(kernel=KERNEL, nodes=3, module=True, timeout=400, leaks=False,
                      modparam=f'doorbell={request.param}')
    with cluster:
        yield cluster


NAMES = (f'g{i}' for i in itertools.count())


class Job:
    """A member on each of some nodes."""

    def __init__(self, c, nodes=(0, 1, 2), name=None, order=None, own=None, **options):
        self.c = c
        self.name = name or next(NAMES)
        self.nodes = list(nodes)
        self.members = {}
        self.own = own or {}
        self.options = {'members': len(self.nodes), **options}
        for i in order or range(len(self.nodes)):
            self.start(i)

    def start(self, i):
        """The i-th member; the first makes the group."""
        node = self.nodes[i]
        argv = [os.path.join(BIN, 'member'), '--name', self.name, '--order', self.order_file(i)]
        if i:
            argv += ['--contact', self.c.env(self.nodes[0])['SPINDLE_ADDR']]
        for key, value in {**self.options, **self.own.get(i, {})}.items():
            argv += [f'--{key}'] + ([] if value is True else [str(value)])
        self.members[i] = self.c.start(node, argv)

    def order_file(self, i):
        return os.path.join(self.c.out, f'{self.name}.{i}')

    def wait_talking(self, timeout=60 * SCALE):
        for p in self.members.values():
            p.wait_output('sending', timeout)

    def wait_active(self, timeout=60 * SCALE):
        for p in self.members.values():
            p.wait_output('active', timeout)

    def done(self, timeout=120 * SCALE):
        """All have ended in order and received the same."""
        lines = {}
        for i, p in self.members.items():
            status = p.wait(timeout)
            assert status == 0, f'member {i}: status {status}\n{p.stdout}{p.stderr}'
            lines[i] = re.search(r'^done (\d+) (\d+) (\w+)$', p.stdout, re.M).groups()
        total = sum(int(sent) for _, sent, _ in lines.values())
        for i, (received, _, hash_) in lines.items():
            assert int(received) == total, f'member {i} received {received} of {total}'
            assert hash_ == lines[0][2], f'member {i} has another order'
        return total


@pytest.mark.parametrize('order', [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)],
                         ids=lambda o: ''.join(map(str, o)))
def test_three_guests_in_any_order_of_start(trio, order):
    total = Job(trio, order=order, messages=1000, max=1500).done()
    assert total == 3000


def test_threads_in_three_guests(trio):
    Job(trio, messages=1000, max=1500, threads=True).done()


def test_two_members_on_each_guest(trio):
    assert Job(trio, nodes=(0, 1, 2, 0, 1, 2), messages=300, max=1000).done() == 1800


def test_small_window_across_guests(trio):
    Job(trio, messages=500, max=3000, window=4096, depth=16).done()


def test_silent_guest(trio):
    Job(trio, messages=1000, max=500, own={1: {'messages': 0}}).done()


def test_listening_guest(trio):
    Job(trio, messages=1000, max=500, own={2: {'receiver': True}}).done()


@pytest.mark.parametrize('wait', ['block', 'adaptive', 'spin'])
def test_libspindle_across_guests(trio, wait):
    """Six members, one of them only listening, all by mapped rings."""
    name = next(NAMES)
    ring_member = os.path.join(BIN, 'ring_member')
    first = trio.env(0)['SPINDLE_ADDR']
    members = []
    for i in range(6):
        messages = '-' if i == 4 else '600'
        members.append(trio.start(i % 3, [ring_member, trio.env(i % 3)['SPINDLE_ADDR'], name,
                                          first if i else '-', '6', messages, '700', wait]))
    orders = set()
    for p in members:
        assert p.wait(120 * SCALE) == 0, p.stdout + p.stderr
        found = re.search(r'received (\d+) .* order (\w+)', p.stdout)
        assert found[1] == str(5 * 600), p.stdout
        orders.add(found[2])
    assert len(orders) == 1, orders


def test_slow_guest(trio):
    Job(trio, messages=200, max=1000, window=8192, depth=16, own={1: {'slow': 2000}}).done()


def test_one_sender_across_guests(trio):
    assert Job(trio, messages=2000, max=1000, senders=1).done() == 2000


def test_groups_side_by_side(trio):
    jobs = [Job(trio, messages=300, max=800), Job(trio, nodes=(1, 2), messages=500, max=300),
            Job(trio, nodes=(2, 0, 1), messages=200, max=1000, threads=True)]
    for job in jobs:
        job.done()


def test_same_name_again_and_again(trio):
    for _ in range(4):
        Job(trio, name='again', messages=50, max=300).done()


def test_slow_wire(trio):
    trio.link(0, 1, delay='5ms')
    try:
        Job(trio, messages=300, max=1000).done()
    finally:
        trio.link(0, 1, delay=0)


def test_lossy_wire(trio):
    for other in (1, 2):
        trio.link(0, other, loss='0.5%')
    try:
        Job(trio, messages=300, max=1000).done(200 * SCALE)
    finally:
        for other in (1, 2):
            trio.link(0, other, loss=0)


PROBE = r'''
import json, socket, struct, sys
def main(own, contact, name):
    with open("/sys/module/spindle/parameters/family") as f:
        s = socket.socket(int(f.read()), socket.SOCK_SEQPACKET)
    a = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 0, fileno=s.fileno())
    a.bind((own, 0))
    a.detach()
    where = struct.pack("=HH4s24x", socket.AF_INET, 0, socket.inet_aton(contact))
    try:
        s.setsockopt(0x5350, 2, struct.pack("=64s32s56x", name.encode(), where))
    except OSError as e:
        print(json.dumps(e.errno))
    else:
        print(json.dumps(0))
main(*sys.argv[1:])
'''


def join_error(c, node, contact, name='nobody-has-it'):
    """The errno of one try to join from a node."""
    own = c.env(node)['SPINDLE_ADDR']
    done = c.run(node, ['/usr/bin/python3', '-I', '-c', PROBE, own, contact, name], check=True)
    return os.strerror(json.loads(done.stdout))


def test_join_where_nobody_listens(trio):
    assert join_error(trio, 0, trio.env(1)['SPINDLE_ADDR']) == 'Connection refused'


def test_join_where_no_module_is(fresh):
    fresh.run(1, 'rmmod spindle', check=True)
    assert join_error(fresh, 0, fresh.env(1)['SPINDLE_ADDR']) == 'Connection refused'


def test_join_unknown_group_on_another_guest(trio):
    job = Job(trio, nodes=(0, 1), messages=FOREVER, max=100)
    job.wait_talking()
    where = trio.env(0)['SPINDLE_ADDR']
    assert join_error(trio, 2, where) == 'No such file or directory'
    # a group that talks takes in who asks
    assert join_error(trio, 2, where, job.name) == 'Success'
    for p in job.members.values():
        p.signal(signal.SIGKILL)
        p.wait(30)


def test_join_a_guest_that_is_cut_off(fresh):
    fresh.link(1, cut=True)
    start = time.monotonic()
    error = join_error(fresh, 0, fresh.env(1)['SPINDLE_ADDR'])
    assert error in ('No route to host', 'Connection timed out')
    assert time.monotonic() - start < 25 * SCALE


def test_short_cut_heals(fresh):
    """A wire that is back soon costs time, not the group."""
    job = Job(fresh, messages=3000, max=1000)
    job.wait_talking()
    fresh.link(0, 1, cut=True)
    fresh.link(0, 1, heal=True)
    job.done(200 * SCALE)


def test_stopped_guest_is_named(fresh):
    """Until the next view is without it, the others say whom they wait for."""
    job = Job(fresh, messages=FOREVER, max=1000, window=8192)
    job.wait_talking()
    where = f'/sys/kernel/spindle/{fresh.env(0)["SPINDLE_ADDR"]}/{job.name}/slow'
    for node in range(3):
        assert fresh.env(node)['SPINDLE_ADDR'] not in \
            fresh.run(0, ['cat', where], check=True).stdout
    fresh.pause(2)
    addr = re.escape(fresh.env(2)['SPINDLE_ADDR'])
    # it depends on what it had told last; who lacks its turn may be named as well
    line = rf'^node \d {addr} stage (receive|consume) lag \d+ messages$'
    end, said = time.monotonic() + NODE_LOST, ''
    while not re.search(line, said, re.M):
        assert time.monotonic() < end, said
        said = fresh.run(0, ['cat', where]).stdout
    # the kernel's log has it, too
    assert re.search(rf'node \d \({addr}\) is slow: stage (receive|consume)', fresh.log(0))
    fresh.resume(2)
    for p in job.members.values():
        p.signal(signal.SIGKILL)


def test_node_behind_a_slow_wire_is_named(fresh):
    fresh.run(0, 'echo 20 > /sys/module/spindle/parameters/slow_ms', check=True)
    fresh.link(0, 1, delay='50ms')
    job = Job(fresh, messages=FOREVER, max=1000, window=8192)
    job.wait_talking()
    where = f'/sys/kernel/spindle/{fresh.env(0)["SPINDLE_ADDR"]}/{job.name}/slow'
    addr = re.escape(fresh.env(1)['SPINDLE_ADDR'])
    end, said = time.monotonic() + 30 * SCALE, ''
    while not re.search(rf'^node \d {addr} stage receive lag \d+ messages$', said, re.M):
        assert time.monotonic() < end, said
        said = fresh.run(0, ['cat', where], check=True).stdout
    for p in job.members.values():
        p.signal(signal.SIGKILL)
        p.wait(30)


def test_unload_while_others_talk(fresh):
    whole = Job(fresh, messages=FOREVER, max=500)
    pair = Job(fresh, nodes=(0, 1), messages=FOREVER, max=500)
    whole.wait_talking()
    pair.wait_talking()
    assert fresh.run(2, 'rmmod spindle').status != 0
    whole.members[2].signal(signal.SIGKILL)
    end = time.monotonic() + 30 * SCALE
    while fresh.run(2, 'rmmod spindle').status:
        assert time.monotonic() < end, 'the module does not leave'
    # those two never noticed
    assert all(p.running for p in pair.members.values())
    fresh.run(2, ['insmod', fresh.module], check=True)
    Job(fresh, messages=200, max=500).done()
    for p in (*pair.members.values(), whole.members[0], whole.members[1]):
        p.signal(signal.SIGKILL)


def test_sysfs_across_guests(trio):
    job = Job(trio, messages=FOREVER, max=1000, window=65536, depth=64)
    job.wait_talking()
    addrs = [trio.env(i)['SPINDLE_ADDR'] for i in range(3)]
    for i in range(3):
        top = f'/sys/kernel/spindle/{addrs[i]}/{job.name}'
        files = 'state error members senders window depth addresses counters/rdma_writes'
        done = trio.run(i, f'cd {top} && for f in {files}; do echo "== $f"; cat $f; done; '
                        'echo "== end"', check=True)
        seen = dict(re.findall(r'== (\S+)\n(.*?)(?=\n==)', done.stdout, re.S))
        writes = int(seen.pop('counters/rdma_writes'))
        assert set(seen.pop('addresses').split()) == set(addrs)
        assert seen == {'state': 'active', 'error': '0', 'members': '3', 'senders': '3',
                        'window': '65536', 'depth': '64'}
        assert writes > 0
    for p in job.members.values():
        p.signal(signal.SIGKILL)
        p.wait(30)


def test_example_of_the_readme(trio):
    """It is run as it stands there."""
    with open(os.path.join(PROJECT, 'README.md'), encoding='utf-8') as f:
        code = re.search(r'```python\n(.*?)```', f.read(), re.S)[1]
    path = os.path.join(trio.out, 'chat.py')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(code)
    said, first = [], trio.env(0)['SPINDLE_ADDR']
    for i in range(3):
        talk = f'printf "hello from {i}\\nbye\\n" | /usr/bin/python3 {path} '
        if i:
            talk = f'until {talk} $SPINDLE_ADDR {first}; do sleep 0.1; done'
        else:
            talk += first
        said.append(trio.start(i, talk))
    for p in said:
        assert p.wait(60 * SCALE) == 0, p.stderr
    assert said[0].stdout == said[1].stdout == said[2].stdout
    assert sorted(line.split(' ', 1)[1] for line in said[0].stdout.splitlines()) == \
        ['bye'] * 3 + [f'hello from {i}' for i in range(3)]


def test_demo_order_without_guests_left_over():
    """The demo, on the fast kernel: one order, status 0, nothing of it left."""
    before = set(os.listdir('/tmp'))
    done = subprocess.run([os.path.join(PROJECT, 'scripts', 'demo'), '--kernel', 'uml', '--mb',
                           '0.2'], text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r'spindle demo: 3 nodes, \d+ messages, one order: yes', last), done.stdout
    assert done.returncode == 0
    assert not [n for n in set(os.listdir('/tmp')) - before if n.startswith('spindle-demo-')]


def test_demo_interrupted():
    """On SIGINT the demo ends everything it started."""
    with subprocess.Popen([os.path.join(PROJECT, 'scripts', 'demo'), '--kernel', 'uml'],
                          text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as p:
        for line in p.stdout:
            if 'machines up' in line:
                break
        p.send_signal(signal.SIGINT)
        rest = p.stdout.read()
        assert p.wait(60) == 130, rest
    assert 'interrupted' in rest


def test_probe_speaks_the_contract():
    """The structures that the Python programs pack have the sizes of the header."""
    assert struct.calcsize('=64s32s56x') == 152
    assert struct.calcsize('=64s6I32x') == 120
    assert issubclass(Timeout, Error)
