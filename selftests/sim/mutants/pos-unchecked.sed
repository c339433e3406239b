# SPDX-License-Identifier: GPL-2.0
# order.c: a peer's place in its ring believed
s/d->len > o->max_len || d->pos != (u32)now.tail ||/d->len > o->max_len ||/
