# SPDX-License-Identifier: GPL-2.0
"""The module's KUnit suites, run once in a guest; each of their cases is one here.

SPINDLE_TEST_KERNEL chooses the kernel, one of those that have KUnit (default: virtual-debug).
"""

import glob
import os
import re
import sys

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position,redefined-outer-name
from vmlib import Cluster, KernelComplaint

KERNEL = os.environ.get('SPINDLE_TEST_KERNEL', 'virtual-debug')
RESULTS = '/sys/kernel/debug/kunit'


def suites():
    """What the sources promise: {suite: cases}."""
    found = {}
    for path in sorted(glob.glob(os.path.join(PROJECT, 'kmod', 'tests', '*_test.c'))):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        name = re.search(r'struct kunit_suite \w+ = \{.*?\.name = "(\w+)"', text, re.S)[1]
        found[name] = re.findall(r'\bKUNIT_CASE\w*\(\s*(\w+)', text)
    return found


SUITES = suites()
CASES = [(suite, case) for suite, cases in SUITES.items() for case in cases]


class Verdicts:
    """What became of the suites in the guest."""

    def __init__(self):
        self.cases = {}         # (suite, case): verdict, what was said before it
        self.complaint = ''

    def take(self, suite, text):
        said = []
        for line in text.splitlines():
            match = re.match(r'    (not ok|ok) \d+ (\w+)(.*)', line)
            if match:
                verdict = 'skipped' if '# SKIP' in match[3] else match[1]
                self.cases[suite, match[2]] = (verdict, '\n'.join([*said, line]))
                said = []
            elif not re.match(r'\s*(KTAP version|1\.\.|# Subtest)', line):
                said.append(line)


@pytest.fixture(scope='module')
def verdicts():
    found = Verdicts()
    try:
        # the case itself tells of its failure
        with Cluster(kernel=KERNEL, module=True, kunit=True,
                     allow=[(r'not ok \d+', 'a case here')]) as c:
            for suite in c.run(0, ['ls', RESULTS], check=True).stdout.split():
                found.take(suite, c.run(0, ['cat', f'{RESULTS}/{suite}/results'],
                                        check=True).stdout)
    except KernelComplaint as e:
        found.complaint = str(e)
    return found


@pytest.mark.parametrize('case', CASES, ids='-'.join)
def test_kunit(verdicts, case):
    assert case in verdicts.cases, f'it did not run\n{verdicts.complaint}'
    verdict, said = verdicts.cases[case]
    if verdict == 'skipped':
        pytest.skip(said)
    assert verdict == 'ok', said


def test_no_other_cases(verdicts):
    """Names are read from the sources; none must be missed there."""
    assert set(verdicts.cases) == set(CASES)
    assert all(SUITES.values())


def test_kernel_is_content(verdicts):
    assert not verdicts.complaint, verdicts.complaint
