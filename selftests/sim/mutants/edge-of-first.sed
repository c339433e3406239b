# SPDX-License-Identifier: GPL-2.0
# trim.c live: the ragged edge ends with the first lane
/^int sp_order_trim/,/^}/s/	for (i = 0; i < o->nlanes; i++)$/	for (i = 0; i < 1; i++)/
