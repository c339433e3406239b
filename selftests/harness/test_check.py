# SPDX-License-Identifier: GPL-2.0
"""scripts/check: what it runs once more, what it fails for, what it puts on record."""

import os
import re
import shutil
import subprocess

import pytest

from vmlib.base import cache_dir

SELFTESTS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

# Tests of a project of their own; each appends a line to a file when it runs.
TESTS = '''
import os
import pytest
from vmlib import KernelComplaint
HERE = os.path.dirname(os.path.abspath(__file__))

def nth(name):
    with open(os.path.join(HERE, name), 'a+') as f:
        f.write('x')
        f.seek(0)
        return len(f.read())

def test_good():
    pass

@pytest.mark.parametrize('number', range(int(os.environ['FLAKY'])))
def test_late(number):
    assert nth(f'late{number}') > 1, 'not so in 10 s'

if os.environ['BAD'] == 'bad':
    def test_bad():
        assert not nth('bad'), 'status 1'
if os.environ['BAD'] == 'broken':
    def test_broken():
        assert nth('broken') > 1, 'broken: member 1 has another order'
if os.environ['BAD'] == 'complaint':
    def test_complaint():
        if nth('complaint') == 1:
            raise KernelComplaint('WARNING')
if os.environ['BAD'] == 'breakpoint':
    def test_breakpoint():
        if nth('breakpoint') == 1:
            raise KernelComplaint('Oops: int3: 0000 [#1] PREEMPT SMP NOPTI')
if os.environ['BAD'] == 'teardown':
    @pytest.fixture
    def guest():
        yield
        assert nth('teardown') > 1

    def test_teardown(guest):
        pass
'''


@pytest.fixture
def project(tmp_path):
    """A project whose only tests are those above."""
    part = tmp_path / 'selftests' / 'harness'
    part.mkdir(parents=True)
    for name in ('run.py', 'conftest.py'):
        shutil.copy(os.path.join(SELFTESTS, name), tmp_path / 'selftests')
    (tmp_path / 'scripts').symlink_to(os.path.join(SELFTESTS, '..', 'scripts'))
    (part / 'test_fake.py').write_text(TESTS)
    (tmp_path / '.gitignore').write_text('/build/\n__pycache__/\n/selftests/harness/[lbct]*[0-9dnt]\n')
    return tmp_path


def check(project, *args, flaky=0, bad='', chosen=None):
    """Its status, last line, and everything that it said."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('PYTEST_', 'SPINDLE_TEST'))}
    env.update(chosen or {})
    done = subprocess.run(['/usr/bin/python3', '-B', os.path.join(project, 'selftests', 'run.py'),
                           *(args or ['--only', 'harness'])], text=True, check=False,
                          env={**env, 'FLAKY': str(flaky), 'BAD': bad},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()[-1], done.stdout


def ran(project, name):
    path = project / 'selftests' / 'harness' / name
    return len(path.read_text()) if path.exists() else 0


def test_what_passes_alone_is_unsteady(project):
    status, last, said = check(project, flaky=2)
    assert (status, last) == (0, '3 passed, 0 failed, 0 skipped'), said
    assert ran(project, 'late0') == ran(project, 'late1') == 2
    kept = re.findall(r'^unsteady: \S+test_late\[\d\] \(log kept at (\S+)\)$', said, re.M)
    assert len(kept) == 2, said
    for where in kept:
        assert 'not so in 10 s' in (project / where / 'failure.txt').read_text()


def test_too_many_unsteady_tests_fail(project):
    status, last, said = check(project, flaky=3)
    assert (status, last) == (1, '4 passed, 1 failed, 0 skipped'), said


def test_what_fails_twice_has_failed(project):
    status, last, said = check(project, flaky=1, bad='bad')
    assert (status, last) == (1, '2 passed, 1 failed, 0 skipped'), said
    assert ran(project, 'bad') == 2 and 'FAILED: ' in said and 'unsteady: ' in said


@pytest.mark.parametrize('bad', ['broken', 'complaint', 'teardown'])
def test_what_is_never_run_again(project, bad):
    status, _, said = check(project, bad=bad)
    assert status == 1 and ran(project, bad) == 1, said
    assert f'test_{bad}' in said and 'once more' not in said


def test_what_the_emulator_did_is_run_again(project):
    status, _, said = check(project, bad='breakpoint')
    assert status == 0 and ran(project, 'breakpoint') == 2 and 'unsteady: ' in said, said


def test_a_part_without_tests_fails(project):
    (project / 'selftests' / 'sim').mkdir()
    status, last, said = check(project, '--only', 'harness', '--only', 'sim', flaky=1)
    assert status == 1 and 'no test of it has run' in said, said


def test_what_is_left_of_an_earlier_run_does_not_count(project):
    """pytest ends before it writes anything."""
    assert check(project)[0] == 0
    status, _, said = check(project, chosen={'PYTEST_ADDOPTS': '-p no_such_plugin'})
    assert status == 1 and 'pytest: status' in said, said


def test_record(project):
    """A full run that went green on a clean tree is on record, for that commit only."""
    def git(*args):
        subprocess.run(['git', '-C', project, '-c', 'user.name=t', '-c', 'user.email=t@t', *args],
                       check=True, stdout=subprocess.DEVNULL)

    for part in ('build', 'userlib', 'sim', 'model', 'coverage', 'lint', 'bench', 'kunit', 'guests',
                 'guests_x86', 'soak'):
        (project / 'selftests' / part).mkdir()
        (project / 'selftests' / part / f'test_{part}_fake.py').write_text('def test_it(): pass\n')
    git('init', '-q')
    git('add', '-A')
    git('commit', '-q', '-m', 'one')
    assert check(project, '--was-green')[0] == 1
    assert check(project, '--only', 'harness')[0] == 0
    assert check(project, '--was-green')[0] == 1, 'a part is not all'
    assert check(project, '--workers', '2', chosen={'SPINDLE_TEST_SEEDS': '1'})[0] == 0
    assert check(project, '--was-green')[0] == 1, 'nor is what was chosen by hand'
    status, last, said = check(project, '--busy', '2', flaky=1)
    assert (status, last) == (0, '13 passed, 0 failed, 0 skipped'), said
    status, _, said = check(project, '--was-green')
    assert status == 0 and '13 passed' in said and '"busy": 2' in said, said
    (project / 'README').write_text('changed')
    assert check(project, '--was-green')[0] == 1
    head = subprocess.run(['git', '-C', project, 'rev-parse', 'HEAD'], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    os.unlink(os.path.join(cache_dir(), 'checks', head))
