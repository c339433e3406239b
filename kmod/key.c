// SPDX-License-Identifier: GPL-2.0
/*
 * Secrets of groups. One is taken from a keyring of the program that names it,
 * at once and for good: what becomes of the key afterwards does not matter to
 * who holds a copy. All that is kept is the hash that is set up with it.
 */
#include <linux/err.h>
#include <linux/key.h>
#include <linux/kref.h>
#include <linux/slab.h>

#include "key.h"

#if IS_ENABLED(CONFIG_KEYS) && IS_REACHABLE(CONFIG_CRYPTO_HASH)

#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <keys/user-type.h>

/**
 * struct sp_key - a secret; never changes
 * @ref: groups, members and joins hold it
 * @hash: HMAC-SHA256, set up with it
 * @print: of the secret, the same for the same one: see sp_key_match()
 */
struct sp_key {
	struct kref ref;
	struct crypto_shash *hash;
	u8 print[SP_MAC_LEN];
};

/**
 * sp_key_mac() - HMAC-SHA256 of two pieces
 * @key: the secret
 * @data: the first one
 * @len: its bytes
 * @more: the second one, or NULL
 * @more_len: its bytes
 * @mac: the result, SP_MAC_LEN bytes
 *
 * Context: may sleep.
 *
 * Return: 0 or a negative errno.
 */
int sp_key_mac(const struct sp_key *key, const void *data, size_t len,
	       const void *more, size_t more_len, u8 *mac)
{
	SHASH_DESC_ON_STACK(desc, key->hash);
	int ret;

	desc->tfm = key->hash;
	ret = crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, data, len) ?:
	      (more ? crypto_shash_update(desc, more, more_len) : 0) ?:
	      crypto_shash_final(desc, mac);
	shash_desc_zero(desc);
	return ret;
}

/**
 * sp_key_differ() - compare two hashes
 * @a: one
 * @b: the other
 *
 * Return: true when they differ; it takes as long wherever they do.
 */
bool sp_key_differ(const u8 *a, const u8 *b)
{
	return crypto_memneq(a, b, SP_MAC_LEN);
}

/**
 * sp_key_make() - keep a secret
 * @secret: its bytes; the caller wipes them
 * @len: how many
 *
 * Context: may sleep.
 *
 * Return: it, with one reference; ERR_PTR(-ERANGE) when it is too short or too
 * long; -ENOPKG when the kernel has no HMAC-SHA256; -ENOMEM.
 */
struct sp_key *sp_key_make(const u8 *secret, size_t len)
{
	struct sp_proof same;
	struct sp_key *key;
	int ret;

	if (len < SP_KEY_MIN || len > SP_KEY_MAX)
		return ERR_PTR(-ERANGE);
	key = kzalloc(sizeof(*key), GFP_KERNEL_ACCOUNT);
	if (!key)
		return ERR_PTR(-ENOMEM);
	kref_init(&key->ref);
	key->hash = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(key->hash)) {
		ret = PTR_ERR(key->hash);
		kfree(key);
		return ERR_PTR(ret == -ENOENT ? -ENOPKG : ret);
	}
	sp_proof_init(&same, SP_PROOF_SAME, "", 0);
	ret = crypto_shash_setkey(key->hash, secret, len) ?:
	      sp_key_mac(key, &same, sizeof(same), NULL, 0, key->print);
	if (ret) {
		sp_key_put(key);
		return ERR_PTR(ret);
	}
	return key;
}

static void sp_key_release(struct kref *ref)
{
	struct sp_key *key = container_of(ref, struct sp_key, ref);

	/* Which wipes it. */
	crypto_free_shash(key->hash);
	kfree_sensitive(key);
}

/**
 * sp_key_get() - hold a secret once more
 * @key: it, or NULL
 *
 * Return: @key.
 */
struct sp_key *sp_key_get(struct sp_key *key)
{
	if (key)
		kref_get(&key->ref);
	return key;
}

/**
 * sp_key_put() - drop a reference
 * @key: the secret, or NULL
 */
void sp_key_put(struct sp_key *key)
{
	if (key)
		kref_put(&key->ref, sp_key_release);
}

/**
 * sp_key_match() - may a program of this node be in a group of this node
 * @has: the secret of the group, or NULL
 * @brings: that of the program, or NULL
 *
 * Return: 0; -ENOKEY when the group has one and the program none; -EKEYREJECTED
 * when they differ, or when the group has none.
 */
int sp_key_match(const struct sp_key *has, const struct sp_key *brings)
{
	if (has == brings)
		return 0;
	if (!brings)
		return -ENOKEY;
	if (!has || sp_key_differ(has->print, brings->print))
		return -EKEYREJECTED;
	return 0;
}

/* Of a key that was found; it may be revoked at any time. */
static struct sp_key *sp_key_take(struct key *found)
{
	const struct user_key_payload *payload;
	struct sp_key *key;

	down_read(&found->sem);
	payload = user_key_payload_locked(found);
	if (payload)
		key = sp_key_make(payload->data, payload->datalen);
	else
		key = ERR_PTR(-EKEYREVOKED);
	up_read(&found->sem);
	return key;
}

/**
 * sp_key_find() - take a secret from a keyring of the caller
 * @description: of a key of type "logon" or "user". Only keys that are meant for
 *	this module are: it begins with SP_KEY_PREFIX
 *
 * Context: process, may sleep.
 *
 * Return: it, with one reference; ERR_PTR(-EINVAL) for another description;
 * -ENOKEY when there is none, or it was revoked or has expired; another errno of
 * request_key(); or what sp_key_make() gives.
 */
struct sp_key *sp_key_find(const char *description)
{
	const size_t skip = strlen(SP_KEY_PREFIX);
	struct sp_key *key;
	struct key *found;

	if (strncmp(description, SP_KEY_PREFIX, skip) || !description[skip])
		return ERR_PTR(-EINVAL);
	found = request_key(&key_type_logon, description, NULL);
	if (IS_ERR(found) && PTR_ERR(found) == -ENOKEY)
		found = request_key(&key_type_user, description, NULL);
	if (IS_ERR(found))
		return ERR_CAST(found);
	key = sp_key_take(found);
	key_put(found);
	return key;
}

static int sp_key_proof(void *secret, const struct sp_proof *proof, u8 *mac)
{
	return sp_key_mac(secret, proof, sizeof(*proof), NULL, 0, mac);
}

#else /* a kernel without keyrings or without hashes: nobody has a secret */

struct sp_key *sp_key_find(const char *description)
{
	return ERR_PTR(-EOPNOTSUPP);
}

struct sp_key *sp_key_make(const u8 *secret, size_t len)
{
	return ERR_PTR(-EOPNOTSUPP);
}

struct sp_key *sp_key_get(struct sp_key *key)
{
	return key;
}

void sp_key_put(struct sp_key *key)
{
}

int sp_key_match(const struct sp_key *has, const struct sp_key *brings)
{
	return 0;
}

int sp_key_mac(const struct sp_key *key, const void *data, size_t len,
	       const void *more, size_t more_len, u8 *mac)
{
	return -EOPNOTSUPP;
}

bool sp_key_differ(const u8 *a, const u8 *b)
{
	return true;
}

static int sp_key_proof(void *secret, const struct sp_proof *proof, u8 *mac)
{
	return -EOPNOTSUPP;
}

#endif

const struct sp_proof_ops sp_key_ops = {
	.mac = sp_key_proof,
	.differ = sp_key_differ,
};
