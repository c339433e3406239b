/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shared state table: what lies where in a node's slab, and how a counter
 * that a peer polls is written and read.
 *
 * A node owns its row of cells in a group, and a *slab* for each of its lanes: a
 * ring of descriptors and a ring of bytes. Every node holds a replica of every row
 * and of every slab. Only the owner's node writes them: in its own memory with
 * plain stores, in the others' with RDMA writes.
 *
 *   writer                  reader                  paired by
 *   ----------------------  ----------------------  --------------------------
 *   row cells: owner's      every peer's engine     value and check, below;
 *   engine, by RDMA                                 sp_read_barrier() after it
 *   descriptors, bytes:     receive predicate,      posted before the progress
 *   owner, by RDMA          then the node's readers cell on the same QP
 */
#ifndef SPINDLE_CORE_SST_H
#define SPINDLE_CORE_SST_H

#include "env.h"

#define SP_UNIT_SHIFT	6
#define SP_UNIT		(1U << SP_UNIT_SHIFT)	/* bytes of ring are handed out so */

/**
 * struct sp_cell - a counter that peers poll
 * @value: the counter
 * @check: sp_mix() of it and the view's epoch
 *
 * An RDMA write of sixteen bytes need not land as one. A reader takes the pair
 * for news only when the check holds; a torn pair is no news until the rest of
 * it has landed. A plain complement would not do: a torn value and a torn
 * complement can agree.
 */
struct sp_cell {
	u64 value;
	u64 check;
};

/* The cells of a row. It has two banks, by the parity of the view's number. */
enum sp_cell_index {
	SP_CELL_VIEW,		/* number of the view this row speaks of */
	SP_CELL_RECEIVED,	/* received_num + 1 */
	SP_CELL_CONSUMED,	/* consumed + 1 */
	SP_CELL_SLEEP,		/* odd: the engine is about to sleep on the group */
	SP_CELL_WANTED,		/* place that it waits for others' readers to reach, + 1 */
	SP_CELL_RESERVED = 7,
	SP_CELL_LANES,		/* the progress words, one a lane */
};

/**
 * struct sp_desc - what the kernel says of one message
 * @index: the turn it takes, low half
 * @len: its length in bytes
 * @pos: where it starts in the lane's ring, in units, not reduced; low half
 * @flags: SP_DESC_*
 */
struct sp_desc {
	u32 index;
	u32 len;
	u32 pos;
	u32 flags;
};

#define SP_DESC_FIN	(1U << 0)	/* the lane's last: nothing follows */
#define SP_DESC_PRIVATE	(1U << 2)	/* for one member alone: see SP_DESC_UID_SHIFT */
#define SP_DESC_STATE	(1U << 3)	/* with it that member is up to date */
#define SP_DESC_UID_SHIFT 8		/* the number of that member, from here on */
#define SP_DESC_FLAGS	(SP_DESC_FIN | SP_DESC_PRIVATE | SP_DESC_STATE)

/* May a correct peer say so? Bit 1 is SP_LOG_EVENT in the log. */
static inline bool sp_desc_flags_ok(u32 flags)
{
	if (flags & SP_DESC_PRIVATE)
		return !(flags & SP_DESC_FIN) &&
		       !(flags & ~SP_DESC_FLAGS & ((1U << SP_DESC_UID_SHIFT) - 1));
	return !(flags & ~SP_DESC_FIN);
}

/* Of a private message: the number of its member, low 24 bits. */
static inline u32 sp_desc_uid(u32 flags)
{
	return flags >> SP_DESC_UID_SHIFT;
}

/**
 * struct sp_layout - where things are in a lane's slab
 * @depth: descriptors, a power of two; they come first
 * @window: bytes of the ring, a power of two
 * @ring_off: offset of the ring
 * @size: bytes in all
 */
struct sp_layout {
	u32 depth;
	u32 window;
	u32 ring_off;
	u32 size;
};

#define SP_ROW_MAX	1024U	/* one bank; it travels in one write */
#define SP_ROWS_BYTES	(2 * SP_ROW_MAX)

void sp_layout_init(struct sp_layout *lay, u32 depth, u32 window, u32 chunk);
u64 sp_mix(u64 value, u64 epoch);

/* Offset of the bank in which the row of a view is. */
static inline u32 sp_row_off(u64 view)
{
	return (view & 1) * SP_ROW_MAX;
}

/**
 * sp_cell_set() - fill a cell
 * @cell: the cell, in memory that nobody polls yet
 * @value: the counter
 * @epoch: epoch of the view it belongs to
 */
static inline void sp_cell_set(struct sp_cell *cell, u64 value, u64 epoch)
{
	cell->value = value;
	cell->check = sp_mix(value, epoch);
}

/**
 * sp_cell_get() - poll a cell
 * @cell: the cell, in memory that a peer writes at any time
 * @epoch: epoch of the view it should belong to
 * @value: where the counter goes
 *
 * Whatever the owner posted before the cell may be read after this said true:
 * the barrier here pairs with the order of writes of one QP.
 *
 * Return: true when the cell held together.
 */
static inline bool sp_cell_get(const struct sp_cell *cell, u64 epoch, u64 *value)
{
	u64 v = READ_ONCE(cell->value);
	u64 check = READ_ONCE(cell->check);

	if (check != sp_mix(v, epoch))
		return false;
	sp_read_barrier();
	*value = v;
	return true;
}

/* The progress word: low halves of the rounds promised and the descriptors. */
static inline u64 sp_progress(u64 round, u64 count)
{
	return (u64)(u32)round << 32 | (u32)count;
}

static inline u32 sp_progress_round(u64 word)
{
	return word >> 32;
}

static inline u32 sp_progress_count(u64 word)
{
	return (u32)word;
}

/* Units of ring that a message takes. */
static inline u32 sp_units(u32 len)
{
	return (len >> SP_UNIT_SHIFT) + !!(len & (SP_UNIT - 1));
}

#endif /* SPINDLE_CORE_SST_H */
