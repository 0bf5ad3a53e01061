/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What queue pairs cost: heap bytes and time of N QPs in one context, created and then
 * connected to N QPs of a second context over loopback. Prints a table.
 *
 *	qp_bench [N]
 */
#include <malloc.h>
#include <sdr/sdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct side {
	struct sdr_ctx *ctx;
	struct sdr_qp **qp;
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void die(const char *what, int err)
{
	fprintf(stderr, "qp_bench: %s: %s\n", what, sdr_strerror(err));
	exit(1);
}

static void side_open(struct side *s, int listen, unsigned int n)
{
	struct sdr_ctx_attr attr = {.size = sizeof(attr),
				    .bind_addr = "127.0.0.1",
				    .listen = (uint8_t)listen,
				    .max_qps = n};
	int err = sdr_ctx_create(&attr, &s->ctx);

	s->qp = calloc(n, sizeof(*s->qp));
	if (err || !s->qp)
		die("context", err ? err : -12);
}

static void row(const char *what, unsigned int n, size_t bytes, double s)
{
	printf("%-28s %8u %12.0f %14.2f\n", what, n, (double)bytes / n, s * 1e6 / n);
}

static unsigned int connected(const struct side *s, unsigned int n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += sdr_qp_state_get(s->qp[i]) == SDR_QP_CONNECTED;
	return sum;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 10000;
	struct side a, b;
	size_t before;
	double start;

	side_open(&a, 0, n);
	side_open(&b, 1, n);
	printf("%-28s %8s %12s %14s\n", "", "QPs", "bytes each", "us each");
	before = heap_bytes();
	start = seconds();
	for (unsigned int i = 0; i < n; i++) {
		int err = sdr_qp_create(a.ctx, NULL, &a.qp[i]);

		if (err)
			die("QP", err);
	}
	row("created", n, heap_bytes() - before, seconds() - start);
	for (unsigned int i = 0; i < n; i++)
		if (sdr_qp_create(b.ctx, NULL, &b.qp[i]))
			die("QP", -12);
	before = heap_bytes();
	start = seconds();
	for (unsigned int i = 0; i < n; i++) {
		uint8_t ia[SDR_MAX_INFO_BYTES], ib[SDR_MAX_INFO_BYTES];
		int la = sdr_qp_info_get(a.qp[i], ia, sizeof(ia));
		int lb = sdr_qp_info_get(b.qp[i], ib, sizeof(ib));
		int err = sdr_qp_connect(b.qp[i], ia, (size_t)la, NULL);

		if (!err)
			err = sdr_qp_connect(a.qp[i], ib, (size_t)lb, NULL);
		if (err)
			die("connect", err);
		if (i % 16 == 0) {
			sdr_progress(a.ctx);
			sdr_progress(b.ctx);
		}
	}
	while (connected(&a, n) < n && seconds() - start < 60) {
		sdr_progress(a.ctx);
		sdr_progress(b.ctx);
	}
	row("connected pair, idle", connected(&a, n), heap_bytes() - before, seconds() - start);
	sdr_ctx_destroy(a.ctx);
	sdr_ctx_destroy(b.ctx);
	free(a.qp);
	free(b.qp);
	return 0;
}
