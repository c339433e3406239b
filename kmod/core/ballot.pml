/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The view change as a model for spin; scripts/model runs it.
 *
 * NODES nodes with one member each. The reports of a node are appended to its log,
 * and each other node reads that log in order and at its own pace, with or without
 * what lies between: links are FIFO, the newest report counts, and any view of the
 * others may be a stale one. What a node does on an event (a report arrives,
 * somebody is suspected, a member requests to leave) is one step. A node crashes
 * between any two steps: its last report may then reach one node and not another.
 *
 * A node is suspected for good reason when it has crashed or stopped. Otherwise the
 * suspicion costs a failure, and the link between the two is cut: what is on its way
 * may still arrive, but nothing relies on that. The other end of the link may find
 * out by itself at any time; with EVIDENCE it does so in the end. Crashes and cut
 * links together are at most FAILURES.
 *
 * Of each lane there is at most one round, so counts are masks of lanes and their
 * minimum is their intersection. Delivery in order needs all nodes to have received
 * a turn; the model takes it that all that may be delivered has been.
 *
 *   rule of the model	function of the code
 *   -----------------	--------------------
 *   rules()		sp_ballot_step()
 *   event DELIVER	sp_ballot_receive()
 *   doomed()		sp_suspect_doomed()
 *   answer()		sp_suspect_adopt_one(), its first half
 *   adopt()		sp_suspect_adopt_one(), its second half
 *   accusation()	sp_suspect_accuse()
 *   learn()		sp_ballot_learn()
 *   QUORUM()		sp_view_quorum()
 *   moved()		sp_ballot_moved()
 *   wedge()		sp_core_wedge(), sp_ballot_wedged()
 *   lead()		sp_ballot_lead(), sp_ballot_propose()
 *   accept()		sp_ballot_accept()
 *   all()		sp_ballot_all()
 *   install()		sp_view_next(), sp_order_trim()
 *
 * What is asserted:
 *   agreement	nodes that decide decide the same members and the same trim
 *   quorum	a majority has accepted what is decided, under one ballot
 *   promise	a majority suspects all ranks below the leader that proposes
 *   progress	a leader's own proposal changes the members
 *   atomicity	what was delivered in order lies within the decided trim, and a node
 *		that stays has received all of the trim
 *   liveness	where nothing more can happen every node has decided or stopped; a
 *		majority has decided if the nodes that are up, but for the higher rank of
 *		each cut link, are one; after one failure all of these nodes have decided
 *
 * A report of a suspected node is not read (fencing). The view after this one,
 * joins, links that come back and nodes that report nonsense are not modelled.
 *
 * What the model showed of the rules:
 *   - A node that has decided must report that (DECIDED), and one such report is
 *     enough. Without it a node that has installed the next view accepts nothing
 *     more in this one, and a new leader that proposes the same again waits for it
 *     for ever, with three nodes and one crash (BUG_NO_DECIDED).
 *   - A node that leaves stays until the others have decided (BUG_LEAVE_EARLY).
 *   - One cut link stops all of four nodes if a node adopts what a higher rank
 *     suspects of a lower one (BUG_ADOPT_ALL). The accused node is asked instead: it
 *     hears of the accusation from any third node.
 *   - A leader that does not wait for the answer proposes a view with both ends of
 *     the cut link in it, again and again (BUG_NO_HOLD). One that waits while nobody
 *     passes the accusation on waits until the accused node finds out by itself
 *     (BUG_NO_RELAY, which EVIDENCE would hide).
 *   - A node that is on its way out suspects in return whoever has adopted that. If a
 *     third node, which does not know yet, adopts this, one cut link costs healthy
 *     nodes, and all of a group of five (BUG_RETURNED). So a report says of whom a
 *     lower rank suspects (OUTRANKED), others adopt just that, and a node that is
 *     outranked itself outranks nobody for suspecting it.
 *   - A third ballot needs five nodes: with three its leader has no majority. So does
 *     a violation by one who reads on what a suspected node reports: the suspicion and
 *     what is accepted under it are in one report, and all who hear that node see both.
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
#define CUTS	1	/* whether links are cut */
#endif
#ifndef EVIDENCE
#define EVIDENCE 1	/* whether both ends of a cut link find out by themselves */
#endif

#if NODES > 3
#define LOG	12
#else
#define LOG	8
#endif
#define BIT(n)	(1 << (n))
#define ALL	(BIT(NODES) - 1)
#define BELOW(n) (BIT(n) - 1)

/* How many bits a mask of lanes has, and an accusation. */
#if NODES > 4
#define LB	0	/* a word has no room for more: LANES is 0 */
#define AB	4
#else
#define LB	3
#define AB	3
#endif

#define FIELD(x, from, bits) (((x) >> (from)) & (BIT(bits) - 1))

/* A report, in one word. Its ballot and proposal are what the node has accepted. */
#define WEDGED		BIT(0)
#define LEAVES		BIT(1)
#define DECIDED		BIT(2)
#define SUSPECTED(x)	FIELD(x, 3, NODES)
#define OUTRANKED(x)	FIELD(x, 3 + NODES, NODES)	/* of these: a lower rank does */
#define ACCUSATION_AT	(3 + 2 * NODES)
#define ACCUSATION(x)	FIELD(x, ACCUSATION_AT, AB)
#define COUNTS_AT	(ACCUSATION_AT + AB)
#define COUNTS(x)	FIELD(x, COUNTS_AT, LB)
#define BALLOT_AT	(COUNTS_AT + LB)
#define BALLOT(x)	FIELD(x, BALLOT_AT, 3)
#define PROPOSAL_AT	(BALLOT_AT + 3)
#define PROPOSAL(x)	((x) >> PROPOSAL_AT)
#define ACCEPTED(x)	((x) & ~(BIT(BALLOT_AT) - 1))
#define ACCEPT(x)	mine = (mine & (BIT(BALLOT_AT) - 1)) | (x)
#define SUSPECTS(x, i)	(((x) >> (3 + (i))) & 1)
#define SUSPICION(i)	(BIT(i) << 3)
#define OUTRANK(i)	(((i) > me -> BIT(i) : 0) << (3 + NODES))

/* An accusation: node h suspects q, of lower rank. The order is that of h, then q. */
#define ACCUSES(h, q)	((h) * ((h) - 1) / 2 + (q) + 1)

/* A proposal: nodes that are lost, nodes that leave, the trim. */
#define LOST(p)		((p) & ALL)
#define LEFT(p)		(((p) >> NODES) & ALL)
#define TRIM(p)		((p) >> (2 * NODES))
#define ALL_LANES	(BIT(LB) - 1)

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

int log[NODES * LOG];		/* reports, oldest first; the last is the newest */
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

mtype = { CHECK, BYE, DELIVER, LEAVE, CRASH, SUSPECT, LAND };

#define OWN(i)		log[(i) * LOG + said[i] - 1]
#define SEEN(j, i)	log[(i) * LOG + at[(j) * NODES + (i)]]
#define IS_CUT(j, i)	((cut[j] >> (i)) & 1)
#define READS(j, i)	((state[j] == RUNS || state[j] == WAITS) && !SUSPECTS(OWN(j), i))
#define DEAD(i)		(state[i] == CRASHED || state[i] == STOPPED || state[i] == GONE)
#define ARRIVES(j, i, n) (READS(j, i) && at[(j) * NODES + (i)] + n < said[i])
/* evidence of its own, and suspicion without any */
#define MISSES(j, i)	(state[j] == RUNS && !SUSPECTS(OWN(j), i) && (DEAD(i) || IS_CUT(j, i)))
#define DOUBTS(j, i)	(state[j] == RUNS && !SUSPECTS(OWN(j), i) && failures && CUTS)
#define LANDS(j, l)	(state[j] == RUNS && WEDGE_HOLDS(j) && !((got[j] >> (l)) & 1) && \
			 ((LANES >> (l)) & 1) && ((j) == (l) || ((got[l] >> (l)) & 1)))
#ifdef BUG_RECEIVES_ON
#define WEDGE_HOLDS(j)	1
#else
#define WEDGE_HOLDS(j)	(!(OWN(j) & WEDGED))
#endif

/* scratch, of no meaning between two steps */
hidden byte a, b, peer, from, alive, leader, least;
hidden byte ok, any;
hidden int mine, his, best, was;

/* what is known here of a node, itself included */
#define REPORT(i) (i == me -> mine : SEEN(me, i))

/* A node that so many suspect that the rest is no quorum can be in no view any more. */
inline doomed()
{
	for (a : 0 .. NODES - 1) {
		if
		:: a != me && !SUSPECTS(mine, a) ->
			least = 0;
			for (peer : 0 .. NODES - 1) {
				if
				:: peer != me && !SUSPECTS(mine, peer) && SUSPECTS(SEEN(me, peer), a) ->
					least = least | BIT(peer)
				:: else
				fi
			}
			if
			:: !QUORUM(ALL & ~least) -> mine = mine | SUSPICION(a) | OUTRANK(a)
			:: else
			fi
		:: else
		fi
	}
}

/* An accuser of this node does not hear it, so this node suspects it. */
inline answer()
{
	for (peer : 0 .. NODES - 1) {
		if
		:: peer != me && !SUSPECTS(mine, peer) ->
			his = SEEN(me, peer);
			for (a : me + 1 .. NODES - 1) {
				if
				:: ACCUSATION(his) == ACCUSES(a, me) && !SUSPECTS(mine, a) ->
					mine = mine | SUSPICION(a) | OUTRANK(a)
				:: else
				fi
			}
		:: else
		fi
	}
}

/*
 * A node that suspects this one does not hear it, so this node suspects it in return.
 * It outranks it, too, unless the other has that from a node of lower rank than this.
 * Of what others suspect, a node adopts who is outranked.
 */
inline adopt()
{
	for (peer : 0 .. NODES - 1) {
		if
		:: peer != me && !SUSPECTS(mine, peer) ->
			his = SEEN(me, peer);
			if
			:: SUSPECTS(his, me) ->
				mine = mine | SUSPICION(peer);
				if
#ifndef BUG_RETURNED
				:: (OUTRANKED(his) >> me) & 1
#endif
				:: else -> mine = mine | OUTRANK(peer)
				fi
			:: else ->
#ifdef BUG_ADOPT_ALL
				mine = mine | (SUSPECTED(his) << 3)
#else
				mine = mine | (OUTRANKED(his) << 3) | (OUTRANKED(his) << (3 + NODES))
#endif
			fi
		:: else
		fi
	}
	alive = ALL & ~SUSPECTED(mine);
	leader = 0;
	do
	:: !((alive >> leader) & 1) -> leader++
	:: else -> break
	od
}

/* The lowest pair of which one suspects the other, and this node neither. */
inline accusation()
{
	least = 0;
	for (peer : 1 .. NODES - 1) {
		for (a : 0 .. peer - 1) {
			if
			:: !least && peer != me && (alive >> peer) & (alive >> a) & 1 &&
			   SUSPECTS(SEEN(me, peer), a) ->
				least = ACCUSES(peer, a)
			:: else
			fi
		}
	}
	mine = (mine & ~((BIT(AB) - 1) << ACCUSATION_AT)) | (least << ACCUSATION_AT)
}

/* A node that is heard has decided. */
inline learn()
{
	for (peer : 0 .. NODES - 1) {
		his = REPORT(peer);
		if
		:: ((alive >> peer) & 1) && (his & DECIDED) && !(mine & DECIDED) ->
			ACCEPT(ACCEPTED(his) | DECIDED)
		:: else
		fi
	}
}

inline moved()
{
	any = (SUSPECTED(mine) != 0);
	for (peer : 0 .. NODES - 1) {
		his = ((alive >> peer) & 1 -> REPORT(peer) : 0);
		any = any || (his & WEDGED) || BALLOT(his) || (leader == me && (his & LEAVES))
	}
}

inline wedge()
{
	if
	:: any && !(mine & WEDGED) -> mine = mine | WEDGED | (got[me] << COUNTS_AT)
	:: else
	fi
}

/*
 * The leader waits until all nodes it hears have wedged and promised, and until no
 * accusation stands. Its proposal is what any of them has accepted under the highest
 * ballot, or its own.
 */
inline lead()
{
	ok = (leader == me && BALLOT(mine) != me + 1);
#ifndef BUG_NO_HOLD
	ok = ok && !ACCUSATION(mine);
#endif
	b = 0;
	best = SUSPECTED(mine) | (ALL_LANES << (2 * NODES));
	for (peer : 0 .. NODES - 1) {
		if
		:: (alive >> peer) & 1 ->
			his = REPORT(peer);
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
			best = best & ~((~COUNTS(his) & ALL_LANES) << (2 * NODES));
			best = best | ((his & LEAVES) -> BIT(NODES + peer) : 0)
		:: else
		fi
	}
	assert(!ok || b || LOST(best) || LEFT(best));	/* progress */
#ifdef BUG_RECOMPUTE_TRIM
	was = (was & (BIT(2 * NODES) - 1)) | (TRIM(best) << (2 * NODES));
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
		ACCEPT((me + 1) << BALLOT_AT | best << PROPOSAL_AT)
	:: else
	fi
}

inline accept()
{
	his = REPORT(leader);
	if
	:: BALLOT(his) == leader + 1 && BALLOT(his) > BALLOT(mine) -> ACCEPT(ACCEPTED(his))
	:: else
	fi;
	accepted[BALLOT(mine)] = accepted[BALLOT(mine)] | (BALLOT(mine) -> BIT(me) : 0)
}

/* All nodes that are heard have accepted the same. */
inline all()
{
	ok = (BALLOT(mine) != 0);
	a = 0;
	for (peer : 0 .. NODES - 1) {
		if
		:: (alive >> peer) & 1 && BALLOT(REPORT(peer)) == BALLOT(mine) -> a++
		:: (alive >> peer) & 1 && BALLOT(REPORT(peer)) != BALLOT(mine) -> ok = 0
		:: else
		fi
	}
#ifdef BUG_DECIDE_EARLY
	ok = (BALLOT(mine) != 0 && 2 * (a + 1) > NODES);
#else
	assert(!ok || QUORUM(accepted[BALLOT(mine)]));
#endif
	mine = mine | (ok -> DECIDED : 0)
}

/* A node that has decided stops, stays, or leaves and waits for the others. */
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
#ifndef BUG_NO_RELAY
	doomed();
	answer();
#endif
	adopt();
	accusation();
#ifndef BUG_NO_DECIDED
	learn();
#endif
	if
	:: mine & DECIDED
#ifndef BUG_MINORITY
	:: !(mine & DECIDED) && !QUORUM(alive) -> state[me] = STOPPED
#endif
	:: else ->
		moved();
		wedge();
		lead();
		accept();
		all()
	fi;
	if
	:: mine & DECIDED -> install()
	:: else
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
				least = (at[peer * NODES + from] < least ->
					 at[peer * NODES + from] : least)
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
		if
		:: least ->
			for (a : 0 .. LOG - 1) {
				log[from * LOG + a] = (a + least < said[from] ->
					log[from * LOG + (a + least) % LOG] : 0)
			}
		:: else
		fi;
		said[from] = said[from] - least
	}
}

inline look()
{
	busy = 0;
	may_go = 0;
	a = ALL_LANES;
	for (from : 0 .. NODES - 1) {
		a = a & got[from];
		ok = 1;
		for (peer : 0 .. NODES - 1) {
			if
			:: peer != from ->
				busy = busy || (ARRIVES(from, peer, 1) && !IS_CUT(from, peer)) ||
				       (MISSES(from, peer) && (EVIDENCE || DEAD(peer)));
				ok = ok && (SUSPECTS(OWN(from), peer) || DEAD(peer) ||
					    IS_CUT(from, peer) || (SEEN(from, peer) & DECIDED))
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

/*
 * Nothing will happen any more. A node that those that have decided suspect may need
 * evidence of its own to find out.
 */
inline check()
{
	a = 0;
	b = ALL;
	was = 0;
	any = crashed || was_cut;
	for (peer : 0 .. NODES - 1) {
		any = any || (OWN(peer) & LEAVES);
		b = b & (state[peer] == CRASHED -> ~BIT(peer) : ALL);
		if
		:: state[peer] == INSTALLED || state[peer] == GONE ->
			a = a | BIT(peer);
			was = was | SUSPECTED(OWN(peer))
		:: else
		fi
	}
	was = (EVIDENCE -> 0 : was);
	for (peer : 0 .. NODES - 1) {
		assert(!any || state[peer] != RUNS || (was >> peer) & 1)
	}
	/* of each cut link the higher rank goes */
	for (peer : 0 .. NODES - 1) {
		b = b & (cut[peer] & BELOW(peer) -> ~BIT(peer) : ALL)
	}
	assert(!any || !QUORUM(b) || QUORUM(a));
	assert(!any || FAILURES - failures > 1 || !QUORUM(b) || (b & ~a) == 0)
}

inline handle()
{
	mine = OWN(me);
	if
	:: event == DELIVER ->
		at[me * NODES + him] = at[me * NODES + him] + step
	:: event == SUSPECT ->
		mine = mine | SUSPICION(him) | OUTRANK(him);
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
	:: event == LAND -> got[me] = got[me] | BIT(him)
	:: event == BYE -> state[me] = GONE
	:: event == CHECK -> check()
	fi;
	if
	:: state[me] == RUNS && event != LAND && event != CHECK -> rules()
	:: else
	fi;
	printf("%e %d %d: suspects %d, accusation %d, wedged %d, accepted %d, state %d\n", event,
	       me, him, SUSPECTED(mine), ACCUSATION(mine), (mine & WEDGED) != 0, BALLOT(mine),
	       state[me]);
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
	:: LANDS(j, i) -> event = LAND; me = j; him = i

#define NODE(j) \
	:: !DEAD(j) && failures && ((CRASHERS >> j) & 1) -> event = CRASH; me = j \
	:: state[j] == RUNS && ((leavers >> j) & 1) -> event = LEAVE; me = j \
	:: LANDS(j, j) -> event = LAND; me = j; him = j \
	:: (may_go >> j) & 1 -> event = BYE; me = j

active proctype group()
{
	d_step {
#ifdef LATE
		/* all have wedged, and node 0 has proposed and died */
		for (peer : 0 .. NODES - 1) {
			log[peer * LOG] = WEDGED
		}
		log[0] = WEDGED | BIT(BALLOT_AT);
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
#endif
#if NODES > 3
		NODE(3)
		PAIR(3, 0)
		PAIR(0, 3)
		PAIR(3, 1)
		PAIR(1, 3)
		PAIR(3, 2)
		PAIR(2, 3)
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
#endif
		:: !busy -> event = CHECK
		fi;
		d_step {
			handle()
		}
	}
	od
}
