// SPDX-License-Identifier: GPL-2.0
/* 6.6: tables of sysctls are registered with their size. */
#include <net/net_namespace.h>

struct ctl_table_header *probe(struct net *net, struct ctl_table *table);

struct ctl_table_header *probe(struct net *net, struct ctl_table *table)
{
	return register_net_sysctl_sz(net, "net/probe", table, 1);
}
