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
#define HISTORY	4096		/* entries remembered, more than any ring here */
#define LANES	4096		/* that there are in all, one after the other in few slots */

enum kind {
	MESSAGE,
	MINE,			/* state */
	OTHERS_LAST,		/* state for others, by which they are up to date */
	EVENT,
	NOTHING,
};

struct entry {
	enum kind kind;
	unsigned int lane;	/* of an event: its type */
	uint64_t number;	/* of its lane, or of the event */
	uint32_t len;
	bool object;
	bool given;
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
	struct spindle_msg held[HISTORY];	/* by entry */
	uint64_t lane_sent[LANES];
	uint64_t received, views, events;
	unsigned int wanted;
	bool known;		/* which state is this member's */
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
			FAIL("byte %u of %u of message %llu of lane %u is another", i, len,
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

static uint32_t state_for(uint32_t uid)
{
	return SPINDLE_DELIVERY_STATE | uid << SPINDLE_DELIVERY_UID_SHIFT;
}

static void do_state_send(void)
{
	static unsigned char data[1 << 16];
	struct iovec iov = { .iov_len = some_length(&m.rng, fake.c.max_msg) };
	int want = claim_answer(&iov, 1);

	fill(data, 0, m.tail, iov.iov_len);
	CHECK_EQ(spindle_state_send(m.sp, FAKE_UID - below(2), data, iov.iov_len,
				    below(2) ? SPINDLE_INFO_LAST : 0), want);
	if (want)
		return;
	m.tail++;
	m.pos += units(iov.iov_len);
	m.sent_bytes += iov.iov_len;
}

static void remember(enum kind kind, unsigned int lane, uint64_t number, uint32_t len)
{
	m.entries[m.published++ % HISTORY] = (struct entry) { kind, lane, number, len, false };
	CHECK_EQ(m.published, fake.status->published);
}

static enum kind kind_of(uint32_t flags)
{
	if (!flags)
		return MESSAGE;
	if ((flags & ~SPINDLE_DELIVERY_LAST) == state_for(FAKE_UID))
		return MINE;
	return flags & SPINDLE_DELIVERY_LAST ? OTHERS_LAST : NOTHING;
}

static void do_deliver(void)
{
	static unsigned char data[1 << 16];
	unsigned int slot = below(fake.c.slots), lane = fake.rank[slot] - FAKE_RANK;
	uint64_t own = fake.ndelivered;
	uint32_t len, flags;
	bool object;

	if (!slot) {
		if (fake_deliver_own()) {
			struct fake_message *f = &fake.taken[own % FAKE_IN_FLIGHT];

			check_content(fake_own(f->pos), 0, own, f->len);
			remember(kind_of(f->flags), 0, own, f->len);
		}
		return;
	}
	len = some_length(&m.rng, fake.c.max_msg);
	if (!fake.ring[slot] || !fake_room(slot, len))
		return;
	if (!below(6)) {
		flags = 1U << below(32);
		if (flags == SPINDLE_DELIVERY_OBJECT)
			flags |= SPINDLE_DELIVERY_FIN;
		fake_deliver_flags(slot, flags);
		remember(NOTHING, lane, 0, 0);
		return;
	}
	flags = below(6) ? 0 : state_for(FAKE_UID - below(2)) | below(2) * SPINDLE_DELIVERY_LAST;
	fill(data, lane, m.lane_sent[lane], len);
	object = !below(6);
	if (object)
		fake_deliver_object(slot, flags, data, len);
	else
		fake_deliver_state(slot, flags, data, len);
	remember(kind_of(flags), lane, m.lane_sent[lane]++, len);
	m.entries[(m.published - 1) % HISTORY].object = object;
}

/* An event, and with those of a new view perhaps new lanes. */
static void do_event(void)
{
	enum spindle_event_type type = below(2) ? SPINDLE_EVENT_VIEW :
						  1 + below(SPINDLE_EVENT_CURRENT);
	unsigned int i;

	if (!fake_delivery_room())
		return;
	if (type == SPINDLE_EVENT_VIEW) {
		for (i = 1; i < fake.c.slots && fake.lanes < LANES; i++)
			if (below(2))
				fake_renew(i);
		m.views++;
	}
	remember(EVENT, type, fake_event(type), 0);
}

static void do_events(void)
{
	m.wanted = below(2 * SPINDLE_WANT_CURRENT) & SPINDLE_WANT_ALL;
	CHECK_EQ(spindle_events(m.sp, m.wanted), 0);
	CHECK_EQ(fake.wanted, m.wanted);
}

static bool wants(const struct entry *e)
{
	switch (e->kind) {
	case MESSAGE:
		return true;
	case MINE:
		return m.known;
	case OTHERS_LAST:
		return m.known && m.wanted & SPINDLE_WANT_CURRENT;
	case EVENT:
		return m.wanted >> e->lane & 1;
	default:
		return false;
	}
}

static void step(bool given)
{
	struct entry *e = &m.entries[m.next % HISTORY];

	e->given = given;
	if (!given && m.released == m.next)
		m.released++;
	m.next++;
	if (e->kind == EVENT && e->lane == SPINDLE_EVENT_VIEW)
		m.known = true;
}

/* Every look passes over what is not for this program. */
static bool more(void)
{
	while (m.next < m.published && !wants(&m.entries[m.next % HISTORY]))
		step(false);
	return m.next < m.published;
}

static void check_told(void)
{
	CHECK_EQ(fake.user->rx_seen, m.next);
	CHECK_EQ(fake.user->rx_released, m.released);
}

static void release_to(uint64_t end)
{
	struct entry *e;

	for (; m.released < end; m.released++) {
		e = &m.entries[m.released % HISTORY];
		m.received += e->given && e->kind < OTHERS_LAST;
		m.events += e->given && e->kind >= OTHERS_LAST;
	}
	while (m.released < m.next && !m.entries[m.released % HISTORY].given)
		m.released++;
}

static void check_msg(const struct spindle_msg *msg, uint64_t entry)
{
	struct entry *e = &m.entries[entry % HISTORY];
	static unsigned char data[1 << 16];

	CHECK_EQ(msg->entry, entry);
	if (e->kind == OTHERS_LAST) {
		CHECK_EQ(msg->flags, SPINDLE_MSG_EVENT);
		CHECK_EQ(msg->event, SPINDLE_EVENT_CURRENT);
		CHECK_EQ(msg->number, 0);
		CHECK_EQ(msg->rank, 1);
		return;
	}
	if (e->kind == EVENT) {
		CHECK_EQ(msg->flags, SPINDLE_MSG_EVENT);
		CHECK_EQ(msg->event, e->lane);
		CHECK_EQ(msg->number, e->number);
		CHECK_EQ(msg->rank, ~0U);
		return;
	}
	CHECK_EQ(msg->event, 0);
	CHECK_EQ(msg->flags & ~SPINDLE_MSG_LAST, (e->kind == MINE ? SPINDLE_MSG_STATE : 0) |
		 (e->object ? SPINDLE_MSG_OBJECT : 0));
	CHECK_EQ(msg->len, e->len);
	CHECK_EQ(msg->rank, FAKE_RANK + e->lane);
	if (e->object && !msg->data) {
		CHECK_EQ(spindle_object_read(m.sp, msg, 0, data, e->len), 0);
		check_content(data, e->lane, e->number, e->len);
		return;
	}
	CHECK(msg->data);
	check_content(msg->data, e->lane, e->number, e->len);
}

static uint32_t len_of(const struct entry *e)
{
	if (e->kind == OTHERS_LAST)
		return sizeof(struct spindle_event);
	if (e->kind == EVENT)
		return fake.events[e->number % FAKE_EVENTS].size;
	return e->len;
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
		step(true);
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
	if (!m.entries[entry % HISTORY].given)
		return;
	/* still what it was when it was peeked */
	for (i = m.released; i <= entry; i++)
		if (m.entries[i % HISTORY].given)
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
	uint32_t size = below(2) ? fake.c.max_msg : below(200);
	struct spindle_msg msg;
	int want = -EAGAIN;

	if (more())
		want = m.released != m.next ? -EBUSY :
		       len_of(&m.entries[m.next % HISTORY]) > size ? -EMSGSIZE : 0;
	CHECK_EQ(spindle_recv(m.sp, data, size, &msg), want);
	if (!want) {
		check_msg(&msg, m.next);
		CHECK(msg.data == data);
		CHECK_EQ(msg.len, len_of(&m.entries[m.next % HISTORY]));
		step(true);
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

	switch (below(18)) {
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
		if (below(4))
			do_send();
		else
			do_state_send();
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
		fake_set_wakeup(!below(4));
		return;
	case 16:
		if (!below(4))
			do_event();
		break;
	case 17:
		if (!below(8))
			do_events();
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
			.rx_base = below(2) * below(1000),
			.tx_base = below(2) * below(1000),
			.tx_start = below(2) * below(1000),
		};
		c.slots = c.lanes + below(3);
		c.max_msg = 1 + below(c.window);
		printf("# seed %llu, round %lu: window %u, depth %u, max %u, %u deliveries, %u lanes, %u slots\n",
		       (unsigned long long)seed, round, c.window, c.depth, c.max_msg,
		       c.deliveries, c.lanes, c.slots);
		m.sp = fake_member(&c);
		fake.holds = true;
		m.pos = c.tx_start;
		m.published = c.rx_base;
		m.next = c.rx_base;
		m.released = c.rx_base;
		for (i = 0; i < steps / rounds; i++)
			one_step();
		CHECK(m.tail > steps / rounds / 100 && m.received > steps / rounds / 100);
		printf("# %llu views, %llu events read, %u lanes, %u maps\n",
		       (unsigned long long)m.views, (unsigned long long)m.events, fake.lanes,
		       fake.maps);
		CHECK(m.views && m.events);
		fake.holds = false;
		CHECK_EQ(spindle_close(m.sp), 0);
		CHECK_EQ(fake.maps, fake.unmaps);
		munmap(fake.status, fake.rings.status_size);
	}
}

/* Threads */

struct traffic {
	struct spindle *sp;
	uint64_t messages;	/* of the own lane */
	uint64_t seed;
	int how;		/* enum spindle_wait, or 3 for any */
	uint64_t view;
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
			CHECK_EQ(spindle_wait(t->sp, SPINDLE_WRITABLE, some_way(t, &rng), 20000),
				 0);
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

static void a_view_begins(struct traffic *t, const struct spindle_msg *msg)
{
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	size_t size = sizeof(u);

	CHECK_EQ(msg->event, SPINDLE_EVENT_VIEW);
	CHECK_EQ(spindle_event(t->sp, msg->number, &u.event, &size), 0);
	CHECK_EQ(u.event.type, SPINDLE_EVENT_VIEW);
	CHECK(u.event.view > t->view);
	t->view = u.event.view;
}

static void *receiver(void *arg)
{
	static uint64_t next[LANES];
	struct spindle_msg msgs[MOST];
	struct traffic *t = arg;
	uint64_t rng = t->seed + 2;
	unsigned int i, n, lane;
	int ret;

	memset(next, 0, sizeof(next));
	CHECK_EQ(spindle_events(t->sp, SPINDLE_WANT_VIEW), 0);

	for (;;) {
		ret = spindle_peek(t->sp, msgs, 1 + st_random(&rng) % MOST, &n);
		if (ret == -ENODATA)
			break;
		if (ret == -EAGAIN) {
			CHECK_EQ(spindle_wait(t->sp, SPINDLE_READABLE, some_way(t, &rng), 20000),
				 0);
			continue;
		}
		CHECK_EQ(ret, 0);
		for (i = 0; i < n; i++) {
			if (msgs[i].event) {
				a_view_begins(t, &msgs[i]);
				continue;
			}
			lane = msgs[i].rank - FAKE_RANK;
			check_content(msgs[i].data, lane, next[lane]++, msgs[i].len);
		}
		CHECK_EQ(spindle_release(t->sp, msgs[n - 1].entry), 0);
	}
	CHECK_EQ(next[0], t->messages);
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
	struct timespec until;

	fake_set_wakeup(true);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	if (!news() && !__atomic_load_n(&fake.shutdowns, __ATOMIC_ACQUIRE) &&
	    sem_timedwait(&fake.kick, &until) && news())
		FAIL("nobody kicked the engine");
	fake_set_wakeup(false);
	while (!sem_trywait(&fake.kick))
		;
}

static void engine(struct traffic *t)
{
	static unsigned char data[1 << 16];
	static uint64_t number[LANES];
	uint64_t rng = t->seed + 3;
	bool over = false;

	memset(number, 0, sizeof(number));
	while (!over) {
		unsigned int did = fake_take() + fake_collect();
		unsigned int i, slot = st_random(&rng) % fake.c.slots;
		uint32_t len = some_length(&rng, fake.c.max_msg);
		unsigned int lane;

		CHECK_EQ(fake.status->tx_error, 0);
		for (i = st_random(&rng) % 8; i && fake_deliver_own(); i--)
			did++;
		lane = fake.rank[slot] - FAKE_RANK;
		if (slot && st_random(&rng) % 2 && fake_room(slot, len)) {
			fill(data, lane, number[lane]++, len);
			fake_deliver(slot, data, len);
			did++;
		}
		if (!(st_random(&rng) % 64) && fake_room(slot, 0))
			fake_deliver_flags(slot, SPINDLE_DELIVERY_FIN);
		if (!(st_random(&rng) % 128) && fake_delivery_room() && fake.lanes < LANES) {
			if (slot)
				fake_renew(slot);
			fake_event(SPINDLE_EVENT_VIEW);
			did++;
		}
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
		CHECK_EQ(pthread_create(&tx, NULL, sender, &t), 0);
		CHECK_EQ(pthread_create(&rx, NULL, receiver, &t), 0);
		engine(&t);
		CHECK_EQ(pthread_join(tx, NULL), 0);
		CHECK_EQ(pthread_join(rx, NULL), 0);
		CHECK_EQ(spindle_stats(t.sp, &stats), 0);
		CHECK_EQ(stats.sent, messages);
		CHECK(messages < 1000 || t.view > 3);
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
