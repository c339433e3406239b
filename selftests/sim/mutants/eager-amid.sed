# SPDX-License-Identifier: GPL-2.0
# order.c: gives up turns eagerly while messages are on their way
# not by seeds: it only gives up more turns than it has to
/^static bool sp_lane_quiet/,/^}/s/if (lane->taken != lane->now.count)/if (0)/
