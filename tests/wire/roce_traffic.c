/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic of two rocev2 devices in two network namespaces, for somebody who listens between
 * them (roce_capture.py):
 *
 *	roce_traffic NETNS_A ADDR_A NETNS_B ADDR_B
 *
 * One process: a socket stays in the namespace in which it was opened. Compares what arrives,
 * and prints how many data and control packets each end sent.
 */
#include "fabric/udp/test_util.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHANNELS 2u
#define PAYLOAD 1024u

static const char *const *args; /* NETNS_A ADDR_A NETNS_B ADDR_B */

static void enter(int which)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", args[2 * which]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		fail_msg("network namespace %s: %s", path, strerror(errno));
	close(fd);
}

static struct fabric_peer peer_of(const struct end *e)
{
	struct fabric_local local;
	struct fabric_peer peer = {.payload_bytes = PAYLOAD,
				   .channels = CHANNELS,
				   .generations = FABRIC_MAX_GENERATIONS,
				   .messages = TEST_SLOTS};

	e->f->ops->qp_local(e->qp, &local);
	peer.qpn = local.qpn;
	peer.start_psn = local.start_psn;
	peer.addr = local.addr;
	memcpy(peer.data_qpn, local.data_qpn, sizeof(peer.data_qpn));
	return peer;
}

/* Both ways: messages of every generation, of full and short packets, and control. */
static void traffic(void **state)
{
	struct end e[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct udp_fabric_attr attr = {.rocev2 = true, .bind_addr = args[2 * i + 1]};

		enter(i);
		end_open(&e[i], &attr, CHANNELS);
	}
	for (int i = 0; i < 2; i++) {
		struct fabric_peer peer = peer_of(&e[!i]);

		enter(i);
		assert_int_equal(e[i].f->ops->qp_connect(e[i].qp, &peer), 0);
	}
	for (uint32_t m = 0; m < FABRIC_MAX_GENERATIONS; m++)
		for (int i = 0; i < 2; i++)
			transfer(&e[i], &e[!i], m * (TEST_SLOTS + 1), 100 * PAYLOAD - m, PAYLOAD,
				 CHANNELS);
	for (uint32_t len = 0; len <= FABRIC_ROCEV2_CTRL_MAX; len += 127)
		for (int i = 0; i < 2; i++) {
			static const uint8_t body[FABRIC_ROCEV2_CTRL_MAX] = {1, 2, 3, 4, 5};
			unsigned int had = e[!i].seen[FABRIC_EV_CTRL];

			assert_int_equal(e[i].f->ops->ctrl(e[i].qp, len % CHANNELS, 0, body, len),
					 0);
			while (e[!i].seen[FABRIC_EV_CTRL] == had)
				end_poll(&e[!i]);
		}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(end_counter(&e[i], SDR_CTR_gso_fallback), 0);
		assert_int_equal(end_counter(&e[i], SDR_CTR_rx_protection), 0);
		printf("sent %u %u\n", (unsigned int)end_counter(&e[i], SDR_CTR_tx_pkts),
		       (unsigned int)end_counter(&e[i], SDR_CTR_tx_ctrl));
		end_close(&e[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(traffic)};

	if (argc != 5) {
		fprintf(stderr, "usage: roce_traffic NETNS_A ADDR_A NETNS_B ADDR_B\n");
		return 2;
	}
	args = (const char *const *)argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
