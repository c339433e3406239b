/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated group of nodes: the very files of kmod/core/ under a network,
 * engines, programs and a clock that all come from one seed.
 *
 *   run.c       the clock, the shape of a run, the checks at its end
 *   net.c       connections, their faults, torn and late writes
 *   past.c      reads that give what was there before the last barrier
 *   node.c      the shell around the core: what engine.c is in the kernel
 *   app.c       the programs: what they send and read, and what must hold
 *   hostile.c   a node that writes what no correct node writes
 *   check.c     what holds after every pass
 *   doze.c      every interleaving of going to sleep and waking
 *   kunit.c     the core's KUnit suites
 *   lone.c      what a lone message costs, without chance
 *   scenario.c  runs with a name
 *   main.c      arguments and reporting
 */
#ifndef SIM_H
#define SIM_H

#include "pass.h"
#include "rng.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define __printf(f, a)	__attribute__((format(printf, f, a)))

#define SIM_MAX_NODES	16
#define SIM_MAX_LANES	48
#define SIM_MAX_READERS	3
#define SIM_MAX_PIECES	20
#define SIM_CHUNK	256U	/* what sp_layout_init() aligns rings to */

struct sim;
struct node;

/* Who polls: every node, none, or each as it likes. */
#define SIM_CARRY	256	/* bytes that a row carries at most */
#define SIM_REST	1000	/* ticks that an engine rests at most */

enum sim_doorbell {
	SIM_POLLED,
	SIM_GUARDED,
	SIM_MIXED,
	SIM_DOORBELLS,
};

/* Rules of the shell or the network that a scenario breaks on purpose. */
#define SIM_BREAK_LIVE_ROWS	(1u << 0)	/* rows are read when they are sent */
#define SIM_BREAK_ORDER		(1u << 1)	/* polled, though writes are reordered */
#define SIM_BREAK_KICK		(1u << 2)	/* programs never kick the engine */

/* Shapes of a run that a scenario fixes. */
#define SIM_FORCE_HOSTILE	(1u << 0)
#define SIM_FORCE_HONEST	(1u << 1)
#define SIM_FORCE_LATE		(1u << 2)	/* counters begin just below 2^32 */
#define SIM_FORCE_TEARS		(1u << 3)
#define SIM_FORCE_TINY_QUEUE	(1u << 4)
#define SIM_FORCE_OPT		(1u << 5)	/* all nodes run with sim_opts.opt */

/**
 * struct sim_calm - a run without chance, so that its costs are numbers
 * @nodes: how many
 * @lanes: the first of them have one; a program sends on the first
 * @wire: time that a write takes to land, and its completion to come back; a
 *	pass takes 1
 * @spin: see &struct sp_core
 * @each: messages
 * @pause: from the delivery of one at its sender to the next; 0: until all sleep
 * @len: bytes of each
 */
struct sim_calm {
	u32 nodes;
	u32 lanes;
	u32 wire;
	u32 spin;
	u32 each;
	u32 pause;
	u32 len;
};

struct sim_opts {
	const struct sim_calm *calm;
	u64 seed;
	enum sim_doorbell doorbell;
	unsigned int broken;
	unsigned int force;
	u32 opt;		/* SP_OPT_*, with SIM_FORCE_OPT */
	bool trace;
};

enum event_kind {
	EV_PASS,	/* an engine passes */
	EV_REST,	/* an engine has rested, if nothing has happened */
	EV_NET,		/* a connection gets on */
	EV_CREDIT,	/* a receive was posted again */
	EV_SEND,	/* a program sends */
	EV_READ,	/* a program reads */
	EV_ATTACK,	/* a hostile node writes */
};

struct event {
	u64 at;
	u64 order;
	enum event_kind kind;
	u32 who;
};

enum write_kind {
	WR_BYTES,
	WR_DESC,
	WR_ROW,
	WR_WAKE,
};

/**
 * struct net_write - one posted work request
 * @kind: what it carries
 * @off: where it goes in the target's replica of the source's slab
 * @len: bytes
 * @src: live source, read whenever the packet is built; NULL: @data came with
 *	the post
 * @data: the packet
 * @landed: all of it is visible at the target
 * @at: in a calm run, when it lands
 */
struct net_write {
	enum write_kind kind;
	u64 off;
	u32 len;
	const u8 *src;
	u8 *data;
	bool landed;
	u64 at;
};

struct net_piece {
	u32 off;
	u32 len;
};

/**
 * struct conn - one direction of a pair of nodes
 * @sq: send queue, a ring of @slots
 * @posted: work requests posted so far, and the ticket of the last one
 * @built: of these, those whose packet was built
 * @landed: of these, how many landed, counted without a gap
 * @completed: of these, those whose completion came back
 * @credits: receives the target has posted
 * @owed: receives it is about to post again
 * @pieces: how the write that lands now is torn
 */
struct conn {
	struct node *from;
	struct node *to;
	struct net_write *sq;
	u32 slots;
	u64 posted;
	u64 built;
	u64 landed;
	u64 completed;
	u32 credits;
	u32 owed;
	struct net_piece pieces[SIM_MAX_PIECES];
	u32 npieces;
	u32 piece;
	bool scheduled;
	bool credit_scheduled;
};

struct reader {
	u64 cursor;
	u32 gap;
	bool scheduled;
};

enum plan_kind {
	PLAN_STEADY,
	PLAN_BURSTY,
	PLAN_SILENT,
	PLAN_LATE,
	PLAN_KINDS,
};

struct sent {
	u32 len;
	u32 flags;
	s64 seq;
};

/**
 * struct plan - what the program of one lane does
 * @kind: when it sends
 * @total: how many messages
 * @fin: it says that it was the last, after @fin_after
 * @claimed: a message is in the ring and not yet committed, @claim_len long
 * @blocked: waits for room
 * @done: sends nothing more
 * @sent: what it sent, in order
 */
struct plan {
	enum plan_kind kind;
	u32 total;
	u32 gap;
	u32 burst;
	u32 max_len;
	bool fin;
	u32 fin_after;
	bool fin_waited;
	bool claimed;
	u32 claim_len;
	bool blocked;
	bool done;
	bool scheduled;
	bool locked;
	u32 node;
	u32 own;
	struct sent *sent;
	u32 nsent;
	u64 awaited;	/* descriptors: what of it all readers are to have read */
};

/* What the rows posted to a peer have told, failed ones included. */
struct told {
	u64 pushed;
	u64 taken;
	u64 released;
};

/**
 * struct node - one node
 * @slab: replicas by owner, rows and lanes in one piece; the own one is what it
 *	writes itself
 * @core: the group
 * @polled: it polls for its peers' rows
 * @kicked: to be woken before the next pass
 * @noticed: a completion came amid this pass
 * @resting: the time of its rest runs
 * @recorded: delivered messages that were checked
 * @held: lane locks that its engine holds
 * @told: by peer
 * @next: by lane, which of its messages must be delivered next
 * @believed: by lane, how far check.c has looked at it
 * @live_row: for SIM_BREAK_LIVE_ROWS
 */
struct node {
	struct sim *sim;
	u32 id;
	u8 *slab[SIM_MAX_NODES];
	struct sp_core core;
	struct sp_own own[SP_MAX_NODE_LANES];
	struct sp_tx tx[SP_MAX_NODE_LANES];
	struct sp_peer peers[SIM_MAX_NODES];
	struct sp_lane lanes[SIM_MAX_LANES];
	struct sp_node_seen seen[SIM_MAX_NODES];
	bool polled;
	bool scheduled;
	bool passing;
	bool kicked;
	bool noticed;
	bool resting;
	bool failed;
	u32 closed;
	u64 passes;
	u64 recorded;
	u32 held;
	struct told told[SIM_MAX_NODES];
	u32 next[SIM_MAX_LANES];
	struct sp_point believed[SIM_MAX_LANES];
	struct reader readers[SIM_MAX_READERS];
	u32 nreaders;
	struct sp_cell live_row[SP_CELL_LANES + SP_MAX_NODE_LANES];
};

/* How bad this run's world is. */
struct weather {
	u32 pass_gap;
	u32 pause;		/* permille of passes after which an engine is away */
	u32 pause_len;
	u32 net_gap;
	u32 stall;		/* permille of steps after which a connection hangs */
	u32 stall_len;
	u32 tear;		/* permille of writes that land in pieces */
	u32 resend;		/* permille of packets sent again */
	u32 amid;		/* a pass is disturbed once in about so many reads */
	u32 away;		/* permille of these after which others go on alone */
	u32 away_len;
	u32 stir;		/* permille of passes after which a dozing engine passes */
};

struct delivered {
	s64 seq;
	u32 lane;
	u32 len;
	u32 flags;
};

struct sim {
	struct sim_opts opts;
	struct rng rng;
	u64 now;
	u64 steps;
	u64 bound;
	struct event *heap;
	u32 nheap;
	u32 heap_size;
	u64 order;

	u32 nnodes;
	u32 nlanes;
	u32 depth;
	u32 window;
	struct sp_layout lay;
	u32 max_len;
	u32 log_size;
	u32 slots;
	u32 credits;
	u64 epoch;
	bool leftovers;			/* of an earlier view, in all memory */
	u64 base_round;
	u64 base_count;
	u64 base_tail;
	struct weather weather;

	struct rng opt_rng;
	bool flips;			/* optimisations come and go */
	struct rng wait_rng;
	u32 waits;			/* of 1000 messages, of which readers are awaited */
	bool alike;			/* all lanes send as many messages */
	u32 each;
	u64 messages;
	u64 sent_at;			/* when the last was committed */
	u64 taken;			/* time until senders had their own, of all */
	u64 writes;			/* of data */
	u64 rows;

	struct node *nodes;
	struct conn *conns;		/* nnodes * nnodes */
	struct plan plans[SIM_MAX_LANES];
	struct node *outer;		/* whose pass is going on */
	struct node *amid;		/* likewise; or whose goes on within it */
	struct node *mute;		/* of whom no packet gets on */
	bool disturbing;

	struct delivered *story;	/* what everybody must deliver */
	u32 nstory;

	bool hostile;
	u32 villain;
	u32 villainy;		/* permille of its packets that lie */
	u32 attacks;
	u32 accused;

	bool violated;
	char why[256];
};

/* Where the lanes of a node are in &node->slab, which begins with its rows. */
static inline u64 sim_desc_off(const struct sim *s, u32 lane)
{
	return SP_ROWS_BYTES + (u64)lane * s->lay.size;
}

static inline u64 sim_ring_off(const struct sim *s, u32 lane)
{
	return sim_desc_off(s, lane) + s->lay.ring_off;
}

/* run.c */
struct sim *sim_new(const struct sim_opts *opts);
void sim_free(struct sim *s);
void sim_one(struct sim *s);
void sim_settle(struct sim *s);
bool sim_run(struct sim *s);
extern struct sim *sim_running;
void sim_after(struct sim *s, u32 delay, enum event_kind kind, u32 who);
void sim_disturb(struct sim *s);
void weather_make(struct weather *w, struct rng *r);
__printf(2, 3) void sim_violation(struct sim *s, const char *fmt, ...);
__printf(2, 3) void sim_say(struct sim *s, const char *fmt, ...);

#define sim_trace(s, ...)						\
do {									\
	if ((s)->opts.trace)						\
		sim_say(s, __VA_ARGS__);				\
} while (0)

/* net.c */
static inline struct conn *sim_conn(struct sim *s, u32 from, u32 to)
{
	return &s->conns[from * s->nnodes + to];
}

void net_init(struct sim *s);
void net_free(struct sim *s);
void net_step(struct sim *s, struct conn *c);
void net_credit(struct conn *c);
void net_overwritten(struct sim *s, struct node *n, const u8 *at, u32 len);
void net_freed(struct sim *s, struct node *n);
bool net_room(const struct conn *c, u32 n);
u64 net_post(struct sim *s, struct conn *c, enum write_kind kind, u64 off,
	     const void *src, u32 len, bool copy);

/* live.c */
void live_read_hook(void);
extern int sim_reads_left;

/* past.c */
void sim_forget_past(void);
void past_keep(const u8 *at, u32 len);

/* node.c */
void node_init(struct sim *s, struct node *n);
void node_free(struct node *n);
void node_pass(struct sim *s, struct node *n);
void node_schedule(struct node *n, u32 delay);
void node_kick(struct node *n);
void node_local(struct node *n);
void node_consumed(struct node *n);
void node_rested(struct node *n);
void node_completed(struct node *n);
u64 node_released(const struct node *n);

/* app.c */
void app_init(struct sim *s);
void app_free(struct sim *s);
void app_send(struct sim *s, u32 lane);
void app_read(struct sim *s, struct node *n, u32 reader);
void app_delivered(struct sim *s, struct node *n);
void app_unblock(struct sim *s, struct node *n);
void app_check(struct sim *s);

/* hostile.c */
void hostile_attack(struct sim *s);
void hostile_packet(struct sim *s, struct net_write *w);

/* check.c */
void check_init(struct sim *s, struct node *n);
void check_news(struct sim *s, struct node *n);
void check_waits(struct sim *s, struct node *n);
void check_rest(struct sim *s, struct node *n);

/* doze.c */
int doze_exhaustive(bool verbose);

/* lone.c */
int lone_run(void);

/* kunit.c */
int kunit_run(void);

/* scenario.c */
int scenario_run(const char *name, bool first);
void scenario_list(void);

#endif /* SIM_H */
