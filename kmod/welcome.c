// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that come to a group whose messages flow. Any node that has a member may
 * be asked. It puts the request into its report, and a view follows with the program
 * in it (core/ballot.c). When that begins, the nodes that were there before tell each
 * node that comes where the order is: the first welcome counts.
 *
 * All under sp_ctl but for what says otherwise.
 */
#include <linux/slab.h>

#include "engine.h"
#include "group.h"

/**
 * struct sp_ask - a program that waits for a view with it
 * @list: on the group's list
 * @g: the group
 * @who: the program
 * @user: use of the link to its node; without a link for one of this node
 */
struct sp_ask {
	struct list_head list;
	struct sp_group *g;
	struct sp_join_request who;
	struct sp_link_user user;
};

/* A welcome that is being sent or has come: under sp_ctl. */
static u64 sp_welcome_part[SP_MSG_MAX / sizeof(u64)];

static void sp_ask_free(struct sp_ask *ask)
{
	list_del(&ask->list);
	sp_link_unuse(&ask->user);
	kfree(ask);
}

/* A program does not wait any more. */
static void sp_ask_drop(struct sp_ask *ask)
{
	struct sp_group *g = ask->g;

	if (sp_views_live(g)) {
		sp_ballot_cancel(&g->ballot, &ask->who.addr, ask->who.cookie);
		g->dirty = true;
	}
	sp_ask_free(ask);
}

static void sp_ask_up(struct sp_link_user *user)
{
}

static void sp_ask_down(struct sp_link_user *user, int error)
{
	struct sp_ask *ask = container_of(user, struct sp_ask, user);
	struct sp_group *g = ask->g;

	sp_ask_drop(ask);
	sp_views_step(g);
}

static struct sp_ask *sp_ask_find(struct sp_group *g, const struct sp_addr *addr,
				  u64 cookie)
{
	struct sp_ask *ask;

	list_for_each_entry(ask, &g->asks, list)
		if (ask->who.cookie == cookie &&
		    !sp_addr_cmp(&ask->who.addr, addr))
			return ask;
	return NULL;
}

/**
 * sp_ask_waits() - does a program wait to be taken in
 * @g: the group
 * @addr: the program's node
 * @cookie: what that calls it
 *
 * Context: sp_ctl is held.
 *
 * Return: true when it does; false also once it is a member.
 */
bool sp_ask_waits(struct sp_group *g, const struct sp_addr *addr, u64 cookie)
{
	lockdep_assert_held(&sp_ctl);
	return sp_ask_find(g, addr, cookie);
}

/* Is there room for one more, with all that wait already? */
static bool sp_ask_fits(const struct sp_group *g, const struct sp_addr *addr)
{
	const struct sp_view *v = &g->view;
	const struct sp_ask *ask;
	u32 all = v->nmembers, same = 0;
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		same += !sp_addr_cmp(&v->members[i].addr, addr);
	list_for_each_entry(ask, &g->asks, list) {
		all++;
		same += !sp_addr_cmp(&ask->who.addr, addr);
	}
	return all < g->config.limit && same < SP_MAX_NODE_LANES;
}

/*
 * A node that asks in a new life has lost the one before, and all members that it
 * had there: their cookies begin otherwise.
 */
static void sp_ask_check(struct sp_group *g, const struct sp_join_request *who)
{
	const struct sp_view *v = &g->view;
	struct sp_group_peer *gp = sp_peer_find(g, &who->addr);
	u32 i;

	for (i = 0; gp && i < v->nmembers; i++)
		if (v->members[i].node == gp->rank &&
		    v->members[i].cookie >> 32 != who->cookie >> 32) {
			sp_views_doubt(g, gp->rank, "has begun anew");
			return;
		}
}

/**
 * sp_asks_feed() - have those who wait considered for the next view
 * @g: the group
 *
 * To be called when a view has begun, and when somebody has asked; sp_views_step() is
 * to follow. Those who have come wait no more.
 */
void sp_asks_feed(struct sp_group *g)
{
	struct sp_ask *ask, *next;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_safe(ask, next, &g->asks, list) {
		int ret;

		if (!sp_views_live(g) || READ_ONCE(g->closing))
			return;
		if (sp_view_find_member(&g->view, &ask->who.addr,
					ask->who.cookie) >= 0) {
			sp_ask_free(ask);
			continue;
		}
		sp_ask_check(g, &ask->who);
		ret = sp_ballot_join(&g->ballot, &ask->who);
		/* As many as can at once; the others with a later view. */
		if (ret < 0)
			break;
		if (ret)
			g->dirty = true;
	}
}

/**
 * sp_ask() - a program wants to be taken into a group that has a view
 * @g: the group
 * @addr: the program's node
 * @cookie: what that calls it
 * @flags: SP_MEMBER_*
 *
 * Return: 0: it waits, or is a member; -EUSERS when there is no room; -EINVAL,
 * -ENOMEM, or as sp_link_use().
 */
int sp_ask(struct sp_group *g, const struct sp_addr *addr, u64 cookie, u32 flags)
{
	struct sp_ask *ask;
	int ret = 0;

	lockdep_assert_held(&sp_ctl);
	/* Programs do not say themselves what they lack. */
	if (flags & ~SP_MEMBER_ALL || flags & SP_MEMBER_STALE)
		return -EINVAL;
	if (g->config.flags & SP_CONFIG_STATE)
		flags |= SP_MEMBER_STALE;
	if (sp_ask_find(g, addr, cookie) ||
	    sp_view_find_member(&g->view, addr, cookie) >= 0)
		return 0;
	if (!sp_ask_fits(g, addr))
		return -EUSERS;
	ask = kzalloc(sizeof(*ask), GFP_KERNEL_ACCOUNT);
	if (!ask)
		return -ENOMEM;
	ask->g = g;
	ask->who.addr = *addr;
	ask->who.cookie = cookie;
	ask->who.flags = flags;
	INIT_LIST_HEAD(&ask->user.on_link);
	ask->user.up = sp_ask_up;
	ask->user.down = sp_ask_down;
	list_add_tail(&ask->list, &g->asks);
	if (sp_addr_cmp(addr, &g->node->addr))
		ret = sp_link_use(g->node, addr, &ask->user);
	if (ret) {
		list_del(&ask->list);
		kfree(ask);
		return ret;
	}
	sp_asks_feed(g);
	return 0;
}

/**
 * sp_ask_cancel() - a program that has asked has given up
 * @g: the group
 * @addr: the program's node
 * @cookie: what that calls it
 *
 * Return: false when it does not wait: it may be a member.
 */
bool sp_ask_cancel(struct sp_group *g, const struct sp_addr *addr, u64 cookie)
{
	struct sp_ask *ask = sp_ask_find(g, addr, cookie);

	lockdep_assert_held(&sp_ctl);
	if (!ask)
		return false;
	sp_ask_drop(ask);
	sp_views_step(g);
	return true;
}

/**
 * sp_asks_others() - nodes that may be asked, too
 * @g: the group, its view ranked
 * @except: but for this one
 * @to: where they go, SP_OTHERS_MAX at most
 *
 * Return: how many.
 */
u32 sp_asks_others(const struct sp_group *g, const struct sp_addr *except,
		   struct sp_addr *to)
{
	const struct sp_view *v = &g->view;
	u32 n = 0;
	u32 i;

	for (i = 0; i < v->nnodes && n < SP_OTHERS_MAX; i++)
		if (i != g->self && sp_addr_cmp(&v->nodes[i].addr, except))
			to[n++] = v->nodes[i].addr;
	return n;
}

/**
 * sp_asks_end() - nobody is taken in any more here
 * @g: the group
 * @error: why, for those who wait; 0: they have to ask others
 */
void sp_asks_end(struct sp_group *g, int error)
{
	struct sp_msg_answer answer = { .gid = g->gid };
	struct sp_addr other[SP_OTHERS_MAX];
	struct sp_ask *ask;

	lockdep_assert_held(&sp_ctl);
	/* Who is turned away here may take others off the list. */
	while ((ask = list_first_entry_or_null(&g->asks, struct sp_ask, list))) {
		struct sp_join_request who = ask->who;
		struct sp_link *link = ask->user.link;

		answer.error = error ?: -EHOSTDOWN;
		if (!error && sp_asks_others(g, &who.addr, other)) {
			answer.error = -EREMOTE;
			answer.coordinator = other[0];
		}
		answer.cookie = who.cookie;
		if (link && link->state == SP_LINK_UP)
			sp_link_say(link, &answer.hdr, SP_MSG_ANSWER,
				    sizeof(answer));
		sp_ask_free(ask);
		if (!link)
			sp_member_turned_away(g->node, who.cookie, answer.error,
					      &answer.coordinator);
	}
}

/**
 * sp_greeting_make() - note what nodes are told that come with a view
 * @g: the group; the view has begun, and no pass has seen it
 * @stayed: members that were in the view before
 *
 * Context: sp_ctl and the engine's lock are held.
 */
void sp_greeting_make(struct sp_group *g, u32 stayed)
{
	struct sp_wire_welcome *w = (struct sp_wire_welcome *)g->greeting;
	const struct sp_order *o = &g->core.order;
	const struct sp_view *v = &g->view;
	u8 *to = (u8 *)w->data;
	u32 i;

	w->view = v->id;
	w->start = o->start;
	w->nnodes = v->nnodes;
	w->nmembers = v->nmembers;
	w->nlanes = v->nlanes;
	w->next_uid = v->next_uid;
	w->stayed = stayed;
	w->giver = v->giver;
	for (i = 0; i < v->nnodes; i++)
		to = sp_wire_put(to, &v->nodes[i].addr,
				 sizeof(v->nodes[i].addr));
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		const struct sp_welcome_member wm = {
			.cookie = m->cookie,
			.flags = m->flags,
			.uid = m->uid,
			.node = m->node,
			.nr = m->lane < 0 ? 0 : m->nr,
			.sends = m->lane >= 0,
		};

		to = sp_wire_put(to, &wm, sizeof(wm));
	}
	for (i = 0; i < v->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);
		struct sp_welcome_lane wl = { .fin = lane->fin };
		struct sp_point at;

		sp_lane_point(lane, o->depth, &at);
		wl.round = at.round;
		wl.count = at.count;
		wl.tail = at.tail;
		to = sp_wire_put(to, &wl, sizeof(wl));
	}
	g->greeting_len = to - g->greeting;
}

/**
 * sp_greeting_say() - tell a node that comes with the view where the order is
 * @gp: the node; its link is up
 *
 * Return: 0 or a negative errno.
 */
int sp_greeting_say(struct sp_group_peer *gp)
{
	struct sp_msg_part *msg = (struct sp_msg_part *)sp_welcome_part;
	struct sp_group *g = gp->g;

	lockdep_assert_held(&sp_ctl);
	return sp_parts_say(gp->user.link, SP_MSG_WELCOME, msg, g->gid,
			    g->greeting, g->greeting_len);
}

static size_t sp_welcome_size(const struct sp_wire_welcome *w)
{
	return sizeof(*w) + w->nnodes * sizeof(struct sp_addr) +
	       w->nmembers * sizeof(struct sp_welcome_member) +
	       w->nlanes * sizeof(struct sp_welcome_lane);
}

static int sp_welcome_view(const struct sp_wire_welcome *w, const u8 **from,
			   struct sp_view *v)
{
	struct sp_welcome_member wm;
	u32 i;

	v->nnodes = w->nnodes;
	v->nmembers = w->nmembers;
	v->next_uid = w->next_uid;
	v->giver = w->giver;
	for (i = 0; i < w->nnodes; i++)
		*from = sp_wire_get(*from, &v->nodes[i].addr,
				    sizeof(v->nodes[i].addr));
	for (i = 0; i < w->nmembers; i++) {
		struct sp_member *m = &v->members[i];

		*from = sp_wire_get(*from, &wm, sizeof(wm));
		if (wm.node >= w->nnodes || wm.sends > 1)
			return -EPROTO;
		m->addr = v->nodes[wm.node].addr;
		m->cookie = wm.cookie;
		m->flags = wm.flags;
		m->uid = wm.uid;
		m->nr = wm.nr;
		m->lane = wm.sends ? 0 : -1;
	}
	if (sp_view_told(v, w->view) || v->nlanes != w->nlanes)
		return -EPROTO;
	return 0;
}

/**
 * sp_welcome_decode() - understand a welcome
 * @data: it came whole
 * @len: its length
 * @v: the view; initialised, the rest is filled in
 * @welcome: likewise, but for what begins at 0
 *
 * Return: 0, or -EPROTO when no correct node says that.
 */
int sp_welcome_decode(const u8 *data, u32 len, struct sp_view *v,
		      struct sp_welcome *welcome)
{
	const struct sp_wire_welcome *w = (const struct sp_wire_welcome *)data;
	const u8 *from = (const u8 *)w->data;
	struct sp_welcome_lane wl;
	u32 i;

	if (len < sizeof(*w) || w->nnodes > SP_MAX_MEMBERS ||
	    w->nmembers > SP_MAX_MEMBERS || w->nlanes > SP_MAX_MEMBERS ||
	    len != sp_welcome_size(w) || w->view < 2 || w->start < 0 ||
	    w->stayed >= w->nmembers)
		return -EPROTO;
	if (sp_welcome_view(w, &from, v))
		return -EPROTO;
	welcome->start = w->start;
	welcome->stayed = w->stayed;
	for (i = 0; i < w->nlanes; i++) {
		from = sp_wire_get(from, &wl, sizeof(wl));
		if (wl.fin > 1)
			return -EPROTO;
		welcome->at[i].round = wl.round;
		welcome->at[i].count = wl.count;
		welcome->at[i].tail = wl.tail;
		welcome->fin[i] = wl.fin;
	}
	return 0;
}
