/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mapped rings by the bare contract of uapi/linux/spindle.h.
 */
#ifndef SPINDLE_RING_H
#define SPINDLE_RING_H

#include "spindle_selftest.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

/* A member with everything mapped; @at: next submission, @pos: its place. */
struct ring {
	int fd;
	struct spindle_rings r;
	const volatile struct spindle_status *status;
	volatile struct spindle_user *user;
	const volatile struct spindle_delivery *deliveries;
	unsigned char *own;
	const unsigned char *lane[SPINDLE_MAX_LANES];
	uint64_t at;
	uint64_t pos;
	uint64_t next;
};

static ST_UNUSED int map_option(int fd, int flags)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_MAP, &flags, sizeof(flags));
}

static ST_UNUSED int get_rings(int fd, struct spindle_rings *r)
{
	socklen_t len = sizeof(*r);

	return getsockopt(fd, SOL_SPINDLE, SPINDLE_RINGS, r, &len);
}

static ST_UNUSED void *map(int fd, size_t size, int prot, uint64_t off)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, off);

	return at == MAP_FAILED ? NULL : at;
}

#define MUST_MAP(fd, size, prot, off)					\
({									\
	void *__at = map(fd, size, prot, off);				\
									\
	if (!__at)							\
		FAIL("mmap at %#llx: %s", (unsigned long long)(off),	\
		     st_err(errno));					\
	__at;								\
})

static ST_UNUSED void ring_map(struct ring *ring, int fd, int flags)
{
	struct spindle_rings *r = &ring->r;

	ring->fd = fd;
	CHECK_OK(map_option(fd, flags));
	CHECK_OK(get_rings(fd, r));
	CHECK_EQ(r->flags, flags);
	ring->status = MUST_MAP(fd, r->status_size, PROT_READ, r->status_off);
	ring->user = MUST_MAP(fd, r->user_size, PROT_READ | PROT_WRITE, r->user_off);
	ring->deliveries = NULL;
	if (flags & SPINDLE_MAP_RX)
		ring->deliveries = MUST_MAP(fd, r->delivery_size, PROT_READ, r->delivery_off);
	ring->own = NULL;
	if (flags & SPINDLE_MAP_TX)
		ring->own = MUST_MAP(fd, 2 * r->window, PROT_READ | PROT_WRITE, r->own_off);
	memset(ring->lane, 0, sizeof(ring->lane));
	ring->at = 0;
	ring->pos = ring->status->tx_start;
	ring->next = ring->status->rx_base;
}

static ST_UNUSED void ring_unmap(struct ring *ring)
{
	const struct spindle_rings *r = &ring->r;
	unsigned int i;

	CHECK_OK(munmap((void *)ring->status, r->status_size));
	CHECK_OK(munmap((void *)ring->user, r->user_size));
	if (ring->deliveries)
		CHECK_OK(munmap((void *)ring->deliveries, r->delivery_size));
	if (ring->own)
		CHECK_OK(munmap(ring->own, 2 * r->window));
	for (i = 0; i < r->lanes; i++)
		if (ring->lane[i])
			CHECK_OK(munmap((void *)ring->lane[i], 2 * r->window));
}

/* Map a lane, if it is not; it stays so, whoever has it. */
static ST_UNUSED const unsigned char *ring_lane(struct ring *ring, unsigned int lane)
{
	const struct spindle_rings *r = &ring->r;

	CHECK_SAME(lane < r->lanes, true);
	if (!ring->lane[lane])
		ring->lane[lane] = MUST_MAP(ring->fd, 2 * r->window, PROT_READ,
					    r->lane_off + lane * r->lane_stride);
	return ring->lane[lane];
}

static ST_UNUSED void ring_kick(struct ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ring->status->flags & SPINDLE_NEED_WAKEUP)
		CHECK_OK(ioctl(ring->fd, SIOCSPINDLEKICK, 0));
}

static ST_UNUSED bool ring_room(struct ring *ring, uint32_t len)
{
	uint64_t units = (len + SPINDLE_UNIT - 1) / SPINDLE_UNIT;
	const struct spindle_rings *r = &ring->r;
	uint64_t head, freed;

	head = __atomic_load_n(&ring->status->tx_head, __ATOMIC_ACQUIRE);
	freed = __atomic_load_n(&ring->status->tx_freed, __ATOMIC_ACQUIRE);
	ring->user->tx_want_head = ring->pos + units - r->window / SPINDLE_UNIT;
	if ((int64_t)ring->user->tx_want_head < 0)
		ring->user->tx_want_head = 0;
	ring->user->tx_want_freed = ring->status->tx_base + ring->at + 2;
	if (ring->user->tx_want_freed < r->depth)
		ring->user->tx_want_freed = 0;
	else
		ring->user->tx_want_freed -= r->depth;
	return ring->pos + units - head <= r->window / SPINDLE_UNIT &&
	       ring->status->tx_base + ring->at - freed < r->depth - 1;
}

static ST_UNUSED unsigned char *ring_place(struct ring *ring)
{
	return ring->own + ring->pos * SPINDLE_UNIT % ring->r.window;
}

/* One message whose bytes are in place; without a kick. */
static ST_UNUSED void ring_submit(struct ring *ring, uint32_t len, uint32_t flags)
{
	volatile struct spindle_submission *s =
		&ring->user->submissions[ring->at & (ring->r.depth - 1)];

	s->len = len;
	s->flags = flags;
	ring->pos += (len + SPINDLE_UNIT - 1) / SPINDLE_UNIT;
	__atomic_store_n(&ring->user->tx_tail, ++ring->at, __ATOMIC_RELEASE);
}

static ST_UNUSED void ring_say(struct ring *ring, const char *text)
{
	while (!ring_room(ring, strlen(text)))
		st_wait_events(ring->fd, POLLOUT);
	memcpy(ring_place(ring), text, strlen(text));
	ring_submit(ring, strlen(text), 0);
	ring_kick(ring);
}

/* The next message, in place; NULL without one. Ends and events are passed over. */
static ST_UNUSED const unsigned char *ring_peek(struct ring *ring, uint32_t *len,
						uint32_t *rank)
{
	while (ring->next != __atomic_load_n(&ring->status->published, __ATOMIC_ACQUIRE)) {
		const volatile struct spindle_delivery *d =
			&ring->deliveries[ring->next & (ring->r.deliveries - 1)];

		ring->user->rx_seen = ring->next + 1;
		if (!d->flags) {
			*len = d->len;
			*rank = d->lane >> SPINDLE_DELIVERY_RANK_SHIFT;
			return ring_lane(ring, d->lane & SPINDLE_DELIVERY_LANE) +
			       (size_t)d->pos * SPINDLE_UNIT;
		}
		ring->next++;
	}
	return NULL;
}

static ST_UNUSED void ring_release(struct ring *ring)
{
	ring->next++;
	__atomic_store_n(&ring->user->rx_released, ring->next, __ATOMIC_RELEASE);
	ring_kick(ring);
}

static ST_UNUSED void ring_expect(struct ring *ring, const char *text, uint32_t from)
{
	const unsigned char *data;
	uint32_t len, rank;

	while (!(data = ring_peek(ring, &len, &rank)))
		st_wait_events(ring->fd, POLLIN);
	if (len != strlen(text) || memcmp(data, text, len))
		BROKEN("received \"%.*s\", not \"%s\"", (int)len, data, text);
	CHECK_SAME(rank, from);
	ring_release(ring);
}

#endif /* SPINDLE_RING_H */
