# SPDX-License-Identifier: GPL-2.0
"""The harness itself: what scripts/vm and its Python API promise."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts')
sys.path.insert(0, os.path.realpath(SCRIPTS))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import Cluster, Error, GuestDied, KernelComplaint, Timeout
from vmlib import cli, cluster, complaints
from vmlib.base import helper, runs_dir

VM = os.path.join(SCRIPTS, 'vm')


def vm(*args, timeout=600):
    return subprocess.run([VM, *args], capture_output=True, text=True, timeout=timeout,
                          check=False)


def until(condition, seconds=300):
    """Wait for what takes an unknown but short time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, 'it did not come about'
        time.sleep(0.02)


def ping(c, a, b):
    """Whether node a reaches node b within a second."""
    return c.run(a, ['ping', '-c', '1', '-W', '1', c.env(b)['SPINDLE_ADDR']]).status == 0


def reaches(c, a, b):
    """Node a reaches node b, in however long it takes."""
    until(lambda: ping(c, a, b))
    return True


def round_trips(c, a, b, count=20):
    text = c.run(a, f'ping -c {count} -i 0.02 -W 5 {c.env(b)["SPINDLE_ADDR"]}').stdout
    return text, [float(t) for t in re.findall(r'time=([\d.]+)', text)]


def ended(pid):
    """Whether a process is gone, or a zombie that only its parent can remove."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as f:
            return f.read().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


def processes_of(run_id):
    """The pids of processes that have a run's directory in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                if os.path.join(runs_dir(), run_id).encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.fixture(scope='module', params=['uml', 'virtual'])
def pair(request):
    with Cluster(kernel=request.param, nodes=2, module=False) as c:
        yield c


@pytest.fixture(autouse=True)
def mended(request):
    yield
    if 'pair' in request.fixturenames:
        request.getfixturevalue('pair').link(0, 1, heal=True, rate=0, delay=0, loss=0)


def test_environment(pair):
    env = dict(line.split('=', 1) for line in
               pair.run(1, 'env', check=True).stdout.splitlines() if '=' in line)
    assert env['SPINDLE_RANK'] == '1'
    assert env['SPINDLE_NODES'] == '2'
    assert env['SPINDLE_ADDR'] == '10.77.0.2'
    assert env['SPINDLE_PEERS'] == '10.77.0.1 10.77.0.2'
    assert env['SPINDLE_KERNEL'] == 'uml'


def test_network_and_rdma_are_up(pair):
    assert reaches(pair, 0, 1)
    show = pair.run(0, 'cat /sys/class/net/eth0/mtu; rdma link; ibv_devinfo | grep active_mtu')
    assert show.stdout.startswith('4300\n')
    assert 'rxe0/1 state ACTIVE' in show.stdout
    assert '4096' in show.stdout


def test_rdma_between_guests(pair):
    server = pair.start(0, ['rping', '-s', '-C', '50', '-a', '10.77.0.1'])
    # rping prints nothing before its first client; the client may come too early
    until(lambda: pair.run(1, 'rping -c -C 50 -a 10.77.0.1').status == 0)
    assert server.wait(20) == 0


def test_commands(pair):
    r = pair.run(0, 'echo out; echo err >&2; exit 7')
    assert (r.status, r.stdout, r.stderr) == (7, 'out\n', 'err\n')
    assert pair.run(0, ['sh', '-c', 'kill -9 $$']).status == -9
    assert pair.run(0, ['no-such-program']).status == 127
    assert pair.run(0, 'pwd; echo $X', cwd='/usr', env={'X': 'a b'}).stdout == '/usr\na b\n'
    big = pair.run(0, 'head -c 3000000 /dev/zero').stdout
    assert len(big) == 3000000
    with pytest.raises(Error):
        pair.run(0, 'false', check=True)
    with pytest.raises(Timeout):
        pair.run(0, 'sleep 100', timeout=0.2)


def test_concurrent_commands_and_signals(pair):
    lines = []
    slow = [pair.start(0, ['sleep', '100']) for _ in range(10)]
    p = pair.start(0, 'trap "echo bye; exit 3" TERM; echo ready; while :; do sleep 0.01; done',
                   on_line=lambda _, stream, line: lines.append((stream, line)))
    p.wait_output('ready')
    p.signal(signal.SIGTERM)
    assert p.wait(10) == 3
    # the shell may have a word on stderr about its killed sleep
    assert [line for line in lines if line[0] == 'stdout'] == [('stdout', 'ready'), ('stdout', 'bye')]
    for s in slow:
        s.signal(signal.SIGKILL)
    assert [s.wait(10) for s in slow] == [-9] * 10


def test_host_files_are_safe_and_results_come_back(pair):
    here = os.path.abspath(__file__)
    before = os.stat(here).st_mtime_ns
    pair.run(0, f'test -s {here} && echo x >> {here}', check=True)
    assert os.stat(here).st_mtime_ns == before
    pair.run(1, 'echo mine > $SPINDLE_OUT/result', check=True)
    with open(os.path.join(pair.out, 'result'), encoding='ascii') as f:
        assert f.read() == 'mine\n'


def test_cut_and_heal(pair):
    pair.link(0, 1, cut=True)
    assert not ping(pair, 0, 1)
    pair.link(0, 1, heal=True)
    assert reaches(pair, 0, 1)
    pair.link(0, 1, cut=True, directed=True)
    assert not ping(pair, 1, 0)
    pair.link(0, 1, heal=True, directed=True)
    assert reaches(pair, 1, 0)


def test_delay(pair):
    reaches(pair, 0, 1)
    pair.link(0, 1, delay='10ms')
    _, times = round_trips(pair, 0, 1, 5)
    assert times and min(times) >= 20


def test_loss(pair):
    before = pair.stats()[0, 1]
    pair.link(0, 1, loss='30%', directed=True)
    text, times = round_trips(pair, 0, 1, 60)
    # how many, the seed decides: survivors() counts them
    assert len(times) < 60, text
    assert pair.stats()[0, 1]['lost'] > before['lost']


def survivors(seed):
    """Which of 200 numbered frames a lossy switch with that seed lets through."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ends = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
    ports = [end[1].fileno() for end in ends]
    with subprocess.Popen([helper('switch'), str(its.fileno()), str(seed), *map(str, ports)],
                          pass_fds=[its.fileno(), *ports]) as p:
        its.close()
        mine.sendall(b'link 0 1 loss=300000\n')
        assert mine.recv(16) == b'ok\n'
        frame = bytes([0x52, 0x54, 0, 0x4d, 0, 1, 0x52, 0x54, 0, 0x4d, 0, 0, 8, 0])
        ends[1][0].settimeout(300)
        for i in range(200):
            ends[0][0].send(frame + bytes([i]))
        frames = lost = 0
        while frames + lost < 200:
            mine.sendall(b'stats\n')
            frames, _, lost = map(int, mine.recv(4096).split(b';')[0].split()[2:5])
        got = [ends[1][0].recv(2048)[14] for _ in range(frames)]
        mine.close()
        p.wait(300)
    for end in ends:
        end[0].close()
        end[1].close()
    return got


def test_a_seed_decides_which_frames_are_lost():
    assert survivors(1) == survivors(1) != survivors(2)
    assert 100 < len(survivors(1)) < 180


def test_rate(pair):
    pair.link(0, 1, rate='8mbit')
    _, times = round_trips(pair, 0, 1, 3)
    # 4000 bytes take 4 ms a way
    text = pair.run(0, 'ping -c 3 -i 0.05 -s 4000 10.77.0.2').stdout
    assert min(float(t) for t in re.findall(r'time=([\d.]+)', text)) >= 8, (times, text)


def test_pause_and_resume(pair):
    pair.pause(1)
    assert not ping(pair, 0, 1)
    pair.resume(1)
    assert reaches(pair, 0, 1)


def test_commands_from_another_shell(pair):
    listed = vm('ps').stdout
    assert pair.id in listed and 'node 1' in listed
    assert vm('link', '--id', pair.id, '0', '1', 'cut').returncode == 0
    assert not ping(pair, 0, 1)
    assert vm('link', '--id', pair.id, '0', '1', 'heal', 'delay=1ms').returncode == 0
    assert reaches(pair, 0, 1)
    assert vm('pause', '--id', pair.id, '1').returncode == 0
    assert 'paused' in vm('ps').stdout
    assert vm('resume', '--id', pair.id, '1').returncode == 0
    assert vm('kill', '--id', pair.id, '9').returncode == 1
    assert '0 1 ' in vm('stats', '--id', pair.id).stdout


def test_a_killed_node_is_gone_and_the_others_go_on():
    with Cluster(kernel='uml', nodes=3, module=False) as c:
        lost = c.start(2, ['sleep', '100'])
        c.kill(2)
        with pytest.raises(GuestDied):
            lost.wait(10)
        with pytest.raises(GuestDied):
            c.run(2, 'true')
        assert reaches(c, 0, 1)
        assert not ping(c, 0, 2)
        run_id = c.id
    until(lambda: not processes_of(run_id))
    assert not os.path.exists(os.path.join(runs_dir(), run_id))


def programs_of(guest):
    """The processes of the host that are a UML guest's programs: it traces them."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as f:
                if re.search(rf'^TracerPid:\t{guest.pid}$', f.read(), re.M):
                    found.append(int(pid))
    return found


def test_nothing_of_a_killed_guest_is_left():
    """Its programs are processes of the host, and go with it: no keeper has to end them."""
    with Cluster(kernel='uml', nodes=2, module=False) as c:
        for command in ('while :; do :; done', 'while :; do sleep 0.01; done', 'sleep 1000'):
            c.start(1, f'echo up; {command}').wait_output('up')
        programs = programs_of(c.guests[1])
        assert len(programs) >= 4, 'three shells and the first process'
        c.guests[1].keeper.send_signal(signal.SIGSTOP)
        try:
            c.kill(1)
            until(lambda: all(map(ended, programs)), 20)
        finally:
            c.guests[1].keeper.send_signal(signal.SIGCONT)
        assert reaches(c, 0, 0)


def test_guests_with_different_kernels():
    """Each has its own kernel's modules, and spindle.ko built for that; they share the switch."""
    names = ['uml', 'debian-6.12']
    with Cluster(kernel=','.join(names), nodes=2, module=True) as c:
        assert [c.run(i, 'echo $SPINDLE_KERNEL').stdout.strip() for i in range(2)] == names
        releases = [c.run(i, 'cd /lib/modules/$(uname -r)/kernel && uname -r', check=True).stdout
                    for i in range(2)]
        assert releases[0] != releases[1]
        for i in range(2):
            c.run(i, 'test -d /sys/module/spindle', check=True)
        assert reaches(c, 0, 1) and reaches(c, 1, 0)
    for kernel, why in (('uml,uml,uml', 'one for each of 2 nodes'), ('uml,none', 'no kernel'),
                        ('virtual,uml', 'virtual time'), ('virtual-debug,virtual', 'virtual time')):
        with pytest.raises(Error, match=why):
            Cluster(kernel=kernel, nodes=2, module=False)


def test_many_addresses_are_many_nodes_in_one_kernel():
    with Cluster(kernel='uml', addrs=20, module=False) as c:
        env = c.env(0)
        assert env['SPINDLE_ADDRS'].split()[19] == '10.77.0.20'
        gids = c.run(0, 'cat /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null').stdout
        assert gids.count('ffff:0a4d') == 20


def test_a_kernel_complaint_fails_the_run():
    with pytest.raises(KernelComplaint, match='WARNING: test'):
        with Cluster(kernel='uml', module=False) as c:
            c.run(0, 'echo WARNING: test > /dev/kmsg')
    with Cluster(kernel='uml', module=False, allow=[('WARNING: test', 'made here')]) as c:
        c.run(0, 'echo WARNING: test > /dev/kmsg')
    assert 'WARNING: test' in c.logs()[0]


def test_run_prefixes_output_and_returns_the_status():
    r = vm('run', '--no-module', '--nodes', '2', '--quiet', '--', 'echo I am $SPINDLE_RANK')
    assert sorted(r.stdout.splitlines()) == ['0: I am 0', '1: I am 1']
    assert r.returncode == 0
    assert vm('run', '--no-module', '--', 'exit 5').returncode == 5
    r = vm('run', '--no-module', '--', 'echo BUG: made up > /dev/kmsg')
    assert r.returncode == 1 and 'BUG: made up' in r.stderr
    r = vm('run', '--no-module', '--timeout', '15', '--', 'sleep 100')
    assert r.returncode == 1 and 'no end after 15 s' in r.stderr


@pytest.mark.parametrize('sig,status', [(signal.SIGINT, 130), (signal.SIGTERM, 143),
                                        (signal.SIGKILL, -9)])
def test_an_interrupted_run_leaves_nothing(sig, status):
    with subprocess.Popen([VM, 'run', '--no-module', '--nodes', '2', '--',
                           'trap "echo got it; exit 0" INT TERM; echo up; '
                           'while :; do sleep 0.01; done'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        first = p.stdout.readline() + p.stdout.readline()
        assert first.count('up') == 2
        run_id = next(name for name, info in cli.runs() if info['pid'] == p.pid)
        pids = processes_of(run_id)
        assert pids
        p.send_signal(sig)
        out, _ = p.communicate(timeout=300)
    assert p.returncode == status
    if sig != signal.SIGKILL:
        assert out.count('got it') == 2
    until(lambda: all(map(ended, pids)) and not processes_of(run_id))
    until(lambda: not os.path.exists(os.path.join(runs_dir(), run_id)))


def test_what_counts_as_a_complaint():
    def found(line):
        return bool(complaints.find([line], 'uml'))

    for line in ('[    1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c:1', 'BUG: KASAN: use-after-free in x',
                 'UBSAN: array-index-out-of-bounds in x', 'INFO: task x blocked for more than 30 s',
                 'rxe0: rxe_mr pool cleanup failed', 'refcount_t: underflow; use-after-free.',
                 'general protection fault', 'unregister_netdevice: waiting for eth0'):
        assert found(line), line
    for line in ('kasan: KernelAddressSanitizer initialized', 'DEBUG: x', 'debug_locks = 1',
                 'kmemleak: Kernel memory leak detector initialized'):
        assert not found(line), line


def test_quantities():
    assert cluster.quantity('rate', '10gbit') == 10 ** 10
    assert cluster.quantity('delay', '1.5ms') == 1500000
    assert cluster.quantity('loss', '0.1%') == 1000
    with pytest.raises(Error):
        cluster.quantity('rate', 'fast')


def test_what_a_command_leaves_behind_is_ended_with_the_run():
    with Cluster(kernel='uml', module=False) as c:
        # it holds the RDMA device, which must be deleted at the end
        c.run(0, 'rping -s -C 1 -a 10.77.0.1 >/dev/null 2>&1 & exit 0', check=True)
