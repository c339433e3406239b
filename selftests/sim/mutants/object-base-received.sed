# SPDX-License-Identifier: GPL-2.0
# order.c live: a view takes the turns of a lane up to its object for received
/^bool sp_order_advance/,/^}/s/lane->now.round - lane->base/lane->seen.round - lane->base/g
