# SPDX-License-Identifier: GPL-2.0
# view.c live: a member gets the number of nobody
# not by seeds: after sixteen million joins
/^static u32 sp_view_uid/,/^}/s/ || uid == SP_UID_NOBODY//
