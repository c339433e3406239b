// SPDX-License-Identifier: GPL-2.0
/*
 * Agreement on the next view: one round of Paxos for each view, its ballots the
 * leaders' ranks, run over what each node was last heard to say.
 *
 * Virtual synchrony after Birman and Joseph, "Exploiting virtual synchrony in
 * distributed systems" (SOSP 1987); the ragged edge as in the Spindle paper,
 * section 2.1. A node that suspects all ranks below a leader has promised it
 * not to accept what they propose: it never hears them again.
 */
#include "agree.h"

/**
 * sp_agree_init() - begin to watch over a view
 * @a: the agreement; the caller sets @a->limit and @a->minority
 * @view: the view, ranked; stays as it is
 * @self: rank of this node in it
 * @tells: room for one of each node
 */
void sp_agree_init(struct sp_agree *a, const struct sp_view *view, u32 self,
		   struct sp_tell *tells)
{
	u32 i;

	a->view = view;
	a->self = self;
	a->tells = tells;
	a->decided = false;
	a->faulty = 0;
	memset(a->floor, 0, sizeof(a->floor));
	memset(tells, 0, view->nnodes * sizeof(*tells));
	for (i = 0; i < view->nnodes; i++)
		tells[i].view = view->id;
}

/**
 * sp_agree_carry() - take over what the last view did not settle
 * @a: the agreement of the new view
 * @old: that of the view before it
 *
 * Whom we suspected we still do not hear; who wanted to leave still wants to;
 * who asked and was not taken in asks again.
 */
void sp_agree_carry(struct sp_agree *a, const struct sp_agree *old)
{
	const struct sp_tell *was = sp_agree_own(old);
	u32 i;

	for (i = 0; i < old->view->nnodes; i++) {
		const struct sp_addr *addr = &old->view->nodes[i].addr;
		int node;

		if (!(was->suspected >> i & 1))
			continue;
		node = sp_view_find_node(a->view, addr);
		if (node >= 0 && sp_view_stayed(a->view, old->view, addr))
			sp_agree_suspect(a, node);
	}
	for (i = 0; i < old->view->nmembers; i++) {
		const struct sp_member *m = &old->view->members[i];
		int rank = sp_view_find_member(a->view, &m->addr, m->cookie);

		if (was->leaves[i] && rank >= 0)
			sp_agree_leave(a, rank, was->leaves[i]);
	}
	for (i = 0; i < was->nasks; i++)
		sp_agree_ask(a, &was->asks[i]);
}

/* Is a proposal one that a correct node can have made? */
static bool sp_proposal_ok(const struct sp_agree *a,
			   const struct sp_proposal *p)
{
	u32 i;

	if (!p->ballot)
		return true;
	if ((p->ballot > a->view->nnodes && p->ballot != SP_BALLOT_DECIDED) ||
	    p->njoins > SP_MAX_JOINS)
		return false;
	for (i = 0; i < a->view->nmembers; i++)
		if (p->reason[i] >= SP_REASONS)
			return false;
	for (i = 0; i < p->njoins; i++)
		if (p->joins[i].flags & ~SP_MEMBER_ALL)
			return false;
	return true;
}

/* A node speaks for its own members only, and of reasons that there are. */
static bool sp_leaves_ok(const struct sp_agree *a, u32 node,
			 const struct sp_tell *tell)
{
	u32 i;

	for (i = 0; i < a->view->nmembers; i++)
		if (tell->leaves[i] >= SP_REASONS ||
		    (tell->leaves[i] && a->view->members[i].node != node))
			return false;
	return true;
}

/**
 * sp_agree_hear() - a node has said something
 * @a: the agreement
 * @node: who
 * @tell: what; copied
 *
 * Of a suspected node nothing is heard, nor what is older than what is known.
 *
 * Return: 1 when it was news, 0 when not, -EPROTO when no correct node says it.
 */
int sp_agree_hear(struct sp_agree *a, u32 node, const struct sp_tell *tell)
{
	const struct sp_view *v = a->view;
	struct sp_tell *known = &a->tells[node];

	if (node == a->self || tell->view != v->id || sp_agree_suspects(a, node))
		return 0;
	if (tell->nasks > SP_MAX_JOINS || !sp_proposal_ok(a, &tell->accepted) ||
	    !sp_leaves_ok(a, node, tell) ||
	    (tell->suspected >> node & 1) ||
	    (v->nnodes < 64 && tell->suspected >> v->nnodes))
		return -EPROTO;
	if ((known->suspected & ~tell->suspected) ||
	    (known->wedged && !tell->wedged) ||
	    tell->accepted.ballot < known->accepted.ballot)
		return 0;
	/* It accepts what this node has not proposed. */
	if (tell->accepted.ballot == a->self + 1 &&
	    sp_agree_own(a)->accepted.ballot < a->self + 1)
		return -EPROTO;
	*known = *tell;
	return 1;
}

/**
 * sp_agree_suspect() - a node is not to be heard any more
 * @a: the agreement
 * @node: the node
 *
 * Return: true when that is news.
 */
bool sp_agree_suspect(struct sp_agree *a, u32 node)
{
	if (node == a->self || sp_agree_suspects(a, node))
		return false;
	sp_agree_own(a)->suspected |= 1ull << node;
	return true;
}

/**
 * sp_agree_leave() - a member on this node wants to leave
 * @a: the agreement
 * @member: its rank
 * @reason: why, but for SP_STAYS
 *
 * Return: true when that is news.
 */
bool sp_agree_leave(struct sp_agree *a, u32 member, enum sp_reason reason)
{
	struct sp_tell *own = sp_agree_own(a);

	if (own->leaves[member])
		return false;
	own->leaves[member] = reason;
	return true;
}

static bool sp_newcomer_is(const struct sp_newcomer *who,
			   const struct sp_addr *addr, u64 cookie)
{
	return who->cookie == cookie && !sp_addr_cmp(&who->addr, addr);
}

/**
 * sp_agree_ask() - a program wants to be taken in
 * @a: the agreement
 * @who: the program
 *
 * Return: 1 when that is news; 0 when it is a member or has asked; -EAGAIN when
 * as many wait here as can at once.
 */
int sp_agree_ask(struct sp_agree *a, const struct sp_newcomer *who)
{
	struct sp_tell *own = sp_agree_own(a);
	u32 i;

	if (sp_view_find_member(a->view, &who->addr, who->cookie) >= 0)
		return 0;
	for (i = 0; i < own->nasks; i++)
		if (sp_newcomer_is(&own->asks[i], &who->addr, who->cookie))
			return 0;
	if (own->nasks == SP_MAX_JOINS)
		return -EAGAIN;
	own->asks[own->nasks++] = *who;
	return 1;
}

/**
 * sp_agree_unask() - a program has given up
 * @a: the agreement
 * @addr: its node
 * @cookie: what that calls it
 */
void sp_agree_unask(struct sp_agree *a, const struct sp_addr *addr, u64 cookie)
{
	struct sp_tell *own = sp_agree_own(a);
	u32 i;

	for (i = 0; i < own->nasks; i++) {
		if (!sp_newcomer_is(&own->asks[i], addr, cookie))
			continue;
		own->asks[i] = own->asks[--own->nasks];
		return;
	}
}

/**
 * sp_agree_wedged() - this node has wedged
 * @a: the agreement, which has asked for it
 * @counts: rounds of each lane it has received; it takes no more
 */
void sp_agree_wedged(struct sp_agree *a, const u64 *counts)
{
	struct sp_tell *own = sp_agree_own(a);

	memcpy(own->counts, counts, a->view->nlanes * sizeof(*counts));
	own->wedged = true;
}

/**
 * sp_agree_alive() - the nodes that are not suspected here
 * @a: the agreement
 *
 * Return: them, by rank.
 */
u64 sp_agree_alive(const struct sp_agree *a)
{
	u64 all = a->view->nnodes < 64 ? (1ull << a->view->nnodes) - 1 : ~0ull;

	return all & ~sp_agree_own(a)->suspected;
}

/*
 * Suspicion as others have it. Who suspects us does not hear us: it is lost to
 * us, too. When two suspect each other only the higher rank is to go, so what a
 * node says of lower ranks is not taken up: those it speaks of hear it and
 * suspect it themselves, or are found out by everybody.
 */
static bool sp_agree_adopt(struct sp_agree *a)
{
	bool news = false;
	u32 n = a->view->nnodes;
	u32 r, q;

	for (r = 0; r < n; r++) {
		u64 bits = a->tells[r].suspected;

		if (r == a->self || !bits || sp_agree_suspects(a, r))
			continue;
		if (bits >> a->self & 1) {
			news |= sp_agree_suspect(a, r);
			continue;
		}
		for (q = r + 1; q < n; q++)
			if (bits >> q & 1)
				news |= sp_agree_suspect(a, q);
	}
	return news;
}

/*
 * What was delivered here every node has received, and a proposal that keeps
 * this node was made by one that had heard what this node has.
 */
static bool sp_tell_fits(const struct sp_agree *a, const struct sp_tell *t)
{
	const struct sp_proposal *p = &t->accepted;
	const struct sp_view *v = a->view;
	bool stays = false;
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		stays |= p->ballot && v->members[i].node == a->self &&
			 p->reason[i] != SP_LOST;
	for (i = 0; i < v->nlanes; i++) {
		if (t->wedged && t->counts[i] < a->floor[i])
			return false;
		if (stays && (p->trim[i] < a->floor[i] ||
			      p->trim[i] > sp_agree_own(a)->counts[i]))
			return false;
	}
	return true;
}

/* Who says what cannot be is not heard any more. True when there is one. */
static bool sp_agree_doubt(struct sp_agree *a)
{
	bool news = false;
	u32 i;

	if (!sp_agree_own(a)->wedged)
		return false;
	for (i = 0; i < a->view->nnodes; i++) {
		if (i == a->self || sp_agree_suspects(a, i) ||
		    sp_tell_fits(a, &a->tells[i]))
			continue;
		a->faulty |= 1ull << i;
		news |= sp_agree_suspect(a, i);
	}
	return news;
}

/* Is there room for one more? Else a change of view would change nothing. */
static bool sp_agree_fits(const struct sp_agree *a,
			  const struct sp_newcomer *who)
{
	u32 same = 0;
	u32 i;

	for (i = 0; i < a->view->nmembers; i++)
		same += !sp_addr_cmp(&a->view->members[i].addr, &who->addr);
	return a->view->nmembers < a->limit && same < SP_MAX_NODE_LANES &&
	       !(who->flags & ~SP_MEMBER_ALL) &&
	       sp_view_find_member(a->view, &who->addr, who->cookie) < 0;
}

/* Is there anything that only a new view can settle, or has it begun? */
static bool sp_agree_moved(const struct sp_agree *a, u64 alive, u32 leader)
{
	bool wish = false;
	u32 i, k;

	if (sp_agree_own(a)->suspected)
		return true;
	for (i = 0; i < a->view->nnodes; i++) {
		const struct sp_tell *t = &a->tells[i];

		if (!(alive >> i & 1))
			continue;
		if (t->wedged || t->accepted.ballot)
			return true;
		for (k = 0; k < t->nasks; k++)
			wish |= sp_agree_fits(a, &t->asks[k]);
		for (k = 0; k < a->view->nmembers; k++)
			wish |= t->leaves[k];
	}
	return wish && leader == a->self;
}

/* How many members of the next view are on a node so far; @all: on any. */
static u32 sp_proposal_count(const struct sp_agree *a,
			     const struct sp_proposal *p,
			     const struct sp_addr *addr, bool all)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < a->view->nmembers; i++)
		n += !p->reason[i] &&
		     (all || !sp_addr_cmp(&a->view->members[i].addr, addr));
	for (i = 0; i < p->njoins; i++)
		n += all || !sp_addr_cmp(&p->joins[i].addr, addr);
	return n;
}

static void sp_propose_join(const struct sp_agree *a, struct sp_proposal *p,
			    const struct sp_newcomer *who)
{
	u32 i;

	if (p->njoins == SP_MAX_JOINS || (who->flags & ~SP_MEMBER_ALL) ||
	    sp_view_find_member(a->view, &who->addr, who->cookie) >= 0)
		return;
	for (i = 0; i < p->njoins; i++)
		if (sp_newcomer_is(&p->joins[i], &who->addr, who->cookie))
			return;
	/* A node that goes may come back, but not in the same breath. */
	if (sp_view_find_node(a->view, &who->addr) >= 0 &&
	    !sp_proposal_count(a, p, &who->addr, false))
		return;
	if (sp_proposal_count(a, p, NULL, true) >= a->limit ||
	    sp_proposal_count(a, p, &who->addr, false) >= SP_MAX_NODE_LANES)
		return;
	p->joins[p->njoins++] = *who;
}

/* Nobody can have decided anything: the leader makes a proposal of its own. */
static void sp_agree_propose(const struct sp_agree *a, u64 alive,
			     struct sp_proposal *p)
{
	const struct sp_view *v = a->view;
	u32 i, k;

	memset(p, 0, sizeof(*p));
	for (k = 0; k < v->nmembers; k++) {
		const struct sp_member *m = &v->members[k];

		if (!(alive >> m->node & 1))
			p->reason[k] = SP_LOST;
		else
			p->reason[k] = a->tells[m->node].leaves[k];
	}
	for (k = 0; k < v->nlanes; k++) {
		p->trim[k] = ~0ull;
		for (i = 0; i < v->nnodes; i++)
			if (alive >> i & 1)
				p->trim[k] = min(p->trim[k],
						 a->tells[i].counts[k]);
	}
	for (i = 0; i < v->nnodes; i++)
		for (k = 0; (alive >> i & 1) && k < a->tells[i].nasks; k++)
			sp_propose_join(a, p, &a->tells[i].asks[k]);
}

/*
 * The leader's part: once all have promised, what any of them has accepted under
 * the highest ballot, or a new proposal.
 */
static bool sp_agree_lead(struct sp_agree *a, u64 alive)
{
	struct sp_tell *own = sp_agree_own(a);
	u64 below = (1ull << a->self) - 1;
	const struct sp_tell *best = own;
	u32 i;

	if (own->accepted.ballot == a->self + 1)
		return false;
	for (i = 0; i < a->view->nnodes; i++) {
		const struct sp_tell *t = &a->tells[i];

		if (!(alive >> i & 1))
			continue;
		if (!t->wedged || (below & ~t->suspected))
			return false;
		if (t->accepted.ballot > best->accepted.ballot)
			best = t;
	}
	if (best->accepted.ballot)
		own->accepted = best->accepted;
	else
		sp_agree_propose(a, alive, &own->accepted);
	own->accepted.ballot = a->self + 1;
	return true;
}

static bool sp_agree_accept(struct sp_agree *a, u32 leader)
{
	const struct sp_proposal *p = &a->tells[leader].accepted;
	struct sp_tell *own = sp_agree_own(a);

	if (p->ballot != leader + 1 || p->ballot <= own->accepted.ballot)
		return false;
	own->accepted = *p;
	return true;
}

/*
 * Somebody has decided: it speaks for a quorum, and will promise and accept
 * nothing any more, so the others are not to wait for that.
 */
static bool sp_agree_learn(struct sp_agree *a, u64 alive)
{
	u32 i;

	for (i = 0; i < a->view->nnodes; i++) {
		const struct sp_proposal *p = &a->tells[i].accepted;

		if (!(alive >> i & 1) || p->ballot != SP_BALLOT_DECIDED)
			continue;
		/* What is wedged here was counted, if it was. */
		if (sp_agree_own(a)->wedged)
			sp_agree_own(a)->accepted = *p;
		return true;
	}
	return false;
}

/* All that are left have accepted the same. */
static bool sp_agree_all(const struct sp_agree *a, u64 alive)
{
	u32 ballot = sp_agree_own(a)->accepted.ballot;
	u32 i;

	for (i = 0; i < a->view->nnodes; i++)
		if ((alive >> i & 1) && a->tells[i].accepted.ballot != ballot)
			return false;
	return ballot;
}

/**
 * sp_agree_step() - come to what follows from all that was heard
 * @a: the agreement
 *
 * To be called after each change.
 *
 * Return: SP_AGREE_* flags. SP_AGREE_SAY comes first: what was decided may
 * only be acted upon when the own tell is on its way. -ENETDOWN when
 * the nodes that are left are no majority: the view has no end here.
 */
int sp_agree_step(struct sp_agree *a)
{
	struct sp_tell *own = sp_agree_own(a);
	u32 leader = 0;
	int did = 0;
	u64 alive;

	if (a->decided)
		return 0;
	/* What is adopted here may bring others in its train. */
	while (sp_agree_adopt(a) || sp_agree_doubt(a))
		did |= SP_AGREE_SAY;
	alive = sp_agree_alive(a);
	if (sp_agree_learn(a, alive)) {
		if (!own->wedged)
			return did | SP_AGREE_WEDGE;
		a->decided = true;
		return did | SP_AGREE_SAY | SP_AGREE_DECIDED;
	}
	if (!a->minority && !sp_view_quorum(a->view, alive))
		return -ENETDOWN;
	while (!(alive >> leader & 1))
		leader++;
	if (!own->wedged)
		return did | (sp_agree_moved(a, alive, leader) ?
			      SP_AGREE_WEDGE : 0);
	if (leader == a->self ? sp_agree_lead(a, alive) :
	    sp_agree_accept(a, leader))
		did |= SP_AGREE_SAY;
	if (sp_agree_all(a, alive)) {
		own->accepted.ballot = SP_BALLOT_DECIDED;
		a->decided = true;
		did |= SP_AGREE_SAY | SP_AGREE_DECIDED;
	}
	return did;
}

/**
 * sp_agree_waits() - for whom the agreement waits
 * @a: the agreement, after sp_agree_step()
 * @leads: the result is the leader, which may itself wait for somebody of whom
 *	this node does not hear any more
 *
 * A correct node that is alive does its part as soon as it hears of it.
 *
 * Return: the nodes that have something to do before anything follows here, by
 * rank: those that have not wedged; then the leader; then those that have not
 * accepted what it proposes.
 */
u64 sp_agree_waits(const struct sp_agree *a, bool *leads)
{
	const struct sp_tell *own = sp_agree_own(a);
	u64 alive = sp_agree_alive(a);
	u32 leader = 0;
	u64 waits = 0;
	u64 below;
	u32 i;

	*leads = false;
	if (a->decided || !own->wedged)
		return 0;
	while (!(alive >> leader & 1))
		leader++;
	below = leader == a->self ? (1ull << leader) - 1 : 0;
	for (i = 0; i < a->view->nnodes; i++)
		if ((alive >> i & 1) && (!a->tells[i].wedged ||
					 (below & ~a->tells[i].suspected)))
			waits |= 1ull << i;
	if (waits)
		return waits;
	if (own->accepted.ballot != leader + 1) {
		*leads = true;
		return 1ull << leader & ~(1ull << a->self);
	}
	for (i = 0; i < a->view->nnodes; i++)
		if ((alive >> i & 1) &&
		    a->tells[i].accepted.ballot != own->accepted.ballot)
			waits |= 1ull << i;
	return waits;
}
