# SPDX-License-Identifier: GPL-2.0
# trim.c live: who is up to date is found by its rank in the view that begins
/^void sp_order_state/,/^}/s/stale >> was \& 1/stale >> i \& 1/
