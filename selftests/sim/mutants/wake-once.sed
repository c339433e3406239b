# SPDX-License-Identifier: GPL-2.0
# doze.h: one wake for all times
s/epoch == \*woken/*woken/
