# SPDX-License-Identifier: GPL-2.0
# order.c live: members are looked for on nodes of their own
/^void sp_order_members/,/^}/s/o->seat\[i\] = v->members\[i\].node;/o->seat[i] = i;/
