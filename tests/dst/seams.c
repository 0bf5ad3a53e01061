/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker sends the library's calls of malloc() and its kin here (--wrap), so that all
 * it holds is counted and any allocation can be refused; the test's own memory goes past
 * them. What the library draws from the kernel (nonces, incarnations) comes from the seed.
 */
#include "dst.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __wrap_free(void *p);
int __wrap_rng_secret(void *buf, size_t len);

static struct {
	uint64_t bytes, blocks, peak;
	bool armed, failed;
	uint32_t after, times;
	struct rng rng;
} seam;

static bool refuse(void)
{
	if (!seam.armed || seam.after-- > 0)
		return false;
	seam.after = 0;
	seam.failed = true;
	if (--seam.times == 0)
		seam.armed = false;
	return true;
}

static void *counted(void *p)
{
	if (!p)
		return NULL;
	seam.bytes += malloc_usable_size(p);
	seam.blocks++;
	if (seam.bytes > seam.peak)
		seam.peak = seam.bytes;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return refuse() ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return refuse() ? NULL : counted(__real_aligned_alloc(align, n));
}

void __wrap_free(void *p)
{
	if (p) {
		seam.bytes -= malloc_usable_size(p);
		seam.blocks--;
	}
	__real_free(p);
}

int __wrap_rng_secret(void *buf, size_t len)
{
	uint8_t *at = buf;

	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(rng_next(&seam.rng) >> 32);
	return 0;
}

void *dst_alloc(size_t n)
{
	void *p = __real_calloc(1, n ? n : 1);

	if (!p)
		abort();
	return p;
}

void dst_free(void *p)
{
	__real_free(p);
}

void dst_seams_reset(uint64_t seed)
{
	memset(&seam, 0, sizeof(seam));
	rng_init(&seam.rng, seed ^ 0x5eed);
}

void dst_nomem_arm(uint32_t after, uint32_t times)
{
	seam.armed = true;
	seam.failed = false;
	seam.after = after;
	seam.times = times;
}

bool dst_nomem_disarm(void)
{
	seam.armed = false;
	return seam.failed;
}

uint64_t dst_live_bytes(void)
{
	return seam.bytes;
}

uint64_t dst_live_blocks(void)
{
	return seam.blocks;
}

uint64_t dst_peak_bytes(void)
{
	return seam.peak;
}
