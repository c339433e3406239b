# SPDX-License-Identifier: GPL-2.0
# pass.c: who waits for readers asks nobody
/^static bool sp_pass_asks/,/^}/s/return c->wants > c->peers.*$/return false \&\&/
