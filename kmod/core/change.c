// SPDX-License-Identifier: GPL-2.0
/*
 * From one view to the next: what becomes of the order, of the lanes and of how
 * far they were pushed to each peer. Which view is next is decided in ballot.c.
 *
 * Counters never begin anew: indices, descriptors and units run on, and so does
 * the order. A view has a base for each lane, the lane's first turn in the view.
 * So a late write of an old view has a counter that the new one has passed, and
 * what a sender wrote beyond the trim need not be written again.
 */
#include "pass.h"

/**
 * sp_core_wedge() - take nothing more of the view
 * @c: the group
 * @counts: where the rounds that have come of each lane go, by rank
 *
 * In one step: this node takes what has landed, and from then on receives,
 * delivers and posts nothing. What programs commit waits for the next view. A
 * wedge waits for nothing, not for what is posted either.
 *
 * Return: 0; -EPROTO when node @c->faulty is, and is to be suspected: this node
 * has wedged all the same, and the counts hold.
 */
int sp_core_wedge(struct sp_core *c, u64 *counts)
{
	int ret = 0;
	u32 i;

	if (!c->wedged)
		ret = sp_pass_look(c);
	c->wedged = true;
	for (i = 0; i < c->order.nlanes; i++)
		counts[i] = sp_order_lane(&c->order, i)->now.round;
	return ret < 0 ? ret : 0;
}

/**
 * sp_core_ranks() - note the view's ranks in the lanes and the peers
 * @c: the group; @c->order.slot is set
 * @v: the view
 */
void sp_core_ranks(struct sp_core *c, const struct sp_view *v)
{
	u32 i, k;

	sp_order_members(&c->order, v);
	for (i = 0; i < v->nnodes; i++) {
		struct sp_peer *p = &c->peers[i];

		p->nlanes = v->nodes[i].lanes;
		for (k = 0; k < SP_MAX_NODE_LANES; k++)
			p->lanes[k] = -1;
	}
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_lane *lane;

		if (m->lane < 0)
			continue;
		lane = sp_order_lane(&c->order, m->lane);
		lane->node = m->node;
		lane->lane = m->nr;
		lane->member = i;
		c->peers[m->node].lanes[m->nr] = m->lane;
		if (m->node == c->order.self)
			c->own[m->nr].rank = m->lane;
	}
}

/* A peer that was in the view before: only what speaks of the view begins anew. */
static void sp_peer_next(struct sp_core *c, struct sp_peer *p)
{
	p->received = c->order.start - 1;
	p->sleep = 0;
	p->woken = 0;
	/* The peer is sent a row of this view, whether or not it has news. */
	p->behind = SP_WHY_BEGIN;
}

/* A peer that has just come is sent all of each lane that lies in the view. */
static void sp_peer_begin(struct sp_core *c, struct sp_peer *p)
{
	struct sp_point at;
	u32 i;

	sp_peer_reset(p, c->order.start);
	p->behind = SP_WHY_BEGIN;
	for (i = 0; i < c->nown; i++) {
		if (!c->own[i].tx)
			continue;
		sp_lane_point(sp_own_lane(c, i), c->order.depth, &at);
		p->pushed[i].to = at;
		p->pushed[i].mark = at;
		p->pushed[i].done = at;
	}
	p->consumed = c->order.start - 1;
	p->open = 0;
	p->cut = true;
	p->gone = false;
}

/* Nothing of an own lane that is new in the view was pushed to a peer. */
static void sp_own_begin(struct sp_peer *p, u32 own)
{
	memset(&p->pushed[own], 0, sizeof(p->pushed[own]));
	p->open &= ~(1ull << own);
}

/**
 * sp_core_install() - begin the next view
 * @c: the group, wedged, its ragged edge delivered: sp_order_trim(). The caller
 *	has set @c->own[].tx: NULL for the numbers that no own lane has any more
 * @next: the view
 *
 * Requests that may still read own lanes for a node that is not in the view, also
 * one that has left in order, are the caller's: it sets @c->hold before, until
 * they have completed. @c->own, @c->order.nodes and each peer's @pushed have room
 * for any view.
 *
 * The caller calls sp_tx_view() and sp_tx_members() for the sending side of each own
 * lane, too, before and within the lane's lock; no pass runs between that and this, or
 * what is for a member that comes would go past its node. Writers may commit before,
 * between and after: what they commit has its turn behind what the lane had before.
 */
void sp_core_install(struct sp_core *c, struct sp_next *next)
{
	const struct sp_view *v = next->view;
	struct sp_order *o = &c->order;
	struct sp_peer *was = c->peers;
	u32 i, k;

	memcpy(next->seen, o->nodes, o->nnodes * sizeof(next->seen[0]));
	o->start = o->delivered + 1;
	o->due = o->delivered;
	o->epoch = next->epoch;
	o->nnodes = v->nnodes;
	o->nlanes = v->nlanes;
	o->self = next->self;
	o->slack = (u64)SP_MAX_MEMBERS * o->depth;
	o->fins = 0;
	for (i = 0; i < v->nlanes; i++) {
		struct sp_lane *lane;

		o->slot[i] = next->slot[i];
		lane = sp_order_lane(o, i);
		lane->base = next->base[i];
		o->fins += lane->fin;
	}
	for (i = 0; i < v->nnodes; i++) {
		s32 before = next->node_was[i];

		o->nodes[i].received = o->start - 1;
		o->nodes[i].consumed = before < 0 ? o->start - 1 :
			next->seen[before].consumed;
		if (before >= 0)
			next->peers[i] = was[before];
	}
	c->peers = next->peers;
	next->peers = was;

	c->view = v->id;
	c->nown = v->nodes[next->self].lanes;
	sp_core_ranks(c, v);
	for (k = 0; k < c->nown; k++) {
		if (!c->own[k].tx)
			continue;
		c->own[k].now = sp_own_lane(c, k)->now;
		if (next->fresh >> k & 1)
			c->own[k].pushed = 0;
	}
	for (i = 0; i < v->nnodes; i++) {
		struct sp_peer *p = &c->peers[i];

		p->row = p->bank[v->id & 1];
		if (i == next->self) {
			p->gone = true;
			continue;
		}
		if (next->node_was[i] < 0) {
			sp_peer_begin(c, p);
			continue;
		}
		sp_peer_next(c, p);
		for (k = 0; k < c->nown; k++)
			if (next->fresh >> k & 1)
				sp_own_begin(p, k);
	}
	c->wedged = false;
	c->unposted = false;
	sp_core_kick(c);
}

/**
 * sp_core_cut() - the connection to a peer is gone, perhaps not for long
 * @c: the group
 * @node: rank of the peer
 *
 * Nothing is posted to the peer. Nobody delivers what it has not acknowledged.
 */
void sp_core_cut(struct sp_core *c, u32 node)
{
	c->peers[node].cut = true;
	sp_core_kick(c);
}

/**
 * sp_core_mend() - there is a connection to a peer again, or for the first time
 * @c: the group
 * @node: rank of the peer
 *
 * The peer's tickets begin at 0. All that is not known to have landed is posted
 * once more; what had landed is written again as it was. The caller has seen the
 * old connection dead on both sides: else a late write of it would land over what
 * the new one wrote. It takes nothing that came by the old one for news of the
 * new one.
 */
void sp_core_mend(struct sp_core *c, u32 node)
{
	struct sp_peer *p = &c->peers[node];
	u32 i;

	for (i = 0; i < c->nown; i++) {
		p->pushed[i].to = p->pushed[i].done;
		p->pushed[i].mark = p->pushed[i].done;
	}
	sp_peer_reset(p, c->order.start);
	p->behind = SP_WHY_BEGIN;
	p->cut = false;
	sp_core_kick(c);
}

/**
 * sp_core_open() - an own lane may be pushed to a peer from now on
 * @c: the group
 * @node: rank of the peer
 * @own: number of the lane; the peer has granted memory for the member that has
 *	this number now
 */
void sp_core_open(struct sp_core *c, u32 node, u32 own)
{
	c->peers[node].open |= 1ull << own;
	sp_core_kick(c);
}
