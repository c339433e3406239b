# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: delivers by a trim as soon as it has it
# scenario: leader-crash
/^static bool sp_ballot_all/,/^}/s/if ((nodes >> i \& 1)/if (0/
