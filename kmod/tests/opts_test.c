// SPDX-License-Identifier: GPL-2.0
/* Of kmod/opts.c, at whose end it is taken in: options before any socket sees them. */
#include "suites.h"

static int take(void *to, size_t size, size_t least, const void *from,
		unsigned int len)
{
	return sp_opt_take(to, size, least, KERNEL_SOCKPTR((void *)from), len);
}

/* Shorter ones are filled up, longer ones must be empty beyond what is known. */
static void opts_take(struct kunit *test)
{
	u8 *from = kunit_kzalloc(test, PAGE_SIZE + 1, GFP_KERNEL);
	u8 to[16];

	KUNIT_ASSERT_NOT_NULL(test, from);
	memset(from, 0x55, 16);
	memset(to, 0xaa, sizeof(to));
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, to[0], 0xaa);
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, 4), 0);
	KUNIT_EXPECT_EQ(test, to[3], 0x55);
	KUNIT_EXPECT_EQ(test, to[4], 0);
	KUNIT_EXPECT_EQ(test, to[15], 0);
	KUNIT_EXPECT_EQ(test, take(to, 16, 16, from, 16), 0);
	KUNIT_EXPECT_EQ(test, to[15], 0x55);
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, PAGE_SIZE), 0);
	from[PAGE_SIZE - 1] = 1;
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, PAGE_SIZE), -E2BIG);
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, PAGE_SIZE - 1), 0);
	from[16] = 1;
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, 17), -E2BIG);
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, 16), 0);
	from[PAGE_SIZE - 1] = 0;
	from[16] = 0;
	KUNIT_EXPECT_EQ(test, take(to, 16, 4, from, PAGE_SIZE + 1), -E2BIG);
}

static void opts_names(struct kunit *test)
{
	static const char * const good[] = {
		"a", "group", "a.b", "...", ".a", "a..", "!\"#~", "A-b_9",
	};
	static const char * const bad[] = {
		"", ".", "..", "a b", "a/b", "/", "a\n", "\x7f", "gr\xc3\xbc",
	};
	char name[SPINDLE_NAME_LEN];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		strscpy_pad(name, good[i], sizeof(name));
		KUNIT_EXPECT_EQ_MSG(test, sp_name_check(name), 0, "%s", name);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		strscpy_pad(name, bad[i], sizeof(name));
		KUNIT_EXPECT_EQ_MSG(test, sp_name_check(name), -EINVAL, "%u", i);
	}
	/* It ends within its field. */
	memset(name, 'n', sizeof(name));
	KUNIT_EXPECT_EQ(test, sp_name_check(name), -EINVAL);
	name[sizeof(name) - 1] = 0;
	KUNIT_EXPECT_EQ(test, sp_name_check(name), 0);
}

static void opts_ranges(struct kunit *test)
{
	/* 0 is: as you like. */
	KUNIT_EXPECT_EQ(test, sp_range(0, 4, 8, true), 0);
	KUNIT_EXPECT_EQ(test, sp_range(3, 4, 8, false), -ERANGE);
	KUNIT_EXPECT_EQ(test, sp_range(4, 4, 8, true), 0);
	KUNIT_EXPECT_EQ(test, sp_range(6, 4, 8, false), 0);
	KUNIT_EXPECT_EQ(test, sp_range(6, 4, 8, true), -ERANGE);
	KUNIT_EXPECT_EQ(test, sp_range(8, 4, 8, true), 0);
	KUNIT_EXPECT_EQ(test, sp_range(9, 4, 8, false), -ERANGE);
	KUNIT_EXPECT_EQ(test, sp_range(U32_MAX, 4, 8, false), -ERANGE);
}

/* Flags and what is reserved, before the name. */
static void opts_check(struct kunit *test)
{
	__u32 resv[3] = {};
	u32 i;

	KUNIT_EXPECT_EQ(test, sp_opt_check("g", 0, 3, resv, 3), 0);
	KUNIT_EXPECT_EQ(test, sp_opt_check("g", 3, 3, resv, 3), 0);
	KUNIT_EXPECT_EQ(test, sp_opt_check("g", 4, 3, resv, 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, sp_opt_check("", 0, 3, resv, 3), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(resv); i++) {
		resv[i] = 1;
		KUNIT_EXPECT_EQ(test, sp_opt_check("g", 0, 3, resv, 3),
				-EINVAL);
		resv[i] = 0;
	}
}

struct change {
	size_t field;
	u32 value;
	int want;
	/* Together with: */
	size_t other;
	u32 and;
};

#define OF(name)	offsetof(struct sp_config, name)
#define GOOD(name, value)	{ OF(name), value, 0, OF(name), value }
#define BAD(name, value)	{ OF(name), value, -ERANGE, OF(name), value }

/* A configuration that holds, changed in a value or two. */
static void opts_config(struct kunit *test)
{
	static const struct sp_config right = {
		.members = 4, .senders = 2, .window = SP_DEFAULT_WINDOW,
		.max_msg = 1000, .depth = 64, .max_members = 8,
		.suspect_ms = 1000, .max_object = 1 << 20, .block = 1 << 16,
	};
	static const struct change table[] = {
		GOOD(members, 4),
		GOOD(members, 8),
		{ OF(members), SPINDLE_MAX_MEMBERS, 0,
		  OF(max_members), SPINDLE_MAX_MEMBERS },
		{ OF(members), SPINDLE_MAX_MEMBERS + 1, -ERANGE,
		  OF(max_members), SPINDLE_MAX_MEMBERS + 1 },
		GOOD(senders, 4),
		BAD(senders, 5),
		{ OF(members), 0, 0, OF(senders), SPINDLE_MAX_MEMBERS },
		{ OF(members), 0, -ERANGE, OF(senders), SPINDLE_MAX_MEMBERS + 1 },
		GOOD(max_members, 4),
		BAD(max_members, 3),
		BAD(max_members, SPINDLE_MAX_MEMBERS + 1),
		BAD(window, SPINDLE_MIN_WINDOW / 2),
		GOOD(window, SPINDLE_MIN_WINDOW),
		BAD(window, 3 * SPINDLE_MIN_WINDOW),
		BAD(window, 2 * SPINDLE_MAX_WINDOW),
		{ OF(window), SPINDLE_MAX_WINDOW, 0,
		  OF(max_msg), SPINDLE_MAX_WINDOW },
		{ OF(window), 0, 0, OF(max_msg), SPINDLE_MAX_WINDOW },
		{ OF(window), 0, -ERANGE, OF(max_msg), SPINDLE_MAX_WINDOW + 1 },
		GOOD(max_msg, SP_DEFAULT_WINDOW),
		BAD(max_msg, SP_DEFAULT_WINDOW + 1),
		BAD(depth, SPINDLE_MIN_DEPTH / 2),
		GOOD(depth, SPINDLE_MIN_DEPTH),
		BAD(depth, SPINDLE_MIN_DEPTH + 1),
		GOOD(depth, SPINDLE_MAX_DEPTH),
		BAD(depth, 2 * SPINDLE_MAX_DEPTH),
		BAD(suspect_ms, SPINDLE_MIN_SUSPECT - 1),
		GOOD(suspect_ms, SPINDLE_MIN_SUSPECT),
		GOOD(suspect_ms, SPINDLE_MAX_SUSPECT),
		BAD(suspect_ms, SPINDLE_MAX_SUSPECT + 1),
		GOOD(max_object, SPINDLE_MAX_OBJECT),
		BAD(max_object, SPINDLE_MAX_OBJECT + 1),
		BAD(block, SPINDLE_MIN_BLOCK / 2),
		BAD(block, 3 * SPINDLE_MIN_BLOCK),
		GOOD(block, SPINDLE_MAX_BLOCK),
		BAD(block, 2 * SPINDLE_MAX_BLOCK),
		GOOD(kind, SPINDLE_ALG_HYBRID),
		BAD(kind, SPINDLE_ALGS),
		BAD(kind, U32_MAX),
	};
	struct sp_config cfg = {};
	u32 i;

	/* As you like, all of it. */
	KUNIT_EXPECT_EQ(test, sp_config_check(&cfg), 0);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		const struct change *c = &table[i];

		cfg = right;
		*(u32 *)((void *)&cfg + c->field) = c->value;
		*(u32 *)((void *)&cfg + c->other) = c->and;
		KUNIT_EXPECT_EQ_MSG(test, sp_config_check(&cfg), c->want,
				    "change %u", i);
	}
}

/* What is 0 becomes the default, and all defaults hold together. */
static void opts_defaults(struct kunit *test)
{
	struct spindle_group_create opt = { .members = 3 };
	struct sp_config cfg = {};

	sp_config_take(&cfg, &opt);
	KUNIT_EXPECT_EQ(test, sp_config_check(&cfg), 0);
	KUNIT_EXPECT_EQ(test, cfg.members, 3U);
	KUNIT_EXPECT_EQ(test, cfg.window, SP_DEFAULT_WINDOW);
	KUNIT_EXPECT_EQ(test, cfg.max_msg, SP_DEFAULT_MSG);
	KUNIT_EXPECT_EQ(test, cfg.depth, SP_DEFAULT_DEPTH);
	KUNIT_EXPECT_EQ(test, cfg.max_members, SP_DEFAULT_MEMBERS);
	KUNIT_EXPECT_EQ(test, cfg.max_object, SP_DEFAULT_OBJECT);
	KUNIT_EXPECT_EQ(test, (u32)cfg.flags, 0U);

	/* A message fits the window, and the members the group. */
	memset(&cfg, 0, sizeof(cfg));
	opt.window = SPINDLE_MIN_WINDOW;
	opt.members = SP_DEFAULT_MEMBERS + 1;
	opt.flags = SPINDLE_F_MINORITY;
	sp_config_take(&cfg, &opt);
	KUNIT_EXPECT_EQ(test, cfg.max_msg, SPINDLE_MIN_WINDOW);
	KUNIT_EXPECT_EQ(test, cfg.max_members, SP_DEFAULT_MEMBERS + 1);
	KUNIT_EXPECT_EQ(test, (u32)cfg.flags, (u32)SP_CONFIG_MINORITY);

	/* A plain group has one sender and the members that it begins with. */
	memset(&cfg, 0, sizeof(cfg));
	opt.flags = SPINDLE_F_PLAIN;
	opt.members = 5;
	sp_config_take(&cfg, &opt);
	KUNIT_EXPECT_EQ(test, cfg.senders, 1U);
	KUNIT_EXPECT_EQ(test, cfg.max_members, 5U);
	KUNIT_EXPECT_EQ(test, (u32)cfg.flags, (u32)SP_CONFIG_PLAIN);
}

static struct kunit_case sp_opts_cases[] = {
	KUNIT_CASE(opts_take),
	KUNIT_CASE(opts_names),
	KUNIT_CASE(opts_ranges),
	KUNIT_CASE(opts_check),
	KUNIT_CASE(opts_config),
	KUNIT_CASE(opts_defaults),
	{}
};

struct kunit_suite sp_opts_suite = {
	.name = "spindle_opts",
	.test_cases = sp_opts_cases,
};
