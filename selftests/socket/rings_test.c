// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped rings by the bare contract of uapi/linux/spindle.h: who may map what,
 * messages in place, and programs that write what they should not.
 */
#include "ring.h"

#include <linux/sockios.h>
#include <sched.h>

/* Who may map what */

TEST(not_before_the_view)
{
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };
	struct spindle_rings r;
	int fd = st_bound(0);

	CHECK_ERR(map_option(fd, SPINDLE_MAP_ALL), ENOTCONN);
	CHECK_ERR(get_rings(fd, &r), ENOTCONN);
	CHECK(!map(fd, 4096, PROT_READ, 0));
	CHECK_EQ(errno, ENOTCONN);
	st_open_but(&g, &c, 1);
	CHECK_ERR(map_option(g.fd[0], SPINDLE_MAP_ALL), ENOTCONN);
	CHECK_ERR(ioctl(fd, SIOCSPINDLEKICK, 0), ENOTCONN);
	CHECK_OK(ioctl(g.fd[0], SIOCSPINDLEKICK, 0));
}

TEST(options_are_checked)
{
	struct st_config c = { .members = 2, .receivers = 2 };
	struct st_group g = { 0 };
	struct spindle_rings r;
	char buf[16];
	int n = 1;

	st_open(&g, &c);
	CHECK_ERR(get_rings(g.fd[0], &r), ENOTCONN);
	CHECK_ERR(map_option(g.fd[0], 0), EINVAL);
	CHECK_ERR(map_option(g.fd[0], 4), EINVAL);
	CHECK_ERR(map_option(g.fd[0], -1), EINVAL);
	CHECK_ERR(setsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_MAP, &n, 3), EINVAL);
	CHECK_ERR(map_option(g.fd[1], SPINDLE_MAP_TX), EACCES);
	CHECK_ERR(map_option(g.fd[1], SPINDLE_MAP_ALL), EACCES);
	CHECK_OK(map_option(g.fd[1], SPINDLE_MAP_RX));
	CHECK_OK(get_rings(g.fd[1], &r));
	CHECK_EQ(r.lane, -1);
	CHECK_EQ(r.lanes, SPINDLE_MAX_LANES);
	CHECK_EQ(r.lanes_there, 1);
	CHECK_ERR(recv(g.fd[1], buf, sizeof(buf), 0), EBUSY);
	CHECK_ERR(ioctl(g.fd[1], SIOCINQ, &n), EBUSY);
	CHECK_OK(map_option(g.fd[0], SPINDLE_MAP_TX));
	CHECK_ERR(map_option(g.fd[0], SPINDLE_MAP_RX), EBUSY);
	CHECK_ERR(send(g.fd[0], "x", 1, MSG_NOSIGNAL), EBUSY);
	/* the other direction is as it was */
	CHECK_ERR(recv(g.fd[0], buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	CHECK_OK(get_rings(g.fd[0], &r));
	CHECK_EQ(r.flags, SPINDLE_MAP_TX);
	CHECK_EQ(r.lane, 0);
}

/* Who sends by mapped rings only has nothing to read there, nor who receives to write. */
TEST(the_other_direction_is_not_mapped)
{
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };
	struct ring tx, rx;
	unsigned int i;

	st_open(&g, &c);
	ring_map(&tx, g.fd[0], SPINDLE_MAP_TX);
	ring_map(&rx, g.fd[1], SPINDLE_MAP_RX);
	CHECK(!map(tx.fd, tx.r.delivery_size, PROT_READ, tx.r.delivery_off));
	CHECK_EQ(errno, EACCES);
	for (i = 0; i < tx.r.lanes; i++) {
		CHECK(!map(tx.fd, 2 * tx.r.window, PROT_READ,
			   tx.r.lane_off + i * tx.r.lane_stride));
		CHECK_EQ(errno, EACCES);
	}
	CHECK(!map(rx.fd, 2 * rx.r.window, PROT_READ, rx.r.own_off));
	CHECK_EQ(errno, EACCES);
	ring_say(&tx, "by the ring");
	ring_expect(&rx, "by the ring", 0);
	st_expect(tx.fd, "by the ring");
}

TEST(regions_are_protected)
{
	struct st_config c = { .members = 2, .nodes = 1 };
	struct spindle_rings *r;
	struct st_group g = { 0 };
	struct ring ring;
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned int i;

	st_open(&g, &c);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_ALL);
	r = &ring.r;
	struct {
		uint64_t off;
		size_t size;
		bool write;
	} regions[] = {
		{ r->status_off, r->status_size, false },
		{ r->user_off, r->user_size, true },
		{ r->delivery_off, r->delivery_size, false },
		{ r->own_off, 2 * r->window, true },
		{ r->lane_off, 2 * r->window, false },
		{ r->lane_off + r->lane_stride, 2 * r->window, false },
	};

	for (i = 0; i < ARRAY_SIZE(regions); i++) {
		uint64_t off = regions[i].off;
		size_t size = regions[i].size;
		unsigned char in[1];
		pid_t child;
		void *at;

		CHECK(!map(ring.fd, size + page, PROT_READ, off));
		CHECK_EQ(errno, EINVAL);
		if (size > page) {
			CHECK(!map(ring.fd, size - page, PROT_READ, off));
			CHECK_EQ(errno, EINVAL);
			CHECK(!map(ring.fd, size - page, PROT_READ, off + page));
			CHECK_EQ(errno, EINVAL);
		}
		CHECK(mmap(NULL, size, PROT_READ, MAP_PRIVATE, ring.fd, off) == MAP_FAILED);
		CHECK_EQ(errno, EINVAL);
		CHECK(!map(ring.fd, size, PROT_READ | PROT_EXEC, off));
		CHECK_EQ(errno, EACCES);
		if (!regions[i].write) {
			CHECK(!map(ring.fd, size, PROT_READ | PROT_WRITE, off));
			CHECK_EQ(errno, EACCES);
		}
		at = MUST_MAP(ring.fd, size, PROT_READ, off);
		if (!regions[i].write)
			CHECK_ERR(mprotect(at, size, PROT_READ | PROT_WRITE), EACCES);
		CHECK_ERR(mprotect(at, size, PROT_READ | PROT_EXEC), EACCES);
		CHECK(mremap(at, size, size + page, MREMAP_MAYMOVE) == MAP_FAILED);
		/* a child has none of it */
		child = CHECK_OK(fork());
		if (!child)
			_exit(mincore(at, page, in) && errno == ENOMEM ? 0 : 1);
		st_reap(child);
		CHECK_OK(munmap(at, size));
	}
	CHECK(!map(ring.fd, 2 * r->window, PROT_READ, r->lane_off + r->lanes * r->lane_stride));
	CHECK_EQ(errno, EINVAL);
	CHECK(!map(ring.fd, page, PROT_READ, 9ULL << 32));
	CHECK_EQ(errno, EINVAL);
	ring_unmap(&ring);
}

/* Messages in place */

TEST(message_in_place)
{
	struct ring ring;

	ring_map(&ring, st_alone(), SPINDLE_MAP_ALL);
	ring_say(&ring, "in place");
	ring_expect(&ring, "in place", 0);
	CHECK_EQ(st_events(ring.fd) & POLLIN, 0);
	ring_say(&ring, "");
	ring_expect(&ring, "", 0);
	WAIT_UNTIL(st_info(ring.fd).received == 2, ST_SOON);
	CHECK_EQ(st_info(ring.fd).sent, 2);
}

TEST(goes_on_where_copies_ended)
{
	struct ring ring;
	int fd = st_alone();

	st_say(fd, "first");
	st_say(fd, "second");
	st_expect(fd, "first");
	ring_map(&ring, fd, SPINDLE_MAP_ALL);
	ring_say(&ring, "third");
	ring_expect(&ring, "second", 0);
	ring_expect(&ring, "third", 0);
}

TEST(mapped_and_copied_agree)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	struct ring a, b;
	char text[32];
	int i;

	st_open(&g, &c);
	ring_map(&a, g.fd[0], SPINDLE_MAP_ALL);
	ring_map(&b, g.fd[2], SPINDLE_MAP_RX);
	for (i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "message %d", i);
		if (i & 1)
			st_say(g.fd[1 + (i & 2) / 2], text);
		else
			ring_say(&a, text);
		ring_expect(&a, text, i & 1 ? 1 + (i & 2) / 2 : 0);
		ring_expect(&b, text, i & 1 ? 1 + (i & 2) / 2 : 0);
		st_expect(g.fd[1], text);
	}
}

/* Each byte says where in which message it is. */
static void pattern_fill(unsigned char *to, uint32_t len, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		to[i] = number * 31 + i;
}

static bool pattern_holds(const unsigned char *data, uint32_t len, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (data[i] != (unsigned char)(number * 31 + i))
			return false;
	return true;
}

static uint32_t length_of(uint64_t number, uint32_t max)
{
	uint64_t state = number;

	return st_random(&state) % (max + 1);
}

/* Round the ring and the descriptors many times, as full as they get. */
static void stream(uint32_t window, uint32_t depth, uint32_t max, uint64_t messages)
{
	struct st_config c = {
		.members = 2, .nodes = 2, .window = window, .depth = depth, .max_msg = max,
		.receivers = 2,
	};
	struct st_group g = { 0 };
	uint64_t sent = 0, got = 0;
	struct ring a, b;

	st_open(&g, &c);
	ring_map(&a, g.fd[0], SPINDLE_MAP_ALL);
	ring_map(&b, g.fd[1], SPINDLE_MAP_RX);
	while (got < messages) {
		const unsigned char *data;
		uint32_t len, rank;

		while (sent < messages && ring_room(&a, length_of(sent, max))) {
			pattern_fill(ring_place(&a), length_of(sent, max), sent);
			ring_submit(&a, length_of(sent, max), 0);
			sent++;
		}
		ring_kick(&a);
		if (got < sent)
			st_wait_events(b.fd, POLLIN);
		else
			st_wait_events(a.fd, POLLIN | POLLOUT);
		while ((data = ring_peek(&b, &len, &rank))) {
			CHECK_SAME(len, length_of(got, max));
			if (!pattern_holds(data, len, got))
				BROKEN("message %llu is not as it was sent",
				       (unsigned long long)got);
			got++;
			ring_release(&b);
		}
		while (ring_peek(&a, &len, &rank))
			ring_release(&a);
	}
}

TEST(bytes_wrap)
{
	stream(16384, 1024, 5000, 3000);
}

TEST(descriptors_wrap)
{
	stream(1 << 18, 16, 300, 3000);
}

TEST(largest_message)
{
	stream(65536, 16, 65536, 50);
}

TEST(asks_to_be_woken_when_idle)
{
	struct ring ring;

	ring_map(&ring, st_alone(), SPINDLE_MAP_ALL);
	WAIT_UNTIL(ring.status->flags & SPINDLE_NEED_WAKEUP, ST_SOON);
	ring_say(&ring, "up");
	ring_expect(&ring, "up", 0);
	WAIT_UNTIL(ring.status->flags & SPINDLE_NEED_WAKEUP, ST_SOON);
}

TEST(full_ring_waits_for_the_reader)
{
	struct st_config c = {
		.members = 2, .nodes = 2, .window = 4096, .max_msg = 1024, .receivers = 2,
	};
	struct st_group g = { 0 };
	struct ring a, b;
	uint32_t len, rank;
	int i;

	st_open(&g, &c);
	ring_map(&a, g.fd[0], SPINDLE_MAP_ALL);
	ring_map(&b, g.fd[1], SPINDLE_MAP_RX);
	for (i = 0; i < 4; i++) {
		CHECK(ring_room(&a, 1024));
		ring_submit(&a, 1024, 0);
		ring_kick(&a);
	}
	for (i = 0; i < 4; i++) {
		WAIT_UNTIL(ring_peek(&a, &len, &rank), ST_SOON);
		ring_release(&a);
	}
	CHECK(!ring_room(&a, 1024));
	CHECK_EQ(st_events(a.fd) & POLLOUT, 0);
	WAIT_UNTIL(ring_peek(&b, &len, &rank), ST_SOON);
	ring_release(&b);
	st_wait_events(a.fd, POLLOUT);
	CHECK(ring_room(&a, 1024));
}

TEST(shutdown_takes_what_was_submitted)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	uint32_t len, rank;
	struct ring a;
	char text[16];
	int i;

	st_open(&g, &c);
	ring_map(&a, g.fd[0], SPINDLE_MAP_ALL);
	for (i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%d", i);
		memcpy(ring_place(&a), text, strlen(text));
		ring_submit(&a, strlen(text), 0);
	}
	CHECK_OK(shutdown(a.fd, SHUT_WR));
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	for (i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ring_expect(&a, text, 0);
		st_expect(g.fd[1], text);
	}
	st_expect_end(g.fd[1]);
	WAIT_UNTIL(a.status->state == SPINDLE_STATE_CLOSED, ST_SOON);
	CHECK(!ring_peek(&a, &len, &rank));
	st_wait_events(a.fd, POLLRDHUP);
}

TEST(failure_is_in_the_status)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	uint32_t len, rank;
	struct ring a;

	st_open(&g, &c);
	ring_map(&a, g.fd[1], SPINDLE_MAP_ALL);
	CHECK_EQ(a.status->state, SPINDLE_STATE_ACTIVE);
	ring_say(&a, "the last");
	WAIT_UNTIL(ring_peek(&a, &len, &rank), ST_SOON);
	a.user->rx_seen = a.next;
	st_break(1, 0);
	WAIT_UNTIL(a.status->state == SPINDLE_STATE_FAILED, ST_SOON);
	CHECK_EQ(a.status->error, ENETDOWN);
	/* what was delivered stays where it is, and comes before the error */
	CHECK_EQ(st_events(a.fd), POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);
	CHECK_EQ(st_so_error(a.fd), 0);
	ring_expect(&a, "the last", 1);
	CHECK_EQ(st_events(a.fd) & (POLLERR | POLLHUP), POLLERR | POLLHUP);
	CHECK_EQ(st_so_error(a.fd), ENETDOWN);
}

TEST(a_mapping_keeps_the_member)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	struct ring a;

	st_open(&g, &c);
	ring_map(&a, g.fd[0], SPINDLE_MAP_ALL);
	CHECK_OK(close(g.fd[0]));
	st_say(g.fd[1], "still there");
	st_expect(g.fd[1], "still there");
	CHECK_EQ(st_info(g.fd[1]).members, 2);
	ring_unmap(&a);
	st_wait_members(g.fd[1], 1);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_ACTIVE);
}

TEST(an_exit_with_mappings_is_a_close)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	struct ring a;
	int up[2];
	char x;

	CHECK_OK(pipe(up));
	st_open_but(&g, &c, 1);
	if (!fork()) {
		struct spindle_group_join join = { 0 };
		int fd = st_bound(1);

		snprintf(join.name, sizeof(join.name), "%s", g.name);
		st_contact(&join, st_addr(0));
		CHECK_OK(st_join(fd, &join));
		close(g.fd[0]);
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		st_linger(fd, ST_SOON);
		ring_map(&a, fd, SPINDLE_MAP_ALL);
		ring_say(&a, "dying");
		WAIT_UNTIL(a.status->tx_taken == 1, ST_SOON);
		CHECK_EQ(write(up[1], "x", 1), 1);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(read(up[0], &x, 1), 1);
	/* what was taken of it is sent */
	st_expect(g.fd[0], "dying");
	st_wait_members(g.fd[0], 1);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_ACTIVE);
	st_expect_none(g.fd[0]);
}

/* Programs that write what they should not */

/* A member that was refused harms nobody: the others go on. */
static void refused(int error, void (*wrong)(struct ring *ring))
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 2048 };
	struct st_group g = { 0 };
	struct ring bad;

	st_open(&g, &c);
	ring_map(&bad, g.fd[1], SPINDLE_MAP_TX);
	ring_say(&bad, "good");
	WAIT_UNTIL(bad.status->tx_taken == 1, ST_SOON);
	wrong(&bad);
	ring_kick(&bad);
	WAIT_UNTIL(bad.status->tx_error, ST_SOON);
	CHECK_EQ(bad.status->tx_error, error);
	CHECK(st_events(bad.fd) & POLLOUT);
	/* nothing more is taken, however right */
	ring_submit(&bad, 1, 0);
	CHECK_OK(ioctl(bad.fd, SIOCSPINDLEKICK, 0));
	st_say(g.fd[0], "others");
	st_expect(g.fd[0], "good");
	st_expect(g.fd[0], "others");
	st_expect(g.fd[2], "good");
	st_expect(g.fd[2], "others");
	st_expect(g.fd[1], "good");
	st_expect(g.fd[1], "others");
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	CHECK_OK(shutdown(g.fd[2], SHUT_WR));
	st_expect_end(g.fd[0]);
	st_expect_end(g.fd[1]);
	st_expect_end(g.fd[2]);
}

static void too_long(struct ring *ring)
{
	ring_submit(ring, 2049, 0);
}

TEST(message_too_long_is_refused)
{
	refused(EMSGSIZE, too_long);
}

static void bad_flags(struct ring *ring)
{
	ring_submit(ring, 1, 1);
}

TEST(unknown_flag_is_refused)
{
	refused(EINVAL, bad_flags);
}

static void tail_ahead(struct ring *ring)
{
	ring->user->tx_tail = ring->at + ring->r.depth + 1;
}

TEST(tail_too_far_is_refused)
{
	refused(EINVAL, tail_ahead);
}

static void tail_back(struct ring *ring)
{
	ring->user->tx_tail = 0;
}

TEST(tail_backwards_is_refused)
{
	refused(EINVAL, tail_back);
}

static void no_room(struct ring *ring)
{
	ring_submit(ring, 2048, 0);
	ring_submit(ring, 2048, 0);
}

TEST(room_that_is_not_there_is_refused)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 4096, .max_msg = 2048 };
	struct st_group g = { 0 };
	struct ring bad;

	st_open(&g, &c);
	ring_map(&bad, g.fd[1], SPINDLE_MAP_ALL);
	ring_say(&bad, "unread");
	no_room(&bad);
	ring_kick(&bad);
	WAIT_UNTIL(bad.status->tx_error, ST_SOON);
	CHECK_EQ(bad.status->tx_error, ENOBUFS);
}

TEST(absurd_releases_are_no_news)
{
	struct st_config c = {
		.members = 2, .nodes = 2, .window = 4096, .max_msg = 1024, .receivers = 2,
	};
	struct st_group g = { 0 };
	struct ring a, b;
	uint32_t len, rank;
	uint64_t all;
	int i;

	st_open(&g, &c);
	ring_map(&a, g.fd[0], SPINDLE_MAP_ALL);
	ring_map(&b, g.fd[1], SPINDLE_MAP_RX);
	for (i = 0; i < 4; i++) {
		ring_submit(&a, 1024, 0);
		ring_kick(&a);
	}
	for (i = 0; i < 4; i++) {
		WAIT_UNTIL(ring_peek(&a, &len, &rank), ST_SOON);
		ring_release(&a);
	}
	WAIT_UNTIL(ring_peek(&b, &len, &rank), ST_SOON);
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	all = b.status->published;
	b.user->rx_released = all + 1;
	CHECK_OK(ioctl(b.fd, SIOCSPINDLEKICK, 0));
	b.user->rx_released = ~0ULL;
	CHECK_OK(ioctl(b.fd, SIOCSPINDLEKICK, 0));
	b.user->rx_released = 1ULL << 63;
	CHECK_OK(ioctl(b.fd, SIOCSPINDLEKICK, 0));
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	CHECK_EQ(st_info(b.fd).received, 0);
	CHECK(!ring_room(&a, 1024));
	b.user->rx_released = all;
	ring_kick(&b);
	st_wait_events(a.fd, POLLOUT);
	WAIT_UNTIL(st_info(b.fd).received == 4, ST_SOON);
}

#define SCRIBBLES	4000
#define TALK		1500

/* Writes anything anywhere it can, for as long as the others talk. */
static void scribble(struct ring *ring, uint64_t seed)
{
	uint64_t words = ring->r.user_size / 8;
	int i;

	for (i = 0; i < SCRIBBLES; i++) {
		uint64_t r = st_random(&seed);
		uint64_t *own = (uint64_t *)(ring->own + r % (2 * ring->r.window) / 8 * 8);

		own[0] = st_random(&seed);
		switch (r >> 60) {
		case 0:
			((volatile uint64_t *)ring->user)[st_random(&seed) % words] =
				st_random(&seed);
			break;
		case 1:
			ring->user->rx_released = ring->status->published - r % 3;
			break;
		case 2:
		case 3:
			ring->user->tx_tail = ring->status->tx_taken + r % 3;
			break;
		case 4:
			ioctl(ring->fd, SIOCSPINDLEKICK, 0);
			break;
		default:
			/* something that may be taken, while it is written over */
			if (ring_room(ring, 700))
				ring_submit(ring, r % 700, 0);
		}
		if (!(i % 64))
			sched_yield();
	}
	ring->user->rx_released = ring->status->published;
	ioctl(ring->fd, SIOCSPINDLEKICK, 0);
}

/* Receive all of the two good members; what comes from the other is anything. */
static void listen_to(int fd, uint32_t bad)
{
	uint64_t from[3] = { 0 };
	static struct st_msg m;

	while (from[(bad + 1) % 3] < TALK || from[(bad + 2) % 3] < TALK) {
		uint32_t rank;

		CHECK_OK(st_recv(fd, &m, 0));
		CHECK_INTACT(m.flags & MSG_EOR);
		rank = m.from.ss_rank;
		CHECK_INTACT(rank < 3);
		if (rank == bad)
			continue;
		CHECK_SAME(m.len, length_of(from[rank], 600));
		if (!pattern_holds((unsigned char *)m.data, m.len, from[rank]))
			BROKEN("message %llu of %u was harmed", (unsigned long long)from[rank],
			       rank);
		from[rank]++;
	}
}

static void talk(int fd)
{
	unsigned char data[600];
	uint64_t i;

	for (i = 0; i < TALK; i++) {
		uint32_t len = length_of(i, 600);

		pattern_fill(data, len, i);
		CHECK_EQ(CHECK_OK(send(fd, data, len, MSG_NOSIGNAL)), len);
	}
}

TEST_SECONDS(a_scribbler_harms_only_itself, 3 * ST_TEST)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 16384, .depth = 64 };
	uint64_t seed = st_env("SPINDLE_SEED", 1);
	int round, i;

	for (round = 0; round < 3; round++) {
		struct st_group g = { 0 };
		struct ring bad;
		pid_t pid[4];

		/* The last on the first node: member 2 shares it with member 0. */
		st_open(&g, &c);
		ring_map(&bad, g.fd[2], SPINDLE_MAP_ALL);
		for (i = 0; i < 4; i++) {
			pid[i] = CHECK_OK(fork());
			if (pid[i])
				continue;
			if (i < 2)
				talk(g.fd[i]);
			else
				listen_to(g.fd[i - 2], 2);
			_exit(0);
		}
		/* It must go on releasing, or it is a slow reader as well. */
		for (i = 0; i < 4; i++) {
			int status, done = 0;

			while (!done) {
				scribble(&bad, seed++);
				done = waitpid(pid[i], &status, WNOHANG) == pid[i];
			}
			CHECK_EQ(status, 0);
		}
		CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_ACTIVE);
		ring_unmap(&bad);
		for (i = 0; i < 3; i++)
			CHECK_OK(close(g.fd[i]));
	}
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
