/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the UDP benchmarks share: a clock, sockets with large buffers, and dying with a
 * sentence. Knows nothing of the library.
 */
#ifndef SDR_BENCH_UDP_BENCH_UTIL_H
#define SDR_BENCH_UDP_BENCH_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t bench_now_ns(void);
double bench_gbps(uint64_t bytes, uint64_t ns);
void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* A UDP socket bound to (listen) or connected to ADDR:PORT, 32 MiB of buffers, GRO on. */
int bench_socket(const char *addr, const char *port, bool bind_it);
/* Sleeps until the descriptor can be written to or read, at most 100 ms. */
void bench_wait_fd(int fd, bool writable);
/* Page-aligned memory, faulted in. */
void *bench_scratch(size_t bytes);

#endif
