# SPDX-License-Identifier: GPL-2.0
# order.c: a slot says by itself whether it is valid (review 2)
/^static void sp_order_put/,/^}/s/lane->taken == lane->now.count || d->index/d->index/
