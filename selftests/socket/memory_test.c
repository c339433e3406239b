// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of views: counted before it is taken, held against limits, given
 * back; and no program is killed for it.
 *
 * Limits belong to the whole namespace: each test puts them back at its end,
 * and the next one's start, should it have failed.
 */
#include "spindle_selftest.h"

#include <sched.h>
#include <sys/mount.h>

#define SYSCTL	"/proc/sys/net/spindle/"
#define MIB	(1ULL << 20)

/* The sum of what a file has behind a key. */
static unsigned long long sum_in(const char *path, const char *key)
{
	unsigned long long value, sum = 0;
	bool found = false;
	char line[256];
	size_t n = strlen(key);
	FILE *f = fopen(path, "re");

	if (!f)
		FAIL("%s: %s", path, st_err(errno));
	while (fgets(line, sizeof(line), f)) {
		const char *at = line + strspn(line, " ");

		if (strncmp(at, key, n) || sscanf(at + n, "%llu", &value) != 1)
			continue;
		sum += value;
		found = true;
	}
	fclose(f);
	if (!found)
		FAIL("%s has no \"%s\"", path, key);
	return sum;
}

static unsigned long long used(void)
{
	return sum_in(SYSCTL "mem_used", "");
}

/* With the free pages on the lists of the processors: MB of them, which MemAvailable omits. */
static unsigned long long available(void)
{
	return (sum_in("/proc/meminfo", "MemAvailable:") << 10) +
	       sum_in("/proc/zoneinfo", "count:") * sysconf(_SC_PAGESIZE);
}

/* How often the OOM killer came, as the kernel's log says. */
static unsigned int kills(void)
{
	int fd = CHECK_OK(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	char line[8192];
	unsigned int n = 0;
	ssize_t len;

	/* EPIPE: the log went on meanwhile and lost its oldest */
	while ((len = read(fd, line, sizeof(line) - 1)) > 0 || (len < 0 && errno == EPIPE)) {
		if (len < 0)
			continue;
		line[len] = 0;
		n += !!strstr(line, "invoked oom-killer");
	}
	close(fd);
	return n;
}

static void set_limit(const char *path, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	if (!st_write_file(path, text))
		FAIL("%s: %s", path, st_err(errno));
}

static void group_max(unsigned long long value)
{
	set_limit(SYSCTL "group_mem_max", value);
}

static void all_max(unsigned long long value)
{
	set_limit(SYSCTL "mem_max", value);
}

/* What the first test finds is what the host gives: see the program's main(). */
static unsigned long long default_max, default_group_max;

static void put_back(void)
{
	all_max(default_max);
	group_max(default_group_max);
}

/* No group of an earlier test is left. */
static void begin(void)
{
	put_back();
	WAIT_UNTIL(!used(), ST_SOON);
}

/* All is given back, and nobody has died of it. */
static void end(void)
{
	put_back();
	WAIT_UNTIL(!used(), ST_SOON);
	CHECK_EQ(kills(), 0);
}

static void close_all(struct st_group *g)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		close(g->fd[i]);
}

/* Bytes that a group is charged on a node. */
static unsigned long long charged(unsigned int node, const struct st_group *g)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/memory", st_addr(node), g->name);
	return sum_in(path, "");
}

/* Every member of the group hears of it, in every way there is. */
static void all_told(const struct st_group *g)
{
	unsigned int i;
	char byte = 0;

	for (i = 0; i < g->n; i++) {
		st_wait_state(g->fd[i], SPINDLE_STATE_FAILED);
		CHECK_EQ(st_info(g->fd[i]).error, ENOMEM);
		/* the state is there a moment before */
		st_wait_events(g->fd[i], POLLERR);
		CHECK_EQ(st_so_error(g->fd[i]), ENOMEM);
		CHECK_ERR(send(g->fd[i], &byte, 1, MSG_NOSIGNAL), ENOMEM);
		CHECK_ERR(recv(g->fd[i], &byte, 1, 0), ENOMEM);
		CHECK(st_events(g->fd[i]) & POLLERR);
	}
}

static void small_group_works(void)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	st_say(g.fd[1], "small");
	for (i = 0; i < g.n; i++)
		st_expect(g.fd[i], "small");
	close_all(&g);
}

static void refused(const struct st_config *c)
{
	struct st_group g = { 0 };

	st_open_but(&g, c, 0);
	all_told(&g);
	/* what it took elsewhere may be counted still: mem_max stays where it is */
	group_max(default_group_max);
	small_group_works();
	close_all(&g);
}

/* Together they would take more than this guest has. */
static const struct st_config large = {
	.members = 36, .nodes = 2, .window = SPINDLE_MAX_WINDOW, .depth = SPINDLE_MAX_DEPTH,
};

TEST(large_group)
{
	begin();
	refused(&large);
	end();
}

/* Where a view finds no memory nothing is held, though its members are there. */
TEST(refused_group_takes_nothing)
{
	struct st_group g = { 0 };

	begin();
	st_open_but(&g, &large, 0);
	all_told(&g);
	CHECK_EQ(used(), 0);
	CHECK_EQ(charged(0, &g), 0);
	close_all(&g);
	end();
}

TEST(large_group_without_limits)
{
	begin();
	all_max(~0ULL >> 1);
	group_max(~0ULL >> 1);
	refused(&large);
	end();
}

/* Each node finds its memory alone, but not both. */
TEST(two_nodes_of_which_one_fits)
{
	struct st_config c = { .nodes = 2, .window = SPINDLE_MAX_WINDOW };

	begin();
	all_max(~0ULL >> 1);
	group_max(~0ULL >> 1);
	/* each two fifths of what is there */
	c.members = available() / 5 * 2 / SPINDLE_MAX_WINDOW;
	if (c.members > SPINDLE_MAX_MEMBERS)
		st_skip("too much memory");
	refused(&c);
	end();
}

TEST(limit_of_a_group_at_create)
{
	struct spindle_group_create c = { .members = 4, .senders = 4, .window = 256 << 10 };
	int fd = st_bound(0);

	begin();
	st_name(c.name);
	group_max(4 * (256 << 10) - 1);
	CHECK_ERR(st_create(fd, &c), ENOMEM);
	/* nothing has happened to the socket */
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
	CHECK_EQ(st_so_error(fd), 0);
	group_max(4 * (256 << 10));
	CHECK_OK(st_create(fd, &c));
	CHECK_EQ(used(), 0);
	close(fd);
	end();
}

TEST(limit_of_the_namespace_at_create)
{
	struct spindle_group_create c = { .members = 1, .window = 1 << 20 };
	int fd = st_bound(0);

	begin();
	st_name(c.name);
	all_max(MIB - 1);
	CHECK_ERR(st_create(fd, &c), ENOMEM);
	put_back();
	CHECK_OK(st_create(fd, &c));
	close(fd);
	end();
}

static int join_from(const struct st_group *g, int fd)
{
	struct spindle_group_join join = { 0 };

	strcpy(join.name, g->name);
	st_contact(&join, st_addr(0));
	return st_join(fd, &join);
}

TEST(limit_of_a_group_at_join)
{
	struct st_config c = { .members = 3, .nodes = 2, .senders = 2 };
	struct st_group g = { 0 };

	begin();
	st_open_but(&g, &c, 2);
	g.fd[1] = st_bound(1);
	group_max(2 * (256 << 10) - 1);
	CHECK_ERR(join_from(&g, g.fd[1]), ENOMEM);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_NONE);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_FORMING);
	/* the place is free again, and the socket can try again */
	put_back();
	CHECK_OK(join_from(&g, g.fd[1]));
	g.fd[2] = st_bound(1);
	CHECK_OK(join_from(&g, g.fd[2]));
	for (g.n = 0; g.n < 3; g.n++)
		st_wait_state(g.fd[g.n], SPINDLE_STATE_ACTIVE);
	close_all(&g);
	end();
}

/* The view is complete with a member that cannot be in it. */
TEST(limit_of_a_group_at_the_last_join)
{
	struct st_config c = { .members = 3, .nodes = 2, .senders = 3 };
	struct st_group g = { 0 };
	int fd = st_bound(2);

	begin();
	st_open_but(&g, &c, 1);
	group_max(3 * (256 << 10) - 1);
	CHECK_ERR(join_from(&g, fd), ENOMEM);
	all_told(&g);
	close_all(&g);
	end();
}

/* How many will send is known with the view only. */
TEST(limit_of_a_group_at_the_view)
{
	struct st_config c = { .members = 8, .nodes = 3 };

	begin();
	group_max(MIB);
	refused(&c);
	end();
}

TEST(limit_of_the_namespace)
{
	struct st_config c = { .members = 4, .nodes = 2 };
	struct st_group first = { 0 }, second = { 0 }, third = { 0 };
	unsigned long long one;

	begin();
	st_open(&first, &c);
	one = used();
	/* there is room for the second one's first node */
	all_max(one + one / 2);
	st_open_but(&second, &c, 0);
	all_told(&second);
	close_all(&second);
	st_say(first.fd[3], "goes on");
	st_expect(first.fd[0], "goes on");
	WAIT_UNTIL(used() == one, ST_SOON);
	close_all(&first);
	WAIT_UNTIL(!used(), ST_SOON);
	st_open(&third, &c);
	CHECK_EQ(used(), one);
	close_all(&third);
	end();
}

/* As many find room as there is room for, and no more, however they come. */
TEST(groups_at_once)
{
	const struct st_config c = { .members = 1 };
	unsigned int i, active = 0, failed = 0;
	struct spindle_group_create create;
	char state, name[SPINDLE_NAME_LEN];
	unsigned long long one;
	int go[2], said[2], fd;

	begin();
	fd = st_alone();
	one = used();
	close(fd);
	WAIT_UNTIL(!used(), ST_SOON);
	all_max(4 * one);
	CHECK_OK(pipe(go));
	CHECK_OK(pipe(said));
	for (i = 0; i < 12; i++) {
		if (CHECK_OK(fork()))
			continue;
		close(go[1]);
		st_name(name);
		create = st_create_of(&c, name);
		fd = st_bound(i % 3);
		/* until all are there */
		CHECK_EQ(read(go[0], &state, 1), 0);
		CHECK_OK(st_create(fd, &create));
		WAIT_UNTIL(st_info(fd).state != SPINDLE_STATE_FORMING, ST_SOON);
		state = st_info(fd).state;
		CHECK_EQ(write(said[1], &state, 1), 1);
		pause();
	}
	close(go[1]);
	for (i = 0; i < 12; i++) {
		CHECK_EQ(read(said[0], &state, 1), 1);
		active += state == SPINDLE_STATE_ACTIVE;
		failed += state == SPINDLE_STATE_FAILED;
	}
	CHECK_EQ(active, 4);
	CHECK_EQ(failed, 8);
	CHECK_EQ(used(), 4 * one);
	signal(SIGTERM, SIG_IGN);
	CHECK_OK(kill(0, SIGTERM));
	for (i = 0; i < 12; i++)
		CHECK_OK(wait(NULL));
	end();
}

TEST(usage_is_the_sum_of_the_groups)
{
	struct st_config c = { .members = 5, .nodes = 2, .window = 65536, .depth = 64 };
	struct st_group a = { 0 }, b = { 0 };
	unsigned long long sum;

	begin();
	st_open_but(&a, &c, 1);
	CHECK_EQ(charged(0, &a), 0);
	CHECK_EQ(used(), 0);
	st_open(&b, &c);
	sum = charged(0, &b) + charged(1, &b);
	CHECK(charged(0, &b) > 5 * 65536);
	CHECK_EQ(used(), sum);
	close_all(&a);
	close_all(&b);
	end();
}

/* A group that failed on a node keeps what it has delivered, until its members close. */
TEST(usage_lasts_as_long_as_the_memory)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	begin();
	st_open(&g, &c);
	st_say(g.fd[0], "last");
	st_wait_events(g.fd[1], POLLIN);
	st_fail_second(&g, g.fd[1]);
	st_wait_members(g.fd[0], 1);
	close(g.fd[0]);
	WAIT_UNTIL(used() == charged(1, &g), ST_SOON);
	CHECK(used());
	st_expect(g.fd[1], "last");
	close(g.fd[1]);
	end();
}

/* So does one whose other members have left. */
TEST(usage_when_members_leave)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };

	begin();
	st_open(&g, &c);
	st_say(g.fd[0], "last");
	st_wait_events(g.fd[1], POLLIN);
	close(g.fd[0]);
	st_wait_members(g.fd[1], 2);
	close(g.fd[2]);
	st_wait_members(g.fd[1], 1);
	WAIT_UNTIL(used() == charged(1, &g), ST_SOON);
	st_expect(g.fd[1], "last");
	st_say(g.fd[1], "mine");
	st_expect(g.fd[1], "mine");
	close(g.fd[1]);
	end();
}

/* One more member, on a node; it may send unless it says otherwise. */
static int one_more(const struct st_group *g, unsigned int node, unsigned int flags)
{
	struct spindle_group_join j = { .flags = flags };
	int fd = st_bound(node);

	snprintf(j.name, sizeof(j.name), "%s", g->name);
	st_contact(&j, st_addr(0));
	CHECK_OK(st_join(fd, &j));
	return fd;
}

/* What lanes and nodes take counts as long as it is there. */
TEST(usage_of_who_comes_and_goes)
{
	struct st_config c = { .members = 1, .nodes = 1, .max_members = 4 };
	unsigned long long alone, with;
	struct st_group g = { 0 };
	unsigned int i;
	int fd;

	begin();
	st_open(&g, &c);
	alone = charged(0, &g);
	CHECK(alone);
	for (i = 0; i < 5; i++) {
		fd = one_more(&g, 1, 0);
		st_wait_members(g.fd[0], 2);
		with = charged(0, &g);
		CHECK(with > alone);
		/* what the one before had on its node may be counted still */
		WAIT_UNTIL(used() == with + charged(1, &g), ST_SOON);
		st_say(fd, "unread");
		st_expect(fd, "unread");
		close(fd);
		st_wait_members(g.fd[0], 1);
		/* its node has gone, its ring is still read from */
		WAIT_UNTIL(charged(0, &g) < with, ST_SOON);
		CHECK(charged(0, &g) > alone);
		st_expect(g.fd[0], "unread");
		/* which the next look finds */
		fd = one_more(&g, 1, SPINDLE_F_RECEIVER);
		st_wait_members(g.fd[0], 2);
		close(fd);
		st_wait_members(g.fd[0], 1);
		WAIT_UNTIL(charged(0, &g) == alone, ST_SOON);
	}
	close_all(&g);
	end();
}

/* What a running group has it need not find once more. */
TEST(a_large_group_grows)
{
	struct st_config c = { .nodes = 2, .window = SPINDLE_MAX_WINDOW };
	struct st_group g = { 0 };

	begin();
	all_max(~0ULL >> 1);
	group_max(~0ULL >> 1);
	/* on each node three quarters of what is left then */
	c.members = available() / 10 * 3 / SPINDLE_MAX_WINDOW;
	c.max_members = c.members + 1;
	if (c.max_members > SPINDLE_MAX_MEMBERS)
		st_skip("too much memory");
	st_open(&g, &c);
	CHECK(charged(0, &g) > available() / 2);
	g.fd[g.n++] = one_more(&g, 1, SPINDLE_F_RECEIVER);
	st_wait_members(g.fd[0], g.n);
	st_say(g.fd[0], "there is room");
	st_expect(g.fd[g.n - 1], "there is room");
	close_all(&g);
	end();
}

/* What is counted is what is taken. */
TEST(count_is_close)
{
	struct st_config c = { .members = 8, .window = SPINDLE_MAX_WINDOW };
	unsigned long long before, taken, count;
	struct st_group g = { 0 };

	begin();
	/* what is made once is there */
	small_group_works();
	WAIT_UNTIL(!used(), ST_SOON);
	before = available();
	st_open(&g, &c);
	count = used();
	taken = before - available();
	printf("# counted %llu bytes, %llu taken\n", count, taken);
	/* the guest does other things, too */
	CHECK(taken < count + 2 * MIB);
	CHECK(taken > count / 10 * 9);
	close_all(&g);
	end();
}

TEST(limits_are_numbers)
{
	int fd;

	begin();
	CHECK(default_max > default_group_max);
	CHECK(default_group_max > 64 * MIB);
	CHECK(!st_write_file(SYSCTL "mem_max", "-1"));
	CHECK(!st_write_file(SYSCTL "group_mem_max", "much"));
	fd = open(SYSCTL "mem_used", O_WRONLY | O_CLOEXEC);
	CHECK(fd < 0);
	CHECK_EQ(errno, EACCES);
	end();
}

/* Nobody else's memory counts in another namespace, nor do its limits here. */
TEST(other_namespace)
{
	int fd;

	begin();
	group_max(200 * MIB);
	fd = st_alone();
	CHECK(used());
	if (unshare(CLONE_NEWNET))
		st_skip("no network namespaces");
	CHECK_EQ(used(), 0);
	CHECK_EQ(sum_in(SYSCTL "group_mem_max", ""), 200 * MIB);
	all_max(1);
	group_max(1);
	st_say(fd, "here");
	st_expect(fd, "here");
	close(fd);
	CHECK_EQ(kills(), 0);
}

/* Its owner is root there, but not on the host. */
TEST(namespace_of_another_user)
{
	begin();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		st_skip("no user namespaces");
	CHECK_EQ(sum_in(SYSCTL "mem_max", ""), default_max);
	CHECK(!st_write_file(SYSCTL "mem_max", "1"));
	CHECK(!st_write_file(SYSCTL "group_mem_max", "1"));
}

static void tell_cgroup(const char *dir, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!st_write_file(path, text))
		FAIL("%s: %s", path, st_err(errno));
}

/* A process that is in a cgroup, and dies if anybody has to. */
static pid_t canary_in(const char *dir)
{
	int up[2];
	char byte;
	pid_t pid;

	CHECK_OK(pipe(up));
	pid = CHECK_OK(fork());
	if (!pid) {
		tell_cgroup(dir, "cgroup.procs", "0");
		CHECK_EQ(write(up[1], "", 1), 1);
		pause();
		_exit(0);
	}
	CHECK_EQ(read(up[0], &byte, 1), 1);
	close(up[0]);
	close(up[1]);
	return pid;
}

/* Make a group whose first member on each node is of a cgroup. Does it live? */
static bool open_in_cgroup(const char *top, const char *dir)
{
	struct st_config c = { .members = 6, .nodes = 2, .window = 65536,
			       .depth = SPINDLE_MAX_DEPTH };
	struct st_group g = { 0 };
	bool active;

	tell_cgroup(dir, "cgroup.procs", "0");
	st_open_but(&g, &c, 4);
	tell_cgroup(top, "cgroup.procs", "0");
	for (; g.n < c.members; g.n++) {
		g.fd[g.n] = st_bound(g.n % 2);
		CHECK_OK(join_from(&g, g.fd[g.n]));
	}
	WAIT_UNTIL(st_info(g.fd[0]).state != SPINDLE_STATE_FORMING, ST_SOON);
	active = st_info(g.fd[0]).state == SPINDLE_STATE_ACTIVE;
	if (!active)
		all_told(&g);
	close_all(&g);
	WAIT_UNTIL(!used(), ST_SOON);
	return active;
}

/* Whichever piece of the memory it is that the members' cgroup does not have. */
TEST(limit_of_a_cgroup)
{
	char top[64], dir[80], path[128], text[256] = "";
	unsigned int kib, refusals = 0;
	bool active = false;
	pid_t canary;

	begin();
	snprintf(top, sizeof(top), "/tmp/spindle-cgroup.%d", getpid());
	CHECK_OK(mkdir(top, 0700));
	if (mount("none", top, "cgroup2", 0, NULL))
		st_skip("no cgroup2");
	snprintf(path, sizeof(path), "%s/cgroup.controllers", top);
	st_read_file(path, text, sizeof(text));
	if (!strstr(text, "memory")) {
		umount2(top, MNT_DETACH);
		st_skip("no memory cgroups");
	}
	tell_cgroup(top, "cgroup.subtree_control", "+memory");
	snprintf(dir, sizeof(dir), "%s/members", top);
	CHECK_OK(mkdir(dir, 0700));
	canary = canary_in(dir);
	for (kib = 2048; kib < 32768 && !active; kib += 512) {
		snprintf(text, sizeof(text), "%uK", kib);
		tell_cgroup(dir, "memory.max", text);
		active = open_in_cgroup(top, dir);
		refusals += !active;
		CHECK_EQ(waitpid(canary, NULL, WNOHANG), 0);
	}
	printf("# %u refusals, then it worked with %u KiB\n", refusals, kib - 512);
	CHECK(active);
	CHECK(refusals > 4);
	CHECK_OK(kill(canary, SIGKILL));
	CHECK_OK(waitpid(canary, NULL, 0));
	snprintf(path, sizeof(path), "%s/memory.events", dir);
	CHECK_EQ(sum_in(path, "oom_kill "), 0);
	CHECK_OK(rmdir(dir));
	CHECK_OK(umount(top));
	CHECK_OK(rmdir(top));
	end();
}

int main(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], "--list")) {
		default_max = sum_in(SYSCTL "mem_max", "");
		default_group_max = sum_in(SYSCTL "group_mem_max", "");
	}
	return st_main(argc, argv);
}
