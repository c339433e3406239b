// SPDX-License-Identifier: GPL-2.0
/* Agreement on the next view: one node's part by itself, and all together. */
#include "cluster.h"

/* As long as nothing is to change no node does anything. */
static void ballot_at_rest(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	u32 i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, step(c, i), 0);
		KUNIT_EXPECT_EQ(test, sp_unsuspected(&c->b[i]), 7ull);
	}
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 7), 0ull);
	KUNIT_EXPECT_FALSE(test, own(c, 0)->wedged);
}

/* A node goes on with a majority, or with half that has the lowest rank. */
static void ballot_quorum(struct kunit *test)
{
	static const struct {
		u32 nodes, self;
		u64 suspected;
		bool ok;
	} table[] = {
		{ 1, 0, 0x0, true },
		{ 2, 0, 0x2, true },		/* half, with the lowest */
		{ 2, 1, 0x1, false },		/* half, without it */
		{ 3, 0, 0x2, true },
		{ 3, 2, 0x1, true },
		{ 3, 0, 0x6, false },		/* the lowest is no half */
		{ 4, 0, 0x8, true },
		{ 4, 0, 0xc, true },
		{ 4, 3, 0x6, true },
		{ 4, 3, 0x3, false },
		{ 4, 1, 0x9, false },
		{ 4, 0, 0xe, false },
		{ 5, 0, 0x18, true },
		{ 5, 4, 0x3, true },
		{ 5, 0, 0x1c, false },
	};
	struct cluster *c = cluster_new(test, 1);
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		cluster_init(test, c, table[i].nodes);
		for (k = 0; k < table[i].nodes; k++)
			if (table[i].suspected >> k & 1)
				sp_suspect(&c->b[table[i].self], k);
		KUNIT_EXPECT_EQ_MSG(test, step(c, table[i].self) < 0,
				    !table[i].ok, "row %u", i);
		if (table[i].ok)
			continue;
		KUNIT_EXPECT_EQ(test, step(c, table[i].self), -ENETDOWN);
		/* It can be told to go on nevertheless. */
		c->b[table[i].self].minority = true;
		KUNIT_EXPECT_EQ(test, step(c, table[i].self), SP_STEP_WEDGE);
	}
}

/* Each of these is a reason for a node to wedge. */
static void ballot_wedge(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	struct sp_join_request who = join_request(9, 1);

	/* A node is suspected. */
	sp_suspect(&c->b[2], 3);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
	wedge(c, 2, 5);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	KUNIT_EXPECT_EQ(test, own(c, 2)->counts[3], 8ull);

	/* Another node has wedged. */
	cluster_init(test, c, 4);
	report_wedged(c, 0, 5);
	receive(test, c, 2, 3);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);

	/* Another node has accepted a proposal. */
	cluster_init(test, c, 4);
	report(c, 0)->accepted.ballot = 1;
	receive(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);

	/* A member wants to leave: only the leader wedges for that. */
	cluster_init(test, c, 4);
	report(c, 0)->leaves[3] = SP_LEFT;
	receive(test, c, 0, 3);
	receive(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	cluster_init(test, c, 4);
	KUNIT_EXPECT_TRUE(test, sp_ballot_leave(&c->b[0], 0, SP_EXITED));
	KUNIT_EXPECT_TRUE(test, sp_ballot_leave(&c->b[1], 1, SP_EXITED));
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);

	/* A program wants to join. */
	cluster_init(test, c, 4);
	report(c, 0)->njoins = 1;
	c->report.joins[0] = who;
	receive(test, c, 0, 2);
	receive(test, c, 1, 2);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
}

/* A node that has wedged had a reason, which it need not report. */
static void ballot_wedge_along(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);

	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	report_wedged(c, 0, 10);
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, own(c, 0)->suspected, 0ull);
	KUNIT_EXPECT_EQ(test, step(c, 0) & SP_STEP_WEDGE, SP_STEP_WEDGE);
}

/* A request that cannot be met is no reason for a new view. */
static void ballot_no_room(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	struct sp_join_request who = join_request(9, 1);
	u32 i;

	/* The group is full. */
	c->b[0].limit = 3;
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	/* Where a member leaves there is room. */
	report(c, 0)->leaves[2] = SP_LEFT;
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	cluster_init(test, c, 3);
	c->b[0].limit = 4;
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);

	/* The request has flags that there are not. */
	cluster_init(test, c, 3);
	who.flags = ~SP_MEMBER_ALL;
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);

	/* The program is a member, which the reporting node did not know. */
	cluster_init(test, c, 3);
	report(c, 0)->njoins = 2;
	c->report.joins[0] = join_request(2, 1);
	c->report.joins[1] = join_request(0, 1);
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);

	/* The node is full. */
	cluster_clear(c, SP_MAX_NODE_LANES + 1);
	cluster_add(c, 0, 1);
	for (i = 0; i < SP_MAX_NODE_LANES; i++)
		cluster_add(c, 1, i);
	cluster_begin(test, c);
	who = join_request(1, SP_MAX_NODE_LANES);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	who = join_request(2, SP_MAX_NODE_LANES);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
}

/* The leader waits until all nodes have wedged and have promised. */
static void ballot_lead_waits(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);

	sp_suspect(&c->b[1], 0);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_WEDGE);
	wedge(c, 1, 5);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	report_wedged(c, 1 << 0, 5);
	receive(test, c, 1, 2);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	/* Node 3 has not wedged. */
	report(c, 1 << 0);
	receive(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	/* Node 3 has not promised: it does not suspect node 0. */
	c = cluster_new(test, 4);
	sp_suspect(&c->b[1], 0);
	wedge(c, 1, 5);
	report_wedged(c, 1 << 0, 5);
	receive(test, c, 1, 2);
	report_wedged(c, 0, 5);
	receive(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	report_wedged(c, 1 << 0, 5);
	receive(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.ballot, 2u);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
}

/* A leader proposes when it has wedged itself; no other node proposes. */
static void ballot_lead_alone(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	u32 i;

	for (i = 0; i < 3; i++) {
		report_wedged(c, 0, 5);
		if (i != 0)
			receive(test, c, 0, i);
		if (i != 1)
			receive(test, c, 1, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 0u);
	wedge(c, 1, 5);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.ballot, 0u);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);
}

/* What may have been decided is proposed again: that of the highest ballot. */
static void ballot_lead_again(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_ballot *b = &c->b[2];

	sp_suspect(b, 0);
	sp_suspect(b, 1);
	wedge(c, 2, 50);
	report_wedged(c, 3, 60)->accepted.ballot = 2;
	c->report.accepted.trim[0] = 22;
	c->report.accepted.reason[4] = SP_LEFT;
	c->report.accepted.njoins = 1;
	c->report.accepted.joins[0] = join_request(9, 1);
	receive(test, c, 2, 3);
	/* Not the one that changes most. */
	report_wedged(c, 3, 60)->accepted.ballot = 1;
	c->report.accepted.trim[0] = 11;
	memset(c->report.accepted.reason, SP_LEFT, 4);
	receive(test, c, 2, 4);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.ballot, 3u);
	KUNIT_EXPECT_TRUE(test, same_proposal(&own(c, 2)->accepted,
					      &b->reports[3].accepted));
	/* The leader adds nothing of its own. */
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.reason[0], (u8)SP_STAYS);

	/* What the leader has accepted itself is one of them. */
	cluster_init(test, c, 5);
	sp_suspect(b, 0);
	sp_suspect(b, 1);
	wedge(c, 2, 50);
	own(c, 2)->accepted.ballot = 2;
	own(c, 2)->accepted.trim[0] = 33;
	report_wedged(c, 3, 60)->accepted.ballot = 1;
	c->report.accepted.trim[0] = 11;
	receive(test, c, 2, 3);
	receive(test, c, 2, 4);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.ballot, 3u);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.trim[0], 33ull);

	/* What a suspected node has accepted does not count. */
	cluster_init(test, c, 5);
	report_wedged(c, 0, 60)->accepted.ballot = 2;
	receive(test, c, 2, 1);
	sp_suspect(b, 0);
	sp_suspect(b, 1);
	wedge(c, 2, 50);
	report_wedged(c, 3, 60);
	receive(test, c, 2, 3);
	receive(test, c, 2, 4);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.reason[0], (u8)SP_LOST);
}

/* A proposal has what all nodes that are left have reported. */
static void ballot_proposal(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_ballot *b = &c->b[0];
	struct sp_join_request who = join_request(9, 1);
	const struct sp_proposal *p = sp_ballot_decision(b);
	u32 i;

	/* Node 4 has received least, and has requests; it is suspected. */
	report_wedged(c, 0, 1)->leaves[4] = SP_SLOW;
	c->report.njoins = 1;
	c->report.joins[0] = join_request(8, 1);
	receive(test, c, 0, 4);
	sp_suspect(b, 4);
	sp_ballot_join(b, &who);
	wedge(c, 0, 50);
	report_wedged(c, 1 << 4, 60)->leaves[1] = SP_EXITED;
	c->report.counts[2] = 7;
	c->report.njoins = 2;
	c->report.joins[0] = join_request(9, 2);
	c->report.joins[1] = who;
	receive(test, c, 0, 1);
	report_wedged(c, 1 << 4, 60)->leaves[2] = SP_SLOW;
	c->report.counts[0] = 3;
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	report_wedged(c, 1 << 4, 70)->njoins = 1;
	c->report.joins[0] = join_request(3, 5);
	receive(test, c, 0, 3);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);

	KUNIT_EXPECT_EQ(test, p->ballot, 1u);
	KUNIT_EXPECT_EQ(test, p->reason[0], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, p->reason[1], (u8)SP_EXITED);
	KUNIT_EXPECT_EQ(test, p->reason[2], (u8)SP_SLOW);
	KUNIT_EXPECT_EQ(test, p->reason[3], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, p->reason[4], (u8)SP_LOST);
	/* The trim is the least that a node that is left has received. */
	KUNIT_EXPECT_EQ(test, p->trim[0], 3ull);
	KUNIT_EXPECT_EQ(test, p->trim[1], 51ull);
	KUNIT_EXPECT_EQ(test, p->trim[2], 7ull);
	KUNIT_EXPECT_EQ(test, p->trim[3], 53ull);
	KUNIT_EXPECT_EQ(test, p->trim[4], 54ull);
	KUNIT_ASSERT_EQ(test, p->njoins, 3u);
	for (i = 0; i < 3; i++) {
		struct sp_addr want = node_addr(i == 2 ? 3 : 9);

		KUNIT_EXPECT_EQ(test, sp_addr_cmp(&p->joins[i].addr, &want), 0);
		KUNIT_EXPECT_EQ(test, p->joins[i].cookie, i == 2 ? 5 : 1ull + i);
	}
	KUNIT_EXPECT_EQ(test, sp_view_next(&c->view, p, false, &c->next), 0);
	KUNIT_EXPECT_EQ(test, c->next.nmembers, 5u);
}

/* Only its own node can request that a member leaves. */
static void ballot_proposal_others(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);

	c->reports[0][1].leaves[2] = SP_LEFT;
	c->reports[0][1].leaves[0] = SP_LEFT;
	c->reports[0][1].wedged = true;
	c->reports[0][2].wedged = true;
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.reason[0], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.reason[2], (u8)SP_STAYS);
}

/* A change of view, a group and a node each take in so many at most. */
static void ballot_proposal_caps(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	const struct sp_proposal *p = sp_ballot_decision(&c->b[0]);
	struct sp_join_request who;
	u32 i;

	for (i = 0; i < SP_MAX_JOINS; i++) {
		who = join_request(10 + i, 1);
		KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	}
	/* For those of the other nodes there is no room. */
	report_wedged(c, 0, 5)->njoins = 1;
	c->report.joins[0] = join_request(9, 1);
	receive(test, c, 0, 1);
	receive(test, c, 0, 2);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, p->njoins, (u32)SP_MAX_JOINS);
	KUNIT_EXPECT_EQ(test, p->joins[SP_MAX_JOINS - 1].addr.b[15],
			(u8)(10 + SP_MAX_JOINS - 1));

	/* A member does not join, and of two equal requests one counts. */
	cluster_init(test, c, 3);
	report_wedged(c, 0, 5)->njoins = 3;
	c->report.joins[0] = join_request(2, 1);
	c->report.joins[1] = join_request(9, 1);
	c->report.joins[2] = join_request(0, 1);
	receive(test, c, 0, 1);
	receive(test, c, 0, 2);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_ASSERT_EQ(test, p->njoins, 1u);
	KUNIT_EXPECT_EQ(test, p->joins[0].addr.b[15], (u8)9);

	/* Of three members one leaves: two can join. */
	cluster_init(test, c, 3);
	c->b[0].limit = 4;
	for (i = 0; i < 4; i++) {
		who = join_request(10 + i, 1);
		who.flags = i ? 0 : ~SP_MEMBER_ALL;
		KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	}
	report_wedged(c, 0, 5);
	receive(test, c, 0, 1);
	c->report.leaves[2] = SP_LEFT;
	receive(test, c, 0, 2);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_ASSERT_EQ(test, p->njoins, 2u);
	KUNIT_EXPECT_EQ(test, p->joins[0].addr.b[15], (u8)11);
	KUNIT_EXPECT_EQ(test, p->joins[1].addr.b[15], (u8)12);

	/* A node with room for one more. */
	cluster_clear(c, SP_MAX_NODE_LANES);
	cluster_add(c, 0, 1);
	for (i = 1; i < SP_MAX_NODE_LANES; i++)
		cluster_add(c, 1, i);
	cluster_begin(test, c);
	for (i = 0; i < 3; i++) {
		who = join_request(i == 2 ? 2 : 1, 100 + i);
		KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who), 1);
	}
	report_wedged(c, 0, 5);
	receive(test, c, 0, 1);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_ASSERT_EQ(test, p->njoins, 2u);
	KUNIT_EXPECT_EQ(test, p->joins[0].cookie, 100ull);
	KUNIT_EXPECT_EQ(test, p->joins[1].cookie, 102ull);
}

/* A node that goes comes back with another view, and has to ask again for it. */
static void ballot_rejoin(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	const struct sp_proposal *p = sp_ballot_decision(&c->b[0]);
	struct sp_ballot *next = &c->b[1];
	struct sp_join_request who[] = {
		join_request(2, 2), join_request(3, 2), join_request(9, 1),
	};
	u32 i;

	/* Node 2's one member leaves, node 3 is lost. */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who[i]), 1);
	sp_suspect(&c->b[0], 3);
	wedge(c, 0, 5);
	report_wedged(c, 1 << 3, 5);
	receive(test, c, 0, 1);
	c->report.leaves[2] = SP_LEFT;
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_ASSERT_EQ(test, p->njoins, 1u);
	KUNIT_EXPECT_EQ(test, p->joins[0].addr.b[15], (u8)9);

	KUNIT_ASSERT_EQ(test, sp_view_next(&c->view, p, false, &c->next), 0);
	KUNIT_ASSERT_EQ(test, c->next.nnodes, 3u);
	sp_ballot_init(next, &c->next, 0, c->reports[1]);
	sp_ballot_carry(next, &c->b[0]);
	KUNIT_EXPECT_EQ(test, own(c, 1)->njoins, 0u);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(next)->suspected, 0ull);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(next, &who[1]), 1);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_WEDGE);

	/* The node of rank 0 is no other. */
	cluster_init(test, c, 3);
	who[0] = join_request(0, 2);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who[0]), 1);
	sp_ballot_leave(&c->b[0], 0, SP_LEFT);
	wedge(c, 0, 5);
	report_wedged(c, 0, 5);
	receive(test, c, 0, 1);
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, p->njoins, 0u);

	/* A node stays where another member on it does. */
	cluster_clear(c, 3);
	cluster_add(c, 0, 1);
	cluster_add(c, 1, 1);
	cluster_add(c, 1, 2);
	cluster_begin(test, c);
	who[0] = join_request(1, 3);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(&c->b[0], &who[0]), 1);
	wedge(c, 0, 5);
	report_wedged(c, 0, 5)->leaves[1] = SP_LEFT;
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, p->njoins, 1u);
}

/* A proposal never changes under its ballot. */
static void ballot_frozen(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	struct sp_join_request who = join_request(9, 1);
	u32 i;

	for (i = 1; i < 4; i++) {
		report_wedged(c, 0, 5);
		receive(test, c, 0, i);
	}
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	c->report.accepted = own(c, 0)->accepted;
	sp_ballot_join(&c->b[0], &who);
	sp_ballot_leave(&c->b[0], 0, SP_LEFT);
	sp_suspect(&c->b[0], 3);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);
	KUNIT_EXPECT_TRUE(test, same_proposal(&own(c, 0)->accepted,
					      &c->report.accepted));
}

/* Every other node accepts what the leader proposes, once it has wedged. */
static void ballot_accept(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	const struct sp_proposal *p = &own(c, 3)->accepted;

	/* Node 1 is not the leader for node 3, whatever it proposes. */
	report_wedged(c, 0, 5)->accepted.ballot = 2;
	c->report.accepted.trim[0] = 22;
	receive(test, c, 3, 1);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_WEDGE);
	wedge(c, 3, 50);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
	/* What node 0 has accepted of another one is not its proposal. */
	report_wedged(c, 0, 5)->accepted.ballot = 2;
	receive(test, c, 3, 0);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);

	cluster_init(test, c, 5);
	report_wedged(c, 0, 5)->accepted.ballot = 1;
	c->report.accepted.trim[0] = 11;
	receive(test, c, 3, 0);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_WEDGE);
	/* A node has to wedge first: its counts must be final. */
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
	wedge(c, 3, 50);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, p->ballot, 1u);
	KUNIT_EXPECT_EQ(test, p->trim[0], 11ull);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	/* The next leader's proposal takes its place, once it is that. */
	report_wedged(c, 1 << 0, 5)->accepted.ballot = 2;
	c->report.accepted.trim[0] = 22;
	receive(test, c, 3, 1);
	/* Until then there is an accusation of the leader. */
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, p->ballot, 1u);
	KUNIT_EXPECT_EQ(test, own(c, 3)->accusation.by, (u8)1);
	sp_suspect(&c->b[3], 0);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, p->ballot, 2u);
	KUNIT_EXPECT_EQ(test, p->trim[0], 22ull);
}

/* Decided is what all unsuspected nodes have accepted under one ballot. */
static void ballot_decide(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);

	sp_suspect(&c->b[2], 3);
	wedge(c, 2, 50);
	report_wedged(c, 1 << 3, 5)->accepted.ballot = 1;
	c->report.accepted.trim[0] = 11;
	receive(test, c, 2, 0);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND);
	/* Node 1 has accepted nothing, then another proposal. */
	report_wedged(c, 1 << 3, 5);
	receive(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	c->report.accepted.ballot = 2;
	receive(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	KUNIT_EXPECT_FALSE(test, c->b[2].decided);

	/* The last node to accept decides at once, and sends that first. */
	cluster_init(test, c, 4);
	sp_suspect(&c->b[2], 3);
	wedge(c, 2, 50);
	report_wedged(c, 1 << 3, 5)->accepted.ballot = 1;
	c->report.accepted.trim[0] = 11;
	receive(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	receive(test, c, 2, 0);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND | SP_STEP_DECIDED);
	KUNIT_EXPECT_EQ(test, sp_ballot_decision(&c->b[2])->trim[0], 11ull);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.ballot, SP_BALLOT_DECIDED);
	/* After a decision nothing follows. */
	sp_suspect(&c->b[2], 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);

	/* The leader decides when the others have accepted. */
	cluster_init(test, c, 2);
	wedge(c, 0, 5);
	report_wedged(c, 0, 5);
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	c->report.accepted = own(c, 0)->accepted;
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND | SP_STEP_DECIDED);

	/* A node alone decides by itself. */
	cluster_init(test, c, 1);
	sp_ballot_leave(&c->b[0], 0, SP_EXITED);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND | SP_STEP_DECIDED);
}

/* A node learns a decision from any node that has come to it. */
static void ballot_learn(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	const struct sp_proposal *p = sp_ballot_decision(&c->b[1]);

	report_wedged(c, 0, 5)->accepted.ballot = SP_BALLOT_DECIDED;
	c->report.accepted.trim[0] = 11;
	receive(test, c, 1, 4);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
	wedge(c, 1, 50);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND | SP_STEP_DECIDED);
	KUNIT_EXPECT_EQ(test, p->ballot, SP_BALLOT_DECIDED);
	KUNIT_EXPECT_EQ(test, p->trim[0], 11ull);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);

	/* A leader, too, learns a decision, though nobody has promised. */
	cluster_init(test, c, 5);
	sp_suspect(&c->b[1], 0);
	wedge(c, 1, 50);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	report_wedged(c, 0, 5)->accepted.ballot = SP_BALLOT_DECIDED;
	c->report.accepted.trim[0] = 11;
	receive(test, c, 1, 4);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND | SP_STEP_DECIDED);
	KUNIT_EXPECT_EQ(test, p->trim[0], 11ull);

	/* A decision that a suspected node reported does not count. */
	cluster_init(test, c, 5);
	report_wedged(c, 0, 5)->accepted.ballot = SP_BALLOT_DECIDED;
	receive(test, c, 1, 4);
	sp_suspect(&c->b[1], 4);
	wedge(c, 1, 50);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
}

/* Each case spoils a good report of node 1: no correct node sends that. */
static void ballot_receive_rejects(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	u32 i;

	for (i = 0; i < 9; i++) {
		cluster_init(test, c, 3);
		report_wedged(c, 0, 5)->leaves[1] = SP_LEFT;
		c->report.njoins = SP_MAX_JOINS;
		c->report.accepted.ballot = 3;
		c->report.accepted.njoins = SP_MAX_JOINS;
		c->report.accepted.reason[2] = SP_REASONS - 1;
		switch (i) {
		case 0:
			c->report.njoins++;
			break;
		case 1:
			c->report.accepted.ballot++;
			break;
		case 2:
			c->report.accepted.njoins++;
			break;
		case 3:
			c->report.accepted.reason[2]++;
			break;
		case 4:
			c->report.suspected = 1 << 1;
			break;
		case 5:
			c->report.suspected = 1 << 3;
			break;
		case 6:
			c->report.leaves[1] = SP_REASONS;
			break;
		case 7:
			c->report.accepted.joins[1].flags = ~SP_MEMBER_ALL;
			break;
		case 8:
			c->report.outranked = 1 << 2;
			break;
		}
		KUNIT_EXPECT_EQ_MSG(test,
				    sp_ballot_receive(&c->b[0], 1, &c->report),
				    -EPROTO, "case %u", i);
		KUNIT_EXPECT_FALSE(test, c->reports[0][1].wedged);
	}
	cluster_init(test, c, 3);
	report_wedged(c, 0, 5)->njoins = SP_MAX_JOINS;
	outrank(c, 1 << 2);
	c->report.leaves[1] = SP_REASONS - 1;
	c->report.accepted.ballot = 3;
	c->report.accepted.njoins = SP_MAX_JOINS;
	c->report.accepted.reason[2] = SP_REASONS - 1;
	receive(test, c, 0, 1);
	/* A node reports for its own members only. */
	cluster_init(test, c, 3);
	report(c, 0)->leaves[2] = SP_LEFT;
	refuse(test, c, 0, 1);
}

/* An older report, or one of another view, changes nothing. */
static void ballot_receive_old(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	u32 i;

	report_wedged(c, 1 << 2, 5)->accepted.ballot = 2;
	outrank(c, 1 << 3);
	c->report.njoins = 1;
	receive(test, c, 0, 1);
	for (i = 0; i < 6; i++) {
		report_wedged(c, 1 << 2, 50)->accepted.ballot = 2;
		outrank(c, 1 << 3);
		if (i == 0)
			c->report.suspected = 1 << 3;
		if (i == 1)
			c->report.wedged = false;
		if (i == 2)
			c->report.accepted.ballot = 1;
		if (i == 3)
			c->report.view++;
		if (i == 4)
			c->report.view--;
		if (i == 5)
			c->report.outranked = 0;
		KUNIT_EXPECT_EQ_MSG(test,
				    sp_ballot_receive(&c->b[0], 1, &c->report),
				    0, "case %u", i);
		KUNIT_EXPECT_EQ(test, c->reports[0][1].counts[0], 5ull);
	}
	/* A node receives no report of its own. */
	report(c, 0);
	KUNIT_EXPECT_EQ(test, sp_ballot_receive(&c->b[0], 0, &c->report), 0);
	/* A program may have given up its request: such a report is newer. */
	report_wedged(c, 0, 5)->accepted.ballot = 2;
	outrank(c, 1 << 3 | 1 << 2);
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, c->reports[0][1].njoins, 0u);
	KUNIT_EXPECT_EQ(test, c->reports[0][1].suspected, 0xcull);
	KUNIT_EXPECT_EQ(test, c->reports[0][1].outranked, 0xcull);
}

/* Requests of this node's members, and of programs that ask it. */
static void ballot_requests(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 2);
	struct sp_ballot *b = &c->b[0];
	struct sp_join_request who;
	u32 i;

	KUNIT_EXPECT_TRUE(test, sp_ballot_leave(b, 0, SP_SLOW));
	KUNIT_EXPECT_FALSE(test, sp_ballot_leave(b, 0, SP_LEFT));
	KUNIT_EXPECT_EQ(test, own(c, 0)->leaves[0], (u8)SP_SLOW);
	/* These programs are members. */
	who = join_request(0, 1);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(b, &who), 0);
	who = join_request(1, 1);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(b, &who), 0);
	for (i = 0; i < SP_MAX_JOINS; i++) {
		who = join_request(9, i);
		KUNIT_EXPECT_EQ(test, sp_ballot_join(b, &who), 1);
		KUNIT_EXPECT_EQ(test, sp_ballot_join(b, &who), 0);
	}
	who = join_request(9, i);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(b, &who), -EAGAIN);
	sp_ballot_cancel(b, &who.addr, i);
	KUNIT_EXPECT_EQ(test, own(c, 0)->njoins, (u32)SP_MAX_JOINS);
	sp_ballot_cancel(b, &who.addr, 3);
	KUNIT_EXPECT_EQ(test, own(c, 0)->njoins, SP_MAX_JOINS - 1u);
	for (i = 0; i < own(c, 0)->njoins; i++)
		KUNIT_EXPECT_NE(test, own(c, 0)->joins[i].cookie, 3ull);
	KUNIT_EXPECT_EQ(test, sp_ballot_join(b, &who), 1);
}

/* What a view did not settle is reported again in the next one. */
static void ballot_carry(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_ballot *old = &c->b[4];
	struct sp_ballot *b = &c->b[0];
	struct sp_join_request out = join_request(9, 2);
	struct sp_join_request in = join_request(9, 1);
	u32 i;

	/*
	 * Node 0 goes; node 1 goes and comes back at once; 2 and 3 stay. Node 4
	 * alone suspects 3, and its member requests too late to leave.
	 */
	sp_suspect(old, 0);
	sp_suspect(old, 1);
	sp_suspect(old, 3);
	sp_ballot_leave(old, 4, SP_LEFT);
	sp_ballot_join(old, &in);
	sp_ballot_join(old, &out);
	c->report.accepted.reason[0] = SP_LOST;
	c->report.accepted.reason[1] = SP_LOST;
	c->report.accepted.njoins = 2;
	c->report.accepted.joins[0] = in;
	c->report.accepted.joins[1] = join_request(1, 2);
	KUNIT_ASSERT_EQ(test, sp_view_next(&c->view, &c->report.accepted, false,
					   &c->next), 0);
	KUNIT_ASSERT_EQ(test, c->next.nnodes, 5u);
	memset(c->reports[0], 0xff, sizeof(c->reports[0]));
	memset(b, 0xff, sizeof(*b));
	b->decided = true;
	b->minority = false;
	sp_ballot_init(b, &c->next, 2, c->reports[0]);
	KUNIT_EXPECT_EQ(test, b->faulty, 0ull);
	for (i = 0; i < ARRAY_SIZE(b->floor); i++)
		KUNIT_EXPECT_EQ(test, b->floor[i], 0ull);
	KUNIT_EXPECT_EQ(test, c->reports[0][4].view, 8ull);
	sp_ballot_carry(b, old);
	/* Node 3 has rank 1 now, the member on node 4 rank 2. */
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->suspected, 2ull);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->outranked, 0ull);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->leaves[2], (u8)SP_LEFT);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->leaves[4], (u8)SP_STAYS);
	KUNIT_ASSERT_EQ(test, sp_ballot_own(b)->njoins, 1u);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->joins[0].cookie, 2ull);
	KUNIT_EXPECT_FALSE(test, sp_ballot_own(b)->wedged);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->accepted.ballot, 0u);
	KUNIT_EXPECT_FALSE(test, b->decided);

	/* A request to leave that was met is not made again. Node 0 stays. */
	cluster_clear(c, 3);
	cluster_add(c, 0, 1);
	cluster_add(c, 1, 1);
	cluster_add(c, 1, 2);
	cluster_begin(test, c);
	old = &c->b[1];
	b = &c->b[2];
	sp_ballot_leave(old, 1, SP_LEFT);
	sp_ballot_leave(old, 2, SP_EXITED);
	sp_suspect(old, 0);
	sp_ballot_leave(&c->b[0], 0, SP_SLOW);
	c->report.accepted.reason[1] = SP_LEFT;
	KUNIT_ASSERT_EQ(test, sp_view_next(&c->view, &c->report.accepted, false,
					   &c->next), 0);
	sp_ballot_init(b, &c->next, 1, c->reports[2]);
	sp_ballot_carry(b, old);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->leaves[0], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->leaves[1], (u8)SP_EXITED);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->suspected, 1ull);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->outranked, 0ull);
	sp_ballot_init(b, &c->next, 0, c->reports[2]);
	sp_ballot_carry(b, &c->b[0]);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->leaves[0], (u8)SP_SLOW);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->suspected, 0ull);
}

/* Who was outranked is so in the next view, too; it may have another rank. */
static void ballot_carry_outranked(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_ballot *old = &c->b[2];
	struct sp_ballot *b = &c->b[0];

	/* Node 0 goes. 3 is lost to 2, 4 refuses it, 1 is outranked by 0. */
	sp_suspect(old, 0);
	sp_suspect(old, 3);
	sp_suspect_in_return(old, 4);
	sp_suspect_as(old, 1, true);
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 0xaull);
	c->report.accepted.reason[0] = SP_LOST;
	KUNIT_ASSERT_EQ(test, sp_view_next(&c->view, &c->report.accepted, false,
					   &c->next), 0);
	KUNIT_ASSERT_EQ(test, c->next.nnodes, 4u);
	sp_ballot_init(b, &c->next, 1, c->reports[0]);
	sp_ballot_carry(b, old);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->suspected, 0xdull);
	KUNIT_EXPECT_EQ(test, sp_ballot_own(b)->outranked, 0x5ull);
}

/* Together: one member leaves, one joins, one is lost. */
static void ballot_together(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_join_request who = join_request(9, 1);
	u32 i;

	sp_ballot_leave(&c->b[2], 2, SP_LEFT);
	sp_ballot_join(&c->b[3], &who);
	sp_suspect(&c->b[1], 4);
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0xf), 0xfull);
	for (i = 0; i < 4; i++) {
		const struct sp_proposal *p = sp_ballot_decision(&c->b[i]);

		KUNIT_EXPECT_TRUE(test, same_proposal(p,
						      sp_ballot_decision(&c->b[0])));
		KUNIT_EXPECT_EQ(test, p->reason[2], (u8)SP_LEFT);
		KUNIT_EXPECT_EQ(test, p->reason[4], (u8)SP_LOST);
		KUNIT_EXPECT_EQ(test, p->njoins, 1u);
		KUNIT_EXPECT_EQ(test, p->trim[0], 10ull);
		KUNIT_EXPECT_LE(test, p->trim[0], own(c, i)->counts[0]);
	}
}

/* The leader dies when one node has accepted its proposal. */
static void ballot_leader_dies(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 i, k;

	sp_ballot_leave(&c->b[0], 0, SP_LEFT);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	wedge(c, 0, 10);
	for (i = 1; i < 5; i++) {
		send_report(c, 0, i);
		KUNIT_EXPECT_EQ(test, step(c, i), SP_STEP_WEDGE);
		wedge(c, i, 20);
		send_report(c, i, 0);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	send_report(c, 0, 3);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_SEND);
	/* The others suspect it, and a member of theirs requests to leave. */
	for (i = 1; i < 5; i++)
		sp_suspect(&c->b[i], 0);
	sp_ballot_leave(&c->b[1], 1, SP_LEFT);
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1e), 0x1eull);
	for (i = 1; i < 5; i++) {
		const struct sp_proposal *p = sp_ballot_decision(&c->b[i]);

		KUNIT_EXPECT_EQ(test, p->ballot, SP_BALLOT_DECIDED);
		KUNIT_EXPECT_EQ(test, p->reason[0], (u8)SP_LEFT);
		KUNIT_EXPECT_EQ(test, p->reason[1], (u8)SP_STAYS);
		for (k = 0; k < 5; k++)
			KUNIT_EXPECT_EQ(test, p->trim[k], 10ull + k);
	}
}

/* A random event at a random node. */
static void storm_event(struct kunit *test, struct traffic *t, u32 nodes)
{
	struct cluster *c = &t->c;
	u32 i = draw(t, nodes);
	u32 k = draw(t, nodes);

	if (t->down >> i & 1)
		return;
	switch (draw(t, 60)) {
	case 0:
		sp_suspect(&c->b[i], k);
		break;
	case 1:
		sp_ballot_leave(&c->b[i], i, SP_LEFT);
		break;
	case 2:
		if (!draw(t, 3))
			t->down |= 1ull << i;
		break;
	default:
		KUNIT_EXPECT_GE(test, traffic_receive(t, k, i), 0);
	}
	traffic_step(t, i);
}

/*
 * Whatever is received, suspected and lost in whichever order: all nodes that
 * decide come to the same decision, and have received what belongs to the view.
 */
static void ballot_storm(struct kunit *test)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 ends = 0;
	u32 run, i, k;

	KUNIT_ASSERT_NOT_NULL(test, t);
	for (run = 0; run < 400; run++) {
		u32 nodes = 2 + run % (CLUSTER_NODES - 1);
		const struct sp_proposal *first = NULL;

		traffic_init(test, t, nodes, run);
		for (i = 0; i < 400; i++)
			storm_event(test, t, nodes);
		for (i = 0; i < nodes; i++) {
			const struct sp_proposal *p =
				sp_ballot_decision(&t->c.b[i]);

			if (!(t->decided >> i & 1))
				continue;
			ends++;
			if (!first)
				first = p;
			KUNIT_EXPECT_TRUE_MSG(test, same_proposal(first, p),
					      "run %u", run);
			/* A node that is lost delivers nothing by it. */
			if (p->reason[i] == SP_LOST)
				continue;
			for (k = 0; k < nodes; k++)
				KUNIT_EXPECT_LE_MSG(test, p->trim[k],
						    own(&t->c, i)->counts[k],
						    "run %u", run);
		}
	}
	/* There are decisions, and enough of them to mean something. */
	KUNIT_EXPECT_GT(test, ends, 400u);
}

/* No correct node has accepted what this node has not proposed. */
static void ballot_unproposed(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);

	report_wedged(c, 0, 0)->accepted.ballot = 1;
	refuse(test, c, 0, 1);
	/* Node 2 does not know what node 0 has proposed. */
	KUNIT_EXPECT_EQ(test, sp_ballot_receive(&c->b[2], 1, &c->report), 1);
}

static struct kunit_case sp_ballot_cases[] = {
	KUNIT_CASE(ballot_at_rest),
	KUNIT_CASE(ballot_quorum),
	KUNIT_CASE(ballot_wedge),
	KUNIT_CASE(ballot_wedge_along),
	KUNIT_CASE(ballot_no_room),
	KUNIT_CASE(ballot_lead_waits),
	KUNIT_CASE(ballot_lead_alone),
	KUNIT_CASE(ballot_lead_again),
	KUNIT_CASE(ballot_proposal),
	KUNIT_CASE(ballot_proposal_others),
	KUNIT_CASE(ballot_proposal_caps),
	KUNIT_CASE(ballot_rejoin),
	KUNIT_CASE(ballot_frozen),
	KUNIT_CASE(ballot_accept),
	KUNIT_CASE(ballot_decide),
	KUNIT_CASE(ballot_learn),
	KUNIT_CASE(ballot_receive_rejects),
	KUNIT_CASE(ballot_receive_old),
	KUNIT_CASE(ballot_requests),
	KUNIT_CASE(ballot_carry),
	KUNIT_CASE(ballot_carry_outranked),
	KUNIT_CASE(ballot_together),
	KUNIT_CASE(ballot_leader_dies),
	KUNIT_CASE(ballot_storm),
	KUNIT_CASE(ballot_unproposed),
	{}
};

struct kunit_suite sp_ballot_suite = {
	.name = "spindle_ballot",
	.test_cases = sp_ballot_cases,
};
