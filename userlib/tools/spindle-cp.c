// SPDX-License-Identifier: MIT
/*
 * spindle-cp: files to all members of a group at once. See spindle-cp(1).
 */
#include <json-c/json.h>
#include <json-c/linkhash.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cp.h"

volatile sig_atomic_t cp_signal;

static void on_signal(int sig)
{
	cp_signal = sig;
}

void cp_warn(const char *fmt, ...)
{
	va_list ap;

	fputs("spindle-cp: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* Something failed; the first such is what is reported. */
void cp_note(struct cp *cp, int err, const char *fmt, ...)
{
	char text[sizeof(cp->why) - 64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cp_show(cp, true);
	cp_warn("%s: %s", text, strerror(err));
	if (!cp->error) {
		cp->error = err;
		snprintf(cp->why, sizeof(cp->why), "%s: %s", text, strerror(err));
	}
	cp->nfailed++;
}

int64_t cp_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	static struct cp cp;
	int status;

	/* the other hash wants random bytes, which a machine just booted may lack */
	json_global_set_string_hash(JSON_C_STR_HASH_PERLLIKE);
	cp_parse(&cp.opt, argc, argv);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	status = cp.opt.send ? cp_send_all(&cp) : cp_receive_all(&cp);
	status = cp_report(&cp, status);
	spindle_close(cp.sp);
	return status;
}
