// SPDX-License-Identifier: GPL-2.0
/*
 * A link: two nodes that talk to each other by one connection after the other
 * (conn.c), what they say, and those who use it.
 */
#include <linux/slab.h>

#include "../observe/trace.h"
#include "fabric.h"

#define SP_BEAT_MS	500	/* between heartbeats of a link with nothing in flight, at most */
#define SP_BEATS	8	/* heartbeats within what users wait, unless that is very short */
#define SP_OUT_MAX	1024	/* control messages that wait for room */
#define SP_OUT_MOST	65536	/* the same with what is said all the same */
#define SP_CONNECT_MS	10000	/* the first connection takes no longer than this, or suspect_ms */
#define SP_ATTEMPT_MS	1000	/* an attempt to have another one takes no longer, at first */
#define SP_ATTEMPT_MIN	100	/* but so long, however short users wait */

static void sp_link_rx(struct work_struct *work);
static void sp_link_fail(struct work_struct *work);
static void sp_link_stop(struct work_struct *work);
static void sp_link_beat(struct work_struct *work);

/* Who is not told that it need not wait any longer waits no longer than the module does. */
static u32 sp_user_ms(const struct sp_link_user *user, u32 ms)
{
	if (!user->lost)
		ms = min_not_zero(ms, sp_suspect_ms);
	return ms ?: sp_suspect_ms;
}

static u32 sp_user_silent_ms(const struct sp_link_user *user)
{
	return sp_user_ms(user, user->silent_ms);
}

/**
 * sp_user_link_ms() - how long a user waits for a connection
 * @user: the user
 *
 * Return: milliseconds, not 0.
 */
u32 sp_user_link_ms(const struct sp_link_user *user)
{
	return sp_user_ms(user, user->link_ms ?: user->silent_ms);
}

/* For so long, counted by heartbeats, the other side has given no sign. */
static u64 sp_link_silence(const struct sp_link *link)
{
	return link->clock_ms - link->heard_ms;
}

/* For so long, counted likewise, there has been no connection. */
static u64 sp_link_away(const struct sp_link *link)
{
	return link->clock_ms - link->wired_ms;
}

/* Who waits least is to be told in time. */
static u32 sp_beat_ms(const struct sp_link *link)
{
	u32 ms = sp_suspect_ms;
	struct sp_link_user *user;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(user, &link->users, on_link)
		if (!user->gave_up)
			ms = min3(ms, sp_user_silent_ms(user), sp_user_link_ms(user));
	return clamp_t(u32, ms / SP_BEATS, 10, SP_BEAT_MS);
}

static void sp_link_beat_soon(struct sp_link *link)
{
	link->beat_ms = sp_beat_ms(link);
	mod_delayed_work(sp_wq, &link->beat, msecs_to_jiffies(link->beat_ms));
}

/**
 * sp_link_alloc() - make a link that is not connected yet
 * @node: the local end
 * @peer: the other end's address
 *
 * Context: sp_ctl is held.
 *
 * Return: the link, on the node's list, with one reference that
 * sp_link_stop() drops; or an ERR_PTR.
 */
struct sp_link *sp_link_alloc(struct sp_node *node, const struct sp_addr *peer)
{
	struct sp_link *link;

	lockdep_assert_held(&sp_ctl);
	if (node->dying || node->sdev->dead)
		return ERR_PTR(-ENODEV);
	link = kzalloc(sizeof(*link), GFP_KERNEL);
	if (!link)
		return ERR_PTR(-ENOMEM);
	kref_get(&node->ref);
	link->node = node;
	link->peer = *peer;
	sp_addr_name(peer, link->name, sizeof(link->name));
	kref_init(&link->ref);
	link->state = SP_LINK_CONNECTING;
	link->session = get_random_u64();
	link->number = ++node->made;
	INIT_LIST_HEAD(&link->users);
	INIT_LIST_HEAD(&link->rxq);
	INIT_LIST_HEAD(&link->outq);
	spin_lock_init(&link->sq_lock);
	spin_lock_init(&link->rx_lock);
	INIT_WORK(&link->rx, sp_link_rx);
	INIT_DELAYED_WORK(&link->start, sp_conn_start);
	INIT_WORK(&link->connect, sp_conn_connect);
	INIT_WORK(&link->fail, sp_link_fail);
	INIT_WORK(&link->reset, sp_conn_reset);
	INIT_WORK(&link->stop, sp_link_stop);
	INIT_DELAYED_WORK(&link->beat, sp_link_beat);
	INIT_DELAYED_WORK(&link->late, sp_fault_late);
	link->delay_ms = sp_fault_delay_ms(node, peer);
	list_add_tail(&link->on_node, &node->links);
	atomic_inc(&node->sdev->objects);
	queue_delayed_work(sp_wq, &link->beat,
			   msecs_to_jiffies(max_t(u32, SP_CONNECT_MS,
						  sp_suspect_ms)));
	return link;
}

static void sp_link_release(struct kref *ref)
{
	struct sp_link *link = container_of(ref, struct sp_link, ref);
	struct sp_device *sdev = link->node->sdev;

	/* The keys granted on it are gone: their holders held references. */
	if (link->pd)
		ib_dealloc_pd(link->pd);
	/* The node keeps the device's memory until then. */
	sp_device_object_gone(sdev);
	sp_node_put(link->node);
	kfree(link);
}

/**
 * sp_link_put() - drop a reference
 * @link: the link
 *
 * Context: may sleep, with the last one.
 */
void sp_link_put(struct sp_link *link)
{
	kref_put(&link->ref, sp_link_release);
}

static struct sp_link_user *sp_link_untold(struct sp_link *link)
{
	struct sp_link_user *user;

	list_for_each_entry(user, &link->users, on_link)
		if (!user->told)
			return user;
	return NULL;
}

/**
 * sp_link_set_state() - the one place where a link changes its state
 * @link: the link
 * @state: the new state
 * @error: for SP_LINK_DOWN: why, a negative errno
 *
 * CONNECTING -> UP -> DOWN, and CONNECTING -> DOWN. Going up or down tells the
 * users. A link that is up has lost its connection, perhaps, and is to have another
 * one. Context: sp_ctl is held.
 *
 * Return: 0, or -EINVAL when that step does not exist.
 */
int sp_link_set_state(struct sp_link *link, enum sp_link_state state, int error)
{
	bool was_up = link->state == SP_LINK_UP;
	struct sp_link_user *user;

	lockdep_assert_held(&sp_ctl);
	if (state <= link->state)
		return -EINVAL;
	link->state = state;
	trace_spindle_link(link->node->name, link->name, state,
			   state == SP_LINK_DOWN ? error : 0);
	if (state == SP_LINK_UP) {
		sp_link_beat_soon(link);
		/* A user that is told may take itself and others off the list. */
		while ((user = sp_link_untold(link))) {
			user->told = true;
			user->up(user);
		}
		/* What came before this side knew that it was up. */
		queue_work(sp_wq, &link->rx);
		return 0;
	}

	link->error = error;
	spin_lock_bh(&link->sq_lock);
	link->open = false;
	spin_unlock_bh(&link->sq_lock);
	sp_conn_unwire(link);
	list_del_init(&link->on_node);
	if (was_up)
		sp_up->lost(link);
	while (!list_empty(&link->users)) {
		user = list_first_entry(&link->users, struct sp_link_user,
					on_link);
		list_del_init(&user->on_link);
		user->down(user, error);
	}
	/* With iWARP it waits for the end of the attempt to connect. */
	queue_work(link->iwarp ? sp_tcp_wq : sp_wq, &link->stop);
	return 0;
}

/**
 * sp_link_find() - the link to a peer, if there is one that works or may soon
 * @node: the local end
 * @peer: the other end's address
 *
 * Context: sp_ctl is held.
 *
 * Return: the link or NULL.
 */
struct sp_link *sp_link_find(struct sp_node *node, const struct sp_addr *peer)
{
	struct sp_link *link;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(link, &node->links, on_node)
		if (!sp_addr_cmp(&link->peer, peer))
			return link;
	return NULL;
}

static void sp_link_begin_wait(struct sp_link_user *user)
{
	user->since_ms = user->link->clock_ms;
	user->waits = false;
}

/**
 * sp_link_use() - need the link to a peer; connect if there is none
 * @node: the local end
 * @peer: the other end's address
 * @user: its callbacks are set. @user->up() may be called from within
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0, or a negative errno.
 */
int sp_link_use(struct sp_node *node, const struct sp_addr *peer,
		struct sp_link_user *user)
{
	struct sp_link *link = sp_link_find(node, peer);

	if (!link) {
		link = sp_link_alloc(node, peer);
		if (IS_ERR(link))
			return PTR_ERR(link);
		queue_delayed_work(sp_wq, &link->start,
				   msecs_to_jiffies(user->pause_ms));
	}
	kref_get(&link->ref);
	user->link = link;
	user->gave_up = false;
	user->asked_ms = 0;
	sp_link_begin_wait(user);
	user->told = link->state == SP_LINK_UP;
	list_add_tail(&user->on_link, &link->users);
	/* It may wait less than others do. */
	if (user->told && sp_beat_ms(link) < link->beat_ms)
		sp_link_beat_soon(link);
	if (user->told)
		user->up(user);
	return 0;
}

/**
 * sp_link_unuse() - need a link no longer
 * @user: from sp_link_use(); nothing of it is in use any more. The link stays
 *	as long as its node
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_link_unuse(struct sp_link_user *user)
{
	struct sp_link *link = user->link;

	lockdep_assert_held(&sp_ctl);
	if (!link)
		return;
	list_del_init(&user->on_link);
	user->link = NULL;
	sp_link_put(link);
}

/**
 * sp_link_await() - wait for the other side anew, as if it had been heard just now
 * @user: on a link
 *
 * A link without a connection tries to have one at once. Context: sp_ctl is held.
 */
void sp_link_await(struct sp_link_user *user)
{
	struct sp_link *link = user->link;

	lockdep_assert_held(&sp_ctl);
	sp_link_begin_wait(user);
	link->tried = 0;
	/* Should it have begun meanwhile, the second finds that out. */
	if (link->state == SP_LINK_UP && delayed_work_pending(&link->start))
		mod_delayed_work(sp_wq, &link->start, 0);
}

/**
 * sp_link_move_users() - settle a tie: the users of one link go to another
 * @from: link that was not up yet
 * @to: link to the same peer
 *
 * Context: sp_ctl is held.
 */
void sp_link_move_users(struct sp_link *from, struct sp_link *to)
{
	struct sp_link_user *user;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(user, &from->users, on_link) {
		user->link = to;
		sp_link_begin_wait(user);
		kref_get(&to->ref);
		sp_link_put(from);
	}
	list_splice_init(&from->users, &to->users);
}

/**
 * sp_link_break() - take a link down from any context, or have it connect again
 * @link: the link
 * @error: why, a negative errno; -EAGAIN: its connection alone is lost
 * @what: the same in words, a constant string
 */
void sp_link_break(struct sp_link *link, int error, const char *what)
{
	/*
	 * The first reason is the one that counts; the rest follows from it. But that
	 * a connection is lost is no reason to keep the link for who wants it down.
	 */
	if (cmpxchg(&link->fail_error, 0, error) &&
	    (error == -EAGAIN ||
	     cmpxchg(&link->fail_error, -EAGAIN, error) != -EAGAIN))
		return;
	WRITE_ONCE(link->fail_nr, READ_ONCE(link->nr));
	WRITE_ONCE(link->fail_what, what);
	kref_get(&link->ref);
	/* The one that is queued has a reference, too: this is not the last. */
	if (!queue_work(sp_wq, &link->fail))
		sp_link_put(link);
}

static void sp_link_fail(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, fail);
	const char *what = READ_ONCE(link->fail_what);
	int error;

	mutex_lock(&sp_ctl);
	sp_link_take(link);
	error = READ_ONCE(link->fail_error);
	/* The reason may be gone, with the connection that it was about. */
	if (error == -EAGAIN && (READ_ONCE(link->fail_nr) != link->nr ||
				 sp_conn_lose(link, what)))
		error = 0;
	if (error) {
		if (link->state != SP_LINK_DOWN && !list_empty(&link->users))
			pr_info_ratelimited("spindle: %s: link to %s: %s\n",
					    link->node->name, link->name, what);
		sp_link_set_state(link, SP_LINK_DOWN,
				  error == -EAGAIN ? -EHOSTDOWN : error);
	}
	mutex_unlock(&sp_ctl);
	sp_link_put(link);
}

static bool sp_credit_due(const struct sp_link *link)
{
	return (u32)atomic_read(&link->reposted) -
	       READ_ONCE(link->advertised) >= SP_RQ_DEPTH / 2;
}

/**
 * sp_link_owes() - send what waits for room or credits, if anything does
 * @link: the link
 *
 * Context: any; there may be room now.
 */
void sp_link_owes(struct sp_link *link)
{
	/* Pairs with the barrier of sp_link_send_queued(). */
	smp_mb();
	if (READ_ONCE(link->nout) || sp_credit_due(link) ||
	    READ_ONCE(link->asked))
		queue_work(sp_wq, &link->rx);
}

/* Control messages that waited for room or credits. */
struct sp_out {
	struct list_head list;
	u64 msg[];	/* struct sp_msg and what follows it */
};

static void sp_link_send_queued(struct sp_link *link)
{
	struct sp_out *out, *next;
	u64 ticket;

	lockdep_assert_held(&sp_ctl);
	/* Either we see the room, or who makes it sees that we wait. */
	smp_mb();
	list_for_each_entry_safe(out, next, &link->outq, list) {
		if (sp_post_send(link, NULL, (struct sp_msg *)out->msg, false, &ticket))
			return;
		list_del(&out->list);
		WRITE_ONCE(link->nout, link->nout - 1);
		kfree(out);
	}
}

/**
 * sp_link_say() - send a control message, later if there is no room now
 * @link: the link
 * @msg: the message; its header is filled in here
 * @type: enum sp_msg_type
 * @len: bytes, with the header, at most SP_MSG_MAX
 *
 * Messages of one link arrive in the order they were said. When the link goes
 * down, those that were not sent are lost, and its users are told.
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0; -ENOBUFS when too many wait already; -ENOTCONN when the link is down.
 */
int sp_link_say(struct sp_link *link, struct sp_msg *msg, u16 type, u16 len)
{
	struct sp_out *out;
	u64 ticket;

	lockdep_assert_held(&sp_ctl);
	if (link->state != SP_LINK_UP)
		return -ENOTCONN;
	msg->type = type;
	msg->len = len;
	/* What goes at once needs no memory. */
	if (list_empty(&link->outq) && !sp_post_send(link, NULL, msg, false, &ticket))
		return 0;
	/*
	 * A peer that asks on and on and takes no answer. Of a node that is lost
	 * each group of the link says so.
	 */
	if (link->nout >= SP_OUT_MAX && type != SP_MSG_REPORT &&
	    type != SP_MSG_BYE)
		return -ENOBUFS;
	if (link->nout >= SP_OUT_MOST) {
		sp_link_break(link, -EHOSTDOWN, "takes no messages");
		return -ENOBUFS;
	}
	/*
	 * Others wait for what this node has to say, and would be harmed if it could
	 * not: a message is short, and no more than that wait.
	 */
	out = kmalloc(sizeof(*out) + len, GFP_KERNEL | __GFP_NOFAIL);
	memcpy(out->msg, msg, len);
	list_add_tail(&out->list, &link->outq);
	WRITE_ONCE(link->nout, link->nout + 1);
	sp_link_send_queued(link);
	return 0;
}

/*
 * Up, when both sides may send. With iWARP who has asked must be the first to:
 * what comes behind the answer at once, the other side may take for a part of
 * the answer.
 */
static void sp_link_up(struct sp_link *link)
{
	lockdep_assert_held(&sp_ctl);
	if (link->state == SP_LINK_CONNECTING && link->open &&
	    (READ_ONCE(link->heard) || !link->iwarp || !link->passive))
		sp_link_set_state(link, SP_LINK_UP, 0);
}

/**
 * sp_link_take() - handle the control messages that have come
 * @link: the link
 *
 * Also before a link is taken down because its peer has closed it: what it
 * said last still counts. Context: sp_ctl is held, may sleep.
 */
void sp_link_take(struct sp_link *link)
{
	struct sp_recv *recv;
	int ret;

	lockdep_assert_held(&sp_ctl);
	sp_link_up(link);
	while (link->state == SP_LINK_UP) {
		spin_lock_bh(&link->rx_lock);
		recv = list_first_entry_or_null(&link->rxq, struct sp_recv,
						queued);
		if (recv)
			list_del_init(&recv->queued);
		spin_unlock_bh(&link->rx_lock);
		if (!recv)
			break;
		ret = sp_up->message(link, sp_recv_msg(recv));
		if (ret) {
			sp_link_set_state(link, SP_LINK_DOWN, ret);
			break;
		}
		if (link->state == SP_LINK_UP && sp_recv_post(recv))
			sp_link_set_state(link, SP_LINK_DOWN, -EHOSTDOWN);
	}
}

/* Send a header alone, at once; 0, or as sp_post_send(). */
static int sp_link_send_bare(struct sp_link *link, u16 type, bool reserved)
{
	struct sp_msg msg = { type, sizeof(msg) };
	u64 ticket;

	return sp_post_send(link, NULL, &msg, reserved, &ticket);
}

/* It has lost its connection, and has another one. */
static void sp_link_again(struct sp_link *link)
{
	struct sp_link_user *user;

	pr_info_ratelimited("spindle: %s: connected to %s again\n",
			    link->node->name, link->name);
	trace_spindle_connection(link->node->name, link->name, true, link->nr);
	link->wired_ms = link->clock_ms;
	link->made_ms = link->clock_ms;
	link->mute = 0;
	list_for_each_entry(user, &link->users, on_link)
		if (user->again)
			user->again(user);
	/* What waits may have found no room meanwhile. */
	queue_work(sp_wq, &link->rx);
}

/**
 * sp_link_established() - the connection is there
 * @link: connecting, or up and to be connected again
 *
 * Context: sp_ctl is held.
 *
 * Return: 0; -EPROTO when the other side says what cannot be.
 */
int sp_link_established(struct sp_link *link)
{
	bool again = link->state == SP_LINK_UP;
	int ret = 0;

	lockdep_assert_held(&sp_ctl);
	spin_lock_bh(&link->sq_lock);
	link->open = true;
	link->wired = true;
	if (again)
		ret = sp_post_again(link, link->theirs);
	/* Nothing is to be posted without what should have been before it. */
	if (ret)
		link->wired = false;
	spin_unlock_bh(&link->sq_lock);
	if (ret)
		return ret;
	if (again) {
		sp_link_again(link);
		return 0;
	}
	if (link->iwarp && !link->passive)
		sp_link_send_bare(link, SP_MSG_CREDIT, true);
	sp_link_up(link);
	return 0;
}

static void sp_link_rx(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, rx);

	mutex_lock(&sp_ctl);
	sp_link_take(link);
	if (link->state == SP_LINK_UP) {
		bool asked = READ_ONCE(link->asked);

		sp_link_send_queued(link);
		/* What comes from here on asks again. */
		if (asked)
			WRITE_ONCE(link->asked, false);
		if ((asked || sp_credit_due(link)) &&
		    sp_link_send_bare(link, SP_MSG_CREDIT, true) && asked)
			WRITE_ONCE(link->asked, true);
	}
	mutex_unlock(&sp_ctl);
}

/**
 * sp_link_attempt_ms() - how long an attempt to connect again may take
 * @link: the link
 *
 * Several are to be made while users wait, since a request or an answer that is lost the
 * CM repeats after seconds only. Longer each time, where all takes long. Context: sp_ctl
 * is held.
 *
 * Return: milliseconds.
 */
u32 sp_link_attempt_ms(const struct sp_link *link)
{
	return clamp_t(u32, 2 * link->beat_ms, SP_ATTEMPT_MIN, SP_ATTEMPT_MS) <<
	       min_t(u32, link->tried / 4, 2);
}

/*
 * Is the peer there? Whatever is in flight asks, as a heartbeat does, and any
 * completion is an answer. With iWARP a request completes when TCP has taken
 * it: what comes from the peer is the sign, and it is asked for one. Silence
 * is counted in beats: a host that was away itself, or is short of processors,
 * has counted fewer of them, and does not take its own absence for the peer's.
 */
static void sp_link_listen(struct sp_link *link)
{
	u64 completed = sp_post_completed(link);
	bool there = completed != link->beaten;

	if (there)
		link->tried = 0;
	if (link->iwarp) {
		there = xchg(&link->heard, 0);
		/* Who has no credit to ask with is owed some: that is a sign, too. */
		sp_link_send_bare(link, SP_MSG_ASK, false);
	} else if (link->wired && READ_ONCE(link->built) == completed) {
		there = true;
		sp_post_beat(link);
	}
	link->beaten = completed;
	link->clock_ms += link->beat_ms;
	if (there)
		link->heard_ms = link->clock_ms;
	if (link->wired)
		link->wired_ms = link->clock_ms;
	/* A request to connect may be lost, too. */
	if (link->id && !link->wired &&
	    time_after(jiffies, link->began + msecs_to_jiffies(sp_link_attempt_ms(link))))
		sp_conn_failed(link, link->id, -EHOSTUNREACH);
}

/* Since @ms, by the link's clock, but no longer than a user has needed the link. */
static u64 sp_user_waited(const struct sp_link *link, const struct sp_link_user *user, u64 ms)
{
	return link->clock_ms - max(ms, user->since_ms);
}

/* Why a user need not wait for the other side any longer; NULL: it has to. */
static const char *sp_user_over(const struct sp_link *link,
				const struct sp_link_user *user)
{
	if (sp_user_waited(link, user, link->heard_ms) >= sp_user_silent_ms(user))
		return "does not answer";
	return sp_user_waited(link, user, link->wired_ms) >= sp_user_link_ms(user) ?
	       "has no connection" : NULL;
}

/* One that need not wait, and was not asked since the last heartbeat; or NULL. */
static struct sp_link_user *sp_link_weary(struct sp_link *link)
{
	struct sp_link_user *user;

	list_for_each_entry(user, &link->users, on_link)
		if (user->lost && !user->gave_up && user->asked_ms != link->clock_ms &&
		    sp_user_over(link, user))
			return user;
	return NULL;
}

/* Does anybody wait for the other side? */
static bool sp_link_awaited(const struct sp_link *link)
{
	const struct sp_link_user *user;

	list_for_each_entry(user, &link->users, on_link)
		if (!user->gave_up && !sp_user_over(link, user))
			return true;
	return list_empty(&link->users) && sp_link_silence(link) < sp_suspect_ms &&
	       sp_link_away(link) < sp_suspect_ms;
}

/* Is anybody kept from going on by what may be sent again, and waits for it no longer? */
static bool sp_link_detains(const struct sp_link *link)
{
	const struct sp_link_user *user;

	list_for_each_entry(user, &link->users, on_link)
		if (user->held && sp_user_over(link, user))
			return true;
	return false;
}

/* If nobody waits as long as it will, does anybody for ever? */
static bool sp_link_kept(const struct sp_link *link)
{
	const struct sp_link_user *user;

	/* Over iWARP there is no second connection: nobody is kept from going on for that. */
	if (link->iwarp && sp_link_detains(link))
		return false;
	list_for_each_entry(user, &link->users, on_link)
		if (user->lost && user->waits)
			return true;
	return false;
}

/**
 * sp_link_cancel() - may what was posted for a user not be sent any more
 * @user: the user; it posts nothing more
 *
 * So it is once the user has waited for the other side as long as it would, and the link
 * has no connection: the next one sends nothing for it. Others that use the link wait on.
 * Context: sp_ctl is held.
 *
 * Return: true when none of it is sent again.
 */
bool sp_link_cancel(const struct sp_link_user *user)
{
	struct sp_link *link = user->link;

	lockdep_assert_held(&sp_ctl);
	if (!link || link->state != SP_LINK_UP || link->wired || link->old ||
	    !sp_user_over(link, user))
		return false;
	sp_post_cancel(link, user);
	return true;
}

static struct sp_link_user *sp_link_brief(struct sp_link *link)
{
	struct sp_link_user *user;

	list_for_each_entry(user, &link->users, on_link)
		if (user->brief && sp_user_over(link, user))
			return user;
	return NULL;
}

/*
 * Is there a connection by which nothing has come for too long, while somebody waits on?
 * The other side may have none by now: soft-RoCE would send to that for ever.
 */
static bool sp_link_deaf(const struct sp_link *link)
{
	u64 since_ms = max(link->heard_ms, link->made_ms);
	const struct sp_link_user *user;

	list_for_each_entry(user, &link->users, on_link)
		if (user->lost && user->waits &&
		    sp_user_waited(link, user, since_ms) >= sp_user_silent_ms(user))
			return true;
	return false;
}

/* Each user waits as long as it will, and none for another one. */
static void sp_link_judge(struct sp_link *link)
{
	struct sp_link_user *user;
	bool awaited;

	if (!sp_link_silence(link) && !sp_link_away(link)) {
		list_for_each_entry(user, &link->users, on_link)
			user->gave_up = false;
		return;
	}
	/* A user that gives up may take itself and others off the list, and use another link. */
	while ((user = sp_link_weary(link))) {
		bool waits;

		user->asked_ms = link->clock_ms;
		user->gave_up = true;
		waits = !user->lost(user, sp_user_over(link, user));
		if (user->link != link)
			continue;
		user->waits = waits;
		user->gave_up = !waits;
	}
	if (link->state != SP_LINK_UP)
		return;
	awaited = sp_link_awaited(link);
	if (!awaited && !sp_link_kept(link)) {
		sp_link_break(link, -EHOSTDOWN, "no answer for too long");
		return;
	}
	while (!awaited && (user = sp_link_brief(link))) {
		user->brief = false;
		user->down(user, -EHOSTDOWN);
	}
	if (link->state != SP_LINK_UP || !link->wired || link->iwarp)
		return;
	/* Who is detained goes on without: sp_link_cancel(). */
	if (sp_link_detains(link) || (!awaited && sp_link_deaf(link)))
		sp_link_break(link, -EAGAIN, "no answer for too long");
}

/* Heartbeat of a link that is up; the end of the patience with one that is not. */
static void sp_link_beat(struct work_struct *work)
{
	struct sp_link *link = container_of(to_delayed_work(work),
					    struct sp_link, beat);

	mutex_lock(&sp_ctl);
	if (link->state == SP_LINK_CONNECTING) {
		sp_link_set_state(link, SP_LINK_DOWN, -ETIMEDOUT);
	} else if (link->state == SP_LINK_UP) {
		sp_link_listen(link);
		sp_link_judge(link);
	}
	if (link->state == SP_LINK_UP) {
		sp_link_owes(link);
		sp_link_beat_soon(link);
	}
	mutex_unlock(&sp_ctl);
}

/**
 * sp_link_silent() - is a link without a sign of the other side for long
 * @link: the link
 *
 * Context: sp_ctl is held.
 *
 * Return: true when what the other side has not said may be on its way.
 */
bool sp_link_silent(const struct sp_link *link)
{
	lockdep_assert_held(&sp_ctl);
	return link->state == SP_LINK_UP &&
	       (!link->wired || sp_link_silence(link) > 2 * link->beat_ms);
}

/**
 * sp_link_missed() - has the other side been away for half as long as a user waits
 * @user: on a link, or not
 *
 * Longer than a moment, that is: see sp_link_silent(). Context: sp_ctl is held.
 *
 * Return: true when it has.
 */
bool sp_link_missed(const struct sp_link_user *user)
{
	const struct sp_link *link = user->link;

	lockdep_assert_held(&sp_ctl);
	if (!link || link->state != SP_LINK_UP)
		return true;
	return 2 * sp_user_waited(link, user, link->heard_ms) >= sp_user_silent_ms(user) ||
	       2 * sp_user_waited(link, user, link->wired_ms) >= sp_user_link_ms(user);
}

/*
 * Take a link apart. It is down: nobody builds requests or begins to use it.
 * The protection domain outlives this: keys granted in it may still be there.
 */
static void sp_link_stop(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, stop);
	struct ib_device *ib = link->node->sdev->ib;
	struct sp_out *out, *next;

	cancel_delayed_work_sync(&link->beat);
	/* It may be about to set the id, or to see that we are down. */
	cancel_delayed_work_sync(&link->start);
	flush_work(&link->connect);
	flush_work(&link->reset);
	sp_conn_end(link, link->id);
	mutex_lock(&sp_ctl);
	sp_up->flushed(link);
	mutex_unlock(&sp_ctl);
	cancel_delayed_work_sync(&link->late);
	cancel_work_sync(&link->rx);
	if (link->cq)
		ib_cq_pool_put(link->cq, link->ncqe);
	if (link->rbuf_dma)
		ib_dma_unmap_single(ib, link->rbuf_dma,
				    SP_RQ_DEPTH * SP_MSG_MAX, DMA_FROM_DEVICE);
	if (link->snap_dma)
		ib_dma_unmap_single(ib, link->snap_dma,
				    SP_SQ_DEPTH * SP_SLOT_BYTES, DMA_TO_DEVICE);
	list_for_each_entry_safe(out, next, &link->outq, list)
		kfree(out);
	kfree(link->rbuf);
	kfree(link->snap);
	kvfree(link->recvs);
	kvfree(link->slots);
	sp_link_put(link);
}
