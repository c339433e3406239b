# SPDX-License-Identifier: GPL-2.0
# order.c: where an object would be in the ring is said, not which one it is
s/log->pos = d->flags & SP_DESC_OBJECT ? (u32)lane->taken :/log->pos =/
