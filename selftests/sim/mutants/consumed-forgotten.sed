# SPDX-License-Identifier: GPL-2.0
# change.c live: what was left unread of the last view counts as read
/^void sp_core_install/,/^}/{
s/o->nodes\[i\].consumed = before < 0 ? o->start - 1 :/o->nodes[i].consumed = o->start - 1;/
/next->seen\[before\].consumed;/d
}
