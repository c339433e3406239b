/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the selftests share: a table of tests, each run in a child of its own
 * with an alarm, results as TAP; and the few calls every Spindle program makes.
 *
 * A program's tests are run in the order in which they stand in it. Names as
 * arguments choose some of them, --list prints them all.
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
#include <linux/keyctl.h>
#include <linux/spindle.h>

#define ST_UNUSED	__attribute__((unused))
#define ST_SKIP		4	/* status of a test that cannot be run here */
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* How long a test waits for what should happen at once; debug kernels are slow. */
#define ST_SOON		10

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

#define TEST(test)	TEST_SECONDS(test, 60)

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

/* Look until it is so, for a bounded time. */
#define WAIT_UNTIL(cond, secs)						\
	do {								\
		double __end = st_now() + (secs);			\
		unsigned int __us = 100;				\
									\
		while (!(cond)) {					\
			if (st_now() > __end)				\
				FAIL("not so in %g s: %s",		\
				     (double)(secs), #cond);		\
			st_pause_us(__us);				\
			if (__us < 10000)				\
				__us *= 2;				\
		}							\
	} while (0)

static ST_UNUSED unsigned long st_env(const char *name, unsigned long otherwise)
{
	const char *val = getenv(name);

	return val && *val ? strtoul(val, NULL, 0) : otherwise;
}

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

/* A key in a keyring of this process alone, or of the session. */
static ST_UNUSED long st_key_add(const char *type, const char *description, const void *secret,
				 size_t len, int keyring)
{
	return syscall(SYS_add_key, type, description, secret, len, keyring);
}

static ST_UNUSED int st_key(int fd, const char *description)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, description, strlen(description));
}

/* With SPINDLE_TEST_KEY all groups have that secret. */
static ST_UNUSED void st_key_default(int fd)
{
	const char *secret = getenv("SPINDLE_TEST_KEY");

	if (!secret || !*secret || st_key(fd, "spindle:test") != -1 || errno != ENOKEY)
		return;
	CHECK_OK(st_key_add("user", "spindle:test", secret, strlen(secret),
			    KEY_SPEC_PROCESS_KEYRING));
	CHECK_OK(st_key(fd, "spindle:test"));
}

static ST_UNUSED int st_create(int fd, const struct spindle_group_create *c)
{
	st_key_default(fd);
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, c, sizeof(*c));
}

static ST_UNUSED int st_join(int fd, const struct spindle_group_join *j)
{
	st_key_default(fd);
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
	double end = st_now() + 2 * ST_SOON;

	while (st_info(fd).state != state) {
		if (st_now() > end)
			FAIL("state %u after %d s, not %u (error %s)", st_info(fd).state,
			     2 * ST_SOON, state, st_err(st_info(fd).error));
		st_pause_us(500);
	}
}

/* So many are in the group, as this member knows it. */
static ST_UNUSED void st_wait_members(int fd, unsigned int n)
{
	double end = st_now() + 2 * ST_SOON;
	struct spindle_group_info info;

	while ((info = st_info(fd)).members != n || info.state == SPINDLE_STATE_FORMING) {
		if (st_now() > end)
			FAIL("%u members after %d s, not %u (view %llu, state %u)", info.members,
			     2 * ST_SOON, n, (unsigned long long)info.view, info.state);
		st_pause_us(500);
	}
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

	if (CHECK_OK(poll(&pfd, 1, 2 * ST_SOON * 1000)) != 1)
		FAIL("no event of %#x in %d s; there are %#x, state %u", events, 2 * ST_SOON,
		     st_events(fd), st_info(fd).state);
}

/* A group whose members are all sockets of this process. */

/* Sixteen nodes on one processor may say nothing for a while: none is suspected. */
#define ST_PATIENT_MS	60000

struct st_config {
	unsigned int members;
	unsigned int nodes;	/* member i is on node i % nodes; 0: all on node 0 */
	unsigned int senders;
	unsigned int window;
	unsigned int max_msg;
	unsigned int depth;
	unsigned int max_members;
	unsigned int suspect_ms;	/* 0: ST_PATIENT_MS */
	unsigned int evict_ms;
	unsigned int flags;	/* SPINDLE_F_* of the group */
	unsigned int max_object;
	unsigned int block;
	unsigned int algorithm;
	unsigned int racks;	/* node i is in rack i % racks */
	uint64_t receivers;	/* bit i: member i never sends */
};

struct st_group {
	char name[SPINDLE_NAME_LEN];
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
		.max_members = c->max_members,
		.suspect_ms = c->suspect_ms ? c->suspect_ms : ST_PATIENT_MS,
		.evict_ms = c->evict_ms,
		.max_object = c->max_object,
		.block = c->block,
		.algorithm = c->algorithm,
		.flags = c->flags | (c->receivers & 1 ? SPINDLE_F_RECEIVER : 0),
	};

	snprintf(create.name, sizeof(create.name), "%s", name);
	return create;
}

static ST_UNUSED unsigned long st_meminfo(const char *what)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long kb = 0;
	char line[128];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)) && line[strlen(what)] == ':')
			kb = strtoul(line + strlen(what) + 1, NULL, 10);
	fclose(f);
	return kb;
}

/* kB of free pages that processors keep for themselves: up to some ten megabytes. */
static ST_UNUSED unsigned long st_free_lists(void)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	unsigned long pages = 0, n;
	char line[256];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lu", &n) == 1)
			pages += n;
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* kB, but for what the kernel would give up if asked. */
static ST_UNUSED unsigned long st_free_memory(void)
{
	CHECK(st_write_file("/proc/sys/vm/drop_caches", "3"));
	return st_meminfo("MemFree") + st_free_lists();
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
	create = st_create_of(c, g->name);
	snprintf(join.name, sizeof(join.name), "%s", g->name);
	st_contact(&join, st_addr(0));
	g->fd[0] = st_bound(0);
	CHECK_OK(st_create(g->fd[0], &create));
	for (g->n = 1; g->n < c->members - missing; g->n++) {
		g->fd[g->n] = st_bound(g->n % nodes);
		join.flags = c->receivers >> g->n & 1 ? SPINDLE_F_RECEIVER : 0;
		join.rack = c->racks ? g->n % nodes % c->racks : 0;
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
	char data[20000];
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
	if (m.len != (ssize_t)strlen(text) || memcmp(m.data, text, m.len))
		FAIL("received \"%.*s\" (%zd), not \"%s\"", (int)m.len, m.data, m.len, text);
	if (!(m.flags & MSG_EOR))
		FAIL("\"%s\" came without MSG_EOR", text);
}

static ST_UNUSED void st_say(int fd, const char *text)
{
	CHECK_EQ(CHECK_OK(send(fd, text, strlen(text), MSG_NOSIGNAL)), strlen(text));
}

/* recv() says that the stream has ended: 0, and no MSG_EOR. */
static ST_UNUSED void st_expect_end(int fd)
{
	static struct st_msg m;

	CHECK_EQ(CHECK_OK(st_recv(fd, &m, 0)), 0);
	CHECK_EQ(m.flags & MSG_EOR, 0);
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

static ST_UNUSED int st_wait_child(pid_t pid, unsigned int seconds, int *status)
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

static ST_UNUSED int st_run(const struct st_test *t, unsigned int number, unsigned int scale)
{
	unsigned int seconds = t->seconds * scale;
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
	if (st_wait_child(pid, seconds + 5, &status)) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		if (st_wait_child(pid, 10, &status)) {
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
	unsigned int scale = st_env("SPINDLE_TIMEOUT_SCALE", 1);
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
	for (i = 0; i < n; i++) {
		ret = st_run(chosen[i], i + 1, scale);
		if (ret < 0)
			return 1;
		failed += ret;
	}
	printf("# %u of %u failed\n", failed, n);
	return failed ? 1 : 0;
}

#endif /* SPINDLE_SELFTEST_H */
