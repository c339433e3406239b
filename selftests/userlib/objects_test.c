// SPDX-License-Identifier: GPL-2.0
/* libspindle's large objects, and files as trains of them, against a fake engine. */
#include "fake.h"

#include <endian.h>
#include <sys/resource.h>

#define MAX_MSG		1024
#define SEGMENT		8192
#define OTHER_UID	(FAKE_UID - 2)	/* rank 0 of the fake's views */
#define RECORDS		48

static const struct fake_config small = { .max_msg = MAX_MSG };

/* A member that sends by system calls; the other lane is that of rank 0. */
static struct spindle *direct(void)
{
	struct spindle *sp;

	fake_boot(&small);
	fake.began = true;
	fake.rank[0] = 2;
	fake.rank[1] = 0;
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_map(sp, SPINDLE_MAP_RX), 0);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(fake.map_flags, SPINDLE_MAP_RX);
	return sp;
}

static unsigned char *made(size_t len)
{
	unsigned char *bytes = malloc(len + 1);
	size_t i;

	CHECK(bytes);
	for (i = 0; i < len; i++)
		bytes[i] = i * 7 + i / 251;
	return bytes;
}

static int file_of(const void *data, size_t len)
{
	char name[] = "/tmp/objects_test.XXXXXX";
	int fd = CHECK_OK(mkstemp(name));

	CHECK_OK(unlink(name));
	CHECK_EQ(write(fd, data, len), len);
	return fd;
}

/* Directions */

TEST(what_is_mapped_is_said_before)
{
	struct spindle *sp;

	fake_boot(&small);
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_map(sp, 0), -EINVAL);
	CHECK_EQ(spindle_map(sp, SPINDLE_MAP_TX), -EINVAL);
	CHECK_EQ(spindle_map(sp, 8 | SPINDLE_MAP_RX), -EINVAL);
	CHECK_EQ(spindle_map(sp, SPINDLE_MAP_RX), 0);
	CHECK_EQ(spindle_map(sp, SPINDLE_MAP_ALL), 0);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(fake.map_flags, SPINDLE_MAP_ALL);
	CHECK_EQ(spindle_map(sp, SPINDLE_MAP_RX), -EALREADY);
	CHECK_EQ(spindle_object_send(sp, &(struct iovec){ "x", 1 }, 1, NULL), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(fake.nsent, 0);
}

TEST(objects_beside_the_ring)
{
	const struct spindle_object how = { .flags = SPINDLE_OBJECT_ALWAYS };
	struct iovec iov[3] = { { "ab", 2 }, { NULL, 0 }, { "c", 1 } }, room;
	unsigned char *bytes = made(5000);
	struct spindle_stats stats;
	struct spindle *sp;
	unsigned int i;

	fake_boot(&small);
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	/* what is none goes by the ring, in one piece */
	CHECK_EQ(spindle_object_send(sp, iov, 3, NULL), 0);
	CHECK_EQ(fake.nsent, 0);
	CHECK(!memcmp(fake_own(fake.status->tx_start), "abc", 3));
	CHECK_EQ(spindle_object_send(sp, iov, 3, &how), 0);
	CHECK_EQ(spindle_send(sp, bytes, 5000), 0);
	CHECK_EQ(spindle_state_send(sp, 4711, bytes, 5000, 0), 0);
	CHECK_EQ(fake.nsent, 3);
	CHECK_EQ(fake.sent[0].len, 3);
	CHECK_EQ(fake.sent[1].len, 5000);
	CHECK_EQ(fake.sent[1].control, 0);
	CHECK_EQ(fake.sent[2].control, SPINDLE_CMSG_STATE);
	CHECK_EQ(spindle_object_send(sp, &iov[1], 1, &how), 0);
	CHECK_EQ(fake.nsent, 3);
	/* the claim may need the turn */
	room.iov_len = 10;
	CHECK_EQ(spindle_claim(sp, &room, 1), 0);
	CHECK_EQ(spindle_send(sp, bytes, 5000), -EBUSY);
	CHECK_EQ(spindle_object_send(sp, iov, 3, NULL), -EBUSY);
	CHECK_EQ(spindle_abort(sp), 0);
	/* who waits for room for an object asks the kernel */
	fake.send_errno = EAGAIN;
	CHECK_EQ(spindle_send(sp, bytes, 5000), -EAGAIN);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 1000), 0);
	CHECK(fake.polls);
	/* they take turns: two messages and three objects have, and one is kept */
	for (i = 5; i < fake.rings.depth - 1; i++)
		CHECK_EQ(spindle_send(sp, "x", 1), 0);
	/* and who does not any more looks at the ring */
	CHECK_EQ(spindle_send(sp, "x", 1), -EAGAIN);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), -ETIMEDOUT);
	CHECK_EQ(spindle_stats(sp, &stats), 0);
	CHECK_EQ(stats.sent, fake.rings.depth - 1);
	/* after the end there is nothing to wait for */
	CHECK_EQ(spindle_send(sp, bytes, 5000), -EAGAIN);
	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	fake_set_state(SPINDLE_STATE_FAILED, ECONNRESET);
	CHECK_EQ(spindle_send(sp, bytes, 5000), -ECONNRESET);
}

TEST(sending_by_system_calls)
{
	const struct spindle_object how = { SPINDLE_ALG_TREE, SPINDLE_OBJECT_ALWAYS };
	struct iovec iov[2] = { { "ab", 2 }, { "c", 1 } };
	unsigned char *bytes = made(50000);
	struct spindle_stats stats;
	struct spindle *sp;

	fake_boot(&small);
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_object_send(sp, iov, 2, NULL), -ENOTCONN);
	CHECK_EQ(spindle_close(sp), 0);
	sp = direct();
	CHECK_EQ(spindle_claim(sp, iov, 1), -EOPNOTSUPP);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EOPNOTSUPP);
	CHECK_EQ(spindle_send(sp, bytes, 50000), 0);
	CHECK_EQ(fake.sent[0].len, 50000);
	CHECK(!memcmp(fake.sent[0].data, bytes, 50000));
	CHECK_EQ(fake.sent[0].control, 0);
	CHECK_EQ(spindle_send(sp, NULL, 0), 0);
	CHECK_EQ(fake.sent[1].len, 0);
	CHECK_EQ(spindle_object_send(sp, iov, 2, &how), 0);
	CHECK_EQ(fake.sent[2].len, 3);
	CHECK(!memcmp(fake.sent[2].data, "abc", 3));
	CHECK_EQ(fake.sent[2].control, SPINDLE_CMSG_OBJECT);
	CHECK(!memcmp(&fake.sent[2].how, &how, sizeof(how)));
	CHECK_EQ(spindle_state_send(sp, 4711, "s", 1, SPINDLE_INFO_LAST), 0);
	CHECK_EQ(fake.sent[3].control, SPINDLE_CMSG_STATE);
	CHECK_EQ(fake.sent[3].state.uid, 4711);
	CHECK_EQ(fake.sent[3].state.flags, SPINDLE_INFO_LAST);
	CHECK_EQ(spindle_object_send(sp, iov, 0, NULL), -EINVAL);
	CHECK_EQ(spindle_stats(sp, &stats), 0);
	CHECK_EQ(stats.sent, 4);
	CHECK_EQ(stats.sent_bytes, 50004);
	fake.send_errno = EMSGSIZE;
	CHECK_EQ(spindle_send(sp, "x", 1), -EMSGSIZE);
	fake.send_errno = 0;
	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), -EPIPE);
}

TEST(room_for_what_was_refused)
{
	unsigned char *bytes = made(5000);
	struct spindle *sp = direct();
	struct spindle_stats stats;
	double start;

	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK_EQ(fake.polls, 0);
	fake.send_errno = EAGAIN;
	/* a small one: poll() knows */
	CHECK_EQ(spindle_send(sp, bytes, 10), -EAGAIN);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK(fake.polls);
	/* an object: poll() speaks of the ring, so nobody spins */
	fake.polls = 0;
	start = st_now();
	while (st_now() < start + 0.3) {
		CHECK_EQ(spindle_send(sp, bytes, 5000), -EAGAIN);
		CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 1000), 0);
	}
	CHECK_EQ(spindle_stats(sp, &stats), 0);
	CHECK(stats.claims_refused > 3);
	CHECK(stats.claims_refused < 150);
	CHECK(fake.polls < 600);
	fake.send_errno = 0;
	CHECK_EQ(spindle_send(sp, bytes, 5000), 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), 0);
}

TEST(how_it_would_be_sent)
{
	struct spindle_explain e = { .len = 5000, .how.algorithm = SPINDLE_ALG_CHAIN };
	struct spindle *sp = direct();

	CHECK_EQ(spindle_explain(sp, &e), 0);
	CHECK_EQ(fake.explain.len, 5000);
	CHECK_EQ(fake.explain.how.algorithm, SPINDLE_ALG_CHAIN);
	CHECK_EQ(e.object, 1);
	CHECK(!strcmp(e.why, "so it is"));
	fake.error = ENOTCONN;
	CHECK_EQ(spindle_explain(sp, &e), -ENOTCONN);
}

/* Objects among messages */

static void peek_one(struct spindle *sp, struct spindle_msg *msg)
{
	unsigned int n;

	CHECK_EQ(spindle_peek(sp, msg, 1, &n), 0);
	CHECK_EQ(n, 1);
}

TEST(an_object_is_read_in_parts)
{
	unsigned char *bytes = made(30000), part[1000];
	struct spindle *sp = direct();
	struct spindle_stats stats;
	struct spindle_msg msg;

	fake_deliver_object(1, 0, bytes, 30000);
	fake_deliver(1, "after", 5);
	peek_one(sp, &msg);
	CHECK(!msg.data);
	CHECK_EQ(msg.len, 30000);
	CHECK_EQ(msg.rank, 0);
	CHECK_EQ(msg.flags, SPINDLE_MSG_OBJECT);
	CHECK_EQ(msg.event, 0);
	CHECK_EQ(spindle_object_read(sp, &msg, 12345, part, 1000), 0);
	CHECK(!memcmp(part, bytes + 12345, 1000));
	CHECK_EQ(spindle_object_read(sp, &msg, 29000, part, 1000), 0);
	CHECK(!memcmp(part, bytes + 29000, 1000));
	CHECK_EQ(spindle_object_read(sp, &msg, 30000, part, 0), 0);
	CHECK_EQ(fake.object_calls, 2);
	CHECK_EQ(spindle_object_read(sp, &msg, 29001, part, 1000), -EINVAL);
	CHECK_EQ(spindle_object_read(sp, &msg, 30001, part, 0), -EINVAL);
	CHECK_EQ(spindle_object_read(sp, &msg, ~0ULL, part, 2), -EINVAL);
	CHECK_EQ(spindle_stats(sp, &stats), 0);
	CHECK_EQ(stats.copied_bytes, 2000);
	CHECK_EQ(spindle_release(sp, msg.entry), 0);
	CHECK_EQ(spindle_object_read(sp, &msg, 0, part, 1), -ENOENT);
	/* put out, so that nothing is kept */
	fake_set_state(SPINDLE_STATE_FAILED, ECONNABORTED);
	CHECK_EQ(spindle_object_read(sp, &msg, 0, part, 1), -ECONNABORTED);
	CHECK_EQ(spindle_stats(sp, &stats), 0);
	CHECK_EQ(stats.received, 1);
	CHECK_EQ(stats.received_bytes, 30000);
	/* of a message that is none */
	peek_one(sp, &msg);
	CHECK_EQ(spindle_object_read(sp, &msg, 2, part, 3), 0);
	CHECK(!memcmp(part, "ter", 3));
	CHECK_EQ(spindle_object_read(sp, &msg, 3, part, 3), -EINVAL);
}

TEST(an_object_is_mapped)
{
	unsigned char *bytes = made(30000);
	struct spindle *sp = direct();
	struct spindle_stats stats;
	struct spindle_msg msg;
	const void *data[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		/* what a member of this node sends in place is copied */
		fake.object_in_place = i;
		fake_deliver_object(1, 0, bytes, 30000);
		peek_one(sp, &msg);
		fake.object_errno = EMFILE;
		CHECK_EQ(spindle_object_map(sp, &msg, &data[i]), -EMFILE);
		fake.object_errno = 0;
		CHECK_EQ(spindle_object_map(sp, &msg, &data[i]), 0);
		CHECK(!memcmp(data[i], bytes, 30000));
		CHECK_EQ(spindle_release(sp, msg.entry), 0);
		CHECK_EQ(spindle_object_map(sp, &msg, &data[i]), -ENOENT);
		CHECK_EQ(spindle_stats(sp, &stats), 0);
		CHECK_EQ(stats.copied_bytes, i * 30000);
	}
	fake_deliver(1, "none", 4);
	peek_one(sp, &msg);
	CHECK_EQ(spindle_object_map(sp, &msg, &data[0]), -EINVAL);
	CHECK_EQ(spindle_release(sp, msg.entry), 0);
	fake_deliver_object(1, 0, "", 0);
	peek_one(sp, &msg);
	CHECK_EQ(spindle_object_map(sp, &msg, &data[0]), -EINVAL);
	CHECK_EQ(spindle_release(sp, msg.entry), 0);
	fake_set_state(SPINDLE_STATE_FAILED, ECONNABORTED);
	msg.len = 1;
	CHECK_EQ(spindle_object_map(sp, &msg, &data[0]), -ECONNABORTED);
	spindle_close(sp);
	for (i = 0; i < 2; i++) {
		CHECK(!memcmp(data[i], bytes, 30000));
		CHECK_EQ(spindle_object_unmap(data[i], 30000), 0);
	}
	CHECK_EQ(spindle_object_unmap((char *)data + 1, 30000), -EINVAL);
}

TEST(an_object_is_received)
{
	unsigned char *bytes = made(30000), *got = malloc(30000);
	struct spindle *sp = direct();
	struct spindle_msg msg;

	fake_deliver_object(1, 0, bytes, 30000);
	fake_deliver_object(1, 0, "", 0);
	CHECK_EQ(spindle_recv(sp, got, 29999, &msg), -EMSGSIZE);
	CHECK_EQ(msg.len, 30000);
	CHECK(!msg.data);
	fake.object_errno = EFAULT;
	CHECK_EQ(spindle_recv(sp, got, 30000, &msg), -EFAULT);
	fake.object_errno = 0;
	CHECK_EQ(spindle_recv(sp, got, 30000, &msg), 0);
	CHECK(msg.data == got);
	CHECK_EQ(msg.flags, SPINDLE_MSG_OBJECT);
	CHECK(!memcmp(got, bytes, 30000));
	CHECK_EQ(spindle_recv(sp, got, 30000, &msg), 0);
	CHECK_EQ(msg.len, 0);
	CHECK_EQ(spindle_recv(sp, got, 30000, &msg), -EAGAIN);
	CHECK_EQ(fake_collect(), 2);
}

TEST(state_may_be_an_object)
{
	const uint32_t state = SPINDLE_DELIVERY_STATE | SPINDLE_DELIVERY_LAST;
	unsigned char *bytes = made(30000);
	struct spindle *sp = direct();
	struct spindle_msg msg;
	unsigned int n;

	fake_deliver_object(1, state | 99 << SPINDLE_DELIVERY_UID_SHIFT, bytes, 30000);
	fake_deliver_object(1, state | FAKE_UID << SPINDLE_DELIVERY_UID_SHIFT, bytes, 20000);
	/* what it does not know it passes over */
	fake_deliver_object(1, SPINDLE_DELIVERY_LAST, bytes, 10000);
	fake_deliver_object(1, SPINDLE_DELIVERY_FIN, bytes, 10000);
	peek_one(sp, &msg);
	CHECK_EQ(msg.len, 20000);
	CHECK_EQ(msg.flags, SPINDLE_MSG_OBJECT | SPINDLE_MSG_STATE | SPINDLE_MSG_LAST);
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), -EAGAIN);
}

/* Trains */

struct ear {
	unsigned int others, events, asked, stop_at;
	char last[16];
	int answer;
	uint64_t done;
};

static int on_other(struct spindle_transfer *t, const struct spindle_msg *msg)
{
	struct ear *ear = t->user;

	ear->others++;
	if (msg->flags & SPINDLE_MSG_EVENT)
		ear->events++;
	else if (msg->data && msg->len < sizeof(ear->last))
		snprintf(ear->last, sizeof(ear->last), "%.*s", (int)msg->len,
			 (const char *)msg->data);
	return ear->answer;
}

static int on_progress(struct spindle_transfer *t)
{
	struct ear *ear = t->user;

	CHECK(t->done >= ear->done || !t->done);
	CHECK(t->done <= t->len);
	ear->done = t->done;
	return ++ear->asked == ear->stop_at ? -ECANCELED : 0;
}

static struct spindle_transfer transfer(struct ear *ear)
{
	memset(ear, 0, sizeof(*ear));
	return (struct spindle_transfer) {
		.id = 77, .fd = -1, .len = SPINDLE_TO_THE_END, .uid = SPINDLE_ANYBODY,
		.segment = SEGMENT, .progress = on_progress, .other = on_other, .user = ear,
	};
}

/* What a put has sent, to be delivered as another member's. */
static struct {
	size_t len[RECORDS];
	unsigned char *data[RECORDS];
	unsigned int n;
} kept;

static void keep(void)
{
	unsigned int i;

	CHECK(fake.nsent <= RECORDS);
	kept.n = fake.nsent;
	for (i = 0; i < kept.n; i++) {
		kept.len[i] = fake.sent[i].len;
		kept.data[i] = malloc(kept.len[i] + 1);
		memcpy(kept.data[i], fake.sent[i].data, kept.len[i]);
	}
}

static void deliver_kept(unsigned int i)
{
	fake.lane_head[1] = fake.lane_pos[1];
	if (kept.len[i] > MAX_MSG)
		fake_deliver_object(1, 0, kept.data[i], kept.len[i]);
	else
		fake_deliver(1, kept.data[i], kept.len[i]);
}

/* Put it, and be a member again that has not heard of it. */
static struct spindle *put_and_keep(struct spindle_transfer *t, int want)
{
	struct spindle *sp = direct();

	fake.echo = true;
	CHECK_EQ(spindle_object_put(sp, t), want);
	keep();
	CHECK_EQ(spindle_close(sp), 0);
	return direct();
}

static struct spindle *kept_train(const void *data, size_t len)
{
	struct ear ear;
	struct spindle_transfer t = transfer(&ear);

	t.data = (void *)data;
	t.len = len;
	return put_and_keep(&t, 0);
}

static void deliver_all(void)
{
	unsigned int i;

	for (i = 0; i < kept.n; i++)
		deliver_kept(i);
}

static void there_and_back(size_t len, uint64_t offset, bool mapped_target)
{
	unsigned char *bytes = made(offset + len), *got = calloc(offset + len + 1, 1);
	int from = file_of(bytes, offset + len), to = file_of("", 0), w = -1;
	struct ear ear;
	struct spindle_transfer put = transfer(&ear), get = put;
	struct spindle *sp;
	char path[64];

	put.fd = from;
	put.offset = offset;
	sp = put_and_keep(&put, 0);
	CHECK_EQ(put.len, len);
	CHECK_EQ(put.done, len);
	CHECK_EQ(ear.others, 0);
	CHECK_EQ(kept.n, 2 + (len + SEGMENT - 1) / SEGMENT);
	get.id = 0;
	if (!mapped_target) {
		/* that can only be written */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
		w = CHECK_OK(open(path, O_WRONLY | O_CLOEXEC));
	}
	get.fd = mapped_target ? to : w;
	get.offset = offset;
	ear.done = 0;
	deliver_all();
	fake_deliver(1, "behind", 6);
	CHECK_EQ(spindle_object_get(sp, &get), 0);
	CHECK_EQ(get.id, 77);
	CHECK_EQ(get.uid, OTHER_UID);
	CHECK_EQ(get.len, len);
	CHECK_EQ(get.done, len);
	CHECK(!memcmp(get.hash, put.hash, SPINDLE_HASH_LEN));
	/* the next message is not touched */
	CHECK_EQ(ear.others, 0);
	CHECK_EQ(fake_collect(), kept.n);
	if (len)
		CHECK_EQ(pread(to, got, offset + len + 1, 0), offset + len);
	CHECK(!memcmp(got + offset, bytes + offset, len));
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(files_of_all_sizes)
{
	static const size_t sizes[] = {
		0, 1, 63, MAX_MSG, SEGMENT - 1, SEGMENT, SEGMENT + 1, 4 * SEGMENT,
		9 * SEGMENT + 4711,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		there_and_back(sizes[i], 0, true);
		there_and_back(sizes[i], 5000, true);
		there_and_back(sizes[i], 5000, false);
	}
}

TEST(memory_there_and_back)
{
	unsigned char *bytes = made(100000), *got = malloc(100000);
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(bytes, 100000);

	get.data = got;
	get.len = 100000;
	deliver_all();
	CHECK_EQ(spindle_object_get(sp, &get), 0);
	CHECK(!memcmp(got, bytes, 100000));
	/* and to nowhere */
	get.data = NULL;
	get.id = 0;
	ear.done = 0;
	deliver_all();
	CHECK_EQ(spindle_object_get(sp, &get), 0);
	CHECK_EQ(get.done, 100000);
}

/* It may be sent from where it is, so put waits until it is not needed there. */
TEST(put_leaves_nothing_pinned)
{
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer put = transfer(&ear);

	put.data = made(3 * SEGMENT);
	put.len = 3 * SEGMENT;
	fake.echo = true;
	fake.pinned = 4;
	CHECK_EQ(spindle_object_put(sp, &put), 0);
	CHECK_EQ(fake.pinned, 0);
	CHECK_EQ(fake.sent[1].control, SPINDLE_CMSG_OBJECT);
	CHECK_EQ(fake.sent[1].how.flags, SPINDLE_OBJECT_IN_PLACE);
	/* who calls it off waits for nothing */
	put = transfer(&ear);
	put.data = made(SEGMENT);
	put.len = SEGMENT;
	fake.pinned = ~0U;
	ear.stop_at = 3;
	CHECK_EQ(spindle_object_put(sp, &put), -ECANCELED);
}

TEST(the_hash_is_xxh3)
{
	/* of "spindle", by xxh128sum */
	static const unsigned char want[SPINDLE_HASH_LEN] = {
		0x9b, 0x71, 0x65, 0x4a, 0x85, 0x7a, 0x8f, 0x10,
		0xd3, 0x4a, 0x6d, 0x16, 0xd0, 0xdd, 0xe8, 0x43,
	};
	struct ear ear;
	struct spindle_transfer put = transfer(&ear);

	put.data = "spindle";
	put.len = 7;
	spindle_close(put_and_keep(&put, 0));
	CHECK(!memcmp(put.hash, want, sizeof(want)));
}

TEST(put_needs_to_know_what)
{
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer t = transfer(&ear), same = t;
	struct iovec room = { .iov_len = 1 };

	CHECK_EQ(spindle_object_put(sp, &t), -EINVAL);
	t.len = 5;
	CHECK_EQ(spindle_object_put(sp, &t), -EINVAL);
	t = same;
	t.id = 0;
	t.len = 0;
	CHECK_EQ(spindle_object_put(sp, &t), -EINVAL);
	t = same;
	t.fd = file_of("abc", 3);
	t.len = 4;
	CHECK_EQ(spindle_object_put(sp, &t), -ESTALE);
	t.len = 3;
	t.offset = 1;
	CHECK_EQ(spindle_object_put(sp, &t), -ESTALE);
	t.offset = 3;
	t.len = 0;
	CHECK_EQ(fake.nsent, 0);
	CHECK_EQ(spindle_object_put(sp, &t), 0);
	CHECK_EQ(fake.nsent, 2);
	t.fd = CHECK_OK(open("/dev/full", O_WRONLY | O_CLOEXEC));
	t.len = 1;
	CHECK_EQ(spindle_object_put(sp, &t), -EBADF);
	CHECK_EQ(spindle_close(sp), 0);
	fake_boot(&small);
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_object_put(sp, &t), -ENOTCONN);
	CHECK_EQ(spindle_object_get(sp, &t), -ENOTCONN);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(spindle_claim(sp, &room, 1), 0);
	CHECK_EQ(spindle_object_put(sp, &t), -EBUSY);
}

static int shortened;

static void shorten(struct fake_sent *m)
{
	(void)m;
	if (fake.nsent == 3)
		CHECK_OK(ftruncate(shortened, SEGMENT + 100));
}

/* Whichever it meets first, the hash or the system call. */
static void shorten_behind_the_hash(struct fake_sent *m)
{
	(void)m;
	if (fake.nsent == 2)
		fake.send_errno = EFAULT;
	if (fake.nsent == 3)
		fake.send_errno = 0;
}

static void forgive(void)
{
	fake.send_errno = 0;
}

static void truncated(void (*how)(struct fake_sent *m), uint64_t done)
{
	unsigned char *bytes = made(5 * SEGMENT);
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer put = transfer(&ear), get = put;

	shortened = file_of(bytes, 5 * SEGMENT);
	put.fd = shortened;
	fake.echo = true;
	fake.on_send = how;
	fake.on_wait = forgive;
	CHECK_EQ(spindle_object_put(sp, &put), -ESTALE);
	CHECK_EQ(put.done, done);
	/* whoever sends goes on */
	CHECK_EQ(spindle_send(sp, "on", 2), fake.send_errno ? -EFAULT : 0);
	fake.nsent -= !fake.send_errno;
	keep();
	CHECK_EQ(spindle_close(sp), 0);
	if (how != shorten)
		return;
	sp = direct();
	ear.done = 0;
	deliver_all();
	CHECK_EQ(spindle_object_get(sp, &get), -ECANCELED);
	CHECK_EQ(get.error, ESTALE);
	CHECK_EQ(get.done, done);
}

TEST(a_source_that_becomes_shorter)
{
	truncated(shorten, 2 * SEGMENT);
	truncated(shorten_behind_the_hash, SEGMENT);
}

TEST(who_sends_may_stop)
{
	unsigned char *bytes = made(5 * SEGMENT);
	struct ear ear;
	struct spindle_transfer put = transfer(&ear), get = put;
	struct spindle *sp;

	put.data = bytes;
	put.len = 5 * SEGMENT;
	ear.stop_at = 2;
	sp = put_and_keep(&put, -ECANCELED);
	CHECK_EQ(put.done, 2 * SEGMENT);
	ear.done = 0;
	deliver_all();
	fake_deliver(1, "on", 2);
	CHECK_EQ(spindle_object_get(sp, &get), -ECANCELED);
	CHECK_EQ(get.error, ECANCELED);
	CHECK_EQ(get.done, 2 * SEGMENT);
}

TEST(who_receives_may_stop)
{
	unsigned char *bytes = made(5 * SEGMENT);
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(bytes, 5 * SEGMENT);

	ear.stop_at = 2;
	deliver_all();
	CHECK_EQ(spindle_object_get(sp, &get), -ECANCELED);
	CHECK_EQ(get.error, 0);
	CHECK_EQ(get.done, 2 * SEGMENT);
	/* and nothing comes any more: it is asked all the same */
	get = transfer(&ear);
	get.id = 4;
	ear.stop_at = 3;
	CHECK_EQ(spindle_object_get(sp, &get), -ECANCELED);
	CHECK_EQ(ear.others, 4);
}

static void speak(struct fake_sent *m)
{
	(void)m;
	if (fake.nsent == 2)
		fake_deliver(1, "hello", 5);
	if (fake.nsent == 3)
		fake_event(SPINDLE_EVENT_VIEW);
}

TEST(what_comes_while_it_is_sent)
{
	unsigned char *bytes = made(20 * SEGMENT);
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer put = transfer(&ear);

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	put.data = bytes;
	put.len = 20 * SEGMENT;
	fake.echo = true;
	fake.on_send = speak;
	/* it has to take its own to have room */
	fake.send_room = 3;
	CHECK_EQ(spindle_object_put(sp, &put), 0);
	CHECK_EQ(fake.nsent, 22);
	CHECK_EQ(ear.others, 2);
	CHECK_EQ(ear.events, 1);
	CHECK(!strcmp(ear.last, "hello"));
	/* and what other says ends it */
	put = transfer(&ear);
	put.data = bytes;
	put.len = 20 * SEGMENT;
	ear.answer = -EINTR;
	fake.nsent = 0;
	CHECK_EQ(spindle_object_put(sp, &put), -EINTR);
	CHECK(put.done < put.len);
}

static double stuck_since;

static void stay_stuck(void)
{
	CHECK(st_now() < stuck_since + 20);
}

TEST(a_group_that_is_stuck_can_be_given_up)
{
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer put = transfer(&ear);

	put.data = "x";
	put.len = 1;
	stuck_since = st_now();
	fake.send_errno = EAGAIN;
	fake.on_wait = stay_stuck;
	ear.stop_at = 3;
	CHECK_EQ(spindle_object_put(sp, &put), -ECANCELED);
	CHECK(st_now() < stuck_since + 10);
}

static void get_stuck(struct fake_sent *m)
{
	(void)m;
	fake.send_errno = EAGAIN;
}

TEST(also_when_nobody_can_be_told)
{
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer put = transfer(&ear);

	put.data = made(SEGMENT);
	put.len = SEGMENT;
	stuck_since = st_now();
	fake.on_send = get_stuck;
	fake.on_wait = stay_stuck;
	ear.stop_at = 3;
	CHECK_EQ(spindle_object_put(sp, &put), -ECANCELED);
	CHECK_EQ(fake.nsent, 1);
	CHECK(st_now() > stuck_since + 1);
	CHECK(st_now() < stuck_since + 10);
}

TEST(segments_are_what_the_group_allows)
{
	unsigned char *bytes = made(300000);
	struct spindle *sp = direct();
	struct ear ear;
	struct spindle_transfer put = transfer(&ear);
	unsigned int i;

	put.data = bytes;
	put.len = 300000;
	put.segment = 0;
	put.how.algorithm = SPINDLE_ALG_CHAIN;
	CHECK_EQ(spindle_object_put(sp, &put), 0);
	CHECK_EQ(fake.nsent, 2 + (300000 + 61439) / 61440);
	for (i = 0; i < fake.nsent; i++) {
		CHECK(fake.sent[i].len <= FAKE_MAX_OBJECT);
		CHECK_EQ(fake.sent[i].control, SPINDLE_CMSG_OBJECT);
		CHECK_EQ(fake.sent[i].how.algorithm, SPINDLE_ALG_CHAIN);
	}
}

/* Receivers that are not deceived */

static int get_of(struct spindle *sp, uint64_t room)
{
	static unsigned char got[5 * SEGMENT];
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);

	get.data = got;
	get.len = room;
	ear.stop_at = 6;
	return spindle_object_get(sp, &get);
}

TEST(a_byte_that_is_another)
{
	struct spindle *sp = kept_train(made(3 * SEGMENT), 3 * SEGMENT);

	kept.data[2][1000] ^= 1;
	deliver_all();
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EBADMSG);
}

TEST(a_segment_that_is_missing_or_there_twice)
{
	struct spindle *sp = kept_train(made(3 * SEGMENT), 3 * SEGMENT);

	CHECK_EQ(kept.n, 5);
	deliver_kept(0);
	deliver_kept(1);
	deliver_kept(3);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
	deliver_kept(0);
	deliver_kept(1);
	deliver_kept(1);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
	deliver_kept(0);
	deliver_kept(1);
	deliver_kept(2);
	deliver_kept(4);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
	deliver_kept(0);
	deliver_kept(0);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
	/* the middle of one is not its beginning */
	deliver_kept(2);
	deliver_all();
	CHECK_EQ(get_of(sp, 3 * SEGMENT), 0);
}

/* The fields of a record, which is the last there is. */
static void patch(unsigned int i, size_t at, uint64_t value, size_t size)
{
	value = htole64(value);
	memcpy(kept.data[i] + kept.len[i] - SPINDLE_UNIT + at, &value, size);
}

TEST(lengths_that_lie)
{
	struct spindle *sp = kept_train(made(3 * SEGMENT), 3 * SEGMENT);

	deliver_all();
	CHECK_EQ(get_of(sp, 3 * SEGMENT - 1), -EFBIG);
	CHECK_EQ(fake_collect(), 1);
	/* what is left is not taken for a train */
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -ECANCELED);
	/* a segment says that it is longer than its message */
	patch(1, 24, SEGMENT + 1, 8);
	deliver_all();
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -ECANCELED);
	/* more comes than was said */
	patch(1, 24, SEGMENT, 8);
	patch(0, 24, SEGMENT + 5, 8);
	deliver_all();
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -ECANCELED);
	patch(0, 24, ~0ULL, 8);
	deliver_all();
	CHECK_EQ(get_of(sp, ~0ULL), -EFBIG);
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -ECANCELED);
	/* no such record */
	patch(0, 24, 3 * SEGMENT, 8);
	patch(2, 6, 9, 2);
	deliver_all();
	CHECK_EQ(get_of(sp, 3 * SEGMENT), -EPROTO);
}

TEST(messages_of_others_between_the_segments)
{
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(made(2 * SEGMENT), 2 * SEGMENT);
	unsigned int i;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	get.uid = OTHER_UID;
	/* the same records, but of somebody else */
	fake.rank[1] = 1;
	deliver_kept(0);
	fake.rank[1] = 0;
	for (i = 0; i < kept.n; i++) {
		deliver_kept(i);
		fake.rank[1] = 1;
		fake_deliver(1, "aside", 5);
		deliver_kept(1);
		fake.rank[1] = 0;
	}
	fake_event(SPINDLE_EVENT_VIEW);
	CHECK_EQ(spindle_object_get(sp, &get), 0);
	CHECK_EQ(ear.others, 1 + 2 * (kept.n - 1));
	CHECK(!strcmp(ear.last, "aside"));
}

TEST(a_sender_that_is_gone)
{
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(made(2 * SEGMENT), 2 * SEGMENT);
	uint32_t number;

	deliver_kept(0);
	/* a view that it is in, and one that it is not in */
	fake_event(SPINDLE_EVENT_VIEW);
	deliver_kept(1);
	number = fake_event(SPINDLE_EVENT_VIEW);
	fake.events[number % FAKE_EVENTS].event.member[0].uid = 99;
	CHECK_EQ(spindle_object_get(sp, &get), -ECONNRESET);
	CHECK_EQ(get.done, SEGMENT);
}

TEST(the_end_in_the_middle)
{
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(made(2 * SEGMENT), 2 * SEGMENT);

	deliver_kept(0);
	fake_set_state(SPINDLE_STATE_CLOSED, 0);
	CHECK_EQ(spindle_object_get(sp, &get), -ENODATA);
}

TEST(a_file_that_may_not_be_so_large)
{
	const struct rlimit limit = { 2 * SEGMENT, 2 * SEGMENT };
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(made(3 * SEGMENT), 3 * SEGMENT);

	get.fd = file_of("", 0);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
	deliver_all();
	CHECK_EQ(spindle_object_get(sp, &get), -EFBIG);
	CHECK_EQ(get.done, 2 * SEGMENT);
}

static int shorten_target(struct spindle_transfer *t)
{
	CHECK_OK(ftruncate(t->fd, 0));
	return 0;
}

TEST(a_target_that_becomes_shorter)
{
	struct ear ear;
	struct spindle_transfer get = transfer(&ear);
	struct spindle *sp = kept_train(made(3 * SEGMENT), 3 * SEGMENT);

	get.fd = file_of("", 0);
	get.progress = shorten_target;
	deliver_all();
	/* no signal comes, and what is written is written */
	CHECK_EQ(spindle_object_get(sp, &get), 0);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
