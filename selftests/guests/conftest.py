# SPDX-License-Identifier: GPL-2.0
"""Guests that tests of one file share."""

import os
import sys

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

from vmlib import Error    # pylint: disable=wrong-import-position


@pytest.fixture(scope='module')
def clusters():
    held = {}
    yield held
    errors = []
    for guests in held.values():
        try:
            if guests.cluster:
                # the module and the device leave, nothing was leaked
                guests.cluster.finish()
        except Error as e:
            errors.append(str(e))
        finally:
            guests.down()
    assert not errors, '\n'.join(errors)
