# SPDX-License-Identifier: GPL-2.0
# suspect.c ballots: a connection that was refused counts as lost, too
/^bool sp_suspect(/,/^}/s/!sp_suspects(b, node) \&\& //
