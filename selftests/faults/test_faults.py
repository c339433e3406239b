# SPDX-License-Identifier: GPL-2.0
"""The short sweep of injected failures: see scripts/faults."""

import os
import re
import subprocess

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))


def test_one_failure_at_a_time():
    done = subprocess.run([os.path.join(PROJECT, 'scripts', 'faults')], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    match = re.search(r'^faults: (\d+) injected, (\d+) survived\Z', done.stdout.strip(), re.M)
    assert match, 'no last line'
    assert match[1] == match[2] and done.returncode == 0
    # each kind of place was met
    assert int(match[1]) > 100
