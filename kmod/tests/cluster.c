// SPDX-License-Identifier: GPL-2.0
/* The nodes of one view, each with its part in the end of it. */
#include "cluster.h"

/* cluster_clear() - begin a view of so many members */
void cluster_clear(struct cluster *c, u32 members)
{
	memset(c, 0, sizeof(*c));
	sp_view_init(&c->view, members, 0);
}

/* cluster_add() - a member of the view */
void cluster_add(struct cluster *c, u8 node, u64 cookie)
{
	struct sp_addr a = node_addr(node);

	sp_view_add(&c->view, &a, cookie, 0);
}

/* cluster_begin() - all members are there: every node watches over the view */
void cluster_begin(struct kunit *test, struct cluster *c)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, sp_view_rank(&c->view, 7), 0);
	KUNIT_ASSERT_LE(test, c->view.nnodes, (u32)CLUSTER_NODES);
	for (i = 0; i < c->view.nnodes; i++) {
		sp_ballot_init(&c->b[i], &c->view, i, c->reports[i]);
		c->b[i].limit = SP_MAX_MEMBERS;
		c->b[i].minority = false;
	}
}

/* cluster_init() - a view of one member on each node: on node i member i */
void cluster_init(struct kunit *test, struct cluster *c, u32 nodes)
{
	u32 i;

	cluster_clear(c, nodes);
	for (i = 0; i < nodes; i++)
		cluster_add(c, i, 1);
	cluster_begin(test, c);
}

struct cluster *cluster_new(struct kunit *test, u32 nodes)
{
	struct cluster *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	cluster_init(test, c, nodes);
	return c;
}

/* Reports go to every node that the sender does not suspect. */
static void exchange_from(struct cluster *c, u32 from, u64 nodes)
{
	u32 k;

	for (k = 0; k < c->view.nnodes; k++)
		if ((nodes >> k & 1) && k != from &&
		    !sp_suspects(&c->b[from], k))
			send_report(c, from, k);
}

/*
 * cluster_exchange() - nodes whose reports come to each other at once
 * @nodes: they, by rank
 *
 * Return: those that came to a decision.
 */
u64 cluster_exchange(struct cluster *c, u64 nodes)
{
	u64 decided = 0;
	u32 idle = 0;
	u32 rounds = 0;
	u32 i;
	int did;

	/*
	 * What is reported in one round is acted upon in the next. Nodes that are
	 * not done after so many never will be.
	 */
	while (idle++ < 2 && rounds++ < 100) {
		for (i = 0; i < c->view.nnodes; i++) {
			if (!(nodes >> i & 1))
				continue;
			did = step(c, i);
			if (did < 0)
				continue;
			if (did & SP_STEP_WEDGE) {
				wedge(c, i, 10 * (i + 1));
				did |= SP_STEP_SEND;
			}
			if (did & SP_STEP_DECIDED)
				decided |= 1ull << i;
			exchange_from(c, i, nodes);
			if (did)
				idle = 0;
		}
	}
	return decided;
}

void traffic_init(struct kunit *test, struct traffic *t, u32 nodes, u32 seed)
{
	memset(t, 0, sizeof(*t));
	cluster_init(test, &t->c, nodes);
	t->seed = seed;
}

/* traffic_step() - a node does what follows from all it has received */
void traffic_step(struct traffic *t, u32 node)
{
	struct cluster *c = &t->c;
	int did = step(c, node);
	u32 k;

	if (did < 0) {
		t->down |= 1ull << node;
		return;
	}
	if (did & SP_STEP_WEDGE)
		wedge(c, node, draw(t, 50));
	if (did & SP_STEP_DECIDED)
		t->decided |= 1ull << node;
	/* Of each connection one report is on the way; a later one follows. */
	for (k = 0; k < c->view.nnodes; k++) {
		if (t->flies[node][k] || sp_suspects(&c->b[node], k))
			continue;
		t->flying[node][k] = *own(c, node);
		t->flies[node][k] = true;
	}
}

/*
 * traffic_receive() - a report arrives, if one is on its way
 *
 * Return: as sp_ballot_receive().
 */
int traffic_receive(struct traffic *t, u32 from, u32 to)
{
	if (!t->flies[from][to])
		return 0;
	t->flies[from][to] = false;
	return sp_ballot_receive(&t->c.b[to], from, &t->flying[from][to]);
}
