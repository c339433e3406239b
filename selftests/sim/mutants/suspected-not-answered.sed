# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: a node that suspects this one is believed
/^static bool sp_suspect_adopt_one/,/^}/s/if (r->suspected/if (0 \&\& r->suspected/
