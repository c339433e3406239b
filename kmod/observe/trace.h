/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: events/spindle in tracefs, Documentation/tracing.rst. Each step that a
 * group, a link or a peer takes has one, and so has each pass. What they are given is
 * at hand where they are: with none enabled they cost nothing.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM spindle

#if !defined(SPINDLE_OBSERVE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SPINDLE_OBSERVE_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

#define SP_TRACE_NAME	64
#define SP_TRACE_WHY	48

/* A group comes to another state: enum sp_view_state. */
TRACE_EVENT(spindle_group_state,
	TP_PROTO(const char *node, const char *group, u64 view, int state, int error),
	TP_ARGS(node, group, view, state, error),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(int, state)
		__field(int, error)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->state = state;
		__entry->error = error;
	),
	TP_printk("node=%s group=%s view=%llu state=%s error=%d",
		  __entry->node, __entry->group, __entry->view,
		  __print_symbolic(__entry->state, { 0, "forming" },
				   { 1, "active" }, { 2, "closed" },
				   { 3, "failed" }),
		  __entry->error)
);

/* A node of a view is suspected, here: the log says so, too. */
TRACE_EVENT(spindle_suspect,
	TP_PROTO(const char *node, const char *group, u64 view, u32 rank,
		 const char *peer, const char *why),
	TP_ARGS(node, group, view, rank, peer, why),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(u32, rank)
		__array(char, peer, SP_TRACE_NAME)
		__array(char, why, SP_TRACE_WHY)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->rank = rank;
		strscpy(__entry->peer, peer, SP_TRACE_NAME);
		strscpy(__entry->why, why, SP_TRACE_WHY);
	),
	TP_printk("node=%s group=%s view=%llu rank=%u peer=%s why=\"%s\"",
		  __entry->node, __entry->group, __entry->view, __entry->rank,
		  __entry->peer, __entry->why)
);

/* A node takes nothing more of a view; everything up to @delivered was delivered. */
TRACE_EVENT(spindle_wedge,
	TP_PROTO(const char *node, const char *group, u64 view, s64 delivered),
	TP_ARGS(node, group, view, delivered),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(s64, delivered)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->delivered = delivered;
	),
	TP_printk("node=%s group=%s view=%llu delivered=%lld",
		  __entry->node, __entry->group, __entry->view,
		  __entry->delivered)
);

/* A node sends its report: what it has accepted and whom it suspects, by rank. */
TRACE_EVENT(spindle_report,
	TP_PROTO(const char *node, const char *group, u64 view, bool wedged,
		 u32 ballot, u64 suspected),
	TP_ARGS(node, group, view, wedged, ballot, suspected),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(bool, wedged)
		__field(u32, ballot)
		__field(u64, suspected)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->wedged = wedged;
		__entry->ballot = ballot;
		__entry->suspected = suspected;
	),
	TP_printk("node=%s group=%s view=%llu wedged=%d ballot=%#x suspected=%#llx",
		  __entry->node, __entry->group, __entry->view, __entry->wedged,
		  __entry->ballot, __entry->suspected)
);

/* The nodes have agreed on how a view ends; its memory may have to be made. */
TRACE_EVENT(spindle_decided,
	TP_PROTO(const char *node, const char *group, u64 view, u32 come),
	TP_ARGS(node, group, view, come),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(u32, come)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->come = come;
	),
	TP_printk("node=%s group=%s view=%llu come=%u", __entry->node,
		  __entry->group, __entry->view, __entry->come)
);

/* A view begins, @us microseconds after the one before was wedged. */
TRACE_EVENT(spindle_view,
	TP_PROTO(const char *node, const char *group, u64 view, u32 members,
		 u32 nodes, u32 gone, u32 come, u64 us),
	TP_ARGS(node, group, view, members, nodes, gone, come, us),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(u32, members)
		__field(u32, nodes)
		__field(u32, gone)
		__field(u32, come)
		__field(u64, us)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->members = members;
		__entry->nodes = nodes;
		__entry->gone = gone;
		__entry->come = come;
		__entry->us = us;
	),
	TP_printk("node=%s group=%s view=%llu members=%u nodes=%u gone=%u come=%u us=%llu",
		  __entry->node, __entry->group, __entry->view,
		  __entry->members, __entry->nodes, __entry->gone,
		  __entry->come, __entry->us)
);

/* Two nodes are connected, or are not any more: enum sp_link_state. */
TRACE_EVENT(spindle_link,
	TP_PROTO(const char *node, const char *peer, int state, int error),
	TP_ARGS(node, peer, state, error),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, peer, SP_TRACE_NAME)
		__field(int, state)
		__field(int, error)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->peer, peer, SP_TRACE_NAME);
		__entry->state = state;
		__entry->error = error;
	),
	TP_printk("node=%s peer=%s state=%s error=%d", __entry->node,
		  __entry->peer,
		  __print_symbolic(__entry->state, { 0, "connecting" },
				   { 1, "up" }, { 2, "down" }),
		  __entry->error)
);

/* Connection @nr of a link that is up is lost, or there is another one. */
TRACE_EVENT(spindle_connection,
	TP_PROTO(const char *node, const char *peer, bool made, u32 nr),
	TP_ARGS(node, peer, made, nr),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, peer, SP_TRACE_NAME)
		__field(bool, made)
		__field(u32, nr)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->peer, peer, SP_TRACE_NAME);
		__entry->made = made;
		__entry->nr = nr;
	),
	TP_printk("node=%s peer=%s step=%s nr=%u", __entry->node, __entry->peer,
		  __entry->made ? "made" : "lost", __entry->nr)
);

/* No majority of the view is heard: the group waits; or it does so no longer. */
TRACE_EVENT(spindle_minority,
	TP_PROTO(const char *node, const char *group, u64 view, bool minority),
	TP_ARGS(node, group, view, minority),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u64, view)
		__field(bool, minority)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->view = view;
		__entry->minority = minority;
	),
	TP_printk("node=%s group=%s view=%llu step=%s", __entry->node, __entry->group,
		  __entry->view, __entry->minority ? "waits" : "over")
);

/* A step of another node of a group: its key has come, a bye has, or was said. */
TRACE_EVENT(spindle_peer,
	TP_PROTO(const char *node, const char *group, const char *peer,
		 const char *step),
	TP_ARGS(node, group, peer, step),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__array(char, peer, SP_TRACE_NAME)
		__array(char, step, SP_TRACE_WHY)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		strscpy(__entry->peer, peer, SP_TRACE_NAME);
		strscpy(__entry->step, step, SP_TRACE_WHY);
	),
	TP_printk("node=%s group=%s peer=%s step=\"%s\"", __entry->node,
		  __entry->group, __entry->peer, __entry->step)
);

/* A program has joined a group, or has not. */
TRACE_EVENT(spindle_join,
	TP_PROTO(const char *node, const char *group, int result),
	TP_ARGS(node, group, result),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(int, result)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->result = result;
	),
	TP_printk("node=%s group=%s result=%d", __entry->node, __entry->group,
		  __entry->result)
);

/* A program waits, or does not wait any more, for all or their readers. */
TRACE_EVENT(spindle_sync,
	TP_PROTO(const char *node, const char *group, u32 what, u64 messages,
		 int result),
	TP_ARGS(node, group, what, messages, result),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(u32, what)
		__field(u64, messages)
		__field(int, result)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->what = what;
		__entry->messages = messages;
		__entry->result = result;
	),
	TP_printk("node=%s group=%s what=%s messages=%llu result=%d",
		  __entry->node, __entry->group,
		  __print_flags(__entry->what, "|", { 1, "received" },
				{ 2, "consumed" }),
		  __entry->messages, __entry->result)
);

/* A pass over a group: what it did, and how far the log is then. */
TRACE_EVENT(spindle_pass,
	TP_PROTO(const char *node, const char *group, int did, u64 published,
		 u64 released, int doze),
	TP_ARGS(node, group, did, published, released, doze),
	TP_STRUCT__entry(
		__array(char, node, SP_TRACE_NAME)
		__array(char, group, SP_TRACE_NAME)
		__field(int, did)
		__field(u64, published)
		__field(u64, released)
		__field(int, doze)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, SP_TRACE_NAME);
		strscpy(__entry->group, group, SP_TRACE_NAME);
		__entry->did = did;
		__entry->published = published;
		__entry->released = released;
		__entry->doze = doze;
	),
	TP_printk("node=%s group=%s did=%s published=%llu released=%llu %s",
		  __entry->node, __entry->group,
		  __entry->did < 0 ? "fault" :
		  __print_flags(__entry->did, "|", { 1, "news" },
				{ 2, "deliver" }, { 4, "free" }, { 8, "close" }),
		  __entry->published, __entry->released,
		  __print_symbolic(__entry->doze, { 0, "awake" },
				   { 1, "dozing" }, { 2, "asleep" }))
);

#endif /* SPINDLE_OBSERVE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
