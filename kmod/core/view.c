// SPDX-License-Identifier: GPL-2.0
/*
 * Membership of a group: who is in it, in which order, and which states it may
 * go through. The first view is the only one for now; its number is in every
 * row, and the epoch of every cell is derived from it.
 */
#include "view.h"

/**
 * sp_view_init() - begin to form the first view
 * @v: the view
 * @wanted: members it waits for, 1 to SP_MAX_MEMBERS
 * @max_senders: how many of them may send; 0: all
 */
void sp_view_init(struct sp_view *v, u32 wanted, u32 max_senders)
{
	memset(v, 0, sizeof(*v));
	v->state = SP_VIEW_FORMING;
	v->wanted = wanted;
	v->max_senders = max_senders ? max_senders : wanted;
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

	if (flags & ~SP_MEMBER_ALL)
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

/**
 * sp_view_rank() - fix the membership: rank nodes and senders
 * @v: the view, its members in the order of their ranks
 * @id: its number, from 1
 *
 * Every node comes to the same ranks from the same list of members.
 *
 * Return: 0, or -EINVAL when the list is not complete, names a member twice or
 * gives a node more lanes than it can have, or when nobody sends.
 */
int sp_view_rank(struct sp_view *v, u64 id)
{
	u32 i;

	if (!id || v->id || !sp_view_complete(v))
		return -EINVAL;
	v->nnodes = 0;
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
		m->lane = -1;
		if ((m->flags & SP_MEMBER_RECEIVER) ||
		    v->nlanes >= v->max_senders)
			continue;
		if (v->nodes[node].lanes >= SP_MAX_NODE_LANES)
			return -EINVAL;
		m->lane = v->nlanes++;
		v->nodes[node].lanes++;
	}
	if (!v->nlanes)
		return -EINVAL;
	v->id = id;
	return 0;
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
