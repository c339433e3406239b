// SPDX-License-Identifier: GPL-2.0
/*
 * The network: one reliable connection for each ordered pair of nodes.
 *
 * A write's source is read when its packet is built, some time after the post,
 * and again when it is sent again. Within one connection to a polling node a
 * write begins to land only after the one before it; to a node that waits for
 * completions the writes land in any order, and a row arrives as a message
 * once all before it have landed. Nothing is promised inside one write.
 */
#include <stdlib.h>

#include "sim.h"

static struct net_write *net_slot(struct conn *c, u64 n)
{
	return &c->sq[n % c->slots];
}

void net_init(struct sim *s)
{
	u32 i, j;

	s->conns = calloc(s->nnodes * s->nnodes, sizeof(*s->conns));
	for (i = 0; i < s->nnodes; i++) {
		for (j = 0; j < s->nnodes; j++) {
			struct conn *c = sim_conn(s, i, j);

			c->from = &s->nodes[i];
			c->to = &s->nodes[j];
			c->slots = s->slots;
			c->credits = s->credits;
			if (i != j)
				c->sq = calloc(c->slots, sizeof(*c->sq));
		}
	}
}

void net_free(struct sim *s)
{
	u32 i, k;

	for (i = 0; i < s->nnodes * s->nnodes; i++) {
		struct conn *c = &s->conns[i];

		for (k = 0; c->sq && k < c->slots; k++)
			free(c->sq[k].data);
		free(c->sq);
	}
	free(s->conns);
}

/* When the next write of a calm run lands or completes, which takes as long. */
static void net_schedule_calm(struct sim *s, struct conn *c)
{
	u64 at = UINT64_MAX;

	if (c->scheduled || c->completed == c->posted)
		return;
	if (c->landed < c->posted)
		at = net_slot(c, c->landed)->at;
	if (c->completed < c->landed)
		at = min(at, net_slot(c, c->completed)->at + s->opts.calm->wire);
	c->scheduled = true;
	sim_after(s, at - s->now, EV_NET, c->from->id * s->nnodes + c->to->id);
}

static void net_schedule(struct sim *s, struct conn *c)
{
	const struct weather *w = &s->weather;
	u32 delay;

	if (s->opts.calm) {
		net_schedule_calm(s, c);
		return;
	}
	delay = rng_range(&s->rng, 1, w->net_gap);
	if (c->scheduled || c->completed == c->posted)
		return;
	if (rng_chance(&s->rng, w->stall))
		delay += rng_below(&s->rng, w->stall_len);
	c->scheduled = true;
	sim_after(s, delay, EV_NET, c->from->id * s->nnodes + c->to->id);
}

bool net_room(const struct conn *c, u32 n)
{
	return c->posted - c->completed + n <= c->slots;
}

/* Post one work request; net_room() said yes. Gives its ticket. */
u64 net_post(struct sim *s, struct conn *c, enum write_kind kind, u64 off,
	     const void *src, u32 len, bool copy)
{
	struct net_write *w = net_slot(c, c->posted);

	w->kind = kind;
	w->off = off;
	w->len = len;
	w->src = copy ? NULL : src;
	w->data = realloc(w->data, len ? len : 1);
	if (copy && len)
		memcpy(w->data, src, len);
	w->landed = false;
	if (s->opts.calm)
		w->at = s->now + s->opts.calm->wire;
	c->posted++;
	sim_trace(s, "%u->%u post #%llu kind %d off %llu len %u", c->from->id,
		  c->to->id, (unsigned long long)c->posted, kind,
		  (unsigned long long)off, len);
	net_schedule(s, c);
	return c->posted;
}

static void net_build(struct sim *s, struct conn *c)
{
	struct net_write *w = net_slot(c, c->built);

	if (w->src)
		memcpy(w->data, w->src, w->len);
	if (s->hostile && c->from->id == s->villain)
		hostile_packet(s, w);
	c->built++;
}

/*
 * The packet is sent again: its source is read once more. A source that has
 * changed means that its room was given away before the request completed.
 */
static void net_resend(struct sim *s, struct conn *c, struct net_write *w)
{
	if (!w->src || (s->hostile && c->from->id == s->villain) ||
	    (w->kind == WR_ROW && (s->opts.broken & SIM_BREAK_LIVE_ROWS)))
		return;
	if (memcmp(w->data, w->src, w->len))
		sim_violation(s, "node %u changed the source of a request to node %u before it completed",
			      c->from->id, c->to->id);
}

/* A program is about to overwrite @len bytes: does a request still read them? */
void net_overwritten(struct sim *s, struct node *n, const u8 *at, u32 len)
{
	u32 i;
	u64 k;

	if (s->hostile && n->id == s->villain)
		return;
	for (i = 0; i < s->nnodes; i++) {
		struct conn *c = sim_conn(s, n->id, i);

		for (k = c->completed; k < c->posted; k++) {
			const struct net_write *w = net_slot(c, k);

			if (!w->src || at >= w->src + w->len || w->src >= at + len)
				continue;
			sim_violation(s, "node %u overwrites the source of a request to node %u before it completed",
				      n->id, i);
			return;
		}
	}
}

/* Has an own lane given away what a posted request reads? */
static bool net_reads_freed(const struct node *n, const struct net_write *w)
{
	bool desc = w->kind == WR_DESC;
	u32 each = desc ? sizeof(struct sp_desc) : SP_UNIT;
	const struct sp_layout *lay = &n->sim->lay;
	u32 size = desc ? lay->depth : lay->window / SP_UNIT;
	u64 off = w->off - SP_ROWS_BYTES;
	u64 first = (off % lay->size - (desc ? 0 : lay->ring_off)) / each;
	u64 last = first + (w->len - 1) / each;
	const struct sp_tx *tx = &n->tx[off / lay->size];
	u64 from = desc ? tx->freed : tx->head;
	u64 kept = desc ? tx->now.count - from : tx->now.tail - from;

	return ((first - from) & (size - 1)) >= kept ||
	       ((last - from) & (size - 1)) >= kept;
}

/* Own lanes have taken room back: only what no request will read any more. */
void net_freed(struct sim *s, struct node *n)
{
	u32 i;
	u64 k;

	if (s->hostile && n->id == s->villain)
		return;
	for (i = 0; i < s->nnodes; i++) {
		struct conn *c = sim_conn(s, n->id, i);

		for (k = c->completed; k < c->posted; k++) {
			const struct net_write *w = net_slot(c, k);

			if ((w->kind == WR_DESC || w->kind == WR_BYTES) &&
			    net_reads_freed(n, w))
				sim_violation(s, "node %u takes back what a request to node %u may read again",
					      n->id, i);
		}
	}
}

static void net_shuffle(struct sim *s, struct conn *c)
{
	u32 i;

	for (i = c->npieces; i > 1; i--) {
		u32 j = rng_below(&s->rng, i);
		struct net_piece t = c->pieces[i - 1];

		c->pieces[i - 1] = c->pieces[j];
		c->pieces[j] = t;
	}
}

static void net_reverse(struct conn *c)
{
	u32 i;

	for (i = 0; i < c->npieces / 2; i++) {
		struct net_piece t = c->pieces[i];

		c->pieces[i] = c->pieces[c->npieces - 1 - i];
		c->pieces[c->npieces - 1 - i] = t;
	}
}

static void net_cut(struct conn *c, u32 from, u32 to, u32 each)
{
	while (from < to && c->npieces < SIM_MAX_PIECES) {
		u32 len = min(each, to - from);

		/* The last piece that there is room for takes the rest. */
		if (c->npieces == SIM_MAX_PIECES - 1)
			len = to - from;
		c->pieces[c->npieces].off = from;
		c->pieces[c->npieces].len = len;
		c->npieces++;
		from += len;
	}
}

/* Decide how a write lands: whole, or in pieces, a row torn amid one cell. */
static void net_tear(struct sim *s, struct conn *c, const struct net_write *w)
{
	static const u32 grains[] = { 1, 2, 4, 4, 8, 8 };
	u32 cell = sizeof(struct sp_cell);
	u32 at;

	c->piece = 0;
	c->npieces = 0;
	if (w->len < 2 || !rng_chance(&s->rng, s->weather.tear)) {
		net_cut(c, 0, w->len, w->len);
		return;
	}
	if (w->kind == WR_ROW) {
		at = rng_range(&s->rng, SP_CELL_RECEIVED, w->len / cell - 1);
		if (at > SP_CELL_WANTED && at < SP_CELL_LANES)
			at = SP_CELL_RECEIVED;
		at *= cell;
		net_cut(c, 0, at, at);
		net_cut(c, at, at + cell, grains[rng_below(&s->rng, 6)]);
		net_cut(c, at + cell, w->len, w->len);
	} else {
		at = rng_range(&s->rng, 1, w->len - 1);
		net_cut(c, 0, at, at);
		net_cut(c, at, w->len, rng_range(&s->rng, 1, w->len));
	}
	switch (rng_below(&s->rng, 4)) {
	case 0:
		break;
	case 1:
		net_reverse(c);
		break;
	default:
		net_shuffle(s, c);
	}
}

/* The receiver's side of a message that takes a receive. */
static void net_take_credit(struct sim *s, struct conn *c)
{
	c->owed++;
	if (c->credit_scheduled)
		return;
	c->credit_scheduled = true;
	sim_after(s, rng_range(&s->rng, 1, 4 * s->weather.net_gap), EV_CREDIT,
		  c->from->id * s->nnodes + c->to->id);
}

void net_credit(struct conn *c)
{
	c->credit_scheduled = false;
	c->credits += c->owed;
	c->owed = 0;
}

static void net_landed(struct sim *s, struct conn *c, struct net_write *w)
{
	w->landed = true;
	while (c->landed < c->built && net_slot(c, c->landed)->landed)
		c->landed++;
	if (w->kind == WR_WAKE) {
		sim_trace(s, "%u->%u wake arrives", c->from->id, c->to->id);
		node_kick(c->to);
	} else if (w->kind == WR_ROW && !c->to->polled) {
		net_take_credit(s, c);
		node_kick(c->to);
	}
	sim_trace(s, "%u->%u landed up to #%llu", c->from->id, c->to->id,
		  (unsigned long long)c->landed);
}

static void net_copy(struct conn *c, const struct net_write *w, u32 off, u32 len)
{
	u8 *to = c->to->slab[c->from->id] + w->off + off;

	if (w->kind == WR_WAKE || !len)
		return;
	if (c->to == c->to->sim->outer)
		past_keep(to, len);
	memcpy(to, w->data + off, len);
}

/* Polling target: one after the other, each perhaps in pieces. */
static void net_land_in_order(struct sim *s, struct conn *c)
{
	struct net_write *w = net_slot(c, c->landed);

	if (!c->npieces) {
		if (rng_chance(&s->rng, s->weather.resend)) {
			/* Lost on the way: built anew. */
			net_resend(s, c, w);
			if (w->src)
				memcpy(w->data, w->src, w->len);
			return;
		}
		net_tear(s, c, w);
	}
	if (c->piece < c->npieces) {
		net_copy(c, w, c->pieces[c->piece].off, c->pieces[c->piece].len);
		c->piece++;
	}
	if (c->piece >= c->npieces) {
		c->npieces = 0;
		net_landed(s, c, w);
	}
}

/*
 * Writes become visible in any order among each other; a message arrives after
 * all that was posted before it.
 */
static void net_land_any(struct sim *s, struct conn *c)
{
	u64 n = c->landed + rng_below(&s->rng, c->built - c->landed);
	struct net_write *w = net_slot(c, n);
	bool message = !c->to->polled && (w->kind == WR_ROW || w->kind == WR_WAKE);
	u64 i;

	if (w->landed)
		return;
	if (message) {
		for (i = c->landed; i < n; i++) {
			struct net_write *before = net_slot(c, i);

			if (before->landed)
				continue;
			net_copy(c, before, 0, before->len);
			net_landed(s, c, before);
		}
	}
	net_copy(c, w, 0, w->len);
	net_landed(s, c, w);
}

static void net_complete(struct sim *s, struct conn *c)
{
	struct net_write *w = net_slot(c, c->completed);

	if (rng_chance(&s->rng, s->weather.resend)) {
		/* Its acknowledgment was lost; the target drops the second. */
		net_resend(s, c, w);
		return;
	}
	c->completed++;
	sim_trace(s, "%u->%u completed #%llu", c->from->id, c->to->id,
		  (unsigned long long)c->completed);
	node_completed(c->from);
}

/* All that is due, and nothing else. */
static void net_step_calm(struct sim *s, struct conn *c)
{
	while (c->landed < c->posted && net_slot(c, c->landed)->at <= s->now) {
		net_build(s, c);
		net_land_in_order(s, c);
	}
	while (c->completed < c->landed &&
	       net_slot(c, c->completed)->at + s->opts.calm->wire <= s->now)
		net_complete(s, c);
	net_schedule(s, c);
}

/* Get on with a connection: a few packets, pieces and completions. */
void net_step(struct sim *s, struct conn *c)
{
	bool any = !c->to->polled || (s->opts.broken & SIM_BREAK_ORDER);
	u32 n;

	if (s->opts.calm) {
		net_step_calm(s, c);
		return;
	}
	n = c->from == s->mute ? 0 : rng_range(&s->rng, 1, 6);
	while (n-- && c->completed < c->posted) {
		u32 what = rng_below(&s->rng, 3);

		if (what == 0 && c->built < c->posted)
			net_build(s, c);
		else if (what == 1 && c->landed < c->built && any)
			net_land_any(s, c);
		else if (what == 1 && c->landed < c->built)
			net_land_in_order(s, c);
		else if (what == 2 && c->completed < c->landed)
			net_complete(s, c);
	}
	net_schedule(s, c);
}
