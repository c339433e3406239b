// SPDX-License-Identifier: GPL-2.0
/*
 * Membership of a group: who is in it, in which order, how one view follows
 * from the one before it, and which states a group may go through. A view's
 * number is in every row, and the epoch of every cell is derived from it.
 */
#include "view.h"

/**
 * sp_view_init() - begin to form the first view
 * @v: the view
 * @wanted: members it waits for, 1 to SP_MAX_MEMBERS
 * @max_senders: how many members of any view may send; 0: all
 */
void sp_view_init(struct sp_view *v, u32 wanted, u32 max_senders)
{
	memset(v, 0, sizeof(*v));
	v->state = SP_VIEW_FORMING;
	v->wanted = wanted;
	v->max_senders = max_senders ? max_senders : SP_MAX_MEMBERS;
	v->giver = SP_UID_NOBODY;
}

/**
 * sp_view_set_state() - the one place where a group changes its state
 * @v: the view
 * @state: the new state
 *
 * FORMING -> ACTIVE -> CLOSED, and FORMING or ACTIVE -> FAILED. Both ends are
 * final: what a group failed with, or that it ended in order, never changes.
 *
 * Return: 0, or -EINVAL when that step does not exist.
 */
int sp_view_set_state(struct sp_view *v, enum sp_view_state state)
{
	bool ok = false;

	switch (v->state) {
	case SP_VIEW_FORMING:
		ok = (state == SP_VIEW_ACTIVE && v->id) ||
		     state == SP_VIEW_FAILED;
		break;
	case SP_VIEW_ACTIVE:
		ok = state == SP_VIEW_CLOSED || state == SP_VIEW_FAILED;
		break;
	case SP_VIEW_CLOSED:
	case SP_VIEW_FAILED:
		break;
	}
	if (!ok)
		return -EINVAL;
	/* Readers outside the caller's lock look at it: see group.h. */
	WRITE_ONCE(v->state, state);
	return 0;
}

/**
 * sp_view_add() - take in one more member
 * @v: the view, forming
 * @addr: its node
 * @cookie: what its node calls it
 * @flags: SP_MEMBER_*
 *
 * Return: 0; -EUSERS when the view is complete or the node has as many members
 * as one can have; -EEXIST when it is in already; -EINVAL for unknown flags.
 */
int sp_view_add(struct sp_view *v, const struct sp_addr *addr, u64 cookie,
		u32 flags)
{
	struct sp_member *m;
	u32 same = 0;
	u32 i;

	/* The members of the first view are where it begins. */
	if (flags & ~SP_MEMBER_ALL || flags & SP_MEMBER_STALE)
		return -EINVAL;
	if (v->id || sp_view_complete(v))
		return -EUSERS;
	if (sp_view_find_member(v, addr, cookie) >= 0)
		return -EEXIST;
	for (i = 0; i < v->nmembers; i++)
		same += !sp_addr_cmp(&v->members[i].addr, addr);
	if (same >= SP_MAX_NODE_LANES)
		return -EUSERS;

	m = &v->members[v->nmembers++];
	memset(m, 0, sizeof(*m));
	m->addr = *addr;
	m->cookie = cookie;
	m->flags = flags;
	m->lane = -1;
	return 0;
}

/**
 * sp_view_del() - drop a member, or all members of a node
 * @v: the view, forming
 * @addr: the node
 * @cookie: what the node calls the member; NULL: all of them
 *
 * Return: how many were dropped.
 */
u32 sp_view_del(struct sp_view *v, const struct sp_addr *addr,
		const u64 *cookie)
{
	u32 kept = 0;
	u32 was = v->nmembers;
	u32 i;

	if (v->id)
		return 0;
	for (i = 0; i < was; i++) {
		const struct sp_member *m = &v->members[i];

		if (!sp_addr_cmp(&m->addr, addr) &&
		    (!cookie || m->cookie == *cookie))
			continue;
		v->members[kept++] = *m;
	}
	v->nmembers = kept;
	return was - kept;
}

/**
 * sp_view_complete() - is everybody here
 * @v: the view
 *
 * Return: true when as many members came as it waits for.
 */
bool sp_view_complete(const struct sp_view *v)
{
	return v->nmembers == v->wanted;
}

/* The lowest number that no lane on a member's node has. */
static u32 sp_view_free_nr(const struct sp_view *v, const struct sp_member *m)
{
	u64 used = 0;
	u32 i, nr = 0;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].lane >= 0 &&
		    !sp_addr_cmp(&v->members[i].addr, &m->addr))
			used |= 1ull << v->members[i].nr;
	while (used >> nr & 1)
		nr++;
	return nr;
}

/*
 * Rank nodes and senders. The nodes in @v->nodes[] keep their order, and others
 * follow. Members that had a lane before, in @v->members[], keep its number;
 * @lane of the others is -1.
 */
static int sp_view_rank_nodes(struct sp_view *v)
{
	bool had[SP_MAX_MEMBERS];
	u32 i;

	v->nlanes = 0;
	for (i = 0; i < v->nmembers; i++) {
		struct sp_member *m = &v->members[i];
		int node = sp_view_find_node(v, &m->addr);

		if (sp_view_find_member(v, &m->addr, m->cookie) != (int)i)
			return -EINVAL;
		if (node < 0) {
			node = v->nnodes++;
			v->nodes[node].addr = m->addr;
			v->nodes[node].lanes = 0;
		}
		m->node = node;
		had[i] = m->lane >= 0;
	}
	for (i = 0; i < v->nmembers; i++) {
		struct sp_member *m = &v->members[i];

		if ((m->flags & SP_MEMBER_RECEIVER) ||
		    v->nlanes >= v->max_senders) {
			m->lane = -1;
			continue;
		}
		if (!had[i])
			m->nr = sp_view_free_nr(v, m);
		if (m->nr >= SP_MAX_NODE_LANES)
			return -EINVAL;
		m->lane = v->nlanes++;
		v->nodes[m->node].lanes = max(v->nodes[m->node].lanes, m->nr + 1);
	}
	return 0;
}

static bool sp_view_has_member(const struct sp_view *v, u32 node)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].node == node)
			return true;
	return false;
}

/**
 * sp_view_rank() - fix the membership: rank nodes and senders
 * @v: the view, its members in the order of their ranks
 * @id: its number, from 1
 *
 * Every node comes to the same ranks from the same list of members. This is for
 * a view that no other one has led to: see sp_view_next().
 *
 * Return: 0, or -EINVAL when the list is not complete, names a member twice or
 * gives a node more lanes than it can have, or when nobody sends in the first
 * view.
 */
int sp_view_rank(struct sp_view *v, u64 id)
{
	u32 i;
	int ret;

	if (!id || v->id || !sp_view_complete(v))
		return -EINVAL;
	v->nnodes = 0;
	for (i = 0; i < v->nmembers; i++)
		v->members[i].lane = -1;
	ret = sp_view_rank_nodes(v);
	if (ret)
		return ret;
	if (!v->nlanes && id == 1)
		return -EINVAL;
	for (i = 0; id == 1 && i < v->nmembers; i++)
		v->members[i].uid = v->next_uid++;
	v->id = id;
	return 0;
}

/*
 * A number that no member has: private messages go by it, and it comes round after
 * sixteen million joins.
 */
static u32 sp_view_uid(struct sp_view *v)
{
	u32 uid;
	u32 i;

	do {
		uid = v->next_uid++ & SP_UID_MASK;
		for (i = 0; i < v->nmembers && v->members[i].uid != uid; i++)
			;
	} while (i < v->nmembers || uid == SP_UID_NOBODY);
	return uid;
}

/**
 * sp_view_next() - the view that follows from a decision
 * @old: the view that ends
 * @p: what was decided
 * @ends: the stream ends with @old: nobody comes
 * @next: the result; may have no member at all
 *
 * Members that stay keep their order, and those that come follow. So do nodes,
 * whichever of their members stay: of two nodes the same one has the lower rank
 * as long as both are there, for suspicions go by that. Every node comes to the
 * same view; a node that comes is told all of it.
 *
 * Return: 0, or -EINVAL when no correct node decides that.
 */
int sp_view_next(const struct sp_view *old, const struct sp_proposal *p,
		 bool ends, struct sp_view *next)
{
	u32 i;
	int ret;

	memset(next, 0, sizeof(*next));
	next->state = old->state;
	next->wanted = old->wanted;
	next->max_senders = old->max_senders;
	next->next_uid = old->next_uid;
	next->giver = old->giver;
	for (i = 0; i < old->nmembers; i++)
		if (!p->reason[i])
			next->members[next->nmembers++] = old->members[i];
	for (i = 0; i < old->nnodes; i++) {
		if (sp_view_has_member(next, i))
			next->nodes[next->nnodes++] = (struct sp_view_node){
				.addr = old->nodes[i].addr,
			};
	}
	for (i = 0; i < p->njoins && !ends; i++) {
		struct sp_member *m = &next->members[next->nmembers];

		if (next->nmembers == SP_MAX_MEMBERS)
			return -EINVAL;
		m->uid = sp_view_uid(next);
		next->nmembers++;
		m->addr = p->joins[i].addr;
		m->cookie = p->joins[i].cookie;
		m->flags = p->joins[i].flags;
		m->lane = -1;
	}
	ret = sp_view_rank_nodes(next);
	if (ret)
		return ret;
	next->id = old->id + 1;
	return 0;
}

/* Of a view with all its members: who has no lane is one that never sends. */
static bool sp_member_fits(const struct sp_member *m)
{
	bool receiver = m->flags & SP_MEMBER_RECEIVER;

	return !(m->flags & ~SP_MEMBER_ALL) && receiver == (m->lane < 0);
}

/**
 * sp_view_told() - a view that another node tells of
 * @v: the view: its nodes and members by rank, with the numbers of their lanes, and
 *	@lane 0 of those that send, -1 of the others; the ranks of senders are not set
 * @id: its number, from 1
 *
 * Return: 0, or -EINVAL when no correct node tells that.
 */
int sp_view_told(struct sp_view *v, u64 id)
{
	u64 used[SP_MAX_MEMBERS] = { 0 };
	u32 nnodes = v->nnodes;
	u32 i;

	if (!id || v->id || !v->nmembers || v->nmembers > SP_MAX_MEMBERS ||
	    !nnodes || nnodes > SP_MAX_MEMBERS)
		return -EINVAL;
	for (i = 0; i < nnodes; i++)
		if (sp_view_find_node(v, &v->nodes[i].addr) != (int)i)
			return -EINVAL;
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];
		int node = sp_view_find_node(v, &m->addr);

		if (node < 0 || !sp_member_fits(m) || m->uid >= SP_UID_NOBODY ||
		    sp_view_find_uid(v, m->uid) != (int)i)
			return -EINVAL;
		if (m->lane < 0)
			continue;
		if (m->nr >= SP_MAX_NODE_LANES || (used[node] >> m->nr & 1))
			return -EINVAL;
		used[node] |= 1ull << m->nr;
	}
	if (sp_view_rank_nodes(v))
		return -EINVAL;
	/* More of them send than may. */
	for (i = 0; i < v->nmembers; i++)
		if (!sp_member_fits(&v->members[i]))
			return -EINVAL;
	for (i = 0; i < nnodes; i++)
		if (!sp_view_has_member(v, i))
			return -EINVAL;
	v->id = id;
	return 0;
}

/**
 * sp_view_stayed() - has a node been in a view and the one before it without
 * a break
 * @v: the view
 * @old: the one before it
 * @addr: the node
 *
 * Return: true when a member on it is in both.
 */
bool sp_view_stayed(const struct sp_view *v, const struct sp_view *old,
		    const struct sp_addr *addr)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (!sp_addr_cmp(&v->members[i].addr, addr) &&
		    sp_view_find_member(old, addr, v->members[i].cookie) >= 0)
			return true;
	return false;
}

/**
 * sp_view_find_uid() - rank of a member
 * @v: the view
 * @uid: its number
 *
 * Return: its rank, or -ENOENT.
 */
int sp_view_find_uid(const struct sp_view *v, u32 uid)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].uid == uid)
			return i;
	return -ENOENT;
}

/* May a member send others the state? @fins: senders that send nothing more. */
static bool sp_member_gives(const struct sp_member *m, u64 fins)
{
	return !(m->flags & SP_MEMBER_STALE) && m->lane >= 0 &&
	       !(fins >> m->lane & 1);
}

/**
 * sp_view_giver() - who is to send the state to those who have come
 * @v: the view, as it begins; @v->giver is that of the view before
 * @fins: senders, a bit each, by rank among them, that send nothing more
 *
 * It stays the same one as long as there is anybody to send it to and it can: who has
 * been sent half of it is not to begin anew for want of a reason. Else it is that of the
 * lowest rank.
 */
void sp_view_giver(struct sp_view *v, u64 fins)
{
	int was = sp_view_find_uid(v, v->giver);
	u32 giver = SP_UID_NOBODY;
	bool any = false;
	u32 i;

	for (i = v->nmembers; i-- > 0;) {
		any |= v->members[i].flags & SP_MEMBER_STALE;
		if (sp_member_gives(&v->members[i], fins))
			giver = v->members[i].uid;
	}
	if (!any)
		v->giver = SP_UID_NOBODY;
	else if (was < 0 || !sp_member_gives(&v->members[was], fins))
		v->giver = giver;
}

/**
 * sp_view_quorum() - may these nodes of a view decide what follows it
 * @v: the view
 * @nodes: they, by rank
 *
 * Any two sets that may have a node in common.
 *
 * Return: true for a strict majority, or half of them with the lowest rank.
 */
bool sp_view_quorum(const struct sp_view *v, u64 nodes)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < v->nnodes; i++)
		n += nodes >> i & 1;
	return 2 * n > v->nnodes || (2 * n == v->nnodes && (nodes & 1));
}

/**
 * sp_view_find_node() - rank of a node
 * @v: the view, ranked
 * @addr: the node's address
 *
 * Return: its rank, or -ENOENT.
 */
int sp_view_find_node(const struct sp_view *v, const struct sp_addr *addr)
{
	u32 i;

	for (i = 0; i < v->nnodes; i++)
		if (!sp_addr_cmp(&v->nodes[i].addr, addr))
			return i;
	return -ENOENT;
}

/**
 * sp_view_find_member() - rank of a member
 * @v: the view
 * @addr: its node
 * @cookie: what its node calls it
 *
 * Return: its rank, or -ENOENT.
 */
int sp_view_find_member(const struct sp_view *v, const struct sp_addr *addr,
			u64 cookie)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].cookie == cookie &&
		    !sp_addr_cmp(&v->members[i].addr, addr))
			return i;
	return -ENOENT;
}
