// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/spindle/NODE/GROUP, for people and measurements; the
 * formats may change:
 *
 *   sst       the shared state table as this node sees it, and how its view is
 *             about to end
 *   optimise  which of the paper's optimisations are on, by the configuration
 *   batches   how many messages each stage takes at once
 *   posts     what was posted to the peers, and why
 *   activity  what goes on for the group on this node, for who waits for quiet
 *
 * and, for tests, files into which the address of another node is written:
 *
 *   NODE/break  the link to it is lost, for good
 *   NODE/cut    its connection is lost, and it gets no other one
 *   NODE/delay  completions of requests to it are known so many milliseconds late; their
 *               number follows the address
 *   NODE/drop   they are dropped
 *
 * the last three until the address is written with a '-' before it.
 *
 * optimise, batches and posts are described in Documentation/protocol.rst.
 *
 * activity begins with "busy": there is or will be a pass; "watching": there
 * will be none, but looks for who is slow; or "quiet": neither, until a member
 * does something or a peer's message comes. Behind it, of the same moment:
 * passes, sends, what came of peers' sends, and looks. A group is at rest when
 * no node of it is busy, twice, with the same passes, and, the second time, as
 * much was received on all nodes as was sent: then nothing is under way.
 */
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/math64.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../engine.h"
#include "../group.h"
#include "observe.h"

#define SP_DELAY_MAX	60000	/* milliseconds */

static struct dentry *sp_debug_root;

static void sp_sst_row(struct seq_file *m, const struct sp_group *g, u32 node)
{
	static const char * const doze[] = { "awake", "dozing", "asleep" };
	const struct sp_core *c = &g->core;
	const struct sp_peer *p = &c->peers[node];
	char name[64];

	sp_addr_name(&g->view.nodes[node].addr, name, sizeof(name));
	seq_printf(m, "node %u %s received %lld consumed %lld", node, name,
		   READ_ONCE(c->order.nodes[node].received),
		   READ_ONCE(c->order.nodes[node].consumed));
	if (node == g->self)
		seq_printf(m, " self %s epoch %llu delivered %lld published %llu idle %u%s\n",
			   doze[READ_ONCE(c->doze.state)],
			   READ_ONCE(c->doze.epoch),
			   READ_ONCE(c->order.delivered),
			   READ_ONCE(c->order.published),
			   READ_ONCE(c->idle),
			   READ_ONCE(c->unposted) ? " unposted" : "");
	else
		seq_printf(m, " flag %llu woken %llu told received %lld consumed %lld flag %llu ticket %llu check %llu%s\n",
			   READ_ONCE(p->row[SP_CELL_SLEEP].value),
			   READ_ONCE(p->woken), READ_ONCE(p->received),
			   READ_ONCE(p->consumed), READ_ONCE(p->sleep),
			   READ_ONCE(p->ticket), READ_ONCE(p->check),
			   READ_ONCE(p->gone) ? " gone" : "");
}

static void sp_sst_lane(struct seq_file *m, const struct sp_group *g, u32 rank)
{
	const struct sp_lane *lane = sp_order_lane(&g->core.order, rank);

	seq_printf(m, "lane %u node %u round %llu count %llu taken %llu freed %llu tail %llu head %llu",
		   rank, lane->node, READ_ONCE(lane->now.round),
		   READ_ONCE(lane->now.count), READ_ONCE(lane->taken),
		   READ_ONCE(lane->freed), READ_ONCE(lane->now.tail),
		   READ_ONCE(lane->head));
	if (lane->node == g->self) {
		const struct sp_tx *tx = &g->lanes[lane->lane]->tx;

		seq_printf(m, " own round %llu count %llu freed %llu tail %llu head %llu",
			   READ_ONCE(tx->now.round), READ_ONCE(tx->now.count),
			   READ_ONCE(tx->freed), READ_ONCE(tx->now.tail),
			   READ_ONCE(tx->head));
	}
	seq_putc(m, '\n');
}

static void sp_sst_rounds(struct seq_file *m, const struct sp_group *g, const char *name,
			  const u64 *rounds)
{
	u32 i;

	seq_printf(m, " %s", name);
	for (i = 0; i < g->view.nlanes; i++)
		seq_printf(m, "%c%llu", i ? ',' : ' ', READ_ONCE(rounds[i]));
}

/* The control plane writes what is read here: it may be half of it. */
static void sp_sst_report(struct seq_file *m, const struct sp_group *g, u32 node)
{
	const struct sp_report *r = &g->reports[g->view.id & 1][node];

	seq_printf(m, "report %u suspects %#llx outranked %#llx accused %u by %u ballot %u%s",
		   node, READ_ONCE(r->suspected), READ_ONCE(r->outranked),
		   READ_ONCE(r->accusation.of), READ_ONCE(r->accusation.by),
		   READ_ONCE(r->accepted.ballot),
		   READ_ONCE(r->wedged) ? " wedged" : "");
	if (READ_ONCE(r->wedged))
		sp_sst_rounds(m, g, "counts", r->counts);
	if (READ_ONCE(r->accepted.ballot))
		sp_sst_rounds(m, g, "trim", r->accepted.trim);
	seq_putc(m, '\n');
}

static int sp_sst_show(struct seq_file *m, void *data)
{
	struct sp_group *g = m->private;
	/* It ends after the file has gone. */
	struct sp_engine *engine = READ_ONCE(g->node->sdev->engine);
	u32 i;

	/* The memory of the view is there from then on. */
	if (sp_group_state(g) == SP_VIEW_FORMING ||
	    !READ_ONCE(g->current_view) || !engine)
		return 0;
	spin_lock_bh(&engine->lock);
	seq_printf(m, "view %llu self %u%s%s\n", g->view.id, g->self,
		   g->core.wedged ? " wedged" : "", g->core.hold ? " hold" : "");
	for (i = 0; i < g->view.nnodes; i++)
		sp_sst_row(m, g, i);
	for (i = 0; i < g->view.nlanes; i++)
		sp_sst_lane(m, g, i);
	for (i = 0; i < g->view.nnodes; i++)
		sp_sst_report(m, g, i);
	spin_unlock_bh(&engine->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_sst);

static const char * const sp_opt_names[] = {
	"send", "receive", "deliver", "null", "unlock",
};

static int sp_optimise_show(struct seq_file *m, void *data)
{
	const struct sp_group *g = m->private;
	u32 opt = SP_OPT_ALL & ~sp_config_off(&g->config);
	const char *space = "";
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sp_opt_names); i++) {
		if (!(opt & BIT(i)))
			continue;
		seq_printf(m, "%s%s", space, sp_opt_names[i]);
		space = " ";
	}
	seq_puts(m, opt ? "\n" : "none\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_optimise);

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

	mutex_lock(&sp_batches_lock);
	for (i = 0; i < SP_STAGES; i++)
		sp_batches_stage(m, &g->core.batches[i], &g->batches_seen[i],
				 names[i]);
	mutex_unlock(&sp_batches_lock);
	return 0;
}

/* Whatever is written: what was counted so far is not shown any more. */
static ssize_t sp_batches_write(struct file *file, const char __user *from,
				size_t len, loff_t *pos)
{
	struct sp_group *g = file_inode(file)->i_private;
	u32 i, k;

	mutex_lock(&sp_batches_lock);
	for (i = 0; i < SP_STAGES; i++) {
		const struct sp_batches *now = &g->core.batches[i];
		struct sp_batches *seen = &g->batches_seen[i];

		seen->messages = READ_ONCE(now->messages);
		for (k = 0; k < SP_BATCH_SIZES; k++)
			seen->size[k] = READ_ONCE(now->size[k]);
	}
	mutex_unlock(&sp_batches_lock);
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

/* Passes go on meanwhile: the lines may be of different moments. */
static int sp_posts_show(struct seq_file *m, void *data)
{
	static const char * const names[] = {
		"data", "null", "ack", "consumed", "flag", "begin", "wait",
	};
	const struct sp_group *g = m->private;
	const struct sp_posts *posts = &g->core.posts;
	u32 why, i;

	seq_printf(m, "segments %llu carried %llu wakes %llu late %llu\n",
		   READ_ONCE(posts->segs), READ_ONCE(posts->carried),
		   READ_ONCE(posts->wakes), READ_ONCE(posts->wakes_late));
	BUILD_BUG_ON(SP_WHY_ALL != (1U << ARRAY_SIZE(names)) - 1);
	for (why = 0; why <= SP_WHY_ALL; why++) {
		u64 rows = READ_ONCE(posts->rows[why]);

		if (!rows)
			continue;
		seq_printf(m, "rows %llu", rows);
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (why >> i & 1)
				seq_printf(m, " %s", names[i]);
		seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_posts);

static int sp_activity_show(struct seq_file *m, void *data)
{
	struct sp_group *g = m->private;
	/* It ends after the file has gone. */
	struct sp_engine *engine = READ_ONCE(g->node->sdev->engine);
	const struct sp_counters *n = &g->counters;
	const char *what = "quiet";
	u64 receives;

	spin_lock_bh(&engine->lock);
	/* Pairs with sp_smc_count(): whom that has kicked is busy. */
	receives = atomic64_read_acquire(&n->receives);
	if (sp_engine_busy(engine, g))
		what = "busy";
	else if (sp_slow_watches(g))
		what = "watching";
	seq_printf(m, "%s passes %llu sends %llu receives %llu looks %llu\n",
		   what, n->passes, n->sends, receives, n->looks);
	spin_unlock_bh(&engine->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_activity);

void sp_debugfs_group_add(struct sp_group *g)
{
	g->dir = debugfs_create_dir(g->name, g->node->dir);
	debugfs_create_file("sst", 0400, g->dir, g, &sp_sst_fops);
	debugfs_create_file("optimise", 0400, g->dir, g, &sp_optimise_fops);
	debugfs_create_file("batches", 0600, g->dir, g, &sp_batches_fops);
	debugfs_create_file("posts", 0400, g->dir, g, &sp_posts_fops);
	debugfs_create_file("activity", 0400, g->dir, g, &sp_activity_fops);
}

void sp_debugfs_group_del(struct sp_group *g)
{
	debugfs_remove(g->dir);
	g->dir = NULL;
}

/*
 * Take the address of a node that was written, whether a '-' was before it, and, if @ms is
 * there and no '-' was, the milliseconds behind it.
 */
static int sp_take_addr(const char __user *from, size_t len, bool *minus,
			struct sp_addr *addr, u32 *ms)
{
	char *words, *at, *number;
	int ret = 0;
	u8 v4[4];

	if (len > 100)
		return -EINVAL;
	words = memdup_user_nul(from, len);
	if (IS_ERR(words))
		return PTR_ERR(words);
	memset(addr, 0, sizeof(*addr));
	at = strim(words);
	*minus = *at == '-';
	at += *minus;
	if (ms && !*minus) {
		number = at;
		at = strsep(&number, " \t");
		ret = -EINVAL;
		if (!number || kstrtou32(skip_spaces(number), 10, ms) || !*ms ||
		    *ms > SP_DELAY_MAX)
			goto out;
		ret = 0;
	}
	if (in4_pton(at, -1, v4, -1, NULL)) {
		addr->b[10] = 0xff;
		addr->b[11] = 0xff;
		memcpy(&addr->b[12], v4, sizeof(v4));
	} else if (!in6_pton(at, -1, addr->b, -1, NULL)) {
		ret = -EINVAL;
	}
out:
	kfree(words);
	return ret;
}

/*
 * Any other way to take sp_ctl would deadlock with the removal of the file, which
 * waits for us under it.
 */
static int sp_debug_lock(void)
{
	return mutex_trylock(&sp_ctl) ? 0 : restart_syscall();
}

static ssize_t sp_break_write(struct file *file, const char __user *from,
			      size_t len, loff_t *pos)
{
	struct sp_node *node = file_inode(file)->i_private;
	struct sp_link *link;
	struct sp_addr addr;
	bool minus;
	int ret;

	ret = sp_take_addr(from, len, &minus, &addr, NULL);
	if (!ret && minus)
		ret = -EINVAL;
	if (!ret)
		ret = sp_debug_lock();
	if (ret)
		return ret;
	link = sp_link_find(node, &addr);
	if (link)
		sp_link_break(link, -EHOSTDOWN, "broken by debugfs");
	mutex_unlock(&sp_ctl);
	return link ? len : -ENOENT;
}

static const struct file_operations sp_break_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = sp_break_write,
	.llseek = noop_llseek,
};

static ssize_t sp_cut_write(struct file *file, const char __user *from,
			    size_t len, loff_t *pos)
{
	struct sp_node *node = file_inode(file)->i_private;
	struct sp_addr addr;
	bool minus;
	int ret;

	ret = sp_take_addr(from, len, &minus, &addr, NULL);
	if (!ret)
		ret = sp_debug_lock();
	if (ret)
		return ret;
	ret = sp_fault_cut(node, &addr, !minus);
	mutex_unlock(&sp_ctl);
	return ret ?: len;
}

static const struct file_operations sp_cut_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = sp_cut_write,
	.llseek = noop_llseek,
};

static ssize_t sp_delay(struct file *file, const char __user *from, size_t len,
			bool drop)
{
	struct sp_node *node = file_inode(file)->i_private;
	u32 ms = SP_DELAY_DROP;
	struct sp_addr addr;
	bool minus;
	int ret;

	ret = sp_take_addr(from, len, &minus, &addr, drop ? NULL : &ms);
	if (!ret)
		ret = sp_debug_lock();
	if (ret)
		return ret;
	ret = sp_fault_delay(node, &addr, minus ? 0 : ms);
	mutex_unlock(&sp_ctl);
	return ret ?: len;
}

static ssize_t sp_delay_write(struct file *file, const char __user *from,
			      size_t len, loff_t *pos)
{
	return sp_delay(file, from, len, false);
}

static const struct file_operations sp_delay_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = sp_delay_write,
	.llseek = noop_llseek,
};

static ssize_t sp_drop_write(struct file *file, const char __user *from,
			     size_t len, loff_t *pos)
{
	return sp_delay(file, from, len, true);
}

static const struct file_operations sp_drop_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = sp_drop_write,
	.llseek = noop_llseek,
};

void sp_debugfs_node_add(struct sp_node *node)
{
	node->dir = debugfs_create_dir(node->name, sp_debug_root);
	debugfs_create_file("break", 0200, node->dir, node, &sp_break_fops);
	debugfs_create_file("cut", 0200, node->dir, node, &sp_cut_fops);
	debugfs_create_file("delay", 0200, node->dir, node, &sp_delay_fops);
	debugfs_create_file("drop", 0200, node->dir, node, &sp_drop_fops);
}

void sp_debugfs_node_del(struct sp_node *node)
{
	debugfs_remove(node->dir);
	node->dir = NULL;
}

void sp_debugfs_init(void)
{
	sp_debug_root = debugfs_create_dir("spindle", NULL);
}

void sp_debugfs_exit(void)
{
	debugfs_remove(sp_debug_root);
	sp_debug_root = NULL;
}
