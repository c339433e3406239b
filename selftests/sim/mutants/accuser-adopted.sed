# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: a node takes up all suspicions of ranks above the reporter
# scenario: in-return
/^static bool sp_suspect_adopt_one/,/^}/s/r->outranked >> i/(r->suspected \& ~((2ull << node) - 1)) >> i/
