# SPDX-License-Identifier: GPL-2.0
# order.c: two messages of a peer in one turn
s/index < next_index || index >= round/index + 1 < next_index || index >= round/
