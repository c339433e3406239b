// SPDX-License-Identifier: GPL-2.0
/* Runs the KUnit suites of the core in user space. */
#include <stdarg.h>
#include <stdlib.h>

#include "sim.h"
#include "suites.h"

extern struct kunit_suite * const kunit_suites[];

static const char *kunit_name;

/* Zeroed memory that lives as long as the case; its head links it. */
void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	max_align_t *head = calloc(1, sizeof(*head) + size);

	(void)gfp;
	*(void **)head = test->memory;
	test->memory = head;
	return head + 1;
}

bool kunit_check(struct kunit *test, bool ok, int line, const char *what,
		 const char *fmt, ...)
{
	va_list ap;

	if (ok)
		return true;
	test->failed = true;
	printf("kunit %s: line %d: not so: %s", kunit_name, line, what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	return false;
}

static bool kunit_run_case(const struct kunit_case *kc)
{
	struct kunit test = { 0 };

	kunit_name = kc->name;
	if (!setjmp(test.out))
		kc->run_case(&test);
	while (test.memory) {
		void *next = *(void **)test.memory;

		free(test.memory);
		test.memory = next;
	}
	fflush(stdout);
	return !test.failed;
}

/* Run all suites. Gives how many cases failed. */
int kunit_run(void)
{
	struct kunit_suite * const *suite;
	const struct kunit_case *kc;
	int failed = 0;
	int all = 0;

	for (suite = kunit_suites; *suite; suite++) {
		for (kc = (*suite)->test_cases; kc->run_case; kc++) {
			failed += !kunit_run_case(kc);
			all++;
		}
	}
	printf("kunit: %d cases, %d failed\n", all, failed);
	return failed;
}
