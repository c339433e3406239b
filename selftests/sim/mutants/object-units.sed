# SPDX-License-Identifier: GPL-2.0
# sst.h: an object takes room in the ring
s/return flags & SP_DESC_OBJECT ? 0 : sp_units(len)/return sp_units(len + 0 * flags)/
