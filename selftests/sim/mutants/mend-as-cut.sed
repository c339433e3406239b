# SPDX-License-Identifier: GPL-2.0
# change.c live: a connection that is back is not used
/^void sp_core_mend/,/^}/s/p->cut = false;/;/
