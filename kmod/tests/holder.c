// SPDX-License-Identifier: GPL-2.0
/*
 * A module of its own, for tests: holds socket families, so that Spindle finds
 * them taken.
 */
#include <linux/module.h>
#include <linux/net.h>
#include <net/sock.h>

static int families[3];
static int nfamilies;
module_param_array(families, int, &nfamilies, 0444);
MODULE_PARM_DESC(families, "Socket families to hold");

static struct net_proto_family held[ARRAY_SIZE(families)];

static int holder_create(struct net *net, struct socket *sock, int protocol,
			 int kern)
{
	return -EAFNOSUPPORT;
}

static void holder_drop(int n)
{
	while (n--)
		sock_unregister(held[n].family);
}

static int __init holder_init(void)
{
	int ret;
	int i;

	for (i = 0; i < nfamilies; i++) {
		held[i].family = families[i];
		held[i].create = holder_create;
		held[i].owner = THIS_MODULE;
		ret = sock_register(&held[i]);
		if (ret) {
			holder_drop(i);
			return ret;
		}
	}
	return 0;
}

static void __exit holder_exit(void)
{
	holder_drop(nfamilies);
}

module_init(holder_init);
module_exit(holder_exit);
MODULE_DESCRIPTION("Holds socket families for Spindle's tests");
MODULE_LICENSE("GPL");
