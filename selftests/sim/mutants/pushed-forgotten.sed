# SPDX-License-Identifier: GPL-2.0
# change.c live: a joiner is sent nothing of what lies in the view
/^static void sp_peer_begin/,/^}/s/sp_lane_point(sp_own_lane(c, i), c->order.depth, \&at);/at = c->own[i].now;/
