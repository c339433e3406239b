// SPDX-License-Identifier: MIT
/* Receiving in place: deliveries say where in the senders' rings messages lie. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "internal.h"

static const struct spindle_delivery *delivery(const struct spindle *sp, uint64_t entry)
{
	return &sp->map.deliveries[entry & (sp->map.rings.deliveries - 1)];
}

/* Was the member evicted before what was read so far was read? Then it may be anything. */
static bool rx_evicted(const struct spindle *sp)
{
	load_barrier();
	return load_acquire(&sp->map.status->state) == SPINDLE_STATE_EVICTED;
}

static bool is_event(const struct spindle_delivery *d)
{
	return d->flags == SPINDLE_DELIVERY_EVENT;
}

/* Is it a private message, with nothing about it that this library does not know? */
static bool is_private(const struct spindle_delivery *d)
{
	return (d->flags & SPINDLE_PRIVATE) &&
	       !(d->flags & ((1U << SPINDLE_UID_SHIFT) - 1) &
		 ~(SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE));
}

/* Is it a message, and not for another member alone? */
static bool is_message(const struct spindle *sp, const struct spindle_delivery *d)
{
	return !d->flags || (is_private(d) && d->flags >> SPINDLE_UID_SHIFT == sp->uid);
}

/* Does it say that another member is up to date? */
static bool is_state(const struct spindle *sp, const struct spindle_delivery *d)
{
	return is_private(d) && (d->flags & SPINDLE_UP_TO_DATE) && !is_message(sp, d);
}

/* Is it a message, or an event that the program wants now? */
static bool rx_wants(const struct spindle *sp, const struct spindle_delivery *d)
{
	uint32_t type = is_state(sp, d) ? SPINDLE_EVENT_STATE : d->lane;

	if (is_message(sp, d))
		return true;
	return (is_event(d) || is_state(sp, d)) && type < 32 && sp->rx.wanted >> type & 1;
}

/* Was it given out? What is wanted now may not be what was wanted then. */
static bool rx_given(const struct spindle *sp, uint64_t entry)
{
	uint64_t i = entry & (sp->map.rings.deliveries - 1);

	return !delivery(sp, entry)->flags || sp->map.given[i / 8] >> i % 8 & 1;
}

/*
 * Go behind the delivery at the read position. When it is not given out and
 * nothing before it is held it is released too, so that it never stands in the
 * way of who reads no more.
 */
static void rx_step(struct spindle *sp, bool given)
{
	struct spn_rx *rx = &sp->rx;
	uint64_t i = rx->next & (sp->map.rings.deliveries - 1);

	if (!given)
		sp->map.given[i / 8] &= ~(1U << i % 8);
	else if (delivery(sp, rx->next)->flags)
		sp->map.given[i / 8] |= 1U << i % 8;
	if (!given && rx->released == rx->next)
		rx->released++;
	rx->next++;
}

/*
 * Is there a message or a wanted event at the read position? Passes over what is
 * none: a sender's end, an event that is not wanted, and what this library does
 * not know.
 */
static bool rx_more(struct spindle *sp)
{
	struct spn_rx *rx = &sp->rx;

	for (;;) {
		if (rx->next == rx->published) {
			rx->published = load_acquire(&sp->map.status->published);
			if (rx->next == rx->published)
				return false;
		}
		if (rx_wants(sp, delivery(sp, rx->next)))
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
		spn_wake_engine(sp, SPINDLE_RX_MAY_WAIT, &rx->kicks);
	}
}

/* What to say when there is no message; 0 when there is one after all. */
static int rx_end(struct spindle *sp)
{
	uint32_t state = load_acquire(&sp->map.status->state);

	if (state == SPINDLE_STATE_EVICTED)
		return spn_group_error(sp);
	if (state != SPINDLE_STATE_FAILED && state != SPINDLE_STATE_CLOSED)
		return -EAGAIN;
	/* the state was stored behind the last of published: look again */
	if (rx_more(sp))
		return 0;
	if (rx_evicted(sp))
		return spn_group_error(sp);
	return state == SPINDLE_STATE_FAILED ? spn_group_error(sp) : -ENODATA;
}

/* Is there a message or another answer than to try again? */
bool spn_rx_ready(struct spindle *sp)
{
	bool ready = rx_more(sp) || rx_end(sp) != -EAGAIN;

	rx_tell(sp);
	return ready;
}

/* Describe the message or event at the read position. */
static int rx_fill(struct spindle *sp, struct spindle_msg *msg)
{
	const struct spindle_delivery d = *delivery(sp, sp->rx.next);
	uint32_t lane = d.lane & SPINDLE_DELIVERY_LANE;
	int ret;

	if (rx_evicted(sp))
		return spn_group_error(sp);
	if (!is_message(sp, &d)) {
		bool state = is_state(sp, &d);

		*msg = (struct spindle_msg) {
			.rank = ~0U,
			.seq = d.seq,
			.entry = sp->rx.next,
			.flags = SPINDLE_MSG_EVENT,
			.event = state ? SPINDLE_EVENT_STATE : d.lane,
			.number = state ? d.flags >> SPINDLE_UID_SHIFT : d.pos,
		};
		return 0;
	}
	if (lane >= sp->map.rings.lanes)
		return -EPROTO;
	if (!sp->map.lanes[lane]) {
		ret = spn_map_lane(sp->fd, &sp->map, lane);
		if (ret)
			return ret;
	}
	*msg = (struct spindle_msg) {
		.data = sp->map.lanes[lane] + spn_offset(&sp->map, d.pos),
		.len = d.len,
		.rank = d.lane >> SPINDLE_DELIVERY_RANK_SHIFT,
		.seq = d.seq,
		.entry = sp->rx.next,
		.flags = (d.flags & SPINDLE_PRIVATE ? SPINDLE_MSG_PRIVATE : 0) |
			 (d.flags & SPINDLE_UP_TO_DATE ? SPINDLE_MSG_UP_TO_DATE : 0),
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
 * handle's end, or a failed group's: then too they stay until spindle_close()).
 * Held messages hold up their senders once the rings are full: nothing is lost, unless
 * the group evicts members that do so (evict_ms). Then those that were not released read
 * as zeros: a program that must not take these for a message acts when spindle_release()
 * has said 0.
 * Events that spindle_events() has asked for stand in their place among the
 * messages, with SPINDLE_MSG_EVENT, and are released like them. Does not wait.
 *
 * Return: 0;
 * -EAGAIN: nothing now;
 * -ENODATA: the end, every sender has shut down, or this member has left, and
 * all was read;
 * -EINVAL: @max is 0;
 * -ENOTCONN: before spindle_ready();
 * -ENOMEM: the ring of a sender that is new to this handle cannot be mapped, for want
 *	of memory or by a limit of mmap(2); its message stays the next one, and the
 *	call may be repeated when there is room;
 * -EPROTO: the kernel names a ring that this library does not know;
 * -ENOBUFS: the member was evicted: what it had not released is lost for it;
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
	while (!ret && count < max && rx_more(sp)) {
		ret = rx_fill(sp, &msgs[count]);
		if (ret)
			break;
		count++;
		rx_step(sp, true);
	}
	rx_tell(sp);
	*n = count;
	/* what cannot be mapped now may be the next time */
	return count ? 0 : ret;
}

static void rx_release(struct spindle *sp, uint64_t entry)
{
	struct spn_rx *rx = &sp->rx;
	uint64_t count = 0, bytes = 0;
	const struct spindle_delivery *d;

	for (; rx->released < rx->next; rx->released++) {
		/* what was not given out goes along with what is before it */
		if (!rx_given(sp, rx->released))
			continue;
		if (rx->released > entry)
			break;
		d = delivery(sp, rx->released);
		if (!is_message(sp, d))
			continue;
		count++;
		bytes += d->len;
	}
	rx_tell(sp);
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
 * -ENOBUFS: the member was evicted: what it has read of the messages may have been zeros;
 * -ENOTCONN: before spindle_ready().
 */
int spindle_release(struct spindle *sp, uint64_t entry)
{
	if (!sp->ready)
		return -ENOTCONN;
	if (entry < sp->map.status->rx_base || entry >= sp->rx.next)
		return -EINVAL;
	if (rx_evicted(sp))
		return spn_group_error(sp);
	if (entry >= sp->rx.released)
		rx_release(sp, entry);
	return 0;
}

/* What an event of type STATE says is all in its delivery. */
static int rx_copy_state(void *data, size_t size, struct spindle_msg *msg)
{
	const struct spindle_event event = {
		.type = SPINDLE_EVENT_STATE,
		.number = msg->number,
		.seq = msg->seq,
		.member_size = sizeof(event.member[0]),
	};

	msg->len = sizeof(event);
	if (sizeof(event) > size)
		return -EMSGSIZE;
	memcpy(data, &event, sizeof(event));
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

	if (msg->event == SPINDLE_EVENT_STATE)
		return rx_copy_state(data, size, msg);
	ret = spindle_event(sp, msg->number, &u.event, &len);
	if (ret)
		return ret;
	msg->len = len;
	if (len > size)
		return -EMSGSIZE;
	memcpy(data, &u, len);
	return 0;
}

static int rx_copy(struct spindle *sp, void *data, size_t size, const struct spindle_msg *msg)
{
	if (msg->len > size)
		return -EMSGSIZE;
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
 * else as spindle_peek(), -ENOMEM and -EPROTO of a message that stays the next one,
 *	too; and of an event as spindle_event().
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
	if (rx_evicted(sp))
		return spn_group_error(sp);
	if (sp->rx.released != sp->rx.next)
		return -EBUSY;
	ret = rx_fill(sp, &got);
	if (ret)
		return ret;
	ret = got.event ? rx_copy_event(sp, data, size, &got) : rx_copy(sp, data, size, &got);
	if (rx_evicted(sp))
		return spn_group_error(sp);
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
 * spindle_events() - say which events are wanted among the messages
 * @sp: handle
 * @wanted: SPINDLE_WANT_*; 0, as at first: none
 *
 * Belongs to the receiving thread, and holds for what spindle_peek() has not
 * come to yet. Said before the group is created or joined it misses none.
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
 * spindle_event() - what an event of type VIEW says
 * @sp: handle
 * @number: from &struct spindle_msg
 * @event: where it goes
 * @size: on entry how many bytes there is room for (SPINDLE_EVENT_SIZE always
 *	suffice), on return how many it has
 *
 * A system call, for any thread, while the event is not released.
 *
 * Return: 0;
 * -EINVAL: no room even for an event without members;
 * -ERANGE: too little room; @size says how much is needed;
 * -ENOENT: there is no such event, or it was released;
 * -ENOTCONN: in no group, or there is no view yet.
 */
int spindle_event(struct spindle *sp, uint32_t number, struct spindle_event *event,
		  size_t *size)
{
	socklen_t len = *size < SPINDLE_EVENT_SIZE ? *size : SPINDLE_EVENT_SIZE;
	int ret = 0;

	if (*size < sizeof(*event))
		return -EINVAL;
	memset(event, 0, sizeof(*event));
	event->type = SPINDLE_EVENT_VIEW;
	event->number = number;
	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_EVENT, event, &len))
		ret = -errno;
	if (!ret || ret == -ERANGE)
		*size = len;
	return ret;
}
