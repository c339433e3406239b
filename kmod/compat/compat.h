/* SPDX-License-Identifier: GPL-2.0 */
/* What changed between the kernels this builds on: see Kbuild. */
#ifndef SPINDLE_COMPAT_H
#define SPINDLE_COMPAT_H

#include <net/net_namespace.h>

#ifndef HAVE_NET_SYSCTL_SZ
#define register_net_sysctl_sz(net, path, table, size)	\
	register_net_sysctl(net, path, table)
#endif

#endif /* SPINDLE_COMPAT_H */
