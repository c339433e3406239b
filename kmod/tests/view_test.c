// SPDX-License-Identifier: GPL-2.0
#include "../core/view.h"
#include "suites.h"

static struct sp_addr addr(u8 n)
{
	struct sp_addr a = { .b = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = n } };

	return a;
}

static int add(struct sp_view *v, u8 node, u64 cookie, u32 flags)
{
	struct sp_addr a = addr(node);

	return sp_view_add(v, &a, cookie, flags);
}

static struct sp_view *view(struct kunit *test, u32 wanted, u32 senders)
{
	struct sp_view *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, v);
	sp_view_init(v, wanted, senders);
	return v;
}

static void view_add(struct kunit *test)
{
	struct sp_view *v = view(test, 3, 0);
	struct sp_addr a = addr(1);

	KUNIT_EXPECT_EQ(test, add(v, 1, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, add(v, 1, 1, 0), -EEXIST);
	KUNIT_EXPECT_EQ(test, add(v, 1, 2, ~SP_MEMBER_ALL), -EINVAL);
	KUNIT_EXPECT_EQ(test, add(v, 1, 2, 0), 0);
	KUNIT_EXPECT_FALSE(test, sp_view_complete(v));
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, add(v, 2, 1, SP_MEMBER_RECEIVER), 0);
	KUNIT_EXPECT_TRUE(test, sp_view_complete(v));
	KUNIT_EXPECT_EQ(test, add(v, 3, 1, 0), -EUSERS);
	KUNIT_EXPECT_EQ(test, sp_view_find_member(v, &a, 2), 1);
	KUNIT_EXPECT_EQ(test, sp_view_find_member(v, &a, 3), -ENOENT);
}

static void view_del(struct kunit *test)
{
	struct sp_view *v = view(test, 5, 0);
	struct sp_addr one = addr(1), two = addr(2), nine = addr(9);
	u64 cookie = 2;

	add(v, 1, 1, 0);
	add(v, 2, 1, 0);
	add(v, 1, 2, 0);
	add(v, 1, 3, 0);
	KUNIT_EXPECT_EQ(test, sp_view_del(v, &nine, NULL), 0u);
	KUNIT_EXPECT_EQ(test, sp_view_del(v, &two, &cookie), 0u);
	KUNIT_EXPECT_EQ(test, sp_view_del(v, &one, &cookie), 1u);
	KUNIT_EXPECT_EQ(test, v->nmembers, 3u);
	/* The others keep their order. */
	KUNIT_EXPECT_EQ(test, sp_view_find_member(v, &two, 1), 1);
	KUNIT_EXPECT_EQ(test, sp_view_find_member(v, &one, 3), 2);
	KUNIT_EXPECT_EQ(test, sp_view_del(v, &one, NULL), 2u);
	KUNIT_EXPECT_EQ(test, v->nmembers, 1u);
	KUNIT_EXPECT_EQ(test, sp_view_find_member(v, &two, 1), 0);
}

static void view_rank(struct kunit *test)
{
	struct sp_view *v = view(test, 5, 0);
	struct sp_addr one = addr(1), two = addr(2), three = addr(3);

	/* Node 2 comes first: nodes rank by their first member. */
	add(v, 2, 1, 0);
	add(v, 1, 1, SP_MEMBER_RECEIVER);
	add(v, 2, 2, 0);
	add(v, 3, 1, 0);
	add(v, 1, 2, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(v, 1), 0);
	KUNIT_EXPECT_EQ(test, v->id, 1ull);
	KUNIT_EXPECT_EQ(test, v->nnodes, 3u);
	KUNIT_EXPECT_EQ(test, v->nlanes, 4u);
	KUNIT_EXPECT_EQ(test, sp_view_find_node(v, &two), 0);
	KUNIT_EXPECT_EQ(test, sp_view_find_node(v, &one), 1);
	KUNIT_EXPECT_EQ(test, sp_view_find_node(v, &three), 2);
	KUNIT_EXPECT_EQ(test, v->nodes[0].lanes, 2u);
	KUNIT_EXPECT_EQ(test, v->nodes[1].lanes, 1u);
	KUNIT_EXPECT_EQ(test, v->nodes[2].lanes, 1u);
	KUNIT_EXPECT_EQ(test, v->members[0].lane, 0);
	KUNIT_EXPECT_EQ(test, v->members[1].lane, -1);
	KUNIT_EXPECT_EQ(test, v->members[2].lane, 1);
	KUNIT_EXPECT_EQ(test, v->members[3].lane, 2);
	KUNIT_EXPECT_EQ(test, v->members[4].lane, 3);
	KUNIT_EXPECT_EQ(test, v->members[4].node, 1u);

	/* Fixed from now on. */
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, sp_view_del(v, &one, NULL), 0u);
	KUNIT_EXPECT_EQ(test, add(v, 4, 1, 0), -EUSERS);
}

static void view_senders(struct kunit *test)
{
	struct sp_view *v = view(test, 4, 2);

	add(v, 1, 1, SP_MEMBER_RECEIVER);
	add(v, 2, 1, 0);
	add(v, 3, 1, 0);
	add(v, 4, 1, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(v, 1), 0);
	KUNIT_EXPECT_EQ(test, v->nlanes, 2u);
	KUNIT_EXPECT_EQ(test, v->members[1].lane, 0);
	KUNIT_EXPECT_EQ(test, v->members[2].lane, 1);
	KUNIT_EXPECT_EQ(test, v->members[3].lane, -1);

	/* Without a sender there is nothing to order. */
	v = view(test, 2, 0);
	add(v, 1, 1, SP_MEMBER_RECEIVER);
	add(v, 2, 1, SP_MEMBER_RECEIVER);
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, v->id, 0ull);
}

static void view_limits(struct kunit *test)
{
	struct sp_view *v = view(test, SP_MAX_MEMBERS, 0);
	u32 i;

	for (i = 0; i < SP_MAX_NODE_LANES; i++)
		KUNIT_ASSERT_EQ(test, add(v, 1, i, 0), 0);
	KUNIT_EXPECT_EQ(test, add(v, 1, i, 0), -EUSERS);
	for (; i < SP_MAX_MEMBERS; i++)
		KUNIT_ASSERT_EQ(test, add(v, 2, i, 0), 0);
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 1), 0);
	KUNIT_EXPECT_EQ(test, v->nlanes, (u32)SP_MAX_MEMBERS);
	KUNIT_EXPECT_EQ(test, v->nodes[0].lanes, (u32)SP_MAX_NODE_LANES);

	/* A list from elsewhere that names a member twice. */
	v = view(test, 2, 0);
	add(v, 1, 1, 0);
	add(v, 1, 2, 0);
	v->members[1].cookie = 1;
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 1), -EINVAL);
}

static void view_states(struct kunit *test)
{
	static const bool allowed[4][4] = {
		[SP_VIEW_FORMING] = {
			[SP_VIEW_ACTIVE] = true, [SP_VIEW_FAILED] = true,
		},
		[SP_VIEW_ACTIVE] = {
			[SP_VIEW_CLOSED] = true, [SP_VIEW_FAILED] = true,
		},
	};
	struct sp_view *v = view(test, 1, 0);
	int from, to;

	/* Nothing is active before it has its ranks. */
	KUNIT_EXPECT_EQ(test, sp_view_set_state(v, SP_VIEW_ACTIVE), -EINVAL);
	v->id = 1;
	for (from = 0; from < 4; from++) {
		for (to = 0; to < 4; to++) {
			bool ok = allowed[from][to];

			v->state = from;
			KUNIT_EXPECT_EQ_MSG(test, sp_view_set_state(v, to),
					    ok ? 0 : -EINVAL, "%d to %d", from, to);
			KUNIT_EXPECT_EQ(test, (int)v->state, ok ? to : from);
		}
	}
}

static struct kunit_case sp_view_cases[] = {
	KUNIT_CASE(view_add),
	KUNIT_CASE(view_del),
	KUNIT_CASE(view_rank),
	KUNIT_CASE(view_senders),
	KUNIT_CASE(view_limits),
	KUNIT_CASE(view_states),
	{}
};

struct kunit_suite sp_view_suite = {
	.name = "spindle_view",
	.test_cases = sp_view_cases,
};
