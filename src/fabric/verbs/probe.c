/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test at open: on this device, with these keys, does a fence hold? Two QPs of the
 * device are connected to each other and write a few packets:
 *
 *	1. a write lands, in memory and bits;
 *	2. its message is fenced, and a late packet goes to its key;
 *	3. a good write of another message follows on the same queue pair, and so behind it: when it
 *	   has landed, the late one has been dealt with: no byte changed, nothing died, and with
 *	   keys that die nothing completed.
 *
 * A device that fails is refused. It takes a few milliseconds and leaves nothing behind.
 */
#include "fabric/verbs/verbs_int.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4u
#define PATIENCE_NS UINT64_C(2000000000)
#define AGAIN_NS UINT64_C(50000000) /* loopback loses nothing; a busy host may */
#define BEFORE 0x5a
#define SENT 0xc3

struct probe {
	struct verbs_fabric *f;
	struct fabric_qp *from, *to;
	struct rx_table table;
	struct rx_worker *worker;
	struct rx_slot *slots;
	uint8_t *mem; /* a payload to send, then one for each of two messages */
	struct fabric_key key[2];
	char *why;
	size_t why_len;
};

static int refuse(struct probe *p, const char *what)
{
	struct verbs_fabric *f = p->f;

	snprintf(p->why, p->why_len,
		 "device %s port %u, GID index %u, keys \"%s\": the self-test failed: %s; a device "
		 "that cannot keep late packets out of memory is not used: try --device udp",
		 f->device, f->port, f->gid.index, f->keys->name, what);
	return -EPROTO;
}

/* The test could not be made: that is another fault than failing it. */
static int no_test(const struct probe *p, int err)
{
	struct verbs_fabric *f = p->f;
	char lock[256] = "";

	if (err == -ENOMEM || err == -EPERM)
		verbs_memlock_text(lock, sizeof(lock));
	snprintf(p->why, p->why_len,
		 "device %s port %u, GID index %u, keys \"%s\": queue pairs for the self-test "
		 "cannot "
		 "be made, connected to each other and given memory: %s%s%s; or try --device udp",
		 f->device, f->port, f->gid.index, f->keys->name, strerror(-err),
		 lock[0] ? "; " : "", lock);
	return err;
}

static int connect_to(struct fabric_qp *qp, const struct fabric_qp *peer, uint32_t payload)
{
	struct fabric_local local;
	struct fabric_peer p = {
		.payload_bytes = payload, .channels = 1, .generations = 1, .messages = SLOTS};

	verbs_qp_local(peer, &local);
	p.qpn = local.qpn;
	p.token = local.token;
	p.start_psn = local.start_psn;
	p.addr = local.addr;
	memcpy(p.data_qpn, local.data_qpn, sizeof(p.data_qpn));
	return verbs_qp_connect(qp, &p);
}

static int set_up(struct probe *p)
{
	struct fabric_qp_attr attr = {.channels = 1, .table = &p->table};
	int err;

	p->worker = aligned_alloc(64, sizeof(*p->worker));
	p->slots = aligned_alloc(64, SLOTS * sizeof(*p->slots));
	p->mem = verbs_pages(3 * (size_t)p->f->payload);
	if (!p->worker || !p->slots || !p->mem)
		return -ENOMEM;
	rx_worker_init(p->worker);
	memset(p->slots, 0, SLOTS * sizeof(*p->slots));
	(void)rx_table_init(&p->table, p->slots, SLOTS, SLOTS - 1, p->worker, 1, RX_SINGLE_THREAD);
	memset(p->mem, SENT, p->f->payload);
	memset(p->mem + p->f->payload, BEFORE, 2 * (size_t)p->f->payload);
	err = verbs_qp_make(p->f, &attr, 1, &p->to);
	attr.table = NULL;
	if (err == 0)
		err = verbs_qp_make(p->f, &attr, 1, &p->from);
	if (err == 0)
		err = connect_to(p->to, p->from, p->f->payload);
	return err < 0 ? err : connect_to(p->from, p->to, p->f->payload);
}

static uint8_t *mem_of(const struct probe *p, uint32_t message)
{
	return p->mem + (1 + (size_t)message) * p->f->payload;
}

static int bind_one(struct probe *p, uint32_t message)
{
	struct fabric_bind b = {
		.rx = {.base = mem_of(p, message), .len = p->f->payload, .payload = p->f->payload}};

	b.rx.imm_frags = (uint8_t)wire_imm_fragments(fabric_imm_split(SLOTS));
	return verbs_bind(p->to, message, &b, &p->key[message]);
}

static int post(struct probe *p, uint32_t message)
{
	struct fabric_write w = {.qp = p->from,
				 .message = message,
				 .addr = p->mem,
				 .payload_bytes = p->f->payload,
				 .last_bytes = p->f->payload,
				 .count = 1,
				 .key = p->key[message]};

	return verbs_post(&p->f->base, &w, 1);
}

static bool all_of(const uint8_t *mem, size_t len, uint8_t value)
{
	return mem[0] == value && memcmp(mem, mem + 1, len - 1) == 0;
}

/* A write of this message goes, and lands, whatever is posted before it. */
static bool lands(struct probe *p, uint32_t message)
{
	uint64_t start_ns = verbs_now_ns(), again_ns = start_ns;
	uint64_t bit = 0;

	while (!bit && verbs_now_ns() - start_ns < PATIENCE_NS) {
		struct fabric_event ev;

		if (verbs_now_ns() >= again_ns) {
			if (post(p, message) < 0)
				return false;
			again_ns += AGAIN_NS;
		}
		(void)verbs_poll(&p->f->base, &ev, 1);
		rx_bits_get(rx_slot_of(&p->table, message), 0, 1, &bit);
	}
	return bit && all_of(mem_of(p, message), p->f->payload, SENT);
}

/* What the late packet must not have left. */
static int judge(struct probe *p)
{
	const struct verbs_qp *to = verbs_qp_of(p->to), *from = verbs_qp_of(p->from);
	const struct fabric_channel_facts *facts = &to->chan[0].facts;

	if (!all_of(mem_of(p, 0), p->f->payload, BEFORE))
		return refuse(p, "a packet that came after the fence was written into memory");
	if (p->f->counter[SDR_CTR_tx_errors] > 0 || to->dqp[0].dead || from->dqp[0].dead)
		return refuse(p, "a packet at a dead key ended its queue pair");
	if (p->f->keys->late_ns == 0 && facts->late_pkts > 0)
		return refuse(p, "a packet at a dead key completed");
	return 0;
}

static int run(struct probe *p)
{
	int err = set_up(p);

	if (err == 0)
		err = bind_one(p, 0);
	if (err == 0)
		err = bind_one(p, 1);
	if (err < 0) {
		return no_test(p, err);
	}
	if (!lands(p, 0))
		return refuse(p, "a write to itself did not land");
	verbs_fence_begin(p->to, 0);
	if (verbs_fence_done(p->to, 0) != 1)
		return refuse(p, "its memory could not be taken back");
	memset(mem_of(p, 0), BEFORE, p->f->payload);
	if (post(p, 0) != 1)
		return refuse(p, "the late packet could not be sent");
	if (!lands(p, 1))
		return refuse(p, "after a packet at a dead key its queue pair carries nothing");
	return judge(p);
}

int verbs_probe(struct verbs_fabric *f, char *why, size_t why_len)
{
	struct probe p = {.f = f, .why = why, .why_len = why_len};
	int err = run(&p);

	if (p.from)
		verbs_qp_destroy(p.from);
	if (p.to)
		verbs_qp_destroy(p.to);
	free(p.worker);
	free(p.slots);
	verbs_pages_free(p.mem, 3 * (size_t)f->payload);
	memset(f->counter, 0, sizeof(f->counter));
	return err;
}
