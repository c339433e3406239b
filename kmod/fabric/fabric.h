/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RDMA and nothing else: devices, nodes, links, registered memory.
 *
 * Locks, outermost first (Documentation/locking.rst has the essay):
 *
 *   sp_ctl (mutex)      control plane: every list and state below. Never held
 *                       across rdma_cm calls that wait for handlers.
 *   engine->lock        one pass, engine.c
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
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../core/sst.h"
#include "../core/view.h"
#include "../wire.h"

#define SP_SQ_DEPTH	128	/* work requests of one link, a power of two */
#define SP_RQ_DEPTH	64	/* receives of one link */
#define SP_REG_DEPTH	8	/* registrations at a time */
#define SP_WR_SGES	8
#define SP_SLOT_BYTES	SP_MSG_MAX
#define SP_BULK_DEPTH	64	/* work requests with blocks of objects */
#define SP_BULK_RECVS	128	/* receives that say that a block has come */
#define SP_FAILED	16U	/* groups that failed here, to be remembered */

/* More than a page in one piece: may fail, then quietly. */
#define SP_GFP_LARGE	(GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

struct sp_device;
struct sp_node;
struct sp_link;
struct sp_link_user;

extern struct mutex sp_ctl;
extern struct workqueue_struct *sp_wq;

/**
 * struct sp_fabric_upcalls - what the fabric tells the rest of the module
 * @message: a control message came; sp_ctl is held, may sleep. Anything but 0
 *	takes the link down
 * @row: a row came by SEND; softirq
 * @wake: a wake came; softirq
 * @go: a peer is ready for more blocks; softirq. False: it is to be said once
 *	more as a @message, behind those that came before it
 * @progress: work requests have completed, credits or room came; softirq
 * @room: there is room in a send queue, or a peer has posted receives; softirq
 * @overdue: the peer of a link holds what it should have given back; sp_ctl is
 *	held, may sleep
 * @bulk: a block came, or has landed, or the link can carry objects now; any
 * @bulk_gone: nothing of the link's blocks is on the way any more, either way;
 *	may sleep, no lock is held
 * @move: @sp_mover.work
 * @unlinked: a link goes away, nobody has it any more; may sleep
 * @removed: the device goes away, its links are still there; sp_ctl is held
 * @forget: the node goes away, nobody uses it any more; sp_ctl is held
 */
struct sp_fabric_upcalls {
	int (*message)(struct sp_link *link, const struct sp_msg *msg);
	void (*row)(struct sp_link *link, const struct sp_msg_row *row);
	void (*wake)(struct sp_link *link, const struct sp_msg_wake *wake);
	bool (*go)(struct sp_link *link, const struct sp_msg_go *msg);
	void (*progress)(struct sp_device *sdev);
	void (*room)(struct sp_device *sdev);
	bool (*overdue)(struct sp_link *link);
	void (*bulk)(struct sp_link *link);
	void (*bulk_gone)(struct sp_link *link);
	void (*move)(struct work_struct *work);
	void (*unlinked)(struct sp_link *link);
	void (*removed)(struct sp_node *node);
	void (*forget)(struct sp_node *node);
};

struct sp_engine;

/**
 * struct sp_mover - moves the blocks of all objects on a device: see rdmc.c
 * @lock: guards transfers, and posting of blocks. Taken within sp_ctl
 * @transfers: struct sp_transfer, in turn
 * @busy_lock: guards @busy
 * @busy: links of which blocks have come
 * @stalled: something waits for room in a send queue
 * @work: moves
 */
struct sp_mover {
	struct mutex lock;
	struct list_head transfers;
	spinlock_t busy_lock;
	struct list_head busy;
	bool stalled;
	struct work_struct work;
};

/**
 * struct sp_device - an RDMA device
 * @ib: the device
 * @all: on the list of all, under sp_ctl
 * @ref: nodes and the client hold it
 * @nodes: nodes on it, under sp_ctl
 * @engine: the predicate thread, NULL until the first node; under sp_ctl
 * @dead: it is being removed; under sp_ctl
 * @polled: rows are polled rather than sent (design: "two doorbells")
 * @objects: links that still hold verbs objects, slabs that are mapped, works
 *	that are about to map some
 * @max_sge: entries of a gather list
 * @max_pages: pieces of one memory region
 * @idle: woken when @objects has become 0
 * @mover: for large objects
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
	struct sp_mover mover;
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
 * @incarnation: random
 * @attempts: connections that were asked for so far; under sp_ctl
 * @listener: for connection requests
 * @links: its links, under sp_ctl
 * @groups: its groups, under sp_ctl
 * @joins: joins that wait for an answer, under sp_ctl
 * @early: keys that came before their view, under sp_ctl
 * @nearly: how many
 * @failed: numbers of groups that failed here lately, under sp_ctl
 * @nfailed: how many there ever were
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
	u32 attempts;
	struct rdma_cm_id *listener;
	struct list_head links;
	struct list_head groups;
	struct list_head joins;
	struct list_head early;
	u32 nearly;
	u64 failed[SP_FAILED];
	u32 nfailed;
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

/* A work request in flight, its snapshot area and its completion. */
struct sp_slot {
	struct sp_link *link;
	struct ib_cqe cqe;
	u64 seq;
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
	} wr;
	struct ib_sge sge[SP_WR_SGES];
};

/* A posted receive. */
struct sp_recv {
	struct sp_link *link;
	struct ib_cqe cqe;
	struct list_head queued;
	u32 nr;
	u32 len;
};

/* A work request with (a part of) a block. */
struct sp_bulk_slot {
	struct sp_bulk *bulk;
	struct ib_cqe cqe;
	u64 seq;
	struct ib_rdma_wr wr;
	struct ib_sge sge[SP_WR_SGES];
	atomic_t *flight;
};

/**
 * struct sp_bulk - what a link has for objects: see bulk.c for who writes what
 * @link: the link
 * @id: the second connection, under sp_ctl
 * @start: begins to connect
 * @cq: completions of both queues
 * @ncqe: entries of it that were asked for
 * @qp: the queue pair
 * @open: blocks may be posted; cleared under the mover's lock
 * @closing: no more receives are posted; set under the mover's lock
 * @rcqe: completion of all receives, which are alike
 * @built: work requests posted so far
 * @completed: of these, completed
 * @slots: of them
 * @head: blocks that have come
 * @tail: of these, taken
 * @imms: what was said of them
 */
struct sp_bulk {
	struct sp_link *link;
	struct rdma_cm_id *id;
	struct work_struct start;
	struct ib_cq *cq;
	u32 ncqe;
	struct ib_qp *qp;
	bool open;
	bool closing;
	struct ib_cqe rcqe;
	u64 built;
	u64 completed;
	struct sp_bulk_slot slots[SP_BULK_DEPTH];
	u32 head;
	u32 tail;
	u32 imms[SP_BULK_RECVS];
};

/**
 * struct sp_link - one RC connection between two nodes, shared by all groups
 * @node: the local end; held
 * @peer: the other end's address
 * @name: that address as text
 * @ref: users, works and CM events hold it
 * @on_node: on the node's list, under sp_ctl
 * @state: under sp_ctl, changed by sp_link_set_state() only
 * @error: why it is down, a negative errno; under sp_ctl
 * @users: struct sp_link_user, under sp_ctl
 * @id: the connection
 * @passive: the other side asked
 * @peer_incarnation: of the other node
 * @peer_attempt: the connections it had asked for when this one was made
 * @attempt: likewise of this node, as the peer was told
 * @pd: protection domain of this link alone: a key is of no use elsewhere
 * @cq: completions of both queues
 * @ncqe: entries of it that were asked for
 * @qp: the queue pair; NULL again (release) when the link is taken apart
 * @reg: registers memory, and sends nothing; NULL before the link is up
 * @slots: SP_SQ_DEPTH of them
 * @snap: SP_SQ_DEPTH private copies of SP_SLOT_BYTES, for what must not change
 *	until it has completed
 * @snap_dma: @snap for the device
 * @recvs: SP_RQ_DEPTH of them
 * @rbuf: their buffers
 * @rbuf_dma: for the device
 * @sq_lock: guards @open, @built, @posted, @sent, @advertised and posting
 * @open: work requests may be built
 * @built: work requests built so far
 * @posted: of these, posted
 * @completed: of these, completed. The completion handler writes it (release),
 *	everybody reads it (acquire): slots below it are free
 * @sent: SENDs so far
 * @granted: receives the peer has posted so far; written by the completion
 *	handler
 * @advertised: @reposted as last told to the peer
 * @reposted: receives posted so far
 * @rx_lock: guards @rxq
 * @rxq: received control messages
 * @outq: control messages that wait for room, under sp_ctl
 * @nout: how many
 * @rx: handles both queues
 * @start: begins to connect
 * @fail: breaks the link, from contexts that must not take sp_ctl
 * @fail_error: what @fail breaks it with
 * @fail_what: the same in words, a constant
 * @stop: takes it apart
 * @beat: heartbeat, and the bound on connecting
 * @beaten: @sent at the last beat
 * @heard: something has come since the last beat
 * @silent: beats in a row before which nothing had come
 * @beats: counts them
 * @beat_ms: time between them; under sp_ctl
 * @finished: @completed at the last beat
 * @stalled: beats in a row at which requests were posted and none had completed
 *	since the one before
 * @bulk: for objects, NULL until some are to go over it; under sp_ctl, and does
 *	not change again before @stop
 * @bulk_asked: the peer was asked to connect for them; under sp_ctl
 * @on_busy: on the mover's list, under its busy_lock
 * @grants: struct sp_grant by handle: where the peer may write blocks; under
 *	the mover's lock
 * @outs: struct sp_edge by the peer's handle: what it may be sent. Changed under
 *	the mover's lock, looked up under RCU
 * @next_grant: where the next handle is looked for; likewise
 * @trusts: what its peer has proved, by group: see trust.c; under sp_ctl
 * @challenges: what its peer was asked to prove; likewise
 * @nchallenges: how many
 * @writes: RDMA writes built, for counters
 * @posts: calls of ib_post_send(), for counters
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
	bool passive;
	u64 peer_incarnation;
	u32 peer_attempt;
	u32 attempt;

	struct ib_pd *pd;
	struct ib_cq *cq;
	u32 ncqe;
	struct ib_qp *qp;
	struct ib_qp *reg;
	struct sp_slot *slots;
	u8 *snap;
	u64 snap_dma;
	struct sp_recv *recvs;
	u8 *rbuf;
	u64 rbuf_dma;

	spinlock_t sq_lock;
	bool open;
	u64 built;
	u64 posted;
	u64 completed;
	u32 sent;
	u32 granted;
	u32 advertised;
	atomic_t reposted;

	spinlock_t rx_lock;
	struct list_head rxq;
	struct list_head outq;
	u32 nout;
	struct work_struct rx;
	struct work_struct start;
	struct work_struct fail;
	int fail_error;
	const char *fail_what;
	struct work_struct stop;
	struct delayed_work beat;
	u32 beaten;
	bool heard;
	u32 silent;
	u32 beats;
	u32 beat_ms;
	u64 finished;
	u32 stalled;
	struct sp_bulk *bulk;
	bool bulk_asked;
	struct list_head on_busy;
	struct xarray grants;
	struct xarray outs;
	u32 next_grant;
	struct list_head trusts;
	struct list_head challenges;
	u32 nchallenges;
	u64 writes;
	u64 posts;
};

/**
 * struct sp_link_user - somebody who needs a link
 * @on_link: on the link's list
 * @link: the link; changes when a tie is settled; a reference is held
 * @told: @up was called
 * @up: the link is up. Called under sp_ctl, also from within sp_link_use()
 * @down: the link is down, @user is no longer on it. Called under sp_ctl
 * @quiet: nothing has come over the link for so many milliseconds; true: it is
 *	to go down. Called under sp_ctl; may be NULL
 * @beat: the beat at which @quiet was called
 *
 * All under sp_ctl.
 */
struct sp_link_user {
	struct list_head on_link;
	struct sp_link *link;
	bool told;
	void (*up)(struct sp_link_user *user);
	void (*down)(struct sp_link_user *user, int error);
	bool (*quiet)(struct sp_link_user *user, u32 ms);
	u32 beat;
};

/**
 * struct sp_slab - memory of a lane or for rows, a node's own or a replica
 * @lay: what is in it
 * @sdev: the device it is mapped for; NULL once it is unmapped
 * @chunk_shift: size of a chunk, which is contiguous to the device
 * @nchunks: how many
 * @chunks: their first pages
 * @pinned: so many of them, the first ones, are a program's, which are only read
 * @dma: their addresses for the device
 * @synced: the device and the CPU see the memory through copies (a bounce
 *	buffer, caches that do not snoop): what passes must be told to the DMA API
 * @base: the rows or the descriptors, contiguous; NULL: the slab is not mapped
 * @ring: the ring, mapped twice back to back
 */
struct sp_slab {
	struct sp_layout lay;
	struct sp_device *sdev;
	u32 chunk_shift;
	u32 nchunks;
	struct page **chunks;
	u32 pinned;
	u64 *dma;
	bool synced;
	u8 *base;
	u8 *ring;
};

/* What is a program's is only read. */
static inline enum dma_data_direction sp_slab_dir(const struct sp_slab *slab,
						  u32 chunk)
{
	return chunk < slab->pinned ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
}

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
int sp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
void sp_cm_bye(struct sp_device *sdev, struct rdma_cm_id *id);
void sp_hello_init(const struct sp_node *node, struct sp_hello *hello);
void sp_conn_param(const struct sp_hello *hello,
		   struct rdma_conn_param *param);
void sp_addr_to_sockaddr(const struct sp_addr *addr, u32 scope_id, u16 port,
			 struct sockaddr_storage *ss);
void sp_addr_from_sockaddr(const struct sockaddr *sa, struct sp_addr *addr);
void sp_addr_name(const struct sp_addr *addr, char *buf, size_t len);

/* link.c */
struct sp_link *sp_link_alloc(struct sp_node *node, const struct sp_addr *peer);
void sp_link_put(struct sp_link *link);
int sp_link_open(struct sp_link *link);
int sp_link_set_state(struct sp_link *link, enum sp_link_state state,
		      int error);
struct sp_link *sp_link_find(struct sp_node *node, const struct sp_addr *peer);
int sp_link_use(struct sp_node *node, const struct sp_addr *peer,
		struct sp_link_user *user);
void sp_link_unuse(struct sp_link_user *user);
void sp_link_move_users(struct sp_link *from, struct sp_link *to);
void sp_link_break(struct sp_link *link, int error, const char *what);
void sp_link_take(struct sp_link *link);
void sp_link_owes(struct sp_link *link);
int sp_link_say(struct sp_link *link, struct sp_msg *msg, u16 type, u16 len);
bool sp_link_stalled(struct sp_link *link);
u32 sp_link_silent_ms(const struct sp_link *link);
void sp_link_hurry(struct sp_link *link, u32 ms);

/* bulk.c: blocks of objects */
void sp_bulk_want(struct sp_link *link);
int sp_bulk_request(struct sp_link *link, struct rdma_cm_id *id);
struct sp_bulk *sp_bulk_stop(struct sp_link *link);
void sp_bulk_free(struct sp_link *link, struct sp_bulk *bulk);
bool sp_bulk_can(const struct sp_link *link, u32 slots);
u32 sp_bulk_slots(const struct sp_link *link, const struct sp_slab *slab,
		  u32 len);
int sp_bulk_write(struct sp_link *link, const struct sp_slab *slab, u64 off,
		  u32 len, u64 raddr, u32 rkey, u32 imm, atomic_t *flight);
bool sp_bulk_take(struct sp_link *link, u32 *imm);

/* post.c: building and posting work requests */
u32 sp_gather(struct sp_link *link, const struct sp_slab *slab, u64 off,
	      u32 *len, struct ib_sge *sge);
int sp_post_write(struct sp_link *link, const struct sp_slab *slab, u64 off,
		  u32 len, u64 raddr, u32 rkey);
u32 sp_post_write_slots(const struct sp_link *link, const struct sp_slab *slab,
			u64 off, u32 len);
bool sp_post_room(struct sp_link *link, u32 slots);
int sp_post_snap(struct sp_link *link, const void *data, u32 len, u64 raddr,
		 u32 rkey, u64 *ticket);
int sp_post_send(struct sp_link *link, struct sp_msg *msg, bool reserved,
		 const void *more, u32 more_len, u64 *ticket);
bool sp_post_can_send(struct sp_link *link);
void sp_post_flush(struct sp_link *link);
void sp_post_init(struct sp_link *link);
static inline u64 sp_post_completed(const struct sp_link *link)
{
	/* Pairs with the release in sp_post_done(). */
	return smp_load_acquire(&link->completed);
}

/* mr.c */
struct sp_slab *sp_slab_alloc(struct sp_device *sdev,
			      const struct sp_layout *lay, bool mapped);
struct sp_slab *sp_slab_pin(struct sp_device *sdev,
			    const struct sp_layout *lay, unsigned long from,
			    u32 pages);
u8 *sp_slab_piece(const struct sp_slab *slab, u64 off, size_t *len);
void sp_slab_arrived(struct sp_slab *slab);
void sp_slab_arrived_part(struct sp_slab *slab, u64 off, u64 len);
struct page *sp_slab_page(const struct sp_slab *slab, u32 nr);
struct page *sp_slab_ring_page(const struct sp_slab *slab, u32 nr);
void sp_slab_unmap(struct sp_slab *slab);
void sp_slab_free(struct sp_slab *slab);
struct ib_mr *sp_mr_grant(struct sp_link *link, struct sp_slab *slab);
void sp_mr_revoke(struct ib_mr *mr);
int sp_mr_open(struct sp_link *link);
void sp_mr_close(struct sp_link *link);

/* Parameters, main.c */
extern unsigned short sp_port;
extern unsigned int sp_ack_timeout;
extern unsigned int sp_suspect_ms;
extern char *sp_doorbell;

#define SP_CHUNK_SHIFT	16	/* rings begin at multiples of this in a slab */
#define SP_BEATS	5	/* heartbeats in the time after which silence counts */

#endif /* SPINDLE_FABRIC_H */
