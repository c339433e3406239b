# SPDX-License-Identifier: GPL-2.0
"""The benchmarks. Each is a function of a Lab that gives a Result.

Figures are those of the Spindle paper (Jha, Rosa, Birman: Spindle: Techniques for
Optimizing Atomic Multicast on RDMA, 2021), section 4.
"""

from lab import (KB, Error, Result, alternate, counted, mb, median, median_cpu_rate,
                 median_rate, per_message, rate, say, spread, written)

# what the paper adds one after the other: figures 5, 11 and 12
STEPS = {
    'baseline': 'none',
    '+ delivery': 'deliver',
    '+ receive': 'deliver,receive',
    '+ send': 'deliver,receive,send',
    '+ nulls': 'deliver,receive,send,null',
    '+ unlock': 'all',
}
BASELINE, SPINDLE = 'baseline', '+ unlock'
SIZE = 10 * KB
# 18.2M and 1.1M writes of one of 16 nodes for 16M messages
PAPER_BASELINE_WRITES = 18.2 / 16
PAPER_SPINDLE_WRITES = 1.1 / 16


LONE = 64                       # bytes of a message that is alone
SLEEP_US = 50000                # a pause in which all engines go to sleep
SLEEP_EMULATED_US = 200000      # ... where guests are emulated
TCP_NAMES = {'tcp': 'a sequencer over TCP', 'at the sequencer': 'the same, sent where it is'}

CPU_NOTE = (
    'By processor time: bytes delivered for each second of the host\'s processors that the guest '
    'took. Where the guest is busy all the time that is its rate without what else the host did.')


def stream(lab, optimise='all', seconds=None, **options):
    """Options of a run that measures throughput; the baseline is slow to warm up and to end."""
    slow = optimise == 'none'
    seconds = seconds or (1 if lab.quick else 3)
    window = '256k' if lab.quick else '512k'
    return {'s': SIZE, 'D': seconds, 'warmup': 3 if slow else 110, 'window': window,
            'optimise': optimise, **options}


# figures 3, 5, 11, 12, 16

def ratio(lab):
    res = Result('ratio', 'Throughput of one group', (
        'All members of one group send as fast as they can. Every optimisation is added to '
        'those before it; the baseline sends, acknowledges and delivers one message at a time, '
        'sends no nulls and posts under the lock.'))
    sizes = [4, 16] if lab.quick else [2, 4, 8, 12, 16]
    rounds = lab.rounds or (1 if lab.quick else 3)
    messages = [SIZE] if lab.quick else [SIZE, KB]
    steps = {k: STEPS[k] for k in (BASELINE, SPINDLE)} if lab.quick else STEPS
    best = {}
    with lab.guests(addrs=16) as c:
        for size in messages:
            series = {name: [] for name in steps}
            for n in sizes:
                runs = alternate({
                    name: lambda n=n, words=words, size=size: lab.perf(
                        c, n, **stream(lab, words, s=size))
                    for name, words in steps.items()},
                    2 if lab.quick and n == 16 else rounds)
                for name in steps:
                    series[name].append((n, mb(median_rate(runs[name]))))
                best[size, n] = runs
            label = f'{size // KB} KB'
            res.tables.append((f'MB/s delivered to each member, {label} messages',
                               ['members', *steps, 'gain'],
                               [[n, *(series[s][i][1] for s in steps),
                                 gain(series[SPINDLE][i][1], series[BASELINE][i][1])]
                                for i, n in enumerate(sizes)]))
            res.plots.append((f'One group, all send, {label}', 'members', 'MB/s', series, True))
        if not lab.quick:
            for senders in ('half', 'one'):
                rows = []
                for n in sizes:
                    runs = alternate({
                        name: lambda n=n, words=words, senders=senders: lab.perf(
                            c, n, **stream(lab, words, senders=senders))
                        for name, words in steps.items() if name in (BASELINE, SPINDLE)}, 2)
                    ours, theirs = (mb(median_rate(runs[k])) for k in (SPINDLE, BASELINE))
                    rows.append([n, theirs, ours, gain(ours, theirs)])
                res.tables.append((f'MB/s delivered to each member, 10 KB, {senders} sending',
                                   ['members', BASELINE, SPINDLE, 'gain'], rows))
    top = best[SIZE, 16]
    speedup = median_rate(top[SPINDLE]) / median_rate(top[BASELINE])
    speedup_cpu = median_cpu_rate(top[SPINDLE]) / median_cpu_rate(top[BASELINE])
    res.keys = {'speedup': round(speedup, 1), 'speedup_cpu': round(speedup_cpu, 1),
                'members': 16, 'size': SIZE,
                'spindle_mbs': mb(median_rate(top[SPINDLE])),
                'baseline_mbs': mb(median_rate(top[BASELINE])),
                'spread_pct': round(spread([rate(r) for r in top[SPINDLE]]), 1)}
    res.paper = [
        ('16 senders, 10 KB: all optimisations over the baseline',
         '0.6-1 to 9.7 GB/s (about 10-16 times)', f'{speedup:.1f} times'),
        ('batching alone over the baseline, 16 senders', '16 times', step_gain(top, '+ send')),
        ('posting after unlock, on top of the rest', '1.4 times', step_gain(top, SPINDLE,
                                                                         '+ nulls')),
    ]
    return res


def gain(ours, theirs):
    return round(ours / theirs, 1) if theirs else 0


def step_gain(runs, step, over=BASELINE):
    if step not in runs or over not in runs:
        return 'not measured'
    return f'{median_rate(runs[step]) / median_rate(runs[over]):.1f} times'


# figures 8, 9

def idle(lab):
    res = Result('idle', 'Idle groups beside a busy one', (
        'All members are in all groups, and all send in one of them. The others are silent.'))
    members = 4 if lab.quick else 8
    counts = [1, 50] if lab.quick else [1, 2, 5, 10, 20, 50]
    rounds = lab.rounds or (2 if lab.quick else 5)
    rows, series = [], {'Spindle': [(0, 100)], 'baseline': [(0, 100)]}
    loss, loss_cpu, writes = {}, {}, {}
    with lab.guests(addrs=members, mem='3G') as c:
        for k in counts:
            runs = alternate({
                'alone': lambda: lab.perf(c, members, **stream(lab)),
                f'{k} idle': lambda k=k: lab.perf(c, members, idle=k, **stream(lab))}, rounds)
            alone, beside = runs['alone'], runs[f'{k} idle']
            loss[k] = lost(alone, beside)
            loss_cpu[k] = lost(alone, beside, median_cpu_rate)
            writes[k] = sum(counted(r, 'rdma_writes', True) + counted(r, 'sends', True)
                            for r in beside)
            series['Spindle'].append((k, round(100 - loss[k], 1)))
            row = [k, mb(median_rate(alone)), mb(median_rate(beside)), round(loss[k], 1),
                   round(loss_cpu[k], 1), writes[k], '-']
            if not lab.quick:
                base = alternate({
                    'baseline alone': lambda: lab.perf(c, members, **stream(lab, 'none')),
                    f'baseline, {k} idle': lambda k=k: lab.perf(
                        c, members, idle=k, **stream(lab, 'none'))}, 2)
                loss_base = lost(*base.values())
                series['baseline'].append((k, round(100 - loss_base, 1)))
                row[-1] = round(loss_base, 1)
            rows.append(row)
    res.tables.append(('', ['idle groups', 'alone MB/s', 'beside MB/s', 'loss %',
                            'loss by processor time %', 'RDMA requests of the idle groups',
                            'baseline: loss %'], rows))
    res.plots.append(('A busy group beside idle ones', 'idle groups', '% of it alone',
                      {k: v for k, v in series.items() if len(v) > 1}, False))
    res.keys = {'loss1_pct': round(loss[1], 1), 'loss50_pct': round(loss[50], 1),
                'loss1_cpu_pct': round(loss_cpu[1], 1), 'loss50_cpu_pct': round(loss_cpu[50], 1),
                'members': members, 'idle_requests': sum(writes.values())}
    res.notes.append(CPU_NOTE)
    res.paper = [
        ('one idle group beside: loss', 'baseline 18 %', f'{loss[1]:.1f} %'),
        ('50 idle groups beside: loss', 'baseline 90 %; Spindle declines "more graciously"',
         f'{loss[50]:.1f} %'),
    ]
    return res


def lost(alone, beside, figure=median_rate):
    """Loss in per cent, of the medians."""
    return 100 * (1 - figure(beside) / figure(alone))


# figure 13

def active(lab):
    res = Result('active', 'Several busy groups', (
        'All members are in all groups and send in all of them. The sum over the groups is '
        'shown.'))
    members = 4 if lab.quick else 8
    counts = [1, 5] if lab.quick else [1, 2, 5, 10, 20]
    rounds = lab.rounds or (2 if lab.quick else 3)
    rows, series = [], {'Spindle': [], 'baseline': []}
    sums = {}
    with lab.guests(addrs=members, mem='3G') as c:
        contenders = {k: lambda k=k: lab.perf(c, members, active=k, **stream(
            lab, window='256k', warmup=30)) for k in counts}
        runs = alternate(contenders, rounds)
        base = {} if lab.quick else alternate({
            k: lambda k=k: lab.perf(c, members, active=k, **stream(lab, 'none', window='64k'))
            for k in counts}, 2)
    for k in counts:
        sums[k] = median_rate(runs[k])
        series['Spindle'].append((k, mb(sums[k])))
        theirs = mb(median_rate(base[k])) if base else '-'
        if base:
            series['baseline'].append((k, theirs))
        rows.append([k, mb(sums[k]), round(100 * sums[k] / sums[counts[0]], 1), theirs])
    most = counts[-1]
    res.tables.append(('', ['groups', 'MB/s in sum', '% of one group', 'baseline MB/s'], rows))
    res.plots.append(('All groups busy', 'groups', 'MB/s in sum',
                      {k: v for k, v in series.items() if v}, False))
    res.keys = {f'active{k}_pct': round(100 * sums[k] / sums[1], 1) for k in counts[1:]}
    res.keys['members'] = members
    res.paper = [(f'{most} busy groups, in per cent of one',
                  '"excellent scaling", about the same for 1 to 50',
                  f'{100 * sums[most] / sums[1]:.0f} %')]
    return res


# figures 10, 11

def delay(lab):
    members = 8 if lab.quick else 16
    rounds = lab.rounds or (2 if lab.quick else 5)
    res = Result('delay', 'Delayed senders', (
        'Senders pause behind each message (they sleep: on few processors a busy wait would take '
        'them from everybody). The paper\'s 100 us are six times what its senders take for a '
        'message; since these guests are slower, pauses of six and sixty times of what a sender '
        'takes here are measured too.'))
    no_null = 'deliver,receive,send,unlock'
    with lab.guests(addrs=members) as c:
        probe = lab.perf(c, members, **stream(lab))
        interval = 1e6 * members / probe['messages_per_second']
        scaled = int(6 * interval)

        def one(us, delayed=1, optimise='all'):
            return lambda: lab.perf(c, members, delay_us=us, delayed=delayed,
                                    **stream(lab, optimise))

        contenders = {
            'none': lambda: lab.perf(c, members, **stream(lab)),
            'one, 100 us': one(100),
            'one, 6 x': one(scaled),
        }
        if not lab.quick:
            contenders |= {
                'one, 1 us': one(1),
                'one, 60 x': one(10 * scaled),
                'half, 1 us': one(1, 'half'),
                'half, 100 us': one(100, 'half'),
                'half, 6 x': one(scaled, 'half'),
                'none, without nulls': lambda: lab.perf(c, members, **stream(lab, no_null)),
                'one, 6 x, without nulls': one(scaled, 1, no_null),
            }
        runs = alternate(contenders, rounds)
    full = median_rate(runs['none'])
    rows = [[name, mb(median_rate(found)), round(100 * median_rate(found) / full, 1),
             round(spread([rate(r) for r in found]), 1),
             round(100 * median_cpu_rate(found) / median_cpu_rate(runs['none']), 1),
             round(100 * others(found) / others(runs['none']), 1),
             round(median([by_rank(r)[0] / max(1, by_rank(r)[-1]) for r in found]), 3),
             round(per_message(found, 'nulls'), 4)]
            for name, found in runs.items()]
    res.tables.append((f'{members} senders, 10 KB; a sender takes {interval:.0f} us a message, '
                       f'six times that is {scaled} us',
                       ['delayed', 'MB/s', '% of undelayed', 'spread %', 'by processor time %',
                        'the undelayed: % of before', 'messages of rank 0 to the last\'s',
                        'nulls per message'], rows))

    def share_of(name):
        return round(100 * median_rate(runs[name]) / full, 1)

    res.keys = {'delayed1_pct': share_of('one, 100 us'),
                'delayed1_scaled_pct': share_of('one, 6 x'),
                'others_pct': rows[1][5], 'others_scaled_pct': rows[2][5],
                'scaled_us': scaled, 'members': members}
    if 'half, 6 x' in runs:
        res.keys['delayed_half_scaled_pct'] = share_of('half, 6 x')
        res.keys['no_nulls_scaled_pct'] = share_of('one, 6 x, without nulls')
    res.plots.append(('Delayed senders', 'case', '% of undelayed',
                      {'': [(row[0], row[2]) for row in rows]}, False))
    res.paper = [('one sender of 16 delayed by 100 us', 'no loss, or a gain (up to 10.0 GB/s)',
                  f'{share_of("one, 100 us")} % of undelayed'),
                 ('the same in proportion (six times the time for a message)', 'the same',
                  f'{share_of("one, 6 x")} % of undelayed')]
    res.notes.append(CPU_NOTE)
    return res


def by_rank(run):
    return run['groups'][0]['messages_by_rank']


def others(runs):
    """Messages/s of the highest rank, which is never delayed."""
    return median([by_rank(r)[-1] / sum(by_rank(r)) * r['messages_per_second'] for r in runs])


# figure 15

def copy(lab):
    res = Result('copy', 'In place, and with copies', (
        'Messages built and read in the rings; built elsewhere, copied in, and copied out on '
        'delivery (memcpy); sent and received by system calls, one a message (sendmsg).'))
    ways = {'in place': {'mode': 'mapped'}, 'memcpy': {'mode': 'mapped', 'memcpy': True},
            'sendmsg': {'mode': 'copy'}, 'sendmmsg': {'mode': 'copy', 'batch': 16}}
    sizes = [8] if lab.quick else [2, 4, 8, 16]
    rounds = lab.rounds or (2 if lab.quick else 3)
    if lab.mode == 'copy':
        ways = {k: v for k, v in ways.items() if k.startswith('send')}
    first = next(iter(ways))
    rows, series, top = [], {name: [] for name in ways}, None
    with lab.guests(addrs=16) as c:
        for senders in ('all',) if lab.quick else ('all', 'half', 'one'):
            for n in sizes:
                runs = alternate({name: lambda n=n, way=way, senders=senders: lab.perf(
                    c, n, **stream(lab, senders=senders, **way)) for name, way in ways.items()},
                    rounds)
                rows.append([n, senders, '10 KB', *cells(runs, first)])
                if senders == 'all':
                    top = runs
                    for name in ways:
                        series[name].append((n, mb(median_rate(runs[name]))))
        for size in () if lab.quick else (1, 128, KB):
            n = sizes[-1]
            runs = alternate({name: lambda way=way, size=size: lab.perf(
                c, n, **stream(lab, s=size, t=1024, **way)) for name, way in ways.items()}, rounds)
            rows.append([n, 'all', f'{size} B', *cells(runs, first)])
    res.tables.append(('MB/s delivered to each member', [
        'members', 'senders', 'size', *ways, *(f'{w} %' for w in list(ways)[1:])], rows))
    res.plots.append(('Copies, all send, 10 KB', 'members', 'MB/s', series, False))
    res.keys = {f'{name}_pct': round(100 * median_rate(top[name]) / median_rate(top[first]), 1)
                for name in list(ways)[1:]}
    res.keys['members'] = sizes[-1]
    if 'memcpy' in ways:
        res.paper = [('copies in send and delivery, all send, 10 KB',
                      'about 7.5 of 9.7 GB/s (77 %)', f'{res.keys["memcpy_pct"]} %')]
    return res


def cells(runs, first):
    top = median_rate(runs[first])
    return [*(mb(median_rate(found)) for found in runs.values()),
            *(round(100 * median_rate(found) / top, 1)
              for name, found in runs.items() if name != first)]


# section 4.1.1 in numbers

def ops(lab):
    res = Result('ops', 'Operations for each message', (
        'What the kernel counts on all nodes, divided by the messages delivered on all nodes. '
        'Emulation makes each of them slower or faster, but neither more nor fewer.'))
    members = 16
    count = {'none': 8 if lab.quick else 40, 'all': 150 if lab.quick else 1000}
    names = ['writes', 'posts', 'sends', 'wakes_sent', 'naps', 'passes', 'nulls']
    rows, each, batches, copied = [], {}, {}, {}
    with lab.guests(addrs=members) as c:
        for size in (SIZE, KB):
            runs = alternate({
                f'{what}, {size} B': lambda words=words, size=size: lab.perf(
                    c, members, s=size, n=count[words], window='1M', optimise=words, idle=1)
                for what, words in ((BASELINE, 'none'), (SPINDLE, 'all'))},
                1 if lab.quick else 3)
            for name, found in runs.items():
                each[name] = found
                batches[name] = found[-1].get('batches', {})
                copied[name] = sum(r['copied_bytes'] for r in found) / sum(
                    counted(r, 'delivered') for r in found)
                rows.append([name, *(round(per_message(found, k), 4) for k in names),
                             round(copied[name] + per_message(found, 'copied_bytes'), 1)])
    ours, theirs = (per_message(each[f'{what}, {SIZE} B'], 'writes')
                    for what in (SPINDLE, BASELINE))
    res.tables.append((f'{members} senders, one idle group beside',
                       ['', *names, 'bytes copied'], rows))
    res.tables.append(('Mean batch sizes', ['', 'send', 'receive', 'deliver'],
                       [[name, *(mean_batch(b, s) for s in ('send', 'receive', 'deliver'))]
                        for name, b in batches.items() if b]))
    top = each[f'{SPINDLE}, {SIZE} B']
    idle_work = sum(counted(r, k, True) for r in top for k in ('rdma_writes', 'sends', 'passes'))
    res.keys = {
        'writes_per_msg': round(ours, 4), 'writes_ratio': round(theirs / ours, 1),
        'posts_per_msg': round(per_message(top, 'posts'), 4),
        'wakes_per_msg': round(per_message(top, 'wakes_sent'), 4),
        'copied_per_msg': rows[1][-1],
        'idle_group_work': idle_work,
        'ratio_to_paper_baseline': round(PAPER_BASELINE_WRITES / ours, 1),
        'members': members,
    }
    res.paper = [
        ('RDMA writes of a node for each message, baseline', f'{PAPER_BASELINE_WRITES:.2f}',
         f'{theirs:.2f}'),
        ('the same, all optimisations', f'{PAPER_SPINDLE_WRITES:.3f}', f'{ours:.3f}'),
        ('baseline over all optimisations', '16.5', f'{theirs / ours:.1f}'),
        ('the paper\'s baseline over this', '16.5', f'{PAPER_BASELINE_WRITES / ours:.1f}'),
    ]
    first = batches.get(f'{SPINDLE}, {SIZE} B')
    if first:
        res.paper.append(('mean batch sizes: send, receive, delivery', '1.72, 22.18, 35.19',
                          ', '.join(str(mean_batch(first, s))
                                    for s in ('send', 'receive', 'deliver'))))
    res.notes.append(
        'The baseline here acknowledges every single message, and delivers every single one, '
        'with a write to every peer. That of the paper takes one message of every sender in one '
        'pass of its loop and acknowledges them together, so it needs fewer writes; the last '
        'row but one compares with that.')
    res.plots.append(('RDMA writes for each message delivered', 'case', 'writes',
                      {'': [(row[0], row[1]) for row in rows]}, True))
    ops_lone(lab, res)
    return res


LONE_COUNTS = ['writes', 'rdma_writes', 'sends', 'wakes_sent', 'posts', 'nulls', 'naps', 'frames']


def sleep_us(lab):
    return SLEEP_US if lab.kernel == 'uml' else SLEEP_EMULATED_US


def ops_lone(lab, res):
    """One message at a time between guests: what all of them do for it."""
    rows = []
    for nodes, cases in (3, {'lone': 0, 'lone_sleep': sleep_us(lab)}), (8, {'lone8': 0}):
        if nodes > 3 and lab.kernel != 'uml':
            # so many emulators take minutes to boot
            continue
        with lab.guests(nodes=nodes, mem='384M') as c:
            for name, pause in cases.items():
                each = lone_counts(lab, c, pause)
                rows.append([name, nodes, f'{pause // 1000} ms',
                             *(round(each[k], 3) for k in LONE_COUNTS)])
                res.keys |= {f'{name}_writes': round(each['writes'], 2),
                             f'{name}_wakes': round(each['wakes_sent'], 2),
                             f'{name}_frames': round(each['frames'], 2)}
                if pause:
                    res.keys[f'{name}_naps'] = round(each['naps'] / nodes, 2)
            if nodes == 3:
                res.keys['lone_tcp_frames'] = round(lone_frames_tcp(lab, c), 2)
    res.tables.append((f'One sender, one message of {LONE} bytes at a time: of all guests together',
                       ['', 'guests', 'pause', *LONE_COUNTS], rows))
    res.notes.append(
        'One message at a time (lone): the next one is sent when the sender has delivered the one '
        'before, and after the pause, in which every engine goes to sleep (naps: about one for '
        'each node). It is counted on all guests together for each message, not for each '
        'delivery. Frames are those on the guests\' network, either way, acknowledgments of RDMA '
        'too. All is the difference between a long run and a short one, so that forming a group '
        'and ending it do not count; nothing is sent while a group is silent. Writes are RDMA '
        'writes, and rows sent to peers that do not poll. lone_tcp_frames: the same of a sequencer over TCP, '
        'sent by a node where it is not.')


def lone_counts(lab, c, pause):
    """What all guests count for each message of one sender."""
    few, many = (5, 65 if lab.quick else 205) if pause else (20, 320 if lab.quick else 2020)

    def counts(n):
        before = lab.frames(c)
        runs = lab.perf_across(c, s=LONE, n=n, warmup=5 if pause else 20, senders='one',
                               latency=True, interval_us=pause)
        found = {k: sum(counted(r, k) for r in runs) for k in LONE_COUNTS}
        found['writes'] = sum(written(r) for r in runs)
        found['frames'] = lab.frames(c) - before
        return found

    runs = alternate({n: lambda n=n: counts(n) for n in (few, many)},
                     lab.rounds or (1 if lab.quick else 3))
    return {k: sum(longer[k] - shorter[k] for shorter, longer in zip(*runs.values())) /
            (many - few) / len(runs[few]) for k in LONE_COUNTS}


def lone_frames_tcp(lab, c):
    """Frames for each message of a sequencer over TCP, likewise."""
    few, many = 20, 320

    def frames(n):
        before = lab.frames(c)
        lab.sequencer_latency(c, LONE, n, 0, 2)
        return lab.frames(c) - before

    runs = alternate({n: lambda n=n: frames(n) for n in (few, many)}, 1)
    return (runs[many][0] - runs[few][0]) / (many - few)


def mean_batch(batches, stage):
    found = batches.get(stage, {})
    return round(found.get('messages', 0) / found['batches'], 2) if found.get('batches') else '-'


# the network's share

def share(lab):
    res = Result('share', 'Share of the raw verbs rate, and of the link', (
        'Raw: the bytes that all nodes of one guest write for the payload, in per cent of what '
        'RDMA writes alone carry between two addresses of the same guest. Link: guests whose '
        'cables are throttled until they are the limit; the payload that a guest sends to its '
        'peers, in per cent of its cable\'s rate.'))
    share_raw(lab, res)
    share_link(lab, res)
    for title, _, rows in res.tables:
        res.plots.append((title, 'what', '% of the yardstick', {
            '': [(row[0], row[2]) for row in rows]}, False))
    res.paper = [('share of the link, up to 16 senders, 10 KB', '77.6 %',
                  f'{res.keys["link_pct"]} %')]
    return res


def share_raw(lab, res):
    sizes = [4, 16] if lab.quick else [2, 4, 8, 16]
    rounds = lab.rounds or (2 if lab.quick else 5)
    seconds = 1 if lab.quick else 3
    counts = (1000, 15000) if lab.quick else (1000, 30000)
    rows = []
    with lab.guests(addrs=16) as c:
        contenders = {
            'perftest': lambda: lab.perftest_bandwidth(c, SIZE, counts),
            'verbs 10 KB': lambda: lab.raw_bandwidth(c, SIZE, seconds),
            'verbs 64 KB': lambda: lab.raw_bandwidth(c, 64 * KB, seconds, 16),
            **{n: lambda n=n: rate(lab.perf(c, n, **stream(lab, window='1M'))) * (n - 1)
               for n in sizes},
        }
        found = {k: median(v) for k, v in alternate(contenders, rounds).items()}
    raw = max(v for v in (found['perftest'], found['verbs 10 KB']) if v == v)
    for name, value in found.items():
        rows.append([f'Spindle, {name} members' if isinstance(name, int) else name, mb(value),
                     round(100 * value / raw, 1), round(100 * value / found['verbs 64 KB'], 1)])
    res.tables.append(('Payload written in one guest', ['', 'MB/s', '% of the best at 10 KB',
                                                        '% of verbs at 64 KB'], rows))
    res.keys['raw_pct'] = round(100 * found[16] / raw, 1)
    res.keys['raw_large_pct'] = round(100 * found[16] / found['verbs 64 KB'], 1)
    res.notes.append(
        'perftest looks at its completion queue without a pause, which takes the processor from '
        'the software adapter where there is only one; the best of it and of a program that '
        'sleeps (raw_verbs) is the yardstick. Spindle writes runs of many messages at once, '
        'so larger writes are compared too.')


def share_link(lab, res):
    nodes = 3
    seconds = 5 if lab.quick else 20
    rounds = lab.rounds or (1 if lab.quick else 3)
    rates = [50, 25] if lab.quick else [200, 100, 50, 25]
    # full queues of a slow cable take longer than the usual time for an answer
    with lab.guests(nodes=nodes, mem='512M', modparam='ack_timeout=19') as c:
        for rate_mbit in rates:
            for i in range(nodes):
                c.link(i, rate=f'{rate_mbit}mbit')
            full = rate_mbit * 1e6 / 8
            raw = ring_bandwidth(lab, c, 3) / full
            say(f'raw verbs at {rate_mbit} Mbit/s: {100 * raw:.1f} % of the link')
            if raw > 0.92:
                break

        def one():
            runs = lab.perf_across(c, **stream(lab, seconds=seconds, window='1M'))
            total = median([rate(r) for r in runs])
            return total / nodes * (nodes - 1)

        runs = alternate({'raw': lambda: ring_bandwidth(lab, c, min(seconds, 8)), 'Spindle': one}, rounds)
    found = {k: median(v) for k, v in runs.items()}
    res.tables.append((f'{nodes} guests, cables of {rate_mbit} Mbit/s', [
        '', 'MB/s out of each guest', '% of the link'],
        [[k, mb(v), round(100 * v / full, 1)] for k, v in found.items()]))
    res.keys['link_pct'] = round(100 * found['Spindle'] / full, 1)
    res.keys['link_raw_pct'] = round(100 * found['raw'] / full, 1)
    res.keys['link_mbit'] = rate_mbit
    res.keys['link_guests'] = nodes


def ring_bandwidth(lab, c, seconds):
    """Each guest writes to the next, so that every cable is full both ways; bytes/s of one."""
    lab.note_load()
    pairs = [lab.raw_pair(c, (i + 1) % c.nodes, i, 'bw', SIZE, seconds, 32)
             for i in range(c.nodes)]
    return median([lab.raw_result(p)['bytes_per_second'] for p in pairs])


# figures 5, 17

def latency(lab):
    res = Result('latency', 'Latency', (
        'From the beginning of the call that sends a message until its sender has taken it from '
        'the order (own), which is after it has reached every node; and until all members in the '
        'guest have (all). Without load: one message at a time from one sender. The yardstick '
        'is a write that the other side answers with a write, between the same guests.'))
    count = 300 if lab.quick else 3000
    rounds = lab.rounds or (2 if lab.quick else 5)
    rows = []
    waits = ['block', 'adaptive']
    found = {}
    for nodes, addrs in ((2, 1),) if lab.quick else ((2, 1), (3, 1), (1, 2), (1, 16)):
        with lab.guests(nodes=nodes, addrs=addrs, mem='512M' if addrs < 4 else '1536M') as c:
            peer = c.nodes - 1

            def raw(how, c=c, peer=peer):
                return lab.raw_latency(c, 0, peer, 16, count, how)['p50']

            def ours(wait, c=c, nodes=nodes, addrs=addrs):
                options = {'s': 16, 'n': count, 'warmup': 20, 'senders': 'one', 'latency': True,
                           'interval_us': 200, 'wait': wait, 'stats': False}
                if nodes == 1:
                    return lab.perf(c, addrs, **options)['latency']['own_us']['p50']
                return own_latency(lab.perf_across(c, **options))['p50']

            contenders = {'write and answer, event': lambda: raw('event')}
            if nodes > 1 or lab.kernel != 'uml':
                # on one processor the two that look only take it from each other
                contenders['write and answer, poll'] = lambda: raw('poll')
            contenders |= {f'Spindle, {w}': lambda w=w, ours=ours: ours(w) for w in waits}
            here = {k: median(v) for k, v in alternate(contenders, rounds).items()}
        base = min(v for k, v in here.items() if k.startswith('write'))
        where = f'{nodes} guests' if nodes > 1 else f'{addrs} nodes in one guest'
        for name, us in here.items():
            rows.append([where, name, round(us, 1), round(us / base, 2)])
        found[where] = min(v for k, v in here.items() if k.startswith('Spindle')) / base
    res.tables.append(('Without load: medians', ['', '', 'us', 'round trips'], rows))
    res.keys = {'stable_rtts': round(found['2 guests'], 2)}
    if '3 guests' in found:
        res.keys['stable3_rtts'] = round(found['3 guests'], 2)
    latency_tcp(lab, res)
    latency_loaded(lab, res)
    return res


def latency_tcp(lab, res):
    """Three guests, beside a sequencer over TCP: lone messages, and streams."""
    rounds = lab.rounds or (2 if lab.quick else 5)
    seconds = 1 if lab.quick else 5
    asleep = sleep_us(lab)
    count = {0: 200 if lab.quick else 2000, asleep: 20 if lab.quick else 200}
    modes = ['copy', 'mapped']
    rows, found = [], {}
    with lab.guests(nodes=3, mem='512M') as c:
        for pause, name in (0, ''), (asleep, 'sleep_'):
            runs = alternate({
                'tcp': lambda us=pause: lab.sequencer_latency(c, LONE, count[us], us, 2),
                'at the sequencer': lambda us=pause: lab.sequencer_latency(
                    c, LONE, count[us], us, 0),
                **{mode: lambda us=pause, mode=mode: own_latency(lab.perf_across(
                    c, mode=mode, s=LONE, n=count[us], warmup=20, senders='one', latency=True,
                    interval_us=us)) for mode in modes}}, rounds)
            here = {k: {p: median([r[p] for r in v]) for p in ('p50', 'avg', 'p99')}
                    for k, v in runs.items()}
            for k, v in here.items():
                rows.append([f'{pause // 1000} ms', TCP_NAMES.get(k, f'Spindle, {k}'),
                             *(round(us, 1) for us in v.values()),
                             round(v['p50'] / here['tcp']['p50'], 2),
                             round(median([r['naps'] for r in runs[k]]), 2) if k in modes else '-'])
            found |= {f'{k}_{name}us': round(here[k]['p50'], 1) for k in ('tcp', *modes)}
            found |= {f'{k}_{name}over_tcp': round(here[k]['p50'] / here['tcp']['p50'], 2)
                      for k in modes}
        streams = alternate({
            'tcp': lambda: lab.sequencer(c, 'stream', SIZE, seconds),
            **{mode: lambda mode=mode: lab.perf_across(c, mode=mode, s=SIZE, D=seconds, warmup=30)
               for mode in modes}}, rounds)
    rates = {k: median([median_rate(guests) for guests in v]) for k, v in streams.items()}
    found |= {f'{k}_stream_mbs': mb(v) for k, v in rates.items()}
    found |= {f'{k}_stream_over_tcp': round(rates[k] / rates['tcp'], 2) for k in modes}
    res.keys |= found
    res.tables.append((f'A message of {LONE} bytes at a time, 3 guests, beside TCP: us', [
        'pause', '', 'p50', 'avg', 'p99', 'of TCP', 'naps of a node'], rows))
    res.tables.append(('Streams of 10 KB, 3 guests that all send, beside TCP', [
        '', 'MB/s delivered to each member', 'of TCP'],
        [[TCP_NAMES.get(k, f'Spindle, {k}'), mb(v), round(v / rates['tcp'], 2)]
         for k, v in rates.items()]))
    res.notes.append(
        'The sequencer over TCP (selftests/bench/sequencer.c) is a process on one of the guests '
        'that gives each message its place and sends it to all; a message is delivered when it '
        'comes back to its sender, two ways later. The sender is not where the sequencer is, but '
        'in the row that says so; there it waits for nothing at all. What TCP\'s sequencer '
        'delivers is not stable: nobody has acknowledged it, and it may be lost with the '
        'sequencer, when only some, or none of the others, have it. Spindle delivers a message '
        'once every node has it. Windows are 1 MiB a sender on both sides, Spindle\'s default for so few. '
        'Naps: how often a node\'s engine went to sleep for each message.')


def own_latency(runs):
    """That of the guest that sends, and how often a node went to sleep for each message."""
    lat = max((r['latency']['own_us'] for r in runs), key=lambda lat: lat['samples'])
    return {**lat, 'naps': per_message(runs, 'naps')}


def fabric(lab):
    """The same every time, to the digit: virtual time, on a modelled fabric."""
    zero = lab.cost == 'zero'
    name = {None: 'fabric', 'zero': 'fabric-zero'}.get(lab.cost, f'fabric-{lab.cost}')
    res = Result(name, 'Latency on a modelled fabric' + ', computing for free' * zero, (
        'In virtual time, on cables and wires as the command says: the median time from the '
        'beginning of the call that sends a message of 16 bytes until its sender has taken it '
        'from the order, which is after it has reached every node. One sender, one message '
        'every 200 us, 200 of them; by system calls (copy) and by mapped rings, asleep in '
        'poll(2) in between. Beside it a write of 16 bytes and its completion, in the same '
        'guests. Nothing here depends on the host: the check runs it and expects these very '
        'figures.'))
    rows = []
    for nodes in (2, 3, 8):
        with lab.guests(nodes=nodes, mem='384M') as c:
            here = {'write': lab.raw_write(c, 0, nodes - 1, 16, 200)['p50']}
            for mode in ('copy', 'mapped'):
                runs = lab.perf_across(c, mode=mode, s=16, n=200, warmup=20, senders='one',
                                       latency=True, interval_us=200, wait='block', stats=False)
                here[mode] = own_latency(runs)['p50']
        for what, us in here.items():
            rows.append([f'{nodes} guests', what, f'{us:.2f}', f'{us / here["write"]:.2f}'])
            if what != 'write':
                res.keys[f'{what}{nodes}_us'] = round(us, 2)
        res.keys['write_us'] = round(here['write'], 2)
    res.tables.append(('', ['', '', 'us', 'writes'], rows))
    res.notes.append('A guest reads its clock in steps of 256 ns, and each look takes as long. '
                     'Means would depend on where in a step a run begins; medians do not.')
    return res


def latency_loaded(lab, res):
    members = 8 if lab.quick else 16
    rows = []
    with lab.guests(addrs=members) as c:
        runs = alternate({
            name: lambda words=words, n=n: lab.perf(
                c, members, s=SIZE, window='128k' if lab.quick else '512k', optimise=words, n=n,
                warmup=12 if lab.quick else 50, latency='load')
            for name, words, n in ((BASELINE, 'none', 20 if lab.quick else 80),
                                   (SPINDLE, 'all', 200 if lab.quick else 1000))},
            1 if lab.quick else 3)
    names = ['min', 'p50', 'avg', 'p90', 'p99', 'p99.9', 'max']
    mid = {}
    for name, found in runs.items():
        for until in ('own_us', 'all_us'):
            values = [median([r['latency'][until][k] for r in found]) for k in names]
            mid[name, until] = values[names.index('avg')]
            rows.append([name, until[:3], *(round(v / 1000, 2) for v in values)])
    res.tables.append((f'Under load, {members} senders, 10 KB, ms', ['', 'until', *names], rows))
    better = mid[BASELINE, 'own_us'] / mid[SPINDLE, 'own_us']
    res.keys['loaded_gain'] = round(better, 1)
    res.keys['members'] = members
    res.paper = [('mean latency under load, 16 senders: baseline over Spindle',
                  'almost two orders of magnitude', f'{better:.1f} times')]
    res.notes.append('Latencies under load are those of full rings: the time that a message '
                     'waits for the ones before it.')
    res.plots.append(('Mean latency under load', 'case', 'ms', {
        '': [(name, round(mid[name, 'own_us'] / 1000, 2)) for name in runs]}, True))


ALL = {f.__name__: f for f in (ratio, idle, active, delay, copy, ops, share, latency)}

__all__ = ['ALL', 'Error']
