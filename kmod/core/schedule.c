// SPDX-License-Identifier: GPL-2.0
/*
 * Who sends which block of a large object to whom, and when.
 *
 * The binomial pipeline is a cube of 2^dims vertices. In each step every vertex
 * exchanges a block with its neighbour along one dimension, the dimensions in
 * turn, and sends the highest block it has; the root's vertex has a new one in
 * each step. Section 4.4 of the paper says in closed form which block that is:
 * pipe_highest().
 *
 * Where the nodes are no power of two, a vertex may have two nodes, and does as
 * one. Its highest block is with one of them only, the outlet, which sends it.
 * The other, the inlet, receives what comes, and hands the outlet the one block
 * that only the inlet has. Both have sent one block and received one, and each
 * again has just one that the other lacks. When what came is higher than
 * what the vertex had, the two change roles, for now the other is the one with
 * the highest block. That is so in just those steps whose dimension's bit is set
 * in the vertex' number: so the roles can be counted. After the last step of the
 * cube both give each other what they lack, in one more. The root has a vertex of its
 * own: there are never more nodes left over than other vertices.
 */
#include "schedule.h"

/* Steps do not wrap when a few are added to them. */
#define SP_MAX_STEPS	(U32_MAX / 2)

static void pipe_init(struct sp_pipe *p, u32 n, u32 rank)
{
	p->n = n;
	p->rank = rank;
	p->dims = fls(n) - 1;
}

static u64 pipe_steps(const struct sp_pipe *p, u32 blocks)
{
	if (p->n < 2)
		return 0;
	return (u64)blocks + fls(p->n - 1U) - 1;
}

/* The step in which nodes that share a vertex do what is left to do. */
static u32 pipe_last(const struct sp_pipe *p, u32 blocks)
{
	return p->dims + blocks - 1;
}

static u32 pipe_vertex(const struct sp_pipe *p, u32 rank)
{
	return rank >> p->dims ? rank - (1U << p->dims) + 1 : rank;
}

/* The second node of a vertex, or the one it has. */
static u32 pipe_second(const struct sp_pipe *p, u32 vertex)
{
	u32 second = (1U << p->dims) + vertex - 1;

	return vertex && second < p->n ? second : vertex;
}

/* Has the vertex' second node its highest block? Each bit set is a change. */
static bool pipe_swapped(const struct sp_pipe *p, u32 vertex, u32 step)
{
	u32 below = (1U << step % p->dims) - 1;

	return (hweight32(vertex) * (step / p->dims + 1) +
		hweight32(vertex & below)) & 1;
}

static u32 pipe_outlet(const struct sp_pipe *p, u32 vertex, u32 step)
{
	return pipe_swapped(p, vertex, step) ? pipe_second(p, vertex) : vertex;
}

static u32 pipe_inlet(const struct sp_pipe *p, u32 vertex, u32 step)
{
	return pipe_swapped(p, vertex, step) ? vertex : pipe_second(p, vertex);
}

/* The vertex that a vertex deals with; in the last step itself. */
static u32 pipe_partner(const struct sp_pipe *p, u32 blocks, u32 vertex,
			u32 step)
{
	/*
	 * With one block, a second node has none yet. It gets it from where its
	 * first one would come, had there been more, so that the source of a
	 * node's first block does not depend on their number.
	 */
	if (blocks > 1 && step == pipe_last(p, blocks))
		return vertex;
	return vertex ^ 1U << step % p->dims;
}

/* Does the vertex receive anything in a step, if its partner has anything? */
static bool pipe_takes(const struct sp_pipe *p, u32 blocks, u32 vertex,
		       u32 step)
{
	if (step == pipe_last(p, blocks))
		return pipe_second(p, vertex) != vertex;
	return vertex;
}

/* The highest block that a vertex has before a step; false: it has none. */
static bool pipe_highest(const struct sp_pipe *p, u32 blocks, u32 vertex,
			 u32 step, u32 *block)
{
	u32 zeros;

	if (!vertex) {
		*block = min(step, blocks - 1);
		return true;
	}
	/* Trailing zeros of the number rotated by the step. */
	zeros = __ffs((vertex | vertex << p->dims) >> step % p->dims);
	if (step + zeros < p->dims)
		return false;
	*block = min(step + zeros - p->dims, blocks - 1);
	return true;
}

/* What the inlet hands to the outlet: all but the highest of the two. */
static bool pipe_handed(const struct sp_pipe *p, u32 blocks, u32 vertex,
			u32 step, u32 *block)
{
	u32 own, came;

	/* From step dims on a block comes in each. */
	if (step <= p->dims)
		return false;
	step--;
	if (!pipe_highest(p, blocks, vertex, step, &own) ||
	    !pipe_highest(p, blocks, vertex ^ 1U << step % p->dims, step, &came))
		return false;
	*block = min(own, came);
	return true;
}

static bool pipe_send(const struct sp_pipe *p, u32 blocks, u32 step, u32 *peer,
		      u32 *block)
{
	u32 vertex = pipe_vertex(p, p->rank);
	u32 outlet, to;

	if (step >= pipe_steps(p, blocks))
		return false;
	outlet = pipe_outlet(p, vertex, step);
	if (p->rank != outlet) {
		*peer = outlet;
		return pipe_handed(p, blocks, vertex, step, block);
	}
	to = pipe_partner(p, blocks, vertex, step);
	*peer = pipe_inlet(p, to, step);
	return pipe_takes(p, blocks, to, step) &&
	       pipe_highest(p, blocks, vertex, step, block);
}

static bool pipe_recv(const struct sp_pipe *p, u32 blocks, u32 step, u32 *peer,
		      u32 *block)
{
	u32 vertex = pipe_vertex(p, p->rank);
	u32 inlet, from;

	if (step >= pipe_steps(p, blocks))
		return false;
	inlet = pipe_inlet(p, vertex, step);
	if (p->rank != inlet) {
		*peer = inlet;
		return pipe_handed(p, blocks, vertex, step, block);
	}
	from = pipe_partner(p, blocks, vertex, step);
	*peer = pipe_outlet(p, from, step);
	return pipe_takes(p, blocks, vertex, step) &&
	       pipe_highest(p, blocks, from, step, block);
}

/* A binomial tree: who had the object when the highest bit's turn came. */
static u32 tree_parent(u32 rank)
{
	return rank ? rank ^ 1U << (fls(rank) - 1) : 0;
}

static u32 pipe_first(const struct sp_pipe *p)
{
	u32 vertex = pipe_vertex(p, p->rank);

	/* A second node is the inlet in step dims, along dimension 0. */
	return p->rank == vertex ? tree_parent(vertex) : vertex ^ 1;
}

/* The nodes of a rack are ranked as they are in the group. */
static u32 rack_member(const struct sp_schedule *s, u32 index)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		if (s->rack[i] == s->rack[s->rank] && !index--)
			break;
	return i;
}

/* And racks by their leaders, which are the lowest of their nodes. */
static u32 rack_leader(const struct sp_schedule *s, u32 index)
{
	u32 seen[8] = { 0 };
	u32 i;

	for (i = 0; i < s->n; i++) {
		u32 *word = &seen[s->rack[i] / 32];
		u32 bit = 1U << s->rack[i] % 32;

		if (!(*word & bit) && !index--)
			break;
		*word |= bit;
	}
	return i;
}

static u64 racks_init(struct sp_schedule *s)
{
	u16 count[256] = { 0 };
	u32 within = 0, across = 0, own = 0, largest = 0;
	struct sp_pipe p;
	u32 i;

	for (i = 0; i < s->n; i++) {
		u32 before = count[s->rack[i]]++;

		if (!before) {
			if (s->rack[i] == s->rack[s->rank])
				own = across;
			across++;
		}
		if (i == s->rank)
			within = before;
		largest = max(largest, before + 1);
	}
	pipe_init(&s->across, across, own);
	pipe_init(&s->within, count[s->rack[s->rank]], within);
	pipe_init(&p, largest, 0);
	s->seeded = pipe_steps(&s->across, s->blocks);
	return s->seeded + pipe_steps(&p, s->blocks);
}

/**
 * sp_schedule_init() - a node's part of the transfer of an object
 * @s: what is filled in
 * @kind: the algorithm
 * @n: number of nodes, the root among them
 * @rank: the node's rank, relative to the root
 * @blocks: blocks of the object, at least 1
 * @rack: hybrid: rack of each node, by rank, which stays the caller's and must
 *	not change while @s is in use; NULL for all others
 *
 * All nodes must give the same, but for @rank.
 *
 * Return: 0, or -EINVAL: no such algorithm, no such rank, no blocks, more
 * steps than can be counted, or racks where there are none or the reverse.
 */
int sp_schedule_init(struct sp_schedule *s, enum sp_schedule_kind kind,
		     unsigned int n, unsigned int rank, u32 blocks,
		     const u8 *rack)
{
	bool racks = kind == SP_SCHEDULE_HYBRID;
	u64 steps;

	if (!n || n > U16_MAX || rank >= n || !blocks || blocks > SP_MAX_STEPS ||
	    racks != !!rack)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->n = n;
	s->rank = rank;
	s->blocks = blocks;
	s->rack = rack;
	switch (kind) {
	case SP_SCHEDULE_SEQUENTIAL:
		steps = (u64)blocks * (n - 1);
		break;
	case SP_SCHEDULE_CHAIN:
		steps = n > 1 ? (u64)blocks + n - 2 : 0;
		break;
	case SP_SCHEDULE_TREE:
		steps = (u64)blocks * fls(n - 1);
		break;
	case SP_SCHEDULE_PIPELINE:
		pipe_init(&s->within, n, rank);
		steps = pipe_steps(&s->within, blocks);
		break;
	case SP_SCHEDULE_HYBRID:
		steps = racks_init(s);
		break;
	default:
		return -EINVAL;
	}
	if (steps > SP_MAX_STEPS)
		return -EINVAL;
	s->steps = steps;
	return 0;
}

/**
 * sp_schedule_steps() - length of a transfer
 * @s: the schedule
 *
 * Return: number of steps; the same on all nodes, 0 where there is but one.
 */
u32 sp_schedule_steps(const struct sp_schedule *s)
{
	return s->steps;
}

/**
 * sp_schedule_send() - what this node sends in a step
 * @s: the schedule
 * @step: the step, from 0
 * @peer: rank of the node that receives it
 * @block: the block, from 0
 *
 * Takes a few instructions; for a hybrid, a walk over the racks of the nodes
 * on top.
 *
 * Return: true, and @peer and @block were set; false: it sends nothing.
 */
bool sp_schedule_send(const struct sp_schedule *s, u32 step,
		      unsigned int *peer, u32 *block)
{
	u32 round;

	if (step >= s->steps)
		return false;
	switch (s->kind) {
	case SP_SCHEDULE_SEQUENTIAL:
		*peer = step / s->blocks + 1;
		*block = step % s->blocks;
		return !s->rank;
	case SP_SCHEDULE_CHAIN:
		*peer = s->rank + 1U;
		*block = step - s->rank;
		return *peer < s->n && step >= s->rank && *block < s->blocks;
	case SP_SCHEDULE_TREE:
		round = step / s->blocks;
		*peer = s->rank + (1U << round);
		*block = step % s->blocks;
		return !(s->rank >> round) && *peer < s->n;
	case SP_SCHEDULE_PIPELINE:
		return pipe_send(&s->within, s->blocks, step, peer, block);
	case SP_SCHEDULE_HYBRID:
		break;
	}
	if (step >= s->seeded) {
		if (!pipe_send(&s->within, s->blocks, step - s->seeded, peer,
			       block))
			return false;
		*peer = rack_member(s, *peer);
		return true;
	}
	if (s->within.rank ||
	    !pipe_send(&s->across, s->blocks, step, peer, block))
		return false;
	*peer = rack_leader(s, *peer);
	return true;
}

/**
 * sp_schedule_recv() - what this node receives in a step
 * @s: the schedule
 * @step: the step, from 0
 * @peer: rank of the node that sends it
 * @block: the block, from 0
 *
 * Takes as long as sp_schedule_send().
 *
 * Return: true, and @peer and @block were set; false: it receives nothing.
 */
bool sp_schedule_recv(const struct sp_schedule *s, u32 step,
		      unsigned int *peer, u32 *block)
{
	if (step >= s->steps || !s->rank)
		return false;
	switch (s->kind) {
	case SP_SCHEDULE_SEQUENTIAL:
		*peer = 0;
		*block = step % s->blocks;
		return step / s->blocks == s->rank - 1U;
	case SP_SCHEDULE_CHAIN:
		*peer = s->rank - 1U;
		*block = step - *peer;
		return step >= *peer && *block < s->blocks;
	case SP_SCHEDULE_TREE:
		*peer = tree_parent(s->rank);
		*block = step % s->blocks;
		return s->rank >> step / s->blocks == 1;
	case SP_SCHEDULE_PIPELINE:
		return pipe_recv(&s->within, s->blocks, step, peer, block);
	case SP_SCHEDULE_HYBRID:
		break;
	}
	if (step >= s->seeded) {
		if (!pipe_recv(&s->within, s->blocks, step - s->seeded, peer,
			       block))
			return false;
		*peer = rack_member(s, *peer);
		return true;
	}
	if (s->within.rank ||
	    !pipe_recv(&s->across, s->blocks, step, peer, block))
		return false;
	*peer = rack_leader(s, *peer);
	return true;
}

/**
 * sp_schedule_first() - where a node's first block comes from
 * @s: the schedule
 *
 * It does not depend on the number of blocks, so that a node can be ready for
 * the first one before it knows how long the object is.
 *
 * Return: rank of the peer that sends it; of the root, the root.
 */
unsigned int sp_schedule_first(const struct sp_schedule *s)
{
	switch (s->kind) {
	case SP_SCHEDULE_SEQUENTIAL:
		return 0;
	case SP_SCHEDULE_CHAIN:
		return s->rank ? s->rank - 1U : 0;
	case SP_SCHEDULE_TREE:
		return tree_parent(s->rank);
	case SP_SCHEDULE_PIPELINE:
		return pipe_first(&s->within);
	case SP_SCHEDULE_HYBRID:
		break;
	}
	if (s->within.rank)
		return rack_member(s, pipe_first(&s->within));
	return rack_leader(s, pipe_first(&s->across));
}
