// SPDX-License-Identifier: GPL-2.0
/*
 * Runs with a name of groups whose members come and go: each rule of section 4
 * of the design, and what is known to go wrong elsewhere. Where the shell is to
 * keep the rule, it is broken once, too; those of the core have mutants.
 */
#include <stdio.h>

#include "live.h"

#define CASE_FAULTS	12

/**
 * struct live_case - a run with a name
 * @nodes: at the beginning
 * @survive: so many are left
 * @views: up to this view, 0: to any
 * @by: the last of which is installed by then, 0: at any time
 * @seeds: runs
 * @each: most messages of a program, 0: by the seed
 * @broken: the rule that makes the difference, 0: it is in the core
 * @stuck: one program does not read
 * @minority: nodes go on without a majority
 * @replay: a connection that breaks is followed by one that carries on
 * @rough: the network is anything, not fair
 * @faults: what happens, each up to 300 later
 */
struct live_case {
	const char *name;
	const char *what;
	u32 nodes;
	u32 survive;
	u32 views;
	u32 by;
	u32 seeds;
	u32 each;
	unsigned int broken;
	bool stuck;
	bool minority;
	bool replay;
	bool rough;
	struct fault faults[CASE_FAULTS];
};

#define F(kind, at, ...)	{ FAULT_##kind, at, __VA_ARGS__ }

static const struct live_case cases[] = {
	{ "units", "review 17: majority by nodes, whoever sits on them",
	  .nodes = 3, .survive = 2,
	  .faults = { F(CRASH, 800, 0) } },
	{ "two-nodes", "review 17: the lower one of two nodes leaves in order",
	  .nodes = 2, .survive = 1, .each = 10,
	  .faults = { F(KILL, 700, 0), F(KILL, 900, 2) } },
	{ "broken-link", "review 16: two lose each other for ever, the third sees both",
	  .nodes = 3, .survive = 2, .views = 2, .broken = LIVE_BREAK_ADOPT,
	  .faults = { F(BLOCK, 700, 0, 1) } },
	{ "false-suspicion", "the higher of two ranks suspects the lower for nothing",
	  .nodes = 3, .survive = 2, .views = 2,
	  .faults = { F(FALSE, 700, 2, 0) } },
	{ "wedge", "review 18: who has told its counts takes no more",
	  .nodes = 4, .broken = LIVE_BREAK_WEDGE,
	  .faults = { F(JOIN, 200, 0, 0), F(JOIN, 600, 1, 1),
		      F(CRASH, 500, 3) } },
	{ "crash-amid-push", "some peers got it, others did not",
	  .nodes = 4,
	  .faults = { F(CRASH_POST, 300, 1, 0, 9) } },
	{ "leader-crash", "Derecho #126: the leader dies amid its proposal, and so does the next",
	  .nodes = 5,
	  .faults = { F(CRASH_SEND, 300, 0, 0, 9), F(CRASH_SEND, 300, 1, 0, 6),
		      F(KILL, 400, 2), F(JOIN, 500, 6, 3) } },
	{ "decided-alone", "review 14: one decides and dies; its trim holds",
	  .nodes = 5, .survive = 3,
	  .faults = { F(CRASH_INSTALL, 300, 1), F(CRASH, 500, 0) } },
	{ "evicted-writes-on", "review 7: nothing is overwritten that a request still reads",
	  .nodes = 3, .survive = 2, .broken = LIVE_BREAK_HOLD, .seeds = 400,
	  .each = 140,
	  .faults = { F(BLOCK, 300, 0, 2), F(FALSE, 600, 0, 2) } },
	{ "quarantine", "review 5: memory of who is gone is not used again",
	  .nodes = 3, .broken = LIVE_BREAK_QUARANTINE, .seeds = 600,
	  .faults = { F(FALSE, 500, 0, 2), F(JOIN, 600, 4, 0),
		      F(JOIN, 800, 5, 0), F(JOIN, 1500, 2, 0) } },
	{ "stuck-reader", "review 19: a view does not wait for readers",
	  .nodes = 3, .survive = 2, .broken = LIVE_BREAK_READERS, .stuck = true,
	  .each = 10,
	  .faults = { F(CRASH, 2500, 2) } },
	{ "send-loop", "Derecho #15: full send queues do not hold up a view",
	  .nodes = 4, .survive = 3, .stuck = true, .each = 1000,
	  .broken = LIVE_BREAK_DRAIN,
	  .faults = { F(BLOCK, 400, 3, 0), F(BLOCK, 400, 3, 1),
		      F(BLOCK, 400, 3, 2) } },
	{ "leave", "review 20: a lane is kept until all of it is delivered",
	  .nodes = 3, .broken = LIVE_BREAK_LEAVE,
	  .faults = { F(KILL, 200, 0), F(LEAVE, 300, 1) } },
	{ "told-at-once", "Derecho: no timeout passes before a view without who died",
	  .nodes = 3, .survive = 3, .views = 3, .by = 4500, .each = 20,
	  .broken = LIVE_BREAK_DEATH,
	  .faults = { F(JOIN, 100, 1, 1), F(KILL, 1000, 3) } },
	{ "messages-lost", "Derecho #22: what is under way when the view changes",
	  .nodes = 3, .each = 60,
	  .faults = { F(JOIN, 300, 3, 0), F(JOIN, 900, 1, 0),
		      F(LEAVE, 1200, 0), F(JOIN, 1500, 0, 2) } },
	{ "join", "who joins a node that has the group reads from its view on",
	  .nodes = 2, .survive = 2, .broken = LIVE_BREAK_CURSOR,
	  .faults = { F(JOIN, 500, 0, 0), F(JOIN, 900, 1, 0) } },
	{ "herd", "Derecho #213, #11: many join at once, through anybody",
	  .nodes = 4, .survive = 8, .seeds = 60,
	  .faults = { F(JOIN, 500, 4, 0), F(JOIN, 500, 5, 1), F(JOIN, 500, 6, 2),
		      F(JOIN, 500, 7, 3), F(JOIN, 500, 4, 1), F(JOIN, 500, 5, 2),
		      F(JOIN, 500, 0, 0), F(JOIN, 500, 1, 1), F(JOIN, 500, 6, 3),
		      F(JOIN, 500, 7, 0), F(JOIN, 600, 2, 2) } },
	{ "herd-and-crash", "the leader dies while many join",
	  .nodes = 5, .seeds = 60,
	  .faults = { F(JOIN, 500, 5, 0), F(JOIN, 500, 6, 1), F(JOIN, 500, 7, 2),
		      F(CRASH_SEND, 450, 0, 0, 6), F(JOIN, 700, 8, 3) } },
	{ "reconnect", "review 21: no new connection before the old one is dead",
	  .nodes = 3, .survive = 3, .broken = LIVE_BREAK_OLD_QP, .each = 60,
	  .seeds = 300,
	  .faults = { F(BREAK, 300, 0, 1), F(BREAK, 900, 1, 2),
		      F(BREAK, 1500, 0, 1), F(BREAK, 2100, 0, 2) } },
	{ "replay", "what was under way is carried again, and nobody is told",
	  .nodes = 3, .survive = 3, .views = 4, .seeds = 400, .each = 60,
	  .replay = true, .broken = LIVE_BREAK_GAP,
	  .faults = { F(BREAK, 200, 0, 1), F(BREAK, 400, 1, 2), F(JOIN, 500, 2, 1),
		      F(BREAK, 700, 0, 2), F(JOIN, 800, 1, 2), F(BREAK, 1200, 0, 1),
		      F(LEAVE, 3200, 2), F(BREAK, 1500, 0, 2),
		      F(BREAK, 1600, 1, 2), F(BREAK, 2200, 0, 1),
		      F(BREAK, 2400, 1, 2), F(BREAK, 3000, 0, 2) } },
	{ "replay-once", "but what was told by a message, whatever the network does",
	  .nodes = 3, .survive = 3, .views = 3, .seeds = 400, .rough = true,
	  .replay = true, .broken = LIVE_BREAK_TWICE,
	  .faults = { F(BREAK, 300, 0, 1), F(BREAK, 400, 0, 2), F(JOIN, 500, 0, 0),
		      F(BREAK, 600, 1, 2), F(BREAK, 700, 0, 1), F(JOIN, 800, 1, 0),
		      F(BREAK, 900, 0, 2), F(BREAK, 1100, 1, 2),
		      F(BREAK, 1500, 0, 1), F(BREAK, 1800, 0, 2) } },
	{ "replay-crash", "one whose connections are broken dies: that is found out",
	  .nodes = 4, .survive = 3, .views = 2, .seeds = 300, .each = 60,
	  .replay = true,
	  .faults = { F(BREAK, 400, 0, 3), F(BREAK, 500, 1, 3), F(BREAK, 500, 0, 1),
		      F(CRASH, 600, 3), F(BREAK, 700, 1, 2), F(BREAK, 5000, 0, 1),
		      F(BREAK, 6000, 1, 2), F(BREAK, 7000, 0, 2) } },
	{ "replay-blip", "connections are broken as long as nobody is suspected for it",
	  .nodes = 4, .survive = 4, .views = 1, .each = 60, .replay = true,
	  .faults = { F(PART, 600, 0, 0x0006, 2000), F(BLOCK, 12000, 0, 1, 2000),
		      F(BLOCK_ONE, 20000, 2, 1, 2000) } },
	{ "dead-connection", "what came by a connection that is dead is no news of the next",
	  .nodes = 3, .survive = 3, .broken = LIVE_BREAK_STALE, .seeds = 1500,
	  .rough = true,
	  .faults = { F(JOIN, 500, 0, 0), F(BREAK, 550, 0, 1),
		      F(BREAK, 600, 1, 2), F(BREAK, 650, 0, 2) } },
	{ "said-again", "a connection breaks while the view changes",
	  .nodes = 3, .survive = 3, .broken = LIVE_BREAK_AGAIN, .seeds = 300,
	  .faults = { F(JOIN, 500, 0, 0), F(BREAK, 650, 0, 1),
		      F(BREAK, 750, 1, 2), F(BREAK, 850, 0, 2) } },
	{ "last-word", "and somebody is in the next view by then",
	  .nodes = 3, .survive = 3, .broken = LIVE_BREAK_OLD_REPORT, .seeds = 1500,
	  .faults = { F(JOIN, 500, 0, 0), F(BREAK, 650, 0, 1),
		      F(BREAK, 750, 1, 2), F(BREAK, 850, 0, 2) } },
	{ "early", "what is said of the next view by one that is in it",
	  .nodes = 4, .broken = LIVE_BREAK_EARLY, .seeds = 1000, .each = 2,
	  .rough = true,
	  .faults = { F(JOIN, 500, 0, 0), F(JOIN, 800, 0, 0), F(KILL, 500, 1),
		      F(KILL, 550, 2), F(KILL, 600, 3), F(KILL, 650, 5) } },
	{ "incarnation", "who comes back is not who went",
	  .nodes = 3, .survive = 3, .broken = LIVE_BREAK_INCARNATION,
	  .faults = { F(CRASH, 500, 2), F(JOIN, 900, 2, 0) } },
	{ "pause", "who was away finds itself out, and delivered no more than others",
	  .nodes = 3, .survive = 2, .each = 60,
	  .faults = { F(PAUSE, 500, 1, 0, 30000) } },
	{ "partition", "a minority stops with an error; the rest goes on",
	  .nodes = 5, .survive = 3,
	  .faults = { F(PART, 600, 0, 0x0003) } },
	{ "partition-heals", "and stays out when it is over",
	  .nodes = 5, .survive = 3,
	  .faults = { F(PART, 600, 0, 0x000c, 40000) } },
	{ "majority-back", "all are cut off for long, and go on when it is over",
	  .nodes = 4, .survive = 4, .views = 1, .each = 60,
	  .faults = { F(PART, 600, 0, 0x0003, 40000), F(PART, 600, 0, 0x0005, 40000) } },
	{ "majority-back-replay", "and nobody notices that connections were others meanwhile",
	  .nodes = 4, .survive = 4, .views = 2, .each = 60, .replay = true,
	  .faults = { F(PART, 600, 0, 0x0003, 40000), F(PART, 600, 0, 0x0005, 40000),
		      F(JOIN, 20000, 1, 1) } },
	{ "majority-back-less", "three of five find each other: the rest finds itself out",
	  .nodes = 5, .survive = 3, .views = 2, .each = 60,
	  .faults = { F(BLOCK, 600, 0, 1, 20000), F(BLOCK, 600, 0, 2, 20000),
		      F(BLOCK, 600, 1, 2, 20000), F(PART, 600, 0, 0x0008, 80000),
		      F(PART, 600, 0, 0x0010, 80000) } },
	{ "half", "half of the nodes, with the lowest rank",
	  .nodes = 4, .survive = 2,
	  .faults = { F(PART, 600, 0, 0x000c) } },
	{ "no-majority", "one of four is left, and goes on as the option says",
	  .nodes = 4, .survive = 1, .minority = true,
	  .faults = { F(CRASH, 500, 0), F(CRASH, 600, 1), F(CRASH, 700, 2) } },
	{ "one-way", "one hears the other, which does not hear it: the higher rank goes",
	  .nodes = 3, .survive = 2, .views = 2, .broken = LIVE_BREAK_ADOPT,
	  .faults = { F(BLOCK_ONE, 700, 2, 1) } },
	{ "evicted", "one member of a node is put out: the others there go on",
	  .nodes = 3, .survive = 3, .each = 20,
	  .faults = { F(JOIN, 300, 1, 0), F(EVICT, 3000, 1) } },
	{ "answer", "a node is accused of nothing: its accuser goes, and nobody else",
	  .nodes = 4, .survive = 3, .views = 2, .by = 4500,
	  .faults = { F(FALSE, 700, 3, 1) } },
	{ "node-ranks", "a node keeps its rank when the first of its members leaves",
	  .nodes = 4, .survive = 3, .seeds = 2000, .each = 4,
	  .faults = { F(JOIN, 100, 0, 0), F(LEAVE, 2000, 0),
		      F(FALSE, 2000, 0, 1), F(FALSE, 2000, 1, 0) } },
	{ "blip", "a partition that is over before anybody is suspected",
	  .nodes = 4, .survive = 4,
	  .faults = { F(PART, 600, 0, 0x0006, 2000) } },
	{ "two-in-a-row", "two failures, one amid the change for the other",
	  .nodes = 5, .survive = 3,
	  .faults = { F(CRASH, 500, 4), F(CRASH_INSTALL, 500, 2) } },
};

static u32 case_violations(const struct live_case *c, bool broken)
{
	u32 seeds = c->seeds ? c->seeds : 150;
	u32 violations = 0;
	u32 i, k;

	for (i = 0; i < seeds; i++) {
		struct fault faults[CASE_FAULTS];
		struct live_opts opts = {
			.seed = i,
			.doorbell = i % SIM_DOORBELLS,
			.broken = broken ? c->broken : 0,
			.nodes = c->nodes,
			.each = c->each,
			.faults = faults,
			.calm = !c->rough,
			.stuck = c->stuck,
			.minority = c->minority,
			.replay = c->replay,
			.survive = c->survive,
			.views = c->views,
			.by = c->by,
		};
		struct live *l;

		for (k = 0; k < CASE_FAULTS && c->faults[k].at; k++) {
			faults[k] = c->faults[k];
			faults[k].at += rng_mix(i * CASE_FAULTS + k) % 300;
		}
		opts.nfaults = k;
		l = live_new(&opts);
		if (!live_run(l) && !violations++)
			printf("  seed %u%s: %s\n", i, broken ? " broken" : "",
			       l->why);
		live_free(l);
		if (broken && violations)
			break;
	}
	return violations;
}

void live_cases_list(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		printf("%-20s %s\n", cases[i].name, cases[i].what);
}

/* As scenario_run(). */
int live_cases_run(const char *name, bool first)
{
	bool known = false;
	int failed = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases) && !(first && failed); i++) {
		const struct live_case *c = &cases[i];
		u32 found;
		bool bad;

		if (strcmp(name, "all") && strcmp(name, c->name))
			continue;
		known = true;
		printf("%s: %s\n", c->name, c->what);
		found = case_violations(c, false);
		printf("  kept: %u runs violate\n", found);
		bad = found;
		if (c->broken) {
			found = case_violations(c, true);
			bad |= !found;
			if (!found)
				puts("  broken: no run violates");
		}
		printf("%s: %s\n", c->name, bad ? "FAILED" : "ok");
		fflush(stdout);
		failed += bad;
	}
	return known ? failed : -1;
}
