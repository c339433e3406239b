# SPDX-License-Identifier: GPL-2.0
# pass.c live: what is private of that which comes amid a pass is not looked at
# not by seeds: nobody commits amid a pass there
/^static void sp_pass_look_own/,/^}/s/own->privates = own->tx->privates;/if (!round) own->privates = own->tx->privates;/
