# SPDX-License-Identifier: GPL-2.0
# order.c live: a joiner thinks that all has been read
# not by seeds: it holds nothing from before it joined, so only those who look are misled
s/i == o->self ? o->start - 1 : -1;/o->start - 1;/
