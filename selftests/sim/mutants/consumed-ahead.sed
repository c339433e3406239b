# SPDX-License-Identifier: GPL-2.0
# order.c: a peer may consume what this node has not received
/^int sp_order_row/,/^}/{
/consumed > o->nodes\[o->self\].received/d
}
