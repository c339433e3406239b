/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a view (agree.c) as a model for spin; scripts/model runs it.
 *
 * NODES nodes with one member each. What each says of the end of the view, its
 * tell, is appended to its log, and each other node reads that log in order and
 * at its own pace, with or without what lies between: links are FIFO, the newest
 * tell counts, and any view of the others may be a stale one. What a node does
 * on an event (a tell arrives, somebody is suspected, a grace time ends) is one
 * step, as sp_agree_step(). A node crashes between any two of them: what it said
 * last may then reach one and not the other.
 *
 * A node is suspected for good reason when it has crashed or stopped. Otherwise it
 * costs a failure, which both of the two then share: a link that is cut. Both
 * together are at most FAILURES.
 *
 * Of each lane there is at most one round, so counts are masks of lanes and their
 * minimum is their intersection. Delivery in order needs all nodes to have
 * received a turn; the model takes it that all that may be delivered has been.
 *
 * What is asserted:
 *   agreement   who decides, decides the same members and the same trim
 *   quorum      a majority has accepted what is decided, under one ballot
 *   promise     a majority suspects all below the leader that proposes
 *   atomicity   what was delivered in order lies within the decided trim, and who
 *               stays has received all of the trim
 *   liveness    where nothing more can happen every node has decided or stopped,
 *               and a majority that is up and connected has decided
 *   fencing     the log of a suspected node is not read on
 *
 * The view after this one, joins and links that come back are not modelled.
 *
 * What it showed of the rules:
 *   - A tell must say that its node has decided (DECIDED), and an alive node's word
 *     is enough. Without it whoever has installed the next view accepts nothing
 *     more in this one, and a new leader that proposes the same again waits for it
 *     for ever: with three nodes and one crash when the leader proposes before it
 *     looks whether all have accepted, with five and two crashes in any order
 *     (BUG_NO_DECIDED, and with DECIDE_FIRST and LATE).
 *   - A node that leaves stays until the others have decided (BUG_LEAVE_EARLY).
 *   - One cut link stops all of four nodes if a node takes up what a higher rank
 *     says of a lower one before it has heard that one (GRACES). Nothing is lost by
 *     waiting for it, or for evidence of one's own: GRACES=0 has no end without
 *     a decision.
 *   - A third ballot needs five nodes: with three its leader has no majority.
 *
 * Covered exhaustively: three nodes, two failures, two lanes; two nodes, two
 * failures; four nodes, one crash, and one cut link with GRACES=0. With --full: four
 * nodes and any two failures, with GRACES=0; five nodes from the leader's crash
 * after it has proposed (LATE), with one more crash and true suspicions only.
 */

#ifndef NODES
#define NODES	3
#endif
#ifndef FAILURES
#define FAILURES 2
#endif
#ifndef LANES
#define LANES	1	/* mask of the nodes that send */
#endif
#ifndef LEAVERS
#define LEAVERS	7	/* mask of the nodes of which one may want to leave */
#endif

#ifndef CRASHERS
#define CRASHERS ALL	/* mask of the nodes that may crash */
#endif
#ifndef CUTS
#define CUTS	1	/* whether live nodes are suspected */
#endif
#ifndef GRACES
#define GRACES	1	/* whether grace times end before the other has spoken */
#endif

#define LOG	8
#define BIT(n)	(1 << (n))
#define ALL	(BIT(NODES) - 1)
#define BELOW(n) (BIT(n) - 1)

/* A tell, in one word. */
#define SUSPECTED(x)	((x) & 31)
#define WEDGED		BIT(5)
#define LEAVES		BIT(6)
#define DECIDED		BIT(7)
#define BALLOT(x)	(((x) >> 8) & 7)
#define COUNTS(x)	(((x) >> 11) & 7)
#define PROPOSAL(x)	((x) >> 14)
#define ACCEPTED	(~(BIT(8) * 7) & (BIT(14) - 1))	/* all of it but that */

/* A proposal: nodes that are lost, nodes that leave, the trim. */
#define LOST(p)		((p) & 31)
#define LEFT(p)		(((p) >> 5) & 31)
#define TRIM(p)		(((p) >> 10) & 7)

#define COUNT(m) (((m) & 1) + (((m) >> 1) & 1) + (((m) >> 2) & 1) + (((m) >> 3) & 1) + \
		  (((m) >> 4) & 1))
#define QUORUM(m) (2 * COUNT(m) > NODES || (2 * COUNT(m) == NODES && ((m) & 1)))

/* States of a node. */
#define RUNS	0
#define CRASHED	1
#define STOPPED	2	/* no majority, or decided that it is lost itself */
#define INSTALLED 3
#define WAITS	4	/* has left, and waits until the others know */
#define GONE	5

int log[NODES * LOG];		/* tells, oldest first; the last is the node's own */
byte said[NODES] = 1;		/* how many */
byte at[NODES * NODES];		/* the one that reader * NODES + writer has read last */
byte state[NODES];
byte got[NODES];		/* lanes whose round it has received */
byte cut[NODES];		/* those to which its link is cut */
byte failures = FAILURES;
byte leavers = LEAVERS;
bit crashed, was_cut;		/* any */
bit busy;			/* something will happen by itself */
byte may_go;			/* those that waited long enough */
byte accepted[NODES + 1];	/* by ballot: who ever accepted it */
bit decided;
int decision;

/* the event; all zero between two */
mtype event;
byte me, him, step;

mtype = { CHECK, BYE, RECEIVE, LEAVE, CRASH, SUSPECT, DELIVER };

#define OWN(i)		log[(i) * LOG + said[i] - 1]
#define SEEN(j, i)	log[(i) * LOG + at[(j) * NODES + (i)]]
#define SUSPECTS(j, i)	((OWN(j) >> (i)) & 1)
#ifdef BUG_UNFENCED
#define READS(j, i)	(state[j] == RUNS || state[j] == WAITS)
#define ACCEPTS_FROM(i)	1
#else
#define READS(j, i)	((state[j] == RUNS || state[j] == WAITS) && !SUSPECTS(j, i))
#define ACCEPTS_FROM(i)	((i) == lead)
#endif
#define DEAD(i)		(state[i] == CRASHED || state[i] == STOPPED || state[i] == GONE)
#define ARRIVES(j, i, n) (READS(j, i) && at[(j) * NODES + (i)] + n < said[i])
/* evidence of its own */
#define MISSES(j, i)	(state[j] == RUNS && !SUSPECTS(j, i) && \
			 (DEAD(i) || ((cut[j] >> (i)) & 1)))
#define DOUBTS(j, i)	(state[j] == RUNS && !SUSPECTS(j, i) && failures && CUTS)
/* a lower rank that a higher one has suspected for the grace time */
#define GRACE(j, i, q)	(GRACES && state[j] == RUNS && !SUSPECTS(j, i) && !SUSPECTS(j, q) && \
			 ((SEEN(j, i) >> (q)) & 1))
#define LANDS(j, l)	(state[j] == RUNS && WEDGE_HOLDS(j) && !((got[j] >> (l)) & 1) && \
			 ((LANES >> (l)) & 1) && ((j) == (l) || ((got[l] >> (l)) & 1)))
#ifdef BUG_RECEIVES_ON
#define WEDGE_HOLDS(j)	1
#else
#define WEDGE_HOLDS(j)	(!(OWN(j) & WEDGED))
#endif

/* scratch, of no meaning between two steps */
hidden byte a, b, peer, from, alive, lead, least;
hidden byte ok, any;
hidden int mine, his, best, was;

#define TELL(i) (i == me -> mine : SEEN(me, i))

inline suspicion()
{
	for (peer : 0 .. NODES - 1) {
		if
		:: peer != me && !((mine >> peer) & 1) ->
			his = SEEN(me, peer);
			if
			:: (his >> me) & 1 -> mine = mine | BIT(peer)
			:: else -> mine = mine | (SUSPECTED(his) & ~BELOW(peer + 1))
			fi
		:: else
		fi
	}
	alive = ALL & ~SUSPECTED(mine);
	lead = 0;
	do
	:: !((alive >> lead) & 1) -> lead++
	:: else -> break
	od
}

inline wedge()
{
	any = (SUSPECTED(mine) != 0);
	for (peer : 0 .. NODES - 1) {
		if
		:: (alive >> peer) & 1 ->
			his = TELL(peer);
			any = any || (his & WEDGED) || BALLOT(his) || (lead == me && (his & LEAVES))
		:: else
		fi
	}
	if
	:: any && !(mine & WEDGED) -> mine = mine | WEDGED | (got[me] << 11)
	:: else
	fi
}

/* The leader takes up what was accepted under the highest ballot, or makes its own. */
inline propose()
{
	ok = (lead == me && BALLOT(mine) != me + 1);
	b = 0;
	best = SUSPECTED(mine) | (7 << 10);
	for (peer : 0 .. NODES - 1) {
		if
		:: (alive >> peer) & 1 ->
			his = TELL(peer);
			ok = ok && (his & WEDGED);
#ifndef BUG_NO_PROMISE
			ok = ok && !(BELOW(me) & ~SUSPECTED(his));
#endif
			if
			:: BALLOT(his) > b ->
				b = BALLOT(his);
				was = PROPOSAL(his)
			:: else
			fi;
			best = best & ~((~COUNTS(his) & 7) << 10);
			best = best | ((his & LEAVES) -> BIT(5 + peer) : 0)
		:: else
		fi
	}
#ifdef BUG_RECOMPUTE_TRIM
	was = (was & 1023) | (TRIM(best) << 10);
#endif
#ifndef BUG_NO_ADOPT
	best = (b -> was : best);
#endif
	if
	:: ok ->
#ifndef BUG_NO_PROMISE
		a = 0;
		for (peer : 0 .. NODES - 1) {
			his = (peer == me -> mine : OWN(peer));
			a = a | (BELOW(me) & ~SUSPECTED(his) -> 0 : BIT(peer))
		}
		assert(QUORUM(a));
#endif
		mine = (mine & ACCEPTED) | ((me + 1) << 8) | (best << 14)
	:: else
	fi
}

inline accept()
{
	for (peer : 0 .. NODES - 1) {
		his = TELL(peer);
		if
		:: ACCEPTS_FROM(peer) && BALLOT(his) == peer + 1 && BALLOT(his) > BALLOT(mine) ->
			mine = (mine & ACCEPTED) | (BALLOT(his) << 8) | (PROPOSAL(his) << 14)
		:: else
		fi
	}
	accepted[BALLOT(mine)] = accepted[BALLOT(mine)] | (BALLOT(mine) -> BIT(me) : 0)
}

inline decide()
{
	ok = (BALLOT(mine) != 0);
	a = 0;
	for (peer : 0 .. NODES - 1) {
		if
		:: (alive >> peer) & 1 ->
			his = TELL(peer);
			if
			:: BALLOT(his) != BALLOT(mine) -> ok = 0
			:: else -> a++
			fi
		:: else
		fi
	}
#ifdef BUG_DECIDE_EARLY
	ok = (BALLOT(mine) != 0 && 2 * (a + 1) > NODES);
#endif
	if
	:: ok ->
		mine = mine | DECIDED;
#ifndef BUG_DECIDE_EARLY
		assert(QUORUM(accepted[BALLOT(mine)]))
#endif
	:: else
	fi;
#ifndef BUG_NO_DECIDED
	/* an alive node knows the decision: what it accepted last is it */
	for (peer : 0 .. NODES - 1) {
		if
		:: (alive >> peer) & 1 ->
			his = TELL(peer);
			if
			:: (his & DECIDED) && !(mine & DECIDED) ->
				if
				:: BALLOT(his) > BALLOT(mine) ->
					mine = (mine & ACCEPTED) | (BALLOT(his) << 8) | (PROPOSAL(his) << 14)
				:: else
				fi;
				mine = mine | DECIDED
			:: else
			fi
		:: else
		fi
	}
#endif
}

/* By what it has decided. */
inline install()
{
	his = PROPOSAL(mine);
	assert(!decided || decision == his);
	decided = 1;
	decision = his;
	if
	:: (LOST(his) >> me) & 1 -> state[me] = STOPPED
	:: else ->
		assert(!(TRIM(his) & ~got[me]));
		state[me] = ((LEFT(his) >> me) & 1 -> WAITS : INSTALLED)
	fi
}

inline rules()
{
	suspicion();
	if
#ifndef BUG_MINORITY
	:: !QUORUM(alive) -> state[me] = STOPPED
#endif
	:: else ->
		wedge();
#ifdef DECIDE_FIRST
		decide();
		if
		:: !(mine & DECIDED) -> propose()
		:: else
		fi;
#else
		propose();
#endif
		accept();
		decide();
		if
		:: mine & DECIDED -> install()
		:: else
		fi
	fi;
	if
	:: mine != OWN(me) ->
		assert(said[me] < LOG);
		said[me]++;
		OWN(me) = mine
	:: else
	fi
}

/* One form for equal states: what nobody will read is no part of them. */
inline forget()
{
	for (from : 0 .. NODES - 1) {
		least = said[from] - 1;
		for (peer : 0 .. NODES - 1) {
			if
			:: peer != from && READS(peer, from) ->
				least = (at[peer * NODES + from] < least -> at[peer * NODES + from] : least)
			:: else
			fi
		}
		for (peer : 0 .. NODES - 1) {
			if
			:: peer != from && READS(peer, from) ->
				at[peer * NODES + from] = at[peer * NODES + from] - least
			:: else -> at[peer * NODES + from] = 0
			fi
		}
		for (a : 0 .. LOG - 1) {
			log[from * LOG + a] = (a + least < said[from] -> log[from * LOG + (a + least) % LOG] : 0)
		}
		said[from] = said[from] - least
	}
}

inline look()
{
	busy = 0;
	may_go = 0;
	a = 7;
	for (from : 0 .. NODES - 1) {
		a = a & got[from];
		ok = 1;
		for (peer : 0 .. NODES - 1) {
			if
			:: peer != from ->
				busy = busy || ARRIVES(from, peer, 1) || MISSES(from, peer);
				for (b : 0 .. peer) {
					busy = busy || (b < peer && b != from && GRACE(from, peer, b))
				}
				ok = ok && (SUSPECTS(from, peer) || DEAD(peer) || ((cut[from] >> peer) & 1) ||
					    (SEEN(from, peer) & DECIDED))
			:: else
			fi
		}
#ifdef BUG_LEAVE_EARLY
		ok = 1;
#endif
		if
		:: state[from] == WAITS && ok ->
			may_go = may_go | BIT(from);
			busy = 1
		:: else
		fi
	}
	/* all of it may have been delivered in order */
	assert(!decided || !(a & ~TRIM(decision)))
}

/* Nothing will happen any more. */
inline check()
{
	a = 0;
	any = crashed || was_cut;
	for (peer : 0 .. NODES - 1) {
		any = any || (OWN(peer) & LEAVES);
		a = a | (state[peer] == INSTALLED || state[peer] == GONE -> BIT(peer) : 0)
	}
	b = ALL;
	for (peer : 0 .. NODES - 1) {
		b = b & (state[peer] == CRASHED -> ~BIT(peer) : ALL);
		assert(!any || state[peer] != RUNS)
	}
	assert(!any || was_cut || !QUORUM(b) || (b & ~a) == 0);
	assert(!any || FAILURES - failures > 1 || !QUORUM(b) || QUORUM(a))
}

inline handle()
{
	mine = OWN(me);
	if
	:: event == DELIVER ->
		at[me * NODES + him] = at[me * NODES + him] + step
	:: event == SUSPECT ->
		mine = mine | BIT(him);
		if
		:: step ->
			failures--;
			was_cut = 1;
			cut[me] = cut[me] | BIT(him);
			cut[him] = cut[him] | BIT(me)
		:: else
		fi
	:: event == CRASH ->
		state[me] = CRASHED;
		crashed = 1;
		failures--
	:: event == LEAVE ->
		mine = mine | LEAVES;
		leavers = 0
	:: event == RECEIVE -> got[me] = got[me] | BIT(him)
	:: event == BYE -> state[me] = GONE
	:: event == CHECK -> check()
	fi;
	if
	:: state[me] == RUNS && event != RECEIVE && event != CHECK -> rules()
	:: else
	fi;
	printf("%e %d %d: suspects %d, wedged %d, accepted %d, state %d\n", event, me, him,
	       SUSPECTED(mine), (mine & WEDGED) != 0, BALLOT(mine), state[me]);
	forget();
	look();
	event = 0;
	me = 0;
	him = 0;
	step = 0
}

#define PAIR(j, i) \
	:: ARRIVES(j, i, 1) -> event = DELIVER; me = j; him = i; step = 1 \
	:: ARRIVES(j, i, 2) -> event = DELIVER; me = j; him = i; step = 2 \
	:: ARRIVES(j, i, 3) -> event = DELIVER; me = j; him = i; step = 3 \
	:: MISSES(j, i) -> event = SUSPECT; me = j; him = i \
	:: !MISSES(j, i) && DOUBTS(j, i) -> event = SUSPECT; me = j; him = i; step = 1 \
	:: LANDS(j, i) -> event = RECEIVE; me = j; him = i

#define NODE(j) \
	:: !DEAD(j) && failures && ((CRASHERS >> j) & 1) -> event = CRASH; me = j \
	:: state[j] == RUNS && ((leavers >> j) & 1) -> event = LEAVE; me = j \
	:: LANDS(j, j) -> event = RECEIVE; me = j; him = j \
	:: (may_go >> j) & 1 -> event = BYE; me = j

#define LATER(j, i, q) \
	:: GRACE(j, i, q) && !MISSES(j, q) -> event = SUSPECT; me = j; him = q

active proctype group()
{
	d_step {
#ifdef LATE
		/* all have wedged, and node 0 has proposed and died */
		for (peer : 0 .. NODES - 1) {
			log[peer * LOG] = WEDGED
		}
		log[0] = WEDGED | BIT(8);
		accepted[1] = BIT(0);
		state[0] = CRASHED;
		crashed = 1;
		failures--;
#endif
		look()
	}
	do
	:: atomic {
		if
		NODE(0)
		NODE(1)
		PAIR(1, 0)
		PAIR(0, 1)
#if NODES > 2
		NODE(2)
		PAIR(2, 0)
		PAIR(0, 2)
		PAIR(2, 1)
		PAIR(1, 2)
		LATER(2, 1, 0)
		LATER(0, 2, 1)
		LATER(1, 2, 0)
#endif
#if NODES > 3
		NODE(3)
		PAIR(3, 0)
		PAIR(0, 3)
		PAIR(3, 1)
		PAIR(1, 3)
		PAIR(3, 2)
		PAIR(2, 3)
		LATER(3, 1, 0)
		LATER(3, 2, 0)
		LATER(3, 2, 1)
		LATER(0, 3, 1)
		LATER(0, 3, 2)
		LATER(1, 3, 0)
		LATER(1, 3, 2)
		LATER(2, 3, 0)
		LATER(2, 3, 1)
#endif
#if NODES > 4
		NODE(4)
		PAIR(4, 0)
		PAIR(0, 4)
		PAIR(4, 1)
		PAIR(1, 4)
		PAIR(4, 2)
		PAIR(2, 4)
		PAIR(4, 3)
		PAIR(3, 4)
		LATER(4, 1, 0)
		LATER(4, 2, 0)
		LATER(4, 3, 0)
		LATER(4, 2, 1)
		LATER(4, 3, 1)
		LATER(4, 3, 2)
		LATER(0, 4, 1)
		LATER(0, 4, 2)
		LATER(0, 4, 3)
		LATER(1, 4, 0)
		LATER(1, 4, 2)
		LATER(1, 4, 3)
		LATER(2, 4, 0)
		LATER(2, 4, 1)
		LATER(2, 4, 3)
		LATER(3, 4, 0)
		LATER(3, 4, 1)
		LATER(3, 4, 2)
#endif
		:: !busy -> event = CHECK
		fi;
		d_step {
			handle()
		}
	}
	od
}
