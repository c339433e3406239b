// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is refused, by failslab and fail_page_alloc, while a view changes: a program
 * comes, a member leaves, all talk, and one allocation fails. Whoever it concerns hears
 * ENOMEM, or nothing where it is tried again; nobody else is harmed, all have read the same,
 * and nothing is left.
 *
 *	NOMEM_SEED	other allocations
 *	NOMEM_ROUNDS	so many of them
 *	NOMEM_SHOW	what came of each
 *	NOMEM_VERBOSE	2: the kernel's log says of each where it was
 */
#include "spindle_selftest.h"

#include <dirent.h>

#define DEBUG	"/sys/kernel/debug/"
#define NICE	7		/* of the control plane's workers: nobody else has it */
#define NODES	4
#define COMES	3		/* the member that comes, and its node */
#define LEAVES	2		/* the one that leaves */
#define SENT	60		/* messages of a member, at most */
#define LOG	(NODES * SENT)

/**
 * struct member - what a member has sent and read
 * @fd: its socket
 * @failed: it is told that it is out, and why; 0: it is not
 * @out: it is in the view no more, or was never
 * @sent: messages
 * @n: entries of @log
 * @log: what it has read: sender << 16 | number
 */
struct member {
	int fd;
	int failed;
	bool out;
	unsigned int sent;
	unsigned int n;
	uint32_t log[LOG];
};

static struct member members[NODES];
static struct st_group group;
static uint64_t seed;

/* Refusing memory */

static void set(const char *how, const char *file, unsigned long value)
{
	char path[256], text[32];

	snprintf(path, sizeof(path), DEBUG "%s/%s", how, file);
	snprintf(text, sizeof(text), "%lu", value);
	if (!st_write_file(path, text))
		FAIL("%s does not take %s: %s", path, text, st_err(errno));
}

static unsigned long get(const char *how, const char *file)
{
	char path[256], text[32];

	snprintf(path, sizeof(path), DEBUG "%s/%s", how, file);
	if (!st_read_file(path, text, sizeof(text)))
		FAIL("%s: %s", path, st_err(errno));
	return strtoul(text, NULL, 0);
}

static const char * const hows[] = { "failslab", "fail_page_alloc" };

static void be_nice(int nice)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", nice);
	if (!st_write_file("/sys/devices/virtual/workqueue/spindle/nice", text))
		FAIL("the nice of the workqueue: %s", st_err(errno));
}

static void begin(void)
{
	unsigned int i;

	if (access(DEBUG "failslab", F_OK) || access(DEBUG "fail_page_alloc", F_OK))
		st_skip("a kernel that refuses no memory");
	be_nice(NICE);
	seed = st_env("NOMEM_SEED", 1);
	for (i = 0; i < ARRAY_SIZE(hows); i++) {
		set(hows[i], "probability", 0);
		set(hows[i], "task-filter", 1);
		set(hows[i], "ignore-gfp-wait", 0);
		set(hows[i], "verbose", st_env("NOMEM_VERBOSE", 0));
		set(hows[i], "space", 0);
	}
	set("fail_page_alloc", "min-order", 0);
	set("fail_page_alloc", "ignore-gfp-highmem", 0);
}

/* The nice value of a process; 0 when it has gone. */
static long nice_of(const char *pid)
{
	char path[512], stat[1024];
	unsigned int i;
	char *at;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	if (!st_read_file(path, stat, sizeof(stat)))
		return 0;
	/* the 19th word; the second is the name, which may have spaces */
	at = strrchr(stat, ')');
	for (i = 2; at && i < 19; i++)
		at = strchr(at + 1, ' ');
	return at ? strtol(at, NULL, 10) : 0;
}

/*
 * The control plane's workers: are they refused memory? Its workqueue has some of its own
 * when it is not as nice as others. What is not refused anything is RDMA's own workers:
 * soft-RoCE of 6.1 does not survive that it has no memory for a queue pair.
 */
static void mark_workers(bool fail)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;

	CHECK(dir);
	while ((e = readdir(dir))) {
		char path[512], comm[64];

		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		if (strspn(e->d_name, "0123456789") != strlen(e->d_name) ||
		    !st_read_file(path, comm, sizeof(comm)) ||
		    strncmp(comm, "kworker/", 8) || nice_of(e->d_name) != NICE)
			continue;
		/* it may have gone meanwhile */
		snprintf(path, sizeof(path), "/proc/%s/make-it-fail", e->d_name);
		st_write_file(path, fail ? "1" : "0");
	}
	closedir(dir);
}

/* Calls of this task are refused memory, too; that by which they are not may be. */
static void mark_myself(bool fail)
{
	while (!st_write_file("/proc/thread-self/make-it-fail", fail ? "1" : "0"))
		CHECK_EQ(errno, ENOMEM);
}

/* One of the next @most allocations fails. */
static void refuse(const char *how, unsigned int most)
{
	set(how, "times", 1);
	set(how, "interval", 1 + st_random(&seed) % most);
	set(how, "probability", 100);
}

/* Has one failed? */
static bool refused(const char *how)
{
	set(how, "probability", 0);
	return !get(how, "times");
}

/* Members */

static void member_failed(struct member *m, int error)
{
	if (!m->failed)
		m->failed = error;
	m->out = true;
}

/* Say something, unless there is no room now. */
static void say(unsigned int i)
{
	struct member *m = &members[i];
	uint32_t what = i << 16 | (m->sent + 1);

	if (m->out)
		return;
	if (send(m->fd, &what, sizeof(what), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(what)) {
		m->sent++;
		return;
	}
	/* A call that had no memory may be made again. */
	if (errno != EAGAIN && errno != ENOMEM && errno != ENOBUFS)
		member_failed(m, errno);
}

static void leave(struct member *m)
{
	if (!st_leave(m->fd)) {
		m->out = true;
	} else if (errno == ENOTCONN) {
		/* It has failed already. */
		CHECK_EQ(st_info(m->fd).state, SPINDLE_STATE_FAILED);
		member_failed(m, st_info(m->fd).error);
	} else {
		CHECK_EQ(errno, ENOMEM);
	}
}

static void listen_to(unsigned int i)
{
	struct member *m = &members[i];
	uint32_t what;
	ssize_t len;

	if (m->fd < 0)
		return;
	while ((len = recv(m->fd, &what, sizeof(what), MSG_DONTWAIT)) > 0) {
		CHECK_EQ(len, sizeof(what));
		CHECK(m->n < LOG);
		m->log[m->n++] = what;
	}
	if (!len)
		m->out = true;
	else if (errno != EAGAIN && errno != ENOTCONN && errno != ENOMEM)
		member_failed(m, errno);
	else if (st_info(m->fd).state == SPINDLE_STATE_FAILED)
		member_failed(m, st_info(m->fd).error);
}

static void listen_all(void)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		listen_to(i);
}

/* How the member that comes does: true: it is there, or has failed. */
static bool has_come(void)
{
	struct member *m = &members[COMES];
	struct spindle_group_info info = st_info(m->fd);
	int error;

	if (m->out || info.state == SPINDLE_STATE_ACTIVE)
		return true;
	if (info.state == SPINDLE_STATE_FAILED) {
		member_failed(m, info.error);
		return true;
	}
	error = st_so_error(m->fd);
	if (error)
		member_failed(m, error);
	return m->out;
}

/* Those that are in the view have all that any of them has sent. */
static bool all_read(void)
{
	unsigned int i, k, from, n;

	listen_all();
	for (i = 0; i < NODES; i++) {
		if (members[i].out)
			continue;
		for (from = 0; from < NODES; from++) {
			if (members[from].out)
				continue;
			for (n = 0, k = members[i].n; k-- && !n;)
				if (members[i].log[k] >> 16 == from)
					n = members[i].log[k] & 0xffff;
			if (n != members[from].sent)
				return false;
		}
	}
	return true;
}

static void show(void)
{
	unsigned int i;

	for (i = 0; i < NODES; i++) {
		struct spindle_group_info info = { 0 };

		if (members[i].fd >= 0)
			info = st_info(members[i].fd);
		printf("# member %u: state %u error %s view %u of %u, out %u (%s), sent %u read %u\n",
		       i, info.state, st_err(info.error), (unsigned int)info.view, info.members,
		       members[i].out, st_err(members[i].failed), members[i].sent, members[i].n);
	}
	fflush(stdout);
}

/* What two have read is the same, but that one may have begun later or ended earlier. */
static void compare(unsigned int a, unsigned int b)
{
	const struct member *x = &members[a], *y = &members[b];
	unsigned int i, at = 0;

	if (!x->n || !y->n)
		return;
	while (at < x->n && x->log[at] != y->log[0])
		at++;
	if (at == x->n) {
		show();
		BROKEN("member %u has not read what member %u has read first", a, b);
	}
	for (i = 0; i < y->n && at + i < x->n; i++)
		CHECK_SAME(x->log[at + i], y->log[i]);
}

/* One change, in which one allocation fails. True: one has. */
static bool change(const char *how, unsigned int most, bool own)
{
	struct st_config c = {
		.members = 3, .nodes = 3, .max_members = 8, .window = 65536,
	};
	double end;
	unsigned int i, lost = 0;
	bool failed;

	memset(members, 0, sizeof(members));
	memset(&group, 0, sizeof(group));
	st_open(&group, &c);
	members[COMES].fd = st_bound(COMES);
	for (i = 0; i < NODES; i++) {
		if (i != COMES)
			members[i].fd = group.fd[i];
		CHECK_OK(fcntl(members[i].fd, F_SETFL, O_NONBLOCK));
	}
	for (i = 0; i < 3; i++)
		say(i);
	mark_workers(!own);
	refuse(how, most);

	mark_myself(own);
	if (st_come(&group, members[COMES].fd, 0, 0) && errno != EINPROGRESS)
		member_failed(&members[COMES], errno);
	say(0);
	say(1);
	leave(&members[LEAVES]);
	mark_myself(false);
	end = st_now() + st_bound_s(ST_SOON);
	while (!has_come()) {
		for (i = 0; i < 2 && members[i].sent < SENT - 1; i++)
			say(i);
		listen_all();
		if (st_now() > end) {
			show();
			FAIL("no view");
		}
		st_pause_us(1000);
	}
	failed = refused(how);
	if (!members[LEAVES].out)
		leave(&members[LEAVES]);
	end = st_now() + st_bound_s(ST_SOON);
	for (i = 0; i < NODES; i++)
		say(i);
	while (!all_read()) {
		if (st_now() > end) {
			show();
			FAIL("not all is read");
		}
		st_pause_us(1000);
	}
	for (i = 0; i < NODES; i++) {
		if (i != LEAVES && members[i].out)
			lost++;
		compare(members[0].out ? 1 : 0, i);
	}
	if (lost || getenv("NOMEM_SHOW"))
		show();
	CHECK(lost <= failed);
	for (i = 0; i < NODES; i++) {
		int error = members[i].failed;

		/* It may have been the contact, or what RDMA makes of it. */
		if (error && (i != COMES || (error != ECONNREFUSED && error != EHOSTUNREACH)))
			CHECK_EQ(error, ENOMEM);
		close(members[i].fd);
		members[i].fd = -1;
	}
	for (i = 0; i < NODES; i++)
		st_wait_gone(i, &group);
	return failed;
}

static void changes(const char *how, unsigned int most, bool own)
{
	unsigned int rounds = st_env("NOMEM_ROUNDS", 20), failed = 0, i;
	char used[32];

	begin();
	for (i = 0; i < rounds; i++)
		failed += change(how, most, own);
	be_nice(0);
	printf("# %u of %u were refused memory\n", failed, rounds);
	CHECK(failed);
	WAIT_UNTIL(st_read_file("/proc/sys/net/spindle/mem_used", used, sizeof(used)) &&
		   !atoi(used), ST_SOON);
}

TEST_SECONDS(objects_in_the_kernel, 600)
{
	changes("failslab", 300, false);
}

TEST_SECONDS(pages_in_the_kernel, 600)
{
	changes("fail_page_alloc", 300, false);
}

TEST_SECONDS(objects_in_calls, 600)
{
	changes("failslab", 20, true);
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
