// SPDX-License-Identifier: GPL-2.0
/* libspindle's sending, receiving and waiting, step by step against a fake engine. */
#include "fake.h"

#include <pthread.h>
#include <sched.h>

static const struct fake_config small;	/* 4096 bytes, 64 units, 16 deep */

static int claim(struct spindle *sp, struct iovec *iov, unsigned int n, size_t len)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		iov[i].iov_len = len;
	return spindle_claim(sp, iov, n);
}

static void take(unsigned int n)
{
	CHECK_EQ(fake_take(), n);
	CHECK_EQ(fake.status->tx_error, 0);
}

/* One message there and back, so that the ring's positions move. */
static void around(struct spindle *sp, size_t len)
{
	static char data[8 << 20];
	struct spindle_msg msg;

	CHECK_EQ(spindle_send(sp, data, len), 0);
	take(1);
	CHECK(fake_deliver_own());
	CHECK_EQ(spindle_recv(sp, data, len, &msg), 0);
	CHECK_EQ(fake_collect(), 1);
}

static void deliver(unsigned int lane, const char *text)
{
	fake_deliver(lane, text, strlen(text));
}

static void expect(const struct spindle_msg *msg, const char *text)
{
	CHECK_SAME(msg->len, strlen(text));
	if (memcmp(msg->data, text, msg->len))
		BROKEN("\"%.*s\", not \"%s\"", (int)msg->len, (const char *)msg->data, text);
}

static uint64_t expect_one(struct spindle *sp, const char *text)
{
	struct spindle_msg msg;
	unsigned int n;

	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
	CHECK_EQ(n, 1);
	expect(&msg, text);
	return msg.entry;
}

static int peek(struct spindle *sp)
{
	struct spindle_msg msg;
	unsigned int n = 77;
	int ret = spindle_peek(sp, &msg, 1, &n);

	CHECK_EQ(n, !ret);
	return ret;
}

static struct spindle_stats stats(struct spindle *sp)
{
	struct spindle_stats s;

	CHECK_EQ(spindle_stats(sp, &s), 0);
	return s;
}

/* Sending */

TEST(claims_follow_each_other_in_units)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov[4] = {
		{ .iov_len = 1 }, { .iov_len = 64 }, { .iov_len = 65 }, { .iov_len = 100 },
	};

	CHECK_EQ(spindle_claim(sp, iov, 4), 0);
	CHECK(iov[0].iov_base == fake_own(0));
	CHECK(iov[1].iov_base == fake_own(1));
	CHECK(iov[2].iov_base == fake_own(2));
	CHECK(iov[3].iov_base == fake_own(4));
	CHECK_EQ(fake_take(), 0);
	CHECK_EQ(spindle_commit(sp, 4, NULL), 0);
	take(4);
	CHECK_EQ(fake.taken[3].pos, 4);
	CHECK_EQ(fake.taken[3].len, 100);
	CHECK_EQ(fake.pos, 6);
}

TEST(a_message_is_contiguous_over_the_end_of_the_ring)
{
	struct spindle *sp = fake_member(&small);
	char data[4096], got[4096];
	struct spindle_msg msg;
	unsigned int i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7;
	around(sp, 60 * 64);
	CHECK_EQ(spindle_send(sp, data, 64 * 64), 0);
	take(1);
	CHECK_EQ(fake.taken[1].pos, 60);
	CHECK(!memcmp(fake_own(60), data, sizeof(data)));
	CHECK(!memcmp(fake_own(64), data + 4 * 64, 60 * 64));
	CHECK(fake_deliver_own());
	CHECK_EQ(spindle_recv(sp, got, sizeof(got), &msg), 0);
	CHECK(!memcmp(got, data, sizeof(data)));
}

TEST(positions_go_on_from_where_the_socket_was)
{
	struct fake_config c = { .rx_base = 1000, .tx_base = 70, .tx_start = 61 };
	struct spindle *sp = fake_member(&c);
	struct iovec iov;

	CHECK_EQ(fake.user->rx_released, 1000);
	CHECK_EQ(fake.user->rx_seen, 1000);
	CHECK_EQ(claim(sp, &iov, 1, 300), 0);
	CHECK(iov.iov_base == fake_own(61));
	memcpy(iov.iov_base, "from here", 9);
	CHECK_EQ(spindle_commit(sp, 1, &(uint32_t){ 9 }), 0);
	take(1);
	CHECK(fake_deliver_own());
	CHECK_EQ(spindle_release(sp, 999), -EINVAL);
	CHECK_EQ(expect_one(sp, "from here"), 1000);
	CHECK_EQ(spindle_release(sp, 1000), 0);
	CHECK_EQ(fake_collect(), 1);
	CHECK_EQ(fake.status->tx_freed, 71);
	CHECK_EQ(fake.status->tx_head, 62);
	/* the whole of it fits again, in bytes and in messages */
	CHECK_EQ(claim(sp, &iov, 1, 4096), 0);
	CHECK_EQ(spindle_abort(sp), 0);
	{
		struct iovec all[15];

		CHECK_EQ(claim(sp, all, 15, 64), 0);
	}
}

TEST(a_full_ring_says_again_and_what_it_waits_for)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;
	unsigned int i;

	for (i = 0; i < 8; i++)
		CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(claim(sp, &iov, 1, 56 * 64), 0);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	/* full to the last byte */
	CHECK_EQ(claim(sp, &iov, 1, 1), -EAGAIN);
	CHECK_EQ(fake.user->tx_want_head, 1);
	CHECK_EQ(claim(sp, &iov, 1, 5 * 64), -EAGAIN);
	CHECK_EQ(fake.user->tx_want_head, 5);
	CHECK_EQ(fake.user->tx_want_freed, 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), -ETIMEDOUT);
	take(9);
	for (i = 0; i < 5; i++) {
		CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), -ETIMEDOUT);
		CHECK(fake_deliver_own());
		CHECK_EQ(spindle_release(sp, expect_one(sp, "x")), 0);
		CHECK_EQ(fake_collect(), 1);
	}
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK_EQ(claim(sp, &iov, 1, 5 * 64), 0);
	CHECK_EQ(fake.user->tx_want_head, 0);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	CHECK_EQ(stats(sp).claims_refused, 2);
	take(1);
}

TEST(one_less_than_depth_are_in_flight)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov[16];
	unsigned int i;

	CHECK_EQ(claim(sp, iov, 15, 0), 0);
	CHECK_EQ(spindle_commit(sp, 15, NULL), 0);
	CHECK_EQ(claim(sp, iov, 1, 0), -EAGAIN);
	CHECK_EQ(fake.user->tx_want_freed, 1);
	CHECK_EQ(claim(sp, iov, 3, 0), -EAGAIN);
	CHECK_EQ(fake.user->tx_want_freed, 3);
	CHECK_EQ(fake.user->tx_want_head, 0);
	take(15);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_SPIN, 0), -ETIMEDOUT);
		CHECK(fake_deliver_own());
		CHECK_EQ(spindle_recv(sp, NULL, 0, NULL), 0);
		fake_collect();
	}
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_SPIN, 0), 0);
	CHECK_EQ(claim(sp, iov, 3, 0), 0);
	CHECK_EQ(spindle_commit(sp, 3, NULL), 0);
	take(3);
}

TEST(several_are_claimed_or_none)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov[16];

	CHECK_EQ(claim(sp, iov, 4, 10 * 64), 0);
	CHECK_EQ(spindle_commit(sp, 4, NULL), 0);
	CHECK_EQ(claim(sp, iov, 3, 10 * 64), -EAGAIN);
	CHECK_EQ(fake.user->tx_want_head, 6);
	CHECK_EQ(claim(sp, iov, 2, 10 * 64), 0);
	CHECK(iov[0].iov_base == fake_own(40));
	CHECK(iov[1].iov_base == fake_own(50));
}

TEST(what_can_never_be_claimed)
{
	struct fake_config c = { .max_msg = 1024 };
	struct spindle *sp = fake_member(&c);
	struct iovec iov[16];

	CHECK_EQ(spindle_claim(sp, iov, 0), -EINVAL);
	CHECK_EQ(claim(sp, iov, 16, 0), -EINVAL);
	CHECK_EQ(claim(sp, iov, 1, 1025), -EMSGSIZE);
	CHECK_EQ(claim(sp, iov, 1, SIZE_MAX), -EMSGSIZE);
	CHECK_EQ(claim(sp, iov, 5, 1024), -EINVAL);
	CHECK_EQ(spindle_send(sp, "", (size_t)1 << 33), -EMSGSIZE);
	CHECK_EQ(claim(sp, iov, 4, 1024), 0);
	CHECK_EQ(claim(sp, iov, 1, 0), -EBUSY);
	CHECK_EQ(spindle_send(sp, "x", 1), -EBUSY);
	CHECK_EQ(stats(sp).claims_refused, 0);
}

TEST(a_claim_is_committed_bit_by_bit)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov[5];

	CHECK_EQ(claim(sp, iov, 5, 100), 0);
	CHECK_EQ(spindle_commit(sp, 2, NULL), 0);
	take(2);
	CHECK_EQ(claim(sp, iov, 1, 1), -EBUSY);
	CHECK_EQ(spindle_commit(sp, 4, NULL), -EINVAL);
	CHECK_EQ(spindle_commit(sp, 0, NULL), -EINVAL);
	memcpy(iov[2].iov_base, "third", 5);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	take(1);
	CHECK_EQ(fake.taken[2].pos, 4);
	CHECK(!memcmp(fake_own(4), "third", 5));
	CHECK_EQ(spindle_abort(sp), 0);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EINVAL);
	/* the next one is where the rest of the claim was */
	CHECK_EQ(claim(sp, iov, 1, 1), 0);
	CHECK(iov[0].iov_base == fake_own(6));
	CHECK_EQ(stats(sp).sent, 3);
	CHECK_EQ(stats(sp).sent_bytes, 300);
}

TEST(shorter_messages_move_down)
{
	struct spindle *sp = fake_member(&small);
	const uint32_t lens[4] = { 10, 200, 0, 65 };
	struct iovec iov[5];
	unsigned int i, j;

	around(sp, 55 * 64);
	for (i = 0; i < 5; i++)
		iov[i].iov_len = 200;
	CHECK_EQ(spindle_claim(sp, iov, 5), 0);
	for (i = 0; i < 5; i++)
		for (j = 0; j < 200; j++)
			((unsigned char *)iov[i].iov_base)[j] = i * 50 + j;
	CHECK_EQ(spindle_commit(sp, 4, lens), 0);
	take(4);
	CHECK_EQ(fake.taken[1].pos, 55);
	CHECK_EQ(fake.taken[2].pos, 56);
	CHECK_EQ(fake.taken[3].pos, 60);
	CHECK_EQ(fake.taken[4].pos, 60);
	CHECK_EQ(fake.pos, 62);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(fake.taken[i + 1].len, lens[i]);
		for (j = 0; j < lens[i]; j++)
			CHECK_EQ(fake_own(fake.taken[i + 1].pos)[j],
				 (unsigned char)(i * 50 + j));
	}
	/* the fifth is given up */
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EINVAL);
	CHECK_EQ(claim(sp, iov, 1, 1), 0);
	CHECK(iov[0].iov_base == fake_own(62));
}

TEST(a_length_beyond_the_claim_changes_nothing)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov[2];

	CHECK_EQ(claim(sp, iov, 2, 100), 0);
	memcpy(iov[1].iov_base, "second", 6);
	CHECK_EQ(spindle_commit(sp, 2, (const uint32_t []){ 1, 101 }), -EINVAL);
	CHECK_EQ(fake_take(), 0);
	CHECK(!memcmp(iov[1].iov_base, "second", 6));
	CHECK_EQ(spindle_commit(sp, 2, (const uint32_t []){ 100, 6 }), 0);
	take(2);
	CHECK_EQ(fake.taken[0].len, 100);
	CHECK(!memcmp(fake_own(2), "second", 6));
}

TEST(an_abort_gives_the_room_back)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;

	CHECK_EQ(spindle_abort(sp), 0);
	CHECK_EQ(claim(sp, &iov, 1, 4096), 0);
	CHECK_EQ(spindle_abort(sp), 0);
	CHECK_EQ(fake_take(), 0);
	CHECK_EQ(claim(sp, &iov, 1, 4096), 0);
	CHECK(iov.iov_base == fake_own(0));
}

TEST(messages_of_no_bytes)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[4];
	struct iovec iov[2];
	unsigned int n;

	CHECK_EQ(spindle_send(sp, NULL, 0), 0);
	CHECK_EQ(claim(sp, iov, 2, 0), 0);
	CHECK_EQ(spindle_commit(sp, 2, NULL), 0);
	take(3);
	CHECK_EQ(fake.pos, 0);
	while (fake_deliver_own())
		;
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(msgs[2].len, 0);
	CHECK(msgs[2].data);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake_collect(), 3);
	CHECK_EQ(stats(sp).received, 3);
}

TEST(a_refused_submission_ends_sending)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;

	CHECK_EQ(claim(sp, &iov, 1, 10), 0);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	/* a write that went astray */
	fake.user->submissions[0].flags = 1;
	CHECK_EQ(fake_take(), 0);
	CHECK_EQ(claim(sp, &iov, 1, 10), -EINVAL);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	fake.status->tx_error = EMSGSIZE;
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EMSGSIZE);
	CHECK_EQ(spindle_send(sp, "x", 1), -EMSGSIZE);
	CHECK_EQ(spindle_abort(sp), 0);
	deliver(1, "receiving goes on");
	expect_one(sp, "receiving goes on");
}

TEST(who_does_not_send)
{
	struct fake_config c = { .receiver = true };
	struct spindle *sp = fake_member(&c);
	struct iovec iov;

	CHECK_EQ(fake.map_flags, SPINDLE_MAP_RX);
	CHECK_EQ(claim(sp, &iov, 1, 1), -EACCES);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EACCES);
	CHECK_EQ(spindle_send(sp, "x", 1), -EACCES);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, 0), -EACCES);
	deliver(0, "one");
	deliver(1, "other");
	expect_one(sp, "one");
	CHECK_EQ(spindle_release(sp, expect_one(sp, "other")), 0);
	CHECK_EQ(fake_collect(), 2);
}

/* Receiving */

TEST(messages_come_in_order_with_their_senders)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[8];
	unsigned int n;

	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(spindle_send(sp, "own", 3), 0);
	take(1);
	deliver(1, "first");
	fake_deliver_own();
	deliver(1, "third");
	CHECK_EQ(spindle_peek(sp, msgs, 0, &n), -EINVAL);
	CHECK_EQ(spindle_peek(sp, msgs, 2, &n), 0);
	CHECK_EQ(n, 2);
	expect(&msgs[0], "first");
	CHECK_EQ(msgs[0].rank, fake_rank(1, 0));
	CHECK_EQ(msgs[0].seq, 5);
	expect(&msgs[1], "own");
	CHECK_EQ(msgs[1].rank, fake_rank(0, 0));
	CHECK(msgs[1].seq > msgs[0].seq);
	CHECK_EQ(fake.user->rx_seen, 2);
	CHECK_EQ(fake.user->rx_released, 0);
	CHECK_EQ(spindle_peek(sp, msgs + 2, 6, &n), 0);
	CHECK_EQ(n, 1);
	expect(&msgs[2], "third");
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.user->rx_seen, 3);
	/* what is not released stays */
	expect(&msgs[0], "first");
}

TEST(release_is_cumulative)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[5];
	unsigned int n, i;

	for (i = 0; i < 6; i++)
		deliver(1, "12345");
	CHECK_EQ(spindle_release(sp, 0), -EINVAL);
	CHECK_EQ(spindle_peek(sp, msgs, 5, &n), 0);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake.user->rx_released, 3);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 3);
	CHECK_EQ(spindle_release(sp, msgs[4].entry + 1), -EINVAL);
	CHECK_EQ(spindle_release(sp, UINT64_MAX), -EINVAL);
	CHECK_EQ(spindle_release(sp, msgs[4].entry), 0);
	CHECK_EQ(fake.user->rx_released, 5);
	CHECK_EQ(stats(sp).received, 5);
	CHECK_EQ(stats(sp).received_bytes, 25);
	CHECK_EQ(stats(sp).copied_bytes, 0);
}

TEST(what_is_no_message_is_passed_over)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[4];
	unsigned int n;

	/* in front: nothing is before it, so it goes at once */
	fake_deliver_flags(1, SPINDLE_DELIVERY_FIN);
	fake_deliver_flags(1, 1U << 31);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.user->rx_seen, 2);
	CHECK_EQ(fake.user->rx_released, 2);
	/* between two: goes with the one before it */
	deliver(1, "a");
	fake_deliver_flags(1, SPINDLE_DELIVERY_FIN);
	deliver(1, "b");
	fake_deliver_flags(1, SPINDLE_DELIVERY_FIN | 1U << 7);
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 2);
	expect(&msgs[0], "a");
	expect(&msgs[1], "b");
	CHECK_EQ(fake.user->rx_seen, 6);
	CHECK_EQ(fake.user->rx_released, 2);
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(fake.user->rx_released, 4);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 6);
	/* behind all */
	fake_deliver_flags(0, SPINDLE_DELIVERY_FIN);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), -ETIMEDOUT);
	CHECK_EQ(fake.user->rx_released, 7);
	CHECK_EQ(stats(sp).received, 2);
	CHECK_EQ(fake_collect(), 7);
}

TEST(copying)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msg = { .data = "?" };
	char buf[8] = "";

	CHECK_EQ(spindle_recv(sp, buf, sizeof(buf), &msg), -EAGAIN);
	deliver(1, "12345678");
	deliver(1, "9");
	CHECK_EQ(spindle_recv(sp, buf, 7, &msg), -EMSGSIZE);
	CHECK_EQ(msg.len, 8);
	CHECK_EQ(msg.rank, fake_rank(1, 0));
	CHECK(!msg.data);
	CHECK_EQ(spindle_recv(sp, buf, 7, NULL), -EMSGSIZE);
	CHECK(!buf[0]);
	CHECK_EQ(spindle_recv(sp, buf, 8, &msg), 0);
	CHECK(msg.data == buf);
	expect(&msg, "12345678");
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(expect_one(sp, "9"), 1);
	deliver(1, "ten");
	/* it would release what is held */
	CHECK_EQ(spindle_recv(sp, buf, 8, &msg), -EBUSY);
	CHECK_EQ(spindle_release(sp, 1), 0);
	CHECK_EQ(spindle_recv(sp, buf, 8, NULL), 0);
	CHECK(!memcmp(buf, "ten", 3));
	CHECK_EQ(stats(sp).copied_bytes, 11);
	CHECK_EQ(stats(sp).received, 3);
}

/* Messages for one member */

static uint32_t for_member(uint32_t uid, uint32_t flags)
{
	return SPINDLE_PRIVATE | flags | uid << SPINDLE_UID_SHIFT;
}

/* A handle of member @uid. */
static struct spindle *member(uint32_t uid)
{
	const struct fake_config c = { .uid = uid };

	return fake_member(&c);
}

TEST(private_messages_come_to_whom_they_are_for)
{
	struct spindle *sp = member(7);
	struct spindle_msg msgs[8];
	unsigned int n;

	deliver(1, "all");
	fake_deliver_private(1, "other", 5, for_member(8, 0));
	fake_deliver_private(1, "mine", 4, for_member(7, 0));
	fake_deliver_private(1, "other", 5, for_member(7 + 256, SPINDLE_UP_TO_DATE));
	fake_deliver_private(1, "whole", 5, for_member(7, SPINDLE_UP_TO_DATE));
	/* what this library does not know of it may change what it is */
	fake_deliver_private(1, "new", 3, for_member(7, 1U << 6));
	CHECK_EQ(spindle_peek(sp, msgs, 8, &n), 0);
	CHECK_EQ(n, 3);
	expect(&msgs[0], "all");
	CHECK_EQ(msgs[0].flags, 0);
	expect(&msgs[1], "mine");
	CHECK_EQ(msgs[1].flags, SPINDLE_MSG_PRIVATE);
	CHECK_EQ(msgs[1].entry, 2);
	expect(&msgs[2], "whole");
	CHECK_EQ(msgs[2].flags, SPINDLE_MSG_PRIVATE | SPINDLE_MSG_UP_TO_DATE);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 4);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake.user->rx_released, 6);
	CHECK_EQ(stats(sp).received, 3);
	CHECK_EQ(stats(sp).received_bytes, 12);
	CHECK_EQ(fake_collect(), 6);
}

TEST(others_that_are_up_to_date_are_told_of)
{
	union {
		struct spindle_event event;
		char room[SPINDLE_EVENT_SIZE];
	} u;
	struct spindle *sp = member(7);
	struct spindle_msg msg;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_STATE), 0);
	fake_deliver_private(1, "part", 4, for_member(8, 0));
	fake_deliver_private(1, "whole", 5, for_member(8, SPINDLE_UP_TO_DATE));
	fake_deliver_view(2, 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK_EQ(spindle_recv(sp, &u, 8, &msg), -EMSGSIZE);
	CHECK_EQ(msg.len, sizeof(u.event));
	CHECK_EQ(spindle_recv(sp, &u, sizeof(u), &msg), 0);
	CHECK_EQ(msg.flags, SPINDLE_MSG_EVENT);
	CHECK_EQ(msg.event, SPINDLE_EVENT_STATE);
	CHECK_EQ(msg.number, 8);
	CHECK_EQ(msg.rank, ~0U);
	CHECK_EQ(msg.len, sizeof(u.event));
	CHECK_EQ(u.event.type, SPINDLE_EVENT_STATE);
	CHECK_EQ(u.event.number, 8);
	CHECK_EQ(u.event.seq, msg.seq);
	CHECK_EQ(u.event.members, 0);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(stats(sp).received, 0);
	CHECK_EQ(fake.user->rx_released, 3);
}

TEST(sent_to_one)
{
	const struct spindle_to to = { .uid = 0xabcdef, .flags = SPINDLE_UP_TO_DATE };
	struct spindle_to bad[] = {
		{ .uid = 1 << 24 }, { .flags = 1 }, { .flags = SPINDLE_PRIVATE },
		{ .__resv = { 0, 1 } }, { .__resv = { 1, 0 } },
	};
	struct spindle *sp = member(7);
	struct iovec iov[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(spindle_send_to(sp, "x", 1, &bad[i]), -EINVAL);
	CHECK_EQ(claim(sp, iov, 3, 100), 0);
	CHECK_EQ(spindle_commit_to(sp, 1, NULL, &bad[0]), -EINVAL);
	CHECK_EQ(spindle_commit_to(sp, 2, NULL, &to), 0);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	CHECK_EQ(spindle_send_to(sp, "12345", 5, &to), 0);
	CHECK_EQ(spindle_send(sp, "67", 2), 0);
	CHECK_EQ(fake_take(), 5);
	CHECK_EQ(fake.status->tx_error, 0);
	/* the last of several is the last of all */
	CHECK_EQ(fake.taken[0].flags, for_member(0xabcdef, 0));
	CHECK_EQ(fake.taken[1].flags, for_member(0xabcdef, SPINDLE_UP_TO_DATE));
	CHECK_EQ(fake.taken[2].flags, 0);
	CHECK_EQ(fake.taken[3].flags, for_member(0xabcdef, SPINDLE_UP_TO_DATE));
	CHECK_EQ(fake.taken[3].len, 5);
	CHECK_EQ(fake.taken[4].flags, 0);
	CHECK_EQ(stats(sp).sent, 5);
	CHECK_EQ(stats(sp).copied_bytes, 7);
}

/* Views */

static void expect_view(const struct spindle_msg *msg, uint32_t number)
{
	CHECK_SAME(msg->flags, SPINDLE_MSG_EVENT);
	CHECK_SAME(msg->event, SPINDLE_EVENT_VIEW);
	CHECK_SAME(msg->number, number);
	CHECK_SAME(msg->rank, ~0U);
	CHECK_SAME(msg->__resv, 0);
}

static void check_event(const struct spindle_event *event, uint32_t number, size_t size)
{
	const struct fake_view *view = &fake.views[number];
	struct spindle_event_member want;
	unsigned int i;

	CHECK_EQ(event->type, SPINDLE_EVENT_VIEW);
	CHECK_EQ(event->number, number);
	CHECK_EQ(event->view, number);
	CHECK_EQ(event->members, view->members);
	CHECK_EQ(event->left, view->left);
	CHECK_EQ(size, sizeof(*event) + (view->members + view->left) * sizeof(want));
	for (i = 0; i < view->members + view->left; i++) {
		want = fake_member_of(number, i);
		CHECK(!memcmp(&event->member[i], &want, sizeof(want)));
	}
}

TEST(ranks_are_those_of_the_view)
{
	struct fake_config c = { .lanes = 4 };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msgs[4];
	unsigned int n;

	deliver(3, "before");
	fake_deliver_view(3, 1);
	deliver(3, "behind");
	deliver(1, "other");
	/* nobody asked for the event */
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 3);
	expect(&msgs[0], "before");
	CHECK_EQ(msgs[0].rank, fake_rank(3, 0));
	CHECK_EQ(msgs[0].flags | msgs[0].event | msgs[0].number | msgs[0].__resv, 0);
	expect(&msgs[1], "behind");
	CHECK_EQ(msgs[1].rank, fake_rank(3, 1));
	CHECK_EQ(msgs[2].rank, fake_rank(1, 1));
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(fake.user->rx_released, 2);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake_collect(), 4);
}

TEST(the_largest_rank_and_lane)
{
	struct fake_config c = { .lanes = SPINDLE_MAX_MEMBERS };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msg;
	unsigned int n;

	deliver(63, "x");
	fake.deliveries[0].lane = 63 | 63 << SPINDLE_DELIVERY_RANK_SHIFT;
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
	expect(&msg, "x");
	CHECK_EQ(msg.rank, 63);
}

TEST(wanted_events_are_in_their_place)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[6];
	unsigned int n;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	fake_deliver_view(2, 0);
	deliver(1, "a");
	fake_deliver_view(1, 1);
	deliver(1, "b");
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK_EQ(spindle_peek(sp, msgs, 6, &n), 0);
	CHECK_EQ(n, 4);
	expect_view(&msgs[0], 1);
	CHECK(!msgs[0].data);
	CHECK_EQ(msgs[0].len, 0);
	CHECK_EQ(msgs[0].entry, 0);
	expect(&msgs[1], "a");
	expect_view(&msgs[2], 2);
	CHECK(msgs[2].seq > msgs[1].seq);
	expect(&msgs[3], "b");
	CHECK_EQ(fake.user->rx_released, 0);
	/* they are held and released as messages are, but are none */
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 2);
	CHECK_EQ(spindle_release(sp, msgs[3].entry), 0);
	CHECK_EQ(fake.user->rx_released, 4);
	CHECK_EQ(stats(sp).received, 2);
	CHECK_EQ(stats(sp).received_bytes, 2);
	CHECK_EQ(fake_collect(), 4);
}

TEST(an_event_alone_ends_waiting_when_it_is_wanted)
{
	struct spindle *sp = fake_member(&small);

	fake_deliver_view(2, 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), -ETIMEDOUT);
	CHECK_EQ(fake.user->rx_seen, 1);
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	CHECK_EQ(peek(sp), -EAGAIN);
	fake_deliver_view(1, 1);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK_EQ(fake.user->rx_seen, 1);
	CHECK_EQ(peek(sp), 0);
}

TEST(what_an_event_says)
{
	struct spindle *sp = fake_member(&small);
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	struct spindle_msg msgs[3];
	const size_t need = sizeof(u.event) + 3 * sizeof(u.event.member[0]);
	unsigned int n;
	size_t size;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	fake_deliver_view(2, 1);
	fake_deliver_view(SPINDLE_MAX_MEMBERS, SPINDLE_MAX_MEMBERS);
	CHECK_EQ(spindle_peek(sp, msgs, 3, &n), 0);
	CHECK_EQ(n, 2);
	size = sizeof(u);
	CHECK_EQ(spindle_event(sp, 1, &u.event, &size), 0);
	check_event(&u.event, 1, size);
	CHECK_EQ(u.event.seq, msgs[0].seq);
	CHECK_EQ(u.event.member[2].reason, SPINDLE_REASON_LEFT);
	/* as often as one likes, with just the room that it needs */
	CHECK_EQ(size, need);
	CHECK_EQ(spindle_event(sp, 1, &u.event, &size), 0);
	check_event(&u.event, 1, size);
	size = need - 1;
	CHECK_EQ(spindle_event(sp, 1, &u.event, &size), -ERANGE);
	CHECK_EQ(size, need);
	size = sizeof(u.event);
	CHECK_EQ(spindle_event(sp, 1, &u.event, &size), -ERANGE);
	CHECK_EQ(size, need);
	size = sizeof(u.event) - 1;
	CHECK_EQ(spindle_event(sp, 1, &u.event, &size), -EINVAL);
	/* the largest that there can be */
	size = SIZE_MAX;
	CHECK_EQ(spindle_event(sp, 2, &u.event, &size), 0);
	CHECK_EQ(size, SPINDLE_EVENT_SIZE);
	check_event(&u.event, 2, size);
	size = sizeof(u);
	CHECK_EQ(spindle_event(sp, 3, &u.event, &size), -ENOENT);
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(spindle_event(sp, 1, &u.event, &size), -ENOENT);
	CHECK_EQ(size, sizeof(u));
	CHECK_EQ(spindle_event(sp, 2, &u.event, &size), 0);
	check_event(&u.event, 2, size);
}

TEST(a_copied_event)
{
	struct spindle *sp = fake_member(&small);
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	const size_t need = sizeof(u.event) + 5 * sizeof(u.event.member[0]);
	struct spindle_msg msg;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	fake_deliver_view(4, 1);
	deliver(1, "x");
	CHECK_EQ(spindle_recv(sp, NULL, 0, &msg), -EMSGSIZE);
	expect_view(&msg, 1);
	CHECK_EQ(msg.len, need);
	CHECK(!msg.data);
	CHECK_EQ(spindle_recv(sp, u.room, need - 1, NULL), -EMSGSIZE);
	CHECK_EQ(fake.user->rx_released, 0);
	CHECK_EQ(spindle_recv(sp, u.room, need, &msg), 0);
	expect_view(&msg, 1);
	CHECK(msg.data == u.room);
	check_event(&u.event, 1, msg.len);
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(spindle_recv(sp, u.room, sizeof(u), &msg), 0);
	expect(&msg, "x");
	CHECK_EQ(msg.flags, 0);
	CHECK_EQ(stats(sp).received, 1);
	CHECK_EQ(stats(sp).copied_bytes, 1);
	/* held ones stand in the way as held messages do */
	fake_deliver_view(4, 0);
	deliver(1, "y");
	CHECK_EQ(peek(sp), 0);
	CHECK_EQ(spindle_recv(sp, u.room, sizeof(u), &msg), -EBUSY);
	CHECK_EQ(spindle_release(sp, 2), 0);
	CHECK_EQ(spindle_recv(sp, u.room, sizeof(u), NULL), 0);
}

TEST(what_is_wanted_may_change)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[4];
	struct spindle_event *event;
	unsigned int n;
	size_t size = SPINDLE_EVENT_SIZE;

	event = malloc(size);
	CHECK(event);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	deliver(1, "a");
	fake_deliver_view(2, 0);
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 2);
	/* what was given out is held until it is released itself */
	CHECK_EQ(spindle_events(sp, 0), 0);
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(spindle_event(sp, 1, event, &size), 0);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 2);
	/* and what was passed over goes with what is before it */
	deliver(1, "b");
	fake_deliver_view(2, 0);
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(fake.user->rx_released, 4);
	free(event);
}

TEST(a_place_says_nothing_of_what_stood_there_before)
{
	struct fake_config c = { .deliveries = 16 };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msgs[2];
	unsigned int i, n;

	/* each place has had an event that was given out, then one that was not */
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	for (i = 0; i < 16; i++) {
		fake_deliver_view(2, 0);
		CHECK_EQ(spindle_peek(sp, msgs, 1, &n), 0);
		CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
		fake_collect();
	}
	CHECK_EQ(spindle_events(sp, 0), 0);
	for (i = 0; i < 16; i += 2) {
		deliver(1, "x");
		fake_deliver_view(2, 0);
		CHECK_EQ(spindle_peek(sp, msgs, 2, &n), 0);
		CHECK_EQ(n, 1);
		CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
		CHECK_EQ(fake_collect(), 2);
	}
}

TEST(events_of_a_kind_that_is_not_known)
{
	struct spindle *sp = fake_member(&small);

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_ALL), 0);
	fake_deliver_flags(0, SPINDLE_DELIVERY_EVENT);
	fake_deliver_flags(SPINDLE_EVENT_STATE + 1, SPINDLE_DELIVERY_EVENT);
	fake_deliver_flags(32 + SPINDLE_EVENT_VIEW, SPINDLE_DELIVERY_EVENT);
	fake_deliver_flags(SPINDLE_EVENT_VIEW, SPINDLE_DELIVERY_EVENT | 1U << 9);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.user->rx_released, 4);
}

/* The end */

TEST(who_has_left_reads_to_the_end_and_sends_nothing)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[4];
	struct iovec iov;
	unsigned int n;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	CHECK_EQ(spindle_send(sp, "last", 4), 0);
	CHECK_EQ(claim(sp, &iov, 1, 1), 0);
	CHECK_EQ(spindle_leave(sp), 0);
	take(1);
	/* the claim is given up */
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EPIPE);
	CHECK_EQ(claim(sp, &iov, 1, 1), -EPIPE);
	CHECK_EQ(spindle_send(sp, "x", 1), -EPIPE);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(fake_take(), 0);
	CHECK_EQ(peek(sp), -EAGAIN);
	deliver(1, "still");
	CHECK(fake_deliver_own());
	/* of the view that is without it the member has no event */
	fake_set_state(SPINDLE_STATE_CLOSED, 0);
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 2);
	expect(&msgs[0], "still");
	expect(&msgs[1], "last");
	CHECK_EQ(peek(sp), -ENODATA);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(spindle_recv(sp, NULL, 0, NULL), -ENODATA);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), -EPIPE);
	CHECK_EQ(spindle_leave(sp), 0);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(a_claim_stays_when_leaving_fails)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;

	CHECK_EQ(claim(sp, &iov, 1, 1), 0);
	fake.leave_errno = ENOTCONN;
	CHECK_EQ(spindle_leave(sp), -ENOTCONN);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	take(1);
}

TEST(the_end_comes_behind_the_last_message)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;

	deliver(1, "last");
	fake_deliver_flags(0, SPINDLE_DELIVERY_FIN);
	fake_deliver_flags(1, SPINDLE_DELIVERY_FIN);
	fake_set_state(SPINDLE_STATE_CLOSED, 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(spindle_release(sp, expect_one(sp, "last")), 0);
	CHECK_EQ(peek(sp), -ENODATA);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(spindle_recv(sp, NULL, 0, NULL), -ENODATA);
	CHECK_EQ(fake.user->rx_released, 3);
	CHECK_EQ(claim(sp, &iov, 1, 1), -EPIPE);
	CHECK_EQ(fake.polls, 0);
}

#define ENDS	10000

/* A message and the end behind it at once, again and again. */
static void *end_often(void *arg)
{
	unsigned int i, *turn = arg;

	for (i = 0; i < ENDS; i++) {
		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		fake_collect();
		deliver(1, "last");
		fake_set_state(SPINDLE_STATE_CLOSED, 0);
	}
	return NULL;
}

TEST(the_end_does_not_overtake_the_last_message)
{
	struct spindle *sp = fake_member(&small);
	unsigned int i, turn = 0;
	pthread_t thread;
	int ret;

	CHECK_EQ(pthread_create(&thread, NULL, end_often, &turn), 0);
	for (i = 0; i < ENDS; i++) {
		while ((ret = peek(sp)) == -EAGAIN)
			if (fake.looks++ % 4096 == 0)
				sched_yield();
		CHECK_EQ(ret, 0);
		CHECK_EQ(spindle_release(sp, i), 0);
		while ((ret = peek(sp)) == -EAGAIN)
			sched_yield();
		CHECK_EQ(ret, -ENODATA);
		fake_set_state(SPINDLE_STATE_ACTIVE, 0);
		__atomic_store_n(&turn, i + 1, __ATOMIC_RELEASE);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_group_that_failed_can_be_read_to_its_last)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;

	CHECK_EQ(claim(sp, &iov, 1, 1), 0);
	deliver(1, "last");
	fake_set_state(SPINDLE_STATE_FAILED, ECONNABORTED);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -ECONNABORTED);
	CHECK_EQ(fake_take(), 0);
	CHECK_EQ(spindle_abort(sp), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), -ECONNABORTED);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	expect_one(sp, "last");
	CHECK_EQ(peek(sp), -ECONNABORTED);
	CHECK_EQ(spindle_recv(sp, NULL, 0, NULL), -ECONNABORTED);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_SPIN, -1), 0);
	CHECK_EQ(spindle_release(sp, 0), 0);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(an_evicted_member_believes_nothing_that_it_reads)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msg;
	char buf[16];
	unsigned int n;

	deliver(1, "held");
	deliver(1, "there");
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
	CHECK_EQ(n, 1);
	fake_set_state(SPINDLE_STATE_EVICTED, ENOBUFS);
	CHECK_EQ(spindle_release(sp, msg.entry), -ENOBUFS);
	CHECK_EQ(peek(sp), -ENOBUFS);
	CHECK_EQ(spindle_recv(sp, buf, sizeof(buf), NULL), -ENOBUFS);
	CHECK_EQ(spindle_send(sp, "x", 1), -ENOBUFS);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(shutdown_gives_up_the_claim)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov;

	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(claim(sp, &iov, 1, 1), 0);
	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(fake.shutdowns, 1);
	take(1);
	CHECK_EQ(claim(sp, &iov, 1, 1), -EPIPE);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -EPIPE);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, -1), 0);
	deliver(1, "still");
	expect_one(sp, "still");
}

/* Waking the engine */

TEST(a_system_call_only_when_the_engine_sleeps)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov[3];
	unsigned int i;

	for (i = 0; i < 5; i++) {
		around(sp, 100);
		deliver(1, "x");
		CHECK_EQ(spindle_release(sp, expect_one(sp, "x")), 0);
		fake_collect();
	}
	CHECK_EQ(fake.kicks, 0);
	fake_set_flags(SPINDLE_NEED_WAKEUP);
	CHECK_EQ(claim(sp, iov, 3, 100), 0);
	CHECK_EQ(spindle_abort(sp), 0);
	CHECK_EQ(peek(sp), -EAGAIN);
	deliver(1, "x");
	expect_one(sp, "x");
	CHECK_EQ(fake.kicks, 0);
	CHECK_EQ(claim(sp, iov, 3, 100), 0);
	CHECK_EQ(spindle_commit(sp, 3, NULL), 0);
	CHECK_EQ(fake.kicks, 1);
	CHECK_EQ(spindle_release(sp, 10), 0);
	CHECK_EQ(fake.kicks, 2);
	CHECK_EQ(spindle_release(sp, 10), 0);
	CHECK_EQ(fake.kicks, 2);
	fake_deliver_flags(1, SPINDLE_DELIVERY_FIN);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.kicks, 3);
	fake_set_flags(0);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(fake.kicks, 3);
	CHECK_EQ(stats(sp).kicks, 3);
	CHECK_EQ(stats(sp).waits, 0);
}

TEST(what_is_released_may_wait)
{
	struct spindle *sp = fake_member(&small);

	fake_set_flags(SPINDLE_NEED_WAKEUP | SPINDLE_RX_MAY_WAIT);
	deliver(1, "x");
	CHECK_EQ(spindle_release(sp, expect_one(sp, "x")), 0);
	CHECK_EQ(fake.kicks, 0);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(fake.kicks, 1);
	fake_set_flags(SPINDLE_NEED_WAKEUP);
	deliver(1, "x");
	CHECK_EQ(spindle_release(sp, expect_one(sp, "x")), 0);
	CHECK_EQ(fake.kicks, 2);
}

/* Waiting */

static const enum spindle_wait ways[] = {
	SPINDLE_WAIT_BLOCK, SPINDLE_WAIT_ADAPTIVE, SPINDLE_WAIT_SPIN,
};

TEST(waiting_for_what_is_there_takes_no_system_call)
{
	struct spindle *sp = fake_member(&small);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++)
		CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, ways[i], -1), 0);
	deliver(1, "x");
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, ways[i], -1), 0);
		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE | SPINDLE_WRITABLE, ways[i], 0), 0);
	}
	/* what was seen is not waited for again */
	expect_one(sp, "x");
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, ways[i], 0), -ETIMEDOUT);
	CHECK_EQ(fake.polls, 0);
	CHECK_EQ(stats(sp).waits, 0);
}

TEST(waiting_for_nothing_known)
{
	struct spindle *sp = fake_member(&small);

	CHECK_EQ(spindle_wait(sp, 0, SPINDLE_WAIT_BLOCK, 0), -EINVAL);
	CHECK_EQ(spindle_wait(sp, 4, SPINDLE_WAIT_BLOCK, 0), -EINVAL);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, (enum spindle_wait)3, 0), -EINVAL);
}

TEST(waiting_ends_in_time)
{
	struct spindle *sp = fake_member(&small);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		double start = st_now();

		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, ways[i], 30), -ETIMEDOUT);
		CHECK(st_now() - start >= 0.030);
		if (ways[i] != SPINDLE_WAIT_SPIN)
			CHECK(fake.polls);
		else
			CHECK_EQ(fake.polls, 0);
		fake.polls = 0;
	}
	CHECK(stats(sp).waits);
}

static unsigned int polls_now(void)
{
	return __atomic_load_n(&fake.polls, __ATOMIC_RELAXED);
}

/* Until the other thread waits: it polls, or it spins, which nobody sees. */
static void wait_for_waiter(enum spindle_wait how)
{
	if (how == SPINDLE_WAIT_SPIN)
		st_pause_us(20000);
	else
		WAIT_UNTIL(polls_now(), ST_SOON);
}

static void *deliver_soon(void *arg)
{
	wait_for_waiter(*(enum spindle_wait *)arg);
	deliver(1, "soon");
	return NULL;
}

TEST(waiting_ends_with_a_message)
{
	struct spindle *sp = fake_member(&small);
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		enum spindle_wait how = ways[i];

		fake.polls = 0;
		CHECK_EQ(pthread_create(&thread, NULL, deliver_soon, &how), 0);
		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, how,
				      i & 1 ? st_bound_ms(ST_SOON) : -1), 0);
		CHECK_EQ(spindle_release(sp, expect_one(sp, "soon")), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_EQ(fake.polls, how != SPINDLE_WAIT_SPIN);
	}
}

/* While no majority is heard nothing is sent, and what is claimed is kept. */
TEST(no_majority_for_a_while)
{
	struct spindle *sp = fake_member(&small);
	struct iovec iov = { .iov_len = 4 };

	CHECK_EQ(spindle_claim(sp, &iov, 1), 0);
	memcpy(iov.iov_base, "kept", 4);
	fake_set_state(SPINDLE_STATE_MINORITY, ENETDOWN);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -ENETDOWN);
	CHECK_EQ(spindle_wait(sp, SPINDLE_WRITABLE, SPINDLE_WAIT_SPIN, -1), 0);
	CHECK_EQ(peek(sp), -EAGAIN);
	/* It is over between two looks. */
	fake_set_state(SPINDLE_STATE_MINORITY, 0);
	CHECK_EQ(spindle_send(sp, "x", 1), -ENETDOWN);
	fake_set_state(SPINDLE_STATE_ACTIVE, 0);
	CHECK_EQ(spindle_send(sp, "x", 1), -EBUSY);
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
}

static void *fail_soon(void *arg)
{
	wait_for_waiter(*(enum spindle_wait *)arg);
	fake_set_state(SPINDLE_STATE_FAILED, ENETDOWN);
	return NULL;
}

static void fails_while_waiting(unsigned int events)
{
	static const char rest[4096 - 64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		struct spindle *sp = fake_member(&small);
		enum spindle_wait how = ways[i];
		pthread_t thread;

		CHECK_EQ(spindle_send(sp, "x", 1), 0);
		CHECK_EQ(spindle_send(sp, rest, sizeof(rest)), 0);
		CHECK_EQ(spindle_send(sp, "x", 1), -EAGAIN);
		CHECK_EQ(pthread_create(&thread, NULL, fail_soon, &how), 0);
		CHECK_EQ(spindle_wait(sp, events, how, -1), 0);
		CHECK_EQ(events & SPINDLE_READABLE ? peek(sp) : spindle_send(sp, "x", 1),
			 -ENETDOWN);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
}

TEST(waiting_for_messages_ends_with_the_group)
{
	fails_while_waiting(SPINDLE_READABLE);
}

TEST(waiting_for_room_ends_with_the_group)
{
	fails_while_waiting(SPINDLE_WRITABLE);
}

static void on_signal(int sig)
{
	(void)sig;
}

static bool woken;

/* Again and again, for one may come between two naps of the fake poll(). */
static void *send_signals(void *arg)
{
	WAIT_UNTIL(polls_now(), ST_SOON);
	while (!__atomic_load_n(&woken, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(pthread_kill(*(pthread_t *)arg, SIGUSR1), 0);
		st_pause_us(1000);
	}
	return NULL;
}

TEST(a_signal_ends_sleep)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct spindle *sp = fake_member(&small);
	pthread_t self = pthread_self(), thread;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_EQ(pthread_create(&thread, NULL, send_signals, &self), 0);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), -EINTR);
	__atomic_store_n(&woken, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(an_error_of_the_other_direction_is_no_busy_loop)
{
	struct spindle *sp = fake_member(&small);

	/* poll() shows POLLERR all the time, and there is nothing to read */
	fake.status->tx_error = EINVAL;
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 100), -ETIMEDOUT);
	CHECK(fake.polls < 600);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
