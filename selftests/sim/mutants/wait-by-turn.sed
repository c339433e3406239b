# SPDX-License-Identifier: GPL-2.0
# order.c: a message is looked for at the turn of its number
# not by seeds: others are asked too early or too late, and tell before sleep
/^s64 sp_tx_place/,/^}/s/sp_extend32(tx->now.round, d->index)/count - 1/
