// SPDX-License-Identifier: GPL-2.0
/*
 * The programs of a group whose members come and go, and virtual synchrony as
 * they see it: one story of messages and views, of which everybody delivers
 * one stretch without a gap.
 */
#include <stdlib.h>

#include "live.h"

static u64 lapp_key(u32 uid, u32 k)
{
	return rng_mix(((u64)uid << 32 | k) + 0x6c697665);
}

static u8 lapp_byte(u64 key, u32 i)
{
	return (u8)(key >> (8 * (i & 7))) + (u8)(i >> 3);
}

/* A program, by the plan of the seed; its node may not be in the group yet. */
struct prog *lapp_new(struct live *l, u32 node)
{
	struct rng r = { .state = l->opts.seed * 977 + 31 * l->nprogs + 5 };
	struct prog *p;

	if (l->nprogs == LIVE_MAX_PROGS)
		return NULL;
	p = &l->progs[l->nprogs];
	memset(p, 0, sizeof(*p));
	p->uid = l->nprogs++;
	p->node = node;
	p->cookie = (u64)l->nodes[node].gen << 32 | p->uid;
	p->flags = rng_chance(&r, 200) && p->uid ? SP_MEMBER_RECEIVER : 0;
	p->nr = -1;
	p->total = rng_chance(&r, 150) ? 0 : rng_range(&r, 1, 40);
	if (rng_chance(&r, 100))
		p->total += rng_below(&r, 100);
	p->total = min(p->total, l->opts.each);
	p->fin = p->total && rng_chance(&r, 200);
	p->gap = rng_chance(&r, 500) ? rng_range(&r, 1, 30) : rng_range(&r, 1, 600);
	p->burst = rng_chance(&r, 300) ? rng_range(&r, 2, 24) : 1;
	p->max_len = rng_chance(&r, 300) ? l->max_len :
		rng_below(&r, l->max_len / 4 + 1);
	p->read_gap = rng_chance(&r, 250) ? rng_range(&r, 50, 2500) :
		rng_range(&r, 1, 40);
	p->state = PROG_ASKING;
	return p;
}

static void lapp_send_later(struct live *l, struct prog *p, u32 delay)
{
	if (p->scheduled)
		return;
	p->scheduled = true;
	live_after(l, delay, LE_SEND, p->uid, 0, 0);
}

static void lapp_read_later(struct live *l, struct prog *p)
{
	if (p->reading || p->stuck || p->state != PROG_MEMBER ||
	    p->cursor == l->nodes[p->node].recorded)
		return;
	p->reading = true;
	live_after(l, rng_range(&l->rng, 1, p->read_gap), LE_READ, p->uid, 0, 0);
}

/* A view has begun in which this program is a member: perhaps its first. */
void lapp_begin(struct lnode *n, struct prog *p)
{
	struct live *l = n->l;
	struct sp_view *v = lnode_view(n);
	struct sp_addr addr = live_addr(n->id);
	int rank = sp_view_find_member(v, &addr, p->cookie);

	if (v->members[rank].lane >= 0 && p->nr < 0) {
		p->nr = v->members[rank].nr;
		lapp_send_later(l, p, rng_range(&l->rng, 1, p->gap));
	}
	if (p->state == PROG_MEMBER || p->state == PROG_DYING)
		return;
	p->cursor = n->core.order.published - 1;
	if (l->opts.broken & LIVE_BREAK_CURSOR)
		p->cursor -= min(p->cursor, 1ull);
	/* It died while it asked. */
	if (p->state == PROG_OUT) {
		p->state = PROG_DYING;
		p->wish = SP_EXITED;
		p->told = 0;
		return;
	}
	p->state = PROG_MEMBER;
	p->number = v->members[rank].uid;
	live_trace(l, "program %u is a member on node %u, lane %d", p->uid, n->id,
		   p->nr);
}

struct sp_tx *lapp_tx(struct live *l, struct prog *p)
{
	return p->nr < 0 ? NULL : l->nodes[p->node].own[p->nr].tx;
}

static u8 *lapp_ring(struct lnode *n, struct prog *p)
{
	const struct sp_lane *lane = sp_own_lane(&n->core, p->nr);

	return n->slab[lane - n->lanes] + n->l->lay.ring_off;
}

static bool lapp_claim(struct live *l, struct prog *p)
{
	struct lnode *n = &l->nodes[p->node];
	u64 key = lapp_key(p->uid, p->nsent);
	u32 len = p->claim_len;
	u64 off = 0;
	u32 first, i;
	u8 *ring;
	int ret;

	ret = sp_tx_space(lapp_tx(l, p), len, &off);
	if (ret == -EAGAIN)
		return false;
	if (ret)
		live_violation(l, "program %u cannot send %u bytes: %d", p->uid,
			       len, ret);
	ring = lapp_ring(n, p);
	first = min(len, l->window - (u32)off);
	lnet_overwritten(l, n->id, ring + off, first);
	lnet_overwritten(l, n->id, ring, len - first);
	for (i = 0; i < len; i++)
		ring[(off + i) & (l->window - 1)] = lapp_byte(key, i);
	return true;
}

/* Some messages, in runs of a few, are for one member of the view alone. */
static u32 lapp_private(struct live *l, const struct prog *p, const struct sp_tx *tx)
{
	u64 draw = rng_mix(lapp_key(p->uid, p->nsent / 4) + l->opts.seed);
	u32 flags = SP_DESC_PRIVATE;
	u32 uid;

	if (draw % 4)
		return 0;
	uid = tx->uid[(draw >> 8) % tx->nmembers];
	if (sp_tx_private(tx, uid))
		live_violation(l, "program %u cannot send to member %u", p->uid, uid);
	if ((draw >> 16) % 4 == p->nsent % 4)
		flags |= SP_DESC_STATE;
	return flags | uid << SP_DESC_UID_SHIFT;
}

static void lapp_commit(struct live *l, struct prog *p)
{
	struct lnode *n = &l->nodes[p->node];
	struct sp_tx *tx = lapp_tx(l, p);
	u32 flags = p->fin && p->nsent + 1 == p->total ? SP_DESC_FIN : 0;

	if (flags)
		p->claim_len = 0;
	else
		flags = lapp_private(l, p, tx);
	lnet_overwritten(l, n->id,
			 (u8 *)&tx->desc[tx->now.count & (tx->depth - 1)],
			 sizeof(*tx->desc));
	live_trace(l, "program %u commits #%u len %u at turn %llu", p->uid,
		   p->nsent, p->claim_len, (unsigned long long)tx->now.round);
	p->nsent++;
	lcheck_sent(l, p, p->claim_len);
	p->claimed = false;
	sp_tx_commit(tx, p->claim_len, flags);
	l->messages++;
	lnode_local(n);
}

void lapp_send(struct live *l, struct prog *p)
{
	struct lnode *n = &l->nodes[p->node];

	if (p->state != PROG_MEMBER || n->state != NODE_IN || n->paused ||
	    !lapp_tx(l, p) || p->nsent == p->total)
		return;
	if (p->locked) {
		lapp_send_later(l, p, 1);
		return;
	}
	if (!p->claimed) {
		p->claimed = true;
		p->blocked = true;
		p->claim_len = rng_below(&l->rng, p->max_len + 1);
	}
	if (p->blocked) {
		if (!lapp_claim(l, p))
			return;
		p->blocked = false;
		if (rng_chance(&l->rng, 200)) {
			lapp_send_later(l, p, rng_range(&l->rng, 1, p->gap));
			return;
		}
	}
	lapp_commit(l, p);
	lapp_send_later(l, p, p->nsent % p->burst ? 1 :
			rng_range(&l->rng, 1, p->gap * p->burst));
}

/* Own lanes have more room, or a node that was away is back. */
void lapp_unblock(struct lnode *n)
{
	u32 i;

	for (i = 0; i < n->l->nprogs; i++) {
		struct prog *p = &n->l->progs[i];

		if (p->node == n->id && p->state == PROG_MEMBER && p->nr >= 0)
			lapp_send_later(n->l, p, 1);
	}
}

void lapp_delivered(struct lnode *n)
{
	const struct sp_order *o = &n->core.order;
	struct live *l = n->l;
	u32 i;

	for (; n->recorded < o->published && !l->violated; n->recorded++)
		lcheck_delivered(n, &o->log[n->recorded & (o->log_size - 1)]);
	for (i = 0; i < l->nprogs; i++)
		if (l->progs[i].node == n->id)
			lapp_read_later(l, &l->progs[i]);
}

/* What a program reads next, as the judge knows it. */
static const struct judge_entry *lapp_entry(struct lnode *n, const struct prog *p)
{
	return judge_entry(n->l->judge, n->id, n->recorded - p->cursor - 1);
}

/* The bytes must still be there when they are read, views later too. */
static void lapp_verify(struct lnode *n, struct prog *reader)
{
	struct live *l = n->l;
	const struct sp_order *o = &n->core.order;
	const struct sp_log *log = &o->log[reader->cursor & (o->log_size - 1)];
	const struct judge_entry *e = lapp_entry(n, reader);
	u32 start = log->pos << SP_UNIT_SHIFT;
	const u8 *ring;
	u64 key;
	u32 i;

	if (log->flags & SP_LOG_EVENT) {
		if (e->prog != JUDGE_NOBODY || e->number != log->pos)
			live_violation(l, "node %u: entry %llu of the log was overwritten",
				       n->id, (unsigned long long)reader->cursor);
		return;
	}
	if (e->prog == JUDGE_NOBODY || log->seq != e->seq || log->len != e->len) {
		live_violation(l, "node %u: entry %llu of the log was overwritten",
			       n->id, (unsigned long long)reader->cursor);
		return;
	}
	if ((log->flags & SP_DESC_PRIVATE) && sp_desc_uid(log->flags) != reader->number)
		return;
	ring = n->slab[log->lane & SP_LOG_SLOT] + l->lay.ring_off;
	key = lapp_key(e->prog, e->number);
	for (i = 0; i < log->len; i++) {
		if (ring[(start + i) & (l->window - 1)] == lapp_byte(key, i))
			continue;
		live_violation(l, "program %u on node %u reads program %u #%u: byte %u of %u is not what was sent",
			       reader->uid, n->id, e->prog, e->number, i,
			       log->len);
		return;
	}
}

/* The first thing that it reads is the view that it came with. */
static void lapp_verify_first(struct lnode *n, struct prog *p)
{
	struct live *l = n->l;
	const struct judge_entry *e = lapp_entry(n, p);
	const struct sp_addr addr = live_addr(n->id);

	if (p->began)
		return;
	p->began = true;
	if (e->prog != JUDGE_NOBODY ||
	    sp_view_find_member(&l->records[e->number]->view, &addr,
					   p->cookie) < 0)
		live_violation(l, "program %u begins to read before it was a member",
			       p->uid);
}

void lapp_read(struct live *l, struct prog *p)
{
	struct lnode *n = &l->nodes[p->node];
	u32 batch = rng_range(&l->rng, 1, 8);

	if (p->state != PROG_MEMBER || n->state != NODE_IN || n->paused ||
	    p->stuck)
		return;
	while (batch-- && p->cursor < n->recorded && !l->violated) {
		lapp_verify(n, p);
		lapp_verify_first(n, p);
		p->cursor++;
	}
	lnode_consumed(n);
	lapp_read_later(l, p);
}

/* It stops reading, or goes on with it. */
void lapp_stop(struct live *l, struct prog *p, bool stop)
{
	p->stuck = stop;
	live_trace(l, "program %u %s reading", p->uid, stop ? "stops" : "goes on");
	if (!stop)
		lapp_read_later(l, p);
}

/* The node is out of the group: so is the program, and it is told why. */
void lapp_end(struct prog *p, int told)
{
	if (p->state == PROG_OUT)
		return;
	p->state = PROG_OUT;
	p->told = told;
}

/* It dies, or wants to go: it does nothing more. */
void lapp_die(struct live *l, struct prog *p, enum sp_reason why)
{
	struct lnode *n = &l->nodes[p->node];

	if (p->state == PROG_ASKING)
		lapp_end(p, -EINTR);
	if (p->state != PROG_MEMBER)
		return;
	live_trace(l, "program %u %s", p->uid, why == SP_LEFT ? "leaves" :
		   why == SP_SLOW ? "is evicted" : "dies");
	p->state = PROG_DYING;
	p->wish = why;
	lnode_kick(n);
}

/* Everything it sent was delivered here, and so was received everywhere. */
bool lapp_drained(struct lnode *n, struct prog *p)
{
	const struct sp_tx *tx = lapp_tx(n->l, p);

	if (n->l->opts.broken & LIVE_BREAK_LEAVE)
		return true;
	return tx && sp_own_lane(&n->core, p->nr)->taken == tx->now.count;
}

