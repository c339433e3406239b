// SPDX-License-Identifier: GPL-2.0
/*
 * The agreement alone: a few nodes that say, hear, suspect and crash in any
 * order, many times more often than whole runs can. One decision at most; and
 * whoever lives on comes to it, or knows that it has no quorum.
 */
#include <stdio.h>
#include <stdlib.h>

#include "live.h"

#define AGREE_NODES	6
#define AGREE_TELLS	4000

struct agree_node {
	struct sp_agree agree;
	struct sp_tell tells[AGREE_NODES];
	bool crashed;
	bool lost;
	u32 heard[AGREE_NODES];	/* of what each other one has said */
};

struct agree_world {
	struct rng rng;
	bool one_cut;		/* nothing happens but that two lose each other */
	u32 cut_a;
	u32 cut_b;
	bool torn;		/* two sides lose each other; one hears both */
	u32 side;		/* those on one of them, a bit each */
	u32 between;
	struct sp_view view;
	u32 n;
	bool cut[AGREE_NODES][AGREE_NODES];
	struct agree_node nodes[AGREE_NODES];
	struct sp_tell *said[AGREE_NODES];
	u32 nsaid[AGREE_NODES];
	/* How many of these were sent to each other one. */
	u32 sent[AGREE_NODES][AGREE_NODES];
	bool decided;
	struct sp_proposal how;
	const char *why;
};

static void agree_say(struct agree_world *w, u32 i)
{
	struct agree_node *n = &w->nodes[i];
	u32 k, first = rng_below(&w->rng, w->n);

	if (w->nsaid[i] == AGREE_TELLS) {
		w->why = "no end of tells";
		return;
	}
	w->said[i][w->nsaid[i]++] = *sp_agree_own(&n->agree);
	for (k = 0; k < w->n; k++) {
		u32 to = (first + k) % w->n;

		if (to == i || sp_agree_suspects(&n->agree, to))
			continue;
		/* It may crash between any two of them. */
		if (!w->one_cut && rng_chance(&w->rng, 10)) {
			n->crashed = true;
			return;
		}
		if (!w->cut[i][to])
			w->sent[i][to] = w->nsaid[i];
	}
}

static void agree_decided(struct agree_world *w, u32 i)
{
	const struct sp_proposal *p = sp_agree_decision(&w->nodes[i].agree);

	if (!w->decided) {
		w->decided = true;
		w->how = *p;
	} else if (memcmp(w->how.reason, p->reason, sizeof(p->reason)) ||
		   memcmp(w->how.trim, p->trim, sizeof(p->trim)) ||
		   w->how.njoins != p->njoins) {
		w->why = "two decisions";
	}
}

static bool agree_step(struct agree_world *w, u32 i, bool dirty)
{
	struct agree_node *n = &w->nodes[i];
	u64 counts[SP_MAX_MEMBERS];
	bool moved = dirty;
	u32 k;
	int did;

	while (!n->crashed && !n->lost && !w->why) {
		did = sp_agree_step(&n->agree);
		if (did == -ENETDOWN) {
			n->lost = true;
			return true;
		}
		if ((did & SP_AGREE_SAY) || dirty)
			agree_say(w, i);
		dirty = false;
		if (n->crashed || !did)
			return moved;
		moved = true;
		if (did & SP_AGREE_WEDGE) {
			for (k = 0; k < w->view.nlanes; k++)
				counts[k] = rng_below(&w->rng, 5);
			sp_agree_wedged(&n->agree, counts);
			dirty = true;
		}
		if (did & SP_AGREE_DECIDED)
			agree_decided(w, i);
	}
	return moved;
}

static bool agree_hear(struct agree_world *w, u32 from, u32 to)
{
	struct agree_node *n = &w->nodes[to];

	if (from == to || n->crashed || n->lost || n->agree.decided ||
	    n->heard[from] == w->sent[from][to])
		return false;
	if (sp_agree_hear(&n->agree, from,
			  &w->said[from][n->heard[from]++]) < 0)
		w->why = "a tell that is not believed";
	agree_step(w, to, false);
	return true;
}

static void agree_suspect(struct agree_world *w, u32 who, u32 whom)
{
	struct agree_node *n = &w->nodes[who];

	if (n->crashed || n->lost || n->agree.decided)
		return;
	if (sp_agree_suspect(&n->agree, whom))
		agree_step(w, who, true);
}

/* Everything arrives in the end, and all that is to be noticed is. */
static void agree_drain(struct agree_world *w)
{
	bool moved = true;
	u32 i, k;

	while (moved && !w->why) {
		moved = false;
		for (i = 0; i < w->n; i++)
			for (k = 0; k < w->n; k++)
				while (agree_hear(w, i, k))
					moved = true;
		if (moved)
			continue;
		for (i = 0; i < w->n; i++) {
			for (k = 0; k < w->n; k++) {
				const struct agree_node *n = &w->nodes[i];
				const struct agree_node *p = &w->nodes[k];
				bool gone = p->crashed || p->lost || w->cut[i][k] ||
					sp_agree_suspects(&p->agree, i);

				if (i == k || !gone || n->crashed || n->lost ||
				    n->agree.decided ||
				    sp_agree_suspects(&n->agree, k))
					continue;
				agree_suspect(w, i, k);
				moved = true;
			}
		}
	}
}

static void agree_world(struct agree_world *w, u64 seed)
{
	u32 i;

	w->rng.state = rng_mix(seed + 99);
	w->one_cut = rng_chance(&w->rng, 100);
	w->n = rng_range(&w->rng, 2 + w->one_cut, AGREE_NODES);
	w->cut_a = rng_below(&w->rng, w->n - 1);
	w->cut_b = rng_range(&w->rng, w->cut_a + 1, w->n - 1);
	w->torn = w->n > 3 && !w->one_cut && rng_chance(&w->rng, 150);
	w->side = rng_below(&w->rng, 1u << w->n);
	w->between = rng_below(&w->rng, w->n);
	w->decided = false;
	w->why = NULL;
	memset(w->cut, 0, sizeof(w->cut));
	memset(w->nodes, 0, sizeof(w->nodes));
	memset(w->sent, 0, sizeof(w->sent));
	sp_view_init(&w->view, w->n, 0);
	for (i = 0; i < w->n; i++) {
		struct sp_addr addr = live_addr(i);

		sp_view_add(&w->view, &addr, i, 0);
	}
	sp_view_rank(&w->view, 1);
	for (i = 0; i < w->n; i++) {
		struct agree_node *n = &w->nodes[i];

		n->agree.limit = SP_MAX_MEMBERS;
		sp_agree_init(&n->agree, &w->view, i, n->tells);
		w->nsaid[i] = 0;
	}
}

static void agree_chance(struct agree_world *w)
{
	struct rng *r = &w->rng;
	u32 a = rng_below(r, w->n);
	u32 b = rng_below(r, w->n);
	struct agree_node *n = &w->nodes[a];

	if (a == b || n->crashed || n->lost || n->agree.decided)
		return;
	switch (rng_below(r, 5)) {
	case 0:
		n->crashed = true;
		break;
	case 1:
		w->cut[a][b] = true;
		w->cut[b][a] = true;
		agree_suspect(w, a, b);
		break;
	case 2:
		sp_agree_leave(&n->agree, a, SP_LEFT);
		agree_step(w, a, true);
		break;
	default:
		agree_suspect(w, a, b);
	}
}

/*
 * Nodes of two sides suspect each other one by one. The one between them gives up
 * the lowest rank, perhaps, but no side.
 */
static void agree_tear(struct agree_world *w)
{
	u32 a = rng_below(&w->rng, w->n);
	u32 b = rng_below(&w->rng, w->n);

	if (a == w->between)
		b = 0;
	if (a != b && b != w->between &&
	    (a == w->between || (w->side >> a & 1) != (w->side >> b & 1)))
		agree_suspect(w, a, b);
}

/* Of two that lost each other only the higher rank is to go. */
static void agree_check_cut(struct agree_world *w)
{
	u32 i;

	for (i = 0; i < w->n && !w->why; i++)
		if (i != w->cut_b &&
		    (!w->nodes[i].agree.decided || w->how.reason[i]))
			w->why = "two lose each other, and not one goes";
}

static void agree_cut(struct agree_world *w, u32 a, u32 b)
{
	w->cut[a][b] = true;
	w->cut[b][a] = true;
	agree_suspect(w, a, b);
}

static bool agree_run(struct agree_world *w, u64 seed)
{
	u32 steps, i;
	u32 often;

	agree_world(w, seed);
	steps = rng_range(&w->rng, 10, 300);
	often = rng_range(&w->rng, 10, 400);
	for (i = 0; i < steps && !w->why; i++) {
		if (w->one_cut && i == often % 20)
			agree_cut(w, w->cut_a, w->cut_b);
		else if (w->one_cut && i == steps / 3)
			agree_cut(w, w->cut_b, w->cut_a);
		else if (w->one_cut)
			agree_hear(w, rng_below(&w->rng, w->n),
				   rng_below(&w->rng, w->n));
		else if (w->torn && rng_chance(&w->rng, often))
			agree_tear(w);
		else if (!w->torn && (!i || rng_chance(&w->rng, often)))
			agree_chance(w);
		else
			agree_hear(w, rng_below(&w->rng, w->n),
				   rng_below(&w->rng, w->n));
	}
	agree_drain(w);
	for (i = 0; i < w->n && !w->why; i++) {
		const struct agree_node *n = &w->nodes[i];

		if (!n->crashed && !n->lost && !n->agree.decided &&
		    (sp_agree_own(&n->agree)->wedged || w->decided))
			w->why = "a node waits for ever";
	}
	if (w->one_cut)
		agree_check_cut(w);
	return !w->why;
}

/* Gives how many of the seeds fail, and says why the first of them does. */
u32 agree_random(u64 from, u32 seeds)
{
	struct agree_world *w = calloc(1, sizeof(*w));
	u32 failed = 0;
	u32 i;

	for (i = 0; i < AGREE_NODES; i++)
		w->said[i] = calloc(AGREE_TELLS, sizeof(*w->said[i]));
	for (i = 0; i < seeds; i++) {
		if (agree_run(w, from + i))
			continue;
		if (!failed++)
			printf("agreement %llu: %s\n",
			       (unsigned long long)(from + i), w->why);
	}
	for (i = 0; i < AGREE_NODES; i++)
		free(w->said[i]);
	free(w);
	return failed;
}
