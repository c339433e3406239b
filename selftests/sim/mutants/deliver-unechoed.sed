# SPDX-License-Identifier: GPL-2.0
# agree.c agree: delivers by a trim as soon as it has it
/^static bool sp_agree_all/,/^}/s/if ((alive >> i \& 1)/if (0/
