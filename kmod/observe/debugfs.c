// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/spindle/NODE/GROUP, for people and measurements; the
 * formats may change:
 *
 *   sst       the shared state table as this node sees it
 *   optimise  which of the paper's optimisations are on
 *   batches   how many messages each stage takes at once
 *   objects   large objects on their way, and how the last ones fared
 *
 * All but the first are described in Documentation/protocol.rst.
 */
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../engine.h"
#include "../group.h"
#include "../rdmc.h"
#include "observe.h"

static struct dentry *sp_debug_root;

/*
 * Files in debugfs are removed under sp_ctl, and removal waits for who is
 * between these two. A page of the reader's memory that has to be brought in
 * must not be waited for there, since mmap() of a socket takes sp_ctl: so the
 * files are of the unsafe kind, and this is done around what they look at only.
 */
static int sp_debug_get(const struct file *file)
{
	return debugfs_file_get(file->f_path.dentry);
}

static void sp_debug_put(const struct file *file)
{
	debugfs_file_put(file->f_path.dentry);
}

static void sp_sst_row(struct seq_file *m, const struct sp_group *g, u32 node)
{
	static const char * const doze[] = { "awake", "dozing", "asleep" };
	const struct sp_core *c = &g->core;
	const struct sp_peer *p = &c->peers[node];
	const struct sp_peer_node *pn = g->peer[node];
	char name[64];

	sp_addr_name(pn ? &pn->addr : &g->node->addr, name, sizeof(name));
	seq_printf(m, "node %u %s received %lld consumed %lld", node, name,
		   c->order.nodes[node].received,
		   c->order.nodes[node].consumed);
	if (node == g->self)
		seq_printf(m, " self %s epoch %llu delivered %lld published %llu released %llu idle %u%s%s%s\n",
			   doze[c->doze.state], c->doze.epoch,
			   c->order.delivered, c->order.published,
			   c->order.released, c->idle,
			   c->unposted ? " unposted" : "",
			   c->wedged ? " wedged" : "", c->hold ? " hold" : "");
	else
		seq_printf(m, " flag %llu woken %llu told received %lld consumed %lld flag %llu ticket %llu check %llu open %llx%s%s\n",
			   p->row ? READ_ONCE(p->row[SP_CELL_SLEEP].value) : 0,
			   p->woken, p->received, p->consumed, p->sleep,
			   p->ticket, p->check, p->open,
			   p->cut ? " cut" : "", p->gone ? " gone" : "");
}

static void sp_sst_lane(struct seq_file *m, const struct sp_group *g, u32 rank)
{
	const struct sp_lane *lane = sp_order_lane(&g->core.order, rank);

	seq_printf(m, "lane %u node %u member %u nr %u slot %u base %llu round %llu count %llu taken %llu freed %llu tail %llu head %llu",
		   rank, lane->node, lane->member, lane->lane,
		   g->core.order.slot[rank], lane->base, lane->now.round,
		   lane->now.count, lane->taken, lane->freed, lane->now.tail,
		   lane->head);
	if (lane->node == g->self && g->own[lane->lane]) {
		const struct sp_tx *tx = &g->own[lane->lane]->tx.tx;

		/* Its writer goes on meanwhile. */
		seq_printf(m, " own round %llu count %llu freed %llu tail %llu head %llu",
			   READ_ONCE(tx->now.round), READ_ONCE(tx->now.count),
			   READ_ONCE(tx->freed), READ_ONCE(tx->now.tail),
			   READ_ONCE(tx->head));
	}
	if (lane->seen.round != lane->now.round)
		seq_printf(m, " seen round %llu count %llu objects %u",
			   lane->seen.round, lane->seen.count, lane->objects);
	seq_putc(m, '\n');
}

/* Lanes of who is in the view no more, as long as somebody reads from them. */
static void sp_sst_dead(struct seq_file *m, const struct sp_group *g)
{
	u32 i;

	for (i = 0; i < SP_MAX_SLOTS; i++) {
		const struct sp_slot_lane *lane = g->slots[i];
		char name[64];

		if (!lane || !READ_ONCE(lane->dead))
			continue;
		sp_addr_name(&lane->addr, name, sizeof(name));
		seq_printf(m, "dead slot %u %s uid %u held %llu%s\n", i, name,
			   lane->uid, g->core.order.lanes[i].held,
			   lane->own ? " own" : "");
	}
}

static int sp_sst_show(struct seq_file *m, void *data)
{
	struct sp_group *g = m->private;
	struct sp_engine *engine;
	u32 i;
	int ret;

	ret = sp_debug_get(m->file);
	if (ret)
		return ret;
	engine = sp_observe_lock(g);
	/* The memory of the view is there from then on. */
	if (sp_group_state(g) == SP_VIEW_FORMING || !READ_ONCE(g->ready))
		goto unlock;
	seq_printf(m, "view %llu start %lld\n", g->core.view,
		   g->core.order.start);
	for (i = 0; i < g->core.order.nnodes; i++)
		sp_sst_row(m, g, i);
	for (i = 0; i < g->core.order.nlanes; i++)
		sp_sst_lane(m, g, i);
	sp_sst_dead(m, g);
unlock:
	sp_observe_unlock(engine);
	sp_debug_put(m->file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_sst);

static int sp_objects_show(struct seq_file *m, void *data)
{
	int ret = sp_debug_get(m->file);

	if (ret)
		return ret;
	sp_rdmc_show(m, m->private);
	sp_debug_put(m->file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_objects);

static const char * const sp_opt_names[] = {
	"send", "receive", "deliver", "null", "unlock",
};

static int sp_optimise_show(struct seq_file *m, void *data)
{
	const struct sp_group *g = m->private;
	const char *space = "";
	u32 opt, i;
	int ret;

	ret = sp_debug_get(m->file);
	if (ret)
		return ret;
	opt = READ_ONCE(g->core.opt);
	sp_debug_put(m->file);
	for (i = 0; i < ARRAY_SIZE(sp_opt_names); i++) {
		if (!(opt & BIT(i)))
			continue;
		seq_printf(m, "%s%s", space, sp_opt_names[i]);
		space = " ";
	}
	seq_puts(m, opt ? "\n" : "none\n");
	return 0;
}

/* Returns SP_OPT_* or -EINVAL. */
static int sp_optimise_parse(char *words)
{
	int opt = 0;
	char *word;

	words = strim(words);
	if (!strcmp(words, "all"))
		return SP_OPT_ALL;
	if (!strcmp(words, "none"))
		return 0;
	do {
		int i;

		words = skip_spaces(words);
		word = strsep(&words, " \t\n");
		i = match_string(sp_opt_names, ARRAY_SIZE(sp_opt_names), word);
		if (i < 0)
			return -EINVAL;
		opt |= BIT(i);
	} while (words);
	return opt;
}

static ssize_t sp_optimise_write(struct file *file, const char __user *from,
				 size_t len, loff_t *pos)
{
	struct sp_group *g = file_inode(file)->i_private;
	char *words;
	int ret, opt;

	if (len > 100)
		return -EINVAL;
	words = memdup_user_nul(from, len);
	if (IS_ERR(words))
		return PTR_ERR(words);
	opt = sp_optimise_parse(words);
	kfree(words);
	if (opt < 0)
		return opt;
	ret = sp_debug_get(file);
	if (ret)
		return ret;
	WRITE_ONCE(g->core.opt, opt);
	/* Nulls may be due that were not before. */
	sp_group_kick(g);
	sp_debug_put(file);
	return len;
}

static int sp_optimise_open(struct inode *inode, struct file *file)
{
	return single_open(file, sp_optimise_show, inode->i_private);
}

static const struct file_operations sp_optimise_fops = {
	.owner = THIS_MODULE,
	.open = sp_optimise_open,
	.read = seq_read,
	.write = sp_optimise_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* Guards the batches_seen of all groups. */
static DEFINE_MUTEX(sp_batches_lock);

/* Passes go on meanwhile: what a line says may be apart by a batch. */
static void sp_batches_stage(struct seq_file *m, const struct sp_batches *now,
			     const struct sp_batches *seen, const char *name)
{
	u64 messages = READ_ONCE(now->messages) - seen->messages;
	u64 batches = 0;
	u32 part = 0;
	u64 size;
	u64 mean;
	u32 i;

	for (i = 0; i < SP_BATCH_SIZES; i++)
		batches += READ_ONCE(now->size[i]) - seen->size[i];
	mean = batches ? div64_u64(messages * 100, batches) : 0;
	mean = div_u64_rem(mean, 100, &part);
	seq_printf(m, "%s batches %llu messages %llu mean %llu.%02u", name,
		   batches, messages, mean, part);
	for (i = 0; i < SP_BATCH_SIZES; i++) {
		size = READ_ONCE(now->size[i]) - seen->size[i];
		if (size)
			seq_printf(m, " %u:%llu", i + 1, size);
	}
	seq_putc(m, '\n');
}

static int sp_batches_show(struct seq_file *m, void *data)
{
	static const char * const names[SP_STAGES] = {
		[SP_STAGE_SEND] = "send",
		[SP_STAGE_RECEIVE] = "receive",
		[SP_STAGE_DELIVER] = "deliver",
	};
	const struct sp_group *g = m->private;
	u32 i;
	int ret;

	ret = sp_debug_get(m->file);
	if (ret)
		return ret;
	mutex_lock(&sp_batches_lock);
	for (i = 0; i < SP_STAGES; i++)
		sp_batches_stage(m, &g->core.batches[i], &g->batches_seen[i],
				 names[i]);
	mutex_unlock(&sp_batches_lock);
	sp_debug_put(m->file);
	return 0;
}

/* Whatever is written: what was counted so far is not shown any more. */
static ssize_t sp_batches_write(struct file *file, const char __user *from,
				size_t len, loff_t *pos)
{
	struct sp_group *g = file_inode(file)->i_private;
	u32 i, k;
	int ret;

	ret = sp_debug_get(file);
	if (ret)
		return ret;
	mutex_lock(&sp_batches_lock);
	for (i = 0; i < SP_STAGES; i++) {
		const struct sp_batches *now = &g->core.batches[i];
		struct sp_batches *seen = &g->batches_seen[i];

		seen->messages = READ_ONCE(now->messages);
		for (k = 0; k < SP_BATCH_SIZES; k++)
			seen->size[k] = READ_ONCE(now->size[k]);
	}
	mutex_unlock(&sp_batches_lock);
	sp_debug_put(file);
	return len;
}

static int sp_batches_open(struct inode *inode, struct file *file)
{
	return single_open(file, sp_batches_show, inode->i_private);
}

static const struct file_operations sp_batches_fops = {
	.owner = THIS_MODULE,
	.open = sp_batches_open,
	.read = seq_read,
	.write = sp_batches_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void sp_debugfs_group_add(struct sp_group *g)
{
	g->dir = debugfs_create_dir(g->name, g->node->dir);
	debugfs_create_file_unsafe("sst", 0400, g->dir, g, &sp_sst_fops);
	debugfs_create_file_unsafe("optimise", 0600, g->dir, g, &sp_optimise_fops);
	debugfs_create_file_unsafe("batches", 0600, g->dir, g, &sp_batches_fops);
	debugfs_create_file_unsafe("objects", 0400, g->dir, g, &sp_objects_fops);
}

void sp_debugfs_group_del(struct sp_group *g)
{
	debugfs_remove(g->dir);
	g->dir = NULL;
}

void sp_debugfs_node_add(struct sp_node *node)
{
	node->dir = debugfs_create_dir(node->name, sp_debug_root);
}

void sp_debugfs_node_del(struct sp_node *node)
{
	debugfs_remove(node->dir);
	node->dir = NULL;
}

void sp_debugfs_init(void)
{
	sp_debug_root = debugfs_create_dir("spindle", NULL);
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	sp_fault_init(sp_debug_root);
#endif
}

void sp_debugfs_exit(void)
{
	debugfs_remove(sp_debug_root);
	sp_debug_root = NULL;
}
