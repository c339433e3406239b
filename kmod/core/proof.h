/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Proofs that a node knows the secret of a group: what is hashed, and how two
 * nodes prove it to each other on a link. The hash itself is the caller's.
 *
 * On each link between two nodes of a group, and the same from either end:
 *
 *   A draws a nonce                      A -> B   nonce of A
 *   B draws one, and answers it          A <- B   nonce of B, proof of B
 *   A checks that, and answers           A -> B   nonce of A, proof of A
 *   B checks that
 *
 * When both begin at once each answers the other's nonce. What comes before the
 * other side knows the group is lost: it begins by itself when it does.
 */
#ifndef SPINDLE_CORE_PROOF_H
#define SPINDLE_CORE_PROOF_H

#include "env.h"
#include "sst.h"
#include "view.h"

#define SP_NONCE_LEN	32
#define SP_MAC_LEN	32
#define SP_PROOF_NAME	64

/* Who proves what to whom; a proof for one is none for another. */
enum sp_proof_role {
	SP_PROOF_JOIN = 1,	/* a program's node, to the one that it asks */
	SP_PROOF_ANSWER,	/* the answer */
	SP_PROOF_PEER,		/* a node, to another */
	SP_PROOF_OUT,		/* likewise: you are in the view no more */
	SP_PROOF_SAME,		/* nothing: see sp_key_match() */
};

/**
 * struct sp_proof - what is hashed: all that a proof is bound to
 * @label: of the protocol
 * @role: enum sp_proof_role
 * @pad: zero
 * @gid: number of the group
 * @cookie: the member that joins, or 0
 * @view_from: number of the view that the prover was in, 0: none
 * @view_to: likewise, of the one it proves it to
 * @from: address of the prover
 * @to: of the other one
 * @nonce_from: drawn by the prover
 * @nonce_to: by the other one
 * @name: of the group, zero padded
 */
struct sp_proof {
	char label[16];
	u32 role;
	u32 pad;
	u64 gid;
	u64 cookie;
	u64 view_from;
	u64 view_to;
	struct sp_addr from;
	struct sp_addr to;
	u8 nonce_from[SP_NONCE_LEN];
	u8 nonce_to[SP_NONCE_LEN];
	char name[SP_PROOF_NAME];
};

#define SP_PROVE_MAC	(1U << 0)	/* with a proof; else only a nonce */
#define SP_PROVE_OUT	(1U << 1)	/* a proof of role SP_PROOF_OUT */

/**
 * struct sp_prove - what a node says of itself on a link
 * @view: number of its view when it drew @nonce, 0: it was in none
 * @flags: SP_PROVE_*
 * @pad: zero
 * @nonce: drawn by it for this group and link
 * @mac: its proof, or zeroes
 */
struct sp_prove {
	u64 view;
	u32 flags;
	u32 pad;
	u8 nonce[SP_NONCE_LEN];
	u8 mac[SP_MAC_LEN];
};

/**
 * struct sp_proof_ops - what the core does not do itself
 * @mac: hash a proof with the secret: 0 or a negative errno
 * @differ: are two hashes not the same; takes as long wherever they differ
 */
struct sp_proof_ops {
	int (*mac)(void *secret, const struct sp_proof *proof, u8 *mac);
	bool (*differ)(const u8 *a, const u8 *b);
};

/**
 * struct sp_trust_id - who speaks to whom, of which group
 * @name: of the group
 * @gid: its number
 * @self: this node
 * @peer: the other one
 */
struct sp_trust_id {
	const char *name;
	u64 gid;
	struct sp_addr self;
	struct sp_addr peer;
};

/**
 * struct sp_trust - what two nodes know of each other on a link, by group
 * @drawn: @mine is there
 * @heard: @theirs is there
 * @said: @theirs was answered
 * @proved: the peer has proved that it knows the secret. Never false again
 * @view: of this node when it drew @mine
 * @their_view: likewise, as the peer says
 * @mine: nonce of this node
 * @theirs: nonce of the peer
 */
struct sp_trust {
	bool drawn;
	bool heard;
	bool said;
	bool proved;
	u64 view;
	u64 their_view;
	u8 mine[SP_NONCE_LEN];
	u8 theirs[SP_NONCE_LEN];
};

/* What follows from what was heard. */
#define SP_TRUST_SAY	(1 << 0)	/* the answer is to be said */
#define SP_TRUST_PROVED	(1 << 1)	/* the peer has proved it, just now */
#define SP_TRUST_OUT	(1 << 2)	/* it has proved that this node is out */

void sp_proof_init(struct sp_proof *proof, enum sp_proof_role role,
		   const char *name, u64 gid);
void sp_proof_answer(struct sp_proof *proof, const struct sp_proof *join);
void sp_trust_draw(struct sp_trust *t, u64 view, const u8 *nonce);
int sp_trust_hear(struct sp_trust *t, const struct sp_trust_id *id,
		  const struct sp_prove *said, const struct sp_proof_ops *ops,
		  void *secret);
int sp_trust_say(struct sp_trust *t, const struct sp_trust_id *id, bool out,
		 struct sp_prove *say, const struct sp_proof_ops *ops,
		 void *secret);

#endif /* SPINDLE_CORE_PROOF_H */
