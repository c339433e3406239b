# SPDX-License-Identifier: GPL-2.0
"""The simulator: seeds, named scenarios and planted bugs, each a case.

SPINDLE_TEST_SEEDS chooses how many seeds, each of which makes a run of every kind: of a
group whose members stay, of one whose members come and go, of one like it whose connections
carry on when they break, of the agreement alone. A tenth as many run with sanitizers.
"""

import glob
import os
import subprocess

import pytest
from script import PROJECT, script

SEEDS = int(os.environ.get('SPINDLE_TEST_SEEDS', '3000'))
JOBS = str(len(os.sched_getaffinity(0)))


def sim(*args):
    return script('sim', *args)


def names(what):
    return [line.split()[0] for line in sim('--list').splitlines()] if what == 'scenarios' else \
        sorted(os.path.basename(path)[:-4]
               for path in glob.glob(os.path.join(PROJECT, 'selftests/sim/mutants/*.sed')))


def test_seeds():
    assert f'sim: {SEEDS} seeds, 0 violations' in sim('--seeds', str(SEEDS), '--jobs', JOBS)


def test_seeds_with_sanitizers():
    n = max(SEEDS // 10, 1)
    # others than those above
    said = sim('--asan', '--seeds', str(n), '--from', '1000000', '--jobs', JOBS)
    assert f'sim: {n} seeds, 0 violations' in said


@pytest.mark.parametrize('name', names('scenarios'))
def test_scenario(name):
    assert 'scenarios: 0 failed' in sim('--scenario', name)


@pytest.mark.parametrize('name', ['tiny-queue', 'hostile', 'reconnect', 'quarantine', 'herd',
                                  'two-in-a-row', 'replay', 'replay-crash'])
def test_scenario_with_sanitizers(name):
    assert 'scenarios: 0 failed' in sim('--asan', '--scenario', name)


@pytest.mark.parametrize('how', [[], ['--asan']])
def test_kunit_in_user_space(how):
    assert ' cases, 0 failed' in sim('--kunit', *how)


def plant(tmp_path, text, **env):
    """Status and output of --mutants for one mutant that is not among those of the project."""
    (tmp_path / 'planted.sed').write_text(f'# licence\n{text}\n')
    done = subprocess.run([os.path.join(PROJECT, 'scripts', 'sim'), '--mutants', 'planted'],
                          text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL,
                          env={**os.environ, 'SPINDLE_MUTANTS': str(tmp_path),
                               'SPINDLE_MUTANT_SEEDS': '50', **env})
    return done.returncode, done.stdout


@pytest.mark.parametrize('code,verdict', [
    ('this is no C', 'DOES NOT COMPILE'), ('__builtin_trap();', 'CRASHES'),
    ('for (;;) barrier();', 'HANGS'), ('', 'NOT FOUND')])
def test_what_is_no_find(code, verdict, tmp_path):
    """A mutant counts as found by a violation only."""
    env = {'SPINDLE_MUTANT_SECONDS': '1'} if verdict == 'HANGS' else {}
    status, said = plant(tmp_path, '# pass.c: planted\n'
                         '1i\\\n#define barrier() __asm__ volatile("")\n'
                         f'/^int sp_pass(/,/^}}/s|^{{|{{ {code}|', **env)
    assert status == 1 and f'planted: {verdict}' in said, said
    assert 'mutants: 0 found of 1' in said


@pytest.mark.parametrize('marked', [False, True])
def test_found_but_not_by_seeds(marked, tmp_path):
    """That is enough only where the mutant's file says why."""
    status, said = plant(tmp_path, '# view.c: planted\n' +
                         '# not by seeds: no run comes here\n' * marked +
                         '/^bool sp_view_complete/,/^}/s/==/>=/\n'
                         '/^u32 sp_view_del/,/^}/s/kept++/0/')
    assert ('view_del' if marked else 'planted: NOT FOUND in 50 seeds') in said, said
    assert f'mutants: {int(marked)} found of 1' in said and status == (not marked), said


# What one node has received is delivered, whatever the others have.
ONE = '/^u32 sp_order_deliver/,/^}/s/nodes.i./nodes[0]/'


def test_stale_mark(tmp_path):
    """Seeds find what its file says they cannot."""
    status, said = plant(tmp_path, f'# order.c: planted\n# not by seeds: so it was\n{ONE}')
    assert status == 1 and 'the mark is stale' in said, said


@pytest.mark.parametrize('name,verdict', [
    ('crash-amid-push', None), ('torn-cells', '-'), ('no-such', 'REFUSED')])
def test_each_named_scenario_has_to_find_it(name, verdict, tmp_path):
    status, said = plant(tmp_path, '# order.c live: planted\n# scenario: join\n'
                         f'# scenario: {name}\n{ONE}')
    if verdict:
        assert status == 1 and f'NOT FOUND by scenario {name}: {verdict} ' in said, said
    else:
        assert status == 0 and f' join,{name}\n' in said, said


@pytest.mark.parametrize('name', names('mutants'))
def test_mutant_is_found(name):
    assert 'mutants: 1 found of 1' in sim('--mutants', name)
