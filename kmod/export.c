// SPDX-License-Identifier: GPL-2.0
/*
 * Objects as files: a program maps what has come, so that it is copied nowhere
 * between the sender's pages and its own. The file is read only, and holds the
 * object, which counts as the group's until all files and mappings of it are
 * gone; turns and rings do not wait for that.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/uio.h>

#include "compat/compat.h"
#include "rdmc.h"

static int sp_export_release(struct inode *inode, struct file *file)
{
	sp_object_put(file->private_data);
	return 0;
}

static loff_t sp_export_llseek(struct file *file, loff_t off, int whence)
{
	const struct sp_object *object = file->private_data;

	return fixed_size_llseek(file, off, whence, object->len);
}

static ssize_t sp_export_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	const struct sp_object *object = iocb->ki_filp->private_data;
	size_t len;
	int ret;

	if (iocb->ki_pos >= object->len)
		return 0;
	len = min_t(u64, iov_iter_count(to), object->len - iocb->ki_pos);
	ret = sp_object_give(object, iocb->ki_pos, len, to);
	if (ret)
		return ret;
	iocb->ki_pos += len;
	return len;
}

static int sp_export_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct sp_object *object = file->private_data;
	u64 first = vma->vm_pgoff, n = vma_pages(vma);
	u32 pages = PAGE_ALIGN(object->len) >> PAGE_SHIFT;
	int ret = 0;
	u32 i;

	if (first > pages || n > pages - first)
		return -EINVAL;
	/* Other readers of this node see the same pages. */
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	vm_flags_mod(vma, VM_DONTEXPAND, VM_MAYWRITE);
	for (i = 0; !ret && i < n; i++)
		ret = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE,
				     sp_slab_page(object->slab, first + i));
	return ret;
}

static const struct file_operations sp_export_fops = {
	.owner = THIS_MODULE,
	.release = sp_export_release,
	.llseek = sp_export_llseek,
	.read_iter = sp_export_read_iter,
	.mmap = sp_export_mmap,
};

/**
 * sp_export() - a file for an object
 * @object: the object, that is here
 *
 * Context: may sleep.
 *
 * Return: the file, which holds @object; or an ERR_PTR: -EOPNOTSUPP when bytes
 * of it are a program's own memory, that it was sent out of; -ENFILE or -ENOMEM.
 */
struct file *sp_export(struct sp_object *object)
{
	struct file *file;

	if (object->slab->pinned)
		return ERR_PTR(-EOPNOTSUPP);
	file = anon_inode_getfile("[spindle-object]", &sp_export_fops, object,
				  O_RDONLY);
	if (IS_ERR(file))
		return file;
	kref_get(&object->ref);
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	return file;
}
