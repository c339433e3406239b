// SPDX-License-Identifier: GPL-2.0
/*
 * What programs see of views that come and go: events in the stream, leaving,
 * state for one member, how far one's messages have come, and being put out.
 */
#include "spindle_selftest.h"

#include <sys/ioctl.h>

#define MAX_EVENT	8192

/* An event, as it came. */
struct event {
	union {
		struct spindle_event e;
		char room[MAX_EVENT];
	};
};

static void want(int fd, int mask)
{
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, sizeof(mask)));
}

static ssize_t take(int fd, void *buf, size_t size, int *flags)
{
	struct iovec iov = { buf, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &msg, *flags);

	*flags = msg.msg_flags;
	return n;
}

static void expect_event(int fd, struct event *ev, unsigned int type)
{
	int flags = 0;
	ssize_t n;

	memset(ev, 0, sizeof(*ev));
	n = CHECK_OK(take(fd, ev, sizeof(*ev), &flags));
	if (!(flags & MSG_SPINDLE_EVENT))
		FAIL("a message of %zd bytes (\"%.20s\"), no event", n, ev->room);
	CHECK(flags & MSG_EOR);
	CHECK_EQ(n, sizeof(ev->e) +
		 (ev->e.members + ev->e.left) * sizeof(ev->e.member[0]));
	CHECK_EQ(ev->e.type, type);
}

static int live_flags(const struct st_group *g, unsigned int node, unsigned int flags, int mask)
{
	struct spindle_group_join join = { .flags = flags };
	int fd = st_bound(node);
	int on = 1;

	snprintf(join.name, sizeof(join.name), "%s", g->name);
	st_contact(&join, st_addr(0));
	want(fd, mask);
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	CHECK_OK(st_join(fd, &join));
	return fd;
}

static int leave(int fd)
{
	int zero = 0;

	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &zero, sizeof(zero));
}

static int sync_to(int fd, int what)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what));
}

static struct spindle_stability stability(int fd)
{
	struct spindle_stability s;
	socklen_t len = sizeof(s);

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_STABILITY, &s, &len));
	CHECK_EQ(len, sizeof(s));
	return s;
}

/* State for the member with that number. */
static ssize_t give(int fd, const char *text, unsigned int uid, unsigned int flags)
{
	char control[CMSG_SPACE(sizeof(struct spindle_state))] = { 0 };
	struct spindle_state state = { uid, flags };
	struct iovec iov = { (void *)text, strlen(text) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SPINDLE;
	cmsg->cmsg_type = SPINDLE_CMSG_STATE;
	cmsg->cmsg_len = CMSG_LEN(sizeof(state));
	memcpy(CMSG_DATA(cmsg), &state, sizeof(state));
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

TEST(events_mask)
{
	socklen_t len = sizeof(int);
	int fd = st_bound(0);
	int mask = -1;

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, &len));
	CHECK_EQ(mask, 0);
	want(fd, SPINDLE_WANT_ALL);
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, &len));
	CHECK_EQ(mask, SPINDLE_WANT_ALL);
	mask = 1;
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, sizeof(mask)), EINVAL);
	mask = SPINDLE_WANT_ALL << 1;
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, sizeof(mask)), EINVAL);
}

TEST(calls_before_a_group)
{
	struct spindle_stability s;
	socklen_t len = sizeof(s);
	int fd = st_bound(0);
	int bad = 1;

	CHECK_ERR(leave(fd), ENOTCONN);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &bad, sizeof(bad)), EINVAL);
	CHECK_ERR(sync_to(fd, SPINDLE_SYNC_RECEIVED), ENOTCONN);
	CHECK_ERR(sync_to(fd, 0), EINVAL);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_STABILITY, &s, &len), ENOTCONN);
}

TEST(limits_of_a_group)
{
	struct spindle_group_create c = { .members = 20 };
	struct spindle_group_info info;
	int fd;

	st_name(c.name);
	c.max_members = 19;
	CHECK_ERR(st_create(st_bound(0), &c), ERANGE);
	c.max_members = SPINDLE_MAX_MEMBERS + 1;
	CHECK_ERR(st_create(st_bound(0), &c), ERANGE);
	c.max_members = 0;
	c.suspect_ms = SPINDLE_MIN_SUSPECT - 1;
	CHECK_ERR(st_create(st_bound(0), &c), ERANGE);
	c.suspect_ms = SPINDLE_MAX_SUSPECT + 1;
	CHECK_ERR(st_create(st_bound(0), &c), ERANGE);
	c.suspect_ms = 700;
	c.flags = SPINDLE_F_STATE;
	CHECK_ERR(st_create(st_bound(0), &c), EINVAL);
	c.flags = SPINDLE_F_MINORITY;
	c.evict_ms = 3000;
	fd = st_bound(0);
	CHECK_OK(st_create(fd, &c));
	info = st_info(fd);
	CHECK_EQ(info.max_members, 20);
	CHECK_EQ(info.suspect_ms, 700);
	CHECK_EQ(info.evict_ms, 3000);
	CHECK_EQ(info.flags, SPINDLE_F_MINORITY);
	CHECK_EQ(info.nodes, 0);
}

TEST(first_view)
{
	struct st_config c = { .members = 2, .nodes = 2, .receivers = 2 };
	struct st_group g = { 0 };
	static struct event ev;
	struct event again;
	socklen_t len = sizeof(again);

	st_name(g.name);
	st_open_but(&g, &c, 1);
	want(g.fd[0], SPINDLE_WANT_VIEW);
	g.fd[1] = live_flags(&g, 1, SPINDLE_F_RECEIVER, SPINDLE_WANT_VIEW);
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.view, 1);
	CHECK_EQ(ev.e.members, 2);
	CHECK_EQ(ev.e.left, 0);
	CHECK_EQ(ev.e.number, 1);
	CHECK_EQ(ev.e.member[0].flags, SPINDLE_EM_JOINED | SPINDLE_EM_SELF);
	CHECK_EQ(ev.e.member[1].flags, SPINDLE_EM_JOINED | SPINDLE_EM_RECEIVER);
	CHECK_EQ(ev.e.member[1].rank, 1);
	CHECK(ev.e.member[0].uid != ev.e.member[1].uid);
	expect_event(g.fd[1], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.member[1].flags,
		 SPINDLE_EM_JOINED | SPINDLE_EM_RECEIVER | SPINDLE_EM_SELF);
	/* the same by its number, and as where the member reads */
	memset(&again, 0, sizeof(again));
	again.e.number = ev.e.number;
	CHECK_OK(getsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_EVENT, &again, &len));
	CHECK(!memcmp(&again, &ev, len));
	again.e.number = 0;
	len = sizeof(again);
	CHECK_OK(getsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_EVENT, &again, &len));
	CHECK_EQ(again.e.view, 1);
	again.e.number = 77;
	CHECK_ERR(getsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_EVENT, &again, &len), ENOENT);
	CHECK_EQ(st_info(g.fd[0]).nodes, 2);
}

/* Peeked, cut short, and not seen by poll() when it is not wanted. */
TEST(event_as_a_message)
{
	struct st_config c = { .members = 1 };
	struct st_group g = { 0 };
	static struct event ev;
	int flags, bytes;

	st_open(&g, &c);
	/* nobody wanted it when it came, and nobody was told */
	CHECK_EQ(st_events(g.fd[0]) & POLLIN, 0);
	want(g.fd[0], SPINDLE_WANT_VIEW);
	CHECK_EQ(st_events(g.fd[0]) & POLLIN, 0);
	g.fd[1] = live_flags(&g, 1, 0, SPINDLE_WANT_VIEW);
	st_wait_events(g.fd[0], POLLIN);
	flags = MSG_PEEK;
	CHECK_EQ(take(g.fd[0], &ev, 8, &flags), 8);
	CHECK(flags & MSG_TRUNC);
	CHECK(flags & MSG_SPINDLE_EVENT);
	flags = MSG_PEEK | MSG_TRUNC;
	CHECK_EQ(take(g.fd[0], &ev, 8, &flags),
		 sizeof(ev.e) + 2 * sizeof(ev.e.member[0]));
	CHECK_OK(ioctl(g.fd[0], FIONREAD, &bytes));
	CHECK_EQ(bytes, sizeof(ev.e) + 2 * sizeof(ev.e.member[0]));
	CHECK_EQ(st_info(g.fd[0]).received, 0);
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.view, 2);
	CHECK_EQ(ev.e.member[0].flags, SPINDLE_EM_SELF);
	CHECK_EQ(ev.e.member[1].flags, SPINDLE_EM_JOINED);
	CHECK_EQ(st_events(g.fd[0]) & POLLIN, 0);
	expect_event(g.fd[1], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.view, 2);
	CHECK(ev.e.member[1].flags & SPINDLE_EM_JOINED);
	CHECK(ev.e.member[1].flags & SPINDLE_EM_SELF);
	st_say(g.fd[1], "here");
	st_expect(g.fd[0], "here");
}

/* Views of what is read are those of the reader's place, not of the group's. */
TEST(ranks_at_the_place_of_reading)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	static struct st_msg m;
	unsigned int i;
	int on = 1;

	st_open(&g, &c);
	for (i = 0; i < 3; i++)
		CHECK_OK(setsockopt(g.fd[i], SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	st_say(g.fd[2], "as two");
	CHECK_OK(sync_to(g.fd[2], SPINDLE_SYNC_RECEIVED));
	CHECK_OK(leave(g.fd[0]));
	/* whether it has gone already or not */
	CHECK_EQ(leave(g.fd[0]), -1);
	CHECK(errno == EALREADY || errno == ENOTCONN);
	WAIT_UNTIL(st_info(g.fd[1]).view == 2, ST_SOON);
	WAIT_UNTIL(st_info(g.fd[2]).view == 2, ST_SOON);
	st_say(g.fd[2], "as one");
	CHECK_OK(st_recv(g.fd[1], &m, 0));
	CHECK_EQ(m.from.ss_rank, 2);
	CHECK_EQ(m.info.rank, 2);
	CHECK_EQ(m.info.view, 1);
	CHECK_OK(st_recv(g.fd[1], &m, 0));
	CHECK_EQ(m.from.ss_rank, 1);
	CHECK_EQ(m.info.rank, 1);
	CHECK_EQ(m.info.view, 2);
	/* who has left reads what was before, and then the end */
	WAIT_UNTIL(st_info(g.fd[0]).state == SPINDLE_STATE_CLOSED, ST_SOON);
	CHECK_EQ(st_info(g.fd[0]).rank, ~0U);
	CHECK_ERR(send(g.fd[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_OK(st_recv(g.fd[0], &m, 0));
	CHECK_EQ(m.from.ss_rank, 2);
	st_expect_end(g.fd[0]);
	CHECK(st_events(g.fd[0]) & POLLHUP);
}

TEST(left_and_closed)
{
	struct st_config c = { .members = 4, .nodes = 4 };
	struct st_group g = { 0 };
	static struct event ev;

	st_open(&g, &c);
	want(g.fd[0], SPINDLE_WANT_VIEW);
	CHECK_OK(leave(g.fd[3]));
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.view, 2);
	CHECK_EQ(ev.e.members, 3);
	CHECK_EQ(ev.e.left, 1);
	CHECK_EQ(ev.e.member[3].rank, 3);
	CHECK_EQ(ev.e.member[3].reason, SPINDLE_REASON_LEFT);
	close(g.fd[1]);
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.members, 2);
	CHECK_EQ(ev.e.left, 1);
	CHECK_EQ(ev.e.member[2].rank, 1);
	CHECK_EQ(ev.e.member[2].reason, SPINDLE_REASON_EXITED);
	CHECK_EQ(ev.e.member[1].flags, 0);
	st_say(g.fd[2], "still here");
	st_expect(g.fd[0], "still here");
	st_expect(g.fd[2], "still here");
}

/* The others pass over it, whether they read or not, and hold nobody. */
static void state_for_one(bool detached)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	static struct event ev;
	static struct st_msg m;
	char text[1001];
	unsigned int uid, i;
	int on = 1;

	st_open(&g, &c);
	if (detached)
		CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	want(g.fd[0], SPINDLE_WANT_VIEW | SPINDLE_WANT_CURRENT);
	want(g.fd[1], SPINDLE_WANT_CURRENT);
	g.fd[2] = live_flags(&g, 2, SPINDLE_F_STATE, 0);
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.member[2].flags, SPINDLE_EM_JOINED | SPINDLE_EM_STATE);
	uid = ev.e.member[2].uid;

	memset(text, 's', 1000);
	text[1000] = 0;
	for (i = 0; i < 40; i++) {
		/* only the one that it is for has to read */
		WAIT_UNTIL(give(g.fd[0], text, uid, i == 39 ? SPINDLE_INFO_LAST : 0) == 1000,
			   ST_SOON);
		CHECK_EQ(CHECK_OK(st_recv(g.fd[2], &m, 0)), 1000);
		CHECK_EQ(m.info.flags, SPINDLE_INFO_STATE |
			 (i == 39 ? SPINDLE_INFO_LAST : 0));
		CHECK_EQ(m.info.rank, 0);
	}
	st_say(g.fd[1], "after");
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_CURRENT);
	CHECK_EQ(ev.e.subject, 2);
	CHECK_EQ(ev.e.view, 2);
	st_expect(g.fd[0], "after");
	expect_event(g.fd[1], &ev, SPINDLE_EVENT_CURRENT);
	CHECK_EQ(ev.e.subject, 2);
	st_expect(g.fd[1], "after");
	st_expect(g.fd[2], "after");
	CHECK_EQ(st_info(g.fd[0]).received, 1);
	CHECK_EQ(st_info(g.fd[2]).received, 41);
}

TEST(state_for_one_member)
{
	state_for_one(false);
}

TEST(state_beside_a_detached_member)
{
	state_for_one(true);
}

TEST(state_that_makes_no_sense)
{
	int fd = st_alone();

	CHECK_ERR(give(fd, "x", 1U << 24, 0), EINVAL);
	CHECK_ERR(give(fd, "x", 1, SPINDLE_INFO_STATE), EINVAL);
	CHECK_EQ(give(fd, "x", 999, 0), 1);
	st_say(fd, "y");
	st_expect(fd, "y");
}

TEST(how_far_messages_have_come)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	struct spindle_stability s;

	st_open(&g, &c);
	CHECK_OK(sync_to(g.fd[0], SPINDLE_SYNC_DELIVERED));
	st_say(g.fd[0], "one");
	st_say(g.fd[0], "two");
	CHECK_OK(sync_to(g.fd[0], SPINDLE_SYNC_RECEIVED));
	s = stability(g.fd[0]);
	CHECK_EQ(s.view, 1);
	CHECK_EQ(s.sent, 2);
	CHECK_EQ(s.received, 2);
	CHECK_EQ(s.delivered, 0);
	st_timeout(g.fd[0], SO_SNDTIMEO, 50);
	CHECK_ERR(sync_to(g.fd[0], SPINDLE_SYNC_DELIVERED), EAGAIN);
	st_expect(g.fd[0], "one");
	st_expect(g.fd[0], "two");
	st_expect(g.fd[1], "one");
	CHECK_ERR(sync_to(g.fd[0], SPINDLE_SYNC_DELIVERED), EAGAIN);
	st_expect(g.fd[1], "two");
	st_timeout(g.fd[0], SO_SNDTIMEO, 1000 * ST_SOON);
	CHECK_OK(sync_to(g.fd[0], SPINDLE_SYNC_DELIVERED));
	CHECK_EQ(stability(g.fd[0]).delivered, 2);
	CHECK_EQ(stability(g.fd[1]).sent, 0);
}

static void evict(bool detached)
{
	struct spindle_group_create create = { .members = 2, .window = 4096, .max_msg = 1024,
					       .evict_ms = 300 };
	struct st_group g = { 0 };
	static struct event ev;
	char text[1000];
	int on = 1;
	ssize_t n;

	st_name(g.name);
	snprintf(create.name, sizeof(create.name), "%s", g.name);
	g.fd[0] = st_bound(0);
	want(g.fd[0], SPINDLE_WANT_VIEW | SPINDLE_WANT_SLOW);
	CHECK_OK(st_create(g.fd[0], &create));
	g.fd[1] = live_flags(&g, 1, 0, SPINDLE_WANT_SLOW);
	if (detached) {
		n = 4096;
		CHECK_OK(setsockopt(g.fd[1], SOL_SOCKET, SO_RCVBUF, &n, sizeof(int)));
		CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	}
	expect_event(g.fd[0], &ev, SPINDLE_EVENT_VIEW);
	memset(text, 'x', sizeof(text));
	for (;;) {
		int flags = MSG_DONTWAIT;

		/* whoever reads everything is not the one */
		while ((n = take(g.fd[0], &ev, sizeof(ev), &flags)) >= 0) {
			if ((flags & MSG_SPINDLE_EVENT) && ev.e.type == SPINDLE_EVENT_VIEW)
				goto out;
			flags = MSG_DONTWAIT;
		}
		CHECK_EQ(errno, EAGAIN);
		if (send(g.fd[0], text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			st_pause_us(5000);
	}
out:
	CHECK_EQ(ev.e.members, 1);
	CHECK_EQ(ev.e.left, 1);
	CHECK_EQ(ev.e.member[1].reason, SPINDLE_REASON_SLOW);
	CHECK(st_events(g.fd[1]) & POLLERR);
	CHECK_EQ(st_so_error(g.fd[1]), ECONNABORTED);
	CHECK_ERR(recv(g.fd[1], text, sizeof(text), 0), ECONNABORTED);
	CHECK_ERR(send(g.fd[1], text, 1, MSG_NOSIGNAL), ECONNABORTED);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_FAILED);
	CHECK_EQ(st_info(g.fd[1]).error, ECONNABORTED);
}

TEST(slow_member_is_put_out)
{
	evict(false);
}

TEST(slow_detached_member_is_put_out)
{
	evict(true);
}

/* The memory of who has left stays as long as anybody reads from it. */
TEST(read_after_the_sender_has_gone)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 65536 };
	struct st_group g = { 0 };
	unsigned int round, i;
	char text[32];

	st_open(&g, &c);
	for (round = 0; round < 20; round++) {
		int fd = live_flags(&g, 2, 0, 0);

		WAIT_UNTIL(st_info(fd).state == SPINDLE_STATE_ACTIVE, ST_SOON);
		for (i = 0; i < 5; i++) {
			snprintf(text, sizeof(text), "%u of %u", i, round);
			st_say(fd, text);
		}
		close(fd);
	}
	WAIT_UNTIL(st_info(g.fd[0]).members == 2, ST_SOON);
	for (round = 0; round < 20; round++)
		for (i = 0; i < 5; i++) {
			snprintf(text, sizeof(text), "%u of %u", i, round);
			st_expect(g.fd[1], text);
			st_expect(g.fd[0], text);
		}
}

/* Its lane stays as long as the socket, since calls look there. */
TEST(calls_after_leaving)
{
	/* another member stays on its node */
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	struct spindle_stability s;
	unsigned int i;
	int bytes;

	st_open(&g, &c);
	for (i = 0; i < 5; i++)
		st_say(g.fd[2], "something");
	CHECK_OK(leave(g.fd[2]));
	WAIT_UNTIL(st_info(g.fd[2]).state == SPINDLE_STATE_CLOSED, ST_SOON);
	for (i = 0; i < 5; i++) {
		st_expect(g.fd[0], "something");
		st_expect(g.fd[1], "something");
		st_expect(g.fd[2], "something");
	}
	st_expect_end(g.fd[2]);
	/* nobody needs anything of it any more, nor it of the others */
	for (i = 0; i < 100; i++) {
		st_say(g.fd[0], "still here");
		st_expect(g.fd[0], "still here");
		st_expect(g.fd[1], "still here");
		s = stability(g.fd[2]);
		CHECK_EQ(s.sent, 5);
		CHECK_EQ(s.received, 5);
		CHECK_OK(ioctl(g.fd[2], TIOCOUTQ, &bytes));
		CHECK_EQ(sync_to(g.fd[2], SPINDLE_SYNC_RECEIVED), 0);
		CHECK_ERR(send(g.fd[2], "x", 1, MSG_NOSIGNAL), EPIPE);
		CHECK(st_events(g.fd[2]) & POLLHUP);
		st_pause_us(2000);
	}
}

/* Views are in the queue of a detached member where they belong. */
TEST(views_in_a_queue)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	static struct event ev;
	static struct st_msg m;
	unsigned int i;
	int on = 1;

	st_open(&g, &c);
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	want(g.fd[1], SPINDLE_WANT_VIEW);
	for (i = 0; i < 3; i++) {
		int fd = live_flags(&g, 2, 0, 0);

		st_say(fd, "mine");
		CHECK_OK(sync_to(fd, SPINDLE_SYNC_RECEIVED));
		close(fd);
		WAIT_UNTIL(st_info(g.fd[0]).view == 3 + 2 * i, ST_SOON);
	}
	for (i = 0; i < 3; i++) {
		expect_event(g.fd[1], &ev, SPINDLE_EVENT_VIEW);
		CHECK_EQ(ev.e.view, 2 + 2 * i);
		CHECK_EQ(ev.e.members, 3);
		CHECK_OK(st_recv(g.fd[1], &m, 0));
		CHECK_EQ(m.info.view, 2 + 2 * i);
		CHECK_EQ(m.from.ss_rank, 2);
		expect_event(g.fd[1], &ev, SPINDLE_EVENT_VIEW);
		CHECK_EQ(ev.e.view, 3 + 2 * i);
		CHECK_EQ(ev.e.left, 1);
		if (i == 1)
			/* what is not wanted any more goes */
			want(g.fd[1], 0), i = 3;
	}
	CHECK_OK(st_recv(g.fd[1], &m, 0));
	CHECK_EQ(m.info.view, 6);
	CHECK_EQ(st_events(g.fd[1]) & POLLIN, 0);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
