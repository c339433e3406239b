# SPDX-License-Identifier: GPL-2.0
# trim.c live: the round at the trim is delivered, too
/^int sp_order_trim/,/^}/s/if (index < trim\[i\])/if (index <= trim[i])/
