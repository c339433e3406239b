# SPDX-License-Identifier: GPL-2.0
# view.c live: who is to send the state is chosen anew in each view
# not by seeds: it takes one that comes before another and is served first, and then a view
/^void sp_view_giver/,/^}/s/else if (was < 0 ||.*/else/
