# SPDX-License-Identifier: GPL-2.0
"""The soak finds what is wrong, runs are the same again, and a minute of them finds nothing."""

import os
import re
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

# pylint: disable=wrong-import-position
from order import Order, Violation, lives_of
from script import script

KERNEL = 'virtual' if os.environ.get('SPINDLE_TEST_KERNEL') == 'virtual' else 'virtual-debug'
# Three members, of which the third is lost, and joins again.
RECORDS = ["""life 1
view 1 0 7@10.77.0.1+ 8@10.77.0.2 9@10.77.0.3 |
m 0 1 1 1
m 1 2 1 1
m 4 2 1 2
m 5 3 1 1
s 1 1
view 2 6 7@10.77.0.1+ 8@10.77.0.2 | 9:lost
m 6 1 1 2
m 7 2 1 3
view 3 8 7@10.77.0.1+ 8@10.77.0.2 10@10.77.0.3 |
m 10 3 2 1
end 2
""", """life 1
view 1 0 7@10.77.0.1 8@10.77.0.2+ 9@10.77.0.3 |
m 0 1 1 1
m 1 2 1 1
m 4 2 1 2
m 5 3 1 1
view 2 6 7@10.77.0.1 8@10.77.0.2+ | 9:lost
m 6 1 1 2
m 7 2 1 3
view 3 8 7@10.77.0.1 8@10.77.0.2+ 10@10.77.0.3 |
m 10 3 2 1
end 3
""", """life 1
view 1 0 7@10.77.0.1 8@10.77.0.2 9@10.77.0.3+ |
m 0 1 1 1
m 1 2 1 1
failed ECONNABORTED 2
life 2
view 3 8 7@10.77.0.1 8@10.77.0.2 10@10.77.0.3+ |
m 10 3 2 1
end 1
"""]


def order(tmp_path, records, whole=True):
    lives = []
    for tag, text in enumerate(records, 1):
        path = tmp_path / str(tag)
        path.write_text(text)
        lives += lives_of(path, tag, whole)
    return Order(lives)


def test_what_can_be(tmp_path):
    found = order(tmp_path, RECORDS)
    assert found.last == 3 and found.total() == 7
    # a program that was killed has written down how it begins, and has no end
    cut = RECORDS[1][:RECORDS[1].index('end')]
    assert order(tmp_path, [RECORDS[0], cut + 'm 11', RECORDS[2]], whole=False).total() == 7


@pytest.mark.parametrize('who, was, becomes, said', [
    (1, 'm 4 2 1 2\n', '', 'view 1, message 2'),
    (1, 'm 7 2 1 3\n', '', 'read 1 messages'),
    (1, 'm 7 2 1 3\n', 'm 7 2 1 3\nm 7 2 1 3\n', 'read 2 messages'),
    (1, 'm 0 1 1 1\nm 1 2 1 1\n', 'm 1 2 1 1\nm 0 1 1 1\n', 'view 1, message 0'),
    (1, 'm 1 2 1 1\n', 'm 2 2 1 1\n', 'view 1, message 1'),
    (1, 'end 3', 'end 4', '3 messages of 4 came'),
    (1, 'end 3', 'end 2', 'it has sent 2, and 3 came'),
    (1, '| 9:lost', '| 9:left', '9 went in view 2'),
    (1, '7@10.77.0.1 8@10.77.0.2+ 10@10.77.0.3', '7@10.77.0.1 8@10.77.0.2+', 'view 3 is'),
    (1, '1 8@10.77.0.2+ | 9', '1+ 8@10.77.0.2+ | 9', 'in view 2'),
    (1, 'view 2', 'view 4', 'its views are'),
    (2, 'm 1 2 1 1\n', 'm 1 2 1 2\n', 'view 1, message 1'),
    (2, 'm 10 3 2 1\n', 'm 10 3 2 1\nm 11 3 2 2\n', 'life 1 read 1 messages, program 3, life 2 2'),
    (2, 'm 10', 'n 10', 'has a line'),
    (2, 'end 1\n', 'end 1', 'torn'),
])
def test_what_cannot_be(tmp_path, who, was, becomes, said):
    records = list(RECORDS)
    assert was in records[who]
    records[who] = records[who].replace(was, becomes, 1)
    with pytest.raises(Violation, match=re.escape(said)):
        order(tmp_path, records)


@pytest.mark.parametrize('change, said', [
    (lambda text: text.replace('m 4 2 1 2\n', ''), 'message 3 of program 2'),
    (lambda text: text.replace('m 6 1 1 2\nm 7 2 1 3\n', 'm 7 1 1 2\nm 6 2 1 3\n'), 'its place is'),
    (lambda text: text.replace('9:lost', '9:exited').replace('failed ECONNABORTED 2', 's 1 2'),
     '1 messages of 2 came'),
])
def test_what_cannot_be_though_all_read_it(tmp_path, change, said):
    with pytest.raises(Violation, match=re.escape(said)):
        order(tmp_path, map(change, RECORDS))


def test_a_seed_is_the_same_run_again():
    runs = [script('soak', '--once', '--seed', '1', '--kernel', KERNEL) for _ in range(2)]
    assert runs[0] == runs[1]
    assert re.search(r'"digest": "virtual: .* digest \w{16}"', runs[0]), runs[0]


def test_a_minute():
    said = script('soak', '--minutes', '1', '--seed', '1', '--kernel', KERNEL, '--jobs', '1')
    assert re.fullmatch(r'soak: \d+\.\d minutes, [1-9]\d* faults, 0 violations',
                        said.splitlines()[-1]), said
