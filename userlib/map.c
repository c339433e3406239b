// SPDX-License-Identifier: MIT
/* From a member of a group to one with mapped rings. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include "internal.h"

#define NSEC_PER_MSEC	1000000LL
#define SLICE_MIN	(1 * NSEC_PER_MSEC)
#define SLICE_MAX	(32 * NSEC_PER_MSEC)

static int map_region(int fd, uint64_t offset, uint64_t size, int prot, void *where)
{
	/* without a fault for each page when messages flow */
	void *p = mmap(NULL, size, prot, MAP_SHARED | MAP_POPULATE, fd, offset);

	/* more than may be locked, after mlockall(2): nothing that a wait would change */
	if (p == MAP_FAILED)
		return errno == EAGAIN ? -ENOMEM : -errno;
	memcpy(where, &p, sizeof(p));
	return 0;
}

static int map_regions(int fd, struct spn_map *map)
{
	const struct spindle_rings *r = &map->rings;
	unsigned int i;
	int ret;

	map->given = calloc((r->deliveries + 7) / 8, 1);
	if (!map->given)
		return -ENOMEM;
	ret = map_region(fd, r->status_off, r->status_size, PROT_READ, &map->status);
	if (!ret)
		ret = map_region(fd, r->user_off, r->user_size, PROT_READ | PROT_WRITE,
				 &map->user);
	if (!ret)
		ret = map_region(fd, r->delivery_off, r->delivery_size, PROT_READ,
				 &map->deliveries);
	if (!ret && r->flags & SPINDLE_MAP_TX && r->lane >= 0)
		ret = map_region(fd, r->own_off, 2ULL * r->window,
				 PROT_READ | PROT_WRITE, &map->own);
	for (i = 0; !ret && i < r->lanes_there && i < r->lanes; i++)
		ret = spn_map_lane(fd, map, i);
	return ret;
}

/* Map a lane's ring, at the latest when its first message is read. The number is good. */
int spn_map_lane(int fd, struct spn_map *map, unsigned int lane)
{
	const struct spindle_rings *r = &map->rings;

	return map_region(fd, r->lane_off + lane * r->lane_stride, 2ULL * r->window,
			  PROT_READ, &map->lanes[lane]);
}

static void unmap_region(const void *p, uint64_t size)
{
	if (p)
		munmap((void *)p, size);
}

/* Give back the regions that are there. */
void spn_unmap(struct spn_map *map)
{
	const struct spindle_rings *r = &map->rings;
	unsigned int i;

	for (i = 0; i < SPINDLE_MAX_LANES; i++)
		unmap_region(map->lanes[i], 2ULL * r->window);
	unmap_region(map->own, 2ULL * r->window);
	unmap_region(map->deliveries, r->delivery_size);
	unmap_region(map->user, r->user_size);
	unmap_region(map->status, r->status_size);
	free(map->given);
	memset(map, 0, sizeof(*map));
}

static bool sane(const struct spindle_rings *r)
{
	return r->flags & SPINDLE_MAP_RX && r->lanes && r->lanes <= SPINDLE_MAX_LANES &&
	       r->window && !(r->window & (r->window - 1)) &&
	       r->depth && !(r->depth & (r->depth - 1)) &&
	       r->deliveries && !(r->deliveries & (r->deliveries - 1)) &&
	       r->status_size >= sizeof(struct spindle_status) &&
	       r->delivery_size / sizeof(struct spindle_delivery) >= r->deliveries &&
	       r->user_size >= sizeof(struct spindle_user) &&
	       (r->user_size - sizeof(struct spindle_user)) /
		sizeof(struct spindle_submission) >= r->depth;
}

/* Begin where the kernel is. */
static void attach(struct spindle *sp)
{
	const struct spindle_status *status = sp->map.status;
	struct spindle_user *user = sp->map.user;
	uint64_t base = status->rx_base;

	sp->tx.pos = status->tx_start;
	sp->tx.head = load_acquire(&status->tx_head);
	sp->tx.freed = load_acquire(&status->tx_freed);
	sp->rx.next = base;
	sp->rx.released = base;
	sp->rx.published = base;
	sp->rx.seen = base;
	sp->rx.told = base;
	store_relaxed(&user->rx_seen, base);
	store_release(&user->rx_released, base);
}

static int take_over(struct spindle *sp, int directions)
{
	if (setsockopt(sp->fd, SOL_SPINDLE, SPINDLE_MAP, &directions, sizeof(directions)))
		return -errno;
	sp->map_set = true;
	return 0;
}

static int map_rings(struct spindle *sp)
{
	struct spn_map map = { .status = NULL };
	socklen_t len = sizeof(map.rings);
	cpu_set_t cpus;
	int ret = 0;

	if (!sp->map_set) {
		ret = take_over(sp, SPINDLE_MAP_ALL);
		/* who does not send has only the one direction */
		if (ret == -EACCES)
			ret = take_over(sp, SPINDLE_MAP_RX);
	}
	if (ret)
		return ret;
	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_RINGS, &map.rings, &len))
		return -errno;
	ret = sane(&map.rings) ? map_regions(sp->fd, &map) : -EPROTO;
	if (ret) {
		spn_unmap(&map);
		return ret;
	}
	sp->map = map;
	attach(sp);
	CPU_ZERO(&cpus);
	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		sp->alone = CPU_COUNT(&cpus) == 1;
	sp->ready = true;
	return 0;
}

/* 1 when the first view is there, 0 when not yet. */
static int view_is_there(struct spindle *sp)
{
	struct spindle_group_info info;
	int ret;

	ret = spindle_info(sp, &info);
	if (ret)
		return ret;
	switch (info.state) {
	case SPINDLE_STATE_NONE:
		return -ENOTCONN;
	case SPINDLE_STATE_FORMING:
		return 0;
	case SPINDLE_STATE_FAILED:
	case SPINDLE_STATE_EVICTED:
		return info.error ? -info.error : -EIO;
	default:
		sp->uid = info.uid;
		return 1;
	}
}

/**
 * spindle_ready() - wait for the first view, then map the rings
 * @sp: handle that created or joined a group
 * @timeout_ms: milliseconds; 0: only look; less than 0: for ever
 *
 * From here on the group's messages come and go through the handle:
 * sendmsg() and recvmsg() on its socket say EBUSY. What was received from the
 * socket before is not received again. A second call does nothing.
 *
 * Return: 0;
 * -ETIMEDOUT: the group is not complete yet; the call may be repeated;
 * -EINTR: a signal came; likewise;
 * -ENOTCONN: the handle is in no group;
 * the group's error when it has failed;
 * -EPROTO: the kernel's rings are not what this library knows;
 * errors of setsockopt(SPINDLE_MAP) and mmap(2), as -ENOMEM; nothing is left
 * mapped then.
 */
int spindle_ready(struct spindle *sp, int timeout_ms)
{
	int64_t slice = SLICE_MIN, left, until = spn_now() + timeout_ms * NSEC_PER_MSEC;
	const struct timespec rest = { .tv_nsec = SLICE_MIN };
	int ret;

	while (!sp->ready) {
		ret = view_is_there(sp);
		if (ret < 0)
			return ret;
		if (ret)
			return map_rings(sp);
		left = timeout_ms < 0 ? slice : until - spn_now();
		if (left <= 0)
			return -ETIMEDOUT;
		/* poll(2) may have something else to tell all the time: rest, and look again */
		ret = spn_poll(sp, POLLIN | POLLOUT, left < slice ? left : slice);
		if (ret < 0)
			return ret;
		if (ret)
			nanosleep(&rest, NULL);
		else if (slice < SLICE_MAX)
			slice *= 2;
	}
	return 0;
}
