# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: accepting under any ballot counts as accepting (review 15)
# not by seeds: nodes that have accepted another proposal are too few to decide on it without the leader
/^static bool sp_ballot_all/,/^}/s/accepted.ballot != ballot)/accepted.ballot == 0)/
