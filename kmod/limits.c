// SPDX-License-Identifier: GPL-2.0
/* What a network namespace allows, by sysctl: who may join groups. */
#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>
#include <net/netns/generic.h>

#include "compat/compat.h"
#include "limits.h"

/**
 * struct sp_net - what a network namespace has
 * @gid_range: groups whose members may create and join, lowest and highest;
 *	written by sysctl, read once at a time
 * @sysctl: the table
 */
struct sp_net {
	int gid_range[2];
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

static const struct ctl_table sp_sysctl_table[] = {
	{
		.procname = "gid_range",
		.maxlen = 2 * sizeof(int),
		.mode = 0644,
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
	},
	{ }
};

static int __net_init sp_net_init(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	struct ctl_table *table;

	/* Nobody but who has CAP_NET_ADMIN. */
	spn->gid_range[0] = 1;
	spn->gid_range[1] = 0;
	table = kmemdup(sp_sysctl_table, sizeof(sp_sysctl_table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	table[0].data = spn->gid_range;
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
