/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Put in front of every file of the core when it is built for the simulator:
 * between any two of its reads of memory that a peer writes, bytes may land.
 */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

extern int sim_reads_left;
void sim_read_hook(void);

#define READ_ONCE(x)							\
({									\
	if (--sim_reads_left <= 0)					\
		sim_read_hook();					\
	*(const volatile __typeof__(x) *)&(x);				\
})

#endif /* SIM_HOOKS_H */
