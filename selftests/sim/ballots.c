// SPDX-License-Identifier: GPL-2.0
/*
 * The agreement alone: a few nodes that report, suspect and crash in any order,
 * many times more often than whole runs can, and in some that have a name. There
 * is one decision at most; and every node that lives on comes to it, or knows that
 * it has no quorum.
 */
#include <stdio.h>
#include <stdlib.h>

#include "live.h"

#define BALLOTS_NODES	6
#define BALLOTS_REPORTS	4000

struct ballots_node {
	struct sp_ballot ballot;
	struct sp_report reports[BALLOTS_NODES];
	bool crashed;
	bool lost;
	u32 heard[BALLOTS_NODES];	/* of what each other one has said */
};

struct ballots_world {
	struct rng rng;
	bool calm;		/* no node crashes by itself */
	bool one_cut;		/* nothing happens but that two lose each other */
	bool unnoticed;		/* likewise, and the lower rank does not find out */
	u32 cut_a;
	u32 cut_b;
	bool torn;		/* two sides lose each other; one hears both */
	u32 side;		/* those on one of them, a bit each */
	u32 between;
	bool succession;	/* one leader after the other crashes amid its part */
	bool careless;		/* reports are sent to suspected nodes, too */
	struct sp_view view;
	u32 n;
	bool cut[BALLOTS_NODES][BALLOTS_NODES];
	bool slow[BALLOTS_NODES][BALLOTS_NODES];	/* reports take long: [from][to] */
	struct ballots_node nodes[BALLOTS_NODES];
	struct sp_report *said[BALLOTS_NODES];
	u32 nsaid[BALLOTS_NODES];
	/* How many of these were sent to each other one. */
	u32 sent[BALLOTS_NODES][BALLOTS_NODES];
	bool decided;
	struct sp_proposal how;
	const char *why;
};

/* Reports of a node that crashes may be lost, if nobody has heard them. */
static void ballots_crash(struct ballots_world *w, u32 i)
{
	u32 k;

	w->nodes[i].crashed = true;
	for (k = 0; k < w->n; k++)
		w->sent[i][k] = rng_range(&w->rng, w->nodes[k].heard[i],
					  w->sent[i][k]);
}

static void ballots_send(struct ballots_world *w, u32 i)
{
	struct ballots_node *n = &w->nodes[i];
	u32 k, first = rng_below(&w->rng, w->n);

	if (w->nsaid[i] == BALLOTS_REPORTS) {
		w->why = "no end of reports";
		return;
	}
	w->said[i][w->nsaid[i]++] = *sp_ballot_own(&n->ballot);
	for (k = 0; k < w->n; k++) {
		u32 to = (first + k) % w->n;

		if (to == i || (sp_suspects(&n->ballot, to) && !w->careless))
			continue;
		/* It may crash between any two of them. */
		if (!w->calm && rng_chance(&w->rng, 10)) {
			n->crashed = true;
			return;
		}
		if (!w->cut[i][to])
			w->sent[i][to] = w->nsaid[i];
	}
}

static void ballots_decided(struct ballots_world *w, u32 i)
{
	const struct sp_proposal *p = sp_ballot_decision(&w->nodes[i].ballot);
	u32 k;

	if (!w->decided) {
		w->decided = true;
		w->how = *p;
		for (k = 0; k < w->n && !p->reason[k]; k++)
			;
		if (k == w->n)
			w->why = "a view that changes nothing";
	} else if (memcmp(w->how.reason, p->reason, sizeof(p->reason)) ||
		   memcmp(w->how.trim, p->trim, sizeof(p->trim)) ||
		   w->how.njoins != p->njoins) {
		w->why = "two decisions";
	}
}

static bool ballots_majority(const struct ballots_world *w, u64 nodes)
{
	return 2 * __builtin_popcountll(nodes) + (nodes & 1) > w->n;
}

static bool ballots_step(struct ballots_world *w, u32 i, bool dirty)
{
	struct ballots_node *n = &w->nodes[i];
	u64 counts[SP_MAX_MEMBERS];
	bool moved = dirty;
	u32 k;
	int did;

	while (!n->crashed && !n->lost && !w->why) {
		did = sp_ballot_step(&n->ballot);
		if (did == -ENETDOWN) {
			if (ballots_majority(w, sp_unsuspected(&n->ballot)))
				w->why = "a majority gives up";
			n->lost = true;
			return true;
		}
		if ((did & SP_STEP_SEND) || dirty)
			ballots_send(w, i);
		dirty = false;
		if (n->crashed || !did)
			return moved;
		moved = true;
		if (did & SP_STEP_WEDGE) {
			for (k = 0; k < w->view.nlanes; k++)
				counts[k] = rng_below(&w->rng, 5);
			sp_ballot_wedged(&n->ballot, counts);
			dirty = true;
		}
		if (did & SP_STEP_DECIDED)
			ballots_decided(w, i);
		if (n->ballot.decided && !w->calm && rng_chance(&w->rng, 200))
			ballots_crash(w, i);
	}
	return moved;
}

static bool ballots_receive(struct ballots_world *w, u32 from, u32 to)
{
	struct ballots_node *n = &w->nodes[to];

	if (from == to || n->crashed || n->lost || n->ballot.decided ||
	    n->heard[from] == w->sent[from][to])
		return false;
	if (sp_ballot_receive(&n->ballot, from,
			  &w->said[from][n->heard[from]++]) < 0)
		w->why = "a report that is not believed";
	ballots_step(w, to, false);
	return true;
}

/* Any node hears any other one, unless that takes long. */
static void ballots_hear(struct ballots_world *w)
{
	u32 from = rng_below(&w->rng, w->n);
	u32 to = rng_below(&w->rng, w->n);

	if (!w->slow[from][to] || rng_chance(&w->rng, 50))
		ballots_receive(w, from, to);
}

static void ballots_suspect(struct ballots_world *w, u32 who, u32 whom)
{
	struct ballots_node *n = &w->nodes[who];

	if (n->crashed || n->lost || n->ballot.decided)
		return;
	if (sp_suspect(&n->ballot, whom))
		ballots_step(w, who, true);
}

/* It finds that it is suspected: see sp_suspect_in_return(). */
static void ballots_in_return(struct ballots_world *w, u32 who, u32 whom)
{
	struct ballots_node *n = &w->nodes[who];

	if (who == whom || n->crashed || n->lost || n->ballot.decided ||
	    !sp_suspects(&w->nodes[whom].ballot, who))
		return;
	if (sp_suspect_in_return(&n->ballot, whom))
		ballots_step(w, who, true);
}

static bool ballots_unnoticed(const struct ballots_world *w, u32 who, u32 whom)
{
	return w->unnoticed && who == w->cut_a && whom == w->cut_b;
}

/* Everything arrives in the end, and all that is to be noticed is. */
static void ballots_drain(struct ballots_world *w)
{
	bool moved = true;
	u32 i, k;

	while (moved && !w->why) {
		moved = false;
		for (i = 0; i < w->n; i++)
			for (k = 0; k < w->n; k++)
				while (ballots_receive(w, i, k))
					moved = true;
		if (moved)
			continue;
		for (i = 0; i < w->n; i++) {
			for (k = 0; k < w->n; k++) {
				const struct ballots_node *n = &w->nodes[i];
				const struct ballots_node *p = &w->nodes[k];
				bool back = sp_suspects(&p->ballot, i);
				bool gone = p->crashed || p->lost || w->cut[i][k] ||
					back;

				if (i == k || !gone || ballots_unnoticed(w, i, k) ||
				    n->crashed || n->lost || n->ballot.decided ||
				    sp_suspects(&n->ballot, k))
					continue;
				if (back)
					ballots_in_return(w, i, k);
				else
					ballots_suspect(w, i, k);
				moved = true;
			}
		}
	}
}

/* @n nodes with a member each, to which nothing has happened. */
static void ballots_begin(struct ballots_world *w, u32 n)
{
	u32 i;

	w->n = n;
	w->decided = false;
	w->why = NULL;
	memset(w->cut, 0, sizeof(w->cut));
	memset(w->slow, 0, sizeof(w->slow));
	memset(w->nodes, 0, sizeof(w->nodes));
	memset(w->sent, 0, sizeof(w->sent));
	sp_view_init(&w->view, n, 0);
	for (i = 0; i < n; i++) {
		struct sp_addr addr = live_addr(i);

		sp_view_add(&w->view, &addr, i, 0);
	}
	sp_view_rank(&w->view, 1);
	for (i = 0; i < n; i++) {
		struct ballots_node *node = &w->nodes[i];

		node->ballot.limit = SP_MAX_MEMBERS;
		sp_ballot_init(&node->ballot, &w->view, i, node->reports);
		w->nsaid[i] = 0;
	}
}

static void ballots_slow(struct ballots_world *w)
{
	u32 some = rng_range(&w->rng, 100, 600);
	u32 i, k;

	for (i = 0; i < w->n; i++)
		for (k = 0; k < w->n; k++)
			w->slow[i][k] = rng_chance(&w->rng, some);
}

static void ballots_world(struct ballots_world *w, u64 seed)
{
	u32 n;

	w->rng.state = rng_mix(seed + 99);
	w->one_cut = rng_chance(&w->rng, 100);
	w->succession = !w->one_cut && rng_chance(&w->rng, 300);
	w->calm = w->one_cut;
	n = rng_range(&w->rng, w->one_cut || rng_chance(&w->rng, 900) ? 3 : 2,
		      BALLOTS_NODES);
	w->cut_a = rng_below(&w->rng, n - 1);
	w->cut_b = rng_range(&w->rng, w->cut_a + 1, n - 1);
	w->torn = n > 3 && !w->one_cut && !w->succession && rng_chance(&w->rng, 150);
	w->side = rng_below(&w->rng, 1u << n);
	w->between = rng_below(&w->rng, n);
	w->unnoticed = w->one_cut && rng_chance(&w->rng, 500);
	w->careless = rng_chance(&w->rng, 300);
	ballots_begin(w, n);
	if (rng_chance(&w->rng, 500))
		ballots_slow(w);
}

/* A leader that has proposed crashes; a node finds out that one has. */
static void ballots_succeed(struct ballots_world *w, u32 a, u32 b)
{
	struct ballots_node *n = &w->nodes[a];
	u32 crashed = 0;
	u32 i;

	for (i = 0; i < w->n; i++)
		crashed += w->nodes[i].crashed;
	if (sp_ballot_own(&n->ballot)->accepted.ballot == a + 1 &&
	    2 * (crashed + 1) < w->n) {
		ballots_crash(w, a);
	} else if (!sp_ballot_own(&n->ballot)->wedged && !crashed) {
		sp_ballot_leave(&n->ballot, a, SP_LEFT);
		ballots_step(w, a, true);
	} else if (a != b && w->nodes[b].crashed) {
		ballots_suspect(w, a, b);
	}
}

/* Any node, rather than others one that has accepted and not decided. */
static u32 ballots_amid(struct ballots_world *w)
{
	u32 tries = rng_below(&w->rng, 8);
	u32 i;

	do
		i = rng_below(&w->rng, w->n);
	while (tries-- && (w->nodes[i].ballot.decided ||
			   !sp_ballot_own(&w->nodes[i].ballot)->accepted.ballot));
	return i;
}

/* Something happens to a node, unless it is gone: gives whether it did. */
static bool ballots_chance(struct ballots_world *w)
{
	struct rng *r = &w->rng;
	u32 a = ballots_amid(w);
	u32 b = rng_below(r, w->n);
	struct ballots_node *n = &w->nodes[a];

	if (a == b || n->crashed || n->lost || n->ballot.decided)
		return false;
	switch (rng_below(r, 5)) {
	case 0:
		ballots_crash(w, a);
		break;
	case 1:
		w->cut[a][b] = true;
		w->cut[b][a] = true;
		ballots_suspect(w, a, b);
		break;
	case 2:
		sp_ballot_leave(&n->ballot, a, SP_LEFT);
		ballots_step(w, a, true);
		break;
	default:
		ballots_suspect(w, a, b);
	}
	return true;
}

/*
 * Nodes of two sides suspect each other one by one. The one between them gives up
 * the lowest rank, perhaps, but no side.
 */
static void ballots_tear(struct ballots_world *w)
{
	u32 a = rng_below(&w->rng, w->n);
	u32 b = rng_below(&w->rng, w->n);

	if (a == w->between)
		b = 0;
	if (a != b && b != w->between &&
	    (a == w->between || (w->side >> a & 1) != (w->side >> b & 1)))
		ballots_suspect(w, a, b);
}

/* Of two that lost each other only the higher rank is to go. */
static void ballots_check_cut(struct ballots_world *w)
{
	u32 i;

	for (i = 0; i < w->n && !w->why; i++)
		if (i != w->cut_b &&
		    (!w->nodes[i].ballot.decided || w->how.reason[i]))
			w->why = "two lose each other, and not one goes";
}

static void ballots_cut(struct ballots_world *w, u32 a, u32 b)
{
	w->cut[a][b] = true;
	w->cut[b][a] = true;
	if (!ballots_unnoticed(w, a, b))
		ballots_suspect(w, a, b);
}

/* When nobody hears the higher of the two any more, whom it suspects is nothing. */
static void ballots_removed(struct ballots_world *w)
{
	u32 i;

	for (i = 0; i < w->n; i++)
		if (i != w->cut_b &&
		    !sp_suspects(&w->nodes[i].ballot, w->cut_b))
			return;
	for (i = w->cut_b + 1; i < w->n; i++)
		ballots_suspect(w, w->cut_b, i);
}

/* The run is over: every node has decided, or knows that it cannot. */
static void ballots_end(struct ballots_world *w)
{
	u32 i;

	ballots_drain(w);
	for (i = 0; i < w->n && !w->why; i++) {
		const struct ballots_node *n = &w->nodes[i];

		if (!n->crashed && !n->lost && !n->ballot.decided &&
		    (sp_ballot_own(&n->ballot)->wedged || w->decided))
			w->why = "a node waits for ever";
	}
}

static bool ballots_one(struct ballots_world *w, u64 seed)
{
	u32 steps, i;
	u32 often, faults;

	ballots_world(w, seed);
	faults = rng_range(&w->rng, 1, 8);
	steps = rng_range(&w->rng, 10, 300);
	often = rng_range(&w->rng, 10, 400);
	for (i = 0; i < steps && !w->why; i++) {
		u32 a = rng_below(&w->rng, w->n);
		u32 b = rng_below(&w->rng, w->n);

		if (w->succession && rng_chance(&w->rng, often))
			ballots_succeed(w, a, b);
		else if (w->one_cut && i == often % 20)
			ballots_cut(w, w->cut_a, w->cut_b);
		else if (w->one_cut && i == steps / 3)
			ballots_cut(w, w->cut_b, w->cut_a);
		else if (w->one_cut && i == steps / 3 * 2)
			ballots_removed(w);
		else if (rng_chance(&w->rng, 100) && !ballots_unnoticed(w, a, b))
			ballots_in_return(w, a, b);
		else if (rng_chance(&w->rng, 50) &&
			 sp_suspects(&w->nodes[a].ballot, b))
			/* A timer that is late. */
			ballots_suspect(w, a, b);
		else if (w->one_cut)
			ballots_hear(w);
		else if (w->torn && rng_chance(&w->rng, often))
			ballots_tear(w);
		else if (!w->torn && !w->succession && faults &&
			 (!i || rng_chance(&w->rng, often)))
			faults -= ballots_chance(w);
		else
			ballots_hear(w);
	}
	ballots_end(w);
	if (w->one_cut)
		ballots_check_cut(w);
	return !w->why;
}

static struct ballots_world *ballots_new(void)
{
	struct ballots_world *w = calloc(1, sizeof(*w));
	u32 i;

	for (i = 0; i < BALLOTS_NODES; i++)
		w->said[i] = calloc(BALLOTS_REPORTS, sizeof(*w->said[i]));
	return w;
}

static void ballots_free(struct ballots_world *w)
{
	u32 i;

	for (i = 0; i < BALLOTS_NODES; i++)
		free(w->said[i]);
	free(w);
}

/* Gives how many of the seeds fail, and says why the first of them does. */
u32 ballots_run(u64 from, u32 seeds)
{
	struct ballots_world *w = ballots_new();
	u32 failed = 0;
	u32 i;

	for (i = 0; i < seeds; i++) {
		if (ballots_one(w, from + i))
			continue;
		if (!failed++)
			printf("agreement %llu: %s\n",
			       (unsigned long long)(from + i), w->why);
	}
	ballots_free(w);
	return failed;
}

/**
 * struct ballots_case - an agreement with a name
 * @nodes: how many
 * @goes: nodes that are not to come to the next view, a bit each; those that
 *	crashed are not asked
 * @script: what happens, one after the other; then all that is under way
 *	arrives, and each node finds out what there is to find out
 *
 *	sAB  node A loses node B        rAB  A finds that B suspects it
 *	dAB  B receives what A sent     lA   the member on A is to leave
 *	xA   A crashes                  *    each node in its turn
 */
struct ballots_case {
	const char *name;
	const char *what;
	u32 nodes;
	u32 goes;
	const char *script;
};

static const struct ballots_case cases[] = {
	{ "trim-holds", "review 14: a trim that somebody delivered by is not computed again",
	  .nodes = 5, .goes = 1 << 4,
	  .script = "l4 d40 d0* d*0 d0* d*1 x1 x0 s30 s31 s40 s41 d32 d42 s20 s21" },
	{ "late-ballot", "review 15: a leader has the promise of all before it proposes",
	  .nodes = 3, .goes = 1 << 1 | 1 << 2,
	  .script = "l2 d20 d02 d21 s10 r01 d20 d02 d20 x0 s20 d12 d21" },
	{ "decision-told", "a node that has decided is not waited for",
	  .nodes = 3, .goes = 1 << 2,
	  .script = "l2 d20 d01 d02 d10 d20 d02 d21 d01 x0 s20" },
	{ "or-ed", "review 16: two lose each other, the third sees both",
	  .nodes = 3, .goes = 1 << 1, .script = "s10 s01 d12" },
	{ "in-return", "a node on its way out takes nobody with it",
	  .nodes = 5, .goes = 1 << 1,
	  .script = "s10 s01 d02 d03 r12 r13 d14 d04" },
	{ "held", "a leader waits for what becomes of an accusation",
	  .nodes = 4, .goes = 1 << 2 | 1 << 3,
	  .script = "l2 d20 d01 d02 d10 d20 s31 d30" },
	{ "away", "a node that was away, and whom most suspect, does not cost them their place",
	  .nodes = 5, .goes = 1 << 0,
	  .script = "s10 s30 s40 d12 d32 d42 d20 d02 d23 d24" },
	{ "removed", "whom a node suspects that is out, nobody else does",
	  .nodes = 4, .goes = 1 << 1, .script = "s01 d02 d03 s13 d12" },
	{ "lowest-half", "half of the nodes is enough with the lowest rank, and only so",
	  .nodes = 4, .goes = 1 << 2 | 1 << 3,
	  .script = "s02 s03 s12 s13 s20 s21 s30 s31" },
};

static void ballots_deliver(struct ballots_world *w, char from, char to)
{
	u32 i, k;

	for (i = 0; i < w->n; i++)
		for (k = 0; k < w->n; k++)
			while ((from == '*' || from - '0' == (int)i) &&
			       (to == '*' || to - '0' == (int)k) &&
			       ballots_receive(w, i, k))
				;
}

static void ballots_play(struct ballots_world *w, const char *at)
{
	for (; *at && !w->why; at += strcspn(at, " "), at += *at == ' ') {
		u32 a = at[1] - '0';
		u32 b = at[2] - '0';

		switch (*at) {
		case 's':
			ballots_suspect(w, a, b);
			break;
		case 'r':
			ballots_in_return(w, a, b);
			break;
		case 'd':
			ballots_deliver(w, at[1], at[2]);
			break;
		case 'l':
			sp_ballot_leave(&w->nodes[a].ballot, a, SP_LEFT);
			ballots_step(w, a, true);
			break;
		case 'x':
			w->nodes[a].crashed = true;
			break;
		}
	}
}

/* Those that are to go have gone, by the decision or for want of a majority. */
static void ballots_check_goes(struct ballots_world *w, u32 goes)
{
	u32 crashed = 0;
	u32 i;

	for (i = 0; i < w->n; i++)
		crashed |= w->nodes[i].crashed << i;
	for (i = 0; i < w->n && !w->why; i++) {
		const struct ballots_node *n = &w->nodes[i];
		bool stays = n->ballot.decided && !w->how.reason[i];

		if (!n->crashed && stays == (goes >> i & 1))
			w->why = stays ? "a node stays" : "a node goes";
		if (stays && (sp_ballot_own(&n->ballot)->suspected & ~goes & ~crashed))
			w->why = "a node is suspected that is not to go";
	}
}

void ballots_cases_list(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		printf("%-20s %s\n", cases[i].name, cases[i].what);
}

/* As scenario_run(). What a node has received when it wedges is any number. */
int ballots_cases_run(const char *name, bool first)
{
	struct ballots_world *w = ballots_new();
	bool known = false;
	int failed = 0;
	size_t i;
	u32 k;

	for (i = 0; i < ARRAY_SIZE(cases) && !(first && failed); i++) {
		const struct ballots_case *c = &cases[i];
		bool bad = false;

		if (strcmp(name, "all") && strcmp(name, c->name))
			continue;
		known = true;
		printf("%s: %s\n", c->name, c->what);
		for (k = 0; k < 200 && !bad; k++) {
			memset(&w->rng, 0, sizeof(w->rng));
			w->rng.state = rng_mix(k);
			w->calm = true;
			w->one_cut = false;
			w->unnoticed = false;
			ballots_begin(w, c->nodes);
			ballots_play(w, c->script);
			ballots_end(w);
			ballots_check_goes(w, c->goes);
			bad = w->why;
		}
		if (bad)
			printf("  seed %u: %s\n", k - 1, w->why);
		printf("%s: %s\n", c->name, bad ? "FAILED" : "ok");
		failed += bad;
	}
	ballots_free(w);
	return known ? failed : -1;
}
