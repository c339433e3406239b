# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: two nodes of a vertex change roles once a round
/^static bool pipe_swapped/,/^}/s/hweight32(vertex \& below)/0 * below/
