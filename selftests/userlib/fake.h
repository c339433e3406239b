/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel for the library to talk to where there is none: the system calls
 * that it makes are taken by the linker (--wrap) and answered here, for one
 * socket that is a member with mapped rings. A test plays the engine, and says
 * when a view begins and a slot is another lane's.
 *
 * Own ring and other lanes are ordinary memory, mapped twice back to back; the
 * engine here looks at the same addresses as the library, so that what finds
 * races sees both sides.
 */
#ifndef USERLIB_FAKE_H
#define USERLIB_FAKE_H

#include "../socket/spindle_selftest.h"
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include "../../userlib/spindle.h"

#define FAKE_FAMILY	22
#define FAKE_IN_FLIGHT	65536
#define FAKE_SLOTS	80
#define FAKE_RINGS	(2 * FAKE_SLOTS)
#define FAKE_EVENTS	4096
#define FAKE_OBJECTS	512
#define FAKE_MAX_OBJECT	65536
#define FAKE_UID	7	/* this member's */
#define FAKE_RANK	10	/* of the first lane; the own one if it sends */

/* What a member would find; 0 takes what stands behind. */
struct fake_config {
	unsigned int window;	/* 4096 */
	unsigned int depth;	/* 16 */
	unsigned int max_msg;	/* window */
	unsigned int deliveries;	/* 64 */
	unsigned int lanes;	/* 2 */
	unsigned int slots;	/* lanes */
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

/* The memory of a lane, in a slot as long as it is not gone. */
struct fake_ring {
	unsigned char *mem;
	unsigned int slot;
	unsigned int maps;
	bool gone;
};

/* A message sent by a system call, and what came with it. */
struct fake_sent {
	unsigned char *data;
	size_t len;
	int control;		/* type of a control message, 0: none */
	struct spindle_object how;
	struct spindle_state state;
};

/* The bytes of an object, while its delivery is not collected. */
struct fake_object {
	uint64_t entry;
	size_t len;
	unsigned char *data;
};

struct fake_event {
	uint32_t number;
	uint64_t entry;
	size_t size;
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	};
};

struct fake {
	struct fake_config c;
	int fd;
	struct spindle_rings rings;
	struct spindle_status *status;
	struct spindle_user *user;
	struct spindle_delivery *deliveries;
	unsigned char *ring[FAKE_SLOTS];

	/* knobs */
	bool no_module;
	bool other_family;	/* the file tells it only after a first socket() */
	unsigned int forming;	/* looks until the view is there */
	unsigned int state;	/* what SPINDLE_GROUP_INFO says then */
	int error;
	unsigned int fail_map;	/* the n-th mmap() from now fails */
	int rings_errno;
	int map_errno;
	int bind_errno;
	int events_errno;
	unsigned int hasty;	/* so many looks at the members see a view end */
	bool rankless;		/* the group is active, but it is in no view of it */
	bool began;		/* it has read the first view's event */
	bool holds;		/* what is held must not be unmapped */
	int send_errno;
	unsigned int send_room;	/* so many may be on their way; 0: any number */
	bool echo;		/* what is sent comes at once */
	int object_errno;
	bool object_in_place;
	void (*on_send)(struct fake_sent *m);
	void (*on_wait)(void);

	/* what was asked for */
	struct sockaddr_in6 bound;
	socklen_t bound_len;
	struct spindle_group_create create;
	struct spindle_group_join join;
	int map_flags;
	int wanted, synced;
	char key[SPINDLE_KEY_LEN];
	unsigned int sockets, looks, maps, map_calls, unmaps, closes, polls, shutdowns, kicks;
	unsigned int leaves, event_calls;
	sem_t kick;

	struct fake_sent sent[FAKE_OBJECTS];
	unsigned int nsent, object_calls, pinned;
	struct spindle_explain explain;

	/* the engine */
	struct fake_object objects[FAKE_OBJECTS];
	struct fake_message taken[FAKE_IN_FLIGHT];
	uint64_t ntaken;	/* of the submissions */
	uint64_t pos;		/* behind the last taken */
	uint64_t ndelivered;	/* of the own messages */
	uint64_t lane_pos[FAKE_SLOTS];
	uint64_t lane_head[FAKE_SLOTS];
	uint64_t lane_end[FAKE_SLOTS];	/* behind the last entry from there */
	unsigned int rank[FAKE_SLOTS];
	unsigned int lanes;	/* that there ever were */
	struct fake_ring rings_of[FAKE_RINGS];
	pthread_mutex_t rings_lock;
	uint64_t view;
	struct fake_event events[FAKE_EVENTS];
	uint32_t nevents;
	uint64_t collected;	/* deliveries that came back */
	uint64_t end[FAKE_IN_FLIGHT];	/* where the message of an entry ends */
	uint64_t seq;
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
bool fake_delivery_room(void);
/* Is there room for a message of another lane, and a delivery? */
bool fake_room(unsigned int lane, uint32_t len);
/* Deliver a message of another lane. */
void fake_deliver(unsigned int lane, const void *data, uint32_t len);
/* Likewise, with flags: state for one member. */
void fake_deliver_state(unsigned int lane, uint32_t flags, const void *data, uint32_t len);
/* Deliver an object of another lane, or of the own one. */
void fake_deliver_object(unsigned int lane, uint32_t flags, const void *data, uint32_t len);
/* Deliver what is no message. */
void fake_deliver_flags(unsigned int lane, uint32_t flags);
/* Deliver an event; its number. */
uint32_t fake_event(enum spindle_event_type type);
/*
 * Give a slot to a new lane, as an engine does right before or behind a view's
 * event; false while anything of the old lane is not collected.
 */
bool fake_renew(unsigned int slot);
/* Let what was released be free again; how many. */
unsigned int fake_collect(void);
void fake_set_state(unsigned int state, int error);
void fake_set_wakeup(bool on);
/* Where a message of the own ring lies for the engine. */
const unsigned char *fake_own(uint64_t pos);

/* What the linker calls the calls that it took. */
int __real_socket(int family, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __real_setsockopt(int fd, int level, int name, const void *val, socklen_t len);
int __real_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
int __real_shutdown(int fd, int how);
int __real_close(int fd);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_munmap(void *addr, size_t len);
void *__real_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off);
FILE *__real_fopen64(const char *path, const char *mode);

#endif /* USERLIB_FAKE_H */
