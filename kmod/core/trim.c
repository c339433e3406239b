// SPDX-License-Identifier: GPL-2.0
/*
 * The ragged edge of a view: which rounds of each lane belong to it. What was
 * sent beyond the trim is sent again in the next view by its living sender
 * (Spindle paper, section 2.1).
 *
 * The trim is the least that any of the surviving nodes has received of a lane.
 * It covers all that was delivered: a turn is delivered only when every node has
 * acknowledged it, and a node counts what it has acknowledged when it wedges.
 */
#include "ballot.h"
#include "pass.h"

/**
 * sp_trim_least() - the trim that a leader proposes
 * @b: its part in the end of the view; all of @nodes have wedged
 * @nodes: the surviving nodes, a bit each
 * @trim: where the rounds of each lane go, by rank
 */
void sp_trim_least(const struct sp_ballot *b, u64 nodes, u64 *trim)
{
	u32 i, k;

	for (k = 0; k < b->view->nlanes; k++) {
		trim[k] = ~0ull;
		for (i = 0; i < b->view->nnodes; i++)
			if (nodes >> i & 1)
				trim[k] = min(trim[k], b->reports[i].counts[k]);
	}
}

/**
 * sp_trim_fits() - can a correct node report this
 * @b: this node's part in the end of the view; it has wedged
 * @r: the report
 *
 * What was delivered here every node has received. A proposal that does not call
 * this node lost was made by one that knew what this node has received.
 *
 * Return: false when @r contradicts either.
 */
bool sp_trim_fits(const struct sp_ballot *b, const struct sp_report *r)
{
	const struct sp_proposal *p = &r->accepted;
	const struct sp_view *v = b->view;
	bool heard = false;
	u32 i;

	/* Did the node that made the proposal hear this one? */
	for (i = 0; p->ballot && i < v->nmembers; i++)
		heard |= v->members[i].node == b->self &&
			 p->reason[i] != SP_LOST;
	for (i = 0; i < v->nlanes; i++) {
		if (r->wedged && r->counts[i] < b->floor[i])
			return false;
		if (heard && (p->trim[i] < b->floor[i] ||
			      p->trim[i] > sp_ballot_own(b)->counts[i]))
			return false;
	}
	return true;
}

/* Rounds of a lane that were delivered, counted from its first. */
static u64 sp_trim_floor(const struct sp_order *o, u32 rank)
{
	u64 turns = o->delivered + 1 - o->start;

	return sp_order_lane(o, rank)->base + turns / o->nlanes +
	       (rank < turns % o->nlanes);
}

/**
 * sp_core_floor() - what was delivered of each lane
 * @c: the group
 * @floor: where the rounds of each lane go, counted from its first, by rank
 */
void sp_core_floor(const struct sp_core *c, u64 *floor)
{
	u32 i;

	for (i = 0; i < c->order.nlanes; i++)
		floor[i] = sp_trim_floor(&c->order, i);
}

/*
 * Can this node deliver the trim? The log has to take all that was received, of
 * which the trim is a part, and the event of the next view.
 */
static int sp_trim_check(const struct sp_order *o, const u64 *trim)
{
	u64 most = o->published - o->released;
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);

		if (trim[i] < sp_trim_floor(o, i) || trim[i] > lane->now.round)
			return -EPROTO;
		most += lane->now.count - lane->taken;
	}
	return most >= o->log_size ? -ENOBUFS : 0;
}

/**
 * sp_order_trim_ends() - is a trim the end of the stream
 * @o: the order; it has received what the trim is made of
 * @trim: rounds of each lane that belong to the view, by rank
 *
 * Every node comes to the same, also one that has delivered the end already.
 *
 * Return: true when all senders of the view have sent their last message in it.
 */
bool sp_order_trim_ends(const struct sp_order *o, const u64 *trim)
{
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);
		const struct sp_desc *last;

		if (lane->fin)
			continue;
		if (lane->taken == lane->now.count)
			return false;
		last = &lane->desc[(lane->now.count - 1) & (o->depth - 1)];
		if (!(last->flags & SP_DESC_FIN) ||
		    (s32)((u32)trim[i] - last->index) <= 0)
			return false;
	}
	return o->nlanes;
}

/**
 * sp_order_trim() - deliver the ragged edge of a view: exactly what was decided
 * @o: the order
 * @trim: rounds of each lane that belong to the view, by rank
 *
 * What lies beyond the trim is passed over here. It has its turn in the next
 * view if its sender is in that.
 *
 * Return: 0; -EPROTO when this node lacks some of it, or has delivered more;
 * -ENOBUFS when readers have left no room in the log. On an error nothing was
 * delivered.
 */
int sp_order_trim(struct sp_order *o, const u64 *trim)
{
	s64 end = o->delivered + 1;
	s64 seq;
	u32 i;
	int ret;

	ret = sp_trim_check(o, trim);
	if (ret)
		return ret;
	for (i = 0; i < o->nlanes; i++)
		end = max(end, o->start + 1 - o->nlanes +
			  sp_seq(trim[i] - sp_order_lane(o, i)->base,
				 o->nlanes, i));
	for (seq = o->delivered + 1; seq < end; seq++) {
		u64 turn = seq - o->start;
		u64 index;

		i = turn % o->nlanes;
		index = sp_order_lane(o, i)->base + turn / o->nlanes;
		if (index < trim[i])
			sp_order_publish(o, i, index, seq);
	}
	o->delivered = end - 1;
	return 0;
}

/**
 * sp_order_state() - who has the state, and who is to send it, in a view that begins
 * @o: the order; all of the view before is delivered. Or that view is @v itself, which
 *	this node has come with
 * @old: the view before; its ranks are those of @o
 * @v: the view, from sp_view_next(), or as it was told
 *
 * Every node comes to the same: it goes by what was delivered before.
 */
void sp_order_state(const struct sp_order *o, const struct sp_view *old, struct sp_view *v)
{
	u64 fins = 0;
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		struct sp_member *m = &v->members[i];
		int was = sp_view_find_member(old, &m->addr, m->cookie);

		if (was < 0)
			continue;
		if (!(o->stale >> was & 1))
			m->flags &= ~SP_MEMBER_STALE;
		if (m->lane >= 0 && old->members[was].lane >= 0 &&
		    sp_order_lane(o, old->members[was].lane)->fin)
			fins |= 1ull << m->lane;
	}
	sp_view_giver(v, fins);
}
