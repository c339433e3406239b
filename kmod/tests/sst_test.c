// SPDX-License-Identifier: GPL-2.0
#include "../core/sst.h"
#include "../core/view.h"
#include "suites.h"

static void sst_layout(struct kunit *test)
{
	static const u32 chunks[] = { 64, 256, 4096, 65536 };
	static const u32 depths[] = { 16, 1024, 1 << 16 };
	int c, d;

	for (c = 0; c < ARRAY_SIZE(chunks); c++) {
		for (d = 0; d < ARRAY_SIZE(depths); d++) {
			struct sp_layout lay;

			sp_layout_init(&lay, depths[d], 65536, chunks[c]);
			KUNIT_EXPECT_EQ(test, lay.depth, depths[d]);
			KUNIT_EXPECT_EQ(test, lay.window, 65536u);
			KUNIT_EXPECT_EQ(test, lay.ring_off % chunks[c], 0u);
			KUNIT_EXPECT_GE(test, lay.ring_off, depths[d] * 16);
			KUNIT_EXPECT_LT(test, lay.ring_off,
					depths[d] * 16 + chunks[c]);
			KUNIT_EXPECT_EQ(test, lay.size, lay.ring_off + 65536);
		}
	}
}

/* A row travels in one write, also that of the node with the most lanes. */
static void sst_row_fits(struct kunit *test)
{
	u32 most = (SP_CELL_LANES + SP_MAX_NODE_LANES) * sizeof(struct sp_cell);

	KUNIT_EXPECT_LE(test, most, SP_ROW_MAX);
	KUNIT_EXPECT_EQ(test, sp_row_off(2), 0u);
	KUNIT_EXPECT_GE(test, sp_row_off(3), most);
	KUNIT_EXPECT_LE(test, sp_row_off(3) + most, SP_ROWS_BYTES);
}

static void sst_cell(struct kunit *test)
{
	static const u64 values[] = { 0, 1, 255, 256, 1ull << 32, 1ull << 63, ~0ull };
	struct sp_cell cell = { 0 };
	u64 value = 77;
	int i;

	/* Memory that nobody has written yet is nothing. */
	KUNIT_EXPECT_FALSE(test, sp_cell_get(&cell, 0, &value));
	KUNIT_EXPECT_FALSE(test, sp_cell_get(&cell, 1, &value));
	KUNIT_EXPECT_EQ(test, value, 77ull);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		sp_cell_set(&cell, values[i], 9);
		KUNIT_EXPECT_TRUE(test, sp_cell_get(&cell, 9, &value));
		KUNIT_EXPECT_EQ(test, value, values[i]);
		/* What an old view wrote is nothing in the new one. */
		KUNIT_EXPECT_FALSE(test, sp_cell_get(&cell, 8, &value));
		KUNIT_EXPECT_FALSE(test, sp_cell_get(&cell, 10, &value));
		cell.check ^= 1ull << (i * 9);
		KUNIT_EXPECT_FALSE(test, sp_cell_get(&cell, 9, &value));
	}
}

/*
 * Any set of bytes of the new pair over the old one, the rest still old: it
 * holds together only when nothing or everything has landed. All 65536 sets.
 */
static void sst_cell_tears(struct kunit *test)
{
	static const u64 steps[][2] = {
		{ 0, 1 }, { 1, 2 }, { 255, 256 }, { 0xffff, 0x10000 },
		{ 0xffffffff, 1ull << 32 }, { 0x00000001ffffffff, 0x0000000300000000 },
		{ 0x0102030405060708, 0x1112131415161718 },
	};
	u32 accepted = 0;
	int i, b;
	u32 set;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct sp_cell old, new;

		sp_cell_set(&old, steps[i][0], 5);
		sp_cell_set(&new, steps[i][1], 5);
		for (set = 0; set < 1u << sizeof(old); set++) {
			struct sp_cell torn = old;
			u64 value;

			for (b = 0; b < sizeof(old); b++)
				if (set & 1u << b)
					((u8 *)&torn)[b] = ((u8 *)&new)[b];
			if (sp_cell_get(&torn, 5, &value) &&
			    value != old.value && value != new.value)
				accepted++;
			if (!memcmp(&torn, &old, sizeof(old)) ||
			    !memcmp(&torn, &new, sizeof(new)))
				continue;
			if (sp_cell_get(&torn, 5, &value))
				accepted++;
		}
	}
	KUNIT_EXPECT_EQ(test, accepted, 0u);
}

static void sst_progress(struct kunit *test)
{
	u64 word = sp_progress((5ull << 32) + 7, (6ull << 32) + 3);

	KUNIT_EXPECT_EQ(test, sp_progress_round(word), 7u);
	KUNIT_EXPECT_EQ(test, sp_progress_count(word), 3u);
	word = sp_progress(0xffffffff, 0xffffffff);
	KUNIT_EXPECT_EQ(test, word, ~0ull);
}

static void sst_units(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sp_units(0), 0u);
	KUNIT_EXPECT_EQ(test, sp_units(1), 1u);
	KUNIT_EXPECT_EQ(test, sp_units(SP_UNIT - 1), 1u);
	KUNIT_EXPECT_EQ(test, sp_units(SP_UNIT), 1u);
	KUNIT_EXPECT_EQ(test, sp_units(SP_UNIT + 1), 2u);
	KUNIT_EXPECT_EQ(test, sp_units(U32_MAX), 1u << (32 - SP_UNIT_SHIFT));
}

static struct kunit_case sp_sst_cases[] = {
	KUNIT_CASE(sst_layout),
	KUNIT_CASE(sst_row_fits),
	KUNIT_CASE(sst_cell),
	KUNIT_CASE(sst_cell_tears),
	KUNIT_CASE(sst_progress),
	KUNIT_CASE(sst_units),
	{}
};

struct kunit_suite sp_sst_suite = {
	.name = "spindle_sst",
	.test_cases = sp_sst_cases,
};
