# SPDX-License-Identifier: GPL-2.0
# order.c live: what is pushed again is taken for a lie
/^int sp_order_take/,/^}/s/if (round <= now.round \&\& count <= now.count \&\&/if (round == now.round \&\& count == now.count \&\&/
