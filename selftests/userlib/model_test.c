// SPDX-License-Identifier: GPL-2.0
/*
 * libspindle against a model of it, by chance: thousands of calls, each with
 * the answer that the model foretells; and with a thread each for sending,
 * receiving and the engine.
 *
 * SPINDLE_TEST_STEPS says how many calls (200000) and messages (half of that),
 * SPINDLE_TEST_SEED where chance begins.
 */
#include "fake.h"

#include <pthread.h>

#define MOST	12		/* messages in a claim, or peeked at once */
#define UID	0x5a5a5a	/* of the member */
#define HISTORY	4096		/* entries remembered, more than any ring here */

enum kind {
	MESSAGE,
	EVENT,		/* of type VIEW; its number is the view's */
	NEITHER,	/* for the library */
};

struct entry {
	unsigned int lane;
	uint64_t number;	/* of its lane */
	uint32_t len;
	enum kind kind;
	uint32_t rank;
	bool given;
	bool private;
};

struct model {
	struct spindle *sp;
	uint64_t rng;

	/* sending, in the library's words */
	uint64_t tail, pos, want_head, want_freed;
	unsigned int claimed;
	struct iovec iov[MOST];
	uint64_t sent_bytes;

	/* receiving */
	struct entry entries[HISTORY];
	uint64_t published, next, released;
	bool wanted;
	struct spindle_msg held[HISTORY];	/* by entry */
	uint64_t lane_sent[SPINDLE_MAX_MEMBERS];
	uint64_t received;
};

static struct model m;

static uint64_t below(uint64_t n)
{
	return st_random(&m.rng) % n;
}

static unsigned char content(unsigned int lane, uint64_t number, uint32_t i)
{
	return (number * 2654435761U >> 5) + lane * 37 + i * (2 * number + 1);
}

static void fill(void *data, unsigned int lane, uint64_t number, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		((unsigned char *)data)[i] = content(lane, number, i);
}

static void check_content(const void *data, unsigned int lane, uint64_t number, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (((const unsigned char *)data)[i] != content(lane, number, i))
			BROKEN("byte %u of %u of message %llu of lane %u is another", i, len,
			       (unsigned long long)number, lane);
}

static uint64_t units(uint64_t len)
{
	return (len + SPINDLE_UNIT - 1) / SPINDLE_UNIT;
}

static uint32_t some_length(uint64_t *rng, uint32_t max)
{
	switch (st_random(rng) % 8) {
	case 0:
		return 0;
	case 1:
		return st_random(rng) % (max + 1);
	case 2:
		return max;
	default:
		return st_random(rng) % (max < 200 ? max : 200);
	}
}

/* What spindle_claim() must say of the lengths in iov. */
static int claim_answer(const struct iovec *iov, unsigned int n)
{
	uint64_t sum = 0, head, freed, window = fake.c.window / SPINDLE_UNIT;
	unsigned int i;

	if (m.claimed)
		return -EBUSY;
	if (!n || n > fake.c.depth - 1)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > fake.c.max_msg)
			return -EMSGSIZE;
		sum += units(iov[i].iov_len);
	}
	if (sum > window)
		return -EINVAL;
	head = m.pos + sum > window ? m.pos + sum - window : 0;
	freed = fake.c.tx_base + m.tail + n;
	freed = freed > fake.c.depth - 1 ? freed - (fake.c.depth - 1) : 0;
	if (fake.status->tx_head < head || fake.status->tx_freed < freed) {
		m.want_head = head;
		m.want_freed = freed;
		return -EAGAIN;
	}
	m.want_head = 0;
	m.want_freed = 0;
	return 0;
}

static void do_claim(void)
{
	unsigned int i, n = below(MOST + 1);
	struct iovec iov[MOST];
	uint64_t pos = m.pos;
	int want;

	for (i = 0; i < n; i++)
		iov[i].iov_len = some_length(&m.rng, fake.c.max_msg + !below(50));
	want = claim_answer(iov, n);
	CHECK_EQ(spindle_claim(m.sp, iov, n), want);
	CHECK_EQ(fake.user->tx_want_head, m.want_head);
	CHECK_EQ(fake.user->tx_want_freed, m.want_freed);
	if (want)
		return;
	for (i = 0; i < n; i++) {
		CHECK(iov[i].iov_base == fake_own(pos));
		pos += units(iov[i].iov_len);
		fill(iov[i].iov_base, 0, m.tail + i, iov[i].iov_len);
	}
	memcpy(m.iov, iov, sizeof(iov));
	m.claimed = n;
}

static void do_commit(void)
{
	unsigned int i, n = below(m.claimed + 2);
	bool shorter = below(2), bad = !n || n > m.claimed;
	uint32_t lens[MOST + 1];

	for (i = 0; i < n && i < m.claimed; i++) {
		lens[i] = m.iov[i].iov_len;
		if (shorter && below(2))
			lens[i] = below(lens[i] + 1);
		if (shorter && !below(30)) {
			lens[i]++;
			bad |= lens[i] > m.iov[i].iov_len;
		}
	}
	CHECK_EQ(spindle_commit(m.sp, n, shorter ? lens : NULL), bad ? -EINVAL : 0);
	if (bad) {
		CHECK_EQ(fake.user->tx_tail, m.tail);
		return;
	}
	for (i = 0; i < n; i++) {
		m.pos += units(lens[i]);
		m.sent_bytes += lens[i];
	}
	m.tail += n;
	CHECK_EQ(fake.user->tx_tail, m.tail);
	m.claimed = shorter ? 0 : m.claimed - n;
	memmove(m.iov, m.iov + n, m.claimed * sizeof(m.iov[0]));
}

static void do_abort(void)
{
	CHECK_EQ(spindle_abort(m.sp), 0);
	m.claimed = 0;
}

static void do_send(void)
{
	static unsigned char data[1 << 16];
	struct iovec iov = { .iov_len = some_length(&m.rng, fake.c.max_msg) };
	int want = claim_answer(&iov, 1);

	fill(data, 0, m.tail, iov.iov_len);
	CHECK_EQ(spindle_send(m.sp, data, iov.iov_len), want);
	if (want)
		return;
	m.tail++;
	m.pos += units(iov.iov_len);
	m.sent_bytes += iov.iov_len;
}

static void remember(unsigned int lane, uint64_t number, uint32_t len, enum kind kind)
{
	uint32_t rank = kind == EVENT ? ~0U : fake_rank(lane, fake.view);

	m.entries[m.published++ % HISTORY] = (struct entry) { lane, number, len, kind, rank };
	CHECK_EQ(m.published, fake.status->published);
}

static void deliver_other(unsigned int lane)
{
	uint32_t flag = 1U << below(32);

	if (below(2)) {
		fake_deliver_view(1 + below(SPINDLE_MAX_MEMBERS), below(SPINDLE_MAX_MEMBERS));
		remember(0, fake.view, 0, EVENT);
		return;
	}
	/* of events there may be other types, and flags beside theirs */
	if (flag == SPINDLE_DELIVERY_EVENT) {
		lane += 2;
		flag |= below(2) ? SPINDLE_DELIVERY_FIN : 0;
	}
	fake_deliver_flags(lane, flag);
	remember(lane, 0, 0, NEITHER);
}

static void do_deliver(void)
{
	static unsigned char data[1 << 16];
	unsigned int lane = below(fake.c.lanes);
	uint64_t own = fake.ndelivered;
	uint32_t len;

	if (!lane) {
		if (fake_deliver_own()) {
			struct fake_message *f = &fake.taken[own % FAKE_IN_FLIGHT];

			check_content(fake_own(f->pos), 0, own, f->len);
			remember(0, own, f->len, MESSAGE);
		}
		return;
	}
	len = some_length(&m.rng, fake.c.max_msg);
	if (!fake_room(lane, len))
		return;
	if (!below(6)) {
		deliver_other(lane);
		return;
	}
	fill(data, lane, m.lane_sent[lane], len);
	if (!below(4)) {
		/* for one member: this one, or one whose number is much like its own */
		uint32_t uid = below(2) ? UID : UID ^ 1U << below(24);

		fake_deliver_private(lane, data, len,
				     SPINDLE_PRIVATE | uid << SPINDLE_UID_SHIFT);
		remember(lane, m.lane_sent[lane]++, len, uid == UID ? MESSAGE : NEITHER);
		m.entries[(m.published - 1) % HISTORY].private = true;
		return;
	}
	fake_deliver(lane, data, len);
	remember(lane, m.lane_sent[lane]++, len, MESSAGE);
}

static struct entry *at(uint64_t entry)
{
	return &m.entries[entry % HISTORY];
}

/* Every look passes over what is no message and no event that is wanted. */
static bool more(void)
{
	for (; m.next < m.published; m.next++) {
		if (at(m.next)->kind == MESSAGE || (at(m.next)->kind == EVENT && m.wanted))
			return true;
		if (m.released == m.next)
			m.released++;
	}
	return false;
}

static void give(void)
{
	at(m.next++)->given = true;
}

static void check_told(void)
{
	CHECK_EQ(fake.user->rx_seen, m.next);
	CHECK_EQ(fake.user->rx_released, m.released);
}

static void release_to(uint64_t end)
{
	for (; m.released < end; m.released++)
		m.received += at(m.released)->kind == MESSAGE;
	while (m.released < m.next && !at(m.released)->given)
		m.released++;
}

static void check_msg(const struct spindle_msg *msg, uint64_t entry)
{
	struct entry *e = at(entry);

	CHECK_SAME(msg->entry, entry);
	CHECK_SAME(msg->rank, e->rank);
	CHECK_SAME(msg->flags, e->kind == EVENT ? SPINDLE_MSG_EVENT :
			       e->private ? SPINDLE_MSG_PRIVATE : 0);
	CHECK_SAME(msg->event, e->kind == EVENT ? SPINDLE_EVENT_VIEW : 0);
	CHECK_SAME(msg->number, e->kind == EVENT ? e->number : 0);
	if (e->kind == EVENT)
		return;
	CHECK_SAME(msg->len, e->len);
	check_content(msg->data, e->lane, e->number, e->len);
}

static uint32_t size_of_event(uint64_t number)
{
	const struct fake_view *view = &fake.views[number % FAKE_VIEWS];

	return sizeof(struct spindle_event) +
	       (view->members + view->left) * sizeof(struct spindle_event_member);
}

static void check_event(const struct spindle_event *event, uint64_t number, size_t size)
{
	const struct fake_view *view = &fake.views[number % FAKE_VIEWS];

	CHECK_SAME(size, size_of_event(number));
	CHECK_SAME(event->number, number);
	CHECK_SAME(event->members, view->members);
	CHECK_SAME(event->left, view->left);
	CHECK_SAME(event->member[view->members + view->left - 1].uid,
		   fake_member_of(number, view->members + view->left - 1).uid);
}

/* Ask for an event that is held, or was. */
static void do_event(void)
{
	static union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	uint64_t i, from = m.published - fake.c.rx_base < 40 ? fake.c.rx_base : m.published - 40;
	size_t size = sizeof(u), need;

	for (i = from; i < m.published && at(i)->kind != EVENT; i++)
		;
	if (i == m.published)
		return;
	need = size_of_event(at(i)->number);
	if (i < m.released) {
		CHECK_EQ(spindle_event(m.sp, at(i)->number, &u.event, &size), -ENOENT);
		return;
	}
	CHECK_EQ(spindle_event(m.sp, at(i)->number, &u.event, &size), 0);
	check_event(&u.event, at(i)->number, size);
	size = sizeof(u.event) + below(need - sizeof(u.event));
	CHECK_EQ(spindle_event(m.sp, at(i)->number, &u.event, &size), -ERANGE);
	CHECK_EQ(size, need);
}

static void do_peek(void)
{
	unsigned int i, n, max = below(MOST) + 1;
	struct spindle_msg msgs[MOST];
	int want = more() ? 0 : -EAGAIN;

	CHECK_EQ(spindle_peek(m.sp, msgs, max, &n), want);
	for (i = 0; i < max && more(); i++) {
		CHECK(i < n);
		check_msg(&msgs[i], m.next);
		m.held[m.next % HISTORY] = msgs[i];
		give();
	}
	CHECK_EQ(n, i);
	/* it looks on only while there is room for more */
	if (n < max)
		more();
	check_told();
}

static void do_release(void)
{
	uint64_t entry, i;

	if (m.released == m.next) {
		CHECK_EQ(spindle_release(m.sp, m.next + below(3)), -EINVAL);
		return;
	}
	entry = m.released + below(m.next - m.released);
	if (!at(entry)->given)
		return;
	/* still what it was when it was peeked */
	for (i = m.released; i <= entry; i++)
		if (at(i)->given)
			check_msg(&m.held[i % HISTORY], i);
	CHECK_EQ(spindle_release(m.sp, entry), 0);
	release_to(entry + 1);
	check_told();
	if (entry > fake.c.rx_base)
		CHECK_EQ(spindle_release(m.sp, entry - 1), 0);
	check_told();
}

static void do_recv(void)
{
	static unsigned char data[1 << 16];
	uint32_t len = 0, size = below(2) ? fake.c.max_msg : below(200);
	struct spindle_msg msg;
	int want = -EAGAIN;

	if (more()) {
		len = at(m.next)->kind == EVENT ? size_of_event(at(m.next)->number) :
						  at(m.next)->len;
		want = m.released != m.next ? -EBUSY : len > size ? -EMSGSIZE : 0;
	}
	CHECK_EQ(spindle_recv(m.sp, data, size, &msg), want);
	if (want == -EMSGSIZE)
		CHECK_EQ(msg.len, len);
	if (!want) {
		check_msg(&msg, m.next);
		CHECK(msg.data == data);
		if (at(m.next)->kind == EVENT)
			check_event((void *)data, at(m.next)->number, msg.len);
		give();
		release_to(m.next);
	}
	check_told();
}

static void do_look(void)
{
	bool room = fake.status->tx_head >= m.want_head && fake.status->tx_freed >= m.want_freed;
	struct spindle_stats stats;

	CHECK_EQ(spindle_wait(m.sp, SPINDLE_READABLE, below(3), 0), more() ? 0 : -ETIMEDOUT);
	check_told();
	CHECK_EQ(spindle_wait(m.sp, SPINDLE_WRITABLE, below(3), 0), room ? 0 : -ETIMEDOUT);
	CHECK_EQ(spindle_stats(m.sp, &stats), 0);
	CHECK_EQ(stats.sent, m.tail);
	CHECK_EQ(stats.sent_bytes, m.sent_bytes);
	CHECK_EQ(stats.received, m.received);
	CHECK_EQ(stats.kicks, fake.kicks);
	CHECK_EQ(stats.waits, 0);
}

static void one_step(void)
{
	unsigned int kicks = fake.kicks;
	uint64_t tail = fake.user->tx_tail, released = fake.user->rx_released;
	bool sleeps = fake.status->flags, told;

	switch (below(17)) {
	case 0 ... 1:
		do_claim();
		break;
	case 2 ... 3:
		do_commit();
		break;
	case 4:
		if (!below(8))
			do_abort();
		break;
	case 5:
		do_send();
		break;
	case 6 ... 8:
		do_deliver();
		break;
	case 9:
		do_peek();
		break;
	case 10:
		do_release();
		break;
	case 11:
		do_recv();
		break;
	case 12:
		do_look();
		break;
	case 13:
		fake_take();
		CHECK_EQ(fake.status->tx_error, 0);
		break;
	case 14:
		fake_collect();
		break;
	case 15:
		fake_set_flags(below(4) ? 0 : SPINDLE_NEED_WAKEUP);
		return;
	case 16:
		do_event();
		if (!below(4)) {
			m.wanted = !m.wanted;
			CHECK_EQ(spindle_events(m.sp, m.wanted ? SPINDLE_WANT_VIEW : 0), 0);
		}
		break;
	}
	told = tail != fake.user->tx_tail || released != fake.user->rx_released;
	/* a call may tell both of a message and of what follows it */
	if (!sleeps || !told)
		CHECK_EQ(fake.kicks, kicks);
	else
		CHECK(fake.kicks > kicks);
}

TEST_SECONDS(each_answer_is_foretold, 600)
{
	unsigned long steps = st_env("SPINDLE_TEST_STEPS", 200000);
	uint64_t seed = st_env("SPINDLE_TEST_SEED", 1);
	unsigned long i, round, rounds = 40;

	for (round = 0; round < rounds; round++) {
		struct fake_config c;

		memset(&m, 0, sizeof(m));
		m.rng = seed * 1000 + round;
		c = (struct fake_config) {
			.window = 4096U << below(3),
			.depth = 16U << below(4),
			.deliveries = 16U << below(6),
			.lanes = 1 + below(4),
			.uid = UID,
			.rx_base = below(2) * below(1000),
			.tx_base = below(2) * below(1000),
			.tx_start = below(2) * below(1000),
		};
		c.max_msg = 1 + below(c.window);
		printf("# seed %llu, round %lu: window %u, depth %u, max %u, %u deliveries, %u lanes\n",
		       (unsigned long long)seed, round, c.window, c.depth, c.max_msg,
		       c.deliveries, c.lanes);
		m.sp = fake_member(&c);
		m.pos = c.tx_start;
		m.published = c.rx_base;
		m.next = c.rx_base;
		m.released = c.rx_base;
		for (i = 0; i < steps / rounds; i++)
			one_step();
		CHECK(m.tail > steps / rounds / 100 && m.received > steps / rounds / 100);
		CHECK_EQ(spindle_close(m.sp), 0);
		munmap(fake.status, fake.rings.status_size);
	}
}

/* Threads */

struct traffic {
	struct spindle *sp;
	uint64_t messages;	/* of the own lane */
	uint64_t seed;
	int how;		/* enum spindle_wait, or 3 for any */
};

static enum spindle_wait some_way(const struct traffic *t, uint64_t *rng)
{
	return t->how < 3 ? t->how : (int)(st_random(rng) % 3);
}

static void *sender(void *arg)
{
	struct traffic *t = arg;
	uint64_t rng = t->seed + 1, number = 0;
	struct iovec iov[MOST];
	uint32_t lens[MOST];
	unsigned int i, n;
	int ret;

	while (number < t->messages) {
		n = 1 + st_random(&rng) % 4;
		if (n > t->messages - number)
			n = t->messages - number;
		for (i = 0; i < n; i++)
			iov[i].iov_len = some_length(&rng, fake.c.max_msg);
		while ((ret = spindle_claim(t->sp, iov, n)) == -EAGAIN)
			CHECK_EQ(spindle_wait(t->sp, SPINDLE_WRITABLE, some_way(t, &rng),
					      st_bound_ms(ST_SOON)), 0);
		CHECK_EQ(ret, 0);
		for (i = 0; i < n; i++) {
			lens[i] = st_random(&rng) % (iov[i].iov_len + 1);
			fill(iov[i].iov_base, 0, number + i, lens[i]);
		}
		CHECK_EQ(spindle_commit(t->sp, n, lens), 0);
		number += n;
	}
	CHECK_EQ(spindle_shutdown(t->sp), 0);
	return NULL;
}

/* The next view; some programs look what is to be said of it, and some do not. */
static void begin_view(struct traffic *t, const struct spindle_msg *msg, uint32_t view)
{
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	size_t size = sizeof(u);

	CHECK_SAME(msg->number, view);
	if (view % 3)
		return;
	CHECK_EQ(spindle_event(t->sp, msg->number, &u.event, &size), 0);
	check_event(&u.event, view, size);
}

static void *receiver(void *arg)
{
	uint64_t next[SPINDLE_MAX_MEMBERS] = { 0 };
	struct spindle_msg msgs[MOST];
	struct traffic *t = arg;
	uint64_t rng = t->seed + 2;
	uint32_t view = 0;
	unsigned int i, n, lane;
	int ret;

	for (;;) {
		ret = spindle_peek(t->sp, msgs, 1 + st_random(&rng) % MOST, &n);
		if (ret == -ENODATA)
			break;
		if (ret == -EAGAIN) {
			CHECK_EQ(spindle_wait(t->sp, SPINDLE_READABLE, some_way(t, &rng),
					      st_bound_ms(ST_SOON)), 0);
			continue;
		}
		CHECK_EQ(ret, 0);
		for (i = 0; i < n; i++) {
			if (msgs[i].flags & SPINDLE_MSG_EVENT) {
				begin_view(t, &msgs[i], ++view);
				continue;
			}
			lane = msgs[i].rank - fake_rank(0, view);
			CHECK_SAME(lane < fake.c.lanes, true);
			check_content(msgs[i].data, lane, next[lane]++, msgs[i].len);
		}
		CHECK_EQ(spindle_release(t->sp, msgs[n - 1].entry), 0);
	}
	CHECK_SAME(next[0], t->messages);
	CHECK_SAME(view, fake.view);
	return NULL;
}

static bool news(void)
{
	return __atomic_load_n(&fake.user->tx_tail, __ATOMIC_ACQUIRE) != fake.ntaken ||
	       __atomic_load_n(&fake.user->rx_released, __ATOMIC_ACQUIRE) != fake.collected;
}

/* Sleep as the kernel's engine does; a kick that does not come is an error. */
static void engine_sleeps(void)
{
	double end = st_now() + st_bound_s(ST_SOON);
	struct timespec until;

	fake_set_flags(SPINDLE_NEED_WAKEUP);
	if (!news() && !__atomic_load_n(&fake.shutdowns, __ATOMIC_ACQUIRE)) {
		do {
			if (news() && st_now() > end)
				FAIL("nobody kicked the engine");
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_sec++;
		} while (sem_timedwait(&fake.kick, &until));
	}
	fake_set_flags(0);
	while (!sem_trywait(&fake.kick))
		;
}

static void engine(struct traffic *t)
{
	uint64_t rng = t->seed + 3, number[SPINDLE_MAX_MEMBERS] = { 0 };
	static unsigned char data[1 << 16];
	bool over = false;

	while (!over) {
		unsigned int did = fake_take() + fake_collect();
		unsigned int i, lane = st_random(&rng) % fake.c.lanes;
		uint32_t len = some_length(&rng, fake.c.max_msg);

		CHECK_EQ(fake.status->tx_error, 0);
		for (i = st_random(&rng) % 8; i && fake_deliver_own(); i--)
			did++;
		if (lane && st_random(&rng) % 2 && fake_room(lane, len)) {
			fill(data, lane, number[lane]++, len);
			fake_deliver(lane, data, len);
			did++;
		}
		if (!(st_random(&rng) % 64) && fake_room(lane, 0))
			fake_deliver_flags(lane, SPINDLE_DELIVERY_FIN);
		if (!(st_random(&rng) % 64) && fake_room(lane, 0))
			fake_deliver_view(1 + st_random(&rng) % 5, st_random(&rng) % 5);
		over = __atomic_load_n(&fake.shutdowns, __ATOMIC_ACQUIRE) && !fake_take() &&
		       fake.ntaken == t->messages && fake.ndelivered == t->messages;
		if (!did && !over && fake.ndelivered == fake.ntaken)
			engine_sleeps();
		else if (!did)
			sched_yield();
	}
	fake_set_state(SPINDLE_STATE_CLOSED, 0);
}

static void traffic(int how)
{
	static const struct fake_config configs[] = {
		{ .max_msg = 300, .lanes = 3 },
		{ .window = 16384, .depth = 128, .deliveries = 32, .max_msg = 1000 },
	};
	uint64_t messages = st_env("SPINDLE_TEST_STEPS", 200000) / 16;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(configs); i++) {
		struct traffic t = {
			.messages = messages,
			.seed = st_env("SPINDLE_TEST_SEED", 1) * 100 + i * 10,
			.how = how,
		};
		struct spindle_stats stats;
		pthread_t tx, rx;

		t.sp = fake_member(&configs[i]);
		CHECK_EQ(spindle_events(t.sp, SPINDLE_WANT_VIEW), 0);
		CHECK_EQ(pthread_create(&tx, NULL, sender, &t), 0);
		CHECK_EQ(pthread_create(&rx, NULL, receiver, &t), 0);
		engine(&t);
		CHECK_EQ(pthread_join(tx, NULL), 0);
		CHECK_EQ(pthread_join(rx, NULL), 0);
		CHECK_EQ(spindle_stats(t.sp, &stats), 0);
		CHECK_EQ(stats.sent, messages);
		CHECK_EQ(stats.kicks, fake.kicks);
		printf("# %llu messages: %llu received, %llu kicks, %llu waits, %llu refused\n",
		       (unsigned long long)messages, (unsigned long long)stats.received,
		       (unsigned long long)stats.kicks, (unsigned long long)stats.waits,
		       (unsigned long long)stats.claims_refused);
		CHECK_EQ(spindle_close(t.sp), 0);
	}
}

TEST_SECONDS(two_threads_that_sleep, 300)
{
	traffic(SPINDLE_WAIT_BLOCK);
}

TEST_SECONDS(two_threads_that_look_first, 300)
{
	traffic(SPINDLE_WAIT_ADAPTIVE);
}

TEST_SECONDS(two_threads_that_spin, 300)
{
	traffic(SPINDLE_WAIT_SPIN);
}

TEST_SECONDS(two_threads_that_wait_in_any_way, 300)
{
	traffic(3);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
