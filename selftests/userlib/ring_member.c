// SPDX-License-Identifier: GPL-2.0
/*
 * A member of a group on mapped rings, as a program on libspindle:
 *
 *	ring_member NODE GROUP CONTACT MEMBERS MESSAGES SIZE [spin|adaptive|block]
 *
 * CONTACT "-" creates the group, of MEMBERS members; else it is joined there.
 * Sends MESSAGES messages of SIZE bytes ("-": joins as a receiver), reads to
 * the end, and checks that each message is the next one of its sender, byte by
 * byte, and that the event of the first view is before all of them. Then says, in
 * one line:
 *
 *	rank R sent N received N bytes N kicks N waits N refused N order HASH
 *
 * HASH is of rank, place in the order and bytes of each message, in order: the
 * same at all members. Status 0: all was well; 1: it was not.
 */
#include "../socket/spindle_selftest.h"
#include <spindle.h>

#define BATCH		8
/* ms without any progress */
#define PATIENCE	st_bound_ms(4 * ST_SOON)

struct member {
	struct spindle *sp;
	struct spindle_group_info info;
	enum spindle_wait how;
	bool receiver;
	uint64_t messages, sent, received, bytes;
	uint32_t views;
	uint32_t size;
	uint64_t next[SPINDLE_MAX_MEMBERS];
	uint64_t hash;
};

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "ring_member: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

static void check(int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, strerror(-ret));
}

static unsigned char content(uint32_t rank, uint64_t number, uint32_t i)
{
	return (number * 2654435761U >> 7) + rank * 41 + i * (2 * number + 1);
}

/* FNV-1a */
static void add(uint64_t *hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (; len; len--)
		*hash = (*hash ^ *p++) * 0x100000001b3ULL;
}

static void name_group(char *to, const char *name)
{
	if (strlen(name) >= SPINDLE_NAME_LEN)
		die("%s: too long a name", name);
	strcpy(to, name);
}

static void enter(struct member *m, const char *name, const char *contact, unsigned int members)
{
	double end = st_now() + st_bound_s(4 * ST_SOON);
	unsigned int flags = m->receiver ? SPINDLE_F_RECEIVER : 0;
	struct spindle_group_create create = { .members = members, .flags = flags };
	struct spindle_group_join join = { .members = members, .flags = flags };
	int ret;

	if (!strcmp(contact, "-")) {
		name_group(create.name, name);
		/* 16 KiB are usual */
		if (m->size > 16384)
			create.max_msg = m->size;
		check(spindle_create(m->sp, &create), "spindle_create");
		return;
	}
	name_group(join.name, name);
	while ((ret = spindle_join(m->sp, contact, &join))) {
		/* whoever makes the group may start later than this one */
		if ((ret != -ENOENT && ret != -ECONNREFUSED && ret != -EHOSTUNREACH &&
		     ret != -ETIMEDOUT) || st_now() > end)
			check(ret, "spindle_join");
		st_pause_us(20000);
	}
}

/* Send some; -EAGAIN when there is no room. */
static int say(struct member *m)
{
	uint32_t units = (m->size + SPINDLE_UNIT - 1) / SPINDLE_UNIT;
	uint32_t window = m->info.window / SPINDLE_UNIT;
	struct iovec iov[BATCH];
	unsigned int i, n = BATCH;
	uint32_t j;
	int ret;

	if (n > m->messages - m->sent)
		n = m->messages - m->sent;
	while (n > 1 && n * units > window)
		n--;
	do {
		for (i = 0; i < n; i++)
			iov[i].iov_len = m->size;
		ret = spindle_claim(m->sp, iov, n);
		n = ret == -EAGAIN ? n / 2 : n;
	} while (ret == -EAGAIN && n);
	if (ret)
		return ret;
	for (i = 0; i < n; i++)
		for (j = 0; j < m->size; j++)
			((unsigned char *)iov[i].iov_base)[j] =
				content(m->info.rank, m->sent + i, j);
	/* in two steps, to have had both */
	ret = spindle_commit(m->sp, 1, NULL);
	if (!ret && n > 1)
		ret = spindle_commit(m->sp, n - 1, NULL);
	if (!ret)
		m->sent += n;
	return ret;
}

static void take(struct member *m, const struct spindle_msg *msg)
{
	const unsigned char *data = msg->data;
	uint64_t number;
	uint32_t i;

	if (msg->rank >= m->info.members)
		BROKEN("a message of rank %u", msg->rank);
	number = m->next[msg->rank]++;
	for (i = 0; i < msg->len; i++)
		if (data[i] != content(msg->rank, number, i))
			BROKEN("byte %u of %u of message %llu of rank %u is wrong", i, msg->len,
			       (unsigned long long)number, msg->rank);
	add(&m->hash, &msg->rank, sizeof(msg->rank));
	add(&m->hash, &msg->seq, sizeof(msg->seq));
	add(&m->hash, data, msg->len);
	m->received++;
	m->bytes += msg->len;
}

/* A view begins. All members stay to the end, so there is but the first. */
static void meet(struct member *m, const struct spindle_msg *msg)
{
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	const struct spindle_event_member *e = u.event.member;
	size_t size = sizeof(u);
	uint32_t i;

	if (msg->event != SPINDLE_EVENT_VIEW || msg->number != ++m->views || m->views > 1)
		BROKEN("event %u, number %u, behind %u views", msg->event, msg->number, m->views);
	if (m->received)
		BROKEN("the first view behind %llu messages", (unsigned long long)m->received);
	check(spindle_event(m->sp, msg->number, &u.event, &size), "spindle_event");
	if (u.event.view != m->info.view || u.event.members != m->info.members || u.event.left)
		BROKEN("view %llu of %u members, %u gone", (unsigned long long)u.event.view,
		       u.event.members, u.event.left);
	for (i = 0; i < u.event.members; i++) {
		bool self = i == m->info.rank;

		if (e[i].rank != i || !(e[i].flags & SPINDLE_EM_JOINED) ||
		    !!(e[i].flags & SPINDLE_EM_SELF) != self)
			BROKEN("member %u is of rank %u, with flags %#x", i, e[i].rank,
			       e[i].flags);
	}
}

/* Take what is there. */
static int hear(struct member *m)
{
	static uint64_t last;
	struct spindle_msg msgs[BATCH];
	unsigned int i, n;
	int ret;

	ret = spindle_peek(m->sp, msgs, BATCH, &n);
	if (ret)
		return ret;
	for (i = 0; i < n; i++) {
		if (msgs[i].flags & SPINDLE_MSG_EVENT) {
			meet(m, &msgs[i]);
			continue;
		}
		if (m->received && msgs[i].seq <= last)
			BROKEN("message %llu behind %llu", (unsigned long long)msgs[i].seq,
			       (unsigned long long)last);
		last = msgs[i].seq;
		take(m, &msgs[i]);
	}
	return spindle_release(m->sp, msgs[n - 1].entry);
}

static void talk(struct member *m)
{
	bool shut = m->receiver;
	int heard, said;

	for (;;) {
		said = m->sent < m->messages ? say(m) : 0;
		if (said && said != -EAGAIN)
			check(said, "sending");
		if (m->sent == m->messages && !shut) {
			check(spindle_shutdown(m->sp), "spindle_shutdown");
			shut = true;
		}
		heard = hear(m);
		if (heard == -ENODATA)
			return;
		if (heard && heard != -EAGAIN)
			check(heard, "receiving");
		if (!heard || (!said && m->sent < m->messages))
			continue;
		check(spindle_wait(m->sp, SPINDLE_READABLE |
				   (said ? SPINDLE_WRITABLE : 0), m->how, PATIENCE),
		      "spindle_wait");
	}
}

static enum spindle_wait way(const char *text)
{
	if (!strcmp(text, "spin"))
		return SPINDLE_WAIT_SPIN;
	if (!strcmp(text, "block"))
		return SPINDLE_WAIT_BLOCK;
	if (strcmp(text, "adaptive"))
		die("%s: not spin, adaptive nor block", text);
	return SPINDLE_WAIT_ADAPTIVE;
}

int main(int argc, char **argv)
{
	struct member m = { .hash = 0xcbf29ce484222325ULL };
	struct spindle_stats stats;

	if (argc != 7 && argc != 8) {
		fprintf(stderr, "usage: ring_member NODE GROUP CONTACT|- MEMBERS MESSAGES|- SIZE [spin|adaptive|block]\n");
		return 1;
	}
	m.how = way(argc == 8 ? argv[7] : "adaptive");
	m.receiver = !strcmp(argv[5], "-");
	m.messages = m.receiver ? 0 : strtoull(argv[5], NULL, 0);
	m.size = strtoul(argv[6], NULL, 0);
	st_measure(stderr);
	alarm(st_bound_s(ST_PROGRAM));
	check(spindle_open(&m.sp, argv[1]), argv[1]);
	check(spindle_events(m.sp, SPINDLE_WANT_VIEW), "spindle_events");
	enter(&m, argv[2], argv[3], strtoul(argv[4], NULL, 0));
	check(spindle_ready(m.sp, PATIENCE), "spindle_ready");
	check(spindle_info(m.sp, &m.info), "spindle_info");
	talk(&m);
	check(spindle_stats(m.sp, &stats), "spindle_stats");
	if (stats.sent != m.sent || stats.received != m.received ||
	    stats.received_bytes != m.bytes || stats.copied_bytes)
		die("the handle's counters are wrong");
	if (!m.views)
		BROKEN("no view has begun");
	if (m.next[m.info.rank] != m.sent)
		BROKEN("%llu own messages received of %llu",
		       (unsigned long long)m.next[m.info.rank], (unsigned long long)m.sent);
	printf("rank %u sent %llu received %llu bytes %llu kicks %llu waits %llu refused %llu order %016llx\n",
	       m.info.rank, (unsigned long long)m.sent, (unsigned long long)m.received,
	       (unsigned long long)m.bytes, (unsigned long long)stats.kicks,
	       (unsigned long long)stats.waits, (unsigned long long)stats.claims_refused,
	       (unsigned long long)m.hash);
	check(spindle_close(m.sp), "spindle_close");
	return 0;
}
