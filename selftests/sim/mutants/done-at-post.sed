# SPDX-License-Identifier: GPL-2.0
# pass.c: a request is complete once posted (review 7)
/^static void sp_pass_landed/,/^}/s/if (p->ticket <= landed)/if (p->ticket)/
