# SPDX-License-Identifier: GPL-2.0
# pass.c: an engine that waits for an object polls for it
s/if (sp_pass_objects(c, p->lanes\[i\]))/if (sp_pass_objects(c, p->lanes[i]) || sp_order_lacks(\&c->order, p->lanes[i]))/
