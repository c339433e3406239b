/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated group whose members come and go: the core with its agreement and
 * its change of views, under nodes that crash, pause and lose each other.
 *
 *   live.c          the clock, the world of a seed, its faults
 *   live_net.c      connections that break and come back, messages behind writes
 *   live_node.c     the shell around the core: what the kernel does
 *   live_app.c      programs: what they send, read and ask for
 *   live_check.c    what must hold inside the nodes
 *   judge.c         what must hold as seen from outside
 *   live_cases.c    runs with a name
 *   ballots.c       the agreement alone, in any order
 */
#ifndef LIVE_H
#define LIVE_H

#include "ballot.h"
#include "judge.h"
#include "sim.h"

#define LIVE_MAX_NODES	32
#define LIVE_MAX_PROGS	96
#define LIVE_MAX_FAULTS	32
#define LIVE_MAX_VIEWS	256
#define LIVE_VIEW_EVENT	1	/* sp_order_event(): a view begins */

struct live;
struct lnode;

/* Rules of the shell that a scenario breaks on purpose. */
#define LIVE_BREAK_HOLD		(1u << 0)	/* room is used that a request may read */
#define LIVE_BREAK_WEDGE	(1u << 1)	/* takes more after its counts */
#define LIVE_BREAK_READERS	(1u << 2)	/* a new view waits for readers */
#define LIVE_BREAK_LEAVE	(1u << 3)	/* a lane goes before all is delivered */
#define LIVE_BREAK_QUARANTINE	(1u << 4)	/* memory of who is gone is used again */
#define LIVE_BREAK_OLD_QP	(1u << 5)	/* a new connection before the old is dead */
#define LIVE_BREAK_CURSOR	(1u << 6)	/* who joins reads what was before it */
#define LIVE_BREAK_AGAIN	(1u << 7)	/* nothing is reported again on a new connection */
#define LIVE_BREAK_EARLY	(1u << 8)	/* a report on the next view is dropped */
#define LIVE_BREAK_ADOPT	(1u << 9)	/* what is said of lower ranks is believed */
#define LIVE_BREAK_OLD_REPORT	(1u << 10)	/* the last report on a view is not kept */
#define LIVE_BREAK_INCARNATION	(1u << 11)	/* who comes back is taken for who went */
#define LIVE_BREAK_DRAIN	(1u << 12)	/* a wedge waits for the send queues */
#define LIVE_BREAK_DEATH	(1u << 13)	/* a program's death has to be found out */
#define LIVE_BREAK_STALE	(1u << 14)	/* a dead connection is listened to */
#define LIVE_BREAK_TWICE	(1u << 15)	/* what has arrived is sent once more */
#define LIVE_BREAK_GAP		(1u << 16)	/* what has left is not sent once more */

enum fault_kind {
	FAULT_CRASH,
	FAULT_CRASH_SEND,	/* amid sending its report */
	FAULT_CRASH_POST,	/* amid a push */
	FAULT_CRASH_INSTALL,	/* when it has decided */
	FAULT_PAUSE,
	FAULT_BREAK,		/* a connection breaks, and can come back at once */
	FAULT_BLOCK,		/* nothing passes between two nodes for a while */
	FAULT_BLOCK_ONE,	/* nothing passes from one to another */
	FAULT_PART,		/* likewise between two halves */
	FAULT_FALSE,		/* one suspects another for nothing */
	FAULT_KILL,		/* a program dies */
	FAULT_LEAVE,
	FAULT_JOIN,
	FAULT_STOP,		/* a program reads nothing for a while */
	FAULT_EVICT,		/* a program is put out by its node */
	FAULT_KINDS,
};

/**
 * struct fault - something that happens to a run
 * @kind: what
 * @at: when
 * @a: node or program; LIVE_LEADER: whoever leads then
 * @b: the other node, or the half in a mask
 * @len: for how long, 0: for ever; or after how many steps
 */
struct fault {
	enum fault_kind kind;
	u64 at;
	u32 a;
	u32 b;
	u32 len;
};

#define LIVE_LEADER	U32_MAX

/**
 * struct live_opts - what a run is made from
 * @seed: the seed
 * @doorbell: who polls
 * @broken: LIVE_BREAK_*
 * @drop: faults of the seed that do not happen, a bit each
 * @each: most messages of a program
 * @nodes: nodes at the beginning, 0: by the seed
 * @faults: instead of those of the seed, @nfaults of them
 * @calm: weather is fair
 * @stuck: one program does not read before the run is nearly over
 * @minority: nodes go on without a majority; nothing happens then that makes
 *	two groups of one
 * @replay: a new connection carries again what was under way on the old one
 * @survive: this many nodes must be in the last view
 * @views: views follow each other up to this number, 0: to any
 * @by: the last of them is installed by then, 0: at any time
 * @trace: print what happens
 */
struct live_opts {
	u64 seed;
	enum sim_doorbell doorbell;
	unsigned int broken;
	u32 drop;
	u32 each;
	u32 nodes;
	const struct fault *faults;
	u32 nfaults;
	bool calm;
	bool stuck;
	bool minority;
	bool replay;
	u32 survive;
	u32 views;
	u32 by;
	bool trace;
};

enum live_kind {
	LE_RUN,		/* an engine runs */
	LE_REST,	/* it has rested, if nothing has happened */
	LE_NET,		/* one direction of a connection gets on */
	LE_CREDIT,
	LE_SEND,
	LE_READ,
	LE_FAULT,
	LE_NOTICE,	/* a node learns that a connection broke */
	LE_DETECT,	/* a connection has been gone for too long */
	LE_SILENT,	/* a node has been silent for too long */
	LE_RETRIED,	/* the transport gives up */
	LE_FLUSH,	/* requests to a suspected node end */
	LE_TRY,		/* two nodes try to connect */
	LE_CLOSE,	/* one closes a connection that it has no use for */
	LE_HEAL,
	LE_RESUME,
	LE_ASK,		/* a program asks to be taken in */
	LE_GO,		/* a program reads again */
	LE_GHOST,	/* a packet of an old connection arrives */
};

struct live_event {
	u64 at;
	u64 order;
	enum live_kind kind;
	u32 a;
	u32 b;
	u64 arg;
};

enum msg_kind {
	MSG_REPORT,
	MSG_WELCOME,
	MSG_KEYS,
	MSG_BYE,	/* you are not in the view that follows */
	/* What a node's own timers and connections say. */
	MSG_NOTICE,
	MSG_DETECT,
	MSG_SILENT,
	MSG_REFUSED,
	MSG_SUSPECTED,
	MSG_FALSE,
};

struct welcome {
	struct sp_view view;
	struct sp_point at[SP_MAX_MEMBERS];
	bool fin[SP_MAX_MEMBERS];
	s64 start;
};

struct key {
	u64 cookie;
	u8 *slab;
};

struct keys {
	u8 *rows;
	u32 n;
	struct {
		u32 nr;
		struct key key;
	} lane[SP_MAX_NODE_LANES];
};

/**
 * struct msg - something that a node is to hear
 * @inc: incarnation of the connection that it came by, 0: by none
 */
struct msg {
	enum msg_kind kind;
	u32 from;
	u64 inc;
	u64 arg;
	const void *body;	/* lives as long as the run */
};

enum pkt_kind {
	PKT_BYTES,
	PKT_DESC,
	PKT_ROW,
	PKT_WAKE,
	PKT_MSG,
};

/**
 * struct pkt - one posted work request, as &struct net_write
 * @msg: of a PKT_MSG
 * @built: it has left before, on this connection or the one before
 * @number: messages that were posted before it
 */
struct pkt {
	enum pkt_kind kind;
	u8 *to;
	u32 len;
	const u8 *src;
	u8 *data;
	u32 room;
	struct msg msg;
	bool built;
	u64 number;
	bool landed;
};

/**
 * struct ldir - one direction of a connection
 * @ring: packets, @size of them
 * @said: messages among those that were posted
 * @told: and among those that have completed
 * @heard: messages that have arrived; its receiver knows it
 * @dead: its sender has given up: nothing is built nor completed any more
 */
struct ldir {
	u32 from;
	u32 to;
	struct pkt *ring;
	u32 size;
	u64 posted;
	u64 built;
	u64 landed;
	u64 completed;
	u64 said;
	u64 told;
	u64 heard;
	u32 credits;
	u32 owed;
	struct net_piece pieces[SIM_MAX_PIECES];
	u32 npieces;
	u32 piece;
	bool scheduled;
	bool credit_scheduled;
	bool dead;
};

/**
 * struct lpair - what is between two nodes
 * @inc: incarnation of the connection; one that carries on is the same
 * @up: there is one
 * @carry: there is none now, but the next one carries on: live_opts.replay
 * @gen: the lives of both nodes that it is between
 * @blocked: faults that keep packets from passing, by direction: [from > to]
 * @noticed: each side knows that the last one is gone
 * @trying: an attempt is due
 */
struct lpair {
	u64 inc;
	bool up;
	bool carry;
	u32 gen[2];
	u32 blocked[2];
	bool noticed[2];
	bool trying;
};

/**
 * struct lend - what a node knows of another one, of one life of it
 * @rows: what it writes its rows to, here
 * @to_rows: what our rows go to
 * @key: by number of the own lane
 * @keyed: keys have come over this connection
 * @wait: counts the times that it was lost
 * @lost: it is waited for, though all that it has granted stays
 * @holds: it is gone, and up to @last of connection @inc requests to it may
 *	still be sent again
 */
struct lend {
	u8 *rows;
	u8 *to_rows;
	struct key key[SP_MAX_NODE_LANES];
	bool keyed;
	u64 wait;
	bool lost;
	bool holds;
	u64 inc;
	u64 last;
};

enum prog_state {
	PROG_ASKING,
	PROG_MEMBER,
	PROG_DYING,	/* does nothing more; its lane is kept */
	PROG_OUT,
};

/**
 * struct prog - a program: a member, or one that wants to be
 * @cookie: generation of its node, and its number
 * @told: why it is out
 * @wish: why it wants to go
 * @nr: number of its lane on its node, -1: it does not send
 * @number: its uid as a member
 * @nsent: messages that it has committed
 * @fin: the last of them says that nothing follows
 * @cursor: what it has read of its node's log
 */
struct prog {
	u32 uid;
	u32 node;
	u64 cookie;
	u32 flags;
	enum prog_state state;
	int told;
	enum sp_reason wish;
	s32 nr;
	u32 number;
	u32 total;
	u32 gap;
	u32 max_len;
	u32 burst;
	u32 nsent;
	bool fin;
	bool claimed;
	bool blocked;
	u32 claim_len;
	bool scheduled;
	bool locked;
	u32 tries;
	u64 cursor;
	u32 read_gap;
	bool reading;
	bool stuck;
	bool began;
};

enum node_state {
	NODE_IDLE,
	NODE_JOINING,
	NODE_IN,
	NODE_OUT,
	NODE_CRASHED,
};

/**
 * struct lnode - one node
 * @gen: its life: each begins with nothing
 * @why: why it is NODE_OUT, 0: it left
 * @blame: something was wrong with it or with a connection of it
 * @dirty: the own report has changed, and is to be sent
 * @heard: something has come since the agreement was looked at
 * @gone: suspected nodes that are fenced off, by rank
 * @waits: nodes, by number, that it would suspect if it heard a majority
 * @bank: which of @views, @reports and @peers are of this view
 * @last: what it said last of the view before this one
 * @early: what others said of views to come
 * @progs: by own lane
 * @slab: by slot
 * @sender: by slot
 * @first: number of its first view
 * @crash_send: reports to one node until it crashes, 0: it does not; likewise the
 *	others
 */
struct lnode {
	struct live *l;
	u32 id;
	u32 gen;
	enum node_state state;
	int why;
	bool blame;
	bool polled;
	bool paused;
	u64 pauses;
	bool scheduled;
	bool passing;
	bool kicked;
	bool noticed;
	bool resting;
	bool dirty;
	bool heard;
	u64 gone;
	u64 waits;
	u32 held;
	struct sp_core core;
	struct sp_own own[SP_MAX_NODE_LANES];
	struct prog *progs[SP_MAX_NODE_LANES];
	u32 bank;
	struct sp_view views[2];
	struct sp_report *reports[2];
	struct sp_peer peers[2][SP_MAX_MEMBERS];
	struct sp_ballot ballot;
	struct sp_report *last;
	const struct sp_report *early[LIVE_MAX_NODES];
	struct sp_node_seen seen[SP_MAX_MEMBERS];
	struct sp_lane *lanes;
	u8 *slab[SP_MAX_SLOTS];
	struct prog *sender[SP_MAX_SLOTS];
	struct lend ends[LIVE_MAX_NODES];
	struct msg *inbox;
	u32 inbox_first;
	u32 inbox_n;
	u32 inbox_size;
	u64 recorded;
	u64 first;
	u32 crash_send;
	u32 crash_post;
	bool crash_install;
};

/* What is known of a view: the first node to install it says so. */
struct record {
	bool decided;
	bool installed;
	struct sp_proposal how;		/* the one before it ended */
	struct sp_view view;
	struct sp_point at[SP_MAX_MEMBERS];
	u32 fins;
	s64 start;
};

struct live {
	struct live_opts opts;
	struct rng rng;		/* the network and the engines */
	struct rng plan;	/* what is to happen */
	u64 now;
	u64 steps;
	u64 order;
	struct live_event *heap;
	u32 nheap;
	u32 heap_size;
	struct weather weather;
	u64 gid;
	u32 nnodes;
	u32 first;		/* nodes of the first view */
	u32 depth;
	u32 window;
	u32 max_len;
	u32 slots;
	u32 credits;
	u32 suspect;		/* how long is too long */
	u32 limit;		/* members at most */
	struct sp_layout lay;
	struct lnode nodes[LIVE_MAX_NODES];
	struct lpair *pairs;
	struct ldir *dirs;
	struct prog progs[LIVE_MAX_PROGS];
	u32 nprogs;
	struct fault faults[LIVE_MAX_FAULTS];
	u32 nfaults;
	struct lnode *amid;
	bool disturbing;
	struct judge *judge;
	struct record *records[LIVE_MAX_VIEWS];
	bool caught_up[LIVE_MAX_PROGS];		/* by uid: its state was delivered */
	u64 newest;
	u64 newest_at;
	void **memory;		/* freed with the run */
	u32 nmemory;
	u32 memory_size;
	struct pkt *ghosts;
	u32 nghosts;
	u64 messages;
	bool violated;
	char why[256];
};

/* live.c */
struct live *live_new(const struct live_opts *opts);
bool live_run(struct live *l);
void live_free(struct live *l);
bool live_seed(const struct live_opts *opts, u32 lines);
void live_after(struct live *l, u32 delay, enum live_kind kind, u32 a, u32 b,
		u64 arg);
void *live_alloc(struct live *l, size_t size);
__printf(2, 3) void live_violation(struct live *l, const char *fmt, ...);
__printf(2, 3) void live_say(struct live *l, const char *fmt, ...);
void live_disturb(struct live *l);
void live_lost(struct live *l, u32 a, u32 b);
void live_patience(struct lnode *n, u32 peer);

#define live_trace(l, ...)						\
do {									\
	if ((l)->opts.trace)						\
		live_say(l, __VA_ARGS__);				\
} while (0)

/* live_net.c */
static inline struct lpair *live_pair(struct live *l, u32 a, u32 b)
{
	return &l->pairs[min(a, b) * l->nnodes + max(a, b)];
}

static inline struct ldir *live_dir(struct live *l, u32 from, u32 to)
{
	return &l->dirs[from * l->nnodes + to];
}

static inline bool live_blocked(struct live *l, u32 a, u32 b)
{
	const struct lpair *p = live_pair(l, a, b);

	return p->blocked[0] || p->blocked[1];
}

void lnet_init(struct live *l);
void lnet_free(struct live *l);
void lnet_step(struct live *l, struct ldir *d);
void lnet_credit(struct live *l, struct ldir *d);
bool lnet_room(const struct live *l, const struct ldir *d, u32 n);
u64 lnet_post(struct live *l, struct ldir *d, enum pkt_kind kind, u8 *to,
	      const void *src, u32 len, bool copy);
void lnet_send(struct live *l, u32 from, u32 to, enum msg_kind kind, u64 arg,
	       const void *body);
void lnet_go(struct live *l, struct ldir *d);
void lnet_flush(struct live *l, struct ldir *d);
void lnet_break(struct live *l, u32 a, u32 b);
void lnet_close(struct live *l, u32 a, u32 b);
void lnet_connect(struct live *l, u32 a, u32 b);
void lnet_carry(struct live *l, u32 a, u32 b);
void lnet_give_up(struct live *l, u32 a, u32 b);
void lnet_ghost(struct live *l, u32 i);
void lnet_overwritten(struct live *l, u32 node, const u8 *at, u32 len);

/* live_node.c */
static inline struct lnode *lnode_of(struct sp_core *c)
{
	return (struct lnode *)((char *)c - offsetof(struct lnode, core));
}

void lnode_interrupted(struct lnode *n);
static inline struct sp_view *lnode_view(struct lnode *n)
{
	return &n->views[n->bank];
}

struct sp_addr live_addr(u32 id);
static inline u32 live_id(const struct sp_addr *addr)
{
	return addr->b[15];
}

int lnode_rank(struct lnode *n, u32 id);
u32 lnode_peer_gen(struct lnode *n, u32 id);
void lnode_begin(struct lnode *n, const struct welcome *w);
void lnode_run(struct lnode *n);
void lnode_schedule(struct lnode *n, u32 delay);
void lnode_kick(struct lnode *n);
void lnode_local(struct lnode *n);
void lnode_consumed(struct lnode *n);
void lnode_completed(struct lnode *n);
void lnode_rested(struct lnode *n);
u64 lnode_heard(struct lnode *n);
void lnode_flush(struct lnode *n, u32 id, u64 inc);
void lnode_receive(struct lnode *n, const struct msg *m);
void lnode_connected(struct lnode *n, u32 peer, bool welcome);
void lnode_crash(struct lnode *n);
void lnode_join(struct lnode *n);
int lnode_ask(struct lnode *n, const struct prog *p);
bool lnode_suspects(struct lnode *n, u32 id);
u64 lnode_released(struct lnode *n);

/* live_app.c */
struct prog *lapp_new(struct live *l, u32 node);
void lapp_begin(struct lnode *n, struct prog *p);
struct sp_tx *lapp_tx(struct live *l, struct prog *p);
void lapp_send(struct live *l, struct prog *p);
void lapp_read(struct live *l, struct prog *p);
void lapp_stop(struct live *l, struct prog *p, bool stop);
void lapp_delivered(struct lnode *n);
void lapp_unblock(struct lnode *n);
void lapp_end(struct prog *p, int told);
void lapp_die(struct live *l, struct prog *p, enum sp_reason why);
bool lapp_drained(struct lnode *n, struct prog *p);

/* live_check.c */
void lcheck_sent(struct live *l, const struct prog *p, u32 len);
void lcheck_delivered(struct lnode *n, const struct sp_log *log);
void lcheck_decided(struct lnode *n, const struct sp_proposal *p);
void lcheck_installed(struct lnode *n);
void lcheck_end(struct live *l);

/* ballots.c */
u32 ballots_run(u64 from, u32 seeds);
int ballots_cases_run(const char *name, bool first);
void ballots_cases_list(void);

/* live_cases.c */
int live_cases_run(const char *name, bool first);
void live_cases_list(void);

#endif /* LIVE_H */
