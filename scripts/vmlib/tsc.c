// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how fast the host's time stamp counter runs, in kHz: that is the one of
 * emulated guests, too. Each of the two looks is the quickest of many, so a busy
 * host makes no difference.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define LOOKS 1000
#define BETWEEN_US 50000

struct look {
	uint64_t ticks, ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static struct look look(void)
{
	uint64_t least = UINT64_MAX;
	struct look best = { 0 };
	int i;

	for (i = 0; i < LOOKS; i++) {
		uint64_t before = __rdtsc(), ns = now_ns(), took = __rdtsc() - before;

		if (took < least) {
			least = took;
			best = (struct look){ .ticks = before + took / 2, .ns = ns };
		}
	}
	return best;
}

int main(void)
{
	struct look a = look(), b;

	usleep(BETWEEN_US);
	b = look();
	printf("%llu\n", (unsigned long long)((b.ticks - a.ticks) * 1000000 / (b.ns - a.ns)));
	return 0;
}
