# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a node that has decided is waited for
# scenario: decision-told
/^static bool sp_ballot_learn/,/^}/s/p->ballot != SP_BALLOT_DECIDED)/1)/
