# SPDX-License-Identifier: GPL-2.0
# order.c live: a joiner starts one message late
# scenario: join
/^void sp_lane_point/,/^}/s/at->count = lane->taken;/at->count = lane->taken + (lane->taken != lane->now.count);/
