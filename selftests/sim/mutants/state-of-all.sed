# SPDX-License-Identifier: GPL-2.0
# order.c live: one is sent the state, and all are up to date
/^static u32 sp_order_private/,/^}/s/o->stale \& ~(1ull << i)/0/
