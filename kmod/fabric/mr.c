// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of slabs, and the keys by which a peer writes into one.
 *
 * A slab is made of chunks that are contiguous to the device, so that few
 * gather entries and few pieces of a memory region cover large rings. The
 * kernel sees it through vmap(): rows or descriptors once, the ring twice back to
 * back.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "fabric.h"

#define SP_CHUNK_SHIFT_MAX	21

static u32 sp_chunk_bytes(const struct sp_slab *slab)
{
	return 1U << slab->chunk_shift;
}

static struct page *sp_slab_page(const struct sp_slab *slab, u32 nr)
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

	pages = kvmalloc_array(n * times, sizeof(*pages), SP_GFP_VIEW);
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

/**
 * sp_slab_rows() - lay out the memory of a node's rows
 * @lay: the layout
 */
void sp_slab_rows(struct sp_layout *lay)
{
	sp_layout_init(lay, 0, 0, PAGE_SIZE);
	lay->ring_off = PAGE_ALIGN(SP_ROWS_BYTES);
	lay->size = lay->ring_off;
}

/* What passes through copies shows the CPU nothing to poll. */
static bool sp_slab_synced(struct sp_device *sdev, u64 dma)
{
	if (ib_uses_virt_dma(sdev->ib))
		return false;
	return dma_need_sync(sdev->ib->dma_device, dma);
}

/* The smallest chunks of which one memory region covers the slab. */
static u32 sp_slab_shift(const struct sp_layout *lay, u32 max_pages)
{
	u32 shift = lay->window < 1U << SP_CHUNK_SHIFT ? PAGE_SHIFT :
		max(SP_CHUNK_SHIFT, PAGE_SHIFT);

	while (DIV_ROUND_UP(lay->size, 1U << shift) >= max_pages &&
	       shift < SP_CHUNK_SHIFT_MAX)
		shift++;
	return shift;
}

static u32 sp_slab_chunks(const struct sp_layout *lay, u32 shift)
{
	u32 n = DIV_ROUND_UP(lay->size, 1U << shift);

	/*
	 * soft-RoCE of 6.1 reads past its table of pages when a copy ends at the
	 * end of a region whose number of pages is a multiple of 256.
	 */
	return n % 256 ? n : n + 1;
}

/**
 * sp_heap_bytes() - room that kvcalloc() takes
 * @n: elements
 * @size: of each, bytes
 *
 * Return: bytes, at most.
 */
u64 sp_heap_bytes(u64 n, u64 size)
{
	u64 bytes = roundup_pow_of_two(max_t(u64, n * size, KMALLOC_MIN_SIZE));

	/* By vmalloc(), an entry of a page table and a pointer for each page. */
	if (bytes > PAGE_SIZE)
		bytes += (bytes >> PAGE_SHIFT) *
			 (sizeof(pte_t) + sizeof(struct page *));
	return bytes;
}

/* What a mapping of so many pages takes, and the array it is made from. */
static u64 sp_vmap_bytes(u64 pages)
{
	/* An entry of a page table each, and a guard page. */
	return (pages + 1) * sizeof(pte_t) + sp_heap_bytes(pages, sizeof(void *)) +
	       sizeof(struct vm_struct) + sizeof(struct vmap_area);
}

/**
 * sp_slab_bytes() - what a slab takes
 * @lay: its layout
 * @max_pages: pieces that a memory region of its device may have
 *
 * Return: bytes, with all that the kernel needs to map and register it.
 */
u64 sp_slab_bytes(const struct sp_layout *lay, u32 max_pages)
{
	u32 shift = sp_slab_shift(lay, max_pages);
	u32 n = sp_slab_chunks(lay, shift);

	return ((u64)n << shift) +
	       sp_heap_bytes(1, sizeof(struct sp_slab)) +
	       sp_heap_bytes(n, sizeof(struct page *)) +
	       sp_heap_bytes(n, sizeof(u64)) +
	       /* The region: address and length of each chunk. */
	       sp_heap_bytes(n, 2 * sizeof(u64)) +
	       sp_vmap_bytes(lay->ring_off >> PAGE_SHIFT) +
	       (lay->window ? sp_vmap_bytes(2ULL * (lay->window >> PAGE_SHIFT)) : 0);
}

/**
 * sp_slab_alloc() - allocate a zeroed slab and map it for its device
 * @sdev: the device
 * @lay: what is in it
 *
 * The memory is charged to the calling task's cgroup. Context: may sleep.
 *
 * Return: the slab, or an ERR_PTR: -ENOMEM, -ERANGE when one memory region of
 * the device cannot cover it, -EOPNOTSUPP when the device would bounce memory
 * that is to be polled.
 */
struct sp_slab *sp_slab_alloc(struct sp_device *sdev,
			      const struct sp_layout *lay)
{
	u32 ctl_pages, ring_pages;
	struct sp_slab *slab;
	int ret = -ENOMEM;
	u32 i;

	slab = kzalloc(sizeof(*slab), SP_GFP_VIEW);
	if (!slab)
		return ERR_PTR(-ENOMEM);
	kref_init(&slab->ref);
	slab->lay = *lay;
	slab->sdev = sdev;
	atomic_inc(&sdev->objects);
	slab->chunk_shift = sp_slab_shift(lay, sdev->max_pages);
	slab->nchunks = sp_slab_chunks(lay, slab->chunk_shift);
	if (slab->nchunks > sdev->max_pages) {
		ret = -ERANGE;
		goto err_free;
	}

	slab->chunks = kvcalloc(slab->nchunks, sizeof(*slab->chunks),
				SP_GFP_VIEW);
	slab->dma = kvcalloc(slab->nchunks, sizeof(*slab->dma),
			     SP_GFP_VIEW);
	if (!slab->chunks || !slab->dma)
		goto err_free;

	for (i = 0; i < slab->nchunks; i++) {
		u32 order = slab->chunk_shift - PAGE_SHIFT;
		struct page *page;

		page = alloc_pages(SP_GFP_VIEW | __GFP_ZERO, order);
		if (!page)
			goto err_free;
		/* Pages are mapped, and later handed out, one by one. */
		split_page(page, order);
		slab->chunks[i] = page;
		slab->dma[i] = ib_dma_map_page(sdev->ib, page, 0,
					       sp_chunk_bytes(slab),
					       DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(sdev->ib, slab->dma[i])) {
			slab->dma[i] = 0;
			goto err_free;
		}
		slab->synced |= sp_slab_synced(sdev, slab->dma[i]);
		if (sdev->polled && slab->synced) {
			ret = -EOPNOTSUPP;
			goto err_free;
		}
	}

	ctl_pages = lay->ring_off >> PAGE_SHIFT;
	ring_pages = lay->window >> PAGE_SHIFT;
	slab->base = sp_slab_vmap(slab, 0, ctl_pages, 1);
	if (!slab->base)
		goto err_free;
	if (ring_pages) {
		slab->ring = sp_slab_vmap(slab, ctl_pages, ring_pages, 2);
		if (!slab->ring)
			goto err_free;
	}
	return slab;

err_free:
	sp_slab_free(slab);
	return ERR_PTR(ret);
}

/**
 * sp_slab_arrived() - the owner has written, and said so
 * @slab: this node's replica of a peer's lane
 *
 * Context: any.
 */
void sp_slab_arrived(struct sp_slab *slab)
{
	u64 chunk = sp_chunk_bytes(slab);
	u64 off = 0;

	while (slab->synced && off < slab->lay.size) {
		u64 in = off & (chunk - 1);
		u64 some = min(chunk - in, slab->lay.size - off);

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
					  DMA_BIDIRECTIONAL);
	slab->sdev = NULL;
	sp_device_object_gone(sdev);
}

/* Unmapped by its owner, whoever held it last. */
static void sp_slab_release(struct kref *ref)
{
	struct sp_slab *slab = container_of(ref, struct sp_slab, ref);
	u32 pages = sp_chunk_bytes(slab) >> PAGE_SHIFT;
	u32 i, k;

	if (slab->ring)
		vunmap(slab->ring);
	if (slab->base)
		vunmap(slab->base);
	for (i = 0; slab->chunks && i < slab->nchunks; i++)
		for (k = 0; slab->chunks[i] && k < pages; k++)
			__free_page(nth_page(slab->chunks[i], k));
	kvfree(slab->dma);
	kvfree(slab->chunks);
	kfree(slab);
}

/**
 * sp_slab_put() - drop a reference to the memory of a slab
 * @slab: the slab, or NULL
 *
 * Context: may sleep, with the last one.
 */
void sp_slab_put(struct sp_slab *slab)
{
	if (slab)
		kref_put(&slab->ref, sp_slab_release);
}

/**
 * sp_slab_free() - the owner of a slab is done with it
 * @slab: the slab, or NULL; no key to it is left and nothing posted reads it
 *
 * The device lets go of the memory here; it is freed when nobody copies from it any
 * more. Context: may sleep.
 */
void sp_slab_free(struct sp_slab *slab)
{
	if (!slab)
		return;
	sp_slab_unmap(slab);
	sp_slab_put(slab);
}

/**
 * sp_mr_grant() - register a slab so that the peer of a link may write it
 * @link: the link, up
 * @slab: this node's replica of the peer's slab
 *
 * The key is good in the link's own protection domain only, so that no other
 * peer can use it. What is sent on the link after this finds it valid.
 * Context: may sleep.
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

	ret = sg_alloc_table(&table, slab->nchunks, SP_GFP_LARGE);
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
	ret = sp_post_reg(link, mr);
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
