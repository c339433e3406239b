// SPDX-License-Identifier: GPL-2.0
/*
 * Events in a group's stream. The log names one by its number; what there is to
 * say is in a record, which stays as long as a reader may come by it, and as
 * long as anybody holds it.
 */
#include <linux/align.h>
#include <linux/slab.h>

#include "engine.h"
#include "group.h"

static u32 sp_record_left(const struct sp_view *old, const struct sp_proposal *p,
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
 * sp_record_make() - memory for an event
 * @type: enum spindle_event_type
 * @old: of type VIEW: the view before, NULL when this node was not in it
 * @next: of type VIEW: the view that begins, else NULL
 * @p: with @old: how the one became the other
 *
 * When this node comes with @next, and that is not the group's first view, the
 * record does not know who else does; the caller may, and sets @stayed.
 *
 * Context: may sleep.
 *
 * Return: the record, with one reference, its view copied; or NULL.
 */
struct sp_record *sp_record_make(u32 type, const struct sp_view *old,
				 const struct sp_view *next,
				 const struct sp_proposal *p)
{
	u32 nleft = old ? sp_record_left(old, p, NULL) : 0;
	struct sp_record *r;
	size_t off;

	off = ALIGN(struct_size(r, left, nleft), __alignof__(struct sp_view));
	r = kzalloc(off + (next ? sizeof(*next) : 0), GFP_KERNEL);
	if (!r)
		return NULL;
	kref_init(&r->ref);
	INIT_LIST_HEAD(&r->on_group);
	r->type = type;
	r->subject = ~0U;
	if (!next)
		return r;
	r->view = (void *)r + off;
	*r->view = *next;
	r->id = next->id;
	r->stayed = next->id == 1 ? 0 : next->nmembers;
	if (old) {
		r->old = old->id;
		r->nleft = sp_record_left(old, p, r->left);
		r->stayed = old->nmembers - nleft;
	}
	return r;
}

static void sp_record_free(struct kref *ref)
{
	kfree(container_of(ref, struct sp_record, ref));
}

/**
 * sp_record_put() - drop a reference
 * @r: the record, or NULL
 *
 * Context: any.
 */
void sp_record_put(struct sp_record *r)
{
	if (r)
		kref_put(&r->ref, sp_record_free);
}

/**
 * sp_record_publish() - put an event into the stream
 * @g: the group
 * @r: the event; the caller's reference becomes the group's
 *
 * Readers come by it once the caller has published it: sp_log_publish(). When
 * it fails, the reference stays the caller's.
 *
 * Context: the engine's lock is held.
 *
 * Return: 0, or -ENOBUFS when the log has no room.
 */
int sp_record_publish(struct sp_group *g, struct sp_record *r)
{
	struct sp_order *o = &g->core.order;
	struct sp_record *was = NULL;
	/* 0 is nobody's number: see sp_opt_event(). */
	u32 number = g->numbers + 1 ?: 1;
	int ret;

	r->at = o->published;
	r->seq = o->delivered;
	r->number = number;
	ret = sp_order_event(o, r->type, number);
	if (ret)
		return ret;
	g->numbers = number;
	spin_lock(&g->record_lock);
	list_add_tail(&r->on_group, &g->records);
	if (r->view) {
		was = g->current_view;
		kref_get(&r->ref);
		g->current_view = r;
	}
	spin_unlock(&g->record_lock);
	sp_record_put(was);
	return 0;
}

/**
 * sp_log_publish() - readers may take what was put into the log
 * @g: the group
 *
 * Context: the engine's lock is held.
 */
void sp_log_publish(struct sp_group *g)
{
	/* E in group.h. */
	smp_store_release(&g->published, g->core.order.published);
	WRITE_ONCE(g->counters.delivered, g->core.order.messages);
	WRITE_ONCE(g->counters.delivered_bytes, g->core.order.bytes);
	sp_rings_publish(g);
	sp_group_wake_members(g, true, false);
	sp_detach_all(g);
}

/**
 * sp_record_say_in() - tell programs of something that is no view
 * @g: the group
 * @view: number of the view in which @subject is the rank; 0: this one
 * @type: enum spindle_event_type
 * @subject: rank of a member in the view, or ~0
 * @error: for SPINDLE_EVENT_EVICTED: the negative errno
 *
 * Events of this kind are news, not promises: without memory, without room in
 * the log, or in another view there is none.
 *
 * Context: may sleep. Takes the engine's lock, so the engine must be there as
 * long as the group is active: sp_ctl is held, or sp_slow_stop() waits for the
 * caller.
 */
void sp_record_say_in(struct sp_group *g, u64 view, u32 type, u32 subject,
		      int error)
{
	struct sp_engine *engine = READ_ONCE(g->node->sdev->engine);
	struct sp_record *r;

	if (!engine || sp_group_state(g) != SP_VIEW_ACTIVE)
		return;
	r = sp_record_make(type, NULL, NULL, NULL);
	if (!r)
		return;
	r->subject = subject;
	r->error = error;
	mutex_lock(&engine->lock);
	sp_records_drop(g, false);
	r->id = g->core.view;
	/* Nothing is published once the state has begun to change. */
	if (!READ_ONCE(g->engaged) || g->closing || (view && view != r->id) ||
	    sp_record_publish(g, r))
		sp_record_put(r);
	else
		sp_log_publish(g);
	mutex_unlock(&engine->lock);
}

/**
 * sp_record_say() - the same in the view that there is
 * @g: the group
 * @type: enum spindle_event_type
 * @subject: rank of a member, or ~0
 * @error: see sp_record_say_in()
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_record_say(struct sp_group *g, u32 type, u32 subject, int error)
{
	sp_record_say_in(g, 0, type, subject, error);
}

/**
 * sp_record_find() - the event of a number
 * @g: the group
 * @number: the number
 *
 * Context: any but interrupt.
 *
 * Return: the record, with a reference, or NULL when no reader may come by it
 * any more.
 */
struct sp_record *sp_record_find(struct sp_group *g, u32 number)
{
	struct sp_record *r, *found = NULL;

	spin_lock(&g->record_lock);
	list_for_each_entry(r, &g->records, on_group) {
		if (r->number != number)
			continue;
		kref_get(&r->ref);
		found = r;
		break;
	}
	spin_unlock(&g->record_lock);
	return found;
}

/**
 * sp_record_view() - the view that the group is in
 * @g: the group
 *
 * Context: any but interrupt.
 *
 * Return: its record, with a reference, or NULL before the first.
 */
struct sp_record *sp_record_view(struct sp_group *g)
{
	struct sp_record *r;

	spin_lock(&g->record_lock);
	r = g->current_view;
	if (r)
		kref_get(&r->ref);
	spin_unlock(&g->record_lock);
	return r;
}

/**
 * sp_records_drop() - let go of events that no reader can come by any more
 * @g: the group
 * @all: of all: there are no readers any more
 *
 * Context: any but interrupt; without @all the engine's lock is held.
 */
void sp_records_drop(struct sp_group *g, bool all)
{
	struct sp_record *r, *next;

	spin_lock(&g->record_lock);
	list_for_each_entry_safe(r, next, &g->records, on_group) {
		/* They are in the order of the log. */
		if (!all && r->at >= g->core.order.released)
			break;
		if (!all && r == g->current_view)
			continue;
		list_del_init(&r->on_group);
		sp_record_put(r);
	}
	r = all ? g->current_view : NULL;
	if (all)
		g->current_view = NULL;
	spin_unlock(&g->record_lock);
	sp_record_put(r);
}
