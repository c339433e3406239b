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
#include "core/ballot.h"
#include "core/pass.h"

#define SP_WIRE_MAGIC	0x5370646cu		/* "Spdl" */
#define SP_WIRE_VERSION	8

#define SP_NAME_LEN	64

/**
 * struct sp_hello - private data of a connection request and of its answer
 * @magic: SP_WIRE_MAGIC, in the byte order of the node
 * @version: SP_WIRE_VERSION
 * @recvs: receives posted for the other side's SENDs
 * @reason: in a refusal, why: enum sp_refusal
 * @again: 1: the link has lost its connection, and is to have another one; else 0
 * @incarnation: of the node, so that one that was away is seen to be another; when it was
 *	made, in nanoseconds, so that what it has asked before is seen to be old
 * @session: of the link: who has asked for its first connection has drawn it
 * @received: SENDs of the other side that have come by the link: the rest is sent again
 * @made: links that the node has made so far; in a request for one, this one counted
 */
struct sp_hello {
	u32 magic;
	u16 version;
	u16 recvs;
	u32 reason;
	u32 again;
	u64 incarnation;
	u64 session;
	u32 received;
	u32 made;
};

enum sp_refusal {
	SP_REFUSE_WIRE = 1,	/* other magic, version or byte order */
	SP_REFUSE_TIE,		/* the two connected to each other at once */
	SP_REFUSE_BUSY,		/* no memory, or the node is going away, or not yet */
	SP_REFUSE_GONE,		/* there is no such link any more */
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
	SP_MSG_KEY,		/* struct sp_msg_key */
	SP_MSG_BYE,		/* struct sp_msg_bye */
	SP_MSG_ASK,		/* nothing but the header; answered by SP_MSG_CREDIT */
	SP_MSG_REPORT,		/* struct sp_msg_part */
	SP_MSG_WELCOME,		/* struct sp_msg_part */
};

/**
 * struct sp_msg - header of every SEND
 * @type: enum sp_msg_type
 * @len: bytes, with this header
 * @credits: receives the sender has posted on this link so far
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
 * @runs: 1: a struct sp_wire_run follows them, for the receiver to put where a write
 *	would have put it; else 0
 * @view: number of the view that it speaks of
 * @cells: struct sp_cell
 */
struct sp_msg_row {
	struct sp_msg hdr;
	u32 handle;
	u16 ncells;
	u16 runs;
	u64 view;
	u64 cells[];
};

/**
 * struct sp_wire_run - messages of one lane, one behind the other
 * @lane: the lane's number among those of the sender
 * @ndesc: how many
 * @slot: where in its ring of descriptors the first one goes; they go on at the start
 *	of it behind its end
 * @off: where in its ring of bytes those go; likewise
 * @len: how many
 * @desc: struct sp_desc, @ndesc of them; then the bytes
 */
struct sp_wire_run {
	u16 lane;
	u16 ndesc;
	u32 slot;
	u32 off;
	u32 len;
	u8 desc[];
};

#define SP_CARRY_MAX	512U	/* longer runs are written, though a row has room */

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
 * @limit: members of any view at most; in a join 0 stands for any
 * @senders: how many may send; likewise
 * @window: bytes of ring a sender has; likewise
 * @max_msg: largest message; likewise
 * @depth: messages in flight of one sender; likewise
 * @silent_ms: how long a node may give no sign; likewise
 * @link_ms: how long there may be no connection between two; likewise
 * @evict_ms: how long a member may hold up senders and read nothing; likewise. Of a
 *	group 0: for ever
 * @flags: SP_CONFIG_*. A node that does not know one does not join
 */
struct sp_config {
	u32 members;
	u32 limit;
	u32 senders;
	u32 window;
	u32 max_msg;
	u32 depth;
	u32 silent_ms;
	u32 link_ms;
	u32 evict_ms;
	u32 flags;
};

#define SP_CONFIG_NO_MAJORITY	(1U << 0)	/* goes on without a majority */
#define SP_CONFIG_STATE		(1U << 1)	/* who comes later is sent state */
#define SP_CONFIG_OFF_SHIFT	8		/* SP_OPT_* that are off, from here on */
#define SP_CONFIG_ALL		(SP_CONFIG_NO_MAJORITY | SP_CONFIG_STATE | \
				 SP_OPT_ALL << SP_CONFIG_OFF_SHIFT)

/* SP_OPT_* that are off. */
static inline u32 sp_config_off(const struct sp_config *cfg)
{
	return cfg->flags >> SP_CONFIG_OFF_SHIFT & SP_OPT_ALL;
}

/**
 * struct sp_msg_join - a program on the sending node wants to be a member
 * @hdr: header
 * @cookie: what the node calls it
 * @name: of the group
 * @config: what it expects of it
 * @flags: SP_MEMBER_*
 * @pad: zero
 */
struct sp_msg_join {
	struct sp_msg hdr;
	u64 cookie;
	char name[SP_NAME_LEN];
	struct sp_config config;
	u32 flags;
	u32 pad;
};

#define SP_OTHERS_MAX	4

/**
 * struct sp_msg_answer - to a struct sp_msg_join
 * @hdr: header
 * @cookie: of the join
 * @gid: the group
 * @view: number of its view; the program comes with a later one. 0: the first one
 *	is not complete, and the program is in it
 * @error: 0; a negative errno; -EREMOTE: ask @coordinator
 * @nothers: how many others there are
 * @coordinator: node that forms the view, or that has a member
 * @config: of the group
 * @others: nodes to ask should this one be lost
 */
struct sp_msg_answer {
	struct sp_msg hdr;
	u64 cookie;
	u64 gid;
	u64 view;
	s32 error;
	u32 nothers;
	struct sp_addr coordinator;
	struct sp_config config;
	struct sp_addr others[SP_OTHERS_MAX];
};

/**
 * struct sp_msg_leave - a program gave up before it was a member
 * @hdr: header
 * @gid: the group
 * @cookie: the program
 */
struct sp_msg_leave {
	struct sp_msg hdr;
	u64 gid;
	u64 cookie;
};

struct sp_wire_member {
	struct sp_addr addr;
	u64 cookie;
	u32 flags;
	u32 pad;
};

/**
 * struct sp_msg_view - members of a view, or some of them, in order
 * @hdr: header
 * @gid: the group
 * @view: its number
 * @total: members in all
 * @first: rank of the first one here
 * @count: how many are here
 * @pad: zero
 * @members: they
 */
struct sp_msg_view {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	u32 total;
	u32 first;
	u32 count;
	u32 pad;
	struct sp_wire_member members[];
};

#define SP_VIEW_CHUNK	((SP_MSG_MAX - sizeof(struct sp_msg_view)) / \
			 sizeof(struct sp_wire_member))

#define SP_KEY_POLLED	(1U << 0)	/* write your row; else send it */
#define SP_KEY_WRITTEN	(1U << 1)	/* and write all else: let no row carry anything */

/**
 * struct sp_wire_key - where a lane of the receiver may be written
 * @iova: where its replica begins
 * @cookie: the member that has the lane
 * @rkey: key to the replica
 * @nr: number of the lane among those of the receiver
 */
struct sp_wire_key {
	u64 iova;
	u64 cookie;
	u32 rkey;
	u32 nr;
};

/**
 * struct sp_msg_key - where the receiver may write: replicas of its rows and lanes
 * @hdr: header
 * @gid: the group
 * @view: the view
 * @iova: where the rows begin
 * @rkey: key to them
 * @handle: what to call (group, receiver) in rows and wakes
 * @size: bytes of a lane
 * @flags: SP_KEY_*
 * @nlanes: how many lanes follow
 * @pad: zero
 * @lane: they
 */
struct sp_msg_key {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	u64 iova;
	u32 rkey;
	u32 handle;
	u32 size;
	u32 flags;
	u32 nlanes;
	u32 pad;
	struct sp_wire_key lane[];
};

#define SP_KEY_MAX	(sizeof(struct sp_msg_key) + \
			 SP_MAX_NODE_LANES * sizeof(struct sp_wire_key))

/**
 * struct sp_msg_part - a part of a struct sp_wire_report or sp_wire_welcome
 * @hdr: header
 * @gid: the group
 * @total: bytes in all
 * @off: where this part lies in them; each part follows upon the one before
 * @data: the part
 */
struct sp_msg_part {
	struct sp_msg hdr;
	u64 gid;
	u32 total;
	u32 off;
	u8 data[];
};

/* Append to what is to be sent in parts. Return: where what follows goes. */
static inline u8 *sp_wire_put(u8 *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return to + len;
}

/* Take from what came in parts, whose length was checked. Return: what follows. */
static inline const u8 *sp_wire_get(const u8 *from, void *to, size_t len)
{
	memcpy(to, from, len);
	return from + len;
}

/**
 * struct sp_wire_report - a struct sp_report
 * @view: number of the view
 * @suspected: see there, like all that follows
 * @outranked: likewise
 * @nlanes: lanes of the view
 * @nmembers: members of the view
 * @njoins: how many joins follow
 * @ballot: of what was accepted
 * @taken: how many joins are in that
 * @wedged: 0 or 1
 * @by: of the accusation
 * @of: likewise
 * @pad: zero
 * @data: u64 counts[nlanes], trim[nlanes]; struct sp_join_request
 *	joins[njoins], accepted joins[taken]; u8 leaves[nmembers], reason[nmembers]
 */
struct sp_wire_report {
	u64 view;
	u64 suspected;
	u64 outranked;
	u32 nlanes;
	u32 nmembers;
	u32 njoins;
	u32 ballot;
	u32 taken;
	u8 wedged;
	u8 by;
	u8 of;
	u8 pad;
	u64 data[];
};

#define SP_REPORT_MAX	(sizeof(struct sp_wire_report) + sizeof(struct sp_report))

/* A member in a struct sp_wire_welcome. */
struct sp_welcome_member {
	u64 cookie;
	u32 flags;
	u32 uid;
	u32 node;	/* rank of its node */
	u32 nr;		/* number of its lane there */
	u32 sends;	/* it has one: 0 or 1 */
	u32 pad;
};

/* A lane in a struct sp_wire_welcome. */
struct sp_welcome_lane {
	u64 round;	/* the point at which it enters the view */
	u64 count;
	u64 tail;
	u64 fin;	/* its last message was delivered before: 0 or 1 */
};

/**
 * struct sp_wire_welcome - the view that begins with the receiver in it
 * @view: its number
 * @start: its first turn in the order
 * @nnodes: how many nodes
 * @nmembers: how many members
 * @nlanes: how many of these send
 * @next_uid: number of the next member that comes
 * @stayed: members that were in the view before
 * @giver: uid of who is to send the state to those who come, SP_UID_NOBODY: nobody
 * @data: struct sp_addr[nnodes], struct sp_welcome_member[nmembers], struct
 *	sp_welcome_lane[nlanes], all by rank
 */
struct sp_wire_welcome {
	u64 view;
	s64 start;
	u32 nnodes;
	u32 nmembers;
	u32 nlanes;
	u32 next_uid;
	u32 stayed;
	u32 giver;
	u64 data[];
};

#define SP_WELCOME_MAX	(sizeof(struct sp_wire_welcome) + SP_MAX_MEMBERS * \
			 (sizeof(struct sp_addr) + \
			  sizeof(struct sp_welcome_member) + \
			  sizeof(struct sp_welcome_lane)))

/**
 * struct sp_msg_bye - the sender writes nothing more to the receiver's memory
 * in this group
 * @hdr: header
 * @gid: the group
 * @view: number of the sender's view; the receiver is not in it if its own is
 *	lower. In an answer the view that was spoken of, 0 if it is not known
 * @shared: the last view that the sender knows both in: a node that leaves and comes
 *	again is told which stay is meant. In an answer as @view
 * @error: 0: it has delivered everything, or has left, or answers a bye;
 *	-ECONNABORTED: the receiver was put out; -ECONNRESET: also the answer to a
 *	key of a group that is over; else the errno the group failed with
 * @pad: zero
 */
struct sp_msg_bye {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	u64 shared;
	s32 error;
	u32 pad;
};

#endif /* SPINDLE_WIRE_H */
