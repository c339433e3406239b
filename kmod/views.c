// SPDX-License-Identifier: GPL-2.0
/*
 * From view to view on one node: what the nodes report to each other, what is
 * done when they have agreed, and how the next view is installed while programs
 * go on reading and sending. The agreement is in core/ballot.c, and what becomes
 * of the order in core/change.c; Documentation/views.rst has the whole of it.
 *
 * Everything here runs under sp_ctl. What the passes touch is changed under the
 * engine's lock, within it.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "af_spindle.h"
#include "compat/compat.h"
#include "engine.h"
#include "group.h"
#include "observe/observe.h"
#include "observe/trace.h"

#define SP_TEND_MS	5	/* between looks at keys and requests that go back */
#define SP_LINGER_MS	100	/* between looks at members that are to leave, and for a majority */
#define SP_COME_MS	30000	/* for who has come to say its key */
#define SP_BYE_MS	5000	/* for who was put out to say bye, or suspect_ms */

/* A report to be sent, a part of it, and one that has come: under sp_ctl. */
static u64 sp_report_out[DIV_ROUND_UP(SP_REPORT_MAX, sizeof(u64))];
static u64 sp_report_part[SP_MSG_MAX / sizeof(u64)];
static struct sp_report sp_report_in;

/**
 * sp_views_live() - does a group have a view, and take part in what follows it
 * @g: the group
 *
 * Return: true when it does.
 */
bool sp_views_live(const struct sp_group *g)
{
	return !g->ending && (g->view.state == SP_VIEW_ACTIVE ||
			      g->view.state == SP_VIEW_CLOSED);
}

/* Bytes of a report on the wire. */
static u32 sp_report_size(u32 nlanes, u32 nmembers, u32 joins)
{
	return sizeof(struct sp_wire_report) + 2 * nlanes * sizeof(u64) +
	       joins * sizeof(struct sp_join_request) + 2 * nmembers;
}

static u32 sp_report_encode(const struct sp_view *v, const struct sp_report *r,
			    struct sp_wire_report *w)
{
	const struct sp_proposal *p = &r->accepted;
	u8 *to = (u8 *)w->data;

	memset(w, 0, sizeof(*w));
	w->view = r->view;
	w->suspected = r->suspected;
	w->outranked = r->outranked;
	w->nlanes = v->nlanes;
	w->nmembers = v->nmembers;
	w->njoins = r->njoins;
	w->ballot = p->ballot;
	w->taken = p->njoins;
	w->wedged = r->wedged;
	w->by = r->accusation.by;
	w->of = r->accusation.of;
	to = sp_wire_put(to, r->counts, v->nlanes * sizeof(r->counts[0]));
	to = sp_wire_put(to, p->trim, v->nlanes * sizeof(p->trim[0]));
	to = sp_wire_put(to, r->joins, r->njoins * sizeof(r->joins[0]));
	to = sp_wire_put(to, p->joins, p->njoins * sizeof(p->joins[0]));
	to = sp_wire_put(to, r->leaves, v->nmembers);
	to = sp_wire_put(to, p->reason, v->nmembers);
	return to - (u8 *)w;
}

static int sp_report_decode(const struct sp_wire_report *w, u32 len,
			    struct sp_report *r)
{
	struct sp_proposal *p = &r->accepted;
	const u8 *from = (const u8 *)w->data;

	if (len < sizeof(*w) || w->nlanes > SP_MAX_MEMBERS ||
	    w->nmembers > SP_MAX_MEMBERS || w->njoins > SP_MAX_JOINS ||
	    w->taken > SP_MAX_JOINS || w->wedged > 1 ||
	    len != sp_report_size(w->nlanes, w->nmembers, w->njoins + w->taken))
		return -EPROTO;
	memset(r, 0, sizeof(*r));
	r->view = w->view;
	r->suspected = w->suspected;
	r->outranked = w->outranked;
	r->wedged = w->wedged;
	r->accusation.by = w->by;
	r->accusation.of = w->of;
	r->njoins = w->njoins;
	p->ballot = w->ballot;
	p->njoins = w->taken;
	from = sp_wire_get(from, r->counts, w->nlanes * sizeof(r->counts[0]));
	from = sp_wire_get(from, p->trim, w->nlanes * sizeof(p->trim[0]));
	from = sp_wire_get(from, r->joins, w->njoins * sizeof(r->joins[0]));
	from = sp_wire_get(from, p->joins, w->taken * sizeof(p->joins[0]));
	from = sp_wire_get(from, r->leaves, w->nmembers);
	sp_wire_get(from, p->reason, w->nmembers);
	return 0;
}

/**
 * sp_parts_say() - say to a peer what is longer than a message
 * @link: the link to it, up
 * @type: SP_MSG_*
 * @msg: room for a message of SP_MSG_MAX bytes
 * @gid: the group
 * @data: what is said
 * @len: its length
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0, or a negative errno when only some of the parts were said.
 */
int sp_parts_say(struct sp_link *link, u16 type, struct sp_msg_part *msg,
		 u64 gid, const void *data, u32 len)
{
	const u32 most = SP_MSG_MAX - sizeof(*msg);
	int ret = 0;
	u32 off;

	for (off = 0; off < len && !ret; off += most) {
		u32 some = min(len - off, most);

		msg->gid = gid;
		msg->total = len;
		msg->off = off;
		memcpy(msg->data, data + off, some);
		ret = sp_link_say(link, &msg->hdr, type, sizeof(*msg) + some);
	}
	return ret;
}

/* Send the report in sp_report_out to one node, if there is a link: that takes it. */
static void sp_report_send(struct sp_group_peer *gp, u32 len)
{
	struct sp_msg_part *msg = (struct sp_msg_part *)sp_report_part;
	struct sp_link *link = gp->user.link;

	if (link && link->state == SP_LINK_UP)
		sp_parts_say(link, SP_MSG_REPORT, msg, gp->g->gid, sp_report_out, len);
}

/* Nothing more is posted to a node, but the group goes on, and lacks room: sp_core.hold. */
static void sp_views_done(struct sp_group_peer *gp)
{
	sp_peer_done(gp);
	gp->user.held = READ_ONCE(gp->g->core.hold) && !READ_ONCE(gp->g->closing);
}

/*
 * Nodes that are suspected from now on are neither read nor written to. Requests
 * to them may be sent again for a while, so room is not given away meanwhile.
 */
static void sp_views_drop(struct sp_group *g)
{
	u64 fresh = sp_ballot_own(&g->ballot)->suspected & ~g->dropped;
	struct sp_engine *engine = g->node->sdev->engine;
	u32 i;

	if (!fresh)
		return;
	g->dropped |= fresh;
	spin_lock_bh(&engine->lock);
	for (i = 0; i < g->view.nnodes; i++)
		if (fresh >> i & 1)
			g->core.peers[i].gone = true;
	g->core.hold = true;
	spin_unlock_bh(&engine->lock);
	for (i = 0; i < g->view.nnodes; i++)
		if (fresh >> i & 1)
			sp_views_done(g->peer[i]);
	sp_views_tend_soon(g);
}

static u32 sp_views_encode(const struct sp_group *g)
{
	return sp_report_encode(g->ballot.view, sp_ballot_own(&g->ballot),
				(struct sp_wire_report *)sp_report_out);
}

/* Send the own report to all that are not suspected. */
static void sp_views_send(struct sp_group *g)
{
	const struct sp_report *own = sp_ballot_own(&g->ballot);
	u32 len, i;

	trace_spindle_report(g->node->name, g->name, own->view, own->wedged,
			     own->accepted.ballot, own->suspected);
	g->dirty = false;
	len = sp_views_encode(g);
	for (i = 0; i < g->view.nnodes; i++)
		if (g->peer[i] && !sp_suspects(&g->ballot, i))
			sp_report_send(g->peer[i], len);
}

/**
 * sp_views_tell() - a node can be reached now that has come with the view
 * @gp: the node
 *
 * What was said before of this view it may not have understood. Context: sp_ctl is
 * held, may sleep.
 */
void sp_views_tell(struct sp_group_peer *gp)
{
	struct sp_group *g = gp->g;

	lockdep_assert_held(&sp_ctl);
	if (!sp_views_live(g) || sp_suspects(&g->ballot, gp->rank))
		return;
	sp_report_send(gp, sp_views_encode(g));
}

/* A node is not heard any more: whether this node has found out, or others. */
static void sp_views_blame(struct sp_group *g, u32 node, const char *why)
{
	pr_info_ratelimited("spindle: %s: group %s: node %u (%s) %s\n",
			    g->node->name, g->name, node, g->peer[node]->name,
			    why);
	trace_spindle_suspect(g->node->name, g->name, g->view.id, node,
			      g->peer[node]->name, why);
	WRITE_ONCE(g->counters.suspicions, g->counters.suspicions + 1);
}

/**
 * sp_views_suspect() - a node is not to be heard any more
 * @g: the group
 * @gp: the node
 * @why: for the log: what about it
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_views_suspect(struct sp_group *g, struct sp_group_peer *gp,
		      const char *why)
{
	lockdep_assert_held(&sp_ctl);
	if (!sp_views_live(g) || gp->rank < 0 ||
	    !sp_suspect(&g->ballot, gp->rank))
		return;
	sp_views_blame(g, gp->rank, why);
	g->dirty = true;
	sp_views_step(g);
}

/* A report is there as a whole. */
static void sp_views_reported(struct sp_group *g, struct sp_group_peer *gp,
			      const struct sp_report *r, u32 nlanes,
			      u32 nmembers)
{
	int ret;

	/* It is ahead of this node. */
	if (r->view == g->view.id + 1 ||
	    (r->view == g->view.id && g->view.state == SP_VIEW_FORMING)) {
		*gp->early = *r;
		return;
	}
	if (!sp_views_live(g) || r->view != g->view.id)
		return;
	if (nlanes != g->view.nlanes || nmembers != g->view.nmembers)
		ret = -EPROTO;
	else
		ret = sp_ballot_receive(&g->ballot, gp->rank, r);
	if (ret < 0)
		sp_views_suspect(g, gp, "reports what no correct node does");
	else if (ret)
		sp_views_step(g);
}

/**
 * sp_views_report() - a part of a node's report has come
 * @g: the group
 * @link: from the peer of this link
 * @msg: the part; its length covers the header at least
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_views_report(struct sp_group *g, struct sp_link *link,
		     const struct sp_msg_part *msg)
{
	struct sp_group_peer *gp = sp_peer_find(g, &link->peer);
	u32 some = msg->hdr.len - sizeof(*msg);
	const struct sp_wire_report *w;

	lockdep_assert_held(&sp_ctl);
	/* What comes by a connection that is known to be dead is not heard. */
	if (!gp || !g->ready || g->ending || gp->user.link != link ||
	    link->state != SP_LINK_UP)
		return;
	if (!msg->off) {
		gp->got = 0;
		gp->total = msg->total;
	}
	/* It was begun before this node was ready for it. */
	if (!gp->total)
		return;
	if (msg->off != gp->got || msg->total != gp->total ||
	    msg->total > SP_REPORT_MAX || some > msg->total - msg->off) {
		sp_views_suspect(g, gp, "reports what no correct node does");
		return;
	}
	memcpy(gp->report + msg->off, msg->data, some);
	gp->got += some;
	if (gp->got != msg->total)
		return;
	gp->got = 0;
	gp->total = 0;
	w = (const struct sp_wire_report *)gp->report;
	if (sp_report_decode(w, msg->total, &sp_report_in))
		sp_views_suspect(g, gp, "reports what no correct node does");
	else
		sp_views_reported(g, gp, &sp_report_in, w->nlanes, w->nmembers);
}

/* Reports of the view that has just begun, which came before. */
static void sp_views_early(struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->view.nnodes && sp_views_live(g); i++) {
		struct sp_group_peer *gp = g->peer[i];

		if (!gp || gp->early->view != g->view.id)
			continue;
		if (sp_ballot_receive(&g->ballot, i, gp->early) == -EPROTO)
			sp_views_suspect(g, gp, "reports what no correct node does");
		gp->early->view = 0;
	}
}

/* Make the event of a view at the expense of who pays for the group. */
static struct sp_event *sp_views_event(const struct sp_group *g,
				       const struct sp_view *view,
				       const struct sp_view *old,
				       const struct sp_proposal *p)
{
	struct mem_cgroup *was = sp_charge_to(g->memcg);
	struct sp_event *ev = sp_event_make(view, old, p);

	sp_charge_to(was);
	return ev;
}

/**
 * sp_views_begin() - the first view begins: watch over it
 * @g: the group, its memory there, not active yet
 *
 * The event of the view is the first in the stream. Reports that came before are
 * taken by sp_views_step(), which the caller calls when the group is active.
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_views_begin(struct sp_group *g)
{
	struct sp_event *ev = sp_views_event(g, &g->view, NULL, NULL);
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (!ev)
		return -ENOMEM;
	if (g->welcome)
		ev->stayed = g->welcome->stayed;
	sp_order_state(&g->core.order, &g->view, &ev->view);
	g->view.giver = ev->view.giver;
	ret = sp_event_publish(g, ev);
	if (ret) {
		sp_event_put(ev);
		return ret;
	}
	g->ballot.limit = g->config.limit;
	g->ballot.minority = g->config.flags & SP_CONFIG_NO_MAJORITY;
	sp_ballot_init(&g->ballot, &ev->view, g->self,
		       g->reports[g->view.id & 1]);
	/* E in group.h. */
	smp_store_release(&g->published, g->core.order.published);
	return 0;
}

/**
 * sp_views_wedged() - does this node take part in the end of a view
 * @g: the group
 *
 * Others count on it then: it stays until that view has ended.
 * Context: sp_ctl is held.
 *
 * Return: true from when it has wedged until the next view begins, or the group
 * fails.
 */
bool sp_views_wedged(const struct sp_group *g)
{
	lockdep_assert_held(&sp_ctl);
	switch (g->view.state) {
	case SP_VIEW_ACTIVE:
	case SP_VIEW_CLOSED:
		return sp_ballot_own(&g->ballot)->wedged;
	default:
		return false;
	}
}

/**
 * sp_views_fail() - a group that has a view cannot go on here
 * @g: the group
 * @error: why
 *
 * One that is closed, or about to be, cannot fail any more, but it can end. Context:
 * sp_ctl is held, may sleep.
 */
void sp_views_fail(struct sp_group *g, int error)
{
	lockdep_assert_held(&sp_ctl);
	if (READ_ONCE(g->closing))
		sp_group_close(g);
	sp_group_fail(g, error);
	sp_group_end(g, error);
}

/**
 * sp_views_doubt() - suspect a node, and go on with what was begun
 * @g: the group
 * @node: the node, by rank in the view; sp_views_step() is to follow
 * @why: for the log: what about it
 *
 * Context: sp_ctl is held.
 */
void sp_views_doubt(struct sp_group *g, u32 node, const char *why)
{
	lockdep_assert_held(&sp_ctl);
	if (!sp_suspect(&g->ballot, node))
		return;
	sp_views_blame(g, node, why);
	g->dirty = true;
}

/**
 * sp_views_faulty() - passes have found faults in what nodes have written
 * @g: the group
 * @nodes: the nodes, by rank in the view; sp_views_step() is to follow
 *
 * Context: sp_ctl is held.
 */
void sp_views_faulty(struct sp_group *g, u64 nodes)
{
	u32 i;

	lockdep_assert_held(&sp_ctl);
	if (nodes)
		sp_views_tend_soon(g);
	for (i = 0; i < g->view.nnodes; i++)
		if (nodes >> i & 1)
			sp_views_doubt(g, i, "wrote what no correct node writes");
}

/* In one step this node takes nothing more of the view, and says how far it was. */
static void sp_views_wedge(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	u64 counts[SP_MAX_MEMBERS];
	u64 faulty;

	g->began = ktime_get();
	spin_lock_bh(&engine->lock);
	if (sp_core_wedge(&g->core, counts) < 0)
		g->faulty |= 1ULL << g->core.faulty;
	sp_core_floor(&g->core, g->ballot.floor);
	/* These ranks mean nothing in the next view. */
	faulty = g->faulty;
	g->faulty = 0;
	spin_unlock_bh(&engine->lock);
	trace_spindle_wedge(g->node->name, g->name, g->view.id,
			    g->core.order.delivered);
	sp_ballot_wedged(&g->ballot, counts);
	g->dirty = true;
	sp_views_faulty(g, faulty);
}

/* The node that has an address in the next view; NULL for this one. */
static struct sp_group_peer *sp_views_peer(struct sp_group *g,
					   const struct sp_addr *addr)
{
	struct sp_group_peer **come = sp_grow_peer(g, addr);

	return come ? *come : sp_peer_find(g, addr);
}

static struct sp_local *sp_views_local(struct sp_group *g, u64 cookie)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group)
		if (local->cookie == cookie)
			return local;
	return NULL;
}

/* Where each lane and node of the next view was in this one. */
static void sp_views_prepare(struct sp_group *g, const struct sp_view *v,
			     const struct sp_proposal *p)
{
	struct sp_next *next = g->next;
	u32 i;

	next->view = v;
	next->self = sp_view_find_node(v, &g->node->addr);
	next->epoch = g->gid + v->id;
	next->fresh = 0;
	next->peers = g->spare;
	for (i = 0; i < v->nnodes; i++) {
		const struct sp_addr *addr = &v->nodes[i].addr;

		next->node_was[i] = sp_view_stayed(v, &g->view, addr) ?
			sp_view_find_node(&g->view, addr) : -1;
		if (next->node_was[i] < 0)
			sp_memory_attach(*sp_grow_peer(g, addr), &next->peers[i]);
	}
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		int was = sp_view_find_member(&g->view, &m->addr, m->cookie);

		if (m->lane < 0)
			continue;
		if (was >= 0) {
			s32 lane = g->view.members[was].lane;

			next->slot[m->lane] = g->core.order.slot[lane];
			next->base[m->lane] = p->trim[lane];
			continue;
		}
		next->slot[m->lane] = sp_grow_lane(g, m, sp_views_peer(g, &m->addr));
		next->base[m->lane] = 0;
		if (m->node == next->self)
			next->fresh |= 1ULL << m->nr;
	}
}

/* Own lanes that are over with this view: another may have its number in the next. */
static void sp_views_retire(struct sp_group *g, const struct sp_view *v)
{
	struct sp_group_peer *gp;
	bool any = false;
	u32 i;

	for (i = 0; i < g->nlanes; i++) {
		struct sp_lane_tx *lane = g->lanes[i];

		if (!lane || sp_view_find_member(v, &g->node->addr,
						 lane->cookie) >= 0)
			continue;
		spin_lock(&lane->lock);
		lane->tx.fin = true;
		spin_unlock(&lane->lock);
		g->core.own[i].tx = NULL;
		any = true;
	}
	if (!any)
		return;
	list_for_each_entry(gp, &g->peers, on_group)
		if (gp->user.link)
			gp->retired = READ_ONCE(gp->user.link->built);
}

/* The sending sides of this node's lanes in the next view. */
static void sp_views_own(struct sp_group *g, const struct sp_view *v)
{
	s64 start = g->core.order.delivered + 1;
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_lane_tx *lane;

		if (m->node != g->next->self || m->lane < 0)
			continue;
		lane = g->lanes[m->nr];
		spin_lock(&lane->lock);
		sp_tx_view(&lane->tx, g->next->base[m->lane], start, m->lane,
			   v->nlanes);
		sp_tx_members(&lane->tx, v);
		spin_unlock(&lane->lock);
	}
}

/*
 * A member is in the view no more: what was published until now is for it, but for
 * what its program is not given at the end of that. Else it would hold up the
 * others by what it need not read.
 */
static void sp_views_end_local(struct sp_group *g, struct sp_local *local)
{
	const struct sp_order *o = &g->core.order;
	u64 end = g->published;

	WRITE_ONCE(local->rank, ~0U);
	if (sp_local_out(local))
		return;
	if (!READ_ONCE(local->deaf) &&
	    !sp_rings_mapped(local, SPINDLE_MAP_RX)) {
		u64 cursor = smp_load_acquire(&local->cursor);	/* H in group.h. */

		while (end > cursor &&
		       !sp_rx_gives(local, &o->log[(end - 1) & (o->log_size - 1)]))
			end--;
	}
	/* I in group.h. */
	smp_store_release(&local->end, end);
}

/* The members of this node in the view that has begun, or in none. */
static void sp_views_locals(struct sp_group *g)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group) {
		int rank = sp_view_find_member(&g->view, &g->node->addr,
					       local->cookie);

		if (rank < 0)
			sp_views_end_local(g, local);
		else
			WRITE_ONCE(local->rank, rank);
	}
}

/* What the control plane has put into the log is published. */
static void sp_views_publish(struct sp_group *g)
{
	/* E in group.h. */
	smp_store_release(&g->published, g->core.order.published);
	WRITE_ONCE(g->counters.delivered, g->core.order.messages);
	WRITE_ONCE(g->counters.delivered_bytes, g->core.order.bytes);
	sp_rings_publish(g);
	sp_group_wake_members(g, true, true);
	sp_detach_all(g);
	sp_detach_pass_by(g);
}

/* Nodes of the view that begins, by rank. Under the engine's lock. */
static void sp_views_nodes(struct sp_group *g, const struct sp_view *v)
{
	struct sp_group_peer *was[SP_MAX_MEMBERS], *gp;
	u32 i;

	BUILD_BUG_ON(sizeof(was) != sizeof(g->peer));
	memcpy(was, g->peer, sizeof(was));
	memset(g->peer, 0, sizeof(g->peer));
	list_for_each_entry(gp, &g->peers, on_group) {
		if (gp->rank < 0)
			continue;
		gp->rank = -1;
		gp->until = v->id - 1;
		gp->since = jiffies;
	}
	for (i = 0; i < v->nnodes; i++) {
		s32 before = g->next->node_was[i];

		if (i == g->next->self)
			continue;
		if (before >= 0) {
			gp = was[before];
		} else {
			struct sp_group_peer **come;

			come = sp_grow_peer(g, &v->nodes[i].addr);
			gp = *come;
			*come = NULL;
			gp->comes = true;
			gp->came = v->id;
			gp->since = jiffies;
			list_add_tail(&gp->on_group, &g->peers);
		}
		gp->rank = i;
		g->peer[i] = gp;
	}
}

/* Members of this node that come with the view begin to read with its event. */
static void sp_views_come(struct sp_group *g, const struct sp_view *v, u64 at)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct sp_local *local;

		if (m->node != g->next->self)
			continue;
		local = sp_member_due(g, m->cookie);
		if (!local)
			continue;
		kref_get(&g->ref);
		local->end = ~0ULL;
		local->uid = m->uid;
		local->cursor = at;
		local->lane = m->lane < 0 ? NULL : g->lanes[m->nr];
		if (local->lane) {
			spin_lock(&local->lane->lock);
			local->lane->member = local;
			if (local->fin)
				sp_tx_commit(&local->lane->tx, 0, SP_DESC_FIN);
			spin_unlock(&local->lane->lock);
		}
		list_add_tail(&local->on_group, &g->locals);
	}
}

/* Programs that have given up before they came: their members leave at once. */
static void sp_views_orphans(struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->view.nmembers; i++) {
		const struct sp_member *m = &g->view.members[i];
		struct sp_lane_tx *lane;

		if (m->node != g->self || sp_views_local(g, m->cookie))
			continue;
		lane = m->lane < 0 ? NULL : g->lanes[m->nr];
		if (!lane) {
			if (sp_ballot_leave(&g->ballot, i, SP_EXITED))
				g->dirty = true;
		} else if (!lane->tx.fin) {
			spin_lock_bh(&lane->lock);
			lane->tx.fin = true;
			spin_unlock_bh(&lane->lock);
			lane->until = jiffies;
			lane->patience = 0;
			WRITE_ONCE(lane->leaving, SP_EXITED);
		}
	}
}

/**
 * sp_views_orphaned() - see to members here whose programs have given up
 * @g: the group, its view installed
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_views_orphaned(struct sp_group *g)
{
	lockdep_assert_held(&sp_ctl);
	sp_views_orphans(g);
	sp_views_step(g);
}

/* Links to nodes that have come, and keys to lanes that have. */
static void sp_views_meet(struct sp_group *g, const struct sp_view *old)
{
	struct sp_group_peer *gp;
	int ret;
	u32 i;

	for (i = 0; i < g->view.nmembers && !g->ending; i++) {
		const struct sp_member *m = &g->view.members[i];

		gp = g->peer[m->node];
		if (!gp || sp_view_find_member(old, &m->addr, m->cookie) >= 0)
			continue;
		ret = 0;
		if (gp->handle)
			sp_peer_say_more(gp);
		else
			ret = sp_peer_meet(gp);
		/* That is no fault of who comes. */
		if (ret)
			sp_views_fail(g, ret);
	}
}

/* End the view by what was decided, and begin the next: one step for the engine. */
static int sp_views_swap(struct sp_group *g, struct sp_event *ev,
			 const struct sp_proposal *p)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_order *o = &g->core.order;
	u64 at;
	u32 i;
	int ret;

	spin_lock_bh(&engine->lock);
	/* Passes may not have noted yet what was read meanwhile. */
	sp_order_release(o, sp_engine_released(g));
	sp_events_drop(g, false);
	ret = sp_order_trim(o, p->trim);
	if (!ret) {
		sp_stable_note(g);
		/* Of all senders of the view, also if none stays. */
		if (o->nlanes && o->fins == o->nlanes)
			WRITE_ONCE(g->closing, true);
		/* E in group.h: before the ends, which are before the event. */
		smp_store_release(&g->published, o->published);
		sp_order_state(o, &g->view, &ev->view);
		ret = sp_event_publish(g, ev);
	}
	if (ret)
		goto unlock;
	at = ev->at;
	/* Requests to who is in the view no more may be sent again for a while. */
	for (i = 0; i < g->view.nnodes; i++)
		if (!sp_view_stayed(&ev->view, &g->view, &g->view.nodes[i].addr))
			g->core.hold = true;
	sp_views_retire(g, &ev->view);
	sp_views_prepare(g, &ev->view, p);
	sp_views_own(g, &ev->view);
	sp_core_install(&g->core, g->next);
	g->spare = g->next->peers;
	/* Programs look at the state meanwhile. */
	ev->view.state = g->view.state;
	g->view = ev->view;
	g->self = g->next->self;
	sp_views_nodes(g, &ev->view);
	sp_views_come(g, &ev->view, at);
	sp_views_locals(g);
	sp_peer_opens(g);
	g->greeting_len = 0;
	if (g->growth && g->growth->npeers)
		sp_greeting_make(g, ev->stayed);
	sp_slow_view(g, g->ballot.view);
	sp_views_publish(g);
unlock:
	spin_unlock_bh(&engine->lock);
	return ret;
}

/* Did the nodes put out a node whose address this is, or has it left? */
static int sp_views_farewell(const struct sp_event *ev,
			     const struct sp_addr *addr)
{
	u32 i;

	for (i = 0; i < ev->nleft; i++)
		if (ev->left[i].reason == SP_LOST &&
		    !sp_addr_cmp(&ev->left[i].addr, addr))
			return -ECONNABORTED;
	return 0;
}

/* Nodes that are in the view no more are told so. */
static void sp_views_part(struct sp_group *g, const struct sp_event *ev)
{
	struct sp_group_peer *gp;

	list_for_each_entry(gp, &g->peers, on_group) {
		if (g->ending || gp->rank >= 0 || !gp->user.link || gp->bye_said)
			continue;
		sp_views_done(gp);
		sp_peer_say_bye(gp, sp_views_farewell(ev, &gp->addr));
	}
}

/* Members of this node that are in the view no more: for them this is the end. */
static void sp_views_ended(struct sp_group *g)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group) {
		if (!sp_local_out(local))
			continue;
		sp_rings_state(g, local);
		local->sk->sk_state_change(local->sk);
	}
}

/* A view follows, and this node is in it. */
static void sp_views_install(struct sp_group *g, struct sp_event *ev)
{
	struct sp_event *was = sp_event_view(g);
	struct sp_ballot old = g->ballot;
	int ret;

	sp_member_expect(g, &ev->view);
	ret = sp_views_swap(g, ev, sp_ballot_decision(&old));
	if (ret) {
		pr_warn_ratelimited("spindle: %s: group %s: view %llu cannot be installed: error %d\n",
				    g->node->name, g->name, ev->view.id, ret);
		sp_event_put(ev);
		sp_event_put(was);
		sp_views_fail(g, ret);
		/* It was shown for those who have not come now. */
		if (list_empty(&g->locals))
			sp_observe_group_del(g);
		return;
	}
	pr_info_ratelimited("spindle: %s: group %s: view %llu of %u members on %u nodes, %u gone, %u come\n",
			    g->node->name, g->name, g->view.id,
			    g->view.nmembers, g->view.nnodes, ev->nleft,
			    g->view.nmembers - ev->stayed);
	sp_member_come(g);
	sp_grow_drop(g);
	sp_ballot_init(&g->ballot, &ev->view, g->self,
		       g->reports[g->view.id & 1]);
	sp_ballot_carry(&g->ballot, &old);
	sp_views_orphans(g);
	sp_slow_parted(g, old.view);
	g->dirty = true;
	g->dropped = 0;
	WRITE_ONCE(g->counters.view_changes, g->counters.view_changes + 1);
	WRITE_ONCE(g->counters.view_change_us,
		   ktime_us_delta(ktime_get(), g->began));
	trace_spindle_view(g->node->name, g->name, g->view.id, g->view.nmembers,
			   g->view.nnodes, ev->nleft, g->view.nmembers - ev->stayed,
			   g->counters.view_change_us);
	sp_views_drop(g);
	sp_views_ended(g);
	sp_views_part(g, ev);
	sp_views_meet(g, old.view);
	sp_event_put(was);
	sp_asks_feed(g);
	sp_views_tend_soon(g);
	sp_peers_byes(g);
	sp_views_early(g);
	if (!g->ending)
		sp_member_early(g);
	if (g->closing)
		queue_work(sp_wq, &g->event);
	sp_group_kick(g);
}

/*
 * A view follows, and this node is not in it, for all its members have left. Without
 * @p it does not know how the view has ended.
 */
static void sp_views_out(struct sp_group *g, const struct sp_proposal *p)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_local *local;
	int ret = 0;

	spin_lock_bh(&engine->lock);
	if (p) {
		sp_order_release(&g->core.order, sp_engine_released(g));
		ret = sp_order_trim(&g->core.order, p->trim);
	}
	if (!ret) {
		sp_stable_note(g);
		sp_views_publish(g);
		list_for_each_entry(local, &g->locals, on_group)
			sp_views_end_local(g, local);
	}
	spin_unlock_bh(&engine->lock);
	if (ret) {
		sp_views_fail(g, ret);
		return;
	}
	pr_info_ratelimited("spindle: %s: group %s: all members have left, after view %llu\n",
			    g->node->name, g->name, g->view.id);
	/* Its members may still read what is left. Others may join anew. */
	sp_observe_group_del(g);
	sp_asks_end(g, 0);
	sp_group_close(g);
	sp_group_end(g, 0);
}

/* Have all members of this node asked to leave? */
static bool sp_views_left(const struct sp_group *g)
{
	const struct sp_report *own = sp_ballot_own(&g->ballot);
	u32 i;

	for (i = 0; i < g->view.nmembers; i++)
		if (g->view.members[i].node == g->self && !own->leaves[i])
			return false;
	return true;
}

/**
 * sp_views_put_out() - the other nodes have gone on without this one
 * @g: the group
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_views_put_out(struct sp_group *g)
{
	struct sp_local *local;

	lockdep_assert_held(&sp_ctl);
	if (sp_views_left(g)) {
		sp_views_out(g, NULL);
		return;
	}
	sp_views_fail(g, -ECONNABORTED);
	list_for_each_entry(local, &g->locals, on_group)
		WRITE_ONCE(local->rank, ~0U);
}

static void sp_views_decided(struct sp_group *g)
{
	const struct sp_proposal *p = sp_ballot_decision(&g->ballot);
	struct sp_event *ev;
	struct sp_view *next;
	bool lost = false;
	u32 i;
	int ret;

	for (i = 0; i < g->view.nmembers; i++)
		lost |= g->view.members[i].node == g->self &&
			p->reason[i] == SP_LOST;
	if (lost) {
		sp_views_put_out(g);
		return;
	}
	next = kvzalloc(sizeof(*next), GFP_KERNEL);
	ret = next ? sp_view_next(g->ballot.view, p,
				  sp_order_trim_ends(&g->core.order, p->trim),
				  next) : -ENOMEM;
	if (ret == -EINVAL || (!ret && next->nmembers > g->config.limit)) {
		sp_views_fail(g, -EPROTO);
		goto out;
	}
	if (ret) {
		sp_views_fail(g, ret);
		goto out;
	}
	if (!sp_view_stayed(next, g->ballot.view, &g->node->addr)) {
		sp_views_out(g, p);
		goto out;
	}
	sp_group_senders(next);
	ret = sp_grow(g, next);
	if (ret == -EINPROGRESS)
		goto out;
	if (ret) {
		sp_views_fail(g, ret);
	} else {
		ev = sp_views_event(g, next, g->ballot.view, p);
		if (ev)
			sp_views_install(g, ev);
		else
			sp_views_fail(g, -ENOMEM);
	}
out:
	kvfree(next);
}

/**
 * sp_views_grown() - the memory is there for a view that was decided
 * @g: the group
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_views_grown(struct sp_group *g)
{
	lockdep_assert_held(&sp_ctl);
	if (!sp_views_live(g))
		return;
	/* Steps wait for the view. */
	g->stepping = true;
	sp_views_decided(g);
	g->stepping = false;
	sp_views_step(g);
}

/* Has all that the member of an own lane has sent come everywhere, or for too long not? */
static bool sp_views_drained(const struct sp_group *g, u32 own,
			     struct sp_lane_tx *lane)
{
	u64 taken = READ_ONCE(sp_own_lane(&g->core, own)->taken);

	if (taken == READ_ONCE(lane->tx.now.count))
		return true;
	if (taken != lane->progress) {
		lane->progress = taken;
		lane->until = jiffies + lane->patience;
	}
	return time_after_eq(jiffies, lane->until);
}

/* Members of this node that are to leave. True: some are waited for. */
static bool sp_views_leaves(struct sp_group *g)
{
	bool waits = false;
	u32 i;

	for (i = 0; i < g->view.nmembers; i++) {
		const struct sp_member *m = &g->view.members[i];
		struct sp_lane_tx *lane;

		if (m->node != g->self || m->lane < 0)
			continue;
		lane = g->lanes[m->nr];
		if (lane->leaving == SP_STAYS)
			continue;
		if (!sp_views_drained(g, m->nr, lane)) {
			waits = true;
			continue;
		}
		if (sp_ballot_leave(&g->ballot, i, lane->leaving))
			g->dirty = true;
		/* From view to view the ballot knows it. */
		WRITE_ONCE(lane->leaving, SP_STAYS);
	}
	return waits;
}

/*
 * A node that has said bye in order takes no part any more. If it has gone by a
 * decision it has said so before.
 */
static void sp_views_byes(struct sp_group *g)
{
	u32 i;

	if (!sp_ballot_own(&g->ballot)->wedged)
		return;
	for (i = 0; i < g->view.nnodes; i++)
		if (g->peer[i] && g->peer[i]->bye_heard &&
		    g->ballot.reports[i].accepted.ballot != SP_BALLOT_DECIDED &&
		    sp_suspect(&g->ballot, i))
			g->dirty = true;
}

/*
 * A group that is closed needs no other view only because its members leave: each
 * node comes to the same end by itself. It takes part when others do need one.
 */
static bool sp_views_needed(const struct sp_group *g)
{
	bool needed = sp_ballot_own(&g->ballot)->suspected;
	u32 i;

	if (!READ_ONCE(g->closing))
		return true;
	for (i = 0; i < g->view.nnodes; i++)
		needed |= g->ballot.reports[i].wedged ||
			  g->ballot.reports[i].accepted.ballot;
	return needed;
}

/* One step; true when another may follow. */
static bool sp_views_one(struct sp_group *g)
{
	int did;

	if (!sp_views_live(g))
		return false;
	sp_views_leaves(g);
	sp_views_byes(g);
	did = sp_ballot_step(&g->ballot);
	sp_views_drop(g);
	if (did < 0) {
		pr_warn_ratelimited("spindle: %s: group %s: no majority of view %llu is left\n",
				    g->node->name, g->name, g->view.id);
		sp_views_fail(g, did);
		return false;
	}
	if ((did & SP_STEP_SEND) || g->dirty)
		sp_views_send(g);
	if (g->ending)
		return false;
	if ((did & SP_STEP_WEDGE) && sp_views_needed(g)) {
		sp_views_wedge(g);
		return true;
	}
	if (did & SP_STEP_DECIDED) {
		trace_spindle_decided(g->node->name, g->name, g->view.id,
				      sp_ballot_decision(&g->ballot)->njoins);
		sp_views_decided(g);
		return true;
	}
	return false;
}

/**
 * sp_views_step() - come to what follows from all that is known
 * @g: the group
 *
 * To be called after everything that may bear upon the next view. From within
 * itself it does nothing but see to it that it goes on.
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_views_step(struct sp_group *g)
{
	bool again;

	lockdep_assert_held(&sp_ctl);
	g->restep = true;
	/* Between the decision and the view nothing follows from anything. */
	if (g->stepping || g->growth || !sp_views_live(g))
		return;
	g->stepping = true;
	sp_views_early(g);
	do {
		g->restep = false;
		again = sp_views_one(g);
	} while ((again || g->restep) && !g->growth);
	g->stepping = false;
}

static void sp_views_tend_in(struct sp_group *g, u32 ms)
{
	lockdep_assert_held(&sp_ctl);
	kref_get(&g->ref);
	/* Sooner than what may be queued already. */
	if (mod_delayed_work(sp_wq, &g->tend, msecs_to_jiffies(ms)))
		sp_group_put(g);
}

/**
 * sp_views_tend_soon() - there is something to give back, or to wait for
 * @g: the group
 *
 * Context: sp_ctl is held.
 */
void sp_views_tend_soon(struct sp_group *g)
{
	sp_views_tend_in(g, SP_TEND_MS);
}

/**
 * sp_views_tend_now() - what was waited for has come
 * @g: the group
 *
 * Context: sp_ctl is held.
 */
void sp_views_tend_now(struct sp_group *g)
{
	sp_views_tend_in(g, 0);
}

/* Is a node heard now? */
static bool sp_views_hears(const struct sp_group_peer *gp)
{
	const struct sp_link *link = gp->user.link;

	return link && link->state == SP_LINK_UP && !sp_link_silent(link);
}

/* Can it be heard again? Who has said bye takes no part any more. */
static bool sp_views_may_hear(const struct sp_group_peer *gp)
{
	return !gp->bye_heard;
}

/* Or may it only be late? */
static bool sp_views_heard(const struct sp_group_peer *gp)
{
	return !sp_link_missed(&gp->user);
}

/* Are those of the view of whom this is true, and this node, no majority? */
static bool sp_views_few(const struct sp_group *g,
			 bool (*which)(const struct sp_group_peer *gp))
{
	u64 nodes = 1ull << g->self;
	u32 i;

	for (i = 0; i < g->view.nnodes; i++)
		if (g->peer[i] && which(g->peer[i]))
			nodes |= 1ull << i;
	return sp_suspect_waits(&g->ballot, nodes);
}

/*
 * Does a group have to wait for a majority? Not when none can come back. One that is at the
 * end of its stream comes to its own end without.
 */
static bool sp_views_lonely(const struct sp_group *g)
{
	return sp_views_live(g) && !READ_ONCE(g->closing) &&
	       sp_views_few(g, sp_views_hears) && !sp_views_few(g, sp_views_may_hear);
}

/* The one place where a group begins to wait for a majority, and ends it. */
static void sp_views_set_minority(struct sp_group *g, bool minority)
{
	lockdep_assert_held(&sp_ctl);
	if (g->minority == minority)
		return;
	WRITE_ONCE(g->minority, minority);
	trace_spindle_minority(g->node->name, g->name, g->view.id, minority);
	if (minority) {
		WRITE_ONCE(g->counters.minorities, g->counters.minorities + 1);
		pr_info_ratelimited("spindle: %s: group %s: no majority of view %llu is heard: waits for one\n",
				    g->node->name, g->name, g->view.id);
		sp_views_tend_soon(g);
	} else {
		pr_info_ratelimited("spindle: %s: group %s: no longer waits for a majority of view %llu\n",
				    g->node->name, g->name, g->view.id);
	}
	/* Who sends is told, or may go on. */
	sp_group_state_changed(g);
}

/**
 * sp_views_wait() - is a node that is silent for too long waited for all the same
 * @g: the group
 *
 * So it is where no majority of the view is heard, until one is: see
 * sp_suspect_waits(). When that lasts programs are told; if all members of this node have
 * left, the group fails. Context: sp_ctl is held, may sleep.
 *
 * Return: true when it is; false when it is to be suspected, or the group has failed.
 */
bool sp_views_wait(struct sp_group *g)
{
	lockdep_assert_held(&sp_ctl);
	/* Once it waits, sp_views_reunite() says how it goes on with all that are silent. */
	if (g->minority)
		return true;
	if (!sp_views_lonely(g))
		return false;
	if (!sp_views_few(g, sp_views_heard))
		return true;
	if (sp_views_left(g)) {
		sp_views_fail(g, -ENETDOWN);
		return false;
	}
	sp_views_set_minority(g, true);
	return true;
}

/* A node of the view that is not heard may be about to be: it has all its time once more. */
static void sp_views_await(struct sp_group_peer *gp)
{
	struct sp_group *g = gp->g;

	if (gp->rank < 0 || sp_suspects(&g->ballot, gp->rank) || !gp->user.link)
		return;
	gp->hopes = jiffies + msecs_to_jiffies(sp_user_link_ms(&gp->user));
	gp->refused = false;
	if (sp_link_silent(gp->user.link))
		sp_link_await(&gp->user);
}

/*
 * A group that waits for a majority looks whether it hears one. If all members of this node
 * have left meanwhile it does not wait. True: it still does.
 */
static bool sp_views_reunite(struct sp_group *g)
{
	struct sp_group_peer *gp;

	if (!g->minority)
		return false;
	if (sp_views_lonely(g)) {
		if (!sp_views_left(g))
			return true;
		sp_views_fail(g, -ENETDOWN);
		return false;
	}
	list_for_each_entry(gp, &g->peers, on_group)
		sp_views_await(gp);
	sp_views_set_minority(g, false);
	return false;
}

/* Keys of nodes that are in the view no more. True: some are not given back yet. */
static bool sp_views_reap(struct sp_group *g)
{
	u32 patience = max_t(u32, sp_suspect_ms, SP_BYE_MS);
	struct sp_group_peer *gp;
	bool waits = false;

	list_for_each_entry(gp, &g->peers, on_group) {
		if (gp->rank >= 0)
			continue;
		if (sp_peer_reap(gp)) {
			sp_peer_forget(gp);
			continue;
		}
		waits = true;
		/* The time that it has to answer does not go on while it is not heard. */
		if (gp->user.link && sp_link_silent(gp->user.link))
			gp->since += msecs_to_jiffies(SP_TEND_MS);
		if (time_after(jiffies, gp->since + msecs_to_jiffies(patience)))
			sp_peer_drop(gp);
	}
	return waits;
}

/* Room is given away again once nothing can be sent to those who are gone. */
static bool sp_views_release(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_group_peer *gp;
	bool waits = false;

	if (!READ_ONCE(g->core.hold))
		return false;
	list_for_each_entry(gp, &g->peers, on_group) {
		if (gp->rank >= 0 && !(g->dropped >> gp->rank & 1))
			continue;
		if (sp_peer_flushed(gp))
			gp->user.held = false;
		else
			waits = true;
	}
	if (waits)
		return true;
	spin_lock_bh(&engine->lock);
	g->core.hold = false;
	spin_unlock_bh(&engine->lock);
	sp_group_kick(g);
	return false;
}

/* Nodes that have come and say no key. True: some are waited for. */
static bool sp_views_newcomers(struct sp_group *g)
{
	struct sp_group_peer *gp;
	bool waits = false;

	list_for_each_entry(gp, &g->peers, on_group) {
		if (gp->rank < 0 || !gp->comes || sp_suspects(&g->ballot, gp->rank))
			continue;
		waits = true;
		if (g->minority)
			gp->since = jiffies;
		if (time_before(jiffies, gp->since + msecs_to_jiffies(SP_COME_MS)))
			continue;
		sp_views_doubt(g, gp->rank, "does not come");
	}
	return waits;
}

/**
 * sp_views_tend() - give back what nodes had, and look after members that leave
 * @work: @tend of a group
 *
 * Comes back by itself as long as there is anything to wait for. Context: without
 * sp_ctl, may sleep.
 */
void sp_views_tend(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, tend);
	bool again, later;

	mutex_lock(&sp_ctl);
	if (sp_views_live(g))
		sp_views_step(g);
	if (sp_views_live(g)) {
		again = sp_views_reap(g);
		again |= sp_views_release(g);
		sp_grow_sweep(g);
		later = sp_views_leaves(g);
		later |= sp_views_reunite(g);
		later |= sp_views_newcomers(g);
		if (g->dirty)
			sp_views_step(g);
		if (sp_views_live(g) && (again || later)) {
			kref_get(&g->ref);
			/* Unless a step has asked for a sooner look. */
			if (!queue_delayed_work(sp_wq, &g->tend,
						msecs_to_jiffies(again ? SP_TEND_MS :
								 SP_LINGER_MS)))
				sp_group_put(g);
		}
	}
	mutex_unlock(&sp_ctl);
	sp_group_put(g);
}
