// SPDX-License-Identifier: MIT
/*
 * spindle-cp: what is shown on the way, and told at the end.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cp.h"

#define BEAT_NS		200000000LL
#define WIDTH		24		/* of the bar */

/* Bytes, in four characters and a unit. */
static const char *quantity(double n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	static char text[2][32];
	static unsigned int turn;
	unsigned int i = 0;

	turn ^= 1;
	for (; n >= 1000 && i < 4; i++)
		n /= 1024;
	snprintf(text[turn], sizeof(text[turn]), i && n < 100 ? "%.1f %s" : "%.0f %s", n, units[i]);
	return text[turn];
}

static void bar(const struct cp *cp, int64_t now)
{
	char marks[WIDTH + 1];
	unsigned int filled = 0;
	double part = 1;

	if (cp->total)
		part = (double)cp->done / cp->total;
	if (part > 1)
		part = 1;
	filled = part * WIDTH;
	memset(marks, ' ', WIDTH);
	memset(marks, '=', filled);
	if (filled && filled < WIDTH)
		marks[filled - 1] = '>';
	marks[WIDTH] = 0;
	fprintf(stderr, "\r%3.0f %% [%s] %s", part * 100, marks, quantity(cp->done));
	fprintf(stderr, "  %s/s  %.0f s  %.32s\033[K", quantity(cp->rate),
		(now - cp->began) / 1e9, cp->current ? cp_shown(cp->current) : "");
	fflush(stderr);
}

/* How far it is; @last: and then nothing more, until there is something new. */
void cp_show(struct cp *cp, bool last)
{
	int64_t now;
	double rate;

	if (!cp->opt.progress || !cp->began)
		return;
	now = cp_now();
	if (!last && now - cp->shown < BEAT_NS)
		return;
	if (cp->shown && now > cp->shown && !last) {
		rate = (cp->done - cp->shown_done) / ((now - cp->shown) / 1e9);
		cp->rate = cp->rate ? 0.7 * cp->rate + 0.3 * rate : rate;
	}
	if (last && now > cp->began)
		cp->rate = cp->done / ((now - cp->began) / 1e9);
	/* two lines that say the same are one too many */
	if (last && !cp->shown && !cp->done)
		return;
	bar(cp, now);
	if (last)
		fputc('\n', stderr);
	cp->shown = last ? 0 : now;
	cp->shown_done = cp->done;
}

static const char *state_of(const struct cp_peer *peer)
{
	switch (peer->state) {
	case CP_IS_DONE:
		return peer->failed ? "failed" : "ok";
	case CP_HAS_LEFT:
		return "left";
	case CP_LOST:
		return "lost";
	default:
		return "unknown";
	}
}

static const char *reason_of(const struct cp_peer *peer)
{
	switch (peer->reason) {
	case SPINDLE_REASON_LEFT:
		return "it left the group";
	case SPINDLE_REASON_EXITED:
		return "its program has ended";
	case SPINDLE_REASON_LOST:
		return "its node is not heard any more";
	case SPINDLE_REASON_SLOW:
		return "it did not read";
	default:
		return "it is not known why";
	}
}

static const char *why(const struct cp_peer *peer)
{
	if (peer->error && peer->why[0])
		return peer->why;
	if (peer->state == CP_LOST)
		return reason_of(peer);
	return peer->error ? strerror(peer->error) : "";
}

static struct json_object *json_peers(const struct cp *cp)
{
	struct json_object *list = json_object_new_array(), *o;
	unsigned int i;

	for (i = 0; i < cp->npeers; i++) {
		const struct cp_peer *peer = &cp->peers[i];

		if (peer->uid == cp->own)
			continue;
		o = json_object_new_object();
		json_object_object_add(o, "address", json_object_new_string(peer->addr));
		json_object_object_add(o, "state", json_object_new_string(state_of(peer)));
		json_object_object_add(o, "failed", json_object_new_int(peer->failed));
		json_object_object_add(o, "same", json_object_new_int(peer->skipped));
		json_object_object_add(o, "bytes", json_object_new_int64(peer->bytes));
		json_object_object_add(o, "error", json_object_new_string(why(peer)));
		json_object_array_add(list, o);
	}
	return list;
}

static int write_json(const struct cp *cp, int status, double seconds)
{
	FILE *f = strcmp(cp->opt.json, "-") ? fopen(cp->opt.json, "we") : stdout;
	struct json_object *o = json_object_new_object();
	int ret = 0;

	if (!f) {
		cp_warn("%s: %s", cp->opt.json, strerror(errno));
		return 1;
	}
	json_object_object_add(o, "role",
			       json_object_new_string(cp->opt.send ? "send" : "receive"));
	json_object_object_add(o, "ok", json_object_new_boolean(!status));
	json_object_object_add(o, "files", json_object_new_int(cp->nfiles));
	json_object_object_add(o, "directories", json_object_new_int(cp->ndirs));
	json_object_object_add(o, "links", json_object_new_int(cp->nlinks));
	json_object_object_add(o, "same", json_object_new_int(cp->nsame));
	json_object_object_add(o, "failed", json_object_new_int(cp->nfailed));
	json_object_object_add(o, "bytes", json_object_new_int64(cp->done));
	if (cp->opt.send)
		json_object_object_add(o, "spared", json_object_new_int64(cp->spared));
	json_object_object_add(o, "seconds", json_object_new_double(seconds));
	json_object_object_add(o, "error", json_object_new_string(cp->why));
	if (cp->opt.send)
		json_object_object_add(o, "receivers", json_peers(cp));
	fprintf(f, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	if (f == stdout ? fflush(f) : fclose(f)) {
		cp_warn("%s: %s", cp->opt.json, strerror(errno));
		ret = 1;
	}
	json_object_put(o);
	return ret;
}

static void write_text(const struct cp *cp, double seconds)
{
	unsigned int i;

	printf("%s %u files, %u directories, %u links, %s in %.2f s, %s/s%s\n",
	       cp->opt.send ? "sent" : "received", cp->nfiles, cp->ndirs, cp->nlinks,
	       quantity(cp->done), seconds, quantity(seconds > 0 ? cp->done / seconds : 0),
	       cp->nfailed ? ", with errors" : "");
	for (i = 0; cp->opt.send && i < cp->npeers; i++) {
		const struct cp_peer *peer = &cp->peers[i];

		if (peer->uid == cp->own)
			continue;
		printf("  %-24s %s", peer->addr, state_of(peer));
		if (peer->failed)
			printf(", %u failed", peer->failed);
		if (peer->skipped)
			printf(", %u were there", peer->skipped);
		if (peer->error || peer->state == CP_LOST)
			printf(": %s", why(peer));
		putchar('\n');
	}
}

/* Returns the status of the program, which is @status if this goes well. */
int cp_report(struct cp *cp, int status)
{
	double seconds = cp->began ? (cp_now() - cp->began) / 1e9 : 0;

	if (cp->opt.json && write_json(cp, status, seconds))
		status = 1;
	/* standard output has one of the two */
	if (cp->began && !cp->opt.quiet && !(cp->opt.json && !strcmp(cp->opt.json, "-"))) {
		write_text(cp, seconds);
		if (fflush(stdout))
			status = 1;
	}
	return status;
}
