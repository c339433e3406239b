// SPDX-License-Identifier: GPL-2.0
/*
 * One run: the clock with its events, the world that a seed makes, and when
 * the run is over. It is over when nothing is left to happen: an engine that
 * polls always has something left, so rest is reached only with all asleep.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

int sim_reads_left = INT_MAX;
struct sim *sim_running;

void sim_say(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	printf("%8llu  ", (unsigned long long)s->now);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* The first one counts: what follows it is its consequence. */
void sim_violation(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->violated)
		return;
	s->violated = true;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	sim_trace(s, "VIOLATION: %s", s->why);
}

static bool sim_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void sim_push(struct sim *s, struct event e)
{
	u32 i = s->nheap++;

	if (i == s->heap_size) {
		s->heap_size = s->heap_size ? 2 * s->heap_size : 256;
		s->heap = realloc(s->heap, s->heap_size * sizeof(e));
	}
	while (i && sim_before(&e, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = e;
}

static struct event sim_pop(struct sim *s)
{
	struct event top = s->heap[0];
	struct event e = s->heap[--s->nheap];
	u32 i = 0;
	u32 k;

	while ((k = 2 * i + 1) < s->nheap) {
		if (k + 1 < s->nheap && sim_before(&s->heap[k + 1], &s->heap[k]))
			k++;
		if (!sim_before(&s->heap[k], &e))
			break;
		s->heap[i] = s->heap[k];
		i = k;
	}
	s->heap[i] = e;
	return top;
}

void sim_after(struct sim *s, u32 delay, enum event_kind kind, u32 who)
{
	struct event e = {
		.at = s->now + delay,
		.order = s->order++,
		.kind = kind,
		.who = who,
	};

	sim_push(s, e);
}

/* How bad the world is that a seed makes. */
void weather_make(struct weather *w, struct rng *r)
{
	w->pass_gap = rng_chance(r, 500) ? 4 : rng_range(r, 1, 60);
	w->pause = rng_chance(r, 500) ? rng_below(r, 40) : 0;
	w->pause_len = rng_range(r, 10, 5000);
	w->net_gap = rng_chance(r, 500) ? 6 : rng_range(r, 1, 80);
	w->stall = rng_chance(r, 500) ? rng_below(r, 60) : 0;
	w->stall_len = rng_range(r, 10, 3000);
	w->tear = rng_chance(r, 700) ? rng_below(r, 900) : 0;
	w->resend = rng_chance(r, 500) ? rng_below(r, 200) : 0;
	w->amid = rng_chance(r, 700) ? rng_range(r, 4, 200) : 0;
	w->away = rng_chance(r, 500) ? rng_below(r, 200) : 0;
	w->away_len = rng_range(r, 1, 20) * w->net_gap;
	w->stir = rng_chance(r, 500) ? rng_below(r, 900) : 0;
	if (rng_chance(r, 250)) {
		/* One processor, and much else to do. */
		w->amid = 4;
		w->away = rng_range(r, 5, 100);
		w->away_len = rng_range(r, 1, 40) * w->net_gap;
	}
}

static void sim_weather(struct sim *s)
{
	struct weather *w = &s->weather;

	if (s->opts.calm) {
		w->pass_gap = 1;
		w->net_gap = s->opts.calm->wire;
		return;
	}
	weather_make(w, &s->rng);
	if (s->opts.force & SIM_FORCE_TEARS) {
		w->tear = 900;
		w->amid = 8;
	}
}

/* Few nodes mostly, all numbers sometimes. */
static void sim_members(struct sim *s)
{
	struct rng *r = &s->rng;
	u32 per_node = rng_chance(r, 970) ? rng_range(r, 1, 3) :
		rng_range(r, 5, SP_MAX_NODE_LANES);
	u32 i, k;

	if (s->opts.calm) {
		s->nnodes = s->opts.calm->nodes;
		s->nodes = calloc(s->nnodes, sizeof(*s->nodes));
		for (i = 0; i < s->opts.calm->lanes; i++)
			s->plans[s->nlanes++].node = i;
		return;
	}
	s->nnodes = rng_chance(r, 900) ? rng_range(r, 2, 4) :
		rng_chance(r, 600) ? rng_range(r, 1, 8) :
		rng_range(r, 9, SIM_MAX_NODES);
	if (s->opts.force & SIM_FORCE_HOSTILE)
		s->nnodes = max(s->nnodes, 2u);
	s->nodes = calloc(s->nnodes, sizeof(*s->nodes));
	for (i = 0; i < s->nnodes; i++) {
		u32 lanes = rng_chance(r, 250) ? 0 : rng_range(r, 1, per_node);

		/* Ranks are mixed between nodes. */
		for (k = 0; k < lanes && s->nlanes < SIM_MAX_LANES; k++) {
			u32 at = rng_below(r, ++s->nlanes);

			s->plans[s->nlanes - 1].node = s->plans[at].node;
			s->plans[at].node = i;
		}
	}
	if (!s->nlanes)
		s->plans[s->nlanes++].node = rng_below(r, s->nnodes);
}

/* Small rings, so that all of them wrap and fill up all the time. */
static void sim_sizes(struct sim *s)
{
	struct rng *r = &s->rng;
	bool late = rng_chance(r, 250) || (s->opts.force & SIM_FORCE_LATE);

	if (s->opts.calm) {
		s->depth = 256;
		s->window = 64 * 1024;
		s->max_len = 4096;
		s->log_size = s->nlanes * s->depth;
		s->slots = 64;
		s->credits = 32;
		s->epoch = 1;
		return;
	}
	s->depth = 16u << rng_below(r, 3);
	s->window = s->nnodes * s->nlanes > 40 ? 1024u << rng_below(r, 2) :
		2048u << rng_below(r, 4);
	s->max_len = rng_chance(r, 300) ? s->window :
		rng_range(r, 0, s->window / 2);
	s->log_size = 1;
	while (s->log_size < s->nlanes * s->depth)
		s->log_size *= 2;
	/* A row that carries messages takes up to five. */
	s->slots = rng_chance(r, 400) ? rng_range(r, 5, 8) :
		rng_range(r, 8, 64);
	s->credits = rng_chance(r, 300) ? 1 : rng_range(r, 2, 32);
	if (s->opts.force & SIM_FORCE_TINY_QUEUE)
		s->slots = 5;
	s->epoch = rng_next(r);
	s->leftovers = rng_chance(r, 500);
	if (late) {
		s->base_round = (1ull << 32) - rng_below(r, 60);
		s->base_count = (1ull << 32) - rng_below(r, 60);
		s->base_tail = (1ull << 32) - rng_below(r, 400);
	}
}

/*
 * Optimisations that are off, by node, in a third of the runs; in some of these
 * they come and go. Without nulls, which are given by all nodes or by none, a
 * sender waits for the others: then all send alike.
 */
static void sim_optimise(struct sim *s)
{
	bool forced = s->opts.force & SIM_FORCE_OPT;
	struct rng *r = &s->opt_rng;
	bool off, nulls;
	u32 i;

	/* Of its own, so that the rest of the run stays what it is. */
	r->state = s->rng.state ^ 0x6f7074ull << 32;
	off = rng_chance(r, 350);
	nulls = !off || rng_chance(r, 700);
	s->flips = !forced && off && rng_chance(r, 400);
	s->alike = forced || !nulls;
	s->each = rng_below(r, 41);
	for (i = 0; i < s->nnodes; i++) {
		u32 opt = SP_OPT_ALL;

		if (off)
			opt = rng_chance(r, 700) ? rng_below(r, SP_OPT_ALL + 1) : 0;
		opt = nulls ? opt | SP_OPT_NULL : opt & ~SP_OPT_NULL;
		s->nodes[i].core.opt = forced ? s->opts.opt : opt;
	}
}

/* Programs that wait for all readers, in a third of the runs. */
static void sim_wait(struct sim *s)
{
	struct rng *r = &s->wait_rng;

	/* Likewise. */
	r->state = s->rng.state ^ 0x77616974ull << 32;
	if (!s->opts.calm && rng_chance(r, 350))
		s->waits = rng_range(r, 20, 500);
}

/*
 * Every message may wake everybody, and whoever naps tells everybody: with
 * little patience and a slow network that is a write for each pair of nodes.
 */
static u64 sim_bound(const struct sim *s)
{
	u64 messages = s->nlanes;
	u32 i;

	for (i = 0; i < s->nlanes; i++)
		messages += s->plans[i].total;
	return 500000 + 300 * messages * s->nnodes * s->nnodes;
}

struct sim *sim_new(const struct sim_opts *opts)
{
	struct sim *s = calloc(1, sizeof(*s));
	u32 i;

	s->opts = *opts;
	s->rng.state = opts->seed * 0x2545f4914f6cdd1dull + opts->doorbell;
	s->hostile = rng_chance(&s->rng, 150);
	if (opts->force & SIM_FORCE_HOSTILE)
		s->hostile = true;
	if (opts->force & SIM_FORCE_HONEST)
		s->hostile = false;
	sim_weather(s);
	sim_members(s);
	sim_sizes(s);
	sp_layout_init(&s->lay, s->depth, s->window, SIM_CHUNK);
	sim_optimise(s);
	sim_wait(s);
	if (s->nnodes < 2)
		s->hostile = false;
	for (i = 0; i < s->nnodes; i++)
		s->nodes[i].polled = opts->doorbell == SIM_POLLED ||
			(opts->doorbell == SIM_MIXED && rng_chance(&s->rng, 500));
	net_init(s);
	for (i = 0; i < s->nnodes; i++)
		node_init(s, &s->nodes[i]);
	app_init(s);
	s->bound = sim_bound(s);
	if (s->hostile) {
		s->villain = rng_below(&s->rng, s->nnodes);
		s->villainy = rng_range(&s->rng, 2, 60);
		s->attacks = rng_below(&s->rng, 60);
		if (rng_chance(&s->rng, 400))
			sim_after(s, rng_range(&s->rng, 1, 3000), EV_ATTACK, 0);
	}
	for (i = 0; i < s->nnodes; i++)
		sim_trace(s, "node %u optimises %#x%s", i,
			  s->nodes[i].core.opt, s->flips ? ", for now" : "");
	sim_trace(s, "%u nodes %u lanes depth %u window %u max %u slots %u credits %u%s",
		  s->nnodes, s->nlanes, s->depth, s->window, s->max_len,
		  s->slots, s->credits, s->hostile ? ", one hostile" : "");
	return s;
}

void sim_free(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->nnodes; i++)
		node_free(&s->nodes[i]);
	net_free(s);
	app_free(s);
	free(s->nodes);
	free(s->heap);
	free(s);
}

static void sim_until(struct sim *s, u64 until)
{
	while (s->nheap && s->heap[0].at <= until && !s->violated)
		sim_one(s);
	s->now = until;
}

/*
 * The engine loses its processor amid a pass: all others go on, and pass. What
 * it has posted may be late: then they are ahead of it first.
 */
static void sim_away(struct sim *s)
{
	u64 until = s->now + rng_range(&s->rng, 1, s->weather.away_len);

	sim_trace(s, "node %u is away until %llu", s->amid->id,
		  (unsigned long long)until);
	if (rng_chance(&s->rng, 500)) {
		s->mute = s->amid;
		sim_until(s, (s->now + until) / 2);
		s->mute = NULL;
	}
	sim_until(s, until);
}

/* Something else happens in the middle of a pass. */
void sim_disturb(struct sim *s)
{
	struct node *n = s->amid;
	u32 other, lane, reader;

	if (!n || s->disturbing || s->violated)
		return;
	s->disturbing = true;
	/* What happens while it makes up its mind to sleep is worth most. */
	if (rng_chance(&s->rng, s->weather.away *
		       (n->core.doze.state == SP_DOZING ? 8 : 1))) {
		sim_away(s);
		s->disturbing = false;
		return;
	}
	other = rng_below(&s->rng, s->nnodes);
	switch (rng_below(&s->rng, 8)) {
	case 0:
		lane = rng_below(&s->rng, s->nlanes);
		if (s->plans[lane].node == n->id && s->plans[lane].scheduled &&
		    !s->plans[lane].locked)
			app_send(s, lane);
		break;
	case 1:
		reader = rng_below(&s->rng, n->nreaders);
		if (n->readers[reader].scheduled)
			app_read(s, n, reader);
		break;
	case 2:
		if (other != n->id)
			net_step(s, sim_conn(s, n->id, other));
		break;
	default:
		if (other != n->id)
			net_step(s, sim_conn(s, other, n->id));
	}
	s->disturbing = false;
}

static void sim_arm(struct sim *s)
{
	sim_reads_left = s->weather.amid ?
		(int)rng_range(&s->rng, 1, 2 * s->weather.amid) : INT_MAX;
}

void sim_read_hook(void)
{
	struct sim *s = sim_running;

	sim_reads_left = INT_MAX;
	live_read_hook();
	if (!s || !s->amid)
		return;
	sim_disturb(s);
	sim_arm(s);
}

static void sim_event(struct sim *s, const struct event *e)
{
	struct reader *r;
	struct node *n;

	switch (e->kind) {
	case EV_PASS:
		if (!s->amid)
			sim_arm(s);
		node_pass(s, &s->nodes[e->who]);
		if (!s->amid)
			sim_reads_left = INT_MAX;
		break;
	case EV_REST:
		node_rested(&s->nodes[e->who]);
		break;
	case EV_NET:
		s->conns[e->who].scheduled = false;
		net_step(s, &s->conns[e->who]);
		break;
	case EV_CREDIT:
		net_credit(&s->conns[e->who]);
		break;
	case EV_SEND:
		s->plans[e->who].scheduled = false;
		app_send(s, e->who);
		break;
	case EV_READ:
		n = &s->nodes[e->who / SIM_MAX_READERS];
		r = &n->readers[e->who % SIM_MAX_READERS];
		r->scheduled = false;
		app_read(s, n, e->who % SIM_MAX_READERS);
		break;
	case EV_ATTACK:
		hostile_attack(s);
		break;
	}
}

/* The next that happens. */
void sim_one(struct sim *s)
{
	struct event e = sim_pop(s);

	s->now = e.at;
	if (++s->steps > s->bound)
		sim_violation(s, "no rest after %llu steps",
			      (unsigned long long)s->bound);
	else
		sim_event(s, &e);
}

/* Run until nothing is left to happen. */
void sim_settle(struct sim *s)
{
	sim_running = s;
	while (s->nheap && !s->violated)
		sim_one(s);
	sim_running = NULL;
}

/* The same, and see what has become of it. True when all held. */
bool sim_run(struct sim *s)
{
	sim_settle(s);
	sim_running = s;
	if (!s->violated)
		app_check(s);
	sim_running = NULL;
	return !s->violated;
}
