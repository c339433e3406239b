# SPDX-License-Identifier: GPL-2.0
# view.c ballots: any half may decide
# scenario: lowest-half
/^bool sp_view_quorum/,/^}/s/ \&\& (nodes \& 1))/)/
