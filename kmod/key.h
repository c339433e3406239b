/* SPDX-License-Identifier: GPL-2.0 */
/* Secrets of groups: where they come from, and hashes with them. */
#ifndef SPINDLE_KEY_H
#define SPINDLE_KEY_H

#include <linux/types.h>

#include "core/proof.h"

#define SP_KEY_PREFIX	"spindle:"
#define SP_KEY_MIN	16
#define SP_KEY_MAX	1024

struct sp_key;

struct sp_key *sp_key_find(const char *description);
struct sp_key *sp_key_make(const u8 *secret, size_t len);
struct sp_key *sp_key_get(struct sp_key *key);
void sp_key_put(struct sp_key *key);
int sp_key_match(const struct sp_key *has, const struct sp_key *brings);
int sp_key_mac(const struct sp_key *key, const void *data, size_t len,
	       const void *more, size_t more_len, u8 *mac);
bool sp_key_differ(const u8 *a, const u8 *b);
extern const struct sp_proof_ops sp_key_ops;

#endif /* SPINDLE_KEY_H */
