/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One pass of the predicates over one group on one node.
 *
 * The core decides; a shell (engine.c in the kernel, the simulator in user
 * space) lends it memory, locks and posting through &struct sp_shell_ops.
 */
#ifndef SPINDLE_CORE_PASS_H
#define SPINDLE_CORE_PASS_H

#include "doze.h"
#include "order.h"
#include "view.h"

struct sp_core;

/*
 * The optimisations of the Spindle paper. Each can be turned off, so that what
 * it brings can be measured; what programs see stays the same, but for
 * SP_OPT_NULL: without nulls a sender that is silent stalls the others. All nodes
 * must agree on that one from the first turn on: who has given up turns comes to
 * rounds that who gives up none never reaches. So they are part of a group's
 * configuration, with these numbers (wire.h, SPINDLE_OFF_*).
 */
#define SP_OPT_SEND	(1U << 0)	/* one push for all that was committed (3.2) */
#define SP_OPT_RECEIVE	(1U << 1)	/* one ack for all that was received (3.2) */
#define SP_OPT_DELIVER	(1U << 2)	/* all that is stable delivered at once (3.2) */
#define SP_OPT_NULL	(1U << 3)	/* nulls (3.3) */
#define SP_OPT_UNLOCK	(1U << 4)	/* no lane's lock is held to post (3.4) */
#define SP_OPT_ALL	((1U << 5) - 1)
#define SP_OPT_BATCH	(SP_OPT_SEND | SP_OPT_RECEIVE | SP_OPT_DELIVER)

/* The stages of which the batches are counted. */
enum sp_stage {
	SP_STAGE_SEND,		/* of one own lane, pushed together */
	SP_STAGE_RECEIVE,	/* of all lanes of peers, acknowledged together */
	SP_STAGE_DELIVER,	/* delivered together */
	SP_STAGES,
};

#define SP_BATCH_SIZES	128

/*
 * A push takes at most this part of a lane's ring, or so many units, or one
 * message, and two pushes are on the way to a peer: a row is not to wait
 * behind a whole ring of bytes, for the acknowledgments in it are what makes
 * the peers' rings free again.
 */
#define SP_PUSH_PART	8
#define SP_PUSH_UNITS	(65536U / SP_UNIT)

/*
 * Passes without news before a node that polls goes to sleep, while an answer is
 * due: so many times what one takes, and so many times sp_core.spin. Nor is one
 * waited for that takes longer than so many times as long as that.
 */
#define SP_SPIN_ANSWERS	4
#define SP_SPIN_BUSY	8
#define SP_SPIN_MOST	32

/* Why a row is posted: often for several reasons at once. */
#define SP_WHY_DATA	(1U << 0)	/* messages went before it */
#define SP_WHY_NULL	(1U << 1)	/* turns were given up, and nothing was sent */
#define SP_WHY_ACK	(1U << 2)	/* more was received */
#define SP_WHY_CONSUMED	(1U << 3)	/* readers are done with more */
#define SP_WHY_FLAG	(1U << 4)	/* this node goes to sleep */
#define SP_WHY_BEGIN	(1U << 5)	/* the first of a view or of a connection */
#define SP_WHY_WAIT	(1U << 6)	/* this node waits for the peer's readers */
#define SP_WHY_ALL	((1U << 7) - 1)

/**
 * struct sp_posts - what was posted to the peers, and why
 * @rows: rows, by all the reasons that were true of one
 * @segs: stretches of lanes, bytes and descriptors apart, by writes of their own
 * @carried: runs that travelled in a row
 * @wakes: wakes right behind a row
 * @wakes_late: wakes once a row had landed
 */
struct sp_posts {
	u64 rows[SP_WHY_ALL + 1];
	u64 segs;
	u64 carried;
	u64 wakes;
	u64 wakes_late;
};

/**
 * struct sp_batches - how many messages a stage took at once
 * @messages: in all batches; neither nulls nor SP_DESC_FIN count
 * @size: batches of one message, of two, and so on; the last entry counts all
 *	that were larger than that as well
 */
struct sp_batches {
	u64 messages;
	u64 size[SP_BATCH_SIZES];
};

/**
 * struct sp_shell_ops - what the core asks of its shell
 * @lane_lock: take the lock of own lane @own; sleeps are not allowed within
 * @lane_unlock: drop it
 * @post_run: post writes of stretches of own lane @own to peer @node, in the
 *	order of &struct sp_run; all or nothing. 0, or -EAGAIN when the send
 *	queue has no room, or another errno when the peer is out of reach.
 *	Like @post_row, called under one lane's lock without SP_OPT_UNLOCK
 * @post_row: post the row, from a private copy, behind what was posted to
 *	@node before, and in the same request @run of own lane @own, unless that is
 *	NULL. @ticket: what @landed must reach before the write and all before it
 *	have landed there, a run where its writes would have put it. Errors as
 *	@post_run
 * @landed: highest ticket of writes to @node that have landed
 * @post_wake: send one wake to @node. Errors as @post_run
 *
 * Tickets of one peer never decrease. None of these may sleep on the progress
 * of another node.
 */
struct sp_shell_ops {
	void (*lane_lock)(struct sp_core *c, u32 own);
	void (*lane_unlock)(struct sp_core *c, u32 own);
	int (*post_run)(struct sp_core *c, u32 node, u32 own,
			const struct sp_run *run);
	int (*post_row)(struct sp_core *c, u32 node, const struct sp_cell *cells,
			u32 n, u32 own, const struct sp_run *run, u64 *ticket);
	u64 (*landed)(struct sp_core *c, u32 node);
	int (*post_wake)(struct sp_core *c, u32 node);
};

/**
 * struct sp_own - an own lane, as the engine sees it
 * @tx: its sending side: under the lane's lock; NULL: no lane has this number
 * @rank: its rank among the senders
 * @now: copy of @tx->now, taken under the lock in this pass
 * @privates: likewise
 * @pushed: descriptors that were pushed to some peer
 */
struct sp_own {
	struct sp_tx *tx;
	u32 rank;
	struct sp_point now;
	u64 privates;
	u64 pushed;
};

/**
 * struct sp_pushed - how far an own lane was pushed to one peer
 * @to: posted up to here
 * @mark: what was posted when @sp_peer.mark was taken
 * @done: what has landed
 */
struct sp_pushed {
	struct sp_point to;
	struct sp_point mark;
	struct sp_point done;
};

/**
 * struct sp_peer - another node of the group, as the engine sees it
 * @bank: its rows in the replica, by parity of the view: the peer writes, the
 *	engine polls
 * @row: the one of the view
 * @nlanes: one more than the highest number of a lane of it
 * @lanes: rank among the senders of each of its lanes, -1: none has this number
 * @pushed: a &struct sp_pushed for each number that an own lane can have
 * @open: own lanes, by number, that may be pushed to it
 * @received: received_num in the last row posted
 * @consumed: consumed in the last row posted
 * @wants: place that this node waits for, in the last row posted: see @sp_core.wants
 * @wanted: place that the peer waits for this node's readers to reach, as its row
 *	says; -1: none. Only when something is told depends on it
 * @sleep: sleep epoch in the last row posted
 * @ticket: of the last row posted
 * @mark: ticket whose landing completes @pushed[].mark, 0: none outstanding
 * @landed: highest ticket that had landed when the last pass began to look
 * @check: ticket after whose landing the peer's flag is to be read, 0: none
 * @recheck: ticket after whose landing it is to be read once more
 * @woken: epoch of the peer's flag that it was woken for
 * @asked: ticket of a row whose landing is timed, 0: none
 * @asked_at: pass in which it was posted
 * @answer: passes until a row has landed and is known to have, at most, of late
 * @behind: @pushed is ahead of the last row posted: SP_WHY_DATA, _NULL, _BEGIN
 * @carry: a run of so many bytes, descriptors and all, may travel in a row to it. None
 *	where the peer polls: there rows are written, and a run lies elsewhere
 * @polled: the peer polls for our row, so its flag says whether it sleeps
 * @cut: there is no connection to it: nothing is posted to it
 * @gone: nothing is posted to it and nothing read from it any more
 */
struct sp_peer {
	const struct sp_cell *bank[2];
	const struct sp_cell *row;
	u32 nlanes;
	s16 lanes[SP_MAX_NODE_LANES];
	struct sp_pushed *pushed;
	u64 open;
	s64 received;
	s64 consumed;
	s64 wants;
	s64 wanted;
	u64 sleep;
	u64 ticket;
	u64 mark;
	u64 landed;
	u64 check;
	u64 recheck;
	u64 woken;
	u64 asked;
	u32 asked_at;
	u32 answer;
	u32 behind;
	u32 carry;
	bool polled;
	bool cut;
	bool gone;
};

/**
 * struct sp_core - one group on one node
 * @order: its total order
 * @own: the own lanes, by their numbers
 * @nown: one more than the highest number of one
 * @peers: by node rank; the entry of the own node is unused
 * @view: number of the view
 * @wedged: the view comes to its end: nothing more of it is taken, sent or
 *	delivered before it is known what of it counts (change.c)
 * @hold: nothing of the own lanes is freed: requests to a node that is in the
 *	view no more may still be sent again
 * @doze: how awake the engine is to the group
 * @polled: this node polls for its peers' rows (design: "two doorbells");
 *	otherwise the arrival of each row is an event, and no flag is needed to
 *	sleep. Each node chooses for itself and tells its peers
 * @spin: passes without news before the engine begins to doze; 0 where rows are
 *	events: one with news will do
 * @idle: passes without news so far
 * @passes: passes so far, reduced
 * @push: units of ring that a push takes at most: see SP_PUSH_PART
 * @unposted: something could not be posted for want of room
 * @waits: rows are on the way whose landing the next pass can wait for
 * @rested: a node that does not poll has waited for a while, and nothing came: the
 *	shell sets it, see sp_core_rests()
 * @lazy: what readers do, and rows that land, need not be looked at before the next
 *	event, or the end of the rest. Programs on the own node read it like @doze
 * @consumed_due: peers must be told of consumption at least up to here
 * @consumed_tight: likewise, when nothing else happens: a message of full length
 *	might want the room
 * @wants: place in the order that programs here wait for all readers to reach, -1:
 *	none. The shell sets it before a pass: sp_tx_place()
 * @faulty: node whose writes made sp_pass() return -EPROTO
 * @nulls_sent: turns of own lanes given up
 * @opt: SP_OPT_* that are on, the same on all nodes. It stays in a kernel; the
 *	simulator changes all of them but SP_OPT_NULL at any time
 * @on: what @opt was when the pass began
 * @batches: by stage; written by passes only
 * @posts: likewise
 * @ops: the shell
 */
struct sp_core {
	struct sp_order order;
	struct sp_own *own;
	u32 nown;
	struct sp_peer *peers;
	u64 view;
	bool wedged;
	bool hold;
	struct sp_doze doze;
	bool polled;
	u32 spin;
	u32 idle;
	u32 passes;
	u32 push;
	bool unposted;
	bool waits;
	bool rested;
	bool lazy;
	s64 consumed_due;
	s64 consumed_tight;
	s64 wants;
	u32 faulty;
	u64 nulls_sent;
	u32 opt;
	u32 on;
	struct sp_batches batches[SP_STAGES];
	struct sp_posts posts;
	const struct sp_shell_ops *ops;
};

/* What a pass did. */
#define SP_DID_NEWS		(1 << 0)	/* anything at all */
#define SP_DID_DELIVER		(1 << 1)	/* the log has grown */
#define SP_DID_FREE		(1 << 2)	/* an own lane has more room */
/* The last message of the last lane. A view that begins may bring that about, too. */
#define SP_DID_CLOSE		(1 << 3)

void sp_core_init(struct sp_core *c);
int sp_pass(struct sp_core *c, u64 released);
int sp_pass_look(struct sp_core *c);
s64 sp_core_consumed(const struct sp_core *c);

/* Nothing is on its way to a peer, or known of it, but for its lanes. */
static inline void sp_peer_reset(struct sp_peer *p, s64 start)
{
	p->received = start - 1;
	p->wants = -1;
	p->wanted = -1;
	p->sleep = 0;
	p->ticket = 0;
	p->mark = 0;
	p->landed = 0;
	p->check = 0;
	p->recheck = 0;
	p->woken = 0;
	p->asked = 0;
	p->answer = 0;
}

static inline struct sp_lane *sp_own_lane(const struct sp_core *c, u32 own)
{
	return sp_order_lane(&c->order, c->own[own].rank);
}

/**
 * struct sp_next - a view that is to begin; too large for the stack
 * @view: it
 * @self: rank of this node in it
 * @epoch: its epoch
 * @node_was: rank in the view before of each node, -1: it was not in it
 * @slot: slot of each sender's lane; those of new lanes were begun, at turn 0. A
 *	slot is free when no sender of the old view or of this one has it and no
 *	reader needs it (@sp_lane.held). Memory that a node which has gone can still
 *	write is no slot's
 * @base: first turn of each sender in the view
 * @fresh: own lanes, by number, that are new
 * @peers: room for SP_MAX_MEMBERS of them. The caller has filled in @bank,
 *	@polled, @carry and @pushed of those that are new; those that stay are copied
 *	here. On return it holds what @sp_core.peers did: the caller frees what
 *	those have that are not in the view
 * @seen: room for what nodes said last in the view before
 */
struct sp_next {
	const struct sp_view *view;
	u32 self;
	u64 epoch;
	s32 node_was[SP_MAX_MEMBERS];
	u16 slot[SP_MAX_MEMBERS];
	u64 base[SP_MAX_MEMBERS];
	u64 fresh;
	struct sp_peer *peers;
	struct sp_node_seen seen[SP_MAX_MEMBERS];
};

/* change.c */
int sp_core_wedge(struct sp_core *c, u64 *counts);
void sp_core_install(struct sp_core *c, struct sp_next *next);
void sp_core_cut(struct sp_core *c, u32 node);
void sp_core_mend(struct sp_core *c, u32 node);
void sp_core_open(struct sp_core *c, u32 node, u32 own);
void sp_core_ranks(struct sp_core *c, const struct sp_view *v);

/* trim.c */
void sp_core_floor(const struct sp_core *c, u64 *floor);

/**
 * sp_batch_add() - count a batch
 * @b: the stage's batches; who reads them meanwhile may see half of it
 * @messages: how many it held; none is no batch
 */
static inline void sp_batch_add(struct sp_batches *b, u64 messages)
{
	u32 i = min_t(u64, messages, SP_BATCH_SIZES) - 1;

	if (!messages)
		return;
	WRITE_ONCE(b->messages, b->messages + messages);
	WRITE_ONCE(b->size[i], b->size[i] + 1);
}

/**
 * sp_core_kick() - something happened that polling may not show: look again
 * @c: the group
 */
static inline void sp_core_kick(struct sp_core *c)
{
	sp_doze_wake(&c->doze);
	c->idle = 0;
	c->rested = false;
}

/**
 * sp_core_rests() - may the engine wait for a while before it goes on to sleep
 * @c: the group
 *
 * Where nothing is polled, whatever comes is an event: there is no need to pass
 * until one comes, nor to tell before sleep what the next row will tell anyway.
 * When none has come for a while, the shell sets @c->rested and passes again.
 *
 * Return: true when only an event, or that time, calls for a pass.
 */
static inline bool sp_core_rests(const struct sp_core *c)
{
	return !c->polled && c->doze.state == SP_DOZING && !c->rested &&
	       !c->unposted && !c->wedged;
}

/**
 * sp_core_watches() - does the landing of a row call for a pass
 * @c: the group, that may block
 *
 * Messages that wait behind those on the way, writers without room and peers' flags
 * are looked after then, and the engine falls asleep. Without any of that the next
 * pass will do, and there will be one.
 *
 * Return: false when it does not.
 */
static inline bool sp_core_watches(const struct sp_core *c)
{
	return !c->lazy && c->doze.state != SP_ASLEEP;
}

/**
 * sp_core_may_block() - may the engine block until an event
 * @c: the group
 *
 * Wedged, it waits for the next view. Dozing, it waits for its rows to land:
 * each completion since the pass began is an event, after which it passes again
 * without a kick, if sp_core_watches(); or it rests. Asleep, it waits for a wake.
 * What lands meanwhile is found by the last look.
 *
 * Return: true when no polling is needed.
 */
static inline bool sp_core_may_block(const struct sp_core *c)
{
	return c->wedged || c->doze.state == SP_ASLEEP ||
	       (c->doze.state == SP_DOZING && c->waits) || sp_core_rests(c);
}

#endif /* SPINDLE_CORE_PASS_H */
