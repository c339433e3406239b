# SPDX-License-Identifier: GPL-2.0
# change.c live: rows of an old view are read as those of a new one (review 5)
# scenario: quarantine
s/	o->epoch = next->epoch;/	;/
