// SPDX-License-Identifier: GPL-2.0
/*
 * Every interleaving of two engines, each of which goes to sleep, pushes to the
 * other and tells it something in sleep, over the functions of doze.h that
 * decide: no order of their steps and of the network's loses a wake-up, and
 * without any part of them one does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#define DOZE_ROWS	3
#define DOZE_WAKES	3

enum doze_rule {
	DOZE_ALL,
	DOZE_NO_LAST_LOOK,	/* sleeps without waiting for its rows to land */
	DOZE_NO_SECOND_READ,	/* reads the flag when it posts */
	DOZE_NO_LOOK_AT_ALL,	/* sleeps once its rows have landed, unseeing */
	DOZE_TOLD_AND_GONE,	/* tells in sleep without sp_doze_again() */
	DOZE_TOLD_BY_LOOK,	/* does not wait for what the last look told to land */
	DOZE_FLAG_WITH_MORE,	/* tells what is no news along with its flag */
	DOZE_RULES,
};

/**
 * struct doze_node - one of the two nodes, and its connection to the other
 * @d: how awake it is
 * @woken: last epoch of the other that it sent a wake for
 * @sleeps: more times that it may go to sleep
 * @pushes: messages that it may still push
 * @tells: times that it may still tell something in sleep
 * @looking: it has read how far its rows are, and now looks for news
 * @look_landed: what it read
 * @said: messages pushed and things told so far, all of which are news
 * @seen: of the other's, seen
 * @rows: rows posted
 * @row: the flag in each, and @said when it was posted; @row[0] is none
 * @landed: how many have landed, in halves: odd while one is torn
 * @done: of the rows, completed
 * @check: the other's flag is to be read when so many have, 0: none
 * @recheck: and once more when so many have
 * @wakes: wakes sent
 * @behind: rows posted before each, which land before it
 * @woke: of the wakes, landed
 */
struct doze_node {
	struct sp_doze d;
	u64 woken;
	u8 sleeps;
	u8 pushes;
	u8 tells;
	u8 looking;
	u8 look_landed;
	u8 said;
	u8 seen;
	u8 rows;
	struct {
		u8 flag;
		u8 said;
	} row[DOZE_ROWS + 1];
	u8 landed;
	u8 done;
	u8 check;
	u8 recheck;
	u8 wakes;
	u8 behind[DOZE_WAKES];
	u8 woke;
};

struct doze_world {
	struct doze_node nodes[2];
};

/* Worlds found so far: a table with open addressing, and a list to visit. */
struct doze_search {
	enum doze_rule rule;
	struct doze_world *worlds;
	u32 nworlds;
	u32 size;
	u32 *table;
	u32 table_size;
	u32 lost;
};

static u64 doze_hash(const struct doze_world *w)
{
	const u8 *b = (const u8 *)w;
	u64 h = 1469598103934665603ull;
	size_t i;

	for (i = 0; i < sizeof(*w); i++)
		h = (h ^ b[i]) * 1099511628211ull;
	return rng_mix(h);
}

static void doze_found(struct doze_search *s, const struct doze_world *w)
{
	u32 at = doze_hash(w) & (s->table_size - 1);

	while (s->table[at]) {
		if (!memcmp(&s->worlds[s->table[at] - 1], w, sizeof(*w)))
			return;
		at = (at + 1) & (s->table_size - 1);
	}
	if (s->nworlds == s->size || s->nworlds == s->table_size / 2)
		abort();
	s->worlds[s->nworlds++] = *w;
	s->table[at] = s->nworlds;
}

static void doze_post(struct doze_node *n)
{
	n->rows++;
	n->row[n->rows].flag = n->d.epoch;
	n->row[n->rows].said = n->said;
}

/* A torn flag is none: it lands after this, and its writer looks after that. */
static void doze_read_flag(struct doze_node *n, const struct doze_node *other)
{
	u8 last = other->landed / 2;
	u8 flag = other->row[last].flag;

	/* Bytes that do not change are not torn. */
	if (other->landed & 1 && other->row[last + 1].flag != flag)
		return;
	if (sp_wake_due(flag, &n->woken))
		n->behind[n->wakes++] = n->rows;
}

/* Post a row with news. The flag is read at once, and when the row has landed. */
static void doze_say(const struct doze_search *s, struct doze_node *n,
		     const struct doze_node *other)
{
	n->said++;
	doze_post(n);
	if (s->rule != DOZE_NO_SECOND_READ) {
		if (!n->check)
			n->check = n->rows;
		n->recheck = n->rows;
	}
	doze_read_flag(n, other);
}

/* Has a row completed after which the other's flag is to be read? */
static bool doze_hear(struct doze_node *n, const struct doze_node *other)
{
	if (!n->check || n->done < n->check)
		return false;
	n->check = n->recheck > n->done ? n->recheck : 0;
	doze_read_flag(n, other);
	return true;
}

/* The node sees what has landed. */
static bool doze_news(const struct doze_search *s, struct doze_node *n,
		      const struct doze_node *other)
{
	u8 last = other->landed / 2;
	u8 said = other->row[last].said;

	if (other->landed & 1 && (other->row[last + 1].said != said ||
				  s->rule == DOZE_FLAG_WITH_MORE))
		return false;
	if (said == n->seen)
		return false;
	n->seen = said;
	sp_doze_wake(&n->d);
	return true;
}

static bool step_poll(const struct doze_search *s, struct doze_node *n,
		      struct doze_node *other)
{
	bool heard;

	if (n->looking || n->d.state != SP_AWAKE)
		return false;
	heard = doze_hear(n, other);
	return doze_news(s, n, other) || heard;
}

static bool step_begin(const struct doze_search *s, struct doze_node *n,
		       struct doze_node *other)
{
	(void)s;
	(void)other;
	if (n->d.state != SP_AWAKE || n->looking || !n->sleeps)
		return false;
	n->sleeps--;
	sp_doze_begin(&n->d);
	doze_post(n);
	return true;
}

static bool step_look(const struct doze_search *s, struct doze_node *n,
		      struct doze_node *other)
{
	if (n->d.state != SP_DOZING || n->looking)
		return false;
	doze_hear(n, other);
	n->looking = 1;
	n->look_landed = (n->done == n->rows && !n->check) ||
		s->rule == DOZE_NO_LAST_LOOK;
	return true;
}

static bool step_sleep(const struct doze_search *s, struct doze_node *n,
		       struct doze_node *other)
{
	if (!n->looking)
		return false;
	n->looking = 0;
	if (n->d.state != SP_DOZING)
		return true;
	if (s->rule != DOZE_NO_LOOK_AT_ALL && doze_news(s, n, other))
		return true;
	sp_doze_look(&n->d, n->look_landed);
	return true;
}

/* A program sends, whether its node sleeps or not. */
static bool step_push(const struct doze_search *s, struct doze_node *n,
		      struct doze_node *other)
{
	if (n->looking || !n->pushes)
		return false;
	n->pushes--;
	sp_doze_wake(&n->d);
	doze_say(s, n, other);
	return true;
}

/* A reader consumes, asleep or while the node looks for news; it keeps nobody awake. */
static bool step_tell(const struct doze_search *s, struct doze_node *n,
		      struct doze_node *other)
{
	if (n->d.state == SP_AWAKE || !n->tells)
		return false;
	n->tells--;
	doze_say(s, n, other);
	if (n->d.state == SP_ASLEEP && s->rule != DOZE_TOLD_AND_GONE)
		sp_doze_again(&n->d);
	if (s->rule != DOZE_TOLD_BY_LOOK)
		n->look_landed = 0;
	return true;
}

static bool step_lands(const struct doze_search *s, struct doze_node *n,
		       struct doze_node *other)
{
	(void)s;
	(void)other;
	if (n->landed == 2 * n->rows)
		return false;
	n->landed++;
	return true;
}

static bool step_completes(const struct doze_search *s, struct doze_node *n,
			   struct doze_node *other)
{
	(void)s;
	(void)other;
	if (n->done == n->landed / 2)
		return false;
	n->done++;
	return true;
}

static bool step_wake(const struct doze_search *s, struct doze_node *n,
		      struct doze_node *other)
{
	(void)s;
	if (n->woke == n->wakes || n->landed / 2 < n->behind[n->woke])
		return false;
	n->woke++;
	sp_doze_wake(&other->d);
	return true;
}

typedef bool (*doze_step)(const struct doze_search *s, struct doze_node *n,
			  struct doze_node *other);

/* Steps that are sure to come, and steps that may never be taken. */
static const doze_step doze_must[] = {
	step_poll, step_look, step_sleep, step_lands, step_completes, step_wake,
};

static const doze_step doze_may[] = { step_begin, step_push, step_tell };

/* Take every one of some steps that node @who can. True when there was one. */
static bool doze_take(struct doze_search *s, u32 from, u32 who, const doze_step *steps, u32 n)
{
	bool moved = false;
	struct doze_world w;
	u32 k;

	for (k = 0; k < n; k++) {
		w = s->worlds[from];
		if (!steps[k](s, &w.nodes[who], &w.nodes[!who]))
			continue;
		moved = true;
		doze_found(s, &w);
	}
	return moved;
}

/* Count the worlds in which nothing more is sure to come and news lies unseen. */
static u32 doze_search(const struct doze_world *first, enum doze_rule rule, u32 *worlds)
{
	struct doze_search s = { .rule = rule };
	u32 i, who;

	s.size = 1 << 20;
	s.table_size = 1 << 21;
	s.worlds = calloc(s.size, sizeof(*s.worlds));
	s.table = calloc(s.table_size, sizeof(*s.table));
	doze_found(&s, first);
	for (i = 0; i < s.nworlds; i++) {
		const struct doze_node *n = s.worlds[i].nodes;
		bool moved = false;

		for (who = 0; who < 2; who++) {
			moved |= doze_take(&s, i, who, doze_must, ARRAY_SIZE(doze_must));
			doze_take(&s, i, who, doze_may, ARRAY_SIZE(doze_may));
		}
		if (!moved && (n[0].seen != n[1].said || n[1].seen != n[0].said))
			s.lost++;
	}
	*worlds = s.nworlds;
	free(s.worlds);
	free(s.table);
	return s.lost;
}

/**
 * struct doze_case - what the two nodes may do
 * @what: in words
 * @sleeps: times that each goes to sleep
 * @pushes: messages of each
 * @tells: times that each tells something in sleep
 * @loses: the rules that lose a wake-up
 */
static const struct doze_case {
	const char *what;
	u8 sleeps[2];
	u8 pushes[2];
	u8 tells[2];
	u32 loses;
} doze_cases[] = {
	{
		.what = "one sleeps, one pushes",
		.sleeps = { 3, 0 },
		.pushes = { 0, 2 },
		.loses = 1u << DOZE_NO_LAST_LOOK | 1u << DOZE_NO_SECOND_READ |
			1u << DOZE_NO_LOOK_AT_ALL,
	},
	{
		.what = "both sleep, one tells, one pushes",
		.sleeps = { 2, 1 },
		.pushes = { 0, 1 },
		.tells = { 1, 0 },
		.loses = ~(1u << DOZE_ALL),
	},
	{
		.what = "both sleep and push, one tells",
		.sleeps = { 1, 1 },
		.pushes = { 1, 1 },
		.tells = { 1, 0 },
		.loses = ~(1u << DOZE_ALL),
	},
};

/* Give 0 when doze.h loses nothing and each part of it is needed. */
int doze_exhaustive(bool verbose)
{
	static const char * const names[] = {
		[DOZE_ALL] = "all of it",
		[DOZE_NO_LAST_LOOK] = "rows not awaited",
		[DOZE_NO_SECOND_READ] = "flag read at the post",
		[DOZE_NO_LOOK_AT_ALL] = "no last look",
		[DOZE_TOLD_AND_GONE] = "told and gone",
		[DOZE_TOLD_BY_LOOK] = "told by the last look",
		[DOZE_FLAG_WITH_MORE] = "flag with more",
	};
	struct doze_world w;
	u32 i, k, rule;
	int bad = 0;

	for (i = 0; i < ARRAY_SIZE(doze_cases); i++) {
		const struct doze_case *c = &doze_cases[i];

		memset(&w, 0, sizeof(w));
		for (k = 0; k < 2; k++) {
			w.nodes[k].sleeps = c->sleeps[k];
			w.nodes[k].pushes = c->pushes[k];
			w.nodes[k].tells = c->tells[k];
		}
		if (verbose)
			printf("  %s\n", c->what);
		for (rule = 0; rule < DOZE_RULES; rule++) {
			u32 worlds;
			u32 lost = doze_search(&w, rule, &worlds);

			if (verbose)
				printf("    %-22s %6u states, %u lose a wake-up\n",
				       names[rule], worlds, lost);
			bad += !(c->loses >> rule & 1) != !lost;
		}
	}
	return bad;
}
