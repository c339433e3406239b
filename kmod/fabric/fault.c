// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of the fabric, for tests, from one side of a link and as often as they want:
 *
 *   cut     the peer cannot be connected with, though it is there: what a cut cable does
 *   delay   completions of requests to it are known late
 *   drop    or never: the next one that is not dropped stands for those before it
 *
 * A fault is the node's, and so lasts longer than a link. A link knows only for how long
 * it delays:
 *
 *   link->delay_ms	written under sp_ctl and @sq_lock; the completion handler reads it
 *			without, and again under @sq_lock before it holds a completion back
 *   link->delayed	of the completion handler and sp_fault_late(), under @sq_lock
 *   link->due		of sp_fault_late() and who queues it, likewise
 *   link->completed	while there is a delay, written under @sq_lock alone, but for a
 *			handler that has seen none just before. It has caught up before
 *			@delay_ms becomes 0 (release), and the handler writes it again only
 *			behind having read that (a control dependency): it never goes back
 */
#include <linux/slab.h>

#include "fabric.h"

struct sp_fault {
	struct list_head on_node;
	struct sp_addr peer;
	bool cut;
	u32 delay_ms;
};

static struct sp_fault *sp_fault_find(const struct sp_node *node,
				      const struct sp_addr *peer)
{
	struct sp_fault *fault;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(fault, &node->faults, on_node)
		if (!sp_addr_cmp(&fault->peer, peer))
			return fault;
	return NULL;
}

/* Find it or make it: NULL: no memory. */
static struct sp_fault *sp_fault_get(struct sp_node *node, const struct sp_addr *peer)
{
	struct sp_fault *fault = sp_fault_find(node, peer);

	if (fault)
		return fault;
	fault = kzalloc(sizeof(*fault), GFP_KERNEL);
	if (!fault)
		return NULL;
	fault->peer = *peer;
	list_add_tail(&fault->on_node, &node->faults);
	return fault;
}

/* One that is none any more goes. */
static void sp_fault_put(struct sp_fault *fault)
{
	if (fault->cut || fault->delay_ms)
		return;
	list_del(&fault->on_node);
	kfree(fault);
}

/**
 * sp_fault_is_cut() - is the way to a peer cut
 * @node: the local end
 * @peer: the other end's address
 *
 * Context: sp_ctl is held.
 *
 * Return: true when it is.
 */
bool sp_fault_is_cut(const struct sp_node *node, const struct sp_addr *peer)
{
	const struct sp_fault *fault = sp_fault_find(node, peer);

	return fault && fault->cut;
}

/**
 * sp_fault_cut() - cut the way to a peer, or mend it
 * @node: the local end
 * @peer: the other end's address
 * @cut: cut it: the connection is lost, if there is one, and there will be no other
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_fault_cut(struct sp_node *node, const struct sp_addr *peer, bool cut)
{
	struct sp_fault *fault = sp_fault_get(node, peer);
	struct sp_link *link;

	if (!fault)
		return -ENOMEM;
	fault->cut = cut;
	sp_fault_put(fault);
	link = cut ? sp_link_find(node, peer) : NULL;
	if (link && !sp_conn_lose(link, "cut by debugfs"))
		sp_link_set_state(link, SP_LINK_DOWN, -EHOSTDOWN);
	return 0;
}

/**
 * sp_fault_delay_ms() - for how long are completions of requests to a peer delayed
 * @node: the local end
 * @peer: the other end's address
 *
 * Context: sp_ctl is held.
 *
 * Return: milliseconds, or SP_DELAY_DROP.
 */
u32 sp_fault_delay_ms(const struct sp_node *node, const struct sp_addr *peer)
{
	const struct sp_fault *fault = sp_fault_find(node, peer);

	return fault ? fault->delay_ms : 0;
}

/* All that has completed below @seq is known from now on. True: some of it was not. */
static bool sp_fault_catch_up(struct sp_link *link, u64 seq)
{
	lockdep_assert_held(&link->sq_lock);
	if ((s64)(seq - READ_ONCE(link->completed)) <= 0)
		return false;
	/* As in sp_completed(). */
	smp_store_release(&link->completed, seq);
	return true;
}

/* Tell all whom a completion concerns. */
static void sp_fault_tell(struct sp_link *link)
{
	/* As in a completion handler. */
	local_bh_disable();
	sp_post_flush(link);
	/* Pairs with one of sp_up->landed(). */
	smp_mb();
	sp_up->landed(link->node->sdev);
	sp_link_owes(link);
	local_bh_enable();
}

/**
 * sp_fault_delay() - delay completions of requests to a peer, or drop them
 * @node: the local end
 * @peer: the other end's address
 * @ms: by so many milliseconds at least, and twice that at most; or SP_DELAY_DROP; 0 ends
 *	it: what was delayed is known at once, what was dropped is not
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_fault_delay(struct sp_node *node, const struct sp_addr *peer, u32 ms)
{
	struct sp_fault *fault = sp_fault_get(node, peer);
	struct sp_link *link;

	if (!fault)
		return -ENOMEM;
	fault->delay_ms = ms;
	sp_fault_put(fault);
	link = sp_link_find(node, peer);
	if (!link)
		return 0;
	spin_lock_bh(&link->sq_lock);
	sp_fault_catch_up(link, link->delayed);
	/* See the table above. */
	smp_store_release(&link->delay_ms, ms);
	spin_unlock_bh(&link->sq_lock);
	sp_fault_tell(link);
	return 0;
}

/**
 * sp_fault_hold() - hold a completion back
 * @link: the link; it delays
 * @seq: requests below this have completed
 *
 * Context: completion handler.
 *
 * Return: false when it does not delay any more.
 */
bool sp_fault_hold(struct sp_link *link, u64 seq)
{
	u32 ms;

	spin_lock_bh(&link->sq_lock);
	ms = link->delay_ms;
	if (ms && ms != SP_DELAY_DROP) {
		link->delayed = seq;
		/* Nothing is due any more: it is the first. */
		if ((s64)(link->due - READ_ONCE(link->completed)) <= 0) {
			link->due = seq;
			mod_delayed_work(sp_wq, &link->late, msecs_to_jiffies(ms));
		}
	}
	spin_unlock_bh(&link->sq_lock);
	return ms;
}

/**
 * sp_fault_late() - completions that were held back are due
 * @work: @late of a link
 */
void sp_fault_late(struct work_struct *work)
{
	struct sp_link *link = container_of(to_delayed_work(work), struct sp_link, late);
	u32 ms;

	spin_lock_bh(&link->sq_lock);
	ms = link->delay_ms;
	if (ms) {
		sp_fault_catch_up(link, link->due);
		if (link->due != link->delayed && ms != SP_DELAY_DROP) {
			link->due = link->delayed;
			queue_delayed_work(sp_wq, &link->late, msecs_to_jiffies(ms));
		}
	}
	spin_unlock_bh(&link->sq_lock);
	sp_fault_tell(link);
}

/**
 * sp_fault_reset() - a connection is dead, and all its completions have come
 * @link: the link
 *
 * What it has held back is known from now on: it is not to be posted again. Context: may
 * sleep, without sp_ctl.
 */
void sp_fault_reset(struct sp_link *link)
{
	bool late;

	spin_lock_bh(&link->sq_lock);
	late = sp_fault_catch_up(link, link->delayed);
	spin_unlock_bh(&link->sq_lock);
	if (late)
		sp_fault_tell(link);
}

/**
 * sp_fault_forget() - forget all faults of a node
 * @node: the local end, which nobody uses any more
 */
void sp_fault_forget(struct sp_node *node)
{
	struct sp_fault *fault, *next;

	list_for_each_entry_safe(fault, next, &node->faults, on_node)
		kfree(fault);
}
