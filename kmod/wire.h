/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What nodes say to each other in SENDs, and in the private data of a
 * connection. One-sided writes need no format but the slab's layout
 * (core/sst.h). All in the byte order of the nodes: a group is of one order,
 * which &struct sp_hello makes sure of.
 */
#ifndef SPINDLE_WIRE_H
#define SPINDLE_WIRE_H

#include <linux/types.h>
#include "core/agree.h"
#include "core/order.h"
#include "core/proof.h"

#define SP_WIRE_MAGIC	0x5370646cu		/* "Spdl" */
#define SP_WIRE_VERSION	5

#define SP_NAME_LEN	64

/**
 * struct sp_hello - private data of a connection request and of its answer
 * @magic: SP_WIRE_MAGIC, in the byte order of the node
 * @version: SP_WIRE_VERSION
 * @recvs: receives posted for the other side's SENDs
 * @reason: in a refusal, why: enum sp_refusal; in a request, SP_HELLO_BULK when
 *	it is for the objects of a link that the two have
 * @attempt: connections that the node has asked for or taken so far; with
 *	SP_HELLO_BULK, what it said when it made the link
 * @incarnation: of the node, so that one that was away is seen to be another
 */
struct sp_hello {
	u32 magic;
	u16 version;
	u16 recvs;
	u32 reason;
	u32 attempt;
	u64 incarnation;
};

#define SP_HELLO_BULK	1

enum sp_refusal {
	SP_REFUSE_WIRE = 1,	/* other magic, version or byte order */
	SP_REFUSE_TIE,		/* the two connected to each other at once */
	SP_REFUSE_BUSY,		/* no memory, or the node is going away */
};

#define SP_MSG_MAX	1024	/* largest SEND, header and all */

enum sp_msg_type {
	SP_MSG_CREDIT = 1,	/* nothing but the header */
	SP_MSG_ROW,		/* struct sp_msg_row: completion-guarded doorbell */
	SP_MSG_WAKE,		/* struct sp_msg_wake */
	SP_MSG_JOIN,		/* struct sp_msg_join */
	SP_MSG_ANSWER,		/* struct sp_msg_answer */
	SP_MSG_LEAVE,		/* struct sp_msg_leave */
	SP_MSG_VIEW,		/* struct sp_msg_view */
	SP_MSG_KEYS,		/* struct sp_msg_keys */
	SP_MSG_BYE,		/* struct sp_msg_bye */
	SP_MSG_BEAT,		/* nothing but the header: the node is alive */
	SP_MSG_TELL,		/* struct sp_msg_tell */
	SP_MSG_BULK,		/* nothing but the header: connect for objects */
	SP_MSG_READY,		/* struct sp_msg_ready */
	SP_MSG_STOP,		/* struct sp_msg_stop */
	SP_MSG_GO,		/* struct sp_msg_go */
	SP_MSG_CHALLENGE,	/* struct sp_msg_challenge */
	SP_MSG_PROVE,		/* struct sp_msg_prove */
};

/**
 * struct sp_msg - header of every SEND
 * @type: enum sp_msg_type
 * @len: bytes, with this header
 * @credits: receives the sender has posted on this connection so far
 */
struct sp_msg {
	u16 type;
	u16 len;
	u32 credits;
};

/**
 * struct sp_msg_row - the sender's row, in place of a write of it
 * @hdr: header
 * @handle: what the receiver calls (group, sender)
 * @ncells: cells that follow
 * @view: number of the view it speaks of
 * @cells: struct sp_cell
 */
struct sp_msg_row {
	struct sp_msg hdr;
	u32 handle;
	u32 ncells;
	u64 view;
	u64 cells[];
};

/**
 * struct sp_msg_wake - look again at what the sender has written
 * @hdr: header
 * @handle: what the receiver calls (group, sender)
 * @pad: zero
 */
struct sp_msg_wake {
	struct sp_msg hdr;
	u32 handle;
	u32 pad;
};

/**
 * struct sp_config - configuration of a group, the same on all its nodes
 * @members: members the first view waits for
 * @senders: how many may send; in a join 0 stands for any
 * @window: bytes of ring a sender has; likewise
 * @max_msg: largest message; likewise
 * @depth: messages in flight of one sender; likewise
 * @max_members: how many members there may be at once
 * @suspect_ms: a node that is silent for so long is suspected
 * @evict_ms: a member that holds up senders for so long is put out; 0: never
 * @flags: SP_CONFIG_*
 * @max_object: largest object, bytes; 0: there are none
 * @block: bytes of a block of an object, a power of two; 0: by its size
 * @kind: how objects are spread: one more than an enum sp_schedule_kind; 0: by
 *	size and number of nodes
 * @pad: zero
 */
struct sp_config {
	u32 members;
	u32 senders;
	u32 window;
	u32 max_msg;
	u32 depth;
	u32 max_members;
	u32 suspect_ms;
	u32 evict_ms;
	u32 flags;
	u32 max_object;
	u32 block;
	u32 kind;
	u32 pad;
};

#define SP_CONFIG_MINORITY	(1U << 0)	/* goes on without a majority */
#define SP_CONFIG_PLAIN		(1U << 1)	/* no order among nodes: delivered
						 * when it has come
						 */
#define SP_CONFIG_KEYED		(1U << 2)	/* members share a secret */

enum sp_join_keyed {
	SP_JOIN_PLAIN,		/* the program has no secret */
	SP_JOIN_KEYED,		/* it has: ask for a proof */
	SP_JOIN_PROOF,		/* here is the proof */
};

/**
 * struct sp_msg_join - a program on the sending node wants to be a member
 * @hdr: header
 * @cookie: what the node calls it
 * @name: of the group
 * @config: what it expects of it
 * @flags: SP_MEMBER_*
 * @keyed: enum sp_join_keyed
 * @nonce: of the sender, with a proof
 * @mac: proof of all the above; see trust.c
 * @pad: zero
 */
struct sp_msg_join {
	struct sp_msg hdr;
	u64 cookie;
	char name[SP_NAME_LEN];
	struct sp_config config;
	u32 flags;
	u32 keyed;
	u8 nonce[SP_NONCE_LEN];
	u8 mac[SP_MAC_LEN];
	u32 pad;
};

/**
 * struct sp_msg_challenge - prove that the program knows the group's secret
 * @hdr: header
 * @cookie: of the join, which is to be said once more
 * @gid: the group
 * @view: number of the sender's view, 0: none
 * @nonce: for this proof alone
 */
struct sp_msg_challenge {
	struct sp_msg hdr;
	u64 cookie;
	u64 gid;
	u64 view;
	u8 nonce[SP_NONCE_LEN];
};

/**
 * struct sp_msg_prove - what the sender can prove of a group's secret
 * @hdr: header
 * @gid: the group
 * @prove: see there
 */
struct sp_msg_prove {
	struct sp_msg hdr;
	u64 gid;
	struct sp_prove prove;
};

/**
 * struct sp_msg_answer - to a struct sp_msg_join
 * @hdr: header
 * @cookie: of the join
 * @gid: the group
 * @error: 0; a negative errno; -EREMOTE: ask @coordinator
 * @live: the group has a view, and is about to take in the member
 * @coordinator: node that forms the view
 * @config: of the group
 * @keyed: with a proof
 * @mac: proof of all the above
 */
struct sp_msg_answer {
	struct sp_msg hdr;
	u64 cookie;
	u64 gid;
	s32 error;
	u32 live;
	struct sp_addr coordinator;
	struct sp_config config;
	u32 keyed;
	u8 mac[SP_MAC_LEN];
};

/**
 * struct sp_msg_leave - a member gave up before it was in a view
 * @hdr: header
 * @gid: the group
 * @cookie: the member
 */
struct sp_msg_leave {
	struct sp_msg hdr;
	u64 gid;
	u64 cookie;
};

/**
 * struct sp_wire_member - a member of a view
 * @addr: its node
 * @cookie: what that calls it
 * @flags: SP_MEMBER_*
 * @uid: see &struct sp_member
 * @lane: its rank among the senders, or -1
 * @nr: see &struct sp_member
 * @round: where its lane enters the view; see &struct sp_point
 * @count: likewise
 * @tail: likewise
 */
struct sp_wire_member {
	struct sp_addr addr;
	u64 cookie;
	u32 flags;
	u32 uid;
	s32 lane;
	u32 nr;
	u64 round;
	u64 count;
	u64 tail;
};

/**
 * struct sp_msg_view - members of a view, or some of them, in order
 * @hdr: header
 * @gid: the group
 * @view: its number. Of the first view the receiver finds lanes and points by
 *	itself
 * @start: its first turn in the order
 * @next_uid: see &struct sp_view
 * @total: members in all
 * @first: rank of the first one here
 * @count: how many are here
 * @members: they
 */
struct sp_msg_view {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	s64 start;
	u32 next_uid;
	u32 total;
	u32 first;
	u32 count;
	struct sp_wire_member members[];
};

#define SP_VIEW_CHUNK	((SP_MSG_MAX - sizeof(struct sp_msg_view)) / \
			 sizeof(struct sp_wire_member))

#define SP_KEY_POLLED	(1U << 0)	/* write your row; else send it */

/**
 * struct sp_wire_key - where the receiver may write
 * @cookie: its member in whose lane's replica; 0: its rows
 * @iova: where that begins
 * @size: its bytes
 * @rkey: key to it
 * @pad: zero
 */
struct sp_wire_key {
	u64 cookie;
	u64 iova;
	u64 size;
	u32 rkey;
	u32 pad;
};

/**
 * struct sp_msg_keys - where the receiver may write; good for this connection
 * @hdr: header
 * @gid: the group
 * @handle: what to call (group, receiver) in rows and wakes
 * @flags: SP_KEY_*
 * @count: keys that follow
 * @pad: zero
 * @view: number of the view that the sender is in
 * @keys: they
 */
struct sp_msg_keys {
	struct sp_msg hdr;
	u64 gid;
	u32 handle;
	u32 flags;
	u32 count;
	u32 pad;
	u64 view;
	struct sp_wire_key keys[];
};

#define SP_KEYS_CHUNK	((SP_MSG_MAX - sizeof(struct sp_msg_keys)) / \
			 sizeof(struct sp_wire_key))

/**
 * struct sp_msg_tell - a part of a struct sp_wire_tell
 * @hdr: header
 * @gid: the group
 * @total: bytes of it in all
 * @off: where this part lies in it; each follows upon the one before
 * @data: the part
 */
struct sp_msg_tell {
	struct sp_msg hdr;
	u64 gid;
	u32 total;
	u32 off;
	u8 data[];
};

/**
 * struct sp_wire_tell - a struct sp_tell
 * @view: number of the view
 * @suspected: see there, like all that follows
 * @nlanes: lanes of the view
 * @nmembers: members of the view
 * @wedged: 0 or 1
 * @nasks: how many asks follow
 * @ballot: of what was accepted
 * @njoins: how many joins are in that
 * @data: u64 counts[nlanes], u64 trim[nlanes], struct sp_newcomer
 *	asks[nasks], joins[njoins], u8 leaves[nmembers], reason[nmembers]
 */
struct sp_wire_tell {
	u64 view;
	u64 suspected;
	u32 nlanes;
	u32 nmembers;
	u32 wedged;
	u32 nasks;
	u32 ballot;
	u32 njoins;
	u64 data[];
};

#define SP_TELL_MAX	(sizeof(struct sp_wire_tell) + sizeof(struct sp_tell))

/**
 * struct sp_msg_ready - the sender takes blocks of an object from the receiver
 * @hdr: header
 * @gid: the group
 * @view: number of the view
 * @count: number of the object's descriptor in its lane
 * @lane: rank of the lane
 * @handle: what to call this in blocks and in struct sp_msg_stop; 0: the sender
 *	has the whole object
 * @iova: where its copy begins
 * @rkey: key to that, good on this connection until the last block that the
 *	schedule gives the receiver, or until it says stop
 * @done: so many of the blocks that the schedule gives the receiver have come
 * @upto: so many it may send
 * @pad: zero
 */
struct sp_msg_ready {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	u64 count;
	u32 lane;
	u32 handle;
	u64 iova;
	u32 rkey;
	u32 done;
	u32 upto;
	u32 pad;
};

/* Immediate data of a block: the handle, and which of its blocks it is. */
#define SP_IMM_SHIFT	16
#define SP_IMM_MASK	0xffffU

/**
 * struct sp_msg_go - it is the receiver's turn to send blocks of an object
 * @hdr: header
 * @handle: from a struct sp_msg_ready
 * @upto: so many of those that the schedule gives it
 */
struct sp_msg_go {
	struct sp_msg hdr;
	u32 handle;
	u32 upto;
};

/**
 * struct sp_msg_stop - the sender writes nothing more by a handle
 * @hdr: header
 * @handle: from a struct sp_msg_ready
 * @posted: so many of the blocks that the schedule gives the sender were written
 */
struct sp_msg_stop {
	struct sp_msg hdr;
	u32 handle;
	u32 posted;
};

/**
 * struct sp_msg_bye - the sender writes nothing more to the receiver's memory
 * in this group
 * @hdr: header
 * @gid: the group
 * @error: 0: it has delivered everything, or answers a bye; else the errno the
 *	group failed with
 * @pad: zero
 */
struct sp_msg_bye {
	struct sp_msg hdr;
	u64 gid;
	s32 error;
	u32 pad;
};

#endif /* SPINDLE_WIRE_H */
