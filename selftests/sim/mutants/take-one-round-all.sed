# SPDX-License-Identifier: GPL-2.0
# order.c: turns behind a message that was left count as empty
s/now.round = all ? round : next_index;/now.round = round;/
