# SPDX-License-Identifier: GPL-2.0
# order.c: nulls are owed for what was received only
/^u64 sp_order_null_target/,/^}/s/lane->seen.round - lane->base/lane->now.round - lane->base/
