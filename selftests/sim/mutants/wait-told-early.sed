# SPDX-License-Identifier: GPL-2.0
# pass.c: who is asked tells of each message
# not by seeds: it only costs rows
/^static bool sp_pass_tells/,/^}/s/p->wanted <= c->order.nodes\[c->order.self\].consumed/p->consumed < c->order.nodes[c->order.self].consumed/
