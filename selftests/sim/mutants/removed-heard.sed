# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: what a removed node suspects is taken up
# scenario: removed
/^int sp_ballot_receive/,/^}/s/^	    sp_suspects(b, node))/	    (sp_suspects(b, node) \&\& (sp_ballot_own(b)->suspected |=\
	     report->suspected \& ~((2ull << node) - 1) \& ~(1ull << b->self))))/
