// SPDX-License-Identifier: GPL-2.0
/*
 * Large objects of a group: their memory, and how they get from the order to the
 * transfers (rdmc.c) and back.
 *
 * An object takes its turn when it is announced by its descriptor, and is
 * received when all of it is here (design.md, section 4b). So the engine tells
 * that there are new ones, a work makes memory for them and begins their
 * transfers, and the engine asks whether they are here. A view ends all
 * transfers; those of objects that were not delivered in it begin anew.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat/compat.h"
#include "engine.h"
#include "rdmc.h"

#define SP_OBJECTS_BATCH	8	/* memory is made for so many at once */
#define SP_OBJECTS_RETRY_MS	50	/* when there is none */

static void sp_object_free(struct work_struct *work)
{
	struct sp_object *object = container_of(work, struct sp_object, free);

	sp_account_uncharge(object->account, object->slab->lay.size);
	sp_account_put(object->account);
	sp_slab_free(object->slab);
	sp_device_put(object->sdev);
	if (object->pins) {
		if (atomic_dec_and_test(&object->pins->objects))
			wake_up_all(&object->pins->wait);
		sp_pins_put(object->pins);
	}
	kfree(object);
}

/**
 * sp_pins_new() - begin to count the memory of a program that is in objects
 *
 * Return: the count, or NULL.
 */
struct sp_pins *sp_pins_new(void)
{
	struct sp_pins *pins = kzalloc(sizeof(*pins), GFP_KERNEL_ACCOUNT);

	if (!pins)
		return NULL;
	kref_init(&pins->ref);
	init_waitqueue_head(&pins->wait);
	return pins;
}

static void sp_pins_release(struct kref *ref)
{
	kfree(container_of(ref, struct sp_pins, ref));
}

/**
 * sp_pins_put() - drop a reference
 * @pins: the count, or NULL
 */
void sp_pins_put(struct sp_pins *pins)
{
	if (pins)
		kref_put(&pins->ref, sp_pins_release);
}

/* An object whose first @pages are the calling program's at @from. */
static struct sp_object *sp_object_make(const struct sp_group *g, u32 len,
					u32 flags, bool must,
					unsigned long from, u32 pages)
{
	struct sp_layout lay = { .ring_off = PAGE_ALIGN(len) };
	struct sp_device *sdev = g->node->sdev;
	struct sp_object *object;
	int ret;

	lay.size = lay.ring_off;
	ret = sp_account_charge(g->account, lay.size, must);
	if (ret)
		return ERR_PTR(ret);
	atomic_inc(&sdev->objects);
	/* Who removes the device waits for us, or we see that it goes. */
	smp_mb__after_atomic();
	ret = -ENODEV;
	if (READ_ONCE(sdev->dead))
		goto err_device;
	ret = -ENOMEM;
	object = kzalloc(sizeof(*object), GFP_KERNEL_ACCOUNT);
	if (!object)
		goto err_device;
	object->slab = pages ? sp_slab_pin(sdev, &lay, from, pages) :
			       sp_slab_alloc(sdev, &lay, false);
	if (IS_ERR(object->slab)) {
		ret = PTR_ERR(object->slab);
		goto err_free;
	}
	/* From here on it counts by itself. */
	sp_device_object_gone(sdev);
	object->account = sp_account_get(g->account);
	kref_init(&object->ref);
	atomic_set(&object->users, 1);
	kref_get(&sdev->ref);
	object->sdev = sdev;
	object->len = len;
	object->flags = flags;
	INIT_LIST_HEAD(&object->grants);
	INIT_WORK(&object->free, sp_object_free);
	return object;

err_free:
	kfree(object);
err_device:
	sp_device_object_gone(sdev);
	sp_account_uncharge(g->account, lay.size);
	return ERR_PTR(ret);
}

/**
 * sp_object_alloc() - memory for an object
 * @g: its group
 * @len: bytes
 * @flags: SP_DESC_* of its descriptor
 * @must: limits do not count
 *
 * Charged to the calling task's cgroup. Its first user is the caller. Context:
 * may sleep.
 *
 * Return: the object, or an ERR_PTR: as sp_slab_alloc(), as sp_account_charge(),
 * or -ENODEV.
 */
struct sp_object *sp_object_alloc(const struct sp_group *g, u32 len, u32 flags,
				  bool must)
{
	return sp_object_make(g, len, flags, must, 0, 0);
}

static void sp_object_release(struct kref *ref)
{
	queue_work(sp_wq, &container_of(ref, struct sp_object, ref)->free);
}

/**
 * sp_object_put() - drop a reference
 * @object: the object, or NULL
 *
 * Context: any but hard interrupt.
 */
void sp_object_put(struct sp_object *object)
{
	if (object)
		kref_put(&object->ref, sp_object_release);
}

/**
 * sp_object_fill() - copy a new object's bytes from a program
 * @object: the object, that nobody else has
 * @from: they, all of them
 *
 * Context: may sleep.
 *
 * Return: 0 or -EFAULT.
 */
int sp_object_fill(struct sp_object *object, struct iov_iter *from)
{
	size_t off = (size_t)object->slab->pinned << PAGE_SHIFT;
	size_t some;

	for (; off < object->len; off += some) {
		u8 *to;

		some = object->len - off;
		to = sp_slab_piece(object->slab, off, &some);
		if (!copy_from_iter_full(to, some, from))
			return -EFAULT;
	}
	return 0;
}

/**
 * sp_object_pin() - an object of a program's own pages, as far as that can be
 * @g: its group
 * @flags: SP_DESC_* of its descriptor
 * @pins: where that counts
 * @from: the program's bytes. Whole pages of the first piece, if that begins with
 *	a page, are pinned and not copied; all else is copied
 *
 * The program is to leave them as they are until they are not pinned any more:
 * otherwise members may read different bytes. Context: may sleep.
 *
 * Return: the object; NULL when nothing can be pinned, and @from is as it was;
 * or an ERR_PTR, -EFAULT.
 */
struct sp_object *sp_object_pin(const struct sp_group *g, u32 flags,
				struct sp_pins *pins, struct iov_iter *from)
{
	u32 pages = iov_iter_single_seg_count(from) >> PAGE_SHIFT;
	struct sp_object *object;
	unsigned long addr;

	if (!pages || !user_backed_iter(from))
		return NULL;
	addr = sp_iter_addr(from);
	if (!PAGE_ALIGNED(addr))
		return NULL;
	object = sp_object_make(g, iov_iter_count(from), flags, false, addr,
				pages);
	if (IS_ERR(object))
		return NULL;
	kref_get(&pins->ref);
	atomic_inc(&pins->objects);
	object->pins = pins;
	iov_iter_advance(from, (size_t)pages << PAGE_SHIFT);
	if (!sp_object_fill(object, from))
		return object;
	sp_object_unuse(object);
	return ERR_PTR(-EFAULT);
}

/**
 * sp_object_give() - copy a part of an object to where an iterator says
 * @object: the object, that is here
 * @off: where the part begins
 * @len: its bytes
 * @to: where they go
 *
 * Context: may sleep if @to may.
 *
 * Return: 0 or -EFAULT.
 */
int sp_object_give(const struct sp_object *object, size_t off, size_t len,
		   struct iov_iter *to)
{
	while (len) {
		size_t some = len;
		const u8 *from = sp_slab_piece(object->slab, off, &some);

		if (copy_to_iter(from, some, to) != some)
			return -EFAULT;
		off += some;
		len -= some;
	}
	return 0;
}

/**
 * sp_object_read() - copy a part of an object to a program
 * @object: the object, that is here
 * @off: where the part begins
 * @len: its bytes
 * @to: where they go
 *
 * Context: may sleep.
 *
 * Return: 0 or -EFAULT.
 */
int sp_object_read(const struct sp_object *object, size_t off, size_t len,
		   u8 __user *to)
{
	while (len) {
		size_t some = len;
		const u8 *from = sp_slab_piece(object->slab, off, &some);

		if (copy_to_user(to, from, some))
			return -EFAULT;
		off += some;
		to += some;
		len -= some;
	}
	return 0;
}

/**
 * sp_object_copy() - copy the beginning of an object
 * @object: the object, that is here
 * @to: where it goes
 * @len: so many bytes
 *
 * Context: any.
 */
void sp_object_copy(const struct sp_object *object, u8 *to, size_t len)
{
	size_t off, some;

	for (off = 0; off < len; off += some) {
		const u8 *from;

		some = len - off;
		from = sp_slab_piece(object->slab, off, &some);
		memcpy(to + off, from, some);
	}
}

/**
 * sp_object_use() - need an object mapped for the device
 * @object: the object, of which the caller's is not the last use
 *
 * Return: it, held.
 */
struct sp_object *sp_object_use(struct sp_object *object)
{
	kref_get(&object->ref);
	atomic_inc(&object->users);
	return object;
}

/**
 * sp_object_unuse() - undo sp_object_use(), or give up a new object
 * @object: the object
 *
 * Without users the device can go; what is in it can still be read.
 *
 * Context: process.
 */
void sp_object_unuse(struct sp_object *object)
{
	if (atomic_dec_and_test(&object->users))
		sp_slab_unmap(object->slab);
	sp_object_put(object);
}

static struct sp_lane_object *sp_lane_object(struct sp_slot_lane *lane, u64 count)
{
	u32 i;

	lockdep_assert_held(&lane->objects_lock);
	for (i = 0; i < ARRAY_SIZE(lane->objects); i++)
		if (lane->objects[i].object &&
		    (u32)lane->objects[i].count == (u32)count)
			return &lane->objects[i];
	return NULL;
}

/**
 * sp_lane_object_add() - an object belongs to a descriptor of a lane
 * @lane: the lane
 * @count: number of the descriptor
 * @object: the object; the caller's reference becomes the lane's
 *
 * Context: any but interrupts.
 *
 * Return: 0; -EEXIST when it has one; -ENOBUFS when its lane has too many;
 * -ESHUTDOWN when the group is at its end.
 */
int sp_lane_object_add(struct sp_slot_lane *lane, u64 count,
		       struct sp_object *object)
{
	int ret = -ENOBUFS;
	u32 i;

	spin_lock(&lane->objects_lock);
	if (lane->sealed || sp_lane_object(lane, count)) {
		ret = lane->sealed ? -ESHUTDOWN : -EEXIST;
		goto unlock;
	}
	for (i = 0; i < ARRAY_SIZE(lane->objects); i++) {
		struct sp_lane_object *lo = &lane->objects[i];

		if (lo->object)
			continue;
		lo->count = count;
		lo->object = object;
		lo->view = 0;
		lo->stable = false;
		lo->unused = false;
		atomic_inc(&lane->g->nobjects);
		ret = 0;
		break;
	}
unlock:
	spin_unlock(&lane->objects_lock);
	return ret;
}

/**
 * sp_lane_object_get() - the object of a descriptor, held
 * @lane: the lane
 * @count: number of the descriptor, low half
 *
 * Context: any but interrupts.
 *
 * Return: the object, or NULL: it was given back, as nobody needs it.
 */
struct sp_object *sp_lane_object_get(struct sp_slot_lane *lane, u32 count)
{
	struct sp_object *object = NULL;
	struct sp_lane_object *lo;

	spin_lock(&lane->objects_lock);
	lo = sp_lane_object(lane, count);
	if (lo) {
		object = lo->object;
		kref_get(&object->ref);
	}
	spin_unlock(&lane->objects_lock);
	return object;
}

/**
 * sp_lane_object_room() - can a lane have one more object
 * @lane: the lane
 *
 * Return: false when some that were consumed are still on their way out.
 */
bool sp_lane_object_room(struct sp_slot_lane *lane)
{
	u32 n = 0;
	u32 i;

	spin_lock(&lane->objects_lock);
	for (i = 0; i < ARRAY_SIZE(lane->objects); i++)
		n += !lane->objects[i].object;
	spin_unlock(&lane->objects_lock);
	return n;
}

/* Of a lane without any, the next one is needed for anything to go on. */
static bool sp_lane_objects_none(struct sp_slot_lane *lane)
{
	bool none = true;
	u32 i;

	spin_lock(&lane->objects_lock);
	for (i = 0; i < ARRAY_SIZE(lane->objects); i++)
		none = none && !lane->objects[i].object;
	spin_unlock(&lane->objects_lock);
	return none;
}

/* Take out the objects of descriptors below @upto that are not on their way. */
static u32 sp_lane_objects_reap(struct sp_slot_lane *lane, u64 upto, u64 view)
{
	struct sp_object *done[ARRAY_SIZE(lane->objects)];
	bool used[ARRAY_SIZE(lane->objects)];
	u32 n = 0;
	u32 i;

	spin_lock(&lane->objects_lock);
	for (i = 0; i < ARRAY_SIZE(lane->objects); i++) {
		struct sp_lane_object *lo = &lane->objects[i];

		if (!lo->object || lo->count >= upto || lo->view == view)
			continue;
		used[n] = !lo->unused;
		done[n++] = lo->object;
		lo->object = NULL;
	}
	spin_unlock(&lane->objects_lock);
	for (i = 0; i < n; i++) {
		if (used[i])
			sp_object_unuse(done[i]);
		else
			sp_object_put(done[i]);
	}
	atomic_sub(n, &lane->g->nobjects);
	return n;
}

/**
 * sp_objects_commit() - give the next turn of an own lane to an object
 * @lane: the lane; sp_tx_space_object() and sp_lane_object_room() said that
 *	there is room
 * @object: the object, all of it there; the caller's reference becomes the lane's
 * @flags: SP_DESC_*
 *
 * Context: the lane's lock is held.
 *
 * Return: 0, or -ENOBUFS: another sender of the lane was faster.
 */
int sp_objects_commit(struct sp_slot_lane *lane, struct sp_object *object,
		      u32 flags)
{
	struct sp_tx *tx = &lane->tx.tx;
	int ret;

	lockdep_assert_held(&lane->tx.lock);
	object->here = true;
	ret = sp_lane_object_add(lane, tx->now.count, object);
	if (!ret)
		sp_tx_commit(tx, object->len, flags);
	return ret;
}

/**
 * sp_lane_objects_unmap() - a lane's objects need the device no longer
 * @lane: the lane of a group at its end. What is in them can still be read, and
 *	no more come
 *
 * Context: process.
 */
void sp_lane_objects_unmap(struct sp_slot_lane *lane)
{
	u32 i;

	spin_lock(&lane->objects_lock);
	lane->sealed = true;
	for (i = 0; i < ARRAY_SIZE(lane->objects); i++) {
		struct sp_lane_object *lo = &lane->objects[i];
		struct sp_object *object = lo->object;

		if (!object || lo->unused)
			continue;
		/* Nobody begins to use it any more. */
		lo->unused = true;
		kref_get(&object->ref);
		spin_unlock(&lane->objects_lock);
		sp_object_unuse(object);
		spin_lock(&lane->objects_lock);
	}
	spin_unlock(&lane->objects_lock);
}

/**
 * sp_lane_objects_drop() - give back all objects of a lane
 * @lane: the lane; nobody reads from it any more
 */
void sp_lane_objects_drop(struct sp_slot_lane *lane)
{
	sp_lane_objects_reap(lane, ~0ULL, 0);
	sp_lane_objects_reap(lane, ~0ULL, ~0ULL);
}

/**
 * sp_objects_kick() - there may be transfers to begin, or to end
 * @g: the group
 *
 * Context: any.
 */
void sp_objects_kick(struct sp_group *g)
{
	kref_get(&g->ref);
	if (!mod_delayed_work(sp_wq, &g->objects, 0))
		return;
	/* It was queued, and has its reference. */
	sp_group_put(g);
}

/* sp_shell_ops.object_new */
void sp_objects_new(struct sp_core *c, u32 rank)
{
	struct sp_group *g = container_of(c, struct sp_group, core);

	sp_objects_kick(g);
}

/* sp_shell_ops.object_here */
bool sp_objects_here(struct sp_core *c, u32 rank, u64 count)
{
	struct sp_group *g = container_of(c, struct sp_group, core);
	struct sp_slot_lane *lane = g->slots[c->order.slot[rank]];
	struct sp_lane_object *lo;
	bool here;

	spin_lock(&lane->objects_lock);
	lo = sp_lane_object(lane, count);
	/* J in rdmc.h. */
	here = lo && smp_load_acquire(&lo->object->here);
	spin_unlock(&lane->objects_lock);
	return here;
}

/* Has every node received a message of a lane of the view? */
static bool sp_objects_stable(const struct sp_order *o, u32 rank, u64 count,
			      s64 received)
{
	const struct sp_lane *lane = sp_order_lane(o, rank);
	const struct sp_desc *d = &lane->desc[count & (o->depth - 1)];
	u64 index = sp_extend32(lane->seen.round, d->index);

	return index < lane->base ||
	       o->start + sp_seq(index - lane->base, o->nlanes, rank) <= received;
}

/**
 * sp_objects_reap() - give back the objects that nobody needs, and note which
 * every node has
 * @g: the group, in which there were some
 *
 * Context: the engine's lock is held.
 */
void sp_objects_reap(struct sp_group *g)
{
	const struct sp_order *o = &g->core.order;
	s64 received = o->nodes[0].received;
	bool stable = false;
	bool room = false;
	u32 i, k;

	for (i = 1; i < o->nnodes; i++)
		received = min(received, o->nodes[i].received);
	for (i = 0; i < o->nlanes; i++) {
		struct sp_slot_lane *lane = g->slots[o->slot[i]];

		spin_lock(&lane->objects_lock);
		for (k = 0; k < ARRAY_SIZE(lane->objects); k++) {
			struct sp_lane_object *lo = &lane->objects[k];

			if (!lo->object || lo->stable || !lo->view ||
			    !sp_objects_stable(o, i, lo->count, received))
				continue;
			lo->stable = true;
			stable = true;
		}
		spin_unlock(&lane->objects_lock);
	}
	for (i = 0; i < SP_MAX_SLOTS; i++) {
		struct sp_slot_lane *lane = g->slots[i];

		if (!lane)
			continue;
		/* Of an own lane the slowest reader anywhere counts. */
		if (!sp_lane_objects_reap(lane, lane->own ?
					  READ_ONCE(lane->tx.tx.freed) :
					  o->lanes[i].freed, g->core.view))
			continue;
		if (lane->own)
			room = true;
		else if (o->lanes[i].seen.count != o->lanes[i].now.count)
			stable = true;
	}
	if (room)
		sp_group_wake_members(g, false, true);
	if (stable)
		sp_objects_kick(g);
}

/* An object that was announced, and has no memory here yet. */
struct sp_object_wanted {
	u32 slot;
	u32 uid;
	u32 rank;
	u64 count;
	u32 len;
	u32 flags;
	bool must;
	struct sp_object *object;
};

/* The objects of peers that were announced. Under the engine's lock. */
static u32 sp_objects_wanted(struct sp_group *g, struct sp_object_wanted *want)
{
	const struct sp_order *o = &g->core.order;
	bool must;
	u32 n = 0;
	u32 rank;
	u64 at;

	for (rank = 0; rank < o->nlanes; rank++) {
		const struct sp_lane *l = sp_order_lane(o, rank);
		struct sp_slot_lane *lane = g->slots[o->slot[rank]];

		/* When there is room again we are told: sp_objects_reap(). */
		if (lane->own || !sp_lane_object_room(lane))
			continue;
		must = sp_lane_objects_none(lane);
		for (at = l->now.count; at != l->seen.count; at++) {
			const struct sp_desc *d = &l->desc[at & (o->depth - 1)];
			bool known;

			if (!(d->flags & SP_DESC_OBJECT))
				continue;
			spin_lock(&lane->objects_lock);
			known = sp_lane_object(lane, at);
			spin_unlock(&lane->objects_lock);
			if (known)
				continue;
			want[n++] = (struct sp_object_wanted){
				.slot = o->slot[rank], .uid = lane->uid,
				.rank = rank, .count = at, .len = d->len,
				.flags = d->flags, .must = must,
			};
			must = false;
			if (n == SP_OBJECTS_BATCH)
				return n;
		}
	}
	return n;
}

/*
 * A node that is in the view no more may still write to what has come of an
 * object: that is left to it, and memory is made anew.
 */
static bool sp_objects_renew(struct sp_group *g, struct sp_slot_lane *lane,
			     struct sp_lane_object *lo, struct sp_object *object)
{
	bool used = false;

	if (READ_ONCE(object->here) || sp_rdmc_fenced(g, object))
		return false;
	spin_lock(&lane->objects_lock);
	if (lo->object == object && !lo->unused) {
		lo->object = NULL;
		used = true;
		atomic_dec(&g->nobjects);
	}
	spin_unlock(&lane->objects_lock);
	if (used)
		sp_object_unuse(object);
	sp_objects_kick(g);
	return true;
}

/*
 * Begin what has not begun in this view, and end what every node has. What was
 * delivered in order every node has.
 */
static int sp_objects_transfers(struct sp_group *g)
{
	const struct sp_order *o = &g->core.order;
	u32 rank, k;
	int ret;

	lockdep_assert_held(&sp_ctl);
	for (rank = 0; rank < o->nlanes; rank++) {
		struct sp_slot_lane *lane = g->slots[o->slot[rank]];
		u64 taken = READ_ONCE(sp_order_lane(o, rank)->taken);

		for (k = 0; k < ARRAY_SIZE(lane->objects); k++) {
			struct sp_lane_object *lo = &lane->objects[k];
			struct sp_object *object = NULL;
			bool stable, gone;
			u64 count;

			spin_lock(&lane->objects_lock);
			count = lo->count;
			stable = lo->stable;
			if (lo->object && stable && lo->view == g->view.id) {
				/* Ended, and not to be begun again. */
				lo->view = ~0ULL;
			} else if (lo->object && !stable && lo->view != g->view.id &&
				   (count >= taken || o->plain)) {
				object = sp_object_use(lo->object);
				stable = false;
			} else {
				spin_unlock(&lane->objects_lock);
				continue;
			}
			spin_unlock(&lane->objects_lock);
			if (stable) {
				sp_rdmc_end(g, rank, count);
				sp_group_kick(g);
				continue;
			}
			if (sp_objects_renew(g, lane, lo, object)) {
				sp_object_unuse(object);
				continue;
			}
			ret = sp_rdmc_start(g, rank, count, object);
			spin_lock(&lane->objects_lock);
			gone = lo->object != object;
			if (!ret && !gone)
				lo->view = g->view.id;
			spin_unlock(&lane->objects_lock);
			/* Every node had it already, and its readers were done. */
			if (!ret && gone)
				sp_rdmc_end(g, rank, count);
			sp_object_unuse(object);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* Memory for objects, without any lock. */
static int sp_objects_make(struct sp_group *g, struct sp_object_wanted *want,
			   u32 n)
{
	struct mem_cgroup *old = sp_charge_to(g->memcg);
	int ret = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		struct sp_object *object;

		object = sp_object_alloc(g, want[i].len, want[i].flags,
					 want[i].must);
		if (!IS_ERR(object)) {
			want[i].object = object;
			continue;
		}
		ret = PTR_ERR(object);
		pr_warn_ratelimited("spindle: %s: group %s: no memory for an object of %u bytes: error %d\n",
				    g->node->name, g->name, want[i].len, ret);
		break;
	}
	sp_charge_to(old);
	return ret;
}

/* Give them to their lanes, if these are still there and have room. */
static int sp_objects_place(struct sp_group *g, struct sp_object_wanted *want,
			    u32 n)
{
	int ret = 0;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	for (i = 0; i < n; i++) {
		struct sp_slot_lane *lane = g->slots[want[i].slot];
		int error = 0;

		if (!want[i].object)
			continue;
		if (!g->ending && lane && !lane->dead &&
		    lane->uid == want[i].uid) {
			error = sp_lane_object_add(lane, want[i].count,
						   want[i].object);
			if (!error)
				continue;
		}
		if (error == -ENOBUFS)
			ret = error;
		sp_object_unuse(want[i].object);
	}
	return ret;
}

static bool sp_objects_active(const struct sp_group *g)
{
	return g->ready && !g->ending && g->node->sdev->engine;
}

/**
 * sp_objects_work() - make memory for objects, begin and end their transfers
 * @work: @objects of a group, of which it has a reference
 *
 * Context: may sleep.
 */
void sp_objects_work(struct work_struct *work)
{
	struct sp_group *g = container_of(to_delayed_work(work),
					  struct sp_group, objects);
	struct sp_object_wanted want[SP_OBJECTS_BATCH];
	struct sp_device *sdev = g->node->sdev;
	u32 delay = 0;
	u32 n = 0;
	int ret = 0;

	mutex_lock(&sp_ctl);
	if (!sp_objects_active(g)) {
		mutex_unlock(&sp_ctl);
		goto out;
	}
	mutex_lock(&sdev->engine->lock);
	n = sp_objects_wanted(g, want);
	mutex_unlock(&sdev->engine->lock);
	/* What is made keeps the device, and so does the making. */
	atomic_inc(&sdev->objects);
	mutex_unlock(&sp_ctl);

	if (n)
		ret = sp_objects_make(g, want, n);
	if (ret)
		delay = SP_OBJECTS_RETRY_MS;

	mutex_lock(&sp_ctl);
	ret = sp_objects_place(g, want, n) ?: ret;
	if (sp_objects_active(g) && !g->core.wedged)
		ret = sp_objects_transfers(g) ?: ret;
	if (ret)
		delay = SP_OBJECTS_RETRY_MS;
	if (sp_objects_active(g) && (delay || n == SP_OBJECTS_BATCH)) {
		kref_get(&g->ref);
		if (!queue_delayed_work(sp_wq, &g->objects,
					msecs_to_jiffies(delay)))
			sp_group_put(g);
	}
	/* A device that goes away waits for it. */
	sp_device_object_gone(sdev);
	mutex_unlock(&sp_ctl);
out:
	sp_group_put(g);
}

/**
 * sp_objects_choose() - how a message to a group is sent
 * @g: the group
 * @len: bytes of the message
 * @wish: see &struct sp_choose
 * @always: likewise
 * @choice: the result
 *
 * Who holds no lock may get what was right a moment ago, which does no harm:
 * what was chosen travels with the message.
 */
void sp_objects_choose(const struct sp_group *g, u32 len, u32 wish, bool always,
		       struct sp_choice *choice)
{
	const struct sp_choose by = {
		.len = len,
		.max_msg = g->config.max_msg,
		.nodes = READ_ONCE(g->view.nnodes),
		.racks = READ_ONCE(g->racks),
		.kind = g->config.kind,
		.wish = wish,
		.always = always,
		.block = g->config.block,
	};

	sp_choose(&by, choice);
}
