/* SPDX-License-Identifier: GPL-2.0 */
/* What a network namespace allows: see limits.c. */
#ifndef SPINDLE_LIMITS_H
#define SPINDLE_LIMITS_H

#include <linux/types.h>

struct net;
struct sp_config;
struct sp_group;
struct sp_node;

bool sp_may_join(struct net *net);
int sp_limits_config(const struct sp_node *node, const char *name,
		     const struct sp_config *cfg);
int sp_limits_charge(struct sp_group *g, u64 bytes);
int sp_limits_recharge(struct sp_group *g, u64 bytes);
void sp_limits_give_back(struct sp_group *g, u64 bytes);
void sp_limits_uncharge(struct sp_group *g);
int sp_limits_available(const struct sp_group *g);
int sp_limits_init(void);
void sp_limits_exit(void);

#endif /* SPINDLE_LIMITS_H */
