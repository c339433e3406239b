// SPDX-License-Identifier: GPL-2.0
/*
 * A member for scripts/soak: it joins, talks, and writes down what it reads. When
 * its group has failed, or it was evicted or has left, it joins again, until it
 * is told that it is over.
 *
 * What it writes down, a line each; a life is one membership:
 *
 *	life LIFE		it has been let in
 *	view NUMBER SEQ MEMBERS | GONE
 *				each as UID@ADDRESS, + its own; who is gone as UID:REASON
 *	m SEQ TAG LIFE K	it has read a message: who sent it, in which life, the how-manieth
 *	s LIFE K		it has sent so many in this life, or more
 *	end SENT		the stream has ended in order
 *	failed ERRNO SENT	the group has failed
 *
 * On standard output it says "in LIFE", "view NUMBER MEMBERS" and "out WHY".
 *
 * SIGTERM: send no more, read to the end of the stream, end. SIGUSR1: leave, and
 * come again. SIGUSR2: leave, and end.
 */
#include "spindle_selftest.h"

#include <getopt.h>

#define SOAK_HEAD	12		/* bytes of a message before its filling */
#define SOAK_FLUSH	2048		/* bytes that are written down at once */
#define SOAK_JOIN_MS	2000		/* for a host to answer, and for the view */
#define SOAK_AGAIN_US	20000		/* before another try */

enum soak_order {
	SOAK_GO_ON,
	SOAK_LEAVE,
	SOAK_LEAVE_FOR_GOOD,
	SOAK_SHUTDOWN,
};

static struct {
	const char *group;
	const char *record;
	bool first;
	bool detached;
	bool receiver;
	uint32_t tag;
	uint32_t gap_us;
	uint32_t burst;
	uint32_t max;
	uint32_t window;
} opt = { .burst = 1, .max = 1000, .window = 65536 };

/* The last signal that came; a later one counts only if it asks for more. */
static volatile sig_atomic_t told;

static int record_fd = -1;
static char record[2 * SOAK_FLUSH + SPINDLE_MAX_MEMBERS * 64];
static size_t record_len;

/* The life that goes on. */
static struct {
	uint32_t life;
	uint32_t sent;
	uint32_t noted;		/* of @sent, in the last line of it */
	uint64_t seq;		/* the next place in the order, or a later one */
	uint64_t view;
	bool last;		/* it has sent its last, or has left */
	double next;		/* when it sends again */
} me;

static void on_signal(int sig)
{
	int order = sig == SIGTERM ? SOAK_SHUTDOWN :
		    sig == SIGUSR2 ? SOAK_LEAVE_FOR_GOOD : SOAK_LEAVE;

	if (order > told)
		told = order;
}

/*
 * Write down what there is. It is to be found on the host when this guest has
 * been killed, and so does not stay in the guest's page cache.
 */
static void record_flush(void)
{
	if (!record_len)
		return;
	CHECK_EQ(write(record_fd, record, record_len), record_len);
	CHECK_OK(sync_file_range(record_fd, 0, 0,
				 SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				 SYNC_FILE_RANGE_WAIT_AFTER));
	record_len = 0;
}

static __attribute__((format(printf, 1, 2))) void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	record_len += vsnprintf(record + record_len, sizeof(record) - record_len, fmt, ap);
	va_end(ap);
	CHECK(record_len < sizeof(record));
}

static void note_sent(void)
{
	if (me.noted != me.sent)
		note("s %u %u\n", me.life, me.sent);
	me.noted = me.sent;
}

/* Messages */

static uint32_t message_make(uint32_t tag, uint32_t life, uint32_t k, unsigned char *buf)
{
	uint32_t head[3] = { tag, life, k };
	uint64_t state = (uint64_t)tag << 40 ^ (uint64_t)life << 32 ^ k;
	uint32_t len = SOAK_HEAD + st_random(&state) % (opt.max - SOAK_HEAD + 1);

	memcpy(buf, head, sizeof(head));
	memset(buf + SOAK_HEAD, (int)st_random(&state), len - SOAK_HEAD);
	return len;
}

static void message_read(const struct st_msg *m)
{
	static unsigned char want[SPINDLE_MIN_WINDOW];
	uint32_t head[3], len;

	CHECK_INTACT(m->len >= SOAK_HEAD);
	memcpy(head, m->data, sizeof(head));
	len = message_make(head[0], head[1], head[2], want);
	CHECK_SAME(m->len, len);
	CHECK_INTACT(!memcmp(m->data, want, len));
	CHECK_INTACT(m->has_info);
	CHECK_INTACT(m->info.seq >= me.seq);
	CHECK_SAME(m->info.view, me.view);
	me.seq = m->info.seq + 1;
	note("m %llu %u %u %u\n", (unsigned long long)m->info.seq, head[0], head[1], head[2]);
}

static void view_read(const struct spindle_event *e)
{
	static const char * const reasons[] = { "none", "left", "exited", "lost", "slow" };
	char addr[INET_ADDRSTRLEN];
	uint32_t i;

	CHECK_EQ(e->type, SPINDLE_EVENT_VIEW);
	CHECK_INTACT(!me.view || e->view == me.view + 1);
	me.view = e->view;
	note("view %llu %llu", (unsigned long long)e->view, (unsigned long long)e->seq);
	for (i = 0; i < e->members; i++) {
		CHECK(inet_ntop(AF_INET, e->member[i].addr.s6_addr + 12, addr, sizeof(addr)));
		note(" %u@%s%s", e->member[i].uid, addr,
		     e->member[i].flags & SPINDLE_EM_SELF ? "+" : "");
	}
	note(" |");
	for (; i < e->members + e->left; i++) {
		CHECK(e->member[i].reason < ARRAY_SIZE(reasons));
		note(" %u:%s", e->member[i].uid, reasons[e->member[i].reason]);
	}
	note("\n");
	record_flush();
	printf("view %llu %u\n", (unsigned long long)e->view, e->members);
}

/* A membership */

/* Whoever cannot be asked, does not answer, or is about to fail, is no reason to give up. */
static bool is_for_later(int err)
{
	switch (err) {
	case ECONNREFUSED:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case EINTR:
	case ELOOP:
	case ENETDOWN:
	case ENOENT:
	case ESHUTDOWN:
	case ETIMEDOUT:
	case EEXIST:		/* this node still has the group that has failed */
	case EUSERS:
	case ECONNRESET:
	case ECONNABORTED:
		return true;
	default:
		return false;
	}
}

/* Be let in by any node, one after another; a socket, or -1 if it is over before that. */
static int come(void)
{
	struct spindle_group_create create = {
		.members = 1, .max_members = SPINDLE_MAX_MEMBERS, .window = opt.window,
	};
	struct spindle_group_join join = { .flags = opt.receiver ? SPINDLE_F_RECEIVER : 0 };
	static unsigned int contact;
	char list[2048], *addr[64], *word, *save = NULL;
	unsigned int n = 0;
	int fd;

	snprintf(list, sizeof(list), "%s", getenv("SPINDLE_PEERS"));
	for (word = strtok_r(list, " ", &save); word && n < ARRAY_SIZE(addr);
	     word = strtok_r(NULL, " ", &save))
		addr[n++] = word;
	CHECK(n);
	snprintf(create.name, sizeof(create.name), "%s", opt.group);
	snprintf(join.name, sizeof(join.name), "%s", opt.group);
	if (!contact)
		contact = opt.tag;
	while (told < SOAK_LEAVE_FOR_GOOD) {
		fd = st_socket(0);
		if (st_bind(fd, getenv("SPINDLE_ADDR"))) {
			CHECK_EQ(errno, EINTR);
			close(fd);
			continue;
		}
		CHECK_OK(st_option(fd, SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
		CHECK_OK(st_option(fd, SPINDLE_RECVINFO, 1));
		CHECK_OK(st_option(fd, SPINDLE_DETACHED, opt.detached));
		/* whatever becomes of this program, all that it has sent is to arrive */
		st_linger(fd, 10 * ST_SOON);
		st_timeout(fd, SO_SNDTIMEO, SOAK_JOIN_MS);
		if (opt.first && !me.life) {
			CHECK_OK(st_create(fd, &create));
			return fd;
		}
		st_contact(&join, addr[contact++ % n]);
		if (!st_join(fd, &join)) {
			st_timeout(fd, SO_SNDTIMEO, 0);
			return fd;
		}
		if (!is_for_later(errno))
			FAIL("join: %s", st_err(errno));
		close(fd);
		st_pause_us(SOAK_AGAIN_US);
	}
	return -1;
}

static void ended(int fd, int err)
{
	struct spindle_group_info info = st_info(fd);

	note_sent();
	if (err)
		note("failed %s %u\n", st_err(err), me.sent);
	else
		note("end %u\n", me.sent);
	record_flush();
	CHECK_SAME(info.sent, me.sent);
	printf("out %s\n", err ? st_err(err) : "end");
}

/* Read what there is; false once nothing more will come. */
static bool read_some(int fd)
{
	static struct st_msg m;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		if (st_recv(fd, &m, MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN)
				break;
			ended(fd, errno);
			return false;
		}
		if (!(m.flags & MSG_EOR)) {
			CHECK_SAME(m.len, 0);
			ended(fd, 0);
			return false;
		}
		if (m.flags & MSG_SPINDLE_EVENT)
			view_read(&m.event);
		else
			message_read(&m);
	}
	if (record_len >= SOAK_FLUSH) {
		note_sent();
		record_flush();
	}
	return true;
}

/* Send what is due. What the group's end says of it is told to who reads. */
static void send_some(int fd)
{
	static unsigned char buf[SPINDLE_MIN_WINDOW];
	unsigned int i;
	uint32_t len;

	for (i = 0; i < 64 && !me.last && me.next <= st_now(); i++) {
		len = message_make(opt.tag, me.life, me.sent + 1, buf);
		if (send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len) {
			me.sent++;
			if (me.sent % opt.burst == 0)
				me.next = st_now() + opt.gap_us / 1e6;
			continue;
		}
		/* no majority is heard, or the group has failed: look again a little later */
		if (errno != EAGAIN)
			me.next = st_now() + SOAK_AGAIN_US / 1e6;
		return;
	}
}

/* Do what a signal has asked for, as soon as the member's first view has begun. */
static void obey(int fd)
{
	if (me.last || !told || !me.view)
		return;
	if (told == SOAK_SHUTDOWN)
		me.last = !shutdown(fd, SHUT_WR);
	else
		me.last = !st_leave(fd);
	/* while no majority is heard nobody can leave: it will be told again */
	if (me.last && told == SOAK_LEAVE)
		told = SOAK_GO_ON;
}

static void live(int fd)
{
	struct pollfd pfd = { .fd = fd };
	struct timespec ts = { 0 };
	double wait;

	printf("in %u\n", me.life);
	note("life %u\n", me.life);
	for (;;) {
		obey(fd);
		if (!me.last && !opt.receiver)
			send_some(fd);
		if (!read_some(fd))
			return;
		wait = me.next - st_now();
		pfd.events = POLLIN;
		if (!me.last && !opt.receiver && wait <= 0)
			pfd.events |= POLLOUT;
		/* a signal may have come just now */
		if (me.last || opt.receiver || wait <= 0 || wait > SOAK_AGAIN_US / 1e6)
			wait = SOAK_AGAIN_US / 1e6;
		ts.tv_nsec = wait * 1e9;
		if (!ppoll(&pfd, 1, &ts, NULL)) {
			note_sent();
			record_flush();
		}
	}
}

static const struct option options[] = {
	{ "burst", required_argument, NULL, 'b' },
	{ "detached", no_argument, NULL, 'd' },
	{ "first", no_argument, NULL, 'f' },
	{ "gap", required_argument, NULL, 'g' },
	{ "group", required_argument, NULL, 'N' },
	{ "max", required_argument, NULL, 'x' },
	{ "receiver", no_argument, NULL, 'r' },
	{ "record", required_argument, NULL, 'o' },
	{ "tag", required_argument, NULL, 't' },
	{ "window", required_argument, NULL, 'w' },
	{ }
};

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal };
	int c, fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'b':
			opt.burst = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			opt.detached = true;
			break;
		case 'f':
			opt.first = true;
			break;
		case 'g':
			opt.gap_us = strtoul(optarg, NULL, 0);
			break;
		case 'N':
			opt.group = optarg;
			break;
		case 'x':
			opt.max = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			opt.receiver = true;
			break;
		case 'o':
			opt.record = optarg;
			break;
		case 't':
			opt.tag = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			opt.window = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	CHECK(opt.group && opt.record && getenv("SPINDLE_ADDR") && getenv("SPINDLE_PEERS"));
	CHECK(opt.max >= SOAK_HEAD && opt.max <= SPINDLE_MIN_WINDOW);
	record_fd = CHECK_OK(open(opt.record, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
	CHECK_OK(sigaction(SIGTERM, &act, NULL));
	CHECK_OK(sigaction(SIGUSR1, &act, NULL));
	CHECK_OK(sigaction(SIGUSR2, &act, NULL));
	while ((fd = come()) >= 0) {
		me.life++;
		me.sent = 0;
		me.noted = 0;
		me.seq = 0;
		me.view = 0;
		me.last = false;
		me.next = 0;
		live(fd);
		close(fd);
	}
	return 0;
}
