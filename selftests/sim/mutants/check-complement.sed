# SPDX-License-Identifier: GPL-2.0
# sst.c: the check of a cell is a complement (review 3)
/^u64 sp_mix/,/^}/s/return x ? x : 1;/return ~value ^ (epoch | 1);/
