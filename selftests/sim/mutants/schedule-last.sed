# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: no step more where nodes share a vertex
/^static u64 pipe_steps/,/^}/s/fls(p->n - 1U) - 1/p->dims - 1/
