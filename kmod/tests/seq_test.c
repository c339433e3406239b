// SPDX-License-Identifier: GPL-2.0
#include "../core/seq.h"
#include "suites.h"

static void seq_order(struct kunit *test)
{
	s64 last = -1;
	u64 index;
	u32 rank;

	/* Round robin: by index, then by rank, without a gap. */
	for (index = 0; index < 5; index++) {
		for (rank = 0; rank < 3; rank++) {
			KUNIT_EXPECT_EQ(test, sp_seq(index, 3, rank), last + 1);
			last = sp_seq(index, 3, rank);
		}
	}
	KUNIT_EXPECT_EQ(test, sp_seq(1ull << 32, 64, 63),
			(s64)((64ull << 32) + 63));
}

static void seq_extend(struct kunit *test)
{
	static const struct {
		u64 last;
		u32 low;
		u64 want;
	} table[] = {
		{ 0, 0, 0 },
		{ 0, 1, 1 },
		{ 5, 5, 5 },
		{ 5, 4, 4 },
		{ 0xfffffffful, 0, 1ull << 32 },
		{ 0xfffffff0ul, 0x10, (1ull << 32) + 0x10 },
		{ 1ull << 32, 0xffffffff, 0xfffffffful },
		{ (7ull << 32) + 3, 2, (7ull << 32) + 2 },
		{ (7ull << 32) + 3, 0x7fffffff, (7ull << 32) + 0x7fffffff },
		/* Half the range away counts as a step back. */
		{ 1ull << 40, 0x80000000, (1ull << 40) - 0x80000000ull },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_EQ_MSG(test, sp_extend32(table[i].last, table[i].low),
				    table[i].want, "row %d", i);
}

static struct kunit_case sp_seq_cases[] = {
	KUNIT_CASE(seq_order),
	KUNIT_CASE(seq_extend),
	{}
};

struct kunit_suite sp_seq_suite = {
	.name = "spindle_seq",
	.test_cases = sp_seq_cases,
};
