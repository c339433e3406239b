// SPDX-License-Identifier: GPL-2.0
/*
 * Stability: what every node has received, which is what delivery waits for (Spindle
 * paper, section 2.4), and what every reader is done with. The rows of the peers say
 * it; programs ask for it, wait for it, or have an event come when it is true.
 */
#include "af_spindle.h"
#include "engine.h"
#include "observe/trace.h"

/* Numbers of these in struct sp_local.syncs. */
enum { SP_SYNC_RECEIVED, SP_SYNC_CONSUMED };

/**
 * sp_stable_note() - note how far the own lanes were received everywhere
 * @g: the group
 *
 * What is delivered here was. Context: the engine's lock is held.
 */
void sp_stable_note(struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->core.nown; i++)
		if (g->core.own[i].tx)
			WRITE_ONCE(g->lanes[i]->received,
				   sp_own_lane(&g->core, i)->taken);
}

/* The member's lane, if it sends. A lane stays until its socket is closed. */
static struct sp_lane_tx *sp_stable_lane(const struct sp_local *local)
{
	const struct sp_group *g = READ_ONCE(local->group);

	/* D in group.h: who sees the state sees the lane. */
	return g && sp_group_state(g) != SP_VIEW_FORMING ? local->lane : NULL;
}

/* How far has a lane come, in this respect? The lane's lock is held. */
static u64 sp_stable_reached(const struct sp_lane_tx *lane, u32 which)
{
	lockdep_assert_held(&lane->lock);
	if (which == SP_SYNC_CONSUMED)
		return lane->tx.freed;
	/* It is noted behind the pass that may have freed it. */
	return max(READ_ONCE(lane->received), lane->tx.freed);
}

/**
 * sp_stable_due() - what is there to tell a member's program of
 * @local: the member
 *
 * Context: any but hard interrupt; the engine's lock may be held.
 *
 * Return: SPINDLE_SYNC_* that it has asked for, and that are true now.
 */
u32 sp_stable_due(const struct sp_local *local)
{
	struct sp_lane_tx *lane;
	u32 due = 0;
	u32 i;

	if (!sp_rx_wants(local, SPINDLE_EVENT_STABLE) ||
	    (!READ_ONCE(local->syncs[0]) && !READ_ONCE(local->syncs[1])))
		return 0;
	lane = local->lane;
	spin_lock_bh(&lane->lock);
	for (i = 0; i < ARRAY_SIZE(local->syncs); i++)
		if (local->syncs[i] && local->syncs[i] <= sp_stable_reached(lane, i))
			due |= 1U << i;
	spin_unlock_bh(&lane->lock);
	return due;
}

/**
 * sp_stable_told() - a program has been told
 * @local: the member
 * @what: of SPINDLE_SYNC_*, by sp_stable_due(); what it has asked for since stays
 *
 * Context: may sleep.
 */
void sp_stable_told(struct sp_local *local, u32 what)
{
	struct sp_lane_tx *lane = local->lane;
	u32 i;

	spin_lock_bh(&lane->lock);
	for (i = 0; i < ARRAY_SIZE(local->syncs); i++)
		if ((what >> i & 1) &&
		    local->syncs[i] <= sp_stable_reached(lane, i))
			WRITE_ONCE(local->syncs[i], 0);
	spin_unlock_bh(&lane->lock);
}

/* The order as a whole. Nothing passes over a group whose device has gone. */
static void sp_stable_order(struct sp_group *g, struct spindle_stable *to)
{
	const struct sp_core *c = &g->core;
	struct sp_engine *engine;

	/* As sp_progress_made() does. */
	rcu_read_lock();
	engine = READ_ONCE(g->node->sdev->engine);
	sp_engine_lock(engine);
	to->order_received = c->order.delivered + 1;
	to->order_consumed = sp_core_consumed(c) + 1;
	sp_engine_unlock(engine);
	rcu_read_unlock();
}

/**
 * sp_stable_get() - how far messages have come
 * @ss: the socket, a member of a group
 * @to: the result
 *
 * Context: may sleep.
 */
void sp_stable_get(const struct sp_sock *ss, struct spindle_stable *to)
{
	struct sp_lane_tx *lane = sp_stable_lane(&ss->local);
	struct sp_group *g = sp_sock_group(ss);

	memset(to, 0, sizeof(*to));
	/* It may have failed before there was any. */
	if (sp_group_state(g) != SP_VIEW_FORMING && READ_ONCE(g->ready))
		sp_stable_order(g, to);
	if (!lane)
		return;
	spin_lock_bh(&lane->lock);
	/* The lane's end counts as one more. */
	to->sent = lane->tx.messages;
	to->received = min(sp_stable_reached(lane, SP_SYNC_RECEIVED), to->sent);
	to->consumed = min(sp_stable_reached(lane, SP_SYNC_CONSUMED), to->sent);
	spin_unlock_bh(&lane->lock);
}

/**
 * sp_stable_event() - an event for a program
 * @ss: the socket
 * @what: SPINDLE_SYNC_* that it tells of
 * @to: the result, with room for a struct spindle_stable behind it
 *
 * Context: may sleep.
 */
void sp_stable_event(const struct sp_sock *ss, u32 what, struct spindle_event *to)
{
	struct spindle_stable *stable = (struct spindle_stable *)to->member;
	struct sp_event *view = sp_event_view(sp_sock_group(ss));

	BUILD_BUG_ON(SPINDLE_SYNC_RECEIVED != 1 << SP_SYNC_RECEIVED);
	BUILD_BUG_ON(SPINDLE_SYNC_CONSUMED != 1 << SP_SYNC_CONSUMED);
	memset(to, 0, sizeof(*to));
	sp_stable_get(ss, stable);
	to->type = SPINDLE_EVENT_STABLE;
	to->number = what;
	to->view = view ? view->view.id : 0;
	to->seq = stable->order_received - 1;
	to->member_size = sizeof(to->member[0]);
	sp_event_put(view);
}

/* Is it true now? 0, -EAGAIN, or why it may never be. */
static int sp_stable_wait(const struct sp_sock *ss, struct sp_group *g,
			  struct sp_lane_tx *lane, u32 which, u64 messages)
{
	enum sp_view_state state = sp_group_state(g);
	bool ending = READ_ONCE(g->ending);
	u64 reached;

	spin_lock_bh(&lane->lock);
	reached = sp_stable_reached(lane, which);
	spin_unlock_bh(&lane->lock);
	if (reached >= messages)
		return 0;
	if (sp_local_out(&ss->local))
		return sp_local_evicted(&ss->local) ? -ENOBUFS : -EPIPE;
	if (state == SP_VIEW_FAILED)
		return g->error;
	/* It had come to its end, and its device is gone. */
	if (ending)
		return -ENODEV;
	return READ_ONCE(g->minority) ? -ENETDOWN : -EAGAIN;
}

/**
 * sp_stable_sync() - wait until something is true of all that a member has sent
 * @ss: the socket
 * @what: SPINDLE_SYNC_RECEIVED or _CONSUMED, with SPINDLE_SYNC_DONTWAIT or without
 * @block: wait, for as long as SO_SNDTIMEO says
 *
 * Context: may sleep, no locks held.
 *
 * Return: 0; -EINVAL; -ENOTCONN in no group; -EAGAIN when that time is over, or it is
 * not to wait; -EINPROGRESS when an event will come instead; -EINTR or -ERESTARTSYS;
 * -EPIPE when the member has left, -ENOBUFS when it was evicted, the errno of a group
 * that has failed, -ENETDOWN while no majority is heard, or -ENODEV: then it is not known.
 */
int sp_stable_sync(struct sp_sock *ss, int what, bool block)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sp_lane_tx *lane;
	bool told;
	u64 messages;
	long timeo;
	u32 which;
	int ret;

	if (what & SPINDLE_SYNC_DONTWAIT)
		block = false;
	what &= ~SPINDLE_SYNC_DONTWAIT;
	which = what == SPINDLE_SYNC_CONSUMED;
	if (what != SPINDLE_SYNC_RECEIVED && what != SPINDLE_SYNC_CONSUMED)
		return -EINVAL;
	if (!g)
		return -ENOTCONN;
	lane = sp_stable_lane(&ss->local);
	if (!lane)
		return 0;
	told = !block && sp_rx_wants(&ss->local, SPINDLE_EVENT_STABLE) &&
	       !sp_rings_mapped(&ss->local, SPINDLE_MAP_RX);
	spin_lock_bh(&lane->lock);
	sp_rings_collect(g, lane);
	messages = lane->tx.messages;
	if (which == SP_SYNC_CONSUMED)
		lane->awaited = max(lane->awaited, messages);
	if (told)
		WRITE_ONCE(ss->local.syncs[which], messages);
	spin_unlock_bh(&lane->lock);
	ret = sp_stable_wait(ss, g, lane, which, messages);
	if (ret == -EAGAIN) {
		/*
		 * It asks the other nodes. A pass that goes on just now may not have
		 * seen that, and does not look for it again before it dozes.
		 */
		sp_engine_run(g, NULL);
		timeo = sock_sndtimeo(&ss->sk, !block);
		ret = sp_wait(&ss->sk, timeo,
			      sp_stable_wait(ss, g, lane, which, messages));
	}
	if (told && ret == -EAGAIN)
		ret = -EINPROGRESS;
	else if (told)
		/* It need not be told of what it knows. */
		sp_stable_told(&ss->local, what);
	trace_spindle_sync(g->node->name, g->name, what, messages, ret);
	return ret;
}
