/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the nodes of a view come to the next one.
 *
 * Each node has one *report* on the view, and sends all of it to every node that
 * it does not suspect, whenever it has changed. What a report says of suspicions,
 * counts and ballots is never taken back, and the newest report counts. From the
 * reports as last received each node comes to one decision or to none.
 *
 *   suspect.c   who is suspected, and who has to answer for it
 *   ballot.c    one round of Paxos for each view: propose, accept, decide
 *   trim.c      how much of each lane belongs to the view
 *   view.c      the view that follows from a decision
 *   change.c    what becomes of the order and of the lanes
 *
 * Documentation/views.rst has the rules and why they hold; ballot.pml is a
 * model of the first two.
 *
 * Pure: the caller owns the memory and serialises the calls.
 */
#ifndef SPINDLE_CORE_BALLOT_H
#define SPINDLE_CORE_BALLOT_H

#include "view.h"

/**
 * struct sp_accusation - one node suspects another one, which is not known to
 * have failed
 * @by: rank of the node that suspects
 * @of: rank of the suspected node; lower than @by, or both are 0: no accusation
 */
struct sp_accusation {
	u8 by;
	u8 of;
};

/**
 * struct sp_report - what a node says of the end of a view
 * @view: the view's number
 * @suspected: nodes that it suspects, by rank; never taken back within a view
 * @outranked: those of them that a node of a lower rank has lost, by rank: everybody
 *	who hears the sender suspects them, too
 * @wedged: it takes nothing more of this view, and @counts are final
 * @accusation: heard from @accusation.by itself; the sender suspects neither node
 * @njoins: join requests in @joins
 * @counts: rounds of each lane it had received when it wedged
 * @leaves: why members on it leave: enum sp_reason, by rank
 * @joins: programs that have asked this node to be taken in
 * @accepted: the proposal it has accepted last; ballot 0: none
 */
struct sp_report {
	u64 view;
	u64 suspected;
	u64 outranked;
	bool wedged;
	struct sp_accusation accusation;
	u32 njoins;
	u64 counts[SP_MAX_MEMBERS];
	u8 leaves[SP_MAX_MEMBERS];
	struct sp_join_request joins[SP_MAX_JOINS];
	struct sp_proposal accepted;
};

/**
 * struct sp_ballot - one node's part in the end of a view
 * @view: the view that is to end
 * @self: rank of this node
 * @reports: by node rank: as last received; the own one is what is to be sent
 * @limit: members the next view may have
 * @minority: goes on without a majority
 * @decided: sp_ballot_step() has returned SP_STEP_DECIDED
 * @faulty: nodes that are suspected for what they reported
 * @floor: rounds of each lane that were delivered here when this node wedged, by
 *	rank; the caller sets it before sp_ballot_wedged(), or leaves it at 0
 */
struct sp_ballot {
	const struct sp_view *view;
	u32 self;
	struct sp_report *reports;
	u32 limit;
	bool minority;
	bool decided;
	u64 faulty;
	u64 floor[SP_MAX_MEMBERS];
};

/* What sp_ballot_step() asks for. */
#define SP_STEP_SEND		(1 << 0)	/* the own report has changed: send it */
#define SP_STEP_WEDGE		(1 << 1)	/* wedge, and bring the counts */
#define SP_STEP_DECIDED		(1 << 2)	/* sp_ballot_decision() */

static inline struct sp_report *sp_ballot_own(const struct sp_ballot *b)
{
	return &b->reports[b->self];
}

/* What was decided: once sp_ballot_step() has returned SP_STEP_DECIDED. */
static inline const struct sp_proposal *
sp_ballot_decision(const struct sp_ballot *b)
{
	return &sp_ballot_own(b)->accepted;
}

static inline bool sp_suspects(const struct sp_ballot *b, u32 node)
{
	return sp_ballot_own(b)->suspected >> node & 1;
}

/* suspect.c */
bool sp_suspect(struct sp_ballot *b, u32 node);
bool sp_suspect_as(struct sp_ballot *b, u32 node, bool outranked);
bool sp_suspect_in_return(struct sp_ballot *b, u32 node);
u64 sp_unsuspected(const struct sp_ballot *b);
bool sp_suspect_waits(const struct sp_ballot *b, u64 heard);
bool sp_suspect_others(struct sp_ballot *b);
bool sp_suspect_accuse(struct sp_ballot *b);

/* ballot.c */
void sp_ballot_init(struct sp_ballot *b, const struct sp_view *view, u32 self,
		    struct sp_report *reports);
void sp_ballot_carry(struct sp_ballot *b, const struct sp_ballot *old);
int sp_ballot_receive(struct sp_ballot *b, u32 node,
		      const struct sp_report *report);
bool sp_ballot_leave(struct sp_ballot *b, u32 member, enum sp_reason reason);
int sp_ballot_join(struct sp_ballot *b, const struct sp_join_request *who);
void sp_ballot_cancel(struct sp_ballot *b, const struct sp_addr *addr,
		      u64 cookie);
void sp_ballot_wedged(struct sp_ballot *b, const u64 *counts);
int sp_ballot_step(struct sp_ballot *b);

/* trim.c */
void sp_trim_least(const struct sp_ballot *b, u64 nodes, u64 *trim);
bool sp_trim_fits(const struct sp_ballot *b, const struct sp_report *r);

#endif /* SPINDLE_CORE_BALLOT_H */
