# SPDX-License-Identifier: GPL-2.0
# schedule.c schedules: nodes 1 and 2 stand in for each other, as good as the formula
/^static void pipe_init/i #define OTHER(r) (s->n > 2 \&\& ((r) == 1 || (r) == 2) ? 3 - (r) : (r))
s/pipe_init(&s->within, n, rank);/pipe_init(\&s->within, n, OTHER(rank));/
s/return pipe_\(send\|recv\)(&s->within, s->blocks, step, peer, block);/{ bool is = pipe_\1(\&s->within, s->blocks, step, peer, block); *peer = OTHER(*peer); return is; }/
s/return pipe_first(&s->within);/return OTHER(pipe_first(\&s->within));/
