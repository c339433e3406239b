# SPDX-License-Identifier: GPL-2.0
"""Guests on one virtual clock: the same run again, whatever the host does, and exact times."""

import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

SELFTESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPTS = os.path.join(SELFTESTS, '..', 'scripts')
sys.path[:0] = [os.path.realpath(SCRIPTS), SELFTESTS]

# pylint: disable=wrong-import-position
from vmlib import Cluster, Error, GuestDied
from vmlib import cli, virtual
from vmlib.base import make
from run import SPINNER

VM = os.path.join(SCRIPTS, 'vm')
BIN = os.path.realpath(os.path.join(SCRIPTS, '..', 'build', 'selftests'))
@contextlib.contextmanager
def busy(count, nice=0):
    """Processes beside the guests that keep the processors busy."""
    spinners = [subprocess.Popen(['nice', '-n', str(nice), sys.executable, '-c', SPINNER])
                for _ in range(count)]
    try:
        yield
    finally:
        for p in spinners:
            p.kill()
            p.wait()


def vm_run(*args, timeout=900):
    done = subprocess.run([VM, 'run', '--kernel', 'virtual', *args], capture_output=True,
                          text=True, timeout=timeout, check=False)
    return done, re.findall(r'^virtual: ([\d.]+) s, (\d+) frames, digest (\w{16})$', done.stderr, re.M)


# A group of all guests; those that are left end it when one was lost.
MEMBERS = ('set -- --name g --order $SPINDLE_OUT/$SPINDLE_RANK --members $SPINDLE_NODES --messages %s '
           '--max 500; [ $SPINDLE_RANK = 0 ] || set -- "$@" --contact 10.77.0.1; '
           'timeout -s TERM %s {bin}/member "$@"').format(bin=BIN)
FAULTS = """
# seconds, what
0.02 link 0 1 loss=0.5%
0.05 link 1 2 cut --directed
0.15 link 1 2 heal --directed   # sooner than anybody is missed
0.20 pause 1
0.30 resume 1
0.40 kill 2
"""


@pytest.mark.parametrize('nodes', [1, 3, 8, 16])
def test_the_same_digest_whatever_the_host_does(nodes, tmp_path):
    make('selftests/socket')
    args = ['--nodes', str(nodes), '--mem', '300M', '--cost', 'slow', '--modparam',
            'suspect_ms=1000', '--link', 'delay=20us,jitter=10us,loss=0.05%']
    if nodes > 1:
        # what goes on for ever until it is ended, in few guests; else a number of messages
        forever = nodes == 3
        faults = tmp_path / 'faults'
        faults.write_text(re.sub(r'^[\d.]+', lambda m: m[0] if forever else f'{float(m[0]) / 10}',
                                 FAULTS, flags=re.M))
        args += ['--faults', str(faults)]
        command = MEMBERS % ((2 ** 64 - 1, 3) if forever else (20, 60))
    else:
        command = f'{BIN}/socket_test && ls /proc > $SPINDLE_OUT/ls; rping -s -C 20 -a 10.77.0.1 & ' \
                  'sleep 0.1; rping -c -C 20 -a 10.77.0.1; date +%N'
    runs = []
    for spinners in (0, 6):
        with busy(spinners):
            done, digests = vm_run(*args, '--', command)
        assert len(digests) == 1, done.stderr
        runs.append((digests[0], sorted(done.stdout.splitlines()), done.returncode))
    assert runs[0] == runs[1]
    # a broken one would see nothing
    assert int(digests[0][1]) > 0 or nodes == 1
    if nodes > 1:
        assert re.search(r'view 2 \d+ \d+:lost', str(runs[0][1])), runs[0]


@pytest.mark.parametrize('fixture', ['trio', 'fresh', 'five'])
def test_the_tests_of_several_guests_have_the_same_digests(fixture, tmp_path):
    """All of them, twice, once with six busy processes beside."""
    found = []
    for spinners in (0, 6):
        path = tmp_path / str(spinners)
        env = {**os.environ, 'SPINDLE_TEST_KERNEL': 'virtual', 'SPINDLE_TEST_DIGESTS': str(path)}
        env.pop('SPINDLE_TEST_DOORBELLS', None)
        # busy, but not so that the tests beside take the double time
        with busy(spinners, nice=10):
            done = subprocess.run(
                # it ends with us
                ['setpriv', '--pdeathsig', 'KILL', '/usr/bin/python3', '-B', '-m', 'pytest', '-q',
                 '-p', 'no:cacheprovider', '--tb=short', '-k', f'{fixture} and not test_program',
                 os.path.join(SELFTESTS, 'guests')], text=True, env=env,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=2000)
        assert done.returncode == 0, done.stdout[-5000:]
        found.append(path.read_text().splitlines())
    assert len(found[0]) >= {'trio': 1, 'fresh': 12, 'five': 1}[fixture] and found[0] == found[1]


def test_another_seed_is_another_run():
    args = ['--nodes', '2', '--no-module', '--link', 'loss=20%']
    command = 'ping -c 20 -i 0.1 10.77.0.1 > $SPINDLE_OUT/x; ' \
              '[ $SPINDLE_RANK = 0 ] || cat $SPINDLE_OUT/x'
    digests = [vm_run(*args, '--seed', str(seed), '--', command)[1] for seed in (1, 2, 1)]
    assert digests[0] == digests[2] != digests[1]


def test_times_are_exact():
    with Cluster(kernel='virtual', nodes=2, module=False, cost='zero', delay='10ms') as c:
        # ping takes a clock that is young for one that was not read
        c.sleep(1)
        c.run(0, 'ping -c 1 10.77.0.2', check=True)
        text = c.run(0, 'ping -c 3 -i 0.1 10.77.0.2', check=True).stdout
        # 98 bytes and 24 of the Ethernet, on two cables each way, at 100 Gb/s: some 20 ns
        assert re.findall(r'time=([\d.]+)', text) == ['20.0'] * 3, text
        before = c.now()
        c.run(0, 'sleep 1000', timeout=3000)
        assert 1000 <= c.now() - before < 1000.1
        c.link(0, rate='8mbit')
        # 4,000 bytes, twice on a cable that takes 4 ms for them: to the wire, and back
        text = c.run(0, 'ping -c 2 -i 0.5 -s 4000 10.77.0.2', check=True).stdout
        times = [float(t) for t in re.findall(r'time=([\d.]+)', text)]
        assert len(times) == 2 and all(28.1 <= t <= 28.2 for t in times), text


def test_pause_takes_time_from_a_guest_and_nothing_else():
    with Cluster(kernel='virtual', nodes=2, module=False) as c:
        clock = c.start(1, 'while sleep 0.1; do cut -d" " -f1 /proc/uptime; done')
        c.sleep(0.55)
        c.pause(1)
        c.sleep(10)
        assert len(clock.stdout.split()) == 5
        assert c.run(0, 'ping -c 1 -W 1 10.77.0.2').status != 0
        c.resume(1)
        c.sleep(0.5)
        seen = [float(t) for t in clock.stdout.split()]
        # its clock went on, as a stopped machine's does
        assert seen[5] - seen[4] > 11 and seen[6] - seen[5] < 0.2, seen
        assert c.run(0, 'ping -c 1 -W 1 10.77.0.2').status == 0


def test_faults_at_their_times():
    with Cluster(kernel='virtual', nodes=2, module=False) as c:
        c.sleep(1)
        start = c.now()
        c.at(1.5, lambda: c.link(0, 1, cut=True))
        c.at(2.5, lambda: c.link(0, 1, heal=True))
        c.at(4, lambda: c.kill(1))
        text = c.run(0, 'ping -c 100 -i 0.05 -W 0.04 10.77.0.2', timeout=100).stdout
        got = [int(n) for n in re.findall(r'icmp_seq=(\d+)', text)]
        missing = sorted(set(range(1, max(got))) - set(got))
        # a second of them, with ping's own idea of an interval
        assert 15 <= len(missing) <= 35 and missing == list(range(missing[0], missing[-1] + 1))
        assert max(got) < 90, 'the guest was killed at 4 s'
        assert c.guests[1].dead and c.now() - start > 4.9


def test_a_capture_holds_what_crossed_the_wires(tmp_path):
    path = tmp_path / 'run.pcap'
    done, digests = vm_run('--no-module', '--nodes', '2', '--pcap', str(path), '--',
                           '[ $SPINDLE_RANK = 0 ] || { sleep 1; ping -c 3 -i 0.5 -s 1000 10.77.0.1; }')
    assert done.returncode == 0, done.stderr
    data = path.read_bytes()
    assert struct.unpack_from('<IHHIIII', data) == (0xa1b23c4d, 2, 4, 0, 0, 65535, 1)
    at, echoes, last, count = 24, [], 0, 0
    while at < len(data):
        s, ns, length, whole = struct.unpack_from('<IIII', data, at)
        frame = data[at + 16:at + 16 + length]
        assert length == whole == len(frame) and s * 10 ** 9 + ns >= last
        last = s * 10 ** 9 + ns
        if frame[12:14] == b'\x08\x00' and frame[23] == 1 and frame[34] == 8:
            echoes.append(last)
        at += 16 + length
        count += 1
    assert count == int(digests[0][1])
    assert len(echoes) == 3 and abs(echoes[2] - echoes[1] - 5 * 10 ** 8) < 5 * 10 ** 7, echoes


def test_a_polling_guest_is_ended(monkeypatch):
    """No time passes in a loop without system calls; the host's does."""
    monkeypatch.setattr(virtual, 'COMPUTE_SECONDS', 5)
    with Cluster(kernel='virtual', nodes=2, module=False) as c:
        with pytest.raises(GuestDied, match='has computed for 5 s'):
            c.run(1, ['/usr/bin/python3', '-c', 'while True: pass'])
        assert c.run(0, 'echo here').stdout == 'here\n'
        # its end was none of its own
        c.guests[1].killed = True


def test_costs():
    def took(cost):
        with Cluster(kernel='virtual', module=False, cost=cost) as c:
            before = c.now()
            c.run(0, ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=1', 'count=100000'], check=True)
            return c.now() - before
    # two calls a byte
    assert took('zero') < 0.01
    usual = took('default')
    assert 0.04 <= usual < 0.06
    assert 0.16 <= took('syscall=1000') - usual < 0.18
    for bad in ('much', 'syscall=x', 'syscall'):
        with pytest.raises(Error):
            virtual.parse_cost(bad)


def test_files_of_faults(tmp_path):
    path = tmp_path / 'faults'
    path.write_text(FAULTS)
    faults = cli.read_faults(path)
    assert [at for at, _ in faults] == [0.02, 0.05, 0.15, 0.2, 0.3, 0.4]
    assert faults[1][1] == {'do': 'link', 'directed': True, 'a': 1, 'b': 2, 'cut': True}
    assert faults[5][1] == {'do': 'kill', 'node': 2}
    for bad in ('kill 2', '1 stop 2', '1 link 0 1', '1 kill', 'x kill 1'):
        path.write_text(bad)
        with pytest.raises(Error, match='line 1'):
            cli.read_faults(path)


def test_options_of_virtual_time_alone():
    for options in ({'cost': 'zero'}, {'pcap': '/tmp/x'}, {'jitter': '1us'}):
        with pytest.raises(Error, match='virtual time'):
            Cluster(kernel='uml', **options)
    with Cluster(kernel='virtual', module=False) as c:
        with pytest.raises(Error, match='100 ns at least'):
            c.world.tell('link 0 0 delay=1')


def test_a_killed_harness_leaves_nothing():
    """The guests have nothing of the run on their command lines: they are found by their keepers."""
    with subprocess.Popen([VM, 'run', '--kernel', 'virtual', '--no-module', '--nodes', '2', '--',
                           'echo up; while sleep 1; do :; done'], stdout=subprocess.PIPE,
                          text=True) as p:
        assert {p.stdout.readline(), p.stdout.readline()} == {'0: up\n', '1: up\n'}
        end = time.monotonic() + 300
        # a run that is slow to answer is not shown
        while not (found := [info for _, info in cli.runs() if info['pid'] == p.pid]):
            assert time.monotonic() < end
            time.sleep(0.02)
        info = found[0]
        p.send_signal(signal.SIGKILL)
    end = time.monotonic() + 300
    while any(os.path.exists(f'/proc/{node["pid"]}') for node in info['nodes']) or \
            os.path.exists(info['nodes'][0]['log']):
        assert time.monotonic() < end
        time.sleep(0.02)
