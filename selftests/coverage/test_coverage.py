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
    assert done.returncode == 0, done.stdout
    assert re.search(r'^coverage: [\d.]+ % of \d+ lines of core/\n\Z', done.stdout, re.M), done.stdout
    # a file that no test is built of would be missing in the figure
    missing = [n for n in os.listdir(os.path.join(PROJECT, 'kmod', 'core'))
               if n.endswith('.c') and f'\nkmod/core/{n} ' not in f'\n{done.stdout}']
    assert not missing, missing
