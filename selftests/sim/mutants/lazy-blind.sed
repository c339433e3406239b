# SPDX-License-Identifier: GPL-2.0
# pass.c: rests blind to rows that land, though something waits for that
# not by seeds: the end of the rest finds it, late but not lost
s/!tight && !sp_pass_wants(c)/!tight/
