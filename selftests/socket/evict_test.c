// SPDX-License-Identifier: GPL-2.0
/*
 * Members that hold up senders and read nothing are evicted: what they are told, what the
 * others read, and who is let alone.
 */
#include "ring.h"

#define EVICT_MS	2000
#define SLOW_MS		"/sys/module/spindle/parameters/slow_ms"

static const struct st_config three = {
	.members = 3, .nodes = 3, .window = 8192, .max_msg = 1024, .max_members = 8,
	.evict_ms = EVICT_MS, .events = SPINDLE_WANT_VIEW,
};

static struct st_msg m;

/* What a member has read: messages, and the last view with who left for it first. */
struct seen {
	unsigned int messages;
	unsigned int view;
	unsigned int left;
	struct spindle_event_member who;
};

/* A group of which all but one member read. */
struct world {
	struct st_group g;
	struct seen seen[SPINDLE_MAX_MEMBERS];
	unsigned int but;
	unsigned int sent;
};

static void note(struct seen *s)
{
	const struct spindle_event *e = &m.event;

	if (!(m.flags & MSG_SPINDLE_EVENT)) {
		s->messages++;
		return;
	}
	CHECK_EQ(e->type, SPINDLE_EVENT_VIEW);
	s->view = e->view;
	s->left = e->left;
	if (e->left)
		s->who = e->member[e->members];
}

/* All that is there for a member. */
static void take_all(int fd, struct seen *s)
{
	while (st_recv(fd, &m, MSG_DONTWAIT) >= 0)
		note(s);
	CHECK_EQ(errno, EAGAIN);
}

static void others_take(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->g.n; i++)
		if (i != w->but && w->g.fd[i] >= 0)
			take_all(w->g.fd[i], &w->seen[i]);
}

static bool say(struct world *w, unsigned int from)
{
	memcpy(m.data, &w->sent, sizeof(w->sent));
	if (send(w->g.fd[from], m.data, 1000, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		CHECK_EQ(errno, EAGAIN);
		return false;
	}
	w->sent++;
	return true;
}

/* Member 0 sends as much as it can, all but one read, until something is so. */
#define FILL_UNTIL(w, cond)						\
do {									\
	double __end = st_now() + st_bound_s(ST_SOON);			\
									\
	while (!(cond)) {						\
		if (st_now() > __end)					\
			FAIL("not %s after %g s", #cond, st_bound_s(ST_SOON)); \
		st_pause_us(say(w, 0) ? 1000 : 10000);			\
		others_take(w);						\
	}								\
} while (0)

static unsigned int state_of(int fd)
{
	return st_info(fd).state;
}

static void until_evicted(struct world *w)
{
	FILL_UNTIL(w, state_of(w->g.fd[w->but]) == SPINDLE_STATE_EVICTED);
}

/* Nobody waits any more, and all that was said comes to those who are left. */
static void others_go_on(struct world *w, unsigned int view, unsigned int rank)
{
	unsigned int i, more = w->sent + 40;

	FILL_UNTIL(w, w->sent >= more);
	for (i = 0; i < w->g.n; i++) {
		struct seen *s = &w->seen[i];

		if (i == w->but || w->g.fd[i] < 0)
			continue;
		while (s->messages < w->sent || s->view < view) {
			CHECK_OK(st_recv(w->g.fd[i], &m, 0));
			note(s);
		}
		CHECK_EQ(s->messages, w->sent);
		CHECK_EQ(s->view, view);
		CHECK_EQ(s->left, 1);
		CHECK_EQ(s->who.rank, rank);
		CHECK_EQ(s->who.reason, SPINDLE_REASON_SLOW);
	}
}

/* What an evicted member is told by every call, and for good. */
static void told(int fd)
{
	struct spindle_group_info info = st_info(fd);
	unsigned int i;

	CHECK_EQ(info.state, SPINDLE_STATE_EVICTED);
	CHECK_EQ(info.error, ENOBUFS);
	CHECK_EQ(st_events(fd) & (POLLIN | POLLERR | POLLHUP | POLLOUT),
		 POLLIN | POLLERR | POLLHUP | POLLOUT);
	CHECK_EQ(st_so_error(fd), ENOBUFS);
	CHECK_EQ(st_so_error(fd), 0);
	for (i = 0; i < 2; i++) {
		CHECK_ERR(recv(fd, m.data, 1, 0), ENOBUFS);
		CHECK_ERR(recv(fd, m.data, 1, MSG_DONTWAIT), ENOBUFS);
		CHECK_ERR(send(fd, "x", 1, 0), ENOBUFS);
	}
	CHECK_ERR(map_option(fd, SPINDLE_MAP_ALL), ENOBUFS);
}

TEST(who_does_not_read)
{
	struct world w = { .but = 1 };
	int fd;

	st_open(&w.g, &three);
	until_evicted(&w);
	told(w.g.fd[1]);
	others_go_on(&w, 2, 1);
	CHECK_EQ(state_of(w.g.fd[1]), SPINDLE_STATE_EVICTED);
	CHECK_EQ(st_info(w.g.fd[1]).rank, ~0U);
	CHECK_ERR(recv(w.g.fd[1], m.data, 1, 0), ENOBUFS);
	CHECK_ERR(send(w.g.fd[1], "x", 1, 0), ENOBUFS);
	/* it was the only one there: its node has left, and may come again */
	st_wait_gone(1, &w.g);
	fd = st_fresh(&three, 1);
	CHECK_OK(st_come(&w.g, fd, 0, 0));
	CHECK_EQ(st_expect_view(fd, 3)->members, 3);
}

/* It never sends, and another member of its node reads. */
TEST(one_of_a_node)
{
	struct st_config c = three;
	struct world w = { .but = 3 };
	char cause[64], path[256];

	c.members = 4;
	c.nodes = 2;
	c.receivers = 1 << 3;
	st_open(&w.g, &c);
	until_evicted(&w);
	others_go_on(&w, 2, 3);
	CHECK_EQ(st_shown(1, &w.g, "counters/evictions"), 1);
	CHECK_EQ(st_shown(0, &w.g, "counters/evictions"), 0);
	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/view_cause", st_addr(1), w.g.name);
	CHECK(st_read_file(path, cause, sizeof(cause)));
	CHECK(!strncmp(cause, "slow", 4));
	CHECK_ERR(recv(w.g.fd[3], m.data, 1, 0), ENOBUFS);
	CHECK_ERR(send(w.g.fd[3], "x", 1, 0), EACCES);
	st_say(w.g.fd[1], "beside it");
	st_expect(w.g.fd[0], "beside it");
	close(w.g.fd[3]);
	st_expect(w.g.fd[1], "beside it");
}

/* What its sending has succeeded for everybody receives. */
TEST(what_it_had_sent)
{
	struct world w = { .but = 1 };
	unsigned int i, k;
	char text[32];

	st_open(&w.g, &three);
	for (i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "of the evicted %u", i);
		st_say(w.g.fd[1], text);
	}
	for (k = 0; k < 3; k += 2) {
		st_expect_view(w.g.fd[k], 1);
		for (i = 0; i < 5; i++) {
			snprintf(text, sizeof(text), "of the evicted %u", i);
			st_expect(w.g.fd[k], text);
		}
	}
	until_evicted(&w);
	others_go_on(&w, 2, 1);
	CHECK_EQ(st_info(w.g.fd[1]).sent, 5);
	CHECK_OK(st_option(w.g.fd[1], SPINDLE_SYNC, SPINDLE_SYNC_RECEIVED));
}

/* Its own message is the one that it does not take. */
TEST(amid_its_own_send)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int n = 0;

	c.members = 1;
	c.nodes = 1;
	st_open(&g, &c);
	while (send(g.fd[0], m.data, 1000, MSG_NOSIGNAL) == 1000)
		n++;
	CHECK_EQ(errno, ENOBUFS);
	CHECK(n >= 7);
	told(g.fd[0]);
	close(g.fd[0]);
	st_wait_gone(0, &g);
}

/* It takes one message now and then, which is little, but not nothing. */
TEST(who_reads_a_little)
{
	struct world w = { .but = 1 };
	unsigned int taken = 0;
	double end;

	st_open(&w.g, &three);
	st_expect_view(w.g.fd[1], 1);
	end = st_now() + 3 * EVICT_MS / 1e3;
	while (st_now() < end) {
		unsigned int i;

		for (i = 0; i < 5; i++) {
			while (say(&w, 0))
				others_take(&w);
			others_take(&w);
			/* no more room before it reads */
			st_pause_us(EVICT_MS * 1000 / 20);
		}
		CHECK_SAME(CHECK_OK(st_recv(w.g.fd[1], &m, 0)), 1000);
		CHECK(!memcmp(m.data, &taken, sizeof(taken)));
		taken++;
	}
	CHECK(taken >= 3);
	CHECK_EQ(state_of(w.g.fd[1]), SPINDLE_STATE_ACTIVE);
	CHECK_EQ(st_shown(1, &w.g, "counters/evictions"), 0);
}

/* Little is kept, but too much for what a sender on another node has to say. */
TEST(who_holds_a_large_message)
{
	struct st_config c = three;
	struct world w = { .but = 1 };
	double end = st_now() + st_bound_s(ST_SOON);

	c.max_msg = 8192;
	st_open(&w.g, &c);
	CHECK_EQ(send(w.g.fd[0], m.data, 3000, 0), 3000);
	while (send(w.g.fd[0], m.data, 6000, MSG_DONTWAIT) < 0) {
		CHECK_EQ(errno, EAGAIN);
		if (st_now() > end)
			FAIL("no room after %g s", st_bound_s(ST_SOON));
		others_take(&w);
		st_pause_us(10000);
	}
	CHECK_EQ(state_of(w.g.fd[1]), SPINDLE_STATE_EVICTED);
}

/* It takes small messages out of its queue, where the next one is too large for it yet. */
TEST(who_reads_a_little_of_its_queue)
{
	struct st_config c = three;
	struct world w = { .but = 1 };
	unsigned int small = 0, i;
	int bytes = 4096;
	double end;

	c.max_msg = 4096;
	st_open(&w.g, &c);
	CHECK_OK(st_option(w.g.fd[1], SPINDLE_EVENTS, 0));
	CHECK_OK(setsockopt(w.g.fd[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
	CHECK_OK(st_option(w.g.fd[1], SPINDLE_DETACHED, 1));
	while (small < 40) {
		small += send(w.g.fd[0], m.data, 64, MSG_DONTWAIT) == 64;
		others_take(&w);
	}
	for (i = 0; i < 2;) {
		i += send(w.g.fd[0], m.data, 4000, MSG_DONTWAIT) == 4000;
		others_take(&w);
		st_pause_us(1000);
	}
	end = st_now() + 3 * EVICT_MS / 1e3;
	while (st_now() < end) {
		for (i = 0; i < 5; i++) {
			others_take(&w);
			st_pause_us(EVICT_MS * 1000 / 20);
		}
		CHECK_SAME(CHECK_OK(st_recv(w.g.fd[1], &m, 0)), 64);
	}
	CHECK_EQ(state_of(w.g.fd[1]), SPINDLE_STATE_ACTIVE);
	/* it was near to that */
	until_evicted(&w);
}

TEST(who_holds_nobody)
{
	struct world w = { .but = 1 };
	unsigned int i;

	st_open(&w.g, &three);
	for (i = 0; i < 3; i++)
		CHECK(say(&w, 0));
	for (i = 0; i < 30; i++) {
		others_take(&w);
		st_pause_us(EVICT_MS * 1000 / 10);
	}
	CHECK_EQ(state_of(w.g.fd[1]), SPINDLE_STATE_ACTIVE);
	st_expect_view(w.g.fd[1], 1);
	for (i = 0; i < 3; i++) {
		CHECK_SAME(CHECK_OK(st_recv(w.g.fd[1], &m, 0)), 1000);
		CHECK(!memcmp(m.data, &i, sizeof(i)));
	}
}

/* Nobody is named as slow, and yet looked at. */
TEST(without_names)
{
	struct world w = { .but = 2 };
	char was[32];

	CHECK(st_read_file(SLOW_MS, was, sizeof(was)));
	CHECK(st_write_file(SLOW_MS, "0"));
	st_open(&w.g, &three);
	until_evicted(&w);
	CHECK(st_write_file(SLOW_MS, was));
	others_go_on(&w, 2, 2);
}

/* The queue of a detached member is its own: it reads that, in order, and then the error. */
TEST(a_detached_member)
{
	struct world w = { .but = 1 };
	unsigned int n = 0;
	int bytes = 8192;

	st_open(&w.g, &three);
	CHECK_OK(setsockopt(w.g.fd[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
	CHECK_OK(st_option(w.g.fd[1], SPINDLE_DETACHED, 1));
	until_evicted(&w);
	others_go_on(&w, 2, 1);
	CHECK_EQ(st_so_error(w.g.fd[1]), 0);
	st_expect_view(w.g.fd[1], 1);
	while (st_recv(w.g.fd[1], &m, 0) >= 0) {
		CHECK_SAME(m.len, 1000);
		CHECK(!memcmp(m.data, &n, sizeof(n)));
		n++;
	}
	CHECK_EQ(errno, ENOBUFS);
	CHECK(n >= 1 && n < w.sent);
	told(w.g.fd[1]);
}

/* Has it read to its end, it is at its end; if not, that is no reason to wait for ever. */
TEST(who_has_left_and_does_not_read)
{
	struct st_config c = three;
	struct world w = { .but = 2 };
	unsigned int more;

	c.nodes = 2;
	st_open(&w.g, &c);
	while (say(&w, 0))
		;
	others_take(&w);
	CHECK_OK(st_leave(w.g.fd[2]));
	until_evicted(&w);
	CHECK_ERR(recv(w.g.fd[2], m.data, 1, 0), ENOBUFS);
	more = w.sent + 40;
	FILL_UNTIL(&w, w.sent >= more);
	CHECK_EQ(st_shown(0, &w.g, "counters/evictions"), 1);
	/* it has gone for the reason that it had */
	CHECK_EQ(w.seen[0].view, 2);
	CHECK_EQ(w.seen[0].who.reason, SPINDLE_REASON_LEFT);
}

static bool all_zero(const unsigned char *at, size_t size)
{
	return !at[0] && !memcmp(at, at + 1, size - 1);
}

/* What it holds in its mapping reads as zeros, never as another message. */
TEST(a_mapped_reader)
{
	struct st_config c = three;
	struct world w = { .but = 2 };
	const unsigned char *data;
	unsigned int lane, i;
	struct ring ring;
	uint32_t len, rank;

	/* passes go on for the other member of its node */
	c.nodes = 2;
	st_open(&w.g, &c);
	ring_map(&ring, w.g.fd[2], SPINDLE_MAP_RX);
	memset(m.data, 'h', 1000);
	CHECK_EQ(send(w.g.fd[0], m.data, 1000, 0), 1000);
	for (i = 0; i < 2; i++) {
		st_expect_view(w.g.fd[i], 1);
		CHECK_SAME(CHECK_OK(recv(w.g.fd[i], m.data, 1000, 0)), 1000);
	}
	while (!(data = ring_peek(&ring, &len, &rank)))
		st_wait_events(ring.fd, POLLIN);
	CHECK_EQ(len, 1000);
	CHECK_EQ(rank, 0);
	CHECK(data[0] == 'h' && !memcmp(data, data + 1, 999));
	until_evicted(&w);
	CHECK_EQ(ring.status->state, SPINDLE_STATE_EVICTED);
	CHECK_EQ(ring.status->error, ENOBUFS);
	CHECK(all_zero(data, 1000));
	for (lane = 0; lane < 4; lane++)
		CHECK(all_zero(ring_lane(&ring, lane), 2 * ring.r.window));
	CHECK_EQ(st_events(ring.fd) & (POLLIN | POLLERR | POLLHUP), POLLIN | POLLERR | POLLHUP);
	others_go_on(&w, 2, 2);
	CHECK(all_zero(data, 1000));
	/* nothing of what it says is heard any more */
	ring.user->rx_released = ~0ULL;
	CHECK_OK(ioctl(ring.fd, SIOCSPINDLEKICK, 0));
	CHECK_EQ(ring.status->state, SPINDLE_STATE_EVICTED);
	CHECK_ERR(recv(ring.fd, m.data, 1, 0), EBUSY);
	CHECK_EQ(st_so_error(ring.fd), ENOBUFS);
	ring_unmap(&ring);
}

/* What it has submitted is delivered; what it submits from then on is not. */
TEST(a_mapped_sender)
{
	struct world w = { .but = 1 };
	struct ring ring;
	unsigned int i;

	st_open(&w.g, &three);
	ring_map(&ring, w.g.fd[1], SPINDLE_MAP_ALL);
	ring_say(&ring, "in time");
	for (i = 0; i < 3; i += 2) {
		st_expect_view(w.g.fd[i], 1);
		st_expect(w.g.fd[i], "in time");
	}
	until_evicted(&w);
	memcpy(ring_place(&ring), "late", 4);
	ring_submit(&ring, 4, 0);
	CHECK_OK(ioctl(ring.fd, SIOCSPINDLEKICK, 0));
	others_go_on(&w, 2, 1);
	CHECK_EQ(ring.status->state, SPINDLE_STATE_EVICTED);
	CHECK_ERR(send(ring.fd, "x", 1, 0), ENOBUFS);
}

/* Two at once, one of them the last of its node. */
TEST(two_at_once)
{
	struct st_config c = three;
	struct world w = { .but = 1 };
	unsigned int more;
	int fd;

	c.members = 4;
	st_open(&w.g, &c);
	/* nobody reads for member 3, on the node of member 0 */
	fd = w.g.fd[3];
	w.g.fd[3] = -1;
	FILL_UNTIL(&w, state_of(fd) == SPINDLE_STATE_EVICTED &&
		       state_of(w.g.fd[1]) == SPINDLE_STATE_EVICTED);
	more = w.sent + 40;
	FILL_UNTIL(&w, w.sent >= more);
	FILL_UNTIL(&w, st_info(w.g.fd[0]).members == 2);
	CHECK_ERR(recv(fd, m.data, 1, 0), ENOBUFS);
	CHECK_ERR(recv(w.g.fd[1], m.data, 1, 0), ENOBUFS);
}

TEST(the_time_is_bounded)
{
	static const unsigned int bad[] = {
		1, SPINDLE_MIN_PATIENCE - 1, SPINDLE_MAX_PATIENCE + 1, ~0U,
	};
	struct spindle_group_create create = { .members = 1, .name = "evict" };
	struct spindle_group_join join = { .name = "evict" };
	int fd = st_bound(0);
	unsigned int i;

	st_contact(&join, st_addr(1));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		create.evict_ms = bad[i];
		CHECK_ERR(st_create(fd, &create), ERANGE);
		join.evict_ms = bad[i];
		CHECK_ERR(st_join(fd, &join), ERANGE);
	}
}

TEST(the_time_is_the_group_s)
{
	struct spindle_group_join j = { 0 };
	struct st_config c = three;
	struct st_group g = { 0 }, h = { 0 };
	int fd = st_bound(1);

	c.members = 1;
	c.nodes = 1;
	st_open(&g, &c);
	CHECK_EQ(st_info(g.fd[0]).evict_ms, EVICT_MS);
	CHECK_EQ(st_shown(0, &g, "evict_ms"), EVICT_MS);
	snprintf(j.name, sizeof(j.name), "%s", g.name);
	st_contact(&j, st_addr(0));
	j.evict_ms = EVICT_MS + 1;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.evict_ms = EVICT_MS;
	CHECK_OK(st_join(fd, &j));
	CHECK_EQ(st_info(fd).evict_ms, EVICT_MS);
	/* nobody is evicted who was not to be */
	c.evict_ms = 0;
	st_open(&h, &c);
	CHECK_EQ(st_info(h.fd[0]).evict_ms, 0);
	CHECK_EQ(st_shown(0, &h, "evict_ms"), 0);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
