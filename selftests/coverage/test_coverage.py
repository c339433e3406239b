# SPDX-License-Identifier: GPL-2.0
"""How much of core/ the simulator and the KUnit suites run, as scripts/coverage says."""

import os
import re

from script import PROJECT, script

LEAST = 95              # percent of the lines


def test_coverage():
    said = script('coverage', '--missing', '--least', str(LEAST))
    assert re.search(r'^coverage: [\d.]+ % of \d+ lines of core/\n\Z', said, re.M), said
    # a file that no test is built of would be missing in the figure
    missing = [n for n in os.listdir(os.path.join(PROJECT, 'kmod', 'core'))
               if n.endswith('.c') and f'\nkmod/core/{n} ' not in f'\n{said}']
    assert not missing, missing
