# SPDX-License-Identifier: GPL-2.0
# sst.h: what a cell guards may be read before the cell
/^static inline bool sp_cell_get/,/^}/s/sp_read_barrier();/;/
