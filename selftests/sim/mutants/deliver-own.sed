# SPDX-License-Identifier: GPL-2.0
# order.c: delivery of what this node received, not every node
/^u32 sp_order_deliver/,/^}/{
s/o->nodes\[0\].received/o->nodes[o->self].received/
s/upto = min(upto, o->nodes\[i\].received);/;/
}
