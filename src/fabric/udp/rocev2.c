/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocev2 mode: numbers of a QP's transport QPs, connecting, hosts, and what an ICRC covers.
 * Knows nothing of sockets' options and of who sends what when.
 */
#include "fabric/udp/udp_int.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t udp_rocev2_payload(uint32_t bytes)
{
	uint32_t payload = 4096;

	while (payload > bytes && payload > 256)
		payload /= 2;
	return payload;
}

int udp_rocev2_open(struct udp_fabric *f)
{
	uint64_t seed = 0;
	int err;

	if ((f->attr.listen_port != 0 && f->attr.listen_port != FABRIC_ROCEV2_PORT) ||
	    f->max_payload < FABRIC_ROCEV2_PAYLOAD_MIN)
		return -EINVAL;
	f->max_payload = udp_rocev2_payload(f->max_payload);
	f->attr.listen_port = FABRIC_ROCEV2_PORT;
	f->attr.listen = true;
	/* Keys are on the wire for all who could forge a packet: they must differ, no more. */
	err = rng_secret(&seed, sizeof(seed));
	rng_init(&f->rng, seed);
	return err;
}

static bool is_taken(const struct fabric_local *local, uint32_t qpn)
{
	bool taken = local->qpn == qpn;

	for (uint32_t i = 0; i < FABRIC_DATA_QPS; i++)
		taken |= local->data_qpn[i] == qpn;
	return taken;
}

/* All of a QP's numbers have its index in their low bits, so each of them finds it. */
static int number_draw(const struct udp_fabric *f, uint32_t index, const struct fabric_local *taken,
		       uint32_t *out)
{
	uint32_t qpn;
	int err;

	do
		err = udp_qpn_draw(f, index, &qpn);
	while (err == 0 && is_taken(taken, qpn));
	*out = qpn;
	return err;
}

int udp_rocev2_qp_init(struct udp_fabric *f, struct udp_qp *qp, uint32_t index,
		       struct rx_table *table)
{
	struct fabric_local local = {0};
	int err = number_draw(f, index, &local, &local.qpn);

	for (uint32_t g = 0; g < FABRIC_MAX_GENERATIONS; g++)
		for (uint32_t c = 0; c < qp->channels && err == 0; c++) {
			uint32_t which = fabric_data_qp(g, c);

			err = number_draw(f, index, &local, &local.data_qpn[which]);
			qp->wire_psn[which] = qp->start_psn;
		}
	qp->ctrl_psn = qp->start_psn;
	deliver_qp_init_rocev2(&qp->rx, &local, table);
	return err;
}

static int host_get(struct udp_fabric *f, const struct udp_addr *addr, struct udp_host **out)
{
	struct udp_host *host = f->hosts;

	while (host && !udp_addr_same_ip(&host->addr, addr))
		host = host->next;
	if (host == NULL) {
		host = calloc(1, sizeof(*host));
		if (host == NULL)
			return -ENOMEM;
		host->addr = *addr;
		host->next = f->hosts;
		f->hosts = host;
	}
	host->refs++;
	*out = host;
	return 0;
}

static void host_put(struct udp_fabric *f, struct udp_host *host)
{
	struct udp_host **at = &f->hosts;

	if (--host->refs > 0)
		return;
	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	free(host);
}

/* Ours to check are what we send to; slots and generations are deliver_agree()'s. */
static int peer_check(const struct udp_qp *qp, const struct udp_addr *addr)
{
	const struct fabric_peer *peer = &qp->peer;

	if (udp_addr_is_any(addr) || peer->channels == 0 || peer->channels > qp->channels ||
	    peer->generations > FABRIC_MAX_GENERATIONS || peer->messages == 0 ||
	    peer->messages > wire_imm_max_slots(&wire_imm_10_18_4) ||
	    peer->payload_bytes != udp_rocev2_payload(peer->payload_bytes) ||
	    peer->payload_bytes < FABRIC_ROCEV2_PAYLOAD_MIN)
		return -EINVAL;
	for (uint32_t g = 0; g < peer->generations; g++)
		for (uint32_t c = 0; c < peer->channels; c++)
			if (peer->data_qpn[fabric_data_qp(g, c)] == 0)
				return -EINVAL;
	return 0;
}

/* The address is the peer's. */
static int connect_to(struct udp_fabric *f, struct udp_qp *qp, const struct udp_addr *addr)
{
	const struct deliver_rocev2 agreed = {.channels = qp->peer.channels,
					      .generations = qp->peer.generations,
					      .messages = qp->peer.messages,
					      .keys = qp->keys};
	struct udp_host *host;
	int err = host_get(f, addr, &host);

	if (err < 0)
		return err;
	err = udp_paths_connect(f, qp, addr, qp->peer.channels);
	if (err == 0)
		err = deliver_agree(&qp->rx, &agreed);
	if (err < 0) {
		udp_paths_drop(f, qp);
		host_put(f, host);
		return err;
	}
	/* Pairs with udp_rocev2_host. From here on packets are heard. */
	atomic_store_explicit(&qp->host, host, memory_order_release);
	return 0;
}

int udp_rocev2_connect(struct udp_fabric *f, struct udp_qp *qp)
{
	struct udp_addr addr;
	int err;

	udp_addr_from(&addr, (const struct sockaddr *)&qp->peer.addr);
	addr.port = FABRIC_ROCEV2_PORT;
	/* Of a link-local address the peer knows its own interface's number, not ours. */
	if (addr.scope != 0 && f->bind_addr.scope != 0)
		addr.scope = f->bind_addr.scope;
	err = peer_check(qp, &addr);
	if (err < 0)
		return err;
	qp->keys = calloc(qp->peer.messages, sizeof(*qp->keys));
	if (qp->keys == NULL)
		return -ENOMEM;
	err = connect_to(f, qp, &addr);
	if (err < 0) {
		free(qp->keys);
		qp->keys = NULL;
	}
	return err;
}

void udp_rocev2_qp_fini(struct udp_fabric *f, struct udp_qp *qp)
{
	struct udp_host *host = atomic_load_explicit(&qp->host, memory_order_relaxed);

	if (host)
		host_put(f, host);
	free(qp->keys);
}

void udp_rocev2_flow(struct wire_icrc_flow *flow, const struct udp_addr *from,
		     const struct udp_addr *to, uint16_t to_port)
{
	if (udp_addr_is_v4(from))
		wire_icrc_flow_v4(flow, from->ip + 12, to->ip + 12, from->port, to_port, true);
	else
		wire_icrc_flow_v6(flow, from->ip, to->ip, from->port, to_port);
}

struct udp_host *udp_rocev2_host(const struct udp_qp *qp, const struct udp_addr *from)
{
	struct udp_host *host = atomic_load_explicit(&qp->host, memory_order_acquire);

	return host && udp_addr_same_ip(&host->addr, from) ? host : NULL;
}
