# SPDX-License-Identifier: GPL-2.0
# pass.c: nobody looks who waits for readers
# not by seeds: it is told before sleep, late but not lost
s/p->wanted = (s64)(wanted - 1);/;/
