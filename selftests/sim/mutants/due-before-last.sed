# SPDX-License-Identifier: GPL-2.0
# order.c: the last turn of an ack is not looked at
/^static bool sp_order_holds/,/^}/s/seq <= upto/seq < upto/
