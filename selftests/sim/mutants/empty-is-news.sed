# SPDX-License-Identifier: GPL-2.0
# pass.c: empty turns keep a node awake
# not by seeds: it only costs time awake
s/return moved && !sp_order_quiet(&c->order) ? /return moved ? /
