/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Spindle: reliable, totally ordered RDMA multicast as a socket family.
 *
 * The one contract between the kernel module and user space. Structures grow
 * at their end only: the length given to setsockopt() says which version the
 * program was built with, and what it does not know reads as zero.
 */
#ifndef _UAPI_LINUX_SPINDLE_H
#define _UAPI_LINUX_SPINDLE_H

#include <linux/types.h>
#include <linux/socket.h>
#include <linux/in6.h>

/*
 * The family number is borrowed (Documentation/protocol.rst): the default is
 * this one, /sys/module/spindle/parameters/family holds the one in use.
 */
#define AF_SPINDLE_DEFAULT	18
#define PF_SPINDLE_DEFAULT	AF_SPINDLE_DEFAULT

#define SOL_SPINDLE		0x5350

/* Socket options, level SOL_SPINDLE. */
#define SPINDLE_GROUP_CREATE	1	/* set: struct spindle_group_create */
#define SPINDLE_GROUP_JOIN	2	/* set: struct spindle_group_join */
#define SPINDLE_GROUP_INFO	3	/* get: struct spindle_group_info */
#define SPINDLE_RECVINFO	4	/* set/get int: SPINDLE_CMSG_INFO wanted */
#define SPINDLE_GROUP_VIEW	5	/* get: array of struct sockaddr_spindle */
#define SPINDLE_MAP		6	/* set/get int: SPINDLE_MAP_*, once */
#define SPINDLE_RINGS		7	/* get: struct spindle_rings */
#define SPINDLE_DETACHED	8	/* set/get int: see there */
#define SPINDLE_GROUP_LEAVE	9	/* set int, 0: leave, and read what is left */
#define SPINDLE_EVENTS		10	/* set/get int: SPINDLE_WANT_* in the stream */
#define SPINDLE_EVENT		11	/* get: struct spindle_event, by its number */
#define SPINDLE_SYNC		12	/* set int: wait for SPINDLE_SYNC_* */
#define SPINDLE_STABILITY	13	/* get: struct spindle_stability */
#define SPINDLE_EXPLAIN		14	/* get: struct spindle_explain */
#define SPINDLE_OBJECT		15	/* get: struct spindle_object_read */
#define SPINDLE_KEY		16	/* set: description of a key, see there */
#define SPINDLE_OBJECT_FD	17	/* get: struct spindle_object_fd */

/* ioctl(): the engine is to look at the mapped rings; no argument. */
#define SIOCSPINDLEKICK		0x89E0	/* SIOCPROTOPRIVATE */

/*
 * SPINDLE_DETACHED: not zero: what is delivered is copied out of the rings into
 * a queue of the socket's own, charged to it and bounded by SO_RCVBUF, so that a
 * slow reader holds no sender before its queue is full. May be set at any time;
 * zero gives EBUSY once the socket is in a group.
 */

/*
 * SPINDLE_KEY: before a create or join: the secret that the group's members
 * share. The value is the description of a key of type "logon" or "user" which
 * the caller's keyrings have (keyrings(7)); it begins with "spindle:". The
 * secret, of 16 to 1024 bytes, is taken from it at once. An empty description
 * takes back what was given. Who brings none, or another one, does not come to a
 * group that was created with one; nor does who brings one to any other.
 */
#define SPINDLE_KEY_LEN		128	/* with a terminating NUL */

/* Control messages, level SOL_SPINDLE. */
#define SPINDLE_CMSG_INFO	1	/* struct spindle_msg_info */
#define SPINDLE_CMSG_STATE	2	/* to sendmsg(): struct spindle_state */
#define SPINDLE_CMSG_OBJECT	3	/* to sendmsg(): struct spindle_object */

#define SPINDLE_NAME_LEN	64	/* with the terminating NUL */
#define SPINDLE_MAX_MEMBERS	64
#define SPINDLE_MAX_NODE_LANES	40	/* sending members on one node */
#define SPINDLE_MIN_WINDOW	4096U
#define SPINDLE_MAX_WINDOW	(8U << 20)
#define SPINDLE_MIN_DEPTH	16U
#define SPINDLE_MAX_DEPTH	16384U
#define SPINDLE_MIN_SUSPECT	50U
#define SPINDLE_MAX_SUSPECT	600000U
#define SPINDLE_MAX_OBJECT	(64U << 20)
#define SPINDLE_MIN_BLOCK	4096U
#define SPINDLE_MAX_BLOCK	(1U << 20)
#define SPINDLE_MAX_RACK	255U

/**
 * struct sockaddr_spindle - a member of a group, or a node
 * @ss_family: the family's number
 * @ss_port: must be zero
 * @ss_rank: the member's rank in the current view; in bind() must be zero
 * @ss_addr: address of the member's node; IPv4 as an IPv4-mapped address
 * @ss_scope_id: interface index for link-local addresses, else zero
 *
 * bind() takes this one, a struct sockaddr_in or a struct sockaddr_in6 (with
 * port zero). recvmsg() and getsockname() give this one.
 */
struct sockaddr_spindle {
	__kernel_sa_family_t	ss_family;
	__u16			ss_port;
	__u32			ss_rank;
	struct in6_addr		ss_addr;
	__u32			ss_scope_id;
};

/* Flags of a member, at create and join. */
#define SPINDLE_F_RECEIVER	(1U << 0)	/* this member never sends */
#define SPINDLE_F_STATE		(1U << 1)	/* join: wants to be sent state */
/*
 * Create: the group goes on without a majority of its nodes. Two halves of a
 * network that is cut then go on as two groups, and what each of them delivers
 * the other never sees.
 */
#define SPINDLE_F_MINORITY	(1U << 8)
/*
 * Create: no more than its one sender's messages to each of its members, in the
 * order in which they were sent (RDMC). A message is given to a member when it
 * has come there, whoever lacks it yet; nobody comes later; and when a member is
 * lost the group fails at all of them. Who reads to the end, after the sender
 * has shut down sending, knows that every member has everything.
 */
#define SPINDLE_F_PLAIN		(1U << 9)
/* In struct spindle_group_info alone: the members share a secret. */
#define SPINDLE_F_KEYED		(1U << 10)

#define SPINDLE_F_ALL		(SPINDLE_F_RECEIVER | SPINDLE_F_STATE | \
				 SPINDLE_F_MINORITY | SPINDLE_F_PLAIN | \
				 SPINDLE_F_KEYED)

/*
 * Large objects. A message of more than max_msg bytes, up to max_object, takes
 * its turn in the order like any other, and travels by itself: in blocks, which
 * the nodes hand on to each other by a schedule. It is read like any other, too:
 * what does not fit the reader's buffer is cut off (MSG_TRUNC), as ever with
 * SOCK_SEQPACKET; who wants to read it in parts peeks at them with SO_PEEK_OFF.
 */
enum spindle_algorithm {
	SPINDLE_ALG_AUTO,		/* by size and group */
	SPINDLE_ALG_SEQUENTIAL,		/* all of it to one after the other */
	SPINDLE_ALG_CHAIN,		/* each hands each block to the next */
	SPINDLE_ALG_TREE,		/* who has all of it hands it on */
	SPINDLE_ALG_PIPELINE,		/* binomial pipeline */
	SPINDLE_ALG_HYBRID,		/* binomial pipelines across racks, and within */
	SPINDLE_ALGS,
};

/**
 * struct spindle_object - how a message is to be sent
 * @algorithm: enum spindle_algorithm, instead of the group's
 * @flags: SPINDLE_OBJECT_*
 */
struct spindle_object {
	__u32	algorithm;
	__u32	flags;
};

#define SPINDLE_OBJECT_ALWAYS	(1U << 0)	/* though it fits the ring */
/*
 * An object's pages may be sent from where they are: those of the message's first
 * piece, if it begins with a page. What cannot be is copied. The program leaves
 * them as they are until SPINDLE_SYNC_UNPINNED or spindle_stability.pinned say
 * that they are not used any more, as others may read different bytes otherwise.
 */
#define SPINDLE_OBJECT_IN_PLACE	(1U << 1)
#define SPINDLE_OBJECT_ALL	(SPINDLE_OBJECT_ALWAYS | \
				 SPINDLE_OBJECT_IN_PLACE)

/**
 * struct spindle_explain - how a message would be sent, and why
 * @len: in: its bytes
 * @how: in: as for sendmsg()
 * @object: out: in blocks; 0: through the ring
 * @algorithm: out: enum spindle_algorithm
 * @block: out: bytes of a block
 * @blocks: out: how many
 * @steps: out: steps of the schedule
 * @nodes: out: nodes of the view
 * @racks: out: racks they are in
 * @__resv: must be zero
 * @why: out: the reason, in words
 */
struct spindle_explain {
	__u32	len;
	struct spindle_object how;
	__u32	object;
	__u32	algorithm;
	__u32	block;
	__u32	blocks;
	__u32	steps;
	__u32	nodes;
	__u32	racks;
	__u32	__resv[6];
	char	why[64];
};

/**
 * struct spindle_object_read - copy (a part of) an object out of the kernel, for
 * programs that map their deliveries
 * @delivery: which delivery, as published counts them; not released yet
 * @addr: where to
 * @off: from where in the object
 * @len: so many bytes at most; on return, so many
 * @__resv: must be zero
 */
struct spindle_object_read {
	__aligned_u64 delivery;
	__aligned_u64 addr;
	__aligned_u64 off;
	__u32	len;
	__u32	__resv[3];
};

/**
 * struct spindle_object_fd - an object as a file, to map it and copy nothing
 * @delivery: for programs that map their deliveries: which, as in &struct
 *	spindle_object_read. For others 0: the message that they would read next
 * @len: on return, bytes of the object
 * @fd: on return, the file: to be read and mapped, not written. It is closed by
 *	execve(2)
 * @__resv: must be zero
 *
 * The message stays the next one. The file and its mappings outlive it, the
 * group and the socket; what they hold counts as the group's memory.
 */
struct spindle_object_fd {
	__aligned_u64 delivery;
	__aligned_u64 len;
	__s32	fd;
	__u32	__resv[3];
};

/**
 * struct spindle_group_create - make a group and be its first member
 * @name: NUL-terminated, printable, without '/', not "." nor ".."
 * @members: number of members the first view waits for, 1 to
 *	SPINDLE_MAX_MEMBERS
 * @senders: how many of them send: the lowest ranks that did not come as
 *	receivers; 0: all that did not
 * @window: bytes of ring a sender has, a power of two from
 *	SPINDLE_MIN_WINDOW to SPINDLE_MAX_WINDOW; 0: 256 KiB
 * @max_msg: largest message in bytes, at most @window; 0: 16 KiB or @window,
 *	whichever is less
 * @depth: messages a sender may have in flight, a power of two from
 *	SPINDLE_MIN_DEPTH to SPINDLE_MAX_DEPTH; 0: 1024
 * @flags: SPINDLE_F_* of this member and of the group
 * @max_members: how many members it may ever have at once; 0: 16 or @members,
 *	whichever is more
 * @suspect_ms: a node of which nothing was heard for so long is suspected, in
 *	milliseconds, SPINDLE_MIN_SUSPECT to SPINDLE_MAX_SUSPECT; 0: the module's
 *	parameter suspect_ms
 * @evict_ms: a member that has held up senders at one place for so long is put
 *	out of the group, in milliseconds; 0: it is waited for
 * @max_object: largest message that is sent in blocks, up to
 *	SPINDLE_MAX_OBJECT; 0: 16 MiB; not more than @max_msg: none is
 * @block: bytes of a block, a power of two from SPINDLE_MIN_BLOCK to
 *	SPINDLE_MAX_BLOCK; 0: by the size of the object
 * @algorithm: enum spindle_algorithm
 * @rack: where this node is, 0 to SPINDLE_MAX_RACK
 * @__resv: must be zero
 */
struct spindle_group_create {
	char	name[SPINDLE_NAME_LEN];
	__u32	members;
	__u32	senders;
	__u32	window;
	__u32	max_msg;
	__u32	depth;
	__u32	flags;
	__u32	max_members;
	__u32	suspect_ms;
	__u32	evict_ms;
	__u32	max_object;
	__u32	block;
	__u32	algorithm;
	__u32	rack;
	__u32	__resv[1];
};

/**
 * struct spindle_group_join - become a member of a group
 * @name: as in &struct spindle_group_create
 * @contact: address of any node that has a member of the group: a struct
 *	sockaddr_in, sockaddr_in6 or sockaddr_spindle, in its first bytes
 * @members: 0, or what the group must have been created with
 * @senders: likewise
 * @window: likewise
 * @max_msg: likewise
 * @depth: likewise
 * @flags: SPINDLE_F_* of this member
 * @rack: as in &struct spindle_group_create
 * @__resv: must be zero
 */
struct spindle_group_join {
	char	name[SPINDLE_NAME_LEN];
	__u8	contact[32];
	__u32	members;
	__u32	senders;
	__u32	window;
	__u32	max_msg;
	__u32	depth;
	__u32	flags;
	__u32	rack;
	__u32	__resv[7];
};

enum spindle_group_state {
	SPINDLE_STATE_NONE = 0,		/* not a member of any group */
	SPINDLE_STATE_FORMING,		/* the first view is not complete */
	SPINDLE_STATE_ACTIVE,		/* messages flow */
	SPINDLE_STATE_FAILED,		/* this node cannot go on; see @error */
	SPINDLE_STATE_CLOSED,		/* all senders shut down, or this node left */
};

/**
 * struct spindle_group_info - a group as this member sees it
 * @name: its name
 * @view: number of the current view, 0 before the first
 * @state: enum spindle_group_state
 * @error: the errno the group failed with, else 0
 * @rank: this member's rank, ~0 before the first view
 * @members: members of the view (before the first: members waited for)
 * @senders: senders of the view (before the first: as configured)
 * @window: bytes of ring a sender has
 * @max_msg: largest message, bytes
 * @depth: messages a sender may have in flight
 * @sent: messages this member sent
 * @received: messages this member took from its socket
 * @max_members: members the group may have
 * @suspect_ms: see &struct spindle_group_create
 * @evict_ms: likewise
 * @flags: SPINDLE_F_* of this member and of the group
 * @nodes: nodes of the view
 * @max_object: as in &struct spindle_group_create
 * @__resv: reads as zero
 */
struct spindle_group_info {
	char	name[SPINDLE_NAME_LEN];
	__aligned_u64 view;
	__u32	state;
	__s32	error;
	__u32	rank;
	__u32	members;
	__u32	senders;
	__u32	window;
	__u32	max_msg;
	__u32	depth;
	__aligned_u64 sent;
	__aligned_u64 received;
	__u32	max_members;
	__u32	suspect_ms;
	__u32	evict_ms;
	__u32	flags;
	__u32	nodes;
	__u32	max_object;
	__u32	__resv[2];
};

/**
 * struct spindle_msg_info - what SPINDLE_CMSG_INFO says of a message
 * @view: view it was delivered in
 * @seq: its place in the order of the group, which runs on over its views; not
 *	dense, since a sender's unused turns count
 * @rank: sender's rank in that view
 * @flags: SPINDLE_INFO_*
 */
struct spindle_msg_info {
	__aligned_u64 view;
	__aligned_u64 seq;
	__u32	rank;
	__u32	flags;
};

#define SPINDLE_INFO_STATE	(1U << 0)	/* state, for this member alone */
#define SPINDLE_INFO_LAST	(1U << 1)	/* the last of it */

/**
 * struct spindle_state - what is sent is state for one member that has joined
 * @uid: the member, from the event of the view that took it in
 * @flags: SPINDLE_INFO_LAST, or 0
 *
 * It is a message in the order like any other, but the other members are not
 * given it. What follows the last one the member counts as up to date, and
 * everybody who wants it is given an event of type SPINDLE_EVENT_CURRENT.
 */
struct spindle_state {
	__u32	uid;
	__u32	flags;
};

/*
 * Events.
 *
 * With setsockopt(SPINDLE_EVENTS) a program says which it wants in its stream.
 * recvmsg() then gives a struct spindle_event in place of a message, with
 * MSG_SPINDLE_EVENT in msg_flags, in its place among the messages. Events of
 * type VIEW come at the same place of the stream at every member; the others
 * are what this node has seen.
 */
#define MSG_SPINDLE_EVENT	0x8000

enum spindle_event_type {
	SPINDLE_EVENT_VIEW = 1,		/* a view begins */
	SPINDLE_EVENT_SUSPECTED,	/* a node is not heard any more */
	SPINDLE_EVENT_SLOW,		/* a member or node holds up senders */
	SPINDLE_EVENT_EVICTED,		/* this node is put out, or is cut off */
	SPINDLE_EVENT_CURRENT,		/* a member that came is up to date */
};

#define SPINDLE_WANT_VIEW	(1 << SPINDLE_EVENT_VIEW)
#define SPINDLE_WANT_SUSPECTED	(1 << SPINDLE_EVENT_SUSPECTED)
#define SPINDLE_WANT_SLOW	(1 << SPINDLE_EVENT_SLOW)
#define SPINDLE_WANT_EVICTED	(1 << SPINDLE_EVENT_EVICTED)
#define SPINDLE_WANT_CURRENT	(1 << SPINDLE_EVENT_CURRENT)
#define SPINDLE_WANT_ALL	(SPINDLE_WANT_VIEW | SPINDLE_WANT_SUSPECTED | \
				 SPINDLE_WANT_SLOW | SPINDLE_WANT_EVICTED | \
				 SPINDLE_WANT_CURRENT)

/* Why a member is in the view no more. */
enum spindle_reason {
	SPINDLE_REASON_NONE,
	SPINDLE_REASON_LEFT,		/* it wanted to */
	SPINDLE_REASON_EXITED,		/* its socket was closed, or it was killed */
	SPINDLE_REASON_LOST,		/* its node was not heard any more */
	SPINDLE_REASON_SLOW,		/* it did not read */
};

/*
 * spindle_event_member.flags. A member's first event of type VIEW says JOINED of
 * itself alone, and of nobody that has left: it does not know the view before.
 */
#define SPINDLE_EM_JOINED	(1U << 0)	/* comes with this view */
#define SPINDLE_EM_STATE	(1U << 1)	/* and wants to be sent state */
#define SPINDLE_EM_RECEIVER	(1U << 2)	/* never sends */
#define SPINDLE_EM_SELF		(1U << 3)	/* the member that reads this */

/**
 * struct spindle_event_member - a member in an event
 * @addr: its node
 * @rank: its rank in the view; of one that is gone, in the view before
 * @uid: its number, the same in all views, never given again
 * @flags: SPINDLE_EM_*
 * @reason: enum spindle_reason, for one that is gone
 */
struct spindle_event_member {
	struct in6_addr	addr;
	__u32	rank;
	__u32	uid;
	__u32	flags;
	__u32	reason;
};

/**
 * struct spindle_event - an event
 * @type: enum spindle_event_type
 * @number: counts the events of this node's group, low half; given to
 *	getsockopt(SPINDLE_EVENT) by programs that map their deliveries
 * @view: the view: of type VIEW, the one that begins
 * @seq: it comes after this turn of the order
 * @error: of type EVICTED: the errno that the group ends with
 * @members: members of the view: that many entries come first
 * @left: members that are gone: that many entries follow
 * @subject: of types SUSPECTED, SLOW and CURRENT: rank of a member of the node,
 *	or of the member; else ~0
 * @__resv: reads as zero
 * @member: of type VIEW: the members
 */
struct spindle_event {
	__u32	type;
	__u32	number;
	__aligned_u64 view;
	__aligned_u64 seq;
	__s32	error;
	__u32	members;
	__u32	left;
	__u32	subject;
	__u32	__resv[6];

	__extension__ struct spindle_event_member member[];
};

/* SPINDLE_SYNC: wait until all that this member has sent ... */
#define SPINDLE_SYNC_RECEIVED	1	/* was received by every node */
#define SPINDLE_SYNC_DELIVERED	2	/* was read by every member */
#define SPINDLE_SYNC_UNPINNED	3	/* needs no memory of the program any more */

/**
 * struct spindle_stability - how far this member's messages have come
 * @view: the current view
 * @sent: messages sent
 * @received: of these, received by every node: none can be lost any more
 * @delivered: of these, read by every member
 * @pinned: objects of which memory of the program is used: SPINDLE_OBJECT_IN_PLACE
 * @__resv: reads as zero
 */
struct spindle_stability {
	__aligned_u64 view;
	__aligned_u64 sent;
	__aligned_u64 received;
	__aligned_u64 delivered;
	__u32	pinned;
	__u32	__resv[7];
};

/*
 * Mapped rings.
 *
 * setsockopt(SPINDLE_MAP) on a member of an active group makes the pages that
 * the program and the kernel share, and gives sending, receiving or both over
 * to them for good: sendmsg() or recvmsg() say EBUSY from then on.
 * getsockopt(SPINDLE_RINGS) then says what is where for mmap() (MAP_SHARED,
 * one call for each region, of exactly its size). poll() goes on to work.
 *
 *   region       protection  content
 *   -----------  ----------  --------------------------------------------------
 *   status       read        struct spindle_status
 *   user         read/write  struct spindle_user and its submissions
 *   deliveries   read        array of struct spindle_delivery
 *   own          read/write  the own lane's ring, twice back to back
 *   lane i       read        ring of the lane in slot i, twice back to back
 *
 * A ring is bytes in units of SPINDLE_UNIT; each message starts at the next
 * unit after the one before it. Positions count units and are never reduced:
 * a message at position p starts at byte (p * SPINDLE_UNIT) % window.
 *
 *   what                      written by            read by       paired
 *   ------------------------  --------------------  ------------  --------------
 *   submissions[], own bytes  program               kernel        before tx_tail
 *   user.tx_tail              program (release)     kernel        acquire
 *   user.rx_released          program (release)     kernel        acquire
 *   deliveries[], lane bytes  kernel                program       before published
 *   status.published          kernel (release)      program       acquire
 *   status.tx_head, tx_freed  kernel (release)      program       acquire
 *   status.flags              kernel, then a full   program, after a full
 *                             barrier and a look    barrier behind its tx_tail
 *                             at tx_tail and        or rx_released
 *                             rx_released
 *
 * Each word of 64 bits is loaded and stored in one access; a 32-bit program
 * must see to that. The kernel believes nothing it reads there: what it cannot use harms the
 * program that wrote it and nobody else.
 */
#define SPINDLE_MAP_TX		(1 << 0)	/* send by submissions */
#define SPINDLE_MAP_RX		(1 << 1)	/* receive by deliveries */
#define SPINDLE_MAP_ALL		(SPINDLE_MAP_TX | SPINDLE_MAP_RX)

#define SPINDLE_UNIT_SHIFT	6
#define SPINDLE_UNIT		(1U << SPINDLE_UNIT_SHIFT)

/**
 * struct spindle_rings - where mmap() finds what
 * @status_off: offset of the status region, @status_size bytes
 * @user_off: of the user region
 * @delivery_off: of the deliveries
 * @own_off: of the own ring; 2 * @window bytes
 * @lane_off: of the lane in slot 0; each is 2 * @window bytes
 * @lane_stride: from one slot's offset to the next
 * @status_size: bytes
 * @user_size: bytes
 * @delivery_size: bytes
 * @window: bytes of a ring, a power of two
 * @depth: submissions, a power of two; one message less may be in flight
 * @max_msg: largest message, bytes
 * @deliveries: entries of the delivery ring, a power of two
 * @lanes: slots for lanes that there can be
 * @lane: the own lane's slot, -1 for who does not send
 * @flags: SPINDLE_MAP_* as set
 * @__resv: reads as zero
 */
struct spindle_rings {
	__aligned_u64 status_off;
	__aligned_u64 user_off;
	__aligned_u64 delivery_off;
	__aligned_u64 own_off;
	__aligned_u64 lane_off;
	__aligned_u64 lane_stride;
	__aligned_u64 status_size;
	__aligned_u64 user_size;
	__aligned_u64 delivery_size;
	__u32	window;
	__u32	depth;
	__u32	max_msg;
	__u32	deliveries;
	__u32	lanes;
	__s32	lane;
	__u32	flags;
	__u32	__resv[9];
};

/* spindle_status.flags */
#define SPINDLE_NEED_WAKEUP	(1U << 0)	/* say SIOCSPINDLEKICK */

/**
 * struct spindle_status - what the kernel tells a program with mapped rings
 * @published: deliveries that may be read, counted from the view's first
 * @rx_base: the first that is this program's, as @published counts
 * @flags: SPINDLE_NEED_WAKEUP
 * @state: enum spindle_group_state. What was published before it became
 *	FAILED or CLOSED is the last
 * @error: the errno the group failed with; valid once @state says so
 * @tx_error: errno of a submission that was refused: from then on none is
 *	taken; 0: none
 * @tx_taken: submissions taken so far
 * @tx_head: position from which on the own ring is kept; up to @tx_head +
 *	window / SPINDLE_UNIT may be filled
 * @tx_freed: messages whose room is free again. A submission with number n
 *	(from 0) may be made while @tx_base + n - @tx_freed < depth - 1
 * @tx_base: messages the lane had taken before the first submission, and objects
 *	that the program has sent since; changes within sendmsg() only
 * @tx_start: position of the first submission's message
 * @__resv3: reads as zero
 * @__resv1: reads as zero
 * @__resv2: reads as zero
 */
struct spindle_status {
	__aligned_u64 published;
	__aligned_u64 rx_base;
	__u32	flags;
	__u32	state;
	__s32	error;
	__s32	tx_error;
	__u32	__resv1[8];
	__aligned_u64 tx_taken;
	__aligned_u64 tx_head;
	__aligned_u64 tx_freed;
	__aligned_u64 tx_base;
	__aligned_u64 tx_start;
	__u32	__resv2[6];
	__u8	__resv3[SPINDLE_MAX_MEMBERS];
};

/**
 * struct spindle_submission - a message that is complete in the own ring
 * @len: its length in bytes, at most max_msg
 * @flags: zero; or of state for one member SPINDLE_DELIVERY_STATE, with or
 *	without SPINDLE_DELIVERY_LAST, and the member's uid
 */
struct spindle_submission {
	__u32	len;
	__u32	flags;
};

/**
 * struct spindle_user - what a program with mapped rings tells the kernel
 * @tx_tail: submissions made so far
 * @tx_want_head: poll() says EPOLLOUT once tx_head is at least this and
 * @tx_want_freed: tx_freed at least this
 * @rx_released: deliveries up to here (as published counts, not including it)
 *	are no longer needed; only grows, up to published
 * @rx_seen: poll() says EPOLLIN once published is more than this
 * @submissions: a ring of depth entries
 * @__resv1: must be zero
 * @__resv2: must be zero
 */
struct spindle_user {
	__aligned_u64 tx_tail;
	__aligned_u64 tx_want_head;
	__aligned_u64 tx_want_freed;
	__u32	__resv1[10];
	__aligned_u64 rx_released;
	__aligned_u64 rx_seen;
	__u32	__resv2[12];

	__extension__ struct spindle_submission submissions[];
};

/* spindle_delivery.flags */
#define SPINDLE_DELIVERY_FIN	(1U << 0)	/* no message: its sender's end */
#define SPINDLE_DELIVERY_EVENT	(1U << 1)	/* no message: an event */
#define SPINDLE_DELIVERY_STATE	(1U << 2)	/* for one member only */
#define SPINDLE_DELIVERY_LAST	(1U << 3)	/* with that: the last of it */
#define SPINDLE_DELIVERY_OBJECT	(1U << 4)	/* an object: see SPINDLE_OBJECT */
#define SPINDLE_DELIVERY_UID_SHIFT 8		/* of state: the member's uid */

#define SPINDLE_DELIVERY_SLOT	0xffffu		/* of @lane: slot of the lane */
#define SPINDLE_DELIVERY_RANK_SHIFT 16		/* of @lane: the sender's rank */

/**
 * struct spindle_delivery - a message in the order
 * @seq: its place in the order
 * @lane: slot of its lane, and its sender's rank in the view; of an event: its
 *	type. A slot is given to another lane once all its messages were
 *	released: an event of type VIEW comes before any message of that
 * @pos: where it starts in that lane's ring, in units, reduced; of an event:
 *	its number, for getsockopt(SPINDLE_EVENT) until it is released
 * @len: bytes
 * @flags: SPINDLE_DELIVERY_*; what a program does not know it passes over
 */
struct spindle_delivery {
	__aligned_u64 seq;
	__u32	lane;
	__u32	pos;
	__u32	len;
	__u32	flags;
};

#endif /* _UAPI_LINUX_SPINDLE_H */
