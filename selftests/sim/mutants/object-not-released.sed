# SPDX-License-Identifier: GPL-2.0
# order.c: who receives never does
/^bool sp_order_release/,/^}/s/lane->objects--;//
