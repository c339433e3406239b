# SPDX-License-Identifier: GPL-2.0
# order.c: a peer may announce any number of objects
s/^\t\t    objects > SP_LANE_OBJECTS ||$//
