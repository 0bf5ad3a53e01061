// SPDX-License-Identifier: Apache-2.0
/*
 * xoshiro256** 1.0 seeded by splitmix64, and the kernel's random bytes. See rng.h.
 */
#include "base/rng.h"

#include "base/check.h"

#include <errno.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, unsigned int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix64(uint64_t *x)
{
	uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* splitmix64 never yields four zeros in a row, the one state xoshiro cannot leave. */
void rng_init(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix64(&seed);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t result = rotl(r->s[1] * 5, 7) * 9;
	uint64_t t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rotl(r->s[3], 45);
	return result;
}

double rng_unit(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1.0p-53;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	uint64_t reject, x;

	SDR_ASSERT(n > 0);
	/* 2^64 mod n values at the bottom would make some remainders likelier: draw again. */
	reject = (0 - n) % n;
	do {
		x = rng_next(r);
	} while (x < reject);
	return x % n;
}

int rng_secret(void *buf, size_t len)
{
	unsigned char *p = buf;

	while (len > 0) {
		ssize_t got = getrandom(p, len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		p += got;
		len -= (size_t)got;
	}
	return 0;
}
