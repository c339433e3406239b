// SPDX-License-Identifier: GPL-2.0
/*
 * Slow readers are named: the file "slow" of a group, its events, and uevents.
 */
#include "spindle_selftest.h"

#include <limits.h>
#include <linux/netlink.h>

#define SLOW_MS	"/sys/module/spindle/parameters/slow_ms"

static struct st_msg m;

static const char *path_of(unsigned int node, const struct st_group *g)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/slow", st_addr(node), g->name);
	return path;
}

/* The whole file; of a group that is no longer there: nothing. */
static const char *slow(unsigned int node, const struct st_group *g)
{
	static char buf[8192];
	int fd = open(path_of(node, g), O_RDONLY | O_CLOEXEC);
	ssize_t n;

	CHECK_OK(fd);
	n = CHECK_OK(read(fd, buf, sizeof(buf) - 1));
	buf[n] = 0;
	close(fd);
	return buf;
}

static void expect(unsigned int node, const struct st_group *g, const char *want)
{
	double bound = st_bound_s(ST_SOON), end = st_now() + bound;
	const char *got = "";

	while (strcmp(got = slow(node, g), want)) {
		if (st_now() > end)
			FAIL("node %u: slow is \"%s\" after %g s, not \"%s\"", node, got, bound,
			     want);
		st_pause_us(5000);
	}
}

/* Nobody is, and nobody will be: no look at that follows from what was done. */
static void expect_none(unsigned int node, const struct st_group *g)
{
	WAIT_UNTIL(st_rests(g) && !strcmp(st_activity(node, g).what, "quiet"), ST_SOON);
	if (*slow(node, g))
		FAIL("node %u: slow is \"%s\"", node, slow(node, g));
}

static char line[256];

static const char *member_line(unsigned int rank, unsigned int node, const char *stage,
			       unsigned int lag, unsigned int len)
{
	snprintf(line, sizeof(line), "member %u %s stage %s lag %u messages %u bytes\n", rank,
		 st_addr(node), stage, lag, lag * len);
	return line;
}

static const char *node_line(unsigned int rank, unsigned int node, const char *stage,
			     unsigned int lag)
{
	snprintf(line, sizeof(line), "node %u %s stage %s lag %u messages\n", rank, st_addr(node),
		 stage, lag);
	return line;
}

static unsigned int take_all(int fd)
{
	unsigned int n = 0;

	while (recv(fd, m.data, sizeof(m.data), MSG_DONTWAIT) >= 0)
		n++;
	CHECK_EQ(errno, EAGAIN);
	return n;
}

static void take(int fd, unsigned int n, unsigned int len)
{
	while (n--)
		CHECK_SAME(CHECK_OK(st_recv(fd, &m, 0)), len);
}

/* Member 0 sends until it is blocked for good; all but one read. */
static unsigned int block(struct st_group *g, unsigned int len, unsigned int but)
{
	unsigned int n = 0, taken = 0, i;
	bool rests = false;

	for (;;) {
		if (send(g->fd[0], m.data, len, MSG_DONTWAIT) == (ssize_t)len) {
			rests = false;
			n++;
			continue;
		}
		CHECK_EQ(errno, EAGAIN);
		if (rests)
			return n;
		for (i = 0; i < g->n; i++)
			if (i != but)
				take(g->fd[i], n - taken, len);
		taken = n;
		WAIT_UNTIL(st_rests(g), ST_SOON);
		rests = true;
	}
}

#define HELD	3

/*
 * One member is slow, and nobody has been anywhere on the way, whatever time
 * that took: few messages hold nobody, and when all but one have read them
 * their sender finds no room for a large one.
 */
static void hold_from(struct st_group *g, unsigned int from, unsigned int but)
{
	unsigned int i;

	for (i = 0; i < HELD; i++)
		CHECK_EQ(send(g->fd[from], m.data, 1000, 0), 1000);
	for (i = 0; i < g->n; i++)
		if (i != but)
			take(g->fd[i], HELD, 1000);
	for (i = 0; i < g->nodes; i++)
		expect_none(i, g);
	CHECK_ERR(send(g->fd[from], m.data, 6000, MSG_DONTWAIT), EAGAIN);
}

static void hold(struct st_group *g, unsigned int but)
{
	hold_from(g, 0, but);
}

/* Members that read whenever they can, and when one had nothing for long. */
struct readers {
	struct st_group g;
	double slow_after;	/* seconds */
	double looked[3];	/* when one looked last */
	double fed[3];		/* since when it may have had nothing */
	unsigned long long forgotten[2];	/* looks of a node after which that is over */
};

static void note_pause(struct readers *r)
{
	unsigned int i, node;

	for (i = 0; i < 3; i++)
		if (st_now() - r->fed[i] >= r->slow_after)
			for (node = 0; node < 2; node++)
				r->forgotten[node] = st_activity(node, &r->g).looks + 4;
}

static void read_all(struct readers *r)
{
	unsigned int i, n;

	for (i = 0; i < 3; i++) {
		double now = st_now();

		n = take_all(r->g.fd[i]);
		note_pause(r);
		if (n)
			r->fed[i] = r->looked[i];
		r->looked[i] = now;
	}
}

/*
 * Who moves is not slow. Should this process, the guest or its network have
 * been kept from running for slow_ms, then nobody has moved; who was named for
 * that is let go after some looks.
 */
TEST(none_while_all_read)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 1024 };
	unsigned int i, node, named = 0;
	struct readers r = { 0 };
	char text[32];

	CHECK(st_read_file(SLOW_MS, text, sizeof(text)));
	/* the kernel counts in ticks */
	r.slow_after = atoi(text) / 1e3 - 0.03;
	st_open(&r.g, &c);
	for (i = 0; i < 3; i++) {
		r.looked[i] = st_now();
		r.fed[i] = r.looked[i];
	}
	while (st_activity(0, &r.g).looks < 30 || st_activity(1, &r.g).looks < 30) {
		for (i = 0; i < 3; i++)
			if (send(r.g.fd[i], m.data, 1000, MSG_DONTWAIT) < 0)
				CHECK_EQ(errno, EAGAIN);
		read_all(&r);
		for (node = 0; node < 2; node++) {
			const char *who = slow(node, &r.g);

			if (!*who)
				continue;
			note_pause(&r);
			if (st_activity(node, &r.g).looks > r.forgotten[node])
				FAIL("node %u: slow is \"%s\" though all read", node, who);
			named++;
		}
	}
	if (named)
		printf("# seen %u times after a pause\n", named);
}

TEST(none_while_forming)
{
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };

	st_open_but(&g, &c, 1);
	CHECK(!*slow(0, &g));
}

TEST(member_beside_the_sender)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n;

	st_open(&g, &c);
	n = block(&g, 1000, 2);
	CHECK(n >= 7);
	expect(0, &g, member_line(2, 0, "read", n, 1000));
	/* that node's readers hold nobody */
	expect_none(1, &g);
	take(g.fd[2], n, 1000);
	expect(0, &g, "");
	/* and again */
	n = block(&g, 500, 2);
	expect(0, &g, member_line(2, 0, "read", n, 500));
	take(g.fd[2], n, 500);
	expect(0, &g, "");
}

/* The reader's node names the member, the sender's node the node. */
TEST(member_on_another_node)
{
	struct st_config c = { .members = 3, .nodes = 3, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n;

	st_open(&g, &c);
	n = block(&g, 1000, 1);
	expect(1, &g, member_line(1, 1, "read", n, 1000));
	expect(0, &g, node_line(1, 1, "consume", n));
	expect_none(2, &g);
	take(g.fd[1], n, 1000);
	expect(0, &g, "");
	expect(1, &g, "");
}

TEST(two_at_once)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n = 0;
	char want[512];

	st_open(&g, &c);
	while (send(g.fd[0], m.data, 1000, MSG_DONTWAIT) == 1000)
		n++;
	CHECK_EQ(errno, EAGAIN);
	take(g.fd[0], n, 1000);
	snprintf(want, sizeof(want), "%s", member_line(2, 0, "read", n, 1000));
	strcat(want, node_line(1, 1, "consume", n));
	expect(0, &g, want);
	take(g.fd[2], n, 1000);
	expect(0, &g, node_line(1, 1, "consume", n));
	take(g.fd[1], n, 1000);
	expect(0, &g, "");
}

TEST(detached_member_at_its_quota)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	int on = 1, bytes = 8192;
	unsigned int n, in_ring;
	char *lag;

	st_open(&g, &c);
	CHECK_OK(setsockopt(g.fd[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	n = block(&g, 1000, 1);
	/* only what is left in the ring holds others */
	WAIT_UNTIL(lag = strstr(slow(1, &g), "stage queue lag "), ST_SOON);
	in_ring = atoi(lag + strlen("stage queue lag "));
	CHECK(in_ring >= 4 && in_ring <= 8 && in_ring < n);
	expect(1, &g, member_line(1, 1, "queue", in_ring, 1000));
	expect(0, &g, node_line(1, 1, "consume", in_ring));
	take(g.fd[1], n, 1000);
	expect(1, &g, "");
	expect(0, &g, "");
}

/* It reads nothing, but nobody waits for that. */
TEST(unread_messages_that_hold_nobody)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_say(g.fd[0], "never read");
	st_expect(g.fd[0], "never read");
	expect_none(0, &g);
	expect_none(1, &g);
}

/* Less than half of the ring, and yet too much for the next message. */
TEST(writer_without_room)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 4096, .max_msg = 4096 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK_EQ(send(g.fd[0], m.data, 1500, 0), 1500);
	take(g.fd[0], 1, 1500);
	expect_none(0, &g);
	CHECK_ERR(send(g.fd[0], m.data, 3000, MSG_DONTWAIT), EAGAIN);
	expect(0, &g, member_line(1, 0, "read", 1, 1500));
	/* it has found something smaller to say */
	CHECK_EQ(send(g.fd[0], m.data, 10, 0), 10);
	expect(0, &g, "");
}

/* The same of a writer that asks before it writes. */
TEST(writer_that_polls)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 4096, .max_msg = 4096 };
	struct st_group g = { 0 };
	struct pollfd pfd = { .events = POLLIN };

	st_open(&g, &c);
	CHECK_EQ(send(g.fd[0], m.data, 1500, 0), 1500);
	take(g.fd[0], 1, 1500);
	pfd.fd = g.fd[0];
	CHECK_EQ(poll(&pfd, 1, 10), 0);
	expect_none(0, &g);
	pfd.events = POLLIN | POLLOUT;
	CHECK_EQ(poll(&pfd, 1, 10), 0);
	expect(0, &g, member_line(1, 0, "read", 1, 1500));
	take(g.fd[1], 1, 1500);
	st_wait_events(g.fd[0], POLLOUT);
	expect(0, &g, "");
}

/* A reader that takes one message now and then is still slow. */
TEST(one_step_is_not_reading)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 65536, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n;

	st_open(&g, &c);
	n = block(&g, 1000, 1);
	expect(0, &g, member_line(1, 0, "read", n, 1000));
	CHECK_EQ(recv(g.fd[1], m.data, 1000, 0), 1000);
	expect(0, &g, member_line(1, 0, "read", n - 1, 1000));
}

TEST(shut_for_reading)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n;

	st_open(&g, &c);
	n = block(&g, 1000, 1);
	expect(0, &g, member_line(1, 0, "read", n, 1000));
	CHECK_OK(shutdown(g.fd[1], SHUT_RD));
	expect(0, &g, "");
}

TEST(nobody_is_slow_in_a_closed_group)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	unsigned int n;

	st_open(&g, &c);
	n = block(&g, 1000, 1);
	expect(1, &g, member_line(1, 1, "read", n, 1000));
	CHECK_OK(shutdown(g.fd[0], SHUT_WR));
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	expect(0, &g, "");
	expect(1, &g, "");
	/* the others may leave */
	st_expect_end(g.fd[0]);
	close(g.fd[0]);
	WAIT_UNTIL(!strcmp(st_activity(1, &g).what, "quiet"), ST_SOON);
	CHECK(!*slow(1, &g));
	take(g.fd[1], n, 1000);
	st_expect_end(g.fd[1]);
}

/* What poll() waits for in a file of sysfs. */
static void wait_told(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLPRI };
	char buf[4096];

	if (CHECK_OK(poll(&pfd, 1, st_bound_ms(ST_SOON))) != 1)
		FAIL("no event in %g s", st_bound_s(ST_SOON));
	CHECK(pfd.revents & POLLPRI);
	CHECK_OK(pread(fd, buf, sizeof(buf), 0));
}

TEST(poll_on_the_file)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };
	struct pollfd pfd;
	char buf[64];
	int fd;

	st_open(&g, &c);
	fd = CHECK_OK(open(path_of(0, &g), O_RDONLY | O_CLOEXEC));
	CHECK_EQ(read(fd, buf, sizeof(buf)), 0);
	pfd = (struct pollfd){ .fd = fd, .events = POLLPRI };
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	hold(&g, 1);
	wait_told(fd);
	CHECK(!strncmp(slow(0, &g), "member 1 ", 9));
	take(g.fd[1], HELD, 1000);
	wait_told(fd);
	CHECK(!*slow(0, &g));
	close(fd);
}

static int uevents(void)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int fd = CHECK_OK(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));

	CHECK_OK(bind(fd, (struct sockaddr *)&nl, sizeof(nl)));
	st_timeout(fd, SO_RCVTIMEO, st_bound_ms(ST_SOON));
	return fd;
}

static const char *value_of(const char *event, size_t n, const char *name)
{
	const char *p;

	for (p = event; p < event + n; p += strlen(p) + 1)
		if (!strncmp(p, name, strlen(name)) && p[strlen(name)] == '=')
			return p + strlen(name) + 1;
	return "";
}

/* The next event of this group seen from this node. */
static void expect_event(int fd, unsigned int node, const struct st_group *g, const char *slow,
			 const char *who, const char *rank, const char *stage, unsigned int lag)
{
	static char buf[8192];
	char path[512], number[16];
	ssize_t n;

	do {
		n = CHECK_OK(recv(fd, buf, sizeof(buf) - 1, 0));
		buf[n] = 0;
	} while (strcmp(value_of(buf, n, "SPINDLE_GROUP"), g->name) ||
		 strcmp(value_of(buf, n, "SPINDLE_NODE"), st_addr(node)));
	snprintf(path, sizeof(path), "/kernel/spindle/%s/%s", st_addr(node), g->name);
	snprintf(number, sizeof(number), "%u", lag);
	if (strcmp(value_of(buf, n, "ACTION"), "change") ||
	    strcmp(value_of(buf, n, "DEVPATH"), path) ||
	    strcmp(value_of(buf, n, "SUBSYSTEM"), "spindle") ||
	    strcmp(value_of(buf, n, "SPINDLE_SLOW"), slow) ||
	    strcmp(value_of(buf, n, who), rank) ||
	    strcmp(value_of(buf, n, "SPINDLE_STAGE"), stage) ||
	    strcmp(value_of(buf, n, "SPINDLE_LAG"), number)) {
		const char *p;

		for (p = buf; p < buf + n; p += strlen(p) + 1)
			printf("# %s\n", p);
		FAIL("another event than %s %s, %s=%s, lag %u", slow, stage, who, rank, lag);
	}
}

TEST(uevent_names_the_member)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };
	int fd = uevents();

	st_open(&g, &c);
	hold(&g, 1);
	expect_event(fd, 0, &g, "1", "SPINDLE_MEMBER", "1", "read", HELD);
	take(g.fd[1], HELD, 1000);
	expect_event(fd, 0, &g, "0", "SPINDLE_MEMBER", "1", "read", 0);
}

TEST(uevent_names_the_node)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };
	int fd = uevents();

	st_open(&g, &c);
	hold(&g, 1);
	expect_event(fd, 0, &g, "1", "SPINDLE_PEER", st_addr(1), "consume", HELD);
	take(g.fd[1], HELD, 1000);
	expect_event(fd, 0, &g, "0", "SPINDLE_PEER", st_addr(1), "consume", 0);
}

/* Who was slow in a group that failed is so no longer, nor who was lost with it. */
TEST(failed_group)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };
	int fd = uevents();

	st_open(&g, &c);
	hold_from(&g, 1, 0);
	expect_event(fd, 1, &g, "1", "SPINDLE_PEER", st_addr(0), "consume", HELD);
	st_fail_second(&g, g.fd[1]);
	expect_event(fd, 1, &g, "0", "SPINDLE_PEER", st_addr(0), "consume", 0);
	CHECK(!*slow(1, &g));
}

/* Nor is a node that is in the view no more. */
TEST(lost_while_slow)
{
	struct st_config c = { .members = 2, .nodes = 2, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };
	int fd = uevents();

	st_open(&g, &c);
	hold(&g, 1);
	expect_event(fd, 0, &g, "1", "SPINDLE_PEER", st_addr(1), "consume", HELD);
	st_fail_second(&g, g.fd[1]);
	expect_event(fd, 0, &g, "0", "SPINDLE_PEER", st_addr(1), "consume", 0);
	expect(0, &g, "");
	/* nobody holds the writer any more */
	CHECK_EQ(send(g.fd[0], m.data, 6000, 0), 6000);
	take(g.fd[0], 1, 6000);
}

/* Nor is who has closed, on whichever node; the others go on. */
static void slow_one_leaves(unsigned int nodes)
{
	struct st_config c = { .members = 3, .nodes = nodes, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	hold(&g, 2);
	WAIT_UNTIL(*slow(0, &g), ST_SOON);
	close(g.fd[2]);
	st_wait_members(g.fd[0], 2);
	expect(0, &g, "");
	CHECK_EQ(send(g.fd[0], m.data, 6000, 0), 6000);
	take(g.fd[0], 1, 6000);
	take(g.fd[1], 1, 6000);
	expect_none(0, &g);
}

TEST(slow_member_of_the_same_node_leaves)
{
	slow_one_leaves(1);
}

TEST(slow_member_beside_another_leaves)
{
	slow_one_leaves(2);
}

TEST(slow_member_of_another_node_leaves)
{
	slow_one_leaves(3);
}

/* Its rank may have become another one; it is the same member. */
TEST(rank_of_who_is_slow)
{
	struct st_config c = { .members = 4, .nodes = 2, .window = 8192, .max_msg = 8192 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	hold(&g, 2);
	expect(0, &g, member_line(2, 0, "read", HELD, 1000));
	close(g.fd[1]);
	st_wait_members(g.fd[0], 3);
	expect(0, &g, member_line(1, 0, "read", HELD, 1000));
	take(g.fd[2], HELD, 1000);
	expect(0, &g, "");
}

/* It goes while it is waited for and looked at. */
TEST(closed_while_slow)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 1024 };
	unsigned int i, k;

	for (i = 0; i < 20; i++) {
		struct st_group g = { 0 };

		st_open(&g, &c);
		while (send(g.fd[0], m.data, 1000, MSG_DONTWAIT) == 1000)
			;
		st_pause_us(i * 12000);
		for (k = 0; k < 3; k++)
			close(g.fd[k]);
	}
}

TEST(silenced)
{
	struct st_config c = { .members = 2, .nodes = 1, .window = 8192, .max_msg = 1024 };
	struct st_group g = { 0 };
	char was[32];
	unsigned int n;

	CHECK(st_read_file(SLOW_MS, was, sizeof(was)));
	CHECK(!strcmp(was, "100"));
	st_open(&g, &c);
	n = block(&g, 1000, 1);
	expect(0, &g, member_line(1, 0, "read", n, 1000));
	CHECK(st_write_file(SLOW_MS, "0"));
	expect(0, &g, "");
	expect_none(0, &g);
	CHECK(st_write_file(SLOW_MS, "100"));
	/* the next that happens is noticed again */
	CHECK_EQ(recv(g.fd[1], m.data, 1000, 0), 1000);
	expect(0, &g, member_line(1, 0, "read", n - 1, 1000));
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
