/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the selftests share: a table of tests, each run in a child of its own
 * with an alarm, results as TAP; and the few calls every Spindle program makes.
 *
 * A program's tests are run in the order in which they stand in it. Names as
 * arguments choose some of them, --list prints them all.
 *
 * Tests wait for what they can see. A bound on that only ends what would hang:
 * each is generous, and as many times as long as this host is slower than an
 * idle guest. What a test says of messages that were lost, doubled, changed or
 * in another order begins with "broken: ", for that is no question of time.
 */
#ifndef SPINDLE_SELFTEST_H
#define SPINDLE_SELFTEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/spindle.h>

#define ST_UNUSED	__attribute__((unused))
#define ST_SKIP		4	/* status of a test that cannot be run here */
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Seconds that a test waits for what should happen at once: see st_bound_s(). */
#define ST_SOON		30

/* Seconds of a test, and of a program that is a member. */
#define ST_TEST		120
#define ST_PROGRAM	600

/*
 * What st_work() takes in an idle guest, in seconds: what the line "# speed:"
 * of most runs of a test in scripts/vm run --kernel uml says.
 */
#define ST_WORK_IDLE	0.025

struct st_test {
	const char *name;
	void (*fn)(void);
	unsigned int seconds;
};

static struct st_test *st_tests[256];
static unsigned int st_ntests;

#define TEST_SECONDS(test, secs)					\
	static void test(void);						\
	static struct st_test test##_entry = { #test, test, secs };	\
	static void __attribute__((constructor)) test##_add(void)	\
	{								\
		st_tests[st_ntests++] = &test##_entry;			\
	}								\
	static void test(void)

#define TEST(test)	TEST_SECONDS(test, ST_TEST)

static ST_UNUSED __attribute__((noreturn, format(printf, 3, 4)))
void st_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dprintf(1, "# %s:%d: %s\n", base ? base + 1 : file, line, text);
	_exit(1);
}

static ST_UNUSED __attribute__((noreturn)) void st_skip(const char *why)
{
	dprintf(1, "# SKIP %s\n", why);
	_exit(ST_SKIP);
}

static ST_UNUSED const char *st_err(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "no errno";
}

#define FAIL(...)	st_fail(__FILE__, __LINE__, __VA_ARGS__)

/* Messages are not what they should be, whatever time it took. */
#define BROKEN(...)	FAIL("broken: " __VA_ARGS__)

#define CHECK(cond)							\
	do {								\
		if (!(cond))						\
			FAIL("not so: %s", #cond);			\
	} while (0)

#define CHECK_EQ(got, want)						\
	do {								\
		long long __got = (long long)(got);			\
		long long __want = (long long)(want);			\
									\
		if (__got != __want)					\
			FAIL("%s is %lld (%#llx), not %lld (%#llx)",	\
			     #got, __got, __got, __want, __want);	\
	} while (0)

/* The same of messages, their bytes, lengths, order and number. */
#define CHECK_INTACT(cond)						\
	do {								\
		if (!(cond))						\
			BROKEN("not so: %s", #cond);			\
	} while (0)

#define CHECK_SAME(got, want)						\
	do {								\
		long long __got = (long long)(got);			\
		long long __want = (long long)(want);			\
									\
		if (__got != __want)					\
			BROKEN("%s is %lld, not %lld", #got, __got,	\
			       __want);					\
	} while (0)

#define CHECK_OK(call)							\
	({								\
		long long __ret = (long long)(call);			\
									\
		if (__ret < 0)						\
			FAIL("%s: %s", #call, st_err(errno));		\
		__ret;							\
	})

#define CHECK_ERR(call, want)						\
	do {								\
		long long __ret = (errno = 0, (long long)(call));	\
		int __err = errno;					\
									\
		if (__ret >= 0)						\
			FAIL("%s: %lld, not %s", #call, __ret, #want);	\
		if (__err != (want))					\
			FAIL("%s: %s, not %s", #call, st_err(__err),	\
			     #want);					\
	} while (0)

static ST_UNUSED double st_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static ST_UNUSED void st_pause_us(unsigned int us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&ts, NULL);
}

/* Did @ret mean @err, after which one may try again; any other error is none. */
static ST_UNUSED bool st_again(const char *file, int line, int ret, int err)
{
	if (ret && errno != err)
		st_fail(file, line, "%s, not %s", st_err(errno), st_err(err));
	return ret;
}

#define AGAIN(call, err)	st_again(__FILE__, __LINE__, call, err)

static ST_UNUSED unsigned long st_env(const char *name, unsigned long otherwise)
{
	const char *val = getenv(name);

	return val && *val ? strtoul(val, NULL, 0) : otherwise;
}

/* Speed */

#define ST_ROUNDS	300

/* Have bytes back from another process, and do a little with memory each time. */
static ST_UNUSED void st_echo(int from, int to, bool first)
{
	static uint32_t memory[1024];
	unsigned int i, k;
	char byte = 0;

	for (i = 0; i < ST_ROUNDS; i++) {
		if (first && write(to, &byte, 1) != 1)
			return;
		if (read(from, &byte, 1) != 1)
			return;
		for (k = 1; k < ARRAY_SIZE(memory); k++)
			memory[k] = (memory[k] ^ memory[k - 1] ^ byte) * 0x01000193U;
		if (!first && write(to, &byte, 1) != 1)
			return;
	}
}

/* How long a fixed amount of work takes that is like that of a test. */
static ST_UNUSED double st_work(void)
{
	double start = st_now();
	int there[2], back[2];
	pid_t pid;

	CHECK_OK(pipe(there));
	CHECK_OK(pipe(back));
	pid = CHECK_OK(fork());
	if (!pid) {
		close(there[1]);
		close(back[0]);
		st_echo(there[0], back[1], false);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	st_echo(back[0], there[1], true);
	close(there[1]);
	close(back[0]);
	CHECK_OK(waitpid(pid, NULL, 0));
	return st_now() - start;
}

static ST_UNUSED double st_factor = 1;

/* Measure by how much all bounds are to be longer, and say so on @out. */
static ST_UNUSED void st_measure(FILE *out)
{
	double work = st_work();
	double ratio = work > ST_WORK_IDLE ? work / ST_WORK_IDLE : 1;

	ratio *= st_env("SPINDLE_TIMEOUT_SCALE", 1);
	st_factor = ratio < 1 ? 1 : ratio > 60 ? 60 : ratio;
	fprintf(out, "# speed: bounds are %.1f times as long (%.1f ms of work)\n", st_factor,
		work * 1e3);
}

/* How long at most something takes here that takes at most @seconds anywhere. */
static ST_UNUSED double st_bound_s(double seconds)
{
	return seconds * st_factor;
}

static ST_UNUSED int st_bound_ms(double seconds)
{
	return st_bound_s(seconds) * 1000;
}

/* Look until it is so, for a bounded time. */
#define WAIT_UNTIL(cond, secs)						\
	do {								\
		double __bound = st_bound_s(secs);			\
		double __end = st_now() + __bound;			\
		unsigned int __us = 100;				\
									\
		while (!(cond)) {					\
			if (st_now() > __end)				\
				FAIL("not so in %g s: %s", __bound,	\
				     #cond);				\
			st_pause_us(__us);				\
			if (__us < 10000)				\
				__us *= 2;				\
		}							\
	} while (0)

/* A small generator: the same numbers from the same seed everywhere. */
static ST_UNUSED uint64_t st_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Addresses and sockets */

static ST_UNUSED const char *st_addr(unsigned int i)
{
	static char list[8192], *addrs[256];
	static unsigned int n;
	char *word, *save = NULL;

	if (!n) {
		const char *env = getenv("SPINDLE_ADDRS");

		snprintf(list, sizeof(list), "%s", env ? env : "");
		for (word = strtok_r(list, " ", &save);
		     word && n < ARRAY_SIZE(addrs);
		     word = strtok_r(NULL, " ", &save))
			addrs[n++] = word;
	}
	if (i >= n)
		st_skip("SPINDLE_ADDRS has too few addresses");
	return addrs[i];
}

static ST_UNUSED bool st_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

static ST_UNUSED bool st_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static ST_UNUSED int st_family(void)
{
	char buf[32];

	if (!st_read_file("/sys/module/spindle/parameters/family", buf, sizeof(buf)))
		FAIL("the module is not loaded");
	return atoi(buf);
}

static ST_UNUSED int st_socket(int flags)
{
	return CHECK_OK(socket(st_family(), SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

static ST_UNUSED struct sockaddr_in st_in(const char *addr)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	CHECK_EQ(inet_pton(AF_INET, addr, &sin.sin_addr), 1);
	return sin;
}

static ST_UNUSED struct in6_addr st_mapped(const char *addr)
{
	struct in6_addr in6 = { 0 };

	in6.s6_addr[10] = 0xff;
	in6.s6_addr[11] = 0xff;
	CHECK_EQ(inet_pton(AF_INET, addr, in6.s6_addr + 12), 1);
	return in6;
}

static ST_UNUSED int st_bind(int fd, const char *addr)
{
	struct sockaddr_in sin = st_in(addr);

	return bind(fd, (struct sockaddr *)&sin, sizeof(sin));
}

static ST_UNUSED int st_bound(unsigned int node)
{
	int fd = st_socket(0);

	CHECK_OK(st_bind(fd, st_addr(node)));
	return fd;
}

/* A name that no other test, and no other run of this one, has. */
static ST_UNUSED void st_name(char *name)
{
	static unsigned int count;

	snprintf(name, SPINDLE_NAME_LEN, "t%d.%u", getpid(), count++);
}

static ST_UNUSED int st_create(int fd, const struct spindle_group_create *c)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, c, sizeof(*c));
}

static ST_UNUSED int st_join(int fd, const struct spindle_group_join *j)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, j, sizeof(*j));
}

static ST_UNUSED void st_contact(struct spindle_group_join *j, const char *addr)
{
	struct sockaddr_in sin = st_in(addr);

	memset(j->contact, 0, sizeof(j->contact));
	memcpy(j->contact, &sin, sizeof(sin));
}

static ST_UNUSED struct spindle_group_info st_info(int fd)
{
	struct spindle_group_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0xaa, sizeof(info));
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &info, &len));
	CHECK_EQ(len, sizeof(info));
	return info;
}

static ST_UNUSED void st_wait_state(int fd, unsigned int state)
{
	double bound = st_bound_s(ST_SOON), end = st_now() + bound;

	while (st_info(fd).state != state) {
		if (st_now() > end)
			FAIL("state %u after %g s, not %u (error %s)", st_info(fd).state,
			     bound, state, st_err(st_info(fd).error));
		st_pause_us(500);
	}
}

/* Until the view has so many members: one more or less than before. */
static ST_UNUSED void st_wait_members(int fd, unsigned int members)
{
	double bound = st_bound_s(ST_SOON), end = st_now() + bound;

	while (st_info(fd).members != members) {
		if (st_now() > end)
			FAIL("%u members after %g s, not %u (view %llu, state %u, error %s)",
			     st_info(fd).members, bound, members,
			     (unsigned long long)st_info(fd).view, st_info(fd).state,
			     st_err(st_info(fd).error));
		st_pause_us(500);
	}
}

static ST_UNUSED int st_option(int fd, int name, int value)
{
	return setsockopt(fd, SOL_SPINDLE, name, &value, sizeof(value));
}

static ST_UNUSED int st_leave(int fd)
{
	return st_option(fd, SPINDLE_GROUP_LEAVE, 0);
}

/* How long what it has sent may be under way after it was closed. */
static ST_UNUSED void st_linger(int fd, double seconds)
{
	struct linger linger = { .l_onoff = 1, .l_linger = st_bound_s(seconds) };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

static ST_UNUSED int st_so_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	CHECK_OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	return err;
}

static ST_UNUSED void st_timeout(int fd, int which, unsigned int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000L };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, which, &tv, sizeof(tv)));
}

/* What poll() says now. */
static ST_UNUSED int st_events(int fd)
{
	struct pollfd pfd = {
		.fd = fd,
		.events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM |
			  POLLWRNORM | POLLRDBAND,
	};

	CHECK_OK(poll(&pfd, 1, 0));
	return pfd.revents;
}

static ST_UNUSED void st_wait_events(int fd, int events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	if (CHECK_OK(poll(&pfd, 1, st_bound_ms(ST_SOON))) != 1)
		FAIL("no event of %#x in %g s; there are %#x, state %u", events,
		     st_bound_s(ST_SOON), st_events(fd), st_info(fd).state);
}

/* Sleepers and signals */

/* Does this thread, of whichever process, wait for something? */
static ST_UNUSED bool st_sleeps(pid_t tid)
{
	char path[64], stat[512], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (!st_read_file(path, stat, sizeof(stat)))
		FAIL("%s: %s", path, st_err(errno));
	/* a name may have brackets in it, too */
	state = strrchr(stat, ')');
	CHECK(state && strlen(state) > 2);
	return state[2] == 'S';
}

/* What is done once a thread sleeps in the call that it has announced. */
static ST_UNUSED struct {
	void (*fn)(pid_t sleeper, void *arg);
	void *arg;
	pid_t tid;
	bool calls;
} st_caller;

static ST_UNUSED void *st_caller_watch(void *arg)
{
	(void)arg;
	WAIT_UNTIL(__atomic_load_n(&st_caller.calls, __ATOMIC_ACQUIRE), ST_SOON);
	WAIT_UNTIL(st_sleeps(st_caller.tid), ST_SOON);
	st_caller.fn(st_caller.tid, st_caller.arg);
	return NULL;
}

/*
 * When this thread sleeps in the next call that it makes, do something in
 * another one. Nothing else that it does from here on may sleep.
 */
static ST_UNUSED pthread_t st_in_call(void (*fn)(pid_t sleeper, void *arg), void *arg)
{
	pthread_t thread;

	st_caller.fn = fn;
	st_caller.arg = arg;
	st_caller.tid = syscall(SYS_gettid);
	st_caller.calls = false;
	CHECK_EQ(pthread_create(&thread, NULL, st_caller_watch, NULL), 0);
	__atomic_store_n(&st_caller.calls, true, __ATOMIC_RELEASE);
	return thread;
}

/* A group whose members are all sockets of this process. */

struct st_config {
	unsigned int members;
	unsigned int nodes;	/* member i is on node first + i % nodes; 0: all on one */
	unsigned int first;
	unsigned int senders;
	unsigned int window;
	unsigned int max_msg;
	unsigned int depth;
	unsigned int max_members;	/* 0: as @members: nobody joins before somebody has gone */
	uint64_t receivers;	/* bit i: member i never sends */
	uint32_t flags;		/* of the group */
	uint32_t optimise_off;	/* SPINDLE_OFF_* */
	unsigned int silent_ms;
	unsigned int link_ms;
	unsigned int evict_ms;
	int events;		/* SPINDLE_WANT_*, from the beginning */
	bool recvinfo;
};

struct st_group {
	char name[SPINDLE_NAME_LEN];
	unsigned int nodes;
	unsigned int first;
	unsigned int n;
	int fd[SPINDLE_MAX_MEMBERS];
};

static ST_UNUSED struct spindle_group_create st_create_of(const struct st_config *c,
							  const char *name)
{
	struct spindle_group_create create = {
		.members = c->members,
		.senders = c->senders,
		.window = c->window,
		.max_msg = c->max_msg,
		.depth = c->depth,
		.max_members = c->max_members ? c->max_members : c->members,
		.flags = c->flags | (c->receivers & 1 ? SPINDLE_F_RECEIVER : 0),
		.optimise_off = c->optimise_off,
		.silent_ms = c->silent_ms,
		.link_ms = c->link_ms,
		.evict_ms = c->evict_ms,
	};

	snprintf(create.name, sizeof(create.name), "%s", name);
	return create;
}

/* A socket for member @i, with what it is to have before it is one. */
static ST_UNUSED int st_fresh(const struct st_config *c, unsigned int i)
{
	int fd = st_bound(c->first + i % (c->nodes ? c->nodes : 1));

	if (c->events)
		CHECK_OK(st_option(fd, SPINDLE_EVENTS, c->events));
	if (c->recvinfo)
		CHECK_OK(st_option(fd, SPINDLE_RECVINFO, 1));
	return fd;
}

/* Make the group and let all but @missing members come. */
static ST_UNUSED void st_open_but(struct st_group *g, const struct st_config *c,
				  unsigned int missing)
{
	unsigned int nodes = c->nodes ? c->nodes : 1;
	struct spindle_group_create create;
	struct spindle_group_join join = { 0 };

	if (!g->name[0])
		st_name(g->name);
	g->nodes = nodes < c->members ? nodes : c->members;
	g->first = c->first;
	create = st_create_of(c, g->name);
	snprintf(join.name, sizeof(join.name), "%s", g->name);
	st_contact(&join, st_addr(c->first));
	g->fd[0] = st_fresh(c, 0);
	CHECK_OK(st_create(g->fd[0], &create));
	for (g->n = 1; g->n < c->members - missing; g->n++) {
		g->fd[g->n] = st_fresh(c, g->n);
		join.flags = c->receivers >> g->n & 1 ? SPINDLE_F_RECEIVER : 0;
		CHECK_OK(st_join(g->fd[g->n], &join));
	}
}

static ST_UNUSED void st_open(struct st_group *g, const struct st_config *c)
{
	unsigned int i;

	st_open_but(g, c, 0);
	for (i = 0; i < g->n; i++)
		st_wait_state(g->fd[i], SPINDLE_STATE_ACTIVE);
}

/* Join a group that is there, at a node that has a member. */
static ST_UNUSED int st_come(const struct st_group *g, int fd, unsigned int contact,
			     unsigned int flags)
{
	struct spindle_group_join j = { .flags = flags };

	snprintf(j.name, sizeof(j.name), "%s", g->name);
	st_contact(&j, st_addr(contact));
	return st_join(fd, &j);
}

/* What goes on for a group on one node, of one moment: see debugfs.c. */
struct st_activity {
	char what[16];
	unsigned long long passes, sends, receives, looks;
};

static ST_UNUSED struct st_activity st_activity(unsigned int node, const struct st_group *g)
{
	struct st_activity a;
	char path[256], text[256];

	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/activity", st_addr(node),
		 g->name);
	if (!st_read_file(path, text, sizeof(text)))
		FAIL("%s: %s", path, st_err(errno));
	if (sscanf(text, "%15s passes %llu sends %llu receives %llu looks %llu", a.what, &a.passes,
		   &a.sends, &a.receives, &a.looks) != 5)
		FAIL("%s is \"%s\"", path, text);
	return a;
}

/* Does a node show a group? */
static ST_UNUSED bool st_has_group(unsigned int node, const struct st_group *g)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s", st_addr(node), g->name);
	return !access(path, F_OK);
}

/* The number that a file of a group in sysfs shows. */
static ST_UNUSED unsigned long long st_shown(unsigned int node, const struct st_group *g,
					     const char *name)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/%s", st_addr(node), g->name, name);
	if (!st_read_file(path, text, sizeof(text)))
		FAIL("%s: %s", path, st_err(errno));
	return strtoull(text, NULL, 10);
}

/*
 * Will nothing happen to a group before a member does something? Two looks are
 * needed: at the moment between them all nodes were at rest.
 */
static ST_UNUSED bool st_rests(const struct st_group *g)
{
	struct st_activity first[SPINDLE_MAX_MEMBERS], now;
	unsigned long long sends = 0, receives = 0;
	bool gone[SPINDLE_MAX_MEMBERS] = { false };
	bool all = true;
	unsigned int i;

	for (i = 0; i < g->nodes; i++) {
		gone[i] = !st_has_group(g->first + i, g);
		all &= !gone[i];
		if (gone[i])
			continue;
		first[i] = st_activity(g->first + i, g);
		if (!strcmp(first[i].what, "busy"))
			return false;
	}
	for (i = 0; i < g->nodes; i++) {
		if (gone[i])
			continue;
		now = st_activity(g->first + i, g);
		if (!strcmp(now.what, "busy") || now.passes != first[i].passes)
			return false;
		sends += now.sends;
		receives += now.receives;
	}
	/* of what was sent to who has gone nobody says that it came */
	return !all || sends == receives;
}

/* Until a node has nothing of the group any more, and its name is free. */
static ST_UNUSED void st_wait_gone(unsigned int node, const struct st_group *g)
{
	WAIT_UNTIL(!st_has_group(node, g), ST_SOON);
}

/* Write the address of a node, perhaps with a '-' before it, into a file of another. */
static ST_UNUSED void st_debug(unsigned int node, const char *file, const char *minus,
			       unsigned int peer)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s", st_addr(node), file);
	snprintf(text, sizeof(text), "%s%s", minus, st_addr(peer));
	if (!st_write_file(path, text))
		FAIL("%s does not take %s: %s", path, text, st_err(errno));
}

/* Take the link between two nodes down, as if it was lost for good. */
static ST_UNUSED void st_break(unsigned int node, unsigned int peer)
{
	st_debug(node, "break", "", peer);
}

/* Take the connection between two nodes away, until st_mend(). */
static ST_UNUSED void st_cut(unsigned int node, unsigned int peer)
{
	st_debug(node, "cut", "", peer);
}

static ST_UNUSED void st_mend(unsigned int node, unsigned int peer)
{
	st_debug(node, "cut", "-", peer);
}

/* Completions of requests to @peer are known late, by milliseconds, until with 0 they are not. */
static ST_UNUSED void st_delay(unsigned int node, unsigned int peer, unsigned int ms)
{
	char path[256], text[64];

	if (!ms) {
		st_debug(node, "delay", "-", peer);
		return;
	}
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/delay", st_addr(node));
	snprintf(text, sizeof(text), "%s %u", st_addr(peer), ms);
	if (!st_write_file(path, text))
		FAIL("%s does not take %s: %s", path, text, st_err(errno));
}

/* Completions of requests to @peer are dropped. */
static ST_UNUSED void st_drop(unsigned int node, unsigned int peer, bool drop)
{
	st_debug(node, "drop", drop ? "" : "-", peer);
}

/* A member's node hears no majority, and waits for one: it cannot send. */
static ST_UNUSED void st_wait_minority(int fd)
{
	st_wait_state(fd, SPINDLE_STATE_MINORITY);
	CHECK_EQ(st_info(fd).error, ENETDOWN);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), ENETDOWN);
	CHECK_ERR(recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(st_events(fd), POLLOUT | POLLWRNORM | POLLPRI);
	CHECK_EQ(st_so_error(fd), 0);
}

/*
 * Let a group of two nodes fail on the second one, with ENETDOWN: it loses the
 * first one, which has the lowest rank and goes on alone. @fd is a member there.
 */
static ST_UNUSED void st_fail_second(const struct st_group *g, int fd)
{
	CHECK_EQ(g->nodes, 2);
	st_break(g->first + 1, g->first);
	st_wait_state(fd, SPINDLE_STATE_FAILED);
}

/* A group of one: what it sends, it receives. */
static ST_UNUSED int st_alone(void)
{
	struct st_config c = { .members = 1 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	return g.fd[0];
}

struct st_msg {
	ssize_t len;
	int flags;
	struct sockaddr_spindle from;
	socklen_t fromlen;
	bool has_info;
	struct spindle_msg_info info;
	union {
		char data[20000];
		struct spindle_event event;
	};
};

/* recvmsg() with everything it can tell. */
static ST_UNUSED ssize_t st_recv(int fd, struct st_msg *m, int flags)
{
	char control[CMSG_SPACE(sizeof(struct spindle_msg_info))];
	struct iovec iov = { m->data, sizeof(m->data) };
	struct msghdr msg = {
		.msg_name = &m->from,
		.msg_namelen = sizeof(m->from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	m->has_info = false;
	m->len = recvmsg(fd, &msg, flags);
	if (m->len < 0)
		return m->len;
	m->flags = msg.msg_flags;
	m->fromlen = msg.msg_namelen;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SPINDLE ||
		    cmsg->cmsg_type != SPINDLE_CMSG_INFO)
			continue;
		CHECK_EQ(cmsg->cmsg_len, CMSG_LEN(sizeof(m->info)));
		memcpy(&m->info, CMSG_DATA(cmsg), sizeof(m->info));
		m->has_info = true;
	}
	return m->len;
}

static ST_UNUSED void st_expect(int fd, const char *text)
{
	static struct st_msg m;

	CHECK_OK(st_recv(fd, &m, 0));
	if (m.flags & MSG_SPINDLE_EVENT)
		BROKEN("received event %u of view %llu, not \"%s\"", m.event.type,
		       (unsigned long long)m.event.view, text);
	if (m.len != (ssize_t)strlen(text) || memcmp(m.data, text, m.len))
		BROKEN("received \"%.*s\" (%zd), not \"%s\"", (int)m.len, m.data, m.len, text);
	if (!(m.flags & MSG_EOR))
		BROKEN("\"%s\" came without MSG_EOR", text);
}

static ST_UNUSED void st_say(int fd, const char *text)
{
	CHECK_EQ(CHECK_OK(send(fd, text, strlen(text), MSG_NOSIGNAL)), strlen(text));
}

/* A message for one member alone; and perhaps that with it that one is up to date. */
static ST_UNUSED ssize_t st_send_to(int fd, const void *data, size_t len, uint32_t uid,
				    uint32_t flags, int how)
{
	struct spindle_to to = { .uid = uid, .flags = flags };
	union {
		char room[CMSG_SPACE(sizeof(to))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SPINDLE;
	cmsg->cmsg_type = SPINDLE_CMSG_TO;
	cmsg->cmsg_len = CMSG_LEN(sizeof(to));
	memcpy(CMSG_DATA(cmsg), &to, sizeof(to));
	return sendmsg(fd, &msg, MSG_NOSIGNAL | how);
}

/* There is no message. */
static ST_UNUSED void st_expect_none(int fd)
{
	static struct st_msg m;

	if (st_recv(fd, &m, MSG_DONTWAIT) >= 0)
		BROKEN("received \"%.*s\" (%zd, flags %#x), which nobody has sent", (int)m.len,
		       m.data, m.len, m.flags);
	CHECK_EQ(errno, EAGAIN);
}

/*
 * The next in the stream is the event of a view; what holds of each is so.
 * Returns the event, which is good until the next call.
 */
static ST_UNUSED const struct spindle_event *st_expect_view(int fd, unsigned int view)
{
	static struct st_msg m;
	const struct spindle_event *e = &m.event;
	unsigned int i, self = 0;

	memset(&m, 0xaa, sizeof(m));
	CHECK_OK(st_recv(fd, &m, 0));
	if (!(m.flags & MSG_SPINDLE_EVENT))
		BROKEN("received \"%.*s\" (%zd), not view %u", (int)m.len, m.data, m.len, view);
	CHECK_EQ(m.flags & (MSG_EOR | MSG_TRUNC), MSG_EOR);
	CHECK_EQ(m.fromlen, 0);
	CHECK(!m.has_info);
	CHECK_EQ(e->type, SPINDLE_EVENT_VIEW);
	CHECK_SAME(e->view, view);
	CHECK_EQ(e->number, view);
	CHECK_EQ(m.len, sizeof(*e) + (e->members + e->left) * sizeof(e->member[0]));
	CHECK_EQ(e->member_size, sizeof(e->member[0]));
	for (i = 0; i < ARRAY_SIZE(e->__resv); i++)
		CHECK_EQ(e->__resv[i], 0);
	for (i = 0; i < e->members; i++) {
		CHECK_EQ(e->member[i].rank, i);
		CHECK_EQ(e->member[i].reason, SPINDLE_REASON_NONE);
		CHECK_EQ(e->member[i].flags & ~(SPINDLE_EM_RECEIVER | SPINDLE_EM_SELF |
						(view == 1 ? 0 : SPINDLE_EM_JOINED |
						 SPINDLE_EM_STALE | SPINDLE_EM_GIVES)),
			 view == 1 ? SPINDLE_EM_JOINED : 0);
		self += !!(e->member[i].flags & SPINDLE_EM_SELF);
	}
	CHECK_EQ(self, 1);
	for (; i < e->members + e->left; i++) {
		CHECK(e->member[i].reason == SPINDLE_REASON_LEFT ||
		      e->member[i].reason == SPINDLE_REASON_EXITED ||
		      e->member[i].reason == SPINDLE_REASON_LOST ||
		      e->member[i].reason == SPINDLE_REASON_SLOW);
		CHECK_EQ(e->member[i].flags & ~SPINDLE_EM_RECEIVER, 0);
	}
	return e;
}

/* recv() says that the stream has ended: 0, and no MSG_EOR. */
static ST_UNUSED void st_expect_end(int fd)
{
	static struct st_msg m;

	CHECK_SAME(CHECK_OK(st_recv(fd, &m, 0)), 0);
	CHECK_SAME(m.flags & MSG_EOR, 0);
}

/* The end of a child that must have gone well. */
static ST_UNUSED void st_reap(pid_t pid)
{
	int status;

	CHECK_EQ(CHECK_OK(waitpid(pid, &status, 0)), pid);
	if (status)
		FAIL("child %d: status %#x", pid, status);
}

/* The runner */

static ST_UNUSED int st_wait_child(pid_t pid, double seconds, int *status)
{
	struct timespec left = { .tv_nsec = 100000000 };
	double end = st_now() + seconds;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	while (waitpid(pid, status, WNOHANG) != pid) {
		if (st_now() > end)
			return -1;
		sigtimedwait(&chld, NULL, &left);
	}
	return 0;
}

/* Let the kernel log say which test what follows belongs to. */
static ST_UNUSED void st_mark(const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "<3>selftest: %s\n", name);
	st_write_file("/dev/kmsg", text);
}

static ST_UNUSED int st_run(const struct st_test *t, unsigned int number)
{
	unsigned int seconds = st_bound_s(t->seconds);
	double start = st_now();
	const char *what = "";
	char why[64] = "";
	int status = 0;
	pid_t pid;

	st_mark(t->name);
	pid = fork();
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setpgid(0, 0);
		alarm(seconds);
		t->fn();
		_exit(0);
	}
	if (pid < 0) {
		printf("Bail out! fork: %s\n", st_err(errno));
		return -1;
	}
	if (st_wait_child(pid, seconds + st_bound_s(ST_SOON), &status)) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		if (st_wait_child(pid, st_bound_s(ST_SOON), &status)) {
			printf("not ok %u - %s # cannot be killed\n", number, t->name);
			printf("Bail out! %s hangs in the kernel\n", t->name);
			return -1;
		}
	}
	/* what it started goes with it */
	kill(-pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == ST_SKIP) {
		printf("ok %u - %s # SKIP\n", number, t->name);
		return 0;
	}
	if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), WTERMSIG(status) == SIGALRM ?
			 " # no end in %u s" : " # signal %u",
			 WTERMSIG(status) == SIGALRM ? seconds : (unsigned int)WTERMSIG(status));
	if (status)
		what = "not ";
	printf("# %s took %.2f s\n", t->name, st_now() - start);
	printf("%sok %u - %s%s\n", what, number, t->name, why);
	return !!status;
}

static ST_UNUSED int st_main(int argc, char **argv)
{
	struct st_test *chosen[ARRAY_SIZE(st_tests)];
	unsigned int i, n = 0, failed = 0;
	sigset_t chld;
	int a, ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (i = 0; i < st_ntests; i++)
			puts(st_tests[i]->name);
		return 0;
	}
	for (i = 0; i < st_ntests && argc == 1; i++)
		chosen[n++] = st_tests[i];
	for (a = 1; a < argc; a++) {
		for (i = 0; i < st_ntests && strcmp(argv[a], st_tests[i]->name); i++)
			;
		if (i == st_ntests || n == ARRAY_SIZE(chosen)) {
			fprintf(stderr, "no test %s\n", argv[a]);
			return 2;
		}
		chosen[n++] = st_tests[i];
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	printf("TAP version 13\n1..%u\n", n);
	st_measure(stdout);
	for (i = 0; i < n; i++) {
		ret = st_run(chosen[i], i + 1);
		if (ret < 0)
			return 1;
		failed += ret;
	}
	printf("# %u of %u failed\n", failed, n);
	return failed ? 1 : 0;
}

#endif /* SPINDLE_SELFTEST_H */
