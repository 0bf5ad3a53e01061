/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite that every fabric passes, over loopback: both families, with and without
 * workers, with and without segmentation offload.
 */
#include "fabric/conformance.h"
#include "fabric/udp/udp.h"
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct env {
	struct udp_fabric_attr attr;
	int family;
	struct fabric *f[2];
};

static int env_open(void *arg, struct fabric *f[2])
{
	struct env *env = arg;
	struct udp_fabric_attr attr = env->attr;
	int err;

	attr.bind_addr = env->family == AF_INET ? "127.0.0.1" : "::1";
	err = udp_fabric_open(&attr, &env->f[0]);
	if (err < 0)
		return err;
	attr.listen = true;
	err = udp_fabric_open(&attr, &env->f[1]);
	if (err < 0)
		env->f[0]->ops->close(env->f[0]);
	f[0] = env->f[0];
	f[1] = env->f[1];
	return err;
}

static void env_addr(void *arg, struct sockaddr_storage *out)
{
	struct env *env = arg;
	struct fabric_caps caps;

	env->f[1]->ops->caps(env->f[1], &caps);
	memset(out, 0, sizeof(*out));
	if (env->family == AF_INET) {
		struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(caps.udp_port)};

		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memcpy(out, &sin, sizeof(sin));
	} else {
		struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
					    .sin6_port = htons(caps.udp_port)};

		sin6.sin6_addr = in6addr_loopback;
		memcpy(out, &sin6, sizeof(sin6));
	}
}

static void env_pass(void *arg)
{
	struct env *env = arg;

	for (int i = 0; i < 2; i++)
		env->f[i]->ops->wait(env->f[i], env->f[i]->ops->now_ns(env->f[i]) + 100000);
}

static void env_inject(void *arg, const void *bytes, size_t len)
{
	struct env *env = arg;
	int fd = socket(env->family, SOCK_DGRAM, 0);
	struct sockaddr_storage ss;
	socklen_t ss_len =
		env->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	env_addr(arg, &ss);
	if (sendto(fd, bytes, len, 0, (struct sockaddr *)&ss, ss_len) < 0)
		perror("inject");
	close(fd);
}

static void env_close(void *arg)
{
	struct env *env = arg;

	env->f[0]->ops->close(env->f[0]);
	env->f[1]->ops->close(env->f[1]);
}

int main(void)
{
	static struct {
		const char *name;
		struct env env;
	} variants[] = {
		{"udp, IPv4", {.family = AF_INET}},
		{"udp, IPv6", {.family = AF_INET6}},
		{"udp, IPv4, two workers", {.family = AF_INET, .attr = {.workers = 2}}},
		{"udp, IPv6, two workers", {.family = AF_INET6, .attr = {.workers = 2}}},
		{"udp, IPv4, no GSO", {.family = AF_INET, .attr = {.no_gso = true}}},
		{"udp, IPv4, no GRO", {.family = AF_INET, .attr = {.no_gro = true}}},
		{"udp, IPv4, neither",
		 {.family = AF_INET, .attr = {.no_gso = true, .no_gro = true}}},
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		const struct conformance_env env = {
			.name = variants[i].name,
			.arg = &variants[i].env,
			.settle_ns = 20000000,
			.open = env_open,
			.addr = env_addr,
			.pass = env_pass,
			.inject = env_inject,
			.close = env_close,
		};

		failed += conformance_run(&env);
	}
	return failed;
}
