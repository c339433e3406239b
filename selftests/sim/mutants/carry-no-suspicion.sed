# SPDX-License-Identifier: GPL-2.0
# agree.c live: a new view has forgotten who was suspected
/^void sp_agree_carry/,/^}/s/			sp_agree_suspect(a, node);/			;/
