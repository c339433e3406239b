/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sequence numbers: the round-robin total order of the Spindle paper, section
 * 2.1. A sender's k-th turn (nulls counted) has index k; turns are ordered by
 * index, then by the sender's rank.
 */
#ifndef SPINDLE_CORE_SEQ_H
#define SPINDLE_CORE_SEQ_H

#include "env.h"

/**
 * sp_seq() - place of a turn in the total order of a view
 * @index: the sender's turn, counted from the view's base
 * @senders: number of senders, at least 1
 * @rank: the sender's rank among them
 *
 * Return: the sequence number, from 0.
 */
static inline s64 sp_seq(u64 index, u32 senders, u32 rank)
{
	return (s64)(index * senders + rank);
}

/**
 * sp_extend32() - the 64-bit counter behind its low half
 * @last: the counter as last known
 * @low: low 32 bits of the counter now
 *
 * Return: the value nearest to @last that has these low bits. The caller
 * bounds the step; a counter that moved back gives less than @last.
 */
static inline u64 sp_extend32(u64 last, u32 low)
{
	return last + (s64)(s32)(low - (u32)last);
}

#endif /* SPINDLE_CORE_SEQ_H */
