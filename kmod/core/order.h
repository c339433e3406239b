/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Total order of one group as one node sees it: send, receive and delivery
 * predicates (Spindle paper, sections 2.4, 3.2 and 3.3) as pure code.
 *
 * The caller owns all memory and all locks. &struct sp_tx belongs to a lane's
 * sender and is touched under that lane's lock; &struct sp_order belongs to
 * the engine. What passes between them goes by value: sp_tx_snapshot().
 */
#ifndef SPINDLE_CORE_ORDER_H
#define SPINDLE_CORE_ORDER_H

#include "seq.h"
#include "sst.h"
#include "view.h"

/**
 * struct sp_point - how far a lane has come
 * @round: turns taken or promised, nulls counted
 * @count: descriptors written
 * @tail: units of ring taken
 * @pad: bytes at the end of the last unit that hold nothing
 */
struct sp_point {
	u64 round;
	u64 count;
	u64 tail;
	u32 pad;
};

/**
 * struct sp_tx - the sending side of an own lane
 * @now: how far it has come
 * @freed: descriptors whose messages need not be kept any longer
 * @head: units of ring likewise
 * @desc: ring of descriptors, in the own slab, where no program can write
 * @depth: its length, a power of two
 * @units: units of the lane's ring, a power of two
 * @base: the lane's first turn in the view
 * @start: the view's first turn in the order
 * @rank: rank of the lane among the senders
 * @senders: number of senders
 * @privates: descriptors up to the last of a private message
 * @nmembers: members of the view
 * @uid: their numbers, by rank: private messages may be for these
 * @messages: messages sent, without SP_DESC_FIN
 * @bytes: bytes in them
 * @fin: nothing more is sent
 */
struct sp_tx {
	struct sp_point now;
	u64 freed;
	u64 head;
	struct sp_desc *desc;
	u32 depth;
	u32 units;
	u64 base;
	s64 start;
	u32 rank;
	u32 senders;
	u64 privates;
	u32 nmembers;
	u32 uid[SP_MAX_MEMBERS];
	u64 messages;
	u64 bytes;
	bool fin;
};

/* Stretches of a lane to push: at most two of bytes, two of descriptors. */
struct sp_seg {
	u32 off;	/* bytes from the start of the ring */
	u32 len;	/* bytes; 0: nothing */
};

struct sp_run {
	struct sp_seg bytes[2];
	struct sp_seg desc[2];
};

/**
 * struct sp_lane - the receiving side of a lane
 * @node: node that owns it, by rank in the view
 * @lane: its number among that node's lanes
 * @member: rank of the member that sends here
 * @base: its first turn in the view
 * @now: how far it has come, as received
 * @taken: descriptors delivered
 * @desc: private ring of checked descriptors; an own lane's are its own
 * @src: its descriptors in the replica, which its owner writes
 * @freed: descriptors whose messages all local readers have consumed
 * @head: units of ring likewise
 * @done: place in the order of the last of these
 * @held: messages of it in the log that a local reader still needs
 * @told_freed: @freed when peers were last pressed to be told of it
 * @told_head: @head likewise
 * @fin: its last message was delivered
 */
struct sp_lane {
	u32 node;
	u32 lane;
	u32 member;
	u64 base;
	struct sp_point now;
	u64 taken;
	struct sp_desc *desc;
	const struct sp_desc *src;
	u64 freed;
	u64 head;
	s64 done;
	u64 held;
	u64 told_freed;
	u64 told_head;
	bool fin;
};

/**
 * struct sp_node_seen - what a node's row said last
 * @received: its received_num
 * @consumed: everything up to it was consumed by its readers
 */
struct sp_node_seen {
	s64 received;
	s64 consumed;
};

/* A group's lanes on a node: those of the view and those still read from. */
#define SP_MAX_SLOTS		256U

#define SP_LOG_EVENT		(1U << 1)	/* no message: see sp_order_event() */

/* sp_log.lane of a message */
#define SP_LOG_SLOT		0xffffU		/* slot of its lane on this node */
#define SP_LOG_RANK_SHIFT	16		/* rank of its sender in the view */

/**
 * struct sp_log - a delivered message, or an event
 * @seq: its place in the order
 * @lane: slot of the sender's lane, and the sender's rank; of an event: what it is
 * @pos: where it starts in that lane's ring, in units, reduced; of an event: its
 *	number, low half
 * @len: bytes
 * @flags: SP_DESC_*, SP_LOG_EVENT
 */
struct sp_log {
	s64 seq;
	u32 lane;
	u32 pos;
	u32 len;
	u32 flags;
};

/**
 * struct sp_order - order of one group on one node
 * @lanes: lanes, by slot; SP_MAX_SLOTS of them if views follow each other
 * @slot: slot of each sender, by rank
 * @nodes: the nodes, by rank
 * @log: ring of delivered messages that a local reader still needs
 * @nlanes: number of senders
 * @nnodes: number of nodes
 * @self: this node
 * @depth: descriptors of a lane, a power of two
 * @units: units of a lane's ring, a power of two
 * @max_len: largest message, bytes
 * @log_size: length of @log: a power of two; more than the lanes of the view and
 *	those that are still read from can fill together, else the end of a view
 *	may find no room
 * @epoch: the view's epoch
 * @start: the view's first turn in the order
 * @slack: turns that lanes may be ahead on top: what was left of the last view
 * @delivered: every turn up to it was delivered here
 * @due: the highest received_num of this node that covers a message which the one
 *	before did not: peers wait to be told of it, not of empty turns behind it
 * @published: messages put into @log so far
 * @released: messages of it that all local readers have consumed
 * @fins: lanes of the view whose last message was delivered
 * @nmembers: members of the view
 * @uid: their numbers, by rank
 * @seat: rank of the node of each
 * @stale: members, a bit each, by rank, that are not up to date: no message with
 *	SP_DESC_STATE for them was delivered
 * @privates: private messages delivered
 * @messages: messages delivered that somebody here reads, without SP_DESC_FIN ones
 * @bytes: bytes in them
 * @nulls: turns delivered without a message
 */
struct sp_order {
	struct sp_lane *lanes;
	u16 slot[SP_MAX_MEMBERS];
	struct sp_node_seen *nodes;
	struct sp_log *log;
	u32 nlanes;
	u32 nnodes;
	u32 self;
	u32 depth;
	u32 units;
	u32 max_len;
	u32 log_size;
	u64 epoch;
	s64 start;
	u64 slack;
	s64 delivered;
	s64 due;
	u64 published;
	u64 released;
	u32 fins;
	u32 nmembers;
	u32 uid[SP_MAX_MEMBERS];
	u8 seat[SP_MAX_MEMBERS];
	u64 stale;
	u64 privates;
	u64 messages;
	u64 bytes;
	u64 nulls;
};

/* How many stretches a run has. */
static inline u32 sp_run_segs(const struct sp_run *run)
{
	return !!run->bytes[0].len + !!run->bytes[1].len +
	       !!run->desc[0].len + !!run->desc[1].len;
}

/* The sender's side: under the lane's lock. */
void sp_tx_init(struct sp_tx *tx, struct sp_desc *desc, u32 depth, u32 window,
		u32 rank, u32 senders);
int sp_tx_space(const struct sp_tx *tx, u32 len, u64 *off);
void sp_tx_commit(struct sp_tx *tx, u32 len, u32 flags);
u64 sp_tx_nulls(struct sp_tx *tx, u64 round);
void sp_tx_view(struct sp_tx *tx, u64 base, s64 start, u32 rank, u32 senders);
void sp_tx_members(struct sp_tx *tx, const struct sp_view *v);
int sp_tx_private(const struct sp_tx *tx, u32 uid);
s64 sp_tx_seq(const struct sp_tx *tx, u64 index);
s64 sp_tx_place(const struct sp_tx *tx, u64 count);
bool sp_tx_free(struct sp_tx *tx, s64 consumed, u64 completed);
u64 sp_tx_unfreed(const struct sp_tx *tx);
void sp_tx_cut(const struct sp_tx *tx, const struct sp_point *from,
	       struct sp_point *to, u64 messages, u64 units);
bool sp_tx_run(const struct sp_point *from, const struct sp_point *to,
	       u32 depth, u32 units, struct sp_run *run);
u64 sp_messages(const struct sp_desc *ring, u32 depth, u64 from, u64 to);

/* The engine's side. */
static inline struct sp_lane *sp_order_lane(const struct sp_order *o, u32 rank)
{
	return &o->lanes[o->slot[rank]];
}

void sp_lane_init(struct sp_lane *lane, const struct sp_point *at);
void sp_lane_point(const struct sp_lane *lane, u32 depth, struct sp_point *at);
void sp_order_init(struct sp_order *o);
void sp_order_own(struct sp_order *o, u32 rank, const struct sp_point *now);
int sp_order_take(struct sp_order *o, u32 rank, u64 word, u32 max);
int sp_order_row(struct sp_order *o, u32 node, s64 received, s64 consumed);
u64 sp_order_null_target(const struct sp_order *o, u32 rank);
bool sp_order_advance(struct sp_order *o);
void sp_order_publish(struct sp_order *o, u32 rank, u64 index, s64 seq);
u32 sp_order_deliver(struct sp_order *o, u32 max);
int sp_order_trim(struct sp_order *o, const u64 *trim);	/* trim.c */
bool sp_order_trim_ends(const struct sp_order *o, const u64 *trim);
void sp_order_state(const struct sp_order *o, const struct sp_view *old,
		    struct sp_view *v);
int sp_order_event(struct sp_order *o, u32 what, u32 number);
bool sp_order_reads(const struct sp_order *o, u32 node, u32 flags);
void sp_order_members(struct sp_order *o, const struct sp_view *v);
bool sp_order_release(struct sp_order *o, u64 upto);
s64 sp_order_consumed(const struct sp_order *o);
bool sp_order_quiet(const struct sp_order *o);
bool sp_order_flows(const struct sp_order *o);

/*
 * May a sender want room of a lane of which this is not free? A message of full length
 * might not fit, or one of half the ring: programs may ask for so much at once.
 */
static inline bool sp_order_full(const struct sp_order *o, u64 units, u64 messages)
{
	return units + max(sp_units(o->max_len), o->units / 2) > o->units ||
	       messages >= o->depth / 2;
}

#endif /* SPINDLE_CORE_ORDER_H */
