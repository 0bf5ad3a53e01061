/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite that every fabric passes, in rocev2 mode: two devices on two addresses of one
 * loopback, in a namespace of its own where that is allowed (test_ns.h).
 */
#include "fabric/conformance.h"
#include "fabric/udp/test_ns.h"
#include "fabric/udp/udp.h"
#include "wire/wire.h"
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* f[0] has address 1, f[1] has address 0. */
struct env {
	struct udp_fabric_attr attr;
	int family;
	struct fabric *f[2];
	/* Whoever injects does so from the address of f[0], which is all that f[1] hears. */
	int inject_fd;
	struct wire_icrc_flow flow;
};

static socklen_t addr_len(int family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void env_addr(void *arg, struct sockaddr_storage *out)
{
	struct env *env = arg;

	*out = test_ns_sockaddr(env->family, 0, FABRIC_ROCEV2_PORT);
}

/* Copies the raw address and the port. */
static const uint8_t *raw(const struct sockaddr_storage *ss, uint8_t ip[16], uint16_t *port)
{
	struct sockaddr_in6 sin6;
	struct sockaddr_in sin;

	if (ss->ss_family == AF_INET) {
		memcpy(&sin, ss, sizeof(sin));
		memcpy(ip, &sin.sin_addr, 4);
		*port = ntohs(sin.sin_port);
	} else {
		memcpy(&sin6, ss, sizeof(sin6));
		memcpy(ip, &sin6.sin6_addr, 16);
		*port = ntohs(sin6.sin6_port);
	}
	return ip;
}

static int inject_open(struct env *env)
{
	struct sockaddr_storage from = test_ns_sockaddr(env->family, 1, 0), to;
	socklen_t len = sizeof(from);
	uint8_t src[16], dst[16];
	uint16_t sport, dport;

	env_addr(env, &to);
	env->inject_fd = socket(env->family, SOCK_DGRAM, 0);
	if (env->inject_fd < 0 ||
	    bind(env->inject_fd, (struct sockaddr *)&from, addr_len(env->family)) < 0 ||
	    getsockname(env->inject_fd, (struct sockaddr *)&from, &len) < 0)
		return -1;
	raw(&from, src, &sport);
	raw(&to, dst, &dport);
	if (env->family == AF_INET)
		wire_icrc_flow_v4(&env->flow, src, dst, sport, dport, true);
	else
		wire_icrc_flow_v6(&env->flow, src, dst, sport, dport);
	return 0;
}

static int env_open(void *arg, struct fabric *f[2])
{
	struct env *env = arg;
	struct udp_fabric_attr attr = env->attr;
	int err = 0;

	attr.rocev2 = true;
	for (int i = 0; i < 2 && err == 0; i++) {
		attr.bind_addr = test_ns_addr(env->family, !i);
		err = udp_fabric_open(&attr, &env->f[i]);
		f[i] = env->f[i];
		if (err < 0 && i == 1)
			env->f[0]->ops->close(env->f[0]);
	}
	return err < 0 ? err : inject_open(env);
}

static void env_pass(void *arg)
{
	struct env *env = arg;

	for (int i = 0; i < 2; i++)
		env->f[i]->ops->wait(env->f[i], env->f[i]->ops->now_ns(env->f[i]) + 100000);
}

static void env_seal(void *arg, uint8_t *bytes, size_t unsealed)
{
	struct env *env = arg;
	const struct wire_icrc_packet p = {.hdr = bytes,
					   .hdr_len = WIRE_BTH_BYTES,
					   .payload = bytes + WIRE_BTH_BYTES,
					   .payload_len = unsealed - WIRE_BTH_BYTES};

	wire_icrc_seal(&env->flow, 0, &p, bytes + unsealed);
}

static void env_inject(void *arg, const void *bytes, size_t len)
{
	struct env *env = arg;
	struct sockaddr_storage to;

	env_addr(arg, &to);
	if (sendto(env->inject_fd, bytes, len, 0, (struct sockaddr *)&to, addr_len(env->family)) <
	    0)
		perror("inject");
}

static void env_close(void *arg)
{
	struct env *env = arg;

	close(env->inject_fd);
	env->f[0]->ops->close(env->f[0]);
	env->f[1]->ops->close(env->f[1]);
}

/* In the host's own namespace somebody may have the port. */
static bool port_is_free(void)
{
	const struct udp_fabric_attr attr = {.bind_addr = test_ns_addr(AF_INET, 0), .rocev2 = true};
	struct fabric *f;

	if (udp_fabric_open(&attr, &f) < 0)
		return false;
	f->ops->close(f);
	return true;
}

int main(void)
{
	static struct {
		const char *name;
		struct env env;
	} variants[] = {
		{"roce, IPv4", {.family = AF_INET}},
		{"roce, IPv4, two workers", {.family = AF_INET, .attr = {.workers = 2}}},
		{"roce, IPv4, no GSO", {.family = AF_INET, .attr = {.no_gso = true}}},
		{"roce, IPv4, no GRO", {.family = AF_INET, .attr = {.no_gro = true}}},
		{"roce, IPv6", {.family = AF_INET6}},
		{"roce, IPv6, two workers", {.family = AF_INET6, .attr = {.workers = 2}}},
		{"roce, IPv6, neither GSO nor GRO",
		 {.family = AF_INET6, .attr = {.no_gso = true, .no_gro = true}}},
	};
	int failed = 0, err = test_ns_enter();

	if (err < 0 && !port_is_free()) {
		printf("skipped: no network namespace (%s), and UDP port %u is taken here\n",
		       strerror(-err), FABRIC_ROCEV2_PORT);
		return 77;
	}
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		const struct conformance_env env = {
			.name = variants[i].name,
			.arg = &variants[i].env,
			.settle_ns = 20000000,
			.open = env_open,
			.addr = env_addr,
			.pass = env_pass,
			.seal = env_seal,
			.inject = env_inject,
			.close = env_close,
		};

		if (err < 0 && variants[i].env.family == AF_INET6) {
			printf("%s: skipped: no network namespace (%s), and ::1 is one address\n",
			       variants[i].name, strerror(-err));
			continue;
		}
		failed += conformance_run(&env);
	}
	return failed;
}
