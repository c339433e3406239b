// SPDX-License-Identifier: GPL-2.0
/* Messages for one member alone, and who is up to date by them. */
#include "shell.h"

static const u32 one_each[] = { 0, 1, 2 };
static const u32 two_own[] = { 0, 1, 0 };

static u32 for_member(u32 uid, u32 flags)
{
	return SP_DESC_PRIVATE | flags | uid << SP_DESC_UID_SHIFT;
}

static u32 bytes(const struct posted *p)
{
	return p->run.bytes[0].len + p->run.bytes[1].len;
}

/* Of what is posted to a node: the @i-th, a run of so many messages and bytes. */
static void expect_run(struct kunit *test, struct shell *s, u32 i, u32 node, u32 messages,
		       u32 len)
{
	struct posted *p = &s->posted[i];

	KUNIT_ASSERT_LE(test, i + 1, s->nposted);
	KUNIT_EXPECT_EQ(test, (int)p->kind, (int)RUN);
	KUNIT_EXPECT_EQ(test, p->node, node);
	KUNIT_EXPECT_EQ(test, p->run.desc[0].len, messages * (u32)sizeof(struct sp_desc));
	KUNIT_EXPECT_EQ(test, bytes(p), len);
}

/* Descriptors go to all, bytes to one node; each part is one run. */
static void private_runs(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);

	sp_tx_commit(&s->tx[0], 64, 0);
	sp_tx_commit(&s->tx[0], 128, for_member(2, 0));
	sp_tx_commit(&s->tx[0], 100, for_member(2, SP_DESC_STATE));
	sp_tx_commit(&s->tx[0], 50, 0);
	KUNIT_EXPECT_TRUE(test, passed(s, SP_DID_NEWS));
	KUNIT_ASSERT_EQ(test, s->nposted, 6u);
	expect_run(test, s, 0, 1, 1, 64);
	expect_run(test, s, 1, 1, 2, 0);
	expect_run(test, s, 2, 1, 1, 50);
	KUNIT_EXPECT_EQ(test, s->posted[2].run.bytes[0].off, 5u * SP_UNIT);
	KUNIT_EXPECT_EQ(test, s->posted[2].run.desc[0].off, 3u * (u32)sizeof(struct sp_desc));
	KUNIT_EXPECT_EQ(test, (int)s->posted[3].kind, (int)ROW);
	/* Whose member reads all of it gets it in one. */
	expect_run(test, s, 4, 2, 4, 5 * SP_UNIT + 50);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[5], SP_CELL_LANES), sp_progress(4, 4));
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* Also for a member of the own node, which needs no copy, and for one that is gone. */
static void private_for_no_peer(struct kunit *test)
{
	struct shell *s = shell_new(test, two_own, 3, 2, 0);

	sp_tx_commit(&s->tx[0], 100, for_member(2, 0));
	sp_tx_commit(&s->tx[0], 100, for_member(0, 0));
	sp_tx_commit(&s->tx[0], 100, for_member(77, 0));
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	expect_run(test, s, 0, 1, 3, 0);
}

/* It is committed while a pass is on the way: what it sees of it later it knows, too. */
static void private_late(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);

	commit(s, 1, 10, 1);
	s->early = for_member(2, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->early, 0u);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, bytes(last_post(s, RUN, 1)), 0u);
	KUNIT_EXPECT_EQ(test, bytes(last_post(s, RUN, 2)), 10u);
}

/* Nulls come along with what is before them, whatever that is. */
static void private_nulls(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);

	sp_tx_commit(&s->tx[0], 100, for_member(2, 0));
	sp_tx_nulls(&s->tx[0], 3);
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_nulls(&s->tx[0], 7);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 5u);
	expect_run(test, s, 0, 1, 1, 0);
	expect_run(test, s, 1, 1, 1, 10);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[2], SP_CELL_LANES), sp_progress(7, 2));
	expect_run(test, s, 3, 2, 2, 2 * SP_UNIT + 10);
}

/*
 * A row carries the last part only: when it finds no room nothing that was posted before
 * it is posted once more, else a queue that is nearly full would never be behind.
 */
static void private_carried(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	u32 node;

	s->core.polled = false;
	for (node = 0; node < 3; node++) {
		s->peers[node].polled = false;
		s->peers[node].carry = 1024;
	}
	sp_tx_commit(&s->tx[0], 64, 0);
	sp_tx_commit(&s->tx[0], 128, for_member(2, 0));
	s->fail_row = 1;
	pass(s);
	KUNIT_EXPECT_TRUE(test, s->core.unposted);
	expect_run(test, s, 0, 1, 1, 64);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 0u);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 0u);
	KUNIT_ASSERT_EQ(test, count(s, ROW, 1), 1u);
	KUNIT_EXPECT_EQ(test, last_post(s, ROW, 1)->run.desc[0].len,
			(u32)sizeof(struct sp_desc));
	KUNIT_EXPECT_EQ(test, bytes(last_post(s, ROW, 1)), 0u);
	KUNIT_EXPECT_EQ(test, cell(test, last_post(s, ROW, 1), SP_CELL_LANES),
			sp_progress(2, 2));
}

/* What was posted and has not landed goes once more in the same parts. */
static void private_mended(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);

	sp_tx_commit(&s->tx[0], 64, for_member(2, 0));
	sp_tx_commit(&s->tx[0], 64, 0);
	pass(s);
	sp_core_cut(&s->core, 1);
	sp_core_mend(&s->core, 1);
	pass(s);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 1), 2u);
	expect_run(test, s, 0, 1, 1, 0);
	expect_run(test, s, 1, 1, 1, 64);
}

static void private_flags(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	static const struct {
		u32 flags;
		bool ok;
	} all[] = {
		{ 0, true },
		{ SP_DESC_FIN, true },
		{ SP_DESC_PRIVATE, true },
		{ SP_DESC_PRIVATE | SP_DESC_STATE, true },
		{ SP_DESC_PRIVATE | SP_UID_MASK << SP_DESC_UID_SHIFT, true },
		{ SP_DESC_STATE, false },
		{ SP_DESC_FIN | SP_DESC_PRIVATE, false },
		{ SP_DESC_FIN | SP_DESC_STATE, false },
		{ SP_LOG_EVENT, false },
		{ SP_DESC_PRIVATE | SP_LOG_EVENT, false },
		{ SP_DESC_PRIVATE | 1U << 4, false },
		{ SP_DESC_PRIVATE | 1U << 7, false },
		{ 1U << SP_DESC_UID_SHIFT, false },
		{ 1U << 31, false },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		KUNIT_EXPECT_EQ(test, sp_desc_flags_ok(all[i].flags), all[i].ok);
	/* Nobody's node is believed to say what no node says. */
	sp_tx_commit(theirs(s, 1), 10, SP_DESC_STATE);
	theirs_say(s, 1);
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
}

static void private_members(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);

	KUNIT_EXPECT_EQ(test, sp_tx_private(&s->tx[0], 0), 0);
	KUNIT_EXPECT_EQ(test, sp_tx_private(&s->tx[0], 2), 0);
	KUNIT_EXPECT_EQ(test, sp_tx_private(&s->tx[0], 3), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, sp_tx_private(&s->tx[0], SP_UID_NOBODY), -EHOSTUNREACH);
}

/* A peer's message, delivered here. */
static void hear(struct kunit *test, struct shell *s, u32 flags)
{
	s64 turn = s->core.order.start + 3 * (s64)theirs(s, 1)->now.round + 1;

	sp_tx_commit(theirs(s, 1), 10, flags);
	theirs_say(s, 1);
	promise(s, 2, theirs(s, 1)->now.round);
	pass(s);
	peer_row(s, 1, turn + 1, -1);
	peer_row(s, 2, turn + 1, -1);
	pass(s);
	KUNIT_EXPECT_GE(test, s->core.order.delivered, turn);
}

/* Who is up to date is known at its place in the order, and taken into the next view. */
static void private_state(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct sp_order *o = &s->core.order;

	KUNIT_ASSERT_NOT_NULL(test, p);
	s->view->members[0].flags |= SP_MEMBER_STALE;
	s->view->members[2].flags |= SP_MEMBER_STALE;
	sp_order_members(o, s->view);
	KUNIT_EXPECT_EQ(test, o->stale, 5ull);
	hear(test, s, for_member(2, 0));
	KUNIT_EXPECT_EQ(test, o->stale, 5ull);
	KUNIT_EXPECT_EQ(test, o->privates, 1ull);
	hear(test, s, for_member(1, SP_DESC_STATE));
	KUNIT_EXPECT_EQ(test, o->stale, 5ull);
	KUNIT_EXPECT_EQ(test, s->log[1].flags, for_member(1, SP_DESC_STATE));
	/* Of one that has gone nothing is said. */
	hear(test, s, for_member(7, SP_DESC_STATE));
	KUNIT_EXPECT_EQ(test, s->log[2].flags, for_member(SP_UID_NOBODY, 0));
	KUNIT_EXPECT_EQ(test, o->privates, 3ull);
	/* Nobody here reads any of that. */
	KUNIT_EXPECT_EQ(test, o->messages, 0ull);
	KUNIT_EXPECT_EQ(test, o->bytes, 0ull);
	hear(test, s, for_member(2, SP_DESC_STATE));
	KUNIT_EXPECT_EQ(test, o->stale, 1ull);
	hear(test, s, 0);
	hear(test, s, for_member(0, 0));
	KUNIT_EXPECT_EQ(test, o->privates, 5ull);
	KUNIT_EXPECT_EQ(test, o->messages, 2ull);
	KUNIT_EXPECT_EQ(test, o->bytes, 20ull);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	p->reason[1] = SP_LEFT;
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->view->members[0].flags, (u32)SP_MEMBER_STALE);
	KUNIT_EXPECT_EQ(test, s->view->members[1].flags, 0u);
	KUNIT_EXPECT_EQ(test, o->stale, 1ull);
}

/* It comes with the trim of the view: that is early enough. */
static void private_state_at_the_edge(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	s->view->members[2].flags |= SP_MEMBER_STALE;
	sp_order_members(&s->core.order, s->view);
	sp_tx_commit(theirs(s, 1), 10, for_member(2, SP_DESC_STATE));
	theirs_say(s, 1);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	p->reason[0] = SP_STAYS;
	p->njoins = 1;
	p->joins[0].addr.b[15] = 3;
	p->joins[0].cookie = 9;
	p->joins[0].flags = SP_MEMBER_STALE;
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->core.order.stale, 1ull << 3);
	KUNIT_EXPECT_EQ(test, s->view->members[2].flags, 0u);
}

/* Who comes to a node that is there is sent to from the first moment. */
static void private_for_who_comes(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u32 uid;

	KUNIT_ASSERT_NOT_NULL(test, p);
	sp_tx_commit(&s->tx[0], 100, for_member(2, 0));
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	p->trim[0] = 0;
	p->njoins = 1;
	p->joins[0].addr.b[15] = 1;
	p->joins[0].cookie = 9;
	p->joins[0].flags = SP_MEMBER_RECEIVER;
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	uid = s->view->members[3].uid;
	KUNIT_ASSERT_EQ(test, sp_tx_private(&s->tx[0], uid), 0);
	sp_tx_commit(&s->tx[0], 70, for_member(uid, 0));
	pass(s);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 1), 2u);
	KUNIT_ASSERT_EQ(test, count(s, RUN, 2), 2u);
	expect_run(test, s, 0, 1, 1, 0);
	expect_run(test, s, 1, 1, 1, 70);
	expect_run(test, s, 3, 2, 1, 100);
	expect_run(test, s, 4, 2, 1, 0);
}

static u32 giver(struct sp_view *v, u64 fins)
{
	sp_view_giver(v, fins);
	return v->giver;
}

static void private_giver(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_view *v = s->view;
	u32 i;

	for (i = 0; i < 3; i++)
		v->members[i].uid = 10 + i;
	/* Nobody needs anything. */
	KUNIT_EXPECT_EQ(test, giver(v, 0), SP_UID_NOBODY);
	v->members[2].flags |= SP_MEMBER_STALE;
	KUNIT_EXPECT_EQ(test, giver(v, 0), 10u);
	/* By rank among the senders. */
	KUNIT_EXPECT_EQ(test, giver(v, 1), 11u);
	v->members[0].lane = -1;
	v->members[1].lane = 0;
	v->members[2].lane = 1;
	KUNIT_EXPECT_EQ(test, giver(v, 2), 11u);
	KUNIT_EXPECT_EQ(test, giver(v, 1), SP_UID_NOBODY);
	v->members[1].flags |= SP_MEMBER_STALE;
	KUNIT_EXPECT_EQ(test, giver(v, 0), SP_UID_NOBODY);
}

/* One of a lower rank that is up to date now does not take over what is half done. */
static void private_giver_stays(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_view *v = s->view;

	v->members[0].flags |= SP_MEMBER_STALE;
	v->members[2].flags |= SP_MEMBER_STALE;
	KUNIT_EXPECT_EQ(test, giver(v, 0), 1u);
	v->members[0].flags = 0;
	KUNIT_EXPECT_EQ(test, giver(v, 0), 1u);
	/* When it can no more, or all is done, that is over. */
	KUNIT_EXPECT_EQ(test, giver(v, 2), 0u);
	v->members[2].flags = 0;
	KUNIT_EXPECT_EQ(test, giver(v, 0), SP_UID_NOBODY);
	v->members[1].flags |= SP_MEMBER_STALE;
	KUNIT_EXPECT_EQ(test, giver(v, 0), 0u);
}

/* Nor does it with a view that begins, and says so to all. */
static void private_giver_kept(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 2);
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	s->view->members[0].flags |= SP_MEMBER_STALE;
	s->view->members[2].flags |= SP_MEMBER_STALE;
	sp_order_members(&s->core.order, s->view);
	KUNIT_EXPECT_EQ(test, giver(s->view, 0), 1u);
	sp_tx_commit(theirs(s, 1), 10, for_member(0, SP_DESC_STATE));
	theirs_say(s, 1);
	promise(s, 0, 1);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->core.order.stale, 1ull << 2);
	KUNIT_EXPECT_EQ(test, s->view->giver, 1u);
}

/* It goes from view to view, and another one follows when it has gone. */
static void private_giver_of_views(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 2);
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	p->njoins = 1;
	p->joins[0].addr.b[15] = 3;
	p->joins[0].cookie = 9;
	p->joins[0].flags = SP_MEMBER_STALE;
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->view->giver, 0u);
	memset(p, 0, sizeof(*p));
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	p->reason[0] = SP_LOST;
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->view->giver, 1u);
	/* One that has said its last in the view before is none. */
	memset(p, 0, sizeof(*p));
	sp_tx_commit(theirs(s, 0), 0, SP_DESC_FIN);
	theirs_say(s, 0);
	KUNIT_EXPECT_EQ(test, sp_core_wedge(&s->core, p->trim), 0);
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->view->giver, 2u);
}

/* Numbers come round: not those of who is there, nor that of nobody. */
static void private_uids(struct kunit *test)
{
	struct shell *s = shell_new(test, one_each, 3, 3, 0);
	struct sp_proposal *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	s->view->next_uid = SP_UID_MASK - 1;
	p->njoins = 3;
	for (i = 0; i < 3; i++) {
		p->joins[i].addr.b[15] = 3;
		p->joins[i].cookie = 9 + i;
		p->joins[i].flags = SP_MEMBER_RECEIVER;
	}
	KUNIT_ASSERT_EQ(test, shell_change(s, p), 0);
	KUNIT_EXPECT_EQ(test, s->view->members[3].uid, SP_UID_MASK - 1);
	KUNIT_EXPECT_EQ(test, s->view->members[4].uid, 3u);
	KUNIT_EXPECT_EQ(test, s->view->members[5].uid, 4u);
}

static struct kunit_case sp_private_cases[] = {
	KUNIT_CASE(private_runs),
	KUNIT_CASE(private_for_no_peer),
	KUNIT_CASE(private_nulls),
	KUNIT_CASE(private_carried),
	KUNIT_CASE(private_mended),
	KUNIT_CASE(private_flags),
	KUNIT_CASE(private_members),
	KUNIT_CASE(private_state),
	KUNIT_CASE(private_state_at_the_edge),
	KUNIT_CASE(private_for_who_comes),
	KUNIT_CASE(private_giver),
	KUNIT_CASE(private_giver_stays),
	KUNIT_CASE(private_giver_kept),
	KUNIT_CASE(private_giver_of_views),
	KUNIT_CASE(private_late),
	KUNIT_CASE(private_uids),
	{}
};

struct kunit_suite sp_private_suite = {
	.name = "spindle_private",
	.test_cases = sp_private_cases,
};
