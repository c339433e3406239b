# SPDX-License-Identifier: GPL-2.0
# pass.c: sleeps before its flag has landed (review 9)
s/sp_doze_look(&c->doze, landed && !waits);/sp_doze_look(\&c->doze, true);/
