// SPDX-License-Identifier: GPL-2.0
/*
 * Messages for one member alone, and the state that members who come later are sent by
 * them: who is named to send it, and from when on they count as up to date.
 */
#include "ring.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#define ALL_EVENTS	(SPINDLE_WANT_VIEW | SPINDLE_WANT_STATE)

static struct st_msg m;

static const struct st_config three = {
	.members = 3, .nodes = 3, .max_members = 8, .window = 65536, .max_msg = 8192,
	.recvinfo = true,
};

static const struct st_config stateful = {
	.members = 2, .nodes = 2, .max_members = 8, .window = 65536, .recvinfo = true,
	.flags = SPINDLE_F_STATE, .events = ALL_EVENTS,
};

static uint32_t uid_of(int fd)
{
	return st_info(fd).uid;
}

/* The view in which the other one comes may not have begun yet where the sender is. */
static void say_to(int fd, const char *text, int to, uint32_t flags)
{
	ssize_t n;

	WAIT_UNTIL((n = st_send_to(fd, text, strlen(text), uid_of(to), flags, 0)) >= 0 ||
		   errno != EHOSTUNREACH, ST_SOON);
	CHECK_OK(n);
	CHECK_EQ(n, strlen(text));
}

/* The next message is this, and for this member alone, or not. */
static void expect_as(int fd, const char *text, uint32_t flags)
{
	CHECK_OK(st_recv(fd, &m, 0));
	if (m.flags & MSG_SPINDLE_EVENT || m.len != (ssize_t)strlen(text) ||
	    memcmp(m.data, text, m.len))
		BROKEN("received \"%.*s\" (%zd), not \"%s\"", (int)m.len, m.data, m.len, text);
	CHECK(m.has_info);
	CHECK_SAME(m.info.flags, flags);
}

/* The next in the stream: another member is up to date. */
static void expect_state(int fd, uint32_t uid, uint64_t view)
{
	CHECK_OK(st_recv(fd, &m, 0));
	CHECK_SAME(m.flags & MSG_SPINDLE_EVENT, MSG_SPINDLE_EVENT);
	CHECK_EQ(m.len, sizeof(m.event));
	CHECK_SAME(m.event.type, SPINDLE_EVENT_STATE);
	CHECK_SAME(m.event.number, uid);
	CHECK_SAME(m.event.view, view);
	CHECK_EQ(m.event.members, 0);
	CHECK_EQ(m.event.left, 0);
}

/* One more member of a stateful group, with its first event read: @view. */
static int come(struct st_group *g, unsigned int node, unsigned int flags)
{
	int fd = st_bound(node);

	CHECK_OK(st_option(fd, SPINDLE_EVENTS, ALL_EVENTS));
	CHECK_OK(st_option(fd, SPINDLE_RECVINFO, 1));
	CHECK_OK(st_come(g, fd, 0, flags));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	g->fd[g->n++] = fd;
	return fd;
}

/* Members with a flag in an event, a bit each, by rank. */
static uint64_t having(const struct spindle_event *e, uint32_t flag)
{
	uint64_t ranks = 0;
	unsigned int i;

	for (i = 0; i < e->members; i++)
		if (e->member[i].flags & flag)
			ranks |= 1ULL << i;
	return ranks;
}

/* A view begins at @fd: these are not up to date, and this one is to help them; 0: nobody. */
static void expect_need(int fd, unsigned int view, uint64_t stale, uint64_t gives)
{
	const struct spindle_event *e = st_expect_view(fd, view);

	CHECK_SAME(having(e, SPINDLE_EM_STALE), stale);
	CHECK_SAME(having(e, SPINDLE_EM_GIVES), gives);
}

/* Messages for one member */

TEST(for_one_alone)
{
	struct st_group g = { 0 };
	uint64_t seq[3];
	unsigned int i;

	st_open(&g, &three);
	CHECK(uid_of(g.fd[0]) != uid_of(g.fd[1]));
	CHECK(uid_of(g.fd[0]) != uid_of(g.fd[2]));
	st_say(g.fd[0], "for all");
	say_to(g.fd[0], "for the third", g.fd[2], 0);
	st_say(g.fd[0], "for all again");
	for (i = 0; i < 3; i++) {
		expect_as(g.fd[i], "for all", 0);
		seq[0] = m.info.seq;
		if (i == 2) {
			expect_as(g.fd[i], "for the third", SPINDLE_PRIVATE);
			seq[1] = m.info.seq;
			CHECK_EQ(m.from.ss_rank, 0);
			CHECK_EQ(m.info.rank, 0);
		}
		expect_as(g.fd[i], "for all again", 0);
		seq[2] = m.info.seq;
	}
	CHECK_INTACT(seq[0] < seq[1] && seq[1] < seq[2]);
	for (i = 0; i < 3; i++) {
		st_expect_none(g.fd[i]);
		CHECK_EQ(st_info(g.fd[i]).received, i == 2 ? 3 : 2);
	}
	CHECK_EQ(st_info(g.fd[0]).sent, 3);
}

TEST(for_itself)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &three);
	say_to(g.fd[1], "myself", g.fd[1], 0);
	st_say(g.fd[1], "all");
	expect_as(g.fd[1], "myself", SPINDLE_PRIVATE);
	for (i = 0; i < 3; i++)
		expect_as(g.fd[i], "all", 0);
}

/* Of several members on one node only one is given it; also where the sender is there, too. */
TEST(among_members_of_one_node)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i, k;
	char text[16];

	c.members = 6;
	c.nodes = 2;
	st_open(&g, &c);
	for (i = 0; i < 6; i++) {
		snprintf(text, sizeof(text), "for %u", i);
		say_to(g.fd[0], text, g.fd[i], 0);
	}
	st_say(g.fd[0], "end");
	for (i = 0; i < 6; i++) {
		snprintf(text, sizeof(text), "for %u", i);
		expect_as(g.fd[i], text, SPINDLE_PRIVATE);
		expect_as(g.fd[i], "end", 0);
		for (k = 0; k < 6; k++)
			if (k != i)
				CHECK(uid_of(g.fd[k]) != uid_of(g.fd[i]));
	}
}

TEST(what_is_refused)
{
	struct spindle_to two[2] = { 0 };
	char control[2 * CMSG_SPACE(sizeof(two[0]))];
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	struct cmsghdr *cmsg = (struct cmsghdr *)control;
	struct st_config c = three;
	struct st_group g = { 0 };
	uint32_t uid, gone;

	c.receivers = 2;
	st_open(&g, &c);
	uid = uid_of(g.fd[2]);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, 12345, 0, 0), EHOSTUNREACH);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, 0xffffff, 0, 0), EINVAL);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, 1U << 24, 0, 0), EINVAL);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, ~0U, 0, 0), EINVAL);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, uid, SPINDLE_PRIVATE, 0), EINVAL);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, uid, 1, 0), EINVAL);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, uid, 1U << 31, 0), EINVAL);
	CHECK_ERR(st_send_to(g.fd[1], "x", 1, uid, 0, 0), EACCES);
	memset(control, 0, sizeof(control));
	cmsg->cmsg_level = SOL_SPINDLE;
	cmsg->cmsg_type = SPINDLE_CMSG_TO;
	two[0].uid = uid;
	/* too short, too long, something in the reserved words, and two of them */
	cmsg->cmsg_len = CMSG_LEN(sizeof(two[0]) - 4);
	msg.msg_controllen = CMSG_SPACE(sizeof(two[0]));
	memcpy(CMSG_DATA(cmsg), &two[0], sizeof(two[0]));
	CHECK_ERR(sendmsg(g.fd[0], &msg, MSG_NOSIGNAL), EINVAL);
	cmsg->cmsg_len = CMSG_LEN(sizeof(two[0]) + 4);
	msg.msg_controllen = sizeof(control);
	CHECK_ERR(sendmsg(g.fd[0], &msg, MSG_NOSIGNAL), EINVAL);
	cmsg->cmsg_len = CMSG_LEN(sizeof(two[0]));
	msg.msg_controllen = CMSG_SPACE(sizeof(two[0]));
	two[0].__resv[1] = 1;
	memcpy(CMSG_DATA(cmsg), &two[0], sizeof(two[0]));
	CHECK_ERR(sendmsg(g.fd[0], &msg, MSG_NOSIGNAL), EINVAL);
	two[0].__resv[1] = 0;
	memcpy(CMSG_DATA(cmsg), &two[0], sizeof(two[0]));
	memcpy(control + CMSG_SPACE(sizeof(two[0])), control, CMSG_SPACE(sizeof(two[0])));
	msg.msg_controllen = sizeof(control);
	CHECK_ERR(sendmsg(g.fd[0], &msg, MSG_NOSIGNAL), EINVAL);
	/* one of them may be what recvmsg() gave */
	cmsg = (struct cmsghdr *)(control + CMSG_SPACE(sizeof(two[0])));
	cmsg->cmsg_type = SPINDLE_CMSG_INFO;
	CHECK_OK(sendmsg(g.fd[0], &msg, MSG_NOSIGNAL));
	expect_as(g.fd[2], "x", SPINDLE_PRIVATE);
	/* who has gone */
	gone = uid;
	close(g.fd[2]);
	st_wait_members(g.fd[0], 2);
	/* what is delivered in the next view was sent when that had begun */
	st_say(g.fd[0], "next");
	expect_as(g.fd[0], "next", 0);
	expect_as(g.fd[1], "next", 0);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, gone, 0, 0), EHOSTUNREACH);
	st_say(g.fd[0], "nothing of that was sent");
	expect_as(g.fd[0], "nothing of that was sent", 0);
	expect_as(g.fd[1], "nothing of that was sent", 0);
	CHECK_EQ(st_info(g.fd[0]).sent, 3);
}

/* One member is sent much more than a ring holds, and the others never call recvmsg(). */
static void pass_by(bool detached, bool ordinary, uint32_t without)
{
	static char data[8192];
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i, sent = 0, got = 0;

	c.optimise_off = without;
	st_open(&g, &c);
	if (detached)
		CHECK_OK(st_option(g.fd[1], SPINDLE_DETACHED, 1));
	if (ordinary) {
		/* a reader that has been in a call, and may be again */
		st_say(g.fd[1], "first");
		for (i = 0; i < 3; i++)
			expect_as(g.fd[i], "first", 0);
	}
	/* poll() says that there is room when there is for the longest message */
	CHECK_EQ(st_info(g.fd[0]).max_msg, sizeof(data));
	while (got < 100) {
		memset(data, sent, sizeof(data));
		if (sent < 100 && st_send_to(g.fd[0], data, sizeof(data), uid_of(g.fd[2]), 0,
					     MSG_DONTWAIT) >= 0) {
			sent++;
			continue;
		}
		CHECK(sent == 100 || errno == EAGAIN);
		CHECK_OK(st_recv(g.fd[2], &m, 0));
		CHECK_SAME(m.len, sizeof(data));
		CHECK_SAME(m.data[0], (char)got);
		CHECK_SAME(m.data[m.len - 1], (char)got);
		CHECK_SAME(m.info.flags, SPINDLE_PRIVATE);
		got++;
		if (sent < 100)
			st_wait_events(g.fd[0], POLLOUT);
	}
	for (i = 0; i < 3; i++)
		CHECK_EQ(st_events(g.fd[i]) & POLLIN, 0);
	st_say(g.fd[2], "last");
	for (i = 0; i < 3; i++)
		expect_as(g.fd[i], "last", 0);
}

TEST(others_need_not_read)
{
	pass_by(false, false, 0);
}

TEST(others_need_not_read_on)
{
	pass_by(false, true, 0);
}

TEST(detached_need_not_read)
{
	pass_by(true, true, 0);
}

TEST(without_what_makes_it_fast)
{
	pass_by(false, true, SPINDLE_OFF_SEND);
	pass_by(false, true, SPINDLE_OFF_RECEIVE | SPINDLE_OFF_DELIVER);
	pass_by(false, false, SPINDLE_OFF_UNLOCK);
	pass_by(true, true, SPINDLE_OFF_ALL & ~SPINDLE_OFF_NULL);
}

/* As much as several rings hold goes through. */
static void flows(int fd, int to)
{
	static char data[8192];
	unsigned int i;

	for (i = 0; i < 30; i++) {
		CHECK_OK(st_send_to(fd, data, sizeof(data), uid_of(to), 0, 0));
		CHECK_OK(st_recv(to, &m, 0));
		CHECK_SAME(m.len, sizeof(data));
	}
}

/* Send parts of it until there is no room: somebody does not read. Its member does. */
static void fill(int fd, int to, uint32_t flags)
{
	static char data[8192];
	unsigned int parts = 0, got = 0;

	for (;;) {
		if (st_send_to(fd, data, sizeof(data), uid_of(to), flags, MSG_DONTWAIT) >= 0) {
			parts++;
			continue;
		}
		CHECK_EQ(errno, EAGAIN);
		if (got == parts)
			break;
		while (got < parts) {
			CHECK_OK(st_recv(to, &m, 0));
			CHECK_SAME(m.len, sizeof(data));
			got++;
		}
	}
	CHECK(parts >= 7 && parts < 100);
}

/*
 * What one member has before it keeps what is for another one from being passed by: until
 * it takes that, and then nothing more is needed of it.
 */
static void behind(void (*take)(int fd))
{
	struct st_config c = three;
	struct st_group g = { 0 };

	c.members = 4;
	c.nodes = 4;
	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[1], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	close(g.fd[3]);
	st_wait_members(g.fd[0], 3);
	st_wait_members(g.fd[1], 3);
	st_wait_members(g.fd[2], 3);
	fill(g.fd[0], g.fd[2], 0);
	CHECK_EQ(st_events(g.fd[0]) & POLLOUT, 0);
	take(g.fd[1]);
	st_wait_events(g.fd[0], POLLOUT);
	CHECK_EQ(st_events(g.fd[1]) & POLLIN, 0);
	flows(g.fd[0], g.fd[2]);
}

static void take_it(int fd)
{
	st_expect_view(fd, 1);
	st_expect_view(fd, 2);
}

static void not_want_it(int fd)
{
	CHECK_OK(st_option(fd, SPINDLE_EVENTS, 0));
}

TEST(behind_a_message)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	st_say(g.fd[0], "x");
	expect_as(g.fd[0], "x", 0);
	expect_as(g.fd[2], "x", 0);
	fill(g.fd[0], g.fd[2], 0);
	expect_as(g.fd[1], "x", 0);
	flows(g.fd[0], g.fd[2]);
}

TEST(behind_an_event_that_is_taken)
{
	behind(take_it);
}

TEST(behind_an_event_that_is_not_wanted_any_more)
{
	behind(not_want_it);
}

/* What one that has left does not want any more holds up nobody, on whatever node. */
TEST(left_behind_an_event)
{
	static char data[8192];
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i, k;

	c.members = 4;
	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[3], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	close(g.fd[2]);
	st_wait_members(g.fd[0], 3);
	st_wait_members(g.fd[3], 3);
	CHECK_OK(st_leave(g.fd[3]));
	st_wait_state(g.fd[3], SPINDLE_STATE_CLOSED);
	CHECK_OK(st_option(g.fd[3], SPINDLE_EVENTS, 0));
	for (i = 0; i < 30; i++) {
		CHECK_EQ(send(g.fd[1], data, sizeof(data), MSG_NOSIGNAL), sizeof(data));
		for (k = 0; k < 2; k++) {
			CHECK_OK(st_recv(g.fd[k], &m, 0));
			CHECK_SAME(m.len, sizeof(data));
		}
	}
	st_expect_end(g.fd[3]);
}

/* The same of who is told, has a queue for that, and wants it no more. */
TEST(behind_a_full_queue)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	CHECK_OK(setsockopt(g.fd[1], SOL_SOCKET, SO_RCVBUF, &(int){ 1 }, sizeof(int)));
	CHECK_OK(st_option(g.fd[1], SPINDLE_EVENTS, SPINDLE_WANT_STATE));
	CHECK_OK(st_option(g.fd[1], SPINDLE_DETACHED, 1));
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, 0));
	fill(g.fd[0], g.fd[2], SPINDLE_UP_TO_DATE);
	not_want_it(g.fd[1]);
	flows(g.fd[0], g.fd[2]);
	st_expect_none(g.fd[1]);
}

/* An event takes little room, whatever the message that it tells of is like. */
TEST(a_small_queue_tells_of_a_large_message)
{
	static char data[8192];
	struct st_group g = { 0 };

	st_open(&g, &three);
	CHECK_OK(setsockopt(g.fd[1], SOL_SOCKET, SO_RCVBUF, &(int){ 1 }, sizeof(int)));
	CHECK_OK(st_option(g.fd[1], SPINDLE_EVENTS, SPINDLE_WANT_STATE));
	CHECK_OK(st_option(g.fd[1], SPINDLE_DETACHED, 1));
	st_say(g.fd[0], "small");
	CHECK_OK(st_send_to(g.fd[0], data, sizeof(data), uid_of(g.fd[2]), SPINDLE_UP_TO_DATE, 0));
	expect_as(g.fd[0], "small", 0);
	expect_as(g.fd[2], "small", 0);
	CHECK_OK(st_recv(g.fd[2], &m, 0));
	st_timeout(g.fd[0], SO_SNDTIMEO, st_bound_ms(ST_SOON));
	CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_CONSUMED));
	expect_as(g.fd[1], "small", 0);
	expect_state(g.fd[1], uid_of(g.fd[2]), 1);
}

/* All are done with it when its member is, whoever reads what is before it later. */
TEST(consumed)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &three);
	st_say(g.fd[0], "all");
	say_to(g.fd[0], "one", g.fd[2], 0);
	expect_as(g.fd[2], "all", 0);
	expect_as(g.fd[2], "one", SPINDLE_PRIVATE);
	for (i = 0; i < 2; i++)
		expect_as(g.fd[i], "all", 0);
	st_timeout(g.fd[0], SO_SNDTIMEO, st_bound_ms(ST_SOON));
	CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_CONSUMED));
	CHECK_EQ(st_events(g.fd[1]) & POLLIN, 0);
}

/* Events that it does not want stand before what it is not given. */
TEST(events_are_passed_by)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	close(g.fd[2]);
	st_wait_members(g.fd[0], 2);
	flows(g.fd[1], g.fd[1]);
	st_expect_none(g.fd[0]);
}

/* Everybody sends to all, and in between to this one and that one. */
TEST(among_others)
{
	enum { EACH = 300 };
	struct st_group g = { 0 };
	unsigned int sent[3] = { 0 }, due[3][3] = { { 0 } }, i, k, done = 0;
	uint64_t random = 7;
	uint32_t uid[3];
	struct {
		uint32_t from, number, to;
	} msg;

	st_open(&g, &three);
	for (i = 0; i < 3; i++)
		uid[i] = uid_of(g.fd[i]);
	while (done < 9 * EACH) {
		bool idle = true;

		for (i = 0; i < 3; i++) {
			if (sent[i] == EACH)
				continue;
			/* numbers 0 to 2 are to members, 3 and more to all */
			msg.from = i;
			msg.number = sent[i];
			msg.to = st_random(&random) % 6;
			if ((msg.to < 3 ? st_send_to(g.fd[i], &msg, sizeof(msg), uid[msg.to], 0,
						     MSG_DONTWAIT) :
			     send(g.fd[i], &msg, sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL)) < 0) {
				CHECK_EQ(errno, EAGAIN);
				continue;
			}
			sent[i]++;
			idle = false;
			for (k = 0; k < 3; k++)
				if (msg.to < 3 && k != msg.to)
					done++;
		}
		for (i = 0; i < 3; i++) {
			if (st_recv(g.fd[i], &m, MSG_DONTWAIT) < 0) {
				CHECK_EQ(errno, EAGAIN);
				continue;
			}
			idle = false;
			CHECK_SAME(m.len, sizeof(msg));
			memcpy(&msg, m.data, sizeof(msg));
			CHECK_SAME(msg.from, m.info.rank);
			CHECK_SAME(m.info.flags, msg.to < 3 ? SPINDLE_PRIVATE : 0);
			CHECK_SAME(msg.to < 3 ? msg.to : i, i);
			CHECK_INTACT(msg.number >= due[i][msg.from]);
			due[i][msg.from] = msg.number + 1;
			done++;
		}
		if (idle)
			st_pause_us(500);
	}
	for (i = 0; i < 3; i++)
		st_expect_none(g.fd[i]);
}

/* The connection on which they go is lost on the way. */
TEST(over_a_cut)
{
	enum { ROUNDS = 6, EACH = 6 };
	static char data[4096];
	struct st_group g = { 0 };
	unsigned int i, k, round;

	if (getenv("SPINDLE_SIW"))
		st_skip("iWARP's connections are lost for good");
	st_open(&g, &three);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < EACH; i++) {
			if (i == EACH / 2)
				st_cut(0, 1 + round % 2);
			memset(data, round * EACH + i, sizeof(data));
			CHECK_OK(st_send_to(g.fd[0], data, sizeof(data), uid_of(g.fd[1 + i % 2]),
					    0, 0));
		}
		st_mend(0, 1 + round % 2);
		for (k = 0; k < 2; k++)
			for (i = k; i < EACH; i += 2) {
				CHECK_OK(st_recv(g.fd[1 + k], &m, 0));
				CHECK_SAME(m.len, sizeof(data));
				CHECK_SAME(m.data[0], (char)(round * EACH + i));
				CHECK_SAME(m.data[m.len - 1], (char)(round * EACH + i));
			}
	}
}

/* Members come and go, and each is sent what is for it from its first moment on. */
TEST(while_views_change)
{
	enum { ROUNDS = 8, EACH = 20 };
	struct st_group g = { 0 };
	unsigned int i, k, round, got;
	char text[32];

	st_open(&g, &three);
	for (round = 0; round < ROUNDS; round++) {
		int fd = st_bound(round % 5);

		CHECK_OK(st_option(fd, SPINDLE_RECVINFO, 1));
		CHECK_EQ(uid_of(fd), ~0U);
		CHECK_OK(st_come(&g, fd, 0, round % 2 ? SPINDLE_F_RECEIVER : 0));
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		for (i = 0; i < EACH; i++) {
			snprintf(text, sizeof(text), "%u", i);
			say_to(g.fd[0], text, fd, 0);
			st_say(g.fd[0], "all");
			say_to(g.fd[0], "other", g.fd[1], 0);
		}
		for (i = 0; i < EACH; i++) {
			snprintf(text, sizeof(text), "%u", i);
			expect_as(fd, text, SPINDLE_PRIVATE);
			expect_as(fd, "all", 0);
		}
		close(fd);
		for (k = 0; k < 3; k++)
			for (got = 0; got < EACH; got++) {
				expect_as(g.fd[k], "all", 0);
				if (k == 1)
					expect_as(g.fd[k], "other", SPINDLE_PRIVATE);
			}
	}
}

/* Its member goes: what is left of it is nobody's, and holds up nobody. */
TEST(its_member_goes)
{
	static char data[8192];
	struct st_group g = { 0 };
	uint32_t uid;
	unsigned int i;

	st_open(&g, &three);
	uid = uid_of(g.fd[2]);
	for (i = 0; i < 4; i++)
		CHECK_OK(st_send_to(g.fd[0], data, sizeof(data), uid, 0, 0));
	/* nor does anybody hear that it has all */
	CHECK_OK(st_option(g.fd[1], SPINDLE_EVENTS, SPINDLE_WANT_STATE));
	close(g.fd[2]);
	while (st_send_to(g.fd[0], data, sizeof(data), uid, 0, 0) >= 0)
		;
	CHECK_EQ(errno, EHOSTUNREACH);
	st_say(g.fd[0], "on");
	expect_as(g.fd[0], "on", 0);
	expect_as(g.fd[1], "on", 0);
	st_expect_none(g.fd[1]);
}

/* Mapped rings */

/* The next one that is no event. */
static const volatile struct spindle_delivery *next_delivery(struct ring *r)
{
	const volatile struct spindle_delivery *d;

	for (;; ring_release(r)) {
		while (r->next == __atomic_load_n(&r->status->published, __ATOMIC_ACQUIRE)) {
			r->user->rx_seen = r->next;
			st_wait_events(r->fd, POLLIN);
		}
		d = &r->deliveries[r->next & (r->r.deliveries - 1)];
		if (d->flags != SPINDLE_DELIVERY_EVENT)
			return d;
	}
}

/* It leaves its sender's node for one other only: nobody else has the bytes. */
TEST(mapped)
{
	const volatile struct spindle_delivery *d;
	const unsigned char *at;
	struct st_group g = { 0 };
	struct ring r[3];
	uint32_t to, i, k;

	st_open(&g, &three);
	for (i = 0; i < 3; i++)
		ring_map(&r[i], g.fd[i], SPINDLE_MAP_ALL);
	to = SPINDLE_PRIVATE | uid_of(g.fd[2]) << SPINDLE_UID_SHIFT;
	memcpy(ring_place(&r[0]), "secret", 6);
	ring_submit(&r[0], 6, to);
	memcpy(ring_place(&r[0]), "end", 3);
	ring_submit(&r[0], 3, to | SPINDLE_UP_TO_DATE);
	ring_kick(&r[0]);
	ring_say(&r[0], "all");
	for (i = 1; i < 3; i++) {
		d = next_delivery(&r[i]);
		CHECK_SAME(d->flags, to);
		CHECK_SAME(d->len, 6);
		at = ring_lane(&r[i], d->lane & SPINDLE_DELIVERY_LANE) +
		     (size_t)d->pos * SPINDLE_UNIT;
		for (k = 0; k < 6; k++)
			CHECK_SAME(at[k], i == 2 ? "secret"[k] : 0);
		ring_release(&r[i]);
		CHECK_SAME(next_delivery(&r[i])->flags, to | SPINDLE_UP_TO_DATE);
		ring_release(&r[i]);
	}
	ring_expect(&r[1], "all", 0);
	ring_expect(&r[2], "all", 0);
	WAIT_UNTIL(st_info(g.fd[1]).received == 1, ST_SOON);
	WAIT_UNTIL(st_info(g.fd[2]).received == 3, ST_SOON);
}

/* What one has left in the ring is not at the end of later messages, which go to all. */
static void leftovers(bool mapped, bool refused)
{
	static char data[8192];
	const volatile struct spindle_delivery *d;
	const unsigned char *at;
	struct st_group g = { 0 };
	struct ring own, r;
	unsigned int i, k;

	st_open(&g, &three);
	memset(data, 0xff, sizeof(data));
	if (refused)
		CHECK_ERR(st_send_to(g.fd[0], data, sizeof(data), 4711, 0, 0), EHOSTUNREACH);
	for (i = 0; i < 8 && !refused; i++) {
		CHECK_OK(st_send_to(g.fd[0], data, sizeof(data), uid_of(g.fd[2]), 0, 0));
		CHECK_OK(st_recv(g.fd[2], &m, 0));
	}
	/* what has not been passed by when it is mapped would be the program's to release */
	st_timeout(g.fd[0], SO_SNDTIMEO, st_bound_ms(ST_SOON));
	CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_CONSUMED));
	ring_map(&r, g.fd[1], SPINDLE_MAP_RX);
	if (mapped)
		ring_map(&own, g.fd[0], SPINDLE_MAP_TX);
	for (i = 0; i < 3; i++) {
		if (!mapped) {
			st_say(g.fd[0], "x");
			continue;
		}
		while (!ring_room(&own, 1))
			st_wait_events(own.fd, POLLOUT);
		*ring_place(&own) = 'x';
		ring_submit(&own, 1, 0);
	}
	if (mapped)
		ring_kick(&own);
	for (i = 0; i < 3; i++) {
		while ((d = next_delivery(&r))->flags)
			ring_release(&r);
		at = ring_lane(&r, d->lane & SPINDLE_DELIVERY_LANE) +
		     (size_t)d->pos * SPINDLE_UNIT;
		CHECK_SAME(at[0], 'x');
		for (k = 1; k < SPINDLE_UNIT; k++)
			CHECK_SAME(at[k], 0);
		ring_release(&r);
	}
}

TEST(leftovers_of_it)
{
	leftovers(false, false);
}

TEST(leftovers_of_one_that_was_refused)
{
	leftovers(false, true);
}

TEST(leftovers_of_it_in_a_mapped_ring)
{
	leftovers(true, false);
}

TEST(mapped_for_nobody)
{
	struct st_group g = { 0 };
	struct ring r[2];

	st_open(&g, &three);
	ring_map(&r[0], g.fd[0], SPINDLE_MAP_ALL);
	ring_map(&r[1], g.fd[1], SPINDLE_MAP_ALL);
	ring_submit(&r[0], 100, SPINDLE_PRIVATE | 54321U << SPINDLE_UID_SHIFT);
	ring_say(&r[0], "all");
	ring_expect(&r[1], "all", 0);
	expect_as(g.fd[2], "all", 0);
	CHECK_EQ(r[0].status->tx_error, 0);
	/* what nobody can mean */
	ring_submit(&r[0], 1, SPINDLE_UP_TO_DATE);
	ring_kick(&r[0]);
	WAIT_UNTIL(r[0].status->tx_error, ST_SOON);
	CHECK_EQ(r[0].status->tx_error, EINVAL);
	ring_submit(&r[1], 1, SPINDLE_PRIVATE | SPINDLE_DELIVERY_FIN);
	ring_kick(&r[1]);
	WAIT_UNTIL(r[1].status->tx_error, ST_SOON);
	CHECK_EQ(r[1].status->tx_error, EINVAL);
}

/* State */

TEST(who_comes_is_not_up_to_date)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &stateful);
	for (i = 0; i < 2; i++)
		expect_need(g.fd[i], 1, 0, 0);
	st_say(g.fd[0], "before");
	for (i = 0; i < 2; i++)
		expect_as(g.fd[i], "before", 0);
	come(&g, 2, 0);
	for (i = 0; i < 3; i++) {
		st_wait_members(g.fd[i], 3);
		expect_need(g.fd[i], 2, 1 << 2, 1 << 0);
		CHECK_EQ(st_info(g.fd[i]).stale, 1);
		CHECK_EQ(st_shown(i, &g, "stale"), 1);
	}
	say_to(g.fd[0], "state", g.fd[2], 0);
	st_say(g.fd[1], "meanwhile");
	expect_as(g.fd[0], "meanwhile", 0);
	say_to(g.fd[0], "that is all", g.fd[2], SPINDLE_UP_TO_DATE);
	st_say(g.fd[0], "behind it");
	expect_as(g.fd[2], "state", SPINDLE_PRIVATE);
	expect_as(g.fd[2], "meanwhile", 0);
	expect_as(g.fd[2], "that is all", SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE);
	expect_as(g.fd[2], "behind it", 0);
	/* the others are told, in its place */
	expect_as(g.fd[1], "meanwhile", 0);
	for (i = 0; i < 2; i++) {
		expect_state(g.fd[i], uid_of(g.fd[2]), 2);
		expect_as(g.fd[i], "behind it", 0);
	}
	for (i = 0; i < 3; i++) {
		CHECK_EQ(st_info(g.fd[i]).stale, 0);
		CHECK_EQ(st_shown(i, &g, "stale"), 0);
	}
	/* and who comes then knows it, too */
	come(&g, 3, 0);
	for (i = 0; i < 4; i++)
		expect_need(g.fd[i], 3, 1 << 3, 1 << 0);
}

TEST(without_the_flag)
{
	struct st_config c = stateful;
	struct st_group g = { 0 };
	unsigned int i;

	c.flags = 0;
	st_open(&g, &c);
	come(&g, 2, 0);
	for (i = 0; i < 2; i++)
		expect_need(g.fd[i], 1, 0, 0);
	for (i = 0; i < 3; i++)
		expect_need(g.fd[i], 2, 0, 0);
	CHECK_EQ(st_info(g.fd[0]).stale, 0);
	/* it says nothing then, and harms nobody */
	say_to(g.fd[0], "state", g.fd[2], SPINDLE_UP_TO_DATE);
	expect_as(g.fd[2], "state", SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE);
	expect_state(g.fd[1], uid_of(g.fd[2]), 2);
}

TEST(the_creator_says)
{
	struct st_group g = { 0 };
	int fd = st_bound(2);

	st_open(&g, &stateful);
	CHECK_ERR(st_come(&g, fd, 0, SPINDLE_F_STATE), EINVAL);
	CHECK_OK(st_come(&g, fd, 0, 0));
}

/* Who gives dies when it has sent half of it: another one is named, and sends all of it. */
static void giver_goes(void (*go)(struct st_group *g))
{
	struct st_config c = stateful;
	struct st_group g = { 0 };
	unsigned int i;

	c.members = 3;
	c.nodes = 3;
	c.silent_ms = 1000;
	c.link_ms = 1000;
	st_open(&g, &c);
	come(&g, 3, 0);
	for (i = 0; i < 3; i++)
		expect_need(g.fd[i], 1, 0, 0);
	for (i = 0; i < 4; i++)
		expect_need(g.fd[i], 2, 1 << 3, 1 << 0);
	say_to(g.fd[0], "half of it", g.fd[3], 0);
	expect_as(g.fd[3], "half of it", SPINDLE_PRIVATE);
	go(&g);
	for (i = 1; i < 4; i++) {
		expect_need(g.fd[i], 3, 1 << 2, 1 << 0);
		CHECK_EQ(st_info(g.fd[i]).stale, 1);
	}
	say_to(g.fd[1], "all of it", g.fd[3], SPINDLE_UP_TO_DATE);
	expect_as(g.fd[3], "all of it", SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE);
	expect_state(g.fd[1], uid_of(g.fd[3]), 3);
	expect_state(g.fd[2], uid_of(g.fd[3]), 3);
	CHECK_EQ(st_info(g.fd[2]).stale, 0);
}

static void go_by_close(struct st_group *g)
{
	close(g->fd[0]);
}

static void go_by_leave(struct st_group *g)
{
	CHECK_OK(st_leave(g->fd[0]));
}

static void go_by_loss(struct st_group *g)
{
	unsigned int i;

	if (getenv("SPINDLE_SIW"))
		st_skip("iWARP's connections are lost for good");

	for (i = 1; i < 4; i++)
		st_cut(i, 0);
	/* the others go on without it */
	for (i = 1; i < 4; i++)
		st_wait_members(g->fd[i], 3);
	for (i = 1; i < 4; i++)
		st_mend(i, 0);
}

TEST(giver_closes)
{
	giver_goes(go_by_close);
}

TEST(giver_leaves)
{
	giver_goes(go_by_leave);
}

TEST(giver_is_lost)
{
	giver_goes(go_by_loss);
}

/* One that has come before it, and is up to date now, does not take over what it does. */
TEST(giver_stays)
{
	struct st_config c = stateful;
	struct st_group g = { 0 };
	int k, j, n;

	c.members = 1;
	c.nodes = 1;
	st_open(&g, &c);
	k = come(&g, 1, 0);
	j = come(&g, 2, 0);
	n = come(&g, 3, 0);
	expect_need(n, 4, 1 << 1 | 1 << 2 | 1 << 3, 1 << 0);
	say_to(g.fd[0], "all", j, SPINDLE_UP_TO_DATE);
	expect_state(n, uid_of(j), 4);
	close(g.fd[0]);
	expect_need(n, 5, 1 << 0 | 1 << 2, 1 << 1);
	say_to(j, "half", n, 0);
	say_to(j, "all", k, SPINDLE_UP_TO_DATE);
	expect_as(n, "half", SPINDLE_PRIVATE);
	expect_state(n, uid_of(k), 5);
	CHECK_OK(st_come(&g, st_bound(0), 1, 0));
	expect_need(n, 6, 1 << 2 | 1 << 3, 1 << 1);
}

/* Of those that could, who sends nothing is not named. */
TEST(who_cannot_is_not_named)
{
	struct st_config c = stateful;
	struct st_group g = { 0 };
	unsigned int i;

	c.members = 4;
	c.nodes = 4;
	c.receivers = 1 << 1;
	st_open(&g, &c);
	for (i = 0; i < 4; i++)
		expect_need(g.fd[i], 1, 0, 0);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	/* the end of its lane is in the order before this, since this member has seen it */
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	come(&g, 4, 0);
	for (i = 0; i < 5; i++)
		expect_need(g.fd[i], 2, 1 << 4, 1 << 2);
	/* nor who is not up to date itself */
	close(g.fd[2]);
	expect_need(g.fd[0], 3, 1 << 3, 1 << 2);
	close(g.fd[3]);
	expect_need(g.fd[0], 4, 1 << 2, 0);
	expect_need(g.fd[4], 3, 1 << 3, 1 << 2);
	expect_need(g.fd[4], 4, 1 << 2, 0);
	/* with nobody to ask it may begin by itself */
	say_to(g.fd[4], "nothing", g.fd[4], SPINDLE_UP_TO_DATE);
	expect_as(g.fd[4], "nothing", SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE);
	expect_state(g.fd[0], uid_of(g.fd[4]), 4);
	CHECK_EQ(st_info(g.fd[0]).stale, 0);
}

/* Several come, also on nodes of others, and are served one by one. */
TEST(several_come)
{
	struct st_group g = { 0 };
	unsigned int i, k, view;

	st_open(&g, &stateful);
	for (k = 2; k < 6; k++)
		come(&g, k % 4, k == 4 ? SPINDLE_F_RECEIVER : 0);
	for (i = 0; i < 6; i++) {
		for (view = i < 2 ? 1 : i; view <= 5; view++) {
			uint64_t stale = ((1ULL << (view + 1)) - 1) & ~3ULL;

			expect_need(g.fd[i], view, view == 1 ? 0 : stale, view == 1 ? 0 : 1 << 0);
		}
		CHECK_EQ(st_info(g.fd[i]).stale, 4);
	}
	for (k = 2; k < 6; k++) {
		say_to(g.fd[0], "all", g.fd[k], SPINDLE_UP_TO_DATE);
		for (i = 0; i < 6; i++) {
			if (i == k)
				expect_as(g.fd[i], "all", SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE);
			else
				expect_state(g.fd[i], uid_of(g.fd[k]), 5);
			CHECK_EQ(st_info(g.fd[i]).stale, 5 - k);
		}
	}
}

/* A state of many rings is sent while others send, who wait for nobody but readers. */
TEST(others_go_on_meanwhile)
{
	enum { PARTS = 100, EACH = 200 };
	static char data[8192];
	unsigned int sent = 0, parts = 0, got[3] = { 0 }, state = 0, told = 0, i;
	struct st_group g = { 0 };
	uint32_t uid;

	st_open(&g, &stateful);
	come(&g, 2, 0);
	for (i = 0; i < 2; i++)
		expect_need(g.fd[i], 1, 0, 0);
	for (i = 0; i < 3; i++)
		expect_need(g.fd[i], 2, 1 << 2, 1 << 0);
	uid = uid_of(g.fd[2]);
	while (state < PARTS || told < 2 || got[0] + got[1] + got[2] < 3 * EACH) {
		bool idle = true;

		if (parts < PARTS &&
		    st_send_to(g.fd[0], data, sizeof(data), uid,
			       parts + 1 == PARTS ? SPINDLE_UP_TO_DATE : 0, MSG_DONTWAIT) >= 0) {
			parts++;
			idle = false;
		}
		if (sent < EACH && send(g.fd[1], "other", 5, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
			sent++;
			idle = false;
		}
		for (i = 0; i < 3; i++) {
			if (st_recv(g.fd[i], &m, MSG_DONTWAIT) < 0)
				continue;
			idle = false;
			if (m.flags & MSG_SPINDLE_EVENT) {
				CHECK_SAME(m.event.number, uid);
				told++;
			} else if (m.info.flags) {
				CHECK_SAME(i, 2);
				state++;
			} else {
				got[i]++;
			}
		}
		if (idle)
			st_pause_us(500);
	}
	for (i = 0; i < 3; i++)
		CHECK_SAME(got[i], EACH);
	CHECK_EQ(st_info(g.fd[1]).stale, 0);
}

/* Told of in a queue, too; and not when it is not wanted any more. */
TEST(detached_is_told)
{
	struct st_group g = { 0 };
	int n;

	st_open(&g, &stateful);
	CHECK_OK(st_option(g.fd[1], SPINDLE_DETACHED, 1));
	come(&g, 2, 0);
	expect_need(g.fd[1], 1, 0, 0);
	expect_need(g.fd[1], 2, 1 << 2, 1 << 0);
	say_to(g.fd[0], "a state of some length", g.fd[2], SPINDLE_UP_TO_DATE);
	st_wait_events(g.fd[1], POLLIN);
	CHECK_OK(ioctl(g.fd[1], SIOCINQ, &n));
	CHECK_EQ(n, sizeof(struct spindle_event));
	CHECK_EQ(st_info(g.fd[1]).received, 0);
	expect_state(g.fd[1], uid_of(g.fd[2]), 2);
	CHECK_EQ(st_info(g.fd[1]).received, 0);
	say_to(g.fd[0], "once more", g.fd[2], SPINDLE_UP_TO_DATE);
	st_wait_events(g.fd[1], POLLIN);
	CHECK_OK(st_option(g.fd[1], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	st_expect_none(g.fd[1]);
}

/* It joins anew on a node that has gone, and is another one, with nothing. */
TEST(who_comes_again_is_new)
{
	struct st_group g = { 0 };
	uint32_t uid;
	int fd;

	st_open(&g, &stateful);
	expect_need(g.fd[0], 1, 0, 0);
	uid = uid_of(g.fd[1]);
	close(g.fd[1]);
	expect_need(g.fd[0], 2, 0, 0);
	fd = come(&g, 1, 0);
	expect_need(g.fd[0], 3, 1 << 1, 1 << 0);
	CHECK(uid_of(fd) != uid);
	CHECK_ERR(st_send_to(g.fd[0], "x", 1, uid, 0, 0), EHOSTUNREACH);
	say_to(g.fd[0], "state", fd, SPINDLE_UP_TO_DATE);
	expect_need(fd, 3, 1 << 1, 1 << 0);
	expect_as(fd, "state", SPINDLE_PRIVATE | SPINDLE_UP_TO_DATE);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
