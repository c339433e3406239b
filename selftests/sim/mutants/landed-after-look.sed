# SPDX-License-Identifier: GPL-2.0
# pass.c: reads how far its flag is after the look, not before (review 9)
/^int sp_pass(/,/^}/{
/Before the look/d
/p->landed = c->ops->landed(c, n);/d
/sp_pass_landed(c, p);/d
s/	ret = sp_pass_wake(c, n);/	ret = 0;/
s/^		did |= ret;/&\
		p->landed = c->ops->landed(c, n);\
		sp_pass_landed(c, p);\
		ret = sp_pass_wake(c, n);\
		if (ret < 0)\
			return ret;/
}
