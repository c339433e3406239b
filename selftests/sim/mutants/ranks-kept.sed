# SPDX-License-Identifier: GPL-2.0
# change.c live: a lane keeps the rank of its member in the view before
/^void sp_core_ranks/,/^}/s/lane->member = i;/;/
