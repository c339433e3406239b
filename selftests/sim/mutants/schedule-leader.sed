# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: the leader of a rack is the highest of its nodes
s/if (s->within.rank ||$/if (s->within.rank != s->within.n - 1U ||/
