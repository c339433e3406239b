// SPDX-License-Identifier: GPL-2.0
/*
 * What the calls do at their edges: messages before errors, whichever call
 * reads them; SIGIO; joining without waiting; what is refused.
 */
#include "spindle_selftest.h"

#include <liburing.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define UNREAD		5
#define READABLE	(POLLIN | POLLRDNORM)
#define WRITABLE	(POLLOUT | POLLWRNORM)
#define BROKEN_OFF	(POLLERR | POLLHUP)

static struct st_msg m;

static struct spindle_group_join join_of(const char *name, const char *contact)
{
	struct spindle_group_join j = { 0 };

	snprintf(j.name, sizeof(j.name), "%s", name);
	st_contact(&j, contact);
	return j;
}

/*
 * A group that has failed, and whose member 1 has not read UNREAD messages,
 * "0" and so on. Member 3 is on the same node: what it has read was delivered
 * there.
 */
static int failed_and_unread(bool detached)
{
	struct st_config c = { .members = 4, .nodes = 2 };
	struct st_group g = { 0 };
	int i, on = detached;
	char text[2] = "";

	st_open(&g, &c);
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	for (i = 0; i < UNREAD; i++) {
		text[0] = '0' + i;
		st_say(g.fd[0], text);
	}
	for (i = 0; i < UNREAD; i++)
		CHECK_OK(st_recv(g.fd[3], &m, 0));
	st_fail_second(&g, g.fd[1]);
	return g.fd[1];
}

static void check_text(const char *got, ssize_t len, int nth)
{
	if (len != 1 || got[0] != '0' + nth)
		BROKEN("received \"%.*s\" (%zd), not \"%d\"", (int)(len > 0 ? len : 0), got, len,
		       nth);
}

/* Messages, then the error */

static int many(int fd, unsigned int n, int nth)
{
	static char text[UNREAD + 1][8];
	struct mmsghdr msgs[UNREAD + 1] = { 0 };
	struct iovec iov[UNREAD + 1];
	unsigned int i;
	int got;

	CHECK(n <= ARRAY_SIZE(msgs));
	for (i = 0; i < n; i++) {
		iov[i] = (struct iovec){ text[i], sizeof(text[i]) };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	got = recvmmsg(fd, msgs, n, 0, NULL);
	for (i = 0; got > 0 && i < (unsigned int)got; i++)
		check_text(text[i], msgs[i].msg_len, nth + i);
	return got;
}

TEST(recvmmsg_of_all)
{
	int fd = failed_and_unread(false);

	CHECK_SAME(CHECK_OK(many(fd, UNREAD + 1, 0)), UNREAD);
	CHECK_ERR(many(fd, 1, 0), ENETDOWN);
	CHECK_ERR(many(fd, 1, 0), ENETDOWN);
}

TEST(recvmmsg_of_as_many_as_there_are)
{
	int fd = failed_and_unread(false);

	CHECK_SAME(CHECK_OK(many(fd, UNREAD, 0)), UNREAD);
	CHECK_ERR(many(fd, 1, 0), ENETDOWN);
	CHECK_ERR(many(fd, 1, 0), ENETDOWN);
}

TEST(recvmmsg_of_a_few_at_a_time)
{
	int fd = failed_and_unread(false), nth;

	for (nth = 0; nth < UNREAD - 1; nth += 2)
		CHECK_SAME(CHECK_OK(many(fd, 2, nth)), 2);
	CHECK_SAME(CHECK_OK(many(fd, 2, nth)), UNREAD - nth);
	CHECK_ERR(many(fd, 2, 0), ENETDOWN);
}

TEST(recvmmsg_of_a_detached_member)
{
	int fd = failed_and_unread(true);

	CHECK_SAME(CHECK_OK(many(fd, UNREAD + 1, 0)), UNREAD);
	CHECK_ERR(many(fd, 1, 0), ENETDOWN);
}

TEST(read_and_readv)
{
	int fd = failed_and_unread(false), i;
	char text[8];

	for (i = 0; i < UNREAD; i++) {
		struct iovec iov = { text, sizeof(text) };
		ssize_t len = i % 2 ? readv(fd, &iov, 1) : read(fd, text, sizeof(text));

		check_text(text, CHECK_OK(len), i);
	}
	CHECK_ERR(read(fd, text, sizeof(text)), ENETDOWN);
	CHECK_ERR(read(fd, text, sizeof(text)), ENETDOWN);
}

static struct io_uring uring;
static char uring_text[8];

static void uring_open(void)
{
	int ret = io_uring_queue_init(8, &uring, 0);

	if (ret)
		st_skip("no io_uring here");
}

static void uring_begin(int fd)
{
	io_uring_prep_recv(io_uring_get_sqe(&uring), fd, uring_text, sizeof(uring_text), 0);
	CHECK_EQ(io_uring_submit(&uring), 1);
}

static int uring_end(void)
{
	struct io_uring_cqe *cqe;
	int ret;

	CHECK_EQ(io_uring_wait_cqe(&uring, &cqe), 0);
	ret = cqe->res;
	io_uring_cqe_seen(&uring, cqe);
	return ret;
}

TEST(io_uring_receives)
{
	int fd, i;

	uring_open();
	fd = failed_and_unread(false);
	for (i = 0; i < UNREAD; i++) {
		uring_begin(fd);
		check_text(uring_text, uring_end(), i);
	}
	uring_begin(fd);
	CHECK_EQ(uring_end(), -ENETDOWN);
	io_uring_queue_exit(&uring);
}

TEST(io_uring_waits)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	uring_open();
	st_open(&g, &c);
	uring_begin(g.fd[1]);
	st_say(g.fd[0], "0");
	check_text(uring_text, uring_end(), 0);
	uring_begin(g.fd[1]);
	st_break(1, 0);
	CHECK_EQ(uring_end(), -ENETDOWN);
	io_uring_queue_exit(&uring);
}

static void error_behind_messages(bool detached)
{
	int fd = failed_and_unread(detached), i;

	for (i = 0; i < UNREAD; i++) {
		/* who wants to write need not wait for who reads */
		CHECK_EQ(st_events(fd), READABLE | WRITABLE);
		CHECK_EQ(st_so_error(fd), 0);
		CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), ENETDOWN);
		check_text(m.data, CHECK_OK(st_recv(fd, &m, 0)), i);
	}
	CHECK_EQ(st_so_error(fd), ENETDOWN);
	CHECK_EQ(st_so_error(fd), 0);
	CHECK_EQ(st_events(fd), READABLE | WRITABLE | BROKEN_OFF);
	CHECK_ERR(st_recv(fd, &m, 0), ENETDOWN);
	CHECK_EQ(st_so_error(fd), 0);
}

TEST(poll_and_so_error)
{
	error_behind_messages(false);
}

TEST(poll_and_so_error_of_a_detached_member)
{
	error_behind_messages(true);
}

TEST(a_peek_is_no_reading)
{
	int fd = failed_and_unread(false), i;

	for (i = 0; i < UNREAD - 1; i++)
		CHECK_OK(st_recv(fd, &m, 0));
	check_text(m.data, CHECK_OK(st_recv(fd, &m, MSG_PEEK)), i);
	CHECK_EQ(st_so_error(fd), 0);
	CHECK_EQ(many(fd, 1, i), 1);
	CHECK_EQ(st_so_error(fd), ENETDOWN);
}

TEST(who_reads_no_more_has_the_error_at_once)
{
	int fd = failed_and_unread(false);

	CHECK_OK(shutdown(fd, SHUT_RD));
	CHECK_EQ(st_so_error(fd), ENETDOWN);
	CHECK_EQ(st_events(fd) & BROKEN_OFF, BROKEN_OFF);
	CHECK_EQ(st_recv(fd, &m, 0), 0);
}

static void break_it(pid_t sleeper, void *arg)
{
	(void)sleeper;
	(void)arg;
	st_break(1, 0);
}

static void read_all(pid_t sleeper, void *fd)
{
	int i;

	(void)sleeper;
	for (i = 0; i < UNREAD; i++)
		check_text(m.data, CHECK_OK(st_recv(*(int *)fd, &m, 0)), i);
}

TEST(the_last_message_wakes_who_polls_for_the_error)
{
	int fd = failed_and_unread(false);
	struct pollfd pfd = { .fd = fd };
	pthread_t thread = st_in_call(read_all, &fd);

	CHECK_EQ(poll(&pfd, 1, st_bound_ms(ST_SOON)), 1);
	CHECK_EQ(pfd.revents, BROKEN_OFF);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(the_last_message_wakes_who_polls_for_the_end)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	struct pollfd pfd;
	pthread_t thread;
	char text[2] = "";
	int i;

	st_open(&g, &c);
	for (i = 0; i < UNREAD; i++) {
		text[0] = '0' + i;
		st_say(g.fd[1], text);
	}
	for (i = 0; i < 2; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	st_wait_state(g.fd[0], SPINDLE_STATE_CLOSED);
	pfd = (struct pollfd){ .fd = g.fd[0], .events = POLLRDHUP };
	thread = st_in_call(read_all, &g.fd[0]);
	CHECK_EQ(poll(&pfd, 1, st_bound_ms(ST_SOON)), 1);
	CHECK_EQ(pfd.revents, POLLRDHUP | POLLHUP);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(failure_wakes_who_polls_for_room)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	struct pollfd pfd;
	pthread_t thread;

	st_open(&g, &c);
	while (send(g.fd[1], &m, 1024, MSG_DONTWAIT) == 1024)
		;
	CHECK_EQ(errno, EAGAIN);
	st_wait_events(g.fd[1], POLLIN);
	pfd = (struct pollfd){ .fd = g.fd[1], .events = POLLOUT };
	thread = st_in_call(break_it, NULL);
	CHECK_EQ(poll(&pfd, 1, st_bound_ms(ST_SOON)), 1);
	/* its own messages are still there, so there is no error yet */
	CHECK_EQ(pfd.revents, POLLOUT);
	CHECK_ERR(send(g.fd[1], &m, 1024, MSG_NOSIGNAL), ENETDOWN);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* SIGIO */

static sigset_t async_set;

static void async_on(int fd)
{
	sigemptyset(&async_set);
	sigaddset(&async_set, SIGRTMIN);
	CHECK_OK(sigprocmask(SIG_BLOCK, &async_set, NULL));
	CHECK_OK(fcntl(fd, F_SETOWN, getpid()));
	CHECK_OK(fcntl(fd, F_SETSIG, SIGRTMIN));
	CHECK_OK(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
}

/* The next signal for a reason; those for others are passed by. */
static bool async_came(int why, double seconds)
{
	struct timespec left = { seconds, (seconds - (time_t)seconds) * 1e9 };
	siginfo_t info;

	while (sigtimedwait(&async_set, &info, &left) == SIGRTMIN)
		if (info.si_code == why)
			return true;
	return false;
}

static void expect_async(int why)
{
	if (!async_came(why, st_bound_s(ST_SOON)))
		FAIL("no signal %d in %g s", why, st_bound_s(ST_SOON));
}

static int unfreed(int fd)
{
	int bytes;

	CHECK_OK(ioctl(fd, SIOCOUTQ, &bytes));
	return bytes;
}

/* Make room for a writer that found none. */
static void room_for_one(bool by_poll)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	int round;

	st_open(&g, &c);
	async_on(g.fd[0]);
	/* of the view, which may only now have told us */
	st_say(g.fd[1], "x");
	expect_async(POLL_IN);
	st_expect(g.fd[0], "x");
	st_expect(g.fd[1], "x");
	while (async_came(POLL_OUT, 0))
		;
	for (round = 0; round < 3; round++) {
		unsigned int n = 0;

		if (by_poll)
			for (; st_events(g.fd[0]) & POLLOUT; n++)
				CHECK_EQ(CHECK_OK(send(g.fd[0], &m, 1024, 0)), 1024);
		else
			while (send(g.fd[0], &m, 1024, 0) == 1024)
				n++;
		CHECK(n);
		for (; n; n--) {
			st_wait_events(g.fd[0], POLLIN);
			CHECK_OK(st_recv(g.fd[0], &m, 0));
			CHECK_OK(st_recv(g.fd[1], &m, 0));
		}
		do
			expect_async(POLL_OUT);
		while (!(st_events(g.fd[0]) & POLLOUT));
		/* who has not asked again is not told again */
		while (async_came(POLL_OUT, 0))
			;
		CHECK_EQ(CHECK_OK(send(g.fd[0], &m, 1024, 0)), 1024);
		st_wait_events(g.fd[0], POLLIN);
		CHECK_OK(st_recv(g.fd[0], &m, 0));
		CHECK_OK(st_recv(g.fd[1], &m, 0));
		WAIT_UNTIL(!unfreed(g.fd[0]), ST_SOON);
		CHECK(!async_came(POLL_OUT, 0));
	}
}

TEST(sigio_for_room)
{
	room_for_one(false);
}

TEST(sigio_for_room_that_poll_missed)
{
	room_for_one(true);
}

TEST(sigio_for_a_message_and_for_the_end)
{
	struct st_config c = { .members = 3, .nodes = 2 };
	struct spindle_group_join j;
	struct st_group g = { 0 };

	st_open_but(&g, &c, 1);
	async_on(g.fd[1]);
	CHECK_EQ(st_events(g.fd[1]), 0);
	j = join_of(g.name, st_addr(0));
	g.fd[2] = st_bound(0);
	CHECK_OK(st_join(g.fd[2], &j));
	/* the view is there */
	expect_async(POLL_OUT);
	st_say(g.fd[2], "x");
	expect_async(POLL_IN);
	st_expect(g.fd[1], "x");
	st_break(1, 0);
	expect_async(POLL_ERR);
	CHECK_EQ(st_so_error(g.fd[1]), ENETDOWN);
}

/* What is not sent */

TEST(descriptors_are_not_passed)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { "x", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fd = st_alone(), passed = 0;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(passed));
	memcpy(CMSG_DATA(cmsg), &passed, sizeof(passed));
	CHECK_ERR(sendmsg(fd, &msg, 0), EINVAL);
	cmsg->cmsg_level = SOL_SPINDLE;
	cmsg->cmsg_type = SPINDLE_CMSG_INFO + 1;
	CHECK_ERR(sendmsg(fd, &msg, 0), EINVAL);
	st_expect_none(fd);
	/* who sends on what it has received need not clear what came with it */
	cmsg->cmsg_type = SPINDLE_CMSG_INFO;
	CHECK_EQ(CHECK_OK(sendmsg(fd, &msg, 0)), 1);
	st_expect(fd, "x");
	msg.msg_controllen = 0;
	CHECK_EQ(CHECK_OK(sendmsg(fd, &msg, 0)), 1);
	st_expect(fd, "x");
}

TEST(nothing_is_spliced_in)
{
	int fd = st_alone(), file = CHECK_OK(open("/proc/self/exe", O_RDONLY)), pipes[2];

	CHECK_OK(pipe(pipes));
	CHECK_EQ(write(pipes[1], "text", 4), 4);
	CHECK_ERR(splice(pipes[0], NULL, fd, NULL, 4, 0), EOPNOTSUPP);
	CHECK_ERR(splice(pipes[0], NULL, fd, NULL, 4, SPLICE_F_MORE), EOPNOTSUPP);
	CHECK_ERR(sendfile(fd, file, NULL, 100), EOPNOTSUPP);
	CHECK_ERR(sendfile(fd, file, NULL, 100000), EOPNOTSUPP);
	st_expect_none(fd);
}

TEST(messages_are_spliced_out)
{
	int fd = st_alone(), pipes[2];
	char text[32];

	CHECK_OK(pipe(pipes));
	st_say(fd, "one");
	st_say(fd, "two");
	CHECK_SAME(CHECK_OK(splice(fd, NULL, pipes[1], NULL, 4096, 0)), 3);
	CHECK_SAME(CHECK_OK(splice(fd, NULL, pipes[1], NULL, 4096, 0)), 3);
	CHECK_SAME(CHECK_OK(read(pipes[0], text, sizeof(text))), 6);
	CHECK_INTACT(!memcmp(text, "onetwo", 6));
}

TEST(depth_keeps_a_place_for_the_last_word)
{
	struct st_config c = { .members = 1, .depth = 16 };
	struct st_group g = { 0 };
	unsigned int n = 0;

	st_open(&g, &c);
	while (!send(g.fd[0], "", 0, MSG_DONTWAIT))
		n++;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(n, c.depth - 1);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	for (; n; n--) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 0);
		CHECK_SAME(m.flags & MSG_EOR, MSG_EOR);
	}
	st_expect_end(g.fd[0]);
}

/* Before a group, and on the way into one */

/* An address of the same net that nobody has. */
static struct spindle_group_join join_nowhere(void)
{
	struct in_addr in = st_in(st_addr(0)).sin_addr;
	char text[INET_ADDRSTRLEN];

	in.s_addr = htonl((ntohl(in.s_addr) & ~0xffU) | 251);
	return join_of("nobody-has-it", inet_ntop(AF_INET, &in, text, sizeof(text)));
}

static int bound_nonblocking(unsigned int node)
{
	int fd = st_bound(node);

	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	return fd;
}

/* A join that has begun ends: the errno, or 0. */
static int join_ends(int fd)
{
	st_wait_events(fd, POLLOUT);
	return st_so_error(fd);
}

TEST(poll_in_no_group)
{
	struct spindle_group_join j = join_of("nobody-has-it", st_addr(0));
	int fd = st_socket(0);

	CHECK_EQ(st_events(fd), WRITABLE | POLLHUP);
	CHECK_OK(st_bind(fd, st_addr(0)));
	CHECK_EQ(st_events(fd), WRITABLE | POLLHUP);
	CHECK_ERR(st_join(fd, &j), ENOENT);
	CHECK_EQ(st_events(fd), WRITABLE | POLLHUP);
	CHECK_EQ(st_so_error(fd), 0);
}

TEST(join_in_progress)
{
	struct spindle_group_create create = { .name = "not-yet", .members = 1 };
	struct spindle_group_join j = join_nowhere();
	int fd = bound_nonblocking(0);

	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	CHECK_ERR(st_join(fd, &j), EALREADY);
	CHECK_ERR(st_create(fd, &create), EALREADY);
	CHECK_EQ(st_events(fd), 0);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
	st_wait_events(fd, POLLOUT);
	CHECK_EQ(st_events(fd), WRITABLE | BROKEN_OFF);
	CHECK(st_so_error(fd));
	CHECK_EQ(st_events(fd), WRITABLE | POLLHUP);
	/* and it may try again, or something else */
	st_timeout(fd, SO_SNDTIMEO, 100);
	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	CHECK_EQ(join_ends(fd), ETIMEDOUT);
	CHECK_OK(st_create(fd, &create));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
}

TEST(join_that_is_refused)
{
	struct spindle_group_join j = join_of("nobody-has-it", st_addr(1));
	int fd = bound_nonblocking(0), far = st_bound(1);

	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	CHECK_EQ(join_ends(fd), ENOENT);
	CHECK_OK(close(far));
	j = join_of("nobody-has-it", st_addr(9));
	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	CHECK_EQ(join_ends(fd), ECONNREFUSED);
	/* what this node knows by itself it says at once */
	j = join_of("nobody-has-it", st_addr(0));
	CHECK_ERR(st_join(fd, &j), ENOENT);
	CHECK_EQ(st_so_error(fd), 0);
}

/* An error that nobody has asked for does not come up in the next group. */
TEST(join_after_one_that_was_refused)
{
	struct spindle_group_join j = join_of("nobody-has-it", st_addr(9));
	struct spindle_group_create create = { .name = "another-way", .members = 1 };
	int fd = bound_nonblocking(0);

	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	st_wait_events(fd, POLLERR);
	CHECK_OK(st_create(fd, &create));
	CHECK_EQ(st_so_error(fd), 0);
}

TEST(join_without_waiting)
{
	struct st_config c = { .members = 4, .nodes = 3 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int i;

	st_open_but(&g, &c, 3);
	j = join_of(g.name, st_addr(0));
	for (i = 1; i < 4; i++) {
		g.fd[i] = bound_nonblocking(i % 3);
		j.flags = i == 2 ? SPINDLE_F_RECEIVER : 0;
		if (!st_join(g.fd[i], &j))
			CHECK_EQ(i, 3);		/* on the creator's node */
		else
			CHECK_EQ(errno, EINPROGRESS);
	}
	for (i = 1; i < 4; i++) {
		CHECK_EQ(join_ends(g.fd[i]), 0);
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_ACTIVE);
		CHECK_ERR(st_join(g.fd[i], &j), EISCONN);
	}
	st_wait_state(g.fd[0], SPINDLE_STATE_ACTIVE);
	st_say(g.fd[3], "in");
	for (i = 0; i < 4; i++) {
		st_wait_events(g.fd[i], POLLIN);
		st_expect(g.fd[i], "in");
	}
	CHECK_ERR(send(g.fd[2], "x", 1, 0), EACCES);
}

TEST(join_tells_by_a_signal)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_join j;
	struct st_group g = { 0 };
	int fd = st_bound(1);

	st_open_but(&g, &c, 1);
	async_on(fd);
	j = join_of(g.name, st_addr(0));
	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	do
		expect_async(POLL_OUT);
	while (!(st_events(fd) & POLLOUT));
	j = join_of("nobody-has-it", st_addr(0));
	fd = st_bound(1);
	async_on(fd);
	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	expect_async(POLL_ERR);
	CHECK_EQ(st_so_error(fd), ENOENT);
}

TEST(closed_while_joining)
{
	/* more than all that come and go could make complete */
	struct st_config c = { .members = 24, .nodes = 3 };
	struct spindle_group_join j = join_nowhere();
	struct st_group g = { 0 };
	int fd = bound_nonblocking(1), i;

	CHECK_ERR(st_join(fd, &j), EINPROGRESS);
	CHECK_OK(close(fd));
	/* its place becomes free, whenever it is closed */
	st_open_but(&g, &c, 23);
	j = join_of(g.name, st_addr(0));
	for (i = 0; i < 20; i++) {
		fd = bound_nonblocking(1);
		CHECK_ERR(st_join(fd, &j), EINPROGRESS);
		st_pause_us(i * 100);
		CHECK_OK(close(fd));
	}
	for (i = 1; i < 24; i++) {
		g.fd[i] = st_bound(i % 3);
		WAIT_UNTIL(!AGAIN(st_join(g.fd[i], &j), EUSERS), ST_SOON);
	}
	for (i = 0; i < 24; i++)
		st_wait_state(g.fd[i], SPINDLE_STATE_ACTIVE);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
