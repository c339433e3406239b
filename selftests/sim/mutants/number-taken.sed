# SPDX-License-Identifier: GPL-2.0
# view.c live: a lane gets a number that another one of its node has
/^static u32 sp_view_free_nr/,/^}/s/used |= 1ull << v->members\[i\].nr;/used |= 1ull << (v->members[i].nr + 1);/
