# SPDX-License-Identifier: GPL-2.0
# trim.c live: the trim is the most that any node has received
# scenario: decided-alone
/^void sp_trim_least/,/^}/{
s/trim\[k\] = ~0ull;/trim[k] = 0;/
s/= min(/= max(/
}
