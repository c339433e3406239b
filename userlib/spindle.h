/* SPDX-License-Identifier: MIT */
/*
 * libspindle: totally ordered multicast over mapped rings.
 *
 * Messages are built and read in place; the kernel copies none. Every call
 * returns 0 or a negative errno. A handle may be used by one sending and one
 * receiving thread at a time; different handles have nothing in common.
 * See libspindle(3).
 */
#ifndef LIBSPINDLE_H
#define LIBSPINDLE_H

#include <linux/spindle.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spindle;

/* spindle_msg.flags */
#define SPINDLE_MSG_EVENT	(1U << 0)	/* no message: an event */
#define SPINDLE_MSG_PRIVATE	(1U << 1)	/* for this member alone */
#define SPINDLE_MSG_UP_TO_DATE	(1U << 2)	/* and with it this member is up to date */

/**
 * struct spindle_msg - a message that was delivered, or an event
 * @data: its bytes, valid until it is released; of an event NULL, or where
 *	spindle_recv() has put its struct spindle_event
 * @len: their number
 * @rank: sender's rank in the view it was delivered in; of an event ~0
 * @seq: its place in the order; an event comes behind the turn of this number
 * @entry: what spindle_release() wants
 * @flags: SPINDLE_MSG_*
 * @event: type of an event, enum spindle_event_type; else 0
 * @number: of an event: what spindle_event() wants; of one of type STATE: the member's
 *	uid
 * @__resv: zero
 */
struct spindle_msg {
	const void *data;
	uint32_t len;
	uint32_t rank;
	uint64_t seq;
	uint64_t entry;
	uint32_t flags;
	uint32_t event;
	uint32_t number;
	uint32_t __resv;
};

/* Any event fits there: members of the view, and those that are gone. */
#define SPINDLE_EVENT_SIZE	(sizeof(struct spindle_event) + \
				 2 * SPINDLE_MAX_MEMBERS * \
				 sizeof(struct spindle_event_member))

/**
 * struct spindle_stats - what a handle has done
 * @sent: messages committed
 * @sent_bytes: bytes in them
 * @received: messages released
 * @received_bytes: bytes in them
 * @claims_refused: claims that found no room
 * @kicks: system calls to wake the engine
 * @waits: system calls to wait
 * @copied_bytes: bytes that spindle_send() and spindle_recv() copied
 */
struct spindle_stats {
	uint64_t sent;
	uint64_t sent_bytes;
	uint64_t received;
	uint64_t received_bytes;
	uint64_t claims_refused;
	uint64_t kicks;
	uint64_t waits;
	uint64_t copied_bytes;
};

/* Life: a socket bound to a node, then a member of a group. */
int spindle_open(struct spindle **sp, const char *node);
int spindle_create(struct spindle *sp, const struct spindle_group_create *group);
int spindle_join(struct spindle *sp, const char *contact,
		 const struct spindle_group_join *group);
int spindle_ready(struct spindle *sp, int timeout_ms);
int spindle_shutdown(struct spindle *sp);
int spindle_leave(struct spindle *sp);
int spindle_close(struct spindle *sp);
int spindle_fd(const struct spindle *sp, int *fd);

/* Sending in place: claim, fill, commit. */
int spindle_claim(struct spindle *sp, struct iovec *iov, unsigned int n);
int spindle_commit(struct spindle *sp, unsigned int n, const uint32_t *lens);
int spindle_commit_to(struct spindle *sp, unsigned int n, const uint32_t *lens,
		      const struct spindle_to *to);
int spindle_abort(struct spindle *sp);
int spindle_send(struct spindle *sp, const void *data, size_t len);
int spindle_send_to(struct spindle *sp, const void *data, size_t len,
		    const struct spindle_to *to);
int spindle_sync(struct spindle *sp, unsigned int what);

/* Receiving in place: peek, read, release. */
int spindle_peek(struct spindle *sp, struct spindle_msg *msgs, unsigned int max,
		 unsigned int *n);
int spindle_release(struct spindle *sp, uint64_t entry);
int spindle_recv(struct spindle *sp, void *data, size_t size,
		 struct spindle_msg *msg);

/* Events: which are wanted among the messages, and what one says. */
int spindle_events(struct spindle *sp, unsigned int wanted);
int spindle_event(struct spindle *sp, uint32_t number,
		  struct spindle_event *event, size_t *size);

/* Waiting. */
#define SPINDLE_READABLE	(1U << 0)	/* a message or event, the end or an error */
#define SPINDLE_WRITABLE	(1U << 1)	/* room for the claim refused last */

enum spindle_wait {
	SPINDLE_WAIT_BLOCK,	/* sleep at once */
	SPINDLE_WAIT_ADAPTIVE,	/* look for a while, then sleep */
	SPINDLE_WAIT_SPIN,	/* never sleep */
};

int spindle_wait(struct spindle *sp, unsigned int events,
		 enum spindle_wait how, int timeout_ms);

/* Looking. */
int spindle_info(struct spindle *sp, struct spindle_group_info *info);
int spindle_view(struct spindle *sp, struct sockaddr_spindle *members,
		 unsigned int *n);
int spindle_stable(struct spindle *sp, struct spindle_stable *stable);
int spindle_stats(struct spindle *sp, struct spindle_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* LIBSPINDLE_H */
