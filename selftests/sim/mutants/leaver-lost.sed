# SPDX-License-Identifier: GPL-2.0
# ballot.c live: members that leave are reported as lost
/^static void sp_ballot_propose/,/^}/s/p->reason\[k\] = b->reports\[m->node\].leaves\[k\];/p->reason[k] = b->reports[m->node].leaves[k] ? SP_LOST : SP_STAYS;/
