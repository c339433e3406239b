# SPDX-License-Identifier: GPL-2.0
# order.c: one unit too much of the ring handed out
s/tx->head + need > tx->units)/tx->head + need > tx->units + 1)/
