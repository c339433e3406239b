# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a new leader takes what it has accepted itself, if anything
/^static bool sp_ballot_lead/,/^}/s/best = p;/best = best;/
