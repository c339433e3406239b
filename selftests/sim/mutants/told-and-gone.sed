# SPDX-License-Identifier: GPL-2.0
# doze.h: sleeps on when it has told something in sleep
# not by seeds: what readers do wakes a node that sleeps, and little else makes it pass
# scenario: doze-exhaustive
/^static inline void sp_doze_again/,/^}/s/WRITE_ONCE(d->state, SP_DOZING);/(void)d;/
