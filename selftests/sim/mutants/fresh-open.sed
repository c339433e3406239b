# SPDX-License-Identifier: GPL-2.0
# change.c live: a new lane is pushed to a peer that has not granted it yet
/^static void sp_own_begin/,/^}/s/p->open &= .*/;/
