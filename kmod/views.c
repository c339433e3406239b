// SPDX-License-Identifier: GPL-2.0
/*
 * From view to view on one node: what the nodes tell each other, what is done
 * when they have agreed, and how the next view is installed while programs go
 * on reading and sending.
 *
 * Everything here runs under sp_ctl but for the making of memory. What the
 * passes touch is changed under the engine's lock, within it.
 */
#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "engine.h"
#include "group.h"
#include "observe/observe.h"
#include "rdmc.h"

/* Bytes of a tell on the wire. */
static u32 sp_tell_size(u32 nlanes, u32 nmembers, u32 nasks, u32 njoins)
{
	return sizeof(struct sp_wire_tell) + 2 * nlanes * sizeof(u64) +
	       (nasks + njoins) * sizeof(struct sp_newcomer) + 2 * nmembers;
}

static u8 *sp_tell_put(u8 *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return to + len;
}

static u32 sp_tell_encode(const struct sp_view *v, const struct sp_tell *t,
			  struct sp_wire_tell *w)
{
	const struct sp_proposal *p = &t->accepted;
	u8 *to = (u8 *)w->data;

	w->view = t->view;
	w->suspected = t->suspected;
	w->nlanes = v->nlanes;
	w->nmembers = v->nmembers;
	w->wedged = t->wedged;
	w->nasks = t->nasks;
	w->ballot = p->ballot;
	w->njoins = p->njoins;
	to = sp_tell_put(to, t->counts, v->nlanes * sizeof(t->counts[0]));
	to = sp_tell_put(to, p->trim, v->nlanes * sizeof(p->trim[0]));
	to = sp_tell_put(to, t->asks, t->nasks * sizeof(t->asks[0]));
	to = sp_tell_put(to, p->joins, p->njoins * sizeof(p->joins[0]));
	to = sp_tell_put(to, t->leaves, v->nmembers);
	to = sp_tell_put(to, p->reason, v->nmembers);
	return to - (u8 *)w;
}

static const u8 *sp_tell_get(const u8 *from, void *to, size_t len)
{
	memcpy(to, from, len);
	return from + len;
}

static int sp_tell_decode(const struct sp_wire_tell *w, u32 len,
			  struct sp_tell *t)
{
	struct sp_proposal *p = &t->accepted;
	const u8 *from = (const u8 *)w->data;

	if (len < sizeof(*w) || w->nlanes > SP_MAX_MEMBERS ||
	    w->nmembers > SP_MAX_MEMBERS || w->nasks > SP_MAX_JOINS ||
	    w->njoins > SP_MAX_JOINS ||
	    len != sp_tell_size(w->nlanes, w->nmembers, w->nasks, w->njoins))
		return -EPROTO;
	memset(t, 0, sizeof(*t));
	t->view = w->view;
	t->suspected = w->suspected;
	t->wedged = w->wedged;
	t->nasks = w->nasks;
	p->ballot = w->ballot;
	p->njoins = w->njoins;
	from = sp_tell_get(from, t->counts, w->nlanes * sizeof(t->counts[0]));
	from = sp_tell_get(from, p->trim, w->nlanes * sizeof(p->trim[0]));
	from = sp_tell_get(from, t->asks, w->nasks * sizeof(t->asks[0]));
	from = sp_tell_get(from, p->joins, w->njoins * sizeof(p->joins[0]));
	from = sp_tell_get(from, t->leaves, w->nmembers);
	sp_tell_get(from, p->reason, w->nmembers);
	return 0;
}

/* Say a tell of a view to one node, in parts. */
static void sp_tell_say(struct sp_peer_node *pn, const struct sp_wire_tell *w,
			u32 len, struct sp_msg_tell *msg)
{
	struct sp_link *link = pn->user.link;
	u32 most = SP_MSG_MAX - sizeof(*msg);

	if (!link || link->state != SP_LINK_UP || !pn->trusted)
		return;
	for (msg->off = 0; msg->off < len; msg->off += most) {
		u32 some = min(len - msg->off, most);

		msg->gid = pn->g->gid;
		msg->total = len;
		memcpy(msg->data, (const u8 *)w + msg->off, some);
		if (sp_link_say(link, &msg->hdr, SP_MSG_TELL,
				sizeof(*msg) + some)) {
			/* The next link begins with all of it. */
			sp_link_set_state(link, SP_LINK_DOWN, -ENOMEM);
			return;
		}
	}
}

/* Say the own tell to node @only, or to all that are heard. */
static void sp_change_say(struct sp_group *g, struct sp_peer_node *only)
{
	const struct sp_tell *own = sp_agree_own(&g->agree);
	struct sp_wire_tell *w;
	struct sp_msg_tell *msg;
	u32 len, i;

	w = kmalloc(sizeof(*w) + sizeof(*own), GFP_KERNEL | __GFP_NOFAIL);
	msg = kmalloc(SP_MSG_MAX, GFP_KERNEL | __GFP_NOFAIL);
	len = sp_tell_encode(g->agree.view, own, w);
	if (only) {
		sp_tell_say(only, w, len, msg);
	} else {
		g->unsaid = false;
		for (i = 0; i < g->view.nnodes && !g->ending; i++)
			if (g->peer[i] && !sp_agree_suspects(&g->agree, i))
				sp_tell_say(g->peer[i], w, len, msg);
	}
	kfree(msg);
	kfree(w);
}

/**
 * sp_change_say_to() - say to a node what it may not have heard
 * @pn: the node, its link just up
 *
 * Also how the view before this one ended: it may still be there.
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_change_say_to(struct sp_peer_node *pn)
{
	struct sp_group *g = pn->g;
	struct sp_link *link = pn->user.link;
	u8 *said = (u8 *)g->said;

	lockdep_assert_held(&sp_ctl);
	if (said) {
		struct sp_msg_tell *msg;

		msg = kmalloc(SP_MSG_MAX, GFP_KERNEL | __GFP_NOFAIL);
		sp_tell_say(pn, (struct sp_wire_tell *)(said + sizeof(u64)),
			    *(u64 *)said, msg);
		kfree(msg);
	}
	if (link == pn->user.link)
		sp_change_say(g, pn);
}

/* Keep what this node has said last of a view that is over. */
static void sp_change_keep(struct sp_group *g)
{
	struct sp_wire_tell *w;
	u8 *said;

	said = kmalloc(sizeof(u64) + sizeof(*w) + sizeof(struct sp_tell),
		       GFP_KERNEL | __GFP_NOFAIL);
	w = (struct sp_wire_tell *)(said + sizeof(u64));
	*(u64 *)said = sp_tell_encode(g->agree.view, sp_agree_own(&g->agree), w);
	kfree(g->said);
	g->said = (void *)said;
}

/**
 * sp_change_told() - a part of what a node tells has come
 * @g: the group
 * @link: from the peer of this link
 * @msg: the part; its length covers the header at least
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_change_told(struct sp_group *g, struct sp_link *link,
		    const struct sp_msg_tell *msg)
{
	struct sp_peer_node *pn = sp_peer_find(g, &link->peer);
	u32 some = msg->hdr.len - sizeof(*msg);
	struct sp_tell *tell;
	int ret;

	/* Until there is a view here: it is all said again when we can hear. */
	if (!pn || !g->ready || g->ending || !sp_trusts(g, link))
		return;
	/* Also by a link that we do not use yet, but not half by each. */
	if (!msg->off) {
		pn->tell_len = 0;
		pn->tell_total = msg->total;
		pn->tell_by = link;
	}
	if (msg->off != pn->tell_len || msg->total != pn->tell_total ||
	    link != pn->tell_by ||
	    msg->total > SP_TELL_MAX ||
	    some > msg->total - msg->off)
		return;
	memcpy(pn->tell + msg->off, msg->data, some);
	pn->tell_len += some;
	if (pn->tell_len != msg->total)
		return;
	pn->tell_len = 0;
	tell = kmalloc(sizeof(*tell), GFP_KERNEL | __GFP_NOFAIL);
	ret = sp_tell_decode(pn->tell, msg->total, tell);
	if (!ret && tell->view == g->view.id + 1) {
		/* It is ahead of us. */
		swap(pn->early, tell);
	} else if (!ret) {
		ret = sp_agree_hear(&g->agree, pn->rank, tell);
	}
	kfree(tell);
	if (ret == -EPROTO)
		sp_change_suspect(g, pn->rank, "tells what no correct node does");
	else if (ret)
		sp_change_step(g);
}

/* Why a node is suspected that this node has not found out about by itself. */
static const char *sp_change_why(const struct sp_group *g, u32 node)
{
	const struct sp_agree *a = &g->agree;

	if (a->faulty >> node & 1)
		return "tells what no correct node does";
	if (a->tells[node].suspected >> g->self & 1)
		return "suspects this node";
	return g->peer[node]->bye_heard ? "has gone" :
					  "is suspected by another node";
}

/* Say who is not heard any more, and why: once. */
static void sp_change_blame(struct sp_group *g, u32 node, const char *why)
{
	if (g->blamed >> node & 1)
		return;
	g->blamed |= 1ULL << node;
	pr_info_ratelimited("spindle: %s: group %s: %s %s\n", g->node->name,
			    g->name, g->peer[node] ? g->peer[node]->name : "a node",
			    why);
}

/* What is to be done once for each node that is suspected. */
static void sp_change_drop(struct sp_group *g, bool quiet)
{
	struct sp_engine *engine = g->node->sdev->engine;
	u64 fresh = sp_agree_own(&g->agree)->suspected & ~g->dropped;
	u32 i, k;

	for (i = 0; i < g->view.nnodes; i++) {
		struct sp_peer_node *pn = g->peer[i];

		if (!(fresh >> i & 1))
			continue;
		g->dropped |= 1ULL << i;
		mutex_lock(&engine->lock);
		g->core.peers[i].gone = true;
		/* Its requests may be sent again: room is not given away. */
		g->core.hold = true;
		mutex_unlock(&engine->lock);
		if (pn->user.link && pn->user.link->state == SP_LINK_UP)
			pn->last = READ_ONCE(pn->user.link->built);
		if (quiet)
			continue;
		sp_change_blame(g, i, sp_change_why(g, i));
		g->waited = 0;
		WRITE_ONCE(g->counters.suspicions, g->counters.suspicions + 1);
		for (k = 0; g->view.members[k].node != i; k++)
			;
		sp_record_say(g, SPINDLE_EVENT_SUSPECTED, k, 0);
	}
}

/**
 * sp_change_suspect() - a node is not to be heard any more
 * @g: the group
 * @node: its rank in the view
 * @why: for the log: what about it
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_change_suspect(struct sp_group *g, u32 node, const char *why)
{
	lockdep_assert_held(&sp_ctl);
	if (!g->ready || g->ending || node == g->self ||
	    !sp_agree_suspect(&g->agree, node))
		return;
	sp_change_blame(g, node, why);
	g->unsaid = true;
	sp_change_step(g);
}

/* A group that is closed cannot fail any more, but it can end. */
static void sp_change_fail(struct sp_group *g, int error)
{
	sp_group_fail(g, error);
	sp_group_end(g, error);
}

static void sp_change_wedge(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	u64 counts[SP_MAX_MEMBERS];
	u64 faulty;
	u32 i;
	int ret;

	g->began = ktime_to_us(ktime_get());
	mutex_lock(&engine->lock);
	ret = sp_core_wedge(&g->core, counts);
	sp_core_floor(&g->core, g->agree.floor);
	/* These ranks mean nothing in the next view. */
	faulty = g->faulty;
	WRITE_ONCE(g->faulty, 0);
	mutex_unlock(&engine->lock);
	sp_rdmc_stop(g);
	sp_agree_wedged(&g->agree, counts);
	g->unsaid = true;
	if (ret < 0)
		faulty |= 1ULL << g->core.faulty;
	for (i = 0; i < g->view.nnodes; i++) {
		if (!(faulty >> i & 1) || !sp_agree_suspect(&g->agree, i))
			continue;
		sp_change_blame(g, i, "wrote what no correct node writes");
	}
	g->waited = 0;
	g->waited_at = jiffies;
	sp_peer_await(g);
}

/**
 * sp_change_free() - undo what was prepared for a view
 * @g: the group
 * @ch: the change, or NULL
 *
 * Context: may sleep.
 */
void sp_change_free(struct sp_group *g, struct sp_change *ch)
{
	u32 i;

	if (!ch)
		return;
	for (i = 0; i < SP_MAX_MEMBERS; i++) {
		/* One that has a slot is looked up there: it goes with the group. */
		if (ch->lanes[i] && ch->lanes[i]->slot == SP_MAX_SLOTS)
			sp_lane_drop(ch->lanes[i]);
		if (ch->nodes[i])
			sp_peer_free(ch->nodes[i]);
	}
	if (ch->record)
		sp_record_put(ch->record);
	kvfree(ch->peers);
	kvfree(ch->tells);
	kvfree(ch);
}

/* The lane of a member, if it has one here that is not dead. */
static struct sp_slot_lane *sp_change_lane(struct sp_group *g,
					   const struct sp_member *m)
{
	u32 i;

	for (i = 0; i < SP_MAX_SLOTS; i++) {
		struct sp_slot_lane *lane = g->slots[i];

		if (lane && !lane->dead && lane->cookie == m->cookie &&
		    !sp_addr_cmp(&lane->addr, &m->addr))
			return lane;
	}
	return NULL;
}

/* Was this node in the view before without a break? */
static bool sp_change_stays(const struct sp_group *g, const struct sp_change *ch,
			    const struct sp_addr *addr)
{
	return g->ready && sp_view_stayed(&ch->next, &g->view, addr);
}

/* All memory that the view needs and that is not there. Without sp_ctl. */
static int sp_change_memory(struct sp_group *g, struct sp_change *ch)
{
	const struct sp_view *v = &ch->next;
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_slot_lane *lane;

		if (m->lane < 0 || sp_change_lane(g, m))
			continue;
		lane = sp_lane_make(g, m);
		if (IS_ERR(lane))
			return PTR_ERR(lane);
		ch->lanes[m->lane] = lane;
	}
	for (i = 0; i < v->nnodes; i++) {
		const struct sp_addr *addr = &v->nodes[i].addr;
		struct sp_peer_node *pn;

		if (!sp_addr_cmp(addr, &g->node->addr) ||
		    sp_change_stays(g, ch, addr))
			continue;
		pn = sp_peer_make(g, addr);
		if (IS_ERR(pn))
			return PTR_ERR(pn);
		ch->nodes[i] = pn;
	}
	return g->ready ? 0 : sp_group_core(g);
}

/* Does the view need memory that is not there? */
static bool sp_change_needs(struct sp_group *g, const struct sp_change *ch)
{
	const struct sp_view *v = &ch->next;
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].lane >= 0 && !sp_change_lane(g, &v->members[i]))
			return true;
	for (i = 0; i < v->nnodes; i++)
		if (sp_addr_cmp(&v->nodes[i].addr, &g->node->addr) &&
		    !sp_change_stays(g, ch, &v->nodes[i].addr))
			return true;
	return false;
}

/* A change to a view; what belongs to all kinds of it. */
static struct sp_change *sp_change_alloc(struct sp_group *g,
					 const struct sp_view *old,
					 const struct sp_view *next,
					 const struct sp_proposal *p)
{
	struct sp_change *ch = kvzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);

	if (!ch)
		return NULL;
	ch->next = *next;
	ch->peers = kvcalloc(SP_MAX_MEMBERS, sizeof(*ch->peers),
			     GFP_KERNEL_ACCOUNT);
	ch->tells = kvcalloc(max(next->nnodes, 1U), sizeof(*ch->tells),
			     GFP_KERNEL_ACCOUNT);
	ch->record = sp_record_make(SPINDLE_EVENT_VIEW, old, next, p);
	if (ch->peers && ch->tells && ch->record)
		return ch;
	sp_change_free(g, ch);
	return NULL;
}

static void sp_change_begin_make(struct sp_group *g)
{
	g->making = true;
	kref_get(&g->ref);
	/* The work needs the device, though it has nothing mapped yet. */
	atomic_inc(&g->node->sdev->objects);
	queue_work(sp_wq, &g->make);
}

/* Put the lanes that were made for a view into slots. */
static int sp_change_place(struct sp_group *g, struct sp_change *ch)
{
	u32 i;
	int ret;

	for (i = 0; i < ch->next.nlanes; i++) {
		if (!ch->lanes[i])
			continue;
		ret = sp_lane_place(g, ch->lanes[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* An own lane that is new: its sending side, and whose it is. */
static void sp_change_own(struct sp_group *g, struct sp_slot_lane *lane,
			  const struct sp_view *v, const struct sp_member *m,
			  s64 start)
{
	struct sp_lane_tx *tx = &lane->tx;

	tx->ring = lane->slab->ring;
	sp_tx_init(&tx->tx, (struct sp_desc *)lane->slab->base, g->config.depth,
		   g->config.window, m->lane, v->nlanes);
	sp_tx_view(&tx->tx, 0, start, m->lane, v->nlanes);
	tx->tx.max_object = g->config.max_object;
	g->own[m->nr] = lane;
	g->core.own[m->nr].tx = &tx->tx;
	g->core.own[m->nr].pushed = 0;
}

/* The lanes of a view that are new here, as far as the order has to do with it. */
static void sp_change_lanes(struct sp_group *g, struct sp_change *ch,
			    struct sp_next *next, s64 start,
			    const struct sp_point *points)
{
	static const struct sp_point zero;
	const struct sp_view *v = &ch->next;
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_slot_lane *lane;

		if (m->lane < 0)
			continue;
		lane = ch->lanes[m->lane];
		if (!lane)
			continue;
		ch->lanes[m->lane] = NULL;
		sp_lane_init(&g->core.order.lanes[lane->slot],
			     points ? &points[i] : &zero);
		next->slot[m->lane] = lane->slot;
		next->base[m->lane] = points ? points[i].round : 0;
		if (!lane->own)
			continue;
		sp_change_own(g, lane, v, m, start);
		next->fresh |= 1ULL << m->nr;
	}
}

/**
 * sp_change_local() - what a member on this node is in a view
 * @g: the group
 * @local: the member
 * @v: the view
 * @at: entry of the log with which it begins
 *
 * Context: the engine's lock is held, unless it does not run yet.
 */
void sp_change_local(struct sp_group *g, struct sp_local *local,
		     const struct sp_view *v, u64 at)
{
	int rank = sp_view_find_member(v, &g->node->addr, local->cookie);
	struct sp_slot_lane *lane;
	s32 nr;

	if (rank < 0) {
		if (local->end == ~0ULL)
			/* What was published before it is all for it. */
			smp_store_release(&local->end, at);
		WRITE_ONCE(local->rank, ~0U);
		return;
	}
	local->uid = v->members[rank].uid;
	nr = v->members[rank].lane < 0 ? -1 : (s32)v->members[rank].nr;
	if (nr >= 0 && !local->lane) {
		lane = g->own[nr];
		spin_lock(&lane->tx.lock);
		lane->tx.member = local;
		if (local->fin)
			sp_tx_commit(&lane->tx.tx, 0, SP_DESC_FIN);
		spin_unlock(&lane->tx.lock);
		/* Senders look at it without a lock. */
		smp_store_release(&local->lane, &lane->tx);
	}
	WRITE_ONCE(local->rank, rank);
}

/* The nodes of a view, by rank. Under the engine's lock. */
static void sp_change_nodes(struct sp_group *g, struct sp_change *ch,
			    struct sp_next *next)
{
	const struct sp_view *v = &ch->next;
	struct sp_peer_node *pn;
	u32 i;

	WRITE_ONCE(g->racks, sp_view_racks(v));
	memset(g->peer, 0, sizeof(g->peer));
	for (i = 0; i < v->nnodes; i++) {
		next->node_was[i] = -1;
		if (!sp_addr_cmp(&v->nodes[i].addr, &g->node->addr)) {
			next->self = i;
			if (g->ready)
				next->node_was[i] = g->self;
			continue;
		}
		pn = ch->nodes[i];
		if (pn) {
			next->peers[i].rows = pn->rows->base;
			next->peers[i].pushed = pn->pushed;
		} else {
			pn = sp_peer_find(g, &v->nodes[i].addr);
			next->node_was[i] = pn->rank;
		}
		g->peer[i] = pn;
	}
}

/*
 * Ranks of nodes change in one go. Nodes that are in it no more have none; until
 * nothing can be sent to them again no room is given away.
 */
static void sp_change_rerank(struct sp_group *g)
{
	struct sp_peer_node *pn;
	u64 gone = 0;
	u32 i;

	list_for_each_entry(pn, &g->peers, list) {
		if (pn->rank < 0)
			continue;
		gone++;
		pn->rank = -1;
		/* Lanes that end are read until then: see sp_lanes_collect(). */
		if (pn->user.link && pn->user.link->state == SP_LINK_UP)
			pn->last = READ_ONCE(pn->user.link->built);
	}
	for (i = 0; i < g->view.nnodes; i++) {
		if (!g->peer[i])
			continue;
		gone -= !list_empty(&g->peer[i]->list);
		g->peer[i]->rank = i;
	}
	if (gone)
		g->core.hold = true;
}

/* Nodes that have come: say so, connect, and let them write. */
static void sp_change_connect(struct sp_group *g, struct sp_change *ch,
			      bool welcome)
{
	u32 i;

	for (i = 0; i < ch->next.nnodes && !g->ending; i++) {
		struct sp_peer_node *pn = ch->nodes[i];
		int ret;

		if (!pn)
			continue;
		ch->nodes[i] = NULL;
		pn->welcome = welcome;
		ret = sp_peer_connect(pn);
		if (ret == -ENOMEM)
			sp_group_fail(g, ret);
	}
	if (!g->ending)
		sp_member_early(g);
}

static void sp_change_agree(struct sp_group *g, struct sp_change *ch)
{
	struct sp_agree *a = &g->agree;

	sp_agree_init(a, g->current_view->view, g->self, ch->tells);
	a->limit = g->config.max_members;
	a->minority = g->config.flags & SP_CONFIG_MINORITY;
	g->tells = ch->tells;
	ch->tells = NULL;
}

/* The first view that this node is in: its memory is there. */
static int sp_change_start(struct sp_group *g, struct sp_change *ch)
{
	const struct sp_view *v = &ch->next;
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_core *c = &g->core;
	struct sp_next *next;
	struct sp_local *local;
	u32 i, k;
	int ret;

	next = kvzalloc(sizeof(*next), GFP_KERNEL);
	if (!next)
		return -ENOMEM;
	ret = sp_change_place(g, ch);
	if (ret)
		goto out;
	/* The engine does not know the group yet; its functions want it. */
	mutex_lock(&engine->lock);
	next->view = v;
	next->peers = c->peers;
	sp_change_nodes(g, ch, next);
	c->order.start = g->start;
	c->order.nlanes = v->nlanes;
	c->order.nnodes = v->nnodes;
	c->order.self = next->self;
	c->order.epoch = g->gid + v->id;
	c->view = v->id;
	c->nown = v->nodes[next->self].lanes;
	sp_change_lanes(g, ch, next, g->start, g->points);
	memcpy(c->order.slot, next->slot, sizeof(c->order.slot));
	sp_core_ranks(c, v);
	sp_core_init(c);
	for (i = 0; i < v->nnodes; i++) {
		if (i == next->self)
			continue;
		c->peers[i].cut = true;
		for (k = 0; k < c->nown; k++)
			memset(&c->peers[i].pushed[k], 0,
			       sizeof(c->peers[i].pushed[k]));
	}
	g->self = next->self;
	for (i = 0; i < v->nnodes; i++)
		if (g->peer[i])
			g->peer[i]->rank = i;
	ret = sp_record_publish(g, ch->record);
	if (ret)
		goto unlock;
	ch->record = NULL;
	list_for_each_entry(local, &g->locals, on_group)
		sp_change_local(g, local, v, 0);
	sp_member_taken(g, 0);
	sp_log_publish(g);
	sp_change_agree(g, ch);
unlock:
	mutex_unlock(&engine->lock);
	if (!ret)
		ret = sp_slow_init(g);
out:
	kvfree(next);
	return ret;
}

/* Members of this node whose sockets were closed meanwhile are to go. */
static void sp_change_orphans(struct sp_group *g)
{
	struct sp_local *local;
	u32 i;

	for (i = 0; i < g->view.nmembers; i++) {
		const struct sp_member *m = &g->view.members[i];
		struct sp_slot_lane *lane;
		bool found = false;

		if (m->node != g->self)
			continue;
		list_for_each_entry(local, &g->locals, on_group)
			found |= local->cookie == m->cookie;
		if (found)
			continue;
		lane = m->lane < 0 ? NULL : g->own[m->nr];
		if (lane && !lane->leaving) {
			lane->left_at = jiffies;
			WRITE_ONCE(lane->leaving, SP_EXITED);
		} else if (!lane && sp_agree_leave(&g->agree, i, SP_EXITED)) {
			g->unsaid = true;
		}
	}
}

/* Messages flow, as soon as the other nodes can be reached. */
static void sp_change_activate(struct sp_group *g, struct sp_change *ch)
{
	kvfree(g->points);
	g->points = NULL;
	g->ready = true;
	WRITE_ONCE(g->counters.views, 1);
	/* C in group.h: who sees the state sees all of the above. */
	smp_wmb();
	if (sp_view_set_state(&g->view, SP_VIEW_ACTIVE))
		return;
	sp_engine_add(g->node->sdev->engine, g);
	sp_group_state_changed(g);
	sp_change_connect(g, ch, false);
	if (g->ending)
		return;
	/* From here on the nodes' links tell what becomes of them. */
	sp_member_release(g, 0);
	sp_change_orphans(g);
	sp_member_settle(g);
	sp_change_step(g);
}

/* The lanes that end with a view. Under the engine's lock. */
static void sp_change_bury(struct sp_group *g, const struct sp_view *v)
{
	u32 i;

	for (i = 0; i < g->view.nmembers; i++) {
		const struct sp_member *m = &g->view.members[i];
		struct sp_slot_lane *lane;

		if (m->lane < 0 ||
		    sp_view_find_member(v, &m->addr, m->cookie) >= 0)
			continue;
		lane = g->slots[g->core.order.slot[m->lane]];
		WRITE_ONCE(lane->dead, true);
		lane->died = v->id;
		if (!lane->own)
			continue;
		spin_lock(&lane->tx.lock);
		lane->tx.tx.fin = true;
		spin_unlock(&lane->tx.lock);
		g->own[m->nr] = NULL;
		g->core.own[m->nr].tx = NULL;
	}
}

/* The lanes that go on. Under the engine's lock. */
static void sp_change_keep_lanes(struct sp_group *g, const struct sp_view *v,
				 const struct sp_proposal *p,
				 struct sp_next *next, s64 start)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_slot_lane *lane;
		s32 was;
		int old;

		old = sp_view_find_member(&g->view, &m->addr, m->cookie);
		was = old < 0 ? -1 : g->view.members[old].lane;
		if (m->lane < 0 || was < 0)
			continue;
		next->slot[m->lane] = g->core.order.slot[was];
		next->base[m->lane] = p->trim[was];
		lane = g->slots[next->slot[m->lane]];
		if (!lane->own)
			continue;
		spin_lock(&lane->tx.lock);
		sp_tx_view(&lane->tx.tx, p->trim[was], start, m->lane,
			   v->nlanes);
		spin_unlock(&lane->tx.lock);
	}
}

/* Nodes that are in the view no more, and why. */
static void sp_change_part(struct sp_group *g, const struct sp_proposal *p,
			   const struct sp_view *old)
{
	struct sp_peer_node *pn, *next;
	u32 i;

	list_for_each_entry_safe(pn, next, &g->peers, list) {
		int error = 0;

		if (pn->rank >= 0 || pn->bye_said)
			continue;
		for (i = 0; i < old->nmembers; i++)
			if (!sp_addr_cmp(&old->members[i].addr, &pn->addr) &&
			    p->reason[i] != SP_LEFT && p->reason[i] != SP_EXITED)
				error = -ECONNABORTED;
		sp_peer_say_bye(pn, error);
		if (g->ending)
			return;
	}
}

/* What nodes have told of this view before we were there. */
static void sp_change_early(struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->view.nnodes; i++) {
		struct sp_peer_node *pn = g->peer[i];

		if (!pn || !pn->early)
			continue;
		sp_agree_hear(&g->agree, i, pn->early);
		kfree(pn->early);
		pn->early = NULL;
	}
}

/* Objects that were not delivered in the view before begin anew. */
static void sp_change_objects(struct sp_group *g)
{
	struct sp_peer_node *pn;

	list_for_each_entry(pn, &g->peers, list)
		sp_rdmc_forget(pn);
	sp_objects_kick(g);
}

/* The next view, its memory there: in one step for the engine. */
static int sp_change_swap(struct sp_group *g, struct sp_change *ch)
{
	const struct sp_proposal *p = sp_agree_decision(&g->agree);
	struct sp_engine *engine = g->node->sdev->engine;
	const struct sp_view *v = &ch->next;
	struct sp_local *local;
	struct sp_next *next;
	s64 start;
	int ret;

	next = kvzalloc(sizeof(*next), GFP_KERNEL);
	if (!next)
		return -ENOMEM;
	ret = sp_change_place(g, ch);
	if (ret)
		goto out;
	mutex_lock(&engine->lock);
	/* Passes may not have noted yet what was read meanwhile. */
	sp_order_release(&g->core.order, sp_engine_released(g));
	ret = sp_order_trim(&g->core.order, p->trim);
	if (!ret)
		ret = sp_record_publish(g, ch->record);
	if (ret)
		goto unlock;
	start = g->core.order.delivered + 1;
	next->view = v;
	next->epoch = g->gid + v->id;
	next->peers = ch->peers;
	sp_change_bury(g, v);
	sp_change_nodes(g, ch, next);
	sp_change_keep_lanes(g, v, p, next, start);
	sp_change_lanes(g, ch, next, start, NULL);
	sp_core_install(&g->core, next);
	ch->peers = next->peers;
	ch->next.state = g->view.state;
	g->view = *v;
	g->self = next->self;
	sp_change_rerank(g);
	list_for_each_entry(local, &g->locals, on_group)
		sp_change_local(g, local, v, ch->record->at);
	sp_member_taken(g, ch->record->at);
	ch->record = NULL;
	sp_slow_view(g);
	sp_log_publish(g);
	sp_group_wake_members(g, false, true);
unlock:
	mutex_unlock(&engine->lock);
out:
	kvfree(next);
	return ret;
}

/* Install a view that follows another. */
static void sp_change_finish(struct sp_group *g, struct sp_change *ch)
{
	struct sp_record *was = g->current_view;
	struct sp_agree *old;
	struct sp_tell *tells = g->tells;
	u32 i;
	int ret;

	old = kmalloc(sizeof(*old), GFP_KERNEL | __GFP_NOFAIL);
	kref_get(&was->ref);
	sp_change_keep(g);
	*old = g->agree;
	ret = sp_change_swap(g, ch);
	if (ret) {
		pr_warn_ratelimited("spindle: %s: group %s: view %llu cannot be installed: error %d\n",
				    g->node->name, g->name, ch->next.id, ret);
		sp_change_fail(g, ret);
		goto out;
	}
	sp_change_agree(g, ch);
	sp_agree_carry(&g->agree, old);
	g->unsaid = sp_agree_own(&g->agree)->suspected ||
		    sp_agree_own(&g->agree)->nasks;
	for (i = 0; i < g->view.nmembers; i++)
		g->unsaid |= sp_agree_own(&g->agree)->leaves[i];
	g->dropped = 0;
	g->blamed = 0;
	sp_change_drop(g, true);
	WRITE_ONCE(g->counters.views, g->counters.views + 1);
	WRITE_ONCE(g->counters.view_us,
		   ktime_to_us(ktime_get()) - g->began);
	WRITE_ONCE(g->counters.wedged_us,
		   g->counters.wedged_us + g->counters.view_us);
	sp_change_part(g, sp_agree_decision(old), was->view);
	sp_change_connect(g, ch, true);
	for (i = 0; i < g->view.nnodes && !g->ending; i++) {
		if (!g->peer[i] || !g->peer[i]->open)
			continue;
		sp_peer_grant(g->peer[i]);
		if (!g->ending && g->peer[i]->open)
			sp_peer_try_open(g->peer[i]);
	}
	if (g->ending)
		goto out;
	sp_change_objects(g);
	sp_change_early(g);
	sp_change_orphans(g);
	sp_member_settle(g);
	sp_peers_tend(g);
	/* Who wants to leave may have to wait no longer. */
	queue_work(sp_wq, &g->event);
	sp_group_kick(g);
out:
	kvfree(tells);
	if (g->tells == tells)
		g->tells = NULL;
	sp_record_put(was);
	kfree(old);
}

static void sp_change_install(struct sp_group *g)
{
	struct sp_change *ch = g->change;
	int ret;

	g->change = NULL;
	if (g->ready) {
		sp_change_finish(g, ch);
	} else {
		ret = sp_change_start(g, ch);
		if (ret)
			sp_change_fail(g, ret);
		else
			sp_change_activate(g, ch);
	}
	sp_change_free(g, ch);
}

/**
 * sp_change_make() - make memory for a view, and install it
 * @work: @make of a group
 *
 * Much memory is made without sp_ctl, which others wait for. Until @making is
 * false again lanes and nodes neither come nor go.
 */
void sp_change_make(struct work_struct *work)
{
	struct sp_group *g = container_of(work, struct sp_group, make);
	struct sp_device *sdev = g->node->sdev;
	struct mem_cgroup *old;
	int ret;

	old = sp_charge_to(g->memcg);
	ret = sp_change_memory(g, g->change);
	sp_charge_to(old);

	mutex_lock(&sp_ctl);
	g->making = false;
	if (g->ending) {
		sp_change_free(g, g->change);
		g->change = NULL;
	} else if (ret) {
		pr_warn_ratelimited("spindle: %s: group %s: no memory for a view: error %d\n",
				    g->node->name, g->name, ret);
		sp_change_free(g, g->change);
		g->change = NULL;
		sp_change_fail(g, ret);
	} else {
		/* What follows from it waits until it is done. */
		g->stepping = true;
		sp_change_install(g);
		g->stepping = false;
		sp_change_step(g);
	}
	mutex_unlock(&sp_ctl);
	sp_device_object_gone(sdev);
	sp_group_put(g);
}

/**
 * sp_change_first() - install the first view that this node is in
 * @g: the group; its view has been ranked. @g->points and @g->start say where
 *	lanes and the order enter it, if it is not the first of all
 *
 * On failure, now or later, the group fails. Context: sp_ctl is held, may
 * sleep.
 */
void sp_change_first(struct sp_group *g)
{
	struct sp_local *payer;

	lockdep_assert_held(&sp_ctl);
	if (sp_view_find_node(&g->view, &g->node->addr) < 0) {
		sp_group_fail(g, -EPROTO);
		return;
	}
	g->change = sp_change_alloc(g, NULL, &g->view, NULL);
	if (!g->change) {
		sp_group_fail(g, -ENOMEM);
		return;
	}
	/* The work is a kernel thread's: the member that came first pays. */
	payer = list_first_entry(&g->locals, struct sp_local, on_group);
	g->memcg = sp_memcg_get(payer->memcg);
	sp_change_begin_make(g);
}

/* This node is in the next view no more. */
static void sp_change_out(struct sp_group *g, const struct sp_proposal *p)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_local *local;
	bool evicted = false;
	int ret;
	u32 i;

	for (i = 0; i < g->view.nmembers; i++)
		if (g->view.members[i].node == g->self &&
		    p->reason[i] != SP_LEFT && p->reason[i] != SP_EXITED &&
		    p->reason[i] != SP_SLOW)
			evicted = true;
	if (evicted) {
		sp_change_fail(g, -ECONNABORTED);
		return;
	}
	mutex_lock(&engine->lock);
	ret = sp_order_trim(&g->core.order, p->trim);
	/* E in group.h. */
	smp_store_release(&g->published, g->core.order.published);
	list_for_each_entry(local, &g->locals, on_group) {
		if (local->end == ~0ULL)
			/* What was published before it is all for it. */
			smp_store_release(&local->end, g->published);
		WRITE_ONCE(local->rank, ~0U);
	}
	mutex_unlock(&engine->lock);
	if (ret) {
		sp_change_fail(g, ret);
		return;
	}
	sp_view_set_state(&g->view, SP_VIEW_CLOSED);
	sp_group_state_changed(g);
	sp_group_end(g, 0);
}

static void sp_change_decided(struct sp_group *g)
{
	const struct sp_proposal *p = sp_agree_decision(&g->agree);
	struct sp_view *next;
	int ret;

	next = kvzalloc(sizeof(*next), GFP_KERNEL);
	ret = next ? sp_view_next(g->agree.view, p, next) : -ENOMEM;
	if (ret) {
		sp_change_fail(g, ret == -EINVAL ? -EPROTO : ret);
	} else if (!sp_view_stayed(next, g->agree.view, &g->node->addr)) {
		sp_change_out(g, p);
	} else {
		g->change = sp_change_alloc(g, g->agree.view, next, p);
		if (!g->change)
			sp_change_fail(g, -ENOMEM);
		else if (sp_change_needs(g, g->change))
			sp_change_begin_make(g);
		else
			sp_change_install(g);
	}
	kvfree(next);
}

/*
 * A node that has said bye takes no part any more. If it has gone by a decision
 * it has said so before.
 */
static void sp_change_byes(struct sp_group *g)
{
	u32 i;

	if (!sp_agree_own(&g->agree)->wedged)
		return;
	for (i = 0; i < g->view.nnodes; i++)
		if (g->peer[i] && g->peer[i]->bye_heard &&
		    g->agree.tells[i].accepted.ballot != SP_BALLOT_DECIDED &&
		    sp_agree_suspect(&g->agree, i))
			g->unsaid = true;
}

/* One step; true when another may follow. */
static bool sp_change_one(struct sp_group *g)
{
	int did;

	if (!g->ready || g->ending || g->change)
		return false;
	sp_change_byes(g);
	did = sp_agree_step(&g->agree);
	sp_change_drop(g, false);
	if (did < 0) {
		pr_warn_ratelimited("spindle: %s: group %s: no majority of view %llu is left\n",
				    g->node->name, g->name, g->view.id);
		sp_change_fail(g, did);
		return false;
	}
	if ((did & SP_AGREE_WEDGE) && (g->config.flags & SP_CONFIG_PLAIN)) {
		/* The bye relays it: RDMC, section 3. */
		sp_change_fail(g, sp_agree_own(&g->agree)->suspected ?
			       -EHOSTDOWN : -ECONNRESET);
		return false;
	}
	if (did & SP_AGREE_WEDGE) {
		sp_change_wedge(g);
		return true;
	}
	if ((did & SP_AGREE_SAY) || g->unsaid)
		sp_change_say(g, NULL);
	if (g->ending)
		return false;
	if (did & SP_AGREE_DECIDED) {
		sp_change_decided(g);
		return !g->change;
	}
	return false;
}

/**
 * sp_change_step() - come to what follows from all that is known
 * @g: the group
 *
 * To be called after everything that may bear upon the next view. From within
 * itself it does nothing but see to it that it goes on.
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_change_step(struct sp_group *g)
{
	bool again;

	lockdep_assert_held(&sp_ctl);
	g->restep = true;
	if (g->stepping)
		return;
	g->stepping = true;
	do {
		g->restep = false;
		again = sp_change_one(g);
	} while (again || g->restep);
	g->stepping = false;
}
