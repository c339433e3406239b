# SPDX-License-Identifier: GPL-2.0
# order.c: null rule that takes 0 - 1 for a round (review 8)
/^u64 sp_order_null_target/,/^}/s/if (j == rank || !n)/if (j == rank)/
