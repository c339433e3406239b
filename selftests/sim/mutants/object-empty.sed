# SPDX-License-Identifier: GPL-2.0
# order.c: an object may be empty
s/return d->len && d->len <= o->max_object/return d->len <= o->max_object/
