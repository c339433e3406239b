// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that cannot be connected with, though they are there: what a cut cable does,
 * for tests, from one side of it and as often as they want.
 */
#include <linux/slab.h>

#include "fabric.h"

struct sp_cut {
	struct list_head on_node;
	struct sp_addr peer;
};

static struct sp_cut *sp_cut_find(const struct sp_node *node,
				  const struct sp_addr *peer)
{
	struct sp_cut *cut;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(cut, &node->cuts, on_node)
		if (!sp_addr_cmp(&cut->peer, peer))
			return cut;
	return NULL;
}

/**
 * sp_link_cut() - is the way to a peer cut
 * @node: the local end
 * @peer: the other end's address
 *
 * Context: sp_ctl is held.
 *
 * Return: true when it is.
 */
bool sp_link_cut(const struct sp_node *node, const struct sp_addr *peer)
{
	return sp_cut_find(node, peer);
}

/**
 * sp_node_cut() - cut the way to a peer, or mend it
 * @node: the local end
 * @peer: the other end's address
 * @cut: cut it: the connection is lost, if there is one, and there will be no other
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_node_cut(struct sp_node *node, const struct sp_addr *peer, bool cut)
{
	struct sp_cut *is = sp_cut_find(node, peer);
	struct sp_link *link;

	if (!cut) {
		if (is)
			list_del(&is->on_node);
		kfree(is);
		return 0;
	}
	if (!is) {
		is = kzalloc(sizeof(*is), GFP_KERNEL);
		if (!is)
			return -ENOMEM;
		is->peer = *peer;
		list_add_tail(&is->on_node, &node->cuts);
	}
	link = sp_link_find(node, peer);
	if (link && !sp_conn_lose(link, "cut by debugfs"))
		sp_link_set_state(link, SP_LINK_DOWN, -EHOSTDOWN);
	return 0;
}

/**
 * sp_node_mend() - mend all that is cut
 * @node: the local end, which nobody uses any more
 */
void sp_node_mend(struct sp_node *node)
{
	struct sp_cut *cut, *next;

	list_for_each_entry_safe(cut, next, &node->cuts, on_node)
		kfree(cut);
}
