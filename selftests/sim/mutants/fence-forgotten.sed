# SPDX-License-Identifier: GPL-2.0
# agree.c agree: what a suspected leader proposes is accepted
/^int sp_agree_hear/,/^}/s/ || sp_agree_suspects(a, node))/)/
/^static bool sp_agree_accept/,/^}/s/	if (p->ballot != leader + 1/	for (u32 i = 0; i < a->view->nnodes; i++)\
		if (a->tells[i].accepted.ballot == i + 1 \&\& i != a->self)\
			p = \&a->tells[leader = i].accepted;\
&/
