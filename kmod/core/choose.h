/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a message is sent: through the ring, or as an object, and then how.
 */
#ifndef SPINDLE_CORE_CHOOSE_H
#define SPINDLE_CORE_CHOOSE_H

#include "schedule.h"

#define SP_BLOCK_MIN	(16U << 10)
#define SP_BLOCK_MAX	(512U << 10)
#define SP_BLOCKS_MAX	(1U << 15)	/* of one object: see SP_IMM_MASK */

/**
 * struct sp_choice - how a message is sent
 * @object: as an object, by blocks; else through the ring, and nothing else
 *	here means anything
 * @kind: by this schedule
 * @block: in blocks of so many bytes
 * @why: the reason, in words
 */
struct sp_choice {
	bool object;
	enum sp_schedule_kind kind;
	u32 block;
	const char *why;
};

/**
 * struct sp_choose - what a choice depends on
 * @len: bytes of the message
 * @max_msg: largest message that goes through the ring
 * @nodes: nodes of the group
 * @racks: racks they are in
 * @kind: what the group was made with: 0: any, else one more than an
 *	enum sp_schedule_kind
 * @wish: likewise of this message alone
 * @always: as an object though the ring would take it
 * @block: what the group was made with, 0: by size
 */
struct sp_choose {
	u32 len;
	u32 max_msg;
	u32 nodes;
	u32 racks;
	u32 kind;
	u32 wish;
	bool always;
	u32 block;
};

void sp_choose(const struct sp_choose *by, struct sp_choice *choice);
u32 sp_block_size(u32 len, u32 block);
const char *sp_schedule_name(enum sp_schedule_kind kind);

#endif /* SPINDLE_CORE_CHOOSE_H */
