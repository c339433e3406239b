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
#define SP_MEMBER_ALL		SP_MEMBER_RECEIVER

/* Address of a node: IPv6, or IPv4 mapped into it. */
struct sp_addr {
	u8 b[16];
};

static inline int sp_addr_cmp(const struct sp_addr *a, const struct sp_addr *b)
{
	return memcmp(a->b, b->b, sizeof(a->b));
}

/**
 * enum sp_view_state - life of a group on one node
 * @SP_VIEW_FORMING: members are still awaited, or their memory is not reachable
 * @SP_VIEW_ACTIVE: messages flow
 * @SP_VIEW_CLOSED: every sender has said its last, and all of it was delivered
 * @SP_VIEW_FAILED: a member was lost; nothing more is delivered
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
 */
struct sp_member {
	struct sp_addr addr;
	u64 cookie;
	u32 flags;
	u32 node;
	s32 lane;
};

/**
 * struct sp_view_node - a node of a view
 * @addr: its address
 * @lanes: how many senders are on it
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
int sp_view_find_node(const struct sp_view *v, const struct sp_addr *addr);
int sp_view_find_member(const struct sp_view *v, const struct sp_addr *addr,
			u64 cookie);

#endif /* SPINDLE_CORE_VIEW_H */
