# SPDX-License-Identifier: GPL-2.0
# pass.c: reads how far its flag is after the look, not before (review 9)
/^static int sp_pass_hear(/,/^}/{
/Before the look/d
/ret = sp_pass_peer/d
s/did = ret;/did |= ret;/
s/	c->faulty = node;/&\
	ret = sp_pass_peer(c, node, received);\
	if (ret < 0)\
		return ret;\
	did = ret;/
s/return ret < 0 ? ret : did | ret;/return did;/
}
