# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a new leader computes the trim anew (review 14)
# scenario: trim-holds
/^static bool sp_ballot_lead/,/^}/s/		own->accepted = \*best;/	{\
		struct sp_proposal q, was = *best;\
\
		sp_ballot_propose(b, nodes, \&q);\
		own->accepted = was;\
		memcpy(own->accepted.trim, q.trim, sizeof(q.trim));\
	}/
