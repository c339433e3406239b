# SPDX-License-Identifier: GPL-2.0
"""spindle-perf and the benchmarks: that they work and say what they should, not how fast."""

import json
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'views')]

# pylint: disable=wrong-import-position,redefined-outer-name
import drive
import lab as labs
import rdmc
import report
from vmlib import Cluster

KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml')
BENCH = os.path.join(labs.PROJECT, 'scripts', 'bench')

labs.build()


def host(*args, status=0):
    """spindle-perf where there is no module: its options."""
    done = subprocess.run([labs.PERF, *args], text=True, check=False, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == status, done.stdout
    return done.stdout


def test_help_names_the_options_of_the_manual():
    said = host('--help')
    with open(os.path.join(labs.PROJECT, 'Documentation', 'man', 'spindle-perf.1'),
              encoding='utf-8') as f:
        manual = f.read().replace('\\-', '-')
    for option in set(re.findall(r'--[a-z-]+', said)) - {'--help', '--usage'}:
        assert option in manual, option


@pytest.mark.parametrize('args', [
    [], ['-A', '10.0.0.300'], ['-A', '10.0.0.1', '-n', '0'], ['-A', '10.0.0.1', '-n', 'x'],
    ['-A', '10.0.0.1', '-s', '65M'], ['-A', '10.0.0.1', '-s', '2M', '--max-object', '1M'],
    ['-A', '10.0.0.1', '--algorithm', 'best'], ['-A', '10.0.0.1', '--explain=1,x'],
    ['-A', '10.0.0.1', '-s', '1M', '--batch', '2'], ['-A', '10.0.0.1', '-n', '5', '-D', '5'],
    ['-A', '10.0.0.1', '--mode', 'other'], ['-A', '10.0.0.1', '--senders', '2'],
    ['-A', '10.0.0.1,10.0.0.2', '--members', '1'], ['-A', '10.0.0.1', 'word'],
    ['-A', '10.0.0.1', '--mode', 'copy', '--memcpy'],
    ['-A', '10.0.0.1', '--latency', '--batch', '2'],
    ['-A', '10.0.0.1,10.0.0.2', '--optimise', 'send,unlock', '-D', '1'],
], ids=' '.join)
def test_options_without_sense(args):
    env = os.environ.pop('SPINDLE_ADDR', None)
    try:
        host(*args, status=2)
    finally:
        if env:
            os.environ['SPINDLE_ADDR'] = env


def test_where_there_is_no_module():
    if os.path.exists('/sys/module/spindle'):
        pytest.skip('the host has it')
    assert 'member 0 on 127.0.0.1' in host('-A', '127.0.0.1', '--mode', 'copy', status=1)


@pytest.fixture(scope='module')
def guest():
    with Cluster(kernel=KERNEL, nodes=1, addrs=4, timeout=600) as cluster:
        yield cluster


def perf(cluster, *args, members=4, status=0, node=0):
    addrs = cluster.env(node)['SPINDLE_ADDRS'].split()[:members]
    done = cluster.run(node, [labs.PERF, '-A', ','.join(addrs), '--timeout', '60', *args],
                       timeout=100)
    assert done.status == status, done.output
    return done


def perf_json(cluster, *args, **kwargs):
    return json.loads(perf(cluster, '--json', *args, **kwargs).stdout)


@pytest.mark.parametrize('mode', ['copy', 'mapped'])
@pytest.mark.parametrize('size', [0, 1, 7, 100, 10240])
def test_everything_is_delivered_and_checked(guest, mode, size):
    run = perf_json(guest, '--mode', mode, '-s', str(size), '-n', '40', '--warmup', '10', '--stats')
    assert run['messages'] == 160 and run['bytes'] == 160 * size
    assert run['groups'][0]['messages_by_rank'] == [50] * 4
    assert run['counters']['delivered'] == 4 * 160
    assert run['counters']['sent'] == 160
    assert run['bytes_per_second_peak'] >= run['bytes_per_second']
    assert run['copied_bytes'] == 0


@pytest.mark.parametrize('args', [
    ['--senders', 'half', '--batch', '8'], ['--senders', 'one', '--slow-us', '500'],
    ['--active', '3', '--idle', '2'], ['--delay-us', '300', '--delayed', 'half'],
    ['--wait', 'adaptive'], ['--wait', 'spin'], ['--memcpy'], ['--verify', 'order'],
    ['--no-verify'], ['--optimise', 'none'], ['--optimise', 'send,null'],
    ['--window', '16k', '-t', '16'],
], ids=' '.join)
def test_ways(guest, args):
    run = perf_json(guest, '-n', '30', '-s', '1000', '--stats', *args)
    senders = run['options']['senders']
    for group in run['groups']:
        assert group['messages_by_rank'] == [30] * senders
    assert run['idle_counters'].get('rdma_writes', 0) == 0 if '--idle' in args else True
    if '--optimise' in args:
        assert run['options']['optimise'] == args[1]


@pytest.mark.parametrize('args', [
    ['-s', '300k'], ['-s', '1M', '--block', '16k', '--algorithm', 'chain'],
    ['-s', '100', '--object'], ['-s', '40000', '--max-msg', '10k', '--racks', '2'],
    ['-s', '2M', '--max-object', '2M', '--senders', 'one', '--algorithm', 'tree'],
], ids=' '.join)
@pytest.mark.parametrize('mode', ['copy', 'mapped'])
def test_objects(guest, mode, args):
    run = perf_json(guest, '--mode', mode, '-n', '10', '--warmup', '2', *args)
    assert run['options']['object']
    senders = run['options']['senders']
    assert run['messages'] == 10 * senders
    assert run['bytes'] == 10 * senders * run['options']['size']
    assert run['groups'][0]['messages_by_rank'] == [12] * senders


@pytest.mark.parametrize('mode', ['copy', 'mapped'])
def test_how_messages_would_be_sent(guest, mode):
    asked = ['--mode', mode, '--explain=100,16k,16385,1M,64M']
    rows = json.loads(perf(guest, '--json', *asked).stdout)
    assert [r['size'] for r in rows] == [100, 16384, 16385, 1 << 20, 64 << 20]
    assert [r.get('transport') for r in rows] == ['SMC', 'SMC', 'RDMC', 'RDMC', None]
    assert rows[4]['error'] == 'Message too long'
    mib = rows[3]
    assert mib['algorithm'] == 'pipeline' and mib['nodes'] == 4 and mib['racks'] == 1
    assert mib['block'] * mib['blocks'] == 1 << 20
    assert mib['steps'] == mib['blocks'] + 2 - 1
    said = perf(guest, *asked).stdout
    assert re.search(r'^4 nodes in 1 racks$', said, re.M)
    assert re.search(rf'^ +1048576  RDMC  pipeline +{mib["block"]} +{mib["blocks"]} +'
                     rf'{mib["steps"]}  {mib["why"]}$', said, re.M)
    rows = json.loads(perf(guest, '--json', '--explain=1M', '--algorithm', 'chain', '--block',
                           '64k', '--racks', '2').stdout)
    assert rows[0]['algorithm'] == 'chain' and rows[0]['block'] == 65536
    assert rows[0]['racks'] == 2 and rows[0]['why'] == 'the group was made so'
    rows = json.loads(perf(guest, '--json', '--explain=10', '--object').stdout)
    assert rows[0]['transport'] == 'RDMC'


def test_duration_and_text(guest):
    said = perf(guest, '-D', '0.5', '--stats', '--mode', 'copy').stdout
    assert 'BW peak[MiB/sec]' in said and 'MsgRate[Mpps]' in said
    row = re.search(r'^ 10240 +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)$', said, re.M)
    assert row and int(row[1]) > 0 and float(row[2]) >= float(row[3]) > 0
    assert re.search(r'^ rdma_writes +\d+ +[\d.]+$', said, re.M)


@pytest.mark.parametrize('how', ['closed', 'load'])
@pytest.mark.parametrize('mode', ['copy', 'mapped'])
def test_latency(guest, how, mode):
    run = perf_json(guest, f'--latency={how}', '-n', '50', '--warmup', '5', '-s', '64', '--mode',
                    mode)
    for until in ('own_us', 'all_us'):
        lat = run['latency'][until]
        assert lat['samples'] == 200
        order = [lat[k] for k in ('min', 'p50', 'p90', 'p99', 'p99.9', 'max')]
        assert order == sorted(order) and order[0] > 0
        assert lat['min'] <= lat['avg'] <= lat['max']
    assert run['latency']['all_us']['avg'] >= run['latency']['own_us']['avg']


def test_two_members_on_one_node(guest):
    addr = guest.env(0)['SPINDLE_ADDR']
    run = json.loads(guest.run(0, [labs.PERF, '-A', f'{addr},{addr}', '-n', '20', '--json',
                                   '--stats'], check=True).stdout)
    assert run['counters']['delivered'] == 40 and run['counters']['rdma_writes'] == 0


def test_too_long_is_an_end(guest):
    said = perf(guest, '--members', '5', '--timeout', '2', status=1).output
    assert 'time' in said


def test_raw_verbs(guest):
    lab = labs.Lab(KERNEL, True, 'mapped')
    assert lab.raw_bandwidth(guest, 10240, 0.3) > 0
    lat = lab.raw_latency(guest, 0, 0, 16, 50, 'event')
    assert 0 < lat['min'] <= lat['p50'] <= lat['max']


def test_several_guests():
    lab = labs.Lab(KERNEL, True, 'mapped')
    with lab.guests(nodes=2, mem='512M') as c:
        runs = lab.perf_across(c, n=100, s=2000)
        assert len({r['groups'][0]['hash'] for r in runs}) == 1
        assert all(r['messages'] == 200 for r in runs)
        assert lab.raw_latency(c, 0, 1, 16, 20, 'poll')['p50'] > 0


def test_objects_between_guests():
    drive.build()
    lab = labs.Lab(KERNEL, True, 'mapped')
    with lab.guests(nodes=3, mem='384M', modparam=rdmc.PARAMETERS) as c:
        t = rdmc.Throttled(lab, c, 200)
        sends = [(0, 'pipeline', 300000), (1, 'chain', 500001), (0, 'tree', 1)]
        first, second = t.objects([{'nodes': [0, 1, 2]}, {'nodes': [2, 0], 'block': 65536}], sends)
        assert [s.len for s in first] == [300000, 1] and [s.len for s in second] == [500001]
        for s in [*first, *second]:
            nodes = [0, 1, 2] if s in first else [0, 2]
            assert sorted(s.read) == sorted(s.moved) == nodes
            assert s.call < s.sent < max(s.read.values()) and s.seconds > 0 and s.skew >= 0
            for i in nodes:
                assert s.moved[i]['begun'] <= s.moved[i]['here'] <= s.read[i]
        assert second[0].moved[0]['blocks'] == 8
        assert all(seconds > 0 for seconds in t.tcp([0, 1, 2], 300000, 2))
        assert t.writes(1000000) > 0


def test_steps_of_times():
    sent = rdmc.Sent()
    sent.len, sent.call = 400, 0
    sent.moved = {0: {'begun': 1, 'first': 2, 'here': 1, 'sent': 9, 'blocks': 4},
                  1: {'begun': 2, 'first': 4, 'here': 12, 'sent': None, 'blocks': 4}}
    sent.there, sent.read = {0: 13, 1: 14}, {0: 14, 1: 17}
    took = rdmc.times(sent, 8e-9)
    assert [round(1e9 * took[k]) for k in rdmc.PARTS] == [1, 1, 2, 6, 2, 2, 3]
    assert sum(took[k] for k in rdmc.PARTS) == pytest.approx(sent.seconds)


def test_a_table():
    lines = report.rst_table(['', 'b'], [['x', 1], ['', 22]]).splitlines()
    assert lines[1] == '\\   b' and lines[4] == '\\   22' and lines[0] == lines[-1] == '==  =='


KEYS = {
    'ops': ['writes_per_msg', 'writes_ratio'],
    'latency': ['stable_rtts'],
    'rdmc': ['vs_unicast', 'vs_best', 'vs_mpi', 'vs_tcp', 'overhead_pct', 'skew_blocks'],
    'rdmc-blocks': ['chosen_pct', 'best_mbit'],
    'rdmc-overlap': ['overlap_pct', 'writes_vs_tree', 'writes_vs_sequential'],
    'rdmc-sim': ['sim512', 'sim512_quiet', 'slow_link_pct', 'hybrid_gain4'],
    'failover': ['program_ms', 'guest_ms', 'leader_ms', 'cut_ms', 'protocol_rtts'],
}


@pytest.mark.parametrize('name', KEYS)
def test_benchmark(name, tmp_path):
    done = subprocess.run([BENCH, name, '--quick', '--kernel', KERNEL, '--out', str(tmp_path)],
                          text=True, check=False, timeout=500, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(rf'bench {name}:( \w+=\S+)+', last), last
    keys = dict(word.split('=') for word in last.split()[2:])
    for key in KEYS[name]:
        assert float(keys[key]) > 0
    with open(tmp_path / f'{name}.json', encoding='utf-8') as f:
        written = json.load(f)
    assert {k: str(v) for k, v in written['keys'].items()} == keys and written['runs']
    page = (tmp_path / f'{name}.rst').read_text()
    assert last in page and f'scripts/bench {name} --quick' in page
    if name == 'rdmc':
        # where links are the limit, and the host is not that slow
        assert float(keys['vs_tcp']) < 1 and float(keys['vs_unicast']) < 3
    if name == 'rdmc-sim':
        # nothing here depends on the host
        assert float(keys['sim512']) <= 4 and float(keys['sim512_quiet']) < 1.2
        assert abs(float(keys['delay_cost']) - 1) < 0.01
        assert float(keys['slow_link_pct']) >= 85
    if name == 'ops':
        # what no emulator distorts: batches save writes, and an idle group costs none
        assert float(keys['writes_ratio']) > 2 and keys['idle_group_work'] == '0'
        assert float(keys['copied_per_msg']) == 0
