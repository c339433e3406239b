// SPDX-License-Identifier: GPL-2.0
/*
 * What holds inside the nodes of a run: one decision on each view, the same
 * lanes at the same turns in it, and nothing left undone at the end. What is to
 * be seen from outside is for judge.c, which is told of it here.
 */
#include "live.h"

static void lcheck_judge(struct live *l, bool ok)
{
	if (!ok)
		live_violation(l, "%s", judge_why(l->judge));
}

/* A program has committed a message. */
void lcheck_sent(struct live *l, const struct prog *p, u32 len)
{
	lcheck_judge(l, judge_sent(l->judge, p->uid, len));
}

/* A node has published an entry of its log. */
void lcheck_delivered(struct lnode *n, const struct sp_log *log)
{
	struct live *l = n->l;
	struct sp_view *v = lnode_view(n);
	const struct prog *p;
	u32 member;

	if (log->flags & SP_LOG_EVENT) {
		lcheck_judge(l, judge_view(l->judge, n->id, log->pos, log->seq));
		return;
	}
	p = n->sender[log->lane & SP_LOG_SLOT];
	live_trace(l, "node %u delivers a message of program %u, seq %lld",
		   n->id, p->uid, (long long)log->seq);
	member = n->lanes[log->lane & SP_LOG_SLOT].member;
	if (member >= v->nmembers || v->members[member].cookie != p->cookie)
		live_violation(l, "node %u delivers program %u as member %u",
			       n->id, p->uid, member);
	if (log->flags & SP_DESC_STATE)
		l->caught_up[sp_desc_uid(log->flags)] = true;
	if (!sp_desc_flags_ok(log->flags))
		live_violation(l, "node %u delivers program %u with flags %#x",
			       n->id, p->uid, log->flags);
	lcheck_judge(l, judge_message(l->judge, n->id, p->uid, log->len,
				      log->seq));
}

static struct record *lcheck_record(struct live *l, u64 view)
{
	if (view >= LIVE_MAX_VIEWS) {
		live_violation(l, "no end of views");
		view = 0;
	}
	if (!l->records[view])
		l->records[view] = live_alloc(l, sizeof(struct record));
	return l->records[view];
}

/* A node has come to a decision: there is only one. */
void lcheck_decided(struct lnode *n, const struct sp_proposal *p)
{
	const struct sp_view *v = lnode_view(n);
	struct record *r = lcheck_record(n->l, v->id + 1);
	u32 changes = p->njoins;
	u32 i;

	live_trace(n->l, "node %u decides on view %llu", n->id,
		   (unsigned long long)v->id + 1);
	if (!r->decided) {
		r->decided = true;
		r->how = *p;
		for (i = 0; i < v->nmembers; i++)
			changes += !!p->reason[i];
		if (!changes)
			live_violation(n->l, "node %u decides on view %llu, which changes nothing",
				       n->id, (unsigned long long)v->id + 1);
		return;
	}
	if (r->how.njoins != p->njoins ||
	    memcmp(r->how.reason, p->reason, v->nmembers) ||
	    memcmp(r->how.trim, p->trim, v->nlanes * sizeof(p->trim[0])) ||
	    memcmp(r->how.joins, p->joins, p->njoins * sizeof(p->joins[0])))
		live_violation(n->l, "node %u decides on another view %llu than others",
			       n->id, (unsigned long long)v->id + 1);
}

/*
 * Who stays keeps its number, and who comes gets one that nobody had. Who came and
 * went without noticing may ask again, and comes as another one.
 */
static void lcheck_uids(struct live *l, const struct sp_view *v)
{
	const struct sp_view *old = v->id > 1 ? &l->records[v->id - 1]->view : NULL;
	u32 i, k;

	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		int was = old ? sp_view_find_member(old, &m->addr, m->cookie) : -1;
		bool bad = was >= 0 ? m->uid != old->members[was].uid :
			m->uid < (old ? old->next_uid : 0);

		for (k = 0; k < i; k++)
			bad |= v->members[k].uid == m->uid;
		if (bad || m->uid >= v->next_uid)
			live_violation(l, "view %llu: member %u has the number %u",
				       (unsigned long long)v->id, i, m->uid);
	}
}

/* Who came later is up to date once its state was delivered, and not before. */
static void lcheck_stale(struct live *l, const struct sp_view *v)
{
	const struct sp_view *old = v->id > 1 ? &l->records[v->id - 1]->view : NULL;
	bool any = false;
	int giver;
	u32 i;

	for (i = 0; old && i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		int was = sp_view_find_member(old, &m->addr, m->cookie);
		bool stale = was < 0 || (old->members[was].flags & SP_MEMBER_STALE);

		if (stale && was >= 0)
			stale = !l->caught_up[m->uid];
		if (stale != !!(m->flags & SP_MEMBER_STALE))
			live_violation(l, "view %llu: member %u is %sup to date",
				       (unsigned long long)v->id, i,
				       stale ? "not " : "");
		any |= stale;
	}
	/* Who gives is not changed amid it, unless it can no more. */
	giver = old ? sp_view_find_uid(v, old->giver) : -1;
	if (any && giver >= 0 && v->members[giver].lane >= 0 &&
	    !l->progs[(u32)v->members[giver].cookie].fin && v->giver != old->giver)
		live_violation(l, "view %llu: %u gives, and no more %u",
			       (unsigned long long)v->id, v->giver, old->giver);
	giver = sp_view_find_uid(v, v->giver);
	if (v->giver != SP_UID_NOBODY &&
	    (!any || giver < 0 || v->members[giver].lane < 0 ||
	     (v->members[giver].flags & SP_MEMBER_STALE)))
		live_violation(l, "view %llu: %u cannot give", (unsigned long long)v->id,
			       v->giver);
}

/* It is in a view: the same, with the same bases, at the same place. */
void lcheck_installed(struct lnode *n)
{
	struct live *l = n->l;
	struct sp_view *v = lnode_view(n);
	const struct sp_order *o = &n->core.order;
	struct record *r = lcheck_record(l, v->id);
	bool first = !r->installed;
	u64 members[SP_MAX_MEMBERS];
	struct sp_point at;
	u32 i;

	if (first) {
		r->installed = true;
		r->view = *v;
		r->start = o->start;
		r->fins = o->fins;
		l->newest = max(l->newest, v->id);
		l->newest_at = l->now;
		lcheck_uids(l, v);
		lcheck_stale(l, v);
	}
	/* A joiner's stream begins with the event. */
	if (n->recorded == 0) {
		judge_life(l->judge, n->id);
		lapp_delivered(n);
	}
	for (i = 0; i < v->nmembers; i++)
		members[i] = v->members[i].cookie;
	lcheck_judge(l, judge_installed(l->judge, n->id, v->id, members,
					v->nmembers));
	if (o->fins != r->fins)
		live_violation(l, "node %u installs view %llu with %u lanes ended, others with %u",
			       n->id, (unsigned long long)v->id, o->fins,
			       r->fins);
	if (v->giver != r->view.giver)
		live_violation(l, "node %u installs view %llu in which %u gives, others %u",
			       n->id, (unsigned long long)v->id, v->giver,
			       r->view.giver);
	if (o->start != r->start || v->nlanes != r->view.nlanes ||
	    v->nnodes != r->view.nnodes)
		live_violation(l, "node %u installs view %llu at seq %lld, others at %lld",
			       n->id, (unsigned long long)v->id,
			       (long long)o->start, (long long)r->start);
	for (i = 0; i < v->nmembers && !l->violated; i++)
		if (v->members[i].uid != r->view.members[i].uid ||
		    v->members[i].flags != r->view.members[i].flags ||
		    v->members[i].lane != r->view.members[i].lane ||
		    v->members[i].node != r->view.members[i].node ||
		    (v->members[i].lane >= 0 &&
		     v->members[i].nr != r->view.members[i].nr))
			live_violation(l, "node %u installs view %llu with another member %u",
				       n->id, (unsigned long long)v->id, i);
	for (i = 0; i < v->nlanes; i++) {
		sp_lane_point(sp_order_lane(o, i), o->depth, &at);
		if (first)
			r->at[i] = at;
		if (at.round != r->at[i].round || at.count != r->at[i].count ||
		    at.tail != r->at[i].tail)
			live_violation(l, "node %u installs view %llu with lane %u at turn %llu, others at %llu",
				       n->id, (unsigned long long)v->id, i,
				       (unsigned long long)at.round,
				       (unsigned long long)r->at[i].round);
	}
}

/* Programs whose node is in the group to the end. */
static void lcheck_progs(struct live *l, struct lnode *n)
{
	u32 i;

	for (i = 0; i < l->nprogs; i++) {
		struct prog *p = &l->progs[i];
		const struct sp_tx *tx;

		if (p->node != n->id)
			continue;
		if (p->state == PROG_DYING)
			live_violation(l, "program %u on node %u never left",
				       i, n->id);
		if (p->state != PROG_MEMBER)
			continue;
		if (p->cursor != n->recorded && !p->stuck)
			live_violation(l, "program %u stopped reading", i);
		tx = lapp_tx(l, p);
		if (!tx)
			continue;
		if (p->nsent != p->total && !l->opts.stuck)
			live_violation(l, "program %u stopped after %u of %u messages, %s",
				       i, p->nsent, p->total,
				       p->blocked ? "without room" : "idle");
		if (!l->opts.stuck)
			lcheck_judge(l, judge_prog_ends(l->judge, i,
							JUDGE_MEMBER));
		if ((tx->freed != tx->now.count || tx->head != tx->now.tail) &&
		    !l->opts.stuck)
			live_violation(l, "program %u did not get all of its room back: %llu of %llu",
				       i, (unsigned long long)tx->freed,
				       (unsigned long long)tx->now.count);
	}
}

static void lcheck_node(struct live *l, struct lnode *n)
{
	struct sp_view *v = lnode_view(n);
	u32 i;

	lcheck_judge(l, judge_node_ends(l->judge, n->id));
	for (i = 0; i < v->nnodes; i++) {
		u32 id = live_id(&v->nodes[i].addr);

		if (l->nodes[id].state != NODE_IN ||
		    lnode_peer_gen(n, id) != l->nodes[id].gen)
			live_violation(l, "node %u rests in a view with node %u, which is gone",
				       n->id, id);
		else if (id != n->id && (!live_pair(l, n->id, id)->up ||
					 n->core.peers[i].cut))
			live_violation(l, "node %u rests in a view with node %u, which it does not reach",
				       n->id, id);
	}
	if (n->core.wedged || sp_ballot_own(&n->ballot)->suspected)
		live_violation(l, "node %u rests at the end of view %llu", n->id,
			       (unsigned long long)v->id);
	if (n->core.doze.state != SP_ASLEEP)
		live_violation(l, "node %u does not sleep: state %d", n->id,
			       n->core.doze.state);
	lcheck_progs(l, n);
}

/* Are the nodes of a view that nothing was ever wrong with a majority of it? */
static bool lcheck_majority(struct live *l, const struct sp_view *v)
{
	bool lowest = !l->nodes[live_id(&v->nodes[0].addr)].blame;
	u32 fine = 0;
	u32 i;

	for (i = 0; i < v->nnodes; i++)
		fine += !l->nodes[live_id(&v->nodes[i].addr)].blame;
	return 2 * fine + lowest > v->nnodes;
}

/* Did a node suspect one of a lower rank that went on without it? */
static bool lcheck_accuser(struct live *l, struct lnode *n)
{
	const struct sp_view *v = lnode_view(n);
	const struct record *next = l->records[v->id + 1];
	u32 i;

	for (i = 0; next && i < n->ballot.self; i++)
		if (sp_suspects(&n->ballot, i) &&
		    sp_view_find_node(&next->view, &v->nodes[i].addr) >= 0)
			return true;
	return false;
}

/*
 * A node that was always there is out only when it wanted to, when it is the
 * higher rank of two that lost each other, or when those like it are no quorum
 * of the view that it was left in, or of one that followed.
 */
static void lcheck_out(struct live *l, struct lnode *n)
{
	u64 id;

	if (l->opts.minority && n->why == -ENETDOWN)
		live_violation(l, "node %u wants a majority", n->id);
	if (n->blame || !n->why || lcheck_accuser(l, n))
		return;
	for (id = lnode_view(n)->id; id <= l->newest; id++)
		if (!lcheck_majority(l, &l->records[id]->view))
			return;
	live_violation(l, "node %u is out, although a quorum was always there",
		       n->id);
}

/* Does a node wait for a majority, or for one that does and that it hears? */
static bool lcheck_waits(struct live *l, struct lnode *n)
{
	const struct sp_view *v = lnode_view(n);
	u64 heard = lnode_heard(n);
	u32 some = 0;
	u32 i;

	for (i = 0; i < v->nnodes; i++)
		some += (heard >> i & 1) && !sp_suspects(&n->ballot, i);
	if (n->waits && 2 * some > v->nnodes)
		live_violation(l, "node %u waits, although it hears a majority", n->id);
	for (i = 0; i < v->nnodes; i++) {
		struct lnode *peer = &l->nodes[live_id(&v->nodes[i].addr)];

		if (peer->state == NODE_IN && peer->waits && !sp_suspects(&n->ballot, i) &&
		    lnode_view(peer)->id == v->id)
			return true;
	}
	return false;
}

/* Nothing moves any more: is that how it should be? */
void lcheck_end(struct live *l)
{
	u32 in = 0;
	u32 i;

	for (i = 0; i < l->nnodes && !l->violated; i++) {
		struct lnode *n = &l->nodes[i];

		if (n->state == NODE_IN && !lcheck_waits(l, n)) {
			lcheck_node(l, n);
			in++;
		}
		if (n->state == NODE_OUT)
			lcheck_out(l, n);
	}
	for (i = 0; i < l->nprogs && !l->violated; i++) {
		const struct prog *p = &l->progs[i];

		if (p->state == PROG_OUT)
			lcheck_judge(l, judge_prog_ends(l->judge, i, p->told ?
							JUDGE_TOLD : JUDGE_LEFT));
	}
	if (l->opts.views && l->newest > l->opts.views)
		live_violation(l, "%llu views follow each other, not %u",
			       (unsigned long long)l->newest, l->opts.views);
	if (l->opts.by && l->newest_at > l->opts.by)
		live_violation(l, "the last view begins at %llu, not by %u",
			       (unsigned long long)l->newest_at, l->opts.by);
	if (l->opts.survive && in != l->opts.survive)
		live_violation(l, "%u nodes are left, not %u", in, l->opts.survive);
}
