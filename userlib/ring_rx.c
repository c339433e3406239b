// SPDX-License-Identifier: MIT
/*
 * Receiving in place: deliveries say where in the senders' rings messages lie.
 * The bytes of large objects lie in none, and are copied out of the kernel, or
 * mapped.
 *
 * A ring is that of a slot, and is mapped when the first message is found
 * there. The kernel gives a slot to another lane only when nothing that lies
 * there is held by anybody, and an event of type VIEW comes before the first
 * message of that lane. So when such an event is passed all rings are unmapped
 * but those that messages are held from: these are still their slots', and
 * remain so at least until the messages are released.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal.h"

/* of an object's flags: the kernel's, which say how it came */
#define OBJECT_BITS	0xe0U

static const struct spindle_delivery *delivery(const struct spindle *sp, uint64_t entry)
{
	return &sp->map.deliveries[entry & (sp->map.rings.deliveries - 1)];
}

static bool is_event(const struct spindle_delivery *d)
{
	return d->flags == SPINDLE_DELIVERY_EVENT;
}

static bool is_object(const struct spindle_delivery *d)
{
	return !is_event(d) && d->flags & SPINDLE_DELIVERY_OBJECT;
}

static uint32_t uid_of(const struct spindle_delivery *d)
{
	return d->flags >> SPINDLE_DELIVERY_UID_SHIFT;
}

/* State for another member: no message, but that it was the last may be news. */
static bool is_foreign(const struct spn_rx *rx, const struct spindle_delivery *d)
{
	return d->flags & SPINDLE_DELIVERY_STATE && uid_of(d) != rx->uid;
}

/* Is what is no plain message for this program? */
static bool rx_wants(const struct spindle *sp, const struct spindle_delivery *d)
{
	const uint32_t state = SPINDLE_DELIVERY_STATE | SPINDLE_DELIVERY_LAST;
	uint32_t low = d->flags & ((1U << SPINDLE_DELIVERY_UID_SHIFT) - 1);
	const struct spn_rx *rx = &sp->rx;

	if (is_event(d))
		return d->lane < 32 && rx->wanted >> d->lane & 1;
	if (is_object(d)) {
		low &= ~(SPINDLE_DELIVERY_OBJECT | OBJECT_BITS);
		if (!low)
			return true;
	}
	if (!(low & SPINDLE_DELIVERY_STATE) || low & ~state || !rx->known)
		return false;
	return !is_foreign(rx, d) ||
	       (low & SPINDLE_DELIVERY_LAST && rx->wanted & SPINDLE_WANT_CURRENT);
}

/* What was wanted may not be what is: so each delivery's answer is kept. */
static void rx_mark(struct spindle *sp, bool given)
{
	uint64_t i = sp->rx.next & (sp->map.rings.deliveries - 1);

	if (given)
		sp->map.given[i / 8] |= 1U << i % 8;
	else
		sp->map.given[i / 8] &= ~(1U << i % 8);
}

static bool rx_given(const struct spindle *sp, uint64_t entry)
{
	uint64_t i = entry & (sp->map.rings.deliveries - 1);

	return !delivery(sp, entry)->flags || sp->map.given[i / 8] >> i % 8 & 1;
}

/*
 * From here on what is read is of the view that this event tells of; of 0, that
 * which the member had read up to when it was mapped. A member's stream begins
 * with the event of the view that took it in.
 */
void spn_rx_view(struct spindle *sp, uint32_t number)
{
	struct spn_rx *rx = &sp->rx;
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	size_t size = sizeof(u);
	uint32_t i;

	rx->view = 0;
	rx->members = 0;
	if (spindle_event(sp, number, &u.event, &size))
		return;
	rx->view = u.event.view;
	for (i = 0; i < u.event.members && i < SPINDLE_MAX_MEMBERS; i++) {
		rx->uids[i] = u.event.member[i].uid;
		if (!(u.event.member[i].flags & SPINDLE_EM_SELF))
			continue;
		rx->uid = rx->uids[i];
		rx->known = true;
	}
	rx->members = i;
}

/* Of the view that is read; ~0 for who is not in it. */
static uint32_t rx_rank(const struct spn_rx *rx, uint32_t uid)
{
	uint32_t i;

	for (i = 0; i < rx->members; i++)
		if (rx->uids[i] == uid)
			return i;
	return ~0U;
}

uint32_t spn_rx_rank(const struct spindle *sp, uint32_t uid)
{
	return rx_rank(&sp->rx, uid);
}

/* Whose rank that is in the view that is read; ~0: nobody's, or it is not known. */
uint32_t spn_rx_uid(const struct spindle *sp, uint32_t rank)
{
	return rank < sp->rx.members ? sp->rx.uids[rank] : ~0U;
}

/* Unmap what was mapped before the last view and holds no message. */
static void rx_sweep(struct spindle *sp)
{
	struct spn_rx *rx = &sp->rx;
	struct spn_lane *lane;
	uint32_t i;

	rx->stale = 0;
	for (i = 0; i < sp->map.rings.lanes; i++) {
		lane = &sp->map.lanes[i];
		if (!lane->ring || lane->views == rx->views)
			continue;
		if (lane->end <= rx->released)
			spn_unmap_lane(&sp->map, i);
		else
			rx->stale++;
	}
}

/* Behind the delivery at the read position. */
static void rx_step(struct spindle *sp, bool given)
{
	const struct spindle_delivery *d = delivery(sp, sp->rx.next);
	struct spn_rx *rx = &sp->rx;

	if (d->flags)
		rx_mark(sp, given);
	if (!given && rx->released == rx->next)
		rx->released++;
	rx->next++;
	if (!is_event(d) || d->lane != SPINDLE_EVENT_VIEW)
		return;
	spn_rx_view(sp, d->pos);
	rx->views++;
	rx_sweep(sp);
}

/*
 * Is there a message at the read position? Passes over what is none: a sender's
 * end, an event that is not wanted, another member's state, and what this
 * library does not know. When nothing before that is held it is released too,
 * so that it never stands in the way of who reads no more.
 */
static bool rx_more(struct spindle *sp)
{
	const struct spindle_delivery *d;
	struct spn_rx *rx = &sp->rx;

	for (;;) {
		if (rx->next == rx->published) {
			rx->published = load_acquire(&sp->map.status->published);
			if (rx->next == rx->published)
				return false;
		}
		d = delivery(sp, rx->next);
		if (!d->flags || rx_wants(sp, d))
			return true;
		rx_step(sp, false);
	}
}

/* Let the kernel know of both positions, as far as they changed. */
static void rx_tell(struct spindle *sp)
{
	struct spn_rx *rx = &sp->rx;

	if (rx->seen != rx->next) {
		rx->seen = rx->next;
		store_relaxed(&sp->map.user->rx_seen, rx->seen);
	}
	if (rx->told != rx->released) {
		rx->told = rx->released;
		store_release(&sp->map.user->rx_released, rx->told);
		spn_wake_engine(sp, &rx->kicks);
	}
}

/* What to say when there is no message; 0 when there is one after all. */
static int rx_end(struct spindle *sp)
{
	uint32_t state = load_acquire(&sp->map.status->state);

	if (state != SPINDLE_STATE_FAILED && state != SPINDLE_STATE_CLOSED)
		return -EAGAIN;
	/* the state was stored behind the last of published: look again */
	if (rx_more(sp))
		return 0;
	return state == SPINDLE_STATE_FAILED ? spn_group_error(sp) : -ENODATA;
}

/* Is there a message or another answer than to try again? */
bool spn_rx_ready(struct spindle *sp)
{
	bool ready = rx_more(sp) || rx_end(sp) != -EAGAIN;

	rx_tell(sp);
	return ready;
}

/* See to it that the ring of the message at the read position is mapped. */
static int rx_map(struct spindle *sp, uint32_t slot)
{
	struct spn_rx *rx = &sp->rx;
	struct spn_lane *lane;
	int ret;

	if (slot >= sp->map.rings.lanes)
		return -EPROTO;
	lane = &sp->map.lanes[slot];
	if (!lane->ring) {
		ret = spn_map_lane(sp->fd, &sp->map, slot);
		if (ret)
			return ret;
	} else if (lane->views != rx->views) {
		/* messages are held from it, so it is still the slot's */
		rx->stale--;
	}
	lane->views = rx->views;
	lane->end = rx->next + 1;
	return 0;
}

static uint32_t msg_flags(uint32_t flags)
{
	return (flags & SPINDLE_DELIVERY_STATE ? SPINDLE_MSG_STATE : 0) |
	       (flags & SPINDLE_DELIVERY_OBJECT ? SPINDLE_MSG_OBJECT : 0) |
	       (flags & SPINDLE_DELIVERY_LAST ? SPINDLE_MSG_LAST : 0);
}

/* Describe the message or event at the read position. */
static int rx_fill(struct spindle *sp, struct spindle_msg *msg)
{
	const struct spindle_delivery *d = delivery(sp, sp->rx.next);
	uint32_t slot = d->lane & SPINDLE_DELIVERY_SLOT;
	const void *data = NULL;
	int ret;

	if (is_event(d)) {
		*msg = (struct spindle_msg) {
			.rank = ~0U,
			.seq = d->seq,
			.entry = sp->rx.next,
			.flags = SPINDLE_MSG_EVENT,
			.event = d->lane,
			.number = d->pos,
		};
		return 0;
	}
	if (is_foreign(&sp->rx, d)) {
		/* the kernel puts no event there: the place says it all */
		*msg = (struct spindle_msg) {
			.rank = rx_rank(&sp->rx, uid_of(d)),
			.seq = d->seq,
			.entry = sp->rx.next,
			.flags = SPINDLE_MSG_EVENT,
			.event = SPINDLE_EVENT_CURRENT,
		};
		return 0;
	}
	if (!is_object(d)) {
		ret = rx_map(sp, slot);
		if (ret)
			return ret;
		data = sp->map.lanes[slot].ring + spn_offset(&sp->map, d->pos);
	}
	*msg = (struct spindle_msg) {
		.data = data,
		.len = d->len,
		.rank = d->lane >> SPINDLE_DELIVERY_RANK_SHIFT,
		.seq = d->seq,
		.entry = sp->rx.next,
		.flags = msg_flags(d->flags),
	};
	return 0;
}

/**
 * spindle_peek() - look at the next messages where they lie
 * @sp: handle that is ready
 * @msgs: where to describe them
 * @max: how many at most; at least 1
 * @n: how many there were; 0 with every error
 *
 * The messages are consecutive in the order, and the next call goes on behind
 * them. Their bytes stay where and as they are until spindle_release() (or the
 * handle's end, or a failed group's: then too they stay until spindle_close(),
 * but for a member that was put out since it did not release them).
 * Held messages hold up their senders once the rings are full: nothing is lost.
 * Events that spindle_events() has asked for stand among the messages, with
 * SPINDLE_MSG_EVENT; so do large objects, with SPINDLE_MSG_OBJECT and a length, but
 * no data: spindle_object_read() copies it. Does not wait; makes a system call when
 * a message is the first of its sender in a view.
 *
 * Return: 0;
 * -EAGAIN: nothing now;
 * -ENODATA: the end, every sender has shut down, or this member has left, and
 * all was read;
 * -EINVAL: @max is 0;
 * -ENOMEM, -EPROTO: a sender's ring cannot be mapped; nothing is lost;
 * -ENOTCONN: before spindle_ready();
 * the group's error when it has failed and all that was delivered was read.
 */
int spindle_peek(struct spindle *sp, struct spindle_msg *msgs, unsigned int max,
		 unsigned int *n)
{
	unsigned int count = 0;
	int ret = 0;

	*n = 0;
	if (!sp->ready)
		return -ENOTCONN;
	if (!max)
		return -EINVAL;
	if (!rx_more(sp))
		ret = rx_end(sp);
	while (!ret) {
		ret = rx_fill(sp, &msgs[count]);
		if (ret)
			break;
		rx_step(sp, true);
		if (++count == max || !rx_more(sp))
			break;
	}
	rx_tell(sp);
	*n = count;
	return count ? 0 : ret;
}

static void rx_release(struct spindle *sp, uint64_t entry)
{
	struct spn_rx *rx = &sp->rx;
	uint64_t count = 0, bytes = 0;
	const struct spindle_delivery *d;

	for (; rx->released < rx->next; rx->released++) {
		/* what was not given goes along with what is before it */
		if (!rx_given(sp, rx->released))
			continue;
		if (rx->released > entry)
			break;
		d = delivery(sp, rx->released);
		if (is_event(d) || is_foreign(rx, d))
			continue;
		count++;
		bytes += d->len;
	}
	rx_tell(sp);
	if (rx->stale)
		rx_sweep(sp);
	spn_add(&rx->received, count);
	spn_add(&rx->received_bytes, bytes);
}

/**
 * spindle_release() - give back a message and all before it
 * @sp: handle
 * @entry: from &struct spindle_msg
 *
 * Cumulative: releasing the last of a batch releases the batch. Their bytes
 * must not be looked at any more. To release what was released already does
 * nothing. Costs a store and a barrier; a system call only when the engine
 * sleeps.
 *
 * Return: 0;
 * -EINVAL: @entry is none that spindle_peek() has given;
 * -ENOTCONN: before spindle_ready().
 */
int spindle_release(struct spindle *sp, uint64_t entry)
{
	if (!sp->ready)
		return -ENOTCONN;
	if (entry < sp->map.status->rx_base || entry >= sp->rx.next)
		return -EINVAL;
	if (entry >= sp->rx.released)
		rx_release(sp, entry);
	return 0;
}

/* Copy the event at the read position. */
static int rx_copy_event(struct spindle *sp, void *data, size_t size, struct spindle_msg *msg)
{
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	size_t len = sizeof(u);
	int ret;

	if (msg->number) {
		ret = spindle_event(sp, msg->number, &u.event, &len);
		if (ret)
			return ret;
	} else {
		/* it was made here */
		len = sizeof(u.event);
		u.event = (struct spindle_event) {
			.type = msg->event,
			.view = sp->rx.view,
			.seq = msg->seq,
			.subject = msg->rank,
		};
	}
	msg->len = len;
	if (len > size)
		return -EMSGSIZE;
	memcpy(data, &u, len);
	return 0;
}

/* The kernel does not give an object that is not there. */
static int rx_object_error(struct spindle *sp)
{
	/* put out: nothing is kept any more */
	if (errno == ENOENT && load_acquire(&sp->map.status->state) == SPINDLE_STATE_FAILED)
		return spn_group_error(sp);
	return -errno;
}

/* A part of an object. */
static int rx_copy_object(struct spindle *sp, uint64_t entry, uint64_t off, void *data,
			  size_t len)
{
	struct spindle_object_read part = {
		.delivery = entry,
		.addr = (uintptr_t)data,
		.off = off,
		.len = len,
	};
	socklen_t size = sizeof(part);

	if (!len)
		return 0;
	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_OBJECT, &part, &size))
		return rx_object_error(sp);
	if (part.len != len)
		return -EPROTO;
	spn_add(&sp->rx.copied, len);
	return 0;
}

static int rx_copy(struct spindle *sp, void *data, size_t size, const struct spindle_msg *msg)
{
	if (msg->len > size)
		return -EMSGSIZE;
	if (msg->flags & SPINDLE_MSG_OBJECT)
		return rx_copy_object(sp, msg->entry, 0, data, msg->len);
	if (msg->len)
		memcpy(data, msg->data, msg->len);
	spn_add(&sp->rx.copied, msg->len);
	return 0;
}

/**
 * spindle_recv() - copy the next message and release it
 * @sp: handle that is ready
 * @data: where to; may be NULL when @size is 0
 * @size: how many bytes there may be
 * @msg: what was received, with @data there; may be NULL
 *
 * For who wants the bytes elsewhere anyhow. Of an event that was asked for
 * @data gets the struct spindle_event, for which SPINDLE_EVENT_SIZE bytes are
 * always enough; @msg says that it is one. Does not wait.
 *
 * Return: 0;
 * -EMSGSIZE: it is longer than @size; @msg tells its length, its data is NULL
 *	there, and it stays the next one;
 * -EBUSY: messages that spindle_peek() gave are not released, which this call
 *	would do;
 * else as spindle_peek(), of an event as spindle_event(), and of a large object as
 * spindle_object_read().
 */
int spindle_recv(struct spindle *sp, void *data, size_t size, struct spindle_msg *msg)
{
	struct spindle_msg got;
	int ret = 0;

	if (!sp->ready)
		return -ENOTCONN;
	if (!rx_more(sp))
		ret = rx_end(sp);
	rx_tell(sp);
	if (ret)
		return ret;
	if (sp->rx.released != sp->rx.next)
		return -EBUSY;
	ret = rx_fill(sp, &got);
	if (ret)
		return ret;
	ret = got.event ? rx_copy_event(sp, data, size, &got) : rx_copy(sp, data, size, &got);
	if (ret && ret != -EMSGSIZE)
		return ret;
	got.data = ret ? NULL : data;
	if (msg)
		*msg = got;
	if (ret)
		return ret;
	rx_step(sp, true);
	rx_release(sp, got.entry);
	return 0;
}

/**
 * spindle_object_read() - copy a part of a large object
 * @sp: handle
 * @msg: from spindle_peek(), not released; or any message
 * @off: from where in it
 * @data: where to; a mapped file, for one
 * @len: so many bytes, which must be in it
 *
 * One system call, and one copy; of a message that is no object a copy alone.
 *
 * Return: 0;
 * -EINVAL: it has no such part, or is an event;
 * -ENOENT: it was released;
 * -EFAULT: @data cannot be written, as in a mapped file that has become shorter or
 * whose disk is full;
 * -ENOTCONN: before spindle_ready();
 * the group's error when this member was put out.
 */
int spindle_object_read(struct spindle *sp, const struct spindle_msg *msg, uint64_t off,
			void *data, size_t len)
{
	if (!sp->ready)
		return -ENOTCONN;
	if (msg->event || off > msg->len || len > msg->len - off)
		return -EINVAL;
	if (msg->flags & SPINDLE_MSG_OBJECT && !msg->data)
		return rx_copy_object(sp, msg->entry, off, data, len);
	if (len)
		memcpy(data, (const unsigned char *)msg->data + off, len);
	spn_add(&sp->rx.copied, len);
	return 0;
}

/* An object that cannot be mapped: its bytes in memory of our own. */
static int rx_object_copied(struct spindle *sp, const struct spindle_msg *msg, void **to)
{
	int ret;

	*to = mmap(NULL, msg->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*to == MAP_FAILED)
		return -errno;
	ret = rx_copy_object(sp, msg->entry, 0, *to, msg->len);
	if (!ret && mprotect(*to, msg->len, PROT_READ))
		ret = -errno;
	if (ret)
		munmap(*to, msg->len);
	return ret;
}

/**
 * spindle_object_map() - the bytes of a large object, without a copy
 * @sp: handle
 * @msg: from spindle_peek(), not released, with SPINDLE_MSG_OBJECT in its flags and
 *	no data
 * @data: the result: @msg->len bytes, to be read only
 *
 * They stay when the message is released, and when the handle is closed, until
 * spindle_object_unmap(). On this node they are in memory once, for all its members,
 * and count as the group's. What a member of this node has sent out of its own memory is
 * copied. Three system calls.
 *
 * Return: 0;
 * -EINVAL: it is no object, or has no bytes;
 * -ENOENT: it was released;
 * -ENOMEM, -EMFILE, -ENFILE: no memory, or no file;
 * -ENOTCONN: before spindle_ready();
 * the group's error when this member was put out.
 */
int spindle_object_map(struct spindle *sp, const struct spindle_msg *msg, const void **data)
{
	struct spindle_object_fd e = { .delivery = msg->entry };
	socklen_t size = sizeof(e);
	void *to;
	int ret;

	if (!sp->ready)
		return -ENOTCONN;
	if (!(msg->flags & SPINDLE_MSG_OBJECT) || msg->data || !msg->len)
		return -EINVAL;
	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_OBJECT_FD, &e, &size)) {
		ret = errno == EOPNOTSUPP ? rx_object_copied(sp, msg, &to) : rx_object_error(sp);
	} else {
		to = mmap(NULL, e.len, PROT_READ, MAP_SHARED, e.fd, 0);
		ret = to == MAP_FAILED ? -errno : 0;
		close(e.fd);
	}
	if (!ret)
		*data = to;
	return ret;
}

/**
 * spindle_object_unmap() - give back the bytes of an object
 * @data: from spindle_object_map()
 * @len: their number, the message's length
 *
 * Any thread may.
 *
 * Return: 0 or -EINVAL.
 */
int spindle_object_unmap(const void *data, size_t len)
{
	return munmap((void *)data, len) ? -errno : 0;
}

/**
 * spindle_events() - say which events are wanted among the messages
 * @sp: handle
 * @wanted: SPINDLE_WANT_*; 0, as at first: none
 *
 * Belongs to the receiving thread, and holds for what that has not been given
 * yet. Said before the group is created or joined it misses none.
 *
 * Return: 0;
 * -EINVAL: an unknown event;
 * other errors of setsockopt(2).
 */
int spindle_events(struct spindle *sp, unsigned int wanted)
{
	int value = wanted;

	if (wanted & ~SPINDLE_WANT_ALL)
		return -EINVAL;
	if (setsockopt(sp->fd, SOL_SPINDLE, SPINDLE_EVENTS, &value, sizeof(value)))
		return -errno;
	sp->rx.wanted = wanted;
	return 0;
}

/**
 * spindle_event() - what an event says
 * @sp: handle
 * @number: from &struct spindle_msg; 0: the event of the view whose messages
 *	came next when the rings were mapped, if the member had read so far
 * @event: where it goes
 * @size: on entry how many bytes there is room for (SPINDLE_EVENT_SIZE always
 *	suffice), on return how many it has
 *
 * A system call, for any thread, while the event is not released.
 *
 * Return: 0;
 * -EINVAL: no room even for an event without members;
 * -ERANGE: too little room, and what fits was written; @size says how much is
 *	needed;
 * -ENOENT: there is no such event, or it was released.
 */
int spindle_event(struct spindle *sp, uint32_t number, struct spindle_event *event,
		  size_t *size)
{
	socklen_t len = *size < SPINDLE_EVENT_SIZE ? *size : SPINDLE_EVENT_SIZE;
	size_t need;
	int ret;

	if (*size < sizeof(*event))
		return -EINVAL;
	memset(event, 0, sizeof(*event));
	event->number = number;
	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_EVENT, event, &len))
		return -errno;
	need = sizeof(*event) +
	       ((size_t)event->members + event->left) * sizeof(event->member[0]);
	ret = need > *size ? -ERANGE : 0;
	*size = need;
	return ret;
}
