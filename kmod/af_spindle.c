// SPDX-License-Identifier: GPL-2.0
/*
 * Socket calls. A socket is a member of one group; programs send and receive
 * without any lock of the control plane or the engine: see group.h for who
 * writes what.
 */
#include <linux/memcontrol.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sockios.h>
#include <net/ipv6.h>
#include <asm/ioctls.h>

#include "af_spindle.h"
#include "limits.h"
#include "observe/observe.h"

/* Numbers that no code registers, most preferred first (field of AF_MAX). */
static const unsigned int sp_families[] = { AF_SPINDLE_DEFAULT, 13, 22 };

unsigned int sp_family;

/**
 * sp_sockaddr_take() - a node's address from user space
 * @sa: struct sockaddr_in, sockaddr_in6 or sockaddr_spindle; in kernel memory
 * @len: bytes of it
 * @addr: the address
 * @scope_id: interface of a link-local one, else 0
 *
 * Return: 0; -EINVAL when it is too short, or says more than an address;
 * -EAFNOSUPPORT; -EADDRNOTAVAIL when it cannot be that of one node.
 */
int sp_sockaddr_take(const struct sockaddr *sa, int len, struct sp_addr *addr,
		     u32 *scope_id)
{
	const struct sockaddr_spindle *ssp = (const void *)sa;
	const struct sockaddr_in6 *sin6 = (const void *)sa;
	const struct sockaddr_in *sin = (const void *)sa;
	struct in6_addr in6;
	u32 rank = 0;
	bool port;	/* not zero, in whatever byte order */

	BUILD_BUG_ON(sizeof(struct sockaddr_spindle) !=
		     sizeof(struct sockaddr_in6));
	if (len < (int)sizeof(sa->sa_family))
		return -EINVAL;
	*scope_id = 0;
	if (sa->sa_family == AF_INET) {
		if (len < (int)sizeof(*sin))
			return -EINVAL;
		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, &in6);
		port = sin->sin_port;
	} else if (sa->sa_family == AF_INET6) {
		if (len < (int)sizeof(*sin6))
			return -EINVAL;
		in6 = sin6->sin6_addr;
		*scope_id = sin6->sin6_scope_id;
		port = sin6->sin6_port;
	} else if (sa->sa_family == sp_family) {
		if (len < (int)sizeof(*ssp))
			return -EINVAL;
		in6 = ssp->ss_addr;
		*scope_id = ssp->ss_scope_id;
		port = ssp->ss_port;
		rank = ssp->ss_rank;
	} else {
		return -EAFNOSUPPORT;
	}
	if (port || rank)
		return -EINVAL;
	if (ipv6_addr_any(&in6) || ipv6_addr_is_multicast(&in6))
		return -EADDRNOTAVAIL;
	if (ipv6_addr_v4mapped(&in6) &&
	    (!in6.s6_addr32[3] || ipv4_is_multicast(in6.s6_addr32[3]) ||
	     ipv4_is_lbcast(in6.s6_addr32[3])))
		return -EADDRNOTAVAIL;
	if (!(ipv6_addr_type(&in6) & IPV6_ADDR_LINKLOCAL))
		*scope_id = 0;
	memcpy(addr->b, &in6, sizeof(addr->b));
	return 0;
}

/**
 * sp_sockaddr_give() - an address for user space
 * @addr: the node
 * @scope_id: interface of a link-local address
 * @rank: the member
 * @to: the result
 */
void sp_sockaddr_give(const struct sp_addr *addr, u32 scope_id, u32 rank,
		      struct sockaddr_spindle *to)
{
	memset(to, 0, sizeof(*to));
	to->ss_family = sp_family;
	to->ss_rank = rank;
	memcpy(&to->ss_addr, addr->b, sizeof(to->ss_addr));
	to->ss_scope_id = scope_id;
}

static int sp_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct sp_group *g;
	struct sp_sock *ss;

	if (!sk)
		return 0;
	ss = sp_sk(sk);
	mutex_lock(&sp_ctl);
	sp_member_join_cancel(&ss->local);
	/* Nothing is kept for it from here on: who fills its queue looks at that. */
	WRITE_ONCE(ss->local.deaf, true);
	g = ss->local.group;
	if (g) {
		kref_get(&g->ref);
		sp_group_detach(g, &ss->local);
	}
	if (ss->node)
		sp_node_unuse(ss->node);
	mutex_unlock(&sp_ctl);
	/* The engine, which queues it, has lost the member. */
	sp_detach_stop(&ss->local);
	if (g)
		sp_group_put(g);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

static int sp_bind(struct socket *sock, struct sockaddr *sa, int len)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_node *node;
	struct sp_addr addr;
	u32 scope_id;
	int ret;

	ret = sp_sockaddr_take(sa, len, &addr, &scope_id);
	if (ret)
		return ret;
	/* It opens the host to others' requests. */
	if (!sp_may_join(sock_net(sk)))
		return -EPERM;
	lock_sock(sk);
	if (ss->node) {
		ret = -EINVAL;
		goto out;
	}
	node = sp_node_get(sock_net(sk), &addr, scope_id);
	if (IS_ERR(node))
		ret = PTR_ERR(node);
	else
		/* Readers without lock_sock() find a whole node. */
		smp_store_release(&ss->node, node);
out:
	release_sock(sk);
	return ret;
}

static int sp_getname(struct socket *sock, struct sockaddr *sa, int peer)
{
	struct sp_sock *ss = sp_sk(sock->sk);
	static const struct sp_addr any;
	struct sp_node *node;

	if (peer)
		return -ENOTCONN;
	/* Pairs with sp_bind(): a node that is seen is whole. */
	node = smp_load_acquire(&ss->node);
	sp_sockaddr_give(node ? &node->addr : &any, node ? node->scope_id : 0,
			 sp_sock_group(ss) ? READ_ONCE(ss->local.rank) : 0,
			 (struct sockaddr_spindle *)sa);
	return sizeof(struct sockaddr_spindle);
}

/* The errno of a group that has failed for a member, or of who was evicted, else 0. */
static int sp_rx_error(const struct sp_sock *ss, const struct sp_group *g)
{
	if (sp_local_evicted(&ss->local))
		return -ENOBUFS;
	if (sp_local_out(&ss->local))
		return 0;
	return sp_group_state(g) == SP_VIEW_FAILED ? g->error : 0;
}

/* Has the group failed, or come to its end, or the member left it, or was evicted? */
static bool sp_rx_ended(const struct sp_sock *ss, const struct sp_group *g)
{
	enum sp_view_state state = sp_group_state(g);

	return state == SP_VIEW_FAILED || state == SP_VIEW_CLOSED ||
	       sp_local_out(&ss->local) || sp_local_evicted(&ss->local);
}

/* Why a member sends nothing more, be it that it was evicted since somebody looked. */
static int sp_tx_over(const struct sp_sock *ss)
{
	/* sp_evict() says so before it says that the member leaves. */
	smp_rmb();
	return sp_local_evicted(&ss->local) ? -ENOBUFS : -EPIPE;
}

/* May the member send now? 0, -EAGAIN before the view, or why it never may. */
static int sp_tx_open(const struct sp_sock *ss, struct sp_group *g)
{
	if (READ_ONCE(ss->sk.sk_shutdown) & SEND_SHUTDOWN)
		return -EPIPE;
	if (ss->local.flags & SP_MEMBER_RECEIVER)
		return -EACCES;
	if (sp_local_evicted(&ss->local) || READ_ONCE(ss->local.leaving) ||
	    sp_local_out(&ss->local))
		return sp_tx_over(ss);
	switch (sp_group_state(g)) {
	case SP_VIEW_FORMING:
		return -EAGAIN;
	case SP_VIEW_FAILED:
		return g->error;
	case SP_VIEW_CLOSED:
		return ss->local.lane ? -EPIPE : -EACCES;
	case SP_VIEW_ACTIVE:
		break;
	}
	if (!ss->local.lane)
		return -EACCES;
	return READ_ONCE(g->minority) ? -ENETDOWN : 0;
}

/* Is there room for @len bytes? 0 and where, -EAGAIN, or why there never is. */
static int sp_tx_ready(const struct sp_sock *ss, struct sp_group *g, u32 len,
		       u64 *off)
{
	struct sp_lane_tx *lane;
	int ret;

	ret = sp_tx_open(ss, g);
	if (ret)
		return ret;
	if (sp_rings_mapped(&ss->local, SPINDLE_MAP_TX))
		return -EBUSY;
	lane = ss->local.lane;
	spin_lock_bh(&lane->lock);
	ret = sp_tx_space(&lane->tx, len, off);
	spin_unlock_bh(&lane->lock);
	return ret == -EPIPE ? sp_tx_over(ss) : ret;
}

/* The same for poll(): what a program with a mapped ring waits for it says. */
static int sp_tx_poll(const struct sp_sock *ss, struct sp_group *g)
{
	u64 off;
	int ret;

	/* Before the view nobody's turn has come, nor a receiver's to be refused. */
	if (sp_group_state(g) == SP_VIEW_FORMING)
		return -EAGAIN;
	if (!sp_rings_mapped(&ss->local, SPINDLE_MAP_TX))
		return sp_tx_ready(ss, g, g->config.max_msg, &off);
	ret = sp_tx_open(ss, g);
	if (ret)
		return ret;
	return sp_rings_writable(&ss->local) ? 0 : -EAGAIN;
}

/*
 * SIGIO is to come when there is room: see sp_write_space(). The caller looks
 * once more, for room that became free before.
 */
static void sp_tx_wants_signal(struct sp_sock *ss)
{
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, &ss->sk);
	/* Pairs with skwq_has_sleeper() there. */
	smp_mb__after_atomic();
}

/* The member waits for room to write: whoever holds it up may be slow. */
static void sp_tx_starved(const struct sp_sock *ss, struct sp_group *g)
{
	if (sp_group_state(g) == SP_VIEW_ACTIVE && ss->local.lane)
		sp_slow_starved(g, ss->local.lane);
}

/**
 * sp_rx_wants() - does a member's program want events of a type
 * @local: the member
 * @type: enum spindle_event_type
 *
 * Return: true when it does.
 */
bool sp_rx_wants(const struct sp_local *local, u32 type)
{
	return type < 32 && (READ_ONCE(local->events) >> type & 1);
}

/**
 * sp_rx_gives() - is a member's program given an entry of the log
 * @local: the member
 * @log: the entry
 *
 * Return: false when it says that a sender has said its last, which is nobody's
 * message; when it is for another member alone, unless the program wants to be told
 * that this one is up to date: sp_rx_tells(); and when it is an event that the program
 * does not want.
 */
bool sp_rx_gives(const struct sp_local *local, const struct sp_log *log)
{
	u32 flags = READ_ONCE(log->flags);

	if (flags & SP_LOG_EVENT)
		return sp_rx_wants(local, READ_ONCE(log->lane));
	if (sp_log_message(local, flags))
		return true;
	return (flags & SP_DESC_STATE) && sp_rx_wants(local, SPINDLE_EVENT_STATE);
}

/**
 * sp_rx_tells() - is a program told of a message that is for another member alone
 * @local: the member
 * @log: the entry of the log, one that sp_rx_gives() is true for
 *
 * Return: true when it is given an event in place of it.
 */
bool sp_rx_tells(const struct sp_local *local, const struct sp_log *log)
{
	return sp_log_private(log) && !sp_log_message(local, log->flags);
}

/* How far a member may read: what is published, and for it. */
static u64 sp_rx_limit(const struct sp_group *g, const struct sp_local *local)
{
	/* F in group.h: whose end that shows is read after it. */
	u64 published = smp_load_acquire(&g->published);
	/* J in group.h. */
	u64 end = smp_load_acquire(&local->end);

	return min(published, end);
}

/* The entry of the log where a member reads, whose view is noted when it begins one. */
static const struct sp_log *sp_rx_look(const struct sp_group *g, struct sp_rx_at *at)
{
	const struct sp_order *o = &g->core.order;
	const struct sp_log *log = &o->log[at->cursor & (o->log_size - 1)];

	/* Its number is the low half of the view's. */
	if ((READ_ONCE(log->flags) & SP_LOG_EVENT) &&
	    READ_ONCE(log->lane) == SPINDLE_EVENT_VIEW)
		at->view += READ_ONCE(log->pos) - (u32)at->view;
	return log;
}

/**
 * sp_rx_log() - the first entry of the log that a member's program is given
 * @g: the group
 * @local: the member
 * @at: where to look; moves on over entries that sp_rx_gives() is false for
 *
 * Return: the entry, or NULL when there is none.
 */
const struct sp_log *sp_rx_log(const struct sp_group *g,
			       const struct sp_local *local,
			       struct sp_rx_at *at)
{
	u64 limit = sp_rx_limit(g, local);
	const struct sp_log *log;

	for (; at->cursor < limit; at->cursor++) {
		log = sp_rx_look(g, at);
		if (sp_rx_gives(local, log))
			return log;
	}
	return NULL;
}

/**
 * sp_rx_pass() - pass by what is for other members alone
 * @g: the group
 * @local: the member
 * @at: where it reads; moves on behind the last such entry before the first one that
 *	its program is given, and stays where it is without one
 *
 * Events that the program does not want are passed by on the way. Those behind stay:
 * it may still say that it wants them, unless the member's end is there.
 */
void sp_rx_pass(const struct sp_group *g, const struct sp_local *local,
		struct sp_rx_at *at)
{
	u64 limit = sp_rx_limit(g, local);
	struct sp_rx_at look = *at;
	const struct sp_log *log;

	while (look.cursor < limit) {
		log = sp_rx_look(g, &look);
		if (sp_rx_gives(local, log))
			return;
		look.cursor++;
		if ((READ_ONCE(log->flags) & SP_DESC_PRIVATE) ||
		    look.cursor == READ_ONCE(local->end))
			*at = look;
	}
}

/*
 * Is there anything to read that the program has not seen? 1, 0 at the end,
 * -EAGAIN, or the group's error, or that of who was evicted. Without @ss->rx_lock
 * another reader may be faster; then it is no longer so.
 *
 * The error of a failed group comes behind what was delivered. SO_ERROR has to
 * wait for that, too, because recvmmsg(2) looks at sk_err before it receives.
 */
static int sp_rx_poll(struct sp_sock *ss, struct sp_group *g)
{
	enum sp_view_state state = sp_group_state(g);
	bool shut = READ_ONCE(ss->sk.sk_shutdown) & RCV_SHUTDOWN;
	bool out = sp_local_out(&ss->local);
	/* Who has left may have lost what was left in the rings: sp_grow_make_room(). */
	bool deaf = READ_ONCE(ss->local.deaf);
	bool evicted;
	struct sp_rx_at at = {
		/* What the queue's filler has passed by is found in the queue. */
		.cursor = smp_load_acquire(&ss->local.cursor),
	};

	if (!shut && (sp_rings_mapped(&ss->local, SPINDLE_MAP_RX) ?
		      !sp_local_evicted(&ss->local) && sp_rings_readable(&ss->local) :
		      (!deaf && sp_rx_log(g, &ss->local, &at)) ||
		      !list_empty(&ss->local.queue.messages)))
		return 1;
	/* L in group.h: nothing was found, perhaps because nothing is kept. */
	smp_rmb();
	evicted = sp_local_evicted(&ss->local);
	if (evicted && !atomic_xchg(&ss->failed, 1))
		WRITE_ONCE(ss->sk.sk_err, ENOBUFS);
	else if (state == SP_VIEW_FAILED && !out && !atomic_xchg(&ss->failed, 1))
		WRITE_ONCE(ss->sk.sk_err, -g->error);
	if (evicted && !shut)
		return -ENOBUFS;
	if (shut || out || state == SP_VIEW_CLOSED)
		return 0;
	return state == SP_VIEW_FAILED ? g->error : -EAGAIN;
}

/* Is there an event that stands nowhere in the stream? SPINDLE_SYNC_*, or 0. */
static u32 sp_rx_stable(const struct sp_sock *ss)
{
	if ((READ_ONCE(ss->sk.sk_shutdown) & RCV_SHUTDOWN) ||
	    sp_rings_mapped(&ss->local, SPINDLE_MAP_RX))
		return 0;
	return sp_stable_due(&ss->local);
}

/* As sp_rx_poll(), and of that, too. */
static int sp_rx_poll_any(struct sp_sock *ss, struct sp_group *g)
{
	int ret = sp_rx_poll(ss, g);

	return sp_rx_stable(ss) ? 1 : ret;
}

/* The same for who wants to copy it: -EBUSY when deliveries are mapped. */
static int sp_rx_ready(struct sp_sock *ss, struct sp_group *g)
{
	if (sp_rings_mapped(&ss->local, SPINDLE_MAP_RX))
		return -EBUSY;
	return sp_rx_poll_any(ss, g);
}

/* For whom a message is, as *@flags. False: no correct program says that, or it did before. */
static bool sp_tx_private_ok(const struct cmsghdr *cmsg, u32 *flags)
{
	struct spindle_to to;

	if (*flags || cmsg->cmsg_len != CMSG_LEN(sizeof(to)))
		return false;
	memcpy(&to, CMSG_DATA(cmsg), sizeof(to));
	if (to.flags & ~SPINDLE_UP_TO_DATE || to.uid >= SP_UID_NOBODY ||
	    memchr_inv(to.__resv, 0, sizeof(to.__resv)))
		return false;
	*flags = SP_DESC_PRIVATE | to.flags | to.uid << SP_DESC_UID_SHIFT;
	return true;
}

/*
 * Nothing but bytes reaches the others: no descriptors, no credentials. A message may
 * be for one member alone, which *@flags say: SP_DESC_*. What sp_recvmsg() gives may be
 * there, for who sends on what it has received.
 */
static bool sp_tx_flags(struct msghdr *msg, u32 *flags)
{
	struct cmsghdr *cmsg;

	*flags = 0;
	for_each_cmsghdr(cmsg, msg) {
		if (!CMSG_OK(msg, cmsg) || cmsg->cmsg_level != SOL_SPINDLE)
			return false;
		if (cmsg->cmsg_type != SPINDLE_CMSG_INFO &&
		    (cmsg->cmsg_type != SPINDLE_CMSG_TO ||
		     !sp_tx_private_ok(cmsg, flags)))
			return false;
	}
	return true;
}

/* Give a message that is in the ring its turn. The lane's lock is held. */
static int sp_tx_turn(const struct sp_sock *ss, struct sp_lane_tx *lane, size_t len,
		      u32 flags)
{
	int ret = 0;

	lockdep_assert_held(&lane->lock);
	/* shutdown() may have come first, or the member was evicted. */
	if (lane->tx.fin)
		return sp_tx_over(ss);
	if (flags & SP_DESC_PRIVATE)
		ret = sp_tx_private(&lane->tx, sp_desc_uid(flags));
	if (!ret)
		sp_tx_commit(&lane->tx, len, flags);
	return ret;
}

static int sp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g = sp_sock_group(ss);
	struct sp_lane_tx *lane;
	long timeo;
	u32 flags;
	u64 off;
	int ret;

	/* sendmmsg() adds MSG_BATCH; batches form by themselves here. */
	if (msg->msg_flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR |
			       MSG_BATCH | MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (!sp_tx_flags(msg, &flags))
		return -EINVAL;
	if (!g)
		return -ENOTCONN;
	if (msg->msg_namelen)
		return -EISCONN;
	if (len > g->config.max_msg)
		return -EMSGSIZE;

	timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	for (;;) {
		mutex_lock(&ss->tx_lock);
		ret = sp_tx_ready(ss, g, len, &off);
		if (ret != -EAGAIN)
			break;
		sp_tx_starved(ss, g);
		mutex_unlock(&ss->tx_lock);
		sp_tx_wants_signal(ss);
		ret = sp_wait(sk, timeo, sp_tx_ready(ss, g, len, &off));
		if (ret)
			goto out;
	}
	if (ret)
		goto unlock;

	lane = ss->local.lane;
	if (!copy_from_iter_full(lane->slab->ring + off, len, &msg->msg_iter)) {
		ret = -EFAULT;
		goto unlock;
	}
	spin_lock_bh(&lane->lock);
	sp_lane_tx_pad(lane, off, len);
	ret = sp_tx_turn(ss, lane, len, flags);
	WRITE_ONCE(lane->starved, 0);
	spin_unlock_bh(&lane->lock);
	if (ret) {
		/* What is not sent to the one that it was for is not left to go to others. */
		if (flags)
			memset(lane->slab->ring + off, 0, len);
		goto unlock;
	}
	WRITE_ONCE(ss->sent, ss->sent + 1);
	atomic64_add(len, &g->counters.copied_bytes);
	sp_group_sent(g, &ss->local);
unlock:
	mutex_unlock(&ss->tx_lock);
out:
	if (ret == -EPIPE && !(msg->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return ret ?: (int)len;
}

/**
 * sp_rx_hold() - have a message stay where it is while it is copied
 * @g: the group
 * @local: the member
 * @log: the entry of the log, which the member has not consumed
 * @held: what it says; sp_slab_put() of @held->slab when it is done
 *
 * Nothing is kept for a member that is deaf: its entry may become another one's, the
 * slot another lane's, at any moment. The bytes then may be another message's, too,
 * but the memory that they are in stays.
 *
 * Return: true, or false when the member has nothing to read any more.
 */
bool sp_rx_hold(struct sp_group *g, const struct sp_local *local,
		const struct sp_log *log, struct sp_held *held)
{
	const struct sp_lane_slot *slot;

	held->log.seq = READ_ONCE(log->seq);
	held->log.lane = READ_ONCE(log->lane);
	held->log.pos = READ_ONCE(log->pos);
	held->log.len = READ_ONCE(log->len);
	held->log.flags = READ_ONCE(log->flags);
	held->slab = NULL;
	if (sp_log_message(local, held->log.flags)) {
		slot = sp_group_slot(g, &held->log);
		spin_lock_bh(&g->slots_lock);
		held->addr = slot->addr;
		held->slab = slot->slab;
		if (held->slab)
			kref_get(&held->slab->ref);
		spin_unlock_bh(&g->slots_lock);
		if (!held->slab)
			return false;
	} else {
		/* An event; or it is told of, and not read: sp_rx_tells(). */
		held->log.len = 0;
	}
	/* The entry and the slot before the look, as in sp_rx_copy(): are they its own? */
	smp_rmb();
	if (!READ_ONCE(local->deaf))
		return true;
	sp_slab_put(held->slab);
	held->slab = NULL;
	return false;
}

/* What a reader is told for whom nothing is kept any more, as it has just found. */
static int sp_rx_dropped(const struct sp_sock *ss)
{
	/* L in group.h. */
	return smp_load_acquire(&ss->local.deaf) && sp_local_evicted(&ss->local) ?
	       -ENOBUFS : 0;
}

/**
 * sp_rx_bytes() - a message's bytes, in the replica of the sender's ring
 * @held: the message
 *
 * Return: the bytes, in one piece.
 */
const u8 *sp_rx_bytes(const struct sp_held *held)
{
	return held->slab->ring + ((u64)held->log.pos << SP_UNIT_SHIFT);
}

/* What a reader has before it: an entry of the log or of its queue, or an event. */
struct sp_rx {
	u32 stable;		/* SPINDLE_SYNC_* to tell of; 0: it is not that */
	bool state;		/* it is told that another member is up to date */
	struct sp_held held;
	const u8 *bytes;
	struct sp_event *event;	/* in place of @bytes; held */
	struct sp_rx_at at;
	bool queued;
};

/* 1 and the next message; or as sp_rx_ready(); or -ENOMEM. Under rx_lock. */
static int sp_rx_begin(struct sp_sock *ss, struct sp_group *g, struct sp_rx *rx)
{
	const struct sp_log *log;
	struct sp_detached *m;
	int ret;

	if (sp_rings_mapped(&ss->local, SPINDLE_MAP_RX))
		return -EBUSY;
	/* Once: without a lock another thread may ask for more, and it is not so any more. */
	rx->stable = sp_rx_stable(ss);
	if (rx->stable)
		return 1;
	ret = sp_rx_poll(ss, g);
	if (ret <= 0)
		return ret;
	rx->queued = ss->local.queue.on;
	rx->event = NULL;
	rx->state = false;
	if (rx->queued) {
		m = sp_detach_first(g, &ss->local);
		if (IS_ERR(m))
			return PTR_ERR(m);
		rx->held.log = m->log;
		rx->held.addr = m->addr;
		rx->held.slab = NULL;
		rx->at.view = m->view;
		rx->bytes = m->data;
		rx->event = m->event;
		if (rx->event)
			kref_get(&rx->event->ref);
		rx->state = sp_rx_tells(&ss->local, &m->log);
		return 1;
	}
	rx->at.cursor = ss->local.cursor;
	rx->at.view = ss->local.view;
	log = sp_rx_log(g, &ss->local, &rx->at);
	/*
	 * What was there is behind the member's end now, and was not wanted then; or
	 * shutdown() came meanwhile.
	 */
	if (!log || !sp_rx_hold(g, &ss->local, log, &rx->held))
		return sp_rx_dropped(ss);
	rx->state = sp_rx_tells(&ss->local, &rx->held.log);
	if (rx->held.slab) {
		rx->bytes = sp_rx_bytes(&rx->held);
		return 1;
	}
	if (rx->state)
		return 1;
	rx->event = sp_event_find(g, rx->held.log.lane, rx->held.log.pos);
	/* Nothing is kept for who reads no more: shutdown() came meanwhile. */
	return rx->event ? 1 : sp_rx_dropped(ss);
}

/* What was before a reader is not needed any more, or it has not taken it. */
static void sp_rx_put(struct sp_sock *ss, struct sp_group *g,
		      const struct sp_rx *rx, bool taken)
{
	if (rx->stable) {
		if (taken)
			sp_stable_told(&ss->local, rx->stable);
		return;
	}
	if (taken && !rx->event && !rx->state)
		WRITE_ONCE(ss->received, ss->received + 1);
	sp_event_put(rx->event);
	sp_slab_put(rx->held.slab);
	if (rx->queued) {
		sp_detach_done(g, &ss->local, taken);
	} else if (taken) {
		struct sp_rx_at at = { rx->at.cursor + 1, rx->at.view };

		/* Nobody comes back to that before there is more for this member. */
		sp_rx_pass(g, &ss->local, &at);
		ss->local.view = at.view;
		/* G in group.h: the copy is done, the space may be reused. */
		smp_store_release(&ss->local.cursor, at.cursor);
		sp_group_consumed(g);
	}
}

static void sp_rx_end(struct sp_sock *ss, struct sp_group *g,
		      const struct sp_rx *rx, bool taken)
{
	sp_rx_put(ss, g, rx, taken);
	if (!taken)
		return;
	/* Pairs with sp_state_change(): one of the two sees that nothing is left. */
	smp_mb();
	if (sp_rx_ended(ss, g) && sp_rx_poll(ss, g) <= 0)
		/* Others wait for that. */
		ss->sk.sk_state_change(&ss->sk);
}

/* Bytes of what a reader has before it. */
static size_t sp_rx_len(const struct sp_rx *rx)
{
	if (rx->stable)
		return sizeof(struct spindle_event) + sizeof(struct spindle_stable);
	if (rx->state)
		return sizeof(struct spindle_event);
	return rx->event ? sp_event_size(rx->event) : rx->held.log.len;
}

/* An event in place of a message. */
static int sp_rx_copy_event(struct sp_sock *ss, struct sp_group *g,
			    const struct sp_rx *rx, struct msghdr *msg,
			    size_t size, int flags)
{
	size_t len = sp_rx_len(rx);
	size_t n = min(len, size);
	struct spindle_event *e;
	int ret = 0;

	e = kvmalloc(len, GFP_KERNEL_ACCOUNT);
	if (!e)
		return -ENOMEM;
	if (rx->stable)
		sp_stable_event(ss, rx->stable, e);
	else if (rx->state)
		sp_event_state(&rx->held.log, rx->at.view, e);
	else
		sp_event_give(rx->event, g, &ss->local, e);
	if (copy_to_iter(e, n, &msg->msg_iter) != n)
		ret = -EFAULT;
	kvfree(e);
	if (ret)
		return ret;
	if (n < len)
		msg->msg_flags |= MSG_TRUNC;
	msg->msg_flags |= MSG_EOR | MSG_SPINDLE_EVENT;
	return flags & MSG_TRUNC ? len : n;
}

static int sp_rx_copy(struct sp_sock *ss, struct sp_group *g,
		      const struct sp_rx *rx, struct msghdr *msg, size_t size,
		      int flags)
{
	const struct sp_log *log = &rx->held.log;
	u32 rank = log->lane >> SP_LOG_RANK_SHIFT;
	size_t n = min_t(size_t, log->len, size);

	if (copy_to_iter((void *)rx->bytes, n, &msg->msg_iter) != n)
		return -EFAULT;
	/* The copy before the look: who gives room back says so before. */
	smp_rmb();
	/* Since then nothing is kept for us: it may be another message's. */
	if ((READ_ONCE(ss->sk.sk_shutdown) & RCV_SHUTDOWN) ||
	    (!rx->queued && READ_ONCE(ss->local.deaf)))
		return sp_rx_dropped(ss);
	atomic64_add(n, &g->counters.copied_bytes);
	if (n < log->len)
		msg->msg_flags |= MSG_TRUNC;
	msg->msg_flags |= MSG_EOR;
	if (msg->msg_name) {
		sp_sockaddr_give(&rx->held.addr, g->node->scope_id, rank,
				 msg->msg_name);
		msg->msg_namelen = sizeof(struct sockaddr_spindle);
	}
	if (ss->recvinfo) {
		struct spindle_msg_info info = {
			.view = rx->at.view,
			.seq = log->seq,
			.rank = rank,
			.flags = log->flags & (SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE),
		};

		put_cmsg(msg, SOL_SPINDLE, SPINDLE_CMSG_INFO, sizeof(info),
			 &info);
	}
	return flags & MSG_TRUNC ? log->len : n;
}

static int sp_recvmsg(struct socket *sock, struct msghdr *msg, size_t size,
		      int flags)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g = sp_sock_group(ss);
	struct sp_rx rx;
	long timeo;
	int ret;

	if (flags & ~(MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_WAITALL |
		      MSG_NOSIGNAL | MSG_CMSG_CLOEXEC | MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (!g)
		return -ENOTCONN;

	timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	for (;;) {
		mutex_lock(&ss->rx_lock);
		ret = sp_rx_begin(ss, g, &rx);
		if (ret > 0)
			break;
		sp_rx_unlock(ss);
		if (ret == -EAGAIN)
			ret = sp_wait(sk, timeo, sp_rx_ready(ss, g));
		if (ret <= 0)
			return ret;
	}

	if (rx.stable || rx.state || rx.event)
		ret = sp_rx_copy_event(ss, g, &rx, msg, size, flags);
	else
		ret = sp_rx_copy(ss, g, &rx, msg, size, flags);
	sp_rx_end(ss, g, &rx, ret >= 0 && !(flags & MSG_PEEK));
	sp_rx_unlock(ss);
	return ret;
}

static __poll_t sp_poll(struct file *file, struct socket *sock,
			poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g;
	__poll_t mask = 0;
	int rx, tx;

	sock_poll_wait(file, sock, wait);
	/* Pairs with sp_sock_joined(): who joins no more has its group, if any. */
	if (smp_load_acquire(&ss->joining))
		return 0;
	g = sp_sock_group(ss);
	if (!g) {
		/* As any socket that was to be connected, and is not. */
		mask = EPOLLOUT | EPOLLWRNORM | EPOLLHUP;
		goto out;
	}

	rx = sp_rx_poll_any(ss, g);
	tx = sp_tx_poll(ss, g);
	if (tx == -EAGAIN &&
	    poll_requested_events(wait) & (EPOLLOUT | EPOLLWRNORM)) {
		sp_tx_wants_signal(ss);
		tx = sp_tx_poll(ss, g);
		if (tx == -EAGAIN)
			sp_tx_starved(ss, g);
	}
	if (rx != -EAGAIN)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!rx)
		mask |= EPOLLRDHUP;
	/* A call that fails at once does not block either. */
	if (tx != -EAGAIN)
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (!rx && (tx == -EPIPE || tx == -EACCES))
		mask |= EPOLLHUP;
	if (sp_local_uapi_state(g, &ss->local) == SPINDLE_STATE_MINORITY)
		mask |= EPOLLPRI;
	/* Not if the last message came, and then the failure, since we looked. */
	if (rx != 1 && rx != -EAGAIN && sp_rx_error(ss, g))
		mask |= EPOLLERR | EPOLLHUP;
out:
	if (READ_ONCE(sk->sk_err))
		mask |= EPOLLERR;
	return mask;
}

/* This member sends nothing more: say so behind its last message. */
static void sp_shutdown_send(struct sp_sock *ss, struct sp_group *g)
{
	struct sp_lane_tx *lane;

	mutex_lock(&sp_ctl);
	/* Until the group is active nobody else touches the lane. */
	ss->local.fin = true;
	lane = ss->local.lane;
	if (lane && g->view.state == SP_VIEW_ACTIVE) {
		spin_lock_bh(&lane->lock);
		sp_rings_collect(g, lane);
		if (!lane->tx.fin)
			sp_tx_commit(&lane->tx, 0, SP_DESC_FIN);
		spin_unlock_bh(&lane->lock);
		sp_group_moved(g);
	}
	mutex_unlock(&sp_ctl);
}

static int sp_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g = sp_sock_group(ss);
	int mask = how + 1;	/* SHUT_RD, _WR, _RDWR to RCV_, SEND_SHUTDOWN */

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (!g)
		return -ENOTCONN;
	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | mask);
	release_sock(sk);
	if (mask & SEND_SHUTDOWN)
		sp_shutdown_send(ss, g);
	if (mask & RCV_SHUTDOWN) {
		WRITE_ONCE(ss->local.deaf, true);
		sp_detach_purge(&ss->local);
		sp_group_moved(g);
	}
	sk->sk_state_change(sk);
	return 0;
}

static int sp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sp_sock *ss = sp_sk(sock->sk);
	struct sp_group *g = sp_sock_group(ss);
	struct sp_lane_tx *lane;
	struct sp_rx rx;
	u64 bytes = 0;

	switch (cmd) {
	case SIOCINQ:
		if (!g)
			return -ENOTCONN;
		if (sp_rings_mapped(&ss->local, SPINDLE_MAP_RX))
			return -EBUSY;
		mutex_lock(&ss->rx_lock);
		if (sp_rx_begin(ss, g, &rx) > 0) {
			bytes = sp_rx_len(&rx);
			sp_rx_end(ss, g, &rx, false);
		}
		sp_rx_unlock(ss);
		break;
	case SIOCOUTQ:
		if (!g)
			return -ENOTCONN;
		lane = sp_group_state(g) == SP_VIEW_FORMING ? NULL :
			ss->local.lane;
		if (lane) {
			spin_lock_bh(&lane->lock);
			bytes = sp_tx_unfreed(&lane->tx);
			spin_unlock_bh(&lane->lock);
		}
		break;
	case SIOCSPINDLEKICK:
		if (!g)
			return -ENOTCONN;
		if (sp_group_state(g) != SP_VIEW_FORMING)
			sp_rings_kick(g, &ss->local);
		return 0;
	default:
		return -ENOIOCTLCMD;
	}
	return put_user((int)bytes, (int __user *)arg);
}

#ifdef CONFIG_COMPAT
static int sp_compat_ioctl(struct socket *sock, unsigned int cmd,
			   unsigned long arg)
{
	/* The others are translated before they come here. */
	return cmd == SIOCSPINDLEKICK ? sp_ioctl(sock, cmd, 0) : -ENOIOCTLCMD;
}
#endif

#ifdef HAVE_SENDPAGE
/*
 * As sp_sendmsg() answers newer kernels: what splice(2) makes of a stream of
 * bytes are not messages.
 */
static ssize_t sp_sendpage(struct socket *sock, struct page *page, int offset,
			   size_t size, int flags)
{
	return -EOPNOTSUPP;
}
#endif

static const struct proto_ops sp_proto_ops = {
	.owner = THIS_MODULE,
	.release = sp_release,
	.bind = sp_bind,
	.connect = sock_no_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = sp_getname,
	.poll = sp_poll,
	.ioctl = sp_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = sp_compat_ioctl,
#endif
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = sp_shutdown,
	.setsockopt = sp_setsockopt,
	.getsockopt = sp_getsockopt,
	.sendmsg = sp_sendmsg,
	.recvmsg = sp_recvmsg,
#ifdef HAVE_SENDPAGE
	.sendpage = sp_sendpage,
#endif
	.mmap = sp_mmap,
};

static struct proto sp_proto = {
	.name = "SPINDLE",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct sp_sock),
};

/* Writers wait for room in the ring, which sk_wmem_alloc says nothing of. */
static void sp_write_space(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	rcu_read_unlock();
	/* SIGIO. The barrier that sp_tx_wants_signal() needs is skwq_has_sleeper()'s. */
	sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
}

/* The group's state, or the way to a group, has changed. */
static void sp_state_change(struct sock *sk)
{
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g = READ_ONCE(ss->local.group);
	struct socket_wq *wq;
	int band = POLL_OUT;
	int rx = -EAGAIN;

	/* Pairs with sp_rx_end(): one of the two sees that nothing is left. */
	smp_mb();
	if (g)
		rx = sp_rx_poll_any(ss, g);
	if (rx == 1)
		band = POLL_IN;
	else if (!rx)
		band = POLL_HUP;
	else if (rx != -EAGAIN || READ_ONCE(sk->sk_err))
		band = POLL_ERR;
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_all(&wq->wait);
	rcu_read_unlock();
	sk_wake_async(sk, SOCK_WAKE_IO, band);
}

static void sp_destruct(struct sock *sk)
{
	struct sp_sock *ss = sp_sk(sk);

	sp_detach_exit(&ss->local);
	mutex_destroy(&ss->tx_lock);
	mutex_destroy(&ss->rx_lock);
	sp_rings_free(ss->local.rings);
	mem_cgroup_put(ss->local.memcg);
}

static int sp_create(struct net *net, struct socket *sock, int protocol,
		     int kern)
{
	struct sp_sock *ss;
	struct sock *sk;

	if (sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	if (protocol)
		return -EPROTONOSUPPORT;
	sk = sk_alloc(net, sp_family, GFP_KERNEL, &sp_proto, kern);
	if (!sk)
		return -ENOMEM;
	sock->ops = &sp_proto_ops;
	sock_init_data(sock, sk);
	sk->sk_write_space = sp_write_space;
	sk->sk_state_change = sp_state_change;
	sk->sk_destruct = sp_destruct;
	ss = sp_sk(sk);
	memset(&ss->local, 0, sizeof(ss->local));
	INIT_LIST_HEAD(&ss->local.on_group);
	sp_detach_init(&ss->local);
	ss->local.sk = sk;
	ss->local.rank = ~0U;
	ss->node = NULL;
	ss->group = NULL;
	mutex_init(&ss->tx_lock);
	mutex_init(&ss->rx_lock);
	ss->recvinfo = false;
	ss->joining = false;
	atomic_set(&ss->failed, 0);
	ss->sent = 0;
	ss->received = 0;
	return 0;
}

static struct net_proto_family sp_family_ops = {
	.create = sp_create,
	.owner = THIS_MODULE,
};

/**
 * sp_family_register() - register the socket family
 * @wanted: number to register; 0: the first that is free of those that no
 *	other code uses
 *
 * A number that somebody holds is never taken away.
 *
 * Return: 0; -EINVAL for a number that is not one of ours to borrow; -EEXIST
 * when it, or every one of them, is taken.
 */
int sp_family_register(unsigned int wanted)
{
	int ret;
	int i;

	ret = proto_register(&sp_proto, 1);
	if (ret)
		return ret;
	ret = wanted ? -EINVAL : -EEXIST;
	for (i = 0; i < ARRAY_SIZE(sp_families); i++) {
		if (wanted && wanted != sp_families[i])
			continue;
		sp_family_ops.family = sp_families[i];
		sp_family = sp_families[i];
		ret = sock_register(&sp_family_ops);
		if (!ret)
			return 0;
		sp_family = 0;
	}
	if (ret == -EINVAL)
		pr_err("spindle: family=%u is not one to borrow: use 18, 13, 22, or 0 for any of them\n",
		       wanted);
	else if (wanted)
		pr_err("spindle: socket family %u is taken; load with family=0 for another\n",
		       wanted);
	else
		pr_err("spindle: every socket family to borrow is taken: 18, 13, 22\n");
	proto_unregister(&sp_proto);
	return ret;
}

/**
 * sp_family_unregister() - undo sp_family_register()
 */
void sp_family_unregister(void)
{
	sock_unregister(sp_family);
	proto_unregister(&sp_proto);
}
