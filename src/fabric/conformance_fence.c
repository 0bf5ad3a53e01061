/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shall not happen any more: after a fence, and after the end of a QP, no byte of the
 * memory is written, however late the packet and whatever a worker was just doing.
 */
#include "fabric/conformance_int.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct wait_late {
	const struct cf_end *end;
	uint64_t n;
};

static uint64_t late_pkts(const struct cf_end *end)
{
	struct cf_counts c;

	cf_counts_get(end, &c);
	return c.ch[0].late_pkts + c.ch[1].late_pkts;
}

static bool late_there(void *arg)
{
	const struct wait_late *w = arg;

	if (!cf_sees_late(w->end))
		return true; /* there is nothing to wait for: cf_settle() follows */
	return late_pkts(w->end) >= w->n && w->end->late > 0;
}

static void assert_all(const uint8_t *p, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			fail_msg("byte %zu is %u, not %u", i, p[i], value);
}

/* Posts the whole message as one run. */
static void post_all(struct cf *cf, uint32_t message, const struct cf_mem *from)
{
	uint32_t npkts = (uint32_t)u64_div_up(from->len, cf->payload);
	struct fabric_write w = cf_write(cf, message, from->base, from->len, 0, npkts);

	cf_post(cf, &w);
}

static void test_late_packets_are_only_counted(void **state)
{
	struct cf *cf = *state;
	struct wait_late wait = {&cf->end[CF_B], 8};
	struct cf_counts before, after;
	struct cf_mem from;
	struct cf_recv r;

	cf_mem_make(&from, 8 * (size_t)cf->payload);
	cf_random(cf, from.base, from.len);
	cf_recv_make(cf, &r, 4, from.len);
	cf_send(cf, &r, 4, from.base, 3 * (size_t)cf->payload, 3);
	cf_recv_fence(cf, &r);
	memset(r.mem.base, 0x5a, r.mem.len);
	cf_counts_get(&cf->end[CF_B], &before);
	post_all(cf, 4, &from);
	assert_true(cf_until(cf, late_there, &wait));
	cf_settle(cf);
	cf_counts_get(&cf->end[CF_B], &after);
	if (cf_sees_late(&cf->end[CF_B])) {
		assert_int_equal(cf->end[CF_B].late_message, 4);
		assert_int_equal(after.ctr[SDR_CTR_rx_late] - before.ctr[SDR_CTR_rx_late], 8);
		assert_int_equal(after.ch[0].late_pkts - before.ch[0].late_pkts, 8);
	}
	assert_int_equal(after.ctr[SDR_CTR_rx_pkts], before.ctr[SDR_CTR_rx_pkts]);
	assert_int_equal(after.ctr[SDR_CTR_rx_duplicate], before.ctr[SDR_CTR_rx_duplicate]);
	/* The newest of what is counted; by PSN, for names of packets are of what is bound. */
	if (cf_sees_late(&cf->end[CF_B]) && cf_sees_psn(&cf->end[CF_B]))
		assert_int_equal(after.ch[0].newest_psn, (before.ch[0].newest_psn + 8) & 0xffffff);
	else
		assert_int_equal(after.ch[0].newest_psn, before.ch[0].newest_psn);
	assert_int_equal(after.ch[0].newest_message, before.ch[0].newest_message);
	assert_all(r.mem.base, r.mem.len, 0x5a);
	cf_mem_free(&r.mem);
	free(r.words);
	cf_mem_free(&from);
}

/* The same slot, the same memory, the next message: the old one's packets stay out. */
static void test_memory_bound_again(void **state)
{
	struct cf *cf = *state;
	struct wait_late wait = {&cf->end[CF_B], 8};
	struct cf_mem from;
	struct cf_recv r;

	cf_mem_make(&from, 8 * (size_t)cf->payload);
	cf_random(cf, from.base, from.len);
	cf_recv_make(cf, &r, 2, from.len);
	cf_recv_fence(cf, &r);
	cf_recv_again(cf, &r, 2 + CF_SLOTS);
	memset(r.mem.base, 0x5a, r.mem.len);
	post_all(cf, 2, &from);
	assert_true(cf_until(cf, late_there, &wait));
	cf_settle(cf);
	assert_int_equal(cf_recv_count(&r), 0);
	assert_all(r.mem.base, r.mem.len, 0x5a);
	cf_send(cf, &r, 2 + CF_SLOTS, from.base, from.len, 8);
	assert_memory_equal(r.mem.base, from.base, from.len);
	cf_recv_free(cf, &r);
	cf_mem_free(&from);
}

static void test_a_bound_slot_is_busy(void **state)
{
	struct cf *cf = *state;
	struct cf_end *b = &cf->end[CF_B];
	struct fabric_bind again = {.rx = {.payload = cf->payload, .imm_frags = 1}};
	struct fabric_key key;
	struct cf_recv r;

	cf_recv_make(cf, &r, 1, 100);
	assert_int_equal(b->f->ops->bind(b->qp, 1 + CF_SLOTS, &again, &key), -EBUSY);
	again.rx.payload = 0;
	assert_int_equal(b->f->ops->bind(b->qp, 7, &again, &key), -EINVAL);
	cf_recv_free(cf, &r);
	/* rocev2: nor a table, or pieces of an immediate, that are not as was agreed. */
	if (cf->imm_frags > 1) {
		uint32_t mask = b->table.key_mask;

		again.rx.payload = cf->payload;
		assert_int_equal(b->f->ops->bind(b->qp, 7, &again, &key), -EINVAL);
		again.rx.imm_frags = (uint8_t)cf->imm_frags;
		b->table.key_mask = UINT32_MAX;
		assert_int_equal(b->f->ops->bind(b->qp, 7, &again, &key), -EINVAL);
		b->table.key_mask = mask;
	}
	/* A fence of what is not bound is done, and does nothing to what is. */
	cf_recv_make(cf, &r, 1, 0);
	b->f->ops->fence_begin(b->qp, 1 + CF_SLOTS);
	b->f->ops->fence_begin(b->qp, 99);
	assert_int_equal(b->f->ops->fence_done(b->qp, 99), 1);
	cf_send(cf, &r, 1, NULL, 0, 1);
	cf_recv_free(cf, &r);
}

/*
 * Fences at any moment of a transfer that is sent twice over; the memory is then made
 * untouchable, so a single late byte ends the program.
 */
static void test_fences_in_a_storm(void **state)
{
	struct cf *cf = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct cf_mem from;

	cf_mem_make(&from, 40 * (size_t)cf->payload);
	cf_random(cf, from.base, from.len);
	for (uint32_t round = 0; round < 60; round++) {
		struct cf_recv r;

		cf_recv_make(cf, &r, round, from.len);
		for (uint32_t i = 0; i < 2; i++) {
			struct fabric_write w = cf_write(cf, round, from.base, from.len, 0, 40);

			w.channel = i;
			cf_post(cf, &w);
		}
		for (uint64_t n = rng_below(&cf->rng, 4); n > 0; n--)
			cf_pump(cf);
		cf_recv_fence(cf, &r);
		for (uint32_t i = 0; i < r.npkts; i++)
			if (cf_recv_has(&r, i, 1))
				assert_memory_equal(r.mem.base + i * (size_t)cf->payload,
						    from.base + i * (size_t)cf->payload,
						    cf->payload);
		assert_int_equal(mprotect(r.mem.map, r.mem.map_len, PROT_NONE), 0);
		if (round % 8 == 0)
			cf_settle(cf);
		else
			cf_pump(cf);
		assert_int_equal(mprotect(r.mem.map + page, r.mem.map_len - 2 * page,
					  PROT_READ | PROT_WRITE),
				 0);
		cf_mem_free(&r.mem);
		free(r.words);
	}
	cf_mem_free(&from);
}

/* A page that blocks who touches it, until we say so. */
struct trap {
	int fd;
	uint8_t *page;
	size_t len;
};

/* 0, or -errno where the kernel has none for us. */
static int trap_make(struct trap *t)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	t->len = (size_t)sysconf(_SC_PAGESIZE);
	t->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (t->fd < 0)
		return -errno;
	t->page = mmap(NULL, t->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)t->page;
	reg.range.len = t->len;
	if (t->page == MAP_FAILED || ioctl(t->fd, UFFDIO_API, &api) ||
	    ioctl(t->fd, UFFDIO_REGISTER, &reg)) {
		int err = -errno;

		close(t->fd);
		return err;
	}
	return 0;
}

/* Somebody is stuck in it. */
static bool trap_sprung(void *arg)
{
	const struct trap *t = arg;
	struct pollfd pfd = {.fd = t->fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLIN);
}

static void trap_release(const struct trap *t)
{
	struct uffdio_zeropage zero = {
		.range = {.start = (uintptr_t)t->page, .len = t->len},
	};

	assert_int_equal(ioctl(t->fd, UFFDIO_ZEROPAGE, &zero), 0);
}

/*
 * The attack: a worker has passed every check and is copying when the fence comes. The
 * fence may not be done before it has left; nothing may follow.
 */
static void attack(struct cf *cf, struct trap *t)
{
	struct cf_end *b = &cf->end[CF_B];
	uint32_t len = (uint32_t)u64_min(cf->payload, t->len);
	struct cf_recv r = {.mem = {.base = t->page, .len = len}, .end = b, .npkts = 1};
	struct wait_late wait = {b, 1};
	struct cf_mem from;
	bool too_early = false;

	cf_mem_make(&from, len);
	memset(from.base, 0xc3, len);
	cf->payload = len;
	cf_recv_again(cf, &r, 11);
	post_all(cf, 11, &from);
	assert_true(cf_until(cf, trap_sprung, t));
	b->f->ops->fence_begin(b->qp, 11);
	for (int i = 0; i < 20; i++) {
		too_early |= b->f->ops->fence_done(b->qp, 11) != 0;
		cf_pump(cf);
	}
	trap_release(t); /* in any case: a worker that is stuck would keep the QP */
	assert_false(too_early);
	cf_recv_fence(cf, &r);
	/* It was let in before the fence, so it has landed, whole. */
	assert_all(t->page, len, 0xc3);
	assert_int_equal(cf_recv_count(&r), 1);
	memset(t->page, 0x11, t->len);
	post_all(cf, 11, &from);
	assert_true(cf_until(cf, late_there, &wait));
	cf_settle(cf);
	assert_all(t->page, t->len, 0x11);
	cf_mem_free(&from);
}

static void test_a_worker_stopped_in_its_copy(void **state)
{
	struct cf *cf = *state;
	struct trap t;
	int err;

	if (!(cf->end[CF_B].caps.flags & FABRIC_CAP_WORKERS)) {
		print_message("skipped: no workers, so nothing can run between check and copy\n");
		skip();
	}
	err = trap_make(&t);
	if (err) {
		print_message("skipped: userfaultfd: %s\n", strerror(-err));
		skip();
	}
	attack(cf, &t);
	close(t.fd);
	munmap(t.page, t.len);
}

static bool count_eight(void *arg)
{
	return cf_recv_count(arg) == 8;
}

/* Data for a QP that has no slots yet is late; it can have some afterwards. */
static void test_the_table_comes_later(void **state)
{
	struct cf *cf = *state;
	struct cf_end *a = &cf->end[CF_A];
	struct wait_late wait = {a, 8};
	struct fabric_write w;
	struct cf_mem from;
	struct cf_recv r = {.message = 3, .end = a, .npkts = 8};

	cf_mem_make(&from, 8 * (size_t)cf->payload);
	cf_random(cf, from.base, from.len);
	w = cf_write(cf, 3, from.base, from.len, 0, 8);
	w.qp = cf->end[CF_B].qp;
	w.key = (struct fabric_key){0};
	cf_post(cf, &w);
	assert_true(cf_until(cf, late_there, &wait));
	cf_settle(cf);
	a->f->ops->table_set(a->qp, &a->table);
	cf_mem_make(&r.mem, from.len);
	cf_recv_again(cf, &r, 3);
	w.key = *cf_key(cf, CF_A, 3);
	cf_post(cf, &w);
	assert_true(cf_until(cf, count_eight, &r));
	assert_memory_equal(r.mem.base, from.base, from.len);
	cf_recv_fence(cf, &r);
	cf_mem_free(&r.mem);
	cf_mem_free(&from);
}

/* A QP ends while its packets are everywhere; its memory goes at once. */
static void destroy_under_way(struct cf *cf, int first, unsigned int pumps)
{
	struct cf_mem from;
	struct cf_recv r;

	cf_mem_make(&from, 60 * (size_t)cf->payload);
	cf_random(cf, from.base, from.len);
	cf_recv_make(cf, &r, 0, from.len);
	for (uint32_t i = 0; i < 2; i++) {
		struct fabric_write w = cf_write(cf, 0, from.base, from.len, 0, 60);

		w.channel = i;
		cf_post(cf, &w);
		(void)cf->end[CF_A].f->ops->ctrl(cf->end[CF_A].qp, i, 0, "bye", 3);
	}
	while (pumps--)
		cf_pump(cf);
	for (int i = 0; i < 2; i++) {
		struct cf_end *end = &cf->end[i ? !first : first];

		end->f->ops->qp_destroy(end->qp);
		end->qp = NULL;
		if (end == &cf->end[CF_B])
			cf_mem_free(&r.mem);
		else
			cf_mem_free(&from);
		cf_pump(cf);
	}
	cf_settle(cf);
	free(r.words);
}

static void test_receiver_ends_under_way(void **state)
{
	destroy_under_way(*state, CF_B, 0);
}

static void test_receiver_ends_a_little_later(void **state)
{
	destroy_under_way(*state, CF_B, 2);
}

static void test_sender_ends_under_way(void **state)
{
	destroy_under_way(*state, CF_A, 1);
}

/* Both devices close with everything still open. */
static void test_close_under_way(void **state)
{
	struct cf *cf = *state;
	struct cf_mem from;
	struct cf_recv r;

	cf_mem_make(&from, 60 * (size_t)cf->payload);
	cf_recv_make(cf, &r, 0, from.len);
	post_all(cf, 0, &from);
	cf->env->close(cf->env->arg);
	cf_mem_free(&r.mem);
	cf_mem_free(&from);
	free(r.words);
	/* For the teardown. */
	cf->end[CF_A].qp = cf->end[CF_B].qp = NULL;
	{
		struct fabric *f[2];

		assert_int_equal(cf->env->open(cf->env->arg, f), 0);
	}
}

const struct CMUnitTest cf_tests_fence[] = {
	CF_TEST(test_late_packets_are_only_counted), CF_TEST(test_memory_bound_again),
	CF_TEST(test_a_bound_slot_is_busy),	     CF_TEST(test_fences_in_a_storm),
	CF_TEST(test_a_worker_stopped_in_its_copy),  CF_TEST(test_the_table_comes_later),
	CF_TEST(test_receiver_ends_under_way),	     CF_TEST(test_receiver_ends_a_little_later),
	CF_TEST(test_sender_ends_under_way),	     CF_TEST(test_close_under_way),
};
const size_t cf_ntests_fence = SDR_ARRAY_LEN(cf_tests_fence);
