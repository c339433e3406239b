// SPDX-License-Identifier: GPL-2.0
/* A module registers its suites in one place; user space has those of the core. */
#include "suites.h"

kunit_test_suites(&sp_seq_suite, &sp_sst_suite, &sp_order_suite,
		  &sp_view_suite, &sp_doze_suite, &sp_pass_suite,
		  &sp_suspect_suite, &sp_ballot_suite, &sp_trim_suite,
		  &sp_change_suite, &sp_private_suite);

#ifdef __KERNEL__
kunit_test_suites(&sp_memory_suite);
#endif
