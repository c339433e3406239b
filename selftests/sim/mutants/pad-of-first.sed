# SPDX-License-Identifier: GPL-2.0
# order.c: the unused end cut from the wrong stretch
s/run->bytes\[1\].len -= to->pad/run->bytes[0].len -= to->pad/
