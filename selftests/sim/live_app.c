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
	p->flags |= p->uid & 1 ? SP_MEMBER_STATE : 0;
	p->nr = -1;
	p->total = rng_chance(&r, 150) ? 0 : rng_range(&r, 1, 40);
	if (rng_chance(&r, 100))
		p->total += rng_below(&r, 100);
	p->total = min(p->total, l->opts.each);
	p->gap = rng_chance(&r, 500) ? rng_range(&r, 1, 30) : rng_range(&r, 1, 600);
	p->burst = rng_chance(&r, 300) ? rng_range(&r, 2, 24) : 1;
	p->max_len = rng_chance(&r, 300) ? l->max_len :
		rng_below(&r, l->max_len / 4 + 1);
	p->read_gap = rng_chance(&r, 250) ? rng_range(&r, 50, 2500) :
		rng_range(&r, 1, 40);
	p->sent = live_alloc(l, (p->total + 1) * sizeof(*p->sent));
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
	live_trace(l, "program %u is a member on node %u, lane %d", p->uid, n->id,
		   p->nr);
}

static struct sp_tx *lapp_tx(struct live *l, struct prog *p)
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

	if (p->claim_flags & SP_DESC_OBJECT)
		ret = sp_tx_space_object(lapp_tx(l, p), len);
	else
		ret = sp_tx_space(lapp_tx(l, p), len, &off);
	if (ret == -EAGAIN)
		return false;
	if (ret)
		live_violation(l, "program %u cannot send %u bytes: %d", p->uid,
			       len, ret);
	if (p->claim_flags & SP_DESC_OBJECT)
		return true;
	ring = lapp_ring(n, p);
	first = min(len, l->window - (u32)off);
	lnet_overwritten(l, n->id, ring + off, first);
	lnet_overwritten(l, n->id, ring, len - first);
	for (i = 0; i < len; i++)
		ring[(off + i) & (l->window - 1)] = lapp_byte(key, i);
	return true;
}

static void lapp_commit(struct live *l, struct prog *p)
{
	struct lnode *n = &l->nodes[p->node];
	struct sp_tx *tx = lapp_tx(l, p);
	u32 flags = p->claim_flags;

	if (rng_chance(&l->rng, 100))
		flags |= SP_DESC_STATE | (rng_next(&l->rng) & SP_DESC_LAST) |
			rng_below(&l->rng, SP_UID_MASK + 1) << SP_DESC_UID_SHIFT;
	lnet_overwritten(l, n->id,
			 (u8 *)&tx->desc[tx->now.count & (tx->depth - 1)],
			 sizeof(*tx->desc));
	live_trace(l, "program %u commits #%u len %u at turn %llu", p->uid,
		   p->nsent, p->claim_len, (unsigned long long)tx->now.round);
	p->sent[p->nsent].len = p->claim_len;
	p->sent[p->nsent++].flags = flags;
	p->claimed = false;
	sp_tx_commit(tx, p->claim_len, flags);
	if (flags & SP_DESC_OBJECT)
		lobjects_commit(n, p);
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
		if (!lobjects_next(l, p))
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

static void lapp_tell_story(struct live *l, struct lnode *n,
			    const struct chapter *c)
{
	const struct chapter *was;

	if (n->pos == l->nstory) {
		if (l->nstory == l->story_size) {
			l->story_size = l->story_size ? 2 * l->story_size : 256;
			l->story = realloc(l->story,
					   l->story_size * sizeof(*l->story));
		}
		l->story[l->nstory++] = *c;
		if (c->prog && c->prog->count++ != c->number)
			live_violation(l, "node %u delivers program %u #%u after %u",
				       n->id, c->prog->uid, c->number,
				       c->prog->count - 1);
	}
	was = &l->story[n->pos++];
	if (was->prog == c->prog && was->number == c->number &&
	    was->seq == c->seq && was->len == c->len && was->flags == c->flags)
		return;
	live_violation(l, "node %u delivers %s %u #%u at seq %lld, others %s %u #%u at seq %lld",
		       n->id, c->prog ? "program" : "view",
		       c->prog ? c->prog->uid : 0, c->number, (long long)c->seq,
		       was->prog ? "program" : "view",
		       was->prog ? was->prog->uid : 0, was->number,
		       (long long)was->seq);
}

static void lapp_record(struct lnode *n, const struct sp_log *log)
{
	struct live *l = n->l;
	struct chapter c = { .seq = log->seq };
	struct sp_view *v = lnode_view(n);
	u32 member = log->lane >> SP_LOG_MEMBER_SHIFT;
	u32 slot;

	if (log->flags & SP_LOG_EVENT) {
		c.number = log->pos;
		lapp_tell_story(l, n, &c);
		return;
	}
	slot = log->lane & SP_LOG_SLOT;
	c.prog = n->sender[slot];
	c.number = n->next[slot]++;
	c.len = log->len;
	c.flags = log->flags;
	live_trace(l, "node %u delivers program %u #%u seq %lld", n->id,
		   c.prog->uid, c.number, (long long)c.seq);
	if (c.number >= c.prog->nsent || c.prog->sent[c.number].len != c.len ||
	    c.prog->sent[c.number].flags != c.flags) {
		live_violation(l, "node %u delivers program %u #%u len %u flags %#x, sent were %u",
			       n->id, c.prog->uid, c.number, c.len, c.flags,
			       c.prog->nsent);
		return;
	}
	if (member >= v->nmembers || v->members[member].cookie != c.prog->cookie)
		live_violation(l, "node %u delivers program %u as member %u",
			       n->id, c.prog->uid, member);
	if (c.flags & SP_DESC_OBJECT)
		lobjects_delivered(n, c.prog, log, c.number);
	lapp_tell_story(l, n, &c);
}

void lapp_delivered(struct lnode *n)
{
	const struct sp_order *o = &n->core.order;
	struct live *l = n->l;
	u32 i;

	for (; n->recorded < o->published && !l->violated; n->recorded++)
		lapp_record(n, &o->log[n->recorded & (o->log_size - 1)]);
	for (i = 0; i < l->nprogs; i++)
		if (l->progs[i].node == n->id)
			lapp_read_later(l, &l->progs[i]);
}

/* The bytes must still be there when they are read, views later too. */
static void lapp_verify(struct lnode *n, struct prog *reader)
{
	struct live *l = n->l;
	const struct sp_order *o = &n->core.order;
	const struct sp_log *log = &o->log[reader->cursor & (o->log_size - 1)];
	/* Where this node is in the story, counted back from its end. */
	const struct chapter *c =
		&l->story[n->pos - (n->recorded - reader->cursor)];
	u32 start = log->pos << SP_UNIT_SHIFT;
	const u8 *ring;
	u64 key;
	u32 i;

	if (log->flags & SP_LOG_EVENT) {
		if (c->prog || c->number != log->pos)
			live_violation(l, "node %u: entry %llu of the log was overwritten",
				       n->id, (unsigned long long)reader->cursor);
		return;
	}
	if (!c->prog || log->seq != c->seq || log->len != c->len) {
		live_violation(l, "node %u: entry %llu of the log was overwritten",
			       n->id, (unsigned long long)reader->cursor);
		return;
	}
	if (log->flags & SP_DESC_OBJECT) {
		lobjects_verify(n, c->prog, log);
		return;
	}
	ring = n->slab[log->lane & SP_LOG_SLOT] + l->lay.ring_off;
	key = lapp_key(c->prog->uid, c->number);
	for (i = 0; i < log->len; i++) {
		if (ring[(start + i) & (l->window - 1)] == lapp_byte(key, i))
			continue;
		live_violation(l, "program %u on node %u reads program %u #%u: byte %u of %u is not what was sent",
			       reader->uid, n->id, c->prog->uid, c->number, i,
			       log->len);
		return;
	}
}

/* The first thing that it reads is the view that it came with. */
static void lapp_verify_first(struct lnode *n, struct prog *p)
{
	struct live *l = n->l;
	const struct chapter *c = &l->story[n->pos - (n->recorded - p->cursor)];
	const struct sp_addr addr = live_addr(n->id);

	if (p->began)
		return;
	p->began = true;
	if (c->prog || sp_view_find_member(&l->records[c->number]->view, &addr,
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
	lnode_local(n);
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
	live_trace(l, "program %u %s", p->uid, why == SP_LEFT ? "leaves" : "dies");
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

static struct record *lapp_get_record(struct live *l, u64 view)
{
	if (view >= LIVE_MAX_VIEWS) {
		live_violation(l, "no end of views");
		view = 0;
	}
	if (!l->records[view])
		l->records[view] = live_alloc(l, sizeof(struct record));
	return l->records[view];
}

/* A node has come to a decision: there is only one. */
void lapp_decided(struct lnode *n, const struct sp_proposal *p)
{
	const struct sp_view *v = lnode_view(n);
	struct record *r = lapp_get_record(n->l, v->id + 1);

	live_trace(n->l, "node %u decides on view %llu", n->id,
		   (unsigned long long)v->id + 1);
	if (!r->decided) {
		r->decided = true;
		r->how = *p;
		return;
	}
	if (r->how.njoins != p->njoins ||
	    memcmp(r->how.reason, p->reason, v->nmembers) ||
	    memcmp(r->how.trim, p->trim, v->nlanes * sizeof(p->trim[0])) ||
	    memcmp(r->how.joins, p->joins, p->njoins * sizeof(p->joins[0])))
		live_violation(n->l, "node %u decides on another view %llu than others",
			       n->id, (unsigned long long)v->id + 1);
}

/*
 * Who stays keeps its number, and who comes gets one that nobody had. Who came and
 * went without noticing may ask again, and comes as another one.
 */
static void lapp_check_uids(struct live *l, const struct sp_view *v)
{
	const struct sp_view *old = v->id > 1 ? &l->records[v->id - 1]->view : NULL;
	u32 i, k;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		int was = old ? sp_view_find_member(old, &m->addr, m->cookie) : -1;
		bool bad = was >= 0 ? m->uid != old->members[was].uid :
			m->uid < (old ? old->next_uid : 0);

		for (k = 0; k < i; k++)
			bad |= v->members[k].uid == m->uid;
		if (bad || m->uid >= v->next_uid)
			live_violation(l, "view %llu: member %u has the number %u",
				       (unsigned long long)v->id, i, m->uid);
	}
}

/* It is in a view: the same, with the same bases, at the same place. */
void lapp_installed(struct lnode *n)
{
	struct live *l = n->l;
	struct sp_view *v = lnode_view(n);
	const struct sp_order *o = &n->core.order;
	struct record *r = lapp_get_record(l, v->id);
	bool first = !r->installed;
	struct sp_point at;
	u32 i;

	if (first) {
		r->installed = true;
		r->view = *v;
		r->start = o->start;
		r->pos = v->id == 1 ? 0 : n->pos - 1;
		l->newest = max(l->newest, v->id);
		lapp_check_uids(l, v);
	}
	/* A joiner's stream begins with the event. */
	if (n->recorded == 0) {
		n->pos = r->pos;
		lapp_delivered(n);
	}
	if (n->pos != r->pos + 1 || o->start != r->start ||
	    v->nmembers != r->view.nmembers || v->nlanes != r->view.nlanes ||
	    v->nnodes != r->view.nnodes)
		live_violation(l, "node %u installs view %llu with %u members at seq %lld, place %u; others %u at %lld, %u",
			       n->id, (unsigned long long)v->id, v->nmembers,
			       (long long)o->start, n->pos - 1, r->view.nmembers,
			       (long long)r->start, r->pos);
	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].cookie != r->view.members[i].cookie ||
		    v->members[i].uid != r->view.members[i].uid ||
		    v->members[i].flags != r->view.members[i].flags ||
		    v->members[i].lane != r->view.members[i].lane ||
		    v->members[i].node != r->view.members[i].node ||
		    (v->members[i].lane >= 0 &&
		     v->members[i].nr != r->view.members[i].nr))
			live_violation(l, "node %u installs view %llu with another member %u",
				       n->id, (unsigned long long)v->id, i);
	for (i = 0; i < v->nlanes; i++) {
		sp_lane_point(sp_order_lane(o, i), o->depth, &at);
		if (first)
			r->at[i] = at;
		if (at.round != r->at[i].round || at.count != r->at[i].count ||
		    at.tail != r->at[i].tail)
			live_violation(l, "node %u installs view %llu with lane %u at turn %llu, others at %llu",
				       n->id, (unsigned long long)v->id, i,
				       (unsigned long long)at.round,
				       (unsigned long long)r->at[i].round);
	}
}

/* Programs whose node is in the group to the end. */
static void lapp_check_progs(struct live *l, struct lnode *n)
{
	u32 i;

	for (i = 0; i < l->nprogs; i++) {
		struct prog *p = &l->progs[i];
		const struct sp_tx *tx;

		if (p->node != n->id)
			continue;
		if (p->state == PROG_DYING)
			live_violation(l, "program %u on node %u never left",
				       i, n->id);
		if (p->state != PROG_MEMBER)
			continue;
		if (p->cursor != n->recorded && !p->stuck)
			live_violation(l, "program %u stopped reading", i);
		tx = lapp_tx(l, p);
		if (!tx)
			continue;
		if (p->nsent != p->total && !l->opts.stuck)
			live_violation(l, "program %u stopped after %u of %u messages, %s",
				       i, p->nsent, p->total,
				       p->blocked ? "without room" : "idle");
		if (p->count != p->nsent && !l->opts.stuck)
			live_violation(l, "program %u sent %u messages, %u were delivered",
				       i, p->nsent, p->count);
		if ((tx->freed != tx->now.count || tx->head != tx->now.tail) &&
		    !l->opts.stuck)
			live_violation(l, "program %u did not get all of its room back: %llu of %llu",
				       i, (unsigned long long)tx->freed,
				       (unsigned long long)tx->now.count);
	}
}

static void lapp_check_node(struct live *l, struct lnode *n)
{
	struct sp_view *v = lnode_view(n);
	u32 i;

	if (v->id != l->newest)
		live_violation(l, "node %u is left in view %llu of %llu", n->id,
			       (unsigned long long)v->id,
			       (unsigned long long)l->newest);
	for (i = 0; i < v->nnodes; i++) {
		u32 id = live_id(&v->nodes[i].addr);

		if (l->nodes[id].state != NODE_IN ||
		    lnode_peer_gen(n, id) != l->nodes[id].gen)
			live_violation(l, "node %u rests in a view with node %u, which is gone",
				       n->id, id);
		else if (id != n->id && (!live_pair(l, n->id, id)->up ||
					 n->core.peers[i].cut))
			live_violation(l, "node %u rests in a view with node %u, which it does not reach",
				       n->id, id);
	}
	if (n->core.wedged || sp_agree_own(&n->agree)->suspected)
		live_violation(l, "node %u rests at the end of view %llu", n->id,
			       (unsigned long long)v->id);
	if (n->core.doze.state != SP_ASLEEP)
		live_violation(l, "node %u does not sleep: state %d", n->id,
			       n->core.doze.state);
	if (n->pos != l->nstory)
		live_violation(l, "node %u delivered up to %u of %u", n->id,
			       n->pos, l->nstory);
	lapp_check_progs(l, n);
}

/* Nodes of a view that nothing was ever wrong with. */
static u64 lapp_fine(struct live *l, const struct sp_view *v)
{
	u64 fine = 0;
	u32 i;

	for (i = 0; i < v->nnodes; i++)
		if (!l->nodes[live_id(&v->nodes[i].addr)].blame)
			fine |= 1ull << i;
	return fine;
}

/*
 * Who was always there is out only when it wanted to, or when those like it are
 * no quorum of the view it was left in, or of one that followed.
 */
static void lapp_check_out(struct live *l, struct lnode *n)
{
	u64 id;

	if (n->blame || !n->why)
		return;
	for (id = lnode_view(n)->id; id <= l->newest; id++) {
		const struct sp_view *v = &l->records[id]->view;

		if (!sp_view_quorum(v, lapp_fine(l, v)))
			return;
	}
	live_violation(l, "node %u is out, although a quorum was always there",
		       n->id);
}

/* Nothing moves any more: is that how it should be? */
void lapp_check(struct live *l)
{
	u32 in = 0;
	u32 i;

	for (i = 0; i < l->nnodes && !l->violated; i++) {
		struct lnode *n = &l->nodes[i];

		if (n->state == NODE_IN) {
			lapp_check_node(l, n);
			in++;
		}
		if (n->state == NODE_OUT)
			lapp_check_out(l, n);
	}
	for (i = 0; i < l->nprogs && !l->violated; i++) {
		const struct prog *p = &l->progs[i];

		/* It has left in order: nothing that it sent is lost. */
		if (p->state == PROG_OUT && !p->told && p->count != p->nsent)
			live_violation(l, "program %u sent %u messages and left, %u were delivered",
				       i, p->nsent, p->count);
	}
	lobjects_end(l);
	if (l->opts.survive && in != l->opts.survive)
		live_violation(l, "%u nodes are left, not %u", in, l->opts.survive);
}
