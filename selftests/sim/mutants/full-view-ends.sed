# SPDX-License-Identifier: GPL-2.0
# ballot.c live: a request to join that there is no room for ends the view
/^static bool sp_ballot_has_room/,/^}/s/b->view->nmembers < b->limit &&/1 \&\&/
