// SPDX-License-Identifier: GPL-2.0
/*
 * The programs: each lane follows a plan of sends, each reader consumes at its
 * own pace. All that a program may rely on is checked here: the bytes, the
 * order, that nothing is lost, and that the group comes to rest.
 */
#include <stdlib.h>

#include "sim.h"

/* Message @k of lane @lane, byte @i. */
static u64 app_key(u32 lane, u32 k)
{
	return rng_mix(((u64)lane << 32 | k) + 0x5bd1e995);
}

static u8 app_byte(u64 key, u32 i)
{
	return (u8)(key >> (8 * (i & 7))) + (u8)(i >> 3);
}

static void app_plan(struct sim *s, struct plan *p)
{
	const struct sim_calm *calm = s->opts.calm;
	struct rng *r = &s->rng;

	if (calm) {
		p->total = p == s->plans ? calm->each : 0;
		p->max_len = calm->len;
		p->done = !p->total;
		p->sent = calloc(p->total + 1, sizeof(*p->sent));
		return;
	}
	p->kind = rng_below(r, PLAN_KINDS);
	p->total = p->kind == PLAN_SILENT ? 0 : rng_range(r, 1, 40);
	if (p->kind == PLAN_STEADY && rng_chance(r, 300))
		p->total += rng_below(r, 300 / s->nlanes + 1);
	p->gap = rng_chance(r, 500) ? rng_range(r, 1, 8) : rng_range(r, 1, 400);
	p->burst = 1;
	switch (rng_below(r, 4)) {
	case 0:
		p->max_len = min(s->max_len, 64u);
		break;
	case 1:
		p->max_len = s->max_len;
		break;
	default:
		p->max_len = rng_below(r, s->max_len / 4 + 1);
	}
	if (s->alike)
		p->total = s->each;
	p->sent = calloc(p->total + 1, sizeof(*p->sent));
}

/* FIN from all lanes or from none: a view ends for all of them. */
void app_init(struct sim *s)
{
	bool fin = rng_chance(&s->rng, 650);
	bool slow = rng_chance(&s->rng, 300);
	u32 i, k;

	for (i = 0; i < s->nlanes; i++) {
		struct plan *p = &s->plans[i];
		u32 start;

		app_plan(s, p);
		if (s->opts.calm)
			continue;
		p->fin = fin;
		p->fin_after = slow || rng_chance(&s->rng, 200) ?
			rng_below(&s->rng, 20000) : 0;
		start = rng_range(&s->rng, 1, p->gap + 1);
		if (p->kind == PLAN_LATE)
			start += rng_below(&s->rng, 8000);
		p->scheduled = true;
		sim_after(s, start, EV_SEND, i);
	}
	for (i = 0; i < s->nnodes; i++) {
		struct node *n = &s->nodes[i];

		for (k = 0; k < n->nreaders; k++)
			n->readers[k].gap = s->opts.calm ? 1 :
				rng_chance(&s->rng, 200) ?
				rng_range(&s->rng, 50, 1500) :
				rng_range(&s->rng, 1, 40);
	}
	for (i = 0; i < s->nlanes; i++)
		s->nstory += s->plans[i].total + 1;
	s->story = calloc(s->nstory, sizeof(*s->story));
	s->nstory = 0;
}

void app_free(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->nlanes; i++)
		free(s->plans[i].sent);
	free(s->story);
}

static void app_schedule(struct sim *s, u32 lane, u32 delay)
{
	struct plan *p = &s->plans[lane];

	if (p->scheduled)
		return;
	p->scheduled = true;
	sim_after(s, delay, EV_SEND, lane);
}

/* SIOCOUTQ: what is not freed yet, by what was sent. */
static void app_check_unfreed(struct sim *s, u32 lane)
{
	const struct plan *p = &s->plans[lane];
	const struct sp_tx *tx = &s->nodes[p->node].tx[p->own];
	u64 bytes = 0;
	u32 k;

	for (k = tx->freed - s->base_count; k < p->nsent; k++)
		bytes += p->sent[k].len;
	if (sp_tx_unfreed(tx) != bytes)
		sim_violation(s, "lane %u says that %llu bytes are not freed, they are %llu",
			      lane, (unsigned long long)sp_tx_unfreed(tx),
			      (unsigned long long)bytes);
}

static void app_commit(struct sim *s, u32 lane, u32 len, u32 flags)
{
	struct plan *p = &s->plans[lane];
	struct node *n = &s->nodes[p->node];
	struct sp_tx *tx = &n->tx[p->own];
	struct sent *sent = &p->sent[p->nsent++];

	sent->len = len;
	sent->flags = flags;
	sent->seq = sp_seq(tx->now.round, s->nlanes, lane);
	sim_trace(s, "lane %u commits #%u len %u flags %u seq %lld", lane,
		  p->nsent - 1, len, flags, (long long)sent->seq);
	net_overwritten(s, n, (u8 *)&tx->desc[tx->now.count & (tx->depth - 1)],
			sizeof(*tx->desc));
	sp_tx_commit(tx, len, flags);
	if (rng_chance(&s->wait_rng, s->waits))
		p->awaited = tx->now.count;
	s->messages += !flags;
	app_check_unfreed(s, lane);
	node_local(n);
}

/* Take room and fill it: everything that was freed may be overwritten. */
static bool app_claim(struct sim *s, u32 lane, u32 len)
{
	struct plan *p = &s->plans[lane];
	struct node *n = &s->nodes[p->node];
	u64 key = app_key(lane, p->nsent);
	u64 off = 0;
	u32 first;
	u8 *ring;
	u32 i;
	int ret;

	ret = sp_tx_space(&n->tx[p->own], len, &off);
	if (ret == -EAGAIN)
		return false;
	if (ret)
		sim_violation(s, "lane %u cannot send %u bytes: %d", lane, len, ret);
	ring = n->slab[p->node] + sim_ring_off(s, p->own);
	first = min(len, s->window - (u32)off);
	net_overwritten(s, n, ring + off, first);
	net_overwritten(s, n, ring, len - first);
	for (i = 0; i < len; i++)
		ring[(off + i) & (s->window - 1)] = app_byte(key, i);
	return true;
}

static void app_finish(struct sim *s, u32 lane)
{
	struct plan *p = &s->plans[lane];

	if (p->fin && !p->fin_waited && p->fin_after) {
		p->fin_waited = true;
		app_schedule(s, lane, p->fin_after);
		return;
	}
	if (p->fin)
		app_commit(s, lane, 0, SP_DESC_FIN);
	p->done = true;
}

/* A lone message, and none behind it: lone.c and app_taken() see to the next. */
static void app_send_lone(struct sim *s, u32 lane)
{
	u32 len = s->opts.calm->len;

	if (!app_claim(s, lane, len)) {
		sim_violation(s, "no room for a lone message");
		return;
	}
	s->sent_at = s->now;
	app_commit(s, lane, len, 0);
}

/* A lone message has come back to its sender. */
static void app_taken(struct sim *s)
{
	const struct sim_calm *calm = s->opts.calm;
	struct plan *p = &s->plans[0];

	s->taken += s->now - s->sent_at;
	p->done = p->nsent == p->total;
	if (calm->pause && !p->done)
		app_schedule(s, 0, calm->pause);
}

static u32 app_gap(struct sim *s, struct plan *p)
{
	if (p->kind != PLAN_BURSTY)
		return rng_range(&s->rng, 1, p->gap);
	if (--p->burst)
		return 1;
	p->burst = rng_range(&s->rng, 1, 24);
	return rng_range(&s->rng, 1, 3000);
}

void app_send(struct sim *s, u32 lane)
{
	struct plan *p = &s->plans[lane];

	if (p->done || s->nodes[p->node].failed)
		return;
	if (p->locked) {
		app_schedule(s, lane, 1);
		return;
	}
	if (s->opts.calm) {
		app_send_lone(s, lane);
		return;
	}
	if (p->nsent == p->total) {
		app_finish(s, lane);
		return;
	}
	if (!p->claimed) {
		p->claim_len = rng_below(&s->rng, p->max_len + 1);
		p->claimed = true;
		p->blocked = true;
	}
	if (p->blocked) {
		if (!app_claim(s, lane, p->claim_len)) {
			sim_trace(s, "lane %u waits for room", lane);
			return;
		}
		p->blocked = false;
		if (rng_chance(&s->rng, 200)) {
			app_schedule(s, lane, rng_range(&s->rng, 1, p->gap));
			return;
		}
	}
	p->claimed = false;
	app_commit(s, lane, p->claim_len, 0);
	app_schedule(s, lane, app_gap(s, p));
}

/* The engine says that own lanes have more room: POLLOUT. */
void app_unblock(struct sim *s, struct node *n)
{
	u32 i;

	net_freed(s, n);
	for (i = 0; i < n->core.nown; i++) {
		app_check_unfreed(s, n->own[i].rank);
		if (s->plans[n->own[i].rank].blocked)
			app_schedule(s, n->own[i].rank, 1);
	}
}

static void app_read_later(struct sim *s, struct node *n, u32 i)
{
	struct reader *r = &n->readers[i];

	if (r->scheduled || r->cursor == n->recorded)
		return;
	r->scheduled = true;
	sim_after(s, rng_range(&s->rng, 1, r->gap), EV_READ,
		  n->id * SIM_MAX_READERS + i);
}

/* One message as it enters the log of a node. */
static void app_record(struct sim *s, struct node *n, const struct sp_log *log)
{
	u32 lane = log->lane & SP_LOG_SLOT;
	u64 k = n->recorded;
	const struct sent *sent;
	struct plan *p;
	struct delivered *d;

	if (lane >= s->nlanes || log->len > s->max_len ||
	    log->pos >= s->window >> SP_UNIT_SHIFT) {
		sim_violation(s, "node %u delivers lane %u pos %u len %u",
			      n->id, lane, log->pos, log->len);
		return;
	}
	p = &s->plans[lane];
	if (s->hostile && p->node == s->villain)
		return;
	sent = &p->sent[n->next[lane]];
	if (n->next[lane] >= p->nsent || log->seq != sent->seq ||
	    log->len != sent->len || log->flags != sent->flags) {
		sim_violation(s, "node %u delivers lane %u #%u seq %lld len %u, sent were %u, this one seq %lld len %u",
			      n->id, lane, n->next[lane],
			      (long long)log->seq, log->len, p->nsent,
			      (long long)sent->seq, sent->len);
		return;
	}
	n->next[lane]++;
	if (s->hostile)
		return;
	d = &s->story[k];
	if (k == s->nstory) {
		if (k && s->story[k - 1].seq >= log->seq)
			sim_violation(s, "node %u delivers seq %lld after %lld",
				      n->id, (long long)log->seq,
				      (long long)s->story[k - 1].seq);
		d->seq = log->seq;
		d->lane = lane;
		d->len = log->len;
		d->flags = log->flags;
		s->nstory++;
	} else if (d->seq != log->seq || d->lane != lane ||
		   d->len != log->len || d->flags != log->flags) {
		sim_violation(s, "node %u delivers seq %lld lane %u as message %llu, others seq %lld lane %u",
			      n->id, (long long)log->seq, lane,
			      (unsigned long long)k, (long long)d->seq, d->lane);
	}
}

void app_delivered(struct sim *s, struct node *n)
{
	const struct sp_order *o = &n->core.order;
	u32 i;

	if (s->opts.calm && n->id == s->plans[0].node)
		app_taken(s);
	for (; n->recorded < o->published && !s->violated; n->recorded++)
		app_record(s, n, &o->log[n->recorded & (o->log_size - 1)]);
	for (i = 0; i < n->nreaders; i++)
		app_read_later(s, n, i);
}

/* The bytes must still be there when they are read, long after delivery. */
static void app_verify(struct sim *s, struct node *n, u64 k)
{
	const struct sp_order *o = &n->core.order;
	const struct sp_log *log = &o->log[k & (o->log_size - 1)];
	u32 slot = log->lane & SP_LOG_SLOT;
	const struct sp_lane *lane = &o->lanes[slot];
	const struct plan *p = &s->plans[slot];
	const u8 *ring = n->slab[lane->node] + sim_ring_off(s, lane->lane);
	u32 start = log->pos << SP_UNIT_SHIFT;
	u64 key;
	u32 i;

	/* Read all of it, also what a hostile node sent. */
	key = 0;
	for (i = 0; i < p->nsent && p->sent[i].seq != log->seq; i++)
		;
	if (i < p->nsent)
		key = app_key(slot, i);
	for (i = 0; i < log->len; i++) {
		u8 byte = ring[(start + i) & (s->window - 1)];

		/* Who lies harms itself, as reader and as sender. */
		if (byte == app_byte(key, i) ||
		    (s->hostile && (p->node == s->villain || n->id == s->villain)))
			continue;
		sim_violation(s, "node %u reads seq %lld of lane %u: byte %u of %u is not what was sent",
			      n->id, (long long)log->seq, slot, i, log->len);
		return;
	}
	if (!s->hostile && log->seq != s->story[k].seq)
		sim_violation(s, "node %u: entry %llu of the log was overwritten",
			      n->id, (unsigned long long)k);
}

void app_read(struct sim *s, struct node *n, u32 reader)
{
	struct reader *r = &n->readers[reader];
	u32 batch = rng_range(&s->rng, 1, 8);

	while (batch-- && r->cursor < n->recorded && !s->violated) {
		app_verify(s, n, r->cursor);
		r->cursor++;
	}
	node_consumed(n);
	app_read_later(s, n, reader);
}

static void app_check_lanes(struct sim *s, struct node *n)
{
	u32 i;

	for (i = 0; i < s->nlanes; i++) {
		const struct plan *p = &s->plans[i];

		if (n->next[i] != p->nsent)
			sim_violation(s, "node %u delivered %u of %u of lane %u",
				      n->id, n->next[i], p->nsent, i);
	}
	for (i = 0; i < n->core.nown; i++) {
		const struct sp_tx *tx = &n->tx[i];

		if (tx->freed != tx->now.count || tx->head != tx->now.tail)
			sim_violation(s, "lane %u did not get all of its room back: %llu of %llu",
				      n->own[i].rank,
				      (unsigned long long)(tx->freed - s->base_count),
				      (unsigned long long)(tx->now.count - s->base_count));
	}
}

/* Every message was in one batch of each stage. */
static void app_check_batches(struct sim *s, struct node *n)
{
	u64 want[SP_STAGES] = { 0 };
	u32 i;

	for (i = 0; i < s->nlanes; i++) {
		want[SP_STAGE_DELIVER] += s->plans[i].total;
		if (s->plans[i].node != n->id)
			want[SP_STAGE_RECEIVE] += s->plans[i].total;
		else if (s->nnodes > 1)
			want[SP_STAGE_SEND] += s->plans[i].total;
	}
	for (i = 0; i < SP_STAGES; i++)
		if (n->core.batches[i].messages != want[i])
			sim_violation(s, "node %u counts %llu messages in batches of stage %u, there were %llu",
				      n->id,
				      (unsigned long long)n->core.batches[i].messages,
				      i, (unsigned long long)want[i]);
}

static void app_check_node(struct sim *s, struct node *n)
{
	const struct sp_order *o = &n->core.order;
	s64 last = (s64)(s->base_round * s->nlanes) - 1;
	u32 i;

	app_check_lanes(s, n);
	app_check_batches(s, n);
	for (i = 0; i < n->nreaders; i++)
		if (n->readers[i].cursor != n->recorded)
			sim_violation(s, "node %u reader %u stopped", n->id, i);
	if (n->core.doze.state != SP_ASLEEP)
		sim_violation(s, "node %u does not sleep: state %d", n->id,
			      n->core.doze.state);
	for (i = 0; i < s->nnodes; i++)
		if (n->peers[i].check && !n->peers[i].gone)
			sim_violation(s, "node %u sleeps and still owes node %u a look at its flag",
				      n->id, i);
	if (s->nstory)
		last = s->story[s->nstory - 1].seq;
	/* Empty turns may come behind it. */
	if (o->delivered < last)
		sim_violation(s, "node %u delivered up to %lld, the last message is %lld",
			      n->id, (long long)o->delivered, (long long)last);
	if (n->closed != (s->plans[0].fin ? 1u : 0u))
		sim_violation(s, "node %u was told %u times that the view ended",
			      n->id, n->closed);
}

/* Nothing moves any more: is that how it should be? */
void app_check(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->nnodes * s->nnodes && !s->violated; i++)
		if (s->conns[i].completed != s->conns[i].posted)
			sim_violation(s, "writes hang between %u and %u",
				      i / s->nnodes, i % s->nnodes);
	if (s->hostile)
		return;
	for (i = 0; i < s->nlanes && !s->violated; i++)
		if (!s->plans[i].done)
			sim_violation(s, "lane %u stopped after %u of %u messages, %s",
				      i, s->plans[i].nsent, s->plans[i].total,
				      s->plans[i].blocked ? "without room" : "idle");
	for (i = 0; i < s->nnodes && !s->violated; i++)
		app_check_node(s, &s->nodes[i]);
}
