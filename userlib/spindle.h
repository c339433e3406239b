/* SPDX-License-Identifier: MIT */
/*
 * libspindle: totally ordered multicast over mapped rings.
 *
 * Messages are built and read in place; the kernel copies none but large objects.
 * Every call returns 0 or a negative errno. A handle may be used by one sending and one
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
#define SPINDLE_MSG_STATE	(1U << 1)	/* state, for this member alone */
#define SPINDLE_MSG_LAST	(1U << 2)	/* the last of it */
#define SPINDLE_MSG_OBJECT	(1U << 3)	/* spindle_object_read() gives its bytes */

/**
 * struct spindle_msg - a message that was delivered, or an event
 * @data: its bytes, valid until it is released; of an event NULL, or where
 *	spindle_recv() has put its struct spindle_event; of an object NULL, or
 *	where spindle_recv() has put it
 * @len: their number
 * @rank: sender's rank in the view; of an event of type CURRENT the rank of the
 *	member that it speaks of, of other events ~0
 * @seq: its place in the order; an event comes behind the turn of this number
 * @entry: what spindle_release() wants
 * @flags: SPINDLE_MSG_*
 * @event: type of an event, enum spindle_event_type; else 0
 * @number: what spindle_event() wants, until the event is released; of an event
 *	of type CURRENT 0: there is no more to be said
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
 * @copied_bytes: bytes that spindle_send(), spindle_recv() and their like copied
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
int spindle_key(struct spindle *sp, const char *description);
int spindle_create(struct spindle *sp, const struct spindle_group_create *group);
int spindle_join(struct spindle *sp, const char *contact,
		 const struct spindle_group_join *group);
int spindle_map(struct spindle *sp, int directions);
int spindle_ready(struct spindle *sp, int timeout_ms);
int spindle_shutdown(struct spindle *sp);
int spindle_leave(struct spindle *sp);
int spindle_close(struct spindle *sp);
int spindle_fd(const struct spindle *sp, int *fd);

/* Sending in place: claim, fill, commit. */
int spindle_claim(struct spindle *sp, struct iovec *iov, unsigned int n);
int spindle_commit(struct spindle *sp, unsigned int n, const uint32_t *lens);
int spindle_abort(struct spindle *sp);
int spindle_send(struct spindle *sp, const void *data, size_t len);
int spindle_state_send(struct spindle *sp, uint32_t uid, const void *data,
		       size_t len, unsigned int flags);
int spindle_sync(struct spindle *sp, int what);

/* Receiving in place: peek, read, release. */
int spindle_peek(struct spindle *sp, struct spindle_msg *msgs, unsigned int max,
		 unsigned int *n);
int spindle_release(struct spindle *sp, uint64_t entry);
int spindle_recv(struct spindle *sp, void *data, size_t size,
		 struct spindle_msg *msg);

/* Large objects: messages that are longer than max_msg. */
int spindle_object_send(struct spindle *sp, const struct iovec *iov, unsigned int n,
			const struct spindle_object *how);
int spindle_object_read(struct spindle *sp, const struct spindle_msg *msg, uint64_t off,
			void *data, size_t len);
int spindle_object_map(struct spindle *sp, const struct spindle_msg *msg, const void **data);
int spindle_object_unmap(const void *data, size_t len);
int spindle_explain(struct spindle *sp, struct spindle_explain *explain);

#define SPINDLE_ANYBODY		(~0U)		/* spindle_transfer.uid */
#define SPINDLE_TO_THE_END	(~0ULL)		/* spindle_transfer.len */
#define SPINDLE_HASH_LEN	16

/**
 * struct spindle_transfer - a file or memory on its way through the group
 * @id: put: what the receivers know it by, not 0; get: which one, 0: the next, and then
 *	which it is
 * @fd: a file; -1: memory
 * @data: the memory; get: NULL: nowhere
 * @offset: where in the file it begins
 * @len: put: bytes, or SPINDLE_TO_THE_END of the file; get: how many there is
 *	room for, and then how many it has
 * @done: out: so many of them went, or came and are in their place
 * @uid: get: whose, or SPINDLE_ANYBODY, and then whose it is
 * @error: get: with -ECANCELED: why its sender gave it up, an errno
 * @segment: put: bytes of one message; 0: 4 MiB, or what the group allows
 * @how: put: how each of them is sent
 * @hash: out: XXH3 of all of it, 128 bits in their canonical form
 * @progress: called now and then; what it returns, less than 0, ends the call;
 *	NULL: nobody asks
 * @other: called with each message and event that is not of the transfer, which
 *	is released behind it; what it returns, less than 0, ends the call; NULL:
 *	they are dropped
 * @user: the program's
 * @__resv: zero
 */
struct spindle_transfer {
	uint64_t id;
	int fd;
	void *data;
	uint64_t offset;
	uint64_t len;
	uint64_t done;
	uint32_t uid;
	int32_t error;
	uint32_t segment;
	struct spindle_object how;
	unsigned char hash[SPINDLE_HASH_LEN];
	int (*progress)(struct spindle_transfer *t);
	int (*other)(struct spindle_transfer *t, const struct spindle_msg *msg);
	void *user;
	uint64_t __resv[8];
};

int spindle_object_put(struct spindle *sp, struct spindle_transfer *t);
int spindle_object_get(struct spindle *sp, struct spindle_transfer *t);

/* Events: which are wanted among the messages, and what one says. */
int spindle_events(struct spindle *sp, unsigned int wanted);
int spindle_event(struct spindle *sp, uint32_t number,
		  struct spindle_event *event, size_t *size);

/* Waiting. */
#define SPINDLE_READABLE	(1U << 0)	/* a message, the end or an error */
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
int spindle_view(struct spindle *sp, uint64_t *view,
		 struct sockaddr_spindle *members, unsigned int *n);
int spindle_stability(struct spindle *sp, struct spindle_stability *stability);
int spindle_stats(struct spindle *sp, struct spindle_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* LIBSPINDLE_H */
