/* SPDX-License-Identifier: GPL-2.0 */
/* The nodes of one view, each with its part in the end of it. */
#ifndef SPINDLE_TESTS_CLUSTER_H
#define SPINDLE_TESTS_CLUSTER_H

#include "../core/ballot.h"
#include "suites.h"

#define CLUSTER_NODES	5

/*
 * struct cluster - up to CLUSTER_NODES nodes of one view
 * @view: the view that is to end
 * @next: room for a view that follows
 * @b: each node's part
 * @reports: what each received of each: by receiver, then by sender
 * @report: room to make up a report in
 * @counts: room for the rounds of each lane
 */
struct cluster {
	struct sp_view view;
	struct sp_view next;
	struct sp_ballot b[CLUSTER_NODES];
	struct sp_report reports[CLUSTER_NODES][CLUSTER_NODES];
	struct sp_report report;
	u64 counts[SP_MAX_MEMBERS];
};

/*
 * struct traffic - nodes whose reports are on the way for any time
 * @c: the nodes
 * @flying: the report on its way: by sender, then by receiver
 * @flies: there is one
 * @decided: nodes that have come to a decision
 * @down: nodes that have stopped
 * @seed: of draw()
 */
struct traffic {
	struct cluster c;
	struct sp_report flying[CLUSTER_NODES][CLUSTER_NODES];
	bool flies[CLUSTER_NODES][CLUSTER_NODES];
	u64 decided;
	u64 down;
	u32 seed;
};

struct cluster *cluster_new(struct kunit *test, u32 nodes);
void cluster_init(struct kunit *test, struct cluster *c, u32 nodes);
void cluster_clear(struct cluster *c, u32 members);
void cluster_add(struct cluster *c, u8 node, u64 cookie);
void cluster_begin(struct kunit *test, struct cluster *c);
u64 cluster_exchange(struct cluster *c, u64 nodes);
void traffic_init(struct kunit *test, struct traffic *t, u32 nodes, u32 seed);
void traffic_step(struct traffic *t, u32 node);
int traffic_receive(struct traffic *t, u32 from, u32 to);

/* Some number below @n. */
static inline u32 draw(struct traffic *t, u32 n)
{
	t->seed = t->seed * 1103515245 + 12345;
	return (t->seed >> 16) % n;
}

static inline struct sp_addr node_addr(u8 n)
{
	struct sp_addr a = { .b = { [15] = n } };

	return a;
}

static inline struct sp_join_request join_request(u8 node, u64 cookie)
{
	struct sp_join_request who = {
		.addr = node_addr(node),
		.cookie = cookie,
	};

	return who;
}

static inline int step(struct cluster *c, u32 node)
{
	return sp_ballot_step(&c->b[node]);
}

static inline struct sp_report *own(struct cluster *c, u32 node)
{
	return sp_ballot_own(&c->b[node]);
}

/* A node wedges: it has @rounds + i rounds of lane i. */
static inline void wedge(struct cluster *c, u32 node, u64 rounds)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(c->counts); i++)
		c->counts[i] = rounds + i;
	sp_ballot_wedged(&c->b[node], c->counts);
}

/* Make up a report: empty but for what it suspects. */
static inline struct sp_report *report(struct cluster *c, u64 suspected)
{
	memset(&c->report, 0, sizeof(c->report));
	c->report.view = c->view.id;
	c->report.suspected = suspected;
	return &c->report;
}

/* Make up the report of a node that has wedged. */
static inline struct sp_report *report_wedged(struct cluster *c, u64 suspected,
					      u64 rounds)
{
	u32 i;

	report(c, suspected)->wedged = true;
	for (i = 0; i < c->view.nlanes; i++)
		c->report.counts[i] = rounds + i;
	return &c->report;
}

/* The report that was made up says that these nodes are outranked. */
static inline struct sp_report *outrank(struct cluster *c, u64 nodes)
{
	c->report.suspected |= nodes;
	c->report.outranked |= nodes;
	return &c->report;
}

/* The report that was made up is news to a node. */
static inline void receive(struct kunit *test, struct cluster *c, u32 at,
			   u32 from)
{
	KUNIT_EXPECT_EQ(test, sp_ballot_receive(&c->b[at], from, &c->report),
			1);
}

/* It is none that a correct node sends. */
static inline void refuse(struct kunit *test, struct cluster *c, u32 at,
			  u32 from)
{
	KUNIT_EXPECT_EQ(test, sp_ballot_receive(&c->b[at], from, &c->report),
			-EPROTO);
}

/* A node's own report comes to another one. */
static inline int send_report(struct cluster *c, u32 from, u32 to)
{
	return sp_ballot_receive(&c->b[to], from, own(c, from));
}

static inline bool same_proposal(const struct sp_proposal *a,
				 const struct sp_proposal *b)
{
	return a->njoins == b->njoins &&
	       !memcmp(a->reason, b->reason, sizeof(a->reason)) &&
	       !memcmp(a->trim, b->trim, sizeof(a->trim)) &&
	       !memcmp(a->joins, b->joins, sizeof(a->joins));
}

#endif /* SPINDLE_TESTS_CLUSTER_H */
