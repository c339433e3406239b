// SPDX-License-Identifier: GPL-2.0
/*
 * The shell around the core on one node: it lends memory, locks and posting,
 * passes while the engine is awake, and looks once more before it sleeps.
 */
#include <stdlib.h>

#include "sim.h"

static struct node *node_of(struct sp_core *c)
{
	return (struct node *)((char *)c - offsetof(struct node, core));
}

static struct plan *node_plan(struct node *n, u32 own)
{
	return &n->sim->plans[n->own[own].rank];
}

/* What other contexts do while a pass goes on. */
static void node_interrupted(struct node *n)
{
	struct sim *s = n->sim;

	if (s->weather.amid && rng_below(&s->rng, s->weather.amid) < 4)
		sim_disturb(s);
}

static void op_lane_lock(struct sp_core *c, u32 own)
{
	struct node *n = node_of(c);

	node_interrupted(n);
	sim_forget_past();
	if (n->held++)
		sim_violation(n->sim, "node %u takes two lane locks", n->id);
	node_plan(n, own)->locked = true;
}

static void op_lane_unlock(struct sp_core *c, u32 own)
{
	struct node *n = node_of(c);

	node_plan(n, own)->locked = false;
	n->held--;
	node_interrupted(n);
}

/* Posting is done under a lane's lock, or without one, as chosen. */
static void node_posts(struct node *n)
{
	bool hold = !(n->core.on & SP_OPT_UNLOCK) && n->core.nown;

	if (n->held != hold)
		sim_violation(n->sim, "node %u posts under %u locks", n->id,
			      n->held);
}

static struct told node_tells(const struct node *n, u32 node)
{
	const struct sp_core *c = &n->core;
	struct told t = { .released = c->order.released };
	u32 i;

	for (i = 0; i < c->nown; i++)
		t.pushed += c->peers[node].pushed[i].to.count;
	for (i = 0; i < c->order.nlanes; i++)
		if (n->lanes[i].node != n->id)
			t.taken += n->lanes[i].now.count;
	return t;
}

/* Without an optimisation a row tells of one message only. */
static void node_check_row(struct node *n, u32 node)
{
	struct told now = node_tells(n, node);
	struct told was = n->told[node];
	u32 on = n->core.on;

	n->told[node] = now;
	if (n->sim->flips)
		return;
	if ((!(on & SP_OPT_SEND) && now.pushed - was.pushed > 1) ||
	    (!(on & SP_OPT_RECEIVE) && now.taken - was.taken > 1) ||
	    (!(on & SP_OPT_DELIVER) && now.released - was.released > 1))
		sim_violation(n->sim, "node %u tells node %u of %llu pushed, %llu received, %llu consumed at once",
			      n->id, node,
			      (unsigned long long)(now.pushed - was.pushed),
			      (unsigned long long)(now.taken - was.taken),
			      (unsigned long long)(now.released - was.released));
}

static void node_post_run(struct node *n, struct conn *conn, u32 own,
			  const struct sp_run *run, bool copy)
{
	u32 i;

	for (i = 0; i < 4; i++) {
		const struct sp_seg *seg = i < 2 ? &run->bytes[i] : &run->desc[i - 2];
		u64 off = seg->off + (i < 2 ? sim_ring_off(n->sim, own) :
				      sim_desc_off(n->sim, own));

		if (seg->len)
			net_post(n->sim, conn, i < 2 ? WR_BYTES : WR_DESC, off,
				 n->slab[n->id] + off, seg->len, copy);
	}
}

static int op_post_run(struct sp_core *c, u32 node, u32 own,
		       const struct sp_run *run)
{
	struct node *n = node_of(c);
	struct sim *s = n->sim;
	struct conn *conn = sim_conn(s, n->id, node);
	u32 wanted = sp_run_segs(run);

	node_posts(n);
	node_interrupted(n);
	sim_forget_past();
	if (!net_room(conn, wanted))
		return -EAGAIN;
	s->writes += wanted;
	node_post_run(n, conn, own, run, false);
	return 0;
}

static int op_post_row(struct sp_core *c, u32 node, const struct sp_cell *cells,
		       u32 count, u32 own, const struct sp_run *run, u64 *ticket)
{
	struct node *n = node_of(c);
	struct sim *s = n->sim;
	struct conn *conn = sim_conn(s, n->id, node);
	bool live = s->opts.broken & SIM_BREAK_LIVE_ROWS;
	const struct sp_cell *src = cells;

	node_posts(n);
	node_check_row(n, node);
	node_interrupted(n);
	sim_forget_past();
	if (!net_room(conn, 1 + (run ? sp_run_segs(run) : 0)))
		return -EAGAIN;
	if (!conn->to->polled) {
		if (!conn->credits)
			return -EAGAIN;
		conn->credits--;
	}
	s->rows++;
	/* One request: what it carries comes with it, or with a part of it. */
	if (run) {
		if (conn->to->polled)
			sim_violation(s, "node %u has a written row carry a run",
				      n->id);
		node_post_run(n, conn, own, run, true);
	}
	if (live) {
		memcpy(n->live_row, cells, count * sizeof(*cells));
		src = n->live_row;
	}
	*ticket = net_post(s, conn, WR_ROW, sp_row_off(c->view), src,
			   count * sizeof(*cells), !live);
	return 0;
}

static u64 op_landed(struct sp_core *c, u32 node)
{
	struct node *n = node_of(c);

	node_interrupted(n);
	sim_forget_past();
	return sim_conn(n->sim, n->id, node)->completed;
}

static int op_post_wake(struct sp_core *c, u32 node)
{
	struct node *n = node_of(c);
	struct conn *conn = sim_conn(n->sim, n->id, node);

	if (!net_room(conn, 1))
		return -EAGAIN;
	if (!conn->to->polled)
		sim_violation(n->sim, "node %u wakes node %u, which does not poll",
			      n->id, node);
	net_post(n->sim, conn, WR_WAKE, 0, NULL, 0, true);
	return 0;
}

static const struct sp_shell_ops node_ops = {
	.lane_lock = op_lane_lock,
	.lane_unlock = op_lane_unlock,
	.post_run = op_post_run,
	.post_row = op_post_row,
	.landed = op_landed,
	.post_wake = op_post_wake,
};

/* Every counter begins where this run says: near 2^32 in some. */
static struct sp_point node_start(const struct sim *s)
{
	struct sp_point at = {
		.round = s->base_round,
		.count = s->base_count,
		.tail = s->base_tail,
	};

	return at;
}

static void node_init_own(struct sim *s, struct node *n, u32 rank)
{
	struct sp_point at = node_start(s);
	u32 own = n->lanes[rank].lane;
	struct sp_tx *tx = &n->tx[own];

	s->plans[rank].own = own;
	n->own[own].rank = rank;
	n->own[own].tx = tx;
	sp_tx_init(tx, n->lanes[rank].desc, s->depth, s->window, rank, s->nlanes);
	sp_tx_view(tx, at.round, n->core.order.start, rank, s->nlanes);
	tx->now = at;
	tx->freed = at.count;
	tx->head = at.tail;
}

static void node_init_lanes(struct sim *s, struct node *n)
{
	struct sp_point at = node_start(s);
	u32 i;

	for (i = 0; i < s->nlanes; i++) {
		u32 owner = s->plans[i].node;
		struct sp_peer *p = &n->peers[owner];
		struct sp_lane *lane = &n->lanes[i];

		n->core.order.slot[i] = i;
		lane->node = owner;
		lane->lane = p->nlanes++;
		lane->member = i;
		lane->src = (struct sp_desc *)(n->slab[owner] +
					       sim_desc_off(s, lane->lane));
		p->lanes[lane->lane] = i;
		if (owner == n->id) {
			lane->desc = (struct sp_desc *)lane->src;
			node_init_own(s, n, i);
		} else {
			lane->desc = calloc(s->depth, sizeof(*lane->desc));
		}
		sp_lane_init(lane, &at);
	}
	n->core.nown = n->peers[n->id].nlanes;
}

/* What an earlier view left where this one begins: cells that held then. */
static void node_leave(struct sim *s, u8 *slab, u32 lanes)
{
	struct sp_cell *row = (struct sp_cell *)(slab + sp_row_off(1));
	u32 n = SP_CELL_LANES + lanes;
	u32 i;

	memset(slab, rng_below(&s->rng, 256), sim_desc_off(s, lanes));
	for (i = 0; i < n; i++) {
		u32 ahead = rng_below(&s->rng, s->depth);
		u64 value = s->base_round * s->nlanes + ahead;

		if (i == SP_CELL_SLEEP)
			value = ahead | 1;
		else if (i >= SP_CELL_LANES)
			value = sp_progress(s->base_round + ahead,
					    s->base_count + ahead / 2);
		sp_cell_set(&row[i], value,
			    s->epoch - rng_range(&s->rng, 1, 2));
	}
}

/* This node's replica of what a node owns, and how it polls it. */
static void node_init_slab(struct sim *s, struct node *n, u32 owner)
{
	struct sp_peer *p = &n->peers[owner];
	u32 lanes = 0;
	u32 i;

	for (i = 0; i < s->nlanes; i++)
		lanes += s->plans[i].node == owner;
	n->slab[owner] = calloc(1, sim_desc_off(s, lanes));
	if (s->leftovers)
		node_leave(s, n->slab[owner], lanes);
	for (i = 0; i < 2; i++)
		p->bank[i] = (struct sp_cell *)(n->slab[owner] + sp_row_off(i));
	p->polled = s->nodes[owner].polled;
	p->carry = p->polled ? 0 : SIM_CARRY;
	p->open = ~0ull;
}

/* How far its own lanes were pushed to each peer. */
static void node_init_pushed(struct sim *s, struct node *n)
{
	u32 i, k;

	for (k = 0; k < s->nnodes; k++) {
		struct sp_peer *p = &n->peers[k];

		p->pushed = calloc(max(n->core.nown, 1u), sizeof(*p->pushed));
		for (i = 0; i < n->core.nown; i++) {
			p->pushed[i].to = node_start(s);
			p->pushed[i].mark = node_start(s);
			p->pushed[i].done = node_start(s);
		}
	}
}

void node_init(struct sim *s, struct node *n)
{
	struct sp_order *o = &n->core.order;
	u32 k;

	n->sim = s;
	n->id = n - s->nodes;
	for (k = 0; k < s->nnodes; k++)
		node_init_slab(s, n, k);

	o->lanes = n->lanes;
	o->nodes = n->seen;
	o->nlanes = s->nlanes;
	o->nnodes = s->nnodes;
	o->self = n->id;
	o->depth = s->depth;
	o->units = s->window >> SP_UNIT_SHIFT;
	o->max_len = s->max_len;
	o->log_size = s->log_size;
	o->log = calloc(o->log_size, sizeof(*o->log));
	o->epoch = s->epoch;
	o->start = (s64)(s->base_round * s->nlanes);
	node_init_lanes(s, n);
	node_init_pushed(s, n);
	n->core.own = n->own;
	n->core.peers = n->peers;
	n->core.view = 1;
	n->core.polled = n->polled;
	n->core.spin = rng_chance(&s->rng, 300) ? 0 : rng_below(&s->rng, 12);
	n->core.ops = &node_ops;
	sp_core_init(&n->core);
	for (k = 0; k < s->nnodes; k++) {
		/* All nodes begin here: none reads what was before. */
		n->seen[k].consumed = o->start - 1;
		n->told[k] = node_tells(n, k);
	}
	check_init(s, n);
	n->nreaders = rng_range(&s->rng, 1, SIM_MAX_READERS);
	if (s->opts.calm) {
		n->nreaders = 1;
		n->core.spin = s->opts.calm->spin;
	}
	node_schedule(n, s->opts.calm ? 1 : rng_range(&s->rng, 1, 50));
}

void node_free(struct node *n)
{
	u32 i;

	for (i = 0; i < n->sim->nlanes; i++)
		if (n->lanes[i].node != n->id)
			free(n->lanes[i].desc);
	for (i = 0; i < n->sim->nnodes; i++) {
		free(n->slab[i]);
		free(n->peers[i].pushed);
	}
	free(n->core.order.log);
}

void node_schedule(struct node *n, u32 delay)
{
	if (n->scheduled || n->failed)
		return;
	n->scheduled = true;
	sim_after(n->sim, delay, EV_PASS, n->id);
}

/* An event that polling may not show: the engine is to look. */
void node_kick(struct node *n)
{
	n->kicked = true;
	if (!n->passing)
		node_schedule(n, rng_range(&n->sim->rng, 1, n->sim->weather.pass_gap));
}

/* A program of this node has stored something: wake the engine if need be. */
void node_local(struct node *n)
{
	if (n->sim->opts.broken & SIM_BREAK_KICK)
		return;
	if (READ_ONCE(n->core.doze.state) != SP_AWAKE)
		node_kick(n);
}

/* A reader has consumed something. */
void node_consumed(struct node *n)
{
	if (!READ_ONCE(n->core.lazy))
		node_local(n);
}

/* A completion: an event while the engine waits for its flag to land. */
void node_completed(struct node *n)
{
	if (n->passing)
		n->noticed = true;
	else if (n->core.doze.state == SP_DOZING && sp_core_watches(&n->core))
		node_schedule(n, rng_range(&n->sim->rng, 1, n->sim->weather.pass_gap));
}

/* The time is over that an engine rests at least. */
void node_rested(struct node *n)
{
	n->resting = false;
	if (n->failed || n->passing || !sp_core_rests(&n->core))
		return;
	n->core.rested = true;
	node_schedule(n, 1);
}

u64 node_released(const struct node *n)
{
	u64 released = n->readers[0].cursor;
	u32 i;

	for (i = 1; i < n->nreaders; i++)
		released = min(released, n->readers[i].cursor);
	return released;
}

static bool node_moved(const struct node *n, u64 released)
{
	u32 i;

	if (node_released(n) != released)
		return true;
	for (i = 0; i < n->core.nown; i++)
		if (n->tx[i].now.round != n->own[i].now.round)
			return true;
	return false;
}

/* What its programs wait for all readers to have read. */
static s64 node_wants(const struct node *n)
{
	s64 wants = -1;
	u32 i;

	for (i = 0; i < n->core.nown; i++)
		wants = max(wants, sp_tx_place(&n->tx[i],
					       n->sim->plans[n->own[i].rank].awaited));
	return wants;
}

static void node_did(struct sim *s, struct node *n, int did)
{
	if (did < 0) {
		sim_trace(s, "node %u fails: %d, for node %u", n->id, did,
			  n->core.faulty);
		n->failed = true;
		if (!s->hostile)
			sim_violation(s, "node %u finds node %u faulty", n->id,
				      n->core.faulty);
		else if (n->core.faulty != s->villain)
			s->accused++;
		return;
	}
	if (did & SP_DID_DELIVER)
		app_delivered(s, n);
	if (did & SP_DID_CLOSE)
		n->closed++;
	if (did & SP_DID_FREE)
		app_unblock(s, n);
}

void node_pass(struct sim *s, struct node *n)
{
	const struct weather *w = &s->weather;
	struct node *amid = s->amid;
	u64 released, published;
	u32 delay;

	n->scheduled = false;
	if (n->failed)
		return;
	if (n->kicked) {
		n->kicked = false;
		sp_core_kick(&n->core);
	}
	s->amid = n;
	if (!amid)
		s->outer = n;
	n->passing = true;
	do {
		sim_forget_past();
		/* All but nulls: those have to be given by all or by none. */
		if (s->flips && rng_chance(&s->opt_rng, 60))
			n->core.opt ^= rng_below(&s->opt_rng, SP_OPT_ALL) &
				~SP_OPT_NULL;
		released = node_released(n);
		published = n->core.order.published;
		n->noticed = false;
		n->core.wants = node_wants(n);
		n->passes++;
		node_did(s, n, sp_pass(&n->core, released));
		if (!(n->core.on & SP_OPT_DELIVER) &&
		    n->core.order.published > published + 1)
			sim_violation(s, "node %u delivers more than one message at once",
				      n->id);
		if (!n->failed)
			check_news(s, n);
		if (!n->failed)
			check_waits(s, n);
		if (s->violated || n->failed)
			break;
		/* The programs' half: they saw an engine awake and did not kick. */
	} while (sp_core_may_block(&n->core) && node_moved(n, released));
	n->passing = false;
	sim_forget_past();
	s->amid = amid;
	if (!amid)
		s->outer = NULL;

	if (!n->failed)
		check_rest(s, n);
	sim_trace(s, "node %u passed: received %lld delivered %lld consumed %lld doze %d/%llu",
		  n->id, (long long)n->seen[n->id].received,
		  (long long)n->core.order.delivered,
		  (long long)n->seen[n->id].consumed, n->core.doze.state,
		  (unsigned long long)n->core.doze.epoch);
	delay = rng_range(&s->rng, 1, w->pass_gap);
	if (sp_core_rests(&n->core) && !n->kicked && !n->resting) {
		n->resting = true;
		sim_after(s, s->opts.calm ? SIM_REST :
			  rng_range(&s->rng, 1, SIM_REST), EV_REST, n->id);
	}
	if (sp_core_may_block(&n->core) && !n->kicked &&
	    (!n->noticed || n->core.doze.state != SP_DOZING ||
	     !sp_core_watches(&n->core))) {
		if (n->core.doze.state != SP_DOZING ||
		    !rng_chance(&s->rng, w->stir))
			return;
		delay += rng_below(&s->rng, 4 * w->net_gap);
	}
	/* Only room in a send queue helps: as the kernel's engine, poll less. */
	if (n->core.unposted && n->core.idle > n->core.spin)
		delay += rng_below(&s->rng, 200);
	if (rng_chance(&s->rng, w->pause))
		delay += rng_below(&s->rng, w->pause_len);
	node_schedule(n, delay);
}
