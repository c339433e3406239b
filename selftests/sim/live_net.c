// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that break and come back. Each is two directions; in each, writes
 * land as in net.c, and messages arrive after all that was posted before them.
 *
 * What was under way when a connection broke is gone, and nodes are told; or, with
 * live_opts.replay, the next one carries it again and nobody is told. Writes then
 * land once more, from the first one that had not completed on and in order;
 * messages that had arrived do not.
 */
#include <stdlib.h>

#include "live.h"

static struct pkt *ldir_at(const struct ldir *d, u64 n)
{
	return &d->ring[n & (d->size - 1)];
}

static void ldir_reset(struct live *l, struct ldir *d)
{
	d->posted = 0;
	d->built = 0;
	d->landed = 0;
	d->completed = 0;
	d->said = 0;
	d->told = 0;
	d->heard = 0;
	d->credits = l->credits;
	d->owed = 0;
	d->npieces = 0;
	d->piece = 0;
	d->dead = false;
}

void lnet_init(struct live *l)
{
	u32 i, k;

	l->pairs = calloc(l->nnodes * l->nnodes, sizeof(*l->pairs));
	l->dirs = calloc(l->nnodes * l->nnodes, sizeof(*l->dirs));
	for (i = 0; i < l->nnodes; i++) {
		for (k = 0; k < l->nnodes; k++) {
			struct ldir *d = live_dir(l, i, k);

			d->from = i;
			d->to = k;
			ldir_reset(l, d);
			if (i != k) {
				d->size = 64;
				d->ring = calloc(d->size, sizeof(*d->ring));
			}
		}
	}
}

void lnet_free(struct live *l)
{
	u32 i, k;

	for (i = 0; i < l->nnodes * l->nnodes; i++) {
		for (k = 0; k < l->dirs[i].size; k++)
			free(l->dirs[i].ring[k].data);
		free(l->dirs[i].ring);
	}
	for (i = 0; i < l->nghosts; i++)
		free(l->ghosts[i].data);
	free(l->ghosts);
	free(l->pairs);
	free(l->dirs);
}

/*
 * What has left may land until the receiver knows that the connection is gone.
 * A completion is an answer: it travels the other way.
 */
static bool ldir_lands(struct live *l, const struct ldir *d)
{
	const struct lpair *p = live_pair(l, d->from, d->to);

	return d->landed < d->built && !p->blocked[d->from > d->to] &&
	       (p->up || !p->noticed[d->to > d->from]);
}

/* Of a connection that the next one follows a side goes on until it knows. */
static bool ldir_up(struct live *l, const struct ldir *d)
{
	const struct lpair *p = live_pair(l, d->from, d->to);

	return p->up || (p->carry && !p->noticed[d->from > d->to]);
}

static bool ldir_completes(struct live *l, const struct ldir *d)
{
	const struct lpair *p = live_pair(l, d->from, d->to);

	return d->completed < d->landed && !p->blocked[d->to > d->from] &&
	       ldir_up(l, d) && !d->dead;
}

static bool ldir_moves(struct live *l, const struct ldir *d)
{
	return (d->built < d->posted && ldir_up(l, d)) ||
	       ldir_lands(l, d) || ldir_completes(l, d);
}

void lnet_go(struct live *l, struct ldir *d)
{
	u32 delay;

	if (d->scheduled || !ldir_moves(l, d))
		return;
	delay = rng_range(&l->rng, 1, l->weather.net_gap);
	if (rng_chance(&l->rng, l->weather.stall))
		delay += rng_below(&l->rng, l->weather.stall_len);
	d->scheduled = true;
	live_after(l, delay, LE_NET, d->from, d->to, 0);
}

/* Messages have their own part of the send queue. */
bool lnet_room(const struct live *l, const struct ldir *d, u32 n)
{
	return d->posted - d->completed + n <= l->slots;
}

/* Does it arrive as a message, which the receiver counts? */
static bool ldir_told(struct live *l, const struct ldir *d, const struct pkt *p)
{
	return p->kind > PKT_ROW || (p->kind == PKT_ROW && !l->nodes[d->to].polled);
}

static void ldir_grow(struct ldir *d)
{
	struct pkt *ring = calloc(2 * d->size, sizeof(*ring));
	u64 i;

	for (i = d->completed; i < d->completed + d->size; i++)
		ring[i & (2 * d->size - 1)] = *ldir_at(d, i);
	free(d->ring);
	d->ring = ring;
	d->size *= 2;
}

static struct pkt *ldir_post(struct live *l, struct ldir *d, enum pkt_kind kind)
{
	struct pkt *p;

	if (d->posted - d->completed == d->size)
		ldir_grow(d);
	p = ldir_at(d, d->posted++);
	p->kind = kind;
	p->number = d->said;
	d->said += ldir_told(l, d, p);
	p->built = false;
	p->landed = false;
	return p;
}

u64 lnet_post(struct live *l, struct ldir *d, enum pkt_kind kind, u8 *to,
	      const void *src, u32 len, bool copy)
{
	struct pkt *p = ldir_post(l, d, kind);

	p->to = to;
	p->len = len;
	p->src = copy ? NULL : src;
	if (p->room < len) {
		p->room = len;
		p->data = realloc(p->data, len);
	}
	if (copy && len)
		memcpy(p->data, src, len);
	if (d->dead) {
		d->posted--;
		return d->posted + 1;
	}
	lnet_go(l, d);
	return d->posted;
}

void lnet_send(struct live *l, u32 from, u32 to, enum msg_kind kind, u64 arg,
	       const void *body)
{
	const struct lpair *pair = live_pair(l, from, to);
	struct ldir *d = live_dir(l, from, to);
	struct pkt *p;

	if (d->dead || !(pair->up || pair->carry))
		return;
	p = ldir_post(l, d, PKT_MSG);
	p->to = NULL;
	p->src = NULL;
	p->len = 0;
	p->msg.kind = kind;
	p->msg.from = from;
	p->msg.inc = pair->inc;
	p->msg.arg = arg;
	p->msg.body = body;
	live_trace(l, "%u->%u sends message %d as #%llu", from, to, kind,
		   (unsigned long long)d->posted);
	lnet_go(l, d);
}

static void ldir_advance(struct ldir *d)
{
	while (d->landed < d->built && ldir_at(d, d->landed)->landed)
		d->landed++;
}

static void ldir_resend(struct live *l, struct ldir *d, struct pkt *p)
{
	if (p->src && memcmp(p->data, p->src, p->len))
		live_violation(l, "node %u changed the source of a request to node %u before it completed",
			       d->from, d->to);
}

static void ldir_build(struct live *l, struct ldir *d)
{
	struct pkt *p = ldir_at(d, d->built++);

	if (p->built)
		ldir_resend(l, d, p);
	p->built = true;
	if (p->src)
		memcpy(p->data, p->src, p->len);
	ldir_advance(d);
}

/* A program is about to overwrite @len bytes: does a request still read them? */
void lnet_overwritten(struct live *l, u32 node, const u8 *at, u32 len)
{
	u32 i;
	u64 k;

	for (i = 0; i < l->nnodes; i++) {
		struct ldir *d = live_dir(l, node, i);

		for (k = d->completed; k < d->posted; k++) {
			const struct pkt *p = ldir_at(d, k);

			if (!p->src || at >= p->src + p->len || p->src >= at + len)
				continue;
			live_violation(l, "node %u overwrites the source of a request to node %u before it completed",
				       node, i);
			return;
		}
	}
}

static void ldir_piece(struct ldir *d, u32 from, u32 to, u32 each)
{
	while (from < to && d->npieces < SIM_MAX_PIECES) {
		u32 len = min(each, to - from);

		if (d->npieces == SIM_MAX_PIECES - 1)
			len = to - from;
		d->pieces[d->npieces].off = from;
		d->pieces[d->npieces++].len = len;
		from += len;
	}
}

/* Whole, or in pieces, a row torn amid one cell. */
static void ldir_tear(struct live *l, struct ldir *d, const struct pkt *p)
{
	u32 cell = sizeof(struct sp_cell);
	u32 at, i;

	d->piece = 0;
	d->npieces = 0;
	if (p->len < 2 || !rng_chance(&l->rng, l->weather.tear)) {
		ldir_piece(d, 0, p->len, p->len);
		return;
	}
	if (p->kind == PKT_ROW) {
		at = cell * rng_below(&l->rng, p->len / cell);
		ldir_piece(d, 0, at, at);
		ldir_piece(d, at, at + cell, 4u << rng_below(&l->rng, 2));
		ldir_piece(d, at + cell, p->len, p->len);
	} else {
		at = rng_range(&l->rng, 1, p->len - 1);
		ldir_piece(d, 0, at, at);
		ldir_piece(d, at, p->len, rng_range(&l->rng, 1, p->len));
	}
	for (i = d->npieces; i > 1; i--) {
		u32 j = rng_below(&l->rng, i);
		struct net_piece t = d->pieces[i - 1];

		d->pieces[i - 1] = d->pieces[j];
		d->pieces[j] = t;
	}
}

static void ldir_landed(struct live *l, struct ldir *d, struct pkt *p)
{
	struct lnode *to = &l->nodes[d->to];

	p->landed = true;
	if (ldir_told(l, d, p) && p->number != d->heard++)
		live_violation(l, "node %u hears message %llu of node %u after %llu",
			       d->to, (unsigned long long)p->number, d->from,
			       (unsigned long long)d->heard - 1);
	ldir_advance(d);
	if (p->kind == PKT_MSG) {
		lnode_receive(to, &p->msg);
	} else if (p->kind == PKT_WAKE) {
		lnode_kick(to);
	} else if (p->kind == PKT_ROW && !to->polled) {
		d->owed++;
		if (!d->credit_scheduled) {
			d->credit_scheduled = true;
			live_after(l, rng_range(&l->rng, 1, 4 * l->weather.net_gap),
				   LE_CREDIT, d->from, d->to, 0);
		}
		lnode_kick(to);
	}
}

void lnet_credit(struct live *l, struct ldir *d)
{
	d->credit_scheduled = false;
	if (live_pair(l, d->from, d->to)->carry)
		return;
	d->credits += d->owed;
	d->owed = 0;
}

static void pkt_copy(const struct pkt *p, u32 off, u32 len)
{
	if (p->to && len)
		memcpy(p->to + off, p->data + off, len);
}

static void ldir_land_in_order(struct live *l, struct ldir *d)
{
	struct pkt *p = ldir_at(d, d->landed);

	if (!d->npieces) {
		if (!d->dead && rng_chance(&l->rng, l->weather.resend)) {
			ldir_resend(l, d, p);
			if (p->src)
				memcpy(p->data, p->src, p->len);
			return;
		}
		ldir_tear(l, d, p);
	}
	if (d->piece < d->npieces) {
		pkt_copy(p, d->pieces[d->piece].off, d->pieces[d->piece].len);
		d->piece++;
	}
	if (d->piece >= d->npieces) {
		d->npieces = 0;
		ldir_landed(l, d, p);
	}
}

static void ldir_land_any(struct live *l, struct ldir *d)
{
	u64 n = d->landed + rng_below(&l->rng, d->built - d->landed);
	struct pkt *p = ldir_at(d, n);
	u64 i;

	if (p->landed)
		return;
	if (p->kind >= PKT_ROW) {
		for (i = d->landed; i < n; i++) {
			struct pkt *before = ldir_at(d, i);

			if (before->landed)
				continue;
			pkt_copy(before, 0, before->len);
			ldir_landed(l, d, before);
		}
	}
	pkt_copy(p, 0, p->len);
	ldir_landed(l, d, p);
}

static void ldir_complete(struct live *l, struct ldir *d)
{
	struct pkt *p = ldir_at(d, d->completed);

	if (rng_chance(&l->rng, l->weather.resend)) {
		ldir_resend(l, d, p);
		return;
	}
	d->completed++;
	d->told += ldir_told(l, d, p);
	lnode_completed(&l->nodes[d->from]);
}

void lnet_step(struct live *l, struct ldir *d)
{
	u32 n = rng_range(&l->rng, 1, 6);

	while (n-- && ldir_moves(l, d)) {
		u32 what = rng_below(&l->rng, 3);

		if (what == 0 && d->built < d->posted && ldir_up(l, d))
			ldir_build(l, d);
		else if (what == 1 && ldir_lands(l, d) &&
			 !l->nodes[d->to].polled)
			ldir_land_any(l, d);
		else if (what == 1 && ldir_lands(l, d))
			ldir_land_in_order(l, d);
		else if (what == 2 && ldir_completes(l, d))
			ldir_complete(l, d);
	}
	lnet_go(l, d);
}

/* The sender gives up: what has left may still arrive, and is all. */
void lnet_flush(struct live *l, struct ldir *d)
{
	u64 k;

	(void)l;
	for (k = d->completed; k < d->built; k++)
		ldir_at(d, k)->src = NULL;
	d->posted = d->built;
	d->dead = true;
}

/* What had left may come out of the network much later: see the rule. */
static void ldir_haunt(struct live *l, struct ldir *d)
{
	u64 k;

	for (k = d->landed; k < d->built; k++) {
		struct pkt *p = ldir_at(d, k);
		struct pkt *g;

		if (p->landed || !p->to || !p->len)
			continue;
		l->ghosts = realloc(l->ghosts,
				    (l->nghosts + 1) * sizeof(*l->ghosts));
		g = &l->ghosts[l->nghosts++];
		*g = *p;
		g->data = malloc(p->len);
		memcpy(g->data, p->data, p->len);
		live_after(l, rng_range(&l->rng, 100, 4000), LE_GHOST,
			   l->nghosts - 1, 0, 0);
	}
}

void lnet_ghost(struct live *l, u32 i)
{
	pkt_copy(&l->ghosts[i], 0, l->ghosts[i].len);
}

/* Both sides learn of it, each in its time. */
static void lnet_down(struct live *l, u32 a, u32 b, bool carry)
{
	struct lpair *p = live_pair(l, a, b);
	u32 i;

	if (!p->up)
		return;
	live_trace(l, "%u-%u breaks", a, b);
	p->up = false;
	p->carry = carry;
	for (i = 0; i < 2; i++) {
		struct ldir *d = i ? live_dir(l, a, b) : live_dir(l, b, a);
		u32 side = i ? a : b;

		p->noticed[side > d->to] = false;
		if (l->opts.broken & LIVE_BREAK_OLD_QP)
			ldir_haunt(l, d);
		live_after(l, rng_range(&l->rng, 1, 10 * l->weather.net_gap),
			   LE_NOTICE, side, i ? b : a, p->inc);
	}
}

void lnet_break(struct live *l, u32 a, u32 b)
{
	lnet_down(l, a, b, l->opts.replay);
}

/* Somebody has no use for it: nothing carries on. */
void lnet_close(struct live *l, u32 a, u32 b)
{
	live_pair(l, a, b)->carry = false;
	lnet_down(l, a, b, false);
}

/* Start again from the first request that has not completed. */
static void ldir_again(struct live *l, struct ldir *d)
{
	u64 n = d->told;
	u64 k;

	for (k = d->completed; k < d->posted; k++) {
		struct pkt *p = ldir_at(d, k);

		p->landed = ldir_told(l, d, p) && n++ < d->heard &&
			    !(l->opts.broken & LIVE_BREAK_TWICE);
		if (k < d->built && (l->opts.broken & LIVE_BREAK_GAP))
			p->landed = true;
	}
	d->built = d->completed;
	d->landed = d->completed;
	d->npieces = 0;
	d->piece = 0;
	if (d->owed && !d->credit_scheduled) {
		d->credit_scheduled = true;
		live_after(l, rng_range(&l->rng, 1, 4 * l->weather.net_gap),
			   LE_CREDIT, d->from, d->to, 0);
	}
}

/* A new connection, which carries on where the last one broke. */
void lnet_carry(struct live *l, u32 a, u32 b)
{
	struct lpair *p = live_pair(l, a, b);
	struct ldir *to = live_dir(l, a, b);
	struct ldir *back = live_dir(l, b, a);

	live_trace(l, "%u-%u carries on: %llu and %llu again", a, b,
		   (unsigned long long)(to->built - to->completed),
		   (unsigned long long)(back->built - back->completed));
	p->up = true;
	p->carry = false;
	p->noticed[0] = false;
	p->noticed[1] = false;
	ldir_again(l, to);
	ldir_again(l, back);
	lnet_go(l, to);
	lnet_go(l, back);
}

/* Nobody waits for a connection any more: nothing is carried on. */
void lnet_give_up(struct live *l, u32 a, u32 b)
{
	live_pair(l, a, b)->carry = false;
	lnet_flush(l, live_dir(l, a, b));
	lnet_flush(l, live_dir(l, b, a));
	lnode_kick(&l->nodes[a]);
	lnode_kick(&l->nodes[b]);
}

/* A new connection, with nothing on it. The caller sees to what is said. */
void lnet_connect(struct live *l, u32 a, u32 b)
{
	struct lpair *p = live_pair(l, a, b);

	p->inc++;
	p->up = true;
	p->carry = false;
	p->gen[a > b] = l->nodes[a].gen;
	p->gen[b > a] = l->nodes[b].gen;
	p->noticed[0] = false;
	p->noticed[1] = false;
	ldir_reset(l, live_dir(l, a, b));
	ldir_reset(l, live_dir(l, b, a));
	live_trace(l, "%u-%u connected", a, b);
}
