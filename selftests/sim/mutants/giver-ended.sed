# SPDX-License-Identifier: GPL-2.0
# view.c live: who has said its last is to send the state
# not by seeds: it is for programs to do
/^static bool sp_member_gives/,/^}/s/!(fins >> m->lane \& 1)/1/
