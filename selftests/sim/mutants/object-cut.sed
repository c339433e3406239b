# SPDX-License-Identifier: GPL-2.0
# order.c: objects count for how much is pushed at once
/^void sp_tx_cut/,/^}/s/sp_units_of(d->len, d->flags)/sp_units(d->len)/
