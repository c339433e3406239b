// SPDX-License-Identifier: MIT
/*
 * spindle-perf: one member, a process of its own.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

#define PACE_US		20000		/* between two tries to join */

static const struct perf_ops *const all_ops[] = {
	[PERF_COPY] = &perf_copy_ops,
	[PERF_MAPPED] = &perf_mapped_ops,
};

void perf_die(const struct perf_member *m, const char *fmt, ...)
{
	char text[PERF_ERR_LEN - PERF_ADDR_LEN - 32];
	uint32_t none = 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (__atomic_compare_exchange_n(&m->shared->failed, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		snprintf(m->shared->error, PERF_ERR_LEN, "member %u on %s: %s", m->index,
			 m->opt->addr[m->index], text);
	_exit(1);
}

int perf_left_ms(const struct perf_flow *f)
{
	int64_t left = (f->member->deadline - perf_now()) / 1000000;

	return left < 1 ? 1 : left > 3600000 ? 3600000 : left;
}

/*
 * Every byte of a message follows from its group, its sender and its number:
 * the first word, and a fixed step from each word to the next.
 */
#define WORD_STEP	0x9e3779b97f4a7c15ULL

static uint64_t first_word(unsigned int group, uint32_t rank, uint64_t number)
{
	uint64_t z = (uint64_t)(group + 1) << 56 ^ (uint64_t)(rank + 1) << 48 ^ number;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void perf_fill(const struct perf_flow *f, void *data, uint64_t number)
{
	const struct perf_options *opt = f->member->opt;
	uint64_t word = first_word(f->group, f->res->rank, number);
	unsigned char *to = data;
	uint32_t i;

	if (opt->verify != PERF_VERIFY_FULL) {
		memcpy(to, &word, opt->size < 8 ? opt->size : 8);
		return;
	}
	for (i = 0; i + 8 <= opt->size; i += 8, word += WORD_STEP)
		memcpy(to + i, &word, 8);
	memcpy(to + i, &word, opt->size - i);
}

static void check(const struct perf_flow *f, uint32_t rank, uint64_t number,
		  const unsigned char *data, uint32_t len)
{
	const struct perf_options *opt = f->member->opt;
	uint64_t word = first_word(f->group, rank, number), is, bad = 0;
	uint32_t i;

	if (len != opt->size)
		perf_die(f->member, "message %llu of rank %u has %u bytes",
			 (unsigned long long)number, rank, len);
	if (opt->verify == PERF_VERIFY_FULL) {
		for (i = 0; i + 8 <= len; i += 8, word += WORD_STEP) {
			memcpy(&is, data + i, 8);
			bad |= is ^ word;
		}
		if (memcmp(data + i, &word, len - i))
			bad = 1;
	} else if (memcmp(data, &word, len < 8 ? len : 8)) {
		bad = 1;
	}
	if (bad)
		perf_die(f->member, "message %llu of rank %u is not what was sent",
			 (unsigned long long)number, rank);
}

static struct perf_sample *sample_of(const struct perf_flow *f, uint32_t rank, uint64_t number)
{
	const struct perf_shared *s = f->member->shared;

	if (!s->samples || rank >= s->sample_lanes || number >= s->sample_stride)
		return NULL;
	return &s->samples[((uint64_t)f->group * s->sample_lanes + rank) * s->sample_stride +
			   number];
}

/* The call that sends @n messages from @number on begins. */
void perf_handed_over(const struct perf_flow *f, uint64_t number, unsigned int n)
{
	struct perf_sample *sample;
	unsigned int i;
	int64_t now;

	if (!f->member->shared->samples)
		return;
	now = perf_now();
	for (i = 0; i < n; i++) {
		sample = sample_of(f, f->res->rank, number + i);
		if (sample)
			sample->sent = now;
	}
}

static void taken_now(struct perf_flow *f, uint32_t rank, uint64_t number)
{
	struct perf_sample *sample = sample_of(f, rank, number);
	int64_t now, last;

	if (sample) {
		now = perf_now();
		if (rank == f->res->rank)
			sample->own = now;
		last = __atomic_load_n(&sample->all, __ATOMIC_RELAXED);
		while (last < now &&
		       !__atomic_compare_exchange_n(&sample->all, &last, now, true,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
	}
	if (rank == f->res->rank && f->member->opt->latency == PERF_LATENCY_CLOSED)
		sem_post(&f->own_seen);
}

/* The next message of the order. */
void perf_take(struct perf_flow *f, uint32_t rank, const void *data, uint32_t len)
{
	const struct perf_options *opt = f->member->opt;
	struct perf_result *res = f->res;
	uint64_t number;

	if (rank >= res->members)
		perf_die(f->member, "a message of rank %u, but there are %u members", rank,
			 res->members);
	number = res->from[rank]++;
	if (f->member->shared->samples)
		taken_now(f, rank, number);
	if (opt->verify != PERF_VERIFY_NONE) {
		check(f, rank, number, data, len);
		res->hash = (res->hash ^ (uint64_t)rank << 56 ^ number) * 0x100000001b3ULL;
		res->hash ^= res->hash >> 29;
	}
	res->received++;
	__atomic_store_n(&res->bytes, res->bytes + len, __ATOMIC_RELAXED);
	if (res->received == opt->warmup * res->senders) {
		res->skipped = res->received;
		res->skipped_bytes = res->bytes;
		perf_count_word(&f->member->shared->warm);
	}
	if (f->slow_us)
		perf_pause_ns(f->slow_us * 1000LL);
}

static void pause_us(unsigned int us, bool busy)
{
	int64_t until;

	if (!busy) {
		perf_pause_ns(us * 1000LL);
		return;
	}
	until = perf_now() + us * 1000LL;
	while (perf_now() < until)
		;
}

static void await_own(struct perf_flow *f)
{
	struct timespec ts;
	int ms = perf_left_ms(f);

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += ms / 1000 + 1;
	while (sem_timedwait(&f->own_seen, &ts))
		if (errno != EINTR)
			perf_die(f->member, "message %llu did not come back",
				 (unsigned long long)f->res->sent - 1);
}

/* Send up to message @until, or until told to stop; @delay_us behind each. */
static void send_until(struct perf_flow *f, uint64_t until, unsigned int delay_us)
{
	const struct perf_options *opt = f->member->opt;
	const struct perf_ops *ops = all_ops[opt->mode];
	struct perf_result *res = f->res;
	unsigned int n;

	while (res->sent < until &&
	       !__atomic_load_n(&f->member->shared->stop, __ATOMIC_RELAXED)) {
		n = delay_us ? 1 : opt->batch;
		if (until - res->sent < n)
			n = until - res->sent;
		res->sent += ops->send(f, n);
		if (opt->latency == PERF_LATENCY_CLOSED) {
			await_own(f);
			if (opt->interval_us)
				perf_pause_ns(opt->interval_us * 1000LL);
		}
		if (delay_us)
			pause_us(delay_us, opt->delay_busy);
	}
}

static void *send_all(void *arg)
{
	struct perf_flow *f = arg;
	struct perf_member *m = f->member;

	if (!perf_wait_word(&m->shared->go, 1, m->deadline))
		perf_die(m, "nobody said go");
	send_until(f, m->opt->warmup, 0);
	if (!perf_wait_word(&m->shared->go, 2, m->deadline))
		perf_die(m, "the warm-up did not end");
	send_until(f, m->opt->iters ? m->opt->iters : UINT64_MAX, f->delay_us);
	all_ops[m->opt->mode]->shutdown(f);
	return NULL;
}

static void *receive_all(void *arg)
{
	struct perf_flow *f = arg;
	const struct perf_ops *ops = all_ops[f->member->opt->mode];

	while (ops->receive(f))
		;
	f->res->end = perf_now();
	return NULL;
}

static bool may_come(int err)
{
	return err == ENOENT || err == ECONNREFUSED || err == EHOSTUNREACH || err == ETIMEDOUT;
}

static struct spindle_group_create config_of(const struct perf_options *opt, unsigned int i,
					     bool idle)
{
	struct spindle_group_create c = {
		.members = opt->members,
		.senders = opt->senders,
		.window = idle ? opt->idle_window : opt->window,
		.max_msg = idle ? 0 : opt->max_msg,
		.depth = idle ? SPINDLE_MIN_DEPTH : opt->depth,
		.optimise_off = opt->optimise_off,
	};

	perf_group_name(opt, c.name, sizeof(c.name), i, idle);
	return c;
}

/* Become a member of group @i; @f: an active one. */
static void enter(struct perf_member *m, struct perf_flow *f, unsigned int i)
{
	const struct perf_options *opt = m->opt;
	const struct perf_ops *ops = all_ops[opt->mode];
	struct spindle_group_create create = config_of(opt, i, !f);
	struct spindle_group_join join = { 0 };
	const char *contact = opt->contact ? opt->contact : opt->addr[0];
	int err;

	if (f)
		ops->open(f, opt->addr[m->index]);
	else
		m->idle[i] = perf_socket_open(m, opt->addr[m->index]);
	if (!opt->contact && !m->index) {
		if (f) {
			ops->create(f, &create);
		} else {
			err = perf_socket_create(m->idle[i], &create);
			if (err)
				perf_die(m, "creating %s: %s", create.name, strerror(err));
		}
		return;
	}
	memcpy(join.name, create.name, sizeof(join.name));
	for (;;) {
		err = f ? ops->join(f, contact, &join) :
			  perf_socket_join(m->idle[i], contact, &join);
		if (!err)
			return;
		if (!may_come(err) || perf_now() > m->deadline)
			perf_die(m, "joining %s at %s: %s", join.name, contact, strerror(err));
		perf_pause_ns(PACE_US * 1000LL);
	}
}

/* They are the creator's; a program that was told of others measures something else. */
static void check_optimised(struct perf_member *m, const struct spindle_group_info *info)
{
	if (m->opt->optimise && info->optimise_off != m->opt->optimise_off)
		perf_die(m, "%s was created with other optimisations than %s", info->name,
			 m->opt->optimise);
}

static void await_view(struct perf_member *m, struct perf_flow *f)
{
	const struct perf_ops *ops = all_ops[m->opt->mode];
	struct spindle_group_info info;
	int64_t ns = 200000;

	for (;;) {
		ops->info(f, &info);
		if (info.state == SPINDLE_STATE_ACTIVE)
			break;
		if (info.state != SPINDLE_STATE_FORMING)
			perf_die(m, "the group is in state %u: %s", info.state,
				 strerror(info.error));
		if (perf_now() > m->deadline)
			perf_die(m, "no first view in time");
		perf_pause_ns(ns);
		ns = ns < 5000000 ? ns * 2 : ns;
	}
	check_optimised(m, &info);
	f->res->rank = info.rank;
	f->res->members = info.members;
	f->res->senders = info.senders;
	f->sends = info.rank < info.senders;
}

static void await_idle(struct perf_member *m, unsigned int i)
{
	struct spindle_group_info info;
	socklen_t len = sizeof(info);

	while (!getsockopt(m->idle[i], SOL_SPINDLE, SPINDLE_GROUP_INFO, &info, &len)) {
		if (info.state == SPINDLE_STATE_ACTIVE) {
			check_optimised(m, &info);
			return;
		}
		if (perf_now() > m->deadline)
			perf_die(m, "idle group %u: no first view in time", i);
		perf_pause_ns(1000000);
	}
	perf_die(m, "idle group %u: %s", i, strerror(errno));
}

static void start_flow(struct perf_member *m, struct perf_flow *f)
{
	const struct perf_options *opt = m->opt;
	pthread_attr_t attr;

	if (f->sends && f->res->rank < opt->delayed)
		f->delay_us = opt->delay_us;
	if (m->index == opt->locals - 1)
		f->slow_us = opt->slow_us;
	f->res->hash = 0xcbf29ce484222325ULL;
	f->made = calloc(1, opt->max_msg);
	f->taken = calloc(1, opt->max_msg);
	if (!f->made || !f->taken)
		perf_die(m, "no memory for messages");
	sem_init(&f->own_seen, 0, 0);
	all_ops[opt->mode]->start(f);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	if (pthread_create(&f->receiver, &attr, receive_all, f) ||
	    (f->sends && pthread_create(&f->sender, &attr, send_all, f)))
		perf_die(m, "no thread: %s", strerror(errno));
	pthread_attr_destroy(&attr);
}

/* All say their last word, then all read it. */
static void leave_idle(struct perf_member *m)
{
	unsigned int i;
	char byte;

	for (i = 0; i < m->opt->idle; i++)
		if (shutdown(m->idle[i], SHUT_WR) && errno != EACCES)
			perf_die(m, "idle group %u: shutdown: %s", i, strerror(errno));
	for (i = 0; i < m->opt->idle; i++) {
		if (recv(m->idle[i], &byte, 1, 0))
			perf_die(m, "idle group %u: %s at its end", i, strerror(errno));
		close(m->idle[i]);
	}
}

void perf_member_run(const struct perf_options *opt, struct perf_shared *shared,
		     unsigned int index)
{
	static struct perf_member m;
	const struct perf_ops *ops = all_ops[opt->mode];
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(opt->timeout + 30);
	m.opt = opt;
	m.shared = shared;
	m.index = index;
	m.deadline = perf_now() + opt->timeout * 1000000000LL;
	for (i = 0; i < opt->active; i++) {
		struct perf_flow *f = &m.flows[i];

		f->member = &m;
		f->group = i;
		f->fd = -1;
		f->res = &shared->result[index * opt->active + i];
		enter(&m, f, i);
	}
	for (i = 0; i < opt->idle; i++)
		enter(&m, NULL, i);
	for (i = 0; i < opt->active; i++)
		await_view(&m, &m.flows[i]);
	for (i = 0; i < opt->idle; i++)
		await_idle(&m, i);
	for (i = 0; i < opt->active; i++)
		start_flow(&m, &m.flows[i]);
	perf_count_word(&shared->ready);
	for (i = 0; i < opt->active; i++) {
		if (m.flows[i].sends)
			pthread_join(m.flows[i].sender, NULL);
		pthread_join(m.flows[i].receiver, NULL);
	}
	perf_count_word(&shared->done);
	if (!perf_wait_word(&shared->leave, 1, m.deadline))
		perf_die(&m, "others did not end in time");
	leave_idle(&m);
	for (i = 0; i < opt->active; i++)
		ops->close(&m.flows[i]);
}
