# SPDX-License-Identifier: GPL-2.0
# order.c: null rule over the lanes of other nodes only (review 8)
/^u64 sp_order_null_target/,/^}/s/if (j == rank || !n)/if (o->lanes[j].node == o->self || !n)/
