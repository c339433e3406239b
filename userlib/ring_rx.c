// SPDX-License-Identifier: MIT
/* Receiving in place: deliveries say where in the senders' rings messages lie. */
#include <errno.h>
#include <string.h>
#include "internal.h"

static const struct spindle_delivery *delivery(const struct spindle *sp, uint64_t entry)
{
	return &sp->map.deliveries[entry & (sp->map.rings.deliveries - 1)];
}

/*
 * Is there a message at the read position? Passes over what is none: a sender's
 * end, and what this library does not know. When nothing before that is held
 * it is released too, so that it never stands in the way of who reads no more.
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
		if (!delivery(sp, rx->next)->flags)
			return true;
		if (rx->released == rx->next)
			rx->released++;
		rx->next++;
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

static void rx_fill(const struct spindle *sp, struct spindle_msg *msg)
{
	const struct spindle_delivery *d = delivery(sp, sp->rx.next);
	uint32_t lane = d->lane % SPINDLE_MAX_MEMBERS;

	*msg = (struct spindle_msg) {
		.data = sp->map.lanes[lane] + spn_offset(&sp->map, d->pos),
		.len = d->len,
		.rank = sp->map.status->rank[lane],
		.seq = d->seq,
		.entry = sp->rx.next,
	};
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
 * Held messages hold up their senders once the rings are full: nothing is lost.
 * Does not wait.
 *
 * Return: 0;
 * -EAGAIN: nothing now;
 * -ENODATA: the end, every sender has shut down and all was read;
 * -EINVAL: @max is 0;
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
	if (!ret) {
		do {
			rx_fill(sp, &msgs[count++]);
			sp->rx.next++;
		} while (count < max && rx_more(sp));
	}
	rx_tell(sp);
	*n = count;
	return ret;
}

static void rx_release(struct spindle *sp, uint64_t entry)
{
	struct spn_rx *rx = &sp->rx;
	uint64_t count = 0, bytes = 0;
	const struct spindle_delivery *d;

	for (; rx->released < rx->next; rx->released++) {
		d = delivery(sp, rx->released);
		if (d->flags)
			continue;
		/* what is no message goes along with what is before it */
		if (rx->released > entry)
			break;
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

/**
 * spindle_recv() - copy the next message and release it
 * @sp: handle that is ready
 * @data: where to; may be NULL when @size is 0
 * @size: how many bytes there may be
 * @msg: what was received, with @data there; may be NULL
 *
 * For who wants the bytes elsewhere anyhow. Does not wait.
 *
 * Return: 0;
 * -EMSGSIZE: it is longer than @size; @msg tells its length, its data is NULL
 *	there, and it stays the next one;
 * -EBUSY: messages that spindle_peek() gave are not released, which this call
 *	would do;
 * else as spindle_peek().
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
	rx_fill(sp, &got);
	if (got.len > size) {
		if (msg) {
			*msg = got;
			msg->data = NULL;
		}
		return -EMSGSIZE;
	}
	if (got.len)
		memcpy(data, got.data, got.len);
	sp->rx.next++;
	spn_add(&sp->rx.copied, got.len);
	rx_release(sp, got.entry);
	if (msg) {
		*msg = got;
		msg->data = data;
	}
	return 0;
}
