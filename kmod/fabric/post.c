// SPDX-License-Identifier: GPL-2.0
/*
 * The send queue of a link: building work requests, posting them in one chain,
 * and learning of their completion.
 *
 *   link->built      engine and control plane, under sq_lock
 *   link->completed  completion handler stores (release, A); builders load
 *                    (acquire, B) before they reuse a slot. A pairs with B.
 *
 * The last request of each chain is signalled, so that everything completes in
 * the end; requests of one queue complete in order.
 *
 * A registration is alone in the queue: it is posted when all before it has
 * completed, and what was built after it when it has completed itself. A retry
 * of soft-RoCE begins at the oldest request without an acknowledgment, and does
 * local ones that come after that a second time. A key that is registered twice
 * fails, and the error is not even reported while an older request is pending.
 */
#include "fabric.h"

static struct sp_slot *sp_slot(struct sp_link *link, u64 seq)
{
	return &link->slots[seq & (SP_SQ_DEPTH - 1)];
}

static u32 sp_free_slots(const struct sp_link *link)
{
	/* B, see above. */
	return SP_SQ_DEPTH - (u32)(link->built - sp_post_completed(link));
}

/* A request and all before it have completed. */
static void sp_completed(struct sp_slot *slot)
{
	struct sp_link *link = slot->link;

	if (unlikely(READ_ONCE(link->delay_ms)) &&
	    sp_fault_hold(link, slot->seq + 1))
		return;
	/* A, see above. */
	smp_store_release(&link->completed, slot->seq + 1);
	/* Pairs with the barrier of sp_flush(), and with one of sp_up->landed(). */
	smp_mb();
	if (unlikely(READ_ONCE(link->held)))
		sp_post_flush(link);
}

static void sp_post_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_slot *slot = container_of(wc->wr_cqe, struct sp_slot, cqe);
	struct sp_link *link = slot->link;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* What was flushed is posted again by the next connection. */
		if (READ_ONCE(link->wired))
			sp_conn_error(link, wc->status);
		return;
	}
	sp_completed(slot);
	sp_up->landed(link->node->sdev);
	sp_link_owes(link);
}

/* A heartbeat's end interests nobody. */
static void sp_beat_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_slot *slot = container_of(wc->wr_cqe, struct sp_slot, cqe);

	if (unlikely(wc->status != IB_WC_SUCCESS))
		sp_post_done(cq, wc);
	else
		sp_completed(slot);
}

/**
 * sp_post_init() - make the slots ready
 * @link: the link, not open yet
 */
void sp_post_init(struct sp_link *link)
{
	u32 i;

	for (i = 0; i < SP_SQ_DEPTH; i++)
		link->slots[i].link = link;
}

/*
 * Take the next slot; the caller has seen that one is free. For a user, or for the link
 * itself if that is NULL.
 */
static struct sp_slot *sp_build(struct sp_link *link, const struct sp_link_user *user)
{
	struct sp_slot *slot = sp_slot(link, link->built);

	lockdep_assert_held(&link->sq_lock);
	memset(&slot->wr, 0, sizeof(slot->wr));
	slot->user = user;
	slot->cqe.done = sp_post_done;
	slot->wr.send.wr_cqe = &slot->cqe;
	slot->wr.send.sg_list = slot->sge;
	slot->seq = link->built++;
	return slot;
}

/* May the next request be posted? A registration is alone, see above. */
static bool sp_may_post(struct sp_link *link)
{
	u64 seq = link->posted;

	if (likely(sp_slot(link, seq)->wr.send.opcode != IB_WR_REG_MR &&
		   sp_slot(link, seq - 1)->wr.send.opcode != IB_WR_REG_MR))
		return true;
	return sp_post_completed(link) == seq;
}

/* Post what was built and may be posted, as one chain, its last request signalled. */
static int sp_post_chain(struct sp_link *link)
{
	struct ib_send_wr *first = &sp_slot(link, link->posted)->wr.send;
	struct ib_send_wr *last = NULL;
	const struct ib_send_wr *bad;
	int ret;

	/* What is built meanwhile the next connection posts. */
	if (unlikely(!link->wired)) {
		WRITE_ONCE(link->held, false);
		return 0;
	}
	while (link->posted != link->built && sp_may_post(link)) {
		struct ib_send_wr *wr = &sp_slot(link, link->posted++)->wr.send;

		if (last)
			last->next = wr;
		last = wr;
	}
	WRITE_ONCE(link->held, link->posted != link->built);
	if (!last)
		return 0;
	/* It may have been in the middle of a chain before. */
	last->next = NULL;
	last->send_flags |= IB_SEND_SIGNALED;
	link->posts++;
	ret = ib_post_send(link->qp, first, &bad);
	if (unlikely(ret)) {
		link->open = false;
		sp_link_break(link, ret, "posting failed");
	}
	return ret;
}

/* Post all that was built; sp_completed() posts what has to wait. */
static int sp_flush(struct sp_link *link)
{
	int ret;

	lockdep_assert_held(&link->sq_lock);
	do {
		ret = sp_post_chain(link);
		if (likely(ret || !link->held))
			break;
		/* Either we see what has completed, or it sees that we wait. */
		smp_mb();
	} while (sp_may_post(link));
	return ret;
}

static int sp_room(const struct sp_link *link, u32 slots)
{
	lockdep_assert_held(&link->sq_lock);
	if (!link->open)
		return -ENOTCONN;
	return sp_free_slots(link) < slots ? -EAGAIN : 0;
}

/* Gather [off, off + len) of a slab; at most SP_WR_SGES entries. */
static u32 sp_gather(struct sp_link *link, const struct sp_slab *slab, u64 off,
		     u32 *len, struct ib_sge *sge)
{
	u32 chunk = 1U << slab->chunk_shift;
	u32 max = min_t(u32, SP_WR_SGES, slab->sdev->max_sge);
	u32 left = *len;
	u32 n;

	for (n = 0; left && n < max; n++) {
		u32 in = off & (chunk - 1);
		u32 some = min(left, chunk - in);

		sge[n].addr = slab->dma[off >> slab->chunk_shift] + in;
		sge[n].length = some;
		sge[n].lkey = link->pd->local_dma_lkey;
		if (slab->synced)
			ib_dma_sync_single_for_device(slab->sdev->ib,
						      sge[n].addr, some,
						      DMA_BIDIRECTIONAL);
		off += some;
		left -= some;
	}
	*len -= left;
	return n;
}

/**
 * sp_post_write_slots() - how many slots a write takes
 * @link: the link
 * @slab: source
 * @off: where in it
 * @len: bytes
 *
 * Return: the number of slots.
 */
u32 sp_post_write_slots(const struct sp_link *link, const struct sp_slab *slab,
			u64 off, u32 len)
{
	u32 max = min_t(u32, SP_WR_SGES, slab->sdev->max_sge);
	u64 first = off >> slab->chunk_shift;
	u64 last = (off + len - 1) >> slab->chunk_shift;

	return len ? DIV_ROUND_UP((u32)(last - first + 1), max) : 0;
}

/**
 * sp_post_room() - can that many work requests be built now
 * @link: the link
 * @slots: how many
 *
 * Context: only the engine builds more than one at a time, so that the answer
 * holds until its next build, but for a control message: one slot is kept.
 *
 * Return: true when there is room.
 */
bool sp_post_room(struct sp_link *link, u32 slots)
{
	return sp_free_slots(link) > slots + 4;
}

/**
 * sp_post_write() - build RDMA writes of a stretch of a slab
 * @user: for whom, on its link to the target
 * @slab: source: read when the packets are built, and again at a resend
 * @off: where in it; the target has it at the same place
 * @len: bytes
 * @raddr: where the target's replica begins
 * @rkey: its key
 *
 * They are posted with the next sp_post_snap(), sp_post_send() or
 * sp_post_flush(). Context: any but hard interrupt.
 *
 * Return: 0, -EAGAIN when slots are short, -ENOTCONN when the link is down.
 */
int sp_post_write(const struct sp_link_user *user, const struct sp_slab *slab, u64 off,
		  u32 len, u64 raddr, u32 rkey)
{
	struct sp_link *link = user->link;
	int ret;

	spin_lock_bh(&link->sq_lock);
	ret = sp_room(link, sp_post_write_slots(link, slab, off, len));
	while (!ret && len) {
		struct sp_slot *slot = sp_build(link, user);
		u32 some = len;

		slot->wr.send.num_sge = sp_gather(link, slab, off, &some,
						  slot->sge);
		slot->wr.send.opcode = IB_WR_RDMA_WRITE;
		slot->wr.rdma.remote_addr = raddr + off;
		slot->wr.rdma.rkey = rkey;
		link->writes++;
		off += some;
		len -= some;
	}
	spin_unlock_bh(&link->sq_lock);
	return ret;
}

/* Point a slot at a private copy of @data that stays until it completes. */
static void *sp_snap(struct sp_link *link, struct sp_slot *slot, u32 len)
{
	u32 nr = slot - link->slots;

	slot->wr.send.num_sge = 1;
	slot->sge[0].addr = link->snap_dma + nr * SP_SLOT_BYTES;
	slot->sge[0].length = len;
	slot->sge[0].lkey = link->pd->local_dma_lkey;
	return link->snap + nr * SP_SLOT_BYTES;
}

static void sp_snap_sync(struct sp_link *link, struct sp_slot *slot)
{
	ib_dma_sync_single_for_device(link->node->sdev->ib, slot->sge[0].addr,
				      slot->sge[0].length, DMA_TO_DEVICE);
}

/**
 * sp_post_snap() - post an RDMA write of a private copy, behind all that was
 * built before it
 * @user: for whom, on its link to the target
 * @data: what to write; copied
 * @len: its length, at most SP_SLOT_BYTES
 * @raddr: where to
 * @rkey: key to it
 * @ticket: what sp_post_completed() must reach before it has landed
 *
 * Return: 0, -EAGAIN, -ENOTCONN, or what posting failed with.
 */
int sp_post_snap(const struct sp_link_user *user, const void *data, u32 len, u64 raddr,
		 u32 rkey, u64 *ticket)
{
	struct sp_link *link = user->link;
	struct sp_slot *slot;
	int ret;

	spin_lock_bh(&link->sq_lock);
	ret = sp_room(link, 1);
	if (!ret) {
		slot = sp_build(link, user);
		memcpy(sp_snap(link, slot, len), data, len);
		sp_snap_sync(link, slot);
		slot->wr.send.opcode = IB_WR_RDMA_WRITE;
		slot->wr.rdma.remote_addr = raddr;
		slot->wr.rdma.rkey = rkey;
		link->writes++;
		*ticket = link->built;
		ret = sp_flush(link);
	}
	spin_unlock_bh(&link->sq_lock);
	return ret;
}

/**
 * sp_post_send() - post a SEND, behind all that was built before it
 * @link: to the target
 * @user: for whom; NULL: it is sent whoever gives up
 * @msg: the message; its length in @msg->len
 * @reserved: may use the receive that is kept for credits
 * @ticket: as in sp_post_snap()
 *
 * A SEND without a posted receive would stall every group of the link, so
 * there is none without a credit.
 *
 * Return: 0, -EAGAIN when slots or credits are short, -ENOTCONN, or what
 * posting failed with.
 */
int sp_post_send(struct sp_link *link, const struct sp_link_user *user, struct sp_msg *msg,
		 bool reserved, u64 *ticket)
{
	struct sp_slot *slot;
	s32 credits;
	void *to;
	int ret;

	spin_lock_bh(&link->sq_lock);
	ret = sp_room(link, 1);
	if (ret)
		goto unlock;
	credits = READ_ONCE(link->granted) - link->sent;
	if (credits <= (reserved ? 0 : 1)) {
		ret = sp_flush(link) ?: -EAGAIN;
		goto unlock;
	}
	slot = sp_build(link, user);
	to = sp_snap(link, slot, msg->len);
	link->advertised = atomic_read(&link->reposted);
	msg->credits = link->advertised;
	memcpy(to, msg, msg->len);
	sp_snap_sync(link, slot);
	slot->wr.send.opcode = IB_WR_SEND;
	slot->send = link->sent++;
	*ticket = link->built;
	ret = sp_flush(link);
unlock:
	spin_unlock_bh(&link->sq_lock);
	return ret;
}

/**
 * sp_post_reg() - post the registration of a memory region
 * @link: whose peer it is for
 * @mr: mapped, its key set
 *
 * What is sent after this finds the key valid: all that is built on the link
 * waits until the registration has completed.
 *
 * Return: 0, -EAGAIN, -ENOTCONN, or what posting failed with.
 */
int sp_post_reg(struct sp_link *link, struct ib_mr *mr)
{
	struct sp_slot *slot;
	int ret;

	spin_lock_bh(&link->sq_lock);
	ret = sp_room(link, 1);
	if (!ret) {
		slot = sp_build(link, NULL);
		slot->wr.send.opcode = IB_WR_REG_MR;
		slot->wr.send.num_sge = 0;
		slot->wr.reg.mr = mr;
		slot->wr.reg.key = mr->rkey;
		slot->wr.reg.access = IB_ACCESS_LOCAL_WRITE |
				      IB_ACCESS_REMOTE_WRITE;
		ret = sp_flush(link);
	}
	spin_unlock_bh(&link->sq_lock);
	return ret;
}

/**
 * sp_post_beat() - post a write of nothing: its acknowledgment says that the
 * other side is there
 * @link: the link
 *
 * Return: 0, -EAGAIN when there is enough in flight already, -ENOTCONN, or
 * what posting failed with.
 */
int sp_post_beat(struct sp_link *link)
{
	struct sp_slot *slot;
	int ret;

	spin_lock_bh(&link->sq_lock);
	ret = sp_room(link, SP_SQ_DEPTH);
	if (!ret) {
		slot = sp_build(link, NULL);
		slot->cqe.done = sp_beat_done;
		slot->wr.send.opcode = IB_WR_RDMA_WRITE;
		ret = sp_flush(link);
	}
	spin_unlock_bh(&link->sq_lock);
	return ret;
}

/**
 * sp_post_flush() - post what was built
 * @link: the link
 *
 * Context: any but hard interrupt.
 */
void sp_post_flush(struct sp_link *link)
{
	spin_lock_bh(&link->sq_lock);
	if (link->open)
		sp_flush(link);
	spin_unlock_bh(&link->sq_lock);
}

/**
 * sp_post_may_again() - can what has not completed be posted once more
 * @link: the link; its connection is unwired
 *
 * Of a registration that was posted and has not completed nobody knows whether it was
 * done. It needs no peer, and is alone in the queue: where the queue pair has no error it
 * completes soon.
 *
 * Return: true when it can.
 */
bool sp_post_may_again(struct sp_link *link)
{
	bool may = true;
	u64 seq;

	spin_lock_bh(&link->sq_lock);
	for (seq = sp_post_completed(link); seq != link->posted; seq++)
		if (sp_slot(link, seq)->wr.send.opcode == IB_WR_REG_MR)
			may = false;
	spin_unlock_bh(&link->sq_lock);
	return may;
}

/* SENDs among the requests of [from, to). */
static u32 sp_post_sends(struct sp_link *link, u64 from, u64 to)
{
	u32 n = 0;

	for (; from != to; from++)
		n += sp_slot(link, from)->wr.send.opcode == IB_WR_SEND;
	return n;
}

/* A write of nothing takes the place of a write. */
static void sp_post_nothing(struct sp_slot *slot)
{
	slot->wr.send.opcode = IB_WR_RDMA_WRITE;
	slot->wr.send.num_sge = 0;
	slot->wr.rdma.remote_addr = 0;
	slot->wr.rdma.rkey = 0;
}

/**
 * sp_post_cancel() - have nothing of a user sent by the next connection
 * @link: the link; no queue pair has anything of it
 * @user: whose requests
 *
 * All that has not completed, for what comes behind a write says that the write was there.
 * Its writes become writes of nothing, and its messages such as say nothing: the peer
 * counts those. Context: sp_ctl is held.
 */
void sp_post_cancel(struct sp_link *link, const struct sp_link_user *user)
{
	u64 seq;

	lockdep_assert_held(&sp_ctl);
	spin_lock_bh(&link->sq_lock);
	for (seq = sp_post_completed(link); seq != link->built; seq++) {
		struct sp_slot *slot = sp_slot(link, seq);

		if (slot->user != user)
			continue;
		if (slot->wr.send.opcode == IB_WR_SEND) {
			struct sp_msg *msg = sp_snap(link, slot, sizeof(*msg));

			msg->type = SP_MSG_CREDIT;
			msg->len = sizeof(*msg);
			sp_snap_sync(link, slot);
		} else {
			sp_post_nothing(slot);
		}
	}
	spin_unlock_bh(&link->sq_lock);
}

/**
 * sp_post_again() - post by a new connection what has not completed by the one before
 * @link: its old connection is dead on both sides, the new one carried nothing yet
 * @theirs: SENDs that have come at the other side
 *
 * All before the last SEND that came has come, too: requests of one queue pair are
 * carried out in order. What is behind it may have come, or not: it is posted again.
 * Those that had come only complete again, as writes of nothing.
 * Context: @sq_lock is held.
 *
 * Return: 0; -EPROTO when so many cannot have come; or what posting failed with.
 */
int sp_post_again(struct sp_link *link, u32 theirs)
{
	u64 from = sp_post_completed(link);
	u32 most, least;
	u64 seq, end;

	lockdep_assert_held(&link->sq_lock);
	most = link->sent - sp_post_sends(link, link->posted, link->built);
	least = most - sp_post_sends(link, from, link->posted);
	if (theirs - least > most - least)
		return -EPROTO;
	for (seq = from, end = from; seq != link->posted; seq++) {
		const struct sp_slot *slot = sp_slot(link, seq);

		if (slot->wr.send.opcode == IB_WR_SEND && (s32)(slot->send - theirs) < 0)
			end = seq + 1;
	}
	for (seq = from; seq != end; seq++)
		sp_post_nothing(sp_slot(link, seq));
	link->posted = from;
	return sp_flush(link);
}
