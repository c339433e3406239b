// SPDX-License-Identifier: GPL-2.0
/* Which call fails, and the file in debugfs that decides it: see fault.h. */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

bool sp_fault_on;

/* Guards all below; calls fail in any context. */
static DEFINE_SPINLOCK(sp_fault_lock);
static struct sp_fault_site *sp_fault_sites;
static char sp_fault_wanted[96];	/* FUNCTION:LINE:CALL */
static u32 sp_fault_nth;		/* 0: none */
static struct sp_fault_site *sp_fault_done;

static void sp_fault_name(const struct sp_fault_site *site, char *buf, size_t len)
{
	snprintf(buf, len, "%s:%u:%s", site->func, site->line, site->call);
}

/**
 * sp_fault_hit() - a call is about to be made, and calls are counted
 * @site: where
 *
 * Context: any.
 *
 * Return: true when it is not to be made, but to fail.
 */
bool sp_fault_hit(struct sp_fault_site *site)
{
	char name[sizeof(sp_fault_wanted)];
	unsigned long flags;
	bool fail = false;

	spin_lock_irqsave(&sp_fault_lock, flags);
	if (!site->known) {
		site->known = true;
		site->next = sp_fault_sites;
		sp_fault_sites = site;
	}
	site->calls++;
	if (sp_fault_nth && site->calls == sp_fault_nth) {
		sp_fault_name(site, name, sizeof(name));
		if (!strcmp(name, sp_fault_wanted)) {
			sp_fault_nth = 0;
			sp_fault_done = site;
			fail = true;
		}
	}
	spin_unlock_irqrestore(&sp_fault_lock, flags);
	return fail;
}

static int sp_fault_show(struct seq_file *m, void *unused)
{
	struct sp_fault_site *site, *done;
	char name[sizeof(sp_fault_wanted)];

	/* A site stays on the list until the module goes. */
	spin_lock_irq(&sp_fault_lock);
	site = sp_fault_sites;
	done = sp_fault_done;
	spin_unlock_irq(&sp_fault_lock);
	if (done)
		sp_fault_name(done, name, sizeof(name));
	seq_printf(m, "injected %s\n", done ? name : "-");
	for (; site; site = site->next) {
		sp_fault_name(site, name, sizeof(name));
		seq_printf(m, "%s %u\n", name, READ_ONCE(site->calls));
	}
	return 0;
}

static ssize_t sp_fault_write(struct file *file, const char __user *from,
			      size_t len, loff_t *pos)
{
	char text[sizeof(sp_fault_wanted) + 16] = "";
	char name[sizeof(sp_fault_wanted)] = "";
	struct sp_fault_site *site;
	u32 nth = 0;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	if (sscanf(text, "%95s %u", name, &nth) < 1)
		return -EINVAL;
	if (!nth && strcmp(name, "count") && strcmp(name, "off"))
		return -EINVAL;
	spin_lock_irq(&sp_fault_lock);
	for (site = sp_fault_sites; site; site = site->next)
		site->calls = 0;
	strscpy(sp_fault_wanted, name, sizeof(sp_fault_wanted));
	sp_fault_nth = nth;
	sp_fault_done = NULL;
	WRITE_ONCE(sp_fault_on, strcmp(name, "off"));
	spin_unlock_irq(&sp_fault_lock);
	return len;
}

static int sp_fault_open(struct inode *inode, struct file *file)
{
	return single_open(file, sp_fault_show, NULL);
}

static const struct file_operations sp_fault_fops = {
	.owner = THIS_MODULE,
	.open = sp_fault_open,
	.read = seq_read,
	.write = sp_fault_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/**
 * sp_fault_init() - make the file
 * @dir: where; it goes with it
 */
void sp_fault_init(struct dentry *dir)
{
	debugfs_create_file("faults", 0600, dir, NULL, &sp_fault_fops);
}
