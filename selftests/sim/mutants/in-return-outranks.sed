# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: a node on its way out takes others with it
# scenario: in-return
/^bool sp_suspect_in_return/,/^}/s/sp_suspect_as(b, node, false)/sp_suspect(b, node)/
