/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One member of a group at work: it sends its messages, receives everybody's,
 * checks every byte, and sums up what it received in the order it came.
 *
 * A sender's k-th message is a function of the seed, its uid and k, so every
 * receiver knows what must come next from each sender. In the first view uids
 * are ranks; whoever comes and goes later, the events say who has which rank.
 */
#ifndef SPINDLE_JOB_H
#define SPINDLE_JOB_H

#include "spindle_selftest.h"

#include <pthread.h>

#define JOB_MAX_MSG	(256 << 10)
#define JOB_UIDS	256	/* uids that a group may come to */

enum job_mode {
	JOB_POLL,	/* one thread, never blocks in send or recv */
	JOB_THREADS,	/* one thread blocks in send, the other in recv */
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
 * @stop: when it is not zero, no more messages are sent; or NULL
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
	const int *stop;
};

/**
 * struct job_result - what came of it; in memory shared with the parent
 * @error: errno the group failed with, 0: it ended in order
 * @rank: its rank in the first view that it is in
 * @uid: its number in all of them
 * @view: number of the view it is in, by what it has read
 * @members: members of that view
 * @gone: members that have gone so far
 * @reason: why, by uid
 * @sent: messages it sent
 * @received: messages it received
 * @bytes: bytes it received
 * @hash: over uid, length and bytes of all messages, and over the views, in
 *	their order
 * @from: messages received from each uid
 * @active: time of the first view
 * @end: time of the end
 */
struct job_result {
	int error;
	uint32_t rank;
	uint32_t uid;
	uint32_t members;
	uint32_t gone;
	uint64_t view;
	uint64_t sent;
	uint64_t received;
	uint64_t bytes;
	uint64_t hash;
	uint64_t from[JOB_UIDS];
	uint8_t reason[JOB_UIDS];
	double active;
	double end;
};

struct job_run {
	const struct job *job;
	struct job_result *res;
	FILE *order;
	int fd;
	uint32_t uid[SPINDLE_MAX_MEMBERS];	/* by rank, in the view read last */
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

/* Message @k of @uid: its length; the bytes go to @buf. */
static inline uint32_t job_message(const struct job *job, uint32_t uid, uint64_t k,
				   unsigned char *buf)
{
	uint64_t state = job->seed ^ (uint64_t)uid << 48 ^ k << 1;
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
	double end = st_now() + 6 * ST_SOON;
	int want = SPINDLE_WANT_VIEW;
	int fd = st_socket(0);

	CHECK_OK(st_bind(fd, job->addr));
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &want, sizeof(want)));
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

/* What a member adds to the sum of what it has received. */
static inline void job_sum(struct job_run *run, const uint32_t *head, const void *data, size_t len)
{
	struct job_result *res = run->res;

	res->hash = job_hash(job_hash(res->hash, head, 2 * sizeof(*head)), data, len);
}

/* A view begins: the same everywhere but for who reads it, and why it is told. */
static inline void job_view(struct job_run *run, const struct spindle_event *e, size_t len)
{
	struct job_result *res = run->res;
	uint32_t uids[2 * SPINDLE_MAX_MEMBERS];
	uint32_t head[2] = { ~0U, e->view };
	bool self = false;
	uint32_t i;

	CHECK(len >= sizeof(*e));
	CHECK_EQ(e->type, SPINDLE_EVENT_VIEW);
	CHECK(e->members <= SPINDLE_MAX_MEMBERS && e->left <= SPINDLE_MAX_MEMBERS);
	CHECK_EQ(len, sizeof(*e) + (e->members + e->left) * sizeof(e->member[0]));
	if (res->view)
		CHECK_EQ(e->view, res->view + 1);
	for (i = 0; i < e->members + e->left; i++) {
		const struct spindle_event_member *m = &e->member[i];

		uids[i] = m->uid;
		CHECK(m->uid < JOB_UIDS);
		if (i >= e->members) {
			CHECK(m->reason);
			res->reason[m->uid] = m->reason;
			res->gone++;
			continue;
		}
		CHECK_EQ(m->rank, i);
		run->uid[i] = m->uid;
		if (!(m->flags & SPINDLE_EM_SELF))
			continue;
		CHECK(!self);
		self = true;
		if (!res->view) {
			res->uid = m->uid;
			res->rank = i;
		}
		CHECK_EQ(m->uid, res->uid);
	}
	CHECK(self);
	res->members = e->members;
	__atomic_store_n(&res->view, e->view, __ATOMIC_RELEASE);
	job_sum(run, head, uids, i * sizeof(uids[0]));
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
	uint32_t head[2], uid;
	ssize_t n;

	n = recvmsg(run->fd, &msg, flags);
	if (n < 0) {
		if (errno == EAGAIN)
			return true;
		job_fail(run);
		return false;
	}
	if (!(msg.msg_flags & MSG_EOR)) {
		CHECK_EQ(n, 0);
		return false;
	}
	CHECK_EQ(msg.msg_flags & MSG_TRUNC, 0);
	if (msg.msg_flags & MSG_SPINDLE_EVENT) {
		job_view(run, (const void *)buf, n);
		return true;
	}
	CHECK(from.ss_rank < res->members);
	uid = run->uid[from.ss_rank];
	if (n != job_message(run->job, uid, res->from[uid], want) || memcmp(buf, want, n))
		FAIL("message %llu of %u (rank %u) is not what was sent (%zd bytes)",
		     (unsigned long long)res->from[uid], uid, from.ss_rank, n);
	res->from[uid]++;
	res->received++;
	res->bytes += n;
	head[0] = uid;
	head[1] = n;
	job_sum(run, head, buf, n);
	if (run->order && fwrite(&res->hash, sizeof(res->hash), 1, run->order) != 1)
		FAIL("writing the order: %s", st_err(errno));
	if (run->job->slow_us)
		st_pause_us(run->job->slow_us);
	return true;
}

/* Has it sent all that it is to send? */
static inline bool job_sent_all(const struct job_run *run)
{
	return run->res->sent == run->job->messages ||
	       (run->job->stop && __atomic_load_n(run->job->stop, __ATOMIC_RELAXED));
}

static inline void *job_send_all(void *arg)
{
	struct job_run *run = arg;
	unsigned char *buf = malloc(JOB_MAX_MSG);
	uint32_t len;

	for (run->res->sent = 0; !job_sent_all(run); run->res->sent++) {
		len = job_message(run->job, run->res->uid, run->res->sent, buf);
		if (send(run->fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len)
			continue;
		if (!job_not_a_sender(run))
			job_fail(run);
		break;
	}
	if (job_sent_all(run) && !run->job->hold)
		CHECK_OK(shutdown(run->fd, SHUT_WR));
	free(buf);
	return NULL;
}

static inline void job_poll_loop(struct job_run *run, bool sends, unsigned char *buf,
				 unsigned char *want)
{
	unsigned char *out = malloc(JOB_MAX_MSG);
	struct pollfd pfd = { .fd = run->fd };
	bool made = false;
	uint32_t len = 0;
	unsigned int i;
	ssize_t n;

	for (;;) {
		pfd.events = POLLIN | (sends ? POLLOUT : 0);
		CHECK_OK(poll(&pfd, 1, -1));
		for (i = 0; sends && i < 16; i++) {
			if (!made && job_sent_all(run)) {
				if (!run->job->hold)
					CHECK_OK(shutdown(run->fd, SHUT_WR));
				sends = false;
				break;
			}
			if (!made)
				len = job_message(run->job, run->res->uid, run->res->sent, out);
			made = true;
			n = send(run->fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0 && errno == EAGAIN)
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
			run->res->sent++;
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
	double end = st_now() + 6 * ST_SOON;
	unsigned int us = 200;
	unsigned int state;

	while ((state = st_info(fd).state) == SPINDLE_STATE_FORMING) {
		if (st_now() > end)
			FAIL("no first view in %d s", 6 * ST_SOON);
		st_pause_us(us);
		us = us < 5000 ? us * 2 : us;
	}
	if (state == SPINDLE_STATE_NONE)
		FAIL("in no group");
}

static inline void job_run(const struct job *job, struct job_result *res)
{
	struct job_run run = { .job = job, .res = res, .fd = job_open(job) };
	unsigned char *buf = malloc(JOB_MAX_MSG), *want = malloc(JOB_MAX_MSG);
	struct spindle_group_info info;
	bool alive, sends;
	pthread_t thread;

	job_wait_first_view(run.fd);
	res->hash = 0xcbf29ce484222325ULL;
	if (job->order) {
		run.order = fopen(job->order, "we");
		if (!run.order)
			FAIL("%s: %s", job->order, st_err(errno));
	}
	/* The first that there is to read is the view. */
	alive = job_recv(&run, buf, want, 0);
	CHECK(!alive || res->view);
	res->active = st_now();
	sends = alive && !job->receiver && job->messages;
	if (alive && !job->receiver && !job->messages && !job->hold)
		CHECK_OK(shutdown(run.fd, SHUT_WR));
	if (job->mode == JOB_THREADS) {
		if (sends)
			CHECK_EQ(pthread_create(&thread, NULL, job_send_all, &run), 0);
		while (alive && job_recv(&run, buf, want, 0))
			;
		if (sends)
			pthread_join(thread, NULL);
	} else if (alive) {
		job_poll_loop(&run, sends, buf, want);
	}
	if (run.order)
		fclose(run.order);
	res->end = st_now();
	info = st_info(run.fd);
	CHECK_EQ(info.received, res->received);
	CHECK_EQ(info.sent, res->sent);
	if (!res->error)
		CHECK_EQ(info.state, SPINDLE_STATE_CLOSED);
	close(run.fd);
	free(buf);
	free(want);
}

#endif /* SPINDLE_JOB_H */
