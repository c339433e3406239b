// SPDX-License-Identifier: GPL-2.0
/* The ragged edge of a view: what is proposed, believed and delivered of it. */
#include "cluster.h"
#include "shell.h"

static const u32 one_each[] = { 0, 1, 2 };

/* The proposed trim is the least that any of the surviving nodes has. */
static void trim_least(struct kunit *test)
{
	static const struct {
		u64 nodes;
		u64 trim[3];
	} table[] = {
		{ 0x7, { 4, 2, 0 } },
		{ 0x6, { 4, 6, 0 } },
		{ 0x5, { 5, 2, 7 } },
		{ 0x1, { 5, 2, 9 } },
		{ 0x2, { 4, 6, 0 } },
	};
	static const u64 counts[3][3] = {
		{ 5, 2, 9 }, { 4, 6, 0 }, { 8, 7, 7 },
	};
	struct cluster *c = cluster_new(test, 3);
	u32 i, k;

	for (i = 0; i < 3; i++)
		memcpy(c->reports[0][i].counts, counts[i], sizeof(counts[i]));
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		memset(c->counts, 0xff, sizeof(c->counts));
		sp_trim_least(&c->b[0], table[i].nodes, c->counts);
		for (k = 0; k < 3; k++)
			KUNIT_EXPECT_EQ_MSG(test, c->counts[k], table[i].trim[k],
					    "row %u", i);
		/* There are as many lanes as there are senders. */
		KUNIT_EXPECT_EQ(test, c->counts[3], ~0ull);
	}
}

/* A node is suspected for a report that does not fit what this node has. */
static void trim_doubt(struct kunit *test)
{
	static const struct {
		u64 count, trim;	/* of lane 1: 5 were delivered */
		u32 ballot;
		u8 reason;		/* of this node's member */
		bool ok;
	} table[] = {
		{ 5, 5, 0, 0, true },
		{ 4, 5, 0, 0, false },
		{ 5, 5, 2, 0, true },
		{ 5, 4, 2, 0, false },
		{ 9, 11, 2, 0, true },	/* as many as are here */
		{ 9, 12, 2, 0, false },
		{ 9, 12, SP_BALLOT_DECIDED, 0, false },
		{ 9, 4, SP_BALLOT_DECIDED, SP_LEFT, false },
		/* made by a leader that had not received this node's report */
		{ 9, 12, 2, SP_LOST, true },
	};
	struct cluster *c = cluster_new(test, 3);
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		cluster_init(test, c, 3);
		c->b[0].floor[1] = 5;
		report_wedged(c, 0, 10)->counts[1] = table[i].count;
		c->report.accepted.ballot = table[i].ballot;
		c->report.accepted.reason[0] = table[i].reason;
		for (k = 0; k < c->view.nlanes; k++)
			c->report.accepted.trim[k] = 10 + k;
		c->report.accepted.trim[1] = table[i].trim;
		receive(test, c, 0, 1);
		/* Before this node has wedged it cannot know. */
		KUNIT_EXPECT_TRUE(test, step(c, 0) & SP_STEP_WEDGE);
		KUNIT_EXPECT_EQ(test, c->b[0].faulty, 0ull);
		wedge(c, 0, 10);
		KUNIT_EXPECT_EQ_MSG(test, step(c, 0),
				    table[i].ok ? 0 : SP_STEP_SEND, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, c->b[0].faulty,
				    table[i].ok ? 0ull : 2ull, "row %u", i);
		KUNIT_EXPECT_EQ(test, sp_suspects(&c->b[0], 1), !table[i].ok);
	}
	/* It is not doubted what a node reported that was suspected before. */
	cluster_init(test, c, 3);
	c->b[0].floor[1] = 5;
	report_wedged(c, 0, 0);
	receive(test, c, 0, 1);
	sp_suspect(&c->b[0], 1);
	wedge(c, 0, 10);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	KUNIT_EXPECT_EQ(test, c->b[0].faulty, 0ull);
	/* What a node reports before it has wedged is not final. */
	cluster_init(test, c, 3);
	c->b[0].floor[1] = 5;
	wedge(c, 0, 10);
	report(c, 0);
	receive(test, c, 0, 1);
	step(c, 0);
	KUNIT_EXPECT_EQ(test, c->b[0].faulty, 0ull);
}

/* Of each lane the turns up to the last delivered one were delivered. */
static void trim_floor(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	u64 floor[SLOTS];
	u32 i, k;

	o->start = 100;
	for (i = 0; i < 10; i++) {
		o->delivered = o->start - 1 + i;
		for (k = 0; k < 3; k++)
			s->lanes[k].base = 1000 - 300 * k;
		sp_core_floor(&s->core, floor);
		for (k = 0; k < 3; k++)
			KUNIT_EXPECT_EQ_MSG(test, floor[k],
					    s->lanes[k].base + (i + 2 - k) / 3,
					    "%u turns, lane %u", i, k);
	}
	/* Where nobody sends there is no lane. */
	o->nlanes = 0;
	floor[0] = 7;
	sp_core_floor(&s->core, floor);
	KUNIT_EXPECT_EQ(test, floor[0], 7ull);
}

/* Received are 3, 2 and 1 rounds; exactly what was decided is delivered. */
static void trim_deliver(struct kunit *test)
{
	static const struct {
		u64 trim[3];
		u32 before;		/* turns delivered before */
		u32 n;
		s64 seqs[6];
		s64 delivered;
	} table[] = {
		{ { 3, 2, 1 }, 0, 6, { 0, 1, 2, 3, 4, 6 }, 6 },
		{ { 1, 1, 1 }, 0, 3, { 0, 1, 2 }, 2 },
		{ { 0, 2, 0 }, 0, 2, { 1, 4 }, 4 },
		{ { 0, 0, 1 }, 0, 1, { 2 }, 2 },
		{ { 3, 0, 0 }, 0, 3, { 0, 3, 6 }, 6 },
		{ { 0, 0, 0 }, 0, 0, { }, -1 },
		{ { 3, 2, 1 }, 4, 6, { 0, 1, 2, 3, 4, 6 }, 6 },
		{ { 3, 1, 1 }, 4, 5, { 0, 1, 2, 3, 6 }, 6 },
		{ { 2, 1, 1 }, 4, 4, { 0, 1, 2, 3 }, 3 },
		{ { 1, 1, 0 }, 2, 2, { 0, 1 }, 1 },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct shell *s = shell_new(test, one_each, 3, 3, 0);
		struct sp_order *o = &s->core.order;
		u64 counts[SLOTS];

		for (k = 0; k < 3; k++)
			sp_tx_commit(&s->tx[0], 10, 0);
		commit(s, 1, 10, 2);
		commit(s, 2, 10, 1);
		peer_row(s, 1, table[i].before - 1ll, -1);
		peer_row(s, 2, table[i].before - 1ll, -1);
		pass(s);
		KUNIT_ASSERT_EQ(test, sp_core_wedge(&s->core, counts), 0);
		KUNIT_EXPECT_EQ(test, o->delivered, table[i].before - 1ll);
		KUNIT_EXPECT_EQ_MSG(test, sp_order_trim(o, table[i].trim), 0,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, o->published, (u64)table[i].n,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, o->delivered, table[i].delivered,
				    "row %u", i);
		for (k = 0; k < table[i].n; k++) {
			KUNIT_EXPECT_EQ_MSG(test, s->log[k].seq, table[i].seqs[k],
					    "row %u entry %u", i, k);
			KUNIT_EXPECT_EQ(test, s->log[k].lane & SP_LOG_SLOT,
					(u32)table[i].seqs[k] % 3);
		}
		KUNIT_EXPECT_EQ(test, o->nulls, 0ull);
	}
}

/* Nulls within the trim are delivered, as no message. */
static void trim_deliver_nulls(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	u64 trim[SLOTS];

	/* Lane 1: a null and a message; lane 2: two nulls; lane 0: a null. */
	sp_tx_nulls(theirs(s, 1), 1);
	commit(s, 1, 10, 1);
	promise(s, 2, 2);
	KUNIT_ASSERT_EQ(test, sp_core_wedge(&s->core, trim), 0);
	KUNIT_EXPECT_EQ(test, trim[0], 0ull);
	KUNIT_EXPECT_EQ(test, trim[1], 2ull);
	KUNIT_EXPECT_EQ(test, trim[2], 2ull);
	KUNIT_EXPECT_EQ(test, sp_order_trim(o, trim), 0);
	KUNIT_EXPECT_EQ(test, o->published, 1ull);
	KUNIT_EXPECT_EQ(test, s->log[0].seq, 4ll);
	KUNIT_EXPECT_EQ(test, o->nulls, 3ull);
	KUNIT_EXPECT_EQ(test, o->delivered, 5ll);
	/* Where nobody sends nothing is delivered. */
	o->nlanes = 0;
	KUNIT_EXPECT_EQ(test, sp_order_trim(o, trim), 0);
	KUNIT_EXPECT_EQ(test, o->delivered, 5ll);
}

/* In a later view turns are counted from its start, rounds from their bases. */
static void trim_deliver_later(struct kunit *test)
{
	static const u64 bases[] = { 7, 0, 30 };
	static const u64 trim[] = { 9, 1, 31 };
	static const s64 seqs[] = { 100, 101, 102, 103 };
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	u32 i, k;

	o->start = 100;
	sp_order_init(o);
	for (i = 0; i < 3; i++) {
		const struct sp_point at = { .round = bases[i] };
		struct sp_lane *lane = &s->lanes[i];

		sp_lane_init(lane, &at);
		lane->now.round += 3;
		lane->now.count = 3;
		for (k = 0; k < 3; k++)
			lane->desc[k].index = bases[i] + k;
	}
	KUNIT_EXPECT_EQ(test, sp_order_trim(o, trim), 0);
	KUNIT_EXPECT_EQ(test, o->delivered, 103ll);
	KUNIT_ASSERT_EQ(test, o->published, (u64)ARRAY_SIZE(seqs));
	for (i = 0; i < ARRAY_SIZE(seqs); i++) {
		KUNIT_EXPECT_EQ(test, s->log[i].seq, seqs[i]);
		KUNIT_EXPECT_EQ(test, s->log[i].lane & SP_LOG_SLOT, i % 3);
	}
}

/* The stream ends with a view when the trim covers the last message of every sender. */
static void trim_ends(struct kunit *test)
{
	static const struct {
		u64 trim[3];
		u32 fins;		/* lanes whose last message was received */
		u32 over;		/* was delivered */
		bool ends;
	} table[] = {
		{ { 10, 3, 33 }, 0x7, 0, true },
		{ { 9, 3, 33 }, 0x7, 0, false },
		{ { 10, 3, 32 }, 0x7, 0, false },
		{ { 10, 3, 33 }, 0x5, 0, false },
		{ { 9, 3, 33 }, 0x6, 0x1, true },
		{ { 9, 3, 32 }, 0x6, 0x1, false },
		{ { 7, 0, 30 }, 0, 0x7, true },
		{ { 7, 0, 30 }, 0, 0x6, false },
	};
	static const u64 bases[] = { 7, 0, 30 };
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	u32 i, k, r;

	for (r = 0; r < ARRAY_SIZE(table); r++) {
		for (i = 0; i < 3; i++) {
			const struct sp_point at = { .round = bases[i] };
			struct sp_lane *lane = &s->lanes[i];

			sp_lane_init(lane, &at);
			lane->fin = table[r].over >> i & 1;
			lane->now.round += 3;
			lane->now.count = lane->fin ? 0 : 3;
			for (k = 0; k < 3; k++) {
				lane->desc[k].index = bases[i] + k;
				lane->desc[k].flags = 0;
			}
			if (table[r].fins >> i & 1)
				lane->desc[2].flags = SP_DESC_FIN;
		}
		KUNIT_EXPECT_EQ_MSG(test, sp_order_trim_ends(o, table[r].trim),
				    table[r].ends, "row %u", r);
	}
	/* A lane in which nothing waits goes on. */
	s->lanes[1].fin = false;
	KUNIT_EXPECT_FALSE(test, sp_order_trim_ends(o, table[0].trim));
	/* Where nobody sends nothing ends. */
	o->nlanes = 0;
	KUNIT_EXPECT_FALSE(test, sp_order_trim_ends(o, table[0].trim));
}

/* An order as it is at one time, to be compared with what it is later. */
struct copy {
	struct sp_order order;
	struct sp_lane lanes[SLOTS];
	struct sp_log log[64];
};

static void copy(struct copy *to, const struct shell *s)
{
	memset(to, 0, sizeof(*to));
	memcpy(&to->order, &s->core.order, sizeof(to->order));
	memcpy(to->lanes, s->lanes, sizeof(to->lanes));
	memcpy(to->log, s->log, sizeof(to->log));
}

/* A trim that this node cannot deliver leaves the order as it was. */
static void trim_rejects(struct kunit *test)
{
	static const u64 trims[][3] = {
		{ 2, 2, 1 }, { 1, 3, 1 }, { 1, 2, 2 }, { ~0ull, 2, 1 },
		{ 1, 2, ~0ull },
		/* Turns 0 and 1 were delivered. */
		{ 0, 2, 1 }, { 1, 0, 1 }, { 0, 0, 0 },
	};
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct copy *before = kunit_kzalloc(test, sizeof(*before), GFP_KERNEL);
	struct copy *now = kunit_kzalloc(test, sizeof(*now), GFP_KERNEL);
	struct sp_order *o = &s->core.order;
	u64 trim[SLOTS];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, before);
	KUNIT_ASSERT_NOT_NULL(test, now);
	sp_tx_commit(&s->tx[0], 10, 0);
	commit(s, 1, 10, 2);
	commit(s, 2, 10, 1);
	s->core.opt = SP_OPT_ALL & ~SP_OPT_NULL;
	peer_row(s, 1, 1, -1);
	peer_row(s, 2, 1, -1);
	pass(s);
	KUNIT_ASSERT_EQ(test, sp_core_wedge(&s->core, trim), 0);
	KUNIT_ASSERT_EQ(test, o->published, 2ull);
	copy(before, s);
	for (i = 0; i < ARRAY_SIZE(trims); i++) {
		KUNIT_EXPECT_EQ_MSG(test, sp_order_trim(o, trims[i]), -EPROTO,
				    "row %u", i);
		copy(now, s);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(before, now, sizeof(*now)), 0,
				    "row %u", i);
	}
	/* There is no room for two messages more, for one, or for the event. */
	for (i = 0; i < 3; i++) {
		o->log_size = 2;
		o->released = i;
		copy(before, s);
		KUNIT_EXPECT_EQ(test, sp_order_trim(o, trim), -ENOBUFS);
		copy(now, s);
		KUNIT_EXPECT_EQ(test, memcmp(before, now, sizeof(*now)), 0);
	}
	/* There is room for all of them, and for no second event. */
	o->log_size = 4;
	o->released = 1;
	KUNIT_EXPECT_EQ(test, sp_order_trim(o, trim), 0);
	KUNIT_EXPECT_EQ(test, o->published, 4ull);
	KUNIT_EXPECT_EQ(test, sp_order_event(o, VIEW, 2), 0);
	KUNIT_EXPECT_EQ(test, sp_order_event(o, VIEW, 2), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, o->published, 5ull);
}

/* A trim cannot be less than what the view began with. */
static void trim_rejects_below_base(struct kunit *test)
{
	static const u64 good[] = { 2, 2, 2 };
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	u32 i;

	for (i = 0; i < 3; i++) {
		s->lanes[i].base = 2;
		s->lanes[i].now.round = 2;
	}
	KUNIT_EXPECT_EQ(test, sp_order_trim(&s->core.order, good), 0);
	for (i = 0; i < 3; i++) {
		u64 less[] = { 2, 2, 2 };

		less[i] = 1;
		KUNIT_EXPECT_EQ(test, sp_order_trim(&s->core.order, less), -EPROTO);
	}
	KUNIT_EXPECT_EQ(test, s->core.order.delivered, -1ll);
}

static struct kunit_case sp_trim_cases[] = {
	KUNIT_CASE(trim_least),
	KUNIT_CASE(trim_doubt),
	KUNIT_CASE(trim_floor),
	KUNIT_CASE(trim_deliver),
	KUNIT_CASE(trim_deliver_nulls),
	KUNIT_CASE(trim_deliver_later),
	KUNIT_CASE(trim_ends),
	KUNIT_CASE(trim_rejects),
	KUNIT_CASE(trim_rejects_below_base),
	{}
};

struct kunit_suite sp_trim_suite = {
	.name = "spindle_trim",
	.test_cases = sp_trim_cases,
};
