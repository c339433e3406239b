# SPDX-License-Identifier: GPL-2.0
# agree.c agree: who has decided is waited for
/^static bool sp_agree_learn/,/^}/s/return true;/return false;/
