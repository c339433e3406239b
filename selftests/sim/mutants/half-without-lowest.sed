# SPDX-License-Identifier: GPL-2.0
# view.c ballots: the half without the lowest rank may decide
# scenario: lowest-half
/^bool sp_view_quorum/,/^}/s/(nodes \& 1)/!(nodes \& 1)/
