// SPDX-License-Identifier: GPL-2.0
/* Up to 6.4: sockets are given the pages of splice(2) by a call of its own. */
#include <linux/net.h>

ssize_t probe(const struct proto_ops *ops, struct socket *sock);

ssize_t probe(const struct proto_ops *ops, struct socket *sock)
{
	return ops->sendpage(sock, NULL, 0, 0, 0);
}
