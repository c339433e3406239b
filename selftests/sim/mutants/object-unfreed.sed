# SPDX-License-Identifier: GPL-2.0
# order.c: who sends never gets the room of its objects back
/^bool sp_tx_free/,/^}/s/tx->objects--;//
