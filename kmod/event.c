// SPDX-License-Identifier: GPL-2.0
/*
 * Events in a group's stream. The log names an event by its type and number; what
 * there is to say is kept here as long as a reader may come by it, and as long as
 * anybody holds it.
 */
#include <linux/slab.h>

#include "af_spindle.h"
#include "engine.h"

#define SP_EVENTS_MAX	1024U	/* that are kept, if twice the members are not more */

static u32 sp_event_left(const struct sp_view *old, const struct sp_proposal *p,
			 struct sp_left *left)
{
	u32 n = 0;
	u32 i;

	for (i = 0; i < old->nmembers; i++) {
		const struct sp_member *m = &old->members[i];

		if (p->reason[i] == SP_STAYS)
			continue;
		if (left) {
			left[n].addr = m->addr;
			left[n].rank = i;
			left[n].uid = m->uid;
			left[n].flags = m->flags;
			left[n].reason = p->reason[i];
		}
		n++;
	}
	return n;
}

/**
 * sp_event_make() - make the event of a view that begins
 * @view: the view; copied
 * @old: the view before, NULL when it is the group's first
 * @p: with @old: how the one became the other
 *
 * Context: may sleep.
 *
 * Return: the event, with one reference; or NULL without memory.
 */
struct sp_event *sp_event_make(const struct sp_view *view,
			       const struct sp_view *old,
			       const struct sp_proposal *p)
{
	u32 nleft = old ? sp_event_left(old, p, NULL) : 0;
	struct sp_event *ev;

	ev = kvzalloc(struct_size(ev, left, nleft), GFP_KERNEL_ACCOUNT);
	if (!ev)
		return NULL;
	kref_init(&ev->ref);
	INIT_LIST_HEAD(&ev->on_group);
	ev->type = SPINDLE_EVENT_VIEW;
	ev->began = ktime_get_real();
	ev->view = *view;
	if (old) {
		ev->nleft = sp_event_left(old, p, ev->left);
		ev->stayed = old->nmembers - nleft;
	}
	return ev;
}

static void sp_event_free(struct kref *ref)
{
	kvfree(container_of(ref, struct sp_event, ref));
}

/**
 * sp_event_put() - drop a reference
 * @ev: the event, or NULL
 *
 * Context: any but hard interrupt.
 */
void sp_event_put(struct sp_event *ev)
{
	if (ev)
		kref_put(&ev->ref, sp_event_free);
}

/**
 * sp_event_publish() - put the event of a view into the stream
 * @g: the group
 * @ev: the event; its reference becomes the group's
 *
 * Readers come by it once the caller has published the log; not in a group that
 * is closed, whose stream has ended. When this fails the reference stays the
 * caller's.
 *
 * Context: the engine's lock is held, or there is no engine for the group yet.
 *
 * Return: 0, or -ENOBUFS when the log has no room, or too many are kept already.
 */
int sp_event_publish(struct sp_group *g, struct sp_event *ev)
{
	struct sp_order *o = &g->core.order;
	struct sp_event *was;
	bool told = g->view.state != SP_VIEW_CLOSED;
	int ret;

	ev->at = o->published;
	ev->seq = o->delivered;
	if (told) {
		if (g->nevents >= max(SP_EVENTS_MAX, 2 * g->config.limit))
			return -ENOBUFS;
		ret = sp_order_event(o, ev->type, (u32)ev->view.id);
		if (ret)
			return ret;
		kref_get(&ev->ref);
	}
	spin_lock_bh(&g->events_lock);
	if (told) {
		list_add_tail(&ev->on_group, &g->events);
		g->nevents++;
	}
	was = g->current_view;
	g->current_view = ev;
	spin_unlock_bh(&g->events_lock);
	sp_event_put(was);
	return 0;
}

/**
 * sp_event_find() - the event of a type and number
 * @g: the group
 * @type: enum spindle_event_type
 * @number: its number
 *
 * Context: any but interrupt.
 *
 * Return: the event, with a reference, or NULL when no reader may come by it any
 * more, or there never was one.
 */
struct sp_event *sp_event_find(struct sp_group *g, u32 type, u32 number)
{
	struct sp_event *ev, *found = NULL;

	spin_lock_bh(&g->events_lock);
	list_for_each_entry(ev, &g->events, on_group) {
		if (ev->type != type || (u32)ev->view.id != number)
			continue;
		kref_get(&ev->ref);
		found = ev;
		break;
	}
	spin_unlock_bh(&g->events_lock);
	return found;
}

/**
 * sp_event_view() - the view that the group is in
 * @g: the group
 *
 * Context: any but interrupt.
 *
 * Return: its event, with a reference, or NULL before the first.
 */
struct sp_event *sp_event_view(struct sp_group *g)
{
	struct sp_event *ev;

	spin_lock_bh(&g->events_lock);
	ev = g->current_view;
	if (ev)
		kref_get(&ev->ref);
	spin_unlock_bh(&g->events_lock);
	return ev;
}

/**
 * sp_events_drop() - let go of events that no reader can come by any more
 * @g: the group
 * @all: of all of them: there are no readers any more
 *
 * Context: without @all the engine's lock is held.
 */
void sp_events_drop(struct sp_group *g, bool all)
{
	struct sp_event *ev, *next;
	LIST_HEAD(done);

	spin_lock_bh(&g->events_lock);
	list_for_each_entry_safe(ev, next, &g->events, on_group) {
		/* They are in the order of the log. */
		if (!all && ev->at >= g->core.order.released)
			break;
		list_move_tail(&ev->on_group, &done);
		g->nevents--;
	}
	ev = NULL;
	if (all)
		swap(ev, g->current_view);
	spin_unlock_bh(&g->events_lock);
	sp_event_put(ev);
	list_for_each_entry_safe(ev, next, &done, on_group) {
		list_del_init(&ev->on_group);
		sp_event_put(ev);
	}
}

/**
 * sp_events_many() - are more events kept than those need that do not want them
 * @g: the group
 *
 * The log has room for as many as there may be members, beside all messages.
 *
 * Return: true when it is half of that.
 */
bool sp_events_many(const struct sp_group *g)
{
	return READ_ONCE(g->nevents) > max(g->config.limit / 2, 1U);
}

/**
 * sp_event_size() - what an event takes as programs are given it
 * @ev: the event
 *
 * Return: bytes.
 */
size_t sp_event_size(const struct sp_event *ev)
{
	const struct spindle_event *e = NULL;

	return struct_size(e, member, ev->view.nmembers + ev->nleft);
}

/* A member as programs know it. */
static void sp_event_member(struct spindle_event_member *to,
			    const struct sp_addr *addr, u32 rank, u32 uid,
			    u32 flags)
{
	memcpy(&to->addr, addr->b, sizeof(to->addr));
	to->rank = rank;
	to->uid = uid;
	if (flags & SP_MEMBER_RECEIVER)
		to->flags |= SPINDLE_EM_RECEIVER;
	if (flags & SP_MEMBER_STALE)
		to->flags |= SPINDLE_EM_STALE;
}

/**
 * sp_event_state() - an event for a program: another member is up to date
 * @log: the private message that says so
 * @view: number of the view it was delivered in
 * @to: the result
 */
void sp_event_state(const struct sp_log *log, u64 view, struct spindle_event *to)
{
	memset(to, 0, sizeof(*to));
	to->type = SPINDLE_EVENT_STATE;
	to->number = sp_desc_uid(log->flags);
	to->view = view;
	to->seq = log->seq;
	to->member_size = sizeof(to->member[0]);
}

/**
 * sp_event_give() - an event for a program
 * @ev: the event
 * @g: the group
 * @local: the program's member
 * @to: the result, of sp_event_size() bytes
 */
void sp_event_give(const struct sp_event *ev, const struct sp_group *g,
		   const struct sp_local *local, struct spindle_event *to)
{
	const struct sp_view *v = &ev->view;
	u32 i;

	BUILD_BUG_ON(SPINDLE_REASON_LEFT != (int)SP_LEFT);
	BUILD_BUG_ON(SPINDLE_REASON_EXITED != (int)SP_EXITED);
	BUILD_BUG_ON(SPINDLE_REASON_LOST != (int)SP_LOST);
	BUILD_BUG_ON(SPINDLE_REASON_SLOW != (int)SP_SLOW);
	memset(to, 0, sp_event_size(ev));
	to->type = ev->type;
	to->number = (u32)v->id;
	to->view = v->id;
	to->seq = ev->seq;
	to->members = v->nmembers;
	to->left = ev->nleft;
	to->member_size = sizeof(to->member[0]);
	for (i = 0; i < v->nmembers; i++) {
		const struct sp_member *m = &v->members[i];

		sp_event_member(&to->member[i], &m->addr, i, m->uid, m->flags);
		if (i >= ev->stayed)
			to->member[i].flags |= SPINDLE_EM_JOINED;
		if (m->uid == v->giver)
			to->member[i].flags |= SPINDLE_EM_GIVES;
		if (m->cookie == local->cookie &&
		    !sp_addr_cmp(&m->addr, &g->node->addr))
			to->member[i].flags |= SPINDLE_EM_SELF;
	}
	for (i = 0; i < ev->nleft; i++) {
		const struct sp_left *l = &ev->left[i];

		sp_event_member(&to->member[v->nmembers + i], &l->addr, l->rank,
				l->uid, l->flags & ~SP_MEMBER_STALE);
		to->member[v->nmembers + i].reason = l->reason;
	}
}
