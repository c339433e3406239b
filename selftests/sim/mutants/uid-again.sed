# SPDX-License-Identifier: GPL-2.0
# view.c live: a member that comes gets the number of one that went
s/next->next_uid = old->next_uid;/next->next_uid = old->nmembers;/
