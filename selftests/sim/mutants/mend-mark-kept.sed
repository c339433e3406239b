# SPDX-License-Identifier: GPL-2.0
# change.c live: what was under way when a connection broke counts as landed
/^void sp_core_mend/,/^}/{
s/p->pushed\[i\].mark = p->pushed\[i\].done;/;/
s/p->pushed\[i\].to = p->pushed\[i\].done;/p->pushed[i].to = p->pushed[i].mark;/
}
