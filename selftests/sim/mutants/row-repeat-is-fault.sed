# SPDX-License-Identifier: GPL-2.0
# order.c replay: a row that lands once more is taken for a lie
# scenario: replay
# scenario: replay-crash
/^int sp_order_row/,/^}/s/if (received < o->start - 1 || consumed < -1 ||/if (received < seen->received || consumed < seen->consumed ||/
