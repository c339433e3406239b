# SPDX-License-Identifier: GPL-2.0
# order.c: SIOCOUTQ forgets the oldest message
/^u64 sp_tx_unfreed/,/^}/s/i = tx->freed;/i = tx->freed + 1;/
