// SPDX-License-Identifier: GPL-2.0
/*
 * Large objects of a group whose members come and go: what rdmc.c and objects.c
 * are in the kernel, without a byte.
 *
 * An object that was announced to a node in a view is on its way there, in that
 * view, until it comes from its sender or from a node that has it. The wedge
 * ends that; in the next view it begins anew at the nodes that lack it.
 */
#include <stdlib.h>

#include "live.h"

#define LIVE_EVER	100000000u	/* who polls meanwhile finds no rest */

/* In a third of the runs, or as the case wants it. */
void lobjects_make(struct live *l)
{
	struct rng *r = &l->object_rng;
	bool some;

	/* Of its own, so that the rest of the run stays what it is. */
	r->state = rng_mix(l->opts.seed + 0x6f626a);
	some = rng_chance(r, 333) || l->opts.objects;
	if (!some || (l->opts.faults && !l->opts.objects))
		return;
	l->max_object = rng_chance(r, 300) ? rng_range(r, 1, 40) :
		rng_range(r, 1, 1u << 24);
	l->objects = rng_range(r, 1, 600);
	l->object_gap = rng_chance(r, 400) ? rng_range(r, 1, 40) :
		rng_range(r, 1, 2 * l->suspect);
	l->object_long = rng_chance(r, 150) ? rng_below(r, 60) : 0;
	if (!l->opts.objects)
		return;
	l->objects = l->opts.objects;
	l->object_gap = l->opts.object_gap;
	l->object_long = 0;
}

/* The next message of a program: is it one, and how is it to be spread. */
bool lobjects_next(struct live *l, struct prog *p)
{
	struct rng *r = &l->object_rng;
	u32 n = LIVE_MAX_NODES;

	p->claim_flags = 0;
	if (!l->max_object || !rng_chance(r, l->objects))
		return false;
	p->claim_len = rng_chance(r, 500) ? rng_range(r, 1, l->max_object) :
		l->max_object / 16 + 1;
	p->claim_flags = SP_DESC_OBJECT |
		rng_below(r, SP_SCHEDULE_HYBRID + 1) << SP_DESC_KIND_SHIFT;
	p->sent[p->nsent].here = live_alloc(l, n * sizeof(u64));
	p->sent[p->nsent].asked = live_alloc(l, n * sizeof(u64));
	return true;
}

/* It was committed: all of it is at its sender's node, from this view on. */
void lobjects_commit(struct lnode *n, struct prog *p)
{
	struct lsent *sent = &p->sent[p->nsent - 1];

	sent->here[n->id] |= 1ull << n->gen;
	sent->view = lnode_view(n)->id;
}

/* Does a node have it, in the life that a view speaks of? */
static bool lobject_here(const struct lsent *sent, u32 id, u32 gen)
{
	return sent->here[id] >> gen & 1;
}

/* In which life and view a node was told of it last. */
static u64 lobject_key(struct lnode *n)
{
	return (u64)n->gen << 32 | lnode_view(n)->id;
}

static void lobject_begin(struct lnode *n, struct prog *p, u64 count)
{
	struct lsent *sent = &p->sent[count];
	struct live *l = n->l;
	struct move *m;
	u32 delay;

	if (sent->asked[n->id] == lobject_key(n) ||
	    lobject_here(sent, n->id, n->gen))
		return;
	if (l->nmoves == l->moves_size) {
		l->moves_size = l->moves_size ? 2 * l->moves_size : 64;
		l->moves = realloc(l->moves, l->moves_size * sizeof(*m));
	}
	m = &l->moves[l->nmoves];
	m->done = false;
	m->node = n;
	m->prog = p;
	m->count = count;
	m->key = lobject_key(n);
	m->again = sent->asked[n->id] >> 32 == n->gen;
	sent->asked[n->id] = m->key;
	delay = rng_chance(&l->object_rng, l->object_long) ? LIVE_EVER :
		rng_range(&l->object_rng, 1, l->object_gap);
	live_trace(l, "node %u waits for program %u #%llu, for %u%s", n->id,
		   p->uid, (unsigned long long)count, delay,
		   m->again ? ", again" : "");
	live_after(l, delay, LE_OBJECT, l->nmoves++, 0, 0);
}

static bool lobject_reaches(struct lnode *n, struct lnode *from)
{
	const struct lpair *pair = live_pair(n->l, n->id, from->id);

	return from->state == NODE_IN && !from->paused && pair->up &&
		!pair->blocked && !from->core.wedged &&
		lnode_view(from)->id == lnode_view(n)->id &&
		!lnode_suspects(n, from->id) && !lnode_suspects(from, n->id);
}

/* The sending side of a program's lane, while it has one on this node. */
static const struct sp_tx *lobject_tx(const struct lnode *n, const struct prog *p)
{
	return p->node == n->id && n->progs[p->nr] == p ?
		n->own[p->nr].tx : NULL;
}

/* Its sender keeps it for as long as it may have to be sent. */
static void lobject_check_source(struct lnode *n, struct move *m)
{
	struct lnode *from = &n->l->nodes[m->prog->node];
	const struct sp_tx *tx = lobject_tx(from, m->prog);

	if (tx && tx->freed > m->count)
		live_violation(n->l, "program %u gives #%llu back, which node %u lacks",
			       m->prog->uid, (unsigned long long)m->count, n->id);
}

/* Whoever has it may hand it on, if it is a node of the same view. */
static bool lobject_source(struct lnode *n, struct move *m)
{
	const struct lsent *sent = &m->prog->sent[m->count];
	struct live *l = n->l;
	u32 i;

	for (i = 0; i < l->nnodes; i++) {
		struct lnode *from = &l->nodes[i];

		if (i == n->id || !lobject_here(sent, i, from->gen) ||
		    !lobject_reaches(n, from))
			continue;
		if (i == m->prog->node) {
			if (sent->dropped)
				continue;
			lobject_check_source(n, m);
		}
		return true;
	}
	return false;
}

/* It has come, or its transfer has ended, or goes on. */
void lobject_arrive(struct live *l, u32 move)
{
	struct move *m = &l->moves[move];
	struct lsent *sent = &m->prog->sent[m->count];
	struct lnode *n = m->node;

	if (m->done)
		return;
	if (n->state != NODE_IN || lobject_key(n) != m->key || n->core.wedged) {
		m->done = true;
		l->saw |= LIVE_SAW_ABORT;
		return;
	}
	if (n->paused || !lobject_source(n, m)) {
		live_after(l, rng_range(&l->object_rng, 50, l->suspect / 4),
			   LE_OBJECT, move, 0, 0);
		return;
	}
	m->done = true;
	sent->here[n->id] |= 1ull << n->gen;
	if (m->again)
		l->saw |= LIVE_SAW_AGAIN;
	if (sent->view < n->first)
		l->saw |= LIVE_SAW_JOINER;
	live_trace(l, "node %u has program %u #%llu", n->id, m->prog->uid,
		   (unsigned long long)m->count);
	lnode_kick(n);
}

/* Some object, perhaps, in the middle of a pass of this node. */
void lobject_amid(struct live *l, struct lnode *n)
{
	u32 i;

	if (!l->nmoves || !rng_chance(&l->object_rng, 300))
		return;
	i = rng_below(&l->object_rng, l->nmoves);
	if (l->moves[i].node == n && !l->opts.objects)
		lobject_arrive(l, i);
}

/* Those of a lane that were announced, and were not received. */
static void lobjects_begin(struct lnode *n, u32 rank)
{
	const struct sp_order *o = &n->core.order;
	const struct sp_lane *lane = sp_order_lane(o, rank);
	u64 i;

	for (i = lane->now.count; i != lane->seen.count; i++)
		if (lane->desc[i & (o->depth - 1)].flags & SP_DESC_OBJECT)
			lobject_begin(n, n->sender[o->slot[rank]], i);
}

/* sp_shell_ops.object_new */
void lop_object_new(struct sp_core *c, u32 rank)
{
	lobjects_begin(lnode_of(c), rank);
}

/* sp_shell_ops.object_here */
bool lop_object_here(struct sp_core *c, u32 rank, u64 count)
{
	struct lnode *n = lnode_of(c);
	struct prog *p = n->sender[c->order.slot[rank]];
	const struct lsent *sent = &p->sent[count];
	bool here;

	lnode_interrupted(n);
	if (count >= p->nsent || !(sent->flags & SP_DESC_OBJECT)) {
		live_violation(n->l, "node %u looks for program %u #%llu, which is no object",
			       n->id, p->uid, (unsigned long long)count);
		return false;
	}
	here = lobject_here(sent, n->id, n->gen);
	if (!here && sent->asked[n->id] != lobject_key(n) &&
	    !(n->l->opts.broken & LIVE_BREAK_OBJECTS_AGAIN))
		live_violation(n->l, "node %u looks for program %u #%llu, of which it was not told",
			       n->id, p->uid, (unsigned long long)count);
	return here;
}

/* The view ends here. The sender keeps what it sent, unless it breaks the rule. */
void lobjects_wedged(struct lnode *n)
{
	struct live *l = n->l;
	u32 i, k;

	if (!(l->opts.broken & LIVE_BREAK_OBJECTS_KEEP))
		return;
	for (i = 0; i < l->nprogs; i++)
		for (k = 0; l->progs[i].node == n->id && k < l->progs[i].nsent; k++)
			l->progs[i].sent[k].dropped = true;
}

/* What was not delivered in the view before begins anew. */
void lobjects_installed(struct lnode *n)
{
	const struct sp_order *o = &n->core.order;
	u32 i;

	if (n->l->opts.broken & LIVE_BREAK_OBJECTS_AGAIN)
		return;
	for (i = 0; i < o->nlanes; i++)
		if (sp_order_lane(o, i)->node != o->self)
			lobjects_begin(n, i);
}

/* What is outstanding is counted as it is, and keeps within its limits. */
static void lobjects_check_limits(struct lnode *n, u32 rank)
{
	const struct sp_order *o = &n->core.order;
	const struct sp_lane *lane = sp_order_lane(o, rank);
	bool own = lane->node == o->self;
	const struct sp_tx *tx = own ? n->own[lane->lane].tx : NULL;
	u64 at = own ? tx->freed : lane->freed;
	u64 to = own ? tx->now.count : lane->seen.count;
	u64 bytes = 0;
	u32 count = 0;

	for (; at != to; at++) {
		const struct sp_desc *d = &lane->desc[at & (o->depth - 1)];

		if (!(d->flags & SP_DESC_OBJECT))
			continue;
		count++;
		bytes += d->len;
	}
	if (count != (own ? tx->objects : lane->objects) ||
	    bytes != (own ? tx->object_bytes : lane->object_bytes) ||
	    count > 16 || bytes > 2ull * n->l->max_object)
		live_violation(n->l, "node %u counts %u objects of program %u, there are %u with %llu bytes",
			       n->id, own ? tx->objects : lane->objects,
			       n->sender[o->slot[rank]]->uid, count,
			       (unsigned long long)bytes);
}

/* Nulls are owed for what was announced, whether all of it is here or not. */
static void lobjects_check_nulls(struct lnode *n, u32 rank)
{
	const struct sp_order *o = &n->core.order;
	const struct sp_lane *own = sp_order_lane(o, rank);
	u64 turn = n->own[own->lane].now.round - own->base;
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);
		u64 said = lane->seen.round - lane->base;

		if (i == rank || !said)
			continue;
		if (turn < (rank < i ? said : said - 1))
			live_violation(n->l, "node %u rests with lane %u at turn %llu, lane %u is at %llu",
				       n->id, rank, (unsigned long long)turn, i,
				       (unsigned long long)said);
		if (turn > lane->now.round - lane->base)
			n->l->saw |= LIVE_SAW_NULLS;
	}
}

/* After each pass. */
void lobjects_check(struct lnode *n)
{
	const struct sp_order *o = &n->core.order;
	u32 i;

	if (!n->l->max_object || n->core.wedged)
		return;
	for (i = 0; i < o->nlanes && !n->l->violated; i++) {
		lobjects_check_limits(n, i);
		if (sp_order_lane(o, i)->node == o->self &&
		    n->core.doze.state == SP_ASLEEP)
			lobjects_check_nulls(n, i);
	}
}

/*
 * An object enters the log: all of it is at every node of the view by then, or at
 * the end of the view at every node that goes on.
 */
void lobjects_delivered(struct lnode *n, struct prog *p, const struct sp_log *log,
			u32 number)
{
	const struct lsent *sent = &p->sent[number];
	const struct sp_view *v = lnode_view(n);
	const struct sp_addr addr = live_addr(p->node);
	u32 i;

	if (log->pos != number)
		live_violation(n->l, "node %u delivers program %u #%u as %u",
			       n->id, p->uid, number, log->pos);
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		u32 id = live_id(&m->addr);

		if (n->next_view && !sp_view_stayed(n->next_view, v, &m->addr))
			continue;
		if (!lobject_here(sent, id, m->cookie >> 32))
			live_violation(n->l, "node %u delivers program %u #%u, which node %u lacks",
				       n->id, p->uid, number, id);
	}
	if (n->next_view)
		n->l->saw |= sp_view_stayed(n->next_view, v, &addr) ?
			LIVE_SAW_TRIM : LIVE_SAW_DEAD;
	else if (sent->view != v->id)
		n->l->saw |= LIVE_SAW_LATER;
}

/* It is still there when it is read. */
void lobjects_verify(struct lnode *n, struct prog *p, const struct sp_log *log)
{
	u32 slot = log->lane & SP_LOG_SLOT;
	const struct sp_tx *tx = lobject_tx(n, p);

	if (n->lanes[slot].freed > log->pos || (tx && tx->freed > log->pos) ||
	    !lobject_here(&p->sent[log->pos], n->id, n->gen))
		live_violation(n->l, "node %u reads program %u #%u, which is not there",
			       n->id, p->uid, log->pos);
}

/* How did it end for what was announced, and was never delivered. */
static void lobject_lost(struct live *l, const struct lsent *sent)
{
	bool some = false, lacks = false;
	u32 i;

	for (i = 0; i < l->nnodes; i++) {
		struct lnode *n = &l->nodes[i];

		if (n->state != NODE_IN || sent->asked[i] >> 32 != n->gen)
			continue;
		some |= lobject_here(sent, i, n->gen);
		lacks |= !lobject_here(sent, i, n->gen);
	}
	if (lacks)
		l->saw |= LIVE_SAW_LOST;
	if (lacks && some)
		l->saw |= LIVE_SAW_SPLIT;
}

/* At the end of the run. */
void lobjects_end(struct live *l)
{
	u32 i, k;

	for (i = 0; i < l->nprogs; i++) {
		const struct prog *p = &l->progs[i];

		for (k = p->count; k < p->nsent; k++)
			if (p->sent[k].flags & SP_DESC_OBJECT)
				lobject_lost(l, &p->sent[k]);
		if (p->state == PROG_OUT && !p->told && p->wish && p->nsent &&
		    p->count == p->nsent &&
		    (p->sent[p->nsent - 1].flags & SP_DESC_OBJECT))
			l->saw |= LIVE_SAW_LAST;
	}
}
