// SPDX-License-Identifier: GPL-2.0
/*
 * Every interleaving of one engine that goes to sleep and one peer that pushes
 * to it, over the two functions of doze.h that decide: no order of their steps
 * and of the network's loses a wake-up, and without either half one does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#define DOZE_PUSHES	2
#define DOZE_SLEEPS	3

enum doze_rule {
	DOZE_BOTH,
	DOZE_NO_LAST_LOOK,	/* sleeps without waiting for its flag to land */
	DOZE_NO_SECOND_READ,	/* reads the flag when it posts */
	DOZE_NO_LOOK_AT_ALL,	/* sleeps once the flag has landed, unseeing */
};

/**
 * struct doze_world - where everything is
 * @d: the sleeper
 * @sleeps: times it went to sleep
 * @looking: it has read how far its flag is, and now looks for news
 * @look_landed: what it read
 * @flags: flags posted, with their values in @flag
 * @flags_half: of these, began to land
 * @flags_landed: of these, landed
 * @flags_done: of these, completed
 * @pushed: messages posted by the pusher
 * @landed: of these, landed
 * @done: of these, completed
 * @seen: of these, seen by the sleeper
 * @check: the pusher is to read the flag when this many have completed
 * @woken: last epoch it sent a wake for
 * @wakes: wakes on the way
 */
struct doze_world {
	struct sp_doze d;
	u64 flag[DOZE_SLEEPS];
	u64 woken;
	u8 sleeps;
	u8 looking;
	u8 look_landed;
	u8 flags;
	u8 flags_half;
	u8 flags_landed;
	u8 flags_done;
	u8 pushed;
	u8 landed;
	u8 done;
	u8 seen;
	u8 check;
	u8 wakes;
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

/* The sleeper sees what has landed. */
static bool doze_news(struct doze_world *w)
{
	if (w->landed == w->seen)
		return false;
	w->seen = w->landed;
	sp_doze_wake(&w->d);
	return true;
}

static bool step_poll(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	return !w->looking && w->d.state == SP_AWAKE && doze_news(w);
}

static bool step_begin(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (w->looking || w->d.state != SP_AWAKE || w->landed != w->seen ||
	    w->sleeps == DOZE_SLEEPS)
		return false;
	w->sleeps++;
	sp_doze_begin(&w->d);
	w->flag[w->flags++] = w->d.epoch;
	return true;
}

static bool step_look(struct doze_search *s, struct doze_world *w)
{
	bool landed = w->flags_done == w->flags;

	if (w->d.state != SP_DOZING || w->looking)
		return false;
	if (s->rule == DOZE_NO_LAST_LOOK)
		landed = true;
	w->looking = 1;
	w->look_landed = landed;
	return true;
}

static bool step_sleep(struct doze_search *s, struct doze_world *w)
{
	if (!w->looking)
		return false;
	w->looking = 0;
	if (w->d.state != SP_DOZING)
		return true;
	if (s->rule != DOZE_NO_LOOK_AT_ALL && doze_news(w))
		return true;
	sp_doze_look(&w->d, w->look_landed);
	return true;
}

static bool step_flag_half(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (w->flags_half == w->flags || w->flags_half != w->flags_landed)
		return false;
	w->flags_half++;
	return true;
}

static bool step_flag_lands(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (w->flags_landed == w->flags_half)
		return false;
	w->flags_landed++;
	return true;
}

static bool step_flag_completes(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (w->flags_done == w->flags_landed)
		return false;
	w->flags_done++;
	return true;
}

/* A torn flag is none: it lands after this, and its writer looks after that. */
static void doze_read_flag(struct doze_world *w)
{
	u64 epoch = 0;

	if (w->flags_landed && w->flags_half == w->flags_landed)
		epoch = w->flag[w->flags_landed - 1];
	if (sp_wake_due(epoch, &w->woken))
		w->wakes++;
}

static bool step_push(struct doze_search *s, struct doze_world *w)
{
	if (w->pushed == DOZE_PUSHES)
		return false;
	if (s->rule == DOZE_NO_SECOND_READ)
		doze_read_flag(w);
	else
		w->check = w->pushed + 1;
	w->pushed++;
	return true;
}

static bool step_push_lands(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (w->landed == w->pushed)
		return false;
	w->landed++;
	return true;
}

static bool step_push_completes(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (w->done == w->landed)
		return false;
	w->done++;
	return true;
}

static bool step_read_flag(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (!w->check || w->done < w->check)
		return false;
	w->check = 0;
	doze_read_flag(w);
	return true;
}

static bool step_wake(struct doze_search *s, struct doze_world *w)
{
	(void)s;
	if (!w->wakes)
		return false;
	w->wakes--;
	sp_doze_wake(&w->d);
	return true;
}

typedef bool (*doze_step)(struct doze_search *s, struct doze_world *w);

static const doze_step doze_steps[] = {
	step_poll, step_begin, step_look, step_sleep,
	step_flag_half, step_flag_lands, step_flag_completes,
	step_push, step_push_lands, step_push_completes, step_read_flag,
	step_wake,
};

/* Count the worlds in which nothing more happens and news lies unseen. */
static u32 doze_search(enum doze_rule rule, u32 *worlds)
{
	struct doze_search s = { .rule = rule };
	struct doze_world w;
	u32 i, k;

	s.size = 1 << 20;
	s.table_size = 1 << 21;
	s.worlds = calloc(s.size, sizeof(*s.worlds));
	s.table = calloc(s.table_size, sizeof(*s.table));
	memset(&w, 0, sizeof(w));
	doze_found(&s, &w);
	for (i = 0; i < s.nworlds; i++) {
		bool moved = false;

		for (k = 0; k < ARRAY_SIZE(doze_steps); k++) {
			w = s.worlds[i];
			if (!doze_steps[k](&s, &w))
				continue;
			moved = true;
			doze_found(&s, &w);
		}
		if (!moved && s.worlds[i].seen != s.worlds[i].landed)
			s.lost++;
	}
	*worlds = s.nworlds;
	free(s.worlds);
	free(s.table);
	return s.lost;
}

/* Give 0 when doze.h loses nothing and each half is needed. */
int doze_exhaustive(bool verbose)
{
	static const char * const names[] = {
		[DOZE_BOTH] = "both halves",
		[DOZE_NO_LAST_LOOK] = "flag not awaited",
		[DOZE_NO_SECOND_READ] = "flag read at the post",
		[DOZE_NO_LOOK_AT_ALL] = "no last look",
	};
	int bad = 0;
	u32 rule;

	for (rule = DOZE_BOTH; rule <= DOZE_NO_LOOK_AT_ALL; rule++) {
		u32 worlds;
		u32 lost = doze_search(rule, &worlds);

		if (verbose)
			printf("  %-22s %6u states, %u lose a wake-up\n",
			       names[rule], worlds, lost);
		bad += (rule == DOZE_BOTH) == (lost != 0);
	}
	return bad;
}
