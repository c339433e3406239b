# SPDX-License-Identifier: GPL-2.0
# agree.c agree: decides when one has not accepted
/^static bool sp_agree_all/,/^}/{
s/	u32 i;/	u32 i, missing = 0;/
s/ballot != ballot)/ballot != ballot \&\& missing++)/
}
