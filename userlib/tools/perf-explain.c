// SPDX-License-Identifier: MIT
/*
 * spindle-perf: how messages would be sent, and why.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "../spindle.h"
#include "perf.h"
#include "tool.h"

static void add_json(struct json_object *list, const struct spindle_explain *e, int err)
{
	struct json_object *o = json_object_new_object();

	json_object_array_add(list, o);
	json_object_object_add(o, "size", json_object_new_int64(e->len));
	if (err) {
		json_object_object_add(o, "error", json_object_new_string(strerror(err)));
		return;
	}
	json_object_object_add(o, "transport", json_object_new_string(e->object ? "RDMC" : "SMC"));
	if (e->object) {
		json_object_object_add(o, "algorithm",
				       json_object_new_string(tool_algorithm_name(e->algorithm)));
		json_object_object_add(o, "block", json_object_new_int64(e->block));
		json_object_object_add(o, "blocks", json_object_new_int64(e->blocks));
		json_object_object_add(o, "steps", json_object_new_int64(e->steps));
	}
	json_object_object_add(o, "nodes", json_object_new_int64(e->nodes));
	json_object_object_add(o, "racks", json_object_new_int64(e->racks));
	json_object_object_add(o, "why", json_object_new_string(e->why));
}

static void print(const struct spindle_explain *e, int err)
{
	char steps[16] = "-";

	printf("%10u  ", e->len);
	if (err) {
		printf("-     %s\n", strerror(err));
		return;
	}
	if (!e->object) {
		printf("SMC   -           %8s %8s %8s  %s\n", "-", "-", "-", e->why);
		return;
	}
	if (e->steps)
		snprintf(steps, sizeof(steps), "%u", e->steps);
	printf("RDMC  %-10s  %8u %8u %8s  %s\n", tool_algorithm_name(e->algorithm), e->block,
	       e->blocks, steps, e->why);
}

static struct spindle_explain ask(const struct perf_flow *f, int fd, uint32_t size, int *err)
{
	struct spindle_explain e = { .len = size };
	socklen_t len = sizeof(e);

	if (f->member->opt->always)
		e.how.flags = SPINDLE_OBJECT_ALWAYS;
	*err = getsockopt(fd, SOL_SPINDLE, SPINDLE_EXPLAIN, &e, &len) ? errno : 0;
	return e;
}

/* For the sizes that were asked for, in the view as it is. */
void perf_explain(struct perf_flow *f)
{
	const struct perf_options *opt = f->member->opt;
	struct json_object *list = json_object_new_array();
	bool text = !opt->json || strcmp(opt->json, "-");
	struct spindle_explain e;
	int err, fd = f->fd;
	FILE *out = stdout;
	unsigned int i;

	if (f->sp)
		spindle_fd(f->sp, &fd);
	for (i = 0; i < opt->nsizes; i++) {
		e = ask(f, fd, opt->sizes[i], &err);
		if (!i && text && !err)
			printf("%u nodes in %u racks\n", e.nodes, e.racks);
		if (!i && text)
			printf("#    bytes  by    algorithm      block   blocks    steps  because\n");
		add_json(list, &e, err);
		if (text)
			print(&e, err);
	}
	if (opt->json && text)
		out = fopen(opt->json, "we");
	if (!out)
		perf_die(f->member, "%s: %s", opt->json, strerror(errno));
	if (opt->json)
		fprintf(out, "%s\n", json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN));
	if (out == stdout ? fflush(out) : fclose(out))
		perf_die(f->member, "the answer cannot be written: %s", strerror(errno));
	json_object_put(list);
}
