// SPDX-License-Identifier: GPL-2.0
#include "../core/order.h"
#include "../core/schedule.h"
#include "suites.h"

#define DEPTH	16
#define WINDOW	1024
#define UNITS	(WINDOW / SP_UNIT)
#define MAX_LEN	512
#define MAX_OBJECT	100000
#define DEEP	32		/* descriptors, more than a lane has objects */
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
	w->o.max_object = MAX_OBJECT;
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
	w->tx.max_object = MAX_OBJECT;
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
		lane->seen = lane->now;
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
	static const struct {
		u64 rounds[LANES];
		u64 want[LANES];
	} table[] = {
		{ { 0, 0, 0 }, { 0, 0, 0 } },
		{ { 1, 0, 0 }, { 0, 0, 0 } },
		{ { 0, 1, 0 }, { 1, 0, 0 } },
		{ { 0, 0, 1 }, { 1, 1, 0 } },
		{ { 3, 0, 0 }, { 0, 2, 2 } },
		{ { 2, 5, 1 }, { 5, 1, 4 } },
		/* At rest: nobody is asked for more. */
		{ { 4, 4, 3 }, { 4, 3, 3 } },
		{ { 4, 3, 3 }, { 3, 3, 3 } },
	};
	struct order_world *w = world(test, LANES);
	int i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		for (k = 0; k < LANES; k++)
			w->lanes[k].seen.round = table[i].rounds[k];
		for (k = 0; k < LANES; k++)
			KUNIT_EXPECT_EQ_MSG(test, sp_order_null_target(&w->o, k),
					    table[i].want[k], "row %d lane %d", i, k);
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

static void order_row_rejects(struct kunit *test)
{
	static const struct {
		const char *what;
		s64 received, consumed;
	} table[] = {
		{ "received went back", 4, 3 },
		{ "consumed went back", 5, 2 },
		{ "consumed what we have not received", 20, 11 },
		{ "received what nobody can have sent", 100000, 3 },
		{ "received at the largest", S64_MAX, 3 },
		{ "consumed at the largest", 5, S64_MAX },
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
	/* The sender by its rank among the members, too. */
	KUNIT_EXPECT_EQ(test, w->log[0].lane >> SP_LOG_MEMBER_SHIFT, 11u);
	KUNIT_EXPECT_EQ(test, w->log[1].lane >> SP_LOG_MEMBER_SHIFT, 10u);
	KUNIT_EXPECT_EQ(test, w->log[2].flags, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, w->o.messages, 2ull);
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

/* A lane is found by its slot, wherever that is, and its place in it is kept. */
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
	KUNIT_EXPECT_EQ(test, w->log[0].lane >> SP_LOG_MEMBER_SHIFT, 12u);
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

/* Room for an object: of descriptors, of objects, of bytes. */
static void order_object_space(struct kunit *test)
{
	struct order_world *w = world(test, 1);
	struct sp_desc *deep = kunit_kcalloc(test, DEEP, sizeof(*deep), GFP_KERNEL);
	struct sp_tx *tx = &w->tx;
	u64 off;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, deep);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 0), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, MAX_OBJECT + 1), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, U32_MAX), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), 0);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, MAX_OBJECT), 0);
	/* One descriptor is kept for SP_DESC_FIN. */
	for (i = 0; i < DEPTH - 1; i++) {
		KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), 0);
		sp_tx_commit(tx, 1, SP_DESC_OBJECT);
	}
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, sp_tx_space(tx, 1, &off), -EAGAIN);
	sp_tx_commit(tx, 0, SP_DESC_FIN);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), -EPIPE);

	/* So many of them, and other messages besides. */
	sp_tx_init(tx, deep, DEEP, WINDOW, 0, 1);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), -EMSGSIZE);
	tx->max_object = MAX_OBJECT;
	for (i = 0; i < SP_LANE_OBJECTS; i++) {
		KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), 0);
		sp_tx_commit(tx, 1, SP_DESC_OBJECT);
	}
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, sp_tx_space(tx, WINDOW, &off), 0);
	KUNIT_EXPECT_TRUE(test, sp_tx_free(tx, 0, ~0ull));
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 1), 0);

	/* And so many bytes, to the last. */
	sp_tx_init(tx, deep, DEEP, WINDOW, 0, 1);
	tx->max_object = MAX_OBJECT;
	sp_tx_commit(tx, MAX_OBJECT, SP_DESC_OBJECT);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, MAX_OBJECT), 0);
	sp_tx_commit(tx, MAX_OBJECT - 3, SP_DESC_OBJECT);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 4), -EAGAIN);
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, 3), 0);
	tx->max_object = U32_MAX;
	tx->object_bytes = U32_MAX;
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, U32_MAX), 0);
	tx->object_bytes = 1ull + U32_MAX;
	KUNIT_EXPECT_EQ(test, sp_tx_space_object(tx, U32_MAX), -EAGAIN);
}

/* An object takes a turn and a descriptor, and nothing of the ring. */
static void order_object_commit(struct kunit *test)
{
	u32 flags = SP_DESC_OBJECT | SP_SCHEDULE_CHAIN << SP_DESC_KIND_SHIFT;
	static const struct sp_point from;
	struct order_world *w = world(test, 1);
	struct sp_tx *tx = &w->tx;
	struct sp_point to;
	struct sp_run run;
	u64 off;

	sp_tx_commit(tx, 70, 0);
	sp_tx_nulls(tx, 3);
	sp_tx_commit(tx, 90000, flags);
	KUNIT_EXPECT_EQ(test, w->own[1].index, 3u);
	KUNIT_EXPECT_EQ(test, w->own[1].len, 90000u);
	KUNIT_EXPECT_EQ(test, w->own[1].pos, 2u);
	KUNIT_EXPECT_EQ(test, w->own[1].flags, flags);
	KUNIT_EXPECT_EQ(test, sp_desc_kind(flags), (u32)SP_SCHEDULE_CHAIN);
	KUNIT_EXPECT_EQ(test, tx->now.round, 4ull);
	KUNIT_EXPECT_EQ(test, tx->now.count, 2ull);
	KUNIT_EXPECT_EQ(test, tx->now.tail, 2ull);
	KUNIT_EXPECT_EQ(test, tx->now.pad, 58u);
	KUNIT_EXPECT_EQ(test, tx->objects, 1u);
	KUNIT_EXPECT_EQ(test, tx->object_bytes, 90000ull);
	KUNIT_EXPECT_EQ(test, tx->messages, 2ull);
	KUNIT_EXPECT_EQ(test, tx->bytes, 90070ull);
	KUNIT_EXPECT_EQ(test, sp_tx_unfreed(tx), 90070ull);
	/* The bytes of the message before it are all there is to push. */
	KUNIT_EXPECT_TRUE(test, sp_tx_run(&from, &tx->now, DEPTH, UNITS, &run));
	KUNIT_EXPECT_EQ(test, run.bytes[0].len + run.bytes[1].len, 70u);
	KUNIT_EXPECT_EQ(test, run.desc[0].len, 32u);

	/* The next one begins where the object would have. */
	KUNIT_EXPECT_EQ(test, sp_tx_space(tx, 64, &off), 0);
	KUNIT_EXPECT_EQ(test, off, 128ull);
	sp_tx_commit(tx, 64, 0);
	KUNIT_EXPECT_EQ(test, w->own[2].pos, 2u);

	/* One push takes any number of them: two units go out with the object. */
	to = tx->now;
	sp_tx_cut(tx, &from, &to, ~0ull, 2);
	KUNIT_EXPECT_EQ(test, to.count, 2ull);
	KUNIT_EXPECT_EQ(test, to.tail, 2ull);
	KUNIT_EXPECT_EQ(test, to.round, 4ull);
	KUNIT_EXPECT_EQ(test, to.pad, 58u);
	to = tx->now;
	sp_tx_cut(tx, &from, &to, 1, ~0ull);
	KUNIT_EXPECT_EQ(test, to.count, 1ull);
	KUNIT_EXPECT_EQ(test, to.round, 3ull);

	/* Room comes back in order, each its own. */
	KUNIT_EXPECT_TRUE(test, sp_tx_free(tx, 2, ~0ull));
	KUNIT_EXPECT_EQ(test, tx->head, 2ull);
	KUNIT_EXPECT_EQ(test, tx->objects, 1u);
	KUNIT_EXPECT_FALSE(test, sp_tx_free(tx, 3, 1));
	KUNIT_EXPECT_TRUE(test, sp_tx_free(tx, 3, ~0ull));
	KUNIT_EXPECT_EQ(test, tx->freed, 2ull);
	KUNIT_EXPECT_EQ(test, tx->head, 2ull);
	KUNIT_EXPECT_EQ(test, tx->objects, 0u);
	KUNIT_EXPECT_EQ(test, tx->object_bytes, 0ull);
	KUNIT_EXPECT_TRUE(test, sp_tx_free(tx, 4, ~0ull));
	KUNIT_EXPECT_EQ(test, tx->head, tx->now.tail);
}

/* Lane 1: a message, two nulls, an object, a message, an object, a null. */
static void put_objects(struct kunit *test, struct order_world *w)
{
	put(w, 1, LATE, LATE, 100, LATE, 0);
	put(w, 1, LATE + 1, LATE + 3, 60000, LATE + 2, SP_DESC_OBJECT);
	put(w, 1, LATE + 2, LATE + 4, 10, LATE + 2, 0);
	put(w, 1, LATE + 3, LATE + 5, 7, LATE + 3, SP_DESC_OBJECT);
	KUNIT_ASSERT_EQ(test, take(w, 1, LATE + 7, LATE + 4), 1);
}

/* What is behind an object waits for it; what is before it does not. */
static void order_object_take(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	struct sp_lane *lane = &w->lanes[1];

	world_at(w, LATE, LATE, LATE);
	put_objects(test, w);
	KUNIT_EXPECT_EQ(test, lane->seen.round, LATE + 7);
	KUNIT_EXPECT_EQ(test, lane->seen.count, LATE + 4);
	KUNIT_EXPECT_EQ(test, lane->seen.tail, LATE + 3);
	KUNIT_EXPECT_EQ(test, lane->objects, 2u);
	KUNIT_EXPECT_EQ(test, lane->object_bytes, 60007ull);
	KUNIT_EXPECT_EQ(test, lane->now.round, LATE + 3);
	KUNIT_EXPECT_EQ(test, lane->now.count, LATE + 1);
	KUNIT_EXPECT_EQ(test, lane->now.tail, LATE + 2);
	KUNIT_EXPECT_TRUE(test, sp_order_lacks(&w->o, 1));
	KUNIT_EXPECT_FALSE(test, sp_order_lacks(&w->o, 0));
	/* Nulls are owed for what was announced, not for what came. */
	KUNIT_EXPECT_EQ(test, sp_order_null_target(&w->o, 0), LATE + 7);
	w->lanes[0].now.round = LATE + 7;
	w->lanes[0].seen = w->lanes[0].now;
	KUNIT_EXPECT_TRUE(test, sp_order_advance(&w->o));
	KUNIT_EXPECT_EQ(test, w->nodes[0].received, (s64)(2 * (LATE + 3)));

	/* The same once more is no news. */
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 7, LATE + 4), 0);
	KUNIT_EXPECT_EQ(test, lane->objects, 2u);
	/* What follows is taken, and waits, too. */
	put(w, 1, LATE + 4, LATE + 7, 0, LATE + 3, 0);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 8, LATE + 5), 1);
	KUNIT_EXPECT_EQ(test, lane->now.count, LATE + 1);
	KUNIT_EXPECT_EQ(test, lane->seen.round, LATE + 8);

	/* Up to the next object, and not behind it. */
	sp_order_here(&w->o, 1);
	KUNIT_EXPECT_EQ(test, lane->now.round, LATE + 5);
	KUNIT_EXPECT_EQ(test, lane->now.count, LATE + 3);
	KUNIT_EXPECT_EQ(test, lane->now.tail, LATE + 3);
	KUNIT_EXPECT_TRUE(test, sp_order_lacks(&w->o, 1));
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 8, LATE + 5), 0);
	KUNIT_EXPECT_EQ(test, lane->now.count, LATE + 3);
	sp_order_here(&w->o, 1);
	KUNIT_EXPECT_EQ(test, memcmp(&lane->now, &lane->seen, sizeof(lane->now)), 0);
	KUNIT_EXPECT_FALSE(test, sp_order_lacks(&w->o, 1));
	KUNIT_EXPECT_GT(test, lane->now.round, 1ull << 32);
	/* The one after those is not here because they are. */
	put(w, 1, LATE + 5, LATE + 9, 8, LATE + 3, SP_DESC_OBJECT);
	KUNIT_EXPECT_EQ(test, take(w, 1, LATE + 10, LATE + 6), 1);
	KUNIT_EXPECT_TRUE(test, sp_order_lacks(&w->o, 1));
	KUNIT_EXPECT_EQ(test, lane->now.round, LATE + 9);
	KUNIT_EXPECT_EQ(test, lane->objects, 3u);
}

/* An own lane's objects are complete here. */
static void order_object_own(struct kunit *test)
{
	struct order_world *w = world(test, 2);

	w->lanes[0].desc = w->own;
	sp_tx_commit(&w->tx, 5000, SP_DESC_OBJECT);
	sp_order_own(&w->o, 0, &w->tx.now);
	KUNIT_EXPECT_FALSE(test, sp_order_lacks(&w->o, 0));
	KUNIT_EXPECT_EQ(test, w->lanes[0].now.round, 1ull);
	KUNIT_EXPECT_EQ(test, sp_order_null_target(&w->o, 1), 0ull);
	w->lanes[1].now.round = 1;
	w->nodes[1].received = 1;
	KUNIT_EXPECT_TRUE(test, sp_order_advance(&w->o));
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 1u);
	/* They are counted where they are sent, not here. */
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 1));
	KUNIT_EXPECT_EQ(test, w->lanes[0].objects, 0u);
	KUNIT_EXPECT_EQ(test, w->lanes[0].object_bytes, 0ull);
	KUNIT_EXPECT_EQ(test, w->lanes[0].head, 0ull);
	KUNIT_EXPECT_EQ(test, w->lanes[0].freed, 1ull);
}

static void order_object_deliver(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	struct sp_lane *lane = &w->lanes[1];
	const struct sp_log *log = w->log;

	world_at(w, LATE, LATE, LATE);
	put_objects(test, w);
	KUNIT_ASSERT_EQ(test, take(w, 0, LATE + 7, LATE), 1);
	w->nodes[1].received = S64_MAX;
	sp_order_advance(&w->o);
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 1u);
	/* For the messages that are here this node waits for nobody. */
	KUNIT_EXPECT_TRUE(test, sp_order_quiet(&w->o));
	sp_order_here(&w->o, 1);
	KUNIT_EXPECT_FALSE(test, sp_order_quiet(&w->o));
	sp_order_advance(&w->o);
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 2u);
	KUNIT_EXPECT_EQ(test, log[1].seq, (s64)(2 * (LATE + 3) + 1));
	KUNIT_EXPECT_EQ(test, log[1].pos, (u32)(LATE + 1));
	KUNIT_EXPECT_EQ(test, log[1].len, 60000u);
	KUNIT_EXPECT_EQ(test, log[1].flags, SP_DESC_OBJECT);
	KUNIT_EXPECT_EQ(test, log[2].pos, (u32)(LATE + 2) % UNITS);
	sp_order_here(&w->o, 1);
	sp_order_advance(&w->o);
	KUNIT_EXPECT_EQ(test, sp_order_deliver(&w->o, U32_MAX), 1u);
	KUNIT_EXPECT_EQ(test, log[3].pos, (u32)(LATE + 3));
	KUNIT_EXPECT_EQ(test, w->o.messages, 4ull);
	KUNIT_EXPECT_EQ(test, w->o.bytes, 60117ull);

	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 1));
	KUNIT_EXPECT_EQ(test, lane->objects, 2u);
	KUNIT_EXPECT_EQ(test, lane->head, LATE + 2);
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 2));
	KUNIT_EXPECT_EQ(test, lane->objects, 1u);
	KUNIT_EXPECT_EQ(test, lane->object_bytes, 7ull);
	KUNIT_EXPECT_EQ(test, lane->head, LATE + 2);
	KUNIT_EXPECT_EQ(test, lane->freed, LATE + 2);
	KUNIT_EXPECT_TRUE(test, sp_order_release(&w->o, 4));
	KUNIT_EXPECT_EQ(test, lane->objects, 0u);
	KUNIT_EXPECT_EQ(test, lane->object_bytes, 0ull);
	KUNIT_EXPECT_EQ(test, lane->head, lane->now.tail);
	KUNIT_EXPECT_EQ(test, lane->freed, lane->now.count);
}

/* The edge of a view is before an object that somebody lacks. */
static void order_object_trim(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	u64 trim[2] = { LATE + 7, LATE + 4 };
	struct sp_point at;

	world_at(w, LATE, LATE, LATE);
	/* Turns of a view count from its base. */
	w->o.start = 2 * (s64)LATE;
	w->lanes[0].base = LATE;
	w->lanes[1].base = LATE;
	put_objects(test, w);
	KUNIT_ASSERT_EQ(test, take(w, 0, LATE + 7, LATE), 1);
	/* This node lacks it. */
	KUNIT_EXPECT_EQ(test, sp_order_trim(&w->o, trim), -EPROTO);
	trim[1] = LATE + 3;
	KUNIT_EXPECT_EQ(test, sp_order_trim(&w->o, trim), 0);
	KUNIT_EXPECT_EQ(test, w->o.published, 1ull);
	/* The lane enters the next view with it. */
	w->lanes[1].base = trim[1];
	sp_lane_point(&w->lanes[1], DEPTH, &at);
	KUNIT_EXPECT_EQ(test, at.round, LATE + 3);
	KUNIT_EXPECT_EQ(test, at.count, LATE + 1);
	KUNIT_EXPECT_EQ(test, at.tail, LATE + 2);
	/* Likewise where it is complete, and so is what follows. */
	sp_order_here(&w->o, 1);
	sp_order_here(&w->o, 1);
	sp_lane_point(&w->lanes[1], DEPTH, &at);
	KUNIT_EXPECT_EQ(test, at.count, LATE + 1);
	KUNIT_EXPECT_EQ(test, at.tail, LATE + 2);
}

/* Each row is one lie, or a truth at the limit of one. */
static void order_object_rejects(struct kunit *test)
{
	static const struct {
		const char *what;
		u32 max_object, len, flags;
		int want;
	} table[] = {
		{ "the smallest", 9, 1, SP_DESC_OBJECT, 1 },
		{ "the largest", 9, 9, SP_DESC_OBJECT, 1 },
		{ "the largest there is", U32_MAX, U32_MAX, SP_DESC_OBJECT, 1 },
		{ "the last kind", 9, 9, SP_DESC_OBJECT |
		  SP_SCHEDULE_HYBRID << SP_DESC_KIND_SHIFT, 1 },
		{ "state", 9, 9, SP_DESC_OBJECT | SP_DESC_STATE | SP_DESC_LAST |
		  5 << SP_DESC_UID_SHIFT, 1 },
		{ "empty", 9, 0, SP_DESC_OBJECT, -EPROTO },
		{ "too large", 9, 10, SP_DESC_OBJECT, -EPROTO },
		{ "length 2^32 - 1", 9, U32_MAX, SP_DESC_OBJECT, -EPROTO },
		{ "no such kind", 9, 9, SP_DESC_OBJECT |
		  (SP_SCHEDULE_HYBRID + 1) << SP_DESC_KIND_SHIFT, -EPROTO },
		{ "no such kind at all", 9, 9, SP_DESC_OBJECT |
		  SP_DESC_KIND_MASK << SP_DESC_KIND_SHIFT, -EPROTO },
		{ "a kind and no object", 9, 9,
		  SP_SCHEDULE_CHAIN << SP_DESC_KIND_SHIFT, -EPROTO },
		{ "the lane's last", 9, 9, SP_DESC_OBJECT | SP_DESC_FIN, -EPROTO },
		{ "for a member, and no state", 9, 9, SP_DESC_OBJECT |
		  5 << SP_DESC_UID_SHIFT, -EPROTO },
		{ "where there are none", 0, 1, SP_DESC_OBJECT, -EPROTO },
		{ "an empty one where there are none", 0, 0, SP_DESC_OBJECT,
		  -EPROTO },
	};
	struct order_world *w = world(test, 2);
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		world_init(w, 2);
		w->o.max_object = table[i].max_object;
		put(w, 1, 0, 0, table[i].len, 0, table[i].flags);
		KUNIT_EXPECT_EQ_MSG(test, take(w, 1, 1, 1), table[i].want, "%s",
				    table[i].what);
		KUNIT_EXPECT_EQ_MSG(test, w->lanes[1].seen.count,
				    table[i].want > 0 ? 1ull : 0ull, "%s",
				    table[i].what);
		KUNIT_EXPECT_EQ(test, w->lanes[1].objects,
				table[i].want > 0 ? 1u : 0u);
	}
	/* The place that it would have had counts as that of any other. */
	world_init(w, 2);
	put(w, 1, 0, 0, 9, 1, SP_DESC_OBJECT);
	KUNIT_EXPECT_EQ(test, take(w, 1, 1, 1), -EPROTO);
}

/* More than its owner can have kept, each good by itself. */
static void order_object_limits(struct kunit *test)
{
	struct order_world *w = world(test, 2);
	struct sp_desc *deep = kunit_kcalloc(test, 2 * DEEP, sizeof(*deep),
					     GFP_KERNEL);
	struct sp_lane *lane = &w->lanes[1];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, deep);
	w->o.depth = DEEP;
	lane->src = deep;
	lane->desc = deep + DEEP;
	for (i = 0; i <= SP_LANE_OBJECTS; i++)
		deep[i] = (struct sp_desc){ i, 3, 0, SP_DESC_OBJECT };
	KUNIT_EXPECT_EQ(test, take(w, 1, i, i), -EPROTO);
	KUNIT_EXPECT_EQ(test, take(w, 1, i - 1, i - 1), 1);
	KUNIT_EXPECT_EQ(test, lane->objects, SP_LANE_OBJECTS);
	KUNIT_EXPECT_EQ(test, take(w, 1, i, i), -EPROTO);
	KUNIT_EXPECT_EQ(test, lane->objects, SP_LANE_OBJECTS);
	/* Once the first is consumed here there is room. */
	lane->objects--;
	lane->object_bytes -= 3;
	lane->freed++;
	KUNIT_EXPECT_EQ(test, take(w, 1, i, i), 1);

	sp_lane_init(lane, &(struct sp_point){ });
	deep[0] = (struct sp_desc){ 0, MAX_OBJECT, 0, SP_DESC_OBJECT };
	deep[1] = (struct sp_desc){ 1, MAX_OBJECT, 0, SP_DESC_OBJECT };
	deep[2] = (struct sp_desc){ 2, 1, 0, SP_DESC_OBJECT };
	KUNIT_EXPECT_EQ(test, take(w, 1, 3, 3), -EPROTO);
	KUNIT_EXPECT_EQ(test, lane->object_bytes, 0ull);
	KUNIT_EXPECT_EQ(test, take(w, 1, 2, 2), 1);
	KUNIT_EXPECT_EQ(test, lane->object_bytes, 2ull * MAX_OBJECT);
	KUNIT_EXPECT_EQ(test, take(w, 1, 3, 3), -EPROTO);
}

static struct kunit_case sp_order_cases[] = {
	KUNIT_CASE(order_received_num),
	KUNIT_CASE(order_null_targets),
	KUNIT_CASE(order_nulls),
	KUNIT_CASE(order_tx_space),
	KUNIT_CASE(order_tx_wrap),
	KUNIT_CASE(order_tx_run),
	KUNIT_CASE(order_take),
	KUNIT_CASE(order_take_late),
	KUNIT_CASE(order_take_again),
	KUNIT_CASE(order_take_rejects),
	KUNIT_CASE(order_take_overrun),
	KUNIT_CASE(order_row),
	KUNIT_CASE(order_row_rejects),
	KUNIT_CASE(order_deliver),
	KUNIT_CASE(order_slots),
	KUNIT_CASE(order_log_wrap),
	KUNIT_CASE(order_object_space),
	KUNIT_CASE(order_object_commit),
	KUNIT_CASE(order_object_take),
	KUNIT_CASE(order_object_own),
	KUNIT_CASE(order_object_deliver),
	KUNIT_CASE(order_object_trim),
	KUNIT_CASE(order_object_rejects),
	KUNIT_CASE(order_object_limits),
	{}
};

struct kunit_suite sp_order_suite = {
	.name = "spindle_order",
	.test_cases = sp_order_cases,
};
