// SPDX-License-Identifier: GPL-2.0
/*
 * The second queue pair of a link, for the blocks of large objects, so that no
 * acknowledgment waits behind one (design.md, section 3, "Links").
 *
 * It is made when the first object wants it and belongs to its link: when one of
 * the two breaks, both are taken down. The node with the lower address connects;
 * the other one asks it to. Keys of the link's protection domain are good on
 * both.
 *
 * A block is an RDMA write with immediate data: it lands where the receiver has
 * said that it should, and says so by a completion there. A SEND into receives
 * that were posted for it (RDMC, section 4.2) would do when there was one
 * transfer at a time; those of several objects, over groups that overlap, would
 * have to arrive in the order in which their receives were posted.
 *
 *   what                    written by          read by
 *   ----------------------  ------------------  ---------------------------
 *   bulk->built             the mover           the mover
 *   bulk->completed         completion handler  the mover (acquire)
 *   bulk->head              completion handler  the mover (acquire), before
 *                           (release), after    imms[]
 *                           imms[]
 *   bulk->tail              the mover           the mover
 */
#include <linux/slab.h>

#include "fabric.h"

static void sp_bulk_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_bulk_slot *slot = container_of(wc->wr_cqe,
						 struct sp_bulk_slot, cqe);
	struct sp_bulk *bulk = slot->bulk;
	atomic_t *flight = slot->flight;

	if (unlikely(wc->status != IB_WC_SUCCESS))
		sp_link_break(bulk->link, -EHOSTDOWN,
			      ib_wc_status_msg(wc->status));
	/* The release pairs with the mover's acquire of the same. */
	smp_store_release(&bulk->completed, slot->seq + 1);
	/* Whoever it belongs to may go from here on. */
	if (flight)
		atomic_dec_return_release(flight);
	sp_up->bulk(bulk->link);
}

static void sp_bulk_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_bulk *bulk = container_of(wc->wr_cqe, struct sp_bulk, rcqe);

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		if (READ_ONCE(bulk->open))
			sp_link_break(bulk->link, -EHOSTDOWN,
				      ib_wc_status_msg(wc->status));
		return;
	}
	if (unlikely(!(wc->wc_flags & IB_WC_WITH_IMM))) {
		sp_link_break(bulk->link, -EPROTO, "a block says nothing");
		return;
	}
	WRITE_ONCE(bulk->link->heard, true);
	/* No more can come than receives are posted. */
	bulk->imms[bulk->head % SP_BULK_RECVS] =
		be32_to_cpu(wc->ex.imm_data);
	/* Pairs with the acquire in sp_bulk_take(). */
	smp_store_release(&bulk->head, bulk->head + 1);
	sp_up->bulk(bulk->link);
}

static int sp_bulk_recv_post(struct sp_bulk *bulk)
{
	struct ib_recv_wr wr = { .wr_cqe = &bulk->rcqe };

	return ib_post_recv(bulk->qp, &wr, NULL);
}

static void sp_bulk_qp_event(struct ib_event *event, void *context)
{
	struct sp_bulk *bulk = context;

	if (event->event != IB_EVENT_COMM_EST)
		sp_link_break(bulk->link, -EHOSTDOWN, ib_event_msg(event->event));
}

static struct sp_bulk *sp_bulk_alloc(struct sp_link *link)
{
	struct sp_bulk *bulk;

	lockdep_assert_held(&sp_ctl);
	bulk = kzalloc(sizeof(*bulk), GFP_KERNEL);
	if (!bulk)
		return NULL;
	bulk->link = link;
	bulk->rcqe.done = sp_bulk_recv_done;
	return bulk;
}

/* What a link has for objects, as the mover sees it; or NULL. */
static struct sp_bulk *sp_bulk_of(const struct sp_link *link)
{
	/* Pairs with the release in sp_bulk_want(): it is whole. */
	return smp_load_acquire(&link->bulk);
}

/* Make the queue pair and post its receives. sp_bulk_stop() cleans up. */
static int sp_bulk_open(struct sp_bulk *bulk)
{
	struct sp_link *link = bulk->link;
	struct sp_device *sdev = link->node->sdev;
	struct ib_qp_init_attr attr = {};
	u32 i;
	int ret;

	if (bulk->id->device != sdev->ib)
		return -EHOSTUNREACH;
	bulk->ncqe = SP_BULK_DEPTH + SP_BULK_RECVS + 2;
	bulk->cq = ib_cq_pool_get(sdev->ib, bulk->ncqe, -1, IB_POLL_SOFTIRQ);
	if (IS_ERR(bulk->cq)) {
		ret = PTR_ERR(bulk->cq);
		bulk->cq = NULL;
		return ret;
	}
	/* One more of each for ib_drain_qp(). */
	attr.cap.max_send_wr = SP_BULK_DEPTH + 1;
	attr.cap.max_recv_wr = SP_BULK_RECVS + 1;
	attr.cap.max_send_sge = min_t(u32, SP_WR_SGES, sdev->max_sge);
	attr.cap.max_recv_sge = 1;
	attr.qp_type = IB_QPT_RC;
	attr.sq_sig_type = IB_SIGNAL_REQ_WR;
	attr.send_cq = bulk->cq;
	attr.recv_cq = bulk->cq;
	attr.event_handler = sp_bulk_qp_event;
	attr.qp_context = bulk;
	ret = rdma_create_qp(bulk->id, link->pd, &attr);
	if (ret)
		return ret;
	bulk->qp = bulk->id->qp;
	for (i = 0; i < SP_BULK_DEPTH; i++) {
		bulk->slots[i].bulk = bulk;
		bulk->slots[i].cqe.done = sp_bulk_done;
	}
	for (i = 0; i < SP_BULK_RECVS; i++) {
		ret = sp_bulk_recv_post(bulk);
		if (ret)
			return ret;
	}
	return 0;
}

/* Both ends are there. */
static void sp_bulk_set_open(struct sp_bulk *bulk)
{
	WRITE_ONCE(bulk->open, true);
	sp_up->bulk(bulk->link);
}

/* Events of the second connection; see sp_cm_handler(). */
static int sp_bulk_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct sp_link *link = id->context;
	struct rdma_conn_param param;
	struct sp_hello hello;
	struct sp_bulk *bulk;
	int ret = 0;

	mutex_lock(&sp_ctl);
	bulk = link->bulk;
	if (link->state == SP_LINK_DOWN || bulk->id != id)
		goto out;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(id, 2000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = sp_bulk_open(bulk);
		if (ret)
			break;
		sp_hello_init(link->node, &hello);
		hello.reason = SP_HELLO_BULK;
		hello.attempt = link->attempt;
		sp_conn_param(&hello, &param);
		ret = rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		sp_bulk_set_open(bulk);
		break;
	case RDMA_CM_EVENT_REJECTED:
		/* It has the link no more, or no memory; the node is there. */
		ret = -EAGAIN;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		ret = -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* What was said last still counts. */
		sp_link_take(link);
		ret = -EHOSTDOWN;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ret = -ENODEV;
		break;
	default:
		break;
	}
	if (ret)
		sp_link_set_state(link, SP_LINK_DOWN, ret);
out:
	mutex_unlock(&sp_ctl);
	return 0;
}

/* Begin to connect. Without sp_ctl: rdma_cm calls wait for handlers. */
static void sp_bulk_start(struct work_struct *work)
{
	struct sp_bulk *bulk = container_of(work, struct sp_bulk, start);
	struct sp_link *link = bulk->link;
	struct sp_node *node = link->node;
	struct sockaddr_storage dst;
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(node->net, sp_bulk_cm_handler, link, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id)) {
		ret = PTR_ERR(id);
		goto out;
	}
	mutex_lock(&sp_ctl);
	if (link->state == SP_LINK_DOWN) {
		mutex_unlock(&sp_ctl);
		rdma_destroy_id(id);
		ret = 0;
		goto out;
	}
	bulk->id = id;
	mutex_unlock(&sp_ctl);

	rdma_set_ack_timeout(id, sp_ack_timeout);
	ret = sp_cm_bind_privileged(id, node);
	if (ret)
		goto out;
	sp_addr_to_sockaddr(&link->peer, node->scope_id, sp_port, &dst);
	ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 2000);
out:
	if (ret)
		sp_link_break(link, -EHOSTUNREACH,
			      "no connection for objects");
	sp_link_put(link);
}

/**
 * sp_bulk_want() - objects are to go over a link: see that it can carry them
 * @link: the link, up
 *
 * Once is enough, more does no harm; @sp_fabric_upcalls.bulk tells when it can.
 * Context: sp_ctl is held, may sleep.
 */
void sp_bulk_want(struct sp_link *link)
{
	struct sp_bulk *bulk;
	struct sp_msg msg;

	lockdep_assert_held(&sp_ctl);
	if (link->state != SP_LINK_UP || link->bulk)
		return;
	if (sp_addr_cmp(&link->node->addr, &link->peer) > 0) {
		if (!link->bulk_asked)
			link->bulk_asked = !sp_link_say(link, &msg, SP_MSG_BULK,
							sizeof(msg));
		return;
	}
	bulk = sp_bulk_alloc(link);
	if (!bulk) {
		sp_link_break(link, -ENOMEM, "no memory for objects");
		return;
	}
	INIT_WORK(&bulk->start, sp_bulk_start);
	/* The mover looks at it without sp_ctl. */
	smp_store_release(&link->bulk, bulk);
	kref_get(&link->ref);
	queue_work(sp_wq, &bulk->start);
}

/**
 * sp_bulk_request() - the peer of a link connects for objects
 * @link: the link that the request names
 * @id: the connection; the link's, when this succeeds
 *
 * Context: CM handler of the listener; sp_ctl is held.
 *
 * Return: 0 or a negative errno.
 */
int sp_bulk_request(struct sp_link *link, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;
	struct sp_hello hello;
	struct sp_bulk *bulk;
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (link->bulk || sp_addr_cmp(&link->node->addr, &link->peer) < 0)
		return -EALREADY;
	bulk = sp_bulk_alloc(link);
	if (!bulk)
		return -ENOMEM;
	bulk->id = id;
	ret = sp_bulk_open(bulk);
	if (!ret) {
		sp_hello_init(link->node, &hello);
		sp_conn_param(&hello, &param);
		rdma_set_ack_timeout(id, sp_ack_timeout);
		ret = rdma_accept(id, &param);
	}
	if (ret) {
		if (bulk->qp) {
			ib_drain_qp(bulk->qp);
			rdma_destroy_qp(id);
		}
		if (bulk->cq)
			ib_cq_pool_put(bulk->cq, bulk->ncqe);
		kfree(bulk);
		return ret;
	}
	id->context = link;
	id->event_handler = sp_bulk_cm_handler;
	/* As in sp_bulk_want(). */
	smp_store_release(&link->bulk, bulk);
	return 0;
}

/**
 * sp_bulk_stop() - take apart what a link has for objects, but for its id
 * @link: the link, down
 *
 * Context: may sleep; without sp_ctl and the mover's lock.
 *
 * Return: what sp_bulk_free() takes.
 */
struct sp_bulk *sp_bulk_stop(struct sp_link *link)
{
	struct sp_bulk *bulk;

	mutex_lock(&sp_ctl);
	bulk = link->bulk;
	mutex_unlock(&sp_ctl);
	if (bulk) {
		mutex_lock(&link->node->sdev->mover.lock);
		WRITE_ONCE(bulk->open, false);
		bulk->closing = true;
		mutex_unlock(&link->node->sdev->mover.lock);
		if (bulk->start.func)
			flush_work(&bulk->start);
		if (bulk->qp) {
			ib_drain_qp(bulk->qp);
			rdma_destroy_qp(bulk->id);
		}
		if (bulk->cq)
			ib_cq_pool_put(bulk->cq, bulk->ncqe);
	}
	sp_up->bulk_gone(link);
	mutex_lock(&link->node->sdev->mover.lock);
	link->bulk = NULL;
	mutex_unlock(&link->node->sdev->mover.lock);
	return bulk;
}

/**
 * sp_bulk_free() - tell the peer, and free what a link had for objects
 * @link: the link
 * @bulk: that, or NULL
 *
 * Context: may sleep, see sp_cm_bye().
 */
void sp_bulk_free(struct sp_link *link, struct sp_bulk *bulk)
{
	if (bulk && bulk->id)
		sp_cm_bye(link->node->sdev, bulk->id);
	kfree(bulk);
}

/**
 * sp_bulk_can() - can a block be posted now
 * @link: the link
 * @slots: work requests it takes
 *
 * Context: the mover's lock is held.
 *
 * Return: true when it can.
 */
bool sp_bulk_can(const struct sp_link *link, u32 slots)
{
	const struct sp_bulk *bulk = sp_bulk_of(link);
	u64 done;

	lockdep_assert_held(&link->node->sdev->mover.lock);
	if (!bulk || !READ_ONCE(bulk->open))
		return false;
	/* Pairs with the release in sp_bulk_done(). */
	done = smp_load_acquire(&bulk->completed);
	return SP_BULK_DEPTH - (u32)(bulk->built - done) >= slots;
}

/**
 * sp_bulk_write() - post a block
 * @link: to the target; sp_bulk_can() said that there is room
 * @slab: source; it stays as it is until @flight has been decremented
 * @off: where in it, a multiple of its chunks; the target has it at the same
 *	place
 * @len: bytes
 * @raddr: where the target's copy begins
 * @rkey: key to it
 * @imm: what the target is told when the block has come
 * @flight: decremented when the block has landed or the link is gone
 *
 * Context: the mover's lock is held.
 *
 * Return: 0, or what posting failed with: the link breaks then.
 */
int sp_bulk_write(struct sp_link *link, const struct sp_slab *slab, u64 off,
		  u32 len, u64 raddr, u32 rkey, u32 imm, atomic_t *flight)
{
	struct sp_bulk *bulk = link->bulk;
	struct sp_bulk_slot *first = NULL, *last = NULL;
	u64 was = bulk->built;
	int ret;

	while (len) {
		struct sp_bulk_slot *slot;
		u32 some = len;

		slot = &bulk->slots[bulk->built % SP_BULK_DEPTH];
		slot->seq = bulk->built++;
		slot->flight = NULL;
		memset(&slot->wr, 0, sizeof(slot->wr));
		slot->wr.wr.wr_cqe = &slot->cqe;
		slot->wr.wr.sg_list = slot->sge;
		slot->wr.wr.num_sge = sp_gather(link, slab, off, &some,
						slot->sge);
		slot->wr.wr.opcode = IB_WR_RDMA_WRITE;
		slot->wr.remote_addr = raddr + off;
		slot->wr.rkey = rkey;
		if (last)
			last->wr.wr.next = &slot->wr.wr;
		else
			first = slot;
		last = slot;
		off += some;
		len -= some;
	}
	last->wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	last->wr.wr.ex.imm_data = cpu_to_be32(imm);
	last->wr.wr.send_flags = IB_SEND_SIGNALED;
	last->flight = flight;
	atomic_inc(flight);
	ret = ib_post_send(bulk->qp, &first->wr.wr, NULL);
	if (unlikely(ret)) {
		/* Some may have been taken; all of it is flushed with the link. */
		sp_link_break(link, ret, "posting a block failed");
		WRITE_ONCE(bulk->open, false);
		atomic_dec(flight);
		last->flight = NULL;
		bulk->built = was;
	}
	return ret;
}

/**
 * sp_bulk_slots() - work requests that a block takes
 * @link: the link
 * @slab: source
 * @len: bytes, from the beginning of a chunk
 *
 * Return: so many.
 */
u32 sp_bulk_slots(const struct sp_link *link, const struct sp_slab *slab,
		  u32 len)
{
	return sp_post_write_slots(link, slab, 0, len);
}

/**
 * sp_bulk_take() - the next block that has come
 * @link: the link
 * @imm: what was said of it
 *
 * Context: the mover's lock is held.
 *
 * Return: true when there is one.
 */
bool sp_bulk_take(struct sp_link *link, u32 *imm)
{
	struct sp_bulk *bulk = sp_bulk_of(link);

	lockdep_assert_held(&link->node->sdev->mover.lock);
	/* Pairs with the release in sp_bulk_recv_done(). */
	if (!bulk || bulk->tail == smp_load_acquire(&bulk->head))
		return false;
	*imm = bulk->imms[bulk->tail++ % SP_BULK_RECVS];
	/* Also before this side knows that it is open. */
	if (!bulk->closing && sp_bulk_recv_post(bulk))
		sp_link_break(link, -EHOSTDOWN, "posting a receive failed");
	return true;
}
