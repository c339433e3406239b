// SPDX-License-Identifier: GPL-2.0
/*
 * A run of a group whose members come and go: its clock, the world and the
 * faults that a seed makes, and how a run that fails is made shorter.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "live.h"

static struct live *live_running;
static FILE *live_out;

void live_say(struct live *l, const char *fmt, ...)
{
	va_list ap;

	FILE *out = live_out ? live_out : stdout;

	fprintf(out, "%8llu  ", (unsigned long long)l->now);
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	fputc('\n', out);
}

void live_violation(struct live *l, const char *fmt, ...)
{
	va_list ap;

	if (l->violated)
		return;
	l->violated = true;
	va_start(ap, fmt);
	vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	live_trace(l, "VIOLATION: %s", l->why);
}

/* Memory that lasts as long as the run: no late write hits anything else. */
void *live_alloc(struct live *l, size_t size)
{
	if (l->nmemory == l->memory_size) {
		l->memory_size = l->memory_size ? 2 * l->memory_size : 1024;
		l->memory = realloc(l->memory, l->memory_size * sizeof(void *));
	}
	return l->memory[l->nmemory++] = calloc(1, size ? size : 1);
}

static bool live_before(const struct live_event *a, const struct live_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void live_after(struct live *l, u32 delay, enum live_kind kind, u32 a, u32 b,
		u64 arg)
{
	struct live_event e = {
		.at = l->now + delay, .order = l->order++,
		.kind = kind, .a = a, .b = b, .arg = arg,
	};
	u32 i = l->nheap++;

	if (i == l->heap_size) {
		l->heap_size = l->heap_size ? 2 * l->heap_size : 256;
		l->heap = realloc(l->heap, l->heap_size * sizeof(e));
	}
	while (i && live_before(&e, &l->heap[(i - 1) / 2])) {
		l->heap[i] = l->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	l->heap[i] = e;
}

static struct live_event live_pop(struct live *l)
{
	struct live_event top = l->heap[0];
	struct live_event e = l->heap[--l->nheap];
	u32 i = 0;
	u32 k;

	while ((k = 2 * i + 1) < l->nheap) {
		if (k + 1 < l->nheap && live_before(&l->heap[k + 1], &l->heap[k]))
			k++;
		if (!live_before(&l->heap[k], &e))
			break;
		l->heap[i] = l->heap[k];
		i = k;
	}
	l->heap[i] = e;
	return top;
}

/* A node has lost another one: of two that both live on the higher rank goes. */
void live_lost(struct live *l, u32 a, u32 b)
{
	struct lnode *n = &l->nodes[a];
	bool alive = l->nodes[b].state == NODE_IN && !l->nodes[b].paused;

	if (alive && lnode_rank(n, a) > lnode_rank(n, b))
		n->blame = true;
	else
		l->nodes[b].blame = true;
}

static bool live_wants(struct live *l, u32 a, u32 b)
{
	struct lnode *n = &l->nodes[a];

	return n->state == NODE_IN && lnode_rank(n, b) >= 0 &&
		!lnode_suspects(n, b);
}

static void live_try(struct live *l, u32 a, u32 b, u32 delay)
{
	struct lpair *p = live_pair(l, a, b);

	if (p->trying)
		return;
	p->trying = true;
	live_after(l, delay, LE_TRY, a, b, 0);
}

/* What kept two nodes from each other is over: one that waits for that is to see it. */
static void live_hopes(struct live *l, u32 a, u32 b)
{
	if ((l->nodes[a].waits >> b & 1) || (l->nodes[b].waits >> a & 1))
		live_try(l, a, b, rng_range(&l->rng, 1, l->suspect / 6));
	if (l->nodes[a].waits)
		lnode_kick(&l->nodes[a]);
	if (l->nodes[b].waits)
		lnode_kick(&l->nodes[b]);
}

/*
 * Try once more, unless nobody waits but who waits for ever, and it would be in vain: then
 * live_hopes() sees to it.
 */
static void live_again(struct live *l, u32 a, u32 b)
{
	bool vain = live_blocked(l, a, b) || l->nodes[a].paused || l->nodes[b].paused ||
		    l->nodes[a].state == NODE_CRASHED || l->nodes[b].state == NODE_CRASHED;
	bool hasty = (live_wants(l, a, b) && !(l->nodes[a].waits >> b & 1)) ||
		     (live_wants(l, b, a) && !(l->nodes[b].waits >> a & 1));

	if (hasty || !vain)
		live_try(l, a, b, rng_range(&l->rng, 50, l->suspect / 6));
}

/* A node waits for another one to be reachable, for so long. */
void live_patience(struct lnode *n, u32 peer)
{
	struct live *l = n->l;

	live_after(l, rng_range(&l->rng, l->suspect, l->suspect * 5 / 4),
		   LE_DETECT, n->id, peer, ++n->ends[peer].wait);
	live_try(l, n->id, peer, rng_range(&l->rng, 1, l->suspect / 8));
}

/* In fair weather hardly anything is slow; it is never late beyond bounds. */
static void live_weather(struct live *l)
{
	struct weather *w = &l->weather;

	weather_make(w, &l->rng);
	w->stall_len = min(w->stall_len, 1500u);
	w->pause_len = min(w->pause_len, 1500u);
	if (!l->opts.calm)
		return;
	w->pass_gap = 4;
	w->pause = 0;
	w->net_gap = 6;
	w->stall = 0;
}

static void live_fault(struct live *l, enum fault_kind kind, u64 at, u32 a,
		       u32 b, u32 len)
{
	struct fault *f = &l->faults[l->nfaults];

	if (l->nfaults == LIVE_MAX_FAULTS)
		return;
	l->nfaults++;
	f->kind = kind;
	f->at = at;
	f->a = a;
	f->b = b;
	f->len = len;
}

/* One that the seed brings about. */
static void live_any_fault(struct live *l, u64 at)
{
	static const enum fault_kind kinds[] = {
		FAULT_CRASH, FAULT_CRASH, FAULT_CRASH_SEND, FAULT_CRASH_SEND,
		FAULT_CRASH_POST, FAULT_CRASH_INSTALL, FAULT_PAUSE, FAULT_BREAK,
		FAULT_BREAK, FAULT_BLOCK, FAULT_BLOCK_ONE, FAULT_PART, FAULT_FALSE, FAULT_KILL,
		FAULT_KILL, FAULT_LEAVE, FAULT_LEAVE, FAULT_JOIN, FAULT_JOIN,
		FAULT_JOIN, FAULT_JOIN, FAULT_STOP, FAULT_EVICT,
	};
	struct rng *r = &l->plan;
	enum fault_kind kind = kinds[rng_below(r, ARRAY_SIZE(kinds))];
	u32 a = rng_chance(r, 400) ? LIVE_LEADER : rng_below(r, l->first);
	u32 b = rng_below(r, l->nnodes);
	u32 len = rng_range(r, 1, 2 * l->first);
	u32 i;

	/* Two groups of one are what the option means, not a fault of it. */
	if (l->opts.minority && (kind == FAULT_PAUSE || kind == FAULT_PART ||
				 kind == FAULT_BLOCK || kind == FAULT_FALSE ||
				 kind == FAULT_BLOCK_ONE))
		kind = FAULT_CRASH;
	switch (kind) {
	case FAULT_CRASH_POST:
		len = rng_range(r, 1, 40);
		break;
	case FAULT_PAUSE:
		len = rng_range(r, 1, 3 * l->suspect);
		break;
	case FAULT_BLOCK:
	case FAULT_BLOCK_ONE:
		len = rng_chance(r, 250) ? 0 : rng_range(r, 1, 3 * l->suspect);
		break;
	case FAULT_PART:
		b = rng_next(r);
		len = rng_chance(r, 350) ? 0 : rng_range(r, 1, 3 * l->suspect);
		break;
	case FAULT_STOP:
		len = rng_range(r, 1, 6 * l->suspect);
		a = rng_below(r, l->first * 2);
		break;
	case FAULT_KILL:
	case FAULT_LEAVE:
	case FAULT_EVICT:
		a = rng_below(r, l->first * 2);
		break;
	case FAULT_JOIN:
		/* Often a herd. */
		i = rng_chance(r, 300) ? rng_range(r, 2, 5) : 1;
		while (--i)
			live_fault(l, kind, at + rng_below(r, 30),
				   rng_below(r, l->nnodes), rng_below(r, l->nnodes), 0);
		a = rng_below(r, l->nnodes);
		break;
	default:
		break;
	}
	live_fault(l, kind, at, a, b, len);
}

/* A node is put out while much is on its way to it: that is rare by itself. */
static void live_mood(struct live *l, u64 at)
{
	struct rng *r = &l->plan;
	u32 b = rng_range(r, 1, l->first - 1);
	u32 a = rng_below(r, b);

	live_fault(l, FAULT_BLOCK, at, a, b, 0);
	live_fault(l, FAULT_FALSE, at + rng_range(r, 100, 600), a, b, 0);
}

/* Connections that carry on break often, amid whatever else happens. */
static void live_breaks(struct live *l)
{
	struct rng *r = &l->plan;
	u32 n = rng_range(r, 1, 12);

	while (n--)
		live_fault(l, FAULT_BREAK, rng_range(r, 50, 2 * l->suspect),
			   rng_below(r, l->first), rng_below(r, l->first), 0);
}

static void live_plan(struct live *l)
{
	struct rng *r = &l->plan;
	u64 at = rng_range(r, 100, 4000);
	u32 n = rng_range(r, 1, 9);
	u32 i;

	for (i = 0; i < l->opts.nfaults; i++)
		l->faults[l->nfaults++] = l->opts.faults[i];
	if (!l->opts.faults && !l->opts.minority && rng_chance(r, 100))
		live_mood(l, at);
	for (i = 0; !l->opts.faults && i < n; i++) {
		live_any_fault(l, at);
		at += rng_chance(r, 600) ? rng_below(r, 600) :
			rng_below(r, 4 * l->suspect);
	}
	if (!l->opts.faults && l->opts.replay)
		live_breaks(l);
	for (i = 0; i < l->nfaults; i++)
		if (!(l->opts.drop >> i & 1))
			live_after(l, l->faults[i].at, LE_FAULT, i, 0, 0);
}

static void live_sizes(struct live *l)
{
	struct rng *r = &l->plan;
	u32 spare;

	l->first = rng_chance(r, 850) ? rng_range(r, 2, 6) :
		rng_chance(r, 800) ? rng_range(r, 2, 9) : rng_range(r, 2, LIVE_MAX_NODES - 3);
	spare = rng_range(r, 0, 3);
	if (l->opts.nodes)
		l->first = l->opts.nodes;
	if (l->opts.faults)
		spare = 4;
	l->nnodes = min(l->first + spare, (u32)LIVE_MAX_NODES);
	l->depth = 16u << rng_below(r, 2);
	l->window = 1024u << rng_below(r, 3);
	l->max_len = rng_chance(r, 300) ? l->window :
		rng_range(r, 0, l->window / 2);
	/* A row that carries messages takes up to five. */
	l->slots = rng_chance(r, 300) ? rng_range(r, 5, 8) :
		rng_range(r, 8, 64);
	l->credits = rng_chance(r, 300) ? 1 : rng_range(r, 2, 32);
	l->suspect = rng_range(r, 4000, 8000);
	sp_layout_init(&l->lay, l->depth, l->window, SIM_CHUNK);
}

/* The first view: one to three programs a node, perhaps none that sends. */
static void live_first(struct live *l)
{
	struct welcome w = { 0 };
	u32 progs = l->first;
	u32 i, k;

	progs += rng_below(&l->plan, l->first + 1);
	for (i = 0; i < progs; i++)
		lapp_new(l, i % l->first);
	sp_view_init(&w.view, progs,
		     rng_chance(&l->plan, 300) ? progs : 0);
	for (i = 0; i < progs; i++) {
		struct sp_addr addr = live_addr(l->progs[i].node);

		sp_view_add(&w.view, &addr, l->progs[i].cookie,
			    l->progs[i].flags);
	}
	sp_view_rank(&w.view, 1);
	l->limit = !l->opts.faults && rng_chance(&l->plan, 150) ?
		progs + rng_below(&l->plan, 3) : SP_MAX_MEMBERS;
	sp_view_set_state(&w.view, SP_VIEW_ACTIVE);
	for (i = 0; i < l->first; i++)
		for (k = 0; k < i; k++)
			lnet_connect(l, i, k);
	for (i = 0; i < l->first; i++) {
		l->nodes[i].state = NODE_IN;
		lnode_begin(&l->nodes[i], &w);
	}
	if (l->opts.stuck)
		l->progs[1].stuck = true;
}

struct live *live_new(const struct live_opts *opts)
{
	struct live *l = calloc(1, sizeof(*l));
	u32 i;

	l->opts = *opts;
	if (!l->opts.each)
		l->opts.each = 1000;
	l->rng.state = opts->seed * 0x2545f4914f6cdd1dull + opts->doorbell;
	l->plan.state = rng_mix(opts->seed + 0x76696577);
	l->gid = rng_next(&l->plan);
	l->judge = judge_new();
	if (!l->opts.faults && rng_chance(&l->plan, 80))
		l->opts.minority = true;
	live_weather(l);
	live_sizes(l);
	for (i = 0; i < l->nnodes; i++) {
		struct lnode *n = &l->nodes[i];

		n->l = l;
		n->id = i;
		n->gen = 1;
		n->polled = opts->doorbell == SIM_POLLED ||
			(opts->doorbell == SIM_MIXED && rng_chance(&l->rng, 500));
		n->reports[0] = live_alloc(l, SP_MAX_MEMBERS * sizeof(struct sp_report));
		n->reports[1] = live_alloc(l, SP_MAX_MEMBERS * sizeof(struct sp_report));
	}
	lnet_init(l);
	live_first(l);
	live_plan(l);
	live_trace(l, "%u nodes, %u at first, %u programs, depth %u window %u max %u slots %u credits %u",
		   l->nnodes, l->first, l->nprogs, l->depth, l->window,
		   l->max_len, l->slots, l->credits);
	return l;
}

void live_free(struct live *l)
{
	u32 i;

	lnet_free(l);
	for (i = 0; i < l->nmemory; i++)
		free(l->memory[i]);
	free(l->memory);
	judge_free(l->judge);
	free(l->heap);
	free(l);
}

/* Something else happens in the middle of a pass. */
void live_disturb(struct live *l)
{
	struct lnode *n = l->amid;
	struct prog *p = &l->progs[rng_below(&l->rng, l->nprogs)];
	u32 other = rng_below(&l->rng, l->nnodes);

	if (!n || l->disturbing || l->violated || n->state != NODE_IN)
		return;
	l->disturbing = true;
	switch (rng_below(&l->rng, 8)) {
	case 0:
		if (p->node == n->id && p->scheduled && !p->locked)
			lapp_send(l, p);
		break;
	case 1:
		if (p->node == n->id && p->reading)
			lapp_read(l, p);
		break;
	case 2:
		if (other != n->id)
			lnet_step(l, live_dir(l, n->id, other));
		break;
	default:
		if (other != n->id)
			lnet_step(l, live_dir(l, other, n->id));
	}
	l->disturbing = false;
}

static void live_arm(struct live *l)
{
	sim_reads_left = l->weather.amid ?
		(int)rng_range(&l->rng, 1, 2 * l->weather.amid) : INT_MAX;
}

void live_read_hook(void)
{
	struct live *l = live_running;

	if (!l || !l->amid)
		return;
	live_disturb(l);
	live_arm(l);
}

/* Who leads the newest view, as far as anybody can tell. */
static u32 live_leader(struct live *l)
{
	const struct sp_view *v = &l->records[l->newest]->view;
	u32 i;

	for (i = 0; i < v->nnodes; i++) {
		u32 id = live_id(&v->nodes[i].addr);

		if (l->nodes[id].state == NODE_IN)
			return id;
	}
	return 0;
}

/* Nothing passes from @a to @b, and nothing back unless it is @one direction. */
static void live_block(struct live *l, u32 a, u32 b, u32 len, bool one)
{
	struct lpair *p = live_pair(l, a, b);

	p->blocked[a > b]++;
	if (!one)
		p->blocked[b > a]++;
	live_after(l, rng_range(&l->rng, 100, l->suspect), LE_RETRIED, a, b,
		   p->inc);
	if (len)
		live_after(l, len, LE_HEAL, a, b, one);
}

static void live_heal(struct live *l, u32 a, u32 b, bool one)
{
	struct lpair *p = live_pair(l, a, b);

	p->blocked[a > b]--;
	if (!one)
		p->blocked[b > a]--;
	lnet_go(l, live_dir(l, a, b));
	lnet_go(l, live_dir(l, b, a));
	live_hopes(l, a, b);
}

static void live_pause(struct live *l, struct lnode *n, u32 len)
{
	u32 i;

	if (n->state != NODE_IN || n->paused)
		return;
	live_trace(l, "node %u pauses for %u", n->id, len);
	n->paused = true;
	n->pauses++;
	for (i = 0; i < l->nnodes; i++)
		if (i != n->id)
			live_after(l, rng_range(&l->rng, l->suspect,
						l->suspect * 5 / 4),
				   LE_SILENT, i, n->id, n->pauses);
	live_after(l, len, LE_RESUME, n->id, 0, n->pauses);
}

/*
 * A node goes on. It does not know how long it was away: its timers may all be
 * over. It can cost those that have suspected it their place (views.rst, Limits).
 */
static void live_resume(struct live *l, struct lnode *n)
{
	struct msg m = { .kind = MSG_FALSE };
	bool stale = rng_chance(&l->rng, 300);
	u32 i;

	n->paused = false;
	for (i = 0; i < l->nnodes; i++)
		if (l->nodes[i].state == NODE_IN &&
		    lnode_suspects(&l->nodes[i], n->id))
			l->nodes[i].blame = true;
	live_trace(l, "node %u goes on", n->id);
	for (i = 0; stale && i < l->nnodes; i++) {
		m.from = i;
		lnode_receive(n, &m);
	}
	lnode_schedule(n, 1);
	lapp_unblock(n);
	lapp_delivered(n);
	for (i = 0; i < l->nnodes; i++)
		live_hopes(l, n->id, i);
}

static void live_join(struct live *l, u32 node, u32 contact)
{
	struct lnode *n = &l->nodes[node];
	struct prog *p;

	if (n->paused || l->nprogs == LIVE_MAX_PROGS)
		return;
	if (n->state != NODE_IN && n->state != NODE_JOINING) {
		u32 i;

		lnode_join(n);
		for (i = 0; i < l->nnodes; i++)
			live_hopes(l, node, i);
	}
	p = lapp_new(l, node);
	live_trace(l, "program %u on node %u wants to join", p->uid, node);
	live_after(l, 1, LE_ASK, p->uid, contact, 0);
}

/* It asks one after the other, until it is in or knows that it cannot be. */
static void live_ask(struct live *l, struct prog *p, u32 contact)
{
	struct lnode *n = &l->nodes[p->node];

	if (p->state != PROG_ASKING || p->cookie >> 32 != n->gen)
		return;
	if (n->paused) {
		live_after(l, 500, LE_ASK, p->uid, contact, 0);
		return;
	}
	if (n->state == NODE_OUT || n->state == NODE_CRASHED ||
	    ++p->tries > 40) {
		u32 i;

		for (i = 0; i < l->nprogs; i++)
			if (n->state == NODE_JOINING && &l->progs[i] != p &&
			    l->progs[i].node == p->node &&
			    l->progs[i].state == PROG_ASKING)
				break;
		lapp_end(p, -ETIMEDOUT);
		if (n->state == NODE_JOINING && i == l->nprogs)
			n->state = NODE_OUT;
		return;
	}
	if (n->state == NODE_IN)
		contact = n->id;
	if (contact == n->id || !live_blocked(l, contact, n->id))
		lnode_ask(&l->nodes[contact], p);
	live_after(l, rng_range(&l->rng, 500, l->suspect), LE_ASK, p->uid,
		   rng_below(&l->rng, l->nnodes), 0);
}

static void live_strike(struct live *l, const struct fault *f)
{
	struct lnode *n;
	u32 a = f->a == LIVE_LEADER ? live_leader(l) : f->a;
	u32 i, k;

	live_trace(l, "fault %u: kind %u at %u, %#x for %u",
		   (u32)(f - l->faults), f->kind, a, f->b, f->len);
	if (f->kind == FAULT_KILL && (l->opts.broken & LIVE_BREAK_DEATH) &&
	    l->now < f->at + l->suspect) {
		live_after(l, l->suspect, LE_FAULT, f - l->faults, 0, 0);
		return;
	}
	if (f->kind == FAULT_KILL || f->kind == FAULT_LEAVE ||
	    f->kind == FAULT_EVICT) {
		if (a < l->nprogs && !l->nodes[l->progs[a].node].paused)
			lapp_die(l, &l->progs[a],
				 f->kind == FAULT_KILL ? SP_EXITED :
				 f->kind == FAULT_LEAVE ? SP_LEFT : SP_SLOW);
		return;
	}
	if (f->kind == FAULT_STOP) {
		if (a >= l->nprogs)
			return;
		lapp_stop(l, &l->progs[a], true);
		live_after(l, f->len, LE_GO, a, 0, 0);
		return;
	}
	n = &l->nodes[a];
	switch (f->kind) {
	case FAULT_CRASH:
		if (n->state == NODE_IN || n->state == NODE_JOINING)
			lnode_crash(n);
		break;
	case FAULT_CRASH_SEND:
		n->crash_send = f->len;
		break;
	case FAULT_CRASH_POST:
		n->crash_post = f->len;
		break;
	case FAULT_CRASH_INSTALL:
		n->crash_install = true;
		break;
	case FAULT_PAUSE:
		live_pause(l, n, f->len);
		break;
	case FAULT_BREAK:
		if (a != f->b)
			lnet_break(l, a, f->b);
		break;
	case FAULT_BLOCK:
	case FAULT_BLOCK_ONE:
		if (a != f->b)
			live_block(l, a, f->b, f->len,
				   f->kind == FAULT_BLOCK_ONE);
		break;
	case FAULT_PART:
		for (i = 0; i < l->nnodes; i++)
			for (k = 0; k < i; k++)
				if ((f->b >> i & 1) != (f->b >> k & 1))
					live_block(l, i, k, f->len, false);
		break;
	case FAULT_FALSE:
		if (a != f->b)
			lnode_receive(n, &(struct msg){ .kind = MSG_FALSE,
						     .from = f->b });
		break;
	case FAULT_JOIN:
		live_join(l, a, f->b);
		break;
	default:
		break;
	}
}

enum answer {
	ANSWER_NONE,
	ANSWER_LATER,
	ANSWER_REFUSED,
	ANSWER_SUSPECTED,
	ANSWER_EVICTED,
	ANSWER_WELCOME,
	ANSWER_YES,
};

/* What @b says when @a, which wants it, asks for a connection. */
static enum answer live_answer(struct live *l, u32 a, u32 b)
{
	struct lnode *from = &l->nodes[a];
	struct lnode *n = &l->nodes[b];
	bool blind = l->opts.broken & LIVE_BREAK_INCARNATION;

	if (n->state == NODE_CRASHED || n->paused || from->paused)
		return ANSWER_NONE;
	if (n->state == NODE_IDLE || n->state == NODE_OUT ||
	    (!blind && lnode_peer_gen(from, b) != n->gen))
		return ANSWER_REFUSED;
	if (n->state == NODE_JOINING)
		return ANSWER_WELCOME;
	if (lnode_rank(n, a) >= 0 && (blind || lnode_peer_gen(n, a) == from->gen))
		return lnode_suspects(n, a) ? ANSWER_SUSPECTED : ANSWER_YES;
	return lnode_view(n)->id < lnode_view(from)->id ? ANSWER_LATER :
		ANSWER_EVICTED;
}

static bool live_dead(struct live *l, u32 a, u32 b)
{
	const struct lpair *p = live_pair(l, a, b);

	return p->noticed[a > b] || l->nodes[a].state != NODE_IN || !p->inc;
}

static void live_connect(struct live *l, u32 a, u32 b, bool welcome)
{
	lnet_connect(l, a, b);
	lnode_connected(&l->nodes[a], b, welcome);
	lnode_connected(&l->nodes[b], a, false);
}

/* Is there still to be a connection between what was at both ends of the last? */
static bool live_carries(struct live *l, u32 a, u32 b)
{
	const struct lpair *p = live_pair(l, a, b);
	const struct lnode *n = &l->nodes[a];
	const struct lnode *peer = &l->nodes[b];

	return p->carry && p->gen[a > b] == n->gen && p->gen[b > a] == peer->gen &&
	       n->state != NODE_CRASHED && peer->state != NODE_CRASHED &&
	       !live_dir(l, a, b)->dead && !live_dir(l, b, a)->dead;
}

/* Nodes are told nothing of it; but what they wait for too long is gone. */
static void live_carry(struct live *l, u32 a, u32 b)
{
	const struct lpair *p = live_pair(l, a, b);

	if (p->noticed[0] && p->noticed[1] && !live_blocked(l, a, b) &&
	    !l->nodes[a].paused && !l->nodes[b].paused) {
		l->nodes[a].ends[b].lost = false;
		l->nodes[b].ends[a].lost = false;
		l->nodes[a].ends[b].wait++;
		l->nodes[b].ends[a].wait++;
		lnet_carry(l, a, b);
		live_hopes(l, a, b);
	} else if (live_wants(l, a, b) || live_wants(l, b, a)) {
		live_again(l, a, b);
	} else {
		lnet_give_up(l, a, b);
	}
}

static void live_attempt(struct live *l, u32 a, u32 b)
{
	struct lpair *p = live_pair(l, a, b);
	bool again = false;
	u32 i;

	p->trying = false;
	if (p->up)
		return;
	if (live_carries(l, a, b)) {
		live_carry(l, a, b);
		return;
	}
	/* No new one before the old one is known to be dead on both sides. */
	if ((!live_dead(l, a, b) || !live_dead(l, b, a)) &&
	    !(l->opts.broken & LIVE_BREAK_OLD_QP)) {
		if (live_wants(l, a, b) || live_wants(l, b, a))
			live_again(l, a, b);
		return;
	}
	for (i = 0; i < 2; i++) {
		u32 from = i ? b : a;
		u32 to = i ? a : b;
		struct msg m = { .kind = MSG_REFUSED, .from = to };

		if (!live_wants(l, from, to))
			continue;
		switch (live_blocked(l, a, b) ? ANSWER_NONE : live_answer(l, from, to)) {
		case ANSWER_NONE:
		case ANSWER_LATER:
			again = true;
			break;
		case ANSWER_EVICTED:
			m.kind = MSG_BYE;
			m.arg = lnode_view(&l->nodes[to])->id;
			lnode_receive(&l->nodes[from], &m);
			break;
		case ANSWER_SUSPECTED:
			m.kind = MSG_SUSPECTED;
			lnode_receive(&l->nodes[from], &m);
			break;
		case ANSWER_REFUSED:
			lnode_receive(&l->nodes[from], &m);
			break;
		case ANSWER_WELCOME:
			live_connect(l, from, to, true);
			return;
		case ANSWER_YES:
			live_connect(l, from, to, false);
			return;
		}
	}
	if (again)
		live_again(l, a, b);
}

/* One side has no use for the connection; what it said last is to arrive. */
static void live_close(struct live *l, u32 a, u32 b, u64 arg)
{
	const struct lpair *p = live_pair(l, a, b);
	const struct ldir *d = live_dir(l, a, b);
	u32 tries = arg >> 56;

	if (!(p->up || p->carry) || p->inc != (arg & ~0ull >> 8))
		return;
	if (!d->dead && d->completed != d->posted &&
	    !live_blocked(l, a, b) && tries < 50 && l->nodes[b].state == NODE_IN) {
		live_after(l, 200, LE_CLOSE, a, b, p->inc | (u64)(tries + 1) << 56);
		return;
	}
	if (p->carry)
		lnet_give_up(l, a, b);
	else
		lnet_close(l, a, b);
}

static void live_notice(struct live *l, u32 a, u32 b, u64 inc)
{
	struct lpair *p = live_pair(l, a, b);
	struct msg m = { .kind = MSG_NOTICE, .from = b, .arg = inc };

	if (p->inc != inc || p->up)
		return;
	if (p->carry) {
		p->noticed[a > b] = true;
		l->nodes[a].ends[b].lost = true;
		live_patience(&l->nodes[a], b);
		return;
	}
	if (l->nodes[a].state == NODE_IN)
		lnode_receive(&l->nodes[a], &m);
	else
		p->noticed[a > b] = true;
}

static void live_event(struct live *l, const struct live_event *e)
{
	struct lpair *p;
	struct msg m = { .from = e->b, .arg = e->arg };

	switch (e->kind) {
	case LE_RUN:
		live_arm(l);
		lnode_run(&l->nodes[e->a]);
		sim_reads_left = INT_MAX;
		break;
	case LE_REST:
		lnode_rested(&l->nodes[e->a]);
		break;
	case LE_NET:
		live_dir(l, e->a, e->b)->scheduled = false;
		lnet_step(l, live_dir(l, e->a, e->b));
		break;
	case LE_CREDIT:
		lnet_credit(l, live_dir(l, e->a, e->b));
		break;
	case LE_SEND:
		l->progs[e->a].scheduled = false;
		lapp_send(l, &l->progs[e->a]);
		break;
	case LE_READ:
		l->progs[e->a].reading = false;
		lapp_read(l, &l->progs[e->a]);
		break;
	case LE_FAULT:
		live_strike(l, &l->faults[e->a]);
		break;
	case LE_NOTICE:
		live_notice(l, e->a, e->b, e->arg);
		break;
	case LE_DETECT:
		m.kind = MSG_DETECT;
		if (l->nodes[e->a].ends[e->b].wait == e->arg)
			lnode_receive(&l->nodes[e->a], &m);
		break;
	case LE_SILENT:
		m.kind = MSG_SILENT;
		lnode_receive(&l->nodes[e->a], &m);
		break;
	case LE_RETRIED:
		p = live_pair(l, e->a, e->b);
		if (p->inc == e->arg &&
		    (live_blocked(l, e->a, e->b) ||
		     l->nodes[e->a].state == NODE_CRASHED ||
		     l->nodes[e->b].state == NODE_CRASHED))
			lnet_break(l, e->a, e->b);
		break;
	case LE_FLUSH:
		lnode_flush(&l->nodes[e->a], e->b, e->arg);
		break;
	case LE_TRY:
		live_attempt(l, e->a, e->b);
		break;
	case LE_CLOSE:
		live_close(l, e->a, e->b, e->arg);
		break;
	case LE_HEAL:
		live_heal(l, e->a, e->b, e->arg);
		break;
	case LE_RESUME:
		if (l->nodes[e->a].paused && l->nodes[e->a].pauses == e->arg)
			live_resume(l, &l->nodes[e->a]);
		break;
	case LE_ASK:
		live_ask(l, &l->progs[e->a], e->b);
		break;
	case LE_GO:
		lapp_stop(l, &l->progs[e->a], false);
		break;
	case LE_GHOST:
		lnet_ghost(l, e->a);
		break;
	}
}

/* As sim_bound(), with a share for each change of view. */
static u64 live_bound(const struct live *l)
{
	u64 messages = l->nprogs;
	u32 i;

	for (i = 0; i < l->nprogs; i++)
		messages += l->progs[i].total;
	messages += 40 * (l->nfaults + 1);
	return 1000000 + 300 * messages * l->nnodes * l->nnodes;
}

bool live_run(struct live *l)
{
	u64 bound = live_bound(l);

	live_running = l;
	while (l->nheap && !l->violated) {
		struct live_event e = live_pop(l);

		l->now = e.at;
		if (++l->steps > bound) {
			live_violation(l, "no rest after %llu steps",
				       (unsigned long long)bound);
			break;
		}
		live_event(l, &e);
	}
	if (!l->violated)
		lcheck_end(l);
	live_running = NULL;
	return !l->violated;
}

static bool live_violates(const struct live_opts *opts)
{
	struct live *l = live_new(opts);
	bool ok = live_run(l);

	live_free(l);
	return !ok;
}

/* Leave out what the violation does not need. */
static void live_shrink(struct live_opts *o, u32 nfaults, u32 nodes)
{
	struct live_opts try;
	u32 i;

	for (i = 0; i < nfaults; i++) {
		try = *o;
		try.drop |= 1u << i;
		if (live_violates(&try))
			*o = try;
	}
	for (i = 2; i < nodes; i++) {
		try = *o;
		try.nodes = i;
		if (live_violates(&try)) {
			*o = try;
			break;
		}
	}
	for (i = 0; i <= 20; i = 2 * i + 1) {
		try = *o;
		try.each = i ? i : 1;
		if (live_violates(&try)) {
			*o = try;
			break;
		}
	}
}

/* The end of what a run says. */
static void live_show(const struct live_opts *opts, u32 lines)
{
	struct live_opts o = *opts;
	struct live *l;
	char *text = NULL;
	size_t size = 0;
	char *at;

	o.trace = true;
	live_out = open_memstream(&text, &size);
	l = live_new(&o);
	live_run(l);
	fclose(live_out);
	live_out = NULL;
	printf("  shortest: %s\n", l->why);
	for (at = text + size; at > text; at--)
		if (at[-1] == '\n' && lines-- == 0)
			break;
	fputs(at, stdout);
	live_free(l);
	free(text);
}

/**
 * live_seed() - run one seed
 * @opts: what it is made from
 * @lines: of the shortest run that fails, too, so many are shown
 *
 * Return: true when all held.
 */
bool live_seed(const struct live_opts *opts, u32 lines)
{
	static const char * const doorbells[] = { "polled", "guarded", "mixed" };
	const char *kind = opts->replay ? "replay" : "live";
	struct live *l = live_new(opts);
	struct live_opts o = *opts;
	bool ok = live_run(l);

	if (!ok)
		printf("seed %llu %s %s: %s\n",
		       (unsigned long long)opts->seed, kind, doorbells[opts->doorbell],
		       l->why);
	if (opts->trace)
		printf("%llu steps, %u entries, %llu views\n",
		       (unsigned long long)l->steps, judge_length(l->judge),
		       (unsigned long long)l->newest);
	if (!ok && lines && !opts->trace) {
		live_shrink(&o, l->nfaults, l->first);
		live_show(&o, lines);
	}
	if (!ok) {
		printf("  replay: scripts/sim --kind %s --seed %llu --doorbell %s",
		       kind, (unsigned long long)o.seed, doorbells[o.doorbell]);
		if (o.drop)
			printf(" --drop %#x", o.drop);
		if (o.nodes)
			printf(" --nodes %u", o.nodes);
		if (o.each)
			printf(" --each %u", o.each);
		puts(" --trace");
	}
	fflush(stdout);
	live_free(l);
	return ok;
}
