// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers of large objects between the nodes of a view (RDMC, sections 3 to 5).
 *
 * Each node walks its own part of the object's schedule (core/schedule.c). It
 * says READY to those who send to it, with a key to its copy of the object, and
 * then GO for each block, in the order of its own steps: it is ready for few of
 * them ahead, so that nodes keep step (section 4.2; Documentation/rdmc.rst has
 * what becomes of it otherwise). A node sends a block
 * when it has it and the peer is ready for it. One mover for each device
 * takes what has come and posts what can be posted, one block of each object in
 * turn, so that objects share a link fairly and all of them one path of
 * completions.
 *
 *   running   between sp_rdmc_start() and sp_rdmc_end() or _stop(): under sp_ctl
 *   stopping  the group knows nothing of it any more; it goes when nothing of
 *             it is on the way and those who let it write were told STOP
 *
 * A key is taken back when the last block that the schedule gives its holder has
 * come, or when he has said STOP, or with the link: until then the object's
 * memory stays. So nothing can be written to memory that is used otherwise, and
 * no live peer writes with a dead key, which would break the link.
 */
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "engine.h"
#include "rdmc.h"

#define SP_EDGE_FLIGHT	2U	/* blocks on the way from one node to another */
#define SP_AHEAD_BYTES	(512U << 10)	/* a node is ready for so much, */
#define SP_AHEAD	2U		/* and for so many blocks at least */
#define SP_ONE_BYTES	65536U	/* where it is ready for one: so much of small ones */
#define SP_STOP_MS	10000	/* a peer says STOP within this time */
#define SP_READIES	(SP_MAX_MEMBERS * SP_LANE_OBJECTS)

/**
 * struct sp_grant - a peer may write blocks of an object
 * @mr: the key
 * @object: where; held
 * @on_object: on its list, under the mover's lock
 * @link: the peer's
 * @t: the transfer, NULL once that is stopping
 * @node: rank of the peer in it
 * @handle: what the peer knows it by
 * @left: blocks that are still to come by it
 * @total: all that come by it
 * @from: those that had come before it
 * @stopped: jiffies when its transfer was stopped
 */
struct sp_grant {
	struct ib_mr *mr;
	struct sp_object *object;
	struct list_head on_object;
	struct sp_link *link;
	struct sp_transfer *t;
	u32 node;
	u32 handle;
	u32 left;
	u32 total;
	u32 from;
	unsigned long stopped;
};

/**
 * struct sp_edge - another node in a transfer
 * @link: to it, held; NULL: there is none now, or nothing goes over it
 * @total: blocks that it gets from here
 * @posted: of these, posted
 * @walk: of these, passed by the walk through the schedule
 * @flight: of these, on the way; completion handlers decrement it
 * @upto: so many it is ready for; a softirq writes it, too
 * @ready: it has said READY on @link
 * @full: and that it has the whole object
 * @stop: it is to be told STOP
 * @handle: what it calls that
 * @iova: where its copy begins
 * @rkey: key to that
 * @expect: blocks that come from it
 * @asked: of these, we are ready for so many
 * @told: and it was told of so many
 * @got: of these, come
 * @step: where to look for the next of them
 * @tell: it is to be told READY
 * @grant: its permission, NULL: none
 */
struct sp_edge {
	struct sp_link *link;
	u32 total;
	u32 posted;
	u32 walk;
	atomic_t flight;
	u32 upto;
	bool ready;
	bool full;
	bool stop;
	u32 handle;
	u64 iova;
	u32 rkey;
	u32 expect;
	u32 asked;
	u32 told;
	u32 got;
	u32 step;
	bool tell;
	struct sp_grant *grant;
};

/**
 * struct sp_transfer - an object on its way to the nodes of a view
 * @list: on the mover's list
 * @mover: the mover
 * @g: the group; NULL: stopping
 * @view: number of the view
 * @lane: rank of the object's lane
 * @count: number of its descriptor there
 * @object: the object; held
 * @sched: this node's part
 * @n: nodes
 * @root: rank of the node that has the object
 * @self: rank of this node
 * @block: bytes of a block
 * @step: where the walk is
 * @turn: the step up to which we are ready
 * @asked: blocks that we are ready for, from all
 * @came: of these, come
 * @last: rank of the node that sends the last of them
 * @rcu: for who looks at @edges by a link's @outs
 * @held: blocks that are here
 * @have: which; NULL: all were when it began
 * @moved: how it fares
 * @rack: for the schedule
 * @edges: by rank of the node
 */
struct sp_transfer {
	struct list_head list;
	struct sp_mover *mover;
	struct sp_group *g;
	u64 view;
	u32 lane;
	u64 count;
	struct sp_object *object;
	struct sp_schedule sched;
	u32 n;
	u32 root;
	u32 self;
	u32 block;
	u32 step;
	u32 turn;
	u32 asked;
	u32 came;
	u32 last;
	struct rcu_head rcu;
	u32 held;
	unsigned long *have;
	struct sp_moved moved;
	u8 rack[SP_MAX_MEMBERS];
	struct sp_edge edges[];
};

/* A READY that came before its transfer began here. */
struct sp_early_ready {
	struct list_head list;
	struct sp_msg_ready msg;
};

/**
 * sp_rdmc_stir() - let the mover look
 * @sdev: the device
 *
 * Context: any.
 */
void sp_rdmc_stir(struct sp_device *sdev)
{
	queue_work(sp_wq, &sdev->mover.work);
}

/**
 * sp_rdmc_room() - there is room in a send queue, or the peer has receives
 * @sdev: the device
 *
 * Context: any.
 */
void sp_rdmc_room(struct sp_device *sdev)
{
	/* Pairs with the barrier in sp_rdmc_move(): it finds room, or we see. */
	smp_mb();
	if (READ_ONCE(sdev->mover.stalled))
		sp_rdmc_stir(sdev);
}

/**
 * sp_rdmc_bulk() - blocks have come or landed, or can be posted now
 * @link: the link
 *
 * Context: any.
 */
void sp_rdmc_bulk(struct sp_link *link)
{
	struct sp_mover *mover = &link->node->sdev->mover;
	unsigned long flags;

	spin_lock_irqsave(&mover->busy_lock, flags);
	if (list_empty(&link->on_busy))
		list_add_tail(&link->on_busy, &mover->busy);
	spin_unlock_irqrestore(&mover->busy_lock, flags);
	sp_rdmc_stir(link->node->sdev);
}

/* Take back a key. Under the mover's lock, or with the link gone. */
static void sp_grant_drop(struct sp_link *link, u32 handle,
			  struct sp_grant *grant)
{
	xa_erase(&link->grants, handle);
	if (grant->t)
		grant->t->edges[grant->node].grant = NULL;
	sp_mr_revoke(grant->mr);
	list_del(&grant->on_object);
	sp_object_unuse(grant->object);
	kfree(grant);
}

/**
 * sp_rdmc_bulk_gone() - nothing of a link's blocks is on the way any more
 * @link: the link, down
 *
 * Context: may sleep.
 */
void sp_rdmc_bulk_gone(struct sp_link *link)
{
	struct sp_mover *mover = &link->node->sdev->mover;
	struct sp_grant *grant;
	unsigned long handle;

	mutex_lock(&mover->lock);
	spin_lock_irq(&mover->busy_lock);
	list_del_init(&link->on_busy);
	spin_unlock_irq(&mover->busy_lock);
	xa_for_each(&link->grants, handle, grant)
		sp_grant_drop(link, handle, grant);
	xa_destroy(&link->grants);
	mutex_unlock(&mover->lock);
	sp_rdmc_stir(link->node->sdev);
}

static struct sp_transfer *sp_rdmc_find(struct sp_group *g, u64 view, u32 lane,
					u64 count)
{
	struct sp_mover *mover = &g->node->sdev->mover;
	struct sp_transfer *t;

	lockdep_assert_held(&mover->lock);
	list_for_each_entry(t, &mover->transfers, list)
		if (t->g == g && t->view == view && t->lane == lane &&
		    t->count == count)
			return t;
	return NULL;
}

static u32 sp_transfer_rank(const struct sp_transfer *t, u32 peer)
{
	return (peer + t->root) % t->n;
}

/* What the schedule has for this node, counted by peer. */
static void sp_transfer_count(struct sp_transfer *t)
{
	unsigned int peer;
	u32 block;
	u32 step;

	for (step = 0; step < sp_schedule_steps(&t->sched); step++) {
		if (sp_schedule_send(&t->sched, step, &peer, &block))
			t->edges[sp_transfer_rank(t, peer)].total++;
		if (sp_schedule_recv(&t->sched, step, &peer, &block))
			t->edges[sp_transfer_rank(t, peer)].expect++;
	}
}

/* The peer of an edge is not ready any more. */
static void sp_edge_unready(struct sp_edge *e)
{
	if (e->ready && e->handle &&
	    xa_load(&e->link->outs, e->handle) == e)
		xa_erase(&e->link->outs, e->handle);
	e->ready = false;
}

static void sp_edge_unlink(struct sp_edge *e)
{
	if (e->link) {
		sp_edge_unready(e);
		sp_link_put(e->link);
	}
	e->link = NULL;
}

static void sp_transfer_free(struct sp_transfer *t)
{
	u32 i;

	for (i = 0; i < t->n; i++)
		sp_edge_unlink(&t->edges[i]);
	sp_object_unuse(t->object);
	bitmap_free(t->have);
	kfree_rcu(t, rcu);
}

/* A READY on this link: what the peer lacks is sent from now on. */
static void sp_edge_ready(struct sp_transfer *t, struct sp_edge *e,
			  const struct sp_msg_ready *msg)
{
	u32 i;

	sp_edge_unready(e);
	e->ready = true;
	e->full = !msg->handle;
	e->handle = msg->handle;
	e->iova = msg->iova;
	e->rkey = msg->rkey;
	WRITE_ONCE(e->upto, msg->upto);
	/* Without memory for it the link would never be used again: it breaks. */
	if (msg->handle &&
	    xa_err(xa_store(&e->link->outs, msg->handle, e, GFP_KERNEL)))
		sp_link_break(e->link, -ENOMEM, "no memory for an object");
	e->posted = min(msg->done, e->total);
	/* What was passed by may have to be sent again. */
	t->step = 0;
	for (i = 0; i < t->n; i++)
		t->edges[i].walk = 0;
}

/* Use the link to a node, if it is one that both can use. */
static void sp_edge_link(struct sp_edge *e, const struct sp_peer_node *pn)
{
	if (e->link || !pn->open || (!e->total && !e->expect))
		return;
	e->link = pn->user.link;
	kref_get(&e->link->ref);
	e->tell = e->expect;
	sp_bulk_want(e->link);
}

/* READYs of a node for a transfer that begins only now. */
static void sp_rdmc_early(struct sp_transfer *t, struct sp_peer_node *pn)
{
	struct sp_edge *e = &t->edges[pn->rank];
	struct sp_early_ready *early, *next;

	list_for_each_entry_safe(early, next, &pn->readies, list) {
		const struct sp_msg_ready *msg = &early->msg;

		if (msg->view != t->view || msg->lane != t->lane ||
		    msg->count != t->count)
			continue;
		if (e->link != pn->user.link)
			continue;
		sp_edge_ready(t, e, msg);
		list_del(&early->list);
		pn->nreadies--;
		kfree(early);
	}
}

/**
 * sp_rdmc_start() - begin to transfer an object in a view
 * @g: the group
 * @rank: rank of the object's lane
 * @count: number of its descriptor
 * @object: the object
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_rdmc_start(struct sp_group *g, u32 rank, u64 count,
		  struct sp_object *object)
{
	const struct sp_lane *lane = sp_order_lane(&g->core.order, rank);
	struct sp_device *sdev = g->node->sdev;
	struct sp_mover *mover = &sdev->mover;
	enum sp_schedule_kind kind;
	struct sp_transfer *t;
	u32 n = g->view.nnodes;
	u32 blocks, i;
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (n < 2)
		return 0;
	t = kzalloc(struct_size(t, edges, n), GFP_KERNEL_ACCOUNT);
	if (!t)
		return -ENOMEM;
	t->mover = mover;
	t->g = g;
	t->view = g->view.id;
	t->lane = rank;
	t->count = count;
	t->n = n;
	t->root = lane->node;
	t->self = g->self;
	t->block = sp_block_size(object->len, g->config.block);
	blocks = DIV_ROUND_UP(object->len, t->block);
	for (i = 0; i < n; i++)
		t->rack[i] = sp_view_rack(&g->view, sp_transfer_rank(t, i));
	kind = sp_desc_kind(object->flags);
	ret = sp_schedule_init(&t->sched, kind, n,
			       (t->self + n - t->root) % n, blocks,
			       kind == SP_SCHEDULE_HYBRID ? t->rack : NULL);
	if (ret)
		goto err;
	t->moved.len = object->len;
	t->moved.kind = kind;
	t->moved.blocks = blocks;
	t->moved.root = t->root;
	t->moved.begun = ktime_get_ns();
	if (READ_ONCE(object->here)) {
		t->held = blocks;
		t->moved.here = t->moved.begun;
	} else {
		t->have = bitmap_zalloc(blocks, GFP_KERNEL_ACCOUNT);
		ret = -ENOMEM;
		if (!t->have)
			goto err;
	}
	t->object = sp_object_use(object);
	sp_transfer_count(t);

	mutex_lock(&mover->lock);
	for (i = 0; i < n; i++) {
		if (!g->peer[i])
			continue;
		sp_edge_link(&t->edges[i], g->peer[i]);
		sp_rdmc_early(t, g->peer[i]);
	}
	list_add_tail(&t->list, &mover->transfers);
	mutex_unlock(&mover->lock);
	sp_rdmc_stir(sdev);
	return 0;

err:
	kfree(t);
	return ret;
}

/* What comes by a key is of no use any more. */
static void sp_edge_disown(struct sp_edge *e)
{
	if (!e->grant)
		return;
	e->grant->t = NULL;
	e->grant->stopped = jiffies;
	e->grant = NULL;
}

/* The group knows nothing of it any more. Under the mover's lock. */
static void sp_transfer_stop(struct sp_transfer *t)
{
	struct sp_group *g = t->g;
	u32 i;

	if (t->held == t->sched.blocks)
		g->moved[g->nmoved++ % SP_MOVED] = t->moved;
	t->g = NULL;
	for (i = 0; i < t->n; i++) {
		struct sp_edge *e = &t->edges[i];

		e->tell = false;
		e->stop = e->link && e->ready && e->handle &&
			  e->posted < e->total;
		sp_edge_disown(e);
	}
}

/**
 * sp_rdmc_end() - every node has an object
 * @g: the group
 * @rank: rank of its lane
 * @count: number of its descriptor
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_rdmc_end(struct sp_group *g, u32 rank, u64 count)
{
	struct sp_mover *mover = &g->node->sdev->mover;
	struct sp_transfer *t;

	lockdep_assert_held(&sp_ctl);
	mutex_lock(&mover->lock);
	t = sp_rdmc_find(g, g->view.id, rank, count);
	if (t)
		sp_transfer_stop(t);
	mutex_unlock(&mover->lock);
	sp_rdmc_stir(g->node->sdev);
}

/* Say STOP for READYs that nothing will come of. */
static void sp_rdmc_refuse(struct sp_link *link, u32 handle, u32 posted)
{
	struct sp_msg_stop msg = { .handle = handle, .posted = posted };

	if (handle && link->state == SP_LINK_UP &&
	    sp_link_say(link, &msg.hdr, SP_MSG_STOP, sizeof(msg)))
		sp_link_break(link, -ENOMEM, "no memory for a message");
}

/**
 * sp_rdmc_forget() - READYs of a node for what has not begun are out of date
 * @pn: the node
 *
 * Context: sp_ctl is held.
 */
void sp_rdmc_forget(struct sp_peer_node *pn)
{
	struct sp_early_ready *early, *next;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_safe(early, next, &pn->readies, list) {
		if (early->msg.view >= pn->g->view.id && !pn->g->ending &&
		    pn->rank >= 0 && pn->user.link &&
		    pn->user.link->state == SP_LINK_UP)
			continue;
		if (pn->user.link)
			sp_rdmc_refuse(pn->user.link, early->msg.handle,
				       early->msg.done);
		list_del(&early->list);
		pn->nreadies--;
		kfree(early);
	}
}

/**
 * sp_rdmc_exit() - a node's memory is about to go
 * @pn: the node; no link is left
 */
void sp_rdmc_exit(struct sp_peer_node *pn)
{
	struct sp_early_ready *early, *next;

	list_for_each_entry_safe(early, next, &pn->readies, list)
		kfree(early);
}

/**
 * sp_rdmc_stop() - end all transfers of a group: the view ends, or the group
 * @g: the group
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_rdmc_stop(struct sp_group *g)
{
	struct sp_mover *mover = &g->node->sdev->mover;
	struct sp_transfer *t;

	lockdep_assert_held(&sp_ctl);
	mutex_lock(&mover->lock);
	list_for_each_entry(t, &mover->transfers, list)
		if (t->g == g)
			sp_transfer_stop(t);
	mutex_unlock(&mover->lock);
	sp_rdmc_stir(g->node->sdev);
}

/**
 * sp_rdmc_cut() - the link to a node is down
 * @pn: the node
 *
 * Context: sp_ctl is held.
 */
void sp_rdmc_cut(struct sp_peer_node *pn)
{
	struct sp_mover *mover = &pn->g->node->sdev->mover;
	struct sp_transfer *t;

	lockdep_assert_held(&sp_ctl);
	sp_rdmc_forget(pn);
	if (pn->rank < 0)
		return;
	mutex_lock(&mover->lock);
	list_for_each_entry(t, &mover->transfers, list) {
		struct sp_edge *e;

		if (t->g != pn->g || (u32)pn->rank >= t->n)
			continue;
		e = &t->edges[pn->rank];
		e->tell = false;
		/* What comes by it still is not counted: it is sent again. */
		sp_edge_disown(e);
		sp_edge_unlink(e);
	}
	mutex_unlock(&mover->lock);
	sp_rdmc_stir(pn->g->node->sdev);
}

/**
 * sp_rdmc_mend() - there is a link to a node, and both can use it
 * @pn: the node
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_rdmc_mend(struct sp_peer_node *pn)
{
	struct sp_mover *mover = &pn->g->node->sdev->mover;
	struct sp_transfer *t;

	lockdep_assert_held(&sp_ctl);
	mutex_lock(&mover->lock);
	list_for_each_entry(t, &mover->transfers, list) {
		if (t->g != pn->g)
			continue;
		sp_edge_link(&t->edges[pn->rank], pn);
		sp_rdmc_early(t, pn);
	}
	mutex_unlock(&mover->lock);
	sp_rdmc_stir(pn->g->node->sdev);
}

/* A READY for what has not begun here: keep it. */
static bool sp_rdmc_keep(struct sp_peer_node *pn, const struct sp_msg_ready *msg)
{
	struct sp_early_ready *early;

	if (pn->nreadies >= SP_READIES)
		return false;
	early = kmalloc(sizeof(*early), GFP_KERNEL);
	if (!early)
		return false;
	early->msg = *msg;
	list_add_tail(&early->list, &pn->readies);
	pn->nreadies++;
	return true;
}

/**
 * sp_rdmc_ready() - a node takes blocks from us
 * @link: from the peer of this link
 * @msg: what it says
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_rdmc_ready(struct sp_link *link, const struct sp_msg_ready *msg)
{
	struct sp_group *g = sp_group_find_gid(link->node, msg->gid);
	struct sp_peer_node *pn = NULL;
	struct sp_transfer *t = NULL;
	struct sp_mover *mover = &link->node->sdev->mover;

	lockdep_assert_held(&sp_ctl);
	if (g && g->ready && !g->ending)
		pn = sp_peer_find(g, &link->peer);
	if (!pn || pn->user.link != link || !pn->trusted ||
	    msg->view < g->view.id ||
	    msg->view > g->view.id + 1) {
		sp_rdmc_refuse(link, msg->handle, msg->done);
		return;
	}
	mutex_lock(&mover->lock);
	if (msg->view == g->view.id)
		t = sp_rdmc_find(g, msg->view, msg->lane, msg->count);
	/* Without a link of its own it takes it when it has that. */
	if (t && t->edges[pn->rank].link == link)
		sp_edge_ready(t, &t->edges[pn->rank], msg);
	else
		t = NULL;
	mutex_unlock(&mover->lock);
	if (t)
		sp_rdmc_stir(link->node->sdev);
	else if (!sp_rdmc_keep(pn, msg))
		sp_link_break(link, -ENOBUFS, "no room for what it is ready for");
}

/* Of two that pass each other the one that says more counts. */
static void sp_edge_upto(u32 *at, u32 upto)
{
	u32 was = READ_ONCE(*at);

	while (was < upto) {
		u32 now = cmpxchg(at, was, upto);

		if (now == was)
			break;
		was = now;
	}
}

/**
 * sp_rdmc_go() - a node is ready for more blocks
 * @link: from the peer of this link
 * @msg: what it says
 *
 * Context: softirq.
 *
 * Return: false when what it speaks of is not known, as what it said before may
 * not have been heard yet.
 */
bool sp_rdmc_go(struct sp_link *link, const struct sp_msg_go *msg)
{
	struct sp_edge *e;

	rcu_read_lock();
	e = xa_load(&link->outs, msg->handle);
	if (e)
		sp_edge_upto(&e->upto, msg->upto);
	rcu_read_unlock();
	if (e)
		sp_rdmc_stir(link->node->sdev);
	return e;
}

/**
 * sp_rdmc_go_late() - the same, when all that was said before was heard
 * @link: from the peer of this link
 * @msg: what it says
 *
 * Context: sp_ctl is held.
 */
void sp_rdmc_go_late(struct sp_link *link, const struct sp_msg_go *msg)
{
	struct sp_early_ready *early;
	struct sp_peer_node *pn;
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	if (sp_rdmc_go(link, msg))
		return;
	/* The transfer has not begun here, or it was stopped. */
	list_for_each_entry(g, &link->node->groups, on_node)
		list_for_each_entry(pn, &g->peers, list) {
			if (pn->user.link != link)
				continue;
			list_for_each_entry(early, &pn->readies, list)
				if (early->msg.handle == msg->handle)
					sp_edge_upto(&early->msg.upto,
						     msg->upto);
		}
}

/*
 * So many were posted by a key, and no more come: what landed last may not have
 * been noticed here. True when some are still to be.
 */
static bool sp_grant_expects(struct sp_grant *grant, u32 posted)
{
	u32 total = grant->from + grant->total;
	u32 came = total - grant->left;

	if (posted <= came || posted > total)
		return false;
	grant->left = posted - came;
	grant->total = posted - grant->from;
	return true;
}

/**
 * sp_rdmc_stopped() - a node writes nothing more by a handle
 * @link: from the peer of this link
 * @msg: what it says
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_rdmc_stopped(struct sp_link *link, const struct sp_msg_stop *msg)
{
	struct sp_mover *mover = &link->node->sdev->mover;
	struct sp_grant *grant;

	mutex_lock(&mover->lock);
	grant = xa_load(&link->grants, msg->handle);
	if (grant && !sp_grant_expects(grant, msg->posted))
		sp_grant_drop(link, msg->handle, grant);
	mutex_unlock(&mover->lock);
}

/* The whole object is here. */
static void sp_transfer_here(struct sp_transfer *t)
{
	t->moved.here = ktime_get_ns();
	WRITE_ONCE(t->g->counters.objects, t->g->counters.objects + 1);
	WRITE_ONCE(t->g->counters.object_bytes,
		   t->g->counters.object_bytes + t->object->len);
	/* I in rdmc.h. */
	smp_store_release(&t->object->here, true);
	sp_group_kick(t->g);
}

/* The next block from a node has come. */
static int sp_transfer_came(struct sp_transfer *t, struct sp_edge *e, u32 node,
			    u32 ordinal)
{
	unsigned int peer;
	u32 block;

	if (e->got >= e->asked || (e->got & SP_IMM_MASK) != ordinal)
		return -EPROTO;
	while (!sp_schedule_recv(&t->sched, e->step, &peer, &block) ||
	       sp_transfer_rank(t, peer) != node)
		e->step++;
	e->step++;
	e->got++;
	t->came++;
	t->moved.first = t->moved.first ?: ktime_get_ns();
	WRITE_ONCE(t->g->counters.blocks_received,
		   t->g->counters.blocks_received + 1);
	if (!t->have || __test_and_set_bit(block, t->have))
		return 0;
	/* Before it is handed on. */
	sp_slab_arrived_part(t->object->slab, (u64)block * t->block, t->block);
	if (++t->held == t->sched.blocks)
		sp_transfer_here(t);
	return 0;
}

/* Take what has come by a link. */
static bool sp_mover_take(struct sp_link *link)
{
	bool did = false;
	u32 imm;

	while (sp_bulk_take(link, &imm)) {
		u32 handle = imm >> SP_IMM_SHIFT;
		struct sp_grant *grant = xa_load(&link->grants, handle);
		struct sp_transfer *t;
		struct sp_edge *e;

		did = true;
		if (!grant) {
			sp_link_break(link, -EPROTO, "a block nobody waits for");
			return did;
		}
		t = grant->t;
		e = t ? &t->edges[grant->node] : NULL;
		if (t && sp_transfer_came(t, e, grant->node,
					  imm & SP_IMM_MASK)) {
			sp_link_break(link, -EPROTO, "a block out of order");
			return did;
		}
		if (!--grant->left)
			sp_grant_drop(link, handle, grant);
	}
	return did;
}

/* Let a node write its blocks, and say so. */
static int sp_edge_tell(struct sp_transfer *t, struct sp_edge *e, u32 node)
{
	struct sp_msg_ready msg = {
		.hdr = { SP_MSG_READY, sizeof(msg) },
		.gid = t->g->gid,
		.view = t->view,
		.count = t->count,
		.lane = t->lane,
		.done = e->got,
		.upto = e->asked,
	};
	struct sp_grant *grant = NULL;
	u64 ticket;
	int ret;

	if (!sp_post_can_send(e->link))
		return -EAGAIN;
	if (t->have && e->got < e->expect) {
		grant = kzalloc(sizeof(*grant), GFP_KERNEL);
		if (!grant)
			return -ENOMEM;
		grant->left = e->expect - e->got;
		grant->total = grant->left;
		grant->from = e->got;
		/* In turn: a STOP that is late must not meet another. */
		ret = xa_alloc_cyclic(&e->link->grants, &msg.handle, grant,
				      XA_LIMIT(1, SP_IMM_MASK),
				      &e->link->next_grant, GFP_KERNEL);
		if (ret < 0)
			goto err_free;
		grant->mr = sp_mr_grant(e->link, t->object->slab);
		if (IS_ERR(grant->mr)) {
			ret = PTR_ERR(grant->mr);
			goto err_erase;
		}
		msg.iova = grant->mr->iova;
		msg.rkey = grant->mr->rkey;
	}
	ret = sp_post_send(e->link, &msg.hdr, false, NULL, 0, &ticket);
	if (ret)
		goto err_revoke;
	e->tell = false;
	e->told = msg.upto;
	if (!grant)
		return 0;
	grant->handle = msg.handle;
	grant->object = sp_object_use(t->object);
	list_add_tail(&grant->on_object, &grant->object->grants);
	grant->link = e->link;
	grant->t = t;
	grant->node = node;
	e->grant = grant;
	return 0;

err_revoke:
	if (grant)
		sp_mr_revoke(grant->mr);
err_erase:
	if (grant)
		xa_erase(&e->link->grants, msg.handle);
err_free:
	kfree(grant);
	return ret;
}

/*
 * Be ready for what comes next in the order of the steps: for as much as may
 * come while our word is on its way, and what comes from one node in a row.
 */
static void sp_transfer_ask(struct sp_transfer *t)
{
	u32 ahead = max(SP_AHEAD_BYTES / t->block, SP_AHEAD);
	unsigned int peer;
	u32 block, node;

	if (t->sched.kind >= SP_SCHEDULE_PIPELINE && !is_power_of_2(t->n))
		ahead = max(SP_ONE_BYTES / t->block, 1U);
	while (t->have && t->turn < sp_schedule_steps(&t->sched)) {
		if (!sp_schedule_recv(&t->sched, t->turn, &peer, &block)) {
			t->turn++;
			continue;
		}
		node = sp_transfer_rank(t, peer);
		if (t->asked - t->came >= ahead &&
		    (node != t->last ||
		     t->asked - t->came > max(ahead, SP_EDGE_FLIGHT)))
			return;
		t->edges[node].asked++;
		t->asked++;
		t->last = node;
		t->turn++;
	}
}

static int sp_edge_go(struct sp_edge *e)
{
	struct sp_msg_go go = {
		.hdr = { SP_MSG_GO, sizeof(go) },
		.handle = e->grant->handle,
		.upto = e->asked,
	};
	u64 ticket;
	int ret;

	ret = sp_post_send(e->link, &go.hdr, false, NULL, 0, &ticket);
	if (!ret)
		e->told = go.upto;
	return ret;
}

/* Say READY and GO where it is due, and STOP. True when there was no room. */
static bool sp_transfer_tell(struct sp_transfer *t)
{
	bool stalled = false;
	u32 i;

	if (t->g)
		sp_transfer_ask(t);
	for (i = 0; i < t->n; i++) {
		struct sp_edge *e = &t->edges[i];
		struct sp_msg_stop stop = {
			.hdr = { SP_MSG_STOP, sizeof(stop) },
			.handle = e->handle,
			.posted = e->posted,
		};
		u64 ticket;
		int ret = 0;

		if (!e->link)
			continue;
		if (e->tell) {
			ret = sp_edge_tell(t, e, i);
		} else if (e->grant && e->told != e->asked) {
			ret = sp_edge_go(e);
		} else if (e->stop && !atomic_read_acquire(&e->flight)) {
			ret = sp_post_send(e->link, &stop.hdr, false, NULL, 0,
					   &ticket);
			/* With the link all keys go. */
			e->stop = ret == -EAGAIN;
		}
		if (ret == -EAGAIN)
			stalled = true;
		else if (ret && ret != -ENOTCONN)
			sp_link_break(e->link, ret, "granting a key failed");
	}
	return stalled;
}

/* Post the next block, if it is here and can be. */
static bool sp_transfer_send(struct sp_transfer *t)
{
	while (t->step < sp_schedule_steps(&t->sched)) {
		const struct sp_slab *slab = t->object->slab;
		unsigned int peer;
		struct sp_edge *e;
		u32 block, len;
		u64 off;

		if (!sp_schedule_send(&t->sched, t->step, &peer, &block)) {
			t->step++;
			continue;
		}
		e = &t->edges[sp_transfer_rank(t, peer)];
		if (e->ready && (e->full || e->walk < e->posted)) {
			e->walk++;
			t->step++;
			continue;
		}
		if (t->have && !test_bit(block, t->have))
			return false;
		if (!e->link || !e->ready || e->posted >= READ_ONCE(e->upto) ||
		    atomic_read_acquire(&e->flight) >= SP_EDGE_FLIGHT)
			return false;
		off = (u64)block * t->block;
		len = min_t(u64, t->block, t->object->len - off);
		if (!sp_bulk_can(e->link, sp_bulk_slots(e->link, slab, len)))
			return false;
		if (sp_bulk_write(e->link, slab, off, len, e->iova, e->rkey,
				  e->handle << SP_IMM_SHIFT |
				  (e->posted & SP_IMM_MASK), &e->flight))
			return false;
		e->posted++;
		e->walk++;
		t->step++;
		t->moved.sent = ktime_get_ns();
		t->moved.first = t->moved.first ?: t->moved.sent;
		WRITE_ONCE(t->g->counters.blocks_sent,
			   t->g->counters.blocks_sent + 1);
		return true;
	}
	return false;
}

static bool sp_transfer_over(const struct sp_transfer *t)
{
	u32 i;

	if (t->g)
		return false;
	for (i = 0; i < t->n; i++)
		if (t->edges[i].stop || atomic_read_acquire(&t->edges[i].flight))
			return false;
	return true;
}

/* The links by which blocks have come; in turn, so that none is left out. */
static struct sp_link *sp_mover_busy(struct sp_mover *mover)
{
	struct sp_link *link;

	spin_lock_irq(&mover->busy_lock);
	link = list_first_entry_or_null(&mover->busy, struct sp_link, on_busy);
	if (link)
		list_del_init(&link->on_busy);
	spin_unlock_irq(&mover->busy_lock);
	return link;
}

/**
 * sp_rdmc_move() - take what has come, post what can be posted
 * @work: of a device's mover
 */
void sp_rdmc_move(struct work_struct *work)
{
	struct sp_mover *mover = container_of(work, struct sp_mover, work);
	struct sp_transfer *t, *next;
	struct sp_link *link;
	bool stalled;
	bool did;

	mutex_lock(&mover->lock);
	/* What makes room from here on stirs us, should we need it. */
	WRITE_ONCE(mover->stalled, true);
	/* Pairs with the barrier in sp_rdmc_room(). */
	smp_mb();
	do {
		did = false;
		stalled = false;
		while ((link = sp_mover_busy(mover)))
			did |= sp_mover_take(link);
		list_for_each_entry_safe(t, next, &mover->transfers, list) {
			stalled |= sp_transfer_tell(t);
			if (t->g)
				did |= sp_transfer_send(t);
			if (!sp_transfer_over(t))
				continue;
			list_del(&t->list);
			sp_transfer_free(t);
		}
		if (!did)
			break;
		/* Who waits for the lock holds sp_ctl. */
		mutex_unlock(&mover->lock);
		cond_resched();
		mutex_lock(&mover->lock);
	} while (did);
	if (!stalled)
		WRITE_ONCE(mover->stalled, false);
	mutex_unlock(&mover->lock);
}

/**
 * sp_rdmc_overdue() - does a peer not give up keys of which nothing can come
 * @link: the link, up
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: true when it has had its time: with the link they go, too.
 */
bool sp_rdmc_overdue(struct sp_link *link)
{
	struct sp_mover *mover = &link->node->sdev->mover;
	struct sp_grant *grant;
	unsigned long handle;
	bool overdue = false;

	mutex_lock(&mover->lock);
	xa_for_each(&link->grants, handle, grant)
		overdue |= !grant->t &&
			   time_after(jiffies, grant->stopped +
				      msecs_to_jiffies(SP_STOP_MS));
	mutex_unlock(&mover->lock);
	return overdue;
}

/**
 * sp_rdmc_fenced() - can no node write to an object that is in the view no more
 * @g: the group
 * @object: one of its objects, of which no transfer runs
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: false when one still has a key to it.
 */
bool sp_rdmc_fenced(struct sp_group *g, struct sp_object *object)
{
	struct sp_mover *mover = &g->node->sdev->mover;
	struct sp_grant *grant;
	bool fenced = true;

	lockdep_assert_held(&sp_ctl);
	mutex_lock(&mover->lock);
	list_for_each_entry(grant, &object->grants, on_object)
		if (sp_view_find_node(&g->view, &grant->link->peer) < 0)
			fenced = false;
	mutex_unlock(&mover->lock);
	return fenced;
}

/**
 * sp_rdmc_show() - what a group has on its way
 * @m: where it goes
 * @g: the group
 *
 * Context: may sleep.
 */
void sp_rdmc_show(struct seq_file *m, struct sp_group *g)
{
	struct sp_mover *mover = &g->node->sdev->mover;
	struct sp_transfer *t;
	u32 i;

	mutex_lock(&mover->lock);
	for (i = g->nmoved - min_t(u32, g->nmoved, SP_MOVED); i != g->nmoved; i++) {
		const struct sp_moved *was = &g->moved[i % SP_MOVED];

		seq_printf(m, "moved %u bytes %u %s root %u blocks %u begun_ns %llu first_ns %llu here_ns %llu sent_ns %llu\n",
			   i, was->len, sp_schedule_name(was->kind), was->root,
			   was->blocks, was->begun, was->first, was->here,
			   was->sent);
	}
	list_for_each_entry(t, &mover->transfers, list) {
		if (t->g != g)
			continue;
		seq_printf(m, "object lane %u count %llu bytes %u %s root %u blocks %u held %u step %u of %u\n",
			   t->lane, t->count, t->object->len,
			   sp_schedule_name(t->sched.kind), t->root,
			   t->sched.blocks, t->held, t->step,
			   sp_schedule_steps(&t->sched));
		for (i = 0; i < t->n; i++) {
			const struct sp_edge *e = &t->edges[i];

			if (!e->total && !e->expect)
				continue;
			seq_printf(m, "  node %u out %u of %u upto %u flight %d in %u of %u asked %u%s%s%s%s%s%s\n",
				   i, e->posted, e->total, READ_ONCE(e->upto),
				   atomic_read(&e->flight), e->got, e->expect,
				   e->asked,
				   e->link ? "" : " cut",
				   e->link && e->link->bulk &&
				   e->link->bulk->open ? " bulk" : "",
				   e->ready ? " ready" : "",
				   e->full ? " full" : "",
				   e->tell ? " tell" : "",
				   e->grant ? " granted" : "");
		}
	}
	mutex_unlock(&mover->lock);
}
