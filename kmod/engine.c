// SPDX-License-Identifier: GPL-2.0
/*
 * The predicates of a device (Spindle paper, section 2.4). A thread makes rounds over
 * its active groups while there is anything to poll, or much to do, and is asleep
 * otherwise: then softirqs make the passes that events call for, and programs the first
 * ones of what they send.
 *
 * The thread yields after each round, and lets softirqs run after each pass: on few
 * processors the device itself may be software that wants the processor (soft-RoCE),
 * and so do the programs.
 */
#include <linux/kthread.h>
#include <linux/sched.h>
#include <uapi/linux/sched/types.h>
#include <linux/slab.h>

#include "engine.h"
#include "group.h"
#include "observe/observe.h"
#include "observe/trace.h"

#define SP_PASSES_INSTEAD	4	/* over a group, that others make instead of the thread */
#define SP_SOFT_PASSES	16	/* groups that are passed over in one softirq */
#define SP_SOFT_LOOKS	256	/* and looked at */
#define SP_REST_MS	20	/* what an engine waits for more before it sleeps, at least */
#define SP_STREAM_TICKS	2	/* between messages of a program that sends one after the other */
#define SP_MINORITY_TICKS	(HZ / 10) /* between looks for room while no majority is heard */

/**
 * sp_engine_cursor() - how far a member has consumed the log
 * @g: the group
 * @local: the member
 *
 * Context: the engine's lock is held.
 *
 * Return: so many entries of the log, from the first.
 */
u64 sp_engine_cursor(struct sp_group *g, struct sp_local *local)
{
	if (sp_rings_mapped(local, SPINDLE_MAP_RX))
		return sp_rings_released(g, local);
	/* H in group.h: the space may be filled again. */
	return smp_load_acquire(&local->cursor);
}

/**
 * sp_engine_released() - what no member of this node needs any longer
 * @g: the group
 *
 * Context: the engine's lock is held.
 *
 * Return: so many entries of the log, from the first.
 */
u64 sp_engine_released(struct sp_group *g)
{
	u64 released = g->core.order.published;
	struct sp_local *local;
	u64 cursor;

	list_for_each_entry(local, &g->locals, on_group) {
		if (READ_ONCE(local->deaf))
			continue;
		cursor = sp_engine_cursor(g, local);
		/* Who has read to its end needs nothing that comes after it. */
		if (cursor < local->end)
			released = min(released, cursor);
	}
	return released;
}

/* Have rows landed since the pass looked, and is that something to look at? */
static bool sp_engine_missed_landing(struct sp_group *g)
{
	const struct sp_core *c = &g->core;
	u32 i;

	if (!sp_core_watches(c))
		return false;
	for (i = 0; i < c->order.nnodes; i++)
		if (!c->peers[i].gone && !c->peers[i].cut &&
		    c->ops->landed(&g->core, i) != c->peers[i].landed)
			return true;
	return false;
}

/* Have members done anything since the pass looked? */
static bool sp_engine_missed(struct sp_group *g, u64 released)
{
	u32 i;

	if (sp_engine_released(g) != released || sp_rings_missed(g) ||
	    sp_engine_missed_landing(g))
		return true;
	for (i = 0; i < g->core.nown; i++)
		if (g->core.own[i].tx &&
		    READ_ONCE(g->lanes[i]->tx.now.count) !=
		    g->core.own[i].now.count)
			return true;
	return false;
}

/* Peers may ask for a look, once for each time that we have dozed. */
static void sp_engine_asked(struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->core.order.nnodes; i++) {
		struct sp_group_peer *gp = g->peer[i];
		int asks;

		if (!gp)
			continue;
		asks = atomic_read(&gp->asks);
		if (asks == gp->seen)
			continue;
		gp->seen = asks;
		sp_core_kick(&g->core);
	}
}

/* Take what programs have submitted by mapped rings, and note what they wait for. */
static void sp_engine_collect(struct sp_group *g)
{
	s64 wants = -1;
	u32 i;

	for (i = 0; i < g->core.nown; i++) {
		struct sp_lane_tx *lane = g->lanes[i];

		if (!lane)
			continue;
		spin_lock(&lane->lock);
		sp_rings_collect(g, lane);
		wants = max(wants, sp_tx_place(&lane->tx, lane->awaited));
		spin_unlock(&lane->lock);
	}
	g->core.wants = wants;
}

/* Has all that a member which is to leave has sent come everywhere? */
static bool sp_engine_drained(const struct sp_group *g)
{
	u32 i;

	for (i = 0; i < g->core.nown; i++)
		if (g->core.own[i].tx &&
		    READ_ONCE(g->lanes[i]->leaving) != SP_STAYS &&
		    sp_own_lane(&g->core, i)->taken ==
		    READ_ONCE(g->lanes[i]->tx.now.count))
			return true;
	return false;
}

/*
 * A pass has found a node whose writes no correct node makes: it is not heard any
 * more, and suspected. The group goes on.
 */
static void sp_engine_fault(struct sp_group *g)
{
	g->core.peers[g->core.faulty].gone = true;
	/* Requests to it may be sent again: sp_views_faulty() has this taken back. */
	g->core.hold = true;
	g->faulty |= 1ULL << g->core.faulty;
	queue_work(sp_wq, &g->event);
	/* The pass had not come to its end. */
	atomic_set(&g->kick, 1);
}

/* Let go of events that everybody here has read. */
static void sp_engine_events(struct sp_group *g)
{
	const struct sp_event *first;

	first = list_first_entry_or_null(&g->events, struct sp_event, on_group);
	if (first && first->at < g->core.order.released)
		sp_events_drop(g, false);
}

/* One timer does for all groups: it is not set again while it runs. */
static void sp_engine_await(struct sp_engine *engine, const struct sp_group *g)
{
	if (g->rests && !timer_pending(&engine->rest))
		mod_timer(&engine->rest, g->rest_end);
}

/*
 * A group rests until an event comes, or until its time is over, which begins anew
 * with news. Some rest twice as long, for want of a timer of their own.
 */
static void sp_engine_rest(struct sp_engine *engine, struct sp_group *g, bool news)
{
	bool rests = sp_core_rests(&g->core);

	if (rests && (news || !g->rests))
		g->rest_end = jiffies + msecs_to_jiffies(SP_REST_MS);
	g->rests = rests;
	sp_engine_await(engine, g);
}

static bool sp_engine_rested(const struct sp_group *g)
{
	return g->rests && time_after_eq(jiffies, g->rest_end);
}

static void sp_engine_rest_over(struct timer_list *timer)
{
	sp_engine_raise(container_of(timer, struct sp_engine, rest));
}

/* One pass over a group. */
static void sp_engine_pass(struct sp_engine *engine, struct sp_group *g)
{
	u64 released;
	bool blocks;
	int did;

	if (sp_engine_rested(g))
		g->core.rested = true;
	/* What is done from here on kicks again. */
	if (atomic_xchg(&g->kick, 0))
		sp_engine_asked(g);
	sp_engine_collect(g);
	released = sp_engine_released(g);
	did = sp_pass(&g->core, released);
	WRITE_ONCE(g->counters.passes, g->counters.passes + 1);
	trace_spindle_pass(g->node->name, g->name, did, g->core.order.published,
			   g->core.order.released, g->core.doze.state);
	if (did < 0) {
		sp_engine_fault(g);
		return;
	}
	sp_engine_events(g);
	if (did & SP_DID_DELIVER) {
		sp_stable_note(g);
		/* E in group.h. */
		smp_store_release(&g->published, g->core.order.published);
		WRITE_ONCE(g->counters.delivered, g->core.order.messages);
		WRITE_ONCE(g->counters.delivered_bytes, g->core.order.bytes);
	}
	WRITE_ONCE(g->counters.nulls, g->core.nulls_sent);
	sp_engine_rest(engine, g, did);
	g->flows = sp_order_flows(&g->core.order);
	blocks = sp_core_may_block(&g->core);
	sp_rings_tell(g, blocks);
	if (did & (SP_DID_DELIVER | SP_DID_FREE))
		sp_group_wake_members(g, did & SP_DID_DELIVER,
				      did & SP_DID_FREE);
	if (did & SP_DID_DELIVER)
		sp_detach_all(g);
	/*
	 * The end. Members may leave from now on, so the peers must have been
	 * told that all was received here.
	 */
	if (!g->closing && g->core.order.nlanes && !g->core.wedged &&
	    g->core.order.fins == g->core.order.nlanes && !g->core.unposted) {
		WRITE_ONCE(g->closing, true);
		queue_work(sp_wq, &g->event);
	}
	if (sp_engine_drained(g))
		queue_work(sp_wq, &g->event);
	if (g->core.unposted) {
		WRITE_ONCE(engine->watches, true);
		/* As below. It waits for room: that is no reason to kick. */
		smp_mb();
		if (sp_engine_missed_landing(g))
			sp_engine_raise(engine);
	}
	/* What is done while it is wedged waits for the next view. */
	if (blocks && !g->core.wedged) {
		if (sp_core_watches(&g->core))
			WRITE_ONCE(engine->watches, true);
		/*
		 * Pairs with the barrier in sp_group_moved(), and with that of
		 * programs that map their rings: a member sees that we doze,
		 * or we see what it did. Likewise with sp_engine_landed().
		 */
		smp_mb();
		if (sp_engine_missed(g, released))
			atomic_set(&g->kick, 1);
		else if (g->core.doze.state == SP_ASLEEP)
			WRITE_ONCE(g->counters.naps, g->counters.naps + 1);
	}
	sp_slow_arm(g);
}

/*
 * Whoever was kicked is awake, and comes first. A pass may have taken the kick before
 * the group was on this list, and not have seen what it was for.
 */
static void sp_engine_gather(struct sp_engine *engine)
{
	struct sp_group *g, *next;
	LIST_HEAD(first);

	spin_lock_bh(&engine->kick_lock);
	list_for_each_entry_safe(g, next, &engine->kicked, on_kicked) {
		list_del_init(&g->on_kicked);
		list_move_tail(&g->on_engine, &first);
		atomic_set(&g->kick, 1);
	}
	spin_unlock_bh(&engine->kick_lock);
	list_splice(&first, &engine->awake);
}

/* Run no more passes over a group. */
static void sp_engine_drop(struct sp_engine *engine, struct sp_group *g)
{
	lockdep_assert_held(&engine->lock);
	spin_lock_bh(&engine->kick_lock);
	g->engaged = false;
	list_del_init(&g->on_kicked);
	spin_unlock_bh(&engine->kick_lock);
	list_del_init(&g->on_engine);
}

/* Does a group need another pass, whatever happens? */
static bool sp_engine_goes_on(const struct sp_group *g)
{
	return atomic_read(&g->kick) || !sp_core_may_block(&g->core);
}

/* Does it only wait for room in a send queue? Completions go on with it, or the timer. */
static bool sp_engine_stalled(const struct sp_core *c)
{
	return c->unposted && c->idle > c->spin;
}

/* A group's turn in a round. Return: it needs another. */
static bool sp_engine_turn(struct sp_engine *engine, struct sp_group *g)
{
	const struct sp_core *c = &g->core;

	sp_engine_pass(engine, g);
	if (c->wedged) {
		list_del_init(&g->on_engine);
	} else if (sp_engine_goes_on(g)) {
		if (!sp_engine_stalled(c))
			return true;
		/* While no majority is heard that may be long. */
		timer_reduce(&engine->rest, jiffies + (READ_ONCE(g->minority) ?
						       SP_MINORITY_TICKS : 1));
	} else if (c->doze.state == SP_ASLEEP) {
		list_del_init(&g->on_engine);
	}
	return false;
}

/* A round of the thread: a turn for each group that is awake. */
static bool sp_engine_round(struct sp_engine *engine)
{
	struct sp_group *g;
	bool again = false;
	LIST_HEAD(todo);

	spin_lock_bh(&engine->lock);
	/* Nobody else passes over groups meanwhile. */
	engine->in_round = true;
	WRITE_ONCE(engine->watches, false);
	sp_engine_gather(engine);
	list_splice_init(&engine->awake, &todo);
	while ((g = list_first_entry_or_null(&todo, struct sp_group, on_engine))) {
		list_move_tail(&g->on_engine, &engine->awake);
		again |= sp_engine_turn(engine, g);
		WRITE_ONCE(g->counters.thread_passes,
			   g->counters.thread_passes + 1);
		/* Who waits for the thread's processor need not wait for the round. */
		if (need_resched())
			break;
		/* Softirqs, and who waits for the lock, come in between. */
		spin_unlock_bh(&engine->lock);
		spin_lock_bh(&engine->lock);
	}
	again |= !list_empty(&todo);
	list_splice(&todo, &engine->awake);
	engine->in_round = false;
	spin_unlock_bh(&engine->lock);
	return again;
}

/*
 * Passes over a group in the thread's place. Where nothing is polled that is all,
 * more often than not: the thread need not be woken to find that nothing is left to
 * do. Return: there is more to do at once.
 */
static bool sp_engine_instead(struct sp_engine *engine, struct sp_group *g)
{
	u32 passes = g->core.polled ? 1 : SP_PASSES_INSTEAD;
	bool again;

	lockdep_assert_held(&engine->lock);
	list_move_tail(&g->on_engine, &engine->awake);
	do {
		again = sp_engine_turn(engine, g);
	} while (again && --passes);
	return again;
}

/*
 * Does anything call for a pass over a group? If not, it is as after its last one:
 * what it waits for is an event, or the end of its rest.
 */
static bool sp_engine_due(struct sp_engine *engine, struct sp_group *g)
{
	if (atomic_read(&g->kick) || g->core.unposted || sp_engine_rested(g))
		return true;
	sp_engine_await(engine, g);
	if (!sp_core_watches(&g->core))
		return false;
	WRITE_ONCE(engine->watches, true);
	/* As in sp_engine_pass(). */
	smp_mb();
	return sp_engine_missed_landing(g);
}

/* As sp_engine_round(), where it is due, and the thread would do it no better. */
static bool sp_engine_soft_round(struct sp_engine *engine)
{
	u32 passes = SP_SOFT_PASSES, looks = SP_SOFT_LOOKS;
	struct sp_group *g;
	bool again = false;
	LIST_HEAD(todo);

	WRITE_ONCE(engine->watches, false);
	sp_engine_gather(engine);
	list_splice_init(&engine->awake, &todo);
	while (passes && looks-- &&
	       (g = list_first_entry_or_null(&todo, struct sp_group, on_engine))) {
		list_move_tail(&g->on_engine, &engine->awake);
		if (!sp_engine_due(engine, g))
			continue;
		if (!g->flows)
			passes--;
		again |= g->flows || sp_engine_instead(engine, g);
	}
	again |= !list_empty(&todo);
	list_splice(&todo, &engine->awake);
	return again;
}

/*
 * Passes in softirq, at the heels of the completions that call for them: a message
 * need not wait until the thread has got a processor.
 */
static void sp_engine_soft(struct tasklet_struct *soft)
{
	struct sp_engine *engine = from_tasklet(engine, soft, soft);
	bool again = true;

	/* Nobody is waited for in here. */
	if (spin_trylock(&engine->lock)) {
		if (!engine->in_round)
			again = sp_engine_soft_round(engine);
		spin_unlock(&engine->lock);
	}
	if (again)
		sp_engine_stir(engine);
}

static int sp_engine_thread(void *data)
{
	/*
	 * A program that sends keeps its processor, if there is no other for
	 * us: what it sends until it waits for something goes out together.
	 */
	const struct sched_attr attr = { .sched_policy = SCHED_BATCH };
	struct sp_engine *engine = data;

	sched_setattr_nocheck(current, &attr);
	while (!kthread_should_stop()) {
		atomic_set(&engine->stirred, 0);
		/* Before the look: see struct sp_engine. */
		smp_mb();
		if (sp_engine_round(engine))
			cond_resched();
		else
			wait_event_idle(engine->wait,
					atomic_read(&engine->stirred) ||
					kthread_should_stop());
	}
	return 0;
}

/**
 * sp_engine_start() - start the predicate thread of a device
 * @sdev: the device
 *
 * Context: may sleep.
 *
 * Return: the engine or an ERR_PTR.
 */
struct sp_engine *sp_engine_start(struct sp_device *sdev)
{
	struct sp_engine *engine;
	struct task_struct *task;

	engine = kzalloc(sizeof(*engine), GFP_KERNEL);
	if (!engine)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->awake);
	spin_lock_init(&engine->kick_lock);
	INIT_LIST_HEAD(&engine->kicked);
	init_waitqueue_head(&engine->wait);
	timer_setup(&engine->rest, sp_engine_rest_over, 0);
	tasklet_setup(&engine->soft, sp_engine_soft);
	task = kthread_run(sp_engine_thread, engine, "spindle/%s",
			   dev_name(&sdev->ib->dev));
	if (IS_ERR(task)) {
		kfree(engine);
		return ERR_CAST(task);
	}
	engine->task = task;
	return engine;
}

/**
 * sp_engine_stop() - end the predicate thread
 * @engine: the engine; no group is left on it and nobody finds it any more
 *
 * Context: may sleep.
 */
void sp_engine_stop(struct sp_engine *engine)
{
	WARN_ON(!list_empty(&engine->awake));
	kthread_stop(engine->task);
	del_timer_sync(&engine->rest);
	tasklet_kill(&engine->soft);
	kfree(engine);
}

/**
 * sp_engine_add() - begin to run passes over a group
 * @engine: the engine
 * @g: the group, active
 */
void sp_engine_add(struct sp_engine *engine, struct sp_group *g)
{
	spin_lock_bh(&engine->kick_lock);
	g->engaged = true;
	spin_unlock_bh(&engine->kick_lock);
	sp_group_kick(g);
}

/**
 * sp_engine_lock() - keep passes off
 * @engine: the engine, NULL when it has ended
 *
 * Context: any but hard interrupt.
 */
void sp_engine_lock(struct sp_engine *engine)
	__acquires(&engine->lock)
{
	if (engine)
		spin_lock_bh(&engine->lock);
	else
		__acquire(&engine->lock);
}

/**
 * sp_engine_unlock() - undo sp_engine_lock()
 * @engine: the same
 */
void sp_engine_unlock(struct sp_engine *engine)
	__releases(&engine->lock)
{
	if (engine)
		spin_unlock_bh(&engine->lock);
	else
		__release(&engine->lock);
}

/**
 * sp_engine_del() - run no more passes over a group
 * @engine: the engine, NULL when it has ended
 * @g: the group; may be off the engine already
 */
void sp_engine_del(struct sp_engine *engine, struct sp_group *g)
{
	if (!engine)
		return;
	spin_lock_bh(&engine->lock);
	sp_engine_drop(engine, g);
	spin_unlock_bh(&engine->lock);
}

/* As a program may do it: with the thread when that cannot be avoided. */
static void sp_engine_try(struct sp_engine *engine, struct sp_group *g)
{
	bool again = true;

	if (spin_trylock_bh(&engine->lock)) {
		if (READ_ONCE(g->engaged) && !engine->in_round &&
		    sp_order_quiet(&g->core.order))
			again = sp_engine_instead(engine, g);
		spin_unlock_bh(&engine->lock);
	}
	if (again)
		sp_engine_kick(engine, g, false);
}

/*
 * Has a program had passes made a moment ago, and has neither slept nor read anything
 * since? Then it will send more before it waits for what it has sent.
 */
static bool sp_engine_streams(const struct sp_local *local)
{
	struct sp_lane_tx *lane = local ? local->lane : NULL;
	bool streams;
	u64 read;

	if (!lane)
		return false;
	read = sp_rings_read(local);
	streams = READ_ONCE(lane->asked.switches) == current->nvcsw &&
		  READ_ONCE(lane->asked.read) == read &&
		  time_before(jiffies, READ_ONCE(lane->asked.at) + SP_STREAM_TICKS);
	WRITE_ONCE(lane->asked.switches, current->nvcsw);
	WRITE_ONCE(lane->asked.read, read);
	WRITE_ONCE(lane->asked.at, jiffies);
	return streams;
}

/**
 * sp_engine_run() - wake a group, and run its first passes here and now
 * @g: the group, which a program has given something to do
 * @local: the member that it sends as; NULL when it has nothing to send
 *
 * What was sent to a group that slept, or rested, is on its way before the thread
 * has got a processor. Not while messages are under way, nor when the program sends
 * one after the other: there are likely to be more, and they go together. Context:
 * process.
 */
void sp_engine_run(struct sp_group *g, const struct sp_local *local)
{
	struct sp_engine *engine;

	atomic_set(&g->kick, 1);
	/* As sp_progress_made() does. */
	rcu_read_lock();
	engine = READ_ONCE(g->node->sdev->engine);
	if (engine && sp_engine_streams(local))
		sp_engine_kick(engine, g, false);
	else if (engine)
		sp_engine_try(engine, g);
	rcu_read_unlock();
}

/* Have the next round look at a group, if the engine runs passes over it. */
static void sp_engine_mark(struct sp_engine *engine, struct sp_group *g)
{
	spin_lock_bh(&engine->kick_lock);
	if (g->engaged && list_empty(&g->on_kicked))
		list_add_tail(&g->on_kicked, &engine->kicked);
	spin_unlock_bh(&engine->kick_lock);
}

/**
 * sp_engine_kick() - wake a group, if the engine runs passes over it
 * @engine: the engine
 * @g: the group
 * @soft: a completion calls for it; in softirq
 *
 * Context: any but hard interrupt.
 */
void sp_engine_kick(struct sp_engine *engine, struct sp_group *g, bool soft)
{
	sp_engine_mark(engine, g);
	if (soft)
		sp_engine_raise(engine);
	else
		sp_engine_stir(engine);
}

/**
 * sp_engine_raise() - there is something to look at, as soon as softirqs may run
 * @engine: the engine
 *
 * Context: any, softirqs are off.
 */
void sp_engine_raise(struct sp_engine *engine)
{
	tasklet_schedule(&engine->soft);
}

/**
 * sp_engine_stir() - there may be something to look at for groups that are
 * not asleep
 * @engine: the engine
 *
 * Context: any.
 */
void sp_engine_stir(struct sp_engine *engine)
{
	atomic_set(&engine->stirred, 1);
	/* The barrier in here orders that before the look for a sleeper. */
	if (wq_has_sleeper(&engine->wait))
		wake_up(&engine->wait);
}

/**
 * sp_engine_landed() - requests have completed
 * @engine: the engine
 *
 * Context: softirq, behind a full barrier that follows the note of how many.
 */
void sp_engine_landed(struct sp_engine *engine)
{
	/* That barrier pairs with the one in sp_engine_pass(): one sees the other. */
	if (READ_ONCE(engine->watches))
		sp_engine_raise(engine);
}

/**
 * sp_engine_busy() - will there be a pass over a group, whoever does nothing
 * @engine: the engine
 * @g: the group, in any state
 *
 * Context: the engine's lock is held, so no pass is run just now.
 *
 * Return: false when a member or a peer must do something first.
 */
bool sp_engine_busy(struct sp_engine *engine, struct sp_group *g)
{
	struct sp_local *local;
	bool busy;

	lockdep_assert_held(&engine->lock);
	/* Before the lists: whoever fills a queue kicks last. */
	busy = work_busy(&g->event);
	list_for_each_entry(local, &g->locals, on_group)
		busy |= work_busy(&local->queue.fill);
	spin_lock_bh(&engine->kick_lock);
	busy |= !list_empty(&g->on_engine) || !list_empty(&g->on_kicked);
	spin_unlock_bh(&engine->kick_lock);
	return busy;
}

/**
 * sp_engine_peer_gone() - a peer of a group has left it in good order
 * @engine: the engine
 * @g: the group, active
 * @node: rank of the peer's node
 *
 * Takes note of all the peer has written, the last time; from here on nothing
 * is written to it.
 */
void sp_engine_peer_gone(struct sp_engine *engine, struct sp_group *g, u32 node)
{
	spin_lock_bh(&engine->lock);
	if (READ_ONCE(g->engaged)) {
		sp_engine_pass(engine, g);
		g->core.peers[node].gone = true;
	}
	spin_unlock_bh(&engine->lock);
	sp_group_kick(g);
}
