// SPDX-License-Identifier: GPL-2.0
/*
 * Large objects: messages that do not fit the ring, in the order of all others.
 */
#include "spindle_selftest.h"
#include <sys/mman.h>

#define MAX_OBJECT	(8U << 20)

/* The byte at a place of the object that a member sent as its n-th. */
static uint8_t pattern(unsigned int sender, unsigned int nr, size_t at)
{
	uint64_t x = (at / 8 + 1) * 0x9e3779b97f4a7c15ULL + sender * 1000003ULL + nr;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ULL;
	return x >> 8 * (at % 8);
}

static uint8_t *made(unsigned int sender, unsigned int nr, size_t len)
{
	uint8_t *bytes = malloc(len);
	size_t i;

	CHECK(bytes);
	for (i = 0; i < len; i++)
		bytes[i] = pattern(sender, nr, i);
	return bytes;
}

static void put(int fd, unsigned int sender, unsigned int nr, size_t len)
{
	uint8_t *bytes = made(sender, nr, len);

	CHECK_EQ(CHECK_OK(send(fd, bytes, len, MSG_NOSIGNAL)), len);
	free(bytes);
}

/* The next message is that object, whole. */
static void get(int fd, unsigned int sender, unsigned int nr, size_t len)
{
	uint8_t *bytes = malloc(MAX_OBJECT + 1);
	struct iovec iov = { bytes, MAX_OBJECT + 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t i;

	CHECK(bytes);
	CHECK_EQ(CHECK_OK(recvmsg(fd, &msg, 0)), len);
	CHECK_EQ(msg.msg_flags & (MSG_EOR | MSG_TRUNC), MSG_EOR);
	for (i = 0; i < len; i++)
		if (bytes[i] != pattern(sender, nr, i))
			FAIL("byte %zu of object %u of %u is %#x, not %#x", i, nr, sender,
			     bytes[i], pattern(sender, nr, i));
	free(bytes);
}

static void spread(const struct st_config *c, size_t len)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, c);
	put(g.fd[0], 0, 0, len);
	for (i = 0; i < g.n; i++)
		get(g.fd[i], 0, 0, len);
	/* A member that is not the first is as good a root. */
	put(g.fd[g.n - 1], g.n - 1, 1, len + 1);
	for (i = 0; i < g.n; i++)
		get(g.fd[i], g.n - 1, 1, len + 1);
}

TEST(alone)
{
	struct st_config c = { .members = 1, .max_object = MAX_OBJECT };

	spread(&c, 100000);
}

TEST(one_node)
{
	struct st_config c = { .members = 3, .max_object = MAX_OBJECT };

	spread(&c, 1000000);
}

TEST(two_nodes)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT };

	spread(&c, 1000000);
}

TEST(five_nodes_by_every_algorithm)
{
	struct st_config c = { .members = 5, .nodes = 5, .max_object = MAX_OBJECT, .racks = 2 };

	for (c.algorithm = 0; c.algorithm < SPINDLE_ALGS; c.algorithm++)
		spread(&c, 500000);
}

static unsigned long long counter(unsigned int node, const char *group, const char *name)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/counters/%s", st_addr(node), group,
		 name);
	CHECK(st_read_file(path, text, sizeof(text)));
	return strtoull(text, NULL, 10);
}

static void how(struct msghdr *msg, char *control, unsigned int algorithm, unsigned int flags)
{
	struct spindle_object object = { algorithm, flags };
	struct cmsghdr *cmsg;

	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(sizeof(object));
	memset(control, 0, msg->msg_controllen);
	cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = SOL_SPINDLE;
	cmsg->cmsg_type = SPINDLE_CMSG_OBJECT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(object));
	memcpy(CMSG_DATA(cmsg), &object, sizeof(object));
}

static ssize_t put_as(int fd, unsigned int sender, unsigned int nr, size_t len,
		      unsigned int algorithm, unsigned int flags)
{
	char control[CMSG_SPACE(sizeof(struct spindle_object))];
	uint8_t *bytes = made(sender, nr, len);
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t ret;

	how(&msg, control, algorithm, flags);
	ret = sendmsg(fd, &msg, MSG_NOSIGNAL);
	free(bytes);
	return ret;
}

TEST(a_message_says_how_it_is_sent)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_object = MAX_OBJECT };
	struct st_group g = { 0 };
	unsigned int i, k;

	st_open(&g, &c);
	for (k = 1; k < SPINDLE_ALGS; k++) {
		CHECK_EQ(CHECK_OK(put_as(g.fd[0], 0, k, 300000, k, 0)), 300000);
		for (i = 0; i < g.n; i++)
			get(g.fd[i], 0, k, 300000);
	}
	CHECK_ERR(put_as(g.fd[0], 0, 0, 300000, SPINDLE_ALGS, 0), EINVAL);
	CHECK_ERR(put_as(g.fd[0], 0, 0, 300000, 0, ~0U), EINVAL);
	/* One that the ring would take; an empty one has no blocks. */
	CHECK_EQ(counter(1, g.name, "objects"), SPINDLE_ALGS - 1);
	CHECK_EQ(CHECK_OK(put_as(g.fd[0], 0, 9, 10, 0, SPINDLE_OBJECT_ALWAYS)), 10);
	CHECK_EQ(CHECK_OK(put_as(g.fd[0], 0, 10, 0, 0, SPINDLE_OBJECT_ALWAYS)), 0);
	CHECK_EQ(CHECK_OK(put_as(g.fd[0], 0, 11, 10, 0, 0)), 10);
	for (i = 0; i < g.n; i++) {
		get(g.fd[i], 0, 9, 10);
		get(g.fd[i], 0, 10, 0);
		get(g.fd[i], 0, 11, 10);
	}
	CHECK_EQ(counter(1, g.name, "objects"), SPINDLE_ALGS);
	CHECK_EQ(counter(1, g.name, "object_bytes"), (SPINDLE_ALGS - 1) * 300000 + 10);
}

static ssize_t put_in_place(int fd, void *bytes, size_t len)
{
	char control[CMSG_SPACE(sizeof(struct spindle_object))];
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	how(&msg, control, 0, SPINDLE_OBJECT_IN_PLACE);
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static unsigned int pinned(int fd)
{
	struct spindle_stability s;
	socklen_t len = sizeof(s);

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_STABILITY, &s, &len));
	return s.pinned;
}

/* Bytes that the kernel has copied on a node for one object sent in place. */
static unsigned long long copied_in_place(struct st_group *g, unsigned int nr, void *bytes,
					  size_t len)
{
	unsigned long long before = counter(0, g->name, "copied_bytes");
	size_t i;

	for (i = 0; i < len; i++)
		((uint8_t *)bytes)[i] = pattern(0, nr, i);
	CHECK_EQ(CHECK_OK(put_in_place(g->fd[0], bytes, len)), len);
	return counter(0, g->name, "copied_bytes") - before;
}

static void unpinned(struct st_group *g, unsigned int nr, size_t len)
{
	const int what = SPINDLE_SYNC_UNPINNED;
	unsigned int i;

	for (i = 0; i < g->n; i++)
		get(g->fd[i], 0, nr, len);
	CHECK_OK(setsockopt(g->fd[0], SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what)));
	CHECK_EQ(pinned(g->fd[0]), 0);
}

TEST(sent_from_where_it_is)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_object = MAX_OBJECT };
	const size_t page = sysconf(_SC_PAGESIZE), len = 100 * page + 1000;
	struct st_group g = { 0 };
	uint8_t *bytes;

	st_open(&g, &c);
	bytes = mmap(NULL, len + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bytes != MAP_FAILED);
	/* whole pages are not copied, what follows them is */
	CHECK_EQ(copied_in_place(&g, 0, bytes, len), 1000);
	CHECK_EQ(pinned(g.fd[0]), 1);
	unpinned(&g, 0, len);
	CHECK_EQ(copied_in_place(&g, 1, bytes, 100 * page), 0);
	unpinned(&g, 1, 100 * page);
	/* what does not begin with a page is */
	CHECK_EQ(copied_in_place(&g, 2, bytes + 8, len), len);
	CHECK_EQ(pinned(g.fd[0]), 0);
	unpinned(&g, 2, len);
	/* and what has no whole page */
	CHECK_EQ(copied_in_place(&g, 3, bytes, page - 1), page - 1);
	unpinned(&g, 3, page - 1);
	/* nothing is sent of what is not there */
	CHECK_OK(munmap(bytes + 50 * page, page));
	CHECK_ERR(put_in_place(g.fd[0], bytes, len), EFAULT);
	CHECK_EQ(pinned(g.fd[0]), 0);
	/* the pages stay when the program has no use for them any more */
	CHECK_EQ(copied_in_place(&g, 4, bytes, 50 * page), 0);
	CHECK_OK(munmap(bytes, 50 * page));
	unpinned(&g, 4, 50 * page);
}

TEST(sent_from_a_file)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_object = MAX_OBJECT };
	const size_t page = sysconf(_SC_PAGESIZE), len = 64 * page;
	const int what = SPINDLE_SYNC_UNPINNED;
	struct timeval soon = { .tv_usec = 1000 };
	struct st_group g = { 0 };
	uint8_t *bytes;
	unsigned int i;
	int fd;

	st_open(&g, &c);
	fd = CHECK_OK(memfd_create("object", 0));
	for (i = 0; i < len; i += page) {
		bytes = made(0, 0, len);
		CHECK_EQ(CHECK_OK(pwrite(fd, bytes + i, page, i)), page);
		free(bytes);
	}
	bytes = mmap(NULL, 2 * len, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(bytes != MAP_FAILED);
	CHECK_EQ(CHECK_OK(put_in_place(g.fd[0], bytes, len)), len);
	CHECK_EQ(pinned(g.fd[0]), 1);
	/* nobody has read it */
	CHECK_OK(setsockopt(g.fd[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)));
	CHECK_ERR(setsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what)), EAGAIN);
	soon.tv_usec = 0;
	CHECK_OK(setsockopt(g.fd[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)));
	unpinned(&g, 0, len);
	/* the file is shorter than that */
	CHECK_ERR(put_in_place(g.fd[0], bytes, 2 * len), EFAULT);
	CHECK_EQ(pinned(g.fd[0]), 0);
	/* what was cut off meanwhile is sent as it was */
	CHECK_EQ(CHECK_OK(put_in_place(g.fd[0], bytes, len)), len);
	CHECK_OK(ftruncate(fd, 0));
	unpinned(&g, 0, len);
	close(fd);
}

/* Its memory is given back with the last member that reads it. */
TEST(a_sender_in_place_goes)
{
	struct st_config c = { .members = 3, .nodes = 2, .max_object = MAX_OBJECT };
	struct st_group g = { 0 };
	uint8_t *bytes;
	unsigned int i;

	st_open(&g, &c);
	bytes = aligned_alloc(sysconf(_SC_PAGESIZE), 1 << 20);
	CHECK(bytes);
	for (i = 0; i < 1 << 20; i++)
		bytes[i] = pattern(0, 0, i);
	CHECK_EQ(CHECK_OK(put_in_place(g.fd[0], bytes, 1 << 20)), 1 << 20);
	close(g.fd[0]);
	free(bytes);
	for (i = 1; i < g.n; i++)
		get(g.fd[i], 0, 0, 1 << 20);
	g.fd[0] = -1;
}

TEST(sizes_about_the_edges)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_msg = 4000, .window = 65536,
			       .max_object = 1 << 20, .block = 65536 };
	static const unsigned int sizes[] = {
		4001, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 131072, 131073,
		262145, 1048575, 1048576,
	};
	struct st_group g = { 0 };
	unsigned int i, k;
	char *buf;

	st_open(&g, &c);
	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		put(g.fd[k % 3], k % 3, k, sizes[k]);
		for (i = 0; i < g.n; i++)
			get(g.fd[i], k % 3, k, sizes[k]);
	}
	buf = calloc(1, (1 << 20) + 1);
	CHECK_ERR(send(g.fd[0], buf, (1 << 20) + 1, MSG_NOSIGNAL), EMSGSIZE);
	CHECK_ERR(send(g.fd[0], buf, (1 << 20) + 1, MSG_DONTWAIT), EMSGSIZE);
}

TEST(configurations_out_of_range)
{
	static const struct {
		struct st_config c;
		int err;
	} cases[] = {
		{ { .members = 1, .max_object = SPINDLE_MAX_OBJECT + 1 }, ERANGE },
		{ { .members = 1, .block = SPINDLE_MAX_BLOCK * 2 }, ERANGE },
		{ { .members = 1, .block = 2048 }, ERANGE },
		{ { .members = 1, .block = 65537 }, ERANGE },
		{ { .members = 1, .algorithm = SPINDLE_ALGS }, ERANGE },
		{ { .members = 2, .senders = 2, .flags = SPINDLE_F_PLAIN }, EINVAL },
		{ { .members = 2, .flags = SPINDLE_F_PLAIN | SPINDLE_F_MINORITY }, EINVAL },
	};
	struct spindle_group_create create;
	struct spindle_group_join join = { .name = "x", .rack = SPINDLE_MAX_RACK + 1 };
	unsigned int i;
	int fd = st_bound(0);

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		create = st_create_of(&cases[i].c, "x");
		CHECK_ERR(st_create(fd, &create), cases[i].err);
	}
	create = st_create_of(&(struct st_config){ .members = 1 }, "x");
	create.rack = SPINDLE_MAX_RACK + 1;
	CHECK_ERR(st_create(fd, &create), ERANGE);
	st_contact(&join, st_addr(0));
	CHECK_ERR(st_join(fd, &join), ERANGE);
}

/*
 * Each member sends messages of all sizes; all see the same order, and everything
 * once. What was sent is told by its first bytes.
 */
struct label {
	uint32_t sender;
	uint32_t nr;
};

static void mixed(const struct st_config *c, unsigned int each, size_t most)
{
	struct st_group g = { 0 };
	unsigned int total = c->members * each;
	struct label *order = calloc(total, sizeof(*order));
	unsigned int next[SPINDLE_MAX_MEMBERS] = { 0 };
	uint8_t *bytes = malloc(most);
	unsigned int i, k;
	pid_t pid;

	CHECK(order && bytes);
	st_open(&g, c);
	for (i = 0; i < g.n; i++) {
		uint64_t seed = i + 1;

		pid = CHECK_OK(fork());
		if (pid)
			continue;
		for (k = 0; k < each; k++) {
			size_t len = sizeof(struct label) + st_random(&seed) %
				(k % 3 ? 2000 : most - sizeof(struct label));
			struct label label = { i, k };

			memset(bytes, (uint8_t)(i * 37 + k), len);
			memcpy(bytes, &label, sizeof(label));
			CHECK_EQ(CHECK_OK(send(g.fd[i], bytes, len, MSG_NOSIGNAL)), len);
		}
		_exit(0);
	}
	for (k = 0; k < total; k++) {
		for (i = 0; i < g.n; i++) {
			ssize_t len = CHECK_OK(recv(g.fd[i], bytes, most, 0));
			struct label label;
			ssize_t at;

			CHECK(len >= (ssize_t)sizeof(label));
			memcpy(&label, bytes, sizeof(label));
			if (!i) {
				CHECK(label.sender < g.n);
				CHECK_EQ(label.nr, next[label.sender]++);
				order[k] = label;
			}
			CHECK_EQ(label.sender, order[k].sender);
			CHECK_EQ(label.nr, order[k].nr);
			for (at = sizeof(label); at < len; at++)
				if (bytes[at] != (uint8_t)(label.sender * 37 + label.nr))
					FAIL("byte %zd of message %u", at, k);
		}
	}
	for (i = 0; i < g.n; i++)
		CHECK(wait(NULL) > 0);
}

TEST_SECONDS(all_sizes_in_one_order, 120)
{
	struct st_config c = { .members = 4, .nodes = 4, .window = 65536,
			       .max_object = 1 << 20 };

	mixed(&c, 30, 400000);
}

TEST_SECONDS(several_members_on_a_node, 120)
{
	struct st_config c = { .members = 6, .nodes = 3, .window = 65536,
			       .max_object = 1 << 20 };

	mixed(&c, 15, 400000);
}

TEST(a_buffer_that_is_too_small)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT };
	struct iovec iov = { NULL, 1000 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct st_group g = { 0 };

	iov.iov_base = malloc(1000);
	st_open(&g, &c);
	put(g.fd[0], 0, 0, 200000);
	CHECK_EQ(CHECK_OK(recv(g.fd[1], NULL, 0, MSG_PEEK | MSG_TRUNC)), 200000);
	CHECK_EQ(CHECK_OK(recvmsg(g.fd[1], &msg, MSG_PEEK)), 1000);
	CHECK_EQ(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	CHECK_EQ(CHECK_OK(recvmsg(g.fd[1], &msg, 0)), 1000);
	CHECK_EQ(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	/* The rest of it is gone. */
	put(g.fd[0], 0, 1, 100);
	get(g.fd[1], 0, 1, 100);
}

/* The next message as a file; it stays the next one. */
static int as_file(int fd, size_t len)
{
	struct spindle_object_fd e = { 0 };
	socklen_t size = sizeof(e);

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_OBJECT_FD, &e, &size));
	CHECK_EQ(size, sizeof(e));
	CHECK_EQ(e.len, len);
	CHECK_EQ(fcntl(e.fd, F_GETFD), FD_CLOEXEC);
	return e.fd;
}

static int no_file(int fd, struct spindle_object_fd *e)
{
	socklen_t size = sizeof(*e);

	return getsockopt(fd, SOL_SPINDLE, SPINDLE_OBJECT_FD, e, &size);
}

static void is_object(const uint8_t *bytes, unsigned int nr, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (bytes[i] != pattern(0, nr, i))
			FAIL("byte %zu is %#x, not %#x", i, bytes[i], pattern(0, nr, i));
}

/* What it holds outlives the message, the socket and the group. */
TEST(as_a_file)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT };
	const size_t page = sysconf(_SC_PAGESIZE), len = 100 * page + 1000;
	struct spindle_object_fd e = { 0 };
	struct st_group g = { 0 };
	uint8_t part[1000], *map, *tail;
	struct st_msg m;
	int fd[2];

	st_open(&g, &c);
	CHECK_ERR(no_file(g.fd[1], &e), EAGAIN);
	st_say(g.fd[0], "none");
	st_wait_events(g.fd[1], POLLIN);
	CHECK_ERR(no_file(g.fd[1], &e), ENOENT);
	st_expect(g.fd[1], "none");
	st_expect(g.fd[0], "none");
	put(g.fd[0], 0, 1, len);
	st_wait_events(g.fd[1], POLLIN);
	e.delivery = 1;
	CHECK_ERR(no_file(g.fd[1], &e), EINVAL);
	e = (struct spindle_object_fd){ .__resv = { 0, 0, 1 } };
	CHECK_ERR(no_file(g.fd[1], &e), EINVAL);
	CHECK_ERR(no_file(st_bound(2), &(struct spindle_object_fd){ 0 }), ENOTCONN);

	fd[0] = as_file(g.fd[1], len);
	fd[1] = as_file(g.fd[1], len);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd[0], 0);
	CHECK(map != MAP_FAILED);
	tail = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd[0], 100 * page);
	CHECK(tail != MAP_FAILED);
	CHECK(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0) == MAP_FAILED);
	CHECK_EQ(errno, EACCES);
	CHECK(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd[0], 0) == MAP_FAILED);
	CHECK_EQ(errno, EACCES);
	CHECK(mmap(NULL, len, PROT_READ, MAP_SHARED, fd[0], page) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	CHECK_ERR(mprotect(map, page, PROT_READ | PROT_WRITE), EACCES);
	CHECK_ERR(mprotect(tail, page, PROT_READ | PROT_WRITE), EACCES);
	CHECK_ERR(write(fd[0], part, 1), EBADF);

	CHECK_EQ(CHECK_OK(pread(fd[1], part, sizeof(part), len - 500)), 500);
	CHECK(!memcmp(part, map + len - 500, 500));
	CHECK_EQ(CHECK_OK(pread(fd[1], part, sizeof(part), len)), 0);
	CHECK_EQ(CHECK_OK(lseek(fd[1], -10, SEEK_END)), len - 10);
	CHECK_EQ(CHECK_OK(read(fd[1], part, sizeof(part))), 10);
	CHECK_EQ(CHECK_OK(read(fd[1], part, sizeof(part))), 0);
	CHECK_ERR(pread(fd[1], (void *)page, 1, 0), EFAULT);

	/* it is still to be taken off; then the sender has room for the next */
	CHECK_EQ(CHECK_OK(recv(g.fd[1], NULL, 0, MSG_TRUNC)), len);
	get(g.fd[0], 0, 1, len);
	put(g.fd[0], 0, 2, len);
	get(g.fd[1], 0, 2, len);
	CHECK_ERR(st_recv(g.fd[1], &m, MSG_DONTWAIT), EAGAIN);
	close(fd[1]);
	close(fd[0]);
	close(g.fd[0]);
	close(g.fd[1]);
	is_object(map, 1, len);
	CHECK(!memcmp(tail, map + 100 * page, 1000));
	CHECK_EQ(tail[1000], 0);
	CHECK_OK(munmap(map, len));
	CHECK_OK(munmap(tail, page));
}

/* A sender's own memory is nobody else's to map; others have it as always. */
TEST(as_a_file_sent_in_place)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT };
	const size_t len = 50 * sysconf(_SC_PAGESIZE);
	struct spindle_object_fd e = { 0 };
	struct st_group g = { 0 };
	uint8_t *bytes, *map;
	unsigned int i;
	int fd;

	st_open(&g, &c);
	bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bytes != MAP_FAILED);
	for (i = 0; i < len; i++)
		bytes[i] = pattern(0, 3, i);
	CHECK_EQ(CHECK_OK(put_in_place(g.fd[0], bytes, len)), len);
	st_wait_events(g.fd[0], POLLIN);
	CHECK_ERR(no_file(g.fd[0], &e), EOPNOTSUPP);
	st_wait_events(g.fd[1], POLLIN);
	fd = as_file(g.fd[1], len);
	unpinned(&g, 3, len);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	is_object(map, 3, len);
	close(fd);
}

/* What a file holds counts, and so what comes does not fit. */
TEST(as_a_file_it_counts)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT };
	struct st_group g = { 0 };
	char path[128], text[64];
	long before, held;
	int fd;

	st_open(&g, &c);
	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/memory", st_addr(1), g.name);
	CHECK(st_read_file(path, text, sizeof(text)));
	before = strtol(text, NULL, 10);
	put(g.fd[0], 0, 0, MAX_OBJECT);
	st_wait_events(g.fd[1], POLLIN);
	fd = as_file(g.fd[1], MAX_OBJECT);
	CHECK_EQ(CHECK_OK(recv(g.fd[1], NULL, 0, MSG_TRUNC)), MAX_OBJECT);
	get(g.fd[0], 0, 0, MAX_OBJECT);
	put(g.fd[0], 0, 1, MAX_OBJECT);
	get(g.fd[1], 0, 1, MAX_OBJECT);
	CHECK(st_read_file(path, text, sizeof(text)));
	held = strtol(text, NULL, 10);
	CHECK(held >= before + MAX_OBJECT);
	close(fd);
	get(g.fd[0], 0, 1, MAX_OBJECT);
	WAIT_UNTIL(st_read_file(path, text, sizeof(text)) && strtol(text, NULL, 10) == before,
		   ST_SOON);
}

TEST(read_in_parts)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT };
	struct st_group g = { 0 };
	size_t len = 300001, at = 0;
	uint8_t part[10000];
	int off = 0;
	ssize_t n, i;

	st_open(&g, &c);
	CHECK_OK(setsockopt(g.fd[1], SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off)));
	put(g.fd[0], 0, 0, len);
	put(g.fd[0], 0, 1, 5000);
	do {
		n = CHECK_OK(recv(g.fd[1], part, sizeof(part), MSG_PEEK));
		for (i = 0; i < n; i++)
			if (part[i] != pattern(0, 0, at + i))
				FAIL("byte %zu", at + i);
		at += n;
	} while (n);
	CHECK_EQ(at, len);
	CHECK_EQ(CHECK_OK(recv(g.fd[1], part, 0, MSG_TRUNC)), len);
	CHECK_EQ(CHECK_OK(recv(g.fd[1], part, sizeof(part), MSG_PEEK)), 5000);
	get(g.fd[1], 0, 1, 5000);
}

/* So much may be under way that nobody has read; then the sender waits. */
TEST(a_sender_waits_for_room)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = 1 << 20 };
	struct st_group g = { 0 };
	uint8_t *bytes = made(0, 0, 1 << 20);
	int all = SPINDLE_SYNC_DELIVERED;
	unsigned int i, n = 0;

	st_open(&g, &c);
	while (send(g.fd[0], bytes, 1 << 20, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		n++;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(n, 2);
	/* poll() speaks of what was refused. */
	CHECK_EQ(st_events(g.fd[0]) & POLLOUT, 0);
	/* What is small finds room. */
	st_say(g.fd[0], "small");
	CHECK_EQ(st_events(g.fd[0]) & POLLOUT, POLLOUT);
	CHECK_ERR(send(g.fd[0], bytes, 1 << 20, MSG_NOSIGNAL | MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(st_events(g.fd[0]) & POLLOUT, 0);
	for (i = 0; i < 2; i++) {
		get(g.fd[0], 0, 0, 1 << 20);
		get(g.fd[1], 0, 0, 1 << 20);
	}
	st_wait_events(g.fd[0], POLLOUT);
	CHECK_EQ(CHECK_OK(send(g.fd[0], bytes, 1 << 20, MSG_NOSIGNAL)), 1 << 20);
	st_expect(g.fd[0], "small");
	st_expect(g.fd[1], "small");
	get(g.fd[1], 0, 0, 1 << 20);
	/* Objects are counted, too. */
	get(g.fd[0], 0, 0, 1 << 20);
	CHECK_OK(setsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_SYNC, &all, sizeof(all)));
	for (n = 0; send(g.fd[0], bytes, 20000, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; n++)
		;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(n, 16);
	free(bytes);
}

TEST(a_detached_member)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = 1 << 20 };
	struct st_group g = { 0 };
	int on = 1, size = 8 << 20;
	unsigned int i;

	st_open(&g, &c);
	CHECK_OK(setsockopt(g.fd[1], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)));
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	/* Nobody reads there, and nobody waits for it. */
	for (i = 0; i < 6; i++) {
		put(g.fd[0], 0, i, 1 << 20);
		get(g.fd[0], 0, i, 1 << 20);
	}
	for (i = 0; i < 6; i++)
		get(g.fd[1], 0, i, 1 << 20);
}

TEST(the_end_comes_behind_it)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = MAX_OBJECT, .senders = 1 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	put(g.fd[0], 0, 0, 4 << 20);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	get(g.fd[1], 0, 0, 4 << 20);
	st_expect_end(g.fd[1]);
	get(g.fd[0], 0, 0, 4 << 20);
	st_expect_end(g.fd[0]);
}

/* A member that is killed in the middle: the others have all or nothing of it. */
static void killed(bool sender)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_object = MAX_OBJECT,
			       .suspect_ms = 1000 };
	struct st_group g = { 0 };
	struct spindle_group_join join = { 0 };
	uint8_t *bytes = malloc(MAX_OBJECT);
	unsigned int i;
	int ready[2];
	char x;
	pid_t pid;

	CHECK_OK(pipe(ready));
	st_open_but(&g, &c, 1);
	pid = CHECK_OK(fork());
	if (!pid) {
		int fd = st_bound(2);

		close(g.fd[0]);
		close(g.fd[1]);
		snprintf(join.name, sizeof(join.name), "%s", g.name);
		st_contact(&join, st_addr(0));
		CHECK_OK(st_join(fd, &join));
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		if (sender)
			put(fd, 2, 0, MAX_OBJECT);
		CHECK_EQ(write(ready[1], "x", 1), 1);
		pause();
		_exit(0);
	}
	CHECK_EQ(read(ready[0], &x, 1), 1);
	if (!sender)
		put(g.fd[0], 0, 0, MAX_OBJECT);
	st_pause_us(20000);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_EQ(CHECK_OK(waitpid(pid, NULL, 0)), pid);
	st_wait_members(g.fd[0], 2);
	st_wait_members(g.fd[1], 2);
	put(g.fd[0], 0, 1, 100000);
	/* Who is killed lingers till it is received everywhere; who receives is gone. */
	for (i = 0; i < 2; i++)
		get(g.fd[i], sender ? 2 : 0, 0, MAX_OBJECT);
	for (i = 0; i < 2; i++)
		get(g.fd[i], 0, 1, 100000);
	free(bytes);
}

TEST(a_receiver_is_killed)
{
	killed(false);
}

TEST(a_sender_is_killed)
{
	killed(true);
}

/* Views come and go while objects are under way. */
TEST_SECONDS(members_come_and_go, 180)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_object = 2 << 20,
			       .max_members = 4 };
	struct spindle_group_join join = { 0 };
	struct st_group g = { 0 };
	unsigned int nr = 0, i;
	int fd;

	st_open(&g, &c);
	snprintf(join.name, sizeof(join.name), "%s", g.name);
	st_contact(&join, st_addr(1));
	for (i = 0; i < 12; i++) {
		put(g.fd[i & 1], i & 1, nr, 1500000);
		fd = st_bound(2 + i % 2);
		CHECK_OK(st_join(fd, &join));
		put(fd, 7, i, 700000);
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		close(fd);
		get(g.fd[0], i & 1, nr, 1500000);
		get(g.fd[1], i & 1, nr, 1500000);
		get(g.fd[0], 7, i, 700000);
		get(g.fd[1], 7, i, 700000);
		nr++;
	}
	st_wait_members(g.fd[0], 2);
	put(g.fd[0], 0, nr, 1000000);
	get(g.fd[1], 0, nr, 1000000);
}

static unsigned int steps(int fd, unsigned int len, unsigned int algorithm,
			  struct spindle_explain *e)
{
	socklen_t size = sizeof(*e);

	memset(e, 0, sizeof(*e));
	e->len = len;
	e->how.algorithm = algorithm;
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_EXPLAIN, e, &size));
	CHECK_EQ(size, sizeof(*e));
	return e->steps;
}

TEST(it_is_explained)
{
	struct st_config c = { .members = 4, .nodes = 4, .max_object = 1 << 20, .block = 65536 };
	struct spindle_explain e = { 0 };
	socklen_t size = sizeof(e);
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_EQ(steps(g.fd[1], 100, 0, &e), 0);
	CHECK_EQ(e.object, 0);
	CHECK(!strcmp(e.why, "it fits the ring"));
	CHECK_EQ(steps(g.fd[1], 1 << 20, 0, &e), 2 + 16 - 1);
	CHECK_EQ(e.object, 1);
	CHECK_EQ(e.algorithm, SPINDLE_ALG_PIPELINE);
	CHECK_EQ(e.block, 65536);
	CHECK_EQ(e.blocks, 16);
	CHECK_EQ(e.nodes, 4);
	CHECK_EQ(steps(g.fd[1], 1 << 20, SPINDLE_ALG_SEQUENTIAL, &e), 3 * 16);
	CHECK_EQ(steps(g.fd[1], 1 << 20, SPINDLE_ALG_CHAIN, &e), 4 + 16 - 2);
	CHECK_EQ(steps(g.fd[1], 1 << 20, SPINDLE_ALG_TREE, &e), 2 * 16);
	CHECK(e.why[0]);
	e.len = (1 << 20) + 1;
	CHECK_ERR(getsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_EXPLAIN, &e, &size), EMSGSIZE);
	e.len = 1;
	e.__resv[0] = 1;
	CHECK_ERR(getsockopt(st_bound(0), SOL_SPINDLE, SPINDLE_EXPLAIN, &e, &size), ENOTCONN);
}

/* The papers' plain RDMC: one sender, no order among receivers, no views. */
TEST(plain)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_object = MAX_OBJECT,
			       .flags = SPINDLE_F_PLAIN };
	struct spindle_group_join join = { 0 };
	struct st_group g = { 0 };
	unsigned int i, k;
	int fd;

	st_open(&g, &c);
	CHECK_EQ(st_info(g.fd[1]).senders, 1);
	CHECK_EQ(st_info(g.fd[1]).flags & SPINDLE_F_PLAIN, SPINDLE_F_PLAIN);
	CHECK_ERR(send(g.fd[1], "x", 1, MSG_NOSIGNAL), EACCES);
	for (k = 0; k < 5; k++) {
		put(g.fd[0], 0, k, k & 1 ? 100 : 500000);
		for (i = 0; i < g.n; i++)
			get(g.fd[i], 0, k, k & 1 ? 100 : 500000);
	}
	/* Nobody comes later. */
	fd = st_bound(3);
	snprintf(join.name, sizeof(join.name), "%s", g.name);
	st_contact(&join, st_addr(0));
	CHECK_ERR(st_join(fd, &join), EUSERS);
	put(g.fd[0], 0, 9, 2000000);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	for (i = 0; i < g.n; i++) {
		get(g.fd[i], 0, 9, 2000000);
		st_expect_end(g.fd[i]);
	}
}

TEST(plain_fails_at_all)
{
	struct st_config c = { .members = 3, .nodes = 3, .max_object = MAX_OBJECT,
			       .flags = SPINDLE_F_PLAIN };
	struct st_group g = { 0 };
	char buf[10];

	st_open(&g, &c);
	put(g.fd[0], 0, 0, 100000);
	get(g.fd[1], 0, 0, 100000);
	close(g.fd[2]);
	CHECK_ERR(recv(g.fd[1], buf, sizeof(buf), 0), ECONNRESET);
	get(g.fd[0], 0, 0, 100000);
	CHECK_ERR(recv(g.fd[0], buf, sizeof(buf), 0), ECONNRESET);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
