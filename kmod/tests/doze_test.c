// SPDX-License-Identifier: GPL-2.0
#include "../core/doze.h"
#include "suites.h"

/* The flag is odd from the moment it is raised until the sleeper is awake. */
static void doze_epochs(struct kunit *test)
{
	struct sp_doze d = { 0 };
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, (u32)d.state, (u32)SP_AWAKE);
		KUNIT_EXPECT_EQ(test, d.epoch, 2ull * i);
		KUNIT_EXPECT_FALSE(test, sp_doze_wake(&d));
		KUNIT_EXPECT_EQ(test, d.epoch, 2ull * i);
		sp_doze_begin(&d);
		KUNIT_EXPECT_EQ(test, (u32)d.state, (u32)SP_DOZING);
		KUNIT_EXPECT_EQ(test, d.epoch, 2ull * i + 1);
		if (i == 1) {
			/* News found by the last look. */
			KUNIT_EXPECT_TRUE(test, sp_doze_wake(&d));
			continue;
		}
		KUNIT_EXPECT_TRUE(test, sp_doze_look(&d, true));
		KUNIT_EXPECT_EQ(test, (u32)d.state, (u32)SP_ASLEEP);
		KUNIT_EXPECT_EQ(test, d.epoch, 2ull * i + 1);
		KUNIT_EXPECT_TRUE(test, sp_doze_wake(&d));
	}
}

static void doze_look(struct kunit *test)
{
	struct sp_doze d = { 0 };

	/* Awake, nothing is decided by a look. */
	KUNIT_EXPECT_FALSE(test, sp_doze_look(&d, true));
	KUNIT_EXPECT_EQ(test, (u32)d.state, (u32)SP_AWAKE);
	sp_doze_begin(&d);
	/* The flag is still on the way: whoever reads it now sees nothing. */
	KUNIT_EXPECT_FALSE(test, sp_doze_look(&d, false));
	KUNIT_EXPECT_EQ(test, (u32)d.state, (u32)SP_DOZING);
	KUNIT_EXPECT_TRUE(test, sp_doze_look(&d, true));
	KUNIT_EXPECT_FALSE(test, sp_doze_look(&d, true));
	KUNIT_EXPECT_EQ(test, (u32)d.state, (u32)SP_ASLEEP);
}

static void doze_one_wake(struct kunit *test)
{
	u64 woken = 0;

	KUNIT_EXPECT_FALSE(test, sp_wake_due(0, &woken));
	KUNIT_EXPECT_TRUE(test, sp_wake_due(1, &woken));
	KUNIT_EXPECT_FALSE(test, sp_wake_due(1, &woken));
	KUNIT_EXPECT_FALSE(test, sp_wake_due(2, &woken));
	KUNIT_EXPECT_TRUE(test, sp_wake_due(3, &woken));
	KUNIT_EXPECT_EQ(test, woken, 3ull);
	KUNIT_EXPECT_FALSE(test, sp_wake_due(3, &woken));
	KUNIT_EXPECT_TRUE(test, sp_wake_due(9, &woken));
}

static struct kunit_case sp_doze_cases[] = {
	KUNIT_CASE(doze_epochs),
	KUNIT_CASE(doze_look),
	KUNIT_CASE(doze_one_wake),
	{}
};

struct kunit_suite sp_doze_suite = {
	.name = "spindle_doze",
	.test_cases = sp_doze_cases,
};
