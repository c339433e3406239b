// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that hear no majority of the view, all on one host: they wait for one, and nobody
 * sends until then. If it comes back the view goes on as if nothing had been; if the others
 * have gone on without them they learn that.
 *
 * These tests are about how long a node is waited for.
 */
#include "ring.h"

#include <fcntl.h>
#include <poll.h>

#define LINK_MS	1000
#define BOUND	(4 * ST_SOON)

static const struct st_config three = {
	.members = 3, .nodes = 3, .max_members = 8, .window = 65536, .link_ms = LINK_MS,
};

static void cut_all(unsigned int nodes)
{
	unsigned int a, b;

	for (a = 0; a < nodes; a++)
		for (b = 0; b < a; b++)
			st_cut(a, b);
	/* until the other side has lost the connection, too */
	st_pause_us(50000);
}

static void mend_all(unsigned int nodes)
{
	unsigned int a, b;

	for (a = 0; a < nodes; a++)
		for (b = 0; b < a; b++)
			st_mend(a, b);
}

/* A group, and nothing cut that a test before has left so. */
static void begin(struct st_group *g, const struct st_config *c)
{
	unsigned int i;
	int fd[5];

	for (i = 0; i < 5; i++)
		fd[i] = st_bound(i);
	mend_all(5);
	st_open(g, c);
	for (i = 0; i < 5; i++)
		close(fd[i]);
}

static bool shows(unsigned int node, const struct st_group *g, const char *state)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/state", st_addr(node), g->name);
	CHECK(st_read_file(path, text, sizeof(text)));
	return !strcmp(text, state);
}

/* All nodes of a group hear a majority, and nobody was ever suspected. */
static void all_are_back(const struct st_group *g, unsigned int times)
{
	unsigned int i;

	for (i = 0; i < g->n; i++) {
		st_wait_state(g->fd[i], SPINDLE_STATE_ACTIVE);
		CHECK_EQ(st_info(g->fd[i]).error, 0);
		CHECK_EQ(st_info(g->fd[i]).view, 1);
		CHECK_EQ(st_events(g->fd[i]) & POLLPRI, 0);
	}
	for (i = 0; i < g->nodes; i++) {
		CHECK(shows(i, g, "active"));
		CHECK_EQ(st_shown(i, g, "counters/suspicions"), 0);
		CHECK_EQ(st_shown(i, g, "counters/minorities"), times);
	}
}

static void all_wait(const struct st_group *g)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		st_wait_state(g->fd[i], SPINDLE_STATE_MINORITY);
}

static void all_expect(const struct st_group *g, const char *text)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		st_expect(g->fd[i], text);
}

/* What was sent before comes when the majority is back, and what is sent then behind it. */
TEST(majority_is_back)
{
	struct st_group g = { 0 };
	unsigned int i, k;

	begin(&g, &three);
	for (k = 1; k <= 3; k++) {
		cut_all(3);
		st_say(g.fd[0], "before");
		for (i = 0; i < 3; i++)
			st_wait_minority(g.fd[i]);
		for (i = 0; i < 3; i++)
			CHECK(shows(i, &g, "minority"));
		mend_all(3);
		all_are_back(&g, k);
		all_expect(&g, "before");
		for (i = 0; i < 3; i++) {
			st_say(g.fd[i], "after");
			all_expect(&g, "after");
		}
	}
}

/* It is not told how long it may wait. */
TEST(back_after_long)
{
	struct st_group g = { 0 };
	unsigned int i;

	begin(&g, &three);
	cut_all(3);
	for (i = 0; i < 3; i++)
		st_wait_minority(g.fd[i]);
	st_pause_us(12 * LINK_MS * 1000);
	for (i = 0; i < 3; i++)
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_MINORITY);
	mend_all(3);
	all_are_back(&g, 1);
	st_say(g.fd[2], "on");
	all_expect(&g, "on");
}

/* Members that only read, and several of one node. */
TEST(members_of_all_kinds)
{
	struct st_group g = { 0 };
	struct st_config c = three;
	unsigned int i;

	c.members = 6;
	c.receivers = 1 << 4;
	c.events = SPINDLE_WANT_VIEW;
	begin(&g, &c);
	cut_all(3);
	for (i = 0; i < 6; i++)
		st_expect_view(g.fd[i], 1);
	for (i = 0; i < 6; i++) {
		st_wait_state(g.fd[i], SPINDLE_STATE_MINORITY);
		CHECK_ERR(send(g.fd[i], "x", 1, MSG_NOSIGNAL), i == 4 ? EACCES : ENETDOWN);
		CHECK_EQ(st_events(g.fd[i]), POLLOUT | POLLWRNORM | POLLPRI);
	}
	mend_all(3);
	all_are_back(&g, 1);
	st_say(g.fd[5], "on");
	all_expect(&g, "on");
}

static void cut_within(pid_t sleeper, void *arg)
{
	(void)sleeper;
	(void)arg;
	cut_all(3);
}

/* Who waits for room is told, and who waits for a message waits on. */
TEST(blocked_sender_is_told)
{
	static char data[1024];
	struct st_group g = { 0 };
	struct st_config c = three;
	pthread_t thread;
	unsigned int n = 0, i;

	c.window = SPINDLE_MIN_WINDOW;
	begin(&g, &c);
	/* nobody reads */
	while (send(g.fd[1], data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		n++;
	CHECK_EQ(errno, EAGAIN);
	thread = st_in_call(cut_within, NULL);
	/* the last acknowledgements may still make room */
	while (send(g.fd[1], data, sizeof(data), MSG_NOSIGNAL) > 0)
		n++;
	CHECK_EQ(errno, ENETDOWN);
	pthread_join(thread, NULL);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_MINORITY);
	all_wait(&g);
	mend_all(3);
	all_are_back(&g, 1);
	while (n--)
		for (i = 0; i < 3; i++)
			CHECK_EQ(recv(g.fd[i], data, sizeof(data), 0), sizeof(data));
	st_say(g.fd[1], "on");
	all_expect(&g, "on");
}

static void mend_within(pid_t sleeper, void *arg)
{
	const struct st_group *g = arg;

	(void)sleeper;
	mend_all(3);
	st_wait_state(g->fd[1], SPINDLE_STATE_ACTIVE);
	st_say(g->fd[1], "on");
}

TEST(blocked_reader_waits_on)
{
	struct st_group g = { 0 };
	pthread_t thread;

	begin(&g, &three);
	cut_all(3);
	st_wait_minority(g.fd[0]);
	st_wait_minority(g.fd[1]);
	thread = st_in_call(mend_within, &g);
	all_expect(&g, "on");
	pthread_join(thread, NULL);
}

/* Who waits for what it has sent is told, too, and may ask again. */
TEST(stability_is_not_known)
{
	struct st_group g = { 0 };
	pthread_t thread;

	begin(&g, &three);
	cut_all(3);
	st_say(g.fd[0], "it");
	thread = st_in_call(cut_within, NULL);
	CHECK_ERR(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_RECEIVED), ENETDOWN);
	pthread_join(thread, NULL);
	all_wait(&g);
	CHECK_ERR(st_option(g.fd[0], SPINDLE_SYNC,
			    SPINDLE_SYNC_RECEIVED | SPINDLE_SYNC_DONTWAIT), ENETDOWN);
	mend_all(3);
	all_are_back(&g, 1);
	CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_RECEIVED));
	all_expect(&g, "it");
}

/* Rings stay mapped; what is submitted meanwhile is sent when the majority is back. */
TEST(mapped_rings)
{
	struct st_group g = { 0 };
	struct ring ring;
	uint32_t len, rank;

	begin(&g, &three);
	ring_map(&ring, g.fd[1], SPINDLE_MAP_ALL);
	cut_all(3);
	ring_say(&ring, "before");
	st_wait_state(ring.fd, SPINDLE_STATE_MINORITY);
	CHECK_EQ(ring.status->state, SPINDLE_STATE_MINORITY);
	CHECK_EQ(ring.status->error, ENETDOWN);
	CHECK(!ring_peek(&ring, &len, &rank));
	CHECK_EQ(st_events(ring.fd), POLLOUT | POLLWRNORM | POLLPRI);
	ring_say(&ring, "amid");
	all_wait(&g);
	mend_all(3);
	ring_expect(&ring, "before", 1);
	ring_expect(&ring, "amid", 1);
	st_expect(g.fd[0], "before");
	st_expect(g.fd[0], "amid");
	all_are_back(&g, 1);
	CHECK_EQ(ring.status->state, SPINDLE_STATE_ACTIVE);
	CHECK_EQ(ring.status->error, 0);
	ring_say(&ring, "after");
	ring_expect(&ring, "after", 1);
	st_expect(g.fd[2], "before");
	st_expect(g.fd[2], "amid");
	st_expect(g.fd[2], "after");
}

/* poll() sleeps until there is something to tell. */
TEST(poll_tells)
{
	struct st_group g = { 0 };
	struct pollfd p;
	pthread_t thread;

	begin(&g, &three);
	p = (struct pollfd){ .fd = g.fd[2], .events = POLLPRI };
	CHECK_EQ(poll(&p, 1, 0), 0);
	thread = st_in_call(cut_within, NULL);
	CHECK_EQ(poll(&p, 1, st_bound_ms(ST_SOON)), 1);
	pthread_join(thread, NULL);
	CHECK_EQ(p.revents, POLLPRI);
}

/* Two of five are no majority yet, three are; the others are lost then. */
TEST(one_after_the_other)
{
	struct st_config c = three;
	struct st_group g = { 0 };
	unsigned int i;

	c.members = 5;
	c.nodes = 5;
	c.events = SPINDLE_WANT_VIEW;
	begin(&g, &c);
	for (i = 0; i < 5; i++)
		st_expect_view(g.fd[i], 1);
	cut_all(5);
	for (i = 0; i < 5; i++)
		st_wait_minority(g.fd[i]);
	st_mend(1, 0);
	WAIT_UNTIL(st_shown(0, &g, "counters/reconnects") == 1, BOUND);
	st_pause_us(2 * LINK_MS * 1000);
	for (i = 0; i < 5; i++)
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_MINORITY);
	st_mend(3, 0);
	st_mend(3, 1);
	for (i = 0; i < 4; i = i ? i + 2 : 1) {
		CHECK_EQ(st_expect_view(g.fd[i], 2)->members, 3);
		st_wait_state(g.fd[i], SPINDLE_STATE_ACTIVE);
	}
	st_say(g.fd[3], "three");
	st_expect(g.fd[0], "three");
	st_expect(g.fd[1], "three");
	st_expect(g.fd[3], "three");
	st_wait_minority(g.fd[2]);
	st_wait_minority(g.fd[4]);
	mend_all(5);
	for (i = 2; i < 5; i += 2) {
		st_wait_state(g.fd[i], SPINDLE_STATE_FAILED);
		CHECK(st_info(g.fd[i]).error == ENETDOWN ||
		      st_info(g.fd[i]).error == ECONNABORTED);
	}
}

/* A new view is decided when the majority is back: one has come, another has gone meanwhile. */
TEST(views_change_then)
{
	struct st_group g = { 0 };
	int fd;

	begin(&g, &three);
	cut_all(3);
	st_wait_minority(g.fd[0]);
	st_wait_minority(g.fd[1]);
	fd = st_bound(3);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_ERR(st_come(&g, fd, 0, 0), EINPROGRESS);
	st_wait_minority(g.fd[2]);
	st_pause_us(200000);
	CHECK_EQ(st_info(g.fd[0]).view, 1);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_MINORITY);
	mend_all(3);
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	st_wait_members(g.fd[2], 4);
	st_say(fd, "all");
	all_expect(&g, "all");
	CHECK_EQ(st_shown(0, &g, "counters/suspicions"), 0);
}

/* The second of two nodes is no majority, and the first one is. */
TEST(second_of_two)
{
	struct st_config c = three;
	struct st_group g = { 0 };

	c.members = 2;
	c.nodes = 2;
	begin(&g, &c);
	st_cut(0, 1);
	st_wait_members(g.fd[0], 1);
	st_wait_minority(g.fd[1]);
	CHECK_EQ(st_shown(0, &g, "counters/minorities"), 0);
	st_say(g.fd[0], "alone");
	st_expect(g.fd[0], "alone");
	st_mend(0, 1);
	st_wait_state(g.fd[1], SPINDLE_STATE_FAILED);
	CHECK_ERR(recv(g.fd[1], &(char){ 0 }, 1, 0), st_info(g.fd[1]).error);
}

/* Whose link is known to be lost for good is not waited for: the others are a majority. */
TEST(one_is_lost_for_good)
{
	struct st_group g = { 0 };
	unsigned int i;

	begin(&g, &three);
	cut_all(3);
	for (i = 0; i < 3; i++)
		st_wait_minority(g.fd[i]);
	st_break(2, 0);
	WAIT_UNTIL(st_shown(2, &g, "counters/suspicions") == 1, BOUND);
	CHECK_EQ(st_info(g.fd[2]).state, SPINDLE_STATE_MINORITY);
	st_mend(2, 1);
	for (i = 1; i < 3; i++) {
		st_wait_members(g.fd[i], 2);
		st_wait_state(g.fd[i], SPINDLE_STATE_ACTIVE);
	}
	st_say(g.fd[1], "two");
	st_expect(g.fd[1], "two");
	st_expect(g.fd[2], "two");
	mend_all(3);
	st_wait_state(g.fd[0], SPINDLE_STATE_FAILED);
}

/* All others are: it cannot go on. */
TEST(all_are_lost_for_good)
{
	struct st_group g = { 0 };

	begin(&g, &three);
	cut_all(3);
	st_wait_minority(g.fd[2]);
	st_break(2, 0);
	st_break(2, 1);
	st_wait_state(g.fd[2], SPINDLE_STATE_FAILED);
	CHECK_EQ(st_info(g.fd[2]).error, ENETDOWN);
	CHECK_EQ(st_events(g.fd[2]) & POLLPRI, 0);
	CHECK_ERR(send(g.fd[2], "x", 1, MSG_NOSIGNAL), ENETDOWN);
	CHECK_ERR(recv(g.fd[2], &(char){ 0 }, 1, 0), ENETDOWN);
}

/* Who waits may go: what it has sent and nobody has is lost when its linger time is over. */
TEST(leaves_meanwhile)
{
	struct st_group g = { 0 };
	struct st_config c = three;
	int again;

	c.members = 4;
	begin(&g, &c);
	cut_all(3);
	st_say(g.fd[0], "lost");
	st_linger(g.fd[0], 1);
	st_wait_minority(g.fd[0]);
	/* the node has another member, and waits on */
	CHECK_OK(st_leave(g.fd[0]));
	CHECK_ERR(send(g.fd[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	st_pause_us(LINK_MS * 1000);
	CHECK_EQ(st_info(g.fd[3]).state, SPINDLE_STATE_MINORITY);
	CHECK_OK(st_leave(g.fd[3]));
	close(g.fd[3]);
	close(g.fd[0]);
	st_wait_gone(0, &g);
	/* the name is free there */
	again = st_bound(0);
	CHECK_OK(st_create(again, &(struct spindle_group_create){ .members = 1,
								  .name = "another" }));
	st_say(again, "x");
	st_expect(again, "x");
	mend_all(3);
	st_wait_members(g.fd[1], 2);
	st_wait_members(g.fd[2], 2);
	st_wait_state(g.fd[1], SPINDLE_STATE_ACTIVE);
	st_say(g.fd[1], "two");
	st_wait_state(g.fd[2], SPINDLE_STATE_ACTIVE);
}

/* Other groups of the same links begin and end, and take none of them down. */
TEST(others_come_and_go)
{
	struct st_group g = { 0 }, ends = { 0 }, forms = { 0 };
	struct st_config c = three;
	unsigned int i;

	begin(&g, &c);
	c.link_ms = LINK_MS / 2;
	st_open(&ends, &c);
	cut_all(3);
	for (i = 0; i < 3; i++)
		st_wait_minority(g.fd[i]);
	for (i = 0; i < 3; i++) {
		st_wait_minority(ends.fd[i]);
		close(ends.fd[i]);
		st_wait_gone(i, &ends);
	}
	c.members = 2;
	c.nodes = 2;
	st_open_but(&forms, &c, 1);
	forms.fd[1] = st_bound(1);
	CHECK_OK(fcntl(forms.fd[1], F_SETFL, O_NONBLOCK));
	CHECK_ERR(st_come(&forms, forms.fd[1], 0, 0), EINPROGRESS);
	st_pause_us(3 * LINK_MS * 1000);
	mend_all(3);
	all_are_back(&g, 1);
	st_say(g.fd[2], "on");
	all_expect(&g, "on");
}

/* A group that forms does not wait for ever with another one of the same links. */
TEST(another_one_forms)
{
	struct st_group g = { 0 }, forms = { 0 };
	struct st_config c = three;
	unsigned int i;

	begin(&g, &three);
	c.link_ms = 2 * LINK_MS;
	st_open_but(&forms, &c, 1);
	cut_all(3);
	for (i = 0; i < 3; i++)
		st_wait_minority(g.fd[i]);
	st_wait_state(forms.fd[1], SPINDLE_STATE_FAILED);
	CHECK_EQ(st_info(forms.fd[1]).error, EHOSTDOWN);
	mend_all(3);
	all_are_back(&g, 1);
	CHECK_EQ(st_info(forms.fd[0]).state, SPINDLE_STATE_FORMING);
	close(forms.fd[1]);
	st_wait_gone(1, &forms);
	for (i = 1; i < 3; i++) {
		int fd = st_bound(i);

		CHECK_OK(st_come(&forms, fd, 0, 0));
	}
	st_wait_state(forms.fd[0], SPINDLE_STATE_ACTIVE);
}

/* A group that is at its end has nothing to wait for. */
TEST(closed_groups_end)
{
	struct st_group g = { 0 };
	unsigned int i;

	begin(&g, &three);
	for (i = 0; i < 3; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	for (i = 0; i < 3; i++)
		st_expect_end(g.fd[i]);
	cut_all(3);
	st_pause_us(2 * LINK_MS * 1000);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_CLOSED);
		close(g.fd[i]);
	}
	for (i = 0; i < 3; i++)
		st_wait_gone(i, &g);
}

/* Its readers are not evicted for what nobody can send. */
TEST(nobody_is_evicted_meanwhile)
{
	static char data[1024];
	struct st_group g = { 0 };
	struct st_config c = three;
	unsigned int n = 0, i;

	c.window = SPINDLE_MIN_WINDOW;
	c.evict_ms = 4 * LINK_MS;
	begin(&g, &c);
	while (send(g.fd[1], data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		n++;
	cut_all(3);
	all_wait(&g);
	st_pause_us(3 * c.evict_ms * 1000);
	mend_all(3);
	while (n--)
		for (i = 0; i < 3; i++)
			CHECK_EQ(recv(g.fd[i], data, sizeof(data), 0), sizeof(data));
	all_are_back(&g, 1);
	for (i = 0; i < 3; i++)
		CHECK_EQ(st_shown(i, &g, "counters/evictions"), 0);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
