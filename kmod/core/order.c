// SPDX-License-Identifier: GPL-2.0
/*
 * Total order of one group as one node sees it.
 *
 * Paper: "Spindle: Techniques for Optimizing Atomic Multicast on RDMA",
 * sections 2.1 (round-robin order), 2.4 (predicates), 3.2 (opportunistic
 * batching) and 3.3 (null-sends). Nulls here are a promise of rounds and take
 * no ring space.
 */
#include "order.h"

/**
 * sp_tx_init() - make an own lane ready to send
 * @tx: the lane's sending side
 * @desc: its ring of descriptors, in the own slab
 * @depth: length of it, a power of two
 * @window: bytes of the lane's ring, a power of two
 * @rank: rank of the lane among the senders
 * @senders: number of senders
 */
void sp_tx_init(struct sp_tx *tx, struct sp_desc *desc, u32 depth, u32 window,
		u32 rank, u32 senders)
{
	memset(tx, 0, sizeof(*tx));
	tx->desc = desc;
	tx->depth = depth;
	tx->units = window >> SP_UNIT_SHIFT;
	tx->rank = rank;
	tx->senders = senders;
}

/**
 * sp_tx_view() - a new view begins
 * @tx: the lane's sending side; what it has sent beyond @base is sent again
 * @base: the lane's first turn in the view
 * @start: the view's first turn in the order
 * @rank: rank of the lane among the senders
 * @senders: number of senders
 */
void sp_tx_view(struct sp_tx *tx, u64 base, s64 start, u32 rank, u32 senders)
{
	tx->base = base;
	tx->start = start;
	tx->rank = rank;
	tx->senders = senders;
}

/**
 * sp_tx_members() - who may be sent private messages from now on
 * @tx: the lane's sending side
 * @v: the view that begins
 *
 * In one step with the view, as far as who pushes the lane sees: what is committed for
 * a member goes to its node.
 */
void sp_tx_members(struct sp_tx *tx, const struct sp_view *v)
{
	u32 i;

	for (i = 0; i < v->nmembers; i++)
		tx->uid[i] = v->members[i].uid;
	tx->nmembers = v->nmembers;
}

/**
 * sp_tx_private() - may a message be for one member alone
 * @tx: the lane's sending side
 * @uid: the member's number
 *
 * Return: 0, or -EHOSTUNREACH when the view has no such member.
 */
int sp_tx_private(const struct sp_tx *tx, u32 uid)
{
	u32 i;

	for (i = 0; i < tx->nmembers; i++)
		if (tx->uid[i] == uid)
			return 0;
	return -EHOSTUNREACH;
}

/**
 * sp_tx_seq() - place of an own turn in the order
 * @tx: the lane's sending side
 * @index: the turn
 *
 * Return: its sequence number; of a turn of an earlier view, the last one
 * before this view.
 */
s64 sp_tx_seq(const struct sp_tx *tx, u64 index)
{
	if (index < tx->base)
		return tx->start - 1;
	return tx->start + sp_seq(index - tx->base, tx->senders, tx->rank);
}

/**
 * sp_tx_place() - place of an own message in the order
 * @tx: the lane's sending side
 * @count: the last one of so many descriptors, from the lane's first
 *
 * Return: its sequence number, as sp_tx_seq() knows it; -1 when it is not kept any
 * longer, or there is none.
 */
s64 sp_tx_place(const struct sp_tx *tx, u64 count)
{
	const struct sp_desc *d = &tx->desc[(count - 1) & (tx->depth - 1)];

	if (count <= tx->freed || count > tx->now.count)
		return -1;
	return sp_tx_seq(tx, sp_extend32(tx->now.round, d->index));
}

/**
 * sp_tx_space() - look for room for one message
 * @tx: the lane's sending side
 * @len: length of the message
 * @off: where it will start, in bytes from the start of the ring
 *
 * The ring is mapped twice back to back: a message that begins near its end
 * goes on without a break. One descriptor is kept for SP_DESC_FIN.
 *
 * Return: 0; -EAGAIN when peers must consume first; -EMSGSIZE when it can
 * never fit; -EPIPE after SP_DESC_FIN.
 */
int sp_tx_space(const struct sp_tx *tx, u32 len, u64 *off)
{
	u32 need = sp_units(len);

	if (tx->fin)
		return -EPIPE;
	if (need > tx->units)
		return -EMSGSIZE;
	if (tx->now.count - tx->freed >= tx->depth - 1)
		return -EAGAIN;
	if (tx->now.tail - tx->head + need > tx->units)
		return -EAGAIN;
	*off = (tx->now.tail & (tx->units - 1)) << SP_UNIT_SHIFT;
	return 0;
}

/**
 * sp_tx_commit() - give the next turn to a message whose bytes are in the ring
 * @tx: the lane's sending side; sp_tx_space() said 0, or SP_DESC_FIN is set
 * @len: length of the message
 * @flags: SP_DESC_*; of a private message sp_tx_private() said 0
 */
void sp_tx_commit(struct sp_tx *tx, u32 len, u32 flags)
{
	struct sp_desc *d = &tx->desc[tx->now.count & (tx->depth - 1)];

	d->index = (u32)tx->now.round;
	d->len = len;
	d->pos = (u32)tx->now.tail;
	d->flags = flags;
	tx->now.tail += sp_units(len);
	tx->now.pad = len ? sp_units(len) * SP_UNIT - len : tx->now.pad;
	tx->now.round++;
	tx->now.count++;
	if (flags & SP_DESC_FIN) {
		tx->fin = true;
		return;
	}
	if (flags & SP_DESC_PRIVATE)
		tx->privates = tx->now.count;
	tx->messages++;
	tx->bytes += len;
}

/**
 * sp_tx_nulls() - promise that all turns below a round that are not taken
 * stay empty
 * @tx: the lane's sending side
 * @round: the round, from sp_order_null_target()
 *
 * Return: how many turns were given up.
 */
u64 sp_tx_nulls(struct sp_tx *tx, u64 round)
{
	u64 nulls;

	if (round <= tx->now.round)
		return 0;
	nulls = round - tx->now.round;
	tx->now.round = round;
	return nulls;
}

/**
 * sp_tx_free() - take back ring space and descriptors
 * @tx: the lane's sending side
 * @consumed: every node's readers have consumed up to here
 * @completed: descriptors whose work requests have completed to every peer;
 *	a request may read its source again until then
 *
 * Return: true when something was freed.
 */
bool sp_tx_free(struct sp_tx *tx, s64 consumed, u64 completed)
{
	u64 was = tx->freed;
	/* Indices of unfreed messages lie at most the window's rounds back. */
	u64 index = tx->now.round;

	while (tx->freed < tx->now.count && tx->freed < completed) {
		const struct sp_desc *d = &tx->desc[tx->freed & (tx->depth - 1)];

		index = sp_extend32(tx->now.round, d->index);
		if (sp_tx_seq(tx, index) > consumed)
			break;
		tx->head += sp_units(d->len);
		tx->freed++;
	}
	return tx->freed != was;
}

/**
 * sp_tx_unfreed() - what is still kept for others
 * @tx: the lane's sending side
 *
 * Return: bytes in messages that not all readers have consumed.
 */
u64 sp_tx_unfreed(const struct sp_tx *tx)
{
	u64 bytes = 0;
	u64 i;

	for (i = tx->freed; i < tx->now.count; i++)
		bytes += tx->desc[i & (tx->depth - 1)].len;
	return bytes;
}

/**
 * sp_tx_cut() - shorten a stretch of a lane
 * @tx: the lane's sending side; nothing of the stretch was freed
 * @from: where the stretch begins
 * @to: where it ends; what keeps within the bounds stays as it is
 * @messages: so many at most
 * @units: so many units of the ring at most
 *
 * Nulls up to the first message that is cut off come along.
 */
void sp_tx_cut(const struct sp_tx *tx, const struct sp_point *from,
	       struct sp_point *to, u64 messages, u64 units)
{
	struct sp_point at = *from;

	if (to->count - from->count <= messages &&
	    to->tail - from->tail <= units)
		return;
	for (; at.count != to->count; messages--) {
		const struct sp_desc *d = &tx->desc[at.count & (tx->depth - 1)];
		u32 need = sp_units(d->len);

		at.round = sp_extend32(at.round, d->index);
		if (!messages || at.tail + need - from->tail > units)
			break;
		at.round++;
		at.count++;
		at.tail += need;
		if (need)
			at.pad = need * SP_UNIT - d->len;
	}
	to->round = at.round;
	to->count = at.count;
	to->tail = at.tail;
	to->pad = at.pad;
}

/* Split [from, from + n) of a ring with @size entries where it wraps. */
static void sp_split(struct sp_seg seg[2], u64 from, u64 n, u32 size, u32 each)
{
	u32 start = from & (size - 1);
	u32 first = min_t(u64, n, size - start);

	seg[0].off = start * each;
	seg[0].len = first * each;
	seg[1].off = 0;
	seg[1].len = (n - first) * each;
}

/**
 * sp_tx_run() - what to push so that a peer knows a lane up to a point
 * @from: how far the lane was pushed to that peer
 * @to: how far it has come
 * @depth: descriptors of the lane
 * @units: units of its ring
 * @run: the stretches, in the order they are to be posted
 *
 * Everything committed since is one contiguous run, two where it wraps (paper,
 * section 3.2); the unused end of its last unit is left out.
 *
 * Return: true when there is anything to push, if only a new round.
 */
bool sp_tx_run(const struct sp_point *from, const struct sp_point *to,
	       u32 depth, u32 units, struct sp_run *run)
{
	sp_split(run->bytes, from->tail, to->tail - from->tail, units, SP_UNIT);
	if (run->bytes[1].len)
		run->bytes[1].len -= to->pad;
	else if (run->bytes[0].len)
		run->bytes[0].len -= to->pad;
	sp_split(run->desc, from->count, to->count - from->count, depth,
		 sizeof(struct sp_desc));
	return from->round != to->round;
}

/**
 * sp_messages() - how many messages a stretch of descriptors holds
 * @ring: the lane's descriptors, checked or own
 * @depth: its length, a power of two
 * @from: the first one
 * @to: behind the last one
 *
 * Return: all of them, but for SP_DESC_FIN, which can only be the last.
 */
u64 sp_messages(const struct sp_desc *ring, u32 depth, u64 from, u64 to)
{
	if (from == to)
		return 0;
	return to - from - !!(ring[(to - 1) & (depth - 1)].flags & SP_DESC_FIN);
}

/**
 * sp_lane_init() - a lane begins here
 * @lane: the lane; the caller has set @node, @lane, @member, @src and @desc
 * @at: the point from which on it is received; its first turn in the view
 */
void sp_lane_init(struct sp_lane *lane, const struct sp_point *at)
{
	lane->base = at->round;
	lane->now = *at;
	lane->freed = at->count;
	lane->head = at->tail;
	lane->taken = at->count;
	lane->told_freed = at->count;
	lane->told_head = at->tail;
	lane->done = -1;
	lane->held = 0;
	lane->fin = false;
}

/**
 * sp_lane_point() - the point at which a lane enters the view
 * @lane: the lane; nothing was delivered in the view yet
 * @depth: its descriptors
 * @at: the point
 */
void sp_lane_point(const struct sp_lane *lane, u32 depth, struct sp_point *at)
{
	const struct sp_desc *d = &lane->desc[lane->taken & (depth - 1)];
	u64 tail = lane->now.tail;

	if (lane->taken != lane->now.count)
		tail -= (u32)tail - d->pos;
	at->round = lane->base;
	at->count = lane->taken;
	at->tail = tail;
	at->pad = 0;
}

/**
 * sp_order_init() - begin the first view that this node is in
 * @o: the order; the caller has set the pointers, the sizes, @o->self,
 *	@o->epoch, @o->start and @o->slot, and begun each lane; it sets @fin of
 *	those whose last message was delivered before
 */
void sp_order_init(struct sp_order *o)
{
	u32 i;

	for (i = 0; i < o->nnodes; i++) {
		o->nodes[i].received = o->start - 1;
		/* Readers of other nodes may be behind the place where this node came. */
		o->nodes[i].consumed = i == o->self ? o->start - 1 : -1;
	}
	o->slack = 0;
	o->delivered = o->start - 1;
	o->due = o->start - 1;
	o->published = 0;
	o->released = 0;
	o->fins = 0;
	o->privates = 0;
	for (i = 0; i < o->nlanes; i++)
		o->fins += sp_order_lane(o, i)->fin;
	o->messages = 0;
	o->bytes = 0;
	o->nulls = 0;
}

/*
 * No lane can be further than this, counted from its first turn in the view. A
 * round above the last consumed one holds at least one message (nobody
 * promises a null beyond somebody's message), a message beyond what this node
 * consumed keeps its descriptor, and a lane has only so many of these. On top
 * come rounds that were promised in an earlier view and lie beyond its trim.
 */
static u64 sp_round_limit(const struct sp_order *o)
{
	s64 consumed = max(sp_order_consumed(o), o->start - 1);
	u64 base = o->nlanes ?
		(u64)(consumed + 1 - o->start) / o->nlanes : 0;

	return base + (u64)o->nlanes * o->depth + 2 + o->slack;
}

/**
 * sp_order_own() - note how far an own lane has come
 * @o: the order
 * @rank: rank of the lane
 * @now: copy of the lane's point, taken under its lock
 */
void sp_order_own(struct sp_order *o, u32 rank, const struct sp_point *now)
{
	sp_order_lane(o, rank)->now = *now;
}

/**
 * sp_order_take() - receive predicate: take what is new of a peer's lane
 * @o: the order
 * @rank: rank of the lane
 * @word: its progress word, from a cell that held together
 * @max: most messages to take: U32_MAX for all. Those left are new again
 *
 * Reads each new descriptor once, into private memory, and believes none: a
 * length, place or index that no correct peer can write makes the peer faulty.
 *
 * Return: 1 when there was news, 0 when not, -EPROTO when the peer is faulty.
 */
int sp_order_take(struct sp_order *o, u32 rank, u64 word, u32 max)
{
	struct sp_lane *lane = sp_order_lane(o, rank);
	u64 round = sp_extend32(lane->now.round, sp_progress_round(word));
	u64 count = sp_extend32(lane->now.count, sp_progress_count(word));
	struct sp_point now = lane->now;
	u64 next_index;
	bool all;

	/*
	 * A peer whose connection was lost does not know all that has landed. It
	 * writes that once more, and its progress word comes to where it was.
	 */
	if (round <= now.round && count <= now.count &&
	    now.count - count <= o->depth)
		return 0;
	if (round < now.round || round - lane->base > sp_round_limit(o) ||
	    count < now.count || count - lane->freed > o->depth ||
	    count - now.count > round - now.round)
		return -EPROTO;

	all = count - now.count <= max;
	if (!all)
		count = now.count + max;
	next_index = now.round;
	for (; now.count < count; now.count++) {
		const struct sp_desc *src = &lane->src[now.count & (o->depth - 1)];
		struct sp_desc *d = &lane->desc[now.count & (o->depth - 1)];
		u64 index;

		d->index = READ_ONCE(src->index);
		d->len = READ_ONCE(src->len);
		d->pos = READ_ONCE(src->pos);
		d->flags = READ_ONCE(src->flags);
		index = sp_extend32(next_index, d->index);
		if (index < next_index || index >= round ||
		    d->len > o->max_len || d->pos != (u32)now.tail ||
		    !sp_desc_flags_ok(d->flags) ||
		    now.tail - lane->head + sp_units(d->len) > o->units)
			return -EPROTO;
		now.tail += sp_units(d->len);
		next_index = index + 1;
	}
	/* Turns behind a message that was left are not known to be empty. */
	now.round = all ? round : next_index;
	lane->now = now;
	return 1;
}

/**
 * sp_order_row() - note a peer's acknowledgments
 * @o: the order
 * @node: rank of the node
 * @received: its received_num
 * @consumed: what its readers consumed
 *
 * Return: 1 when it has received more, 0 when not, -EPROTO when the peer is
 * faulty.
 */
int sp_order_row(struct sp_order *o, u32 node, s64 received, s64 consumed)
{
	struct sp_node_seen *seen = &o->nodes[node];

	/*
	 * No row says less than it did when the view began. Nothing is delivered
	 * anywhere before this node has received it.
	 */
	if (received < o->start - 1 || consumed < -1 ||
	    consumed > o->nodes[o->self].received ||
	    received - o->start >= sp_seq(sp_round_limit(o), o->nlanes, 0))
		return -EPROTO;
	/*
	 * A row whose connection was lost before it was known to have landed lands
	 * once more, and then those behind it: what it says was seen before. Each of
	 * the two counts for itself. When they are looked at while rows land, one may
	 * be of such a row, and the other of one that is new.
	 */
	if (consumed > seen->consumed)
		seen->consumed = consumed;
	if (received <= seen->received)
		return 0;
	seen->received = received;
	return 1;
}

/* Was its last turn an empty one, and is everything before that delivered? */
static bool sp_lane_quiet(const struct sp_lane *lane, u32 depth)
{
	if (lane->taken != lane->now.count)
		return false;
	return !lane->now.count ||
	       lane->desc[(lane->now.count - 1) & (depth - 1)].index + 1 !=
	       (u32)lane->now.round;
}

/**
 * sp_order_null_target() - null rule: the round an own lane should reach
 * @o: the order, with the own lanes noted
 * @rank: rank of the own lane
 *
 * A lane must not hold up a turn that comes before somebody's message (paper,
 * section 3.3): before lane j's last turn n_j - 1 stand lane i's turns below
 * n_j when i < j, below n_j - 1 when i > j. All other lanes count, those of
 * the own node too: over remote ones only, a silent lane and an active one on
 * the same node stall.
 *
 * A lane that had nothing to send last time gives up turn n_j - 1 in either case,
 * with the row that acknowledges that message, as it most likely will have to when
 * the next one comes: that one then waits for no row but acknowledgments.
 *
 * Return: the round; not above the lane's own when there is nothing to do.
 */
u64 sp_order_null_target(const struct sp_order *o, u32 rank)
{
	const struct sp_lane *own = sp_order_lane(o, rank);
	bool quiet = sp_lane_quiet(own, o->depth);
	u64 target = 0;
	u32 j;

	for (j = 0; j < o->nlanes; j++) {
		const struct sp_lane *lane = sp_order_lane(o, j);
		u64 n = lane->now.round - lane->base;

		if (j == rank || !n)
			continue;
		target = max(target, rank < j || quiet ? n : n - 1);
	}
	return own->base + target;
}

/*
 * May a turn in (@from, @upto] hold a message? That of a lane's last one says so;
 * of a lane with several to deliver nothing more is looked for.
 */
static bool sp_order_holds(const struct sp_order *o, s64 from, s64 upto)
{
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);
		const struct sp_desc *d;
		u64 index;
		s64 seq;

		if (lane->taken == lane->now.count)
			continue;
		if (lane->now.count - lane->taken > 1)
			return true;
		d = &lane->desc[lane->taken & (o->depth - 1)];
		index = sp_extend32(lane->now.round, d->index);
		seq = o->start + sp_seq(index - lane->base, o->nlanes, i);
		if (seq > from && seq <= upto)
			return true;
	}
	return false;
}

/**
 * sp_order_advance() - compute this node's received_num
 * @o: the order
 *
 * received_num = m * S + r - 1, with m the least number of turns received
 * from any lane and r the first rank that has no more than that.
 *
 * Return: true when it moved.
 */
bool sp_order_advance(struct sp_order *o)
{
	u64 least = ~0ull;
	u32 first = 0;
	s64 received;
	u32 i;

	if (!o->nlanes)
		return false;
	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);

		if (lane->now.round - lane->base < least) {
			least = lane->now.round - lane->base;
			first = i;
		}
	}
	received = o->start + sp_seq(least, o->nlanes, first) - 1;
	if (received == o->nodes[o->self].received)
		return false;
	if (sp_order_holds(o, o->nodes[o->self].received, received))
		o->due = received;
	o->nodes[o->self].received = received;
	return true;
}

/**
 * sp_order_members() - note the members of a view
 * @o: the order
 * @v: the view that begins
 */
void sp_order_members(struct sp_order *o, const struct sp_view *v)
{
	u64 stale = 0;
	u32 i;

	o->nmembers = v->nmembers;
	for (i = 0; i < v->nmembers; i++) {
		o->uid[i] = v->members[i].uid;
		o->seat[i] = v->members[i].node;
		if (v->members[i].flags & SP_MEMBER_STALE)
			stale |= 1ull << i;
	}
	WRITE_ONCE(o->stale, stale);
}

/**
 * sp_order_reads() - does anybody on a node read a message
 * @o: the order
 * @node: rank of the node
 * @flags: SP_DESC_* of the message
 *
 * Return: false for a private one whose member is not there.
 */
bool sp_order_reads(const struct sp_order *o, u32 node, u32 flags)
{
	u32 i;

	if (!(flags & SP_DESC_PRIVATE))
		return true;
	for (i = 0; i < o->nmembers; i++)
		if (o->seat[i] == node && o->uid[i] == sp_desc_uid(flags))
			return true;
	return false;
}

/*
 * A private message has its place in the order, which all nodes see: so has what it says.
 * Return: its flags in the log; when its member has gone it is nobody's, and says nothing.
 */
static u32 sp_order_private(struct sp_order *o, u32 flags)
{
	u32 i;

	o->privates++;
	for (i = 0; i < o->nmembers; i++)
		if (o->uid[i] == sp_desc_uid(flags))
			break;
	if (i == o->nmembers)
		return SP_DESC_PRIVATE | SP_UID_NOBODY << SP_DESC_UID_SHIFT;
	if (flags & SP_DESC_STATE)
		WRITE_ONCE(o->stale, o->stale & ~(1ull << i));
	return flags;
}

static void sp_order_put(struct sp_order *o, u32 rank, u64 index, s64 seq)
{
	struct sp_lane *lane = sp_order_lane(o, rank);
	const struct sp_desc *d = &lane->desc[lane->taken & (o->depth - 1)];
	struct sp_log *log;

	if (lane->taken == lane->now.count || d->index != (u32)index) {
		o->nulls++;
		return;
	}
	log = &o->log[o->published & (o->log_size - 1)];
	log->seq = seq;
	log->lane = o->slot[rank] | lane->member << SP_LOG_RANK_SHIFT;
	log->pos = d->pos & (o->units - 1);
	log->len = d->len;
	log->flags = d->flags;
	if (d->flags & SP_DESC_PRIVATE)
		log->flags = sp_order_private(o, d->flags);
	lane->taken++;
	lane->held++;
	o->published++;
	if (!(d->flags & SP_DESC_FIN)) {
		if (sp_order_reads(o, o->self, log->flags)) {
			o->messages++;
			o->bytes += d->len;
		}
		return;
	}
	lane->fin = true;
	o->fins++;
}

/**
 * sp_order_publish() - publish one turn, if it holds a message
 * @o: the order; its log has room
 * @rank: rank of the lane whose turn it is
 * @index: the lane's round
 * @seq: the turn's place in the order
 */
void sp_order_publish(struct sp_order *o, u32 rank, u64 index, s64 seq)
{
	sp_order_put(o, rank, index, seq);
}

/**
 * sp_order_deliver() - delivery predicate: publish what became stable
 * @o: the order
 * @max: most entries to publish: U32_MAX for all. Those left are found again
 *
 * A turn is deliverable when every node has received it, and the log has room.
 *
 * Return: how many entries were added to the log.
 */
u32 sp_order_deliver(struct sp_order *o, u32 max)
{
	s64 upto = o->nodes[0].received;
	u64 before = o->published;
	u32 rank;
	u64 turn;
	s64 seq;
	u32 i;

	for (i = 1; i < o->nnodes; i++)
		upto = min(upto, o->nodes[i].received);
	if (upto <= o->delivered || !o->nlanes)
		return 0;

	max = min_t(u64, max, o->log_size - (o->published - o->released));
	seq = o->delivered + 1;
	turn = (u64)(seq - o->start) / o->nlanes;
	rank = (u64)(seq - o->start) % o->nlanes;
	for (; seq <= upto && o->published - before < max; seq++) {
		sp_order_put(o, rank, sp_order_lane(o, rank)->base + turn, seq);
		if (++rank == o->nlanes) {
			rank = 0;
			turn++;
		}
	}
	o->delivered = seq - 1;
	return o->published - before;
}

/**
 * sp_order_event() - put an event into the stream, behind all that was published
 * @o: the order
 * @what: what it is
 * @number: which one
 *
 * Return: 0, or -ENOBUFS when the log has no room.
 */
int sp_order_event(struct sp_order *o, u32 what, u32 number)
{
	struct sp_log *log = &o->log[o->published & (o->log_size - 1)];

	if (o->published - o->released == o->log_size)
		return -ENOBUFS;
	log->seq = o->delivered;
	log->lane = what;
	log->pos = number;
	log->len = 0;
	log->flags = SP_LOG_EVENT;
	o->published++;
	return 0;
}

/**
 * sp_order_release() - note what the local readers have consumed
 * @o: the order
 * @upto: entries of the log, counted from the first, that no local reader
 *	needs any longer; at most @o->published
 *
 * Return: true when that frees anything.
 */
bool sp_order_release(struct sp_order *o, u64 upto)
{
	u64 was = o->released;

	for (; o->released < upto; o->released++) {
		const struct sp_log *log = &o->log[o->released & (o->log_size - 1)];
		struct sp_lane *lane;

		if (log->flags & SP_LOG_EVENT)
			continue;
		lane = &o->lanes[log->lane & SP_LOG_SLOT];
		lane->head += sp_units(log->len);
		lane->freed++;
		lane->done = log->seq;
		lane->held--;
	}
	o->nodes[o->self].consumed = sp_order_consumed(o);
	return o->released != was;
}

/**
 * sp_order_consumed() - what this node's readers have consumed
 * @o: the order
 *
 * Return: every turn up to it was consumed, or was a null.
 */
s64 sp_order_consumed(const struct sp_order *o)
{
	const struct sp_log *log = &o->log[o->released & (o->log_size - 1)];

	if (o->released == o->published)
		return o->delivered;
	/* An event takes no turn: it follows the one it names. */
	return log->flags & SP_LOG_EVENT ? log->seq : log->seq - 1;
}

/**
 * sp_order_quiet() - is everything that was received delivered
 * @o: the order
 *
 * Return: true when this node waits for nobody's acknowledgment.
 */
bool sp_order_quiet(const struct sp_order *o)
{
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);

		if (lane->taken != lane->now.count)
			return false;
	}
	return true;
}

/**
 * sp_order_flows() - do messages follow one another
 * @o: the order
 *
 * Then it saves work to look at many together, and costs them nothing, since those
 * before are still under way.
 *
 * Return: true when more than one of a lane are not delivered yet.
 */
bool sp_order_flows(const struct sp_order *o)
{
	u32 i;

	for (i = 0; i < o->nlanes; i++) {
		const struct sp_lane *lane = sp_order_lane(o, i);

		if (lane->now.count > lane->taken + 1)
			return true;
	}
	return false;
}
