/* SPDX-License-Identifier: GPL-2.0 */
/*
 * So much of KUnit that the suites of core/, which is built in user space too,
 * run there as they are, without a guest: scripts/coverage counts their lines.
 */
#ifndef SHIM_KUNIT_TEST_H
#define SHIM_KUNIT_TEST_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef offsetof
#define offsetof(type, member)	__builtin_offsetof(type, member)
#endif
#define container_of(p, type, member)					\
	((type *)((char *)(p) - offsetof(type, member)))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define swap(a, b)							\
	do { __typeof__(a) t_ = (a); (a) = (b); (b) = t_; } while (0)
#define S64_MAX			INT64_MAX
#define S64_MIN			INT64_MIN
#define GFP_KERNEL		0

struct kunit;

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

struct kunit {
	void *priv;
	bool failed;
	struct shim_memory *held;
	jmp_buf out;
};

#define KUNIT_CASE(f)		{ .run = f, .name = #f }

extern struct kunit_suite *const shim_suites[];

#define kunit_test_suites(...)						\
	struct kunit_suite *const shim_suites[] = { __VA_ARGS__, NULL }

void *kunit_kcalloc(struct kunit *test, size_t n, size_t size, int gfp);

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	return kunit_kcalloc(test, 1, size, gfp);
}

__attribute__((format(printf, 6, 7)))
void shim_judge(struct kunit *test, bool ok, bool must, const char *file,
		int line, const char *more, ...);

#define SHIM_JUDGE(test, ok, must, ...)					\
	shim_judge(test, ok, must, __FILE__, __LINE__, __VA_ARGS__)

#define SHIM_COMPARE(test, a, op, b, must, ...)				\
do {									\
	__typeof__(a) shim_a = (a);					\
	__typeof__(b) shim_b = (b);					\
									\
	if (!(shim_a op shim_b)) {					\
		SHIM_JUDGE(test, false, false, "%s %s %s: %lld, %lld",	\
			   #a, #op, #b, (long long)shim_a,		\
			   (long long)shim_b);				\
		SHIM_JUDGE(test, false, must, "" __VA_ARGS__);		\
	}								\
} while (0)

#define KUNIT_EXPECT_EQ(t, a, b)	SHIM_COMPARE(t, a, ==, b, false)
#define KUNIT_EXPECT_NE(t, a, b)	SHIM_COMPARE(t, a, !=, b, false)
#define KUNIT_EXPECT_LT(t, a, b)	SHIM_COMPARE(t, a, <, b, false)
#define KUNIT_EXPECT_LE(t, a, b)	SHIM_COMPARE(t, a, <=, b, false)
#define KUNIT_EXPECT_GT(t, a, b)	SHIM_COMPARE(t, a, >, b, false)
#define KUNIT_EXPECT_GE(t, a, b)	SHIM_COMPARE(t, a, >=, b, false)
#define KUNIT_EXPECT_EQ_MSG(t, a, b, ...)				\
	SHIM_COMPARE(t, a, ==, b, false, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(t, a, b, ...)				\
	SHIM_COMPARE(t, a, <=, b, false, __VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(t, a, b, ...)				\
	SHIM_COMPARE(t, a, >=, b, false, __VA_ARGS__)
#define KUNIT_ASSERT_EQ(t, a, b)	SHIM_COMPARE(t, a, ==, b, true)
#define KUNIT_ASSERT_LT(t, a, b)	SHIM_COMPARE(t, a, <, b, true)
#define KUNIT_ASSERT_LE(t, a, b)	SHIM_COMPARE(t, a, <=, b, true)

#define KUNIT_EXPECT_TRUE(t, a)		SHIM_JUDGE(t, !!(a), false, "%s", #a)
#define KUNIT_EXPECT_FALSE(t, a)	SHIM_JUDGE(t, !(a), false, "!(%s)", #a)
#define KUNIT_EXPECT_TRUE_MSG(t, a, ...)				\
	SHIM_JUDGE(t, !!(a), false, __VA_ARGS__)
#define KUNIT_ASSERT_TRUE(t, a)		SHIM_JUDGE(t, !!(a), true, "%s", #a)
#define KUNIT_ASSERT_FALSE(t, a)	SHIM_JUDGE(t, !(a), true, "!(%s)", #a)
#define KUNIT_ASSERT_NOT_NULL(t, a)	SHIM_JUDGE(t, !!(a), true, "%s", #a)
#define KUNIT_EXPECT_STREQ(t, a, b)					\
	SHIM_JUDGE(t, !strcmp(a, b), false, "%s is \"%s\"", #a, a)
#define KUNIT_EXPECT_STREQ_MSG(t, a, b, ...)				\
	SHIM_JUDGE(t, !strcmp(a, b), false, __VA_ARGS__)

#endif /* SHIM_KUNIT_TEST_H */
