// SPDX-License-Identifier: GPL-2.0
/*
 * Large objects of a group whose members stay: what rdmc.c and objects.c are in
 * the kernel, without a byte. An object that was announced to a node is all
 * there some time later, before or after others.
 */
#include <stdlib.h>

#include "sim.h"

#define SIM_EVER	100000000u	/* who polls meanwhile finds no rest */

/*
 * Objects in a third of the runs: of some lanes hardly two fit, of others more
 * than a lane may have.
 */
void objects_make(struct sim *s)
{
	struct rng *r = &s->object_rng;
	bool some;
	u32 i;

	/* Of its own, so that the rest of the run stays what it is. */
	r->state = s->rng.state ^ 0x6f626aull << 32;
	some = rng_chance(r, 333) || (s->opts.force & SIM_FORCE_OBJECTS);
	if (!some || (s->opts.force & SIM_FORCE_OPT))
		return;
	s->max_object = rng_chance(r, 300) ? rng_range(r, 1, 40) :
		rng_range(r, 1, 1u << 24);
	s->object_gap = rng_chance(r, 500) ? rng_range(r, 1, 40) :
		rng_range(r, 1, 5000);
	s->object_long = rng_chance(r, 300) ? rng_below(r, 100) : 0;
	for (i = 0; i < s->nlanes; i++) {
		struct plan *p = &s->plans[i];

		p->objects = rng_chance(r, 300) ? 1000 * rng_below(r, 2) :
			rng_range(r, 1, 600);
		p->object_len = rng_chance(r, 500) ? s->max_object :
			s->max_object / 16 + 1;
	}
}

/*
 * Who lies about everything is found out soon: half of those that are hostile
 * lie about objects only, or just send more than they may.
 */
void objects_hostile(struct sim *s)
{
	struct rng *r = &s->object_rng;
	u32 i;

	s->object_lies = rng_chance(r, 300) ? 0 : 300;
	if (!s->max_object || rng_chance(r, 500))
		return;
	s->villainy = 0;
	s->attacks = 0;
	for (i = 0; i < s->nlanes; i++) {
		struct plan *p = &s->plans[i];

		if (p->node != s->villain)
			continue;
		p->objects = s->object_lies ? 200 : max(p->objects, 500u);
		p->object_len = s->object_lies || rng_chance(r, 500) ?
			1 : s->max_object;
	}
}

static bool object_honest(const struct sim *s, u32 lane)
{
	return !s->hostile || s->plans[lane].node != s->villain;
}

/* The next message of a lane: is it one, and how is it to be spread. */
bool objects_next(struct sim *s, struct plan *p)
{
	struct rng *r = &s->object_rng;

	p->claim_flags = 0;
	if (!rng_chance(r, p->objects))
		return false;
	p->claim_len = rng_range(r, 1, p->object_len);
	p->claim_flags = SP_DESC_OBJECT |
		rng_below(r, SP_SCHEDULE_HYBRID + 1) << SP_DESC_KIND_SHIFT;
	if (!object_honest(s, p - s->plans) && rng_chance(r, s->object_lies))
		hostile_object(s, &p->claim_len, &p->claim_flags);
	return true;
}

/* Is there room for it? Who lies does not care, while it has a descriptor. */
int objects_space(struct sim *s, struct plan *p)
{
	const struct sp_tx *tx = &s->nodes[p->node].tx[p->own];

	if (!object_honest(s, p - s->plans))
		return tx->now.count - tx->freed < tx->depth - 1 ? 0 : -EAGAIN;
	return sp_tx_space_object(tx, p->claim_len);
}

static struct object *object_of(struct node *n, u32 lane, u64 count)
{
	return &n->objects[lane][count & (n->sim->depth - 1)];
}

/* Descriptor @count of an honest lane; it is told of what it sent only. */
struct sent *object_sent(struct sim *s, u32 lane, u64 count)
{
	struct plan *p = &s->plans[lane];
	u64 k = count - s->base_count;

	return k < p->nsent ? &p->sent[k] : NULL;
}

static void object_begin(struct node *n, u32 lane, u64 count)
{
	struct sim *s = n->sim;
	struct object *o = object_of(n, lane, count);
	struct transfer *t;
	u32 delay;

	if (o->asked && o->count == count)
		return;
	o->asked = true;
	o->here = false;
	o->count = count;
	/* Who lies need not send it at all. */
	if (!object_honest(s, lane) && rng_chance(&s->object_rng, 100))
		return;
	if (s->ntransfers == s->transfers_size) {
		s->transfers_size = s->transfers_size ? 2 * s->transfers_size : 64;
		s->transfers = realloc(s->transfers,
				       s->transfers_size * sizeof(*t));
	}
	t = &s->transfers[s->ntransfers];
	t->node = n;
	t->lane = lane;
	t->count = count;
	t->done = false;
	delay = rng_chance(&s->object_rng, s->object_long) ? SIM_EVER :
		rng_range(&s->object_rng, 1, s->object_gap);
	sim_trace(s, "node %u waits for descriptor %llu of lane %u, in %u",
		  n->id, (unsigned long long)count, lane, delay);
	sim_after(s, delay, EV_OBJECT, s->ntransfers++);
}

/* All of it has come. */
void object_arrive(struct sim *s, u32 transfer)
{
	struct transfer *t = &s->transfers[transfer];
	struct node *n = t->node;
	struct object *o = object_of(n, t->lane, t->count);

	if (t->done)
		return;
	t->done = true;
	sim_trace(s, "node %u has descriptor %llu of lane %u", n->id,
		  (unsigned long long)t->count, t->lane);
	if (o->count == t->count)
		o->here = true;
	if (object_honest(s, t->lane))
		object_sent(s, t->lane, t->count)->here |= 1u << n->id;
	node_kick(n);
}

/* Some object, perhaps, in the middle of a pass of this node. */
void object_amid(struct sim *s, struct node *n)
{
	u32 i;

	if (!s->ntransfers || !rng_chance(&s->object_rng, 300))
		return;
	i = rng_below(&s->object_rng, s->ntransfers);
	if (s->transfers[i].node == n)
		object_arrive(s, i);
}

/* sp_shell_ops.object_new */
void op_object_new(struct sp_core *c, u32 rank)
{
	struct node *n = node_of(c);
	const struct sp_lane *lane = sp_order_lane(&c->order, rank);
	u64 i;

	for (i = lane->now.count; i != lane->seen.count; i++)
		if (lane->desc[i & (c->order.depth - 1)].flags & SP_DESC_OBJECT)
			object_begin(n, rank, i);
}

/* sp_shell_ops.object_here */
bool op_object_here(struct sp_core *c, u32 rank, u64 count)
{
	struct node *n = node_of(c);
	const struct object *o = object_of(n, rank, count);

	node_interrupted(n);
	if (!o->asked || o->count != count)
		sim_violation(n->sim, "node %u looks for descriptor %llu of lane %u, of which it was not told",
			      n->id, (unsigned long long)count, rank);
	return o->here;
}

/* What a descriptor ring says of the objects in a stretch of it. */
static void objects_count(const struct sim *s, const struct sp_desc *ring,
			  u64 from, u64 to, u32 *n, u64 *bytes)
{
	*n = 0;
	*bytes = 0;
	for (; from != to; from++) {
		const struct sp_desc *d = &ring[from & (s->depth - 1)];

		*n += !!(d->flags & SP_DESC_OBJECT);
		*bytes += d->flags & SP_DESC_OBJECT ? d->len : 0;
	}
}

/* What is outstanding keeps within its limits, and is counted as it is. */
static void objects_check_limits(struct node *n, u32 rank)
{
	const struct sp_lane *lane = &n->lanes[rank];
	const struct sp_tx *tx = &n->tx[lane->lane];
	bool own = lane->node == n->id;
	struct sim *s = n->sim;
	u64 bytes;
	u32 count;

	objects_count(s, lane->desc, own ? tx->freed : lane->freed,
		      own ? tx->now.count : lane->seen.count, &count, &bytes);
	if (count != (own ? tx->objects : lane->objects) ||
	    bytes != (own ? tx->object_bytes : lane->object_bytes))
		sim_violation(s, "node %u counts %u objects of lane %u, there are %u",
			      n->id, own ? tx->objects : lane->objects, rank,
			      count);
	if (own && !object_honest(s, rank))
		return;
	if (count > 16 || bytes > 2ull * s->max_object)
		sim_violation(s, "node %u has %u objects with %llu bytes of lane %u",
			      n->id, count, (unsigned long long)bytes, rank);
}

/*
 * Nulls are owed for what was announced, whether it is here or not: a node that
 * waits for its part of an object must not hold up the others' turns by that.
 */
static void objects_check_nulls(struct node *n, u32 rank)
{
	const struct sp_order *o = &n->core.order;
	u64 round = n->own[n->lanes[rank].lane].now.round;
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		u64 said = n->lanes[i].seen.round;

		if (i == rank || said == n->lanes[i].base ||
		    round >= (rank < i ? said : said - 1))
			continue;
		sim_violation(n->sim, "node %u rests with lane %u at turn %llu, lane %u is at %llu",
			      n->id, rank, (unsigned long long)round, i,
			      (unsigned long long)said);
	}
}

/* After each pass. */
void objects_check(struct node *n)
{
	struct sim *s = n->sim;
	u32 i;

	if (!s->max_object)
		return;
	for (i = 0; i < s->nlanes && !s->violated; i++) {
		objects_check_limits(n, i);
		if (n->lanes[i].node == n->id && (n->core.on & SP_OPT_NULL) &&
		    n->core.doze.state == SP_ASLEEP)
			objects_check_nulls(n, i);
	}
}

/*
 * An object enters the log: all of it is at every node by then, or at this one
 * where there is no order among nodes. Whoever lies
 * may say that it has it.
 */
void objects_delivered(struct node *n, u32 lane, const struct sp_log *log,
		       u64 count)
{
	struct sim *s = n->sim;
	const struct sent *sent = object_sent(s, lane, count);
	u32 want = s->plain ? 1u << n->id : (1u << s->nnodes) - 1;

	if (s->hostile)
		want &= ~(1u << s->villain);
	if (log->pos != (u32)count)
		sim_violation(s, "node %u delivers descriptor %llu of lane %u as %u",
			      n->id, (unsigned long long)count, lane, log->pos);
	if ((sent->here & want) != want)
		sim_violation(s, "node %u delivers descriptor %llu of lane %u, which is at nodes %#x only",
			      n->id, (unsigned long long)count, lane, sent->here);
}

/* It is still there when it is read. */
void objects_verify(struct node *n, u32 lane, const struct sp_log *log)
{
	const struct object *o = object_of(n, lane, log->pos);

	if (n->lanes[lane].node == n->id)
		return;
	if (!o->here || (u32)o->count != log->pos)
		sim_violation(n->sim, "node %u reads descriptor %u of lane %u, which is not there",
			      n->id, log->pos, lane);
}
