// SPDX-License-Identifier: GPL-2.0
/*
 * Suspicion: which nodes of a view are not heard any more.
 *
 * Suspicion is by node, and is never taken back within a view. When the
 * connection between two nodes breaks for good, the one of the higher rank is to
 * go, and nobody else. So a node that has lost one of a higher rank says that
 * this one is *outranked*, and everybody who hears that takes it up and passes it
 * on. Nobody takes up that a node suspects one of a lower rank.
 *
 * A node that suspects this one does not hear it, so it is suspected in return.
 * Such a suspicion outranks nobody when this node is itself outranked: else one
 * on its way out would take those with it that have heard so before others have.
 *
 * A node of a higher rank that suspects one of a lower rank *accuses* it, as long
 * as others hear both. The accused does not hear its accuser, so a third node
 * passes the accusation on. An accused that is alive suspects the accuser in
 * return, which is outranked by that; an accused that is not is suspected by
 * everybody in the end. No leader proposes before that: a view in which both
 * stay would end at once.
 */
#include "ballot.h"

/**
 * sp_suspect_as() - suspect a node, as one that is outranked or not
 * @b: this node's part in the end of the view
 * @node: rank of the node
 * @outranked: a node of a lower rank has lost it
 *
 * Return: true when that is news.
 */
bool sp_suspect_as(struct sp_ballot *b, u32 node, bool outranked)
{
	struct sp_report *own = sp_ballot_own(b);
	bool news;

	if (node == b->self)
		return false;
	news = !sp_suspects(b, node);
	if (outranked) {
		news |= !(own->outranked >> node & 1);
		own->outranked |= 1ull << node;
	}
	own->suspected |= 1ull << node;
	/* An accusation is of two nodes that are not suspected. */
	if (own->accusation.by == node || own->accusation.of == node)
		own->accusation = (struct sp_accusation){};
	return news;
}

/**
 * sp_suspect() - suspect a node: nothing that it reports is received any more
 * @b: this node's part in the end of the view
 * @node: rank of the node
 *
 * The caller has lost the node: it has evidence of its own. That is no evidence
 * any more when the node is suspected already, for then neither hears the other.
 *
 * Return: true when that is news.
 */
bool sp_suspect(struct sp_ballot *b, u32 node)
{
	return !sp_suspects(b, node) && sp_suspect_as(b, node, node > b->self);
}

/**
 * sp_suspect_in_return() - suspect a node that does not hear this one any more
 * @b: this node's part in the end of the view
 * @node: rank of the node
 *
 * The node refuses to be connected because it suspects this one. That is no
 * evidence against it, so nobody else takes this up. Should the node have to go,
 * a third one passes its accusation on.
 *
 * Return: true when that is news.
 */
bool sp_suspect_in_return(struct sp_ballot *b, u32 node)
{
	return sp_suspect_as(b, node, false);
}

/**
 * sp_unsuspected() - the nodes that this node does not suspect
 * @b: this node's part in the end of the view
 *
 * Return: their ranks, a bit each.
 */
u64 sp_unsuspected(const struct sp_ballot *b)
{
	u32 n = b->view->nnodes;

	return (n < 64 ? (1ull << n) - 1 : ~0ull) & ~sp_ballot_own(b)->suspected;
}

/**
 * sp_suspect_waits() - are nodes that are not heard to be waited for
 * @b: this node's part in the end of the view
 * @heard: the nodes that this node hears now, by rank, and itself
 *
 * A node that hears no majority cannot tell that the others are gone: it may itself be
 * cut off from them. If it suspects them it is out of the view for good; if it waits, the
 * view goes on when a majority is heard again, unless others have gone on meanwhile. That
 * is safe, for nothing depends on how soon a node is suspected, and holds up nobody:
 * no majority needs a node that does not hear it to suspect anybody.
 *
 * Return: true when silence alone is no reason to suspect a node.
 */
bool sp_suspect_waits(const struct sp_ballot *b, u64 heard)
{
	return !b->minority && !sp_view_quorum(b->view, sp_unsuspected(b) & heard);
}

/* What follows from the report of one node. */
static bool sp_suspect_adopt_one(struct sp_ballot *b, u32 node)
{
	const struct sp_report *r = &b->reports[node];
	bool news = false;
	u32 i;

	if (r->suspected >> b->self & 1)
		return sp_suspect_as(b, node, node > b->self &&
				      !(r->outranked >> b->self & 1));
	if (r->accusation.by && r->accusation.of == b->self)
		news |= sp_suspect_as(b, r->accusation.by, true);
	for (i = 0; i < b->view->nnodes; i++)
		if (r->outranked >> i & 1)
			news |= sp_suspect_as(b, i, true);
	return news;
}

/* Take up what the nodes that are not suspected report. */
static bool sp_suspect_adopt(struct sp_ballot *b)
{
	bool news = false;
	u32 i;

	for (i = 0; i < b->view->nnodes; i++)
		if (i != b->self && !sp_suspects(b, i))
			news |= sp_suspect_adopt_one(b, i);
	return news;
}

/*
 * Suspect nodes that are suspected by so many others that the rest is no quorum:
 * whatever their ranks, they can be in no view with a majority any more.
 */
static bool sp_suspect_doomed(struct sp_ballot *b)
{
	u32 n = b->view->nnodes;
	bool news = false;
	u32 i, k;

	for (i = 0; i < n; i++) {
		u64 rest = 0;

		if (i == b->self || sp_suspects(b, i))
			continue;
		for (k = 0; k < n; k++)
			if (sp_suspects(b, k) ||
			    !(b->reports[k].suspected >> i & 1))
				rest |= 1ull << k;
		if (!sp_view_quorum(b->view, rest))
			news |= sp_suspect_as(b, i, true);
	}
	return news;
}

/* Suspect who reports what cannot be. */
static bool sp_suspect_doubt(struct sp_ballot *b)
{
	bool news = false;
	u32 i;

	if (!sp_ballot_own(b)->wedged)
		return false;
	for (i = 0; i < b->view->nnodes; i++) {
		if (i == b->self || sp_suspects(b, i) ||
		    sp_trim_fits(b, &b->reports[i]))
			continue;
		b->faulty |= 1ull << i;
		news |= sp_suspect(b, i);
	}
	return news;
}

/**
 * sp_suspect_others() - suspect whom the reports give reason to
 * @b: this node's part in the end of the view
 *
 * Return: true when there is news.
 */
bool sp_suspect_others(struct sp_ballot *b)
{
	bool news = false;

	/* A node that is suspected here may have been the reason for others. */
	while (sp_suspect_doomed(b) || sp_suspect_adopt(b) ||
	       sp_suspect_doubt(b))
		news = true;
	return news;
}

/**
 * sp_suspect_accuse() - find the accusation that this node has to report
 * @b: this node's part in the end of the view, after sp_suspect_others()
 *
 * Of several accusations the first one by rank is reported. When it has been
 * settled the next one follows.
 *
 * Return: true when it is another one than before.
 */
bool sp_suspect_accuse(struct sp_ballot *b)
{
	struct sp_accusation *own = &sp_ballot_own(b)->accusation;
	struct sp_accusation was = *own;
	u64 nodes = sp_unsuspected(b);
	u32 by, of;

	own->by = 0;
	own->of = 0;
	for (by = 1; by < b->view->nnodes && !own->by; by++) {
		if (!(nodes >> by & 1))
			continue;
		for (of = 0; of < by && !own->by; of++) {
			if (!(nodes & b->reports[by].suspected & 1ull << of))
				continue;
			own->by = by;
			own->of = of;
		}
	}
	return own->by != was.by || own->of != was.of;
}
