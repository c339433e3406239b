# SPDX-License-Identifier: GPL-2.0
# view.c agree: any half may decide
/^bool sp_view_quorum/,/^}/s/ \&\& (nodes \& 1))/)/
