// SPDX-License-Identifier: GPL-2.0
#include "../core/schedule.h"
#include "suites.h"

#define NODES	40
#define BLOCKS	12

/* Who has what, as a bit a block. */
struct schedule_world {
	struct sp_schedule s[NODES];
	u32 has[NODES];
	u32 comes[NODES];
	u8 rack[NODES];
};

static void transfer(struct kunit *test, struct schedule_world *w,
		     enum sp_schedule_kind kind, u32 n, u32 blocks)
{
	const u8 *rack = kind == SP_SCHEDULE_HYBRID ? w->rack : NULL;
	unsigned int peer, back;
	u32 step, i, block, other;

	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, 0, sp_schedule_init(&w->s[i], kind, n, i,
							  blocks, rack));
		w->has[i] = i ? 0 : (1U << blocks) - 1;
	}
	for (step = 0; step < sp_schedule_steps(&w->s[0]); step++) {
		memset(w->comes, 0, sizeof(w->comes));
		for (i = 0; i < n; i++) {
			if (!sp_schedule_send(&w->s[i], step, &peer, &block))
				continue;
			KUNIT_ASSERT_LT(test, peer, n);
			KUNIT_ASSERT_LT(test, block, blocks);
			KUNIT_EXPECT_TRUE(test, w->has[i] & 1U << block);
			KUNIT_ASSERT_TRUE(test,
					  sp_schedule_recv(&w->s[peer], step,
							   &back, &other));
			KUNIT_EXPECT_EQ(test, back, i);
			KUNIT_EXPECT_EQ(test, other, block);
			KUNIT_EXPECT_EQ(test, w->comes[peer], 0U);
			KUNIT_EXPECT_FALSE(test, w->has[peer] & 1U << block);
			if (!w->has[peer])
				KUNIT_EXPECT_EQ(test, i,
						sp_schedule_first(&w->s[peer]));
			w->comes[peer] = 1U << block;
		}
		for (i = 0; i < n; i++) {
			if (!w->comes[i])
				KUNIT_EXPECT_FALSE(test,
						   sp_schedule_recv(&w->s[i], step,
								    &back, &other));
			w->has[i] |= w->comes[i];
		}
	}
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, w->has[i], (1U << blocks) - 1);
}

static void schedule_all_get_all(struct kunit *test)
{
	static const u32 blocks[] = { 1, 2, 3, BLOCKS };
	struct schedule_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 kind, n, i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	for (i = 0; i < NODES; i++)
		w->rack[i] = 7 - i % 5;
	for (n = 1; n <= NODES; n++)
		for (kind = 0; kind <= SP_SCHEDULE_HYBRID; kind++)
			for (i = 0; i < ARRAY_SIZE(blocks); i++)
				transfer(test, w, kind, n, blocks[i]);
}

static void schedule_steps(struct kunit *test)
{
	static const u8 rack[9] = { 3, 3, 3, 3, 3, 1, 1, 0, 0 };
	static const struct {
		u32 kind;
		u32 n;
		u32 blocks;
		u32 want;
	} table[] = {
		{ SP_SCHEDULE_SEQUENTIAL, 5, 10, 40 },
		{ SP_SCHEDULE_CHAIN, 5, 10, 13 },
		{ SP_SCHEDULE_TREE, 4, 10, 20 },
		{ SP_SCHEDULE_TREE, 5, 10, 30 },
		{ SP_SCHEDULE_PIPELINE, 1, 10, 0 },
		{ SP_SCHEDULE_PIPELINE, 2, 10, 10 },
		{ SP_SCHEDULE_PIPELINE, 3, 10, 11 },
		{ SP_SCHEDULE_PIPELINE, 4, 10, 11 },
		{ SP_SCHEDULE_PIPELINE, 5, 10, 12 },
		{ SP_SCHEDULE_PIPELINE, 512, 256, 264 },
		/* three racks, and five nodes in one */
		{ SP_SCHEDULE_HYBRID, 9, 10, 11 + 12 },
	};
	struct sp_schedule s;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		KUNIT_ASSERT_EQ(test, 0,
				sp_schedule_init(&s, table[i].kind, table[i].n, 0,
						 table[i].blocks,
						 table[i].kind == SP_SCHEDULE_HYBRID ?
						 rack : NULL));
		KUNIT_EXPECT_EQ(test, sp_schedule_steps(&s), table[i].want);
	}
}

/* Node 5 of eight, three blocks: worked out by hand from section 4.4. */
static void schedule_by_hand(struct kunit *test)
{
	static const struct {
		int to, sends, from, gets;
	} table[] = {
		{ -1, -1, -1, -1 },	/* rank 1 has its first */
		{ -1, -1, -1, -1 },
		{ -1, -1, 1, 0 },	/* along 2^2 */
		{ 4, 0, 4, 2 },
		{ 7, 2, 7, 1 },
	};
	struct sp_schedule s;
	unsigned int peer;
	u32 step, block;

	KUNIT_ASSERT_EQ(test, 0, sp_schedule_init(&s, SP_SCHEDULE_PIPELINE, 8, 5,
						  3, NULL));
	KUNIT_EXPECT_EQ(test, sp_schedule_steps(&s), (u32)ARRAY_SIZE(table));
	KUNIT_EXPECT_EQ(test, sp_schedule_first(&s), 1U);
	for (step = 0; step < ARRAY_SIZE(table); step++) {
		bool is = sp_schedule_send(&s, step, &peer, &block);

		KUNIT_EXPECT_EQ(test, is, table[step].to >= 0);
		if (is) {
			KUNIT_EXPECT_EQ(test, (int)peer, table[step].to);
			KUNIT_EXPECT_EQ(test, (int)block, table[step].sends);
		}
		is = sp_schedule_recv(&s, step, &peer, &block);
		KUNIT_EXPECT_EQ(test, is, table[step].from >= 0);
		if (is) {
			KUNIT_EXPECT_EQ(test, (int)peer, table[step].from);
			KUNIT_EXPECT_EQ(test, (int)block, table[step].gets);
		}
	}
}

static void schedule_nonsense(struct kunit *test)
{
	static const u8 rack[4];
	struct sp_schedule s;

	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_PIPELINE,
							0, 0, 1, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_PIPELINE,
							4, 4, 1, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_PIPELINE,
							4, 0, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_PIPELINE,
							4, 0, 1, rack));
	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_HYBRID,
							4, 0, 1, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_HYBRID + 1,
							4, 0, 1, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, sp_schedule_init(&s, SP_SCHEDULE_SEQUENTIAL,
							60000, 0, U32_MAX / 4,
							NULL));
}

static struct kunit_case sp_schedule_cases[] = {
	KUNIT_CASE(schedule_all_get_all),
	KUNIT_CASE(schedule_steps),
	KUNIT_CASE(schedule_by_hand),
	KUNIT_CASE(schedule_nonsense),
	{}
};

struct kunit_suite sp_schedule_suite = {
	.name = "spindle_schedule",
	.test_cases = sp_schedule_cases,
};
