// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of slabs, and the keys by which a peer writes into one.
 *
 * A slab is made of chunks that are contiguous to the device, so that few
 * gather entries and few pieces of a memory region cover large rings. The
 * kernel sees it through vmap(): rows or descriptors once, the ring twice
 * back to back. An object comes and goes, so it is not mapped: it is copied by
 * pieces.
 */
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "fabric.h"

#define SP_CHUNK_SHIFT_MAX	21
#define SP_REG_SECONDS		5	/* a registration takes microseconds */

static u32 sp_chunk_bytes(const struct sp_slab *slab)
{
	return 1U << slab->chunk_shift;
}

/**
 * sp_slab_page() - a page of a slab
 * @slab: the slab
 * @nr: number of the page in it
 *
 * Return: the page.
 */
struct page *sp_slab_page(const struct sp_slab *slab, u32 nr)
{
	u32 per = sp_chunk_bytes(slab) >> PAGE_SHIFT;

	return nth_page(slab->chunks[nr / per], nr % per);
}

/* Map [first, first + n) of the slab's pages, @times over, back to back. */
static u8 *sp_slab_vmap(struct sp_slab *slab, u32 first, u32 n, u32 times)
{
	struct page **pages;
	u8 *addr;
	u32 i;

	pages = kvmalloc_array(n * times, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < n * times; i++)
		pages[i] = sp_slab_page(slab, first + i % n);
	addr = vmap(pages, n * times, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return addr;
}

/**
 * sp_slab_ring_page() - a page of a lane's ring
 * @slab: the slab
 * @nr: number of the page in the ring
 *
 * Return: the page.
 */
struct page *sp_slab_ring_page(const struct sp_slab *slab, u32 nr)
{
	return sp_slab_page(slab, (slab->lay.ring_off >> PAGE_SHIFT) + nr);
}

/* What passes through copies shows the CPU nothing to poll. */
static bool sp_slab_synced(struct sp_device *sdev, u64 dma)
{
	if (ib_uses_virt_dma(sdev->ib))
		return false;
	return dma_need_sync(sdev->ib->dma_device, dma);
}

/* A slab without memory. */
static struct sp_slab *sp_slab_new(struct sp_device *sdev,
				   const struct sp_layout *lay)
{
	struct sp_slab *slab = kzalloc(sizeof(*slab), GFP_KERNEL_ACCOUNT);

	if (!slab)
		return NULL;
	slab->lay = *lay;
	slab->sdev = sdev;
	slab->chunk_shift = PAGE_SHIFT;
	atomic_inc(&sdev->objects);
	return slab;
}

/* Find memory for chunks, but for those that are pinned, and map all. */
static int sp_slab_populate(struct sp_slab *slab)
{
	u32 order = slab->chunk_shift - PAGE_SHIFT;
	struct sp_device *sdev = slab->sdev;
	u32 i;

	for (i = 0; i < slab->nchunks; i++) {
		if (i >= slab->pinned) {
			struct page *page;

			page = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO |
					   __GFP_NOWARN | __GFP_RETRY_MAYFAIL,
					   order);
			if (!page)
				return -ENOMEM;
			/* Pages are mapped, and later handed out, one by one. */
			split_page(page, order);
			slab->chunks[i] = page;
		}
		slab->dma[i] = ib_dma_map_page(sdev->ib, slab->chunks[i], 0,
					       sp_chunk_bytes(slab),
					       sp_slab_dir(slab, i));
		if (ib_dma_mapping_error(sdev->ib, slab->dma[i])) {
			slab->dma[i] = 0;
			return -ENOMEM;
		}
		slab->synced |= sp_slab_synced(sdev, slab->dma[i]);
		if (sdev->polled && slab->synced)
			return -EOPNOTSUPP;
	}
	return 0;
}

static int sp_slab_tables(struct sp_slab *slab)
{
	slab->chunks = kvcalloc(slab->nchunks, sizeof(*slab->chunks),
				GFP_KERNEL_ACCOUNT);
	slab->dma = kvcalloc(slab->nchunks, sizeof(*slab->dma),
			     GFP_KERNEL_ACCOUNT);
	return slab->chunks && slab->dma ? 0 : -ENOMEM;
}

/**
 * sp_slab_alloc() - allocate a zeroed slab and map it for its device
 * @sdev: the device
 * @lay: what is in it
 * @mapped: the kernel sees it in one piece
 *
 * The memory is charged to the calling task's cgroup. Context: may sleep.
 *
 * Return: the slab, or an ERR_PTR: -ENOMEM, -ERANGE when one memory region of
 * the device cannot cover it, -EOPNOTSUPP when the device would bounce memory
 * that is to be polled.
 */
struct sp_slab *sp_slab_alloc(struct sp_device *sdev,
			      const struct sp_layout *lay, bool mapped)
{
	u32 ctl_pages, ring_pages;
	struct sp_slab *slab;
	int ret = -ENOMEM;

	slab = sp_slab_new(sdev, lay);
	if (!slab)
		return ERR_PTR(-ENOMEM);
	/* What is small is not to be rounded up to a chunk. */
	if (lay->size > 1U << SP_CHUNK_SHIFT)
		slab->chunk_shift = max(SP_CHUNK_SHIFT, PAGE_SHIFT);
	while (DIV_ROUND_UP_ULL(lay->size, sp_chunk_bytes(slab)) >=
	       sdev->max_pages && slab->chunk_shift < SP_CHUNK_SHIFT_MAX)
		slab->chunk_shift++;
	slab->nchunks = DIV_ROUND_UP_ULL(lay->size, sp_chunk_bytes(slab));
	/*
	 * soft-RoCE of 6.1 reads past its table of pages when a copy ends at the
	 * end of a region whose number of pages is a multiple of 256.
	 */
	if (slab->nchunks % 256 == 0)
		slab->nchunks++;
	if (slab->nchunks > sdev->max_pages) {
		ret = -ERANGE;
		goto err_free;
	}

	ret = sp_slab_tables(slab) ?: sp_slab_populate(slab);
	if (ret)
		goto err_free;
	if (!mapped)
		return slab;
	ret = -ENOMEM;
	ctl_pages = lay->ring_off >> PAGE_SHIFT;
	ring_pages = lay->window >> PAGE_SHIFT;
	slab->base = sp_slab_vmap(slab, 0, ctl_pages, 1);
	if (!slab->base)
		goto err_free;
	if (!ring_pages)
		return slab;
	slab->ring = sp_slab_vmap(slab, ctl_pages, ring_pages, 2);
	if (!slab->ring)
		goto err_free;
	return slab;

err_free:
	sp_slab_free(slab);
	return ERR_PTR(ret);
}

/**
 * sp_slab_pin() - a slab that begins with pages of the calling program, for an
 * object to be sent
 * @sdev: the device
 * @lay: what is in it
 * @from: address of the first page
 * @pages: how many; what the slab has beyond is memory of its own
 *
 * No key is ever made to it. Context: may sleep; no lock is held that is taken
 * within mmap_lock.
 *
 * Return: the slab, or an ERR_PTR: -ENOMEM, -EFAULT when not all of them can be
 * pinned, -EOPNOTSUPP when the kernel could not read them itself, or as
 * sp_slab_alloc().
 */
struct sp_slab *sp_slab_pin(struct sp_device *sdev,
			    const struct sp_layout *lay, unsigned long from,
			    u32 pages)
{
	struct sp_slab *slab;
	int ret;

	if (IS_ENABLED(CONFIG_HIGHMEM))
		return ERR_PTR(-EOPNOTSUPP);
	slab = sp_slab_new(sdev, lay);
	if (!slab)
		return ERR_PTR(-ENOMEM);
	slab->nchunks = DIV_ROUND_UP_ULL(lay->size, PAGE_SIZE);
	ret = sp_slab_tables(slab);
	if (ret)
		goto err_free;
	ret = pin_user_pages_fast(from, pages, FOLL_LONGTERM, slab->chunks);
	slab->pinned = max(ret, 0);
	if (ret >= 0)
		ret = slab->pinned == pages ? 0 : -EFAULT;
	ret = ret ?: sp_slab_populate(slab);
	if (ret)
		goto err_free;
	return slab;

err_free:
	sp_slab_free(slab);
	return ERR_PTR(ret);
}

/**
 * sp_slab_piece() - where the kernel sees a part of a slab
 * @slab: the slab, mapped or not
 * @off: where it begins
 * @len: its bytes; on return, so many of them that are in one piece
 *
 * Return: the piece.
 */
u8 *sp_slab_piece(const struct sp_slab *slab, u64 off, size_t *len)
{
	u32 in = off & (sp_chunk_bytes(slab) - 1);

	*len = min_t(size_t, *len, sp_chunk_bytes(slab) - in);
	return (u8 *)page_address(slab->chunks[off >> slab->chunk_shift]) + in;
}

/**
 * sp_slab_arrived() - the owner has written, and said so
 * @slab: this node's replica of a peer's lane
 *
 * Context: any.
 */
void sp_slab_arrived(struct sp_slab *slab)
{
	sp_slab_arrived_part(slab, 0, slab->lay.size);
}

/**
 * sp_slab_arrived_part() - the same, of a part
 * @slab: the slab
 * @off: where the part begins
 * @len: its bytes; those behind the slab's end do not count
 *
 * Context: any.
 */
void sp_slab_arrived_part(struct sp_slab *slab, u64 off, u64 len)
{
	u64 chunk = sp_chunk_bytes(slab);
	u64 end = min(off + len, slab->lay.size);

	while (slab->synced && off < end) {
		u64 in = off & (chunk - 1);
		u64 some = min(chunk - in, end - off);

		ib_dma_sync_single_for_cpu(slab->sdev->ib,
					   slab->dma[off >> slab->chunk_shift] + in,
					   some, DMA_BIDIRECTIONAL);
		off += some;
	}
}

/**
 * sp_slab_unmap() - let go of the device; what is in the slab can still be read
 * @slab: the slab; no key to it is left and nothing posted reads it
 *
 * Context: may sleep.
 */
void sp_slab_unmap(struct sp_slab *slab)
{
	struct sp_device *sdev = slab->sdev;
	u32 i;

	if (!sdev)
		return;
	for (i = 0; slab->dma && i < slab->nchunks; i++)
		if (slab->dma[i])
			ib_dma_unmap_page(sdev->ib, slab->dma[i],
					  sp_chunk_bytes(slab),
					  sp_slab_dir(slab, i));
	slab->sdev = NULL;
	sp_device_object_gone(sdev);
}

/**
 * sp_slab_free() - free a slab
 * @slab: the slab; no key to it is left and nothing posted reads it
 *
 * Context: may sleep.
 */
void sp_slab_free(struct sp_slab *slab)
{
	u32 pages = sp_chunk_bytes(slab) >> PAGE_SHIFT;
	u32 i, k;

	sp_slab_unmap(slab);
	if (slab->ring)
		vunmap(slab->ring);
	if (slab->base)
		vunmap(slab->base);
	if (slab->pinned)
		unpin_user_pages(slab->chunks, slab->pinned);
	for (i = slab->pinned; slab->chunks && i < slab->nchunks; i++)
		for (k = 0; slab->chunks[i] && k < pages; k++)
			__free_page(nth_page(slab->chunks[i], k));
	kvfree(slab->dma);
	kvfree(slab->chunks);
	kfree(slab);
}

/**
 * struct sp_reg - a registration on its way
 * @cqe: its completion
 * @done: likewise, for who waits
 * @status: how it went
 * @ref: who waits and the completion hold it
 */
struct sp_reg {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
	struct kref ref;
};

static void sp_reg_free(struct kref *ref)
{
	kfree(container_of(ref, struct sp_reg, ref));
}

static void sp_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sp_reg *reg = container_of(wc->wr_cqe, struct sp_reg, cqe);

	reg->status = wc->status;
	complete(&reg->done);
	kref_put(&reg->ref, sp_reg_free);
}

/*
 * A registration is a work request like any other, but soft-RoCE runs it once
 * more when it repeats what was posted before it, and fails, or finds the region
 * gone. So it has a queue pair of its own, by which nothing is sent and nothing
 * repeated.
 */
static int sp_mr_register(struct sp_link *link, struct ib_mr *mr)
{
	struct ib_reg_wr wr = {};
	struct sp_reg *reg;
	int ret;

	if (!link->reg)
		return -ENOTCONN;
	reg = kzalloc(sizeof(*reg), GFP_KERNEL);
	if (!reg)
		return -ENOMEM;
	kref_init(&reg->ref);
	init_completion(&reg->done);
	reg->cqe.done = sp_reg_done;
	wr.wr.opcode = IB_WR_REG_MR;
	wr.wr.wr_cqe = &reg->cqe;
	wr.wr.send_flags = IB_SEND_SIGNALED;
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	kref_get(&reg->ref);
	ret = ib_post_send(link->reg, &wr.wr, NULL);
	if (ret) {
		kref_put(&reg->ref, sp_reg_free);
		goto out;
	}
	if (!wait_for_completion_timeout(&reg->done, SP_REG_SECONDS * HZ)) {
		sp_link_break(link, -ETIMEDOUT, "the device registers no memory");
		ret = -ETIMEDOUT;
	} else if (reg->status != IB_WC_SUCCESS) {
		ret = reg->status == IB_WC_WR_FLUSH_ERR ? -ENOTCONN : -EIO;
	}
out:
	kref_put(&reg->ref, sp_reg_free);
	return ret;
}

/**
 * sp_mr_open() - make what registers memory for the peer of a link
 * @link: the link, connected
 *
 * Context: a CM handler; may sleep.
 *
 * Return: 0 or a negative errno; sp_mr_close() cleans up.
 */
int sp_mr_open(struct sp_link *link)
{
	static const enum ib_qp_state states[] = {
		IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS,
	};
	struct ib_qp_init_attr init = {
		.cap = {
			.max_send_wr = SP_REG_DEPTH + 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = link->cq,
		.recv_cq = link->cq,
	};
	struct ib_qp_attr attr = {};
	struct ib_qp *qp;
	int mask, ret;
	u32 i;

	qp = ib_create_qp(link->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	link->reg = qp;
	/* It never speaks to whom this says that it does. */
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		attr.qp_state = states[i];
		ret = rdma_init_qp_attr(link->id, &attr, &mask);
		if (!ret)
			ret = ib_modify_qp(qp, &attr, mask);
		if (ret && !i) {
			/* Still in its first state, in which it cannot be drained. */
			ib_destroy_qp(qp);
			link->reg = NULL;
		}
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * sp_mr_close() - undo sp_mr_open()
 * @link: the link, down
 *
 * Context: may sleep.
 */
void sp_mr_close(struct sp_link *link)
{
	if (!link->reg)
		return;
	ib_drain_sq(link->reg);
	ib_destroy_qp(link->reg);
}

/**
 * sp_mr_grant() - register a slab so that the peer of a link may write it
 * @link: the link, up
 * @slab: this node's replica of the peer's slab, with no page of a program
 *
 * The key is good in the link's own protection domain only, so that no other
 * peer can use it. It is valid on return.
 * Context: may sleep; the link does not end meanwhile, since sp_ctl or the
 * mover's lock is held.
 *
 * Return: the memory region, or an ERR_PTR.
 */
struct ib_mr *sp_mr_grant(struct sp_link *link, struct sp_slab *slab)
{
	struct scatterlist *sg;
	struct sg_table table;
	struct ib_mr *mr;
	int ret;
	u32 i;

	if (WARN_ON_ONCE(slab->pinned))
		return ERR_PTR(-EPERM);
	ret = sg_alloc_table(&table, slab->nchunks, GFP_KERNEL);
	if (ret)
		return ERR_PTR(ret);
	for_each_sg(table.sgl, sg, slab->nchunks, i) {
		sg_set_page(sg, slab->chunks[i], sp_chunk_bytes(slab), 0);
		sg_dma_address(sg) = slab->dma[i];
		sg_dma_len(sg) = sp_chunk_bytes(slab);
	}

	mr = ib_alloc_mr(link->pd, IB_MR_TYPE_MEM_REG, slab->nchunks);
	if (IS_ERR(mr))
		goto out;
	ret = ib_map_mr_sg(mr, table.sgl, slab->nchunks, NULL,
			   sp_chunk_bytes(slab));
	if (ret != (int)slab->nchunks) {
		ret = ret < 0 ? ret : -EINVAL;
		goto err_dereg;
	}
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	ret = sp_mr_register(link, mr);
	if (ret)
		goto err_dereg;
out:
	sg_free_table(&table);
	return mr;

err_dereg:
	ib_dereg_mr(mr);
	sg_free_table(&table);
	return ERR_PTR(ret);
}

/**
 * sp_mr_revoke() - take a key back
 * @mr: from sp_mr_grant(). The peer has said that it writes nothing more, or
 *	the link is down: a write with a dead key would break the link
 *
 * Context: may sleep.
 */
void sp_mr_revoke(struct ib_mr *mr)
{
	ib_dereg_mr(mr);
}
