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

/* Control messages, level SOL_SPINDLE. */
#define SPINDLE_CMSG_INFO	1	/* struct spindle_msg_info */

#define SPINDLE_NAME_LEN	64	/* with the terminating NUL */
#define SPINDLE_MAX_MEMBERS	64
#define SPINDLE_MAX_NODE_LANES	40	/* sending members on one node */
#define SPINDLE_MIN_WINDOW	4096U
#define SPINDLE_MAX_WINDOW	(8U << 20)
#define SPINDLE_MIN_DEPTH	16U
#define SPINDLE_MAX_DEPTH	16384U

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

#define SPINDLE_F_ALL		SPINDLE_F_RECEIVER

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
 * @flags: SPINDLE_F_* of this member
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
	__u32	__resv[8];
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
	__u32	__resv[8];
};

enum spindle_group_state {
	SPINDLE_STATE_NONE = 0,		/* not a member of any group */
	SPINDLE_STATE_FORMING,		/* the first view is not complete */
	SPINDLE_STATE_ACTIVE,		/* messages flow */
	SPINDLE_STATE_FAILED,		/* a member was lost; see @error */
	SPINDLE_STATE_CLOSED,		/* every sender shut down, all delivered */
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
	__u32	__resv[8];
};

/**
 * struct spindle_msg_info - what SPINDLE_CMSG_INFO says of a message
 * @view: view it was delivered in
 * @seq: its place in the order of that view; not dense, since a sender's
 *	unused turns count
 * @rank: sender's rank in that view
 * @flags: zero
 */
struct spindle_msg_info {
	__aligned_u64 view;
	__aligned_u64 seq;
	__u32	rank;
	__u32	flags;
};

#endif /* _UAPI_LINUX_SPINDLE_H */
