// SPDX-License-Identifier: GPL-2.0
/*
 * Stability: what every node has received and what every program is done with, asked
 * for, waited for, and told by an event.
 */
#include "ring.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>

#define RECEIVED	SPINDLE_SYNC_RECEIVED
#define CONSUMED	SPINDLE_SYNC_CONSUMED
#define STABLE		SPINDLE_WANT_STABLE

static const struct st_config three = { .members = 3, .nodes = 3, .window = 65536 };

static struct spindle_stable stable(int fd)
{
	struct spindle_stable s;
	socklen_t len = sizeof(s);
	unsigned int i;

	memset(&s, 0xaa, sizeof(s));
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_STABLE, &s, &len));
	CHECK_EQ(len, sizeof(s));
	CHECK(s.consumed <= s.received);
	CHECK(s.received <= s.sent);
	CHECK(s.order_consumed <= s.order_received);
	for (i = 0; i < ARRAY_SIZE(s.__resv); i++)
		CHECK_EQ(s.__resv[i], 0);
	return s;
}

static int sync_of(int fd, int what)
{
	return st_option(fd, SPINDLE_SYNC, what);
}

/* What the option says where it may not wait. */
static int try_sync(int fd, int what)
{
	return sync_of(fd, what | SPINDLE_SYNC_DONTWAIT);
}

/* It says its name so many times. */
static void say(int fd, unsigned int n)
{
	while (n--)
		st_say(fd, "it");
}

static void hear(int fd, unsigned int n)
{
	while (n--)
		st_expect(fd, "it");
}

/* All but member @but have read what there is. */
static void all_hear(const struct st_group *g, unsigned int but, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		if (i != but)
			hear(g->fd[i], n);
}

/* The next thing to read is the event; returns what it says. */
static struct spindle_stable expect_stable(int fd, unsigned int what, int flags)
{
	static struct st_msg m;
	struct spindle_stable s;
	unsigned int i;
	int n;

	CHECK_OK(ioctl(fd, SIOCINQ, &n));
	memset(&m, 0xaa, sizeof(m));
	CHECK_OK(st_recv(fd, &m, flags));
	if (!(m.flags & MSG_SPINDLE_EVENT))
		BROKEN("received \"%.*s\" (%zd), not an event", (int)m.len, m.data, m.len);
	CHECK_EQ(m.flags & (MSG_EOR | MSG_TRUNC), MSG_EOR);
	CHECK_EQ(m.fromlen, 0);
	CHECK_EQ(m.len, sizeof(m.event) + sizeof(s));
	CHECK_EQ(n, m.len);
	CHECK_EQ(m.event.type, SPINDLE_EVENT_STABLE);
	CHECK_EQ(m.event.number, what);
	CHECK_EQ(m.event.members, 0);
	CHECK_EQ(m.event.left, 0);
	CHECK_EQ(m.event.member_size, sizeof(m.event.member[0]));
	for (i = 0; i < ARRAY_SIZE(m.event.__resv); i++)
		CHECK_EQ(m.event.__resv[i], 0);
	CHECK_EQ(m.event.view, st_info(fd).view);
	memcpy(&s, m.event.member, sizeof(s));
	CHECK_EQ(m.event.seq, s.order_received - 1);
	CHECK(s.received <= s.sent);
	return s;
}

/* What is asked for, and of whom */

TEST(what_can_be_asked)
{
	int fd = st_bound(0), what = RECEIVED;
	struct spindle_stable s;
	socklen_t len = sizeof(s);

	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_STABLE, &s, &len), ENOTCONN);
	CHECK_ERR(sync_of(fd, RECEIVED), ENOTCONN);
	close(fd);
	fd = st_alone();
	CHECK_ERR(sync_of(fd, 0), EINVAL);
	CHECK_ERR(sync_of(fd, RECEIVED | CONSUMED), EINVAL);
	CHECK_ERR(sync_of(fd, SPINDLE_SYNC_DONTWAIT), EINVAL);
	CHECK_ERR(sync_of(fd, CONSUMED << 1), EINVAL);
	CHECK_ERR(sync_of(fd, -1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what) - 1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_SYNC, NULL, sizeof(what)), EFAULT);
	len = sizeof(what);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_SYNC, &what, &len), ENOPROTOOPT);
	CHECK_ERR(st_option(fd, SPINDLE_STABLE, 1), ENOPROTOOPT);
	/* who asks for less is given less */
	say(fd, 1);
	CHECK_OK(sync_of(fd, RECEIVED));
	len = sizeof(s.sent);
	memset(&s, 0xaa, sizeof(s));
	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_STABLE, &s, &len));
	CHECK_EQ(len, sizeof(s.sent));
	CHECK_EQ(s.sent, 1);
	CHECK_EQ(s.received, 0xaaaaaaaaaaaaaaaaULL);
}

TEST(nothing_was_sent)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	struct spindle_stable s;
	unsigned int i;

	c.receivers = 1 << 2;
	st_open_but(&g, &c, 1);
	/* before the first view */
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	s = stable(g.fd[0]);
	CHECK_EQ(s.sent | s.order_received, 0);
	g.fd[2] = st_fresh(&c, 2);
	CHECK_OK(st_come(&g, g.fd[2], 0, SPINDLE_F_RECEIVER));
	g.n = 3;
	for (i = 0; i < 3; i++) {
		st_wait_state(g.fd[i], SPINDLE_STATE_ACTIVE);
		CHECK_OK(sync_of(g.fd[i], RECEIVED));
		CHECK_OK(sync_of(g.fd[i], CONSUMED));
		CHECK_EQ(stable(g.fd[i]).sent, 0);
	}
	/* what others send is nobody else's to wait for */
	say(g.fd[0], 1);
	CHECK_OK(sync_of(g.fd[1], CONSUMED));
	CHECK_OK(sync_of(g.fd[2], CONSUMED));
}

TEST(received_everywhere)
{
	static struct st_msg m;
	struct st_config c = three;
	struct st_group g = { 0 };
	struct spindle_stable s;

	c.recvinfo = true;
	st_open(&g, &c);
	say(g.fd[1], 5);
	CHECK_OK(sync_of(g.fd[1], RECEIVED));
	s = stable(g.fd[1]);
	CHECK_EQ(s.sent, 5);
	CHECK_EQ(s.received, 5);
	CHECK_EQ(s.consumed, 0);
	hear(g.fd[1], 4);
	CHECK_OK(st_recv(g.fd[1], &m, 0));
	CHECK(s.order_received > m.info.seq);
	CHECK(s.order_consumed <= m.info.seq);
	CHECK_ERR(try_sync(g.fd[1], CONSUMED), EAGAIN);
}

TEST(consumed_everywhere)
{
	static struct st_msg m;
	struct st_config c = three;
	struct st_group g = { 0 };
	struct spindle_stable s;

	c.recvinfo = true;
	st_open(&g, &c);
	say(g.fd[0], 3);
	all_hear(&g, 2, 3);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	hear(g.fd[2], 2);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_OK(st_recv(g.fd[2], &m, MSG_PEEK));
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_OK(st_recv(g.fd[2], &m, 0));
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	s = stable(g.fd[0]);
	CHECK_EQ(s.consumed, 3);
	CHECK(s.order_consumed > m.info.seq);
	/* more was sent since: that is another question */
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_EQ(stable(g.fd[0]).consumed, 3);
}

TEST(two_on_a_node)
{
	struct st_config c = { .members = 3, .nodes = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	say(g.fd[0], 1);
	say(g.fd[2], 2);
	hear(g.fd[0], 3);
	hear(g.fd[1], 3);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_ERR(try_sync(g.fd[2], CONSUMED), EAGAIN);
	hear(g.fd[2], 3);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	CHECK_OK(sync_of(g.fd[2], CONSUMED));
	CHECK_EQ(stable(g.fd[0]).consumed, 1);
	CHECK_EQ(stable(g.fd[2]).consumed, 2);
}

TEST(nobody_else)
{
	int fd = st_alone();

	say(fd, 2);
	CHECK_OK(sync_of(fd, RECEIVED));
	hear(fd, 1);
	CHECK_ERR(try_sync(fd, CONSUMED), EAGAIN);
	hear(fd, 1);
	CHECK_OK(sync_of(fd, CONSUMED));
}

static void sync_often(const struct st_config *c)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, c);
	for (i = 1; i <= 200; i++) {
		say(g.fd[0], 1);
		CHECK_OK(sync_of(g.fd[0], RECEIVED));
		CHECK_EQ(stable(g.fd[0]).received, i);
		all_hear(&g, ~0U, 1);
		CHECK_OK(sync_of(g.fd[0], CONSUMED));
		CHECK_EQ(stable(g.fd[0]).consumed, i);
	}
}

/* More than the lane has room for. */
TEST(again_and_again)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .depth = 16 };

	sync_often(&c);
}

/* So much room that nobody would tell of what was consumed, were it not asked for. */
TEST(again_and_again_with_room)
{
	struct st_config c = { .members = 2, .nodes = 2, .max_msg = 1000 };

	sync_often(&c);
}

/* Waiting */

static void hear_one(pid_t sleeper, void *arg)
{
	(void)sleeper;
	hear(*(int *)arg, 1);
}

TEST(waits_for_a_reader)
{
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &three);
	say(g.fd[0], 1);
	all_hear(&g, 1, 1);
	thread = st_in_call(hear_one, &g.fd[1]);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(stable(g.fd[0]).consumed, 1);
}

TEST(the_others_are_asked)
{
	struct st_group g = { 0 };
	char path[256], text[256];
	bool asked = false;
	FILE *f;

	st_open(&g, &three);
	say(g.fd[0], 1);
	all_hear(&g, 1, 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	hear(g.fd[1], 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/posts", st_addr(0), g.name);
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(text, sizeof(text), f))
		asked |= !!strstr(text, " wait");
	fclose(f);
	CHECK(asked);
}

TEST(waits_no_longer_than_it_is_told)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_OK(fcntl(g.fd[0], F_SETFL, O_NONBLOCK));
	CHECK_ERR(sync_of(g.fd[0], CONSUMED), EAGAIN);
	CHECK_OK(fcntl(g.fd[0], F_SETFL, 0));
	st_timeout(g.fd[0], SO_SNDTIMEO, 20);
	CHECK_ERR(sync_of(g.fd[0], CONSUMED), EAGAIN);
	st_timeout(g.fd[0], SO_SNDTIMEO, 0);
	all_hear(&g, ~0U, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
}

static void on_signal(int sig)
{
	(void)sig;
}

static void send_signal(pid_t sleeper, void *arg)
{
	(void)arg;
	CHECK_OK(syscall(SYS_tgkill, getpid(), sleeper, SIGUSR1));
}

TEST(is_interrupted)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct st_group g = { 0 };
	pthread_t thread;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	st_open(&g, &three);
	say(g.fd[0], 1);
	thread = st_in_call(send_signal, NULL);
	CHECK_ERR(sync_of(g.fd[0], CONSUMED), EINTR);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	all_hear(&g, ~0U, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
}

static void mend(pid_t sleeper, void *arg)
{
	(void)sleeper;
	(void)arg;
	st_mend(0, 1);
}

TEST(waits_for_a_connection)
{
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &three);
	st_cut(0, 1);
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], RECEIVED), EAGAIN);
	thread = st_in_call(mend, NULL);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	all_hear(&g, ~0U, 1);
	st_cut(0, 2);
	say(g.fd[2], 1);
	CHECK_ERR(try_sync(g.fd[2], RECEIVED), EAGAIN);
	st_mend(0, 2);
	all_hear(&g, ~0U, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	CHECK_OK(sync_of(g.fd[2], CONSUMED));
}

/* The event */

TEST(an_event_when_it_is_consumed)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	struct spindle_stable s;

	c.events = STABLE;
	st_open(&g, &c);
	/* it need not be told what is so already */
	CHECK_OK(try_sync(g.fd[0], CONSUMED));
	say(g.fd[0], 2);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	all_hear(&g, 1, 2);
	st_expect_none(g.fd[0]);
	CHECK_EQ(st_events(g.fd[0]) & POLLIN, 0);
	hear(g.fd[1], 2);
	st_wait_events(g.fd[0], POLLIN);
	s = expect_stable(g.fd[0], CONSUMED, MSG_PEEK);
	CHECK_EQ(s.consumed, 2);
	s = expect_stable(g.fd[0], CONSUMED, 0);
	CHECK_EQ(s.consumed, 2);
	CHECK_EQ(s.sent, 2);
	/* once, and not for the others, who have asked for nothing */
	st_expect_none(g.fd[0]);
	st_expect_none(g.fd[1]);
	CHECK_EQ(st_events(g.fd[0]) & POLLIN, 0);
	CHECK_EQ(st_info(g.fd[0]).received, 2);
}

TEST(an_event_when_it_is_received)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	struct spindle_stable s;

	c.events = STABLE;
	st_open(&g, &c);
	st_cut(0, 1);
	say(g.fd[0], 2);
	CHECK_ERR(try_sync(g.fd[0], RECEIVED), EINPROGRESS);
	st_expect_none(g.fd[0]);
	st_mend(0, 1);
	st_wait_events(g.fd[0], POLLIN);
	/* before the messages that it tells of */
	s = expect_stable(g.fd[0], RECEIVED, 0);
	CHECK_EQ(s.received, 2);
	all_hear(&g, ~0U, 2);
	st_expect_none(g.fd[0]);
}

TEST(both_at_once_and_more_since)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	static struct st_msg m;
	struct spindle_stable s;

	c.events = STABLE | SPINDLE_WANT_VIEW;
	st_open(&g, &c);
	/* each thing of the stream in its turn, this one before all */
	st_expect_view(g.fd[1], 1);
	st_expect_view(g.fd[2], 1);
	st_cut(0, 1);
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	CHECK_ERR(try_sync(g.fd[0], RECEIVED), EINPROGRESS);
	st_mend(0, 1);
	st_wait_events(g.fd[1], POLLIN);
	hear(g.fd[1], 1);
	hear(g.fd[2], 1);
	WAIT_UNTIL(stable(g.fd[0]).received == 1, ST_SOON);
	s = expect_stable(g.fd[0], RECEIVED, 0);
	CHECK_EQ(s.received, 1);
	st_expect_view(g.fd[0], 1);
	/* asked again, for more, before the first was true: told once, of all */
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	hear(g.fd[0], 1);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	hear(g.fd[0], 1);
	st_expect_none(g.fd[0]);
	hear(g.fd[1], 1);
	hear(g.fd[2], 1);
	st_wait_events(g.fd[0], POLLIN);
	/* what does not fit is cut, as of any event */
	m.len = recv(g.fd[0], m.data, 8, MSG_TRUNC | MSG_PEEK);
	CHECK_EQ(m.len, sizeof(struct spindle_event) + sizeof(struct spindle_stable));
	s = expect_stable(g.fd[0], CONSUMED, 0);
	CHECK_EQ(s.consumed, 2);
	st_expect_none(g.fd[0]);
}

TEST(no_event_unasked)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, STABLE));
	all_hear(&g, ~0U, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	st_expect_none(g.fd[0]);
	/* nor once it is not wanted any more, but that it was asked for stays */
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, 0));
	all_hear(&g, ~0U, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	st_expect_none(g.fd[0]);
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, STABLE));
	expect_stable(g.fd[0], CONSUMED, 0);
	/* who waits until it is true is not told besides */
	say(g.fd[0], 1);
	all_hear(&g, ~0U, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	st_expect_none(g.fd[0]);
}

static void others_hear(pid_t sleeper, void *arg)
{
	struct st_group *g = arg;

	(void)sleeper;
	hear(g->fd[1], 1);
	hear(g->fd[2], 1);
}

TEST(an_event_wakes_a_reader)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	static struct st_msg m;
	pthread_t thread;

	c.events = STABLE;
	st_open(&g, &c);
	say(g.fd[0], 1);
	hear(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	thread = st_in_call(others_hear, &g);
	CHECK_OK(st_recv(g.fd[0], &m, 0));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(m.flags & MSG_SPINDLE_EVENT);
	CHECK_EQ(m.event.type, SPINDLE_EVENT_STABLE);
}

/* And so is who sleeps in poll(), and wants to know nothing but what there is to read. */
TEST(an_event_wakes_a_poller)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	struct pollfd pfd = { .events = POLLIN };
	pthread_t thread;

	c.events = STABLE;
	st_open(&g, &c);
	say(g.fd[0], 1);
	hear(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	thread = st_in_call(others_hear, &g);
	/* one that has an end looks once more then, and would not tell */
	pfd.fd = g.fd[0];
	CHECK_EQ(poll(&pfd, 1, -1), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	expect_stable(g.fd[0], CONSUMED, 0);
}

#define ROUNDS	500

/* Reads all messages, and the events between them; whoever asks meanwhile. */
static void *read_all(void *arg)
{
	struct st_group *g = arg;
	unsigned int n = 0;
	static struct st_msg m;

	while (n < ROUNDS) {
		CHECK_OK(st_recv(g->fd[0], &m, 0));
		if (m.flags & MSG_SPINDLE_EVENT)
			CHECK_SAME(m.event.type, SPINDLE_EVENT_STABLE);
		else if (m.len == 2)
			n++;
		else
			BROKEN("received %zd bytes, flags %#x, after %u messages", m.len,
			       m.flags, n);
	}
	return NULL;
}

TEST(asked_while_it_is_read)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	pthread_t thread;
	unsigned int i;

	c.events = STABLE;
	st_open(&g, &c);
	CHECK_EQ(pthread_create(&thread, NULL, read_all, &g), 0);
	for (i = 0; i < ROUNDS; i++) {
		say(g.fd[0], 1);
		if (try_sync(g.fd[0], i % 2 ? CONSUMED : RECEIVED))
			CHECK_SAME(errno, EINPROGRESS);
		hear(g.fd[1], 1);
		hear(g.fd[2], 1);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
}

/* Members that come and go */

TEST(who_goes_is_not_waited_for)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	say(g.fd[0], 1);
	all_hear(&g, 1, 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	close(g.fd[1]);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	/* nor who reads no more */
	say(g.fd[0], 1);
	hear(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	CHECK_OK(shutdown(g.fd[2], SHUT_RD));
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
}

TEST(who_is_lost_is_not_waited_for)
{
	struct st_config c = three;
	struct st_group g = { 0 };

	c.silent_ms = 1000;
	c.link_ms = 1000;
	st_open(&g, &c);
	st_cut(0, 2);
	st_cut(1, 2);
	say(g.fd[0], 1);
	CHECK_ERR(try_sync(g.fd[0], RECEIVED), EAGAIN);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	CHECK_EQ(st_info(g.fd[0]).members, 2);
	hear(g.fd[0], 1);
	hear(g.fd[1], 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	st_mend(0, 2);
	st_mend(1, 2);
}

TEST(who_comes_is_waited_for)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	int fd;

	c.max_members = 8;
	st_open(&g, &c);
	say(g.fd[0], 1);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	fd = st_fresh(&c, 3);
	CHECK_OK(st_come(&g, fd, 1, 0));
	g.fd[g.n++] = fd;
	st_wait_members(g.fd[0], 4);
	/* what was there before it came is none of its business */
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	hear(g.fd[0], 1);
	hear(g.fd[1], 1);
	hear(g.fd[2], 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	say(g.fd[0], 1);
	all_hear(&g, 3, 1);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	hear(fd, 1);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	say(fd, 2);
	CHECK_OK(sync_of(fd, RECEIVED));
	all_hear(&g, ~0U, 2);
	CHECK_OK(sync_of(fd, CONSUMED));
	CHECK_EQ(stable(fd).consumed, 2);
}

TEST(it_waits_across_views)
{
	struct st_config c = three;
	struct st_group g = { 0 };

	c.max_members = 8;
	c.events = STABLE;
	st_open(&g, &c);
	say(g.fd[0], 3);
	hear(g.fd[0], 3);
	hear(g.fd[1], 3);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	CHECK_OK(st_come(&g, st_fresh(&c, 1), 0, 0));
	st_wait_members(g.fd[0], 4);
	close(g.fd[1]);
	st_wait_members(g.fd[0], 3);
	st_expect_none(g.fd[0]);
	hear(g.fd[2], 3);
	st_wait_events(g.fd[0], POLLIN);
	CHECK_EQ(expect_stable(g.fd[0], CONSUMED, 0).consumed, 3);
}

TEST(who_has_left_does_not_know)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	say(g.fd[0], 2);
	CHECK_OK(st_leave(g.fd[0]));
	st_wait_members(g.fd[1], 2);
	st_wait_state(g.fd[0], SPINDLE_STATE_CLOSED);
	/* it did leave behind its last message */
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	CHECK_ERR(sync_of(g.fd[0], CONSUMED), EPIPE);
	CHECK_EQ(stable(g.fd[0]).received, 2);
	hear(g.fd[0], 2);
	st_expect_end(g.fd[0]);
	all_hear(&g, 0, 2);
}

static void leave(pid_t sleeper, void *arg)
{
	(void)sleeper;
	CHECK_OK(st_leave(*(int *)arg));
}

TEST(leaving_ends_the_wait)
{
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &three);
	say(g.fd[0], 2);
	thread = st_in_call(leave, &g.fd[0]);
	CHECK_ERR(sync_of(g.fd[0], CONSUMED), EPIPE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(the_group_fails)
{
	struct st_config c = three;
	struct st_group g = { 0 };

	c.silent_ms = 1000;
	c.link_ms = 1000;
	st_open(&g, &c);
	say(g.fd[0], 1);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	hear(g.fd[0], 1);
	st_cut(0, 1);
	st_cut(0, 2);
	say(g.fd[0], 1);
	CHECK_ERR(sync_of(g.fd[0], RECEIVED), ENETDOWN);
	CHECK_EQ(st_info(g.fd[0]).error, ENETDOWN);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), ENETDOWN);
	CHECK_EQ(stable(g.fd[0]).received, 1);
	st_mend(0, 1);
	st_mend(0, 2);
}

TEST(all_have_shut_down)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i;

	c.events = STABLE;
	st_open(&g, &c);
	say(g.fd[0], 2);
	for (i = 0; i < 3; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	for (i = 0; i < 3; i++)
		st_wait_state(g.fd[i], SPINDLE_STATE_CLOSED);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	CHECK_EQ(stable(g.fd[0]).received, 2);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	hear(g.fd[0], 2);
	st_expect_end(g.fd[0]);
	hear(g.fd[1], 2);
	st_expect_end(g.fd[1]);
	hear(g.fd[2], 2);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	/* the end of the stream goes on being told, behind that */
	CHECK_EQ(expect_stable(g.fd[0], CONSUMED, 0).consumed, 2);
	st_expect_end(g.fd[0]);
}

/* Other ways to send and to read */

TEST(detached_members_have_copies)
{
	struct st_config c = three;
	struct st_group g = { 0 };

	c.events = STABLE;
	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[1], SPINDLE_DETACHED, 1));
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	say(g.fd[0], 2);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EINPROGRESS);
	hear(g.fd[2], 2);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	st_wait_events(g.fd[0], POLLIN);
	/* before what is in the queue */
	expect_stable(g.fd[0], CONSUMED, 0);
	hear(g.fd[0], 2);
	hear(g.fd[1], 2);
}

TEST(mapped_rings)
{
	static struct ring r, other;
	struct st_config c = three;
	struct st_group g = { 0 };

	c.events = STABLE;
	st_open(&g, &c);
	ring_map(&r, g.fd[0], SPINDLE_MAP_ALL);
	ring_map(&other, g.fd[1], SPINDLE_MAP_RX);
	/* what is submitted and not collected yet is sent by this */
	memcpy(ring_place(&r), "it", 2);
	ring_submit(&r, 2, 0);
	CHECK_OK(sync_of(g.fd[0], RECEIVED));
	CHECK_EQ(stable(g.fd[0]).sent, 1);
	hear(g.fd[2], 1);
	/* there is no stream that an event could come in */
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	ring_expect(&r, "it", 0);
	CHECK_ERR(try_sync(g.fd[0], CONSUMED), EAGAIN);
	ring_expect(&other, "it", 0);
	CHECK_OK(sync_of(g.fd[0], CONSUMED));
	CHECK_EQ(stable(g.fd[0]).consumed, 1);
	CHECK_EQ(r.status->tx_freed - r.status->tx_base, 1);
	ring_unmap(&r);
	ring_unmap(&other);
}

/* Many threads wait for the same. */
static void *wait_for(void *arg)
{
	CHECK_OK(sync_of(*(int *)arg, CONSUMED));
	return NULL;
}

TEST(many_wait)
{
	pthread_t thread[8];
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &three);
	say(g.fd[0], 5);
	hear(g.fd[0], 5);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_for, &g.fd[0]), 0);
	all_hear(&g, 0, 5);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	CHECK_EQ(stable(g.fd[0]).consumed, 5);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
