# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: the root has a second node, too
/^static u32 pipe_second/,/^}/s/+ vertex - 1;/+ vertex;/
/^static u32 pipe_second/,/^}/s/return vertex \&\& second/return second/
/^static u32 pipe_vertex/,/^}/s/ + 1 : rank/ : rank/
