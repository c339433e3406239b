# SPDX-License-Identifier: GPL-2.0
"""The selftests on a kernel that looks for data races, on two processors.

Long, so scripts/check runs it when it is named: scripts/check --only kcsan. A report in
which the module has a part fails (scripts/vmlib/complaints.py tells whose one is), and
so does any other complaint; whether a program came to its end in time does not, for
accesses are delayed on purpose here: selftests/guests has that.
"""

import os
import subprocess
import sys

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from vmlib import Cluster, Timeout
from vmlib import complaints

BIN = os.path.join(PROJECT, 'build', 'selftests')
PROGRAMS = ['socket_test', 'group_test', 'rings_test', 'views_test', 'objects_test']
BOUND = 1500            # of one program, s
# One access in so many is watched, for at most so many us, in tasks and in interrupts.
# Emulated processors run at the mercy of the host's: shorter, and the other does not come by.
SAMPLING = 'kcsan.skip_watch=3000 kcsan.udelay_task=300 kcsan.udelay_interrupt=50'


def build():
    for part in ('socket', 'userlib'):
        subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'selftests', part)], check=True)
    subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, 'userlib', 'tools')], check=True)


def cluster():
    return Cluster(kernel='kcsan', nodes=1, addrs=16, smp=2, module=True, timeout=BOUND + 300,
                   mem='1G', append=SAMPLING)


@pytest.mark.parametrize('program', PROGRAMS)
def test_races(program):
    build()
    with cluster() as c:
        p = c.start(0, [os.path.join(BIN, program)], env={'SPINDLE_TIMEOUT_SCALE': 10})
        try:
            p.wait(BOUND)
        except Timeout:
            # what it has seen until then counts
            pass
        assert 'ok ' in p.stdout, p.stdout + p.stderr
        c.check_logs()


# A report as the kernel prints it, of a race that was planted.
REPORT = '''\
[   20.1] ==================================================================
[   20.1] BUG: KCSAN: data-race in {0} / {0}
[   20.1]{1}
[   20.1] read-write to 0xffffffffc0210c40 of 8 bytes by task 149 on cpu 1:
[   20.1]  {2}+0x8f/0x1d0{3}
[   20.1]  sp_recvmsg+0x1d/0x20 [spindle]
[   20.1]  sock_recvmsg+0x7d/0x90
[   20.1]  asm_sysvec_apic_timer_interrupt+0x1b/0x20
[   20.1]  sp_sendmsg+0x1d/0x20 [spindle]
[   20.1] ==================================================================
'''


def reported(*words):
    return bool(complaints.find(REPORT.format(*words).splitlines(), 'kcsan'))


def test_reports_are_told_apart():
    assert reported('sp_x [spindle]', '', 'sp_x', ' [spindle]')
    assert reported('__list_add', '', '__list_add', '')
    assert not reported('rxe_task', '', 'rxe_task', ' [rdma_rxe]')
    text = REPORT.format('hrtimer_wakeup', '', 'hrtimer_wakeup', '')
    text = text.replace('sp_recvmsg+0x1d/0x20 [spindle]', 'do_x+0x1/0x2')
    assert not complaints.find(text.splitlines(), 'kcsan')
    # what is said behind it is read again
    assert complaints.find((text + '[ 20.2] WARNING: CPU: 0').splitlines(), 'kcsan')
