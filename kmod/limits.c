// SPDX-License-Identifier: GPL-2.0
/*
 * Bounds on groups and their memory: for each group, for each network namespace,
 * and for each user.
 *
 * What a group's configuration can make it take on this node is charged when the
 * group is made here, so that no later view fails for it; objects and mapped
 * rings are charged as they come. Memory that the network has a claim to, one
 * object of each sender at a time, is charged whether there is room or not: a
 * group that waited for room only its readers could make would wait forever.
 *
 * A namespace's limits hold as far as the first namespace's allow: its owner may
 * lower them, and raise them up to these. Users are charged as for memory they
 * lock (RLIMIT_MEMLOCK), by their number outside of any user namespace.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "limits.h"

/**
 * sp_limits_begin() - limits of a new network namespace
 * @net: the namespace
 */
void sp_limits_begin(struct net *net)
{
	const struct sp_limits *first = sp_limits_of(&init_net);
	struct sp_limits *l = sp_limits_of(net);

	if (net_eq(net, &init_net)) {
		l->max_groups = LONG_MAX;
		l->max_memory = LONG_MAX;
		l->max_group_memory = LONG_MAX;
	} else {
		l->max_groups = READ_ONCE(first->max_groups);
		l->max_memory = READ_ONCE(first->max_memory);
		l->max_group_memory = READ_ONCE(first->max_group_memory);
	}
	atomic_long_set(&l->groups, 0);
	atomic_long_set(&l->memory, 0);
}

/* The first namespace may have been given less since. */
static unsigned long sp_limit(const unsigned long *own,
			      const unsigned long *first)
{
	return min3((unsigned long)LONG_MAX, READ_ONCE(*own),
		    READ_ONCE(*first));
}

/**
 * sp_payer_take() - the calling task is to pay for the next group
 * @payer: what it was before, or zeroed
 *
 * Who may lock any amount of memory pays nothing.
 */
void sp_payer_take(struct sp_payer *payer)
{
	sp_payer_drop(payer);
	if (capable(CAP_IPC_LOCK))
		return;
	payer->user = get_uid(current_user());
	payer->limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

/**
 * sp_payer_drop() - undo sp_payer_take()
 * @payer: that, or zeroed
 */
void sp_payer_drop(struct sp_payer *payer)
{
	if (payer->user)
		free_uid(payer->user);
	payer->user = NULL;
}

/* Add to what is used, if the sum is within a limit, or must be. */
static bool sp_level_add(atomic_long_t *used, long n, unsigned long max,
			 bool must)
{
	long sum, old = atomic_long_read(used);

	do {
		if (check_add_overflow(old, n, &sum))
			return false;
		if (!must && sum > 0 && (unsigned long)sum > max)
			return false;
	} while (!atomic_long_try_cmpxchg(used, &old, sum));
	return true;
}

static long sp_pages(long bytes)
{
	return DIV_ROUND_UP((unsigned long)bytes, PAGE_SIZE);
}

/**
 * sp_account_charge() - a group takes more memory
 * @a: its account
 * @bytes: so much
 * @must: limits do not count
 *
 * Context: any.
 *
 * Return: 0; -EDQUOT beyond a limit of the namespace; -ENOBUFS beyond the user's.
 */
int sp_account_charge(struct sp_account *a, u64 bytes, bool must)
{
	const struct sp_limits *first = sp_limits_of(&init_net);
	struct sp_limits *l = sp_limits_of(a->net);
	struct user_struct *user = a->payer.user;
	unsigned long max;

	max = sp_limit(&l->max_group_memory, &first->max_group_memory);
	if (bytes > LONG_MAX || !sp_level_add(&a->used, bytes, max, must))
		return -EDQUOT;
	max = sp_limit(&l->max_memory, &first->max_memory);
	if (!sp_level_add(&l->memory, bytes, max, must))
		goto err_group;
	if (user && !sp_level_add(&user->locked_vm, sp_pages(bytes),
				  a->payer.limit, must))
		goto err_net;
	return 0;

err_net:
	atomic_long_sub(bytes, &l->memory);
	atomic_long_sub(bytes, &a->used);
	return -ENOBUFS;
err_group:
	atomic_long_sub(bytes, &a->used);
	return -EDQUOT;
}

/**
 * sp_account_uncharge() - a group has given memory back
 * @a: its account
 * @bytes: as much as was charged in one go
 *
 * Context: any.
 */
void sp_account_uncharge(struct sp_account *a, u64 bytes)
{
	if (a->payer.user)
		atomic_long_sub(sp_pages(bytes), &a->payer.user->locked_vm);
	atomic_long_sub(bytes, &sp_limits_of(a->net)->memory);
	atomic_long_sub(bytes, &a->used);
}

/**
 * sp_account_make() - an account for a new group
 * @net: its network namespace
 * @payer: who makes it
 * @bytes: charged at once
 *
 * Context: may sleep.
 *
 * Return: the account, or an ERR_PTR: -ENOMEM, or as sp_account_charge();
 * -EDQUOT, too, when the namespace has as many groups as it may have.
 */
struct sp_account *sp_account_make(struct net *net,
				   const struct sp_payer *payer, u64 bytes)
{
	const struct sp_limits *first = sp_limits_of(&init_net);
	struct sp_limits *l = sp_limits_of(net);
	struct sp_account *a;
	int ret = -EDQUOT;

	a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);
	if (!a)
		return ERR_PTR(-ENOMEM);
	kref_init(&a->ref);
	a->net = net;
	a->payer = *payer;
	if (!sp_level_add(&l->groups, 1,
			  sp_limit(&l->max_groups, &first->max_groups), false))
		goto err_free;
	ret = sp_account_charge(a, bytes, false);
	if (ret)
		goto err_groups;
	if (a->payer.user)
		get_uid(a->payer.user);
	get_net(net);
	return a;

err_groups:
	atomic_long_dec(&l->groups);
err_free:
	kfree(a);
	return ERR_PTR(ret);
}

/**
 * sp_account_get() - hold an account
 * @a: the account
 *
 * Return: it.
 */
struct sp_account *sp_account_get(struct sp_account *a)
{
	kref_get(&a->ref);
	return a;
}

static void sp_account_release(struct kref *ref)
{
	struct sp_account *a = container_of(ref, struct sp_account, ref);

	/* What the group itself was charged is left. */
	sp_account_uncharge(a, atomic_long_read(&a->used));
	atomic_long_dec(&sp_limits_of(a->net)->groups);
	sp_payer_drop(&a->payer);
	put_net(a->net);
	kfree(a);
}

/**
 * sp_account_put() - drop a reference; with the last one all is given back
 * @a: the account
 *
 * Context: any but hard interrupt.
 */
void sp_account_put(struct sp_account *a)
{
	kref_put(&a->ref, sp_account_release);
}
