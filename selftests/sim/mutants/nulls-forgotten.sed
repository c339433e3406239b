# SPDX-License-Identifier: GPL-2.0
# pass.c: a round without a message is not told again after -EAGAIN
/^static int sp_pass_push/,/^}/s/p->behind |= SP_WHY_NULL;/;/
