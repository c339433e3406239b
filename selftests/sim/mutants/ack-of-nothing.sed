# SPDX-License-Identifier: GPL-2.0
# pass.c: empty turns are acknowledged by a row of its own
# not by seeds: it only costs writes
# scenario: lone
s/p->received < c->order.due/p->received != c->order.nodes[c->order.self].received/
