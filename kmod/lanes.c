// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes on a node: each has a slot, in which it stays as long as anybody here
 * may read from it, whatever views come and go meanwhile.
 */
#include <linux/slab.h>

#include "engine.h"
#include "group.h"
#include "rdmc.h"

/**
 * sp_lane_make() - memory for a lane
 * @g: the group
 * @m: whose lane it is
 *
 * Context: may sleep; without sp_ctl.
 *
 * Return: the lane, in no slot yet; or an ERR_PTR.
 */
struct sp_slot_lane *sp_lane_make(struct sp_group *g, const struct sp_member *m)
{
	struct sp_slot_lane *lane;
	struct sp_layout lay;

	lane = kzalloc(sizeof(*lane), GFP_KERNEL_ACCOUNT);
	if (!lane)
		return ERR_PTR(-ENOMEM);
	lane->g = g;
	lane->addr = m->addr;
	lane->cookie = m->cookie;
	lane->uid = m->uid;
	lane->slot = SP_MAX_SLOTS;
	lane->own = !sp_addr_cmp(&m->addr, &g->node->addr);
	spin_lock_init(&lane->tx.lock);
	spin_lock_init(&lane->objects_lock);
	sp_layout_lane(&lay, g->config.depth, g->config.window,
		       max_t(u32, 1U << SP_CHUNK_SHIFT, PAGE_SIZE));
	lane->slab = sp_slab_alloc(g->node->sdev, &lay, true);
	if (IS_ERR(lane->slab)) {
		int ret = PTR_ERR(lane->slab);

		kfree(lane);
		return ERR_PTR(ret);
	}
	return lane;
}

/**
 * sp_lane_drop() - undo sp_lane_make(), and sp_lane_place() in a group that is
 * at its end
 * @lane: the lane; nobody finds it any more, nobody has a key to it
 *
 * Context: may sleep.
 */
void sp_lane_drop(struct sp_slot_lane *lane)
{
	sp_lane_objects_drop(lane);
	kvfree(lane->desc);
	sp_slab_free(lane->slab);
	kfree(lane);
}

/**
 * sp_lane_place() - give a lane a slot
 * @g: the group
 * @lane: the lane
 *
 * The order's side of it has its memory then, and nothing else yet.
 *
 * Context: may sleep; sp_ctl is held.
 *
 * Return: 0, -ENOMEM, or -ENOBUFS when readers here have not read what came
 * from so many lanes that are gone that there is no slot.
 */
int sp_lane_place(struct sp_group *g, struct sp_slot_lane *lane)
{
	struct sp_desc *desc = (struct sp_desc *)lane->slab->base;
	struct sp_lane *l;
	u32 slot = 0;

	lockdep_assert_held(&sp_ctl);
	while (slot < SP_MAX_SLOTS && g->slots[slot])
		slot++;
	if (slot == SP_MAX_SLOTS)
		return -ENOBUFS;
	if (!lane->own) {
		lane->desc = kvcalloc(g->config.depth, sizeof(*desc),
				      GFP_KERNEL_ACCOUNT);
		if (!lane->desc)
			return -ENOMEM;
	}
	l = &g->core.order.lanes[slot];
	memset(l, 0, sizeof(*l));
	l->src = desc;
	l->desc = lane->own ? desc : lane->desc;
	lane->slot = slot;
	/* Softirqs look at the table, too: sp_smc_arrived(). */
	smp_store_release(&g->slots[slot], lane);
	return 0;
}

/* Is anybody copying from anywhere right now? */
static bool sp_lanes_busy(struct sp_group *g)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group)
		if (sp_local_reading(local))
			return true;
	return false;
}

/* Does a socket here still call it its own? It looks there without a lock. */
static bool sp_lane_owned(struct sp_group *g, const struct sp_slot_lane *lane)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group)
		if (local->lane == &lane->tx)
			return true;
	return false;
}

/*
 * Give up the key to a lane that has ended: once its node has told us of a view
 * in which it writes there no more, all that it wrote before has come.
 */
static bool sp_lane_revoke(struct sp_group *g, struct sp_slot_lane *lane)
{
	struct sp_peer_node *pn = sp_peer_find(g, &lane->addr);
	const struct sp_cell *row;
	u64 view;

	if (!lane->mr)
		return true;
	if (!pn || !pn->open || g->view.id < lane->died)
		return false;
	row = (const struct sp_cell *)(pn->rows->base + sp_row_off(g->view.id));
	if (!sp_cell_get(&row[SP_CELL_VIEW], g->gid + g->view.id, &view))
		return false;
	sp_mr_revoke(lane->mr);
	lane->mr = NULL;
	return true;
}

/* Can no request that reads an own lane be sent again? */
static bool sp_lane_flushed(struct sp_group *g)
{
	struct sp_peer_node *pn;

	list_for_each_entry(pn, &g->peers, list)
		if (!sp_peer_flushed(pn))
			return false;
	return true;
}

/*
 * Keys and requests go first. Then: what is held is still to be read, and who
 * was deaf may be in the middle of a message.
 */
static bool sp_lane_free(struct sp_group *g, struct sp_slot_lane *lane)
{
	if (lane->own ? !sp_lane_flushed(g) : !sp_lane_revoke(g, lane))
		return false;
	return !READ_ONCE(g->core.order.lanes[lane->slot].held) &&
	       !sp_lanes_busy(g);
}

/**
 * sp_lanes_collect() - drop the lanes that nobody needs any more
 * @g: the group
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: true when some have to wait.
 */
bool sp_lanes_collect(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_slot_lane *done[8];
	bool waits = false;
	u32 n = 0;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	if (g->making)
		return true;
	for (i = 0; i < SP_MAX_SLOTS && n < ARRAY_SIZE(done); i++) {
		struct sp_slot_lane *lane = g->slots[i];

		if (!lane || !lane->dead)
			continue;
		/* Until its socket is closed: sp_group_detach() tends the group. */
		if (lane->own && sp_lane_owned(g, lane))
			continue;
		if (!sp_lane_free(g, lane)) {
			waits = true;
			continue;
		}
		if (engine)
			mutex_lock(&engine->lock);
		WRITE_ONCE(g->slots[i], NULL);
		memset(&g->core.order.lanes[i], 0,
		       sizeof(g->core.order.lanes[i]));
		/* sp_show_lanes() counts it there or here. */
		if (lane->own) {
			g->counters.sent += lane->tx.tx.messages;
			g->counters.sent_bytes += lane->tx.tx.bytes;
		}
		if (engine)
			mutex_unlock(&engine->lock);
		done[n++] = lane;
	}
	if (n)
		/* sp_smc_arrived() looks lanes up under RCU. */
		synchronize_rcu();
	for (i = 0; i < n; i++)
		sp_lane_drop(done[i]);
	return waits || n == ARRAY_SIZE(done);
}
