# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: whomever a node suspects it outranks (review 16)
# scenario: or-ed
/^bool sp_suspect(/,/^}/s/node > b->self)/true)/
