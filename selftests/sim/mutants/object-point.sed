# SPDX-License-Identifier: GPL-2.0
# order.c live: a lane enters a view behind what was announced
/^void sp_lane_point/,/^}/s/u64 tail = lane->now.tail;/u64 tail = lane->seen.tail;/
