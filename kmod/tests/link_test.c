// SPDX-License-Identifier: GPL-2.0
/* States of a link, of one that is connected to nothing. */
#include "../fabric/fabric.h"
#include "suites.h"

struct told {
	struct sp_link_user user;
	struct sp_link *link;
	int up;
	int down;
	int error;
	bool leaves;
};

static void told_up(struct sp_link_user *user)
{
	struct told *t = container_of(user, struct told, user);

	t->up++;
	if (t->leaves)
		list_del_init(&user->on_link);
}

static void told_down(struct sp_link_user *user, int error)
{
	struct told *t = container_of(user, struct told, user);

	t->down++;
	t->error = error;
}

static void link_nothing(struct work_struct *work)
{
}

/* So much of a link as a change of its state touches. */
static struct sp_link *link_new(struct kunit *test, enum sp_link_state state)
{
	struct sp_link *link = kunit_kzalloc(test, sizeof(*link), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, link);
	link->state = state;
	link->open = state != SP_LINK_DOWN;
	link->beat_ms = 1;
	spin_lock_init(&link->sq_lock);
	INIT_LIST_HEAD(&link->on_node);
	INIT_LIST_HEAD(&link->users);
	INIT_WORK(&link->rx, link_nothing);
	INIT_WORK(&link->stop, link_nothing);
	INIT_DELAYED_WORK(&link->beat, link_nothing);
	return link;
}

static void link_use(struct sp_link *link, struct told *t)
{
	t->link = link;
	t->user.up = told_up;
	t->user.down = told_down;
	list_add_tail(&t->user.on_link, &link->users);
}

static int link_set(struct sp_link *link, enum sp_link_state state, int error)
{
	int ret;

	mutex_lock(&sp_ctl);
	ret = sp_link_set_state(link, state, error);
	mutex_unlock(&sp_ctl);
	return ret;
}

static void link_drop(struct sp_link *link)
{
	cancel_delayed_work_sync(&link->beat);
	cancel_work_sync(&link->rx);
	cancel_work_sync(&link->stop);
}

/* Every step there is, and no other. */
static void link_states(struct kunit *test)
{
	static const bool legal[3][3] = {
		[SP_LINK_CONNECTING] = {
			[SP_LINK_UP] = true, [SP_LINK_DOWN] = true,
		},
		[SP_LINK_UP] = { [SP_LINK_DOWN] = true },
	};
	u32 from, to;

	for (from = SP_LINK_CONNECTING; from <= SP_LINK_DOWN; from++) {
		for (to = SP_LINK_CONNECTING; to <= SP_LINK_DOWN; to++) {
			struct sp_link *link = link_new(test, from);
			struct told t = {};
			bool ok = legal[from][to];

			link_use(link, &t);
			KUNIT_EXPECT_EQ_MSG(test, link_set(link, to, -EIO),
					    ok ? 0 : -EINVAL, "%u -> %u", from,
					    to);
			KUNIT_EXPECT_EQ(test, (u32)link->state, ok ? to : from);
			/* One that is refused changes nothing. */
			KUNIT_EXPECT_EQ(test, t.up, (int)(ok && to == SP_LINK_UP));
			KUNIT_EXPECT_EQ(test, t.down,
					(int)(ok && to == SP_LINK_DOWN));
			KUNIT_EXPECT_EQ(test, link->error, t.down ? -EIO : 0);
			KUNIT_EXPECT_EQ(test, list_empty(&link->users),
					(bool)t.down);
			if (t.down)
				KUNIT_EXPECT_FALSE(test, link->open);
			link_drop(link);
		}
	}
}

/* Each user hears once that it is up, and once, with the reason, that it is down. */
static void link_users(struct kunit *test)
{
	struct sp_link *link = link_new(test, SP_LINK_CONNECTING);
	struct told t[3] = { {}, { .leaves = true }, {} };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		link_use(link, &t[i]);
	KUNIT_EXPECT_EQ(test, link_set(link, SP_LINK_UP, 0), 0);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		KUNIT_EXPECT_EQ(test, t[i].up, 1);
	KUNIT_EXPECT_EQ(test, link_set(link, SP_LINK_DOWN, -ETIMEDOUT), 0);
	KUNIT_EXPECT_EQ(test, link_set(link, SP_LINK_DOWN, -EIO), -EINVAL);
	/* The first reason is the one that counts. */
	KUNIT_EXPECT_EQ(test, link->error, -ETIMEDOUT);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		KUNIT_EXPECT_EQ(test, t[i].up, 1);
		KUNIT_EXPECT_EQ(test, t[i].down, t[i].leaves ? 0 : 1);
		KUNIT_EXPECT_EQ(test, t[i].error, t[i].leaves ? 0 : -ETIMEDOUT);
	}
	link_drop(link);
}

/* Requests that do not complete are waited for so long; any that does counts. */
static void link_stalls(struct kunit *test)
{
	struct sp_link *link = link_new(test, SP_LINK_UP);
	u32 beats = (32ull << sp_ack_timeout) * 4096 / NSEC_PER_MSEC;
	u32 i;

	mutex_lock(&sp_ctl);
	for (i = 0; i < 2 * beats; i++)
		KUNIT_EXPECT_FALSE(test, sp_link_stalled(link));
	link->built = 3;
	for (i = 1; i < beats; i++)
		KUNIT_EXPECT_FALSE(test, sp_link_stalled(link));
	link->completed = 1;
	for (i = 0; i < beats; i++)
		KUNIT_EXPECT_FALSE(test, sp_link_stalled(link));
	KUNIT_EXPECT_TRUE(test, sp_link_stalled(link));
	link->completed = 3;
	KUNIT_EXPECT_FALSE(test, sp_link_stalled(link));
	KUNIT_EXPECT_EQ(test, link->stalled, 0U);
	mutex_unlock(&sp_ctl);
}

/* Suites may run before the module has begun, or behind it. */
static int link_init(struct kunit *test)
{
	if (sp_wq)
		return 0;
	test->priv = alloc_workqueue("spindle-test", WQ_UNBOUND, 0);
	sp_wq = test->priv;
	return sp_wq ? 0 : -ENOMEM;
}

static void link_exit(struct kunit *test)
{
	if (!test->priv)
		return;
	destroy_workqueue(sp_wq);
	sp_wq = NULL;
}

static struct kunit_case sp_link_cases[] = {
	KUNIT_CASE(link_states),
	KUNIT_CASE(link_users),
	KUNIT_CASE(link_stalls),
	{}
};

struct kunit_suite sp_link_suite = {
	.name = "spindle_link",
	.init = link_init,
	.exit = link_exit,
	.test_cases = sp_link_cases,
};
