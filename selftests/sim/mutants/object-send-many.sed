# SPDX-License-Identifier: GPL-2.0
# order.c: a lane sends any number of objects
s/tx->objects == SP_LANE_OBJECTS ||/false ||/
