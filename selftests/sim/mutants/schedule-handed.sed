# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: the inlet hands over the highest block
/^static bool pipe_handed/,/^}/s/min(own, came)/max(own, came)/
