// SPDX-License-Identifier: GPL-2.0
#include <linux/err.h>

#include "../core/proof.h"
#include "../key.h"
#include "suites.h"

/* One end of a link: what it knows, and which secret it has. */
struct proof_end {
	struct sp_trust trust;
	struct sp_trust_id id;
	struct sp_key *key;
};

struct proof_pair {
	struct proof_end a;
	struct proof_end b;
};

static struct sp_key *proof_key(struct kunit *test, const char *secret)
{
	struct sp_key *key = sp_key_make((const u8 *)secret, strlen(secret));

	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	return key;
}

static void proof_end(struct kunit *test, struct proof_end *end, u8 self,
		      u8 peer, u64 view, u8 nonce)
{
	u8 drawn[SP_NONCE_LEN];

	memset(end, 0, sizeof(*end));
	end->id.name = "group";
	end->id.gid = 77;
	end->id.self.b[15] = self;
	end->id.peer.b[15] = peer;
	end->key = proof_key(test, "a secret of the group");
	memset(drawn, nonce, sizeof(drawn));
	sp_trust_draw(&end->trust, view, drawn);
}

static void proof_pair(struct kunit *test, struct proof_pair *p)
{
	proof_end(test, &p->a, 1, 2, 5, 0xaa);
	proof_end(test, &p->b, 2, 1, 6, 0xbb);
}

static void proof_done(struct proof_pair *p)
{
	sp_key_put(p->a.key);
	sp_key_put(p->b.key);
}

static struct sp_prove proof_say(struct kunit *test, struct proof_end *end)
{
	struct sp_prove say;

	KUNIT_EXPECT_EQ(test, sp_trust_say(&end->trust, &end->id, false, &say,
					   &sp_key_ops, end->key), 0);
	return say;
}

static int proof_hear(struct proof_end *end, const struct sp_prove *said)
{
	return sp_trust_hear(&end->trust, &end->id, said, &sp_key_ops, end->key);
}

/* RFC 4231, test cases 1 and 4: the others have shorter keys, or are alike. */
static void proof_vectors(struct kunit *test)
{
	static const u8 want1[SP_MAC_LEN] = {
		0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53,
		0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b,
		0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7,
		0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7,
	};
	static const u8 want4[SP_MAC_LEN] = {
		0x82, 0x55, 0x8a, 0x38, 0x9a, 0x44, 0x3c, 0x0e,
		0xa4, 0xcc, 0x81, 0x98, 0x99, 0xf2, 0x08, 0x3a,
		0x85, 0xf0, 0xfa, 0xa3, 0xe5, 0x78, 0xf8, 0x07,
		0x7a, 0x2e, 0x3f, 0xf4, 0x67, 0x29, 0x66, 0x5b,
	};
	u8 secret[25], data[50], mac[SP_MAC_LEN];
	struct sp_key *key;
	u32 i;

	memset(secret, 0x0b, 20);
	key = sp_key_make(secret, 20);
	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	KUNIT_EXPECT_EQ(test, sp_key_mac(key, "Hi There", 8, NULL, 0, mac), 0);
	KUNIT_EXPECT_FALSE(test, sp_key_differ(mac, want1));
	/* In two pieces the same. */
	KUNIT_EXPECT_EQ(test, sp_key_mac(key, "Hi ", 3, "There", 5, mac), 0);
	KUNIT_EXPECT_FALSE(test, sp_key_differ(mac, want1));
	mac[31] ^= 1;
	KUNIT_EXPECT_TRUE(test, sp_key_differ(mac, want1));
	sp_key_put(key);

	for (i = 0; i < sizeof(secret); i++)
		secret[i] = i + 1;
	memset(data, 0xcd, sizeof(data));
	key = sp_key_make(secret, sizeof(secret));
	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	KUNIT_EXPECT_EQ(test, sp_key_mac(key, data, sizeof(data), NULL, 0, mac),
			0);
	KUNIT_EXPECT_FALSE(test, sp_key_differ(mac, want4));
	sp_key_put(key);
}

static void proof_secrets(struct kunit *test)
{
	struct sp_key *a = proof_key(test, "a secret of the group");
	struct sp_key *same = proof_key(test, "a secret of the group");
	struct sp_key *other = proof_key(test, "a secret of the groud");
	static u8 bytes[SP_KEY_MAX + 1];

	KUNIT_EXPECT_EQ(test, sp_key_match(NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, sp_key_match(a, a), 0);
	KUNIT_EXPECT_EQ(test, sp_key_match(a, same), 0);
	KUNIT_EXPECT_EQ(test, sp_key_match(a, NULL), -ENOKEY);
	KUNIT_EXPECT_EQ(test, sp_key_match(a, other), -EKEYREJECTED);
	KUNIT_EXPECT_EQ(test, sp_key_match(NULL, a), -EKEYREJECTED);
	sp_key_put(a);
	sp_key_put(same);
	sp_key_put(other);
	KUNIT_EXPECT_EQ(test, PTR_ERR(sp_key_make(bytes, SP_KEY_MIN - 1)),
			(long)-ERANGE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(sp_key_make(bytes, SP_KEY_MAX + 1)),
			(long)-ERANGE);
	a = sp_key_make(bytes, SP_KEY_MAX);
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	sp_key_put(a);
}

/* One begins, the other answers. */
static void proof_one_begins(struct kunit *test)
{
	struct proof_pair p;
	struct sp_prove say;

	proof_pair(test, &p);
	say = proof_say(test, &p.a);
	KUNIT_EXPECT_EQ(test, say.flags, 0U);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.b, &say), SP_TRUST_SAY);
	KUNIT_EXPECT_FALSE(test, p.b.trust.proved);
	say = proof_say(test, &p.b);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say),
			SP_TRUST_SAY | SP_TRUST_PROVED);
	KUNIT_EXPECT_TRUE(test, p.a.trust.proved);
	say = proof_say(test, &p.a);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.b, &say), SP_TRUST_PROVED);
	KUNIT_EXPECT_TRUE(test, p.b.trust.proved);
	/* Nothing goes on and on. */
	KUNIT_EXPECT_EQ(test, proof_hear(&p.b, &say), 0);
	/* Who has forgotten begins anew, and is answered. */
	sp_key_put(p.a.key);
	proof_end(test, &p.a, 1, 2, 9, 0xcc);
	say = proof_say(test, &p.a);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.b, &say), SP_TRUST_SAY);
	say = proof_say(test, &p.b);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say),
			SP_TRUST_SAY | SP_TRUST_PROVED);
	proof_done(&p);
}

static void proof_both_begin(struct kunit *test)
{
	struct sp_prove of_a, of_b;
	struct proof_pair p;

	proof_pair(test, &p);
	of_a = proof_say(test, &p.a);
	of_b = proof_say(test, &p.b);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &of_b), SP_TRUST_SAY);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.b, &of_a), SP_TRUST_SAY);
	of_a = proof_say(test, &p.a);
	of_b = proof_say(test, &p.b);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &of_b), SP_TRUST_PROVED);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.b, &of_a), SP_TRUST_PROVED);
	proof_done(&p);
}

/* Nobody else's proof is taken: A has said its nonce, and hears B's proof. */
static int proof_of(struct kunit *test, void (*change)(struct proof_end *b))
{
	struct sp_prove say;
	struct proof_pair p;
	int ret;

	proof_pair(test, &p);
	change(&p.b);
	say = proof_say(test, &p.a);
	proof_hear(&p.b, &say);
	say = proof_say(test, &p.b);
	ret = proof_hear(&p.a, &say);
	KUNIT_EXPECT_EQ(test, p.a.trust.proved, ret >= 0);
	/* It changes nothing: the right one is taken afterwards. */
	if (ret < 0)
		KUNIT_EXPECT_FALSE(test, p.a.trust.heard);
	proof_done(&p);
	return ret;
}

static void proof_as_is(struct proof_end *b)
{
}

static void proof_other_key(struct proof_end *b)
{
	sp_key_put(b->key);
	b->key = sp_key_make((const u8 *)"a secret of the groud", 21);
}

static void proof_other_group(struct proof_end *b)
{
	b->id.gid++;
}

static void proof_other_name(struct proof_end *b)
{
	b->id.name = "groud";
}

static void proof_other_node(struct proof_end *b)
{
	b->id.self.b[15] = 3;
}

static void proof_for_another(struct proof_end *b)
{
	b->id.peer.b[15] = 3;
}

static void proof_refused(struct kunit *test)
{
	static void (*const changes[])(struct proof_end *b) = {
		proof_other_key, proof_other_group, proof_other_name,
		proof_other_node, proof_for_another,
	};
	u32 i;

	KUNIT_EXPECT_EQ(test, proof_of(test, proof_as_is),
			SP_TRUST_SAY | SP_TRUST_PROVED);
	for (i = 0; i < ARRAY_SIZE(changes); i++)
		KUNIT_EXPECT_EQ_MSG(test, proof_of(test, changes[i]),
				    -EKEYREJECTED, "%u", i);
}

/* What B has said, changed on its way. */
static void proof_forged(struct kunit *test)
{
	struct sp_prove say, bad;
	struct proof_pair p;
	u32 i;

	proof_pair(test, &p);
	say = proof_say(test, &p.a);
	proof_hear(&p.b, &say);
	say = proof_say(test, &p.b);
	bad = say;
	bad.view++;
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &bad), -EKEYREJECTED);
	/* It is one of a peer, not of who is in the view no more. */
	bad = say;
	bad.flags |= SP_PROVE_OUT;
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &bad), -EKEYREJECTED);
	for (i = 0; i < SP_NONCE_LEN; i++) {
		bad = say;
		bad.nonce[i] ^= 1;
		KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &bad), -EKEYREJECTED);
		bad = say;
		bad.mac[i] ^= 0x80;
		KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &bad), -EKEYREJECTED);
	}
	KUNIT_EXPECT_FALSE(test, p.a.trust.proved);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say),
			SP_TRUST_SAY | SP_TRUST_PROVED);
	proof_done(&p);
}

/* A's own nonce, and what it answers to it, sent back to it. */
static void proof_reflected(struct kunit *test)
{
	struct proof_pair p;
	struct sp_prove say;

	proof_pair(test, &p);
	say = proof_say(test, &p.a);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say), SP_TRUST_SAY);
	say = proof_say(test, &p.a);
	KUNIT_EXPECT_EQ(test, say.flags, SP_PROVE_MAC);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say), -EKEYREJECTED);
	/* As if B were the one that A proves it to. */
	swap(p.a.id.self, p.a.id.peer);
	KUNIT_EXPECT_GE(test, proof_hear(&p.a, &say), 0);
	proof_done(&p);
}

/* What B has proved on a link before, on the next one, or in another view. */
static void proof_replayed(struct kunit *test)
{
	struct sp_prove say, old;
	struct proof_pair p;

	proof_pair(test, &p);
	say = proof_say(test, &p.a);
	proof_hear(&p.b, &say);
	old = proof_say(test, &p.b);
	KUNIT_EXPECT_GE(test, proof_hear(&p.a, &old), 0);
	sp_key_put(p.a.key);
	proof_end(test, &p.a, 1, 2, 5, 0xac);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &old), -EKEYREJECTED);
	/* The same nonce would do, but not with another view. */
	sp_key_put(p.a.key);
	proof_end(test, &p.a, 1, 2, 4, 0xaa);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &old), -EKEYREJECTED);
	sp_key_put(p.a.key);
	proof_end(test, &p.a, 1, 2, 5, 0xaa);
	KUNIT_EXPECT_GE(test, proof_hear(&p.a, &old), 0);
	proof_done(&p);
}

static void proof_out(struct kunit *test)
{
	struct proof_pair p;
	struct sp_prove say;

	proof_pair(test, &p);
	say = proof_say(test, &p.a);
	proof_hear(&p.b, &say);
	KUNIT_EXPECT_EQ(test, sp_trust_say(&p.b.trust, &p.b.id, true, &say,
					   &sp_key_ops, p.b.key), 0);
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say), SP_TRUST_OUT);
	KUNIT_EXPECT_FALSE(test, p.a.trust.proved);
	/* Nor can it be made one of a peer. */
	say.flags &= ~SP_PROVE_OUT;
	KUNIT_EXPECT_EQ(test, proof_hear(&p.a, &say), -EKEYREJECTED);
	proof_done(&p);
}

/* The answer to a join is bound to all that the join is, the other way round. */
static void proof_answers(struct kunit *test)
{
	struct sp_proof join, answer, back;

	sp_proof_init(&join, SP_PROOF_JOIN, "group", 77);
	join.cookie = 5;
	join.view_to = 3;
	join.from.b[0] = 1;
	join.to.b[0] = 2;
	memset(join.nonce_from, 0xaa, sizeof(join.nonce_from));
	memset(join.nonce_to, 0xbb, sizeof(join.nonce_to));
	sp_proof_answer(&answer, &join);
	KUNIT_EXPECT_EQ(test, answer.role, (u32)SP_PROOF_ANSWER);
	KUNIT_EXPECT_EQ(test, answer.view_from, 3ULL);
	KUNIT_EXPECT_EQ(test, answer.view_to, 0ULL);
	KUNIT_EXPECT_EQ(test, answer.from.b[0], 2);
	KUNIT_EXPECT_EQ(test, answer.nonce_from[31], 0xbb);
	back = answer;
	sp_proof_answer(&back, &back);
	back.role = SP_PROOF_JOIN;
	KUNIT_EXPECT_EQ(test, memcmp(&back, &join, sizeof(join)), 0);
	/* All names fit, and are told from each other. */
	sp_proof_init(&answer, SP_PROOF_JOIN,
		      "a name as long as any that a group can have: 63 characters.....",
		      77);
	KUNIT_EXPECT_EQ(test, answer.name[62], '.');
	KUNIT_EXPECT_EQ(test, answer.name[63], 0);
}

static struct kunit_case proof_cases[] = {
	KUNIT_CASE(proof_vectors),
	KUNIT_CASE(proof_secrets),
	KUNIT_CASE(proof_one_begins),
	KUNIT_CASE(proof_both_begin),
	KUNIT_CASE(proof_refused),
	KUNIT_CASE(proof_forged),
	KUNIT_CASE(proof_reflected),
	KUNIT_CASE(proof_replayed),
	KUNIT_CASE(proof_out),
	KUNIT_CASE(proof_answers),
	{}
};

struct kunit_suite sp_proof_suite = {
	.name = "spindle_proof",
	.test_cases = proof_cases,
};
