# SPDX-License-Identifier: GPL-2.0
# doze.h: news that ends dozing leaves the flag as it was, for the next time
# scenario: doze-exhaustive
/^static inline bool sp_doze_wake/,/^}/s/	d->epoch++;/	d->epoch += asleep;/
/^static inline bool sp_doze_wake/,/^}/s/^{/{\
	bool asleep = d->state == SP_ASLEEP;\
/
/^static inline void sp_doze_begin/,/^}/s/d->epoch++/d->epoch |= 1/
