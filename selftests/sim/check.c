// SPDX-License-Identifier: GPL-2.0
/*
 * What holds after every pass, whoever the peers are: a node believes nothing
 * that no correct peer writes, delivers each message in its turn, and loses no
 * wake-up.
 */
#include "sim.h"

void check_init(struct sim *s, struct node *n)
{
	u32 i;

	for (i = 0; i < s->nlanes; i++) {
		n->believed[i].round = s->base_round;
		n->believed[i].count = s->base_count;
		n->believed[i].tail = s->base_tail;
	}
}

/* The descriptors taken of a peer's lane follow each other, and fit. */
static void check_taken(struct sim *s, struct node *n, u32 rank)
{
	const struct sp_lane *lane = &n->lanes[rank];
	struct sp_point *b = &n->believed[rank];

	for (; b->count < lane->now.count; b->count++) {
		const struct sp_desc *d = &lane->desc[b->count & (s->depth - 1)];
		s32 ahead = (s32)(d->index - (u32)b->round);

		if (ahead < 0 || b->round + ahead >= lane->now.round ||
		    d->pos != (u32)b->tail || d->len > s->max_len)
			sim_violation(s, "node %u takes of lane %u turn %u at %u, %u bytes; its next are turn %u at %u",
				      n->id, rank, d->index, d->pos, d->len,
				      (u32)b->round, (u32)b->tail);
		b->round += ahead + 1;
		b->tail += sp_units(d->len);
	}
	if (lane->now.tail - lane->head > s->window >> SP_UNIT_SHIFT ||
	    lane->now.count - lane->freed > s->depth)
		sim_violation(s, "node %u takes more of lane %u than it can hold",
			      n->id, rank);
}

/* Nothing consumes what this node has not received. */
static void check_consumed(struct sim *s, struct node *n)
{
	u32 i;

	for (i = 0; i < s->nnodes; i++)
		if (n->seen[i].consumed > n->seen[n->id].received)
			sim_violation(s, "node %u believes that node %u consumed %lld, and has received %lld itself",
				      n->id, i, (long long)n->seen[i].consumed,
				      (long long)n->seen[n->id].received);
}

/*
 * What frees no room of @n, and empty turns behind the last message, can wait.
 * What is not in the row yet, @peer has still to say.
 */
static bool check_unseen(const struct node *n, u32 peer)
{
	const struct sp_core *there = &n->sim->nodes[peer].core;
	const struct sp_peer *p = &n->peers[peer];
	s64 received = (s64)p->row[SP_CELL_RECEIVED].value - 1;
	s64 consumed = (s64)p->row[SP_CELL_CONSUMED].value - 1;
	u32 i;

	if (n->seen[peer].received < there->order.due &&
	    there->order.due <= received)
		return true;
	for (i = 0; i < n->core.nown; i++) {
		s64 done = sp_order_lane(&there->order, n->own[i].rank)->done;

		if (n->seen[peer].consumed < done && done <= consumed)
			return true;
	}
	for (i = 0; i < p->nlanes; i++) {
		const struct sp_point *now = &n->lanes[p->lanes[i]].now;

		if (p->row[SP_CELL_LANES + i].value !=
		    sp_progress(now->round, now->count))
			return true;
	}
	return false;
}

/*
 * @n sleeps. All that @peer has to say was posted and has landed, it has not
 * woken @n for this sleep, and does not mean to look at the flag again: then @n
 * must have seen all of it. That another may wake @n is luck.
 */
static void check_asleep(struct sim *s, struct node *n, struct node *peer)
{
	const struct conn *c = sim_conn(s, peer->id, n->id);
	const struct sp_peer *p = &peer->peers[n->id];

	if (n == peer || !n->polled || n->core.doze.state != SP_ASLEEP ||
	    n->passing || peer->passing || peer->failed || !p->ticket ||
	    c->completed != c->posted || p->check ||
	    p->woken == n->core.doze.epoch)
		return;
	if (check_unseen(n, peer->id))
		sim_violation(s, "node %u sleeps and has not seen what node %u wrote, nobody wakes it",
			      n->id, peer->id);
}

/* After each pass: the next may take as much as there is room for. */
void check_news(struct sim *s, struct node *n)
{
	u32 i;

	for (i = 0; i < s->nlanes; i++)
		if (n->lanes[i].node != n->id)
			check_taken(s, n, i);
	check_consumed(s, n);
}

/*
 * After each pass, likewise: who waits for readers has said so, and who was asked has
 * said that they are done as soon as they were, unless there was no room to say it.
 */
void check_waits(struct sim *s, struct node *n)
{
	const struct sp_core *c = &n->core;
	s64 own = n->seen[n->id].consumed;
	u32 i;

	for (i = 0; i < s->nnodes && !c->unposted; i++) {
		const struct sp_peer *p = &n->peers[i];

		if (i == n->id || p->gone)
			continue;
		if (c->wants > p->wants && c->wants > n->seen[i].consumed)
			sim_violation(s, "node %u does not ask node %u for readers at %lld",
				      n->id, i, (long long)c->wants);
		if (p->wanted > p->consumed && p->wanted <= own)
			sim_violation(s, "node %u does not tell node %u that readers are at %lld",
				      n->id, i, (long long)own);
		if (p->wanted > p->consumed && c->lazy)
			sim_violation(s, "node %u rests and does not see what readers do, node %u asks for it",
				      n->id, i);
	}
}

/* When the engine waits for something to come. */
void check_rest(struct sim *s, struct node *n)
{
	u32 i;

	for (i = 0; i < s->nnodes && !s->hostile; i++) {
		check_asleep(s, n, &s->nodes[i]);
		check_asleep(s, &s->nodes[i], n);
	}
}
