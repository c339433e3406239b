// SPDX-License-Identifier: MIT
/*
 * spindle-perf: what the kernel counts, and what of it can be switched.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define MAX_COUNTERS	64

struct perf_counters {
	unsigned int n;
	char name[MAX_COUNTERS][32];
	uint64_t value[MAX_COUNTERS];
};

/* An address as the kernel writes it. */
static void node_name(const char *addr, char *name, size_t size)
{
	struct sockaddr_storage ss;
	const struct in6_addr *in6 = &((struct sockaddr_in6 *)&ss)->sin6_addr;

	perf_addr(addr, &ss);
	if (ss.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(in6))
		inet_ntop(AF_INET, &in6->s6_addr[12], name, size);
	else if (ss.ss_family == AF_INET6)
		inet_ntop(AF_INET6, in6, name, size);
	else
		inet_ntop(AF_INET, &((struct sockaddr_in *)&ss)->sin_addr, name, size);
}

/* Is it the first local member on its node? Each node counts once. */
static bool first_on_node(const struct perf_options *opt, unsigned int i)
{
	char own[INET6_ADDRSTRLEN], other[INET6_ADDRSTRLEN];
	unsigned int j;

	node_name(opt->addr[i], own, sizeof(own));
	for (j = 0; j < i; j++) {
		node_name(opt->addr[j], other, sizeof(other));
		if (!strcmp(own, other))
			return false;
	}
	return true;
}

static uint64_t read_number(const char *path)
{
	unsigned long long value = 0;
	FILE *f = fopen(path, "re");

	if (f) {
		if (fscanf(f, "%llu", &value) != 1)
			value = 0;
		fclose(f);
	}
	return value;
}

static void add_file(struct perf_counters *c, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	unsigned int i;

	for (i = 0; i < c->n && strcmp(c->name[i], name); i++)
		;
	if (i == MAX_COUNTERS)
		return;
	if (i == c->n) {
		snprintf(c->name[i], sizeof(c->name[i]), "%s", name);
		c->n++;
	}
	c->value[i] += read_number(path);
}

/* The sums over the local nodes, of whatever counters there are. */
struct perf_counters *perf_counters_read(const struct perf_options *opt, const char *group)
{
	struct perf_counters *c = calloc(1, sizeof(*c));
	char node[INET6_ADDRSTRLEN], pattern[PATH_MAX];
	unsigned int i;
	glob_t found;
	size_t k;

	for (i = 0; c && i < opt->locals; i++) {
		if (!first_on_node(opt, i))
			continue;
		node_name(opt->addr[i], node, sizeof(node));
		snprintf(pattern, sizeof(pattern), "/sys/kernel/spindle/%s/%s/counters/*", node,
			 group);
		if (glob(pattern, 0, NULL, &found))
			continue;
		for (k = 0; k < found.gl_pathc; k++)
			add_file(c, found.gl_pathv[k]);
		globfree(&found);
	}
	return c;
}

struct json_object *perf_counters_diff(const struct perf_counters *before,
				       const struct perf_counters *after)
{
	struct json_object *all = json_object_new_object();
	unsigned int i;

	for (i = 0; before && after && i < after->n; i++) {
		uint64_t was = i < before->n && !strcmp(before->name[i], after->name[i]) ?
			       before->value[i] : 0;

		json_object_object_add(all, after->name[i],
				       json_object_new_int64(after->value[i] - was));
	}
	return all;
}

static void add_to(struct json_object *o, const char *name, const char *value)
{
	struct json_object *have;

	if (json_object_object_get_ex(o, name, &have))
		json_object_int_inc(have, strtoll(value, NULL, 10));
	else
		json_object_object_add(o, name, json_object_new_int64(strtoll(value, NULL, 10)));
}

/* A stage, what it did ("batches 12 messages 30 mean 2.50"), and "size:count" words. */
static void add_stage(struct json_object *all, char *line)
{
	struct json_object *stage, *sizes;
	char *word, *value, *save;

	word = strtok_r(line, " \t\n", &save);
	if (!word)
		return;
	if (!json_object_object_get_ex(all, word, &stage)) {
		stage = json_object_new_object();
		json_object_object_add(all, word, stage);
		json_object_object_add(stage, "sizes", json_object_new_object());
	}
	json_object_object_get_ex(stage, "sizes", &sizes);
	while ((word = strtok_r(NULL, " \t\n", &save))) {
		value = strchr(word, ':');
		if (value) {
			*value = '\0';
			add_to(sizes, word, value + 1);
			continue;
		}
		value = strtok_r(NULL, " \t\n", &save);
		if (value && strcmp(word, "mean"))
			add_to(stage, word, value);
	}
}

static FILE *batches_of(const struct perf_options *opt, unsigned int i, const char *group,
			const char *mode)
{
	char node[INET6_ADDRSTRLEN], path[PATH_MAX];

	if (!first_on_node(opt, i))
		return NULL;
	node_name(opt->addr[i], node, sizeof(node));
	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/batches", node, group);
	return fopen(path, mode);
}

void perf_batches_reset(const struct perf_options *opt, const char *group)
{
	unsigned int i;
	FILE *f;

	for (i = 0; i < opt->locals; i++) {
		f = batches_of(opt, i, group, "we");
		if (!f)
			continue;
		fputs("0\n", f);
		fclose(f);
	}
}

/* The sizes of batches, summed over the local nodes; NULL where there are none. */
struct json_object *perf_batches_read(const struct perf_options *opt, const char *group)
{
	struct json_object *all = json_object_new_object();
	char *line = NULL;
	size_t size = 0;
	unsigned int i;
	FILE *f;

	for (i = 0; i < opt->locals; i++) {
		f = batches_of(opt, i, group, "re");
		if (!f)
			continue;
		while (getline(&line, &size, f) > 0)
			add_stage(all, line);
		fclose(f);
	}
	free(line);
	if (json_object_object_length(all))
		return all;
	json_object_put(all);
	return NULL;
}
