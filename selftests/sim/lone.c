// SPDX-License-Identifier: GPL-2.0
/*
 * What a lone message costs: one program, which sends the next message when it
 * has taken the last one from the order, over a network without chance. A write
 * is a row or a stretch of a lane, of which each message here makes two to each
 * peer: its bytes and its descriptor. Writes and wakes of all nodes are counted;
 * the counts are exact, and none may be above its bar.
 *
 * Of n nodes, a message takes two rounds: n - 1 pushes, of a row behind two
 * stretches, and n - 1 acks by each of the n - 1 nodes that receive it. That is
 * (n - 1) + (n - 1)^2 = n (n - 1) rows, 6 of 3 nodes and 56 of 8, and 2 (n - 1)
 * stretches: 10 writes of 3 nodes and 70 of 8. What is consumed rides along.
 * Where nobody polls, so small a message travels in the row: 6 and 56 writes.
 *
 * From sleep to sleep each node raises its flag to each other on top of that, in a
 * row which may tell what it has consumed as well: n (n - 1) rows more, in all
 * 2 (n - 1) (n + 1) writes, 16 of 3 nodes and 126 of 8. Where nobody polls there
 * are no flags, and each of n - 1 nodes tells the sender alone: (n - 1) (n + 1)
 * writes, 8 and 63. The sender wakes n - 1 nodes, and each of these the n - 2 that
 * sleep for all it knows: (n - 1)^2 wakes, 4 and 49.
 */
#include <stdio.h>

#include "sim.h"

#define LONE_MESSAGES	16	/* whose cost is told, and as many before */

/**
 * struct lone_group - a size of group, and its bars of a message
 * @nodes: how many
 * @together: writes, when the next one follows at once: nobody is to be woken then
 * @writes: writes after any pause, by doorbell: one more than it takes from sleep to
 *	sleep, to each peer of the sender
 * @wakes: wakes likewise
 */
static const struct lone_group {
	u32 nodes;
	double together;
	u32 writes[SIM_DOORBELLS];
	u32 wakes[SIM_DOORBELLS];
} lone_groups[] = {
	{
		.nodes = 3,
		.together = 12,
		.writes = { [SIM_POLLED] = 18, [SIM_GUARDED] = 10 },
		.wakes = { [SIM_POLLED] = 6, [SIM_GUARDED] = 0 },
	},
	{
		.nodes = 8,
		.together = 72.8,	/* 1.3 times the rows of two rounds */
		.writes = { [SIM_POLLED] = 133, [SIM_GUARDED] = 70 },
		.wakes = { [SIM_POLLED] = 56, [SIM_GUARDED] = 0 },
	},
};

static const char * const why_names[] = {
	"data", "null", "ack", "consumed", "flag", "begin", "wait",
};

/* What all nodes have posted so far. */
static void lone_posts(const struct sim *s, struct sp_posts *sum)
{
	u32 i, k;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < s->nnodes; i++) {
		const struct sp_posts *p = &s->nodes[i].core.posts;

		for (k = 0; k <= SP_WHY_ALL; k++)
			sum->rows[k] += p->rows[k];
		sum->segs += p->segs;
		sum->wakes += p->wakes;
		sum->wakes_late += p->wakes_late;
	}
}

/* What was posted since @was, in place of what was posted in all. */
static void lone_since(struct sp_posts *now, const struct sp_posts *was)
{
	u32 i;

	for (i = 0; i <= SP_WHY_ALL; i++)
		now->rows[i] -= was->rows[i];
	now->segs -= was->segs;
	now->wakes -= was->wakes;
	now->wakes_late -= was->wakes_late;
}

static u64 lone_rows(const struct sp_posts *p)
{
	u64 rows = 0;
	u32 i;

	for (i = 0; i <= SP_WHY_ALL; i++)
		rows += p->rows[i];
	return rows;
}

static double lone_each(u64 all)
{
	return (double)all / LONE_MESSAGES;
}

/* For what reasons the rows of a message were posted. */
static void lone_reasons(const struct sp_posts *p)
{
	u32 why, i;

	for (why = 0; why <= SP_WHY_ALL; why++) {
		if (!p->rows[why])
			continue;
		printf("    %6.2f rows:", lone_each(p->rows[why]));
		for (i = 0; i < ARRAY_SIZE(why_names); i++)
			if (why & 1u << i)
				printf(" %s", why_names[i]);
		printf("\n");
	}
}

/* Go on until @n messages were sent, and from sleep until all sleep again. */
static void lone_send(struct sim *s, u32 n)
{
	const struct plan *p = &s->plans[0];

	if (s->opts.calm->pause) {
		while (p->nsent < n && !s->violated && s->nheap)
			sim_one(s);
		return;
	}
	while (p->nsent < n && !s->violated) {
		sim_after(s, 1, EV_SEND, 0);
		sim_settle(s);
	}
}

/* What a message costs once some were sent. True when that is not above its bars. */
static bool lone_one(const struct lone_group *g, const struct sim_calm *calm,
		     enum sim_doorbell doorbell)
{
	struct sim_opts opts = {
		.calm = calm,
		.doorbell = doorbell,
		.force = SIM_FORCE_HONEST | SIM_FORCE_OPT,
		.opt = SP_OPT_ALL,
	};
	/* A node waits for an answer, but not for ever. */
	bool together = calm->pause == 1 &&
		(doorbell == SIM_GUARDED || 2 * calm->wire < SP_SPIN_MOST * calm->spin);
	double most = together ? g->together : g->writes[doorbell];
	u32 most_wakes = together ? 0 : g->wakes[doorbell];
	struct sim *s = sim_new(&opts);
	struct sp_posts was, now;
	double writes, wakes;
	u64 taken;
	bool ok;

	/* The first message finds a group that has just begun, and sleeps. */
	sim_settle(s);
	if (calm->pause)
		sim_after(s, 1, EV_SEND, 0);
	lone_send(s, LONE_MESSAGES);
	lone_posts(s, &was);
	taken = s->taken;
	lone_send(s, 2 * LONE_MESSAGES);
	lone_posts(s, &now);
	lone_since(&now, &was);
	taken = s->taken - taken;
	writes = lone_each(now.segs + lone_rows(&now));
	wakes = lone_each(now.wakes + now.wakes_late);
	ok = sim_run(s);
	if (!ok)
		printf("  %s\n", s->why);
	if (writes > most || wakes > most_wakes)
		ok = false;
	printf("  %5u %5u %5u %-8s %5u %8.2f %8.2f %7.2f %5.1f %7.2f %5u %7.1f%s\n",
	       calm->nodes, calm->lanes, calm->wire,
	       doorbell == SIM_POLLED ? "polled" : "guarded", calm->pause,
	       lone_each(now.segs), lone_each(lone_rows(&now)), writes, most,
	       wakes, most_wakes, lone_each(taken), ok ? "" : " FAILED");
	if (calm->nodes == 3 && calm->lanes == 1 && calm->wire == 20)
		lone_reasons(&now);
	sim_free(s);
	return ok;
}

/* A group over both doorbells and all wires, from sleep and with shorter pauses. */
static int lone_wires(const struct lone_group *g, u32 lanes)
{
	static const u32 pauses[] = { 0, 1, 100, 1000 };
	static const u32 wires[] = { 5, 20, 100, 400 };
	struct sim_calm calm = {
		.nodes = g->nodes,
		.lanes = lanes,
		.each = 2 * LONE_MESSAGES,
		.len = 16,
	};
	enum sim_doorbell doorbell;
	int bad = 0;
	u32 p, w;

	for (p = 0; p < ARRAY_SIZE(pauses); p++) {
		calm.pause = pauses[p];
		for (doorbell = SIM_POLLED; doorbell <= SIM_GUARDED; doorbell++) {
			/* As in the module: see sp_memory_core(). */
			calm.spin = doorbell == SIM_POLLED ? 40 : 0;
			for (w = 0; w < ARRAY_SIZE(wires); w++) {
				calm.wire = wires[w];
				bad += !lone_one(g, &calm, doorbell);
			}
		}
	}
	return bad;
}

/* How many cases are above a bar, or do worse. */
int lone_run(void)
{
	int bad = 0;
	u32 i;

	printf("  %5s %5s %5s %-8s %5s %8s %8s %7s %5s %7s %5s %7s\n", "nodes", "lanes",
	       "wire", "doorbell", "pause", "data", "rows", "writes", "bar", "wakes", "bar",
	       "taken");
	for (i = 0; i < ARRAY_SIZE(lone_groups); i++) {
		const struct lone_group *g = &lone_groups[i];

		bad += lone_wires(g, 1);
		bad += lone_wires(g, g->nodes);
	}
	return bad;
}
