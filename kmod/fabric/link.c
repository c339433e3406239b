// SPDX-License-Identifier: GPL-2.0
/*
 * A link: one RC connection between two nodes, its buffers, its receives, and
 * those who use it.
 */
#include <linux/slab.h>

#include "fabric.h"

#define SP_BEAT_MS	500	/* between heartbeats of a link with nothing in flight, at most */
#define SP_BEATS	8	/* heartbeats within suspect_ms, unless it is very short */
#define SP_OUT_MAX	1024	/* control messages that wait for room */
#define SP_CONNECT_MS	10000	/* a connection takes no longer than this, or suspect_ms */

static void sp_link_rx(struct work_struct *work);
static void sp_link_start(struct work_struct *work);
static void sp_link_connect(struct work_struct *work);
static void sp_link_fail(struct work_struct *work);
static void sp_link_stop(struct work_struct *work);
static void sp_link_beat(struct work_struct *work);

static u32 sp_beat_ms(void)
{
	return clamp_t(u32, sp_suspect_ms / SP_BEATS, 10, SP_BEAT_MS);
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
	INIT_LIST_HEAD(&link->users);
	INIT_LIST_HEAD(&link->rxq);
	INIT_LIST_HEAD(&link->outq);
	spin_lock_init(&link->sq_lock);
	spin_lock_init(&link->rx_lock);
	INIT_WORK(&link->rx, sp_link_rx);
	INIT_WORK(&link->start, sp_link_start);
	INIT_WORK(&link->connect, sp_link_connect);
	INIT_WORK(&link->fail, sp_link_fail);
	INIT_WORK(&link->stop, sp_link_stop);
	INIT_DELAYED_WORK(&link->beat, sp_link_beat);
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
 * users. Context: sp_ctl is held.
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
	if (state == SP_LINK_UP) {
		mod_delayed_work(sp_wq, &link->beat,
				 msecs_to_jiffies(sp_beat_ms()));
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
		kref_get(&link->ref);
		queue_work(sp_wq, &link->start);
	}
	kref_get(&link->ref);
	user->link = link;
	user->told = link->state == SP_LINK_UP;
	list_add_tail(&user->on_link, &link->users);
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
		kref_get(&to->ref);
		sp_link_put(from);
	}
	list_splice_init(&from->users, &to->users);
}

/**
 * sp_link_break() - take a link down from any context
 * @link: the link
 * @error: why, a negative errno
 * @what: the same in words, a constant string
 */
void sp_link_break(struct sp_link *link, int error, const char *what)
{
	/* The first reason is the one that counts; the rest follows from it. */
	if (cmpxchg(&link->fail_error, 0, error))
		return;
	WRITE_ONCE(link->fail_what, what);
	kref_get(&link->ref);
	queue_work(sp_wq, &link->fail);
}

static void sp_link_fail(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, fail);

	mutex_lock(&sp_ctl);
	sp_link_take(link);
	if (link->state != SP_LINK_DOWN && !list_empty(&link->users))
		pr_info_ratelimited("spindle: %s: link to %s: %s\n",
				    link->node->name, link->name,
				    link->fail_what);
	sp_link_set_state(link, SP_LINK_DOWN, READ_ONCE(link->fail_error));
	mutex_unlock(&sp_ctl);
	sp_link_put(link);
}

/* Begin to connect. Without sp_ctl: rdma_cm calls wait for handlers. */
static void sp_link_start(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, start);
	struct sockaddr_storage dst;
	struct sp_node *node = link->node;
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(node->net, sp_cm_handler, link, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id)) {
		ret = PTR_ERR(id);
		goto fail;
	}
	mutex_lock(&sp_ctl);
	if (link->state == SP_LINK_DOWN) {
		mutex_unlock(&sp_ctl);
		rdma_destroy_id(id);
		goto out;
	}
	link->id = id;
	mutex_unlock(&sp_ctl);

	rdma_set_ack_timeout(id, sp_ack_timeout);
	ret = sp_cm_bind_privileged(id, node);
	if (ret)
		goto fail;
	sp_addr_to_sockaddr(&link->peer, node->scope_id, sp_port, &dst);
	ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst,
				SP_RESOLVE_MS);
	if (!ret)
		goto out;
fail:
	mutex_lock(&sp_ctl);
	sp_link_set_state(link, SP_LINK_DOWN,
			  ret == -ENOMEM ? ret : -EHOSTUNREACH);
	mutex_unlock(&sp_ctl);
out:
	sp_link_put(link);
}

/* Another attempt, from another port: a link of its own, which gets the users. */
static int sp_link_again(struct sp_link *old)
{
	struct sp_link *link;

	lockdep_assert_held(&sp_ctl);
	if (old->state == SP_LINK_DOWN || old->tries + 1 >= SP_CM_PORTS)
		return -EHOSTUNREACH;
	link = sp_link_alloc(old->node, &old->peer);
	if (IS_ERR(link))
		return PTR_ERR(link);
	link->tries = old->tries + 1;
	sp_link_move_users(old, link);
	kref_get(&link->ref);
	queue_work(sp_wq, &link->start);
	return 0;
}

/* Ask the peer. Without sp_ctl: siw waits in it for TCP to connect. */
static void sp_link_connect(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, connect);
	int ret;

	mutex_lock(&sp_ctl);
	ret = link->state == SP_LINK_DOWN ? -ECONNABORTED : 0;
	mutex_unlock(&sp_ctl);
	/* From here on it may go down, but is not taken apart before this is over. */
	if (!ret)
		ret = sp_cm_connect(link);
	if (ret) {
		mutex_lock(&sp_ctl);
		if (ret == -EADDRNOTAVAIL || ret == -EADDRINUSE)
			ret = sp_link_again(link);
		if (ret != -ENOMEM && ret != -ECONNREFUSED)
			ret = -EHOSTUNREACH;
		sp_link_set_state(link, SP_LINK_DOWN, ret);
		mutex_unlock(&sp_ctl);
	}
	sp_link_put(link);
}

/* The peer has taken a message: one more receive can be granted to it. */
static int sp_recv_post(struct sp_recv *recv)
{
	struct sp_link *link = recv->link;
	struct ib_recv_wr wr = {};
	struct ib_sge sge;
	int ret;

	sge.addr = link->rbuf_dma + recv->nr * SP_MSG_MAX;
	sge.length = SP_MSG_MAX;
	sge.lkey = link->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(link->node->sdev->ib, sge.addr,
				      SP_MSG_MAX, DMA_FROM_DEVICE);
	wr.wr_cqe = &recv->cqe;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	ret = ib_post_recv(link->qp, &wr, NULL);
	if (!ret)
		atomic_inc(&link->reposted);
	return ret;
}

static const struct sp_msg *sp_recv_msg(const struct sp_recv *recv)
{
	return (const struct sp_msg *)(recv->link->rbuf +
				       recv->nr * SP_MSG_MAX);
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

static void sp_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_recv *recv = container_of(wc->wr_cqe, struct sp_recv, cqe);
	struct sp_link *link = recv->link;
	const struct sp_msg *msg = sp_recv_msg(recv);
	u32 credits;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* A request that has lost a tie is no failure of the link. */
		if (!READ_ONCE(link->open))
			return;
		sp_link_break(link, -EHOSTDOWN, ib_wc_status_msg(wc->status));
		return;
	}
	ib_dma_sync_single_for_cpu(link->node->sdev->ib,
				   link->rbuf_dma + recv->nr * SP_MSG_MAX,
				   SP_MSG_MAX, DMA_FROM_DEVICE);
	if (unlikely(!READ_ONCE(link->heard))) {
		WRITE_ONCE(link->heard, 1);
		queue_work(sp_wq, &link->rx);
	}
	recv->len = wc->byte_len;
	if (unlikely(recv->len < sizeof(*msg) || msg->len != recv->len))
		goto bad;

	credits = msg->credits;
	if ((s32)(credits - link->granted) > 0)
		WRITE_ONCE(link->granted, credits);
	switch (msg->type) {
	case SP_MSG_ASK:
		/* sp_link_owes(), below, sees to it. */
		WRITE_ONCE(link->asked, true);
		fallthrough;
	case SP_MSG_CREDIT:
		sp_up->progress(link->node->sdev);
		break;
	case SP_MSG_ROW:
		if (recv->len < sizeof(struct sp_msg_row))
			goto bad;
		sp_up->row(link, (const struct sp_msg_row *)msg);
		break;
	case SP_MSG_WAKE:
		if (recv->len < sizeof(struct sp_msg_wake))
			goto bad;
		sp_up->wake(link, (const struct sp_msg_wake *)msg);
		break;
	default:
		spin_lock(&link->rx_lock);
		list_add_tail(&recv->queued, &link->rxq);
		spin_unlock(&link->rx_lock);
		queue_work(sp_wq, &link->rx);
		return;
	}
	if (sp_recv_post(recv))
		sp_link_break(link, -EHOSTDOWN, "posting a receive failed");
	sp_link_owes(link);
	return;

bad:
	sp_link_break(link, -EPROTO, "malformed message");
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
		if (sp_post_send(link, (struct sp_msg *)out->msg, false, &ticket))
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
 * Context: sp_ctl is held.
 *
 * Return: 0; -ENOMEM; -ENOBUFS when too many wait already; -ENOTCONN when the
 * link is down.
 */
int sp_link_say(struct sp_link *link, struct sp_msg *msg, u16 type, u16 len)
{
	struct sp_out *out;

	lockdep_assert_held(&sp_ctl);
	if (link->state != SP_LINK_UP)
		return -ENOTCONN;
	msg->type = type;
	msg->len = len;
	/*
	 * A peer that asks on and on and takes no answer. Of a node that is lost
	 * each group of the link says so.
	 */
	if (link->nout >= SP_OUT_MAX && type != SP_MSG_REPORT &&
	    type != SP_MSG_BYE)
		return -ENOBUFS;
	out = kmalloc(sizeof(*out) + len, GFP_KERNEL);
	if (!out)
		return -ENOMEM;
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
			list_del(&recv->queued);
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

	return sp_post_send(link, &msg, reserved, &ticket);
}

/**
 * sp_link_established() - the connection is there
 * @link: connecting
 *
 * Context: sp_ctl is held.
 */
void sp_link_established(struct sp_link *link)
{
	lockdep_assert_held(&sp_ctl);
	spin_lock_bh(&link->sq_lock);
	link->open = true;
	spin_unlock_bh(&link->sq_lock);
	if (link->iwarp && !link->passive)
		sp_link_send_bare(link, SP_MSG_CREDIT, true);
	sp_link_up(link);
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

	if (link->iwarp) {
		there = xchg(&link->heard, 0);
		/* Who has no credit to ask with is owed some: that is a sign, too. */
		sp_link_send_bare(link, SP_MSG_ASK, false);
	} else if (READ_ONCE(link->built) == completed) {
		there = true;
		sp_post_beat(link);
	}
	if (there)
		link->silent = 0;
	else if (++link->silent * sp_beat_ms() >= sp_suspect_ms)
		sp_link_break(link, -EHOSTDOWN, "no answer within suspect_ms");
	link->beaten = completed;
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
		sp_link_owes(link);
		queue_delayed_work(sp_wq, &link->beat,
				   msecs_to_jiffies(sp_beat_ms()));
	}
	mutex_unlock(&sp_ctl);
}

static void sp_qp_event(struct ib_event *event, void *context)
{
	struct sp_link *link = context;

	if (event->event == IB_EVENT_COMM_EST)
		return;
	sp_link_break(link, -EHOSTDOWN, ib_event_msg(event->event));
}

/**
 * sp_link_open() - make the verbs objects of a link and post its receives
 * @link: its id has a device
 *
 * Context: a CM handler; may sleep. On failure sp_link_stop() cleans up.
 *
 * Return: 0 or a negative errno.
 */
int sp_link_open(struct sp_link *link)
{
	struct sp_device *sdev = link->node->sdev;
	struct ib_qp_init_attr attr = {};
	struct ib_device *ib = sdev->ib;
	int ret;
	u32 i;

	if (link->id->device != ib)
		return -EHOSTUNREACH;
	link->iwarp = rdma_protocol_iwarp(ib, link->id->port_num);

	link->slots = kvcalloc(SP_SQ_DEPTH, sizeof(*link->slots), GFP_KERNEL);
	link->recvs = kvcalloc(SP_RQ_DEPTH, sizeof(*link->recvs), GFP_KERNEL);
	link->snap = kmalloc(SP_SQ_DEPTH * SP_SLOT_BYTES, SP_GFP_LARGE);
	link->rbuf = kmalloc(SP_RQ_DEPTH * SP_MSG_MAX, SP_GFP_LARGE);
	if (!link->slots || !link->recvs || !link->snap || !link->rbuf)
		return -ENOMEM;
	link->snap_dma = ib_dma_map_single(ib, link->snap,
					   SP_SQ_DEPTH * SP_SLOT_BYTES,
					   DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib, link->snap_dma)) {
		link->snap_dma = 0;
		return -ENOMEM;
	}
	link->rbuf_dma = ib_dma_map_single(ib, link->rbuf,
					   SP_RQ_DEPTH * SP_MSG_MAX,
					   DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(ib, link->rbuf_dma)) {
		link->rbuf_dma = 0;
		return -ENOMEM;
	}

	link->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(link->pd)) {
		ret = PTR_ERR(link->pd);
		link->pd = NULL;
		return ret;
	}
	link->ncqe = SP_SQ_DEPTH + SP_RQ_DEPTH + 2;
	link->cq = ib_cq_pool_get(ib, link->ncqe, -1, IB_POLL_SOFTIRQ);
	if (IS_ERR(link->cq)) {
		ret = PTR_ERR(link->cq);
		link->cq = NULL;
		return ret;
	}
	/* One more of each: ib_drain_qp() posts a request of its own. */
	attr.cap.max_send_wr = SP_SQ_DEPTH + 1;
	attr.cap.max_recv_wr = SP_RQ_DEPTH + 1;
	attr.cap.max_send_sge = min_t(u32, SP_WR_SGES, sdev->max_sge);
	attr.cap.max_recv_sge = 1;
	attr.qp_type = IB_QPT_RC;
	attr.sq_sig_type = IB_SIGNAL_REQ_WR;
	attr.send_cq = link->cq;
	attr.recv_cq = link->cq;
	attr.event_handler = sp_qp_event;
	attr.qp_context = link;
	ret = rdma_create_qp(link->id, link->pd, &attr);
	if (ret)
		return ret;
	link->qp = link->id->qp;

	sp_post_init(link);
	for (i = 0; i < SP_RQ_DEPTH; i++) {
		link->recvs[i].link = link;
		link->recvs[i].cqe.done = sp_recv_done;
		link->recvs[i].nr = i;
		ret = sp_recv_post(&link->recvs[i]);
		if (ret)
			return ret;
	}
	return 0;
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
	/* sp_link_start() may be about to set the id, or to see that we are down. */
	flush_work(&link->start);
	flush_work(&link->connect);
	if (link->id) {
		rdma_disconnect(link->id);
		if (link->qp) {
			ib_drain_qp(link->qp);
			rdma_destroy_qp(link->id);
			/* Nothing posted reads or is written any more. */
			smp_store_release(&link->qp, NULL);
		}
		rdma_destroy_id(link->id);
	}
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
