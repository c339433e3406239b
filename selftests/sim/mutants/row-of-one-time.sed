# SPDX-License-Identifier: GPL-2.0
# order.c replay: the cells of a row are taken to be read at one time
# not by seeds: whole rows have to land between two reads, amid those that land once more
/^int sp_order_row/,/^}/s/^	if (consumed > seen->consumed)/	if ((received < seen->received \&\& consumed > seen->consumed) ||\n	    (received > seen->received \&\& consumed < seen->consumed))\n		return -EPROTO;\n&/
