// SPDX-License-Identifier: GPL-2.0
/*
 * The other nodes of a group: the link to each, the keys that are exchanged on
 * it, and giving them back. In the first view all are connected and all keys are
 * exchanged before messages flow. Later a node that comes is waited for like one
 * that is cut off, until it has said its key. A node whose link is lost is suspected,
 * and is in the next view no more.
 *
 * Everything here runs under sp_ctl but for what says otherwise.
 */
#include <linux/slab.h>
#include <linux/xarray.h>

#include "engine.h"
#include "group.h"
#include "limits.h"
#include "observe/trace.h"

#define SP_GRANT_MS	5	/* before a grant that found no room is tried again */
#define SP_GRANT_TRIES	200	/* so often one that finds no memory */
#define SP_REFUSED_MS	1000	/* refused for so long, nobody listens at a peer's address */
#define SP_HOPE_MS	50	/* before a peer is asked for a first connection again */

/* What peers call (group, themselves): see struct sp_msg_row. */
DEFINE_XARRAY_ALLOC1(sp_handles);

/* A key to be said; under sp_ctl. */
static u64 sp_key_out[DIV_ROUND_UP(SP_KEY_MAX, sizeof(u64))];

static void sp_peer_up(struct sp_link_user *user);
static void sp_peer_down(struct sp_link_user *user, int error);
static bool sp_peer_lost(struct sp_link_user *user, const char *why);
static void sp_peer_connected(struct sp_link_user *user);

static void sp_peer_free(struct work_struct *work);

static void sp_peer_traced(const struct sp_group_peer *gp, const char *step)
{
	trace_spindle_peer(gp->g->node->name, gp->g->name, gp->name, step);
}

/**
 * sp_peer_alloc() - make another node of a group
 * @g: the group
 * @addr: its address
 *
 * Context: may sleep.
 *
 * Return: the node, in no view and on no list; or NULL.
 */
struct sp_group_peer *sp_peer_alloc(struct sp_group *g,
				    const struct sp_addr *addr)
{
	struct sp_group_peer *gp = kvzalloc(sizeof(*gp), SP_GFP_VIEW);

	if (!gp)
		return NULL;
	gp->g = g;
	gp->rank = -1;
	gp->addr = *addr;
	INIT_RCU_WORK(&gp->free, sp_peer_free);
	sp_addr_name(&gp->addr, gp->name, sizeof(gp->name));
	INIT_LIST_HEAD(&gp->user.on_link);
	gp->user.up = sp_peer_up;
	gp->user.down = sp_peer_down;
	gp->user.lost = sp_peer_lost;
	gp->user.again = sp_peer_connected;
	gp->user.silent_ms = g->config.silent_ms;
	gp->user.link_ms = g->config.link_ms;
	return gp;
}

/**
 * sp_peers_init() - prepare the nodes of the first view
 * @g: the group, its view ranked
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0; -ENOMEM, then there is none.
 */
int sp_peers_init(struct sp_group *g)
{
	struct sp_group_peer *gp;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	for (i = 0; i < g->view.nnodes; i++) {
		if (i == g->self)
			continue;
		gp = sp_peer_alloc(g, &g->view.nodes[i].addr);
		if (!gp)
			goto err_free;
		gp->rank = i;
		gp->user.brief = true;
		list_add_tail(&gp->on_group, &g->peers);
		g->peer[i] = gp;
	}
	return 0;

err_free:
	sp_peers_free(g);
	memset(g->peer, 0, sizeof(g->peer));
	return -ENOMEM;
}

/**
 * sp_peers_free() - free the other nodes of a group
 * @g: the group; none of them has a link, a key or memory any more
 *
 * Context: may sleep.
 */
void sp_peers_free(struct sp_group *g)
{
	struct sp_group_peer *gp, *next;

	list_for_each_entry_safe(gp, next, &g->peers, on_group) {
		list_del(&gp->on_group);
		kvfree(gp);
	}
}

/**
 * sp_peers_name() - give the nodes of the first view here what they call us by
 * @g: the group, its memory there
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_peers_name(struct sp_group *g)
{
	struct sp_group_peer *gp;
	int ret;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(gp, &g->peers, on_group) {
		ret = xa_alloc(&sp_handles, &gp->handle, gp, xa_limit_31b,
			       GFP_KERNEL);
		if (ret)
			return ret;
	}
	g->ready = true;
	return 0;
}

/**
 * sp_peers_connect() - begin to need the links to all nodes of the view
 * @g: the group, its nodes named
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_peers_connect(struct sp_group *g)
{
	struct sp_group_peer *gp;
	int ret;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(gp, &g->peers, on_group) {
		/* One that is up already may have had the group fail. */
		if (g->ending)
			break;
		if (gp->rank < 0 || gp->user.link)
			continue;
		ret = sp_link_use(g->node, &gp->addr, &gp->user);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * sp_peer_meet() - a node has come with a view
 * @gp: the node, in the view
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_peer_meet(struct sp_group_peer *gp)
{
	int ret;

	lockdep_assert_held(&sp_ctl);
	ret = xa_alloc(&sp_handles, &gp->handle, gp, xa_limit_31b, GFP_KERNEL);
	return ret ?: sp_link_use(gp->g->node, &gp->addr, &gp->user);
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
	return rank < 0 ? NULL : g->peer[rank];
}

/* Also one that is in the view no more: as it was in a view that it speaks of. */
static struct sp_group_peer *sp_peer_ever(struct sp_group *g,
					  const struct sp_addr *addr, u64 view)
{
	struct sp_group_peer *gp;

	list_for_each_entry_reverse(gp, &g->peers, on_group)
		if (!sp_addr_cmp(&gp->addr, addr) && gp->came <= view)
			return gp;
	return NULL;
}

/**
 * sp_peer_when() - when is a key that has come for
 * @g: the group, its memory there
 * @link: the link by which it has come
 * @key: the key
 *
 * A peer may be behind: the link on which keys were exchanged broke, and this node
 * knew the peer's by then: its group has failed, or goes on without the peer. The peer
 * did not know ours, and has connected again: see sp_peer_down(). Nothing was said of
 * it on that link. Or it may be ahead, and know of a view that has not begun here.
 *
 * Context: sp_ctl is held.
 *
 * Return: 0: now; less: for what is over here; more: for a view to come.
 */
int sp_peer_when(struct sp_group *g, const struct sp_link *link,
		 const struct sp_msg_key *key)
{
	const struct sp_group_peer *gp;

	lockdep_assert_held(&sp_ctl);
	if (g->view.state == SP_VIEW_FORMING && !g->welcome)
		return 0;
	gp = sp_peer_find(g, &link->peer);
	if (gp && gp->user.link == link)
		return 0;
	return key->view > g->view.id && !g->ending ? 1 : -1;
}

/**
 * sp_peers_keyed() - have all nodes of the first view exchanged keys with us
 * @g: the group
 *
 * Return: true when they have.
 */
bool sp_peers_keyed(const struct sp_group *g)
{
	const struct sp_group_peer *gp;

	list_for_each_entry(gp, &g->peers, on_group)
		if (!gp->key_said || !gp->key_heard)
			return false;
	return true;
}

/* Is a slot that of a lane which a peer has now? */
static bool sp_peer_has(const struct sp_group_peer *gp,
			const struct sp_lane_slot *slot)
{
	return slot->peer == gp && gp->lanes[slot->nr] == slot->slab;
}

/* Tell a peer where it may write here. */
static int sp_peer_say_key(struct sp_group_peer *gp)
{
	struct sp_msg_key *key = (struct sp_msg_key *)sp_key_out;
	struct sp_group *g = gp->g;
	u32 i;
	int ret;

	BUILD_BUG_ON(SP_KEY_MAX > SP_MSG_MAX);
	memset(key, 0, sizeof(*key));
	key->gid = g->gid;
	key->view = g->view.id;
	key->iova = gp->mr->iova;
	key->rkey = gp->mr->rkey;
	key->handle = gp->handle;
	key->size = g->lay.size;
	key->flags = g->node->sdev->polled ? SP_KEY_POLLED : 0;
	/* What the processor puts beside what the adapter writes might undo that. */
	if (gp->synced)
		key->flags |= SP_KEY_WRITTEN;
	for (i = 0; i < SP_MAX_SLOTS; i++) {
		const struct sp_lane_slot *slot = &g->slots[i];

		if (sp_peer_has(gp, slot))
			key->lane[key->nlanes++] = (struct sp_wire_key){
				.iova = slot->mr->iova,
				.cookie = slot->cookie,
				.rkey = slot->mr->rkey,
				.nr = slot->nr,
			};
	}
	ret = sp_link_say(gp->user.link, &key->hdr, SP_MSG_KEY,
			  struct_size(key, lane, key->nlanes));
	if (ret)
		return ret;
	gp->key_said = true;
	sp_peer_traced(gp, "key said");
	return 0;
}

static int sp_grant(struct sp_link *link, struct sp_slab *slab,
		    struct ib_mr **mr)
{
	struct ib_mr *made;

	if (*mr)
		return 0;
	made = sp_mr_grant(link, slab);
	if (IS_ERR(made))
		return PTR_ERR(made);
	*mr = made;
	return 0;
}

static void sp_revoke(struct ib_mr **mr)
{
	if (*mr)
		sp_mr_revoke(*mr);
	*mr = NULL;
}

/* Grant a peer its own rows and lanes here, what it was not granted yet. */
static int sp_peer_grant(struct sp_group_peer *gp)
{
	struct sp_group *g = gp->g;
	int ret = sp_grant(gp->user.link, gp->rows, &gp->mr);
	u32 i;

	for (i = 0; i < SP_MAX_SLOTS && !ret; i++)
		if (sp_peer_has(gp, &g->slots[i]))
			ret = sp_grant(gp->user.link, g->slots[i].slab,
				       &g->slots[i].mr);
	return ret ?: sp_peer_say_key(gp);
}

/* Also to lanes that it has no more. */
static void sp_peer_revoke(struct sp_group_peer *gp)
{
	struct sp_group *g = gp->g;
	u32 i;

	for (i = 0; g->slots && i < SP_MAX_SLOTS; i++)
		if (g->slots[i].peer == gp)
			sp_revoke(&g->slots[i].mr);
	sp_revoke(&gp->mr);
}

static void sp_peer_up(struct sp_link_user *user)
{
	struct sp_group_peer *gp = container_of(user, struct sp_group_peer,
						user);
	struct sp_group *g = gp->g;
	int ret;

	if (g->ending)
		sp_peer_say_bye(gp, g->error);
	if (g->ending || gp->rank < 0 || gp->key_said)
		return;
	ret = gp->comes && !gp->greeted ? sp_greeting_say(gp) : 0;
	if (!ret) {
		gp->greeted = true;
		ret = sp_peer_grant(gp);
	}
	/* The send queue is full: other groups are at work. Or memory is short. */
	if (ret == -EAGAIN || (ret == -ENOMEM && gp->tries++ < SP_GRANT_TRIES)) {
		kref_get(&g->ref);
		if (!queue_delayed_work(sp_wq, &g->grants,
					msecs_to_jiffies(SP_GRANT_MS)))
			sp_group_put(g);
	} else if (ret == -ENOMEM && sp_views_live(g)) {
		/* That is no fault of the peer. */
		sp_views_fail(g, ret);
	} else if (ret && ret != -ENODEV && sp_views_live(g)) {
		sp_views_suspect(g, gp, "cannot be told keys");
	} else if (ret) {
		sp_group_fail(g, ret);
	} else {
		gp->tries = 0;
		sp_group_activate(g);
	}
}

/**
 * sp_peer_greet() - a node asks that is in the view: it may not know
 * @g: the group
 * @link: the link to it
 *
 * The link may have broken by which it was told. Context: sp_ctl is held, may sleep.
 */
void sp_peer_greet(struct sp_group *g, struct sp_link *link)
{
	struct sp_group_peer *gp = sp_peer_find(g, &link->peer);

	if (!gp || !gp->comes || gp->user.link != link || link->state != SP_LINK_UP ||
	    !gp->greeted)
		return;
	if (sp_greeting_say(gp))
		sp_views_suspect(g, gp, "cannot be told the view");
}

/**
 * sp_peer_say_more() - a peer has more lanes than it knows keys to
 * @gp: the peer
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_peer_say_more(struct sp_group_peer *gp)
{
	struct sp_link *link = gp->user.link;

	lockdep_assert_held(&sp_ctl);
	gp->key_said = false;
	if (link && link->state == SP_LINK_UP)
		sp_peer_up(&gp->user);
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
	struct sp_group_peer *gp;

	mutex_lock(&sp_ctl);
	list_for_each_entry(gp, &g->peers, on_group) {
		struct sp_link *link = gp->user.link;

		if (!g->ending && link && link->state == SP_LINK_UP)
			sp_peer_up(&gp->user);
	}
	mutex_unlock(&sp_ctl);
	sp_group_put(g);
}

/*
 * Can another link come to more? The first to fail may have been left over from when
 * the peer's node was another one. From then on a group whose messages flow has the
 * patience that it has with a link that was up, and a second if nobody listens there: a
 * peer that loses the connection in the middle of its making refuses it in the same way.
 */
static bool sp_peer_hopes(struct sp_group_peer *gp, int error)
{
	struct sp_group *g = gp->g;

	if (gp->key_heard || error == -ENODEV)
		return false;
	if (!gp->again)
		return true;
	if (g->view.state != SP_VIEW_ACTIVE || sp_suspects(&g->ballot, gp->rank))
		return false;
	switch (error) {
	case -EBUSY:
	case -EHOSTDOWN:
		/* Somebody does listen. */
		gp->refused = false;
		fallthrough;
	case -EHOSTUNREACH:
	case -ENOMEM:
	case -ETIMEDOUT:
		return time_before(jiffies, gp->hopes) || sp_views_wait(g);
	case -ECONNREFUSED:
		if (!gp->refused)
			gp->listens = jiffies + msecs_to_jiffies(SP_REFUSED_MS);
		gp->refused = true;
		return time_before(jiffies, gp->listens) && time_before(jiffies, gp->hopes);
	default:
		return false;
	}
}

/* Another link: at once, and later when that has come to nothing, too. */
static int sp_peer_again(struct sp_group_peer *gp)
{
	if (gp->again)
		gp->user.pause_ms = SP_HOPE_MS;
	else
		gp->hopes = jiffies + msecs_to_jiffies(sp_user_link_ms(&gp->user));
	gp->again = true;
	gp->key_said = false;
	gp->greeted = false;
	/* Without its key nothing was written to it. */
	gp->retired = 0;
	gp->last = 0;
	sp_peer_revoke(gp);
	sp_link_unuse(&gp->user);
	return sp_link_use(gp->g->node, &gp->addr, &gp->user);
}

static void sp_peer_down(struct sp_link_user *user, int error)
{
	struct sp_group_peer *gp = container_of(user, struct sp_group_peer,
						user);
	struct sp_group *g = gp->g;
	int ret;

	/* The link is unused when its requests are flushed: sp_peer_reap(). */
	if (gp->bye_heard || g->ending || gp->rank < 0)
		return;
	/* Others wait for the peer for ever: see @brief in fabric.h. */
	if (user->link->state == SP_LINK_UP) {
		sp_group_fail(g, -EHOSTDOWN);
		return;
	}
	if (sp_peer_hopes(gp, error)) {
		ret = sp_peer_again(gp);
		if (!ret)
			return;
		if (ret == -ENOMEM)
			error = ret;
	}
	pr_info_ratelimited("spindle: %s: group %s: link to %s lost: error %d\n",
			    g->node->name, g->name, gp->name, error);
	if (error == -ENODEV)
		sp_group_fail(g, error);
	else if (g->view.state == SP_VIEW_FORMING)
		sp_group_fail(g, error == -ENOMEM ? error : -EHOSTDOWN);
	/* That is no fault of the peer. */
	else if (error == -ENOMEM && sp_views_live(g))
		sp_views_fail(g, error);
	else
		sp_views_suspect(g, gp, "is lost");
}

/* Does the group wait for the peer no longer? Others that use the link may. */
static bool sp_peer_lost(struct sp_link_user *user, const char *why)
{
	struct sp_group_peer *gp = container_of(user, struct sp_group_peer,
						user);
	struct sp_group *g = gp->g;

	/* No message waits in a group that forms: it may do so with the others. */
	if (gp->bye_heard || g->ending || gp->rank < 0 ||
	    g->view.state == SP_VIEW_FORMING)
		return true;
	if (sp_views_wait(g))
		return false;
	sp_views_suspect(g, gp, why);
	return true;
}

static void sp_peer_connected(struct sp_link_user *user)
{
	struct sp_group *g = container_of(user, struct sp_group_peer, user)->g;

	/* Not of one that is put out, or of a group that ends: sp_peer_done(). */
	if (user->lost)
		WRITE_ONCE(g->counters.reconnects, g->counters.reconnects + 1);
}

/*
 * Own lanes for whose members a peer has granted memory may be pushed to it. Are
 * these all?
 */
static bool sp_peer_open(struct sp_group_peer *gp)
{
	struct sp_group *g = gp->g;
	struct sp_core *c = &g->core;
	bool all = true;
	u32 i;

	for (i = 0; i < c->nown; i++) {
		if (!c->own[i].tx || (c->peers[gp->rank].open >> i & 1))
			continue;
		if (gp->to_lane[i].cookie == g->lanes[i]->cookie)
			sp_core_open(c, gp->rank, i);
		else
			all = false;
	}
	return all;
}

static int sp_peer_take(struct sp_group_peer *gp, const struct sp_msg_key *key)
{
	u32 i;

	if (key->size != gp->g->lay.size)
		return -EPROTO;
	for (i = 0; i < key->nlanes; i++) {
		const struct sp_wire_key *lane = &key->lane[i];

		if (lane->nr >= SP_MAX_NODE_LANES)
			return -EPROTO;
		gp->to_lane[lane->nr] = (struct sp_target){
			.iova = lane->iova,
			.rkey = lane->rkey,
			.cookie = lane->cookie,
		};
	}
	gp->to_rows.iova = key->iova;
	gp->to_rows.rkey = key->rkey;
	gp->their_handle = key->handle;
	return 0;
}

/* How a peer is written to. */
static void sp_peer_ways(struct sp_group_peer *gp, const struct sp_msg_key *key)
{
	struct sp_group *g = gp->g;
	struct sp_peer *p = &g->core.peers[gp->rank];

	p->polled = key->flags & SP_KEY_POLLED;
	p->carry = key->flags & SP_KEY_WRITTEN ? 0 :
		sp_smc_carry_max(g->core.nown);
}

/*
 * In a view: the peer has come with it, or has made memory for members here that
 * came with it. What is to be said to it waits for its key.
 */
static void sp_peer_key_live(struct sp_group_peer *gp,
			     const struct sp_msg_key *key)
{
	struct sp_group *g = gp->g;
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_peer *p = &g->core.peers[gp->rank];
	bool first = !gp->key_heard;
	int ret;

	if (sp_suspects(&g->ballot, gp->rank))
		return;
	spin_lock_bh(&engine->lock);
	ret = sp_peer_take(gp, key);
	if (!ret)
		sp_peer_ways(gp, key);
	if (!ret && p->cut)
		sp_core_mend(&g->core, gp->rank);
	if (!ret)
		sp_peer_open(gp);
	spin_unlock_bh(&engine->lock);
	if (ret) {
		sp_views_suspect(g, gp, "has memory of another layout");
		return;
	}
	gp->key_heard = true;
	sp_peer_traced(gp, "key heard");
	gp->comes = false;
	sp_group_kick(g);
	if (first)
		sp_views_tell(gp);
}

/**
 * sp_peer_opens() - a view has begun: own lanes may be pushed, where keys are there
 * @g: the group
 *
 * Context: sp_ctl and the engine's lock are held.
 */
void sp_peer_opens(struct sp_group *g)
{
	struct sp_group_peer *gp;

	list_for_each_entry(gp, &g->peers, on_group) {
		struct sp_peer *p;

		if (gp->rank < 0)
			continue;
		p = &g->core.peers[gp->rank];
		/* The row may be longer than before, or shorter. */
		if (p->carry)
			p->carry = sp_smc_carry_max(g->core.nown);
		sp_peer_open(gp);
	}
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

	if (!gp || g->ending)
		return;
	/* It is of an earlier stay of either, and was given back since. */
	if (key->view < gp->came || key->view < g->first)
		return;
	if (g->view.state != SP_VIEW_FORMING) {
		sp_peer_key_live(gp, key);
		return;
	}
	if (key->view != g->view.id || gp->key_heard)
		return;
	sp_peer_ways(gp, key);
	if (sp_peer_take(gp, key) || !sp_peer_open(gp)) {
		pr_warn_ratelimited("spindle: %s: group %s: memory of %s has another layout\n",
				    g->node->name, g->name, gp->name);
		sp_group_fail(g, -EPROTO);
		return;
	}
	gp->key_heard = true;
	sp_peer_traced(gp, "key heard");
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
	/* For what is on its way the group need not be told, nor wait for long. */
	gp->user.lost = NULL;
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
		.shared = gp->rank < 0 ? gp->until : gp->g->view.id,
		.error = error,
	};
	struct sp_link *link = gp->user.link;

	lockdep_assert_held(&sp_ctl);
	if (gp->bye_said || !link || link->state != SP_LINK_UP)
		return;
	gp->bye_said = true;
	sp_peer_traced(gp, "bye said");
	sp_peer_done(gp);
	sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
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
	/* It may speak of the next view, which was decided and is about to begin. */
	if (g->growth) {
		gp->bye = *bye;
		return;
	}
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
 * sp_peers_byes() - take the byes that came while a view was about to begin
 * @g: the group; the view has begun
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_peers_byes(struct sp_group *g)
{
	struct sp_group_peer *gp;
	struct sp_msg_bye bye;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(gp, &g->peers, on_group) {
		bye = gp->bye;
		memset(&gp->bye, 0, sizeof(gp->bye));
		if (!bye.gid || g->ending)
			continue;
		if (gp->rank < 0)
			sp_peer_say_bye(gp, 0);
		else
			sp_peer_bye_live(g, gp, &bye);
	}
}

/**
 * sp_peer_bye() - a peer writes nothing more to our memory
 * @g: the group
 * @link: the link to the peer
 * @bye: what it says
 *
 * Context: sp_ctl is held.
 */
void sp_peer_bye(struct sp_group *g, struct sp_link *link,
		 const struct sp_msg_bye *bye)
{
	const struct sp_addr *from = &link->peer;
	struct sp_group_peer *gp;

	lockdep_assert_held(&sp_ctl);
	gp = sp_peer_ever(g, from, bye->view);
	/* Strangers have no say. Before there are ranks only one peer counts. */
	if (!gp && (!list_empty(&g->peers) ||
		    (g->view.id ? sp_view_find_node(&g->view, from) < 0 :
		     sp_addr_cmp(from, &g->coordinator))))
		return;
	if (gp) {
		gp->bye_heard = true;
		sp_peer_traced(gp, "bye heard");
	}
	/* The others go on: what it means is seen when this node is ready. */
	if (g->view.state == SP_VIEW_FORMING && g->welcome) {
		if (gp)
			gp->bye = *bye;
		return;
	}
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

/* Does a group that ends wait for the bye of a peer? */
static bool sp_peer_waits(const struct sp_group *g, const struct sp_link *link)
{
	const struct sp_group_peer *gp;

	list_for_each_entry(gp, &g->peers, on_group)
		if (g->ending && gp->user.link == link && !gp->bye_heard)
			return true;
	return false;
}

/**
 * sp_peer_meant() - the group that a peer says bye to
 * @link: the link to the peer
 * @bye: what it says
 *
 * A node that has left and come again has two of them, of one number. Context: sp_ctl
 * is held.
 *
 * Return: that of the stay that is meant; of those that never had a view the older
 * one, if it waits; or NULL.
 */
struct sp_group *sp_peer_meant(struct sp_link *link, const struct sp_msg_bye *bye)
{
	struct sp_group *g, *best = NULL;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &link->node->groups, on_node) {
		if (g->gid != bye->gid || g->first > bye->shared)
			continue;
		if (!best || g->first > best->first || !sp_peer_waits(best, link))
			best = g;
	}
	return best;
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
	if (list_empty(&g->peers))
		return true;
	gp = sp_peer_find(g, from);
	if (!gp || gp->user.link || gp->bye_said)
		return false;
	gp->bye_said = true;
	return true;
}

/**
 * sp_peer_past() - has a peer's link come so far, or to its end
 * @gp: the peer
 * @last: requests of it, as sp_link.built counts them
 *
 * Return: true when none of the first @last can be sent again.
 */
bool sp_peer_past(const struct sp_group_peer *gp, u64 last)
{
	struct sp_link *link = gp->user.link;

	if (!link || link->state == SP_LINK_CONNECTING)
		return true;
	/*
	 * Other groups go on: wait for what is ours. By iWARP a write completes
	 * before it cannot be sent again any more: the peer says that it was there.
	 */
	if (link->state == SP_LINK_UP)
		return sp_post_completed(link) >= last &&
		       (!link->iwarp || gp->bye_heard || !gp->bye_said);
	/* Until it is flushed: see sp_link_stop(). */
	return !smp_load_acquire(&link->qp);
}

/**
 * sp_peer_flushed() - is nothing of ours on its way to a peer any more
 * @gp: the peer, after sp_peer_done(), or without a link
 *
 * Return: true when no request to it can be sent again.
 */
bool sp_peer_flushed(struct sp_group_peer *gp)
{
	if (sp_peer_past(gp, gp->last))
		return true;
	if (!sp_link_cancel(&gp->user))
		return false;
	gp->retired = 0;
	gp->last = 0;
	return true;
}

/**
 * sp_peers_flushed() - the last queue pair of a link is gone
 * @link: the link, which is down or has no connection
 *
 * A group that holds room back for one of its peers by that link gives it away at
 * once, since all senders may be waiting for it. Context: sp_ctl is held.
 */
void sp_peers_flushed(struct sp_link *link)
{
	struct sp_group_peer *gp;
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &link->node->groups, on_node)
		list_for_each_entry(gp, &g->peers, on_group)
			if (gp->user.link == link && gp->user.held && sp_peer_flushed(gp))
				sp_views_tend_now(g);
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
	sp_peer_revoke(gp);
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

	/* While it is not heard at all, others that use the link may wait for it. */
	if (!link || link->state == SP_LINK_DOWN || sp_link_silent(link))
		return;
	pr_warn_ratelimited("spindle: %s: %s: no bye from %s, link dropped\n",
			    gp->g->node->name, gp->g->name, gp->name);
	sp_link_set_state(link, SP_LINK_DOWN, -ETIMEDOUT);
}

/* Nobody finds the peer by its handle any more, nor is in the middle of its row. */
static void sp_peer_free(struct work_struct *work)
{
	struct sp_group_peer *gp = container_of(to_rcu_work(work),
						struct sp_group_peer, free);
	struct sp_group *g = gp->g;
	u32 i;

	mutex_lock(&sp_ctl);
	sp_engine_lock(g->node->sdev->engine);
	for (i = 0; g->slots && i < SP_MAX_SLOTS; i++)
		if (g->slots[i].peer == gp)
			g->slots[i].peer = NULL;
	sp_engine_unlock(g->node->sdev->engine);
	list_del(&gp->on_group);
	if (!g->ending)
		sp_views_tend_soon(g);
	mutex_unlock(&sp_ctl);
	sp_memory_free_peer(gp);
	kvfree(gp);
	sp_group_put(g);
}

/**
 * sp_peer_forget() - a peer that is in the view no more has given all back
 * @gp: the peer; sp_peer_reap() has said so
 *
 * It goes when nobody can be in the middle of what it sent. Once is enough, more
 * does no harm. Context: sp_ctl is held.
 */
void sp_peer_forget(struct sp_group_peer *gp)
{
	lockdep_assert_held(&sp_ctl);
	if (gp->goes)
		return;
	gp->goes = true;
	kref_get(&gp->g->ref);
	queue_rcu_work(sp_wq, &gp->free);
}
