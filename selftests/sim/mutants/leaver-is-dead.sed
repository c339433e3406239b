# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a node that leaves does not count for the majority (review 17)
# scenario: two-nodes
/^int sp_ballot_step/,/^}/s/^	if (!b->minority .*/	u64 left = 0;\
\
	for (u32 k = 0; k < b->view->nmembers; k++)\
		if (b->reports[b->view->members[k].node].leaves[k])\
			left |= 1ull << b->view->members[k].node;\
	if (!b->minority \&\& !sp_view_quorum(b->view, nodes \& ~left))/
