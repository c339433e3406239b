// SPDX-License-Identifier: GPL-2.0
/*
 * The module as a whole: loading and unloading, its parameters, and the RDMA
 * device going away under it. Needs to be alone on the host. SPINDLE_KO is the
 * module's file; without it that of SPINDLE_KERNEL beside this program.
 */
#include "job.h"

#include <libgen.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* A module that was built with the one under test. */
static const char *beside(const char *name)
{
	static char path[PATH_MAX];
	const char *kernel = getenv("SPINDLE_KERNEL");
	char self[PATH_MAX - 64];
	ssize_t n;

	n = CHECK_OK(readlink("/proc/self/exe", self, sizeof(self) - 1));
	self[n] = 0;
	snprintf(path, sizeof(path), "%s/../%s/%s", dirname(self), kernel ? kernel : "", name);
	return path;
}

static const char *module_file(void)
{
	return getenv("SPINDLE_KO") ?: beside("spindle.ko");
}

static bool loaded(void)
{
	return !access("/sys/module/spindle", F_OK);
}

static int load_file(const char *file, const char *params)
{
	int fd = CHECK_OK(open(file, O_RDONLY | O_CLOEXEC));
	int ret, err;

	ret = syscall(SYS_finit_module, fd, params, 0);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

static int load(const char *params)
{
	return load_file(module_file(), params);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "spindle", O_NONBLOCK);
}

/* A closed socket's last work may still hold the module for a moment. */
static void unload_soon(void)
{
	if (loaded())
		WAIT_UNTIL(!AGAIN(unload(), EAGAIN), ST_SOON);
}

/* The parameters the module was loaded with at first, to load it so again. */
static const char *params_now(void)
{
	static const char * const names[] = { "doorbell", "suspect_ms" };
	static char params[128];
	char path[64], value[32];
	unsigned int i, at = 0;

	if (*params)
		return params;
	for (i = 0; loaded() && i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/sys/module/spindle/parameters/%s", names[i]);
		if (!st_read_file(path, value, sizeof(value)))
			FAIL("no parameter %s", names[i]);
		at += snprintf(params + at, sizeof(params) - at, "%s=%s ", names[i], value);
	}
	return params;
}

/* These, and others behind them, which win. */
static int load_with(const char *params, const char *others)
{
	char text[256];

	snprintf(text, sizeof(text), "%s%s", params, others);
	return load(text);
}

static void talk(unsigned int members)
{
	struct st_config c = { .members = members, .nodes = members };
	struct st_group g = { 0 };
	unsigned int i, j;

	st_open(&g, &c);
	for (i = 0; i < members; i++) {
		st_say(g.fd[i], "loaded");
		for (j = 0; j < members; j++)
			st_expect(g.fd[j], "loaded");
	}
	for (i = 0; i < members; i++)
		close(g.fd[i]);
}

TEST_SECONDS(load_and_unload_50_times, 3 * ST_TEST)
{
	const char *params = params_now();
	unsigned int i;

	for (i = 0; i < 50; i++) {
		unload_soon();
		CHECK(!loaded());
		CHECK_OK(load(params));
		/* idle, with sockets, with a group: each leaves in another way */
		if (i % 3 == 1)
			close(st_bound(i % 2));
		if (i % 3 == 2)
			talk(2);
	}
}

TEST(unload_is_refused_while_open)
{
	int fd = st_socket(0), member;

	CHECK(unload() && (errno == EAGAIN || errno == EBUSY));
	CHECK_OK(st_bind(fd, st_addr(0)));
	CHECK(unload() && (errno == EAGAIN || errno == EBUSY));
	member = st_alone();
	CHECK(unload() && (errno == EAGAIN || errno == EBUSY));
	close(fd);
	CHECK(unload() && (errno == EAGAIN || errno == EBUSY));
	st_say(member, "still there");
	st_expect(member, "still there");
	close(member);
}

/* What the kernel log says after @fd was put at its end. */
static bool log_says(int fd, const char *a, const char *b)
{
	char line[2048];
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		line[n > 0 ? n : 0] = 0;
		if (strstr(line, a) && strstr(line, b))
			return true;
	}
	return false;
}

static int log_open(void)
{
	int fd = CHECK_OK(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));

	CHECK_OK(lseek(fd, 0, SEEK_END));
	return fd;
}

static void refused(const char *params, bool says)
{
	int log = log_open();
	int err;

	if (!load(params)) {
		unload_soon();
		FAIL("loaded with %s", params);
	}
	err = errno;
	if (err != EINVAL && err != EBUSY && err != EEXIST)
		FAIL("%s: %s", params, st_err(err));
	if (says && !log_says(log, "spindle", "family"))
		FAIL("%s: the kernel log does not say why", params);
	close(log);
	CHECK(!loaded());
}

TEST(family_numbers_that_are_refused)
{
	const char *params = params_now();
	/* taken, or not ours to take */
	static const char *const bad[] = {
		"family=1", "family=2", "family=16", "family=27",
	};
	static const char *const out_of_range[] = { "family=-1", "family=46", "family=1000" };
	unsigned int i;

	unload_soon();
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		refused(bad[i], true);
	for (i = 0; i < ARRAY_SIZE(out_of_range); i++) {
		if (!load(out_of_range[i]))
			FAIL("loaded with %s", out_of_range[i]);
		CHECK_EQ(errno, EINVAL);
	}
	refused("family=x", false);
	CHECK_OK(load(params));
}

/* Numbers that somebody else holds are left to him. */
TEST(family_numbers_that_are_taken)
{
	const char *params = params_now();

	if (access(beside("spindle_holder.ko"), R_OK))
		st_skip("no spindle_holder.ko: built only where the kernel has KUnit");
	unload_soon();
	CHECK_OK(load_file(beside("spindle_holder.ko"), "families=18"));
	refused("family=18", true);
	CHECK_OK(load(params));
	CHECK_EQ(st_family(), 13);
	talk(2);
	unload_soon();
	CHECK_OK(syscall(SYS_delete_module, "spindle_holder", O_NONBLOCK));

	CHECK_OK(load_file(beside("spindle_holder.ko"), "families=18,13,22"));
	refused("", true);
	refused("family=22", true);
	CHECK_OK(syscall(SYS_delete_module, "spindle_holder", O_NONBLOCK));
	CHECK_OK(load(params));
	talk(2);
}

TEST(family_numbers_to_choose_from)
{
	static const int good[] = { 22, 13, 18 };
	const char *params = params_now();
	char text[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		unload_soon();
		snprintf(text, sizeof(text), "family=%d", good[i]);
		CHECK_OK(load_with(params, text));
		CHECK_EQ(st_family(), good[i]);
		talk(2);
		CHECK_ERR(socket(good[i] == 22 ? 13 : 22, SOCK_SEQPACKET, 0), EAFNOSUPPORT);
	}
	unload_soon();
	CHECK_OK(load(params));
	CHECK_EQ(st_family(), 18);
}

TEST(doorbells_to_choose_from)
{
	static const char *const bells[] = { "auto", "polled", "completion" };
	const char *params = params_now();
	char text[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bells); i++) {
		unload_soon();
		snprintf(text, sizeof(text), "doorbell=%s", bells[i]);
		CHECK_OK(load_with(params, text));
		st_read_file("/sys/module/spindle/parameters/doorbell", text, sizeof(text));
		CHECK(!strcmp(text, bells[i]));
		talk(3);
	}
	unload_soon();
	refused("doorbell=brass", false);
	CHECK_OK(load(params));
}

TEST(other_port)
{
	const char *params = params_now();
	char text[64];

	unload_soon();
	CHECK_OK(load_with(params, "port=23456"));
	CHECK(st_read_file("/sys/module/spindle/parameters/port", text, sizeof(text)));
	CHECK_EQ(atoi(text), 23456);
	talk(3);
	unload_soon();
	CHECK_OK(load(params));
}

/* The default, and the bounds. */
TEST(how_long_a_silent_node_is_waited_for)
{
	const char *params = params_now();
	char text[64];

	unload_soon();
	CHECK_OK(load(""));
	CHECK(st_read_file("/sys/module/spindle/parameters/suspect_ms", text, sizeof(text)));
	CHECK_EQ(atoi(text), 5000);
	unload_soon();
	refused("suspect_ms=49", false);
	refused("suspect_ms=600001", false);
	CHECK_OK(load(params));
}

/* The RDMA device */

static void run(const char *const argv[])
{
	int status;
	pid_t pid;

	pid = CHECK_OK(fork());
	if (!pid) {
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	CHECK_OK(waitpid(pid, &status, 0));
	if (status)
		FAIL("%s %s %s: status %#x", argv[0], argv[1], argv[2], status);
}

/* Software iWARP, or soft-RoCE. */
static bool device_is_siw(void)
{
	return getenv("SPINDLE_SIW");
}

static void device_del(void)
{
	const char *const argv[] = {
		"rdma", "link", "del", device_is_siw() ? "siw0" : "rxe0", NULL
	};

	run(argv);
}

static void device_add(void)
{
	const char *const argv[] = {
		"rdma", "link", "add", device_is_siw() ? "siw0" : "rxe0", "type",
		device_is_siw() ? "siw" : "rxe", "netdev", "eth0", NULL
	};

	run(argv);
}

/* Until each of @n addresses is an address of the device. */
static void wait_for_device(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		int fd = st_socket(0);

		WAIT_UNTIL(!AGAIN(st_bind(fd, st_addr(i)), ENODEV), ST_SOON);
		close(fd);
	}
}

static void expect_no_device(int fd)
{
	static struct st_msg m;

	st_wait_events(fd, POLLIN);
	WAIT_UNTIL(st_events(fd) & POLLERR, ST_SOON);
	CHECK_EQ(st_events(fd) & (POLLERR | POLLHUP), POLLERR | POLLHUP);
	while (st_recv(fd, &m, MSG_DONTWAIT) >= 0)
		;
	CHECK_EQ(errno, ENODEV);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), ENODEV);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_FAILED);
	CHECK_EQ(st_info(fd).error, ENODEV);
}

TEST(device_removed_while_quiet)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	device_del();
	for (i = 0; i < 3; i++)
		expect_no_device(g.fd[i]);
	CHECK_ERR(st_bind(st_socket(0), st_addr(0)), ENODEV);
	device_add();
	wait_for_device(3);
	talk(3);
}

static void remove_device(pid_t sleeper, void *arg)
{
	(void)sleeper;
	(void)arg;
	device_del();
}

/* Who waits for readers is not left waiting, and what was true stays so. */
TEST(device_removed_while_a_program_waits)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	unsigned int closed;

	for (closed = 0; closed < 2; closed++) {
		struct st_group g = { 0 };
		pthread_t thread;
		int i;

		st_open(&g, &c);
		st_say(g.fd[0], "unread");
		for (i = 0; closed && i < 2; i++)
			CHECK_OK(shutdown(g.fd[i], SHUT_WR));
		for (i = 0; closed && i < 2; i++)
			st_wait_state(g.fd[i], SPINDLE_STATE_CLOSED);
		CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_RECEIVED));
		thread = st_in_call(remove_device, NULL);
		CHECK_ERR(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_CONSUMED), ENODEV);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_RECEIVED));
		st_expect(g.fd[0], "unread");
		close(g.fd[0]);
		close(g.fd[1]);
		device_add();
		wait_for_device(2);
	}
	talk(2);
}

TEST(device_removed_while_forming)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open_but(&g, &c, 1);
	device_del();
	for (i = 0; i < 2; i++)
		expect_no_device(g.fd[i]);
	device_add();
	wait_for_device(3);
	talk(3);
}

TEST(device_removed_while_joining)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct spindle_group_join j = { 0 };
	struct st_group g = { 0 };
	int fd[2];
	unsigned int i;

	/* one has been taken in, the other waits for an answer that nobody gives */
	st_open_but(&g, &c, 2);
	snprintf(j.name, sizeof(j.name), "%s", g.name);
	for (i = 0; i < 2; i++) {
		struct in_addr in = st_in(st_addr(0)).sin_addr;
		char text[INET_ADDRSTRLEN];

		if (i) {
			in.s_addr = htonl((ntohl(in.s_addr) & ~0xffU) | 251);
			snprintf(j.name, sizeof(j.name), "nobody-has-it");
		}
		st_contact(&j, inet_ntop(AF_INET, &in, text, sizeof(text)));
		fd[i] = st_bound(1);
		CHECK_OK(fcntl(fd[i], F_SETFL, O_NONBLOCK));
		CHECK_ERR(st_join(fd[i], &j), EINPROGRESS);
	}
	WAIT_UNTIL(st_info(fd[0]).state == SPINDLE_STATE_FORMING, ST_SOON);
	device_del();
	for (i = 0; i < 2; i++)
		st_wait_events(fd[i], POLLERR);
	CHECK_EQ(st_info(fd[0]).error, ENODEV);
	CHECK_EQ(st_info(fd[1]).state, SPINDLE_STATE_NONE);
	CHECK_EQ(st_so_error(fd[1]), ENODEV);
	device_add();
	wait_for_device(3);
	talk(3);
}

TEST(device_removed_beside_a_bound_socket)
{
	struct spindle_group_create c = { .members = 1 };
	int fd = st_bound(0);

	/* the socket can be closed, or says that its device is gone */
	device_del();
	st_name(c.name);
	CHECK_ERR(st_create(fd, &c), ENODEV);
	device_add();
	wait_for_device(1);
	close(fd);
	close(st_alone());
}

TEST_SECONDS(device_removed_under_traffic, 3 * ST_TEST)
{
	struct job_result *res = mmap(NULL, 3 * sizeof(*res), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int round, i;
	pid_t pid[3];

	CHECK(res != MAP_FAILED);
	for (round = 0; round < 3; round++) {
		char name[SPINDLE_NAME_LEN];

		st_name(name);
		memset(res, 0, 3 * sizeof(*res));
		for (i = 0; i < 3; i++) {
			struct job job = {
				.name = name,
				.contact = i ? st_addr(0) : NULL,
				.addr = st_addr(i),
				.group = { .members = 3 },
				.messages = ~0ULL,
				.max = 2000,
				.mode = round == 1 ? JOB_THREADS : JOB_POLL,
			};

			pid[i] = CHECK_OK(fork());
			if (!pid[i]) {
				job_run(&job, &res[i]);
				_exit(0);
			}
		}
		WAIT_UNTIL(res[0].received > 300, 2 * ST_SOON);
		device_del();
		for (i = 0; i < 3; i++) {
			st_reap(pid[i]);
			CHECK_EQ(res[i].error, ENODEV);
		}
		device_add();
		wait_for_device(3);
	}
	talk(3);
}

/* Comes to a group and leaves it again, and again, until its device is gone. */
static void come_and_go(const struct st_group *g, unsigned int node, unsigned int *times)
{
	static struct st_msg m;
	int fd, ret;

	for (;;) {
		fd = st_socket(0);
		ret = st_bind(fd, st_addr(node));
		if (!ret)
			ret = st_come(g, fd, 0, 0);
		if (!ret)
			ret = send(fd, "here", 4, MSG_NOSIGNAL) < 0;
		if (!ret)
			ret = st_recv(fd, &m, 0) < 0;
		if (!ret && *times & 1)
			ret = st_leave(fd);
		if (!ret)
			__atomic_store_n(times, *times + 1, __ATOMIC_RELEASE);
		/* others leave, and hold what they have had until then */
		else if (errno != EUSERS && errno != ENOMEM)
			break;
		close(fd);
		/* what it had is given back meanwhile, also where nothing takes any time */
		st_pause_us(1000);
	}
	/* nobody can leave what has failed, which says why */
	if (errno == ENOTCONN)
		errno = st_info(fd).error;
	CHECK_EQ(errno, ENODEV);
}

/* Reads what comes until nothing can: who does not read costs its node the group. */
static void *read_on(void *arg)
{
	static struct st_msg m;
	int fd = *(int *)arg;

	while (st_recv(fd, &m, 0) >= 0)
		;
	CHECK_EQ(errno, ENODEV);
	return NULL;
}

TEST_SECONDS(device_removed_while_views_change, 3 * ST_TEST)
{
	struct st_config c = { .members = 1, .nodes = 1, .max_members = 8, .window = 65536 };
	unsigned int *times = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int round, i;
	uint64_t seed = 1;
	pthread_t reader;
	pid_t pid[3];

	CHECK(times != MAP_FAILED);
	for (round = 0; round < 6; round++) {
		struct st_group g = { 0 };

		memset(times, 0, 4096);
		st_open(&g, &c);
		for (i = 0; i < 3; i++) {
			pid[i] = CHECK_OK(fork());
			if (!pid[i]) {
				come_and_go(&g, i + 1, &times[i]);
				_exit(0);
			}
		}
		/* at some moment of a change, or between two */
		CHECK_EQ(pthread_create(&reader, NULL, read_on, &g.fd[0]), 0);
		for (i = 0; i < 3; i++)
			WAIT_UNTIL(__atomic_load_n(&times[i], __ATOMIC_ACQUIRE) > 3, ST_SOON);
		st_pause_us(st_random(&seed) % 20000);
		device_del();
		for (i = 0; i < 3; i++)
			st_reap(pid[i]);
		CHECK_EQ(pthread_join(reader, NULL), 0);
		expect_no_device(g.fd[0]);
		close(g.fd[0]);
		device_add();
		wait_for_device(4);
	}
	talk(3);
}

TEST(unload_without_a_device)
{
	const char *params = params_now();

	device_del();
	unload_soon();
	CHECK_OK(load(params));
	device_add();
	wait_for_device(2);
	talk(2);
}

int main(int argc, char **argv)
{
	/* for all tests, also those behind one that failed without a module */
	params_now();
	return st_main(argc, argv);
}
