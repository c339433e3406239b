// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile node: it can write anything into its own row and lanes at every
 * peer, at any time. Its cells mostly carry a valid check, or nobody would
 * look at them.
 */
#include "sim.h"

static u64 hostile_value(struct sim *s, u64 old)
{
	struct rng *r = &s->rng;

	switch (rng_below(r, 14)) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return old + 1;
	case 3:
		return old - 1;
	case 4:
		return old + (1ull << 31);
	case 5:
		return old + (1ull << 32);
	case 6:
		return 1ull << 63;
	case 7:
		return old ^ 1ull << rng_below(r, 64);
	case 8:
		return rng_next(r);
	case 9:
		return old + (1ull << 32) * rng_below(r, 20);
	case 10:
		return rng_below(r, 2 * s->window);
	default:
		return old + rng_below(r, 2 * s->depth);
	}
}

static void hostile_cell(struct sim *s, struct sp_cell *cell)
{
	cell->value = hostile_value(s, cell->value);
	if (rng_chance(&s->rng, 900))
		cell->check = sp_mix(cell->value, s->epoch);
	else if (rng_chance(&s->rng, 500))
		cell->check = sp_mix(cell->value, s->epoch - 1);
}

/* It has consumed what others do not have yet. */
static void hostile_consumed(struct sim *s, struct sp_cell *row)
{
	u64 received = row[SP_CELL_RECEIVED].value;

	sp_cell_set(&row[SP_CELL_CONSUMED],
		    received + rng_below(&s->rng, s->nlanes + 1), s->epoch);
}

static void hostile_desc(struct sim *s, struct sp_desc *d)
{
	u32 *field[] = { &d->index, &d->len, &d->pos, &d->flags };
	u32 i = rng_below(&s->rng, 4);

	switch (rng_below(&s->rng, 8)) {
	case 0:
		/* A message that the ring could hold, and a receiver's buffer not. */
		d->len = rng_range(&s->rng, s->max_len, s->window + 1);
		break;
	case 1:
		/* The turn of the one before, or of one long ago. */
		d->index -= rng_range(&s->rng, 1, 3);
		break;
	case 2:
		/* Somewhere else in the ring, or a lap away. */
		d->pos += rng_chance(&s->rng, 500) ? s->window >> SP_UNIT_SHIFT :
			rng_range(&s->rng, 1, 3);
		break;
	default:
		*field[i] = (u32)hostile_value(s, *field[i]);
	}
}

/* A packet of the hostile node, about to leave. */
void hostile_packet(struct sim *s, struct net_write *w)
{
	if (!rng_chance(&s->rng, s->villainy))
		return;
	if (w->kind == WR_ROW && rng_chance(&s->rng, 200))
		hostile_consumed(s, (struct sp_cell *)w->data);
	else if (w->kind == WR_ROW)
		hostile_cell(s, (struct sp_cell *)w->data +
			     rng_below(&s->rng, w->len / sizeof(struct sp_cell)));
	else if (w->kind == WR_DESC)
		hostile_desc(s, (struct sp_desc *)w->data +
			     rng_below(&s->rng, w->len / sizeof(struct sp_desc)));
}

/* A write out of turn. */
void hostile_attack(struct sim *s)
{
	u32 victim = rng_below(&s->rng, s->nnodes);
	struct node *n = &s->nodes[victim];
	u32 lanes = n->peers[s->villain].nlanes;
	u8 *slab = n->slab[s->villain];
	u32 i;

	if (victim != s->villain) {
		struct sp_cell *row = (struct sp_cell *)(slab + sp_row_off(1));

		i = rng_below(&s->rng, SP_CELL_LANES + lanes);
		hostile_cell(s, &row[i]);
		if (lanes) {
			u32 lane = rng_below(&s->rng, lanes);
			struct sp_desc *ring = (struct sp_desc *)
				(slab + sim_desc_off(s, lane));

			for (i = rng_below(&s->rng, 4); i; i--)
				hostile_desc(s, &ring[rng_below(&s->rng, s->depth)]);
		}
		node_kick(n);
	}
	if (s->attacks) {
		s->attacks--;
		sim_after(s, rng_range(&s->rng, 1, 400), EV_ATTACK, 0);
	}
}
