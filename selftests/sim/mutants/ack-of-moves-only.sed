# SPDX-License-Identifier: GPL-2.0
# pass.c: without receive batching, an ack only when received_num has moved
/^static int sp_pass_ack/,/^}/s/	sp_order_advance(&c->order);/	if (!sp_order_advance(\&c->order))\
		return 0;/
