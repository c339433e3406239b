/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of <kunit/test.h> as the suites of the core use, in user space: there
 * they run over the core that the simulator was built with.
 */
#ifndef SIM_KUNIT_TEST_H
#define SIM_KUNIT_TEST_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define container_of(p, t, m)						\
	((__typeof__(t) *)((char *)(p) - offsetof(t, m)))
#define S64_MAX			INT64_MAX
#define S64_MIN			INT64_MIN
#define GFP_KERNEL		0
#define swap(a, b)							\
do {									\
	__typeof__(a) swap_was = (a);					\
	(a) = (b);							\
	(b) = swap_was;							\
} while (0)

/**
 * struct kunit - one case that runs
 * @failed: something was not as expected
 * @out: where an assertion that fails goes
 * @memory: what kunit_kzalloc() gave, newest first
 */
struct kunit {
	bool failed;
	jmp_buf out;
	void *memory;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(f)	{ .run_case = f, .name = #f }
/* What registers them in the module, kmod/tests/suites.c, lists them here. */
#define kunit_test_suites(...)						\
	struct kunit_suite * const kunit_suites[] = { __VA_ARGS__, NULL }

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp);
#define kunit_kcalloc(test, n, size, gfp)				\
	kunit_kzalloc(test, (n) * (size), gfp)
__attribute__((format(printf, 5, 6)))
bool kunit_check(struct kunit *test, bool ok, int line, const char *what,
		 const char *fmt, ...);

#define KUNIT_CHECK(test, what, ok, ...)				\
	kunit_check(test, ok, __LINE__, what, " " __VA_ARGS__)
#define KUNIT_DEMAND(test, what, ok)					\
do {									\
	if (!KUNIT_CHECK(test, what, ok))				\
		longjmp((test)->out, 1);				\
} while (0)

#define KUNIT_EXPECT_TRUE(test, a)	KUNIT_CHECK(test, #a, a)
#define KUNIT_EXPECT_FALSE(test, a)	KUNIT_CHECK(test, "!" #a, !(a))
#define KUNIT_EXPECT_EQ(test, a, b)	KUNIT_CHECK(test, #a " == " #b, (a) == (b))
#define KUNIT_EXPECT_NE(test, a, b)	KUNIT_CHECK(test, #a " != " #b, (a) != (b))
#define KUNIT_EXPECT_GE(test, a, b)	KUNIT_CHECK(test, #a " >= " #b, (a) >= (b))
#define KUNIT_EXPECT_GT(test, a, b)	KUNIT_CHECK(test, #a " > " #b, (a) > (b))
#define KUNIT_EXPECT_LE(test, a, b)	KUNIT_CHECK(test, #a " <= " #b, (a) <= (b))
#define KUNIT_EXPECT_LT(test, a, b)	KUNIT_CHECK(test, #a " < " #b, (a) < (b))
#define KUNIT_EXPECT_TRUE_MSG(test, a, ...)				\
	KUNIT_CHECK(test, #a, a, __VA_ARGS__)
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...)				\
	KUNIT_CHECK(test, #a " == " #b, (a) == (b), __VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(test, a, b, ...)				\
	KUNIT_CHECK(test, #a " >= " #b, (a) >= (b), __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(test, a, b, ...)				\
	KUNIT_CHECK(test, #a " <= " #b, (a) <= (b), __VA_ARGS__)
#define KUNIT_ASSERT_TRUE(test, a)	KUNIT_DEMAND(test, #a, a)
#define KUNIT_ASSERT_LE(test, a, b)	KUNIT_DEMAND(test, #a " <= " #b, (a) <= (b))
#define KUNIT_ASSERT_EQ(test, a, b)	KUNIT_DEMAND(test, #a " == " #b, (a) == (b))
#define KUNIT_ASSERT_NOT_NULL(test, p)	KUNIT_DEMAND(test, #p, (p) != NULL)

#endif /* SIM_KUNIT_TEST_H */
