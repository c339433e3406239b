/* SPDX-License-Identifier: GPL-2.0 */
/* Seeded random numbers: the same seed gives the same run everywhere. */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* splitmix64 */
static inline uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15ull;
	return rng_mix(r->state);
}

/* One of 0 .. n - 1. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

/* One of lo .. hi, both included. */
static inline uint32_t rng_range(struct rng *r, uint32_t lo, uint32_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/* True in @permille of 1000 cases. */
static inline bool rng_chance(struct rng *r, uint32_t permille)
{
	return rng_below(r, 1000) < permille;
}

#endif /* SIM_RNG_H */
