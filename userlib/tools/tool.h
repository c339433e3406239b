/* SPDX-License-Identifier: MIT */
/* What the tools' command lines have in common. */
#ifndef SPINDLE_TOOL_H
#define SPINDLE_TOOL_H

#include <argp.h>
#include <stdint.h>

#define TOOL_ALGORITHMS	"auto|sequential|chain|tree|pipeline|hybrid"

uint64_t tool_number(struct argp_state *state, const char *text, uint64_t min, uint64_t max);
int tool_choice(struct argp_state *state, const char *text, const char *const *words);
uint32_t tool_algorithm(struct argp_state *state, const char *text);
const char *tool_algorithm_name(uint32_t algorithm);

#endif /* SPINDLE_TOOL_H */
