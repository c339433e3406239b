# SPDX-License-Identifier: GPL-2.0
# change.c live: a lane begins the view with the last round of the one before
s/lane->base = next->base\[i\];/lane->base = next->base[i] - !!next->base[i];/
