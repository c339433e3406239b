// SPDX-License-Identifier: GPL-2.0
/*
 * One pass of the predicates over one group on one node (Spindle paper,
 * section 2.4): send, receive, nulls, delivery, and what is to be pushed.
 *
 * All that is new at any stage is taken at once and nothing is waited for
 * (opportunistic batching, section 3.2), unless that is turned off: then a
 * stage takes one message at a time, tells of it, and leaves the others to the
 * passes that follow, which its news brings about.
 */
#include "pass.h"

/**
 * sp_core_init() - begin the first view that this node is in
 * @c: the group; the caller has set all pointers, sizes, @c->view, @c->polled,
 *	@c->spin, @c->opt and the shell, filled in @c->order as
 *	sp_order_init() wants it, set each @c->peers[].polled, .carry, .bank and .open,
 *	and each @c->peers[].pushed to where its lane begins
 */
void sp_core_init(struct sp_core *c)
{
	u32 i;

	sp_order_init(&c->order);
	/* A node that comes later finds what was left of the views before. */
	if (c->view > 1)
		c->order.slack = (u64)SP_MAX_MEMBERS * c->order.depth;
	for (i = 0; i < c->nown; i++) {
		if (!c->own[i].tx)
			continue;
		c->own[i].now = c->own[i].tx->now;
		c->own[i].pushed = c->own[i].now.count;
	}
	for (i = 0; i < c->order.nnodes; i++) {
		struct sp_peer *p = &c->peers[i];

		p->row = p->bank[c->view & 1];
		sp_peer_reset(p, c->order.start);
		p->consumed = c->order.start - 1;
		p->behind = 0;
		p->cut = false;
		p->gone = i == c->order.self;
	}
	c->push = max(c->order.units / SP_PUSH_PART,
		      min(c->order.units / 2, SP_PUSH_UNITS));
	c->doze.state = SP_AWAKE;
	c->doze.epoch = 0;
	c->idle = 0;
	c->unposted = false;
	c->waits = false;
	c->wedged = false;
	c->hold = false;
	c->consumed_due = c->order.start - 1;
	c->consumed_tight = c->order.start - 1;
	c->wants = -1;
	c->rested = false;
	c->lazy = false;
	c->faulty = 0;
	c->nulls_sent = 0;
	memset(c->batches, 0, sizeof(c->batches));
	memset(&c->posts, 0, sizeof(c->posts));
}

/* How much a stage may take at once. */
static u32 sp_pass_most(const struct sp_core *c, u32 opt)
{
	return c->on & opt ? U32_MAX : 1;
}

static int sp_pass_push_all(struct sp_core *c, bool tell);

/* Look at what the sender of an own lane has committed; it has given up turns below @round. */
static void sp_pass_look_own(struct sp_core *c, u32 i, u64 round)
{
	struct sp_own *own = &c->own[i];

	c->ops->lane_lock(c, i);
	c->nulls_sent += sp_tx_nulls(own->tx, round);
	own->now = own->tx->now;
	own->privates = own->tx->privates;
	c->ops->lane_unlock(c, i);
	sp_order_own(&c->order, own->rank, &own->now);
}

/* Look at what the senders of this node have committed. */
static int sp_pass_own(struct sp_core *c)
{
	int did = 0;
	u32 i;

	for (i = 0; i < c->nown; i++) {
		struct sp_own *own = &c->own[i];
		u64 was = own->now.round;

		if (!own->tx)
			continue;
		sp_pass_look_own(c, i, 0);
		if (own->now.round != was)
			did = SP_DID_NEWS;
	}
	return did;
}

/* Without SP_OPT_RECEIVE: tell everybody of the message that came just now. */
static int sp_pass_ack(struct sp_core *c, u64 *messages)
{
	sp_batch_add(&c->batches[SP_STAGE_RECEIVE], *messages);
	*messages = 0;
	sp_order_advance(&c->order);
	return sp_pass_push_all(c, true);
}

/* Receive predicate over one peer's lanes, and its acknowledgments. */
static int sp_pass_peer(struct sp_core *c, u32 node, u64 *messages)
{
	struct sp_peer *p = &c->peers[node];
	u64 received, consumed, wanted, word;
	bool moved = false;
	int ret;
	u32 i;

	for (i = 0; i < p->nlanes; i++) {
		const struct sp_lane *lane;
		u64 was;

		if (p->lanes[i] < 0 ||
		    !sp_cell_get(&p->row[SP_CELL_LANES + i], c->order.epoch,
				 &word))
			continue;
		lane = sp_order_lane(&c->order, p->lanes[i]);
		was = lane->now.count;
		ret = sp_order_take(&c->order, p->lanes[i], word,
				    sp_pass_most(c, SP_OPT_RECEIVE));
		if (ret < 0)
			return ret;
		moved |= ret;
		if (lane->now.count == was)
			continue;
		*messages += sp_messages(lane->desc, c->order.depth, was,
					 lane->now.count);
		if (!(c->on & SP_OPT_RECEIVE)) {
			ret = sp_pass_ack(c, messages);
			if (ret < 0)
				return ret;
		}
	}
	if (sp_cell_get(&p->row[SP_CELL_RECEIVED], c->order.epoch, &received) &&
	    sp_cell_get(&p->row[SP_CELL_CONSUMED], c->order.epoch, &consumed)) {
		ret = sp_order_row(&c->order, node, (s64)(received - 1),
				   (s64)(consumed - 1));
		if (ret < 0)
			return ret;
		moved |= ret;
	}
	if (sp_cell_get(&p->row[SP_CELL_WANTED], c->order.epoch, &wanted))
		p->wanted = (s64)(wanted - 1);
	/* Turns that are empty, behind the last message, are news to nobody. */
	return moved && !sp_order_quiet(&c->order) ? SP_DID_NEWS : 0;
}

/* Give up the turns that hold up others' messages. */
static int sp_pass_nulls(struct sp_core *c)
{
	int did = 0;
	u32 i;

	if (!(c->on & SP_OPT_NULL))
		return 0;
	for (i = 0; i < c->nown; i++) {
		struct sp_own *own = &c->own[i];
		u64 target;

		if (!own->tx)
			continue;
		target = sp_order_null_target(&c->order, own->rank);
		if (target <= own->now.round)
			continue;
		sp_pass_look_own(c, i, target);
		did = SP_DID_NEWS;
	}
	return did;
}

/**
 * sp_core_consumed() - what the readers of all nodes have consumed
 * @c: the group
 *
 * Who has left in good order reads no more; of others that are gone, see
 * @sp_core.hold.
 *
 * Return: every turn up to it was consumed, or was a null, as far as this node knows.
 */
s64 sp_core_consumed(const struct sp_core *c)
{
	s64 consumed = c->order.nodes[c->order.self].consumed;
	u32 n;

	for (n = 0; n < c->order.nnodes; n++)
		if (!c->peers[n].gone)
			consumed = min(consumed, c->order.nodes[n].consumed);
	return consumed;
}

/* Take back what every node has consumed and no work request reads. */
static int sp_pass_free(struct sp_core *c)
{
	s64 consumed = sp_core_consumed(c);
	int did = 0;
	u32 i, n;

	if (c->hold)
		return 0;
	for (i = 0; i < c->nown; i++) {
		u64 completed = c->own[i].now.count;

		if (!c->own[i].tx)
			continue;
		for (n = 0; n < c->order.nnodes; n++)
			if (!c->peers[n].gone)
				completed = min(completed,
						c->peers[n].pushed[i].done.count);
		c->ops->lane_lock(c, i);
		if (sp_tx_free(c->own[i].tx, consumed, completed))
			did = SP_DID_FREE;
		c->ops->lane_unlock(c, i);
	}
	return did;
}

/* Note which of the descriptors pushed to a peer have landed. */
static void sp_pass_landed(struct sp_core *c, struct sp_peer *p)
{
	u64 landed = p->landed;
	u32 i;

	if (p->mark && landed >= p->mark) {
		for (i = 0; i < c->nown; i++)
			p->pushed[i].done = p->pushed[i].mark;
		p->mark = 0;
	}
	if (p->mark || p->behind)
		return;
	for (i = 0; i < c->nown; i++) {
		struct sp_pushed *pushed = &p->pushed[i];

		pushed->mark = pushed->to;
		if (p->ticket <= landed)
			pushed->done = pushed->mark;
	}
	if (p->ticket > landed)
		p->mark = p->ticket;
}

/*
 * A flag alone changes no other cell: nobody reads the peer's flag once that row
 * has landed, and what it tore the peer's last look would miss.
 */
static void sp_fill_row(const struct sp_core *c, const struct sp_peer *p,
			bool news, struct sp_cell *cells)
{
	const struct sp_node_seen *self = &c->order.nodes[c->order.self];
	u64 epoch = c->order.epoch;
	u32 i;

	sp_cell_set(&cells[SP_CELL_VIEW], c->view, epoch);
	sp_cell_set(&cells[SP_CELL_RECEIVED],
		    (news ? self->received : p->received) + 1, epoch);
	sp_cell_set(&cells[SP_CELL_CONSUMED],
		    (news ? self->consumed : p->consumed) + 1, epoch);
	sp_cell_set(&cells[SP_CELL_SLEEP], c->doze.epoch, epoch);
	sp_cell_set(&cells[SP_CELL_WANTED], (news ? c->wants : p->wants) + 1, epoch);
	for (i = SP_CELL_WANTED + 1; i < SP_CELL_LANES; i++)
		sp_cell_set(&cells[i], 0, epoch);
	/*
	 * A guard covers only what was posted before it on the same QP. Where
	 * there is no lane, nobody looks.
	 */
	for (i = 0; i < c->nown; i++)
		sp_cell_set(&cells[SP_CELL_LANES + i],
			    sp_progress(p->pushed[i].to.round,
					p->pushed[i].to.count), epoch);
}

/* Without SP_OPT_UNLOCK an own lane's lock is held to post, one at a time. */
static bool sp_pass_holds(const struct sp_core *c, u32 own)
{
	return !(c->on & SP_OPT_UNLOCK) && own < c->nown && c->own[own].tx;
}

static void sp_pass_hold(struct sp_core *c, u32 own)
{
	if (sp_pass_holds(c, own))
		c->ops->lane_lock(c, own);
}

static void sp_pass_unhold(struct sp_core *c, u32 own)
{
	if (sp_pass_holds(c, own))
		c->ops->lane_unlock(c, own);
}

/* The first own lane there is. */
static u32 sp_pass_first(const struct sp_core *c)
{
	u32 i = 0;

	while (i < c->nown && !c->own[i].tx)
		i++;
	return i;
}

/* What is new of own lane @own up to a point is on its way. */
static void sp_pass_pushed(struct sp_core *c, u32 own, const struct sp_point *to)
{
	struct sp_own *o = &c->own[own];

	if (to->count <= o->pushed)
		return;
	sp_batch_add(&c->batches[SP_STAGE_SEND],
		     sp_messages(o->tx->desc, c->order.depth, o->pushed, to->count));
	o->pushed = to->count;
}

/*
 * Shorten a stretch of own lane @own to what goes to a peer in the same way: messages
 * that its members read, or private ones that they do not. Return: true for the former.
 */
static bool sp_pass_alike(const struct sp_core *c, u32 node, u32 own,
			  const struct sp_point *from, struct sp_point *to)
{
	const struct sp_tx *tx = c->own[own].tx;
	u32 mask = tx->depth - 1;
	bool reads;
	u64 i;

	if (from->count >= c->own[own].privates || from->count == to->count)
		return true;
	reads = sp_order_reads(&c->order, node, tx->desc[from->count & mask].flags);
	for (i = from->count + 1; i != to->count; i++)
		if (sp_order_reads(&c->order, node, tx->desc[i & mask].flags) != reads)
			break;
	sp_tx_cut(tx, from, to, i - from->count, tx->units);
	return reads;
}

/*
 * The next part of what is to be pushed of own lane @own to a peer, of all up to @end:
 * @run, up to @to. Of private messages that nobody there reads no byte leaves the node,
 * only their descriptors, for their turns. Return: false when nothing is left.
 */
static bool sp_pass_part(const struct sp_core *c, u32 node, u32 own,
			 const struct sp_point *end, struct sp_point *to,
			 struct sp_run *run)
{
	const struct sp_point *from = &c->peers[node].pushed[own].to;
	bool reads;

	*to = *end;
	reads = sp_pass_alike(c, node, own, from, to);
	if (!sp_tx_run(from, to, c->order.depth, c->order.units, run))
		return false;
	if (!reads) {
		run->bytes[0].len = 0;
		run->bytes[1].len = 0;
	}
	return true;
}

/* Post what is new of own lane @own up to a point. */
static int sp_pass_run(struct sp_core *c, u32 node, u32 own,
		       const struct sp_point *to, const struct sp_run *run)
{
	int ret;

	sp_pass_hold(c, own);
	ret = c->ops->post_run(c, node, own, run);
	sp_pass_unhold(c, own);
	if (ret)
		return ret;
	c->posts.segs += sp_run_segs(run);
	sp_pass_pushed(c, own, to);
	return 0;
}

/* Wake a peer whose flag says that it may miss what we have written. */
static int sp_pass_rouse(struct sp_core *c, u32 node, u64 *wakes)
{
	struct sp_peer *p = &c->peers[node];
	u64 woken = p->woken;
	u64 epoch;
	int ret;

	/*
	 * A torn flag is as good as none: it lands after our write has, so
	 * the peer's last look, after that, finds our write.
	 */
	if (!sp_cell_get(&p->row[SP_CELL_SLEEP], c->order.epoch, &epoch) ||
	    !sp_wake_due(epoch, &woken))
		return 0;
	ret = c->ops->post_wake(c, node);
	if (ret)
		return ret;
	p->woken = woken;
	(*wakes)++;
	return 0;
}

/* Is a peer to be told that its readers are waited for? */
static bool sp_pass_asks(const struct sp_core *c, u32 node)
{
	return c->wants > c->peers[node].wants &&
	       c->wants > c->order.nodes[node].consumed;
}

/*
 * Do programs wait for the readers of this node, its own programs or a peer's? Then
 * what these readers do is looked at as they do it.
 */
static bool sp_pass_awaited(const struct sp_core *c)
{
	const struct sp_order *o = &c->order;
	u32 n;

	for (n = 0; n < o->nnodes; n++)
		if (!c->peers[n].gone && c->peers[n].wanted > c->peers[n].consumed)
			return true;
	return c->wants > o->nodes[o->self].consumed;
}

/* What a row to a peer would tell now that the last one did not. */
static u32 sp_pass_why(const struct sp_core *c, u32 node)
{
	const struct sp_node_seen *self = &c->order.nodes[c->order.self];
	const struct sp_peer *p = &c->peers[node];
	u32 why = p->behind;

	if (self->received != p->received)
		why |= SP_WHY_ACK;
	if (self->consumed != p->consumed)
		why |= SP_WHY_CONSUMED;
	if (sp_pass_asks(c, node))
		why |= SP_WHY_WAIT;
	/* Only a raised flag must be told: one too many wake does no harm. */
	if (c->polled && (c->doze.epoch & 1) && c->doze.epoch != p->sleep)
		why |= SP_WHY_FLAG;
	return why;
}

/*
 * Post the row: it covers all that was posted before, last of lane @own, and @run
 * of that lane, which it carries.
 */
static int sp_pass_row(struct sp_core *c, u32 node, u32 own,
		       const struct sp_run *run, bool news)
{
	const struct sp_node_seen *self = &c->order.nodes[c->order.self];
	struct sp_cell cells[SP_CELL_LANES + SP_MAX_NODE_LANES];
	struct sp_peer *p = &c->peers[node];
	u32 why = sp_pass_why(c, node);
	int ret;

	sp_fill_row(c, p, news, cells);
	sp_pass_hold(c, own);
	ret = c->ops->post_row(c, node, cells, SP_CELL_LANES + c->nown, own, run,
			       &p->ticket);
	sp_pass_unhold(c, own);
	if (ret)
		return ret;
	c->posts.carried += !!run;
	c->posts.rows[news ? why : SP_WHY_FLAG]++;
	if (news) {
		p->behind = 0;
		p->received = self->received;
		p->consumed = self->consumed;
		p->wants = c->wants;
	}
	p->sleep = c->doze.epoch;
	if (!p->asked) {
		p->asked = p->ticket;
		p->asked_at = c->passes;
	}
	if (!news || !p->polled)
		return 0;
	/* The first is not put off: a busy pusher would never read. */
	if (!p->check)
		p->check = p->ticket;
	p->recheck = p->ticket;
	/*
	 * Its flag may have come long ago: then the wake follows the row at
	 * once. Only when that has landed is it sure that none is needed.
	 */
	ret = sp_pass_rouse(c, node, &c->posts.wakes);
	return ret == -EAGAIN ? 0 : ret;
}

/*
 * Have readers here consumed anything of a peer's lanes that it does not know? The
 * places of messages from before the view are not known to their sender any more,
 * only that they are below its start: sp_tx_seq(). So all of that is told.
 */
static bool sp_pass_untold(const struct sp_core *c, const struct sp_peer *p)
{
	const struct sp_order *o = &c->order;
	u32 i;

	for (i = 0; i < p->nlanes; i++)
		if (p->lanes[i] >= 0 &&
		    (p->consumed < o->start - 1 ||
		     sp_order_lane(o, p->lanes[i])->done > p->consumed))
			return o->nodes[o->self].consumed > p->consumed;
	return false;
}

/*
 * Is a peer to be told what was consumed here, by a row of its own, though no sender
 * is known to want the room soon? At once, if the peer has asked to be told; when
 * nothing else happens, if one might be waiting for it; and before sleep, or in sleep,
 * if the peer's own senders get room by it. Else the next row will do. This keeps
 * nobody awake.
 */
static bool sp_pass_tells(const struct sp_core *c, const struct sp_peer *p)
{
	bool dozes = c->doze.state != SP_AWAKE;

	if (p->wanted > p->consumed &&
	    p->wanted <= c->order.nodes[c->order.self].consumed)
		return true;
	if ((dozes || c->idle > 1) && p->consumed < c->consumed_tight)
		return true;
	return dozes && !sp_core_rests(c) && sp_pass_untold(c, p);
}

/* How many units of a lane may be posted to a peer now. */
static u64 sp_pass_room(const struct sp_core *c, const struct sp_pushed *pushed)
{
	u64 flight = pushed->to.tail - pushed->done.tail;

	if (!(c->on & SP_OPT_SEND))
		return c->order.units;
	/* Two pushes at most, so that one follows the other without a pause. */
	if (!flight)
		return max(c->push, sp_units(c->order.max_len));
	return flight <= c->push ? c->push : 0;
}

/* May a row to a peer carry this? */
static bool sp_pass_carries(const struct sp_core *c, const struct sp_peer *p,
			    const struct sp_run *run)
{
	return (c->on & SP_OPT_SEND) && !p->polled &&
	       run->bytes[0].len + run->bytes[1].len +
	       run->desc[0].len + run->desc[1].len <= p->carry;
}

/*
 * Send predicate towards one peer: the runs of all own lanes, then the row; or,
 * without SP_OPT_SEND, one message of each lane with a row of its own. With
 * @tell the row alone is posted, and in any case.
 */
static int sp_pass_push(struct sp_core *c, u32 node, bool tell)
{
	struct sp_peer *p = &c->peers[node];
	u32 nown = tell ? 0 : c->nown;
	u32 carrier = 0;
	bool news, tells, carries = false;
	struct sp_run run, carried;
	u32 last = sp_pass_first(c);
	struct sp_point from, to;
	int did = 0;
	int ret;
	u32 i;

	if (p->cut)
		return 0;
	news = tell || p->behind || p->received < c->order.due ||
	       p->consumed < c->consumed_due || sp_pass_asks(c, node);
	for (i = 0; i < nown; i++) {
		struct sp_own *own = &c->own[i];
		struct sp_pushed *pushed = &p->pushed[i];
		struct sp_point end = own->now;

		if (!own->tx || !(p->open >> i & 1))
			continue;
		if (!(c->on & SP_OPT_SEND)) {
			if (p->behind) {
				ret = sp_pass_row(c, node, last, NULL, true);
				if (ret)
					goto unposted;
				did = SP_DID_NEWS;
				news = false;
			}
		}
		sp_tx_cut(own->tx, &pushed->to, &end,
			  sp_pass_most(c, SP_OPT_SEND), sp_pass_room(c, pushed));
		while (sp_pass_part(c, node, i, &end, &to, &run)) {
			if (to.count == pushed->to.count) {
				/* Rounds without messages, too, wait for a row to tell them. */
				p->behind |= SP_WHY_NULL;
			} else if (!carries && to.round == end.round &&
				   sp_pass_carries(c, p, &run)) {
				/* It is the lane's last: nothing behind it was posted yet. */
				carries = true;
				carried = run;
				from = pushed->to;
				carrier = i;
			} else {
				ret = sp_pass_run(c, node, i, &to, &run);
				if (ret)
					goto unposted;
			}
			if (to.count != pushed->to.count) {
				last = i;
				p->behind |= SP_WHY_DATA;
			}
			pushed->to = to;
			news = true;
		}
	}
	tells = sp_pass_tells(c, p);
	if (!news && !tells && !(sp_pass_why(c, node) & SP_WHY_FLAG))
		return did;
	ret = sp_pass_row(c, node, carries ? carrier : last,
			  carries ? &carried : NULL, news || tells);
	if (ret)
		goto unposted;
	if (carries)
		sp_pass_pushed(c, carrier, &p->pushed[carrier].to);
	return news ? SP_DID_NEWS : did;

unposted:
	if (carries)
		p->pushed[carrier].to = from;
	c->unposted = true;
	return ret == -EAGAIN ? did : ret;
}

/*
 * The pusher's half of dozing: once its write has landed, the flag says for sure
 * whether the peer may have missed it.
 */
static int sp_pass_wake(struct sp_core *c, u32 node)
{
	struct sp_peer *p = &c->peers[node];
	int ret;

	if (!p->check || p->landed < p->check)
		return 0;
	ret = sp_pass_rouse(c, node, &c->posts.wakes_late);
	if (ret == -EAGAIN) {
		c->unposted = true;
		return 0;
	}
	if (ret)
		return ret;
	p->check = p->recheck > p->landed ? p->recheck : 0;
	return 0;
}

static int sp_pass_push_all(struct sp_core *c, bool tell)
{
	int did = 0;
	int ret;
	u32 n;

	for (n = 0; n < c->order.nnodes; n++) {
		if (c->peers[n].gone)
			continue;
		ret = sp_pass_push(c, n, tell);
		if (ret < 0) {
			c->faulty = n;
			return ret;
		}
		did |= ret;
	}
	return did;
}

/* Is there a landing to wait for, which is sure to come and is an event? */
static bool sp_pass_waits(const struct sp_core *c)
{
	u32 n;

	if (c->unposted)
		return false;
	for (n = 0; n < c->order.nnodes; n++) {
		const struct sp_peer *p = &c->peers[n];

		if (!p->gone && !p->cut && p->landed < p->ticket)
			return true;
	}
	return false;
}

/*
 * Does anybody here wait for rows to land? Lanes of which more is to be pushed, a
 * writer that may have no room, and a peer whose flag is to be read then.
 */
static bool sp_pass_wants(const struct sp_core *c)
{
	const struct sp_order *o = &c->order;
	u32 i, n;

	for (i = 0; i < c->nown; i++) {
		const struct sp_own *own = &c->own[i];

		if (own->tx && sp_order_full(o, own->now.tail - own->tx->head,
					     own->now.count - own->tx->freed))
			return true;
	}
	for (n = 0; n < o->nnodes; n++) {
		const struct sp_peer *p = &c->peers[n];

		if (p->gone || p->cut)
			continue;
		if (p->check)
			return true;
		for (i = 0; i < c->nown; i++)
			if (c->own[i].tx && (p->open >> i & 1) &&
			    p->pushed[i].to.round != c->own[i].now.round)
				return true;
	}
	return false;
}

/* Is there room of own lanes that readers have not given back? */
static bool sp_pass_owed(const struct sp_core *c)
{
	u32 i;

	for (i = 0; i < c->nown; i++)
		if (c->own[i].tx &&
		    READ_ONCE(c->own[i].tx->freed) != c->own[i].now.count)
			return true;
	return false;
}

/*
 * Passes without news before the engine dozes. More while an answer is about
 * to come, one round trip away: to be woken for it costs as much again, and a
 * peer whose flag rises before our write is known to have landed is woken for
 * nothing.
 */
static u32 sp_pass_patience(const struct sp_core *c)
{
	u32 answer = 0;
	u32 n;

	if (!c->polled || c->idle < c->spin)
		return c->spin;
	for (n = 0; n < c->order.nnodes; n++)
		if (!c->peers[n].gone && !c->peers[n].cut)
			answer = max(answer, c->peers[n].answer);
	/* Who waits for others than the wire is not to spin for them. */
	answer = min(answer, c->spin * SP_SPIN_MOST);
	if (sp_order_quiet(&c->order) && !sp_pass_waits(c) && !sp_pass_owed(c))
		return max(c->spin, answer);
	return max(c->spin * SP_SPIN_BUSY, answer * SP_SPIN_ANSWERS);
}

/*
 * Nothing sleeps before its rows have landed: they carry the flag, and their
 * completion frees room and says when to read the peers' flags. Where rows
 * arrive as events no flag is needed, but the rest is.
 */
static int sp_pass_doze(struct sp_core *c, int did, bool landed)
{
	bool waits;
	int ret;

	/* Room for a writer here, which will say so when it has used it, ends no rest. */
	if (did & ~(c->polled || c->doze.state == SP_AWAKE ? 0 : SP_DID_FREE)) {
		sp_core_kick(c);
		/*
		 * What comes now is an event, or found by the shell's last look, but
		 * for what a stage has left that takes one at a time.
		 */
		if (c->polled || c->spin || ~c->on & SP_OPT_BATCH)
			return did;
	}
	if (c->idle <= sp_pass_patience(c))
		c->idle++;
	/* What was told just now, too, has to land, and its flag to be read. */
	waits = c->unposted || sp_pass_waits(c);
	if (c->doze.state == SP_ASLEEP && waits) {
		sp_doze_again(&c->doze);
		return did;
	}
	if (c->unposted || sp_core_rests(c))
		return did;
	if (c->doze.state == SP_DOZING) {
		sp_doze_look(&c->doze, landed && !waits);
		return did;
	}
	if (c->doze.state != SP_AWAKE || c->idle <= sp_pass_patience(c))
		return did;
	sp_doze_begin(&c->doze);
	ret = sp_pass_push_all(c, false);
	return ret < 0 ? ret : did;
}

/*
 * The node's readers have consumed something. Without SP_OPT_DELIVER peers are
 * told of each message by itself and at once.
 */
static int sp_pass_consumed(struct sp_core *c, u64 released)
{
	struct sp_order *o = &c->order;
	bool each = !(c->on & SP_OPT_DELIVER);
	int ret;

	if (each)
		released = min(released, o->released + 1);
	/* What is told of it rides along with other news, or waits for sleep. */
	if (!sp_order_release(o, released) || !each)
		return 0;
	c->consumed_due = o->nodes[o->self].consumed;
	ret = sp_pass_push_all(c, true);
	return ret < 0 ? ret : SP_DID_NEWS;
}

/*
 * A lane may soon want the room that was consumed here. Return: true when a sender
 * might be waiting for what readers have not consumed yet.
 */
static bool sp_pass_pressure(struct sp_core *c)
{
	struct sp_order *o = &c->order;
	bool tight = false;
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		struct sp_lane *lane = sp_order_lane(o, i);

		if (sp_order_full(o, lane->now.tail - lane->told_head,
				  lane->now.count - lane->told_freed)) {
			c->consumed_tight = o->nodes[o->self].consumed;
			tight = true;
		}
		if (lane->head - lane->told_head < o->units / 4 &&
		    lane->freed - lane->told_freed < o->depth / 4)
			continue;
		lane->told_head = lane->head;
		lane->told_freed = lane->freed;
		c->consumed_due = o->nodes[o->self].consumed;
	}
	return tight;
}

/* How long does it take until a row is known to have landed? */
static void sp_pass_answered(struct sp_core *c, struct sp_peer *p)
{
	if (!p->asked || p->landed < p->asked)
		return;
	p->asked = 0;
	p->answer = max(c->passes - p->asked_at, p->answer - p->answer / 8);
}

/* Everything that has come of one peer. */
static int sp_pass_hear(struct sp_core *c, u32 node, bool *landed, u64 *received)
{
	struct sp_peer *p = &c->peers[node];
	int did = 0;
	int ret;

	c->faulty = node;
	if (!p->cut) {
		/* Before the look: what landed after it is not covered. */
		p->landed = c->ops->landed(c, node);
		sp_pass_landed(c, p);
		sp_pass_answered(c, p);
		ret = sp_pass_wake(c, node);
		if (ret < 0)
			return ret;
		did = ret;
		if (p->landed < p->ticket || p->check ||
		    (c->polled && p->sleep != c->doze.epoch))
			*landed = false;
	}
	ret = sp_pass_peer(c, node, received);
	return ret < 0 ? ret : did | ret;
}

/**
 * sp_pass_look() - take all that has come, and no more than that
 * @c: the group
 *
 * Return: as sp_pass().
 */
int sp_pass_look(struct sp_core *c)
{
	u64 received = 0;
	int did = 0;
	int ret;
	u32 n;

	c->on = SP_OPT_ALL;
	did |= sp_pass_own(c);
	for (n = 0; n < c->order.nnodes; n++) {
		if (c->peers[n].gone)
			continue;
		c->faulty = n;
		ret = sp_pass_peer(c, n, &received);
		if (ret < 0)
			return ret;
		did |= ret;
	}
	sp_batch_add(&c->batches[SP_STAGE_RECEIVE], received);
	return did;
}

/* The view comes to its end: only what readers do is noted. */
static int sp_pass_wedged(struct sp_core *c, u64 released)
{
	return sp_order_release(&c->order, released) ? SP_DID_NEWS : 0;
}

/**
 * sp_pass() - run all predicates of a group once
 * @c: the group
 * @released: entries of the log that no local reader needs any longer,
 *	counted from the first
 *
 * Return: SP_DID_* flags; or -EPROTO when the node @c->faulty wrote what no
 * correct node writes, or the errno with which posting to it failed.
 */
int sp_pass(struct sp_core *c, u64 released)
{
	struct sp_order *o = &c->order;
	bool all_landed = true;
	bool tight;
	u64 delivered = o->messages;
	u64 received = 0;
	u32 fins = o->fins;
	int did = 0;
	int ret;
	u32 n;

	if (c->wedged)
		return sp_pass_wedged(c, released);
	c->on = READ_ONCE(c->opt);
	c->unposted = false;
	c->passes++;
	did |= sp_pass_own(c);
	for (n = 0; n < o->nnodes; n++) {
		if (c->peers[n].gone)
			continue;
		ret = sp_pass_hear(c, n, &all_landed, &received);
		if (ret < 0)
			return ret;
		did |= ret;
	}
	sp_batch_add(&c->batches[SP_STAGE_RECEIVE], received);
	did |= sp_pass_nulls(c);
	sp_order_advance(o);
	if (sp_order_deliver(o, sp_pass_most(c, SP_OPT_DELIVER)))
		did |= SP_DID_NEWS | SP_DID_DELIVER;
	sp_batch_add(&c->batches[SP_STAGE_DELIVER], o->messages - delivered);
	if (o->fins != fins && o->fins == o->nlanes)
		did |= SP_DID_NEWS | SP_DID_CLOSE;
	ret = sp_pass_consumed(c, released);
	if (ret < 0)
		return ret;
	did |= ret;
	tight = sp_pass_pressure(c);
	if (c->nown)
		did |= sp_pass_free(c);

	ret = sp_pass_push_all(c, false);
	if (ret < 0)
		return ret;
	ret = sp_pass_doze(c, did | ret, all_landed);
	c->waits = sp_pass_waits(c);
	WRITE_ONCE(c->lazy, sp_core_rests(c) && !tight && !sp_pass_wants(c) &&
		   !sp_pass_awaited(c));
	return ret;
}
