# SPDX-License-Identifier: GPL-2.0
# view.c: a list that names a member twice is ranked
# not by seeds: a run begins with its view
/^static int sp_view_rank_nodes/,/^}/s/!= (int)i)/< 0)/
