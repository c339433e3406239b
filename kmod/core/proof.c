// SPDX-License-Identifier: GPL-2.0
/* What proofs of a group's secret are made of, and who has proved it. */
#include "proof.h"

/**
 * sp_proof_init() - begin a proof
 * @proof: the result; the rest of it is zero
 * @role: what it is for
 * @name: of the group
 * @gid: its number
 */
void sp_proof_init(struct sp_proof *proof, enum sp_proof_role role,
		   const char *name, u64 gid)
{
	static const char label[] = "spindle proof 1";

	memset(proof, 0, sizeof(*proof));
	memcpy(proof->label, label, sizeof(label));
	proof->role = role;
	proof->gid = gid;
	strncpy(proof->name, name, sizeof(proof->name) - 1);
}

/**
 * sp_proof_answer() - what proves that the answer to a join is from a member
 * @proof: the result; may be @join
 * @join: what the join was to prove
 */
void sp_proof_answer(struct sp_proof *proof, const struct sp_proof *join)
{
	const struct sp_proof was = *join;

	*proof = was;
	proof->role = SP_PROOF_ANSWER;
	proof->view_from = was.view_to;
	proof->view_to = was.view_from;
	proof->from = was.to;
	proof->to = was.from;
	memcpy(proof->nonce_from, was.nonce_to, sizeof(proof->nonce_from));
	memcpy(proof->nonce_to, was.nonce_from, sizeof(proof->nonce_to));
}

/**
 * sp_trust_draw() - give this node's side its nonce
 * @t: the link's, for this group; nothing was said of it yet
 * @view: of this node, 0: it is in none
 * @nonce: never used before, unknown to all
 */
void sp_trust_draw(struct sp_trust *t, u64 view, const u8 *nonce)
{
	t->drawn = true;
	t->view = view;
	memcpy(t->mine, nonce, sizeof(t->mine));
}

/* The proof of one side: of this node's (@own), or as the peer's must be. */
static void sp_trust_proof(const struct sp_trust *t,
			   const struct sp_trust_id *id, bool own,
			   enum sp_proof_role role, struct sp_proof *proof)
{
	sp_proof_init(proof, role, id->name, id->gid);
	proof->view_from = own ? t->view : t->their_view;
	proof->view_to = own ? t->their_view : t->view;
	proof->from = own ? id->self : id->peer;
	proof->to = own ? id->peer : id->self;
	memcpy(proof->nonce_from, own ? t->mine : t->theirs, SP_NONCE_LEN);
	memcpy(proof->nonce_to, own ? t->theirs : t->mine, SP_NONCE_LEN);
}

/* Take the peer's nonce: one that is new is to be answered. */
static void sp_trust_take(struct sp_trust *t, const struct sp_prove *said)
{
	if (t->heard && t->their_view == said->view &&
	    !memcmp(t->theirs, said->nonce, sizeof(t->theirs)))
		return;
	t->heard = true;
	t->said = false;
	t->their_view = said->view;
	memcpy(t->theirs, said->nonce, sizeof(t->theirs));
}

/**
 * sp_trust_hear() - the peer has said something
 * @t: the link's, for this group; drawn
 * @id: who and what
 * @said: what
 * @ops: hashes
 * @secret: for them
 *
 * A proof is checked as of the nonce and the view that came with it, and of this
 * node's own. One that does not hold changes nothing.
 *
 * Return: SP_TRUST_* that follow; -EKEYREJECTED when the proof does not hold;
 * another negative errno.
 */
int sp_trust_hear(struct sp_trust *t, const struct sp_trust_id *id,
		  const struct sp_prove *said, const struct sp_proof_ops *ops,
		  void *secret)
{
	struct sp_trust as = *t;
	struct sp_proof proof;
	u8 mac[SP_MAC_LEN];
	bool out = said->flags & SP_PROVE_OUT;
	int what = 0;
	int ret;

	sp_trust_take(&as, said);
	if (!(said->flags & SP_PROVE_MAC)) {
		/* It may have lost the answer of before. */
		*t = as;
		return SP_TRUST_SAY;
	}
	sp_trust_proof(&as, id, false, out ? SP_PROOF_OUT : SP_PROOF_PEER,
		       &proof);
	ret = ops->mac(secret, &proof, mac);
	if (ret)
		return ret;
	if (ops->differ(mac, said->mac))
		return -EKEYREJECTED;
	if (out)
		return SP_TRUST_OUT;
	if (!as.said)
		what |= SP_TRUST_SAY;
	if (!as.proved)
		what |= SP_TRUST_PROVED;
	as.proved = true;
	*t = as;
	return what;
}

/**
 * sp_trust_say() - what this node says now
 * @t: the link's, for this group; drawn
 * @id: who and what
 * @out: the peer is in the view no more
 * @say: the result: with a proof, if the peer's nonce is known
 * @ops: hashes
 * @secret: for them
 *
 * Return: 0 or a negative errno.
 */
int sp_trust_say(struct sp_trust *t, const struct sp_trust_id *id, bool out,
		 struct sp_prove *say, const struct sp_proof_ops *ops,
		 void *secret)
{
	struct sp_proof proof;
	int ret;

	memset(say, 0, sizeof(*say));
	say->view = t->view;
	memcpy(say->nonce, t->mine, sizeof(say->nonce));
	if (!t->heard)
		return 0;
	say->flags = SP_PROVE_MAC | (out ? SP_PROVE_OUT : 0);
	sp_trust_proof(t, id, true, out ? SP_PROOF_OUT : SP_PROOF_PEER, &proof);
	ret = ops->mac(secret, &proof, say->mac);
	if (!ret && !out)
		t->said = true;
	return ret;
}
