# SPDX-License-Identifier: GPL-2.0
# order.c: the end is delivered though somebody lacks something
s/(seq > stable \&\& sp_order_ends(o, rank))/false/
