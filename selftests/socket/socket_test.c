// SPDX-License-Identifier: GPL-2.0
/*
 * The manners of a Spindle socket: every error the contract names, and what
 * send, recv, poll and their kin do. One host with many addresses will do.
 */
#include "spindle_selftest.h"

#include <grp.h>
#include <limits.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define GID_RANGE	"/proc/sys/net/spindle/gid_range"

static struct st_msg m;

/* The contract's own layout: the same for 32-bit programs. */

_Static_assert(sizeof(struct sockaddr_spindle) == 28, "sockaddr_spindle");
_Static_assert(offsetof(struct sockaddr_spindle, ss_rank) == 4, "ss_rank");
_Static_assert(offsetof(struct sockaddr_spindle, ss_addr) == 8, "ss_addr");
_Static_assert(sizeof(struct spindle_group_create) == 120, "group_create");
_Static_assert(offsetof(struct spindle_group_create, optimise_off) == 88, "create.optimise_off");
_Static_assert(offsetof(struct spindle_group_create, max_members) == 92, "create.max_members");
_Static_assert(sizeof(struct spindle_group_join) == 152, "group_join");
_Static_assert(offsetof(struct spindle_group_join, max_members) == 120, "join.max_members");
_Static_assert(sizeof(struct spindle_group_info) == 152, "group_info");
_Static_assert(offsetof(struct spindle_group_info, sent) == 104, "sent");
_Static_assert(offsetof(struct spindle_group_info, optimise_off) == 120, "info.optimise_off");
_Static_assert(offsetof(struct spindle_group_info, max_members) == 124, "info.max_members");
_Static_assert(sizeof(struct spindle_msg_info) == 24, "msg_info");
_Static_assert(sizeof(struct spindle_event_member) == 32, "event_member");
_Static_assert(sizeof(struct spindle_event) == 64, "event");
_Static_assert(offsetof(struct spindle_event, view) == 8, "event.view");
_Static_assert(offsetof(struct spindle_event, members) == 24, "event.members");
_Static_assert(sizeof(struct spindle_delivery) == 24, "delivery");
_Static_assert(sizeof(struct spindle_rings) == 136, "rings");
_Static_assert(sizeof(struct spindle_status) == 192, "status");

/* socket() */

TEST(family_is_shown)
{
	int family = st_family();

	CHECK(family == 18 || family == 13 || family == 22);
}

TEST(socket_types)
{
	static const int other[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(other); i++)
		CHECK_ERR(socket(st_family(), other[i], 0), ESOCKTNOSUPPORT);
}

TEST(socket_protocols)
{
	CHECK_ERR(socket(st_family(), SOCK_SEQPACKET, 1), EPROTONOSUPPORT);
	CHECK_ERR(socket(st_family(), SOCK_SEQPACKET, IPPROTO_UDP), EPROTONOSUPPORT);
}

TEST(socket_flags)
{
	int fd = st_socket(SOCK_NONBLOCK);

	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int val = -1;

	CHECK_OK(getsockopt(fd, level, name, &val, &len));
	CHECK_EQ(len, sizeof(int));
	return val;
}

TEST(socket_says_what_it_is)
{
	int fd = st_socket(0);

	CHECK_EQ(get_int(fd, SOL_SOCKET, SO_TYPE), SOCK_SEQPACKET);
	CHECK_EQ(get_int(fd, SOL_SOCKET, SO_DOMAIN), st_family());
	CHECK_EQ(get_int(fd, SOL_SOCKET, SO_PROTOCOL), 0);
	CHECK_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
}

TEST(many_sockets)
{
	int fds[200];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = i % 2 ? st_bound(0) : st_socket(0);
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		CHECK_OK(close(fds[i]));
}

static void be_nobody(gid_t gid)
{
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresgid(gid, gid, gid));
	CHECK_OK(setresuid(65534, 65534, 65534));
}

/* @want: the errno, 0 for none. */
static void expect_create(int fd, const struct spindle_group_create *c, int want)
{
	int err = st_create(fd, c) ? errno : 0;

	if (err != want)
		FAIL("create: %s, not %s", st_err(err), st_err(want));
}

static void try_as(gid_t gid, int want)
{
	pid_t pid = CHECK_OK(fork());

	if (!pid) {
		struct spindle_group_create c = { .members = 2 };
		int fd;

		fd = st_bound(0);
		be_nobody(gid);
		st_name(c.name);
		expect_create(fd, &c, want);
		_exit(0);
	}
	st_reap(pid);
}

TEST(create_and_join_need_a_capability)
{
	struct st_config c = { .members = 2 };
	struct spindle_group_join j = { 0 };
	struct st_group g = { 0 };
	pid_t pid;

	st_open_but(&g, &c, 1);
	strcpy(j.name, g.name);
	st_contact(&j, st_addr(0));
	pid = CHECK_OK(fork());
	if (!pid) {
		struct spindle_group_create create = { .members = 1 };
		int bound = st_bound(1);
		int fd;

		be_nobody(65534);
		/* opening and asking are for everybody */
		fd = st_socket(0);
		CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
		CHECK_ERR(st_bind(fd, st_addr(1)), EPERM);
		fd = bound;
		st_name(create.name);
		CHECK_ERR(st_create(fd, &create), EPERM);
		CHECK_ERR(st_join(fd, &j), EPERM);
		_exit(0);
	}
	st_reap(pid);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_FORMING);
}

/* What was before is put back at the end. */
static void let_in(const char *range, char before[64])
{
	if (!st_read_file(GID_RANGE, before, 64))
		FAIL("no " GID_RANGE);
	CHECK(st_write_file(GID_RANGE, range));
}

TEST(gid_range_lets_in)
{
	char before[64];

	let_in("4000 4010", before);
	try_as(3999, EPERM);
	try_as(4000, 0);
	try_as(4005, 0);
	try_as(4010, 0);
	try_as(4011, EPERM);
	CHECK(st_write_file(GID_RANGE, "1 0"));
	try_as(0, EPERM);
	try_as(1, EPERM);
	try_as(4005, EPERM);
	CHECK(st_write_file(GID_RANGE, before));
}

/* A supplementary group counts as well as the program's own. */
TEST(gid_range_and_supplementary_groups)
{
	static const gid_t extra = 4242;
	char before[64];
	pid_t pid;

	let_in("4242 4242", before);
	pid = CHECK_OK(fork());
	if (!pid) {
		struct spindle_group_create c = { .members = 2 };

		CHECK_OK(setgroups(1, &extra));
		CHECK_OK(setresgid(65534, 65534, 65534));
		CHECK_OK(setresuid(65534, 65534, 65534));
		st_name(c.name);
		CHECK_OK(st_create(st_bound(0), &c));
		_exit(0);
	}
	st_reap(pid);
	CHECK(st_write_file(GID_RANGE, before));
}

/* Who may create may not therefore say what slows down others. */
TEST(optimise_off_needs_a_capability)
{
	char before[64];
	pid_t pid;

	let_in("4242 4242", before);
	pid = CHECK_OK(fork());
	if (!pid) {
		struct spindle_group_create c = { .members = 2 };
		int fd = st_bound(0);

		be_nobody(4242);
		st_name(c.name);
		for (c.optimise_off = 1; c.optimise_off < SPINDLE_OFF_ALL; c.optimise_off <<= 1)
			expect_create(fd, &c, EPERM);
		c.optimise_off = SPINDLE_OFF_ALL;
		expect_create(fd, &c, EPERM);
		c.optimise_off = SPINDLE_OFF_ALL + 1;
		expect_create(fd, &c, EINVAL);
		CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
		c.optimise_off = 0;
		expect_create(fd, &c, 0);
		_exit(0);
	}
	st_reap(pid);
	CHECK(st_write_file(GID_RANGE, before));
}

TEST(gid_range_default_is_nobody)
{
	char now[64];
	int low = -1, high = -1;

	CHECK(st_read_file(GID_RANGE, now, sizeof(now)));
	CHECK_EQ(sscanf(now, "%d %d", &low, &high), 2);
	CHECK_EQ(low, 1);
	CHECK_EQ(high, 0);
}

/* bind() and the names */

static void expect_name(int fd, const char *addr)
{
	struct in6_addr want = st_mapped(addr);
	struct sockaddr_spindle ss;
	socklen_t len = sizeof(ss);

	memset(&ss, 0xaa, sizeof(ss));
	CHECK_OK(getsockname(fd, (struct sockaddr *)&ss, &len));
	CHECK_EQ(len, sizeof(ss));
	CHECK_EQ(ss.ss_family, st_family());
	CHECK_EQ(ss.ss_port, 0);
	CHECK_EQ(ss.ss_scope_id, 0);
	CHECK(!memcmp(&ss.ss_addr, &want, sizeof(want)));
}

TEST(bind_inet)
{
	int fd = st_socket(0);

	CHECK_OK(st_bind(fd, st_addr(0)));
	expect_name(fd, st_addr(0));
}

TEST(bind_inet6_mapped)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = st_mapped(st_addr(1)),
	};
	int fd = st_socket(0);

	CHECK_OK(bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)));
	expect_name(fd, st_addr(1));
}

TEST(bind_spindle)
{
	struct sockaddr_spindle ss = {
		.ss_family = st_family(),
		.ss_addr = st_mapped(st_addr(2)),
	};
	int fd = st_socket(0);

	CHECK_OK(bind(fd, (struct sockaddr *)&ss, sizeof(ss)));
	expect_name(fd, st_addr(2));
}

TEST(bind_too_short)
{
	struct sockaddr_spindle ss = {
		.ss_family = st_family(),
		.ss_addr = st_mapped(st_addr(0)),
	};
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = st_mapped(st_addr(0)),
	};
	struct sockaddr_in sin = st_in(st_addr(0));
	int fd = st_socket(0);

	CHECK_ERR(bind(fd, (struct sockaddr *)&sin, 0), EINVAL);
	CHECK_ERR(bind(fd, (struct sockaddr *)&sin, 1), EINVAL);
	CHECK_ERR(bind(fd, (struct sockaddr *)&sin, 7), EINVAL);
	CHECK_ERR(bind(fd, (struct sockaddr *)&sin6, 23), EINVAL);
	CHECK_ERR(bind(fd, (struct sockaddr *)&ss, sizeof(ss) - 1), EINVAL);
	CHECK_OK(st_bind(fd, st_addr(0)));
}

TEST(bind_unknown_family)
{
	struct sockaddr_storage any = { .ss_family = AF_UNIX };
	int fd = st_socket(0);

	CHECK_ERR(bind(fd, (struct sockaddr *)&any, sizeof(any)), EAFNOSUPPORT);
	any.ss_family = AF_UNSPEC;
	CHECK_ERR(bind(fd, (struct sockaddr *)&any, sizeof(any)), EAFNOSUPPORT);
	any.ss_family = 0xffff;
	CHECK_ERR(bind(fd, (struct sockaddr *)&any, sizeof(any)), EAFNOSUPPORT);
}

TEST(bind_port_or_rank)
{
	struct sockaddr_spindle ss = {
		.ss_family = st_family(),
		.ss_addr = st_mapped(st_addr(0)),
	};
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = st_mapped(st_addr(0)),
		.sin6_port = htons(1),
	};
	struct sockaddr_in sin = st_in(st_addr(0));
	int fd = st_socket(0);

	sin.sin_port = htons(4711);
	CHECK_ERR(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), EINVAL);
	CHECK_ERR(bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)), EINVAL);
	ss.ss_rank = 1;
	CHECK_ERR(bind(fd, (struct sockaddr *)&ss, sizeof(ss)), EINVAL);
	ss.ss_rank = 0;
	ss.ss_port = 1;
	CHECK_ERR(bind(fd, (struct sockaddr *)&ss, sizeof(ss)), EINVAL);
}

TEST(bind_twice)
{
	int fd = st_bound(0);

	CHECK_ERR(st_bind(fd, st_addr(0)), EINVAL);
	CHECK_ERR(st_bind(fd, st_addr(1)), EINVAL);
	expect_name(fd, st_addr(0));
}

TEST(bind_same_address_again)
{
	int fds[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = st_bound(0);
	expect_name(fds[2], st_addr(0));
}

/* The first sockets of a node, at the same moment; then its last ones. */
TEST(bind_same_address_at_once)
{
	unsigned int *ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i, round;
	pid_t pid[4];
	int status;

	CHECK(ready != MAP_FAILED);
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = CHECK_OK(fork());
		if (pid[i])
			continue;
		for (round = 1; round <= 100; round++) {
			__atomic_add_fetch(ready, 1, __ATOMIC_ACQ_REL);
			while (__atomic_load_n(ready, __ATOMIC_ACQUIRE) < round * ARRAY_SIZE(pid))
				sched_yield();
			close(st_bound(0));
		}
		_exit(0);
	}
	/* whichever ends first: after a failure the others wait for ever */
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		CHECK_OK(waitpid(-1, &status, 0));
		CHECK_EQ(status, 0);
	}
}

TEST(bind_foreign_address)
{
	static const char *const foreign[] = {
		"192.0.2.7", "0.0.0.0", "224.0.0.1", "239.1.2.3", "255.255.255.255",
	};
	static const char *const foreign6[] = { "::", "ff02::1", "2001:db8::1" };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	int fd = st_socket(0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(foreign); i++)
		CHECK_ERR(st_bind(fd, foreign[i]), EADDRNOTAVAIL);
	for (i = 0; i < ARRAY_SIZE(foreign6); i++) {
		CHECK_EQ(inet_pton(AF_INET6, foreign6[i], &sin6.sin6_addr), 1);
		CHECK_ERR(bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)), EADDRNOTAVAIL);
	}
	CHECK_OK(st_bind(fd, st_addr(0)));
}

TEST(bind_address_without_device)
{
	int fd = st_socket(0);

	CHECK_ERR(st_bind(fd, "127.0.0.1"), ENODEV);
}

TEST(bind_bad_pointer)
{
	int fd = st_socket(0);

	CHECK_ERR(bind(fd, (struct sockaddr *)8, sizeof(struct sockaddr_in)), EFAULT);
}

TEST(name_before_bind)
{
	static const struct in6_addr none;
	struct sockaddr_spindle ss;
	socklen_t len = sizeof(ss);
	int fd = st_socket(0);

	memset(&ss, 0xaa, sizeof(ss));
	CHECK_OK(getsockname(fd, (struct sockaddr *)&ss, &len));
	CHECK_EQ(len, sizeof(ss));
	CHECK_EQ(ss.ss_family, st_family());
	CHECK(!memcmp(&ss.ss_addr, &none, sizeof(none)));
}

TEST(name_has_the_rank)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	struct sockaddr_spindle ss;
	unsigned int i;
	socklen_t len;

	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		expect_name(g.fd[i], st_addr(i));
		len = sizeof(ss);
		CHECK_OK(getsockname(g.fd[i], (struct sockaddr *)&ss, &len));
		CHECK_EQ(ss.ss_rank, i);
	}
}

TEST(calls_that_do_not_exist)
{
	struct sockaddr_in sin = st_in(st_addr(1));
	struct sockaddr_storage any;
	socklen_t len = sizeof(any);
	int fd = st_bound(0), pair[2];

	CHECK_ERR(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), EOPNOTSUPP);
	CHECK_ERR(listen(fd, 1), EOPNOTSUPP);
	CHECK_ERR(accept(fd, NULL, NULL), EOPNOTSUPP);
	CHECK_ERR(socketpair(st_family(), SOCK_SEQPACKET, 0, pair), EOPNOTSUPP);
	CHECK_ERR(getpeername(fd, (struct sockaddr *)&any, &len), ENOTCONN);
}

TEST(no_peer_name_in_a_group_either)
{
	struct sockaddr_storage any;
	socklen_t len = sizeof(any);

	CHECK_ERR(getpeername(st_alone(), (struct sockaddr *)&any, &len), ENOTCONN);
}

TEST(no_map)
{
	CHECK_ERR((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, st_alone(), 0), ENOTCONN);
}

TEST(unknown_ioctl)
{
	int val;

	CHECK_ERR(ioctl(st_alone(), _IOR(0x89, 0xdd, int), &val), ENOTTY);
}

/* Options */

TEST(unknown_options)
{
	socklen_t len = 4;
	int fd = st_bound(0), val = 1;

	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, 0, &val, 4), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, 77, &val, 4), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &val, 4), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, &val, 4), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENT, &val, 4), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, IPPROTO_TCP, 1, &val, 4), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, IPPROTO_IP, 1, &val, 4), ENOPROTOOPT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, 0, &val, &len), ENOPROTOOPT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, &val, &len), ENOPROTOOPT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &val, &len), ENOPROTOOPT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &val, &len), ENOPROTOOPT);
	CHECK_ERR(getsockopt(fd, IPPROTO_TCP, 1, &val, &len), ENOPROTOOPT);
}

TEST(recvinfo_option)
{
	int fd = st_socket(0), on = 1, off = 0;
	socklen_t len;

	CHECK_EQ(get_int(fd, SOL_SPINDLE, SPINDLE_RECVINFO), 0);
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	CHECK_EQ(get_int(fd, SOL_SPINDLE, SPINDLE_RECVINFO), 1);
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, &off, sizeof(off)));
	CHECK_EQ(get_int(fd, SOL_SPINDLE, SPINDLE_RECVINFO), 0);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, &on, 1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, (void *)8, sizeof(on)), EFAULT);
	len = sizeof(on);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, (void *)8, &len), EFAULT);
}

TEST(create_needs_bind)
{
	struct spindle_group_create c = { .members = 1 };
	struct spindle_group_join j = { 0 };
	int fd = st_socket(0);

	st_name(c.name);
	CHECK_ERR(st_create(fd, &c), EDESTADDRREQ);
	strcpy(j.name, c.name);
	st_contact(&j, st_addr(0));
	CHECK_ERR(st_join(fd, &j), EDESTADDRREQ);
}

TEST(create_twice)
{
	struct spindle_group_create c = { .members = 1 };
	struct spindle_group_join j = { 0 };
	int fd = st_bound(0);

	st_name(c.name);
	CHECK_OK(st_create(fd, &c));
	strcpy(j.name, c.name);
	st_contact(&j, st_addr(0));
	CHECK_ERR(st_join(fd, &j), EISCONN);
	st_name(c.name);
	CHECK_ERR(st_create(fd, &c), EISCONN);
}

/* Set the option with any length, from a page that ends where the struct does. */
static int set_long(int fd, int opt, const void *from, size_t have, socklen_t len, char tail)
{
	char *buf = malloc(65536);
	int ret;

	memset(buf, 0, 65536);
	memcpy(buf, from, have);
	if (tail)
		buf[len - 1] = tail;
	ret = setsockopt(fd, SOL_SPINDLE, opt, buf, len);
	free(buf);
	return ret;
}

TEST(create_lengths)
{
	struct spindle_group_create c = { .members = 1 };
	size_t size = sizeof(c);
	int fd = st_bound(0);

	st_name(c.name);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, 0, 0), EINVAL);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, 4, 0), EINVAL);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, size - 1, 0), EINVAL);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, size + 1, 1), E2BIG);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, size + 64, 1), E2BIG);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, getpagesize() + 1, 0), E2BIG);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, 65536, 0), E2BIG);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, (void *)8, size), EFAULT);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
	CHECK_OK(set_long(fd, SPINDLE_GROUP_CREATE, &c, size, size + 100, 0));
	CHECK(!strcmp(st_info(fd).name, c.name));
}

TEST(join_lengths)
{
	struct spindle_group_join j = { 0 };
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };
	size_t size = sizeof(j);
	int fd = st_bound(0);

	st_open_but(&g, &c, 1);
	strcpy(j.name, g.name);
	st_contact(&j, st_addr(0));
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_JOIN, &j, size, 0, 0), EINVAL);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_JOIN, &j, size, size - 1, 0), EINVAL);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_JOIN, &j, size, size + 8, 1), E2BIG);
	CHECK_ERR(set_long(fd, SPINDLE_GROUP_JOIN, &j, size, getpagesize() + 1, 0), E2BIG);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, (void *)8, size), EFAULT);
	CHECK_OK(set_long(fd, SPINDLE_GROUP_JOIN, &j, size, size + 8, 0));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
}

/* Both options with one field wrong; @want for each. */
static void try_create(const struct spindle_group_create *change, size_t off, size_t len, int want)
{
	struct spindle_group_create c = { .members = 2 };
	int fd = st_bound(0);

	st_name(c.name);
	memcpy((char *)&c + off, (const char *)change + off, len);
	expect_create(fd, &c, want);
	close(fd);
}

#define TRY_CREATE(field, value, want)						\
	do {									\
		struct spindle_group_create __c = { .field = value };		\
										\
		try_create(&__c, offsetof(struct spindle_group_create, field),	\
			   sizeof(__c.field), want);				\
	} while (0)

static void try_join(const struct spindle_group_join *change, size_t off, size_t len, int want)
{
	struct st_config c = { .members = 2 };
	struct spindle_group_join j = { 0 };
	struct st_group g = { 0 };
	int fd = st_bound(1), err;

	st_open_but(&g, &c, 1);
	strcpy(j.name, g.name);
	st_contact(&j, st_addr(0));
	memcpy((char *)&j + off, (const char *)change + off, len);
	err = st_join(fd, &j) ? errno : 0;
	if (err != want)
		FAIL("join: %s, not %s", st_err(err), st_err(want));
	close(fd);
	close(g.fd[0]);
}

#define TRY_JOIN(field, value, want)						\
	do {									\
		struct spindle_group_join __j = { .field = value };		\
										\
		try_join(&__j, offsetof(struct spindle_group_join, field),	\
			 sizeof(__j.field), want);				\
	} while (0)

TEST(create_reserved_bits)
{
	struct spindle_group_create c = { 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c.__resv); i++) {
		memset(c.__resv, 0, sizeof(c.__resv));
		c.__resv[i] = 1U << (4 * i);
		try_create(&c, offsetof(struct spindle_group_create, __resv),
			   sizeof(c.__resv), EINVAL);
	}
	TRY_CREATE(flags, 2, EINVAL);
	TRY_CREATE(flags, 1U << 31, EINVAL);
	TRY_CREATE(flags, SPINDLE_F_RECEIVER, 0);
	TRY_CREATE(flags, SPINDLE_F_NO_MAJORITY, 0);
	TRY_CREATE(flags, SPINDLE_F_NO_MAJORITY | SPINDLE_F_RECEIVER, 0);
	TRY_CREATE(optimise_off, SPINDLE_OFF_ALL, 0);
	TRY_CREATE(optimise_off, SPINDLE_OFF_ALL + 1, EINVAL);
	TRY_CREATE(optimise_off, 1U << 31 | SPINDLE_OFF_NULL, EINVAL);
}

TEST(join_reserved_bits)
{
	struct spindle_group_join j = { 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(j.__resv); i++) {
		memset(j.__resv, 0, sizeof(j.__resv));
		j.__resv[i] = 1;
		try_join(&j, offsetof(struct spindle_group_join, __resv),
			 sizeof(j.__resv), EINVAL);
	}
	TRY_JOIN(flags, 2, EINVAL);
	TRY_JOIN(flags, 1U << 31, EINVAL);
	/* the group's, not the member's */
	TRY_JOIN(flags, SPINDLE_F_NO_MAJORITY, EINVAL);
	TRY_JOIN(flags, SPINDLE_F_RECEIVER, 0);
}

static const char *const bad_names[] = {
	"", " ", "a b", "/", "a/b", "/a", "a/", ".", "..", "a\n", "\t", "a\x7f", "\x01", "a\x80",
};

TEST(create_bad_names)
{
	struct spindle_group_create c = { .members = 2 };
	int fd = st_bound(0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad_names); i++) {
		memset(c.name, 0, sizeof(c.name));
		strcpy(c.name, bad_names[i]);
		if (!st_create(fd, &c))
			FAIL("name \"%s\" (number %u) was taken", bad_names[i], i);
		CHECK_EQ(errno, EINVAL);
	}
	memset(c.name, 'x', sizeof(c.name));
	CHECK_ERR(st_create(fd, &c), EINVAL);
	c.name[sizeof(c.name) - 1] = 0;
	CHECK_OK(st_create(fd, &c));
	CHECK(!strcmp(st_info(fd).name, c.name));
}

TEST(create_good_names)
{
	static const char *const names[] = {
		"a", "...", ".hidden", "50%", "a:b,c=d", "\"quoted\"", "~", "-",
	};
	struct spindle_group_create c = { .members = 2 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		int fd = st_bound(0);

		memset(c.name, 0, sizeof(c.name));
		strcpy(c.name, names[i]);
		if (st_create(fd, &c))
			FAIL("name \"%s\": %s", names[i], st_err(errno));
		close(fd);
	}
}

TEST(join_bad_names)
{
	struct spindle_group_join j = { 0 };
	int fd = st_bound(0);
	unsigned int i;

	st_contact(&j, st_addr(0));
	for (i = 0; i < ARRAY_SIZE(bad_names); i++) {
		memset(j.name, 0, sizeof(j.name));
		strcpy(j.name, bad_names[i]);
		CHECK_ERR(st_join(fd, &j), EINVAL);
	}
	memset(j.name, 'x', sizeof(j.name));
	CHECK_ERR(st_join(fd, &j), EINVAL);
}

TEST(create_ranges)
{
	TRY_CREATE(members, 0, ERANGE);
	TRY_CREATE(members, SPINDLE_MAX_MEMBERS, 0);
	TRY_CREATE(members, SPINDLE_MAX_MEMBERS + 1, ERANGE);
	TRY_CREATE(members, ~0U, ERANGE);
	TRY_CREATE(senders, 2, 0);
	TRY_CREATE(senders, SPINDLE_MAX_MEMBERS + 1, ERANGE);
	TRY_CREATE(max_members, 1, ERANGE);
	TRY_CREATE(max_members, 2, 0);
	TRY_CREATE(max_members, SPINDLE_MAX_MEMBERS, 0);
	TRY_CREATE(max_members, SPINDLE_MAX_MEMBERS + 1, ERANGE);
	TRY_CREATE(senders, ~0U, ERANGE);
	TRY_CREATE(window, 1, ERANGE);
	TRY_CREATE(window, SPINDLE_MIN_WINDOW / 2, ERANGE);
	TRY_CREATE(window, SPINDLE_MIN_WINDOW, 0);
	TRY_CREATE(window, SPINDLE_MIN_WINDOW + 1, ERANGE);
	TRY_CREATE(window, 3 * SPINDLE_MIN_WINDOW, ERANGE);
	TRY_CREATE(window, SPINDLE_MAX_WINDOW * 2, ERANGE);
	TRY_CREATE(window, ~0U, ERANGE);
	TRY_CREATE(max_msg, 1, 0);
	TRY_CREATE(max_msg, (1 << 20) + 1, ERANGE);
	TRY_CREATE(max_msg, ~0U, ERANGE);
	TRY_CREATE(depth, 1, ERANGE);
	TRY_CREATE(depth, SPINDLE_MIN_DEPTH / 2, ERANGE);
	TRY_CREATE(depth, SPINDLE_MIN_DEPTH, 0);
	TRY_CREATE(depth, SPINDLE_MIN_DEPTH + 1, ERANGE);
	TRY_CREATE(depth, SPINDLE_MAX_DEPTH, 0);
	TRY_CREATE(depth, SPINDLE_MAX_DEPTH * 2, ERANGE);
	TRY_CREATE(depth, ~0U, ERANGE);
}

TEST(create_largest_window)
{
	struct st_config c = { .members = 1, .window = SPINDLE_MAX_WINDOW,
			       .depth = SPINDLE_MAX_DEPTH };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_say(g.fd[0], "large");
	st_expect(g.fd[0], "large");
}

TEST(create_defaults)
{
	struct spindle_group_create c = { .members = 2 };
	struct spindle_group_info info;
	int fd = st_bound(0);

	st_name(c.name);
	CHECK_OK(st_create(fd, &c));
	info = st_info(fd);
	CHECK(!strcmp(info.name, c.name));
	CHECK_EQ(info.view, 0);
	CHECK_EQ(info.state, SPINDLE_STATE_FORMING);
	CHECK_EQ(info.error, 0);
	CHECK_EQ(info.rank, ~0U);
	CHECK_EQ(info.members, 2);
	CHECK_EQ(info.window, 1 << 20);
	CHECK_EQ(info.max_msg, 16 << 10);
	CHECK_EQ(info.depth, 1024);
	CHECK_EQ(info.sent, 0);
	CHECK_EQ(info.received, 0);
}

/* Where many send, less for each. */
TEST(create_default_window)
{
	static const struct {
		unsigned int members, senders, window;
	} cases[] = {
		{ 1, 0, 1 << 20 }, { 4, 0, 1 << 20 }, { 5, 0, 512 << 10 }, { 8, 8, 512 << 10 },
		{ 9, 0, 256 << 10 }, { 64, 0, 256 << 10 }, { 64, 2, 1 << 20 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spindle_group_create c = { .members = cases[i].members,
						  .senders = cases[i].senders };
		int fd = st_bound(0);

		st_name(c.name);
		CHECK_OK(st_create(fd, &c));
		CHECK_EQ(st_info(fd).window, cases[i].window);
		close(fd);
	}
}

TEST(create_small_window_default_message)
{
	struct spindle_group_create c = { .members = 2, .window = 8192 };
	int fd = st_bound(0);

	st_name(c.name);
	CHECK_OK(st_create(fd, &c));
	CHECK_EQ(st_info(fd).window, 8192);
	CHECK_EQ(st_info(fd).max_msg, 8192);
}

TEST(create_receiver_alone)
{
	struct spindle_group_create c = { .members = 1, .flags = SPINDLE_F_RECEIVER };
	int fd = st_bound(0);

	st_name(c.name);
	CHECK_ERR(st_create(fd, &c), EINVAL);
	c.flags = 0;
	CHECK_OK(st_create(fd, &c));
}

TEST(create_name_taken)
{
	struct spindle_group_create c = { .members = 2 };
	int a = st_bound(0), b = st_bound(0), other = st_bound(1);

	st_name(c.name);
	CHECK_OK(st_create(a, &c));
	CHECK_ERR(st_create(b, &c), EEXIST);
	CHECK_EQ(st_info(b).state, SPINDLE_STATE_NONE);
	/* another node's names are its own */
	CHECK_OK(st_create(other, &c));
	close(a);
	WAIT_UNTIL(!AGAIN(st_create(b, &c), EEXIST), ST_SOON);
}

TEST(info_outside_a_group)
{
	static const struct spindle_group_info zero;
	struct spindle_group_info info = st_info(st_socket(0));

	CHECK_EQ(info.state, SPINDLE_STATE_NONE);
	CHECK_EQ(info.view, 0);
	CHECK_EQ(info.error, 0);
	CHECK(!memcmp(info.name, zero.name, sizeof(zero.name)));
	CHECK(!memcmp(info.__resv, zero.__resv, sizeof(zero.__resv)));
}

TEST(info_of_a_group)
{
	struct st_config c = { .members = 3, .nodes = 2, .senders = 2, .window = 65536,
			       .max_msg = 1000, .depth = 64 };
	struct spindle_group_info info;
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	st_say(g.fd[0], "one");
	for (i = 0; i < 3; i++) {
		st_expect(g.fd[i], "one");
		info = st_info(g.fd[i]);
		CHECK(!strcmp(info.name, g.name));
		CHECK(info.view >= 1);
		CHECK_EQ(info.view, st_info(g.fd[0]).view);
		CHECK_EQ(info.state, SPINDLE_STATE_ACTIVE);
		CHECK_EQ(info.error, 0);
		CHECK_EQ(info.rank, i);
		CHECK_EQ(info.members, 3);
		CHECK_EQ(info.senders, 2);
		CHECK_EQ(info.window, 65536);
		CHECK_EQ(info.max_msg, 1000);
		CHECK_EQ(info.depth, 64);
		CHECK_EQ(info.sent, i ? 0 : 1);
		CHECK_EQ(info.received, 1);
	}
}

TEST(info_short_and_long_buffers)
{
	struct spindle_group_info whole, part;
	socklen_t len = 72;
	char big[1000];
	int fd = st_alone();

	whole = st_info(fd);
	memset(&part, 0x55, sizeof(part));
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &part, &len));
	CHECK_EQ(len, 72);
	CHECK(!memcmp(&part, &whole, 72));
	CHECK_EQ(((unsigned char *)&part)[72], 0x55);
	len = 0;
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &part, &len));
	CHECK_EQ(len, 0);
	memset(big, 0x55, sizeof(big));
	len = sizeof(big);
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, big, &len));
	CHECK_EQ(len, sizeof(whole));
	CHECK(!memcmp(big, &whole, sizeof(whole)));
	CHECK_EQ(big[sizeof(whole)], 0x55);
	len = -1;
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, big, &len), EINVAL);
	len = sizeof(big);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, (void *)8, &len), EFAULT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, big, (void *)8), EFAULT);
}

TEST(view_option)
{
	struct st_config c = { .members = 3, .nodes = 2 };
	struct sockaddr_spindle view[4];
	struct st_group g = { 0 };
	unsigned int i, j;
	socklen_t len;
	int fd;

	len = sizeof(view);
	CHECK_ERR(getsockopt(st_bound(0), SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len), ENOTCONN);
	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		memset(view, 0x55, sizeof(view));
		len = sizeof(view);
		CHECK_OK(getsockopt(g.fd[i], SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len));
		CHECK_EQ(len, 3 * sizeof(view[0]));
		for (j = 0; j < 3; j++) {
			struct in6_addr want = st_mapped(st_addr(j % 2));

			CHECK_EQ(view[j].ss_family, st_family());
			CHECK_EQ(view[j].ss_port, 0);
			CHECK_EQ(view[j].ss_rank, j);
			CHECK(!memcmp(&view[j].ss_addr, &want, sizeof(want)));
		}
		CHECK_EQ(view[3].ss_family, 0x5555);
	}
	fd = g.fd[1];
	len = 3 * sizeof(view[0]) - 1;
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len), ERANGE);
	CHECK_EQ(len, 3 * sizeof(view[0]));
	len = 0;
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, NULL, &len), ERANGE);
	CHECK_EQ(len, 3 * sizeof(view[0]));
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len));
}

TEST(view_option_while_forming)
{
	struct st_config c = { .members = 2 };
	struct sockaddr_spindle view[4];
	socklen_t len = sizeof(view);
	struct st_group g = { 0 };

	st_open_but(&g, &c, 1);
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len), ENOTCONN);
}

/* Joining */

static struct spindle_group_join join_of(const char *name, const char *contact)
{
	struct spindle_group_join j = { 0 };

	snprintf(j.name, sizeof(j.name), "%s", name);
	st_contact(&j, contact);
	return j;
}

TEST(join_contact_families)
{
	struct st_config c = { .members = 4 };
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = st_mapped(st_addr(0)),
	};
	struct sockaddr_spindle ss = {
		.ss_family = st_family(),
		.ss_addr = st_mapped(st_addr(0)),
	};
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int fds[3];

	st_open_but(&g, &c, 3);
	j = join_of(g.name, st_addr(0));
	fds[0] = st_bound(1);
	CHECK_OK(st_join(fds[0], &j));
	memcpy(j.contact, &sin6, sizeof(sin6));
	fds[1] = st_bound(2);
	CHECK_OK(st_join(fds[1], &j));
	memset(j.contact, 0, sizeof(j.contact));
	memcpy(j.contact, &ss, sizeof(ss));
	fds[2] = st_bound(3);
	CHECK_OK(st_join(fds[2], &j));
	st_wait_state(g.fd[0], SPINDLE_STATE_ACTIVE);
}

TEST(join_bad_contact)
{
	struct sockaddr_in sin = st_in(st_addr(0));
	struct spindle_group_join j;
	int fd = st_bound(0);

	j = join_of("nobody-has-it", st_addr(0));
	memset(j.contact, 0, sizeof(j.contact));
	CHECK_ERR(st_join(fd, &j), EAFNOSUPPORT);
	j.contact[0] = AF_UNIX;
	CHECK_ERR(st_join(fd, &j), EAFNOSUPPORT);
	memset(j.contact, 0xff, sizeof(j.contact));
	CHECK_ERR(st_join(fd, &j), EAFNOSUPPORT);
	memset(j.contact, 0, sizeof(j.contact));
	sin.sin_port = htons(7);
	memcpy(j.contact, &sin, sizeof(sin));
	CHECK_ERR(st_join(fd, &j), EINVAL);
	j = join_of("nobody-has-it", "0.0.0.0");
	CHECK_ERR(st_join(fd, &j), EINVAL);
	j = join_of("nobody-has-it", "224.0.0.1");
	CHECK_ERR(st_join(fd, &j), EINVAL);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
}

TEST(join_unknown_group)
{
	struct spindle_group_join j = join_of("nobody-has-it", st_addr(0));
	int fd = st_bound(0), far = st_bound(1);

	CHECK_ERR(st_join(fd, &j), ENOENT);
	CHECK_ERR(st_join(far, &j), ENOENT);
	CHECK_EQ(st_info(far).state, SPINDLE_STATE_NONE);
	/* and the socket may try again */
	CHECK_ERR(st_join(far, &j), ENOENT);
}

TEST(join_no_listener)
{
	struct spindle_group_join j = join_of("nobody-has-it", st_addr(9));

	CHECK_ERR(st_join(st_bound(0), &j), ECONNREFUSED);
}

/* An address of the same net that nobody has. */
static struct spindle_group_join join_nowhere(void)
{
	struct in_addr in = st_in(st_addr(0)).sin_addr;
	char text[INET_ADDRSTRLEN];

	in.s_addr = htonl((ntohl(in.s_addr) & ~0xffU) | 251);
	return join_of("nobody-has-it", inet_ntop(AF_INET, &in, text, sizeof(text)));
}

TEST(join_unreachable)
{
	struct spindle_group_join j = join_nowhere();

	if (!st_join(st_bound(0), &j))
		FAIL("joined at an address that nobody has");
	if (errno != EHOSTUNREACH && errno != ETIMEDOUT)
		FAIL("%s, not EHOSTUNREACH or ETIMEDOUT", st_err(errno));
}

TEST(join_no_route)
{
	struct spindle_group_join j = join_of("nobody-has-it", "192.0.2.9");

	if (!st_join(st_bound(0), &j))
		FAIL("joined at an address without a route");
	if (errno != EHOSTUNREACH && errno != ENETUNREACH && errno != ETIMEDOUT)
		FAIL("%s, not EHOSTUNREACH", st_err(errno));
}

/*
 * A call that waits @secs at least. The kernel counts in ticks: on a host that
 * is late with them, and then brings many at once, it may be less, but not
 * each time.
 */
#define TAKES(call, secs)							\
	do {									\
		double __start;							\
		int __tries = 0;						\
										\
		do {								\
			if (__tries++ == 10)					\
				FAIL("takes less than %g s: %s", secs, #call);	\
			__start = st_now();					\
			call;							\
		} while (st_now() - __start < (secs));				\
	} while (0)

TEST(join_timeout)
{
	struct spindle_group_join j = join_nowhere();
	int fd = st_bound(0);

	st_timeout(fd, SO_SNDTIMEO, 150);
	TAKES(CHECK_ERR(st_join(fd, &j), ETIMEDOUT), 0.14);
	/* the socket is as it was */
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
	j = join_of("nobody-has-it", st_addr(0));
	st_timeout(fd, SO_SNDTIMEO, st_bound_ms(ST_SOON));
	CHECK_ERR(st_join(fd, &j), ENOENT);
}

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void send_signal(pid_t sleeper, void *arg)
{
	(void)arg;
	CHECK_OK(tgkill(getpid(), sleeper, SIGUSR1));
}

/* Let a signal come when the next call sleeps. */
static void signal_in_call(int flags)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = flags };

	CHECK_OK(sigaction(SIGUSR1, &act, NULL));
	st_in_call(send_signal, NULL);
}

/* A child that makes a call is killed as soon as it sleeps there. */
static void kill_in_call(void (*call)(int fd), int fd)
{
	int told[2], status;
	char byte = 0;
	pid_t pid;

	CHECK_OK(pipe(told));
	pid = CHECK_OK(fork());
	if (!pid) {
		CHECK_EQ(write(told[1], &byte, 1), 1);
		call(fd);
		_exit(0);
	}
	CHECK_EQ(read(told[0], &byte, 1), 1);
	WAIT_UNTIL(st_sleeps(pid), ST_SOON);
	CHECK_OK(kill(pid, SIGTERM));
	CHECK_OK(waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST(join_interrupted)
{
	struct spindle_group_join j = join_nowhere();
	int fd = st_bound(0);

	signal_in_call(0);
	/* on a host without a processor to spare the network's patience may end first */
	do
		CHECK(st_join(fd, &j) < 0);
	while (!signals && (errno == EHOSTUNREACH || errno == ETIMEDOUT));
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(signals, 1);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
}

static void call_join(int fd)
{
	struct spindle_group_join j = join_nowhere();

	for (;;)
		st_join(fd, &j);
}

TEST(join_killed)
{
	kill_in_call(call_join, st_bound(0));
}

TEST(join_other_configuration)
{
	struct st_config c = { .members = 3, .senders = 2, .window = 65536, .max_msg = 1000,
			       .depth = 64 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int fd = st_bound(1);

	st_open_but(&g, &c, 2);
	j = join_of(g.name, st_addr(0));
	j.members = 4;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.members = 3;
	j.senders = 3;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.senders = 2;
	j.window = 131072;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.window = 65536;
	j.max_msg = 999;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.max_msg = 1000;
	j.depth = 128;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.depth = 64;
	CHECK_OK(st_join(fd, &j));
	CHECK_EQ(st_info(fd).window, 65536);
}

TEST(join_other_configuration_on_the_same_node)
{
	struct st_config c = { .members = 3, .window = 65536 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int fd = st_bound(0);

	st_open_but(&g, &c, 2);
	j = join_of(g.name, st_addr(0));
	j.window = 131072;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.window = 0;
	CHECK_OK(st_join(fd, &j));
}

TEST(join_full_group)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_join j;
	struct st_group g = { 0 };

	st_open(&g, &c);
	j = join_of(g.name, st_addr(0));
	CHECK_ERR(st_join(st_bound(0), &j), EUSERS);
	CHECK_ERR(st_join(st_bound(1), &j), EUSERS);
	CHECK_ERR(st_join(st_bound(2), &j), EUSERS);
}

TEST(join_failed_group)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_join j;
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_fail_second(&g, g.fd[1]);
	j = join_of(g.name, st_addr(1));
	CHECK_ERR(st_join(st_bound(1), &j), EHOSTDOWN);
	CHECK_ERR(st_join(st_bound(2), &j), EHOSTDOWN);
}

/* Who has gone leaves a place for another one, and not for two. */
TEST(join_group_that_one_has_left)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct spindle_group_join j;
	struct st_group g = { 0 };

	st_open(&g, &c);
	close(g.fd[2]);
	st_wait_members(g.fd[0], 2);
	st_wait_members(g.fd[1], 2);
	j = join_of(g.name, st_addr(0));
	CHECK_OK(st_join(st_bound(3), &j));
	CHECK_ERR(st_join(st_bound(0), &j), EUSERS);
	CHECK_ERR(st_join(st_bound(1), &j), EUSERS);
	CHECK_ERR(st_join(st_bound(2), &j), EUSERS);
}

TEST(join_by_any_member_node)
{
	struct st_config c = { .members = 4, .nodes = 2 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int third, fourth;

	/* members on nodes 0 and 1; the third asks node 1, the fourth itself */
	st_open_but(&g, &c, 2);
	j = join_of(g.name, st_addr(1));
	third = st_bound(2);
	CHECK_OK(st_join(third, &j));
	j = join_of(g.name, st_addr(2));
	fourth = st_bound(2);
	CHECK_OK(st_join(fourth, &j));
	st_wait_state(fourth, SPINDLE_STATE_ACTIVE);
	CHECK_EQ(st_info(third).rank, 2);
	CHECK_EQ(st_info(fourth).rank, 3);
}

TEST(member_gone_while_forming)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int fd, last;

	/* one that goes before the first view leaves its place to another */
	st_open_but(&g, &c, 1);
	j = join_of(g.name, st_addr(0));
	close(g.fd[1]);
	fd = st_bound(3);
	CHECK_OK(st_join(fd, &j));
	last = st_bound(4);
	WAIT_UNTIL(!AGAIN(st_join(last, &j), EUSERS), ST_SOON);
	st_wait_state(g.fd[0], SPINDLE_STATE_ACTIVE);
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	st_say(fd, "hello");
	st_expect(g.fd[0], "hello");
	st_expect(last, "hello");
}

/* Sending */

TEST(send_outside_a_group)
{
	int fd = st_socket(0);

	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	CHECK_ERR(recv(fd, &m, 1, MSG_DONTWAIT), ENOTCONN);
	CHECK_ERR(shutdown(fd, SHUT_WR), ENOTCONN);
	CHECK_OK(st_bind(fd, st_addr(0)));
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	CHECK_ERR(recv(fd, &m, 1, MSG_DONTWAIT), ENOTCONN);
	CHECK_ERR(shutdown(fd, SHUT_WR), ENOTCONN);
}

TEST(send_with_a_name)
{
	struct sockaddr_in sin = st_in(st_addr(0));
	int fd = st_alone();

	CHECK_ERR(sendto(fd, "x", 1, 0, (struct sockaddr *)&sin, sizeof(sin)), EISCONN);
	st_say(fd, "y");
	st_expect(fd, "y");
}

TEST(send_sizes)
{
	struct st_config c = { .members = 1, .window = 65536, .max_msg = 10000 };
	static const unsigned int sizes[] = { 0, 1, 7, 63, 64, 65, 4095, 4096, 4097, 9999, 10000 };
	struct st_group g = { 0 };
	char buf[10001];
	unsigned int i, j;

	st_open(&g, &c);
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = i * 7 + i / 256;
	CHECK_ERR(send(g.fd[0], buf, 10001, 0), EMSGSIZE);
	CHECK_ERR(send(g.fd[0], buf, 10001, MSG_DONTWAIT), EMSGSIZE);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		CHECK_EQ(CHECK_OK(send(g.fd[0], buf, sizes[i], 0)), sizes[i]);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), sizes[i]);
		CHECK(m.flags & MSG_EOR);
		for (j = 0; j < sizes[i]; j++)
			if (m.data[j] != buf[j])
				BROKEN("byte %u of %u", j, sizes[i]);
	}
}

TEST(send_huge_lengths)
{
	struct iovec iov[4];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 4 };
	int fd = st_alone();
	char *buf = malloc(1 << 20);
	unsigned int i;

	for (i = 0; i < 4; i++) {
		iov[i].iov_base = buf;
		iov[i].iov_len = 1 << 20;
	}
	CHECK_ERR(send(fd, buf, 1 << 20, 0), EMSGSIZE);
	CHECK_ERR(sendmsg(fd, &msg, 0), EMSGSIZE);
	CHECK_EQ(st_info(fd).sent, 0);
}

TEST(send_by_who_may_not)
{
	struct st_config c = { .members = 3, .senders = 1 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_ERR(send(g.fd[1], "x", 1, 0), EACCES);
	CHECK_ERR(send(g.fd[2], "x", 1, MSG_DONTWAIT), EACCES);
	st_say(g.fd[0], "mine");
	st_expect(g.fd[1], "mine");
	st_expect(g.fd[2], "mine");
}

TEST(send_by_a_receiver)
{
	struct st_config c = { .members = 3, .receivers = 1 << 0, .senders = 1 };
	struct st_group g = { 0 };

	/* the creator only listens: the sender is the first that does not */
	st_open(&g, &c);
	CHECK_EQ(st_info(g.fd[0]).senders, 1);
	CHECK_ERR(send(g.fd[0], "x", 1, 0), EACCES);
	CHECK_ERR(send(g.fd[2], "x", 1, 0), EACCES);
	st_say(g.fd[1], "mine");
	st_expect(g.fd[0], "mine");
}

TEST(send_flags)
{
	static const int bad[] = {
		MSG_OOB, MSG_MORE, MSG_DONTROUTE, MSG_CONFIRM, MSG_ERRQUEUE, MSG_PEEK,
		MSG_TRUNC, MSG_WAITALL, MSG_SYN, MSG_RST, 0x4000000, 0x20000000, 0x200000,
	};
	int fd = st_alone();
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_ERR(send(fd, "x", 1, bad[i]), EOPNOTSUPP);
	CHECK_EQ(st_info(fd).sent, 0);
	CHECK_OK(send(fd, "a", 1, MSG_DONTWAIT));
	CHECK_OK(send(fd, "b", 1, MSG_NOSIGNAL));
	CHECK_OK(send(fd, "c", 1, MSG_EOR));
	CHECK_OK(send(fd, "d", 1, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR));
	st_expect(fd, "a");
	st_expect(fd, "b");
	st_expect(fd, "c");
	st_expect(fd, "d");
}

TEST(send_bad_memory)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[2] = { { "good", 4 }, { (void *)8, 100 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int fd = st_alone();

	CHECK(page != MAP_FAILED);
	CHECK_OK(munmap(page + 4096, 4096));
	CHECK_ERR(send(fd, (void *)8, 4, 0), EFAULT);
	CHECK_ERR(sendmsg(fd, &msg, 0), EFAULT);
	CHECK_ERR(send(fd, page + 4000, 200, 0), EFAULT);
	CHECK_EQ(st_info(fd).sent, 0);
	st_say(fd, "whole");
	st_expect(fd, "whole");
	CHECK_EQ(st_info(fd).sent, 1);
}

TEST(send_after_shutdown)
{
	int fd = st_alone(), status;
	pid_t pid;

	st_say(fd, "last");
	CHECK_OK(shutdown(fd, SHUT_WR));
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT), EPIPE);
	pid = CHECK_OK(fork());
	if (!pid) {
		send(fd, "x", 1, 0);
		_exit(0);
	}
	CHECK_OK(waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	st_expect(fd, "last");
	st_expect_end(fd);
}

TEST(gather_and_scatter)
{
	struct iovec out[3] = { { "to", 2 }, { "", 0 }, { "gether", 6 } };
	char a[3], b[20];
	struct iovec in[2] = { { a, 3 }, { b, 20 } };
	int fd = st_alone();

	CHECK_EQ(writev(fd, out, 3), 8);
	CHECK_EQ(readv(fd, in, 2), 8);
	CHECK_INTACT(!memcmp(a, "tog", 3) && !memcmp(b, "ether", 5));
	CHECK_EQ(write(fd, "plain", 5), 5);
	CHECK_EQ(read(fd, b, sizeof(b)), 5);
	CHECK_INTACT(!memcmp(b, "plain", 5));
}

TEST(many_at_once)
{
	struct mmsghdr out[8], in[8];
	struct iovec iov[8], got[8];
	char text[8][4], buf[8][16];
	int fd = st_alone(), i, n, done;

	memset(out, 0, sizeof(out));
	memset(in, 0, sizeof(in));
	for (i = 0; i < 8; i++) {
		snprintf(text[i], sizeof(text[i]), "m%d", i);
		iov[i] = (struct iovec){ text[i], 2 };
		got[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
		out[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
		in[i].msg_hdr = (struct msghdr){ .msg_iov = &got[i], .msg_iovlen = 1 };
	}
	CHECK_EQ(sendmmsg(fd, out, 8, 0), 8);
	for (done = 0; done < 8; done += n) {
		n = CHECK_OK(recvmmsg(fd, in + done, 8 - done, MSG_WAITFORONE, NULL));
		CHECK(n > 0);
	}
	for (i = 0; i < 8; i++) {
		CHECK_SAME(in[i].msg_len, 2);
		CHECK(in[i].msg_hdr.msg_flags & MSG_EOR);
		CHECK_INTACT(!memcmp(buf[i], text[i], 2));
	}
}

/* Receiving */

TEST(zero_length_messages)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	CHECK_EQ(CHECK_OK(send(g.fd[0], "", 0, 0)), 0);
	CHECK_EQ(CHECK_OK(send(g.fd[0], NULL, 0, 0)), 0);
	st_say(g.fd[0], "after");
	for (i = 0; i < 2; i++) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[i], &m, 0)), 0);
		CHECK(m.flags & MSG_EOR);
		CHECK_EQ(m.from.ss_rank, 0);
		CHECK_SAME(CHECK_OK(st_recv(g.fd[i], &m, 0)), 0);
		CHECK(m.flags & MSG_EOR);
		st_expect(g.fd[i], "after");
	}
	CHECK_EQ(st_info(g.fd[1]).received, 3);
}

TEST(recv_truncated)
{
	int fd = st_alone();
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[5];

	iov = (struct iovec){ buf, 5 };
	st_say(fd, "0123456789");
	st_say(fd, "second");
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, 0)), 5);
	CHECK(msg.msg_flags & MSG_TRUNC);
	CHECK(msg.msg_flags & MSG_EOR);
	CHECK_INTACT(!memcmp(buf, "01234", 5));
	/* the rest is lost */
	iov = (struct iovec){ buf, 3 };
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, MSG_TRUNC)), 6);
	CHECK(msg.msg_flags & MSG_TRUNC);
	CHECK_INTACT(!memcmp(buf, "sec", 3));
	st_expect_none(fd);
}

TEST(recv_not_truncated)
{
	int fd = st_alone();
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[5];

	iov = (struct iovec){ buf, 5 };
	st_say(fd, "01234");
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, MSG_TRUNC)), 5);
	CHECK_EQ(msg.msg_flags & MSG_TRUNC, 0);
	CHECK(msg.msg_flags & MSG_EOR);
}

TEST(recv_into_nothing)
{
	int fd = st_alone();

	st_say(fd, "gone");
	st_say(fd, "next");
	CHECK_EQ(recv(fd, NULL, 0, 0), 0);
	st_expect(fd, "next");
}

TEST(recv_peek)
{
	int fd = st_alone();
	char buf[16];

	st_say(fd, "peeked");
	CHECK_OK(st_recv(fd, &m, MSG_PEEK));
	CHECK_EQ(m.len, 6);
	CHECK(m.flags & MSG_EOR);
	CHECK_EQ(m.fromlen, sizeof(m.from));
	CHECK_EQ(recv(fd, buf, 2, MSG_PEEK | MSG_TRUNC), 6);
	CHECK_EQ(recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC), 6);
	CHECK_EQ(st_info(fd).received, 0);
	st_expect(fd, "peeked");
	CHECK_EQ(st_info(fd).received, 1);
	CHECK_ERR(recv(fd, buf, 2, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
}

TEST(recv_nonblocking)
{
	int fd = st_alone();
	char buf[16];

	CHECK_ERR(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_ERR(recv(fd, buf, sizeof(buf), 0), EAGAIN);
	CHECK_ERR(read(fd, buf, sizeof(buf)), EAGAIN);
}

TEST(recv_flags)
{
	int fd = st_alone();
	char buf[16];

	st_say(fd, "one");
	CHECK_ERR(recv(fd, buf, sizeof(buf), MSG_OOB), EOPNOTSUPP);
	CHECK_ERR(recv(fd, buf, sizeof(buf), MSG_ERRQUEUE), EOPNOTSUPP);
	/* one message a call, whatever is asked for */
	CHECK_EQ(recv(fd, buf, sizeof(buf), MSG_WAITALL), 3);
}

TEST(recv_bad_memory)
{
	int fd = st_alone();

	st_say(fd, "first");
	WAIT_UNTIL(st_events(fd) & POLLIN, ST_SOON);
	CHECK_ERR(recv(fd, (void *)8, 5, 0), EFAULT);
}

TEST(recv_timeout)
{
	int fd = st_alone();
	char buf[8];

	st_timeout(fd, SO_RCVTIMEO, 120);
	TAKES(CHECK_ERR(recv(fd, buf, sizeof(buf), 0), EAGAIN), 0.11);
}

TEST(recv_sender)
{
	struct st_config c = { .members = 3, .nodes = 2 };
	struct st_group g = { 0 };
	unsigned int i, j;

	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		struct in6_addr want = st_mapped(st_addr(i % 2));

		st_say(g.fd[i], "from me");
		for (j = 0; j < 3; j++) {
			memset(&m.from, 0x55, sizeof(m.from));
			CHECK_OK(st_recv(g.fd[j], &m, 0));
			CHECK_EQ(m.fromlen, sizeof(m.from));
			CHECK_EQ(m.from.ss_family, st_family());
			CHECK_EQ(m.from.ss_port, 0);
			CHECK_SAME(m.from.ss_rank, i);
			CHECK_EQ(m.from.ss_scope_id, 0);
			CHECK(!memcmp(&m.from.ss_addr, &want, sizeof(want)));
		}
	}
}

TEST(recv_sender_short_buffer)
{
	int fd = st_alone();
	struct {
		struct sockaddr_spindle ss;
		char more[100];
	} name;
	socklen_t len = 8;

	memset(&name, 0x55, sizeof(name));
	st_say(fd, "a");
	CHECK_EQ(recvfrom(fd, m.data, 1, 0, (struct sockaddr *)&name, &len), 1);
	CHECK_EQ(len, sizeof(name.ss));
	CHECK_EQ(name.ss.ss_family, st_family());
	CHECK_EQ(((unsigned char *)&name)[8], 0x55);
	st_say(fd, "b");
	len = sizeof(name);
	CHECK_EQ(recvfrom(fd, m.data, 1, 0, (struct sockaddr *)&name, &len), 1);
	CHECK_EQ(len, sizeof(name.ss));
	CHECK_EQ(name.more[0], 0x55);
}

TEST(message_info)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	int on = 1, off = 0, i, k;
	struct st_group g = { 0 };
	uint64_t last[2] = { 0 };
	uint64_t seq[10];

	st_open(&g, &c);
	for (i = 0; i < 2; i++)
		CHECK_OK(setsockopt(g.fd[i], SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	for (k = 0; k < 10; k++)
		st_say(g.fd[k % 3 == 0], "with info");
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 10; k++) {
			CHECK_OK(st_recv(g.fd[i], &m, 0));
			CHECK(m.has_info);
			CHECK_EQ(m.flags & MSG_CTRUNC, 0);
			CHECK_EQ(m.info.view, st_info(g.fd[i]).view);
			CHECK_EQ(m.info.rank, m.from.ss_rank);
			CHECK_EQ(m.info.flags, 0);
			CHECK_INTACT(!k || m.info.seq > last[i]);
			last[i] = m.info.seq;
			if (i)
				CHECK_SAME(m.info.seq, seq[k]);
			seq[k] = m.info.seq;
		}
	}
	CHECK_OK(setsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_RECVINFO, &off, sizeof(off)));
	st_say(g.fd[0], "without");
	CHECK_OK(st_recv(g.fd[0], &m, 0));
	CHECK(!m.has_info);
}

TEST(message_info_no_room)
{
	struct iovec iov = { m.data, sizeof(m.data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = st_alone(), on = 1;
	char control[8];

	st_say(fd, "off");
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, 0)), 3);
	CHECK_EQ(msg.msg_flags & MSG_CTRUNC, 0);
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	st_say(fd, "none");
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, 0)), 4);
	CHECK(msg.msg_flags & MSG_CTRUNC);
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	st_say(fd, "little");
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, 0)), 6);
	CHECK(msg.msg_flags & MSG_CTRUNC);
}

TEST(lengths_by_ioctl)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	int val = -1, i;

	st_open(&g, &c);
	CHECK_OK(ioctl(g.fd[0], FIONREAD, &val));
	CHECK_EQ(val, 0);
	CHECK_OK(ioctl(g.fd[0], SIOCOUTQ, &val));
	CHECK_EQ(val, 0);
	st_say(g.fd[0], "12345");
	st_say(g.fd[0], "1234567");
	for (i = 0; i < 2; i++) {
		st_wait_events(g.fd[i], POLLIN);
		CHECK_OK(ioctl(g.fd[i], FIONREAD, &val));
		CHECK_EQ(val, 5);
	}
	CHECK_OK(ioctl(g.fd[0], SIOCOUTQ, &val));
	CHECK_EQ(val, 12);
	CHECK_OK(ioctl(g.fd[1], SIOCOUTQ, &val));
	CHECK_EQ(val, 0);
	for (i = 0; i < 2; i++) {
		st_expect(g.fd[i], "12345");
		st_wait_events(g.fd[i], POLLIN);
		CHECK_OK(ioctl(g.fd[i], FIONREAD, &val));
		CHECK_EQ(val, 7);
		st_expect(g.fd[i], "1234567");
		CHECK_OK(ioctl(g.fd[i], FIONREAD, &val));
		CHECK_EQ(val, 0);
	}
	WAIT_UNTIL(!ioctl(g.fd[0], SIOCOUTQ, &val) && !val, ST_SOON);
	CHECK_ERR(ioctl(g.fd[0], FIONREAD, (void *)8), EFAULT);
}

/* Signals */

TEST(recv_interrupted)
{
	int fd = st_alone();
	char buf[8];

	signal_in_call(0);
	CHECK_ERR(recv(fd, buf, sizeof(buf), 0), EINTR);
	CHECK_EQ(signals, 1);
}

static void *say_once_signalled(void *arg)
{
	WAIT_UNTIL(signals, ST_SOON);
	st_say(*(int *)arg, "restarted");
	return NULL;
}

TEST(recv_restarted)
{
	pthread_t thread;
	int fd = st_alone();

	CHECK_EQ(pthread_create(&thread, NULL, say_once_signalled, &fd), 0);
	signal_in_call(SA_RESTART);
	st_expect(fd, "restarted");
	CHECK_EQ(signals, 1);
	pthread_join(thread, NULL);
}

/* As recv(2) has it: a timeout is not restarted, since it would begin again. */
TEST(recv_with_timeout_is_not_restarted)
{
	int fd = st_alone();
	char buf[8];

	/* longer than the test may take */
	st_timeout(fd, SO_RCVTIMEO, st_bound_ms(2 * ST_TEST));
	signal_in_call(SA_RESTART);
	CHECK_ERR(recv(fd, buf, sizeof(buf), 0), EINTR);
	CHECK_EQ(signals, 1);
}

/* Fill the lanes until a send would block; how many messages that took. */
static unsigned int fill(int fd, unsigned int size)
{
	static char buf[20000];
	unsigned int n = 0;

	while (send(fd, buf, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size)
		n++;
	CHECK_EQ(errno, EAGAIN);
	return n;
}

/* Two members, the second never reads: the first can be made to wait. */
static void open_narrow(struct st_group *g)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024,
			       .depth = 16 };

	st_open(g, &c);
}

TEST(send_interrupted)
{
	struct st_group g = { 0 };
	uint64_t sent;

	open_narrow(&g);
	fill(g.fd[0], 1024);
	sent = st_info(g.fd[0]).sent;
	signal_in_call(0);
	CHECK_ERR(send(g.fd[0], &m, 1024, 0), EINTR);
	CHECK_EQ(signals, 1);
	CHECK_EQ(st_info(g.fd[0]).sent, sent);
}

TEST(send_timeout)
{
	struct st_group g = { 0 };

	open_narrow(&g);
	CHECK(fill(g.fd[0], 1024) >= 4);
	st_timeout(g.fd[0], SO_SNDTIMEO, 120);
	TAKES(CHECK_ERR(send(g.fd[0], &m, 1024, 0), EAGAIN), 0.11);
}

static void call_send(int fd)
{
	send(fd, &m, 1024, 0);
}

TEST(send_killed_while_blocked)
{
	struct st_group g = { 0 };

	open_narrow(&g);
	fill(g.fd[0], 1024);
	kill_in_call(call_send, g.fd[0]);
	/* the socket lives on in this process */
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_ACTIVE);
}

/* poll() and epoll */

TEST(poll_while_forming)
{
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };
	char buf[8];

	st_open_but(&g, &c, 1);
	CHECK_EQ(st_events(g.fd[0]), 0);
	CHECK_ERR(send(g.fd[0], "x", 1, MSG_DONTWAIT), EAGAIN);
	CHECK_ERR(recv(g.fd[0], buf, 8, MSG_DONTWAIT), EAGAIN);
	st_timeout(g.fd[0], SO_RCVTIMEO, 50);
	st_timeout(g.fd[0], SO_SNDTIMEO, 50);
	CHECK_ERR(recv(g.fd[0], buf, 8, 0), EAGAIN);
	CHECK_ERR(send(g.fd[0], "x", 1, 0), EAGAIN);
}

TEST(poll_bits)
{
	struct st_config c = { .members = 2, .nodes = 2, .receivers = 1 << 1 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_EQ(st_events(g.fd[0]), POLLOUT | POLLWRNORM);
	st_say(g.fd[0], "x");
	st_wait_events(g.fd[0], POLLIN);
	CHECK_EQ(st_events(g.fd[0]), POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);
	st_wait_events(g.fd[1], POLLIN);
	CHECK_EQ(st_events(g.fd[1]) & (POLLIN | POLLRDNORM | POLLRDHUP | POLLERR),
		 POLLIN | POLLRDNORM);
	st_expect(g.fd[0], "x");
	st_expect(g.fd[1], "x");
	CHECK_EQ(st_events(g.fd[0]) & ~(POLLOUT | POLLWRNORM), 0);
	CHECK_EQ(st_events(g.fd[1]) & (POLLIN | POLLRDHUP | POLLERR), 0);
}

TEST(poll_room)
{
	struct st_group g = { 0 };
	unsigned int n, i;

	/* POLLOUT: a message of max_msg would go */
	open_narrow(&g);
	CHECK(st_events(g.fd[0]) & POLLOUT);
	n = fill(g.fd[0], 1024);
	CHECK_EQ(st_events(g.fd[0]) & (POLLOUT | POLLWRNORM), 0);
	CHECK(st_events(g.fd[1]) & POLLOUT);
	for (i = 0; i < n; i++) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
		CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 1024);
	}
	st_wait_events(g.fd[0], POLLOUT);
	CHECK_EQ(send(g.fd[0], &m, 1024, MSG_DONTWAIT), 1024);
}

TEST(poll_room_for_descriptors)
{
	struct st_group g = { 0 };
	unsigned int n;

	/* messages without a byte take no ring, but a place */
	open_narrow(&g);
	n = fill(g.fd[0], 0);
	CHECK(n >= 15 && n <= 16);
	CHECK_EQ(st_events(g.fd[0]) & POLLOUT, 0);
	while (n--) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 0);
		CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 0);
	}
	st_wait_events(g.fd[0], POLLOUT);
}

TEST(poll_wakes_reader)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	unsigned int i;
	pid_t pid;

	st_open(&g, &c);
	pid = CHECK_OK(fork());
	if (!pid) {
		for (i = 0; i < 50; i++) {
			st_wait_events(g.fd[1], POLLIN);
			st_expect(g.fd[1], "ping");
			st_say(g.fd[1], "pong");
			st_wait_events(g.fd[1], POLLIN);
			st_expect(g.fd[1], "pong");
		}
		_exit(0);
	}
	for (i = 0; i < 50; i++) {
		st_say(g.fd[0], "ping");
		st_wait_events(g.fd[0], POLLIN);
		st_expect(g.fd[0], "ping");
		st_wait_events(g.fd[0], POLLIN);
		st_expect(g.fd[0], "pong");
	}
	st_reap(pid);
}

TEST(epoll_edges)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int fd = st_alone(), ep = CHECK_OK(epoll_create1(0)), i;

	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	for (i = 0; i < 20; i++) {
		st_say(fd, "edge");
		CHECK_EQ(epoll_wait(ep, &ev, 1, st_bound_ms(ST_SOON)), 1);
		CHECK_EQ(ev.events, EPOLLIN);
		st_expect(fd, "edge");
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	}
}

TEST(epoll_edge_of_room)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	int ep = CHECK_OK(epoll_create1(0));
	struct st_group g = { 0 };
	unsigned int n;

	open_narrow(&g);
	n = fill(g.fd[0], 1024);
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, g.fd[0], &ev));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	while (n--) {
		CHECK_OK(st_recv(g.fd[0], &m, 0));
		CHECK_OK(st_recv(g.fd[1], &m, 0));
	}
	CHECK_EQ(epoll_wait(ep, &ev, 1, st_bound_ms(ST_SOON)), 1);
	CHECK(ev.events & EPOLLOUT);
}

TEST(select_works)
{
	struct timeval tv = { st_bound_s(ST_SOON), 0 };
	int fd = st_alone();
	fd_set in, out;

	st_say(fd, "x");
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	CHECK_EQ(select(fd + 1, &in, NULL, NULL, &tv), 1);
	CHECK(FD_ISSET(fd, &in));
	FD_SET(fd, &out);
	CHECK_EQ(select(fd + 1, NULL, &out, NULL, &tv), 1);
}

/* Threads and processes on one socket */

#define THREAD_MESSAGES	400

struct shared {
	int fd;
	unsigned int got[4 * THREAD_MESSAGES];
	unsigned int total;
	unsigned int number;
};

static void *thread_send(void *arg)
{
	struct shared *s = arg;
	uint32_t id = __atomic_fetch_add(&s->number, 1, __ATOMIC_RELAXED);
	unsigned int i;

	for (i = 0; i < THREAD_MESSAGES; i++) {
		uint32_t what = id * THREAD_MESSAGES + i;

		CHECK_EQ(send(s->fd, &what, sizeof(what), 0), sizeof(what));
	}
	return NULL;
}

static void *thread_recv(void *arg)
{
	struct shared *s = arg;
	uint32_t what;
	ssize_t n;

	for (;;) {
		n = CHECK_OK(recv(s->fd, &what, sizeof(what), 0));
		if (!n)
			return NULL;
		CHECK_SAME(n, sizeof(what));
		CHECK_INTACT(what < ARRAY_SIZE(s->got));
		__atomic_fetch_add(&s->got[what], 1, __ATOMIC_RELAXED);
	}
}

TEST(threads_on_one_socket)
{
	struct st_config c = { .members = 1, .window = 4096, .depth = 16 };
	static struct shared s;
	struct st_group g = { 0 };
	pthread_t threads[8];
	unsigned int i;

	st_open(&g, &c);
	s.fd = g.fd[0];
	for (i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, i < 4 ? thread_send : thread_recv, &s),
			 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_OK(shutdown(s.fd, SHUT_WR));
	for (i = 4; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < ARRAY_SIZE(s.got); i++)
		CHECK_SAME(s.got[i], 1);
}

static void *thread_say(void *arg)
{
	st_say(*(int *)arg, "from a thread");
	return NULL;
}

TEST(blocked_while_forming)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	pthread_t thread;
	int fd;

	/* the sender waits for the first view */
	st_open_but(&g, &c, 1);
	CHECK_EQ(pthread_create(&thread, NULL, thread_say, &g.fd[0]), 0);
	j = join_of(g.name, st_addr(0));
	fd = st_bound(1);
	CHECK_OK(st_join(fd, &j));
	st_expect(fd, "from a thread");
	st_expect(g.fd[0], "from a thread");
	pthread_join(thread, NULL);
}

TEST(fork_shares_the_socket)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	pid_t pid;

	st_open(&g, &c);
	pid = CHECK_OK(fork());
	if (!pid) {
		st_say(g.fd[0], "from the child");
		_exit(0);
	}
	st_reap(pid);
	/* the child's end is not the member's */
	st_expect(g.fd[1], "from the child");
	st_say(g.fd[0], "from the parent");
	st_expect(g.fd[1], "from the parent");
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_ACTIVE);
}

TEST(dup_shares_the_socket)
{
	int fd = st_alone(), other = CHECK_OK(dup(fd));

	close(fd);
	st_say(other, "dup");
	st_expect(other, "dup");
}

TEST(passed_to_another_process)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int pair[2], fd;
	pid_t pid;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = CHECK_OK(fork());
	if (!pid) {
		char byte;

		iov = (struct iovec){ &byte, 1 };
		CHECK_EQ(recvmsg(pair[1], &msg, 0), 1);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
		st_expect(fd, "passed");
		_exit(0);
	}
	fd = st_alone();
	st_say(fd, "passed");
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(pair[0], &msg, 0), 1);
	close(fd);
	st_reap(pid);
}

/* Shutdown and the end of the stream */

TEST(shutdown_how)
{
	int fd = st_alone();

	CHECK_ERR(shutdown(fd, 3), EINVAL);
	CHECK_ERR(shutdown(fd, -1), EINVAL);
	CHECK_OK(shutdown(fd, SHUT_RDWR));
}

TEST(end_of_stream)
{
	struct st_config c = { .members = 3, .nodes = 3, .receivers = 1 << 2 };
	struct st_group g = { 0 };
	int i;

	st_open(&g, &c);
	st_say(g.fd[0], "a");
	st_say(g.fd[1], "b");
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	for (i = 0; i < 3; i++) {
		CHECK_OK(st_recv(g.fd[i], &m, 0));
		CHECK_OK(st_recv(g.fd[i], &m, 0));
	}
	/* one sender may still speak */
	CHECK_ERR(recv(g.fd[0], m.data, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(st_events(g.fd[2]) & (POLLIN | POLLRDHUP), 0);
	st_say(g.fd[1], "the last word");
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	for (i = 0; i < 3; i++) {
		st_expect(g.fd[i], "the last word");
		st_expect_end(g.fd[i]);
		st_expect_end(g.fd[i]);
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_CLOSED);
		CHECK_EQ(st_info(g.fd[i]).error, 0);
		CHECK_EQ(st_events(g.fd[i]) & (POLLIN | POLLRDHUP | POLLHUP | POLLERR),
			 POLLIN | POLLRDHUP | POLLHUP);
		CHECK_EQ(st_so_error(g.fd[i]), 0);
	}
}

TEST(end_of_stream_and_close)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	/* who has read to the end may go; the other is not disturbed */
	st_open(&g, &c);
	st_say(g.fd[0], "one");
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	st_expect(g.fd[0], "one");
	st_expect_end(g.fd[0]);
	close(g.fd[0]);
	st_expect(g.fd[1], "one");
	st_expect_end(g.fd[1]);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_CLOSED);
	CHECK_EQ(st_so_error(g.fd[1]), 0);
}

TEST(shutdown_twice)
{
	int fd = st_alone();

	CHECK_OK(shutdown(fd, SHUT_WR));
	CHECK_OK(shutdown(fd, SHUT_WR));
	st_expect_end(fd);
}

TEST(shutdown_by_a_receiver)
{
	struct st_config c = { .members = 2, .receivers = 1 << 1 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	st_say(g.fd[0], "still here");
	st_expect(g.fd[1], "still here");
}

TEST(shutdown_when_full)
{
	struct st_group g = { 0 };
	unsigned int n, i;

	/* the last word waits for room like any message, but its sender need not */
	open_narrow(&g);
	n = fill(g.fd[0], 1024);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	for (i = 0; i < n; i++) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
		CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 1024);
	}
	st_expect_end(g.fd[0]);
	st_expect_end(g.fd[1]);
}

TEST(shutdown_read)
{
	struct st_group g = { 0 };
	unsigned int i;
	char buf[8];

	/* who does not read any more does not hold the others up */
	open_narrow(&g);
	st_say(g.fd[0], "unread");
	CHECK_OK(shutdown(g.fd[1], SHUT_RD));
	CHECK_EQ(recv(g.fd[1], buf, sizeof(buf), 0), 0);
	CHECK(st_events(g.fd[1]) & POLLRDHUP);
	CHECK(st_events(g.fd[1]) & POLLIN);
	st_expect(g.fd[0], "unread");
	for (i = 0; i < 100; i++) {
		CHECK_EQ(send(g.fd[0], &m, 1024, 0), 1024);
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
	}
	st_say(g.fd[1], "it may still send");
	st_expect(g.fd[0], "it may still send");
	CHECK_EQ(recv(g.fd[1], buf, sizeof(buf), 0), 0);
}

static void shut_read(pid_t sleeper, void *fd)
{
	(void)sleeper;
	CHECK_OK(shutdown(*(int *)fd, SHUT_RD));
}

static void shut_write(pid_t sleeper, void *fd)
{
	(void)sleeper;
	CHECK_OK(shutdown(*(int *)fd, SHUT_WR));
}

TEST(shutdown_read_wakes_the_reader)
{
	pthread_t thread;
	int fd = st_alone();
	char buf[8];

	thread = st_in_call(shut_read, &fd);
	CHECK_EQ(recv(fd, buf, sizeof(buf), 0), 0);
	pthread_join(thread, NULL);
}

TEST(shutdown_write_wakes_the_writer)
{
	struct st_group g = { 0 };
	pthread_t thread;

	open_narrow(&g);
	fill(g.fd[0], 1024);
	thread = st_in_call(shut_write, &g.fd[0]);
	CHECK_ERR(send(g.fd[0], &m, 1024, MSG_NOSIGNAL), EPIPE);
	pthread_join(thread, NULL);
}

/* Failure, as far as one host shows it */

TEST(close_leaves_the_others)
{
	struct st_config c = { .members = 3, .nodes = 2 };
	struct st_group g = { 0 };
	int i;

	st_open(&g, &c);
	close(g.fd[1]);
	for (i = 0; i < 3; i += 2) {
		st_wait_members(g.fd[i], 2);
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_ACTIVE);
		CHECK_EQ(st_info(g.fd[i]).error, 0);
		CHECK_EQ(st_info(g.fd[i]).view, 2);
		CHECK_EQ(st_so_error(g.fd[i]), 0);
		CHECK_ERR(recv(g.fd[i], m.data, 1, MSG_DONTWAIT), EAGAIN);
		st_wait_events(g.fd[i], POLLOUT);
		CHECK_EQ(st_events(g.fd[i]), POLLOUT | POLLWRNORM);
	}
	st_say(g.fd[2], "two of us");
	st_expect(g.fd[0], "two of us");
	st_expect(g.fd[2], "two of us");
}

TEST(lost_majority_fails_the_members)
{
	struct st_config c = { .members = 4, .nodes = 2 };
	struct st_group g = { 0 };
	int i;

	st_open(&g, &c);
	st_break(1, 0);
	for (i = 1; i < 4; i += 2) {
		st_wait_events(g.fd[i], POLLIN);
		CHECK_EQ(st_events(g.fd[i]) & (POLLIN | POLLERR | POLLHUP),
			 POLLIN | POLLERR | POLLHUP);
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_FAILED);
		CHECK_EQ(st_info(g.fd[i]).error, ENETDOWN);
		CHECK_EQ(st_so_error(g.fd[i]), ENETDOWN);
		CHECK_EQ(st_so_error(g.fd[i]), 0);
		CHECK_ERR(recv(g.fd[i], m.data, 1, 0), ENETDOWN);
		CHECK_ERR(recv(g.fd[i], m.data, 1, 0), ENETDOWN);
		CHECK_ERR(send(g.fd[i], "x", 1, MSG_NOSIGNAL), ENETDOWN);
		CHECK_ERR(send(g.fd[i], "x", 1, MSG_NOSIGNAL), ENETDOWN);
	}
}

TEST(delivered_before_the_failure)
{
	struct st_config c = { .members = 4, .nodes = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_say(g.fd[0], "one");
	st_say(g.fd[1], "two");
	/* the other one on that node has taken both: they were delivered */
	CHECK_SAME(CHECK_OK(st_recv(g.fd[3], &m, 0)), 3);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[3], &m, 0)), 3);
	st_fail_second(&g, g.fd[1]);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 3);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 3);
	CHECK_ERR(recv(g.fd[1], m.data, 1, 0), ENETDOWN);
}

TEST(failure_wakes_a_blocked_writer)
{
	struct st_group g = { 0 };
	pid_t pid;

	open_narrow(&g);
	fill(g.fd[1], 1024);
	pid = CHECK_OK(fork());
	if (!pid) {
		CHECK_ERR(send(g.fd[1], &m, 1024, MSG_NOSIGNAL), ENETDOWN);
		_exit(0);
	}
	WAIT_UNTIL(st_sleeps(pid), ST_SOON);
	st_break(1, 0);
	st_reap(pid);
}

TEST(failure_wakes_a_blocked_reader)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	pid_t pid;

	st_open(&g, &c);
	pid = CHECK_OK(fork());
	if (!pid) {
		CHECK_ERR(recv(g.fd[1], &m, 1024, 0), ENETDOWN);
		_exit(0);
	}
	WAIT_UNTIL(st_sleeps(pid), ST_SOON);
	st_break(1, 0);
	st_reap(pid);
}

TEST(close_right_after_create)
{
	struct spindle_group_create c = { .members = 2 };
	unsigned int i;
	int fd;

	for (i = 0; i < 50; i++) {
		fd = st_bound(i % 2);
		st_name(c.name);
		CHECK_OK(st_create(fd, &c));
		CHECK_OK(close(fd));
	}
}

TEST(many_groups_of_one)
{
	unsigned int i;
	int fds[40];

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = st_alone();
		st_say(fds[i], "mine");
	}
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		st_expect(fds[i], "mine");
}

TEST(group_of_one_over_and_over)
{
	unsigned int i;

	for (i = 0; i < 60; i++) {
		int fd = st_alone();

		st_say(fd, "again");
		st_expect(fd, "again");
		CHECK_OK(close(fd));
	}
}

TEST(member_limit_of_the_info)
{
	struct st_group g = { 0 };
	uint64_t received;
	unsigned int i;

	/* what info counts is what went through the socket */
	open_narrow(&g);
	for (i = 0; i < 30; i++) {
		st_say(g.fd[0], "count");
		st_expect(g.fd[0], "count");
		st_expect(g.fd[1], "count");
	}
	received = st_info(g.fd[1]).received;
	CHECK_EQ(received, 30);
	CHECK_EQ(st_info(g.fd[0]).sent, 30);
	CHECK_EQ(st_info(g.fd[1]).sent, 0);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
