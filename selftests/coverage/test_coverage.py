# SPDX-License-Identifier: GPL-2.0
"""How much of core/ the simulator and the KUnit suites run, as scripts/coverage says."""

import os
import re
import subprocess

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
LEAST = 95              # percent of the lines


def test_coverage():
    done = subprocess.run([os.path.join(PROJECT, 'scripts', 'coverage'), '--missing', '--least',
                           str(LEAST)], check=False, text=True, timeout=800,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert re.search(r'^coverage: [\d.]+ % of \d+ lines of core/$', done.stdout, re.M), done.stdout
    assert done.returncode == 0, done.stdout


def test_each_file_is_there():
    """A file of core/ that no test is built of would be missing in the figure."""
    with open(os.path.join(PROJECT, 'build', 'coverage', 'lines.json'), encoding='utf-8') as f:
        found = f.read()
    core = os.path.join(PROJECT, 'kmod', 'core')
    missing = [n for n in os.listdir(core) if n.endswith('.c') and f'kmod/core/{n}' not in found]
    assert not missing
