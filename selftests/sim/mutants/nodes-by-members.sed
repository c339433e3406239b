# SPDX-License-Identifier: GPL-2.0
# view.c live: a node's rank goes by the members that it has left
# not by seeds: a member has to leave and two nodes to lose each other within one change of view
# scenario: node-ranks
/^int sp_view_next/,/^}/s/i < old->nnodes/i < 0/
