// SPDX-License-Identifier: GPL-2.0
#include "../core/order.h"
#include "suites.h"

#define DEPTH	16
#define WINDOW	1024
#define UNITS	(WINDOW / SP_UNIT)
#define MAX_LEN	512
#define LANES	3
#define LATE	0xfffffffaull	/* a few steps below 2^32 */

/* One order with room for LANES lanes, lane i on node i % 2; we are node 0. */
struct order_world {
	struct sp_order o;
	struct sp_lane lanes[LANES];
	struct sp_node_seen nodes[2];
	struct sp_log log[64];
	struct sp_desc checked[LANES][DEPTH];
	struct sp_desc ring[LANES][DEPTH];
	struct sp_desc own[DEPTH];
	struct sp_tx tx;
};

static void world_init(struct order_world *w, u32 nlanes)
{
	static const struct sp_point begin;
	u32 i;

	memset(w, 0, sizeof(*w));
	w->o.lanes = w->lanes;
	w->o.nodes = w->nodes;
	w->o.log = w->log;
	w->o.nlanes = nlanes;
	w->o.nnodes = 2;
	w->o.depth = DEPTH;
	w->o.units = UNITS;
	w->o.max_len = MAX_LEN;
	w->o.log_size = ARRAY_SIZE(w->log);
	for (i = 0; i < nlanes; i++) {
		w->o.slot[i] = i;
		w->lanes[i].node = i % 2;
		w->lanes[i].member = 10 + i;
		w->lanes[i].src = w->ring[i];
		w->lanes[i].desc = w->checked[i];
		sp_lane_init(&w->lanes[i], &begin);
	}
	sp_order_init(&w->o);
	sp_tx_init(&w->tx, w->own, DEPTH, WINDOW, 0, 1);
}

static struct order_world *world(struct kunit *test, u32 nlanes)
{
	struct order_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	world_init(w, nlanes);
	return w;
}

/* As if everything up to these counters had come and gone. */
static void world_at(struct order_world *w, u64 round, u64 count, u64 tail)
{
	s64 before = (s64)(round * w->o.nlanes) - 1;
	u32 i;

	for (i = 0; i < w->o.nlanes; i++) {
		struct sp_lane *lane = &w->lanes[i];

		lane->now.round = round;
		lane->now.count = count;
		lane->now.tail = tail;
		lane->freed = count;
		lane->taken = count;
		lane->head = tail;
	}
	for (i = 0; i < 2; i++) {
		w->nodes[i].received = before;
		w->nodes[i].consumed = before;
	}
	w->o.delivered = before;
	w->tx.now = w->lanes[0].now;
	w->tx.freed = count;
	w->tx.head = tail;
}

/* Put a descriptor where a peer would write it. */
static void put(struct order_world *w, u32 rank, u64 count, u64 index, u32 len,
		u64 pos, u32 flags)
{
	struct sp_desc *d = &w->ring[rank][count % DEPTH];

	d->index = (u32)index;
	d->len = len;
	d->pos = (u32)pos;
	d->flags = flags;
}

static int take(struct order_world *w, u32 rank, u64 round, u64 count)
{
	return sp_order_take(&w->o, rank, sp_progress(round, count), U32_MAX);
}

/* An order and a lane begin with nothing of what was in their memory before. */
static void order_begin(struct kunit *test)
{
	static const struct sp_point at = { 5, 3, 9, 7 };
	struct order_world *w = world(test, 2);
	struct sp_order *o = &w->o;
	struct sp_lane *lane = &w->lanes[1];

	o->start = 40;
	o->slack = 1;
	o->delivered = 1;
	o->published = 1;
	o->released = 1;
	o->fins = 1;
	o->messages = 1;
	o->bytes = 1;
	o->nulls = 1;
	sp_order_init(o);
	KUNIT_EXPECT_EQ(test, o->slack, 0ull);
	KUNIT_EXPECT_EQ(test, o->delivered, 39ll);
	KUNIT_EXPECT_EQ(test, o->published, 0ull);
	KUNIT_EXPECT_EQ(test, o->released, 0ull);
	KUNIT_EXPECT_EQ(test, o->fins, 0u);
	KUNIT_EXPECT_EQ(test, o->messages, 0ull);
	KUNIT_EXPECT_EQ(test, o->bytes, 0ull);
	KUNIT_EXPECT_EQ(test, o->nulls, 0ull);
	/* Others may still read what was before this node came. */
	KUNIT_EXPECT_EQ(test, w->nodes[0].received, 39ll);
	KUNIT_EXPECT_EQ(test, w->nodes[0].consumed, 39ll);
	KUNIT_EXPECT_EQ(test, w->nodes[1].received, 39ll);
	KUNIT_EXPECT_EQ(test, w->nodes[1].consumed, -1ll);

	memset(lane, 0xff, sizeof(*lane));
	sp_lane_init(lane, &at);
	KUNIT_EXPECT_EQ(test, lane->base, 5ull);
	KUNIT_EXPECT_EQ(test, lane->taken, 3ull);
	KUNIT_EXPECT_EQ(test, lane->freed, 3ull);
	KUNIT_EXPECT_EQ(test, lane->told_freed, 3ull);
	KUNIT_EXPECT_EQ(test, lane->head, 9ull);
	KUNIT_EXPECT_EQ(test, lane->told_head, 9ull);
	KUNIT_EXPECT_EQ(test, lane->held, 0ull);
	KUNIT_EXPECT_FALSE(test, lane->fin);
	KUNIT_EXPECT_EQ(test, lane->now.round, 5ull);
	KUNIT_EXPECT_EQ(test, lane->now.count, 3ull);
	KUNIT_EXPECT_EQ(test, lane->now.tail, 9ull);
	KUNIT_EXPECT_EQ(test, lane->now.pad, 7u);
}

static void order_received_num(struct kunit *test)
{
	static const struct {
		u32 nlanes;
		u64 rounds[LANES];
		s64 want;
	} table[] = {
		{ 1, { 0 }, -1 },
		{ 1, { 4 }, 3 },
		{ 3, { 0, 0, 0 }, -1 },
		{ 3, { 1, 0, 0 }, 0 },
		{ 3, { 0, 5, 5 }, -1 },
		{ 3, { 1, 1, 0 }, 1 },
		{ 3, { 1, 1, 1 }, 2 },
		{ 3, { 5, 1, 1 }, 3 },
		{ 3, { 5, 5, 1 }, 4 },
		{ 3, { 3, 3, 2 }, 7 },
		{ 3, { 2, 3, 3 }, 5 },
		{ 2, { 1ull << 32, 1ull << 32 }, (2ll << 32) - 1 },
	};
	struct order_world *w = world(test, 1);
	int i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		world_init(w, table[i].nlanes);
		for (k = 0; k < table[i].nlanes; k++)
			w->lanes[k].now.round = table[i].rounds[k];
		KUNIT_EXPECT_EQ_MSG(test, sp_order_advance(&w->o),
				    table[i].want != -1, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w->nodes[0].received, table[i].want,
				    "row %d", i);
		KUNIT_EXPECT_FALSE(test, sp_order_advance(&w->o));
	}
}

static void order_null_targets(struct kunit *test)
{
	/* What is asked of lanes that send, and of lanes that had nothing to send. */
	static const struct {
		u64 rounds[LANES];
		u64 busy[LANES];
		u64 quiet[LANES];
	} table[] = {
		{ { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
		{ { 1, 0, 0 }, { 0, 0, 0 }, { 0, 1, 1 } },
		{ { 0, 1, 0 }, { 1, 0, 0 }, { 1, 0, 1 } },
		{ { 0, 0, 1 }, { 1, 1, 0 }, { 1, 1, 0 } },
		{ { 3, 0, 0 }, { 0, 2, 2 }, { 0, 3, 3 } },
		{ { 2, 5, 1 }, { 5, 1, 4 }, { 5, 2, 5 } },
		/* At rest: nobody who sends is asked for more. */
		{ { 4, 4, 3 }, { 4, 3, 3 }, { 4, 4, 4 } },
		{ { 4, 3, 3 }, { 3, 3, 3 }, { 3, 4, 4 } },
	};
	struct order_world *w = world(test, LANES);
	u64 target;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		for (k = 0; k < LANES; k++)
			w->lanes[k].now.round = table[i].rounds[k];
		for (k = 0; k < LANES; k++) {
			struct sp_lane *lane = &w->lanes[k];
			u64 round = lane->now.round;

			target = sp_order_null_target(&w->o, k);
			KUNIT_EXPECT_EQ_MSG(test, target, table[i].quiet[k],
					    "quiet, row %d lane %d", i, k);
			lane->now.count = 1;
			target = sp_order_null_target(&w->o, k);
			KUNIT_EXPECT_EQ_MSG(test, target, table[i].busy[k],
					    "undelivered, row %d lane %d", i, k);
			lane->taken = 1;
			lane->desc[0].index = round - 1;
			target = sp_order_null_target(&w->o, k);
			KUNIT_EXPECT_EQ_MSG(test, target, table[i].busy[k],
					    "just sent, row %d lane %d", i, k);
			lane->desc[0].index = round - 2;
			target = sp_order_null_target(&w->o, k);
			KUNIT_EXPECT_EQ_MSG(test, target, table[i].quiet[k],
					    "sent before, row %d lane %d", i, k);
			lane->now.count = 0;
			lane->taken = 0;
		}
	}
}

static void order_nulls(struct kunit *test)
{
	struct order_world *w = world(test, 1);

	KUNIT_EXPECT_EQ(test, sp_tx_nulls(&w->tx, 0), 0ull);
	KUNIT_EXPECT_EQ(test, sp_tx_nulls(&w->tx, 3), 3ull);
	KUNIT_EXPECT_EQ(test, sp_tx_nulls(&w->tx, 3), 0ull);
	KUNIT_EXPECT_EQ(test, sp_tx_nulls(&w->tx, 1), 0ull);
	KUNIT_EXPECT_EQ(test, w->tx.now.round, 3ull);
	KUNIT_EXPECT_EQ(test, w->tx.now.count, 0ull);
	KUNIT_EXPECT_EQ(test, w->tx.now.tail, 0ull);
	/* The next message takes the turn after them. */
	sp_tx_commit(&w->tx, 10, 0);
	KUNIT_EXPECT_EQ(test, w->own[0].index, 3u);
}

static void order_tx_space(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u64 off = 99;
	u32 i;

	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, WINDOW + 1, &off), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, WINDOW, &off), 0);
	KUNIT_EXPECT_EQ(test, off, 0ull);
	sp_tx_commit(&w->tx, WINDOW - SP_UNIT, 0);
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, SP_UNIT + 1, &off), -EAGAIN);
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, SP_UNIT, &off), 0);
	KUNIT_EXPECT_EQ(test, off, (u64)WINDOW - SP_UNIT);
	sp_tx_commit(&w->tx, 1, 0);
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, 1, &off), -EAGAIN);
	/* No bytes, no ring: only descriptors run out, and one is kept. */
	for (i = w->tx.now.count; i < DEPTH - 1; i++) {
		KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, 0, &off), 0);
		sp_tx_commit(&w->tx, 0, 0);
	}
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, 0, &off), -EAGAIN);
	sp_tx_commit(&w->tx, 0, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, w->tx.now.count, (u64)DEPTH);
	KUNIT_EXPECT_EQ(test, w->own[0].index, 0u);
	KUNIT_EXPECT_EQ(test, w->own[DEPTH - 1].flags, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, 0, &off), -EPIPE);
	KUNIT_EXPECT_TRUE(test, sp_tx_free(&w->tx, DEPTH, DEPTH));
	KUNIT_EXPECT_EQ(test, sp_tx_space(&w->tx, 0, &off), -EPIPE);
}

/* Commit and free over many laps, and over 2^32. */
static void order_tx_wrap(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u64 tail = LATE;
	u64 off;
	u32 i;

	world_at(w, LATE, LATE, LATE);
	for (i = 0; i < 200; i++) {
		u32 len = (i * 37) % 300;
		struct sp_desc *d = &w->own[(LATE + i) % DEPTH];

		KUNIT_ASSERT_EQ(test, sp_tx_space(&w->tx, len, &off), 0);
		KUNIT_EXPECT_EQ(test, off, tail % UNITS * SP_UNIT);
		sp_tx_commit(&w->tx, len, 0);
		KUNIT_EXPECT_EQ(test, d->index, (u32)(LATE + i));
		KUNIT_EXPECT_EQ(test, d->pos, (u32)tail);
		tail += sp_units(len);
		KUNIT_EXPECT_EQ(test, w->tx.now.tail, tail);
		if (i % 3 != 2)
			continue;
		/* All but the last: consumed, but not complete; then both. */
		KUNIT_EXPECT_FALSE(test, sp_tx_free(&w->tx, LATE + i - 1, w->tx.freed));
		KUNIT_EXPECT_FALSE(test, sp_tx_free(&w->tx, w->tx.freed - 1, ~0ull));
		KUNIT_EXPECT_TRUE(test, sp_tx_free(&w->tx, LATE + i - 1, LATE + i + 1));
		KUNIT_EXPECT_EQ(test, w->tx.freed, LATE + i);
		KUNIT_EXPECT_TRUE(test, sp_tx_free(&w->tx, LATE + i, ~0ull));
		KUNIT_EXPECT_EQ(test, w->tx.freed, w->tx.now.count);
		KUNIT_EXPECT_EQ(test, w->tx.head, w->tx.now.tail);
	}
}

/* What SIOCOUTQ says: the oldest counts as long as it is kept. */
static void order_tx_unfreed(struct kunit *test)
{
	struct order_world *w = world(test, 1);

	KUNIT_EXPECT_EQ(test, sp_tx_unfreed(&w->tx), 0ull);
	sp_tx_commit(&w->tx, 100, 0);
	sp_tx_commit(&w->tx, 0, 0);
	sp_tx_commit(&w->tx, 10, 0);
	KUNIT_EXPECT_EQ(test, sp_tx_unfreed(&w->tx), 110ull);
	sp_tx_free(&w->tx, 0, 1);
	KUNIT_EXPECT_EQ(test, sp_tx_unfreed(&w->tx), 10ull);
	sp_tx_free(&w->tx, 2, 3);
	KUNIT_EXPECT_EQ(test, sp_tx_unfreed(&w->tx), 0ull);
}

static void order_tx_run(struct kunit *test)
{
	static const struct {
		const char *what;
		struct sp_point from, to;
		struct sp_run want;
		bool any;
	} table[] = {
		{ "nothing", { 4, 4, 4 }, { 4, 4, 4 }, { }, false },
		{ "a null", { 4, 4, 4 }, { 5, 4, 4 }, { }, true },
		{ "no bytes", { 4, 4, 4, 9 }, { 5, 5, 4, 9 },
		  { .desc = { { 64, 16 } } }, true },
		{ "one stretch", { 0, 0, 0 }, { 2, 2, 3, 10 },
		  { { { 0, 182 } }, { { 0, 32 } } }, true },
		{ "up to the end", { 0, 0, 14 }, { 1, 1, 16, 0 },
		  { { { 896, 128 } }, { { 0, 16 } } }, true },
		{ "bytes wrap", { 1, 1, 14 }, { 2, 2, 17, 63 },
		  { { { 896, 128 }, { 0, 1 } }, { { 16, 16 } } }, true },
		{ "descriptors wrap", { 9, 15, 16 }, { 12, 18, 17, 1 },
		  { { { 0, 63 } }, { { 240, 16 }, { 0, 32 } } }, true },
		{ "both, after 2^32",
		  { 0xffffffff, 0xffffffff, 0xffffffff },
		  { 0x100000001, 0x100000001, 0x100000001, 4 },
		  { { { 960, 64 }, { 0, 60 } }, { { 240, 16 }, { 0, 16 } } }, true },
		{ "the whole ring", { 0, 0, 5 }, { 1, 1, 21, 3 },
		  { { { 320, 704 }, { 0, 317 } }, { { 0, 16 } } }, true },
	};
	struct sp_run run;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		const struct sp_run *want = &table[i].want;

		memset(&run, 0xff, sizeof(run));
		KUNIT_EXPECT_EQ_MSG(test, sp_tx_run(&table[i].from, &table[i].to,
						    DEPTH, UNITS, &run),
				    table[i].any, "%s", table[i].what);
		for (k = 0; k < 2; k++) {
			KUNIT_EXPECT_EQ_MSG(test, run.bytes[k].len,
					    want->bytes[k].len, "%s", table[i].what);
			KUNIT_EXPECT_EQ_MSG(test, run.desc[k].len,
					    want->desc[k].len, "%s", table[i].what);
			if (run.bytes[k].len)
				KUNIT_EXPECT_EQ_MSG(test, run.bytes[k].off,
						    want->bytes[k].off, "%s",
						    table[i].what);
			if (run.desc[k].len)
				KUNIT_EXPECT_EQ_MSG(test, run.desc[k].off,
						    want->desc[k].off, "%s",
						    table[i].what);
		}
	}
}

static void order_take(struct kunit *test)
{
	struct order_world *w = world(test, 2);

	/* A null, two messages, a null. */
	put(w, 1, 0, 1, 100, 0, 0);
	put(w, 1, 1, 2, 0, 2, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, take(w, 1, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, 4, 2), 1);
	KUNIT_EXPECT_EQ(test, take(w, 1, 4, 2), 0);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.round, 4ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.count, 2ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.tail, 2ull);
	/* What a peer writes later does not change what was taken. */
	put(w, 1, 0, 9, 9, 9, 9);
	KUNIT_EXPECT_EQ(test, w->checked[1][0].len, 100u);
	KUNIT_EXPECT_EQ(test, w->checked[1][0].index, 1u);
}

static void order_take_late(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	u32 i;

	world_at(w, LATE, LATE, LATE);
	for (i = 0; i < 10; i++)
		put(w, 1, LATE + i, LATE + i, 64, LATE + i, 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 12, LATE + 10), 1);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.round, LATE + 12);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.count, LATE + 10);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.tail, LATE + 10);
	KUNIT_EXPECT_GT(test, w->lanes[1].now.count, 1ull << 32);
}

/* After one good message of 100 bytes; each row is one lie. */
static void order_take_rejects(struct kunit *test)
{
	static const struct {
		const char *what;
		u64 round, count;
		struct sp_desc d;
	} table[] = {
		{ "only the round went back", 0, 2, { } },
		{ "only the count went back", 2, 0, { } },
		{ "more messages than turns", 2, 3, { 1, 10, 2, 0 } },
		{ "more messages than descriptors", 30, 1 + DEPTH, { 1, 0, 2, 0 } },
		{ "round that nobody can have reached", 1000, 1, { } },
		{ "round 2^31 ahead", 0x80000000, 1, { } },
		{ "count 2^31 ahead", 3, 0x80000000, { } },
		{ "index of an earlier turn", 2, 2, { 0, 10, 2, 0 } },
		{ "index at the round", 2, 2, { 2, 10, 2, 0 } },
		{ "index far ahead", 2, 2, { 0x7fffffff, 10, 2, 0 } },
		{ "index far behind", 2, 2, { 0x80000002, 10, 2, 0 } },
		{ "too long", 2, 2, { 1, MAX_LEN + 1, 2, 0 } },
		{ "length 2^32 - 1", 2, 2, { 1, 0xffffffff, 2, 0 } },
		{ "before its place", 2, 2, { 1, 10, 1, 0 } },
		{ "after its place", 2, 2, { 1, 10, 3, 0 } },
		{ "a lap off", 2, 2, { 1, 10, 2 + UNITS, 0 } },
		{ "unknown flag", 2, 2, { 1, 10, 2, 1U << 31 } },
	};
	struct order_world *w = world(test, 2);
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct sp_point before;

		world_init(w, 2);
		put(w, 1, 0, 0, 100, 0, 0);
		KUNIT_ASSERT_EQ(test, take(w, 1, 1, 1), 1);
		before = w->lanes[1].now;
		w->ring[1][1] = table[i].d;
		KUNIT_EXPECT_EQ_MSG(test, take(w, 1, table[i].round, table[i].count),
				    -EPROTO, "%s", table[i].what);
		/* Nothing of it was taken. */
		KUNIT_EXPECT_EQ(test, memcmp(&before, &w->lanes[1].now, sizeof(before)), 0);
	}
}

/*
 * What a peer tells after it had lost the connection may be less than what had
 * landed before: it is on its way to the same.
 */
static void order_take_again(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	u32 i;

	world_at(w, LATE, LATE, LATE);
	for (i = 0; i < 10; i++)
		put(w, 1, LATE + i, LATE + i, 64, LATE + i, 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 12, LATE + 10), 1);
	for (i = 0; i <= 10; i++)
		KUNIT_EXPECT_EQ(test, take(w, 1, LATE + i, LATE + i), 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 12, LATE + 9), 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 11, LATE + 10), 0);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.round, LATE + 12);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.count, LATE + 10);
	put(w, 1, LATE + 10, LATE + 12, 64, LATE + 10, 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 13, LATE + 11), 1);
	/* By more than there are descriptors nobody goes back. */
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE, LATE + 11 - DEPTH), 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE, LATE + 10 - DEPTH), -EPROTO);
}

/* No lane can be further ahead than the descriptors of all lanes allow. */
static void order_take_limit(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	u64 limit = 2 * DEPTH + 2;

	KUNIT_EXPECT_EQ(test, take(w, 1, limit + 1, 0), -EPROTO);
	KUNIT_EXPECT_EQ(test, take(w, 1, limit, 0), 1);
	w->o.slack = 5;
	KUNIT_EXPECT_EQ(test, take(w, 1, limit + 6, 0), -EPROTO);
	KUNIT_EXPECT_EQ(test, take(w, 1, limit + 5, 0), 1);
	/* Where two rounds were consumed there may be two more. */
	world_init(w, 2);
	w->o.delivered = 4;
	KUNIT_EXPECT_EQ(test, take(w, 1, limit + 3, 0), -EPROTO);
	KUNIT_EXPECT_EQ(test, take(w, 1, limit + 2, 0), 1);
	/* What was consumed of an earlier view does not count. */
	world_init(w, 2);
	w->o.start = 50;
	w->o.delivered = 3;
	KUNIT_EXPECT_EQ(test, take(w, 1, limit + 1, 0), -EPROTO);
	KUNIT_EXPECT_EQ(test, take(w, 1, limit, 0), 1);
}

/* Of several messages so many are taken at once, and nulls with the last. */
static void order_take_some(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	u64 word = sp_progress(7, 2);

	/* Two nulls, a message, two nulls, a message, a null. */
	put(w, 1, 0, 2, 100, 0, 0);
	put(w, 1, 1, 5, 10, 2, 0);
	KUNIT_EXPECT_EQ(test, sp_order_take(&w->o, 1, word, 1), 1);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.round, 3ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.count, 1ull);
	KUNIT_EXPECT_EQ(test, sp_order_take(&w->o, 1, word, 1), 1);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.round, 7ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].now.count, 2ull);
	KUNIT_EXPECT_EQ(test, sp_order_take(&w->o, 1, word, 1), 0);
}

/* More bytes than the ring holds, each message good by itself. */
static void order_take_overrun(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	u32 each = MAX_LEN / SP_UNIT;

	put(w, 1, 0, 0, MAX_LEN, 0, 0);
	put(w, 1, 1, 1, MAX_LEN, each, 0);
	put(w, 1, 2, 2, 1, 2 * each, 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, 2, 2), 1);
	KUNIT_EXPECT_EQ(test, take(w, 1, 3, 3), -EPROTO);
	/* Once the first is consumed here there is room. */
	w->lanes[1].head += each;
	w->lanes[1].freed++;
	KUNIT_EXPECT_EQ(test, take(w, 1, 3, 3), 1);
}

static void order_row(struct kunit *test)
{
	struct order_world *w = world(test, 2);

	w->nodes[0].received = 10;
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, -1, -1), 0);
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 5, 3), 1);
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 20, 10), 1);
	KUNIT_EXPECT_EQ(test, w->nodes[1].received, 20ll);
	KUNIT_EXPECT_EQ(test, w->nodes[1].consumed, 10ll);
}

/*
 * A row that lands once more, after the connection was lost, says less than what
 * was seen, in one cell or in both: it is on its way to the same.
 */
static void order_row_again(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	s64 received, consumed;

	w->nodes[0].received = 10;
	KUNIT_ASSERT_EQ(test, sp_order_row(&w->o, 1, 9, 4), 1);
	for (received = -1; received <= 9; received++)
		for (consumed = -1; consumed <= 4; consumed++)
			KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, received, consumed),
					0);
	KUNIT_EXPECT_EQ(test, w->nodes[1].received, 9ll);
	KUNIT_EXPECT_EQ(test, w->nodes[1].consumed, 4ll);
	/* One was read of that row, the other of the first new one. */
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 7, 5), 0);
	KUNIT_EXPECT_EQ(test, w->nodes[1].received, 9ll);
	KUNIT_EXPECT_EQ(test, w->nodes[1].consumed, 5ll);
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 10, 4), 1);
	KUNIT_EXPECT_EQ(test, w->nodes[1].received, 10ll);
	KUNIT_EXPECT_EQ(test, w->nodes[1].consumed, 5ll);
	/* Before the view began nobody goes back; its readers may have been there. */
	world_init(w, 2);
	w->o.start = 50;
	w->nodes[0].received = 60;
	w->nodes[1].received = 49;
	KUNIT_ASSERT_EQ(test, sp_order_row(&w->o, 1, 55, 30), 1);
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 49, -1), 0);
	KUNIT_EXPECT_EQ(test, sp_order_row(&w->o, 1, 48, 30), -EPROTO);
}

static void order_row_rejects(struct kunit *test)
{
	static const struct {
		const char *what;
		s64 received, consumed;
	} table[] = {
		{ "consumed what we have not received", 20, 11 },
		{ "received what nobody can have sent", 100000, 3 },
		{ "received at the largest", S64_MAX, 3 },
		{ "consumed at the largest", 5, S64_MAX },
		{ "received less than nothing", -2, 3 },
		{ "consumed less than nothing", 5, -2 },
		{ "received at the smallest", S64_MIN, 3 },
		{ "consumed at the smallest", 5, S64_MIN },
	};
	struct order_world *w = world(test, 2);
	int i;

	w->nodes[0].received = 10;
	KUNIT_ASSERT_EQ(test, sp_order_row(&w->o, 1, 5, 3), 1);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		KUNIT_EXPECT_EQ_MSG(test, sp_order_row(&w->o, 1, table[i].received,
						       table[i].consumed),
				    -EPROTO, "%s", table[i].what);
		KUNIT_EXPECT_EQ(test, w->nodes[1].received, 5ll);
		KUNIT_EXPECT_EQ(test, w->nodes[1].consumed, 3ll);
	}
}

static void order_deliver(struct kunit *test)
{
	struct order_world *w = world(test, 2);

	/* Lane 0: null, message. Lane 1: message, FIN, null. */
	put(w, 0, 0, 1, 70, 0, 0);
	put(w, 1, 0, 0, 10, 0, 0);
	put(w, 1, 1, 1, 0, 1, SP_DESC_FIN);
	KUNIT_ASSERT_EQ(test, take(w, 0, 2, 1), 1);
	KUNIT_ASSERT_EQ(test, take(w, 1, 3, 2), 1);
	KUNIT_EXPECT_TRUE(test, sp_order_advance(&w->o));
	KUNIT_EXPECT_EQ(test, w->nodes[0].received, 3ll);
	KUNIT_EXPECT_FALSE(test, sp_order_quiet(&w->o));

	/* Only what every node has received. */
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 0u);
	w->nodes[1].received = 0;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 0u);
	KUNIT_EXPECT_EQ(test, w->o.delivered, 0ll);
	KUNIT_EXPECT_EQ(test, sp_order_consumed(&w->o), 0ll);
	w->nodes[1].received = 2;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 2u);
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 0u);
	w->nodes[1].received = 9;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 1u);
	KUNIT_EXPECT_TRUE(test, sp_order_quiet(&w->o));

	KUNIT_EXPECT_EQ(test, w->log[0].seq, 1ll);
	KUNIT_EXPECT_EQ(test, w->log[0].lane & SP_LOG_SLOT, 1u);
	KUNIT_EXPECT_EQ(test, w->log[0].len, 10u);
	KUNIT_EXPECT_EQ(test, w->log[1].seq, 2ll);
	KUNIT_EXPECT_EQ(test, w->log[1].lane & SP_LOG_SLOT, 0u);
	KUNIT_EXPECT_EQ(test, w->log[1].len, 70u);
	KUNIT_EXPECT_EQ(test, w->log[2].seq, 3ll);
	KUNIT_EXPECT_EQ(test, w->log[2].flags, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, w->log[0].pos, 0u);
	KUNIT_EXPECT_EQ(test, w->log[2].pos, 1u);
	KUNIT_EXPECT_EQ(test, w->o.messages, 2ull);
	KUNIT_EXPECT_EQ(test, w->o.bytes, 80ull);
	KUNIT_EXPECT_EQ(test, w->o.nulls, 1ull);
	KUNIT_EXPECT_EQ(test, w->o.fins, 1u);

	KUNIT_EXPECT_EQ(test, sp_order_consumed(&w->o), 0ll);
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 1));
	KUNIT_EXPECT_EQ(test, sp_order_consumed(&w->o), 1ll);
	KUNIT_EXPECT_FALSE(test, sp_order_release(&w->o, 1));
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 3));
	KUNIT_EXPECT_EQ(test, sp_order_consumed(&w->o), 3ll);
	KUNIT_EXPECT_EQ(test, w->nodes[0].consumed, 3ll);
	KUNIT_EXPECT_EQ(test, w->lanes[0].head, 2ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].freed, 2ull);
}

/* A lane is found by its slot, whatever its rank is. */
static void order_slots(struct kunit *test)
{
	static const struct sp_point at = { 5000, 7, 9 };
	struct order_world *w = world(test, LANES);
	u32 i;

	for (i = 0; i < LANES; i++) {
		w->o.slot[i] = LANES - 1 - i;
		sp_lane_init(&w->lanes[i], &at);
	}
	/* Rank 0 is slot 2. Turns count from where the lane began. */
	put(w, 2, 7, 5000, 10, 9, 0);
	put(w, 1, 7, 5001, 20, 9, 0);
	KUNIT_EXPECT_EQ(test, take(w, 0, 5002, 8), 1);
	KUNIT_EXPECT_EQ(test, take(w, 1, 5002, 8), 1);
	KUNIT_EXPECT_EQ(test, take(w, 2, 5001, 7), 1);
	KUNIT_EXPECT_EQ(test, w->lanes[2].now.tail, 10ull);
	KUNIT_EXPECT_TRUE(test, sp_order_advance(&w->o));
	KUNIT_EXPECT_EQ(test, w->nodes[0].received, 4ll);
	w->nodes[1].received = 4;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 2u);
	KUNIT_EXPECT_EQ(test, w->log[0].seq, 0ll);
	KUNIT_EXPECT_EQ(test, w->log[0].lane & SP_LOG_SLOT, 2u);
	KUNIT_EXPECT_EQ(test, w->log[1].seq, 4ll);
	KUNIT_EXPECT_EQ(test, w->log[1].lane & SP_LOG_SLOT, 1u);
	KUNIT_EXPECT_EQ(test, w->lanes[1].held, 1ull);
	KUNIT_EXPECT_EQ(test, w->o.nulls, 3ull);
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 2));
	KUNIT_EXPECT_EQ(test, w->lanes[1].held, 0ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].freed, 8ull);
	KUNIT_EXPECT_EQ(test, w->lanes[1].head, 10ull);
	KUNIT_EXPECT_EQ(test, w->lanes[0].freed, 7ull);
}

/* Full laps of the log, the descriptors and the ring, over 2^32. */
static void order_log_wrap(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u64 n = LATE;
	u32 i, k;

	w->o.log_size = DEPTH;
	world_at(w, LATE, LATE, LATE);
	for (i = 0; i < 20; i++) {
		u64 tail = w->lanes[0].now.tail;

		/* The first has no bytes, each other one unit. */
		for (k = 0; k < DEPTH; k++)
			put(w, 0, n + k, n + k, k, tail + (k ? k - 1 : 0), 0);
		KUNIT_ASSERT_EQ(test, take(w, 0, n + DEPTH, n + DEPTH), 1);
		KUNIT_EXPECT_TRUE(test, sp_order_advance(&w->o));
		w->nodes[1].received = w->nodes[0].received;
		KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), (u32)DEPTH);
		for (k = 0; k < DEPTH; k++) {
			const struct sp_log *log = &w->log[(i * DEPTH + k) % DEPTH];

			KUNIT_EXPECT_EQ(test, log->seq, (s64)(n + k));
			KUNIT_EXPECT_EQ(test, log->len, k);
			KUNIT_EXPECT_LT(test, log->pos, (u32)UNITS);
		}
		n += DEPTH;
		KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, w->o.published));
		KUNIT_EXPECT_EQ(test, w->lanes[0].head, w->lanes[0].now.tail);
	}
	KUNIT_EXPECT_EQ(test, w->o.nulls, 0ull);
	KUNIT_EXPECT_GT(test, n, 1ull << 32);
}

/* What became stable is delivered as far as the log has room, in any parts. */
static void order_log_full(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u32 i;

	w->o.log_size = 4;
	for (i = 0; i < 10; i++)
		put(w, 0, i, i, 10, i, 0);
	KUNIT_ASSERT_EQ(test, take(w, 0, 10, 10), 1);
	sp_order_advance(&w->o);
	w->nodes[1].received = 9;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, 1), 1u);
	KUNIT_EXPECT_EQ(test, w->o.delivered, 0ll);
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 3u);
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 0u);
	KUNIT_EXPECT_EQ(test, w->o.delivered, 3ll);
	KUNIT_EXPECT_FALSE(test, sp_order_quiet(&w->o));
	KUNIT_EXPECT_EQ(test, sp_order_event(&w->o, 9, 1), -ENOBUFS);
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 2));
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 2u);
	KUNIT_EXPECT_EQ(test, w->log[1].seq, 5ll);
}

/* One message of each lane at a time is no stream. */
static void order_flows(struct kunit *test)
{
	struct order_world *w = world(test, 2);

	put(w, 0, 0, 0, 10, 0, 0);
	put(w, 0, 1, 1, 10, 1, 0);
	put(w, 1, 0, 0, 10, 0, 0);
	KUNIT_EXPECT_FALSE(test, sp_order_flows(&w->o));
	KUNIT_ASSERT_EQ(test, take(w, 0, 1, 1), 1);
	KUNIT_ASSERT_EQ(test, take(w, 1, 1, 1), 1);
	KUNIT_EXPECT_FALSE(test, sp_order_flows(&w->o));
	KUNIT_ASSERT_EQ(test, take(w, 0, 2, 2), 1);
	KUNIT_EXPECT_TRUE(test, sp_order_flows(&w->o));
	sp_order_advance(&w->o);
	w->nodes[1].received = 1;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 2u);
	KUNIT_EXPECT_FALSE(test, sp_order_flows(&w->o));
}

/* An event has a place in the stream, and no turn in the order. */
static void order_event(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u32 i;

	memset(w->log, 0xff, sizeof(w->log));
	KUNIT_EXPECT_EQ(test, sp_order_event(&w->o, 9, 5), 0);
	KUNIT_EXPECT_EQ(test, w->log[0].len, 0u);
	KUNIT_EXPECT_EQ(test, w->log[0].seq, -1ll);
	put(w, 0, 0, 0, 10, 0, 0);
	put(w, 0, 1, 1, 10, 1, 0);
	KUNIT_ASSERT_EQ(test, take(w, 0, 2, 2), 1);
	sp_order_advance(&w->o);
	w->nodes[1].received = 0;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 1u);
	KUNIT_EXPECT_EQ(test, sp_order_event(&w->o, 8, 6), 0);
	w->nodes[1].received = 1;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 1u);
	KUNIT_EXPECT_EQ(test, w->log[2].seq, 0ll);
	KUNIT_EXPECT_EQ(test, w->log[2].lane & SP_LOG_SLOT, 8u);
	KUNIT_EXPECT_EQ(test, w->log[2].pos, 6u);
	KUNIT_EXPECT_EQ(test, w->log[2].flags, SP_LOG_EVENT);
	KUNIT_EXPECT_EQ(test, w->log[3].seq, 1ll);
	KUNIT_EXPECT_EQ(test, w->o.messages, 2ull);
	KUNIT_EXPECT_EQ(test, w->o.published, 4ull);
	/* Turns that were consumed, by entries that were released. */
	for (i = 0; i <= 4; i++) {
		static const s64 consumed[] = { -1, -1, 0, 0, 1 };

		sp_order_release(&w->o, i);
		KUNIT_EXPECT_EQ_MSG(test, sp_order_consumed(&w->o), consumed[i],
				    "%u entries", i);
	}
	KUNIT_EXPECT_EQ(test, w->lanes[0].freed, 2ull);
}

/* Where nobody sends there are no turns. */
static void order_no_senders(struct kunit *test)
{
	struct order_world *w = world(test, 0);

	KUNIT_EXPECT_FALSE(test, sp_order_advance(&w->o));
	w->nodes[0].received = 5;
	w->nodes[1].received = 5;
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 0u);
	KUNIT_EXPECT_EQ(test, w->o.delivered, -1ll);
	KUNIT_EXPECT_TRUE(test, sp_order_quiet(&w->o));
}

/* Messages of a stretch of descriptors: a lane's last entry is none. */
static void order_messages(struct kunit *test)
{
	struct order_world *w = world(test, 1);

	sp_tx_commit(&w->tx, 10, 0);
	sp_tx_commit(&w->tx, 10, 0);
	sp_tx_commit(&w->tx, 0, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, w->tx.messages, 2ull);
	KUNIT_EXPECT_EQ(test, w->tx.bytes, 20ull);
	KUNIT_EXPECT_EQ(test, sp_messages(w->own, DEPTH, 0, 0), 0ull);
	KUNIT_EXPECT_EQ(test, sp_messages(w->own, DEPTH, 3, 3), 0ull);
	KUNIT_EXPECT_EQ(test, sp_messages(w->own, DEPTH, 0, 2), 2ull);
	KUNIT_EXPECT_EQ(test, sp_messages(w->own, DEPTH, 0, 3), 2ull);
	KUNIT_EXPECT_EQ(test, sp_messages(w->own, DEPTH, 2, 3), 0ull);
}

/* A lane's own turns in a later view, and those of the view before. */
static void order_tx_view(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u32 i;

	sp_tx_init(&w->tx, w->own, DEPTH, WINDOW, 1, 2);
	for (i = 0; i < 4; i++)
		sp_tx_commit(&w->tx, 64, 0);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&w->tx, 3), 7ll);
	/* Two turns belong to the old view; rank 2 of 3 has 12 and 15. */
	sp_tx_view(&w->tx, 2, 10, 2, 3);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&w->tx, 0), 9ll);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&w->tx, 1), 9ll);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&w->tx, 2), 12ll);
	KUNIT_EXPECT_EQ(test, sp_tx_seq(&w->tx, 3), 15ll);
	KUNIT_EXPECT_FALSE(test, sp_tx_free(&w->tx, 8, ~0ull));
	KUNIT_EXPECT_TRUE(test, sp_tx_free(&w->tx, 9, ~0ull));
	KUNIT_EXPECT_EQ(test, w->tx.freed, 2ull);
	KUNIT_EXPECT_FALSE(test, sp_tx_free(&w->tx, 11, ~0ull));
	KUNIT_EXPECT_TRUE(test, sp_tx_free(&w->tx, 12, ~0ull));
	KUNIT_EXPECT_EQ(test, w->tx.freed, 3ull);
}

/* Where an own message is in the order, as long as it is kept. */
static void order_tx_place(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	u32 i;

	sp_tx_init(&w->tx, w->own, DEPTH, WINDOW, 1, 2);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 0), -1ll);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 1), -1ll);
	for (i = 0; i < 3; i++) {
		sp_tx_nulls(&w->tx, 2 * i + 1);
		sp_tx_commit(&w->tx, 64, 0);
	}
	/* Turns 1, 3 and 5 of rank 1 of 2. */
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 1), 3ll);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 3), 11ll);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 4), -1ll);
	KUNIT_EXPECT_TRUE(test, sp_tx_free(&w->tx, 3, ~0ull));
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 1), -1ll);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 2), 7ll);
	/* The view of the second has ended; the third is rank 0 of 1 in the next. */
	sp_tx_view(&w->tx, 4, 8, 0, 1);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 2), 7ll);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, 3), 9ll);

	w = world(test, 1);
	world_at(w, LATE, LATE, LATE);
	sp_tx_commit(&w->tx, 64, 0);
	sp_tx_nulls(&w->tx, LATE + 20);
	KUNIT_EXPECT_EQ(test, sp_tx_place(&w->tx, LATE + 1), (s64)LATE);
}

/* A stretch is cut by messages and by units, never within a message. */
static void order_tx_cut(struct kunit *test)
{
	static const struct {
		u64 messages, units;
		struct sp_point want;
	} table[] = {
		{ ~0ull, ~0ull, { 8, 4, 6, 54 } },
		{ 4, 6, { 8, 4, 6, 54 } },
		{ 0, ~0ull, { 2, 0, 0, 0 } },
		{ 1, ~0ull, { 3, 1, 2, 28 } },
		{ 3, ~0ull, { 6, 3, 5, 4 } },
		{ ~0ull, 1, { 2, 0, 0, 0 } },
		{ ~0ull, 2, { 4, 2, 2, 28 } },
		{ ~0ull, 4, { 4, 2, 2, 28 } },
		{ ~0ull, 5, { 6, 3, 5, 4 } },
		{ 1, 5, { 3, 1, 2, 28 } },
	};
	static const struct sp_point later = { 4, 2, 2, 28 };
	static const struct sp_point from;
	struct order_world *w = world(test, 1);
	struct sp_point to;
	u32 i;

	/* Two nulls, 2 units, nothing, 3 units, a null, 1 unit, a null. */
	sp_tx_nulls(&w->tx, 2);
	sp_tx_commit(&w->tx, 100, 0);
	sp_tx_commit(&w->tx, 0, 0);
	sp_tx_commit(&w->tx, 188, 0);
	sp_tx_nulls(&w->tx, 6);
	sp_tx_commit(&w->tx, 10, 0);
	sp_tx_nulls(&w->tx, 8);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		to = w->tx.now;
		sp_tx_cut(&w->tx, &from, &to, table[i].messages, table[i].units);
		KUNIT_EXPECT_EQ_MSG(test, to.round, table[i].want.round,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, to.count, table[i].want.count,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, to.tail, table[i].want.tail,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, to.pad, table[i].want.pad, "row %u", i);
	}
	/* What was pushed before does not count. */
	to = w->tx.now;
	sp_tx_cut(&w->tx, &later, &to, 2, 4);
	KUNIT_EXPECT_EQ(test, to.round, 8ull);
	to = w->tx.now;
	sp_tx_cut(&w->tx, &later, &to, 2, 3);
	KUNIT_EXPECT_EQ(test, to.round, 6ull);
	KUNIT_EXPECT_EQ(test, to.count, 3ull);
	KUNIT_EXPECT_EQ(test, to.tail, 5ull);
}

static struct kunit_case sp_order_cases[] = {
	KUNIT_CASE(order_begin),
	KUNIT_CASE(order_received_num),
	KUNIT_CASE(order_null_targets),
	KUNIT_CASE(order_nulls),
	KUNIT_CASE(order_tx_space),
	KUNIT_CASE(order_tx_wrap),
	KUNIT_CASE(order_tx_unfreed),
	KUNIT_CASE(order_tx_run),
	KUNIT_CASE(order_tx_view),
	KUNIT_CASE(order_tx_place),
	KUNIT_CASE(order_tx_cut),
	KUNIT_CASE(order_take),
	KUNIT_CASE(order_take_late),
	KUNIT_CASE(order_take_again),
	KUNIT_CASE(order_take_rejects),
	KUNIT_CASE(order_take_limit),
	KUNIT_CASE(order_take_some),
	KUNIT_CASE(order_take_overrun),
	KUNIT_CASE(order_row),
	KUNIT_CASE(order_row_again),
	KUNIT_CASE(order_row_rejects),
	KUNIT_CASE(order_deliver),
	KUNIT_CASE(order_slots),
	KUNIT_CASE(order_log_wrap),
	KUNIT_CASE(order_log_full),
	KUNIT_CASE(order_flows),
	KUNIT_CASE(order_event),
	KUNIT_CASE(order_no_senders),
	KUNIT_CASE(order_messages),
	{}
};

struct kunit_suite sp_order_suite = {
	.name = "spindle_order",
	.test_cases = sp_order_cases,
};
