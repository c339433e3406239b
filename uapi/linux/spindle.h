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
#define SPINDLE_STABLE		12	/* get: struct spindle_stable */
#define SPINDLE_SYNC		13	/* set int, SPINDLE_SYNC_*: wait, as fsync(2) does */

/* ioctl(): the engine is to look at the mapped rings; no argument. */
#define SIOCSPINDLEKICK		0x89E0	/* SIOCPROTOPRIVATE */

/*
 * SPINDLE_DETACHED: not zero: what is delivered is copied out of the rings into
 * a queue of the socket's own, charged to it and bounded by SO_RCVBUF, so that a
 * slow reader holds no sender before its queue is full. May be set at any time;
 * zero gives EBUSY once the socket is in a group.
 */

/* Control messages, level SOL_SPINDLE. */
#define SPINDLE_CMSG_INFO	1	/* received: struct spindle_msg_info */
#define SPINDLE_CMSG_TO		2	/* sent: struct spindle_to */

#define SPINDLE_NAME_LEN	64	/* with the terminating NUL */
#define SPINDLE_MAX_MEMBERS	64
#define SPINDLE_MAX_NODE_LANES	40	/* sending members on one node */
#define SPINDLE_MAX_LANES	256	/* numbers of mapped lanes: see struct spindle_rings */
#define SPINDLE_MIN_WINDOW	4096U
#define SPINDLE_MAX_WINDOW	(8U << 20)
#define SPINDLE_MIN_DEPTH	16U
#define SPINDLE_MAX_DEPTH	16384U
#define SPINDLE_MIN_PATIENCE	50U	/* milliseconds: silent_ms, link_ms, evict_ms */
#define SPINDLE_MAX_PATIENCE	600000U

/**
 * struct sockaddr_spindle - a member of a group, or a node
 * @ss_family: the family's number
 * @ss_port: must be zero
 * @ss_rank: the member's rank: from recvmsg() in the view of the message, else
 *	in the current view, ~0 in none (0: in no group); in bind() must be zero
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
/*
 * Create: the group goes on without a majority of its nodes. Two halves of a
 * network that is cut then go on as two groups, and what each of them delivers
 * the other never sees.
 */
#define SPINDLE_F_NO_MAJORITY	(1U << 8)

/*
 * Create: who comes later lacks what the group has come to so far, and is not up to
 * date before a member has sent it that: see struct spindle_to and SPINDLE_EM_STALE.
 */
#define SPINDLE_F_STATE		(1U << 9)

#define SPINDLE_F_ALL		(SPINDLE_F_RECEIVER | SPINDLE_F_NO_MAJORITY | \
				 SPINDLE_F_STATE)

/*
 * Create, for measurements: what the group does without on all its nodes (the
 * baseline of the paper is without all of it). Slow at best; without nulls a
 * sender that is silent, or sends less than the others, stalls the group.
 */
#define SPINDLE_OFF_SEND	(1U << 0)	/* batches of messages pushed */
#define SPINDLE_OFF_RECEIVE	(1U << 1)	/* batches of messages acknowledged */
#define SPINDLE_OFF_DELIVER	(1U << 2)	/* batches of messages delivered */
#define SPINDLE_OFF_NULL	(1U << 3)	/* nulls: turns that are given up */
#define SPINDLE_OFF_UNLOCK	(1U << 4)	/* posting without a lane's lock */
#define SPINDLE_OFF_ALL		((1U << 5) - 1)

/**
 * struct spindle_group_create - make a group and be its first member
 * @name: NUL-terminated, printable, without '/', not "." nor ".."
 * @members: number of members the first view waits for, 1 to
 *	SPINDLE_MAX_MEMBERS. Others may join later
 * @senders: how many may send at a time: the lowest ranks that did not come as
 *	receivers; 0: all that did not
 * @window: bytes of ring a sender has, a power of two from
 *	SPINDLE_MIN_WINDOW to SPINDLE_MAX_WINDOW; 0: 1 MiB, or
 *	less where many send: 4 MiB in all, but 256 KiB at least
 * @max_msg: largest message in bytes, at most @window; 0: 16 KiB or @window,
 *	whichever is less
 * @depth: places for messages of a sender in flight, a power of two from
 *	SPINDLE_MIN_DEPTH to SPINDLE_MAX_DEPTH; 0: 1024. The last one is kept
 *	for its end of the stream: one message less may be in flight
 * @flags: SPINDLE_F_* of this member and of the group
 * @optimise_off: SPINDLE_OFF_*; other than zero only with CAP_NET_ADMIN. Who
 *	joins takes it as it is
 * @max_members: members of any view at most, @members to SPINDLE_MAX_MEMBERS; 0:
 *	SPINDLE_MAX_MEMBERS. Memory is set apart for the messages of so many senders
 * @silent_ms: milliseconds without a sign of a node before it is lost,
 *	SPINDLE_MIN_PATIENCE to SPINDLE_MAX_PATIENCE; 0: the module's suspect_ms
 * @link_ms: milliseconds that two nodes may be without a connection, while they try to
 *	have another one, before one of them is lost; likewise; 0, or more: as @silent_ms
 * @evict_ms: milliseconds that a member may hold up senders, and read nothing, before it
 *	is evicted, SPINDLE_MIN_PATIENCE to SPINDLE_MAX_PATIENCE; 0: they wait for it for ever
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
	__u32	optimise_off;
	__u32	max_members;
	__u32	silent_ms;
	__u32	link_ms;
	__u32	evict_ms;
	__u32	__resv[3];
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
 * @max_members: as @members
 * @silent_ms: as @members
 * @link_ms: as @members
 * @evict_ms: as @members
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
	__u32	max_members;
	__u32	silent_ms;
	__u32	link_ms;
	__u32	evict_ms;
	__u32	__resv[4];
};

enum spindle_group_state {
	SPINDLE_STATE_NONE = 0,		/* not a member of any group */
	SPINDLE_STATE_FORMING,		/* the first view is not complete */
	SPINDLE_STATE_ACTIVE,		/* messages flow */
	SPINDLE_STATE_FAILED,		/* this node cannot go on; see @error */
	SPINDLE_STATE_CLOSED,		/* all senders shut down, or this member left */
	SPINDLE_STATE_EVICTED,		/* this member did not read: the others go on */
	SPINDLE_STATE_MINORITY,		/* no majority of the nodes is heard; nobody sends
					 * until one is
					 */
};

/**
 * struct spindle_group_info - a group as this member sees it
 * @name: its name
 * @view: number of the current view, 0 before the first
 * @state: enum spindle_group_state
 * @error: the errno the group failed with; ENOBUFS for who was evicted; ENETDOWN while no
 *	majority is heard; else 0
 * @rank: this member's rank; ~0 before the first view, and in no view any more
 * @members: members of the view (before the first: members waited for)
 * @senders: senders of the view (before the first: as configured)
 * @window: bytes of ring a sender has
 * @max_msg: largest message, bytes
 * @depth: places for messages of a sender in flight
 * @sent: messages this member sent
 * @received: messages this member took from its socket
 * @optimise_off: SPINDLE_OFF_* that the group was created with
 * @max_members: members of any view at most
 * @silent_ms: milliseconds without a sign of a node before it is lost
 * @link_ms: milliseconds without a connection to a node before it is lost
 * @evict_ms: milliseconds of holding up senders before a member is evicted; 0: never
 * @uid: this member's number, the same in all views; ~0 before the first
 * @stale: members of the view that are not up to date, of what was delivered here
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
	__u32	optimise_off;
	__u32	max_members;
	__u32	silent_ms;
	__u32	link_ms;
	__u32	evict_ms;
	__u32	uid;
	__u32	stale;
	__u32	__resv[1];
};

/*
 * SPINDLE_SYNC: wait until this is true of all that the member has sent. One of them
 * at a time.
 */
#define SPINDLE_SYNC_RECEIVED	(1 << 0)	/* every node has received it */
#define SPINDLE_SYNC_CONSUMED	(1 << 1)	/* every member's program is done with it */
#define SPINDLE_SYNC_DONTWAIT	(1 << 8)	/* and with it: as if the socket did not block */

/**
 * struct spindle_stable - how far messages have come
 * @sent: messages this member has sent
 * @received: so many of them, from its first, every node of the view has received:
 *	every member that stays delivers them
 * @consumed: so many of them every member's program is done with, this one's, too: it
 *	has taken them from its socket, or released their deliveries, or they were
 *	copied for it because it is detached
 * @order_received: as @received, of all messages of the group: of those whose places
 *	in the order (spindle_msg_info.seq) are below this
 * @order_consumed: as @consumed, likewise. What other members have sent may be
 *	consumed long before it is known here: nobody tells of that by itself
 * @__resv: reads as zero
 */
struct spindle_stable {
	__aligned_u64 sent;
	__aligned_u64 received;
	__aligned_u64 consumed;
	__aligned_u64 order_received;
	__aligned_u64 order_consumed;
	__aligned_u64 __resv[3];
};

/*
 * Private messages are for one member alone. They have their places in the order, and
 * in the lane of their sender, like all others; their bytes go to that member's node
 * only. These flags are those of struct spindle_to, spindle_msg_info,
 * spindle_submission and spindle_delivery.
 */
#define SPINDLE_PRIVATE		(1U << 2)	/* for one member alone */
#define SPINDLE_UP_TO_DATE	(1U << 3)	/* with it that member has all of the state */
/* In submissions and deliveries: whom it is for, spindle_event_member.uid, from here on. */
#define SPINDLE_UID_SHIFT	8

/**
 * struct spindle_to - SPINDLE_CMSG_TO, with sendmsg(): for whom a message is
 * @uid: spindle_event_member.uid of a member of the view; may be the sender
 * @flags: SPINDLE_UP_TO_DATE, or zero
 * @__resv: must be zero
 */
struct spindle_to {
	__u32	uid;
	__u32	flags;
	__u32	__resv[2];
};

/**
 * struct spindle_msg_info - what SPINDLE_CMSG_INFO says of a message
 * @view: view it was delivered in
 * @seq: its place in the order of the group, which runs on over its views; not
 *	dense, since a sender's unused turns count
 * @rank: sender's rank in that view
 * @flags: SPINDLE_PRIVATE, and with it perhaps SPINDLE_UP_TO_DATE
 */
struct spindle_msg_info {
	__aligned_u64 view;
	__aligned_u64 seq;
	__u32	rank;
	__u32	flags;
};

/*
 * Events.
 *
 * With setsockopt(SPINDLE_EVENTS) a program says which it wants in its stream.
 * recvmsg() then gives a struct spindle_event in place of a message, with
 * MSG_SPINDLE_EVENT in msg_flags, in its place among the messages. Events of
 * type VIEW come at the same place of the stream at every member, those of type STATE at
 * every other one than the member that is up to date, in the place of its message. Those
 * of type STABLE come to one socket alone, before whatever it would read next, and never
 * where deliveries are mapped.
 */
#define MSG_SPINDLE_EVENT	0x8000

enum spindle_event_type {
	SPINDLE_EVENT_VIEW = 1,		/* a view begins */
	SPINDLE_EVENT_STABLE = 2,	/* what SPINDLE_SYNC did not wait for is true */
	SPINDLE_EVENT_STATE = 3,	/* another member is up to date now */
};

#define SPINDLE_WANT_VIEW	(1 << SPINDLE_EVENT_VIEW)
#define SPINDLE_WANT_STABLE	(1 << SPINDLE_EVENT_STABLE)
#define SPINDLE_WANT_STATE	(1 << SPINDLE_EVENT_STATE)
#define SPINDLE_WANT_ALL	(SPINDLE_WANT_VIEW | SPINDLE_WANT_STABLE | \
				 SPINDLE_WANT_STATE)

/* Why a member is in the view no more. */
enum spindle_reason {
	SPINDLE_REASON_NONE,
	SPINDLE_REASON_LEFT,		/* it wanted to */
	SPINDLE_REASON_EXITED,		/* its socket was closed, or it was killed */
	SPINDLE_REASON_LOST,		/* its node was not heard any more */
	SPINDLE_REASON_SLOW,		/* it did not read, and was evicted */
};

/* spindle_event_member.flags */
#define SPINDLE_EM_JOINED	(1U << 0)	/* comes with this view */
#define SPINDLE_EM_RECEIVER	(1U << 2)	/* never sends */
#define SPINDLE_EM_SELF		(1U << 3)	/* the member that reads this */
#define SPINDLE_EM_STALE	(1U << 4)	/* not up to date: SPINDLE_F_STATE */
/*
 * Who is to send the state to all that are not up to date: of those that are, and send,
 * the lowest rank, and then that one as long as it can. Nobody if there is none.
 */
#define SPINDLE_EM_GIVES	(1U << 5)

/**
 * struct spindle_event_member - a member in an event
 * @addr: its node
 * @rank: its rank in the view; of one that is gone, in the view before
 * @uid: its number, the same in all views: below 2^24 - 1, and not given again before all
 *	others were
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
 * @number: of type VIEW: number of the view, low half. In the first bytes given
 *	to getsockopt(SPINDLE_EVENT), by programs that map their deliveries: which
 *	event of that type they want. Of type STABLE: SPINDLE_SYNC_*, of what was
 *	asked for that which is true now. Of type STATE: the member's uid
 * @view: the view: of type VIEW, the one that begins
 * @seq: it comes after this turn of the order; ~0 at the group's beginning. Of type
 *	STATE: the turn of the message that says so
 * @members: of type VIEW: members of the view: that many entries come first
 * @left: of type VIEW: members that are gone: that many entries follow
 * @member_size: bytes from one entry to the next; more than those of struct
 *	spindle_event_member on modules that say more
 * @__resv: reads as zero
 * @member: of type VIEW: the members. Of type STABLE: in their place, a struct
 *	spindle_stable
 */
struct spindle_event {
	__u32	type;
	__u32	number;
	__aligned_u64 view;
	__aligned_u64 seq;
	__u32	members;
	__u32	left;
	__u32	member_size;
	__u32	__resv[7];

	__extension__ struct spindle_event_member member[];
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
 *   lane i       read        ring of lane i, twice back to back
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
 * @lane_off: of the first lane; each is 2 * @window bytes
 * @lane_stride: from one lane's offset to the next
 * @status_size: bytes
 * @user_size: bytes
 * @delivery_size: bytes
 * @window: bytes of a ring, a power of two
 * @depth: submissions, a power of two; one message less may be in flight
 * @max_msg: largest message, bytes
 * @deliveries: entries of the delivery ring, a power of two
 * @lanes: numbers that a lane may have, from 0; at most SPINDLE_MAX_LANES. It keeps
 *	its number in all views; when it is gone and read, the number may be another
 *	one's, in the same mapping. All of them can be mapped at any time, but there is
 *	nothing to read in a lane before a delivery names it, nor once that was
 *	released: who touches a lane that is not there gets SIGBUS
 * @lane: the own lane, -1 for who does not send
 * @flags: SPINDLE_MAP_* as set
 * @lanes_there: from this number on there is no lane yet; those below are worth being
 *	mapped, and populated, before the first message
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
	__u32	lanes_there;
	__u32	__resv[8];
};

/* spindle_status.flags */
#define SPINDLE_NEED_WAKEUP	(1U << 0)	/* say SIOCSPINDLEKICK */
#define SPINDLE_RX_MAY_WAIT	(1U << 1)	/* but not when deliveries were released */

/**
 * struct spindle_status - what the kernel tells a program with mapped rings
 * @published: deliveries that may be read, counted from the group's first
 * @rx_base: the first that is this program's, as @published counts
 * @flags: SPINDLE_NEED_WAKEUP, and perhaps with it SPINDLE_RX_MAY_WAIT
 * @state: enum spindle_group_state. What was published before it became
 *	FAILED or CLOSED is the last. Once it is EVICTED nothing that was published is
 *	kept: lanes read as zeros, deliveries may be any. So who has read a delivery or
 *	a message looks at @state behind that, and believes what it has read if it is not
 * @error: the errno the group failed with, or that of who was evicted; valid once
 *	@state says so
 * @tx_error: errno of a submission that was refused: from then on none is
 *	taken; 0: none
 * @tx_taken: submissions taken so far
 * @tx_head: position from which on the own ring is kept; up to @tx_head +
 *	window / SPINDLE_UNIT may be filled
 * @tx_freed: messages whose room is free again. A submission with number n
 *	(from 0) may be made while @tx_base + n - @tx_freed < depth - 1
 * @tx_base: messages the lane had taken before the first submission
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
	__u8	__resv3[64];
};

/**
 * struct spindle_submission - a message that is complete in the own ring
 * @len: its length in bytes, at most max_msg
 * @flags: zero; or SPINDLE_PRIVATE, for whom, and perhaps SPINDLE_UP_TO_DATE. If that
 *	member is in the view no more nobody is given it
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

/* spindle_delivery.lane of a message */
#define SPINDLE_DELIVERY_LANE	0xffffU		/* the lane */
#define SPINDLE_DELIVERY_RANK_SHIFT 16		/* rank of its sender in the view */

/**
 * struct spindle_delivery - a message in the order
 * @seq: its place in the order
 * @lane: its lane, and its sender's rank; of an event: enum spindle_event_type
 * @pos: where it starts in that lane's ring, in units, reduced; of an event: its
 *	number, for getsockopt(SPINDLE_EVENT)
 * @len: bytes
 * @flags: SPINDLE_DELIVERY_*, or as in submissions; what a program does not know, and
 *	what is for another member, it passes over: there is nothing to read then
 */
struct spindle_delivery {
	__aligned_u64 seq;
	__u32	lane;
	__u32	pos;
	__u32	len;
	__u32	flags;
};

#endif /* _UAPI_LINUX_SPINDLE_H */
