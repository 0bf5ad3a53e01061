/* SPDX-License-Identifier: Apache-2.0 */
/* Finding RDMA devices, ports and GIDs. Contract: find.h. */
#include "fabric/verbs/find.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Appends to a text that may be full. */
__attribute__((format(printf, 3, 4))) static void say(char *why, size_t len, const char *fmt, ...)
{
	size_t at = strnlen(why, len);
	va_list ap;

	if (at >= len)
		return;
	va_start(ap, fmt);
	vsnprintf(why + at, len - at, fmt, ap);
	va_end(ap);
}

/* GIDs and addresses. */

static bool is_v4(const uint8_t raw[16])
{
	return memcmp(raw, v4_mapped, sizeof(v4_mapped)) == 0;
}

bool verbs_gid_is_link_local(const uint8_t raw[16])
{
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

void verbs_gid_text(const uint8_t raw[16], char buf[VERBS_GID_TEXT])
{
	if (is_v4(raw))
		inet_ntop(AF_INET, raw + 12, buf, VERBS_GID_TEXT);
	else
		inet_ntop(AF_INET6, raw, buf, VERBS_GID_TEXT);
}

void verbs_gid_to_addr(const struct verbs_gid *gid, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (is_v4(gid->raw)) {
		struct sockaddr_in sin = {.sin_family = AF_INET};

		memcpy(&sin.sin_addr, gid->raw + 12, 4);
		memcpy(out, &sin, sizeof(sin));
	} else {
		struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};

		memcpy(&sin6.sin6_addr, gid->raw, 16);
		if (verbs_gid_is_link_local(gid->raw))
			sin6.sin6_scope_id = gid->ifindex;
		memcpy(out, &sin6, sizeof(sin6));
	}
}

bool verbs_gid_from_addr(const struct sockaddr *sa, uint8_t raw[16])
{
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in sin;

		memcpy(&sin, sa, sizeof(sin));
		memcpy(raw, v4_mapped, sizeof(v4_mapped));
		memcpy(raw + 12, &sin.sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 sin6;

		memcpy(&sin6, sa, sizeof(sin6));
		memcpy(raw, &sin6.sin6_addr, 16);
	} else {
		return false;
	}
	return true;
}

/* A numeric address; a scope ("%eth0") is not part of a GID and is cut off. */
static bool gid_parse(const char *text, uint8_t raw[16])
{
	char bare[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "%");

	if (len >= sizeof(bare))
		return false;
	memcpy(bare, text, len);
	bare[len] = '\0';
	memcpy(raw, v4_mapped, sizeof(v4_mapped));
	return inet_pton(AF_INET, bare, raw + 12) == 1 || inet_pton(AF_INET6, bare, raw) == 1;
}

static bool is_any(const uint8_t raw[16])
{
	static const uint8_t zero[16];

	return memcmp(raw, zero, 16) == 0 || (is_v4(raw) && memcmp(raw + 12, zero, 4) == 0);
}

/* 0.0.0.0 and :: stand for all addresses of their family. */
static bool carries(const struct verbs_gid *gid, const uint8_t addr[16])
{
	if (is_any(addr))
		return is_v4(addr) == is_v4(gid->raw);
	return memcmp(addr, gid->raw, 16) == 0;
}

/* Choosing. */

static const char *type_text(enum verbs_gid_type type)
{
	static const char *const text[] = {"InfiniBand", "RoCE v1", "RoCE v2"};

	return text[type];
}

static void say_gids(const struct verbs_port *port, char *why, size_t len)
{
	char text[VERBS_GID_TEXT];

	say(why, len, "; its GIDs:");
	if (port->ngids == 0)
		say(why, len, " none (give its network interface an address: ip addr add ...)");
	for (uint32_t i = 0; i < port->ngids; i++) {
		verbs_gid_text(port->gid[i].raw, text);
		say(why, len, "%s index %u, %s, %s", i ? ";" : "", port->gid[i].index,
		    type_text(port->gid[i].type), text);
	}
}

/* The higher, the better; 0: not to be used unasked. */
static int preference(const struct verbs_gid *gid)
{
	if (gid->type != VERBS_GID_ROCE_V2 || is_any(gid->raw))
		return 0;
	if (is_v4(gid->raw))
		return 3;
	return verbs_gid_is_link_local(gid->raw) ? 1 : 2;
}

static const struct verbs_gid *gid_by_index(const struct verbs_port *port, uint32_t index,
					    const uint8_t *addr, char *why, size_t why_len)
{
	const struct verbs_gid *gid = NULL;

	for (uint32_t i = 0; i < port->ngids; i++)
		if (port->gid[i].index == index)
			gid = &port->gid[i];
	if (gid == NULL)
		say(why, why_len, "device %s port %u: there is no GID index %u", port->device,
		    port->port, index);
	else if (gid->type != VERBS_GID_ROCE_V2)
		say(why, why_len, "device %s port %u: GID index %u is of type %s, not RoCE v2",
		    port->device, port->port, index, type_text(gid->type));
	else if (addr && !carries(gid, addr))
		say(why, why_len, "device %s port %u: GID index %u is of another address",
		    port->device, port->port, index);
	else
		return gid;
	say_gids(port, why, why_len);
	return NULL;
}

const struct verbs_gid *verbs_gid_choose(const struct verbs_port *port,
					 const struct verbs_want *want, char *why, size_t why_len)
{
	const struct verbs_gid *best = NULL;
	uint8_t raw[16];

	if (want->bind_addr && !gid_parse(want->bind_addr, raw)) {
		say(why, why_len, "\"%s\" is not a numeric IP address", want->bind_addr);
		return NULL;
	}
	if (want->gid_index_set)
		return gid_by_index(port, want->gid_index, want->bind_addr ? raw : NULL, why,
				    why_len);
	for (uint32_t i = 0; i < port->ngids; i++) {
		const struct verbs_gid *gid = &port->gid[i];

		if (preference(gid) == 0 || (want->bind_addr && !carries(gid, raw)))
			continue;
		if (best == NULL || preference(gid) > preference(best))
			best = gid;
	}
	if (best)
		return best;
	if (want->bind_addr)
		say(why, why_len, "device %s port %u has no RoCE v2 GID for the address %s",
		    port->device, port->port, want->bind_addr);
	else
		say(why, why_len, "device %s port %u has no RoCE v2 GID", port->device, port->port);
	say_gids(port, why, why_len);
	return NULL;
}

/* 0, or -errno and why: all but the GID. */
static int port_fit(const struct verbs_port *p, char *why, size_t why_len)
{
	if (!p->has_uc && p->uc_err != -EOPNOTSUPP && p->uc_err != -EINVAL &&
	    p->uc_err != -ENOSYS) {
		char lock[256] = "";

		if (p->uc_err == -ENOMEM)
			verbs_memlock_text(lock, sizeof(lock));
		say(why, why_len, "device %s cannot be used: %s%s%s%s", p->device,
		    strerror(-p->uc_err), lock[0] ? "; " : "", lock,
		    p->uc_err == -EACCES || p->uc_err == -EPERM
			    ? " (may this user open /dev/infiniband/uverbs*?)"
			    : "");
		return p->uc_err;
	}
	if (!p->has_uc) {
		say(why, why_len,
		    "device %s has no UC queue pairs (%s): mlx5, mlx4, mthca and Soft-RoCE have; "
		    "use --device udp on its network interface",
		    p->device, strerror(-p->uc_err));
		return -EOPNOTSUPP;
	}
	if (!p->ethernet) {
		say(why, why_len,
		    "device %s port %u is InfiniBand; RoCE v2 is needed: use --device udp over "
		    "IPoIB",
		    p->device, p->port);
		return -EOPNOTSUPP;
	}
	if (!p->active) {
		say(why, why_len,
		    "device %s port %u is %s: bring its network interface up (`rdma link` names "
		    "it, `ip link set NAME up`)",
		    p->device, p->port, p->state);
		return -ENETDOWN;
	}
	if (p->mtu < 1024) {
		say(why, why_len,
		    "device %s port %u has a path MTU of %u bytes, and at least 1024 are needed: "
		    "ip link set NAME mtu 1500",
		    p->device, p->port, p->mtu);
		return -EMSGSIZE;
	}
	return 0;
}

static void say_devices(const struct verbs_port *list, size_t n, char *why, size_t why_len)
{
	for (size_t i = 0; i < n; i++)
		say(why, why_len, "%s%s port %u", i ? ", " : "", list[i].device, list[i].port);
}

int verbs_choose(const struct verbs_port *list, size_t n, const struct verbs_want *want,
		 const struct verbs_port **port, const struct verbs_gid **gid, char *why,
		 size_t why_len)
{
	int err = -ENODEV;
	bool any = false;

	if (why_len)
		why[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const struct verbs_port *p = &list[i];
		int rc;

		if ((want->device && strcmp(want->device, p->device) != 0) ||
		    (want->port && want->port != p->port))
			continue;
		say(why, why_len, "%s", any ? "; " : "");
		rc = port_fit(p, why, why_len);
		*port = p;
		if (rc == 0) {
			*gid = verbs_gid_choose(p, want, why, why_len);
			rc = *gid ? 0 : -EADDRNOTAVAIL;
		}
		if (rc == 0) {
			if (why_len)
				why[0] = '\0';
			return 0;
		}
		err = any ? err : rc; /* the first reason is the one that counts */
		any = true;
	}
	if (any)
		return err;
	if (n == 0) {
		say(why, why_len,
		    "there is no RDMA device on this host: load its driver (mlx5_ib), or make a "
		    "Soft-RoCE one (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NAME), "
		    "or "
		    "use --device udp");
		return -ENODEV;
	}
	if (want->device && want->port)
		say(why, why_len,
		    "there is no port %u of an RDMA device %s; there is: ", want->port,
		    want->device);
	else if (want->device)
		say(why, why_len, "there is no RDMA device %s; there is: ", want->device);
	else
		say(why, why_len, "no RDMA device has a port %u; there is: ", want->port);
	say_devices(list, n, why, why_len);
	return -ENODEV;
}

/* Looking. */

static int neg(int err)
{
	return err > 0 ? -err : err < 0 ? err : -EIO;
}

/* Makes a UC queue pair, to see whether it can be: 0 or -errno. */
static int try_uc(struct ibv_context *ctx)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = NULL;
	struct ibv_qp *qp;
	int err = 0;

	if (pd == NULL)
		return neg(errno);
	cq = ibv_create_cq(ctx, 2, NULL, NULL, 0);
	if (cq == NULL) {
		err = neg(errno);
	} else {
		attr.send_cq = attr.recv_cq = cq;
		qp = ibv_create_qp(pd, &attr);
		if (qp == NULL)
			err = neg(errno);
		else
			ibv_destroy_qp(qp);
		ibv_destroy_cq(cq);
	}
	ibv_dealloc_pd(pd);
	return err;
}

static const char *state_text(enum ibv_port_state state)
{
	static const char *const text[] = {"in no state", "DOWN",   "INIT",
					   "ARMED",	  "ACTIVE", "in ACTIVE_DEFER"};

	return (unsigned int)state < sizeof(text) / sizeof(text[0]) ? text[state] : "?";
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static void gid_add(struct verbs_port *p, const struct ibv_gid_entry *entry)
{
	struct verbs_gid *gid = &p->gid[p->ngids];

	/* An address vector has 8 bits for the index. */
	if (entry->port_num != p->port || entry->gid_index > UINT8_MAX ||
	    p->ngids == VERBS_MAX_GIDS)
		return;
	gid->index = entry->gid_index;
	gid->type = entry->gid_type == IBV_GID_TYPE_ROCE_V2   ? VERBS_GID_ROCE_V2
		    : entry->gid_type == IBV_GID_TYPE_ROCE_V1 ? VERBS_GID_ROCE_V1
							      : VERBS_GID_IB;
	memcpy(gid->raw, entry->gid.raw, 16);
	gid->ifindex = entry->ndev_ifindex;
	p->ngids++;
}

/* The table at once; one by one where it has more entries than that call can carry. */
static void look_gids(struct ibv_context *ctx, uint32_t table_len, struct verbs_port *p)
{
	const size_t max = 1024; /* its size in bytes goes into 16 bits */
	struct ibv_gid_entry *table = calloc(max, sizeof(*table));
	ssize_t n;

	if (table == NULL)
		return;
	n = ibv_query_gid_table(ctx, table, max, 0);
	for (ssize_t i = 0; i < n; i++)
		gid_add(p, &table[i]);
	for (uint32_t i = 0; n < 0 && i < table_len; i++)
		if (ibv_query_gid_ex(ctx, p->port, i, &table[0], 0) == 0)
			gid_add(p, &table[0]);
	free(table);
}

static void look_port(struct ibv_context *ctx, struct verbs_port *p)
{
	struct ibv_port_attr attr;

	p->state = "unknown";
	if (ibv_query_port(ctx, (uint8_t)p->port, &attr) != 0)
		return;
	p->active = attr.state == IBV_PORT_ACTIVE;
	p->state = state_text(attr.state);
	p->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	p->mtu = mtu_bytes(attr.active_mtu);
	p->max_mtu = mtu_bytes(attr.max_mtu);
	look_gids(ctx, attr.gid_tbl_len > 0 ? (uint32_t)attr.gid_tbl_len : 0, p);
}

/* One more at the end of the list; NULL: no memory. */
static struct verbs_port *list_add(struct verbs_port **list, int *n, const char *name,
				   uint32_t port)
{
	struct verbs_port *bigger = realloc(*list, ((size_t)*n + 1) * sizeof(**list));
	struct verbs_port *p;

	if (bigger == NULL)
		return NULL;
	*list = bigger;
	p = &bigger[(*n)++];
	memset(p, 0, sizeof(*p));
	snprintf(p->device, sizeof(p->device), "%s", name);
	p->port = port;
	p->state = "unknown";
	return p;
}

static int look_device(struct ibv_device *device, struct verbs_port **list, int *n)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_device_attr dev = {.phys_port_cnt = 1};
	int uc_err = 0, err = 0;

	if (ctx == NULL)
		uc_err = neg(errno);
	else if (ibv_query_device(ctx, &dev) != 0)
		uc_err = -EIO;
	else
		uc_err = try_uc(ctx);
	for (uint32_t port = 1; port <= dev.phys_port_cnt && err == 0; port++) {
		struct verbs_port *p = list_add(list, n, name, port);

		if (p == NULL) {
			err = -ENOMEM;
			break;
		}
		p->uc_err = uc_err;
		p->has_uc = uc_err == 0;
		if (ctx)
			look_port(ctx, p);
	}
	if (ctx)
		ibv_close_device(ctx);
	return err;
}

int verbs_fabric_list(struct verbs_port **out)
{
	struct ibv_device **devices;
	int count = 0, n = 0, err = 0;

	*out = NULL;
	(void)ibv_fork_init(); /* it has to come first, or it is too late for this process */
	devices = ibv_get_device_list(&count);
	if (devices == NULL) /* ENOSYS: the kernel has no RDMA at all */
		return errno == ENOSYS || errno == ENOENT ? 0 : neg(errno);
	for (int i = 0; i < count && err == 0; i++)
		err = look_device(devices[i], out, &n);
	ibv_free_device_list(devices);
	if (err < 0) {
		verbs_list_free(*out);
		*out = NULL;
		return err;
	}
	return n;
}

void verbs_list_free(struct verbs_port *list)
{
	free(list);
}

void verbs_memlock_text(char *buf, size_t len)
{
	struct rlimit lim = {0, 0};
	char now[32] = "unlimited";

	(void)getrlimit(RLIMIT_MEMLOCK, &lim);
	if (lim.rlim_cur != RLIM_INFINITY)
		snprintf(now, sizeof(now), "%llu KiB", (unsigned long long)lim.rlim_cur / 1024);
	snprintf(buf, len,
		 "RDMA memory is locked, and this process may lock %s (ulimit -l): `ulimit -l "
		 "unlimited`, `docker run --ulimit memlock=-1`, or \"* - memlock unlimited\" in "
		 "/etc/security/limits.conf",
		 now);
}
