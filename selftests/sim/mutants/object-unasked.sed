# SPDX-License-Identifier: GPL-2.0
# pass.c: what was announced before is not asked for again
s/if (sp_pass_objects(c, p->lanes\[i\]))/if (ret \&\& sp_pass_objects(c, p->lanes[i]))/
