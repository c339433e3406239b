# SPDX-License-Identifier: GPL-2.0
# order.c: nobody owes nulls for the lanes of its own node
/^void sp_order_own/,/^}/s/lane->seen = \*now;//
