// SPDX-License-Identifier: GPL-2.0
/*
 * Who may take how much: limits of groups, of network namespaces and of users,
 * namespaces that come and go, and memory after many groups. Needs to be alone on
 * the host. SPINDLE_TEST_CYCLES: groups to make and end one after another.
 */
#include "spindle_selftest.h"

#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define SYSCTL		"/proc/sys/net/spindle/"
#define GID		4321
#define OBJECT		(1 << 20)

static long sysctl_get(const char *name)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), SYSCTL "%s", name);
	if (!st_read_file(path, text, sizeof(text)))
		FAIL("no %s", path);
	return strtol(text, NULL, 10);
}

/* 0 or an errno. */
static int sysctl_set(const char *name, long value)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), SYSCTL "%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	errno = 0;
	return st_write_file(path, text) ? 0 : errno;
}

static const char *const limits[] = { "max_groups", "max_memory", "max_group_memory" };
static long limits_before[ARRAY_SIZE(limits)];

/* What one test has set must not meet the next one, however this one ends. */
static void limits_restore(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		sysctl_set(limits[i], limits_before[i]);
}

/* The body runs in a child; the parent puts the limits back. */
static void with_limits(void (*body)(void))
{
	unsigned int i;
	int status;
	pid_t pid;

	/* groups of the test before are on their way out */
	WAIT_UNTIL(!sysctl_get("groups"), 3 * ST_SOON);
	CHECK_EQ(sysctl_get("memory"), 0);
	for (i = 0; i < ARRAY_SIZE(limits); i++)
		limits_before[i] = sysctl_get(limits[i]);
	pid = CHECK_OK(fork());
	if (!pid) {
		body();
		_exit(0);
	}
	CHECK_OK(waitpid(pid, &status, 0));
	limits_restore();
	if (status)
		_exit(1);
	WAIT_UNTIL(!sysctl_get("groups"), 3 * ST_SOON);
	CHECK_EQ(sysctl_get("memory"), 0);
}

static int try_create(unsigned int node, char *name)
{
	struct spindle_group_create c = { .members = 1, .max_members = 4, .window = 65536,
					  .max_object = 8 * OBJECT,
					  .suspect_ms = ST_PATIENT_MS };
	int fd = st_bound(node);
	int ret, err;

	st_name(c.name);
	if (name)
		strcpy(name, c.name);
	ret = st_create(fd, &c);
	err = errno;
	if (!ret)
		return fd;
	close(fd);
	errno = err;
	return -1;
}

static int try_join_as(unsigned int node, const char *name, unsigned int contact)
{
	struct spindle_group_join j = { 0 };
	int fd = st_bound(node);
	int ret, err;

	snprintf(j.name, sizeof(j.name), "%s", name);
	st_contact(&j, st_addr(contact));
	ret = st_join(fd, &j);
	err = errno;
	if (!ret)
		return fd;
	close(fd);
	errno = err;
	return -1;
}

static long group_memory(unsigned int node, const char *name)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/memory", st_addr(node), name);
	if (!st_read_file(path, text, sizeof(text)))
		FAIL("no %s", path);
	return strtol(text, NULL, 10);
}

static void *object(void)
{
	void *mem = mmap(NULL, OBJECT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	memset(mem, 0x5a, OBJECT);
	return mem;
}

/* Counting */

static void counted(void)
{
	char a[SPINDLE_NAME_LEN];
	void *mem = object();
	long one, both;
	int fd[2];

	fd[0] = CHECK_OK(try_create(0, a));
	one = sysctl_get("memory");
	CHECK(one >= 2 * 65536);
	CHECK_EQ(sysctl_get("groups"), 1);
	CHECK_EQ(group_memory(0, a), one);
	fd[1] = CHECK_OK(try_join_as(1, a, 0));
	st_wait_state(fd[0], SPINDLE_STATE_ACTIVE);
	st_wait_state(fd[1], SPINDLE_STATE_ACTIVE);
	both = sysctl_get("memory");
	CHECK_EQ(sysctl_get("groups"), 2);
	CHECK_EQ(both, 2 * one);

	/* an object is there on each node until it was read everywhere */
	CHECK_EQ(CHECK_OK(send(fd[0], mem, OBJECT, 0)), OBJECT);
	CHECK(group_memory(0, a) >= one + OBJECT);
	st_wait_events(fd[1], POLLIN);
	CHECK(group_memory(1, a) >= one + OBJECT);
	CHECK_EQ(CHECK_OK(recv(fd[0], mem, OBJECT, 0)), OBJECT);
	CHECK_EQ(CHECK_OK(recv(fd[1], mem, OBJECT, 0)), OBJECT);
	WAIT_UNTIL(sysctl_get("memory") == both, ST_SOON);
	/* with_limits() sees that all of it is given back */
}

TEST(memory_is_counted_and_given_back)
{
	with_limits(counted);
}

static void mapped(void)
{
	int fd = st_alone(), all = SPINDLE_MAP_TX | SPINDLE_MAP_RX;
	long before = sysctl_get("memory");

	CHECK_EQ(sysctl_set("max_memory", before + 4096), 0);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_MAP, &all, sizeof(all)), EDQUOT);
	CHECK_EQ(sysctl_get("memory"), before);
	CHECK_EQ(sysctl_set("max_memory", LONG_MAX), 0);
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_MAP, &all, sizeof(all)));
	CHECK(sysctl_get("memory") > before);
}

TEST(mapped_rings_are_counted)
{
	with_limits(mapped);
}

TEST(no_limit_by_default)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		CHECK_EQ(sysctl_get(limits[i]), LONG_MAX);
	CHECK_EQ(sysctl_set("groups", 5), EACCES);
	CHECK_EQ(sysctl_set("memory", 5), EACCES);
}

/* Limits of a namespace */

static void too_many_groups(void)
{
	char name[SPINDLE_NAME_LEN];
	int fd[3];

	CHECK_EQ(sysctl_set("max_groups", 2), 0);
	fd[0] = CHECK_OK(try_create(0, name));
	fd[1] = CHECK_OK(try_create(1, NULL));
	CHECK_ERR(try_create(0, NULL), EDQUOT);
	/* whoever joins on another node has the group there, too */
	CHECK_ERR(try_join_as(1, name, 0), EDQUOT);
	/* not so on the same one, when the place of that one is free again */
	WAIT_UNTIL((fd[2] = try_join_as(0, name, 0)) >= 0, ST_SOON);
	st_say(fd[0], "in");
	st_expect(fd[2], "in");
	/* what has gone makes room */
	close(fd[1]);
	WAIT_UNTIL((fd[1] = try_create(1, NULL)) >= 0, ST_SOON);
	CHECK_EQ(sysctl_set("max_groups", 3), 0);
	CHECK_OK(try_create(2, NULL));
}

TEST(groups_beyond_the_limit)
{
	with_limits(too_many_groups);
}

static void too_much_memory(const char *limit)
{
	char name[SPINDLE_NAME_LEN];
	long one;
	int fd[2];

	fd[0] = CHECK_OK(try_create(0, name));
	one = sysctl_get("memory");
	CHECK_EQ(sysctl_set(limit, one - 1), 0);
	CHECK_ERR(try_create(0, NULL), EDQUOT);
	CHECK_ERR(try_join_as(1, name, 0), EDQUOT);
	CHECK_EQ(sysctl_get("memory"), one);
	/* the group goes on as if nobody had asked */
	st_say(fd[0], "alone");
	st_expect(fd[0], "alone");
	CHECK_EQ(sysctl_set(limit, 2 * one), 0);
	fd[1] = CHECK_OK(try_join_as(1, name, 0));
	st_say(fd[0], "in");
	st_expect(fd[0], "in");
	st_expect(fd[1], "in");
}

static void memory_of_all(void)
{
	too_much_memory("max_memory");
}

static void memory_of_one(void)
{
	too_much_memory("max_group_memory");
}

TEST(memory_beyond_the_limit_of_all)
{
	with_limits(memory_of_all);
}

TEST(memory_beyond_the_limit_of_one)
{
	with_limits(memory_of_one);
}

/* The sender is told; what comes by the network is taken, one of a sender at a time. */
static void objects(void)
{
	char name[SPINDLE_NAME_LEN];
	void *mem = object();
	unsigned int i;
	long both;
	int fd[2];

	fd[0] = CHECK_OK(try_create(0, name));
	fd[1] = CHECK_OK(try_join_as(1, name, 0));
	st_wait_state(fd[0], SPINDLE_STATE_ACTIVE);
	st_wait_state(fd[1], SPINDLE_STATE_ACTIVE);
	both = sysctl_get("memory");
	CHECK_EQ(sysctl_set("max_memory", both + OBJECT - 4096), 0);
	CHECK_ERR(send(fd[0], mem, OBJECT, 0), EDQUOT);
	CHECK_EQ(sysctl_get("memory"), both);
	st_say(fd[0], "small ones go");
	st_expect(fd[0], "small ones go");
	st_expect(fd[1], "small ones go");
	/* room for the sender's, none for the receiver's */
	CHECK_EQ(sysctl_set("max_memory", both + OBJECT), 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(CHECK_OK(send(fd[0], mem, OBJECT, 0)), OBJECT);
		CHECK_ERR(send(fd[0], mem, OBJECT, 0), EDQUOT);
		st_wait_events(fd[1], POLLIN);
		CHECK_EQ(sysctl_get("memory"), both + 2 * OBJECT);
		CHECK_EQ(CHECK_OK(recv(fd[0], mem, OBJECT, 0)), OBJECT);
		CHECK_EQ(CHECK_OK(recv(fd[1], mem, OBJECT, 0)), OBJECT);
		WAIT_UNTIL(sysctl_get("memory") == both, ST_SOON);
	}
}

TEST(objects_beyond_the_limit)
{
	with_limits(objects);
}

/* Users */

static void be_nobody(rlim_t memlock)
{
	struct rlimit limit = { memlock, memlock };

	CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresgid(GID, GID, GID));
	CHECK_OK(setresuid(65533, 65533, 65533));
}

static void user(void)
{
	char before[64], name[SPINDLE_NAME_LEN];
	struct rlimit none = { 0, 0 };
	long one;
	pid_t pid;
	int fd;

	/* who may lock what he wants has no limit */
	pid = CHECK_OK(fork());
	if (!pid) {
		CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &none));
		CHECK_OK(try_create(0, NULL));
		_exit(0);
	}
	st_reap(pid);
	WAIT_UNTIL(!sysctl_get("groups"), ST_SOON);
	fd = CHECK_OK(try_create(0, name));
	one = sysctl_get("memory");

	CHECK(st_read_file(SYSCTL "gid_range", before, sizeof(before)));
	CHECK(st_write_file(SYSCTL "gid_range", "4321 4321"));
	pid = CHECK_OK(fork());
	if (!pid) {
		void *mem = object();
		int mine;

		CHECK(one < OBJECT);
		be_nobody(2 * one - 4096);
		mine = CHECK_OK(try_join_as(1, name, 0));
		CHECK_ERR(try_create(2, NULL), ENOBUFS);
		CHECK_ERR(send(mine, mem, OBJECT, 0), ENOBUFS);
		st_say(mine, "small ones go");
		st_expect(mine, "small ones go");
		close(mine);
		/* given back, and taken again */
		WAIT_UNTIL((mine = try_create(2, NULL)) >= 0, ST_SOON);
		_exit(0);
	}
	st_reap(pid);
	/* it was all given back: as much as before is there for the next one */
	pid = CHECK_OK(fork());
	if (!pid) {
		be_nobody(one);
		WAIT_UNTIL(try_create(2, NULL) >= 0, ST_SOON);
		_exit(0);
	}
	st_reap(pid);
	pid = CHECK_OK(fork());
	if (!pid) {
		be_nobody(one - 4096);
		CHECK_ERR(try_create(2, NULL), ENOBUFS);
		_exit(0);
	}
	st_reap(pid);
	CHECK(st_write_file(SYSCTL "gid_range", before));
	close(fd);
}

TEST(memory_beyond_a_users_limit)
{
	with_limits(user);
}

/* Namespaces */

static void expect_nowhere(const char *addr)
{
	int fd = st_socket(0);

	CHECK(st_bind(fd, addr) && (errno == ENODEV || errno == EADDRNOTAVAIL));
	close(fd);
}

static void another_namespace(void)
{
	int fd = CHECK_OK(try_create(0, NULL));
	long most = sysctl_get("memory");
	const char *addr = st_addr(0);
	pid_t pid;

	CHECK_EQ(sysctl_set("max_memory", most), 0);
	pid = CHECK_OK(fork());
	if (!pid) {
		int old = st_socket(0);

		CHECK_OK(unshare(CLONE_NEWNET));
		/* counted apart, within what the first one may */
		CHECK_EQ(sysctl_get("groups"), 0);
		CHECK_EQ(sysctl_get("memory"), 0);
		CHECK_EQ(sysctl_get("max_memory"), most);
		CHECK_EQ(sysctl_set("max_memory", most + 1), EINVAL);
		CHECK_EQ(sysctl_set("max_memory", most - 1), 0);
		CHECK_EQ(sysctl_set("max_groups", 7), 0);
		expect_nowhere(addr);
		/* a socket stays where it was made */
		CHECK_OK(st_bind(old, addr));
		_exit(0);
	}
	st_reap(pid);
	CHECK_EQ(sysctl_get("max_memory"), most);
	CHECK_EQ(sysctl_get("max_groups"), LONG_MAX);
	close(fd);
}

TEST(another_network_namespace)
{
	with_limits(another_namespace);
}

TEST(a_user_namespace)
{
	const char *addr = st_addr(0);
	pid_t pid = CHECK_OK(fork());

	if (!pid) {
		CHECK_OK(setgroups(0, NULL));
		CHECK_OK(setresgid(65533, 65533, 65533));
		CHECK_OK(setresuid(65533, 65533, 65533));
		prctl(PR_SET_DUMPABLE, 1);
		/* all powers there are none here */
		CHECK_OK(unshare(CLONE_NEWUSER));
		CHECK_ERR(st_bind(st_socket(0), addr), EPERM);
		CHECK(sysctl_set("max_groups", 1));
		CHECK(!st_write_file(SYSCTL "gid_range", "0 99999"));
		/* its own network may be ruled, as far as it goes */
		CHECK_OK(unshare(CLONE_NEWNET));
		expect_nowhere(addr);
		CHECK_EQ(sysctl_get("groups"), 0);
		_exit(0);
	}
	st_reap(pid);
	CHECK_EQ(sysctl_get("max_groups"), LONG_MAX);
}

/* A device of its own, on an interface that can be removed. */

static int run(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return system(cmd);
}

#define DUMMY_ADDR	"10.99.0.1"

static void dummy_add(void)
{
	if (run("ip link add dummy9 type dummy"))
		st_skip("no dummy interfaces");
	CHECK_EQ(run("ip addr add " DUMMY_ADDR "/24 dev dummy9"), 0);
	CHECK_EQ(run("ip link set dummy9 up"), 0);
	CHECK_EQ(run("rdma link add rxe9 type rxe netdev dummy9"), 0);
}

/* A socket on it; until the device has the address. The errno, or 0. */
static int dummy_bind(int *fd)
{
	double end = st_now() + 3 * ST_SOON;
	int err;

	for (;;) {
		*fd = st_socket(0);
		err = st_bind(*fd, DUMMY_ADDR) ? errno : 0;
		if ((err != ENODEV && err != EADDRNOTAVAIL) || st_now() > end)
			return err;
		close(*fd);
		st_pause_us(10000);
	}
}

/* What a program in a namespace with a device of its own is told. */
static void __attribute__((noreturn)) tenant(int out)
{
	int fd;

	CHECK_OK(unshare(CLONE_NEWNET));
	dummy_add();
	CHECK_EQ(dummy_bind(&fd), EOPNOTSUPP);
	CHECK_EQ(sysctl_get("groups"), 0);
	CHECK_EQ(write(out, "d", 1), 1);
	/* it ends in the middle of it */
	for (;;) {
		dummy_bind(&fd);
		close(fd);
	}
}

TEST_SECONDS(soft_roce_serves_the_first_namespace_only, 120)
{
	unsigned int round;

	for (round = 0; round < 2; round++) {
		int from[2];
		char got = 0;
		pid_t pid;

		CHECK_OK(pipe(from));
		pid = CHECK_OK(fork());
		if (!pid)
			tenant(from[1]);
		close(from[1]);
		CHECK_EQ(read(from[0], &got, 1), 1);
		CHECK_EQ(got, 'd');
		CHECK_OK(kill(pid, SIGKILL));
		CHECK_OK(waitpid(pid, NULL, 0));
		close(from[0]);
		/* with the namespace its interface goes, and with that its device */
		WAIT_UNTIL(access("/sys/class/infiniband/rxe9", F_OK), 3 * ST_SOON);
	}
	close(st_alone());
}

/* The interface is deleted under a group that sends small messages and objects. */
TEST_SECONDS(interface_deleted_under_traffic, 120)
{
	struct spindle_group_create c = { .members = 1, .window = 65536 };
	void *mem = object();
	unsigned int round;

	for (round = 0; round < 3; round++) {
		pid_t pid;
		int fd;

		dummy_add();
		CHECK_EQ(dummy_bind(&fd), 0);
		st_name(c.name);
		CHECK_OK(st_create(fd, &c));
		pid = CHECK_OK(fork());
		if (!pid) {
			st_pause_us(100000 * (round + 1));
			_exit(run("ip link del dummy9"));
		}
		for (;;) {
			size_t len = round == 2 ? OBJECT : 100;

			if (send(fd, mem, len, MSG_NOSIGNAL) < 0)
				break;
			if (recv(fd, mem, OBJECT, 0) < 0)
				break;
		}
		CHECK_EQ(errno, ENODEV);
		CHECK_EQ(st_info(fd).error, ENODEV);
		st_reap(pid);
		close(fd);
		WAIT_UNTIL(access("/sys/class/infiniband/rxe9", F_OK), 3 * ST_SOON);
	}
	WAIT_UNTIL(!sysctl_get("groups"), 3 * ST_SOON);
	/* the other device has not noticed */
	close(st_alone());
}

TEST_SECONDS(namespaces_come_and_go, 120)
{
	const char *addr = st_addr(0);
	unsigned int i;

	for (i = 0; i < 8; i++) {
		pid_t pid = CHECK_OK(fork());

		if (!pid) {
			struct pollfd p = { .fd = st_socket(0) };

			CHECK_OK(unshare(CLONE_NEWNET));
			p.fd = st_socket(0);
			if (!fork())
				for (;;)
					poll(&p, 1, 1);
			expect_nowhere(addr);
			kill(i & 1 ? 0 : getpid(), SIGKILL);
			_exit(0);
		}
		/* the one of them is killed, or both are */
		setpgid(pid, pid);
		CHECK_OK(waitpid(pid, NULL, 0));
		kill(-pid, SIGKILL);
	}
}

/* Many groups */

TEST_SECONDS(two_hundred_groups_on_a_node, 300)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_members = 2, .window = 4096,
			       .max_msg = 512, .depth = 16 };
	struct rlimit files = { 1024, 1024 };
	static struct st_group g[200];
	unsigned int i, j, round;
	char text[32];

	CHECK_OK(setrlimit(RLIMIT_NOFILE, &files));
	for (i = 0; i < ARRAY_SIZE(g); i++)
		st_open(&g[i], &c);
	CHECK_EQ(sysctl_get("groups"), 2 * ARRAY_SIZE(g));
	printf("# %ld kB in %zu groups on two nodes\n", sysctl_get("memory") / 1024,
	       ARRAY_SIZE(g));
	/* all at once, and each keeps its own order */
	for (round = 0; round < 3; round++) {
		for (i = 0; i < ARRAY_SIZE(g); i++) {
			snprintf(text, sizeof(text), "%u to %u", round, i);
			st_say(g[i].fd[round & 1], text);
		}
		for (i = 0; i < ARRAY_SIZE(g); i++) {
			snprintf(text, sizeof(text), "%u to %u", round, i);
			for (j = 0; j < 2; j++)
				st_expect(g[i].fd[j], text);
		}
	}
	for (i = 0; i < ARRAY_SIZE(g); i++)
		for (j = 0; j < 2; j++)
			close(g[i].fd[j]);
	WAIT_UNTIL(!sysctl_get("groups"), 6 * ST_SOON);
	CHECK_EQ(sysctl_get("memory"), 0);
}

/* Queue pairs, memory regions and so on that the device has. */
static void resources(char *text, size_t size)
{
	FILE *f = popen("rdma resource show rxe0", "r");
	size_t n;

	CHECK(f);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	CHECK_EQ(pclose(f), 0);
}

static void cycle(unsigned int i)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_members = 4, .window = 16384,
			       .depth = 64 };
	struct st_group g = { 0 };
	unsigned int j;

	st_open(&g, &c);
	st_say(g.fd[i & 1], "again");
	for (j = 0; j < 2; j++)
		st_expect(g.fd[j], "again");
	if (i % 3 == 1)
		CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	for (j = 0; j < 2; j++)
		close(g.fd[(i + j) & 1]);
}

TEST_SECONDS(groups_again_and_again, 3600)
{
	unsigned int cycles = st_env("SPINDLE_TEST_CYCLES", 300);
	unsigned int i, first = cycles / 3 < 200 ? cycles / 3 : 200;
	char before[512], after[512];
	unsigned long slab = 0, mem = 0;
	int stay = st_bound(0);

	for (i = 0; i < cycles; i++) {
		/* the first rounds fill caches */
		if (i == first) {
			WAIT_UNTIL(!sysctl_get("groups"), ST_SOON);
			slab = st_meminfo("SUnreclaim");
			mem = st_free_memory();
			resources(before, sizeof(before));
		}
		cycle(i);
	}
	WAIT_UNTIL(!sysctl_get("groups"), ST_SOON);
	CHECK_EQ(sysctl_get("memory"), 0);
	printf("# %lu kB of slab and %lu kB free after %u, %lu and %lu after %u\n", slab, mem,
	       first, st_meminfo("SUnreclaim"), st_free_memory(), cycles);
	/* bounds as in views_test.c; what is less kmemleak finds */
	WAIT_UNTIL(st_meminfo("SUnreclaim") < slab + (slab < 20000 ? 400 : 8000), ST_SOON);
	WAIT_UNTIL(st_free_memory() + (slab < 20000 ? 4000 : 12000) > mem, ST_SOON);
	WAIT_UNTIL((resources(after, sizeof(after)), !strcmp(before, after)), ST_SOON);
	close(stay);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
