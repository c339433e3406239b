# SPDX-License-Identifier: GPL-2.0
# order.c live: a joiner thinks that all has been read
s/i == o->self ? o->start - 1 : -1;/o->start - 1;/
