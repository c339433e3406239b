// SPDX-License-Identifier: GPL-2.0
/* Arguments, processes and reporting. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

static const char * const doorbell_names[SIM_DOORBELLS] = {
	[SIM_POLLED] = "polled",
	[SIM_GUARDED] = "guarded",
	[SIM_MIXED] = "mixed",
};

/* What a seed makes. */
#define KIND_FIXED	(1u << 0)	/* a group whose members stay: run.c */
#define KIND_LIVE	(1u << 1)	/* one whose members come and go: live.c */
#define KIND_BALLOTS	(1u << 2)	/* the agreement alone: ballots.c */
#define KIND_REPLAY	(1u << 3)	/* as live, on connections that carry on */

static const char * const kind_names[] = {
	"fixed", "live", "ballots", "replay"
};

#define BALLOTS_A_SEED	200	/* agreements of one seed */
#define SHORTEST_LINES	60	/* of the shortest run that fails */

struct args {
	u64 from;
	u64 seeds;
	int doorbell;		/* -1: all; of live runs, one after the other */
	u32 kinds;
	bool brief;
	u32 drop;
	u32 nodes;
	u32 each;
	int jobs;
	bool trace;
	bool first;		/* stop at the first violation */
};

static void usage(FILE *to)
{
	fputs("usage: sim [options]\n"
	      "  --seeds N          run N seeds (default 1000)\n"
	      "  --from S           begin with seed S (default 0)\n"
	      "  --seed S           run seed S only\n"
	      "  --kind K           fixed: the members stay; live: they come and go;\n"
	      "                     replay: likewise, and connections that break carry on;\n"
	      "                     ballots: the agreement alone (default: all four)\n"
	      "  --doorbell D       polled, guarded or mixed (default: each of them)\n"
	      "  --brief            do not look for the shortest run that fails\n"
	      "  --drop M --nodes N --each E   make a live run shorter: leave out faults,\n"
	      "                     begin with N nodes, send at most E messages each\n"
	      "  --trace            print what happens\n"
	      "  --first            stop at the first violation, of a scenario too\n"
	      "  --jobs N           share the seeds among N processes (default 1)\n"
	      "  --scenario NAME    run a named scenario, or all\n"
	      "  --kunit            run the core's KUnit suites\n"
	      "  --list             list the scenarios\n", to);
}

static bool run_one(const struct args *a, u64 seed, int doorbell)
{
	struct sim_opts opts = {
		.seed = seed,
		.doorbell = doorbell,
		.trace = a->trace,
	};
	struct sim *s = sim_new(&opts);
	bool ok = sim_run(s);

	if (!ok)
		printf("seed %llu %s: %s\n  replay: scripts/sim --kind fixed --seed %llu --doorbell %s --trace\n",
		       (unsigned long long)seed, doorbell_names[doorbell],
		       s->why, (unsigned long long)seed,
		       doorbell_names[doorbell]);
	if (a->trace)
		printf("%llu steps, %u messages\n",
		       (unsigned long long)s->steps, s->nstory);
	fflush(stdout);
	sim_free(s);
	return ok;
}

static bool run_live(const struct args *a, u64 seed, bool replay)
{
	struct live_opts opts = {
		.seed = seed,
		.doorbell = a->doorbell < 0 ?
			(int)(seed % SIM_DOORBELLS) : a->doorbell,
		.drop = a->drop,
		.nodes = a->nodes,
		.each = a->each,
		.replay = replay,
		.trace = a->trace,
	};

	return live_seed(&opts, a->brief ? 0 : SHORTEST_LINES);
}

static bool run_ballots(u64 seed)
{
	u32 failed = ballots_run(seed * BALLOTS_A_SEED, BALLOTS_A_SEED);

	if (failed)
		printf("seed %llu ballots: %u fail\n",
		       (unsigned long long)seed, failed);
	return !failed;
}

/* Every a->jobs-th seed, over all doorbells asked for. */
static u64 run_share(const struct args *a, int share)
{
	u64 violations = 0;
	u64 seed;
	int d;

	for (seed = a->from + share; seed < a->from + a->seeds; seed += a->jobs) {
		for (d = 0; d < SIM_DOORBELLS && a->kinds & KIND_FIXED; d++)
			if (a->doorbell < 0 || a->doorbell == d)
				violations += !run_one(a, seed, d);
		if (a->kinds & KIND_LIVE)
			violations += !run_live(a, seed, false);
		if (a->kinds & KIND_REPLAY)
			violations += !run_live(a, seed, true);
		if (a->kinds & KIND_BALLOTS)
			violations += !run_ballots(seed);
		if (violations && a->first)
			break;
	}
	return violations;
}

/* Each process tells its count through its own pipe; a dead one counts. */
static u64 run_jobs(const struct args *a)
{
	u64 violations = 0;
	int (*pipes)[2] = calloc(a->jobs, sizeof(*pipes));
	int i;

	for (i = 0; i < a->jobs; i++) {
		pid_t pid = pipe(pipes[i]) ? -1 : fork();

		if (pid < 0) {
			perror("sim");
			exit(2);
		}
		if (!pid) {
			u64 mine = run_share(a, i);

			_exit(write(pipes[i][1], &mine, sizeof(mine)) !=
			      sizeof(mine));
		}
		close(pipes[i][1]);
	}
	for (i = 0; i < a->jobs; i++) {
		u64 theirs;

		if (read(pipes[i][0], &theirs, sizeof(theirs)) != sizeof(theirs)) {
			printf("process %d died\n", i);
			theirs = 1;
		}
		violations += theirs;
		close(pipes[i][0]);
	}
	while (wait(NULL) > 0)
		;
	free(pipes);
	return violations;
}

static u64 number(const char *text)
{
	char *end;
	u64 n = strtoull(text, &end, 0);

	if (*end || end == text) {
		fprintf(stderr, "sim: not a number: %s\n", text);
		exit(2);
	}
	return n;
}

static int doorbell(const char *text)
{
	int d;

	for (d = 0; d < SIM_DOORBELLS; d++)
		if (!strcmp(text, doorbell_names[d]))
			return d;
	fprintf(stderr, "sim: no such doorbell: %s\n", text);
	exit(2);
}

static u32 kind(const char *text)
{
	u32 k;

	for (k = 0; k < ARRAY_SIZE(kind_names); k++)
		if (!strcmp(text, kind_names[k]))
			return 1u << k;
	fprintf(stderr, "sim: no such kind of run: %s\n", text);
	exit(2);
}

static int run_named(const char *name, bool first)
{
	int failed = scenario_run(name, first);

	if (failed < 0) {
		fprintf(stderr, "sim: no such scenario: %s\n", name);
		return 2;
	}
	printf("scenarios: %d failed\n", failed);
	return failed != 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "from", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "doorbell", required_argument, NULL, 'd' },
		{ "kind", required_argument, NULL, 'K' },
		{ "drop", required_argument, NULL, 'D' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "each", required_argument, NULL, 'E' },
		{ "brief", no_argument, NULL, 'b' },
		{ "trace", no_argument, NULL, 't' },
		{ "first", no_argument, NULL, '1' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "kunit", no_argument, NULL, 'k' },
		{ "scenario", required_argument, NULL, 'S' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	struct args a = { .seeds = 1000, .doorbell = -1, .jobs = 1,
			  .kinds = KIND_FIXED | KIND_LIVE | KIND_BALLOTS |
				   KIND_REPLAY };
	const char *scenario = NULL;
	u64 violations;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			a.seeds = number(optarg);
			break;
		case 'f':
			a.from = number(optarg);
			break;
		case 's':
			a.from = number(optarg);
			a.seeds = 1;
			break;
		case 'd':
			a.doorbell = doorbell(optarg);
			break;
		case 'K':
			a.kinds = kind(optarg);
			break;
		case 'D':
			a.drop = number(optarg);
			break;
		case 'N':
			a.nodes = number(optarg);
			break;
		case 'E':
			a.each = number(optarg);
			break;
		case 'b':
			a.brief = true;
			break;
		case 't':
			a.trace = true;
			break;
		case '1':
			a.first = true;
			break;
		case 'j':
			a.jobs = max((int)number(optarg), 1);
			break;
		case 'S':
			scenario = optarg;
			break;
		case 'k':
			return kunit_run() != 0;
		case 'l':
			scenario_list();
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}
	if (scenario)
		return run_named(scenario, a.first);
	violations = a.jobs > 1 ? run_jobs(&a) : run_share(&a, 0);
	printf("sim: %llu seeds, %llu violations\n", (unsigned long long)a.seeds,
	       (unsigned long long)violations);
	return violations != 0;
}
