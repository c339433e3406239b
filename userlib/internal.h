/* SPDX-License-Identifier: MIT */
/*
 * What the files of libspindle share. Names that another file uses begin with
 * spn_, so that the static library takes none of the program's.
 */
#ifndef LIBSPINDLE_INTERNAL_H
#define LIBSPINDLE_INTERNAL_H

/* what is built hidden is seen where the public header says so */
#pragma GCC visibility push(default)
#include "spindle.h"
#pragma GCC visibility pop

#include <stdbool.h>
#include "barrier.h"

/**
 * struct spn_map - the regions of a member with mapped rings
 * @rings: where they are and how large
 * @status: what the kernel tells
 * @user: what the program tells, and its submissions
 * @deliveries: the order
 * @own: the own ring, twice; NULL for a member that does not send
 * @lanes: the ring of each lane, twice; NULL before the first message of one that was
 *	not there at first, then constant, whoever has the lane. The receiving thread's
 * @given: a bit for each delivery that is no message: it was given out
 */
struct spn_map {
	struct spindle_rings rings;
	const struct spindle_status *status;
	struct spindle_user *user;
	const struct spindle_delivery *deliveries;
	unsigned char *own;
	const unsigned char *lanes[SPINDLE_MAX_LANES];
	unsigned char *given;
};

/**
 * struct spn_tx - what only the sending thread touches
 * @tail: submissions made
 * @pos: where the next message begins, in units
 * @head: the kernel's tx_head when last looked at
 * @freed: its tx_freed
 * @want_head: tx_head that the claim refused last waits for
 * @want_freed: its tx_freed
 * @claimed: messages claimed and not committed; their lengths stand in the
 *	submissions behind @tail, which the kernel does not look at
 * @shut: the last word has been said
 * @left: this member was told to leave the group
 * @sent: &struct spindle_stats
 * @sent_bytes: likewise
 * @refused: likewise
 * @kicks: likewise, the sender's part
 * @copied: likewise
 */
struct spn_tx {
	uint64_t tail;
	uint64_t pos;
	uint64_t head;
	uint64_t freed;
	uint64_t want_head;
	uint64_t want_freed;
	unsigned int claimed;
	bool shut;
	bool left;
	uint64_t sent;
	uint64_t sent_bytes;
	uint64_t refused;
	uint64_t kicks;
	uint64_t copied;
};

/**
 * struct spn_rx - what only the receiving thread touches
 * @next: the delivery to be read next
 * @released: deliveries before this one are released
 * @published: the kernel's published when last looked at
 * @seen: rx_seen as the kernel was told
 * @told: rx_released as the kernel was told
 * @wanted: SPINDLE_WANT_*
 * @received: &struct spindle_stats
 * @received_bytes: likewise
 * @kicks: likewise, the receiver's part
 * @copied: likewise
 */
struct spn_rx {
	uint64_t next;
	uint64_t released;
	uint64_t published;
	uint64_t seen;
	uint64_t told;
	uint32_t wanted;
	uint64_t received;
	uint64_t received_bytes;
	uint64_t kicks;
	uint64_t copied;
};

/**
 * struct spindle - a handle
 * @fd: the socket
 * @map_set: the kernel has given the rings over to the program
 * @ready: they are mapped
 * @alone: the program has one processor: looking keeps it from the engine
 * @uid: this member's number, the same in all views
 * @map: the regions; constant once @ready, but for the lanes' rings
 * @waits: &struct spindle_stats
 * @tx: the sending thread's
 * @rx: the receiving thread's
 */
struct spindle {
	int fd;
	bool map_set;
	bool ready;
	bool alone;
	uint32_t uid;
	struct spn_map map;
	uint64_t waits;
	struct spn_tx tx __attribute__((aligned(64)));
	struct spn_rx rx __attribute__((aligned(64)));
};

/* A counter of one thread that others may look at. */
static inline void spn_add(uint64_t *counter, uint64_t n)
{
	store_relaxed(counter, *counter + n);
}

static inline uint64_t spn_units(uint64_t bytes)
{
	return (bytes + SPINDLE_UNIT - 1) >> SPINDLE_UNIT_SHIFT;
}

/* Where in a ring the message at this position begins, in bytes. */
static inline size_t spn_offset(const struct spn_map *map, uint64_t pos)
{
	return (pos << SPINDLE_UNIT_SHIFT) & (map->rings.window - 1);
}

/* map.c */
int spn_map_lane(int fd, struct spn_map *map, unsigned int lane);
void spn_unmap(struct spn_map *map);

/* ring_tx.c */
bool spn_tx_ready(struct spindle *sp);

/* ring_rx.c */
bool spn_rx_ready(struct spindle *sp);

/* wait.c */
int spn_poll(struct spindle *sp, short events, int64_t ns);
int64_t spn_now(void);
void spn_wake_engine(struct spindle *sp, __u32 unless, uint64_t *kicks);
int spn_group_error(const struct spindle *sp);

#endif /* LIBSPINDLE_INTERNAL_H */
