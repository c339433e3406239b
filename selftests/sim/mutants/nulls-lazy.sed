# SPDX-License-Identifier: GPL-2.0
# order.c: no turn is given up before it holds up a message
# not by seeds: it only costs time and writes
# scenario: lone
s/rank < j || quiet ? n : n - 1/rank < j ? n : n - 1/
