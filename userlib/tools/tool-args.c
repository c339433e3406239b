// SPDX-License-Identifier: MIT
/* What the tools' command lines have in common. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/spindle.h>

#include "tool.h"

static const char *const algorithms[] = {
	[SPINDLE_ALG_AUTO] = "auto",
	[SPINDLE_ALG_SEQUENTIAL] = "sequential",
	[SPINDLE_ALG_CHAIN] = "chain",
	[SPINDLE_ALG_TREE] = "tree",
	[SPINDLE_ALG_PIPELINE] = "pipeline",
	[SPINDLE_ALG_HYBRID] = "hybrid",
	[SPINDLE_ALGS] = NULL,
};

/* A number with k, M or G behind it, or not; no return when it is none. */
uint64_t tool_number(struct argp_state *state, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	unsigned int shift = 0;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (end != text && *end) {
		if (*end == 'k' || *end == 'K')
			shift = 10;
		else if (*end == 'M')
			shift = 20;
		else if (*end == 'G')
			shift = 30;
		end += !!shift;
	}
	if (end == text || *end || errno || *text == '-' || value > max >> shift ||
	    value << shift < min)
		argp_error(state, "%s: a number from %llu to %llu is wanted", text,
			   (unsigned long long)min, (unsigned long long)max);
	return value << shift;
}

int tool_choice(struct argp_state *state, const char *text, const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	argp_error(state, "%s: no such choice", text);
	return 0;
}

uint32_t tool_algorithm(struct argp_state *state, const char *text)
{
	return tool_choice(state, text, algorithms);
}

const char *tool_algorithm_name(uint32_t algorithm)
{
	return algorithm < SPINDLE_ALGS ? algorithms[algorithm] : "unknown";
}
