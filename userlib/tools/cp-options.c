// SPDX-License-Identifier: MIT
/*
 * spindle-cp: its options.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"
#include "tool.h"

enum {
	OPT_CONTACT = 256,
	OPT_KEY,
	OPT_OVERWRITE,
	OPT_SKIP_SAME,
	OPT_PROGRESS,
	OPT_JSON,
	OPT_SEGMENT,
	OPT_ALGORITHM,
	OPT_BLOCK,
	OPT_MAX_OBJECT,
	OPT_RACK,
	OPT_SUSPECT_MS,
	OPT_EVICT_MS,
	OPT_TIMEOUT,
};

static const char doc[] =
	"Copy files to a whole group at once.\vNUM may end in k, M or G. See spindle-cp(1).";

static const char args[] =
	"--receivers NUM FILE... NAME:\n"
	"NAME@ADDR: DIR";

static const struct argp_option options[] = {
	{ .doc = "Group:" },
	{ "address", 'A', "ADDR", 0, "own node ($SPINDLE_ADDR)" },
	{ "contact", OPT_CONTACT, "ADDR", 0, "receive: a node of the group, as NAME@ADDR: says" },
	{ "key", OPT_KEY, "DESCRIPTION", 0, "the key that all members share (none)" },
	{ "receivers", 'n', "NUM", 0, "send: how many there are (1)" },
	{ "rack", OPT_RACK, "NUM", 0, "where this node is (0)" },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "until all must have come (60)" },
	{ "suspect-ms", OPT_SUSPECT_MS, "NUM", 0,
	  "send: a node is lost when it was not heard for so long" },
	{ "evict-ms", OPT_EVICT_MS, "NUM", 0,
	  "send: who holds up all others for so long is put out (never)" },
	{ .doc = "Files:" },
	{ "overwrite", OPT_OVERWRITE, NULL, 0, "receive: replace what is there" },
	{ "skip-same", OPT_SKIP_SAME, NULL, 0,
	  "send: leave out what receivers have, go on where an earlier run has stopped" },
	{ .doc = "Ways:" },
	{ "segment", OPT_SEGMENT, "NUM", 0, "send: bytes of a message (4M)" },
	{ "max-object", OPT_MAX_OBJECT, "NUM", 0, "send: largest message (16M)" },
	{ "algorithm", OPT_ALGORITHM, TOOL_ALGORITHMS, 0, "send: how nodes hand it on (auto)" },
	{ "block", OPT_BLOCK, "NUM", 0, "send: in blocks of so many bytes" },
	{ .doc = "Results:" },
	{ "progress", OPT_PROGRESS, NULL, 0, "show it, though no terminal is there" },
	{ "quiet", 'q', NULL, 0, "say nothing but errors" },
	{ "json", OPT_JSON, "FILE", OPTION_ARG_OPTIONAL,
	  "the result as a line of JSON, on standard output or into the file" },
	{ }
};

/* NAME: or NAME@ADDR:; a path with a slash is none. */
static bool group_word(struct argp_state *state, struct cp_options *opt, const char *word,
		       bool contact)
{
	size_t len = strlen(word), name;
	const char *at;
	char *addr;

	if (len < 2 || word[len - 1] != ':' || strchr(word, '/'))
		return false;
	at = strchr(word, '@');
	name = at ? (size_t)(at - word) : len - 1;
	if (!name || name >= sizeof(opt->group))
		argp_error(state, "%s: no name for a group", word);
	snprintf(opt->group, sizeof(opt->group), "%.*s", (int)name, word);
	if (!at)
		return true;
	if (!contact)
		argp_error(state, "%s: who sends makes the group at its own address", word);
	addr = strdup(at + 1);
	if (addr && *addr)
		addr[strlen(addr) - 1] = 0;
	opt->contact = addr;
	return true;
}

static void words(struct argp_state *state, struct cp_options *opt)
{
	char **argv = state->argv + state->next;
	int n = state->argc - state->next;

	if (n < 2)
		argp_error(state, "who sends says FILE... NAME:, who receives NAME@ADDR: DIR");
	if (group_word(state, opt, argv[n - 1], false)) {
		opt->send = true;
		opt->files = argv;
		opt->nfiles = n - 1;
	} else if (group_word(state, opt, argv[0], true)) {
		if (n != 2)
			argp_error(state, "who receives names one directory");
		opt->dir = argv[1];
		if (!opt->contact)
			argp_error(state, "where is the group? %s@ADDR: or --contact", opt->group);
	} else {
		argp_error(state, "neither the first word nor the last one is a group (NAME:)");
	}
	if (!opt->send && opt->skip_same)
		argp_error(state, "--skip-same is for who sends");
	if (opt->send && opt->overwrite)
		argp_error(state, "--overwrite is for who receives");
	if (!opt->addr)
		opt->addr = getenv("SPINDLE_ADDR");
	if (!opt->addr)
		argp_error(state, "no address: -A or SPINDLE_ADDR");
	state->next = state->argc;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cp_options *opt = state->input;

	switch (key) {
	case 'A':
		opt->addr = arg;
		break;
	case OPT_CONTACT:
		opt->contact = arg;
		break;
	case OPT_KEY:
		opt->key = arg;
		break;
	case 'n':
		opt->receivers = tool_number(state, arg, 1, SPINDLE_MAX_MEMBERS - 1);
		break;
	case OPT_RACK:
		opt->rack = tool_number(state, arg, 0, SPINDLE_MAX_RACK);
		break;
	case OPT_TIMEOUT:
		opt->timeout = tool_number(state, arg, 1, 864000);
		break;
	case OPT_SUSPECT_MS:
		opt->suspect_ms = tool_number(state, arg, SPINDLE_MIN_SUSPECT,
					      SPINDLE_MAX_SUSPECT);
		break;
	case OPT_EVICT_MS:
		opt->evict_ms = tool_number(state, arg, 0, UINT32_MAX);
		break;
	case OPT_OVERWRITE:
		opt->overwrite = true;
		break;
	case OPT_SKIP_SAME:
		opt->skip_same = true;
		break;
	case OPT_SEGMENT:
		opt->segment = tool_number(state, arg, 1, SPINDLE_MAX_OBJECT);
		break;
	case OPT_MAX_OBJECT:
		opt->max_object = tool_number(state, arg, 32 << 10, SPINDLE_MAX_OBJECT);
		break;
	case OPT_ALGORITHM:
		opt->algorithm = tool_algorithm(state, arg);
		break;
	case OPT_BLOCK:
		opt->block = tool_number(state, arg, SPINDLE_MIN_BLOCK, SPINDLE_MAX_BLOCK);
		break;
	case OPT_PROGRESS:
		opt->progress = true;
		break;
	case 'q':
		opt->quiet = true;
		break;
	case OPT_JSON:
		opt->json = arg ? arg : "-";
		break;
	case ARGP_KEY_ARG:
		return ARGP_ERR_UNKNOWN;
	case ARGP_KEY_ARGS:
		words(state, opt);
		break;
	case ARGP_KEY_NO_ARGS:
		words(state, opt);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Ends the process with status 2 when they make no sense. */
void cp_parse(struct cp_options *opt, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = args, .doc = doc,
	};

	*opt = (struct cp_options) { .receivers = 1, .timeout = 60 };
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, opt);
	if (!opt->quiet && isatty(STDERR_FILENO))
		opt->progress = true;
}
