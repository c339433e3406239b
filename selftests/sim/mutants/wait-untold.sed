# SPDX-License-Identifier: GPL-2.0
# pass.c: who is asked does not tell that readers are done
/^static bool sp_pass_tells/,/^}/s/if (p->wanted > p->consumed \&\&/if (0 \&\&/
