# SPDX-License-Identifier: GPL-2.0
# order.c live: any private message counts as the last of the state
/^static u32 sp_order_private/,/^}/s/if (flags \& SP_DESC_STATE)/if (1)/
