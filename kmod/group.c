// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a group on one node: its members here, its end in order or by
 * failure, and giving everything back.
 *
 * Everything here runs under sp_ctl but for what says otherwise.
 */
#include <linux/memcontrol.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "engine.h"
#include "group.h"
#include "key.h"
#include "rdmc.h"
#include "observe/observe.h"

#define SP_REAP_MS	5	/* between looks at a group that ends */
#define SP_REAP_TRIES	1000	/* before a link whose peer says no bye is broken */
#define SP_LINGER_MS	5000U	/* what a member has sent has so long to arrive */

static void sp_group_event(struct work_struct *work);
static void sp_group_linger(struct work_struct *work);
static void sp_group_tend(struct work_struct *work);

/* The most that a group takes on a node, without objects. */
static u64 sp_group_memory(const struct sp_config *config)
{
	u32 lanes = config->senders ?: config->max_members;
	struct sp_layout lane, rows;
	u64 sum;

	sp_layout_lane(&lane, config->depth, config->window,
		       max_t(u32, 1U << SP_CHUNK_SHIFT, PAGE_SIZE));
	sp_layout_rows(&rows, PAGE_SIZE);
	sum = lanes * (lane.size + config->depth * sizeof(struct sp_desc) +
		       sizeof(struct sp_slot_lane));
	sum += (u64)config->max_members *
	       (rows.size + SP_TELL_MAX + sizeof(struct sp_peer_node));
	sum += roundup_pow_of_two((u64)lanes * config->depth) *
	       sizeof(struct sp_log);
	return PAGE_ALIGN(sum + sizeof(struct sp_group));
}

/**
 * sp_group_alloc() - make a group on a node
 * @node: the node
 * @name: its name, checked, not in use on the node
 * @gid: its number
 * @config: its configuration, checked
 * @payer: whose limits count
 * @key: the secret that its members share, or NULL
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: the group, without members; or an ERR_PTR: -EDQUOT or -ENOBUFS beyond
 * a limit, -ENOMEM.
 */
struct sp_group *sp_group_alloc(struct sp_node *node, const char *name,
				u64 gid, const struct sp_config *config,
				const struct sp_payer *payer,
				struct sp_key *key)
{
	struct sp_group *g, *old;
	int ret;

	lockdep_assert_held(&sp_ctl);
	g = kvzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);
	if (!g)
		return ERR_PTR(-ENOMEM);
	g->account = sp_account_make(node->net, payer, sp_group_memory(config));
	if (IS_ERR(g->account)) {
		ret = PTR_ERR(g->account);
		pr_info_ratelimited("spindle: %s: group %s: beyond a limit: error %d\n",
				    node->name, name, ret);
		goto err_free;
	}
	kref_init(&g->ref);
	strscpy(g->name, name, sizeof(g->name));
	g->gid = gid;
	g->config = *config;
	g->core.opt = SP_OPT_ALL;
	g->node = node;
	INIT_LIST_HEAD(&g->on_engine);
	INIT_LIST_HEAD(&g->on_kicked);
	INIT_LIST_HEAD(&g->joiners);
	INIT_LIST_HEAD(&g->asked);
	INIT_LIST_HEAD(&g->locals);
	INIT_LIST_HEAD(&g->peers);
	INIT_LIST_HEAD(&g->records);
	INIT_LIST_HEAD(&g->coord.on_link);
	spin_lock_init(&g->record_lock);
	INIT_WORK(&g->event, sp_group_event);
	INIT_DELAYED_WORK(&g->linger, sp_group_linger);
	INIT_DELAYED_WORK(&g->objects, sp_objects_work);
	INIT_WORK(&g->make, sp_change_make);
	INIT_DELAYED_WORK(&g->tend, sp_group_tend);
	sp_view_init(&g->view, config->members, config->senders);

	/* Members of one that failed may not have closed their sockets yet. */
	list_for_each_entry(old, &node->groups, on_node)
		if (old->gone && !strcmp(old->name, name))
			sp_observe_group_del(old);
	ret = sp_observe_group_add(g);
	if (ret)
		goto err_account;
	g->key = sp_key_get(key);
	kref_get(&node->ref);
	sp_node_user(node);
	list_add_tail(&g->on_node, &node->groups);
	return g;

err_account:
	sp_account_put(g->account);
err_free:
	kvfree(g);
	return ERR_PTR(ret);
}

static void sp_group_release(struct kref *ref)
{
	struct sp_group *g = container_of(ref, struct sp_group, ref);
	u32 i;

	mem_cgroup_put(g->memcg);
	sp_key_put(g->key);
	sp_slow_exit(g);
	for (i = 0; i < SP_MAX_SLOTS; i++)
		if (g->slots[i])
			sp_lane_drop(g->slots[i]);
	sp_records_drop(g, true);
	vfree(g->core.order.log);
	kvfree(g->core.order.lanes);
	kfree(g->core.order.nodes);
	kvfree(g->core.peers);
	kfree(g->core.own);
	kvfree(g->tells);
	kfree(g->said);
	kvfree(g->points);
	sp_account_put(g->account);
	sp_node_put(g->node);
	kvfree(g);
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
 * Return: the group, with members on this node, unless all that it had is given
 * back; or NULL.
 */
struct sp_group *sp_group_find(struct sp_node *node, const char *name)
{
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &node->groups, on_node)
		if (!list_empty(&g->locals) && !g->gone && !strcmp(g->name, name))
			return g;
	return NULL;
}

/**
 * sp_group_find_gid() - a node's group of a number
 * @node: the node
 * @gid: the number
 *
 * Return: the group, also one that ends, as long as it has something to give
 * back; or NULL.
 */
struct sp_group *sp_group_find_gid(struct sp_node *node, u64 gid)
{
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &node->groups, on_node)
		if (g->gid == gid && !g->gone)
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

/**
 * sp_group_state_changed() - whoever waits for anything looks again
 * @g: the group; its state has changed
 *
 * Context: sp_ctl is held.
 */
void sp_group_state_changed(struct sp_group *g)
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
 * @g: the group, forming; or the engine's lock is held
 * @local: the member; gets a reference to @g
 *
 * Context: sp_ctl is held.
 */
void sp_group_attach(struct sp_group *g, struct sp_local *local)
{
	lockdep_assert_held(&sp_ctl);
	kref_get(&g->ref);
	local->rank = ~0U;
	local->end = ~0ULL;
	/* The engine does not run yet, or its lock is held. */
	list_add_tail(&local->on_group, &g->locals);
}

/*
 * Give back what can be given back. Returns true when nothing here needs any
 * peer or the device any more.
 */
static bool sp_group_reap(struct sp_group *g)
{
	u32 i;

	if (g->making || !sp_peers_reap(g, true))
		return false;
	/* The device may go; what was delivered stays readable. */
	for (i = 0; i < SP_MAX_SLOTS; i++)
		if (g->slots[i]) {
			sp_slab_unmap(g->slots[i]->slab);
			sp_lane_objects_unmap(g->slots[i]);
		}
	return true;
}

/**
 * sp_group_end() - a group is at its end here: say so, then give all back
 * @g: the group: failed, or left, or without a member here, or closed on a
 *	device that goes away
 * @error: what it failed with, or 0
 *
 * Once is enough, more does no harm. Context: sp_ctl is held.
 */
void sp_group_end(struct sp_group *g, int error)
{
	struct sp_peer_node *pn;

	lockdep_assert_held(&sp_ctl);
	if (g->ending)
		return;
	g->ending = true;
	sp_engine_del(g->node->sdev->engine, g);
	sp_rdmc_stop(g);
	list_for_each_entry(pn, &g->peers, list)
		sp_rdmc_forget(pn);
	sp_slow_stop(g);
	sp_member_release(g, error);
	list_for_each_entry(pn, &g->peers, list)
		sp_peer_say_bye(pn, sp_group_last_word(g));
	sp_member_decline(g);
	if (error)
		g->node->failed[g->node->nfailed++ % SP_FAILED] = g->gid;
	kref_get(&g->ref);
	queue_delayed_work(sp_wq, &g->linger, 0);
}

/* Who has said no bye in all that time will not. */
static void sp_group_force(struct sp_group *g)
{
	struct sp_peer_node *pn;

again:
	list_for_each_entry(pn, &g->peers, list) {
		struct sp_link *link = pn->user.link;

		if (!link || link->state == SP_LINK_DOWN)
			continue;
		pr_warn_ratelimited("spindle: %s: %s: no bye from %s, link dropped\n",
				    g->node->name, g->name, link->name);
		sp_link_set_state(link, SP_LINK_DOWN, -ETIMEDOUT);
		goto again;
	}
}

static void sp_group_linger(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, linger);
	bool done;

	mutex_lock(&sp_ctl);
	done = sp_group_reap(g);
	if (!done && ++g->lingered == SP_REAP_TRIES)
		sp_group_force(g);
	if (done && !g->gone) {
		g->gone = true;
		sp_trust_forget(g);
		/* Joins of this node wait for that. */
		sp_member_settle(g);
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
	/* Nothing queues it once the group ends; its timer may still run. */
	if (cancel_delayed_work_sync(&g->tend))
		sp_group_put(g);
	if (cancel_delayed_work_sync(&g->objects))
		sp_group_put(g);
	/* Rows and wakes look handles up under RCU. */
	synchronize_rcu();
	sp_group_put(g);	/* of the linger work */
	sp_group_put(g);	/* of the node's list */
}

/**
 * sp_group_fail() - this node cannot go on with a group: tell everybody, at once
 * @g: the group
 * @error: why, a negative errno
 *
 * What was delivered can still be read. Context: sp_ctl is held.
 */
void sp_group_fail(struct sp_group *g, int error)
{
	struct sp_local *local;

	lockdep_assert_held(&sp_ctl);
	if (g->view.state == SP_VIEW_FAILED || g->view.state == SP_VIEW_CLOSED)
		return;
	if (g->ready)
		sp_record_say(g, SPINDLE_EVENT_EVICTED, ~0U, error);
	/* What is published from here on would come after the error. */
	sp_engine_del(g->node->sdev->engine, g);
	g->error = error;
	/* C in group.h: who sees the state sees the error. */
	smp_wmb();
	if (sp_view_set_state(&g->view, SP_VIEW_FAILED))
		return;
	pr_info_ratelimited("spindle: %s: group %s failed: error %d\n",
			    g->node->name, g->name, error);
	list_for_each_entry(local, &g->locals, on_group) {
		/* Who has left is not concerned. */
		if (local->end != ~0ULL)
			continue;
		WRITE_ONCE(local->sk->sk_err, -error);
		sk_error_report(local->sk);
	}
	sp_group_state_changed(g);
	sp_group_end(g, error);
}

/* All that a member which wants to leave has sent has come everywhere. */
static void sp_group_drained(struct sp_group *g)
{
	u64 moves = READ_ONCE(g->counters.blocks_sent) +
		    READ_ONCE(g->counters.blocks_received);
	bool moved = moves != g->moves;
	bool late = false;
	u32 i;

	if (!g->ready || g->ending || g->change)
		return;
	g->moves = moves;
	for (i = 0; i < g->view.nmembers; i++) {
		const struct sp_member *m = &g->view.members[i];
		struct sp_slot_lane *lane;

		if (m->node != g->self || m->lane < 0)
			continue;
		lane = g->own[m->nr];
		if (!lane || lane->leaving <= 0)
			continue;
		/* A large object may take its time, as long as it moves. */
		if (moved)
			lane->left_at = jiffies;
		if (READ_ONCE(sp_own_lane(&g->core, m->nr)->taken) !=
		    READ_ONCE(lane->tx.tx.now.count) &&
		    time_before(jiffies, lane->left_at +
				msecs_to_jiffies(SP_LINGER_MS))) {
			late = true;
			continue;
		}
		if (sp_agree_leave(&g->agree, i, lane->leaving))
			g->unsaid = true;
		/* Once is enough: see sp_engine_drained(). */
		WRITE_ONCE(lane->leaving, -lane->leaving);
	}
	if (g->unsaid)
		sp_change_step(g);
	if (late && !g->ending) {
		kref_get(&g->ref);
		if (!queue_delayed_work(sp_wq, &g->tend, HZ / 10))
			sp_group_put(g);
	}
}

/* Passes have found something that the control plane must deal with. */
static void sp_group_event(struct work_struct *work)
{
	struct sp_group *g = container_of(work, struct sp_group, event);
	u64 faulty;
	u32 i;

	mutex_lock(&sp_ctl);
	faulty = xchg(&g->faulty, 0);
	for (i = 0; faulty && i < g->view.nnodes && !g->ending; i++)
		if (faulty >> i & 1)
			sp_change_suspect(g, i,
					  "wrote what no correct node writes");
	if (!g->ending && READ_ONCE(g->closing) &&
	    !sp_view_set_state(&g->view, SP_VIEW_CLOSED))
		sp_group_state_changed(g);
	sp_group_drained(g);
	mutex_unlock(&sp_ctl);
}

static void sp_group_tend(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, tend);

	mutex_lock(&sp_ctl);
	sp_peers_tend(g);
	sp_group_drained(g);
	mutex_unlock(&sp_ctl);
	sp_group_put(g);
}

/**
 * sp_group_leave() - a member wants to leave, or is to go
 * @g: the group, active
 * @local: the member
 * @reason: enum sp_reason
 *
 * It sends nothing more. What it has sent, or submitted in a mapped ring, is
 * delivered everywhere first, unless that takes too long; then the next view is
 * without it.
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0; -ENOTCONN when it is in no view; -EALREADY when it is leaving.
 */
int sp_group_leave(struct sp_group *g, struct sp_local *local, int reason)
{
	struct sp_slot_lane *lane;

	lockdep_assert_held(&sp_ctl);
	if (!g->ready || g->ending || local->rank == ~0U)
		return -ENOTCONN;
	if (local->leaving)
		return -EALREADY;
	if (!local->lane) {
		WRITE_ONCE(local->leaving, reason);
		if (sp_agree_leave(&g->agree, local->rank, reason))
			g->unsaid = true;
		sp_change_step(g);
		return 0;
	}
	lane = container_of(local->lane, struct sp_slot_lane, tx);
	spin_lock(&lane->tx.lock);
	/* What was submitted until now it still sends. */
	sp_rings_collect(g, &lane->tx);
	lane->tx.tx.fin = true;
	WRITE_ONCE(local->leaving, reason);
	spin_unlock(&lane->tx.lock);
	lane->left_at = jiffies;
	WRITE_ONCE(lane->leaving, reason);
	sp_group_drained(g);
	sp_group_kick(g);
	return 0;
}

/**
 * sp_group_detach() - a member closes its socket
 * @g: the group
 * @local: the member; its reference to @g is dropped
 *
 * The others go on without it. Context: sp_ctl is held, may sleep.
 */
void sp_group_detach(struct sp_group *g, struct sp_local *local)
{
	struct sp_engine *engine = g->node->sdev->engine;
	bool formed = g->view.id;

	lockdep_assert_held(&sp_ctl);
	if (g->view.state == SP_VIEW_ACTIVE)
		sp_group_leave(g, local, SP_EXITED);
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

	if (!formed && g->view.state == SP_VIEW_FORMING)
		sp_member_leave(g, local);
	else if (g->view.state == SP_VIEW_FORMING && list_empty(&g->locals))
		sp_group_fail(g, -ECONNRESET);
	if (list_empty(&g->locals)) {
		/* A new group of this name may be made now. */
		sp_observe_group_del(g);
		if (g->ending)
			mod_delayed_work(sp_wq, &g->linger, 0);
		else if (g->view.state != SP_VIEW_ACTIVE)
			sp_group_end(g, 0);
	}
	if (!g->ending) {
		/* What it held is free. */
		sp_group_kick(g);
		sp_peers_tend(g);
	}
	sp_group_put(g);
}

/**
 * sp_group_core() - memory of the protocol
 * @g: the group
 *
 * Context: may sleep; without sp_ctl, before the first view.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_group_core(struct sp_group *g)
{
	u32 lanes = g->config.senders ?: g->config.max_members;
	struct sp_core *c = &g->core;
	struct sp_order *o = &c->order;

	o->depth = g->config.depth;
	o->units = g->config.window >> SP_UNIT_SHIFT;
	o->max_len = g->config.max_msg;
	o->max_object = g->config.max_object;
	o->plain = g->config.flags & SP_CONFIG_PLAIN;
	o->log_size = roundup_pow_of_two(lanes * o->depth);
	o->lanes = kvcalloc(SP_MAX_SLOTS, sizeof(*o->lanes),
			    GFP_KERNEL_ACCOUNT);
	o->nodes = kcalloc(SP_MAX_MEMBERS, sizeof(*o->nodes),
			   GFP_KERNEL_ACCOUNT);
	/* Whole pages: programs map it. */
	o->log = __vmalloc(PAGE_ALIGN(o->log_size * sizeof(*o->log)),
			   GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	c->own = kcalloc(SP_MAX_NODE_LANES, sizeof(*c->own),
			 GFP_KERNEL_ACCOUNT);
	c->peers = kvcalloc(SP_MAX_MEMBERS, sizeof(*c->peers),
			    GFP_KERNEL_ACCOUNT);
	if (!o->lanes || !o->nodes || !o->log || !c->own || !c->peers)
		return -ENOMEM;
	c->polled = g->node->sdev->polled;
	c->spin = sp_spin;
	c->ops = &sp_engine_ops;
	return 0;
}
