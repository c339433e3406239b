# SPDX-License-Identifier: GPL-2.0
# pass.c: rests blind to what readers do, though they are waited for
s/!sp_pass_awaited(c));/true);/
