// SPDX-License-Identifier: GPL-2.0
/* The shared state table's layout and the check of its cells. */
#include "sst.h"

/**
 * sp_layout_lane() - lay out a lane's slab
 * @lay: the layout
 * @depth: descriptors of the lane, a power of two
 * @window: bytes of its ring, a power of two
 * @chunk: the ring begins at a multiple of this, a power of two
 *
 * All nodes of a group come to the same layout from the same configuration.
 */
void sp_layout_lane(struct sp_layout *lay, u32 depth, u32 window, u32 chunk)
{
	lay->depth = depth;
	lay->window = window;
	lay->ring_off = ALIGN(depth * (u32)sizeof(struct sp_desc), chunk);
	lay->size = (u64)lay->ring_off + window;
}

/**
 * sp_layout_rows() - lay out the memory for a node's rows, two banks of them
 * @lay: the layout
 * @chunk: its size is a multiple of this, a power of two
 */
void sp_layout_rows(struct sp_layout *lay, u32 chunk)
{
	lay->depth = 0;
	lay->window = 0;
	lay->ring_off = ALIGN(2 * SP_ROW_MAX, chunk);
	lay->size = lay->ring_off;
}

/**
 * sp_mix() - the check of a cell
 * @value: the counter
 * @epoch: epoch of its view
 *
 * Every bit of the result depends on every bit of both (a 64-bit finalizer of
 * two multiply-and-fold steps), so that bytes of two different pairs, mixed
 * in any order, agree with a chance of about 2^-64. Never 0 together with the
 * value 0, so that a zeroed cell is nothing.
 *
 * Return: the check.
 */
u64 sp_mix(u64 value, u64 epoch)
{
	u64 x = value + 0x9e3779b97f4a7c15ull * (epoch + 1);

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	return x ? x : 1;
}
