// SPDX-License-Identifier: GPL-2.0
/*
 * One member of a group as a program of its own, for tests of several guests.
 * It says what it does on standard output, one fact a line:
 *
 *	active RANK
 *	sending			after the first 100 messages received
 *	view NUMBER MEMBERS RANK:REASON...
 *				the event of each view after the first was read; all
 *				that are gone by then, with their ranks in the first
 *	flows NUMBER		after 100 more messages
 *	minority		it cannot send, for no majority is heard
 *	majority		and can again
 *	from OWN RANK:COUNT...	own rank, and messages received by ranks of the
 *				first view
 *	done RECEIVED SENT HASH	the stream has ended in order
 *	failed ERRNO RECEIVED	the group has failed
 *
 * On SIGTERM it sends no more, and waits for the end of the stream. On SIGUSR1
 * it leaves, and reads what is left. --seconds bounds its life, as a host needs
 * them that is as fast as an idle guest: see st_bound_s().
 *
 * Status 0: done, 3: failed, 1: something is wrong.
 */
#include "job.h"

#include <getopt.h>

static const struct option options[] = {
	{ "addr", required_argument, NULL, 'a' },
	{ "contact", required_argument, NULL, 'c' },
	{ "depth", required_argument, NULL, 'd' },
	{ "hold", no_argument, NULL, 'h' },
	{ "linger", required_argument, NULL, 'L' },
	{ "max", required_argument, NULL, 'x' },
	{ "members", required_argument, NULL, 'm' },
	{ "messages", required_argument, NULL, 'n' },
	{ "name", required_argument, NULL, 'N' },
	{ "order", required_argument, NULL, 'o' },
	{ "receiver", no_argument, NULL, 'r' },
	{ "seconds", required_argument, NULL, 's' },
	{ "senders", required_argument, NULL, 'S' },
	{ "slow", required_argument, NULL, 'l' },
	{ "threads", no_argument, NULL, 't' },
	{ "window", required_argument, NULL, 'w' },
	{ }
};

static void say_view(void);

static int over;
static struct job_result res;
static struct job job = {
	.name = "members",
	.group = { .members = 3 },
	.messages = 1000,
	.max = 1000,
	.views = true,
	.viewed = say_view,
	.over = &over,
};

static void on_signal(int sig)
{
	__atomic_store_n(&over, sig == SIGTERM ? JOB_SHUTDOWN : JOB_LEAVE, __ATOMIC_RELEASE);
}

/* One line, of two threads that print: the job's one, and the one that watches it. */
static void say_view(void)
{
	static const char * const reasons[] = { "none", "left", "exited", "lost" };
	char line[64 + SPINDLE_MAX_MEMBERS * 16];
	unsigned int i;
	int at;

	at = sprintf(line, "view %llu %u", (unsigned long long)res.view, res.members);
	for (i = 0; i < SPINDLE_MAX_MEMBERS; i++) {
		CHECK(res.reason[i] < ARRAY_SIZE(reasons));
		if (res.reason[i])
			at += sprintf(line + at, " %u:%s", i, reasons[res.reason[i]]);
	}
	puts(line);
}

static void say_from(void)
{
	unsigned int i;

	printf("from %u", res.rank);
	for (i = 0; i < SPINDLE_MAX_MEMBERS; i++)
		if (res.from[i])
			printf(" %u:%llu", i, (unsigned long long)res.from[i]);
	printf("\n");
}

/* Tell of messages that flow; the job itself is silent. */
static void *watch(void *arg)
{
	bool told = false, sending = false, flows = true, waits = false;
	uint64_t view = 1, since = 0;

	(void)arg;
	for (;;) {
		uint64_t now = __atomic_load_n(&res.view, __ATOMIC_ACQUIRE);
		uint64_t received = __atomic_load_n(&res.received, __ATOMIC_RELAXED);

		if (!told && job_active(&res)) {
			told = true;
			printf("active %u\n", __atomic_load_n(&res.rank, __ATOMIC_RELAXED));
		}
		if (!sending && received >= 100) {
			sending = true;
			puts("sending");
		}
		if (__atomic_load_n(&res.waits, __ATOMIC_RELAXED) != waits) {
			waits = !waits;
			puts(waits ? "minority" : "majority");
		}
		if (now > view) {
			view = now;
			since = received;
			flows = false;
		}
		if (!flows && received >= since + 100) {
			flows = true;
			printf("flows %llu\n", (unsigned long long)view);
		}
		st_pause_us(2000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction told = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	unsigned int seconds = ST_PROGRAM;
	pthread_t thread;
	int opt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	job.addr = getenv("SPINDLE_ADDR");
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'a':
			job.addr = optarg;
			break;
		case 'c':
			job.contact = optarg;
			break;
		case 'd':
			job.group.depth = strtoul(optarg, NULL, 0);
			break;
		case 'h':
			job.hold = true;
			break;
		case 'L':
			job.linger = strtoul(optarg, NULL, 0);
			break;
		case 'x':
			job.max = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			job.group.members = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			job.messages = strtoull(optarg, NULL, 0);
			break;
		case 'N':
			job.name = optarg;
			break;
		case 'o':
			job.order = optarg;
			break;
		case 'r':
			job.receiver = true;
			break;
		case 's':
			seconds = strtoul(optarg, NULL, 0);
			break;
		case 'S':
			job.group.senders = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			job.slow_us = strtoul(optarg, NULL, 0);
			break;
		case 't':
			job.mode = JOB_THREADS;
			break;
		case 'w':
			job.group.window = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	if (!job.addr)
		FAIL("no --addr and no SPINDLE_ADDR");
	st_measure(stdout);
	CHECK_OK(sigaction(SIGTERM, &told, NULL));
	CHECK_OK(sigaction(SIGUSR1, &told, NULL));
	alarm(st_bound_s(seconds));
	CHECK_EQ(pthread_create(&thread, NULL, watch, NULL), 0);
	job_run(&job, &res);
	if (res.error) {
		printf("failed %s %llu\n", st_err(res.error), (unsigned long long)res.received);
		return 3;
	}
	say_from();
	printf("done %llu %llu %016llx\n", (unsigned long long)res.received,
	       (unsigned long long)res.sent, (unsigned long long)res.hash);
	return 0;
}
