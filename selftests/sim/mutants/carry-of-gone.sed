# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a request of a node that was put out is made again for it
# not by seeds: a second program on a node has to ask while the node is put out unknown to it
/^void sp_ballot_carry/,/^}/s/if (sp_view_find_node(old->view, addr) < 0 ||/if (1 ||/
