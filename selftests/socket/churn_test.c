// SPDX-License-Identifier: GPL-2.0
/*
 * Members on many nodes that come, talk, leave, close and are killed, each a program of its
 * own, while connections are cut and mended, and completions come late; and what that costs a
 * host that lives long.
 *
 * Nobody is there from the beginning to the end. Each member notes what it reads, in
 * memory that it shares with the test, and the test puts the one order of the group
 * together from that: whoever reads further than all before adds to it, and whoever
 * reads what has been read must have read the same.
 *
 *	CHURN_SEED	another run
 *	CHURN_CHANGES	so many views, each test has its own default
 *	CHURN_SECONDS	and so long sixteen_nodes goes on
 */
#include "ring.h"

#include <sys/mman.h>

#define NODES	16
#define SLOTS	24		/* members at a time, at most */
#define LOG	4096		/* entries that a member may be ahead of the test */
#define PAST	(1U << 18)	/* entries that one member may be behind another */
#define VIEWS	(1U << 16)	/* the same in views */
#define TAGS	(1U << 20)	/* members in all */
#define UNDER_WAY 8		/* messages of a member that it has not read itself */

/* A message, by its sender's tag, or, with tag 0, the event of view k. */
struct entry {
	uint64_t seq;
	uint32_t tag;
	uint32_t k;
};

enum how {
	COPIES,
	DETACHED,
	MAPPED,
	HOWS,
};

enum end {
	STAYS,
	LEAVES,		/* and reads to the end of its stream */
	CLOSES,
	EXITS,
};

enum state {
	COMING,
	THERE,
	ENDED,		/* it has left, and has read everything */
	REFUSED,	/* nobody there could be asked */
};

/*
 * A member. The test writes what comes first before it starts the program, and then
 * only @end and @seen; the program writes the rest. Entries below @n are complete
 * (release, acquire), and those below @seen may be written again (likewise).
 */
struct guest {
	pid_t pid;
	uint32_t tag;
	unsigned int node;
	unsigned int contact;
	bool first;
	enum how how;
	bool placed;		/* @at is known */
	uint64_t at;		/* place in the order of its entry @seen */

	uint32_t end;
	uint64_t seen;

	uint32_t state;
	int error;		/* why it is REFUSED */
	uint32_t sent;
	uint32_t members;	/* in the last view that it has read of */
	uint64_t n;
	struct entry log[LOG];
};

static struct guest *guests;	/* SLOTS of them, shared with their programs */
static char name[SPINDLE_NAME_LEN];
static uint64_t seed;
static uint32_t tags;
static unsigned int nodes, slots;
static unsigned int hows;
static bool cuts;

/* The order. */
static struct {
	struct entry e[PAST];
	uint64_t n;
	uint64_t view_at[VIEWS];
	uint32_t view;		/* the last one */
	uint32_t said[TAGS];	/* messages of each member */
	uint32_t owed[TAGS];	/* those that it is known to have sent */
	char fate[TAGS][64];
} past;

static struct {
	unsigned int left, closed, exited, killed, refused, cuts, delays;
	int error;	/* of the last one that was refused */
} count;

/* The program */

static uint32_t message_len(uint32_t tag, uint32_t k)
{
	uint64_t state = (uint64_t)tag << 32 | k;

	return 8 + st_random(&state) % 1000;
}

static unsigned char message_byte(uint32_t tag, uint32_t k)
{
	return tag * 31 + k;
}

static void guest_note(struct guest *g, uint64_t seq, uint32_t tag, uint32_t k)
{
	while (g->n - __atomic_load_n(&g->seen, __ATOMIC_ACQUIRE) >= LOG)
		st_pause_us(1000);
	g->log[g->n % LOG] = (struct entry){ seq, tag, k };
	__atomic_store_n(&g->n, g->n + 1, __ATOMIC_RELEASE);
}

/* A message that was read: is it one that somebody sends? True: it is an own one. */
static bool guest_message(struct guest *g, uint64_t seq, const unsigned char *data, size_t len)
{
	uint32_t word[2];
	size_t i;

	CHECK_INTACT(len >= sizeof(word));
	memcpy(word, data, sizeof(word));
	CHECK_SAME(len, message_len(word[0], word[1]));
	for (i = sizeof(word); i < len; i++)
		CHECK_SAME(data[i], message_byte(word[0], word[1]));
	guest_note(g, seq, word[0], word[1]);
	return word[0] == g->tag;
}

/* What came of a look at the stream. */
struct look {
	bool some;
	bool ended;
	uint32_t own;
};

static void guest_read(struct guest *g, int fd, struct look *look)
{
	static struct st_msg m;
	unsigned int i;

	for (i = 0; i < 50 && !look->ended; i++) {
		if (st_recv(fd, &m, MSG_DONTWAIT) < 0) {
			CHECK_EQ(errno, EAGAIN);
			return;
		}
		look->some = true;
		if (!(m.flags & MSG_EOR)) {
			CHECK_SAME(m.len, 0);
			look->ended = true;
		} else if (m.flags & MSG_SPINDLE_EVENT) {
			CHECK_EQ(m.event.type, SPINDLE_EVENT_VIEW);
			__atomic_store_n(&g->members, m.event.members, __ATOMIC_RELAXED);
			guest_note(g, m.event.seq, 0, m.event.view);
		} else {
			CHECK(m.has_info);
			look->own += guest_message(g, m.info.seq, (unsigned char *)m.data, m.len);
		}
	}
}

static const unsigned char *guest_bytes(struct ring *ring,
					const volatile struct spindle_delivery *d)
{
	return ring_lane(ring, d->lane & SPINDLE_DELIVERY_LANE) + (size_t)d->pos * SPINDLE_UNIT;
}

static void guest_peek(struct guest *g, struct ring *ring, struct look *look)
{
	const volatile struct spindle_delivery *d;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		ring->user->rx_seen = ring->next + 1;
		if (ring->next == __atomic_load_n(&ring->status->published, __ATOMIC_ACQUIRE))
			return;
		look->some = true;
		d = &ring->deliveries[ring->next & (ring->r.deliveries - 1)];
		if (d->flags & SPINDLE_DELIVERY_EVENT)
			guest_note(g, d->seq, 0, d->pos);
		else if (!d->flags)
			look->own += guest_message(g, d->seq, guest_bytes(ring, d), d->len);
		ring_release(ring);
	}
}

static bool guest_send(struct guest *g, int fd)
{
	static unsigned char data[2048];
	uint32_t k = g->sent + 1;
	uint32_t len = message_len(g->tag, k);

	memset(data, message_byte(g->tag, k), len);
	memcpy(data, &g->tag, 4);
	memcpy(data + 4, &k, 4);
	if (send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		CHECK_EQ(errno, EAGAIN);
		return false;
	}
	__atomic_store_n(&g->sent, k, __ATOMIC_RELAXED);
	return true;
}

/* It joins, or finds that whom it asks has gone. */
static bool guest_join(struct guest *g, int fd)
{
	struct st_config c = {
		.members = 1, .max_members = SPINDLE_MAX_MEMBERS, .window = 65536,
	};
	struct spindle_group_create create = st_create_of(&c, name);
	struct spindle_group_join join = { 0 };

	if (g->first) {
		CHECK_OK(st_create(fd, &create));
		return true;
	}
	snprintf(join.name, sizeof(join.name), "%s", name);
	st_contact(&join, st_addr(g->contact));
	if (!st_join(fd, &join))
		return true;
	if (errno != ENOENT && errno != ECONNREFUSED && errno != EHOSTUNREACH &&
	    errno != EHOSTDOWN && errno != ELOOP)
		BROKEN("guest %u: join: %s", g->tag, st_err(errno));
	return false;
}

static void guest_run(struct guest *g)
{
	uint64_t rnd = seed ^ (uint64_t)g->tag << 32;
	static struct ring ring;
	int fd = st_bound(g->node);
	struct look look = { 0 };
	bool leaves = false;
	uint32_t end;

	CHECK_OK(st_option(fd, SPINDLE_EVENTS, SPINDLE_WANT_VIEW));
	CHECK_OK(st_option(fd, SPINDLE_RECVINFO, 1));
	CHECK_OK(st_option(fd, SPINDLE_DETACHED, g->how == DETACHED));
	/* all that it has sent is to arrive, on a slow host as well */
	st_linger(fd, 10 * ST_SOON);
	/* nor is it in a hurry to come */
	st_timeout(fd, SO_SNDTIMEO, 10 * st_bound_ms(ST_SOON));
	if (!guest_join(g, fd)) {
		g->error = errno;
		__atomic_store_n(&g->state, REFUSED, __ATOMIC_RELEASE);
		return;
	}
	if (g->how == MAPPED) {
		st_wait_state(fd, SPINDLE_STATE_ACTIVE);
		ring_map(&ring, fd, SPINDLE_MAP_RX);
	}
	__atomic_store_n(&g->state, THERE, __ATOMIC_RELEASE);
	while (!look.ended) {
		end = __atomic_load_n(&g->end, __ATOMIC_RELAXED);
		if (end == EXITS)
			return;
		if (end == CLOSES) {
			CHECK_OK(close(fd));
			/* What is mapped holds the socket. */
			if (g->how == MAPPED)
				ring_unmap(&ring);
			return;
		}
		if (end == LEAVES && !leaves) {
			leaves = true;
			/* its view may not have begun here */
			st_wait_state(fd, SPINDLE_STATE_ACTIVE);
			CHECK_OK(st_leave(fd));
		}
		look.some = false;
		if (g->how == MAPPED)
			guest_peek(g, &ring, &look);
		else
			guest_read(g, fd, &look);
		while (!leaves && g->sent - look.own < UNDER_WAY && st_random(&rnd) % 3 &&
		       guest_send(g, fd))
			look.some = true;
		if (!look.some)
			poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5);
	}
	CHECK_SAME(look.own, g->sent);
	CHECK_SAME(st_info(fd).error, 0);
	__atomic_store_n(&g->state, ENDED, __ATOMIC_RELEASE);
}

/* The test */

static void show_all(void)
{
	const struct guest *g;

	printf("# view %u, %llu entries, %u members in all, %u refused, the last with %s\n",
	       past.view, (unsigned long long)past.n, tags, count.refused, st_err(count.error));
	for (g = guests; g < guests + slots; g++)
		if (g->pid)
			printf("# guest %u node %u how %u end %u state %u sent %u said %u members %u seen %llu of %llu at %llu\n",
			       g->tag, g->node, g->how, g->end, g->state, g->sent,
			       past.said[g->tag], g->members, (unsigned long long)g->seen,
			       (unsigned long long)g->n,
			       g->placed ? (unsigned long long)g->at : 0ULL);
	fflush(stdout);
	/* and what the nodes say of each other */
	(void)!system("for i in /sys/kernel/debug/spindle/*/*/sst; do echo \"# $i\"; sed 's/^/# /; /^# lane/d' $i; done");
}

#define CHURN_BROKEN(...)	do { show_all(); BROKEN(__VA_ARGS__); } while (0)

/* As WAIT_UNTIL(), while the test goes on. */
#define WAIT_PUMP(cond)							\
	do {								\
		double __end = st_now() + st_bound_s(4 * ST_SOON);	\
									\
		while (pump(), !(cond)) {				\
			if (st_now() > __end) {				\
				show_all();				\
				FAIL("not so: %s", #cond);		\
			}						\
			st_pause_us(1000);				\
		}							\
	} while (0)

static void past_add(const struct entry *e, uint32_t by)
{
	if (!e->tag) {
		if (e->k != past.view + 1)
			CHURN_BROKEN("guest %u reads view %u after view %u", by, e->k, past.view);
		past.view = e->k;
		past.view_at[e->k % VIEWS] = past.n;
	} else {
		CHECK(e->tag < TAGS);
		if (e->k != past.said[e->tag] + 1)
			CHURN_BROKEN("guest %u reads message %u of guest %u after its %u", by,
				     e->k, e->tag, past.said[e->tag]);
		past.said[e->tag]++;
	}
	past.e[past.n++ % PAST] = *e;
}

/* Compare what a member has read since the last time. */
static void guest_compare(struct guest *g)
{
	uint64_t n = __atomic_load_n(&g->n, __ATOMIC_ACQUIRE), seen;
	const struct entry *e, *was;

	for (seen = g->seen; seen != n; seen++) {
		e = &g->log[seen % LOG];
		if (!g->placed) {
			CHECK_SAME(e->tag, 0);
			/* Who was there before it has to read as far. */
			if (e->k > past.view && !g->first)
				return;
			g->placed = true;
			g->at = g->first ? past.n : past.view_at[e->k % VIEWS];
		}
		if (g->at == past.n) {
			past_add(e, g->tag);
		} else {
			CHECK(past.n - g->at <= PAST);
			was = &past.e[g->at % PAST];
			if (e->seq != was->seq || e->tag != was->tag || e->k != was->k)
				CHURN_BROKEN("guest %u has %u:%u at %llu, others %u:%u at %llu",
					     g->tag, e->tag, e->k, (unsigned long long)e->seq,
					     was->tag, was->k, (unsigned long long)was->seq);
		}
		g->at++;
		__atomic_store_n(&g->seen, seen + 1, __ATOMIC_RELEASE);
	}
}

static void guest_start(struct guest *g, const struct guest *contact)
{
	pid_t pid;

	memset(g, 0, offsetof(struct guest, log));
	g->tag = ++tags;
	CHECK(g->tag < TAGS);
	g->node = st_random(&seed) % nodes;
	g->how = g->tag % hows;
	g->first = !contact;
	if (contact)
		g->contact = contact->node;
	fflush(stdout);
	pid = CHECK_OK(fork());
	if (!pid) {
		guest_run(g);
		_exit(0);
	}
	g->pid = pid;
}

/* A program has ended. */
static void guest_ended(struct guest *g, int status)
{
	uint32_t sent = g->sent;

	if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
		show_all();
		FAIL("guest %u: status %#x", g->tag, status);
	}
	guest_compare(g);
	count.refused += g->state == REFUSED;
	if (g->state == REFUSED)
		count.error = g->error;
	count.killed += !!status;
	count.left += g->state == ENDED;
	count.closed += !status && g->end == CLOSES;
	count.exited += !status && g->end == EXITS;
	past.owed[g->tag] = sent;
	snprintf(past.fate[g->tag], sizeof(past.fate[0]), "node %u state %u end %u%s view %u",
		 g->node, g->state, g->end, status ? " killed" : "", past.view);
	g->pid = 0;
}

static void pump(void)
{
	struct guest *g;
	int status;

	for (g = guests; g < guests + slots; g++) {
		if (!g->pid)
			continue;
		guest_compare(g);
		if (CHECK_OK(waitpid(g->pid, &status, WNOHANG)) == g->pid)
			guest_ended(g, status);
	}
}

/* Is it one by which others can find their place in the order? */
static bool guest_leads(const struct guest *g)
{
	return g->pid && g->placed && !g->end && g->how != MAPPED;
}

static struct guest *guest_any(bool leads)
{
	unsigned int i, at = st_random(&seed) % slots;

	for (i = 0; i < slots; i++) {
		struct guest *g = &guests[(at + i) % slots];

		if (leads ? guest_leads(g) : g->pid && !g->end)
			return g;
	}
	return NULL;
}

static struct guest *guest_none(void)
{
	struct guest *g;

	for (g = guests; g < guests + slots; g++)
		if (!g->pid)
			return g;
	return NULL;
}

static unsigned int guests_that(bool lead)
{
	unsigned int n = 0;
	struct guest *g;

	for (g = guests; g < guests + slots; g++)
		n += lead ? guest_leads(g) : !!g->pid;
	return n;
}

static void guest_goes(struct guest *g)
{
	static const enum end ends[] = { LEAVES, CLOSES, EXITS };
	unsigned int how = st_random(&seed) % 4;

	if (how == 3) {
		CHECK_OK(kill(g->pid, SIGKILL));
		g->end = EXITS;
	} else if (!how && g->how == MAPPED) {
		__atomic_store_n(&g->end, CLOSES, __ATOMIC_RELAXED);
	} else {
		__atomic_store_n(&g->end, ends[how], __ATOMIC_RELAXED);
	}
}

/* Two nodes lose their connection, if they have one, and may have another at once. */
static void cut(void)
{
	unsigned int node = st_random(&seed) % nodes;
	unsigned int peer = (node + 1 + st_random(&seed) % (nodes - 1)) % nodes;
	char path[128], text[64];

	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/cut", st_addr(node));
	snprintf(text, sizeof(text), "-%s", st_addr(peer));
	/* there may be no such node now; one that goes forgets it */
	if (st_write_file(path, text + 1))
		count.cuts += st_write_file(path, text);
}

/* One node learns late what completes at another one, until @ms is 0. */
static void delay(unsigned int ms)
{
	static char path[128], text[64];
	unsigned int node, peer;

	if (*path) {
		st_write_file(path, text);
		*path = 0;
	}
	if (!ms)
		return;
	node = st_random(&seed) % nodes;
	peer = (node + 1 + st_random(&seed) % (nodes - 1)) % nodes;
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/delay", st_addr(node));
	snprintf(text, sizeof(text), "%s %u", st_addr(peer), ms);
	count.delays += st_write_file(path, text);
	snprintf(text, sizeof(text), "-%s", st_addr(peer));
}

static void begin(unsigned int on_nodes, unsigned int at_a_time)
{
	nodes = on_nodes;
	slots = at_a_time;
	st_addr(nodes - 1);
	guests = mmap(NULL, SLOTS * sizeof(*guests), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(guests != MAP_FAILED);
	seed = st_env("CHURN_SEED", 1);
	cuts = st_env("CHURN_CUTS", 1);
	st_name(name);
	/*
	 * User-mode Linux reads the list of a program's maps without a lock when pages in
	 * them go, and lockdep says so.
	 */
	hows = access("/proc/lockdep", F_OK) ? HOWS : MAPPED;
	/* The first one is to be no mapped one. */
	tags = hows - 1;
	guest_start(&guests[0], NULL);
	WAIT_PUMP(guests[0].placed);
}

/* Until there were so many views more, and so much time has gone by. */
static void churn(unsigned int changes, unsigned int seconds)
{
	uint32_t until = past.view + changes, last = past.view;
	double end = st_now() + seconds, bound = 0;
	unsigned int want = slots / 2;
	struct guest *g;

	while (past.view < until || st_now() < end) {
		pump();
		if (past.view != last || !bound) {
			last = past.view;
			bound = st_now() + st_bound_s(2 * ST_SOON);
		}
		if (st_now() > bound) {
			show_all();
			FAIL("no view after view %u", last);
		}
		st_pause_us(500 + st_random(&seed) % 4000);
		if (!(st_random(&seed) % 64))
			want = 4 + st_random(&seed) % (slots - 4);
		if (cuts && !(st_random(&seed) % 32))
			cut();
		if (cuts && !(st_random(&seed) % 64))
			delay(1 + st_random(&seed) % 30);
		if (guests_that(false) < want) {
			guest_start(guest_none(), guest_any(true));
			continue;
		}
		g = guest_any(false);
		/* who comes is to have a chance to, on a slow host as well */
		if (!g || (!g->placed && st_random(&seed) % 64))
			continue;
		if (guests_that(true) > (guest_leads(g) ? 3 : 2))
			guest_goes(g);
	}
}

/* All but one leave, and that one has read all that was ever sent. */
static void settle(void)
{
	struct guest *last = guest_any(true), *g;
	uint32_t tag;

	CHECK(last);
	delay(0);
	for (g = guests; g < guests + slots; g++)
		if (g->pid && !g->end && g != last)
			g->end = g->how == MAPPED ? CLOSES : LEAVES;
	WAIT_PUMP(guests_that(false) == 1);
	WAIT_PUMP(last->members == 1);
	for (tag = 1; tag <= tags; tag++) {
		if (tag == last->tag)
			continue;
		/* it may have been killed before it had counted its last */
		if (past.said[tag] - past.owed[tag] > 1)
			CHURN_BROKEN("guest %u has sent %u messages, %u are in the order: %s", tag,
				     past.owed[tag], past.said[tag], past.fate[tag]);
	}
}

static void finish(void)
{
	struct guest *g = guest_any(true);
	struct st_group group = { 0 };
	unsigned int i;

	g->end = LEAVES;
	WAIT_PUMP(!guests_that(false));
	CHECK_SAME(past.said[g->tag], past.owed[g->tag]);
	snprintf(group.name, sizeof(group.name), "%s", name);
	for (i = 0; i < nodes; i++)
		st_wait_gone(i, &group);
	printf("# %u views, %llu entries, %u members: %u left, %u closed, %u exited, %u were killed, %u refused; %u cuts, %u delays\n",
	       past.view, (unsigned long long)past.n, tags - (hows - 1), count.left, count.closed,
	       count.exited, count.killed, count.refused, count.cuts, count.delays);
}

TEST_SECONDS(sixteen_nodes, 900)
{
	begin(NODES, SLOTS);
	churn(st_env("CHURN_CHANGES", 30), st_env("CHURN_SECONDS", 30));
	settle();
	finish();
}

/* What the host has in use: objects of each slab cache, and what RDMA has made. */
#define CACHES	512

struct usage {
	unsigned int ncaches;
	struct {
		char name[64];
		long objects;
	} cache[CACHES];
	unsigned int pd, qp, cm_id, mr;
	unsigned long long memory;	/* of groups, as the module counts it */
};

static void slab_usage(struct usage *u)
{
	char line[512];
	FILE *f = fopen("/proc/slabinfo", "re");

	u->ncaches = 0;
	/* a kernel without CONFIG_SLUB_DEBUG does not say */
	if (!f)
		return;
	while (u->ncaches < CACHES && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %ld", u->cache[u->ncaches].name,
			   &u->cache[u->ncaches].objects) == 2)
			u->ncaches++;
	}
	fclose(f);
}

static void usage(struct usage *u)
{
	char line[256] = "";
	FILE *f = popen("rdma resource show", "re");

	CHECK(f && fgets(line, sizeof(line), f));
	CHECK_EQ(pclose(f), 0);
	if (sscanf(line, "%*s %*s pd %u cq %*u qp %u cm_id %u mr %u", &u->pd, &u->qp, &u->cm_id,
		   &u->mr) != 4)
		FAIL("rdma says \"%s\"", line);
	CHECK(st_read_file("/proc/sys/net/spindle/mem_used", line, sizeof(line)));
	u->memory = strtoull(line, NULL, 0);
}

/* Has the host so much in use as before, or less? */
static bool usage_fits(const struct usage *before, struct usage *after)
{
	usage(after);
	return after->qp <= before->qp && after->mr <= before->mr &&
	       after->cm_id <= before->cm_id && after->pd <= before->pd &&
	       after->memory <= before->memory;
}

/* Let go of what is free and kept nevertheless, by KASAN above all. */
static void shrink_all(void)
{
	(void)!system("for i in /sys/kernel/slab/*/shrink; do echo 1 > $i; done 2> /dev/null");
}

/* What watches others has objects of its own. */
static bool cache_counts(const char *cache)
{
	return strncmp(cache, "kmemleak", 8) && strcmp(cache, "debug_objects_cache");
}

/* A cache that has grown by more than @limit objects, or NULL; @most: by how many one has. */
static const char *slab_grown(const struct usage *before, struct usage *after, long limit,
			      long *most)
{
	unsigned int i;
	long grown;

	shrink_all();
	slab_usage(after);
	CHECK_EQ(after->ncaches, before->ncaches);
	*most = 0;
	for (i = 0; i < after->ncaches; i++) {
		CHECK(!strcmp(after->cache[i].name, before->cache[i].name));
		grown = after->cache[i].objects - before->cache[i].objects;
		if (!cache_counts(after->cache[i].name) || grown <= *most)
			continue;
		*most = grown;
		if (grown > limit)
			return after->cache[i].name;
	}
	return NULL;
}

/*
 * A host has one member of a group all the time, and others that come and go: in the end
 * it has in use what it had in the beginning. One object lost in eight views is found.
 */
TEST_SECONDS(nothing_grows, 900)
{
	unsigned int changes = st_env("CHURN_CHANGES", 300);
	static struct usage before, after;
	const char *cache;
	long most;
	double end;

	begin(4, 6);
	churn(100, 0);
	settle();
	usage(&before);
	shrink_all();
	slab_usage(&before);
	churn(changes, 0);
	settle();
	end = st_now() + st_bound_s(ST_SOON);
	while (!usage_fits(&before, &after)) {
		if (st_now() > end) {
			show_all();
			FAIL("pd %u qp %u cm_id %u mr %u memory %llu, before that %u %u %u %u %llu",
			     after.pd, after.qp, after.cm_id, after.mr, after.memory, before.pd,
			     before.qp, before.cm_id, before.mr, before.memory);
		}
		st_pause_us(10000);
	}
	/* what the CM has of a connection stays for seconds after its end */
	end = st_now() + st_bound_s(2 * ST_SOON);
	while ((cache = slab_grown(&before, &after, changes / 8 + 64, &most))) {
		if (st_now() > end)
			FAIL("%s has grown by %ld objects in %u views", cache, most, changes);
		st_pause_us(500000);
	}
	printf("# pd %u qp %u cm_id %u mr %u memory %llu, of %u caches one has grown by %ld\n",
	       after.pd, after.qp, after.cm_id, after.mr, after.memory, after.ncaches, most);
	finish();
}

int main(int argc, char **argv)
{
	/* more of it is to be had than a check has time for */
	sixteen_nodes_entry.seconds += 2 * st_env("CHURN_SECONDS", 0);
	nothing_grows_entry.seconds += st_env("CHURN_CHANGES", 0);
	return st_main(argc, argv);
}
