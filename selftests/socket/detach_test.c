// SPDX-License-Identifier: GPL-2.0
/*
 * SPINDLE_DETACHED: messages wait in a queue of the socket's own, so a slow
 * reader holds nobody before its receive buffer is full.
 */
#include "spindle_selftest.h"

#include <limits.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>

static struct st_msg m;

static int detach(int fd, int on)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on));
}

static int is_detached(int fd)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, &value, &len));
	CHECK_EQ(len, sizeof(value));
	return value;
}

/* The kernel doubles what it is given. */
static void quota(int fd, int bytes)
{
	bytes /= 2;
	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)));
}

static unsigned int charged(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	CHECK_OK(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len));
	return info[SK_MEMINFO_RMEM_ALLOC];
}

static int in_queue(int fd)
{
	int n;

	CHECK_OK(ioctl(fd, SIOCINQ, &n));
	return n;
}

static int out_queue(int fd)
{
	int n;

	CHECK_OK(ioctl(fd, SIOCOUTQ, &n));
	return n;
}

/* Message @k of a test: @len bytes that no other one has. */
static void fill(unsigned char *buf, unsigned int k, unsigned int len)
{
	uint64_t state = k;
	unsigned int i;

	for (i = 0; i < len; i++)
		buf[i] = i & 7 ? buf[i & ~7U] + i : st_random(&state);
}

static void say(int fd, unsigned int k, unsigned int len)
{
	static unsigned char buf[300000];

	fill(buf, k, len);
	CHECK_EQ(CHECK_OK(send(fd, buf, len, MSG_NOSIGNAL)), len);
}

static bool try_say(int fd, unsigned int k, unsigned int len)
{
	static unsigned char buf[300000];
	ssize_t n;

	fill(buf, k, len);
	n = send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	CHECK_EQ(CHECK_OK(n), len);
	return true;
}

static void hear(int fd, unsigned int k, unsigned int len)
{
	static unsigned char buf[300001], want[300001];
	ssize_t n = CHECK_OK(recv(fd, buf, sizeof(buf), 0));

	CHECK_SAME(n, len);
	fill(want, k, len);
	if (memcmp(buf, want, len))
		BROKEN("message %u is another", k);
}

/*
 * As many messages as go before the sender is blocked for good; member 0 sends
 * and reads, so do all up to @readers.
 */
static unsigned int say_until_blocked(struct st_group *g, unsigned int len, unsigned int readers)
{
	unsigned int n = 0, heard = 0, i;
	bool rests = false;

	for (;;) {
		if (try_say(g->fd[0], n, len)) {
			rests = false;
			n++;
			continue;
		}
		if (rests)
			return n;
		for (; heard < n; heard++)
			for (i = 0; i < readers; i++)
				hear(g->fd[i], heard, len);
		/* once nothing moves any more, another try says whether it is for good */
		WAIT_UNTIL(st_rests(g), ST_SOON);
		rests = true;
	}
}

TEST(option_errors)
{
	int fd = st_socket(0), on = 1;
	socklen_t len = sizeof(on);
	void *bad = (void *)8;

	CHECK_EQ(is_detached(fd), 0);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on) - 1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, &on, 0), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, bad, sizeof(on)), EFAULT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_DETACHED, bad, &len), EFAULT);
	CHECK_EQ(is_detached(fd), 0);
	CHECK_OK(detach(fd, 7));
	CHECK_EQ(is_detached(fd), 1);
	CHECK_OK(detach(fd, 0));
	CHECK_EQ(is_detached(fd), 0);
	CHECK_OK(detach(fd, 0));
}

TEST(no_way_back_in_a_group)
{
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };

	st_open_but(&g, &c, 1);
	CHECK_OK(detach(g.fd[0], 0));
	CHECK_OK(detach(g.fd[0], 1));
	CHECK_ERR(detach(g.fd[0], 0), EBUSY);
	CHECK_OK(detach(g.fd[0], 1));
	CHECK_EQ(is_detached(g.fd[0]), 1);
}

TEST(set_before_the_group)
{
	struct spindle_group_create c = { .members = 1 };
	int fd = st_bound(0);

	CHECK_OK(detach(fd, 1));
	st_name(c.name);
	CHECK_OK(st_create(fd, &c));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	st_say(fd, "to myself");
	/* nobody has read it, and yet the ring is free */
	WAIT_UNTIL(!out_queue(fd), ST_SOON);
	CHECK(charged(fd) > 9);
	st_expect(fd, "to myself");
	CHECK_EQ(charged(fd), 0);
	st_expect_none(fd);
}

static void slow_reader_holds_nobody(unsigned int slow)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int k, i;

	st_open(&g, &c);
	quota(g.fd[slow], 4 << 20);
	CHECK_OK(detach(g.fd[slow], 1));
	for (k = 0; k < 500; k++) {
		say(g.fd[0], k, 500 + k);
		for (i = 0; i < 3; i++)
			if (i != slow)
				hear(g.fd[i], k, 500 + k);
	}
	WAIT_UNTIL(!out_queue(g.fd[0]), ST_SOON);
	CHECK(charged(g.fd[slow]) > 500 * 500);
	for (k = 0; k < 500; k++)
		hear(g.fd[slow], k, 500 + k);
	CHECK_EQ(charged(g.fd[slow]), 0);
	CHECK_SAME(st_info(g.fd[slow]).received, 500);
	st_expect_none(g.fd[slow]);
}

TEST(slow_reader_on_another_node)
{
	slow_reader_holds_nobody(1);
}

TEST(slow_reader_on_the_senders_node)
{
	slow_reader_holds_nobody(2);
}

static void full_quota_blocks(unsigned int nodes)
{
	struct st_config c = { .members = 2, .nodes = nodes, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	quota(g.fd[1], 65536);
	CHECK_OK(detach(g.fd[1], 1));
	n = say_until_blocked(&g, 1000, 1);
	/* the quota, then the ring */
	printf("# blocked after %u\n", n);
	CHECK(n > 50 && n < 80);
	CHECK(charged(g.fd[1]) <= 65536);
	CHECK_EQ(st_events(g.fd[0]) & POLLOUT, 0);
	/* one out, one in: it goes on at the reader's pace */
	for (k = 0; k < n; k++)
		hear(g.fd[1], k, 1000);
	st_wait_events(g.fd[0], POLLOUT);
	for (; k < n + 200; k++) {
		say(g.fd[0], k, 1000);
		hear(g.fd[1], k, 1000);
		hear(g.fd[0], k, 1000);
	}
	CHECK_EQ(charged(g.fd[1]), 0);
}

TEST(full_quota_blocks_one_node)
{
	full_quota_blocks(1);
}

TEST(full_quota_blocks_two_nodes)
{
	full_quota_blocks(2);
}

TEST(blocked_writer_goes_on_with_the_reader)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024,
			       .receivers = 2 };
	struct st_group g = { 0 };
	unsigned int k;
	pid_t pid;

	st_open(&g, &c);
	quota(g.fd[1], 16384);
	CHECK_OK(detach(g.fd[1], 1));
	CHECK_OK(shutdown(g.fd[0], SHUT_RD));
	pid = CHECK_OK(fork());
	if (!pid) {
		for (k = 0; k < 1000; k++)
			say(g.fd[0], k, k);
		CHECK_OK(shutdown(g.fd[0], SHUT_WR));
		_exit(0);
	}
	WAIT_UNTIL(st_sleeps(pid), ST_SOON);
	for (k = 0; k < 1000; k++)
		hear(g.fd[1], k, k);
	st_reap(pid);
	st_expect_end(g.fd[1]);
}

/* One message is taken whatever its size; the next one waits in the ring. */
TEST(huge_message_into_an_empty_queue)
{
	struct st_config c = { .members = 1, .window = 262144, .max_msg = 262144 };
	struct st_group g = { 0 };
	unsigned int k;

	st_open(&g, &c);
	quota(g.fd[0], 8192);
	CHECK_OK(detach(g.fd[0], 1));
	say(g.fd[0], 0, 262144);
	WAIT_UNTIL(!out_queue(g.fd[0]), ST_SOON);
	CHECK(charged(g.fd[0]) > 262144);
	for (k = 1; k < 10; k++) {
		say(g.fd[0], k, 262144);
		CHECK_EQ(out_queue(g.fd[0]), 262144);
		hear(g.fd[0], k - 1, 262144);
		/* which made room for this one */
		WAIT_UNTIL(!out_queue(g.fd[0]), ST_SOON);
	}
	hear(g.fd[0], 9, 262144);
	CHECK_EQ(charged(g.fd[0]), 0);
}

TEST(peek_trunc_and_size)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	char small[4];
	int on = 1;

	st_open(&g, &c);
	CHECK_OK(detach(g.fd[1], 1));
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	CHECK_EQ(in_queue(g.fd[1]), 0);
	CHECK_EQ(st_events(g.fd[1]) & POLLIN, 0);
	st_say(g.fd[0], "first message");
	st_say(g.fd[0], "second");
	st_say(g.fd[0], "");
	st_wait_events(g.fd[1], POLLIN);
	st_expect(g.fd[0], "first message");
	st_expect(g.fd[0], "second");
	st_expect(g.fd[0], "");
	/* all three are in the queue */
	WAIT_UNTIL(!out_queue(g.fd[0]), ST_SOON);
	CHECK_EQ(in_queue(g.fd[1]), 13);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, MSG_PEEK)), 13);
	CHECK(m.has_info);
	CHECK_EQ(m.info.rank, 0);
	CHECK_EQ(m.from.ss_rank, 0);
	CHECK_EQ(m.flags & (MSG_EOR | MSG_TRUNC), MSG_EOR);
	CHECK_EQ(recv(g.fd[1], small, sizeof(small), MSG_PEEK | MSG_TRUNC), 13);
	CHECK_EQ(recv(g.fd[1], small, sizeof(small), MSG_PEEK), 4);
	CHECK_INTACT(!memcmp(small, "firs", 4));
	CHECK_EQ(st_info(g.fd[1]).received, 0);
	CHECK_EQ(recv(g.fd[1], small, sizeof(small), MSG_TRUNC), 13);
	CHECK_EQ(st_info(g.fd[1]).received, 1);
	CHECK_EQ(in_queue(g.fd[1]), 6);
	/* what cannot be written stays */
	CHECK_ERR(recv(g.fd[1], (void *)8, 100, 0), EFAULT);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 6);
	CHECK_EQ(m.info.rank, 0);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 0);
	CHECK_EQ(m.flags & MSG_EOR, MSG_EOR);
	CHECK_EQ(in_queue(g.fd[1]), 0);
	CHECK_EQ(st_events(g.fd[1]) & POLLIN, 0);
	CHECK_EQ(charged(g.fd[1]), 0);
}

/* With messages in the queue and in the ring: all that was delivered is read. */
TEST(failed_group_is_read_to_its_end)
{
	struct st_config c = { .members = 4, .nodes = 2, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	quota(g.fd[3], 16384);
	CHECK_OK(detach(g.fd[3], 1));
	/* member 1 has read them all, on the same node */
	n = say_until_blocked(&g, 1000, 3);
	st_fail_second(&g, g.fd[3]);
	for (k = 0; k < n; k++)
		hear(g.fd[3], k, 1000);
	CHECK_ERR(recv(g.fd[3], &m, 1, 0), ENETDOWN);
	CHECK_EQ(charged(g.fd[3]), 0);
}

/* The same when the sender has gone, whose ring they are in. */
static void sender_is_read_to_its_end(unsigned int nodes)
{
	struct st_config c = { .members = 2, .nodes = nodes, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	quota(g.fd[1], 16384);
	CHECK_OK(detach(g.fd[1], 1));
	st_linger(g.fd[0], ST_SOON);
	n = say_until_blocked(&g, 1000, 1);
	close(g.fd[0]);
	st_wait_members(g.fd[1], 1);
	say(g.fd[1], n, 1000);
	for (k = 0; k <= n; k++)
		hear(g.fd[1], k, 1000);
	st_expect_none(g.fd[1]);
	CHECK_EQ(charged(g.fd[1]), 0);
}

TEST(sender_on_the_same_node_is_read_to_its_end)
{
	sender_is_read_to_its_end(1);
}

TEST(sender_on_another_node_is_read_to_its_end)
{
	sender_is_read_to_its_end(2);
}

TEST(closed_group_is_read_to_its_end)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 1024,
			       .receivers = 2 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	quota(g.fd[1], 16384);
	CHECK_OK(detach(g.fd[1], 1));
	n = say_until_blocked(&g, 1000, 1);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	st_expect_end(g.fd[0]);
	close(g.fd[0]);
	st_wait_state(g.fd[1], SPINDLE_STATE_CLOSED);
	for (k = 0; k < n; k++)
		hear(g.fd[1], k, 1000);
	st_expect_end(g.fd[1]);
	CHECK(st_events(g.fd[1]) & POLLRDHUP);
}

TEST(end_behind_a_long_queue)
{
	struct st_config c = { .members = 3, .nodes = 3, .window = 4096, .max_msg = 512 };
	struct st_group g = { 0 };
	unsigned int i, k;

	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		quota(g.fd[i], 1 << 20);
		CHECK_OK(detach(g.fd[i], 1));
	}
	for (k = 0; k < 300; k++)
		say(g.fd[0], k, 512);
	for (i = 0; i < 3; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	for (i = 0; i < 3; i++)
		st_wait_state(g.fd[i], SPINDLE_STATE_CLOSED);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 300; k++)
			hear(g.fd[i], k, 512);
		st_expect_end(g.fd[i]);
		close(g.fd[i]);
	}
}

TEST(shut_for_reading)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	quota(g.fd[1], 16384);
	CHECK_OK(detach(g.fd[1], 1));
	n = say_until_blocked(&g, 1000, 1);
	CHECK(charged(g.fd[1]));
	CHECK_OK(shutdown(g.fd[1], SHUT_RD));
	CHECK_EQ(charged(g.fd[1]), 0);
	CHECK_EQ(recv(g.fd[1], &m, 1, 0), 0);
	CHECK_EQ(in_queue(g.fd[1]), 0);
	CHECK(st_events(g.fd[1]) & POLLRDHUP);
	/* nothing is kept for it any more */
	for (k = 0; k < 100; k++) {
		say(g.fd[0], n + k, 1000);
		hear(g.fd[0], n + k, 1000);
	}
	CHECK_EQ(charged(g.fd[1]), 0);
}

TEST(closed_with_a_full_queue)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct st_group g = { 0 };

		st_open(&g, &c);
		quota(g.fd[1], 16384);
		CHECK_OK(detach(g.fd[1], 1));
		say_until_blocked(&g, 1000, 1);
		close(g.fd[1]);
		/* nobody holds it any more */
		st_wait_events(g.fd[0], POLLOUT);
		say(g.fd[0], 0, 1000);
		close(g.fd[0]);
	}
}

/* A reader that already holds others lets them go. */
TEST(detached_in_the_middle)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	n = say_until_blocked(&g, 1000, 1);
	CHECK(n < 10);
	hear(g.fd[1], 0, 1000);
	CHECK_OK(detach(g.fd[1], 1));
	st_wait_events(g.fd[0], POLLOUT);
	WAIT_UNTIL(!out_queue(g.fd[0]), ST_SOON);
	CHECK_EQ(charged(g.fd[1]) / 1000, n - 1);
	for (k = 1; k < n; k++)
		hear(g.fd[1], k, 1000);
	st_expect_none(g.fd[1]);
}

/* A larger quota counts from the next message that is taken. */
TEST(quota_grows)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n, k;

	st_open(&g, &c);
	quota(g.fd[1], 8192);
	CHECK_OK(detach(g.fd[1], 1));
	n = say_until_blocked(&g, 1000, 1);
	quota(g.fd[1], 1 << 20);
	hear(g.fd[1], 0, 1000);
	WAIT_UNTIL(!out_queue(g.fd[0]), ST_SOON);
	for (k = 1; k < n; k++)
		hear(g.fd[1], k, 1000);
}

static uint64_t number_in(const char *dir, const char *file)
{
	char path[PATH_MAX], buf[64];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!st_read_file(path, buf, sizeof(buf)))
		FAIL("%s: %s", path, st_err(errno));
	return strtoull(buf, NULL, 10);
}

static void tell_cgroup(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!st_write_file(path, text))
		FAIL("%s: %s", path, st_err(errno));
}

/* A memory cgroup of @bytes, in @dir. */
static void make_cgroup(char *top, char *dir, const char *bytes)
{
	char path[PATH_MAX], controllers[256] = "";

	snprintf(top, 64, "/tmp/spindle-cgroup.%d", getpid());
	CHECK_OK(mkdir(top, 0700));
	if (mount("none", top, "cgroup2", 0, NULL))
		st_skip("no cgroup2");
	snprintf(path, sizeof(path), "%s/cgroup.controllers", top);
	st_read_file(path, controllers, sizeof(controllers));
	if (!strstr(controllers, "memory"))
		st_skip("no memory cgroups");
	tell_cgroup(top, "cgroup.subtree_control", "+memory");
	snprintf(dir, 80, "%s/members", top);
	CHECK_OK(mkdir(dir, 0700));
	tell_cgroup(dir, "memory.max", bytes);
}

/* Its memory is the limit, long before its quota: the rest waits in the ring. */
TEST(charged_to_the_members_cgroup)
{
	struct st_config c = { .members = 2, .window = 262144, .max_msg = 16384 };
	struct spindle_group_join join = { 0 };
	struct st_group g = { 0 };
	char top[64], dir[80], path[PATH_MAX];
	unsigned int n = 0, k;
	int go[2];
	pid_t pid;

	make_cgroup(top, dir, "8388608");
	CHECK_OK(pipe(go));
	st_open_but(&g, &c, 1);
	pid = CHECK_OK(fork());
	if (!pid) {
		int fd;

		tell_cgroup(dir, "cgroup.procs", "0");
		/* none of its own is wanted when all is used */
		CHECK_OK(mlockall(MCL_CURRENT));
		fd = st_bound(0);
		quota(fd, 256 << 20);
		CHECK_OK(detach(fd, 1));
		strcpy(join.name, g.name);
		st_contact(&join, st_addr(0));
		CHECK_OK(st_join(fd, &join));
		CHECK_EQ(read(go[0], &n, sizeof(n)), sizeof(n));
		for (k = 0; k < n; k++)
			hear(fd, k, 16000);
		CHECK_EQ(charged(fd), 0);
		/* as its parent does */
		CHECK_OK(shutdown(fd, SHUT_WR));
		st_expect_end(fd);
		_exit(0);
	}
	st_wait_state(g.fd[0], SPINDLE_STATE_ACTIVE);
	n = say_until_blocked(&g, 16000, 1);
	printf("# %u messages, %llu bytes in use\n", n,
	       (unsigned long long)number_in(dir, "memory.current"));
	CHECK(n > 100 && n < 600);
	CHECK(number_in(dir, "memory.current") > (n - 20) * 16000);
	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s", st_addr(0), g.name);
	CHECK(number_in(path, "counters/detach_nomem") > 0);
	CHECK_EQ(write(go[1], &n, sizeof(n)), sizeof(n));
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	st_expect_end(g.fd[0]);
	st_reap(pid);
	CHECK_OK(rmdir(dir));
	CHECK_OK(umount(top));
	CHECK_OK(rmdir(top));
}

static struct {
	int fd;
	unsigned int messages;
	unsigned int sum;
	unsigned int read;
} race;

static void *race_reader(void *arg)
{
	unsigned int k;
	ssize_t n;

	(void)arg;
	for (;;) {
		struct iovec iov = { &k, sizeof(k) };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

		n = CHECK_OK(recvmsg(race.fd, &msg, 0));
		if (!(msg.msg_flags & MSG_EOR))
			return NULL;
		CHECK_SAME(n, sizeof(k));
		__atomic_fetch_add(&race.sum, k, __ATOMIC_RELAXED);
		__atomic_fetch_add(&race.read, 1, __ATOMIC_RELAXED);
	}
}

static void *race_looker(void *arg)
{
	struct st_msg *own = arg;

	while (!(st_events(race.fd) & POLLRDHUP)) {
		in_queue(race.fd);
		if (recv(race.fd, own->data, sizeof(own->data), MSG_PEEK | MSG_DONTWAIT) < 0)
			CHECK_EQ(errno, EAGAIN);
		st_pause_us(200);
	}
	return NULL;
}

/* Several readers, one that only looks, and detached while they are at it. */
TEST(readers_at_once)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .depth = 64,
			       .receivers = 2 };
	struct st_group g = { 0 };
	pthread_t threads[3], looker;
	unsigned int k, i, sum = 0;

	st_open(&g, &c);
	race.fd = g.fd[1];
	CHECK_OK(shutdown(g.fd[0], SHUT_RD));
	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, race_reader, NULL), 0);
	CHECK_EQ(pthread_create(&looker, NULL, race_looker, &m), 0);
	for (k = 0; k < 3000; k++) {
		if (k == 500)
			CHECK_OK(detach(g.fd[1], 1));
		if (k == 1500)
			quota(g.fd[1], 8192);
		CHECK_EQ(CHECK_OK(send(g.fd[0], &k, sizeof(k), 0)), sizeof(k));
		sum += k;
	}
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(pthread_join(looker, NULL), 0);
	CHECK_SAME(race.read, 3000);
	CHECK_SAME(race.sum, sum);
	CHECK_EQ(charged(g.fd[1]), 0);
}

/* Shut for reading while others read and the engine fills. */
TEST(shut_among_readers)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .depth = 64,
			       .receivers = 2 };
	unsigned int round, k, i;

	for (round = 0; round < 10; round++) {
		struct st_group g = { 0 };
		pthread_t threads[3];

		st_open(&g, &c);
		race.fd = g.fd[1];
		CHECK_OK(detach(g.fd[1], 1));
		CHECK_OK(shutdown(g.fd[0], SHUT_RD));
		for (i = 0; i < 3; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, race_reader, NULL), 0);
		for (k = 0; k < 400; k++) {
			if (k == 200 + round)
				CHECK_OK(shutdown(g.fd[1], SHUT_RD));
			CHECK_EQ(CHECK_OK(send(g.fd[0], &k, sizeof(k), 0)), sizeof(k));
		}
		for (i = 0; i < 3; i++)
			CHECK_EQ(pthread_join(threads[i], NULL), 0);
		CHECK_EQ(charged(g.fd[1]), 0);
		close(g.fd[0]);
		close(g.fd[1]);
	}
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
