// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped rings: a program fills and reads messages where they are, and tells
 * the engine what it has done by words that both sides map (uapi/linux/spindle.h
 * has the table of who writes what).
 *
 * All that the program can write is the own ring's bytes and struct
 * spindle_user. Each word of it is read once and held against what the kernel
 * knows itself; bytes are never looked at.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "af_spindle.h"
#include "compat/compat.h"
#include "engine.h"

/*
 * Regions begin far enough apart for the largest but the last, which has no end.
 * 32-bit programs get there.
 */
#define SP_MAP_REGION_SHIFT	32
#define SP_MAP_LANE_SHIFT	25

#define SP_MAP_AROUND	64	/* pages of a lane that one fault maps, a power of two */

enum sp_map_region {
	SP_MAP_STATUS,
	SP_MAP_USER,
	SP_MAP_DELIVERIES,
	SP_MAP_OWN,
	SP_MAP_LANES,
};

#define SP_MAP_OFFSET(region)	((u64)(region) << SP_MAP_REGION_SHIFT)

/**
 * struct sp_rings - what a member shares with its program
 * @flags: SPINDLE_MAP_*
 * @status: the kernel's words, read-only for the program
 * @user: the program's words
 * @user_size: bytes of them
 * @taken: submissions taken; under the lane's lock
 * @error: errno of the submission that was refused, 0: none; under the lane's
 *	lock
 * @said: @error was made known; the engine's
 * @blank: a page of zeros: all that the lanes show to who was evicted
 *
 * Made once; it lives as long as the socket, which every mapping holds.
 */
struct sp_rings {
	u32 flags;
	struct spindle_status *status;
	struct spindle_user *user;
	size_t user_size;
	u64 taken;
	int error;
	bool said;
	void *blank;
};

static size_t sp_deliveries_size(const struct sp_group *g)
{
	return PAGE_ALIGN(g->core.order.log_size * sizeof(struct sp_log));
}

/**
 * sp_rings_mapped() - has a member given a direction over to mapped rings
 * @local: the member
 * @flag: SPINDLE_MAP_TX or SPINDLE_MAP_RX
 *
 * Context: any.
 *
 * Return: true when it has.
 */
bool sp_rings_mapped(const struct sp_local *local, u32 flag)
{
	/* Pairs with the release in sp_rings_map(). */
	const struct sp_rings *r = smp_load_acquire(&local->rings);

	return r && (r->flags & flag);
}

/**
 * sp_rings_collect() - take what a program has submitted
 * @g: the group
 * @lane: an own lane; its lock is held
 *
 * A submission that no correct program makes ends them all: who wrote it can
 * send nothing more, and is told so.
 *
 * Context: the lane's lock is held.
 */
void sp_rings_collect(struct sp_group *g, struct sp_lane_tx *lane)
{
	struct sp_local *local = lane->member;
	u64 tail, before;
	struct sp_rings *r;
	int ret = 0;

	lockdep_assert_held(&lane->lock);
	/* Pairs with the release in sp_rings_map(). */
	r = local ? smp_load_acquire(&local->rings) : NULL;
	if (!r || !(r->flags & SPINDLE_MAP_TX) || r->error)
		return;
	/* What is submitted below it is complete. */
	tail = smp_load_acquire(&r->user->tx_tail);
	if (tail == r->taken)
		return;
	if (tail - r->taken > g->config.depth)
		ret = -EINVAL;
	before = r->taken;
	for (; !ret && r->taken != tail; r->taken++) {
		const struct spindle_submission *s;
		u32 len, flags;
		u64 off;

		s = &r->user->submissions[r->taken & (g->config.depth - 1)];
		len = READ_ONCE(s->len);
		flags = READ_ONCE(s->flags);
		if (!sp_desc_flags_ok(flags) || (flags & SP_DESC_FIN))
			ret = -EINVAL;
		else if (len > g->config.max_msg)
			ret = -EMSGSIZE;
		else
			ret = sp_tx_space(&lane->tx, len, &off);
		if (ret)
			break;
		/* Who has gone meanwhile reads nothing. */
		if ((flags & SP_DESC_PRIVATE) &&
		    sp_tx_private(&lane->tx, sp_desc_uid(flags)))
			flags = SP_DESC_PRIVATE | SP_UID_NOBODY << SP_DESC_UID_SHIFT;
		sp_lane_tx_pad(lane, off, len);
		sp_tx_commit(&lane->tx, len, flags);
	}
	WRITE_ONCE(lane->starved, 0);
	/* It has filled room that was not free: whose, it must know. */
	r->error = ret == -EAGAIN ? -ENOBUFS : ret;
	sp_local_sent(local, r->taken - before);
}

/**
 * sp_rings_released() - what a program has released
 * @g: the group
 * @local: a member that receives by deliveries
 *
 * What is not between its last word and what was published for it is no news.
 * Context: the engine's lock is held.
 *
 * Return: the member's cursor.
 */
u64 sp_rings_released(struct sp_group *g, struct sp_local *local)
{
	const struct sp_order *o = &g->core.order;
	u64 cursor = local->cursor;
	u64 limit = min(o->published, local->end);
	u64 released, messages = 0;

	/* The program has read what it releases; see H in group.h. */
	released = smp_load_acquire(&local->rings->user->rx_released);
	if (limit < cursor || released - cursor > limit - cursor)
		return cursor;
	for (; cursor != released; cursor++)
		messages += sp_log_message(local, o->log[cursor & (o->log_size - 1)].flags);
	sp_local_received(local, messages);
	WRITE_ONCE(local->cursor, cursor);
	return cursor;
}

/**
 * sp_rings_read() - how much of its stream has a member read
 * @local: the member
 *
 * What a program with mapped deliveries says; nothing but a guess depends on it.
 * Context: any.
 *
 * Return: entries of the log.
 */
u64 sp_rings_read(const struct sp_local *local)
{
	if (sp_rings_mapped(local, SPINDLE_MAP_RX))
		return READ_ONCE(local->rings->user->rx_released);
	return READ_ONCE(local->cursor);
}

/* Has a program done anything that no pass has seen? */
static bool sp_rings_news(const struct sp_rings *r)
{
	return (r->flags & SPINDLE_MAP_TX) && !r->error &&
	       READ_ONCE(r->user->tx_tail) != r->taken;
}

/**
 * sp_rings_missed() - has any program of the group submitted anything that no
 * pass has seen
 * @g: the group
 *
 * Context: the engine's lock is held; behind a full barrier that follows
 * sp_rings_tell().
 *
 * Return: true when it has.
 */
bool sp_rings_missed(const struct sp_group *g)
{
	const struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group)
		/* Of who is out nothing is taken any more. */
		if (local->rings && !sp_local_out(local) &&
		    sp_rings_news(local->rings))
			return true;
	return false;
}

static void sp_rings_tell_tx(struct sp_group *g, struct sp_local *local)
{
	struct spindle_status *s = local->rings->status;
	struct sp_rings *r = local->rings;
	struct sp_lane_tx *lane = local->lane;

	spin_lock(&lane->lock);
	WRITE_ONCE(s->tx_taken, r->taken);
	/* The program may fill again what this frees. */
	smp_store_release(&s->tx_head, lane->tx.head);
	/* Likewise. */
	smp_store_release(&s->tx_freed, lane->tx.freed);
	spin_unlock(&lane->lock);
	if (!r->error || r->said)
		return;
	r->said = true;
	WRITE_ONCE(s->tx_error, -r->error);
	pr_info_ratelimited("spindle: %s: group %s: member %u: submission refused: error %d\n",
			    g->node->name, g->name, local->rank, r->error);
	local->sk->sk_write_space(local->sk);
}

/* What there is for a program; at its end, that this is all. */
static void sp_rings_publish_to(const struct sp_group *g, struct sp_local *local)
{
	struct spindle_status *s = local->rings->status;
	u64 upto = min(g->core.order.published, local->end);

	/* Nothing is any more, and it knows. */
	if (sp_local_evicted(local))
		return;
	if (s->published != upto)
		/* E in group.h, once more. */
		smp_store_release(&s->published, upto);
	if (sp_local_out(local) && s->state != SPINDLE_STATE_CLOSED)
		/* Who sees the state sees what was published last. */
		smp_store_release(&s->state, SPINDLE_STATE_CLOSED);
}

/**
 * sp_rings_publish() - tell the programs of a group what there is to read
 * @g: the group, its published entries stored
 *
 * Context: the engine's lock is held.
 */
void sp_rings_publish(struct sp_group *g)
{
	struct sp_local *local;

	list_for_each_entry(local, &g->locals, on_group)
		if (local->rings)
			sp_rings_publish_to(g, local);
}

/**
 * sp_rings_tell() - tell the programs of a group what a pass has done
 * @g: the group, its published entries stored
 * @blocks: the engine will look again only when it is kicked
 *
 * Context: the engine's lock is held.
 */
void sp_rings_tell(struct sp_group *g, bool blocks)
{
	struct sp_local *local;
	u32 flags = 0;

	if (blocks)
		flags = SPINDLE_NEED_WAKEUP |
			(g->core.lazy ? SPINDLE_RX_MAY_WAIT : 0);

	list_for_each_entry(local, &g->locals, on_group) {
		struct sp_rings *r = local->rings;

		if (!r)
			continue;
		if (r->flags & SPINDLE_MAP_TX)
			sp_rings_tell_tx(g, local);
		sp_rings_publish_to(g, local);
		if (r->status->flags != flags)
			WRITE_ONCE(r->status->flags, flags);
	}
}

/**
 * sp_rings_kick() - a program says that it was asked for a wake-up
 * @g: the group, its view installed
 * @local: its member
 *
 * Until the engine has looked the program need not say it again. It sets the
 * flag after it has taken the kick, or the kick comes after that. Context: process.
 */
void sp_rings_kick(struct sp_group *g, struct sp_local *local)
{
	/* Pairs with the release in sp_rings_map(). */
	struct sp_rings *r = smp_load_acquire(&local->rings);
	bool sends = false;

	if (r) {
		/* Or has it only released something? No more than a guess, too. */
		sends = READ_ONCE(r->user->tx_tail) !=
			READ_ONCE(r->status->tx_taken);
		WRITE_ONCE(r->status->flags, 0);
	}
	/* Orders the two; the engine's is in atomic_xchg(&g->kick). */
	smp_mb();
	sp_engine_run(g, sends ? local : NULL);
}

/**
 * sp_rings_state() - the group's state has changed, or what it is for a member
 * @g: the group
 * @local: the member
 *
 * Context: sp_ctl is held.
 */
void sp_rings_state(const struct sp_group *g, struct sp_local *local)
{
	u32 state = sp_local_uapi_state(g, local);
	struct sp_rings *r = local->rings;
	int error = -g->error;

	lockdep_assert_held(&sp_ctl);
	if (!r)
		return;
	if (state == SPINDLE_STATE_EVICTED)
		error = ENOBUFS;
	else if (state == SPINDLE_STATE_MINORITY)
		error = ENETDOWN;
	else if (sp_local_out(local))
		error = 0;
	WRITE_ONCE(r->status->error, error);
	/* Who sees the state sees the error, and what was published last. */
	smp_store_release(&r->status->state, state);
}

/**
 * sp_rings_readable() - poll(): is there anything the program has not seen
 * @local: a member that receives by deliveries
 *
 * Return: true when there is.
 */
bool sp_rings_readable(const struct sp_local *local)
{
	const struct sp_rings *r = local->rings;

	return READ_ONCE(r->status->published) != READ_ONCE(r->user->rx_seen);
}

/**
 * sp_rings_writable() - poll(): is there the room that the program waits for
 * @local: a member that sends by submissions
 *
 * Return: true when there is, or when none of its submissions is taken any
 * more: there is nothing to wait for.
 */
bool sp_rings_writable(const struct sp_local *local)
{
	const struct sp_rings *r = local->rings;
	struct sp_lane_tx *lane = local->lane;
	u64 head = READ_ONCE(r->user->tx_want_head);
	u64 freed = READ_ONCE(r->user->tx_want_freed);
	bool ready;

	spin_lock_bh(&lane->lock);
	ready = r->error || (lane->tx.head >= head && lane->tx.freed >= freed);
	spin_unlock_bh(&lane->lock);
	return ready;
}

static struct sp_rings *sp_rings_alloc(const struct sp_group *g, u32 flags)
{
	gfp_t gfp = SP_GFP_VIEW | __GFP_ZERO;
	struct sp_rings *r;

	BUILD_BUG_ON(sizeof(struct spindle_status) > PAGE_SIZE);
	BUILD_BUG_ON(sizeof(struct spindle_delivery) != sizeof(struct sp_log));
	BUILD_BUG_ON(offsetof(struct spindle_delivery, lane) !=
		     offsetof(struct sp_log, lane));
	BUILD_BUG_ON(offsetof(struct spindle_delivery, pos) !=
		     offsetof(struct sp_log, pos));
	BUILD_BUG_ON(offsetof(struct spindle_delivery, len) !=
		     offsetof(struct sp_log, len));
	BUILD_BUG_ON(offsetof(struct spindle_delivery, flags) !=
		     offsetof(struct sp_log, flags));
	BUILD_BUG_ON(SPINDLE_DELIVERY_FIN != SP_DESC_FIN);
	BUILD_BUG_ON(SPINDLE_PRIVATE != SP_DESC_PRIVATE);
	BUILD_BUG_ON(SPINDLE_UP_TO_DATE != SP_DESC_STATE);
	BUILD_BUG_ON(SPINDLE_UID_SHIFT != SP_DESC_UID_SHIFT);
	BUILD_BUG_ON(SPINDLE_UNIT_SHIFT != SP_UNIT_SHIFT);
	BUILD_BUG_ON(2 * SPINDLE_MAX_WINDOW > 1 << SP_MAP_LANE_SHIFT);
	BUILD_BUG_ON(SPINDLE_MAX_MEMBERS < SP_MAX_MEMBERS);
	BUILD_BUG_ON(SP_MAX_SLOTS != SPINDLE_MAX_LANES);
	BUILD_BUG_ON(SPINDLE_DELIVERY_LANE + 1 < SP_MAX_SLOTS);

	r = kzalloc(sizeof(*r), SP_GFP_VIEW);
	if (!r)
		return NULL;
	r->flags = flags;
	r->user_size = PAGE_ALIGN(struct_size(r->user, submissions,
					      g->config.depth));
	r->status = __vmalloc(PAGE_SIZE, gfp);
	r->user = __vmalloc(r->user_size, gfp);
	r->blank = __vmalloc(PAGE_SIZE, gfp);
	if (r->status && r->user && r->blank)
		return r;
	sp_rings_free(r);
	return NULL;
}

/**
 * sp_rings_free() - free what a member shared with its program
 * @r: that, or NULL; nothing is mapped any more
 *
 * Context: may sleep.
 */
void sp_rings_free(struct sp_rings *r)
{
	if (!r)
		return;
	vfree(r->blank);
	vfree(r->user);
	vfree(r->status);
	kfree(r);
}

/* Both sides begin where sendmsg() and recvmsg() have ended. */
static void sp_rings_begin(struct sp_group *g, struct sp_local *local,
			   struct sp_rings *r)
{
	struct sp_lane_tx *lane = local->lane;
	struct spindle_status *s = r->status;

	BUILD_BUG_ON(SPINDLE_DELIVERY_EVENT != SP_LOG_EVENT);
	BUILD_BUG_ON(SPINDLE_DELIVERY_LANE != SP_LOG_SLOT);
	BUILD_BUG_ON(SPINDLE_DELIVERY_RANK_SHIFT != SP_LOG_RANK_SHIFT);
	/* Who has left may have passed by what was behind its end: see sp_detach_skip(). */
	WRITE_ONCE(local->cursor, min(local->cursor, local->end));
	s->published = min(g->published, local->end);
	s->rx_base = local->cursor;
	r->user->rx_released = local->cursor;
	r->user->rx_seen = local->cursor;
	/* Until the next pass has said otherwise. */
	s->flags = SPINDLE_NEED_WAKEUP;
	if (lane) {
		spin_lock_bh(&lane->lock);
		s->tx_head = lane->tx.head;
		s->tx_freed = lane->tx.freed;
		s->tx_base = lane->tx.now.count;
		s->tx_start = lane->tx.now.tail;
		spin_unlock_bh(&lane->lock);
	}
	/* Pairs with the acquires above: who sees it sees all of it. */
	smp_store_release(&local->rings, r);
	sp_rings_state(g, local);
}

/**
 * sp_rings_map() - give sending, receiving or both over to mapped rings
 * @ss: the socket
 * @flags: SPINDLE_MAP_*
 *
 * Context: may sleep; takes both of the socket's copy locks, sp_ctl and the
 * engine's lock.
 *
 * Return: 0; -EINVAL, -ENOTCONN before the first view, -EACCES when a member
 * that does not send would, -EBUSY the second time or when a detached member
 * would receive so, -ENOMEM, -ENOBUFS when the member was evicted, or what a group
 * that never became active failed with.
 */
int sp_rings_map(struct sp_sock *ss, int flags)
{
	struct sp_group *g = sp_sock_group(ss);
	enum sp_view_state state;
	struct sp_engine *engine;
	struct sp_rings *r;
	int ret = 0;

	if (!flags || (flags & ~SPINDLE_MAP_ALL))
		return -EINVAL;
	state = g ? sp_group_state(g) : SP_VIEW_FORMING;
	if (state == SP_VIEW_FORMING)
		return -ENOTCONN;
	/* Its view was never installed. */
	if (state == SP_VIEW_FAILED && !READ_ONCE(g->current_view))
		return g->error;
	if ((flags & SPINDLE_MAP_TX) && !ss->local.lane)
		return -EACCES;
	r = sp_rings_alloc(g, flags);
	if (!r)
		return -ENOMEM;

	mutex_lock(&ss->tx_lock);
	mutex_lock(&ss->rx_lock);
	mutex_lock(&sp_ctl);
	engine = g->node->sdev->engine;
	sp_engine_lock(engine);
	if (sp_local_evicted(&ss->local))
		ret = -ENOBUFS;
	else if (ss->local.rings ||
		 ((flags & SPINDLE_MAP_RX) && ss->local.queue.on))
		ret = -EBUSY;
	else
		sp_rings_begin(g, &ss->local, r);
	/* Who waits to send or receive by a call is told that it is over. */
	if (!ret)
		ss->sk.sk_state_change(&ss->sk);
	sp_engine_unlock(engine);
	mutex_unlock(&sp_ctl);
	sp_rx_unlock(ss);
	mutex_unlock(&ss->tx_lock);
	if (ret)
		sp_rings_free(r);
	return ret;
}

/* From this slot on there is no lane. */
static u32 sp_lanes_there(struct sp_group *g)
{
	u32 nr = SP_MAX_SLOTS;

	spin_lock_bh(&g->slots_lock);
	while (nr && !g->slots[nr - 1].slab)
		nr--;
	spin_unlock_bh(&g->slots_lock);
	return nr;
}

/**
 * sp_rings_info() - say what mmap() finds where
 * @ss: the socket
 * @info: the answer
 *
 * Return: 0, or -ENOTCONN when there is nothing to map.
 */
int sp_rings_info(const struct sp_sock *ss, struct spindle_rings *info)
{
	struct sp_group *g = sp_sock_group(ss);
	/* Pairs with the release in sp_rings_map(). */
	const struct sp_rings *r = smp_load_acquire(&ss->local.rings);

	memset(info, 0, sizeof(*info));
	if (!r)
		return -ENOTCONN;
	info->status_off = SP_MAP_OFFSET(SP_MAP_STATUS);
	info->user_off = SP_MAP_OFFSET(SP_MAP_USER);
	info->delivery_off = SP_MAP_OFFSET(SP_MAP_DELIVERIES);
	info->own_off = SP_MAP_OFFSET(SP_MAP_OWN);
	info->lane_off = SP_MAP_OFFSET(SP_MAP_LANES);
	info->lane_stride = 1U << SP_MAP_LANE_SHIFT;
	info->status_size = PAGE_SIZE;
	info->user_size = r->user_size;
	info->delivery_size = sp_deliveries_size(g);
	info->window = g->config.window;
	info->depth = g->config.depth;
	info->max_msg = g->config.max_msg;
	info->deliveries = g->core.order.log_size;
	/* Numbers that lanes may have: others may join once somebody has gone. */
	info->lanes = SP_MAX_SLOTS;
	info->lanes_there = sp_lanes_there(g);
	info->lane = -1;
	if (ss->local.lane)
		info->lane = ss->local.lane->slot;
	info->flags = r->flags;
	return 0;
}

/* The pages of a piece of vmalloc() memory into a mapping. */
static int sp_map_vmalloc(struct vm_area_struct *vma, void *from, size_t size)
{
	unsigned long addr = vma->vm_start;
	size_t off;
	int ret = 0;

	for (off = 0; !ret && off < size; off += PAGE_SIZE)
		ret = vm_insert_page(vma, addr + off,
				     vmalloc_to_page(from + off));
	return ret;
}

/* A lane's ring into a mapping, twice back to back. */
static int sp_map_ring(struct vm_area_struct *vma, const struct sp_slab *slab)
{
	u32 n = slab->lay.window >> PAGE_SHIFT;
	unsigned long addr = vma->vm_start;
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < 2 * n; i++)
		ret = vm_insert_page(vma, addr + i * PAGE_SIZE,
				     sp_slab_ring_page(slab, i % n));
	return ret;
}

/* The page of a lane that a fault wants, and those around it that are not there. */
static vm_fault_t sp_lane_map(struct vm_fault *vmf, const struct sp_slab *slab, u32 nr)
{
	u32 pages = slab->lay.window >> PAGE_SHIFT;
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long before, after, i;
	vm_fault_t ret;

	ret = vmf_insert_page(vma, addr, sp_slab_ring_page(slab, nr % pages));
	if (ret != VM_FAULT_NOPAGE)
		return ret;
	before = min_t(unsigned long, nr % SP_MAP_AROUND, (addr - vma->vm_start) >> PAGE_SHIFT);
	after = min_t(unsigned long, SP_MAP_AROUND - nr % SP_MAP_AROUND,
		      (vma->vm_end - addr) >> PAGE_SHIFT);
	addr -= before << PAGE_SHIFT;
	nr -= before;
	/* Whatever fails here has a fault of its own. */
	for (i = 0; i < before + after && ret == VM_FAULT_NOPAGE; i++)
		ret = vmf_insert_page(vma, addr + (i << PAGE_SHIFT),
				      sp_slab_ring_page(slab, (nr + i) % pages));
	return VM_FAULT_NOPAGE;
}

/*
 * A page of another's lane, whichever is in the slot now. The lane stays until the
 * page is in the page table, where sp_rings_forget() and sp_rings_blank() find it.
 */
static vm_fault_t sp_lane_fault(struct vm_fault *vmf)
{
	struct socket *sock = vmf->vma->vm_file->private_data;
	const struct sp_local *local = &sp_sk(sock->sk)->local;
	struct sp_group *g = sp_sock_group(sp_sk(sock->sk));
	u64 off = ((u64)vmf->pgoff << PAGE_SHIFT) - SP_MAP_OFFSET(SP_MAP_LANES);
	u32 nr = (off & ((1U << SP_MAP_LANE_SHIFT) - 1)) >> PAGE_SHIFT;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	const struct sp_slab *slab;

	down_read(&g->map_sem);
	spin_lock_bh(&g->slots_lock);
	slab = g->slots[off >> SP_MAP_LANE_SHIFT].slab;
	spin_unlock_bh(&g->slots_lock);
	if (sp_local_evicted(local))
		ret = vmf_insert_page(vmf->vma, vmf->address & PAGE_MASK,
				      vmalloc_to_page(local->rings->blank));
	else if (slab)
		ret = sp_lane_map(vmf, slab, nr);
	up_read(&g->map_sem);
	return ret;
}

static const struct vm_operations_struct sp_lane_vm_ops = {
	.fault = sp_lane_fault,
};

/**
 * sp_rings_forget() - no program is to see a lane any more that is over
 * @g: the group
 * @slot: the lane's slot, free now; nothing that programs may read lies there
 *
 * Behind it the lane may be freed, and another one may come to the slot. Context:
 * sp_ctl is held, may sleep.
 */
void sp_rings_forget(struct sp_group *g, u32 slot)
{
	loff_t off = SP_MAP_OFFSET(SP_MAP_LANES) + ((loff_t)slot << SP_MAP_LANE_SHIFT);
	struct sp_local *local;
	struct socket *sock;

	lockdep_assert_held(&sp_ctl);
	/* Faults that have seen the lane are over; those to come find the slot free. */
	down_write(&g->map_sem);
	up_write(&g->map_sem);
	list_for_each_entry(local, &g->locals, on_group) {
		if (!sp_rings_mapped(local, SPINDLE_MAP_RX))
			continue;
		/* A socket that is released is off the list before it is taken apart. */
		sock = local->sk->sk_socket;
		unmap_mapping_range(SOCK_INODE(sock)->i_mapping, off,
				    1 << SP_MAP_LANE_SHIFT, 1);
	}
}

/**
 * sp_rings_blank() - a program is to see nothing in others' lanes any more but zeros
 * @g: the group
 * @local: its member, evicted
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_rings_blank(struct sp_group *g, struct sp_local *local)
{
	lockdep_assert_held(&sp_ctl);
	if (!sp_rings_mapped(local, SPINDLE_MAP_RX))
		return;
	/* Faults that have not seen that it is evicted are over. */
	down_write(&g->map_sem);
	up_write(&g->map_sem);
	unmap_mapping_range(SOCK_INODE(local->sk->sk_socket)->i_mapping,
			    SP_MAP_OFFSET(SP_MAP_LANES),
			    (loff_t)SP_MAX_SLOTS << SP_MAP_LANE_SHIFT, 1);
}

/**
 * sp_mmap() - map a region
 * @file: the socket's file, which the mapping holds
 * @sock: the socket
 * @vma: where
 *
 * Return: 0; -ENOTCONN before SPINDLE_MAP, -EINVAL when there is no such
 * region or it is not asked for as a whole and shared, -EACCES when it may
 * not be written or executed, or belongs to a direction that was not given over
 * to mapped rings, -ENOMEM.
 */
int sp_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	struct sp_sock *ss = sp_sk(sock->sk);
	struct sp_group *g = sp_sock_group(ss);
	u64 off = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u32 region = min_t(u64, off >> SP_MAP_REGION_SHIFT, SP_MAP_LANES);
	size_t size = vma->vm_end - vma->vm_start;
	const struct sp_rings *r;
	bool write = false;
	size_t want;

	/* Pairs with the release in sp_rings_map(). */
	r = smp_load_acquire(&ss->local.rings);
	if (!g || !r)
		return -ENOTCONN;
	off -= SP_MAP_OFFSET(region);
	if (off && region != SP_MAP_LANES)
		return -EINVAL;
	switch (region) {
	case SP_MAP_STATUS:
		want = PAGE_SIZE;
		break;
	case SP_MAP_USER:
		want = r->user_size;
		write = true;
		break;
	case SP_MAP_DELIVERIES:
		/* Nothing is kept for who does not say what it has read. */
		if (!(r->flags & SPINDLE_MAP_RX))
			return -EACCES;
		want = sp_deliveries_size(g);
		break;
	case SP_MAP_OWN:
		if (!(r->flags & SPINDLE_MAP_TX))
			return -EACCES;
		want = 2 * g->config.window;
		write = true;
		break;
	case SP_MAP_LANES:
		if (!(r->flags & SPINDLE_MAP_RX))
			return -EACCES;
		if (off & ((1U << SP_MAP_LANE_SHIFT) - 1))
			return -EINVAL;
		off >>= SP_MAP_LANE_SHIFT;
		if (off >= SP_MAX_SLOTS)
			return -EINVAL;
		want = 2 * g->config.window;
		break;
	default:
		return -EINVAL;
	}
	if (size != want || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if ((vma->vm_flags & VM_EXEC) ||
	    (!write && (vma->vm_flags & VM_WRITE)))
		return -EACCES;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTCOPY,
		     VM_MAYEXEC | (write ? 0 : VM_MAYWRITE));

	switch (region) {
	case SP_MAP_STATUS:
		return sp_map_vmalloc(vma, r->status, want);
	case SP_MAP_USER:
		return sp_map_vmalloc(vma, r->user, want);
	case SP_MAP_DELIVERIES:
		return sp_map_vmalloc(vma, g->core.order.log, want);
	case SP_MAP_OWN:
		return sp_map_ring(vma, ss->local.lane->slab);
	default:
		/* Faults insert pages, with the mmap_lock held for read. */
		vm_flags_mod(vma, VM_MIXEDMAP, 0);
		vma->vm_ops = &sp_lane_vm_ops;
		return 0;
	}
}
