// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a group on one node, which its first view needs and those that
 * follow use: how much it is, making it, freeing it.
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

static void sp_memory_layout(const struct sp_view *v,
			     const struct sp_config *cfg, u32 node,
			     struct sp_layout *lay)
{
	sp_layout_init(lay, v->nodes[node].lanes, cfg->depth, cfg->window,
		       1U << SP_CHUNK_SHIFT);
}

/*
 * All that the lanes of the first view hold, whether their members are still in
 * the view or not, and the event of each view: no view has as many members as the
 * one before it. So there is always room for the end of a view.
 */
static u32 sp_memory_log(const struct sp_view *v, const struct sp_config *cfg)
{
	return roundup_pow_of_two(v->nlanes * cfg->depth + v->nmembers + 1);
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
	u64 log = sp_memory_log(v, cfg) * sizeof(struct sp_log);
	u32 own = v->nodes[self].lanes;
	struct sp_layout lay;
	u64 bytes;
	u32 i;

	bytes = sp_heap_bytes(v->nnodes, sizeof(struct sp_group_peer));
	bytes += 2 * sp_heap_bytes(v->nnodes, sizeof(struct sp_peer));
	bytes += 2 * sp_heap_bytes(v->nnodes, sizeof(struct sp_report));
	bytes += sp_heap_bytes(1, sizeof(struct sp_next));
	/* Of each view that may follow, for readers that do not read. */
	bytes += v->nmembers * sp_heap_bytes(1, sizeof(struct sp_event) +
					     sizeof(struct sp_left));
	bytes += sp_heap_bytes(v->nlanes, sizeof(struct sp_lane_slot));
	bytes += sp_heap_bytes(v->nnodes, sizeof(struct sp_node_seen));
	bytes += sp_heap_bytes(v->nlanes, sizeof(struct sp_lane));
	bytes += sp_heap_bytes(own, sizeof(struct sp_own));
	bytes += sp_heap_bytes(own, sizeof(struct sp_lane_tx));
	bytes += sp_heap_bytes(1, sp_slow_size(v));
	/* vmalloc() keeps two words for each page. */
	bytes += PAGE_ALIGN(log) + (log >> PAGE_SHIFT) * 2 * sizeof(void *);
	bytes += (v->nlanes - own) *
		 sp_heap_bytes(cfg->depth, sizeof(struct sp_desc));
	bytes += (v->nnodes - 1) *
		 (sp_heap_bytes(own, sizeof(struct sp_pushed)) +
		  sp_heap_bytes(1, SP_REPORT_MAX) +
		  sp_heap_bytes(1, sizeof(struct sp_report)));
	for (i = 0; i < v->nnodes; i++) {
		sp_memory_layout(v, cfg, i, &lay);
		bytes += sp_slab_bytes(&lay, max_pages);
	}
	return bytes;
}

/* What the ends of views need. */
static int sp_memory_views(struct sp_group *g)
{
	u32 n = g->npeers;
	u32 i;

	g->next = kvzalloc(sizeof(*g->next), SP_GFP_VIEW);
	g->spare = kvcalloc(n, sizeof(*g->spare), SP_GFP_VIEW);
	g->reports[0] = kvcalloc(n, sizeof(*g->reports[0]), SP_GFP_VIEW);
	g->reports[1] = kvcalloc(n, sizeof(*g->reports[1]), SP_GFP_VIEW);
	if (!g->next || !g->spare || !g->reports[0] || !g->reports[1])
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct sp_group_peer *gp = &g->peers[i];

		if (i == g->self)
			continue;
		gp->report = kvzalloc(SP_REPORT_MAX, SP_GFP_VIEW);
		gp->early = kvzalloc(sizeof(*gp->early), SP_GFP_VIEW);
		gp->pushed = kcalloc(max(g->core.nown, 1U), sizeof(*gp->pushed),
				     SP_GFP_VIEW);
		if (!gp->report || !gp->early || !gp->pushed)
			return -ENOMEM;
	}
	return 0;
}

/* Memory of the protocol for a view whose slabs are there. */
static int sp_memory_core(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	struct sp_core *c = &g->core;
	struct sp_order *o = &c->order;
	static const struct sp_point first;
	u32 i;

	o->nlanes = v->nlanes;
	o->nnodes = v->nnodes;
	o->self = g->self;
	o->depth = g->config.depth;
	o->units = g->config.window >> SP_UNIT_SHIFT;
	o->max_len = g->config.max_msg;
	o->log_size = sp_memory_log(v, &g->config);
	o->epoch = g->gid + v->id;
	o->lanes = kcalloc(o->nlanes, sizeof(*o->lanes), SP_GFP_VIEW);
	o->nodes = kcalloc(o->nnodes, sizeof(*o->nodes), SP_GFP_VIEW);
	/* Whole pages: programs map it. */
	o->log = __vmalloc(PAGE_ALIGN(o->log_size * sizeof(*o->log)),
			   SP_GFP_VIEW | __GFP_ZERO);
	c->nown = v->nodes[g->self].lanes;
	c->own = kcalloc(max(c->nown, 1U), sizeof(*c->own),
			 SP_GFP_VIEW);
	c->peers = kvcalloc(o->nnodes, sizeof(*c->peers), SP_GFP_VIEW);
	g->nlanes = c->nown;
	g->lanes = kcalloc(max(c->nown, 1U), sizeof(*g->lanes),
			   SP_GFP_VIEW);
	g->nslots = v->nlanes;
	g->slots = kcalloc(g->nslots, sizeof(*g->slots), SP_GFP_VIEW);
	if (!o->lanes || !o->nodes || !o->log || !c->own || !c->peers ||
	    !g->lanes || !g->slots || sp_memory_views(g))
		return -ENOMEM;
	c->view = v->id;
	c->polled = g->node->sdev->polled;
	/* Where whatever comes is an event, there is nothing to look for. */
	c->spin = c->polled ? sp_spin : 0;
	c->ops = &sp_engine_ops;

	/* The slots of the first view are the ranks of its senders. */
	for (i = 0; i < v->nlanes; i++)
		o->slot[i] = i;
	sp_core_ranks(c, v);
	for (i = 0; i < v->nlanes; i++) {
		struct sp_lane *lane = &o->lanes[i];
		struct sp_slab *slab = lane->node == g->self ?
			g->slab : g->peers[lane->node].slab;
		struct sp_lane_slot *slot = &g->slots[i];

		slot->slab = slab;
		slot->nr = lane->lane;
		slot->addr = v->nodes[lane->node].addr;
		slot->own = lane->node == g->self;
		lane->src = (const struct sp_desc *)(slab->base +
			    sp_layout_desc(&slab->lay, lane->lane));
		sp_lane_init(lane, &first);
		if (lane->node == g->self) {
			struct sp_lane_tx *tx = &g->lanes[lane->lane];

			spin_lock_init(&tx->lock);
			tx->ring = slab->ring[lane->lane];
			tx->slot = i;
			lane->desc = (struct sp_desc *)lane->src;
			sp_tx_init(&tx->tx, lane->desc, o->depth,
				   g->config.window, i, v->nlanes);
			c->own[lane->lane].tx = &tx->tx;
		} else {
			lane->desc = kvcalloc(o->depth, sizeof(*lane->desc),
					      SP_GFP_VIEW);
			if (!lane->desc)
				return -ENOMEM;
		}
	}
	for (i = 0; i < v->nnodes; i++) {
		struct sp_peer *p = &c->peers[i];
		struct sp_slab *slab = g->peers[i].slab;

		if (i == g->self)
			continue;
		p->bank[0] = (const struct sp_cell *)(slab->base +
						      sp_layout_row(&slab->lay, 0));
		p->bank[1] = (const struct sp_cell *)(slab->base +
						      sp_layout_row(&slab->lay, 1));
		p->open = ~0ull;
		p->pushed = g->peers[i].pushed;
	}
	return sp_slow_init(g);
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
	u32 i;

	sp_slow_exit(g);
	for (i = 0; o->lanes && g->slots && i < g->nslots; i++)
		if (!g->slots[i].own)
			kvfree(o->lanes[i].desc);
	for (i = 0; i < g->npeers; i++) {
		kvfree(g->peers[i].report);
		kvfree(g->peers[i].early);
		kfree(g->peers[i].pushed);
		g->peers[i].report = NULL;
		g->peers[i].early = NULL;
		g->peers[i].pushed = NULL;
	}
	kvfree(g->reports[0]);
	kvfree(g->reports[1]);
	kvfree(g->spare);
	kvfree(g->next);
	kfree(g->slots);
	kfree(g->lanes);
	g->reports[0] = NULL;
	g->reports[1] = NULL;
	g->spare = NULL;
	g->next = NULL;
	g->slots = NULL;
	kvfree(c->peers);
	kfree(c->own);
	vfree(o->log);
	kfree(o->nodes);
	kfree(o->lanes);
	g->lanes = NULL;
	c->peers = NULL;
	c->own = NULL;
	o->log = NULL;
	o->nodes = NULL;
	o->lanes = NULL;
	for (i = 0; i < g->npeers; i++) {
		sp_slab_free(g->peers[i].slab);
		g->peers[i].slab = NULL;
	}
	sp_slab_free(g->slab);
	g->slab = NULL;
}

/**
 * sp_memory_make() - make slabs for all nodes of a view, and what the protocol
 * needs
 * @g: the group, its view ranked and its peers there
 *
 * Charged to the calling task's cgroup. Context: may sleep.
 *
 * Return: 0; -ENOMEM, or as sp_slab_alloc(): then nothing is left of it.
 */
int sp_memory_make(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	struct sp_layout lay;
	int ret;
	u32 i;

	for (i = 0; i < v->nnodes; i++) {
		struct sp_slab *slab;

		sp_memory_layout(v, &g->config, i, &lay);
		slab = sp_slab_alloc(g->node->sdev, &lay);
		if (IS_ERR(slab)) {
			ret = PTR_ERR(slab);
			goto err_free;
		}
		if (i == g->self)
			g->slab = slab;
		else
			g->peers[i].slab = slab;
	}
	ret = sp_memory_core(g);
	if (!ret)
		return 0;

err_free:
	sp_memory_free(g);
	return ret;
}
