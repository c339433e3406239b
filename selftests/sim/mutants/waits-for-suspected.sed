# SPDX-License-Identifier: GPL-2.0
# suspect.c live: nodes that are suspected count as heard
# not by seeds: what is suspected is hardly ever heard
/^bool sp_suspect_waits/,/^}/s/sp_unsuspected(b) & heard/heard/
