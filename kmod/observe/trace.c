// SPDX-License-Identifier: GPL-2.0
/* The tracepoints of trace.h, and what makes sure that their words are right. */
#include <linux/build_bug.h>

#include "../group.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static_assert(SP_VIEW_FORMING == 0 && SP_VIEW_ACTIVE == 1 && SP_VIEW_CLOSED == 2 &&
	      SP_VIEW_FAILED == 3);
static_assert(SP_LINK_CONNECTING == 0 && SP_LINK_UP == 1 && SP_LINK_DOWN == 2);
static_assert(SP_AWAKE == 0 && SP_DOZING == 1 && SP_ASLEEP == 2);
static_assert(SP_DID_NEWS == 1 && SP_DID_DELIVER == 2 && SP_DID_FREE == 4 &&
	      SP_DID_CLOSE == 8);
static_assert(SPINDLE_SYNC_RECEIVED == 1 && SPINDLE_SYNC_CONSUMED == 2);
static_assert(SPINDLE_NAME_LEN <= SP_TRACE_NAME);
static_assert(sizeof_field(struct sp_node, name) <= SP_TRACE_NAME);
