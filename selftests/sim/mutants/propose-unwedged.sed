# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a leader does not wait for counts
# scenario: pause
# scenario: two-in-a-row
# scenario: false-suspicion
/^static u64 sp_ballot_unpromised/,/^}/s/!r->wedged || //
