/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A group on one node: its life, its members, its views, its memory.
 *
 * The control plane (sp_ctl) forms it, agrees on its views, installs them and
 * ends it. While its state is SP_VIEW_ACTIVE the engine runs passes over it,
 * under the engine's lock. Programs send and receive without either:
 *
 *   what                    written by             read by          paired
 *   ----------------------  ---------------------  ---------------  -------------
 *   view.state              sp_ctl                 programs         release (C) /
 *                                                                   acquire (D)
 *   log, core.order         engine; sp_ctl with    -                -
 *                           the engine's lock
 *   published               likewise, after the    readers          release (E) /
 *                           log                                     acquire (F)
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
 *   records                 sp_ctl                 programs         record_lock
 *   slots                   sp_ctl, before what    readers of what  E / F
 *                           names them is          names them
 *                           published
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
#include "core/agree.h"
#include "core/pass.h"
#include "fabric/fabric.h"
#include "limits.h"

struct sp_engine;
struct sp_group;
struct sp_key;
struct sp_object;
struct sp_rings;
struct sp_slow;

/**
 * struct sp_record - an event of a group's stream
 * @ref: the group, as long as a reader may come by it, and readers hold it
 * @on_group: on the group's list, under its record_lock
 * @type: enum spindle_event_type
 * @number: counts them
 * @at: its entry in the log, counted from the first
 * @seq: the turn it comes after
 * @id: number of the view it speaks of
 * @error: the errno that the group ends with here, negative, or 0
 * @subject: rank of the member it speaks of, or ~0
 * @old: of type VIEW: number of the view before, 0: none
 * @view: of type VIEW: the view, else NULL; behind it in memory
 * @stayed: rank in it from which on members came with it
 * @nleft: members of the old view that are not in it
 * @left: they, with their ranks in the old view
 */
struct sp_record {
	struct kref ref;
	struct list_head on_group;
	u32 type;
	u32 number;
	u64 at;
	s64 seq;
	u64 id;
	int error;
	u32 subject;
	u64 old;
	struct sp_view *view;
	u32 stayed;
	u32 nleft;
	struct sp_left {
		struct sp_addr addr;
		u32 rank;
		u32 uid;
		u32 flags;
		u8 reason;
	} left[];
};

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
 * struct sp_lane_object - an object of a lane
 * @count: number of its descriptor
 * @object: the object, held; NULL: the entry is free
 * @view: view in which it is transferred; 0 before, ~0 after
 * @stable: every node has it
 * @unused: the entry is no user any more: see &struct sp_object
 */
struct sp_lane_object {
	u64 count;
	struct sp_object *object;
	u64 view;
	bool stable;
	bool unused;
};

/**
 * struct sp_slot_lane - a lane on this node, its own or a replica, in a slot
 * @g: the group
 * @slot: where in &struct sp_group.slots and in sp_order.lanes
 * @addr: whose it is: node
 * @cookie: likewise: member
 * @uid: likewise
 * @slab: its memory
 * @mr: its owner's permission to write there; NULL for own lanes
 * @dead: its member is in the view no more: it goes when nobody reads from it
 * @died: number of the first view that its member is not in
 * @desc: the order's copy of its descriptors; NULL for own lanes
 * @leaving: its member wants to leave, once all it has sent is received
 *	everywhere: enum sp_reason
 * @left_at: jiffies when that was said
 * @objects_lock: guards @objects; taken within the engine's lock and @tx.lock
 * @sealed: no more objects come; likewise
 * @objects: its objects that are not freed; and some that are, and are still on
 *	their way
 * @own: it is an own one
 * @tx: then, its sending side
 */
struct sp_slot_lane {
	struct sp_group *g;
	u32 slot;
	struct sp_addr addr;
	u64 cookie;
	u32 uid;
	struct sp_slab *slab;
	struct ib_mr *mr;
	bool dead;
	u64 died;
	struct sp_desc *desc;
	int leaving;
	unsigned long left_at;
	spinlock_t objects_lock;
	bool sealed;
	struct sp_lane_object objects[2 * SP_LANE_OBJECTS];
	bool own;
	struct sp_lane_tx tx;
};

/**
 * struct sp_detached - a message or an event that was taken out of the rings
 * @list: in &struct sp_queue
 * @log: what the order says of it
 * @view: of type VIEW: the view that it belongs to, held
 * @event: of an event that is in the order as such: that, held
 * @data: its bytes
 */
struct sp_detached {
	struct list_head list;
	struct sp_log log;
	struct sp_record *view;
	struct sp_record *event;
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
 * @cookie: what this node calls the member
 * @flags: SP_MEMBER_*
 * @memcg: who pays for the memory of the group; held from the first try to join
 * @payer: likewise, whose limits count
 * @key: the secret it brings, or NULL; changed under lock_sock before it joins
 * @group: the group it is in, set under sp_ctl by who takes it in
 * @rank: its rank in the view, ~0 before and after
 * @uid: its number among all members; with the first rank
 * @lane: its lane, NULL when it does not send or before the view. Changes from
 *	NULL once, before the view that begins it is published
 * @cursor: entries of the log it has consumed
 * @end: entries of the log that are for it; ~0 as long as it is a member.
 *	Stored (release) after what comes before it was published
 * @reason: why it is none any more: enum sp_reason
 * @record: of type VIEW: the view at its cursor, held; guarded as that is. NULL
 *	before it has come by the first one. Where deliveries are mapped it stays
 *	what it was when that began
 * @events: SPINDLE_WANT_* of its program; changed under the socket's rx_lock
 * @fin: it has shut down sending; under sp_ctl until the group is active
 * @deaf: it reads no more: whatever comes counts as consumed
 * @error: it was put out: why, a negative errno, and not what the group ends
 *	with; before @deaf
 * @leaving: it wants to leave, or to be put out; under sp_ctl
 * @rings: what it shares with its program, or NULL; set once (release) under
 *	sp_ctl and the engine's lock
 * @queue: what was taken out of the rings for it
 */
struct sp_local {
	struct list_head on_group;
	struct sock *sk;
	u64 cookie;
	u32 flags;
	struct mem_cgroup *memcg;
	struct sp_payer payer;
	struct sp_key *key;
	struct sp_group *group;
	u32 rank;
	u32 uid;
	struct sp_lane_tx *lane;
	u64 cursor;
	u64 end;
	int reason;
	struct sp_record *record;
	u32 events;
	bool fin;
	bool deaf;
	int error;
	int leaving;
	struct sp_rings *rings;
	struct sp_queue queue;
};

/* A lane of ours in a peer's memory; @cookie 0: none. */
struct sp_lane_key {
	u64 cookie;
	u64 iova;
	u32 rkey;
};

/**
 * struct sp_peer_node - another node of the group
 * @g: the group
 * @list: on @g->peers, under sp_ctl
 * @addr: its address
 * @name: that as text
 * @rank: its rank in the view, -1 once it is in no view any more
 * @user: use of the link to it
 * @rows: memory for its rows
 * @mr: its permission to write there
 * @handle: what it calls (group, this peer) in rows and wakes
 * @iova: where this node's rows are in its memory
 * @rkey: key to that
 * @their_handle: what we call (group, ourselves) towards it
 * @polled: it polls its rows
 * @keys: to own lanes, as they were heard
 * @to: of these, by number; the engine's
 * @pushed: of the core, see &struct sp_peer
 * @trusted: it has proved on this link that it knows the group's secret, or
 *	there is none; for who holds no lock
 * @asks: counts wakes that came, for the engine to notice
 * @seen: @asks when the engine last looked
 * @granted: it was told where it may write, on this link
 * @open: it has told us, on this link, and is not cut
 * @welcome: it is to be told of the view that took it in
 * @again: a link that was left over has failed us once
 * @lost: jiffies when its link was lost, or when we began to wait for it
 * @waits: @lost counts
 * @refused: times that it, being new, has refused a connection
 * @incarnation: of its node, 0 before the first link
 * @bye_said: it was told that we write nothing more
 * @bye_heard: it has told us
 * @last: what the link must have completed before nothing of ours is resent
 * @tell: a tell of it that is on its way, in parts
 * @tell_len: bytes of it so far
 * @tell_total: bytes of it in all
 * @tell_by: the link it comes by; never looked into
 * @early: its tell of the view after this one, or NULL
 * @readies: struct sp_early_ready: see rdmc.c
 * @nreadies: how many
 */
struct sp_peer_node {
	struct sp_group *g;
	struct list_head list;
	struct sp_addr addr;
	char name[64];
	s32 rank;
	struct sp_link_user user;
	struct sp_slab *rows;
	struct ib_mr *mr;
	u32 handle;
	u64 iova;
	u32 rkey;
	u32 their_handle;
	bool polled;
	struct sp_lane_key keys[SP_MAX_NODE_LANES];
	struct sp_lane_key to[SP_MAX_NODE_LANES];
	struct sp_pushed *pushed;
	bool trusted;
	atomic_t asks;
	int seen;
	bool granted;
	bool open;
	bool welcome;
	bool again;
	unsigned long lost;
	bool waits;
	u32 refused;
	u64 incarnation;
	bool bye_said;
	bool bye_heard;
	u64 last;
	struct list_head readies;
	u32 nreadies;
	void *tell;
	u32 tell_len;
	u32 tell_total;
	const struct sp_link *tell_by;
	struct sp_tell *early;
};

/* A program that wants to be taken in through this node. */
struct sp_asked {
	struct list_head list;
	struct sp_newcomer who;
};

/* A node whose programs want to be taken in. */
struct sp_joiner {
	struct list_head list;
	struct sp_group *g;
	struct sp_addr addr;
	struct sp_link_user user;
	bool told;	/* who the members are */
};

/**
 * struct sp_moved - how an object was transferred, as this node saw it
 * @len: its bytes
 * @kind: the schedule: enum sp_schedule_kind
 * @blocks: its blocks
 * @root: rank of its sender's node
 * @begun: when the transfer began, in nanoseconds of the monotonic clock
 * @first: when the first block was posted or came
 * @here: when the last block came; at the root, when it began
 * @sent: when the last block from here was posted, 0: none was
 */
struct sp_moved {
	u32 len;
	u32 kind;
	u32 blocks;
	u32 root;
	u64 begun;
	u64 first;
	u64 here;
	u64 sent;
};

#define SP_MOVED	16

/*
 * One value a file in sysfs; each is written by one thread at a time. What was
 * sent is counted in the lanes, and here what was in those that are gone.
 */
struct sp_counters {
	u64 sent;
	u64 sent_bytes;
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
	u64 objects;
	u64 object_bytes;
	u64 blocks_sent;
	u64 blocks_received;
	u64 views;
	u64 suspicions;
	u64 reconnects;
	u64 view_us;
	u64 wedged_us;
};

/**
 * struct sp_change - a view that was decided and is about to be installed
 * @next: the view
 * @lanes: lanes made for it, by rank; NULL for those that are there already
 * @nodes: nodes made for it, by rank; likewise
 * @record: its event
 * @peers: see &struct sp_next
 * @tells: for its agreement
 */
struct sp_change {
	struct sp_view next;
	struct sp_slot_lane *lanes[SP_MAX_MEMBERS];
	struct sp_peer_node *nodes[SP_MAX_MEMBERS];
	struct sp_record *record;
	struct sp_peer *peers;
	struct sp_tell *tells;
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
 * @key: the secret that its members share, or NULL
 * @view: its view. Under sp_ctl, but for view.state: see the table above.
 *	Programs take records instead
 * @error: what it failed with, 0 or a negative errno; before view.state
 * @self: rank of this node in the view
 * @coordinator: node that forms the first view
 * @forms: this node does
 * @coord: use of the link to the coordinator, while the view forms
 * @joiners: struct sp_joiner, on the coordinator
 * @asked: struct sp_asked: joins that this node has to put forward
 * @locals: struct sp_local; changed under sp_ctl and the engine's lock
 * @peers: struct sp_peer_node: those of the view, and those of earlier views
 *	whose keys are not given back yet
 * @peer: those of the view, by rank; NULL for this node. Changed under sp_ctl
 *	and the engine's lock
 * @slots: lanes; likewise
 * @own: own lanes of the view by their numbers; likewise
 * @core: the protocol
 * @published: entries of the log that readers may take
 * @kick: look at this group: set as sp_engine.stirred is
 * @faulty: ranks of nodes in which passes found a fault, for @event
 * @closing: a pass has delivered the last message
 * @event: handles these under sp_ctl
 * @live: this node came when there was a view already
 * @agree: agreement on the next view; under sp_ctl, like all up to @began
 * @tells: of that
 * @said: own tell of the view before this one, or NULL
 * @unsaid: the own tell has changed
 * @stepping: sp_change_step() is at work
 * @restep: and is to go on
 * @dropped: nodes of the view that are suspected and for which that was done
 * @blamed: of these, those of which the log says why
 * @waited: milliseconds that the agreement has waited for others
 * @waited_at: jiffies when that was counted
 * @change: the view that is decided, NULL: none
 * @points: where lanes enter the view that is being told; with it:
 * @start: its first turn
 * @told_by: who tells it
 * @began: when this node wedged, in microseconds
 * @numbers: the last record's
 * @record_lock: guards @records and @current_view
 * @records: struct sp_record that readers may still come by, oldest first
 * @current_view: the record of the view
 * @memcg: who pays for the memory of the view; held
 * @account: what it takes
 * @make: makes memory for a view, without sp_ctl
 * @making: it is at work; under sp_ctl
 * @tend: looks after links, keys and what is to be given back
 * @tended: looks in a row that found only lanes to wait for
 * @ready: the memory of the view is there
 * @lingered: looks taken at the group since it began to end
 * @ending: no local member is left, or it has failed; keys go back as the
 *	peers say bye
 * @gone: it has given everything back
 * @linger: bound on that
 * @counters: see there
 * @batches_seen: @core.batches when its file in debugfs was last reset
 * @racks: racks that nodes of the view are in
 * @nobjects: objects in the entries of lanes
 * @objects: makes memory for objects, begins and ends their transfers
 * @moved: how the last transfers fared, in turn; under the mover's lock
 * @nmoved: how many there were
 * @moves: blocks that had moved when sp_group_drained() last looked
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
	struct sp_key *key;
	struct sp_view view;
	int error;
	u32 self;
	struct sp_addr coordinator;
	bool forms;
	struct sp_link_user coord;
	struct list_head joiners;
	struct list_head asked;
	struct list_head locals;
	struct list_head peers;
	struct sp_peer_node *peer[SP_MAX_MEMBERS];
	struct sp_slot_lane *slots[SP_MAX_SLOTS];
	struct sp_slot_lane *own[SP_MAX_NODE_LANES];
	struct sp_core core;
	u64 published;
	atomic_t kick;
	u64 faulty;
	bool closing;
	struct work_struct event;
	bool live;
	struct sp_agree agree;
	struct sp_tell *tells;
	struct sp_tell *said;
	bool unsaid;
	bool stepping;
	bool restep;
	u64 dropped;
	u64 blamed;
	u32 waited;
	unsigned long waited_at;
	struct sp_change *change;
	struct sp_point *points;
	s64 start;
	struct sp_link *told_by;
	u64 began;
	u32 numbers;
	spinlock_t record_lock;
	struct list_head records;
	struct sp_record *current_view;
	struct mem_cgroup *memcg;
	struct sp_account *account;
	struct work_struct make;
	bool making;
	struct delayed_work tend;
	u32 tended;
	bool ready;
	u32 lingered;
	bool ending;
	bool gone;
	struct delayed_work linger;
	struct sp_counters counters;
	struct sp_batches batches_seen[SP_STAGES];
	u32 racks;
	atomic_t nobjects;
	struct delayed_work objects;
	struct sp_moved moved[SP_MOVED];
	u32 nmoved;
	u64 moves;
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

/* The lane that a sending side is part of. */
static inline struct sp_slot_lane *sp_lane_slot(struct sp_lane_tx *tx)
{
	return container_of(tx, struct sp_slot_lane, tx);
}

/* A member's lane, NULL when it has none, for who holds no lock. */
static inline struct sp_lane_tx *sp_local_lane(const struct sp_local *local)
{
	/* Pairs with the release in sp_change_local(): it is whole. */
	return smp_load_acquire(&local->lane);
}

/* Is a member in no view any more? All that is for it is published then. */
static inline bool sp_local_out(const struct sp_local *local)
{
	/* Pairs with the release in sp_change_local(). */
	return smp_load_acquire(&local->end) != ~0ULL;
}

/* What is said to others at the end: that they are put out is not for us to say. */
static inline int sp_group_last_word(const struct sp_group *g)
{
	return g->error == -ECONNABORTED ? -ECONNRESET : g->error;
}

/* The lane that an entry of the log lies in; not of an event. */
static inline struct sp_slot_lane *sp_group_slot(const struct sp_group *g,
						 const struct sp_log *log)
{
	return g->slots[log->lane & SP_LOG_SLOT];
}

/**
 * struct sp_join - a program waits to be taken into a group
 * @on_node: on the node's list, until it is done
 * @node: the node
 * @user: use of the link to the contact
 * @name: the group's name
 * @config: what is expected of it
 * @local: the member
 * @g: the group, on this node, that it has asked; under sp_ctl
 * @contact: whom to ask
 * @hops: how often we were sent on to another node
 * @proof: what it was asked to prove last
 * @asked: how often it was
 * @again: a link that was left over has failed us once
 * @waits: nothing has changed for it in this look at those who wait
 * @result: how it ended
 * @done: it has ended
 */
struct sp_join {
	struct list_head on_node;
	struct sp_node *node;
	struct sp_link_user user;
	char name[SP_NAME_LEN];
	struct sp_config config;
	struct sp_local *local;
	struct sp_group *g;
	struct sp_addr contact;
	u32 hops;
	struct sp_proof proof;
	u32 asked;
	bool again;
	bool waits;
	int result;
	struct completion done;
};

/* group.c: life of a group and of its members here */
struct sp_group *sp_group_alloc(struct sp_node *node, const char *name,
				u64 gid, const struct sp_config *config,
				const struct sp_payer *payer,
				struct sp_key *key);
void sp_group_put(struct sp_group *g);
struct sp_group *sp_group_find(struct sp_node *node, const char *name);
struct sp_group *sp_group_find_gid(struct sp_node *node, u64 gid);
void sp_group_attach(struct sp_group *g, struct sp_local *local);
void sp_group_detach(struct sp_group *g, struct sp_local *local);
int sp_group_leave(struct sp_group *g, struct sp_local *local, int reason);
void sp_group_fail(struct sp_group *g, int error);
void sp_group_end(struct sp_group *g, int error);
void sp_group_kick(struct sp_group *g);
void sp_group_moved(struct sp_group *g);
void sp_group_sent(struct sp_group *g);
void sp_group_wake_members(struct sp_group *g, bool readers, bool writers);
void sp_group_state_changed(struct sp_group *g);
extern const struct sp_shell_ops sp_engine_ops;

/* lanes.c: lanes in their slots */
struct sp_slot_lane *sp_lane_make(struct sp_group *g,
				  const struct sp_member *m);
void sp_lane_drop(struct sp_slot_lane *lane);
int sp_lane_place(struct sp_group *g, struct sp_slot_lane *lane);
bool sp_lanes_collect(struct sp_group *g);

/* peer.c: the other nodes: links, keys, and giving them back */
struct sp_peer_node *sp_peer_make(struct sp_group *g,
				  const struct sp_addr *addr);
void sp_peer_free(struct sp_peer_node *pn);
int sp_peer_connect(struct sp_peer_node *pn);
void sp_peer_grant(struct sp_peer_node *pn);
struct sp_peer_node *sp_peer_find(struct sp_group *g,
				  const struct sp_addr *addr);
void sp_peer_keys(struct sp_group *g, struct sp_link *link,
		  const struct sp_msg_keys *msg);
void sp_peer_bye(struct sp_group *g, struct sp_link *link,
		 const struct sp_msg_bye *bye);
void sp_peer_say_bye(struct sp_peer_node *pn, int error);
bool sp_peers_reap(struct sp_group *g, bool all);
bool sp_peer_flushed(struct sp_peer_node *pn);
void sp_peer_await(struct sp_group *g);
void sp_peers_tend(struct sp_group *g);
void sp_peer_trusted(struct sp_group *g, struct sp_link *link);
void sp_peer_is_out(struct sp_group *g, struct sp_link *link);
void sp_peer_try_open(struct sp_peer_node *pn);
void sp_group_row(struct sp_link *link, const struct sp_msg_row *row);
void sp_group_woken(struct sp_link *link, const struct sp_msg_wake *wake);

/* trust.c: who has proved that it knows a group's secret */
bool sp_trusts(const struct sp_group *g, const struct sp_link *link);
void sp_trust_begin(struct sp_group *g, struct sp_link *link);
int sp_trust_heard(struct sp_link *link, const struct sp_msg_prove *msg);
int sp_trust_join(struct sp_group *g, struct sp_link *link,
		  const struct sp_msg_join *msg, struct sp_proof *proof);
int sp_trust_answer(const struct sp_group *g, const struct sp_proof *proof,
		    struct sp_msg_answer *msg);
int sp_trust_prove(struct sp_join *j, const struct sp_msg_challenge *msg,
		   struct sp_msg_join *join);
int sp_trust_answered(const struct sp_join *j, const struct sp_msg_answer *msg);
int sp_trust_set(struct sp_group *g, struct sp_link *link);
void sp_trust_forget(struct sp_group *g);
void sp_trust_gone(struct sp_link *link);

/* views.c: from view to view */
void sp_change_first(struct sp_group *g);
void sp_change_step(struct sp_group *g);
void sp_change_suspect(struct sp_group *g, u32 node, const char *why);
void sp_change_say_to(struct sp_peer_node *pn);
void sp_change_told(struct sp_group *g, struct sp_link *link,
		    const struct sp_msg_tell *msg);
void sp_change_local(struct sp_group *g, struct sp_local *local,
		     const struct sp_view *v, u64 at);
void sp_change_make(struct work_struct *work);
void sp_change_free(struct sp_group *g, struct sp_change *ch);
int sp_group_core(struct sp_group *g);

/* record.c: events */
struct sp_record *sp_record_make(u32 type, const struct sp_view *old,
				 const struct sp_view *next,
				 const struct sp_proposal *p);
int sp_record_publish(struct sp_group *g, struct sp_record *r);
void sp_record_say(struct sp_group *g, u32 type, u32 subject, int error);
void sp_record_say_in(struct sp_group *g, u64 view, u32 type, u32 subject,
		      int error);
struct sp_record *sp_record_find(struct sp_group *g, u32 number);
struct sp_record *sp_record_view(struct sp_group *g);
void sp_record_put(struct sp_record *r);
void sp_records_drop(struct sp_group *g, bool all);
void sp_log_publish(struct sp_group *g);

/* af_spindle.c */
bool sp_local_reading(struct sp_local *local);

/* mmap.c: rings that programs map */
bool sp_rings_mapped(const struct sp_local *local, u32 flag);
void sp_rings_collect(struct sp_group *g, struct sp_lane_tx *lane);
int sp_rings_flush(struct sp_group *g, struct sp_local *local);
int sp_rings_error(const struct sp_local *local);
void sp_rings_refused(struct sp_local *local);
bool sp_rings_want_object(const struct sp_local *local);
void sp_rings_object(struct sp_local *local);
u64 sp_rings_released(struct sp_group *g, struct sp_local *local);
bool sp_rings_missed(const struct sp_group *g);
void sp_rings_publish(struct sp_group *g);
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
void sp_detach_sift(struct sp_local *local);

/* member.c: coming to a group */
int sp_member_create(struct sp_node *node, const char *name,
		     const struct sp_config *config, struct sp_local *local);
int sp_member_join(struct sp_node *node, const char *name,
		   const struct sp_addr *contact,
		   const struct sp_config *config, struct sp_local *local,
		   long timeout);
void sp_member_leave(struct sp_group *g, struct sp_local *local);
void sp_member_welcome(struct sp_peer_node *pn);
void sp_member_settle(struct sp_group *g);
void sp_member_taken(struct sp_group *g, u64 at);
int sp_member_message(struct sp_link *link, const struct sp_msg *msg);
void sp_member_release(struct sp_group *g, int error);
void sp_member_removed(struct sp_node *node);
void sp_member_early(struct sp_group *g);
void sp_member_decline(struct sp_group *g);
void sp_member_forget(struct sp_node *node);

extern struct xarray sp_handles;

#endif /* SPINDLE_GROUP_H */
