# SPDX-License-Identifier: GPL-2.0
# order.c live: of one that has gone it is said that it is up to date
# not by seeds: it is for programs to hear
/^static u32 sp_order_private/,/^}/s/return SP_DESC_PRIVATE | SP_UID_NOBODY.*/return flags;/
