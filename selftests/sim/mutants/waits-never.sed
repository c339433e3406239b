# SPDX-License-Identifier: GPL-2.0
# suspect.c live: a node that hears no majority suspects whom it does not hear
# not by seeds: a node that is out too soon is as one that was cut off for longer
# scenario: majority-back
/^bool sp_suspect_waits/,/^}/s/return .*/return false;/
