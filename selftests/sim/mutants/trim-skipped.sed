# SPDX-License-Identifier: GPL-2.0
# trim.c live: all that was received is delivered, whatever was agreed
# scenario: crash-amid-push
/^int sp_order_trim/,/^}/{
s/if (index < trim\[i\])/if (index < sp_order_lane(o, i)->now.round)/
s/sp_seq(trim\[i\] - sp_order_lane/sp_seq(sp_order_lane(o, i)->now.round - sp_order_lane/
}
