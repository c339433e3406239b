# SPDX-License-Identifier: GPL-2.0
# pass.c live: wedged, it passes as ever (review 18)
# scenario: wedge
s/	if (c->wedged)$/	if (0)/
