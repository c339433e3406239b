// SPDX-License-Identifier: MIT
/*
 * Sending: in place, where messages are built in the own ring and then submitted;
 * or by system calls, as large objects always are. What was submitted before such a
 * call comes before it: the kernel takes it first.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include "internal.h"

#define PACE_MIN	200000LL	/* ns between two tries to send an object */
#define PACE_MAX	5000000LL

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
		return spn_sends_directly(sp) ? -EOPNOTSUPP : -EACCES;
	state = load_acquire(&status->state);
	if (state == SPINDLE_STATE_FAILED)
		return spn_group_error(sp);
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

/*
 * How long to wait before the next try, in ns: poll(2) tells of room in the ring,
 * which an object does not need.
 */
int64_t spn_tx_pause(struct spindle *sp)
{
	int64_t left;

	if (!sp->tx.refused || !sp->tx.pace)
		return 0;
	left = sp->tx.retry - spn_now();
	return left > 0 ? left : 0;
}

/* Would what was refused last have room, or another answer? */
bool spn_tx_ready(struct spindle *sp)
{
	if (sp->tx.shut || (!spn_sends_directly(sp) && tx_usable(sp)))
		return true;
	if (spn_sends_directly(sp) || sp->tx.refused)
		return !sp->tx.refused || (!spn_tx_pause(sp) && spn_poll(sp, POLLOUT, 0));
	return tx_room(sp, sp->tx.want_head, sp->tx.want_freed);
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
 * -EPIPE: after spindle_shutdown(), or the group is closed;
 * -EACCES: this member does not send;
 * -EOPNOTSUPP: it sends by system calls, see spindle_map();
 * -ENOTCONN: before spindle_ready();
 * the group's error when it has failed, or that of a submission the kernel
 * refused.
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
	tx->refused = false;
	if (!tx_room(sp, units, count)) {
		tx_want(sp, units, count);
		spn_add(&tx->refusals, 1);
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
 * -EPIPE, -EACCES, -EOPNOTSUPP, -ENOTCONN and the errors of the group or of a submission as
 * in spindle_claim(); nothing was committed, and spindle_abort() is all that can
 * be done with the claim.
 */
int spindle_commit(struct spindle *sp, unsigned int n, const uint32_t *lens)
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
		uint32_t len = submission(sp, tx->tail + i)->len;

		bytes += len;
		tx->pos += spn_units(len);
	}
	tx->tail += n;
	tx->claimed = lens ? 0 : tx->claimed - n;
	store_release(&sp->map.user->tx_tail, tx->tail);
	spn_wake_engine(sp, &tx->kicks);
	spn_add(&tx->sent, n);
	spn_add(&tx->sent_bytes, bytes);
	return 0;
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

static int tx_refused(struct spindle *sp, size_t len)
{
	struct spn_tx *tx = &sp->tx;

	tx->refused = true;
	if (len <= sp->map.rings.max_msg) {
		tx->pace = 0;
	} else {
		tx->pace = tx->pace ? tx->pace * 2 : PACE_MIN;
		if (tx->pace > PACE_MAX)
			tx->pace = PACE_MAX;
		tx->retry = spn_now() + tx->pace;
	}
	spn_add(&tx->refusals, 1);
	return -EAGAIN;
}

static size_t iov_len(const struct iovec *iov, unsigned int n)
{
	size_t len = 0;

	while (n--)
		len += iov++->iov_len;
	return len;
}

/* Send a message by a system call, with a control message of @type. */
static int tx_call(struct spindle *sp, const struct iovec *iov, unsigned int n, int type,
		   const void *control, size_t size)
{
	union {
		struct cmsghdr hdr;
		unsigned char room[CMSG_SPACE(16)];
	} u = { .room = { 0 } };
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	size_t len = iov_len(iov, n);
	ssize_t ret;

	if (!sp->ready)
		return -ENOTCONN;
	if (!spn_sends_directly(sp)) {
		int unusable = tx_usable(sp);

		if (unusable)
			return unusable;
		/* an object takes a turn, which the claim may need */
		if (sp->tx.claimed)
			return -EBUSY;
		/* so that the kernel sees when a claim waits for something again */
		tx_want(sp, 0, 0);
	}
	if (sp->tx.shut)
		return -EPIPE;
	if (control) {
		u.hdr.cmsg_level = SOL_SPINDLE;
		u.hdr.cmsg_type = type;
		u.hdr.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&u.hdr), control, size);
		msg.msg_control = &u;
		msg.msg_controllen = CMSG_SPACE(size);
	}
	ret = sendmsg(sp->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (ret < 0)
		return errno == EAGAIN ? tx_refused(sp, len) : -errno;
	sp->tx.refused = false;
	sp->tx.pace = 0;
	spn_add(&sp->tx.sent, 1);
	spn_add(&sp->tx.sent_bytes, len);
	spn_add(&sp->tx.copied, len);
	return 0;
}

/* Copy the pieces of a message into the ring. */
static int tx_gather(struct spindle *sp, const struct iovec *iov, unsigned int n)
{
	struct iovec to = { .iov_len = iov_len(iov, n) };
	size_t len = to.iov_len;
	unsigned char *at;
	int ret;

	ret = spindle_claim(sp, &to, 1);
	if (ret)
		return ret;
	for (at = to.iov_base; n--; at += iov++->iov_len)
		if (iov->iov_len)
			memcpy(at, iov->iov_base, iov->iov_len);
	ret = spindle_commit(sp, 1, NULL);
	if (ret)
		spindle_abort(sp);
	else
		spn_add(&sp->tx.copied, len);
	return ret;
}

static int tx_copy(struct spindle *sp, const void *data, size_t len, uint32_t flags)
{
	struct iovec iov = { .iov_len = len };
	int ret;

	if (spn_sends_directly(sp) || len > sp->map.rings.max_msg) {
		const struct spindle_state state = {
			.uid = flags >> SPINDLE_DELIVERY_UID_SHIFT,
			.flags = flags & SPINDLE_DELIVERY_LAST ? SPINDLE_INFO_LAST : 0,
		};

		iov.iov_base = (void *)data;
		return tx_call(sp, &iov, 1, SPINDLE_CMSG_STATE, flags ? &state : NULL,
			       sizeof(state));
	}
	ret = spindle_claim(sp, &iov, 1);
	if (ret)
		return ret;
	if (len)
		memcpy(iov.iov_base, data, len);
	submission(sp, sp->tx.tail)->flags = flags;
	ret = spindle_commit(sp, 1, NULL);
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
 * @len: their number, 0 to the group's max_msg, or to its max_object
 *
 * A claim, a copy and a commit for who has the message elsewhere already; or, for
 * what is longer than max_msg and by spindle_map(), a system call. Does not wait. When
 * an object was refused, spindle_wait() for room may return before there is enough.
 *
 * Return: 0, or an error of spindle_claim(), or of send(2) in spindle(7); nothing
 * was sent then.
 */
int spindle_send(struct spindle *sp, const void *data, size_t len)
{
	return tx_copy(sp, data, len, 0);
}

/**
 * spindle_state_send() - send state to one member
 * @sp: handle that is ready
 * @uid: the member's number, from the event of the view that took it in
 * @data: the bytes; may be NULL when @len is 0
 * @len: their number, as for spindle_send()
 * @flags: SPINDLE_INFO_LAST: nothing follows, the member is up to date; or 0
 *
 * As spindle_send(), and in its place in the order, but no other member is given
 * it. What is for a member that is gone is for nobody.
 *
 * Return: 0; -EINVAL: no such @uid can be, or unknown @flags; else as
 * spindle_send().
 */
int spindle_state_send(struct spindle *sp, uint32_t uid, const void *data, size_t len,
		       unsigned int flags)
{
	uint32_t how = SPINDLE_DELIVERY_STATE | uid << SPINDLE_DELIVERY_UID_SHIFT;

	if (uid > UINT32_MAX >> SPINDLE_DELIVERY_UID_SHIFT || flags & ~SPINDLE_INFO_LAST)
		return -EINVAL;
	if (flags & SPINDLE_INFO_LAST)
		how |= SPINDLE_DELIVERY_LAST;
	return tx_copy(sp, data, len, how);
}

/**
 * spindle_object_send() - send a message from several pieces, by a way of its own
 * @sp: handle that is ready
 * @iov: its pieces
 * @n: their number, 1 to IOV_MAX
 * @how: the algorithm that distributes it, and whether it is to travel in blocks
 *	although it fits the ring; NULL: as the group and its length have it
 *
 * One message, of all the pieces' bytes: at most the group's max_object, or
 * max_msg if that is more. The kernel copies it, or with SPINDLE_OBJECT_IN_PLACE
 * sends whole pages from where they are. Of a handle that sends by its ring, what is no
 * object goes there. Does not wait.
 *
 * Return: 0;
 * -EAGAIN: no room now, see spindle_send();
 * -EBUSY: a claim is open;
 * -EMSGSIZE: it is too long;
 * -EINVAL: no pieces, or no such @how;
 * -EFAULT: not all of the bytes are there, as in a mapped file that has become
 * shorter; nothing was sent, as with every error;
 * -EPIPE, -EACCES, -ENOTCONN, -ENOMEM and the group's error as in spindle_claim().
 */
int spindle_object_send(struct spindle *sp, const struct iovec *iov, unsigned int n,
			const struct spindle_object *how)
{
	const size_t len = iov_len(iov, n);
	/* nothing is no object, whatever is wished */
	const uint32_t ring = len ? SPINDLE_OBJECT_IN_PLACE : SPINDLE_OBJECT_ALL;

	if (!n)
		return -EINVAL;
	/* what no correct program wishes for the kernel refuses */
	if (sp->map.own && len <= sp->map.rings.max_msg &&
	    (!how || (how->algorithm < SPINDLE_ALGS && !(how->flags & ~ring))))
		return tx_gather(sp, iov, n);
	return tx_call(sp, iov, n, SPINDLE_CMSG_OBJECT, how, sizeof(*how));
}

/**
 * spindle_explain() - how a message would be sent, and why
 * @sp: handle in a group
 * @explain: its length, and what would be given to spindle_object_send(); and the
 *	answer
 *
 * A system call, for any thread. It speaks of the current view.
 *
 * Return: 0;
 * -ENOTCONN: in no group;
 * -EMSGSIZE: no message can be so long;
 * -EINVAL: no such algorithm or flags.
 */
int spindle_explain(struct spindle *sp, struct spindle_explain *explain)
{
	socklen_t len = sizeof(*explain);

	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_EXPLAIN, explain, &len))
		return -errno;
	return 0;
}
