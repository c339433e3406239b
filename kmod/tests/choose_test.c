// SPDX-License-Identifier: GPL-2.0
#include "../core/choose.h"
#include "suites.h"

#define KB	(1U << 10)
#define MB	(1U << 20)

/* Every branch, with its reason. */
static void choose_branches(struct kunit *test)
{
	static const struct {
		const char *what;
		struct sp_choose by;
		bool object;
		enum sp_schedule_kind kind;
		const char *why;
	} table[] = {
		{ "small", { .len = 10, .max_msg = 4096, .nodes = 5 },
		  false, SP_SCHEDULE_PIPELINE, "it fits the ring" },
		{ "the largest for the ring",
		  { .len = 4096, .max_msg = 4096, .nodes = 5 },
		  false, SP_SCHEDULE_PIPELINE, "it fits the ring" },
		{ "nothing counts then",
		  { .len = 1, .max_msg = 4096, .nodes = 2, .racks = 2,
		    .kind = 1 + SP_SCHEDULE_CHAIN,
		    .wish = 1 + SP_SCHEDULE_TREE },
		  false, SP_SCHEDULE_PIPELINE, "it fits the ring" },
		{ "one byte more", { .len = 4097, .max_msg = 4096, .nodes = 5,
				     .racks = 1 },
		  true, SP_SCHEDULE_PIPELINE, "no schedule has fewer steps" },
		{ "the same, as wanted", { .len = 10, .max_msg = 4096, .nodes = 5,
					   .racks = 1, .always = true },
		  true, SP_SCHEDULE_PIPELINE, "no schedule has fewer steps" },
		{ "the sender's wish comes first",
		  { .len = MB, .max_msg = 4096, .nodes = 2, .racks = 2,
		    .kind = 1 + SP_SCHEDULE_CHAIN,
		    .wish = 1 + SP_SCHEDULE_TREE },
		  true, SP_SCHEDULE_TREE, "its sender wants it so" },
		{ "the first kind", { .len = MB, .nodes = 9,
				      .wish = 1 + SP_SCHEDULE_SEQUENTIAL },
		  true, SP_SCHEDULE_SEQUENTIAL, "its sender wants it so" },
		{ "the last kind", { .len = MB, .nodes = 9,
				     .wish = 1 + SP_SCHEDULE_HYBRID },
		  true, SP_SCHEDULE_HYBRID, "its sender wants it so" },
		{ "then the group's", { .len = MB, .nodes = 2, .racks = 2,
					.kind = 1 + SP_SCHEDULE_CHAIN },
		  true, SP_SCHEDULE_CHAIN, "the group was made so" },
		{ "one peer", { .len = MB, .nodes = 2, .racks = 2 },
		  true, SP_SCHEDULE_SEQUENTIAL,
		  "there is one node to send it to" },
		{ "no peer", { .len = MB, .nodes = 1, .racks = 1 },
		  true, SP_SCHEDULE_SEQUENTIAL,
		  "there is one node to send it to" },
		{ "racks", { .len = MB, .nodes = 6, .racks = 2 },
		  true, SP_SCHEDULE_HYBRID, "the nodes are in several racks" },
		{ "all but two in racks of their own",
		  { .len = MB, .nodes = 6, .racks = 5 },
		  true, SP_SCHEDULE_HYBRID, "the nodes are in several racks" },
		{ "each in a rack of its own", { .len = MB, .nodes = 6, .racks = 6 },
		  true, SP_SCHEDULE_PIPELINE, "no schedule has fewer steps" },
		{ "one rack", { .len = MB, .nodes = 3, .racks = 1 },
		  true, SP_SCHEDULE_PIPELINE, "no schedule has fewer steps" },
	};
	struct sp_choice choice;
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		memset(&choice, 0xff, sizeof(choice));
		sp_choose(&table[i].by, &choice);
		KUNIT_EXPECT_EQ_MSG(test, choice.object, table[i].object, "%s",
				    table[i].what);
		KUNIT_EXPECT_EQ_MSG(test, (int)choice.kind, (int)table[i].kind,
				    "%s", table[i].what);
		KUNIT_EXPECT_STREQ_MSG(test, choice.why, table[i].why, "%s",
				       table[i].what);
		KUNIT_EXPECT_EQ_MSG(test, choice.block,
				    sp_block_size(table[i].by.len,
						  table[i].by.block),
				    "%s", table[i].what);
	}
}

static void choose_block_size(struct kunit *test)
{
	static const struct {
		u32 len, block, want;
	} table[] = {
		{ 0, 0, SP_BLOCK_MIN },
		{ 1, 0, SP_BLOCK_MIN },
		{ 128 * SP_BLOCK_MIN, 0, SP_BLOCK_MIN },
		{ 129 * SP_BLOCK_MIN - 1, 0, SP_BLOCK_MIN },
		{ 129 * SP_BLOCK_MIN, 0, 2 * SP_BLOCK_MIN },
		{ 4 * MB, 0, 32 * KB },
		{ 8 * MB, 0, 64 * KB },
		{ 64 * MB, 0, SP_BLOCK_MAX },
		{ 1024 * MB, 0, SP_BLOCK_MAX },
		{ U32_MAX, 0, SP_BLOCK_MAX },
		/* As the group was made, unless there were too many. */
		{ MB, 16 * KB, 16 * KB },
		{ MB, 4 * MB, 4 * MB },
		{ 512 * MB - 1, 16 * KB, 16 * KB },
		{ 512 * MB, 16 * KB, 32 * KB },
		{ U32_MAX, 16 * KB, 128 * KB },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_EQ_MSG(test, sp_block_size(table[i].len, table[i].block),
				    table[i].want, "%u by %u", table[i].len,
				    table[i].block);
}

/* Whatever is asked for: a power of two, and never too many of them. */
static void choose_block_bounds(struct kunit *test)
{
	u32 block, size;
	u64 len;
	int i, k;

	for (i = 0; i < 33; i++) {
		for (k = -1; k <= 1; k++) {
			len = (1ull << i) + k;
			if (len > U32_MAX)
				continue;
			size = sp_block_size((u32)len, 0);
			KUNIT_EXPECT_GE(test, size, SP_BLOCK_MIN);
			KUNIT_EXPECT_LE(test, size, SP_BLOCK_MAX);
			for (block = 0; block <= 4 * MB;
			     block = block ? 2 * block : 4096) {
				size = sp_block_size((u32)len, block);
				KUNIT_EXPECT_EQ(test, size & (size - 1), 0u);
				KUNIT_EXPECT_GE(test, size, block);
				KUNIT_EXPECT_LE(test, (len + size - 1) / size,
						(u64)SP_BLOCKS_MAX);
			}
		}
	}
}

static void choose_names(struct kunit *test)
{
	static const char * const names[] = {
		"sequential", "chain", "tree", "pipeline", "hybrid",
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_STREQ(test, sp_schedule_name(i), names[i]);
	KUNIT_EXPECT_EQ(test, (int)SP_SCHEDULE_HYBRID + 1,
			(int)ARRAY_SIZE(names));
	KUNIT_EXPECT_STREQ(test, sp_schedule_name(SP_SCHEDULE_HYBRID + 1),
			   "unknown");
}

static struct kunit_case sp_choose_cases[] = {
	KUNIT_CASE(choose_branches),
	KUNIT_CASE(choose_block_size),
	KUNIT_CASE(choose_block_bounds),
	KUNIT_CASE(choose_names),
	{}
};

struct kunit_suite sp_choose_suite = {
	.name = "spindle_choose",
	.test_cases = sp_choose_cases,
};
