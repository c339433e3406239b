# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/bench."""

import argparse
import signal
import sys
import time

import benchmarks
import lab as labs
import report

KERNELS = ['uml', 'debian-6.1', 'debian-6.12']


def parse():
    top = argparse.ArgumentParser(
        prog='scripts/bench', description='Run a benchmark in guests; the last line of output '
        'is "bench NAME: key=value ...".')
    top.add_argument('names', nargs='+', metavar='NAME', choices=[*benchmarks.ALL, 'all'],
                     help=f'{", ".join(benchmarks.ALL)}, or all')
    top.add_argument('--quick', action='store_true', help='about a minute each, and less exact')
    top.add_argument('--kernel', default='uml', choices=KERNELS,
                     help='what the guests run (default: uml)')
    top.add_argument('--mode', default='mapped', choices=['mapped', 'copy'],
                     help='how members send and receive, where a benchmark does not say')
    top.add_argument('--fabric', metavar='RATE,DELAY', help='latency alone: in virtual time, on '
                     'cables of that rate and wires of that delay (100gbit,1us)')
    top.add_argument('--cost', metavar='zero|NAME=NS,...', help='of computing there (scripts/vm '
                     'run --help)')
    top.add_argument('--rounds', type=int, metavar='N', help='take each figure N times')
    top.add_argument('--write', action='store_true',
                     help='write Documentation/benchmarks/NAME.{json,rst,svg}')
    top.add_argument('--out', metavar='DIR', help='write them there instead')
    top.add_argument('--render', action='store_true',
                     help='run nothing: make NAME.{rst,svg} anew from NAME.json')
    args = top.parse_args()
    if args.fabric and (args.names != ['latency'] or args.quick or args.rounds):
        top.error('--fabric is for latency alone; its runs are short, and always the same')
    if args.fabric and len(args.fabric.split(',')) != 2:
        top.error('--fabric: a rate and a delay wanted, as 100gbit,1us')
    if args.cost and not args.fabric:
        top.error('--cost is for a --fabric')
    if args.fabric:
        args.kernel = 'virtual'
    return args


def command_of(args, name):
    words = ['scripts/bench', name]
    words += ['--quick'] if args.quick else []
    words += ['--rounds', str(args.rounds)] if args.rounds else []
    if args.fabric:
        words += ['--fabric', args.fabric] + (['--cost', args.cost] if args.cost else [])
    elif args.kernel != 'uml':
        words += ['--kernel', args.kernel]
    words += ['--mode', args.mode] if args.mode != 'mapped' else []
    return ' '.join(words)


def one(args, name):
    began = time.monotonic()
    lab = labs.Lab(args.kernel, args.quick, args.mode, args.rounds, args.fabric, args.cost)
    res = benchmarks.fabric(lab) if args.fabric else benchmarks.ALL[name](lab)
    res.keys['kernel'] = args.kernel
    if not args.fabric:
        # nothing else depends on the machine there
        res.keys['seconds'] = round(time.monotonic() - began)
    for title, columns, rows in res.tables:
        print(f'\n{title}\n' if title else '')
        print(report.rst_table(columns, rows), end='')
    if res.paper:
        print('\n' + report.rst_table(['what', 'paper', 'here'], res.paper), end='')
    if args.write or args.out:
        report.write(res, lab.environment(), command_of(args, name), args.out or report.PAGES)
        report.write_runs(res.name + '-quick' * args.quick, lab.runs)
    print(res.line(), flush=True)


def main():
    args = parse()
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.default_int_handler)
    names = list(benchmarks.ALL) if 'all' in args.names else args.names
    failed = 0
    if args.render:
        for name in names:
            report.render(name, args.out or report.PAGES)
        return 0
    try:
        labs.build()
        for name in names:
            try:
                one(args, name)
            except labs.Error as e:
                print(f'bench {name}: failed: {e}', file=sys.stderr, flush=True)
                failed = 1
    except labs.Error as e:
        print(f'bench: {e}', file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return failed
