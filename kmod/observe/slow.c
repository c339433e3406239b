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
 */
#include <linux/kobject.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "../af_spindle.h"
#include "../engine.h"
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

/* Of whom there are parties: SP_MAX_MEMBERS of each kind. */
enum sp_kind {
	SP_KIND_MEMBER,		/* of this node, by rank in the view */
	SP_KIND_NODE,		/* another node, by rank in the view */
	SP_KIND_LEFT,		/* of this node, has left and still reads; any */
	SP_KINDS,
};

static const char * const sp_kinds[] = { "member", "node", "left" };

#define SP_PARTIES	(SP_KINDS * SP_MAX_MEMBERS)

/**
 * struct sp_party - a member of this node, or another node
 * @stage: where others wait for it; of one that is slow no longer: waited
 * @at: its place there
 * @since: jiffies when a look first found it there
 * @blocks: of another node: blocks of objects that had moved by then
 * @moves: looks in a row that found it at another place
 * @waited: others wait for it
 * @slow: it is shown as slow
 * @tell: that has changed
 * @evict: it is to be put out of the group
 * @used: of who has left: it is somebody's, whose number is @uid
 * @seen: likewise: the look has found him
 * @uid: see @used
 * @upto: what @messages and @bytes count up to
 * @messages: how far it is behind
 * @bytes: likewise
 */
struct sp_party {
	enum sp_slow_stage stage;
	u64 at;
	unsigned long since;
	u64 blocks;
	u32 moves;
	bool waited;
	bool slow;
	bool tell;
	bool evict;
	bool used;
	bool seen;
	u32 uid;
	u64 upto;
	u64 messages;
	u64 bytes;
};

/**
 * struct sp_word - what is said of a party: it is slow, or is so no longer
 * @kind: what it is
 * @nr: its rank, or the number of a member that has left
 * @addr: its node
 * @stage: where others wait for it
 * @slow: it is slow
 * @messages: how far it is behind
 * @view: number of the view in which that is its rank
 * @subject: rank of a member that it is, or has; or ~0
 */
struct sp_word {
	enum sp_kind kind;
	u32 nr;
	struct sp_addr addr;
	enum sp_slow_stage stage;
	bool slow;
	u64 messages;
	u64 view;
	u32 subject;
};

/**
 * struct sp_slow - the parties of a group, as one node sees them
 * @g: the group
 * @look: looks at them
 * @evict: puts members out, which takes sp_ctl. Holds the group while queued
 * @lock: guards what follows. Taken within the engine's lock
 * @stopped: no more looks; changed under sp_ctl and the engine's lock
 * @view: the view whose ranks these are, held; NULL before the first. Changed
 *	under the engine's lock, too
 * @nfarewells: how many of @farewells there are
 * @farewells: words about who was called slow and has another rank, or none
 * @parties: by kind
 * @was: room for those of the view before
 */
struct sp_slow {
	struct sp_group *g;
	struct delayed_work look;
	struct work_struct evict;
	struct mutex lock;
	bool stopped;
	struct sp_record *view;
	u32 nfarewells;
	struct sp_word farewells[2 * SP_MAX_MEMBERS];
	struct sp_party parties[SP_PARTIES];
	struct sp_party was[SP_PARTIES];
};

static unsigned int sp_slow_ms(void)
{
	return min(READ_ONCE(slow_ms), SP_SLOW_MOST);
}

/* The shortest time that counts; 0: there are no looks. */
static unsigned int sp_slow_least(const struct sp_slow *slow)
{
	return min_not_zero(sp_slow_ms(), slow->g->config.evict_ms);
}

static void sp_slow_queue(struct sp_slow *slow)
{
	/* Twice in the time allowed. */
	queue_delayed_work(sp_wq, &slow->look,
			   msecs_to_jiffies(sp_slow_least(slow) / 2) + 1);
}

static void sp_slow_change(struct sp_party *p, bool is)
{
	if (p->slow == is)
		return;
	p->slow = is;
	p->tell = !p->tell;
	p->upto = ~0ULL;
}

/* Has a party been at one place for so long? */
static bool sp_slow_stays(const struct sp_party *p, unsigned int ms)
{
	return ms && p->waited &&
	       time_after_eq(jiffies, p->since + msecs_to_jiffies(ms));
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
		p->moves = 0;
		if (sp_slow_stays(p, sp_slow_ms()))
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

/*
 * The turn of the oldest message that a lane keeps on this node. Of an earlier
 * view it is only known that it comes before this one.
 */
static s64 sp_slow_lane_seq(const struct sp_order *o, const struct sp_lane *lane,
			    u32 rank)
{
	const struct sp_desc *d = &lane->desc[lane->freed & (o->depth - 1)];
	u64 index = sp_extend32(lane->now.round, d->index);

	if (index < lane->base)
		return o->start - 1;
	return o->start + sp_seq(index - lane->base, o->nlanes, rank);
}

/* That of a message of an own lane. */
static s64 sp_slow_tx_seq(const struct sp_tx *tx, u64 round, u64 count)
{
	const struct sp_desc *d = &tx->desc[count & (tx->depth - 1)];

	return sp_tx_seq(tx, sp_extend32(round, d->index));
}

/* A lane whose sender may want room soon, if it does not already. */
static bool sp_slow_tight(const struct sp_order *o, const struct sp_desc *desc,
			  const struct sp_point *now, u64 freed, u64 head)
{
	const struct sp_desc *last = &desc[(now->count - 1) & (o->depth - 1)];

	/* It has said its last. */
	if (now->count && (last->flags & SP_DESC_FIN))
		return false;
	return now->tail - head >= o->units / 2 ||
	       now->count - freed >= o->depth / 2;
}

/* Its writer has found no room, and none was given back since. */
static bool sp_slow_is_starved(const struct sp_lane_tx *lane)
{
	return READ_ONCE(lane->starved) == lane->tx.freed + 1;
}

/* Do senders wait for a member that has consumed all turns below @first? */
static bool sp_slow_holds(const struct sp_group *g, s64 first)
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
				      lane->head);
		if (!tight && lane->node == g->self && g->own[lane->lane]) {
			const struct sp_lane_tx *tx = &g->own[lane->lane]->tx;

			tight = tx->tx.freed == lane->freed &&
				sp_slow_is_starved(tx);
		}
		if (tight && sp_slow_lane_seq(o, lane, i) >= first)
			return true;
	}
	return false;
}

static void sp_slow_member_lag(const struct sp_order *o,
			       const struct sp_local *local, u64 limit,
			       struct sp_party *p)
{
	u64 at;

	if (p->upto == limit)
		return;
	p->upto = limit;
	p->messages = 0;
	p->bytes = 0;
	for (at = p->at; at != limit; at++) {
		const struct sp_log *log = &o->log[at & (o->log_size - 1)];

		if ((log->flags & (SP_DESC_FIN | SP_LOG_EVENT)) ||
		    sp_rx_foreign(local, log))
			continue;
		p->messages++;
		p->bytes += log->len;
	}
}

/* The party of a member, NULL when it is none: too many have left, say. */
static struct sp_party *sp_slow_party(struct sp_slow *slow,
				      const struct sp_local *local)
{
	struct sp_party *free = NULL;
	u32 i;

	if (local->rank != ~0U)
		return &slow->parties[local->rank];
	if (!sp_local_out(local))
		return NULL;
	for (i = SP_KIND_LEFT * SP_MAX_MEMBERS; i < SP_PARTIES; i++) {
		struct sp_party *p = &slow->parties[i];

		if ((p->used || p->tell) && p->uid == local->uid)
			return p;
		if (!p->used && !p->tell && !free)
			free = p;
	}
	if (free) {
		memset(free, 0, sizeof(*free));
		free->used = true;
		free->uid = local->uid;
	}
	return free;
}

static bool sp_slow_member(struct sp_slow *slow, const struct sp_local *local)
{
	const struct sp_order *o = &slow->g->core.order;
	struct sp_party *p = sp_slow_party(slow, local);
	enum sp_slow_stage stage = SP_SLOW_NONE;
	const struct sp_log *log;
	u64 cursor, limit;
	bool waited;
	u64 was;
	s64 first;

	if (!p)
		return false;
	p->seen = true;
	was = p->at;
	/* H in group.h, though only to be fair to the reader. */
	cursor = smp_load_acquire(&local->cursor);
	limit = min(o->published, local->end);
	if (cursor < limit && !READ_ONCE(local->deaf)) {
		log = &o->log[cursor & (o->log_size - 1)];
		/* An event comes after the turn it names. */
		first = log->seq + !!(log->flags & SP_LOG_EVENT);
		if (sp_slow_holds(slow->g, first))
			stage = READ_ONCE(local->queue.on) ? SP_SLOW_QUEUE :
				SP_SLOW_READ;
	}
	waited = sp_slow_note(p, stage, cursor);
	p->evict = sp_slow_stays(p, slow->g->config.evict_ms);
	if (p->slow) {
		if (p->at != was)
			p->upto = ~0ULL;
		sp_slow_member_lag(o, local, limit, p);
	}
	return waited;
}

static bool sp_slow_owes(const struct sp_order *o, u32 node, s64 seq)
{
	u32 rank;

	if (!o->nlanes)
		return false;
	rank = (u64)(seq - o->start) % o->nlanes;
	return sp_order_lane(o, rank)->node == node;
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
	const struct sp_lane_tx *lane;
	const struct sp_tx *tx;
	s64 oldest;

	if (!g->own[own])
		return SP_SLOW_NONE;
	lane = &g->own[own]->tx;
	tx = &lane->tx;
	if (tx->freed >= now->count)
		return SP_SLOW_NONE;
	if (!sp_slow_tight(o, tx->desc, now, tx->freed, tx->head) &&
	    !sp_slow_is_starved(lane))
		return SP_SLOW_NONE;
	oldest = sp_slow_tx_seq(tx, now->round, tx->freed);
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
		if (g->own[i])
			upto += c->own[i].now.count;
	if (p->upto == upto)
		return;
	p->upto = upto;
	p->messages = 0;
	for (i = 0; i < c->nown; i++) {
		const struct sp_point *now = &c->own[i].now;
		const struct sp_tx *tx;

		if (!g->own[i])
			continue;
		tx = &g->own[i]->tx.tx;
		for (at = tx->freed; at < now->count; at++) {
			if (tx->desc[at & (tx->depth - 1)].flags & SP_DESC_FIN)
				continue;
			if (sp_slow_tx_seq(tx, now->round, at) > (s64)p->at)
				p->messages++;
		}
	}
}

static u64 sp_slow_blocks(const struct sp_group *g)
{
	return READ_ONCE(g->counters.blocks_sent) +
	       READ_ONCE(g->counters.blocks_received);
}

static bool sp_slow_node(struct sp_slow *slow, u32 node)
{
	const struct sp_core *c = &slow->g->core;
	const struct sp_order *o = &c->order;
	struct sp_party *p = &slow->parties[SP_KIND_NODE * SP_MAX_MEMBERS +
					    node];
	enum sp_slow_stage stage = SP_SLOW_NONE;
	u64 was = p->at;
	bool waited;
	u64 blocks;
	u32 i;

	for (i = 0; !stage && i < c->nown && !c->peers[node].gone; i++)
		stage = sp_slow_waits(slow->g, i, node);
	blocks = sp_slow_blocks(slow->g);
	/* While an object moves, nobody stands still who waits for it. */
	if (stage == SP_SLOW_RECEIVE && p->blocks != blocks)
		p->since = jiffies;
	p->blocks = blocks;
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
	const struct sp_local *local;
	bool waited = false;
	u32 i;

	/* Nothing is taken, so nobody is to blame; it goes on soon. */
	if (g->core.wedged)
		return true;
	for (i = SP_KIND_LEFT * SP_MAX_MEMBERS; i < SP_PARTIES; i++)
		slow->parties[i].seen = false;
	list_for_each_entry(local, &g->locals, on_group)
		waited |= sp_slow_member(slow, local);
	for (i = SP_KIND_LEFT * SP_MAX_MEMBERS; i < SP_PARTIES; i++) {
		if (slow->parties[i].seen)
			continue;
		sp_slow_note(&slow->parties[i], SP_SLOW_NONE, 0);
		slow->parties[i].used = false;
	}
	for (i = 0; i < g->core.order.nnodes; i++)
		if (i != g->self)
			waited |= sp_slow_node(slow, i);
	return waited;
}

/* Nobody is slow any more. */
static void sp_slow_clear(struct sp_slow *slow)
{
	u32 i;

	for (i = 0; i < SP_PARTIES; i++)
		sp_slow_note(&slow->parties[i], SP_SLOW_NONE, 0);
}

/* A word about a party; under the lock. */
static void sp_slow_word(const struct sp_slow *slow, const struct sp_party *p,
			 enum sp_kind kind, u32 nr, const struct sp_record *r,
			 struct sp_word *w)
{
	const struct sp_view *v = r->view;

	memset(w, 0, sizeof(*w));
	w->kind = kind;
	w->nr = nr;
	w->stage = p->stage;
	w->slow = p->slow;
	w->messages = p->slow ? p->messages : 0;
	w->view = r->id;
	switch (kind) {
	case SP_KIND_MEMBER:
		w->addr = v->members[nr].addr;
		w->subject = nr;
		break;
	case SP_KIND_NODE:
		w->addr = v->nodes[nr].addr;
		while (v->members[w->subject].node != nr)
			w->subject++;
		break;
	default:
		w->addr = slow->g->node->addr;
		w->nr = p->uid;
		w->subject = ~0U;
		break;
	}
}

static void sp_slow_say(struct sp_slow *slow, const struct sp_word *w)
{
	static const char * const who[] = {
		"SPINDLE_MEMBER", "SPINDLE_PEER", "SPINDLE_LEFT",
	};
	struct sp_group *g = slow->g;
	char vars[6][96];
	char *env[7] = {};
	char name[64];
	u32 i;

	sp_addr_name(&w->addr, name, sizeof(name));
	if (w->slow) {
		pr_info_ratelimited("spindle: %s: group %s: %s %u (%s) is slow: stage %s, lag %llu messages\n",
				    g->node->name, g->name, sp_kinds[w->kind],
				    w->nr, name, sp_slow_stages[w->stage],
				    w->messages);
		if (w->subject != ~0U)
			sp_record_say_in(g, w->view, SPINDLE_EVENT_SLOW,
					 w->subject, 0);
	}
	snprintf(vars[0], sizeof(vars[0]), "SPINDLE_GROUP=%s", g->name);
	snprintf(vars[1], sizeof(vars[1]), "SPINDLE_NODE=%s", g->node->name);
	if (w->kind == SP_KIND_NODE)
		snprintf(vars[2], sizeof(vars[2]), "%s=%s", who[w->kind], name);
	else
		snprintf(vars[2], sizeof(vars[2]), "%s=%u", who[w->kind],
			 w->nr);
	snprintf(vars[3], sizeof(vars[3]), "SPINDLE_STAGE=%s",
		 sp_slow_stages[w->stage]);
	snprintf(vars[4], sizeof(vars[4]), "SPINDLE_LAG=%llu", w->messages);
	snprintf(vars[5], sizeof(vars[5]), "SPINDLE_SLOW=%u", w->slow);
	for (i = 0; i < ARRAY_SIZE(vars); i++)
		env[i] = vars[i];
	kobject_uevent_env(&g->kobj, KOBJ_CHANGE, env);
}

/* The next thing to be told: what is over first. False when there is none. */
static bool sp_slow_news(struct sp_slow *slow, struct sp_word *w)
{
	bool found = false;
	u32 i;

	mutex_lock(&slow->lock);
	if (slow->nfarewells) {
		*w = slow->farewells[--slow->nfarewells];
		found = true;
	}
	for (i = 0; !found && i < SP_PARTIES; i++) {
		struct sp_party *p = &slow->parties[i];

		if (!p->tell)
			continue;
		p->tell = false;
		sp_slow_word(slow, p, i / SP_MAX_MEMBERS, i % SP_MAX_MEMBERS,
			     slow->view, w);
		found = true;
	}
	mutex_unlock(&slow->lock);
	return found;
}

/* Say what has changed. Looks and the end come one after the other. */
static void sp_slow_tell(struct sp_slow *slow)
{
	struct sp_word w;
	bool told = false;

	while (sp_slow_news(slow, &w)) {
		sp_slow_say(slow, &w);
		told = true;
	}
	if (told)
		sysfs_notify(&slow->g->kobj, NULL, "slow");
}

/* Members that are to be put out are somebody else's to do. */
static void sp_slow_evict_soon(struct sp_slow *slow)
{
	struct sp_group *g = slow->g;
	bool any = false;
	u32 i;

	for (i = 0; i < SP_PARTIES; i++)
		any |= slow->parties[i].evict;
	if (!any)
		return;
	kref_get(&g->ref);
	/* What it holds already is not the last reference. */
	if (!queue_work(sp_wq, &slow->evict))
		sp_group_put(g);
}

static void sp_slow_look(struct work_struct *work)
{
	struct sp_slow *slow = container_of(to_delayed_work(work),
					    struct sp_slow, look);
	/* It ends after sp_slow_stop(). */
	struct sp_engine *engine = READ_ONCE(slow->g->node->sdev->engine);

	mutex_lock(&engine->lock);
	mutex_lock(&slow->lock);
	if (slow->stopped || slow->g->closing || !sp_slow_least(slow))
		sp_slow_clear(slow);
	else if (sp_slow_judge(slow))
		sp_slow_queue(slow);
	sp_slow_evict_soon(slow);
	mutex_unlock(&slow->lock);
	mutex_unlock(&engine->lock);
	sp_slow_tell(slow);
}

/* It has not read for so long that the others do without it. */
static void sp_slow_put_out(struct sp_group *g, struct sp_local *local)
{
	struct sock *sk = local->sk;

	pr_info_ratelimited("spindle: %s: group %s: member %u is put out: it held up senders for %u ms\n",
			    g->node->name, g->name, local->rank,
			    g->config.evict_ms);
	WRITE_ONCE(local->error, -ECONNABORTED);
	/* Who sees that nothing is kept for it sees why. */
	smp_store_release(&local->deaf, true);
	sp_detach_purge(local);
	WRITE_ONCE(sk->sk_err, ECONNABORTED);
	sk_error_report(sk);
	/* It may have left already, and not read what was left for it. */
	sp_group_leave(g, local, SP_SLOW);
	sp_rings_state(g, local);
	sk->sk_state_change(sk);
	sp_group_moved(g);
}

static bool sp_slow_evicts(struct sp_slow *slow, const struct sp_local *local)
{
	struct sp_party *p;
	bool evict;

	mutex_lock(&slow->lock);
	p = sp_slow_party(slow, local);
	/* It may have read since. */
	evict = p && p->evict && READ_ONCE(local->cursor) == p->at;
	if (p)
		p->evict = false;
	mutex_unlock(&slow->lock);
	return evict && !READ_ONCE(local->deaf);
}

static void sp_slow_evict(struct work_struct *work)
{
	struct sp_slow *slow = container_of(work, struct sp_slow, evict);
	struct sp_group *g = slow->g;
	struct sp_local *local;

	mutex_lock(&sp_ctl);
	/* Members come and go under sp_ctl only, and leaving is not going. */
	list_for_each_entry(local, &g->locals, on_group)
		if (!slow->stopped && sp_slow_evicts(slow, local))
			sp_slow_put_out(g, local);
	mutex_unlock(&sp_ctl);
	sp_group_put(g);
}

/* A party of the view before this one: @to is its rank now, -1 for none. */
static void sp_slow_carry(struct sp_slow *slow, enum sp_kind kind, u32 from,
			  int to, const struct sp_record *was)
{
	const struct sp_party *old = &slow->was[kind * SP_MAX_MEMBERS + from];
	struct sp_party *p;

	if (to >= 0) {
		p = &slow->parties[kind * SP_MAX_MEMBERS + to];
		*p = *old;
		if (to == (int)from)
			return;
		/* When it is called slow, then by its new rank. */
		p->slow = false;
		p->tell = false;
	}
	/* Is it called slow? Then that is over, by its old rank. */
	if (old->slow != old->tell &&
	    slow->nfarewells < ARRAY_SIZE(slow->farewells)) {
		struct sp_party over = *old;

		over.slow = false;
		sp_slow_word(slow, &over, kind, from, was,
			     &slow->farewells[slow->nfarewells++]);
	}
}

static int sp_slow_find_uid(const struct sp_view *v, u32 uid)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		if (v->members[i].uid == uid)
			return i;
	return -1;
}

static void sp_slow_carry_all(struct sp_slow *slow, const struct sp_record *was)
{
	const struct sp_view *v = slow->view->view;
	const struct sp_view *old = was->view;
	u32 i;

	memcpy(slow->was, slow->parties, sizeof(slow->was));
	/* Who has left before has no rank that could change. */
	memset(slow->parties, 0, SP_KIND_LEFT * SP_MAX_MEMBERS *
	       sizeof(slow->parties[0]));
	for (i = 0; i < old->nmembers; i++)
		sp_slow_carry(slow, SP_KIND_MEMBER, i,
			      sp_slow_find_uid(v, old->members[i].uid), was);
	for (i = 0; i < old->nnodes; i++)
		sp_slow_carry(slow, SP_KIND_NODE, i,
			      sp_view_find_node(v, &old->nodes[i].addr), was);
}

/**
 * sp_slow_view() - a view begins: parties have other ranks
 * @g: the group; its view's record is the current one
 *
 * A party that stays is where it was for as long as it was.
 *
 * Context: the engine's lock is held.
 */
void sp_slow_view(struct sp_group *g)
{
	struct sp_slow *slow = g->slow;
	struct sp_record *was;

	if (!slow)
		return;
	mutex_lock(&slow->lock);
	was = slow->view;
	slow->view = sp_record_view(g);
	if (was)
		sp_slow_carry_all(slow, was);
	if (slow->nfarewells && !slow->stopped)
		sp_slow_queue(slow);
	mutex_unlock(&slow->lock);
	sp_record_put(was);
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
	    !slow->view || !sp_slow_least(slow))
		return;
	held = c->order.released != c->order.published;
	for (i = 0; !held && i < c->nown; i++)
		held = c->own[i].tx && c->own[i].tx->freed != c->own[i].now.count;
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

	spin_lock(&lane->lock);
	news = lane->starved != lane->tx.freed + 1;
	WRITE_ONCE(lane->starved, lane->tx.freed + 1);
	spin_unlock(&lane->lock);
	/* A pass, for a look. */
	if (news)
		sp_group_moved(g);
}

/**
 * sp_slow_init() - prepare the looks at a group
 * @g: the group, with a view or, before the first, without
 *
 * Context: may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_slow_init(struct sp_group *g)
{
	struct sp_slow *slow;

	slow = kvzalloc(sizeof(*slow), GFP_KERNEL_ACCOUNT);
	if (!slow)
		return -ENOMEM;
	slow->g = g;
	slow->view = sp_record_view(g);
	mutex_init(&slow->lock);
	INIT_DELAYED_WORK(&slow->look, sp_slow_look);
	INIT_WORK(&slow->evict, sp_slow_evict);
	/* For who does not wait for the view's memory: see sp_slow_show(). */
	smp_store_release(&g->slow, slow);
	return 0;
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
	if (engine)
		mutex_lock(&engine->lock);
	slow->stopped = true;
	if (engine)
		mutex_unlock(&engine->lock);
	cancel_delayed_work_sync(&slow->look);
	mutex_lock(&slow->lock);
	sp_slow_clear(slow);
	mutex_unlock(&slow->lock);
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
	sp_record_put(g->slow->view);
	mutex_destroy(&g->slow->lock);
	kvfree(g->slow);
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
	struct sp_slow *slow;
	char name[64];
	int at = 0;
	u32 i;

	/* Pairs with sp_slow_init(): it is whole. */
	slow = smp_load_acquire(&g->slow);
	if (!slow)
		return 0;
	mutex_lock(&slow->lock);
	for (i = 0; i < SP_PARTIES; i++) {
		const struct sp_party *p = &slow->parties[i];
		struct sp_word w;

		if (!p->slow)
			continue;
		sp_slow_word(slow, p, i / SP_MAX_MEMBERS, i % SP_MAX_MEMBERS,
			     slow->view, &w);
		sp_addr_name(&w.addr, name, sizeof(name));
		at += sysfs_emit_at(buf, at,
				    "%s %u %s stage %s lag %llu messages",
				    sp_kinds[w.kind], w.nr, name,
				    sp_slow_stages[w.stage], w.messages);
		if (w.kind != SP_KIND_NODE)
			at += sysfs_emit_at(buf, at, " %llu bytes", p->bytes);
		at += sysfs_emit_at(buf, at, "\n");
	}
	mutex_unlock(&slow->lock);
	return at;
}
