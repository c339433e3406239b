# SPDX-License-Identifier: GPL-2.0
# change.c live: the order begins anew with each view
s/o->start = o->delivered + 1;/o->start = 0;/
