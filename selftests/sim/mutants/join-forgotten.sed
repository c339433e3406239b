# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a leader takes in only who has asked itself
# scenario: herd
# scenario: herd-and-crash
/^static void sp_ballot_propose/,/^}/s/(nodes >> i \& 1) \&\& k < b->reports/i == b->self \&\& k < b->reports/
