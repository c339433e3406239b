# SPDX-License-Identifier: GPL-2.0
# ballot.c ballots: decides when one node has not accepted
/^static bool sp_ballot_all/,/^}/{
s/	u32 i;/	u32 i, missing = 0;/
s/ballot != ballot)/ballot != ballot \&\& missing++)/
}
