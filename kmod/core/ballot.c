// SPDX-License-Identifier: GPL-2.0
/*
 * Agreement on the next view: one round of Paxos for each view, its ballots the
 * leaders' ranks, run over what each node was last heard to report.
 *
 * Virtual synchrony after Birman and Joseph, "Exploiting virtual synchrony in
 * distributed systems" (SOSP 1987); the outline is that of the Spindle paper,
 * section 2.1. The leader is the lowest rank that is not suspected. A node that
 * suspects all ranks below a leader has promised it not to accept what those
 * propose, for it never receives a report of them again.
 */
#include "ballot.h"

/**
 * sp_ballot_init() - begin to watch over a view
 * @b: this node's part; the caller sets @b->limit and @b->minority
 * @view: the view, ranked; stays as it is
 * @self: rank of this node in it
 * @reports: room for one of each node
 */
void sp_ballot_init(struct sp_ballot *b, const struct sp_view *view, u32 self,
		    struct sp_report *reports)
{
	u32 i;

	b->view = view;
	b->self = self;
	b->reports = reports;
	b->decided = false;
	b->faulty = 0;
	memset(b->floor, 0, sizeof(b->floor));
	memset(reports, 0, view->nnodes * sizeof(*reports));
	for (i = 0; i < view->nnodes; i++)
		reports[i].view = view->id;
}

/**
 * sp_ballot_carry() - take over what the last view did not settle
 * @b: this node's part in the end of the new view
 * @old: that in the end of the view before it
 *
 * Suspicions hold against nodes that are in both views, and requests to leave and
 * to join that were not met are made again. A program on a node that is in the
 * view no more has to ask again, for its node may not know that yet.
 */
void sp_ballot_carry(struct sp_ballot *b, const struct sp_ballot *old)
{
	const struct sp_report *was = sp_ballot_own(old);
	u32 i;

	for (i = 0; i < old->view->nnodes; i++) {
		const struct sp_addr *addr = &old->view->nodes[i].addr;
		int node;

		if (!(was->suspected >> i & 1))
			continue;
		node = sp_view_find_node(b->view, addr);
		if (node >= 0 && sp_view_stayed(b->view, old->view, addr))
			sp_suspect_as(b, node, was->outranked >> i & 1);
	}
	for (i = 0; i < old->view->nmembers; i++) {
		const struct sp_member *m = &old->view->members[i];
		int rank = sp_view_find_member(b->view, &m->addr, m->cookie);

		if (was->leaves[i] && rank >= 0)
			sp_ballot_leave(b, rank, was->leaves[i]);
	}
	for (i = 0; i < was->njoins; i++) {
		const struct sp_addr *addr = &was->joins[i].addr;

		if (sp_view_find_node(old->view, addr) < 0 ||
		    sp_view_stayed(b->view, old->view, addr))
			sp_ballot_join(b, &was->joins[i]);
	}
}

/* Is a proposal one that a correct node can have made? */
static bool sp_ballot_proposal_ok(const struct sp_ballot *b,
				  const struct sp_proposal *p)
{
	u32 i;

	if (!p->ballot)
		return true;
	if ((p->ballot > b->view->nnodes && p->ballot != SP_BALLOT_DECIDED) ||
	    p->njoins > SP_MAX_JOINS)
		return false;
	for (i = 0; i < b->view->nmembers; i++)
		if (p->reason[i] >= SP_REASONS)
			return false;
	for (i = 0; i < p->njoins; i++)
		if (p->joins[i].flags & ~SP_MEMBER_ALL)
			return false;
	return true;
}

/* A node speaks for its own members only, and is not itself lost. */
static bool sp_ballot_leaves_ok(const struct sp_ballot *b, u32 node,
				const struct sp_report *r)
{
	u32 i;

	for (i = 0; i < b->view->nmembers; i++)
		if (r->leaves[i] >= SP_REASONS || r->leaves[i] == SP_LOST ||
		    (r->leaves[i] && b->view->members[i].node != node))
			return false;
	return true;
}

/*
 * A node suspects others. It passes on that one of two other nodes, neither of
 * which it suspects, accuses the one of the lower rank.
 */
static bool sp_ballot_suspicion_ok(const struct sp_ballot *b, u32 node,
				   const struct sp_report *r)
{
	struct sp_accusation a = r->accusation;
	u32 n = b->view->nnodes;

	if ((r->suspected >> node & 1) || (n < 64 && r->suspected >> n) ||
	    (r->outranked & ~r->suspected))
		return false;
	if (!a.by)
		return !a.of;
	return a.by < n && a.of < a.by && a.by != node && a.of != node &&
	       !(r->suspected >> a.by & 1) && !(r->suspected >> a.of & 1);
}

/**
 * sp_ballot_receive() - a node's report has arrived
 * @b: this node's part in the end of the view
 * @node: rank of the node
 * @report: its report; copied
 *
 * Reports of a suspected node, of another view, and such that are older than the
 * one that is known change nothing. The caller keeps a report of a view to come
 * until that view is installed. On each new connection it sends its own last
 * report of the view before, which may say that this was decided, and then the
 * own report of this view.
 *
 * Return: 1 when it was news, 0 when not, -EPROTO when no correct node sends it.
 */
int sp_ballot_receive(struct sp_ballot *b, u32 node,
		      const struct sp_report *report)
{
	struct sp_report *known = &b->reports[node];

	if (node == b->self || report->view != b->view->id ||
	    sp_suspects(b, node))
		return 0;
	if (report->njoins > SP_MAX_JOINS ||
	    !sp_ballot_proposal_ok(b, &report->accepted) ||
	    !sp_ballot_leaves_ok(b, node, report) ||
	    !sp_ballot_suspicion_ok(b, node, report))
		return -EPROTO;
	if ((known->suspected & ~report->suspected) ||
	    (known->outranked & ~report->outranked) ||
	    (known->wedged && !report->wedged) ||
	    report->accepted.ballot < known->accepted.ballot)
		return 0;
	/* It accepts what this node has not proposed. */
	if (report->accepted.ballot == b->self + 1 &&
	    sp_ballot_own(b)->accepted.ballot < b->self + 1)
		return -EPROTO;
	*known = *report;
	return 1;
}

/**
 * sp_ballot_leave() - a member on this node is to leave
 * @b: this node's part in the end of the view
 * @member: its rank
 * @reason: why; neither SP_STAYS nor SP_LOST
 *
 * The caller calls this only when all that the member has sent was delivered
 * here, so that everybody has received it, and when it can send nothing more.
 *
 * Return: true when that is news.
 */
bool sp_ballot_leave(struct sp_ballot *b, u32 member, enum sp_reason reason)
{
	struct sp_report *own = sp_ballot_own(b);

	if (own->leaves[member])
		return false;
	own->leaves[member] = reason;
	return true;
}

static bool sp_join_request_is(const struct sp_join_request *who,
			       const struct sp_addr *addr, u64 cookie)
{
	return who->cookie == cookie && !sp_addr_cmp(&who->addr, addr);
}

/**
 * sp_ballot_join() - a program asks this node to be taken in
 * @b: this node's part in the end of the view
 * @who: the program; its cookie is one that its node never used before
 *
 * A node that is in the view and asks in a new life, so that it knows nothing of
 * the view, is suspected by the caller before the report with the request is
 * sent, and again after sp_ballot_carry(). Else both lives were one node.
 *
 * Return: 1 when that is news; 0 when it is a member or has asked; -EAGAIN when
 * as many wait here as can at once.
 */
int sp_ballot_join(struct sp_ballot *b, const struct sp_join_request *who)
{
	struct sp_report *own = sp_ballot_own(b);
	u32 i;

	if (sp_view_find_member(b->view, &who->addr, who->cookie) >= 0)
		return 0;
	for (i = 0; i < own->njoins; i++)
		if (sp_join_request_is(&own->joins[i], &who->addr, who->cookie))
			return 0;
	if (own->njoins == SP_MAX_JOINS)
		return -EAGAIN;
	own->joins[own->njoins++] = *who;
	return 1;
}

/**
 * sp_ballot_cancel() - a program has given up its request to join
 * @b: this node's part in the end of the view
 * @addr: its node
 * @cookie: what that calls it
 */
void sp_ballot_cancel(struct sp_ballot *b, const struct sp_addr *addr,
		      u64 cookie)
{
	struct sp_report *own = sp_ballot_own(b);
	u32 i;

	for (i = 0; i < own->njoins; i++) {
		if (!sp_join_request_is(&own->joins[i], addr, cookie))
			continue;
		own->joins[i] = own->joins[--own->njoins];
		return;
	}
}

/**
 * sp_ballot_wedged() - this node has wedged
 * @b: this node's part in the end of the view; sp_ballot_step() has asked for it
 * @counts: rounds of each lane it has received; it takes no more
 */
void sp_ballot_wedged(struct sp_ballot *b, const u64 *counts)
{
	struct sp_report *own = sp_ballot_own(b);

	memcpy(own->counts, counts, b->view->nlanes * sizeof(*counts));
	own->wedged = true;
}

/* Is there room for one more? Else a change of view would change nothing. */
static bool sp_ballot_has_room(const struct sp_ballot *b,
			       const struct sp_join_request *who)
{
	u32 same = 0;
	u32 i;

	for (i = 0; i < b->view->nmembers; i++)
		same += !sp_addr_cmp(&b->view->members[i].addr, &who->addr);
	return b->view->nmembers < b->limit && same < SP_MAX_NODE_LANES &&
	       !(who->flags & ~SP_MEMBER_ALL) &&
	       sp_view_find_member(b->view, &who->addr, who->cookie) < 0;
}

/* Is there anything that only a new view can settle, or has its end begun? */
static bool sp_ballot_moved(const struct sp_ballot *b, u32 leader)
{
	bool request = false;
	u32 i, k;

	if (sp_ballot_own(b)->suspected)
		return true;
	for (i = 0; i < b->view->nnodes; i++) {
		const struct sp_report *r = &b->reports[i];

		if (r->wedged || r->accepted.ballot)
			return true;
		for (k = 0; k < r->njoins; k++)
			request |= sp_ballot_has_room(b, &r->joins[k]);
		for (k = 0; k < b->view->nmembers; k++)
			request |= r->leaves[k];
	}
	return request && leader == b->self;
}

/* Members of the next view so far: those on @addr's node, all without @addr. */
static u32 sp_proposal_members(const struct sp_ballot *b,
			       const struct sp_proposal *p,
			       const struct sp_addr *addr)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < b->view->nmembers; i++)
		n += !p->reason[i] &&
		     (!addr || !sp_addr_cmp(&b->view->members[i].addr, addr));
	for (i = 0; i < p->njoins; i++)
		n += !addr || !sp_addr_cmp(&p->joins[i].addr, addr);
	return n;
}

static void sp_proposal_join(const struct sp_ballot *b, struct sp_proposal *p,
			     const struct sp_join_request *who)
{
	u32 i;

	if (p->njoins == SP_MAX_JOINS || (who->flags & ~SP_MEMBER_ALL) ||
	    sp_view_find_member(b->view, &who->addr, who->cookie) >= 0)
		return;
	for (i = 0; i < p->njoins; i++)
		if (sp_join_request_is(&p->joins[i], &who->addr, who->cookie))
			return;
	/* A node that goes may come back, but not with the same view. */
	if (sp_view_find_node(b->view, &who->addr) >= 0 &&
	    !sp_proposal_members(b, p, &who->addr))
		return;
	if (sp_proposal_members(b, p, NULL) >= b->limit ||
	    sp_proposal_members(b, p, &who->addr) >= SP_MAX_NODE_LANES)
		return;
	p->joins[p->njoins++] = *who;
}

/* Nobody can have decided anything: the leader makes a proposal of its own. */
static void sp_ballot_propose(const struct sp_ballot *b, u64 nodes,
			      struct sp_proposal *p)
{
	const struct sp_view *v = b->view;
	u32 i, k;

	memset(p, 0, sizeof(*p));
	for (k = 0; k < v->nmembers; k++) {
		const struct sp_member *m = &v->members[k];

		if (!(nodes >> m->node & 1))
			p->reason[k] = SP_LOST;
		else
			p->reason[k] = b->reports[m->node].leaves[k];
	}
	sp_trim_least(b, nodes, p->trim);
	for (i = 0; i < v->nnodes; i++)
		for (k = 0; (nodes >> i & 1) && k < b->reports[i].njoins; k++)
			sp_proposal_join(b, p, &b->reports[i].joins[k]);
}

/* Nodes that have not promised to follow this node alone, or not wedged. */
static u64 sp_ballot_unpromised(const struct sp_ballot *b, u64 nodes)
{
	u64 below = (1ull << b->self) - 1;
	u64 missing = 0;
	u32 i;

	for (i = 0; i < b->view->nnodes; i++) {
		const struct sp_report *r = &b->reports[i];

		if ((nodes >> i & 1) && (!r->wedged || (below & ~r->suspected)))
			missing |= 1ull << i;
	}
	return missing;
}

/*
 * The leader's part. Once all nodes have promised it takes up what any of them
 * has accepted under the highest ballot, or makes a proposal of its own. It waits
 * while an accusation stands: one of the two nodes is going to be suspected.
 */
static bool sp_ballot_lead(struct sp_ballot *b, u64 nodes)
{
	struct sp_report *own = sp_ballot_own(b);
	const struct sp_proposal *best = &own->accepted;
	u32 i;

	if (own->accepted.ballot == b->self + 1 || own->accusation.by ||
	    sp_ballot_unpromised(b, nodes))
		return false;
	for (i = 0; i < b->view->nnodes; i++) {
		const struct sp_proposal *p = &b->reports[i].accepted;

		if ((nodes >> i & 1) && p->ballot > best->ballot)
			best = p;
	}
	if (best->ballot)
		own->accepted = *best;
	else
		sp_ballot_propose(b, nodes, &own->accepted);
	own->accepted.ballot = b->self + 1;
	return true;
}

/* Everybody else's part: accept what the leader proposes. */
static bool sp_ballot_accept(struct sp_ballot *b, u32 leader)
{
	const struct sp_proposal *p = &b->reports[leader].accepted;
	struct sp_report *own = sp_ballot_own(b);

	if (p->ballot != leader + 1 || p->ballot <= own->accepted.ballot)
		return false;
	own->accepted = *p;
	return true;
}

/*
 * A node that has decided speaks for a quorum. It promises and accepts nothing
 * any more, so the others are not to wait for that.
 */
static bool sp_ballot_learn(struct sp_ballot *b, u64 nodes)
{
	struct sp_report *own = sp_ballot_own(b);
	u32 i;

	for (i = 0; i < b->view->nnodes; i++) {
		const struct sp_proposal *p = &b->reports[i].accepted;

		if (!(nodes >> i & 1) || p->ballot != SP_BALLOT_DECIDED)
			continue;
		/* A node that has not wedged does so first. */
		if (own->wedged)
			own->accepted = *p;
		return true;
	}
	return false;
}

/* Have all nodes that are left accepted the same? */
static bool sp_ballot_all(const struct sp_ballot *b, u64 nodes)
{
	u32 ballot = sp_ballot_own(b)->accepted.ballot;
	u32 i;

	for (i = 0; i < b->view->nnodes; i++)
		if ((nodes >> i & 1) && b->reports[i].accepted.ballot != ballot)
			return false;
	return ballot;
}

static u32 sp_ballot_leader(u64 nodes)
{
	u32 leader = 0;

	while (!(nodes >> leader & 1))
		leader++;
	return leader;
}

/**
 * sp_ballot_step() - come to what follows from all reports
 * @b: this node's part in the end of the view
 *
 * To be called after each change. Before the own report is sent, and before it
 * wedges, the caller sets @sp_peer.gone of each node that is now suspected, and
 * @sp_core.hold if requests to it have not completed: nothing that the node writes
 * is read from then on, and nothing that it may be sent is overwritten.
 *
 * Return: SP_STEP_* flags. SP_STEP_SEND comes first: a decision may only be
 * acted upon when the own report is on its way. -ENETDOWN when the nodes that
 * are left are no majority: the view has no end here.
 */
int sp_ballot_step(struct sp_ballot *b)
{
	struct sp_report *own = sp_ballot_own(b);
	int did = 0;
	u32 leader;
	u64 nodes;

	if (b->decided)
		return 0;
	if (sp_suspect_others(b))
		did |= SP_STEP_SEND;
	if (sp_suspect_accuse(b))
		did |= SP_STEP_SEND;
	nodes = sp_unsuspected(b);
	if (sp_ballot_learn(b, nodes)) {
		if (!own->wedged)
			return did | SP_STEP_WEDGE;
		b->decided = true;
		return did | SP_STEP_SEND | SP_STEP_DECIDED;
	}
	if (!b->minority && !sp_view_quorum(b->view, nodes))
		return -ENETDOWN;
	leader = sp_ballot_leader(nodes);
	if (!own->wedged)
		return did | (sp_ballot_moved(b, leader) ?
			      SP_STEP_WEDGE : 0);
	if (leader == b->self ? sp_ballot_lead(b, nodes) :
	    sp_ballot_accept(b, leader))
		did |= SP_STEP_SEND;
	if (sp_ballot_all(b, nodes)) {
		own->accepted.ballot = SP_BALLOT_DECIDED;
		b->decided = true;
		did |= SP_STEP_SEND | SP_STEP_DECIDED;
	}
	return did;
}
