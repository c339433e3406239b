// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that are lost, all nodes on one host: what is under way comes when there
 * is another one, and a node is lost when there is none for too long.
 *
 * What each member reads is written down message by message, and is the same at all.
 * Nodes suspect each other after a minute, but where a group says otherwise.
 */
#include "spindle_selftest.h"

#include <fcntl.h>

#define MEMBERS		8
#define BOUND		(4 * ST_SOON)
#define VIEWS		SPINDLE_WANT_VIEW

/* A message, padded to its length. */
struct note {
	uint32_t from;
	uint32_t k;
};

/**
 * struct world - a group whose members all talk
 * @g: the group
 * @sent: messages of each member so far
 * @read: messages that each member has read
 * @log: what they are: from << 32 | k
 * @room: for so many each
 * @size: bytes of a message, at least
 * @seed: of their sizes
 */
struct world {
	struct st_group g;
	uint32_t sent[MEMBERS];
	size_t read[MEMBERS];
	uint64_t *log[MEMBERS];
	size_t room;
	size_t size;
	uint64_t seed;
};

static void begin(struct world *w, const struct st_config *c, size_t room)
{
	unsigned int i;

	st_open(&w->g, c);
	w->room = room;
	w->seed = 1;
	for (i = 0; i < w->g.n; i++) {
		w->log[i] = calloc(room, sizeof(*w->log[i]));
		CHECK(w->log[i]);
	}
}

/* False when there is no room for it now. */
static bool talk(struct world *w, unsigned int i)
{
	static char data[16384];
	struct note note = { i, w->sent[i] + 1 };
	size_t len = sizeof(note) + st_random(&w->seed) % (w->size + 1);

	memcpy(data, &note, sizeof(note));
	if (send(w->g.fd[i], data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		CHECK_EQ(errno, EAGAIN);
		return false;
	}
	w->sent[i]++;
	return true;
}

/* False when there is nothing to read now. */
static bool listen_to(struct world *w, unsigned int i)
{
	static struct st_msg m;
	struct note note;
	unsigned int k;

	if (st_recv(w->g.fd[i], &m, MSG_DONTWAIT) < 0) {
		CHECK_EQ(errno, EAGAIN);
		return false;
	}
	CHECK(!(m.flags & MSG_SPINDLE_EVENT));
	CHECK(m.len >= (ssize_t)sizeof(note));
	memcpy(&note, m.data, sizeof(note));
	CHECK(w->read[i] < w->room);
	w->log[i][w->read[i]] = (uint64_t)note.from << 32 | note.k;
	for (k = 0; k < w->g.n; k++)
		if (w->read[k] > w->read[i] &&
		    w->log[k][w->read[i]] != w->log[i][w->read[i]])
			BROKEN("message %zu is %#llx at member %u and %#llx at member %u",
			       w->read[i], (unsigned long long)w->log[i][w->read[i]], i,
			       (unsigned long long)w->log[k][w->read[i]], k);
	w->read[i]++;
	return true;
}

/* All talk until each has said @n, and read what it can. */
static void talk_until(struct world *w, uint32_t n)
{
	double end = st_now() + st_bound_s(BOUND);
	bool did, more = true;
	unsigned int i;

	while (more) {
		did = false;
		more = false;
		for (i = 0; i < w->g.n; i++) {
			if (w->sent[i] < n)
				did |= talk(w, i);
			did |= listen_to(w, i);
			more |= w->sent[i] < n;
		}
		if (st_now() > end)
			BROKEN("they do not come to %u messages", n);
		if (!did)
			st_pause_us(1000);
	}
}

/* Everybody has read all that was said, each sender's in its order. */
static void read_all(struct world *w)
{
	uint32_t seen[MEMBERS] = { 0 };
	size_t all = 0, k;
	unsigned int i;

	for (i = 0; i < w->g.n; i++)
		all += w->sent[i];
	for (i = 0; i < w->g.n; i++) {
		double end = st_now() + st_bound_s(BOUND);

		while (w->read[i] < all) {
			if (listen_to(w, i))
				continue;
			if (st_now() > end)
				BROKEN("member %u has read %zu of %zu", i, w->read[i], all);
			st_pause_us(1000);
		}
		CHECK(!listen_to(w, i));
	}
	for (k = 0; k < all; k++) {
		uint64_t what = w->log[0][k];

		CHECK_SAME((uint32_t)what, ++seen[what >> 32]);
	}
}

/* Nobody was suspected for it. */
static void nobody_lost(const struct st_group *g)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		CHECK_EQ(st_info(g->fd[i]).view, 1);
	for (i = 0; i < g->nodes; i++)
		CHECK_EQ(st_shown(i, g, "counters/suspicions"), 0);
}

/* The connection is lost, and there may be another one. */
static void lose(unsigned int node, unsigned int peer)
{
	st_cut(node, peer);
	st_mend(node, peer);
}

static const struct st_config two = {
	.members = 2, .nodes = 2, .max_members = 8, .window = 65536, .link_ms = 60000,
};

static const struct st_config three = {
	.members = 3, .nodes = 3, .max_members = 8, .window = 65536, .link_ms = 60000,
};

/* Both members of a group read this next. */
static void both_expect(const struct st_group *g, const char *text)
{
	st_expect(g->fd[0], text);
	st_expect(g->fd[1], text);
}

TEST(lost_at_rest)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &two);
	for (i = 1; i <= 4; i++) {
		lose(i & 1, !(i & 1));
		WAIT_UNTIL(st_shown(0, &g, "counters/reconnects") == i &&
			   st_shown(1, &g, "counters/reconnects") == i, BOUND);
		st_say(g.fd[0], "one");
		both_expect(&g, "one");
		st_say(g.fd[1], "two");
		both_expect(&g, "two");
	}
	nobody_lost(&g);
}

TEST(what_is_said_waits)
{
	struct st_group g = { 0 };

	st_open(&g, &two);
	st_cut(0, 1);
	st_say(g.fd[0], "one");
	st_say(g.fd[1], "two");
	st_say(g.fd[0], "three");
	/* It is deliverable nowhere before it is everywhere. */
	st_pause_us(300000);
	st_expect_none(g.fd[0]);
	st_expect_none(g.fd[1]);
	st_mend(0, 1);
	both_expect(&g, "one");
	both_expect(&g, "two");
	both_expect(&g, "three");
	nobody_lost(&g);
}

TEST(cut_on_both_sides)
{
	struct st_group g = { 0 };

	st_open(&g, &two);
	st_cut(0, 1);
	st_cut(1, 0);
	st_say(g.fd[1], "one");
	st_mend(1, 0);
	st_pause_us(100000);
	st_expect_none(g.fd[0]);
	st_mend(0, 1);
	both_expect(&g, "one");
	nobody_lost(&g);
}

static void lost_under_load(const struct st_config *c, size_t size, unsigned int losses,
			    unsigned int each)
{
	unsigned int n = c->members, i, a, b;
	struct world w = { .size = size };

	begin(&w, c, n * (losses + 1) * each);
	for (i = 0; i < losses; i++) {
		talk_until(&w, (i + 1) * each);
		a = i % n;
		b = (a + 1 + i / n % (n - 1)) % n;
		lose(a, b);
	}
	talk_until(&w, (losses + 1) * each);
	read_all(&w);
	nobody_lost(&w.g);
	for (i = 0; i < n; i++)
		CHECK(st_shown(i, &w.g, "counters/reconnects") > 0);
}

TEST(lost_under_load_of_two)
{
	lost_under_load(&two, 100, 60, 20);
}

TEST(lost_under_load_of_three)
{
	lost_under_load(&three, 100, 60, 20);
}

TEST(lost_amid_long_messages)
{
	struct st_config c = three;

	c.max_msg = 16000;
	lost_under_load(&c, 15000, 30, 5);
}

TEST(lost_with_the_smallest_ring)
{
	struct st_config c = three;

	c.window = SPINDLE_MIN_WINDOW;
	c.depth = SPINDLE_MIN_DEPTH;
	lost_under_load(&c, 1000, 40, 30);
}

TEST(many_at_once)
{
	struct st_config c = { .members = 8, .nodes = 8, .window = 65536, .link_ms = 60000 };
	struct world w = { .size = 200 };
	unsigned int i, k;

	begin(&w, &c, 8 * 60);
	for (i = 0; i < 5; i++) {
		talk_until(&w, (i + 1) * 10);
		for (k = 0; k < 8; k++)
			lose(k, (k + 1 + i) % 8);
	}
	talk_until(&w, 60);
	read_all(&w);
	nobody_lost(&w.g);
}

/* Node 2 has no connection with the others for too long. */
static void cut_off(unsigned int silent_ms, unsigned int link_ms, bool returns)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	const struct spindle_event *e;
	unsigned int i;

	c.silent_ms = silent_ms;
	c.link_ms = link_ms;
	c.events = VIEWS;
	st_open(&g, &c);
	for (i = 0; i < 3; i++)
		st_expect_view(g.fd[i], 1);
	st_cut(2, 0);
	st_cut(2, 1);
	for (i = 0; i < 2; i++) {
		e = st_expect_view(g.fd[i], 2);
		CHECK_EQ(e->members, 2);
		CHECK_EQ(e->left, 1);
		CHECK_EQ(e->member[2].rank, 2);
		CHECK_EQ(e->member[2].reason, SPINDLE_REASON_LOST);
	}
	st_wait_minority(g.fd[2]);
	st_say(g.fd[1], "on");
	both_expect(&g, "on");
	st_wait_minority(g.fd[2]);
	st_mend(2, 0);
	st_mend(2, 1);
	/* It learns that the others have gone on without it. */
	st_wait_state(g.fd[2], SPINDLE_STATE_FAILED);
	CHECK(st_info(g.fd[2]).error == ENETDOWN || st_info(g.fd[2]).error == ECONNABORTED);
	if (!returns)
		return;
	/* It finds the others again, and comes back. */
	close(g.fd[2]);
	st_wait_gone(2, &g);
	g.fd[2] = st_bound(2);
	CHECK_OK(st_come(&g, g.fd[2], 0, 0));
	st_say(g.fd[2], "back");
	for (i = 0; i < 2; i++) {
		st_expect_view(g.fd[i], 3);
		st_expect(g.fd[i], "back");
	}
	st_expect(g.fd[2], "back");
}

TEST(no_connection_for_too_long)
{
	cut_off(60000, 3000, true);
}

TEST(no_sign_for_too_long)
{
	cut_off(3000, 60000, true);
}

/*
 * Who comes back is waited for anew, though the connection has been away for longer than
 * the group waits. Another group keeps that link meanwhile.
 */
static void comes_back(unsigned int silent_ms, unsigned int link_ms)
{
	struct st_group patient = { 0 }, g = { 0 };
	struct st_config c = three;
	unsigned int i;

	st_open(&patient, &c);
	c.silent_ms = silent_ms;
	c.link_ms = link_ms;
	c.events = VIEWS;
	st_open(&g, &c);
	st_cut(2, 0);
	st_cut(2, 1);
	for (i = 0; i < 2; i++) {
		st_expect_view(g.fd[i], 1);
		st_expect_view(g.fd[i], 2);
	}
	/* It waits for the others, but not if its program goes. */
	st_expect_view(g.fd[2], 1);
	st_wait_minority(g.fd[2]);
	close(g.fd[2]);
	st_wait_gone(2, &g);
	st_mend(2, 0);
	g.fd[2] = st_bound(2);
	CHECK_OK(st_come(&g, g.fd[2], 0, 0));
	for (i = 0; i < 2; i++)
		st_expect_view(g.fd[i], 3);
	st_say(g.fd[2], "back");
	/* A heartbeat of each, and much less than the group waits. */
	st_pause_us(600 * 1000);
	st_mend(2, 1);
	for (i = 0; i < 3; i++) {
		st_expect(g.fd[i], "back");
		CHECK_EQ(st_info(g.fd[i]).view, 3);
	}
	nobody_lost(&patient);
}

TEST(a_silence_from_before)
{
	comes_back(3000, 60000);
}

TEST(a_cut_from_before)
{
	comes_back(60000, 3000);
}

TEST(the_shortest_patience)
{
	cut_off(0, SPINDLE_MIN_PATIENCE, false);
}

/* Room that was kept for a node is there again when no group waits for it. */
TEST(room_after_one_is_lost)
{
	struct st_config c = three;
	struct world w = { .size = 1000 };
	unsigned int i;

	c.window = SPINDLE_MIN_WINDOW;
	c.depth = SPINDLE_MIN_DEPTH;
	c.link_ms = 400;
	begin(&w, &c, 3 * 500);
	talk_until(&w, 10);
	read_all(&w);
	st_cut(2, 0);
	/* This one hears of it before it finds out, as others may. */
	st_pause_us(200000);
	st_cut(2, 1);
	/* Something is under way when all know of it, and may be sent again. */
	st_pause_us(50000);
	for (i = 0; i < 2; i++)
		CHECK(talk(&w, i));
	w.g.n = 2;
	for (i = 0; i < 2; i++)
		WAIT_UNTIL(st_info(w.g.fd[i]).view == 2, BOUND);
	talk_until(&w, 200);
	/* Else its node would be cut off as long as it waits for who has what it has sent. */
	st_mend(2, 0);
	st_mend(2, 1);
}

TEST(each_group_waits_as_long_as_it_will)
{
	struct st_config c = three;
	struct st_group hasty = { 0 };
	struct world w = { .size = 100 };
	unsigned int i;

	begin(&w, &three, 3 * 30);
	c.link_ms = 400;
	st_open(&hasty, &c);
	talk_until(&w, 10);
	st_cut(0, 2);
	st_cut(1, 2);
	for (i = 0; i < 2; i++)
		WAIT_UNTIL(st_info(hasty.fd[i]).view == 2, BOUND);
	st_wait_minority(hasty.fd[2]);
	/* Of the other nothing was lost, nor its links. */
	nobody_lost(&w.g);
	st_mend(0, 2);
	st_mend(1, 2);
	st_wait_state(hasty.fd[2], SPINDLE_STATE_FAILED);
	CHECK_EQ(st_info(hasty.fd[2]).error, ECONNABORTED);
	close(hasty.fd[2]);
	talk_until(&w, 30);
	read_all(&w);
	nobody_lost(&w.g);
	st_say(hasty.fd[0], "on");
	both_expect(&hasty, "on");
}

/* A new group over a link that waits for a connection waits, too. */
TEST(a_group_forms_meanwhile)
{
	struct st_group g = { 0 }, other = { 0 };

	st_open(&g, &two);
	st_cut(0, 1);
	st_open_but(&other, &two, 1);
	other.fd[1] = st_bound(1);
	CHECK_OK(fcntl(other.fd[1], F_SETFL, O_NONBLOCK));
	CHECK_ERR(st_come(&other, other.fd[1], 0, 0), EINPROGRESS);
	st_pause_us(200000);
	CHECK_EQ(st_info(other.fd[0]).state, SPINDLE_STATE_FORMING);
	st_mend(0, 1);
	st_wait_state(other.fd[0], SPINDLE_STATE_ACTIVE);
	st_wait_state(other.fd[1], SPINDLE_STATE_ACTIVE);
	st_say(other.fd[1], "both");
	st_expect(other.fd[0], "both");
	nobody_lost(&g);
}

TEST(a_view_changes_meanwhile)
{
	struct st_group g = { 0 };
	struct st_config c = three;
	unsigned int i;
	int fd;

	c.events = VIEWS;
	st_open(&g, &c);
	for (i = 0; i < 3; i++)
		st_expect_view(g.fd[i], 1);
	/* One comes, while two cannot talk about it. */
	st_cut(0, 1);
	fd = st_bound(3);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_ERR(st_come(&g, fd, 2, 0), EINPROGRESS);
	st_say(g.fd[1], "amid");
	st_pause_us(200000);
	CHECK_EQ(st_info(g.fd[1]).view, 1);
	st_mend(0, 1);
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	/* And one goes. */
	lose(0, 2);
	lose(1, 0);
	close(g.fd[2]);
	for (i = 0; i < 2; i++) {
		static struct st_msg m;
		unsigned int views = 0, said = 0;

		while (views < 2 || !said) {
			CHECK_OK(st_recv(g.fd[i], &m, 0));
			if (m.flags & MSG_SPINDLE_EVENT)
				CHECK_EQ(m.event.view, ++views + 1);
			else
				said++;
		}
		CHECK_EQ(said, 1);
		CHECK_EQ(st_info(g.fd[i]).members, 3);
		CHECK_EQ(st_shown(i, &g, "counters/suspicions"), 0);
	}
	st_say(fd, "here");
	both_expect(&g, "here");
}

/*
 * The last member of node 1 has closed its socket, and cannot go before what it has said
 * has come everywhere. Meanwhile another program there comes.
 */
static int one_goes_and_one_comes(struct st_group *g)
{
	int fd;

	st_open(g, &three);
	st_cut(0, 1);
	st_linger(g->fd[1], 10 * ST_SOON);
	st_say(g->fd[1], "last");
	close(g->fd[1]);
	CHECK(!st_has_group(1, g));
	fd = st_bound(1);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_ERR(st_come(g, fd, 2, 0), EINPROGRESS);
	st_pause_us(200000);
	CHECK_EQ(st_info(g->fd[2]).view, 1);
	return fd;
}

/* Who has come may have come before the last word was said to all, and then reads that, too. */
static void expect_after_last(int fd, const char *text)
{
	static struct st_msg m;

	CHECK_OK(recv(fd, m.data, sizeof(m.data), MSG_PEEK));
	if (!memcmp(m.data, "last", 4))
		st_expect(fd, "last");
	st_expect(fd, text);
}

/* The group stays on that node, and is seen again. */
TEST(one_goes_and_one_comes_meanwhile)
{
	unsigned long long looks;
	struct st_group g = { 0 };
	unsigned int i;

	g.fd[3] = one_goes_and_one_comes(&g);
	st_mend(0, 1);
	st_wait_state(g.fd[3], SPINDLE_STATE_ACTIVE);
	CHECK(st_has_group(1, &g));
	/* and who is on that node finds it there */
	g.fd[1] = st_bound(1);
	CHECK_OK(st_come(&g, g.fd[1], 1, 0));
	st_wait_state(g.fd[1], SPINDLE_STATE_ACTIVE);
	st_wait_members(g.fd[0], 4);
	st_expect(g.fd[0], "last");
	st_expect(g.fd[2], "last");
	looks = st_activity(1, &g).looks;
	st_say(g.fd[1], "all of us");
	/* who does not read there would be seen to be slow */
	WAIT_UNTIL(st_activity(1, &g).looks > looks, BOUND);
	expect_after_last(g.fd[3], "all of us");
	expect_after_last(g.fd[1], "all of us");
	st_expect(g.fd[0], "all of us");
	st_expect(g.fd[2], "all of us");
	for (i = 0; i < 4; i++)
		close(g.fd[i]);
	for (i = 0; i < 3; i++)
		st_wait_gone(i, &g);
}

/* Another group has the name by then. */
TEST(one_goes_and_one_comes_too_late)
{
	struct spindle_group_create create = { .members = 1 };
	struct st_group g = { 0 };
	int fd, other;

	fd = one_goes_and_one_comes(&g);
	other = st_bound(1);
	snprintf(create.name, sizeof(create.name), "%s", g.name);
	CHECK_OK(st_create(other, &create));
	st_mend(0, 1);
	st_wait_events(fd, POLLOUT);
	CHECK_EQ(st_so_error(fd), EEXIST);
	st_wait_members(g.fd[0], 2);
	st_wait_members(g.fd[2], 2);
	st_expect(g.fd[0], "last");
	st_expect(g.fd[2], "last");
	st_say(g.fd[0], "two of us");
	st_expect(g.fd[0], "two of us");
	st_expect(g.fd[2], "two of us");
	st_say(other, "alone");
	st_expect(other, "alone");
	/* It is seen until it ends. */
	CHECK(st_has_group(1, &g));
	close(other);
	CHECK(!st_has_group(1, &g));
}

/*
 * Two programs of a node come with the same view, and have asked at different nodes. One
 * of the answers, cut off on its way, comes after the view.
 */
TEST(the_view_comes_before_the_answer)
{
	struct st_group g = { 0 }, other = { 0 };
	unsigned int i;

	st_open(&other, &three);
	st_open(&g, &two);
	st_cut(0, 1);
	for (i = 2; i < 4; i++) {
		g.fd[i] = st_bound(2);
		CHECK_OK(fcntl(g.fd[i], F_SETFL, O_NONBLOCK));
		CHECK_ERR(st_come(&g, g.fd[i], i - 2, 0), EINPROGRESS);
		/* The first is answered. */
		if (i == 2)
			st_pause_us(200000);
	}
	st_cut(1, 2);
	st_mend(0, 1);
	st_wait_state(g.fd[2], SPINDLE_STATE_ACTIVE);
	st_mend(1, 2);
	st_wait_state(g.fd[3], SPINDLE_STATE_ACTIVE);
	for (i = 0; i < 4; i++)
		st_wait_members(g.fd[i], 4);
	st_say(g.fd[3], "here");
	for (i = 0; i < 4; i++)
		st_expect(g.fd[i], "here");
	nobody_lost(&other);
}

TEST(a_member_leaves_meanwhile)
{
	struct st_group g = { 0 };
	struct st_config c = three;
	unsigned int i;

	c.events = VIEWS;
	st_open(&g, &c);
	for (i = 0; i < 3; i++)
		st_expect_view(g.fd[i], 1);
	st_cut(0, 2);
	st_cut(1, 2);
	st_say(g.fd[2], "last");
	CHECK_OK(st_leave(g.fd[2]));
	st_pause_us(100000);
	CHECK_EQ(st_info(g.fd[0]).view, 1);
	st_mend(0, 2);
	st_mend(1, 2);
	for (i = 0; i < 2; i++) {
		st_expect(g.fd[i], "last");
		CHECK_EQ(st_expect_view(g.fd[i], 2)->member[2].reason, SPINDLE_REASON_LEFT);
	}
	st_expect(g.fd[2], "last");
}

TEST(the_stream_ends_meanwhile)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &two);
	st_cut(1, 0);
	for (i = 0; i < 2; i++) {
		st_say(g.fd[i], i ? "two" : "one");
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	}
	st_pause_us(100000);
	st_mend(1, 0);
	for (i = 0; i < 2; i++) {
		st_expect(g.fd[i], "one");
		st_expect(g.fd[i], "two");
		st_expect_end(g.fd[i]);
	}
}

/* Nothing of it is left, though nobody can be told, and the other finds out. */
TEST(a_node_goes_meanwhile)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i;

	c.link_ms = 1000;
	st_open(&g, &c);
	/* From this side: what is cut at a node is so until that has gone. */
	st_cut(0, 2);
	st_cut(1, 2);
	close(g.fd[2]);
	st_wait_gone(2, &g);
	for (i = 0; i < 2; i++)
		WAIT_UNTIL(st_info(g.fd[i]).view == 2, BOUND);
	st_mend(0, 2);
	st_mend(1, 2);
}

/* Whom a link is broken for good is told so, and does not wait. */
TEST(given_up_is_given_up)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i;

	c.link_ms = SPINDLE_MAX_PATIENCE;
	c.silent_ms = SPINDLE_MAX_PATIENCE;
	st_open(&g, &c);
	st_break(0, 2);
	st_break(1, 2);
	for (i = 0; i < 2; i++)
		WAIT_UNTIL(st_info(g.fd[i]).view == 2, BOUND);
	st_wait_state(g.fd[2], SPINDLE_STATE_FAILED);
}

TEST(cut_before_there_is_a_link)
{
	struct st_group g = { 0 };
	struct st_config c = two;
	int fd;

	/* Between these no test has had a link. */
	c.members = 1;
	c.nodes = 1;
	c.first = 10;
	st_open(&g, &c);
	fd = st_bound(11);
	st_cut(11, 10);
	CHECK_ERR(st_come(&g, fd, 10, 0), EHOSTUNREACH);
	st_mend(11, 10);
	st_cut(10, 11);
	CHECK_ERR(st_come(&g, fd, 10, 0), ECONNREFUSED);
	st_mend(10, 11);
	CHECK_OK(st_come(&g, fd, 10, 0));
}

/* A node comes to a group one of whose nodes it cannot connect to yet. */
TEST(cut_while_one_comes)
{
	struct st_group g = { 0 };
	struct st_config c = two;
	unsigned int i, k;
	char text[32];
	int fd;

	/* Between 8 and 13 no test has had a link. */
	c.first = 7;
	c.max_members = 3;
	st_open(&g, &c);
	for (i = 0; i < 4; i++) {
		fd = st_bound(13);
		g.fd[2] = fd;
		st_cut(i & 1 ? 13 : 8, i & 1 ? 8 : 13);
		CHECK_OK(st_come(&g, fd, 7, 0));
		st_wait_members(g.fd[0], 3);
		st_wait_members(g.fd[1], 3);
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		snprintf(text, sizeof(text), "%u waits", i);
		st_say(fd, text);
		/* as long as attempts to connect have failed, again and again */
		st_pause_us(300000);
		st_expect_none(g.fd[0]);
		st_mend(i & 1 ? 13 : 8, i & 1 ? 8 : 13);
		for (k = 0; k < 3; k++) {
			st_expect(g.fd[k], text);
			CHECK_EQ(st_info(g.fd[k]).members, 3);
		}
		close(fd);
		st_wait_members(g.fd[0], 2);
		st_wait_members(g.fd[1], 2);
	}
}

/* And one that gives up attempts of the others to connect, as it has lost their connection. */
TEST(who_comes_loses_connections)
{
	struct st_group g = { 0 };
	struct st_config c = two;
	unsigned int i, k, n;
	char text[32];

	st_open(&g, &c);
	for (i = 0; i < 20; i++) {
		g.fd[2] = st_bound(2);
		CHECK_OK(fcntl(g.fd[2], F_SETFL, O_NONBLOCK));
		CHECK_ERR(st_come(&g, g.fd[2], 0, 0), EINPROGRESS);
		for (k = 0; k < 20; k++) {
			st_pause_us(k * (i + 1) * 20);
			/* not that to its contact, without which it cannot come */
			lose(2, 1);
		}
		for (n = 0; n < 3; n++)
			st_wait_state(g.fd[n], SPINDLE_STATE_ACTIVE);
		CHECK_OK(fcntl(g.fd[2], F_SETFL, 0));
		snprintf(text, sizeof(text), "%u is there", i);
		st_say(g.fd[2], text);
		for (n = 0; n < 3; n++)
			st_expect(g.fd[n], text);
		for (n = 0; n < 2; n++) {
			CHECK_EQ(st_info(g.fd[n]).members, 3);
			CHECK_EQ(st_shown(n, &g, "counters/suspicions"), 0);
		}
		close(g.fd[2]);
		for (n = 0; n < 2; n++)
			st_wait_members(g.fd[n], 2);
		st_wait_gone(2, &g);
	}
}

TEST(patience_is_bounded)
{
	static const unsigned int bad[] = {
		1, SPINDLE_MIN_PATIENCE - 1, SPINDLE_MAX_PATIENCE + 1, ~0U,
	};
	struct spindle_group_create create = { .members = 1, .name = "patience" };
	struct spindle_group_join join = { .name = "patience" };
	unsigned int i;
	int fd = st_bound(0);

	st_contact(&join, st_addr(1));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		create.silent_ms = bad[i];
		create.link_ms = 0;
		CHECK_ERR(st_create(fd, &create), ERANGE);
		create.silent_ms = 0;
		create.link_ms = bad[i];
		CHECK_ERR(st_create(fd, &create), ERANGE);
		join.silent_ms = bad[i];
		join.link_ms = 0;
		CHECK_ERR(st_join(fd, &join), ERANGE);
		join.silent_ms = 0;
		join.link_ms = bad[i];
		CHECK_ERR(st_join(fd, &join), ERANGE);
	}
}

TEST(patience_is_the_group_s)
{
	struct spindle_group_join j = { 0 };
	struct st_group g = { 0 };
	struct st_config c = two;
	int fd;

	c.members = 1;
	c.nodes = 1;
	c.silent_ms = 7000;
	c.link_ms = 3000;
	st_open(&g, &c);
	CHECK_EQ(st_info(g.fd[0]).silent_ms, 7000);
	CHECK_EQ(st_info(g.fd[0]).link_ms, 3000);
	CHECK_EQ(st_shown(0, &g, "silent_ms"), 7000);
	CHECK_EQ(st_shown(0, &g, "link_ms"), 3000);
	fd = st_bound(1);
	snprintf(j.name, sizeof(j.name), "%s", g.name);
	st_contact(&j, st_addr(0));
	j.silent_ms = 7001;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.silent_ms = 7000;
	j.link_ms = 2999;
	CHECK_ERR(st_join(fd, &j), EPROTOTYPE);
	j.link_ms = 3000;
	CHECK_OK(st_join(fd, &j));
	CHECK_EQ(st_info(fd).silent_ms, 7000);
	CHECK_EQ(st_info(fd).link_ms, 3000);
}

/* The module's suspect_ms, and one for both. */
TEST(patience_unless_said)
{
	struct st_group g = { 0 }, h = { 0 };
	struct st_config c = two;
	char text[64];

	if (!st_read_file("/sys/module/spindle/parameters/suspect_ms", text, sizeof(text)))
		FAIL("no suspect_ms: %s", st_err(errno));
	c.link_ms = 0;
	st_open(&g, &c);
	CHECK_EQ(st_info(g.fd[0]).silent_ms, strtoul(text, NULL, 10));
	CHECK_EQ(st_info(g.fd[0]).link_ms, strtoul(text, NULL, 10));
	c.silent_ms = 1234;
	st_open(&h, &c);
	CHECK_EQ(st_info(h.fd[0]).silent_ms, 1234);
	CHECK_EQ(st_info(h.fd[0]).link_ms, 1234);
}

/* Completions */

static void known_late(const struct st_config *c, bool lost)
{
	struct world w = { .size = 500 };
	unsigned int n = c->members, i, k;

	begin(&w, c, n * 100);
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			if (i != k)
				st_delay(i, k, 1 + 10 * (i + k));
	for (i = 1; i <= 4; i++) {
		talk_until(&w, i * 20);
		if (lost)
			lose(i % n, (i + 1) % n);
	}
	/* What is held back is known at once, and what follows when it completes. */
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			if (i != k)
				st_delay(i, k, 0);
	talk_until(&w, 100);
	read_all(&w);
	nobody_lost(&w.g);
	for (i = 0; lost && i < n; i++)
		CHECK(st_shown(i, &w.g, "counters/reconnects") > 0);
}

/* Who comes is told where to write when it is known that it may. */
TEST(registrations_known_late)
{
	struct st_config c = two;
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_delay(0, 2, 60000);
	g.fd[2] = st_bound(2);
	CHECK_OK(st_come(&g, g.fd[2], 1, 0));
	st_wait_members(g.fd[0], 3);
	st_say(g.fd[1], "amid");
	st_pause_us(300000);
	st_expect_none(g.fd[0]);
	st_expect_none(g.fd[1]);
	st_delay(0, 2, 0);
	both_expect(&g, "amid");
	CHECK_EQ(st_info(g.fd[0]).view, 2);
	CHECK_EQ(st_info(g.fd[0]).members, 3);
}

TEST(completions_known_late)
{
	known_late(&two, false);
	known_late(&three, false);
}

TEST(completions_known_late_of_connections_that_are_lost)
{
	known_late(&two, true);
	known_late(&three, true);
}

TEST(completions_dropped_for_a_moment)
{
	struct st_group g = { 0 };

	st_open(&g, &three);
	st_drop(0, 1, true);
	st_say(g.fd[0], "one");
	/* It has come: that this is not known there keeps nobody from reading it. */
	both_expect(&g, "one");
	st_expect(g.fd[2], "one");
	st_drop(0, 1, false);
	st_say(g.fd[0], "two");
	both_expect(&g, "two");
	st_expect(g.fd[2], "two");
	CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_CONSUMED));
	nobody_lost(&g);
}

/* It is as if the other side was not there. */
TEST(completions_dropped_for_too_long)
{
	struct st_config c = three;
	const struct spindle_event *e;
	struct st_group g = { 0 };
	unsigned int i;

	c.silent_ms = 1000;
	c.events = VIEWS;
	st_open(&g, &c);
	for (i = 0; i < 3; i++)
		st_expect_view(g.fd[i], 1);
	st_drop(0, 1, true);
	for (i = 0; i < 3; i += 2) {
		e = st_expect_view(g.fd[i], 2);
		CHECK_EQ(e->members, 2);
		CHECK_EQ(e->left, 1);
		CHECK_EQ(e->member[2].rank, 1);
		CHECK_EQ(e->member[2].reason, SPINDLE_REASON_LOST);
	}
	st_say(g.fd[0], "on");
	st_expect(g.fd[0], "on");
	st_expect(g.fd[2], "on");
	st_wait_state(g.fd[1], SPINDLE_STATE_FAILED);
	st_drop(0, 1, false);
}

/*
 * A connection is lost while memory is registered for one that comes: that has not
 * completed, or is not known to have.
 */
static void lost_amid_a_registration(unsigned int ms, unsigned int more_ms)
{
	struct st_config c = two;
	struct st_group g = { 0 };
	unsigned int i;
	int fd;

	st_open(&g, &c);
	fd = st_bound(2);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	for (i = 0; i < 2; i++)
		st_delay(i, 2, ms);
	CHECK_ERR(st_come(&g, fd, 0, 0), EINPROGRESS);
	/* not before it has asked */
	for (i = 0; i < 2; i++)
		st_wait_members(g.fd[i], 3);
	for (i = 0; i < 10; i++) {
		st_pause_us(20000);
		lose(i & 1, 2);
	}
	st_pause_us(more_ms * 1000);
	for (i = 0; i < 2; i++)
		st_delay(i, 2, 0);
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	CHECK_OK(fcntl(fd, F_SETFL, 0));
	st_say(fd, "here");
	both_expect(&g, "here");
	st_expect(fd, "here");
	for (i = 0; i < 2; i++) {
		CHECK_EQ(st_info(g.fd[i]).view, 2);
		CHECK_EQ(st_info(g.fd[i]).members, 3);
		CHECK_EQ(st_shown(i, &g, "counters/suspicions"), 0);
	}
}

TEST(lost_amid_a_registration_that_completes_soon)
{
	lost_amid_a_registration(20, 0);
}

TEST(lost_amid_a_registration_that_completes_late)
{
	lost_amid_a_registration(3000, 0);
}

/* Later than the module waits before it takes the connection apart. */
TEST(lost_amid_a_registration_that_completes_too_late)
{
	lost_amid_a_registration(60000, 1500);
}

/* It is never known: the link goes down. Who comes may be out then, and nobody else. */
TEST(lost_amid_a_registration_that_does_not_complete)
{
	struct st_config c = two;
	struct st_group g = { 0 };
	int fd;

	c.silent_ms = 3000;
	c.link_ms = 0;
	st_open(&g, &c);
	fd = st_bound(2);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	st_drop(1, 2, true);
	CHECK_ERR(st_come(&g, fd, 0, 0), EINPROGRESS);
	st_wait_members(g.fd[1], 3);
	st_pause_us(50000);
	lose(1, 2);
	st_pause_us(1500000);
	st_drop(1, 2, false);
	WAIT_UNTIL(st_info(fd).state == SPINDLE_STATE_ACTIVE ||
		   st_info(fd).state == SPINDLE_STATE_FAILED, BOUND);
	st_say(g.fd[0], "here");
	both_expect(&g, "here");
}

TEST(what_the_switches_take)
{
	static const char * const bad[] = { "", " ", " 0", " 60001", " -1", " 1 1", " soon" };
	char path[256], text[128];
	int fd = st_bound(0);
	unsigned int i;

	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/delay", st_addr(0));
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), "%s%s", st_addr(5), bad[i]);
		if (st_write_file(path, text) || errno != EINVAL)
			FAIL("delay has taken \"%s\"", text);
	}
	CHECK(!st_write_file(path, "nonsense 1"));
	CHECK_EQ(errno, EINVAL);
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/drop", st_addr(0));
	CHECK(!st_write_file(path, "nonsense"));
	CHECK_EQ(errno, EINVAL);
	/* What is said last counts. */
	st_delay(0, 5, 60000);
	st_delay(0, 5, 1);
	st_drop(0, 5, true);
	st_drop(0, 5, false);
	st_delay(0, 5, 0);
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/cut", st_addr(0));
	CHECK(!st_write_file(path, "nonsense"));
	CHECK_EQ(errno, EINVAL);
	CHECK(!st_write_file(path, "-"));
	CHECK_EQ(errno, EINVAL);
	/* That nobody is there does not matter, nor that it was cut, or not. */
	st_cut(0, 5);
	st_cut(0, 5);
	st_mend(0, 5);
	st_mend(0, 5);
	close(fd);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
