// SPDX-License-Identifier: GPL-2.0
/* From one view to the next, on one node. */
#include "shell.h"

static const u32 one_each[] = { 0, 1, 2 };
static const u32 two_nodes[] = { 0, 1 };
static const u32 two_own[] = { 0, 1, 0 };

/* Wedge; the proposal is to keep everybody and all that this node has. */
static struct sp_proposal *end(struct kunit *test, struct shell *s)
{
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	return p;
}

static void change(struct kunit *test, struct shell *s, struct sp_proposal *p)
{
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	s->nposted = 0;
}

static void joins(struct sp_proposal *p, u8 node, u64 cookie, u32 flags)
{
	struct sp_join_request *who = &p->joins[p->njoins++];

	who->addr.b[15] = node;
	who->cookie = cookie;
	who->flags = flags;
}

/* In one step: what has come is counted, and after that nothing moves. */
static void change_wedge(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p;
	u64 again[SLOTS];
	s64 received;

	/* One message was delivered, and is still being read. */
	commit(s, 1, 10, 1);
	promise(s, 2, 1);
	pass(s);
	peer_row(s, 1, 2, -1);
	peer_row(s, 2, 2, -1);
	KUNIT_ASSERT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->core.order.delivered, 2ll);

	sp_tx_commit(&s->tx[0], 100, 0);
	commit(s, 1, 10, 2);
	s->nposted = 0;
	p = end(test, s);
	KUNIT_EXPECT_EQ(test, p->trim[0], 2ull);
	KUNIT_EXPECT_EQ(test, p->trim[1], 3ull);
	KUNIT_EXPECT_EQ(test, p->trim[2], 1ull);
	KUNIT_EXPECT_TRUE(test, s->core.wedged);
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));

	received = s->seen[0].received;
	sp_tx_commit(&s->tx[0], 100, 0);
	commit(s, 1, 10, 1);
	promise(s, 2, 9);
	peer_row(s, 1, 8, 1);
	peer_row(s, 2, 8, 1);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, again), 0);
	KUNIT_EXPECT_EQ(test, memcmp(again, p->trim, 3 * sizeof(again[0])), 0);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.round, 3ull);
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 3ull);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, received);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, 2ll);
	KUNIT_EXPECT_EQ(test, s->core.order.delivered, 2ll);
	/* What readers do is noted, and told to nobody. */
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 1), SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, s->core.order.released, 1ull);
	KUNIT_EXPECT_EQ(test, s->seen[0].consumed, 2ll);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* Of a suspected peer nothing counts; of one that is cut what had landed. */
static void change_wedge_peers(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p;
	u64 counts[SLOTS];

	commit(s, 1, 10, 2);
	commit(s, 2, 10, 2);
	s->core.peers[1].gone = true;
	sp_core_cut(&s->core, 2);
	p = end(test, s);
	KUNIT_EXPECT_EQ(test, p->trim[1], 0ull);
	KUNIT_EXPECT_EQ(test, p->trim[2], 2ull);

	/* One writes nonsense: that ends it, too, and counts what was good. */
	s = shell_new(test, one_each, 3, 3, 0);
	sp_tx_commit(&s->tx[0], 10, 0);
	commit(s, 1, 10, 1);
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(0x80000000, 0));
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, counts), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 2u);
	KUNIT_EXPECT_TRUE(test, s->core.wedged);
	KUNIT_EXPECT_EQ(test, counts[0], 1ull);
	KUNIT_EXPECT_EQ(test, counts[1], 1ull);
	KUNIT_EXPECT_EQ(test, counts[2], 0ull);
}

/* Numbers run on, whoever is left to count. */
static void change_numbers(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	struct sp_proposal *p;
	u32 i;

	for (i = 0; i < 3; i++)
		sp_tx_commit(&s->tx[0], 10, 0);
	commit(s, 1, 10, 2);
	commit(s, 2, 10, 1);
	p = end(test, s);
	p->reason[2] = SP_LOST;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, o->start, 7ll);
	KUNIT_EXPECT_EQ(test, o->delivered, 6ll);
	KUNIT_EXPECT_EQ(test, o->nlanes, 2u);
	KUNIT_EXPECT_EQ(test, o->nnodes, 2u);
	KUNIT_EXPECT_EQ(test, s->core.view, 2ull);
	KUNIT_EXPECT_EQ(test, s->lanes[0].base, 3ull);
	KUNIT_EXPECT_EQ(test, s->lanes[1].base, 2ull);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 6ll);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, 6ll);
	KUNIT_EXPECT_FALSE(test, s->core.wedged);
	/* The event stands behind the last message. */
	KUNIT_EXPECT_EQ(test, o->published, 7ull);
	KUNIT_EXPECT_EQ(test, s->log[6].flags, SP_LOG_EVENT);
	KUNIT_EXPECT_EQ(test, s->log[6].seq, 6ll);
	KUNIT_EXPECT_EQ(test, s->log[6].lane & SP_LOG_SLOT, (u32)VIEW);
	KUNIT_EXPECT_EQ(test, s->log[6].pos, 2u);
	KUNIT_EXPECT_EQ(test, s->log[6].len, 0u);

	/* Turns of view 2: 7 and 9 are lane 0's, 8 and 10 lane 1's. */
	sp_tx_commit(&s->tx[0], 10, 0);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&s->tx[0], 3), 7ll);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&s->tx[0], 4), 9ll);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&s->tx[0], 2), 6ll);
	commit(s, 1, 10, 2);
	peer_row(s, 1, 8, 6);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	/* A null of ours comes before lane 1's second. */
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 5ull);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 10ll);
	KUNIT_EXPECT_EQ(test, o->delivered, 8ll);
	KUNIT_EXPECT_EQ(test, o->published, 9ull);
	KUNIT_EXPECT_EQ(test, s->log[7].seq, 7ll);
	KUNIT_EXPECT_EQ(test, s->log[7].lane & SP_LOG_SLOT, 0u);
	KUNIT_EXPECT_EQ(test, s->log[8].seq, 8ll);
	KUNIT_EXPECT_EQ(test, s->log[8].lane & SP_LOG_SLOT, 1u);
	KUNIT_ASSERT_TRUE(test, last_post(s, ROW, 1));
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_VIEW), 2ull);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_RECEIVED),
			11ull);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* What lies beyond the trim has its turn in the next view, without a resend. */
static void change_beyond(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_order *o = &s->core.order;
	struct sp_proposal *p;

	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 11, 0);
	commit(s, 1, 20, 1);
	commit(s, 1, 21, 1);
	pass(s);
	all_landed(s);
	p = end(test, s);
	/* A third node had less of it, and does not come along. */
	p->trim[0] = 1;
	p->trim[1] = 1;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, o->published, 3ull);
	KUNIT_EXPECT_EQ(test, o->start, 2ll);
	memset(s->ring, 0xff, sizeof(s->ring));
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	/* The row tells again how far it had come. */
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_LANES),
			sp_progress(2, 2));
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_RECEIVED), 4ull);
	theirs_say(s, 1);
	peer_row(s, 1, 3, 1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_ASSERT_EQ(test, o->published, 5ull);
	KUNIT_EXPECT_EQ(test, s->log[3].seq, 2ll);
	KUNIT_EXPECT_EQ(test, s->log[3].len, 11u);
	KUNIT_EXPECT_EQ(test, s->log[4].seq, 3ll);
	KUNIT_EXPECT_EQ(test, s->log[4].len, 21u);
}

/* Nulls: as in the first view, each lane counted from its base. */
static void change_nulls(struct kunit *test)
{
	static const struct {
		u64 rounds[3];
		u64 want[3];
	} table[] = {
		{ { 0, 0, 0 }, { 0, 0, 0 } },
		{ { 1, 0, 0 }, { 0, 1, 1 } },
		{ { 0, 1, 0 }, { 1, 0, 1 } },
		{ { 3, 0, 0 }, { 0, 3, 3 } },
		{ { 2, 5, 1 }, { 5, 2, 5 } },
	};
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	u32 i, k;

	o->start = 100;
	o->nodes[0].received = 99;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		u64 least = ~0ull;
		u32 first = 0;

		for (k = 0; k < 3; k++) {
			s->lanes[k].base = 1000 - 300 * k;
			s->lanes[k].now.round = s->lanes[k].base +
				table[i].rounds[k];
			if (table[i].rounds[k] < least) {
				least = table[i].rounds[k];
				first = k;
			}
		}
		for (k = 0; k < 3; k++)
			KUNIT_EXPECT_EQ_MSG(test, sp_order_null_target(o, k),
					    s->lanes[k].base + table[i].want[k],
					    "row %u lane %u", i, k);
		sp_order_advance(o);
		KUNIT_EXPECT_EQ_MSG(test, o->nodes[0].received,
				    (s64)(100 + 3 * least + first - 1), "row %u", i);
	}
}

/* Room comes back in the view after that in which it was taken. */
static void change_free(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_tx *tx = &s->tx[0];
	struct sp_proposal *p;
	u32 i;

	for (i = 0; i < 3; i++)
		sp_tx_commit(tx, 10, 0);
	promise(s, 1, 3);
	pass(s);
	all_landed(s);
	p = end(test, s);
	p->trim[0] = 2;
	p->trim[1] = 2;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.start, 4ll);
	/* What was in view 1 goes with the whole of view 1. */
	KUNIT_EXPECT_FALSE(test, sp_tx_free(tx, 2, ~0ull));
	KUNIT_EXPECT_EQ(test, sp_tx_unfreed(tx), 30ull);
	/* Here all is read; the peer has yet to say so. */
	sp_pass(&s->core, 3);
	all_landed(s);
	sp_pass(&s->core, 3);
	KUNIT_EXPECT_EQ(test, tx->freed, 0ull);
	peer_row(s, 1, 3, 3);
	KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 3) & SP_DID_FREE);
	KUNIT_EXPECT_EQ(test, tx->freed, 2ull);
	/* The third has turn 4. */
	KUNIT_EXPECT_FALSE(test, sp_tx_free(tx, 3, ~0ull));
	KUNIT_EXPECT_TRUE(test, sp_tx_free(tx, 4, ~0ull));
	KUNIT_EXPECT_EQ(test, tx->freed, 3ull);
	KUNIT_EXPECT_EQ(test, tx->head, tx->now.tail);
}

/* What was consumed never goes back, and an event is read like a message. */
static void change_consumed(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_order *o = &s->core.order;
	struct sp_proposal *p;
	u64 freed[3];
	u32 i;

	sp_tx_commit(&s->tx[0], 10, 0);
	promise(s, 1, 1);
	promise(s, 2, 1);
	peer_row(s, 1, 2, -1);
	peer_row(s, 2, 2, -1);
	pass(s);
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), 2ll);
	KUNIT_EXPECT_EQ(test, s->seen[0].consumed, 2ll);
	/* Lane 2's second turn, 5, is all that the view has more. */
	commit(s, 2, 10, 1);
	p = end(test, s);
	p->trim[0] = 1;
	KUNIT_ASSERT_EQ(test, p->trim[2], 2ull);
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), 4ll);
	KUNIT_EXPECT_EQ(test, s->seen[0].consumed, 2ll);
	sp_pass(&s->core, 2);
	KUNIT_EXPECT_EQ(test, s->seen[0].consumed, 5ll);
	/* Messages of view 2 behind the unread event. */
	sp_tx_commit(&s->tx[0], 10, 0);
	promise(s, 1, 2);
	promise(s, 2, 3);
	for (i = 1; i < 3; i++)
		peer_row(s, i, 8, 5);
	KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 2) & SP_DID_DELIVER);
	KUNIT_EXPECT_EQ(test, o->published, 4ull);
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), 5ll);
	for (i = 0; i < 3; i++)
		freed[i] = s->lanes[i].freed;
	KUNIT_EXPECT_TRUE(test, sp_order_release(o, 3));
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), 5ll);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, s->lanes[i].freed, freed[i]);
	KUNIT_EXPECT_TRUE(test, sp_order_release(o, 4));
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), o->delivered);

	/* The event alone, at the very beginning. */
	s = shell_new(test, one_each, 3, 3, 0);
	o = &s->core.order;
	change(test, s, end(test, s));
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), -1ll);
	KUNIT_EXPECT_TRUE(test, sp_order_release(o, 1));
	KUNIT_EXPECT_EQ(test, sp_order_consumed(o), -1ll);
}

/* Who waits for readers asks again, in each view and by each connection. */
static void change_wait(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);

	sp_tx_commit(&s->tx[0], 10, 0);
	promise(s, 1, 1);
	promise(s, 2, 1);
	peer_row(s, 1, 2, -1);
	peer_row(s, 2, 2, -1);
	s->core.wants = 5;	/* it will not be in this view */
	pass(s);
	KUNIT_EXPECT_EQ(test, s->peers[1].wants, 5ll);
	all_landed(s);
	change(test, s, end(test, s));
	s->core.wants = sp_tx_place(&s->tx[0], 1);
	KUNIT_EXPECT_EQ(test, s->core.wants, 2ll);
	pass(s);
	KUNIT_ASSERT_EQ(test, count(s, ROW, 1), 1u);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_WANTED), 3ull);
	all_landed(s);
	peer_cell(s, 1, SP_CELL_WANTED, 100);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->peers[1].wanted, 99ll);
	sp_core_cut(&s->core, 1);
	peer_cell(s, 1, SP_CELL_WANTED, 0);
	memset(s->ticket, 0, sizeof(s->ticket));
	memset(s->landed, 0, sizeof(s->landed));
	sp_core_mend(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->peers[1].wanted, -1ll);
	s->nposted = 0;
	pass(s);
	KUNIT_ASSERT_EQ(test, count(s, ROW, 1), 1u);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_WANTED), 3ull);
}

/* A peer that comes is sent what lies in the view, once it can be reached. */
static void change_new_peer(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_proposal *p;
	struct posted *run;
	u32 i;

	for (i = 0; i < 3; i++)
		sp_tx_commit(&s->tx[0], 100, 0);
	commit(s, 1, 10, 3);
	pass(s);
	p = end(test, s);
	p->trim[0] = 2;
	p->trim[1] = 2;
	joins(p, 2, 50, 0);
	memset(s->pushed[2], 0xff, sizeof(s->pushed[2]));
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.nnodes, 3u);
	KUNIT_EXPECT_EQ(test, s->core.order.nlanes, 3u);
	KUNIT_EXPECT_TRUE(test, s->core.peers[2].cut);
	KUNIT_EXPECT_FALSE(test, s->core.peers[1].cut);
	KUNIT_EXPECT_EQ(test, s->lanes[2].base, 0ull);
	KUNIT_EXPECT_EQ(test, s->seen[2].received, 3ll);
	KUNIT_EXPECT_EQ(test, s->seen[2].consumed, 3ll);
	/* It has a turn before lane 0's third message goes further. */
	KUNIT_EXPECT_GE(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2) + count(s, ROW, 2), 0u);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);

	/* There is a connection, but no key yet: it is told where we begin. */
	sp_core_mend(&s->core, 2);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2), 0u);
	KUNIT_ASSERT_EQ(test, count(s, ROW, 2), 1u);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 2), SP_CELL_LANES),
			sp_progress(2, 2));
	sp_core_open(&s->core, 2, 0);
	pass(s);
	run = last_post(s, RUN, 2);
	KUNIT_ASSERT_TRUE(test, run);
	KUNIT_EXPECT_EQ(test, run->run.desc[0].off, 2u * 16);
	KUNIT_EXPECT_EQ(test, run->run.desc[0].len, 16u);
	KUNIT_EXPECT_EQ(test, run->run.bytes[0].off, 4 * SP_UNIT);
	KUNIT_EXPECT_EQ(test, run->run.bytes[0].len, 100u);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 2), SP_CELL_LANES),
			sp_progress(3, 3));
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);

	/* Its messages come third, and behind those that were left. */
	theirs_say(s, 1);
	commit(s, 2, 33, 1);
	peer_row(s, 1, 6, 3);
	peer_row(s, 2, 6, 3);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_ASSERT_EQ(test, s->core.order.published, 8ull);
	KUNIT_EXPECT_EQ(test, s->log[7].seq, 6ll);
	KUNIT_EXPECT_EQ(test, s->log[7].len, 33u);
	KUNIT_EXPECT_EQ(test, s->log[7].lane & SP_LOG_SLOT, 2u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

static void point_is(struct kunit *test, const struct sp_point *p,
		     const struct sp_point *want)
{
	KUNIT_EXPECT_EQ(test, p->round, want->round);
	KUNIT_EXPECT_EQ(test, p->count, want->count);
	KUNIT_EXPECT_EQ(test, p->tail, want->tail);
	KUNIT_EXPECT_EQ(test, p->pad, want->pad);
}

/* What speaks of the view begins anew, the rest of a peer runs on. */
static void change_begin_peers(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 1);
	struct sp_proposal *p;
	struct sp_peer *peer;
	struct sp_point at;

	sp_tx_commit(&s->tx[0], 100, 0);
	commit(s, 0, 10, 1);
	promise(s, 2, 1);
	pass(s);
	p = end(test, s);
	p->trim[1] = 0;
	joins(p, 3, 50, 0);
	memset(s->pushed[3], 0xff, sizeof(s->pushed[3]));
	peer = &s->core.peers[0];
	peer->sleep = 5;
	peer->woken = 7;
	peer->ticket = 9;
	peer->check = 8;
	peer->behind = false;
	s->core.unposted = true;
	change(test, s, p);
	KUNIT_EXPECT_FALSE(test, s->core.unposted);
	KUNIT_EXPECT_EQ(test, s->core.order.start, 3ll);

	/* Node 0 stays, also where it has the lowest rank. */
	peer = &s->core.peers[0];
	KUNIT_EXPECT_EQ(test, peer->received, 2ll);
	KUNIT_EXPECT_EQ(test, peer->sleep, 0ull);
	KUNIT_EXPECT_EQ(test, peer->woken, 0ull);
	KUNIT_EXPECT_EQ(test, peer->ticket, 9ull);
	KUNIT_EXPECT_EQ(test, peer->check, 8ull);
	KUNIT_EXPECT_TRUE(test, peer->behind);
	KUNIT_EXPECT_FALSE(test, peer->cut);
	KUNIT_EXPECT_EQ(test, peer->open, ~0ull);
	KUNIT_EXPECT_EQ(test, peer->pushed[0].to.count, 1ull);

	/* Node 3 comes: the own lane enters the view at its beginning. */
	peer = &s->core.peers[3];
	sp_lane_point(&s->lanes[1], DEPTH, &at);
	KUNIT_EXPECT_EQ(test, at.count, 0ull);
	point_is(test, &peer->pushed[0].to, &at);
	point_is(test, &peer->pushed[0].mark, &at);
	point_is(test, &peer->pushed[0].done, &at);
	KUNIT_EXPECT_EQ(test, peer->received, 2ll);
	KUNIT_EXPECT_EQ(test, peer->consumed, 2ll);
	KUNIT_EXPECT_EQ(test, peer->sleep, 0ull);
	KUNIT_EXPECT_EQ(test, peer->ticket, 0ull);
	KUNIT_EXPECT_EQ(test, peer->mark, 0ull);
	KUNIT_EXPECT_EQ(test, peer->landed, 0ull);
	KUNIT_EXPECT_EQ(test, peer->check, 0ull);
	KUNIT_EXPECT_EQ(test, peer->recheck, 0ull);
	KUNIT_EXPECT_EQ(test, peer->woken, 0ull);
	KUNIT_EXPECT_EQ(test, peer->open, 0ull);
	KUNIT_EXPECT_TRUE(test, peer->behind);
	KUNIT_EXPECT_TRUE(test, peer->cut);
	KUNIT_EXPECT_FALSE(test, peer->gone);
	/* So it is seen again after a cut; what was on the way is not. */
	peer->pushed[0].to.count = 5;
	peer->pushed[0].mark.count = 4;
	sp_core_mend(&s->core, 3);
	KUNIT_EXPECT_EQ(test, peer->pushed[0].to.count, 0ull);
	KUNIT_EXPECT_EQ(test, peer->pushed[0].mark.count, 0ull);
	KUNIT_EXPECT_FALSE(test, peer->cut);
}

/* The point at which a lane enters a view, for those who come with it. */
static void change_point(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_proposal *p;
	struct sp_point at;

	/* A message of two units, one of one, a null, one of three. */
	commit(s, 1, 100, 1);
	commit(s, 1, 10, 1);
	promise(s, 1, 3);
	commit(s, 1, 140, 1);
	pass(s);
	p = end(test, s);
	p->trim[1] = 3;
	change(test, s, p);
	memset(&at, 0xff, sizeof(at));
	sp_lane_point(&s->lanes[1], DEPTH, &at);
	KUNIT_EXPECT_EQ(test, at.round, 3ull);
	KUNIT_EXPECT_EQ(test, at.count, 2ull);
	KUNIT_EXPECT_EQ(test, at.tail, 3ull);
	KUNIT_EXPECT_EQ(test, at.pad, 0u);
	/* Own: four turns that we gave up, and nothing in them. */
	sp_lane_point(&s->lanes[0], DEPTH, &at);
	KUNIT_EXPECT_EQ(test, at.round, 4ull);
	KUNIT_EXPECT_EQ(test, at.count, 0ull);
	KUNIT_EXPECT_EQ(test, at.tail, 0ull);
	/* Who begins there takes what follows. */
	sp_lane_point(&s->lanes[1], DEPTH, &at);
	memset(s->checked, 0, sizeof(s->checked));
	sp_lane_init(&s->lanes[1], &at);
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.tail, 3ull);
	theirs_say(s, 1);
	peer_row(s, 1, s->core.order.start + 1, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->log[s->core.order.published - 1].len, 140u);
}

/* Cut: nothing is posted to it and it holds up the order, but no sleep. */
static void change_cut(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	u32 i;

	sp_core_cut(&s->core, 2);
	sp_tx_commit(&s->tx[0], 10, 0);
	commit(s, 2, 10, 1);
	promise(s, 1, 1);
	peer_row(s, 1, 2, -1);
	for (i = 0; i < 80; i++) {
		KUNIT_EXPECT_GE(test, pass(s), 0);
		KUNIT_EXPECT_EQ(test, count(s, RUN, 2) + count(s, ROW, 2) +
				count(s, WAKE, 2), 0u);
		all_landed(s);
	}
	KUNIT_EXPECT_EQ(test, s->core.order.delivered, -1ll);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	/* What had landed of it is read. */
	KUNIT_EXPECT_EQ(test, s->lanes[2].now.round, 1ull);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 2ll);
	/* Until it is mended: the kick is in that. */
	sp_core_mend(&s->core, 2);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2), 1u);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 2), 1u);
	peer_row(s, 2, 2, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	/* Nothing waits for what is on the way to it: it may never land. */
	s->landed[1] = s->ticket[1];
	KUNIT_EXPECT_LT(test, s->landed[2], s->ticket[2]);
	sp_core_cut(&s->core, 2);
	pass(s);
	s->landed[1] = s->ticket[1];
	pass(s);
	KUNIT_EXPECT_FALSE(test, s->core.waits);
	/* A cut is looked at once, also by an engine that sleeps. */
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	sp_core_cut(&s->core, 1);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
}

/* A new connection: everything that is not known to have landed, once more. */
static void change_mend(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	u32 i;

	for (i = 0; i < 3; i++) {
		sp_tx_commit(&s->tx[0], 10, 0);
		pass(s);
		if (!i)
			all_landed(s);
	}
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.count, 3ull);
	sp_core_cut(&s->core, 1);
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	s->ticket[1] = 0;
	s->landed[1] = 0;
	sp_core_mend(&s->core, 1);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].off, 1u * 16);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 3u * 16);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.bytes[0].off, SP_UNIT);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(4, 4));
	/* Its tickets begin anew, and so does what they complete. */
	pass(s);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].done.count, 1ull);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].done.count, 4ull);
	promise(s, 1, 4);
	peer_row(s, 1, 7, -1);
	pass(s);
	sp_pass(&s->core, 4);
	peer_row(s, 1, 7, 7);
	sp_pass(&s->core, 4);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 4ull);
	/* With nothing to push, too, it is told where we are. */
	settle(s);
	sp_core_cut(&s->core, 1);
	s->ticket[1] = 0;
	s->landed[1] = 0;
	sp_core_mend(&s->core, 1);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
	s = shell_new(test, two_nodes, 2, 2, 0);
	sp_core_mend(&s->core, 1);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
}

/*
 * The sender did not know that its last writes had landed: it tells less than
 * before, and comes to the same point again.
 */
static void change_mend_told_less(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_point before;

	/* The sender's side: two pushes were on the way, one is sent first. */
	s->core.push = 2;
	s->core.order.max_len = SP_UNIT;
	while (s->tx[0].now.count < 4)
		sp_tx_commit(&s->tx[0], SP_UNIT, 0);
	pass(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_LANES),
			sp_progress(4, 4));
	sp_core_cut(&s->core, 1);
	s->ticket[1] = 0;
	sp_core_mend(&s->core, 1);
	pass(s);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_LANES),
			sp_progress(2, 2));

	/* The receiver's: that is no news, and no fault. */
	commit(s, 1, 10, 5);
	pass(s);
	before = s->lanes[1].now;
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(3, 3));
	KUNIT_EXPECT_GE(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &s->lanes[1].now, sizeof(before)), 0);
	/* Also in a new view, that began behind it. */
	change(test, s, end(test, s));
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(4, 4));
	KUNIT_EXPECT_GE(test, pass(s), 0);
	commit(s, 1, 10, 1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.count, 6ull);
}

/* An own lane is pushed to whom it is open to. */
static void change_open(struct kunit *test)
{
	struct shell *s = shell_new(test, two_own, 3, 3, 0);

	s->core.peers[1].open = 0;
	s->core.peers[2].open = 1 << 1;
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[1], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 2), 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 2)->own, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 2), SP_CELL_LANES), 0ull);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 2), SP_CELL_LANES + 1),
			sp_progress(1, 1));
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	sp_core_open(&s->core, 1, 0);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 1)->own, 0u);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2), 0u);
	sp_core_open(&s->core, 1, 1);
	sp_core_open(&s->core, 2, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 1)->own, 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 2)->own, 0u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* An own lane goes: the numbers of the others stay. */
static void change_own_hole(struct kunit *test)
{
	bool unlock = true;

	do {
		struct shell *s = shell_new(test, two_own, 3, 2, 0);
		struct sp_proposal *p;
		s64 last;
		u32 i;

		sp_tx_commit(&s->tx[1], 10, 0);
		pass(s);
		p = end(test, s);
		p->reason[0] = SP_LEFT;
		change(test, s, p);
		if (!unlock)
			s->core.opt = SP_OPT_ALL & ~SP_OPT_UNLOCK;
		/* Node 1's member comes first now, and the node does not. */
		KUNIT_EXPECT_EQ(test, s->core.order.self, 0u);
		KUNIT_EXPECT_EQ(test, s->core.nown, 2u);
		KUNIT_EXPECT_FALSE(test, s->own[0].tx);
		KUNIT_EXPECT_EQ(test, s->own[1].rank, 1u);
		KUNIT_EXPECT_EQ(test, s->core.order.slot[1], (u16)2);
		KUNIT_EXPECT_EQ(test, s->core.order.fins, 0u);
		for (i = 0; i < 3; i++)
			sp_tx_commit(&s->tx[1], 11, 0);
		KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
		KUNIT_ASSERT_EQ(test, s->nposted, 2u);
		KUNIT_EXPECT_EQ(test, s->posted[0].node, 1u);
		KUNIT_EXPECT_EQ(test, s->posted[0].own, 1u);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].off, 16u);
		KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES + 1),
				sp_progress(s->tx[1].now.round, 4));
		/* Nulls, acknowledgments, room: all without it. */
		promise(s, 0, 4);
		last = s->core.order.start + 5;
		peer_row(s, 1, last, -1);
		pass(s);
		all_landed(s);
		peer_row(s, 1, last, last);
		KUNIT_EXPECT_TRUE(test, sp_pass(&s->core,
						s->core.order.published) & SP_DID_FREE);
		KUNIT_EXPECT_EQ(test, s->tx[1].freed, 4ull);
		settle(s);
		KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
		KUNIT_EXPECT_EQ(test, s->bad, 0u);
		unlock = !unlock;
	} while (!unlock);
}

/* A node comes while a number has no lane: it is sent the other lanes. */
static void change_own_hole_new_peer(struct kunit *test)
{
	struct shell *s = shell_new(test, two_own, 3, 2, 0);
	struct sp_proposal *p;

	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[1], 10, 0);
	p = end(test, s);
	p->reason[0] = SP_LEFT;
	p->trim[2] = 0;
	joins(p, 2, 50, SP_MEMBER_RECEIVER);
	memset(s->pushed[2], 0xff, sizeof(s->pushed[2]));
	change(test, s, p);
	KUNIT_ASSERT_EQ(test, s->core.order.nnodes, 3u);
	KUNIT_EXPECT_EQ(test, s->core.order.self, 0u);
	KUNIT_EXPECT_EQ(test, s->core.peers[2].nlanes, 0u);
	KUNIT_EXPECT_EQ(test, s->pushed[2][1].to.count, 0ull);
	sp_core_mend(&s->core, 2);
	sp_core_open(&s->core, 2, 0);
	sp_core_open(&s->core, 2, 1);
	pass(s);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 2), 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 2)->own, 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 2)->run.bytes[0].len, 10u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* And its number is given anew: that begins at nothing, the other runs on. */
static void change_own_anew(struct kunit *test)
{
	struct shell *s = shell_new(test, two_own, 3, 2, 0);
	struct sp_proposal *p;

	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[1], 10, 0);
	pass(s);
	p = end(test, s);
	p->reason[0] = SP_LEFT;
	joins(p, 0, 50, 0);
	/* A landing of what the old one had on the way is not the new one's. */
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->own[0].pushed, 0ull);
	KUNIT_EXPECT_EQ(test, s->own[0].now.count, 0ull);
	KUNIT_EXPECT_EQ(test, s->own[1].pushed, 1ull);
	KUNIT_EXPECT_EQ(test, s->own[1].now.count, 1ull);
	KUNIT_EXPECT_EQ(test, s->own[0].rank, 2u);
	KUNIT_EXPECT_EQ(test, s->own[1].rank, 1u);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.count, 0ull);
	KUNIT_EXPECT_EQ(test, s->pushed[1][1].to.count, 1ull);
	KUNIT_EXPECT_EQ(test, s->core.peers[1].open >> 0 & 1, 0ull);
	KUNIT_EXPECT_EQ(test, s->core.peers[1].open >> 1 & 1, 1ull);
	sp_tx_commit(&s->tx[0], 20, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].done.count, 0ull);
	KUNIT_EXPECT_EQ(test, s->pushed[1][1].done.count, 1ull);
	sp_core_open(&s->core, 1, 0);
	pass(s);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 1)->own, 0u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 1)->run.desc[0].off, 0u);
	KUNIT_EXPECT_EQ(test, last_post(s, RUN, 1)->run.bytes[0].len, 20u);
	KUNIT_EXPECT_EQ(test, (u32)cell(test, last_post(s, ROW, 1), SP_CELL_LANES),
			1u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* The same of a peer: of a number without a lane no word is read. */
static void change_peer_anew(struct kunit *test)
{
	struct shell *s = shell_new(test, two_own, 3, 2, 1);
	struct sp_proposal *p;

	commit(s, 0, 10, 1);
	commit(s, 2, 10, 1);
	pass(s);
	p = end(test, s);
	p->reason[0] = SP_LEFT;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.self, 1u);
	KUNIT_EXPECT_EQ(test, s->core.peers[0].nlanes, 2u);
	KUNIT_EXPECT_EQ(test, s->core.peers[0].lanes[0], (s16)-1);
	KUNIT_EXPECT_EQ(test, s->core.peers[0].lanes[1], (s16)1);
	peer_cell(s, 0, SP_CELL_LANES, sp_progress(0x80000000, 0));
	commit(s, 1, 12, 1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->lanes[2].now.count, 2ull);

	p = end(test, s);
	joins(p, 0, 50, 0);
	change(test, s, p);
	/* What the old lane said last is being read: a slot of its own. */
	KUNIT_EXPECT_EQ(test, s->core.peers[0].lanes[0], (s16)2);
	KUNIT_EXPECT_EQ(test, s->core.order.slot[2], (u16)3);
	KUNIT_EXPECT_EQ(test, s->lanes[0].held, 1ull);
	commit(s, 2, 30, 1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->lanes[3].now.count, 1ull);
	KUNIT_EXPECT_EQ(test, s->lanes[3].lane, 0u);
	KUNIT_EXPECT_EQ(test, s->lanes[3].member, 2u);
	sp_pass(&s->core, s->core.order.published);
	KUNIT_EXPECT_EQ(test, s->lanes[0].held, 0ull);
	/* Once nobody reads it the slot is free. */
	p = end(test, s);
	joins(p, 0, 51, 0);
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.slot[3], (u16)0);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* Ranks move up: what is known of a peer moves along. */
static void change_ranks(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 1);
	struct sp_proposal *p;
	u64 seq;

	sp_tx_commit(&s->tx[0], 10, 0);
	commit(s, 2, 10, 1);
	promise(s, 0, 1);
	pass(s);
	sp_tx_commit(&s->tx[0], 10, 0);
	peer_row(s, 0, 2, 0);
	peer_row(s, 2, 2, 1);
	pass(s);
	p = end(test, s);
	p->reason[0] = SP_LOST;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->seen[0].consumed, 0ll);
	KUNIT_EXPECT_EQ(test, s->seen[1].consumed, 1ll);
	KUNIT_EXPECT_EQ(test, s->core.order.self, 0u);
	KUNIT_EXPECT_TRUE(test, s->core.peers[0].gone);
	KUNIT_EXPECT_FALSE(test, s->core.peers[1].gone);
	KUNIT_EXPECT_TRUE(test, s->core.peers[1].pushed == s->pushed[2]);
	KUNIT_EXPECT_EQ(test, s->own[0].rank, 0u);
	KUNIT_EXPECT_EQ(test, s->lanes[1].node, 0u);
	KUNIT_EXPECT_EQ(test, s->lanes[2].node, 1u);
	KUNIT_EXPECT_EQ(test, s->pushed[2][0].to.count, 2ull);
	/* A lane keeps its slot, whatever its rank is. */
	KUNIT_EXPECT_EQ(test, s->log[0].lane & SP_LOG_SLOT, 1u);
	KUNIT_EXPECT_EQ(test, s->log[1].lane & SP_LOG_SLOT, 2u);
	KUNIT_EXPECT_EQ(test, s->lanes[2].member, 1u);
	/* The writes of view 1 land in view 2. */
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->pushed[2][0].done.count, 1ull);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->pushed[2][0].done.count, 2ull);
	sp_tx_commit(&s->tx[0], 10, 0);
	commit(s, 1, 10, 1);
	seq = s->core.order.start + 1;
	peer_row(s, 1, seq, 1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->log[s->core.order.published - 1].lane & SP_LOG_SLOT, 2u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* A row speaks of one view, before that begins here and after it is over. */
static void change_rows(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_cell *next = s->rows[1][0];
	u32 i;

	commit(s, 1, 10, 1);
	peer_row(s, 1, 1, -1);
	pass(s);
	/* The peer is there already, and has acknowledged two turns more. */
	sp_cell_set(&next[SP_CELL_RECEIVED], 4, EPOCH + 1);
	sp_cell_set(&next[SP_CELL_CONSUMED], 2, EPOCH + 1);
	sp_cell_set(&next[SP_CELL_LANES], sp_progress(2, 1), EPOCH + 1);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, 1ll);
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.round, 1ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	change(test, s, end(test, s));
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
	KUNIT_EXPECT_EQ(test, s->core.order.epoch, EPOCH + 1ull);
	KUNIT_EXPECT_TRUE(test, s->core.peers[1].row == next);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_EXPECT_EQ(test, s->seen[1].received, 3ll);
	KUNIT_EXPECT_EQ(test, s->seen[1].consumed, 1ll);
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.round, 2ull);
	/* View 3 has the bank of view 1: what is in there is too old. */
	change(test, s, end(test, s));
	KUNIT_EXPECT_TRUE(test, s->core.peers[1].row == s->rows[1][1]);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_GE(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, s->core.order.start - 1);
}

/* Whom we suspect we do not read, in a view that it is in, either. */
static void change_gone(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	u32 i;

	s->core.peers[2].gone = true;
	change(test, s, end(test, s));
	KUNIT_EXPECT_TRUE(test, s->core.peers[2].gone);
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(0x80000000, 0));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_GE(test, pass(s), 0);
		KUNIT_EXPECT_EQ(test, count(s, ROW, 2), 0u);
	}
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/*
 * Rounds were promised for the sake of a lane that is gone: their owner has not
 * become faulty by that, not even to one that comes.
 */
static void change_slack(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p;

	promise(s, 1, 48);
	KUNIT_EXPECT_GE(test, pass(s), 0);
	p = end(test, s);
	p->trim[1] = 0;
	p->reason[2] = SP_LOST;
	change(test, s, p);
	commit(s, 1, 10, 1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	peer_row(s, 1, s->core.order.start + 2 * 48, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));

	s = shell_new(test, two_nodes, 2, 2, 0);
	s->core.view = 2;
	s->core.order.start = 7;
	sp_core_init(&s->core);
	promise(s, 1, 48);
	KUNIT_EXPECT_GE(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->lanes[1].now.round, 48ull);
	/* It may still read what was before this node came. */
	KUNIT_EXPECT_EQ(test, s->seen[0].consumed, 6ll);
	peer_row(s, 1, 7 + 2 * 48, 3);
	KUNIT_EXPECT_GE(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->seen[1].received, 7ll + 2 * 48);
}

/* Who begins in a later view may find as much as that of the views before. */
static void change_slack_joiner(struct kunit *test)
{
	static const u32 owners[] = { 0, 1 };
	struct shell *s = shell_new(test, owners, 2, 2, 0);

	KUNIT_EXPECT_EQ(test, s->core.order.slack, 0ull);
	s->core.view = 2;
	sp_core_init(&s->core);
	KUNIT_EXPECT_EQ(test, s->core.order.slack,
			(u64)SP_MAX_MEMBERS * DEPTH);
}

/* And yet there is a limit to what anybody can have promised or received. */
static void change_limit(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_order *o = &s->core.order;
	u64 limit = 2 * DEPTH + 2 + SP_MAX_MEMBERS * DEPTH;
	struct sp_proposal *p;
	u32 i;

	for (i = 0; i < 3; i++) {
		if (i) {
			/* All is read, or a message of the last view is not. */
			commit(s, 1, 10, 10);
			pass(s);
			p = end(test, s);
			change(test, s, p);
			sp_order_release(o, o->published - (i == 2 ? 3 : 0));
		}
		if (!i)
			limit -= SP_MAX_MEMBERS * DEPTH;
		peer_cell(s, 1, SP_CELL_LANES,
			  sp_progress(s->lanes[1].base + limit + 1,
				      s->lanes[1].now.count));
		KUNIT_EXPECT_EQ_MSG(test, pass(s), -EPROTO, "case %u", i);
		theirs_say(s, 1);
		peer_row(s, 1, o->start + 2 * limit, o->start - 1);
		KUNIT_EXPECT_EQ_MSG(test, pass(s), -EPROTO, "case %u", i);
		peer_row(s, 1, o->start + 2 * limit - 1, o->start - 1);
		KUNIT_EXPECT_GE_MSG(test, pass(s), 0, "case %u", i);
		if (!i)
			limit += SP_MAX_MEMBERS * DEPTH;
	}
}

/* A view in which nobody sends: it only waits, and can be left again. */
static void change_no_senders(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_proposal *p;
	s64 start;

	p = end(test, s);
	joins(p, 0, 50, SP_MEMBER_RECEIVER);
	joins(p, 1, 51, SP_MEMBER_RECEIVER);
	change(test, s, p);
	sp_tx_commit(&s->tx[0], 10, 0);
	p = end(test, s);
	p->reason[0] = SP_LEFT;
	p->reason[1] = SP_LEFT;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.nlanes, 0u);
	KUNIT_EXPECT_EQ(test, s->core.nown, 0u);
	start = s->core.order.start;
	peer_row(s, 1, start - 1, start - 1);
	KUNIT_EXPECT_GE(test, sp_pass(&s->core, s->core.order.published), 0);
	KUNIT_EXPECT_EQ(test, s->core.order.released, 3ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	p = end(test, s);
	joins(p, 1, 52, 0);
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.start, start);
	KUNIT_EXPECT_EQ(test, s->core.peers[1].lanes[0], (s16)0);
	KUNIT_EXPECT_EQ(test, sp_order_lane(&s->core.order, 0)->member, 2u);
	commit(s, 0, 10, 1);
	/* It has consumed no less than it had, whatever it says. */
	peer_row(s, 1, start, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	KUNIT_EXPECT_EQ(test, s->core.order.nodes[1].consumed, start - 1);
	KUNIT_EXPECT_EQ(test, s->log[s->core.order.published - 1].seq, start);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* While requests to an evicted node may be sent again nothing is given back. */
static void change_hold(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);

	sp_tx_commit(&s->tx[0], 10, 0);
	promise(s, 1, 1);
	peer_row(s, 1, 1, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_DELIVER));
	peer_row(s, 1, 1, 1);
	all_landed(s);
	s->core.hold = true;
	sp_pass(&s->core, 1);
	all_landed(s);
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 0ull);
	s->core.hold = false;
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 1ull);
}

/* A lane's last message counts as long as the lane is in the view. */
static void change_fins(struct kunit *test)
{
	struct shell *s = shell_new(test, two_nodes, 2, 2, 0);
	struct sp_proposal *p;

	sp_tx_commit(theirs(s, 1), 0, SP_DESC_FIN);
	theirs_say(s, 1);
	p = end(test, s);
	KUNIT_EXPECT_EQ(test, s->core.order.fins, 0u);
	change(test, s, p);
	KUNIT_EXPECT_TRUE(test, s->lanes[1].fin);
	KUNIT_EXPECT_EQ(test, s->core.order.fins, 1u);
	/* The other one follows: that is the end. */
	sp_tx_commit(&s->tx[0], 0, SP_DESC_FIN);
	pass(s);
	promise(s, 1, 2);
	peer_row(s, 1, s->core.order.start + 1, -1);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_CLOSE));
	KUNIT_EXPECT_EQ(test, s->core.order.fins, 2u);
	p = end(test, s);
	p->reason[1] = SP_LEFT;
	change(test, s, p);
	KUNIT_EXPECT_EQ(test, s->core.order.fins, 1u);
}

static struct kunit_case sp_change_cases[] = {
	KUNIT_CASE(change_wedge),
	KUNIT_CASE(change_wedge_peers),
	KUNIT_CASE(change_numbers),
	KUNIT_CASE(change_beyond),
	KUNIT_CASE(change_nulls),
	KUNIT_CASE(change_free),
	KUNIT_CASE(change_consumed),
	KUNIT_CASE(change_wait),
	KUNIT_CASE(change_new_peer),
	KUNIT_CASE(change_begin_peers),
	KUNIT_CASE(change_point),
	KUNIT_CASE(change_cut),
	KUNIT_CASE(change_mend),
	KUNIT_CASE(change_mend_told_less),
	KUNIT_CASE(change_open),
	KUNIT_CASE(change_own_hole),
	KUNIT_CASE(change_own_hole_new_peer),
	KUNIT_CASE(change_own_anew),
	KUNIT_CASE(change_peer_anew),
	KUNIT_CASE(change_ranks),
	KUNIT_CASE(change_rows),
	KUNIT_CASE(change_gone),
	KUNIT_CASE(change_slack),
	KUNIT_CASE(change_slack_joiner),
	KUNIT_CASE(change_limit),
	KUNIT_CASE(change_no_senders),
	KUNIT_CASE(change_hold),
	KUNIT_CASE(change_fins),
	{}
};

struct kunit_suite sp_change_suite = {
	.name = "spindle_change",
	.test_cases = sp_change_cases,
};
