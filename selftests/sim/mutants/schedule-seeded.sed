# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: racks begin before their leaders have it all
/^static u64 racks_init/,/^}/s/s->seeded = .*/s->seeded = pipe_steps(\&s->across, s->blocks) \/ 2;/
