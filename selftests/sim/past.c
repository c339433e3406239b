// SPDX-License-Identifier: GPL-2.0
/*
 * Memory order: what landed at a node since its engine's last barrier is new
 * to a read or not, for each read anew, as a processor may have read ahead.
 *
 * What was overwritten is kept, newest last, while the node passes. A read
 * takes all of it as done, or undoes what came last, as far back as it likes.
 * A barrier, a lock taken and a completion looked at forget it: reads behind
 * them see at least what was there then.
 */
#include "sim.h"

#define PAST_MOST	64U

struct past {
	const u8 *at;
	u32 len;
	u8 was[SP_ROW_MAX];
};

unsigned int sim_npast;

static struct past past[PAST_MOST];

/* A barrier: only those of the pass that began first matter. */
void sim_forget_past(void)
{
	if (sim_npast && sim_running->amid == sim_running->outer)
		sim_npast = 0;
}

/* Bytes at @at are about to be overwritten, in memory of s->outer. */
void past_keep(const u8 *at, u32 len)
{
	struct past *p = &past[sim_npast];

	/* Larger ones are bytes of messages, which no pass reads. */
	if (sim_npast == PAST_MOST || len > sizeof(p->was))
		return;
	p->at = at;
	p->len = len;
	memcpy(p->was, at, len);
	sim_npast++;
}

/* Make what was read at @from older, or leave it. */
void sim_read_past(void *to, const void *from, size_t len)
{
	const u8 *first = from;
	u32 i;

	for (i = sim_npast; i--;) {
		const struct past *p = &past[i];
		const u8 *lo = max(first, p->at);
		const u8 *hi = min(first + len, p->at + p->len);

		if (lo >= hi)
			continue;
		if (rng_chance(&sim_running->rng, 400))
			return;
		memcpy((u8 *)to + (lo - first), p->was + (lo - p->at), hi - lo);
	}
}
