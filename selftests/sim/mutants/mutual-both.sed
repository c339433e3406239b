# SPDX-License-Identifier: GPL-2.0
# agree.c agree: what is said of lower ranks is taken up, too
/^static bool sp_agree_adopt/,/^}/s/for (q = r + 1; q < n; q++)/for (q = 0; q < n; q++)/
