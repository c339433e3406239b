# SPDX-License-Identifier: GPL-2.0
# pass.c live: a row carries what lies before parts that were posted
/^static int sp_pass_push(/,/^}/s/ \&\& to.round == end.round \&\&/ \&\&/
