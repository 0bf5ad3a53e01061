/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite that every fabric passes, on two RDMA devices that reach each other: named by
 * SDR_VM_DEV_A and SDR_VM_DEV_B (rxe0 and rxe1 where they are not set), with the addresses
 * SDR_VM_A and SDR_VM_B, or their GIDs of each family. Skipped where there is no such device.
 */
#include "fabric/conformance.h"
#include "fabric/verbs/find.h"
#include "fabric/verbs/verbs.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct env {
	const char *device[2], *addr[2];
	struct verbs_fabric_attr attr;
	struct fabric *f[2];
	struct sockaddr_storage to;
};

static const char * or (const char *value, const char *fallback)
{
	return value && *value ? value : fallback;
}

static int env_open(void *arg, struct fabric *f[2])
{
	struct env *env = arg;
	char why[VERBS_WHY_MAX];

	for (int i = 0; i < 2; i++) {
		struct verbs_fabric_attr attr = env->attr;
		int err;

		attr.device = env->device[i];
		attr.bind_addr = env->addr[i];
		err = verbs_fabric_open(&attr, &env->f[i], why, sizeof(why));
		if (err < 0) {
			fprintf(stderr, "%s\n", why);
			if (i > 0)
				env->f[0]->ops->close(env->f[0]);
			return err;
		}
		f[i] = env->f[i];
	}
	return 0;
}

static void env_addr(void *arg, struct sockaddr_storage *out)
{
	(void)arg;
	(void)out; /* the peer said where it is: fabric_local.addr */
}

static void env_pass(void *arg)
{
	struct env *env = arg;

	env->f[1]->ops->wait(env->f[1], env->f[1]->ops->now_ns(env->f[1]) + 200000);
}

static void env_close(void *arg)
{
	struct env *env = arg;

	env->f[0]->ops->close(env->f[0]);
	env->f[1]->ops->close(env->f[1]);
}

static int run(struct env *env, const char *name)
{
	struct conformance_env cf = {
		.name = name,
		.arg = env,
		.settle_ns = 20000000,
		.open = env_open,
		.addr = env_addr,
		.pass = env_pass,
		.inject = NULL,
		.close = env_close,
	};

	return conformance_run(&cf);
}

/* Both devices are here and have a GID of that address. */
static bool usable(const struct env *env)
{
	struct verbs_port *list;
	int n = verbs_fabric_list(&list);
	bool all = n > 0;

	for (int i = 0; i < 2 && all; i++) {
		const struct verbs_want want = {.device = env->device[i],
						.bind_addr = env->addr[i]};
		const struct verbs_port *port;
		const struct verbs_gid *gid;
		char why[VERBS_WHY_MAX];

		if (verbs_choose(list, (size_t)n, &want, &port, &gid, why, sizeof(why)) < 0) {
			printf("skipped: %s\n", why);
			all = false;
		}
	}
	if (n == 0)
		printf("skipped: there is no RDMA device here\n");
	verbs_list_free(list);
	return all;
}

int main(void)
{
	struct env wide = {.device = { or (getenv("SDR_VM_DEV_A"), "rxe0"),
				       or (getenv("SDR_VM_DEV_B"), "rxe1")},
			   .addr = { or (getenv("SDR_VM_A"), NULL), or (getenv("SDR_VM_B"), NULL)}};
	struct env narrow = wide;
	int failed = 0;

	if (getenv("SDR_VM_A6") && getenv("SDR_VM_B6")) {
		narrow.addr[0] = getenv("SDR_VM_A6");
		narrow.addr[1] = getenv("SDR_VM_B6");
	}
	narrow.attr.rq_depth = VERBS_MIN_RQ_DEPTH;
	narrow.attr.sq_depth = FABRIC_RUN_MAX;
	narrow.attr.bounce_bytes = FABRIC_RUN_MAX * 4096;
	if (!usable(&wide) || !usable(&narrow))
		return 77;
	failed += run(&wide, "verbs");
	failed += run(&narrow, "verbs, shortest queues, IPv6 where there is some");
	return failed > 0;
}
