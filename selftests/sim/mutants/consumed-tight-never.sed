# SPDX-License-Identifier: GPL-2.0
# pass.c: whoever lacks the room for a long message is told before sleep only
# not by seeds: before sleep it is told in any case
s/p->consumed < c->consumed_tight/false/
