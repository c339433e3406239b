// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a group on one node: how much it is, making it, freeing it. What
 * views have in common is made once, for the largest; lanes and nodes come and go.
 *
 * Everything that is made here is counted by sp_memory_bytes(), so that limits
 * are held before any of it is taken. It is asked for so that it fails rather
 * than that another program is killed for it (SP_GFP_VIEW).
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "engine.h"
#include "group.h"
#include "observe/observe.h"

static void sp_memory_layout(const struct sp_config *cfg, struct sp_layout *lay)
{
	/* Whole pages, whatever their size is on a node. */
	sp_layout_init(lay, cfg->depth, cfg->window,
		       min(cfg->window, 1U << SP_CHUNK_SHIFT));
}

/*
 * All that lanes hold, whether their members are still in the view or not, and the
 * event of each view. Who joins finds room beside those that have gone.
 */
static u32 sp_memory_log(const struct sp_config *cfg)
{
	u32 lanes = min(2 * (cfg->senders ?: cfg->limit), SPINDLE_MAX_MEMBERS);

	return roundup_pow_of_two(lanes * cfg->depth + cfg->limit + 1);
}

/**
 * sp_memory_lane_bytes() - what a lane takes on one node
 * @cfg: the group's configuration
 * @own: it is this node's own
 * @max_pages: pieces that a memory region of its device may have
 *
 * Return: bytes; not less than what is taken, and hardly more.
 */
u64 sp_memory_lane_bytes(const struct sp_config *cfg, bool own, u32 max_pages)
{
	struct sp_layout lane;

	sp_memory_layout(cfg, &lane);
	return sp_slab_bytes(&lane, max_pages) +
	       (own ? sp_heap_bytes(1, sizeof(struct sp_lane_tx)) :
		sp_heap_bytes(cfg->depth, sizeof(struct sp_desc)));
}

/**
 * sp_memory_peer_bytes() - what another node takes on one node, without its lanes
 * @max_pages: pieces that a memory region of the device may have
 *
 * Return: bytes; not less than what is taken, and hardly more.
 */
u64 sp_memory_peer_bytes(u32 max_pages)
{
	struct sp_layout rows;

	sp_slab_rows(&rows);
	return sp_heap_bytes(1, sizeof(struct sp_group_peer)) +
	       sp_slab_bytes(&rows, max_pages) +
	       sp_heap_bytes(SP_MAX_NODE_LANES, sizeof(struct sp_pushed)) +
	       sp_heap_bytes(1, SP_REPORT_MAX) +
	       sp_heap_bytes(1, sizeof(struct sp_report));
}

/**
 * sp_memory_event_bytes() - what the event of a view takes
 *
 * Return: bytes; not less than what is taken, unless many members have gone at once.
 */
u64 sp_memory_event_bytes(void)
{
	return sp_heap_bytes(1, sizeof(struct sp_event) + sizeof(struct sp_left));
}

/**
 * sp_memory_bytes() - what a view takes on one node
 * @v: the view, ranked
 * @cfg: the group's configuration
 * @self: rank of the node
 * @max_pages: pieces that a memory region of its device may have
 *
 * Return: bytes; not less than what is taken, and hardly more.
 */
u64 sp_memory_bytes(const struct sp_view *v, const struct sp_config *cfg,
		    u32 self, u32 max_pages)
{
	u64 log = sp_memory_log(cfg) * sizeof(struct sp_log);
	u32 most = cfg->limit;
	u32 own = 0;
	u64 bytes;
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		own += v->members[i].node == self && v->members[i].lane >= 0;
	bytes = 2 * sp_heap_bytes(most, sizeof(struct sp_peer));
	bytes += 2 * sp_heap_bytes(most, sizeof(struct sp_report));
	bytes += sp_heap_bytes(1, sizeof(struct sp_next));
	/* What comes and what is told of it, and what this node was told as it came. */
	bytes += sp_heap_bytes(1, sizeof(struct sp_growth));
	bytes += sp_heap_bytes(1, SP_WELCOME_MAX);
	bytes += sp_heap_bytes(1, sizeof(struct sp_welcome));
	/* For readers that do not read while views follow each other. */
	bytes += most * sp_memory_event_bytes();
	bytes += sp_heap_bytes(SP_MAX_SLOTS, sizeof(struct sp_lane_slot));
	bytes += sp_heap_bytes(SP_MAX_SLOTS, sizeof(struct sp_lane));
	bytes += sp_heap_bytes(most, sizeof(struct sp_node_seen));
	bytes += sp_heap_bytes(SP_MAX_NODE_LANES, sizeof(struct sp_own));
	bytes += sp_heap_bytes(1, sp_slow_size());
	/* vmalloc() keeps two words for each page. */
	bytes += PAGE_ALIGN(log) + (log >> PAGE_SHIFT) * 2 * sizeof(void *);
	bytes += own * sp_memory_lane_bytes(cfg, true, max_pages);
	bytes += (v->nlanes - own) * sp_memory_lane_bytes(cfg, false, max_pages);
	bytes += (v->nnodes - 1) * sp_memory_peer_bytes(max_pages);
	return bytes;
}

/* What all views have in common. */
static int sp_memory_core(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	u32 most = g->config.limit;
	struct sp_core *c = &g->core;
	struct sp_order *o = &c->order;

	o->nlanes = v->nlanes;
	o->nnodes = v->nnodes;
	o->self = g->self;
	o->depth = g->config.depth;
	o->units = g->config.window >> SP_UNIT_SHIFT;
	o->max_len = g->config.max_msg;
	o->log_size = sp_memory_log(&g->config);
	o->epoch = g->gid + v->id;
	c->nown = v->nodes[g->self].lanes;
	c->view = v->id;
	c->polled = g->node->sdev->polled;
	/* Where whatever comes is an event, there is nothing to look for. */
	c->spin = c->polled ? sp_spin : 0;
	c->ops = &sp_engine_ops;
	g->nlanes = c->nown;

	o->lanes = kvcalloc(SP_MAX_SLOTS, sizeof(*o->lanes), SP_GFP_VIEW);
	o->nodes = kcalloc(most, sizeof(*o->nodes), SP_GFP_VIEW);
	/* Whole pages: programs map it. */
	o->log = __vmalloc(PAGE_ALIGN(o->log_size * sizeof(*o->log)),
			   SP_GFP_VIEW | __GFP_ZERO);
	c->own = kvcalloc(SP_MAX_NODE_LANES, sizeof(*c->own), SP_GFP_VIEW);
	c->peers = kvcalloc(most, sizeof(*c->peers), SP_GFP_VIEW);
	g->slots = kvcalloc(SP_MAX_SLOTS, sizeof(*g->slots), SP_GFP_VIEW);
	g->next = kvzalloc(sizeof(*g->next), SP_GFP_VIEW);
	g->spare = kvcalloc(most, sizeof(*g->spare), SP_GFP_VIEW);
	g->reports[0] = kvcalloc(most, sizeof(*g->reports[0]), SP_GFP_VIEW);
	g->reports[1] = kvcalloc(most, sizeof(*g->reports[1]), SP_GFP_VIEW);
	if (!o->lanes || !o->nodes || !o->log || !c->own || !c->peers ||
	    !g->slots || !g->next || !g->spare || !g->reports[0] ||
	    !g->reports[1])
		return -ENOMEM;
	return 0;
}

/**
 * sp_memory_lane() - make the memory of a lane
 * @g: the group
 * @lane: where it goes; @lane->own is set
 *
 * Charged to the calling task's cgroup. Context: may sleep.
 *
 * Return: 0; -ENOMEM, or as sp_slab_alloc(). sp_memory_free_lane() frees what there is.
 */
int sp_memory_lane(struct sp_group *g, struct sp_lane_memory *lane)
{
	lane->slab = sp_slab_alloc(g->node->sdev, &g->lay);
	if (IS_ERR(lane->slab)) {
		int ret = PTR_ERR(lane->slab);

		lane->slab = NULL;
		return ret;
	}
	if (lane->own)
		lane->tx = kzalloc(sizeof(*lane->tx), SP_GFP_VIEW);
	else
		lane->desc = kvcalloc(g->config.depth, sizeof(*lane->desc),
				      SP_GFP_VIEW);
	return lane->tx || lane->desc ? 0 : -ENOMEM;
}

/**
 * sp_memory_free_lane() - free the memory of a lane that is in no slot
 * @lane: the memory, or parts of it
 *
 * Context: may sleep.
 */
void sp_memory_free_lane(struct sp_lane_memory *lane)
{
	sp_slab_free(lane->slab);
	kfree(lane->tx);
	kvfree(lane->desc);
	memset(lane, 0, sizeof(*lane));
}

/**
 * sp_memory_use_lane() - a lane begins in a slot
 * @g: the group
 * @nr: the slot, free
 * @m: the member that has the lane
 * @mem: its memory; becomes the slot's
 * @at: the point at which the lane enters the view
 *
 * Context: the engine's lock is held, or there is no engine for the group yet.
 */
void sp_memory_use_lane(struct sp_group *g, u32 nr, const struct sp_member *m,
			struct sp_lane_memory *mem, const struct sp_point *at)
{
	struct sp_lane *lane = &g->core.order.lanes[nr];
	struct sp_lane_slot *slot = &g->slots[nr];
	struct sp_lane_tx *tx = mem->tx;

	spin_lock_bh(&g->slots_lock);
	slot->slab = mem->slab;
	slot->addr = m->addr;
	spin_unlock_bh(&g->slots_lock);
	slot->nr = m->nr;
	slot->cookie = m->cookie;
	slot->tx = tx;
	lane->src = (const struct sp_desc *)slot->slab->base;
	lane->desc = tx ? (struct sp_desc *)lane->src : mem->desc;
	sp_lane_init(lane, at);
	memset(mem, 0, sizeof(*mem));
	if (!tx)
		return;
	spin_lock_init(&tx->lock);
	tx->slab = slot->slab;
	tx->slot = nr;
	tx->cookie = m->cookie;
	sp_tx_init(&tx->tx, lane->desc, g->config.depth, g->config.window,
		   m->lane, g->view.nlanes);
	g->lanes[m->nr] = tx;
	g->nlanes = max(g->nlanes, m->nr + 1);
	g->core.own[m->nr].tx = &tx->tx;
}

/**
 * sp_memory_bind() - a slot is that of a lane of a peer
 * @gp: the peer
 * @nr: the slot
 * @view: number of the view with which the lane begins here
 *
 * Context: as sp_memory_use_lane().
 */
void sp_memory_bind(struct sp_group_peer *gp, u32 nr, u64 view)
{
	struct sp_lane_slot *slot = &gp->g->slots[nr];

	slot->peer = gp;
	gp->synced |= slot->slab->synced;
	WRITE_ONCE(slot->slab->since, view);
	/*
	 * Rows are taken meanwhile: what the peer writes there comes after its key. Pairs
	 * with sp_smc_fill(): who finds the slab sees what view it is for.
	 */
	smp_store_release(&gp->lanes[slot->nr], slot->slab);
}

/**
 * sp_memory_peer() - make the memory that another node needs
 * @gp: the node
 *
 * Charged to the calling task's cgroup. Context: may sleep.
 *
 * Return: 0; -ENOMEM, or as sp_slab_alloc(). sp_memory_free_peer() frees what there is.
 */
int sp_memory_peer(struct sp_group_peer *gp)
{
	struct sp_layout rows;
	struct sp_slab *slab;

	sp_slab_rows(&rows);
	slab = sp_slab_alloc(gp->g->node->sdev, &rows);
	if (IS_ERR(slab))
		return PTR_ERR(slab);
	gp->rows = slab;
	gp->report = kvzalloc(SP_REPORT_MAX, SP_GFP_VIEW);
	gp->early = kvzalloc(sizeof(*gp->early), SP_GFP_VIEW);
	gp->pushed = kvcalloc(SP_MAX_NODE_LANES, sizeof(*gp->pushed),
			      SP_GFP_VIEW);
	return gp->report && gp->early && gp->pushed ? 0 : -ENOMEM;
}

/**
 * sp_memory_free_peer() - free what sp_memory_peer() has made
 * @gp: the node; nothing writes to it any more, and no handle leads to it
 *
 * Context: may sleep.
 */
void sp_memory_free_peer(struct sp_group_peer *gp)
{
	sp_slab_free(gp->rows);
	kvfree(gp->report);
	kvfree(gp->early);
	kvfree(gp->pushed);
	gp->rows = NULL;
	gp->report = NULL;
	gp->early = NULL;
	gp->pushed = NULL;
}

/**
 * sp_memory_attach() - the engine's side of a node that comes with a view
 * @gp: the node, its memory there
 * @p: that side
 */
void sp_memory_attach(struct sp_group_peer *gp, struct sp_peer *p)
{
	u32 i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < 2; i++)
		p->bank[i] = (const struct sp_cell *)(gp->rows->base +
						      sp_row_off(i));
	p->pushed = gp->pushed;
}

/**
 * sp_memory_unmap() - let go of the device; what was delivered stays readable
 * @g: the group; no key to its memory is left and nothing posted reads it
 *
 * Context: may sleep.
 */
void sp_memory_unmap(struct sp_group *g)
{
	struct sp_group_peer *gp;
	u32 i;

	list_for_each_entry(gp, &g->peers, on_group)
		if (gp->rows)
			sp_slab_unmap(gp->rows);
	for (i = 0; g->slots && i < SP_MAX_SLOTS; i++)
		if (g->slots[i].slab)
			sp_slab_unmap(g->slots[i].slab);
}

/**
 * sp_memory_clear() - take the memory of a lane out of its slot
 * @g: the group
 * @nr: the slot: no view has the lane, nobody reads from it or writes to it
 * @mem: where the memory goes
 *
 * Context: as sp_memory_use_lane().
 */
void sp_memory_clear(struct sp_group *g, u32 nr, struct sp_lane_memory *mem)
{
	struct sp_lane *lane = &g->core.order.lanes[nr];
	struct sp_lane_slot *slot = &g->slots[nr];

	mem->slab = slot->slab;
	mem->tx = slot->tx;
	mem->desc = slot->tx ? NULL : lane->desc;
	if (slot->tx) {
		g->counters.gone_messages += slot->tx->tx.messages;
		g->counters.gone_bytes += slot->tx->tx.bytes;
		if (g->lanes[slot->nr] == slot->tx)
			g->lanes[slot->nr] = NULL;
	}
	spin_lock_bh(&g->slots_lock);
	memset(slot, 0, sizeof(*slot));
	spin_unlock_bh(&g->slots_lock);
	memset(lane, 0, sizeof(*lane));
}

/**
 * sp_memory_free() - free what sp_memory_make() has made, if anything
 * @g: the group; nobody uses it any more
 *
 * Context: may sleep.
 */
void sp_memory_free(struct sp_group *g)
{
	struct sp_core *c = &g->core;
	struct sp_order *o = &c->order;
	struct sp_lane_memory mem;
	struct sp_group_peer *gp;
	u32 i;

	sp_slow_exit(g);
	list_for_each_entry(gp, &g->peers, on_group) {
		sp_memory_free_peer(gp);
		memset(gp->lanes, 0, sizeof(gp->lanes));
	}
	for (i = 0; o->lanes && g->slots && i < SP_MAX_SLOTS; i++) {
		sp_memory_clear(g, i, &mem);
		sp_memory_free_lane(&mem);
	}
	kvfree(g->reports[0]);
	kvfree(g->reports[1]);
	kvfree(g->spare);
	kvfree(g->next);
	kvfree(g->slots);
	kvfree(c->peers);
	kvfree(c->own);
	vfree(o->log);
	kfree(o->nodes);
	kvfree(o->lanes);
	g->reports[0] = NULL;
	g->reports[1] = NULL;
	g->spare = NULL;
	g->next = NULL;
	g->slots = NULL;
	c->peers = NULL;
	c->own = NULL;
	o->log = NULL;
	o->nodes = NULL;
	o->lanes = NULL;
}

/* The lanes of the first view that this node is in: their slots are their ranks. */
static int sp_memory_lanes(struct sp_group *g)
{
	static const struct sp_point first;
	struct sp_order *o = &g->core.order;
	const struct sp_view *v = &g->view;
	u32 i;
	int ret;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_lane_memory mem = { .own = m->node == g->self };

		if (m->lane < 0)
			continue;
		ret = sp_memory_lane(g, &mem);
		if (ret) {
			sp_memory_free_lane(&mem);
			return ret;
		}
		o->slot[m->lane] = m->lane;
		sp_memory_use_lane(g, m->lane, m, &mem,
				   g->welcome && m->node != g->self ?
				   &g->welcome->at[m->lane] : &first);
		if (g->welcome)
			o->lanes[m->lane].fin = g->welcome->fin[m->lane];
		if (m->node != g->self)
			sp_memory_bind(g->peer[m->node], m->lane, v->id);
	}
	return 0;
}

/**
 * sp_memory_make() - make the memory for the first view that this node is in
 * @g: the group, its view ranked and its peers there
 *
 * Charged to the calling task's cgroup. Context: may sleep.
 *
 * Return: 0; -ENOMEM, or as sp_slab_alloc(): then nothing is left of it.
 */
int sp_memory_make(struct sp_group *g)
{
	struct sp_group_peer *gp;
	int ret;

	sp_memory_layout(&g->config, &g->lay);
	ret = sp_memory_core(g);
	if (!ret)
		ret = sp_memory_lanes(g);
	list_for_each_entry(gp, &g->peers, on_group) {
		ret = ret ?: sp_memory_peer(gp);
		if (!ret)
			sp_memory_attach(gp, &g->core.peers[gp->rank]);
	}
	if (!ret) {
		sp_core_ranks(&g->core, &g->view);
		ret = sp_slow_init(g);
	}
	if (ret)
		sp_memory_free(g);
	return ret;
}
