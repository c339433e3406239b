# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: a tree in which the root alone sends
/^bool sp_schedule_send/,/^}/s/return !(s->rank >> round) /return !s->rank /
