// SPDX-License-Identifier: GPL-2.0
/* Nodes that agree on the next view: one's side by itself, and all together. */
#include "../core/agree.h"
#include "suites.h"

#define NODES	5

/*
 * struct camp - up to NODES nodes of one view
 * @next: room for a view that follows
 * @tells: what each has heard of each: by who heard, then by who said it
 * @t: room to make up a tell in
 */
struct camp {
	struct sp_view view;
	struct sp_view next;
	struct sp_agree a[NODES];
	struct sp_tell tells[NODES][NODES];
	struct sp_tell t;
};

static struct sp_addr addr(u8 n)
{
	struct sp_addr a = { .b = { [15] = n } };

	return a;
}

static struct sp_newcomer newcomer(u8 node, u64 cookie)
{
	struct sp_newcomer who = { .addr = addr(node), .cookie = cookie };

	return who;
}

static void camp_add(struct camp *c, u8 node, u64 cookie)
{
	struct sp_addr a = addr(node);

	sp_view_add(&c->view, &a, cookie, 0);
}

static void camp_init(struct kunit *test, struct camp *c)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, sp_view_rank(&c->view, 7), 0);
	KUNIT_ASSERT_LE(test, c->view.nnodes, (u32)NODES);
	for (i = 0; i < c->view.nnodes; i++) {
		sp_agree_init(&c->a[i], &c->view, i, c->tells[i]);
		c->a[i].limit = SP_MAX_MEMBERS;
		c->a[i].minority = false;
	}
}

/* One member on each of some nodes: member i is number 1 on node i. */
static void camp_pitch(struct kunit *test, struct camp *c, u32 nodes)
{
	u32 i;

	memset(c, 0, sizeof(*c));
	sp_view_init(&c->view, nodes, 0);
	for (i = 0; i < nodes; i++)
		camp_add(c, i, 1);
	camp_init(test, c);
}

static struct camp *camp(struct kunit *test, u32 nodes)
{
	struct camp *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	camp_pitch(test, c, nodes);
	return c;
}

static int step(struct camp *c, u32 node)
{
	return sp_agree_step(&c->a[node]);
}

static struct sp_tell *own(struct camp *c, u32 node)
{
	return sp_agree_own(&c->a[node]);
}

static void wedge(struct camp *c, u32 node, u64 rounds)
{
	u64 counts[SP_MAX_MEMBERS];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		counts[i] = rounds + i;
	sp_agree_wedged(&c->a[node], counts);
}

/* A made-up tell: empty but for what it suspects. */
static struct sp_tell *tell(struct camp *c, u64 suspected)
{
	memset(&c->t, 0, sizeof(c->t));
	c->t.view = c->view.id;
	c->t.suspected = suspected;
	return &c->t;
}

static struct sp_tell *tell_wedged(struct camp *c, u64 suspected, u64 rounds)
{
	u32 i;

	tell(c, suspected)->wedged = true;
	for (i = 0; i < c->view.nlanes; i++)
		c->t.counts[i] = rounds + i;
	return &c->t;
}

static void hear(struct kunit *test, struct camp *c, u32 at, u32 from)
{
	KUNIT_EXPECT_EQ(test, sp_agree_hear(&c->a[at], from, &c->t), 1);
}

/* What a node says comes to another one. */
static int say(struct camp *c, u32 from, u32 to)
{
	return sp_agree_hear(&c->a[to], from, own(c, from));
}

/* All that is said is heard at once, by these nodes of the view. */
static u64 talk(struct camp *c, u64 nodes)
{
	u64 decided = 0;
	u32 idle = 0;
	u32 i, k;
	int did;

	/* What is said in one round is acted upon in the next. */
	while (idle++ < 2) {
		for (i = 0; i < c->view.nnodes; i++) {
			if (!(nodes >> i & 1))
				continue;
			did = step(c, i);
			if (did < 0)
				continue;
			if (did & SP_AGREE_WEDGE) {
				wedge(c, i, 10 * (i + 1));
				did |= SP_AGREE_SAY;
			}
			if (did & SP_AGREE_DECIDED)
				decided |= 1ull << i;
			for (k = 0; k < c->view.nnodes; k++)
				if ((nodes >> k & 1) && k != i)
					say(c, i, k);
			if (did)
				idle = 0;
		}
	}
	return decided;
}

static bool same(const struct sp_proposal *a, const struct sp_proposal *b)
{
	return a->njoins == b->njoins &&
	       !memcmp(a->reason, b->reason, sizeof(a->reason)) &&
	       !memcmp(a->trim, b->trim, sizeof(a->trim)) &&
	       !memcmp(a->joins, b->joins, sizeof(a->joins));
}

static void agree_at_rest(struct kunit *test)
{
	struct camp *c = camp(test, 3);
	u32 i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, step(c, i), 0);
		KUNIT_EXPECT_EQ(test, sp_agree_alive(&c->a[i]), 7ull);
	}
	KUNIT_EXPECT_EQ(test, talk(c, 7), 0ull);
	KUNIT_EXPECT_FALSE(test, own(c, 0)->wedged);
}

static void agree_quorum(struct kunit *test)
{
	static const struct {
		u32 nodes, self;
		u64 suspected;
		bool ok;
	} table[] = {
		{ 1, 0, 0x0, true },
		{ 2, 0, 0x2, true },		/* half, with the lowest */
		{ 2, 1, 0x1, false },		/* half, without it */
		{ 3, 0, 0x2, true },
		{ 3, 2, 0x1, true },
		{ 3, 0, 0x6, false },		/* the lowest alone is no half */
		{ 4, 0, 0x8, true },
		{ 4, 0, 0xc, true },
		{ 4, 3, 0x6, true },
		{ 4, 3, 0x3, false },
		{ 4, 1, 0x9, false },
		{ 4, 0, 0xe, false },
		{ 5, 0, 0x18, true },
		{ 5, 4, 0x3, true },
		{ 5, 0, 0x1c, false },
	};
	struct camp *c = camp(test, 1);
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		camp_pitch(test, c, table[i].nodes);
		for (k = 0; k < table[i].nodes; k++)
			if (table[i].suspected >> k & 1)
				sp_agree_suspect(&c->a[table[i].self], k);
		KUNIT_EXPECT_EQ_MSG(test, step(c, table[i].self) < 0,
				    !table[i].ok, "row %u", i);
		if (table[i].ok)
			continue;
		KUNIT_EXPECT_EQ(test, step(c, table[i].self), -ENETDOWN);
		/* It can be told to go on nevertheless. */
		c->a[table[i].self].minority = true;
		KUNIT_EXPECT_EQ(test, step(c, table[i].self), SP_AGREE_WEDGE);
	}
}

static void agree_suspect(struct kunit *test)
{
	struct camp *c = camp(test, 3);
	struct sp_agree *a = &c->a[1];

	KUNIT_EXPECT_FALSE(test, sp_agree_suspect(a, 1));
	KUNIT_EXPECT_TRUE(test, sp_agree_suspect(a, 2));
	KUNIT_EXPECT_FALSE(test, sp_agree_suspect(a, 2));
	KUNIT_EXPECT_TRUE(test, sp_agree_suspects(a, 2));
	KUNIT_EXPECT_FALSE(test, sp_agree_suspects(a, 0));
	KUNIT_EXPECT_EQ(test, sp_agree_alive(a), 3ull);
	/* It is not heard any more. */
	tell_wedged(c, 1, 4);
	KUNIT_EXPECT_EQ(test, sp_agree_hear(a, 2, &c->t), 0);
	KUNIT_EXPECT_FALSE(test, a->tells[2].wedged);
}

/* What a node of lower rank suspects is adopted at once. */
static void agree_adopt_lower(struct kunit *test)
{
	u32 r;

	for (r = 0; r < 2; r++) {
		struct camp *c = camp(test, 4);

		tell(c, 1 << 3);
		hear(test, c, 2, r);
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY | SP_AGREE_WEDGE);
		KUNIT_EXPECT_TRUE(test, sp_agree_suspects(&c->a[2], 3));
		KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 8ull);
		/* Once is enough. */
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_WEDGE);
		/* The next rank is a higher one, too. */
		camp_pitch(test, c, 5);
		tell(c, 1 << (r + 1));
		hear(test, c, 4, r);
		KUNIT_EXPECT_EQ(test, step(c, 4), SP_AGREE_SAY | SP_AGREE_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 4)->suspected, 2ull << r);
	}
}

/* What one of higher rank suspects is not: who is meant hears it, too. */
static void agree_adopt_higher(struct kunit *test)
{
	struct camp *c = camp(test, 4);

	tell(c, 1 << 1);
	hear(test, c, 2, 3);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 0ull);
	/* Of the same node's suspicions those of higher ranks are. */
	tell(c, 1 << 0 | 1 << 3);
	hear(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY | SP_AGREE_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 8ull);
}

/* Two suspect each other: the higher rank alone goes, whoever spoke first. */
static void agree_mutual(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct camp *c = camp(test, 4);

		if (i) {
			tell(c, 1 << 1);
			hear(test, c, 2, 3);
			KUNIT_EXPECT_EQ(test, step(c, 2), 0);
		}
		tell(c, 1 << 3);
		hear(test, c, 2, 1);
		if (!i) {
			tell(c, 1 << 1);
			hear(test, c, 2, 3);
		}
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY | SP_AGREE_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 8ull);
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 8ull);
	}
}

/* Who suspects us does not hear us: it is lost, and so is what else it says. */
static void agree_suspects_us(struct kunit *test)
{
	static const u32 others[] = { 0, 4 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		struct camp *c = camp(test, 5);

		tell(c, 1 << 2 | 1 << 3);
		hear(test, c, 2, others[i]);
		KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY | SP_AGREE_WEDGE);
		KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 1ull << others[i]);
	}
}

/* A suspicion of a node that is suspected itself is not adopted. */
static void agree_suspects_silenced(struct kunit *test)
{
	struct camp *c = camp(test, 5);

	tell(c, 1 << 4);
	hear(test, c, 2, 1);
	sp_agree_suspect(&c->a[2], 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 2)->suspected, 2ull);
}

static void agree_wedge(struct kunit *test)
{
	struct camp *c = camp(test, 4);
	struct sp_newcomer who = newcomer(9, 1);

	/* Somebody is suspected. */
	sp_agree_suspect(&c->a[2], 3);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_WEDGE);
	wedge(c, 2, 5);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	KUNIT_EXPECT_EQ(test, own(c, 2)->counts[3], 8ull);

	/* Somebody is wedged; of a suspected one that is not read. */
	camp_pitch(test, c, 4);
	tell_wedged(c, 0, 5);
	hear(test, c, 2, 3);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_WEDGE);

	/* Somebody has accepted something. */
	camp_pitch(test, c, 4);
	tell(c, 0)->accepted.ballot = 1;
	hear(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_WEDGE);

	/* Somebody wants to leave: that is for the leader to see. */
	camp_pitch(test, c, 4);
	tell(c, 0)->leaves[3] = SP_LEFT;
	hear(test, c, 0, 3);
	hear(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
	camp_pitch(test, c, 4);
	KUNIT_EXPECT_TRUE(test, sp_agree_leave(&c->a[0], 0, SP_EXITED));
	KUNIT_EXPECT_TRUE(test, sp_agree_leave(&c->a[1], 1, SP_EXITED));
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);

	/* Somebody wants to come. */
	camp_pitch(test, c, 4);
	tell(c, 0)->nasks = 1;
	c->t.asks[0] = who;
	hear(test, c, 0, 2);
	hear(test, c, 1, 2);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
}

/* A wish that cannot be granted is no reason for a new view. */
/* Who has wedged does so for a reason, and need not say which. */
static void agree_wedge_along(struct kunit *test)
{
	struct camp *c = camp(test, 3);

	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	tell_wedged(c, 0, 10);
	hear(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, own(c, 0)->suspected, 0ull);
	KUNIT_EXPECT_EQ(test, step(c, 0) & SP_AGREE_WEDGE, SP_AGREE_WEDGE);
}

static void agree_no_room(struct kunit *test)
{
	struct camp *c = camp(test, 3);
	struct sp_newcomer who = newcomer(9, 1);
	u32 i;

	/* The group is full. */
	c->a[0].limit = 3;
	KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	/* Where one leaves there is room. */
	tell(c, 0)->leaves[2] = SP_LEFT;
	hear(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
	camp_pitch(test, c, 3);
	c->a[0].limit = 4;
	KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);

	/* It wants to be what there is not. */
	camp_pitch(test, c, 3);
	who.flags = ~SP_MEMBER_ALL;
	KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);

	/* It is in already, which who asked for it did not know yet. */
	camp_pitch(test, c, 3);
	tell(c, 0)->nasks = 1;
	c->t.asks[0] = newcomer(2, 1);
	hear(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);

	/* The node is full. */
	memset(c, 0, sizeof(*c));
	sp_view_init(&c->view, SP_MAX_NODE_LANES + 1, 0);
	camp_add(c, 0, 1);
	for (i = 0; i < SP_MAX_NODE_LANES; i++)
		camp_add(c, 1, i);
	camp_init(test, c);
	who = newcomer(1, SP_MAX_NODE_LANES);
	KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	who = newcomer(2, SP_MAX_NODE_LANES);
	KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
}

/* The leader waits until all are wedged and have promised. */
static void agree_lead_waits(struct kunit *test)
{
	struct camp *c = camp(test, 4);

	sp_agree_suspect(&c->a[1], 0);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_AGREE_WEDGE);
	wedge(c, 1, 5);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	tell_wedged(c, 1 << 0, 5);
	hear(test, c, 1, 2);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	/* One is not wedged. */
	tell(c, 1 << 0);
	hear(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	/* One has not promised: it still hears node 0. */
	c = camp(test, 4);
	sp_agree_suspect(&c->a[1], 0);
	wedge(c, 1, 5);
	tell_wedged(c, 1 << 0, 5);
	hear(test, c, 1, 2);
	tell_wedged(c, 0, 5);
	hear(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	tell_wedged(c, 1 << 0, 5);
	hear(test, c, 1, 3);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.ballot, 2u);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
}

/* Not before it is wedged itself, and nobody else makes one. */
static void agree_lead_alone(struct kunit *test)
{
	struct camp *c = camp(test, 3);
	u32 i;

	for (i = 0; i < 3; i++) {
		tell_wedged(c, 0, 5);
		if (i != 0)
			hear(test, c, 0, i);
		if (i != 1)
			hear(test, c, 1, i);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 0u);
	wedge(c, 1, 5);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, own(c, 1)->accepted.ballot, 0u);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);
}

/* What may have been decided is proposed again: the highest ballot counts. */
static void agree_lead_adopts(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	struct sp_agree *a = &c->a[2];

	sp_agree_suspect(a, 0);
	sp_agree_suspect(a, 1);
	wedge(c, 2, 50);
	tell_wedged(c, 3, 60)->accepted.ballot = 2;
	c->t.accepted.trim[0] = 22;
	c->t.accepted.reason[4] = SP_LEFT;
	c->t.accepted.njoins = 1;
	c->t.accepted.joins[0] = newcomer(9, 1);
	hear(test, c, 2, 3);
	tell_wedged(c, 3, 60)->accepted.ballot = 1;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 2, 4);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.ballot, 3u);
	KUNIT_EXPECT_TRUE(test, same(&own(c, 2)->accepted, &a->tells[3].accepted));
	/* Nothing of its own comes into it. */
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.reason[0], (u8)SP_STAYS);

	/* What it has accepted itself is one of them. */
	camp_pitch(test, c, 5);
	sp_agree_suspect(a, 0);
	sp_agree_suspect(a, 1);
	wedge(c, 2, 50);
	own(c, 2)->accepted.ballot = 2;
	own(c, 2)->accepted.trim[0] = 33;
	tell_wedged(c, 3, 60)->accepted.ballot = 1;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 2, 3);
	hear(test, c, 2, 4);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.ballot, 3u);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.trim[0], 33ull);

	/* Of a suspected node it is not read. */
	camp_pitch(test, c, 5);
	tell_wedged(c, 0, 60)->accepted.ballot = 2;
	hear(test, c, 2, 1);
	sp_agree_suspect(a, 0);
	sp_agree_suspect(a, 1);
	wedge(c, 2, 50);
	tell_wedged(c, 3, 60);
	hear(test, c, 2, 3);
	hear(test, c, 2, 4);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.reason[0], (u8)SP_LOST);
}

static void agree_proposal(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	struct sp_agree *a = &c->a[0];
	struct sp_newcomer who = newcomer(9, 1);
	const struct sp_proposal *p = sp_agree_decision(a);
	u32 i;

	/* Node 4 has received least, and wants what nobody gives it now. */
	tell_wedged(c, 0, 1)->leaves[4] = SP_SLOW;
	c->t.nasks = 1;
	c->t.asks[0] = newcomer(8, 1);
	hear(test, c, 0, 4);
	sp_agree_suspect(a, 4);
	sp_agree_ask(a, &who);
	wedge(c, 0, 50);
	tell_wedged(c, 1 << 4, 60)->leaves[1] = SP_EXITED;
	c->t.counts[2] = 7;
	c->t.nasks = 2;
	c->t.asks[0] = newcomer(9, 2);
	c->t.asks[1] = who;
	hear(test, c, 0, 1);
	tell_wedged(c, 1 << 4, 60)->leaves[2] = SP_SLOW;
	c->t.counts[0] = 3;
	hear(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	tell_wedged(c, 1 << 4, 70)->nasks = 1;
	c->t.asks[0] = newcomer(3, 5);
	hear(test, c, 0, 3);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);

	KUNIT_EXPECT_EQ(test, p->ballot, 1u);
	KUNIT_EXPECT_EQ(test, p->reason[0], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, p->reason[1], (u8)SP_EXITED);
	KUNIT_EXPECT_EQ(test, p->reason[2], (u8)SP_SLOW);
	KUNIT_EXPECT_EQ(test, p->reason[3], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, p->reason[4], (u8)SP_LOST);
	/* What all that are left have received, and who did counts. */
	KUNIT_EXPECT_EQ(test, p->trim[0], 3ull);
	KUNIT_EXPECT_EQ(test, p->trim[1], 51ull);
	KUNIT_EXPECT_EQ(test, p->trim[2], 7ull);
	KUNIT_EXPECT_EQ(test, p->trim[3], 53ull);
	KUNIT_EXPECT_EQ(test, p->trim[4], 54ull);
	KUNIT_ASSERT_EQ(test, p->njoins, 3u);
	for (i = 0; i < 3; i++) {
		struct sp_addr want = addr(i == 2 ? 3 : 9);

		KUNIT_EXPECT_EQ(test, sp_addr_cmp(&p->joins[i].addr, &want), 0);
		KUNIT_EXPECT_EQ(test, p->joins[i].cookie, i == 2 ? 5 : i + 1ull);
	}
	KUNIT_EXPECT_EQ(test, sp_view_next(&c->view, p, &c->next), 0);
	KUNIT_EXPECT_EQ(test, c->next.nmembers, 5u);
}

/* Of a member only its own node says that it leaves. */
static void agree_proposal_others(struct kunit *test)
{
	struct camp *c = camp(test, 3);

	c->tells[0][1].leaves[2] = SP_LEFT;
	c->tells[0][1].leaves[0] = SP_LEFT;
	c->tells[0][1].wedged = true;
	c->tells[0][2].wedged = true;
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.reason[0], (u8)SP_STAYS);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.reason[2], (u8)SP_STAYS);
}

/* A view takes in so many, a group holds so many, a node has so many. */
static void agree_proposal_caps(struct kunit *test)
{
	struct camp *c = camp(test, 3);
	const struct sp_proposal *p = sp_agree_decision(&c->a[0]);
	struct sp_newcomer who;
	u32 i;

	for (i = 0; i < SP_MAX_JOINS; i++) {
		who = newcomer(10 + i, 1);
		KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	}
	tell_wedged(c, 0, 5)->nasks = 1;
	c->t.asks[0] = newcomer(9, 1);
	hear(test, c, 0, 1);
	hear(test, c, 0, 2);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, p->njoins, (u32)SP_MAX_JOINS);
	KUNIT_EXPECT_EQ(test, p->joins[SP_MAX_JOINS - 1].addr.b[15],
			(u8)(10 + SP_MAX_JOINS - 1));

	/* Three are in, one of them leaves: two can come. */
	camp_pitch(test, c, 3);
	c->a[0].limit = 4;
	for (i = 0; i < 4; i++) {
		who = newcomer(10 + i, 1);
		who.flags = i ? 0 : ~SP_MEMBER_ALL;
		KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	}
	tell_wedged(c, 0, 5);
	hear(test, c, 0, 1);
	c->t.leaves[2] = SP_LEFT;
	hear(test, c, 0, 2);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_ASSERT_EQ(test, p->njoins, 2u);
	KUNIT_EXPECT_EQ(test, p->joins[0].addr.b[15], (u8)11);
	KUNIT_EXPECT_EQ(test, p->joins[1].addr.b[15], (u8)12);

	/* A node with room for one more. */
	memset(c, 0, sizeof(*c));
	sp_view_init(&c->view, SP_MAX_NODE_LANES, 0);
	camp_add(c, 0, 1);
	for (i = 1; i < SP_MAX_NODE_LANES; i++)
		camp_add(c, 1, i);
	camp_init(test, c);
	for (i = 0; i < 3; i++) {
		who = newcomer(i == 2 ? 2 : 1, 100 + i);
		KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who), 1);
	}
	tell_wedged(c, 0, 5);
	hear(test, c, 0, 1);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_ASSERT_EQ(test, p->njoins, 2u);
	KUNIT_EXPECT_EQ(test, p->joins[0].cookie, 100ull);
	KUNIT_EXPECT_EQ(test, p->joins[1].cookie, 102ull);
}

/* A node that goes comes back in the view after that, and does come back. */
static void agree_rejoin(struct kunit *test)
{
	struct camp *c = camp(test, 4);
	const struct sp_proposal *p = sp_agree_decision(&c->a[0]);
	struct sp_agree *next = &c->a[1];
	struct sp_newcomer who[] = { newcomer(2, 2), newcomer(3, 2), newcomer(9, 1) };
	u32 i;

	/* Node 2's one member leaves, node 3 is lost. */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who[i]), 1);
	sp_agree_suspect(&c->a[0], 3);
	wedge(c, 0, 5);
	tell_wedged(c, 1 << 3, 5);
	hear(test, c, 0, 1);
	c->t.leaves[2] = SP_LEFT;
	hear(test, c, 0, 2);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_ASSERT_EQ(test, p->njoins, 1u);
	KUNIT_EXPECT_EQ(test, p->joins[0].addr.b[15], (u8)9);

	KUNIT_ASSERT_EQ(test, sp_view_next(&c->view, p, &c->next), 0);
	KUNIT_ASSERT_EQ(test, c->next.nnodes, 3u);
	sp_agree_init(next, &c->next, 0, c->tells[1]);
	sp_agree_carry(next, &c->a[0]);
	KUNIT_EXPECT_EQ(test, own(c, 1)->nasks, 2u);
	next->self = 0;
	KUNIT_EXPECT_EQ(test, sp_agree_own(next)->suspected, 0ull);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_AGREE_WEDGE);

	/* Where another member stays the node does not go. */
	memset(c, 0, sizeof(*c));
	sp_view_init(&c->view, 3, 0);
	camp_add(c, 0, 1);
	camp_add(c, 1, 1);
	camp_add(c, 1, 2);
	camp_init(test, c);
	who[0] = newcomer(1, 3);
	KUNIT_EXPECT_EQ(test, sp_agree_ask(&c->a[0], &who[0]), 1);
	wedge(c, 0, 5);
	tell_wedged(c, 0, 5)->leaves[1] = SP_LEFT;
	hear(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, p->njoins, 1u);
}

/* A proposal never changes under its ballot. */
static void agree_frozen(struct kunit *test)
{
	struct camp *c = camp(test, 4);
	struct sp_newcomer who = newcomer(9, 1);
	u32 i;

	for (i = 1; i < 4; i++) {
		tell_wedged(c, 0, 5);
		hear(test, c, 0, i);
	}
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	c->t.accepted = own(c, 0)->accepted;
	sp_agree_ask(&c->a[0], &who);
	sp_agree_leave(&c->a[0], 0, SP_LEFT);
	sp_agree_suspect(&c->a[0], 3);
	KUNIT_EXPECT_EQ(test, step(c, 0), 0);
	KUNIT_EXPECT_EQ(test, own(c, 0)->accepted.ballot, 1u);
	KUNIT_EXPECT_TRUE(test, same(&own(c, 0)->accepted, &c->t.accepted));
}

static void agree_accept(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	const struct sp_proposal *p = &own(c, 3)->accepted;

	/* Node 1 is not the leader here, whatever it thinks. */
	tell_wedged(c, 0, 5)->accepted.ballot = 2;
	c->t.accepted.trim[0] = 22;
	hear(test, c, 3, 1);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_AGREE_WEDGE);
	wedge(c, 3, 50);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
	/* Nor is what node 0 has accepted of another one's. */
	tell_wedged(c, 0, 5)->accepted.ballot = 2;
	hear(test, c, 3, 0);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);

	camp_pitch(test, c, 5);
	tell_wedged(c, 0, 5)->accepted.ballot = 1;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 3, 0);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_AGREE_WEDGE);
	/* It has to be wedged: its counts must be known to be final. */
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_AGREE_WEDGE);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
	wedge(c, 3, 50);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, p->ballot, 1u);
	KUNIT_EXPECT_EQ(test, p->trim[0], 11ull);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	/* The next leader's takes its place, once that is the leader. */
	tell_wedged(c, 1 << 0, 5)->accepted.ballot = 2;
	c->t.accepted.trim[0] = 22;
	hear(test, c, 3, 1);
	KUNIT_EXPECT_EQ(test, step(c, 3), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 1u);
	sp_agree_suspect(&c->a[3], 0);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, p->ballot, 2u);
	KUNIT_EXPECT_EQ(test, p->trim[0], 22ull);
}

/* Decided is what all that are alive have accepted under one ballot. */
static void agree_decide(struct kunit *test)
{
	struct camp *c = camp(test, 4);

	sp_agree_suspect(&c->a[2], 3);
	wedge(c, 2, 50);
	tell_wedged(c, 1 << 3, 5)->accepted.ballot = 1;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 2, 0);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY);
	/* Node 1 has accepted nothing, then something else. */
	tell_wedged(c, 1 << 3, 5);
	hear(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	c->t.accepted.ballot = 2;
	hear(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	KUNIT_EXPECT_FALSE(test, c->a[2].decided);

	/* The last to accept decides at once, and says so first. */
	camp_pitch(test, c, 4);
	sp_agree_suspect(&c->a[2], 3);
	wedge(c, 2, 50);
	tell_wedged(c, 1 << 3, 5)->accepted.ballot = 1;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 2, 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);
	hear(test, c, 2, 0);
	KUNIT_EXPECT_EQ(test, step(c, 2), SP_AGREE_SAY | SP_AGREE_DECIDED);
	KUNIT_EXPECT_EQ(test, sp_agree_decision(&c->a[2])->trim[0], 11ull);
	KUNIT_EXPECT_EQ(test, own(c, 2)->accepted.ballot, SP_BALLOT_DECIDED);
	/* That is the end of it. */
	sp_agree_suspect(&c->a[2], 1);
	KUNIT_EXPECT_EQ(test, step(c, 2), 0);

	/* The leader by what the others say; all that is new is that it has. */
	camp_pitch(test, c, 2);
	wedge(c, 0, 5);
	tell_wedged(c, 0, 5);
	hear(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	c->t.accepted = own(c, 0)->accepted;
	hear(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY | SP_AGREE_DECIDED);

	/* A node alone decides by itself. */
	camp_pitch(test, c, 1);
	sp_agree_leave(&c->a[0], 0, SP_EXITED);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
	wedge(c, 0, 5);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY | SP_AGREE_DECIDED);
}

/* Who has decided says so, and nobody waits for it any more. */
static void agree_learn(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	const struct sp_proposal *p = sp_agree_decision(&c->a[1]);

	tell_wedged(c, 0, 5)->accepted.ballot = SP_BALLOT_DECIDED;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 1, 4);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_AGREE_WEDGE);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
	wedge(c, 1, 50);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_AGREE_SAY | SP_AGREE_DECIDED);
	KUNIT_EXPECT_EQ(test, p->ballot, SP_BALLOT_DECIDED);
	KUNIT_EXPECT_EQ(test, p->trim[0], 11ull);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);

	/* A leader, too, learns it, though others have promised nothing. */
	camp_pitch(test, c, 5);
	sp_agree_suspect(&c->a[1], 0);
	wedge(c, 1, 50);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	tell_wedged(c, 0, 5)->accepted.ballot = SP_BALLOT_DECIDED;
	c->t.accepted.trim[0] = 11;
	hear(test, c, 1, 4);
	KUNIT_EXPECT_EQ(test, step(c, 1), SP_AGREE_SAY | SP_AGREE_DECIDED);
	KUNIT_EXPECT_EQ(test, p->trim[0], 11ull);

	/* Not of one that is suspected. */
	camp_pitch(test, c, 5);
	tell_wedged(c, 0, 5)->accepted.ballot = SP_BALLOT_DECIDED;
	hear(test, c, 1, 4);
	sp_agree_suspect(&c->a[1], 4);
	wedge(c, 1, 50);
	KUNIT_EXPECT_EQ(test, step(c, 1), 0);
	KUNIT_EXPECT_EQ(test, p->ballot, 0u);
}

/* Nonsense is no correct node's; each row spoils a good tell of node 1. */
static void agree_hear_rejects(struct kunit *test)
{
	struct camp *c = camp(test, 3);
	u32 i;

	for (i = 0; i < 8; i++) {
		camp_pitch(test, c, 3);
		tell_wedged(c, 0, 5)->leaves[1] = SP_LEFT;
		c->t.nasks = SP_MAX_JOINS;
		c->t.accepted.ballot = 3;
		c->t.accepted.njoins = SP_MAX_JOINS;
		c->t.accepted.reason[2] = SP_REASONS - 1;
		switch (i) {
		case 0:
			c->t.nasks++;
			break;
		case 1:
			c->t.accepted.ballot++;
			break;
		case 2:
			c->t.accepted.njoins++;
			break;
		case 3:
			c->t.accepted.reason[2]++;
			break;
		case 4:
			c->t.suspected = 1 << 1;
			break;
		case 5:
			c->t.suspected = 1 << 3;
			break;
		case 6:
			c->t.leaves[1] = SP_REASONS;
			break;
		case 7:
			c->t.accepted.joins[1].flags = ~SP_MEMBER_ALL;
			break;
		}
		KUNIT_EXPECT_EQ_MSG(test, sp_agree_hear(&c->a[0], 1, &c->t), -EPROTO,
				    "case %u", i);
		KUNIT_EXPECT_FALSE(test, c->tells[0][1].wedged);
	}
	camp_pitch(test, c, 3);
	tell_wedged(c, 1 << 2, 5)->nasks = SP_MAX_JOINS;
	c->t.leaves[1] = SP_REASONS - 1;
	c->t.accepted.ballot = 3;
	c->t.accepted.njoins = SP_MAX_JOINS;
	c->t.accepted.reason[2] = SP_REASONS - 1;
	hear(test, c, 0, 1);
	/* Whom no view has seen can still be in no view. */
	camp_pitch(test, c, 3);
	tell(c, 0)->leaves[2] = SP_LEFT;
	KUNIT_EXPECT_EQ(test, sp_agree_hear(&c->a[0], 1, &c->t), -EPROTO);
}

/* What is older than what is known, or of another view, is no news. */
static void agree_hear_old(struct kunit *test)
{
	struct camp *c = camp(test, 4);
	u32 i;

	tell_wedged(c, 1 << 3, 5)->accepted.ballot = 2;
	c->t.nasks = 1;
	hear(test, c, 0, 1);
	for (i = 0; i < 5; i++) {
		tell_wedged(c, 1 << 3, 50)->accepted.ballot = 2;
		if (i == 0)
			c->t.suspected = 1 << 2;
		if (i == 1)
			c->t.wedged = false;
		if (i == 2)
			c->t.accepted.ballot = 1;
		if (i == 3)
			c->t.view++;
		if (i == 4)
			c->t.view--;
		KUNIT_EXPECT_EQ_MSG(test, sp_agree_hear(&c->a[0], 1, &c->t), 0,
				    "case %u", i);
		KUNIT_EXPECT_EQ(test, c->tells[0][1].counts[0], 5ull);
	}
	/* Nobody tells us what we say. */
	tell(c, 0);
	KUNIT_EXPECT_EQ(test, sp_agree_hear(&c->a[0], 0, &c->t), 0);
	/* Who asked may have given up: that is newer, not older. */
	tell_wedged(c, 1 << 3 | 1 << 2, 5)->accepted.ballot = 2;
	hear(test, c, 0, 1);
	KUNIT_EXPECT_EQ(test, c->tells[0][1].nasks, 0u);
	KUNIT_EXPECT_EQ(test, c->tells[0][1].suspected, 0xcull);
}

static void agree_asks(struct kunit *test)
{
	struct camp *c = camp(test, 2);
	struct sp_agree *a = &c->a[0];
	struct sp_newcomer who = newcomer(1, 1);
	u32 i;

	KUNIT_EXPECT_TRUE(test, sp_agree_leave(a, 0, SP_SLOW));
	KUNIT_EXPECT_FALSE(test, sp_agree_leave(a, 0, SP_LEFT));
	KUNIT_EXPECT_EQ(test, own(c, 0)->leaves[0], (u8)SP_SLOW);
	/* It is in. */
	KUNIT_EXPECT_EQ(test, sp_agree_ask(a, &who), 0);
	for (i = 0; i < SP_MAX_JOINS; i++) {
		who = newcomer(9, i);
		KUNIT_EXPECT_EQ(test, sp_agree_ask(a, &who), 1);
		KUNIT_EXPECT_EQ(test, sp_agree_ask(a, &who), 0);
	}
	who = newcomer(9, i);
	KUNIT_EXPECT_EQ(test, sp_agree_ask(a, &who), -EAGAIN);
	sp_agree_unask(a, &who.addr, i);
	KUNIT_EXPECT_EQ(test, own(c, 0)->nasks, (u32)SP_MAX_JOINS);
	sp_agree_unask(a, &who.addr, 3);
	KUNIT_EXPECT_EQ(test, own(c, 0)->nasks, SP_MAX_JOINS - 1u);
	for (i = 0; i < own(c, 0)->nasks; i++)
		KUNIT_EXPECT_NE(test, own(c, 0)->asks[i].cookie, 3ull);
	KUNIT_EXPECT_EQ(test, sp_agree_ask(a, &who), 1);
}

/* What a view did not settle is said again in the next one. */
static void agree_carry(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	struct sp_agree *old = &c->a[4];
	struct sp_agree *a = &c->a[0];
	struct sp_newcomer in = newcomer(9, 1), out = newcomer(9, 2);

	/*
	 * Node 0 goes; node 1 goes and would be back in no time; 2 and 3 stay:
	 * 3 is suspected by us alone, and our member wants to leave too late.
	 */
	sp_agree_suspect(old, 0);
	sp_agree_suspect(old, 1);
	sp_agree_suspect(old, 3);
	sp_agree_leave(old, 4, SP_LEFT);
	sp_agree_ask(old, &in);
	sp_agree_ask(old, &out);
	c->t.accepted.reason[0] = SP_LOST;
	c->t.accepted.reason[1] = SP_LOST;
	c->t.accepted.njoins = 2;
	c->t.accepted.joins[0] = in;
	c->t.accepted.joins[1] = newcomer(1, 2);
	KUNIT_ASSERT_EQ(test, sp_view_next(&c->view, &c->t.accepted, &c->next), 0);
	KUNIT_ASSERT_EQ(test, c->next.nnodes, 5u);
	memset(c->tells[0], 0xff, sizeof(c->tells[0]));
	sp_agree_init(a, &c->next, 2, c->tells[0]);
	KUNIT_EXPECT_EQ(test, c->tells[0][4].view, 8ull);
	sp_agree_carry(a, old);
	/* Node 3 has rank 1 now, our member rank 2. */
	KUNIT_EXPECT_EQ(test, sp_agree_own(a)->suspected, 2ull);
	KUNIT_EXPECT_EQ(test, sp_agree_own(a)->leaves[2], (u8)SP_LEFT);
	KUNIT_EXPECT_EQ(test, sp_agree_own(a)->leaves[4], (u8)SP_STAYS);
	KUNIT_ASSERT_EQ(test, sp_agree_own(a)->nasks, 1u);
	KUNIT_EXPECT_EQ(test, sp_agree_own(a)->asks[0].cookie, 2ull);
	KUNIT_EXPECT_FALSE(test, sp_agree_own(a)->wedged);
	KUNIT_EXPECT_EQ(test, sp_agree_own(a)->accepted.ballot, 0u);
	KUNIT_EXPECT_FALSE(test, a->decided);
}

/* Together: one leaves, one comes, one is lost, and all know it. */
static void agree_together(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	struct sp_newcomer who = newcomer(9, 1);
	u32 i;

	sp_agree_leave(&c->a[2], 2, SP_LEFT);
	sp_agree_ask(&c->a[3], &who);
	sp_agree_suspect(&c->a[1], 4);
	KUNIT_EXPECT_EQ(test, talk(c, 0xf), 0xfull);
	for (i = 0; i < 4; i++) {
		const struct sp_proposal *p = sp_agree_decision(&c->a[i]);

		KUNIT_EXPECT_TRUE(test, same(p, sp_agree_decision(&c->a[0])));
		KUNIT_EXPECT_EQ(test, p->reason[2], (u8)SP_LEFT);
		KUNIT_EXPECT_EQ(test, p->reason[4], (u8)SP_LOST);
		KUNIT_EXPECT_EQ(test, p->njoins, 1u);
		KUNIT_EXPECT_EQ(test, p->trim[0], 10ull);
		KUNIT_EXPECT_LE(test, p->trim[0], own(c, i)->counts[0]);
	}
}

/* The leader dies when one node has accepted, and may have told it. */
static void agree_leader_dies(struct kunit *test)
{
	struct camp *c = camp(test, 5);
	u32 i, k;

	sp_agree_leave(&c->a[0], 0, SP_LEFT);
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_WEDGE);
	wedge(c, 0, 10);
	for (i = 1; i < 5; i++) {
		say(c, 0, i);
		KUNIT_EXPECT_EQ(test, step(c, i), SP_AGREE_WEDGE);
		wedge(c, i, 20);
		say(c, i, 0);
	}
	KUNIT_EXPECT_EQ(test, step(c, 0), SP_AGREE_SAY);
	say(c, 0, 3);
	KUNIT_EXPECT_EQ(test, step(c, 3), SP_AGREE_SAY);
	/* Then it is suspected, and something else is wanted. */
	for (i = 1; i < 5; i++)
		sp_agree_suspect(&c->a[i], 0);
	sp_agree_leave(&c->a[1], 1, SP_LEFT);
	KUNIT_EXPECT_EQ(test, talk(c, 0x1e), 0x1eull);
	for (i = 1; i < 5; i++) {
		const struct sp_proposal *p = sp_agree_decision(&c->a[i]);

		KUNIT_EXPECT_EQ(test, p->ballot, SP_BALLOT_DECIDED);
		KUNIT_EXPECT_EQ(test, p->reason[0], (u8)SP_LEFT);
		KUNIT_EXPECT_EQ(test, p->reason[1], (u8)SP_STAYS);
		for (k = 0; k < 5; k++)
			KUNIT_EXPECT_EQ(test, p->trim[k], 10ull + k);
	}
}

/*
 * Any order of what is said, heard, suspected and lost: whoever decides, decides
 * the same, and has received what it says.
 */
struct storm {
	struct camp c;
	struct sp_tell flying[NODES][NODES];
	bool flies[NODES][NODES];
	u64 decided;
	u64 down;
	u32 seed;
};

static u32 draw(struct storm *s, u32 n)
{
	s->seed = s->seed * 1103515245 + 12345;
	return (s->seed >> 16) % n;
}

static void storm_step(struct storm *s, u32 i)
{
	struct camp *c = &s->c;
	int did = step(c, i);
	u32 k;

	if (did < 0) {
		s->down |= 1ull << i;
		return;
	}
	if (did & SP_AGREE_WEDGE)
		wedge(c, i, draw(s, 50));
	if (did & SP_AGREE_DECIDED)
		s->decided |= 1ull << i;
	/* One tell is on the way on each link; a later one follows it. */
	for (k = 0; k < c->view.nnodes; k++) {
		if (s->flies[i][k] || sp_agree_suspects(&c->a[i], k))
			continue;
		s->flying[i][k] = *own(c, i);
		s->flies[i][k] = true;
	}
}

static void storm_blow(struct kunit *test, struct storm *s, u32 nodes, u32 rounds)
{
	struct camp *c = &s->c;
	u32 i, k, r;

	for (r = 0; r < rounds; r++) {
		i = draw(s, nodes);
		k = draw(s, nodes);
		if (s->down >> i & 1)
			continue;
		switch (draw(s, 60)) {
		case 0:
			sp_agree_suspect(&c->a[i], k);
			break;
		case 1:
			sp_agree_leave(&c->a[i], i, SP_LEFT);
			break;
		case 2:
			if (!draw(s, 3))
				s->down |= 1ull << i;
			break;
		default:
			if (!s->flies[k][i])
				break;
			s->flies[k][i] = false;
			KUNIT_EXPECT_GE(test, sp_agree_hear(&c->a[i], k,
							    &s->flying[k][i]), 0);
		}
		storm_step(s, i);
	}
}

static void agree_storm(struct kunit *test)
{
	struct storm *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u32 ends = 0;
	u32 run, i, k;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (run = 0; run < 400; run++) {
		u32 nodes = 2 + run % (NODES - 1);
		const struct sp_proposal *first = NULL;

		memset(s, 0, sizeof(*s));
		camp_pitch(test, &s->c, nodes);
		s->seed = run;
		storm_blow(test, s, nodes, 400);
		for (i = 0; i < nodes; i++) {
			const struct sp_proposal *p = sp_agree_decision(&s->c.a[i]);

			if (!(s->decided >> i & 1))
				continue;
			ends++;
			if (!first)
				first = p;
			KUNIT_EXPECT_TRUE_MSG(test, same(first, p), "run %u", run);
			/* Who hears that it is out delivers nothing by it. */
			if (p->reason[i] == SP_LOST)
				continue;
			for (k = 0; k < nodes; k++)
				KUNIT_EXPECT_LE_MSG(test, p->trim[k],
						    own(&s->c, i)->counts[k],
						    "run %u", run);
		}
	}
	/* It does come to an end, often enough to mean something. */
	KUNIT_EXPECT_GT(test, ends, 400u);
}

/* What a node says does not fit what this one has: it is suspected for it. */
static void agree_doubt(struct kunit *test)
{
	static const struct {
		u64 count, trim;	/* of lane 1, where 5 rounds were delivered */
		u32 ballot;
		u8 reason;		/* of this node's member */
		bool ok;
	} table[] = {
		{ 5, 5, 0, 0, true },
		{ 4, 5, 0, 0, false },
		{ 5, 5, 2, 0, true },
		{ 5, 4, 2, 0, false },
		{ 9, 11, 2, 0, true },	/* as many as are here */
		{ 9, 12, 2, 0, false },
		{ 9, 12, SP_BALLOT_DECIDED, 0, false },
		{ 9, 4, SP_BALLOT_DECIDED, SP_LEFT, false },
		/* made by who did not hear this node */
		{ 9, 12, 2, SP_LOST, true },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct camp *c = camp(test, 3);

		c->a[0].floor[1] = 5;
		tell_wedged(c, 0, 10)->counts[1] = table[i].count;
		c->t.accepted.ballot = table[i].ballot;
		c->t.accepted.reason[0] = table[i].reason;
		for (k = 0; k < c->view.nlanes; k++)
			c->t.accepted.trim[k] = 10 + k;
		c->t.accepted.trim[1] = table[i].trim;
		hear(test, c, 0, 1);
		KUNIT_EXPECT_TRUE(test, step(c, 0) & SP_AGREE_WEDGE);
		KUNIT_EXPECT_EQ(test, c->a[0].faulty, 0ull);
		wedge(c, 0, 10);
		step(c, 0);
		KUNIT_EXPECT_EQ_MSG(test, c->a[0].faulty,
				    table[i].ok ? 0ull : 2ull, "row %u", i);
		KUNIT_EXPECT_EQ(test, sp_agree_suspects(&c->a[0], 1),
				!table[i].ok);
	}
}

/* Nobody has accepted what this node has not proposed. */
static void agree_unproposed(struct kunit *test)
{
	struct camp *c = camp(test, 3);

	tell_wedged(c, 0, 0)->accepted.ballot = 1;
	KUNIT_EXPECT_EQ(test, sp_agree_hear(&c->a[0], 1, &c->t), -EPROTO);
	/* The others do not know what it has proposed. */
	KUNIT_EXPECT_EQ(test, sp_agree_hear(&c->a[2], 1, &c->t), 1);
}

static void agree_waits(struct kunit *test)
{
	struct camp *c = camp(test, 4);
	bool leads;

	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[0], &leads), 0ull);
	sp_agree_suspect(&c->a[0], 3);
	step(c, 0);
	wedge(c, 0, 0);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[0], &leads), 6ull);
	KUNIT_EXPECT_FALSE(test, leads);
	say(c, 0, 1);
	KUNIT_EXPECT_TRUE(test, step(c, 1) & SP_AGREE_WEDGE);
	wedge(c, 1, 0);
	say(c, 1, 0);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[0], &leads), 4ull);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[1], &leads), 4ull);
	tell_wedged(c, 8, 0);
	hear(test, c, 0, 2);
	hear(test, c, 1, 2);
	/* It is the leader's turn, who knows that himself. */
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[1], &leads), 1ull);
	KUNIT_EXPECT_TRUE(test, leads);
	KUNIT_EXPECT_TRUE(test, step(c, 0) & SP_AGREE_SAY);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[0], &leads), 6ull);
	KUNIT_EXPECT_FALSE(test, leads);
	say(c, 0, 1);
	step(c, 1);
	say(c, 1, 0);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[0], &leads), 4ull);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[1], &leads), 4ull);
	tell_wedged(c, 8, 0)->accepted = own(c, 0)->accepted;
	hear(test, c, 0, 2);
	KUNIT_EXPECT_TRUE(test, step(c, 0) & SP_AGREE_DECIDED);
	KUNIT_EXPECT_EQ(test, sp_agree_waits(&c->a[0], &leads), 0ull);
}

static struct kunit_case sp_agree_cases[] = {
	KUNIT_CASE(agree_at_rest),
	KUNIT_CASE(agree_quorum),
	KUNIT_CASE(agree_suspect),
	KUNIT_CASE(agree_adopt_lower),
	KUNIT_CASE(agree_adopt_higher),
	KUNIT_CASE(agree_mutual),
	KUNIT_CASE(agree_suspects_us),
	KUNIT_CASE(agree_suspects_silenced),
	KUNIT_CASE(agree_wedge),
	KUNIT_CASE(agree_wedge_along),
	KUNIT_CASE(agree_no_room),
	KUNIT_CASE(agree_lead_waits),
	KUNIT_CASE(agree_lead_alone),
	KUNIT_CASE(agree_lead_adopts),
	KUNIT_CASE(agree_proposal),
	KUNIT_CASE(agree_proposal_others),
	KUNIT_CASE(agree_proposal_caps),
	KUNIT_CASE(agree_rejoin),
	KUNIT_CASE(agree_frozen),
	KUNIT_CASE(agree_accept),
	KUNIT_CASE(agree_decide),
	KUNIT_CASE(agree_learn),
	KUNIT_CASE(agree_hear_rejects),
	KUNIT_CASE(agree_hear_old),
	KUNIT_CASE(agree_asks),
	KUNIT_CASE(agree_carry),
	KUNIT_CASE(agree_together),
	KUNIT_CASE(agree_leader_dies),
	KUNIT_CASE(agree_storm),
	KUNIT_CASE(agree_doubt),
	KUNIT_CASE(agree_unproposed),
	KUNIT_CASE(agree_waits),
	{}
};

struct kunit_suite sp_agree_suite = {
	.name = "spindle_agree",
	.test_cases = sp_agree_cases,
};
