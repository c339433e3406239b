// SPDX-License-Identifier: GPL-2.0
/*
 * Groups at work, all members on one host with many addresses, a process each:
 * the same messages in the same order everywhere, pressure, failure, the end.
 */
#include "job.h"

#include <sys/mman.h>

#define FOREVER	(~0ULL)	/* messages until something fails */

/**
 * struct plan - one group and what its members do
 * @group: its configuration; members, nodes, receivers
 * @messages: each sender sends so many
 * @silent: bit i: member i sends nothing although it may
 * @slow: bit i: member i pauses after each message
 * @detached: bit i: member i is detached, with a small quota
 * @max: largest message
 * @min: smallest message
 * @mode: enum job_mode; odd members take the other one when @mixed
 * @mixed: see @mode
 */
struct plan {
	struct st_config group;
	uint64_t messages;
	uint64_t silent;
	uint64_t slow;
	uint64_t detached;
	uint32_t max;
	uint32_t min;
	enum job_mode mode;
	bool mixed;
};

struct crew {
	const struct plan *plan;
	struct st_group names;
	struct job_result *res;
	pid_t pid[SPINDLE_MAX_MEMBERS];
	unsigned int n;
	uint64_t killed;	/* bit i: member i was */
	int *over;		/* views are followed until this is set, or NULL */
};

static void *shared(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	return mem;
}

static void crew_start(struct crew *crew, const struct plan *plan)
{
	unsigned int nodes = plan->group.nodes ? plan->group.nodes : 1;
	unsigned int i;

	crew->plan = plan;
	crew->n = plan->group.members;
	crew->res = shared(crew->n * sizeof(*crew->res));
	if (!crew->names.name[0])
		st_name(crew->names.name);
	st_addr(nodes - 1);
	for (i = 0; i < crew->n; i++) {
		struct job job = {
			.name = crew->names.name,
			.contact = i ? st_addr(0) : NULL,
			.addr = st_addr(i % nodes),
			.group = plan->group,
			.receiver = plan->group.receivers >> i & 1,
			.messages = plan->silent >> i & 1 ? 0 : plan->messages,
			.max = plan->max,
			.min = plan->min,
			.seed = st_env("SPINDLE_SEED", 1),
			.slow_us = plan->slow >> i & 1 ? 1000 : 0,
			.quota = plan->detached >> i & 1 ? 16384 : 0,
			.mode = plan->mixed && i & 1 ? !plan->mode : plan->mode,
			.views = crew->over,
			.over = crew->over,
		};

		crew->pid[i] = CHECK_OK(fork());
		if (!crew->pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			job_run(&job, &crew->res[i]);
			_exit(0);
		}
	}
}

static void crew_reap(struct crew *crew)
{
	unsigned int i;

	for (i = 0; i < crew->n; i++)
		if (crew->pid[i])
			st_reap(crew->pid[i]);
}

/* All that were not killed have done well, and had the same of it. */
static void crew_agree(struct crew *crew)
{
	const struct job_result *first = &crew->res[crew->killed & 1];
	uint64_t sent = 0;
	unsigned int i, j;
	double start = first->active, end = 0;

	for (i = 0; i < crew->n; i++) {
		const struct job_result *res = &crew->res[i];

		/* who was killed may not have come to count its last message */
		if (crew->killed >> i & 1)
			CHECK_INTACT(first->from[res->rank] == res->sent ||
				     first->from[res->rank] == res->sent + 1);
		sent += crew->killed >> i & 1 ? first->from[res->rank] : res->sent;
	}
	for (i = 0; i < crew->n; i++) {
		const struct job_result *res = &crew->res[i];

		if (crew->killed >> i & 1)
			continue;
		if (res->error)
			FAIL("member %u: %s", i, st_err(res->error));
		if (res->received != sent)
			BROKEN("member %u received %llu of %llu", i,
			       (unsigned long long)res->received, (unsigned long long)sent);
		if (res->hash != first->hash)
			BROKEN("member %u has another order than member %u", i,
			       (unsigned int)(first - crew->res));
		for (j = 0; j < crew->n; j++)
			if (!(crew->killed >> j & 1))
				CHECK_SAME(crew->res[j].from[res->rank], res->sent);
		start = res->active < start ? res->active : start;
		end = res->end > end ? res->end : end;
	}
	printf("# %u members, %llu messages, %llu bytes in %.2f s\n", crew->n,
	       (unsigned long long)sent, (unsigned long long)first->bytes, end - start);
}

static void carry_out(const struct plan *plan)
{
	struct crew crew = { 0 };

	crew_start(&crew, plan);
	crew_reap(&crew);
	crew_agree(&crew);
}

#define PLAN(test, ...)							\
	TEST_SECONDS(test, 3 * ST_TEST)					\
	{								\
		static const struct plan plan = { __VA_ARGS__ };	\
									\
		carry_out(&plan);					\
	}								\
	_Static_assert(1, "")

/* Every member hears everybody in one order */

PLAN(two_members_two_nodes,
	.group = { .members = 2, .nodes = 2 }, .messages = 2000, .max = 2000);
PLAN(two_members_two_nodes_threads,
	.group = { .members = 2, .nodes = 2 }, .messages = 2000, .max = 2000, .mode = JOB_THREADS);
PLAN(two_members_one_node,
	.group = { .members = 2, .nodes = 1 }, .messages = 2000, .max = 2000);
PLAN(four_members_one_node,
	.group = { .members = 4, .nodes = 1 }, .messages = 1000, .max = 1000, .mixed = true);
PLAN(three_members_three_nodes,
	.group = { .members = 3, .nodes = 3 }, .messages = 1500, .max = 1500, .mixed = true);
PLAN(five_members_two_nodes,
	.group = { .members = 5, .nodes = 2 }, .messages = 500, .max = 1000);
PLAN(eight_members_eight_nodes,
	.group = { .members = 8, .nodes = 8 }, .messages = 300, .max = 1000, .mixed = true);
PLAN(sixteen_members_sixteen_nodes,
	.group = { .members = 16, .nodes = 16 }, .messages = 100, .max = 500);
PLAN(forty_members_one_node,
	.group = { .members = 40, .nodes = 1, .window = 16384 }, .messages = 30, .max = 200);
PLAN(sixty_four_members_four_nodes,
	.group = { .members = 64, .nodes = 4, .window = 16384, .depth = 64 },
	.messages = 20, .max = 200);
PLAN(sixty_four_members_sixteen_nodes,
	.group = { .members = 64, .nodes = 16, .window = 16384, .depth = 64 },
	.messages = 10, .max = 200);

/* Sizes */

PLAN(empty_messages,
	.group = { .members = 3, .nodes = 3 }, .messages = 1000, .max = 0);
PLAN(one_byte_messages,
	.group = { .members = 3, .nodes = 3 }, .messages = 2000, .max = 1, .min = 1);
PLAN(large_messages,
	.group = { .members = 3, .nodes = 3, .window = 1 << 20, .max_msg = 200000 },
	.messages = 60, .max = 200000, .min = 1);
PLAN(messages_as_large_as_the_window,
	.group = { .members = 2, .nodes = 2, .window = 65536, .max_msg = 65536 },
	.messages = 60, .max = 65536, .min = 65530);
PLAN(largest_messages,
	.group = { .members = 2, .nodes = 2, .window = 262144, .max_msg = 262144 },
	.messages = 20, .max = 262144, .min = 262144);

/* Who sends */

PLAN(one_sender,
	.group = { .members = 4, .nodes = 4, .senders = 1 }, .messages = 2000, .max = 1000);
PLAN(two_senders_of_five,
	.group = { .members = 5, .nodes = 3, .senders = 2 }, .messages = 1000, .max = 1000);
PLAN(receivers_only_listen,
	.group = { .members = 4, .nodes = 4, .receivers = 0xc }, .messages = 1000, .max = 1000);
PLAN(creator_only_listens,
	.group = { .members = 3, .nodes = 3, .receivers = 1 }, .messages = 1000, .max = 1000);
PLAN(all_but_one_listen,
	.group = { .members = 6, .nodes = 3, .receivers = 0x3e }, .messages = 1000, .max = 1000);
PLAN(silent_senders,
	.group = { .members = 4, .nodes = 4 }, .messages = 1000, .max = 1000, .silent = 0x5);
PLAN(silent_sender_on_the_same_node,
	.group = { .members = 4, .nodes = 2 }, .messages = 1000, .max = 1000, .silent = 0x3);
PLAN(all_silent,
	.group = { .members = 4, .nodes = 4 }, .messages = 1000, .max = 1000, .silent = 0xf);
PLAN(all_but_the_last_silent,
	.group = { .members = 8, .nodes = 4 }, .messages = 1000, .max = 500, .silent = 0x7f);

/* Pressure */

PLAN(small_window,
	.group = { .members = 3, .nodes = 3, .window = 4096, .depth = 16 },
	.messages = 1000, .max = 4096, .mixed = true);
PLAN(small_window_one_node,
	.group = { .members = 3, .nodes = 1, .window = 4096, .depth = 16 },
	.messages = 1000, .max = 4096, .mixed = true);
PLAN(small_depth,
	.group = { .members = 3, .nodes = 3, .depth = 16 },
	.messages = 2000, .max = 8, .mode = JOB_THREADS);
PLAN(slow_reader,
	.group = { .members = 3, .nodes = 3, .window = 4096, .depth = 16 },
	.messages = 300, .max = 1000, .slow = 0x2, .mode = JOB_THREADS);
PLAN(slow_reader_beside_a_fast_one,
	.group = { .members = 4, .nodes = 2, .window = 4096, .depth = 16 },
	.messages = 200, .max = 1000, .slow = 0x4, .mode = JOB_THREADS);
PLAN(slow_listener,
	.group = { .members = 3, .nodes = 3, .window = 8192, .depth = 32, .receivers = 0x4 },
	.messages = 400, .max = 1000, .slow = 0x4);

/* Detached members have the same messages in the same order as others. */
PLAN(detached_among_others,
	.group = { .members = 4, .nodes = 2, .window = 8192, .depth = 32 },
	.messages = 500, .max = 3000, .detached = 0x6, .mixed = true);
PLAN(all_detached,
	.group = { .members = 3, .nodes = 3 }, .messages = 1000, .max = 3000, .detached = 0x7);
PLAN(slow_detached_readers,
	.group = { .members = 4, .nodes = 2, .window = 8192, .depth = 32 },
	.messages = 200, .max = 1000, .slow = 0x6, .detached = 0xe, .mode = JOB_THREADS);
PLAN(detached_with_messages_larger_than_the_quota,
	.group = { .members = 3, .nodes = 2, .window = 65536, .max_msg = 65536 },
	.messages = 60, .max = 65536, .min = 10000, .detached = 0x7);

TEST(blocked_writer_goes_on)
{
	struct st_config c = { .members = 3, .nodes = 3, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	static struct st_msg m;
	unsigned int i, total;
	pid_t pid;

	/* the writer needs 200 messages' room; it gets it as the slowest reads */
	st_open(&g, &c);
	pid = CHECK_OK(fork());
	if (!pid) {
		for (i = 0; i < 200; i++)
			CHECK_EQ(send(g.fd[0], &m, 1000, 0), 1000);
		CHECK_OK(shutdown(g.fd[0], SHUT_WR));
		_exit(0);
	}
	CHECK_OK(shutdown(g.fd[1], SHUT_WR));
	CHECK_OK(shutdown(g.fd[2], SHUT_WR));
	for (total = 0; total < 200; total++)
		for (i = 0; i < 3; i++)
			CHECK_SAME(CHECK_OK(st_recv(g.fd[i], &m, 0)), 1000);
	st_reap(pid);
	for (i = 0; i < 3; i++)
		st_expect_end(g.fd[i]);
}

TEST(one_reader_holds_the_writer)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 4096, .max_msg = 1024 };
	struct st_group g = { 0 };
	static struct st_msg m;
	unsigned int n = 0, i;

	/* nothing is lost for the one that does not read, on whichever node */
	st_open(&g, &c);
	while (send(g.fd[0], &m, 1000, MSG_DONTWAIT) == 1000)
		n++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(n >= 3);
	for (i = 0; i < n; i++) {
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 1000);
		CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 1000);
	}
	/* who has not read holds it for good, not only for now */
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	CHECK_ERR(send(g.fd[0], &m, 1000, MSG_DONTWAIT), EAGAIN);
	for (i = 0; i < n; i++)
		CHECK_SAME(CHECK_OK(st_recv(g.fd[2], &m, 0)), 1000);
	st_wait_events(g.fd[0], POLLOUT);
	CHECK_EQ(send(g.fd[0], &m, 1000, MSG_DONTWAIT), 1000);
}

/* Quiet and awake */

/*
 * The engine goes to sleep on a group without traffic. A pause of any length
 * between two messages may meet it just then; no wake-up may be lost.
 */
TEST(pauses_of_all_lengths)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	uint64_t seed = 1;
	unsigned int i, j;
	char text[32];

	st_open(&g, &c);
	for (i = 0; i < 400; i++) {
		snprintf(text, sizeof(text), "message %u", i);
		st_say(g.fd[i % 3], text);
		for (j = 0; j < 3; j++) {
			st_wait_events(g.fd[j], POLLIN);
			st_expect(g.fd[j], text);
		}
		st_pause_us(st_random(&seed) % 8000);
	}
}

TEST(wakes_after_a_long_rest)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	unsigned int i;

	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		st_say(g.fd[i & 1], "awake");
		st_expect(g.fd[0], "awake");
		st_expect(g.fd[1], "awake");
		WAIT_UNTIL(st_rests(&g), ST_SOON);
		/* three heartbeats of its links */
		st_pause_us(1500000);
		CHECK_EQ(st_info(g.fd[0]).state, SPINDLE_STATE_ACTIVE);
	}
}

TEST(ping_pong)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	static struct st_msg m;
	unsigned int i;
	pid_t pid;

	st_open(&g, &c);
	pid = CHECK_OK(fork());
	if (!pid) {
		for (i = 0; i < 1000; i++) {
			CHECK_SAME(CHECK_OK(st_recv(g.fd[1], &m, 0)), 4);
			CHECK_SAME(m.from.ss_rank, i & 1);
			if (!(i & 1))
				st_say(g.fd[1], "pong");
		}
		_exit(0);
	}
	for (i = 0; i < 1000; i++) {
		if (!(i & 1))
			st_say(g.fd[0], "ping");
		CHECK_SAME(CHECK_OK(st_recv(g.fd[0], &m, 0)), 4);
	}
	st_reap(pid);
}

/* Several groups */

TEST_SECONDS(four_groups_at_once, 3 * ST_TEST)
{
	static const struct plan plans[4] = {
		{ .group = { .members = 3, .nodes = 3 }, .messages = 300, .max = 1000 },
		{ .group = { .members = 4, .nodes = 2, .window = 8192, .depth = 16 },
		  .messages = 300, .max = 2000 },
		{ .group = { .members = 2, .nodes = 2 }, .messages = 600, .max = 100,
		  .mode = JOB_THREADS },
		{ .group = { .members = 5, .nodes = 5, .receivers = 0x18 }, .messages = 200,
		  .max = 3000 },
	};
	struct crew crews[4] = { 0 };
	unsigned int i;

	for (i = 0; i < 4; i++)
		crew_start(&crews[i], &plans[i]);
	for (i = 0; i < 4; i++)
		crew_reap(&crews[i]);
	for (i = 0; i < 4; i++)
		crew_agree(&crews[i]);
}

TEST_SECONDS(groups_one_after_the_other, 3 * ST_TEST)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3 }, .messages = 50, .max = 500,
	};
	unsigned int i;

	for (i = 0; i < 20; i++)
		carry_out(&plan);
}

TEST_SECONDS(same_name_again, 3 * ST_TEST)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3 }, .messages = 50, .max = 500,
	};
	unsigned int i;

	/* crew_reap() has seen all members close: the name is free again */
	for (i = 0; i < 10; i++) {
		struct crew crew = { 0 };

		strcpy(crew.names.name, "same-name");
		crew_start(&crew, &plan);
		crew_reap(&crew);
		crew_agree(&crew);
		munmap(crew.res, crew.n * sizeof(*crew.res));
	}
}

/* Nodes come and go, and with them their links. */
TEST_SECONDS(nodes_over_and_over, 3 * ST_TEST)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	unsigned int rounds = st_env("SPINDLE_ROUNDS", 10);
	unsigned int i, k;

	for (i = 0; i < rounds; i++) {
		struct st_group g = { 0 };

		st_open(&g, &c);
		st_say(g.fd[i % 3], "here");
		for (k = 0; k < 3; k++)
			CHECK_OK(shutdown(g.fd[k], SHUT_WR));
		for (k = 0; k < 3; k++) {
			st_expect(g.fd[k], "here");
			st_expect_end(g.fd[k]);
		}
		for (k = 0; k < 3; k++)
			close(g.fd[k]);
		for (k = 0; k < 3; k++) {
			char node[64];

			snprintf(node, sizeof(node), "/sys/kernel/spindle/%s", st_addr(k));
			WAIT_UNTIL(access(node, F_OK), ST_SOON);
		}
	}
}

/* Four to seven nodes that all connect to each other at once. */
TEST_SECONDS(nodes_that_meet, 3 * ST_TEST)
{
	unsigned int rounds = st_env("SPINDLE_ROUNDS", 4);
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		struct plan plan = {
			.group = { .members = 4 + i % 4, .nodes = 4 + i % 4 },
			.messages = 10, .max = 100,
		};
		struct crew crew = { 0 };

		crew_start(&crew, &plan);
		crew_reap(&crew);
		crew_agree(&crew);
		munmap(crew.res, crew.n * sizeof(*crew.res));
	}
}

static void both_talk(const struct st_group *g)
{
	unsigned int i;

	for (i = 0; i < 50; i++) {
		st_say(g->fd[i & 1], "unharmed");
		st_expect(g->fd[0], "unharmed");
		st_expect(g->fd[1], "unharmed");
	}
}

/* Neither on the node where it goes on, nor on the one where it fails. */
TEST(one_failure_leaves_other_groups_alone)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_config next = { .members = 2, .nodes = 2, .first = 1 };
	struct st_group a = { 0 }, b = { 0 }, alone[2] = { 0 };
	unsigned int i;

	st_open(&a, &c);
	st_open(&b, &next);
	for (i = 0; i < 2; i++) {
		struct st_config own = { .members = 2, .first = i };

		st_open(&alone[i], &own);
	}
	st_fail_second(&a, a.fd[1]);
	st_wait_members(a.fd[0], 1);
	both_talk(&b);
	for (i = 0; i < 2; i++)
		both_talk(&alone[i]);
	CHECK_EQ(st_info(b.fd[0]).view, 1);
}

TEST(one_leaving_leaves_other_groups_alone)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group a = { 0 }, b = { 0 };

	st_open(&a, &c);
	st_open(&b, &c);
	close(a.fd[1]);
	st_wait_members(a.fd[0], 1);
	both_talk(&b);
	CHECK_EQ(st_info(b.fd[0]).view, 1);
	st_say(a.fd[0], "alone");
	st_expect(a.fd[0], "alone");
}

/* Members that are killed */

/*
 * Let a crew talk without end and take one away: the others have all that it
 * had sent, and go on without it until they are told to end.
 */
static void lose_one(const struct plan *plan, unsigned int who)
{
	struct crew crew = { .killed = 1ULL << who, .over = shared(sizeof(int)) };
	unsigned int i;
	double killed;
	int status;

	crew_start(&crew, plan);
	/* none of them is so late that it takes the second view for the first */
	for (i = 0; i < crew.n; i++)
		WAIT_UNTIL(crew.res[i].view == 1, 2 * ST_SOON);
	WAIT_UNTIL(crew.res[0].received > 200, 2 * ST_SOON);
	killed = st_now();
	CHECK_OK(kill(crew.pid[who], SIGKILL));
	CHECK_OK(waitpid(crew.pid[who], &status, 0));
	CHECK(WIFSIGNALED(status));
	crew.pid[who] = 0;
	for (i = 0; i < crew.n; i++) {
		const struct job_result *res = &crew.res[i];
		uint64_t before;

		if (i == who)
			continue;
		WAIT_UNTIL(res->view == 2, 2 * ST_SOON);
		CHECK_EQ(res->members, crew.n - 1);
		CHECK_EQ(res->reason[crew.res[who].rank], SPINDLE_REASON_EXITED);
		printf("# member %u is known to know after %.3f s\n", i, st_now() - killed);
		before = res->received;
		WAIT_UNTIL(res->received > before + 100, 2 * ST_SOON);
	}
	__atomic_store_n(crew.over, 1, __ATOMIC_RELEASE);
	crew_reap(&crew);
	crew_agree(&crew);
	for (i = 0; i < crew.n; i++)
		CHECK_EQ(crew.res[i].view, i == who ? 1 : 2);
	munmap(crew.res, crew.n * sizeof(*crew.res));
	munmap(crew.over, sizeof(int));
}

TEST(killed_member)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3 }, .messages = FOREVER, .max = 1000,
	};

	lose_one(&plan, 1);
}

TEST(killed_creator)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3 }, .messages = FOREVER, .max = 1000,
	};

	lose_one(&plan, 0);
}

TEST(killed_beside_another_member)
{
	static const struct plan plan = {
		.group = { .members = 4, .nodes = 2 }, .messages = FOREVER, .max = 1000,
	};

	lose_one(&plan, 3);
}

TEST(killed_on_the_only_node)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 1 }, .messages = FOREVER, .max = 1000,
	};

	lose_one(&plan, 2);
}

TEST(killed_listener)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3, .receivers = 4 }, .messages = FOREVER,
		.max = 1000,
	};

	lose_one(&plan, 2);
}

TEST(killed_with_blocked_writers)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3, .window = 4096, .depth = 16 },
		.messages = FOREVER, .max = 1000, .slow = 0x6, .mode = JOB_THREADS,
	};

	lose_one(&plan, 2);
}

TEST(killed_silent_member)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3 }, .messages = FOREVER, .max = 1000,
		.silent = 2,
	};

	/* it has shut down its side, but has not read to the end */
	lose_one(&plan, 1);
}

TEST_SECONDS(killed_over_and_over, 3 * ST_TEST)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 3 }, .messages = FOREVER, .max = 300,
	};
	unsigned int i;

	for (i = 0; i < 10; i++)
		lose_one(&plan, i % 3);
}

TEST(killed_detached_member)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 2 }, .messages = FOREVER, .max = 1000,
		.detached = 0x6,
	};

	lose_one(&plan, 2);
}

TEST(killed_beside_a_detached_member)
{
	static const struct plan plan = {
		.group = { .members = 3, .nodes = 2, .window = 4096, .depth = 16 },
		.messages = FOREVER, .max = 1000, .slow = 0x2, .detached = 0x6,
		.mode = JOB_THREADS,
	};

	lose_one(&plan, 2);
}

TEST(killed_while_forming)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct spindle_group_join join = { 0 };
	struct st_group g = { 0 };
	int *joined = shared(sizeof(*joined));
	pid_t pid;
	int fd;

	st_open_but(&g, &c, 2);
	snprintf(join.name, sizeof(join.name), "%s", g.name);
	st_contact(&join, st_addr(0));
	pid = CHECK_OK(fork());
	if (!pid) {
		CHECK_OK(st_join(st_bound(1), &join));
		__atomic_store_n(joined, 1, __ATOMIC_RELEASE);
		pause();
	}
	WAIT_UNTIL(__atomic_load_n(joined, __ATOMIC_ACQUIRE), ST_SOON);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* its place is free: two more make the group complete */
	fd = st_bound(1);
	WAIT_UNTIL(!AGAIN(st_join(fd, &join), EUSERS), ST_SOON);
	fd = st_bound(2);
	WAIT_UNTIL(!AGAIN(st_join(fd, &join), EUSERS), ST_SOON);
	st_wait_state(g.fd[0], SPINDLE_STATE_ACTIVE);
	st_say(fd, "complete");
	st_expect(g.fd[0], "complete");
}

TEST(creator_killed_while_forming)
{
	struct spindle_group_join join = { 0 };
	struct st_config c = { .members = 3, .nodes = 3 };
	char *name = shared(SPINDLE_NAME_LEN);
	static struct st_msg m;
	pid_t pid;
	int fd;

	pid = CHECK_OK(fork());
	if (!pid) {
		struct st_group g = { 0 };

		st_open_but(&g, &c, 2);
		strcpy(name + 1, g.name + 1);
		__atomic_store_n(name, g.name[0], __ATOMIC_RELEASE);
		pause();
	}
	WAIT_UNTIL(__atomic_load_n(name, __ATOMIC_ACQUIRE), ST_SOON);
	strcpy(join.name, name);
	st_contact(&join, st_addr(0));
	fd = st_bound(1);
	CHECK_OK(st_join(fd, &join));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	st_wait_events(fd, POLLIN);
	CHECK(st_events(fd) & POLLERR);
	CHECK_ERR(st_recv(fd, &m, 0), ECONNRESET);
}

/* Failure */

static void say_ten(const struct st_group *g)
{
	unsigned int i;

	for (i = 0; i < 10; i++)
		st_say(g->fd[0], "before");
	/* delivered at member 1, so at most the last is still on its way elsewhere */
	for (i = 0; i < 10; i++)
		st_expect(g->fd[1], "before");
}

/* Who closes early costs the others nothing. */
TEST(closed_early)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i, k;

	st_open(&g, &c);
	say_ten(&g);
	close(g.fd[1]);
	for (i = 0; i < 3; i += 2)
		st_wait_members(g.fd[i], 2);
	st_say(g.fd[2], "after");
	for (i = 0; i < 3; i += 2) {
		for (k = 0; k < 10; k++)
			st_expect(g.fd[i], "before");
		st_expect(g.fd[i], "after");
		st_expect_none(g.fd[i]);
	}
}

/* What was delivered on the node is read before the error, and in order. */
TEST(failed_early)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	static struct st_msg m;
	struct st_group g = { 0 };
	unsigned int k;
	char text[16];

	st_open(&g, &c);
	for (k = 0; k < 100; k++) {
		snprintf(text, sizeof(text), "%u", k);
		st_say(g.fd[0], text);
	}
	st_wait_events(g.fd[1], POLLIN);
	st_fail_second(&g, g.fd[1]);
	for (k = 0; st_recv(g.fd[1], &m, MSG_DONTWAIT) >= 0; k++) {
		m.data[m.len] = 0;
		CHECK_SAME(atoi(m.data), k);
	}
	CHECK_EQ(errno, ENETDOWN);
	CHECK_INTACT(k >= 1 && k <= 100);
	/* the other one has them all, and goes on */
	st_wait_members(g.fd[0], 1);
	st_say(g.fd[0], "after");
	for (k = 0; k < 100; k++) {
		snprintf(text, sizeof(text), "%u", k);
		st_expect(g.fd[0], text);
	}
	st_expect(g.fd[0], "after");
}

static void once_more(const char *name)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group again = { 0 };

	strcpy(again.name, name);
	st_open(&again, &c);
	st_say(again.fd[1], "once more");
	st_expect(again.fd[0], "once more");
	st_expect(again.fd[1], "once more");
}

TEST(same_name_after_failure)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	st_fail_second(&g, g.fd[1]);
	close(g.fd[1]);
	st_wait_members(g.fd[0], 1);
	close(g.fd[0]);
	st_wait_gone(0, &g);
	once_more(g.name);
}

TEST(same_name_after_all_have_closed)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	unsigned int i;

	for (i = 0; i < 10; i++) {
		st_open(&g, &c);
		close(g.fd[i & 1]);
		if (i & 2)
			st_wait_members(g.fd[!(i & 1)], 1);
		close(g.fd[!(i & 1)]);
		st_wait_gone(0, &g);
		st_wait_gone(1, &g);
	}
	once_more(g.name);
}

TEST(failed_name_stays_while_a_member_holds_it)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_create create;
	struct st_group g = { 0 };
	int fd = st_bound(1);

	st_open(&g, &c);
	st_fail_second(&g, g.fd[1]);
	create = st_create_of(&c, g.name);
	CHECK_ERR(st_create(fd, &create), EEXIST);
	close(g.fd[1]);
	CHECK_OK(st_create(fd, &create));
}

/* On the node that they have left it is free once the others know; elsewhere it is not. */
TEST(name_of_a_group_that_all_of_a_node_have_left)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_create create;
	struct st_group g = { 0 };
	int fd = st_bound(1);

	st_open(&g, &c);
	create = st_create_of(&c, g.name);
	CHECK_ERR(st_create(fd, &create), EEXIST);
	close(g.fd[1]);
	WAIT_UNTIL(!AGAIN(st_create(fd, &create), EEXIST), ST_SOON);
	CHECK_ERR(st_create(st_bound(0), &create), EEXIST);
	st_say(g.fd[0], "still here");
	st_expect(g.fd[0], "still here");
}

/* The end */

TEST(end_with_unread_messages)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i, k;

	/* all have said their last before anybody reads */
	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 20; k++)
			st_say(g.fd[i], "unread");
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	}
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 60; k++)
			st_expect(g.fd[i], "unread");
		st_expect_end(g.fd[i]);
		close(g.fd[i]);
	}
}

TEST(late_reader_after_the_others_left)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int i, k;

	st_open(&g, &c);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 20; k++)
			st_say(g.fd[i], "for all");
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	}
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 60; k++)
			st_expect(g.fd[i], "for all");
		st_expect_end(g.fd[i]);
		close(g.fd[i]);
	}
	/* it may take its time */
	for (k = 0; k < 60; k++)
		st_expect(g.fd[2], "for all");
	st_expect_end(g.fd[2]);
	CHECK_EQ(st_info(g.fd[2]).state, SPINDLE_STATE_CLOSED);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
