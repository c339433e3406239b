# SPDX-License-Identifier: GPL-2.0
# order.c live: who was sent the state is not up to date
/^static u32 sp_order_private/,/^}/s/WRITE_ONCE(o->stale,.*);/;/
