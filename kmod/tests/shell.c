// SPDX-License-Identifier: GPL-2.0
/* A group on one node, over a shell that records what it is asked to post. */
#include "shell.h"

static struct shell *shell_of(struct sp_core *c)
{
	return container_of(c, struct shell, core);
}

static struct posted *record(struct shell *s, enum posted_kind kind, u32 node)
{
	struct posted *p = &s->posted[s->nposted % ARRAY_SIZE(s->posted)];
	bool held = s->core.nown && !(s->core.on & SP_OPT_UNLOCK);

	memset(p, 0, sizeof(*p));
	p->kind = kind;
	p->node = node;
	s->nposted++;
	/* As asked for, under one lane's lock or none; not to the own node. */
	if (kind != WAKE)
		s->bad += s->locked != held;
	s->bad += node == s->core.order.self;
	s->bad += s->core.peers[node].gone || s->core.peers[node].cut;
	return p;
}

static void op_lane_lock(struct sp_core *c, u32 own)
{
	struct shell *s = shell_of(c);

	s->bad += !s->own[own].tx;
	if (++s->locks == 2 && s->early) {
		sp_tx_commit(&s->tx[0], 10, s->early);
		s->early = 0;
	}
	s->locked++;
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
		return s->fail_error ?: -EAGAIN;
	}
	p = record(s, RUN, node);
	p->own = own;
	p->run = *run;
	s->ticket[s->number[node]]++;
	return 0;
}

static int op_post_row(struct sp_core *c, u32 node, const struct sp_cell *cells,
		       u32 n, u32 own, const struct sp_run *run, u64 *ticket)
{
	struct shell *s = shell_of(c);
	struct posted *p;

	if (s->fail_row) {
		s->fail_row--;
		return s->fail_error ?: -EAGAIN;
	}
	p = record(s, ROW, node);
	s->bad += n > CELLS;
	p->own = own;
	if (run)
		p->run = *run;
	memcpy(p->cells, cells, min_t(u32, n, CELLS) * sizeof(*cells));
	*ticket = ++s->ticket[s->number[node]];
	return 0;
}

static u64 op_landed(struct sp_core *c, u32 node)
{
	struct shell *s = shell_of(c);

	if (s->late) {
		s->late = false;
		peer_cell(s, node, SP_CELL_LANES, sp_progress(1, 1));
		all_landed(s);
	}
	return s->landed[s->number[node]];
}

static int op_post_wake(struct sp_core *c, u32 node)
{
	struct shell *s = shell_of(c);

	if (s->fail_wake) {
		s->fail_wake--;
		return s->fail_error ?: -EAGAIN;
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

/* A view as it need not come about: any lane on any node. */
static struct sp_view *shell_view(struct kunit *test, const u32 *owners,
				  u32 nlanes, u32 nnodes)
{
	struct sp_view *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	v->id = 1;
	v->state = SP_VIEW_ACTIVE;
	v->wanted = nlanes;
	v->max_senders = SP_MAX_MEMBERS;
	v->nmembers = nlanes;
	v->nlanes = nlanes;
	v->nnodes = nnodes;
	for (i = 0; i < nnodes; i++)
		v->nodes[i].addr.b[15] = i;
	for (i = 0; i < nlanes; i++) {
		struct sp_member *m = &v->members[i];

		m->addr.b[15] = owners[i];
		m->cookie = i;
		m->uid = i;
		m->node = owners[i];
		m->lane = i;
		m->nr = v->nodes[owners[i]].lanes++;
	}
	v->next_uid = nlanes;
	v->giver = SP_UID_NOBODY;
	return v;
}

/* What the caller of the core sets of a peer that begins. */
static void shell_peer(struct shell *s, struct sp_peer *p, u32 number)
{
	p->bank[0] = s->rows[number][0];
	p->bank[1] = s->rows[number][1];
	p->pushed = s->pushed[number];
	p->carry = 0;
	p->polled = true;
}

/*
 * shell_new() - a group in its first view, all of it reachable
 * @owners: the node of each lane, by rank
 * @self: this node
 */
struct shell *shell_new(struct kunit *test, const u32 *owners, u32 nlanes,
			u32 nnodes, u32 self)
{
	static const struct sp_point begin;
	struct shell *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct sp_order *o;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	o = &s->core.order;
	s->view = shell_view(test, owners, nlanes, nnodes);
	s->old = shell_view(test, owners, nlanes, nnodes);
	s->peers = kunit_kcalloc(test, NODES, sizeof(*s->peers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->peers);
	s->spare = kunit_kcalloc(test, NODES, sizeof(*s->peers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->spare);
	for (i = 0; i < NODES; i++) {
		s->number[i] = i;
		shell_peer(s, &s->peers[i], i);
		s->peers[i].open = ~0ull;
	}
	for (i = 0; i < nlanes; i++) {
		const struct sp_member *m = &s->view->members[i];
		struct sp_lane *lane = &s->lanes[i];

		o->slot[i] = i;
		lane->src = s->ring[i];
		lane->desc = s->checked[i];
		sp_tx_init(&s->theirs[i], s->ring[i], DEPTH, WINDOW, 0, 1);
		if (m->node == self) {
			lane->desc = s->own_desc[m->nr];
			s->own[m->nr].tx = &s->tx[m->nr];
			sp_tx_init(&s->tx[m->nr], s->own_desc[m->nr], DEPTH,
				   WINDOW, i, nlanes);
			sp_tx_members(&s->tx[m->nr], s->view);
		}
		sp_lane_init(lane, &begin);
	}
	o->lanes = s->lanes;
	o->nodes = s->seen;
	o->log = s->log;
	o->nlanes = nlanes;
	o->nnodes = nnodes;
	o->self = self;
	o->depth = DEPTH;
	o->units = WINDOW / SP_UNIT;
	o->max_len = WINDOW;
	o->log_size = ARRAY_SIZE(s->log);
	o->epoch = EPOCH;
	s->core.own = s->own;
	s->core.nown = s->view->nodes[self].lanes;
	s->core.peers = s->peers;
	s->core.view = 1;
	s->core.polled = true;
	s->core.spin = 4;
	s->core.opt = SP_OPT_ALL;
	s->core.ops = &shell_ops;
	sp_core_ranks(&s->core, s->view);
	sp_core_init(&s->core);
	return s;
}

/* A slot for a lane that comes: nobody sends or reads there. */
static u32 shell_slot(const struct shell *s, const struct sp_next *n, u32 ranks)
{
	const struct sp_order *o = &s->core.order;
	u32 slot, i;

	for (slot = 0; slot < SLOTS - 1; slot++) {
		bool used = s->lanes[slot].held;

		for (i = 0; i < o->nlanes; i++)
			used |= o->slot[i] == slot;
		for (i = 0; i < ranks; i++)
			used |= n->slot[i] == slot;
		if (!used)
			break;
	}
	return slot;
}

/* A lane of the next view: an old one runs on, a new one begins at nothing. */
static void shell_lane(struct shell *s, const struct sp_proposal *p,
		       const struct sp_member *m)
{
	static const struct sp_point begin;
	struct sp_next *n = &s->next;
	struct sp_lane *lane;
	u32 slot;
	int was;

	was = sp_view_find_member(s->old, &m->addr, m->cookie);
	if (was >= 0 && s->old->members[was].lane >= 0) {
		was = s->old->members[was].lane;
		n->slot[m->lane] = s->core.order.slot[was];
		n->base[m->lane] = p->trim[was];
		return;
	}
	slot = shell_slot(s, n, m->lane);
	n->slot[m->lane] = slot;
	n->base[m->lane] = 0;
	lane = &s->lanes[slot];
	memset(lane, 0, sizeof(*lane));
	lane->src = s->ring[slot];
	lane->desc = s->checked[slot];
	sp_tx_init(&s->theirs[slot], s->ring[slot], DEPTH, WINDOW, 0, 1);
	if (m->node == n->self) {
		lane->desc = s->own_desc[m->nr];
		sp_tx_init(&s->tx[m->nr], s->own_desc[m->nr], DEPTH, WINDOW,
			   0, 1);
		n->fresh |= 1ull << m->nr;
	}
	sp_lane_init(lane, &begin);
}

static void shell_own(struct shell *s)
{
	const struct sp_order *o = &s->core.order;
	u32 i;

	for (i = 0; i < OWN; i++)
		s->own[i].tx = NULL;
	for (i = 0; i < s->view->nmembers; i++) {
		const struct sp_member *m = &s->view->members[i];

		if (m->lane < 0 || m->node != s->next.self)
			continue;
		s->own[m->nr].tx = &s->tx[m->nr];
		sp_tx_members(&s->tx[m->nr], s->view);
		sp_tx_view(&s->tx[m->nr], s->next.base[m->lane],
			   o->delivered + 1, m->lane, s->view->nlanes);
	}
}

/*
 * shell_change() - a decision: the view ends and the next one begins
 *
 * Return: 0, or the error of sp_order_trim() or sp_order_event().
 */
int shell_change(struct shell *s, const struct sp_proposal *p)
{
	struct sp_order *o = &s->core.order;
	const struct sp_addr *self = &s->view->nodes[o->self].addr;
	struct sp_next *n = &s->next;
	int ret;
	u32 i;

	swap(s->view, s->old);
	ret = sp_view_next(s->old, p, false, s->view);
	if (!ret)
		ret = sp_order_trim(o, p->trim);
	if (!ret)
		ret = sp_order_event(o, VIEW, s->view->id);
	if (ret) {
		swap(s->view, s->old);
		return ret;
	}
	sp_order_state(o, s->old, s->view);
	memset(n, 0, sizeof(*n));
	n->view = s->view;
	n->self = sp_view_find_node(s->view, self);
	n->epoch = EPOCH + s->view->id - 1;
	n->peers = s->spare;
	for (i = 0; i < s->view->nnodes; i++) {
		const struct sp_addr *addr = &s->view->nodes[i].addr;
		u32 number = addr->b[15];

		n->node_was[i] = -1;
		if (sp_view_stayed(s->view, s->old, addr))
			n->node_was[i] = sp_view_find_node(s->old, addr);
		s->number[i] = number;
		memset(&n->peers[i], 0xff, sizeof(n->peers[i]));
		if (n->node_was[i] >= 0)
			continue;
		/* A connection of its own, with nothing on it. */
		s->ticket[number] = 0;
		s->landed[number] = 0;
		shell_peer(s, &n->peers[i], number);
	}
	for (i = 0; i < s->view->nmembers; i++)
		if (s->view->members[i].lane >= 0)
			shell_lane(s, p, &s->view->members[i]);
	shell_own(s);
	s->spare = s->core.peers;
	sp_core_install(&s->core, n);
	s->bad += s->spare != n->peers;
	s->peers = s->core.peers;
	return 0;
}
