// SPDX-License-Identifier: MIT
/* Sending in place: messages are built in the own ring, then submitted. */
#include <errno.h>
#include <string.h>
#include "internal.h"

static struct spindle_submission *submission(struct spindle *sp, uint64_t number)
{
	return &sp->map.user->submissions[number & (sp->map.rings.depth - 1)];
}

/* Why this member cannot send any more, if so. */
static int tx_usable(struct spindle *sp)
{
	const struct spindle_status *status = sp->map.status;
	uint32_t state;
	int err;

	if (!sp->ready)
		return -ENOTCONN;
	if (!sp->map.own)
		return -EACCES;
	state = load_acquire(&status->state);
	if (state == SPINDLE_STATE_FAILED || state == SPINDLE_STATE_EVICTED)
		return spn_group_error(sp);
	/* It may be over by now, and so may the error. */
	if (state == SPINDLE_STATE_MINORITY)
		return -ENETDOWN;
	err = load_relaxed(&status->tx_error);
	if (err)
		return -err;
	if (sp->tx.shut || state == SPINDLE_STATE_CLOSED)
		return -EPIPE;
	return 0;
}

/* The kernel's counters only grow, so the last look is good for what it allows. */
static bool tx_room(struct spindle *sp, uint64_t head, uint64_t freed)
{
	struct spn_tx *tx = &sp->tx;

	if (tx->head < head)
		tx->head = load_acquire(&sp->map.status->tx_head);
	if (tx->freed < freed)
		tx->freed = load_acquire(&sp->map.status->tx_freed);
	return tx->head >= head && tx->freed >= freed;
}

/* Tell poll(2) what the next claim waits for. */
static void tx_want(struct spindle *sp, uint64_t head, uint64_t freed)
{
	struct spn_tx *tx = &sp->tx;

	if (tx->want_head == head && tx->want_freed == freed)
		return;
	tx->want_head = head;
	tx->want_freed = freed;
	store_relaxed(&sp->map.user->tx_want_head, head);
	store_relaxed(&sp->map.user->tx_want_freed, freed);
}

/* Would the claim that was refused last have room, or another answer? */
bool spn_tx_ready(struct spindle *sp)
{
	return tx_usable(sp) || tx_room(sp, sp->tx.want_head, sp->tx.want_freed);
}

/**
 * spindle_claim() - take room for messages in the own ring
 * @sp: handle that is ready
 * @iov: one for each message; on entry @iov_len is the most bytes it may have
 *	(0 to the group's max_msg), on success @iov_base is where to write them
 * @n: number of messages, 1 to depth - 1
 *
 * All or nothing. A message begins at a multiple of SPINDLE_UNIT bytes and is
 * contiguous, at the end of the ring too. The room is the program's until it
 * commits or aborts; nothing else is taken meanwhile, and what stands there
 * goes nowhere. Does not wait.
 *
 * Return: 0;
 * -EAGAIN: no room now, spindle_wait(SPINDLE_WRITABLE) and poll(2) with POLLOUT
 *	wait for just this much;
 * -EMSGSIZE: a message is longer than max_msg;
 * -EINVAL: @n is 0, or more than the ring could ever hold is wanted;
 * -EBUSY: a claim is open;
 * -EPIPE: after spindle_shutdown() or spindle_leave(), or the group is closed;
 * -EACCES: this member does not send;
 * -ENOTCONN: before spindle_ready();
 * the group's error when it has failed, that of a submission the kernel refused, or
 * -ENETDOWN while no majority of the group's nodes is heard.
 */
int spindle_claim(struct spindle *sp, struct iovec *iov, unsigned int n)
{
	const struct spindle_rings *rings = &sp->map.rings;
	struct spn_tx *tx = &sp->tx;
	uint64_t units = 0, room, count, pos;
	unsigned int i;
	int ret;

	ret = tx_usable(sp);
	if (ret)
		return ret;
	if (tx->claimed)
		return -EBUSY;
	if (!n || n >= rings->depth)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > rings->max_msg)
			return -EMSGSIZE;
		units += spn_units(iov[i].iov_len);
	}
	room = rings->window >> SPINDLE_UNIT_SHIFT;
	if (units > room)
		return -EINVAL;

	units += tx->pos;
	units = units > room ? units - room : 0;
	count = sp->map.status->tx_base + tx->tail + n;
	count = count >= rings->depth ? count - (rings->depth - 1) : 0;
	if (!tx_room(sp, units, count)) {
		tx_want(sp, units, count);
		spn_add(&tx->refused, 1);
		return -EAGAIN;
	}
	tx_want(sp, 0, 0);

	pos = tx->pos;
	for (i = 0; i < n; i++) {
		iov[i].iov_base = sp->map.own + spn_offset(&sp->map, pos);
		*submission(sp, tx->tail + i) = (struct spindle_submission) {
			.len = iov[i].iov_len,
		};
		pos += spn_units(iov[i].iov_len);
	}
	tx->claimed = n;
	return 0;
}

/* Close the gaps that shorter messages leave; the claim is contiguous memory. */
static void tx_shrink(struct spindle *sp, unsigned int n, const uint32_t *lens)
{
	unsigned char *from = sp->map.own + spn_offset(&sp->map, sp->tx.pos);
	unsigned char *to = from;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct spindle_submission *sub = submission(sp, sp->tx.tail + i);

		if (to != from)
			memmove(to, from, lens[i]);
		from += spn_units(sub->len) << SPINDLE_UNIT_SHIFT;
		to += spn_units(lens[i]) << SPINDLE_UNIT_SHIFT;
		sub->len = lens[i];
	}
}

/* Send the first @n messages that are claimed, with these flags. */
static int tx_commit(struct spindle *sp, unsigned int n, const uint32_t *lens,
		     uint32_t flags)
{
	struct spn_tx *tx = &sp->tx;
	uint64_t bytes = 0;
	unsigned int i;
	int ret;

	ret = tx_usable(sp);
	if (ret)
		return ret;
	if (!n || n > tx->claimed)
		return -EINVAL;
	if (lens) {
		for (i = 0; i < n; i++)
			if (lens[i] > submission(sp, tx->tail + i)->len)
				return -EINVAL;
		tx_shrink(sp, n, lens);
	}
	for (i = 0; i < n; i++) {
		struct spindle_submission *sub = submission(sp, tx->tail + i);

		sub->flags = flags;
		/* with several the last one says that they are all */
		if (i + 1 < n)
			sub->flags &= ~SPINDLE_UP_TO_DATE;
		bytes += sub->len;
		tx->pos += spn_units(sub->len);
	}
	tx->tail += n;
	tx->claimed = lens ? 0 : tx->claimed - n;
	store_release(&sp->map.user->tx_tail, tx->tail);
	spn_wake_engine(sp, 0, &tx->kicks);
	spn_add(&tx->sent, n);
	spn_add(&tx->sent_bytes, bytes);
	return 0;
}

/**
 * spindle_commit() - send claimed messages
 * @sp: handle
 * @n: how many, the first of those claimed and not yet committed; at least 1
 * @lens: their lengths in bytes, each at most what was claimed for it; NULL: as
 *	claimed
 *
 * With @lens NULL the others of the claim stay open and where they are. With
 * lengths the claim ends here: the others are given up, and a message behind
 * one that needs fewer units of SPINDLE_UNIT bytes than were claimed is moved
 * down to it, which costs a copy. So claim one message when its length is not
 * known beforehand.
 *
 * What is committed is in the ring and will be sent, also if the program ends
 * its handle's life in good order (shutdown, read to the end, close).
 *
 * Return: 0;
 * -EINVAL: @n is 0 or more than is claimed, or a length is more than was claimed
 *	for it; the claim is as before;
 * -EPIPE, -EACCES, -ENOTCONN and the errors of the group or of a submission as
 * in spindle_claim(); nothing was committed, and spindle_abort() is all that can
 * be done with the claim, unless a majority is heard again.
 */
int spindle_commit(struct spindle *sp, unsigned int n, const uint32_t *lens)
{
	return tx_commit(sp, n, lens, 0);
}

/* What the submissions say of a message for one member alone; 0: nothing can. */
static uint32_t tx_private(const struct spindle_to *to)
{
	if (to->flags & ~SPINDLE_UP_TO_DATE || to->uid >> (32 - SPINDLE_UID_SHIFT) ||
	    to->__resv[0] || to->__resv[1])
		return 0;
	return SPINDLE_PRIVATE | to->flags | to->uid << SPINDLE_UID_SHIFT;
}

/**
 * spindle_commit_to() - send claimed messages to one member alone
 * @sp: handle
 * @n: as in spindle_commit()
 * @lens: likewise
 * @to: the member, and whether it is up to date with the last of them
 *
 * They have their places in the order, and in the ring, like all others, but go to that
 * member's node only. When it is in the view no more nobody is given them, and
 * nobody is told.
 *
 * Return: as spindle_commit(), and -EINVAL for a @to that no member can be meant by.
 */
int spindle_commit_to(struct spindle *sp, unsigned int n, const uint32_t *lens,
		      const struct spindle_to *to)
{
	uint32_t flags = tx_private(to);

	return flags ? tx_commit(sp, n, lens, flags) : -EINVAL;
}

/**
 * spindle_abort() - give up what is claimed and not committed
 * @sp: handle
 *
 * Nothing of it is sent. Without a claim it does nothing.
 *
 * Return: 0; -ENOTCONN: before spindle_ready().
 */
int spindle_abort(struct spindle *sp)
{
	if (!sp->ready)
		return -ENOTCONN;
	sp->tx.claimed = 0;
	return 0;
}

static int tx_send(struct spindle *sp, const void *data, size_t len, uint32_t flags)
{
	struct iovec iov = { .iov_len = len };
	int ret;

	ret = spindle_claim(sp, &iov, 1);
	if (ret)
		return ret;
	if (len)
		memcpy(iov.iov_base, data, len);
	ret = tx_commit(sp, 1, NULL, flags);
	if (ret) {
		spindle_abort(sp);
		return ret;
	}
	spn_add(&sp->tx.copied, len);
	return 0;
}

/**
 * spindle_send() - copy a message into the ring and send it
 * @sp: handle that is ready
 * @data: its bytes; may be NULL when @len is 0
 * @len: their number, 0 to the group's max_msg
 *
 * A claim, a copy and a commit for who has the message elsewhere already. Does
 * not wait.
 *
 * Return: 0, or an error of spindle_claim(); nothing was sent then.
 */
int spindle_send(struct spindle *sp, const void *data, size_t len)
{
	return tx_send(sp, data, len, 0);
}

/**
 * spindle_send_to() - copy a message into the ring and send it to one member alone
 * @sp: handle that is ready
 * @data: as in spindle_send()
 * @len: likewise
 * @to: as in spindle_commit_to()
 *
 * Return: 0, or an error of spindle_claim(), or -EINVAL as in spindle_commit_to();
 * nothing was sent then.
 */
int spindle_send_to(struct spindle *sp, const void *data, size_t len,
		    const struct spindle_to *to)
{
	uint32_t flags = tx_private(to);

	return flags ? tx_send(sp, data, len, flags) : -EINVAL;
}
