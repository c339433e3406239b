// SPDX-License-Identifier: GPL-2.0
/* A module registers its suites in one place. */
#include "suites.h"

kunit_test_suites(&sp_seq_suite, &sp_sst_suite, &sp_order_suite,
		  &sp_view_suite, &sp_doze_suite, &sp_pass_suite,
		  &sp_agree_suite, &sp_change_suite, &sp_schedule_suite,
		  &sp_choose_suite, &sp_proof_suite);

/* These are of the kernel's side, and are not there in user space. */
#ifdef __KERNEL__
kunit_test_suites(&sp_opts_suite, &sp_link_suite);
#endif
