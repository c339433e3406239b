// SPDX-License-Identifier: GPL-2.0
/*
 * A node that breaks every rule of the wire format, beside two that keep them.
 *
 * Each case makes a group of three nodes: one of the module's, then the hostile
 * one (peer.h), which becomes a member like any other and sends a message, then
 * another of the module's. The hostile one does its harm. Then the two go on:
 * what each of them was given is the same, nothing they sent is missing, the
 * hostile one is in their view no more if it can be told apart, the kernel's
 * log says why, and they can make another group.
 */
#include "peer.h"
#include "../../kmod/core/schedule.h"

#define PEER_NODE	0	/* address of the hostile one: the lowest, so it connects */
#define MAX_TAKEN	4096

static struct peer evil;
static char group[SPINDLE_NAME_LEN];
static int fd[2];
static unsigned int suspect_ms = ST_PATIENT_MS;
static uint32_t taken[2][MAX_TAKEN];
static unsigned int ntaken[2];
static unsigned int nsent[2];
static unsigned int from_evil;	/* messages of the hostile one that both were given */
static int kmsg = -1;
static uint64_t seed = 1;

/* The kernel's log */

static void log_begin(void)
{
	kmsg = CHECK_OK(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	CHECK_OK(lseek(kmsg, 0, SEEK_END));
}

/* Does the log say so, of this group or of the hostile node? */
static bool log_says(const char *what)
{
	static char said[65536];
	static size_t len;
	ssize_t n;

	while (len < sizeof(said) - 2048) {
		n = read(kmsg, said + len, 2048);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		len += n;
		said[len] = 0;
	}
	return strstr(said, what);
}

/*
 * The kernel lets ten lines of a kind pass in five seconds: have so many of this
 * module's come in that time? One test by itself never gets there.
 */
static bool log_is_full(void)
{
	unsigned long long now, at;
	unsigned int lines = 0;
	struct timespec ts;
	char text[2048];
	ssize_t n;
	int all;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
	all = CHECK_OK(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	while ((n = read(all, text, sizeof(text) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		text[n] = 0;
		if (sscanf(text, "%*u,%*u,%llu", &at) == 1 && at + 10000000 > now &&
		    strstr(text, ";spindle: "))
			lines++;
	}
	close(all);
	return lines >= 10;
}

/* Messages: who sent it, and which of his it is. */

static void drain(unsigned int i)
{
	static struct {
		uint32_t who, nr;
		uint8_t bytes[PEER_MAX_OBJECT];
	} msg;
	ssize_t n, k;

	for (;;) {
		n = recv(fd[i], &msg, sizeof(msg), MSG_DONTWAIT);
		for (k = 8; k < n; k++)
			if (msg.bytes[k - 8] != (uint8_t)(k * 7 >> 3))
				FAIL("member %u: byte %zd of an object of %zd is %#x", i, k, n,
				     msg.bytes[k - 8]);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			FAIL("member %u: recv: %s", i, st_err(errno));
		if (!n)
			FAIL("member %u: the stream has ended", i);
		CHECK(ntaken[i] < MAX_TAKEN);
		taken[i][ntaken[i]++] = msg.who << 16 | msg.nr;
	}
}

static void turn(void)
{
	peer_pump(&evil);
	drain(0);
	drain(1);
}

#define UNTIL(cond, secs)						\
	do {								\
		double __end = st_now() + (secs);			\
									\
		while (!(cond)) {					\
			if (st_now() > __end)				\
				FAIL("not so in %g s: %s (links %d %d, views %llu %llu, "	\
				     "%u %u taken)", (double)(secs), #cond,		\
				     evil.link[0].up, evil.link[1].up,		\
				     (unsigned long long)st_info(fd[0]).view,	\
				     (unsigned long long)st_info(fd[1]).view,	\
				     ntaken[0], ntaken[1]);		\
			turn();						\
			st_pause_us(200);				\
		}							\
	} while (0)

static void say(unsigned int i)
{
	struct { uint32_t who, nr; } msg = { i + 1, nsent[i] };
	double end = st_now() + 2 * ST_SOON;

	while (send(fd[i], &msg, sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EAGAIN)
			FAIL("member %u: send: %s", i, st_err(errno));
		if (st_now() > end)
			FAIL("member %u: no room to send", i);
		turn();
		st_pause_us(200);
	}
	nsent[i]++;
}

/* An object of the first one. */
static void say_object(void)
{
	static uint8_t bytes[PEER_MAX_OBJECT];
	uint32_t head[2] = { 1, nsent[0]++ };
	size_t k;

	for (k = 8; k < sizeof(bytes); k++)
		bytes[k] = k * 7 >> 3;
	memcpy(bytes, head, 8);
	CHECK_EQ(CHECK_OK(send(fd[0], bytes, sizeof(bytes), MSG_NOSIGNAL)), sizeof(bytes));
}

/* All that was sent has come to both, in one order, once each. */
static void check_order(void)
{
	unsigned int next[3] = { 0 };
	unsigned int i;

	UNTIL(ntaken[0] >= nsent[0] + nsent[1] + from_evil &&
	      ntaken[1] >= nsent[0] + nsent[1] + from_evil, 3 * ST_SOON);
	CHECK_EQ(ntaken[0], ntaken[1]);
	for (i = 0; i < ntaken[0]; i++) {
		unsigned int who = taken[0][i] >> 16, nr = taken[0][i] & 0xffff;

		if (taken[0][i] != taken[1][i])
			FAIL("message %u is %#x to one and %#x to the other", i, taken[0][i],
			     taken[1][i]);
		CHECK(who < 3);
		CHECK_EQ(nr, next[who]);
		next[who]++;
	}
	CHECK_EQ(next[1], nsent[0]);
	CHECK_EQ(next[2], nsent[1]);
}

static void flow(unsigned int n)
{
	while (n--) {
		say(0);
		say(1);
	}
	check_order();
}

/* The group of three, in which the hostile one behaves so far */

static void begin_with(struct st_config c, unsigned int algorithm)
{
	struct spindle_group_join join = { 0 };
	struct spindle_group_create create;
	struct { uint32_t who, nr; } hello = { 0, 0 };
	struct sp_desc d = { .len = sizeof(hello) };
	unsigned int i;

	c.members = 3;
	c.max_members = 8;
	c.window = PEER_WINDOW;
	c.depth = PEER_DEPTH;
	c.max_msg = PEER_MAX_MSG;
	c.max_object = PEER_MAX_OBJECT;
	c.block = PEER_BLOCK;
	c.algorithm = algorithm;
	c.suspect_ms = suspect_ms;
	log_begin();
	seed = st_env("SPINDLE_SEED", 1);
	evil.from = st_addr(PEER_NODE);
	evil.incarnation = st_random(&seed) ^ getpid();
	evil.cookie = 0x6576696c;
	st_name(group);
	create = st_create_of(&c, group);
	fd[0] = st_bound(1);
	CHECK_OK(st_create(fd[0], &create));
	fd[1] = st_bound(2);
	peer_connect(&evil, 0, st_addr(1));
	peer_connect(&evil, 1, st_addr(2));
	peer_join(&evil, group);
	snprintf(join.name, sizeof(join.name), "%s", group);
	st_contact(&join, st_addr(1));
	CHECK_OK(st_join(fd[1], &join));
	PEER_UNTIL(&evil, evil.seen && evil.link[0].rows.rkey && evil.link[1].rows.rkey &&
		   evil.link[0].lane.rkey && evil.link[1].lane.rkey, 2 * ST_SOON);
	for (i = 0; i < PEER_LINKS; i++)
		peer_grant(&evil, &evil.link[i]);
	for (i = 0; i < 2; i++)
		UNTIL(st_info(fd[i]).state == SPINDLE_STATE_ACTIVE, 2 * ST_SOON);
	CHECK_EQ(st_info(fd[0]).nodes, 3);
	/* a member like others: it is heard, and hears */
	d.index = evil.round;
	d.pos = evil.tail;
	peer_desc(&evil, &d, &hello);
	from_evil = 1;
	flow(5);
}

/* The two of the module's alone, in a group that has room for others. */
static void begin_pair(void)
{
	struct st_config c = {
		.members = 2, .max_members = 8, .window = PEER_WINDOW, .depth = PEER_DEPTH,
		.max_msg = PEER_MAX_MSG,
	};
	struct spindle_group_join join = { 0 };
	struct spindle_group_create create;

	log_begin();
	seed = st_env("SPINDLE_SEED", 1);
	st_name(group);
	create = st_create_of(&c, group);
	fd[0] = st_bound(1);
	CHECK_OK(st_create(fd[0], &create));
	fd[1] = st_bound(2);
	snprintf(join.name, sizeof(join.name), "%s", group);
	st_contact(&join, st_addr(1));
	CHECK_OK(st_join(fd[1], &join));
	flow(5);
}

static void begin(void)
{
	struct st_config c = { 0 };

	begin_with(c, 0);
}

/* The two are alone, in this group, and no stranger to another. */
static void check_others(void)
{
	struct st_config c = { .members = 2, .nodes = 3 };
	struct spindle_group_join join = { 0 };
	struct spindle_group_create create;
	char name[SPINDLE_NAME_LEN];
	int other[2];

	flow(10);
	st_name(name);
	create = st_create_of(&c, name);
	snprintf(create.name, sizeof(create.name), "%s", name);
	other[0] = st_bound(1);
	CHECK_OK(st_create(other[0], &create));
	other[1] = st_bound(2);
	snprintf(join.name, sizeof(join.name), "%s", name);
	st_contact(&join, st_addr(1));
	CHECK_OK(st_join(other[1], &join));
	UNTIL(st_info(other[0]).state == SPINDLE_STATE_ACTIVE &&
	      st_info(other[1]).state == SPINDLE_STATE_ACTIVE, 2 * ST_SOON);
	st_say(other[0], "one");
	UNTIL(st_events(other[1]) & POLLIN, 2 * ST_SOON);
	st_expect(other[1], "one");
	close(other[0]);
	close(other[1]);
}

/* It is put out, and the log says why: @why, or at least that it was. */
static void check_evicted(const char *why)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		UNTIL(st_info(fd[i]).state == SPINDLE_STATE_ACTIVE &&
		      st_info(fd[i]).members == 2, 3 * ST_SOON);
	if (why)
		UNTIL(log_says(why) || log_is_full(), ST_SOON);
	check_others();
}

/* Nobody can tell: it stays, and does no harm. */
static void check_kept(void)
{
	flow(10);
	CHECK_EQ(st_info(fd[0]).members, 3);
	CHECK_EQ(st_info(fd[1]).members, 3);
	check_others();
	CHECK_EQ(st_info(fd[0]).members, 3);
}

#define FAULT	"wrote what no correct node writes"
#define TELLS	"tells what no correct node does"

/* A cell of the row that no correct node writes, to both; the last that it says. */
static void cell_wrong(u32 cell, u64 value)
{
	unsigned int i;

	for (i = 0; i < PEER_LINKS; i++)
		peer_push_cell(&evil, &evil.link[i], cell, value);
	evil.quiet = true;
}

static void cell_is(u32 cell, u64 value)
{
	begin();
	cell_wrong(cell, value);
	check_evicted(FAULT);
}

/* Counters */

static void word_is(u64 word)
{
	cell_is(SP_CELL_LANES, word);
}

TEST(round_jumps_ahead)
{
	word_is(sp_progress(1 << 30, 1));
}

TEST(round_overflows)
{
	word_is(sp_progress(0x80000000, 1));
}

TEST(round_goes_back_and_the_count_ahead)
{
	word_is(sp_progress(0, 2));
}

TEST(count_jumps_ahead)
{
	word_is(sp_progress(PEER_DEPTH, PEER_DEPTH + 2));
}

TEST(more_messages_than_rounds)
{
	word_is(sp_progress(6, 5));
}

TEST(count_goes_far_back)
{
	word_is(sp_progress(0, 1U - PEER_DEPTH - 2));
}

TEST(received_is_all_ones)
{
	cell_is(SP_CELL_RECEIVED, ~0ULL);
}

TEST(received_is_least)
{
	cell_is(SP_CELL_RECEIVED, 1ULL << 63);
}

TEST(received_is_far_ahead)
{
	cell_is(SP_CELL_RECEIVED, 1ULL << 40);
}

TEST(received_goes_back)
{
	cell_is(SP_CELL_RECEIVED, 1);
}

TEST(consumed_ahead_of_what_exists)
{
	cell_is(SP_CELL_CONSUMED, 1ULL << 40);
}

TEST(consumed_goes_back)
{
	cell_is(SP_CELL_CONSUMED, 0);
}

/* It says that it has received what nobody has sent: none of that is delivered. */
TEST(received_a_little_ahead)
{
	unsigned int i;

	begin();
	for (i = 0; i < PEER_LINKS; i++)
		peer_push_cell(&evil, &evil.link[i], SP_CELL_RECEIVED,
			       evil.link[i].received + 50);
	/* from there it would go back: it says so for as long as it is true */
	evil.quiet = true;
	for (i = 0; i < 3; i++) {
		say(0);
		say(1);
	}
	UNTIL(ntaken[0] >= 10 + from_evil && ntaken[1] >= 10 + from_evil, ST_SOON);
	evil.quiet = false;
	check_evicted(FAULT);
}

/* Cells that do not hold together are no news, however long they stand there. */
static void garbage(int how)
{
	struct sp_cell cells[SP_ROW_MAX / sizeof(struct sp_cell)];
	unsigned int i, k, n;
	u8 *bytes = (u8 *)cells;

	begin();
	for (k = 0; k < 20; k++)
		for (i = 0; i < PEER_LINKS; i++) {
			n = peer_row(&evil, &evil.link[i], cells);
			if (how == 2) {
				/* half of each cell is newer than the other */
				cells[SP_CELL_LANES].value += 1ULL << 32;
				cells[SP_CELL_RECEIVED].check ^= 1ULL << k;
				peer_push(&evil, &evil.link[i], cells, n);
				continue;
			}
			for (n = 0; n < SP_ROW_MAX; n++)
				bytes[n] = how ? 0xff : st_random(&seed);
			/* all of the row, and behind it */
			n = evil.link[i].polled ? SP_ROW_MAX : 512;
			peer_push(&evil, &evil.link[i], cells, n / sizeof(cells[0]));
			turn();
		}
	for (i = 0; i < PEER_LINKS; i++)
		evil.link[i].told_received = 0;
	check_kept();
}

TEST(row_of_random_bytes)
{
	garbage(0);
}

TEST(row_of_ones)
{
	garbage(1);
}

TEST(row_is_torn)
{
	garbage(2);
}

/* Descriptors */

static void desc_is(struct sp_desc d)
{
	struct sp_cell cells[SP_CELL_LANES + 1];
	unsigned int i, n;

	peer_desc(&evil, &d, NULL);
	for (i = 0; i < PEER_LINKS; i++) {
		n = peer_row(&evil, &evil.link[i], cells);
		peer_push(&evil, &evil.link[i], cells, n);
	}
	evil.quiet = true;
	check_evicted(FAULT);
}

static struct sp_desc good(void)
{
	begin();
	return (struct sp_desc){ .index = evil.round, .len = 8, .pos = evil.tail };
}

TEST(message_larger_than_allowed)
{
	struct sp_desc d = good();

	d.len = PEER_MAX_MSG + 1;
	desc_is(d);
}

TEST(message_larger_than_the_ring)
{
	struct sp_desc d = good();

	d.len = ~0U;
	desc_is(d);
}

TEST(message_beside_its_place)
{
	struct sp_desc d = good();

	d.pos += 1;
	desc_is(d);
}

TEST(message_of_a_turn_that_is_over)
{
	struct sp_desc d = good();

	d.index -= 1;
	desc_is(d);
}

TEST(message_of_a_turn_not_promised)
{
	struct sp_desc d = good();

	d.index += 1000;
	desc_is(d);
}

TEST(message_with_unknown_flags)
{
	struct sp_desc d = good();

	d.flags = 1 << 1;
	desc_is(d);
}

TEST(object_of_no_bytes)
{
	struct sp_desc d = good();

	d.len = 0;
	d.flags = SP_DESC_OBJECT;
	desc_is(d);
}

TEST(object_too_large)
{
	struct sp_desc d = good();

	d.len = PEER_MAX_OBJECT + 1;
	d.flags = SP_DESC_OBJECT;
	desc_is(d);
}

TEST(object_by_no_algorithm)
{
	struct sp_desc d = good();

	d.len = 10000;
	d.flags = SP_DESC_OBJECT | 7 << SP_DESC_KIND_SHIFT;
	desc_is(d);
}

TEST(more_objects_than_allowed)
{
	struct sp_desc d = good();
	unsigned int i;

	d.len = 5000;
	d.flags = SP_DESC_OBJECT;
	for (i = 0; i < SP_LANE_OBJECTS; i++) {
		d.index = evil.round;
		d.pos = evil.tail;
		peer_desc(&evil, &d, NULL);
	}
	d.index = evil.round;
	desc_is(d);
}

/* The ring's worth and one unit more, of which none can have been consumed. */
TEST(ring_is_overrun)
{
	struct sp_desc d = good();
	unsigned int i;

	d.len = PEER_MAX_MSG;
	for (i = 0; i < PEER_WINDOW / PEER_MAX_MSG; i++) {
		d.index = evil.round;
		d.pos = evil.tail;
		peer_desc(&evil, &d, NULL);
	}
	d.index = evil.round;
	d.pos = evil.tail;
	desc_is(d);
}

/* Tells */

static u8 tell_room[SP_TELL_MAX];

/* A tell that says nothing, of the view as it is. */
static struct sp_wire_tell *tell(void)
{
	struct sp_wire_tell *w = (struct sp_wire_tell *)tell_room;

	memset(tell_room, 0, sizeof(tell_room));
	w->view = evil.view;
	w->nmembers = 3;
	w->nlanes = 3;
	return w;
}

static u64 *tell_trim(struct sp_wire_tell *w)
{
	return w->data + w->nlanes;
}

static struct sp_newcomer *tell_asks(struct sp_wire_tell *w)
{
	return (struct sp_newcomer *)(w->data + 2 * w->nlanes);
}

static u8 *tell_leaves(struct sp_wire_tell *w)
{
	return (u8 *)(tell_asks(w) + w->nasks + w->njoins);
}

static u32 tell_len(const struct sp_wire_tell *w)
{
	return sizeof(*w) + 2 * w->nlanes * 8 +
		(w->nasks + w->njoins) * sizeof(struct sp_newcomer) + 2 * w->nmembers;
}

static void tell_to(unsigned int link, const void *w, u32 len)
{
	u8 room[SP_MSG_MAX];
	struct sp_msg_tell *msg = (struct sp_msg_tell *)room;
	u32 most = SP_MSG_MAX - sizeof(*msg);

	for (msg->off = 0; msg->off < len; msg->off += most) {
		u32 some = len - msg->off < most ? len - msg->off : most;

		msg->gid = evil.gid;
		msg->total = len;
		memcpy(msg->data, (const u8 *)w + msg->off, some);
		peer_say(&evil, &evil.link[link], &msg->hdr, SP_MSG_TELL, sizeof(*msg) + some);
	}
}

static void tell_all(const struct sp_wire_tell *w)
{
	unsigned int i;

	for (i = 0; i < PEER_LINKS; i++)
		tell_to(i, w, tell_len(w));
}

TEST(tell_of_no_sense)
{
	unsigned int i;

	begin();
	for (i = 0; i < sizeof(tell_room); i++)
		tell_room[i] = st_random(&seed);
	tell_to(0, tell_room, sizeof(struct sp_wire_tell) + 100);
	check_evicted(TELLS);
}

TEST(tell_of_too_many)
{
	struct sp_wire_tell *w;
	unsigned int i;

	begin();
	w = tell();
	w->nlanes = ~0U;
	w->nmembers = ~0U;
	for (i = 0; i < PEER_LINKS; i++)
		tell_to(i, w, sizeof(*w) + 100);
	check_evicted(TELLS);
}

/*
 * It is alive, but has no part in the agreement: one finds out about it that may
 * not put out lower ranks by itself, and the others would wait for it for ever.
 */
TEST(silence_about_the_next_view)
{
	struct sp_wire_tell *w;

	suspect_ms = 2000;
	begin();
	w = tell();
	w->nlanes = ~0U;
	tell_to(1, w, sizeof(*w) + 100);
	check_evicted("does not answer");
}

TEST(tell_that_never_ends)
{
	struct sp_msg_tell msg = { .total = ~0U };
	unsigned int i;

	begin();
	msg.gid = evil.gid;
	for (i = 0; i < 100; i++) {
		peer_say(&evil, &evil.link[i % 2], &msg.hdr, SP_MSG_TELL, sizeof(msg));
		msg.off = st_random(&seed);
		turn();
	}
	check_kept();
}

TEST(tell_of_an_absurd_ballot)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->ballot = 4;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(tell_of_an_absurd_reason)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->ballot = 1;
	tell_leaves(w)[w->nmembers] = SP_REASONS;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(tell_for_others_that_they_leave)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	tell_leaves(w)[0] = SP_LEFT;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(tell_of_nodes_that_are_not)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->suspected = 1ULL << 63;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(tell_that_suspects_itself)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->suspected = 1 << 1;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(tell_that_suspects_all_others)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->suspected = 1 << 0 | 1 << 2;
	tell_all(w);
	check_evicted("suspects this node");
}

/* A node that did not ask may be one that does not exist. */
TEST(tell_of_strangers_that_ask)
{
	struct sp_wire_tell *w;
	unsigned int i;

	begin();
	w = tell();
	w->nasks = SP_MAX_JOINS;
	for (i = 0; i < w->nasks; i++) {
		memset(&tell_asks(w)[i], 0x20 + i, sizeof(struct sp_addr));
		tell_asks(w)[i].flags = ~0U;
	}
	tell_all(w);
	check_kept();
}

/* It has promised and accepted, alone: no quorum follows. */
TEST(ack_for_what_was_never_proposed)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->wedged = 1;
	w->ballot = 1;
	tell_trim(w)[0] = 1000;
	tell_all(w);
	evil.quiet = true;
	check_evicted(NULL);
}

TEST(decision_that_lacks_what_was_delivered)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->wedged = 1;
	w->ballot = SP_BALLOT_DECIDED;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(decision_beyond_what_exists)
{
	struct sp_wire_tell *w;
	unsigned int i;

	begin();
	w = tell();
	w->wedged = 1;
	w->ballot = SP_BALLOT_DECIDED;
	for (i = 0; i < 3; i++)
		tell_trim(w)[i] = 1ULL << 40;
	tell_all(w);
	check_evicted(TELLS);
}

TEST(tell_of_a_later_view)
{
	struct sp_wire_tell *w;

	begin();
	w = tell();
	w->view = 1ULL << 60;
	w->ballot = SP_BALLOT_DECIDED;
	tell_all(w);
	w->view = evil.view + 1;
	w->suspected = ~0ULL;
	w->ballot = 3;
	w->nmembers = 64;
	w->nlanes = 64;
	tell_all(w);
	check_kept();
}

/* Messages */

static bool cut(void)
{
	unsigned int i;

	for (i = 0; i < PEER_LINKS; i++)
		if (!evil.link[i].up || evil.link[i].bulk_failed)
			return true;
	return false;
}

/*
 * One link breaks at least, and nobody answers there any more; or the device has
 * refused a block, which not each one tells the other side, too. It hangs up on the
 * other one: else that one would have to find out that it does not answer.
 */
static void check_cut(const char *why)
{
	unsigned int i;

	UNTIL(cut(), 3 * ST_SOON);
	for (i = 0; i < PEER_LINKS; i++)
		if (evil.link[i].up)
			peer_gone(&evil, &evil.link[i]);
	check_evicted(why);
}

static void raw_is(const void *data, u32 len, const char *why)
{
	unsigned int i;

	begin();
	for (i = 0; i < PEER_LINKS; i++)
		peer_send_raw(&evil, &evil.link[i], data, len);
	check_cut(why);
}

TEST(message_of_no_bytes)
{
	raw_is("", 0, "malformed message");
}

TEST(message_shorter_than_its_header)
{
	raw_is("abc", 3, "malformed message");
}

TEST(message_with_another_length)
{
	struct sp_msg msg = { SP_MSG_BEAT, 9, PEER_RECVS };

	raw_is(&msg, sizeof(msg), "malformed message");
}

TEST(message_of_no_type)
{
	struct sp_msg msg = { 999, sizeof(msg), PEER_RECVS };

	raw_is(&msg, sizeof(msg), "unknown or short message 999");
}

TEST(message_too_short_for_its_type)
{
	struct sp_msg msg = { SP_MSG_KEYS, sizeof(msg), PEER_RECVS };

	raw_is(&msg, sizeof(msg), "unknown or short message");
}

TEST(message_longer_than_a_receive)
{
	static u8 much[2 * SP_MSG_MAX];

	raw_is(much, sizeof(much), NULL);
}

TEST(keys_of_another_layout)
{
	u8 room[SP_MSG_MAX] = { 0 };
	struct sp_msg_keys *keys = (struct sp_msg_keys *)room;
	unsigned int i;

	begin();
	keys->gid = evil.gid;
	keys->view = evil.view;
	keys->count = 1;
	keys->keys[0].size = 12345;
	for (i = 0; i < PEER_LINKS; i++)
		peer_say(&evil, &evil.link[i], &keys->hdr, SP_MSG_KEYS,
			 sizeof(*keys) + sizeof(keys->keys[0]));
	check_evicted("has another layout");
}

TEST(keys_more_than_there_are)
{
	struct sp_msg_keys keys = { .count = ~0U };
	unsigned int i;

	begin();
	keys.gid = evil.gid;
	for (i = 0; i < PEER_LINKS; i++)
		peer_say(&evil, &evil.link[i], &keys.hdr, SP_MSG_KEYS, sizeof(keys));
	check_cut(NULL);
}

/* They write where they were told to, and their requests fail. */
TEST(keys_that_are_none)
{
	u8 room[SP_MSG_MAX] = { 0 };
	struct sp_msg_keys *keys = (struct sp_msg_keys *)room;
	unsigned int i;

	begin();
	keys->gid = evil.gid;
	keys->view = evil.view;
	keys->flags = SP_KEY_POLLED;
	keys->count = 1;
	keys->keys[0].size = sizeof(evil.link[0].mem->rows);
	keys->keys[0].iova = ~0ULL - 100;
	keys->keys[0].rkey = 0xdeadbeef;
	for (i = 0; i < PEER_LINKS; i++)
		peer_say(&evil, &evil.link[i], &keys->hdr, SP_MSG_KEYS,
			 sizeof(*keys) + sizeof(keys->keys[0]));
	say(0);
	say(1);
	check_cut(NULL);
}

/* What nobody has asked for, of groups and handles that are not. */
static void nonsense(struct peer_link *l)
{
	u8 room[SP_MSG_MAX];
	struct sp_msg_answer *answer = (void *)room;
	struct sp_msg_leave *leave = (void *)room;
	struct sp_msg_row *row = (void *)room;
	struct sp_msg_wake *wake = (void *)room;
	struct sp_msg_view *view = (void *)room;
	struct sp_msg_join *join = (void *)room;
	struct sp_msg_stop *stop = (void *)room;
	struct sp_msg_go *go = (void *)room;
	struct sp_msg_bye *bye = (void *)room;
	unsigned int i;

	for (i = 0; i < sizeof(room); i++)
		room[i] = st_random(&seed);
	switch (st_random(&seed) % 10) {
	case 0:
		peer_say(&evil, l, &answer->hdr, SP_MSG_ANSWER, sizeof(*answer));
		break;
	case 1:
		leave->gid = st_random(&seed) % 2 ? evil.gid : 1;
		peer_say(&evil, l, &leave->hdr, SP_MSG_LEAVE, sizeof(*leave));
		break;
	case 2:
		peer_say(&evil, l, &row->hdr, SP_MSG_ROW, SP_MSG_MAX);
		break;
	case 3:
		row->handle = l->handle;
		row->ncells = st_random(&seed);
		peer_say(&evil, l, &row->hdr, SP_MSG_ROW, SP_MSG_MAX);
		break;
	case 4:
		peer_say(&evil, l, &wake->hdr, SP_MSG_WAKE, sizeof(*wake));
		break;
	case 5:
		view->gid = evil.gid;
		view->total = 3;
		view->first = 0;
		view->count = 1;
		peer_say(&evil, l, &view->hdr, SP_MSG_VIEW,
			 sizeof(*view) + sizeof(view->members[0]));
		break;
	case 6:
		memset(join->name, 0, sizeof(join->name));
		memcpy(join->name, "nothing", 7);
		peer_say(&evil, l, &join->hdr, SP_MSG_JOIN, sizeof(*join));
		break;
	case 7:
		peer_say(&evil, l, &stop->hdr, SP_MSG_STOP, sizeof(*stop));
		break;
	case 8:
		peer_say(&evil, l, &go->hdr, SP_MSG_GO, sizeof(*go));
		break;
	default:
		/* of another group */
		bye->gid = 7;
		peer_say(&evil, l, &bye->hdr, SP_MSG_BYE, sizeof(*bye));
		break;
	}
}

TEST(nonsense_without_end)
{
	unsigned int i;

	begin();
	for (i = 0; i < 300; i++) {
		nonsense(&evil.link[i % 2]);
		turn();
	}
	check_kept();
}

TEST(bye_with_an_absurd_error)
{
	struct sp_msg_bye bye = { .error = -123456 };
	unsigned int i;

	begin();
	bye.gid = evil.gid;
	for (i = 0; i < PEER_LINKS; i++)
		peer_say(&evil, &evil.link[i], &bye.hdr, SP_MSG_BYE, sizeof(bye));
	check_evicted("has failed");
}

/* It takes what it is told, but does not answer. */
TEST(silence)
{
	suspect_ms = 2000;
	begin();
	evil.quiet = true;
	check_evicted("is silent");
}

/* It posts no receives: what is to be said to it waits, and it is silent, too. */
TEST(it_says_that_it_has_left_and_stays)
{
	struct sp_msg_bye bye = { .error = 0 };
	unsigned int i;

	suspect_ms = 2000;
	begin();
	bye.gid = evil.gid;
	for (i = 0; i < PEER_LINKS; i++)
		peer_say(&evil, &evil.link[i], &bye.hdr, SP_MSG_BYE, sizeof(bye));
	check_evicted("has gone");
}

/* Memory */

static void access_is(enum ibv_wr_opcode opcode, u64 iova, u32 rkey, u32 len)
{
	unsigned int i;

	for (i = 0; i < PEER_LINKS; i++)
		peer_rdma(&evil, &evil.link[i], opcode, iova, rkey, NULL, len);
	UNTIL(!evil.link[0].up, 2 * ST_SOON);
	CHECK_EQ(evil.link[0].status, IBV_WC_REM_ACCESS_ERR);
	check_cut(NULL);
}

TEST(write_behind_the_rows)
{
	begin();
	access_is(IBV_WR_RDMA_WRITE, evil.link[0].rows.iova + evil.link[0].rows.size - 8,
		  evil.link[0].rows.rkey, 64);
}

TEST(write_before_the_lane)
{
	begin();
	access_is(IBV_WR_RDMA_WRITE, evil.link[0].lane.iova - 64, evil.link[0].lane.rkey, 64);
}

TEST(write_of_more_than_the_lane)
{
	begin();
	access_is(IBV_WR_RDMA_WRITE, evil.link[0].lane.iova + evil.link[0].lane.size - 60000,
		  evil.link[0].lane.rkey, 65536);
}

TEST(key_that_was_guessed)
{
	begin();
	access_is(IBV_WR_RDMA_WRITE, evil.link[0].lane.iova, evil.link[0].lane.rkey + 0x100, 64);
}

/* A key to the other's memory, on a connection that it is not of. */
TEST(key_of_another_connection)
{
	begin();
	if (evil.link[0].lane.rkey == evil.link[1].lane.rkey)
		st_skip("the keys are equal");
	access_is(IBV_WR_RDMA_WRITE, evil.link[1].lane.iova, evil.link[1].lane.rkey, 64);
}

/* It was put out; its keys are those of a view that is over. */
TEST(keys_of_an_earlier_view)
{
	struct sp_cell cells[SP_CELL_LANES + 1];
	unsigned int i, k, n;

	begin();
	for (i = 0; i < PEER_LINKS; i++)
		peer_push_cell(&evil, &evil.link[i], SP_CELL_RECEIVED, ~0ULL);
	for (i = 0; i < 2; i++)
		UNTIL(st_info(fd[i]).members == 2, 3 * ST_SOON);
	/* it speaks of the new view, in the bank of that, and of the old one */
	for (k = 0; k < 2; k++)
		for (evil.view = 1; evil.view < 4; evil.view++)
			for (i = 0; i < PEER_LINKS; i++) {
				n = peer_row(&evil, &evil.link[i], cells);
				sp_cell_set(&cells[SP_CELL_RECEIVED], ~0ULL, peer_epoch(&evil));
				peer_push(&evil, &evil.link[i], cells, n);
				peer_rdma(&evil, &evil.link[i], IBV_WR_RDMA_WRITE,
					  evil.link[i].lane.iova, evil.link[i].lane.rkey, NULL,
					  4096);
				turn();
			}
	evil.quiet = true;
	check_evicted(FAULT);
	CHECK_EQ(st_info(fd[0]).view, 2);
	/* once it says bye the keys are taken back, and a write by one is its last */
	for (i = 0; i < PEER_LINKS; i++) {
		struct sp_msg_bye bye = { .gid = evil.gid };

		peer_say(&evil, &evil.link[i], &bye.hdr, SP_MSG_BYE, sizeof(bye));
	}
	evil.quiet = false;
	for (i = 0; evil.link[0].up; i++) {
		CHECK(i < 10000);
		peer_rdma(&evil, &evil.link[0], IBV_WR_RDMA_WRITE, evil.link[0].lane.iova,
			  evil.link[0].lane.rkey, NULL, 64);
		turn();
		st_pause_us(1000);
	}
	CHECK_EQ(evil.link[0].status, IBV_WC_REM_ACCESS_ERR);
	flow(5);
}

/* Objects */

/* One of the first node is on its way: by the hostile one to the other. */
static void begin_object(void)
{
	struct st_config c = { 0 };

	begin_with(c, SPINDLE_ALG_CHAIN);
	say_object();
	UNTIL(evil.link[1].readies, 2 * ST_SOON);
	CHECK(evil.link[1].ready.handle);
	CHECK_EQ(evil.link[1].ready.gid, evil.gid);
}

TEST(object_that_is_not_handed_on)
{
	begin_object();
	cell_wrong(SP_CELL_RECEIVED, ~0ULL);
	check_evicted(FAULT);
}

/* It was put out, and goes on writing to the object, which all others wait for. */
TEST(object_written_by_one_that_was_put_out)
{
	const struct sp_msg_ready *ready = &evil.link[1].ready;
	struct peer_link *l = &evil.link[1];
	unsigned int i;
	double end;

	begin_object();
	memset(l->mem->junk, 0xee, sizeof(l->mem->junk));
	cell_wrong(SP_CELL_RECEIVED, ~0ULL);
	end = st_now() + 3 * ST_SOON;
	for (i = 0; ntaken[1] < nsent[0] + nsent[1] + from_evil; i++) {
		if (st_now() > end)
			FAIL("the object has not come (link %d)", l->up);
		peer_rdma(&evil, l, IBV_WR_RDMA_WRITE, ready->iova + i % 4 * 65536, ready->rkey,
			  NULL, 65536);
		turn();
	}
	/* its link is still there: nothing but the new memory has kept it out */
	CHECK(l->up);
	check_evicted(FAULT);
}

TEST(block_of_no_object)
{
	begin_object();
	CHECK_EQ(peer_connect_bulk(&evil, &evil.link[1], st_addr(2)), 0);
	peer_block(&evil.link[1], evil.link[1].ready.iova, evil.link[1].ready.rkey, PEER_BLOCK,
		   (evil.link[1].ready.handle + 77) << SP_IMM_SHIFT);
	check_cut("a block nobody waits for");
}

TEST(block_out_of_order)
{
	begin_object();
	CHECK_EQ(peer_connect_bulk(&evil, &evil.link[1], st_addr(2)), 0);
	peer_block(&evil.link[1], evil.link[1].ready.iova, evil.link[1].ready.rkey, PEER_BLOCK,
		   evil.link[1].ready.handle << SP_IMM_SHIFT | 5);
	check_cut("a block out of order");
}

TEST(block_that_comes_again)
{
	unsigned int i;

	begin_object();
	CHECK_EQ(peer_connect_bulk(&evil, &evil.link[1], st_addr(2)), 0);
	for (i = 0; i < 2; i++)
		peer_block(&evil.link[1], evil.link[1].ready.iova, evil.link[1].ready.rkey,
			   PEER_BLOCK, evil.link[1].ready.handle << SP_IMM_SHIFT);
	check_cut("a block out of order");
}

TEST(block_behind_the_object)
{
	begin_object();
	CHECK_EQ(peer_connect_bulk(&evil, &evil.link[1], st_addr(2)), 0);
	peer_block(&evil.link[1], evil.link[1].ready.iova + PEER_MAX_OBJECT,
		   evil.link[1].ready.rkey, 65536, evil.link[1].ready.handle << SP_IMM_SHIFT);
	check_cut(NULL);
}

/* What it says of the object that it is ready for leads to a fault of its own. */
TEST(ready_with_a_key_that_is_none)
{
	struct sp_msg_ready ready = evil.link[1].ready;

	begin_object();
	CHECK_EQ(peer_connect_bulk(&evil, &evil.link[0], st_addr(1)), 0);
	ready = evil.link[1].ready;
	ready.handle = 1;
	ready.iova = ~0ULL - 1000;
	ready.rkey = 0xdeadbeef;
	ready.done = 0;
	ready.upto = ~0U;
	peer_say(&evil, &evil.link[0], &ready.hdr, SP_MSG_READY, sizeof(ready));
	check_cut(NULL);
}

/* For all objects that there are not, in this view and the next. */
TEST(ready_without_end)
{
	struct sp_msg_ready ready = { .handle = 1 };
	unsigned int i;

	begin();
	ready.gid = evil.gid;
	ready.view = evil.view;
	for (i = 0; i < 5000 && evil.link[0].up; i++) {
		ready.count = i;
		ready.lane = st_random(&seed);
		ready.handle = st_random(&seed);
		ready.view = evil.view + i % 2;
		peer_say(&evil, &evil.link[0], &ready.hdr, SP_MSG_READY, sizeof(ready));
		turn();
	}
	check_cut("no room for what it is ready for");
}

/* Announced, and never sent: it holds up those behind it until its node goes. */
TEST(object_that_is_never_sent)
{
	struct sp_desc d = { .len = 100000 };
	struct sp_cell cells[SP_CELL_LANES + 1];
	unsigned int i, n;

	begin();
	d.flags = SP_DESC_OBJECT | SP_SCHEDULE_SEQUENTIAL << SP_DESC_KIND_SHIFT;
	d.index = evil.round;
	d.pos = evil.tail;
	peer_desc(&evil, &d, NULL);
	for (i = 0; i < PEER_LINKS; i++) {
		n = peer_row(&evil, &evil.link[i], cells);
		peer_push(&evil, &evil.link[i], cells, n);
	}
	UNTIL(evil.link[0].readies && evil.link[1].readies, 2 * ST_SOON);
	say(0);
	say(1);
	/* each with a GO for what does not come; then it is put out for something else */
	cell_wrong(SP_CELL_CONSUMED, 1ULL << 50);
	check_evicted(FAULT);
}

/* Connections */

static int attempt_with(const void *data, u8 len, int port)
{
	struct rdma_conn_param param = peer_param(data, len);
	struct peer_link *l = calloc(1, sizeof(*l));
	int ret;

	CHECK(l);
	l->id = peer_resolve_from(&evil, st_addr(1), port);
	peer_link_open(l);
	CHECK_OK(rdma_connect(l->id, &param));
	ret = peer_wait(&evil, l->id, RDMA_CM_EVENT_ESTABLISHED, NULL);
	if (ret) {
		rdma_destroy_qp(l->id);
		rdma_destroy_id(l->id);
	}
	return ret;
}

static void begin_alone(void)
{
	evil.from = st_addr(PEER_NODE);
	evil.incarnation = 42;
	begin_pair();
}

TEST(hello_that_is_none)
{
	struct sp_hello hello;
	unsigned int i;
	u8 much[56];

	begin_alone();
	peer_hello(&evil, &hello);
	CHECK_EQ(attempt_with(NULL, 0, 1000), RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(attempt_with(&hello, 4, 1000), RDMA_CM_EVENT_REJECTED);
	hello.magic ^= 1;
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), RDMA_CM_EVENT_REJECTED);
	hello.magic = __builtin_bswap32(SP_WIRE_MAGIC);
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), RDMA_CM_EVENT_REJECTED);
	peer_hello(&evil, &hello);
	hello.version++;
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), RDMA_CM_EVENT_REJECTED);
	peer_hello(&evil, &hello);
	hello.recvs = 0;
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), RDMA_CM_EVENT_REJECTED);
	/* for the objects of a link that there is not */
	peer_hello(&evil, &hello);
	hello.reason = SP_HELLO_BULK;
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), RDMA_CM_EVENT_REJECTED);
	for (i = 0; i < 20; i++) {
		size_t k;

		for (k = 0; k < sizeof(much); k++)
			much[k] = st_random(&seed);
		CHECK_EQ(attempt_with(much, sizeof(much), 1000), RDMA_CM_EVENT_REJECTED);
	}
	UNTIL(log_says("another wire format, refused") || log_is_full(), ST_SOON);
	check_others();
}

TEST(connection_from_a_program)
{
	struct sp_hello hello;

	begin_alone();
	peer_hello(&evil, &hello);
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 0), RDMA_CM_EVENT_REJECTED);
	UNTIL(log_says("a program asks for a connection, refused") || log_is_full(), ST_SOON);
	check_others();
}

/* Asked for and never taken: no event is handled any more. */
TEST(connections_that_stall)
{
	struct rdma_conn_param param;
	struct sp_hello hello;
	struct peer *stalled;
	unsigned int i;

	begin_alone();
	for (i = 0; i < 8; i++) {
		stalled = calloc(1, sizeof(*stalled));
		CHECK(stalled);
		stalled->from = evil.from;
		stalled->link[0].id = peer_resolve(stalled, st_addr(1 + i % 2));
		peer_link_open(&stalled->link[0]);
		peer_hello(&evil, &hello);
		param = peer_param(&hello, sizeof(hello));
		CHECK_OK(rdma_connect(stalled->link[0].id, &param));
	}
	check_others();
	/* others may connect meanwhile, and so may it */
	peer_hello(&evil, &hello);
	i = attempt_with(&hello, sizeof(hello), 1000);
	CHECK(i == 0 || i == RDMA_CM_EVENT_REJECTED);
	check_others();
}

/* Connected and cut, at once, many times; each is seen to be a later one. */
TEST(connections_one_after_another)
{
	struct sp_hello hello;
	unsigned int i;

	begin_alone();
	for (i = 0; i < 40; i++) {
		peer_hello(&evil, &hello);
		if (i % 4 == 3)
			hello.incarnation = st_random(&seed);
		CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), 0);
	}
	check_others();
}

/* A node that has joined, connects anew in another life: it is another one. */
TEST(two_with_one_address)
{
	struct sp_hello hello;

	begin();
	peer_hello(&evil, &hello);
	hello.incarnation++;
	CHECK_EQ(attempt_with(&hello, sizeof(hello), 1000), 0);
	check_evicted("has begun anew");
}

/* More than a group can have, and for groups that are not. */
TEST(joins_without_end)
{
	struct sp_msg_join join = { 0 };
	unsigned int i;

	begin_alone();
	peer_connect(&evil, 0, st_addr(1));
	for (i = 0; i < 500; i++) {
		join.cookie = 1000 + i;
		memset(join.name, 0, sizeof(join.name));
		snprintf(join.name, sizeof(join.name), "%s", i % 3 ? group : "nothing");
		if (i % 5 == 4)
			memset(&join.config, 0xff, sizeof(join.config));
		join.flags = i % 7 ? 0 : ~0U;
		peer_say(&evil, &evil.link[0], &join.hdr, SP_MSG_JOIN, sizeof(join));
		turn();
	}
	/* it was taken in some times and has no part in anything: it goes as a node */
	peer_gone(&evil, &evil.link[0]);
	for (i = 0; i < 2; i++)
		UNTIL(st_info(fd[i]).state == SPINDLE_STATE_ACTIVE &&
		      st_info(fd[i]).members == 2, 4 * ST_SOON);
	check_others();
}

TEST(join_of_a_name_without_end)
{
	struct sp_msg_join join = { 0 };

	begin_alone();
	peer_connect(&evil, 0, st_addr(1));
	memset(join.name, 'x', sizeof(join.name));
	peer_say(&evil, &evil.link[0], &join.hdr, SP_MSG_JOIN, sizeof(join));
	UNTIL(evil.link[0].closed || !evil.link[0].up, 2 * ST_SOON);
	check_others();
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
