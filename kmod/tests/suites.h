/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The KUnit suites of the module: one for each source file of the core, and of
 * the rest those for options and for the states of a link.
 */
#ifndef SPINDLE_TESTS_SUITES_H
#define SPINDLE_TESTS_SUITES_H

#include <kunit/test.h>

extern struct kunit_suite sp_seq_suite;
extern struct kunit_suite sp_sst_suite;
extern struct kunit_suite sp_order_suite;
extern struct kunit_suite sp_view_suite;
extern struct kunit_suite sp_doze_suite;
extern struct kunit_suite sp_pass_suite;
extern struct kunit_suite sp_agree_suite;
extern struct kunit_suite sp_change_suite;
extern struct kunit_suite sp_schedule_suite;
extern struct kunit_suite sp_choose_suite;
extern struct kunit_suite sp_proof_suite;
extern struct kunit_suite sp_opts_suite;
extern struct kunit_suite sp_link_suite;

#endif /* SPINDLE_TESTS_SUITES_H */
