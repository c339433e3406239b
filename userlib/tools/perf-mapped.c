// SPDX-License-Identifier: MIT
/*
 * spindle-perf: messages built and read in place, through libspindle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../spindle.h"
#include "perf.h"

#define PEEK	64			/* messages looked at in one go */

static const enum spindle_wait how[] = {
	[PERF_WAIT_BLOCK] = SPINDLE_WAIT_BLOCK,
	[PERF_WAIT_ADAPTIVE] = SPINDLE_WAIT_ADAPTIVE,
	[PERF_WAIT_SPIN] = SPINDLE_WAIT_SPIN,
};

static void must(struct perf_flow *f, int ret, const char *what)
{
	if (ret)
		perf_die(f->member, "%s, after %llu messages sent and %llu received: %s", what,
			 (unsigned long long)f->res->sent, (unsigned long long)f->res->received,
			 strerror(-ret));
}

static void mapped_open(struct perf_flow *f, const char *addr)
{
	must(f, spindle_open(&f->sp, addr), "spindle_open");
	if (f->member->opt->key)
		must(f, spindle_key(f->sp, f->member->opt->key), "spindle_key");
	if (f->member->opt->objects)
		must(f, spindle_map(f->sp, SPINDLE_MAP_RX), "spindle_map");
}

static void mapped_create(struct perf_flow *f, const struct spindle_group_create *group)
{
	must(f, spindle_create(f->sp, group), "spindle_create");
}

static int mapped_join(struct perf_flow *f, const char *contact,
		       const struct spindle_group_join *group)
{
	return -spindle_join(f->sp, contact, group);
}

static void mapped_info(struct perf_flow *f, struct spindle_group_info *info)
{
	must(f, spindle_info(f->sp, info), "spindle_info");
}

static void mapped_start(struct perf_flow *f)
{
	must(f, spindle_ready(f->sp, perf_left_ms(f)), "spindle_ready");
}

static void mapped_wait(struct perf_flow *f, unsigned int events)
{
	must(f, spindle_wait(f->sp, events, how[f->member->opt->wait],
			     f->member->opt->timeout * 1000), "spindle_wait");
}

/* Objects do not go through the ring. */
static unsigned int mapped_send_object(struct perf_flow *f)
{
	const struct perf_options *opt = f->member->opt;
	const struct spindle_object how = { .flags = SPINDLE_OBJECT_ALWAYS };
	const struct iovec iov = { f->made, opt->size };
	int ret;

	perf_handed_over(f, f->res->sent, 1);
	perf_fill(f, f->made, f->res->sent);
	while ((ret = spindle_object_send(f->sp, &iov, 1, opt->always ? &how : NULL)) == -EAGAIN)
		mapped_wait(f, SPINDLE_WRITABLE);
	must(f, ret, "spindle_object_send");
	return 1;
}

static unsigned int mapped_send(struct perf_flow *f, unsigned int n)
{
	const struct perf_options *opt = f->member->opt;
	struct iovec iov[PERF_MAX_BATCH];
	unsigned int i;
	int ret;

	if (opt->objects)
		return mapped_send_object(f);
	perf_handed_over(f, f->res->sent, n);
	for (;;) {
		for (i = 0; i < n; i++)
			iov[i].iov_len = opt->size;
		ret = spindle_claim(f->sp, iov, n);
		if (ret != -EAGAIN)
			break;
		mapped_wait(f, SPINDLE_WRITABLE);
	}
	must(f, ret, "spindle_claim");
	for (i = 0; i < n; i++) {
		if (opt->memcpy) {
			perf_fill(f, f->made, f->res->sent + i);
			memcpy(iov[i].iov_base, f->made, opt->size);
		} else {
			perf_fill(f, iov[i].iov_base, f->res->sent + i);
		}
	}
	must(f, spindle_commit(f->sp, n, NULL), "spindle_commit");
	return n;
}

static bool mapped_receive(struct perf_flow *f)
{
	const struct perf_options *opt = f->member->opt;
	struct spindle_msg msgs[PEEK];
	unsigned int i, n;
	const void *data;
	int ret;

	for (;;) {
		ret = spindle_peek(f->sp, msgs, PEEK, &n);
		if (ret != -EAGAIN)
			break;
		mapped_wait(f, SPINDLE_READABLE);
	}
	if (ret == -ENODATA)
		return false;
	must(f, ret, "spindle_peek");
	for (i = 0; i < n; i++) {
		data = msgs[i].data;
		if ((opt->memcpy || !data) && msgs[i].len <= perf_room(opt)) {
			must(f, spindle_object_read(f->sp, &msgs[i], 0, f->taken, msgs[i].len),
			     "spindle_object_read");
			data = f->taken;
		}
		perf_take(f, msgs[i].rank, data, msgs[i].len);
		/* nobody waits behind a slow reader longer than it takes */
		if (f->slow_us)
			must(f, spindle_release(f->sp, msgs[i].entry), "spindle_release");
	}
	if (!f->slow_us)
		must(f, spindle_release(f->sp, msgs[n - 1].entry), "spindle_release");
	return true;
}

static void mapped_shutdown(struct perf_flow *f)
{
	must(f, spindle_shutdown(f->sp), "spindle_shutdown");
}

static void mapped_close(struct perf_flow *f)
{
	struct spindle_stats stats;

	must(f, spindle_stats(f->sp, &stats), "spindle_stats");
	f->res->calls = stats.kicks + stats.waits;
	f->res->copied = stats.copied_bytes;
	must(f, spindle_close(f->sp), "spindle_close");
}

const struct perf_ops perf_mapped_ops = {
	.name = "mapped",
	.open = mapped_open,
	.create = mapped_create,
	.join = mapped_join,
	.start = mapped_start,
	.info = mapped_info,
	.send = mapped_send,
	.receive = mapped_receive,
	.shutdown = mapped_shutdown,
	.close = mapped_close,
};
