/* SPDX-License-Identifier: GPL-2.0 */
/* How much memory groups may take: see limits.c. */
#ifndef SPINDLE_LIMITS_H
#define SPINDLE_LIMITS_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/types.h>

struct net;
struct user_struct;

/**
 * struct sp_limits - of a network namespace
 * @max_groups: groups that may be there; these three are written by sysctl
 * @max_memory: bytes that all of them together may take
 * @max_group_memory: bytes that each of them may take
 * @groups: groups that are there
 * @memory: bytes that they take
 */
struct sp_limits {
	unsigned long max_groups;
	unsigned long max_memory;
	unsigned long max_group_memory;
	atomic_long_t groups;
	atomic_long_t memory;
};

/**
 * struct sp_payer - on whose account a member's group is made
 * @user: the user, held; NULL: nobody has to pay
 * @limit: pages that the user may have locked
 */
struct sp_payer {
	struct user_struct *user;
	unsigned long limit;
};

/**
 * struct sp_account - what a group takes on this node
 * @ref: the group, its objects and its mapped rings hold it
 * @net: network namespace, held
 * @payer: who made the group here
 * @used: bytes
 */
struct sp_account {
	struct kref ref;
	struct net *net;
	struct sp_payer payer;
	atomic_long_t used;
};

void sp_limits_begin(struct net *net);
struct sp_limits *sp_limits_of(const struct net *net);

void sp_payer_take(struct sp_payer *payer);
void sp_payer_drop(struct sp_payer *payer);

struct sp_account *sp_account_make(struct net *net,
				   const struct sp_payer *payer, u64 bytes);
struct sp_account *sp_account_get(struct sp_account *a);
void sp_account_put(struct sp_account *a);
int sp_account_charge(struct sp_account *a, u64 bytes, bool must);
void sp_account_uncharge(struct sp_account *a, u64 bytes);

#endif /* SPINDLE_LIMITS_H */
