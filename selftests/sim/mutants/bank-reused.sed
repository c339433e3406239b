# SPDX-License-Identifier: GPL-2.0
# change.c live: a bank is read while what was written two views ago lies in it
s/	o->epoch = next->epoch;/	o->epoch = next->view->id > 3 ? o->epoch : next->epoch;/
