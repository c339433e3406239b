# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: the first block of one comes from elsewhere
/^static u32 pipe_partner/,/^}/s/blocks > 1 \&\& //
