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
#define SP_WIRE_VERSION	4

#define SP_NAME_LEN	64

/**
 * struct sp_hello - private data of a connection request and of its answer
 * @magic: SP_WIRE_MAGIC, in the byte order of the node
 * @version: SP_WIRE_VERSION
 * @recvs: receives posted for the other side's SENDs
 * @reason: in a refusal, why: enum sp_refusal
 * @pad: zero
 * @incarnation: of the node, so that one that was away is seen to be another
 */
struct sp_hello {
	u32 magic;
	u16 version;
	u16 recvs;
	u32 reason;
	u32 pad;
	u64 incarnation;
};

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
	SP_MSG_KEY,		/* struct sp_msg_key */
	SP_MSG_BYE,		/* struct sp_msg_bye */
	SP_MSG_ASK,		/* nothing but the header; answered by SP_MSG_CREDIT */
	SP_MSG_REPORT,		/* struct sp_msg_report */
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
 * @senders: how many may send; in a join 0 stands for any
 * @window: bytes of ring a sender has; likewise
 * @max_msg: largest message; likewise
 * @depth: messages in flight of one sender; likewise
 * @flags: SP_CONFIG_*. A node that does not know one does not join
 */
struct sp_config {
	u32 members;
	u32 senders;
	u32 window;
	u32 max_msg;
	u32 depth;
	u32 flags;
};

#define SP_CONFIG_NO_MAJORITY	(1U << 0)	/* goes on without a majority */
#define SP_CONFIG_OFF_SHIFT	8		/* SP_OPT_* that are off, from here on */
#define SP_CONFIG_ALL		(SP_CONFIG_NO_MAJORITY | \
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

/**
 * struct sp_msg_answer - to a struct sp_msg_join
 * @hdr: header
 * @cookie: of the join
 * @gid: the group
 * @error: 0; a negative errno; -EREMOTE: ask @coordinator
 * @pad: zero
 * @coordinator: node that forms the view
 * @config: of the group
 */
struct sp_msg_answer {
	struct sp_msg hdr;
	u64 cookie;
	u64 gid;
	s32 error;
	u32 pad;
	struct sp_addr coordinator;
	struct sp_config config;
};

/**
 * struct sp_msg_leave - a member gave up before the first view
 * @hdr: header
 * @gid: the group
 * @cookie: the member
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
 * struct sp_msg_key - where the receiver may write: its own slab's replica
 * @hdr: header
 * @gid: the group
 * @view: the view
 * @iova: where the replica begins
 * @size: its bytes
 * @rkey: key to it
 * @handle: what to call (group, receiver) in rows and wakes
 * @flags: SP_KEY_*
 * @pad: zero
 */
struct sp_msg_key {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	u64 iova;
	u64 size;
	u32 rkey;
	u32 handle;
	u32 flags;
	u32 pad;
};

/**
 * struct sp_msg_report - a part of a struct sp_wire_report
 * @hdr: header
 * @gid: the group
 * @total: bytes of the report in all
 * @off: where this part lies in it; each part follows upon the one before
 * @data: the part
 */
struct sp_msg_report {
	struct sp_msg hdr;
	u64 gid;
	u32 total;
	u32 off;
	u8 data[];
};

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

/**
 * struct sp_msg_bye - the sender writes nothing more to the receiver's memory
 * in this group
 * @hdr: header
 * @gid: the group
 * @view: number of the sender's view; the receiver is not in it if its own is
 *	lower. 0 in an answer
 * @error: 0: it has delivered everything, or has left, or answers a bye;
 *	-ECONNABORTED: the receiver was put out; -ECONNRESET: also the answer to a
 *	key of a group that is over; else the errno the group failed with
 * @pad: zero
 */
struct sp_msg_bye {
	struct sp_msg hdr;
	u64 gid;
	u64 view;
	s32 error;
	u32 pad;
};

#endif /* SPINDLE_WIRE_H */
