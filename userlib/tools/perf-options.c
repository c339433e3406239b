// SPDX-License-Identifier: MIT
/*
 * spindle-perf: its options.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

enum {
	OPT_CONTACT = 256,
	OPT_MEMBERS,
	OPT_SENDERS,
	OPT_GROUP,
	OPT_WINDOW,
	OPT_MAX_MSG,
	OPT_IDLE,
	OPT_IDLE_WINDOW,
	OPT_ACTIVE,
	OPT_DELAY_US,
	OPT_DELAYED,
	OPT_DELAY_BUSY,
	OPT_SLOW_US,
	OPT_MODE,
	OPT_MEMCPY,
	OPT_BATCH,
	OPT_WAIT,
	OPT_VERIFY,
	OPT_NO_VERIFY,
	OPT_WARMUP,
	OPT_LATENCY,
	OPT_INTERVAL_US,
	OPT_OPTIMISE,
	OPT_STATS,
	OPT_JSON,
	OPT_MARKS,
	OPT_TIMEOUT,
};

static const char doc[] =
	"Measure ordered multicast.\vNUM may end in k or M (times 1024). See spindle-perf(1).";

static const struct argp_option options[] = {
	{ .doc = "Traffic:" },
	{ "size", 's', "NUM", 0, "bytes of a message (10240)" },
	{ "iters", 'n', "NUM", 0, "messages of each sender (1000)" },
	{ "duration", 'D', "SECONDS", 0, "send for so long instead" },
	{ "warmup", OPT_WARMUP, "NUM", 0,
	  "messages of each sender that are not measured (0)" },
	{ "senders", OPT_SENDERS, "all|half|one|NUM", 0, "who sends (all)" },
	{ "batch", OPT_BATCH, "NUM", 0, "messages sent at once (1)" },
	{ "delay-us", OPT_DELAY_US, "NUM", 0, "pause of delayed senders behind each message" },
	{ "delayed", OPT_DELAYED, "half|all|NUM", 0, "how many are delayed (1)" },
	{ "delay-busy", OPT_DELAY_BUSY, NULL, 0, "the pause keeps the processor busy" },
	{ "slow-us", OPT_SLOW_US, "NUM", 0,
	  "the last local member pauses behind each message it takes" },
	{ .doc = "Groups:" },
	{ "address", 'A', "ADDR[,ADDR...]", 0, "nodes of the local members ($SPINDLE_ADDR)" },
	{ "contact", OPT_CONTACT, "ADDR", 0, "join there; \"-\": create (-)" },
	{ "members", OPT_MEMBERS, "NUM", 0, "members in all (the local ones)" },
	{ "group", OPT_GROUP, "NAME", 0, "name of the group (perf)" },
	{ "tx-depth", 't', "NUM", 0, "messages a sender may have in flight" },
	{ "window", OPT_WINDOW, "NUM", 0, "bytes of a sender's ring" },
	{ "max-msg", OPT_MAX_MSG, "NUM", 0, "largest message (as --size)" },
	{ "active", OPT_ACTIVE, "NUM", 0, "groups with this traffic at once (1)" },
	{ "idle", OPT_IDLE, "NUM", 0, "groups without traffic beside (0)" },
	{ "idle-window", OPT_IDLE_WINDOW, "NUM", 0, "their rings (4k)" },
	{ "optimise", OPT_OPTIMISE, "LIST", 0,
	  "turn on just these: send, receive, deliver, null, unlock; or all, or none" },
	{ .doc = "Ways:" },
	{ "mode", OPT_MODE, "mapped|copy", 0, "messages in place, or by system calls (mapped)" },
	{ "memcpy", OPT_MEMCPY, NULL, 0, "copy into and out of mapped rings" },
	{ "wait", OPT_WAIT, "block|adaptive|spin", 0, "how threads wait (block)" },
	{ .doc = "Results:" },
	{ "latency", OPT_LATENCY, "closed|load", OPTION_ARG_OPTIONAL,
	  "latencies, of one message at a time (closed) or of the full stream" },
	{ "interval-us", OPT_INTERVAL_US, "NUM", 0, "closed: pause between messages (0)" },
	{ "verify", OPT_VERIFY, "full|order|none", 0, "what is checked (full)" },
	{ "no-verify", OPT_NO_VERIFY, NULL, 0, "nothing is" },
	{ "stats", OPT_STATS, NULL, 0, "the kernel's counters for each message" },
	{ "json", OPT_JSON, "FILE", OPTION_ARG_OPTIONAL,
	  "results as JSON into the file, or instead of the text" },
	{ "marks", OPT_MARKS, NULL, 0,
	  "lines \"begin\" and \"end\" on standard error, about what is measured" },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "give up after so long (60 and the duration)" },
	{ }
};

/* What can only be judged once all options are known. */
struct later {
	struct perf_options *opt;
	const char *senders;
	const char *delayed;
	bool seconds_given;
	bool iters_given;
};

static uint64_t number(struct argp_state *state, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (end != text && (*end == 'k' || *end == 'K')) {
		value <<= 10;
		end++;
	} else if (end != text && *end == 'M') {
		value <<= 20;
		end++;
	}
	if (end == text || *end || errno || *text == '-' || value < min || value > max)
		argp_error(state, "%s: a number from %llu to %llu is wanted", text,
			   (unsigned long long)min, (unsigned long long)max);
	return value;
}

static int choice(struct argp_state *state, const char *text, const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	argp_error(state, "%s: no such choice", text);
	return 0;
}

/* "half" and its like, of so many. */
static unsigned int part_of(struct argp_state *state, const char *text, unsigned int all)
{
	if (!strcmp(text, "all"))
		return all;
	if (!strcmp(text, "half"))
		return all > 1 ? all / 2 : 1;
	if (!strcmp(text, "one"))
		return 1;
	return number(state, text, 1, all);
}

static uint32_t optimised_off(struct argp_state *state, const char *list)
{
	static const char *const names[] = { "send", "receive", "deliver", "null", "unlock", NULL };
	char *copy, *word, *save = NULL;
	uint32_t on = 0;

	if (!strcmp(list, "all"))
		return 0;
	if (!strcmp(list, "none"))
		return SPINDLE_OFF_ALL;
	copy = strdup(list);
	for (word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save))
		on |= 1U << choice(state, word, names);
	free(copy);
	if (!on)
		argp_error(state, "\"%s\": no optimisations", list);
	return SPINDLE_OFF_ALL & ~on;
}

static void addresses(struct argp_state *state, struct perf_options *opt, const char *list)
{
	char *copy = strdup(list), *word, *save = NULL;
	struct sockaddr_storage ss;

	for (word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		if (opt->locals == PERF_MAX_LOCAL)
			argp_error(state, "more than %d members", PERF_MAX_LOCAL);
		if (!perf_addr(word, &ss))
			argp_error(state, "%s: not an address", word);
		snprintf(opt->addr[opt->locals++], PERF_ADDR_LEN, "%s", word);
	}
	free(copy);
}

static void finish(struct argp_state *state, struct later *l)
{
	struct perf_options *opt = l->opt;
	struct sockaddr_storage ss;
	unsigned int senders;

	if (!opt->locals && getenv("SPINDLE_ADDR"))
		addresses(state, opt, getenv("SPINDLE_ADDR"));
	if (!opt->locals)
		argp_error(state, "no address: -A or SPINDLE_ADDR");
	if (l->iters_given && l->seconds_given)
		argp_error(state, "either -n or -D");
	if (l->seconds_given)
		opt->iters = 0;
	else
		opt->iters += opt->warmup;
	if (!opt->members)
		opt->members = opt->locals;
	if (opt->members < opt->locals)
		argp_error(state, "fewer members than addresses");
	if (opt->contact && !perf_addr(opt->contact, &ss))
		argp_error(state, "%s: not an address", opt->contact);
	senders = l->senders ? part_of(state, l->senders, opt->members) : opt->members;
	opt->senders = senders == opt->members ? 0 : senders;
	if (opt->delay_us && !opt->delayed)
		opt->delayed = l->delayed ? part_of(state, l->delayed, senders) : 1;
	if (l->seconds_given && (opt->optimise_off & SPINDLE_OFF_NULL) && senders > 1)
		argp_error(state, "without nulls all have to send as many messages: -n, not -D");
	if (!opt->max_msg)
		opt->max_msg = opt->size ? opt->size : 1;
	if (opt->size > opt->max_msg)
		argp_error(state, "a message is larger than the largest");
	if (opt->memcpy && opt->mode == PERF_COPY)
		argp_error(state, "--mode copy copies anyway");
	if (opt->latency == PERF_LATENCY_CLOSED && opt->batch > 1)
		argp_error(state, "one message at a time is no batch");
	if (strlen(opt->group) > SPINDLE_NAME_LEN - 8)
		argp_error(state, "%s: the name is too long", opt->group);
	if (!opt->timeout)
		opt->timeout = 60 + (unsigned int)opt->seconds;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const modes[] = { "copy", "mapped", NULL };
	static const char *const verifies[] = { "none", "order", "full", NULL };
	static const char *const waits[] = { "block", "adaptive", "spin", NULL };
	static const char *const latencies[] = { "closed", "load", NULL };
	struct later *l = state->input;
	struct perf_options *opt = l->opt;
	char *end;

	switch (key) {
	case 's':
		opt->size = number(state, arg, 0, PERF_MAX_SIZE);
		break;
	case 'n':
		opt->iters = number(state, arg, 1, UINT32_MAX);
		l->iters_given = true;
		break;
	case 'D':
		opt->seconds = strtod(arg, &end);
		if (end == arg || *end || !(opt->seconds > 0 && opt->seconds <= 86400))
			argp_error(state, "%s: no duration", arg);
		l->seconds_given = true;
		break;
	case OPT_WARMUP:
		opt->warmup = number(state, arg, 0, UINT32_MAX);
		break;
	case 't':
		opt->depth = number(state, arg, 0, SPINDLE_MAX_DEPTH);
		break;
	case 'A':
		addresses(state, opt, arg);
		break;
	case OPT_CONTACT:
		opt->contact = strcmp(arg, "-") ? arg : NULL;
		break;
	case OPT_MEMBERS:
		opt->members = number(state, arg, 1, SPINDLE_MAX_MEMBERS);
		break;
	case OPT_SENDERS:
		l->senders = arg;
		break;
	case OPT_GROUP:
		opt->group = arg;
		break;
	case OPT_WINDOW:
		opt->window = number(state, arg, 0, SPINDLE_MAX_WINDOW);
		break;
	case OPT_MAX_MSG:
		opt->max_msg = number(state, arg, 1, PERF_MAX_SIZE);
		break;
	case OPT_ACTIVE:
		opt->active = number(state, arg, 1, PERF_MAX_ACTIVE);
		break;
	case OPT_IDLE:
		opt->idle = number(state, arg, 0, PERF_MAX_IDLE);
		break;
	case OPT_IDLE_WINDOW:
		opt->idle_window = number(state, arg, 0, SPINDLE_MAX_WINDOW);
		break;
	case OPT_DELAY_US:
		opt->delay_us = number(state, arg, 0, 60000000);
		break;
	case OPT_DELAYED:
		l->delayed = arg;
		break;
	case OPT_DELAY_BUSY:
		opt->delay_busy = true;
		break;
	case OPT_SLOW_US:
		opt->slow_us = number(state, arg, 0, 60000000);
		break;
	case OPT_MODE:
		opt->mode = choice(state, arg, modes);
		break;
	case OPT_MEMCPY:
		opt->memcpy = true;
		break;
	case OPT_BATCH:
		opt->batch = number(state, arg, 1, PERF_MAX_BATCH);
		break;
	case OPT_WAIT:
		opt->wait = choice(state, arg, waits);
		break;
	case OPT_VERIFY:
		opt->verify = choice(state, arg, verifies);
		break;
	case OPT_NO_VERIFY:
		opt->verify = PERF_VERIFY_NONE;
		break;
	case OPT_LATENCY:
		opt->latency = PERF_LATENCY_CLOSED + (arg ? choice(state, arg, latencies) : 0);
		break;
	case OPT_INTERVAL_US:
		opt->interval_us = number(state, arg, 0, 60000000);
		break;
	case OPT_OPTIMISE:
		opt->optimise = arg;
		opt->optimise_off = optimised_off(state, arg);
		break;
	case OPT_STATS:
		opt->stats = true;
		break;
	case OPT_JSON:
		opt->json = arg ? arg : "-";
		break;
	case OPT_MARKS:
		opt->marks = true;
		break;
	case OPT_TIMEOUT:
		opt->timeout = number(state, arg, 1, 864000);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: unknown word", arg);
		break;
	case ARGP_KEY_END:
		finish(state, l);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Ends the process with status 2 when they make no sense. */
void perf_parse(struct perf_options *opt, int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse, .doc = doc };
	struct later later = { .opt = opt };

	*opt = (struct perf_options){
		.size = 10240,
		.iters = 1000,
		.group = "perf",
		.active = 1,
		.idle_window = SPINDLE_MIN_WINDOW,
		.mode = PERF_MAPPED,
		.batch = 1,
		.verify = PERF_VERIFY_FULL,
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &later);
}
