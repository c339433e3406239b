# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: behind the last block comes another
/^static bool pipe_highest/,/^}/s/min(step + zeros - p->dims, blocks - 1)/min(step + zeros - p->dims, blocks)/
