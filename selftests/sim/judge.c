// SPDX-License-Identifier: GPL-2.0
/* One story, told by whoever comes first and repeated by everybody else. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

#define NODES	64
#define PROGS	256
#define VIEWS	512

/**
 * struct fate - a program
 * @len: of each message that it sent
 * @sent: how many
 * @told: of these, how many are in the story
 */
struct fate {
	uint32_t *len;
	uint32_t sent;
	uint32_t told;
};

/**
 * struct chapter - a view
 * @told: its event is in the story, at @at
 * @installed: a node is in it, with @members
 */
struct chapter {
	bool told;
	bool installed;
	uint32_t at;
	uint32_t n;
	uint64_t members[JUDGE_MEMBERS];
};

/**
 * struct place - where a node is in the story
 * @began: its stream has begun
 * @next: the entry that it delivers next
 * @view: the view it has installed last
 */
struct place {
	bool began;
	uint32_t next;
	uint32_t view;
};

struct judge {
	struct judge_entry *story;
	uint32_t length;
	uint32_t room;
	struct fate progs[PROGS];
	struct chapter views[VIEWS];
	struct place nodes[NODES];
	uint32_t newest;
	char why[256];
};

struct judge *judge_new(void)
{
	return calloc(1, sizeof(struct judge));
}

void judge_free(struct judge *j)
{
	uint32_t i;

	for (i = 0; j && i < PROGS; i++)
		free(j->progs[i].len);
	if (j)
		free(j->story);
	free(j);
}

const char *judge_why(const struct judge *j)
{
	return j->why;
}

__attribute__((format(printf, 2, 3)))
static bool judge_no(struct judge *j, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(j->why, sizeof(j->why), fmt, ap);
	va_end(ap);
	return false;
}

/* A program has sent a message, and was told that it is sent. */
bool judge_sent(struct judge *j, uint32_t prog, uint32_t len)
{
	struct fate *p = &j->progs[prog];

	if (prog >= PROGS)
		return judge_no(j, "no end of programs");
	p->len = realloc(p->len, (p->sent + 1) * sizeof(p->len[0]));
	p->len[p->sent++] = len;
	return true;
}

/* A node begins a life: its stream begins with its first view. */
void judge_life(struct judge *j, uint32_t node)
{
	j->nodes[node].began = false;
}

static bool judge_same(const struct judge_entry *a, const struct judge_entry *b)
{
	return a->prog == b->prog && a->number == b->number &&
	       a->len == b->len && a->seq == b->seq;
}

static void judge_append(struct judge *j, const struct judge_entry *e)
{
	if (j->length == j->room) {
		j->room = j->room ? 2 * j->room : 256;
		j->story = realloc(j->story, j->room * sizeof(j->story[0]));
	}
	j->story[j->length++] = *e;
}

/* A node delivers an entry: the story's next one, or the one it goes on with. */
static bool judge_tell(struct judge *j, uint32_t node, const struct judge_entry *e)
{
	struct place *at = &j->nodes[node];
	const struct judge_entry *was;

	if (at->next == j->length)
		judge_append(j, e);
	was = &j->story[at->next++];
	if (judge_same(was, e))
		return true;
	return judge_no(j, "node %u delivers %s %u #%u at seq %lld, others %s %u #%u at seq %lld",
			node, e->prog == JUDGE_NOBODY ? "view" : "program",
			e->prog, e->number, (long long)e->seq,
			was->prog == JUDGE_NOBODY ? "view" : "program",
			was->prog, was->number, (long long)was->seq);
}

/* A node delivers a message. Which one of the program's follows from the story. */
bool judge_message(struct judge *j, uint32_t node, uint32_t prog, uint32_t len,
		   int64_t seq)
{
	struct place *at = &j->nodes[node];
	struct judge_entry e = { .prog = prog, .len = len, .seq = seq };
	struct fate *p = &j->progs[prog];

	if (!at->began)
		return judge_no(j, "node %u delivers a message before its first view",
				node);
	if (at->next < j->length) {
		e.number = j->story[at->next].number;
		return judge_tell(j, node, &e);
	}
	e.number = p->told++;
	if (e.number >= p->sent || p->len[e.number] != len)
		return judge_no(j, "node %u delivers program %u #%u with %u bytes, which was not sent",
				node, prog, e.number, len);
	return judge_tell(j, node, &e);
}

/* A node delivers the event that a view begins. */
bool judge_view(struct judge *j, uint32_t node, uint32_t number, int64_t seq)
{
	struct place *at = &j->nodes[node];
	struct judge_entry e = {
		.prog = JUDGE_NOBODY, .number = number, .seq = seq,
	};
	struct chapter *v = &j->views[number];

	if (number >= VIEWS)
		return judge_no(j, "no end of views");
	if (!at->began && !v->told && number != 1)
		return judge_no(j, "node %u begins in view %u, which nobody is in",
				node, number);
	if (!at->began)
		at->next = v->told ? v->at : 0;
	else if (number != at->view + 1)
		return judge_no(j, "node %u goes from view %u to view %u", node,
				at->view, number);
	at->began = true;
	if (!v->told) {
		v->told = true;
		v->at = at->next;
		j->newest = number;
	}
	return judge_tell(j, node, &e);
}

/* A node is in a view: nothing was delivered there since its event. */
bool judge_installed(struct judge *j, uint32_t node, uint32_t number,
		     const uint64_t *members, uint32_t n)
{
	struct chapter *v = &j->views[number];
	struct place *at = &j->nodes[node];

	if (!at->began || !v->told || at->next != v->at + 1)
		return judge_no(j, "node %u installs view %u at place %u, others at %u",
				node, number, at->next, v->at + 1);
	at->view = number;
	if (!v->installed) {
		v->installed = true;
		v->n = n;
		memcpy(v->members, members, n * sizeof(members[0]));
	}
	if (v->n == n && !memcmp(v->members, members, n * sizeof(members[0])))
		return true;
	return judge_no(j, "node %u installs view %u with other members than others",
			node, number);
}

/* The number of the newest view that a node delivered the event of. */
uint32_t judge_newest(const struct judge *j)
{
	return j->newest;
}

/* How many entries the story has. */
uint32_t judge_length(const struct judge *j)
{
	return j->length;
}

/* What a node delivered last, or so many entries before that. */
const struct judge_entry *judge_entry(const struct judge *j, uint32_t node,
				      uint32_t back)
{
	return &j->story[j->nodes[node].next - 1 - back];
}

/* The run is over, and the node is in the group: it has delivered all. */
bool judge_node_ends(struct judge *j, uint32_t node)
{
	const struct place *at = &j->nodes[node];

	if (at->view != j->newest)
		return judge_no(j, "node %u is left in view %u of %u", node,
				at->view, j->newest);
	if (at->next != j->length)
		return judge_no(j, "node %u delivered up to %u of %u", node,
				at->next, j->length);
	return true;
}

/* The run is over: was everything delivered that a program relies on? */
bool judge_prog_ends(struct judge *j, uint32_t prog, enum judge_fate fate)
{
	const struct fate *p = &j->progs[prog];

	if (fate == JUDGE_TOLD || p->told == p->sent)
		return true;
	return judge_no(j, "program %u %s %u messages, %u were delivered", prog,
			fate == JUDGE_LEFT ? "left and had sent" : "sent",
			p->sent, p->told);
}
