# SPDX-License-Identifier: GPL-2.0
# order.c live: a joiner does not know which lanes have ended
/^void sp_order_init/,/^}/s/o->fins += sp_order_lane(o, i)->fin;/;/
