# SPDX-License-Identifier: GPL-2.0
# agree.c agree: a leader does not wait for promises
s/if (!t->wedged || (below \& ~t->suspected))/if (!t->wedged)/
