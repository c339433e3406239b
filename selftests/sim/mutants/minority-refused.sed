# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a group that may go on without a majority does not
# scenario: no-majority
/^int sp_ballot_step/,/^}/s/if (!b->minority \&\& /if (/
