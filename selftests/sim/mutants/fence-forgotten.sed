# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a suspected node and one that suspects are heard as ever, and what they propose is accepted
/^int sp_ballot_receive/,/^}/{
s/report->view != b->view->id ||$/report->view != b->view->id)/
/^	    sp_suspects(b, node))$/d
s/	\*known = \*report;/&\
	known->suspected \&= ~(1ull << b->self);/
}
/^static bool sp_ballot_accept/,/^}/s/	if (p->ballot != leader + 1/	for (u32 i = 0; i < b->view->nnodes; i++)\
		if (b->reports[i].accepted.ballot == i + 1 \&\& i != b->self)\
			p = \&b->reports[leader = i].accepted;\
&/
