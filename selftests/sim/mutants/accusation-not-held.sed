# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: a leader proposes while an accusation stands
# scenario: held
/^static bool sp_ballot_lead/,/^}/s/own->accusation.by ||/0 ||/
