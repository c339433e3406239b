# SPDX-License-Identifier: GPL-2.0
# pass.c: reads the flag before its own write has landed (review 9)
s/if (!p->check || p->landed < p->check)/if (!p->check)/
s/p->check = p->recheck > p->landed ? p->recheck : 0;/p->check = 0;/
