# SPDX-License-Identifier: GPL-2.0
# order.c: a length of an object believed
s/return d->len && d->len <= o->max_object/return d->len/
