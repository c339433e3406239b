/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who sends which block of a large object to whom, and when.
 *
 * Paper: "RDMC: A Reliable RDMA Multicast for Large Objects", sections 4.3
 * (algorithms), 4.4 (the binomial pipeline for powers of two) and 4.5 (slack);
 * its technical report, appendix A, for other numbers of nodes.
 *
 * An object is cut into blocks, and a schedule is a row of steps. In one step a
 * node sends at most one block and receives at most one, and it never sends
 * what it has not received in an earlier step. Each node computes its own part
 * alone, and the parts fit. Ranks are relative: rank 0 is the root, which has
 * the object; the caller maps them to members.
 *
 * Steps are an order, no clock. A node that makes its sends in the order of
 * their steps, each when it has the block and the peer is ready for it, gets
 * to the end, however long anything takes: of all that is not yet done, nothing
 * keeps the lowest step from being done. It is enough that each node is ready for
 * the block that comes next in its steps, and best that it is for no other: two
 * that come at once slow each other's senders down (Documentation/rdmc.rst).
 * Blocks from one node arrive in the order of their steps.
 */
#ifndef SPINDLE_CORE_SCHEDULE_H
#define SPINDLE_CORE_SCHEDULE_H

#include "env.h"

/**
 * enum sp_schedule_kind - how an object is spread, for n nodes and k blocks
 * @SP_SCHEDULE_SEQUENTIAL: the root sends all of it to one after the other;
 *	(n - 1) * k steps
 * @SP_SCHEDULE_CHAIN: each node hands each block to the next; n + k - 2 steps
 * @SP_SCHEDULE_TREE: who has all of it sends it to one that has nothing, block
 *	by block; ceil(log2 n) * k steps
 * @SP_SCHEDULE_PIPELINE: the binomial pipeline; ceil(log2 n) + k - 1 steps,
 *	and no schedule has fewer
 * @SP_SCHEDULE_HYBRID: a binomial pipeline among one node of each rack, then
 *	one within each rack; of two levels, the steps of the first and those of
 *	the largest rack
 */
enum sp_schedule_kind {
	SP_SCHEDULE_SEQUENTIAL,
	SP_SCHEDULE_CHAIN,
	SP_SCHEDULE_TREE,
	SP_SCHEDULE_PIPELINE,
	SP_SCHEDULE_HYBRID,
};

/**
 * struct sp_pipe - a node's place in a binomial pipeline
 * @n: number of nodes in it
 * @rank: the node's rank among them
 * @dims: dimensions of the cube: its vertices have one node or two
 */
struct sp_pipe {
	u16 n;
	u16 rank;
	u8 dims;
};

/**
 * struct sp_schedule - one node's view of the transfer of one object
 * @kind: the algorithm
 * @n: number of nodes
 * @rank: the node's rank, relative to the root
 * @blocks: blocks of the object
 * @steps: steps of the transfer
 * @seeded: hybrid: the step in which the second level begins, else 0
 * @across: hybrid: the racks; @across.rank is that of the node's rack
 * @within: hybrid: the nodes of the rack, the first of which is its leader;
 *	pipeline: all nodes
 * @rack: hybrid: rack of each node; the caller's, and it must stay as it is
 *
 * Filled in by sp_schedule_init() and constant from then on.
 */
struct sp_schedule {
	enum sp_schedule_kind kind;
	u16 n;
	u16 rank;
	u32 blocks;
	u32 steps;
	u32 seeded;
	struct sp_pipe across;
	struct sp_pipe within;
	const u8 *rack;
};

int sp_schedule_init(struct sp_schedule *s, enum sp_schedule_kind kind,
		     unsigned int n, unsigned int rank, u32 blocks,
		     const u8 *rack);
u32 sp_schedule_steps(const struct sp_schedule *s);
bool sp_schedule_send(const struct sp_schedule *s, u32 step,
		      unsigned int *peer, u32 *block);
bool sp_schedule_recv(const struct sp_schedule *s, u32 step,
		      unsigned int *peer, u32 *block);
unsigned int sp_schedule_first(const struct sp_schedule *s);

#endif /* SPINDLE_CORE_SCHEDULE_H */
