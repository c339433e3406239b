# SPDX-License-Identifier: GPL-2.0
# ballot.c live: with a member that leaves all those of its node go
# scenario: evicted
/^static void sp_ballot_propose/,/^}/s/			p->reason\[k\] = b->reports\[m->node\].leaves\[k\];/			for (i = 0; i < v->nmembers \&\& !p->reason[k]; i++)\
				p->reason[k] = b->reports[m->node].leaves[i];/
