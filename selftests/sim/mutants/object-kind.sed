# SPDX-License-Identifier: GPL-2.0
# order.c: a way to spread an object that there is not
s/d->len <= o->max_object &&$/d->len <= o->max_object;/
s/^\t       sp_desc_kind(d->flags) <= SP_SCHEDULE_HYBRID;$//
