/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Put in front of every file of the core when it is built for the simulator.
 * Between any two of its reads of memory that a peer writes, anything may
 * happen; and a read without a barrier before it may give what was there
 * before: see past.c.
 */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

#include <stddef.h>

extern int sim_reads_left;
void sim_read_hook(void);

extern unsigned int sim_npast;
void sim_read_past(void *to, const void *from, size_t len);
void sim_forget_past(void);

#define READ_ONCE(x)							\
({									\
	union {								\
		__typeof__(x) val;					\
		char c[sizeof(x)];					\
	} u_;								\
									\
	if (--sim_reads_left <= 0)					\
		sim_read_hook();					\
	__builtin_memcpy(u_.c, (const void *)&(x), sizeof(x));		\
	if (sim_npast)							\
		sim_read_past(u_.c, &(x), sizeof(x));			\
	u_.val;								\
})

#define sp_read_barrier()	sim_forget_past()

#endif /* SIM_HOOKS_H */
