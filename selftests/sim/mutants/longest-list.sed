# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a new leader takes the longest list, if only its own, under whatever ballot (review 15)
/^static bool sp_ballot_lead/i\
static u32 sp_proposal_length(const struct sp_proposal *p)\
{\
	u32 n = p->njoins;\
	u32 i;\
\
	for (i = 0; i < SP_MAX_MEMBERS; i++)\
		n += !!p->reason[i];\
	return n;\
}\

/^static bool sp_ballot_lead/,/^}/{
s/	if (best->ballot)/	struct sp_proposal mine;\
\
	sp_ballot_propose(b, nodes, \&mine);\
	if (best->ballot \&\& sp_proposal_length(best) >= sp_proposal_length(\&mine))/
s/		sp_ballot_propose(b, nodes, &own->accepted);/		own->accepted = mine;/
}
