/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel for the library to talk to where there is none: the system calls
 * that it makes are taken by the linker (--wrap) and answered here, for one
 * socket that is a member with mapped rings. A test plays the engine.
 *
 * Own ring and other lanes are ordinary memory, mapped twice back to back; the
 * engine here looks at the same addresses as the library, so that what finds
 * races sees both sides.
 */
#ifndef USERLIB_FAKE_H
#define USERLIB_FAKE_H

#include "../socket/spindle_selftest.h"
#include <limits.h>
#include <semaphore.h>
#include <sys/mman.h>
#include "../../userlib/spindle.h"

#define FAKE_FAMILY	22
#define FAKE_IN_FLIGHT	65536
#define FAKE_VIEWS	1024

/* What a member would find; 0 takes what stands behind. */
struct fake_config {
	unsigned int window;	/* 4096 */
	unsigned int depth;	/* 16 */
	unsigned int max_msg;	/* window */
	unsigned int deliveries;	/* 64 */
	unsigned int lanes;	/* 2 */
	unsigned int there;	/* lanes from the first on that are to be mapped at once: none */
	uint32_t uid;		/* of the member */
	bool receiver;		/* else the own lane is the first */
	uint64_t rx_base;
	uint64_t tx_base;
	uint64_t tx_start;
};

struct fake_message {
	uint64_t pos;
	uint32_t len;
	uint32_t flags;
};

/* How many members a view has, and how many are gone. */
struct fake_view {
	unsigned int members;
	unsigned int left;
};

struct fake {
	struct fake_config c;
	int fd;
	struct spindle_rings rings;
	struct spindle_status *status;
	struct spindle_user *user;
	struct spindle_delivery *deliveries;
	unsigned char *ring[SPINDLE_MAX_MEMBERS];

	/* knobs */
	bool no_module;
	bool other_family;	/* the file tells it only after a first socket() */
	unsigned int forming;	/* looks until the view is there */
	unsigned int state;	/* what SPINDLE_GROUP_INFO says then */
	int error;
	unsigned int fail_map;	/* the n-th mmap() from now fails */
	int fail_map_errno;	/* with this; 0: ENOMEM */
	int rings_errno;
	int map_errno;
	int bind_errno;
	int events_errno;
	int leave_errno;
	int sync_errno;

	/* what was asked for */
	struct sockaddr_in6 bound;
	socklen_t bound_len;
	struct spindle_group_create create;
	struct spindle_group_join join;
	int map_flags;
	int wanted;
	int synced;
	unsigned int leaves;
	unsigned int sockets, looks, maps, map_calls, unmaps, closes, polls, shutdowns, kicks;
	sem_t kick;

	/* the engine */
	struct fake_message taken[FAKE_IN_FLIGHT];
	uint64_t ntaken;	/* of the submissions */
	uint64_t pos;		/* behind the last taken */
	uint64_t ndelivered;	/* of the own messages */
	uint64_t lane_pos[SPINDLE_MAX_MEMBERS];
	uint64_t lane_head[SPINDLE_MAX_MEMBERS];
	uint64_t collected;	/* deliveries that came back */
	uint64_t end[FAKE_IN_FLIGHT];	/* where the message of an entry ends */
	uint64_t seq;
	uint32_t view;		/* number of the last event */
	struct fake_view views[FAKE_VIEWS];	/* by the low bits of their numbers */
};

extern struct fake fake;

/* Make the fake a kernel of this configuration. */
void fake_boot(const struct fake_config *c);
/* That, and a handle that is ready. */
struct spindle *fake_member(const struct fake_config *c);

/* Take what was submitted; how many. Sets tx_error for what no library submits. */
unsigned int fake_take(void);
/* Deliver the next of the own messages that were taken; false when none is left. */
bool fake_deliver_own(void);
/* Is there room for a message of another lane, and a delivery? */
bool fake_room(unsigned int lane, uint32_t len);
/* Deliver a message of another lane. */
void fake_deliver(unsigned int lane, const void *data, uint32_t len);
/* Likewise one for a member alone: SPINDLE_PRIVATE and whom. */
void fake_deliver_private(unsigned int lane, const void *data, uint32_t len, uint32_t flags);
/* Deliver what is no message. */
void fake_deliver_flags(unsigned int lane, uint32_t flags);
/* The rank of a lane's sender, which is another one in each view. */
uint32_t fake_rank(unsigned int lane, uint32_t view);
/* A view begins: deliver its event. */
void fake_deliver_view(unsigned int members, unsigned int left);
/* What such an event says of its i-th member; those that are gone come last. */
struct spindle_event_member fake_member_of(uint32_t view, unsigned int i);
/* Let what was released be free again; how many. */
unsigned int fake_collect(void);
void fake_set_state(unsigned int state, int error);
void fake_set_flags(uint32_t flags);
/* Where a message of the own ring lies for the engine. */
const unsigned char *fake_own(uint64_t pos);

/* What the linker calls the calls that it took. */
int __real_socket(int family, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __real_setsockopt(int fd, int level, int name, const void *val, socklen_t len);
int __real_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
int __real_shutdown(int fd, int how);
int __real_close(int fd);
int __real_munmap(void *addr, size_t len);
void *__real_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off);
FILE *__real_fopen64(const char *path, const char *mode);

#endif /* USERLIB_FAKE_H */
