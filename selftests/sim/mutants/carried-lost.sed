# SPDX-License-Identifier: GPL-2.0
# pass.c: what was to travel in a row counts as pushed, though the row found no room
s/p->pushed\[carrier\].to = from;/;/
