# SPDX-License-Identifier: GPL-2.0
# order.c: the row of one message tells the rounds of those not pushed yet
/^void sp_tx_cut/,/^}/s/to->round = .*/;/
