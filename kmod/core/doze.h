/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Going to sleep without losing a wake-up, for memory that is polled.
 *
 * The sleeper pushes a flag, waits until that write has landed everywhere,
 * looks at everything once more, and only then sleeps. A pusher, once its own
 * last write has landed, reads the flag and, when it is up, sends one wake.
 * Only both halves together lose nothing (design-review 9): whichever of the
 * two writes lands second, its writer then sees the other's.
 *
 * The flag is an epoch: odd while the engine is going to sleep or sleeps, so
 * that a peer sends one wake for each time.
 */
#ifndef SPINDLE_CORE_DOZE_H
#define SPINDLE_CORE_DOZE_H

#include "env.h"

/**
 * enum sp_doze_state - how awake the engine is to one group
 * @SP_AWAKE: it polls
 * @SP_DOZING: its flag is on the way; where nothing is polled, it rests
 * @SP_ASLEEP: it looks only when woken
 */
enum sp_doze_state {
	SP_AWAKE,
	SP_DOZING,
	SP_ASLEEP,
};

/**
 * struct sp_doze - the sleeper's half
 * @state: how awake; programs on the own node read it too, to see whether what
 *	they did needs a kick
 * @epoch: the flag's value
 */
struct sp_doze {
	enum sp_doze_state state;
	u64 epoch;
};

/**
 * sp_doze_wake() - there is news: poll
 * @d: the sleeper
 *
 * Return: true when it was not awake.
 */
static inline bool sp_doze_wake(struct sp_doze *d)
{
	if (d->state == SP_AWAKE)
		return false;
	WRITE_ONCE(d->state, SP_AWAKE);
	d->epoch++;
	return true;
}

/**
 * sp_doze_begin() - nothing has happened for a while: raise the flag
 * @d: the sleeper, awake
 *
 * The caller pushes @d->epoch to all peers.
 */
static inline void sp_doze_begin(struct sp_doze *d)
{
	WRITE_ONCE(d->state, SP_DOZING);
	d->epoch++;
}

/**
 * sp_doze_again() - something was told in sleep: see it land before going on
 * @d: the sleeper, asleep; its flag stays up
 */
static inline void sp_doze_again(struct sp_doze *d)
{
	WRITE_ONCE(d->state, SP_DOZING);
}

/**
 * sp_doze_look() - may the engine sleep now
 * @d: the sleeper, dozing, after a look that found no news
 * @landed: had every write of the flag completed before that look began
 *
 * Return: true when it sleeps from now on.
 */
static inline bool sp_doze_look(struct sp_doze *d, bool landed)
{
	if (d->state != SP_DOZING || !landed)
		return false;
	WRITE_ONCE(d->state, SP_ASLEEP);
	return true;
}

/**
 * sp_wake_due() - the pusher's half
 * @epoch: the peer's flag, read after the own last write to it has landed
 * @woken: the epoch the peer was last woken for; updated
 *
 * Return: true when one wake is to be sent.
 */
static inline bool sp_wake_due(u64 epoch, u64 *woken)
{
	if (!(epoch & 1) || epoch == *woken)
		return false;
	*woken = epoch;
	return true;
}

#endif /* SPINDLE_CORE_DOZE_H */
