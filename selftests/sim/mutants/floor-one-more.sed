# SPDX-License-Identifier: GPL-2.0
# trim.c live: a node reports one round more as delivered than it has delivered
/^static u64 sp_trim_floor/,/^}/s/(rank < turns % o->nlanes)/1/
