// SPDX-License-Identifier: GPL-2.0
/*
 * One member of a group as a program of its own, for tests of several guests.
 * It says what it does on standard output, one fact a line:
 *
 *	active RANK
 *	sending			after the first 100 messages received
 *	done RECEIVED SENT HASH	the stream has ended in order
 *	failed ERRNO RECEIVED	the group has failed
 *
 * --seconds bounds its life, as a host needs them that is as fast as an idle
 * guest: see st_bound_s().
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

static struct job job = {
	.name = "members",
	.group = { .members = 3 },
	.messages = 1000,
	.max = 1000,
};

static struct job_result res;

/* Tell of the first messages; the job itself is silent. */
static void *watch(void *arg)
{
	bool told = false;

	(void)arg;
	for (;;) {
		double active;

		__atomic_load(&res.active, &active, __ATOMIC_ACQUIRE);
		if (active != 0 && !told) {
			told = true;
			printf("active %u\n", __atomic_load_n(&res.rank, __ATOMIC_RELAXED));
		}
		if (__atomic_load_n(&res.received, __ATOMIC_RELAXED) >= 100)
			break;
		st_pause_us(2000);
	}
	puts("sending");
	return NULL;
}

int main(int argc, char **argv)
{
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
	alarm(st_bound_s(seconds));
	CHECK_EQ(pthread_create(&thread, NULL, watch, NULL), 0);
	job_run(&job, &res);
	if (res.error) {
		printf("failed %s %llu\n", st_err(res.error), (unsigned long long)res.received);
		return 3;
	}
	printf("done %llu %llu %016llx\n", (unsigned long long)res.received,
	       (unsigned long long)res.sent, (unsigned long long)res.hash);
	return 0;
}
