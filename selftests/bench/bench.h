/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs of the benchmarks have in common. */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* As words of the line that the program prints. */
static void print_latencies(double *us, uint64_t n)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		sum += us[i];
	qsort(us, n, sizeof(*us), compare);
	printf("samples=%llu min=%.3f p50=%.3f avg=%.3f p90=%.3f p99=%.3f max=%.3f ",
	       (unsigned long long)n, us[0], us[(n - 1) / 2], sum / n, us[(n - 1) * 90 / 100],
	       us[(n - 1) * 99 / 100], us[n - 1]);
}

#endif /* BENCH_H */
