# SPDX-License-Identifier: GPL-2.0
# order.c: null rule without regard to rank (review 8)
# not by seeds: it only gives up more turns than it has to
s/rank < j || quiet ? n : n - 1/n/
