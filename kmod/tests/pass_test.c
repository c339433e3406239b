// SPDX-License-Identifier: GPL-2.0
/* A pass over a shell that records what it is asked to post. */
#include "shell.h"

static struct shell *shell(struct kunit *test, const u32 *owners, u32 nlanes,
			   u32 nnodes, bool polled)
{
	struct shell *s = shell_new(test, owners, nlanes, nnodes, 0);
	u32 i;

	s->core.polled = polled;
	for (i = 0; i < nnodes; i++)
		s->peers[i].polled = polled;
	return s;
}

static const u32 one_own[] = { 0 };
static const u32 two_own[] = { 0, 1, 0 };
static const u32 last_own[] = { 1, 2, 0 };

/* To each peer: the runs of all lanes, then the row that covers them. */
static void pass_order_of_posts(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 3, true);
	u32 node;

	sp_tx_commit(&s->tx[0], 100, 0);
	sp_tx_commit(&s->tx[1], 200, 0);
	sp_tx_commit(&s->tx[1], 0, 0);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_ASSERT_EQ(test, s->nposted, 6u);
	for (node = 1; node < 3; node++) {
		struct posted *p = &s->posted[3 * (node - 1)];

		KUNIT_EXPECT_EQ(test, p[0].node, node);
		KUNIT_EXPECT_EQ(test, (int)p[0].kind, (int)RUN);
		KUNIT_EXPECT_EQ(test, p[0].own, 0u);
		KUNIT_EXPECT_EQ(test, p[0].run.bytes[0].len, 100u);
		KUNIT_EXPECT_EQ(test, p[0].run.desc[0].len, 16u);
		KUNIT_EXPECT_EQ(test, (int)p[1].kind, (int)RUN);
		KUNIT_EXPECT_EQ(test, p[1].own, 1u);
		KUNIT_EXPECT_EQ(test, p[1].run.desc[0].len, 32u);
		KUNIT_EXPECT_EQ(test, p[2].node, node);
		KUNIT_EXPECT_EQ(test, (int)p[2].kind, (int)ROW);
		KUNIT_EXPECT_EQ(test, cell(test, &p[2], SP_CELL_VIEW), 1ull);
		KUNIT_EXPECT_EQ(test, cell(test, &p[2], SP_CELL_LANES),
				sp_progress(s->tx[0].now.round, 1));
		KUNIT_EXPECT_EQ(test, cell(test, &p[2], SP_CELL_LANES + 1),
				sp_progress(s->tx[1].now.round, 2));
	}
	/* Lane 0 owes a null before lane 2's second message. */
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 2ull);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 1ull);
	/* All was told: nothing twice. */
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

static void pass_again_run(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	sp_tx_commit(&s->tx[0], 100, 0);
	s->fail_run = 2;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_TRUE(test, s->core.unposted);
	KUNIT_EXPECT_FALSE(test, sp_core_may_block(&s->core));
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	/* Both messages in one run by then. */
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 32u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(2, 2));
	KUNIT_EXPECT_FALSE(test, s->core.unposted);
}

/* A row covers only what was posted before it, however late it is. */
static void pass_again_row(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	sp_tx_commit(&s->tx[0], 100, 0);
	s->fail_row = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 1u);
	sp_tx_commit(&s->tx[0], 10, 0);
	s->fail_run = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].off, 16u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(2, 2));
}

/* A null has no run: when its row finds no room it must be told later. */
static void pass_again_null(struct kunit *test)
{
	struct shell *s = shell(test, last_own, 3, 3, true);
	struct sp_desc *ring = s->ring[s->peers[1].lanes[0]];
	s64 received;

	ring[0] = (struct sp_desc){ 0, 10, 0, 0 };
	ring[1] = (struct sp_desc){ 1, 10, 1, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(1, 1));
	pass(s);
	received = s->seen[0].received;
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(2, 2));
	s->fail_row = 2;
	pass(s);
	/* The null is the only news: lane 1 is still behind. */
	KUNIT_EXPECT_EQ(test, s->seen[0].received, received);
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 2ull);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_LANES),
			sp_progress(2, 0));
}

/* Receive @n messages from node 1 and deliver them; node 2 is not there. */
static void receive(struct kunit *test, struct shell *s, u32 n)
{
	struct sp_desc *ring = s->ring[s->peers[1].lanes[0]];
	u32 i;

	for (i = 0; i < n; i++)
		ring[i] = (struct sp_desc){ i, 1, i, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(n, n));
	peer_row(s, 1, n - 1, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->core.order.published, (u64)n);
	all_landed(s);
}

static const u32 one_theirs[] = { 1 };

/*
 * Few messages consumed, but one of the greatest length might want the room: told
 * when nothing else happens.
 */
static void pass_consumed_idle(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	int told = -1;
	int i;

	receive(test, s, 2);
	s->nposted = 0;
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 2), 0);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	for (i = 0; i < 4 && told < 0; i++) {
		pass(s);
		if (s->nposted)
			told = i;
	}
	KUNIT_EXPECT_EQ(test, told, 1);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED), 2ull);
}

/* Room enough for any message: told before sleep, and to who gets the room. */
static void pass_consumed_sleep(struct kunit *test)
{
	static const u32 owners[] = { 1, 2 };
	struct shell *s = shell(test, owners, 2, 3, true);
	u32 i;

	s->core.order.max_len = WINDOW / 4;
	s->ring[0][1] = (struct sp_desc){ 1, 0, 0, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(2, 2));
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(2, 0));
	peer_row(s, 1, 3, -1);
	peer_row(s, 2, 3, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	all_landed(s);
	for (i = 0; s->core.doze.state == SP_AWAKE && i < 100; i++) {
		s->nposted = 0;
		sp_pass(&s->core, 2);
		all_landed(s);
	}
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	KUNIT_EXPECT_GT(test, i, s->core.spin);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_GT(test, cell(test, &s->posted[0], SP_CELL_CONSUMED), 2ull);
	/* It is news to the one of them only: its flag is looked at. */
	KUNIT_EXPECT_EQ(test, s->peers[1].recheck, s->ticket[1]);
	KUNIT_EXPECT_NE(test, s->peers[2].recheck, s->ticket[2]);
	/* So nothing but the flag changes in the row of the other. */
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_SLEEP), 1ull);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_CONSUMED), 0ull);
}

/* Told by the pass of the last look: that row has yet to land. */
static void pass_consumed_at_look(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	s->core.order.max_len = WINDOW / 4;
	receive(test, s, 2);
	while (s->core.doze.state == SP_AWAKE) {
		all_landed(s);
		sp_pass(&s->core, 0);
	}
	all_landed(s);
	s->nposted = 0;
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 2), 0);
	KUNIT_EXPECT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	all_landed(s);
	sp_pass(&s->core, 2);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* Asleep: what readers do then is told, and the flag stays up. */
static void pass_consumed_asleep(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	s->core.order.max_len = WINDOW / 4;
	receive(test, s, 2);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	s->nposted = 0;
	sp_pass(&s->core, 2);
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED), 2ull);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_SLEEP), 1ull);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	all_landed(s);
	sp_pass(&s->core, 2);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	KUNIT_EXPECT_EQ(test, s->core.doze.epoch, 1ull);
}

/* Empty turns behind the last message: neither news nor told. */
static void pass_empty_turns(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	settle(s);
	s->nposted = 0;
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(3, 0));
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 0), 0);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 2ll);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* A quarter of the lane's descriptors: told at once. */
static void pass_consumed_pressure(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	receive(test, s, DEPTH / 2);
	s->nposted = 0;
	sp_pass(&s->core, DEPTH / 4 - 1);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	sp_pass(&s->core, DEPTH / 4);
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED),
			(u64)DEPTH / 4);
}

/* Without patience too, consumption is told before sleep, and as news. */
static void pass_consumed_before_sleep(struct kunit *test)
{
	bool polled = true;

	do {
		struct shell *s = shell(test, one_theirs, 1, 2, polled);
		u32 told = ~0u;
		u32 i;

		s->core.spin = 0;
		s->core.order.max_len = WINDOW / 4;
		receive(test, s, 2);
		peer_cell(s, 1, SP_CELL_SLEEP, 1);
		sp_pass(&s->core, 2);
		for (i = 0; i < 10; i++) {
			s->core.rested |= i == 4;
			pass(s);
			if (count(s, ROW, 1))
				told = i;
			all_landed(s);
		}
		KUNIT_EXPECT_EQ(test, s->peers[1].consumed, 1ll);
		/* Who does not poll rests first. */
		KUNIT_EXPECT_EQ(test, told == 4, !polled);
		KUNIT_EXPECT_EQ(test, s->peers[1].woken, polled ? 1ull : 0ull);
		KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
		polled = !polled;
	} while (!polled);
}

/* At rest: one flag to each peer, then sleep, and not a write more. */
static void pass_quiet(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 3, true);
	u32 rows = 0;
	int i;

	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, pass(s), 0);
		rows += s->nposted;
		if (s->nposted) {
			KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
			KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
			KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_SLEEP), 1ull);
		}
	}
	KUNIT_EXPECT_EQ(test, rows, 2u);
	/* The flag must have landed at both. */
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	s->landed[1] = s->ticket[1];
	pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	s->landed[2] = s->ticket[2];
	pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, pass(s), 0);
		KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	}
	/* A commit, and the kick of who made it. */
	sp_tx_commit(&s->tx[0], 1, 0);
	sp_core_kick(&s->core);
	pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
	KUNIT_EXPECT_EQ(test, s->core.doze.epoch, 2ull);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
}

/* News that the last look finds keeps it awake. */
static void pass_last_look(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	int i;

	for (i = 0; i < 6; i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	all_landed(s);
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(1, 1));
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
}

/*
 * News comes, then its writer reads the flag, then the flag lands: a pass that
 * takes it as landed must find the news.
 */
static void pass_landed_before_look(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	int i;

	for (i = 0; i < 6; i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	s->late = true;
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
}

/* Where rows are events there is no flag; what was posted is awaited still. */
static void pass_doze_guarded(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, false);
	int i;

	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	peer_row(s, 1, 0, 0);
	sp_pass(&s->core, 1);
	for (i = 0; i < 60; i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
	all_landed(s);
	/* That completion gives the sender its room back. */
	KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 1) & SP_DID_FREE);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 1ull);
	/* That ends no rest. */
	KUNIT_EXPECT_TRUE(test, sp_core_rests(&s->core));
	settle(s);
	/* Only an event calls for another pass, or the end of its rest. */
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	KUNIT_EXPECT_TRUE(test, sp_core_rests(&s->core));
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
	s->core.rested = true;
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* Room that requests to a node that is gone may still read is not given back. */
static void pass_hold(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	peer_row(s, 1, 0, 0);
	all_landed(s);
	s->core.hold = true;
	settle(s);
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 0ull);
	s->core.hold = false;
	KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 1) & SP_DID_FREE);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 1ull);
}

/* A short run of one lane goes in the row; when that finds no room, it waits with it. */
static void pass_carries(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 3, false);
	struct posted *row;

	s->peers[1].carry = 100 + sizeof(struct sp_desc);
	sp_tx_commit(&s->tx[0], 100, 0);
	sp_tx_commit(&s->tx[1], 10, 0);
	s->fail_row = 1;
	pass(s);
	/* One run for each row; the other lane's is written. */
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, s->posted[0].own, 1u);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.count, 0ull);
	KUNIT_EXPECT_EQ(test, s->pushed[1][1].to.count, 1ull);
	/* Who takes none is written both. */
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2), 2u);
	KUNIT_EXPECT_EQ(test, s->core.posts.carried, 0ull);

	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);
	row = last_post(s, ROW, 1);
	KUNIT_ASSERT_NOT_NULL(test, row);
	KUNIT_EXPECT_EQ(test, row->own, 0u);
	KUNIT_EXPECT_EQ(test, row->run.bytes[0].len, 100u);
	KUNIT_EXPECT_EQ(test, row->run.desc[0].len, (u32)sizeof(struct sp_desc));
	KUNIT_EXPECT_EQ(test, cell(test, row, SP_CELL_LANES), sp_progress(1, 1));
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.count, 1ull);
	KUNIT_EXPECT_EQ(test, s->core.posts.carried, 1ull);
	KUNIT_EXPECT_EQ(test, s->core.posts.segs, 6ull);
	/* Nor is one carried that is longer. */
	sp_tx_commit(&s->tx[0], 101, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, s->core.posts.carried, 1ull);
	/* Send batching off: one message, and a row behind it. */
	s->core.opt = SP_OPT_ALL & ~SP_OPT_SEND;
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, s->core.posts.carried, 1ull);
}

/* Where whatever comes is an event, a pass with news is followed by none without. */
static void pass_rests_at_once(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, false);

	s->core.spin = 0;
	sp_tx_commit(&s->tx[0], 64, 0);
	pass(s);
	KUNIT_EXPECT_GT(test, s->nposted, 0u);
	KUNIT_EXPECT_TRUE(test, sp_core_rests(&s->core));
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
	/* But for what is left to the next. */
	s->core.opt = SP_OPT_ALL & ~SP_OPT_DELIVER;
	sp_tx_commit(&s->tx[0], 64, 0);
	pass(s);
	KUNIT_EXPECT_FALSE(test, sp_core_may_block(&s->core));
	s->core.opt = SP_OPT_ALL;
	/* And for what there is no room for. */
	s->fail_run = 1;
	s->fail_row = 1;
	sp_tx_commit(&s->tx[0], 64, 0);
	pass(s);
	KUNIT_EXPECT_FALSE(test, sp_core_may_block(&s->core));
}

/* More to push than two pushes: the rest waits for a landing. */
static void pass_lazy_leftover(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, false);
	int i;

	s->core.spin = 0;
	s->core.order.max_len = 64;
	s->core.push = 2;
	for (i = 0; i < 8; i++)		/* 8 of 16 units */
		sp_tx_commit(&s->tx[0], 64, 0);
	for (i = 0; i < 20; i++)
		pass(s);
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
	KUNIT_EXPECT_TRUE(test, sp_core_watches(&s->core));
}

/* The own writer has no room; all is consumed everywhere, and a landing is missing. */
static void pass_lazy_blocked(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, false);
	u64 off;
	int i;

	s->core.spin = 0;
	s->core.order.max_len = 64;
	s->core.push = 16;
	for (i = 0; i < 15; i++)		/* depth - 1 */
		sp_tx_commit(&s->tx[0], 64, 0);
	pass(s);
	/* Node 1 has it, delivers, consumes, says so; our completion is late. */
	peer_row(s, 1, 14, 14);
	for (i = 0; i < 20; i++) {
		s->nposted = 0;
		sp_pass(&s->core, s->core.order.published);
	}
	KUNIT_EXPECT_EQ(test, sp_tx_space(&s->tx[0], 64, &off), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, sp_core_watches(&s->core));
}

/* Mixed doorbells: the peer's flag is to be read once the row has landed. */
static void pass_lazy_mixed(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, false);
	int i;

	s->core.spin = 0;
	s->core.order.max_len = 64;
	s->peers[1].polled = true;
	sp_tx_commit(&s->tx[0], 64, 0);
	pass(s);
	peer_cell(s, 1, SP_CELL_SLEEP, 1);	/* its flag, come by SEND: an event */
	for (i = 0; i < 20; i++)
		pass(s);
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
	KUNIT_EXPECT_TRUE(test, sp_core_watches(&s->core));
}

/*
 * At rest: what readers do, and rows that land, can wait; but not where a message of
 * full length may be waiting for the room.
 */
static void pass_lazy(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, false);

	s->core.order.max_len = WINDOW / 4;
	receive(test, s, 2);
	KUNIT_EXPECT_TRUE(test, sp_core_watches(&s->core));
	settle(s);
	KUNIT_EXPECT_TRUE(test, sp_core_rests(&s->core));
	KUNIT_EXPECT_TRUE(test, s->core.lazy);
	KUNIT_EXPECT_FALSE(test, sp_core_watches(&s->core));
	/* Asleep, nothing looks by itself. */
	s->core.rested = true;
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	KUNIT_EXPECT_FALSE(test, s->core.lazy);

	sp_core_kick(&s->core);
	s->core.order.max_len = WINDOW;
	settle(s);
	KUNIT_EXPECT_TRUE(test, sp_core_rests(&s->core));
	KUNIT_EXPECT_FALSE(test, s->core.lazy);
	KUNIT_EXPECT_TRUE(test, sp_core_watches(&s->core));
}

/* Who waits for readers says so once, and only to who has not said that they are done. */
static void pass_wait_asks(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 3, true);
	s64 place;

	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_WANTED), 0ull);
	peer_row(s, 1, 0, -1);
	peer_row(s, 2, 0, 0);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	place = sp_tx_place(&s->tx[0], 1);
	KUNIT_EXPECT_EQ(test, place, 0ll);
	s->core.wants = place;
	KUNIT_EXPECT_EQ(test, pass(s), (int)SP_DID_NEWS);
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, s->posted[0].node, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_WANTED), 1ull);
	KUNIT_EXPECT_EQ(test, s->core.posts.rows[SP_WHY_WAIT], 1ull);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1) + count(s, ROW, 2), 0u);
	/* It rides along with what is told anyway, and goes as it came. */
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 2), SP_CELL_WANTED), 1ull);
	s->core.wants = -1;
	settle(s);
	KUNIT_EXPECT_EQ(test, s->peers[1].wants, 0ll);
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_WANTED), 0ull);
}

/* Nobody is asked by a row that tells of the flag alone: that changes nothing else. */
static void pass_wait_flag(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	struct posted *row = NULL;
	int i;

	s->core.order.max_len = WINDOW / 4;
	sp_tx_commit(&s->tx[0], 10, 0);
	s->core.wants = 0;
	pass(s);
	all_landed(s);
	peer_row(s, 1, 0, 0);
	sp_pass(&s->core, 1);
	s->core.wants = -1;
	for (i = 0; i < 300 && s->core.doze.state == SP_AWAKE; i++) {
		pass(s);
		row = last_post(s, ROW, 1);
		all_landed(s);
	}
	KUNIT_ASSERT_NOT_NULL(test, row);
	KUNIT_EXPECT_EQ(test, cell(test, row, SP_CELL_SLEEP), 1ull);
	KUNIT_EXPECT_EQ(test, cell(test, row, SP_CELL_WANTED), 1ull);
}

/* Who is asked tells as soon as its readers are there, once, whatever it does. */
static void pass_wait_tells(struct kunit *test)
{
	bool polled = true;

	do {
		struct shell *s = shell(test, one_theirs, 1, 2, polled);

		s->core.order.max_len = WINDOW / 4;
		receive(test, s, 3);
		peer_cell(s, 1, SP_CELL_WANTED, 2);
		s->nposted = 0;
		KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 1), 0);
		KUNIT_EXPECT_EQ(test, s->nposted, 0u);
		KUNIT_EXPECT_EQ(test, s->peers[1].wanted, 1ll);
		sp_pass(&s->core, 2);
		KUNIT_ASSERT_EQ(test, s->nposted, 1u);
		KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED),
				2ull);
		sp_pass(&s->core, 2);
		KUNIT_EXPECT_EQ(test, s->nposted, 1u);
		/* Asked for what was read and not told yet: likewise. */
		sp_pass(&s->core, 3);
		KUNIT_EXPECT_EQ(test, s->nposted, 1u);
		peer_cell(s, 1, SP_CELL_WANTED, 3);
		sp_pass(&s->core, 3);
		KUNIT_EXPECT_EQ(test, s->nposted, 2u);
		/* No room for that row: once there is. */
		peer_cell(s, 1, SP_CELL_LANES, sp_progress(4, 4));
		s->ring[0][3] = (struct sp_desc){ 3, 1, 3, 0 };
		peer_row(s, 1, 3, -1);
		peer_cell(s, 1, SP_CELL_WANTED, 4);
		KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
		s->fail_row = 1;
		s->nposted = 0;
		sp_pass(&s->core, 4);
		KUNIT_EXPECT_EQ(test, s->nposted, 0u);
		KUNIT_EXPECT_TRUE(test, s->core.unposted);
		sp_pass(&s->core, 4);
		KUNIT_EXPECT_EQ(test, s->nposted, 1u);
		polled = !polled;
	} while (!polled);
}

/* At rest, readers that are waited for are looked at, here and for a peer. */
static void pass_wait_lazy(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, false);

	s->core.order.max_len = WINDOW / 4;
	receive(test, s, 2);
	settle(s);
	KUNIT_EXPECT_TRUE(test, s->core.lazy);
	peer_cell(s, 1, SP_CELL_WANTED, 2);
	pass(s);
	KUNIT_EXPECT_FALSE(test, s->core.lazy);
	KUNIT_EXPECT_TRUE(test, sp_core_rests(&s->core));
	sp_pass(&s->core, 2);
	all_landed(s);
	settle(s);
	KUNIT_EXPECT_TRUE(test, s->core.lazy);

	s = shell(test, one_own, 1, 2, false);
	s->core.order.max_len = WINDOW / 4;
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	peer_row(s, 1, 0, 0);
	settle(s);
	KUNIT_EXPECT_TRUE(test, s->core.lazy);
	s->core.wants = 0;
	pass(s);
	KUNIT_EXPECT_FALSE(test, s->core.lazy);
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 1ull);
	settle(s);
	KUNIT_EXPECT_TRUE(test, s->core.lazy);
}

/* Nobody to tell, nothing to wait for: it must not block half way. */
static void pass_doze_alone(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 1, true);
	int i;

	for (i = 0; i < 10 && !sp_core_may_block(&s->core); i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

static void pass_wake(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	/* It found no room behind the row: then not before that has landed. */
	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	sp_tx_commit(&s->tx[0], 10, 0);
	s->fail_wake = 1;
	pass(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	all_landed(s);
	s->fail_wake = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 1u);
	/* Once for one sleep. */
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	/* Nobody is woken for nothing. */
	peer_cell(s, 1, SP_CELL_SLEEP, 5);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
}

/* Two pushes are on the way to a peer, no more. */
static void pass_flight(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	u64 push = 2;
	u64 first;
	u32 i;

	KUNIT_EXPECT_EQ(test, s->core.push, WINDOW / SP_UNIT / 2);
	s->core.push = push;
	s->core.order.max_len = SP_UNIT;
	for (i = 0; i < DEPTH - 1; i++)
		sp_tx_commit(&s->tx[0], SP_UNIT, 0);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.tail, push);
	first = s->ticket[1];
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.tail, 2 * push);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	s->landed[1] = first;
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.tail, 3 * push);
	/* Nothing is left behind, and nothing sleeps over it. */
	settle(s);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.count, DEPTH - 1ull);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* A flag that is here already: the wake goes out behind the row. */
static void pass_wake_behind_row(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 3u);
	KUNIT_EXPECT_EQ(test, (int)s->posted[1].kind, (int)ROW);
	KUNIT_EXPECT_EQ(test, (int)s->posted[2].kind, (int)WAKE);
	/* A flag raised before it landed is another sleep. */
	peer_cell(s, 1, SP_CELL_SLEEP, 5);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 1u);
}

static void pass_wake_torn(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	struct sp_cell *flag = (struct sp_cell *)&s->peers[1].row[SP_CELL_SLEEP];

	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	flag->value = 5;
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	KUNIT_EXPECT_EQ(test, s->peers[1].check, 0ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* A pusher that never pauses still reads the flag. */
static void pass_wake_busy(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	u32 wakes = 0;
	int i;

	peer_cell(s, 1, SP_CELL_SLEEP, 1);
	for (i = 0; i < 8; i++) {
		u64 last = s->ticket[1];

		sp_tx_commit(&s->tx[0], 10, 0);
		pass(s);
		wakes += count(s, WAKE, 1);
		/* Always one row behind. */
		s->landed[1] = last;
	}
	KUNIT_EXPECT_EQ(test, wakes, 1u);
}

static void pass_gone(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 3, true);
	int i;

	s->peers[2].gone = true;
	sp_tx_commit(&s->tx[0], 10, 0);
	/* What it writes now is not read. */
	peer_cell(s, 2, SP_CELL_RECEIVED, ~0ull);
	peer_cell(s, 2, SP_CELL_CONSUMED, ~0ull);
	for (i = 0; i < 60; i++) {
		KUNIT_EXPECT_GE(test, pass(s), 0);
		KUNIT_EXPECT_EQ(test, count(s, RUN, 2) + count(s, ROW, 2), 0u);
		all_landed(s);
	}
	/* It holds up the order, and not sleep. */
	KUNIT_EXPECT_EQ(test, s->core.order.delivered, -1ll);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

static void pass_faulty(struct kunit *test)
{
	static const u32 owners[] = { 0, 1, 2 };
	struct shell *s = shell(test, owners, 3, 3, true);

	peer_cell(s, 1, SP_CELL_LANES, sp_progress(0x80000000, 0));
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
	s = shell(test, owners, 3, 3, true);
	peer_row(s, 2, 0, 5);
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 2u);
	/* 2^63 in a cell. */
	s = shell(test, owners, 3, 3, true);
	peer_cell(s, 2, SP_CELL_RECEIVED, 1ull << 63);
	peer_cell(s, 2, SP_CELL_CONSUMED, 1ull << 63);
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	/* Torn or foreign: no news, no fault. */
	s = shell(test, owners, 3, 3, true);
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(1, 0));
	((struct sp_cell *)s->peers[1].row)[SP_CELL_LANES].value = ~0ull;
	KUNIT_EXPECT_EQ(test, pass(s), 0);
}

/* Nothing can be posted to a peer any more: the pass ends, and names it. */
static void pass_broken(struct kunit *test)
{
	static const u32 owners[] = { 0, 1, 2 };
	struct shell *s = shell(test, owners, 3, 3, true);

	sp_tx_commit(&s->tx[0], 100, 0);
	s->fail_error = -EIO;
	s->fail_run = 1;
	KUNIT_EXPECT_EQ(test, pass(s), -EIO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
	s->fail_row = 1;
	KUNIT_EXPECT_EQ(test, pass(s), -EIO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
	/* The other is sent what there is once the first is gone. */
	s->core.peers[1].gone = true;
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].node, 2u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(1, 1));
}

/* Each post that a pass makes ends it when it fails for good. */
static void pass_broken_each(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	static const u32 owners[] = { 0, 1 };
	u32 i;

	/* The wake behind a row, and the one once that has landed. */
	s->fail_error = -EIO;
	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	sp_tx_commit(&s->tx[0], 10, 0);
	s->fail_wake = 1;
	KUNIT_EXPECT_EQ(test, pass(s), -EIO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
	all_landed(s);
	s->core.faulty = 0;
	s->fail_wake = 1;
	KUNIT_EXPECT_EQ(test, pass(s), -EIO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 1u);

	/* The row with which the engine begins to doze. */
	s = shell(test, one_own, 1, 2, true);
	s->fail_error = -EIO;
	for (i = 0; s->core.idle < s->core.spin; i++)
		KUNIT_EXPECT_EQ(test, pass(s), 0);
	s->fail_row = 1;
	KUNIT_EXPECT_EQ(test, pass(s), -EIO);

	/* An acknowledgment of one message, and of one that was consumed. */
	s = shell(test, owners, 2, 2, true);
	s->core.opt = 0;
	s->fail_error = -EIO;
	commit(s, 1, 10, 1);
	s->fail_row = 1;
	KUNIT_EXPECT_EQ(test, pass(s), -EIO);
	sp_tx_nulls(&s->tx[0], 1);
	peer_row(s, 1, 1, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	settle(s);
	s->fail_row = 1;
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 1), -EIO);

	/* The row that is owed before the next message. */
	s = shell(test, one_own, 1, 2, true);
	s->core.opt = SP_OPT_ALL & ~SP_OPT_SEND;
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 10, 0);
	s->fail_row = 2;
	pass(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_TRUE(test, s->core.unposted);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 3u);
}

/* Of a row only what holds together counts. */
static void pass_torn_row(struct kunit *test)
{
	static const u32 owners[] = { 0, 1 };
	struct shell *s = shell(test, owners, 2, 2, true);
	struct sp_cell *row = s->rows[1][1];

	sp_tx_commit(&s->tx[0], 10, 0);
	promise(s, 1, 1);
	peer_row(s, 1, 1, 0);
	row[SP_CELL_CONSUMED].check ^= 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, -1ll);
	row[SP_CELL_CONSUMED].check ^= 1;
	row[SP_CELL_RECEIVED].check ^= 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, -1ll);
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.round, 1ull);
	row[SP_CELL_RECEIVED].check ^= 1;
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->seen[1].received, 1ll);
}

/* A push takes a part of a ring, less of a large one. */
static void pass_push_part(struct kunit *test)
{
	static const struct {
		u32 units, push;
	} table[] = {
		{ 1, 0 }, { 2, 1 }, { 16, 8 }, { 2048, 1024 }, { 4096, 1024 },
		{ 8192, 1024 }, { 16384, 2048 }, { 1 << 24, 1 << 21 },
	};
	struct shell *s = shell(test, one_own, 1, 2, true);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		s->core.order.units = table[i].units;
		sp_core_init(&s->core);
		KUNIT_EXPECT_EQ_MSG(test, s->core.push, table[i].push,
				    "%u units", table[i].units);
	}
}

/* A node that joins later may have a number of a lane that no lane has. */
static void pass_begin_with_hole(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 2, true);

	sp_tx_commit(&s->tx[1], 10, 0);
	s->own[0].tx = NULL;
	s->own[0].pushed = 77;
	s->core.view = 3;
	sp_core_init(&s->core);
	KUNIT_EXPECT_EQ(test, s->own[0].pushed, 77ull);
	KUNIT_EXPECT_EQ(test, s->own[1].pushed, 1ull);
	KUNIT_EXPECT_TRUE(test, s->core.peers[1].row == s->rows[1][1]);
	s->core.view = 2;
	sp_core_init(&s->core);
	KUNIT_EXPECT_TRUE(test, s->core.peers[1].row == s->rows[1][0]);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* A group closes with the last message of the last lane. */
static void pass_close(struct kunit *test)
{
	static const u32 owners[] = { 0, 1 };
	struct shell *s = shell(test, owners, 2, 2, true);

	sp_tx_commit(theirs(s, 1), 0, SP_DESC_FIN);
	theirs_say(s, 1);
	peer_row(s, 1, 1, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->core.order.fins, 1u);
	sp_tx_commit(&s->tx[0], 0, SP_DESC_FIN);
	promise(s, 1, 2);
	peer_row(s, 1, 3, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_CLOSE));
	KUNIT_EXPECT_FALSE(test, passed(s, SP_DID_CLOSE));
	KUNIT_EXPECT_EQ(test, s->core.order.messages, 0ull);
}

/* From the commit to the room that comes back. */
static void pass_whole_walk(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	int did;

	sp_tx_commit(&s->tx[0], 100, 0);
	sp_tx_commit(&s->tx[0], 0, SP_DESC_FIN);
	did = pass(s);
	KUNIT_EXPECT_FALSE(test, did & SP_DID_DELIVER);
	peer_row(s, 1, 1, -1);
	did = pass(s);
	KUNIT_EXPECT_TRUE(test, did & SP_DID_DELIVER);
	KUNIT_EXPECT_TRUE(test, did & SP_DID_CLOSE);
	KUNIT_EXPECT_EQ(test, s->core.order.published, 2ull);
	did = sp_pass(&s->core, 2);
	KUNIT_EXPECT_FALSE(test, did & (SP_DID_FREE | SP_DID_CLOSE));
	/* Consumed everywhere, and still a request may read it. */
	peer_row(s, 1, 1, 1);
	did = sp_pass(&s->core, 2);
	KUNIT_EXPECT_FALSE(test, did & SP_DID_FREE);
	all_landed(s);
	did = sp_pass(&s->core, 2);
	KUNIT_EXPECT_TRUE(test, did & SP_DID_FREE);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 2ull);
	KUNIT_EXPECT_EQ(test, s->tx[0].head, s->tx[0].now.tail);
	KUNIT_EXPECT_TRUE(test, sp_order_quiet(&s->core.order));
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* One message a push, each with its row, also where a row finds no room. */
static void pass_opt_send(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	u32 i;

	s->core.opt = SP_OPT_ALL & ~SP_OPT_SEND;
	for (i = 0; i < 5; i++)
		sp_tx_commit(&s->tx[0], 100, 0);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
		KUNIT_ASSERT_EQ(test, s->nposted, 2u);
		KUNIT_EXPECT_EQ(test, (int)s->posted[0].kind, (int)RUN);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].off, 16 * i);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 16u);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.bytes[0].off, 128 * i);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.bytes[0].len, 100u);
		KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
				sp_progress(i + 1, i + 1));
	}
	s->fail_row = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_TRUE(test, s->core.unposted);
	/* The row that is still owed, then the next message. */
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 3u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_LANES),
			sp_progress(3, 3));
	KUNIT_EXPECT_EQ(test, (int)s->posted[1].kind, (int)RUN);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[2], SP_CELL_LANES),
			sp_progress(4, 4));
	/* Turned on again, the rest goes together. */
	sp_tx_commit(&s->tx[0], 0, 0);
	all_landed(s);
	s->core.opt = SP_OPT_ALL;
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 32u);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].size[0], 4ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].size[1], 1ull);
}

/* Nulls around a message travel with it; each lane has its own row. */
static void pass_opt_send_nulls(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 2, true);

	s->core.opt = SP_OPT_ALL & ~SP_OPT_SEND;
	sp_tx_nulls(&s->tx[0], 3);
	sp_tx_commit(&s->tx[0], 1, 0);
	sp_tx_commit(&s->tx[0], 1, 0);
	sp_tx_nulls(&s->tx[0], 8);
	sp_tx_nulls(&s->tx[1], 7);
	sp_tx_commit(&s->tx[1], 1, 0);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 4u);
	KUNIT_EXPECT_EQ(test, s->posted[0].own, 0u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(4, 1));
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES + 1),
			sp_progress(0, 0));
	KUNIT_EXPECT_EQ(test, s->posted[2].own, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[3], SP_CELL_LANES + 1),
			sp_progress(8, 1));
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(8, 2));
}

/* @n empty messages from node 1, in turns 0, 1, 2 ... */
static void arrive(struct shell *s, u32 n)
{
	struct sp_desc *ring = s->ring[s->peers[1].lanes[0]];
	u32 i;

	for (i = 0; i < n; i++)
		ring[i] = (struct sp_desc){ i, 0, 0, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(n, n));
}

/* An ack for each message, though received_num waits for another lane. */
static void pass_opt_receive(struct kunit *test)
{
	static const u32 owners[] = { 1, 2 };
	struct shell *s = shell(test, owners, 2, 3, true);
	u32 i;

	s->core.opt = SP_OPT_ALL & ~SP_OPT_RECEIVE;
	arrive(s, 4);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
		KUNIT_ASSERT_EQ(test, s->nposted, 2u);
		KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
		KUNIT_EXPECT_EQ(test, count(s, ROW, 2), 1u);
		KUNIT_EXPECT_EQ(test, s->lanes[0].now.round, (u64)i + 1);
	}
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 0ll);
	/* Lane 1 gives up its turns: all of that is news at once. */
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(4, 0));
	s->fail_row = 1;
	pass(s);
	/* Node 1's did not go out the first time and does at the end. */
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 2), 2u);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 7ll);
	KUNIT_EXPECT_EQ(test, s->peers[1].received, 7ll);
	KUNIT_EXPECT_EQ(test, s->peers[2].received, 7ll);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_RECEIVE].size[0], 4ull);

	s = shell(test, owners, 2, 3, true);
	arrive(s, 4);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_RECEIVE].size[3], 1ull);
}

/* What fails to be posted is laid at the door of the right peer. */
static void pass_opt_receive_faulty(struct kunit *test)
{
	static const u32 owners[] = { 1, 2 };
	struct shell *s = shell(test, owners, 2, 3, true);

	s->core.opt = 0;
	arrive(s, 4);
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(0x80000000, 0));
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 2u);
}

/* One message delivered, one consumed, one row for that, whatever is left. */
static void pass_opt_deliver(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	u32 i;

	s->core.opt = SP_OPT_ALL & ~SP_OPT_DELIVER;
	arrive(s, 3);
	peer_row(s, 1, 2, -1);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
		KUNIT_EXPECT_EQ(test, s->core.order.published, (u64)i + 1);
	}
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	for (i = 0; i < 3; i++) {
		s->nposted = 0;
		KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 3), SP_DID_NEWS);
		KUNIT_ASSERT_EQ(test, s->nposted, 1u);
		KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED),
				(u64)i + 1);
	}
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 3), 0);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_DELIVER].size[0], 3ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_DELIVER].messages, 3ull);
}

/* No room for the row of a message consumed: it goes out, and not lazily. */
static void pass_opt_deliver_again(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	receive(test, s, 1);
	s->core.opt = SP_OPT_ALL & ~SP_OPT_DELIVER;
	s->fail_row = 2;
	s->nposted = 0;
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	sp_pass(&s->core, 1);
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED), 1ull);
}

/* No nulls while they are off; those that are due come with the next pass. */
static void pass_opt_null(struct kunit *test)
{
	struct shell *s = shell(test, last_own, 3, 3, true);

	s->core.opt = SP_OPT_ALL & ~SP_OPT_NULL;
	arrive(s, 3);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 0ull);
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 0ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	s->core.opt = SP_OPT_ALL;
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 3ull);
}

/*
 * The paper's baseline and Spindle: eight messages out and eight in, to and
 * from one peer, all consumed. Counts runs and rows.
 */
static void walk(struct kunit *test, u32 opt, u32 *runs, u32 *rows)
{
	static const u32 owners[] = { 0, 1 };
	struct shell *s = shell(test, owners, 2, 2, true);
	int i;

	s->core.opt = opt;
	for (i = 0; i < 8; i++)
		sp_tx_commit(&s->tx[0], 0, 0);
	arrive(s, 8);
	*runs = 0;
	*rows = 0;
	for (i = 0; i < 40; i++) {
		s->nposted = 0;
		KUNIT_EXPECT_GE(test, sp_pass(&s->core, s->core.order.published), 0);
		*runs += count(s, RUN, 1);
		/* Those of dozing are not what is counted here. */
		if (s->core.doze.state == SP_AWAKE)
			*rows += count(s, ROW, 1);
		all_landed(s);
		peer_row(s, 1, 15, -1);
	}
	KUNIT_EXPECT_EQ(test, s->core.order.published, 16ull);
	KUNIT_EXPECT_EQ(test, s->peers[1].consumed, 15ll);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 0ull);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

static void pass_baseline(struct kunit *test)
{
	u32 runs, rows;

	/* One push; then what was consumed. */
	walk(test, SP_OPT_ALL, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 1u);
	KUNIT_EXPECT_EQ(test, rows, 2u);
	/* A push for each message, an ack for each, a row for each consumed. */
	walk(test, 0, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 8u);
	KUNIT_EXPECT_EQ(test, rows, 8u + 8u + 16u);
	walk(test, SP_OPT_ALL & ~SP_OPT_SEND, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 8u);
	walk(test, SP_OPT_ALL & ~SP_OPT_UNLOCK, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 1u);
	KUNIT_EXPECT_EQ(test, rows, 2u);
}

static void pass_batches(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	struct sp_batches b = { 0 };

	sp_batch_add(&b, 0);
	sp_batch_add(&b, 1);
	sp_batch_add(&b, 127);
	sp_batch_add(&b, 128);
	sp_batch_add(&b, 1000);
	KUNIT_EXPECT_EQ(test, b.messages, 1256ull);
	KUNIT_EXPECT_EQ(test, b.size[0], 1ull);
	KUNIT_EXPECT_EQ(test, b.size[126], 1ull);
	KUNIT_EXPECT_EQ(test, b.size[127], 2ull);

	receive(test, s, 7);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_RECEIVE].size[6], 1ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_DELIVER].size[6], 1ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].messages, 0ull);

	/* To two peers, and still one batch; the last message is none. */
	s = shell(test, one_own, 1, 3, true);
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 0, SP_DESC_FIN);
	s->fail_run = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2), 1u);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].size[1], 1ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].messages, 2ull);
}

static struct kunit_case sp_pass_cases[] = {
	KUNIT_CASE(pass_order_of_posts),
	KUNIT_CASE(pass_again_run),
	KUNIT_CASE(pass_again_row),
	KUNIT_CASE(pass_again_null),
	KUNIT_CASE(pass_consumed_idle),
	KUNIT_CASE(pass_consumed_sleep),
	KUNIT_CASE(pass_consumed_at_look),
	KUNIT_CASE(pass_consumed_asleep),
	KUNIT_CASE(pass_empty_turns),
	KUNIT_CASE(pass_consumed_pressure),
	KUNIT_CASE(pass_consumed_before_sleep),
	KUNIT_CASE(pass_quiet),
	KUNIT_CASE(pass_last_look),
	KUNIT_CASE(pass_landed_before_look),
	KUNIT_CASE(pass_doze_guarded),
	KUNIT_CASE(pass_hold),
	KUNIT_CASE(pass_carries),
	KUNIT_CASE(pass_rests_at_once),
	KUNIT_CASE(pass_lazy_leftover),
	KUNIT_CASE(pass_lazy_blocked),
	KUNIT_CASE(pass_lazy_mixed),
	KUNIT_CASE(pass_lazy),
	KUNIT_CASE(pass_wait_asks),
	KUNIT_CASE(pass_wait_flag),
	KUNIT_CASE(pass_wait_tells),
	KUNIT_CASE(pass_wait_lazy),
	KUNIT_CASE(pass_doze_alone),
	KUNIT_CASE(pass_flight),
	KUNIT_CASE(pass_wake),
	KUNIT_CASE(pass_wake_behind_row),
	KUNIT_CASE(pass_wake_torn),
	KUNIT_CASE(pass_wake_busy),
	KUNIT_CASE(pass_gone),
	KUNIT_CASE(pass_faulty),
	KUNIT_CASE(pass_broken),
	KUNIT_CASE(pass_broken_each),
	KUNIT_CASE(pass_torn_row),
	KUNIT_CASE(pass_push_part),
	KUNIT_CASE(pass_begin_with_hole),
	KUNIT_CASE(pass_close),
	KUNIT_CASE(pass_whole_walk),
	KUNIT_CASE(pass_opt_send),
	KUNIT_CASE(pass_opt_send_nulls),
	KUNIT_CASE(pass_opt_receive),
	KUNIT_CASE(pass_opt_receive_faulty),
	KUNIT_CASE(pass_opt_deliver),
	KUNIT_CASE(pass_opt_deliver_again),
	KUNIT_CASE(pass_opt_null),
	KUNIT_CASE(pass_baseline),
	KUNIT_CASE(pass_batches),
	{}
};

struct kunit_suite sp_pass_suite = {
	.name = "spindle_pass",
	.test_cases = sp_pass_cases,
};
