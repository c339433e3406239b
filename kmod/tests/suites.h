/* SPDX-License-Identifier: GPL-2.0 */
/* The KUnit suites of the module: one for each source file of what is pure. */
#ifndef SPINDLE_TESTS_SUITES_H
#define SPINDLE_TESTS_SUITES_H

#include <kunit/test.h>

extern struct kunit_suite sp_seq_suite;
extern struct kunit_suite sp_sst_suite;
extern struct kunit_suite sp_order_suite;
extern struct kunit_suite sp_view_suite;
extern struct kunit_suite sp_doze_suite;
extern struct kunit_suite sp_pass_suite;
extern struct kunit_suite sp_suspect_suite;
extern struct kunit_suite sp_ballot_suite;
extern struct kunit_suite sp_trim_suite;
extern struct kunit_suite sp_change_suite;
extern struct kunit_suite sp_private_suite;
extern struct kunit_suite sp_memory_suite;

#endif /* SPINDLE_TESTS_SUITES_H */
