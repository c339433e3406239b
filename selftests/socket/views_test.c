// SPDX-License-Identifier: GPL-2.0
/*
 * Views that come and go under load, all nodes on one host: members join, leave,
 * close and are killed while the others talk.
 *
 * All members of a test are looked after by one loop; what each of them reads is
 * written down, message by message and view by view, and must be the same at all
 * for as long as they are members. Nodes suspect each other after a minute only,
 * so that whatever takes a time-out takes too long.
 */
#include "spindle_selftest.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>

#define MEMBERS		24
#define VIEW_ENTRY	(1ULL << 63)
#define CURRENT_ENTRY	(1ULL << 62)

/**
 * struct note - a message, padded to its length
 * @tag: who says it
 * @k: its number among those
 */
struct note {
	uint32_t tag;
	uint32_t len;
	uint64_t k;
};

/* An event with all that it may have. */
union event {
	struct spindle_event e;
	char room[sizeof(struct spindle_event) +
		  2 * SPINDLE_MAX_MEMBERS * sizeof(struct spindle_event_member)];
};

/**
 * struct member - a member, and what it has read
 * @talks: it sends whenever it can
 * @gone: it is closed: its stream is what it is
 * @ended: it has read the end of its stream
 * @idle: it is not read
 * @limit: it sends so many
 * @sent: it has sent so many
 * @log: what it has read: a view's number with VIEW_ENTRY, or tag << 32 | k
 * @ev: the event of the view that it is in
 * @got: the last of each tag; 0 before the first
 */
struct member {
	struct world *w;
	int fd;
	uint32_t tag;
	uint32_t uid;
	bool talks;
	bool gone;
	bool ended;
	bool idle;
	uint64_t limit;
	uint64_t sent;
	uint64_t *log;
	size_t n;
	size_t room;
	union event ev;
	uint64_t got[MEMBERS + 1];
	struct spindle_group_join join;
	pthread_t joining;
	int joined;		/* 1: yes; else -errno; 0: not yet */
};

struct world {
	char name[SPINDLE_NAME_LEN];
	struct member m[MEMBERS];
	unsigned int n;
	uint64_t seed;
	uint32_t uid[MEMBERS + 1];	/* by tag, plus 1; 0: not known */
};

static void option(int fd, int name, int value)
{
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, name, &value, sizeof(value)));
}

static int leave(int fd)
{
	int zero = 0;

	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &zero, sizeof(zero));
}

static struct member *new_member(struct world *w, unsigned int node, bool talks)
{
	struct member *m = &w->m[w->n];

	CHECK(w->n < MEMBERS);
	m->w = w;
	m->tag = ++w->n;
	m->fd = st_bound(node);
	m->talks = talks;
	m->limit = ~0ULL;
	option(m->fd, SPINDLE_EVENTS, SPINDLE_WANT_VIEW | SPINDLE_WANT_CURRENT);
	option(m->fd, SPINDLE_RECVINFO, 1);
	return m;
}

static void note_down(struct member *m, uint64_t entry)
{
	if (m->n == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->log = realloc(m->log, m->room * sizeof(*m->log));
		CHECK(m->log);
	}
	m->log[m->n++] = entry;
}

static void take_view(struct member *m, const union event *ev, size_t len)
{
	const struct spindle_event *e = &ev->e;
	unsigned int i, self = 0, joined = 0;

	CHECK_EQ(len, sizeof(*e) + (e->members + e->left) * sizeof(e->member[0]));
	if (m->n)
		CHECK_EQ(e->view, m->ev.e.view + 1);
	for (i = 0; i < e->members; i++) {
		CHECK_EQ(e->member[i].rank, i);
		CHECK_EQ(e->member[i].reason, SPINDLE_REASON_NONE);
		joined += !!(e->member[i].flags & SPINDLE_EM_JOINED);
		if (!(e->member[i].flags & SPINDLE_EM_SELF))
			continue;
		self++;
		if (!m->n)
			m->uid = e->member[i].uid;
		CHECK_EQ(e->member[i].uid, m->uid);
		/* its first view is the one it has joined with */
		CHECK_EQ(!!(e->member[i].flags & SPINDLE_EM_JOINED), !m->n);
	}
	CHECK_EQ(self, 1);
	for (i = e->members; i < e->members + e->left; i++)
		CHECK(e->member[i].reason);
	if (m->n)
		CHECK_EQ(e->members, m->ev.e.members - e->left + joined);
	m->ev = *ev;
	note_down(m, VIEW_ENTRY | e->view);
}

static void take_note(struct member *m, const struct note *note, size_t len,
		      const struct sockaddr_spindle *from, const struct spindle_msg_info *info)
{
	const struct spindle_event_member *em;
	struct world *w = m->w;

	CHECK(len >= sizeof(*note));
	CHECK_EQ(note->len, len);
	CHECK(note->tag && note->tag <= MEMBERS);
	CHECK(m->n);
	CHECK_EQ(info->view, m->ev.e.view);
	CHECK_EQ(info->rank, from->ss_rank);
	CHECK(info->rank < m->ev.e.members);
	em = &m->ev.e.member[info->rank];
	CHECK(!memcmp(&em->addr, &from->ss_addr, sizeof(em->addr)));
	if (!w->uid[note->tag])
		w->uid[note->tag] = em->uid + 1;
	CHECK_EQ(em->uid + 1, w->uid[note->tag]);
	/* none lost, none twice, from the first that came here on */
	if (m->got[note->tag] || m->log[0] == (VIEW_ENTRY | 1))
		CHECK_EQ(note->k, m->got[note->tag] + 1);
	m->got[note->tag] = note->k;
	note_down(m, (uint64_t)note->tag << 32 | note->k);
}

static void go(struct member *m)
{
	CHECK_OK(close(m->fd));
	m->gone = true;
}

/* Read one thing; false when there is nothing. */
static bool take(struct member *m)
{
	static union { union event ev; struct note n; char room[16384]; } buf;
	char control[CMSG_SPACE(sizeof(struct spindle_msg_info))];
	struct sockaddr_spindle from;
	struct iovec iov = { &buf, sizeof(buf) };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct spindle_msg_info info;
	ssize_t n = recvmsg(m->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0 && !m->n && errno == EUSERS) {
		/* others came first */
		go(m);
		return false;
	}
	CHECK_OK(n);
	if (!(msg.msg_flags & MSG_EOR)) {
		CHECK_EQ(n, 0);
		m->ended = true;
		return false;
	}
	if (!(msg.msg_flags & MSG_SPINDLE_EVENT)) {
		CHECK(msg.msg_controllen >= CMSG_LEN(sizeof(info)));
		memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(info));
		take_note(m, &buf.n, n, &from, &info);
	} else if (buf.ev.e.type == SPINDLE_EVENT_VIEW) {
		take_view(m, &buf.ev, n);
	} else {
		CHECK_EQ(buf.ev.e.type, SPINDLE_EVENT_CURRENT);
		note_down(m, CURRENT_ENTRY | buf.ev.e.subject);
	}
	return true;
}

static bool talk(struct member *m)
{
	static char room[4096];
	struct note *note = (struct note *)room;

	note->tag = m->tag;
	note->k = m->sent + 1;
	note->len = sizeof(*note) + st_random(&m->w->seed) % 500;
	if (send(m->fd, note, note->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		CHECK_EQ(errno, EAGAIN);
		return false;
	}
	m->sent++;
	return true;
}

/* Let all who are there read and talk for a moment. */
static void pump(struct world *w)
{
	struct pollfd pfd[MEMBERS];
	struct member *who[MEMBERS];
	unsigned int i, k, n = 0;

	for (i = 0; i < w->n; i++) {
		struct member *m = &w->m[i];

		if (m->gone || m->ended || m->joined != 1)
			continue;
		who[n] = m;
		pfd[n].fd = m->fd;
		pfd[n].events = (m->idle ? 0 : POLLIN) |
				(m->talks && m->sent < m->limit ? POLLOUT : 0);
		n++;
	}
	CHECK_OK(poll(pfd, n, 5));
	for (i = 0; i < n; i++) {
		struct member *m = who[i];

		if ((pfd[i].revents & POLLERR) && (m->n || st_info(m->fd).error != EUSERS))
			FAIL("member %u: error %s", m->tag, st_err(st_info(m->fd).error));
		for (k = 0; k < 64 && !m->idle && take(m); k++)
			;
		for (k = 0; k < 4 && m->talks && m->sent < m->limit && !m->ended && !m->gone; k++)
			if (!talk(m))
				break;
	}
}

#define PUMP_UNTIL(w, cond)						\
	do {								\
		double __end = st_now() + 6 * ST_SOON;			\
									\
		while (!(cond)) {					\
			if (st_now() > __end)				\
				FAIL("not so in %d s: %s", 6 * ST_SOON, #cond); \
			pump(w);					\
		}							\
	} while (0)

static bool there(const struct member *m)
{
	return !m->gone && !m->ended && !m->idle && m->joined == 1;
}

/* All who are there have read the event of a view of so many members. */
static bool all_see(struct world *w, unsigned int members)
{
	unsigned int i;

	for (i = 0; i < w->n; i++) {
		const struct member *m = &w->m[i];

		if (there(m) &&
		    (!m->n || m->ev.e.members != members ||
		     m->ev.e.view != st_info(m->fd).view))
			return false;
	}
	return true;
}

/* Everybody's @more messages have come. */
static void talk_more(struct world *w, unsigned int more)
{
	uint64_t goal[MEMBERS];
	unsigned int i;
	bool all;

	for (i = 0; i < w->n; i++)
		goal[i] = w->m[i].n + more;
	PUMP_UNTIL(w, ({
		for (all = true, i = 0; i < w->n; i++)
			all &= !there(&w->m[i]) || w->m[i].n >= goal[i];
		all;
	}));
}

/* What all members have read is the same where they were members together. */
static void same_streams(struct world *w)
{
	const struct member *ref = NULL;
	unsigned int i;
	size_t at, k;

	/* the one that was there first, and has read most of those */
	for (i = 0; i < w->n; i++) {
		const struct member *m = &w->m[i];

		if (m->n && (!ref || m->log[0] < ref->log[0] ||
			     (m->log[0] == ref->log[0] && m->n > ref->n)))
			ref = m;
	}
	CHECK(ref);
	for (i = 0; i < w->n; i++) {
		const struct member *m = &w->m[i];

		if (!m->n)
			continue;
		CHECK(m->log[0] & VIEW_ENTRY);
		for (at = 0; at < ref->n && ref->log[at] != m->log[0]; at++)
			;
		if (at == ref->n)
			FAIL("member %u begins with view %llu, unseen by member %u", m->tag,
			     m->log[0] & ~VIEW_ENTRY, ref->tag);
		for (k = 0; k < m->n && at + k < ref->n; k++)
			if (m->log[k] != ref->log[at + k])
				FAIL("entry %zu of member %u is %#llx, at member %u it is %#llx", k,
				     m->tag, (unsigned long long)m->log[k], ref->tag,
				     (unsigned long long)ref->log[at + k]);
	}
}

/* All who talk say a last word, and have then read all that was said. */
static void finish(struct world *w)
{
	bool talked[MEMBERS] = { false };
	unsigned int i, k;
	bool all;

	for (i = 0; i < w->n; i++) {
		talked[i] = there(&w->m[i]) && w->m[i].talks;
		w->m[i].talks = false;
	}
	for (i = 0; i < w->n; i++)
		if (talked[i])
			PUMP_UNTIL(w, talk(&w->m[i]));
	PUMP_UNTIL(w, ({
		for (all = true, i = 0; i < w->n; i++)
			for (k = 0; k < w->n && there(&w->m[i]); k++)
				all &= !talked[k] || w->m[i].got[w->m[k].tag] == w->m[k].sent;
		all;
	}));
	same_streams(w);
}

static void *join_thread(void *arg)
{
	/* What is left of a member that went in haste may be in the way for 20 s. */
	struct timeval patience = { .tv_sec = 40 };
	struct member *m = arg;
	int ret;

	CHECK_OK(setsockopt(m->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)));
	ret = st_join(m->fd, &m->join) ? -errno : 1;
	patience.tv_sec = 0;
	CHECK_OK(setsockopt(m->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)));
	__atomic_store_n(&m->joined, ret, __ATOMIC_RELEASE);
	return NULL;
}

/* Ask to be taken in, and do not wait. */
static struct member *ask(struct world *w, unsigned int node, unsigned int contact, bool talks,
			  unsigned int flags)
{
	struct member *m = new_member(w, node, talks);

	strcpy(m->join.name, w->name);
	st_contact(&m->join, st_addr(contact));
	m->join.flags = flags;
	CHECK_EQ(pthread_create(&m->joining, NULL, join_thread, m), 0);
	return m;
}

static int answer(struct world *w, struct member *m)
{
	PUMP_UNTIL(w, __atomic_load_n(&m->joined, __ATOMIC_ACQUIRE));
	pthread_join(m->joining, NULL);
	return m->joined;
}

static struct member *come(struct world *w, unsigned int node, unsigned int contact, bool talks,
			   unsigned int flags)
{
	struct member *m = ask(w, node, contact, talks, flags);
	int ret = answer(w, m);

	if (ret != 1)
		FAIL("join: %s", st_err(-ret));
	PUMP_UNTIL(w, m->n);
	return m;
}

/* A group of so many, each on a node of its own, all of whom talk. */
static struct world *found(struct st_config *c)
{
	struct world *w = calloc(1, sizeof(*w));
	struct spindle_group_create create;
	unsigned int i;

	CHECK(w);
	st_name(w->name);
	create = st_create_of(c, w->name);
	new_member(w, 0, true);
	CHECK_OK(st_create(w->m[0].fd, &create));
	w->m[0].joined = 1;
	/* one after the other, so that they are ranked so */
	for (i = 1; i < c->members; i++)
		CHECK_EQ(answer(w, ask(w, c->nodes ? i % c->nodes : i, 0,
				       !(c->receivers >> i & 1),
				       c->receivers >> i & 1 ? SPINDLE_F_RECEIVER : 0)), 1);
	PUMP_UNTIL(w, all_see(w, c->members));
	return w;
}

static const struct spindle_event_member *gone_in(const struct member *m, uint32_t uid)
{
	const struct spindle_event *e = &m->ev.e;
	unsigned int i;

	for (i = e->members; i < e->members + e->left; i++)
		if (e->member[i].uid == uid)
			return &e->member[i];
	FAIL("view %llu does not say that %u is gone", (unsigned long long)e->view, uid);
}

/* Members that come */

TEST(join_under_load)
{
	struct st_config c = { .members = 3 };
	struct world *w = found(&c);
	struct member *m;

	talk_more(w, 200);
	/* by the creator, by another one, and beside a member of the same node */
	m = come(w, 3, 0, true, 0);
	talk_more(w, 200);
	CHECK_EQ(m->log[0], VIEW_ENTRY | 2);
	CHECK_EQ(m->ev.e.member[3].uid, m->uid);
	m = come(w, 4, 2, true, 0);
	talk_more(w, 200);
	CHECK_EQ(m->log[0], VIEW_ENTRY | 3);
	m = come(w, 1, 1, true, 0);
	CHECK_EQ(m->log[0], VIEW_ENTRY | 4);
	/* through one that has come itself, as a receiver */
	m = come(w, 5, 4, false, SPINDLE_F_RECEIVER);
	CHECK_ERR(send(m->fd, "x", 1, MSG_NOSIGNAL), EACCES);
	talk_more(w, 200);
	PUMP_UNTIL(w, all_see(w, 7));
	finish(w);
	CHECK_EQ(st_info(m->fd).nodes, 6);
	CHECK_EQ(st_info(m->fd).senders, 6);
	CHECK_EQ(st_info(m->fd).view, 5);
}

TEST(herd)
{
	struct st_config c = { .members = 2, .window = 65536 };
	struct world *w = found(&c);
	struct member *m[12];
	unsigned int i, k;

	talk_more(w, 100);
	for (i = 0; i < 12; i++)
		m[i] = ask(w, 2 + i, i & 1, true, 0);
	for (i = 0; i < 12; i++)
		CHECK_EQ(answer(w, m[i]), 1);
	PUMP_UNTIL(w, all_see(w, 14));
	talk_more(w, 100);
	for (i = 0; i < 12; i++)
		for (k = 0; k < i; k++)
			CHECK(m[i]->uid != m[k]->uid);
	printf("# 12 came in %llu views\n", (unsigned long long)st_info(m[0]->fd).view - 1);
	/* two more are room for, whoever asks and wherever */
	for (i = 0; i < 2; i++)
		come(w, 14 + i, 5, true, 0);
	CHECK_EQ(answer(w, ask(w, 3, 3, false, 0)), -EUSERS);
	CHECK_EQ(answer(w, ask(w, 4, 9, false, 0)), -EUSERS);
	go(m[3]);
	PUMP_UNTIL(w, all_see(w, 15));
	come(w, 5, 9, true, 0);
	PUMP_UNTIL(w, all_see(w, 16));
	finish(w);
}

/* More than there is room for: all but those are refused, and none waits for ever. */
TEST(herd_beyond_the_limit)
{
	struct st_config c = { .members = 2, .max_members = 6 };
	struct world *w = found(&c);
	unsigned int i, in = 0;

	for (i = 0; i < 10; i++)
		ask(w, 2 + i, i & 1, true, 0);
	for (i = 0; i < 10; i++) {
		struct member *m = &w->m[2 + i];
		int ret = answer(w, m);

		/* who was to wait is told later */
		if (ret == 1) {
			PUMP_UNTIL(w, m->n || m->gone);
			in += !!m->n;
		} else {
			CHECK_EQ(ret, -EUSERS);
		}
	}
	CHECK_EQ(in, 4);
	PUMP_UNTIL(w, all_see(w, 6));
	finish(w);
}

/* Who asks while the first view gets its memory comes with the second: it is not full. */
TEST(join_before_the_first_view_begins)
{
	unsigned int i;

	for (i = 0; i < 10; i++) {
		struct st_config c = { .members = 1, .max_members = 3, .window = 8 << 20 };
		struct spindle_group_join join = { 0 };
		struct spindle_group_create create;
		int fd[3], k;

		st_name(join.name);
		create = st_create_of(&c, join.name);
		for (k = 0; k < 3; k++)
			fd[k] = st_bound(k);
		CHECK_OK(st_create(fd[0], &create));
		st_contact(&join, st_addr(0));
		CHECK_OK(st_join(fd[1], &join));
		CHECK_OK(st_join(fd[2], &join));
		for (k = 0; k < 3; k++)
			st_wait_members(fd[k], 3);
		st_say(fd[2], "all here");
		for (k = 0; k < 3; k++)
			st_expect(fd[k], "all here");
		for (k = 0; k < 3; k++)
			close(fd[k]);
	}
}

TEST(rejoin_at_once)
{
	struct st_config c = { .members = 3 };
	struct world *w = found(&c);
	struct member *m = &w->m[1];
	unsigned int i;

	for (i = 0; i < 15; i++) {
		talk_more(w, 20);
		go(m);
		m = come(w, 1, i & 1 ? 2 : 0, true, 0);
		CHECK_EQ(m->uid, 3 + i);
	}
	finish(w);
}

/* Members that go */

TEST(leave_by_request)
{
	struct st_config c = { .members = 3 };
	struct world *w = found(&c);
	struct member *m = &w->m[1];
	uint64_t view;

	talk_more(w, 100);
	m->idle = true;
	CHECK_OK(leave(m->fd));
	CHECK_ERR(send(m->fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT), EPIPE);
	CHECK(leave(m->fd));
	m->talks = false;
	PUMP_UNTIL(w, all_see(w, 2));
	CHECK_EQ(gone_in(&w->m[0], m->uid)->reason, SPINDLE_REASON_LEFT);
	CHECK_EQ(gone_in(&w->m[0], m->uid)->rank, 1);
	CHECK_EQ(w->m[2].got[m->tag], m->sent);
	talk_more(w, 50);
	/* the rest of its last view, then the end */
	m->idle = false;
	PUMP_UNTIL(w, m->ended);
	view = m->ev.e.view;
	CHECK_EQ(view, 1);
	CHECK_EQ(m->got[m->tag], m->sent);
	CHECK_EQ(st_info(m->fd).state, SPINDLE_STATE_CLOSED);
	CHECK_EQ(st_info(m->fd).error, 0);
	CHECK_ERR(leave(m->fd), ENOTCONN);
	finish(w);
	/* all that was in its view, it has read */
	CHECK_EQ(w->m[0].log[m->n], VIEW_ENTRY | 2);
}

TEST(close_loses_nothing)
{
	struct st_config c = { .members = 3 };
	struct world *w = found(&c);
	struct member *m = &w->m[2];
	unsigned int i;

	for (i = 0; i < 5; i++) {
		talk_more(w, 50);
		/* as much as there is room for, and not a look behind */
		while (talk(m))
			;
		go(m);
		PUMP_UNTIL(w, all_see(w, 2));
		CHECK_EQ(gone_in(&w->m[0], m->uid)->reason, SPINDLE_REASON_EXITED);
		CHECK_EQ(w->m[0].got[m->tag], m->sent);
		CHECK_EQ(w->m[1].got[m->tag], m->sent);
		m = come(w, 2, 0, true, 0);
	}
	finish(w);
}

TEST(killed_under_load)
{
	uint64_t *sent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	struct st_config c = { .members = 2 };
	struct world *w = found(&c);
	unsigned int i, tag;
	double killed;
	pid_t pid;

	CHECK(sent != MAP_FAILED);
	for (i = 0; i < 4; i++) {
		tag = MEMBERS - i;
		sent[0] = 0;
		pid = CHECK_OK(fork());
		if (!pid) {
			struct world *own = calloc(1, sizeof(*own));
			struct member *m;

			strcpy(own->name, w->name);
			/* the talkers of the parent are closed here, not there */
			close(w->m[0].fd);
			close(w->m[1].fd);
			m = come(own, i & 1 ? 2 : 1, 0, false, 0);
			m->tag = tag;
			m->talks = true;
			for (;;) {
				pump(own);
				__atomic_store_n(sent, m->sent, __ATOMIC_RELEASE);
			}
		}
		PUMP_UNTIL(w, w->m[0].got[tag] > 50);
		CHECK_OK(kill(pid, SIGKILL));
		CHECK_EQ(CHECK_OK(waitpid(pid, NULL, 0)), pid);
		killed = st_now();
		PUMP_UNTIL(w, all_see(w, 2));
		printf("# known after %.3f s\n", st_now() - killed);
		CHECK_EQ(w->m[0].ev.e.left, 1);
		CHECK_EQ(w->m[0].ev.e.member[2].reason, SPINDLE_REASON_EXITED);
		CHECK(w->m[0].got[tag] >= *sent);
		CHECK_EQ(w->m[1].got[tag], w->m[0].got[tag]);
	}
	finish(w);
}

TEST(last_sender_leaves)
{
	struct st_config c = { .members = 3, .receivers = 6 };
	struct world *w = found(&c);
	struct member *m = &w->m[0];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		talk_more(w, 100);
		if (i & 1)
			CHECK_OK(leave(m->fd));
		go(m);
		/* who only receives is in a group all the same */
		PUMP_UNTIL(w, all_see(w, 2));
		CHECK_EQ(w->m[1].got[m->tag], m->sent);
		CHECK_EQ(st_info(w->m[1].fd).senders, 0);
		CHECK_EQ(st_info(w->m[1].fd).state, SPINDLE_STATE_ACTIVE);
		CHECK(!w->m[1].ended);
		m = come(w, i & 2 ? 1 : 3, 1 + (i & 1), true, 0);
	}
	finish(w);
}

TEST(all_leave_one_after_the_other)
{
	struct st_config c = { .members = 6 };
	struct world *w = found(&c);
	char path[200];
	struct stat st;
	unsigned int i;

	/* the creator first, some by request */
	for (i = 0; i < 5; i++) {
		talk_more(w, 60);
		CHECK_EQ(w->m[i].ev.e.member[0].uid, w->m[i].uid);
		if (i & 1)
			CHECK_OK(leave(w->m[i].fd));
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 5 - i));
		CHECK_EQ(w->m[5].got[w->m[i].tag], w->m[i].sent);
		CHECK_EQ(gone_in(&w->m[5], w->m[i].uid)->reason,
			 i & 1 ? SPINDLE_REASON_LEFT : SPINDLE_REASON_EXITED);
	}
	talk_more(w, 60);
	finish(w);
	go(&w->m[5]);
	for (i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s", st_addr(i), w->name);
		WAIT_UNTIL(stat(path, &st), ST_SOON);
	}
}

TEST(all_leave_at_once)
{
	struct st_config c = { .members = 6 };
	struct world *w;
	unsigned int round, i;

	for (round = 0; round < 5; round++) {
		w = found(&c);
		talk_more(w, 60);
		for (i = 0; i < 5; i++)
			go(&w->m[(round + i) % 6]);
		PUMP_UNTIL(w, all_see(w, 1));
		talk_more(w, 20);
		finish(w);
		/* nothing of any is missing */
		for (i = 0; i < 6; i++)
			CHECK_EQ(w->m[(round + 5) % 6].got[w->m[i].tag], w->m[i].sent);
		go(&w->m[(round + 5) % 6]);
	}
}

TEST(one_of_several_on_a_node)
{
	struct st_config c = { .members = 6, .nodes = 2 };
	struct world *w = found(&c);
	unsigned int i;

	/* members 1, 3 and 5 are on node 1 */
	for (i = 1; i < 6; i += 2) {
		talk_more(w, 60);
		go(&w->m[i]);
		PUMP_UNTIL(w, w->m[0].ev.e.left == 1 && all_see(w, 6 - (i + 1) / 2));
		CHECK_EQ(st_info(w->m[0].fd).nodes, i == 5 ? 1 : 2);
		CHECK_EQ(w->m[0].got[w->m[i].tag], w->m[i].sent);
	}
	come(w, 1, 0, true, 0);
	talk_more(w, 60);
	CHECK_EQ(st_info(w->m[0].fd).nodes, 2);
	finish(w);
}

/* Others */

TEST(groups_on_the_same_nodes)
{
	struct st_config c = { .members = 3 };
	struct world *a = found(&c), *b = found(&c);
	unsigned int i;
	size_t before;

	for (i = 0; i < 10; i++) {
		struct member *m = come(a, i & 1 ? 2 : 3, 0, true, 0);

		before = b->m[0].n;
		talk_more(b, 20);
		CHECK(b->m[0].n > before);
		talk_more(a, 20);
		go(m);
		PUMP_UNTIL(a, all_see(a, 3));
	}
	finish(a);
	finish(b);
	CHECK_EQ(st_info(a->m[0].fd).view, 21);
	CHECK_EQ(st_info(b->m[0].fd).view, 1);
}

static void group_view(int fd, const char *const *addrs, unsigned int n)
{
	struct sockaddr_spindle view[SPINDLE_MAX_MEMBERS];
	socklen_t len = sizeof(view);
	unsigned int i;

	CHECK_OK(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len));
	CHECK_EQ(len, n * sizeof(view[0]));
	for (i = 0; i < n; i++) {
		struct in6_addr want = st_mapped(addrs[i]);

		CHECK_EQ(view[i].ss_rank, i);
		CHECK(!memcmp(&view[i].ss_addr, &want, sizeof(want)));
	}
	len = n * sizeof(view[0]) - 1;
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len), ERANGE);
	CHECK_EQ(len, n * sizeof(view[0]));
}

TEST(the_newest_view)
{
	struct st_config c = { .members = 3 };
	struct world *w = found(&c);
	const char *addrs[4] = { st_addr(0), st_addr(1), st_addr(2), st_addr(3) };
	struct sockaddr_spindle own;
	socklen_t len = sizeof(own);
	struct member *m;

	group_view(w->m[2].fd, addrs, 3);
	m = come(w, 3, 1, true, 0);
	PUMP_UNTIL(w, all_see(w, 4));
	group_view(w->m[2].fd, addrs, 4);
	group_view(m->fd, addrs, 4);
	go(&w->m[0]);
	PUMP_UNTIL(w, all_see(w, 3));
	group_view(w->m[2].fd, addrs + 1, 3);
	group_view(m->fd, addrs + 1, 3);
	CHECK_OK(getsockname(m->fd, (struct sockaddr *)&own, &len));
	CHECK_EQ(own.ss_rank, 2);
	CHECK_EQ(st_info(m->fd).rank, 2);
}

/* Everybody who stays talks all the time, while others come and go. */
TEST_SECONDS(talk_through_many_views, 120)
{
	struct st_config c = { .members = 4, .window = 16384, .depth = 64 };
	struct world *w = found(&c);
	struct member *m, *k;
	unsigned int i;

	for (i = 0; i < 9; i++) {
		m = ask(w, 4 + i % 4, i % 4, true, 0);
		k = ask(w, 8 + i % 3, (i + 1) % 4, i & 1, i & 1 ? 0 : SPINDLE_F_RECEIVER);
		CHECK_EQ(answer(w, m), 1);
		go(m);
		CHECK_EQ(answer(w, k), 1);
		if (i & 1)
			PUMP_UNTIL(w, k->n);
		go(k);
	}
	PUMP_UNTIL(w, all_see(w, 4));
	for (i = 0; i < 4; i++)
		PUMP_UNTIL(w, w->m[i].sent > 200);
	finish(w);
}

/* A reader that is late reads all views that it has missed, as if it were not. */
static void late(bool detached)
{
	struct st_config c = { .members = 3, .window = 1 << 20, .depth = 4096 };
	struct world *w = found(&c);
	struct member *m = &w->m[2], *guest;
	unsigned int i;

	if (detached) {
		int bytes = 4 << 20;

		CHECK_OK(setsockopt(m->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
		option(m->fd, SPINDLE_DETACHED, 1);
	}
	talk_more(w, 20);
	m->idle = true;
	m->talks = false;
	for (i = 0; i < 8; i++) {
		guest = come(w, 3 + i % 3, 0, true, 0);
		talk_more(w, 20);
		go(guest);
		PUMP_UNTIL(w, all_see(w, 3));
	}
	CHECK_EQ(st_info(m->fd).view, 17);
	CHECK_EQ(m->ev.e.view, 1);
	m->idle = false;
	PUMP_UNTIL(w, m->ev.e.view == 17);
	finish(w);
	for (i = 3; i < w->n; i++)
		CHECK_EQ(m->got[w->m[i].tag], w->m[i].sent);
}

TEST(late_reader_over_views)
{
	late(false);
}

TEST(late_detached_reader_over_views)
{
	late(true);
}

TEST(sync_when_who_does_not_read_goes)
{
	struct st_config c = { .members = 3, .receivers = 4 };
	struct world *w = found(&c);
	int what = SPINDLE_SYNC_DELIVERED;
	struct spindle_stability s;
	socklen_t len = sizeof(s);
	unsigned int i;

	w->m[2].idle = true;
	for (i = 0; i < 2; i++)
		w->m[i].limit = w->m[i].sent + 30;
	talk_more(w, 30);
	finish(w);
	st_timeout(w->m[0].fd, SO_SNDTIMEO, 200);
	CHECK_ERR(setsockopt(w->m[0].fd, SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what)), EAGAIN);
	what = SPINDLE_SYNC_RECEIVED;
	CHECK_OK(setsockopt(w->m[0].fd, SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what)));
	st_timeout(w->m[0].fd, SO_SNDTIMEO, ST_SOON * 1000);
	go(&w->m[2]);
	/* the others are in the next view and have read all; nobody else is waited for */
	what = SPINDLE_SYNC_DELIVERED;
	CHECK_OK(setsockopt(w->m[0].fd, SOL_SPINDLE, SPINDLE_SYNC, &what, sizeof(what)));
	CHECK_OK(getsockopt(w->m[0].fd, SOL_SPINDLE, SPINDLE_STABILITY, &s, &len));
	CHECK_EQ(s.sent, w->m[0].sent);
	CHECK_EQ(s.delivered, s.sent);
	PUMP_UNTIL(w, all_see(w, 2));
}

/* Nothing is left of members that come and go */

/* What members 0 and 1 have both read, and all others, is not looked at again. */
static void forget(struct world *w)
{
	size_t common = w->m[0].n < w->m[1].n ? w->m[0].n : w->m[1].n;
	unsigned int i;

	same_streams(w);
	for (i = 0; i < 2; i++) {
		struct member *m = &w->m[i];

		m->n -= common - 1;
		memmove(m->log + 1, m->log + common, (m->n - 1) * sizeof(*m->log));
		m->log[0] = VIEW_ENTRY | m->ev.e.view;
	}
}

static unsigned int entries(const char *path)
{
	unsigned int n = 0;
	struct dirent *de;
	DIR *dir = opendir(path);

	while (dir && (de = readdir(dir)))
		n += de->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

TEST_SECONDS(three_hundred_times, 300)
{
	struct st_config c = { .members = 2, .window = 65536 };
	struct world *w = found(&c);
	unsigned long slab = 0, mem = 0;
	unsigned int i;
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s", st_addr(2));
	for (i = 0; i < 300; i++) {
		struct member *m;

		/* the first rounds fill caches */
		if (i == 100) {
			slab = st_meminfo("SUnreclaim");
			mem = st_free_memory();
		}
		w->n = 2;
		free(w->m[2].log);
		memset(&w->m[2], 0, sizeof(w->m[2]));
		w->uid[3] = 0;
		w->m[0].got[3] = 0;
		w->m[1].got[3] = 0;
		m = come(w, 2, i & 1, true, 0);
		PUMP_UNTIL(w, w->m[0].got[3] > 2);
		if (i % 3 == 1)
			CHECK_OK(leave(m->fd));
		go(m);
		PUMP_UNTIL(w, all_see(w, 2));
		forget(w);
	}
	w->m[2].n = 0;
	finish(w);
	WAIT_UNTIL(!entries(path), ST_SOON);
	printf("# %lu kB of slab and %lu kB free after 100, %lu and %lu after 300\n", slab, mem,
	       st_meminfo("SUnreclaim"), st_free_memory());
	/*
	 * A lane that leaks is seen, and some kilobytes; what is less kmemleak finds
	 * in the kernels whose allocators are as wasteful as that: they keep what
	 * was freed to watch it, and shadows of what was mapped.
	 */
	WAIT_UNTIL(st_meminfo("SUnreclaim") < slab + (slab < 20000 ? 400 : 8000), ST_SOON);
	WAIT_UNTIL(st_free_memory() + (slab < 20000 ? 4000 : 12000) > mem, ST_SOON);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
