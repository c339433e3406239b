// SPDX-License-Identifier: GPL-2.0
/*
 * Eviction: a member that holds up senders, and has read nothing for the group's
 * evict_ms, is put out by its own node, at once and without asking anybody. From then
 * on nothing is kept for it; then its node reports that it leaves, and a view follows
 * without it (core/ballot.c). Other members of the node stay.
 *
 * Looks (observe/slow.c) find such members, since they know who is waited for. They
 * cannot take sp_ctl, and leave the rest to the work of the group's events.
 */
#include "af_spindle.h"
#include "engine.h"
#include "observe/observe.h"

static bool sp_evict_due(struct sp_group *g, struct sp_local *local)
{
	struct sp_engine *engine = g->node->sdev->engine;
	bool due;

	spin_lock_bh(&engine->lock);
	due = !READ_ONCE(g->closing) && sp_slow_overdue(g, local);
	spin_unlock_bh(&engine->lock);
	return due;
}

static void sp_evict(struct sp_group *g, struct sp_local *local)
{
	struct sp_engine *engine = g->node->sdev->engine;

	if (local->rank == ~0U)
		pr_info_ratelimited("spindle: %s: group %s: a member that has left holds up senders for %u ms: what is left for it is dropped\n",
				    g->node->name, g->name, g->config.evict_ms);
	else
		pr_info_ratelimited("spindle: %s: group %s: member %u holds up senders for %u ms: evicted\n",
				    g->node->name, g->name, local->rank,
				    g->config.evict_ms);
	/* What is on its way into its queue comes before the error. */
	mutex_lock(&local->queue.lock);
	/* Passes say what its state is, too. */
	spin_lock_bh(&engine->lock);
	WRITE_ONCE(local->evicted, true);
	sp_rings_state(g, local);
	spin_unlock_bh(&engine->lock);
	/* Before its program could see there what was written for others. */
	sp_rings_blank(g, local);
	/* K in group.h: who finds nothing kept for it finds why. */
	smp_store_release(&local->deaf, true);
	mutex_unlock(&local->queue.lock);
	WRITE_ONCE(g->counters.evictions, g->counters.evictions + 1);
	/* One that leaves already does so for the reason that it had. */
	sp_group_leave(g, local, SP_SLOW);
	local->sk->sk_state_change(local->sk);
	/* Room for those who waited. */
	sp_group_kick(g);
}

/**
 * sp_evict_overdue() - evict the members that are overdue
 * @g: the group
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_evict_overdue(struct sp_group *g)
{
	struct sp_local *local;

	lockdep_assert_held(&sp_ctl);
	if (g->ending || g->view.state != SP_VIEW_ACTIVE || g->minority)
		return;
	list_for_each_entry(local, &g->locals, on_group) {
		if (sp_evict_due(g, local))
			sp_evict(g, local);
		/* The last one of the node has ended the group here. */
		if (g->ending)
			return;
	}
}
