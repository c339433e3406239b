# SPDX-License-Identifier: GPL-2.0
# pass.c: the row of a flag tears cells of news, and nobody looks again
# not by seeds: two rows have to land just so
/^static void sp_fill_row/,/^}/s/news ? self->\([a-z]*\) : p->[a-z]*/self->\1/
