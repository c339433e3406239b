// SPDX-License-Identifier: GPL-2.0
/*
 * What a group shows in sysfs and debugfs (Documentation/ABI/sysfs-spindle).
 */
#include "spindle_selftest.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/time.h>

static struct st_msg m;

static const char *path_of(unsigned int node, const struct st_group *g, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s%s%s", st_addr(node), g->name,
		 *file ? "/" : "", file);
	return path;
}

static bool exists(unsigned int node, const struct st_group *g)
{
	return !access(path_of(node, g, ""), F_OK);
}

static void expect(unsigned int node, const struct st_group *g, const char *file,
		   const char *want)
{
	char got[4096];

	if (!st_read_file(path_of(node, g, file), got, sizeof(got)))
		FAIL("%s: %s", path_of(node, g, file), st_err(errno));
	if (strcmp(got, want))
		FAIL("%s is \"%s\", not \"%s\"", path_of(node, g, file), got, want);
}

static uint64_t counter(unsigned int node, const struct st_group *g, const char *name)
{
	char file[64], got[64], *end;
	uint64_t val;

	snprintf(file, sizeof(file), "counters/%s", name);
	if (!st_read_file(path_of(node, g, file), got, sizeof(got)))
		FAIL("%s: %s", path_of(node, g, file), st_err(errno));
	val = strtoull(got, &end, 10);
	if (*end || end == got)
		FAIL("%s is \"%s\", not a number", path_of(node, g, file), got);
	return val;
}

TEST(state_forming)
{
	struct st_config c = { .members = 3, .senders = 2, .window = 65536, .max_msg = 1000,
			       .depth = 64 };
	struct st_group g = { 0 };

	st_open_but(&g, &c, 2);
	expect(0, &g, "state", "forming");
	expect(0, &g, "error", "0");
	expect(0, &g, "view", "0");
	expect(0, &g, "members", "3");
	expect(0, &g, "senders", "2");
	expect(0, &g, "window", "65536");
	expect(0, &g, "max_msg", "1000");
	expect(0, &g, "depth", "64");
}

TEST(state_active)
{
	struct st_config c = { .members = 3, .nodes = 2, .window = 65536, .max_msg = 1000,
			       .depth = 64 };
	struct st_group g = { 0 };
	char view[32];
	int node;

	st_open(&g, &c);
	snprintf(view, sizeof(view), "%llu", (unsigned long long)st_info(g.fd[0]).view);
	for (node = 0; node < 2; node++) {
		expect(node, &g, "state", "active");
		expect(node, &g, "error", "0");
		expect(node, &g, "view", view);
		expect(node, &g, "members", "3");
		expect(node, &g, "senders", "3");
		expect(node, &g, "window", "65536");
		expect(node, &g, "max_msg", "1000");
		expect(node, &g, "depth", "64");
	}
}

static double view_time(unsigned int node, const struct st_group *g)
{
	char got[64], *end;
	double t;

	CHECK(st_read_file(path_of(node, g, "view_time"), got, sizeof(got)));
	t = strtod(got, &end);
	if (*end || end == got || !strchr(got, '.'))
		FAIL("view_time is \"%s\"", got);
	return t;
}

TEST(time_and_cause_of_the_view)
{
	struct st_config c = { .members = 4, .nodes = 2, .max_members = 8 };
	struct st_group g = { 0 };
	double first, second;
	struct timeval now;
	unsigned int i;
	int fd;

	st_open_but(&g, &c, 1);
	expect(0, &g, "view_cause", "none");
	expect(0, &g, "view_time", "0.000000");
	CHECK_OK(gettimeofday(&now, NULL));
	g.fd[3] = st_fresh(&c, 3);
	CHECK_OK(st_come(&g, g.fd[3], 1, 0));
	g.n = 4;
	for (i = 0; i < 4; i++)
		st_wait_state(g.fd[i], SPINDLE_STATE_ACTIVE);
	expect(0, &g, "view_cause", "joined");
	first = view_time(0, &g);
	CHECK(first >= now.tv_sec);
	CHECK(first <= now.tv_sec + 2 * st_bound_s(ST_SOON));
	CHECK_OK(st_leave(g.fd[3]));
	st_wait_members(g.fd[0], 3);
	st_wait_members(g.fd[1], 3);
	expect(0, &g, "view_cause", "left");
	expect(1, &g, "view_cause", "left");
	second = view_time(0, &g);
	CHECK(second >= first);
	CHECK(view_time(0, &g) == second);
	close(g.fd[2]);
	st_wait_members(g.fd[0], 2);
	expect(0, &g, "view_cause", "exited");
	fd = st_fresh(&c, 2);
	CHECK_OK(st_come(&g, fd, 0, 0));
	st_wait_members(g.fd[0], 3);
	expect(0, &g, "view_cause", "joined");
	st_wait_members(g.fd[1], 3);
	/* a failed group shows the last one */
	second = view_time(1, &g);
	st_fail_second(&g, g.fd[1]);
	expect(1, &g, "view_cause", "joined");
	CHECK(view_time(1, &g) == second);
	st_wait_members(g.fd[0], 2);
	expect(0, &g, "view_cause", "lost");
}

TEST(state_closed)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	int i;

	st_open(&g, &c);
	for (i = 0; i < 2; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	for (i = 0; i < 2; i++) {
		st_expect_end(g.fd[i]);
		expect(i, &g, "state", "closed");
		expect(i, &g, "error", "0");
	}
}

TEST(state_failed)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	char want[16];

	st_open(&g, &c);
	st_fail_second(&g, g.fd[1]);
	snprintf(want, sizeof(want), "%d", ENETDOWN);
	expect(1, &g, "state", "failed");
	expect(1, &g, "error", want);
	st_wait_members(g.fd[0], 1);
	expect(0, &g, "state", "active");
	expect(0, &g, "error", "0");
}

TEST(addresses_by_rank)
{
	struct st_config c = { .members = 5, .nodes = 3 };
	struct st_group g = { 0 };
	unsigned int node, i;
	char line[256];
	FILE *f;

	st_open(&g, &c);
	for (node = 0; node < 3; node++) {
		f = fopen(path_of(node, &g, "addresses"), "re");
		CHECK(f);
		for (i = 0; i < 5; i++) {
			CHECK(fgets(line, sizeof(line), f));
			line[strcspn(line, "\n")] = 0;
			if (strcmp(line, st_addr(i % 3)))
				FAIL("rank %u is \"%s\", not \"%s\"", i, line, st_addr(i % 3));
		}
		CHECK(!fgets(line, sizeof(line), f));
		fclose(f);
	}
}

TEST(addresses_of_64_members)
{
	struct st_config c = { .members = 64, .nodes = 4, .window = 4096, .depth = 16 };
	struct st_group g = { 0 };
	unsigned int n = 0;
	char line[256];
	FILE *f;

	st_open(&g, &c);
	f = fopen(path_of(0, &g, "addresses"), "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n++;
	fclose(f);
	CHECK_EQ(n, 64);
}

TEST(counters_count)
{
	static const char *const names[] = {
		"sent", "sent_bytes", "delivered", "delivered_bytes", "nulls", "rdma_writes",
		"posts", "sends", "wakes_sent", "wakes_received", "passes",
		"thread_passes", "naps", "copied_bytes", "detach_nomem",
	};
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	uint64_t before;
	unsigned int i;

	st_open(&g, &c);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		counter(0, &g, names[i]);
	CHECK_EQ(counter(0, &g, "sent"), 0);
	CHECK_EQ(counter(0, &g, "delivered"), 0);
	before = counter(0, &g, "rdma_writes") + counter(0, &g, "sends");
	for (i = 0; i < 10; i++) {
		st_say(g.fd[0], "ten bytes.");
		st_expect(g.fd[0], "ten bytes.");
		st_expect(g.fd[1], "ten bytes.");
	}
	CHECK_EQ(counter(0, &g, "sent"), 10);
	CHECK_EQ(counter(0, &g, "sent_bytes"), 100);
	CHECK_EQ(counter(1, &g, "sent"), 0);
	CHECK_EQ(counter(1, &g, "sent_bytes"), 0);
	/* what a pass has counted is shown at its end, when it was read long ago */
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	for (i = 0; i < 2; i++) {
		CHECK_SAME(counter(i, &g, "delivered"), 10);
		CHECK_SAME(counter(i, &g, "delivered_bytes"), 100);
		CHECK(counter(i, &g, "passes") > 0);
	}
	CHECK(counter(0, &g, "rdma_writes") + counter(0, &g, "sends") > before);
	/* the silent one has given up its turns */
	CHECK(counter(1, &g, "nulls") > 0);
}

/* What members have sent stays counted when they go, and others have their lanes. */
TEST(sent_by_who_has_gone)
{
	struct st_config c = { .members = 1, .nodes = 1, .max_members = 4, .window = 65536 };
	struct spindle_group_join j = { 0 };
	struct st_group g = { 0 };
	unsigned int i, k;
	int fd;

	st_open(&g, &c);
	snprintf(j.name, sizeof(j.name), "%s", g.name);
	st_contact(&j, st_addr(0));
	for (i = 0; i < 20; i++) {
		fd = st_bound(0);
		CHECK_OK(st_join(fd, &j));
		CHECK_EQ(counter(0, &g, "sent"), i);
		st_say(fd, "ten bytes.");
		st_expect(g.fd[0], "ten bytes.");
		CHECK_EQ(counter(0, &g, "sent"), i + 1);
		close(fd);
		for (k = 0; k < 100; k++) {
			CHECK_EQ(counter(0, &g, "sent"), i + 1);
			CHECK_EQ(counter(0, &g, "sent_bytes"), 10 * (i + 1));
		}
		st_wait_members(g.fd[0], 1);
	}
	CHECK_EQ(counter(0, &g, "sent"), 20);
}

TEST(copied_bytes)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	unsigned int i;
	int on = 1;

	st_open(&g, &c);
	for (i = 0; i < 10; i++) {
		st_say(g.fd[0], "ten bytes.");
		st_expect(g.fd[0], "ten bytes.");
		st_expect(g.fd[1], "ten bytes.");
	}
	/* once in, and once out for each reader */
	CHECK_EQ(counter(0, &g, "copied_bytes"), 200);
	CHECK_EQ(counter(1, &g, "copied_bytes"), 100);
	CHECK_OK(setsockopt(g.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &on, sizeof(on)));
	st_say(g.fd[0], "ten bytes.");
	/* into the queue, too */
	WAIT_UNTIL(counter(1, &g, "copied_bytes") == 110, ST_SOON);
	CHECK_EQ(recv(g.fd[1], &m, 5, MSG_PEEK), 5);
	CHECK_EQ(counter(1, &g, "copied_bytes"), 115);
	st_expect(g.fd[1], "ten bytes.");
	CHECK_EQ(counter(1, &g, "copied_bytes"), 125);
	CHECK_EQ(counter(1, &g, "detach_nomem"), 0);
}

TEST(quiet_groups_nap)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };
	uint64_t passes[2], naps;
	unsigned int i;

	st_open(&g, &c);
	st_say(g.fd[0], "then quiet");
	st_expect(g.fd[0], "then quiet");
	st_expect(g.fd[1], "then quiet");
	WAIT_UNTIL(counter(0, &g, "naps") > 0, ST_SOON);
	WAIT_UNTIL(counter(1, &g, "naps") > 0, ST_SOON);
	/* no traffic, no polling: not one pass, however long */
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	for (i = 0; i < 2; i++)
		passes[i] = counter(i, &g, "passes");
	st_pause_us(200000);
	for (i = 0; i < 2; i++)
		CHECK_EQ(counter(i, &g, "passes"), passes[i]);
	naps = counter(0, &g, "naps");
	st_say(g.fd[1], "awake");
	st_expect(g.fd[0], "awake");
	WAIT_UNTIL(counter(0, &g, "naps") > naps, ST_SOON);
}

TEST(gone_after_close)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK(exists(0, &g) && exists(1, &g));
	close(g.fd[0]);
	close(g.fd[1]);
	WAIT_UNTIL(!exists(0, &g) && !exists(1, &g), ST_SOON);
}

TEST(one_directory_for_all_members_of_a_node)
{
	struct st_config c = { .members = 2 };
	struct st_group g = { 0 };

	st_open(&g, &c);
	CHECK(exists(0, &g));
	CHECK(!exists(1, &g));
	st_say(g.fd[0], "a");
	st_say(g.fd[1], "b");
	CHECK_OK(st_recv(g.fd[0], &m, 0));
	CHECK_OK(st_recv(g.fd[0], &m, 0));
	CHECK_EQ(counter(0, &g, "sent"), 2);
}

TEST(files_cannot_be_written)
{
	static const char *const files[] = { "state", "members", "counters/sent" };
	struct st_config c = { .members = 1 };
	struct st_group g = { 0 };
	struct stat st;
	unsigned int i;

	st_open(&g, &c);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		CHECK_OK(stat(path_of(0, &g, files[i]), &st));
		CHECK_EQ(st.st_mode & 07777, 0444);
	}
}

/* All files at once, while the group comes and goes. */
TEST(read_while_it_goes)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	int *over = mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int round;
	pid_t pid;

	CHECK(over != MAP_FAILED);
	for (round = 0; round < 15; round++) {
		struct st_group g = { 0 };

		*over = 0;
		st_name(g.name);
		pid = CHECK_OK(fork());
		if (!pid) {
			static const char *const files[] = {
				"state", "addresses", "counters/sent", "counters/passes", "view",
				"slow",
			};
			char buf[4096];
			unsigned int i;

			while (!__atomic_load_n(over, __ATOMIC_RELAXED))
				for (i = 0; i < ARRAY_SIZE(files); i++)
					st_read_file(path_of(i & 1, &g, files[i]), buf,
						     sizeof(buf));
			_exit(0);
		}
		st_open(&g, &c);
		st_say(g.fd[0], "x");
		st_expect(g.fd[1], "x");
		close(g.fd[1]);
		close(g.fd[0]);
		WAIT_UNTIL(!exists(0, &g) && !exists(1, &g), ST_SOON);
		__atomic_store_n(over, 1, __ATOMIC_RELAXED);
		st_reap(pid);
	}
}

TEST(table_in_debugfs)
{
	struct st_config c = { .members = 3, .nodes = 3 };
	static char path[PATH_MAX], buf[65536];
	struct st_group g = { 0 };
	unsigned int lines = 0;
	ssize_t n;
	char *p;
	int fd;

	st_open(&g, &c);
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/sst", st_addr(0), g.name);
	fd = CHECK_OK(open(path, O_RDONLY));
	n = CHECK_OK(read(fd, buf, sizeof(buf) - 1));
	buf[n] = 0;
	for (p = buf; (p = strchr(p, '\n')); p++)
		lines++;
	/* a line at least for each node and for each lane */
	CHECK(lines >= 3);
	CHECK(strstr(buf, st_addr(1)));
	close(fd);
}

static const char *debug_path(unsigned int node, const struct st_group *g, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/%s", st_addr(node), g->name,
		 file);
	return path;
}

static void read_all(const char *path, char *buf, size_t size)
{
	int fd = CHECK_OK(open(path, O_RDONLY));
	ssize_t n;

	n = CHECK_OK(read(fd, buf, size - 1));
	buf[n] = 0;
	close(fd);
}

/* How a view ends can be seen, too: what each node has received, and what is to be delivered. */
TEST(end_of_a_view_in_debugfs)
{
	struct st_config c = {
		.members = 3, .nodes = 3, .max_members = 8, .window = 65536, .link_ms = 60000,
	};
	static char path[PATH_MAX], buf[65536];
	struct st_group g = { 0 };
	unsigned int n = 0, i;
	double end;
	int fd;

	if (getenv("SPINDLE_SIW"))
		st_skip("a connection that is lost is not made again");
	st_open(&g, &c);
	st_say(g.fd[2], "read");
	st_expect(g.fd[0], "read");
	/* One that is waited for: the others have come to the end of the view already. */
	st_cut(0, 2);
	fd = st_bound(3);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_ERR(st_come(&g, fd, 0, 0), EINPROGRESS);
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/sst", st_addr(0), g.name);
	WAIT_UNTIL((read_all(path, buf, sizeof(buf)), strstr(buf, " wedged counts ")), ST_SOON);
	CHECK(!strstr(buf, " trim "));
	st_mend(0, 2);
	st_wait_state(fd, SPINDLE_STATE_ACTIVE);
	close(fd);
	/* so that its node stays, and its link, by which the others are asked at once */
	st_bound(3);
	/* The trim is there for a moment only, from the proposal until the next view. */
	end = st_now() + st_bound_s(ST_SOON);
	while (read_all(path, buf, sizeof(buf)), !strstr(buf, " trim ")) {
		if (st_now() > end)
			FAIL("no trim was seen");
		if (n++ % 16)
			continue;
		/* who reads no events passes over them so */
		for (i = 0; i < 3; i++)
			recv(g.fd[i], buf, sizeof(buf), MSG_DONTWAIT);
		fd = st_bound(3);
		CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
		CHECK_ERR(st_come(&g, fd, 0, 0), EINPROGRESS);
		close(fd);
	}
	CHECK(strstr(buf, " ballot "));
}

static void expect_debug(unsigned int node, const struct st_group *g, const char *file,
			 const char *want)
{
	const char *path = debug_path(node, g, file);
	char got[4096];

	read_all(path, got, sizeof(got));
	if (strcmp(got, want))
		FAIL("%s is \"%s\", not \"%s\"", path, got, want);
}

/* A word and what is counted of one moment; before there is a view, too. */
TEST(activity_in_debugfs)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct st_activity before, after;
	struct st_group g = { 0 };
	struct stat st;

	st_open_but(&g, &c, 1);
	WAIT_UNTIL(!strcmp(st_activity(0, &g).what, "quiet"), ST_SOON);
	CHECK_EQ(st_activity(0, &g).passes, 0);
	CHECK_OK(stat(debug_path(0, &g, "activity"), &st));
	CHECK_EQ(st.st_mode & 07777, 0400);
	close(g.fd[0]);

	memset(&g, 0, sizeof(g));
	st_open(&g, &c);
	WAIT_UNTIL(st_rests(&g) && !strcmp(st_activity(0, &g).what, "quiet"), ST_SOON);
	before = st_activity(0, &g);
	st_say(g.fd[0], "held by who does not read");
	while (send(g.fd[0], m.data, 16000, MSG_DONTWAIT) == 16000)
		;
	CHECK_EQ(errno, EAGAIN);
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	after = st_activity(0, &g);
	CHECK(after.passes > before.passes);
	/* the node was asleep, and is answered by wakes */
	CHECK(after.receives > before.receives);
	CHECK(!strcmp(after.what, "watching"));
	WAIT_UNTIL(st_activity(0, &g).looks >= after.looks + 2, ST_SOON);
	CHECK_EQ(st_activity(0, &g).passes, after.passes);
}

/* Each row has its reasons, and all that was counted as posted is in one of the lines. */
TEST(posts_in_debugfs)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	unsigned long long n[4], rows = 0, data = 0;
	struct st_group g = { 0 };
	char got[4096], *line, *rest;
	unsigned int i;

	st_open(&g, &c);
	for (i = 0; i < 20; i++) {
		st_say(g.fd[0], "alone");
		CHECK_INTACT(CHECK_OK(st_recv(g.fd[0], &m, 0)) > 0);
		CHECK_INTACT(CHECK_OK(st_recv(g.fd[1], &m, 0)) > 0);
	}
	WAIT_UNTIL(st_rests(&g), ST_SOON);
	read_all(debug_path(0, &g, "posts"), got, sizeof(got));
	line = strtok_r(got, "\n", &rest);
	CHECK_EQ(sscanf(line, "segments %llu carried %llu wakes %llu late %llu", &n[0], &n[1],
			&n[2], &n[3]), 4);
	while ((line = strtok_r(NULL, "\n", &rest))) {
		unsigned long long some;

		CHECK_EQ(sscanf(line, "rows %llu", &some), 1);
		rows += some;
		if (strstr(line, " data"))
			data += some;
	}
	CHECK_EQ(data, 20);

	/* a message goes in its row, or by two writes */
	CHECK_EQ(n[0] + 2 * n[1], 40);
	CHECK_EQ(n[0] + rows + n[2] + n[3],
		 counter(0, &g, "rdma_writes") + counter(0, &g, "sends"));
	CHECK_EQ(n[2] + n[3], counter(0, &g, "wakes_sent"));
}

static const char *const optimised_names[] = { "send", "receive", "deliver", "null", "unlock" };

/* On all nodes, before there is a view, too. */
static void expect_optimised(const struct st_group *g, uint32_t off)
{
	char want[128] = "";
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(optimised_names); i++) {
		if (off >> i & 1)
			continue;
		if (*want)
			strcat(want, " ");
		strcat(want, optimised_names[i]);
	}
	strcat(want, *want ? "\n" : "none\n");
	for (i = 0; i < g->nodes; i++)
		expect_debug(i, g, "optimise", want);
	for (i = 0; i < g->n; i++)
		CHECK_EQ(st_info(g->fd[i]).optimise_off, off);
}

/* The creator says which are on, and who joins takes that. */
TEST(optimise_agreed_on)
{
	static const uint32_t off[] = {
		0, SPINDLE_OFF_SEND, SPINDLE_OFF_RECEIVE, SPINDLE_OFF_DELIVER, SPINDLE_OFF_NULL,
		SPINDLE_OFF_UNLOCK, SPINDLE_OFF_SEND | SPINDLE_OFF_NULL, SPINDLE_OFF_ALL,
	};
	unsigned int i, k;
	struct stat st;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		struct st_config c = { .members = 3, .nodes = 2, .optimise_off = off[i] };
		struct st_group g = { 0 };

		st_open_but(&g, &c, 1);
		expect_optimised(&g, off[i]);
		CHECK_OK(stat(debug_path(1, &g, "optimise"), &st));
		CHECK_EQ(st.st_mode & 07777, 0400);
		for (k = 0; k < g.n; k++)
			close(g.fd[k]);
	}
}

static void expect_batches(const struct st_group *g, unsigned int node, const char *send,
			   const char *receive, const char *deliver)
{
	char want[256];

	snprintf(want, sizeof(want), "send batches %s\nreceive batches %s\ndeliver batches %s\n",
		 send, receive, deliver);
	expect_debug(node, g, "batches", want);
}

static void talk(struct st_group *g, const char *what)
{
	unsigned int i, k;
	char text[64];

	for (i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%u of %s", i, what);
		for (k = 0; k < 2; k++)
			st_say(g->fd[k], text);
	}
	/* two of each, in this order where there are no nulls */
	for (i = 0; i < 40; i++)
		for (k = 0; k < 2; k++)
			CHECK_INTACT(CHECK_OK(st_recv(g->fd[k], &m, 0)) > 0);
}

/* All off, then all but nulls: nothing is lost, and a stage takes one at a time. */
TEST(baseline)
{
	struct st_config c = { .members = 2, .nodes = 2, .optimise_off = SPINDLE_OFF_ALL };
	const char *each = "20 messages 20 mean 1.00 1:20", *nothing = "0 messages 0 mean 0.00";
	struct st_group g = { 0 };
	unsigned int node;
	uint64_t writes;

	st_open(&g, &c);
	expect_optimised(&g, SPINDLE_OFF_ALL);
	expect_batches(&g, 0, nothing, nothing, nothing);
	writes = counter(0, &g, "rdma_writes") + counter(0, &g, "sends");
	talk(&g, "the baseline");
	for (node = 0; node < 2; node++) {
		expect_batches(&g, node, each, each, "40 messages 40 mean 1.00 1:40");
		CHECK_EQ(counter(node, &g, "nulls"), 0);
	}
	/* bytes, descriptors and a row of each; an ack of each */
	CHECK(counter(0, &g, "rdma_writes") + counter(0, &g, "sends") >= writes + 80);
	CHECK(st_write_file(debug_path(0, &g, "batches"), "0"));
	expect_batches(&g, 0, nothing, nothing, nothing);
}

/* Each by itself, and what the benchmarks measure. */
TEST(some_optimised)
{
	static const uint32_t on[] = {
		SPINDLE_OFF_SEND, SPINDLE_OFF_RECEIVE, SPINDLE_OFF_DELIVER, SPINDLE_OFF_NULL,
		SPINDLE_OFF_UNLOCK, SPINDLE_OFF_SEND | SPINDLE_OFF_RECEIVE,
		SPINDLE_OFF_ALL & ~SPINDLE_OFF_UNLOCK,
	};
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(on); i++) {
		struct st_config c = {
			.members = 2, .nodes = 2, .optimise_off = SPINDLE_OFF_ALL & ~on[i],
		};
		struct st_group g = { 0 };

		st_open(&g, &c);
		talk(&g, "some");
		for (k = 0; k < 2; k++)
			CHECK_OK(shutdown(g.fd[k], SHUT_WR));
		for (k = 0; k < 2; k++) {
			st_expect_end(g.fd[k]);
			close(g.fd[k]);
		}
	}
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
