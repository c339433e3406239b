# SPDX-License-Identifier: GPL-2.0
# sst.h live: a view writes its rows over those of the one before
s/return (view \& 1) \* SP_ROW_MAX;/return (view \& 0) * SP_ROW_MAX;/
