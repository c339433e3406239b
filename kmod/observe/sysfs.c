// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/spindle/NODE/GROUP: one value a file, as described in
 * Documentation/ABI/testing/sysfs-kernel-spindle.
 */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#include "../engine.h"
#include "../group.h"
#include "observe.h"

/* Groups are in it so that they have events; nodes are directories only. */
static struct kset *sp_root;

struct sp_attribute {
	struct attribute attr;
	ssize_t (*show)(struct sp_group *g, const struct sp_attribute *attr,
			char *buf);
	size_t offset;
};

#define SP_ATTR(_name, _show)						\
	static const struct sp_attribute sp_attr_##_name = {		\
		.attr = { .name = #_name, .mode = 0444 },		\
		.show = _show,						\
	}

#define SP_CONFIG(_name)						\
	static const struct sp_attribute sp_attr_##_name = {		\
		.attr = { .name = #_name, .mode = 0444 },		\
		.show = sp_show_config,					\
		.offset = offsetof(struct sp_config, _name),		\
	}

#define SP_COUNTER(_name)						\
	static const struct sp_attribute sp_attr_##_name = {		\
		.attr = { .name = #_name, .mode = 0444 },		\
		.show = sp_show_counter,				\
		.offset = offsetof(struct sp_counters, _name),		\
	}

#define SP_LANES(_name, _field)						\
	static const struct sp_attribute sp_attr_##_name = {		\
		.attr = { .name = #_name, .mode = 0444 },		\
		.show = sp_show_lanes,					\
		.offset = offsetof(struct sp_tx, _field),		\
	}

static ssize_t sp_show_state(struct sp_group *g,
			     const struct sp_attribute *attr, char *buf)
{
	static const char * const names[] = {
		[SP_VIEW_FORMING] = "forming",
		[SP_VIEW_ACTIVE] = "active",
		[SP_VIEW_CLOSED] = "closed",
		[SP_VIEW_FAILED] = "failed",
	};

	enum sp_view_state state = sp_group_state(g);

	return sysfs_emit(buf, "%s\n", state == SP_VIEW_ACTIVE && READ_ONCE(g->minority) ?
			  "minority" : names[state]);
}

static ssize_t sp_show_error(struct sp_group *g,
			     const struct sp_attribute *attr, char *buf)
{
	bool failed = sp_group_state(g) == SP_VIEW_FAILED;

	return sysfs_emit(buf, "%d\n", failed ? -g->error : 0);
}

/* The event of the view, held, or NULL before the first. */
static struct sp_event *sp_observe_view(struct sp_group *g)
{
	return sp_group_state(g) == SP_VIEW_FORMING ? NULL : sp_event_view(g);
}

static ssize_t sp_show_view(struct sp_group *g,
			    const struct sp_attribute *attr, char *buf)
{
	struct sp_event *ev = sp_observe_view(g);
	u64 id = ev ? ev->view.id : 0;

	sp_event_put(ev);
	return sysfs_emit(buf, "%llu\n", id);
}

static ssize_t sp_show_senders(struct sp_group *g,
			       const struct sp_attribute *attr, char *buf)
{
	struct sp_event *ev = sp_observe_view(g);
	u32 senders = ev ? ev->view.nlanes : g->config.senders;

	sp_event_put(ev);
	return sysfs_emit(buf, "%u\n", senders);
}

static ssize_t sp_show_members(struct sp_group *g,
			       const struct sp_attribute *attr, char *buf)
{
	struct sp_event *ev = sp_observe_view(g);
	u32 members = ev ? ev->view.nmembers : g->config.members;

	sp_event_put(ev);
	return sysfs_emit(buf, "%u\n", members);
}

/* Members that are not up to date, of what was delivered here. */
static ssize_t sp_show_stale(struct sp_group *g, const struct sp_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", (u32)hweight64(READ_ONCE(g->core.order.stale)));
}

static ssize_t sp_show_addresses(struct sp_group *g,
				 const struct sp_attribute *attr, char *buf)
{
	struct sp_event *ev = sp_observe_view(g);
	char name[64];
	int at = 0;
	u32 i;

	for (i = 0; ev && i < ev->view.nmembers; i++) {
		sp_addr_name(&ev->view.members[i].addr, name, sizeof(name));
		at += sysfs_emit_at(buf, at, "%s\n", name);
	}
	sp_event_put(ev);
	return at;
}

/* When the view began, by the clock on the wall. */
static ssize_t sp_show_view_time(struct sp_group *g,
				 const struct sp_attribute *attr, char *buf)
{
	struct sp_event *ev = sp_observe_view(g);
	struct timespec64 ts = ktime_to_timespec64(ev ? ev->began : 0);

	sp_event_put(ev);
	return sysfs_emit(buf, "%lld.%06ld\n", (s64)ts.tv_sec,
			  ts.tv_nsec / NSEC_PER_USEC);
}

/* Why it began: what became of members, each word once. */
static ssize_t sp_show_view_cause(struct sp_group *g,
				  const struct sp_attribute *attr, char *buf)
{
	static const char * const words[SP_REASONS] = {
		[SP_STAYS] = "joined",	/* nobody goes with that one */
		[SP_LEFT] = "left",
		[SP_EXITED] = "exited",
		[SP_LOST] = "lost",
		[SP_SLOW] = "slow",
	};
	struct sp_event *ev = sp_observe_view(g);
	u32 seen = 0;
	int at = 0;
	u32 i;

	if (!ev)
		return sysfs_emit(buf, "none\n");
	if (ev->stayed < ev->view.nmembers)
		seen = 1U << SP_STAYS;
	for (i = 0; i < ev->nleft; i++)
		seen |= 1U << ev->left[i].reason;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (seen >> i & 1)
			at += sysfs_emit_at(buf, at, "%s%s", at ? " " : "",
					    words[i]);
	sp_event_put(ev);
	return at + sysfs_emit_at(buf, at, "\n");
}

static ssize_t sp_show_config(struct sp_group *g,
			      const struct sp_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n",
			  *(u32 *)((u8 *)&g->config + attr->offset));
}

static ssize_t sp_show_counter(struct sp_group *g,
			       const struct sp_attribute *attr, char *buf)
{
	const u64 *value = (u64 *)((u8 *)&g->counters + attr->offset);

	return sysfs_emit(buf, "%llu\n", READ_ONCE(*value));
}

/* Over all lanes of the node; each is written under its own lock. */
static u64 sp_lanes_sum(struct sp_group *g, size_t offset)
{
	/* It ends after the file has gone. */
	struct sp_engine *engine = READ_ONCE(g->node->sdev->engine);
	u64 sum = 0;
	u32 i;

	/* Lanes come and go under it; a lane that is over may still be in its slot. */
	sp_engine_lock(engine);
	for (i = 0; i < SP_MAX_SLOTS; i++) {
		const struct sp_lane_tx *lane = g->slots[i].tx;

		if (lane)
			sum += READ_ONCE(*(u64 *)((u8 *)&lane->tx + offset));
	}
	sum += offset == offsetof(struct sp_tx, bytes) ?
	       g->counters.gone_bytes : g->counters.gone_messages;
	sp_engine_unlock(engine);
	return sum;
}

static ssize_t sp_show_lanes(struct sp_group *g,
			     const struct sp_attribute *attr, char *buf)
{
	u64 sum = 0;

	if (sp_group_state(g) != SP_VIEW_FORMING && READ_ONCE(g->ready))
		sum = sp_lanes_sum(g, attr->offset);
	return sysfs_emit(buf, "%llu\n", sum);
}

static ssize_t sp_show_slow(struct sp_group *g,
			    const struct sp_attribute *attr, char *buf)
{
	return sp_slow_show(g, buf);
}

static ssize_t sp_show_memory(struct sp_group *g,
			      const struct sp_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(g->memory));
}

SP_ATTR(state, sp_show_state);
SP_ATTR(error, sp_show_error);
SP_ATTR(view, sp_show_view);
SP_ATTR(view_time, sp_show_view_time);
SP_ATTR(view_cause, sp_show_view_cause);
SP_ATTR(senders, sp_show_senders);
SP_ATTR(addresses, sp_show_addresses);
SP_ATTR(slow, sp_show_slow);
SP_ATTR(memory, sp_show_memory);
SP_ATTR(members, sp_show_members);
SP_ATTR(stale, sp_show_stale);
SP_CONFIG(window);
SP_CONFIG(max_msg);
SP_CONFIG(depth);
SP_CONFIG(silent_ms);
SP_CONFIG(link_ms);
SP_CONFIG(evict_ms);

SP_LANES(sent, messages);
SP_LANES(sent_bytes, bytes);
SP_COUNTER(delivered);
SP_COUNTER(delivered_bytes);
SP_COUNTER(nulls);
SP_COUNTER(rdma_writes);
SP_COUNTER(posts);
SP_COUNTER(sends);
SP_COUNTER(wakes_sent);
SP_COUNTER(wakes_received);
SP_COUNTER(passes);
SP_COUNTER(thread_passes);
SP_COUNTER(naps);
SP_COUNTER(copied_bytes);
SP_COUNTER(detach_nomem);
SP_COUNTER(view_changes);
SP_COUNTER(view_change_us);
SP_COUNTER(suspicions);
SP_COUNTER(minorities);
SP_COUNTER(evictions);
SP_COUNTER(reconnects);

static const struct attribute *sp_group_attrs[] = {
	&sp_attr_state.attr,
	&sp_attr_error.attr,
	&sp_attr_view.attr,
	&sp_attr_view_time.attr,
	&sp_attr_view_cause.attr,
	&sp_attr_senders.attr,
	&sp_attr_addresses.attr,
	&sp_attr_slow.attr,
	&sp_attr_memory.attr,
	&sp_attr_members.attr,
	&sp_attr_stale.attr,
	&sp_attr_window.attr,
	&sp_attr_max_msg.attr,
	&sp_attr_depth.attr,
	&sp_attr_silent_ms.attr,
	&sp_attr_link_ms.attr,
	&sp_attr_evict_ms.attr,
	NULL
};

static const struct attribute *sp_counter_attrs[] = {
	&sp_attr_sent.attr,
	&sp_attr_sent_bytes.attr,
	&sp_attr_delivered.attr,
	&sp_attr_delivered_bytes.attr,
	&sp_attr_nulls.attr,
	&sp_attr_rdma_writes.attr,
	&sp_attr_posts.attr,
	&sp_attr_sends.attr,
	&sp_attr_wakes_sent.attr,
	&sp_attr_wakes_received.attr,
	&sp_attr_passes.attr,
	&sp_attr_thread_passes.attr,
	&sp_attr_naps.attr,
	&sp_attr_copied_bytes.attr,
	&sp_attr_detach_nomem.attr,
	&sp_attr_view_changes.attr,
	&sp_attr_view_change_us.attr,
	&sp_attr_suspicions.attr,
	&sp_attr_minorities.attr,
	&sp_attr_evictions.attr,
	&sp_attr_reconnects.attr,
	NULL
};

static const struct attribute_group sp_counter_group = {
	.name = "counters",
	.attrs = (struct attribute **)sp_counter_attrs,
};

static ssize_t sp_group_show(struct kobject *kobj, struct attribute *attr,
			     char *buf)
{
	const struct sp_attribute *a = container_of(attr, struct sp_attribute,
						    attr);

	return a->show(container_of(kobj, struct sp_group, kobj), a, buf);
}

static const struct sysfs_ops sp_sysfs_ops = {
	.show = sp_group_show,
};

static void sp_group_kobj_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct sp_group, kobj)->kobj_gone);
}

static struct kobj_type sp_group_ktype = {
	.sysfs_ops = &sp_sysfs_ops,
	.release = sp_group_kobj_release,
};

/**
 * sp_observe_group_add() - show a group
 * @g: the group, not shown; none that is shown has its name
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_observe_group_add(struct sp_group *g)
{
	int ret;

	/* kobject_init() does not take what a group that was hidden has left. */
	memset(&g->kobj, 0, sizeof(g->kobj));
	init_completion(&g->kobj_gone);
	g->kobj.kset = sp_root;
	ret = kobject_init_and_add(&g->kobj, &sp_group_ktype, g->node->kobj,
				   "%s", g->name);
	if (!ret)
		ret = sysfs_create_files(&g->kobj, sp_group_attrs);
	if (!ret)
		ret = sysfs_create_group(&g->kobj, &sp_counter_group);
	if (ret) {
		kobject_put(&g->kobj);
		wait_for_completion(&g->kobj_gone);
		return ret;
	}
	sp_debugfs_group_add(g);
	sp_slow_start(g);
	g->shown = true;
	return 0;
}

/**
 * sp_observe_group_del() - show a group no longer
 * @g: the group
 *
 * When it returns nobody reads any of its files. May be called again.
 * Context: sp_ctl is held, may sleep.
 */
void sp_observe_group_del(struct sp_group *g)
{
	if (!g->shown)
		return;
	sp_slow_stop(g);
	g->shown = false;
	sp_debugfs_group_del(g);
	kobject_del(&g->kobj);
	kobject_put(&g->kobj);
	wait_for_completion(&g->kobj_gone);
}

/**
 * sp_observe_node_add() - show a node
 * @node: the node
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_observe_node_add(struct sp_node *node)
{
	node->kobj = kobject_create_and_add(node->name, &sp_root->kobj);
	if (!node->kobj)
		return -ENOMEM;
	sp_debugfs_node_add(node);
	return 0;
}

/**
 * sp_observe_node_del() - show a node no longer; its groups are not shown
 * @node: the node
 *
 * May be called again. Context: sp_ctl is held, may sleep.
 */
void sp_observe_node_del(struct sp_node *node)
{
	if (!node->kobj)
		return;
	sp_debugfs_node_del(node);
	kobject_put(node->kobj);
	node->kobj = NULL;
}

/**
 * sp_observe_init() - make the directories that nodes and groups go into
 *
 * Return: 0 or a negative errno.
 */
int sp_observe_init(void)
{
	sp_root = kset_create_and_add("spindle", NULL, kernel_kobj);
	if (!sp_root)
		return -ENOMEM;
	sp_debugfs_init();
	return 0;
}

/**
 * sp_observe_exit() - undo sp_observe_init()
 */
void sp_observe_exit(void)
{
	sp_debugfs_exit();
	kset_unregister(sp_root);
}
