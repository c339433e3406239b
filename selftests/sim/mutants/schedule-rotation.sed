# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: rotated the other way
/^static bool pipe_highest/,/^}/s/>> step % p->dims/>> (p->dims - step % p->dims)/
