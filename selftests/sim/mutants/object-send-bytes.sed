# SPDX-License-Identifier: GPL-2.0
# order.c: a lane sends objects of any size together
s/tx->object_bytes + len > (u64)tx->max_object \* SP_LANE_OBJECT_ROOM/false/
