# SPDX-License-Identifier: GPL-2.0
# order.c live: all that was received is delivered, whatever was agreed
/^int sp_order_trim/,/^}/{
s/if (index < trim\[i\])/if (index < sp_order_lane(o, i)->now.round)/
s/sp_seq(trim\[i\] - lane->base/sp_seq(lane->now.round - lane->base/
}
