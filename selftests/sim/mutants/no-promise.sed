# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a leader does not wait for promises
# scenario: late-ballot
/^static u64 sp_ballot_unpromised/,/^}/s/ || (below \& ~r->suspected)/ || (0 \&\& below)/
