# SPDX-License-Identifier: GPL-2.0
# trim.c live: the trim goes by what nodes have received that are lost
/^void sp_trim_least/,/^}/s/if (nodes >> i & 1)/if (1)/
