# SPDX-License-Identifier: GPL-2.0
# order.c: null rule without regard to rank (review 8)
s/rank < j ? n : n - 1/n/
