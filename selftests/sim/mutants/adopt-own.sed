# SPDX-License-Identifier: GPL-2.0
# agree.c agree: a new leader takes what it has itself, if anything
/^static bool sp_agree_lead/,/^}/s/best = t;/best = best;/
