/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices by name: "udp" and "roce" on sockets, "verbs" and "verbs:NAME" on RDMA devices. A
 * build without libibverbs says so when it is asked for one. Knows nothing of contexts.
 */
#include "sdk/device.h"
#include "base/bits.h"
#include "fabric/udp/udp.h"
#ifdef SDR_HAVE_VERBS
#include "fabric/verbs/find.h"
#include "fabric/verbs/verbs.h"
#endif
#include "wire/wire.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERBS_NAME "verbs"

static void why(const struct sdr_ctx_attr *attr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void why(const struct sdr_ctx_attr *attr, const char *fmt, ...)
{
	va_list args;

	if (!attr->why || !attr->why_len)
		return;
	va_start(args, fmt);
	(void)vsnprintf(attr->why, attr->why_len, fmt, args);
	va_end(args);
}

/* What RoCEv2 packets carry is a path MTU: the largest one within the bound; 0: any. */
static int path_mtu(const struct sdr_ctx_attr *attr, uint32_t *payload)
{
	uint32_t mtu = FABRIC_ROCEV2_PAYLOAD_MIN;

	*payload = 0;
	if (!attr->max_payload_bytes)
		return 0;
	if (attr->max_payload_bytes < mtu) {
		why(attr,
		    "a largest payload of %u bytes: RoCEv2 packets carry a path MTU, 1024, 2048 or "
		    "4096 bytes: allow at least %u, or use device \"udp\"",
		    attr->max_payload_bytes, mtu);
		return -EINVAL;
	}
	while (mtu < FABRIC_ROCEV2_PAYLOAD_MAX && 2 * mtu <= attr->max_payload_bytes)
		mtu *= 2;
	*payload = mtu;
	return 0;
}

static int bind_addr_parse(const char *text, struct sockaddr_storage *out)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *ai;

	memset(out, 0, sizeof(*out));
	if (!text)
		return 0;
	if (getaddrinfo(text, NULL, &hints, &ai)) /* it may have a scope: fe80::1%eth0 */
		return -EINVAL;
	memcpy(out, ai->ai_addr, u64_min(ai->ai_addrlen, sizeof(*out)));
	freeaddrinfo(ai);
	return 0;
}

static int sockets_open(const struct sdr_ctx_attr *attr, bool rocev2, struct fabric **out)
{
	struct udp_fabric_attr udp = {
		.bind_addr = attr->bind_addr,
		.listen = attr->listen,
		.listen_port = rocev2 ? 0 : attr->port,
		.workers = attr->workers,
		.sockbuf_bytes = attr->sockbuf_bytes,
		.max_qps = attr->max_qps,
		.no_gso = attr->no_gso,
		.no_gro = attr->no_gro,
		.max_payload = attr->max_payload_bytes,
		.rocev2 = rocev2,
	};
	int err = rocev2 ? path_mtu(attr, &udp.max_payload) : 0;

	if (!err)
		err = udp_fabric_open(&udp, out);
	if (err == -EADDRINUSE && rocev2)
		why(attr,
		    "UDP port %u is taken: RoCEv2 has no other, and one process an address can "
		    "have it. Soft-RoCE in this kernel ('rdma link') or another device \"roce\" "
		    "owns it: give another address (--bind), or use device \"verbs\"",
		    FABRIC_ROCEV2_PORT);
	return err;
}

#ifdef SDR_HAVE_VERBS

static int verbs_open(const struct sdr_ctx_attr *attr, const char *name, struct fabric **out)
{
	struct verbs_fabric_attr verbs = {
		.device = name,
		.bind_addr = attr->bind_addr,
		.max_qps = attr->max_qps,
	};
	int err = path_mtu(attr, &verbs.max_payload);

	if (err)
		return err;
	return verbs_fabric_open(&verbs, out, attr->why, attr->why ? attr->why_len : 0);
}

#else

static int verbs_open(const struct sdr_ctx_attr *attr, const char *name, struct fabric **out)
{
	(void)name;
	(void)out;
	why(attr, "this build has no RDMA devices: install libibverbs-dev and build again, or use "
		  "device \"udp\"");
	return -ENODEV;
}

#endif

int device_open(const struct sdr_ctx_attr *attr, struct fabric **out,
		struct sockaddr_storage *local)
{
	const char *name = attr->device ? attr->device : "udp";
	size_t verbs = strlen(VERBS_NAME);
	int err = bind_addr_parse(attr->bind_addr, local);

	if (err) {
		why(attr,
		    "\"%s\" is not a numeric IP address: give one of this host's, or none for any",
		    attr->bind_addr);
		return err;
	}
	if (strcmp(name, "udp") == 0)
		return sockets_open(attr, false, out);
	if (strcmp(name, "roce") == 0)
		return sockets_open(attr, true, out);
	if (strcmp(name, VERBS_NAME) == 0)
		return verbs_open(attr, NULL, out);
	if (strncmp(name, VERBS_NAME ":", verbs + 1) == 0 && name[verbs + 1])
		return verbs_open(attr, name + verbs + 1, out);
	why(attr, "device \"%s\": there is none of that name: udp, roce, verbs, or verbs:NAME",
	    name);
	return -ENODEV;
}

/* ---- listing ---- */

static void entry_put(struct sdr_device_info *list, size_t max, int at,
		      const struct sdr_device_info *info)
{
	size_t size;

	if (!list || (size_t)at >= max)
		return;
	size = list[0].size;
	/* Entries lie `size` apart, which may not be what we think it is. */
	memcpy((char *)list + (size_t)at * size, info, u64_min(size, sizeof(*info)));
	memcpy((char *)list + (size_t)at * size, &size, sizeof(size));
}

#ifdef SDR_HAVE_VERBS

/* Ports with UC, whether active or not, from entry n on; how many. */
static int verbs_list(struct sdr_device_info *list, size_t max, int n)
{
	struct verbs_port *port = NULL;
	int ports = verbs_fabric_list(&port), found = 0;

	for (int i = 0; i < ports; i++) {
		struct sdr_device_info info = {
			.caps = SDR_CAP_ROCEV2 | SDR_CAP_ZERO_COPY | SDR_CAP_SILENT_LATE,
			.max_channels = SDR_MAX_CHANNELS,
			.max_payload_bytes =
				(uint32_t)u64_min(port[i].mtu, FABRIC_ROCEV2_PAYLOAD_MAX),
		};

		if (!port[i].has_uc || !port[i].ethernet)
			continue;
		(void)snprintf(info.name, sizeof(info.name), VERBS_NAME ":%s", port[i].device);
		(void)snprintf(info.description, sizeof(info.description),
			       "RDMA device %s, port %u, %s, MTU %u", port[i].device, port[i].port,
			       port[i].state, port[i].mtu);
		entry_put(list, max, n + found++, &info);
	}
	if (ports > 0)
		verbs_list_free(port);
	return found;
}

#else

static int verbs_list(struct sdr_device_info *list, size_t max, int n)
{
	(void)list;
	(void)max;
	(void)n;
	return 0;
}

#endif

int sdr_device_list(struct sdr_device_info *list, size_t max)
{
	const struct sdr_device_info udp = {
		.name = "udp",
		.description = "RoCEv2-form endpoint in user space over UDP sockets",
		.caps = SDR_CAP_NO_REWRITE | SDR_CAP_WORKERS,
		.max_channels = SDR_MAX_CHANNELS,
		.max_payload_bytes =
			WIRE_BLOB_MAX_PAYLOAD - WIRE_DATA_HDR_BYTES - WIRE_TRAILER_BYTES - 28,
	};
	const struct sdr_device_info roce = {
		.name = "roce",
		.description = "RoCEv2 endpoint in user space: its peers are RDMA devices",
		.caps = SDR_CAP_NO_REWRITE | SDR_CAP_WORKERS | SDR_CAP_ROCEV2,
		.max_channels = SDR_MAX_CHANNELS,
		.max_payload_bytes = FABRIC_ROCEV2_PAYLOAD_MAX,
	};
	int n = 0;

	entry_put(list, max, n++, &udp);
	entry_put(list, max, n++, &roce);
	return n + verbs_list(list, max, n);
}
