# SPDX-License-Identifier: GPL-2.0
# order.c live: a joiner begins where the last byte came
/^void sp_lane_point/,/^}/s/tail -= (u32)tail - d->pos;/;/
