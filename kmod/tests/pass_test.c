// SPDX-License-Identifier: GPL-2.0
/* A pass over a shell that records what it is asked to post. */
#include "../core/pass.h"
#include "suites.h"

#define DEPTH	16
#define WINDOW	1024
#define NODES	3
#define LANES	3
#define EPOCH	77
#define CELLS	(SP_CELL_LANES + LANES)

enum posted_kind { RUN, ROW, WAKE };

struct posted {
	enum posted_kind kind;
	u32 node;
	u32 own;
	struct sp_run run;
	struct sp_cell cells[CELLS];
};

/*
 * struct shell - this node, number 0, and what it sees of nodes 1 and 2
 * @posted: what was posted since clear()
 * @nposted: how much
 * @ticket: tickets given out, by node
 * @landed: tickets that have landed, by node
 * @fail_run: posts of runs that are to fail with -EAGAIN
 * @fail_row: likewise rows
 * @fail_wake: likewise wakes
 * @locked: lane locks held
 * @late: news and all tickets are to land just before the next look at these
 */
struct shell {
	struct sp_core core;
	struct sp_lane lanes[LANES];
	struct sp_node_seen seen[NODES];
	struct sp_log log[64];
	struct sp_own own[LANES];
	struct sp_tx tx[LANES];
	struct sp_peer peers[NODES];
	struct sp_pushed pushed[NODES][LANES];
	struct sp_desc own_desc[LANES][DEPTH];
	struct sp_desc checked[LANES][DEPTH];
	u8 *slab[NODES];
	struct posted posted[32];
	u32 nposted;
	u64 ticket[NODES];
	u64 landed[NODES];
	u32 fail_run;
	u32 fail_row;
	u32 fail_wake;
	u32 locked;
	bool late;
	u32 bad;
};

static struct shell *shell_of(struct sp_core *c)
{
	return container_of(c, struct shell, core);
}

/* What a peer writes. */
static void peer_cell(struct shell *s, u32 node, u32 cell, u64 value)
{
	struct sp_cell *row = (struct sp_cell *)s->peers[node].row;

	sp_cell_set(&row[cell], value, EPOCH);
}

static void all_landed(struct shell *s)
{
	memcpy(s->landed, s->ticket, sizeof(s->landed));
}

static struct posted *record(struct shell *s, enum posted_kind kind, u32 node)
{
	struct posted *p = &s->posted[s->nposted % ARRAY_SIZE(s->posted)];

	memset(p, 0, sizeof(*p));
	p->kind = kind;
	p->node = node;
	s->nposted++;
	/* As asked for, under one lane's lock or none; not to the own node. */
	if (kind != WAKE)
		s->bad += s->locked != (s->core.nown &&
					!(s->core.on & SP_OPT_UNLOCK));
	s->bad += node == 0;
	return p;
}

static void op_lane_lock(struct sp_core *c, u32 own)
{
	shell_of(c)->locked++;
}

static void op_lane_unlock(struct sp_core *c, u32 own)
{
	shell_of(c)->locked--;
}

static int op_post_run(struct sp_core *c, u32 node, u32 own,
		       const struct sp_run *run)
{
	struct shell *s = shell_of(c);
	struct posted *p;

	if (s->fail_run) {
		s->fail_run--;
		return -EAGAIN;
	}
	p = record(s, RUN, node);
	p->own = own;
	p->run = *run;
	s->ticket[node]++;
	return 0;
}

static int op_post_row(struct sp_core *c, u32 node, const struct sp_cell *cells,
		       u32 n, u64 *ticket)
{
	struct shell *s = shell_of(c);
	struct posted *p;

	if (s->fail_row) {
		s->fail_row--;
		return -EAGAIN;
	}
	p = record(s, ROW, node);
	s->bad += n > CELLS;
	memcpy(p->cells, cells, min_t(u32, n, CELLS) * sizeof(*cells));
	*ticket = ++s->ticket[node];
	return 0;
}

static u64 op_landed(struct sp_core *c, u32 node)
{
	struct shell *s = shell_of(c);

	if (s->late) {
		s->late = false;
		peer_cell(s, node, SP_CELL_LANES, sp_progress(1, 0));
		all_landed(s);
	}
	return s->landed[node];
}

static int op_post_wake(struct sp_core *c, u32 node)
{
	struct shell *s = shell_of(c);

	if (s->fail_wake) {
		s->fail_wake--;
		return -EAGAIN;
	}
	record(s, WAKE, node);
	return 0;
}

static const struct sp_shell_ops shell_ops = {
	.lane_lock = op_lane_lock,
	.lane_unlock = op_lane_unlock,
	.post_run = op_post_run,
	.post_row = op_post_row,
	.landed = op_landed,
	.post_wake = op_post_wake,
};

/* @owners: the node of each lane, by rank. */
static struct shell *shell(struct kunit *test, const u32 *owners, u32 nlanes,
			   u32 nnodes, bool polled)
{
	struct shell *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct sp_order *o = &s->core.order;
	u32 at[NODES] = { 0 };
	u32 i, n;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < nlanes; i++) {
		n = owners[i];
		s->lanes[i].node = n;
		s->lanes[i].lane = at[n];
		s->lanes[i].desc = n ? s->checked[i] : s->own_desc[at[0]];
		if (!n) {
			s->own[at[0]].rank = i;
			s->own[at[0]].tx = &s->tx[at[0]];
			sp_tx_init(&s->tx[at[0]], s->own_desc[at[0]], DEPTH,
				   WINDOW, i, nlanes);
		}
		s->peers[n].lanes[at[n]++] = i;
	}
	for (n = 0; n < nnodes; n++) {
		struct sp_peer *p = &s->peers[n];

		sp_layout_init(&p->lay, at[n], DEPTH, WINDOW, 64);
		s->slab[n] = kunit_kzalloc(test, p->lay.size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, s->slab[n]);
		p->slab = s->slab[n];
		p->row = (struct sp_cell *)(p->slab + sp_layout_row(&p->lay, 1));
		p->pushed = s->pushed[n];
		p->polled = polled;
	}
	o->lanes = s->lanes;
	o->nodes = s->seen;
	o->log = s->log;
	o->nlanes = nlanes;
	o->nnodes = nnodes;
	o->depth = DEPTH;
	o->units = WINDOW / SP_UNIT;
	o->max_len = WINDOW;
	o->log_size = ARRAY_SIZE(s->log);
	o->epoch = EPOCH;
	s->core.own = s->own;
	s->core.nown = at[0];
	s->core.peers = s->peers;
	s->core.view = 1;
	s->core.polled = polled;
	s->core.spin = 4;
	s->core.opt = SP_OPT_ALL;
	s->core.ops = &shell_ops;
	sp_core_init(&s->core);
	return s;
}

static void peer_row(struct shell *s, u32 node, s64 received, s64 consumed)
{
	peer_cell(s, node, SP_CELL_RECEIVED, received + 1);
	peer_cell(s, node, SP_CELL_CONSUMED, consumed + 1);
}

static int pass(struct shell *s)
{
	s->nposted = 0;
	return sp_pass(&s->core, s->core.order.released);
}

/* Pass until nothing more happens, everything landing at once. */
static void settle(struct shell *s)
{
	int i;

	for (i = 0; i < 60; i++) {
		pass(s);
		all_landed(s);
	}
}

static u32 count(const struct shell *s, enum posted_kind kind, u32 node)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < min_t(u32, s->nposted, ARRAY_SIZE(s->posted)); i++)
		n += s->posted[i].kind == kind && s->posted[i].node == node;
	return n;
}

static u64 cell(struct kunit *test, const struct posted *p, u32 i)
{
	u64 value = ~0ull;

	KUNIT_EXPECT_TRUE(test, sp_cell_get(&p->cells[i], EPOCH, &value));
	return value;
}

static const u32 one_own[] = { 0 };
static const u32 two_own[] = { 0, 1, 0 };
static const u32 last_own[] = { 1, 2, 0 };

/* To each peer: the runs of all lanes, then the row that covers them. */
static void pass_order_of_posts(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 3, true);
	u32 node;

	sp_tx_commit(&s->tx[0], 100, 0);
	sp_tx_commit(&s->tx[1], 200, 0);
	sp_tx_commit(&s->tx[1], 0, 0);
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_ASSERT_EQ(test, s->nposted, 6u);
	for (node = 1; node < NODES; node++) {
		struct posted *p = &s->posted[3 * (node - 1)];

		KUNIT_EXPECT_EQ(test, p[0].node, node);
		KUNIT_EXPECT_EQ(test, (int)p[0].kind, (int)RUN);
		KUNIT_EXPECT_EQ(test, p[0].own, 0u);
		KUNIT_EXPECT_EQ(test, p[0].run.bytes[0].len, 100u);
		KUNIT_EXPECT_EQ(test, p[0].run.desc[0].len, 16u);
		KUNIT_EXPECT_EQ(test, (int)p[1].kind, (int)RUN);
		KUNIT_EXPECT_EQ(test, p[1].own, 1u);
		KUNIT_EXPECT_EQ(test, p[1].run.desc[0].len, 32u);
		KUNIT_EXPECT_EQ(test, p[2].node, node);
		KUNIT_EXPECT_EQ(test, (int)p[2].kind, (int)ROW);
		KUNIT_EXPECT_EQ(test, cell(test, &p[2], SP_CELL_VIEW), 1ull);
		KUNIT_EXPECT_EQ(test, cell(test, &p[2], SP_CELL_LANES),
				sp_progress(s->tx[0].now.round, 1));
		KUNIT_EXPECT_EQ(test, cell(test, &p[2], SP_CELL_LANES + 1),
				sp_progress(s->tx[1].now.round, 2));
	}
	/* Lane 0 owes a null before lane 2's second message. */
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 2ull);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 1ull);
	/* All was told: nothing twice. */
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

static void pass_again_run(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	sp_tx_commit(&s->tx[0], 100, 0);
	s->fail_run = 2;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	KUNIT_EXPECT_TRUE(test, s->core.unposted);
	KUNIT_EXPECT_FALSE(test, sp_core_may_block(&s->core));
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	/* Both messages in one run by then. */
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 32u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(2, 2));
	KUNIT_EXPECT_FALSE(test, s->core.unposted);
}

/* A row covers only what was posted before it, however late it is. */
static void pass_again_row(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	sp_tx_commit(&s->tx[0], 100, 0);
	s->fail_row = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 1u);
	sp_tx_commit(&s->tx[0], 10, 0);
	s->fail_run = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].off, 16u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(2, 2));
}

/* A null has no run: when its row finds no room it must be told later. */
static void pass_again_null(struct kunit *test)
{
	struct shell *s = shell(test, last_own, 3, 3, true);
	struct sp_desc *ring = (struct sp_desc *)
		(s->slab[1] + sp_layout_desc(&s->peers[1].lay, 0));
	s64 received;

	ring[0] = (struct sp_desc){ 0, 10, 0, 0 };
	ring[1] = (struct sp_desc){ 1, 10, 1, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(1, 1));
	pass(s);
	received = s->seen[0].received;
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(2, 2));
	s->fail_row = 2;
	pass(s);
	/* The null is the only news: lane 1 is still behind. */
	KUNIT_EXPECT_EQ(test, s->seen[0].received, received);
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 1ull);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_LANES),
			sp_progress(1, 0));
}

/* Receive @n messages from node 1 and deliver them; node 2 is not there. */
static void receive(struct kunit *test, struct shell *s, u32 n)
{
	struct sp_desc *ring = (struct sp_desc *)
		(s->slab[1] + sp_layout_desc(&s->peers[1].lay, 0));
	u32 i;

	for (i = 0; i < n; i++)
		ring[i] = (struct sp_desc){ i, 0, 0, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(n, n));
	peer_row(s, 1, n - 1, -1);
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_DELIVER);
	KUNIT_EXPECT_EQ(test, s->core.order.published, (u64)n);
	all_landed(s);
}

static const u32 one_theirs[] = { 1 };

/* Few messages consumed: told only when nothing else happens. */
static void pass_consumed_idle(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	int told = -1;
	int i;

	receive(test, s, 2);
	s->nposted = 0;
	KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 2) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	for (i = 0; i < 4 && told < 0; i++) {
		pass(s);
		if (s->nposted)
			told = i;
	}
	KUNIT_EXPECT_EQ(test, told, 2);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED), 2ull);
}

/* A quarter of the lane's descriptors: told at once. */
static void pass_consumed_pressure(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	receive(test, s, DEPTH / 2);
	s->nposted = 0;
	sp_pass(&s->core, DEPTH / 4 - 1);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	sp_pass(&s->core, DEPTH / 4);
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED),
			(u64)DEPTH / 4);
}

/* Without patience too, consumption is told before sleep, and as news. */
static void pass_consumed_before_sleep(struct kunit *test)
{
	bool polled = true;

	do {
		struct shell *s = shell(test, one_theirs, 1, 2, polled);
		u64 told = 0;
		int i;

		s->core.spin = 0;
		receive(test, s, 2);
		peer_cell(s, 1, SP_CELL_SLEEP, 1);
		sp_pass(&s->core, 2);
		for (i = 0; i < 10; i++) {
			pass(s);
			if (count(s, ROW, 1))
				told = cell(test, &s->posted[0], SP_CELL_CONSUMED);
			all_landed(s);
		}
		KUNIT_EXPECT_EQ(test, told, 2ull);
		KUNIT_EXPECT_EQ(test, s->peers[1].woken, polled ? 1ull : 0ull);
		KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
		polled = !polled;
	} while (!polled);
}

/* At rest: one flag to each peer, then sleep, and not a write more. */
static void pass_quiet(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 3, true);
	u32 rows = 0;
	int i;

	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, pass(s), 0);
		rows += s->nposted;
		if (s->nposted) {
			KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
			KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
			KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_SLEEP), 1ull);
		}
	}
	KUNIT_EXPECT_EQ(test, rows, 2u);
	/* The flag must have landed at both. */
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	s->landed[1] = s->ticket[1];
	pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	s->landed[2] = s->ticket[2];
	pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, pass(s), 0);
		KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	}
	/* A commit, and the kick of who made it. */
	sp_tx_commit(&s->tx[0], 1, 0);
	sp_core_kick(&s->core);
	pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
	KUNIT_EXPECT_EQ(test, s->core.doze.epoch, 2ull);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
}

/* News that the last look finds keeps it awake. */
static void pass_last_look(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	int i;

	for (i = 0; i < 6; i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	all_landed(s);
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(1, 0));
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
}

/*
 * News comes, then its writer reads the flag, then the flag lands: a pass that
 * takes it as landed must find the news.
 */
static void pass_landed_before_look(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	int i;

	for (i = 0; i < 6; i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	s->late = true;
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_AWAKE);
}

/* Where rows are events there is no flag; what was posted is awaited still. */
static void pass_doze_guarded(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, false);
	int i;

	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	peer_row(s, 1, 0, 0);
	sp_pass(&s->core, 1);
	for (i = 0; i < 60; i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_DOZING);
	KUNIT_EXPECT_TRUE(test, sp_core_may_block(&s->core));
	all_landed(s);
	/* That completion gives the sender its room back. */
	KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 1) & SP_DID_FREE);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 1ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* Nobody to tell, nothing to wait for: it must not block half way. */
static void pass_doze_alone(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 1, true);
	int i;

	for (i = 0; i < 10 && !sp_core_may_block(&s->core); i++)
		pass(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

static void pass_wake(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	/* It found no room behind the row: then not before that has landed. */
	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	sp_tx_commit(&s->tx[0], 10, 0);
	s->fail_wake = 1;
	pass(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	all_landed(s);
	s->fail_wake = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 1u);
	/* Once for one sleep. */
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	/* Nobody is woken for nothing. */
	peer_cell(s, 1, SP_CELL_SLEEP, 5);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
}

/* Two pushes are on the way to a peer, no more. */
static void pass_flight(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	u64 push = 2;
	u64 first;
	u32 i;

	KUNIT_EXPECT_EQ(test, s->core.push, WINDOW / SP_UNIT / 2);
	s->core.push = push;
	s->core.order.max_len = SP_UNIT;
	for (i = 0; i < DEPTH - 1; i++)
		sp_tx_commit(&s->tx[0], SP_UNIT, 0);
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.tail, push);
	first = s->ticket[1];
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.tail, 2 * push);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	s->landed[1] = first;
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.tail, 3 * push);
	/* Nothing is left behind, and nothing sleeps over it. */
	settle(s);
	KUNIT_EXPECT_EQ(test, s->pushed[1][0].to.count, DEPTH - 1ull);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* A flag that is here already: the wake goes out behind the row. */
static void pass_wake_behind_row(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);

	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 3u);
	KUNIT_EXPECT_EQ(test, (int)s->posted[1].kind, (int)ROW);
	KUNIT_EXPECT_EQ(test, (int)s->posted[2].kind, (int)WAKE);
	/* A flag raised before it landed is another sleep. */
	peer_cell(s, 1, SP_CELL_SLEEP, 5);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 1u);
}

static void pass_wake_torn(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	struct sp_cell *flag = (struct sp_cell *)&s->peers[1].row[SP_CELL_SLEEP];

	peer_cell(s, 1, SP_CELL_SLEEP, 3);
	flag->value = 5;
	sp_tx_commit(&s->tx[0], 10, 0);
	pass(s);
	all_landed(s);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, WAKE, 1), 0u);
	KUNIT_EXPECT_EQ(test, s->peers[1].check, 0ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

/* A pusher that never pauses still reads the flag. */
static void pass_wake_busy(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	u32 wakes = 0;
	int i;

	peer_cell(s, 1, SP_CELL_SLEEP, 1);
	for (i = 0; i < 8; i++) {
		u64 last = s->ticket[1];

		sp_tx_commit(&s->tx[0], 10, 0);
		pass(s);
		wakes += count(s, WAKE, 1);
		/* Always one row behind. */
		s->landed[1] = last;
	}
	KUNIT_EXPECT_EQ(test, wakes, 1u);
}

static void pass_gone(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 3, true);
	int i;

	s->peers[2].gone = true;
	sp_tx_commit(&s->tx[0], 10, 0);
	/* What it writes now is not read. */
	peer_cell(s, 2, SP_CELL_RECEIVED, ~0ull);
	peer_cell(s, 2, SP_CELL_CONSUMED, ~0ull);
	for (i = 0; i < 60; i++) {
		KUNIT_EXPECT_GE(test, pass(s), 0);
		KUNIT_EXPECT_EQ(test, count(s, RUN, 2) + count(s, ROW, 2), 0u);
		all_landed(s);
	}
	/* It holds up the order, and not sleep. */
	KUNIT_EXPECT_EQ(test, s->core.order.delivered, -1ll);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
}

static void pass_faulty(struct kunit *test)
{
	static const u32 owners[] = { 0, 1, 2 };
	struct shell *s = shell(test, owners, 3, 3, true);

	peer_cell(s, 1, SP_CELL_LANES, sp_progress(0x80000000, 0));
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 1u);
	s = shell(test, owners, 3, 3, true);
	peer_row(s, 2, 0, 5);
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 2u);
	/* 2^63 in a cell. */
	s = shell(test, owners, 3, 3, true);
	peer_cell(s, 2, SP_CELL_RECEIVED, 1ull << 63);
	peer_cell(s, 2, SP_CELL_CONSUMED, 1ull << 63);
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	/* Torn or foreign: no news, no fault. */
	s = shell(test, owners, 3, 3, true);
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(1, 0));
	((struct sp_cell *)s->peers[1].row)[SP_CELL_LANES].value = ~0ull;
	KUNIT_EXPECT_EQ(test, pass(s), 0);
}

/* From the commit to the room that comes back. */
static void pass_whole_walk(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	int did;

	sp_tx_commit(&s->tx[0], 100, 0);
	sp_tx_commit(&s->tx[0], 0, SP_DESC_FIN);
	did = pass(s);
	KUNIT_EXPECT_FALSE(test, did & SP_DID_DELIVER);
	peer_row(s, 1, 1, -1);
	did = pass(s);
	KUNIT_EXPECT_TRUE(test, did & SP_DID_DELIVER);
	KUNIT_EXPECT_TRUE(test, did & SP_DID_CLOSE);
	KUNIT_EXPECT_EQ(test, s->core.order.published, 2ull);
	did = sp_pass(&s->core, 2);
	KUNIT_EXPECT_FALSE(test, did & (SP_DID_FREE | SP_DID_CLOSE));
	/* Consumed everywhere, and still a request may read it. */
	peer_row(s, 1, 1, 1);
	did = sp_pass(&s->core, 2);
	KUNIT_EXPECT_FALSE(test, did & SP_DID_FREE);
	all_landed(s);
	did = sp_pass(&s->core, 2);
	KUNIT_EXPECT_TRUE(test, did & SP_DID_FREE);
	KUNIT_EXPECT_EQ(test, s->tx[0].freed, 2ull);
	KUNIT_EXPECT_EQ(test, s->tx[0].head, s->tx[0].now.tail);
	KUNIT_EXPECT_TRUE(test, sp_order_quiet(&s->core.order));
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

/* One message a push, each with its row, also where a row finds no room. */
static void pass_opt_send(struct kunit *test)
{
	struct shell *s = shell(test, one_own, 1, 2, true);
	u32 i;

	s->core.opt = SP_OPT_ALL & ~SP_OPT_SEND;
	for (i = 0; i < 5; i++)
		sp_tx_commit(&s->tx[0], 100, 0);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
		KUNIT_ASSERT_EQ(test, s->nposted, 2u);
		KUNIT_EXPECT_EQ(test, (int)s->posted[0].kind, (int)RUN);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].off, 16 * i);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 16u);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.bytes[0].off, 128 * i);
		KUNIT_EXPECT_EQ(test, s->posted[0].run.bytes[0].len, 100u);
		KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
				sp_progress(i + 1, i + 1));
	}
	s->fail_row = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_TRUE(test, s->core.unposted);
	/* The row that is still owed, then the next message. */
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 3u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_LANES),
			sp_progress(3, 3));
	KUNIT_EXPECT_EQ(test, (int)s->posted[1].kind, (int)RUN);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[2], SP_CELL_LANES),
			sp_progress(4, 4));
	/* Turned on again, the rest goes together. */
	sp_tx_commit(&s->tx[0], 0, 0);
	all_landed(s);
	s->core.opt = SP_OPT_ALL;
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->posted[0].run.desc[0].len, 32u);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].size[0], 4ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].size[1], 1ull);
}

/* Nulls around a message travel with it; each lane has its own row. */
static void pass_opt_send_nulls(struct kunit *test)
{
	struct shell *s = shell(test, two_own, 3, 2, true);

	s->core.opt = SP_OPT_ALL & ~SP_OPT_SEND;
	sp_tx_nulls(&s->tx[0], 3);
	sp_tx_commit(&s->tx[0], 1, 0);
	sp_tx_commit(&s->tx[0], 1, 0);
	sp_tx_nulls(&s->tx[0], 8);
	sp_tx_nulls(&s->tx[1], 7);
	sp_tx_commit(&s->tx[1], 1, 0);
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 4u);
	KUNIT_EXPECT_EQ(test, s->posted[0].own, 0u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(4, 1));
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES + 1),
			sp_progress(0, 0));
	KUNIT_EXPECT_EQ(test, s->posted[2].own, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[3], SP_CELL_LANES + 1),
			sp_progress(8, 1));
	pass(s);
	KUNIT_ASSERT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[1], SP_CELL_LANES),
			sp_progress(8, 2));
}

/* @n empty messages from node 1, in turns 0, 1, 2 ... */
static void arrive(struct shell *s, u32 n)
{
	struct sp_desc *ring = (struct sp_desc *)
		(s->slab[1] + sp_layout_desc(&s->peers[1].lay, 0));
	u32 i;

	for (i = 0; i < n; i++)
		ring[i] = (struct sp_desc){ i, 0, 0, 0 };
	peer_cell(s, 1, SP_CELL_LANES, sp_progress(n, n));
}

/* An ack for each message, though received_num waits for another lane. */
static void pass_opt_receive(struct kunit *test)
{
	static const u32 owners[] = { 1, 2 };
	struct shell *s = shell(test, owners, 2, 3, true);
	u32 i;

	s->core.opt = SP_OPT_ALL & ~SP_OPT_RECEIVE;
	arrive(s, 4);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
		KUNIT_ASSERT_EQ(test, s->nposted, 2u);
		KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
		KUNIT_EXPECT_EQ(test, count(s, ROW, 2), 1u);
		KUNIT_EXPECT_EQ(test, s->lanes[0].now.round, (u64)i + 1);
	}
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 0ll);
	/* Lane 1 gives up its turns: all of that is news at once. */
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(4, 0));
	s->fail_row = 1;
	pass(s);
	/* Node 1's did not go out the first time and does at the end. */
	KUNIT_EXPECT_EQ(test, count(s, ROW, 1), 1u);
	KUNIT_EXPECT_EQ(test, count(s, ROW, 2), 2u);
	KUNIT_EXPECT_EQ(test, s->seen[0].received, 7ll);
	KUNIT_EXPECT_EQ(test, s->peers[1].received, 7ll);
	KUNIT_EXPECT_EQ(test, s->peers[2].received, 7ll);
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_RECEIVE].size[0], 4ull);

	s = shell(test, owners, 2, 3, true);
	arrive(s, 4);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->nposted, 2u);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_RECEIVE].size[3], 1ull);
}

/* What fails to be posted is laid at the door of the right peer. */
static void pass_opt_receive_faulty(struct kunit *test)
{
	static const u32 owners[] = { 1, 2 };
	struct shell *s = shell(test, owners, 2, 3, true);

	s->core.opt = 0;
	arrive(s, 4);
	peer_cell(s, 2, SP_CELL_LANES, sp_progress(0x80000000, 0));
	KUNIT_EXPECT_EQ(test, pass(s), -EPROTO);
	KUNIT_EXPECT_EQ(test, s->core.faulty, 2u);
}

/* One message delivered, one consumed, one row for that, whatever is left. */
static void pass_opt_deliver(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	u32 i;

	s->core.opt = SP_OPT_ALL & ~SP_OPT_DELIVER;
	arrive(s, 3);
	peer_row(s, 1, 2, -1);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_DELIVER);
		KUNIT_EXPECT_EQ(test, s->core.order.published, (u64)i + 1);
	}
	KUNIT_EXPECT_EQ(test, pass(s), 0);
	for (i = 0; i < 3; i++) {
		s->nposted = 0;
		KUNIT_EXPECT_TRUE(test, sp_pass(&s->core, 3) & SP_DID_NEWS);
		KUNIT_ASSERT_EQ(test, s->nposted, 1u);
		KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED),
				(u64)i + 1);
	}
	KUNIT_EXPECT_EQ(test, sp_pass(&s->core, 3), 0);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_DELIVER].size[0], 3ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_DELIVER].messages, 3ull);
}

/* No room for the row of a message consumed: it goes out, and not lazily. */
static void pass_opt_deliver_again(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);

	receive(test, s, 1);
	s->core.opt = SP_OPT_ALL & ~SP_OPT_DELIVER;
	s->fail_row = 2;
	s->nposted = 0;
	sp_pass(&s->core, 1);
	KUNIT_EXPECT_EQ(test, s->nposted, 0u);
	sp_pass(&s->core, 1);
	KUNIT_ASSERT_EQ(test, s->nposted, 1u);
	KUNIT_EXPECT_EQ(test, cell(test, &s->posted[0], SP_CELL_CONSUMED), 1ull);
}

/* No nulls while they are off; those that are due come with the next pass. */
static void pass_opt_null(struct kunit *test)
{
	struct shell *s = shell(test, last_own, 3, 3, true);

	s->core.opt = SP_OPT_ALL & ~SP_OPT_NULL;
	arrive(s, 3);
	pass(s);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 0ull);
	KUNIT_EXPECT_EQ(test, s->tx[0].now.round, 0ull);
	settle(s);
	KUNIT_EXPECT_EQ(test, (int)s->core.doze.state, (int)SP_ASLEEP);
	s->core.opt = SP_OPT_ALL;
	KUNIT_EXPECT_TRUE(test, pass(s) & SP_DID_NEWS);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 2ull);
}

/*
 * The paper's baseline and Spindle: eight messages out and eight in, to and
 * from one peer, all consumed. Counts runs and rows.
 */
static void walk(struct kunit *test, u32 opt, u32 *runs, u32 *rows)
{
	static const u32 owners[] = { 0, 1 };
	struct shell *s = shell(test, owners, 2, 2, true);
	int i;

	s->core.opt = opt;
	for (i = 0; i < 8; i++)
		sp_tx_commit(&s->tx[0], 0, 0);
	arrive(s, 8);
	*runs = 0;
	*rows = 0;
	for (i = 0; i < 40; i++) {
		s->nposted = 0;
		KUNIT_EXPECT_GE(test, sp_pass(&s->core, s->core.order.published), 0);
		*runs += count(s, RUN, 1);
		/* Those of dozing are not what is counted here. */
		if (s->core.doze.state == SP_AWAKE)
			*rows += count(s, ROW, 1);
		all_landed(s);
		peer_row(s, 1, 15, -1);
	}
	KUNIT_EXPECT_EQ(test, s->core.order.published, 16ull);
	KUNIT_EXPECT_EQ(test, s->peers[1].consumed, 15ll);
	KUNIT_EXPECT_EQ(test, s->core.nulls_sent, 0ull);
	KUNIT_EXPECT_EQ(test, s->bad, 0u);
}

static void pass_baseline(struct kunit *test)
{
	u32 runs, rows;

	/* One push; then what was consumed. */
	walk(test, SP_OPT_ALL, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 1u);
	KUNIT_EXPECT_EQ(test, rows, 2u);
	/* A push for each message, an ack for each, a row for each consumed. */
	walk(test, 0, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 8u);
	KUNIT_EXPECT_EQ(test, rows, 8u + 8u + 16u);
	walk(test, SP_OPT_ALL & ~SP_OPT_SEND, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 8u);
	walk(test, SP_OPT_ALL & ~SP_OPT_UNLOCK, &runs, &rows);
	KUNIT_EXPECT_EQ(test, runs, 1u);
	KUNIT_EXPECT_EQ(test, rows, 2u);
}

static void pass_batches(struct kunit *test)
{
	struct shell *s = shell(test, one_theirs, 1, 2, true);
	struct sp_batches b = { 0 };

	sp_batch_add(&b, 0);
	sp_batch_add(&b, 1);
	sp_batch_add(&b, 127);
	sp_batch_add(&b, 128);
	sp_batch_add(&b, 1000);
	KUNIT_EXPECT_EQ(test, b.messages, 1256ull);
	KUNIT_EXPECT_EQ(test, b.size[0], 1ull);
	KUNIT_EXPECT_EQ(test, b.size[126], 1ull);
	KUNIT_EXPECT_EQ(test, b.size[127], 2ull);

	receive(test, s, 7);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_RECEIVE].size[6], 1ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_DELIVER].size[6], 1ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].messages, 0ull);

	/* To two peers, and still one batch; the last message is none. */
	s = shell(test, one_own, 1, 3, true);
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 10, 0);
	sp_tx_commit(&s->tx[0], 0, SP_DESC_FIN);
	s->fail_run = 1;
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 2), 1u);
	pass(s);
	KUNIT_EXPECT_EQ(test, count(s, RUN, 1), 1u);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].size[1], 1ull);
	KUNIT_EXPECT_EQ(test, s->core.batches[SP_STAGE_SEND].messages, 2ull);
}

static struct kunit_case sp_pass_cases[] = {
	KUNIT_CASE(pass_order_of_posts),
	KUNIT_CASE(pass_again_run),
	KUNIT_CASE(pass_again_row),
	KUNIT_CASE(pass_again_null),
	KUNIT_CASE(pass_consumed_idle),
	KUNIT_CASE(pass_consumed_pressure),
	KUNIT_CASE(pass_consumed_before_sleep),
	KUNIT_CASE(pass_quiet),
	KUNIT_CASE(pass_last_look),
	KUNIT_CASE(pass_landed_before_look),
	KUNIT_CASE(pass_doze_guarded),
	KUNIT_CASE(pass_doze_alone),
	KUNIT_CASE(pass_flight),
	KUNIT_CASE(pass_wake),
	KUNIT_CASE(pass_wake_behind_row),
	KUNIT_CASE(pass_wake_torn),
	KUNIT_CASE(pass_wake_busy),
	KUNIT_CASE(pass_gone),
	KUNIT_CASE(pass_faulty),
	KUNIT_CASE(pass_whole_walk),
	KUNIT_CASE(pass_opt_send),
	KUNIT_CASE(pass_opt_send_nulls),
	KUNIT_CASE(pass_opt_receive),
	KUNIT_CASE(pass_opt_receive_faulty),
	KUNIT_CASE(pass_opt_deliver),
	KUNIT_CASE(pass_opt_deliver_again),
	KUNIT_CASE(pass_opt_null),
	KUNIT_CASE(pass_baseline),
	KUNIT_CASE(pass_batches),
	{}
};

struct kunit_suite sp_pass_suite = {
	.name = "spindle_pass",
	.test_cases = sp_pass_cases,
};
