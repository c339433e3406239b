# SPDX-License-Identifier: GPL-2.0
# order.c: the turn of an object that is not here counts
/^static void sp_lane_settle/,/^}/s/(lane->now.round, d->index);/(lane->now.round, d->index) + 1;/
