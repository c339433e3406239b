# SPDX-License-Identifier: GPL-2.0
# change.c live: what was announced in the view before is forgotten
s/lane->base = next->base\[i\];/&\n\t\tlane->seen = lane->now;/
