# SPDX-License-Identifier: GPL-2.0
# order.c: delivered counts as consumed
/^s64 sp_order_consumed/,/^}/s/if (o->released == o->published)/if (o->released <= o->published)/
