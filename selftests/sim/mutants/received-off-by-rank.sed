# SPDX-License-Identifier: GPL-2.0
# order.c: received_num one rank too high
s/sp_seq(least, o->nlanes, first) - 1/sp_seq(least, o->nlanes, first)/
