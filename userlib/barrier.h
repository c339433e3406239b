/* SPDX-License-Identifier: MIT */
/*
 * The order in which the program and the kernel see each other's stores.
 *
 *   here                                 pairs with, in the kernel
 *   -----------------------------------  ----------------------------------
 *   store_release(user.tx_tail)          acquire, before it reads bytes and
 *                                        submissions
 *   store_release(user.rx_released)      acquire, before the room is reused:
 *                                        the last look at a message is over
 *   load_acquire(status.published)       release, after the lanes' bytes and
 *                                        the deliveries
 *   load_acquire(status.tx_head),        release, after the last look at the
 *   load_acquire(status.tx_freed)        bytes that are to be written anew
 *   load_acquire(status.state)           release, after the last published
 *                                        and after the error
 *   load_barrier() behind what was read  release, before anything else is
 *   of a delivery or a message, before   written there: who has read that
 *   the look at status.state             finds that it was evicted
 *   full_barrier() between tx_tail or    full barrier between its store to
 *   rx_released and the look at          status.flags and its last look at
 *   status.flags                         tx_tail and rx_released: either side
 *                                        sees what the other one has stored
 *   store_relaxed(user.tx_want_*),       none: poll(2) is called behind them
 *   store_relaxed(user.rx_seen)          by the thread that stored them
 */
#ifndef LIBSPINDLE_BARRIER_H
#define LIBSPINDLE_BARRIER_H

#define load_relaxed(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v)	__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)

/* What was loaded before was so before anything that is loaded after. */
static inline void load_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void full_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Leave the other thread of this core its share. */
static inline void cpu_relax(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#else
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif /* LIBSPINDLE_BARRIER_H */
