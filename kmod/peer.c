// SPDX-License-Identifier: GPL-2.0
/*
 * The other nodes of a group: the link to each, the keys that are exchanged on
 * it, and giving them back. In the first view all are connected and all keys are
 * exchanged before messages flow. From then on a node whose link is lost is
 * suspected, and is in the next view no more.
 *
 * Everything here runs under sp_ctl but for what says otherwise.
 */
#include <linux/slab.h>
#include <linux/xarray.h>

#include "engine.h"
#include "group.h"
#include "limits.h"

#define SP_GRANT_MS	5	/* before a grant that found no room is tried again */

/* What peers call (group, themselves): see struct sp_msg_row. */
DEFINE_XARRAY_ALLOC1(sp_handles);

static void sp_peer_up(struct sp_link_user *user);
static void sp_peer_down(struct sp_link_user *user, int error);

/**
 * sp_peers_init() - prepare the nodes of the first view
 * @g: the group, its view ranked; @g->peers was allocated
 *
 * Context: sp_ctl is held.
 */
void sp_peers_init(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	g->npeers = v->nnodes;
	for (i = 0; i < v->nnodes; i++) {
		struct sp_group_peer *gp = &g->peers[i];

		gp->g = g;
		gp->rank = i;
		gp->addr = v->nodes[i].addr;
		sp_addr_name(&gp->addr, gp->name, sizeof(gp->name));
		INIT_LIST_HEAD(&gp->user.on_link);
		gp->user.up = sp_peer_up;
		gp->user.down = sp_peer_down;
		if (i != g->self)
			g->peer[i] = gp;
	}
}

/**
 * sp_peers_connect() - begin to need the links to all nodes of the first view
 * @g: the group, its memory there
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_peers_connect(struct sp_group *g)
{
	int ret;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	for (i = 0; i < g->npeers; i++) {
		if (i == g->self)
			continue;
		ret = xa_alloc(&sp_handles, &g->peers[i].handle, &g->peers[i],
			       xa_limit_31b, GFP_KERNEL);
		if (ret)
			return ret;
	}
	g->ready = true;
	for (i = 0; i < g->npeers && g->view.state == SP_VIEW_FORMING; i++) {
		if (i == g->self)
			continue;
		ret = sp_link_use(g->node, &g->peers[i].addr,
				  &g->peers[i].user);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * sp_peer_find() - the node of the view with an address
 * @g: the group, its view ranked
 * @addr: the address
 *
 * Context: sp_ctl is held.
 *
 * Return: the node, or NULL when there is none but perhaps this one.
 */
struct sp_group_peer *sp_peer_find(struct sp_group *g,
				   const struct sp_addr *addr)
{
	int rank = sp_view_find_node(&g->view, addr);

	lockdep_assert_held(&sp_ctl);
	return rank < 0 || !g->peers ? NULL : g->peer[rank];
}

/* Also one that is in the view no more. */
static struct sp_group_peer *sp_peer_ever(struct sp_group *g,
					  const struct sp_addr *addr)
{
	u32 i;

	for (i = 0; g->peers && i < g->npeers; i++)
		if (!sp_addr_cmp(&g->peers[i].addr, addr))
			return &g->peers[i];
	return NULL;
}

/**
 * sp_peer_behind() - does a peer exchange keys for what is over here
 * @g: the group, its memory there
 * @link: the link by which its key has come
 *
 * The link on which keys were exchanged broke, and this node knew the peer's by
 * then: its group has failed, or goes on without the peer. The peer did not
 * know ours, and has connected again: see sp_peer_down(). Nothing was said of it
 * on that link. Context: sp_ctl is held.
 *
 * Return: true when it is so.
 */
bool sp_peer_behind(struct sp_group *g, const struct sp_link *link)
{
	struct sp_group_peer *gp;

	lockdep_assert_held(&sp_ctl);
	gp = sp_peer_ever(g, &link->peer);
	return g->view.state != SP_VIEW_FORMING && gp &&
	       gp->user.link != link;
}

/**
 * sp_peers_keyed() - have all nodes of the first view exchanged keys with us
 * @g: the group
 *
 * Return: true when they have.
 */
bool sp_peers_keyed(const struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->npeers; i++)
		if (i != g->self &&
		    (!g->peers[i].key_said || !g->peers[i].key_heard))
			return false;
	return true;
}

/* Grant a peer its own slab here, and tell it. */
static int sp_peer_grant(struct sp_group_peer *gp)
{
	struct sp_group *g = gp->g;
	struct sp_msg_key key = { .gid = g->gid, .view = g->view.id };
	struct ib_mr *mr;
	int ret;

	mr = sp_mr_grant(gp->user.link, gp->slab);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	gp->mr = mr;
	key.iova = mr->iova;
	key.size = gp->slab->lay.size;
	key.rkey = mr->rkey;
	key.handle = gp->handle;
	key.flags = g->node->sdev->polled ? SP_KEY_POLLED : 0;
	/* What the processor puts beside what the adapter writes might undo that. */
	if (gp->slab->synced)
		key.flags |= SP_KEY_WRITTEN;
	ret = sp_link_say(gp->user.link, &key.hdr, SP_MSG_KEY, sizeof(key));
	if (!ret)
		gp->key_said = true;
	return ret;
}

static void sp_peer_up(struct sp_link_user *user)
{
	struct sp_group_peer *gp = container_of(user, struct sp_group_peer,
						user);
	struct sp_group *g = gp->g;
	int ret;

	if (g->ending)
		sp_peer_say_bye(gp, g->error);
	if (g->view.state != SP_VIEW_FORMING || gp->key_said)
		return;
	ret = sp_peer_grant(gp);
	if (ret == -EAGAIN) {
		/* The send queue is full: other groups are at work. */
		kref_get(&g->ref);
		if (!queue_delayed_work(sp_wq, &g->grants,
					msecs_to_jiffies(SP_GRANT_MS)))
			sp_group_put(g);
	} else if (ret) {
		sp_group_fail(g, ret);
	} else {
		sp_group_activate(g);
	}
}

/**
 * sp_peers_grant() - grant what found no room in a send queue
 * @work: @grants of a group
 *
 * Context: without sp_ctl, may sleep.
 */
void sp_peers_grant(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, grants);
	u32 i;

	mutex_lock(&sp_ctl);
	for (i = 0; i < g->npeers && !g->ending; i++) {
		struct sp_link *link = g->peers[i].user.link;

		if (link && link->state == SP_LINK_UP)
			sp_peer_up(&g->peers[i].user);
	}
	mutex_unlock(&sp_ctl);
	sp_group_put(g);
}

/* A link that was left over from when the peer's node was another: a new one. */
static int sp_peer_again(struct sp_group_peer *gp)
{
	gp->again = true;
	gp->key_said = false;
	if (gp->mr)
		sp_mr_revoke(gp->mr);
	gp->mr = NULL;
	sp_link_unuse(&gp->user);
	return sp_link_use(gp->g->node, &gp->addr, &gp->user);
}

static void sp_peer_down(struct sp_link_user *user, int error)
{
	struct sp_group_peer *gp = container_of(user, struct sp_group_peer,
						user);
	struct sp_group *g = gp->g;

	/* The link is unused when its requests are flushed: sp_peer_reap(). */
	if (gp->bye_heard || g->ending || gp->rank < 0)
		return;
	if (g->view.state == SP_VIEW_FORMING && !gp->key_heard &&
	    !gp->again && error != -ENODEV) {
		if (sp_peer_again(gp))
			sp_group_fail(g, -EHOSTDOWN);
		return;
	}
	pr_info_ratelimited("spindle: %s: group %s: link to %s lost: error %d\n",
			    g->node->name, g->name, gp->name, error);
	if (error == -ENODEV)
		sp_group_fail(g, error);
	else if (g->view.state == SP_VIEW_FORMING)
		sp_group_fail(g, -EHOSTDOWN);
	else
		sp_views_suspect(g, gp, "is lost");
}

/**
 * sp_peer_key() - a peer says where we may write
 * @g: the group, its view installed
 * @from: the peer
 * @key: what it says
 *
 * Context: sp_ctl is held.
 */
void sp_peer_key(struct sp_group *g, const struct sp_addr *from,
		 const struct sp_msg_key *key)
{
	struct sp_group_peer *gp = sp_peer_find(g, from);

	if (!gp || key->view != g->view.id || gp->key_heard ||
	    g->view.state != SP_VIEW_FORMING)
		return;
	if (key->size != g->slab->lay.size) {
		pr_warn_ratelimited("spindle: %s: group %s: memory of %s has another layout\n",
				    g->node->name, g->name, gp->name);
		sp_group_fail(g, -EPROTO);
		return;
	}
	gp->iova = key->iova;
	gp->rkey = key->rkey;
	gp->their_handle = key->handle;
	g->core.peers[gp->rank].polled = key->flags & SP_KEY_POLLED;
	g->core.peers[gp->rank].carry = key->flags & SP_KEY_WRITTEN ? 0 :
		sp_smc_carry_max(&g->slab->lay);
	gp->key_heard = true;
	sp_group_activate(g);
}

/**
 * sp_peer_done() - nothing more is posted to a peer for its group
 * @gp: the peer
 *
 * What was is waited for: sp_peer_flushed(). Context: sp_ctl is held, and no pass
 * posts to it any more.
 */
void sp_peer_done(struct sp_group_peer *gp)
{
	struct sp_link *link = gp->user.link;

	lockdep_assert_held(&sp_ctl);
	if (link && link->state == SP_LINK_UP)
		gp->last = READ_ONCE(link->built);
}

/**
 * sp_peer_say_bye() - tell a peer, once, that we write nothing more there
 * @gp: the peer
 * @error: what the group has failed with, -ECONNABORTED to who was put out, or 0
 *
 * Context: sp_ctl is held.
 */
void sp_peer_say_bye(struct sp_group_peer *gp, int error)
{
	struct sp_msg_bye bye = {
		.gid = gp->g->gid,
		.view = gp->g->view.id,
		.error = error,
	};
	struct sp_link *link = gp->user.link;

	lockdep_assert_held(&sp_ctl);
	if (gp->bye_said || !link || link->state != SP_LINK_UP)
		return;
	gp->bye_said = true;
	sp_peer_done(gp);
	if (sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye)))
		sp_link_set_state(link, SP_LINK_DOWN, -ENOMEM);
}

/* What a group fails with here that has failed with @error on another node. */
static int sp_peer_error(int error)
{
	switch (error) {
	case -EHOSTDOWN:
	case -EPROTO:
	case -ENOMEM:
		return error;
	default:
		/* Makes no sense to programs here, or nothing failed. */
		return -ECONNRESET;
	}
}

/* A peer of a group that has a view writes nothing more. */
static void sp_peer_bye_live(struct sp_group *g, struct sp_group_peer *gp,
			     const struct sp_msg_bye *bye)
{
	/* What it said before may have been how the view ends. */
	sp_views_step(g);
	if (g->ending || gp->rank < 0)
		return;
	if (bye->view > g->view.id && !sp_suspects(&g->ballot, gp->rank)) {
		/* It is in a view that this node is not in. */
		sp_views_put_out(g);
	} else if (bye->error || bye->view > g->view.id) {
		sp_views_suspect(g, gp, "has failed");
	} else {
		/* Passes go on after the last message, for those who lag behind. */
		sp_engine_peer_gone(g->node->sdev->engine, g, gp->rank);
		sp_peer_say_bye(gp, 0);
		sp_views_step(g);
	}
}

/**
 * sp_peer_bye() - a peer writes nothing more to our memory
 * @g: the group
 * @from: the peer
 * @bye: what it says
 *
 * Context: sp_ctl is held.
 */
void sp_peer_bye(struct sp_group *g, const struct sp_addr *from,
		 const struct sp_msg_bye *bye)
{
	struct sp_group_peer *gp;

	lockdep_assert_held(&sp_ctl);
	gp = sp_peer_ever(g, from);
	/* Strangers have no say. Before there are ranks only one peer counts. */
	if (!gp && (g->peers ||
		    (g->view.id ? sp_view_find_node(&g->view, from) < 0 :
		     sp_addr_cmp(from, &g->coordinator))))
		return;
	if (gp)
		gp->bye_heard = true;
	if (g->view.state == SP_VIEW_FORMING) {
		sp_group_fail(g, sp_peer_error(bye->error));
		return;
	}
	/* A view whose memory was refused has no peers yet. */
	if (!gp)
		return;
	if (g->ending || gp->rank < 0)
		sp_peer_say_bye(gp, 0);
	else
		sp_peer_bye_live(g, gp, bye);
}

/**
 * sp_peer_mute() - has a group failed that never began to talk to a peer
 * @g: the group
 * @from: the peer, which has said bye
 *
 * The memory of its view was refused, or is still being made. Nothing here
 * will say bye to the peer but the caller, who has to. Context: sp_ctl is held.
 *
 * Return: true, once for each peer, when it is so.
 */
bool sp_peer_mute(struct sp_group *g, const struct sp_addr *from)
{
	struct sp_group_peer *gp;

	if (g->view.state != SP_VIEW_FAILED)
		return false;
	if (!g->peers)
		return true;
	gp = sp_peer_find(g, from);
	if (!gp || gp->user.link || gp->bye_said)
		return false;
	gp->bye_said = true;
	return true;
}

/**
 * sp_peer_flushed() - is nothing of ours on its way to a peer any more
 * @gp: the peer, after sp_peer_done(), or without a link
 *
 * Return: true when no request to it can be sent again.
 */
bool sp_peer_flushed(const struct sp_group_peer *gp)
{
	struct sp_link *link = gp->user.link;

	if (!link)
		return true;
	switch (link->state) {
	case SP_LINK_CONNECTING:
		return true;
	case SP_LINK_UP:
		/*
		 * Other groups go on: wait for what is ours. By iWARP a write
		 * completes before it cannot be sent again any more: the peer
		 * says that it was there.
		 */
		return sp_post_completed(link) >= gp->last &&
		       (!link->iwarp || gp->bye_heard || !gp->bye_said);
	case SP_LINK_DOWN:
		break;
	}
	/* Until it is flushed: see sp_link_stop(). */
	return !smp_load_acquire(&link->qp);
}

/**
 * sp_peer_reap() - give back what a peer had
 * @gp: the peer, of a group that ends, or in the view no more
 *
 * A key is revoked when its holder has said bye, since a write with a dead key
 * would break the link for all groups.
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: true when the peer cannot reach us any more, nor our requests be
 * resent.
 */
bool sp_peer_reap(struct sp_group_peer *gp)
{
	struct sp_link *link = gp->user.link;

	lockdep_assert_held(&sp_ctl);
	/* The peer is told when it is up. */
	if (link && link->state == SP_LINK_CONNECTING)
		return false;
	if (link && link->state == SP_LINK_UP && gp->mr && !gp->bye_heard)
		return false;
	if (!sp_peer_flushed(gp))
		return false;
	if (gp->handle)
		xa_erase(&sp_handles, gp->handle);
	gp->handle = 0;
	if (gp->mr)
		sp_mr_revoke(gp->mr);
	gp->mr = NULL;
	sp_link_unuse(&gp->user);
	return true;
}

/**
 * sp_peer_drop() - a peer does not give its key back: break the link
 * @gp: the peer
 *
 * Context: sp_ctl is held.
 */
void sp_peer_drop(struct sp_group_peer *gp)
{
	struct sp_link *link = gp->user.link;

	if (!link || link->state == SP_LINK_DOWN)
		return;
	pr_warn_ratelimited("spindle: %s: %s: no bye from %s, link dropped\n",
			    gp->g->node->name, gp->g->name, gp->name);
	sp_link_set_state(link, SP_LINK_DOWN, -ETIMEDOUT);
}
