/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is particular to fabric/verbs, on two RDMA devices: errors by name, queues that are full,
 * memory that is still being read, queue pairs that died, sleeping, fork().
 */
#include "fabric/verbs/test_util.h"
#include "base/rng.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct verbs_fabric_attr plain; /* all defaults */

/* Errors. */

static void refused(struct verbs_fabric_attr attr, int err, const char *words)
{
	char why[VERBS_WHY_MAX];
	struct fabric *f = NULL;
	int rc = verbs_fabric_open(&attr, &f, why, sizeof(why));

	if (rc != err || !strstr(why, words))
		fail_msg("%d, not %d; \"%s\" should be in \"%s\"", rc, err, words, why);
	assert_null(f);
}

static void test_errors_name_things(void **state)
{
	(void)state;
	refused((struct verbs_fabric_attr){.device = "mlx9_9"}, -ENODEV, "mlx9_9");
	refused((struct verbs_fabric_attr){.device = "mlx9_9"}, -ENODEV, tu_device(1));
	refused((struct verbs_fabric_attr){.device = tu_device(0), .port = 9}, -ENODEV, "port 9");
	refused((struct verbs_fabric_attr){.device = tu_device(0),
					   .gid_index_set = true,
					   .gid_index = 200},
		-EADDRNOTAVAIL, "GID index 200");
	refused((struct verbs_fabric_attr){.device = tu_device(0), .bind_addr = "203.0.113.9"},
		-EADDRNOTAVAIL, "RoCE v2");
	refused((struct verbs_fabric_attr){.device = tu_device(0), .bind_addr = "eth0"},
		-EADDRNOTAVAIL, "numeric");
	refused((struct verbs_fabric_attr){.max_payload = 1000}, -EINVAL, "1000");
	refused((struct verbs_fabric_attr){.rq_depth = 3}, -EINVAL, "3 receives");
	refused((struct verbs_fabric_attr){.sq_depth = 3}, -EINVAL, "3 packets");
	refused((struct verbs_fabric_attr){.bounce_bytes = 4096}, -EINVAL, "4096 bytes");
	refused((struct verbs_fabric_attr){.max_qps = 1u << 20}, -EINVAL, "QPs");
	setenv("SDR_VERBS_KEYS", "windows", 1);
	refused(plain, -EINVAL, "windows");
	unsetenv("SDR_VERBS_KEYS");
	if (strncmp(tu_device(0), "mlx5", 4) != 0)
		refused((struct verbs_fabric_attr){.device = tu_device(0), .keys = VERBS_KEYS_MLX5},
			-EOPNOTSUPP, "mlx5");
}

static void test_too_large_a_payload(void **state)
{
	struct verbs_fabric_attr attr = {.device = tu_device(0)};
	struct fabric_caps caps;
	char why[VERBS_WHY_MAX];
	struct fabric *f;

	(void)state;
	assert_int_equal(verbs_fabric_open(&attr, &f, why, sizeof(why)), 0);
	f->ops->caps(f, &caps);
	f->ops->close(f);
	assert_int_equal(caps.mode, WIRE_ROCEV2);
	if (caps.max_payload_bytes < 4096) {
		attr.max_payload = caps.max_payload_bytes * 2;
		refused(attr, -EMSGSIZE, "MTU");
	}
	attr.max_payload = 1024;
	assert_int_equal(verbs_fabric_open(&attr, &f, why, sizeof(why)), 0);
	f->ops->caps(f, &caps);
	assert_int_equal(caps.max_payload_bytes, 1024);
	f->ops->close(f);
}

/* Runs in a child: gives up root and almost all locked memory, then opens. */
static int locked_out(void)
{
	const struct rlimit little = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
	struct verbs_fabric_attr attr = {.device = tu_device(0)};
	char why[VERBS_WHY_MAX];
	struct fabric *f;
	int err;

	if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
		return 77;
	err = verbs_fabric_open(&attr, &f, why, sizeof(why));
	if (err == -EACCES || err == -EPERM || err == -ENODEV)
		return 77; /* this user may not open the device */
	if (err == -ENOMEM && strstr(why, "64 KiB") && strstr(why, "ulimit -l") &&
	    strstr(why, "--ulimit memlock=-1"))
		return 0;
	fprintf(stderr, "%d: %s\n", err, err < 0 ? why : "");
	return 1;
}

static int child_rc(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void test_locked_memory(void **state)
{
	pid_t pid = fork();
	int rc;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(locked_out());
	rc = child_rc(pid);
	if (rc == 77) {
		print_message("skipped: cannot become a user who may open the device\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

/* Queues. */

#define MANY 640u

/* The receiver does not look for a while: it looks like loss, and is repaired like loss. */
static void test_receives_run_out(void **state)
{
	struct tu_pair p;
	const size_t len = MANY * 1024;
	uint8_t *from = malloc(len), *to = verbs_pages(len);
	uint64_t *words = calloc(256, 8);
	struct verbs_fabric_attr attr = {.rq_depth = VERBS_MIN_RQ_DEPTH};
	struct fabric_key key;
	uint32_t had;

	(void)state;
	assert_true(from && to && words);
	attr.max_payload = 1024;
	tu_pair_open(&p, attr);
	tu_fill(from, len, 1);
	key = tu_bind(&p, 5, to, len, words, NULL);
	for (uint32_t first = 0; first < MANY; first += 64) {
		struct fabric_write w = tu_write(&p, 5, from, first, 64, key);

		tu_post(&p, &w);
	}
	while (tu_qp(&p, 0)->dqp[0].run_head != tu_qp(&p, 0)->dqp[0].run_tail)
		tu_poll(&p.end[0]);
	for (int i = 0; i < 200; i++) {
		tu_poll(&p.end[1]);
		usleep(1000);
	}
	had = tu_count(&p, 5, MANY);
	assert_in_range(had, 1, MANY - 1);
	assert_false(tu_qp(&p, 1)->dqp[0].dead);
	for (uint32_t i = 0; i < MANY; i++) {
		struct fabric_write w = tu_write(&p, 5, from, i, 1, key);
		uint64_t bit;

		rx_bits_get(rx_slot_of(&p.end[1].table, 5), i, 1, &bit);
		if (bit)
			continue;
		tu_post(&p, &w);
		tu_poll(&p.end[1]);
	}
	assert_true(tu_arrive(&p, 5, MANY));
	assert_memory_equal(from, to, len);
	tu_fence(&p, 5);
	tu_pair_close(&p);
	verbs_pages_free(to, len);
	free(from);
	free(words);
}

static void test_a_full_send_queue(void **state)
{
	struct tu_pair p;
	const size_t len = 128 * 4096;
	uint8_t *from = calloc(1, len), *to = verbs_pages(len);
	uint64_t *words = calloc(64, 8);
	struct fabric_write w[2];
	struct fabric_key key;
	struct fabric *f;

	(void)state;
	assert_true(from && to && words);
	tu_pair_open(&p, (struct verbs_fabric_attr){.sq_depth = FABRIC_RUN_MAX});
	f = p.end[0].f;
	tu_fill(from, 128 * (size_t)p.payload, 2);
	key = tu_bind(&p, 0, to, 128 * (size_t)p.payload, words, NULL);
	w[0] = tu_write(&p, 0, from, 0, 64, key);
	w[1] = tu_write(&p, 0, from, 64, 64, key);
	/* Room comes back when completions are looked for, and nobody did. */
	assert_int_equal(f->ops->post(f, w, 2), 1);
	assert_int_equal(f->ops->post(f, &w[1], 1), 0);
	assert_int_equal(p.end[0].writable, 0);
	while (p.end[0].writable == 0)
		tu_poll(&p.end[0]);
	assert_int_equal(f->ops->post(f, &w[1], 1), 1);
	assert_int_equal(w[1].first_psn, (w[0].first_psn + 64) & 0xffffff);
	assert_true(tu_arrive(&p, 0, 128));
	assert_memory_equal(from, to, 128 * (size_t)p.payload);
	/* Once is enough, and nobody is told who did not ask. */
	tu_poll(&p.end[0]);
	assert_int_equal(p.end[0].writable, 1);
	tu_fence(&p, 0);
	tu_pair_close(&p);
	verbs_pages_free(to, len);
	free(from);
	free(words);
}

/* Memory without mr may be reused at once, however full the ring of copies is. */
static void test_copies(void **state)
{
	struct tu_pair p;
	const uint32_t n = 1000;
	const size_t len = n * (size_t)4096;
	struct verbs_fabric_attr attr = {
		.bounce_bytes = FABRIC_RUN_MAX * 4096, .sq_depth = 1024, .rq_depth = 2048};
	uint8_t *truth = malloc(len), *to = verbs_pages(len), *from;
	uint64_t *words = calloc(256, 8);
	unsigned int refusals = 0, step = 1;
	struct fabric_key key;

	(void)state;
	assert_true(truth && to && words);
	tu_pair_open(&p, attr);
	tu_fill(truth, n * (size_t)p.payload, 3);
	/* The hardest: no longer than a train. */
	tu_fabric(&p, 0)->bounce.bytes = FABRIC_RUN_MAX * (uint64_t)p.payload;
	from = malloc(64 * (size_t)p.payload);
	assert_non_null(from);
	key = tu_bind(&p, 1, to, n * (size_t)p.payload, words, NULL);
	for (uint32_t first = 0; first < n; step = step % 64 + 7) {
		uint32_t count = (uint32_t)u64_min(u64_min(step, 64), n - first);
		struct fabric_write w = tu_write(&p, 1, NULL, first, count, key);

		w.addr = from;
		memcpy(from, truth + first * (size_t)p.payload, count * (size_t)p.payload);
		if (p.end[0].f->ops->post(p.end[0].f, &w, 1) == 1) {
			first += count;
			assert_false(p.end[0].f->ops->tx_busy(p.end[0].qp, 1));
		} else {
			refusals++;
			tu_poll(&p.end[0]);
			tu_poll(&p.end[1]);
		}
		memset(from, 0xee, 64 * (size_t)p.payload);
	}
	assert_true(refusals > 0);
	assert_true(tu_arrive(&p, 1, n));
	assert_memory_equal(truth, to, n * (size_t)p.payload);
	tu_fence(&p, 1);
	/* All of the ring came back. */
	while (tu_fabric(&p, 0)->bounce.run_head != tu_fabric(&p, 0)->bounce.run_tail)
		tu_poll(&p.end[0]);
	assert_int_equal(tu_fabric(&p, 0)->bounce.head, tu_fabric(&p, 0)->bounce.tail);
	tu_fabric(&p, 0)->bounce.bytes = attr.bounce_bytes;
	tu_pair_close(&p);
	verbs_pages_free(to, len);
	free(from);
	free(truth);
	free(words);
}

static void *reg(struct fabric *f, void *mem, size_t len)
{
	const struct fabric_mr_attr attr = {.addr = mem, .len = len};
	void *mr = NULL;

	assert_int_equal(f->ops->mr_reg(f, &attr, &mr), 0);
	return mr;
}

static void wait_idle(struct tu_pair *p, uint32_t message)
{
	uint64_t start_ns = verbs_now_ns();

	while (p->end[0].f->ops->tx_busy(p->end[0].qp, message))
		assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
}

static void test_zero_copy(void **state)
{
	struct tu_pair p;
	const size_t len = 128 * 4096;
	uint8_t *from = verbs_pages(len), *to = verbs_pages(len);
	uint64_t *words = calloc(64, 8);
	void *mr[2];

	(void)state;
	assert_true(from && to && words);
	tu_pair_open(&p, plain);
	mr[0] = reg(p.end[0].f, from, len);
	mr[1] = reg(p.end[1].f, to, len);
	for (uint32_t round = 0; round < 6; round++) {
		uint32_t message = round * (TU_SLOTS - 1) + 3;
		size_t bytes = 128 * (size_t)p.payload;
		struct fabric_key key = tu_bind(&p, message, to, bytes, words, mr[1]);
		struct fabric_write w;

		tu_fill(from, bytes, round);
		for (uint32_t i = 0; i < 2; i++) {
			w = tu_write(&p, message, from, 64 * i, 64, key);
			w.mr = mr[0];
			tu_post(&p, &w);
		}
		assert_true(tu_qp(&p, 0)->tx_runs[message & tu_qp(&p, 0)->key_mask] > 0);
		assert_false(p.end[0].f->ops->tx_busy(p.end[0].qp, message + 1));
		wait_idle(&p, message);
		/* Nobody reads it any more: what is written now does not arrive. */
		memset(from, 0xee, bytes);
		assert_true(tu_arrive(&p, message, 128));
		tu_fill(from, bytes, round);
		assert_memory_equal(from, to, bytes);
		tu_fence(&p, message);
	}
	p.end[0].f->ops->mr_dereg(p.end[0].f, mr[0]);
	p.end[1].f->ops->mr_dereg(p.end[1].f, mr[1]);
	tu_pair_close(&p);
	verbs_pages_free(from, len);
	verbs_pages_free(to, len);
	free(words);
}

/* Memory that can only be read can be sent from. */
static void test_read_only_memory(void **state)
{
	static const uint8_t constant[8192] = {1, 2, 3};
	struct tu_pair p;
	uint8_t *to = verbs_pages(4096);
	struct fabric_key key;
	struct fabric_write w;

	(void)state;
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	key = tu_bind(&p, 0, to, 1024, NULL, NULL);
	w = tu_write(&p, 0, constant, 0, 1, key);
	w.mr = reg(p.end[0].f, (void *)(uintptr_t)constant, sizeof(constant));
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 0, 1));
	assert_memory_equal(to, constant, 1024);
	wait_idle(&p, 0);
	p.end[0].f->ops->mr_dereg(p.end[0].f, (void *)(uintptr_t)w.mr);
	tu_fence(&p, 0);
	tu_pair_close(&p);
	verbs_pages_free(to, 4096);
}

/* Queue pairs that die. */

static void kill_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static void test_queue_pairs_come_back(void **state)
{
	struct tu_pair p;
	const size_t len = 64 * 4096;
	uint8_t *from = verbs_pages(len);
	struct fabric_write w;
	void *mr;

	(void)state;
	tu_pair_open(&p, plain);
	mr = reg(p.end[0].f, from, len);
	tu_carries(&p, 0);
	for (int end = 0; end < 2; end++) {
		kill_qp(tu_qp(&p, end)->dqp[0].qp);
		/* Nothing that is posted to a dead one keeps its memory for ever. */
		w = tu_write(&p, 1, from, 0, 64, (struct fabric_key){.rkey = 1});
		w.mr = mr;
		(void)p.end[0].f->ops->post(p.end[0].f, &w, 1);
		wait_idle(&p, 1);
		tu_carries(&p, 2);
		tu_carries(&p, TU_SLOTS);
	}
	assert_true(tu_fabric(&p, 0)->counter[SDR_CTR_tx_errors] < 200);
	p.end[0].f->ops->mr_dereg(p.end[0].f, mr);
	tu_pair_close(&p);
	verbs_pages_free(from, len);
}

static void test_control_comes_back(void **state)
{
	struct tu_pair p;

	(void)state;
	tu_pair_open(&p, plain);
	for (int end = 0; end < 2; end++) {
		uint64_t start_ns = verbs_now_ns();

		kill_qp(tu_qp(&p, end)->ud);
		p.end[1].ctrl = 0;
		while (p.end[1].ctrl < 3) {
			assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
			(void)p.end[0].f->ops->ctrl(p.end[0].qp, 0, 0, "hello", 5);
			tu_poll(&p.end[0]);
			tu_poll(&p.end[1]);
			usleep(500);
		}
	}
	/* More than there are buffers, nobody looking: lost, and it goes on. */
	for (uint32_t i = 0; i < 3 * VERBS_CTRL_RX; i++)
		while (p.end[0].f->ops->ctrl(p.end[0].qp, 0, 0, "x", 1) == -EAGAIN)
			tu_poll(&p.end[0]);
	for (int i = 0; i < 100; i++) {
		tu_poll(&p.end[1]);
		usleep(1000);
	}
	p.end[1].ctrl = 0;
	assert_int_equal(p.end[0].f->ops->ctrl(p.end[0].qp, 0, 0, "again", 5), 0);
	for (uint64_t start_ns = verbs_now_ns(); p.end[1].ctrl == 0; tu_poll(&p.end[1]))
		assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
	tu_pair_close(&p);
}

/* Sleeping. */

static void test_sleeping(void **state)
{
	struct tu_pair p;
	uint8_t *to = verbs_pages(1 << 20), *from = calloc(1, 4096);
	struct fabric_key key;
	struct fabric_write w;
	struct fabric *f;

	(void)state;
	tu_pair_open(&p, plain);
	f = p.end[1].f;
	key = tu_bind(&p, 0, to, 60 * (size_t)p.payload, NULL, NULL);
	assert_int_equal(f->ops->wait(f, f->ops->now_ns(f) + 1000000), 0);
	for (uint32_t i = 0; i < 30; i++) {
		uint64_t start_ns = verbs_now_ns();

		w = tu_write(&p, 0, NULL, i, 1, key);
		w.addr = from;
		tu_post(&p, &w);
		while (tu_count(&p, 0, 30) == i) {
			assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
			(void)f->ops->wait(f, f->ops->now_ns(f) + TU_PATIENCE_NS);
			tu_poll(&p.end[1]);
		}
	}
	f->ops->wake(f);
	assert_int_equal(f->ops->wait(f, f->ops->now_ns(f) + TU_PATIENCE_NS), 1);
	tu_poll(&p.end[1]);
	assert_int_equal(f->ops->wait(f, f->ops->now_ns(f) + 1000000), 0);
	tu_pair_close(&p);
	verbs_pages_free(to, 1 << 20);
	free(from);
}

/* What one look leaves in a completion queue rings no more: nobody may sleep on it. */
static void test_sleeping_on_leftovers(void **state)
{
	struct tu_pair p;
	uint8_t *to = verbs_pages(1 << 20), *from = calloc(64, 4096);
	struct fabric_write w;
	struct fabric *f;

	(void)state;
	tu_pair_open(&p, plain);
	f = p.end[1].f;
	w = tu_write(&p, 0, from, 0, 64, tu_bind(&p, 0, to, 64 * (size_t)p.payload, NULL, NULL));
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 0, 64));
	tu_poll(&p.end[1]);
	/* Duplicates have nothing to tell. */
	for (uint32_t i = 0; i < VERBS_POLL_BUDGET / 64 + 8; i++)
		tu_post(&p, &w);
	w = tu_write(&p, 1, from, 0, 1, tu_bind(&p, 1, to + (512 << 10), p.payload, NULL, NULL));
	tu_post(&p, &w);
	while (tu_qp(&p, 0)->dqp[0].sq_used > 0)
		tu_poll(&p.end[0]);
	usleep(100000); /* all of it is there: no ring is to come */
	while (tu_count(&p, 1, 1) == 0) {
		assert_int_equal(f->ops->wait(f, f->ops->now_ns(f) + TU_PATIENCE_NS), 1);
		tu_poll(&p.end[1]);
	}
	tu_pair_close(&p);
	verbs_pages_free(to, 1 << 20);
	free(from);
}

static void test_a_descriptor(void **state)
{
	struct tu_pair p;
	uint8_t *to = verbs_pages(1 << 20), *from = calloc(1, 4096);
	struct fabric_key key;
	struct pollfd pfd = {.events = POLLIN};
	struct fabric *f;

	(void)state;
	tu_pair_open(&p, plain);
	f = p.end[1].f;
	pfd.fd = f->ops->fd(f);
	key = tu_bind(&p, 0, to, 60 * (size_t)p.payload, NULL, NULL);
	for (uint32_t i = 0; i < 30; i++) {
		struct fabric_write w = tu_write(&p, 0, NULL, i, 1, key);

		w.addr = from;
		if (i % 3 == 0)
			assert_int_equal(p.end[0].f->ops->ctrl(p.end[0].qp, 0, 0, "x", 1), 0);
		tu_post(&p, &w);
		tu_poll(&p.end[0]);
		while (tu_count(&p, 0, 30) == i) {
			assert_int_equal(poll(&pfd, 1, 5000), 1);
			tu_poll(&p.end[1]);
		}
	}
	while (poll(&pfd, 1, 0) == 1)
		tu_poll(&p.end[1]); /* what is left; then it is quiet */
	assert_int_equal(p.end[1].ctrl, 10);
	f->ops->wake(f);
	assert_int_equal(poll(&pfd, 1, 5000), 1);
	tu_pair_close(&p);
	verbs_pages_free(to, 1 << 20);
	free(from);
}

/*
 * fork() with everything registered: the pages stay the parent's, also those that it writes to
 * while the child lives, which a copy-on-write would move away from under the device.
 */
static void test_fork(void **state)
{
	struct tu_pair p;
	const size_t len = 64 * 4096;
	uint8_t *from = verbs_pages(len), *to = verbs_pages(len);
	struct fabric_key key;
	struct fabric_write w;
	int fd[2];
	pid_t pid;
	void *mr;

	(void)state;
	tu_pair_open(&p, plain);
	mr = reg(p.end[0].f, from, len);
	key = tu_bind(&p, 0, to, 64 * (size_t)p.payload, NULL, NULL);
	memset(from, 1, len);
	memset(to, 1, len);
	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char end;

		close(fd[1]);
		_exit(read(fd[0], &end, 1) == 0 ? 0 : 1); /* until the parent has done its part */
	}
	close(fd[0]);
	tu_fill(from, len, 77);
	memset(to, 2, len);
	w = tu_write(&p, 0, from, 0, 32, key);
	w.mr = mr;
	tu_post(&p, &w);
	w = tu_write(&p, 0, from, 32, 32, key); /* and by a copy */
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 0, 64));
	assert_memory_equal(from, to, 64 * (size_t)p.payload);
	assert_int_equal(p.end[0].f->ops->ctrl(p.end[0].qp, 0, 0, "hello", 5), 0);
	for (uint64_t start_ns = verbs_now_ns(); p.end[1].ctrl == 0; tu_poll(&p.end[1]))
		assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
	close(fd[1]);
	assert_int_equal(child_rc(pid), 0);
	tu_carries(&p, 1);
	tu_fence(&p, 0);
	p.end[0].f->ops->mr_dereg(p.end[0].f, mr);
	tu_pair_close(&p);
	verbs_pages_free(from, len);
	verbs_pages_free(to, len);
}

/* Many QPs come and go: completion queues are shared, and nothing leaks. */
static void test_many_qps(void **state)
{
	struct verbs_fabric_attr attr = {.device = tu_device(0), .max_qps = 24};
	struct fabric_qp_attr qp_attr = {.channels = 2};
	struct fabric_qp *qp[24];
	char why[VERBS_WHY_MAX];
	struct fabric *f;

	(void)state;
	assert_int_equal(verbs_fabric_open(&attr, &f, why, sizeof(why)), 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 24; i++)
			assert_int_equal(f->ops->qp_create(f, &qp_attr, &qp[i]), 0);
		{
			struct fabric_qp *more;

			assert_int_equal(f->ops->qp_create(f, &qp_attr, &more), -ENOSPC);
		}
		for (struct verbs_cq *cq = verbs_fabric_of(f)->cqs; cq; cq = cq->next)
			assert_in_range(cq->used, 1, cq->room);
		for (uint32_t i = 0; i < 24; i++)
			f->ops->qp_destroy(qp[i]);
	}
	for (struct verbs_cq *cq = verbs_fabric_of(f)->cqs; cq; cq = cq->next)
		assert_int_equal(cq->used, 0);
	f->ops->close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_name_things),
		cmocka_unit_test(test_too_large_a_payload),
		cmocka_unit_test(test_locked_memory),
		cmocka_unit_test(test_receives_run_out),
		cmocka_unit_test(test_a_full_send_queue),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_zero_copy),
		cmocka_unit_test(test_read_only_memory),
		cmocka_unit_test(test_queue_pairs_come_back),
		cmocka_unit_test(test_control_comes_back),
		cmocka_unit_test(test_sleeping),
		cmocka_unit_test(test_sleeping_on_leftovers),
		cmocka_unit_test(test_a_descriptor),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_many_qps),
	};

	if (!tu_here())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
