# SPDX-License-Identifier: GPL-2.0
# view.c live: the next view does not know who was to send the state
# not by seeds: it takes one that comes before another and is served first, and then a view
s/next->giver = old->giver;/next->giver = SP_UID_NOBODY;/
