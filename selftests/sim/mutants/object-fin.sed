# SPDX-License-Identifier: GPL-2.0
# sst.h: a lane ends with an object
s/known = SP_DESC_OBJECT | SP_DESC_KIND_MASK/known |= SP_DESC_OBJECT | SP_DESC_KIND_MASK/
