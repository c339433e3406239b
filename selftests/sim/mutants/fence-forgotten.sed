# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: what a suspected leader proposes is accepted
# not by seeds: a node sends no report to a node that it suspects, so that a late acceptance is not counted
/^int sp_ballot_receive/,/^}/{
s/report->view != b->view->id ||$/report->view != b->view->id)/
/^	    sp_suspects(b, node))$/d
}
/^static bool sp_ballot_accept/,/^}/s/	if (p->ballot != leader + 1/	for (u32 i = 0; i < b->view->nnodes; i++)\
		if (b->reports[i].accepted.ballot == i + 1 \&\& i != b->self)\
			p = \&b->reports[leader = i].accepted;\
&/
