// SPDX-License-Identifier: GPL-2.0
/*
 * What comes with a view: memory for the nodes and lanes that are new in it, and
 * the slots of lanes.
 *
 * The memory is made between the decision and the beginning of the view, by a work
 * that holds no lock. All of it is given back with the group at the latest, that of
 * lanes once nobody can read from it or write to it, when somebody looks: after a view,
 * and before the next one.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "engine.h"
#include "group.h"
#include "limits.h"

/* Does a member of the next view bring a lane with it? */
static bool sp_grow_is_new(const struct sp_view *old, const struct sp_member *m)
{
	int was = sp_view_find_member(old, &m->addr, m->cookie);

	return m->lane >= 0 && (was < 0 || old->members[was].lane < 0);
}

static bool sp_slot_in_view(const struct sp_order *o, u32 nr)
{
	u32 i;

	for (i = 0; i < o->nlanes; i++)
		if (o->slot[i] == nr)
			return true;
	return false;
}

/* Can no request of this node read an own lane any more that is over? */
static bool sp_slot_flushed(const struct sp_group *g)
{
	const struct sp_group_peer *gp;

	list_for_each_entry(gp, &g->peers, on_group)
		if (!sp_peer_past(gp, gp->retired))
			return false;
	return true;
}

/* Is nothing of a lane needed here any more, but perhaps by its peer's key? */
static bool sp_slot_idle(const struct sp_group *g, u32 nr)
{
	const struct sp_lane_slot *slot = &g->slots[nr];
	const struct sp_order *o = &g->core.order;

	if (!slot->slab || o->lanes[nr].held || sp_slot_in_view(o, nr))
		return false;
	if (!slot->tx)
		return true;
	return (!slot->tx->member || sp_local_out(slot->tx->member)) &&
	       sp_slot_flushed(g);
}

/*
 * A member that has left still has what it has mapped, until it closes its socket. The
 * slot is another's.
 */
static void sp_grow_park(struct sp_group *g, struct sp_lane_memory *mem)
{
	if (!mem->tx || !mem->tx->member)
		return;
	sp_slab_unmap(mem->slab);
	mem->tx->parked = true;
	g->nparked++;
	memset(mem, 0, sizeof(*mem));
}

/*
 * What this node holds when a view begins that is this one or follows it: what the view
 * takes, and what is left of lanes and nodes that are not in it.
 */
static u64 sp_grow_bytes(const struct sp_group *g, const struct sp_view *v)
{
	u32 max_pages = g->node->sdev->max_pages;
	u32 nevents = READ_ONCE(g->nevents);
	const struct sp_group_peer *gp;
	u64 bytes;
	u32 i;

	bytes = sp_memory_bytes(v, &g->config, sp_view_find_node(v, &g->node->addr),
				max_pages);
	for (i = 0; i < SP_MAX_SLOTS; i++) {
		const struct sp_lane_slot *slot = &g->slots[i];

		if (slot->slab && sp_view_find_member(v, &slot->addr, slot->cookie) < 0)
			bytes += sp_memory_lane_bytes(&g->config, slot->tx, max_pages);
	}
	list_for_each_entry(gp, &g->peers, on_group)
		if (gp->rank < 0 || !sp_view_stayed(v, &g->view, &gp->addr))
			bytes += sp_memory_peer_bytes(max_pages);
	/* A view counts as many events as there may be members. */
	if (nevents > g->config.limit)
		bytes += (nevents - g->config.limit) * sp_memory_event_bytes();
	return bytes + g->nparked * sp_memory_lane_bytes(&g->config, true, max_pages);
}

/**
 * sp_grow_sweep() - give back the memory of lanes that nobody needs any more
 * @g: the group, its view installed
 *
 * That of nodes is freed elsewhere, but counts until then. Context: sp_ctl is held, may sleep.
 */
void sp_grow_sweep(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	DECLARE_BITMAP(idle, SP_MAX_SLOTS) = {};
	struct sp_lane_memory mem;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	spin_lock_bh(&engine->lock);
	for (i = 0; i < SP_MAX_SLOTS; i++)
		if (sp_slot_idle(g, i) && !g->slots[i].peer)
			__set_bit(i, idle);
	spin_unlock_bh(&engine->lock);
	/* What is idle stays so as long as sp_ctl is held. */
	for_each_set_bit(i, idle, SP_MAX_SLOTS) {
		memset(&mem, 0, sizeof(mem));
		spin_lock_bh(&engine->lock);
		sp_memory_clear(g, i, &mem);
		spin_unlock_bh(&engine->lock);
		sp_rings_forget(g, i);
		sp_grow_park(g, &mem);
		sp_memory_free_lane(&mem);
	}
	/* What is made for the next view is charged already. */
	if (!g->growth)
		sp_limits_give_back(g, sp_grow_bytes(g, &g->view));
}

/* Slots that nothing is in. */
static u32 sp_grow_free(const struct sp_group *g)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < SP_MAX_SLOTS; i++)
		n += !g->slots[i].slab;
	return n;
}

/*
 * Members that have left may read what is left, but not keep others out for as long as
 * they do not.
 */
static void sp_grow_make_room(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_local *local;

	spin_lock_bh(&engine->lock);
	list_for_each_entry(local, &g->locals, on_group) {
		/* A program reads in its mapped rings for as long as it likes. */
		if (!sp_local_out(local) || READ_ONCE(local->deaf) ||
		    sp_rings_mapped(local, SPINDLE_MAP_RX))
			continue;
		WRITE_ONCE(local->deaf, true);
		local->sk->sk_state_change(local->sk);
		pr_warn_ratelimited("spindle: %s: group %s: a member that has left does not read: what is left for it is dropped\n",
				    g->node->name, g->name);
	}
	sp_order_release(&g->core.order, sp_engine_released(g));
	spin_unlock_bh(&engine->lock);
	sp_grow_sweep(g);
}

static struct sp_growth *sp_growth_alloc(struct sp_group *g,
					 const struct sp_view *next)
{
	struct sp_growth *growth = kzalloc(sizeof(*growth), SP_GFP_VIEW);
	const struct sp_view *old = &g->view;
	struct sp_group_peer *gp;
	u32 i;

	if (!growth)
		return NULL;
	for (i = 0; i < next->nmembers; i++)
		if (sp_grow_is_new(old, &next->members[i]))
			growth->lane[growth->nlanes++].own =
				!sp_addr_cmp(&next->members[i].addr,
					     &g->node->addr);
	for (i = 0; i < next->nnodes; i++) {
		const struct sp_addr *addr = &next->nodes[i].addr;

		if (sp_view_stayed(next, old, addr))
			continue;
		gp = sp_peer_alloc(g, addr);
		if (!gp)
			goto err_free;
		growth->peer[growth->npeers++] = gp;
	}
	return growth;

err_free:
	while (growth->npeers)
		kvfree(growth->peer[--growth->npeers]);
	kfree(growth);
	return NULL;
}

/**
 * sp_grow() - see to the memory that the next view needs
 * @g: the group; the view was decided
 * @next: the view
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 when it is there; -EINPROGRESS: sp_views_step() is called when it is;
 * -ENOMEM; -ENOBUFS when more lanes are still read from than can be.
 */
int sp_grow(struct sp_group *g, const struct sp_view *next)
{
	const struct sp_view *old = &g->view;
	struct sp_growth *growth = g->growth;
	u32 i, n = 0;
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (growth)
		return growth->made ? 0 : -EINPROGRESS;
	for (i = 0; i < next->nmembers; i++)
		n += sp_view_find_member(old, &next->members[i].addr,
					 next->members[i].cookie) < 0;
	if (!n)
		return 0;
	sp_grow_sweep(g);
	if (sp_grow_free(g) < n)
		sp_grow_make_room(g);
	if (sp_grow_free(g) < n)
		return -ENOBUFS;
	ret = sp_limits_recharge(g, sp_grow_bytes(g, next));
	if (ret)
		return ret;
	if (!g->greeting)
		g->greeting = kvmalloc(SP_WELCOME_MAX, SP_GFP_VIEW);
	growth = g->greeting ? sp_growth_alloc(g, next) : NULL;
	if (!growth)
		return -ENOMEM;
	g->growth = growth;
	g->making = true;
	kref_get(&g->ref);
	/* As in sp_group_install(). */
	atomic_inc(&g->node->sdev->objects);
	queue_work(sp_wq, &g->make);
	return -EINPROGRESS;
}

/**
 * sp_grow_make() - make that memory
 * @g: the group, @g->making
 *
 * Charged to the calling task's cgroup. Context: without sp_ctl, may sleep.
 *
 * Return: 0, -ENOMEM, or as sp_slab_alloc().
 */
int sp_grow_make(struct sp_group *g)
{
	struct sp_growth *growth = g->growth;
	int ret = 0;
	u32 i;

	for (i = 0; i < growth->nlanes && !ret; i++)
		ret = sp_memory_lane(g, &growth->lane[i]);
	for (i = 0; i < growth->npeers && !ret; i++)
		ret = sp_memory_peer(growth->peer[i]);
	growth->made = !ret;
	return ret;
}

/**
 * sp_grow_drop() - free what was made for a view and was not used for it
 * @g: the group
 *
 * Context: sp_ctl is held, or nobody else has the group; may sleep.
 */
void sp_grow_drop(struct sp_group *g)
{
	struct sp_growth *growth = g->growth;
	u32 i;

	if (!growth)
		return;
	for (i = 0; i < growth->nlanes; i++)
		sp_memory_free_lane(&growth->lane[i]);
	for (i = 0; i < growth->npeers; i++) {
		if (!growth->peer[i])
			continue;
		sp_memory_free_peer(growth->peer[i]);
		kvfree(growth->peer[i]);
	}
	kfree(growth);
	g->growth = NULL;
}

/**
 * sp_grow_peer() - a node that comes with the view
 * @g: the group; the memory for the view was made
 * @addr: its address
 *
 * Return: the node, which sp_grow_drop() frees as long as it is not taken out.
 */
struct sp_group_peer **sp_grow_peer(struct sp_group *g,
				    const struct sp_addr *addr)
{
	struct sp_growth *growth = g->growth;
	u32 i;

	for (i = 0; growth && i < growth->npeers; i++)
		if (growth->peer[i] &&
		    !sp_addr_cmp(&growth->peer[i]->addr, addr))
			return &growth->peer[i];
	return NULL;
}

/* A slot for a lane that comes: one that its peer may write to already, else a free one. */
static u32 sp_grow_slot(const struct sp_group *g,
			const struct sp_group_peer *gp, const struct sp_next *next,
			u32 nlanes)
{
	u32 i, k, free = SP_MAX_SLOTS;

	for (i = 0; i < SP_MAX_SLOTS; i++) {
		for (k = 0; k < nlanes && next->slot[k] != i; k++)
			;
		if (k < nlanes)
			continue;
		if (gp && g->slots[i].peer == gp && sp_slot_idle(g, i))
			return i;
		if (!g->slots[i].slab && free == SP_MAX_SLOTS)
			free = i;
	}
	return free;
}

/**
 * sp_grow_lane() - a lane comes with the view
 * @g: the group; the memory for the view was made
 * @m: the member that has it, in the view that begins
 * @gp: its node, NULL for this one
 *
 * All lanes of lower rank have their slot in @g->next. Context: sp_ctl and the
 * engine's lock are held.
 *
 * Return: its slot.
 */
u32 sp_grow_lane(struct sp_group *g, const struct sp_member *m,
		 struct sp_group_peer *gp)
{
	static const struct sp_point first;
	u32 nr = sp_grow_slot(g, gp, g->next, m->lane);
	struct sp_lane_slot *slot = &g->slots[nr];
	struct sp_growth *growth = g->growth;
	u32 i;

	if (gp && slot->slab) {
		/* What its peer wrote there before came before what it writes now. */
		slot->nr = m->nr;
		slot->cookie = m->cookie;
		sp_lane_init(&g->core.order.lanes[nr], &first);
	} else {
		for (i = 0; i < growth->nlanes; i++)
			if (growth->lane[i].slab && growth->lane[i].own == !gp)
				break;
		sp_memory_use_lane(g, nr, m, &growth->lane[i], &first);
	}
	if (gp)
		sp_memory_bind(gp, nr, g->next->view->id);
	return nr;
}
