// SPDX-License-Identifier: GPL-2.0
/*
 * A connection of a link: one RC queue pair, from the attempt to have it until
 * nothing of it is left. A link that loses its connection makes another one, and
 * those who use the link notice nothing but the time that this takes.
 *
 *   - Each side takes its old queue pair apart before it asks for a connection or
 *     accepts one, so the old one is dead on both sides before the new one carries
 *     anything. Else a packet that comes late would overwrite what is newer
 *     (Documentation/protocol.rst, "Connections").
 *   - A request stays in its slot until it has completed. Those that have not are
 *     posted once more, in their order: sp_post_again(). A write may land twice; a
 *     SEND comes once, since each side says how many have come.
 *   - Keys and completion queue are the link's, and stay. So do the receives. A
 *     registration that was posted completes before its connection is taken apart.
 *
 * Both sides ask. Who is not ready yet refuses, and is asked again soon; of two that
 * ask at the same time the lower address goes on, if it has just begun. A side that has
 * given the link up says so, and then it is down on the other side, too.
 *
 * With iWARP a request completes as soon as TCP has taken it, so nobody knows what
 * was lost with a connection: the link goes down with it.
 */
#include <linux/iopoll.h>
#include <linux/slab.h>

#include "../observe/trace.h"
#include "fabric.h"

#define SP_AGAIN_MS	4	/* before the first attempt to connect again */
#define SP_AGAIN_TWICE	6	/* so often the time before the next one doubles */
#define SP_SETTLE_MS	1000	/* a registration that is posted takes no longer */

static int sp_recv_submit(struct sp_recv *recv)
{
	struct sp_link *link = recv->link;
	struct ib_recv_wr wr = {};
	struct ib_sge sge;

	lockdep_assert_held(&link->rx_lock);
	sge.addr = link->rbuf_dma + recv->nr * SP_MSG_MAX;
	sge.length = SP_MSG_MAX;
	sge.lkey = link->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(link->node->sdev->ib, sge.addr,
				      SP_MSG_MAX, DMA_FROM_DEVICE);
	wr.wr_cqe = &recv->cqe;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	return ib_post_recv(link->qp, &wr, NULL);
}

/**
 * sp_recv_post() - a message has been taken: its receive is free for another one
 * @recv: the receive, not on a list
 *
 * While there is no connection it waits for the next one. Context: any but hard
 * interrupt.
 *
 * Return: 0 or a negative errno.
 */
int sp_recv_post(struct sp_recv *recv)
{
	struct sp_link *link = recv->link;
	int ret;

	spin_lock_bh(&link->rx_lock);
	ret = link->fed ? sp_recv_submit(recv) : 0;
	/* One more can be granted to the peer. */
	if (!ret)
		atomic_inc(&link->reposted);
	spin_unlock_bh(&link->rx_lock);
	return ret;
}

/**
 * sp_recv_msg() - the message that has come into a receive
 * @recv: the receive
 *
 * Return: the message, in memory that the peer writes no more.
 */
const struct sp_msg *sp_recv_msg(const struct sp_recv *recv)
{
	return (const struct sp_msg *)(recv->link->rbuf +
				       recv->nr * SP_MSG_MAX);
}

/**
 * sp_conn_error() - a request or a receive has failed
 * @link: the link
 * @status: how
 *
 * What came by a dead connection after that is known is no error. Context: completion
 * handler.
 */
void sp_conn_error(struct sp_link *link, enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
	case IB_WC_FATAL_ERR:
		sp_link_break(link, -EAGAIN, ib_wc_status_msg(status));
		break;
	default:
		/* It would happen again: a key that is dead, or a broken peer. */
		sp_link_break(link, -EHOSTDOWN, ib_wc_status_msg(status));
		break;
	}
}

static void sp_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_recv *recv = container_of(wc->wr_cqe, struct sp_recv, cqe);
	struct sp_link *link = recv->link;
	const struct sp_msg *msg = sp_recv_msg(recv);
	u32 credits;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* Of an attempt to connect the CM says how it ends. */
		if (READ_ONCE(link->wired))
			sp_conn_error(link, wc->status);
		return;
	}
	ib_dma_sync_single_for_cpu(link->node->sdev->ib,
				   link->rbuf_dma + recv->nr * SP_MSG_MAX,
				   SP_MSG_MAX, DMA_FROM_DEVICE);
	/* Read when all receives of this connection have completed. */
	WRITE_ONCE(link->received, link->received + 1);
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

static void sp_qp_event(struct ib_event *event, void *context)
{
	struct sp_link *link = context;

	/* It is being taken apart. */
	if (!READ_ONCE(link->fed))
		return;
	switch (event->event) {
	case IB_EVENT_COMM_EST:
	case IB_EVENT_SQ_DRAINED:
	case IB_EVENT_QP_LAST_WQE_REACHED:
		break;
	case IB_EVENT_QP_FATAL:
		sp_link_break(link, -EAGAIN, ib_event_msg(event->event));
		break;
	default:
		sp_link_break(link, -EHOSTDOWN, ib_event_msg(event->event));
		break;
	}
}

/* What a link has from its first connection to its end. On failure see sp_link_stop(). */
static int sp_conn_prepare(struct sp_link *link)
{
	struct ib_device *ib = link->node->sdev->ib;
	int ret;
	u32 i;

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

	sp_post_init(link);
	for (i = 0; i < SP_RQ_DEPTH; i++) {
		link->recvs[i].link = link;
		link->recvs[i].cqe.done = sp_recv_done;
		link->recvs[i].nr = i;
		INIT_LIST_HEAD(&link->recvs[i].queued);
	}
	atomic_set(&link->reposted, SP_RQ_DEPTH);
	return 0;
}

/* Post all receives but those whose message is still to be handled. */
static int sp_conn_feed(struct sp_link *link)
{
	int ret = 0;
	u32 i;

	spin_lock_bh(&link->rx_lock);
	link->fed = true;
	for (i = 0; i < SP_RQ_DEPTH && !ret; i++)
		if (list_empty(&link->recvs[i].queued))
			ret = sp_recv_submit(&link->recvs[i]);
	spin_unlock_bh(&link->rx_lock);
	return ret;
}

/**
 * sp_conn_open() - make the queue pair of a connection and post the receives
 * @link: its id has a device. With its first connection it gets all else that it has
 *
 * Context: a CM handler, sp_ctl is held; may sleep. On failure the connection is to be
 * taken apart as any other.
 *
 * Return: 0 or a negative errno.
 */
int sp_conn_open(struct sp_link *link)
{
	struct ib_qp_init_attr attr = {};
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (link->id->device != link->node->sdev->ib)
		return -EHOSTUNREACH;
	if (!link->cq) {
		ret = sp_conn_prepare(link);
		if (ret)
			return ret;
	}
	/* One more of each: ib_drain_qp() posts a request of its own. */
	attr.cap.max_send_wr = SP_SQ_DEPTH + 1;
	attr.cap.max_recv_wr = SP_RQ_DEPTH + 1;
	attr.cap.max_send_sge = min_t(u32, SP_WR_SGES, link->node->sdev->max_sge);
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
	/* What is left to be said of the one before is said of that: sp_link_fail(). */
	WRITE_ONCE(link->nr, link->nr + 1);
	cmpxchg(&link->fail_error, -EAGAIN, 0);
	return sp_conn_feed(link);
}

/**
 * sp_conn_unwire() - post nothing more on a link's connection
 * @link: the link
 *
 * Context: sp_ctl is held.
 */
void sp_conn_unwire(struct sp_link *link)
{
	lockdep_assert_held(&sp_ctl);
	spin_lock_bh(&link->sq_lock);
	link->wired = false;
	spin_unlock_bh(&link->sq_lock);
	spin_lock_bh(&link->rx_lock);
	link->fed = false;
	spin_unlock_bh(&link->rx_lock);
}

/**
 * sp_conn_end() - take a connection apart
 * @link: the link, unwired
 * @id: the connection; NULL does nothing
 *
 * Context: may sleep, without sp_ctl; no other connection of the link is there.
 */
void sp_conn_end(struct sp_link *link, struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_disconnect(id);
	if (link->qp) {
		ib_drain_qp(link->qp);
		rdma_destroy_qp(id);
		/* Nothing posted reads or is written any more. */
		smp_store_release(&link->qp, NULL);
	}
	rdma_destroy_id(id);
}

/*
 * Try to connect again, soon; later when it was in vain before, or when the own attempt
 * was given up for the peer's, which is to come first.
 */
static void sp_conn_later(struct sp_link *link)
{
	u32 ms = SP_AGAIN_MS << min_t(u32, link->tried, SP_AGAIN_TWICE);

	lockdep_assert_held(&sp_ctl);
	if (link->yields)
		ms = sp_link_attempt_ms(link) / 2;
	link->yields = false;
	link->tried++;
	if (link->mute)
		link->mute--;
	/* Lest both ask at the same time, again and again. */
	if (sp_addr_cmp(&link->node->addr, &link->peer) > 0)
		ms *= 3;
	queue_delayed_work(sp_wq, &link->start, msecs_to_jiffies(ms));
}

/**
 * sp_conn_lose() - the connection of a link is lost, the link is not
 * @link: the link
 * @what: why, for the log; NULL when nobody needs to know
 *
 * An attempt to have a connection is given up likewise. Context: sp_ctl is held.
 *
 * Return: true when the link is connected again, or goes down by itself; false when it
 * has to go down: it is not up, or nobody uses it, or it cannot be done.
 */
bool sp_conn_lose(struct sp_link *link, const char *what)
{
	lockdep_assert_held(&sp_ctl);
	if (link->state != SP_LINK_UP || link->iwarp || link->node->dying ||
	    link->node->sdev->dead || list_empty(&link->users))
		return false;
	/* It is being seen to. */
	if (!link->id)
		return true;
	sp_conn_unwire(link);
	if (what)
		pr_info_ratelimited("spindle: %s: connection to %s lost: %s\n",
				    link->node->name, link->name, what);
	trace_spindle_connection(link->node->name, link->name, false, link->nr);
	link->old = link->id;
	link->id = NULL;
	/* It waits for what is in the other queue. */
	queue_work(sp_tcp_wq, &link->reset);
	return true;
}

/**
 * sp_conn_errno() - why there is no connection
 * @error: what a call of rdma_cm returned, or its event says
 *
 * Return: -ENOMEM, which this side can do something about; or -EHOSTUNREACH.
 */
int sp_conn_errno(int error)
{
	/* The latter is of the routing table. */
	return error == -ENOMEM || error == -ENOBUFS ? -ENOMEM : -EHOSTUNREACH;
}

/**
 * sp_conn_failed() - a connection, or the attempt to have one, has come to nothing
 * @link: the link
 * @id: the connection
 * @error: why, a negative errno
 *
 * Context: sp_ctl is held.
 */
void sp_conn_failed(struct sp_link *link, struct rdma_cm_id *id, int error)
{
	lockdep_assert_held(&sp_ctl);
	if (id != link->id)
		return;
	switch (error) {
	case -EBUSY:
	case -EHOSTDOWN:
	case -EHOSTUNREACH:
	case -ENOMEM:
		if (sp_conn_lose(link, link->wired ? "closed by the other side" : NULL))
			return;
		break;
	default:
		break;
	}
	/* A link that was never up is not tried again here: its users may do that. */
	if (error == -EBUSY && link->state == SP_LINK_UP)
		error = -EHOSTDOWN;
	sp_link_set_state(link, SP_LINK_DOWN, error);
}

/**
 * sp_conn_reset() - take the old connection apart, then see to the next
 * @work: @reset of a link
 *
 * Context: without sp_ctl, may sleep.
 */
void sp_conn_reset(struct work_struct *work)
{
	struct sp_link *link = container_of(work, struct sp_link, reset);

	bool again;

	/* It may have made the connection, and be about to resolve the address. */
	flush_work(&link->start.work);
	/* A registration that is under way would be cut short. */
	read_poll_timeout(sp_post_may_again, again,
			  again || READ_ONCE(link->state) == SP_LINK_DOWN,
			  1000, SP_SETTLE_MS * 1000, false, link);
	sp_conn_end(link, link->old);
	sp_fault_reset(link);
	again = sp_post_may_again(link);
	mutex_lock(&sp_ctl);
	link->old = NULL;
	sp_up->flushed(link);
	if (link->state == SP_LINK_UP && again) {
		sp_conn_later(link);
	} else if (link->state == SP_LINK_UP) {
		pr_info_ratelimited("spindle: %s: link to %s: a registration was cut short\n",
				    link->node->name, link->name);
		sp_link_set_state(link, SP_LINK_DOWN, -EHOSTDOWN);
	}
	mutex_unlock(&sp_ctl);
}

/* Begin with an attempt to connect, unless there is one already. */
static bool sp_conn_begin(struct sp_link *link, struct rdma_cm_id *id)
{
	lockdep_assert_held(&sp_ctl);
	if (link->state == SP_LINK_DOWN || link->id || link->old)
		return false;
	link->id = id;
	link->passive = false;
	link->began = jiffies;
	return true;
}

/**
 * sp_conn_start() - begin to connect
 * @work: @start of a link
 *
 * Context: without sp_ctl, since rdma_cm calls wait for handlers; may sleep.
 */
void sp_conn_start(struct work_struct *work)
{
	struct sp_link *link = container_of(to_delayed_work(work),
					    struct sp_link, start);
	struct sockaddr_storage dst;
	struct sp_node *node = link->node;
	struct rdma_cm_id *id;
	bool began, cut;
	int ret;

	id = rdma_create_id(node->net, sp_cm_handler, link, RDMA_PS_TCP,
			    IB_QPT_RC);
	mutex_lock(&sp_ctl);
	if (IS_ERR(id)) {
		if (link->state == SP_LINK_UP)
			sp_conn_later(link);
		else
			sp_link_set_state(link, SP_LINK_DOWN,
					  sp_conn_errno(PTR_ERR(id)));
		mutex_unlock(&sp_ctl);
		return;
	}
	began = sp_conn_begin(link, id);
	cut = sp_fault_is_cut(node, &link->peer);
	mutex_unlock(&sp_ctl);
	if (!began) {
		rdma_destroy_id(id);
		return;
	}

	ret = cut ? -EHOSTUNREACH : 0;
	if (!ret) {
		rdma_set_ack_timeout(id, sp_ack_timeout);
		ret = sp_cm_bind_privileged(id, node);
	}
	if (!ret) {
		sp_addr_to_sockaddr(&link->peer, node->scope_id, sp_port, &dst);
		ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst,
					SP_RESOLVE_MS);
	}
	if (ret) {
		mutex_lock(&sp_ctl);
		sp_conn_failed(link, id, sp_conn_errno(ret));
		mutex_unlock(&sp_ctl);
	}
}

/* Another attempt, from another port: a link of its own, which gets the users. */
static int sp_conn_elsewhere(struct sp_link *old)
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
	queue_delayed_work(sp_wq, &link->start, 0);
	return 0;
}

/**
 * sp_conn_connect() - ask the peer, where that waits for TCP to connect
 * @work: @connect of a link
 *
 * Context: without sp_ctl; may sleep.
 */
void sp_conn_connect(struct work_struct *work)
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
			ret = sp_conn_elsewhere(link);
		if (ret != -ECONNREFUSED)
			ret = sp_conn_errno(ret);
		sp_link_set_state(link, SP_LINK_DOWN, ret);
		mutex_unlock(&sp_ctl);
	}
	sp_link_put(link);
}
