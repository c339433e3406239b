# SPDX-License-Identifier: GPL-2.0
# view.c live: who is not up to date itself is to send the state
/^static bool sp_member_gives/,/^}/s/return !(m->flags \& SP_MEMBER_STALE) \&\&/return/
