# SPDX-License-Identifier: GPL-2.0
"""The model of the view change: the states of small groups, and planted bugs, each a case."""

import re

import pytest
from script import script


def model(*args):
    return script('model', *args).splitlines()


def test_no_violation():
    *runs, last = model()
    found = [re.fullmatch(r'(\S+): (\d+) states( \(bit-state, .*\))?, 0 violations', line)
             for line in runs]
    assert all(found), runs
    # three nodes in all their states, four as far as the bits go
    assert {m[1]: bool(m[3]) for m in found}.items() >= {('three', False), ('four', True)}
    total = sum(int(m[2]) for m in found)
    assert last == f'model: {total} states, 0 violations'
    # a rule that is never enabled would leave few
    assert total > 1000000


@pytest.mark.parametrize('name', model('--list'))
def test_planted_bug_is_found(name):
    assert model('--mutants', name)[-1] == 'mutants: 1 found of 1'


def test_what_is_no_find():
    """A bug that nobody planted is not found."""
    with pytest.raises(AssertionError, match='mutants: 0 found of 0'):
        model('--mutants', 'none')
