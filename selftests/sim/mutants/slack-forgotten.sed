# SPDX-License-Identifier: GPL-2.0
# change.c live: rounds left of the last view are too many
# not by seeds: no run promises that far ahead
s/o->slack = (u64)SP_MAX_MEMBERS \* o->depth;/o->slack = 0;/
