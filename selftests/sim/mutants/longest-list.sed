# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a new leader takes the longest list, under whatever ballot (review 15)
# not by seeds: of two proposals the later one is the longer one, too
/^static bool sp_ballot_lead/i\
static u32 longest(const struct sp_proposal *p)\
{\
	u32 n = p->njoins + !!p->ballot;\
	u32 i;\
\
	for (i = 0; i < SP_MAX_MEMBERS; i++)\
		n += !!p->reason[i];\
	return n;\
}\

/^static bool sp_ballot_lead/,/^}/s/p->ballot > best->ballot)/longest(p) > longest(best))/
