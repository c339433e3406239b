// SPDX-License-Identifier: GPL-2.0
/*
 * The time that a large object takes to many nodes: the schedules of
 * kmod/core/schedule.c, run as an engine runs them, over a network of flows.
 *
 * A node makes its sends in the order of their steps, one at a time, each when
 * it has the block and has heard that its peer is ready. A node is ready for the
 * blocks that come next in the order of its own steps, as many as --ahead says.
 * A send costs the node some time, then its block is a flow. Flows share what
 * they pass through, evenly: the adapters on both sides, each with its rate in
 * each direction, and the links of both racks to the others. A flow is as fast as
 * the narrowest of its shares. What it leaves of another goes unused, so
 * this errs on the slow side.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../kmod/core/schedule.h"
#include "rng.h"

#define RACKS		256
#define MAX_NODES	2048

/* What a run is of. Rates are in bytes/s, times in seconds. */
struct scene {
	enum sp_schedule_kind kind;
	u32 nodes;
	u32 blocks;
	double block;		/* bytes */
	double rate;		/* of an adapter, each way */
	double path[2];		/* of a path, drawn from between these; 0: no limit */
	bool lasting;		/* drawn for each pair, not for each block */
	double latency[2];	/* of a message, drawn from between these */
	double overhead;	/* of each send, on the sender */
	double delay;		/* of the sends that are delayed */
	double delayed;		/* part of the sends, at random; < 0: just one */
	u32 slow[2];		/* nodes between which it is slow */
	double slow_rate;	/* there; 0: there is no such link */
	u32 rack;		/* nodes of a rack, 0: there are none */
	double oversubscribed;
	bool scattered;		/* ranks have nothing to do with racks */
	u32 ahead;		/* blocks that a node is ready for */
	bool each;		/* from each peer, not in the order of steps */
	u64 seed;
};

enum what {
	SENDS,		/* node @who puts its block on the network */
	SENT,		/* the last byte of the flow of @who leaves */
	ARRIVES,	/* a block is at node @who */
	COMPLETES,	/* node @who hears of it */
	READY,		/* node @who hears that @pair can take one more */
};

struct event {
	double at;
	u64 order;	/* who came first is served first */
	enum what what;
	u32 who;
	u32 block;
	u32 pair;
	u32 version;
};

struct send {
	u16 to;
	u32 block;
};

/* What flows share: @n of them, at @rate in all. */
struct pipe {
	double rate;
	u32 n;
	u32 size;
	u16 *flows;	/* by sender */
};

/* The flow of a node, of which there is one at a time. */
struct flow {
	double left;
	double rate;
	double since;
	double limit;
	u32 version;
	u32 npipes;
	struct pipe *pipes[4];
};

struct node {
	struct send *sends;
	u32 nsends;
	u32 next;
	u16 *sources;		/* of its blocks, by step */
	u32 told;		/* of these, were told that it is ready */
	bool busy;
	u32 missing;
	bool *has;
	double done;
	struct flow flow;
	struct pipe out;
	struct pipe in;
};

struct run {
	const struct scene *scene;
	struct rng rng;
	double now;
	struct event *heap;
	u32 nheap;
	u32 size;
	u64 order;
	struct node *nodes;
	u32 *credit;		/* blocks that a sender may send to a receiver */
	u8 rack[MAX_NODES];
	struct pipe up[RACKS];
	struct pipe down[RACKS];
	u64 doomed;		/* number of the send that is delayed */
	u64 begun;
	u64 transfers;
	u64 between;		/* of these, between racks */
};

static double uniform(struct rng *r)
{
	return (double)(rng_next(r) >> 11) / (double)(1ull << 53);
}

static double drawn(struct rng *r, const double *range)
{
	return range[0] + uniform(r) * (range[1] - range[0]);
}

/* Events, the earliest first. */

static bool before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void post(struct run *r, double at, struct event e)
{
	u32 i = r->nheap++;

	if (r->nheap > r->size) {
		r->size = r->size ? 2 * r->size : 1024;
		r->heap = realloc(r->heap, r->size * sizeof(*r->heap));
	}
	e.at = at;
	e.order = r->order++;
	while (i && before(&e, &r->heap[(i - 1) / 2])) {
		r->heap[i] = r->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	r->heap[i] = e;
}

static struct event take(struct run *r)
{
	struct event first = r->heap[0];
	struct event last = r->heap[--r->nheap];
	u32 i = 0;

	for (;;) {
		u32 k = 2 * i + 1;

		if (k + 1 < r->nheap && before(&r->heap[k + 1], &r->heap[k]))
			k++;
		if (k >= r->nheap || !before(&r->heap[k], &last))
			break;
		r->heap[i] = r->heap[k];
		i = k;
	}
	r->heap[i] = last;
	return first;
}

/* Flows. */

static void flow_pace(struct run *r, u32 who)
{
	struct flow *f = &r->nodes[who].flow;
	double rate = f->limit;
	u32 i;

	for (i = 0; i < f->npipes; i++)
		rate = min(rate, f->pipes[i]->rate / f->pipes[i]->n);
	if (rate == f->rate)
		return;
	f->left -= f->rate * (r->now - f->since);
	f->left = max(f->left, 0.0);
	f->since = r->now;
	f->rate = rate;
	post(r, r->now + f->left / rate, (struct event){
		.what = SENT, .who = who, .version = ++f->version,
	});
}

/* The others have more now, or less. */
static void flow_neighbours(struct run *r, const struct flow *f)
{
	u32 i, k;

	for (i = 0; i < f->npipes; i++)
		for (k = 0; k < f->pipes[i]->n; k++)
			flow_pace(r, f->pipes[i]->flows[k]);
}

static void flow_through(struct flow *f, struct pipe *p, u32 who)
{
	if (p->n == p->size) {
		p->size = p->size ? 2 * p->size : 4;
		p->flows = realloc(p->flows, p->size * sizeof(*p->flows));
	}
	p->flows[p->n++] = who;
	f->pipes[f->npipes++] = p;
}

static double path_rate(struct run *r, u32 from, u32 to)
{
	const struct scene *s = r->scene;
	double rate = s->rate;

	if (s->path[0] > 0) {
		struct rng pair = { .state = s->seed << 32 | from << 16 | to };

		rate = drawn(s->lasting ? &pair : &r->rng, s->path);
	}
	if (s->slow_rate > 0 && ((from == s->slow[0] && to == s->slow[1]) ||
				 (from == s->slow[1] && to == s->slow[0])))
		rate = min(rate, s->slow_rate);
	return rate;
}

static void flow_begin(struct run *r, u32 who)
{
	struct node *n = &r->nodes[who];
	struct flow *f = &n->flow;
	u32 to = n->sends[n->next].to;

	f->left = r->scene->block;
	f->rate = 0;
	f->since = r->now;
	f->limit = path_rate(r, who, to);
	f->npipes = 0;
	flow_through(f, &n->out, who);
	flow_through(f, &r->nodes[to].in, who);
	if (r->rack[who] != r->rack[to]) {
		flow_through(f, &r->up[r->rack[who]], who);
		flow_through(f, &r->down[r->rack[to]], who);
		r->between++;
	}
	r->transfers++;
	flow_neighbours(r, f);
}

static void flow_end(struct run *r, u32 who)
{
	struct flow *f = &r->nodes[who].flow;
	u32 i, k;

	for (i = 0; i < f->npipes; i++) {
		struct pipe *p = f->pipes[i];

		for (k = 0; p->flows[k] != who; k++)
			;
		p->flows[k] = p->flows[--p->n];
	}
	f->version++;
	flow_neighbours(r, f);
}

/* Nodes. */

static void node_go(struct run *r, u32 who)
{
	const struct scene *s = r->scene;
	struct node *n = &r->nodes[who];
	const struct send *send = &n->sends[n->next];
	double wait = s->overhead;

	if (n->busy || n->next == n->nsends || !n->has[send->block] ||
	    !r->credit[who * s->nodes + send->to])
		return;
	if (s->delayed < 0 ? r->begun == r->doomed : uniform(&r->rng) < s->delayed)
		wait += s->delay;
	r->begun++;
	n->busy = true;
	r->credit[who * s->nodes + send->to]--;
	post(r, r->now + wait, (struct event){ .what = SENDS, .who = who });
}

static void node_sent(struct run *r, u32 who)
{
	struct node *n = &r->nodes[who];
	const struct send *send = &n->sends[n->next];
	double arrival = r->now + drawn(&r->rng, r->scene->latency);

	flow_end(r, who);
	post(r, arrival, (struct event){
		.what = ARRIVES, .who = send->to, .block = send->block, .pair = who,
	});
	post(r, arrival + drawn(&r->rng, r->scene->latency), (struct event){
		.what = COMPLETES, .who = who,
	});
}

static void node_ready(struct run *r, u32 who, u32 peer)
{
	post(r, r->now + drawn(&r->rng, r->scene->latency), (struct event){
		.what = READY, .who = peer, .pair = who,
	});
}

static void node_gets(struct run *r, const struct event *e)
{
	struct node *n = &r->nodes[e->who];

	if (n->has[e->block])
		abort();
	n->has[e->block] = true;
	if (!--n->missing)
		n->done = r->now;
	if (r->scene->each)
		node_ready(r, e->who, e->pair);
	else if (n->told < r->scene->blocks)
		node_ready(r, e->who, n->sources[n->told++]);
	node_go(r, e->who);
}

static void step(struct run *r)
{
	struct event e = take(r);
	struct node *n = &r->nodes[e.who];

	if (e.what == SENT && e.version != n->flow.version)
		return;
	r->now = e.at;
	switch (e.what) {
	case SENDS:
		flow_begin(r, e.who);
		break;
	case SENT:
		node_sent(r, e.who);
		break;
	case ARRIVES:
		node_gets(r, &e);
		break;
	case COMPLETES:
		n->busy = false;
		n->next++;
		node_go(r, e.who);
		break;
	case READY:
		r->credit[e.who * r->scene->nodes + e.pair]++;
		node_go(r, e.who);
		break;
	}
}

/* A node's own list of sends, which is all that it runs by. */
static void node_init(struct run *r, u32 who, const u8 *rack)
{
	const struct scene *s = r->scene;
	struct node *n = &r->nodes[who];
	struct sp_schedule schedule;
	u32 i, got = 0, room = 0;
	unsigned int to;
	u32 block;

	if (sp_schedule_init(&schedule, s->kind, s->nodes, who, s->blocks, rack)) {
		fprintf(stderr, "rdmc: no such schedule\n");
		exit(2);
	}
	n->out.rate = s->rate;
	n->in.rate = s->rate;
	n->missing = who ? s->blocks : 0;
	n->has = calloc(s->blocks, sizeof(*n->has));
	memset(n->has, !who, s->blocks);
	n->sources = calloc(s->blocks, sizeof(*n->sources));
	for (i = 0; i < sp_schedule_steps(&schedule); i++) {
		if (sp_schedule_recv(&schedule, i, &to, &block))
			n->sources[got++] = to;
		if (!sp_schedule_send(&schedule, i, &to, &block))
			continue;
		if (n->nsends == room) {
			room = room ? 2 * room : s->blocks;
			n->sends = realloc(n->sends, room * sizeof(*n->sends));
		}
		n->sends[n->nsends++] = (struct send){ .to = to, .block = block };
	}
	/* All have heard of the object, and made ready, when it begins. */
	for (i = 0; i < s->nodes && s->each; i++)
		r->credit[i * s->nodes + who] = s->ahead;
	while (!s->each && n->told < min(s->ahead, got))
		r->credit[n->sources[n->told++] * s->nodes + who]++;
}

static void racks_init(struct run *r)
{
	const struct scene *s = r->scene;
	u32 i, k;

	for (i = 0; i < s->nodes; i++)
		r->rack[i] = s->rack ? i / s->rack : 0;
	for (i = s->nodes; s->scattered && i-- > 1;) {
		u8 was = r->rack[i];

		k = rng_below(&r->rng, i + 1);
		r->rack[i] = r->rack[k];
		r->rack[k] = was;
	}
	for (i = 0; i < RACKS && s->rack; i++) {
		r->up[i].rate = s->rate * s->rack / s->oversubscribed;
		r->down[i].rate = r->up[i].rate;
	}
}

static void report(const struct run *r)
{
	const struct scene *s = r->scene;
	double first = r->now, last = 0;
	u32 i;

	for (i = 1; i < s->nodes; i++) {
		if (r->nodes[i].missing) {
			fprintf(stderr, "rdmc: node %u waits for ever\n", i);
			exit(1);
		}
		first = min(first, r->nodes[i].done);
		last = max(last, r->nodes[i].done);
	}
	printf("{\"seed\": %llu, \"seconds\": %.9f, \"first\": %.9f, \"transfers\": %llu, \"between_racks\": %llu}\n",
	       (unsigned long long)s->seed, last, first,
	       (unsigned long long)r->transfers, (unsigned long long)r->between);
}

static void run(const struct scene *s)
{
	struct run *r = calloc(1, sizeof(*r));
	u32 i;

	r->scene = s;
	r->rng.state = s->seed;
	r->nodes = calloc(s->nodes, sizeof(*r->nodes));
	r->credit = calloc((size_t)s->nodes * s->nodes, sizeof(*r->credit));
	racks_init(r);
	r->doomed = (u64)(uniform(&r->rng) * s->blocks * (s->nodes - 1));
	for (i = 0; i < s->nodes; i++)
		node_init(r, i, s->kind == SP_SCHEDULE_HYBRID ? r->rack : NULL);
	for (i = 0; i < s->nodes; i++)
		node_go(r, i);
	while (r->nheap)
		step(r);
	report(r);
	for (i = 0; i < s->nodes; i++) {
		free(r->nodes[i].sends);
		free(r->nodes[i].has);
		free(r->nodes[i].sources);
		free(r->nodes[i].out.flows);
		free(r->nodes[i].in.flows);
	}
	for (i = 0; i < RACKS; i++) {
		free(r->up[i].flows);
		free(r->down[i].flows);
	}
	free(r->nodes);
	free(r->credit);
	free(r->heap);
	free(r);
}

static const char usage[] =
	"usage: rdmc [options], one line of JSON for each run\n"
	"  --algorithm A      sequential, chain, tree, pipeline or hybrid\n"
	"  --nodes N          of which the root is one (default 2)\n"
	"  --blocks K         of the object (default 256)\n"
	"  --block BYTES      (default 1 MiB)\n"
	"  --gbit R           rate of an adapter, each way (default 20)\n"
	"  --latency LOW:HIGH us of a message, drawn for each\n"
	"  --overhead US      of a send\n"
	"  --path LOW:HIGH    Gbit/s of a path, drawn for each block\n"
	"  --lasting          drawn for each pair of nodes, instead\n"
	"  --delay US:PART    that part of the sends waits so long; PART one: just one\n"
	"  --slow A:B:GBIT    the link between these two nodes\n"
	"  --racks N:RATIO    N nodes a rack; their adapters over the rack's link\n"
	"  --scattered        nodes are in racks at random\n"
	"  --ahead N          blocks that a node is ready for (default 1)\n"
	"  --each             from each peer, instead of in the order of steps\n"
	"  --seed S --runs N  (default 1, 1)\n";

static double number(const char **text)
{
	char *end;
	double n = strtod(*text, &end);

	if (end == *text || n < 0 || (*end && *end != ':')) {
		fprintf(stderr, "rdmc: not a number: %s\n", *text);
		exit(2);
	}
	*text = *end ? end + 1 : end;
	return n;
}

static enum sp_schedule_kind algorithm(const char *name)
{
	static const char * const names[] = {
		[SP_SCHEDULE_SEQUENTIAL] = "sequential",
		[SP_SCHEDULE_CHAIN] = "chain",
		[SP_SCHEDULE_TREE] = "tree",
		[SP_SCHEDULE_PIPELINE] = "pipeline",
		[SP_SCHEDULE_HYBRID] = "hybrid",
	};
	u32 i;

	for (i = 0; i <= SP_SCHEDULE_HYBRID; i++)
		if (!strcmp(name, names[i]))
			return i;
	fprintf(stderr, "rdmc: no such algorithm: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "algorithm", required_argument, NULL, 'a' },
		{ "nodes", required_argument, NULL, 'n' },
		{ "blocks", required_argument, NULL, 'k' },
		{ "block", required_argument, NULL, 'b' },
		{ "gbit", required_argument, NULL, 'g' },
		{ "latency", required_argument, NULL, 'l' },
		{ "overhead", required_argument, NULL, 'o' },
		{ "path", required_argument, NULL, 'p' },
		{ "lasting", no_argument, NULL, 'P' },
		{ "delay", required_argument, NULL, 'd' },
		{ "slow", required_argument, NULL, 's' },
		{ "racks", required_argument, NULL, 'r' },
		{ "scattered", no_argument, NULL, 'R' },
		{ "ahead", required_argument, NULL, 'A' },
		{ "each", no_argument, NULL, 'E' },
		{ "seed", required_argument, NULL, 'S' },
		{ "runs", required_argument, NULL, 'N' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	const double gbit = 1e9 / 8;
	struct scene s = {
		.kind = SP_SCHEDULE_PIPELINE, .nodes = 2, .blocks = 256,
		.block = 1 << 20, .rate = 20 * gbit, .seed = 1, .ahead = 1,
	};
	u32 runs = 1;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		const char *arg = optarg;

		switch (c) {
		case 'a':
			s.kind = algorithm(arg);
			break;
		case 'n':
			s.nodes = number(&arg);
			break;
		case 'k':
			s.blocks = number(&arg);
			break;
		case 'b':
			s.block = number(&arg);
			break;
		case 'g':
			s.rate = number(&arg) * gbit;
			break;
		case 'l':
			s.latency[0] = number(&arg) / 1e6;
			s.latency[1] = number(&arg) / 1e6;
			break;
		case 'o':
			s.overhead = number(&arg) / 1e6;
			break;
		case 'p':
			s.path[0] = number(&arg) * gbit;
			s.path[1] = number(&arg) * gbit;
			break;
		case 'P':
			s.lasting = true;
			break;
		case 'd':
			s.delay = number(&arg) / 1e6;
			s.delayed = strcmp(arg, "one") ? number(&arg) : -1;
			break;
		case 's':
			s.slow[0] = number(&arg);
			s.slow[1] = number(&arg);
			s.slow_rate = number(&arg) * gbit;
			break;
		case 'r':
			s.rack = number(&arg);
			s.oversubscribed = number(&arg);
			break;
		case 'R':
			s.scattered = true;
			break;
		case 'A':
			s.ahead = number(&arg);
			break;
		case 'E':
			s.each = true;
			break;
		case 'S':
			s.seed = number(&arg);
			break;
		case 'N':
			runs = number(&arg);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc || s.nodes < 2 || s.nodes > MAX_NODES || !s.blocks ||
	    s.block < 1 || s.rate <= 0 || !s.ahead ||
	    (s.rack && ((s.nodes - 1) / s.rack >= RACKS || s.oversubscribed <= 0))) {
		fputs(usage, stderr);
		return 2;
	}
	for (; runs--; s.seed++)
		run(&s);
	return 0;
}
