# SPDX-License-Identifier: GPL-2.0
# view.c live: a view that is told may have two members of one number
# not by seeds: no node lies there
/^int sp_view_told/,/^}/s/sp_view_find_uid(v, m->uid) != (int)i)/0)/
