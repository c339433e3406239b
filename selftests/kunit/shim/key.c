// SPDX-License-Identifier: GPL-2.0
/* What kmod/key.c does with the kernel's hashes, by those of OpenSSL. */
#include <linux/err.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "../../../kmod/core/proof.h"
#include "../../../kmod/key.h"

struct sp_key {
	size_t len;
	u8 secret[SP_KEY_MAX];
};

struct sp_key *sp_key_make(const u8 *secret, size_t len)
{
	struct sp_key *key;

	if (len < SP_KEY_MIN || len > SP_KEY_MAX)
		return ERR_PTR(-ERANGE);
	key = calloc(1, sizeof(*key));
	if (!key)
		return ERR_PTR(-ENOMEM);
	key->len = len;
	memcpy(key->secret, secret, len);
	return key;
}

void sp_key_put(struct sp_key *key)
{
	free(key);
}

int sp_key_match(const struct sp_key *has, const struct sp_key *brings)
{
	if (!has || !brings)
		return has ? -ENOKEY : brings ? -EKEYREJECTED : 0;
	return has->len == brings->len &&
	       !CRYPTO_memcmp(has->secret, brings->secret, has->len) ? 0 : -EKEYREJECTED;
}

int sp_key_mac(const struct sp_key *key, const void *data, size_t len, const void *more,
	       size_t more_len, u8 *mac)
{
	u8 *all = malloc(len + more_len + 1);

	if (!all)
		return -ENOMEM;
	memcpy(all, data, len);
	if (more_len)
		memcpy(all + len, more, more_len);
	HMAC(EVP_sha256(), key->secret, key->len, all, len + more_len, mac, NULL);
	free(all);
	return 0;
}

bool sp_key_differ(const u8 *a, const u8 *b)
{
	return CRYPTO_memcmp(a, b, SP_MAC_LEN);
}

static int key_proof(void *secret, const struct sp_proof *proof, u8 *mac)
{
	return sp_key_mac(secret, proof, sizeof(*proof), NULL, 0, mac);
}

const struct sp_proof_ops sp_key_ops = { .mac = key_proof, .differ = sp_key_differ };
