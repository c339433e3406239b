# SPDX-License-Identifier: GPL-2.0
# pass.c: a row posted without the lock that posting is to be done under
/^static int sp_pass_row/,/^}/{
/sp_pass_hold/d
/sp_pass_unhold/d
}
