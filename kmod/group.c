// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a group on one node: its members here, memory of its first view,
 * messages flowing, its end in order or by failure.
 *
 * Everything here runs under sp_ctl but for what says otherwise.
 */
#include <linux/memcontrol.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "engine.h"
#include "group.h"
#include "limits.h"
#include "observe/observe.h"
#include "observe/trace.h"

#define SP_REAP_MS	5	/* between looks at a group that ends */
#define SP_BYE_MS	5000	/* for a peer to say bye, or suspect_ms: its processors say it */
#define SP_LINGER_S	5	/* without progress, for what a member has sent to arrive */

/* Held while the memory of a view is made; neither within sp_ctl nor around it. */
static DEFINE_MUTEX(sp_making);

static void sp_group_event(struct work_struct *work);
static void sp_group_linger(struct work_struct *work);
static void sp_group_make(struct work_struct *work);

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
	g->core.opt = SP_OPT_ALL & ~sp_config_off(config);
	g->node = node;
	INIT_LIST_HEAD(&g->on_engine);
	INIT_LIST_HEAD(&g->on_kicked);
	INIT_LIST_HEAD(&g->joiners);
	INIT_LIST_HEAD(&g->locals);
	INIT_LIST_HEAD(&g->peers);
	INIT_LIST_HEAD(&g->events);
	INIT_LIST_HEAD(&g->asks);
	spin_lock_init(&g->events_lock);
	spin_lock_init(&g->slots_lock);
	init_rwsem(&g->map_sem);
	INIT_WORK(&g->event, sp_group_event);
	INIT_DELAYED_WORK(&g->linger, sp_group_linger);
	INIT_WORK(&g->make, sp_group_make);
	INIT_DELAYED_WORK(&g->grants, sp_peers_grant);
	INIT_DELAYED_WORK(&g->tend, sp_views_tend);
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
	sp_events_drop(g, true);
	sp_grow_drop(g);
	sp_memory_free(g);
	sp_peers_free(g);
	kvfree(g->greeting);
	kvfree(g->welcome);
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
 * Return: the group, with members on this node, which has not left; or NULL.
 */
struct sp_group *sp_group_find(struct sp_node *node, const char *name)
{
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(g, &node->groups, on_node)
		if (g->shown && !list_empty(&g->locals) && !strcmp(g->name, name))
			return g;
	return NULL;
}

/**
 * sp_group_find_gid() - a node's group of a number
 * @node: the node
 * @gid: the number
 *
 * Return: the group, also one that ends; or NULL. Who gave up and has joined
 * once more may have two, of which the later counts.
 */
struct sp_group *sp_group_find_gid(struct sp_node *node, u64 gid)
{
	struct sp_group *g;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_reverse(g, &node->groups, on_node)
		if (g->gid == gid)
			return g;
	return NULL;
}

static void sp_group_tell(struct sp_group *g, bool soft)
{
	struct sp_engine *engine;

	atomic_set(&g->kick, 1);
	/* As sp_progress_made() does. */
	rcu_read_lock();
	engine = READ_ONCE(g->node->sdev->engine);
	if (engine)
		sp_engine_kick(engine, g, soft);
	rcu_read_unlock();
}

/**
 * sp_group_kick() - the engine is to look at a group
 * @g: the group
 *
 * Context: any.
 */
void sp_group_kick(struct sp_group *g)
{
	sp_group_tell(g, false);
}

/**
 * sp_group_raise() - the engine is to look at a group for which something has come
 * @g: the group
 *
 * Context: softirq.
 */
void sp_group_raise(struct sp_group *g)
{
	sp_group_tell(g, true);
}

/**
 * sp_group_moved() - a member wants a look
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
 * sp_group_consumed() - a member has consumed something
 * @g: the group, active
 *
 * Like sp_group_moved(), but while nobody wants the room the engine need not know at
 * once. Context: process.
 */
void sp_group_consumed(struct sp_group *g)
{
	/* Pairs with the barrier in sp_engine_pass(). */
	smp_mb();
	if (READ_ONCE(g->core.doze.state) != SP_AWAKE && !READ_ONCE(g->core.lazy))
		sp_group_kick(g);
}

/**
 * sp_group_sent() - a member has committed something
 * @g: the group, active
 * @local: the member
 *
 * Like sp_group_moved(), but others wait for it. Context: process.
 */
void sp_group_sent(struct sp_group *g, struct sp_local *local)
{
	/* Pairs with the barrier in sp_engine_pass(). */
	smp_mb();
	if (READ_ONCE(g->core.doze.state) != SP_AWAKE)
		sp_engine_run(g, local);
}

/**
 * sp_group_wake_members() - something has changed for the members here
 * @g: the group
 * @readers: there is something to read
 * @writers: there is room to write
 *
 * Context: the engine's lock is held, often in softirq; or sp_ctl.
 */
void sp_group_wake_members(struct sp_group *g, bool readers, bool writers)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group) {
		if (readers || (writers && sp_stable_due(local)))
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
	local->end = ~0ULL;
	/* Not on the engine before the view is installed; debugfs looks already. */
	sp_engine_lock(engine);
	list_add_tail(&local->on_group, &g->locals);
	sp_engine_unlock(engine);
}

/*
 * Give back what can be given back. Returns true when nothing here needs any
 * peer or the device any more.
 */
static bool sp_group_reap(struct sp_group *g)
{
	struct sp_group_peer *gp;
	bool done = true;

	if (g->making)
		return false;
	sp_grow_drop(g);
	list_for_each_entry(gp, &g->peers, on_group)
		done &= sp_peer_reap(gp);
	if (!done)
		return false;
	/* The device may go; what was delivered stays readable. */
	sp_memory_unmap(g);
	return true;
}

/* That this node was put out is for the others to say. */
static int sp_group_last_word(int error)
{
	return error == -ECONNABORTED ? -ECONNRESET : error;
}

/**
 * sp_group_end() - a group is at its end here: say so, then give all back
 * @g: the group: failed, or left, or without a member here, or closed on a device
 *	that goes away
 * @error: what it failed with, or 0
 *
 * Once is enough, more does no harm. Context: sp_ctl is held.
 */
void sp_group_end(struct sp_group *g, int error)
{
	struct sp_group_peer *gp;

	lockdep_assert_held(&sp_ctl);
	if (g->ending)
		return;
	WRITE_ONCE(g->ending, true);
	sp_engine_del(g->node->sdev->engine, g);
	/* Who waits for others' readers waits in vain. */
	sp_group_wake_members(g, false, true);
	sp_slow_stop(g);
	sp_member_release(g, error);
	sp_asks_end(g, 0);
	list_for_each_entry(gp, &g->peers, on_group) {
		/* Nobody sends any more. */
		gp->user.held = false;
		sp_peer_say_bye(gp, sp_group_last_word(error));
	}
	sp_member_early_answer(g->node);
	kref_get(&g->ref);
	queue_delayed_work(sp_wq, &g->linger, 0);
}

static void sp_group_linger(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, linger);
	struct sp_group_peer *gp;
	bool silent = false;
	bool done;

	mutex_lock(&sp_ctl);
	done = sp_group_reap(g);
	/* The time that peers have to answer does not go on while they are not heard. */
	list_for_each_entry(gp, &g->peers, on_group)
		silent |= gp->user.link && sp_link_silent(gp->user.link);
	if (!silent)
		g->lingered++;
	if (!done && g->lingered >=
	    max_t(u32, sp_suspect_ms, SP_BYE_MS) / SP_REAP_MS)
		list_for_each_entry(gp, &g->peers, on_group)
			sp_peer_drop(gp);
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
	/* Nothing queues them once the group ends; their timers may still run. */
	if (cancel_delayed_work_sync(&g->tend))
		sp_group_put(g);
	if (cancel_delayed_work_sync(&g->grants))
		sp_group_put(g);
	/* Rows and wakes look handles up under RCU. */
	synchronize_rcu();
	sp_group_put(g);	/* of the linger work */
	sp_group_put(g);	/* of the node's list */
}

/* The one place where a group changes its state. False when that step does not exist. */
static bool sp_group_set_state(struct sp_group *g, enum sp_view_state state)
{
	/* C in group.h: who sees the state sees all that was written before. */
	smp_wmb();
	if (sp_view_set_state(&g->view, state))
		return false;
	trace_spindle_group_state(g->node->name, g->name, g->view.id, state,
				  state == SP_VIEW_FAILED ? g->error : 0);
	return true;
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
	if (!sp_group_set_state(g, SP_VIEW_FAILED))
		return;
	pr_info_ratelimited("spindle: %s: group %s failed: error %d\n",
			    g->node->name, g->name, error);
	sp_group_state_changed(g);
	sp_group_end(g, error);
}

/**
 * sp_group_close() - all that was sent was delivered, and nobody sends any more
 * @g: the group
 *
 * Context: sp_ctl is held.
 */
void sp_group_close(struct sp_group *g)
{
	struct sp_group_peer *gp;

	lockdep_assert_held(&sp_ctl);
	if (g->view.state != SP_VIEW_ACTIVE)
		return;
	if (!sp_group_set_state(g, SP_VIEW_CLOSED))
		return;
	/* Nobody lacks room any more. */
	list_for_each_entry(gp, &g->peers, on_group)
		gp->user.held = false;
	sp_group_state_changed(g);
	sp_asks_end(g, -ESHUTDOWN);
}

/* Passes have found something that the control plane must deal with. */
static void sp_group_event(struct work_struct *work)
{
	struct sp_group *g = container_of(work, struct sp_group, event);
	struct sp_engine *engine;
	u64 faulty = 0;

	mutex_lock(&sp_ctl);
	engine = g->node->sdev->engine;
	if (engine && !g->ending) {
		spin_lock_bh(&engine->lock);
		swap(faulty, g->faulty);
		spin_unlock_bh(&engine->lock);
	}
	sp_views_faulty(g, faulty);
	sp_evict_overdue(g);
	if (!g->ending && READ_ONCE(g->closing)) {
		sp_group_close(g);
		/* There is no view to come that the last of them is not in. */
		if (list_empty(&g->locals) && !sp_views_wedged(g))
			sp_group_end(g, 0);
	}
	/* Members that are to leave may have to wait no longer. */
	sp_views_step(g);
	mutex_unlock(&sp_ctl);
}

/* A lane's member is to leave once all it has sent has come everywhere. */
static void sp_group_leave_lane(struct sp_group *g, struct sp_local *local,
				enum sp_reason reason)
{
	const struct sock *sk = local->sk;
	struct sp_lane_tx *lane = local->lane;

	spin_lock_bh(&lane->lock);
	/* What was submitted until now it still sends. */
	sp_rings_collect(g, lane);
	lane->tx.fin = true;
	local->leaving = true;
	spin_unlock_bh(&lane->lock);
	lane->patience = sock_flag(sk, SOCK_LINGER) ? sk->sk_lingertime :
			 SP_LINGER_S * HZ;
	lane->until = jiffies + lane->patience;
	lane->progress = 0;
	WRITE_ONCE(lane->leaving, reason);
	sp_views_step(g);
	sp_views_tend_soon(g);
	sp_group_kick(g);
}

/**
 * sp_group_leave() - a member is to leave
 * @g: the group
 * @local: the member
 * @reason: why
 *
 * It sends nothing more. What it has sent, or submitted in a mapped ring, is
 * delivered everywhere first, unless nothing moves for the socket's linger time.
 * Then a view follows that is without it.
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0; -ENOTCONN when it is in no view; -EALREADY when it is leaving.
 */
int sp_group_leave(struct sp_group *g, struct sp_local *local,
		   enum sp_reason reason)
{
	lockdep_assert_held(&sp_ctl);
	if (g->ending || g->view.state != SP_VIEW_ACTIVE || local->rank == ~0U)
		return -ENOTCONN;
	if (local->leaving)
		return -EALREADY;
	if (local->lane) {
		sp_group_leave_lane(g, local, reason);
		return 0;
	}
	local->leaving = true;
	if (sp_ballot_leave(&g->ballot, local->rank, reason))
		g->dirty = true;
	sp_views_step(g);
	return 0;
}

/**
 * sp_group_detach() - a member closes its socket
 * @g: the group
 * @local: the member; its reference to @g is dropped
 *
 * The others go on without it, once there is a view. Context: sp_ctl is held, may
 * sleep.
 */
void sp_group_detach(struct sp_group *g, struct sp_local *local)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_lane_memory parked = {};

	lockdep_assert_held(&sp_ctl);
	if (g->view.state == SP_VIEW_ACTIVE)
		sp_group_leave(g, local, SP_EXITED);
	/* The engine walks the list, too; it runs while the group is active. */
	sp_engine_lock(engine);
	list_del_init(&local->on_group);
	if (local->lane) {
		spin_lock_bh(&local->lane->lock);
		local->lane->member = NULL;
		spin_unlock_bh(&local->lane->lock);
	}
	sp_engine_unlock(engine);
	/* Its lane has no slot any more: see sp_grow_sweep(). */
	if (local->lane && local->lane->parked) {
		parked.slab = local->lane->slab;
		parked.tx = local->lane;
		sp_memory_free_lane(&parked);
		g->nparked--;
		local->lane = NULL;
	}

	if (!g->view.id && g->view.state == SP_VIEW_FORMING)
		sp_member_leave(g, local);
	else if (g->view.state == SP_VIEW_FORMING && !g->welcome)
		sp_group_fail(g, -ECONNRESET);
	if (list_empty(&g->locals)) {
		/* A new group of this name may be made now. */
		sp_observe_group_del(g);
		if (g->ending)
			mod_delayed_work(sp_wq, &g->linger, 0);
		else if (g->view.state != SP_VIEW_ACTIVE && !sp_views_wedged(g))
			sp_group_end(g, 0);
	}
	/* What was kept for it is not needed any more. */
	if (!g->ending)
		sp_group_kick(g);
	sp_group_put(g);
}

/**
 * sp_group_activate() - let messages flow once all keys are here and there
 * @g: the group, forming
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_group_activate(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	struct sp_group_peer *gp;
	struct sp_local *local;
	u32 i;
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (v->state != SP_VIEW_FORMING || !g->ready ||
	    (!g->welcome && !sp_peers_keyed(g)))
		return;
	if (g->welcome)
		g->core.order.start = g->welcome->start;
	sp_core_init(&g->core);
	/* Each is reached when it has said its key. */
	for (i = 0; g->welcome && i < v->nnodes; i++)
		if (i != g->self)
			sp_core_cut(&g->core, i);
	for (i = 0; g->welcome && i < v->nmembers; i++)
		if (v->members[i].node == g->self && v->members[i].lane >= 0)
			sp_tx_view(&g->lanes[v->members[i].nr]->tx, 0,
				   g->welcome->start, v->members[i].lane,
				   v->nlanes);
	ret = sp_views_begin(g);
	if (ret) {
		sp_group_fail(g, ret);
		return;
	}
	for (i = 0; i < g->core.nown; i++)
		if (g->lanes[i])
			sp_tx_members(&g->lanes[i]->tx, v);
	list_for_each_entry(local, &g->locals, on_group) {
		int rank = sp_view_find_member(v, &g->node->addr, local->cookie);
		s32 lane = v->members[rank].lane;

		if (lane >= 0)
			local->lane = g->lanes[v->members[rank].nr];
		if (local->lane)
			local->lane->member = local;
		WRITE_ONCE(local->rank, rank);
		local->uid = v->members[rank].uid;
		if (local->lane && local->fin)
			sp_tx_commit(&local->lane->tx, 0, SP_DESC_FIN);
	}
	if (!sp_group_set_state(g, SP_VIEW_ACTIVE))
		return;
	sp_engine_add(g->node->sdev->engine, g);
	/* Whom it did not need to hear while it formed it may need now. */
	list_for_each_entry(gp, &g->peers, on_group) {
		gp->user.gave_up = false;
		gp->user.brief = false;
	}
	sp_group_state_changed(g);
	sp_asks_feed(g);
	/* Others may have been faster, and have seen somebody go already. */
	sp_views_step(g);
}

/* A node that comes to a running group begins at once, and waits for the others then. */
static int sp_group_come(struct sp_group *g)
{
	int ret = sp_peers_name(g);

	if (ret)
		return ret;
	sp_group_activate(g);
	kvfree(g->welcome);
	g->welcome = NULL;
	if (g->ending)
		return 0;
	sp_views_orphaned(g);
	ret = sp_peers_connect(g);
	if (!ret && !g->ending)
		sp_peers_byes(g);
	if (!ret && !g->ending)
		sp_member_early(g);
	return ret;
}

/* The memory is there: let peers find theirs, and ask for ours in theirs. */
static int sp_group_connect(struct sp_group *g)
{
	int ret = sp_peers_name(g);

	if (!ret)
		ret = sp_peers_connect(g);
	if (ret || g->ending)
		return ret;
	/* From here on the peers' links tell what becomes of them. */
	sp_member_release(g, 0);
	sp_member_early(g);
	sp_group_activate(g);
	return 0;
}

/* One view at a time: what is available is looked at and taken in one. */
static int sp_group_memory(struct sp_group *g, bool grows)
{
	struct mem_cgroup *old = sp_charge_to(g->memcg);
	int ret;

	mutex_lock(&sp_making);
	ret = sp_limits_available(g);
	if (!ret) {
		ret = grows ? sp_grow_make(g) : sp_memory_make(g);
		if (ret)
			pr_warn_ratelimited("spindle: %s: group %s: %llu bytes of memory cannot be made: error %d\n",
					    g->node->name, g->name, g->to_make,
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
	bool grows = g->ready;
	int ret;

	ret = sp_group_memory(g, grows);
	mutex_lock(&sp_ctl);
	g->making = false;
	if (ret && !grows)
		sp_limits_uncharge(g);
	if (ret || g->ending)
		sp_grow_drop(g);
	else if (grows)
		sp_views_grown(g);
	else if (g->welcome)
		ret = sp_group_come(g);
	else
		ret = sp_group_connect(g);
	if (ret && grows)
		sp_views_fail(g, ret);
	else if (ret)
		sp_group_fail(g, ret);
	mutex_unlock(&sp_ctl);
	sp_device_object_gone(g->node->sdev);
	sp_group_put(g);
}

/**
 * sp_group_senders() - who comes without a lane never has one
 * @v: a view that has just been ranked
 *
 * Every node comes to the same.
 */
void sp_group_senders(struct sp_view *v)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].lane < 0)
			v->members[i].flags |= SP_MEMBER_RECEIVER;
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

	lockdep_assert_held(&sp_ctl);
	ret = -EPROTO;
	self = sp_view_find_node(v, &g->node->addr);
	if (self < 0)
		goto err_fail;
	sp_group_senders(&g->view);
	ret = sp_limits_charge(g, sp_memory_bytes(v, &g->config, self,
						  g->node->sdev->max_pages));
	if (ret)
		goto err_fail;
	g->self = self;
	ret = sp_peers_init(g);
	if (ret)
		goto err_uncharge;
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
