// SPDX-License-Identifier: GPL-2.0
/* The shared state table's layout and the check of its cells. */
#include "sst.h"

/**
 * sp_layout_init() - lay out the slab of a lane
 * @lay: the layout
 * @depth: its descriptors, a power of two
 * @window: bytes of its ring, a power of two
 * @chunk: the ring begins at a multiple of this, a power of two
 *
 * All nodes of a group come to the same layout from the same configuration.
 */
void sp_layout_init(struct sp_layout *lay, u32 depth, u32 window, u32 chunk)
{
	lay->depth = depth;
	lay->window = window;
	lay->ring_off = ALIGN(depth * (u32)sizeof(struct sp_desc), chunk);
	lay->size = lay->ring_off + window;
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
