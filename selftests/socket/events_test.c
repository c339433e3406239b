// SPDX-License-Identifier: GPL-2.0
/*
 * What programs see of views: events in the stream, leaving, what calls, files
 * and poll() say when a member has gone.
 */
#include "ring.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#define IN	(POLLIN | POLLRDNORM)
#define OUT	(POLLOUT | POLLWRNORM)

static struct st_msg m;

/* An event with all that it may have. */
union event {
	struct spindle_event e;
	char room[sizeof(struct spindle_event) +
		  2 * SPINDLE_MAX_MEMBERS * sizeof(struct spindle_event_member)];
};

static size_t event_size(unsigned int entries)
{
	return sizeof(struct spindle_event) + entries * sizeof(struct spindle_event_member);
}

static int get_option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, name, &value, &len));
	CHECK_EQ(len, sizeof(value));
	return value;
}

static int in_queue(int fd)
{
	int n;

	CHECK_OK(ioctl(fd, SIOCINQ, &n));
	return n;
}

static int join(const struct st_group *g, int fd)
{
	struct spindle_group_join j = { 0 };

	snprintf(j.name, sizeof(j.name), "%s", g->name);
	st_contact(&j, st_addr(0));
	return st_join(fd, &j);
}

/* Member @i closes, and all others of @n are in the next view. */
static void close_and_wait(const struct st_group *g, unsigned int i, unsigned int n)
{
	unsigned int k;

	close(g->fd[i]);
	for (k = 0; k < n; k++)
		if (k != i)
			st_wait_members(g->fd[k], n - 1);
}

/* The option */

TEST(mask)
{
	int fd = st_bound(0), mask = SPINDLE_WANT_VIEW;
	socklen_t len = sizeof(mask);

	CHECK_EQ(get_option(fd, SPINDLE_EVENTS), 0);
	CHECK_OK(st_option(fd, SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	CHECK_EQ(get_option(fd, SPINDLE_EVENTS), SPINDLE_WANT_VIEW);
	CHECK_ERR(st_option(fd, SPINDLE_EVENTS, 1), EINVAL);
	CHECK_ERR(st_option(fd, SPINDLE_EVENTS, SPINDLE_WANT_ALL << 1), EINVAL);
	CHECK_ERR(st_option(fd, SPINDLE_EVENTS, -1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, sizeof(mask) - 1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &mask, 0), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, (void *)8, sizeof(mask)), EFAULT);
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, (void *)8, &len), EFAULT);
	CHECK_EQ(get_option(fd, SPINDLE_EVENTS), SPINDLE_WANT_VIEW);
	CHECK_OK(st_option(fd, SPINDLE_EVENTS, 0));
	CHECK_EQ(get_option(fd, SPINDLE_EVENTS), 0);
}

/* Events */

TEST(first_event)
{
	struct st_config c = { .members = 4, .nodes = 3, .receivers = 2,
			       .events = SPINDLE_WANT_VIEW, .recvinfo = true };
	const struct spindle_event *e;
	struct st_group g = { 0 };
	unsigned int i, k;
	uint32_t uid[4];

	st_open(&g, &c);
	st_say(g.fd[0], "behind it");
	for (i = 0; i < 4; i++) {
		e = st_expect_view(g.fd[i], 1);
		CHECK_EQ(e->seq, ~0ULL);
		CHECK_EQ(e->members, 4);
		CHECK_EQ(e->left, 0);
		for (k = 0; k < 4; k++) {
			struct in6_addr addr = st_mapped(st_addr(k % 3));

			CHECK(!memcmp(&e->member[k].addr, &addr, sizeof(addr)));
			CHECK_EQ(e->member[k].flags, SPINDLE_EM_JOINED |
				 (k == 1 ? SPINDLE_EM_RECEIVER : 0) |
				 (k == i ? SPINDLE_EM_SELF : 0));
			if (!i)
				uid[k] = e->member[k].uid;
			CHECK_EQ(e->member[k].uid, uid[k]);
		}
		st_expect(g.fd[i], "behind it");
	}
	for (i = 0; i < 4; i++)
		for (k = 0; k < i; k++)
			CHECK(uid[i] != uid[k]);
}

TEST(first_event_of_one)
{
	struct st_config c = { .members = 1, .events = SPINDLE_WANT_VIEW };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_EQ(st_expect_view(g.fd[0], 1)->members, 1);
	st_expect_none(g.fd[0]);
}

/* Two on each node: who is the reader is told by more than the address. */
TEST(each_reads_itself)
{
	struct st_config c = { .members = 4, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	const struct spindle_event *e;
	struct st_group g = { 0 };
	unsigned int i, k;

	st_open(&g, &c);
	for (i = 0; i < 4; i++)
		st_expect_view(g.fd[i], 1);
	close(g.fd[0]);
	for (i = 1; i < 4; i++) {
		e = st_expect_view(g.fd[i], 2);
		CHECK_EQ(e->members, 3);
		for (k = 0; k < 3; k++)
			CHECK_EQ(e->member[k].flags, k + 1 == i ? SPINDLE_EM_SELF : 0);
	}
}

TEST(who_has_gone_and_why)
{
	struct st_config c = { .members = 6, .nodes = 5, .receivers = 2,
			       .events = SPINDLE_WANT_VIEW };
	const struct spindle_event *e;
	struct st_group g = { 0 };
	uint32_t uid[6];
	unsigned int k;

	st_open(&g, &c);
	e = st_expect_view(g.fd[0], 1);
	for (k = 0; k < 6; k++)
		uid[k] = e->member[k].uid;
	/* members 0 and 5 are on node 0 */
	CHECK_OK(st_leave(g.fd[5]));
	e = st_expect_view(g.fd[0], 2);
	CHECK_EQ(e->members, 5);
	CHECK_EQ(e->left, 1);
	CHECK_EQ(e->member[5].uid, uid[5]);
	CHECK_EQ(e->member[5].rank, 5);
	CHECK_EQ(e->member[5].reason, SPINDLE_REASON_LEFT);
	close(g.fd[1]);
	e = st_expect_view(g.fd[0], 3);
	CHECK_EQ(e->members, 4);
	CHECK_EQ(e->left, 1);
	CHECK_EQ(e->member[4].uid, uid[1]);
	CHECK_EQ(e->member[4].rank, 1);
	CHECK_EQ(e->member[4].flags, SPINDLE_EM_RECEIVER);
	CHECK_EQ(e->member[4].reason, SPINDLE_REASON_EXITED);
	st_break(2, 4);
	e = st_expect_view(g.fd[0], 4);
	CHECK_EQ(e->members, 3);
	CHECK_EQ(e->left, 1);
	/* it had moved down by one */
	CHECK_EQ(e->member[3].uid, uid[4]);
	CHECK_EQ(e->member[3].rank, 3);
	CHECK_EQ(e->member[3].reason, SPINDLE_REASON_LOST);
	for (k = 0; k < 3; k++)
		CHECK_EQ(e->member[k].uid, uid[k ? k + 1 : 0]);
	st_say(g.fd[3], "still here");
	st_expect(g.fd[0], "still here");
}

TEST(not_wanted_not_seen)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_EQ(st_events(g.fd[0]) & IN, 0);
	st_say(g.fd[0], "one");
	st_expect(g.fd[0], "one");
	st_expect(g.fd[1], "one");
	close_and_wait(&g, 2, 3);
	st_expect_none(g.fd[0]);
	CHECK_EQ(st_events(g.fd[0]) & IN, 0);
	CHECK_EQ(in_queue(g.fd[0]), 0);
	/* nor before a message */
	st_say(g.fd[1], "two");
	st_wait_events(g.fd[0], POLLIN);
	CHECK_EQ(in_queue(g.fd[0]), 3);
	st_expect(g.fd[0], "two");
	st_expect(g.fd[1], "two");
}

TEST(wanted_at_any_time)
{
	struct st_config c = { .members = 5, .nodes = 5 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_say(g.fd[0], "one");
	st_expect(g.fd[0], "one");
	/* from now on */
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	st_expect_none(g.fd[0]);
	close_and_wait(&g, 4, 5);
	CHECK_EQ(st_expect_view(g.fd[0], 2)->left, 1);
	/* until now */
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, 0));
	close_and_wait(&g, 3, 4);
	st_expect_none(g.fd[0]);
	st_say(g.fd[0], "two");
	st_expect(g.fd[0], "two");
	/* and again */
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	close_and_wait(&g, 2, 3);
	CHECK_EQ(st_expect_view(g.fd[0], 4)->members, 2);
	/* what is not read is not wanted either */
	close_and_wait(&g, 1, 2);
	st_wait_events(g.fd[0], POLLIN);
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, 0));
	st_expect_none(g.fd[0]);
	st_say(g.fd[0], "three");
	st_expect(g.fd[0], "three");
}

static void want_it(pid_t sleeper, void *arg)
{
	struct st_group *g = arg;

	(void)sleeper;
	CHECK_OK(st_option(g->fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	close(g->fd[1]);
}

TEST(wanted_while_one_reads)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &c);
	st_say(g.fd[1], "x");
	st_expect(g.fd[0], "x");
	thread = st_in_call(want_it, &g);
	CHECK_EQ(st_expect_view(g.fd[0], 2)->members, 1);
	pthread_join(thread, NULL);
}

/* Events are in their place among messages, the same at all. */
TEST(place_among_messages)
{
	struct st_config c = { .members = 3, .nodes = 3, .events = SPINDLE_WANT_VIEW,
			       .recvinfo = true };
	struct st_group g = { 0 };
	uint64_t before[2], seq[2];
	unsigned int i;

	st_open(&g, &c);
	st_linger(g.fd[2], ST_SOON);
	st_say(g.fd[0], "first");
	st_say(g.fd[2], "the last of two");
	close_and_wait(&g, 2, 3);
	st_say(g.fd[1], "of the next view");
	for (i = 0; i < 2; i++) {
		unsigned int k;

		CHECK_EQ(st_expect_view(g.fd[i], 1)->seq, ~0ULL);
		for (k = 0; k < 2; k++) {
			CHECK_OK(st_recv(g.fd[i], &m, 0));
			CHECK_EQ(m.info.view, 1);
			CHECK_EQ(m.info.rank, m.from.ss_rank);
			CHECK_INTACT(!k || m.info.seq > before[i]);
			before[i] = m.info.seq;
		}
		seq[i] = st_expect_view(g.fd[i], 2)->seq;
		CHECK_INTACT(seq[i] >= before[i] && seq[i] != ~0ULL);
		CHECK_OK(st_recv(g.fd[i], &m, 0));
		CHECK_EQ(m.len, 16);
		CHECK_EQ(m.info.view, 2);
		CHECK_EQ(m.info.rank, 1);
		CHECK_INTACT(m.info.seq > seq[i]);
		CHECK_EQ(st_info(g.fd[i]).received, 3);
	}
	CHECK_SAME(before[0], before[1]);
	CHECK_SAME(seq[0], seq[1]);
}

/* The last member's event, and its stream, with nobody else. */
static void cut_short(int fd, unsigned int entries)
{
	size_t size = event_size(entries);
	union event ev;
	struct iovec iov = { &ev, 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK_EQ(in_queue(fd), size);
	CHECK_EQ(recvmsg(fd, &msg, MSG_PEEK), 8);
	CHECK_EQ(msg.msg_flags & (MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT),
		 MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT);
	CHECK_EQ(ev.e.type, SPINDLE_EVENT_VIEW);
	CHECK_EQ(ev.e.number, 1);
	/* its whole length, as of any message */
	CHECK_EQ(recvmsg(fd, &msg, MSG_PEEK | MSG_TRUNC), size);
	iov.iov_len = 0;
	CHECK_EQ(recvmsg(fd, &msg, MSG_PEEK), 0);
	CHECK_EQ(msg.msg_flags & (MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT),
		 MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT);
	iov.iov_len = size;
	CHECK_EQ(recvmsg(fd, &msg, MSG_PEEK), size);
	CHECK_EQ(msg.msg_flags & (MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT),
		 MSG_EOR | MSG_SPINDLE_EVENT);
	/* what cannot be written stays */
	CHECK_ERR(recv(fd, (void *)8, size, 0), EFAULT);
	CHECK_EQ(in_queue(fd), size);
	/* the rest of what is cut is gone */
	iov.iov_len = sizeof(ev.e) + 1;
	CHECK_EQ(recvmsg(fd, &msg, 0), iov.iov_len);
	CHECK_EQ(msg.msg_flags & (MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT),
		 MSG_TRUNC | MSG_EOR | MSG_SPINDLE_EVENT);
	CHECK_EQ(ev.e.members, entries);
	CHECK_EQ(in_queue(fd), 0);
	st_expect_none(fd);
	CHECK_EQ(st_info(fd).received, 0);
}

TEST(peek_trunc_and_size)
{
	struct st_config c = { .members = 3, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_wait_events(g.fd[0], POLLIN);
	cut_short(g.fd[0], 3);
}

TEST(peek_trunc_and_size_when_detached)
{
	struct st_config c = { .members = 3, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	struct st_group g = { 0 };

	st_open_but(&g, &c, 1);
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	CHECK_OK(join(&g, st_fresh(&c, 2)));
	st_wait_events(g.fd[0], POLLIN);
	cut_short(g.fd[0], 3);
}

TEST(read_and_readv)
{
	struct st_config c = { .members = 2, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	struct iovec iov[2] = { { &m.event, 20 }, { m.data + 20, sizeof(m.data) - 20 } };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_EQ(CHECK_OK(read(g.fd[0], &m.event, sizeof(m.data))), event_size(2));
	CHECK_EQ(m.event.members, 2);
	memset(&m, 0, sizeof(m));
	CHECK_EQ(CHECK_OK(readv(g.fd[1], iov, 2)), event_size(2));
	CHECK_EQ(m.event.members, 2);
	CHECK_EQ(m.event.member[1].flags, SPINDLE_EM_JOINED | SPINDLE_EM_SELF);
}

TEST(many_at_once)
{
	struct st_config c = { .members = 3, .nodes = 3, .events = SPINDLE_WANT_VIEW };
	static union { union event ev; char text[64]; } buf[8];
	struct mmsghdr msgs[8] = { 0 };
	struct iovec iov[8];
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	for (i = 0; i < 8; i++) {
		iov[i] = (struct iovec){ &buf[i], sizeof(buf[i]) };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	st_say(g.fd[0], "one");
	st_expect_view(g.fd[1], 1);
	st_expect(g.fd[1], "one");
	close_and_wait(&g, 2, 3);
	st_say(g.fd[0], "two");
	st_expect_view(g.fd[1], 2);
	st_expect(g.fd[1], "two");
	/* as soon as there is one, it takes what there is */
	for (i = 0; i < 4;)
		i += CHECK_OK(recvmmsg(g.fd[0], msgs + i, 8 - i, MSG_WAITFORONE, NULL));
	CHECK_EQ(i, 4);
	for (i = 0; i < 4; i++)
		CHECK_EQ(msgs[i].msg_hdr.msg_flags & (MSG_EOR | MSG_SPINDLE_EVENT),
			 MSG_EOR | (i % 2 ? 0 : MSG_SPINDLE_EVENT));
	CHECK_EQ(buf[0].ev.e.view, 1);
	CHECK_EQ(buf[2].ev.e.view, 2);
	CHECK_SAME(msgs[3].msg_len, 3);
	CHECK_INTACT(!memcmp(buf[3].text, "two", 3));
}

/* Views are in the queue of a detached member where they belong. */
TEST(in_the_queue_of_a_detached_member)
{
	struct st_config c = { .members = 4, .nodes = 4, .recvinfo = true };
	struct st_group g = { 0 };
	const struct spindle_event *e;
	unsigned int i;
	int n;

	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	for (i = 3; i > 0; i--) {
		st_linger(g.fd[i], ST_SOON);
		st_say(g.fd[i], "mine");
		close_and_wait(&g, i, i + 1);
	}
	st_say(g.fd[0], "alone");
	/* all are in the queue */
	WAIT_UNTIL(!ioctl(g.fd[0], SIOCOUTQ, &n) && !n, ST_SOON);
	for (i = 3; i > 0; i--) {
		st_wait_events(g.fd[0], POLLIN);
		CHECK_EQ(in_queue(g.fd[0]), 4);
		CHECK_OK(st_recv(g.fd[0], &m, 0));
		CHECK_EQ(m.info.view, 4 - i);
		CHECK_EQ(m.from.ss_rank, i);
		CHECK_EQ(in_queue(g.fd[0]), event_size(i + 1));
		e = st_expect_view(g.fd[0], 5 - i);
		CHECK_EQ(e->members, i);
		CHECK_EQ(e->member[i].rank, i);
		CHECK_EQ(e->member[i].reason, SPINDLE_REASON_EXITED);
	}
	st_expect(g.fd[0], "alone");
	st_expect_none(g.fd[0]);
}

/* What nobody wanted when it came is not in the queue. */
TEST(not_in_the_queue_of_a_detached_member)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	int n;

	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	CHECK_OK(st_option(g.fd[1], SPINDLE_DETACHED, 1));
	close_and_wait(&g, 2, 3);
	st_say(g.fd[0], "in the queue");
	WAIT_UNTIL(!ioctl(g.fd[0], SIOCOUTQ, &n) && !n, ST_SOON);
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	st_expect(g.fd[0], "in the queue");
	st_expect_none(g.fd[0]);
	close_and_wait(&g, 1, 2);
	CHECK_EQ(st_expect_view(g.fd[0], 3)->members, 1);
}

/* A queue that is full holds views as it holds messages. */
TEST(behind_a_full_queue)
{
	struct st_config c = { .members = 3, .nodes = 3, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	int bytes = 4096;
	unsigned int n = 0, i;

	st_open(&g, &c);
	CHECK_OK(setsockopt(g.fd[0], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
	CHECK_OK(st_option(g.fd[0], SPINDLE_DETACHED, 1));
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	CHECK_OK(shutdown(g.fd[1], SHUT_RD));
	st_linger(g.fd[2], ST_SOON);
	CHECK_OK(shutdown(g.fd[2], SHUT_RD));
	for (; st_events(g.fd[2]) & POLLOUT; n++) {
		CHECK_EQ(send(g.fd[2], m.data, 1000, MSG_DONTWAIT | MSG_NOSIGNAL), 1000);
		/* room that there will be without a reader is there then */
		WAIT_UNTIL(st_rests(&g), ST_SOON);
	}
	CHECK(n > 8);
	close_and_wait(&g, 2, 3);
	st_say(g.fd[1], "after");
	for (i = 0; i < n; i++)
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1000);
	CHECK_EQ(st_expect_view(g.fd[0], 2)->members, 2);
	st_expect(g.fd[0], "after");
}

/* Mapped deliveries */

static int get_event(int fd, unsigned int type, unsigned int number, union event *ev)
{
	socklen_t len = sizeof(*ev);
	int ret;

	memset(ev, 0, sizeof(*ev));
	ev->e.type = type;
	ev->e.number = number;
	ret = getsockopt(fd, SOL_SPINDLE, SPINDLE_EVENT, ev, &len);
	if (!ret)
		CHECK_EQ(len, event_size(ev->e.members + ev->e.left));
	return ret;
}

/* The next delivery is an event: its number, and it is not yet released. */
static uint32_t ring_event(struct ring *ring)
{
	const volatile struct spindle_delivery *d;

	for (;; ring->next++) {
		WAIT_UNTIL(ring->next !=
			   __atomic_load_n(&ring->status->published, __ATOMIC_ACQUIRE), ST_SOON);
		d = &ring->deliveries[ring->next & (ring->r.deliveries - 1)];
		ring->user->rx_seen = ring->next + 1;
		if (d->flags != SPINDLE_DELIVERY_FIN)
			break;
	}
	CHECK_EQ(d->flags, SPINDLE_DELIVERY_EVENT);
	CHECK_EQ(d->lane, SPINDLE_EVENT_VIEW);
	return d->pos;
}

TEST(mapped_events)
{
	struct st_config c = { .members = 4, .nodes = 3 };
	struct st_group g = { 0 };
	static union event ev;
	struct ring ring;
	uint64_t seq;

	st_open(&g, &c);
	/* what was published before is passed over, whatever it was */
	st_say(g.fd[0], "x");
	st_expect(g.fd[0], "x");
	ring_map(&ring, g.fd[0], SPINDLE_MAP_RX);
	close_and_wait(&g, 3, 4);
	CHECK_EQ(ring_event(&ring), 2);
	/* they are there without the option, and with it */
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	CHECK_OK(get_event(g.fd[0], SPINDLE_EVENT_VIEW, 2, &ev));
	CHECK_EQ(ev.e.view, 2);
	CHECK_EQ(ev.e.number, 2);
	CHECK_EQ(ev.e.members, 3);
	CHECK_EQ(ev.e.left, 1);
	CHECK_EQ(ev.e.member[0].flags, SPINDLE_EM_SELF);
	CHECK_EQ(ev.e.member[1].flags, 0);
	CHECK_EQ(ev.e.member[3].rank, 3);
	CHECK_EQ(ev.e.member[3].reason, SPINDLE_REASON_EXITED);
	seq = ev.e.seq;
	ring_release(&ring);
	close_and_wait(&g, 1, 3);
	CHECK_EQ(ring_event(&ring), 3);
	CHECK_OK(get_event(g.fd[0], SPINDLE_EVENT_VIEW, 3, &ev));
	CHECK_EQ(ev.e.view, 3);
	CHECK_EQ(ev.e.member[2].rank, 1);
	CHECK_INTACT(ev.e.seq >= seq);
	ring_release(&ring);
	st_say(g.fd[2], "rank 1 now");
	ring_expect(&ring, "rank 1 now", 1);
}

TEST(mapped_event_errors)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	static union event ev;
	struct ring ring;
	socklen_t len;
	unsigned int i;

	CHECK_ERR(get_event(st_bound(0), SPINDLE_EVENT_VIEW, 1, &ev), ENOTCONN);
	st_open_but(&g, &c, 1);
	CHECK_ERR(get_event(g.fd[0], SPINDLE_EVENT_VIEW, 1, &ev), ENOTCONN);
	close(g.fd[0]);
	memset(&g, 0, sizeof(g));
	st_open(&g, &c);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_ALL);
	close_and_wait(&g, 1, 2);
	CHECK_ERR(get_event(g.fd[0], SPINDLE_EVENT_VIEW, 3, &ev), ENOENT);
	CHECK_ERR(get_event(g.fd[0], SPINDLE_EVENT_VIEW, ~0U, &ev), ENOENT);
	CHECK_ERR(get_event(g.fd[0], SPINDLE_EVENT_VIEW + 1, 2, &ev), ENOENT);
	CHECK_ERR(get_event(g.fd[0], 0, 2, &ev), ENOENT);
	memset(&ev, 0, sizeof(ev));
	ev.e.type = SPINDLE_EVENT_VIEW;
	ev.e.number = 2;
	len = sizeof(ev.e) - 1;
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, &ev, &len), EINVAL);
	len = 0;
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, &ev, &len), EINVAL);
	len = event_size(2);
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, (void *)8, &len), EFAULT);
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, &ev, (void *)8), EFAULT);
	/* how much it takes is told */
	len = sizeof(ev.e);
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, &ev, &len), ERANGE);
	CHECK_EQ(len, event_size(2));
	len = event_size(2) - 1;
	CHECK_ERR(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, &ev, &len), ERANGE);
	CHECK_EQ(len, event_size(2));
	CHECK_OK(getsockopt(g.fd[0], SOL_SPINDLE, SPINDLE_EVENT, &ev, &len));
	CHECK_EQ(ev.e.members, 1);
	CHECK_EQ(ev.e.left, 1);
	/* what everybody on the node has released is there no more */
	for (i = 0; i < 3; i++) {
		ring_say(&ring, "on and on");
		ring_expect(&ring, "on and on", 0);
	}
	WAIT_UNTIL(get_event(g.fd[0], SPINDLE_EVENT_VIEW, 2, &ev), ST_SOON);
	CHECK_EQ(errno, ENOENT);
}

/* Mapped rings, both ways, over many views. */
TEST(mapped_rings_go_on)
{
	struct st_config c = { .members = 6, .nodes = 3, .window = 16384, .depth = 64 };
	struct st_group g = { 0 };
	unsigned int i, k, left;
	struct ring a, b;
	char text[32];

	/* members 4 and 5 stay, on nodes 1 and 2 */
	st_open(&g, &c);
	ring_map(&a, g.fd[4], SPINDLE_MAP_ALL);
	ring_map(&b, g.fd[5], SPINDLE_MAP_ALL);
	CHECK_EQ(a.r.lanes, SPINDLE_MAX_LANES);
	CHECK_EQ(a.r.lane, 4);
	for (left = 6; left >= 2; left--) {
		for (i = 0; i < 150; i++) {
			snprintf(text, sizeof(text), "%u of %u", i, left);
			ring_say(i & 1 ? &a : &b, text);
			ring_expect(&a, text, left - 1 - (i & 1));
			ring_expect(&b, text, left - 1 - (i & 1));
			for (k = 6 - left; k < 4; k++)
				st_expect(g.fd[k], text);
		}
		if (left == 2)
			break;
		close(g.fd[6 - left]);
		for (k = 7 - left; k < 6; k++)
			st_wait_members(g.fd[k], left - 1);
		CHECK_EQ(st_info(g.fd[5]).rank, left - 2);
	}
	CHECK_EQ(a.status->state, SPINDLE_STATE_ACTIVE);
	CHECK_OK(shutdown(a.fd, SHUT_WR));
	CHECK_OK(shutdown(b.fd, SHUT_WR));
	WAIT_UNTIL(a.status->state == SPINDLE_STATE_CLOSED, ST_SOON);
	WAIT_UNTIL(b.status->state == SPINDLE_STATE_CLOSED, ST_SOON);
	CHECK_EQ(a.status->error, 0);
}

/* What is in the lane of one that has gone stays where it is. */
TEST(mapped_messages_of_who_has_gone)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 65536 };
	struct st_group g = { 0 };
	struct ring ring;
	unsigned int i;
	char text[32];

	st_open(&g, &c);
	ring_map(&ring, g.fd[0], SPINDLE_MAP_RX);
	st_linger(g.fd[1], ST_SOON);
	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "number %u", i);
		st_say(g.fd[1], text);
	}
	close_and_wait(&g, 1, 3);
	st_say(g.fd[2], "of the next view");
	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "number %u", i);
		ring_expect(&ring, text, 1);
		st_expect(g.fd[2], text);
	}
	CHECK_EQ(ring_event(&ring), 2);
	ring_release(&ring);
	ring_expect(&ring, "of the next view", 1);
	st_expect(g.fd[2], "of the next view");
}

TEST(mapped_member_leaves)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	uint32_t len, rank;
	struct ring ring;

	st_open(&g, &c);
	ring_map(&ring, g.fd[1], SPINDLE_MAP_ALL);
	ring_say(&ring, "the last");
	WAIT_UNTIL(ring.status->tx_taken == 1, ST_SOON);
	CHECK_OK(st_leave(g.fd[1]));
	st_expect(g.fd[0], "the last");
	st_wait_members(g.fd[0], 1);
	WAIT_UNTIL(ring.status->state == SPINDLE_STATE_CLOSED, ST_SOON);
	CHECK_EQ(ring.status->error, 0);
	ring_expect(&ring, "the last", 1);
	CHECK(!ring_peek(&ring, &len, &rank));
	st_wait_events(ring.fd, POLLRDHUP);
}

/* Leaving */

TEST(leave_where_there_is_nothing_to_leave)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	int fd = st_bound(0), zero = 0;

	CHECK_ERR(st_leave(st_socket(0)), ENOTCONN);
	CHECK_ERR(st_leave(fd), ENOTCONN);
	CHECK_ERR(st_option(fd, SPINDLE_GROUP_LEAVE, 1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &zero, 3), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, (void *)8, 4), EFAULT);
	/* before the first view */
	st_open_but(&g, &c, 1);
	CHECK_ERR(st_leave(g.fd[0]), ENOTCONN);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_FORMING);
	close(g.fd[0]);
	/* after the end */
	memset(&g, 0, sizeof(g));
	st_open(&g, &c);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	st_expect_end(g.fd[0]);
	CHECK_ERR(st_leave(g.fd[0]), ENOTCONN);
	/* after failure */
	memset(&g, 0, sizeof(g));
	st_open(&g, &c);
	CHECK_ERR(st_option(g.fd[1], SPINDLE_GROUP_LEAVE, 1), EINVAL);
	st_fail_second(&g, g.fd[1]);
	CHECK_ERR(st_leave(g.fd[1]), ENOTCONN);
	CHECK_EQ(st_info(g.fd[1]).error, ENETDOWN);
}

TEST(leave)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	struct sockaddr_spindle own;
	socklen_t len = sizeof(own);
	int ret;

	st_open(&g, &c);
	st_say(g.fd[1], "the last");
	CHECK_OK(st_leave(g.fd[1]));
	CHECK_ERR(send(g.fd[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_ERR(send(g.fd[1], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT), EPIPE);
	/* whether it has gone already or not */
	ret = st_leave(g.fd[1]);
	CHECK_EQ(ret, -1);
	CHECK(errno == EALREADY || errno == ENOTCONN);
	st_wait_members(g.fd[0], 2);
	st_wait_members(g.fd[2], 2);
	st_say(g.fd[0], "not for one");
	st_expect(g.fd[1], "the last");
	st_expect_end(g.fd[1]);
	st_expect_end(g.fd[1]);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_CLOSED);
	CHECK_EQ(st_info(g.fd[1]).error, 0);
	CHECK_EQ(st_info(g.fd[1]).rank, ~0U);
	CHECK_EQ(st_info(g.fd[1]).sent, 1);
	CHECK_EQ(st_info(g.fd[1]).received, 1);
	CHECK(!strcmp(st_info(g.fd[1]).name, g.name));
	CHECK_EQ(st_so_error(g.fd[1]), 0);
	CHECK_EQ(st_events(g.fd[1]) & (POLLIN | POLLRDHUP | POLLHUP | POLLERR),
		 POLLIN | POLLRDHUP | POLLHUP);
	CHECK_EQ(in_queue(g.fd[1]), 0);
	CHECK_ERR(send(g.fd[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_ERR(st_leave(g.fd[1]), ENOTCONN);
	CHECK_OK(getsockname(g.fd[1], (struct sockaddr *)&own, &len));
	st_expect(g.fd[0], "the last");
	st_expect(g.fd[0], "not for one");
	st_expect(g.fd[2], "the last");
	st_expect(g.fd[2], "not for one");
}

TEST(leave_of_the_only_member)
{
	int fd = st_alone();

	st_say(fd, "to myself");
	CHECK_OK(st_leave(fd));
	st_expect(fd, "to myself");
	st_expect_end(fd);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_CLOSED);
}

TEST(leave_of_a_receiver)
{
	struct st_config c = { .members = 2, .nodes = 2, .receivers = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_say(g.fd[0], "before");
	st_expect(g.fd[1], "before");
	CHECK_OK(st_leave(g.fd[1]));
	st_expect_end(g.fd[1]);
	CHECK_EQ(send(g.fd[1], "x", 1, MSG_NOSIGNAL), -1);
	CHECK(errno == EPIPE || errno == EACCES);
	st_wait_members(g.fd[0], 1);
}

/* Its event is not in its own stream: it is in that view no more. */
TEST(who_leaves_reads_no_event_of_that)
{
	struct st_config c = { .members = 2, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_OK(st_leave(g.fd[1]));
	st_expect_view(g.fd[1], 1);
	st_expect_end(g.fd[1]);
	st_expect_view(g.fd[0], 1);
	CHECK_EQ(st_expect_view(g.fd[0], 2)->member[1].reason, SPINDLE_REASON_LEFT);
}

TEST(leave_again_while_leaving)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	unsigned int round, already = 0;

	for (round = 0; round < 10; round++) {
		struct st_group g = { 0 };
		int fd;

		st_open(&g, &c);
		fd = g.fd[round % 3];
		CHECK_OK(st_leave(fd));
		while (st_leave(fd), errno == EALREADY)
			already++;
		CHECK_EQ(errno, ENOTCONN);
		st_expect_end(fd);
		for (fd = 0; fd < 3; fd++)
			close(g.fd[fd]);
	}
	printf("# %u times in time\n", already);
}

/* Who leaves and closes at once has left. */
TEST(leave_and_close)
{
	struct st_config c = { .members = 3, .nodes = 3, .events = SPINDLE_WANT_VIEW };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_linger(g.fd[1], ST_SOON);
	st_say(g.fd[1], "the last");
	CHECK_OK(st_leave(g.fd[1]));
	close(g.fd[1]);
	st_expect_view(g.fd[0], 1);
	st_expect(g.fd[0], "the last");
	CHECK_EQ(st_expect_view(g.fd[0], 2)->member[2].reason, SPINDLE_REASON_LEFT);
}

TEST(leave_after_shutdown)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_say(g.fd[1], "the last");
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	CHECK_OK(st_leave(g.fd[1]));
	st_expect(g.fd[1], "the last");
	st_expect_end(g.fd[1]);
	st_expect(g.fd[0], "the last");
	st_wait_members(g.fd[0], 1);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_ACTIVE);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	st_expect_end(g.fd[0]);
}

TEST(shutdown_after_leaving)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_OK(st_leave(g.fd[1]));
	shutdown(g.fd[1], SHUT_WR);
	st_expect_end(g.fd[1]);
	shutdown(g.fd[1], SHUT_RDWR);
	CHECK_EQ(recv(g.fd[1], m.data, 1, 0), 0);
	st_wait_members(g.fd[0], 1);
	st_say(g.fd[0], "goes on");
	st_expect(g.fd[0], "goes on");
}

/* Its lane stays as long as its socket, since calls look there. */
TEST(calls_after_leaving)
{
	/* another member stays on its node */
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct sockaddr_spindle view[4];
	struct st_group g = { 0 };
	unsigned int i;
	socklen_t len;
	int bytes;

	st_open(&g, &c);
	for (i = 0; i < 5; i++)
		st_say(g.fd[2], "something");
	CHECK_OK(st_leave(g.fd[2]));
	st_wait_members(g.fd[0], 2);
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
		CHECK_OK(ioctl(g.fd[2], SIOCOUTQ, &bytes));
		CHECK_EQ(in_queue(g.fd[2]), 0);
		len = sizeof(view);
		getsockopt(g.fd[2], SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len);
		CHECK_EQ(st_info(g.fd[2]).sent, 5);
		CHECK_ERR(send(g.fd[2], "x", 1, MSG_NOSIGNAL), EPIPE);
		CHECK(st_events(g.fd[2]) & POLLHUP);
	}
}

static void leave_it(pid_t sleeper, void *fd)
{
	(void)sleeper;
	CHECK_OK(st_leave(*(int *)fd));
}

static void close_it(pid_t sleeper, void *fd)
{
	(void)sleeper;
	CHECK_OK(close(*(int *)fd));
}

/* Two members: the second does not read, so that the first has no room. */
static unsigned int open_narrow(struct st_group *g, unsigned int nodes)
{
	struct st_config c = { .members = 2, .nodes = nodes, .window = 4096, .max_msg = 1024,
			       .depth = 16 };
	unsigned int n = 0;

	st_open(g, &c);
	while (send(g->fd[0], m.data, 1024, MSG_DONTWAIT | MSG_NOSIGNAL) == 1024)
		n++;
	CHECK_EQ(errno, EAGAIN);
	return n;
}

TEST(leave_while_blocked_in_send)
{
	struct st_group g = { 0 };
	unsigned int n = open_narrow(&g, 2), i;
	pthread_t thread = st_in_call(leave_it, &g.fd[0]);

	CHECK_ERR(send(g.fd[0], m.data, 1024, MSG_NOSIGNAL), EPIPE);
	pthread_join(thread, NULL);
	/* what was taken arrives, and what was not does not */
	for (i = 0; i < n; i++)
		CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 1024);
	st_wait_members(g.fd[1], 1);
	st_expect_none(g.fd[1]);
	for (i = 0; i < n; i++)
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
	st_expect_end(g.fd[0]);
}

TEST(leave_while_blocked_in_recv)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &c);
	thread = st_in_call(leave_it, &g.fd[1]);
	CHECK_EQ(recv(g.fd[1], m.data, 1, 0), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_CLOSED);
}

TEST(leave_while_polling)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct pollfd pfd = { .events = POLLIN };
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &c);
	pfd.fd = g.fd[1];
	thread = st_in_call(leave_it, &g.fd[1]);
	CHECK_EQ(poll(&pfd, 1, st_bound_ms(ST_SOON)), 1);
	CHECK_EQ(pfd.revents & (POLLIN | POLLHUP), POLLIN | POLLHUP);
	pthread_join(thread, NULL);
	st_expect_end(g.fd[1]);
}

/* Who waits for what */

static void wakes_a_blocked_sender(unsigned int nodes, void (*go)(pid_t sleeper, void *fd))
{
	struct st_group g = { 0 };
	unsigned int n = open_narrow(&g, nodes), i;
	pthread_t thread;

	for (i = 0; i < n; i++)
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
	thread = st_in_call(go, &g.fd[1]);
	CHECK_EQ(CHECK_OK(send(g.fd[0], m.data, 1024, MSG_NOSIGNAL)), 1024);
	pthread_join(thread, NULL);
	st_wait_members(g.fd[0], 1);
	CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
}

TEST(close_wakes_who_waits_for_room)
{
	wakes_a_blocked_sender(2, close_it);
}

TEST(close_on_the_same_node_wakes_who_waits_for_room)
{
	wakes_a_blocked_sender(1, close_it);
}

static void lose_it(pid_t sleeper, void *fd)
{
	(void)sleeper;
	(void)fd;
	st_break(0, 1);
}

TEST(loss_wakes_who_waits_for_room)
{
	wakes_a_blocked_sender(2, lose_it);
}

TEST(close_wakes_who_polls_for_room)
{
	struct st_group g = { 0 };
	unsigned int n = open_narrow(&g, 2);
	struct pollfd pfd = { .fd = g.fd[0], .events = POLLOUT };
	pthread_t thread;

	while (n--)
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1024);
	CHECK_EQ(st_events(g.fd[0]) & OUT, 0);
	thread = st_in_call(close_it, &g.fd[1]);
	CHECK_EQ(poll(&pfd, 1, st_bound_ms(ST_SOON)), 1);
	CHECK_EQ(pfd.revents, POLLOUT);
	pthread_join(thread, NULL);
	CHECK_EQ(send(g.fd[0], m.data, 1024, MSG_NOSIGNAL | MSG_DONTWAIT), 1024);
}

TEST(event_wakes_a_blocked_reader)
{
	struct st_config c = { .members = 2, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &c);
	st_expect_view(g.fd[0], 1);
	thread = st_in_call(close_it, &g.fd[1]);
	st_expect_view(g.fd[0], 2);
	pthread_join(thread, NULL);
}

/* It sleeps on when it does not want to know, until there is a message. */
static void close_and_say(pid_t sleeper, void *arg)
{
	struct st_group *g = arg;

	close_and_wait(g, 2, 3);
	WAIT_UNTIL(st_sleeps(sleeper), ST_SOON);
	st_say(g->fd[1], "awake");
}

TEST(no_event_for_a_blocked_reader)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &c);
	thread = st_in_call(close_and_say, &g);
	st_expect(g.fd[0], "awake");
	pthread_join(thread, NULL);
}

TEST(event_wakes_who_polls)
{
	struct st_config c = { .members = 2, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	struct pollfd pfd = { .events = POLLIN };
	struct st_group g = { 0 };
	pthread_t thread;

	st_open(&g, &c);
	st_expect_view(g.fd[0], 1);
	CHECK_EQ(st_events(g.fd[0]) & IN, 0);
	pfd.fd = g.fd[0];
	thread = st_in_call(close_it, &g.fd[1]);
	CHECK_EQ(poll(&pfd, 1, st_bound_ms(ST_SOON)), 1);
	CHECK_EQ(pfd.revents, POLLIN);
	pthread_join(thread, NULL);
	st_expect_view(g.fd[0], 2);
	CHECK_EQ(st_events(g.fd[0]) & IN, 0);
}

TEST(event_is_an_edge)
{
	struct st_config c = { .members = 3, .nodes = 3, .events = SPINDLE_WANT_VIEW };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = CHECK_OK(epoll_create1(EPOLL_CLOEXEC)), i;
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_expect_view(g.fd[0], 1);
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, g.fd[0], &ev));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	for (i = 2; i > 0; i--) {
		close(g.fd[i]);
		/* edges of what else has happened come, too */
		do
			CHECK_EQ(epoll_wait(ep, &ev, 1, st_bound_ms(ST_SOON)), 1);
		while (!(st_events(g.fd[0]) & POLLIN));
		CHECK(ev.events & EPOLLIN);
		CHECK_EQ(st_expect_view(g.fd[0], 4 - i)->members, i);
	}
}

TEST(event_is_a_signal)
{
	struct st_config c = { .members = 2, .nodes = 2, .events = SPINDLE_WANT_VIEW };
	double bound = st_bound_s(ST_SOON);
	struct timespec left = { bound, (bound - (time_t)bound) * 1e9 };
	struct st_group g = { 0 };
	siginfo_t info;
	sigset_t set;

	st_open(&g, &c);
	st_expect_view(g.fd[0], 1);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(fcntl(g.fd[0], F_SETOWN, getpid()));
	CHECK_OK(fcntl(g.fd[0], F_SETSIG, SIGRTMIN));
	CHECK_OK(fcntl(g.fd[0], F_SETFL, O_ASYNC | O_NONBLOCK));
	close(g.fd[1]);
	do
		CHECK_EQ(sigtimedwait(&set, &info, &left), SIGRTMIN);
	while (info.si_code != POLL_IN);
	st_wait_events(g.fd[0], POLLIN);
	st_expect_view(g.fd[0], 2);
}

/* A view change in the middle of a sender's life costs it nothing but time. */
static void *say_numbers(void *arg)
{
	const struct st_group *g = arg;
	uint32_t k;

	for (k = 0; k < 1500; k++)
		CHECK_EQ(CHECK_OK(send(g->fd[0], &k, sizeof(k), MSG_NOSIGNAL)), sizeof(k));
	CHECK_OK(shutdown(g->fd[0], SHUT_WR));
	return NULL;
}

TEST(a_sender_that_blocks_over_views)
{
	struct st_config c = { .members = 5, .nodes = 5, .window = 4096, .max_msg = 1024,
			       .depth = 16, .receivers = 0x1e };
	struct st_group g = { 0 };
	pthread_t thread;
	uint32_t k, n, i;

	st_open(&g, &c);
	CHECK_OK(shutdown(g.fd[0], SHUT_RD));
	CHECK_EQ(pthread_create(&thread, NULL, say_numbers, &g), 0);
	for (k = 0; k < 1500; k++) {
		for (i = 1; i < 5 - k / 400; i++) {
			CHECK_SAME(CHECK_OK(recv(g.fd[i], &n, sizeof(n), 0)), sizeof(n));
			CHECK_SAME(n, k);
		}
		if (k % 400 == 399)
			close(g.fd[5 - (k + 1) / 400]);
	}
	st_expect_end(g.fd[1]);
	pthread_join(thread, NULL);
}

/* What a member is told of its group */

static void expect_group_view(int fd, const char *const *addrs, unsigned int n)
{
	struct sockaddr_spindle view[SPINDLE_MAX_MEMBERS];
	socklen_t len = sizeof(view);
	unsigned int i;

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len));
	CHECK_EQ(len, n * sizeof(view[0]));
	for (i = 0; i < n; i++) {
		struct in6_addr want = st_mapped(addrs[i]);

		CHECK_EQ(view[i].ss_rank, i);
		CHECK_EQ(view[i].ss_family, st_family());
		CHECK(!memcmp(&view[i].ss_addr, &want, sizeof(want)));
	}
	len = n * sizeof(view[0]) - 1;
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len), ERANGE);
	CHECK_EQ(len, n * sizeof(view[0]));
}

static uint32_t own_rank(int fd)
{
	struct sockaddr_spindle own;
	socklen_t len = sizeof(own);

	CHECK_OK(getsockname(fd, (struct sockaddr *)&own, &len));
	return own.ss_rank;
}

TEST(info_of_the_current_view)
{
	struct st_config c = { .members = 4, .nodes = 4, .receivers = 2 };
	const char *addrs[4] = { st_addr(0), st_addr(1), st_addr(2), st_addr(3) };
	struct spindle_group_info info;
	struct st_group g = { 0 };
	unsigned int gone;

	st_open(&g, &c);
	expect_group_view(g.fd[3], addrs, 4);
	for (gone = 0; gone < 3; gone++) {
		close(g.fd[gone]);
		st_wait_members(g.fd[3], 3 - gone);
		info = st_info(g.fd[3]);
		CHECK_EQ(info.view, 2 + gone);
		CHECK_EQ(info.rank, 2 - gone);
		CHECK_EQ(own_rank(g.fd[3]), 2 - gone);
		CHECK_EQ(info.senders, gone == 0 ? 2 : 3 - gone);
		CHECK_EQ(info.state, SPINDLE_STATE_ACTIVE);
		CHECK_EQ(info.error, 0);
		CHECK_EQ(info.window, 1048576);
		expect_group_view(g.fd[3], addrs + gone + 1, 3 - gone);
	}
	st_say(g.fd[3], "alone");
	st_expect(g.fd[3], "alone");
	CHECK_EQ(st_info(g.fd[3]).sent, 1);
	CHECK_EQ(st_info(g.fd[3]).received, 1);
}

/* Views of what is read are those of the reader's place, not the group's. */
TEST(ranks_at_the_place_of_reading)
{
	struct st_config c = { .members = 3, .nodes = 3, .recvinfo = true };
	struct st_group g = { 0 };
	uint64_t seq;

	st_open(&g, &c);
	st_say(g.fd[2], "as two");
	st_wait_events(g.fd[1], POLLIN);
	CHECK_OK(st_leave(g.fd[0]));
	st_wait_members(g.fd[1], 2);
	st_wait_members(g.fd[2], 2);
	st_say(g.fd[2], "as one");
	CHECK_OK(st_recv(g.fd[1], &m, 0));
	CHECK_EQ(m.from.ss_rank, 2);
	CHECK_EQ(m.info.rank, 2);
	CHECK_EQ(m.info.view, 1);
	seq = m.info.seq;
	CHECK_OK(st_recv(g.fd[1], &m, 0));
	CHECK_EQ(m.from.ss_rank, 1);
	CHECK_EQ(m.info.rank, 1);
	CHECK_EQ(m.info.view, 2);
	CHECK_INTACT(m.info.seq > seq);
	/* who has left reads what was before it went */
	CHECK_OK(st_recv(g.fd[0], &m, 0));
	CHECK_EQ(m.from.ss_rank, 2);
	st_expect_end(g.fd[0]);
}

/* Those who may not send do not become senders because others have gone. */
TEST(no_new_senders)
{
	struct st_config c = { .members = 3, .nodes = 3, .senders = 1 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_ERR(send(g.fd[1], "x", 1, MSG_NOSIGNAL), EACCES);
	close_and_wait(&g, 0, 3);
	CHECK_EQ(st_info(g.fd[1]).senders, 0);
	CHECK_EQ(st_info(g.fd[1]).rank, 0);
	CHECK_ERR(send(g.fd[1], "x", 1, MSG_NOSIGNAL), EACCES);
	CHECK_EQ(st_info(g.fd[1]).state, SPINDLE_STATE_ACTIVE);
	st_expect_none(g.fd[1]);
}

/* The end of a group whose others have gone is what its senders say. */
TEST(end_of_those_that_are_left)
{
	struct st_config c = { .members = 4, .nodes = 2 };
	struct st_group g = { 0 };
	pid_t pid;
	unsigned int i;

	/* one is killed, and has not shut down */
	st_open_but(&g, &c, 1);
	pid = CHECK_OK(fork());
	if (!pid) {
		for (i = 0; i < 3; i++)
			close(g.fd[i]);
		CHECK_OK(join(&g, st_bound(1)));
		pause();
	}
	for (i = 0; i < 3; i++)
		st_wait_state(g.fd[i], SPINDLE_STATE_ACTIVE);
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	kill(pid, SIGKILL);
	CHECK_OK(waitpid(pid, NULL, 0));
	for (i = 0; i < 3; i++) {
		st_wait_members(g.fd[i], 3);
		st_expect_none(g.fd[i]);
	}
	st_say(g.fd[1], "the last word");
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	CHECK_OK(shutdown(g.fd[2], SHUT_WR));
	for (i = 0; i < 3; i++) {
		st_expect(g.fd[i], "the last word");
		st_expect_end(g.fd[i]);
		CHECK_EQ(st_info(g.fd[i]).state, SPINDLE_STATE_CLOSED);
	}
}

/* The stream of a group that is closed has ended, also when a node is lost then. */
TEST(no_event_behind_the_end)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	CHECK_OK(st_option(g.fd[0], SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	st_expect_view(g.fd[0], 1);
	for (i = 0; i < 3; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	for (i = 0; i < 3; i++)
		st_expect_end(g.fd[i]);
	st_break(g.first + 2, g.first);
	st_break(g.first + 2, g.first + 1);
	st_wait_members(g.fd[0], 2);
	st_expect_end(g.fd[0]);
	CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_CLOSED);
	st_expect_end(g.fd[2]);
}

/* sysfs, and the log */

static const char *file_of(unsigned int node, const struct st_group *g, const char *file)
{
	static char got[4096];
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/%s", st_addr(node), g->name, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		FAIL("%s: %s", path, st_err(errno));
	n = CHECK_OK(read(fd, got, sizeof(got) - 1));
	got[n] = 0;
	close(fd);
	return got;
}

static void expect_file(unsigned int node, const struct st_group *g, const char *file,
			const char *want)
{
	const char *got = file_of(node, g, file);

	if (strcmp(got, want))
		FAIL("%s on node %u is \"%s\", not \"%s\"", file, node, got, want);
}

TEST(sysfs_over_views)
{
	struct st_config c = { .members = 5, .nodes = 4, .receivers = 2 };
	struct st_group g = { 0 };
	char want[256];

	/* members 0 and 4 are on node 0 */
	st_open(&g, &c);
	expect_file(2, &g, "view", "1\n");
	expect_file(2, &g, "counters/view_changes", "0\n");
	expect_file(2, &g, "counters/suspicions", "0\n");
	close(g.fd[0]);
	st_wait_members(g.fd[2], 4);
	expect_file(2, &g, "state", "active\n");
	expect_file(2, &g, "error", "0\n");
	expect_file(2, &g, "view", "2\n");
	expect_file(2, &g, "members", "4\n");
	expect_file(2, &g, "senders", "3\n");
	snprintf(want, sizeof(want), "%s\n%s\n%s\n%s\n", st_addr(1), st_addr(2), st_addr(3),
		 st_addr(0));
	expect_file(2, &g, "addresses", want);
	expect_file(2, &g, "counters/suspicions", "0\n");
	WAIT_UNTIL(atoi(file_of(2, &g, "counters/view_changes")) == 1, ST_SOON);
	/* a node that is lost is suspected */
	st_break(2, 3);
	st_wait_members(g.fd[2], 3);
	expect_file(2, &g, "view", "3\n");
	expect_file(2, &g, "members", "3\n");
	snprintf(want, sizeof(want), "%s\n%s\n%s\n", st_addr(1), st_addr(2), st_addr(0));
	expect_file(2, &g, "addresses", want);
	WAIT_UNTIL(atoi(file_of(2, &g, "counters/view_changes")) == 2, ST_SOON);
	WAIT_UNTIL(atoi(file_of(2, &g, "counters/suspicions")) >= 1, ST_SOON);
	st_wait_state(g.fd[3], SPINDLE_STATE_FAILED);
	expect_file(3, &g, "state", "failed\n");
	/* nothing is there any more of a node's group that nobody is in */
	close(g.fd[4]);
	st_wait_members(g.fd[2], 2);
	st_wait_gone(0, &g);
	expect_file(2, &g, "members", "2\n");
}

/* What the kernel's log says behind the place where it is: lines with all of these. */
static unsigned int log_lines(int fd, const char *a, const char *b)
{
	unsigned int n = 0;
	char line[2048];
	ssize_t len;

	while ((len = read(fd, line, sizeof(line) - 1)) > 0 || (len < 0 && errno == EPIPE)) {
		line[len > 0 ? len : 0] = 0;
		n += strstr(line, a) && strstr(line, b);
	}
	return n;
}

/* One line of each node, or fewer when there were many just before. */
TEST(views_in_the_log)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	int fd = CHECK_OK(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	double end = st_now() + st_bound_s(ST_SOON);
	unsigned int n = 0, i;

	do {
		struct st_group g = { 0 };

		if (st_now() > end)
			FAIL("%u lines in %g s", n, st_bound_s(ST_SOON));
		CHECK_OK(lseek(fd, 0, SEEK_END));
		st_open(&g, &c);
		close_and_wait(&g, 2, 3);
		n = log_lines(fd, g.name, "view 2 ");
		CHECK(n <= 2);
		for (i = 0; i < 2; i++)
			close(g.fd[i]);
		st_pause_us(500000);
	} while (n < 2);
	close(fd);
}

/* debugfs */

TEST(break_takes_addresses_of_peers)
{
	static const char *const bad[] = { " ", "somewhere", "10.0.0" };
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	char path[256];
	struct stat st;
	unsigned int i;

	st_open(&g, &c);
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/break", st_addr(0));
	CHECK_OK(stat(path, &st));
	CHECK_EQ(st.st_mode & 07777, 0200);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!st_write_file(path, bad[i]));
	/* nobody is connected with that one */
	CHECK(!st_write_file(path, st_addr(9)));
	st_say(g.fd[0], "unharmed");
	st_expect(g.fd[1], "unharmed");
	CHECK_EQ(st_info(g.fd[1]).view, 1);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
