/* SPDX-License-Identifier: MIT */
/*
 * spindle-perf: what its parts share.
 *
 * The parent (spindle-perf.c) forks one process for each local member
 * (perf-member.c). A member has one flow for each active group, and a flow has
 * a receiving and, in a sender, a sending thread; both block. How messages get
 * into the group and out of it is behind struct perf_ops. Parent and members
 * meet in one shared mapping, struct perf_shared.
 */
#ifndef SPINDLE_PERF_H
#define SPINDLE_PERF_H

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/spindle.h>

#define PERF_MAX_LOCAL	SPINDLE_MAX_MEMBERS
#define PERF_MAX_ACTIVE	64
#define PERF_MAX_IDLE	256
#define PERF_MAX_BATCH	256
#define PERF_MAX_SIZE	SPINDLE_MAX_WINDOW
#define PERF_SAMPLES	(1U << 20)	/* messages that latencies are kept of */
#define PERF_ERR_LEN	256
#define PERF_ADDR_LEN	64

enum perf_mode {
	PERF_COPY,
	PERF_MAPPED,
};

enum perf_verify {
	PERF_VERIFY_NONE,
	PERF_VERIFY_ORDER,	/* the first eight bytes, and the order */
	PERF_VERIFY_FULL,	/* every byte */
};

enum perf_wait {
	PERF_WAIT_BLOCK,
	PERF_WAIT_ADAPTIVE,
	PERF_WAIT_SPIN,
};

enum perf_latency {
	PERF_LATENCY_OFF,
	PERF_LATENCY_CLOSED,	/* one message at a time */
	PERF_LATENCY_LOAD,	/* of the messages of a full stream */
};

/**
 * struct perf_options - what was asked for
 * @size: bytes of a message
 * @iters: messages of each sender; 0: until @seconds are over
 * @seconds: duration, when @iters is 0
 * @warmup: messages of each sender before the clock runs
 * @addr: nodes of the local members
 * @locals: their number
 * @contact: where the group is joined; NULL: the first local member creates it
 * @members: members in all
 * @senders: how many of them send; 0: all
 * @group: name
 * @window: bytes of ring; 0: the kernel's default
 * @max_msg: largest message
 * @depth: messages in flight; 0: the kernel's default
 * @active: groups with traffic
 * @idle: groups without
 * @idle_window: their rings
 * @delay_us: pause of a delayed sender behind each message
 * @delayed: how many are, from the lowest rank
 * @delay_busy: the pause takes the processor
 * @slow_us: pause of the last local member behind each message it takes
 * @mode: enum perf_mode
 * @memcpy: copy into the ring and out of it where that is not needed
 * @batch: messages a call sends, and with copies also takes
 * @wait: enum perf_wait
 * @verify: enum perf_verify
 * @latency: enum perf_latency
 * @interval_us: pause between messages of the closed loop
 * @optimise: names of the optimisations that are on; NULL: all, or as the creator says
 * @optimise_off: the others: SPINDLE_OFF_*
 * @stats: read the counters
 * @json: JSON goes there, "-" for standard output; NULL: none
 * @marks: tell when the measurement begins and ends
 * @timeout: seconds for all of it
 */
struct perf_options {
	uint32_t size;
	uint64_t iters;
	double seconds;
	uint64_t warmup;
	char addr[PERF_MAX_LOCAL][PERF_ADDR_LEN];
	unsigned int locals;
	const char *contact;
	unsigned int members;
	unsigned int senders;
	const char *group;
	uint32_t window;
	uint32_t max_msg;
	uint32_t depth;
	unsigned int active;
	unsigned int idle;
	uint32_t idle_window;
	unsigned int delay_us;
	unsigned int delayed;
	bool delay_busy;
	unsigned int slow_us;
	enum perf_mode mode;
	bool memcpy;
	unsigned int batch;
	enum perf_wait wait;
	enum perf_verify verify;
	enum perf_latency latency;
	unsigned int interval_us;
	const char *optimise;
	uint32_t optimise_off;
	bool stats;
	const char *json;
	bool marks;
	unsigned int timeout;
};

/**
 * struct perf_result - what one member did in one active group
 * @rank: its rank
 * @members: of the group
 * @senders: of the group
 * @sent: messages it sent
 * @received: messages it took
 * @bytes: bytes in them
 * @from: messages taken of each rank
 * @hash: over sender and number of all messages in the order taken
 * @end: when it had taken the last, ns
 * @skipped: messages of the warm-up
 * @skipped_bytes: bytes in them
 * @calls: system calls to send and receive; mapped: to wake and wait
 * @copied: bytes copied in the process
 */
struct perf_result {
	uint32_t rank;
	uint32_t members;
	uint32_t senders;
	uint64_t sent;
	uint64_t received;
	uint64_t bytes;
	uint64_t from[SPINDLE_MAX_MEMBERS];
	uint64_t hash;
	int64_t end;
	uint64_t skipped;
	uint64_t skipped_bytes;
	uint64_t calls;
	uint64_t copied;
};

/**
 * struct perf_sample - the life of one message, ns
 * @sent: handed over
 * @own: taken by its sender
 * @all: taken by the last of the local members
 */
struct perf_sample {
	int64_t sent;
	int64_t own;
	int64_t all;
};

/**
 * struct perf_shared - where the parent and its members meet
 * @ready: members whose groups are all active
 * @go: 1: the warm-up may begin, 2: what is measured may
 * @warm: flows that have taken all of the warm-up
 * @begin: when @go became 2, ns
 * @stop: senders are to end, when no number of messages was given
 * @done: members that have read all streams to their ends
 * @leave: the counters have been read, sockets may be closed
 * @failed: first one says why in @error
 * @error: that
 * @sample_stride: samples of one sender
 * @samples: of group g and rank r from [(g * sample_lanes + r) * sample_stride] on;
 *	NULL: no latencies
 * @sample_lanes: senders of one group that have samples
 * @result: of member i in group g at [i * active + g]
 */
struct perf_shared {
	uint32_t ready;
	uint32_t go;
	uint32_t warm;
	uint32_t stop;
	uint32_t done;
	uint32_t leave;
	uint32_t failed;
	int64_t begin;
	char error[PERF_ERR_LEN];
	uint64_t sample_stride;
	unsigned int sample_lanes;
	struct perf_sample *samples;
	struct perf_result result[];
};

struct perf_member;

/**
 * struct perf_flow - one member in one active group
 * @member: whose
 * @group: number of the group
 * @res: what it has done
 * @fd: its socket, with copies
 * @sp: its handle, with mapped rings
 * @sends: it is a sender
 * @delay_us: pause behind each message sent
 * @slow_us: pause behind each message taken
 * @own_seen: own messages taken; the closed loop waits for it
 * @sender: thread that sends
 * @receiver: thread that receives
 * @made: room for one message to be copied into the ring
 * @taken: room for one message copied out of it
 * @priv: of the ops
 */
struct perf_flow {
	struct perf_member *member;
	unsigned int group;
	struct perf_result *res;
	int fd;
	struct spindle *sp;
	bool sends;
	unsigned int delay_us;
	unsigned int slow_us;
	sem_t own_seen;
	pthread_t sender;
	pthread_t receiver;
	unsigned char *made;
	unsigned char *taken;
	void *priv;
};

/**
 * struct perf_member - one process
 * @opt: what was asked for
 * @shared: the common memory
 * @index: its number among the local ones
 * @deadline: when it gives up, ns
 * @flows: one for each active group
 * @idle: sockets of the idle groups
 */
struct perf_member {
	const struct perf_options *opt;
	struct perf_shared *shared;
	unsigned int index;
	int64_t deadline;
	struct perf_flow flows[PERF_MAX_ACTIVE];
	int idle[PERF_MAX_IDLE];
};

/**
 * struct perf_ops - how messages go in and come out; all end the process on errors
 * @name: of the mode
 * @open: make the socket, bind it to @addr
 * @create: make the group
 * @join: join it; an errno, as nobody may have made it yet
 * @start: the group is active; get ready for traffic
 * @info: what the group is like
 * @send: build the next messages of this sender and send them, at most @n; how
 *	many. Blocks until there is room for one
 * @receive: hand what has come to perf_take(), block until something has;
 *	false at the end of the stream
 * @shutdown: the last word of this sender
 * @close: leave
 */
struct perf_ops {
	const char *name;
	void (*open)(struct perf_flow *f, const char *addr);
	void (*create)(struct perf_flow *f, const struct spindle_group_create *group);
	int (*join)(struct perf_flow *f, const char *contact,
		    const struct spindle_group_join *group);
	void (*start)(struct perf_flow *f);
	void (*info)(struct perf_flow *f, struct spindle_group_info *info);
	unsigned int (*send)(struct perf_flow *f, unsigned int n);
	bool (*receive)(struct perf_flow *f);
	void (*shutdown)(struct perf_flow *f);
	void (*close)(struct perf_flow *f);
};

extern const struct perf_ops perf_copy_ops;
extern const struct perf_ops perf_mapped_ops;

/* perf-options.c */
void perf_parse(struct perf_options *opt, int argc, char **argv);

/* perf-member.c */
void perf_member_run(const struct perf_options *opt, struct perf_shared *shared,
		     unsigned int index);
void perf_fill(const struct perf_flow *f, void *data, uint64_t number);
void perf_handed_over(const struct perf_flow *f, uint64_t number, unsigned int n);
void perf_take(struct perf_flow *f, uint32_t rank, const void *data, uint32_t len);
int perf_left_ms(const struct perf_flow *f);
__attribute__((noreturn, format(printf, 2, 3)))
void perf_die(const struct perf_member *m, const char *fmt, ...);

/* perf-copy.c */
int perf_socket_open(struct perf_member *m, const char *addr);
int perf_socket_create(int fd, const struct spindle_group_create *group);
int perf_socket_join(int fd, const char *contact, const struct spindle_group_join *group);

/* perf-stats.c */
struct json_object;
struct perf_counters;
struct perf_counters *perf_counters_read(const struct perf_options *opt, const char *group);
struct json_object *perf_counters_diff(const struct perf_counters *before,
				       const struct perf_counters *after);
void perf_batches_reset(const struct perf_options *opt, const char *group);
struct json_object *perf_batches_read(const struct perf_options *opt, const char *group);

/* perf-report.c */
/**
 * struct perf_outcome - what the parent has seen
 * @forming: seconds until all local members were ready
 * @warming: seconds of the warm-up
 * @ending: seconds from the last message to the end of the last member
 * @peak: highest rate, bytes/s delivered to a member
 * @counters: of the active groups, in sum; NULL where not asked for
 * @idle_counters: of the idle groups
 * @batches: sizes of batches in the first active group
 */
struct perf_outcome {
	double forming;
	double warming;
	double ending;
	double peak;
	struct json_object *counters;
	struct json_object *idle_counters;
	struct json_object *batches;
};

int perf_report(const struct perf_options *opt, const struct perf_shared *shared,
		const struct perf_outcome *out);

/* names of groups, and small things; spindle-perf.c */
void perf_group_name(const struct perf_options *opt, char *name, size_t size, unsigned int i,
		     bool idle);
int64_t perf_now(void);
void perf_pause_ns(int64_t ns);
bool perf_wait_word(uint32_t *word, uint32_t want, int64_t deadline);
void perf_set_word(uint32_t *word, uint32_t value);
void perf_count_word(uint32_t *word);
socklen_t perf_addr(const char *text, struct sockaddr_storage *ss);

#endif /* SPINDLE_PERF_H */
