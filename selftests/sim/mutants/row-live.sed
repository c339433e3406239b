# SPDX-License-Identifier: GPL-2.0
# pass.c: the row tells what is not posted yet (review 1)
/^static void sp_fill_row/,/^}/{
s/p->pushed\[i\].to.round/c->own[i].tx->now.round/
s/p->pushed\[i\].to.count/c->own[i].tx->now.count/
}
