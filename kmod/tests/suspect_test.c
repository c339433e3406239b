// SPDX-License-Identifier: GPL-2.0
/* Suspicions and accusations: who goes when a node does not hear another. */
#include "cluster.h"

static bool accuses(struct cluster *c, u32 node, u32 by, u32 of)
{
	const struct sp_accusation *a = &own(c, node)->accusation;

	return a->by == by && a->of == of;
}

/* All of these nodes came to one decision, in which just those are lost. */
static void lost(struct kunit *test, struct cluster *c, u64 nodes, u64 gone)
{
	const struct sp_proposal *first = NULL;
	u32 i, k;

	for (i = 0; i < c->view.nnodes; i++) {
		const struct sp_proposal *p = sp_ballot_decision(&c->b[i]);

		if (!(nodes >> i & 1))
			continue;
		if (!first)
			first = p;
		KUNIT_EXPECT_TRUE(test, c->b[i].decided);
		KUNIT_EXPECT_TRUE(test, same_proposal(first, p));
		for (k = 0; k < c->view.nnodes; k++)
			KUNIT_EXPECT_EQ_MSG(test, p->reason[k],
					    gone >> k & 1 ? SP_LOST : SP_STAYS,
					    "node %u of %u", i, k);
	}
}

/* A node does what follows from all it has received, and wedges when it is to. */
static int act(struct cluster *c, u32 node)
{
	int did = step(c, node);

	if (did > 0 && (did & SP_STEP_WEDGE))
		wedge(c, node, 10 * (node + 1));
	return did;
}

/* A suspicion is news once, and nothing is received of the suspected node. */
static void suspect_once(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	struct sp_ballot *b = &c->b[1];

	KUNIT_EXPECT_FALSE(test, sp_suspect(b, 1));
	KUNIT_EXPECT_TRUE(test, sp_suspect(b, 2));
	KUNIT_EXPECT_FALSE(test, sp_suspect(b, 2));
	KUNIT_EXPECT_TRUE(test, sp_suspects(b, 2));
	KUNIT_EXPECT_FALSE(test, sp_suspects(b, 0));
	KUNIT_EXPECT_EQ(test, sp_unsuspected(b), 3ull);
	report_wedged(c, 1, 4);
	KUNIT_EXPECT_EQ(test, sp_ballot_receive(b, 2, &c->report), 0);
	KUNIT_EXPECT_FALSE(test, b->reports[2].wedged);
}

/* Outranked is whom a node of a lower rank has lost; that is news, too. */
static void suspect_outranks(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_ballot *b = &c->b[2];

	/* A higher rank that this node has lost, and a lower one. */
	KUNIT_EXPECT_TRUE(test, sp_suspect(b, 3));
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 8ull);
	KUNIT_EXPECT_TRUE(test, sp_suspect(b, 1));
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 0xaull);
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 8ull);
	/* Those that refuse this node are not, whatever their rank. */
	KUNIT_EXPECT_TRUE(test, sp_suspect_in_return(b, 0));
	KUNIT_EXPECT_TRUE(test, sp_suspect_in_return(b, 4));
	KUNIT_EXPECT_FALSE(test, sp_suspect_in_return(b, 4));
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 0x1bull);
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 8ull);
	/* It is not taken back. */
	KUNIT_EXPECT_FALSE(test, sp_suspect_in_return(b, 3));
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 8ull);
	/* That a node which has refused this one is not heard is no evidence. */
	KUNIT_EXPECT_FALSE(test, sp_suspect(b, 4));
	KUNIT_EXPECT_FALSE(test, sp_suspect(b, 0));
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 8ull);
	KUNIT_EXPECT_TRUE(test, sp_suspect_as(b, 0, true));
	KUNIT_EXPECT_FALSE(test, sp_suspect_as(b, 0, true));
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 9ull);
	/* No node suspects itself. */
	KUNIT_EXPECT_FALSE(test, sp_suspect_as(b, 2, true));
	KUNIT_EXPECT_FALSE(test, sp_suspect_in_return(b, 2));
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 0x1bull);
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 9ull);
}

/* Who hears no majority waits, and so does who hears one only with nodes that it suspects. */
static void suspect_waits(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	struct sp_ballot *b = &c->b[2];

	KUNIT_EXPECT_TRUE(test, sp_suspect_waits(b, 1 << 2));
	KUNIT_EXPECT_TRUE(test, sp_suspect_waits(b, 1 << 2 | 1 << 4));
	KUNIT_EXPECT_FALSE(test, sp_suspect_waits(b, 1 << 2 | 1 << 4 | 1 << 1));
	KUNIT_EXPECT_FALSE(test, sp_suspect_waits(b, 0x1f));
	sp_suspect(b, 4);
	KUNIT_EXPECT_TRUE(test, sp_suspect_waits(b, 1 << 2 | 1 << 4 | 1 << 1));
	KUNIT_EXPECT_FALSE(test, sp_suspect_waits(b, 1 << 2 | 1 << 3 | 1 << 1));
	/* Half of the nodes with the lowest rank are a majority, the other half is none. */
	cluster_init(test, c, 4);
	KUNIT_EXPECT_FALSE(test, sp_suspect_waits(&c->b[3], 1 << 3 | 1 << 0));
	KUNIT_EXPECT_TRUE(test, sp_suspect_waits(&c->b[3], 1 << 3 | 1 << 1));
	/* Who goes on without a majority waits for none. */
	c->b[3].minority = true;
	KUNIT_EXPECT_FALSE(test, sp_suspect_waits(&c->b[3], 1 << 3));
}

/* A node that a majority suspects is suspected, and one of a higher rank or not. */
static void suspect_doomed(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 i;

	for (i = 1; i < 4; i++) {
		KUNIT_EXPECT_FALSE(test, sp_suspects(&c->b[4], 0));
		report(c, 1 << 0);
		receive(test, c, 4, i);
		step(c, 4);
	}
	KUNIT_EXPECT_EQ(test, own(c, 4)->suspected, 1ull);
	KUNIT_EXPECT_EQ(test, own(c, 4)->outranked, 1ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 4, 0, 0));

	/* What a node reports that is itself suspected does not count. */
	cluster_init(test, c, 5);
	report(c, 1 << 0);
	receive(test, c, 4, 1);
	sp_suspect(&c->b[4], 1);
	for (i = 2; i < 4; i++) {
		report(c, 1 << 0);
		receive(test, c, 4, i);
	}
	step(c, 4);
	KUNIT_EXPECT_FALSE(test, sp_suspects(&c->b[4], 0));

	/* Half of the nodes is enough for one that is the lowest of the rest. */
	cluster_init(test, c, 4);
	for (i = 1; i < 3; i++) {
		report(c, 1 << 0);
		receive(test, c, 3, i);
	}
	step(c, 3);
	KUNIT_EXPECT_FALSE(test, sp_suspects(&c->b[3], 0));
}

/* A view of as many nodes as there are bits. */
static void suspect_all_bits(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 2);

	c->view.nnodes = 64;
	report(c, 0);
	outrank(c, 1ull << 63);
	receive(test, c, 0, 1);
	c->view.nnodes = 63;
	refuse(test, c, 0, 1);
	c->view.nnodes = 64;
	KUNIT_EXPECT_EQ(test, sp_unsuspected(&c->b[0]), ~0ull);
	KUNIT_EXPECT_TRUE(test, sp_suspect(&c->b[0], 63));
	KUNIT_EXPECT_EQ(test, sp_unsuspected(&c->b[0]), ~0ull >> 1);
	KUNIT_EXPECT_EQ(test, own(c, 0)->outranked, 1ull << 63);
	c->view.nnodes = 63;
	KUNIT_EXPECT_EQ(test, sp_unsuspected(&c->b[0]), ~0ull >> 1);
}

/*
 * Nodes @at, @from and @of for each way to choose three of five, in any order;
 * false when there is none left.
 */
static bool three_nodes(u32 *way, u32 *at, u32 *from, u32 *of)
{
	for (; *way < 5 * 5 * 5; ++*way) {
		*at = *way % 5;
		*from = *way / 5 % 5;
		*of = *way / 25;
		if (*at != *from && *at != *of && *from != *of) {
			++*way;
			return true;
		}
	}
	return false;
}

/* Who is outranked is taken up at once, and passed on, whatever the ranks. */
static void suspect_take_up(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 way = 0, ways = 0;
	u32 at, from, of;

	while (three_nodes(&way, &at, &from, &of)) {
		u32 next = 0;

		cluster_init(test, c, 5);
		report(c, 0);
		outrank(c, 1 << of);
		receive(test, c, at, from);
		KUNIT_EXPECT_EQ(test, step(c, at),
				SP_STEP_SEND | SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, at)->suspected, 1ull << of);
		KUNIT_EXPECT_EQ(test, own(c, at)->outranked, 1ull << of);
		KUNIT_EXPECT_TRUE(test, accuses(c, at, 0, 0));
		/* Once is enough. */
		KUNIT_EXPECT_EQ(test, step(c, at), SP_STEP_WEDGE);
		while (next == at || next == from || next == of)
			next++;
		KUNIT_EXPECT_EQ(test, send_report(c, at, next), 1);
		KUNIT_EXPECT_EQ(test, step(c, next),
				SP_STEP_SEND | SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, next)->outranked, 1ull << of);
		ways++;
	}
	KUNIT_EXPECT_EQ(test, ways, 60u);

	/* Of several all are, those that were only suspected here among them. */
	cluster_init(test, c, 5);
	sp_suspect_in_return(&c->b[2], 4);
	report(c, 1 << 0);
	outrank(c, 1 << 3 | 1 << 4);
	receive(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 0x18ull);
	KUNIT_EXPECT_EQ(test, own(c, 2)->outranked, 0x18ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 2, 1, 0));

	/* The first to be read may be of one that is outranked by the next. */
	cluster_init(test, c, 5);
	report(c, 0);
	outrank(c, 1 << 4);
	receive(test, c, 2, 1);
	report(c, 0);
	outrank(c, 1 << 1);
	receive(test, c, 2, 3);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 0x12ull);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
}

/* Whom a node suspects otherwise is not taken up, whatever the ranks. */
static void suspect_leave(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 way = 0;
	u32 at, from, of;

	while (three_nodes(&way, &at, &from, &of)) {
		cluster_init(test, c, 5);
		report(c, 1 << of);
		receive(test, c, at, from);
		/* It is an accusation when the suspected rank is lower. */
		KUNIT_EXPECT_EQ(test, step(c, at),
				from > of ? SP_STEP_SEND : 0);
		KUNIT_EXPECT_EQ(test, own(c, at)->suspected, 0ull);
		KUNIT_EXPECT_TRUE(test, accuses(c, at, from > of ? from : 0,
						from > of ? of : 0));
		KUNIT_EXPECT_EQ(test, step(c, at), 0);
		/* Then the node turns out to be outranked. */
		report(c, 0);
		outrank(c, 1 << of);
		receive(test, c, at, from);
		KUNIT_EXPECT_EQ(test, step(c, at),
				SP_STEP_SEND | SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, at)->suspected, 1ull << of);
		KUNIT_EXPECT_TRUE(test, accuses(c, at, 0, 0));
	}
}

/* Two suspect each other: the higher rank alone goes, whichever spoke first. */
static void suspect_mutual(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	u32 i;

	for (i = 0; i < 2; i++) {
		cluster_init(test, c, 4);
		if (i) {
			report(c, 1 << 1);
			receive(test, c, 2, 3);
			KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND);
			KUNIT_EXPECT_TRUE(test, accuses(c, 2, 3, 1));
		}
		report(c, 0);
		outrank(c, 1 << 3);
		receive(test, c, 2, 1);
		if (!i) {
			report(c, 1 << 1);
			receive(test, c, 2, 3);
		}
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND | SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 8ull);
		KUNIT_EXPECT_TRUE(test, accuses(c, 2, 0, 0));
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 8ull);
	}
}

/*
 * A node that suspects this one does not hear it. This one suspects it in
 * return, and takes up nothing else that it reports. It outranks nobody by that
 * but a node of a higher rank which has not heard that this one is outranked.
 */
static void suspect_in_return(struct kunit *test)
{
	static const struct {
		u32 from;
		bool outranked, want;
	} table[] = {
		{ 0, true, false },
		{ 0, false, false },
		{ 1, true, false },
		{ 1, false, false },
		{ 3, true, false },
		{ 3, false, true },
		{ 4, true, false },
		{ 4, false, true },
	};
	struct cluster *c = cluster_new(test, 5);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		u64 bit = 1ull << table[i].from;
		u32 other = table[i].from == 3 ? 4 : 3;

		cluster_init(test, c, 5);
		report(c, 1 << 2);
		outrank(c, 1 << other);
		if (table[i].outranked)
			outrank(c, 1 << 2);
		receive(test, c, 2, table[i].from);
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND | SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ_MSG(test, own(c, 2)->suspected, bit, "row %u",
				    i);
		KUNIT_EXPECT_EQ_MSG(test, own(c, 2)->outranked,
				    table[i].want ? bit : 0, "row %u", i);
		KUNIT_EXPECT_TRUE(test, accuses(c, 2, 0, 0));
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
	}
}

/* What a suspected node had reported is not taken up any more. */
static void suspect_of_suspected(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);

	report(c, 0);
	outrank(c, 1 << 4);
	receive(test, c, 2, 1);
	sp_suspect(&c->b[2], 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 2ull);
	/* Nor what it reported of this node, or of others that accuse it. */
	cluster_init(test, c, 5);
	report(c, 1 << 0)->accusation = (struct sp_accusation){ 4, 2 };
	receive(test, c, 2, 1);
	sp_suspect(&c->b[2], 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 2ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 2, 0, 0));
	/* Nor that of one which a report that was read before outranks. */
	cluster_init(test, c, 5);
	report(c, 0);
	outrank(c, 1 << 1);
	receive(test, c, 2, 0);
	report(c, 1 << 0);
	outrank(c, 1 << 4);
	receive(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 2ull);
}

/* Who reports what cannot be is lost to this node, as by any other evidence. */
static void suspect_doubt(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 3);
	u32 from;

	for (from = 0; from < 3; from += 2) {
		cluster_init(test, c, 3);
		c->b[1].floor[0] = 5;
		report_wedged(c, 0, 4);
		receive(test, c, 1, from);
		wedge(c, 1, 10);
		KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND);
		KUNIT_EXPECT_EQ(test, c->b[1].faulty, 1ull << from);
		KUNIT_EXPECT_EQ(test, own(c, 1)->suspected, 1ull << from);
		KUNIT_EXPECT_EQ(test, own(c, 1)->outranked,
				from > 1 ? 1ull << from : 0);
	}
}

/* A node of a higher rank suspects one of a lower: all others pass that on. */
static void suspect_accuse(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 i;

	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		report(c, 1 << 1);
		receive(test, c, i, 4);
		KUNIT_EXPECT_EQ(test, step(c, i), SP_STEP_SEND);
		KUNIT_EXPECT_TRUE(test, accuses(c, i, 4, 1));
		KUNIT_EXPECT_EQ(test, own(c, i)->suspected, 0ull);
		/* It is reported once. */
		KUNIT_EXPECT_EQ(test, step(c, i), 0);
	}
	/* A node's own suspicion is no accusation: others find that in it. */
	sp_suspect(&c->b[4], 1);
	KUNIT_EXPECT_EQ(test, step(c, 4), SP_STEP_WEDGE);
	KUNIT_EXPECT_TRUE(test, accuses(c, 4, 0, 0));

	/* Once either of the two is suspected there is none any more. */
	KUNIT_EXPECT_TRUE(test, sp_suspect(&c->b[0], 4));
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	KUNIT_EXPECT_TRUE(test, sp_suspect_in_return(&c->b[2], 1));
	KUNIT_EXPECT_TRUE(test, accuses(c, 2, 0, 0));
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_STEP_WEDGE);
	KUNIT_EXPECT_TRUE(test, accuses(c, 2, 0, 0));
	/* Of a third node it does not matter. */
	KUNIT_EXPECT_TRUE(test, sp_suspect(&c->b[3], 2));
	KUNIT_EXPECT_TRUE(test, accuses(c, 3, 4, 1));
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_WEDGE);
	/* The same node accuses a lower rank than before. */
	report(c, 1 << 0 | 1 << 1);
	receive(test, c, 3, 4);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_TRUE(test, accuses(c, 3, 4, 0));

	/* The accused itself answers at once, and reports no accusation. */
	cluster_init(test, c, 2);
	report(c, 1 << 0);
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, own(c, 0)->suspected, 2ull);
	KUNIT_EXPECT_EQ(test, own(c, 0)->outranked, 2ull);
}

/* Of all accusations the first by rank of two nodes that are not suspected. */
static void suspect_accuse_whom(struct kunit *test)
{
	static const struct {
		u64 suspected;
		u8 by, of;
	} table[] = {
		{ 0x00, 2, 1 },
		{ 0x02, 3, 2 },
		{ 0x04, 3, 1 },
		{ 0x08, 2, 1 },
		{ 0x10, 2, 1 },
		{ 0x06, 4, 3 },
		{ 0x0a, 4, 2 },
		{ 0x0c, 0, 0 },
		{ 0x12, 3, 2 },
		{ 0x14, 3, 1 },
		{ 0x16, 0, 0 },
		{ 0x1e, 0, 0 },
	};
	struct cluster *c = cluster_new(test, 5);
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		cluster_init(test, c, 5);
		report(c, 1 << 1 | 1 << 3);
		receive(test, c, 0, 2);
		report(c, 1 << 1 | 1 << 2);
		receive(test, c, 0, 3);
		report(c, 1 << 2 | 1 << 3);
		receive(test, c, 0, 4);
		for (k = 1; k < 5; k++)
			if (table[i].suspected >> k & 1)
				sp_suspect_in_return(&c->b[0], k);
		KUNIT_EXPECT_EQ_MSG(test, sp_suspect_accuse(&c->b[0]),
				    table[i].by > 0, "row %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, accuses(c, 0, table[i].by,
						    table[i].of), "row %u", i);
		KUNIT_EXPECT_FALSE(test, sp_suspect_accuse(&c->b[0]));
	}
}

/* An accused node that is alive suspects its accuser in return. */
static void suspect_answer(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);

	report(c, 0)->accusation = (struct sp_accusation){ .by = 4, .of = 1 };
	receive(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 1)->suspected, 16ull);
	KUNIT_EXPECT_EQ(test, own(c, 1)->outranked, 16ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 1, 0, 0));
	/* Another node reports the same: that has been answered. */
	receive(test, c, 1, 2);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 1)->suspected, 16ull);

	/* So it does when it had suspected that one, which outranked nobody. */
	cluster_init(test, c, 5);
	sp_suspect_in_return(&c->b[1], 4);
	report(c, 0)->accusation = (struct sp_accusation){ .by = 4, .of = 1 };
	receive(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 1)->outranked, 16ull);

	/* What comes with the accusation is taken up. */
	cluster_init(test, c, 5);
	report(c, 0)->accusation = (struct sp_accusation){ .by = 4, .of = 1 };
	outrank(c, 1 << 2);
	receive(test, c, 1, 0);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 1)->suspected, 0x14ull);
	KUNIT_EXPECT_EQ(test, own(c, 1)->outranked, 0x14ull);

	/* The answer is that of a lower rank: everybody takes it up. */
	cluster_init(test, c, 3);
	report(c, 0)->accusation = (struct sp_accusation){ .by = 1, .of = 0 };
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND | SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, send_report(c, 0, 2), 1);
	KUNIT_EXPECT_TRUE(test, step(c, 2) & SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 2ull);
}

/* What is said of two other nodes a node does not take up. */
static void suspect_third_party(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 i;

	for (i = 1; i < 4; i++) {
		report_wedged(c, 0, 5);
		if (i != 2)
			c->report.accusation = (struct sp_accusation){ 4, 2 };
		receive(test, c, 0, i);
	}
	report_wedged(c, 0, 5);
	receive(test, c, 0, 4);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 0)->suspected, 0ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	/* Nor does it hold what a leader proposes. */
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);

	/* The accuser itself learns nothing by it that it did not know. */
	cluster_init(test, c, 5);
	report(c, 0)->accusation = (struct sp_accusation){ 4, 2 };
	receive(test, c, 4, 0);
	KUNIT_EXPECT_EQ(test, step(c, 4), 0);
	KUNIT_EXPECT_EQ(test, own(c, 4)->suspected, 0ull);
}

/* A leader proposes nothing as long as an accusation stands. */
static void suspect_hold(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	u32 i;

	wedge(c, 0, 5);
	for (i = 1; i < 4; i++) {
		report_wedged(c, i == 3 ? 1 << 1 : 0, 5);
		receive(test, c, 0, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 3, 1));
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 0u);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	/* The accused answers. */
	report_wedged(c, 0, 5);
	outrank(c, 1 << 3);
	receive(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.reason[3], (u8)SP_LOST);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.reason[1], (u8)SP_STAYS);

	/* A leader of a higher rank holds its proposal, too. */
	cluster_init(test, c, 5);
	sp_suspect(&c->b[1], 0);
	wedge(c, 1, 5);
	for (i = 2; i < 5; i++) {
		report_wedged(c, i == 4 ? 1 << 0 | 1 << 2 : 1 << 0, 5);
		receive(test, c, 1, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.ballot, 0u);
	sp_suspect(&c->b[1], 2);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.ballot, 2u);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.reason[2], (u8)SP_LOST);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.reason[4], (u8)SP_STAYS);
}

/* A proposal that was made before an accusation came is decided on. */
static void suspect_too_late_to_hold(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 4);
	u32 i;

	wedge(c, 0, 5);
	for (i = 1; i < 4; i++) {
		report_wedged(c, 0, 5);
		receive(test, c, 0, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_ASSERT_EQ(test, own(c, 0)->accepted.ballot, 1u);
	report_wedged(c, 1 << 1, 5);
	receive(test, c, 0, 3);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 3, 1));
	for (i = 1; i < 4; i++) {
		report_wedged(c, i == 3 ? 1 << 1 : 0, 5);
		c->report.accepted = own(c, 0)->accepted;
		receive(test, c, 0, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND | SP_STEP_DECIDED);
	lost(test, c, 1 << 0, 0);
}

/* Of several accusations one is reported at a time. */
static void suspect_one_after_the_other(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 i;

	wedge(c, 0, 5);
	for (i = 1; i < 5; i++) {
		report_wedged(c, i == 4 ? 1 << 1 | 1 << 2 : 0, 5);
		receive(test, c, 0, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 4, 1));
	/* The accuser of the lowest rank comes first. */
	report_wedged(c, 1 << 2, 5);
	receive(test, c, 0, 3);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 3, 2));
	/* Node 2 answers node 3, and has not heard of node 4's suspicion. */
	report_wedged(c, 0, 5);
	outrank(c, 1 << 3);
	receive(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 0)->suspected, 8ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 4, 1));
	/* Node 1 does not answer: it is dead. */
	sp_suspect(&c->b[0], 1);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 4, 2));
	/* Node 2 answers that, too, now that it is told. */
	report_wedged(c, 0, 5);
	outrank(c, 1 << 3 | 1 << 4);
	receive(test, c, 0, 2);
	c->b[0].minority = true;
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_STEP_SEND);
	KUNIT_EXPECT_EQ(test, own(c, 0)->suspected, 0x1aull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 0, 0));
	/* Nothing is left to hold the proposal for. */
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);
}

/* Each row is what no correct node reports of others, or what one does. */
static void suspect_rejects(struct kunit *test)
{
	static const struct {
		const char *what;
		struct sp_accusation a;
		u64 suspected, outranked;
		int want;
	} table[] = {
		{ "none", { 0, 0 }, 0x0, 0x0, 1 },
		{ "the highest of the lowest", { 3, 0 }, 0x0, 0x0, 1 },
		{ "the next rank", { 3, 2 }, 0x0, 0x0, 1 },
		{ "of the receiver", { 2, 0 }, 0x0, 0x0, 1 },
		{ "beside a suspicion", { 3, 0 }, 0x4, 0x0, 1 },
		{ "beside one outranked", { 3, 0 }, 0x4, 0x4, 1 },
		{ "the receiver suspected", { 3, 2 }, 0x1, 0x0, 1 },
		{ "the receiver outranked", { 3, 2 }, 0x1, 0x1, 1 },
		{ "all others", { 0, 0 }, 0xd, 0xd, 1 },
		{ "by no such rank", { 4, 0 }, 0x0, 0x0, -EPROTO },
		{ "by rank 255", { 255, 2 }, 0x0, 0x0, -EPROTO },
		{ "by the reporting node", { 1, 0 }, 0x0, 0x0, -EPROTO },
		{ "of the reporting node", { 3, 1 }, 0x0, 0x0, -EPROTO },
		{ "by a lower rank", { 2, 3 }, 0x0, 0x0, -EPROTO },
		{ "of itself", { 2, 2 }, 0x0, 0x0, -EPROTO },
		{ "of no such rank", { 3, 200 }, 0x0, 0x0, -EPROTO },
		{ "by the lowest", { 0, 2 }, 0x0, 0x0, -EPROTO },
		{ "by one suspected", { 3, 2 }, 0x8, 0x0, -EPROTO },
		{ "by one outranked", { 3, 2 }, 0x8, 0x8, -EPROTO },
		{ "of one suspected", { 3, 2 }, 0x4, 0x0, -EPROTO },
		{ "of one outranked", { 3, 2 }, 0x4, 0x4, -EPROTO },
		{ "of the receiver, suspected", { 3, 0 }, 0x1, 0x0, -EPROTO },
		{ "outranked alone", { 0, 0 }, 0x0, 0x4, -EPROTO },
		{ "outranked as well", { 0, 0 }, 0x8, 0xc, -EPROTO },
		{ "no such rank outranked", { 0, 0 }, 0x0, 0x10, -EPROTO },
		{ "no such rank suspected", { 0, 0 }, 0x10, 0x10, -EPROTO },
		{ "itself outranked", { 0, 0 }, 0x0, 0x2, -EPROTO },
		{ "itself suspected", { 0, 0 }, 0x2, 0x2, -EPROTO },
	};
	struct cluster *c = cluster_new(test, 4);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		cluster_init(test, c, 4);
		report_wedged(c, table[i].suspected, 5);
		c->report.accusation = table[i].a;
		c->report.outranked = table[i].outranked;
		KUNIT_EXPECT_EQ_MSG(test, sp_ballot_receive(&c->b[0], 1,
							    &c->report),
				    table[i].want, "%s", table[i].what);
		KUNIT_EXPECT_EQ_MSG(test, c->reports[0][1].wedged,
				    table[i].want > 0, "%s", table[i].what);
	}
}

/* Together: the accused is alive, so the accuser goes, and nobody else. */
static void suspect_accuser_goes(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 hi, lo, i;

	for (hi = 1; hi < 5; hi++) {
		for (lo = 0; lo < hi; lo++) {
			u64 rest = 0x1f & ~(1ull << hi);

			cluster_init(test, c, 5);
			sp_suspect(&c->b[hi], lo);
			KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1f), rest);
			lost(test, c, rest, 1ull << hi);
			for (i = 0; i < 5; i++) {
				if (i == hi)
					continue;
				KUNIT_EXPECT_EQ(test, own(c, i)->suspected,
						1ull << hi);
				KUNIT_EXPECT_EQ(test, own(c, i)->outranked,
						1ull << hi);
			}
		}
	}
}

/* Together: the accused is dead, and everybody suspects it in the end. */
static void suspect_accused_goes(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 i;

	/* The last that is heard of node 1 is that it has wedged. */
	for (i = 0; i < 5; i++) {
		if (i == 1)
			continue;
		report_wedged(c, 0, 50);
		receive(test, c, i, 1);
	}
	sp_suspect(&c->b[4], 1);
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1d), 0ull);
	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		KUNIT_EXPECT_TRUE(test, own(c, i)->wedged);
		KUNIT_EXPECT_EQ(test, own(c, i)->accepted.ballot, 0u);
		/* They wait for the accused to answer. */
		KUNIT_EXPECT_TRUE(test, accuses(c, i, 4, 1));
	}
	/* One after the other stops hearing it. */
	sp_suspect(&c->b[3], 1);
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1d), 0ull);
	KUNIT_EXPECT_TRUE(test, accuses(c, 0, 3, 1));
	/* That three of five do not is enough. */
	sp_suspect(&c->b[2], 1);
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1d), 0x1dull);
	lost(test, c, 0x1d, 2);

	/* When the lowest rank is the first to lose it nobody is accused. */
	cluster_init(test, c, 5);
	sp_suspect(&c->b[0], 1);
	KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1d), 0x1dull);
	lost(test, c, 0x1d, 2);
}

/*
 * Together: one connection breaks, that of nodes 0 and 1. Node 1 is on its way
 * out, and suspects in return those that have heard so. Node 4, which has not,
 * hears that first. Node 1 alone goes.
 */
static void suspect_one_break(struct kunit *test)
{
	struct cluster *c = cluster_new(test, 5);
	u32 by_reports, i;

	for (by_reports = 0; by_reports < 2; by_reports++) {
		cluster_init(test, c, 5);
		sp_suspect(&c->b[1], 0);
		KUNIT_EXPECT_EQ(test, act(c, 1), SP_STEP_WEDGE);
		sp_suspect(&c->b[0], 1);
		KUNIT_EXPECT_EQ(test, act(c, 0), SP_STEP_WEDGE);
		for (i = 2; i < 4; i++) {
			KUNIT_EXPECT_EQ(test, send_report(c, 0, i), 1);
			KUNIT_EXPECT_EQ(test, act(c, i),
					SP_STEP_SEND | SP_STEP_WEDGE);
			KUNIT_EXPECT_EQ(test, own(c, i)->suspected, 2ull);
			if (by_reports)
				KUNIT_EXPECT_EQ(test, send_report(c, i, 1), 1);
			else
				sp_suspect_in_return(&c->b[1], i);
		}
		KUNIT_EXPECT_EQ(test, act(c, 1), -ENETDOWN);
		KUNIT_EXPECT_EQ(test, own(c, 1)->suspected, 0xdull);
		KUNIT_EXPECT_EQ(test, own(c, 1)->outranked, 0ull);
		KUNIT_EXPECT_EQ(test, send_report(c, 1, 4), 1);
		KUNIT_EXPECT_EQ(test, act(c, 4), SP_STEP_SEND | SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 4)->suspected, 0ull);
		KUNIT_EXPECT_TRUE(test, accuses(c, 4, 1, 0));
		KUNIT_EXPECT_EQ(test, send_report(c, 0, 4), 1);
		KUNIT_EXPECT_EQ(test, act(c, 4), SP_STEP_SEND);
		KUNIT_EXPECT_EQ(test, own(c, 4)->suspected, 2ull);
		KUNIT_EXPECT_TRUE(test, accuses(c, 4, 0, 0));
		KUNIT_EXPECT_EQ(test, cluster_exchange(c, 0x1f), 0x1dull);
		lost(test, c, 0x1d, 2);
		KUNIT_EXPECT_FALSE(test, c->b[1].decided);
	}
}

/* Together: two connections break at once, with a node in common or without. */
static void suspect_two_breaks(struct kunit *test)
{
	static const struct {
		u32 hi[2], lo[2];
		u64 gone;
	} table[] = {
		{ { 4, 3 }, { 1, 0 }, 0x18 },
		{ { 4, 4 }, { 1, 2 }, 0x10 },
		{ { 4, 3 }, { 2, 2 }, 0x18 },
		{ { 4, 2 }, { 3, 1 }, 0x14 },
		/* Node 4 suspects the accuser that goes: it need not go, too. */
		{ { 4, 3 }, { 3, 2 }, 0x08 },
		{ { 4, 2 }, { 2, 0 }, 0x04 },
	};
	struct cluster *c = cluster_new(test, 5);
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		u64 rest = 0x1f & ~table[i].gone;

		cluster_init(test, c, 5);
		for (k = 0; k < 2; k++)
			sp_suspect(&c->b[table[i].hi[k]], table[i].lo[k]);
		KUNIT_EXPECT_EQ_MSG(test, cluster_exchange(c, 0x1f), rest,
				    "row %u", i);
		lost(test, c, rest, table[i].gone);
	}
}

/*
 * In any order of what is received: the connection of two nodes breaks, and one
 * side or both notice. The higher rank goes, and nobody else.
 */
static void suspect_any_order(struct kunit *test)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct cluster *c;
	u64 all, rest;
	u32 run, r;

	KUNIT_ASSERT_NOT_NULL(test, t);
	c = &t->c;
	for (run = 0; run < 300; run++) {
		u32 nodes = 3 + run % (CLUSTER_NODES - 2);
		u32 hi, lo;

		traffic_init(test, t, nodes, run);
		hi = 1 + draw(t, nodes - 1);
		lo = draw(t, hi);
		for (r = 0; r < 300; r++) {
			u32 to = draw(t, nodes);

			if (!draw(t, 40))
				sp_suspect(&c->b[hi], lo);
			if (run % 2 && !draw(t, 40))
				sp_suspect(&c->b[lo], hi);
			KUNIT_EXPECT_GE(test, traffic_receive(t, draw(t, nodes),
							      to), 0);
			traffic_step(t, to);
		}
		sp_suspect(&c->b[hi], lo);
		all = (1ull << nodes) - 1;
		rest = all & ~(1ull << hi);
		cluster_exchange(c, all);
		lost(test, c, rest, all & ~rest);
		KUNIT_EXPECT_FALSE(test, c->b[hi].decided);
	}
}

/*
 * struct cut - the connection of two nodes, which breaks
 * @lo: the lower rank
 * @hi: the higher rank, which is to go
 * @done: it has broken
 */
struct cut {
	u32 lo, hi;
	bool done;
};

/*
 * An event at a random node: it receives, loses the node at the other end of the
 * cut connection, or comes to know that it is suspected.
 */
static void cut_event(struct kunit *test, struct traffic *t, struct cut *cut)
{
	struct cluster *c = &t->c;
	u32 from = draw(t, c->view.nnodes);
	u32 to = draw(t, c->view.nnodes);
	bool end = (from == cut->lo && to == cut->hi) ||
		   (from == cut->hi && to == cut->lo);

	if (end && !draw(t, 5))
		cut->done = true;
	if (end && cut->done) {
		t->flies[from][to] = false;
		if (!draw(t, 5))
			sp_suspect(&c->b[to], from);
	}
	if (sp_suspects(&c->b[from], to) && !draw(t, 3)) {
		/* It is refused, or the last report still came. */
		if (draw(t, 2))
			sp_suspect_in_return(&c->b[to], from);
		else if (!end)
			KUNIT_EXPECT_GE(test, send_report(c, from, to), 0);
	}
	KUNIT_EXPECT_GE(test, traffic_receive(t, from, to), 0);
	traffic_step(t, to);
}

/*
 * In any order of what is received: one connection breaks, one end of it or both
 * find out, and those that are suspected suspect in return. The higher rank goes,
 * and nobody else.
 */
static void suspect_any_order_one_break(struct kunit *test)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 run, r, events, returned = 0;
	struct cluster *c;

	KUNIT_ASSERT_NOT_NULL(test, t);
	c = &t->c;
	for (run = 0; run < 600; run++) {
		struct cut cut = {};
		u64 rest;

		traffic_init(test, t, CLUSTER_NODES, run);
		cut.hi = 1 + draw(t, CLUSTER_NODES - 1);
		cut.lo = draw(t, cut.hi);
		rest = 0x1f & ~(1ull << cut.hi);
		/* More or less of it has happened when the rest comes at once. */
		events = 50 + draw(t, 400);
		for (r = 0; r < events; r++)
			cut_event(test, t, &cut);
		if (own(c, cut.hi)->suspected & ~(1ull << cut.lo))
			returned++;
		if (draw(t, 3))
			sp_suspect(&c->b[cut.hi], cut.lo);
		else
			sp_suspect(&c->b[cut.lo], cut.hi);
		cluster_exchange(c, 0x1f);
		lost(test, c, rest, 1ull << cut.hi);
		KUNIT_EXPECT_FALSE(test, c->b[cut.hi].decided);
		for (r = 0; r < CLUSTER_NODES; r++)
			if (r != cut.hi)
				KUNIT_EXPECT_EQ_MSG(test, own(c, r)->suspected,
						    1ull << cut.hi, "run %u",
						    run);
	}
	/* Enough of those that go suspected others for it. */
	KUNIT_EXPECT_GT(test, returned, 200u);
}

/* An event at a random node: it receives, dies, or suspects the dead one. */
static void death_event(struct kunit *test, struct traffic *t, u32 nodes,
			u32 down)
{
	u32 to = draw(t, nodes);

	if (t->down >> to & 1)
		return;
	if (to == down && !draw(t, 10))
		t->down |= 1ull << to;
	else if ((t->down >> down & 1) && !draw(t, 20))
		sp_suspect(&t->c.b[to], down);
	KUNIT_EXPECT_GE(test, traffic_receive(t, draw(t, nodes), to), 0);
	traffic_step(t, to);
}

/*
 * In any order of what is received: one node or two die, and all others suspect
 * them sooner or later. Nobody else goes.
 */
static void suspect_any_order_deaths(struct kunit *test)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct cluster *c;
	u32 run, i, r;

	KUNIT_ASSERT_NOT_NULL(test, t);
	c = &t->c;
	for (run = 0; run < 300; run++) {
		u32 nodes = 3 + run % (CLUSTER_NODES - 2);
		u64 all = (1ull << nodes) - 1;
		u32 first, second, k;
		u64 gone = 0;

		traffic_init(test, t, nodes, run);
		first = draw(t, nodes);
		second = nodes == 5 && run % 2 ? draw(t, nodes) : first;
		for (r = 0; r < 200; r++)
			death_event(test, t, nodes, draw(t, 2) ? first : second);
		t->down = 1ull << first | 1ull << second;
		for (i = 0; i < nodes; i++) {
			if (t->down >> i & 1)
				continue;
			sp_suspect(&c->b[i], first);
			sp_suspect(&c->b[i], second);
		}
		cluster_exchange(c, all & ~t->down);
		i = 0;
		while (t->down >> i & 1)
			i++;
		for (k = 0; k < nodes; k++)
			if (sp_ballot_decision(&c->b[i])->reason[k])
				gone |= 1ull << k;
		/* A view may have ended after the first death already. */
		KUNIT_EXPECT_EQ(test, gone & ~t->down, 0ull);
		KUNIT_EXPECT_GT(test, gone, 0ull);
		lost(test, c, all & ~t->down, gone);
	}
}

static struct kunit_case sp_suspect_cases[] = {
	KUNIT_CASE(suspect_once),
	KUNIT_CASE(suspect_outranks),
	KUNIT_CASE(suspect_waits),
	KUNIT_CASE(suspect_doomed),
	KUNIT_CASE(suspect_all_bits),
	KUNIT_CASE(suspect_take_up),
	KUNIT_CASE(suspect_leave),
	KUNIT_CASE(suspect_mutual),
	KUNIT_CASE(suspect_in_return),
	KUNIT_CASE(suspect_of_suspected),
	KUNIT_CASE(suspect_doubt),
	KUNIT_CASE(suspect_accuse),
	KUNIT_CASE(suspect_accuse_whom),
	KUNIT_CASE(suspect_answer),
	KUNIT_CASE(suspect_third_party),
	KUNIT_CASE(suspect_hold),
	KUNIT_CASE(suspect_too_late_to_hold),
	KUNIT_CASE(suspect_one_after_the_other),
	KUNIT_CASE(suspect_rejects),
	KUNIT_CASE(suspect_accuser_goes),
	KUNIT_CASE(suspect_accused_goes),
	KUNIT_CASE(suspect_one_break),
	KUNIT_CASE(suspect_two_breaks),
	KUNIT_CASE(suspect_any_order),
	KUNIT_CASE(suspect_any_order_one_break),
	KUNIT_CASE(suspect_any_order_deaths),
	{}
};

struct kunit_suite sp_suspect_suite = {
	.name = "spindle_suspect",
	.test_cases = sp_suspect_cases,
};
