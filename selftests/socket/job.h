/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One member of a group at work: it sends its messages, receives everybody's,
 * checks every byte, and sums up what it received in the order it came.
 *
 * A sender's k-th message is a function of the seed, its rank and k, so every
 * receiver knows what must come next from each sender.
 */
#ifndef SPINDLE_JOB_H
#define SPINDLE_JOB_H

#include "spindle_selftest.h"

#include <pthread.h>

#define JOB_MAX_MSG	(256 << 10)

enum job_mode {
	JOB_POLL,	/* one thread, never blocks in send or recv */
	JOB_THREADS,	/* one thread blocks in send, the other in recv */
};

/* What job.over says. */
enum job_over {
	JOB_GO_ON,
	JOB_SHUTDOWN,	/* send no more, read to the end of the stream */
	JOB_LEAVE,	/* leave, and read what is left; for who sends without end */
};

/**
 * struct job - what a member does
 * @name: the group
 * @contact: address to join at; NULL: create the group
 * @addr: the member's node
 * @group: configuration, for who creates
 * @receiver: it comes as a receiver
 * @messages: it sends so many, if it may send; ~0: until something fails
 * @max: largest size of a message; 0: empty ones
 * @min: smallest size
 * @seed: decides sizes and bytes, the same for all members of a group
 * @hold: when it has sent its last, it stays and says nothing
 * @mode: enum job_mode
 * @slow_us: pause after each message received
 * @quota: detached, with so many bytes of receive buffer; 0: not detached
 * @order: file for the rolling hash after each message, or NULL
 * @views: it reads the events of views, and knows the others in all of them
 * @viewed: called after each of these events but the first; or NULL
 * @linger: seconds for what it has sent to arrive after it was closed; 0: as
 *	long as anything may take
 * @over: enum job_over: once this is not zero it sends no more, whatever
 *	@messages and @hold say; or NULL
 */
struct job {
	const char *name;
	const char *contact;
	const char *addr;
	struct st_config group;
	bool receiver;
	uint64_t messages;
	uint32_t max;
	uint32_t min;
	uint64_t seed;
	bool hold;
	enum job_mode mode;
	unsigned int slow_us;
	unsigned int quota;
	const char *order;
	bool views;
	void (*viewed)(void);
	unsigned int linger;
	const int *over;
};

/**
 * struct job_result - what came of it; in memory shared with the parent
 * @error: errno the group failed with, 0: it ended in order
 * @rank: its rank in the first view
 * @sent: messages it sent
 * @received: messages it received
 * @bytes: bytes it received
 * @hash: over rank, length and bytes of all messages in their order, and views
 * @from: messages received from each rank of the first view
 * @reason: enum spindle_reason, of each rank of the first view
 * @view: number of the last view it has read the event of
 * @members: members of that
 * @waits: its last send was refused because no majority is heard
 * @active: time of the first view, once @rank is known
 * @end: time of the end
 */
struct job_result {
	int error;
	uint32_t rank;
	uint64_t sent;
	uint64_t received;
	uint64_t bytes;
	uint64_t hash;
	uint64_t from[SPINDLE_MAX_MEMBERS];
	uint32_t reason[SPINDLE_MAX_MEMBERS];
	uint64_t view;
	uint32_t members;
	bool waits;
	double active;
	double end;
};

/**
 * struct job_run - a member at work
 * @job: what it does
 * @res: what comes of it
 * @order: see &struct job
 * @fd: its socket
 * @first: members of the first view
 * @uid: of each rank of the first view
 * @rank_of: of each rank of the view that it reads, that in the first view
 */
struct job_run {
	const struct job *job;
	struct job_result *res;
	FILE *order;
	int fd;
	uint32_t first;
	uint32_t uid[SPINDLE_MAX_MEMBERS];
	uint32_t rank_of[SPINDLE_MAX_MEMBERS];
};

static inline uint64_t job_hash(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t word;

	/* eight bytes at a time: byte by byte is slow under emulation */
	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		hash = (hash ^ word) * 0x100000001b3ULL;
		hash ^= hash >> 29;
	}
	while (len--)
		hash = (hash ^ *p++) * 0x100000001b3ULL;
	return hash;
}

/* Message @k of @rank: its length; the bytes go to @buf. */
static inline uint32_t job_message(const struct job *job, uint32_t rank, uint64_t k,
				   unsigned char *buf)
{
	uint64_t state = job->seed ^ (uint64_t)rank << 48 ^ k << 1;
	uint32_t len, i;
	uint64_t word;

	word = st_random(&state);
	len = job->min + (uint32_t)(word >> 8) % (job->max - job->min + 1);
	/* many small ones, some of every size */
	if (word & 1 && len > job->min)
		len = job->min + (len - job->min) % 64;
	for (i = 0; i + 8 <= len; i += 8) {
		word = word * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(buf + i, &word, 8);
	}
	for (; i < len; i++)
		buf[i] = word >> (8 * (i & 7));
	return len;
}

static inline int job_open(const struct job *job)
{
	struct spindle_group_join join = { 0 };
	double end = st_now() + st_bound_s(2 * ST_SOON);
	int fd = st_socket(0);

	CHECK_OK(st_bind(fd, job->addr));
	if (job->views) {
		CHECK_OK(st_option(fd, SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
		/* all that was sent is to arrive, also of who is killed, on a slow host */
		st_linger(fd, job->linger ? job->linger : 2 * ST_SOON);
	}
	if (job->quota) {
		int bytes = job->quota / 2, on = 1;	/* the kernel doubles it */

		CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
		CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	}
	if (!job->contact) {
		struct spindle_group_create c = st_create_of(&job->group, job->name);

		c.flags = job->receiver ? SPINDLE_F_RECEIVER : 0;
		CHECK_OK(st_create(fd, &c));
		return fd;
	}
	snprintf(join.name, sizeof(join.name), "%s", job->name);
	st_contact(&join, job->contact);
	join.flags = job->receiver ? SPINDLE_F_RECEIVER : 0;
	/* whoever made the group may start later than this one */
	while (st_join(fd, &join)) {
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EHOSTUNREACH &&
		    errno != ETIMEDOUT)
			FAIL("join: %s", st_err(errno));
		if (st_now() > end)
			FAIL("join: still %s", st_err(errno));
		st_pause_us(20000);
	}
	return fd;
}

/* Was the send refused only because this member is none of the senders? */
static inline bool job_not_a_sender(const struct job_run *run)
{
	return errno == EACCES && !run->res->sent;
}

/*
 * Was the send refused only because no majority is heard, which may come back? If the
 * group has failed since, the next one says why.
 */
static inline bool job_waits(struct job_run *run)
{
	int err = errno;
	struct spindle_group_info info = st_info(run->fd);

	if (err != ENETDOWN || (info.state == SPINDLE_STATE_FAILED && info.error == err))
		return false;
	__atomic_store_n(&run->res->waits, true, __ATOMIC_RELAXED);
	st_pause_us(2000);
	return true;
}

static inline void job_sent(struct job_run *run)
{
	__atomic_store_n(&run->res->waits, false, __ATOMIC_RELAXED);
	run->res->sent++;
}

static inline void job_fail(struct job_run *run)
{
	int err = errno;
	struct spindle_group_info info = st_info(run->fd);

	if (info.state != SPINDLE_STATE_FAILED)
		FAIL("%s, but the group's state is %u", st_err(err), info.state);
	if (info.error != err)
		FAIL("%s, but the group failed with %s", st_err(err), st_err(info.error));
	run->res->error = err;
}

static inline int job_over(const struct job_run *run)
{
	return run->job->over ? __atomic_load_n(run->job->over, __ATOMIC_ACQUIRE) : JOB_GO_ON;
}

/* It has sent its last message, or has been told so. */
static inline void job_last(const struct job_run *run)
{
	if (job_over(run) == JOB_LEAVE)
		CHECK_OK(st_leave(run->fd));
	else
		CHECK_OK(shutdown(run->fd, SHUT_WR));
}

/* The rank that a member had in the first view. */
static inline uint32_t job_first_rank(const struct job_run *run, uint32_t uid)
{
	uint32_t rank;

	for (rank = 0; rank < run->first; rank++)
		if (run->uid[rank] == uid)
			return rank;
	BROKEN("member %u was not in the first view", uid);
}

static inline void job_view(struct job_run *run, const struct spindle_event *e, size_t len)
{
	struct job_result *res = run->res;
	uint32_t head[2] = { ~0U, e->view };
	uint32_t i, rank;

	CHECK_EQ(e->type, SPINDLE_EVENT_VIEW);
	CHECK_SAME(len, sizeof(*e) + (e->members + e->left) * sizeof(e->member[0]));
	CHECK_SAME(e->view, res->view + 1);
	if (e->view == 1) {
		CHECK_SAME(res->received, 0);
		CHECK_SAME(e->left, 0);
		run->first = e->members;
		for (i = 0; i < e->members; i++)
			run->uid[i] = e->member[i].uid;
	} else {
		CHECK_SAME(e->members + e->left, res->members);
	}
	for (i = 0; i < e->members; i++) {
		run->rank_of[i] = job_first_rank(run, e->member[i].uid);
		CHECK_SAME(e->member[i].rank, i);
		CHECK_INTACT(!i || run->rank_of[i] > run->rank_of[i - 1]);
	}
	for (; i < e->members + e->left; i++) {
		rank = job_first_rank(run, e->member[i].uid);
		CHECK_SAME(res->reason[rank], SPINDLE_REASON_NONE);
		res->reason[rank] = e->member[i].reason;
	}
	res->hash = job_hash(res->hash, head, sizeof(head));
	res->hash = job_hash(res->hash, res->reason, run->first * sizeof(res->reason[0]));
	__atomic_store_n(&res->members, e->members, __ATOMIC_RELAXED);
	__atomic_store_n(&res->view, e->view, __ATOMIC_RELEASE);
	if (run->job->viewed && e->view > 1)
		run->job->viewed();
}

/* Take one message; false at the end of the stream, or when the group failed. */
static inline bool job_recv(struct job_run *run, unsigned char *buf, unsigned char *want,
			    int flags)
{
	struct job_result *res = run->res;
	struct sockaddr_spindle from;
	struct iovec iov = { buf, JOB_MAX_MSG };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
	};
	uint32_t head[2], rank;
	ssize_t n;

	n = recvmsg(run->fd, &msg, flags);
	if (n < 0) {
		if (errno == EAGAIN)
			return true;
		job_fail(run);
		return false;
	}
	if (!(msg.msg_flags & MSG_EOR)) {
		CHECK_SAME(n, 0);
		return false;
	}
	CHECK_SAME(msg.msg_flags & MSG_TRUNC, 0);
	if (msg.msg_flags & MSG_SPINDLE_EVENT) {
		CHECK_INTACT(run->job->views);
		job_view(run, (const struct spindle_event *)buf, n);
		return true;
	}
	rank = from.ss_rank;
	CHECK_INTACT(rank < (run->job->views ? res->members : SPINDLE_MAX_MEMBERS));
	if (run->job->views)
		rank = run->rank_of[rank];
	if (n != job_message(run->job, rank, res->from[rank], want) || memcmp(buf, want, n))
		BROKEN("message %llu of rank %u is not what was sent (%zd bytes)",
		       (unsigned long long)res->from[rank], rank, n);
	res->from[rank]++;
	res->received++;
	res->bytes += n;
	head[0] = rank;
	head[1] = n;
	res->hash = job_hash(job_hash(res->hash, head, sizeof(head)), buf, n);
	if (run->order && fwrite(&res->hash, sizeof(res->hash), 1, run->order) != 1)
		FAIL("writing the order: %s", st_err(errno));
	if (run->job->slow_us)
		st_pause_us(run->job->slow_us);
	return true;
}

static inline void *job_send_all(void *arg)
{
	struct job_run *run = arg;
	unsigned char *buf = malloc(JOB_MAX_MSG);
	uint32_t len;

	while (run->res->sent < run->job->messages && !job_over(run)) {
		len = job_message(run->job, run->res->rank, run->res->sent, buf);
		if (send(run->fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len) {
			job_sent(run);
			continue;
		}
		if (job_waits(run))
			continue;
		if (!job_not_a_sender(run))
			job_fail(run);
		goto out;
	}
	while (run->job->hold && run->job->over && !job_over(run) &&
	       (st_info(run->fd).state == SPINDLE_STATE_ACTIVE ||
		st_info(run->fd).state == SPINDLE_STATE_MINORITY))
		st_pause_us(5000);
	if (!run->job->hold || job_over(run))
		job_last(run);
out:
	free(buf);
	return NULL;
}

static inline void job_poll_loop(struct job_run *run, bool sends, unsigned char *buf,
				 unsigned char *want)
{
	unsigned char *out = malloc(JOB_MAX_MSG);
	struct pollfd pfd = { .fd = run->fd };
	bool made = false, holds = false;
	uint32_t len = 0;
	unsigned int i;
	ssize_t n;

	for (;;) {
		pfd.events = POLLIN | (sends ? POLLOUT : 0);
		pfd.revents = 0;
		/* a signal may say that it is over, also just before this */
		if (poll(&pfd, 1, holds ? 50 : -1) < 0)
			CHECK_EQ(errno, EINTR);
		if (holds && job_over(run)) {
			job_last(run);
			holds = false;
		}
		for (i = 0; sends && i < 16; i++) {
			if (run->res->sent == run->job->messages || job_over(run)) {
				holds = run->job->hold && !job_over(run);
				if (!holds)
					job_last(run);
				sends = false;
				break;
			}
			if (!made)
				len = job_message(run->job, run->res->rank, run->res->sent, out);
			made = true;
			n = send(run->fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0 && (errno == EAGAIN || job_waits(run)))
				break;
			if (n < 0) {
				if (!job_not_a_sender(run))
					job_fail(run);
				/* what was delivered is still to be read */
				sends = false;
				break;
			}
			CHECK_EQ(n, len);
			made = false;
			job_sent(run);
		}
		for (i = 0; i < 16 && pfd.revents & ~POLLOUT; i++) {
			uint64_t before = run->res->received;

			if (!job_recv(run, buf, want, MSG_DONTWAIT))
				goto out;
			if (run->res->received == before)
				break;
		}
	}
out:
	free(out);
}

static inline void job_wait_first_view(int fd)
{
	double bound = st_bound_s(2 * ST_SOON), end = st_now() + bound;
	unsigned int us = 200;
	unsigned int state;

	while ((state = st_info(fd).state) == SPINDLE_STATE_FORMING) {
		if (st_now() > end)
			FAIL("no first view in %g s", bound);
		st_pause_us(us);
		us = us < 5000 ? us * 2 : us;
	}
	if (state == SPINDLE_STATE_NONE)
		FAIL("in no group");
}

/* Is it in the first view, and does it know its rank there? */
static inline bool job_active(const struct job_result *res)
{
	double active;

	__atomic_load(&res->active, &active, __ATOMIC_ACQUIRE);
	return active != 0;
}

static inline void job_run(const struct job *job, struct job_result *res)
{
	struct job_run run = { .job = job, .res = res, .fd = job_open(job) };
	unsigned char *buf = malloc(JOB_MAX_MSG), *want = malloc(JOB_MAX_MSG);
	struct spindle_group_info info;
	struct sockaddr_spindle own;
	socklen_t len = sizeof(own);
	pthread_t thread;
	double active;
	bool sends;

	job_wait_first_view(run.fd);
	active = st_now();
	info = st_info(run.fd);
	CHECK_OK(getsockname(run.fd, (struct sockaddr *)&own, &len));
	if (info.state == SPINDLE_STATE_ACTIVE)
		CHECK_EQ(own.ss_rank, info.rank);
	res->rank = info.rank;
	__atomic_store(&res->active, &active, __ATOMIC_RELEASE);
	res->hash = 0xcbf29ce484222325ULL;
	sends = !job->receiver && job->messages;
	if (job->order) {
		run.order = fopen(job->order, "we");
		if (!run.order)
			FAIL("%s: %s", job->order, st_err(errno));
	}
	if (!job->receiver && !job->messages && !job->hold)
		CHECK_OK(shutdown(run.fd, SHUT_WR));
	if (job->mode == JOB_THREADS) {
		if (sends)
			CHECK_EQ(pthread_create(&thread, NULL, job_send_all, &run), 0);
		while (job_recv(&run, buf, want, 0))
			;
		if (sends)
			pthread_join(thread, NULL);
	} else {
		job_poll_loop(&run, sends, buf, want);
	}
	if (run.order)
		fclose(run.order);
	res->end = st_now();
	info = st_info(run.fd);
	CHECK_SAME(info.received, res->received);
	CHECK_SAME(info.sent, res->sent);
	if (!res->error)
		CHECK_EQ(info.state, SPINDLE_STATE_CLOSED);
	close(run.fd);
	free(buf);
	free(want);
}

#endif /* SPINDLE_JOB_H */
