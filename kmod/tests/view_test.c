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

	/* Without a sender there is nothing to order in the first view. */
	v = view(test, 2, 0);
	add(v, 1, 1, SP_MEMBER_RECEIVER);
	add(v, 2, 1, SP_MEMBER_RECEIVER);
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, v->id, 0ull);
	/* In a later one there may come a sender yet. */
	KUNIT_EXPECT_EQ(test, sp_view_rank(v, 2), 0);
	KUNIT_EXPECT_EQ(test, v->nlanes, 0u);
	KUNIT_EXPECT_EQ(test, v->id, 2ull);
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

/* A decision that a test makes up. */
struct decision {
	struct sp_view old;
	struct sp_view next;
	struct sp_proposal p;
};

static struct decision *decision(struct kunit *test, u32 wanted, u32 senders)
{
	struct decision *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, d);
	sp_view_init(&d->old, wanted, senders);
	return d;
}

static void joins(struct decision *d, u8 node, u64 cookie, u32 flags)
{
	struct sp_join_request *who = &d->p.joins[d->p.njoins++];

	who->addr = addr(node);
	who->cookie = cookie;
	who->flags = flags;
}

/* One step further: the next view is the old one. */
static int go_on(struct decision *d)
{
	int ret = sp_view_next(&d->old, &d->p, false, &d->next);

	memset(&d->p, 0, sizeof(d->p));
	if (!ret)
		d->old = d->next;
	return ret;
}

static void view_next(struct kunit *test)
{
	static const struct {
		u8 node, cookie;
		u32 rank, nr;
		s32 lane;
	} want[] = {
		{ 2, 1, 0, 0, 0 },
		{ 3, 1, 1, 0, 1 },
		{ 2, 3, 0, 2, 2 },
		{ 4, 1, 2, 0, 3 },
		{ 2, 4, 0, 1, 4 },	/* the number that 2 had */
		{ 3, 2, 1, 0, -1 },
		{ 2, 5, 0, 3, 5 },
		{ 3, 3, 1, 1, 6 },
	};
	struct decision *d = decision(test, 5, 0);
	int i;

	add(&d->old, 1, 1, 0);
	add(&d->old, 2, 1, 0);
	add(&d->old, 2, 2, 0);
	add(&d->old, 3, 1, 0);
	add(&d->old, 2, 3, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 6), 0);
	sp_view_set_state(&d->old, SP_VIEW_ACTIVE);
	d->p.reason[0] = SP_LOST;
	d->p.reason[2] = SP_LEFT;
	joins(d, 4, 1, 0);
	joins(d, 2, 4, 0);
	joins(d, 3, 2, SP_MEMBER_RECEIVER);
	joins(d, 2, 5, 0);
	joins(d, 3, 3, 0);
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.id, 7ull);
	KUNIT_EXPECT_EQ(test, d->next.wanted, 5u);
	KUNIT_EXPECT_EQ(test, (int)d->next.state, (int)SP_VIEW_ACTIVE);
	KUNIT_ASSERT_EQ(test, d->next.nmembers, (u32)ARRAY_SIZE(want));
	KUNIT_EXPECT_EQ(test, d->next.nnodes, 3u);
	KUNIT_EXPECT_EQ(test, d->next.nlanes, 7u);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		const struct sp_member *m = &d->next.members[i];

		KUNIT_EXPECT_EQ_MSG(test, m->addr.b[15], want[i].node, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, m->cookie, (u64)want[i].cookie, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, m->node, want[i].rank, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, m->lane, want[i].lane, "%d", i);
		if (m->lane >= 0)
			KUNIT_EXPECT_EQ_MSG(test, m->nr, want[i].nr, "%d", i);
	}
	KUNIT_EXPECT_EQ(test, d->next.nodes[0].lanes, 4u);
	KUNIT_EXPECT_EQ(test, d->next.nodes[1].lanes, 2u);
	KUNIT_EXPECT_EQ(test, d->next.nodes[2].lanes, 1u);

	/* A hole below a number that stays: the highest one counts. */
	d->p.reason[0] = SP_LEFT;
	d->p.reason[4] = SP_LEFT;
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.nodes[0].lanes, 4u);
	KUNIT_EXPECT_EQ(test, d->next.members[1].nr, 2u);
	KUNIT_EXPECT_EQ(test, d->next.members[4].nr, 3u);
	/* Node 3's member comes first by then, and the node does not. */
	KUNIT_EXPECT_EQ(test, d->next.members[0].node, 1u);
	KUNIT_EXPECT_EQ(test, d->next.members[1].node, 0u);
}

/* Nobody comes when the stream ends with the view; members go all the same. */
static void view_next_ends(struct kunit *test)
{
	struct decision *d = decision(test, 2, 0);

	add(&d->old, 1, 1, 0);
	add(&d->old, 2, 1, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	d->p.reason[0] = SP_LEFT;
	joins(d, 3, 1, 0);
	KUNIT_ASSERT_EQ(test, sp_view_next(&d->old, &d->p, true, &d->next), 0);
	KUNIT_EXPECT_EQ(test, d->next.id, 2ull);
	KUNIT_EXPECT_EQ(test, d->next.nmembers, 1u);
	KUNIT_EXPECT_EQ(test, d->next.nnodes, 1u);
	KUNIT_EXPECT_EQ(test, d->next.next_uid, d->old.next_uid);
	KUNIT_ASSERT_EQ(test, sp_view_next(&d->old, &d->p, false, &d->next), 0);
	KUNIT_EXPECT_EQ(test, d->next.nmembers, 2u);
}

/* So many may send; who waits for it moves up. All means all who ever come. */
static void view_next_senders(struct kunit *test)
{
	struct decision *d = decision(test, 3, 2);
	u32 i;

	add(&d->old, 1, 1, 0);
	add(&d->old, 2, 1, 0);
	add(&d->old, 1, 2, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	KUNIT_EXPECT_EQ(test, d->old.members[2].lane, -1);
	d->p.reason[1] = SP_LOST;
	joins(d, 3, 1, 0);
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.nlanes, 2u);
	KUNIT_EXPECT_EQ(test, d->next.members[1].lane, 1);
	KUNIT_EXPECT_EQ(test, d->next.members[1].nr, 1u);
	KUNIT_EXPECT_EQ(test, d->next.members[2].lane, -1);

	d = decision(test, 1, 0);
	add(&d->old, 1, 1, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	joins(d, 2, 1, 0);
	joins(d, 3, 1, 0);
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.nlanes, 3u);
	/* No two that were ever members have the same number. */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, d->next.members[i].uid, i);
	/* Nobody is left to send, and then nobody at all. */
	d->p.reason[0] = SP_LEFT;
	d->p.reason[1] = SP_LEFT;
	d->p.reason[2] = SP_LEFT;
	joins(d, 4, 1, SP_MEMBER_RECEIVER);
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.nlanes, 0u);
	KUNIT_EXPECT_EQ(test, d->next.members[0].uid, 3u);
	KUNIT_EXPECT_EQ(test, d->next.nodes[0].lanes, 0u);
	d->p.reason[0] = SP_EXITED;
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.nmembers, 0u);
	KUNIT_EXPECT_EQ(test, d->next.nnodes, 0u);
	KUNIT_EXPECT_EQ(test, d->next.id, 4ull);
}

static void view_next_rejects(struct kunit *test)
{
	struct decision *d = decision(test, 2, 0);
	u32 i;

	add(&d->old, 1, 1, 0);
	add(&d->old, 2, 1, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	/* Who is in, and the same one twice. */
	joins(d, 2, 1, 0);
	KUNIT_EXPECT_EQ(test, go_on(d), -EINVAL);
	joins(d, 2, 2, 0);
	joins(d, 2, 2, 0);
	KUNIT_EXPECT_EQ(test, go_on(d), -EINVAL);

	/* More lanes than a node can have; more members than a view. */
	d = decision(test, SP_MAX_NODE_LANES, 0);
	for (i = 0; i < SP_MAX_NODE_LANES; i++)
		add(&d->old, 1, i, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	joins(d, 1, i, 0);
	KUNIT_EXPECT_EQ(test, go_on(d), -EINVAL);
	d = decision(test, SP_MAX_MEMBERS - 1, 0);
	for (i = 0; i < SP_MAX_MEMBERS - 1; i++)
		add(&d->old, i, 1, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	joins(d, 100, 1, 0);
	joins(d, 101, 1, 0);
	KUNIT_EXPECT_EQ(test, go_on(d), -EINVAL);
	joins(d, 100, 1, 0);
	KUNIT_EXPECT_EQ(test, go_on(d), 0);
	KUNIT_EXPECT_EQ(test, d->next.nmembers, (u32)SP_MAX_MEMBERS);
}

/* A node whose members all change has not stayed, though it is in both. */
static void view_stayed(struct kunit *test)
{
	static const bool stayed[] = { true, false, false, true, false };
	struct decision *d = decision(test, 6, 0);
	struct sp_view *old = view(test, 6, 0);
	u8 n;

	/* Node 0 stays, 1 goes, 2 begins anew, 3 changes in part, 4 comes. */
	add(&d->old, 0, 1, 0);
	add(&d->old, 1, 1, 0);
	add(&d->old, 2, 1, 0);
	add(&d->old, 2, 2, 0);
	add(&d->old, 3, 1, SP_MEMBER_RECEIVER);
	add(&d->old, 3, 2, 0);
	KUNIT_ASSERT_EQ(test, sp_view_rank(&d->old, 1), 0);
	*old = d->old;
	d->p.reason[1] = SP_LOST;
	d->p.reason[2] = SP_LEFT;
	d->p.reason[3] = SP_LEFT;
	d->p.reason[5] = SP_LEFT;
	joins(d, 2, 3, 0);
	joins(d, 3, 3, 0);
	joins(d, 4, 1, 0);
	KUNIT_ASSERT_EQ(test, go_on(d), 0);
	for (n = 0; n < ARRAY_SIZE(stayed); n++) {
		struct sp_addr a = addr(n);

		KUNIT_EXPECT_EQ_MSG(test, sp_view_stayed(&d->next, old, &a),
				    stayed[n], "node %u", n);
	}
}

/* Of any two sets without a node in common one at most may go on. */
static void view_quorum(struct kunit *test)
{
	struct sp_view *v = view(test, 0, 0);
	u64 set, other;

	for (v->nnodes = 1; v->nnodes <= 6; v->nnodes++) {
		u64 all = (1ull << v->nnodes) - 1;

		KUNIT_EXPECT_TRUE(test, sp_view_quorum(v, all));
		KUNIT_EXPECT_FALSE(test, sp_view_quorum(v, 0));
		for (set = 0; set <= all; set++) {
			bool ok = sp_view_quorum(v, set);

			/* And one of the two halves always may. */
			KUNIT_EXPECT_NE(test, ok, sp_view_quorum(v, all & ~set));
			for (other = 0; ok && other <= all; other++)
				if (!(set & other))
					KUNIT_EXPECT_FALSE(test, sp_view_quorum(v, other));
		}
	}
}

/* What a node that comes is told: the view is ranked anew, or refused. */
static void view_told(struct kunit *test)
{
	struct sp_view *v = view(test, 4, 2), *w = view(test, 0, 0);
	struct sp_addr a = addr(1);
	u32 i;

	add(v, 1, 1, 0);
	add(v, 1, 2, SP_MEMBER_RECEIVER);
	add(v, 2, 3, 0);
	add(v, 2, 4, SP_MEMBER_RECEIVER);
	KUNIT_ASSERT_EQ(test, sp_view_rank(v, 7), 0);
	for (i = 0; i < 4; i++)
		v->members[i].uid = 3 * i;

	/* The way it is said: lanes by their numbers, no rank among senders. */
#define TOLD(...)							\
	({								\
		*w = *v;						\
		w->id = 0;						\
		for (i = 0; i < w->nmembers; i++)			\
			w->members[i].lane = w->members[i].lane < 0 ? -1 : 0; \
		__VA_ARGS__;						\
		sp_view_told(w, 7);					\
	})
	KUNIT_EXPECT_EQ(test, TOLD(), 0);
	KUNIT_EXPECT_EQ(test, w->id, 7ull);
	KUNIT_EXPECT_EQ(test, w->nlanes, 2u);
	KUNIT_EXPECT_EQ(test, w->members[2].lane, 1);
	KUNIT_EXPECT_EQ(test, w->members[2].node, 1u);
	/* A view is told once. */
	KUNIT_EXPECT_EQ(test, sp_view_told(w, 8), -EINVAL);

	/* One has gone, and its number on the node with it. */
	KUNIT_EXPECT_EQ(test, TOLD(w->members[2].nr = SP_MAX_NODE_LANES - 1), 0);
	KUNIT_EXPECT_EQ(test, w->nodes[1].lanes, (u32)SP_MAX_NODE_LANES);

	KUNIT_EXPECT_EQ(test, TOLD(w->nmembers = 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->nmembers = SP_MAX_MEMBERS + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->nnodes = 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->nnodes = SP_MAX_MEMBERS + 1), -EINVAL);
	/* A node that is there twice, one without members, one that is missing. */
	KUNIT_EXPECT_EQ(test, TOLD(w->nodes[1].addr = a), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->nodes[w->nnodes++].addr = addr(3)), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->nnodes--), -EINVAL);
	/* A member that is there twice, a flag that nobody knows. */
	KUNIT_EXPECT_EQ(test, TOLD(w->members[1].cookie = 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->members[1].flags = ~0u), -EINVAL);
	/* A number that another one has, or nobody. */
	KUNIT_EXPECT_EQ(test, TOLD(w->members[3].uid = 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->members[3].uid = SP_UID_NOBODY), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->members[3].uid = SP_UID_MASK + 1), -EINVAL);
	/* Lanes: two of one number, one beyond the last, more than may send. */
	KUNIT_EXPECT_EQ(test, TOLD(w->members[1].flags = 0, w->members[1].lane = 0,
				   w->members[1].nr = 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->members[2].nr = SP_MAX_NODE_LANES), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->members[1].flags = 0, w->members[1].lane = 0,
				   w->members[1].nr = 1), -EINVAL);
	/* A receiver that sends, a sender that does not. */
	KUNIT_EXPECT_EQ(test, TOLD(w->members[1].lane = 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, TOLD(w->members[2].lane = -1), -EINVAL);
#undef TOLD
	*w = *v;
	w->id = 0;
	KUNIT_EXPECT_EQ(test, sp_view_told(w, 0), -EINVAL);
}

static struct kunit_case sp_view_cases[] = {
	KUNIT_CASE(view_add),
	KUNIT_CASE(view_del),
	KUNIT_CASE(view_rank),
	KUNIT_CASE(view_senders),
	KUNIT_CASE(view_limits),
	KUNIT_CASE(view_states),
	KUNIT_CASE(view_next),
	KUNIT_CASE(view_next_ends),
	KUNIT_CASE(view_next_senders),
	KUNIT_CASE(view_next_rejects),
	KUNIT_CASE(view_told),
	KUNIT_CASE(view_stayed),
	KUNIT_CASE(view_quorum),
	{}
};

struct kunit_suite sp_view_suite = {
	.name = "spindle_view",
	.test_cases = sp_view_cases,
};
