/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Agreement on the end of a view and on the next one.
 *
 * Each node says one thing, its *tell*, to all others, and says all of it again
 * whenever it has changed: the newest one counts, and it only grows. From the
 * tells as last seen every node comes to one decision or to none
 * (Documentation/views.rst has the rules and why they hold).
 *
 * Pure: the caller owns the memory and serialises the calls.
 */
#ifndef SPINDLE_CORE_AGREE_H
#define SPINDLE_CORE_AGREE_H

#include "view.h"

/**
 * struct sp_tell - what a node says of the end of a view
 * @view: the view's number
 * @suspected: nodes that it neither hears nor believes any more, by rank
 * @wedged: it takes nothing more of this view, and @counts are final
 * @nasks: how many programs asked it to be taken in
 * @counts: rounds of each lane it had received when it wedged
 * @leaves: why members on it want to leave: enum sp_reason, by rank
 * @asks: the programs that want to be taken in
 * @accepted: the proposal it has accepted last; ballot 0: none
 */
struct sp_tell {
	u64 view;
	u64 suspected;
	bool wedged;
	u32 nasks;
	u64 counts[SP_MAX_MEMBERS];
	u8 leaves[SP_MAX_MEMBERS];
	struct sp_newcomer asks[SP_MAX_JOINS];
	struct sp_proposal accepted;
};

/**
 * struct sp_agree - one node's side of the agreement
 * @view: the view that is to end
 * @self: rank of this node
 * @tells: by node rank: as last heard; the own one is what is to be said
 * @limit: members the next view may have
 * @minority: goes on without a majority
 * @decided: sp_agree_step() has said so
 * @faulty: nodes that are suspected for what they said
 * @floor: rounds of each lane that were delivered here when this node wedged, by
 *	rank; the caller sets it before sp_agree_wedged(), or leaves it at 0
 */
struct sp_agree {
	const struct sp_view *view;
	u32 self;
	struct sp_tell *tells;
	u32 limit;
	bool minority;
	bool decided;
	u64 faulty;
	u64 floor[SP_MAX_MEMBERS];
};

/* What sp_agree_step() asks for. */
#define SP_AGREE_SAY		(1 << 0)	/* the own tell has changed: say it */
#define SP_AGREE_WEDGE		(1 << 1)	/* wedge, and bring the counts */
#define SP_AGREE_DECIDED	(1 << 2)	/* sp_agree_decision() */

void sp_agree_init(struct sp_agree *a, const struct sp_view *view, u32 self,
		   struct sp_tell *tells);
void sp_agree_carry(struct sp_agree *a, const struct sp_agree *old);
int sp_agree_hear(struct sp_agree *a, u32 node, const struct sp_tell *tell);
bool sp_agree_suspect(struct sp_agree *a, u32 node);
bool sp_agree_leave(struct sp_agree *a, u32 member, enum sp_reason reason);
int sp_agree_ask(struct sp_agree *a, const struct sp_newcomer *who);
void sp_agree_unask(struct sp_agree *a, const struct sp_addr *addr, u64 cookie);
void sp_agree_wedged(struct sp_agree *a, const u64 *counts);
int sp_agree_step(struct sp_agree *a);
u64 sp_agree_waits(const struct sp_agree *a, bool *leads);
u64 sp_agree_alive(const struct sp_agree *a);

static inline struct sp_tell *sp_agree_own(const struct sp_agree *a)
{
	return &a->tells[a->self];
}

static inline bool sp_agree_suspects(const struct sp_agree *a, u32 node)
{
	return sp_agree_own(a)->suspected >> node & 1;
}

/* What was decided: once sp_agree_step() has said so. */
static inline const struct sp_proposal *
sp_agree_decision(const struct sp_agree *a)
{
	return &sp_agree_own(a)->accepted;
}

#endif /* SPINDLE_CORE_AGREE_H */
