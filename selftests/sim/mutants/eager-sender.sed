# SPDX-License-Identifier: GPL-2.0
# order.c: who has sent last time gives up its next turn eagerly, too
# not by seeds: it only gives up more turns than it has to
/^static bool sp_lane_quiet/,/^}/s/return !lane->now.count ||/return true ||/
