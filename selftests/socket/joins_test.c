// SPDX-License-Identifier: GPL-2.0
/*
 * Members that come to a group whose messages flow.
 */
#include "ring.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif

#define VIEWS	SPINDLE_WANT_VIEW

/* A member on a node joins at another; it is the last of the group. */
static int join_at(struct st_group *g, unsigned int node, unsigned int contact)
{
	int fd = st_bound(node);

	CHECK_OK(st_option(fd, SPINDLE_EVENTS, VIEWS));
	CHECK_OK(st_come(g, fd, contact, 0));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	g->fd[g->n++] = fd;
	return fd;
}

/* Everybody says something, and everybody reads all of it. */
static void talk_all(const struct st_group *g)
{
	char text[32], got[64][32];
	static struct st_msg m;
	unsigned int i, k;

	for (i = 0; i < g->n; i++) {
		snprintf(text, sizeof(text), "from %u", i);
		st_say(g->fd[i], text);
	}
	for (i = 0; i < g->n; i++) {
		for (k = 0; k < g->n; k++) {
			CHECK_OK(st_recv(g->fd[i], &m, 0));
			CHECK(!(m.flags & MSG_SPINDLE_EVENT));
			CHECK(m.len > 0 && m.len < 32);
			m.data[m.len] = 0;
			if (!i)
				memcpy(got[k], m.data, m.len + 1);
			else if (strcmp(got[k], m.data))
				BROKEN("member %u has \"%s\", not \"%s\"", i, m.data, got[k]);
		}
		st_expect_none(g->fd[i]);
	}
}

static const struct st_config one = {
	.members = 1, .nodes = 1, .max_members = SPINDLE_MAX_MEMBERS, .window = 65536,
	.events = VIEWS,
};

TEST(one_comes)
{
	const struct spindle_event *e;
	struct st_group g = { 0 };
	int fd;

	st_open(&g, &one);
	st_expect_view(g.fd[0], 1);
	st_say(g.fd[0], "alone");
	st_expect(g.fd[0], "alone");
	fd = join_at(&g, 1, 0);
	e = st_expect_view(g.fd[0], 2);
	CHECK_EQ(e->members, 2);
	CHECK_EQ(e->left, 0);
	CHECK_EQ(e->member[0].flags, SPINDLE_EM_SELF);
	CHECK_EQ(e->member[1].flags, SPINDLE_EM_JOINED);
	e = st_expect_view(fd, 2);
	CHECK_EQ(e->members, 2);
	CHECK_EQ(e->member[0].flags, 0);
	CHECK_EQ(e->member[1].flags, SPINDLE_EM_JOINED | SPINDLE_EM_SELF);
	CHECK_EQ(st_info(fd).rank, 1);
	CHECK_EQ(st_info(fd).members, 2);
	talk_all(&g);
}

TEST(one_comes_to_the_same_node)
{
	struct st_group g = { 0 };
	int fd;

	st_open(&g, &one);
	st_expect_view(g.fd[0], 1);
	st_say(g.fd[0], "before");
	fd = join_at(&g, 0, 0);
	st_expect(g.fd[0], "before");
	st_expect_view(g.fd[0], 2);
	st_expect_view(fd, 2);
	talk_all(&g);
}

TEST(many_come_one_after_the_other)
{
	struct st_group g = { 0 };
	unsigned int i, k;

	st_open(&g, &one);
	st_expect_view(g.fd[0], 1);
	for (i = 1; i < 8; i++) {
		join_at(&g, i % 5, (i - 1) % 5);
		for (k = 0; k <= i; k++)
			CHECK_EQ(st_expect_view(g.fd[k], i + 1)->members, i + 1);
		talk_all(&g);
	}
}

TEST(they_come_and_go)
{
	struct st_group g = { 0 };
	unsigned int i, k, view = 1;

	st_open(&g, &one);
	st_expect_view(g.fd[0], 1);
	for (i = 0; i < 20; i++) {
		join_at(&g, 1 + i % 2, 0);
		view++;
		for (k = 0; k < g.n; k++)
			st_expect_view(g.fd[k], view);
		talk_all(&g);
		if (g.n < 3)
			continue;
		close(g.fd[1]);
		g.fd[1] = g.fd[--g.n];
		view++;
		for (k = 0; k < g.n; k++)
			st_expect_view(g.fd[k], view);
		talk_all(&g);
	}
}

/* All who are there see the view. */
static void expect_views(const struct st_group *g, unsigned int view)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		st_expect_view(g->fd[i], view);
}

TEST(a_node_that_went_comes_back)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &one);
	expect_views(&g, 1);
	for (i = 0; i < 10; i++) {
		join_at(&g, 1, 0);
		expect_views(&g, 2 + 2 * i);
		talk_all(&g);
		close(g.fd[--g.n]);
		expect_views(&g, 3 + 2 * i);
	}
}

TEST(members_come_to_a_node_again_and_again)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &one);
	expect_views(&g, 1);
	join_at(&g, 1, 0);
	expect_views(&g, 2);
	/* more often than there are slots for lanes */
	for (i = 0; i < 300; i++) {
		join_at(&g, i & 1, !(i & 1));
		expect_views(&g, 3 + 2 * i);
		if (i % 50 == 0)
			talk_all(&g);
		close(g.fd[--g.n]);
		expect_views(&g, 4 + 2 * i);
	}
	talk_all(&g);
}

TEST(the_group_is_full)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	int fd;

	c.max_members = 2;
	st_open(&g, &c);
	expect_views(&g, 1);
	CHECK_EQ(st_info(g.fd[0]).max_members, 2);
	fd = join_at(&g, 1, 0);
	expect_views(&g, 2);
	CHECK_EQ(st_info(fd).max_members, 2);
	CHECK_ERR(st_come(&g, st_bound(2), 0, 0), EUSERS);
	CHECK_ERR(st_come(&g, st_bound(2), 1, 0), EUSERS);
	CHECK_ERR(st_come(&g, st_bound(0), 0, 0), EUSERS);
	close(fd);
	g.n--;
	expect_views(&g, 3);
	join_at(&g, 2, 0);
	expect_views(&g, 4);
	talk_all(&g);
}

TEST(a_receiver_comes)
{
	struct st_group g = { 0 };
	int fd = st_bound(1);

	st_open(&g, &one);
	CHECK_OK(st_come(&g, fd, 0, SPINDLE_F_RECEIVER));
	st_wait_members(g.fd[0], 2);
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	CHECK_EQ(st_info(g.fd[0]).senders, 1);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), EACCES);
	st_say(g.fd[0], "hello");
	st_expect(fd, "hello");
}

TEST(who_comes_when_no_more_may_send_is_a_receiver)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	int fd;

	c.senders = 1;
	st_open(&g, &c);
	expect_views(&g, 1);
	fd = join_at(&g, 1, 0);
	CHECK_EQ(st_info(fd).senders, 1);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), EACCES);
	/* and stays one */
	close(g.fd[0]);
	st_expect_view(fd, 2);
	st_expect_view(fd, 3);
	CHECK_EQ(st_info(fd).senders, 0);
	CHECK_ERR(send(fd, "x", 1, MSG_NOSIGNAL), EACCES);
	g.fd[0] = fd;
	g.n = 1;
	fd = join_at(&g, 2, 1);
	st_expect_view(g.fd[0], 4);
	st_expect_view(fd, 4);
	st_say(fd, "from another");
	st_expect(g.fd[0], "from another");
	st_expect(fd, "from another");
}

TEST(another_configuration)
{
	struct spindle_group_join j = { .depth = 32 };
	struct st_group g = { 0 };

	st_open(&g, &one);
	snprintf(j.name, sizeof(j.name), "%s", g.name);
	st_contact(&j, st_addr(0));
	CHECK_ERR(st_join(st_bound(0), &j), EPROTOTYPE);
	CHECK_ERR(st_join(st_bound(1), &j), EPROTOTYPE);
	j.depth = 0;
	j.max_members = 3;
	CHECK_ERR(st_join(st_bound(1), &j), EPROTOTYPE);
	j.max_members = SPINDLE_MAX_MEMBERS;
	CHECK_OK(st_join(st_bound(1), &j));
}

TEST(a_group_that_has_ended)
{
	struct st_group g = { 0 };

	st_open(&g, &one);
	expect_views(&g, 1);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	st_wait_state(g.fd[0], SPINDLE_STATE_CLOSED);
	CHECK_ERR(st_come(&g, st_bound(1), 0, 0), ESHUTDOWN);
	CHECK_ERR(st_come(&g, st_bound(0), 0, 0), ESHUTDOWN);
}

/* The lanes that are worth being mapped before somebody sends. */
TEST(lanes_that_are_there)
{
	struct st_group g = { 0 };
	struct spindle_rings r;
	int fd;

	st_open(&g, &one);
	CHECK_OK(st_option(g.fd[0], SPINDLE_MAP, SPINDLE_MAP_RX));
	CHECK_OK(get_rings(g.fd[0], &r));
	CHECK_EQ(r.lanes_there, 1);
	fd = st_bound(1);
	CHECK_OK(st_come(&g, fd, 0, SPINDLE_F_RECEIVER));
	st_wait_members(g.fd[0], 2);
	CHECK_OK(get_rings(g.fd[0], &r));
	CHECK_EQ(r.lanes_there, 1);
	join_at(&g, 2, 0);
	st_wait_members(g.fd[0], 3);
	CHECK_OK(get_rings(g.fd[0], &r));
	CHECK_EQ(r.lanes_there, 2);
	CHECK_EQ(r.lanes, SPINDLE_MAX_LANES);
}

TEST(many_come_at_once)
{
	struct spindle_group_join j = { 0 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &one);
	snprintf(j.name, sizeof(j.name), "%s", g.name);
	for (i = 1; i < 40; i++) {
		int fd = st_bound(i % 10);

		CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
		st_contact(&j, st_addr(0));
		if (st_join(fd, &j) < 0)
			CHECK_EQ(errno, EINPROGRESS);
		g.fd[g.n++] = fd;
	}
	for (i = 0; i < g.n; i++) {
		st_wait_members(g.fd[i], 40);
		CHECK_OK(fcntl(g.fd[i], F_SETFL, 0));
		CHECK_OK(st_option(g.fd[i], SPINDLE_EVENTS, 0));
	}
	talk_all(&g);
}

/* Is there nothing in a lane, whatever is left of it in other mappings? */
static bool lane_is_free(const struct ring *ring, unsigned int lane)
{
	const struct spindle_rings *r = &ring->r;
	void *at = MUST_MAP(ring->fd, 2 * r->window, PROT_READ,
			    r->lane_off + lane * r->lane_stride);
	bool is_free = madvise(at, 2 * r->window, MADV_POPULATE_READ);

	CHECK_OK(munmap(at, 2 * r->window));
	return is_free;
}

/* The lane of the message that was read last. */
static unsigned int lane_before(const struct ring *ring)
{
	return ring->deliveries[(ring->next - 1) & (ring->r.deliveries - 1)].lane &
	       SPINDLE_DELIVERY_LANE;
}

/*
 * Members come to a group, each to the slot of the one before, and go. Who has mapped
 * the lane of that slot reads what each of them says: no two say the same.
 */
static void ring_guests(const struct st_group *g, struct ring *ring, unsigned int n)
{
	static struct ring guest;
	unsigned int i, lane;
	char text[32];
	int fd;

	for (i = 0; i < n; i++) {
		fd = st_bound(1 + i % 2);
		CHECK_OK(st_come(g, fd, 0, 0));
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		ring_map(&guest, fd, SPINDLE_MAP_ALL);
		snprintf(text, sizeof(text), "%u in place", i);
		ring_say(&guest, text);
		ring_expect(ring, text, 1);
		lane = lane_before(ring);
		CHECK_EQ(lane, 1);
		ring_expect(&guest, text, 1);
		snprintf(text, sizeof(text), "%u and back", i);
		ring_say(ring, text);
		ring_expect(ring, text, 0);
		ring_expect(&guest, text, 0);
		ring_unmap(&guest);
		close(fd);
		st_wait_members(g->fd[0], 1);
		WAIT_UNTIL(lane_is_free(ring, lane), ST_SOON);
	}
}

/* Who has mapped its deliveries reads what a member sends that came later. */
TEST(mapped_readers)
{
	struct st_group g = { 0 };
	static struct ring ring;

	st_open(&g, &one);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_ALL);
	ring_guests(&g, &ring, 40);
}

static struct {
	struct ring *ring;
	bool stop;
	unsigned long there, empty;
} touch;

/* Map all pages of all lanes, again and again. */
static void *touch_all(void *arg)
{
	unsigned int i;

	while (!__atomic_load_n(&touch.stop, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < touch.ring->r.lanes; i++) {
			if (!madvise((void *)touch.ring->lane[i], 2 * touch.ring->r.window,
				     MADV_POPULATE_READ)) {
				touch.there++;
			} else {
				CHECK_EQ(errno, EFAULT);
				touch.empty++;
			}
		}
		st_pause_us(20);
	}
	return arg;
}

TEST(mapped_readers_that_touch_every_lane)
{
	struct st_group g = { 0 };
	static struct ring ring;
	pthread_t thread;
	unsigned int i;

	st_open(&g, &one);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_ALL);
	for (i = 0; i < ring.r.lanes; i++)
		ring_lane(&ring, i);
	touch.ring = &ring;
	CHECK_EQ(pthread_create(&thread, NULL, touch_all, NULL), 0);
	ring_guests(&g, &ring, 40);
	__atomic_store_n(&touch.stop, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	printf("# %lu lanes were there, %lu were not\n", touch.there, touch.empty);
	CHECK(touch.there);
	CHECK(touch.empty);
}

static sigjmp_buf no_lane;

static void bus_error(int sig)
{
	(void)sig;
	siglongjmp(no_lane, 1);
}

/* Is there anything in a lane? */
static bool lane_is_there(struct ring *ring, unsigned int lane)
{
	const volatile unsigned char *at = ring_lane(ring, lane);

	if (sigsetjmp(no_lane, 1))
		return false;
	(void)*at;
	return true;
}

TEST(a_lane_that_is_not_there)
{
	struct st_group g = { 0 };
	static struct ring ring;

	CHECK(signal(SIGBUS, bus_error) != SIG_ERR);
	st_open(&g, &one);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_ALL);
	CHECK(lane_is_there(&ring, 0));
	CHECK(!lane_is_there(&ring, 1));
	CHECK(!lane_is_there(&ring, ring.r.lanes - 1));
	join_at(&g, 1, 0);
	CHECK(lane_is_there(&ring, 1));
	CHECK(!lane_is_there(&ring, 2));
	close(g.fd[--g.n]);
	st_wait_members(g.fd[0], 1);
	WAIT_UNTIL(!lane_is_there(&ring, 1), ST_SOON);
	CHECK(lane_is_there(&ring, 0));
}

/* A group that is complete has room for others once somebody has gone. */
TEST(a_sender_comes_in_place_of_a_receiver)
{
	struct st_config c = { .members = 3, .nodes = 3, .receivers = 4, .window = 65536 };
	struct st_group g = { 0 };
	static struct ring ring;
	unsigned int i;
	int fd;

	st_open(&g, &c);
	CHECK_EQ(st_info(g.fd[0]).max_members, 3);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_ALL);
	CHECK_ERR(st_come(&g, st_bound(3), 0, 0), EUSERS);
	close(g.fd[2]);
	for (i = 0; i < 3; i++) {
		st_wait_members(g.fd[0], 2);
		fd = st_bound(2 + i % 2);
		CHECK_OK(st_come(&g, fd, 0, 0));
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		CHECK_EQ(st_info(fd).senders, 3);
		st_say(fd, "from the one who came");
		ring_expect(&ring, "from the one who came", 2);
		st_expect(g.fd[1], "from the one who came");
		st_expect(fd, "from the one who came");
		close(fd);
	}
}

/* A reader that sleeps in the middle of its copy. */
struct stuck {
	int fd;
	int uffd;
	char *at;
	ssize_t got;
	pthread_t thread;
};

static void *stuck_recv(void *arg)
{
	struct stuck *s = arg;

	s->got = recv(s->fd, s->at, 2 * getpagesize(), 0);
	return NULL;
}

/* It sleeps behind a page of the message that is there. */
static void stuck_begin(struct stuck *s, int fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	size_t page = getpagesize();
	struct uffdio_register reg;
	struct uffd_msg msg;

	s->fd = fd;
	s->uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (s->uffd < 0)
		st_skip("no userfaultfd here");
	CHECK_OK(ioctl(s->uffd, UFFDIO_API, &api));
	s->at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->at != MAP_FAILED);
	s->at[0] = 0;
	reg = (struct uffdio_register){
		.range = { (unsigned long)s->at + page, page },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	CHECK_OK(ioctl(s->uffd, UFFDIO_REGISTER, &reg));
	CHECK_EQ(pthread_create(&s->thread, NULL, stuck_recv, s), 0);
	CHECK_EQ(read(s->uffd, &msg, sizeof(msg)), sizeof(msg));
	CHECK_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
}

static void stuck_end(struct stuck *s)
{
	size_t page = getpagesize();
	struct uffdio_zeropage zero = { .range = { (unsigned long)s->at + page, page } };

	CHECK_OK(ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero));
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
	CHECK_OK(close(s->uffd));
	CHECK_OK(munmap(s->at, 2 * page));
}

/* A member that comes, says so many bytes, which may not come, and goes. */
static int come_and_say(const struct st_group *g, unsigned int node, size_t len)
{
	static char text[8000];
	int fd = st_bound(node);

	memset(text, 'a' + node, sizeof(text));
	CHECK_OK(st_come(g, fd, 0, 0));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	CHECK_EQ(send(fd, text, len, 0), len);
	return fd;
}

/* The lane that a reader copies from goes meanwhile: it has said that it reads no more. */
static void reader_is_stuck(bool detached)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	struct stuck s;
	unsigned int i;
	int fd;

	c.events = 0;
	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, detached));
	fd = come_and_say(&g, 1, 8000);
	st_wait_events(g.fd[0], POLLIN);
	stuck_begin(&s, g.fd[0]);
	CHECK_OK(shutdown(g.fd[0], SHUT_RD));
	close(fd);
	st_wait_members(g.fd[0], 1);
	for (i = 0; i < 10; i++) {
		close(come_and_say(&g, 2 + i % 3, 8000));
		st_wait_members(g.fd[0], 1);
	}
	CHECK_EQ(s.at[0], 'b');
	stuck_end(&s);
	CHECK_EQ(s.got, 0);
}

TEST(the_lane_goes_that_a_reader_copies_from)
{
	reader_is_stuck(false);
}

TEST(the_lane_goes_of_what_a_detached_reader_copies)
{
	reader_is_stuck(true);
}

/* Read what there is. */
static void drain(int fd)
{
	static struct st_msg m;

	while (st_recv(fd, &m, MSG_DONTWAIT) >= 0)
		CHECK(m.flags & MSG_EOR);
	CHECK_EQ(errno, EAGAIN);
}

/* Detached members close, or read no more, while their queues are filled. */
TEST(detached_members_go_with_the_senders)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	static char text[8000];
	unsigned int i, k;
	int fd, sender;

	c.events = 0;
	st_open(&g, &c);
	for (i = 0; i < 40; i++) {
		fd = st_bound(0);
		CHECK_OK(st_option(fd, SPINDLE_DETACHED, 1));
		CHECK_OK(st_come(&g, fd, 0, 0));
		sender = come_and_say(&g, 1 + i % 2, 8000);
		for (k = 0; k < 20; k++)
			if (send(sender, text, sizeof(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
				CHECK_EQ(errno, EAGAIN);
		st_pause_us(i * 10);
		if (i % 3 == 0)
			CHECK_OK(shutdown(fd, SHUT_RD));
		close(sender);
		if (i % 3 == 1)
			st_wait_members(g.fd[0], 2);
		close(fd);
		while (st_info(g.fd[0]).members != 1) {
			drain(g.fd[0]);
			st_pause_us(100);
		}
		drain(g.fd[0]);
	}
}

/* The queue says who has sent a message when another one has the lane. */
TEST(who_has_sent_what_a_detached_member_reads_late)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	static struct st_msg m;
	unsigned int i;

	c.events = 0;
	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	for (i = 0; i < 3; i++) {
		int fd = come_and_say(&g, 1 + i, 100);

		CHECK_EQ(CHECK_OK(recv(fd, m.data, sizeof(m.data), 0)), 100);
		close(fd);
		st_wait_members(g.fd[0], 1);
	}
	for (i = 0; i < 3; i++) {
		struct in6_addr want = st_mapped(st_addr(1 + i));

		CHECK_EQ(CHECK_OK(st_recv(g.fd[0], &m, 0)), 100);
		CHECK_EQ(m.data[0], 'b' + i);
		CHECK_SAME(memcmp(&m.from.ss_addr, &want, sizeof(want)), 0);
		CHECK_SAME(m.from.ss_rank, 1);
	}
}

TEST(a_detached_member_comes)
{
	struct st_group g = { 0 };
	int fd = st_bound(1);

	st_open(&g, &one);
	expect_views(&g, 1);
	CHECK_OK(st_option(fd, SPINDLE_DETACHED, 1));
	CHECK_OK(st_option(fd, SPINDLE_EVENTS, VIEWS));
	CHECK_OK(st_come(&g, fd, 0, 0));
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	g.fd[g.n++] = fd;
	expect_views(&g, 2);
	talk_all(&g);
}

/*
 * A member that has left without reading all may lose the rest when lanes want its room.
 * What it reads is what was sent, as far as it goes, and then the end.
 */
static void read_late(bool detached)
{
	struct st_group g = { 0 };
	static struct st_msg m;
	unsigned int i, n = 0, view = 1;
	int late, fd[260], bytes = 4096;
	char text[64];

	st_open(&g, &one);
	st_expect_view(g.fd[0], 1);
	late = st_bound(0);
	if (detached) {
		CHECK_OK(setsockopt(late, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
		CHECK_OK(st_option(late, SPINDLE_DETACHED, 1));
	}
	CHECK_OK(st_come(&g, late, 0, 0));
	st_wait_state(late, SPINDLE_STATE_ACTIVE);
	st_expect_view(g.fd[0], ++view);
	for (i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "%050u", i);
		st_say(g.fd[0], text);
		st_expect(g.fd[0], text);
	}
	CHECK_OK(st_leave(late));
	st_expect_view(g.fd[0], ++view);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = st_bound(0);
		CHECK_OK(st_come(&g, fd[i], 0, 0));
		st_wait_state(fd[i], SPINDLE_STATE_ACTIVE);
		st_expect_view(g.fd[0], ++view);
		st_say(fd[i], "here");
		st_expect(g.fd[0], "here");
		CHECK_OK(st_leave(fd[i]));
		st_expect_view(g.fd[0], ++view);
	}
	for (;; n++) {
		CHECK_OK(st_recv(late, &m, 0));
		if (!(m.flags & MSG_EOR))
			break;
		snprintf(text, sizeof(text), "%050u", n);
		m.data[m.len] = 0;
		CHECK(!strcmp(m.data, text));
	}
	printf("# %u of 200 were left\n", n);
	CHECK(n < 200);
	CHECK(st_events(late) & POLLIN);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	close(late);
	talk_all(&g);
}

TEST_SECONDS(who_has_left_reads_late, 300)
{
	read_late(false);
}

TEST_SECONDS(who_has_left_reads_its_queue_late, 300)
{
	read_late(true);
}

/* Members that have left keep their sockets: the others have room all the same. */
TEST_SECONDS(members_leave_and_stay_open, 300)
{
	struct st_group g = { 0 };
	unsigned int i, view = 1;
	int fd[300];

	st_open(&g, &one);
	st_expect_view(g.fd[0], 1);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = st_bound(0);
		CHECK_OK(st_come(&g, fd[i], 0, 0));
		st_wait_state(fd[i], SPINDLE_STATE_ACTIVE);
		st_expect_view(g.fd[0], ++view);
		st_say(fd[i], "here");
		st_expect(g.fd[0], "here");
		/* Half of them never read it themselves. */
		if (i % 2)
			st_expect(fd[i], "here");
		CHECK_OK(st_leave(fd[i]));
		st_expect_view(g.fd[0], ++view);
	}
	join_at(&g, 1, 0);
	expect_views(&g, ++view);
	talk_all(&g);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	talk_all(&g);
}

/*
 * Who does not want events, and reads nothing, keeps no log full of them: those that read
 * nothing are one that does nothing at all, one that waits for a message, and a detached one.
 */
static void idle_while_others_come(bool waits, bool detached)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	unsigned int i;
	pid_t pid;
	int fd;

	c.events = 0;
	c.senders = 1;
	c.depth = 16;
	c.max_members = 4;
	st_open(&g, &c);
	if (detached)
		CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	pid = waits ? CHECK_OK(fork()) : -1;
	if (!pid) {
		st_expect(g.fd[0], "still there");
		_exit(0);
	}
	/* the log has 64 entries, each who comes and goes puts in two */
	for (i = 0; i < 100; i++) {
		fd = st_bound(i % 3);
		CHECK_OK(st_come(&g, fd, 0, 0));
		st_wait_members(g.fd[0], 2);
		close(fd);
		st_wait_members(g.fd[0], 1);
		CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_ACTIVE);
	}
	fd = st_bound(1);
	CHECK_OK(st_come(&g, fd, 0, 0));
	st_wait_members(g.fd[0], 2);
	CHECK_EQ(st_info(g.fd[0]).view, 202);
	st_say(g.fd[0], "still there");
	st_expect(fd, "still there");
	if (!waits) {
		st_expect(g.fd[0], "still there");
		return;
	}
	st_reap(pid);
}

TEST(who_wants_no_events_sits_idle)
{
	idle_while_others_come(false, false);
}

TEST(who_wants_no_events_waits)
{
	idle_while_others_come(true, false);
}

TEST(who_wants_no_events_is_detached)
{
	idle_while_others_come(false, true);
}

/* The number of the view is right behind views that were passed by. */
TEST(the_view_of_a_message_after_many)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	static struct st_msg m;
	uint64_t view = 0;
	unsigned int i;
	int fd;

	c.events = 0;
	c.recvinfo = true;
	c.max_members = 3;
	st_open(&g, &c);
	for (i = 0; i < 20; i++) {
		fd = st_bound(1);
		CHECK_OK(st_come(&g, fd, 0, 0));
		st_say(fd, "of this view");
		st_expect(fd, "of this view");
		close(fd);
		st_wait_members(g.fd[0], 1);
		if (i % 4)
			continue;
		while (st_recv(g.fd[0], &m, MSG_DONTWAIT) >= 0) {
			CHECK(m.has_info);
			view = m.info.view;
		}
		CHECK_SAME(view, 2 * i + 2);
	}
}

/* The contact goes while it is asked: another one sees to it, or there is none. */
TEST(the_contact_goes)
{
	struct st_config c = one;
	struct st_group g = { 0 };
	unsigned int i;

	for (i = 0; i < 10; i++) {
		int fd = st_bound(5), ret = 0;

		memset(&g, 0, sizeof(g));
		c.members = 3;
		c.nodes = 3;
		st_open(&g, &c);
		CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
		CHECK_ERR(st_come(&g, fd, 1, 0), EINPROGRESS);
		st_pause_us(100 * i);
		close(g.fd[1]);
		WAIT_UNTIL(st_info(fd).state == SPINDLE_STATE_ACTIVE || (ret = st_so_error(fd)),
			   ST_SOON);
		if (st_info(fd).state != SPINDLE_STATE_ACTIVE && ret != ENOENT &&
		    ret != ECONNREFUSED && ret != EHOSTUNREACH && ret != EHOSTDOWN)
			BROKEN("the join ended with %s", st_err(ret));
		close(fd);
		st_wait_members(g.fd[0], 2);
		close(g.fd[0]);
		close(g.fd[2]);
		st_wait_gone(0, &g);
	}
}

/*
 * Members that come, talk and go all the time. Member 0 stays, and what it reads is the
 * order: each other one reads a stretch of that, from the event of its first view on,
 * and misses nothing that anybody has sent in it.
 */
#define CROWD	12
#define NOTES	400000

struct note {
	uint32_t tag;
	uint32_t k;
};

struct entry {
	uint64_t seq;
	struct note note;	/* tag 0: the event of view k */
};

struct guest {
	int fd;
	uint32_t tag;
	uint32_t sent;
	bool leaves;
	bool ended;
	struct entry *log;
	size_t n;
};

static struct guest crowd[CROWD];
static size_t checked;

static void guest_note(struct guest *w, uint64_t seq, uint32_t tag, uint32_t k)
{
	CHECK(w->n < NOTES);
	w->log[w->n++] = (struct entry){ seq, { tag, k } };
}

/* Read what there is. */
static void guest_read(struct guest *w)
{
	static struct st_msg m;
	struct note note;
	unsigned int i;

	for (i = 0; i < 100 && !w->ended; i++) {
		if (st_recv(w->fd, &m, MSG_DONTWAIT) < 0) {
			CHECK_EQ(errno, EAGAIN);
			return;
		}
		if (!(m.flags & MSG_EOR)) {
			CHECK_SAME(m.len, 0);
			w->ended = true;
		} else if (m.flags & MSG_SPINDLE_EVENT) {
			guest_note(w, m.event.seq, 0, m.event.view);
		} else {
			CHECK(m.len >= (ssize_t)sizeof(note));
			CHECK(m.has_info);
			memcpy(&note, m.data, sizeof(note));
			guest_note(w, m.info.seq, note.tag, note.k);
		}
	}
}

static void guest_talk(struct guest *w, uint64_t *seed)
{
	static char room[2048];
	struct note note = { w->tag, w->sent + 1 };
	size_t len = sizeof(note) + st_random(seed) % 1000;

	if (w->leaves || w->ended)
		return;
	memcpy(room, &note, sizeof(note));
	if (send(w->fd, room, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		CHECK_EQ(errno, EAGAIN);
	else
		w->sent++;
}

/* What another one has read may not be read here yet. */
static const struct entry *order_at(size_t at)
{
	double end = st_now() + st_bound_s(ST_SOON);
	struct guest *order = &crowd[0];

	while (at >= order->n) {
		if (st_now() > end)
			FAIL("member 0 has read %zu entries, and no more", order->n);
		guest_read(order);
		if (at >= order->n)
			st_pause_us(500);
	}
	return &order->log[at];
}

/* It has read a stretch of the order, and all that it has sent is in it. */
static void guest_check(const struct guest *w)
{
	const struct guest *order = &crowd[0];
	uint32_t k = 0;
	size_t i, at;

	CHECK(w->n);
	CHECK_SAME(w->log[0].note.tag, 0);
	for (at = 0; order_at(at)->note.tag || order->log[at].note.k != w->log[0].note.k; at++)
		;
	for (i = 0; i < w->n; i++, at++) {
		order_at(at);
		CHECK_SAME(w->log[i].seq, order->log[at].seq);
		CHECK_SAME(w->log[i].note.tag, order->log[at].note.tag);
		CHECK_SAME(w->log[i].note.k, order->log[at].note.k);
		if (w->log[i].note.tag == w->tag)
			CHECK_SAME(w->log[i].note.k, ++k);
	}
	if (w->ended)
		CHECK_SAME(k, w->sent);
	checked++;
}

static void guest_come(const struct st_group *g, struct guest *w, unsigned int node,
		       unsigned int contact, uint32_t tag)
{
	struct entry *log = w->log;

	memset(w, 0, sizeof(*w));
	w->log = log ? log : calloc(NOTES, sizeof(*log));
	CHECK(w->log);
	w->tag = tag;
	w->fd = st_bound(node);
	CHECK_OK(st_option(w->fd, SPINDLE_EVENTS, VIEWS));
	CHECK_OK(st_option(w->fd, SPINDLE_RECVINFO, 1));
	CHECK_OK(st_option(w->fd, SPINDLE_DETACHED, tag % 3 == 0));
	/* in a crowd, and on a slow host, its turn may come late */
	st_timeout(w->fd, SO_SNDTIMEO, 2 * st_bound_ms(ST_SOON));
	CHECK_OK(fcntl(w->fd, F_SETFL, O_NONBLOCK));
	if (st_come(g, w->fd, contact, 0) < 0)
		CHECK_EQ(errno, EINPROGRESS);
}

static void crowd_pump(uint64_t *seed, unsigned int n)
{
	struct spindle_group_info info;
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		if (crowd[i].fd < 0)
			continue;
		info = st_info(crowd[i].fd);
		if (info.state == SPINDLE_STATE_NONE) {
			err = st_so_error(crowd[i].fd);
			if (err)
				BROKEN("guest %u cannot join: %s", crowd[i].tag, st_err(err));
			continue;
		}
		if (info.state == SPINDLE_STATE_FORMING)
			continue;
		if (info.state == SPINDLE_STATE_FAILED)
			BROKEN("guest %u: the group has failed: %s", crowd[i].tag,
			       st_err(info.error));
		guest_read(&crowd[i]);
		guest_talk(&crowd[i], seed);
	}
}

TEST_SECONDS(a_crowd, 600)
{
	struct st_group g = { 0 };
	struct st_config c = one;
	uint64_t seed = st_env("ST_SEED", 1);
	uint32_t tag = 1, went = 0;
	unsigned int i;
	double end;

	c.recvinfo = true;
	st_open(&g, &c);
	for (i = 0; i < CROWD; i++)
		crowd[i].fd = -1;
	crowd[0].fd = g.fd[0];
	crowd[0].tag = tag++;
	crowd[0].log = calloc(NOTES, sizeof(*crowd[0].log));
	end = st_now() + st_bound_s(300);
	while (went < 150) {
		i = 1 + st_random(&seed) % (CROWD - 1);
		CHECK(st_now() < end);
		if (st_random(&seed) % 8) {
			crowd_pump(&seed, CROWD);
			continue;
		}
		if (crowd[i].fd < 0) {
			/* at a node that has the group, or at its own */
			guest_come(&g, &crowd[i], st_random(&seed) % 6, 0, tag++);
		} else if (crowd[i].ended) {
			guest_check(&crowd[i]);
			close(crowd[i].fd);
			crowd[i].fd = -1;
			went++;
		} else if (!crowd[i].leaves && crowd[i].n &&
			   st_info(crowd[i].fd).state == SPINDLE_STATE_ACTIVE) {
			CHECK_OK(st_leave(crowd[i].fd));
			crowd[i].leaves = true;
		}
	}
	CHECK(checked >= 150);
	printf("# %zu entries, %u members\n", crowd[0].n, tag - 1);
}

/* A program gives up at any moment; nobody else is harmed. */
/* Read until the end of the stream; @text is in it as often as is said. */
static void expect_end_with(int fd, const char *text, unsigned int times)
{
	static struct st_msg m;

	for (;;) {
		CHECK_OK(st_recv(fd, &m, 0));
		if (!(m.flags & MSG_EOR))
			break;
		if (m.flags & MSG_SPINDLE_EVENT)
			continue;
		m.data[m.len] = 0;
		CHECK(times && !strcmp(m.data, text));
		times--;
	}
	CHECK_EQ(times, 0);
}

/*
 * Somebody comes while the others say their last: the stream has ended, and nobody
 * comes, or it goes on until who has come has said its last, too.
 */
TEST(the_stream_ends_while_one_comes)
{
	struct st_config c = one;
	unsigned int i, k, came = 0;

	c.members = 2;
	c.nodes = 2;
	for (i = 0; i < 30; i++) {
		struct st_group g = { 0 };
		int fd = st_bound(2), ret = 0;
		bool there;

		st_open(&g, &c);
		CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
		for (k = 0; k < 2; k++) {
			if (k == i % 3 && st_come(&g, fd, i & 1, 0) < 0)
				CHECK_EQ(errno, EINPROGRESS);
			st_pause_us(i * 10);
			CHECK_OK(shutdown(g.fd[k], SHUT_WR));
		}
		if (i % 3 == 2 && st_come(&g, fd, i & 1, 0) < 0)
			CHECK_EQ(errno, EINPROGRESS);
		WAIT_UNTIL(st_info(fd).state == SPINDLE_STATE_ACTIVE ||
			   st_info(fd).state == SPINDLE_STATE_CLOSED ||
			   (ret = st_so_error(fd)), ST_SOON);
		there = !ret;
		if (there) {
			came++;
			CHECK_OK(fcntl(fd, F_SETFL, 0));
			st_say(fd, "late");
			CHECK_OK(shutdown(fd, SHUT_WR));
			expect_end_with(fd, "late", 1);
		} else if (ret != ESHUTDOWN) {
			BROKEN("round %u: %s", i, st_err(ret));
		}
		for (k = 0; k < 2; k++)
			expect_end_with(g.fd[k], "late", there);
		close(fd);
		close(g.fd[0]);
		close(g.fd[1]);
		st_wait_gone(0, &g);
		st_wait_gone(1, &g);
	}
	printf("# %u of %u came\n", came, i);
}

TEST(who_comes_gives_up)
{
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &one);
	join_at(&g, 1, 0);
	for (i = 0; i < 40; i++) {
		int fd = st_bound(i % 4);

		CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
		if (st_come(&g, fd, i % 2, 0) < 0)
			CHECK_EQ(errno, EINPROGRESS);
		st_pause_us(i * 20);
		close(fd);
	}
	for (i = 0; i < g.n; i++) {
		st_wait_members(g.fd[i], 2);
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_ACTIVE);
		CHECK_OK(st_option(g.fd[i], SPINDLE_EVENTS, 0));
	}
	talk_all(&g);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
