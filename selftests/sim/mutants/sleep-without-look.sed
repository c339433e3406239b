# SPDX-License-Identifier: GPL-2.0
# pass.c: sleeps without a look after its flag was raised (review 9)
s/sp_doze_begin(&c->doze);/&\
	sp_doze_look(\&c->doze, true);/
