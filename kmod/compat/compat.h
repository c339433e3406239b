/* SPDX-License-Identifier: GPL-2.0 */
/* What changed between the kernels this builds on: see Kbuild. */
#ifndef SPINDLE_COMPAT_H
#define SPINDLE_COMPAT_H

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uio.h>
#include <net/net_namespace.h>

#ifndef HAVE_NET_SYSCTL_SZ
#define register_net_sysctl_sz(net, path, table, size)	\
	register_net_sysctl(net, path, table)
#endif

#ifndef HAVE_VM_FLAGS_MOD
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* Where the first of an iterator's pieces begins, that is a program's. */
static inline unsigned long sp_iter_addr(const struct iov_iter *i)
{
#ifdef iter_iov_addr
	return (unsigned long)iter_iov_addr(i);
#else
	return (unsigned long)(iter_is_ubuf(i) ? i->ubuf : i->iov->iov_base) +
	       i->iov_offset;
#endif
}

/**
 * sp_charge_to() - charge what this task allocates with __GFP_ACCOUNT
 * @memcg: to whom; NULL: to the task's own
 *
 * set_active_memcg() needs a symbol that modules do not get, for interrupts
 * only. Context: task.
 *
 * Return: what to set it back to.
 */
static inline struct mem_cgroup *sp_charge_to(struct mem_cgroup *memcg)
{
	struct mem_cgroup *old = NULL;

#ifdef CONFIG_MEMCG
	old = current->active_memcg;
	current->active_memcg = memcg;
#endif
	return old;
}

/* One more holder of a memory cgroup, NULL for none. */
static inline struct mem_cgroup *sp_memcg_get(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (memcg)
		css_get(&memcg->css);
#endif
	return memcg;
}

#endif /* SPINDLE_COMPAT_H */
