# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a new view has forgotten who was suspected
/^void sp_ballot_carry/,/^}/s/			sp_suspect_as(b, node, .*/			;/
