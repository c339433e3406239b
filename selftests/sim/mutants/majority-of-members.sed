# SPDX-License-Identifier: GPL-2.0
# view.c live: members are counted, not nodes (review 17)
# scenario: units
/^bool sp_view_quorum/,/^}/{
s/i < v->nnodes/i < v->nmembers/
s/nodes >> i \& 1/nodes >> v->members[i].node \& 1/
s/> v->nnodes/> v->nmembers/
s/== v->nnodes/== v->nmembers/
}
