/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: any call that can fail, made to fail.
 *
 * Where the kernel has CONFIG_FAULT_INJECTION_DEBUG_FS, Kbuild includes this in
 * front of each source file, so that no line of those knows of it and no call
 * is forgotten; elsewhere it is not there at all. What failslab and
 * /proc/PID/fail-nth reach, a task in a system call, is left to them: this is
 * for works, handlers and completions too, and for the calls of the fabric.
 *
 * debugfs, spindle/faults:
 *   read		what was injected, then each call site that was reached:
 *			FUNCTION:LINE:CALL and how often since the file was
 *			written to
 *   written "count"	count calls
 *   written "SITE N"	count them, and let the N-th from now at SITE fail, once
 *   written "off"	neither
 */
#ifndef SPINDLE_FAULT_H
#define SPINDLE_FAULT_H

#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kobject.h>
#include <linux/kthread.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/sock.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

struct dentry;

/**
 * struct sp_fault_site - a call that can be made to fail
 * @next: of those that were reached
 * @func: function it is in
 * @line: line it is in
 * @call: what it calls
 * @calls: how often, since the last write to the file
 * @known: it is on the list
 */
struct sp_fault_site {
	struct sp_fault_site *next;
	const char *func;
	u32 line;
	const char *call;
	u32 calls;
	bool known;
};

extern bool sp_fault_on;
bool sp_fault_hit(struct sp_fault_site *site);
void sp_fault_init(struct dentry *dir);

/* Is this call, of which there is one here, to fail now? */
#define sp_fault(name)							\
({									\
	static struct sp_fault_site __site = {				\
		.func = __func__, .line = __LINE__, .call = (name),	\
	};								\
									\
	unlikely(READ_ONCE(sp_fault_on)) && sp_fault_hit(&__site);	\
})

#define SP_FAULT_NULL(fn, ...) \
	(sp_fault(#fn) ? NULL : fn(__VA_ARGS__))
#define SP_FAULT_PTR(fn, ...) \
	(sp_fault(#fn) ? ERR_PTR(-ENOMEM) : fn(__VA_ARGS__))
#define SP_FAULT_MEM(fn, ...) \
	(sp_fault(#fn) ? -ENOMEM : fn(__VA_ARGS__))
#define SP_FAULT_IO(fn, ...) \
	(sp_fault(#fn) ? -EIO : fn(__VA_ARGS__))

/* In newer kernels these are macros themselves. */
static inline void *sp_kmalloc(size_t size, gfp_t gfp)
{
	return kmalloc(size, gfp);
}

static inline void *sp_kzalloc(size_t size, gfp_t gfp)
{
	return kzalloc(size, gfp);
}

static inline void *sp_kcalloc(size_t n, size_t size, gfp_t gfp)
{
	return kcalloc(n, size, gfp);
}

static inline void *sp_kmemdup(const void *from, size_t size, gfp_t gfp)
{
	return kmemdup(from, size, gfp);
}

static inline void *sp_kvmalloc(size_t size, gfp_t gfp)
{
	return kvmalloc(size, gfp);
}

static inline void *sp_kvzalloc(size_t size, gfp_t gfp)
{
	return kvzalloc(size, gfp);
}

static inline void *sp_kvmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	return kvmalloc_array(n, size, gfp);
}

static inline void *sp_kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	return kvcalloc(n, size, gfp);
}

static inline struct page *sp_alloc_pages(gfp_t gfp, unsigned int order)
{
	return alloc_pages(gfp, order);
}

/* And this one in user-mode Linux. */
static inline void *sp_vmap(struct page **pages, unsigned int n,
			    unsigned long flags, pgprot_t prot)
{
	return vmap(pages, n, flags, prot);
}

#undef kmalloc
#undef kzalloc
#undef kcalloc
#undef kmemdup
#undef kvmalloc
#undef kvzalloc
#undef kvmalloc_array
#undef kvcalloc
#undef alloc_pages
#undef vmap

#define SP_FAULT_GFP(fn, gfp, ...) \
	(!((gfp) & __GFP_NOFAIL) && sp_fault(#fn) ? NULL : \
	 sp_##fn(__VA_ARGS__, gfp))

#define kmalloc(n, gfp)			SP_FAULT_GFP(kmalloc, gfp, n)
#define kzalloc(n, gfp)			SP_FAULT_GFP(kzalloc, gfp, n)
#define kcalloc(n, size, gfp)		SP_FAULT_GFP(kcalloc, gfp, n, size)
#define kmemdup(from, n, gfp)		SP_FAULT_GFP(kmemdup, gfp, from, n)
#define kvmalloc(n, gfp)		SP_FAULT_GFP(kvmalloc, gfp, n)
#define kvzalloc(n, gfp)		SP_FAULT_GFP(kvzalloc, gfp, n)
#define kvmalloc_array(n, size, gfp)	SP_FAULT_GFP(kvmalloc_array, gfp, n, size)
#define kvcalloc(n, size, gfp)		SP_FAULT_GFP(kvcalloc, gfp, n, size)
#define alloc_pages(gfp, order) \
	(sp_fault("alloc_pages") ? NULL : sp_alloc_pages(gfp, order))
#define vmap(...) \
	(sp_fault("vmap") ? NULL : sp_vmap(__VA_ARGS__))

#define sk_alloc(...)			SP_FAULT_NULL(sk_alloc, __VA_ARGS__)
#define kobject_create_and_add(...)	SP_FAULT_NULL(kobject_create_and_add, __VA_ARGS__)
#define sg_alloc_table(...)		SP_FAULT_MEM(sg_alloc_table, __VA_ARGS__)
#define xa_alloc(...)			SP_FAULT_MEM(xa_alloc, __VA_ARGS__)
#define xa_alloc_cyclic(...)		SP_FAULT_MEM(xa_alloc_cyclic, __VA_ARGS__)
#define xa_store(...) \
	(sp_fault("xa_store") ? XA_ERROR(-ENOMEM) : xa_store(__VA_ARGS__))

#define __ib_alloc_pd(...)		SP_FAULT_PTR(__ib_alloc_pd, __VA_ARGS__)
#define ib_cq_pool_get(...)		SP_FAULT_PTR(ib_cq_pool_get, __VA_ARGS__)
#define ib_create_qp(...)		SP_FAULT_PTR(ib_create_qp, __VA_ARGS__)
#define ib_alloc_mr(...)		SP_FAULT_PTR(ib_alloc_mr, __VA_ARGS__)
#define ib_map_mr_sg(...)		SP_FAULT_IO(ib_map_mr_sg, __VA_ARGS__)
#define ib_modify_qp(...)		SP_FAULT_IO(ib_modify_qp, __VA_ARGS__)
#define ib_post_send(...)		SP_FAULT_IO(ib_post_send, __VA_ARGS__)
#define ib_post_recv(...)		SP_FAULT_IO(ib_post_recv, __VA_ARGS__)
#define ib_dma_mapping_error(...) \
	(sp_fault("ib_dma_mapping_error") || ib_dma_mapping_error(__VA_ARGS__))

#define __rdma_create_kernel_id(...)	SP_FAULT_PTR(__rdma_create_kernel_id, __VA_ARGS__)
#define rdma_bind_addr(...)		SP_FAULT_IO(rdma_bind_addr, __VA_ARGS__)
#define rdma_listen(...)		SP_FAULT_IO(rdma_listen, __VA_ARGS__)
#define rdma_resolve_addr(...)		SP_FAULT_IO(rdma_resolve_addr, __VA_ARGS__)
#define rdma_resolve_route(...)		SP_FAULT_IO(rdma_resolve_route, __VA_ARGS__)
#define rdma_create_qp(...)		SP_FAULT_MEM(rdma_create_qp, __VA_ARGS__)
#define rdma_init_qp_attr(...)		SP_FAULT_IO(rdma_init_qp_attr, __VA_ARGS__)
#define rdma_connect_locked(...)	SP_FAULT_IO(rdma_connect_locked, __VA_ARGS__)
#define rdma_accept(...)		SP_FAULT_IO(rdma_accept, __VA_ARGS__)

#endif /* SPINDLE_FAULT_H */
