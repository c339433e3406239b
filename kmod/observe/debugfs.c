// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/spindle/NODE/GROUP/sst: the shared state table as this
 * node sees it. For people: the format may change.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "../engine.h"
#include "../group.h"
#include "observe.h"

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
	const struct sp_lane *lane = &g->core.order.lanes[rank];

	seq_printf(m, "lane %u node %u round %llu count %llu taken %llu freed %llu tail %llu head %llu",
		   rank, lane->node, READ_ONCE(lane->now.round),
		   READ_ONCE(lane->now.count), READ_ONCE(lane->taken),
		   READ_ONCE(lane->freed), READ_ONCE(lane->now.tail),
		   READ_ONCE(lane->head));
	if (lane->node == g->self) {
		const struct sp_tx *tx = &g->lanes[lane->lane].tx;

		seq_printf(m, " own round %llu count %llu freed %llu tail %llu head %llu",
			   READ_ONCE(tx->now.round), READ_ONCE(tx->now.count),
			   READ_ONCE(tx->freed), READ_ONCE(tx->now.tail),
			   READ_ONCE(tx->head));
	}
	seq_putc(m, '\n');
}

static int sp_sst_show(struct seq_file *m, void *data)
{
	struct sp_group *g = m->private;
	u32 i;

	/* The memory of the view is there from then on. */
	if (sp_group_state(g) == SP_VIEW_FORMING || !g->ready)
		return 0;
	for (i = 0; i < g->view.nnodes; i++)
		sp_sst_row(m, g, i);
	for (i = 0; i < g->view.nlanes; i++)
		sp_sst_lane(m, g, i);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sp_sst);

void sp_debugfs_group_add(struct sp_group *g)
{
	g->dir = debugfs_create_dir(g->name, g->node->dir);
	debugfs_create_file("sst", 0400, g->dir, g, &sp_sst_fops);
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
}

void sp_debugfs_exit(void)
{
	debugfs_remove(sp_debug_root);
	sp_debug_root = NULL;
}
