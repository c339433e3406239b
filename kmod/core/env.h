/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few words of the kernel's language that core/ speaks, so that the same
 * files are built into the module and into the simulator.
 */
#ifndef SPINDLE_CORE_ENV_H
#define SPINDLE_CORE_ENV_H

#ifdef __KERNEL__

#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>

/* Orders a poll of memory that a device writes before reads of what it guards. */
#define sp_read_barrier()	dma_rmb()

#else /* the simulator */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define U32_MAX			UINT32_MAX

#ifndef READ_ONCE
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#endif
#ifndef WRITE_ONCE
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#endif
#ifndef sp_read_barrier
#define sp_read_barrier()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min_t(t, a, b)		((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b)		((t)(a) > (t)(b) ? (t)(a) : (t)(b))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define ALIGN(x, a)		(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))

#endif

#endif /* SPINDLE_CORE_ENV_H */
