# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: a node whom most suspect is heard on
# not by seeds: the lowest rank has to be away for just so long that not all suspect it
# scenario: away
/^static bool sp_suspect_doomed/,/^}/s/if (!sp_view_quorum(b->view, rest))/if (0)/
