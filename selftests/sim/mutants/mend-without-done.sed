# SPDX-License-Identifier: GPL-2.0
# change.c live: what had not landed is not pushed again
# scenario: blip
/^void sp_core_mend/,/^}/s/p->pushed\[i\].to = p->pushed\[i\].done;/;/
