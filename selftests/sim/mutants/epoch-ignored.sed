# SPDX-License-Identifier: GPL-2.0
# sst.c: a cell of an earlier view counts in this one (review 5)
/^u64 sp_mix/,/^}/s/\* (epoch + 1);/+ 0 * epoch;/
