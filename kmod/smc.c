// SPDX-License-Identifier: GPL-2.0
/*
 * Small messages on the wire: what the core asks to be posted becomes writes
 * of stretches of lanes, rows and wakes; and what peers send in return.
 */
#include "engine.h"
#include "group.h"

static struct sp_group *sp_group_of(struct sp_core *c)
{
	return container_of(c, struct sp_group, core);
}

static void sp_smc_lane_lock(struct sp_core *c, u32 own)
	__acquires(&sp_group_of(c)->lanes[own]->lock)
{
	spin_lock(&sp_group_of(c)->lanes[own]->lock);
}

static void sp_smc_lane_unlock(struct sp_core *c, u32 own)
	__releases(&sp_group_of(c)->lanes[own]->lock)
{
	spin_unlock(&sp_group_of(c)->lanes[own]->lock);
}

/* A link that is down is no fault of the peer: the control plane is told of it. */
static int sp_smc_posted(int ret)
{
	return ret ? -EAGAIN : 0;
}

static int sp_smc_post_run(struct sp_core *c, u32 node, u32 own,
			   const struct sp_run *run)
{
	struct sp_group *g = sp_group_of(c);
	struct sp_group_peer *gp = g->peer[node];
	struct sp_link *link = gp->user.link;
	const struct sp_slab *slab = g->lanes[own]->slab;
	const struct sp_target *to = &gp->to_lane[own];
	const struct {
		u64 base;
		const struct sp_seg *seg;
	} parts[] = {
		{ g->lay.ring_off, &run->bytes[0] },
		{ g->lay.ring_off, &run->bytes[1] },
		{ 0, &run->desc[0] },
		{ 0, &run->desc[1] },
	};
	u32 slots = 0;
	int ret = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		slots += sp_post_write_slots(link, slab,
					     parts[i].base + parts[i].seg->off,
					     parts[i].seg->len);
	if (!sp_post_room(link, slots)) {
		sp_post_flush(link);
		return -EAGAIN;
	}
	/* Should one fail in the middle, all are built again: no harm done. */
	for (i = 0; i < ARRAY_SIZE(parts) && !ret; i++)
		ret = sp_post_write(&gp->user, slab,
				    parts[i].base + parts[i].seg->off,
				    parts[i].seg->len, to->iova, to->rkey);
	if (!ret)
		WRITE_ONCE(g->counters.rdma_writes,
			   g->counters.rdma_writes + slots);
	return sp_smc_posted(ret);
}

/* Bytes of a run of own lane @own, the lane's descriptors first. Return: their end. */
static u8 *sp_smc_carry(struct sp_group *g, u32 own, const struct sp_run *run, u8 *to)
{
	const struct sp_slab *slab = g->lanes[own]->slab;
	struct sp_wire_run *wire = (struct sp_wire_run *)to;
	int i;

	wire->lane = own;
	wire->ndesc = (run->desc[0].len + run->desc[1].len) / sizeof(struct sp_desc);
	wire->slot = run->desc[0].off / sizeof(struct sp_desc);
	wire->off = run->bytes[0].off;
	wire->len = run->bytes[0].len + run->bytes[1].len;
	to = wire->desc;
	for (i = 0; i < 2; i++) {
		memcpy(to, slab->base + run->desc[i].off, run->desc[i].len);
		to += run->desc[i].len;
	}
	/* The ring is mapped twice, back to back. */
	memcpy(to, slab->ring + wire->off, wire->len);
	return to + wire->len;
}

/* The row as a message: its completion orders all that was written before it. */
static int sp_smc_send_row(struct sp_group *g, struct sp_group_peer *gp,
			   const struct sp_cell *cells, u32 n, u32 own,
			   const struct sp_run *run, u64 *ticket)
{
	struct sp_msg_row *row = (struct sp_msg_row *)g->row;
	u8 *end = (u8 *)g->row + sizeof(*row) + n * sizeof(*cells);
	int ret;

	row->hdr.type = SP_MSG_ROW;
	row->handle = gp->their_handle;
	row->ncells = n;
	row->runs = !!run;
	row->view = g->core.view;
	memcpy(row->cells, cells, n * sizeof(*cells));
	if (run)
		end = sp_smc_carry(g, own, run, end);
	row->hdr.len = end - (u8 *)g->row;
	ret = sp_post_send(gp->user.link, &gp->user, &row->hdr, false, ticket);
	if (!ret)
		WRITE_ONCE(g->counters.sends, g->counters.sends + 1);
	return ret;
}

static int sp_smc_post_row(struct sp_core *c, u32 node,
			   const struct sp_cell *cells, u32 n, u32 own,
			   const struct sp_run *run, u64 *ticket)
{
	struct sp_group *g = sp_group_of(c);
	struct sp_group_peer *gp = g->peer[node];
	int ret;

	if (c->peers[node].polled) {
		u64 at = gp->to_rows.iova + sp_row_off(c->view);

		ret = sp_post_snap(&gp->user, cells, n * sizeof(*cells), at,
				   gp->to_rows.rkey, ticket);
		if (!ret)
			WRITE_ONCE(g->counters.rdma_writes,
				   g->counters.rdma_writes + 1);
	} else {
		ret = sp_smc_send_row(g, gp, cells, n, own, run, ticket);
	}
	if (!ret)
		WRITE_ONCE(g->counters.posts, g->counters.posts + 1);
	return sp_smc_posted(ret);
}

/**
 * sp_smc_carry_max() - the longest run that a row of this node carries
 * @lanes: how many lanes it has
 *
 * Return: bytes of messages and descriptors.
 */
u32 sp_smc_carry_max(u32 lanes)
{
	u32 row = sizeof(struct sp_msg_row) + sizeof(struct sp_wire_run) +
		  (SP_CELL_LANES + lanes) * sizeof(struct sp_cell);

	return min(SP_CARRY_MAX, SP_MSG_MAX - row);
}

static u64 sp_smc_landed(struct sp_core *c, u32 node)
{
	return sp_post_completed(sp_group_of(c)->peer[node]->user.link);
}

static int sp_smc_post_wake(struct sp_core *c, u32 node)
{
	struct sp_group *g = sp_group_of(c);
	struct sp_group_peer *gp = g->peer[node];
	struct sp_msg_wake wake = {
		.hdr = { SP_MSG_WAKE, sizeof(wake) },
		.handle = gp->their_handle,
	};
	u64 ticket;
	int ret;

	ret = sp_post_send(gp->user.link, &gp->user, &wake.hdr, false, &ticket);
	if (!ret) {
		WRITE_ONCE(g->counters.wakes_sent, g->counters.wakes_sent + 1);
		WRITE_ONCE(g->counters.sends, g->counters.sends + 1);
		WRITE_ONCE(g->counters.posts, g->counters.posts + 1);
	}
	return sp_smc_posted(ret);
}

const struct sp_shell_ops sp_engine_ops = {
	.lane_lock = sp_smc_lane_lock,
	.lane_unlock = sp_smc_lane_unlock,
	.post_run = sp_smc_post_run,
	.post_row = sp_smc_post_row,
	.landed = sp_smc_landed,
	.post_wake = sp_smc_post_wake,
};

/*
 * What a handle stands for, if the link's peer is the one who was given it. Read
 * under RCU: the memory of a group goes a grace period after its handles.
 */
static struct sp_group_peer *sp_smc_peer(struct sp_link *link, u32 handle)
{
	struct sp_group_peer *gp = xa_load(&sp_handles, handle);

	return gp && READ_ONCE(gp->user.link) == link ? gp : NULL;
}

/* A send of a peer has come, and what follows from it is on the way. */
static void sp_smc_count(struct sp_group *g)
{
	/* Behind the kick: sp_activity_show() sees that, when it sees this. */
	atomic64_fetch_inc_release(&g->counters.receives);
}

/* What follows the cells of a row: is that a run that fits into a lane of the sender? */
static bool sp_smc_run_fits(const struct sp_group_peer *gp,
			    const struct sp_wire_run *run, u32 len)
{
	const struct sp_layout *lay = &gp->g->lay;

	return len >= sizeof(*run) && run->lane < SP_MAX_NODE_LANES &&
	       READ_ONCE(gp->lanes[run->lane]) &&
	       run->ndesc <= lay->depth && run->slot < lay->depth &&
	       run->off < lay->window && run->len <= lay->window &&
	       len == sizeof(*run) + run->ndesc * sizeof(struct sp_desc) + run->len;
}

/*
 * Put a run that came with a row where writes would have put it. Another lane may have
 * begun there since: a row of an earlier view knew nothing of that one.
 */
static void sp_smc_fill(const struct sp_group_peer *gp, u64 view,
			const struct sp_wire_run *run)
{
	/* Pairs with sp_memory_bind(). */
	const struct sp_slab *slab = smp_load_acquire(&gp->lanes[run->lane]);
	const struct sp_layout *lay = &slab->lay;
	u32 first = min_t(u32, run->ndesc, lay->depth - run->slot);
	u32 each = sizeof(struct sp_desc);

	if (view < READ_ONCE(slab->since))
		return;
	memcpy(slab->base + run->slot * each, run->desc, first * each);
	memcpy(slab->base, run->desc + first * each, (run->ndesc - first) * each);
	/* The ring is mapped twice, back to back. */
	memcpy(slab->ring + run->off, run->desc + run->ndesc * each, run->len);
}

/* What a peer has written is there for the CPU, too. */
static void sp_smc_arrived(struct sp_group_peer *gp)
{
	struct sp_slab *slab;
	u32 i;

	for (i = 0; gp->synced && i < SP_MAX_NODE_LANES; i++) {
		slab = READ_ONCE(gp->lanes[i]);
		if (slab)
			sp_slab_arrived(slab);
	}
}

/**
 * sp_group_row() - a row came by SEND: put it where it would have been written
 * @link: from the peer of this link
 * @row: the message; its length covers the header at least
 *
 * Context: softirq, one at a time for each link.
 */
void sp_group_row(struct sp_link *link, const struct sp_msg_row *row)
{
	const struct sp_wire_run *run;
	struct sp_group_peer *gp;
	struct sp_cell *to;
	u32 len = row->hdr.len - sizeof(*row);
	u32 cells = row->ncells * sizeof(*to);
	u32 i;

	rcu_read_lock();
	gp = sp_smc_peer(link, READ_ONCE(row->handle));
	if (!gp || row->ncells > SP_CELL_LANES + SP_MAX_NODE_LANES || len < cells)
		goto out;
	run = (const void *)row->cells + cells;
	if (row->runs ? !sp_smc_run_fits(gp, run, len - cells) : len != cells)
		goto out;
	to = (struct sp_cell *)(gp->rows->base + sp_row_off(row->view));
	sp_smc_arrived(gp);
	if (row->runs)
		sp_smc_fill(gp, row->view, run);
	/*
	 * The completion of this receive orders all the peer has written before
	 * it; the engine's barrier in sp_cell_get() pairs with this one.
	 */
	smp_mb();
	for (i = 0; i < row->ncells; i++) {
		WRITE_ONCE(to[i].value, row->cells[2 * i]);
		WRITE_ONCE(to[i].check, row->cells[2 * i + 1]);
	}
	sp_group_raise(gp->g);
	sp_smc_count(gp->g);
out:
	rcu_read_unlock();
}

/**
 * sp_group_woken() - a peer has written something that we may have missed
 * @link: from the peer of this link
 * @wake: the message
 *
 * Context: softirq.
 */
void sp_group_woken(struct sp_link *link, const struct sp_msg_wake *wake)
{
	struct sp_group_peer *gp;

	rcu_read_lock();
	gp = sp_smc_peer(link, READ_ONCE(wake->handle));
	if (gp) {
		atomic_inc(&gp->asks);
		/* The pass that takes the kick sees it: sp_engine_asked(). */
		smp_mb__after_atomic();
		atomic64_inc(&gp->g->counters.wakes_received);
		sp_group_raise(gp->g);
		sp_smc_count(gp->g);
	}
	rcu_read_unlock();
}
