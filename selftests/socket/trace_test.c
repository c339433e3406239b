// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints: each step that a group, a link and a peer take is one line of the trace
 * in tracefs, in the order in which they are taken.
 */
#include "spindle_selftest.h"

#include <sys/mount.h>

#define TRACEFS		"/sys/kernel/tracing"
#define LINES		20000

static const char *const events[] = {
	"group_state", "suspect", "wedge", "report", "decided", "view", "link", "connection",
	"peer", "join", "sync", "pass",
};

/* The trace as it was when take() was called last. */
static struct {
	char *line[LINES];
	unsigned int n;
} trace;

static void put(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TRACEFS "/%s", file);
	if (!st_write_file(path, text))
		FAIL("%s to %s: %s", text, path, st_err(errno));
}

static void put_event(const char *event, const char *file, const char *text)
{
	char name[128];

	snprintf(name, sizeof(name), "events/spindle/spindle_%s/%s", event, file);
	put(name, text);
}

/* Trace all steps, and no passes but those that deliver. */
static void begin(void)
{
	if (mount("tracefs", TRACEFS, "tracefs", 0, NULL) && errno != EBUSY)
		FAIL("mount of tracefs: %s", st_err(errno));
	put("buffer_size_kb", "4096");
	put_event("pass", "filter", "did & 2");
	put("events/spindle/enable", "1");
	put("trace", "");
}

static void take(void)
{
	static char text[512];
	FILE *f = fopen(TRACEFS "/trace", "r");

	CHECK(f);
	while (trace.n)
		free(trace.line[--trace.n]);
	while (fgets(text, sizeof(text), f)) {
		if (*text == '#' || !strstr(text, ": spindle_"))
			continue;
		CHECK(trace.n < LINES);
		trace.line[trace.n] = strdup(text);
		CHECK(trace.line[trace.n]);
		trace.n++;
	}
	fclose(f);
}

/* The first line from @from on that has an event and all of these words; LINES: none. */
static unsigned int find(unsigned int from, const char *event, const char *a, const char *b)
{
	char what[64];

	snprintf(what, sizeof(what), ": spindle_%s:", event);
	for (; from < trace.n; from++)
		if (strstr(trace.line[from], what) && strstr(trace.line[from], a) &&
		    strstr(trace.line[from], b))
			return from;
	return LINES;
}

static void dump(void)
{
	unsigned int i;

	for (i = 0; i < trace.n; i++)
		printf("# %s", trace.line[i]);
}

/* It is there, behind line @from; returns where. */
static unsigned int must(unsigned int from, const char *event, const char *a, const char *b)
{
	unsigned int at = find(from, event, a, b);

	if (at == LINES) {
		dump();
		BROKEN("no line of %s with \"%s\" and \"%s\" from line %u on", event, a, b, from);
	}
	return at;
}

static const char *node(unsigned int i)
{
	static char text[4][80];

	snprintf(text[i], sizeof(text[i]), "node=%s ", st_addr(i));
	return text[i];
}

static const struct st_config two = { .members = 2, .nodes = 2, .max_members = 4 };

TEST(all_can_be_had_by_themselves)
{
	struct st_group g = { 0 };
	char path[256], text[4096];
	unsigned int i;

	begin();
	put("events/spindle/enable", "0");
	put("trace", "");
	st_open(&g, &two);
	st_say(g.fd[0], "untold");
	st_expect(g.fd[1], "untold");
	take();
	CHECK_EQ(trace.n, 0);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path), TRACEFS "/events/spindle/spindle_%s/format",
			 events[i]);
		CHECK(st_read_file(path, text, sizeof(text)));
		put_event(events[i], "enable", "1");
		put_event(events[i], "enable", "0");
	}
}

TEST(a_group_begins_and_ends)
{
	struct st_group g = { 0 };
	char group[80];
	unsigned int i, at;

	begin();
	st_open(&g, &two);
	snprintf(group, sizeof(group), "group=%s ", g.name);
	st_say(g.fd[0], "told");
	st_expect(g.fd[0], "told");
	st_expect(g.fd[1], "told");
	for (i = 0; i < 2; i++)
		CHECK_OK(shutdown(g.fd[i], SHUT_WR));
	for (i = 0; i < 2; i++)
		st_wait_state(g.fd[i], SPINDLE_STATE_CLOSED);
	take();
	must(0, "join", group, "result=0");
	for (i = 0; i < 2; i++) {
		at = must(0, "link", node(i), "state=up error=0");
		must(0, "peer", node(i), "step=\"key said\"");
		at = must(at, "peer", node(i), "step=\"key heard\"");
		at = must(at, "group_state", node(i), "view=1 state=active");
		at = must(at, "pass", node(i), "deliver");
		must(at, "group_state", node(i), "view=1 state=closed");
	}
	CHECK_EQ(find(0, "suspect", "", ""), LINES);
	CHECK_EQ(find(0, "wedge", "", ""), LINES);
}

TEST(a_view_follows_the_other)
{
	struct st_group g = { 0 };
	unsigned int i, at;

	begin();
	st_open(&g, &two);
	CHECK_OK(st_come(&g, st_fresh(&two, 2), 1, 0));
	st_wait_members(g.fd[0], 3);
	st_wait_members(g.fd[1], 3);
	CHECK_OK(st_leave(g.fd[1]));
	st_wait_members(g.fd[0], 2);
	st_wait_state(g.fd[1], SPINDLE_STATE_CLOSED);
	take();
	for (i = 0; i < 2; i++) {
		at = must(0, "wedge", node(i), "view=1 ");
		at = must(at, "report", node(i), "view=1 wedged=1");
		at = must(at, "decided", node(i), "view=1 come=1");
		at = must(at, "view", node(i), "view=2 members=3 nodes=2 gone=0 come=1");
		at = must(at, "wedge", node(i), "view=2 ");
		at = must(at, "decided", node(i), "view=2 come=0");
	}
	must(at, "group_state", node(1), "view=2 state=closed");
	must(0, "view", node(0), "view=3 members=2 nodes=1 gone=1 come=0");
	must(0, "peer", node(0), "step=\"bye said\"");
	must(0, "peer", node(1), "step=\"bye heard\"");
}

TEST(a_node_is_lost)
{
	struct st_config c = { .members = 3, .nodes = 3, .silent_ms = 1000, .link_ms = 1000 };
	struct st_group g = { 0 };
	unsigned int at;
	char peer[80];

	begin();
	st_open(&g, &c);
	st_cut(0, 1);
	st_mend(0, 1);
	WAIT_UNTIL((take(), find(0, "connection", node(0), "step=made")) != LINES, ST_SOON);
	at = must(0, "connection", node(0), "step=lost");
	must(at, "connection", node(0), "step=made nr=2");
	st_cut(0, 2);
	st_cut(1, 2);
	st_wait_members(g.fd[0], 2);
	st_wait_state(g.fd[2], SPINDLE_STATE_MINORITY);
	st_mend(0, 2);
	st_mend(1, 2);
	st_wait_state(g.fd[2], SPINDLE_STATE_FAILED);
	take();
	snprintf(peer, sizeof(peer), "peer=%s ", st_addr(2));
	at = must(0, "connection", peer, "step=lost");
	at = must(at, "suspect", "view=1 rank=2", peer);
	at = must(at, "decided", node(0), "view=1 come=0");
	must(at, "view", node(0), "view=2 members=2 nodes=2 gone=1 come=0");
	must(0, "minority", node(2), "view=1 step=waits");
	/* It is told that the others have gone on, or finds that they know nothing of it. */
	must(0, "group_state", node(2), "state=failed error=-10");
}

TEST(who_waits_and_who_is_refused)
{
	struct st_group g = { 0 };
	int fd;

	begin();
	st_open(&g, &two);
	st_say(g.fd[0], "it");
	CHECK_OK(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_RECEIVED));
	st_timeout(g.fd[0], SO_SNDTIMEO, 10);
	CHECK_ERR(st_option(g.fd[0], SPINDLE_SYNC, SPINDLE_SYNC_CONSUMED), EAGAIN);
	fd = st_bound(3);
	snprintf(g.name, sizeof(g.name), "no-such-group");
	CHECK_ERR(st_come(&g, fd, 0, 0), ENOENT);
	take();
	must(0, "sync", node(0), "what=received messages=1 result=0");
	must(0, "sync", node(0), "what=consumed messages=1 result=-11");
	must(0, "join", node(3), "group=no-such-group result=-2");
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
