# SPDX-License-Identifier: GPL-2.0
# pass.c: sleeps before consumption was told
/^static bool sp_pass_untold/,/^}/s/return o->nodes.*consumed > p->consumed;/return false;/
