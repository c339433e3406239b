# SPDX-License-Identifier: GPL-2.0
# order.c: room taken back while a request may read it (review 7)
s/tx->freed < tx->now.count && tx->freed < completed/tx->freed < tx->now.count/
