// SPDX-License-Identifier: MIT
/*
 * spindle-perf: how fast a Spindle group is. See spindle-perf(1).
 *
 * This is the parent of the local members: it starts them, lets them begin all
 * at once, watches, reads the kernel's counters before and after, and compares
 * what they say they received.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <json-c/json.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

#define BEAT_NS		100000000LL	/* between two looks at the members */
#define GRACE_SECONDS	20		/* to close sockets */

struct children {
	const struct perf_options *opt;
	struct perf_shared *shared;
	int64_t deadline;
	pid_t pid[PERF_MAX_LOCAL];
};

int64_t perf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

void perf_pause_ns(int64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

/* Wait until the word of shared memory has that value or more. */
bool perf_wait_word(uint32_t *word, uint32_t want, int64_t deadline)
{
	struct timespec ts;
	uint32_t is;
	int64_t left;

	while ((is = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < want) {
		left = deadline - perf_now();
		if (left <= 0)
			return false;
		ts = (struct timespec){ left / 1000000000, left % 1000000000 };
		syscall(SYS_futex, word, FUTEX_WAIT, is, &ts, NULL, 0);
	}
	return true;
}

void perf_set_word(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* One more is so far; each of them may be what somebody waits for. */
void perf_count_word(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

socklen_t perf_addr(const char *text, struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return sizeof(*in);
	}
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		return sizeof(*in6);
	}
	return 0;
}

void perf_group_name(const struct perf_options *opt, char *name, size_t size, unsigned int i,
		     bool idle)
{
	if (idle)
		snprintf(name, size, "%s.i%u", opt->group, i);
	else if (i)
		snprintf(name, size, "%s.%u", opt->group, i);
	else
		snprintf(name, size, "%s", opt->group);
}

static void end_children(struct children *c)
{
	unsigned int i;

	for (i = 0; i < c->opt->locals; i++)
		if (c->pid[i] > 0)
			kill(c->pid[i], SIGKILL);
	for (i = 0; i < c->opt->locals; i++)
		if (c->pid[i] > 0)
			waitpid(c->pid[i], NULL, 0);
}

__attribute__((noreturn)) static void give_up(struct children *c, const char *why)
{
	end_children(c);
	fprintf(stderr, "spindle-perf: %s\n", why);
	exit(1);
}

/* One that ended before its time takes all with it. */
static void look_after(struct children *c)
{
	struct perf_shared *s = c->shared;
	int status;
	pid_t pid;

	if (__atomic_load_n(&s->failed, __ATOMIC_ACQUIRE)) {
		/* until the one that failed has told why and has ended */
		perf_pause_ns(BEAT_NS / 4);
		give_up(c, s->error[0] ? s->error : "a member has failed");
	}
	pid = waitpid(-1, &status, WNOHANG);
	if (pid > 0 && status) {
		perf_pause_ns(BEAT_NS / 4);
		give_up(c, s->error[0] ? s->error :
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a member has failed");
	}
	if (perf_now() > c->deadline)
		give_up(c, "it takes too long (see --timeout)");
}

static void wait_for_all(struct children *c, uint32_t *word, uint32_t all)
{
	while (!perf_wait_word(word, all, perf_now() + BEAT_NS))
		look_after(c);
}

static struct perf_shared *make_shared(const struct perf_options *opt)
{
	size_t results = sizeof(struct perf_result) * opt->locals * opt->active;
	uint64_t lanes = (uint64_t)opt->active * opt->members;
	struct perf_shared *s;
	size_t size;
	void *mem;

	mem = mmap(NULL, sizeof(*s) + results, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	s = mem;
	if (opt->latency == PERF_LATENCY_OFF)
		return s;
	s->sample_lanes = opt->members;
	s->sample_stride = PERF_SAMPLES / lanes;
	if (opt->iters && opt->iters < s->sample_stride)
		s->sample_stride = opt->iters;
	size = lanes * s->sample_stride * sizeof(struct perf_sample);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	s->samples = mem;
	return s;
}

/* Bytes that all local members have taken so far. */
static uint64_t taken(const struct children *c)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < c->opt->locals * c->opt->active; i++)
		sum += __atomic_load_n(&c->shared->result[i].bytes, __ATOMIC_RELAXED);
	return sum;
}

/* From the first message to the last; the highest rate on the way, bytes/s. */
static double watch(struct children *c)
{
	int64_t last = c->shared->begin, now, next;
	int64_t stop_at = last + (int64_t)(c->opt->seconds * 1e9);
	uint64_t before = taken(c), bytes;
	double peak = 0, rate;
	bool done;

	do {
		next = perf_now() + BEAT_NS;
		if (c->opt->iters == 0 && !c->shared->stop && stop_at < next)
			next = stop_at;
		done = perf_wait_word(&c->shared->done, c->opt->locals, next);
		now = perf_now();
		if (c->opt->iters == 0 && now >= stop_at)
			perf_set_word(&c->shared->stop, 1);
		bytes = taken(c);
		/* a short interval says more of the clock than of the group */
		if (now - last >= BEAT_NS / 2) {
			rate = (double)(bytes - before) / c->opt->locals / ((now - last) / 1e9);
			peak = rate > peak ? rate : peak;
			before = bytes;
			last = now;
		}
		if (!done)
			look_after(c);
	} while (!done);
	return peak;
}

static struct json_object *counters_of(const struct perf_options *opt, bool idle, bool after,
				       struct perf_counters **before)
{
	unsigned int i, n = idle ? opt->idle : opt->active;
	struct json_object *sum = NULL, *one;
	char name[SPINDLE_NAME_LEN];

	for (i = 0; i < n; i++) {
		perf_group_name(opt, name, sizeof(name), i, idle);
		if (!after) {
			before[i] = perf_counters_read(opt, name);
			continue;
		}
		one = perf_counters_diff(before[i], perf_counters_read(opt, name));
		if (!sum) {
			sum = one;
			continue;
		}
		json_object_object_foreach(one, key, val) {
			struct json_object *have;

			if (json_object_object_get_ex(sum, key, &have))
				json_object_int_inc(have, json_object_get_int64(val));
		}
		json_object_put(one);
	}
	return sum;
}

static bool verify(const struct perf_options *opt, const struct perf_shared *s)
{
	unsigned int g, i, r;
	bool ok = true;

	for (g = 0; g < opt->active; g++) {
		const struct perf_result *first = &s->result[g];

		for (i = 0; i < opt->locals; i++) {
			const struct perf_result *res = &s->result[i * opt->active + g];

			if (res->hash != first->hash || res->received != first->received) {
				fprintf(stderr, "spindle-perf: group %u: local members 0 and %u received different sequences (%llu and %llu messages, %016llx and %016llx)\n",
					g, i, (unsigned long long)first->received,
					(unsigned long long)res->received,
					(unsigned long long)first->hash,
					(unsigned long long)res->hash);
				ok = false;
			}
			if (first->from[res->rank] != res->sent) {
				fprintf(stderr, "spindle-perf: group %u: member %u received %llu messages of rank %u, which sent %llu\n",
					g, 0, (unsigned long long)first->from[res->rank], res->rank,
					(unsigned long long)res->sent);
				ok = false;
			}
		}
		for (r = 0; opt->iters && r < first->senders; r++) {
			if (first->from[r] == opt->iters)
				continue;
			fprintf(stderr, "spindle-perf: group %u: %llu of %llu messages of rank %u were received\n",
				g, (unsigned long long)first->from[r],
				(unsigned long long)opt->iters, r);
			ok = false;
		}
	}
	return ok;
}

/* Seconds since the last call. */
static double lap(int64_t *from)
{
	int64_t now = perf_now();
	double seconds = (now - *from) / 1e9;

	*from = now;
	return seconds;
}

int main(int argc, char **argv)
{
	struct perf_counters *active_before[PERF_MAX_ACTIVE], *idle_before[PERF_MAX_IDLE];
	struct perf_outcome out = { 0 };
	static struct perf_options opt;
	char name[SPINDLE_NAME_LEN];
	struct children c = { 0 };
	int status, ret = 0;
	unsigned int i;
	int64_t from;

	/* the other hash wants random bytes, which a machine just booted may lack */
	json_global_set_string_hash(JSON_C_STR_HASH_PERLLIKE);
	perf_parse(&opt, argc, argv);
	c.opt = &opt;
	from = perf_now();
	c.deadline = perf_now() + opt.timeout * 1000000000LL;
	c.shared = make_shared(&opt);
	if (!c.shared)
		give_up(&c, "no memory");
	fflush(NULL);
	for (i = 0; i < opt.locals; i++) {
		c.pid[i] = fork();
		if (c.pid[i] < 0)
			give_up(&c, strerror(errno));
		if (!c.pid[i]) {
			perf_member_run(&opt, c.shared, i);
			_exit(0);
		}
	}
	wait_for_all(&c, &c.shared->ready, opt.locals);
	if (opt.explain) {
		wait_for_all(&c, &c.shared->done, opt.locals);
		for (i = 0; i < opt.locals; i++)
			waitpid(c.pid[i], NULL, 0);
		return 0;
	}
	out.forming = lap(&from);
	if (opt.warmup) {
		perf_set_word(&c.shared->go, 1);
		wait_for_all(&c, &c.shared->warm, opt.locals * opt.active);
	}
	out.warming = lap(&from);
	if (opt.stats) {
		counters_of(&opt, false, false, active_before);
		counters_of(&opt, true, false, idle_before);
		perf_group_name(&opt, name, sizeof(name), 0, false);
		perf_batches_reset(&opt, name);
	}
	if (opt.marks)
		fputs("begin\n", stderr);
	c.shared->begin = perf_now();
	perf_set_word(&c.shared->go, 2);
	out.peak = watch(&c);
	if (opt.marks)
		fputs("end\n", stderr);
	if (opt.stats) {
		out.counters = counters_of(&opt, false, true, active_before);
		out.idle_counters = counters_of(&opt, true, true, idle_before);
		out.batches = perf_batches_read(&opt, name);
	}
	lap(&from);
	c.deadline = perf_now() + GRACE_SECONDS * 1000000000LL;
	perf_set_word(&c.shared->leave, 1);
	for (i = 0; i < opt.locals; i++) {
		while (waitpid(c.pid[i], &status, WNOHANG) == 0) {
			if (perf_now() > c.deadline)
				give_up(&c, "members do not end");
			perf_pause_ns(1000000);
		}
		c.pid[i] = 0;
		if (status)
			give_up(&c, c.shared->error[0] ? c.shared->error :
				"a member has failed at its end");
	}
	out.ending = lap(&from);
	if (opt.verify != PERF_VERIFY_NONE && !verify(&opt, c.shared))
		ret = 1;
	if (perf_report(&opt, c.shared, &out))
		ret = 1;
	return ret;
}
