# SPDX-License-Identifier: GPL-2.0
# order.c: a peer may announce objects of any size together
s/bytes > (u64)o->max_object \* SP_LANE_OBJECT_ROOM ||//
