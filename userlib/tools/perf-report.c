// SPDX-License-Identifier: MIT
/*
 * spindle-perf: what it says, as text and as JSON.
 */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "tool.h"

#define MIB	1048576.0
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct figures {
	double seconds;		/* mean over the members */
	double average;		/* bytes/s delivered to a member */
	double peak;
	double rate;		/* messages/s delivered to a member */
	uint64_t messages;	/* delivered to one member, all groups */
	uint64_t bytes;
	uint64_t calls;		/* of all local members */
	uint64_t copied;
};

struct latency {
	size_t n;
	int64_t *ns;
};

static const struct {
	const char *name;
	double part;
} percentiles[] = {
	{ "min", 0 },
	{ "p50", 0.5 },
	{ "p90", 0.9 },
	{ "p99", 0.99 },
	{ "p99.9", 0.999 },
	{ "max", 1 },
};

static const char *const verify_names[] = { "none", "order", "full" };
static const char *const wait_names[] = { "block", "adaptive", "spin" };
static const char *const latency_names[] = { "off", "closed", "load" };
static const char *const mode_names[] = { "copy", "mapped" };

static struct figures figures_of(const struct perf_options *opt, const struct perf_shared *s,
				 double peak)
{
	struct figures all = { 0 };
	unsigned int i, g;

	for (i = 0; i < opt->locals; i++) {
		const struct perf_result *res = &s->result[i * opt->active];
		uint64_t bytes = 0, messages = 0;
		int64_t end = s->begin + 1;
		double seconds;

		for (g = 0; g < opt->active; g++) {
			bytes += res[g].bytes - res[g].skipped_bytes;
			messages += res[g].received - res[g].skipped;
			end = res[g].end > end ? res[g].end : end;
			all.calls += res[g].calls;
			all.copied += res[g].copied;
		}
		seconds = (end - s->begin) / 1e9;
		all.seconds += seconds / opt->locals;
		all.average += bytes / seconds / opt->locals;
		all.rate += messages / seconds / opt->locals;
		if (!i) {
			all.bytes = bytes;
			all.messages = messages;
		}
	}
	all.peak = peak > all.average ? peak : all.average;
	return all;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorted, of the messages that local members sent. */
static struct latency collect(const struct perf_options *opt, const struct perf_shared *s,
			      bool all)
{
	size_t n = (size_t)opt->active * s->sample_lanes * s->sample_stride, i;
	struct latency lat = { .ns = malloc(n * sizeof(*lat.ns) + 1) };

	for (i = 0; lat.ns && i < n; i++) {
		const struct perf_sample *sample = &s->samples[i];

		if (sample->sent && sample->own && i % s->sample_stride >= opt->warmup)
			lat.ns[lat.n++] = (all ? sample->all : sample->own) - sample->sent;
	}
	if (lat.n)
		qsort(lat.ns, lat.n, sizeof(*lat.ns), compare);
	return lat;
}

/* The smallest value that so large a part of all does not exceed. */
static double at_us(const struct latency *lat, double part)
{
	size_t at = ceil(part * lat->n);

	return lat->n ? lat->ns[at ? at - 1 : 0] / 1e3 : 0;
}

static double mean_us(const struct latency *lat)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < lat->n; i++)
		sum += lat->ns[i] / 1e3;
	return lat->n ? sum / lat->n : 0;
}

static struct json_object *number(double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.9g", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *latency_json(const struct latency *lat)
{
	struct json_object *o = json_object_new_object();
	unsigned int i;

	json_object_object_add(o, "samples", json_object_new_int64(lat->n));
	json_object_object_add(o, "avg", number(mean_us(lat)));
	for (i = 0; i < ARRAY_SIZE(percentiles); i++)
		json_object_object_add(o, percentiles[i].name,
				       number(at_us(lat, percentiles[i].part)));
	return o;
}

static struct json_object *options_json(const struct perf_options *opt,
					const struct perf_shared *s)
{
	struct json_object *o = json_object_new_object();
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{ "size", opt->size },
		{ "iters", opt->iters - (opt->iters ? opt->warmup : 0) },
		{ "warmup", opt->warmup },
		{ "members", opt->members },
		{ "local_members", opt->locals },
		{ "senders", s->result[0].senders },
		{ "active", opt->active },
		{ "idle", opt->idle },
		{ "window", opt->window },
		{ "depth", opt->depth },
		{ "max_msg", opt->max_msg },
		{ "max_object", opt->max_object },
		{ "block", opt->block },
		{ "racks", opt->racks },
		{ "batch", opt->batch },
		{ "delay_us", opt->delay_us },
		{ "delayed", opt->delayed },
		{ "slow_us", opt->slow_us },
		{ "interval_us", opt->interval_us },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		json_object_object_add(o, numbers[i].name,
				       json_object_new_int64(numbers[i].value));
	json_object_object_add(o, "seconds", number(opt->seconds));
	json_object_object_add(o, "mode", json_object_new_string(mode_names[opt->mode]));
	json_object_object_add(o, "memcpy", json_object_new_boolean(opt->memcpy));
	json_object_object_add(o, "object", json_object_new_boolean(opt->objects));
	json_object_object_add(o, "algorithm",
			       json_object_new_string(tool_algorithm_name(opt->algorithm)));
	json_object_object_add(o, "wait", json_object_new_string(wait_names[opt->wait]));
	json_object_object_add(o, "verify", json_object_new_string(verify_names[opt->verify]));
	json_object_object_add(o, "latency", json_object_new_string(latency_names[opt->latency]));
	if (opt->optimise)
		json_object_object_add(o, "optimise", json_object_new_string(opt->optimise));
	return o;
}

static struct json_object *groups_json(const struct perf_options *opt, const struct perf_shared *s)
{
	struct json_object *groups = json_object_new_array(), *o, *from;
	char text[32];
	unsigned int g, r;

	for (g = 0; g < opt->active; g++) {
		const struct perf_result *res = &s->result[g];

		o = json_object_new_object();
		from = json_object_new_array();
		snprintf(text, sizeof(text), "%016llx", (unsigned long long)res->hash);
		for (r = 0; r < res->senders; r++)
			json_object_array_add(from, json_object_new_int64(res->from[r]));
		json_object_object_add(o, "hash", json_object_new_string(text));
		json_object_object_add(o, "messages", json_object_new_int64(res->received));
		json_object_object_add(o, "messages_by_rank", from);
		json_object_array_add(groups, o);
	}
	return groups;
}

/* What was counted on all local nodes for each message delivered there. */
static struct json_object *per_message(struct json_object *counters)
{
	struct json_object *o = json_object_new_object(), *delivered;
	double n;

	if (!json_object_object_get_ex(counters, "delivered", &delivered))
		return o;
	n = json_object_get_int64(delivered);
	if (!n)
		return o;
	json_object_object_foreach(counters, key, val)
		json_object_object_add(o, key, number(json_object_get_int64(val) / n));
	return o;
}

static struct json_object *result_json(const struct perf_options *opt,
				       const struct perf_shared *s,
				       const struct perf_outcome *out, const struct figures *fig,
				       const struct latency *own, const struct latency *all)
{
	struct json_object *o = json_object_new_object(), *lat;

	json_object_object_add(o, "options", options_json(opt, s));
	json_object_object_add(o, "seconds", number(fig->seconds));
	json_object_object_add(o, "forming_seconds", number(out->forming));
	json_object_object_add(o, "warming_seconds", number(out->warming));
	json_object_object_add(o, "ending_seconds", number(out->ending));
	json_object_object_add(o, "messages", json_object_new_int64(fig->messages));
	json_object_object_add(o, "bytes", json_object_new_int64(fig->bytes));
	json_object_object_add(o, "bytes_per_second", number(fig->average));
	json_object_object_add(o, "bytes_per_second_peak", number(fig->peak));
	json_object_object_add(o, "messages_per_second", number(fig->rate));
	json_object_object_add(o, "calls", json_object_new_int64(fig->calls));
	json_object_object_add(o, "copied_bytes", json_object_new_int64(fig->copied));
	json_object_object_add(o, "groups", groups_json(opt, s));
	if (s->samples) {
		lat = json_object_new_object();
		json_object_object_add(lat, "own_us", latency_json(own));
		json_object_object_add(lat, "all_us", latency_json(all));
		json_object_object_add(o, "latency", lat);
	}
	if (out->counters) {
		json_object_object_add(o, "counters", json_object_get(out->counters));
		json_object_object_add(o, "per_message", per_message(out->counters));
	}
	if (out->idle_counters)
		json_object_object_add(o, "idle_counters", json_object_get(out->idle_counters));
	if (out->batches)
		json_object_object_add(o, "batches", json_object_get(out->batches));
	return o;
}

static void line(void)
{
	puts("---------------------------------------------------------------------------------------");
}

static void latency_text(const struct perf_options *opt, const char *what,
			 const struct latency *lat)
{
	printf(" %-8u   %-10llu   %-5s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", opt->size,
	       (unsigned long long)lat->n, what, at_us(lat, 0), at_us(lat, 0.5), mean_us(lat),
	       at_us(lat, 0.9), at_us(lat, 0.99), at_us(lat, 0.999), at_us(lat, 1));
}

static void counters_text(const char *title, struct json_object *counters)
{
	struct json_object *each = per_message(counters), *ratio;

	printf(" %-28s %16s %16s\n", title, "on all nodes", "per message");
	json_object_object_foreach(counters, key, val) {
		printf(" %-28s %16lld", key, (long long)json_object_get_int64(val));
		if (json_object_object_get_ex(each, key, &ratio))
			printf(" %16.4f", json_object_get_double(ratio));
		putchar('\n');
	}
	json_object_put(each);
	line();
}

static void batches_text(struct json_object *batches)
{
	struct json_object *n, *messages, *sizes;
	long long count;

	printf(" %-12s %12s %12s %8s\n", "batches", "number", "messages", "mean");
	json_object_object_foreach(batches, name, stage) {
		if (!json_object_object_get_ex(stage, "batches", &n) ||
		    !json_object_object_get_ex(stage, "messages", &messages))
			continue;
		count = json_object_get_int64(n);
		printf(" %-12s %12lld %12lld %8.2f\n", name, count,
		       (long long)json_object_get_int64(messages),
		       count ? json_object_get_double(messages) / count : 0);
		if (json_object_object_get_ex(stage, "sizes", &sizes))
			printf("    %s\n", json_object_to_json_string_ext
			       (sizes, JSON_C_TO_STRING_PLAIN));
	}
	line();
}

static void report_text(const struct perf_options *opt, const struct perf_shared *s,
			const struct perf_outcome *out, const struct figures *fig,
			const struct latency *own, const struct latency *all)
{
	line();
	printf("                    Spindle Ordered Multicast %s Test\n",
	       s->samples ? "Latency" : "BW");
	printf(" Members         : %-10u Local members : %u\n", opt->members, opt->locals);
	printf(" Senders         : %-10u Groups        : %u active, %u idle\n",
	       s->result[0].senders, opt->active, opt->idle);
	printf(" Mode            : %-10s Wait          : %s\n",
	       opt->memcpy ? "memcpy" : mode_names[opt->mode], wait_names[opt->wait]);
	printf(" Batch           : %-10u Verified      : %s\n", opt->batch,
	       verify_names[opt->verify]);
	if (opt->optimise)
		printf(" Optimisations   : %s\n", opt->optimise);
	if (opt->delay_us)
		printf(" Delayed senders : %-10u Delay[usec]   : %u\n", opt->delayed,
		       opt->delay_us);
	line();
	printf(" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n");
	printf(" %-10u %-14llu %-19.2f %-21.2f %.6f\n", opt->size,
	       (unsigned long long)fig->messages, fig->peak / MIB, fig->average / MIB,
	       fig->rate / 1e6);
	line();
	if (s->samples) {
		printf(" #bytes     #samples     until   t_min  t_median     t_avg       90%%       99%%     99.9%%     t_max [usec]\n");
		latency_text(opt, "own", own);
		latency_text(opt, "all", all);
		line();
	}
	if (out->counters)
		counters_text("counters", out->counters);
	if (out->idle_counters)
		counters_text("counters of idle groups", out->idle_counters);
	if (out->batches)
		batches_text(out->batches);
}

static int write_json(const char *path, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							  JSON_C_TO_STRING_SPACED);
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (!f || fprintf(f, "%s\n", text) < 0 || (f == stdout ? fflush(f) : fclose(f))) {
		fprintf(stderr, "spindle-perf: %s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}

int perf_report(const struct perf_options *opt, const struct perf_shared *s,
		const struct perf_outcome *out)
{
	struct figures fig = figures_of(opt, s, out->peak);
	struct latency own = { 0 }, all = { 0 };
	struct json_object *o;
	int ret = 0;

	if (s->samples) {
		own = collect(opt, s, false);
		all = collect(opt, s, true);
	}
	if (!opt->json || strcmp(opt->json, "-"))
		report_text(opt, s, out, &fig, &own, &all);
	if (opt->json) {
		o = result_json(opt, s, out, &fig, &own, &all);
		ret = write_json(opt->json, o);
		json_object_put(o);
	}
	free(own.ns);
	free(all.ns);
	return ret;
}
