// SPDX-License-Identifier: GPL-2.0
/*
 * Runs with a name: each rule of the protocol that stands against a known
 * counter-example, once kept and once broken.
 */
#include <stdio.h>

#include "live.h"

static bool only_first;	/* stop at the first violation */

struct scenario {
	const char *name;
	const char *what;
	int (*run)(void);
};

/**
 * struct tally - what the runs of a scenario cost
 * @pairs: messages sent, each times the peers it went to
 * @writes: of data
 * @batches: by stage
 * @messages: in these
 * @mean: of these
 */
struct tally {
	u64 pairs;
	u64 writes;
	u64 rows;
	u64 batches[SP_STAGES];
	u64 messages[SP_STAGES];
	double mean[SP_STAGES];
};

static void tally_add(struct tally *t, const struct sim *s)
{
	u32 i, k, n;

	t->pairs += s->messages * (s->nnodes - 1);
	t->writes += s->writes;
	t->rows += s->rows;
	for (i = 0; i < SP_STAGES; i++) {
		for (n = 0; n < s->nnodes; n++) {
			const struct sp_batches *b = &s->nodes[n].core.batches[i];

			t->messages[i] += b->messages;
			for (k = 0; k < SP_BATCH_SIZES; k++)
				t->batches[i] += b->size[k];
		}
		t->mean[i] = t->messages[i] / (double)max(t->batches[i], 1ull);
	}
}

static u32 count_violations(struct sim_opts opts, u32 seeds, bool report,
			    struct tally *t)
{
	u32 violations = 0;
	u32 i;

	for (i = 0; i < seeds; i++) {
		struct sim *s;

		opts.seed = i;
		s = sim_new(&opts);
		if (!sim_run(s)) {
			if (!violations++ && report)
				printf("  seed %u: %s\n", i, s->why);
		}
		if (t)
			tally_add(t, s);
		sim_free(s);
		if (violations && only_first)
			break;
	}
	return violations;
}

/* The rule kept: no violation. The rule broken: at least one. */
static int kept_and_broken(enum sim_doorbell doorbell, unsigned int broken,
			   unsigned int force, u32 seeds)
{
	struct sim_opts opts = {
		.doorbell = doorbell,
		.force = force | SIM_FORCE_HONEST,
	};
	u32 kept = count_violations(opts, seeds, true, NULL);
	u32 found;

	if (kept && only_first)
		return 1;
	opts.broken = broken;
	found = count_violations(opts, seeds, true, NULL);
	printf("  kept: %u of %u runs violate; broken: %u\n", kept, seeds, found);
	return kept || !found;
}

static int always_kept(unsigned int force, u32 seeds)
{
	struct sim_opts opts = { .force = force };
	u32 found = 0;

	for (opts.doorbell = 0; opts.doorbell < SIM_DOORBELLS; opts.doorbell++) {
		found += count_violations(opts, seeds, true, NULL);
		if (found && only_first)
			break;
	}
	printf("  %u of %u runs violate\n", found, seeds * SIM_DOORBELLS);
	return found != 0;
}

static int run_live_guard(void)
{
	return kept_and_broken(SIM_POLLED, SIM_BREAK_LIVE_ROWS, 0, 200);
}

static int run_reordered(void)
{
	return kept_and_broken(SIM_POLLED, SIM_BREAK_ORDER, 0, 200);
}

static int run_store(void)
{
	return kept_and_broken(SIM_POLLED, SIM_BREAK_KICK, 0, 200);
}

static int run_tears(void)
{
	return always_kept(SIM_FORCE_TEARS | SIM_FORCE_HONEST, 300);
}

static int run_late(void)
{
	return always_kept(SIM_FORCE_LATE, 300);
}

static int run_tiny_queue(void)
{
	return always_kept(SIM_FORCE_TINY_QUEUE | SIM_FORCE_HONEST, 300);
}

static int run_hostile(void)
{
	return always_kept(SIM_FORCE_HOSTILE, 500);
}

/* Each optimisation turned off, and all: what that costs in writes. */
static int run_baseline(void)
{
	static const struct {
		const char *what;
		u32 opt;
	} table[] = {
		{ "all on", SP_OPT_ALL },
		{ "no send", SP_OPT_ALL & ~SP_OPT_SEND },
		{ "no receive", SP_OPT_ALL & ~SP_OPT_RECEIVE },
		{ "no deliver", SP_OPT_ALL & ~SP_OPT_DELIVER },
		{ "no null", SP_OPT_ALL & ~SP_OPT_NULL },
		{ "no unlock", SP_OPT_ALL & ~SP_OPT_UNLOCK },
		{ "all off", 0 },
	};
	struct sim_opts opts = { .force = SIM_FORCE_OPT | SIM_FORCE_HONEST };
	double all_on = 0, writes = 0;
	u32 found = 0;
	size_t i;

	puts("  a message and peer: writes of data, rows; mean batch sent, received, delivered");
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct tally t = { 0 };

		opts.opt = table[i].opt;
		for (opts.doorbell = 0; opts.doorbell < SIM_DOORBELLS; opts.doorbell++)
			found += count_violations(opts, 60, true, &t);
		writes = (double)(t.writes + t.rows) / t.pairs;
		all_on = i ? all_on : writes;
		printf("  %-10s %8.2f %8.2f %8.2f %8.2f %8.2f\n",
		       table[i].what, (double)t.writes / t.pairs,
		       (double)t.rows / t.pairs, t.mean[SP_STAGE_SEND],
		       t.mean[SP_STAGE_RECEIVE], t.mean[SP_STAGE_DELIVER]);
	}
	printf("  %u violations; all off costs %.2f as many writes as all on\n",
	       found, writes / all_on);
	return found || writes < 1.3 * all_on;
}

static int run_doze(void)
{
	return doze_exhaustive(true);
}

/*
 * Bytes of a new pair land over an old one in some order, while a reader takes
 * the value and then the check, or the other way round. Count the pairs that
 * hold together and were never written.
 */
static u32 torn_accepts(u64 (*check)(u64 value), u32 rounds)
{
	struct rng r = { .state = 3 };
	u32 accepts = 0;
	u32 k;

	for (k = 0; k < rounds; k++) {
		u64 was = rng_below(&r, 1u << 20);
		u64 is = was + rng_range(&r, 1, 600);
		struct sp_cell old = { was, check(was) };
		struct sp_cell new = { is, check(is) };
		struct sp_cell first = old, second = old;
		u8 order[sizeof(old)];
		u32 i, a, b;

		for (i = 0; i < sizeof(order); i++)
			order[i] = i;
		for (i = sizeof(order) - 1; i; i--) {
			u32 j = rng_below(&r, i + 1);
			u8 t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		a = rng_below(&r, sizeof(order) + 1);
		b = rng_range(&r, a, sizeof(order));
		for (i = 0; i < b; i++) {
			((u8 *)&second)[order[i]] = ((u8 *)&new)[order[i]];
			if (i < a)
				((u8 *)&first)[order[i]] = ((u8 *)&new)[order[i]];
		}
		if (first.value != was && first.value != is &&
		    second.check == check(first.value))
			accepts++;
		if (second.value != was && second.value != is &&
		    first.check == check(second.value))
			accepts++;
	}
	return accepts;
}

static u64 check_mix(u64 value)
{
	return sp_mix(value, 7);
}

static u64 check_complement(u64 value)
{
	return ~value;
}

static int run_torn_cells(void)
{
	u32 mix = torn_accepts(check_mix, 60000);
	u32 complement = torn_accepts(check_complement, 60000);

	printf("  false accepts of 60000 torn pairs: mix %u, complement %u\n",
	       mix, complement);
	return mix || !complement;
}

/* A round that no honest lane can have reached moves nobody to promise nulls. */
static int run_forged_round(void)
{
	struct sp_desc desc[2][16] = { 0 }, ring[16] = { 0 };
	struct sp_lane lanes[2] = {
		{ .node = 0, .desc = desc[0] },
		{ .node = 1, .desc = desc[1], .src = ring },
	};
	struct sp_node_seen seen[2];
	struct sp_log log[32];
	struct sp_order o = {
		.lanes = lanes, .nodes = seen, .log = log, .nlanes = 2,
		.nnodes = 2, .slot = { 0, 1 }, .depth = 16, .units = 64, .max_len = 4096,
		.log_size = 32,
	};
	u32 worst = 0;
	u32 i;

	sp_order_init(&o);
	for (i = 0; i < 32; i++) {
		int ret = sp_order_take(&o, 1, sp_progress(1u << i, 0),
					U32_MAX);

		if (ret > 0)
			worst = max(worst, (u32)sp_order_null_target(&o, 0));
		lanes[1].now.round = 0;
	}
	printf("  rounds of 2^0 to 2^31 claimed: at most %u nulls asked for\n",
	       worst);
	return worst == 0 || worst > 2 * 16 + 2;
}

static const struct scenario scenarios[] = {
	{ "live-guard", "review 1: a row read from a live source", run_live_guard },
	{ "torn-cells", "review 3: complement or mix as a cell's check",
	  run_torn_cells },
	{ "torn-rows", "review 3: every row lands torn, amid passes", run_tears },
	{ "reordered-polling", "review 4: polling where writes are reordered",
	  run_reordered },
	{ "forged-round", "review 8: a forged round must not ask for 2^31 nulls",
	  run_forged_round },
	{ "doze-exhaustive", "review 9: all interleavings of sleep and wake",
	  run_doze },
	{ "sleeping-store", "review 12: programs that do not kick a sleeper",
	  run_store },
	{ "late-counters", "every counter passes 2^32", run_late },
	{ "tiny-queue", "a send queue that holds hardly one run", run_tiny_queue },
	{ "baseline", "the optimisations of the paper, each off and all",
	  run_baseline },
	{ "lone", "what a lone message costs, in exact counts", lone_run },
	{ "hostile", "one node writes what no correct node writes", run_hostile },
};

void scenario_list(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(scenarios); i++)
		printf("%-20s %s\n", scenarios[i].name, scenarios[i].what);
	ballots_cases_list();
	live_cases_list();
}

/*
 * Run one scenario, or "all"; with @first to the first violation only. Gives
 * how many failed, -1 for an unknown name.
 */
int scenario_run(const char *name, bool first)
{
	bool known = false;
	int failed = 0;
	int more;
	size_t i;

	only_first = first;
	for (i = 0; i < ARRAY_SIZE(scenarios) && !(first && failed); i++) {
		const struct scenario *sc = &scenarios[i];
		int bad;

		if (strcmp(name, "all") && strcmp(name, sc->name))
			continue;
		known = true;
		printf("%s: %s\n", sc->name, sc->what);
		bad = sc->run();
		printf("%s: %s\n", sc->name, bad ? "FAILED" : "ok");
		fflush(stdout);
		failed += !!bad;
	}
	if (first && failed)
		return failed;
	more = ballots_cases_run(name, first);
	known |= more >= 0;
	failed += max(more, 0);
	if (first && failed)
		return failed;
	more = live_cases_run(name, first);
	known |= more >= 0;
	failed += max(more, 0);
	return known ? failed : -1;
}
