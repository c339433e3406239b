/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RDMA and nothing else: devices, nodes, links, registered memory.
 *
 * Locks, outermost first (Documentation/locking.rst has the essay):
 *
 *   sp_ctl (mutex)      control plane: every list and state below. Never held
 *                       across rdma_cm calls that wait for handlers.
 *   g->map_sem (rwsem)  lanes whose pages programs map; within a program's
 *                       mmap_lock, too
 *   engine->lock (bh)   one pass, engine.c
 *   link->sq_lock (bh)  send queue of one link
 */
#ifndef SPINDLE_FABRIC_H
#define SPINDLE_FABRIC_H

#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../core/sst.h"
#include "../core/view.h"
#include "../wire.h"

#define SP_SQ_DEPTH	128	/* work requests of one link, a power of two */
#define SP_RQ_DEPTH	64	/* receives of one link */
#define SP_WR_SGES	8
#define SP_SLOT_BYTES	SP_MSG_MAX
#define SP_CM_PORTS	512	/* privileged ports that connections come from */
#define SP_RESOLVE_MS	5000	/* finding a peer on the network takes no longer */
#define SP_DELAY_DROP	U32_MAX	/* completions are dropped, see fault.c */

/* More than a page in one piece: may fail, then quietly. */
#define SP_GFP_LARGE	(GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/* What a view takes: charged, and may fail, but never brings the OOM killer. */
#define SP_GFP_VIEW	(SP_GFP_LARGE | __GFP_ACCOUNT)

struct sp_device;
struct sp_node;
struct sp_link;
struct sp_link_user;

extern struct mutex sp_ctl;
extern struct workqueue_struct *sp_wq;
/* What may wait for TCP: iWARP's connecting, and who waits for its end. */
extern struct workqueue_struct *sp_tcp_wq;

/**
 * struct sp_fabric_upcalls - what the fabric tells the rest of the module
 * @message: a control message came; sp_ctl is held, may sleep. Anything but 0
 *	takes the link down
 * @row: a row came by SEND; softirq
 * @wake: a wake came; softirq
 * @progress: credits came; softirq
 * @landed: work requests have completed, as sp_post_completed() says, and a full
 *	barrier follows that; softirq
 * @lost: a link that was up is down, its users do not know yet; sp_ctl is held
 * @flushed: a link has no connection, and its last queue pair is gone: if it is down, nothing
 *	posted on it is sent again, else what sp_link_cancel() says; sp_ctl is held
 * @removed: the device goes away, its links are still there; sp_ctl is held
 * @forget: the node goes away, nobody uses it any more; sp_ctl is held
 */
struct sp_fabric_upcalls {
	int (*message)(struct sp_link *link, const struct sp_msg *msg);
	void (*row)(struct sp_link *link, const struct sp_msg_row *row);
	void (*wake)(struct sp_link *link, const struct sp_msg_wake *wake);
	void (*progress)(struct sp_device *sdev);
	void (*landed)(struct sp_device *sdev);
	void (*lost)(struct sp_link *link);
	void (*flushed)(struct sp_link *link);
	void (*removed)(struct sp_node *node);
	void (*forget)(struct sp_node *node);
};

struct sp_engine;

/**
 * struct sp_device - an RDMA device
 * @ib: the device
 * @all: on the list of all, under sp_ctl
 * @ref: nodes and the client hold it
 * @nodes: nodes on it, under sp_ctl
 * @engine: runs the predicates, NULL until the first node; under sp_ctl
 * @dead: it is being removed; under sp_ctl
 * @polled: rows are polled rather than sent (design: "two doorbells")
 * @objects: links that still hold verbs objects, slabs that are mapped, works
 *	that are about to map some
 * @max_sge: entries of a gather list
 * @max_pages: pieces of one memory region
 * @idle: woken when @objects has become 0
 */
struct sp_device {
	struct ib_device *ib;
	struct list_head all;
	struct kref ref;
	struct list_head nodes;
	struct sp_engine *engine;
	bool dead;
	bool polled;
	atomic_t objects;
	u32 max_sge;
	u32 max_pages;
	wait_queue_head_t idle;
};

/**
 * struct sp_node - a local address on an RDMA device
 * @sdev: its device
 * @net: its network namespace; held
 * @addr: the address
 * @scope_id: interface of a link-local address
 * @name: the address as text
 * @ref: everything that points here holds it
 * @on_device: on the device's list, under sp_ctl
 * @users: sockets and groups; with the last one it goes; under sp_ctl
 * @dying: it goes; under sp_ctl
 * @incarnation: when it was made, by the wall clock in nanoseconds
 * @made: links made so far, under sp_ctl
 * @listener: for connection requests
 * @links: its links, under sp_ctl
 * @groups: its groups, under sp_ctl
 * @joins: joins that wait for an answer, under sp_ctl
 * @early: keys that came before their view, under sp_ctl
 * @nearly: how many
 * @faults: of the ways to other nodes, for tests; under sp_ctl
 * @kobj: its directory in sysfs
 * @dir: its directory in debugfs
 * @destroy: takes it apart
 */
struct sp_node {
	struct sp_device *sdev;
	struct net *net;
	struct sp_addr addr;
	u32 scope_id;
	char name[64];
	struct kref ref;
	struct list_head on_device;
	u32 users;
	bool dying;
	u64 incarnation;
	u32 made;
	struct rdma_cm_id *listener;
	struct list_head links;
	struct list_head groups;
	struct list_head joins;
	struct list_head early;
	u32 nearly;
	struct list_head faults;
	struct kobject *kobj;
	struct dentry *dir;
	struct work_struct destroy;
};

/**
 * enum sp_link_state - life of a link
 * @SP_LINK_CONNECTING: resolving, asking, accepting, or waiting for the other
 *	side's request after a tie
 * @SP_LINK_UP: both sides are there
 * @SP_LINK_DOWN: broken or given up; it is being taken apart
 */
enum sp_link_state {
	SP_LINK_CONNECTING,
	SP_LINK_UP,
	SP_LINK_DOWN,
};

/* A work request in flight, its snapshot area and its completion; of a SEND its number. */
struct sp_slot {
	struct sp_link *link;
	const struct sp_link_user *user;
	struct ib_cqe cqe;
	u64 seq;
	u32 send;
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_reg_wr reg;
	} wr;
	struct ib_sge sge[SP_WR_SGES];
};

/* A receive: posted, or to be posted by the next connection, or on @rxq of its link. */
struct sp_recv {
	struct sp_link *link;
	struct ib_cqe cqe;
	struct list_head queued;
	u32 nr;
	u32 len;
};

/**
 * struct sp_link - two nodes that talk to each other, by one RC connection at a time,
 * shared by all groups
 * @node: the local end; held
 * @peer: the other end's address
 * @name: that address as text
 * @ref: users, works and CM events hold it
 * @on_node: on the node's list, under sp_ctl
 * @state: under sp_ctl, changed by sp_link_set_state() only
 * @error: why it is down, a negative errno; under sp_ctl
 * @users: struct sp_link_user, under sp_ctl
 * @id: the connection, or the attempt to have one; NULL between two; under sp_ctl
 * @old: one that is lost and being taken apart: no other begins before; under sp_ctl
 * @session: by which number both sides know this link when they connect again
 * @nr: connections so far, under sp_ctl; the completion handler reads it
 * @tried: attempts in a row without a completion; under sp_ctl
 * @yields: the own attempt was given up for the peer's next; under sp_ctl
 * @began: when the present attempt has begun, in jiffies; under sp_ctl
 * @passive: the other side asked
 * @iwarp: the device speaks iWARP
 * @heard: something came from the other side since the last beat; set by the
 *	completion handler, taken back by @beat
 * @asked: the other side asks whether we are there; set by the completion
 *	handler, taken back by @rx
 * @tries: ports that TCP refused before
 * @number: its number among those that the node has made
 * @peer_incarnation: of the other node
 * @peer_made: links that it had made when it last was connected by this one: what it
 *	asks for later is another one
 * @theirs: SENDs of ours that had come when the present connection was made
 * @pd: protection domain of this link alone: a key is of no use elsewhere
 * @cq: completions of both queues
 * @ncqe: entries of it that were asked for
 * @qp: the queue pair of @id or @old; NULL (release) when there is none
 * @slots: SP_SQ_DEPTH of them
 * @snap: SP_SQ_DEPTH private copies of SP_SLOT_BYTES, for what must not change
 *	until it has completed
 * @snap_dma: @snap for the device
 * @recvs: SP_RQ_DEPTH of them
 * @rbuf: their buffers
 * @rbuf_dma: for the device
 * @sq_lock: guards @open, @wired, @built, @posted, @held, @sent, @advertised and posting
 * @open: work requests may be built
 * @wired: they may be posted, too: there is a connection
 * @built: work requests built so far
 * @posted: of these, posted
 * @held: some wait for a completion before they are posted. The completion
 *	handler reads it without the lock
 * @completed: of these, completed. The completion handler writes it (release; but see
 *	@delay_ms), everybody reads it (acquire): slots below it are free
 * @sent: SENDs so far
 * @granted: receives the peer has posted so far; written by the completion
 *	handler
 * @advertised: @reposted as last told to the peer
 * @reposted: receives posted so far, by whichever connection
 * @received: SENDs that have come so far; of the completion handler
 * @rx_lock: guards @fed, posting receives, and @rxq
 * @fed: receives may be posted
 * @rxq: received control messages
 * @outq: control messages that wait for room, under sp_ctl
 * @nout: how many
 * @rx: handles both queues
 * @start: begins to connect
 * @connect: asks the peer
 * @fail: breaks the link, from contexts that must not take sp_ctl
 * @fail_error: what @fail breaks it with; -EAGAIN: the connection alone is lost
 * @fail_nr: of -EAGAIN: @nr
 * @fail_what: the same in words, a constant
 * @reset: takes @old apart
 * @stop: takes the link apart
 * @beat: heartbeat, and the bound on connecting
 * @beat_ms: between two of them; under sp_ctl
 * @beaten: @completed at the last beat; of @beat alone
 * @clock_ms: for so long the link has been up, counted by beats; under sp_ctl
 * @heard_ms: @clock_ms at the last beat with a sign of the other side; likewise
 * @wired_ms: @clock_ms when there was a connection last; likewise
 * @made_ms: likewise when the present connection was made, if it is not the first
 * @mute_ms: likewise when the first of the refusals in a row came that did not say why
 * @mute: 2: the last attempt has ended so, 1: the one before; likewise
 * @writes: RDMA writes built, for counters
 * @posts: calls of ib_post_send(), for counters
 * @delay_ms: completions are known so much later, for tests: see fault.c for this and
 *	the next three
 * @delayed: requests below have completed
 * @due: and are known to when @late runs
 * @late: it is time
 */
struct sp_link {
	struct sp_node *node;
	struct sp_addr peer;
	char name[64];
	struct kref ref;
	struct list_head on_node;
	enum sp_link_state state;
	int error;
	struct list_head users;
	struct rdma_cm_id *id;
	struct rdma_cm_id *old;
	u64 session;
	u32 nr;
	u32 tried;
	bool yields;
	unsigned long began;
	bool passive;
	bool iwarp;
	u32 heard;
	bool asked;
	u32 tries;
	u32 number;
	u64 peer_incarnation;
	u32 peer_made;
	u32 theirs;

	struct ib_pd *pd;
	struct ib_cq *cq;
	u32 ncqe;
	struct ib_qp *qp;
	struct sp_slot *slots;
	u8 *snap;
	u64 snap_dma;
	struct sp_recv *recvs;
	u8 *rbuf;
	u64 rbuf_dma;

	spinlock_t sq_lock;
	bool open;
	bool wired;
	u64 built;
	u64 posted;
	bool held;
	u64 completed;
	u32 sent;
	u32 granted;
	u32 advertised;
	atomic_t reposted;
	u32 received;

	spinlock_t rx_lock;
	bool fed;
	struct list_head rxq;
	struct list_head outq;
	u32 nout;
	struct work_struct rx;
	struct delayed_work start;
	struct work_struct connect;
	struct work_struct fail;
	int fail_error;
	u32 fail_nr;
	const char *fail_what;
	struct work_struct reset;
	struct work_struct stop;
	struct delayed_work beat;
	u32 beat_ms;
	u64 beaten;
	u64 clock_ms;
	u64 heard_ms;
	u64 wired_ms;
	u64 made_ms;
	u64 mute_ms;
	u8 mute;
	u64 writes;
	u64 posts;
	u32 delay_ms;
	u64 delayed;
	u64 due;
	struct delayed_work late;
};

/**
 * struct sp_link_user - somebody who needs a link
 * @on_link: on the link's list
 * @link: the link; changes when a tie is settled; a reference is held
 * @told: @up was called
 * @silent_ms: @lost is called when the other side has given no sign for so long
 * @link_ms: or when there was no connection for so long
 * @since_ms: @clock_ms of the link when the user began to need it: it does not hold
 *	what was before that against the other side
 * @pause_ms: before a link that is made for it asks for its first connection
 * @asked_ms: @clock_ms of the link when @lost was called last
 * @gave_up: @lost has said so, and the other side has given no sign since
 * @waits: @lost has said that it waits on
 * @held: room for others waits until nothing that was sent here can be sent again, which
 *	is when it has completed, perhaps by another connection, or the link is down; or
 *	when it was cancelled: sp_link_cancel()
 * @brief: it does not wait for ever with others that do: @down is called when its time is
 *	over and nobody else has any left, though the link is up
 * @up: the link is up. Called under sp_ctl, also from within sp_link_use()
 * @down: the link is down, @user is no longer on it. Called under sp_ctl
 * @lost: @user need not wait for the other side any longer. True: it gives up, and stays
 *	on the link, which is down when there is nobody left who waits. False: it waits
 *	on, and is asked again with each heartbeat; over iWARP that keeps no link on which
 *	@held is true of somebody. Called under sp_ctl. NULL: @user is not told, and does not wait
 *	for longer than suspect_ms
 * @again: the link has got another connection. Called under sp_ctl; may be NULL
 *
 * All under sp_ctl.
 */
struct sp_link_user {
	struct list_head on_link;
	struct sp_link *link;
	bool told;
	u32 silent_ms;
	u32 link_ms;
	u64 since_ms;
	u32 pause_ms;
	u64 asked_ms;
	bool gave_up;
	bool waits;
	bool held;
	bool brief;
	void (*up)(struct sp_link_user *user);
	void (*down)(struct sp_link_user *user, int error);
	bool (*lost)(struct sp_link_user *user, const char *why);
	void (*again)(struct sp_link_user *user);
};

/**
 * struct sp_slab - memory of a lane's slab, or of the rows of a node, or a replica
 * of that
 * @ref: its owner, and who copies from it, hold the memory
 * @lay: what is in it; of rows only the offset of a ring that has no bytes
 * @sdev: the device it is mapped for; NULL once it is unmapped
 * @chunk_shift: size of a chunk, which is contiguous to the device
 * @nchunks: how many
 * @chunks: their first pages
 * @dma: their addresses for the device
 * @synced: the device and the CPU see the memory through copies (a bounce
 *	buffer, caches that do not snoop): what passes must be told to the DMA API
 * @since: of a replica: number of the view with which the lane has begun that is in it
 * @base: the rows or the descriptors, contiguous
 * @ring: the ring, mapped twice back to back
 */
struct sp_slab {
	struct kref ref;
	struct sp_layout lay;
	struct sp_device *sdev;
	u32 chunk_shift;
	u32 nchunks;
	struct page **chunks;
	u64 *dma;
	bool synced;
	u64 since;
	u8 *base;
	u8 *ring;
};

/* device.c */
int sp_fabric_init(const struct sp_fabric_upcalls *upcalls);
void sp_fabric_exit(void);
extern const struct sp_fabric_upcalls *sp_up;
void sp_device_put(struct sp_device *sdev);
void sp_device_object_gone(struct sp_device *sdev);
struct sp_node *sp_node_get(struct net *net, const struct sp_addr *addr,
			    u32 scope_id);
void sp_node_user(struct sp_node *node);
void sp_node_unuse(struct sp_node *node);
void sp_node_put(struct sp_node *node);

/* cm.c */
int sp_cm_listen(struct sp_node *node, struct rdma_cm_id **listener);
int sp_cm_bind_privileged(struct rdma_cm_id *id, struct sp_node *node);
int sp_cm_connect(struct sp_link *link);
int sp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
void sp_addr_to_sockaddr(const struct sp_addr *addr, u32 scope_id, u16 port,
			 struct sockaddr_storage *ss);
void sp_addr_from_sockaddr(const struct sockaddr *sa, struct sp_addr *addr);
void sp_addr_name(const struct sp_addr *addr, char *buf, size_t len);

/* link.c */
struct sp_link *sp_link_alloc(struct sp_node *node, const struct sp_addr *peer);
void sp_link_put(struct sp_link *link);
int sp_link_established(struct sp_link *link);
int sp_link_set_state(struct sp_link *link, enum sp_link_state state,
		      int error);
struct sp_link *sp_link_find(struct sp_node *node, const struct sp_addr *peer);
int sp_link_use(struct sp_node *node, const struct sp_addr *peer,
		struct sp_link_user *user);
u32 sp_user_link_ms(const struct sp_link_user *user);
u32 sp_link_attempt_ms(const struct sp_link *link);
void sp_link_unuse(struct sp_link_user *user);
void sp_link_await(struct sp_link_user *user);
bool sp_link_missed(const struct sp_link_user *user);
void sp_link_move_users(struct sp_link *from, struct sp_link *to);
void sp_link_break(struct sp_link *link, int error, const char *what);
void sp_link_take(struct sp_link *link);
void sp_link_owes(struct sp_link *link);
bool sp_link_silent(const struct sp_link *link);
bool sp_link_cancel(const struct sp_link_user *user);
int sp_link_say(struct sp_link *link, struct sp_msg *msg, u16 type, u16 len);

/* conn.c */
int sp_recv_post(struct sp_recv *recv);
const struct sp_msg *sp_recv_msg(const struct sp_recv *recv);
int sp_conn_open(struct sp_link *link);
void sp_conn_unwire(struct sp_link *link);
void sp_conn_error(struct sp_link *link, enum ib_wc_status status);
int sp_conn_errno(int error);
bool sp_conn_lose(struct sp_link *link, const char *what);
void sp_conn_failed(struct sp_link *link, struct rdma_cm_id *id, int error);
void sp_conn_end(struct sp_link *link, struct rdma_cm_id *id);
void sp_conn_start(struct work_struct *work);
void sp_conn_connect(struct work_struct *work);
void sp_conn_reset(struct work_struct *work);

/* fault.c */
bool sp_fault_is_cut(const struct sp_node *node, const struct sp_addr *peer);
int sp_fault_cut(struct sp_node *node, const struct sp_addr *peer, bool cut);
u32 sp_fault_delay_ms(const struct sp_node *node, const struct sp_addr *peer);
int sp_fault_delay(struct sp_node *node, const struct sp_addr *peer, u32 ms);
bool sp_fault_hold(struct sp_link *link, u64 seq);
void sp_fault_late(struct work_struct *work);
void sp_fault_reset(struct sp_link *link);
void sp_fault_forget(struct sp_node *node);

/* post.c: building and posting work requests */
int sp_post_write(const struct sp_link_user *user, const struct sp_slab *slab, u64 off,
		  u32 len, u64 raddr, u32 rkey);
u32 sp_post_write_slots(const struct sp_link *link, const struct sp_slab *slab,
			u64 off, u32 len);
bool sp_post_room(struct sp_link *link, u32 slots);
int sp_post_snap(const struct sp_link_user *user, const void *data, u32 len, u64 raddr,
		 u32 rkey, u64 *ticket);
int sp_post_send(struct sp_link *link, const struct sp_link_user *user, struct sp_msg *msg,
		 bool reserved, u64 *ticket);
int sp_post_reg(struct sp_link *link, struct ib_mr *mr);
int sp_post_beat(struct sp_link *link);
void sp_post_flush(struct sp_link *link);
void sp_post_init(struct sp_link *link);
bool sp_post_may_again(struct sp_link *link);
void sp_post_cancel(struct sp_link *link, const struct sp_link_user *user);
int sp_post_again(struct sp_link *link, u32 theirs);
static inline u64 sp_post_completed(const struct sp_link *link)
{
	/* Pairs with the release in sp_completed(). */
	return smp_load_acquire(&link->completed);
}

/* mr.c */
u64 sp_heap_bytes(u64 n, u64 size);
void sp_slab_rows(struct sp_layout *lay);
u64 sp_slab_bytes(const struct sp_layout *lay, u32 max_pages);
struct sp_slab *sp_slab_alloc(struct sp_device *sdev,
			      const struct sp_layout *lay);
void sp_slab_arrived(struct sp_slab *slab);
struct page *sp_slab_ring_page(const struct sp_slab *slab, u32 nr);
void sp_slab_unmap(struct sp_slab *slab);
void sp_slab_put(struct sp_slab *slab);
void sp_slab_free(struct sp_slab *slab);
struct ib_mr *sp_mr_grant(struct sp_link *link, struct sp_slab *slab);
void sp_mr_revoke(struct ib_mr *mr);

/* Parameters, main.c */
extern unsigned short sp_port;
extern unsigned int sp_ack_timeout;
extern unsigned int sp_suspect_ms;
extern char *sp_doorbell;

#define SP_CHUNK_SHIFT	16	/* rings begin at multiples of this in a slab */

#endif /* SPINDLE_FABRIC_H */
