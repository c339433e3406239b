# SPDX-License-Identifier: GPL-2.0
# order.c: no descriptor kept for SP_DESC_FIN
s/>= tx->depth - 1)/>= tx->depth)/
