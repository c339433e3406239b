// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a group on one node: memory and keys of its view, messages
 * flowing, its end in order or by failure, and giving the keys back.
 *
 * Everything here runs under sp_ctl but for what says otherwise.
 */
#include <linux/memcontrol.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "compat/compat.h"
#include "engine.h"
#include "group.h"
#include "limits.h"
#include "observe/observe.h"

#define SP_REAP_MS	5	/* between looks at a group that ends */
#define SP_BYE_MS	5000	/* for a peer to say bye, or suspect_ms: its processors say it */

/* What peers call (group, themselves): see struct sp_msg_row. */
DEFINE_XARRAY_ALLOC1(sp_handles);

/* Held while the memory of a view is made; neither within sp_ctl nor around it. */
static DEFINE_MUTEX(sp_making);

static void sp_group_event(struct work_struct *work);
static void sp_group_linger(struct work_struct *work);
static void sp_group_make(struct work_struct *work);
static void sp_group_grants(struct work_struct *work);

/**
 * sp_group_alloc() - make a group on a node
 * @node: the node
 * @name: its name, checked, not in use on the node
 * @gid: its number
 * @config: its configuration, checked
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: the group, without members; or an ERR_PTR.
 */
struct sp_group *sp_group_alloc(struct sp_node *node, const char *name,
				u64 gid, const struct sp_config *config)
{
	struct sp_group *g;
	int ret;

	lockdep_assert_held(&sp_ctl);
	ret = sp_limits_config(node, name, config);
	if (ret)
		return ERR_PTR(ret);
	g = kzalloc(sizeof(*g), SP_GFP_VIEW);
	if (!g)
		return ERR_PTR(-ENOMEM);
	kref_init(&g->ref);
	strscpy(g->name, name, sizeof(g->name));
	g->gid = gid;
	g->config = *config;
	g->core.opt = SP_OPT_ALL;
	g->node = node;
	INIT_LIST_HEAD(&g->on_engine);
	INIT_LIST_HEAD(&g->on_kicked);
	INIT_LIST_HEAD(&g->joiners);
	INIT_LIST_HEAD(&g->locals);
	INIT_WORK(&g->event, sp_group_event);
	INIT_DELAYED_WORK(&g->linger, sp_group_linger);
	INIT_WORK(&g->make, sp_group_make);
	INIT_DELAYED_WORK(&g->grants, sp_group_grants);
	sp_view_init(&g->view, config->members, config->senders);

	ret = sp_observe_group_add(g);
	if (ret) {
		kfree(g);
		return ERR_PTR(ret);
	}
	kref_get(&node->ref);
	sp_node_user(node);
	list_add_tail(&g->on_node, &node->groups);
	return g;
}

static void sp_group_release(struct kref *ref)
{
	struct sp_group *g = container_of(ref, struct sp_group, ref);

	mem_cgroup_put(g->memcg);
	sp_memory_free(g);
	kvfree(g->peers);
	sp_limits_uncharge(g);
	sp_node_put(g->node);
	kfree(g);
}

/**
 * sp_group_put() - drop a reference
 * @g: the group
 *
 * Context: may sleep, with the last one.
 */
void sp_group_put(struct sp_group *g)
{
	kref_put(&g->ref, sp_group_release);
}

/**
 * sp_group_find() - a node's group of a name
 * @node: the node
 * @name: the name
 *
 * Return: the group, with members on this node; or NULL.
 */
struct sp_group *sp_group_find(struct sp_node *node, const char *name)
{
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &node->groups, on_node)
		if (!list_empty(&g->locals) && !strcmp(g->name, name))
			return g;
	return NULL;
}

/**
 * sp_group_find_gid() - a node's group of a number
 * @node: the node
 * @gid: the number
 *
 * Return: the group, also one that ends; or NULL.
 */
struct sp_group *sp_group_find_gid(struct sp_node *node, u64 gid)
{
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &node->groups, on_node)
		if (g->gid == gid)
			return g;
	return NULL;
}

/**
 * sp_group_kick() - the engine is to look at a group
 * @g: the group
 *
 * Context: any.
 */
void sp_group_kick(struct sp_group *g)
{
	struct sp_engine *engine;

	atomic_set(&g->kick, 1);
	/* As sp_progress_made() does. */
	rcu_read_lock();
	engine = READ_ONCE(g->node->sdev->engine);
	if (engine)
		sp_engine_kick(engine, g);
	rcu_read_unlock();
}

/**
 * sp_group_moved() - a member has consumed something, or wants a look
 * @g: the group, active
 *
 * The engine sees it by itself unless it dozes. Context: process.
 */
void sp_group_moved(struct sp_group *g)
{
	/* Pairs with the barrier in sp_engine_pass(). */
	smp_mb();
	if (READ_ONCE(g->core.doze.state) != SP_AWAKE)
		sp_group_kick(g);
}

/**
 * sp_group_sent() - a member has committed something
 * @g: the group, active
 *
 * Like sp_group_moved(), but others wait for it. Context: process, may sleep.
 */
void sp_group_sent(struct sp_group *g)
{
	/* Pairs with the barrier in sp_engine_pass(). */
	smp_mb();
	if (READ_ONCE(g->core.doze.state) != SP_AWAKE)
		sp_engine_run(g);
}

/**
 * sp_group_wake_members() - something has changed for the members here
 * @g: the group
 * @readers: there is something to read
 * @writers: there is room to write
 *
 * Context: the engine's lock is held.
 */
void sp_group_wake_members(struct sp_group *g, bool readers, bool writers)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group) {
		if (readers)
			local->sk->sk_data_ready(local->sk);
		if (writers)
			local->sk->sk_write_space(local->sk);
	}
}

/* The group's state has changed: whoever waits for anything looks again. */
static void sp_group_state_changed(struct sp_group *g)
{
	struct sp_local *local;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(local, &g->locals, on_group) {
		sp_rings_state(g, local);
		local->sk->sk_state_change(local->sk);
	}
}

/**
 * sp_group_attach() - a member is on this node
 * @g: the group, forming
 * @local: the member; gets a reference to @g
 *
 * Context: sp_ctl is held.
 */
void sp_group_attach(struct sp_group *g, struct sp_local *local)
{
	struct sp_engine *engine = g->node->sdev->engine;

	lockdep_assert_held(&sp_ctl);
	kref_get(&g->ref);
	local->rank = ~0U;
	/* Not on the engine before the view is installed; debugfs looks already. */
	if (engine)
		mutex_lock(&engine->lock);
	list_add_tail(&local->on_group, &g->locals);
	if (engine)
		mutex_unlock(&engine->lock);
}

/* Tell a peer, once, that we write nothing more to its memory. */
static void sp_group_say_bye(struct sp_gpeer *gp, int error)
{
	struct sp_msg_bye bye = { .gid = gp->g->gid, .error = error };
	struct sp_link *link = gp->user.link;

	if (gp->bye_said || !link || link->state != SP_LINK_UP)
		return;
	gp->bye_said = true;
	gp->last = READ_ONCE(link->built);
	if (sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye)))
		sp_link_set_state(link, SP_LINK_DOWN, -ENOMEM);
}

/*
 * A key is revoked when its holder has said bye, since a write with a dead key
 * would break the link for all groups. Returns true when the peer cannot reach
 * us any more, nor our requests be resent.
 */
static bool sp_group_reap_peer(struct sp_gpeer *gp)
{
	struct sp_link *link = gp->user.link;

	if (link) {
		switch (link->state) {
		case SP_LINK_CONNECTING:
			/* The peer is told when it is up. */
			return false;
		case SP_LINK_UP:
			if (gp->mr && !gp->bye_heard)
				return false;
			/* Other groups go on: wait for what is ours. */
			if (sp_post_completed(link) < gp->last)
				return false;
			break;
		case SP_LINK_DOWN:
			/* Until it is flushed: see sp_link_stop(). */
			if (smp_load_acquire(&link->qp))
				return false;
			break;
		}
	}
	if (gp->handle)
		xa_erase(&sp_handles, gp->handle);
	gp->handle = 0;
	if (gp->mr)
		sp_mr_revoke(gp->mr);
	gp->mr = NULL;
	sp_link_unuse(&gp->user);
	return true;
}

/*
 * Give back what can be given back. Returns true when nothing here needs any
 * peer or the device any more.
 */
static bool sp_group_reap(struct sp_group *g)
{
	bool done = true;
	u32 i;

	if (g->making)
		return false;
	for (i = 0; g->peers && i < g->view.nnodes; i++)
		done &= sp_group_reap_peer(&g->peers[i]);
	if (!done)
		return false;
	/* The device may go; what was delivered stays readable. */
	for (i = 0; g->peers && i < g->view.nnodes; i++)
		if (g->peers[i].slab)
			sp_slab_unmap(g->peers[i].slab);
	if (g->slab)
		sp_slab_unmap(g->slab);
	return true;
}

/**
 * sp_group_end() - a group is at its end here: say so, then give all back
 * @g: the group: failed, or without a member here, or closed on a device that
 *	goes away
 * @error: what it failed with, or 0
 *
 * Once is enough, more does no harm. Context: sp_ctl is held.
 */
void sp_group_end(struct sp_group *g, int error)
{
	u32 i;

	lockdep_assert_held(&sp_ctl);
	if (g->ending)
		return;
	g->ending = true;
	sp_engine_del(g->node->sdev->engine, g);
	sp_slow_stop(g);
	sp_member_release(g, error);
	for (i = 0; g->peers && i < g->view.nnodes; i++)
		sp_group_say_bye(&g->peers[i], error);
	kref_get(&g->ref);
	queue_delayed_work(sp_wq, &g->linger, 0);
}

static void sp_group_linger(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, linger);
	bool done;
	u32 i;

	mutex_lock(&sp_ctl);
	done = sp_group_reap(g);
	if (!done && ++g->lingered ==
	    max_t(u32, sp_suspect_ms, SP_BYE_MS) / SP_REAP_MS) {
		for (i = 0; g->peers && i < g->view.nnodes; i++) {
			struct sp_link *link = g->peers[i].user.link;

			if (!link || link->state == SP_LINK_DOWN)
				continue;
			pr_warn_ratelimited("spindle: %s: %s: no bye from %s, link dropped\n",
					    g->node->name, g->name, link->name);
			sp_link_set_state(link, SP_LINK_DOWN, -ETIMEDOUT);
		}
	}
	if (done && list_empty(&g->locals)) {
		/* sp_group_detach() may have queued us once more meanwhile. */
		cancel_delayed_work(&g->linger);
		list_del(&g->on_node);
		sp_node_unuse(g->node);
	} else if (!done) {
		queue_delayed_work(sp_wq, &g->linger,
				   msecs_to_jiffies(SP_REAP_MS));
	}
	/* Else sp_group_detach() of the last member comes back to it. */
	done = done && list_empty(&g->locals);
	mutex_unlock(&sp_ctl);
	if (!done)
		return;
	cancel_work_sync(&g->event);
	/* Rows and wakes look handles up under RCU. */
	synchronize_rcu();
	sp_group_put(g);	/* of the linger work */
	sp_group_put(g);	/* of the node's list */
}

/**
 * sp_group_fail() - a group cannot go on: tell everybody, at once
 * @g: the group
 * @error: why, a negative errno
 *
 * What was delivered can still be read. Context: sp_ctl is held.
 */
void sp_group_fail(struct sp_group *g, int error)
{
	lockdep_assert_held(&sp_ctl);
	if (g->view.state == SP_VIEW_FAILED || g->view.state == SP_VIEW_CLOSED)
		return;
	/* What is published from here on would come after the error. */
	sp_engine_del(g->node->sdev->engine, g);
	g->error = error;
	/* C in group.h: who sees the state sees the error. */
	smp_wmb();
	if (sp_view_set_state(&g->view, SP_VIEW_FAILED))
		return;
	pr_info_ratelimited("spindle: %s: group %s failed: error %d\n",
			    g->node->name, g->name, error);
	sp_group_state_changed(g);
	sp_group_end(g, error);
}

/* Passes have found something that the control plane must deal with. */
static void sp_group_event(struct work_struct *work)
{
	struct sp_group *g = container_of(work, struct sp_group, event);
	int faulty = READ_ONCE(g->faulty);

	mutex_lock(&sp_ctl);
	if (faulty == -EPROTO) {
		struct sp_link *link = g->peers[g->core.faulty].user.link;

		pr_warn_ratelimited("spindle: %s: group %s: %s wrote what no correct node writes\n",
				    g->node->name, g->name,
				    link ? link->name : "a peer");
	}
	if (faulty && faulty != -EPROTO)
		pr_info_ratelimited("spindle: %s: group %s: a pass ended with error %d\n",
				    g->node->name, g->name, faulty);
	if (faulty) {
		sp_group_fail(g, faulty == -EPROTO ? -EPROTO : -EHOSTDOWN);
	} else if (READ_ONCE(g->closing) &&
		   !sp_view_set_state(&g->view, SP_VIEW_CLOSED)) {
		sp_group_state_changed(g);
	}
	mutex_unlock(&sp_ctl);
}

/**
 * sp_group_detach() - a member closes its socket
 * @g: the group
 * @local: the member; its reference to @g is dropped
 *
 * Unless the group has come to its end, all others are told that they have
 * lost a member. Context: sp_ctl is held, may sleep.
 */
void sp_group_detach(struct sp_group *g, struct sp_local *local)
{
	struct sp_engine *engine = g->node->sdev->engine;

	lockdep_assert_held(&sp_ctl);
	/* The engine walks the list, too; it runs while the group is active. */
	if (engine)
		mutex_lock(&engine->lock);
	list_del_init(&local->on_group);
	if (local->lane) {
		spin_lock(&local->lane->lock);
		local->lane->member = NULL;
		spin_unlock(&local->lane->lock);
	}
	if (engine)
		mutex_unlock(&engine->lock);

	if (!g->view.id && g->view.state == SP_VIEW_FORMING)
		sp_member_leave(g, local);
	else
		sp_group_fail(g, -ECONNRESET);
	if (list_empty(&g->locals)) {
		/* A new group of this name may be made now. */
		sp_observe_group_del(g);
		if (g->ending)
			mod_delayed_work(sp_wq, &g->linger, 0);
		else
			sp_group_end(g, 0);
	}
	sp_group_put(g);
}

/* All keys are here and there: messages flow. */
static void sp_group_activate(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	struct sp_local *local;
	u32 i;

	if (v->state != SP_VIEW_FORMING || !g->ready)
		return;
	for (i = 0; i < v->nnodes; i++)
		if (i != g->self &&
		    (!g->peers[i].key_said || !g->peers[i].key_heard))
			return;
	sp_core_init(&g->core);
	list_for_each_entry(local, &g->locals, on_group) {
		int rank = sp_view_find_member(v, &g->node->addr, local->cookie);
		s32 lane = v->members[rank].lane;

		if (lane >= 0)
			local->lane = &g->lanes[g->core.order.lanes[lane].lane];
		if (local->lane)
			local->lane->member = local;
		WRITE_ONCE(local->rank, rank);
		if (local->lane && local->fin)
			sp_tx_commit(&local->lane->tx, 0, SP_DESC_FIN);
	}
	/* C in group.h: who sees the state sees all of the above. */
	smp_wmb();
	if (sp_view_set_state(&g->view, SP_VIEW_ACTIVE))
		return;
	sp_engine_add(g->node->sdev->engine, g);
	sp_group_state_changed(g);
}

/* Grant a peer its own slab here, and tell it. */
static int sp_group_grant(struct sp_gpeer *gp)
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
	ret = sp_link_say(gp->user.link, &key.hdr, SP_MSG_KEY, sizeof(key));
	if (!ret)
		gp->key_said = true;
	return ret;
}

static void sp_group_peer_up(struct sp_link_user *user)
{
	struct sp_gpeer *gp = container_of(user, struct sp_gpeer, user);
	struct sp_group *g = gp->g;
	int ret;

	if (g->ending)
		sp_group_say_bye(gp, g->error);
	if (g->view.state != SP_VIEW_FORMING || gp->key_said)
		return;
	ret = sp_group_grant(gp);
	if (ret == -EAGAIN) {
		/* The send queue is full: other groups are at work. */
		kref_get(&g->ref);
		if (!queue_delayed_work(sp_wq, &g->grants,
					msecs_to_jiffies(SP_REAP_MS)))
			sp_group_put(g);
	} else if (ret) {
		sp_group_fail(g, ret);
	} else {
		sp_group_activate(g);
	}
}

static void sp_group_grants(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, grants);
	u32 i;

	mutex_lock(&sp_ctl);
	for (i = 0; i < g->view.nnodes && !g->ending; i++) {
		struct sp_link *link = g->peers[i].user.link;

		if (link && link->state == SP_LINK_UP)
			sp_group_peer_up(&g->peers[i].user);
	}
	mutex_unlock(&sp_ctl);
	sp_group_put(g);
}

static void sp_group_peer_down(struct sp_link_user *user, int error)
{
	struct sp_gpeer *gp = container_of(user, struct sp_gpeer, user);

	/* The link is unused when its requests are flushed: sp_group_reap(). */
	if (gp->bye_heard || gp->g->ending)
		return;
	/* It may have been left over from when the peer's node was another. */
	if (gp->g->view.state == SP_VIEW_FORMING && !gp->key_heard &&
	    !gp->again && error != -ENODEV) {
		struct sp_addr peer = user->link->peer;

		gp->again = true;
		gp->key_said = false;
		if (gp->mr)
			sp_mr_revoke(gp->mr);
		gp->mr = NULL;
		sp_link_unuse(user);
		error = sp_link_use(gp->g->node, &peer, user);
		if (!error)
			return;
		sp_group_fail(gp->g, -EHOSTDOWN);
		return;
	}
	pr_info_ratelimited("spindle: %s: group %s: link to %s lost: error %d\n",
			    gp->g->node->name, gp->g->name, user->link->name,
			    error);
	sp_group_fail(gp->g, error == -ENODEV ? error : -EHOSTDOWN);
}

/* The memory is there: let peers find theirs, and ask for ours in theirs. */
static int sp_group_connect(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	int ret;
	u32 i;

	for (i = 0; i < v->nnodes; i++) {
		if (i == g->self)
			continue;
		ret = xa_alloc(&sp_handles, &g->peers[i].handle, &g->peers[i],
			       xa_limit_31b, GFP_KERNEL);
		if (ret)
			return ret;
	}
	g->ready = true;
	for (i = 0; i < v->nnodes && v->state == SP_VIEW_FORMING; i++) {
		if (i == g->self)
			continue;
		ret = sp_link_use(g->node, &v->nodes[i].addr,
				  &g->peers[i].user);
		if (ret)
			return ret;
	}
	if (g->ending)
		return 0;
	/* From here on the peers' links tell what becomes of them. */
	sp_member_release(g, 0);
	sp_member_early(g);
	sp_group_activate(g);
	return 0;
}

/* One view at a time: what is available is looked at and taken in one. */
static int sp_group_memory(struct sp_group *g)
{
	struct mem_cgroup *old = sp_charge_to(g->memcg);
	int ret;

	mutex_lock(&sp_making);
	ret = sp_limits_available(g);
	if (!ret) {
		ret = sp_memory_make(g);
		if (ret)
			pr_warn_ratelimited("spindle: %s: group %s: %llu bytes of memory cannot be made: error %d\n",
					    g->node->name, g->name, g->memory,
					    ret);
	}
	mutex_unlock(&sp_making);
	sp_charge_to(old);
	return ret;
}

/*
 * Much memory is made without sp_ctl, which others wait for. Until @making is
 * false again nobody else touches what this makes.
 */
static void sp_group_make(struct work_struct *work)
{
	struct sp_group *g = container_of(work, struct sp_group, make);
	int ret;

	ret = sp_group_memory(g);
	mutex_lock(&sp_ctl);
	g->making = false;
	if (ret)
		sp_limits_uncharge(g);
	if (!ret && !g->ending)
		ret = sp_group_connect(g);
	if (ret)
		sp_group_fail(g, ret);
	mutex_unlock(&sp_ctl);
	sp_device_object_gone(g->node->sdev);
	sp_group_put(g);
}

/**
 * sp_group_install() - make the memory of a view and exchange keys to it
 * @g: the group; its view has been ranked
 *
 * On failure, now or later, the group fails. Context: sp_ctl is held, may
 * sleep.
 */
void sp_group_install(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	struct sp_local *payer;
	int self, ret;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	ret = -EPROTO;
	self = sp_view_find_node(v, &g->node->addr);
	if (self < 0)
		goto err_fail;
	ret = sp_limits_charge(g, sp_memory_bytes(v, &g->config, self,
						  g->node->sdev->max_pages));
	if (ret)
		goto err_fail;
	ret = -ENOMEM;
	g->peers = kvcalloc(v->nnodes, sizeof(*g->peers), SP_GFP_VIEW);
	if (!g->peers)
		goto err_uncharge;
	g->self = self;
	for (i = 0; i < v->nnodes; i++) {
		struct sp_gpeer *gp = &g->peers[i];

		gp->g = g;
		gp->rank = i;
		INIT_LIST_HEAD(&gp->user.on_link);
		gp->user.up = sp_group_peer_up;
		gp->user.down = sp_group_peer_down;
	}
	/* The work is a kernel thread's: the member that came first pays. */
	payer = list_first_entry(&g->locals, struct sp_local, on_group);
	g->memcg = sp_memcg_get(payer->memcg);
	g->making = true;
	kref_get(&g->ref);
	/* The work needs the device, though it has nothing mapped yet. */
	atomic_inc(&g->node->sdev->objects);
	queue_work(sp_wq, &g->make);
	return;

err_uncharge:
	sp_limits_uncharge(g);
err_fail:
	sp_group_fail(g, ret);
}

/**
 * sp_group_key() - a peer says where we may write
 * @g: the group, its view installed
 * @from: the peer
 * @key: what it says
 *
 * Context: sp_ctl is held.
 */
void sp_group_key(struct sp_group *g, const struct sp_addr *from,
		  const struct sp_msg_key *key)
{
	int rank = sp_view_find_node(&g->view, from);
	struct sp_gpeer *gp;

	if (rank < 0 || rank == g->self || key->view != g->view.id)
		return;
	gp = &g->peers[rank];
	if (gp->key_heard || g->view.state != SP_VIEW_FORMING)
		return;
	if (key->size != g->slab->lay.size) {
		pr_warn_ratelimited("spindle: %s: group %s: a peer's memory has another layout\n",
				    g->node->name, g->name);
		sp_group_fail(g, -EPROTO);
		return;
	}
	gp->iova = key->iova;
	gp->rkey = key->rkey;
	gp->their_handle = key->handle;
	g->core.peers[rank].polled = key->flags & SP_KEY_POLLED;
	gp->key_heard = true;
	sp_group_activate(g);
}

/* What a group fails with here that has failed with @error on another node. */
static int sp_group_error_here(int error)
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

/**
 * sp_group_bye() - a peer writes nothing more to our memory
 * @g: the group
 * @from: the peer
 * @error: what the group failed with there, or 0
 *
 * Context: sp_ctl is held.
 */
void sp_group_bye(struct sp_group *g, const struct sp_addr *from, int error)
{
	int rank = sp_view_find_node(&g->view, from);

	/* Strangers have no say. Before there are ranks only one peer counts. */
	if (rank < 0 && (g->view.id || sp_addr_cmp(from, &g->coordinator)))
		return;
	if (rank >= 0 && g->peers && rank != g->self)
		g->peers[rank].bye_heard = true;
	if (g->view.state == SP_VIEW_FORMING ||
	    (error && g->view.state == SP_VIEW_ACTIVE)) {
		sp_group_fail(g, sp_group_error_here(error));
		return;
	}
	/* A view whose memory was refused has no peers yet. */
	if (rank < 0 || rank == g->self || !g->peers)
		return;
	/* Passes go on after the last message, for those who lag behind. */
	if (g->view.state != SP_VIEW_FAILED)
		sp_engine_peer_gone(g->node->sdev->engine, g, rank);
	sp_group_say_bye(&g->peers[rank], 0);
}

/**
 * sp_group_mute() - has a group failed that never began to talk to a peer
 * @g: the group
 * @from: the peer, which has said bye
 *
 * The memory of its view was refused, or is still being made. Nothing here
 * will say bye to the peer but the caller, who has to. Context: sp_ctl is held.
 *
 * Return: true, once for each peer, when it is so.
 */
bool sp_group_mute(struct sp_group *g, const struct sp_addr *from)
{
	struct sp_gpeer *gp;
	int rank;

	if (g->view.state != SP_VIEW_FAILED)
		return false;
	if (!g->peers)
		return true;
	rank = sp_view_find_node(&g->view, from);
	if (rank < 0 || rank == g->self)
		return false;
	gp = &g->peers[rank];
	if (gp->user.link || gp->bye_said)
		return false;
	gp->bye_said = true;
	return true;
}
