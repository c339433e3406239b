# SPDX-License-Identifier: GPL-2.0
# order.c: who reads before this node has received is a liar
s/(consumed > o->nodes\[o->self\].received \&\& !o->plain)/consumed > o->nodes[o->self].received/
