// SPDX-License-Identifier: GPL-2.0
/*
 * One member of a group whose views change, as a program of its own. It makes
 * or joins the group, sends numbered messages, and writes every message it is
 * given, every event, and every message it has sent to a log, which judge.py
 * compares with the other members' logs.
 *
 * A program that is killed leaves a log that is a prefix: what was read is
 * written before the program sleeps again. One record has 48 bytes.
 *
 * Told by signals:
 *
 *	SIGUSR1		rest: send nothing, say when nothing moves any more
 *	SIGUSR2		go on
 *	SIGTERM		leave the group, read what is left, end
 *	SIGHUP		shutdown(SHUT_WR), read what is left, end
 *	SIGINT		end at once, the socket is closed by the kernel
 *	SIGQUIT		say what time it is and be killed
 *	SIGWINCH	say what time it is
 *
 * On standard output, one fact a line, times in ns of CLOCK_MONOTONIC:
 *
 *	joined NS INCARNATION
 *	view NS VIEW SEQ OWN_RANK UID@ADDR,... gone UID:REASON,...
 *	first NS VIEW SEQ	the first message of a view
 *	suspected NS VIEW RANK
 *	event NS TYPE VIEW SUBJECT ERROR
 *	rest VIEW SEQ SENT RECEIVED STABLE READ_BY_ALL LATENCY_NS SAMPLES
 *	end NS ERRNO		of an incarnation; 0: the stream has ended
 *	dying NS
 *	clock NS
 *
 * Status 0: the stream ended, or SIGINT; 3: the group failed, or could not be
 * joined in time; 1: something is wrong.
 */
#include "spindle_selftest.h"

#include <getopt.h>

#define BUFFER		(512 << 10)
#define MAGIC		0x53564d31U
#define MAX_CONTACTS	64
#define QUIET_NS	100000000ULL
#define SAMPLES		4096
#define ROUND		64		/* messages at a time */

enum record_type {
	REC_HELLO = 1,	/* tag; number: pid; seq: address */
	REC_OPEN,	/* inc; the group was made or joined */
	REC_MESSAGE,	/* rank, tag, inc, number, view, seq, sum, flags */
	REC_SENT,	/* inc, number, sum */
	REC_EVENT,	/* flags: type; rank: subject; view, seq, inc: error, sum: left */
	REC_MEMBER,	/* of the event before: rank, tag: uid, number: reason and flags */
	REC_REFUSED,	/* sum: errno of a send that failed for good */
	REC_ORDER,	/* flags: what it was told to do */
	REC_END,	/* sum: errno, 0: the stream has ended */
	REC_NO_JOIN,	/* sum: errno of a try to join */
};

enum order {
	ORDER_LEAVE = 1,
	ORDER_SHUTDOWN,
	ORDER_CLOSE,
};

#define BAD_SUM		(1 << 0)
#define BAD_INFO	(1 << 1)

/**
 * struct record - one in the log; little endian, as all machines here are
 * @type: enum record_type
 * @flags: see there
 * @rank: of the sender
 * @tag: of the program that sent the message
 * @number: of the message, counted from 0 in each incarnation of its sender
 * @view: as the kernel says
 * @seq: likewise
 * @ns: when it was read
 * @inc: the sender's incarnation
 * @sum: over the message
 */
struct record {
	uint8_t type;
	uint8_t flags;
	uint16_t rank;
	uint32_t tag;
	uint64_t number;
	uint64_t view;
	uint64_t seq;
	uint64_t ns;
	uint32_t inc;
	uint32_t sum;
};

_Static_assert(sizeof(struct record) == 48, "judge.py reads 48 bytes");

/* What each message starts with. */
struct head {
	uint32_t magic;
	uint32_t tag;
	uint32_t inc;
	uint32_t sum;
	uint64_t number;
	uint64_t born;
};

static const struct option options[] = {
	{ "addr", required_argument, NULL, 'a' },
	{ "clock", no_argument, NULL, 'k' },
	{ "contacts", required_argument, NULL, 'c' },
	{ "create", no_argument, NULL, 'C' },
	{ "deadline", required_argument, NULL, 'D' },
	{ "depth", required_argument, NULL, 'd' },
	{ "evict-ms", required_argument, NULL, 'e' },
	{ "large", required_argument, NULL, 'L' },
	{ "log", required_argument, NULL, 'l' },
	{ "max", required_argument, NULL, 'x' },
	{ "max-members", required_argument, NULL, 'M' },
	{ "members", required_argument, NULL, 'm' },
	{ "min", required_argument, NULL, 'i' },
	{ "minority", no_argument, NULL, 'y' },
	{ "name", required_argument, NULL, 'N' },
	{ "own-window", required_argument, NULL, 'o' },
	{ "pace", required_argument, NULL, 'p' },
	{ "receiver", no_argument, NULL, 'r' },
	{ "rejoin", no_argument, NULL, 'R' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "suspect-ms", required_argument, NULL, 's' },
	{ "sync-ms", required_argument, NULL, 'f' },
	{ "tag", required_argument, NULL, 't' },
	{ "window", required_argument, NULL, 'w' },
	{ }
};

static struct {
	const char *addr;
	const char *name;
	const char *contacts[MAX_CONTACTS];
	unsigned int ncontacts;
	bool create;
	bool receiver;
	bool rejoin;
	bool clock;
	struct spindle_group_create group;
	uint32_t tag;
	uint32_t min;
	uint32_t max;
	uint32_t large;			/* now and then a message has up to that; 0: none */
	long pace;			/* messages/s; 0: none, -1: as fast as it goes */
	uint64_t own_window;		/* own messages that were not yet read here */
	double deadline;
	unsigned int seconds;
	unsigned int sync_ms;
} opt = {
	.name = "views",
	.group = { .members = 1, .max_members = SPINDLE_MAX_MEMBERS },
	.min = sizeof(struct head),
	.max = 1000,
	.pace = 100,
	.own_window = 64,
	.deadline = 30,
	.seconds = 600,
	.sync_ms = 20,
};

/* One incarnation. */
static struct incarnation {
	int fd;
	uint32_t inc;
	bool in_view;			/* from here on each begins with zeros */
	bool sends;
	bool told;			/* to leave or to shut down */
	uint64_t view;
	uint64_t first;			/* view whose first message was told of */
	uint64_t seq;
	uint64_t sent;
	uint64_t own;			/* of these, read here */
	uint64_t received;
} me;

static struct {
	int fd;
	struct record rec[1024];
	unsigned int n;
	off_t at;
	uint64_t synced;
} log_file = { .fd = -1 };

static volatile sig_atomic_t want_rest, say_again, want_order;
static unsigned char *in, *out;
static uint64_t latency[SAMPLES];
static unsigned int samples;
static uint64_t heard;			/* when anything was read last */
static uint64_t next_due;
static uint64_t seed;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* The log */

static void log_flush(void)
{
	const char *p = (const char *)log_file.rec;
	size_t left = log_file.n * sizeof(struct record);
	uint64_t now;
	ssize_t n;

	if (log_file.fd < 0) {
		log_file.n = 0;
		return;
	}
	for (; left; left -= n, p += n) {
		n = write(log_file.fd, p, left);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0)
			FAIL("writing the log: %s", st_err(errno));
		log_file.at += n;
	}
	log_file.n = 0;
	if (!opt.sync_ms)
		return;
	now = now_ns();
	if (now - log_file.synced < opt.sync_ms * 1000000ULL)
		return;
	/* so that most of it outlives the guest: out of its page cache, not to the host's disk */
	sync_file_range(log_file.fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	log_file.synced = now;
}

static void note(const struct record *rec)
{
	log_file.rec[log_file.n] = *rec;
	if (++log_file.n == ARRAY_SIZE(log_file.rec))
		log_flush();
}

static void note_plain(unsigned int type, unsigned int flags, uint32_t sum)
{
	struct record rec = {
		.type = type, .flags = flags, .tag = opt.tag, .view = me.view, .seq = me.seq,
		.ns = now_ns(), .inc = me.inc, .sum = sum,
	};

	note(&rec);
}

/* Messages */

static uint32_t sum_of(const unsigned char *msg, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ len, word;
	size_t i;

	/* the field of the sum itself is zero then */
	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, msg + i, 8);
		hash = (hash ^ word) * 0x100000001b3ULL;
		hash ^= hash >> 29;
	}
	for (; i < len; i++)
		hash = (hash ^ msg[i]) * 0x100000001b3ULL;
	return hash ^ hash >> 32;
}

static uint32_t make_message(void)
{
	struct head head = {
		.magic = MAGIC, .tag = opt.tag, .inc = me.inc, .number = me.sent,
	};
	uint64_t word = st_random(&seed);
	uint32_t len, i;

	len = opt.min + (uint32_t)(word >> 8) % (opt.max - opt.min + 1);
	/* many small ones, some of every size */
	if (word & 1 && len > opt.min)
		len = opt.min + (len - opt.min) % 64;
	if (opt.large > opt.max && !(word >> 60))
		len = opt.max + (uint32_t)(word >> 8) % (opt.large - opt.max + 1);
	for (i = sizeof(head); i + 8 <= len; i += 8) {
		word = word * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(out + i, &word, 8);
	}
	for (; i < len; i++)
		out[i] = word >> (8 * (i & 7));
	head.born = now_ns();
	memcpy(out, &head, sizeof(head));
	head.sum = sum_of(out, len);
	memcpy(out, &head, sizeof(head));
	return len;
}

/* Send what there is time for; false when the group takes no more for now. */
static bool send_some(uint64_t now)
{
	static uint32_t len;
	static uint64_t made = ~0ULL;
	static uint32_t made_inc;
	struct record rec = { .type = REC_SENT, .tag = opt.tag, .inc = me.inc };
	unsigned int i;
	ssize_t n;

	for (i = 0; i < ROUND && me.sent - me.own < opt.own_window; i++) {
		if (opt.pace > 0 && now < next_due)
			break;
		/* one that was refused is tried again as it is */
		if (made != me.sent || made_inc != me.inc)
			len = make_message();
		made = me.sent;
		made_inc = me.inc;
		n = send(me.fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n < 0) {
			note_plain(REC_REFUSED, 0, errno);
			me.sends = false;
			return false;
		}
		CHECK_EQ(n, len);
		memcpy(&rec.sum, out + offsetof(struct head, sum), 4);
		rec.number = me.sent++;
		rec.view = me.view;
		rec.ns = now_ns();
		note(&rec);
		if (opt.pace > 0) {
			next_due += 1000000000ULL / opt.pace;
			/* what could not be sent in time is not made up for */
			if (next_due + 50000000 < now)
				next_due = now;
		}
	}
	return true;
}

static void take_message(const struct msghdr *msg, size_t len, uint32_t rank,
			 const struct spindle_msg_info *info)
{
	struct record rec = { .type = REC_MESSAGE, .rank = rank, .ns = now_ns() };
	struct head head = { 0 };

	if (len >= sizeof(head))
		memcpy(&head, in, sizeof(head));
	rec.sum = head.sum;
	if (len < sizeof(head) || head.magic != MAGIC || msg->msg_flags & MSG_TRUNC) {
		rec.flags |= BAD_SUM;
	} else {
		memset(in + offsetof(struct head, sum), 0, 4);
		if (sum_of(in, len) != head.sum)
			rec.flags |= BAD_SUM;
	}
	if (info) {
		rec.view = info->view;
		rec.seq = info->seq;
		me.seq = info->seq;
		if (info->rank != rank)
			rec.flags |= BAD_INFO;
	} else {
		rec.flags |= BAD_INFO;
	}
	rec.tag = head.tag;
	rec.inc = head.inc;
	rec.number = head.number;
	note(&rec);
	me.received++;
	if (head.tag == opt.tag && head.inc == me.inc) {
		me.own++;
		latency[samples++ % SAMPLES] = rec.ns - head.born;
	}
	if (me.first != rec.view) {
		me.first = rec.view;
		printf("first %llu %llu %llu\n", (unsigned long long)rec.ns,
		       (unsigned long long)rec.view, (unsigned long long)rec.seq);
	}
}

static const char *v4(const struct in6_addr *addr)
{
	static char text[INET_ADDRSTRLEN];

	return inet_ntop(AF_INET, addr->s6_addr + 12, text, sizeof(text));
}

static void say_view(const struct spindle_event *ev, uint64_t ns, uint32_t own)
{
	uint32_t i;

	/* the first view of all is after place -1 */
	printf("view %llu %llu %lld %d ", (unsigned long long)ns, (unsigned long long)ev->view,
	       (long long)ev->seq, (int)own);
	for (i = 0; i < ev->members; i++)
		printf("%s%u@%s", i ? "," : "", ev->member[i].uid, v4(&ev->member[i].addr));
	printf(" gone ");
	for (i = 0; i < ev->left; i++) {
		const struct spindle_event_member *m = &ev->member[ev->members + i];

		printf("%s%u:%u", i ? "," : "", m->uid, m->reason);
	}
	printf("\n");
}

static void take_event(size_t len)
{
	const struct spindle_event *ev = (const void *)in;
	struct record rec = { .type = REC_EVENT, .ns = now_ns() };
	uint32_t i, own = ~0U;

	if (len < sizeof(*ev) || (ev->type == SPINDLE_EVENT_VIEW &&
				  len < sizeof(*ev) + (ev->members + (size_t)ev->left) *
				  sizeof(ev->member[0])))
		FAIL("an event of %zu bytes", len);
	rec.flags = ev->type;
	rec.rank = ev->subject;
	rec.tag = ev->number;
	rec.number = ev->members;
	rec.view = ev->view;
	rec.seq = ev->seq;
	rec.inc = ev->error;
	rec.sum = ev->left;
	note(&rec);
	if (ev->type != SPINDLE_EVENT_VIEW) {
		if (ev->type == SPINDLE_EVENT_SUSPECTED)
			printf("suspected %llu %llu %d\n", (unsigned long long)rec.ns,
			       (unsigned long long)ev->view, (int)ev->subject);
		else
			printf("event %llu %u %llu %d %s\n", (unsigned long long)rec.ns, ev->type,
			       (unsigned long long)ev->view, (int)ev->subject, st_err(ev->error));
		return;
	}
	for (i = 0; i < ev->members + ev->left; i++) {
		const struct spindle_event_member *m = &ev->member[i];
		struct record one = {
			.type = REC_MEMBER, .flags = i >= ev->members, .rank = m->rank,
			.tag = m->uid, .number = (uint64_t)m->reason << 32 | m->flags,
			.view = ev->view, .seq = ev->seq, .ns = rec.ns,
		};

		memcpy(&one.inc, m->addr.s6_addr + 12, 4);
		note(&one);
		if (m->flags & SPINDLE_EM_SELF && i < ev->members)
			own = m->rank;
	}
	me.view = ev->view;
	me.in_view = true;
	say_view(ev, rec.ns, own);
}

/* Take what there is; false at the end of the incarnation. */
static bool receive_some(void)
{
	char control[CMSG_SPACE(sizeof(struct spindle_msg_info)) + 64];
	struct sockaddr_spindle from;
	struct spindle_msg_info info;
	struct iovec iov = { in, BUFFER };
	struct cmsghdr *cmsg;
	bool has_info;
	unsigned int i;
	ssize_t n;

	for (i = 0; i < ROUND; i++) {
		struct msghdr msg = {
			.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov,
			.msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
		};
		int err = 0;

		n = recvmsg(me.fd, &msg, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n < 0)
			err = errno;
		heard = now_ns();
		if (n < 0 || (!n && !(msg.msg_flags & (MSG_EOR | MSG_SPINDLE_EVENT)))) {
			note_plain(REC_END, 0, err);
			log_flush();
			printf("end %llu %s\n", (unsigned long long)heard,
			       err ? st_err(err) : "0");
			errno = err;
			return false;
		}
		if (msg.msg_flags & MSG_SPINDLE_EVENT) {
			take_event(n);
			continue;
		}
		has_info = false;
		for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
			if (cmsg->cmsg_level == SOL_SPINDLE &&
			    cmsg->cmsg_type == SPINDLE_CMSG_INFO) {
				memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
				has_info = true;
			}
		}
		take_message(&msg, n, from.ss_rank, has_info ? &info : NULL);
	}
	return true;
}

/* Joining */

static int open_socket(void)
{
	int fd = st_socket(0), on = 1, all = SPINDLE_WANT_ALL;

	if (st_bind(fd, opt.addr)) {
		/* the device is gone: it may come again, for who is to come again */
		if (!opt.rejoin || (errno != ENODEV && errno != EADDRNOTAVAIL))
			FAIL("bind: %s", st_err(errno));
		on = errno;
		close(fd);
		errno = on;
		return -1;
	}
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &all, sizeof(all)));
	return fd;
}

static bool try_join(const char *contact)
{
	struct spindle_group_join join = { .flags = opt.receiver ? SPINDLE_F_RECEIVER : 0 };

	snprintf(join.name, sizeof(join.name), "%s", opt.name);
	st_contact(&join, contact);
	me.fd = open_socket();
	if (me.fd < 0) {
		note_plain(REC_NO_JOIN, 0, errno);
		return false;
	}
	if (!st_join(me.fd, &join))
		return true;
	if (errno == EINVAL || errno == EPERM || errno == EACCES || errno == EFAULT)
		FAIL("join: %s", st_err(errno));
	note_plain(REC_NO_JOIN, 0, errno);
	close(me.fd);
	me.fd = -1;
	return false;
}

/* Become a member; false when there is no time left, or it is told to end. */
static bool enter(double end)
{
	unsigned int i = 0;
	sigset_t all, old;

	if (opt.create && !me.inc) {
		me.fd = CHECK_OK(open_socket());
		snprintf(opt.group.name, sizeof(opt.group.name), "%s", opt.name);
		if (opt.receiver)
			opt.group.flags |= SPINDLE_F_RECEIVER;
		CHECK_OK(st_create(me.fd, &opt.group));
		return true;
	}
	if (!opt.ncontacts)
		FAIL("nobody to join at");
	/* a signal ends a join that takes long */
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, &old);
	while (st_now() < end && !want_order) {
		if (try_join(opt.contacts[i++ % opt.ncontacts]))
			break;
		log_flush();
		if (i % opt.ncontacts == 0)
			st_pause_us(20000);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return me.fd >= 0;
}

/* Resting */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void say_rest(void)
{
	static char last[256];
	struct spindle_stability stable = { 0 };
	unsigned int n = samples < SAMPLES ? samples : SAMPLES;
	socklen_t size = sizeof(stable);
	uint64_t mid = 0;
	char line[256];

	if (now_ns() - heard < QUIET_NS || !me.in_view)
		return;
	if (getsockopt(me.fd, SOL_SPINDLE, SPINDLE_STABILITY, &stable, &size)) {
		stable.received = ~0ULL;
		stable.delivered = ~0ULL;
	}
	if (n) {
		static uint64_t sorted[SAMPLES];

		memcpy(sorted, latency, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), compare);
		mid = sorted[n / 2];
	}
	snprintf(line, sizeof(line), "%s %llu %llu %llu %llu %lld %lld %llu %u",
		 me.own == me.sent || !me.sends ? "rest" : "waits",
		 (unsigned long long)me.view, (unsigned long long)me.seq,
		 (unsigned long long)me.sent, (unsigned long long)me.received,
		 (long long)stable.received, (long long)stable.delivered,
		 (unsigned long long)mid, n);
	if (!strcmp(line, last) && !say_again)
		return;
	say_again = 0;
	strcpy(last, line);
	puts(line);
}

/* What it is told */

static void on_signal(int sig)
{
	char line[64];
	int n;

	switch (sig) {
	case SIGUSR1:
		want_rest = 1;
		say_again = 1;
		break;
	case SIGUSR2:
		want_rest = 0;
		break;
	case SIGTERM:
		want_order = ORDER_LEAVE;
		break;
	case SIGHUP:
		want_order = ORDER_SHUTDOWN;
		break;
	case SIGINT:
		want_order = ORDER_CLOSE;
		break;
	case SIGQUIT:
	case SIGWINCH:
		n = snprintf(line, sizeof(line), "%s %llu\n", sig == SIGQUIT ? "dying" : "clock",
			     (unsigned long long)now_ns());
		if (write(1, line, n) != n || sig == SIGQUIT)
			kill(getpid(), SIGKILL);
		break;
	}
}

static void take_signals(void)
{
	static const int taken[] = { SIGUSR1, SIGUSR2, SIGTERM, SIGHUP, SIGINT };
	static const int at_once[] = { SIGQUIT, SIGWINCH };
	struct sigaction act = { .sa_handler = on_signal };
	unsigned int i;
	sigset_t set;

	sigfillset(&act.sa_mask);
	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		sigaction(taken[i], &act, NULL);
		sigaddset(&set, taken[i]);
	}
	act.sa_flags = SA_RESTART;
	for (i = 0; i < ARRAY_SIZE(at_once); i++)
		sigaction(at_once[i], &act, NULL);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static void obey(void)
{
	int nothing = 0;

	if (me.told || !want_order)
		return;
	me.told = true;
	me.sends = false;
	note_plain(REC_ORDER, want_order, 0);
	switch (want_order) {
	case ORDER_LEAVE:
		if (setsockopt(me.fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &nothing, sizeof(nothing)))
			note_plain(REC_REFUSED, ORDER_LEAVE, errno);
		break;
	case ORDER_SHUTDOWN:
		if (shutdown(me.fd, SHUT_WR))
			note_plain(REC_REFUSED, ORDER_SHUTDOWN, errno);
		break;
	case ORDER_CLOSE:
		log_flush();
		printf("closed %llu\n", (unsigned long long)now_ns());
		exit(0);
	}
}

/* One incarnation, from its first view to its end; errno says which. */
static void live(void)
{
	struct pollfd pfd = { .fd = me.fd };
	sigset_t none;

	sigemptyset(&none);
	heard = now_ns();
	next_due = heard;
	for (;;) {
		uint64_t now = now_ns(), wait = 1000000000ULL;
		bool due = me.sends && me.in_view && !want_rest &&
			   me.sent - me.own < opt.own_window;
		struct timespec ts;

		if (due && opt.pace > 0 && next_due > now) {
			wait = next_due - now;
			due = false;
		}
		if (want_rest)
			wait = QUIET_NS / 4;
		ts.tv_sec = wait / 1000000000ULL;
		ts.tv_nsec = wait % 1000000000ULL;
		pfd.events = POLLIN | (due ? POLLOUT : 0);
		if (ppoll(&pfd, 1, &ts, &none) < 0 && errno != EINTR)
			FAIL("poll: %s", st_err(errno));
		obey();
		if (!receive_some())
			return;
		if (me.sends && me.in_view && !want_rest)
			send_some(now_ns());
		log_flush();
		if (want_rest)
			say_rest();
	}
}

static void run(void)
{
	double end = st_now() + opt.deadline;
	bool was_in;
	int err;

	for (me.inc = 0;; me.inc++) {
		memset((char *)&me + offsetof(struct incarnation, in_view), 0,
		       sizeof(me) - offsetof(struct incarnation, in_view));
		me.fd = -1;
		me.sends = !opt.receiver && opt.pace;
		if (!enter(end)) {
			log_flush();
			if (want_order) {
				printf("closed %llu\n", (unsigned long long)now_ns());
				exit(0);
			}
			printf("end %llu no way in\n", (unsigned long long)now_ns());
			exit(3);
		}
		note_plain(REC_OPEN, 0, 0);
		log_flush();
		printf("joined %llu %u\n", (unsigned long long)now_ns(), me.inc);
		live();
		err = errno;
		close(me.fd);
		was_in = me.in_view;
		if (!err)
			exit(0);
		/* before its first view it was not in */
		if (want_order || (was_in && !opt.rejoin))
			exit(3);
		if (was_in)
			end = st_now() + opt.deadline;
		st_pause_us(20000);
	}
}

static void parse(int argc, char **argv)
{
	char *word, *save = NULL;
	int c;

	opt.addr = getenv("SPINDLE_ADDR");
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			opt.addr = optarg;
			break;
		case 'k':
			opt.clock = true;
			break;
		case 'c':
			for (word = strtok_r(optarg, ",", &save);
			     word && opt.ncontacts < MAX_CONTACTS;
			     word = strtok_r(NULL, ",", &save))
				opt.contacts[opt.ncontacts++] = word;
			break;
		case 'C':
			opt.create = true;
			break;
		case 'D':
			opt.deadline = strtod(optarg, NULL);
			break;
		case 'd':
			opt.group.depth = strtoul(optarg, NULL, 0);
			break;
		case 'e':
			opt.group.evict_ms = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			log_file.fd = CHECK_OK(open(optarg, O_WRONLY | O_CREAT | O_TRUNC |
						    O_CLOEXEC, 0644));
			break;
		case 'x':
			opt.max = strtoul(optarg, NULL, 0);
			break;
		case 'L':
			opt.large = strtoul(optarg, NULL, 0);
			break;
		case 'M':
			opt.group.max_members = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			opt.group.members = strtoul(optarg, NULL, 0);
			break;
		case 'i':
			opt.min = strtoul(optarg, NULL, 0);
			break;
		case 'y':
			opt.group.flags |= SPINDLE_F_MINORITY;
			break;
		case 'N':
			opt.name = optarg;
			break;
		case 'o':
			opt.own_window = strtoull(optarg, NULL, 0);
			break;
		case 'p':
			opt.pace = strtol(optarg, NULL, 0);
			break;
		case 'r':
			opt.receiver = true;
			break;
		case 'R':
			opt.rejoin = true;
			break;
		case 'S':
			opt.seconds = strtoul(optarg, NULL, 0);
			break;
		case 's':
			opt.group.suspect_ms = strtoul(optarg, NULL, 0);
			break;
		case 'f':
			opt.sync_ms = strtoul(optarg, NULL, 0);
			break;
		case 't':
			opt.tag = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			opt.group.window = strtoul(optarg, NULL, 0);
			break;
		default:
			exit(2);
		}
	}
	if (!opt.addr && !opt.clock)
		FAIL("no --addr and no SPINDLE_ADDR");
	if (opt.min < sizeof(struct head) || opt.max < opt.min || opt.max > BUFFER ||
	    opt.large > BUFFER)
		FAIL("messages have %zu to %u bytes", sizeof(struct head), BUFFER);
}

int main(int argc, char **argv)
{
	struct record hello = { .type = REC_HELLO, .number = getpid() };
	sigset_t none;

	setvbuf(stdout, NULL, _IOLBF, 0);
	take_signals();
	parse(argc, argv);
	alarm(opt.seconds);
	if (opt.clock) {
		sigemptyset(&none);
		puts("ready");
		for (;;)
			sigsuspend(&none);
	}
	in = malloc(BUFFER);
	out = malloc(BUFFER);
	CHECK(in && out);
	hello.tag = opt.tag;
	hello.ns = now_ns();
	hello.seq = ntohl(st_in(opt.addr).sin_addr.s_addr);
	seed = (uint64_t)opt.tag << 32;
	note(&hello);
	log_flush();
	run();
}
