# SPDX-License-Identifier: GPL-2.0
# order.c: an object is received when it is announced
s/lane->now.count >= lane->here && (d->flags & SP_DESC_OBJECT)/false/
