# SPDX-License-Identifier: GPL-2.0
# pass.c: those, too, are asked whose readers are done
# not by seeds: it only costs rows
/^static bool sp_pass_asks/,/^}/s/c->wants > c->order.nodes\[node\].consumed/true/
