// SPDX-License-Identifier: GPL-2.0
/*
 * How a message is sent (RDMC, sections 4.3, 4.6 and 5.2): the ring is faster
 * while all its copies leave one node faster than blocks can be handed on; for
 * what is larger the binomial pipeline has the fewest steps for any number of
 * nodes and blocks, so that the others are for those who ask for them.
 */
#include "choose.h"

#define SP_BLOCKS_WANTED	128U	/* the first steps are then 1 % together */

/**
 * sp_block_size() - size of an object's blocks
 * @len: bytes of the object
 * @block: what the group was made with, 0: by size
 *
 * All nodes come to the same. Small blocks fill the pipeline early, and each
 * costs a completion.
 *
 * Return: bytes, a power of two.
 */
u32 sp_block_size(u32 len, u32 block)
{
	if (!block) {
		block = SP_BLOCK_MIN;
		while (block < SP_BLOCK_MAX && len / block > SP_BLOCKS_WANTED)
			block *= 2;
	}
	while (len / block >= SP_BLOCKS_MAX)
		block *= 2;
	return block;
}

/**
 * sp_choose() - how a message is sent
 * @by: what it depends on
 * @choice: the result
 */
void sp_choose(const struct sp_choose *by, struct sp_choice *choice)
{
	choice->object = by->always || by->len > by->max_msg;
	choice->block = sp_block_size(by->len, by->block);
	choice->kind = SP_SCHEDULE_PIPELINE;
	if (!choice->object) {
		choice->why = "it fits the ring";
	} else if (by->wish) {
		choice->kind = (enum sp_schedule_kind)(by->wish - 1);
		choice->why = "its sender wants it so";
	} else if (by->kind) {
		choice->kind = (enum sp_schedule_kind)(by->kind - 1);
		choice->why = "the group was made so";
	} else if (by->nodes <= 2) {
		choice->kind = SP_SCHEDULE_SEQUENTIAL;
		choice->why = "there is one node to send it to";
	} else if (by->racks > 1 && by->racks < by->nodes) {
		choice->kind = SP_SCHEDULE_HYBRID;
		choice->why = "the nodes are in several racks";
	} else {
		choice->why = "no schedule has fewer steps";
	}
}

/**
 * sp_schedule_name() - a schedule in one word
 * @kind: the schedule
 *
 * Return: its name.
 */
const char *sp_schedule_name(enum sp_schedule_kind kind)
{
	static const char * const names[] = {
		[SP_SCHEDULE_SEQUENTIAL] = "sequential",
		[SP_SCHEDULE_CHAIN] = "chain",
		[SP_SCHEDULE_TREE] = "tree",
		[SP_SCHEDULE_PIPELINE] = "pipeline",
		[SP_SCHEDULE_HYBRID] = "hybrid",
	};

	return kind <= SP_SCHEDULE_HYBRID ? names[kind] : "unknown";
}
