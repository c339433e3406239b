// SPDX-License-Identifier: GPL-2.0
/* Runs the suites and says what KUnit would, in KTAP. */
#include <stdarg.h>
#include <stdio.h>

#include <kunit/test.h>

/* What a case has asked for goes with it. */
struct shim_memory {
	struct shim_memory *next;
	max_align_t bytes[];
};

void *kunit_kcalloc(struct kunit *test, size_t n, size_t size, int gfp)
{
	struct shim_memory *m = calloc(1, sizeof(*m) + n * size);

	(void)gfp;
	if (!m) {
		fprintf(stderr, "shim: no memory for a case\n");
		exit(2);
	}
	m->next = test->held;
	test->held = m;
	return m->bytes;
}

void shim_judge(struct kunit *test, bool ok, bool must, const char *file,
		int line, const char *more, ...)
{
	va_list args;

	if (ok)
		return;
	test->failed = true;
	if (*more) {
		printf("    # %s:%d: ", file, line);
		va_start(args, more);
		vprintf(more, args);
		va_end(args);
		putchar('\n');
	}
	if (must)
		longjmp(test->out, 1);
}

static bool run_case(const struct kunit_suite *s, const struct kunit_case *c)
{
	struct kunit test = { 0 };
	struct shim_memory *m;

	if (!setjmp(test.out) && !(s->init && s->init(&test)))
		c->run(&test);
	if (s->exit)
		s->exit(&test);
	while ((m = test.held)) {
		test.held = m->next;
		free(m);
	}
	return !test.failed;
}

int main(void)
{
	int bad = 0;
	int i, j;

	printf("KTAP version 1\n");
	for (i = 0; shim_suites[i]; i++)
		;
	printf("1..%d\n", i);
	for (i = 0; shim_suites[i]; i++) {
		const struct kunit_suite *s = shim_suites[i];
		int failed = 0;

		for (j = 0; s->test_cases[j].run; j++)
			;
		printf("    KTAP version 1\n    # Subtest: %s\n    1..%d\n",
		       s->name, j);
		for (j = 0; s->test_cases[j].run; j++) {
			bool ok = run_case(s, &s->test_cases[j]);

			printf("    %s %d %s\n", ok ? "ok" : "not ok", j + 1,
			       s->test_cases[j].name);
			failed += !ok;
		}
		printf("%s %d %s\n", failed ? "not ok" : "ok", i + 1, s->name);
		bad += failed;
	}
	return !!bad;
}
