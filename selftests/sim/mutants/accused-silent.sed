# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: a node that is accused does not answer
# scenario: answer
/^static bool sp_suspect_adopt_one/,/^}/s/if (r->accusation.by/if (0 \&\& r->accusation.by/
