// SPDX-License-Identifier: GPL-2.0
/*
 * Members that go while the others talk, all nodes on one host: they close,
 * leave, exit and are killed, and links break.
 *
 * All members of a test are looked after by one loop, but for one that may be a
 * program of its own. What each of them reads is written down, message by
 * message and view by view: it must be the same at all for as long as they are
 * members, and nothing that was sent may be missing. Nodes suspect each other
 * after a minute only, so that whatever takes a time-out takes too long.
 */
#include "spindle_selftest.h"

#include <sys/mman.h>

#define MEMBERS		16
#define VIEW_ENTRY	(1ULL << 63)
#define BOUND		(4 * ST_SOON)

/**
 * struct note - a message, padded to its length
 * @tag: who says it
 * @len: its length
 * @k: its number among those, from 1
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
 * struct entry - something that a member has read
 * @what: tag << 32 | k of a message, or VIEW_ENTRY | number
 * @seq: its place in the order
 */
struct entry {
	uint64_t what;
	uint64_t seq;
};

/* What a member that is a program of its own tells, and is told. */
struct program {
	uint64_t sent;
	int ends;
};

/**
 * struct member - a member, and what it has read
 * @w: the world that it is in
 * @fd: its socket
 * @tag: its rank in the first view, plus 1
 * @node: its node
 * @talks: it sends whenever it can
 * @idle: it is not read
 * @breaks: it may fail
 * @gone: it is closed, or is a program of its own: its stream is what it is
 * @ended: it has read the end of its stream
 * @error: it has read this error
 * @sent: it has sent so many
 * @log: what it has read, @n entries; there is @room for more
 * @seq: place of the last of them
 * @ev: the event of the view that it is in
 * @got: how many it has of each tag
 * @reason: why those with each tag have gone
 */
struct member {
	struct world *w;
	int fd;
	uint32_t tag;
	unsigned int node;
	bool talks;
	bool idle;
	bool breaks;
	bool gone;
	bool ended;
	int error;
	uint64_t sent;
	struct entry *log;
	size_t n;
	size_t room;
	int64_t seq;
	union event ev;
	uint64_t got[MEMBERS + 1];
	uint32_t reason[MEMBERS + 1];
};

/**
 * struct world - a group and all that is known of it
 * @g: the group; its sockets are in @m
 * @m: its members, by the rank in the first view
 * @n: how many these are
 * @seed: of what is said
 * @uid: number of the member with each tag
 * @pid: the one that is a program of its own, or 0
 * @program: what it tells
 */
struct world {
	struct st_group g;
	struct member m[MEMBERS];
	unsigned int n;
	uint64_t seed;
	uint32_t uid[MEMBERS + 1];
	pid_t pid;
	struct program *program;
};

static void note_down(struct member *m, uint64_t what, uint64_t seq)
{
	if (m->n == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->log = realloc(m->log, m->room * sizeof(*m->log));
		CHECK(m->log);
	}
	m->log[m->n++] = (struct entry){ what, seq };
	m->seq = seq;
}

static uint32_t tag_of(const struct world *w, uint32_t uid)
{
	uint32_t tag;

	for (tag = 1; tag <= w->n; tag++)
		if (w->uid[tag] == uid)
			return tag;
	BROKEN("member %u was not in the first view", uid);
}

/* The first view: whoever sees it first knows the members' numbers. */
static void take_first_view(struct member *m, const struct spindle_event *e)
{
	struct world *w = m->w;
	unsigned int i;

	CHECK_SAME(e->view, 1);
	CHECK_SAME(e->seq, ~0ULL);
	CHECK_SAME(e->members, w->n);
	CHECK_SAME(e->left, 0);
	for (i = 0; i < e->members; i++) {
		if (!w->uid[i + 1])
			w->uid[i + 1] = e->member[i].uid + 1;
		CHECK_SAME(w->uid[i + 1], e->member[i].uid + 1);
	}
}

static void take_view(struct member *m, const union event *ev, size_t len)
{
	const struct spindle_event *e = &ev->e;
	struct world *w = m->w;
	unsigned int i, self = 0;
	uint32_t tag, last = 0;

	CHECK_SAME(len, sizeof(*e) + (e->members + e->left) * sizeof(e->member[0]));
	CHECK_EQ(e->type, SPINDLE_EVENT_VIEW);
	CHECK_EQ(e->number, e->view);
	if (!m->n) {
		take_first_view(m, e);
	} else {
		CHECK_SAME(e->view, m->ev.e.view + 1);
		CHECK_SAME(e->members + e->left, m->ev.e.members);
		CHECK_INTACT((int64_t)e->seq >= m->seq);
		CHECK(e->left);
	}
	for (i = 0; i < e->members; i++) {
		struct in6_addr addr;

		tag = tag_of(w, e->member[i].uid + 1);
		addr = st_mapped(st_addr(w->m[tag - 1].node));
		CHECK(!memcmp(&e->member[i].addr, &addr, sizeof(addr)));
		CHECK_SAME(e->member[i].rank, i);
		/* who stays keeps its place among the others */
		CHECK_INTACT(tag > last);
		last = tag;
		CHECK_EQ(m->reason[tag], 0);
		CHECK_EQ(e->member[i].reason, SPINDLE_REASON_NONE);
		CHECK_EQ(!!(e->member[i].flags & SPINDLE_EM_JOINED), e->view == 1);
		CHECK_EQ(!!(e->member[i].flags & SPINDLE_EM_SELF), tag == m->tag);
		self += tag == m->tag;
	}
	CHECK_EQ(self, 1);
	for (i = e->members; i < e->members + e->left; i++) {
		const struct spindle_event_member *em = &e->member[i];

		tag = tag_of(w, em->uid + 1);
		CHECK_EQ(m->reason[tag], 0);
		CHECK(em->reason);
		m->reason[tag] = em->reason;
		/* the rank that it had */
		CHECK(em->rank < m->ev.e.members);
		CHECK_EQ(m->ev.e.member[em->rank].uid, em->uid);
	}
	m->ev = *ev;
	note_down(m, VIEW_ENTRY | e->view, e->seq);
}

static void take_note(struct member *m, const struct note *note, size_t len,
		      const struct sockaddr_spindle *from, const struct spindle_msg_info *info)
{
	const struct spindle_event_member *em;

	CHECK_INTACT(len >= sizeof(*note));
	CHECK_SAME(note->len, len);
	CHECK_INTACT(note->tag && note->tag <= m->w->n);
	CHECK_INTACT(m->n);
	CHECK_SAME(info->view, m->ev.e.view);
	CHECK_EQ(info->flags, 0);
	CHECK_EQ(info->rank, from->ss_rank);
	CHECK_INTACT(info->rank < m->ev.e.members);
	CHECK_INTACT((int64_t)info->seq > m->seq);
	em = &m->ev.e.member[info->rank];
	CHECK(!memcmp(&em->addr, &from->ss_addr, sizeof(em->addr)));
	CHECK_SAME(tag_of(m->w, em->uid + 1), note->tag);
	/* none lost, none twice */
	CHECK_SAME(note->k, m->got[note->tag] + 1);
	m->got[note->tag] = note->k;
	note_down(m, (uint64_t)note->tag << 32 | note->k, info->seq);
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
	if (n < 0 && m->breaks) {
		m->error = errno;
		CHECK_EQ(st_info(m->fd).state, SPINDLE_STATE_FAILED);
		CHECK_EQ(st_info(m->fd).error, m->error);
		return false;
	}
	if (n < 0)
		FAIL("member %u: %s", m->tag, st_err(errno));
	if (!(msg.msg_flags & MSG_EOR)) {
		CHECK_SAME(n, 0);
		m->ended = true;
		CHECK_EQ(st_info(m->fd).state, SPINDLE_STATE_CLOSED);
		CHECK_EQ(st_info(m->fd).error, 0);
		return false;
	}
	if (msg.msg_flags & MSG_SPINDLE_EVENT) {
		take_view(m, &buf.ev, n);
		return true;
	}
	CHECK(msg.msg_controllen >= CMSG_LEN(sizeof(info)));
	memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(info));
	take_note(m, &buf.n, n, &from, &info);
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
		if (errno != EAGAIN && !m->breaks)
			FAIL("member %u: send: %s", m->tag, st_err(errno));
		return false;
	}
	m->sent++;
	if (m->w->program && !m->w->pid)
		__atomic_store_n(&m->w->program->sent, m->sent, __ATOMIC_RELEASE);
	return true;
}

static bool there(const struct member *m)
{
	return !m->gone && !m->ended && !m->error;
}

/* Is it read, and a member? */
static bool reads(const struct member *m)
{
	return there(m) && !m->idle;
}

/* Let all who are there read and talk for a moment. */
static void pump(struct world *w)
{
	struct pollfd pfd[MEMBERS];
	struct member *who[MEMBERS];
	unsigned int i, k, n = 0;

	for (i = 0; i < w->n; i++) {
		struct member *m = &w->m[i];

		if (!there(m))
			continue;
		who[n] = m;
		pfd[n].fd = m->fd;
		pfd[n].events = (m->idle ? 0 : POLLIN) | (m->talks ? POLLOUT : 0);
		n++;
	}
	CHECK_OK(poll(pfd, n, 5));
	for (i = 0; i < n; i++) {
		struct member *m = who[i];

		for (k = 0; k < 64 && reads(m) && take(m); k++)
			;
		for (k = 0; k < 4 && there(m) && m->talks && talk(m); k++)
			;
	}
}

#define PUMP_UNTIL(w, cond)						\
	do {								\
		double __bound = st_bound_s(BOUND);			\
		double __end = st_now() + __bound;			\
									\
		while (!(cond)) {					\
			if (st_now() > __end)				\
				FAIL("not so in %g s: %s", __bound,	\
				     #cond);				\
			pump(w);					\
		}							\
	} while (0)

/* All who are there have read the event of a view of so many members. */
static bool all_see(const struct world *w, unsigned int members)
{
	unsigned int i;

	for (i = 0; i < w->n; i++) {
		const struct member *m = &w->m[i];

		if (reads(m) && (!m->n || m->ev.e.members != members))
			return false;
	}
	return true;
}

/* Everybody has read so many more. */
static void talk_more(struct world *w, unsigned int more)
{
	uint64_t goal[MEMBERS];
	unsigned int i;
	bool all;

	for (i = 0; i < w->n; i++)
		goal[i] = w->m[i].n + more;
	PUMP_UNTIL(w, ({
		for (all = true, i = 0; i < w->n; i++)
			all &= !reads(&w->m[i]) || w->m[i].n >= goal[i];
		all;
	}));
}

/* The member that has read most. */
static const struct member *longest(const struct world *w)
{
	const struct member *ref = NULL;
	unsigned int i;

	for (i = 0; i < w->n; i++)
		if (!ref || w->m[i].n > ref->n)
			ref = &w->m[i];
	return ref;
}

/* What each member has read is the beginning of what others have read. */
static void same_streams(const struct world *w)
{
	const struct member *ref = longest(w);
	unsigned int i;
	size_t k;

	for (i = 0; i < w->n; i++) {
		const struct member *m = &w->m[i];

		for (k = 0; k < m->n; k++)
			if (memcmp(&m->log[k], &ref->log[k], sizeof(m->log[k])))
				BROKEN("%zu of member %u is %#llx at %llu, of member %u %#llx at %llu",
				       k, m->tag, (unsigned long long)m->log[k].what,
				       (unsigned long long)m->log[k].seq, ref->tag,
				       (unsigned long long)ref->log[k].what,
				       (unsigned long long)ref->log[k].seq);
	}
}

/* All who talk say a last word, and all have then read all that was said. */
static void finish(struct world *w)
{
	bool talked[MEMBERS] = { false };
	unsigned int i, k;
	bool all;

	for (i = 0; i < w->n; i++) {
		talked[i] = reads(&w->m[i]) && w->m[i].talks;
		w->m[i].talks = false;
	}
	for (i = 0; i < w->n; i++)
		if (talked[i])
			PUMP_UNTIL(w, talk(&w->m[i]));
	PUMP_UNTIL(w, ({
		for (all = true, i = 0; i < w->n; i++)
			for (k = 0; k < w->n && reads(&w->m[i]); k++)
				all &= !talked[k] || w->m[i].got[w->m[k].tag] == w->m[k].sent;
		all;
	}));
	same_streams(w);
}

/* The same, and all who are there shut down and read the end. */
static void finish_to_the_end(struct world *w)
{
	const struct member *ref;
	unsigned int i;
	bool all;

	finish(w);
	for (i = 0; i < w->n; i++)
		if (there(&w->m[i]))
			CHECK_OK(shutdown(w->m[i].fd, SHUT_WR));
	PUMP_UNTIL(w, ({
		for (all = true, i = 0; i < w->n; i++)
			all &= !reads(&w->m[i]);
		all;
	}));
	same_streams(w);
	ref = longest(w);
	for (i = 0; i < w->n; i++)
		if (w->m[i].ended && !w->m[i].gone && st_info(w->m[i].fd).rank != ~0U)
			CHECK_SAME(w->m[i].n, ref->n);
}

static void go(struct member *m)
{
	CHECK_OK(close(m->fd));
	m->gone = true;
}

static void leave(struct member *m)
{
	CHECK_OK(st_leave(m->fd));
	m->talks = false;
}

/* All that it has sent has come to whoever is there, and why it went is known. */
static void has_gone(struct world *w, const struct member *who, uint32_t reason)
{
	unsigned int i;

	for (i = 0; i < w->n; i++) {
		if (!reads(&w->m[i]))
			continue;
		CHECK_EQ(w->m[i].reason[who->tag], reason);
		CHECK_SAME(w->m[i].got[who->tag], who->sent);
	}
}

/* Who has left has read all of the views that it was in, and nothing else. */
static void read_to_its_view(struct world *w, struct member *m)
{
	const struct member *ref;

	PUMP_UNTIL(w, m->ended);
	CHECK_EQ(st_info(m->fd).rank, ~0U);
	PUMP_UNTIL(w, longest(w)->n > m->n);
	same_streams(w);
	ref = longest(w);
	CHECK_SAME(ref->log[m->n].what, VIEW_ENTRY | (m->ev.e.view + 1));
}

static _Noreturn void be_program(struct world *w, unsigned int self)
{
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < w->n; i++) {
		if (i == self)
			continue;
		if (w->m[i].fd > 0)
			close(w->m[i].fd);
		w->m[i].gone = true;
	}
	for (;;) {
		pump(w);
		if (__atomic_load_n(&w->program->ends, __ATOMIC_ACQUIRE))
			_exit(0);
	}
}

/* Create or join, as member @i. */
static void enter(struct world *w, const struct st_config *c, unsigned int i)
{
	struct spindle_group_create create = st_create_of(c, w->g.name);
	struct spindle_group_join join = {
		.flags = c->receivers >> i & 1 ? SPINDLE_F_RECEIVER : 0,
	};

	snprintf(join.name, sizeof(join.name), "%s", w->g.name);
	st_contact(&join, st_addr(0));
	w->m[i].fd = st_fresh(c, i);
	/* what was sent is to come everywhere on a slow host, too */
	st_linger(w->m[i].fd, BOUND);
	if (i)
		CHECK_OK(st_join(w->m[i].fd, &join));
	else
		CHECK_OK(st_create(w->m[i].fd, &create));
}

/* A group all of whose senders talk; member @own, if there is one, is a program. */
static struct world *found_with(struct st_config c, unsigned int own)
{
	struct world *w = calloc(1, sizeof(*w));
	unsigned int i;
	int in[2];
	char byte;

	CHECK(w);
	st_name(w->g.name);
	c.nodes = c.nodes ? c.nodes : c.members;
	c.events = SPINDLE_WANT_VIEW;
	c.recvinfo = true;
	w->seed = st_env("SPINDLE_SEED", 1);
	w->g.nodes = c.nodes;
	w->n = c.members;
	CHECK(w->n <= MEMBERS);
	for (i = 0; i < w->n; i++) {
		w->m[i].w = w;
		w->m[i].tag = i + 1;
		w->m[i].node = i % c.nodes;
		w->m[i].talks = !(c.receivers >> i & 1);
		w->m[i].seq = -1;
	}
	for (i = 0; i < w->n; i++) {
		if (i != own) {
			enter(w, &c, i);
			continue;
		}
		CHECK_OK(pipe(in));
		w->program = mmap(NULL, sizeof(*w->program), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		CHECK(w->program != MAP_FAILED);
		w->pid = CHECK_OK(fork());
		if (!w->pid) {
			enter(w, &c, i);
			CHECK_EQ(write(in[1], "", 1), 1);
			be_program(w, i);
		}
		CHECK_EQ(read(in[0], &byte, 1), 1);
		w->m[i].gone = true;
		w->m[i].talks = false;
	}
	PUMP_UNTIL(w, all_see(w, w->n));
	return w;
}

#define NONE	(~0U)

static struct world *found(struct st_config c)
{
	return found_with(c, NONE);
}

static void close_all(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->n; i++)
		if (!w->m[i].gone)
			go(&w->m[i]);
	for (i = 0; i < w->g.nodes; i++)
		st_wait_gone(i, &w->g);
}

/* Closing */

TEST_SECONDS(each_rank_closes_in_turn, 3 * ST_TEST)
{
	unsigned int who;

	for (who = 0; who < 3; who++) {
		struct world *w = found((struct st_config){ .members = 3 });

		talk_more(w, 100);
		/* as much as there is room for, and not a look behind */
		while (talk(&w->m[who]))
			;
		go(&w->m[who]);
		PUMP_UNTIL(w, all_see(w, 2));
		has_gone(w, &w->m[who], SPINDLE_REASON_EXITED);
		talk_more(w, 100);
		finish_to_the_end(w);
		close_all(w);
	}
}

TEST_SECONDS(each_rank_closes_a_narrow_group, 3 * ST_TEST)
{
	unsigned int who;

	for (who = 0; who < 3; who++) {
		struct world *w = found((struct st_config){
			.members = 3, .window = 4096, .max_msg = 1024, .depth = 16 });

		talk_more(w, 100);
		while (talk(&w->m[who]))
			;
		go(&w->m[who]);
		PUMP_UNTIL(w, all_see(w, 2));
		has_gone(w, &w->m[who], SPINDLE_REASON_EXITED);
		talk_more(w, 100);
		finish_to_the_end(w);
		close_all(w);
	}
}

/* It is as if they were never there: the one that is left talks to itself. */
TEST(all_but_one_close_one_after_the_other)
{
	struct world *w = found((struct st_config){ .members = 6 });
	unsigned int i;

	/* the creator first, some by request */
	for (i = 0; i < 5; i++) {
		talk_more(w, 60);
		CHECK_EQ(tag_of(w, w->m[i].ev.e.member[0].uid + 1), w->m[i].tag);
		if (i & 1)
			leave(&w->m[i]);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 5 - i));
		has_gone(w, &w->m[i], i & 1 ? SPINDLE_REASON_LEFT : SPINDLE_REASON_EXITED);
	}
	talk_more(w, 60);
	CHECK_EQ(st_info(w->m[5].fd).view, 6);
	CHECK_EQ(st_info(w->m[5].fd).rank, 0);
	finish_to_the_end(w);
	close_all(w);
}

TEST_SECONDS(all_but_one_close_at_once, 3 * ST_TEST)
{
	unsigned int round, i;

	for (round = 0; round < 6; round++) {
		struct world *w = found((struct st_config){ .members = 6 });
		struct member *last = &w->m[(round + 5) % 6];

		talk_more(w, 60);
		for (i = 0; i < 5; i++)
			go(&w->m[(round + i) % 6]);
		PUMP_UNTIL(w, all_see(w, 1));
		for (i = 0; i < 5; i++)
			has_gone(w, &w->m[(round + i) % 6], SPINDLE_REASON_EXITED);
		talk_more(w, 20);
		finish_to_the_end(w);
		CHECK(last->ended);
		close_all(w);
	}
}

TEST(three_of_six_close_at_once)
{
	struct world *w = found((struct st_config){ .members = 6 });
	unsigned int i;

	talk_more(w, 60);
	for (i = 0; i < 3; i++)
		go(&w->m[2 * i]);
	PUMP_UNTIL(w, all_see(w, 3));
	for (i = 0; i < 3; i++)
		has_gone(w, &w->m[2 * i], SPINDLE_REASON_EXITED);
	CHECK(st_info(w->m[1].fd).view <= 4);
	talk_more(w, 60);
	finish_to_the_end(w);
	close_all(w);
}

/* Nothing is left of it. */
TEST_SECONDS(everybody_closes_at_once, 3 * ST_TEST)
{
	unsigned int round, i;

	for (round = 0; round < 6; round++) {
		struct world *w = found((struct st_config){ .members = 4, .nodes = 2 + round % 3 });

		talk_more(w, 40);
		while (talk(&w->m[round % 4]))
			;
		for (i = 0; i < 4; i++)
			go(&w->m[(round + i) % 4]);
		close_all(w);
	}
}

TEST(one_after_the_other_on_the_same_node)
{
	struct world *w = found((struct st_config){ .members = 6, .nodes = 2 });
	unsigned int i;

	/* members 1, 3 and 5 are on node 1, which goes with the last of them */
	for (i = 1; i < 6; i += 2) {
		talk_more(w, 60);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 6 - (i + 1) / 2));
		has_gone(w, &w->m[i], SPINDLE_REASON_EXITED);
		CHECK_EQ(w->m[0].ev.e.left, 1);
	}
	talk_more(w, 60);
	finish_to_the_end(w);
	close_all(w);
}

TEST(all_of_a_node_close_at_once)
{
	struct world *w = found((struct st_config){ .members = 6, .nodes = 2 });
	unsigned int i;

	talk_more(w, 60);
	/* the lower half: the creator's node goes in order, and is no lost majority */
	for (i = 0; i < 6; i += 2)
		go(&w->m[i]);
	PUMP_UNTIL(w, all_see(w, 3));
	for (i = 0; i < 6; i += 2)
		has_gone(w, &w->m[i], SPINDLE_REASON_EXITED);
	talk_more(w, 60);
	finish_to_the_end(w);
	close_all(w);
}

TEST(on_the_only_node)
{
	struct world *w = found((struct st_config){ .members = 4, .nodes = 1 });
	unsigned int i;

	for (i = 0; i < 3; i++) {
		talk_more(w, 60);
		if (i & 1)
			leave(&w->m[i]);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 3 - i));
		has_gone(w, &w->m[i], i & 1 ? SPINDLE_REASON_LEFT : SPINDLE_REASON_EXITED);
	}
	finish_to_the_end(w);
	close_all(w);
}

TEST(last_sender_goes)
{
	unsigned int round;

	for (round = 0; round < 2; round++) {
		struct world *w = found((struct st_config){ .members = 3, .receivers = 6 });
		struct member *m = &w->m[0];
		unsigned int i;

		talk_more(w, 100);
		if (round)
			leave(m);
		go(m);
		/* who only receives is in a group all the same */
		PUMP_UNTIL(w, all_see(w, 2));
		has_gone(w, m, round ? SPINDLE_REASON_LEFT : SPINDLE_REASON_EXITED);
		for (i = 1; i < 3; i++) {
			CHECK_EQ(st_info(w->m[i].fd).senders, 0);
			CHECK_EQ(st_info(w->m[i].fd).state, SPINDLE_STATE_ACTIVE);
			st_expect_none(w->m[i].fd);
			CHECK_ERR(send(w->m[i].fd, "x", 1, MSG_NOSIGNAL), EACCES);
		}
		/* and can go as any other */
		go(&w->m[1]);
		PUMP_UNTIL(w, all_see(w, 1));
		CHECK_EQ(w->m[2].ev.e.member[1].flags, SPINDLE_EM_RECEIVER);
		same_streams(w);
		close_all(w);
	}
}

TEST(a_receiver_goes)
{
	struct world *w = found((struct st_config){ .members = 4, .receivers = 6 });
	unsigned int i;

	for (i = 1; i < 3; i++) {
		talk_more(w, 100);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 4 - i));
		has_gone(w, &w->m[i], SPINDLE_REASON_EXITED);
		CHECK_EQ(st_info(w->m[0].fd).senders, 2);
	}
	finish_to_the_end(w);
	close_all(w);
}

TEST(closed_with_much_unread)
{
	struct world *w = found((struct st_config){
		.members = 3, .window = 8192, .max_msg = 1024, .depth = 32 });
	uint64_t sent;

	/* what it has not read holds the others */
	talk_more(w, 20);
	w->m[1].idle = true;
	w->m[1].talks = false;
	do {
		sent = w->m[0].sent + w->m[2].sent;
		pump(w);
		if (sent == w->m[0].sent + w->m[2].sent)
			WAIT_UNTIL(st_rests(&w->g), ST_SOON);
	} while (sent != w->m[0].sent + w->m[2].sent);
	go(&w->m[1]);
	PUMP_UNTIL(w, all_see(w, 2));
	has_gone(w, &w->m[1], SPINDLE_REASON_EXITED);
	talk_more(w, 100);
	finish_to_the_end(w);
	close_all(w);
}

/* A last word, shutdown, and gone before anybody has read it. */
TEST_SECONDS(shutdown_and_close, 3 * ST_TEST)
{
	unsigned int who;

	for (who = 0; who < 3; who++) {
		struct world *w = found((struct st_config){ .members = 3 });
		struct member *m = &w->m[who];

		talk_more(w, 40);
		while (talk(m))
			;
		CHECK_OK(shutdown(m->fd, SHUT_WR));
		go(m);
		PUMP_UNTIL(w, all_see(w, 2));
		has_gone(w, m, SPINDLE_REASON_EXITED);
		talk_more(w, 40);
		finish_to_the_end(w);
		close_all(w);
	}
}

/* The end of the stream is that of those who are left. */
TEST(end_behind_a_view)
{
	struct world *w = found((struct st_config){ .members = 3 });
	unsigned int i;

	talk_more(w, 40);
	for (i = 0; i < 3; i++)
		w->m[i].talks = false;
	for (i = 0; i < 2; i++)
		CHECK_OK(shutdown(w->m[i].fd, SHUT_WR));
	/* the only one that has not shut down */
	PUMP_UNTIL(w, talk(&w->m[2]));
	go(&w->m[2]);
	PUMP_UNTIL(w, w->m[0].ended && w->m[1].ended);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(w->m[i].ev.e.view, 2);
		CHECK_EQ(w->m[i].reason[3], SPINDLE_REASON_EXITED);
		CHECK_SAME(w->m[i].got[3], w->m[2].sent);
	}
	CHECK_SAME(w->m[0].n, w->m[1].n);
	same_streams(w);
	close_all(w);
}

/* Those who have shut down go, and those who have not go on. */
TEST(no_end_while_one_may_speak)
{
	struct world *w = found((struct st_config){ .members = 4 });
	unsigned int i;

	talk_more(w, 40);
	for (i = 0; i < 2; i++) {
		w->m[i].talks = false;
		CHECK_OK(shutdown(w->m[i].fd, SHUT_WR));
		talk_more(w, 20);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 3 - i));
		has_gone(w, &w->m[i], SPINDLE_REASON_EXITED);
		CHECK_EQ(st_info(w->m[2].fd).state, SPINDLE_STATE_ACTIVE);
	}
	talk_more(w, 40);
	CHECK(!w->m[2].ended && !w->m[3].ended);
	finish_to_the_end(w);
	close_all(w);
}

/* With no time for what is under way it may be lost, but for all or for none. */
TEST_SECONDS(linger_of_no_time, 3 * ST_TEST)
{
	unsigned int who;

	for (who = 0; who < 3; who++) {
		struct world *w = found((struct st_config){ .members = 3 });
		struct linger linger = { .l_onoff = 1 };
		struct member *m = &w->m[who], *a = &w->m[(who + 1) % 3], *b = &w->m[(who + 2) % 3];

		CHECK_OK(setsockopt(m->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
		talk_more(w, 60);
		while (talk(m))
			;
		go(m);
		PUMP_UNTIL(w, all_see(w, 2));
		CHECK_EQ(a->reason[m->tag], SPINDLE_REASON_EXITED);
		CHECK_SAME(a->got[m->tag], b->got[m->tag]);
		CHECK_INTACT(a->got[m->tag] <= m->sent);
		printf("# %llu of %llu have come\n", (unsigned long long)a->got[m->tag],
		       (unsigned long long)m->sent);
		talk_more(w, 60);
		finish_to_the_end(w);
		close_all(w);
	}
}

/* Programs */

/* Member @who is a program that talks and comes to its end: killed, or by itself. */
static void program_ends(struct st_config c, unsigned int who, bool killed)
{
	struct world *w = found_with(c, who);
	const struct member *other = &w->m[!who];
	struct member *m = &w->m[who];
	double start;
	int status;

	PUMP_UNTIL(w, other->got[m->tag] > 50);
	if (killed)
		CHECK_OK(kill(w->pid, SIGKILL));
	else
		__atomic_store_n(&w->program->ends, 1, __ATOMIC_RELEASE);
	/* it may wait for the others to read until then */
	PUMP_UNTIL(w, waitpid(w->pid, &status, WNOHANG) == w->pid);
	start = st_now();
	CHECK_EQ(status, killed ? SIGKILL : 0);
	PUMP_UNTIL(w, all_see(w, w->n - 1));
	printf("# known after %.3f s\n", st_now() - start);
	m->sent = __atomic_load_n(&w->program->sent, __ATOMIC_ACQUIRE);
	/* it may have been killed before it came to count its last message */
	if (killed && other->got[m->tag] == m->sent + 1)
		m->sent++;
	has_gone(w, m, SPINDLE_REASON_EXITED);
	talk_more(w, 60);
	finish_to_the_end(w);
	close_all(w);
}

TEST(killed_rank_0)
{
	program_ends((struct st_config){ .members = 3 }, 0, true);
}

TEST(killed_rank_1)
{
	program_ends((struct st_config){ .members = 3 }, 1, true);
}

TEST(killed_rank_2)
{
	program_ends((struct st_config){ .members = 3 }, 2, true);
}

TEST(killed_rank_0_of_two)
{
	program_ends((struct st_config){ .members = 2 }, 0, true);
}

TEST(killed_rank_1_of_two)
{
	program_ends((struct st_config){ .members = 2 }, 1, true);
}

TEST(killed_beside_others)
{
	program_ends((struct st_config){ .members = 5, .nodes = 2 }, 3, true);
}

TEST(killed_on_the_only_node)
{
	program_ends((struct st_config){ .members = 3, .nodes = 1 }, 1, true);
}

TEST(killed_in_a_narrow_group)
{
	program_ends((struct st_config){
		.members = 3, .window = 4096, .max_msg = 1024, .depth = 16 }, 1, true);
}

TEST(exit_of_rank_0)
{
	program_ends((struct st_config){ .members = 3 }, 0, false);
}

TEST(exit_of_rank_2)
{
	program_ends((struct st_config){ .members = 3 }, 2, false);
}

TEST(exit_beside_others)
{
	program_ends((struct st_config){ .members = 4, .nodes = 2 }, 2, false);
}

TEST_SECONDS(killed_over_and_over, 3 * ST_TEST)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		program_ends((struct st_config){ .members = 2 + i % 3 }, i % 2, true);
}

/* Leaving */

TEST_SECONDS(each_rank_leaves_in_turn, 3 * ST_TEST)
{
	unsigned int who;

	for (who = 0; who < 3; who++) {
		struct world *w = found((struct st_config){ .members = 3 });
		struct member *m = &w->m[who];

		talk_more(w, 100);
		while (talk(m))
			;
		leave(m);
		read_to_its_view(w, m);
		PUMP_UNTIL(w, all_see(w, 2));
		has_gone(w, m, SPINDLE_REASON_LEFT);
		CHECK_SAME(m->got[m->tag], m->sent);
		talk_more(w, 100);
		finish_to_the_end(w);
		close_all(w);
	}
}

/* All talk, and all leave, until one talks to itself. */
TEST(all_but_one_leave_under_load)
{
	struct world *w = found((struct st_config){ .members = 6, .nodes = 3 });
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct member *m = &w->m[(i + 2) % 6];

		talk_more(w, 60);
		leave(m);
		read_to_its_view(w, m);
		PUMP_UNTIL(w, all_see(w, 5 - i));
		has_gone(w, m, SPINDLE_REASON_LEFT);
	}
	finish_to_the_end(w);
	close_all(w);
}

TEST(all_leave_at_once)
{
	struct world *w = found((struct st_config){ .members = 4 });
	unsigned int i;

	talk_more(w, 60);
	for (i = 0; i < 4; i++)
		leave(&w->m[i]);
	for (i = 0; i < 4; i++) {
		struct member *m = &w->m[i];

		PUMP_UNTIL(w, m->ended);
		CHECK_EQ(st_info(m->fd).state, SPINDLE_STATE_CLOSED);
		CHECK_EQ(st_info(m->fd).rank, ~0U);
		CHECK_SAME(m->got[m->tag], m->sent);
	}
	same_streams(w);
	close_all(w);
}

/* What it has not read when it leaves it reads afterwards, however late. */
TEST(left_and_read_late)
{
	struct world *w = found((struct st_config){ .members = 3 });
	struct member *m = &w->m[1];

	talk_more(w, 60);
	m->idle = true;
	leave(m);
	PUMP_UNTIL(w, all_see(w, 2));
	has_gone(w, m, SPINDLE_REASON_LEFT);
	w->m[0].talks = false;
	w->m[2].talks = false;
	PUMP_UNTIL(w, talk(&w->m[0]));
	PUMP_UNTIL(w, w->m[2].got[1] == w->m[0].sent);
	WAIT_UNTIL(st_info(m->fd).state == SPINDLE_STATE_CLOSED, ST_SOON);
	m->idle = false;
	read_to_its_view(w, m);
	CHECK_SAME(m->got[m->tag], m->sent);
	finish_to_the_end(w);
	close_all(w);
}

/* Readers that are late */

/* Who reads late reads all views that it has missed, as if it was not late. */
static void late(bool detached)
{
	struct world *w = found((struct st_config){
		.members = 6, .window = 1 << 20, .depth = 4096 });
	struct member *m = &w->m[4];
	unsigned int i;

	if (detached) {
		int bytes = 4 << 20;

		CHECK_OK(setsockopt(m->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)));
		CHECK_OK(st_option(m->fd, SPINDLE_DETACHED, 1));
	}
	talk_more(w, 20);
	m->idle = true;
	m->talks = false;
	for (i = 0; i < 4; i++) {
		talk_more(w, 40);
		if (i & 1)
			leave(&w->m[i]);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 5 - i));
	}
	st_wait_members(m->fd, 2);
	CHECK_EQ(st_info(m->fd).view, 5);
	CHECK_EQ(m->ev.e.view, 1);
	m->idle = false;
	PUMP_UNTIL(w, m->ev.e.view == 5);
	for (i = 0; i < 4; i++)
		has_gone(w, &w->m[i], i & 1 ? SPINDLE_REASON_LEFT : SPINDLE_REASON_EXITED);
	talk_more(w, 40);
	finish_to_the_end(w);
	close_all(w);
}

TEST(late_reader_over_views)
{
	late(false);
}

TEST(late_detached_reader_over_views)
{
	late(true);
}

/* Links that break */

/* A member on a node that was lost: it has failed, and has read what was delivered. */
static void has_failed(struct world *w, struct member *m)
{
	PUMP_UNTIL(w, m->error);
	if (m->error != ENETDOWN && m->error != ECONNABORTED)
		FAIL("member %u: %s", m->tag, st_err(m->error));
	same_streams(w);
	printf("# member %u: %s after %zu\n", m->tag, st_err(m->error), m->n);
}

/* Whatever of it came to one came to all. */
static void is_lost(struct world *w, const struct member *who)
{
	uint64_t got = 0;
	unsigned int i;

	for (i = 0; i < w->n; i++) {
		if (!reads(&w->m[i]))
			continue;
		CHECK_EQ(w->m[i].reason[who->tag], SPINDLE_REASON_LOST);
		CHECK_INTACT(w->m[i].got[who->tag] <= who->sent);
		CHECK_INTACT(!got || w->m[i].got[who->tag] == got);
		got = w->m[i].got[who->tag];
	}
}

/* Of the two nodes at the ends of a link that breaks the higher rank goes. */
static void break_one_of_three(unsigned int at, unsigned int peer)
{
	unsigned int lost = at > peer ? at : peer, i;
	struct world *w = found((struct st_config){ .members = 3 });

	w->m[lost].breaks = true;
	talk_more(w, 100);
	st_break(at, peer);
	has_failed(w, &w->m[lost]);
	PUMP_UNTIL(w, all_see(w, 2));
	is_lost(w, &w->m[lost]);
	for (i = 0; i < 3; i++)
		CHECK_EQ(!!w->m[i].error, i == lost);
	talk_more(w, 100);
	finish_to_the_end(w);
	close_all(w);
}

TEST(link_of_0_to_1)
{
	break_one_of_three(0, 1);
}

TEST(link_of_1_to_0)
{
	break_one_of_three(1, 0);
}

TEST(link_of_0_to_2)
{
	break_one_of_three(0, 2);
}

TEST(link_of_2_to_1)
{
	break_one_of_three(2, 1);
}

TEST(link_of_1_to_2)
{
	break_one_of_three(1, 2);
}

/* Half of the nodes is a majority if the lowest rank is in it. */
static void break_two(unsigned int at)
{
	struct world *w = found((struct st_config){ .members = 4, .nodes = 2 });
	unsigned int i;

	for (i = 1; i < 4; i += 2)
		w->m[i].breaks = true;
	talk_more(w, 100);
	st_break(at, !at);
	for (i = 1; i < 4; i += 2) {
		has_failed(w, &w->m[i]);
		CHECK_EQ(w->m[i].error, ENETDOWN);
		CHECK_EQ(w->m[i].ev.e.view, 1);
	}
	/* what was delivered there, its members have both read */
	CHECK_SAME(w->m[1].n, w->m[3].n);
	PUMP_UNTIL(w, all_see(w, 2));
	CHECK_EQ(w->m[0].ev.e.left, 2);
	for (i = 1; i < 4; i += 2)
		is_lost(w, &w->m[i]);
	talk_more(w, 100);
	finish_to_the_end(w);
	close_all(w);
}

TEST(link_of_two_nodes_broken_by_the_first)
{
	break_two(0);
}

TEST(link_of_two_nodes_broken_by_the_second)
{
	break_two(1);
}

TEST(node_with_several_members_is_lost)
{
	struct world *w = found((struct st_config){ .members = 9, .nodes = 3 });
	unsigned int i;

	for (i = 1; i < 9; i += 3)
		w->m[i].breaks = true;
	talk_more(w, 100);
	st_break(0, 1);
	for (i = 1; i < 9; i += 3)
		has_failed(w, &w->m[i]);
	PUMP_UNTIL(w, all_see(w, 6));
	CHECK_EQ(w->m[0].ev.e.view, 2);
	CHECK_EQ(w->m[0].ev.e.left, 3);
	for (i = 1; i < 9; i += 3)
		is_lost(w, &w->m[i]);
	talk_more(w, 100);
	finish_to_the_end(w);
	close_all(w);
}

/* One node after the other, down to the one of the lowest rank. */
TEST(four_nodes_are_lost_one_by_one)
{
	struct world *w = found((struct st_config){ .members = 5 });
	unsigned int i;

	for (i = 4; i > 0; i--) {
		talk_more(w, 60);
		w->m[i].breaks = true;
		if (i & 1)
			st_break(i, 0);
		else
			st_break(i - 1, i);
		has_failed(w, &w->m[i]);
		PUMP_UNTIL(w, all_see(w, i));
		is_lost(w, &w->m[i]);
	}
	talk_more(w, 60);
	finish_to_the_end(w);
	close_all(w);
}

/* Who has gone in order counts no more for the majority. */
TEST(majority_is_that_of_the_view)
{
	struct world *w = found((struct st_config){ .members = 5 });
	unsigned int i;

	/* the lowest ranks, then one more, so that nodes 3 and 4 are left */
	for (i = 0; i < 3; i++) {
		talk_more(w, 60);
		go(&w->m[i]);
		PUMP_UNTIL(w, all_see(w, 4 - i));
	}
	w->m[4].breaks = true;
	st_break(4, 3);
	has_failed(w, &w->m[4]);
	CHECK_EQ(w->m[4].error, ENETDOWN);
	PUMP_UNTIL(w, all_see(w, 1));
	is_lost(w, &w->m[4]);
	talk_more(w, 60);
	finish_to_the_end(w);
	close_all(w);
}

/* One closes and another one is lost at the same time. */
TEST_SECONDS(lost_while_others_go, 3 * ST_TEST)
{
	unsigned int round;

	for (round = 0; round < 6; round++) {
		struct world *w = found((struct st_config){ .members = 4 });
		struct member *m = &w->m[round % 3], *lost = &w->m[3];

		lost->breaks = true;
		talk_more(w, 60);
		if (round & 1) {
			go(m);
			st_break(3, (round + 1) % 3);
		} else {
			st_break((round + 1) % 3, 3);
			leave(m);
		}
		PUMP_UNTIL(w, lost->error);
		PUMP_UNTIL(w, (m->gone || m->ended) && all_see(w, 2));
		is_lost(w, lost);
		has_gone(w, m, round & 1 ? SPINDLE_REASON_EXITED : SPINDLE_REASON_LEFT);
		talk_more(w, 60);
		finish_to_the_end(w);
		close_all(w);
	}
}

/* Two halves go on as two groups: their streams are the same up to that view. */
TEST(both_halves_without_a_majority)
{
	struct world *w = found((struct st_config){
		.members = 4, .nodes = 2, .flags = SPINDLE_F_NO_MAJORITY });
	unsigned int i, k;
	size_t same;

	/* each has much of both halves */
	talk_more(w, 100);
	st_break(1, 0);
	PUMP_UNTIL(w, all_see(w, 2));
	for (i = 0; i < 4; i++) {
		struct member *m = &w->m[i];

		CHECK_EQ(m->ev.e.view, 2);
		CHECK_EQ(m->ev.e.left, 2);
		CHECK_EQ(st_info(m->fd).state, SPINDLE_STATE_ACTIVE);
		CHECK_EQ(st_info(m->fd).rank, i / 2);
		for (k = 0; k < 4; k++)
			CHECK_EQ(m->reason[k + 1], k % 2 == i % 2 ? 0 : SPINDLE_REASON_LOST);
	}
	talk_more(w, 100);
	for (i = 0; i < 2; i++) {
		const struct member *a = &w->m[i], *b = &w->m[i + 2];
		size_t n = a->n < b->n ? a->n : b->n;

		CHECK_INTACT(!memcmp(a->log, b->log, n * sizeof(a->log[0])));
	}
	for (same = 0; same < w->m[0].n && same < w->m[1].n; same++)
		if (memcmp(&w->m[0].log[same], &w->m[1].log[same], sizeof(w->m[0].log[0])))
			break;
	printf("# the same for %zu messages\n", same);
	CHECK_INTACT(same >= 1);
	/* and from the view on only each other's */
	for (i = 0; i < 4; i++) {
		bool beyond = false;

		for (k = 0; k < w->m[i].n; k++) {
			uint64_t what = w->m[i].log[k].what;

			if (what & VIEW_ENTRY)
				beyond = what == (VIEW_ENTRY | 2);
			else if (beyond)
				CHECK_SAME((what >> 32) % 2, w->m[i].tag % 2);
		}
	}
	close_all(w);
}

/* The flag takes nothing from a group that loses nobody. */
TEST(members_go_without_a_majority)
{
	struct world *w = found((struct st_config){
		.members = 3, .flags = SPINDLE_F_NO_MAJORITY });

	talk_more(w, 60);
	go(&w->m[0]);
	PUMP_UNTIL(w, all_see(w, 2));
	has_gone(w, &w->m[0], SPINDLE_REASON_EXITED);
	go(&w->m[1]);
	PUMP_UNTIL(w, all_see(w, 1));
	has_gone(w, &w->m[1], SPINDLE_REASON_EXITED);
	finish_to_the_end(w);
	close_all(w);
}

/* Others */

TEST(groups_on_the_same_nodes)
{
	struct world *a = found((struct st_config){ .members = 6, .nodes = 3 });
	struct world *b = found((struct st_config){ .members = 3 });
	unsigned int i;
	size_t before;

	for (i = 0; i < 5; i++) {
		talk_more(a, 20);
		go(&a->m[i]);
		before = b->m[0].n;
		talk_more(b, 20);
		CHECK(b->m[0].n > before);
		PUMP_UNTIL(a, all_see(a, 5 - i));
	}
	finish_to_the_end(a);
	finish_to_the_end(b);
	CHECK_EQ(st_info(a->m[5].fd).view, 6);
	CHECK_EQ(st_info(b->m[0].fd).view, 1);
	close_all(a);
	close_all(b);
}

/* Sixteen become one, in an order that nobody has thought of. */
static void sixteen_to_one(uint64_t seed)
{
	struct world *w = found((struct st_config){
		.members = 16, .nodes = 8, .window = 16384, .max_msg = 2048, .depth = 64 });
	uint32_t reason[MEMBERS] = { 0 };
	unsigned int left = 16, i, k;

	printf("# SPINDLE_SEED=%llu\n", (unsigned long long)seed);
	w->seed = seed;
	while (left > 1) {
		unsigned int gone = 1 + st_random(&seed) % (left > 3 ? 3 : left - 1);

		talk_more(w, st_random(&seed) % 40);
		for (i = 0; i < gone; i++) {
			unsigned int nth = st_random(&seed) % (left - i);
			uint64_t way = st_random(&seed);
			struct member *m;

			/* the nth that is there */
			for (k = 0; reason[k] || nth; k++)
				nth -= !reason[k];
			m = &w->m[k];
			if (way & 1)
				while (talk(m))
					;
			reason[k] = way & 2 ? SPINDLE_REASON_LEFT : SPINDLE_REASON_EXITED;
			if (way & 2)
				leave(m);
			else if (way & 4)
				CHECK_OK(shutdown(m->fd, SHUT_WR));
			/* who leaves may stay to read the rest */
			if (!(way & 2) || way & 8)
				go(m);
			if (way & 16)
				pump(w);
		}
		left -= gone;
		/* some go while others have not gone yet */
		if (st_random(&seed) & 1) {
			for (k = 0; k < 16; k++)
				if (reason[k] == SPINDLE_REASON_LEFT && !w->m[k].gone)
					PUMP_UNTIL(w, w->m[k].ended);
			PUMP_UNTIL(w, all_see(w, left));
		}
	}
	for (k = 0; k < 16; k++)
		if (reason[k] == SPINDLE_REASON_LEFT && !w->m[k].gone)
			read_to_its_view(w, &w->m[k]);
	PUMP_UNTIL(w, all_see(w, 1));
	for (k = 0; k < 16; k++)
		if (reason[k])
			has_gone(w, &w->m[k], reason[k]);
	talk_more(w, 20);
	finish_to_the_end(w);
	printf("# %zu entries, %llu views\n", longest(w)->n,
	       (unsigned long long)longest(w)->ev.e.view);
	close_all(w);
}

TEST_SECONDS(sixteen_become_one, 5 * ST_TEST)
{
	uint64_t seed = st_env("SPINDLE_SEED", 1);
	unsigned int rounds = st_env("SPINDLE_ROUNDS", 3), i;

	for (i = 0; i < rounds; i++)
		sixteen_to_one(seed + i);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
