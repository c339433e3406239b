// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that no sane program makes, at random. Nothing here may do more than
 * return an error, and a group beside it goes on. SPINDLE_SEED chooses other
 * numbers, SPINDLE_ROUNDS how many.
 */
#include "spindle_selftest.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

static uint64_t seed;
static unsigned char junk[16384];

static uint32_t any(uint32_t below)
{
	return st_random(&seed) % below;
}

/* Mostly near what means something, at times anything. */
static uint32_t number(void)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 1024, 4095, 4096, 4097,
		8192, 16383, 16384, 65536, 262144, 1 << 20, 8 << 20, 16 << 20, 0x7fffffff,
		0x80000000, 0xfffffffe, 0xffffffff,
	};

	return any(4) ? edges[any(ARRAY_SIZE(edges))] : (uint32_t)st_random(&seed);
}

static void fill_junk(void)
{
	uint64_t word;
	unsigned int i;

	for (i = 0; i < sizeof(junk); i += 8) {
		word = any(3) ? 0 : st_random(&seed);
		memcpy(junk + i, &word, 8);
	}
}

static void *pointer(void)
{
	switch (any(8)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)st_random(&seed);
	case 2:
		return (void *)(uintptr_t)0xffff888000000000ULL;
	case 3:
		return junk + sizeof(junk) - any(64);
	default:
		return junk;
	}
}

/* A configuration with a field or two gone wrong. */
static void mutate_create(struct spindle_group_create *c)
{
	uint32_t *fields = &c->members;

	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "h%d.%u", getpid(), any(3));
	c->members = 1 + any(2);
	while (any(2))
		fields[any((sizeof(*c) - offsetof(struct spindle_group_create, members)) / 4)] =
			number();
	while (!any(4))
		c->name[any(sizeof(c->name))] = any(256);
}

static void mutate_join(struct spindle_group_join *j)
{
	uint32_t *fields = &j->members;

	memset(j, 0, sizeof(*j));
	snprintf(j->name, sizeof(j->name), "h%d.%u", getpid(), any(3));
	st_contact(j, st_addr(any(2)));
	while (!any(3))
		fields[any((sizeof(*j) - offsetof(struct spindle_group_join, members)) / 4)] =
			number();
	while (!any(4))
		j->contact[any(sizeof(j->contact))] = any(256);
	while (!any(4))
		j->name[any(sizeof(j->name))] = any(256);
}

static void option(int fd)
{
	struct spindle_group_create c;
	struct spindle_group_join j;
	socklen_t len = any(3) ? any(400) : number();
	int level = any(8) ? SOL_SPINDLE : (int)number();

	switch (any(6)) {
	case 0:
		mutate_create(&c);
		setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, &c, sizeof(c));
		break;
	case 1:
		mutate_join(&j);
		setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &j, sizeof(j));
		break;
	case 2:
	case 3:
		fill_junk();
		setsockopt(fd, level, any(13), pointer(), len);
		break;
	default:
		getsockopt(fd, level, any(14), any(8) ? junk : NULL, any(8) ? &len : pointer());
		break;
	}
}

static void name(int fd)
{
	struct sockaddr_spindle ss = { .ss_family = st_family() };
	struct sockaddr_storage any_addr;
	socklen_t len = any(2) ? any(160) : number();

	switch (any(5)) {
	case 0:
		fill_junk();
		((struct sockaddr *)junk)->sa_family = any(50);
		bind(fd, (struct sockaddr *)junk, any(140));
		break;
	case 1:
		ss.ss_addr = st_mapped(st_addr(any(3)));
		ss.ss_scope_id = any(2) ? number() : 0;
		bind(fd, (struct sockaddr *)&ss, sizeof(ss));
		break;
	case 2:
		connect(fd, (struct sockaddr *)junk, any(140));
		break;
	case 3:
		getsockname(fd, (struct sockaddr *)&any_addr, &len);
		break;
	default:
		getpeername(fd, (struct sockaddr *)&any_addr, &len);
		break;
	}
}

static void message(int fd)
{
	struct iovec iov[4];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = any(5) };
	unsigned char control[256];
	unsigned int i;
	int flags = any(3) ? 0 : (int)number();

	for (i = 0; i < 4; i++)
		iov[i] = (struct iovec){ any(6) ? junk : pointer(), any(4) ? any(3000) : number() };
	if (!any(4)) {
		msg.msg_name = pointer();
		msg.msg_namelen = any(200);
	}
	if (!any(3)) {
		for (i = 0; i < sizeof(control); i++)
			control[i] = any(2) ? any(256) : 0;
		msg.msg_control = control;
		msg.msg_controllen = any(sizeof(control));
	}
	if (any(2))
		sendmsg(fd, &msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		recvmsg(fd, &msg, flags | MSG_DONTWAIT);
}

static void other(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = any(65536) };
	void *map;

	switch (any(7)) {
	case 0:
		ioctl(fd, any(2) ? 0x5400 + any(256) : 0x8900 + any(256), pointer());
		break;
	case 1:
		poll(&pfd, 1, 0);
		break;
	case 2:
		listen(fd, any(10));
		break;
	case 3:
		map = mmap(NULL, 1 + any(65536), PROT_READ, MAP_SHARED, fd, any(16) * 4096L);
		if (map != MAP_FAILED)
			FAIL("a socket was mapped");
		break;
	case 4:
		fcntl(fd, F_SETFL, O_NONBLOCK);
		break;
	default:
		if (!any(4))
			shutdown(fd, any(4));
		break;
	}
}

static int opened(void)
{
	int fd = st_socket(any(2) ? SOCK_NONBLOCK : 0);

	st_timeout(fd, SO_SNDTIMEO, 10);
	st_timeout(fd, SO_RCVTIMEO, 10);
	if (any(4))
		CHECK_OK(st_bind(fd, st_addr(any(2))));
	return fd;
}

/* One process that does anything to a few sockets of its own. */
static void torment(unsigned int number_of, unsigned int rounds)
{
	int fds[4];
	unsigned int i;
	int *fd;

	seed = st_env("SPINDLE_SEED", 1) * 1000 + number_of;
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = opened();
	for (i = 0; i < rounds; i++) {
		fd = &fds[any(ARRAY_SIZE(fds))];
		switch (any(10)) {
		case 0:
		case 1:
		case 2:
			option(*fd);
			break;
		case 3:
			name(*fd);
			break;
		case 4:
		case 5:
		case 6:
		case 7:
			message(*fd);
			break;
		case 8:
			other(*fd);
			break;
		default:
			close(*fd);
			*fd = opened();
			break;
		}
	}
}

static void sane(int *fds)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		st_say(fds[i], "sane");
	for (i = 0; i < 9; i++)
		st_expect(fds[i % 3], "sane");
}

TEST_SECONDS(random_calls, 5 * ST_TEST)
{
	unsigned int rounds = st_env("SPINDLE_ROUNDS", 4000);
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i, k;
	pid_t pid[4];

	st_open(&g, &c);
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = CHECK_OK(fork());
		if (!pid[i]) {
			/* the numbers it plays with are not to be the group's */
			for (k = 0; k < 3; k++)
				close(g.fd[k]);
			torment(i, rounds);
			_exit(0);
		}
		sane(g.fd);
	}
	for (i = 0; i < ARRAY_SIZE(pid); i++)
		st_reap(pid[i]);
	/* and the group beside it never noticed */
	sane(g.fd);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_ACTIVE);
}

/* Threads that do everything to one socket at once, while it is closed, too. */

struct crowd {
	int fd;
	int stop;
	struct st_group *g;
};

static void *crowd_send(void *arg)
{
	struct crowd *crowd = arg;

	while (!__atomic_load_n(&crowd->stop, __ATOMIC_RELAXED))
		if (send(crowd->fd, junk, 500, MSG_NOSIGNAL) < 0)
			sched_yield();
	return NULL;
}

static void *crowd_recv(void *arg)
{
	static unsigned char buf[4096];
	struct crowd *crowd = arg;

	while (!__atomic_load_n(&crowd->stop, __ATOMIC_RELAXED))
		if (recv(crowd->fd, buf, sizeof(buf), 0) <= 0)
			sched_yield();
	return NULL;
}

static void *crowd_ask(void *arg)
{
	struct crowd *crowd = arg;
	struct spindle_group_info info;
	struct sockaddr_spindle view[64];
	struct spindle_stable stable;
	socklen_t len;
	unsigned int n = 0;
	int val;

	while (!__atomic_load_n(&crowd->stop, __ATOMIC_RELAXED)) {
		struct pollfd pfd = { .fd = crowd->fd, .events = POLLIN | POLLOUT };

		len = sizeof(info);
		getsockopt(crowd->fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &info, &len);
		len = sizeof(view);
		getsockopt(crowd->fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len);
		len = sizeof(view);
		getsockname(crowd->fd, (struct sockaddr *)view, &len);
		ioctl(crowd->fd, FIONREAD, &val);
		len = sizeof(stable);
		getsockopt(crowd->fd, SOL_SPINDLE, SPINDLE_STABLE, &stable, &len);
		st_option(crowd->fd, SPINDLE_EVENTS, SPINDLE_WANT_STABLE);
		/* each has others asked, which is the dearest of all these */
		if (!(n++ % 16))
			st_option(crowd->fd, SPINDLE_SYNC, SPINDLE_SYNC_DONTWAIT |
				  (n & 16 ? SPINDLE_SYNC_RECEIVED : SPINDLE_SYNC_CONSUMED));
		poll(&pfd, 1, 0);
		sched_yield();
	}
	return NULL;
}

TEST_SECONDS(threads_against_each_other, 3 * ST_TEST)
{
	static const unsigned int ends[] = { SHUT_RD, SHUT_WR, SHUT_RDWR, 3 };
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .depth = 16 };
	unsigned int round, i;

	signal(SIGPIPE, SIG_IGN);
	for (round = 0; round < 24; round++) {
		void *(*const work[])(void *) = { crowd_send, crowd_recv, crowd_ask };
		struct crowd crowds[2] = { 0 };
		struct st_group g = { 0 };
		pthread_t threads[6];
		int other;

		st_open(&g, &c);
		other = CHECK_OK(dup(g.fd[0]));
		for (i = 0; i < 6; i++) {
			crowds[i / 3].fd = g.fd[i / 3];
			CHECK_EQ(pthread_create(&threads[i], NULL, work[i % 3], &crowds[i / 3]),
				 0);
		}
		WAIT_UNTIL(st_info(g.fd[0]).sent > 50, ST_SOON);
		if (ends[round % 4] < 3)
			shutdown(g.fd[0], ends[round % 4]);
		/*
		 * The number goes away under the threads, and with the last
		 * call in it the socket. Its partner that leaves wakes nobody
		 * who only reads.
		 */
		dup2(STDERR_FILENO, g.fd[0]);
		if (ends[round % 4] == 3)
			shutdown(other, SHUT_RD);
		close(other);
		for (i = 0; i < 2; i++)
			__atomic_store_n(&crowds[i].stop, 1, __ATOMIC_RELAXED);
		/* a call that holds the socket may wait for its partner */
		shutdown(g.fd[1], SHUT_RDWR);
		dup2(STDERR_FILENO, g.fd[1]);
		for (i = 0; i < 6; i++)
			pthread_join(threads[i], NULL);
		close(g.fd[0]);
		close(g.fd[1]);
	}
}

TEST_SECONDS(create_and_join_against_each_other, 3 * ST_TEST)
{
	unsigned int rounds = 60, i, k;
	pid_t pid[4];

	/* all want the same name, on two nodes, and leave again at once */
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = CHECK_OK(fork());
		if (pid[i])
			continue;
		seed = i;
		for (k = 0; k < rounds; k++) {
			struct spindle_group_create c = { .name = "race", .members = 2 };
			struct spindle_group_join j = { .name = "race" };
			int fd = st_bound(i & 1);

			st_timeout(fd, SO_SNDTIMEO, 200);
			st_contact(&j, st_addr(any(2)));
			if (any(2) ? st_create(fd, &c) : st_join(fd, &j)) {
				/* the node that is asked may go away, and come back, meanwhile */
				if (errno != EEXIST && errno != ENOENT && errno != EUSERS &&
				    errno != EHOSTDOWN && errno != ECONNREFUSED &&
				    errno != EHOSTUNREACH && errno != ETIMEDOUT &&
				    errno != ECONNRESET)
					FAIL("%s", st_err(errno));
			} else {
				send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
				recv(fd, junk, 1, MSG_DONTWAIT);
			}
			close(fd);
		}
		_exit(0);
	}
	for (i = 0; i < ARRAY_SIZE(pid); i++)
		st_reap(pid[i]);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
