// SPDX-License-Identifier: GPL-2.0
/* libspindle's sending, receiving and waiting, step by step against a fake engine. */
#include "fake.h"

#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

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
	CHECK_EQ(msg->len, strlen(text));
	if (memcmp(msg->data, text, msg->len))
		FAIL("\"%.*s\", not \"%s\"", (int)msg->len, (const char *)msg->data, text);
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
	/* that may be an object, which the kernel decides */
	fake.send_errno = EMSGSIZE;
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
	/* a write that went astray */
	fake.user->submissions[0].flags = 1;
	CHECK_EQ(spindle_commit(sp, 1, NULL), 0);
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
	CHECK_EQ(msgs[0].rank, FAKE_RANK + 1);
	CHECK_EQ(msgs[0].seq, 5);
	expect(&msgs[1], "own");
	CHECK_EQ(msgs[1].rank, FAKE_RANK);
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
	fake_deliver_flags(1, SPINDLE_DELIVERY_EVENT | 1U << 7);
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
	CHECK_EQ(msg.rank, FAKE_RANK + 1);
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

/* Rings by slot */

static unsigned int lane_maps(void)
{
	return fake.maps - 3 - !fake.c.receiver;
}

TEST(a_ring_is_mapped_at_its_first_message)
{
	struct fake_config c = { .lanes = 5, .slots = 80 };
	struct spindle *sp = fake_member(&c);
	unsigned int i;

	CHECK_EQ(lane_maps(), 0);
	for (i = 0; i < 3; i++) {
		deliver(4, "four");
		CHECK_EQ(spindle_release(sp, expect_one(sp, "four")), 0);
		CHECK_EQ(lane_maps(), 1);
	}
	CHECK_EQ(fake_collect(), 3);
	around(sp, 10);
	CHECK_EQ(lane_maps(), 2);
	CHECK_EQ(fake.unmaps, 0);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, fake.maps);
}

TEST(a_ring_that_cannot_be_mapped_loses_nothing)
{
	struct fake_config c = { .lanes = 4 };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msgs[4];
	char buf[16];
	unsigned int n;

	deliver(1, "one");
	fake.fail_map = 1;
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), -ENOMEM);
	CHECK_EQ(n, 0);
	fake.fail_map = 1;
	CHECK_EQ(spindle_recv(sp, buf, sizeof(buf), NULL), -ENOMEM);
	/* what can be given is given */
	deliver(2, "two");
	fake.fail_map = 2;
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 1);
	expect(&msgs[0], "one");
	expect_one(sp, "two");
	/* no such slot */
	deliver(3, "x");
	fake.deliveries[2].lane |= 77;
	CHECK_EQ(peek(sp), -EPROTO);
}

static void view_begins(unsigned int slot)
{
	CHECK(fake_renew(slot));
	fake_event(SPINDLE_EVENT_VIEW);
}

TEST(a_slot_is_another_lanes_after_a_view)
{
	struct fake_config c = { .lanes = 3, .slots = 4 };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msg;
	unsigned int i, n;

	for (i = 0; i < 10; i++) {
		deliver(1, "before");
		deliver(2, "stays");
		CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
		CHECK_EQ(msg.rank, i ? FAKE_RANK + 2 + i : FAKE_RANK + 1);
		expect(&msg, "before");
		CHECK_EQ(spindle_release(sp, expect_one(sp, "stays")), 0);
		CHECK_EQ(lane_maps(), 2 * (i + 1));
		CHECK_EQ(fake.unmaps, 2 * i);
		CHECK(!fake_renew(1));
		CHECK_EQ(fake_collect(), 2 + !!i);
		view_begins(1);
		CHECK_EQ(peek(sp), -EAGAIN);
		/* of both, as it cannot know which */
		CHECK_EQ(fake.unmaps, 2 * (i + 1));
	}
	/* who is in it was asked each time */
	CHECK_EQ(fake.event_calls, 1 + 10);
}

TEST(what_is_held_stays_mapped_through_views)
{
	struct fake_config c = { .lanes = 4, .deliveries = 16 };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msgs[8];
	unsigned int n;

	fake.holds = true;
	deliver(1, "held");
	deliver(2, "gone");
	deliver(1, "too");
	CHECK_EQ(spindle_peek(sp, msgs, 8, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	fake_collect();
	CHECK(!fake_renew(1));
	view_begins(2);
	deliver(2, "new");
	CHECK_EQ(spindle_peek(sp, msgs + 3, 5, &n), 0);
	CHECK_EQ(n, 1);
	expect(&msgs[3], "new");
	CHECK_EQ(msgs[3].rank, FAKE_RANK + 4);
	CHECK_EQ(lane_maps(), 3);
	CHECK_EQ(fake.unmaps, 1);
	/* the third is still where it was, and its sender's ring the same */
	expect(&msgs[2], "too");
	deliver(1, "more");
	expect_one(sp, "more");
	CHECK_EQ(lane_maps(), 3);
	/* two views over what is held; the releases let the rings go */
	fake_event(SPINDLE_EVENT_VIEW);
	deliver(3, "last");
	expect_one(sp, "last");
	fake_event(SPINDLE_EVENT_VIEW);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.unmaps, 1);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake.unmaps, 1);
	CHECK_EQ(spindle_release(sp, msgs[3].entry), 0);
	CHECK_EQ(fake.unmaps, 2);
	CHECK_EQ(spindle_release(sp, msgs[3].entry + 1), 0);
	CHECK_EQ(fake.unmaps, 3);
	CHECK_EQ(fake.user->rx_released, 7);
	CHECK_EQ(spindle_release(sp, msgs[3].entry + 3), 0);
	CHECK_EQ(fake.unmaps, 4);
	CHECK_EQ(fake.user->rx_released, 9);
	fake_collect();
	view_begins(1);
	deliver(1, "anew");
	CHECK_EQ(spindle_release(sp, expect_one(sp, "anew")), 0);
	CHECK_EQ(lane_maps(), 5);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, fake.maps);
}

/* Events */

TEST(events_come_when_they_are_wanted)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[8];
	unsigned int n;

	CHECK_EQ(spindle_events(sp, 1), -EINVAL);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_ALL << 1), -EINVAL);
	fake.events_errno = EBUSY;
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_ALL), -EBUSY);
	fake.events_errno = 0;
	fake_event(SPINDLE_EVENT_VIEW);
	fake_event(SPINDLE_EVENT_SLOW);
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.user->rx_released, 2);

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW | SPINDLE_WANT_CURRENT), 0);
	CHECK_EQ(fake.wanted, SPINDLE_WANT_VIEW | SPINDLE_WANT_CURRENT);
	deliver(1, "a");
	CHECK_EQ(fake_event(SPINDLE_EVENT_VIEW), 3);
	fake_event(SPINDLE_EVENT_SUSPECTED);
	deliver(1, "b");
	CHECK_EQ(fake_event(SPINDLE_EVENT_CURRENT), 5);
	fake_event((enum spindle_event_type)40);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), 0);
	CHECK_EQ(spindle_peek(sp, msgs, 8, &n), 0);
	CHECK_EQ(n, 4);
	expect(&msgs[0], "a");
	CHECK_EQ(msgs[0].flags, 0);
	CHECK_EQ(msgs[0].event, 0);
	CHECK_EQ(msgs[1].flags, SPINDLE_MSG_EVENT);
	CHECK_EQ(msgs[1].event, SPINDLE_EVENT_VIEW);
	CHECK_EQ(msgs[1].number, 3);
	CHECK_EQ(msgs[1].rank, ~0U);
	CHECK_EQ(msgs[1].len, 0);
	CHECK(!msgs[1].data);
	expect(&msgs[2], "b");
	CHECK_EQ(msgs[3].event, SPINDLE_EVENT_CURRENT);
	CHECK_EQ(msgs[3].number, 5);
	CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
	CHECK_EQ(fake.user->rx_released, 3);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 5);
	CHECK_EQ(spindle_release(sp, msgs[3].entry), 0);
	CHECK_EQ(fake.user->rx_released, 8);
	/* an event is no message */
	CHECK_EQ(stats(sp).received, 2);
	CHECK_EQ(fake_collect(), 8);
}

TEST(what_was_given_stays_given)
{
	struct spindle *sp = fake_member(&small);

	/* wanted no more when it is released */
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	deliver(1, "a");
	expect_one(sp, "a");
	fake_event(SPINDLE_EVENT_VIEW);
	CHECK_EQ(peek(sp), 0);
	CHECK_EQ(spindle_events(sp, 0), 0);
	CHECK_EQ(spindle_release(sp, 0), 0);
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(spindle_release(sp, 1), 0);
	CHECK_EQ(fake.user->rx_released, 2);
	/* not wanted before, and passed over */
	deliver(1, "b");
	fake_event(SPINDLE_EVENT_VIEW);
	expect_one(sp, "b");
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	CHECK_EQ(spindle_release(sp, 2), 0);
	CHECK_EQ(fake.user->rx_released, 4);
}

TEST(what_an_event_says)
{
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	struct spindle *sp = fake_member(&small);
	struct spindle_event *event = &u.event;
	size_t size = sizeof(*event);
	struct spindle_msg msg;
	unsigned int n;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_ALL), 0);
	fake_event(SPINDLE_EVENT_VIEW);
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
	CHECK_EQ(spindle_event(sp, msg.number, event, &(size_t){ sizeof(*event) - 1 }), -EINVAL);
	CHECK_EQ(spindle_event(sp, msg.number, event, &size), -ERANGE);
	CHECK_EQ(size, sizeof(*event) + 4 * sizeof(event->member[0]));
	CHECK_EQ(event->members, 3);
	CHECK_EQ(spindle_event(sp, msg.number, event, &size), 0);
	CHECK_EQ(event->type, SPINDLE_EVENT_VIEW);
	CHECK_EQ(event->view, 2);
	CHECK_EQ(event->members, 3);
	CHECK_EQ(event->member[2].flags, SPINDLE_EM_SELF);
	CHECK_EQ(event->member[3].reason, SPINDLE_REASON_LOST);
	size = SIZE_MAX;
	CHECK_EQ(spindle_event(sp, msg.number + 1, event, &size), -ENOENT);
	CHECK_EQ(spindle_release(sp, msg.entry), 0);
	CHECK_EQ(spindle_event(sp, msg.number, event, &size), -ENOENT);
}

TEST(copying_events)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_event event;
	char room[SPINDLE_EVENT_SIZE];
	struct spindle_msg msg;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_ALL), 0);
	fake_event(SPINDLE_EVENT_SUSPECTED);
	deliver(1, "x");
	fake_event(SPINDLE_EVENT_VIEW);
	CHECK_EQ(spindle_recv(sp, &event, sizeof(event) - 1, &msg), -EMSGSIZE);
	CHECK_EQ(msg.len, sizeof(event));
	CHECK_EQ(msg.event, SPINDLE_EVENT_SUSPECTED);
	CHECK(!msg.data);
	CHECK_EQ(spindle_recv(sp, &event, sizeof(event), &msg), 0);
	CHECK(msg.data == &event);
	CHECK_EQ(msg.flags, SPINDLE_MSG_EVENT);
	CHECK_EQ(event.type, SPINDLE_EVENT_SUSPECTED);
	CHECK_EQ(event.subject, 1);
	CHECK_EQ(fake.user->rx_released, 1);
	CHECK_EQ(spindle_recv(sp, room, 1, &msg), 0);
	CHECK_EQ(msg.flags, 0);
	/* at any place in memory */
	fake.events_errno = ENOMEM;
	CHECK_EQ(spindle_recv(sp, room + 1, sizeof(room) - 1, &msg), -ENOMEM);
	fake.events_errno = 0;
	CHECK_EQ(spindle_recv(sp, room + 1, sizeof(room) - 1, NULL), 0);
	memcpy(&event, room + 1, sizeof(event));
	CHECK_EQ(event.members, 3);
	CHECK_EQ(fake.user->rx_released, 3);
	CHECK_EQ(stats(sp).received, 1);
	CHECK_EQ(stats(sp).copied_bytes, 1);
}

/* State */

static void state(unsigned int lane, uint32_t uid, uint32_t last, const char *text)
{
	fake_deliver_state(lane, SPINDLE_DELIVERY_STATE | last | uid << SPINDLE_DELIVERY_UID_SHIFT,
			   text, strlen(text));
}

TEST(state_for_others_is_passed_over)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[8];
	unsigned int n;

	fake_event(SPINDLE_EVENT_VIEW);
	state(1, FAKE_UID - 1, 0, "not mine");
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(fake.user->rx_released, 2);
	CHECK_EQ(lane_maps(), 0);
	deliver(1, "a");
	state(1, FAKE_UID, 0, "mine");
	state(1, FAKE_UID + (1 << 16), SPINDLE_DELIVERY_LAST, "not mine");
	state(1, FAKE_UID, SPINDLE_DELIVERY_LAST, "all");
	/* what nobody can know */
	state(1, FAKE_UID, 1 << 5, "?");
	CHECK_EQ(spindle_peek(sp, msgs, 8, &n), 0);
	CHECK_EQ(n, 3);
	expect(&msgs[1], "mine");
	CHECK_EQ(msgs[1].flags, SPINDLE_MSG_STATE);
	CHECK_EQ(msgs[1].rank, FAKE_RANK + 1);
	expect(&msgs[2], "all");
	CHECK_EQ(msgs[2].flags, SPINDLE_MSG_STATE | SPINDLE_MSG_LAST);
	CHECK_EQ(spindle_release(sp, msgs[1].entry), 0);
	CHECK_EQ(fake.user->rx_released, 5);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake.user->rx_released, 7);
	CHECK_EQ(stats(sp).received, 3);
	CHECK_EQ(stats(sp).received_bytes, 8);
	CHECK_EQ(fake_collect(), 7);
}

TEST(others_are_current)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msgs[8];
	struct spindle_event event;
	unsigned int n;

	fake_event(SPINDLE_EVENT_VIEW);
	state(1, FAKE_UID - 1, SPINDLE_DELIVERY_LAST, "not asked for");
	CHECK_EQ(peek(sp), -EAGAIN);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_CURRENT), 0);
	state(1, FAKE_UID - 1, 0, "not the last");
	state(1, FAKE_UID - 1, SPINDLE_DELIVERY_LAST, "the last");
	/* its own is a message */
	state(1, FAKE_UID, SPINDLE_DELIVERY_LAST, "own");
	state(1, FAKE_UID + 5, SPINDLE_DELIVERY_LAST, "of who is gone");
	CHECK_EQ(spindle_peek(sp, msgs, 8, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(msgs[0].flags, SPINDLE_MSG_EVENT);
	CHECK_EQ(msgs[0].event, SPINDLE_EVENT_CURRENT);
	CHECK_EQ(msgs[0].rank, 1);
	CHECK_EQ(msgs[0].number, 0);
	CHECK(!msgs[0].data);
	CHECK_EQ(msgs[0].len, 0);
	expect(&msgs[1], "own");
	CHECK_EQ(msgs[1].event, 0);
	CHECK_EQ(msgs[2].event, SPINDLE_EVENT_CURRENT);
	CHECK_EQ(msgs[2].rank, ~0U);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(fake_collect(), 6);
	CHECK_EQ(stats(sp).received, 1);
	/* the ring of its sender is not needed for that */
	CHECK_EQ(lane_maps(), 1);
	state(1, FAKE_UID - 2, SPINDLE_DELIVERY_LAST, "copied");
	CHECK_EQ(spindle_recv(sp, &event, sizeof(event) - 1, &msgs[0]), -EMSGSIZE);
	CHECK_EQ(spindle_recv(sp, &event, sizeof(event), &msgs[0]), 0);
	CHECK_EQ(msgs[0].len, sizeof(event));
	CHECK_EQ(event.type, SPINDLE_EVENT_CURRENT);
	CHECK_EQ(event.subject, 0);
	CHECK_EQ(event.view, 2);
	CHECK_EQ(event.seq, msgs[0].seq);
	CHECK_EQ(event.members + event.left + event.number, 0);
}

TEST(who_has_read_before_knows_its_number)
{
	struct spindle *sp;

	fake_boot(&small);
	fake.began = true;
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	state(1, FAKE_UID - 1, 0, "not mine");
	state(1, FAKE_UID, 0, "mine");
	expect_one(sp, "mine");
}

TEST(who_knows_no_number_is_sent_no_state)
{
	struct spindle *sp = fake_member(&small);

	state(1, 0, 0, "whose?");
	CHECK_EQ(peek(sp), -EAGAIN);
	fake.events_errno = ENOMEM;
	fake_event(SPINDLE_EVENT_VIEW);
	state(1, 0, 0, "whose?");
	CHECK_EQ(peek(sp), -EAGAIN);
	fake.events_errno = 0;
	fake_event(SPINDLE_EVENT_VIEW);
	state(1, FAKE_UID, 0, "mine");
	expect_one(sp, "mine");
}

TEST(sending_state)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_msg msg;
	unsigned int n;

	fake_event(SPINDLE_EVENT_VIEW);
	CHECK_EQ(spindle_state_send(sp, 1 << 24, "x", 1, 0), -EINVAL);
	CHECK_EQ(spindle_state_send(sp, 1, "x", 1, SPINDLE_INFO_STATE), -EINVAL);
	CHECK_EQ(spindle_state_send(sp, (1 << 24) - 1, "one", 3, 0), 0);
	CHECK_EQ(spindle_state_send(sp, 0, NULL, 0, SPINDLE_INFO_LAST), 0);
	CHECK_EQ(spindle_state_send(sp, FAKE_UID, "own", 3, SPINDLE_INFO_LAST), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	take(4);
	CHECK_EQ(fake.taken[0].flags, 0xffffff00U | SPINDLE_DELIVERY_STATE);
	CHECK_EQ(fake.taken[1].flags, SPINDLE_DELIVERY_STATE | SPINDLE_DELIVERY_LAST);
	CHECK_EQ(fake.taken[3].flags, 0);
	while (fake_deliver_own())
		;
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
	expect(&msg, "own");
	CHECK_EQ(msg.flags, SPINDLE_MSG_STATE | SPINDLE_MSG_LAST);
	expect_one(sp, "x");
	CHECK_EQ(stats(sp).sent, 4);
	CHECK_EQ(stats(sp).sent_bytes, 7);
}

/* The end */

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
	fake_set_wakeup(true);
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
	fake_set_wakeup(false);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(fake.kicks, 3);
	CHECK_EQ(stats(sp).kicks, 3);
	CHECK_EQ(stats(sp).waits, 0);
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
		CHECK(st_now() - start < 5);
		if (ways[i] != SPINDLE_WAIT_SPIN)
			CHECK(fake.polls);
		else
			CHECK_EQ(fake.polls, 0);
		fake.polls = 0;
	}
	CHECK(stats(sp).waits);
}

static void *deliver_soon(void *arg)
{
	st_pause_us(20000);
	deliver(1, arg);
	return NULL;
}

TEST(waiting_ends_with_a_message)
{
	struct spindle *sp = fake_member(&small);
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		CHECK_EQ(pthread_create(&thread, NULL, deliver_soon, "soon"), 0);
		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, ways[i], i & 1 ? 20000 : -1), 0);
		CHECK_EQ(spindle_release(sp, expect_one(sp, "soon")), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	CHECK(fake.polls >= 1 && fake.polls <= 4);
}

static void *fail_soon(void *arg)
{
	st_pause_us(20000);
	fake_set_state(SPINDLE_STATE_FAILED, ENETDOWN);
	return arg;
}

static void fails_while_waiting(unsigned int events)
{
	static const char rest[4096 - 64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		struct spindle *sp = fake_member(&small);
		pthread_t thread;

		CHECK_EQ(spindle_send(sp, "x", 1), 0);
		CHECK_EQ(spindle_send(sp, rest, sizeof(rest)), 0);
		CHECK_EQ(spindle_send(sp, "x", 1), -EAGAIN);
		CHECK_EQ(pthread_create(&thread, NULL, fail_soon, NULL), 0);
		CHECK_EQ(spindle_wait(sp, events, ways[i], -1), 0);
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

static void on_alarm(int sig)
{
	(void)sig;
}

TEST(a_signal_ends_sleep)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	/* again and again, for one may come between two naps of the fake poll() */
	struct itimerval soon = { { .tv_usec = 3000 }, { .tv_usec = 20000 } };
	struct spindle *sp = fake_member(&small);

	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	CHECK_OK(setitimer(ITIMER_REAL, &soon, NULL));
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, -1), -EINTR);
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
