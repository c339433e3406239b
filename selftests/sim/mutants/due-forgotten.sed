# SPDX-License-Identifier: GPL-2.0
# order.c: no ack is ever due
/^bool sp_order_advance/,/^}/s/o->due = received;/;/
