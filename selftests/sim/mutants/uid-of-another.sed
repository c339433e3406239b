# SPDX-License-Identifier: GPL-2.0
# view.c live: a member gets the number of another one
# not by seeds: after sixteen million joins
/^static u32 sp_view_uid/,/^}/s/i < v->nmembers ||/0 ||/
