// SPDX-License-Identifier: GPL-2.0
/*
 * The shell around the core on one node of a group whose members come and go:
 * what the kernel's engine does. Whatever comes from without waits in an inbox
 * until the engine runs.
 */
#include <stdlib.h>

#include "live.h"

struct sp_addr live_addr(u32 id)
{
	struct sp_addr addr = { .b = { [10] = 0xff, [11] = 0xff, [15] = id } };

	return addr;
}

static u32 lnode_id(struct lnode *n, u32 rank)
{
	return live_id(&lnode_view(n)->nodes[rank].addr);
}

/* Rank of a node in this one's view, or -ENOENT. */
int lnode_rank(struct lnode *n, u32 id)
{
	struct sp_addr addr = live_addr(id);

	return sp_view_find_node(lnode_view(n), &addr);
}

/* Which life of a node this one's view speaks of; 0: none, or of several. */
u32 lnode_peer_gen(struct lnode *n, u32 id)
{
	struct sp_view *v = lnode_view(n);
	u32 gen = 0;
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		u32 its = v->members[i].cookie >> 32;

		if (live_id(&v->members[i].addr) != id)
			continue;
		if (gen && gen != its)
			return 0;
		gen = its;
	}
	return gen;
}

bool lnode_suspects(struct lnode *n, u32 id)
{
	int rank = lnode_rank(n, id);

	return rank >= 0 && sp_suspects(&n->ballot, rank);
}

/* Does what is sent arrive, if at some time to come? */
static bool lnode_up(struct lnode *n, u32 id)
{
	const struct lpair *p = live_pair(n->l, n->id, id);

	return p->up || p->carry;
}

static u64 lnode_epoch(const struct live *l, u64 view)
{
	return rng_mix(l->gid + view);
}

/* What other contexts do while a pass goes on. */
void lnode_interrupted(struct lnode *n)
{
	struct live *l = n->l;

	if (l->weather.amid && rng_below(&l->rng, l->weather.amid) < 4)
		live_disturb(l);
}

static bool lnode_crashes(struct lnode *n, u32 *steps)
{
	if (*steps && !--*steps)
		lnode_crash(n);
	return n->state == NODE_CRASHED;
}

static void op_lane_lock(struct sp_core *c, u32 own)
{
	struct lnode *n = lnode_of(c);

	lnode_interrupted(n);
	if (n->held++)
		live_violation(n->l, "node %u takes two lane locks", n->id);
	n->progs[own]->locked = true;
}

static void op_lane_unlock(struct sp_core *c, u32 own)
{
	struct lnode *n = lnode_of(c);

	n->progs[own]->locked = false;
	n->held--;
	lnode_interrupted(n);
}

static void lnode_post_run(struct lnode *n, u32 id, u32 own,
			   const struct sp_run *run, bool copy)
{
	const struct key *key = &n->ends[id].key[own];
	const struct sp_core *c = &n->core;
	u8 *mine = n->slab[c->order.slot[c->own[own].rank]];
	struct live *l = n->l;
	struct ldir *d = live_dir(l, n->id, id);
	u32 i;

	if (key->cookie != n->progs[own]->cookie) {
		live_violation(l, "node %u pushes lane %u to node %u without a key",
			       n->id, own, id);
		return;
	}
	for (i = 0; i < 4; i++) {
		const struct sp_seg *seg = i < 2 ? &run->bytes[i] : &run->desc[i - 2];
		u64 off = seg->off + (i < 2 ? l->lay.ring_off : 0);

		if (seg->len)
			lnet_post(l, d, i < 2 ? PKT_BYTES : PKT_DESC,
				  key->slab + off, mine + off, seg->len, copy);
	}
}

static int op_post_run(struct sp_core *c, u32 node, u32 own,
		       const struct sp_run *run)
{
	struct lnode *n = lnode_of(c);
	struct live *l = n->l;
	u32 id = lnode_id(n, node);
	struct ldir *d = live_dir(l, n->id, id);

	lnode_interrupted(n);
	if (lnode_crashes(n, &n->crash_post))
		return 0;
	if (!lnet_room(l, d, sp_run_segs(run)))
		return -EAGAIN;
	lnode_post_run(n, id, own, run, false);
	return 0;
}

static int op_post_row(struct sp_core *c, u32 node, const struct sp_cell *cells,
		       u32 count, u32 own, const struct sp_run *run, u64 *ticket)
{
	struct lnode *n = lnode_of(c);
	struct live *l = n->l;
	u32 id = lnode_id(n, node);
	struct ldir *d = live_dir(l, n->id, id);

	lnode_interrupted(n);
	if (lnode_crashes(n, &n->crash_post))
		return 0;
	if (!lnet_room(l, d, 1 + (run ? sp_run_segs(run) : 0)))
		return -EAGAIN;
	if (!l->nodes[id].polled) {
		if (!d->credits)
			return -EAGAIN;
		d->credits--;
	}
	if (run)
		lnode_post_run(n, id, own, run, true);
	*ticket = lnet_post(l, d, PKT_ROW,
			    n->ends[id].to_rows + (c->view & 1) * SP_ROW_MAX, cells,
			    count * sizeof(*cells), true);
	return 0;
}

static u64 op_landed(struct sp_core *c, u32 node)
{
	struct lnode *n = lnode_of(c);

	lnode_interrupted(n);
	return live_dir(n->l, n->id, lnode_id(n, node))->completed;
}

static int op_post_wake(struct sp_core *c, u32 node)
{
	struct lnode *n = lnode_of(c);
	struct ldir *d = live_dir(n->l, n->id, lnode_id(n, node));

	if (n->state == NODE_CRASHED)
		return 0;
	if (!lnet_room(n->l, d, 1))
		return -EAGAIN;
	lnet_post(n->l, d, PKT_WAKE, NULL, NULL, 0, true);
	return 0;
}

static const struct sp_shell_ops lnode_ops = {
	.lane_lock = op_lane_lock,
	.lane_unlock = op_lane_unlock,
	.post_run = op_post_run,
	.post_row = op_post_row,
	.landed = op_landed,
	.post_wake = op_post_wake,
};

static bool lnode_slot_used(const struct lnode *n, u32 slot,
			    const u16 *slots, u32 count)
{
	const struct sp_order *o = &n->core.order;
	u32 i;

	if (n->lanes[slot].held)
		return true;
	for (i = 0; i < o->nlanes; i++)
		if (o->slot[i] == slot)
			return true;
	for (i = 0; i < count; i++)
		if (slots[i] == slot)
			return true;
	return false;
}

/* A lane that is new here: a slot for it, and memory that nobody else writes. */
static void lnode_lane(struct lnode *n, u32 slot, const struct sp_member *m,
		       const struct sp_point *at)
{
	struct live *l = n->l;
	struct sp_lane *lane = &n->lanes[slot];
	struct prog *p = &l->progs[(u32)m->cookie];
	bool own = live_id(&m->addr) == n->id;

	if (!n->slab[slot] || !(l->opts.broken & LIVE_BREAK_QUARANTINE))
		n->slab[slot] = live_alloc(l, l->lay.size);
	lane->src = (struct sp_desc *)n->slab[slot];
	lane->desc = own ? (struct sp_desc *)n->slab[slot] :
		live_alloc(l, l->depth * sizeof(*lane->desc));
	sp_lane_init(lane, at);
	n->sender[slot] = p;
	if (!own)
		return;
	n->progs[m->nr] = p;
	n->own[m->nr].tx = live_alloc(l, sizeof(struct sp_tx));
	sp_tx_init(n->own[m->nr].tx, lane->desc, l->depth, l->window, m->lane, 0);
}

/* What another node writes its rows to, here. */
static void lnode_rows(struct lnode *n, u32 id)
{
	struct lend *e = &n->ends[id];
	u8 *old = e->rows;
	struct lend was = *e;

	memset(e, 0, sizeof(*e));
	e->wait = was.wait;
	e->holds = was.holds;
	e->inc = was.inc;
	e->last = was.last;
	e->rows = old && (n->l->opts.broken & LIVE_BREAK_QUARANTINE) ? old :
		live_alloc(n->l, SP_ROWS_BYTES);
}

static void lnode_peer(struct lnode *n, struct sp_peer *p, u32 id)
{
	p->bank[0] = (const struct sp_cell *)n->ends[id].rows;
	p->bank[1] = (const struct sp_cell *)(n->ends[id].rows + SP_ROW_MAX);
	p->polled = n->l->nodes[id].polled;
	p->carry = p->polled ? 0 : SIM_CARRY;
	p->pushed = live_alloc(n->l, SP_MAX_NODE_LANES * sizeof(*p->pushed));
}

static void lnode_agreement(struct lnode *n, u32 self)
{
	n->ballot.limit = n->l->limit;
	n->ballot.minority = n->l->opts.minority;
	sp_ballot_init(&n->ballot, lnode_view(n), self, n->reports[n->bank]);
}

static void lnode_readers(struct lnode *n)
{
	struct sp_view *v = lnode_view(n);
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (live_id(&v->members[i].addr) == n->id)
			lapp_begin(n, &n->l->progs[(u32)v->members[i].cookie]);
}

/* The sending side of an own lane in the view that begins. */
static void lnode_tx(struct lnode *n, const struct sp_member *m, u64 base, s64 start)
{
	const struct sp_view *v = lnode_view(n);
	struct sp_tx *tx = n->own[m->nr].tx;

	sp_tx_view(tx, base, start, m->lane, v->nlanes);
	sp_tx_members(tx, v);
}

/* The first view of this life: the group's first, or what a WELCOME reports. */
void lnode_begin(struct lnode *n, const struct welcome *w)
{
	struct live *l = n->l;
	struct sp_order *o = &n->core.order;
	struct sp_view *v;
	u32 i;

	n->bank = 0;
	v = lnode_view(n);
	*v = w->view;
	memset(&n->core, 0, sizeof(n->core));
	memset(n->own, 0, sizeof(n->own));
	memset(n->peers, 0, sizeof(n->peers));
	n->lanes = live_alloc(l, SP_MAX_SLOTS * sizeof(*n->lanes));
	memset(n->slab, 0, sizeof(n->slab));
	n->state = NODE_IN;
	n->gone = 0;
	n->recorded = 0;
	n->last = NULL;
	n->first = v->id;

	o->lanes = n->lanes;
	o->nodes = n->seen;
	o->nlanes = v->nlanes;
	o->nnodes = v->nnodes;
	o->self = lnode_rank(n, n->id);
	o->depth = l->depth;
	o->units = l->window >> SP_UNIT_SHIFT;
	o->max_len = l->max_len;
	o->log_size = 128 * l->depth;
	o->log = live_alloc(l, o->log_size * sizeof(*o->log));
	o->epoch = lnode_epoch(l, v->id);
	o->start = w->start;
	n->core.own = n->own;
	n->core.peers = n->peers[0];
	n->core.nown = v->nodes[o->self].lanes;
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];

		if (m->lane < 0)
			continue;
		o->slot[m->lane] = m->lane;
		lnode_lane(n, m->lane, m, &w->at[m->lane]);
		n->lanes[m->lane].fin = w->fin[m->lane];
		if (live_id(&m->addr) == n->id)
			lnode_tx(n, m, w->at[m->lane].round, w->start);
	}
	for (i = 0; i < v->nnodes; i++) {
		lnode_rows(n, lnode_id(n, i));
		lnode_peer(n, &n->core.peers[i], lnode_id(n, i));
	}
	sp_core_ranks(&n->core, v);
	n->core.view = v->id;
	n->core.polled = n->polled;
	n->core.spin = rng_below(&l->rng, 12);
	n->core.opt = SP_OPT_ALL;
	if (rng_chance(&l->rng, 150))
		n->core.opt = rng_below(&l->rng, SP_OPT_ALL + 1) | SP_OPT_NULL;
	n->core.ops = &lnode_ops;
	sp_core_init(&n->core);
	for (i = 0; i < v->nnodes; i++)
		if (i != o->self)
			sp_core_cut(&n->core, i);
	lnode_agreement(n, o->self);
	live_trace(l, "node %u begins in view %llu", n->id,
		   (unsigned long long)v->id);
	sp_order_event(o, LIVE_VIEW_EVENT, (u32)v->id);
	lnode_readers(n);
	lcheck_installed(n);
	for (i = 0; i < v->nnodes; i++) {
		u32 id = lnode_id(n, i);

		if (id == n->id)
			continue;
		live_patience(n, id);
		if (lnode_up(n, id))
			lnode_connected(n, id, false);
	}
	lnode_schedule(n, 1);
}

static void lnode_send_keys(struct lnode *n, u32 id)
{
	struct keys *k = live_alloc(n->l, sizeof(*k));
	const struct sp_peer *p = &n->core.peers[lnode_rank(n, id)];
	u32 i;

	k->rows = n->ends[id].rows;
	for (i = 0; i < p->nlanes; i++) {
		u32 slot;

		if (p->lanes[i] < 0)
			continue;
		slot = n->core.order.slot[p->lanes[i]];
		k->lane[k->n].nr = i;
		k->lane[k->n].key.cookie = n->sender[slot]->cookie;
		k->lane[k->n++].key.slab = n->slab[slot];
	}
	lnet_send(n->l, n->id, id, MSG_KEYS, 0, k);
}

static void lnode_send_welcome(struct lnode *n, u32 id)
{
	struct welcome *w = live_alloc(n->l, sizeof(*w));
	const struct sp_order *o = &n->core.order;
	u32 i;

	w->view = *lnode_view(n);
	w->start = o->start;
	/* Nothing can have been delivered without the one that is welcomed. */
	for (i = 0; i < o->nlanes; i++) {
		sp_lane_point(sp_order_lane(o, i), o->depth, &w->at[i]);
		w->fin[i] = sp_order_lane(o, i)->fin;
	}
	lnet_send(n->l, n->id, id, MSG_WELCOME, 0, w);
}

static struct sp_report *lnode_report(struct lnode *n)
{
	struct sp_report *t = live_alloc(n->l, sizeof(*t));

	*t = *sp_ballot_own(&n->ballot);
	return t;
}

/* There is a connection: memory is granted anew, and all is said again. */
void lnode_connected(struct lnode *n, u32 id, bool welcome)
{
	if (n->state != NODE_IN)
		return;
	if (welcome)
		lnode_send_welcome(n, id);
	lnode_send_keys(n, id);
	if (n->l->opts.broken & LIVE_BREAK_AGAIN)
		return;
	if (n->last && !(n->l->opts.broken & LIVE_BREAK_OLD_REPORT))
		lnet_send(n->l, n->id, id, MSG_REPORT, 0, n->last);
	lnet_send(n->l, n->id, id, MSG_REPORT, 0, lnode_report(n));
}

/* To all that are not suspected. It may crash between any two of them. */
static void lnode_send_report(struct lnode *n)
{
	const struct sp_report *t = lnode_report(n);
	struct sp_view *v = lnode_view(n);
	u32 i;

	n->dirty = false;
	live_trace(n->l, "node %u reports: view %llu suspects %#llx%s ballot %d joins %u",
		   n->id, (unsigned long long)t->view,
		   (unsigned long long)t->suspected,
		   t->wedged ? " wedged" : "", (int)t->accepted.ballot, t->njoins);
	for (i = 0; i < v->nnodes; i++) {
		if (i == n->ballot.self || sp_suspects(&n->ballot, i) ||
		    !lnode_up(n, lnode_id(n, i)))
			continue;
		if (lnode_crashes(n, &n->crash_send))
			return;
		lnet_send(n->l, n->id, lnode_id(n, i), MSG_REPORT, 0, t);
	}
}

static void lnode_close_later(struct lnode *n, u32 id)
{
	struct lpair *p = live_pair(n->l, n->id, id);

	if (p->up || p->carry)
		live_after(n->l, rng_range(&n->l->rng, 200, 3000), LE_CLOSE,
			   n->id, id, p->inc);
}

/*
 * Nothing more is written to a node. What was is flushed in a while, or completes
 * if the node has left in order; until then it may be read and sent again.
 */
static void lnode_hold(struct lnode *n, u32 id, bool suspected)
{
	struct live *l = n->l;
	struct ldir *d = live_dir(l, n->id, id);
	struct lend *e = &n->ends[id];

	if (d->dead || d->completed == d->posted)
		return;
	e->holds = true;
	e->inc = live_pair(l, n->id, id)->inc;
	e->last = d->posted;
	if (!(l->opts.broken & LIVE_BREAK_HOLD))
		n->core.hold = true;
	if (suspected)
		live_after(l, rng_range(&l->rng, 1, 1000), LE_FLUSH, n->id, id,
			   e->inc);
}

void lnode_flush(struct lnode *n, u32 id, u64 inc)
{
	if (n->state != NODE_IN || live_pair(n->l, n->id, id)->inc != inc)
		return;
	lnet_flush(n->l, live_dir(n->l, n->id, id));
	lnode_kick(n);
}

/* When nothing to nodes that are gone is under way, room is given back again. */
static void lnode_release(struct lnode *n)
{
	bool holds = false;
	u32 i;

	if (!n->core.hold)
		return;
	for (i = 0; i < n->l->nnodes; i++) {
		const struct ldir *d = live_dir(n->l, n->id, i);
		struct lend *e = &n->ends[i];

		if (d->dead || d->completed >= e->last ||
		    live_pair(n->l, n->id, i)->inc != e->inc)
			e->holds = false;
		holds |= e->holds;
	}
	if (holds)
		return;
	n->core.hold = false;
	sp_core_kick(&n->core);
}

/* Nodes that are suspected from now on are neither read nor written to. */
static void lnode_fence(struct lnode *n)
{
	u64 new = sp_ballot_own(&n->ballot)->suspected & ~n->gone;
	u32 i;

	n->gone |= new;
	for (i = 0; new >> i; i++) {
		u32 id;

		if (!(new >> i & 1))
			continue;
		id = lnode_id(n, i);
		live_trace(n->l, "node %u suspects node %u", n->id, id);
		n->core.peers[i].gone = true;
		n->early[id] = NULL;
		lnode_hold(n, id, true);
		lnode_close_later(n, id);
	}
}

/* It is over for this node: the programs are told why. */
static void lnode_out(struct lnode *n, int why)
{
	struct live *l = n->l;
	u32 i;

	live_trace(l, "node %u is out: %d", n->id, why);
	n->state = NODE_OUT;
	n->why = why;
	for (i = 0; i < l->nprogs; i++)
		if (l->progs[i].node == n->id)
			lapp_end(&l->progs[i], why);
	for (i = 0; i < l->nnodes; i++)
		if (i != n->id)
			lnode_close_later(n, i);
}

static void lnode_suspect(struct lnode *n, u32 id)
{
	int rank = lnode_rank(n, id);

	if (n->state != NODE_IN || rank < 0 || id == n->id ||
	    !sp_suspect(&n->ballot, rank))
		return;
	live_lost(n->l, n->id, id);
	n->dirty = true;
}

/* Asks of a node in an earlier life than the one the view speaks of, or later. */
static void lnode_check_asks(struct lnode *n)
{
	struct sp_report *own = sp_ballot_own(&n->ballot);
	u32 i;

	if (n->l->opts.broken & LIVE_BREAK_INCARNATION)
		return;
	for (i = 0; i < own->njoins; i++) {
		u32 id = live_id(&own->joins[i].addr);

		if (lnode_rank(n, id) >= 0 &&
		    lnode_peer_gen(n, id) != own->joins[i].cookie >> 32)
			lnode_suspect(n, id);
	}
}

/*
 * A program asks this node to be taken in. Who asks in a new life has lost the
 * one before.
 */
int lnode_ask(struct lnode *n, const struct prog *p)
{
	struct sp_join_request who = {
		.addr = live_addr(p->node),
		.cookie = p->cookie,
		.flags = p->flags | SP_MEMBER_STALE,
	};
	struct sp_report *own = sp_ballot_own(&n->ballot);
	u32 i;
	int ret;

	if (n->state != NODE_IN || n->paused || n->ballot.decided)
		return -EAGAIN;
	for (i = 0; i < own->njoins; i++)
		if (live_id(&own->joins[i].addr) == p->node &&
		    own->joins[i].cookie >> 32 != p->cookie >> 32)
			sp_ballot_cancel(&n->ballot, &own->joins[i].addr,
				       own->joins[i].cookie);
	ret = sp_ballot_join(&n->ballot, &who);
	if (ret > 0)
		n->dirty = true;
	lnode_check_asks(n);
	lnode_kick(n);
	return ret;
}

/* Who was in the view that ended, and is in this one no more. */
static void lnode_part(struct lnode *n, const struct sp_view *old, u64 suspected)
{
	struct sp_view *v = lnode_view(n);
	u32 i;

	for (i = 0; i < old->nnodes; i++) {
		const struct sp_addr *addr = &old->nodes[i].addr;
		u32 id = live_id(addr);

		if (sp_view_stayed(v, old, addr))
			continue;
		n->early[id] = NULL;
		if ((suspected >> i & 1) || !lnode_up(n, id))
			continue;
		lnode_hold(n, id, false);
		lnet_send(n->l, n->id, id, MSG_BYE, v->id, NULL);
		lnode_close_later(n, id);
	}
}

static void lnode_open_lanes(struct lnode *n, u32 id)
{
	int rank = lnode_rank(n, id);
	u32 k;

	if (rank < 0 || !n->ends[id].keyed)
		return;
	for (k = 0; k < n->core.nown; k++)
		if (n->core.own[k].tx &&
		    n->ends[id].key[k].cookie == n->progs[k]->cookie &&
		    !(n->core.peers[rank].open >> k & 1))
			sp_core_open(&n->core, rank, k);
}

/* Fill in what the next view is made of. */
static void lnode_next(struct lnode *n, const struct sp_view *old,
		       const struct sp_proposal *p, struct sp_next *next)
{
	const struct sp_view *v = next->view;
	static const struct sp_point zero;
	u32 i, slot;

	next->self = lnode_rank(n, n->id);
	next->epoch = lnode_epoch(n->l, v->id);
	for (i = 0; i < SP_MAX_NODE_LANES; i++) {
		int rank = sp_view_find_member(v, &v->nodes[next->self].addr,
					       n->progs[i] ? n->progs[i]->cookie : ~0ull);

		if (n->own[i].tx && rank < 0)
			n->own[i].tx = NULL;
	}
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		int was = sp_view_find_member(old, &m->addr, m->cookie);

		if (m->lane < 0)
			continue;
		/* A member may come to send when another one has gone. */
		if (was >= 0 && old->members[was].lane >= 0) {
			s32 rank = old->members[was].lane;

			next->slot[m->lane] = n->core.order.slot[rank];
			next->base[m->lane] = p->trim[rank];
			continue;
		}
		for (slot = 0; lnode_slot_used(n, slot, next->slot, m->lane); slot++)
			;
		next->slot[m->lane] = slot;
		next->base[m->lane] = 0;
		lnode_lane(n, slot, m, &zero);
		if (live_id(&m->addr) == n->id)
			next->fresh |= 1ull << m->nr;
	}
	for (i = 0; i < v->nnodes; i++) {
		const struct sp_addr *addr = &v->nodes[i].addr;

		next->node_was[i] = sp_view_stayed(v, old, addr) ?
			sp_view_find_node(old, addr) : -1;
		if (next->node_was[i] >= 0)
			continue;
		lnode_rows(n, live_id(addr));
		memset(&next->peers[i], 0, sizeof(next->peers[i]));
		lnode_peer(n, &next->peers[i], live_id(addr));
	}
}

static void lnode_install(struct lnode *n)
{
	struct live *l = n->l;
	struct sp_view *old = lnode_view(n);
	struct sp_view *v = &n->views[!n->bank];
	const struct sp_proposal p = *sp_ballot_decision(&n->ballot);
	u64 suspected = sp_ballot_own(&n->ballot)->suspected;
	struct sp_ballot was = n->ballot;
	struct sp_next next = { .view = v, .peers = n->peers[!n->bank] };
	struct sp_addr self = live_addr(n->id);
	u32 i;
	int ret;

	if (n->crash_install) {
		lnode_crash(n);
		return;
	}
	lcheck_decided(n, &p);
	ret = sp_view_next(old, &p, false, v);
	if (ret) {
		live_violation(l, "node %u: no view follows: %d", n->id, ret);
		return;
	}
	n->last = lnode_report(n);
	if (!sp_view_stayed(v, old, &self)) {
		bool left = true;

		for (i = 0; i < old->nmembers; i++)
			if (live_id(&old->members[i].addr) == n->id)
				left &= p.reason[i] != SP_LOST;
		lnode_out(n, left ? 0 : -ECONNABORTED);
		return;
	}
	ret = sp_order_trim(&n->core.order, p.trim);
	if (!ret)
		ret = sp_order_event(&n->core.order, LIVE_VIEW_EVENT, (u32)v->id);
	if (ret) {
		live_violation(l, "node %u cannot end view %llu: %d", n->id,
			       (unsigned long long)old->id, ret);
		return;
	}
	lapp_delivered(n);
	sp_order_state(&n->core.order, old, v);
	for (i = 0; i < old->nmembers; i++)
		if (live_id(&old->members[i].addr) == n->id && p.reason[i])
			lapp_end(&l->progs[(u32)old->members[i].cookie], 0);
	n->bank = !n->bank;
	lnode_next(n, old, &p, &next);
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];

		if (m->lane >= 0 && live_id(&m->addr) == n->id)
			lnode_tx(n, m, next.base[m->lane],
				 n->core.order.delivered + 1);
	}
	sp_core_install(&n->core, &next);
	live_trace(l, "node %u installs view %llu: %u members on %u nodes, from seq %lld",
		   n->id, (unsigned long long)v->id, v->nmembers, v->nnodes,
		   (long long)n->core.order.start);
	lnode_agreement(n, next.self);
	sp_ballot_carry(&n->ballot, &was);
	n->gone = 0;
	n->dirty = true;
	lnode_readers(n);
	lapp_delivered(n);
	lcheck_installed(n);
	lnode_part(n, old, suspected);
	lnode_fence(n);
	lnode_check_asks(n);
	for (i = 0; i < v->nnodes; i++) {
		u32 id = lnode_id(n, i);

		if (id == n->id)
			continue;
		if (next.node_was[i] < 0) {
			live_patience(n, id);
			continue;
		}
		if (lnode_up(n, id) && !sp_suspects(&n->ballot, i))
			lnode_send_keys(n, id);
		lnode_open_lanes(n, id);
	}
	for (i = 0; i < v->nnodes; i++) {
		u32 id = lnode_id(n, i);

		if (n->early[id] && n->early[id]->view == v->id &&
		    !(l->opts.broken & LIVE_BREAK_EARLY)) {
			sp_ballot_receive(&n->ballot, i, n->early[id]);
			n->early[id] = NULL;
		}
	}
}

/* Members that are dead or want to go, and whose messages are all delivered. */
static void lnode_leaves(struct lnode *n)
{
	struct sp_view *v = lnode_view(n);
	u32 i;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		struct prog *p = &n->l->progs[(u32)m->cookie];

		if (live_id(&m->addr) != n->id || p->state != PROG_DYING ||
		    (m->lane >= 0 && !lapp_drained(n, p)))
			continue;
		if (sp_ballot_leave(&n->ballot, i, p->wish))
			n->dirty = true;
	}
}

/* The core does not believe what is said of lower ranks: it breaks that rule. */
static void lnode_adopt(struct lnode *n, const struct sp_report *t)
{
	u32 i;

	for (i = 0; i < lnode_view(n)->nnodes; i++)
		if (t->suspected >> i & 1)
			lnode_suspect(n, lnode_id(n, i));
}

/* Is anything posted that has not completed? Only a broken rule waits for it. */
static bool lnode_drains(struct lnode *n)
{
	u32 i;

	for (i = 0; i < n->l->nnodes; i++) {
		const struct ldir *d = live_dir(n->l, n->id, i);

		if ((n->l->opts.broken & LIVE_BREAK_DRAIN) && i != n->id &&
		    d->completed != d->posted)
			return true;
	}
	return false;
}

/* Come to what follows from all that was heard. */
static void lnode_agree(struct lnode *n)
{
	struct live *l = n->l;
	u64 counts[SP_MAX_MEMBERS];
	int did;

	while (n->state == NODE_IN && !l->violated) {
		if (n->ballot.decided) {
			/* Only when a rule is broken. */
			if (lnode_released(n) != n->core.order.published)
				return;
			lnode_install(n);
			continue;
		}
		lnode_leaves(n);
		if (!n->heard && !n->dirty)
			return;
		n->heard = false;
		did = sp_ballot_step(&n->ballot);
		lnode_fence(n);
		if (did == -ENETDOWN) {
			lnode_out(n, did);
			return;
		}
		if ((did & SP_STEP_SEND) || n->dirty)
			lnode_send_report(n);
		if (n->state != NODE_IN)
			return;
		if ((did & SP_STEP_WEDGE) && lnode_drains(n))
			return;
		if (did & SP_STEP_WEDGE) {
			live_trace(l, "node %u wedges", n->id);
			if (sp_core_wedge(&n->core, counts))
				live_violation(l, "node %u finds node %u faulty",
					       n->id, n->core.faulty);
			if (l->opts.broken & LIVE_BREAK_WEDGE)
				n->core.wedged = false;
			sp_core_floor(&n->core, n->ballot.floor);
			sp_ballot_wedged(&n->ballot, counts);
			n->dirty = true;
			continue;
		}
		if (did & SP_STEP_DECIDED) {
			if ((l->opts.broken & LIVE_BREAK_READERS) &&
			    lnode_released(n) != n->core.order.published)
				return;
			lnode_install(n);
			continue;
		}
		if (!did)
			return;
	}
}

static void lnode_keys(struct lnode *n, u32 id, const struct keys *k)
{
	struct lend *e = &n->ends[id];
	int rank = lnode_rank(n, id);
	u32 i;

	if (rank < 0 || sp_suspects(&n->ballot, rank))
		return;
	e->to_rows = k->rows;
	e->keyed = true;
	if (!e->lost)
		e->wait++;
	for (i = 0; i < k->n; i++)
		e->key[k->lane[i].nr] = k->lane[i].key;
	if (n->core.peers[rank].cut) {
		live_trace(n->l, "node %u reaches node %u", n->id, id);
		sp_core_mend(&n->core, rank);
	}
	lnode_open_lanes(n, id);
}

static void lnode_notice(struct lnode *n, u32 id, u64 inc)
{
	struct lpair *p = live_pair(n->l, n->id, id);
	int rank = lnode_rank(n, id);

	if (p->inc != inc || p->up)
		return;
	lnet_flush(n->l, live_dir(n->l, n->id, id));
	p->noticed[n->id > id] = true;
	n->ends[id].keyed = false;
	if (rank >= 0 && !sp_suspects(&n->ballot, rank)) {
		live_trace(n->l, "node %u loses node %u", n->id, id);
		sp_core_cut(&n->core, rank);
	}
	live_patience(n, id);
}

/* All members here want to go, and all that they sent was delivered. */
static bool lnode_left(struct lnode *n)
{
	const struct sp_report *own = sp_ballot_own(&n->ballot);
	struct sp_view *v = lnode_view(n);
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (live_id(&v->members[i].addr) == n->id && !own->leaves[i])
			return false;
	return true;
}

/* The nodes that it hears now, by rank, and itself. */
u64 lnode_heard(struct lnode *n)
{
	struct live *l = n->l;
	u64 heard = 1ull << n->ballot.self;
	u32 i;

	for (i = 0; i < lnode_view(n)->nnodes; i++) {
		u32 id = lnode_id(n, i);

		if (i != n->ballot.self && live_pair(l, n->id, id)->up &&
		    n->ends[id].keyed && !n->ends[id].lost &&
		    !live_blocked(l, n->id, id) && !l->nodes[id].paused &&
		    l->nodes[id].state != NODE_CRASHED)
			heard |= 1ull << i;
	}
	return heard;
}

static bool lnode_lonely(struct lnode *n)
{
	return sp_suspect_waits(&n->ballot, lnode_heard(n));
}

/* A node is not heard for too long. It is waited for where no majority is heard. */
static void lnode_miss(struct lnode *n, u32 id)
{
	int rank = lnode_rank(n, id);

	if (rank < 0 || sp_suspects(&n->ballot, rank))
		return;
	if (!lnode_lonely(n) || lnode_left(n)) {
		lnode_suspect(n, id);
		return;
	}
	live_trace(n->l, "node %u waits for node %u", n->id, id);
	n->waits |= 1ull << id;
}

/* Should a majority be heard again, each of those that are not has all its time anew. */
static void lnode_reunite(struct lnode *n)
{
	struct live *l = n->l;
	bool lonely = lnode_lonely(n);
	u32 id;

	if (!n->waits || (lonely && !lnode_left(n)))
		return;
	live_trace(l, "node %u waits no longer", n->id);
	for (id = 0; id < l->nnodes; id++) {
		if (!(n->waits >> id & 1) || lnode_rank(n, id) < 0)
			continue;
		if (lonely)
			lnode_suspect(n, id);
		else if (l->nodes[id].paused)
			live_after(l, l->suspect, LE_SILENT, n->id, id,
				   l->nodes[id].pauses);
		if (!lonely && (!live_pair(l, n->id, id)->up || n->ends[id].lost))
			live_patience(n, id);
	}
	n->waits = 0;
}

/* Does it come of a connection that is known to be dead by now? */
static bool lnode_stale(struct lnode *n, const struct msg *m)
{
	const struct lpair *p = live_pair(n->l, n->id, m->from);

	return m->inc && (m->inc != p->inc ||
			  (p->noticed[n->id > m->from] && !p->carry));
}

static void lnode_message(struct lnode *n, const struct msg *m)
{
	struct live *l = n->l;
	const struct welcome *w = m->body;
	const struct sp_report *t = m->body;
	struct sp_addr self = live_addr(n->id);
	int rank;

	if (lnode_stale(n, m) && !(l->opts.broken & LIVE_BREAK_STALE))
		return;
	n->heard = true;
	if (n->state == NODE_JOINING) {
		int self_rank;

		if (m->kind != MSG_WELCOME)
			return;
		self_rank = sp_view_find_node(&w->view, &self);
		if (self_rank < 0)
			return;
		lnode_begin(n, w);
		return;
	}
	if (n->state != NODE_IN)
		return;
	rank = lnode_rank(n, m->from);
	switch (m->kind) {
	case MSG_REPORT:
		if (t->view > lnode_view(n)->id) {
			n->early[m->from] = t;
		} else if (t->view == lnode_view(n)->id && rank >= 0) {
			if (sp_ballot_receive(&n->ballot, rank, t) < 0)
				live_violation(l, "node %u does not believe node %u",
					       n->id, m->from);
			if (l->opts.broken & LIVE_BREAK_ADOPT)
				lnode_adopt(n, t);
		}
		break;
	case MSG_WELCOME:
		break;
	case MSG_KEYS:
		lnode_keys(n, m->from, m->body);
		break;
	case MSG_BYE:
		/* What was said before it may have been the decision. */
		lnode_agree(n);
		if (n->state == NODE_IN && m->arg > lnode_view(n)->id)
			lnode_out(n, lnode_left(n) ? 0 : -ECONNABORTED);
		break;
	case MSG_NOTICE:
		lnode_notice(n, m->from, m->arg);
		break;
	case MSG_DETECT:
		if (n->ends[m->from].wait == m->arg &&
		    (!n->ends[m->from].keyed || n->ends[m->from].lost))
			lnode_miss(n, m->from);
		break;
	case MSG_SILENT:
		if (l->nodes[m->from].paused && l->nodes[m->from].pauses == m->arg)
			lnode_miss(n, m->from);
		break;
	case MSG_SUSPECTED:
		if (!live_pair(l, n->id, m->from)->up && rank >= 0 &&
		    sp_suspect_in_return(&n->ballot, rank))
			n->dirty = true;
		break;
	case MSG_REFUSED:
		if (!live_pair(l, n->id, m->from)->up)
			lnode_suspect(n, m->from);
		break;
	case MSG_FALSE:
		lnode_suspect(n, m->from);
		break;
	}
}

/* Something comes from without: the engine is to see to it. */
void lnode_receive(struct lnode *n, const struct msg *m)
{
	struct msg *to;

	if (n->state != NODE_IN && n->state != NODE_JOINING)
		return;
	if (n->inbox_first + n->inbox_n == n->inbox_size) {
		struct msg *box = live_alloc(n->l, 2 * (n->inbox_size + 32) *
					     sizeof(*box));

		if (n->inbox_n)
			memcpy(box, n->inbox + n->inbox_first,
			       n->inbox_n * sizeof(*box));
		n->inbox = box;
		n->inbox_first = 0;
		n->inbox_size = 2 * (n->inbox_size + 32);
	}
	to = &n->inbox[n->inbox_first + n->inbox_n++];
	*to = *m;
	lnode_kick(n);
}

static void lnode_inbox(struct lnode *n)
{
	while (n->inbox_n && !n->l->violated &&
	       (n->state == NODE_IN || n->state == NODE_JOINING)) {
		struct msg m = n->inbox[n->inbox_first++];

		n->inbox_n--;
		lnode_message(n, &m);
		/* As often as not the agreement sees one after the other. */
		if (n->state == NODE_IN && rng_chance(&n->l->rng, 500))
			lnode_agree(n);
	}
	n->inbox_n = n->inbox_n && n->state != NODE_OUT ? n->inbox_n : 0;
	if (!n->inbox_n)
		n->inbox_first = 0;
}

void lnode_crash(struct lnode *n)
{
	struct live *l = n->l;
	u32 i;

	live_trace(l, "node %u crashes", n->id);
	n->state = NODE_CRASHED;
	n->blame = true;
	n->paused = false;
	for (i = 0; i < l->nprogs; i++)
		if (l->progs[i].node == n->id)
			lapp_end(&l->progs[i], -ESRCH);
	for (i = 0; i < l->nnodes; i++) {
		struct lpair *p = live_pair(l, n->id, i);

		if (i == n->id || !(p->up || p->carry))
			continue;
		lnet_flush(l, live_dir(l, n->id, i));
		live_after(l, rng_range(&l->rng, 20, l->suspect), LE_RETRIED,
			   n->id, i, p->inc);
	}
}

/* A new life, which knows nothing of those before it. */
void lnode_join(struct lnode *n)
{
	struct live *l = n->l;
	u32 i;

	for (i = 0; i < l->nnodes; i++)
		if (i != n->id)
			lnet_close(l, n->id, i);
	n->gen++;
	n->state = NODE_JOINING;
	n->inbox_n = 0;
	n->inbox_first = 0;
	n->dirty = false;
	n->crash_send = 0;
	n->crash_post = 0;
	n->crash_install = false;
	n->paused = false;
	n->waits = 0;
	memset(n->early, 0, sizeof(n->early));
	for (i = 0; i < l->nnodes; i++) {
		n->ends[i].holds = false;
		n->ends[i].lost = false;
		n->ends[i].wait++;
	}
}

void lnode_schedule(struct lnode *n, u32 delay)
{
	if (n->scheduled || n->paused ||
	    (n->state != NODE_IN && n->state != NODE_JOINING))
		return;
	n->scheduled = true;
	live_after(n->l, delay, LE_RUN, n->id, 0, 0);
}

void lnode_kick(struct lnode *n)
{
	n->kicked = true;
	if (!n->passing)
		lnode_schedule(n, rng_range(&n->l->rng, 1, n->l->weather.pass_gap));
}

void lnode_local(struct lnode *n)
{
	if (READ_ONCE(n->core.doze.state) != SP_AWAKE || n->core.wedged)
		lnode_kick(n);
}

/* A reader has consumed something. */
void lnode_consumed(struct lnode *n)
{
	if (!READ_ONCE(n->core.lazy) || n->core.wedged)
		lnode_local(n);
}

void lnode_completed(struct lnode *n)
{
	if (n->passing)
		n->noticed = true;
	else if ((n->core.doze.state == SP_DOZING && sp_core_watches(&n->core)) ||
		 n->core.hold)
		lnode_schedule(n, rng_range(&n->l->rng, 1, n->l->weather.pass_gap));
}

/* The time is over that an engine rests at least. */
void lnode_rested(struct lnode *n)
{
	n->resting = false;
	if (n->state != NODE_IN || n->passing || !sp_core_rests(&n->core))
		return;
	n->core.rested = true;
	lnode_schedule(n, 1);
}

/* What no living reader of this node needs any more. */
u64 lnode_released(struct lnode *n)
{
	u64 released = n->core.order.published;
	u32 i;

	for (i = 0; i < n->l->nprogs; i++) {
		const struct prog *p = &n->l->progs[i];

		if (p->node == n->id && p->state == PROG_MEMBER)
			released = min(released, p->cursor);
	}
	return released;
}

static bool lnode_moved(struct lnode *n, u64 released)
{
	u32 i;

	if (lnode_released(n) != released)
		return true;
	for (i = 0; i < n->core.nown; i++)
		if (n->own[i].tx && !n->core.wedged &&
		    n->own[i].tx->now.round != n->own[i].now.round)
			return true;
	return false;
}

static void lnode_did(struct lnode *n, int did)
{
	if (did < 0) {
		live_violation(n->l, "node %u finds node %u faulty: %d", n->id,
			       lnode_id(n, n->core.faulty), did);
		return;
	}
	if (did & SP_DID_DELIVER)
		lapp_delivered(n);
	if (did & SP_DID_FREE)
		lapp_unblock(n);
}

static void lnode_pass(struct lnode *n)
{
	struct live *l = n->l;
	u64 released;

	l->amid = n;
	n->passing = true;
	do {
		released = lnode_released(n);
		n->noticed = false;
		lnode_did(n, sp_pass(&n->core, released));
	} while (!l->violated && n->state == NODE_IN &&
		 sp_core_may_block(&n->core) && lnode_moved(n, released));
	n->passing = false;
	l->amid = NULL;
}

void lnode_run(struct lnode *n)
{
	struct live *l = n->l;
	const struct weather *w = &l->weather;
	u32 delay;

	n->scheduled = false;
	if (n->paused)
		return;
	lnode_inbox(n);
	if (n->state != NODE_IN || l->violated)
		return;
	lnode_reunite(n);
	lnode_agree(n);
	if (n->state != NODE_IN || l->violated)
		return;
	lnode_release(n);
	if (n->kicked) {
		n->kicked = false;
		sp_core_kick(&n->core);
	}
	lnode_pass(n);
	if (n->state != NODE_IN || l->violated)
		return;
	lnode_agree(n);
	if (n->state != NODE_IN || l->violated)
		return;
	if (sp_core_rests(&n->core) && !n->kicked && !n->resting) {
		n->resting = true;
		live_after(l, rng_range(&l->rng, 1, SIM_REST), LE_REST, n->id, 0, 0);
	}
	if (sp_core_may_block(&n->core) && !n->kicked && !n->inbox_n &&
	    (!n->noticed || n->core.doze.state != SP_DOZING ||
	     !sp_core_watches(&n->core)))
		return;
	/* Where a majority is waited for room is looked for when one is there. */
	if (n->waits && n->core.unposted && n->core.idle > n->core.spin &&
	    !n->kicked && !n->inbox_n)
		return;
	delay = rng_range(&l->rng, 1, w->pass_gap);
	if (n->core.unposted && n->core.idle > n->core.spin)
		delay += rng_below(&l->rng, 200);
	if (rng_chance(&l->rng, w->pause))
		delay += rng_below(&l->rng, w->pause_len);
	lnode_schedule(n, delay);
}
