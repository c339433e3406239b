/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A group on one node: its life, its members, its views, its memory.
 *
 * The control plane (sp_ctl) forms it, agrees with the other nodes on its views,
 * installs them and ends it. While its state is SP_VIEW_ACTIVE the engine runs
 * passes over it, under the engine's lock. Programs send and receive without
 * either:
 *
 *   what                    written by             read by          paired
 *   ----------------------  ---------------------  ---------------  -------------
 *   view.state              sp_ctl                 programs         release (C) /
 *                                                                   acquire (D)
 *   log, core.order         engine; sp_ctl with    -                -
 *                           the engine's lock
 *   published               likewise, after the    readers          release (E) /
 *                           log                                     acquire (F)
 *   member end              sp_ctl with the        its reader       release (I) /
 *                           engine's lock, after                    acquire (J)
 *                           published
 *   member cursor           its reader, after      engine           release (G) /
 *                           it has copied; who                      acquire (H)
 *                           passes by what it
 *                           does not want, under
 *                           its rx_lock; who
 *                           fills the queue of
 *                           a detached member,
 *                           under its lock; the
 *                           engine, for mapped
 *                           deliveries
 *   member deaf             its program; sp_ctl,     its reader       release (K) /
 *                           after evicted                           acquire (L)
 *   lane tx                 writer and engine, under the lane's lock
 *   ring bytes, own lane    writer, in space that  engine's writes  the lane's
 *                           sp_tx_space() gave it                   lock
 *   events                  sp_ctl with the        programs         events_lock
 *                           engine's lock
 *   lane received           engine; sp_ctl with    programs         the wakeup that
 *                           the engine's lock                       follows
 *   lane awaited            programs               engine           the lane's lock
 *   member syncs            program; its reader    engine           the lane's lock
 *                           clears
 *
 * What breaks without them: C/D: a program sees the state and a rank, lane or
 * error of before. E/F: a reader copies an entry of the log that is not written
 * yet. G/H: the engine gives room away that a reader still copies from. I/J: a
 * member that has left takes the last messages of its view for the end. K/L: a reader
 * that was evicted takes that for the end of its stream. Without a
 * lane's lock a program waits for what the engine has just seen, and the engine does
 * not know that it does.
 */
#ifndef SPINDLE_GROUP_H
#define SPINDLE_GROUP_H

#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/sock.h>

#include "../uapi/linux/spindle.h"
#include "core/ballot.h"
#include "core/pass.h"
#include "fabric/fabric.h"

struct sp_engine;
struct sp_group;
struct sp_rings;
struct sp_slow;

/**
 * struct sp_event - an event of a group's stream: a view begins
 * @ref: the group, as long as a reader may come by it, and readers hold it
 * @on_group: on the group's list, under its events_lock
 * @type: enum spindle_event_type
 * @at: its entry in the log, counted from the first
 * @seq: the turn it comes after
 * @began: when it was made
 * @view: the view
 * @stayed: rank in it from which on members come with it
 * @nleft: members of the view before that are not in it
 * @left: they, with their ranks in that view
 *
 * Does not change once it is published, but for @on_group.
 */
struct sp_event {
	struct kref ref;
	struct list_head on_group;
	u32 type;
	u64 at;
	s64 seq;
	ktime_t began;
	struct sp_view view;
	u32 stayed;
	u32 nleft;
	struct sp_left {
		struct sp_addr addr;
		u32 rank;
		u32 uid;
		u32 flags;
		u32 reason;
	} left[];
};

/**
 * struct sp_lane_slot - a lane on this node: an own one, or a replica
 * @slab: where it is; NULL: nowhere, the slot is free
 * @addr: the node that owns it
 * @peer: that node as long as it may write here; NULL for an own lane
 * @mr: its permission to write here, NULL while there is none
 * @nr: the lane's number there
 * @cookie: what that node calls its member
 * @tx: of an own lane
 *
 * Written under sp_ctl and the engine's lock, @slab and @addr under slots_lock, too.
 * The slot stays as it is until all members that read on have read what the log says
 * of it. Who may be deaf or closed meanwhile holds the memory: see sp_rx_hold().
 */
struct sp_lane_slot {
	struct sp_slab *slab;
	struct sp_addr addr;
	struct sp_group_peer *peer;
	struct ib_mr *mr;
	u32 nr;
	u64 cookie;
	struct sp_lane_tx *tx;
};

/**
 * struct sp_lane_tx - an own lane: what its writer and the engine share
 * @lock: guards @tx; taken within the engine's lock
 * @tx: the sending side
 * @slab: the lane's descriptors and bytes
 * @member: whose it is; NULL once it has left. Written by the control plane
 *	under @lock
 * @starved: @tx.freed + 1 when its writer last found no room; 0 once it did
 * @received: so many of its descriptors every node has received
 * @awaited: so many of them a program waits for all readers to be done with; only grows
 * @slot: its slot; does not change
 * @cookie: what this node calls the member; likewise
 * @leaving: its member is to leave once all it has sent was received everywhere:
 *	enum sp_reason; SP_STAYS: it is not, or that was said. Under sp_ctl; the
 *	engine looks
 * @patience: jiffies that this is waited for without any progress; under sp_ctl
 * @until: likewise, from the last progress on
 * @progress: messages of it that had come everywhere then
 * @parked: it has no slot any more, but its member has not closed its socket: goes
 *	with that; under sp_ctl
 * @asked: when its writer last had a pass made: jiffies, the writer's voluntary
 *	switches, and what its member had read. Written by whoever sends, without a
 *	lock; only a guess depends on it
 */
struct sp_lane_tx {
	spinlock_t lock;
	struct sp_tx tx;
	struct sp_slab *slab;
	struct sp_local *member;
	u64 starved;
	u64 received;
	u64 awaited;
	u32 slot;
	u64 cookie;
	int leaving;
	unsigned long patience;
	unsigned long until;
	u64 progress;
	bool parked;
	struct {
		unsigned long at;
		unsigned long switches;
		u64 read;
	} asked;
};

/**
 * struct sp_lane_memory - memory of a lane that is in no slot yet, or no more
 * @slab: descriptors and bytes
 * @tx: of an own lane
 * @desc: of another's: for descriptors that were checked
 * @own: it is for an own lane
 */
struct sp_lane_memory {
	struct sp_slab *slab;
	struct sp_lane_tx *tx;
	struct sp_desc *desc;
	bool own;
};

/**
 * struct sp_welcome - what a node is told that comes with a view
 * @start: first turn of the view
 * @stayed: members that were in the view before
 * @at: by rank among the senders: the point at which the lane enters the view
 * @fin: likewise: its last message was delivered before
 */
struct sp_welcome {
	s64 start;
	u32 stayed;
	struct sp_point at[SP_MAX_MEMBERS];
	bool fin[SP_MAX_MEMBERS];
};

/**
 * struct sp_growth - memory of what comes with the next view
 * @made: it is there
 * @npeers: nodes that come
 * @peer: they
 * @nlanes: lanes that come
 * @lane: they
 */
struct sp_growth {
	bool made;
	u32 npeers;
	struct sp_group_peer *peer[SP_MAX_JOINS];
	u32 nlanes;
	struct sp_lane_memory lane[SP_MAX_JOINS];
};

/**
 * struct sp_detached - a message that was copied out of its ring, or an event
 * @list: in &struct sp_queue
 * @log: what the order says of it
 * @view: number of the view it belongs to
 * @event: the event, held; else NULL
 * @addr: node that sent it: its slot may be another's when it is read
 * @data: its bytes
 */
struct sp_detached {
	struct list_head list;
	struct sp_log log;
	u64 view;
	struct sp_event *event;
	struct sp_addr addr;
	u8 data[];
};

/**
 * struct sp_queue - the messages of a detached member: see detach.c
 * @lock: guards the rest, and the member's cursor while it is detached. Never
 *	held across access to memory of a program
 * @messages: &struct sp_detached, oldest first
 * @reading: the one that a reader copies
 * @taken: messages and events that its program has taken out of it
 * @due: @fill found the socket's rx_lock taken, or its program wants other events now: who
 *	drops that lock queues it
 * @on: the member is detached. Changed under the socket's rx_lock; never
 *	turned off again in a group
 * @fill: fills it; of a member that is not detached, passes by what it does not
 *	want, and what is for others alone. Queued by passes, when a view begins and by
 *	readers, while the member is on the group's list
 */
struct sp_queue {
	struct mutex lock;
	struct list_head messages;
	struct sp_detached *reading;
	u64 taken;
	bool due;
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
 * @rank: its rank in the view, ~0 before and after
 * @uid: its number, the same in all views; set before anything is published for it
 * @lane: its lane, NULL when it does not send or before the view
 * @cursor: entries of the log it has consumed
 * @view: number of the view at @cursor; guarded as that is. Where deliveries are
 *	mapped it stays what it was when that began
 * @end: entries of the log that are for it; ~0 as long as it is a member
 * @events: SPINDLE_WANT_* of its program; changed under the socket's rx_lock
 * @syncs: messages of which its program wants to be told by an event, once every node
 *	has received them, and once every reader is done with them; 0: it does not
 * @leaving: its program has said that it leaves; under sp_ctl and, when it has a
 *	lane, that lane's lock
 * @fin: it has shut down sending; under sp_ctl until the group is active
 * @deaf: it reads no more, or is closed: whatever comes counts as consumed
 * @evicted: it did not read: see evict.c; under sp_ctl, before @deaf
 * @lag: where the last look found it, whether senders waited for it, and
 *	for how many milliseconds, by looks, they have since. Under the engine's lock
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
	u32 uid;
	struct sp_lane_tx *lane;
	u64 cursor;
	u64 view;
	u64 end;
	u32 events;
	u64 syncs[2];
	bool leaving;
	bool fin;
	bool deaf;
	bool evicted;
	struct {
		u64 at;
		bool waited;
		u32 held;
	} lag;
	struct sp_rings *rings;
	struct sp_queue queue;
	struct sp_join *join;
};

/**
 * struct sp_target - memory of a peer that this node may write
 * @iova: where it begins
 * @rkey: key to it
 * @cookie: of a lane: the member that it is for
 */
struct sp_target {
	u64 iova;
	u32 rkey;
	u64 cookie;
};

/**
 * struct sp_group_peer - another node of the group
 * @on_group: on the group's list, under sp_ctl
 * @g: the group
 * @rank: its rank in the view, -1 once it is in it no more
 * @addr: its address
 * @name: that as text
 * @user: use of the link to it
 * @rows: replica of its rows
 * @mr: its permission to write there
 * @lanes: replicas of its lanes, by number; likewise written as slots are, and
 *	read in softirq
 * @synced: the CPU sees what the peer writes there through copies
 * @handle: what it calls (group, this peer) in rows and wakes
 * @to_rows: where this node's rows are in its memory
 * @to_lane: likewise this node's lanes, by number
 * @their_handle: what we call (group, ourselves) towards it
 * @asks: counts wakes that came, for the engine to notice
 * @seen: @asks when the engine last looked
 * @key_said: it was told where it may write
 * @key_heard: it has told us
 * @bye_said: it was told that we write nothing more
 * @bye_heard: it has told us
 * @bye: its bye, until the view that is about to begin has begun; @bye.gid is 0
 *	without one
 * @again: the link has failed us once, before the peer had said its key
 * @hopes: jiffies until which it is tried with other links then
 * @came: number of the view with which it has come, 0 when it was there before this
 *	node
 * @until: number of the last view it was in, once it is in it no more
 * @comes: it has come so, and has not said its key yet
 * @greeted: it was told of that view, by this link
 * @tries: times that there was no memory to grant it anything, since it was granted all
 * @refused: a connection was refused as if nobody listened
 * @listens: jiffies until which that may be by chance
 * @goes: it is in no view any more and has given all back: @free is queued
 * @retired: what its link must have completed before an own lane that is over is
 *	read by no request
 * @last: what the link must have completed before nothing of ours is resent
 * @since: jiffies when it has come with a view, or was in the view no more
 * @report: a report of it that comes in parts
 * @got: bytes of that so far
 * @total: bytes of it in all
 * @early: its last report of a view that is not installed here yet, if
 *	@early->view is not 0
 * @pushed: what &struct sp_peer has for it
 * @free: frees it
 */
struct sp_group_peer {
	struct list_head on_group;
	struct sp_group *g;
	s32 rank;
	struct sp_addr addr;
	char name[64];
	struct sp_link_user user;
	struct sp_slab *rows;
	struct ib_mr *mr;
	struct sp_slab *lanes[SP_MAX_NODE_LANES];
	bool synced;
	u32 handle;
	struct sp_target to_rows;
	struct sp_target to_lane[SP_MAX_NODE_LANES];
	u32 their_handle;
	atomic_t asks;
	int seen;
	bool key_said;
	bool key_heard;
	bool bye_said;
	bool bye_heard;
	struct sp_msg_bye bye;
	bool again;
	unsigned long hopes;
	u64 came;
	u64 until;
	bool comes;
	bool greeted;
	u32 tries;
	bool refused;
	unsigned long listens;
	bool goes;
	u64 retired;
	u64 last;
	unsigned long since;
	u8 *report;
	u32 got;
	u32 total;
	struct sp_report *early;
	struct sp_pushed *pushed;
	struct rcu_work free;
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
 * One value a file in sysfs, @receives and @looks in debugfs; @gone_messages and
 * @gone_bytes, which own lanes sent that are no more, are a part of one. What is not
 * atomic is written under the engine's lock, or under sp_ctl.
 */
struct sp_counters {
	u64 gone_messages;
	u64 gone_bytes;
	u64 delivered;
	u64 delivered_bytes;
	u64 nulls;
	u64 rdma_writes;
	u64 posts;
	u64 sends;
	u64 wakes_sent;
	atomic64_t wakes_received;
	u64 passes;
	u64 thread_passes;
	u64 naps;
	atomic64_t copied_bytes;
	atomic64_t detach_nomem;
	atomic64_t receives;
	u64 looks;
	u64 view_changes;
	u64 suspicions;
	u64 minorities;
	u64 evictions;
	u64 reconnects;
	u64 view_change_us;
};

/**
 * struct sp_group - a group on this node
 * @ref: members, works and sysfs readers hold it
 * @node: the node; a user of it
 * @on_node: on the node's list, under sp_ctl
 * @on_engine: on the engine's list of those awake, under the engine's lock
 * @rests: it rests, so says its last pass; likewise
 * @rest_end: when it has done so for long enough, in jiffies; likewise
 * @privates: private messages published when readers were last made to pass by them;
 *	under the engine's lock
 * @flows: messages follow one another, so said its last pass; likewise
 * @on_kicked: on its list of those kicked, under its kick_lock
 * @engaged: the engine runs passes over it; likewise, changed under the
 *	engine's lock, too, when it becomes false
 * @name: its name
 * @gid: its number, made by its creator
 * @config: its configuration
 * @view: its view. Changed under sp_ctl and, once it is active, the engine's lock;
 *	but for view.state: see the table above. Programs take @current_view
 * @error: what it failed with, 0 or a negative errno; before view.state
 * @self: rank of this node in the view
 * @coordinator: node that forms the view
 * @forms: this node does
 * @coord: use of the link to the coordinator, while the view forms
 * @joiners: struct sp_joiner, on the coordinator
 * @locals: struct sp_local; changed under sp_ctl and the engine's lock
 * @lay: layout of the slab of each lane
 * @peers: struct sp_group_peer, in the order of their ranks; under sp_ctl
 * @peer: of these, those of the view, by rank; NULL for this node. Changed under
 *	sp_ctl and the engine's lock
 * @slots_lock: guards whose memory is in which of @slots, for who maps it or copies
 *	from it (bh); innermost
 * @map_sem: held for read while pages of a slot are put into a page table; who has
 *	cleared a slot takes it before he looks for them there. Taken within sp_ctl
 *	(write) or a program's mmap_lock (read)
 * @nparked: lanes of members that have left without closing; under sp_ctl
 * @slots: lanes of the view, and those that are still read from: SP_MAX_SLOTS
 * @nlanes: one more than the highest number of an own lane
 * @lanes: the own lanes, by number; NULL where there is none
 * @core: the protocol
 * @published: entries of the log that readers may take
 * @kick: look at this group: set as sp_engine.stirred is
 * @faulty: nodes in whose writes passes have found a fault, by rank; under the
 *	engine's lock
 * @closing: the last message was delivered
 * @event: handles these under sp_ctl
 * @ballot: this node's part in the end of the view; under sp_ctl, like all up to
 *	@next
 * @reports: for it: of this view and of the one before, in turn
 * @dirty: the own report has changed
 * @stepping: sp_views_step() is at work
 * @restep: and is to go on
 * @dropped: nodes of the view, by rank, that are suspected and are neither read
 *	nor written to any more
 * @minority: no majority of the view is heard: it waits for one. Written under sp_ctl by
 *	sp_views_set_minority(), which then wakes all; read anywhere. Pairs with the barrier
 *	of sp_state_change(): without it who is about to sleep might miss both
 * @began: when this node has wedged
 * @next: for the next view
 * @spare: its peers
 * @events_lock: guards @events, @nevents and @current_view
 * @events: struct sp_event that readers may still come by, oldest first
 * @nevents: how many these are
 * @current_view: that of the view, NULL before the first
 * @growth: for the next view, between the decision and its beginning
 * @first: number of the first view that this node was in; 0 when it was there from
 *	the beginning
 * @welcome: where the order was when this node came, until its memory is made; NULL
 *	for who was there from the first view on
 * @greeting: what nodes are told that come with the view: struct sp_wire_welcome
 * @greeting_len: bytes of that, 0 when nobody came with it
 * @asks: struct sp_ask: programs that wait for a view with them
 * @tend: gives back what nodes had that are in the view no more, and looks after
 *	members that are to leave. Holds a reference while it is queued
 * @memory: bytes that are charged for the memory of the view, and for what is left
 *	of those before; under sp_ctl
 * @to_make: how many of these the next work of @make takes. Under sp_ctl, and not
 *	changed while @making
 * @memcg: who pays for the memory of the view; held
 * @make: makes that memory
 * @making: it is at work; under sp_ctl
 * @grants: grants again what found no room in a send queue
 * @ready: the memory of the view is there, and peers may be told of it
 * @lingered: looks taken at the group since it began to end, while its peers were heard
 * @ending: no local member is left, or it has failed; keys go back as the
 *	peers say bye
 * @linger: bound on that
 * @row: a row that is being sent, with what it carries; under the engine's lock
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
	bool rests;
	unsigned long rest_end;
	u64 privates;
	bool flows;
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
	struct sp_layout lay;
	struct list_head peers;
	struct sp_group_peer *peer[SP_MAX_MEMBERS];
	spinlock_t slots_lock;
	struct rw_semaphore map_sem;
	u32 nparked;
	struct sp_lane_slot *slots;
	u32 nlanes;
	struct sp_lane_tx *lanes[SP_MAX_NODE_LANES];
	struct sp_core core;
	u64 published;
	atomic_t kick;
	u64 faulty;
	bool closing;
	struct work_struct event;
	struct sp_ballot ballot;
	struct sp_report *reports[2];
	bool dirty;
	bool stepping;
	bool restep;
	u64 dropped;
	bool minority;
	ktime_t began;
	struct sp_next *next;
	struct sp_peer *spare;
	spinlock_t events_lock;
	struct list_head events;
	u32 nevents;
	struct sp_event *current_view;
	struct sp_growth *growth;
	u64 first;
	struct sp_welcome *welcome;
	u8 *greeting;
	u32 greeting_len;
	struct list_head asks;
	struct delayed_work tend;
	u64 memory;
	u64 to_make;
	struct mem_cgroup *memcg;
	struct work_struct make;
	bool making;
	struct delayed_work grants;
	bool ready;
	u32 lingered;
	bool ending;
	struct delayed_work linger;
	u64 row[SP_MSG_MAX / sizeof(u64)];
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

/* The slot of the lane of a message in the log. */
static inline const struct sp_lane_slot *
sp_group_slot(const struct sp_group *g, const struct sp_log *log)
{
	return &g->slots[log->lane & SP_LOG_SLOT];
}

/*
 * Messages are pushed by whole units, but for the last: what is left of a private message
 * behind one that is to be committed at @off goes to nobody. The lane's lock is held.
 */
static inline void sp_lane_tx_pad(struct sp_lane_tx *lane, u64 off, u32 len)
{
	if (lane->tx.privates)
		memset(lane->slab->ring + off + len, 0, sp_units(len) * SP_UNIT - len);
}

/* Is an entry of the log a private message? */
static inline bool sp_log_private(const struct sp_log *log)
{
	return log->flags & SP_DESC_PRIVATE;
}

/* Is one with these flags a message, and not for another member alone? */
static inline bool sp_log_message(const struct sp_local *local, u32 flags)
{
	if (flags & SP_DESC_PRIVATE)
		return sp_desc_uid(flags) == local->uid;
	return !(flags & (SP_DESC_FIN | SP_LOG_EVENT));
}

/* Is a member in no view any more? All that is for it is published then. */
static inline bool sp_local_out(const struct sp_local *local)
{
	/* J in the table above. */
	return smp_load_acquire(&local->end) != ~0ULL;
}

/* Was a member put out because it did not read? */
static inline bool sp_local_evicted(const struct sp_local *local)
{
	return READ_ONCE(local->evicted);
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
 * @gid: the group that will take it in with a view to come; else 0
 * @nothers: nodes that can be asked should the contact be lost
 * @others: they
 * @parts: struct sp_parts: welcomes that come in parts
 * @comes: the view has begun, here
 * @asked: another node was asked since, which may know the group by another number
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
	u64 gid;
	u32 nothers;
	struct sp_addr others[SP_OTHERS_MAX];
	struct list_head parts;
	bool comes;
	bool asked;
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
int sp_group_leave(struct sp_group *g, struct sp_local *local,
		   enum sp_reason reason);
void sp_group_install(struct sp_group *g);
void sp_group_senders(struct sp_view *v);
void sp_group_activate(struct sp_group *g);
void sp_group_close(struct sp_group *g);
void sp_group_fail(struct sp_group *g, int error);
void sp_group_end(struct sp_group *g, int error);
void sp_group_state_changed(struct sp_group *g);
void sp_group_kick(struct sp_group *g);
void sp_group_raise(struct sp_group *g);
void sp_group_moved(struct sp_group *g);
void sp_group_consumed(struct sp_group *g);
void sp_group_sent(struct sp_group *g, struct sp_local *local);
void sp_group_wake_members(struct sp_group *g, bool readers, bool writers);
void sp_group_row(struct sp_link *link, const struct sp_msg_row *row);
void sp_group_woken(struct sp_link *link, const struct sp_msg_wake *wake);
extern const struct sp_shell_ops sp_engine_ops;
u32 sp_smc_carry_max(u32 lanes);

/* peer.c: the other nodes: links, keys, and giving them back */
struct sp_group_peer *sp_peer_alloc(struct sp_group *g,
				    const struct sp_addr *addr);
int sp_peers_init(struct sp_group *g);
int sp_peers_name(struct sp_group *g);
int sp_peer_meet(struct sp_group_peer *gp);
void sp_peer_say_more(struct sp_group_peer *gp);
void sp_peer_opens(struct sp_group *g);
void sp_peers_byes(struct sp_group *g);
bool sp_peer_past(const struct sp_group_peer *gp, u64 last);
void sp_peer_forget(struct sp_group_peer *gp);
void sp_peers_free(struct sp_group *g);
int sp_peers_connect(struct sp_group *g);
void sp_peers_grant(struct work_struct *work);
struct sp_group_peer *sp_peer_find(struct sp_group *g,
				   const struct sp_addr *addr);
bool sp_peers_keyed(const struct sp_group *g);
void sp_peer_key(struct sp_group *g, const struct sp_addr *from,
		 const struct sp_msg_key *key);
int sp_peer_when(struct sp_group *g, const struct sp_link *link,
		 const struct sp_msg_key *key);
void sp_peer_greet(struct sp_group *g, struct sp_link *link);
void sp_peer_bye(struct sp_group *g, struct sp_link *link,
		 const struct sp_msg_bye *bye);
struct sp_group *sp_peer_meant(struct sp_link *link, const struct sp_msg_bye *bye);
bool sp_peer_mute(struct sp_group *g, const struct sp_addr *from);
void sp_peer_say_bye(struct sp_group_peer *gp, int error);
void sp_peer_done(struct sp_group_peer *gp);
bool sp_peer_flushed(struct sp_group_peer *gp);
void sp_peers_flushed(struct sp_link *link);
bool sp_peer_reap(struct sp_group_peer *gp);
void sp_peer_drop(struct sp_group_peer *gp);

/* views.c: from view to view */
int sp_views_begin(struct sp_group *g);
bool sp_views_wedged(const struct sp_group *g);
void sp_views_step(struct sp_group *g);
void sp_views_suspect(struct sp_group *g, struct sp_group_peer *gp,
		      const char *why);
bool sp_views_wait(struct sp_group *g);
void sp_views_doubt(struct sp_group *g, u32 node, const char *why);
void sp_views_faulty(struct sp_group *g, u64 nodes);
void sp_views_report(struct sp_group *g, struct sp_link *link,
		     const struct sp_msg_part *msg);
void sp_views_fail(struct sp_group *g, int error);
void sp_views_put_out(struct sp_group *g);
bool sp_views_live(const struct sp_group *g);
void sp_views_tell(struct sp_group_peer *gp);
void sp_views_grown(struct sp_group *g);
void sp_views_orphaned(struct sp_group *g);
int sp_parts_say(struct sp_link *link, u16 type, struct sp_msg_part *msg,
		 u64 gid, const void *data, u32 len);
void sp_views_tend(struct work_struct *work);
void sp_views_tend_soon(struct sp_group *g);
void sp_views_tend_now(struct sp_group *g);

/* welcome.c: programs and nodes that come */
int sp_ask(struct sp_group *g, const struct sp_addr *addr, u64 cookie, u32 flags);
bool sp_ask_cancel(struct sp_group *g, const struct sp_addr *addr, u64 cookie);
void sp_asks_feed(struct sp_group *g);
void sp_asks_end(struct sp_group *g, int error);
bool sp_ask_waits(struct sp_group *g, const struct sp_addr *addr, u64 cookie);
u32 sp_asks_others(const struct sp_group *g, const struct sp_addr *except,
		   struct sp_addr *to);
void sp_greeting_make(struct sp_group *g, u32 stayed);
int sp_greeting_say(struct sp_group_peer *gp);
int sp_welcome_decode(const u8 *data, u32 len, struct sp_view *v,
		      struct sp_welcome *welcome);

/* grow.c: memory of what comes with a view */
int sp_grow(struct sp_group *g, const struct sp_view *next);
int sp_grow_make(struct sp_group *g);
void sp_grow_drop(struct sp_group *g);
struct sp_group_peer **sp_grow_peer(struct sp_group *g,
				    const struct sp_addr *addr);
u32 sp_grow_lane(struct sp_group *g, const struct sp_member *m,
		 struct sp_group_peer *gp);
void sp_grow_sweep(struct sp_group *g);

/* evict.c: members that do not read */
void sp_evict_overdue(struct sp_group *g);

/* event.c: events in the stream */
struct sp_event *sp_event_make(const struct sp_view *view,
			       const struct sp_view *old,
			       const struct sp_proposal *p);
void sp_event_put(struct sp_event *ev);
int sp_event_publish(struct sp_group *g, struct sp_event *ev);
struct sp_event *sp_event_find(struct sp_group *g, u32 type, u32 number);
struct sp_event *sp_event_view(struct sp_group *g);
void sp_events_drop(struct sp_group *g, bool all);
bool sp_events_many(const struct sp_group *g);
size_t sp_event_size(const struct sp_event *ev);
void sp_event_state(const struct sp_log *log, u64 view, struct spindle_event *to);
void sp_event_give(const struct sp_event *ev, const struct sp_group *g,
		   const struct sp_local *local, struct spindle_event *to);

/* stable.c: what has come everywhere, and what was read everywhere */
void sp_stable_note(struct sp_group *g);
u32 sp_stable_due(const struct sp_local *local);

/* memory.c */
u64 sp_memory_lane_bytes(const struct sp_config *cfg, bool own, u32 max_pages);
u64 sp_memory_peer_bytes(u32 max_pages);
u64 sp_memory_event_bytes(void);
u64 sp_memory_bytes(const struct sp_view *v, const struct sp_config *cfg,
		    u32 self, u32 max_pages);
void sp_memory_unmap(struct sp_group *g);
int sp_memory_lane(struct sp_group *g, struct sp_lane_memory *lane);
void sp_memory_free_lane(struct sp_lane_memory *lane);
void sp_memory_use_lane(struct sp_group *g, u32 nr, const struct sp_member *m,
			struct sp_lane_memory *mem, const struct sp_point *at);
void sp_memory_bind(struct sp_group_peer *gp, u32 nr, u64 view);
void sp_memory_clear(struct sp_group *g, u32 nr, struct sp_lane_memory *mem);
int sp_memory_peer(struct sp_group_peer *gp);
void sp_memory_free_peer(struct sp_group_peer *gp);
void sp_memory_attach(struct sp_group_peer *gp, struct sp_peer *p);
int sp_memory_make(struct sp_group *g);
void sp_memory_free(struct sp_group *g);

/* mmap.c: rings that programs map */
bool sp_rings_mapped(const struct sp_local *local, u32 flag);
void sp_rings_collect(struct sp_group *g, struct sp_lane_tx *lane);
u64 sp_rings_released(struct sp_group *g, struct sp_local *local);
u64 sp_rings_read(const struct sp_local *local);
bool sp_rings_missed(const struct sp_group *g);
void sp_rings_publish(struct sp_group *g);
void sp_rings_tell(struct sp_group *g, bool blocks);
void sp_rings_kick(struct sp_group *g, struct sp_local *local);
void sp_rings_state(const struct sp_group *g, struct sp_local *local);
bool sp_rings_readable(const struct sp_local *local);
bool sp_rings_writable(const struct sp_local *local);
void sp_rings_forget(struct sp_group *g, u32 slot);
void sp_rings_blank(struct sp_group *g, struct sp_local *local);
void sp_rings_free(struct sp_rings *r);

/* detach.c */
void sp_detach_init(struct sp_local *local);
void sp_detach_stop(struct sp_local *local);
void sp_detach_exit(struct sp_local *local);
int sp_detach_set(struct sock *sk, bool on);
void sp_detach_all(struct sp_group *g);
void sp_detach_pass_by(struct sp_group *g);
struct sp_detached *sp_detach_first(struct sp_group *g, struct sp_local *local);
void sp_detach_done(struct sp_group *g, struct sp_local *local, bool taken);
void sp_detach_purge(struct sp_local *local);
void sp_detach_sift(struct sp_local *local);

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
void sp_member_early_answer(struct sp_node *node);
void sp_member_lost(struct sp_link *link);
void sp_member_forget(struct sp_node *node);
void sp_member_turned_away(struct sp_node *node, u64 cookie, int error,
			   const struct sp_addr *other);
struct sp_local *sp_member_due(struct sp_group *g, u64 cookie);
void sp_member_expect(struct sp_group *g, const struct sp_view *v);
void sp_member_come(struct sp_group *g);

extern struct xarray sp_handles;

#endif /* SPINDLE_GROUP_H */
