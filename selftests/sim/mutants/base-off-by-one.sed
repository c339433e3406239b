# SPDX-License-Identifier: GPL-2.0
# change.c live: a lane has its first turn one later
# scenario: messages-lost
s/lane->base = next->base\[i\];/lane->base = next->base[i] + 1;/
