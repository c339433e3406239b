# SPDX-License-Identifier: GPL-2.0
# pass.c: makes a pass without news before it waits for an event
# not by seeds: it only costs passes
/^static int sp_pass_doze/,/^}/s/if (c->polled || c->spin ||/if (true ||/
