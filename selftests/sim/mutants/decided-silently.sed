# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a node that has decided does not report that it has
/^int sp_ballot_step/,/^}/s/own->accepted.ballot = SP_BALLOT_DECIDED;/;/
