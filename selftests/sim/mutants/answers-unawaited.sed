# SPDX-License-Identifier: GPL-2.0
# pass.c: sleeps though an answer is about to come
# not by seeds: it only costs writes and wakes
# scenario: lone
/^static u32 sp_pass_patience/,/^}/s/if (!c->polled || c->idle < c->spin)/if (true)/
