// SPDX-License-Identifier: GPL-2.0
/* libspindle from opening a handle to closing it, against fake system calls. */
#include "fake.h"

#include <net/if.h>

static const struct fake_config small;
static const struct fake_config five = { .lanes = 5 };

static struct spindle *opened(const struct fake_config *c)
{
	struct spindle *sp;

	fake_boot(c);
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	return sp;
}

static void open_fails(const char *node, int err)
{
	struct spindle *sp = (void *)1;

	CHECK_EQ(spindle_open(&sp, node), err);
	CHECK(!sp);
}

TEST(addresses_as_text)
{
	struct sockaddr_in want = st_in("10.1.2.3");
	char text[64];
	struct spindle *sp;

	fake_boot(&small);
	CHECK_EQ(spindle_open(&sp, "10.1.2.3"), 0);
	CHECK_EQ(fake.bound_len, sizeof(want));
	CHECK(!memcmp(&fake.bound, &want, sizeof(want)));
	CHECK_EQ(spindle_close(sp), 0);

	CHECK_EQ(spindle_open(&sp, "fd00::1"), 0);
	CHECK_EQ(fake.bound_len, sizeof(struct sockaddr_in6));
	CHECK_EQ(fake.bound.sin6_family, AF_INET6);
	CHECK_EQ(fake.bound.sin6_addr.s6_addr[15], 1);
	CHECK_EQ(fake.bound.sin6_scope_id, 0);
	CHECK_EQ(spindle_close(sp), 0);

	CHECK_EQ(spindle_open(&sp, "fe80::1%lo"), 0);
	CHECK_EQ(fake.bound.sin6_scope_id, if_nametoindex("lo"));
	CHECK_EQ(spindle_close(sp), 0);

	CHECK_EQ(spindle_open(&sp, "fe80::1%4711"), 0);
	CHECK_EQ(fake.bound.sin6_scope_id, 4711);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.closes, 4);

	memset(text, '1', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	open_fails(text, -EINVAL);
	open_fails("", -EINVAL);
	open_fails("host", -EINVAL);
	open_fails("10.0.0.1%lo", -EINVAL);
	open_fails("fe80::1%", -EINVAL);
	open_fails("fe80::1%0", -EINVAL);
	open_fails("fe80::1%no-such-interface", -EINVAL);
	open_fails("fe80::1%4294967296", -EINVAL);
	CHECK_EQ(fake.sockets, 4);
}

TEST(no_module_no_handle)
{
	fake_boot(&small);
	fake.no_module = true;
	open_fails("10.0.0.1", -EAFNOSUPPORT);
	CHECK_EQ(fake.sockets, 1);
}

TEST(a_module_that_the_socket_call_loads)
{
	struct spindle *sp;

	fake_boot(&small);
	fake.other_family = true;
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(fake.sockets, 2);
}

TEST(a_socket_that_cannot_be_bound_is_closed)
{
	fake_boot(&small);
	fake.bind_errno = EADDRNOTAVAIL;
	open_fails("10.0.0.1", -EADDRNOTAVAIL);
	CHECK_EQ(fake.closes, 1);
}

TEST(create_and_join_say_what_was_given)
{
	struct spindle_group_create create = { .name = "g", .members = 3, .depth = 64 };
	struct spindle_group_join join = { .name = "g", .flags = SPINDLE_F_RECEIVER };
	struct spindle *sp = opened(&small);
	struct sockaddr_in in = st_in("10.0.0.7");
	struct sockaddr_in6 in6;

	CHECK_EQ(spindle_create(sp, &create), 0);
	CHECK(!memcmp(&fake.create, &create, sizeof(create)));
	memset(join.contact, 0xee, sizeof(join.contact));
	CHECK_EQ(spindle_join(sp, "10.0.0.7", &join), 0);
	CHECK(!memcmp(fake.join.contact, &in, sizeof(in)));
	CHECK_EQ(fake.join.contact[31], 0);
	CHECK_EQ(fake.join.flags, SPINDLE_F_RECEIVER);
	CHECK_EQ(join.contact[0], 0xee);
	CHECK_EQ(spindle_join(sp, "fe80::9%3", &join), 0);
	memcpy(&in6, fake.join.contact, sizeof(in6));
	CHECK_EQ(in6.sin6_family, AF_INET6);
	CHECK_EQ(in6.sin6_scope_id, 3);
	CHECK_EQ(spindle_join(sp, "nobody", &join), -EINVAL);
	fake.error = ECONNREFUSED;
	CHECK_EQ(spindle_join(sp, "10.0.0.7", &join), -ECONNREFUSED);
	CHECK_EQ(spindle_create(sp, &create), -ECONNREFUSED);
}

TEST(events_can_be_wanted_before_there_is_a_group)
{
	struct spindle *sp = opened(&small);
	struct spindle_msg msg;
	unsigned int n;

	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_VIEW), 0);
	CHECK_EQ(fake.wanted, SPINDLE_WANT_VIEW);
	CHECK_EQ(spindle_events(sp, 1), -EINVAL);
	CHECK_EQ(spindle_events(sp, SPINDLE_WANT_ALL << 1), -EINVAL);
	CHECK_EQ(spindle_events(sp, ~0U), -EINVAL);
	fake.events_errno = ENOMEM;
	CHECK_EQ(spindle_events(sp, 0), -ENOMEM);
	CHECK_EQ(fake.wanted, SPINDLE_WANT_VIEW);
	/* and it holds: also the group's first event is given */
	fake_deliver_view(3, 0);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), 0);
	CHECK_EQ(msg.flags, SPINDLE_MSG_EVENT);
	CHECK_EQ(msg.number, 1);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(stability_is_the_sockets)
{
	struct spindle *sp = fake_member(&small);
	struct spindle_stable stable;

	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(spindle_send(sp, "y", 1), 0);
	CHECK_EQ(fake_take(), 2);
	CHECK(fake_deliver_own());
	CHECK_EQ(spindle_sync(sp, SPINDLE_SYNC_RECEIVED), 0);
	CHECK_EQ(fake.synced, SPINDLE_SYNC_RECEIVED);
	CHECK_EQ(spindle_stable(sp, &stable), 0);
	CHECK_EQ(stable.sent, 2);
	CHECK_EQ(stable.received, 1);
	fake.sync_errno = EAGAIN;
	CHECK_EQ(spindle_sync(sp, SPINDLE_SYNC_CONSUMED), -EAGAIN);
	CHECK_EQ(fake.synced, SPINDLE_SYNC_CONSUMED);
	fake.sync_errno = ENOTCONN;
	memset(&stable, 0xaa, sizeof(stable));
	CHECK_EQ(spindle_stable(sp, &stable), -ENOTCONN);
	CHECK_EQ(stable.sent, 0);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(leaving_is_said_once)
{
	struct spindle *sp = opened(&small);

	/* the group is not active yet */
	fake.leave_errno = ENOTCONN;
	CHECK_EQ(spindle_leave(sp), -ENOTCONN);
	fake.leave_errno = 0;
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), 0);
	CHECK_EQ(spindle_leave(sp), 0);
	CHECK_EQ(fake.leaves, 2);
	CHECK_EQ(spindle_leave(sp), 0);
	CHECK_EQ(fake.leaves, 2);
	/* who has left has nothing more to say */
	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(fake.shutdowns, 0);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.closes, 1);
}

TEST(leaving_by_the_socket)
{
	struct spindle *sp = fake_member(&small);

	/* setsockopt() was called by the program itself */
	fake.leave_errno = EALREADY;
	CHECK_EQ(spindle_leave(sp), 0);
	CHECK_EQ(spindle_send(sp, "x", 1), -EPIPE);
}

TEST(leaving_behind_the_last_word)
{
	struct spindle *sp = fake_member(&small);

	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(spindle_leave(sp), 0);
	CHECK_EQ(fake.shutdowns, 1);
	CHECK_EQ(fake.leaves, 1);
}

TEST(nothing_goes_before_the_rings_are_mapped)
{
	struct spindle *sp = opened(&small);
	struct spindle_event event;
	size_t size = sizeof(event);
	struct spindle_msg msg;
	struct iovec iov = { 0 };
	unsigned int n = 1;

	CHECK_EQ(spindle_claim(sp, &iov, 1), -ENOTCONN);
	CHECK_EQ(spindle_commit(sp, 1, NULL), -ENOTCONN);
	CHECK_EQ(spindle_abort(sp), -ENOTCONN);
	CHECK_EQ(spindle_send(sp, "x", 1), -ENOTCONN);
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), -ENOTCONN);
	CHECK_EQ(n, 0);
	CHECK_EQ(spindle_release(sp, 0), -ENOTCONN);
	CHECK_EQ(spindle_recv(sp, NULL, 0, &msg), -ENOTCONN);
	CHECK_EQ(spindle_event(sp, 1, &event, &size), -ENOTCONN);
	CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_SPIN, -1), -ENOTCONN);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, 0);
}

TEST(ready_waits_for_the_view)
{
	struct spindle *sp = opened(&small);
	double start = st_now();

	fake.forming = 6;
	CHECK_EQ(spindle_ready(sp, 0), -ETIMEDOUT);
	CHECK_EQ(fake.looks, 1);
	CHECK_EQ(spindle_ready(sp, -1), 0);
	/* with sleep between its looks */
	CHECK(st_now() - start > 0.005);
	CHECK_EQ(fake.map_flags, SPINDLE_MAP_ALL);
	CHECK_EQ(fake.maps, 4);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(fake.maps, 4);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, 4);
	CHECK_EQ(fake.closes, 1);
}

TEST(ready_gives_up_in_time)
{
	struct spindle *sp = opened(&small);
	double start = st_now();

	fake.forming = 1000000;
	CHECK_EQ(spindle_ready(sp, 50), -ETIMEDOUT);
	CHECK(st_now() - start >= 0.050);
	CHECK(fake.looks < 60);
}

TEST(ready_of_who_is_in_no_group)
{
	struct spindle *sp = opened(&small);

	fake.state = SPINDLE_STATE_NONE;
	CHECK_EQ(spindle_ready(sp, -1), -ENOTCONN);
}

TEST(ready_of_a_group_that_failed)
{
	static const int errors[] = { ECONNRESET, EHOSTDOWN, ENETDOWN, ECONNABORTED };
	struct spindle *sp = opened(&small);
	unsigned int i;

	fake.state = SPINDLE_STATE_FAILED;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		fake.error = errors[i];
		CHECK_EQ(spindle_ready(sp, -1), -errors[i]);
	}
	CHECK_EQ(fake.map_flags, 0);
}

TEST(a_receiver_maps_no_own_ring)
{
	struct fake_config c = { .receiver = true, .lanes = 3 };
	struct spindle *sp = fake_member(&c);

	CHECK_EQ(fake.map_flags, SPINDLE_MAP_RX);
	CHECK_EQ(fake.maps, 3);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, 3);
}

TEST(lanes_that_are_there_are_mapped_at_once)
{
	struct fake_config c = { .lanes = 5, .there = 3 };
	struct spindle *sp = fake_member(&c);
	struct spindle_msg msgs[4];
	unsigned int n;

	CHECK_EQ(fake.maps, 7);
	fake_deliver(1, "a", 1);
	fake_deliver(3, "b", 1);
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 2);
	CHECK_EQ(fake.maps, 8);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, 8);

	/* one that cannot be mapped: all is given back, and it may be tried again */
	sp = opened(&c);
	fake.fail_map = 6;
	CHECK_EQ(spindle_ready(sp, 0), -ENOMEM);
	CHECK_EQ(fake.maps, 5);
	CHECK_EQ(fake.unmaps, 5);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.maps, fake.unmaps);

	/* a kernel that says more than it has lanes for */
	c.there = 9;
	sp = fake_member(&c);
	CHECK_EQ(fake.maps, 9);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(a_lane_is_mapped_with_its_first_message)
{
	struct spindle *sp = fake_member(&five);
	struct spindle_msg msgs[4];
	unsigned int n;

	CHECK_EQ(fake.maps, 4);
	fake_deliver(1, "a", 1);
	fake_deliver(3, "b", 1);
	fake_deliver(1, "c", 1);
	CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(fake.maps, 6);
	CHECK_EQ(spindle_release(sp, msgs[2].entry), 0);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(fake.unmaps, 6);
}

TEST(a_lane_that_cannot_be_mapped_is_mapped_later)
{
	static const int errors[] = { ENOMEM, EAGAIN };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		struct spindle *sp = fake_member(&five);
		struct spindle_msg msgs[4];
		char c;

		fake.fail_map_errno = errors[i];
		fake_deliver(1, "a", 1);
		fake_deliver(2, "b", 1);
		fake_deliver(3, "c", 1);
		fake.fail_map = 1;
		CHECK_EQ(spindle_peek(sp, msgs, 4, &n), -ENOMEM);
		CHECK_EQ(n, 0);
		CHECK_EQ(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 0), 0);
		/* what comes before it is given */
		fake.fail_map = 2;
		CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
		CHECK_EQ(n, 1);
		CHECK(!memcmp(msgs[0].data, "a", 1));
		CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
		fake.fail_map = 1;
		CHECK_EQ(spindle_recv(sp, &c, 1, NULL), -ENOMEM);
		CHECK_EQ(spindle_recv(sp, &c, 1, NULL), 0);
		CHECK_EQ(c, 'b');
		CHECK_EQ(spindle_peek(sp, msgs, 4, &n), 0);
		CHECK_EQ(n, 1);
		CHECK(!memcmp(msgs[0].data, "c", 1));
		CHECK_EQ(spindle_release(sp, msgs[0].entry), 0);
		CHECK_EQ(fake.maps, 7);
		CHECK_EQ(spindle_close(sp), 0);
		CHECK_EQ(fake.unmaps, 7);
	}
}

TEST(a_lane_that_is_none)
{
	struct spindle *sp = fake_member(&five);
	struct spindle_msg msg;
	unsigned int n;
	char c;

	fake_deliver(1, "a", 1);
	fake.deliveries[0].lane = five.lanes;
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), -EPROTO);
	CHECK_EQ(spindle_recv(sp, &c, 1, NULL), -EPROTO);
	fake.deliveries[0].lane = SPINDLE_DELIVERY_LANE;
	CHECK_EQ(spindle_peek(sp, &msg, 1, &n), -EPROTO);
	CHECK_EQ(fake.maps, 4);
	CHECK_EQ(spindle_close(sp), 0);
}

TEST(what_cannot_be_mapped_leaves_nothing)
{
	unsigned int i;

	for (i = 1; i <= 4; i++) {
		struct spindle *sp = opened(&five);

		fake.fail_map = i;
		CHECK_EQ(spindle_ready(sp, 0), -ENOMEM);
		CHECK_EQ(fake.map_calls, i);
		CHECK_EQ(fake.unmaps, i - 1);
		/* and the rings are still the handle's */
		CHECK_EQ(spindle_ready(sp, 0), 0);
		CHECK_EQ(fake.maps, i - 1 + 4);
		CHECK_EQ(spindle_send(sp, "x", 1), 0);
		CHECK_EQ(spindle_close(sp), 0);
		CHECK_EQ(fake.unmaps, i - 1 + 4);
	}
}

TEST(a_kernel_that_refuses_to_map)
{
	struct spindle *sp = opened(&small);

	fake.map_errno = ENOBUFS;
	CHECK_EQ(spindle_ready(sp, 0), -ENOBUFS);
	fake.map_errno = 0;
	fake.rings_errno = ENOTCONN;
	CHECK_EQ(spindle_ready(sp, 0), -ENOTCONN);
	CHECK_EQ(fake.map_calls, 0);
}

TEST(rings_of_a_kind_that_is_not_known)
{
	struct spindle *sp = opened(&small);

	fake.rings.lanes = SPINDLE_MAX_LANES + 1;
	CHECK_EQ(spindle_ready(sp, 0), -EPROTO);
	fake.rings.lanes = 2;
	fake.rings.window = 4097;
	CHECK_EQ(spindle_ready(sp, 0), -EPROTO);
	fake.rings.window = 4096;
	fake.rings.deliveries = 1 << 20;
	CHECK_EQ(spindle_ready(sp, 0), -EPROTO);
	fake.rings.deliveries = 64;
	fake.rings.user_size = sizeof(struct spindle_user) + 15 * 8;
	CHECK_EQ(spindle_ready(sp, 0), -EPROTO);
	CHECK_EQ(fake.map_calls, 0);
}

TEST(looking)
{
	struct spindle *sp = opened(&small);
	struct sockaddr_spindle members[SPINDLE_MAX_MEMBERS];
	struct spindle_group_info info;
	struct spindle_stats stats;
	unsigned int n = 2;
	int fd;

	CHECK_EQ(spindle_fd(sp, &fd), 0);
	CHECK_EQ(fd, fake.fd);
	CHECK_EQ(spindle_info(sp, &info), 0);
	CHECK_EQ(info.state, SPINDLE_STATE_ACTIVE);
	CHECK_EQ(spindle_view(sp, members, &n), -ERANGE);
	CHECK_EQ(n, 3);
	CHECK_EQ(spindle_view(sp, members, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(members[2].ss_rank, 2);
	n = UINT_MAX;
	CHECK_EQ(spindle_view(sp, members, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(spindle_stats(sp, &stats), 0);
	CHECK_EQ(stats.sent + stats.received + stats.kicks + stats.waits, 0);
	CHECK_EQ(spindle_shutdown(sp), 0);
	CHECK_EQ(fake.shutdowns, 1);
	CHECK_EQ(spindle_close(sp), 0);
	CHECK_EQ(spindle_close(NULL), 0);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
