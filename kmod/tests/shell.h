/* SPDX-License-Identifier: GPL-2.0 */
/* A group on one node, over a shell that records what it is asked to post. */
#ifndef SPINDLE_TESTS_SHELL_H
#define SPINDLE_TESTS_SHELL_H

#include "../core/pass.h"
#include "suites.h"

#define DEPTH	16
#define WINDOW	1024
#define NODES	4
#define SLOTS	8
#define OWN	3		/* own lanes */
#define EPOCH	77		/* of view 1; that of view v is EPOCH + v - 1 */
#define VIEW	1		/* the event: a view begins */
#define CELLS	(SP_CELL_LANES + OWN)

enum posted_kind { RUN, ROW, WAKE };

struct posted {
	enum posted_kind kind;
	u32 node;
	u32 own;
	struct sp_run run;
	struct sp_cell cells[CELLS];
};

/*
 * struct shell - this node and what it sees of the others
 * @view: the view it is in
 * @old: the one before that
 * @next: room to begin one
 * @ring: what owners of lanes write: descriptors, by slot; of own lanes unused
 * @theirs: how they do, by slot
 * @rows: both rows of each node, by its number, which no view changes
 * @number: that number of each node of the view, by rank
 * @posted: what was posted since clear()
 * @nposted: how much
 * @ticket: tickets given out, by node number
 * @landed: tickets that have landed, by node number
 * @fail_run: posts of runs that are to fail
 * @fail_row: likewise rows
 * @fail_wake: likewise wakes
 * @fail_error: what they fail with, 0: -EAGAIN
 * @late: news and all tickets are to land just before the next look at these
 * @early: not 0: flags of a message of 10 bytes that the first own lane's sender commits
 *	just before its lock is taken for the second time in a pass
 * @locks: how often lane locks were taken in the pass
 * @locked: lane locks held
 * @bad: things that no caller of the shell should do
 */
struct shell {
	struct sp_core core;
	struct sp_view *view;
	struct sp_view *old;
	struct sp_next next;
	struct sp_lane lanes[SLOTS];
	struct sp_node_seen seen[NODES];
	struct sp_log log[64];
	struct sp_own own[OWN];
	struct sp_tx tx[OWN];
	struct sp_peer *peers;
	struct sp_peer *spare;
	struct sp_pushed pushed[NODES][OWN];
	struct sp_desc own_desc[OWN][DEPTH];
	struct sp_desc checked[SLOTS][DEPTH];
	struct sp_desc ring[SLOTS][DEPTH];
	struct sp_tx theirs[SLOTS];
	struct sp_cell rows[NODES][2][CELLS];
	u32 number[NODES];
	struct posted posted[32];
	u32 nposted;
	u64 ticket[NODES];
	u64 landed[NODES];
	u32 fail_run;
	u32 fail_row;
	u32 fail_wake;
	int fail_error;
	bool late;
	u32 early;
	u32 locks;
	u32 locked;
	u32 bad;
};

struct shell *shell_new(struct kunit *test, const u32 *owners, u32 nlanes,
			u32 nnodes, u32 self);
int shell_change(struct shell *s, const struct sp_proposal *p);

/* What a peer writes. */
static inline void peer_cell(struct shell *s, u32 node, u32 cell, u64 value)
{
	struct sp_cell *row = (struct sp_cell *)s->core.peers[node].row;

	sp_cell_set(&row[cell], value, s->core.order.epoch);
}

static inline void peer_row(struct shell *s, u32 node, s64 received,
			    s64 consumed)
{
	peer_cell(s, node, SP_CELL_RECEIVED, received + 1);
	peer_cell(s, node, SP_CELL_CONSUMED, consumed + 1);
}

/* The sending side of a peer's lane, and what it tells of it. */
static inline struct sp_tx *theirs(struct shell *s, u32 rank)
{
	return &s->theirs[s->core.order.slot[rank]];
}

static inline void theirs_say(struct shell *s, u32 rank)
{
	const struct sp_lane *lane = sp_order_lane(&s->core.order, rank);
	const struct sp_point *now = &theirs(s, rank)->now;

	peer_cell(s, lane->node, SP_CELL_LANES + lane->lane,
		  sp_progress(now->round, now->count));
}

/* A peer commits some messages of a length and tells of them. */
static inline void commit(struct shell *s, u32 rank, u32 len, u32 n)
{
	while (n--)
		sp_tx_commit(theirs(s, rank), len, 0);
	theirs_say(s, rank);
}

/* A peer gives up its turns up to a round and tells of that. */
static inline void promise(struct shell *s, u32 rank, u64 round)
{
	sp_tx_nulls(theirs(s, rank), round);
	theirs_say(s, rank);
}

static inline void all_landed(struct shell *s)
{
	memcpy(s->landed, s->ticket, sizeof(s->landed));
}

static inline int pass(struct shell *s)
{
	s->nposted = 0;
	s->locks = 0;
	return sp_pass(&s->core, s->core.order.released);
}

/* A pass that does this; one that fails does nothing. */
static inline bool passed(struct shell *s, int what)
{
	int did = pass(s);

	return did >= 0 && (did & what);
}

/* Pass until nothing more happens, everything landing at once. */
static inline void settle(struct shell *s)
{
	int i;

	for (i = 0; i < 300; i++) {
		pass(s);
		all_landed(s);
	}
}

static inline u32 count(const struct shell *s, enum posted_kind kind, u32 node)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < min_t(u32, s->nposted, ARRAY_SIZE(s->posted)); i++)
		n += s->posted[i].kind == kind && s->posted[i].node == node;
	return n;
}

/* The last post of a kind to a node; NULL: there was none. */
static inline struct posted *last_post(struct shell *s, enum posted_kind kind,
				       u32 node)
{
	struct posted *found = NULL;
	u32 i;

	for (i = 0; i < min_t(u32, s->nposted, ARRAY_SIZE(s->posted)); i++)
		if (s->posted[i].kind == kind && s->posted[i].node == node)
			found = &s->posted[i];
	return found;
}

static inline u64 cell(struct kunit *test, const struct posted *p, u32 i)
{
	u64 view = p->cells[SP_CELL_VIEW].value;
	u64 value = ~0ull;

	KUNIT_EXPECT_TRUE(test, sp_cell_get(&p->cells[i], EPOCH + view - 1,
					    &value));
	return value;
}

#endif /* SPINDLE_TESTS_SHELL_H */
