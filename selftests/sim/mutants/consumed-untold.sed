# SPDX-License-Identifier: GPL-2.0
# pass.c: sleeps before consumption was told
s/(c->idle > 1 || c->doze.state != SP_AWAKE)/c->idle > 1/
