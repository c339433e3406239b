/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What operators see. Nothing in here takes sp_ctl on the reading side: files
 * are removed under it, and removal waits for readers.
 */
#ifndef SPINDLE_OBSERVE_H
#define SPINDLE_OBSERVE_H

#include <linux/types.h>

struct sp_group;
struct sp_lane_tx;
struct sp_node;
struct sp_view;

int sp_observe_init(void);
void sp_observe_exit(void);
int sp_observe_node_add(struct sp_node *node);
void sp_observe_node_del(struct sp_node *node);
int sp_observe_group_add(struct sp_group *g);
void sp_observe_group_del(struct sp_group *g);

/* debugfs.c; none of it can fail in a way that matters. */
void sp_debugfs_init(void);
void sp_debugfs_exit(void);
void sp_debugfs_node_add(struct sp_node *node);
void sp_debugfs_node_del(struct sp_node *node);
void sp_debugfs_group_add(struct sp_group *g);
void sp_debugfs_group_del(struct sp_group *g);

/* slow.c */
size_t sp_slow_size(void);
int sp_slow_init(struct sp_group *g);
void sp_slow_view(struct sp_group *g, const struct sp_view *was);
void sp_slow_parted(struct sp_group *g, const struct sp_view *was);
void sp_slow_start(struct sp_group *g);
void sp_slow_stop(struct sp_group *g);
void sp_slow_exit(struct sp_group *g);
void sp_slow_arm(struct sp_group *g);
void sp_slow_starved(struct sp_group *g, struct sp_lane_tx *lane);
bool sp_slow_overdue(struct sp_group *g, struct sp_local *local);
bool sp_slow_watches(struct sp_group *g);
ssize_t sp_slow_show(struct sp_group *g, char *buf);

#endif /* SPINDLE_OBSERVE_H */
