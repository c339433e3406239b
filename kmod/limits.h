/* SPDX-License-Identifier: GPL-2.0 */
/* What a network namespace allows: see limits.c. */
#ifndef SPINDLE_LIMITS_H
#define SPINDLE_LIMITS_H

#include <linux/types.h>

struct net;

bool sp_may_join(struct net *net);
int sp_limits_init(void);
void sp_limits_exit(void);

#endif /* SPINDLE_LIMITS_H */
