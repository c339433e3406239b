// SPDX-License-Identifier: GPL-2.0
#include <linux/log2.h>
#include <linux/sizes.h>

#include "../group.h"
#include "suites.h"

#define DEVICE_PAGES	512	/* soft-RoCE's */

/* A view of members that are on so many nodes in turn, some of them receivers. */
static struct sp_view *view(struct kunit *test, u32 members, u32 nodes,
			    u32 receivers)
{
	struct sp_view *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	sp_view_init(v, members, 0);
	for (i = 0; i < members; i++) {
		struct sp_addr a = { .b = { [15] = i % nodes } };

		KUNIT_ASSERT_EQ(test, sp_view_add(v, &a, i, i < receivers ?
						  SP_MEMBER_RECEIVER : 0), 0);
	}
	KUNIT_ASSERT_EQ(test, sp_view_rank(v, 1), 0);
	return v;
}

static u64 bytes(const struct sp_view *v, u32 window, u32 depth)
{
	struct sp_config cfg = {
		.members = v->nmembers,
		.limit = v->nmembers,
		.window = window,
		.max_msg = window,
		.depth = depth,
	};

	return sp_memory_bytes(v, &cfg, 0, DEVICE_PAGES);
}

/*
 * What must be there: rings, descriptors there and here, the log. That is for as many
 * lanes that have gone, too, and a power of two.
 */
static u64 least(const struct sp_view *v, u32 window, u32 depth)
{
	u64 desc = depth * sizeof(struct sp_desc);
	u32 logged = min(2 * v->nlanes, SPINDLE_MAX_MEMBERS);

	return v->nlanes * (window + desc) +
	       (v->nlanes - v->nodes[0].lanes) * desc +
	       roundup_pow_of_two(logged * depth + v->nmembers + 1) *
	       sizeof(struct sp_log);
}

static void memory_is_close(struct kunit *test)
{
	static const u32 members[] = { 1, 2, 4, 8, 16, 32, 64 };
	u32 nodes, i;

	for (i = 0; i < ARRAY_SIZE(members); i++)
		for (nodes = 1 + members[i] / 40; nodes <= members[i]; nodes *= 2) {
			struct sp_view *v = view(test, members[i], nodes, 0);
			u64 need = least(v, SZ_8M, 16384);

			KUNIT_EXPECT_GE(test, bytes(v, SZ_8M, 16384), need);
			KUNIT_EXPECT_LE(test, bytes(v, SZ_8M, 16384),
					need + need / 16 + SZ_64K);
			/* What is small is rounded to pages, for each lane and node. */
			need = least(v, SZ_4K, 16);
			KUNIT_EXPECT_GE(test, bytes(v, SZ_4K, 16), need);
			KUNIT_EXPECT_LE(test, bytes(v, SZ_4K, 16), 2 * need + SZ_128K +
					(members[i] + nodes) * 5 * SZ_4K);
		}
}

/* Nothing wraps, and the page in spindle(7) is right. */
static void memory_of_the_largest(struct kunit *test)
{
	struct sp_view *v = view(test, 64, 64, 0);

	KUNIT_EXPECT_GT(test, bytes(v, SZ_8M, 16384), 560ULL * SZ_1M);
	KUNIT_EXPECT_LT(test, bytes(v, SZ_8M, 16384), 620ULL * SZ_1M);
}

static void memory_of_receivers(struct kunit *test)
{
	u64 one = bytes(view(test, 1, 1, 0), SZ_1M, 64);
	u64 many = bytes(view(test, 40, 1, 39), SZ_1M, 64);

	/*
	 * They have no lanes, but each may have a view to follow when it goes, and
	 * messages of who comes in its place.
	 */
	KUNIT_EXPECT_GE(test, many, one);
	KUNIT_EXPECT_LT(test, many, one + 39 * SZ_16K + SZ_256K);
}

static void memory_grows(struct kunit *test)
{
	struct sp_view *v = view(test, 6, 2, 0);
	u32 window;

	for (window = SZ_4K; window < SZ_8M; window *= 2)
		KUNIT_EXPECT_LT(test, bytes(v, window, 64),
				bytes(v, 2 * window, 64) + 1);
	KUNIT_EXPECT_LT(test, bytes(v, SZ_1M, 64), bytes(v, SZ_1M, 16384));
	KUNIT_EXPECT_LT(test, bytes(v, SZ_1M, 64),
			bytes(view(test, 7, 2, 0), SZ_1M, 64));
	KUNIT_EXPECT_LT(test, bytes(v, SZ_1M, 64),
			bytes(view(test, 7, 7, 0), SZ_1M, 64));
}

static struct kunit_case sp_memory_cases[] = {
	KUNIT_CASE(memory_is_close),
	KUNIT_CASE(memory_of_the_largest),
	KUNIT_CASE(memory_of_receivers),
	KUNIT_CASE(memory_grows),
	{}
};

struct kunit_suite sp_memory_suite = {
	.name = "spindle_memory",
	.test_cases = sp_memory_cases,
};
