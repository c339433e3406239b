# SPDX-License-Identifier: GPL-2.0
# order.c live: what no node says of a private message is believed
# not by seeds: hostile nodes there write other flags
s/!sp_desc_flags_ok(d->flags) ||//
