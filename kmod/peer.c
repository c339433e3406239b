// SPDX-License-Identifier: GPL-2.0
/*
 * The other nodes of a group: the link to each, the keys that are granted on
 * it, what happens when it breaks, and giving the keys back in the end.
 *
 *   cut        no link, or the keys are not exchanged on it yet; nothing is
 *              posted. After suspect_ms the node is suspected.
 *   open       keys were heard: the core posts
 *   gone       it is in no view any more (rank -1): keys go back when it has
 *              said bye, or when its link is down
 *
 * Everything here runs under sp_ctl but for what says otherwise.
 */
#include <linux/slab.h>
#include <linux/xarray.h>

#include "engine.h"
#include "group.h"
#include "rdmc.h"

#define SP_TEND_MS	5	/* between looks at what waits for something */
#define SP_TEND_QUICK	40	/* so many of them for lanes that have ended */
#define SP_TEND_LATER_MS 200	/* then, that long */
#define SP_FIRST_MS	3000U	/* a node that comes has so long to connect */
#define SP_READY_MS	10000U	/* and, being heard, so long to make its memory */
#define SP_REAP_CONNECTING 200U	/* looks at a group that ends, for a link to be up */
#define SP_REFUSALS	3	/* of a node that comes, before it is believed */

/* What peers call (group, themselves): see struct sp_msg_row. */
DEFINE_XARRAY_ALLOC1(sp_handles);

static void sp_peer_up(struct sp_link_user *user);
static void sp_peer_down(struct sp_link_user *user, int error);
static bool sp_peer_quiet(struct sp_link_user *user, u32 ms);

/**
 * sp_peer_make() - memory for another node
 * @g: the group
 * @addr: its address
 *
 * Context: may sleep; without sp_ctl.
 *
 * Return: the node, on no list; or an ERR_PTR.
 */
struct sp_peer_node *sp_peer_make(struct sp_group *g, const struct sp_addr *addr)
{
	struct sp_peer_node *pn;
	struct sp_layout lay;
	int ret = -ENOMEM;

	pn = kzalloc(sizeof(*pn), GFP_KERNEL_ACCOUNT);
	if (!pn)
		return ERR_PTR(-ENOMEM);
	pn->g = g;
	pn->addr = *addr;
	sp_addr_name(addr, pn->name, sizeof(pn->name));
	pn->rank = -1;
	INIT_LIST_HEAD(&pn->list);
	INIT_LIST_HEAD(&pn->readies);
	INIT_LIST_HEAD(&pn->user.on_link);
	pn->user.up = sp_peer_up;
	pn->user.down = sp_peer_down;
	pn->user.quiet = sp_peer_quiet;
	pn->pushed = kcalloc(SP_MAX_NODE_LANES, sizeof(*pn->pushed),
			     GFP_KERNEL_ACCOUNT);
	pn->tell = kzalloc(SP_TELL_MAX, GFP_KERNEL_ACCOUNT);
	if (!pn->pushed || !pn->tell)
		goto err;
	sp_layout_rows(&lay, PAGE_SIZE);
	pn->rows = sp_slab_alloc(g->node->sdev, &lay, true);
	if (IS_ERR(pn->rows)) {
		ret = PTR_ERR(pn->rows);
		pn->rows = NULL;
		goto err;
	}
	return pn;

err:
	sp_peer_free(pn);
	return ERR_PTR(ret);
}

/**
 * sp_peer_free() - undo sp_peer_make()
 * @pn: the node; no key, no link and no handle is left, and a grace period has
 *	passed since
 */
void sp_peer_free(struct sp_peer_node *pn)
{
	sp_rdmc_exit(pn);
	if (pn->rows)
		sp_slab_free(pn->rows);
	kfree(pn->early);
	kfree(pn->tell);
	kfree(pn->pushed);
	kfree(pn);
}

static void sp_peer_tend_in(struct sp_group *g, u32 ms)
{
	kref_get(&g->ref);
	if (!queue_delayed_work(sp_wq, &g->tend, msecs_to_jiffies(ms)))
		sp_group_put(g);
}

static void sp_peer_tend_soon(struct sp_group *g)
{
	kref_get(&g->ref);
	/* Sooner than what may be queued already. */
	if (mod_delayed_work(sp_wq, &g->tend, msecs_to_jiffies(SP_TEND_MS)))
		sp_group_put(g);
}

/**
 * sp_peer_connect() - begin to need the link to a node
 * @pn: the node, in the view by its rank
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_peer_connect(struct sp_peer_node *pn)
{
	struct sp_group *g = pn->g;
	int ret;

	lockdep_assert_held(&sp_ctl);
	list_add_tail(&pn->list, &g->peers);
	pn->lost = jiffies;
	pn->waits = true;
	ret = xa_alloc(&sp_handles, &pn->handle, pn, xa_limit_31b, GFP_KERNEL);
	if (ret)
		return ret;
	sp_peer_tend_soon(g);
	return sp_link_use(g->node, &pn->addr, &pn->user);
}

/**
 * sp_peer_find() - the node of the view with an address
 * @g: the group
 * @addr: the address
 *
 * Return: the node, or NULL.
 */
struct sp_peer_node *sp_peer_find(struct sp_group *g, const struct sp_addr *addr)
{
	struct sp_peer_node *pn;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(pn, &g->peers, list)
		if (pn->rank >= 0 && !sp_addr_cmp(&pn->addr, addr))
			return pn;
	return NULL;
}

/* A key to be told of. Sends those that fill a message; NULL sends the rest. */
static int sp_peer_tell_key(struct sp_peer_node *pn, struct sp_msg_keys *msg,
			    const struct ib_mr *mr, u64 cookie, u64 size)
{
	if (mr) {
		struct sp_wire_key *key = &msg->keys[msg->count++];

		key->cookie = cookie;
		key->iova = mr->iova;
		key->size = size;
		key->rkey = mr->rkey;
		key->pad = 0;
		if (msg->count < SP_KEYS_CHUNK)
			return 0;
	}
	if (!msg->count)
		return 0;
	msg->gid = pn->g->gid;
	msg->handle = pn->handle;
	msg->flags = pn->g->node->sdev->polled ? SP_KEY_POLLED : 0;
	msg->pad = 0;
	msg->view = pn->g->view.id;
	if (sp_link_say(pn->user.link, &msg->hdr, SP_MSG_KEYS,
			struct_size(msg, keys, msg->count)))
		return -ENOMEM;
	msg->count = 0;
	return 0;
}

static int sp_peer_grant_one(struct sp_peer_node *pn, struct sp_msg_keys *msg,
			     struct ib_mr **to, struct sp_slab *slab, u64 cookie)
{
	struct ib_mr *mr;

	if (*to)
		return 0;
	mr = sp_mr_grant(pn->user.link, slab);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	*to = mr;
	return sp_peer_tell_key(pn, msg, mr, cookie, slab->lay.size);
}

/**
 * sp_peer_grant() - grant a node what it has to write to, and tell it
 * @pn: the node
 *
 * What was granted on this link stays so; what finds no room in the send queue
 * is left to the next try.
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_peer_grant(struct sp_peer_node *pn)
{
	struct sp_link *link = pn->user.link;
	struct sp_group *g = pn->g;
	struct sp_msg_keys *msg;
	int ret;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	if (pn->rank < 0 || g->ending || !g->ready || !link ||
	    link->state != SP_LINK_UP || !pn->trusted)
		return;
	msg = kzalloc(SP_MSG_MAX, GFP_KERNEL);
	if (!msg) {
		sp_peer_tend_soon(g);
		return;
	}
	/* Lanes first: who has the key to the rows is open. */
	for (ret = 0, i = 0; !ret && i < SP_MAX_SLOTS; i++) {
		struct sp_slot_lane *lane = g->slots[i];

		if (!lane || lane->own || lane->dead ||
		    sp_addr_cmp(&lane->addr, &pn->addr))
			continue;
		ret = sp_peer_grant_one(pn, msg, &lane->mr, lane->slab,
					lane->cookie);
	}
	if (!ret)
		ret = sp_peer_grant_one(pn, msg, &pn->mr, pn->rows, 0);
	if (!ret || ret == -EAGAIN)
		ret = sp_peer_tell_key(pn, msg, NULL, 0, 0) ?: ret;
	kfree(msg);
	pn->granted = !ret;
	if (!ret)
		return;
	if (ret != -EAGAIN)
		sp_link_set_state(link, SP_LINK_DOWN, ret);
	sp_peer_tend_soon(g);
}

/* Take back what was granted; its link is down, or it has said bye. */
static void sp_peer_revoke(struct sp_peer_node *pn)
{
	struct sp_group *g = pn->g;
	u32 i;

	for (i = 0; i < SP_MAX_SLOTS; i++) {
		struct sp_slot_lane *lane = g->slots[i];

		if (!lane || !lane->mr || sp_addr_cmp(&lane->addr, &pn->addr))
			continue;
		/* A node that has come back has lanes of its own. */
		if (pn->rank < 0 && !lane->dead && sp_peer_find(g, &pn->addr))
			continue;
		sp_mr_revoke(lane->mr);
		lane->mr = NULL;
	}
	if (pn->mr)
		sp_mr_revoke(pn->mr);
	pn->mr = NULL;
}

/**
 * sp_peer_try_open() - begin to post to a node, or to more lanes there
 * @pn: the node
 *
 * Context: sp_ctl is held.
 */
void sp_peer_try_open(struct sp_peer_node *pn)
{
	struct sp_link *link = pn->user.link;
	struct sp_engine *engine;
	struct sp_group *g = pn->g;
	bool first;
	u32 i, k;

	lockdep_assert_held(&sp_ctl);
	engine = g->node->sdev->engine;
	if (pn->rank < 0 || g->ending || !g->ready || !engine || !link ||
	    link->state != SP_LINK_UP || !pn->rkey || !pn->trusted)
		return;
	if (sp_agree_suspects(&g->agree, pn->rank))
		return;
	first = !pn->open;
	mutex_lock(&engine->lock);
	if (first) {
		g->core.peers[pn->rank].polled = pn->polled;
		g->core.peers[pn->rank].open = 0;
		sp_core_mend(&g->core, pn->rank);
	}
	for (i = 0; i < g->core.nown; i++) {
		if (!g->own[i] || (g->core.peers[pn->rank].open >> i & 1))
			continue;
		for (k = 0; k < ARRAY_SIZE(pn->keys); k++) {
			if (pn->keys[k].cookie != g->own[i]->cookie)
				continue;
			pn->to[i] = pn->keys[k];
			sp_core_open(&g->core, pn->rank, i);
			break;
		}
	}
	mutex_unlock(&engine->lock);
	if (first) {
		pn->open = true;
		pn->waits = false;
		pn->welcome = false;
		if (pn->incarnation)
			WRITE_ONCE(g->counters.reconnects,
				   g->counters.reconnects + 1);
		pn->incarnation = link->peer_incarnation;
		/* What was said on a link before this one may be lost. */
		sp_change_say_to(pn);
		if (pn->open)
			sp_rdmc_mend(pn);
	}
	sp_group_kick(g);
}

/* Its link is up, and it is one of us. */
static void sp_peer_trust(struct sp_peer_node *pn)
{
	WRITE_ONCE(pn->trusted, true);
	if (pn->welcome)
		sp_member_welcome(pn);
	sp_peer_grant(pn);
	/* It may have been faster to find out that the old link was dead. */
	sp_member_early(pn->g);
}

static void sp_peer_up(struct sp_link_user *user)
{
	struct sp_peer_node *pn = container_of(user, struct sp_peer_node, user);
	struct sp_group *g = pn->g;

	if (g->ending || pn->rank < 0) {
		sp_peer_say_bye(pn, g->ending ? sp_group_last_word(g) :
				-ECONNABORTED);
		return;
	}
	if (pn->incarnation && pn->incarnation != user->link->peer_incarnation) {
		sp_change_suspect(g, pn->rank, "has begun anew");
		return;
	}
	sp_link_hurry(user->link, g->config.suspect_ms);
	if (sp_trusts(g, user->link))
		sp_peer_trust(pn);
	else
		sp_trust_begin(g, user->link);
}

/**
 * sp_peer_trusted() - a node has proved that it knows the group's secret
 * @g: the group
 * @link: on this link, which is up
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_peer_trusted(struct sp_group *g, struct sp_link *link)
{
	struct sp_peer_node *pn = sp_peer_find(g, &link->peer);

	/* Else it is used later. */
	if (pn && pn->user.link == link && !g->ending)
		sp_peer_trust(pn);
}

/**
 * sp_peer_is_out() - a node has proved that it knows us to be put out
 * @g: the group
 * @link: from the peer of this link
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_peer_is_out(struct sp_group *g, struct sp_link *link)
{
	struct sp_msg_bye bye = { .gid = g->gid, .error = -ECONNABORTED };

	if (sp_peer_find(g, &link->peer))
		sp_peer_bye(g, link, &bye);
}

static void sp_peer_down(struct sp_link_user *user, int error)
{
	struct sp_peer_node *pn = container_of(user, struct sp_peer_node, user);
	struct sp_group *g = pn->g;
	struct sp_engine *engine = g->node->sdev->engine;

	pn->open = false;
	pn->granted = false;
	WRITE_ONCE(pn->trusted, false);
	pn->rkey = 0;
	/* Of this link all is flushed when it is gone: sp_peer_flushed(). */
	pn->last = 0;
	memset(pn->keys, 0, sizeof(pn->keys));
	pn->tell_len = 0;
	if (pn->rank >= 0 && g->ready && engine) {
		mutex_lock(&engine->lock);
		sp_core_cut(&g->core, pn->rank);
		mutex_unlock(&engine->lock);
	}
	sp_rdmc_cut(pn);
	if (g->ending || pn->rank < 0)
		return;
	if (error == -ENODEV) {
		sp_group_fail(g, -ENODEV);
		return;
	}
	if (!pn->waits) {
		pn->waits = true;
		pn->lost = jiffies -
			msecs_to_jiffies(sp_link_silent_ms(user->link));
	}
	sp_peer_tend_soon(g);
	if (pn->bye_heard || !g->view.id)
		return;
	/*
	 * Nobody listens there any more. A program that asks to join listens, so
	 * this one has gone; but a connection of before may be in the way.
	 */
	if (error == -ECONNREFUSED &&
	    (pn->incarnation || ++pn->refused == SP_REFUSALS))
		sp_change_suspect(g, pn->rank, "refuses a connection");
	else if (error == -ETIMEDOUT && pn->incarnation &&
		 sp_link_silent_ms(user->link) >= g->config.suspect_ms)
		sp_change_suspect(g, pn->rank, "is silent");
}

static bool sp_peer_quiet(struct sp_link_user *user, u32 ms)
{
	struct sp_peer_node *pn = container_of(user, struct sp_peer_node, user);

	return pn->rank >= 0 && !pn->g->ending && !pn->bye_heard &&
	       ms >= pn->g->config.suspect_ms;
}

static bool sp_peer_key_used(const struct sp_peer_node *pn, u64 cookie)
{
	u32 i;

	for (i = 0; i < SP_MAX_NODE_LANES; i++)
		if (pn->g->own[i] && pn->g->own[i]->cookie == cookie)
			return true;
	return false;
}

/* Where a key is kept: places of lanes that are gone are given to new ones. */
static u32 sp_peer_key_slot(const struct sp_peer_node *pn, u64 cookie)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(pn->keys); i++)
		if (pn->keys[i].cookie == cookie)
			return i;
	for (i = 0; i < ARRAY_SIZE(pn->keys); i++)
		if (!pn->keys[i].cookie ||
		    !sp_peer_key_used(pn, pn->keys[i].cookie))
			return i;
	return 0;
}

/**
 * sp_peer_keys() - a node says where we may write
 * @g: the group, its memory there
 * @link: from the peer of this link, which the node has
 * @msg: what it says; its length was checked
 *
 * Context: sp_ctl is held.
 */
void sp_peer_keys(struct sp_group *g, struct sp_link *link,
		  const struct sp_msg_keys *msg)
{
	struct sp_peer_node *pn = sp_peer_find(g, &link->peer);
	struct sp_layout lay;
	u32 i, k;

	if (!pn || pn->user.link != link)
		return;
	sp_layout_lane(&lay, g->config.depth, g->config.window,
		       max_t(u32, 1U << SP_CHUNK_SHIFT, PAGE_SIZE));
	for (i = 0; i < msg->count; i++) {
		const struct sp_wire_key *key = &msg->keys[i];
		u64 want = key->cookie ? lay.size : pn->rows->lay.size;

		if (key->size != want) {
			pr_warn_ratelimited("spindle: %s: group %s: memory of %s has another layout\n",
					    g->node->name, g->name, pn->name);
			sp_change_suspect(g, pn->rank, "has another layout");
			return;
		}
		if (!key->cookie) {
			pn->iova = key->iova;
			pn->rkey = key->rkey;
			continue;
		}
		k = sp_peer_key_slot(pn, key->cookie);
		pn->keys[k].cookie = key->cookie;
		pn->keys[k].iova = key->iova;
		pn->keys[k].rkey = key->rkey;
	}
	pn->their_handle = msg->handle;
	pn->polled = msg->flags & SP_KEY_POLLED;
	sp_peer_try_open(pn);
}

/**
 * sp_peer_say_bye() - tell a node, once, that we write nothing more there
 * @pn: the node
 * @error: what the group failed with, -ECONNABORTED to who was put out, or 0
 *
 * Context: sp_ctl is held.
 */
void sp_peer_say_bye(struct sp_peer_node *pn, int error)
{
	struct sp_msg_bye bye = { .gid = pn->g->gid, .error = error };
	struct sp_link *link = pn->user.link;

	if (pn->bye_said || !link || link->state != SP_LINK_UP)
		return;
	pn->bye_said = true;
	pn->last = READ_ONCE(link->built);
	if (sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye)))
		sp_link_set_state(link, SP_LINK_DOWN, -ENOMEM);
}

/* What a node says that its group failed with: one of what groups fail with. */
static int sp_peer_error(s32 error)
{
	switch (error) {
	case -EHOSTDOWN:
	case -ECONNRESET:
	case -ENODEV:
	case -ENOMEM:
	case -ENOBUFS:
	case -ENETDOWN:
		return error;
	default:
		return -EPROTO;
	}
}

/**
 * sp_peer_bye() - a node writes nothing more to our memory
 * @g: the group
 * @link: from the peer of this link
 * @bye: what it says
 *
 * Context: sp_ctl is held.
 */
void sp_peer_bye(struct sp_group *g, struct sp_link *link,
		 const struct sp_msg_bye *bye)
{
	struct sp_peer_node *pn, *found = NULL;

	/* One that has left and come back says it of the time before. */
	list_for_each_entry(pn, &g->peers, list) {
		if (pn->user.link != link || pn->bye_heard)
			continue;
		if (!found || pn->rank < 0)
			found = pn;
	}
	if (!found) {
		bool refused = bye->error == -EUSERS ||
			       bye->error == -EHOSTDOWN;

		if (g->view.state != SP_VIEW_FORMING || g->coord.link != link)
			return;
		/*
		 * The first view forms; or we come later, and anything else is said
		 * of the time when this node was in the group before. If not, we
		 * find out when we are there.
		 */
		if (refused || !g->live)
			sp_group_fail(g, refused ? bye->error : -ECONNRESET);
		return;
	}
	found->bye_heard = true;
	if (found->rank < 0 || g->ending)
		return;
	if (bye->error == -ECONNABORTED && g->view.id) {
		sp_group_fail(g, -ECONNABORTED);
		return;
	}
	if (g->view.state == SP_VIEW_FORMING) {
		sp_group_fail(g, -ECONNRESET);
		return;
	}
	if (bye->error && (g->config.flags & SP_CONFIG_PLAIN)) {
		sp_group_fail(g, sp_peer_error(bye->error));
		return;
	}
	if (bye->error) {
		sp_change_suspect(g, found->rank, "has failed");
		return;
	}
	/*
	 * It has delivered all, or is in the next view no more; we are to know of
	 * that soon.
	 */
	found->waits = true;
	found->lost = jiffies;
	sp_engine_peer_gone(g->node->sdev->engine, g, found->rank);
	sp_peer_say_bye(found, 0);
	sp_peer_tend_soon(g);
	sp_change_step(g);
}

/**
 * sp_peer_flushed() - is nothing of ours on its way to a node any more
 * @pn: the node
 *
 * Context: sp_ctl is held.
 *
 * Return: true when no request to it can be sent again.
 */
bool sp_peer_flushed(struct sp_peer_node *pn)
{
	struct sp_link *link = pn->user.link;

	if (!link)
		return true;
	if (link->state == SP_LINK_DOWN)
		/* Until it is flushed: see sp_link_stop(). */
		return !smp_load_acquire(&link->qp);
	return link->state == SP_LINK_CONNECTING ||
	       sp_post_completed(link) >= pn->last;
}

/*
 * A key is revoked when its holder has said bye, since a write with a dead key
 * would break the link for all groups. Returns true when the peer cannot reach
 * us any more, nor our requests be resent.
 */
static bool sp_peer_reap(struct sp_peer_node *pn)
{
	struct sp_link *link = pn->user.link;

	if (link && link->state == SP_LINK_CONNECTING && pn->g->ending &&
	    !pn->incarnation && pn->g->lingered < SP_REAP_CONNECTING)
		/*
		 * The peer, which waits for us, is told when it is up. But it may
		 * have told us to wait for its request, and need us no more.
		 */
		return false;
	if (link && link->state == SP_LINK_UP && pn->mr && !pn->bye_heard)
		return false;
	if (!sp_peer_flushed(pn))
		return false;
	if (pn->handle)
		xa_erase(&sp_handles, pn->handle);
	pn->handle = 0;
	sp_peer_revoke(pn);
	sp_link_unuse(&pn->user);
	return true;
}

/* Its memory is shown to nobody any more. */
static void sp_peer_forget(struct sp_peer_node *pn)
{
	struct sp_group *g = pn->g;
	struct sp_engine *engine = g->node->sdev->engine;

	if (pn->rank < 0)
		return;
	if (engine)
		mutex_lock(&engine->lock);
	g->peer[pn->rank] = NULL;
	g->core.peers[pn->rank].row = NULL;
	g->core.peers[pn->rank].rows = NULL;
	g->core.peers[pn->rank].pushed = NULL;
	if (engine)
		mutex_unlock(&engine->lock);
}

/**
 * sp_peers_reap() - give back what nodes had that are in the view no more
 * @g: the group
 * @all: of all nodes: the group ends
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: true when there is nothing left to wait for.
 */
bool sp_peers_reap(struct sp_group *g, bool all)
{
	struct sp_peer_node *pn, *next;
	bool flushed = true;
	LIST_HEAD(dead);

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_safe(pn, next, &g->peers, list) {
		if (pn->rank >= 0 && !all)
			continue;
		if (sp_peer_reap(pn))
			list_move(&pn->list, &dead);
	}
	/* Of those that are not heard any more nothing may be sent again. */
	list_for_each_entry(pn, &g->peers, list)
		if (pn->rank < 0 || (g->dropped >> pn->rank & 1))
			flushed &= sp_peer_flushed(pn);
	if (!list_empty(&dead)) {
		/* Rows and wakes look handles up under RCU. */
		synchronize_rcu();
		list_for_each_entry_safe(pn, next, &dead, list) {
			sp_peer_forget(pn);
			list_del(&pn->list);
			sp_peer_free(pn);
		}
	}
	if (flushed && g->core.hold) {
		WRITE_ONCE(g->core.hold, false);
		sp_group_kick(g);
	}
	if (all)
		return list_empty(&g->peers);
	list_for_each_entry(pn, &g->peers, list)
		if (pn->rank < 0)
			return false;
	return true;
}

/* A node of the view that is cut: mend it, or give it up. True: look again. */
static bool sp_peer_mend(struct sp_peer_node *pn)
{
	u32 patience = pn->g->config.suspect_ms;
	struct sp_link *link = pn->user.link;

	if (!pn->incarnation)
		patience = max(2 * patience, link && link->state == SP_LINK_UP ?
			       SP_READY_MS : SP_FIRST_MS);
	/* Who has gone from a closed group is missed by nobody. */
	if (pn->waits && pn->g->view.id &&
	    !(pn->bye_heard && pn->g->view.state == SP_VIEW_CLOSED) &&
	    time_after(jiffies, pn->lost + msecs_to_jiffies(patience))) {
		sp_change_suspect(pn->g, pn->rank, pn->bye_heard ?
				  "has gone" : "cannot be reached");
		return true;
	}
	/* Once the old connection is dead nothing late comes by it. */
	if (link && link->state == SP_LINK_DOWN && sp_peer_flushed(pn)) {
		sp_peer_revoke(pn);
		sp_link_unuse(&pn->user);
		link = NULL;
	}
	if (!link && !pn->bye_heard) {
		/* What that brings about may be the end of @pn. */
		sp_link_use(pn->g->node, &pn->addr, &pn->user);
		return true;
	}
	if (link && link->state == SP_LINK_UP && pn->trusted && !pn->granted) {
		sp_peer_grant(pn);
		return true;
	}
	return pn->bye_heard ? pn->g->view.state == SP_VIEW_ACTIVE : !pn->open;
}

/**
 * sp_peer_await() - the agreement on the next view waits for others
 * @g: the group; this node has wedged
 *
 * Context: sp_ctl is held.
 */
void sp_peer_await(struct sp_group *g)
{
	lockdep_assert_held(&sp_ctl);
	sp_peer_tend_in(g, SP_TEND_LATER_MS);
}

/*
 * Who is alive but does not do its part in the agreement holds up everybody:
 * after a while it is not heard any more. Counted in looks of our own: when this
 * node was away itself, that is one. True: look again.
 */
static bool sp_peers_await(struct sp_group *g)
{
	u32 most = max(2 * g->config.suspect_ms, SP_READY_MS);
	bool leads;
	u64 waits = sp_agree_waits(&g->agree, &leads);
	u32 i;

	if (!waits || g->change) {
		g->waited = 0;
		return false;
	}
	if (time_before(jiffies, g->waited_at +
			msecs_to_jiffies(SP_TEND_LATER_MS)))
		return true;
	g->waited_at = jiffies;
	g->waited += SP_TEND_LATER_MS;
	/* The leader has its turn to find out who it is that holds it up. */
	if (g->waited < (leads ? 2 * most : most))
		return true;
	g->waited = 0;
	for (i = 0; i < g->view.nnodes && !g->ending; i++)
		if (waits >> i & 1)
			sp_change_suspect(g, i, "does not answer");
	return true;
}

/**
 * sp_peers_tend() - look after links, keys and what is to be given back
 * @g: the group
 *
 * Comes back by itself as long as there is anything to wait for. Context: a
 * work; sp_ctl is held.
 */
void sp_peers_tend(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	bool again = false;
	bool later, waits;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	if (g->ending || !g->ready)
		return;
	for (i = 0; i < g->view.nnodes && !g->ending; i++) {
		struct sp_peer_node *pn = g->peer[i];

		if (!pn || (pn->open && pn->granted && !pn->bye_heard) ||
		    sp_agree_suspects(&g->agree, i))
			continue;
		again |= sp_peer_mend(pn);
	}
	if (g->ending)
		return;
	again |= !sp_peers_reap(g, false);
	waits = sp_peers_await(g);
	if (g->ending)
		return;
	later = sp_lanes_collect(g);
	if (engine)
		mutex_lock(&engine->lock);
	sp_records_drop(g, false);
	if (engine)
		mutex_unlock(&engine->lock);
	/* Keys and requests are soon given back, readers may take their time. */
	if (again || (later && g->tended++ < SP_TEND_QUICK)) {
		sp_peer_tend_soon(g);
	} else {
		g->tended = 0;
		if (later || waits)
			sp_peer_tend_in(g, SP_TEND_LATER_MS);
	}
}
