// SPDX-License-Identifier: GPL-2.0
/*
 * Detached delivery: what was published is copied out of the rings into a
 * queue of the socket's own, so that a slow reader holds nobody until its quota
 * is full (Spindle paper, section 3.5). Events that its program wants go there,
 * too.
 *
 * A work fills the queue when a pass has published, the reader after it has
 * taken something out: that is all there is to do in a group that has ended.
 */
#include <linux/slab.h>

#include "af_spindle.h"
#include "compat/compat.h"

/* Nobody waits long who fills up a queue beside other things. */
#define SP_DETACH_QUICK	(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)
/* A reader with nothing else to read tries harder. */
#define SP_DETACH_HARD	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* What a message is charged. */
static u32 sp_detach_charge(const struct sp_log *log)
{
	return sizeof(struct sp_detached) + log->len;
}

/* Has the quota room for a message? One is always taken. */
static bool sp_detach_fits(const struct sp_local *local,
			   const struct sp_log *log)
{
	const struct sock *sk = local->sk;
	s64 after = (s64)atomic_read(&sk->sk_rmem_alloc) +
		    sp_detach_charge(log);

	return list_empty(&local->queue.messages) ||
	       after <= READ_ONCE(sk->sk_rcvbuf);
}

/* A copy of a message or event that is held. */
static struct sp_detached *sp_detach_copy(struct sp_group *g,
					  const struct sp_held *held, u64 view,
					  gfp_t gfp)
{
	const struct sp_log *log = &held->log;
	struct sp_detached *m;

	m = kvmalloc(struct_size(m, data, log->len), gfp);
	if (!m) {
		atomic64_inc(&g->counters.detach_nomem);
		return NULL;
	}
	m->log = *log;
	m->view = view;
	m->event = NULL;
	if (held->slab) {
		m->addr = held->addr;
		memcpy(m->data, sp_rx_bytes(held), log->len);
	} else if (!sp_log_private(log)) {
		m->event = sp_event_find(g, log->lane, log->pos);
	}
	return m;
}

static bool sp_detach_one(struct sp_group *g, struct sp_local *local,
			  const struct sp_log *log, u64 view, gfp_t gfp)
{
	struct sp_detached *m = NULL;
	struct sp_held held;

	if (!sp_rx_hold(g, local, log, &held))
		return false;
	if (sp_detach_fits(local, &held.log))
		m = sp_detach_copy(g, &held, view, gfp);
	sp_slab_put(held.slab);
	if (!m)
		return false;
	/* The copy before the look, as in sp_rx_copy(). */
	smp_rmb();
	if (READ_ONCE(local->deaf)) {
		sp_event_put(m->event);
		kvfree(m);
		return false;
	}
	atomic64_add(m->log.len, &g->counters.copied_bytes);
	atomic_add(sp_detach_charge(&m->log), &local->sk->sk_rmem_alloc);
	list_add_tail(&m->list, &local->queue.messages);
	return true;
}

/* Move what fits from the rings to the queue. True when the cursor moved. */
static bool sp_detach_fill(struct sp_group *g, struct sp_local *local,
			   gfp_t gfp)
{
	struct sp_rx_at at = { local->cursor, local->view };
	u64 was = local->cursor;
	const struct sp_log *log;
	struct mem_cgroup *old;

	lockdep_assert_held(&local->queue.lock);
	/* Then nothing is kept for it in the rings. */
	if (READ_ONCE(local->deaf))
		return false;
	old = sp_charge_to(local->memcg);
	while ((log = sp_rx_log(g, local, &at)) &&
	       sp_detach_one(g, local, log, at.view, gfp)) {
		local->view = at.view;
		at.cursor++;
		/* G in group.h: the copy is done, and can be found. */
		smp_store_release(&local->cursor, at.cursor);
	}
	sp_charge_to(old);
	/* An event that finds no room is come by once more, with its view. */
	if (log && (log->flags & SP_LOG_EVENT))
		at.view = local->view;
	local->view = at.view;
	/* G, too: past what is nobody's message, and unwanted. */
	smp_store_release(&local->cursor, at.cursor);
	return at.cursor != was;
}

static void sp_detach_drop(struct sp_local *local, struct sp_detached *m)
{
	list_del(&m->list);
	atomic_sub(sp_detach_charge(&m->log), &local->sk->sk_rmem_alloc);
	sp_event_put(m->event);
	kvfree(m);
}

/*
 * A member that is not detached passes by what is for others alone, and by events that
 * its program does not want, when these are many: nobody may read for long. What stands
 * behind something that the program is given it passes by when it takes that. Who copies
 * just now has this work done once more: sp_rx_unlock(). True when the cursor moved.
 */
static bool sp_detach_skip(struct sp_group *g, struct sp_local *local)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);
	struct sp_rx_at at;
	bool moved = false;

	WRITE_ONCE(local->queue.due, true);
	/* Pairs with sp_rx_unlock(): the lock is seen free, or this is seen. */
	smp_mb();
	if (!mutex_trylock(&ss->rx_lock))
		return false;
	WRITE_ONCE(local->queue.due, false);
	/* Nothing is kept for who is deaf, and a program moves on by itself. */
	if (!local->queue.on && !READ_ONCE(local->deaf) &&
	    !sp_rings_mapped(local, SPINDLE_MAP_RX)) {
		at.cursor = local->cursor;
		at.view = local->view;
		if (sp_events_many(g))
			sp_rx_log(g, local, &at);
		else
			sp_rx_pass(g, local, &at);
		moved = at.cursor != local->cursor;
		local->view = at.view;
		/* G in group.h: nothing is copied of what is passed by. */
		smp_store_release(&local->cursor, at.cursor);
	}
	sp_rx_unlock(ss);
	return moved;
}

static void sp_detach_work(struct work_struct *work)
{
	struct sp_queue *q = container_of(work, struct sp_queue, fill);
	struct sp_local *local = container_of(q, struct sp_local, queue);
	struct sp_group *g = local->group;
	bool moved;

	if (READ_ONCE(q->on)) {
		WRITE_ONCE(q->due, false);
		mutex_lock(&q->lock);
		moved = sp_detach_fill(g, local, SP_DETACH_QUICK);
		mutex_unlock(&q->lock);
	} else {
		moved = sp_detach_skip(g, local);
	}
	if (moved)
		sp_group_consumed(g);
}

/**
 * sp_detach_init() - prepare a member's queue
 * @local: the member
 */
void sp_detach_init(struct sp_local *local)
{
	mutex_init(&local->queue.lock);
	INIT_LIST_HEAD(&local->queue.messages);
	INIT_WORK(&local->queue.fill, sp_detach_work);
}

/**
 * sp_detach_stop() - nothing fills a member's queue any more
 * @local: the member; off its group's list, which is still there
 *
 * Context: may sleep; no lock is held.
 */
void sp_detach_stop(struct sp_local *local)
{
	cancel_work_sync(&local->queue.fill);
}

/**
 * sp_detach_exit() - undo sp_detach_init()
 * @local: the member; nobody else has it any more
 */
void sp_detach_exit(struct sp_local *local)
{
	struct sp_detached *m, *next;

	list_for_each_entry_safe(m, next, &local->queue.messages, list)
		sp_detach_drop(local, m);
	mutex_destroy(&local->queue.lock);
}

/**
 * sp_detach_set() - SPINDLE_DETACHED
 * @sk: the socket
 * @on: what it is to be
 *
 * Return: 0; -EBUSY when it is on and the member is in a group: there is no way
 * back into the rings for what was taken out of them; -EBUSY, too, when its
 * deliveries are mapped; -ERESTARTSYS.
 */
int sp_detach_set(struct sock *sk, bool on)
{
	struct sp_sock *ss = sp_sk(sk);
	struct sp_queue *q = &ss->local.queue;
	struct sp_group *g;
	bool moved = false;
	int ret = 0;

	/* No reader is in the middle of a message. */
	if (mutex_lock_interruptible(&ss->rx_lock))
		return -ERESTARTSYS;
	lock_sock(sk);
	/* A join that nobody waits for ends under sp_ctl. */
	mutex_lock(&sp_ctl);
	g = sp_sock_group(ss);
	if ((q->on && !on && (g || ss->joining)) ||
	    (on && sp_rings_mapped(&ss->local, SPINDLE_MAP_RX)))
		ret = -EBUSY;
	else
		WRITE_ONCE(q->on, on);
	mutex_unlock(&sp_ctl);
	release_sock(sk);
	if (!ret && on && g) {
		mutex_lock(&q->lock);
		moved = sp_detach_fill(g, &ss->local, SP_DETACH_QUICK);
		mutex_unlock(&q->lock);
	}
	sp_rx_unlock(ss);
	if (moved)
		sp_group_consumed(g);
	return ret;
}

/**
 * sp_detach_all() - have the queues of all detached members of this node filled, and
 * the others pass by what is for others alone
 * @g: the group; something was published
 *
 * Memory is waited for, and readers are: neither is for a pass.
 *
 * Context: the engine's lock is held.
 */
void sp_detach_all(struct sp_group *g)
{
	bool privates = g->privates != g->core.order.privates;
	struct sp_local *local;

	g->privates = g->core.order.privates;
	list_for_each_entry(local, &g->locals, on_group) {
		if (READ_ONCE(local->deaf) || sp_rings_mapped(local, SPINDLE_MAP_RX))
			continue;
		/* Nobody is woken for good by what is for others: its place must go, too. */
		if (privates || READ_ONCE(local->queue.on))
			queue_work(system_unbound_wq, &local->queue.fill);
	}
}

/**
 * sp_detach_pass_by() - have all members of this node pass by events that they do not
 * want, when these become many
 * @g: the group; a view has begun
 *
 * As long as they are few, a program may still say that it wants them.
 *
 * Context: the engine's lock is held.
 */
void sp_detach_pass_by(struct sp_group *g)
{
	struct sp_local *local;

	if (!sp_events_many(g))
		return;
	list_for_each_entry(local, &g->locals, on_group)
		if (!READ_ONCE(local->deaf) &&
		    !sp_rings_mapped(local, SPINDLE_MAP_RX))
			queue_work(system_unbound_wq, &local->queue.fill);
}

/**
 * sp_detach_first() - begin to read the oldest message of a queue
 * @g: the group
 * @local: the member, detached; its socket's rx_lock is held
 *
 * Return: the message, which stays until sp_detach_done(); -EAGAIN when there
 * is none; -ENOMEM when there is one in the rings, and no memory for it.
 */
struct sp_detached *sp_detach_first(struct sp_group *g, struct sp_local *local)
{
	struct sp_queue *q = &local->queue;
	struct sp_detached *m;
	struct sp_rx_at at;
	bool moved = false;

	mutex_lock(&q->lock);
	if (list_empty(&q->messages))
		moved = sp_detach_fill(g, local, SP_DETACH_HARD);
	m = list_first_entry_or_null(&q->messages, struct sp_detached, list);
	q->reading = m;
	at.cursor = local->cursor;
	at.view = local->view;
	if (!m)
		m = ERR_PTR(!READ_ONCE(local->deaf) && sp_rx_log(g, local, &at) ?
			    -ENOMEM : -EAGAIN);
	mutex_unlock(&q->lock);
	if (moved)
		sp_group_consumed(g);
	return m;
}

/**
 * sp_detach_done() - end what sp_detach_first() began
 * @g: the group
 * @local: the member
 * @taken: the message was received; otherwise it stays
 */
void sp_detach_done(struct sp_group *g, struct sp_local *local, bool taken)
{
	struct sp_queue *q = &local->queue;
	bool moved = false;

	mutex_lock(&q->lock);
	if (taken || (READ_ONCE(local->sk->sk_shutdown) & RCV_SHUTDOWN))
		sp_detach_drop(local, q->reading);
	q->reading = NULL;
	if (taken) {
		WRITE_ONCE(q->taken, q->taken + 1);
		moved = sp_detach_fill(g, local, SP_DETACH_QUICK);
	}
	mutex_unlock(&q->lock);
	if (moved)
		sp_group_consumed(g);
}

/**
 * sp_detach_purge() - the member reads no more
 * @local: the member; @local->deaf is set
 *
 * What a reader copies just now it drops itself.
 */
void sp_detach_purge(struct sp_local *local)
{
	struct sp_queue *q = &local->queue;
	struct sp_detached *m, *next;

	mutex_lock(&q->lock);
	list_for_each_entry_safe(m, next, &q->messages, list)
		if (m != q->reading)
			sp_detach_drop(local, m);
	mutex_unlock(&q->lock);
}

/**
 * sp_detach_sift() - the program wants other events than before
 * @local: the member; its socket's rx_lock is held
 *
 * What it does not want any more is taken out of the queue. What was not put
 * there is not to be had any more.
 */
void sp_detach_sift(struct sp_local *local)
{
	struct sp_queue *q = &local->queue;
	struct sp_detached *m, *next;

	mutex_lock(&q->lock);
	list_for_each_entry_safe(m, next, &q->messages, list)
		if (!sp_rx_gives(local, &m->log))
			sp_detach_drop(local, m);
	mutex_unlock(&q->lock);
}
