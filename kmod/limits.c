// SPDX-License-Identifier: GPL-2.0
/*
 * What a network namespace allows, by sysctl: who may join groups, and how much
 * memory their views may take on this host.
 *
 * A view is charged as a whole before any of its memory is made, and uncharged
 * when all of it is free; what follows it, by what it adds, and what is left of it is
 * given back as it becomes free. Charges are made under sp_ctl, one at a time; memory
 * becomes free at any time.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>
#include <net/netns/generic.h>

#include "compat/compat.h"
#include "group.h"
#include "limits.h"

/**
 * struct sp_net - what a network namespace has
 * @gid_range: groups whose members may create and join, lowest and highest;
 *	like the next two written by sysctl, read once at a time
 * @mem_max: bytes that all views may take
 * @group_mem_max: bytes that one view may take
 * @mem_used: bytes that all views take
 * @sysctl: the table
 */
struct sp_net {
	int gid_range[2];
	unsigned long mem_max;
	unsigned long group_mem_max;
	atomic_long_t mem_used;
	struct ctl_table_header *sysctl;
};

static unsigned int sp_net_id;

/**
 * sp_may_join() - may the caller bind, make and join groups
 * @net: in this network namespace
 *
 * Return: true when it has CAP_NET_ADMIN there, or is in a group of gid_range.
 */
bool sp_may_join(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	struct group_info *groups = current_cred()->group_info;
	int low = READ_ONCE(spn->gid_range[0]);
	int high = READ_ONCE(spn->gid_range[1]);
	kgid_t klow, khigh;
	int i;

	if (ns_capable(net->user_ns, CAP_NET_ADMIN))
		return true;
	if (low > high)
		return false;
	klow = make_kgid(net->user_ns, low);
	khigh = make_kgid(net->user_ns, high);
	if (!gid_valid(klow) || !gid_valid(khigh))
		return false;
	if (gid_lte(klow, current_egid()) && gid_lte(current_egid(), khigh))
		return true;
	for (i = 0; i < groups->ngroups; i++)
		if (gid_lte(klow, groups->gid[i]) &&
		    gid_lte(groups->gid[i], khigh))
			return true;
	return false;
}

/* Is there room for so many bytes more, where so many are taken? */
static int sp_limits_check(const struct sp_node *node, const char *name,
			   u64 bytes, u64 used)
{
	const struct sp_net *spn = net_generic(node->net, sp_net_id);
	u64 limit = READ_ONCE(spn->group_mem_max);
	const char *what = "group_mem_max";

	if (bytes <= limit) {
		limit = READ_ONCE(spn->mem_max);
		what = "mem_max";
		if (used <= limit && bytes <= limit - used)
			return 0;
	}
	pr_warn_ratelimited("spindle: %s: group %s: it takes %llu bytes, all others %llu; net.spindle.%s is %llu\n",
			    node->name, name, bytes, used, what, limit);
	return -ENOMEM;
}

/**
 * sp_limits_config() - may a group of this configuration be there
 * @node: the node
 * @name: its name
 * @cfg: its configuration
 *
 * Who will send is not known before the view; the rings of those that are told
 * are what its creator asks for at least.
 *
 * Return: 0, or -ENOMEM when it is beyond a limit already, whatever others take.
 */
int sp_limits_config(const struct sp_node *node, const char *name,
		     const struct sp_config *cfg)
{
	u64 bytes = (u64)max(cfg->senders, 1U) * cfg->window;

	return sp_limits_check(node, name, bytes, 0);
}

/**
 * sp_limits_charge() - a view is to take memory
 * @g: its group
 * @bytes: all that it takes on this node
 *
 * Context: sp_ctl is held.
 *
 * Return: 0, or -ENOMEM beyond a limit; then nothing is charged.
 */
int sp_limits_charge(struct sp_group *g, u64 bytes)
{
	struct sp_net *spn = net_generic(g->node->net, sp_net_id);
	int ret;

	lockdep_assert_held(&sp_ctl);
	ret = sp_limits_check(g->node, g->name, bytes,
			      (unsigned long)atomic_long_read(&spn->mem_used));
	if (ret)
		return ret;
	atomic_long_add(bytes, &spn->mem_used);
	WRITE_ONCE(g->memory, bytes);
	g->to_make = bytes;
	return 0;
}

/**
 * sp_limits_recharge() - a group is to take more memory than it does
 * @g: the group, charged
 * @bytes: all that it takes on this node then, what is left of earlier views included
 *
 * Context: sp_ctl is held.
 *
 * Return: 0, or -ENOMEM beyond a limit; then nothing has changed.
 */
int sp_limits_recharge(struct sp_group *g, u64 bytes)
{
	struct sp_net *spn = net_generic(g->node->net, sp_net_id);
	u64 used = (unsigned long)atomic_long_read(&spn->mem_used) - g->memory;
	int ret;

	lockdep_assert_held(&sp_ctl);
	g->to_make = 0;
	if (bytes <= g->memory)
		return 0;
	ret = sp_limits_check(g->node, g->name, bytes, used);
	if (ret)
		return ret;
	g->to_make = bytes - g->memory;
	atomic_long_add(g->to_make, &spn->mem_used);
	WRITE_ONCE(g->memory, bytes);
	return 0;
}

/**
 * sp_limits_give_back() - some of a group's memory is free
 * @g: the group, charged
 * @bytes: what it still takes, at most
 *
 * Context: sp_ctl is held.
 */
void sp_limits_give_back(struct sp_group *g, u64 bytes)
{
	struct sp_net *spn = net_generic(g->node->net, sp_net_id);

	lockdep_assert_held(&sp_ctl);
	if (bytes >= g->memory)
		return;
	atomic_long_sub(g->memory - bytes, &spn->mem_used);
	WRITE_ONCE(g->memory, bytes);
}

/**
 * sp_limits_uncharge() - the memory of a view is free
 * @g: its group, which still holds its node; charged or not
 *
 * Context: sp_ctl is held, or nobody else has the group.
 */
void sp_limits_uncharge(struct sp_group *g)
{
	struct sp_net *spn = net_generic(g->node->net, sp_net_id);

	atomic_long_sub(g->memory, &spn->mem_used);
	WRITE_ONCE(g->memory, 0);
}

/**
 * sp_limits_available() - does the host have the memory that was charged
 * @g: the group
 *
 * A view leaves to others as much as it takes at least, so that none of them
 * is killed for it, and a small one finds its memory when a large one does not.
 * What the group has already is not looked for again.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_limits_available(const struct sp_group *g)
{
	u64 available = (u64)si_mem_available() << PAGE_SHIFT;

	if (g->to_make <= available / 2)
		return 0;
	pr_warn_ratelimited("spindle: %s: group %s: it takes %llu bytes more, more than half of %llu available\n",
			    g->node->name, g->name, g->to_make, available);
	return -ENOMEM;
}

static const struct ctl_table sp_sysctl_table[] = {
	{
		.procname = "gid_range",
		.maxlen = 2 * sizeof(int),
		.mode = 0644,
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
	}, {
		.procname = "mem_max",
		.maxlen = sizeof(unsigned long),
		.mode = 0644,
		.proc_handler = proc_doulongvec_minmax,
	}, {
		.procname = "group_mem_max",
		.maxlen = sizeof(unsigned long),
		.mode = 0644,
		.proc_handler = proc_doulongvec_minmax,
	}, {
		.procname = "mem_used",
		.maxlen = sizeof(unsigned long),
		.mode = 0444,
		.proc_handler = proc_doulongvec_minmax,
	},
	{ }
};

/* Values that a new namespace begins with. */
static void sp_net_defaults(struct net *net, struct sp_net *spn)
{
	const struct sp_net *first = net_generic(&init_net, sp_net_id);

	/* Nobody but who has CAP_NET_ADMIN. */
	spn->gid_range[0] = 1;
	spn->gid_range[1] = 0;
	if (net_eq(net, &init_net)) {
		spn->mem_max = min_t(u64, (u64)totalram_pages() * PAGE_SIZE / 2,
				     LONG_MAX);
		spn->group_mem_max = spn->mem_max / 2;
	} else {
		spn->mem_max = READ_ONCE(first->mem_max);
		spn->group_mem_max = READ_ONCE(first->group_mem_max);
	}
}

static int __net_init sp_net_init(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	struct ctl_table *table;

	sp_net_defaults(net, spn);
	table = kmemdup(sp_sysctl_table, sizeof(sp_sysctl_table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	table[0].data = spn->gid_range;
	table[1].data = &spn->mem_max;
	table[2].data = &spn->group_mem_max;
	table[3].data = &spn->mem_used;
	/* The host's memory is not a user namespace's to give. */
	if (net->user_ns != &init_user_ns) {
		table[1].mode = 0444;
		table[2].mode = 0444;
	}
	spn->sysctl = register_net_sysctl_sz(net, "net/spindle", table,
					     ARRAY_SIZE(sp_sysctl_table) - 1);
	if (!spn->sysctl) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

static void __net_exit sp_net_exit(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	const struct ctl_table *table = spn->sysctl->ctl_table_arg;

	unregister_net_sysctl_table(spn->sysctl);
	kfree(table);
}

static struct pernet_operations sp_net_ops = {
	.init = sp_net_init,
	.exit = sp_net_exit,
	.id = &sp_net_id,
	.size = sizeof(struct sp_net),
};

/**
 * sp_limits_init() - prepare the network namespaces
 *
 * Return: 0 or a negative errno.
 */
int sp_limits_init(void)
{
	return register_pernet_subsys(&sp_net_ops);
}

/**
 * sp_limits_exit() - undo sp_limits_init()
 */
void sp_limits_exit(void)
{
	unregister_pernet_subsys(&sp_net_ops);
}
