# SPDX-License-Identifier: GPL-2.0
# order.c: a slot says by itself whether it is valid (review 2)
s/lane->taken == lane->now.count || d->index/d->index/
