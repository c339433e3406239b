# SPDX-License-Identifier: GPL-2.0
# trim.c live: whose lane has ended is found by ranks of the view that begins
/^void sp_order_state/,/^}/s/sp_order_lane(o, old->members\[was\].lane)->fin/sp_order_lane(o, m->lane)->fin/
