# SPDX-License-Identifier: GPL-2.0
# pass.c: sleeps before what the last look told has landed
s/sp_doze_look(&c->doze, landed && !waits);/sp_doze_look(\&c->doze, landed);/
