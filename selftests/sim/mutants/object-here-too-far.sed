# SPDX-License-Identifier: GPL-2.0
# order.c: the object that follows one that is here is taken for it
s/lane->here = lane->now.count + 1/lane->here = lane->now.count + 2/
