# SPDX-License-Identifier: GPL-2.0
"""spindle-perf and the benchmarks: that they work and say what they should, not how fast."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position,redefined-outer-name
import benchmarks
import lab as labs
import report
from vmlib import PATIENT, Cluster

# on the host's clock
KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'uml').replace('virtual', 'uml')
BENCH = os.path.join(labs.PROJECT, 'scripts', 'bench')

labs.build()


def host(*args, status=0):
    """spindle-perf where there is no module: its options."""
    done = subprocess.run([labs.PERF, *args], text=True, check=False, timeout=600,
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
    ['-A', '10.0.0.1', '-s', '9M'], ['-A', '10.0.0.1', '-n', '5', '-D', '5'],
    ['-A', '10.0.0.1', '--mode', 'other'], ['-A', '10.0.0.1', '--senders', '2'],
    ['-A', '10.0.0.1,10.0.0.2', '--members', '1'], ['-A', '10.0.0.1', 'word'],
    ['-A', '10.0.0.1', '--mode', 'copy', '--memcpy'],
    ['-A', '10.0.0.1', '--latency', '--batch', '2'],
    ['-A', '10.0.0.1,10.0.0.2', '--optimise', 'send,unlock', '-D', '1'],
    ['-A', '10.0.0.1', '--optimise', 'nothing'], ['-A', '10.0.0.1', '--optimise', 'none,send'],
    ['-A', '10.0.0.1', '--optimise', ','],
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
    with Cluster(kernel=KERNEL, nodes=1, addrs=4, modparam=PATIENT) as cluster:
        yield cluster


def perf(cluster, *args, members=4, status=0, node=0):
    addrs = cluster.env(node)['SPINDLE_ADDRS'].split()[:members]
    done = cluster.run(node, [labs.PERF, '-A', ','.join(addrs), '--timeout', '600', *args],
                       timeout=150)
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
        for sender in range(2):
            lat = lab.sequencer_latency(c, 64, 50, 0, sender)
            assert lat['samples'] == 50 and 0 < lat['min'] <= lat['p50'] <= lat['max']
        # what does not fill a unit, and more than a ring of it
        for size in (13, 60001):
            runs = lab.sequencer(c, 'stream', size, 0.3)
            assert runs[0]['messages'] == sum(r['sent'] for r in runs) > 0
            assert all(r['bytes_per_second'] > 0 for r in runs)
        with pytest.raises(labs.Error, match='a size'):
            lab.sequencer(c, 'stream', 7, 0.3)
        before = lab.frames(c)
        assert before > 0
        c.run(0, ['ping', '-c', '1', c.env(1)['SPINDLE_ADDR']], check=True)
        assert lab.frames(c) >= before + 2


class FakeLab:
    """One whose guests do so much for each message, and something for each run."""

    quick, rounds = True, None

    def __init__(self):
        self.gone = 0

    def frames(self, _cluster):
        return self.gone

    def perf_across(self, _cluster, **options):
        n = options['n']
        self.gone += 100 + 7 * n
        return [{'counters': {'rdma_writes': 50 + 2 * n, 'sends': 3}}] * 3


@pytest.mark.parametrize('pause', [0, benchmarks.SLEEP_US])
def test_what_a_run_costs_is_not_of_its_messages(pause):
    each = benchmarks.lone_counts(FakeLab(), None, pause)
    assert each == dict.fromkeys(benchmarks.LONE_COUNTS, 0) | {
        'writes': 6, 'rdma_writes': 6, 'frames': 7}


def test_a_table():
    lines = report.rst_table(['', 'b'], [['x', 1], ['', 22]]).splitlines()
    assert lines[1] == '\\   b' and lines[4] == '\\   22' and lines[0] == lines[-1] == '==  =='


def test_a_wide_table():
    said = report.rst_table(['case', 'a title of words ' * 5, 'b'], [['x' * 60, '-', '+ y']])
    lines = said.splitlines()
    assert max(map(len, lines)) <= report.WIDTH
    # the first column marks rows, and is not wrapped; no cell is a list
    assert 'x' * 60 + '  \\-' in said and '\\+ y' in said
    assert all(line.startswith('  ') for line in lines[2:lines.index(lines[0], 1)])


def test_json_is_laid_out():
    value = {'text': 'x' * 200, 'rows': [[i, float(i)] for i in range(50)], 'none': [], 'a': {}}
    text = report.laid_out(value)
    assert json.loads(text) == value
    assert ' [49, 49.0]\n' in text and len(text.splitlines()) == 57


@pytest.mark.parametrize('name', benchmarks.ALL)
def test_page_is_that_of_its_figures(name):
    with open(os.path.join(report.PAGES, name + '.rst'), encoding='utf-8') as f:
        assert report.page(*report.read(name)) == f.read()


def test_render(tmp_path):
    """The page anew from the figures, and the plots where there is what draws them."""
    shutil.copy(os.path.join(report.PAGES, 'ops.json'), tmp_path)
    done = subprocess.run([BENCH, '--render', 'ops', '--out', str(tmp_path)], text=True,
                          check=False, timeout=1000, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    with open(os.path.join(report.PAGES, 'ops.rst'), encoding='utf-8') as f:
        assert (tmp_path / 'ops.rst').read_text() == f.read()


def test_raw_runs_are_kept_beside_what_is_built(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, 'RUNS', str(tmp_path / 'bench'))
    runs = [{'asked': {'s': 1}, 'per_message': {'posts': 0.5}}]
    report.write_runs('ops', runs)
    assert 'ops.runs.json' in capsys.readouterr().err
    assert json.loads((tmp_path / 'bench' / 'ops.runs.json').read_text()) == runs


@pytest.mark.parametrize('name,args', [('fabric', []), ('fabric-zero', ['--cost', 'zero'])])
def test_latency_on_a_modelled_fabric(name, args, tmp_path):
    """To the digit what stands in Documentation/: a change is committed, with its reason."""
    command = ['latency', '--fabric', '100gbit,1us', *args]
    done = subprocess.run([BENCH, *command, '--out', str(tmp_path)], text=True, check=False,
                          timeout=2500, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / f'{name}.json', encoding='utf-8') as f:
        found = json.load(f)
    with open(os.path.join(report.PAGES, f'{name}.json'), encoding='utf-8') as f:
        committed = json.load(f)
    assert found['keys'] == committed['keys'], \
        f'if that is meant to be: scripts/bench {" ".join(command)} --write'


@pytest.mark.parametrize('mode', ['copy', 'mapped'])
def test_a_lone_message_needs_no_thread(mode):
    """Softirqs, and the program that sends, run the passes; in virtual time nothing disturbs."""
    lab = labs.Lab('virtual', True, mode, fabric='100gbit,1us', cost=None)
    with lab.guests(nodes=3, mem='384M') as c:
        runs = lab.perf_across(c, s=16, n=200, warmup=20, senders='one', latency=True,
                               interval_us=200, wait='block')
    for run in runs:
        assert labs.counted(run, 'passes') >= 400
        assert labs.counted(run, 'thread_passes') <= 20


@pytest.mark.parametrize('mode', ['copy', 'mapped'])
def test_a_stream_within_a_guest_goes_in_batches(mode):
    """There each message could be everywhere before its sender has the processor back."""
    lab = labs.Lab('virtual', True, mode, fabric='100gbit,1us', cost=None)
    with lab.guests(addrs=2, mem='384M') as c:
        run = lab.perf(c, 2, s=10240, n=2000, window='1M')
    assert labs.counted(run, 'delivered') == 8000
    assert labs.counted(run, 'passes') < 4000


KEYS = {
    'ops': ['writes_per_msg', 'writes_ratio', 'lone_writes', 'lone_frames', 'lone_sleep_writes',
            'lone_sleep_frames', 'lone_sleep_naps', 'lone_tcp_frames'],
    'latency': ['stable_rtts', *(f'{who}_{what}' for what in ('us', 'sleep_us', 'stream_mbs')
                                 for who in ('tcp', 'copy', 'mapped')),
                *(f'{mode}_{what}over_tcp' for what in ('', 'sleep_', 'stream_')
                  for mode in ('copy', 'mapped'))],
}


@pytest.mark.parametrize('name', KEYS)
def test_benchmark(name, tmp_path):
    done = subprocess.run([BENCH, name, '--quick', '--kernel', KERNEL, '--out', str(tmp_path)],
                          text=True, check=False, timeout=2500, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(rf'bench {name}:( \w+=\S+)+', last), last
    keys = dict(word.split('=') for word in last.split()[2:])
    for key in KEYS[name]:
        assert float(keys[key]) > 0
    with open(tmp_path / f'{name}.json', encoding='utf-8') as f:
        written = json.load(f)
    assert {k: str(v) for k, v in written['keys'].items()} == keys
    page = (tmp_path / f'{name}.rst').read_text()
    assert last in ' '.join(page.split()) and f'scripts/bench {name} --quick' in page
    raw = re.search(r'raw runs: (\S+)', done.stderr)
    with open(os.path.join(labs.PROJECT, raw[1]), encoding='utf-8') as f:
        assert json.load(f)
    if name == 'ops':
        # what no emulator distorts: batches save writes, and an idle group costs none
        assert float(keys['writes_ratio']) > 2 and keys['idle_group_work'] == '0'
        assert float(keys['copied_per_msg']) == 0
        # a message goes to two peers, each acknowledges it, and a write is a frame or more
        for case in ('lone', 'lone_sleep'):
            assert 4 <= float(keys[f'{case}_writes']) < float(keys[f'{case}_frames'])
