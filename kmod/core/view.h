/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A view: ranked, fixed membership, and the states a group goes through.
 *
 * Pure: the caller owns the memory and serialises the calls.
 */
#ifndef SPINDLE_CORE_VIEW_H
#define SPINDLE_CORE_VIEW_H

#include "env.h"

#define SP_MAX_MEMBERS		64
#define SP_MAX_NODE_LANES	40

#define SP_MEMBER_RECEIVER	(1U << 0)	/* never sends */
#define SP_MEMBER_STALE		(1U << 1)	/* was not sent the state since it came */
#define SP_MEMBER_ALL		(SP_MEMBER_RECEIVER | SP_MEMBER_STALE)

#define SP_MAX_JOINS		16	/* members that one change of view takes in */

/* Address of a node: IPv6, or IPv4 mapped into it. */
struct sp_addr {
	u8 b[16];
};

static inline int sp_addr_cmp(const struct sp_addr *a, const struct sp_addr *b)
{
	return memcmp(a->b, b->b, sizeof(a->b));
}

/**
 * enum sp_reason - why a member is not in the next view
 * @SP_STAYS: it is
 * @SP_LEFT: it wanted to go
 * @SP_EXITED: its socket was closed
 * @SP_LOST: its node was suspected
 * @SP_SLOW: it did not read what it was sent
 * @SP_REASONS: how many there are
 */
enum sp_reason {
	SP_STAYS,
	SP_LEFT,
	SP_EXITED,
	SP_LOST,
	SP_SLOW,
	SP_REASONS,
};

/**
 * enum sp_view_state - life of a group on one node
 * @SP_VIEW_FORMING: members are still awaited, or their memory is not reachable
 * @SP_VIEW_ACTIVE: messages flow
 * @SP_VIEW_CLOSED: every sender has said its last, and all of it was delivered;
 *	or this node has left
 * @SP_VIEW_FAILED: this node cannot go on; nothing more is delivered
 */
enum sp_view_state {
	SP_VIEW_FORMING,
	SP_VIEW_ACTIVE,
	SP_VIEW_CLOSED,
	SP_VIEW_FAILED,
};

/**
 * struct sp_member - a member of a view
 * @addr: its node's address
 * @cookie: what its node calls it
 * @flags: SP_MEMBER_*
 * @node: rank of its node
 * @lane: its rank among the senders, -1 when it does not send
 * @nr: its lane's number among its node's lanes, the same in all views
 * @uid: its number among all that were ever members, low 24 bits
 */
struct sp_member {
	struct sp_addr addr;
	u64 cookie;
	u32 flags;
	u32 node;
	s32 lane;
	u32 nr;
	u32 uid;
};

#define SP_UID_MASK		0xffffffu
#define SP_UID_NOBODY		SP_UID_MASK	/* no member ever has it */

/* A program that wants to be a member. */
struct sp_join_request {
	struct sp_addr addr;
	u64 cookie;
	u32 flags;
	u32 pad;
};

/* Above all ballots: who says so has decided, and says no more of the view. */
#define SP_BALLOT_DECIDED	U32_MAX

/**
 * struct sp_proposal - how a view ends and the next begins
 * @ballot: 1 + rank of the node that proposes it; 0: none; SP_BALLOT_DECIDED
 * @njoins: members that come
 * @reason: enum sp_reason of each member of the old view, by rank
 * @trim: rounds of each lane that are delivered in the old view, by rank
 * @joins: members that come, in the order of their ranks
 */
struct sp_proposal {
	u32 ballot;
	u32 njoins;
	u8 reason[SP_MAX_MEMBERS];
	u64 trim[SP_MAX_MEMBERS];
	struct sp_join_request joins[SP_MAX_JOINS];
};

/**
 * struct sp_view_node - a node of a view
 * @addr: its address
 * @lanes: one more than the highest number of a lane on it
 */
struct sp_view_node {
	struct sp_addr addr;
	u32 lanes;
};

/**
 * struct sp_view - one view of a group
 * @id: its number, from 1; 0 while it forms
 * @state: where the group is in its life
 * @wanted: members the first view waits for
 * @max_senders: how many of them may send
 * @next_uid: that of the next member that comes
 * @giver: uid of who is to send the state to members that are SP_MEMBER_STALE;
 *	SP_UID_NOBODY: nobody. Set as the view begins: sp_order_state()
 * @nmembers: members so far
 * @nnodes: nodes, once ranked
 * @nlanes: senders, once ranked
 * @members: the members, by rank
 * @nodes: the nodes, ranked by the lowest rank of a member on them
 */
struct sp_view {
	u64 id;
	enum sp_view_state state;
	u32 wanted;
	u32 max_senders;
	u32 next_uid;
	u32 giver;
	u32 nmembers;
	u32 nnodes;
	u32 nlanes;
	struct sp_member members[SP_MAX_MEMBERS];
	struct sp_view_node nodes[SP_MAX_MEMBERS];
};

void sp_view_init(struct sp_view *v, u32 wanted, u32 max_senders);
int sp_view_set_state(struct sp_view *v, enum sp_view_state state);
int sp_view_add(struct sp_view *v, const struct sp_addr *addr, u64 cookie,
		u32 flags);
u32 sp_view_del(struct sp_view *v, const struct sp_addr *addr,
		const u64 *cookie);
bool sp_view_complete(const struct sp_view *v);
int sp_view_rank(struct sp_view *v, u64 id);
int sp_view_next(const struct sp_view *old, const struct sp_proposal *p,
		 bool ends, struct sp_view *next);
int sp_view_told(struct sp_view *v, u64 id);
bool sp_view_stayed(const struct sp_view *v, const struct sp_view *old,
		    const struct sp_addr *addr);
void sp_view_giver(struct sp_view *v, u64 fins);
int sp_view_find_uid(const struct sp_view *v, u32 uid);
bool sp_view_quorum(const struct sp_view *v, u64 nodes);
int sp_view_find_node(const struct sp_view *v, const struct sp_addr *addr);
int sp_view_find_member(const struct sp_view *v, const struct sp_addr *addr,
			u64 cookie);

#endif /* SPINDLE_CORE_VIEW_H */
