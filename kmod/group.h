/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A group on one node: its life, its members, its view, its memory.
 *
 * The control plane (sp_ctl) forms it, installs its view and ends it. While
 * its state is SP_VIEW_ACTIVE the engine runs passes over it, under the
 * engine's lock. Programs send and receive without either:
 *
 *   what                    written by             read by          paired
 *   ----------------------  ---------------------  ---------------  -------------
 *   view.state              sp_ctl                 programs         release (C) /
 *                                                                   acquire (D)
 *   log, core.order         engine                 -                -
 *   published               engine, after the log  readers          release (E) /
 *                                                                   acquire (F)
 *   member cursor           its reader, after      engine           release (G) /
 *                           it has copied; who                      acquire (H)
 *                           fills the queue of
 *                           a detached member,
 *                           under its lock; the
 *                           engine, for mapped
 *                           deliveries
 *   lane tx                 writer and engine, under the lane's lock
 *   ring bytes, own lane    writer, in space that  engine's writes  the lane's
 *                           sp_tx_space() gave it                   lock
 */
#ifndef SPINDLE_GROUP_H
#define SPINDLE_GROUP_H

#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/sock.h>

#include "../uapi/linux/spindle.h"
#include "core/pass.h"
#include "fabric/fabric.h"

struct sp_engine;
struct sp_group;
struct sp_rings;
struct sp_slow;

/**
 * struct sp_lane_tx - an own lane: what its writer and the engine share
 * @lock: guards @tx; taken within the engine's lock
 * @tx: the sending side
 * @ring: the lane's bytes, mapped twice back to back
 * @member: whose it is; NULL once it has left. Written by the control plane
 *	under @lock
 * @starved: @tx.freed + 1 when its writer last found no room; 0 once it did
 */
struct sp_lane_tx {
	spinlock_t lock;
	struct sp_tx tx;
	u8 *ring;
	struct sp_local *member;
	u64 starved;
};

/**
 * struct sp_detached - a message that was copied out of its ring
 * @list: in &struct sp_queue
 * @log: what the order says of it
 * @data: its bytes
 */
struct sp_detached {
	struct list_head list;
	struct sp_log log;
	u8 data[];
};

/**
 * struct sp_queue - the messages of a detached member: see detach.c
 * @lock: guards the rest, and the member's cursor while it is detached. Never
 *	held across access to memory of a program
 * @messages: &struct sp_detached, oldest first
 * @reading: the one that a reader copies
 * @on: the member is detached. Changed under the socket's rx_lock; never
 *	turned off again in a group
 * @fill: fills it where that may take long. Queued by the engine while the
 *	member is on the group's list
 */
struct sp_queue {
	struct mutex lock;
	struct list_head messages;
	struct sp_detached *reading;
	bool on;
	struct work_struct fill;
};

/**
 * struct sp_local - a member of a group on this node: part of its socket
 * @on_group: on the group's list
 * @sk: the socket, to wake
 * @cookie: what this node calls the member; another one for each try to join
 * @flags: SP_MEMBER_*
 * @memcg: who pays for the memory of the group; held from the first try to join
 * @group: the group it is in, set under sp_ctl by who takes it in
 * @rank: its rank in the view, ~0 before
 * @lane: its lane, NULL when it does not send or before the view
 * @cursor: entries of the log it has consumed
 * @fin: it has shut down sending; under sp_ctl until the group is active
 * @deaf: it reads no more: whatever comes counts as consumed
 * @rings: what it shares with its program, or NULL; set once (release) under
 *	sp_ctl and the engine's lock
 * @queue: what was taken out of the rings for it
 * @join: how it comes to be in a group, while nobody waits for that; under
 *	sp_ctl
 */
struct sp_local {
	struct list_head on_group;
	struct sock *sk;
	u64 cookie;
	u32 flags;
	struct mem_cgroup *memcg;
	struct sp_group *group;
	u32 rank;
	struct sp_lane_tx *lane;
	u64 cursor;
	bool fin;
	bool deaf;
	struct sp_rings *rings;
	struct sp_queue queue;
	struct sp_join *join;
};

/**
 * struct sp_gpeer - another node of the group's view
 * @g: the group
 * @rank: the node's rank
 * @user: use of the link to it
 * @slab: replica of its slab
 * @mr: its permission to write there
 * @handle: what it calls (group, this peer) in rows and wakes
 * @iova: where this node's slab is in its memory
 * @rkey: key to that
 * @their_handle: what we call (group, ourselves) towards it
 * @asks: counts wakes that came, for the engine to notice
 * @seen: @asks when the engine last looked
 * @key_said: it was told where it may write
 * @key_heard: it has told us
 * @bye_said: it was told that we write nothing more
 * @bye_heard: it has told us
 * @again: a link that was left over has failed us once
 * @last: what the link must have completed before nothing of ours is resent
 */
struct sp_gpeer {
	struct sp_group *g;
	u32 rank;
	struct sp_link_user user;
	struct sp_slab *slab;
	struct ib_mr *mr;
	u32 handle;
	u64 iova;
	u32 rkey;
	u32 their_handle;
	atomic_t asks;
	int seen;
	bool key_said;
	bool key_heard;
	bool bye_said;
	bool bye_heard;
	bool again;
	u64 last;
};

/* A node that has members in a view that forms here. */
struct sp_joiner {
	struct list_head list;
	struct sp_group *g;
	struct sp_addr addr;
	struct sp_link_user user;
	bool told;	/* who the members are */
};

/*
 * One value a file in sysfs, the last two in debugfs; each is written by one
 * thread at a time.
 */
struct sp_counters {
	u64 delivered;
	u64 delivered_bytes;
	u64 nulls;
	u64 rdma_writes;
	u64 posts;
	u64 sends;
	u64 wakes_sent;
	atomic64_t wakes_received;
	u64 passes;
	u64 naps;
	atomic64_t copied_bytes;
	atomic64_t detach_nomem;
	atomic64_t receives;
	u64 looks;
};

/**
 * struct sp_group - a group on this node
 * @ref: members, works and sysfs readers hold it
 * @node: the node; a user of it
 * @on_node: on the node's list, under sp_ctl
 * @on_engine: on the engine's list of those awake, under the engine's lock
 * @on_kicked: on its list of those kicked, under its kick_lock
 * @engaged: the engine runs passes over it; likewise, changed under the
 *	engine's lock, too, when it becomes false
 * @name: its name
 * @gid: its number, made by its creator
 * @config: its configuration
 * @view: its view. Under sp_ctl, but for view.state: see the table above; what
 *	an installed view says never changes
 * @error: what it failed with, 0 or a negative errno; before view.state
 * @self: rank of this node in the view
 * @coordinator: node that forms the view
 * @forms: this node does
 * @coord: use of the link to the coordinator, while the view forms
 * @joiners: struct sp_joiner, on the coordinator
 * @locals: struct sp_local; changed under sp_ctl and the engine's lock
 * @slab: this node's slab
 * @peers: by node rank; that of this node is unused
 * @lanes: the own lanes
 * @core: the protocol
 * @published: entries of the log that readers may take
 * @kick: look at this group: set as sp_engine.stirred is
 * @faulty: errno of a pass, handled by @event
 * @closing: a pass has delivered the last message
 * @event: handles these under sp_ctl
 * @memory: bytes that are charged for the memory of the view; under sp_ctl
 * @memcg: who pays for the memory of the view; held
 * @make: makes that memory
 * @making: it is at work; under sp_ctl
 * @grants: grants again what found no room in a send queue
 * @ready: the memory of the view is there, and peers may be told of it
 * @lingered: looks taken at the group since it began to end
 * @ending: no local member is left, or it has failed; keys go back as the
 *	peers say bye
 * @linger: bound on that
 * @counters: see there
 * @batches_seen: @core.batches when its file in debugfs was last reset
 * @slow: who holds up the senders; from when the view's memory is made
 * @shown: it is in sysfs and debugfs; under sp_ctl
 * @kobj: its directory in sysfs
 * @kobj_gone: completed when nobody reads there any more
 * @dir: its directory in debugfs
 */
struct sp_group {
	struct kref ref;
	struct sp_node *node;
	struct list_head on_node;
	struct list_head on_engine;
	struct list_head on_kicked;
	bool engaged;
	char name[SP_NAME_LEN];
	u64 gid;
	struct sp_config config;
	struct sp_view view;
	int error;
	u32 self;
	struct sp_addr coordinator;
	bool forms;
	struct sp_link_user coord;
	struct list_head joiners;
	struct list_head locals;
	struct sp_slab *slab;
	struct sp_gpeer *peers;
	struct sp_lane_tx *lanes;
	struct sp_core core;
	u64 published;
	atomic_t kick;
	int faulty;
	bool closing;
	struct work_struct event;
	u64 memory;
	struct mem_cgroup *memcg;
	struct work_struct make;
	bool making;
	struct delayed_work grants;
	bool ready;
	u32 lingered;
	bool ending;
	struct delayed_work linger;
	struct sp_counters counters;
	struct sp_batches batches_seen[SP_STAGES];
	struct sp_slow *slow;
	bool shown;
	struct kobject kobj;
	struct completion kobj_gone;
	struct dentry *dir;
};

static inline enum sp_view_state sp_group_state(const struct sp_group *g)
{
	/* D in the table above. */
	return smp_load_acquire(&g->view.state);
}

/**
 * struct sp_join - a member asks to be taken into a group
 * @on_node: on the node's list, until it is done
 * @node: the node
 * @user: use of the link to the contact
 * @name: the group's name
 * @config: what is expected of it
 * @local: the member
 * @hops: how often we were sent on to another node
 * @again: a link that was left over has failed us once
 * @result: how it ended
 * @done: it has ended; a program waits for it, unless there is @ended
 * @ended: called when it ends, under sp_ctl; or NULL
 * @end: when it takes too long, and to free it, if there is @ended
 */
struct sp_join {
	struct list_head on_node;
	struct sp_node *node;
	struct sp_link_user user;
	char name[SP_NAME_LEN];
	struct sp_config config;
	struct sp_local *local;
	u32 hops;
	bool again;
	int result;
	struct completion done;
	void (*ended)(struct sp_local *local, int result);
	struct delayed_work end;
};

/* group.c */
struct sp_group *sp_group_alloc(struct sp_node *node, const char *name,
				u64 gid, const struct sp_config *config);
void sp_group_put(struct sp_group *g);
struct sp_group *sp_group_find(struct sp_node *node, const char *name);
struct sp_group *sp_group_find_gid(struct sp_node *node, u64 gid);
void sp_group_attach(struct sp_group *g, struct sp_local *local);
void sp_group_detach(struct sp_group *g, struct sp_local *local);
void sp_group_install(struct sp_group *g);
void sp_group_fail(struct sp_group *g, int error);
void sp_group_end(struct sp_group *g, int error);
void sp_group_key(struct sp_group *g, const struct sp_addr *from,
		  const struct sp_msg_key *key);
void sp_group_bye(struct sp_group *g, const struct sp_addr *from, int error);
bool sp_group_mute(struct sp_group *g, const struct sp_addr *from);
void sp_group_kick(struct sp_group *g);
void sp_group_moved(struct sp_group *g);
void sp_group_sent(struct sp_group *g);
void sp_group_wake_members(struct sp_group *g, bool readers, bool writers);
void sp_group_row(struct sp_link *link, const struct sp_msg_row *row);
void sp_group_woken(struct sp_link *link, const struct sp_msg_wake *wake);
extern const struct sp_shell_ops sp_engine_ops;

/* memory.c */
u64 sp_memory_bytes(const struct sp_view *v, const struct sp_config *cfg,
		    u32 self, u32 max_pages);
int sp_memory_make(struct sp_group *g);
void sp_memory_free(struct sp_group *g);

/* mmap.c: rings that programs map */
bool sp_rings_mapped(const struct sp_local *local, u32 flag);
void sp_rings_collect(struct sp_group *g, struct sp_lane_tx *lane);
u64 sp_rings_released(struct sp_group *g, struct sp_local *local);
bool sp_rings_missed(const struct sp_group *g);
void sp_rings_tell(struct sp_group *g, bool blocks);
void sp_rings_kick(struct sp_group *g, struct sp_local *local);
void sp_rings_state(const struct sp_group *g, struct sp_local *local);
bool sp_rings_readable(const struct sp_local *local);
bool sp_rings_writable(const struct sp_local *local);
void sp_rings_free(struct sp_rings *r);

/* detach.c */
void sp_detach_init(struct sp_local *local);
void sp_detach_stop(struct sp_local *local);
void sp_detach_exit(struct sp_local *local);
int sp_detach_set(struct sock *sk, bool on);
void sp_detach_all(struct sp_group *g);
struct sp_detached *sp_detach_first(struct sp_group *g, struct sp_local *local);
void sp_detach_done(struct sp_group *g, struct sp_local *local, bool taken);
void sp_detach_purge(struct sp_local *local);

/* member.c: forming a view */
int sp_member_create(struct sp_node *node, const char *name,
		     const struct sp_config *config, struct sp_local *local);
int sp_member_join(struct sp_node *node, const char *name,
		   const struct sp_addr *contact,
		   const struct sp_config *config, struct sp_local *local,
		   long timeout);
int sp_member_join_begin(struct sp_node *node, const char *name,
			 const struct sp_addr *contact,
			 const struct sp_config *config, struct sp_local *local,
			 long timeout,
			 void (*ended)(struct sp_local *local, int result));
void sp_member_join_cancel(struct sp_local *local);
void sp_member_leave(struct sp_group *g, struct sp_local *local);
int sp_member_message(struct sp_link *link, const struct sp_msg *msg);
void sp_member_release(struct sp_group *g, int error);
void sp_member_removed(struct sp_node *node);
void sp_member_early(struct sp_group *g);
void sp_member_forget(struct sp_node *node);

extern struct xarray sp_handles;

#endif /* SPINDLE_GROUP_H */
