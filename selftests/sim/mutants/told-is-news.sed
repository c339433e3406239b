# SPDX-License-Identifier: GPL-2.0
# pass.c: telling what was consumed keeps a node awake
# not by seeds: it only costs time awake
/^static int sp_pass_push(/,/^}/s/return news ? SP_DID_NEWS : did;/return news || tells ? SP_DID_NEWS : did;/
