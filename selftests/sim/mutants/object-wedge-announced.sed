# SPDX-License-Identifier: GPL-2.0
# change.c live: what was announced is counted at the wedge
/^int sp_core_wedge/,/^}/s/->now.round;/->seen.round;/
