# SPDX-License-Identifier: GPL-2.0
# agree.c agree: a new leader computes the trim anew (review 14)
/^static bool sp_agree_lead/,/^}/s/		own->accepted = best->accepted;/	{\
		struct sp_proposal q, was = best->accepted;\
\
		sp_agree_propose(a, alive, \&q);\
		own->accepted = was;\
		memcpy(own->accepted.trim, q.trim, sizeof(q.trim));\
	}/
