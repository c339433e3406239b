// SPDX-License-Identifier: GPL-2.0
/*
 * Groups with a secret: who has proved on a link that it knows it.
 *
 * A program's node proves it to the node that it asks, for each program, before
 * it is told anything but the number of the group and of its view; that node
 * proves it in its answer. All other nodes of a view prove it to each other on
 * each link that they come to use: before that none tells the other where it may
 * write, and none believes what the other says of the group.
 *
 * Everything here runs under sp_ctl.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "group.h"
#include "key.h"

#define SP_CHALLENGES	SP_MAX_MEMBERS	/* of one link at a time */

/* A program of the peer was asked for a proof. */
struct sp_challenge {
	struct list_head list;
	u64 gid;
	u64 cookie;
	u64 view;
	u8 nonce[SP_NONCE_LEN];
};

/* What is known of the peer of a link as to one group. */
struct sp_trusted {
	struct list_head list;
	u64 gid;
	struct sp_trust trust;
};

static struct sp_trusted *sp_trust_find(const struct sp_link *link, u64 gid)
{
	struct sp_trusted *t;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(t, &link->trusts, list)
		if (t->gid == gid)
			return t;
	return NULL;
}

/* As many as this node has groups with a secret. */
static struct sp_trusted *sp_trust_make(struct sp_group *g, struct sp_link *link)
{
	struct sp_trusted *t = sp_trust_find(link, g->gid);
	u8 nonce[SP_NONCE_LEN];

	if (!t) {
		t = kzalloc(sizeof(*t), GFP_KERNEL);
		if (!t)
			return NULL;
		t->gid = g->gid;
		list_add(&t->list, &link->trusts);
	}
	if (!t->trust.drawn) {
		get_random_bytes(nonce, sizeof(nonce));
		sp_trust_draw(&t->trust, g->view.id, nonce);
	}
	return t;
}

static void sp_trust_name(const struct sp_group *g, const struct sp_link *link,
			  struct sp_trust_id *id)
{
	id->name = g->name;
	id->gid = g->gid;
	id->self = g->node->addr;
	id->peer = link->peer;
}

/**
 * sp_trusts() - is a peer to be heard, and to be told, as to a group
 * @g: the group
 * @link: the link to it
 *
 * Context: sp_ctl is held.
 *
 * Return: true when it has proved that it knows the group's secret, or when
 * there is none.
 */
bool sp_trusts(const struct sp_group *g, const struct sp_link *link)
{
	const struct sp_trusted *t;

	if (!g->key)
		return true;
	t = sp_trust_find(link, g->gid);
	return t && t->trust.proved;
}

static void sp_trust_tell(struct sp_group *g, struct sp_link *link,
			  struct sp_trusted *t, bool out)
{
	struct sp_msg_prove msg = { .gid = g->gid };
	struct sp_trust_id id;
	int ret;

	sp_trust_name(g, link, &id);
	ret = sp_trust_say(&t->trust, &id, out, &msg.prove, &sp_key_ops, g->key);
	if (!ret)
		ret = sp_link_say(link, &msg.hdr, SP_MSG_PROVE, sizeof(msg));
	if (ret)
		sp_link_set_state(link, SP_LINK_DOWN, ret);
}

/**
 * sp_trust_begin() - ask a peer to prove that it knows a group's secret
 * @g: the group; it has one
 * @link: the link to it, up, on which it has not yet
 *
 * sp_peer_trusted() is called when it has. Context: sp_ctl is held, may sleep.
 */
void sp_trust_begin(struct sp_group *g, struct sp_link *link)
{
	struct sp_trusted *t = sp_trust_make(g, link);

	if (t)
		sp_trust_tell(g, link, t, false);
	else
		sp_link_set_state(link, SP_LINK_DOWN, -ENOMEM);
}

static void sp_trust_failed(const struct sp_group *g, const struct sp_link *link)
{
	pr_warn_ratelimited("spindle: %s: group %s: %s does not know its key\n",
			    g->node->name, g->name, link->name);
}

/**
 * sp_trust_heard() - a peer says something of what it can prove
 * @link: from the peer of this link
 * @msg: what it says
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or the errno to take the link down with.
 */
int sp_trust_heard(struct sp_link *link, const struct sp_msg_prove *msg)
{
	struct sp_group *g = sp_group_find_gid(link->node, msg->gid);
	struct sp_trust_id id;
	struct sp_trusted *t;
	bool out;
	int what;

	/* It is asked when we are there. */
	if (!g || !g->key || g->ending)
		return 0;
	t = sp_trust_make(g, link);
	if (!t)
		return -ENOMEM;
	sp_trust_name(g, link, &id);
	what = sp_trust_hear(&t->trust, &id, &msg->prove, &sp_key_ops, g->key);
	if (what == -EKEYREJECTED) {
		/* The link may be good for other groups. */
		sp_trust_failed(g, link);
		return 0;
	}
	if (what < 0)
		return what;
	if (what & SP_TRUST_OUT) {
		sp_peer_is_out(g, link);
		return 0;
	}
	/* It was put out, and does not know. */
	out = g->ready && msg->prove.view && msg->prove.view <= g->view.id &&
	      sp_view_find_node(&g->view, &link->peer) < 0;
	if (what & SP_TRUST_SAY)
		sp_trust_tell(g, link, t, out);
	if ((what & SP_TRUST_PROVED) && link->state == SP_LINK_UP)
		sp_peer_trusted(g, link);
	return 0;
}

/* What a join and its answer are hashed with. */
static void sp_trust_join_proof(const struct sp_link *link,
				enum sp_proof_role role, bool own,
				const char *name, u64 gid, u64 cookie,
				struct sp_proof *proof)
{
	sp_proof_init(proof, role, name, gid);
	proof->cookie = cookie;
	proof->from = own ? link->node->addr : link->peer;
	proof->to = own ? link->peer : link->node->addr;
}

static int sp_trust_join_mac(const struct sp_key *key,
			     const struct sp_proof *proof,
			     const struct sp_msg_join *msg, u8 *mac)
{
	return sp_key_mac(key, proof, sizeof(*proof), &msg->cookie,
			  offsetof(struct sp_msg_join, mac) -
			  offsetof(struct sp_msg_join, cookie), mac);
}

static int sp_trust_answer_mac(const struct sp_key *key,
			       const struct sp_proof *proof,
			       const struct sp_msg_answer *msg, u8 *mac)
{
	return sp_key_mac(key, proof, sizeof(*proof), &msg->cookie,
			  offsetof(struct sp_msg_answer, mac) -
			  offsetof(struct sp_msg_answer, cookie), mac);
}

static void sp_challenge_free(struct sp_link *link, struct sp_challenge *c)
{
	list_del(&c->list);
	link->nchallenges--;
	kfree_sensitive(c);
}

static struct sp_challenge *sp_challenge_find(struct sp_link *link, u64 gid,
					      u64 cookie)
{
	struct sp_challenge *c;

	list_for_each_entry(c, &link->challenges, list)
		if (c->gid == gid && c->cookie == cookie)
			return c;
	return NULL;
}

/* Ask a program's node for a proof: all that is kept of it, and not for long. */
static int sp_trust_challenge(struct sp_group *g, struct sp_link *link,
			      u64 cookie)
{
	struct sp_msg_challenge msg = { .gid = g->gid, .cookie = cookie };
	struct sp_challenge *c;

	c = sp_challenge_find(link, g->gid, cookie);
	if (!c && link->nchallenges >= SP_CHALLENGES)
		c = list_first_entry(&link->challenges, struct sp_challenge,
				     list);
	if (c)
		sp_challenge_free(link, c);
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	c->gid = g->gid;
	c->cookie = cookie;
	c->view = g->view.id;
	get_random_bytes(c->nonce, sizeof(c->nonce));
	list_add_tail(&c->list, &link->challenges);
	link->nchallenges++;
	msg.view = c->view;
	memcpy(msg.nonce, c->nonce, sizeof(msg.nonce));
	return sp_link_say(link, &msg.hdr, SP_MSG_CHALLENGE, sizeof(msg));
}

/**
 * sp_trust_join() - may a program of another node be taken in
 * @g: the group that it wants to join
 * @link: the link to its node
 * @msg: what that says
 * @proof: for the answer, if it has proved it
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0; -EINPROGRESS when it was asked for a proof; -ENOKEY when it brings
 * none; -EKEYREJECTED when the proof does not hold, or the group has no secret;
 * -ENOMEM.
 */
int sp_trust_join(struct sp_group *g, struct sp_link *link,
		  const struct sp_msg_join *msg, struct sp_proof *proof)
{
	struct sp_challenge *c;
	struct sp_trusted *t;
	u8 mac[SP_MAC_LEN];
	int ret;

	if (!g->key)
		return msg->keyed ? -EKEYREJECTED : 0;
	if (msg->keyed == SP_JOIN_PLAIN)
		return -ENOKEY;
	c = sp_challenge_find(link, g->gid, msg->cookie);
	/* What was asked in another view is asked anew. */
	if (msg->keyed != SP_JOIN_PROOF || (c && c->view != g->view.id))
		return sp_trust_challenge(g, link, msg->cookie) ?: -EINPROGRESS;
	if (!c)
		goto failed;
	sp_trust_join_proof(link, SP_PROOF_JOIN, false, g->name, g->gid,
			    msg->cookie, proof);
	proof->view_to = c->view;
	memcpy(proof->nonce_from, msg->nonce, sizeof(proof->nonce_from));
	memcpy(proof->nonce_to, c->nonce, sizeof(proof->nonce_to));
	/* One try for each. */
	sp_challenge_free(link, c);
	ret = sp_trust_join_mac(g->key, proof, msg, mac);
	if (ret)
		return ret;
	if (sp_key_differ(mac, msg->mac))
		goto failed;
	t = sp_trust_make(g, link);
	if (!t)
		return -ENOMEM;
	t->trust.proved = true;
	sp_proof_answer(proof, proof);
	return 0;

failed:
	sp_trust_failed(g, link);
	return -EKEYREJECTED;
}

/**
 * sp_trust_answer() - prove in an answer that this node knows the secret, too
 * @g: the group; it has one
 * @proof: from sp_trust_join()
 * @msg: the answer, but for its proof
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_trust_answer(const struct sp_group *g, const struct sp_proof *proof,
		    struct sp_msg_answer *msg)
{
	msg->keyed = 1;
	return sp_trust_answer_mac(g->key, proof, msg, msg->mac);
}

/**
 * sp_trust_prove() - prove that a program of this node knows a group's secret
 * @j: its join; what was asked is kept there
 * @msg: what was asked
 * @join: what is to be said once more: but for the proof
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_trust_prove(struct sp_join *j, const struct sp_msg_challenge *msg,
		   struct sp_msg_join *join)
{
	struct sp_proof *proof = &j->proof;

	sp_trust_join_proof(j->user.link, SP_PROOF_JOIN, true, j->name, msg->gid,
			    join->cookie, proof);
	proof->view_to = msg->view;
	get_random_bytes(proof->nonce_from, sizeof(proof->nonce_from));
	memcpy(proof->nonce_to, msg->nonce, sizeof(proof->nonce_to));
	join->keyed = SP_JOIN_PROOF;
	memcpy(join->nonce, proof->nonce_from, sizeof(join->nonce));
	return sp_trust_join_mac(j->local->key, proof, join, join->mac);
}

/**
 * sp_trust_answered() - is an answer from who knows the secret
 * @j: the join; it has one
 * @msg: the answer: not a refusal
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0; -EKEYREJECTED when it is not; another negative errno.
 */
int sp_trust_answered(const struct sp_join *j, const struct sp_msg_answer *msg)
{
	struct sp_proof proof;
	u8 mac[SP_MAC_LEN];
	int ret;

	/* None was asked of us: it has no secret, or wants none to be known. */
	if (!j->proof.role || !msg->keyed)
		return -EKEYREJECTED;
	/* Of a refusal to say where else to ask the number is not told. */
	if (msg->gid && msg->gid != j->proof.gid)
		return -EKEYREJECTED;
	sp_proof_answer(&proof, &j->proof);
	ret = sp_trust_answer_mac(j->local->key, &proof, msg, mac);
	if (!ret && sp_key_differ(mac, msg->mac))
		ret = -EKEYREJECTED;
	return ret;
}

/**
 * sp_trust_set() - the peer of a link has proved it in its answer
 * @g: the group
 * @link: the link
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int sp_trust_set(struct sp_group *g, struct sp_link *link)
{
	struct sp_trusted *t;

	if (!g->key)
		return 0;
	t = sp_trust_make(g, link);
	if (!t)
		return -ENOMEM;
	t->trust.proved = true;
	return 0;
}

/**
 * sp_trust_forget() - a group is gone: nobody is trusted in it any more
 * @g: the group
 *
 * Context: sp_ctl is held.
 */
void sp_trust_forget(struct sp_group *g)
{
	struct sp_challenge *c, *cnext;
	struct sp_trusted *t;
	struct sp_link *link;

	lockdep_assert_held(&sp_ctl);
	if (!g->key)
		return;
	list_for_each_entry(link, &g->node->links, on_node) {
		t = sp_trust_find(link, g->gid);
		if (t) {
			list_del(&t->list);
			kfree_sensitive(t);
		}
		list_for_each_entry_safe(c, cnext, &link->challenges, list)
			if (c->gid == g->gid)
				sp_challenge_free(link, c);
	}
}

/**
 * sp_trust_gone() - a link is gone, with all that was proved on it
 * @link: the link
 *
 * Context: nobody else has it any more.
 */
void sp_trust_gone(struct sp_link *link)
{
	struct sp_challenge *c, *cnext;
	struct sp_trusted *t, *tnext;

	list_for_each_entry_safe(t, tnext, &link->trusts, list) {
		list_del(&t->list);
		kfree_sensitive(t);
	}
	list_for_each_entry_safe(c, cnext, &link->challenges, list)
		sp_challenge_free(link, c);
}
