// SPDX-License-Identifier: GPL-2.0
/*
 * The schedules of large objects: what must hold of each (design: "RDMC
 * oracle"), step by step and in any order that an engine may run them in.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../kmod/core/schedule.h"
#include "sim.h"

#define NODES		1024
#define BLOCKS		400
#define AHEAD		2	/* blocks that a node is ready for */
#define IN_FLIGHT	2	/* sends of a node that have not completed */
#define TOLD		5	/* faults told in full */
#define NEVER		U32_MAX

static const char * const kind_names[] = {
	[SP_SCHEDULE_SEQUENTIAL] = "sequential",
	[SP_SCHEDULE_CHAIN] = "chain",
	[SP_SCHEDULE_TREE] = "tree",
	[SP_SCHEDULE_PIPELINE] = "pipeline",
	[SP_SCHEDULE_HYBRID] = "hybrid",
};

/* A block that a node sends, and the next one between the same two. */
struct move {
	u16 from;
	u16 to;
	u32 block;
	u32 turn;	/* its place among the receives of @to */
	u32 next;
};

/* A node of the transfer that is checked. */
struct party {
	struct sp_schedule s;
	u32 at;		/* where its sends begin */
	u32 count;	/* how many they are */
	u32 sent;	/* of them, begun */
	u32 flying;	/* of these, not complete */
	u32 has;	/* how many blocks it has received */
};

/**
 * struct check - one transfer under check
 * @kind: its algorithm
 * @n: nodes
 * @k: blocks
 * @rack: racks of the nodes, or NULL
 * @nracks: number of racks
 * @party: the nodes
 * @when: step in which a node received a block, NEVER, or 0 for the root
 * @source: who sends each of its blocks to a node, by step
 * @moves: sends of all nodes, by step
 * @sorted: the same by node, each node's by step
 * @nmoves: number of them
 * @due: first receive that is to come, of each pair
 * @coming: how many blocks of each pair are on their way
 * @ahead: blocks that a node is ready for, in the order of its steps; 0: it is
 *	ready for AHEAD from each peer
 * @flight: sends on their way
 * @nflight: number of them
 * @wrong: faults found in it
 */
struct check {
	enum sp_schedule_kind kind;
	u32 n;
	u32 k;
	const u8 *rack;
	u32 nracks;
	struct party party[NODES];
	u32 *when;
	u16 *source;
	struct move *moves;
	struct move *sorted;
	u32 nmoves;
	u32 *due;
	u8 *coming;
	u32 ahead;
	u32 *flight;
	u32 nflight;
	u32 wrong;
};

/* All checks together. */
struct tally {
	u64 checked;
	u64 wrong;
	bool first;
};

static __printf(2, 3) void fault(struct check *c, const char *format, ...)
{
	static u32 told;
	va_list args;

	if (c->wrong++ || told >= TOLD)
		return;
	told++;
	printf("%s of %u nodes, %u blocks", kind_names[c->kind], c->n, c->k);
	if (c->rack)
		printf(", %u racks", c->nracks);
	printf(": ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static u32 *when(struct check *c, u32 node, u32 block)
{
	return &c->when[(size_t)node * c->k + block];
}

static u32 log2_up(u32 n)
{
	u32 l = 0;

	while (1u << l < n)
		l++;
	return l;
}

/* The paper's: l + k - 1, and one more where the nodes are no power of two. */
static u64 pipeline_bound(u32 n, u32 k)
{
	bool power = !(n & (n - 1));
	u32 l = log2_up(n) - !power;

	return n < 2 ? 0 : l + k - 1 + !power;
}

static u64 bound(const struct check *c)
{
	u32 count[256] = { 0 };
	u32 largest = 0;
	u32 i;

	switch (c->kind) {
	case SP_SCHEDULE_SEQUENTIAL:
		return (u64)(c->n - 1) * c->k;
	case SP_SCHEDULE_CHAIN:
		return c->n - 2 + c->k;
	case SP_SCHEDULE_TREE:
		return (u64)log2_up(c->n) * c->k;
	case SP_SCHEDULE_PIPELINE:
		return pipeline_bound(c->n, c->k);
	case SP_SCHEDULE_HYBRID:
		break;
	}
	for (i = 0; i < c->n; i++) {
		count[c->rack[i]]++;
		largest = max(largest, count[c->rack[i]]);
	}
	return pipeline_bound(c->nracks, c->k) + pipeline_bound(largest, c->k);
}

static void got(struct check *c, u32 node, u32 from, u32 block, u32 step)
{
	u32 *at = when(c, node, block);

	if (*at != NEVER)
		fault(c, "node %u gets block %u twice, in steps %u and %u",
		      node, block, *at, step);
	else
		c->source[(size_t)node * c->k + c->party[node].has++] = from;
	*at = step;
}

/* Who sends what, and that its peer expects just that. */
static void check_step(struct check *c, u32 step)
{
	u32 sends = 0, receives = 0;
	u32 peer, block, back, other;
	u32 i;

	for (i = 0; i < c->n; i++) {
		struct party *p = &c->party[i];

		if (sp_schedule_recv(&p->s, step, &peer, &block))
			receives++;
		if (!sp_schedule_send(&p->s, step, &peer, &block))
			continue;
		sends++;
		if (peer >= c->n || peer == i || block >= c->k) {
			fault(c, "node %u sends block %u to %u in step %u",
			      i, block, peer, step);
			continue;
		}
		if (*when(c, i, block) == NEVER || (i && *when(c, i, block) >= step))
			fault(c, "node %u sends block %u, which it lacks, in step %u",
			      i, block, step);
		if (!sp_schedule_recv(&c->party[peer].s, step, &back, &other) ||
		    back != i || other != block) {
			fault(c, "node %u sends block %u to %u in step %u, which does not expect it",
			      i, block, peer, step);
			continue;
		}
		c->moves[c->nmoves++] = (struct move){
			.from = i, .to = peer, .block = block,
			.turn = c->party[peer].has,
		};
		p->count++;
		got(c, peer, i, block, step);
	}
	if (sends != receives)
		fault(c, "%u sends and %u receives in step %u", sends, receives,
		      step);
	if (!sends)
		fault(c, "nothing is sent in step %u", step);
}

/* Section 4.4, word for word; -1: nothing. */
static s64 paper_block(u32 n, u32 l, u32 k, u32 node, u32 step)
{
	u32 by = step % l;
	u32 rotated = ((node >> by) | (node << (l - by))) & (n - 1);
	u32 r = 0;

	if (!rotated)
		return min(step, k - 1);
	if (rotated == 1)
		return -1;
	while (!(rotated >> r & 1))
		r++;
	if ((s64)step - l + r < 0)
		return -1;
	return min(step - l + r, k - 1);
}

static void check_paper(struct check *c)
{
	u32 l = log2_up(c->n);
	u32 peer, block, step, i;

	for (step = 0; step < l + c->k - 1; step++) {
		for (i = 0; i < c->n; i++) {
			s64 want = paper_block(c->n, l, c->k, i, step);
			bool sends = sp_schedule_send(&c->party[i].s, step,
						      &peer, &block);

			if (!sends && want < 0)
				continue;
			if (!sends || block != want || peer != (i ^ 1u << step % l))
				fault(c, "not the formula's: node %u in step %u",
				      i, step);
		}
	}
}

/* Section 4.5: the average slack of each steady step, times (n - 2). */
static void check_slack(struct check *c)
{
	u32 l = log2_up(c->n);
	u32 peer, block, step, i;

	for (step = l; step < l + c->k - 1; step++) {
		u64 senders = 0, slack = 0;

		for (i = 1; i < c->n; i++) {
			if (!sp_schedule_send(&c->party[i].s, step, &peer, &block))
				continue;
			senders++;
			slack += step - *when(c, i, block);
		}
		if (slack * (c->n - 2) != 2 * senders * (c->n - 2 - (l - 1)))
			fault(c, "slack %llu of %llu senders in step %u",
			      (unsigned long long)slack,
			      (unsigned long long)senders, step);
	}
}

/* Each block goes into each rack but the root's once. */
static void check_racks(struct check *c)
{
	u32 between = 0;
	u32 i;

	for (i = 0; i < c->nmoves; i++)
		between += c->rack[c->moves[i].from] != c->rack[c->moves[i].to];
	if (between != (c->nracks - 1) * c->k)
		fault(c, "%u blocks between racks", between);
}

static void check_steps(struct check *c)
{
	u32 step, i, k, peer, block, first;
	u32 steps = sp_schedule_steps(&c->party[0].s);

	if (steps != bound(c))
		fault(c, "%u steps, not %llu", steps, (unsigned long long)bound(c));
	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->k; k++)
			*when(c, i, k) = i ? NEVER : 0;
	c->nmoves = 0;
	for (step = 0; step < steps && !c->wrong; step++)
		check_step(c, step);
	for (i = 0; i < c->n && !c->wrong; i++) {
		struct party *p = &c->party[i];

		if (sp_schedule_steps(&p->s) != steps)
			fault(c, "node %u counts %u steps", i,
			      sp_schedule_steps(&p->s));
		if (sp_schedule_send(&p->s, steps, &peer, &block) ||
		    sp_schedule_recv(&p->s, steps, &peer, &block))
			fault(c, "node %u does something behind the end", i);
		for (k = 0; k < c->k; k++)
			if (*when(c, i, k) == NEVER)
				fault(c, "node %u never gets block %u", i, k);
		first = i ? c->source[(size_t)i * c->k] : 0;
		if (sp_schedule_first(&p->s) != first)
			fault(c, "node %u has its first block from %u, not from %u",
			      i, first, sp_schedule_first(&p->s));
	}
}

/* Where the first block comes from does not depend on those that follow. */
static void check_first(struct check *c)
{
	struct sp_schedule alone;
	u32 i;

	for (i = 0; i < c->n; i++) {
		sp_schedule_init(&alone, c->kind, c->n, i, 1, c->rack);
		if (sp_schedule_first(&alone) != sp_schedule_first(&c->party[i].s))
			fault(c, "the first block of node %u comes from elsewhere when it is the only one",
			      i);
	}
}

/* The same transfer without steps. */

/* Bring the moves to their senders, still in the order of their steps. */
static void async_begin(struct check *c)
{
	u32 i, k, m = 0;

	for (i = 0; i < c->n; i++) {
		struct party *p = &c->party[i];

		p->at = m;
		m += p->count;
		p->count = 0;
		p->sent = 0;
		p->flying = 0;
		p->has = 0;
		memset(&c->due[i * c->n], 0xff, c->n * sizeof(*c->due));
		memset(&c->coming[i * c->n], 0, c->n);
		for (k = 0; k < c->k; k++)
			*when(c, i, k) = i ? NEVER : 0;
	}
	for (i = 0; i < c->nmoves; i++) {
		struct party *p = &c->party[c->moves[i].from];

		c->sorted[p->at + p->count++] = c->moves[i];
	}
	/*
	 * What a node expects of another, in its own order: the same as the
	 * other's, since each step was found to be the same on both sides.
	 */
	for (m = c->nmoves; m-- > 0;) {
		struct move *move = &c->sorted[m];
		u32 *due = &c->due[move->to * c->n + move->from];

		move->next = *due;
		*due = m;
	}
	c->nflight = 0;
}

/* Is the receiver ready for that block? */
static bool async_ready(const struct check *c, const struct move *move)
{
	if (c->ahead)
		return move->turn < c->party[move->to].has + c->ahead;
	return c->coming[move->to * c->n + move->from] < AHEAD;
}

/* Begin what a node may begin: in its order, each when its peer is ready. */
static void async_go(struct check *c, u32 node)
{
	struct party *p = &c->party[node];

	while (p->sent < p->count && p->flying < IN_FLIGHT) {
		u32 m = p->at + p->sent;
		const struct move *move = &c->sorted[m];

		if (*when(c, node, move->block) == NEVER || !async_ready(c, move))
			return;
		c->coming[move->to * c->n + node]++;
		p->flying++;
		p->sent++;
		c->flight[c->nflight++] = m;
	}
}

/* Blocks of one pair arrive in order, as on one connection. */
static u32 async_pick(struct check *c, struct rng *r)
{
	u32 at = rng_below(r, c->nflight);
	u32 m = c->flight[at];
	u32 due = c->due[c->sorted[m].to * c->n + c->sorted[m].from];

	if (due != m)
		for (at = 0; c->flight[at] != due; at++)
			;
	c->flight[at] = c->flight[--c->nflight];
	return due;
}

static void check_async(struct check *c, struct rng *r)
{
	u32 done = 0, turn;
	u32 i;

	async_begin(c);
	c->ahead = rng_below(r, AHEAD + 1);
	for (i = 0; i < c->n; i++)
		async_go(c, i);
	while (c->nflight && !c->wrong) {
		u32 m = async_pick(c, r);
		const struct move *move = &c->sorted[m];
		u32 pair = move->to * c->n + move->from;

		*when(c, move->to, move->block) = 0;
		c->due[pair] = move->next;
		c->coming[pair]--;
		c->party[move->from].flying--;
		c->party[move->to].has++;
		done++;
		async_go(c, move->from);
		async_go(c, move->to);
		/* Who was waiting until the node is ready for the next one. */
		turn = c->party[move->to].has + c->ahead - 1;
		if (c->ahead && turn < c->k)
			async_go(c, c->source[(size_t)move->to * c->k + turn]);
	}
	if (!c->wrong && done != c->nmoves)
		fault(c, "stands still after %u of %u sends", done, c->nmoves);
}

static void check_one(struct check *c, struct tally *t, struct rng *r)
{
	bool power = !(c->n & (c->n - 1));
	u32 i;

	c->wrong = 0;
	for (i = 0; i < c->n; i++) {
		struct party *p = &c->party[i];

		memset(p, 0, sizeof(*p));
		if (sp_schedule_init(&p->s, c->kind, c->n, i, c->k, c->rack))
			fault(c, "refused");
	}
	if (!c->wrong)
		check_steps(c);
	if (!c->wrong)
		check_first(c);
	if (!c->wrong && c->kind == SP_SCHEDULE_HYBRID)
		check_racks(c);
	if (!c->wrong && c->kind == SP_SCHEDULE_PIPELINE && power) {
		check_paper(c);
		check_slack(c);
	}
	if (!c->wrong)
		check_async(c, r);
	t->checked++;
	t->wrong += c->wrong != 0;
}

/* Racks of each shape: one, one each, in rows, in turns, at random. */
static void draw_racks(struct check *c, u8 *rack, struct rng *r)
{
	u32 most = min(c->n, 256u);
	u32 count = rng_range(r, 1, most);
	u32 shape = rng_below(r, 5);
	u8 name[256];
	bool seen[256] = { false };
	u32 i, k;

	/* What racks are called says nothing. */
	for (i = 0; i < 256; i++) {
		k = rng_range(r, 0, i);
		name[i] = name[k];
		name[k] = i;
	}
	c->nracks = 0;
	for (i = 0; i < c->n; i++) {
		switch (shape) {
		case 0:
			k = 0;
			break;
		case 1:
			k = i % most;
			break;
		case 2:
			k = (u64)i * count / c->n;
			break;
		case 3:
			k = i % count;
			break;
		default:
			k = rng_below(r, count);
		}
		c->nracks += !seen[k];
		seen[k] = true;
		rack[i] = name[k];
	}
}

static void check_kind(struct check *c, struct tally *t, struct rng *r,
		       enum sp_schedule_kind kind, u32 n, u32 k)
{
	u8 rack[NODES];

	if (t->first && t->wrong)
		return;
	c->kind = kind;
	c->n = n;
	c->k = k;
	c->rack = NULL;
	if (kind == SP_SCHEDULE_HYBRID) {
		draw_racks(c, rack, r);
		c->rack = rack;
	}
	check_one(c, t, r);
}

/* Nonsense is refused, and one node alone has nothing to do. */
static void check_arguments(struct tally *t)
{
	static const u8 rack[NODES];
	static const struct {
		u32 kind, n, rank, blocks;
		const u8 *rack;
		int want;
	} table[] = {
		{ SP_SCHEDULE_PIPELINE, 0, 0, 1, NULL, -EINVAL },
		{ SP_SCHEDULE_PIPELINE, 4, 4, 1, NULL, -EINVAL },
		{ SP_SCHEDULE_PIPELINE, 4, 0, 0, NULL, -EINVAL },
		{ SP_SCHEDULE_PIPELINE, 65536, 0, 1, NULL, -EINVAL },
		{ SP_SCHEDULE_PIPELINE, 4, 0, 1, rack, -EINVAL },
		{ SP_SCHEDULE_HYBRID, 4, 0, 1, NULL, -EINVAL },
		{ SP_SCHEDULE_HYBRID + 1, 4, 0, 1, rack, -EINVAL },
		{ SP_SCHEDULE_HYBRID + 1, 4, 0, 1, NULL, -EINVAL },
		{ SP_SCHEDULE_SEQUENTIAL, 65535, 0, 40000, NULL, -EINVAL },
		{ SP_SCHEDULE_CHAIN, 2, 0, U32_MAX, NULL, -EINVAL },
		{ SP_SCHEDULE_PIPELINE, 65535, 9, 40000, NULL, 0 },
		{ SP_SCHEDULE_PIPELINE, 1, 0, 5, NULL, 0 },
		{ SP_SCHEDULE_CHAIN, 1, 0, 5, NULL, 0 },
		{ SP_SCHEDULE_HYBRID, 1, 0, 5, rack, 0 },
	};
	struct sp_schedule s;
	u32 i, peer, block;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		int ret = sp_schedule_init(&s, table[i].kind, table[i].n,
					   table[i].rank, table[i].blocks,
					   table[i].rack);
		bool wrong = ret != table[i].want;

		if (!ret && table[i].n == 1)
			wrong |= sp_schedule_steps(&s) || sp_schedule_first(&s) ||
				 sp_schedule_send(&s, 0, &peer, &block) ||
				 sp_schedule_recv(&s, 0, &peer, &block);
		if (wrong)
			printf("arguments of case %u\n", i);
		t->checked++;
		t->wrong += wrong;
	}
}

/* Give the number of transfers in which something is wrong. */
u64 schedule_check(bool first, bool brief)
{
	struct check *c = calloc(1, sizeof(*c));
	struct tally t = { .first = first };
	struct rng r = { .state = 1 };
	u32 most = brief ? 12 : 64;
	u32 kind, n, k;

	c->when = calloc(NODES * BLOCKS, sizeof(*c->when));
	c->source = calloc(NODES * BLOCKS, sizeof(*c->source));
	c->moves = calloc(NODES * BLOCKS, sizeof(*c->moves));
	c->sorted = calloc(NODES * BLOCKS, sizeof(*c->sorted));
	c->due = calloc(NODES * NODES, sizeof(*c->due));
	c->coming = calloc(NODES * NODES, sizeof(*c->coming));
	c->flight = calloc(NODES * IN_FLIGHT, sizeof(*c->flight));
	check_arguments(&t);
	for (n = 2; n <= most; n++)
		for (k = 1; k <= 100; k++)
			for (kind = 0; kind <= SP_SCHEDULE_HYBRID; kind++)
				check_kind(c, &t, &r, kind, n, k);
	/* Then every number of nodes, with a few blocks, and some with many. */
	for (n = most + 1; n <= NODES; n += brief ? 97 : 1) {
		check_kind(c, &t, &r, SP_SCHEDULE_PIPELINE, n, rng_range(&r, 1, 16));
		check_kind(c, &t, &r, SP_SCHEDULE_HYBRID, n, rng_range(&r, 1, 8));
	}
	for (k = 0; k < (brief ? 2 : 40); k++) {
		n = k < 4 ? NODES - k : rng_range(&r, 65, NODES);
		check_kind(c, &t, &r, SP_SCHEDULE_PIPELINE, n,
			   rng_range(&r, 100, BLOCKS));
		check_kind(c, &t, &r, k % 2 ? SP_SCHEDULE_TREE : SP_SCHEDULE_CHAIN,
			   n, rng_range(&r, 1, 40));
		check_kind(c, &t, &r, SP_SCHEDULE_SEQUENTIAL,
			   rng_range(&r, 65, 200), rng_range(&r, 1, 20));
	}
	printf("schedules: %llu checked, %llu wrong\n",
	       (unsigned long long)t.checked, (unsigned long long)t.wrong);
	free(c->when);
	free(c->source);
	free(c->moves);
	free(c->sorted);
	free(c->due);
	free(c->coming);
	free(c->flight);
	free(c);
	return t.wrong;
}
