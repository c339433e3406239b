// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/spindle/NODE/GROUP/slow: who holds up the senders, at which
 * stage, and how far behind; and the events when that changes. The definition
 * is in Documentation/ABI/testing/sysfs-kernel-spindle.
 *
 * When all is blocked nothing happens and no pass is run. So a work looks from
 * time to time. A pass that leaves something unreleased sees to it that a look
 * will come; looks go on by themselves while anybody is waited for. An idle
 * group has none.
 *
 * Looks also find the members that are to be evicted: evict.c.
 */
#include <linux/kobject.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "../engine.h"
#include "../group.h"
#include "observe.h"

#define SP_SLOW_MOST	3600000U	/* milliseconds */

static unsigned int slow_ms = 100;
module_param(slow_ms, uint, 0644);
MODULE_PARM_DESC(slow_ms, "Milliseconds that a reader or node may hold up senders at one place before it is called slow; 0: never");

enum sp_slow_stage {
	SP_SLOW_NONE,		/* nobody waits for it */
	SP_SLOW_READ,
	SP_SLOW_QUEUE,
	SP_SLOW_RECEIVE,
	SP_SLOW_CONSUME,
};

static const char * const sp_slow_stages[] = {
	"none", "read", "queue", "receive", "consume",
};

/**
 * struct sp_party - a member of this node, or another node
 * @stage: where others wait for it; of one that is slow no longer: waited
 * @at: its place there
 * @since: jiffies when a look first found it there
 * @moves: looks in a row that found it at another place
 * @waited: others wait for it
 * @slow: it is shown as slow
 * @tell: that has changed
 * @upto: what @messages and @bytes count up to
 * @messages: how far it is behind
 * @bytes: likewise
 */
struct sp_party {
	enum sp_slow_stage stage;
	u64 at;
	unsigned long since;
	u32 moves;
	bool waited;
	bool slow;
	bool tell;
	u64 upto;
	u64 messages;
	u64 bytes;
};

/**
 * struct sp_slow - the parties of a group, as one node sees them
 * @g: the group
 * @look: looks at them
 * @queued: jiffies when it was queued; under the engine's lock, as the next two are
 * @delay: jiffies that it was to wait for
 * @step: milliseconds between the last two that count: what it has waited for longer
 *	this host was away, or short of processors
 * @lock: guards @parties. Taken within the engine's lock
 * @stopped: no looks, the group is hidden; changed under the engine's lock
 * @view: number of the view; changed under @lock and the engine's lock
 * @nmembers: members of the view; likewise
 * @nnodes: nodes of the view; likewise
 * @gone: stage of those that were slow and are not in the view any more, members
 *	and then nodes by their ranks in the view before; sp_ctl guards it
 * @parties: members by rank, then nodes by rank
 * @was: they, as they were in the view before, while another one begins
 */
struct sp_slow {
	struct sp_group *g;
	struct delayed_work look;
	unsigned long queued;
	unsigned long delay;
	u32 step;
	spinlock_t lock;
	bool stopped;
	u64 view;
	u32 nmembers;
	u32 nnodes;
	u8 gone[2 * SP_MAX_MEMBERS];
	struct sp_party parties[2 * SP_MAX_MEMBERS];
	struct sp_party was[2 * SP_MAX_MEMBERS];
};

static unsigned int sp_slow_ms(void)
{
	return min(READ_ONCE(slow_ms), SP_SLOW_MOST);
}

/* The shorter one of the times that members may hold up senders; 0: nobody looks. */
static unsigned int sp_slow_least(const struct sp_group *g)
{
	return min_not_zero(sp_slow_ms(), g->config.evict_ms);
}

static void sp_slow_queue(struct sp_slow *slow)
{
	/* Twice in the time allowed. */
	slow->delay = msecs_to_jiffies(sp_slow_least(slow->g) / 2) + 1;
	slow->queued = jiffies;
	queue_delayed_work(sp_wq, &slow->look, slow->delay);
}

static void sp_slow_change(struct sp_party *p, bool is)
{
	if (p->slow == is)
		return;
	p->slow = is;
	p->tell = !p->tell;
	p->upto = ~0ULL;
}

/* Note where a party is. True when somebody waits for it. */
static bool sp_slow_note(struct sp_party *p, enum sp_slow_stage stage, u64 at)
{
	bool moved = at != p->at || stage != p->stage;

	if (stage == SP_SLOW_NONE) {
		p->waited = false;
		sp_slow_change(p, false);
		return false;
	}
	if (p->waited && !moved) {
		u32 ms = sp_slow_ms();

		p->moves = 0;
		if (!ms)
			sp_slow_change(p, false);
		else if (time_after_eq(jiffies, p->since + msecs_to_jiffies(ms)))
			sp_slow_change(p, true);
		return true;
	}
	/* One step now and then is not yet reading. */
	p->moves = p->waited ? p->moves + 1 : 0;
	if (p->moves > 1)
		sp_slow_change(p, false);
	p->waited = true;
	p->stage = stage;
	p->at = at;
	p->since = jiffies;
	return true;
}

/* The place in the order of a lane's message; of an earlier view, before this one. */
static s64 sp_slow_seq(const struct sp_order *o, const struct sp_desc *desc,
		       u64 count, u64 round, u32 rank)
{
	const struct sp_desc *d = &desc[count & (o->depth - 1)];
	u64 index = sp_extend32(round, d->index);
	u64 base = sp_order_lane(o, rank)->base;

	if (index < base)
		return o->start - 1;
	return o->start + sp_seq(index - base, o->nlanes, rank);
}

/*
 * A lane whose sender may want room soon, if it does not already. @any: may it want some,
 * as far as can be seen from another node?
 */
static bool sp_slow_tight(const struct sp_order *o, const struct sp_desc *desc,
			  const struct sp_point *now, u64 freed, u64 head, bool any)
{
	const struct sp_desc *last = &desc[(now->count - 1) & (o->depth - 1)];

	/* It has said its last. */
	if (now->count && (last->flags & SP_DESC_FIN))
		return false;
	if (any && sp_order_full(o, now->tail - head, now->count - freed))
		return true;
	return now->tail - head >= o->units / 2 ||
	       now->count - freed >= o->depth / 2;
}

/* Its writer has found no room, and none was given back since. */
static bool sp_slow_is_starved(const struct sp_lane_tx *lane)
{
	return READ_ONCE(lane->starved) == lane->tx.freed + 1;
}

/* Do senders wait for a member whose next message is at @first? @any: or may they? */
static bool sp_slow_holds(const struct sp_group *g, s64 first, bool any)
{
	const struct sp_order *o = &g->core.order;
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);
		bool tight;

		/* What keeps the lane's room here must have been delivered. */
		if (lane->freed == lane->taken)
			continue;
		tight = sp_slow_tight(o, lane->desc, &lane->now, lane->freed,
				      lane->head, any);
		if (!tight && lane->node == g->self) {
			const struct sp_lane_tx *tx = g->lanes[lane->lane];

			tight = tx->tx.freed == lane->freed &&
				sp_slow_is_starved(tx);
		}
		if (tight && sp_slow_seq(o, lane->desc, lane->freed,
					 lane->now.round, i) >= first)
			return true;
	}
	return false;
}

static void sp_slow_member_lag(const struct sp_order *o, const struct sp_local *local,
			       struct sp_party *p)
{
	u64 at;

	if (p->upto == o->published)
		return;
	p->upto = o->published;
	p->messages = 0;
	p->bytes = 0;
	for (at = p->at; at != o->published; at++) {
		const struct sp_log *log = &o->log[at & (o->log_size - 1)];

		if (!sp_log_message(local, log->flags))
			continue;
		p->messages++;
		p->bytes += log->len;
	}
}

/* The first message that a member has not consumed; what is none holds nobody up. */
static bool sp_slow_first(const struct sp_order *o, u64 cursor, s64 *seq)
{
	for (; cursor != o->published; cursor++) {
		const struct sp_log *log = &o->log[cursor & (o->log_size - 1)];

		if (log->flags & SP_LOG_EVENT)
			continue;
		*seq = log->seq;
		return true;
	}
	return false;
}

/* Where a member is: another place when it has read anything, be it out of its queue. */
static u64 sp_slow_place(const struct sp_local *local, u64 cursor)
{
	return cursor + READ_ONCE(local->queue.taken);
}

/*
 * Note whether senders wait for a member, and for how long they have while it read nothing.
 * That time is counted by looks: a host that was away itself does not take its own absence
 * for the reader's. What a sender on another node wants cannot be seen: that it may find no
 * room is enough. True when it counts.
 */
static bool sp_slow_hold(struct sp_slow *slow, struct sp_local *local)
{
	struct sp_group *g = slow->g;
	u32 most = g->config.evict_ms;
	bool waited = false;
	u64 cursor, at;
	s64 first;

	if (!most || READ_ONCE(local->deaf))
		return false;
	cursor = sp_engine_cursor(g, local);
	at = sp_slow_place(local, cursor);
	/* Where no majority is heard nobody is held up by readers. */
	if (cursor < local->end && !READ_ONCE(g->minority) &&
	    sp_slow_first(&g->core.order, cursor, &first))
		waited = sp_slow_holds(g, first, true);
	if (waited && local->lag.waited && local->lag.at == at)
		local->lag.held += slow->step;
	else
		local->lag.held = 0;
	local->lag.at = at;
	local->lag.waited = waited;
	if (local->lag.held >= most)
		queue_work(sp_wq, &g->event);
	return waited;
}

/**
 * sp_slow_overdue() - is a member to be evicted
 * @g: the group, active
 * @local: the member
 *
 * What the last look has found, unless the member has read anything since. Context: the
 * engine's lock is held.
 *
 * Return: true when it has held up senders, and read nothing, for the group's evict_ms.
 */
bool sp_slow_overdue(struct sp_group *g, struct sp_local *local)
{
	u32 most = g->config.evict_ms;

	return most && local->lag.held >= most && !READ_ONCE(local->deaf) &&
	       sp_slow_place(local, sp_engine_cursor(g, local)) == local->lag.at;
}

static bool sp_slow_member(struct sp_slow *slow, struct sp_local *local)
{
	const struct sp_order *o = &slow->g->core.order;
	struct sp_party *p = &slow->parties[local->rank];
	enum sp_slow_stage stage = SP_SLOW_NONE;
	u64 was = p->at;
	u64 cursor;
	bool waited;
	s64 first;

	/* H in group.h, though only to be fair to the reader. */
	cursor = smp_load_acquire(&local->cursor);
	if (!READ_ONCE(local->deaf) && sp_slow_first(o, cursor, &first) &&
	    sp_slow_holds(slow->g, first, false))
		stage = READ_ONCE(local->queue.on) ? SP_SLOW_QUEUE :
			SP_SLOW_READ;
	waited = sp_slow_note(p, stage, cursor);
	if (p->slow) {
		if (p->at != was)
			p->upto = ~0ULL;
		sp_slow_member_lag(o, local, p);
	}
	return waited;
}

static bool sp_slow_owes(const struct sp_order *o, u32 node, s64 seq)
{
	return sp_order_lane(o, (u64)(seq - o->start) % o->nlanes)->node == node;
}

/*
 * Does a message that is not delivered yet wait for another node? Each node
 * waits for the turn after what it has received. It is to blame itself when
 * this node has that turn, and so is whose turn it is: which of the two does
 * not get it to the other cannot be seen from here.
 */
static bool sp_slow_lacks(const struct sp_order *o, u32 node, s64 seq)
{
	s64 here = o->nodes[o->self].received;
	u32 i;

	if (o->nodes[node].received < seq && o->nodes[node].received < here)
		return true;
	for (i = 0; i < o->nnodes; i++)
		if (o->nodes[i].received < seq &&
		    sp_slow_owes(o, node, o->nodes[i].received + 1))
			return true;
	return false;
}

/*
 * Does one of this node's lanes wait for another node? Only who holds the
 * oldest message that keeps the lane's room counts.
 */
static enum sp_slow_stage sp_slow_waits(const struct sp_group *g, u32 own, u32 node)
{
	const struct sp_core *c = &g->core;
	const struct sp_order *o = &c->order;
	const struct sp_node_seen *seen = &o->nodes[node];
	const struct sp_point *now = &c->own[own].now;
	const struct sp_tx *tx = c->own[own].tx;
	s64 oldest;

	/* Nor is there a lane then. */
	if (!tx || tx->freed >= now->count)
		return SP_SLOW_NONE;
	if (!sp_slow_tight(o, tx->desc, now, tx->freed, tx->head, false) &&
	    !sp_slow_is_starved(g->lanes[own]))
		return SP_SLOW_NONE;
	oldest = sp_slow_seq(o, tx->desc, tx->freed, now->round, tx->rank);
	if (oldest <= o->delivered)
		return seen->consumed < oldest ? SP_SLOW_CONSUME :
			SP_SLOW_NONE;
	return sp_slow_lacks(o, node, oldest) ? SP_SLOW_RECEIVE :
		SP_SLOW_NONE;
}

static void sp_slow_node_lag(const struct sp_group *g, struct sp_party *p)
{
	const struct sp_core *c = &g->core;
	u64 upto = 0;
	u64 at;
	u32 i;

	for (i = 0; i < c->nown; i++)
		if (c->own[i].tx)
			upto += c->own[i].now.count;
	if (p->upto == upto)
		return;
	p->upto = upto;
	p->messages = 0;
	for (i = 0; i < c->nown; i++) {
		const struct sp_tx *tx = c->own[i].tx;
		u64 round = c->own[i].now.round;

		if (!tx)
			continue;
		for (at = tx->freed; at < c->own[i].now.count; at++) {
			if (tx->desc[at & (tx->depth - 1)].flags & SP_DESC_FIN)
				continue;
			if (sp_slow_seq(&c->order, tx->desc, at, round,
					tx->rank) > (s64)p->at)
				p->messages++;
		}
	}
}

static bool sp_slow_node(struct sp_slow *slow, u32 node)
{
	const struct sp_order *o = &slow->g->core.order;
	struct sp_party *p = &slow->parties[slow->nmembers + node];
	enum sp_slow_stage stage = SP_SLOW_NONE;
	u64 was = p->at;
	bool waited;
	u32 i;

	for (i = 0; !stage && i < slow->g->core.nown &&
	     !slow->g->core.peers[node].gone; i++)
		stage = sp_slow_waits(slow->g, i, node);
	waited = sp_slow_note(p, stage, stage == SP_SLOW_RECEIVE ?
			      o->delivered : o->nodes[node].consumed);
	if (p->slow) {
		if (p->at != was)
			p->upto = ~0ULL;
		sp_slow_node_lag(slow->g, p);
	}
	return waited;
}

/* Look at all parties. True when somebody waits for any. */
static bool sp_slow_judge(struct sp_slow *slow)
{
	struct sp_group *g = slow->g;
	struct sp_local *local;
	bool waited = false;
	u32 i;

	if (!g->core.order.nlanes)
		return false;
	list_for_each_entry(local, &g->locals, on_group) {
		/* Who has left is not named, but what it has not read may hold up others. */
		waited |= sp_slow_hold(slow, local);
		if (local->rank != ~0U)
			waited |= sp_slow_member(slow, local);
	}
	for (i = 0; i < slow->nnodes; i++)
		if (i != g->self)
			waited |= sp_slow_node(slow, i);
	return waited;
}

/* Nobody is slow any more. */
static void sp_slow_clear(struct sp_slow *slow)
{
	u32 i;

	for (i = 0; i < slow->nmembers + slow->nnodes; i++)
		sp_slow_note(&slow->parties[i], SP_SLOW_NONE, 0);
}

static void sp_slow_uevent(struct sp_group *g, const struct sp_view *v,
			   bool node, u32 rank, const struct sp_party *p)
{
	char vars[6][96];
	char *env[7] = {};
	char name[64];
	u32 i;

	sp_addr_name(node ? &v->nodes[rank].addr : &v->members[rank].addr, name,
		     sizeof(name));
	if (p->slow)
		pr_info_ratelimited("spindle: %s: group %s: %s %u (%s) is slow: stage %s, lag %llu messages\n",
				    g->node->name, g->name,
				    node ? "node" : "member", rank, name,
				    sp_slow_stages[p->stage], p->messages);
	snprintf(vars[0], sizeof(vars[0]), "SPINDLE_GROUP=%s", g->name);
	snprintf(vars[1], sizeof(vars[1]), "SPINDLE_NODE=%s", g->node->name);
	if (node)
		snprintf(vars[2], sizeof(vars[2]), "SPINDLE_PEER=%s", name);
	else
		snprintf(vars[2], sizeof(vars[2]), "SPINDLE_MEMBER=%u", rank);
	snprintf(vars[3], sizeof(vars[3]), "SPINDLE_STAGE=%s",
		 sp_slow_stages[p->stage]);
	snprintf(vars[4], sizeof(vars[4]), "SPINDLE_LAG=%llu",
		 p->slow ? p->messages : 0);
	snprintf(vars[5], sizeof(vars[5]), "SPINDLE_SLOW=%u", p->slow);
	for (i = 0; i < ARRAY_SIZE(vars); i++)
		env[i] = vars[i];
	kobject_uevent_env(&g->kobj, KOBJ_CHANGE, env);
}

/* The next party of which something is to be said, from the @i-th on. */
static bool sp_slow_changed(struct sp_slow *slow, const struct sp_view *v, u32 *i,
			    struct sp_party *p)
{
	bool found = false;

	spin_lock_bh(&slow->lock);
	/* A view that has begun meanwhile has parties of its own. */
	for (; !found && slow->view == v->id &&
	     *i < v->nmembers + v->nnodes; ++*i) {
		if (!slow->parties[*i].tell)
			continue;
		slow->parties[*i].tell = false;
		*p = slow->parties[*i];
		found = true;
	}
	spin_unlock_bh(&slow->lock);
	return found;
}

/* Say what has changed. */
static void sp_slow_tell(struct sp_slow *slow)
{
	struct sp_event *ev = sp_event_view(slow->g);
	struct sp_party party;
	bool told = false;
	u32 i = 0;

	while (ev && sp_slow_changed(slow, &ev->view, &i, &party)) {
		bool node = i > ev->view.nmembers;

		sp_slow_uevent(slow->g, &ev->view, node,
			       i - 1 - (node ? ev->view.nmembers : 0), &party);
		told = true;
	}
	sp_event_put(ev);
	if (told)
		sysfs_notify(&slow->g->kobj, NULL, "slow");
}

static void sp_slow_look(struct work_struct *work)
{
	struct sp_slow *slow = container_of(to_delayed_work(work),
					    struct sp_slow, look);
	/* It ends after sp_slow_stop(). */
	struct sp_engine *engine = READ_ONCE(slow->g->node->sdev->engine);

	spin_lock_bh(&engine->lock);
	spin_lock_bh(&slow->lock);
	WRITE_ONCE(slow->g->counters.looks, slow->g->counters.looks + 1);
	slow->step = jiffies_to_msecs(min(jiffies - slow->queued, slow->delay));
	if (slow->stopped || slow->g->closing || !sp_slow_least(slow->g))
		sp_slow_clear(slow);
	else if (sp_slow_judge(slow))
		sp_slow_queue(slow);
	spin_unlock_bh(&slow->lock);
	spin_unlock_bh(&engine->lock);
	sp_slow_tell(slow);
}

/**
 * sp_slow_arm() - a pass has ended: see to it that there will be a look
 * @g: the group
 *
 * Context: the engine's lock is held.
 */
void sp_slow_arm(struct sp_group *g)
{
	const struct sp_core *c = &g->core;
	struct sp_slow *slow = g->slow;
	bool held;
	u32 i;

	if (delayed_work_pending(&slow->look) || slow->stopped ||
	    !sp_slow_least(g))
		return;
	held = c->order.released != c->order.published;
	for (i = 0; !held && i < c->nown; i++)
		held = c->own[i].tx &&
		       c->own[i].tx->freed != c->own[i].now.count;
	if (held && !g->closing)
		sp_slow_queue(slow);
}

/**
 * sp_slow_starved() - a writer has found no room
 * @g: the group, active
 * @lane: its lane
 */
void sp_slow_starved(struct sp_group *g, struct sp_lane_tx *lane)
{
	bool news;

	spin_lock_bh(&lane->lock);
	news = lane->starved != lane->tx.freed + 1;
	WRITE_ONCE(lane->starved, lane->tx.freed + 1);
	spin_unlock_bh(&lane->lock);
	/* A pass, for a look. */
	if (news)
		sp_group_moved(g);
}

/**
 * sp_slow_size() - what sp_slow_init() allocates
 *
 * Return: bytes.
 */
size_t sp_slow_size(void)
{
	return sizeof(struct sp_slow);
}

/**
 * sp_slow_init() - prepare the looks at a group
 * @g: the group, its view ranked
 *
 * Context: may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_slow_init(struct sp_group *g)
{
	const struct sp_view *v = &g->view;
	struct sp_slow *slow;

	slow = kvzalloc(sp_slow_size(), SP_GFP_VIEW);
	if (!slow)
		return -ENOMEM;
	slow->g = g;
	slow->view = v->id;
	slow->nmembers = v->nmembers;
	slow->nnodes = v->nnodes;
	spin_lock_init(&slow->lock);
	INIT_DELAYED_WORK(&slow->look, sp_slow_look);
	/* For who does not wait for the view's memory: see sp_slow_show(). */
	smp_store_release(&g->slow, slow);
	return 0;
}

/* A party has another rank, or none: @to is less than 0, and its stage goes to @gone. */
static void sp_slow_move(struct sp_slow *slow, const struct sp_party *p, int to,
			 u8 *gone)
{
	if (to < 0) {
		/* It was called slow, and not yet that it is so no longer. */
		*gone = p->slow != p->tell ? p->stage : SP_SLOW_NONE;
		return;
	}
	slow->parties[to] = *p;
	slow->parties[to].upto = ~0ULL;
	/* Who was about to tell has missed it: see sp_slow_changed(). */
	if (p->tell && !slow->stopped)
		sp_slow_queue(slow);
}

static void sp_slow_members(struct sp_slow *slow, const struct sp_view *was,
			    const struct sp_view *v)
{
	u32 i;

	for (i = 0; i < was->nmembers; i++) {
		const struct sp_member *m = &was->members[i];

		sp_slow_move(slow, &slow->was[i],
			     sp_view_find_member(v, &m->addr, m->cookie),
			     &slow->gone[i]);
	}
}

static void sp_slow_nodes(struct sp_slow *slow, const struct sp_view *was,
			  const struct sp_view *v)
{
	u32 i;

	for (i = 0; i < was->nnodes; i++) {
		const struct sp_addr *addr = &was->nodes[i].addr;
		int to = -1;

		if (sp_view_stayed(v, was, addr))
			to = v->nmembers + sp_view_find_node(v, addr);
		sp_slow_move(slow, &slow->was[was->nmembers + i], to,
			     &slow->gone[SP_MAX_MEMBERS + i]);
	}
}

/**
 * sp_slow_view() - another view has begun
 * @g: the group
 * @was: the view before
 *
 * Context: sp_ctl and the engine's lock are held.
 */
void sp_slow_view(struct sp_group *g, const struct sp_view *was)
{
	const struct sp_view *v = &g->view;
	struct sp_slow *slow = g->slow;

	BUILD_BUG_ON(sizeof(slow->was) != sizeof(slow->parties));
	spin_lock_bh(&slow->lock);
	memset(slow->gone, SP_SLOW_NONE, sizeof(slow->gone));
	memcpy(slow->was, slow->parties, sizeof(slow->was));
	memset(slow->parties, 0, sizeof(slow->parties));
	sp_slow_members(slow, was, v);
	sp_slow_nodes(slow, was, v);
	slow->view = v->id;
	slow->nmembers = v->nmembers;
	slow->nnodes = v->nnodes;
	spin_unlock_bh(&slow->lock);
}

/**
 * sp_slow_parted() - say of those that are in the view no more that they are not
 * slow any more
 * @g: the group
 * @was: the view before
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_slow_parted(struct sp_group *g, const struct sp_view *was)
{
	struct sp_slow *slow = g->slow;
	bool told = false;
	u32 i;

	lockdep_assert_held(&sp_ctl);
	for (i = 0; g->shown && i < ARRAY_SIZE(slow->gone); i++) {
		struct sp_party p = { .stage = slow->gone[i] };

		if (p.stage == SP_SLOW_NONE)
			continue;
		sp_slow_uevent(g, was, i >= SP_MAX_MEMBERS, i % SP_MAX_MEMBERS,
			       &p);
		told = true;
	}
	if (told)
		sysfs_notify(&g->kobj, NULL, "slow");
}

/**
 * sp_slow_start() - looks again, for a group that is shown again
 * @g: the group; may never have had a look
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_slow_start(struct sp_group *g)
{
	struct sp_slow *slow;

	lockdep_assert_held(&sp_ctl);
	/* Pairs with sp_slow_init(), which does not wait for sp_ctl. */
	slow = smp_load_acquire(&g->slow);
	if (!slow)
		return;
	/* The next pass queues one. */
	sp_engine_lock(g->node->sdev->engine);
	slow->stopped = false;
	sp_engine_unlock(g->node->sdev->engine);
}

/**
 * sp_slow_stop() - no more looks at a group; who was slow is so no longer
 * @g: the group; may never have had a look, or none for long
 *
 * Before its files go, and before its engine does. Context: sp_ctl is held,
 * may sleep.
 */
void sp_slow_stop(struct sp_group *g)
{
	struct sp_engine *engine = g->node->sdev->engine;
	struct sp_slow *slow;

	lockdep_assert_held(&sp_ctl);
	/* Pairs with sp_slow_init(), which does not wait for sp_ctl. */
	slow = smp_load_acquire(&g->slow);
	if (!slow || slow->stopped)
		return;
	/* Passes queue looks under this lock. */
	sp_engine_lock(engine);
	slow->stopped = true;
	sp_engine_unlock(engine);
	cancel_delayed_work_sync(&slow->look);
	spin_lock_bh(&slow->lock);
	sp_slow_clear(slow);
	spin_unlock_bh(&slow->lock);
	if (g->shown)
		sp_slow_tell(slow);
}

/**
 * sp_slow_exit() - undo sp_slow_init()
 * @g: the group; sp_slow_stop() was called, or there was no look
 */
void sp_slow_exit(struct sp_group *g)
{
	if (!g->slow)
		return;
	kvfree(g->slow);
	g->slow = NULL;
}

/**
 * sp_slow_watches() - will there be a look, whoever does nothing
 * @g: the group, in any state
 *
 * Context: the engine's lock is held, so no look queues the next just now.
 *
 * Return: false when who is slow stays as it is until there is a pass.
 */
bool sp_slow_watches(struct sp_group *g)
{
	/* Pairs with sp_slow_init(). */
	struct sp_slow *slow = smp_load_acquire(&g->slow);

	return slow && work_busy(&slow->look.work);
}

/**
 * sp_slow_show() - the file
 * @g: the group
 * @buf: a page
 *
 * Return: bytes written there.
 */
ssize_t sp_slow_show(struct sp_group *g, char *buf)
{
	const struct sp_view *v;
	struct sp_slow *slow;
	struct sp_event *ev;
	char name[64];
	int at = 0;
	u32 i;

	/* Pairs with sp_slow_init(): it is whole. */
	slow = smp_load_acquire(&g->slow);
	ev = sp_event_view(g);
	if (!slow || !ev)
		goto out;
	v = &ev->view;
	spin_lock_bh(&slow->lock);
	for (i = 0; i < slow->nmembers + slow->nnodes; i++) {
		const struct sp_party *p = &slow->parties[i];
		bool node = i >= slow->nmembers;
		u32 rank = node ? i - slow->nmembers : i;

		/* A view that has begun meanwhile has parties of its own. */
		if (!p->slow || slow->view != v->id)
			continue;
		sp_addr_name(node ? &v->nodes[rank].addr :
			     &v->members[rank].addr, name, sizeof(name));
		at += sysfs_emit_at(buf, at,
				    "%s %u %s stage %s lag %llu messages",
				    node ? "node" : "member", rank, name,
				    sp_slow_stages[p->stage], p->messages);
		if (!node)
			at += sysfs_emit_at(buf, at, " %llu bytes", p->bytes);
		at += sysfs_emit_at(buf, at, "\n");
	}
	spin_unlock_bh(&slow->lock);
out:
	sp_event_put(ev);
	return at;
}
