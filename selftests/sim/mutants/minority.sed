# SPDX-License-Identifier: GPL-2.0
# view.c ballots: any few may decide
# scenario: half
# scenario: partition-heals
# scenario: partition
/^bool sp_view_quorum/,/^}/s/return 2 \* n .*/return n;/
