// SPDX-License-Identifier: GPL-2.0
/*
 * Socket calls. A socket is a member of one group; programs send and receive
 * without any lock of the control plane or the engine: see group.h for who
 * writes what.
 */
#include <linux/memcontrol.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sockios.h>
#include <net/ipv6.h>
#include <asm/ioctls.h>

#include "af_spindle.h"
#include "key.h"
#include "observe/observe.h"
#include "rdmc.h"

/* Numbers that no code registers, most preferred first (field of AF_MAX). */
static const unsigned int sp_families[] = { AF_SPINDLE_DEFAULT, 13, 22 };

unsigned int sp_family;

/*
 * What nodes call their members. A host that has crashed and is back must not
 * give a new member the name of one that others still have in their view.
 */
static atomic64_t sp_cookies;

/* 0 is none: see struct sp_lane_key. */
static u64 sp_cookie(void)
{
	return atomic64_inc_return(&sp_cookies) ?:
	       atomic64_inc_return(&sp_cookies);
}

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
	/*
	 * No call is left that reads. Nor may the queue be filled from memory
	 * that goes when the group has lost the member.
	 */
	WRITE_ONCE(ss->local.deaf, true);
	sp_detach_stop(&ss->local);
	mutex_lock(&sp_ctl);
	g = ss->local.group;
	if (g) {
		kref_get(&g->ref);
		sp_group_detach(g, &ss->local);
	}
	if (ss->node)
		sp_node_unuse(ss->node);
	mutex_unlock(&sp_ctl);
	/* The engine may have queued it once more: it did nothing, being deaf. */
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

/* The errno of a group that has failed, else 0. */
static int sp_group_error(const struct sp_group *g)
{
	return sp_group_state(g) == SP_VIEW_FAILED ? g->error : 0;
}

/* May the member send now? 0, -EAGAIN before its view, or why it never may. */
static int sp_tx_open(const struct sp_sock *ss, struct sp_group *g)
{
	const struct sp_local *local = &ss->local;
	bool lane = sp_local_lane(local);
	int error = READ_ONCE(local->error);

	if (READ_ONCE(ss->sk.sk_shutdown) & SEND_SHUTDOWN)
		return -EPIPE;
	if (local->flags & SP_MEMBER_RECEIVER)
		return -EACCES;
	if (error)
		return error;
	if (READ_ONCE(local->leaving) || sp_local_out(local))
		return lane ? -EPIPE : -EACCES;
	switch (sp_group_state(g)) {
	case SP_VIEW_FORMING:
		return -EAGAIN;
	case SP_VIEW_FAILED:
		return g->error;
	case SP_VIEW_CLOSED:
		return lane ? -EPIPE : -EACCES;
	case SP_VIEW_ACTIVE:
		break;
	}
	/* It comes before the state, or before the rank. */
	if (sp_local_lane(local))
		return 0;
	return READ_ONCE(local->rank) == ~0U ? -EAGAIN : -EACCES;
}

/*
 * Is there room for a message of @len bytes and with these @flags? 0 and where,
 * -EAGAIN, or why there never is.
 */
static int sp_tx_ready(const struct sp_sock *ss, struct sp_group *g, u32 len,
		       u32 flags, u64 *off)
{
	struct sp_lane_tx *lane;
	int ret;

	ret = sp_tx_open(ss, g);
	if (ret)
		return ret;
	/* Of a ring that a program fills objects need nothing but a turn. */
	if (!(flags & SP_DESC_OBJECT) &&
	    sp_rings_mapped(&ss->local, SPINDLE_MAP_TX))
		return -EBUSY;
	lane = sp_local_lane(&ss->local);
	spin_lock(&lane->lock);
	ret = sp_rings_error(&ss->local);
	if (!ret)
		ret = flags & SP_DESC_OBJECT ?
		      sp_tx_space_object(&lane->tx, len) :
		      sp_tx_space(&lane->tx, len, off);
	spin_unlock(&lane->lock);
	if (!ret && (flags & SP_DESC_OBJECT) &&
	    !sp_lane_object_room(sp_lane_slot(lane)))
		ret = -EAGAIN;
	return ret;
}

/* The same for poll(): what a program with a mapped ring waits for it says. */
static int sp_tx_poll(const struct sp_sock *ss, struct sp_group *g)
{
	u32 want = READ_ONCE(ss->want);
	u64 off;
	int ret;

	if (!sp_rings_mapped(&ss->local, SPINDLE_MAP_TX))
		/* What was refused last is to be tried again. */
		return want ? sp_tx_ready(ss, g, want, SP_DESC_OBJECT, &off) :
			sp_tx_ready(ss, g, g->config.max_msg, 0, &off);
	ret = sp_tx_open(ss, g);
	if (ret)
		return ret;
	/* Any answer but this one there is nothing to wait for. */
	if (want && sp_rings_want_object(&ss->local))
		return sp_tx_ready(ss, g, want, SP_DESC_OBJECT, &off) == -EAGAIN ?
			-EAGAIN : 0;
	return sp_rings_writable(&ss->local) ? 0 : -EAGAIN;
}

/* The member waits for room to write: whoever holds it up may be slow. */
static void sp_tx_starved(const struct sp_sock *ss, struct sp_group *g)
{
	struct sp_lane_tx *lane = sp_local_lane(&ss->local);

	if (sp_group_state(g) == SP_VIEW_ACTIVE && lane)
		sp_slow_starved(g, lane);
}

/**
 * sp_rx_limit() - how far a member may read
 * @g: the group
 * @local: the member
 *
 * Return: entries of the log that are there for it, counted from the first.
 */
u64 sp_rx_limit(const struct sp_group *g, const struct sp_local *local)
{
	/* What comes before the end was published before it was set. */
	u64 end = smp_load_acquire(&local->end);
	/* F in group.h. */
	u64 published = smp_load_acquire(&g->published);

	return min(end, published);
}

/**
 * sp_rx_wants() - is a member's program given an entry of the log
 * @local: the member
 * @log: the entry
 *
 * Return: true when it is: not the ends of senders, events that it does not
 * want, and state that is for others.
 */
bool sp_rx_wants(const struct sp_local *local, const struct sp_log *log)
{
	u32 events = READ_ONCE(local->events);

	if (log->flags & SP_LOG_EVENT)
		return log->lane < BITS_PER_TYPE(events) &&
		       (events >> log->lane & 1);
	if (log->flags & SP_DESC_FIN)
		return false;
	if (!(log->flags & SP_DESC_STATE) ||
	    log->flags >> SP_DESC_UID_SHIFT == local->uid)
		return true;
	/* In its place comes the news that it was the last. */
	return (log->flags & SP_DESC_LAST) && (events & SPINDLE_WANT_CURRENT);
}

/**
 * sp_rx_look() - the first entry of the log that a member's program is given
 * @g: the group
 * @local: the member
 * @cursor: where to look; moves on to it, or to the end of what is there
 * @log: the entry, copied
 *
 * Who does not own the cursor may be overtaken: then it is no longer so.
 *
 * Return: true when there is one.
 */
bool sp_rx_look(const struct sp_group *g, const struct sp_local *local,
		u64 *cursor, struct sp_log *log)
{
	const struct sp_order *o = &g->core.order;
	u64 limit = sp_rx_limit(g, local);

	for (; *cursor < limit; ++*cursor) {
		*log = o->log[*cursor & (o->log_size - 1)];
		if (sp_rx_wants(local, log))
			break;
	}
	if (*cursor >= limit)
		return false;
	/*
	 * The engine fills again what nobody keeps: who sees that sees that the
	 * member is deaf, too.
	 */
	smp_rmb();
	return !READ_ONCE(local->deaf);
}

/**
 * sp_rx_past() - a member's cursor is about to move past an entry
 * @g: the group
 * @local: the member; the caller owns its cursor
 * @log: the entry
 */
void sp_rx_past(struct sp_group *g, struct sp_local *local,
		const struct sp_log *log)
{
	struct sp_record *r;

	if (!(log->flags & SP_LOG_EVENT) || log->lane != SPINDLE_EVENT_VIEW)
		return;
	r = sp_record_find(g, log->pos);
	/* Only who has become deaf meanwhile finds none, and reads no more. */
	if (!r || !r->view) {
		sp_record_put(r);
		return;
	}
	sp_record_put(local->record);
	local->record = r;
}

/**
 * sp_rx_skip() - move a member's cursor past what its program is not given
 * @g: the group
 * @local: the member; the caller owns its cursor
 *
 * Return: true when it moved: the engine may release something.
 */
bool sp_rx_skip(struct sp_group *g, struct sp_local *local)
{
	const struct sp_order *o = &g->core.order;
	u64 limit = sp_rx_limit(g, local);
	u64 was = local->cursor;
	u64 cursor;

	for (cursor = was; cursor < limit; cursor++) {
		struct sp_log log = o->log[cursor & (o->log_size - 1)];

		if (sp_rx_wants(local, &log))
			break;
		sp_rx_past(g, local, &log);
	}
	if (cursor == was)
		return false;
	/* G in group.h. */
	smp_store_release(&local->cursor, cursor);
	return true;
}

/**
 * sp_rx_pass() - see to it that what a member is not given is not kept for it
 * @g: the group
 * @local: the member
 *
 * Its program may not be told to read, as there is nothing for it, and does
 * not. While another owns the cursor it does nothing: who lets go of that calls
 * it again. Of a detached member, who fills its queue does this.
 *
 * Context: process; without the member's locks.
 */
void sp_rx_pass(struct sp_group *g, struct sp_local *local)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);
	const struct sp_order *o = &g->core.order;
	struct sp_log log;
	bool moved = false;
	u64 cursor;

	/*
	 * What was published comes before the try to lock here, and what was
	 * unlocked before the look at what is published there: one of two sees
	 * the other. See sp_rx_unlock().
	 */
	smp_mb();
	if (READ_ONCE(local->deaf) || READ_ONCE(local->queue.on) ||
	    sp_rings_mapped(local, SPINDLE_MAP_RX))
		return;
	cursor = READ_ONCE(local->cursor);
	if (cursor >= sp_rx_limit(g, local))
		return;
	log = o->log[cursor & (o->log_size - 1)];
	if (sp_rx_wants(local, &log) || !mutex_trylock(&ss->rx_lock))
		return;
	if (!local->queue.on && !sp_rings_mapped(local, SPINDLE_MAP_RX))
		moved = sp_rx_skip(g, local);
	mutex_unlock(&ss->rx_lock);
	if (moved)
		sp_group_moved(g);
}

/* The other half of sp_rx_pass(). */
static void sp_rx_unlock(struct sp_sock *ss, struct sp_group *g)
{
	mutex_unlock(&ss->rx_lock);
	sp_rx_pass(g, &ss->local);
}

/**
 * sp_local_reading() - may anybody be copying for a member right now
 * @local: the member, in a group
 *
 * Who begins to after this has returned sees what was done before: that the
 * member is deaf, say.
 *
 * Context: process, may sleep; without the member's locks.
 *
 * Return: false when nobody is.
 */
bool sp_local_reading(struct sp_local *local)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);
	bool reading;

	if (!mutex_trylock(&ss->rx_lock))
		return true;
	sp_rx_unlock(ss, local->group);
	reading = !mutex_trylock(&local->queue.lock);
	if (!reading)
		mutex_unlock(&local->queue.lock);
	return reading;
}

/*
 * Is there anything to read that the program has not seen? 1, 0 at the end,
 * -EAGAIN, or the group's error. Without @ss->rx_lock another reader may be
 * faster; then it is no longer so.
 */
static int sp_rx_poll(const struct sp_sock *ss, struct sp_group *g)
{
	const struct sp_local *local = &ss->local;
	enum sp_view_state state = sp_group_state(g);
	bool out = sp_local_out(local);
	int error = READ_ONCE(local->error);
	struct sp_log log;
	u64 cursor;

	if (READ_ONCE(ss->sk.sk_shutdown) & RCV_SHUTDOWN)
		return 0;
	if (error)
		return error;
	/* What the queue's filler has passed by is found in the queue. */
	cursor = smp_load_acquire(&local->cursor);
	if (sp_rings_mapped(local, SPINDLE_MAP_RX) ?
	    sp_rings_readable(local) :
	    sp_rx_look(g, local, &cursor, &log) ||
	    !list_empty(&local->queue.messages))
		return 1;
	if (out || state == SP_VIEW_CLOSED)
		return 0;
	return state == SP_VIEW_FAILED ? g->error : -EAGAIN;
}

/* The same for who wants to copy it: -EBUSY when deliveries are mapped. */
static int sp_rx_ready(struct sp_sock *ss, struct sp_group *g)
{
	if (sp_rings_mapped(&ss->local, SPINDLE_MAP_RX))
		return -EBUSY;
	return sp_rx_poll(ss, g);
}

/* The same, in the wait for it: nothing is kept for who sleeps for more. */
static int sp_rx_wait(struct sp_sock *ss, struct sp_group *g)
{
	sp_rx_pass(g, &ss->local);
	return sp_rx_ready(ss, g);
}

/* It is state for one member. */
static int sp_tx_state(const struct cmsghdr *cmsg, u32 *flags)
{
	const struct spindle_state *state = CMSG_DATA(cmsg);

	if (*flags || cmsg->cmsg_len != CMSG_LEN(sizeof(*state)) ||
	    state->uid > SP_UID_MASK || (state->flags & ~SPINDLE_INFO_LAST))
		return -EINVAL;
	*flags = SP_DESC_STATE | state->uid << SP_DESC_UID_SHIFT;
	if (state->flags)
		*flags |= SP_DESC_LAST;
	return 0;
}

/* How it is to be sent. */
static int sp_tx_how(const struct cmsghdr *cmsg, struct spindle_object *how)
{
	if (cmsg->cmsg_len != CMSG_LEN(sizeof(*how)))
		return -EINVAL;
	memcpy(how, CMSG_DATA(cmsg), sizeof(*how));
	return how->algorithm >= SPINDLE_ALGS ||
	       (how->flags & ~SPINDLE_OBJECT_ALL) ? -EINVAL : 0;
}

/*
 * What a message to be sent is, by its length and its control messages: its
 * SP_DESC_* in @flags, and @pin, whether it may be sent out of the program's
 * memory.
 */
static int sp_tx_flags(const struct sp_group *g, struct msghdr *msg, size_t len,
		       u32 *flags, bool *pin)
{
	struct spindle_object how = {};
	struct sp_choice choice;
	struct cmsghdr *cmsg;
	int ret = 0;

	*flags = 0;
	for_each_cmsghdr(cmsg, msg) {
		if (!CMSG_OK(msg, cmsg))
			return -EINVAL;
		if (cmsg->cmsg_level != SOL_SPINDLE)
			continue;
		if (cmsg->cmsg_type == SPINDLE_CMSG_STATE)
			ret = sp_tx_state(cmsg, flags);
		else if (cmsg->cmsg_type == SPINDLE_CMSG_OBJECT)
			ret = sp_tx_how(cmsg, &how);
		else
			ret = -EINVAL;
		if (ret)
			return ret;
	}
	*pin = how.flags & SPINDLE_OBJECT_IN_PLACE;
	sp_objects_choose(g, len, how.algorithm,
			  len && (how.flags & SPINDLE_OBJECT_ALWAYS), &choice);
	if (choice.object)
		*flags |= SP_DESC_OBJECT | choice.kind << SP_DESC_KIND_SHIFT;
	return 0;
}

/* SPINDLE_OBJECT_IN_PLACE. NULL: it is to be copied. */
static struct sp_object *sp_tx_pin(struct sp_sock *ss, const struct sp_group *g,
				   struct msghdr *msg, u32 flags)
{
	struct sp_pins *pins = ss->pins;

	lockdep_assert_held(&ss->tx_lock);
	if (!pins) {
		pins = sp_pins_new();
		if (!pins)
			return NULL;
		/* Pairs with the acquire in sp_sock_pins(). */
		smp_store_release(&ss->pins, pins);
	}
	return sp_object_pin(g, flags, pins, &msg->msg_iter);
}

/* The message's bytes, on their way into the group. */
static int sp_tx_fill(struct sp_sock *ss, const struct sp_group *g,
		      struct sp_lane_tx *lane, struct msghdr *msg, u32 len,
		      u32 flags, bool pin, u64 off, struct sp_object **object)
{
	struct sp_object *made = NULL;
	int ret = 0;

	if (!(flags & SP_DESC_OBJECT))
		return copy_from_iter_full(lane->ring + off, len,
					   &msg->msg_iter) ? 0 : -EFAULT;
	/* It has been filled already, and found no turn. */
	if (*object)
		return 0;
	if (pin)
		made = sp_tx_pin(ss, g, msg, flags);
	if (!made) {
		made = sp_object_alloc(g, len, flags, false);
		if (!IS_ERR(made))
			ret = sp_object_fill(made, &msg->msg_iter);
	}
	if (IS_ERR(made))
		return PTR_ERR(made);
	if (ret)
		sp_object_unuse(made);
	else
		*object = made;
	return ret;
}

/* What stands in a mapped ring comes before an object that is sent now. */
static int sp_tx_flush(struct sp_sock *ss, struct sp_group *g, u32 flags)
{
	if (!(flags & SP_DESC_OBJECT) ||
	    !sp_rings_mapped(&ss->local, SPINDLE_MAP_TX))
		return 0;
	return sp_tx_open(ss, g) ?: sp_rings_flush(g, &ss->local);
}

static int sp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g = sp_sock_group(ss);
	struct sp_object *object = NULL;
	struct sp_lane_tx *lane;
	u32 pinned = 0;
	long timeo;
	u64 off = 0;
	u32 flags;
	bool pin;
	int ret;

	/* sendmmsg() adds MSG_BATCH; batches form by themselves here. */
	if (msg->msg_flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR |
			       MSG_BATCH | MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (!g)
		return -ENOTCONN;
	if (msg->msg_namelen)
		return -EISCONN;
	if (len > max(g->config.max_msg, g->config.max_object))
		return -EMSGSIZE;
	ret = sp_tx_flags(g, msg, len, &flags, &pin);
	if (ret)
		return ret;

	timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
again:
	for (;;) {
		mutex_lock(&ss->tx_lock);
		ret = sp_tx_flush(ss, g, flags) ?:
		      sp_tx_ready(ss, g, len, flags, &off);
		if (ret != -EAGAIN)
			break;
		sp_tx_starved(ss, g);
		sp_rings_refused(&ss->local);
		WRITE_ONCE(ss->want, flags & SP_DESC_OBJECT ? len : 0);
		mutex_unlock(&ss->tx_lock);
		ret = sp_wait(sk, timeo, sp_tx_ready(ss, g, len, flags, &off));
		if (ret)
			goto out;
	}
	if (ret)
		goto unlock;

	lane = sp_local_lane(&ss->local);
	ret = sp_tx_fill(ss, g, lane, msg, len, flags, pin, off, &object);
	if (ret)
		goto unlock;
	if (object)
		pinned = object->slab->pinned << PAGE_SHIFT;
	spin_lock(&lane->lock);
	/*
	 * shutdown() may have come first, or the member leaves: then what it has
	 * committed when that was said is its last.
	 */
	if (lane->tx.fin || READ_ONCE(ss->local.leaving))
		ret = -EPIPE;
	else if (object)
		ret = sp_tx_space_object(&lane->tx, len) ?:
		      sp_objects_commit(sp_lane_slot(lane), object, flags);
	else
		sp_tx_commit(&lane->tx, len, flags);
	if (object && !ret)
		sp_rings_object(&ss->local);
	if (!ret)
		sp_local_sent(&ss->local, 1);
	WRITE_ONCE(lane->starved, 0);
	spin_unlock(&lane->lock);
	if (ret == -EAGAIN) {
		/* Another thread has submitted something meanwhile. */
		mutex_unlock(&ss->tx_lock);
		goto again;
	}
	if (ret) {
		if (ret == -ESHUTDOWN)
			ret = sp_group_error(g) ?: -EPIPE;
		goto unlock;
	}
	if (object)
		sp_objects_kick(g);
	/* It is the lane's. */
	object = NULL;
	WRITE_ONCE(ss->want, 0);
	atomic64_add(len - pinned, &g->counters.copied_bytes);
	sp_group_sent(g);
unlock:
	mutex_unlock(&ss->tx_lock);
out:
	if (object)
		sp_object_unuse(object);
	if (ret == -EPIPE && !(msg->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return ret ?: (int)len;
}

/**
 * sp_rx_bytes() - a message's bytes, in the replica of the sender's ring or in
 * an object
 * @g: the group
 * @log: the message's entry
 * @bytes: those in a ring, in one piece, or NULL
 * @object: the object, held, or NULL
 *
 * Return: false when it is an object and nothing is kept for the reader any
 * more, as it is deaf.
 */
bool sp_rx_bytes(const struct sp_group *g, const struct sp_log *log,
		 const u8 **bytes, struct sp_object **object)
{
	struct sp_slot_lane *lane = sp_group_slot(g, log);

	*bytes = NULL;
	*object = NULL;
	if (unlikely(!lane))
		return false;
	if (log->flags & SP_DESC_OBJECT)
		*object = sp_lane_object_get(lane, log->pos);
	else
		*bytes = lane->slab->ring + ((u64)log->pos << SP_UNIT_SHIFT);
	return *bytes || *object;
}

/**
 * sp_event_size() - bytes of an event as a program is given it
 * @event: the event
 *
 * Return: the bytes.
 */
size_t sp_event_size(const struct sp_record *event)
{
	struct spindle_event *to;
	size_t n = event->nleft;

	if (event->view)
		n += event->view->nmembers;
	return struct_size(to, member, n);
}

static void sp_event_member(struct spindle_event_member *to,
			    const struct sp_addr *addr, u32 rank, u32 uid,
			    u32 flags)
{
	memcpy(&to->addr, addr->b, sizeof(to->addr));
	to->rank = rank;
	to->uid = uid;
	if (flags & SP_MEMBER_RECEIVER)
		to->flags |= SPINDLE_EM_RECEIVER;
}

/* The members of a view that begins, then those that are not in it. */
static void sp_event_members(const struct sp_local *local,
			     const struct sp_record *event,
			     struct spindle_event *to)
{
	struct spindle_event_member *em = to->member;
	u32 i;

	for (i = 0; i < event->view->nmembers; i++, em++) {
		const struct sp_member *m = &event->view->members[i];
		bool self = m->uid == local->uid;

		sp_event_member(em, &m->addr, i, m->uid, m->flags);
		if (self)
			em->flags |= SPINDLE_EM_SELF;
		/* Nobody has been on a node for longer than that itself. */
		if (i < event->stayed && !(self && !event->old))
			continue;
		em->flags |= SPINDLE_EM_JOINED;
		if (m->flags & SP_MEMBER_STATE)
			em->flags |= SPINDLE_EM_STATE;
	}
	for (i = 0; i < event->nleft; i++, em++) {
		const struct sp_left *left = &event->left[i];

		sp_event_member(em, &left->addr, left->rank, left->uid,
				left->flags);
		em->reason = left->reason;
		if (left->uid == local->uid)
			em->flags |= SPINDLE_EM_SELF;
	}
}

/**
 * sp_event_fill() - an event as a program is given it
 * @local: the member that reads it
 * @event: the event
 * @to: sp_event_size() bytes, zeroed
 */
void sp_event_fill(const struct sp_local *local, const struct sp_record *event,
		   struct spindle_event *to)
{
	BUILD_BUG_ON((int)SPINDLE_REASON_LEFT != (int)SP_LEFT);
	BUILD_BUG_ON((int)SPINDLE_REASON_EXITED != (int)SP_EXITED);
	BUILD_BUG_ON((int)SPINDLE_REASON_LOST != (int)SP_LOST);
	BUILD_BUG_ON((int)SPINDLE_REASON_SLOW != (int)SP_SLOW);

	to->type = event->type;
	to->number = event->number;
	to->view = event->id;
	to->seq = event->seq;
	to->error = -event->error;
	to->left = event->nleft;
	to->subject = event->subject;
	if (!event->view)
		return;
	to->members = event->view->nmembers;
	sp_event_members(local, event, to);
}

/**
 * struct sp_rx - what a reader has before it: an entry of the log or of its queue
 * @log: the entry
 * @bytes: of a message in a ring or the queue: those
 * @view: the view it belongs to; held by the member or the queue
 * @event: of an event: that, held
 * @object: of an object: that, held
 * @cursor: its place in the log
 * @queued: it is in the queue
 */
struct sp_rx {
	struct sp_log log;
	const u8 *bytes;
	const struct sp_record *view;
	struct sp_record *event;
	struct sp_object *object;
	u64 cursor;
	bool queued;
};

/*
 * A member that was sent state is up to date: an event that no node has put
 * there, as all see it in the same place.
 */
static struct sp_record *sp_rx_current(const struct sp_log *log,
				       const struct sp_record *view)
{
	struct sp_record *r;
	u32 i;

	r = sp_record_make(SPINDLE_EVENT_CURRENT, NULL, NULL, NULL);
	if (!r)
		return NULL;
	r->seq = log->seq;
	if (!view)
		return r;
	r->id = view->id;
	for (i = 0; i < view->view->nmembers; i++)
		if (view->view->members[i].uid ==
		    log->flags >> SP_DESC_UID_SHIFT)
			r->subject = i;
	return r;
}

static int sp_rx_begin_queued(struct sp_sock *ss, struct sp_group *g,
			      struct sp_rx *rx)
{
	struct sp_detached *m = sp_detach_first(g, &ss->local);

	if (IS_ERR(m))
		return PTR_ERR(m);
	rx->log = m->log;
	rx->bytes = m->data;
	rx->view = m->view;
	rx->event = m->event;
	if (rx->event)
		kref_get(&rx->event->ref);
	return 1;
}

static int sp_rx_begin_log(struct sp_sock *ss, struct sp_group *g,
			   struct sp_rx *rx)
{
	struct sp_local *local = &ss->local;

	if (sp_rx_skip(g, local))
		sp_group_moved(g);
	rx->cursor = local->cursor;
	if (!sp_rx_look(g, local, &rx->cursor, &rx->log)) {
		int ret = sp_rx_ready(ss, g);

		return ret > 0 ? -EAGAIN : ret;
	}
	rx->view = local->record;
	if (rx->log.flags & SP_LOG_EVENT)
		rx->event = sp_record_find(g, rx->log.pos);
	else
		sp_rx_bytes(g, &rx->log, &rx->bytes, &rx->object);
	return rx->bytes || rx->object || rx->event ? 1 : -EAGAIN;
}

/* 1 and what comes next; or as sp_rx_ready(); or -ENOMEM. Under rx_lock. */
static int sp_rx_begin(struct sp_sock *ss, struct sp_group *g, struct sp_rx *rx)
{
	bool foreign;
	int ret;

	ret = sp_rx_ready(ss, g);
	if (ret <= 0)
		return ret;
	memset(rx, 0, sizeof(*rx));
	rx->queued = ss->local.queue.on;
	ret = rx->queued ? sp_rx_begin_queued(ss, g, rx) :
		sp_rx_begin_log(ss, g, rx);
	if (ret <= 0)
		return ret;
	foreign = sp_rx_foreign(&ss->local, &rx->log);
	if (foreign)
		rx->event = sp_rx_current(&rx->log, rx->view);
	if (rx->event || (!foreign && !(rx->log.flags & SP_LOG_EVENT)))
		return 1;
	/* No memory; or its record went as the member became deaf. */
	if (rx->queued)
		sp_detach_done(g, &ss->local, false);
	sp_object_put(rx->object);
	return -ENOMEM;
}

static void sp_rx_end(struct sp_sock *ss, struct sp_group *g,
		      const struct sp_rx *rx, bool taken)
{
	struct sp_local *local = &ss->local;

	if (taken && !rx->event)
		WRITE_ONCE(ss->received, ss->received + 1);
	if (rx->queued) {
		sp_detach_done(g, local, taken);
	} else if (taken) {
		sp_rx_past(g, local, &rx->log);
		/* G in group.h: the copy is done, the space may be reused. */
		smp_store_release(&local->cursor, rx->cursor + 1);
		sp_rx_skip(g, local);
		sp_group_moved(g);
	}
	sp_record_put(rx->event);
	sp_object_put(rx->object);
}

/* Bytes that a program is given of it. */
static size_t sp_rx_size(const struct sp_rx *rx)
{
	return rx->event ? sp_event_size(rx->event) : rx->log.len;
}

static void sp_rx_info(const struct sp_rx *rx, u32 rank, struct msghdr *msg)
{
	struct spindle_msg_info info = {
		.view = rx->view ? rx->view->id : 0,
		.seq = rx->log.seq,
		.rank = rank,
	};

	if (rx->log.flags & SP_DESC_STATE)
		info.flags = SPINDLE_INFO_STATE;
	if (rx->log.flags & SP_DESC_LAST)
		info.flags |= SPINDLE_INFO_LAST;
	put_cmsg(msg, SOL_SPINDLE, SPINDLE_CMSG_INFO, sizeof(info), &info);
}

static int sp_rx_copy_event(const struct sp_local *local, const struct sp_rx *rx,
			    struct msghdr *msg, size_t n)
{
	struct spindle_event *event;
	size_t done;

	event = kzalloc(sp_event_size(rx->event), GFP_KERNEL);
	if (!event)
		return -ENOMEM;
	sp_event_fill(local, rx->event, event);
	done = copy_to_iter(event, n, &msg->msg_iter);
	kfree(event);
	if (done != n)
		return -EFAULT;
	msg->msg_flags |= MSG_SPINDLE_EVENT;
	return 0;
}

/*
 * SO_PEEK_OFF: the next peek goes on where this one ended, or with the next
 * message once this one was read.
 */
static void sp_rx_peeked(struct sp_sock *ss, int flags, size_t n, size_t len)
{
	if (flags & MSG_PEEK)
		sk_peek_offset_fwd(&ss->sk, n);
	else
		sk_peek_offset_bwd(&ss->sk, len);
}

static int sp_rx_copy(struct sp_sock *ss, struct sp_group *g,
		      const struct sp_rx *rx, struct msghdr *msg, size_t size,
		      int flags)
{
	u32 rank = rx->log.lane >> SP_LOG_MEMBER_SHIFT;
	size_t len = sp_rx_size(rx);
	int peek = rx->event ? 0 : max(sk_peek_offset(&ss->sk, flags), 0);
	size_t off = min_t(size_t, peek, len);
	size_t n = min(len - off, size);
	int ret;

	if (rx->event)
		ret = sp_rx_copy_event(&ss->local, rx, msg, n);
	else if (rx->object)
		ret = sp_object_give(rx->object, off, n, &msg->msg_iter);
	else
		ret = copy_to_iter((void *)rx->bytes + off, n,
				   &msg->msg_iter) == n ? 0 : -EFAULT;
	if (ret)
		return ret;
	if (off + n < len)
		msg->msg_flags |= MSG_TRUNC;
	msg->msg_flags |= MSG_EOR;
	sp_rx_peeked(ss, flags, rx->event ? 0 : n, len);
	if (rx->event)
		goto out;
	atomic64_add(n, &g->counters.copied_bytes);
	if (msg->msg_name && rx->view && rank < rx->view->view->nmembers) {
		sp_sockaddr_give(&rx->view->view->members[rank].addr,
				 g->node->scope_id, rank, msg->msg_name);
		msg->msg_namelen = sizeof(struct sockaddr_spindle);
	}
	if (ss->recvinfo)
		sp_rx_info(rx, rank, msg);
out:
	return flags & MSG_TRUNC ? len : n;
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
		sp_rx_unlock(ss, g);
		if (ret == -EAGAIN)
			ret = sp_wait(sk, timeo, sp_rx_wait(ss, g));
		if (ret <= 0)
			return ret;
	}

	ret = sp_rx_copy(ss, g, &rx, msg, size, flags);
	/* The copy before the look: as in sp_rx_look(). */
	smp_rmb();
	/* Since then nothing is kept for us: it may be another message's. */
	if (smp_load_acquire(&ss->local.deaf)) {
		ret = READ_ONCE(ss->local.error);
		/* The end of the stream looks like no empty message. */
		msg->msg_flags &= ~(MSG_EOR | MSG_TRUNC | MSG_SPINDLE_EVENT);
		msg->msg_namelen = 0;
	}
	sp_rx_end(ss, g, &rx, ret >= 0 && !(flags & MSG_PEEK));
	sp_rx_unlock(ss, g);
	return ret;
}

/* The object of a mapped delivery, held. Under rx_lock. */
static struct sp_object *sp_rx_delivered(struct sp_group *g,
					 struct sp_local *local, u64 delivery)
{
	struct sp_object *object = NULL;
	struct sp_log log;
	const u8 *bytes;
	u64 at = delivery;

	if (at < READ_ONCE(local->cursor) ||
	    !sp_rx_look(g, local, &at, &log) || at != delivery ||
	    !(log.flags & SP_DESC_OBJECT) || sp_rx_foreign(local, &log) ||
	    !sp_rx_bytes(g, &log, &bytes, &object))
		return ERR_PTR(-ENOENT);
	/*
	 * Another thread may have released it meanwhile: then the entry was read
	 * as it was filled again.
	 */
	smp_rmb();
	if (delivery >= READ_ONCE(local->cursor))
		return object;
	sp_object_put(object);
	return ERR_PTR(-ENOENT);
}

/* The object that a reader has before it, held. Under rx_lock. */
static struct sp_object *sp_rx_object(struct sp_sock *ss, struct sp_group *g)
{
	struct sp_object *object = ERR_PTR(-ENOENT);
	struct sp_rx rx;
	int ret;

	ret = sp_rx_begin(ss, g, &rx);
	if (ret <= 0)
		return ERR_PTR(ret ?: -ENOENT);
	if (rx.object && !rx.event) {
		kref_get(&rx.object->ref);
		object = rx.object;
	}
	sp_rx_end(ss, g, &rx, false);
	return object;
}

/**
 * sp_rx_export() - SPINDLE_OBJECT_FD: the next object, or a mapped delivery, as
 * a file
 * @ss: its socket
 * @e: what it wants; @e->len becomes the object's length
 *
 * Context: may sleep.
 *
 * Return: the file, or an ERR_PTR: -ENOTCONN; -EINVAL when something is set that
 * may not be; -EAGAIN when there is nothing yet; -ENOENT when what is there is
 * no object, or was released, or is kept in the queue of a detached socket, or at
 * the end of the stream; what the group failed with; as sp_export().
 */
struct file *sp_rx_export(struct sp_sock *ss, struct spindle_object_fd *e)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sp_object *object;
	struct file *file;

	if (!g)
		return ERR_PTR(-ENOTCONN);
	if (memchr_inv(e->__resv, 0, sizeof(e->__resv)))
		return ERR_PTR(-EINVAL);
	/* Lanes stay while somebody reads: sp_local_reading(). */
	mutex_lock(&ss->rx_lock);
	if (sp_rings_mapped(&ss->local, SPINDLE_MAP_RX))
		object = sp_rx_delivered(g, &ss->local, e->delivery);
	else if (e->delivery)
		object = ERR_PTR(-EINVAL);
	else
		object = sp_rx_object(ss, g);
	sp_rx_unlock(ss, g);
	if (IS_ERR(object))
		return ERR_CAST(object);
	e->len = object->len;
	file = sp_export(object);
	sp_object_put(object);
	return file;
}

/**
 * sp_rx_read_object() - SPINDLE_OBJECT: copy a part of an object to a program
 * that maps its deliveries
 * @ss: its socket
 * @read: what it wants; @read->len becomes what it gets
 *
 * Context: may sleep.
 *
 * Return: 0; -ENOTCONN; -EINVAL when deliveries are not mapped, or nothing may
 * be set that is; -ENOENT when that delivery is not there, or released, or no
 * object; -EFAULT.
 */
int sp_rx_read_object(struct sp_sock *ss, struct spindle_object_read *read)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sp_local *local = &ss->local;
	struct sp_object *object;
	int ret;

	if (!g)
		return -ENOTCONN;
	if (memchr_inv(read->__resv, 0, sizeof(read->__resv)) ||
	    !sp_rings_mapped(local, SPINDLE_MAP_RX))
		return -EINVAL;
	/* Lanes stay while somebody reads: sp_local_reading(). */
	mutex_lock(&ss->rx_lock);
	object = sp_rx_delivered(g, local, read->delivery);
	ret = PTR_ERR_OR_ZERO(object);
	if (!ret) {
		u64 off = min_t(u64, read->off, object->len);

		read->len = min_t(u64, read->len, object->len - off);
		ret = sp_object_read(object, off, read->len,
				     u64_to_user_ptr(read->addr));
		if (!ret)
			atomic64_add(read->len, &g->counters.copied_bytes);
		sp_object_put(object);
	}
	sp_rx_unlock(ss, g);
	return ret;
}

static int sp_set_peek_off(struct sock *sk, int val)
{
	WRITE_ONCE(sk->sk_peek_off, val);
	return 0;
}

static __poll_t sp_poll(struct file *file, struct socket *sock,
			poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g = sp_sock_group(ss);
	__poll_t mask = 0;
	bool end = false;
	int ret;

	sock_poll_wait(file, sock, wait);
	if (READ_ONCE(sk->sk_err))
		mask |= EPOLLERR;
	if (!g)
		return mask;

	sp_rx_pass(g, &ss->local);
	ret = sp_rx_poll(ss, g);
	if (ret != -EAGAIN)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!ret) {
		mask |= EPOLLRDHUP;
		end = true;
	}
	if (READ_ONCE(ss->local.error) ||
	    (sp_group_error(g) && !sp_local_out(&ss->local)))
		mask |= EPOLLERR | EPOLLHUP;
	ret = sp_tx_poll(ss, g);
	if (!ret)
		mask |= EPOLLOUT | EPOLLWRNORM;
	else if (ret == -EAGAIN &&
		 poll_requested_events(wait) & (EPOLLOUT | EPOLLWRNORM))
		sp_tx_starved(ss, g);
	else if (end && (ret == -EPIPE || ret == -EACCES))
		mask |= EPOLLHUP;
	return mask;
}

/* This member sends nothing more: say so behind its last message. */
static void sp_shutdown_send(struct sp_sock *ss, struct sp_group *g)
{
	struct sp_lane_tx *lane;

	mutex_lock(&sp_ctl);
	/* A lane that comes later begins with that. */
	ss->local.fin = true;
	lane = ss->local.lane;
	/* Of who leaves, what it has sent so far is all. */
	if (lane && g->view.state == SP_VIEW_ACTIVE && !ss->local.leaving) {
		spin_lock(&lane->lock);
		sp_rings_collect(g, lane);
		if (!lane->tx.fin)
			sp_tx_commit(&lane->tx, 0, SP_DESC_FIN);
		spin_unlock(&lane->lock);
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
			bytes = sp_rx_size(&rx);
			sp_rx_end(ss, g, &rx, false);
		}
		sp_rx_unlock(ss, g);
		break;
	case SIOCOUTQ:
		if (!g)
			return -ENOTCONN;
		lane = sp_local_lane(&ss->local);
		if (lane) {
			spin_lock(&lane->lock);
			bytes = sp_tx_unfreed(&lane->tx);
			spin_unlock(&lane->lock);
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
	.set_peek_off = sp_set_peek_off,
	.sendmsg = sp_sendmsg,
	.recvmsg = sp_recvmsg,
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
}

static void sp_destruct(struct sock *sk)
{
	struct sp_sock *ss = sp_sk(sk);

	sp_detach_exit(&ss->local);
	sp_record_put(ss->local.record);
	mutex_destroy(&ss->tx_lock);
	mutex_destroy(&ss->rx_lock);
	sp_rings_free(ss->local.rings);
	sp_pins_put(ss->pins);
	mem_cgroup_put(ss->local.memcg);
	sp_payer_drop(&ss->local.payer);
	sp_key_put(ss->local.key);
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
	sk->sk_destruct = sp_destruct;
	ss = sp_sk(sk);
	memset(&ss->local, 0, sizeof(ss->local));
	INIT_LIST_HEAD(&ss->local.on_group);
	sp_detach_init(&ss->local);
	ss->local.sk = sk;
	ss->local.rank = ~0U;
	ss->local.end = ~0ULL;
	ss->local.cookie = sp_cookie();
	ss->node = NULL;
	ss->group = NULL;
	mutex_init(&ss->tx_lock);
	mutex_init(&ss->rx_lock);
	ss->recvinfo = false;
	ss->joining = false;
	ss->pins = NULL;
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

	atomic64_set(&sp_cookies, get_random_u64());
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
