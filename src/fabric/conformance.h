/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite that every fabric passes: fabric.h said again as tests. A fabric's own test
 * program fills in a conformance_env and calls conformance_run().
 *
 * The suite makes QPs, tables and buffers itself; the environment has the devices and
 * knows how time passes. Buffers that are posted lie between a canary and a page that
 * cannot be touched, so a byte written outside ends the test.
 *
 * Files: conformance.c (fixture), conformance_write.c (what shall happen),
 * conformance_hostile.c (what shall not), conformance_fence.c (what shall not any more).
 */
#ifndef SDR_FABRIC_CONFORMANCE_H
#define SDR_FABRIC_CONFORMANCE_H

#include "fabric/fabric.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Two devices that can reach each other, without loss as far as it is theirs to say. Opened
 * anew for each test. `settle_ns`, by the fabric's clock, is long enough for anything on its
 * way to arrive.
 */
struct conformance_env {
	const char *name;
	void *arg;
	uint64_t settle_ns;
	/* f[0] opens channels, f[1] is what it connects to. 0, or -errno: the test fails. */
	int (*open)(void *arg, struct fabric *f[2]);
	/* What goes into fabric_peer.addr to reach f[1]. */
	void (*addr)(void *arg, struct sockaddr_storage *out);
	/* Lets a little time pass, up to a millisecond; may return when something happened. */
	void (*pass)(void *arg);
	/*
	 * rocev2: writes the trailer behind so many bytes, BTH to pad: the ICRC that is right for
	 * what inject() sends, which is from the peer of f[1]. NULL in sdr mode, and without
	 * inject().
	 */
	void (*seal)(void *arg, uint8_t *bytes, size_t unsealed);
	/*
	 * These bytes, BTH to trailer, arrive at f[1] as if from the wire, from anyone. NULL where
	 * that cannot be done: the tests that need it are skipped, the wire is the device's matter.
	 */
	void (*inject)(void *arg, const void *bytes, size_t len);
	/* Closes both devices. */
	void (*close)(void *arg);
};

/* Runs all tests; the number that failed. Tests that cannot run here are skipped and say so. */
int conformance_run(const struct conformance_env *env);

#endif
