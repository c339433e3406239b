// SPDX-License-Identifier: MIT
/* Waiting for the engine, and waking it. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <time.h>
#include "internal.h"

#define NSEC_PER_SEC	1000000000LL
#define NSEC_PER_MSEC	1000000LL
#define SPIN_NS		50000	/* what SPINDLE_WAIT_ADAPTIVE spins; about a sleep's price */
#define SPIN_LOOKS	32	/* looks between two at the clock */
#define PAUSES		8	/* between two looks */
#define BACKOFF_NS	200000	/* when poll(2) tells what the rings do not */

/* The errno a failed group has, negative. */
int spn_group_error(const struct spindle *sp)
{
	int err = load_relaxed(&sp->map.status->error);

	return err ? -err : -EIO;
}

/*
 * After a store the engine is to see: a system call only if it asks for one, and does
 * not say @unless.
 */
void spn_wake_engine(struct spindle *sp, __u32 unless, uint64_t *kicks)
{
	__u32 flags;

	full_barrier();
	flags = load_relaxed(&sp->map.status->flags);
	if (!(flags & SPINDLE_NEED_WAKEUP) || (flags & unless))
		return;
	spn_add(kicks, 1);
	/* fails only where the engine is gone, and the status will tell */
	ioctl(sp->fd, SIOCSPINDLEKICK);
}

int64_t spn_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/*
 * poll(2) for some nanoseconds, less than 0 for ever. 1 when it saw something,
 * 0 when the time is over, else -errno.
 */
int spn_poll(struct spindle *sp, short events, int64_t ns)
{
	struct pollfd pfd = { .fd = sp->fd, .events = events };
	struct timespec ts = { .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };
	int ret;

	__atomic_fetch_add(&sp->waits, 1, __ATOMIC_RELAXED);
	ret = ppoll(&pfd, 1, ns < 0 ? NULL : &ts, NULL);
	if (ret < 0)
		return -errno;
	return ret;
}

static bool holds(struct spindle *sp, unsigned int events)
{
	return (events & SPINDLE_READABLE && spn_rx_ready(sp)) ||
	       (events & SPINDLE_WRITABLE && spn_tx_ready(sp));
}

/* Look until it holds, at least once; now and then let others have the processor. */
static bool spin(struct spindle *sp, unsigned int events, int64_t until)
{
	unsigned int i, j;

	for (;;) {
		for (i = 0; i < SPIN_LOOKS; i++) {
			if (holds(sp, events))
				return true;
			for (j = 0; j < PAUSES; j++)
				cpu_relax();
		}
		if (until >= 0 && spn_now() >= until)
			return false;
		sched_yield();
	}
}

static int block(struct spindle *sp, unsigned int events, int64_t until)
{
	const struct timespec backoff = { .tv_nsec = BACKOFF_NS };
	bool told = false;
	short want = 0;
	int ret;

	if (events & SPINDLE_READABLE)
		want |= POLLIN;
	if (events & SPINDLE_WRITABLE)
		want |= POLLOUT;
	for (;;) {
		int64_t left = until < 0 ? -1 : until - spn_now();

		if (holds(sp, events))
			return 0;
		if (until >= 0 && left <= 0)
			return -ETIMEDOUT;
		/* an error of the other direction may be all that poll(2) sees */
		if (told)
			nanosleep(&backoff, NULL);
		ret = spn_poll(sp, want, left);
		if (ret < 0)
			return ret;
		told = ret;
	}
}

/**
 * spindle_wait() - wait for messages or for room
 * @sp: handle that is ready
 * @events: SPINDLE_READABLE: a message, a wanted event, the end or an error to
 *	receive;
 *	SPINDLE_WRITABLE: room for the claim that was refused last, or an error;
 *	both: either
 * @how: SPINDLE_WAIT_BLOCK: sleep in poll(2); SPINDLE_WAIT_ADAPTIVE: look for
 *	some tens of microseconds first, if there is more than one processor
 *	to run on; SPINDLE_WAIT_SPIN: never sleep, though
 *	it lets others have the processor now and then
 * @timeout_ms: milliseconds; 0: only look; less than 0: for ever
 *
 * Returns at once, without a system call, when it holds already. SPINDLE_WRITABLE
 * with no claim refused since the last good one holds always. Who waits for
 * SPINDLE_READABLE is the receiving thread, who waits for SPINDLE_WRITABLE the
 * sending one.
 *
 * Return: 0: it holds;
 * -ETIMEDOUT: not within the time;
 * -EINTR: a signal came while it slept (spinning is not interrupted);
 * -EINVAL: no event, or one that is not known, or no such @how;
 * -EACCES: SPINDLE_WRITABLE of a member that does not send;
 * -ENOTCONN: before spindle_ready().
 */
int spindle_wait(struct spindle *sp, unsigned int events, enum spindle_wait how,
		 int timeout_ms)
{
	int64_t now, until = -1;

	if (!sp->ready)
		return -ENOTCONN;
	if (!events || events & ~(SPINDLE_READABLE | SPINDLE_WRITABLE))
		return -EINVAL;
	if (events & SPINDLE_WRITABLE && !sp->map.own)
		return -EACCES;
	if (how != SPINDLE_WAIT_BLOCK && how != SPINDLE_WAIT_ADAPTIVE &&
	    how != SPINDLE_WAIT_SPIN)
		return -EINVAL;
	if (holds(sp, events))
		return 0;
	if (!timeout_ms)
		return -ETIMEDOUT;
	now = spn_now();
	if (timeout_ms > 0)
		until = now + timeout_ms * NSEC_PER_MSEC;
	if (how == SPINDLE_WAIT_SPIN)
		return spin(sp, events, until) ? 0 : -ETIMEDOUT;
	if (how == SPINDLE_WAIT_ADAPTIVE && !sp->alone && spin(sp, events, now + SPIN_NS))
		return 0;
	return block(sp, events, until);
}
