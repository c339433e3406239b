# SPDX-License-Identifier: GPL-2.0
# pass.c live: wedged, it passes as ever (review 18)
s/	if (c->wedged)$/	if (0)/
