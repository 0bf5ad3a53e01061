/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite on the simulated fabric: a millisecond of 10 Gbit/s, packet by packet
 * and then in steps that hold many packets, so that they are delivered in trains. Devices:
 * sdr mode, with and without zero copy; rocev2; what a NIC adds to it.
 */
#include "fabric/conformance.h"
#include "fabric/sim/sim.h"

#include "base/bits.h"
#include "base/units.h"
#include <stdio.h>

struct world {
	struct sim *sim;
	struct fabric *f[2];
	bool in_steps;
	struct sim_device device;
};

static int world_open(void *arg, struct fabric *f[2])
{
	const struct link_attr attr = {.rate_bps = 10000000000, .delay_ns = NS_PER_MS};
	struct world *w = arg;
	const struct sim_fabric_attr fattr = {
		.max_payload = 4000, .tx_queue_bytes = 100000, .device = w->device};
	int err = sim_create(1, &sdr_alloc_system, &w->sim);

	for (int i = 0; i < 2 && !err; i++) {
		int host = sim_host_add(w->sim);

		err = host < 0 ? host : sim_fabric_open(w->sim, host, &fattr, &w->f[i]);
		f[i] = w->f[i];
	}
	for (int i = 0; i < 2 && !err; i++)
		err = sim_link_set(w->sim, i, !i, SIM_CHANNEL_ALL, &attr);
	return err;
}

static void world_addr(void *arg, struct sockaddr_storage *out)
{
	sim_fabric_addr(((struct world *)arg)->f[1], out);
}

static void world_pass(void *arg)
{
	const struct world *w = arg;
	struct sim *sim = w->sim;
	uint64_t step = sim_now(sim) + 100 * NS_PER_US;

	sim_advance(sim, w->in_steps ? step : u64_min(sim_next_event_ns(sim), step));
	sim_check(sim);
}

static void world_seal(void *arg, uint8_t *bytes, size_t unsealed)
{
	sim_icrc_seal(((struct world *)arg)->sim, bytes, unsealed);
}

static void world_inject(void *arg, const void *bytes, size_t len)
{
	struct world *w = arg;

	sim_inject(w->sim, w->f[1], bytes, len, 0);
}

static void world_close(void *arg)
{
	struct world *w = arg;

	for (int i = 0; i < 2; i++)
		w->f[i]->ops->close(w->f[i]);
	sim_check(w->sim);
	sim_destroy(w->sim);
}

static const struct {
	const char *name;
	struct sim_device device;
} devices[] = {
	{"sim", {0}},
	{"sim, zero copy", {.zero_copy_ns = 20 * NS_PER_US}},
	{"sim rocev2", {.rocev2 = true}},
	{"sim rocev2, two generations", {.rocev2 = true, .generations = 2}},
	{"sim nic",
	 {.rocev2 = true, .nic = true, .recv_depth = 512, .zero_copy_ns = 20 * NS_PER_US}},
	{"sim nic, lasting keys",
	 {.rocev2 = true, .nic = true, .lasting_keys = true, .late_ns = NS_PER_MS}},
};

int main(void)
{
	struct world w = {0};
	struct conformance_env env = {
		.name = "sim",
		.arg = &w,
		.settle_ns = 10 * NS_PER_MS,
		.open = world_open,
		.addr = world_addr,
		.pass = world_pass,
		.seal = world_seal,
		.inject = world_inject,
		.close = world_close,
	};

	int failed = 0;

	for (size_t i = 0; i < SDR_ARRAY_LEN(devices); i++) {
		char name[64];

		w.device = devices[i].device;
		w.in_steps = false;
		env.name = devices[i].name;
		/* A NIC does not tell what it refuses. */
		env.inject = w.device.nic ? NULL : world_inject;
		failed += conformance_run(&env);
		(void)snprintf(name, sizeof(name), "%s, in steps", devices[i].name);
		w.in_steps = true;
		env.name = name;
		failed += conformance_run(&env);
	}
	return failed;
}
