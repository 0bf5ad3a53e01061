/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets to bits: decode and verify a whole train, then place it run by run.
 * Contract: deliver.h; the lock-free half: rx/rx.h.
 */
#include "fabric/deliver.h"

#include "base/check.h"
#include "wire/wire.h"
#include <errno.h>
#include <string.h>

/* A verified packet. */
struct verified {
	struct wire_data data;
	const uint8_t *payload; /* NULL: absent */
	uint64_t at_ns;
};

/* What a call works on, and what it adds up before it touches shared counters. */
struct pass {
	struct deliver_worker *w;
	struct rx_worker *rxw;
	struct rx_table *table;
	/* rocev2; `agreed` is NULL in sdr mode, and before anything was agreed. */
	const struct deliver_rocev2 *agreed;
	const struct deliver_flow *flow;
	const struct wire_imm_split *split;
	_Atomic uint64_t *ipid;
	uint32_t qpn;		/* all packets of a call are for this number */
	uint32_t first_message; /* of the QP's generation: message of its slot 0 */
	bool rocev2;
	struct verified pkt[DELIVER_MAX_TRAIN];
	unsigned int n;
	uint32_t received, duplicate, late, late_message, wrong_key, protection, malformed, range,
		ce;
	uint64_t bytes;
	uint32_t newest_psn;			/* sdr */
	uint32_t newest_message, newest_packet; /* rocev2 */
	uint64_t newest_ns;
	bool newest_valid;
};

void deliver_qp_init(struct deliver_qp *qp, uint32_t qpn, uint64_t token, struct rx_table *table)
{
	memset(qp, 0, sizeof(*qp));
	qp->qpn = qpn;
	protect_checksum_key(&qp->key, token);
	atomic_init(&qp->table, table);
}

void deliver_qp_init_rocev2(struct deliver_qp *qp, const struct fabric_local *local,
			    struct rx_table *table)
{
	memset(qp, 0, sizeof(*qp));
	qp->mode = WIRE_ROCEV2;
	qp->qpn = local->qpn;
	memcpy(qp->data_qpn, local->data_qpn, sizeof(qp->data_qpn));
	atomic_init(&qp->table, table);
}

static bool is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

int deliver_agree(struct deliver_qp *qp, const struct deliver_rocev2 *agreed)
{
	if (agreed->channels == 0 || agreed->channels > FABRIC_MAX_CHANNELS ||
	    !is_power_of_two(agreed->generations) || agreed->generations > FABRIC_MAX_GENERATIONS ||
	    !is_power_of_two(agreed->messages) ||
	    agreed->messages > wire_imm_max_slots(fabric_imm_split(agreed->messages)))
		return -EINVAL;
	qp->rocev2 = *agreed;
	/* Pairs with agreed_of: who sees it set sees what was agreed. */
	atomic_store_explicit(&qp->agreed, true, memory_order_release);
	return 0;
}

static const struct deliver_rocev2 *agreed_of(const struct deliver_qp *qp)
{
	return atomic_load_explicit(&qp->agreed, memory_order_acquire) ? &qp->rocev2 : NULL;
}

int deliver_data_qp(const struct deliver_qp *qp, uint32_t qpn)
{
	for (int i = 0; i < (int)FABRIC_DATA_QPS && qpn != 0; i++)
		if (qp->data_qpn[i] == qpn)
			return i;
	return -1;
}

struct fabric_key deliver_key_draw(struct rng *rng)
{
	uint64_t random = rng_next(rng);

	return (struct fabric_key){.rkey = (uint32_t)random, .va = random >> 32 << 12};
}

void deliver_table_set(struct deliver_qp *qp, struct rx_table *table)
{
	/* Pairs with table_of: who sees the table sees it initialised. */
	atomic_store_explicit(&qp->table, table, memory_order_release);
}

static struct rx_table *table_of(struct deliver_qp *qp)
{
	return atomic_load_explicit(&qp->table, memory_order_acquire);
}

/* A message's key; the slots of the table and of the immediate are the same. */
static struct fabric_key *key_of(const struct deliver_rocev2 *agreed, uint32_t message)
{
	return &agreed->keys[message & (agreed->messages - 1)];
}

/* Before the slot is published: nobody reads the key of one that is not bound. */
static int key_set(const struct deliver_qp *qp, const struct rx_table *table, uint32_t message,
		   const struct fabric_bind *b, const struct fabric_key *key)
{
	const struct deliver_rocev2 *agreed = agreed_of(qp);

	if (!agreed || table->nslots != agreed->messages ||
	    table->key_mask != agreed->messages * agreed->generations - 1 ||
	    b->rx.imm_frags != wire_imm_fragments(fabric_imm_split(agreed->messages)))
		return -EINVAL;
	*key_of(agreed, message) = *key;
	return 0;
}

int deliver_bind(struct deliver_qp *qp, uint32_t message, const struct fabric_bind *b,
		 const struct fabric_key *key)
{
	struct rx_table *table = table_of(qp);
	int verdict;

	if (!table)
		return -EINVAL;
	if (rx_is_bound(table, message))
		return -EBUSY;
	if (qp->mode == WIRE_ROCEV2) {
		int err = key_set(qp, table, message, b, key);

		if (err)
			return err;
	}
	verdict = rx_bind(table, message, &b->rx);
	if (verdict == RX_BUSY)
		return -EBUSY;
	return verdict == RX_OK ? 0 : -EINVAL;
}

void deliver_fence_begin(struct deliver_qp *qp, uint32_t message)
{
	struct rx_table *table = table_of(qp);

	if (table)
		(void)rx_fence_begin(table, message); /* not bound: nothing to fence */
}

int deliver_fence_done(struct deliver_qp *qp, uint32_t message)
{
	struct rx_table *table = table_of(qp);

	return !table || rx_fence_done(table, message);
}

void deliver_worker_init(struct deliver_worker *w, unsigned int index)
{
	memset(w, 0, sizeof(*w));
	w->index = index;
}

unsigned int deliver_split(const uint8_t *buf, size_t len, size_t segment_bytes, bool ce,
			   uint64_t at_ns, struct deliver_pkt pkt[DELIVER_MAX_TRAIN])
{
	unsigned int n = 0;

	if (segment_bytes == 0 || segment_bytes > len)
		segment_bytes = len;
	do {
		size_t take = u64_min(len, segment_bytes);

		pkt[n++] = (struct deliver_pkt){
			.bytes = buf, .len = (uint32_t)take, .ce = ce, .at_ns = at_ns};
		buf += take;
		len -= take;
	} while (len > 0 && n < DELIVER_MAX_TRAIN);
	return n;
}

int deliver_peek(struct deliver_worker *w, const struct deliver_pkt *pkt, uint8_t *opcode,
		 uint32_t *qpn)
{
	int err = wire_peek(pkt->bytes, pkt->len, opcode, qpn);

	if (err)
		deliver_count(w, SDR_CTR_rx_malformed, 1);
	return err;
}

void deliver_unknown(struct deliver_worker *w)
{
	deliver_count(w, SDR_CTR_rx_unknown_qp, 1);
}

static bool id_believed(_Atomic uint64_t *word, uint16_t id, uint64_t now_ns)
{
	uint64_t state = atomic_load_explicit(word, memory_order_relaxed);
	bool believed = ipid_judge(&state, id, now_ns);

	atomic_store_explicit(word, state, memory_order_relaxed);
	return believed;
}

/*
 * rocev2's trailer. `own` counts for the channel, flow->host for all that comes from there:
 * which of them the sender's identification follows depends on what it is (ipid.h). `place` is
 * where in its train the packet is: in a segmented send, its identification.
 */
static int icrc_open(const struct deliver_flow *flow, _Atomic uint64_t *own, uint32_t place,
		     const struct deliver_pkt *pkt)
{
	uint64_t seen = atomic_load_explicit(own, memory_order_relaxed);
	uint16_t id = (uint16_t)(seen == IPID_NONE ? place : ipid_last(seen) + 1u);
	bool believed;

	if (wire_icrc_solve_near(&flow->icrc, pkt->bytes, pkt->len - pkt->absent, &id))
		return -EBADMSG;
	if (flow->icrc.v6 || ipid_is_segment(id))
		return 0;
	believed = id_believed(own, id, pkt->at_ns);
	if (flow->host && id_believed(flow->host, id, pkt->at_ns))
		believed = true;
	return believed ? 0 : -EBADMSG;
}

static void verify_sdr(struct pass *p, const struct deliver_qp *qp, const struct deliver_pkt *pkt)
{
	struct verified *v = &p->pkt[p->n];

	if (wire_data_get(pkt->bytes, pkt->len, WIRE_SDR, NULL, &v->data, &v->payload)) {
		p->malformed++;
		return;
	}
	if (protect_open(&qp->key, pkt->bytes, pkt->len - pkt->absent)) {
		p->protection++;
		return;
	}
	if (pkt->absent)
		v->payload = NULL;
	v->at_ns = pkt->at_ns;
	p->ce += pkt->ce;
	p->n++;
}

static void verify_rocev2(struct pass *p, uint32_t place, const struct deliver_pkt *pkt)
{
	struct verified *v = &p->pkt[p->n];

	if (wire_data_get(pkt->bytes, pkt->len, WIRE_ROCEV2, p->split, &v->data, &v->payload)) {
		p->malformed++;
		return;
	}
	if (icrc_open(p->flow, p->ipid, place, pkt)) {
		p->protection++;
		return;
	}
	if (p->agreed && v->data.message >= p->agreed->messages) {
		p->range++;
		return;
	}
	v->data.message += p->first_message;
	if (pkt->absent)
		v->payload = NULL;
	v->at_ns = pkt->at_ns;
	p->ce += pkt->ce;
	p->n++;
}

/* Verifies the leading data packets for this number; returns how many were looked at. */
static unsigned int verify_train(struct pass *p, const struct deliver_qp *qp,
				 const struct deliver_pkt *pkt, unsigned int n)
{
	unsigned int used = 0;
	uint8_t opcode;
	uint32_t qpn;

	n = (unsigned int)u64_min(n, DELIVER_MAX_TRAIN);
	do {
		if (p->rocev2)
			verify_rocev2(p, used, &pkt[used]);
		else
			verify_sdr(p, qp, &pkt[used]);
		used++;
	} while (used < n && wire_peek(pkt[used].bytes, pkt[used].len, &opcode, &qpn) == 0 &&
		 opcode == WIRE_OP_DATA && qpn == p->qpn);
	return used;
}

/*
 * A packet that was committed, or had been; or whose message is over, in sdr mode: a count of what
 * arrived and the newest of it are of the same packets, or who compares them sees losses that are
 * none.
 */
static void seen(struct pass *p, const struct verified *v)
{
	/* rocev2: a PSN belongs to one generation's QP, and a NIC would not tell it. */
	if (!p->rocev2 && p->newest_valid && !seq24_before(p->newest_psn, v->data.psn))
		return;
	p->newest_valid = true;
	p->newest_psn = v->data.psn;
	p->newest_message = v->data.message;
	p->newest_packet = v->data.packet;
	p->newest_ns = v->at_ns;
}

/* An admitted run within one word. */
static void place(struct pass *p, struct rx_slot *slot, const struct verified *run, uint32_t first,
		  uint32_t count)
{
	uint64_t mask = rx_claim(slot, p->rxw, first, count, run[count - 1].data.length);
	uint32_t fresh = rx_popcount(mask);

	p->received += fresh;
	p->duplicate += count - fresh;
	for (uint32_t i = 0; i < count; i++) {
		const struct verified *v = &run[i];
		uint8_t *to;

		/* Of a duplicate too: software may have filled the packet, which knows none. */
		(void)rx_imm_add(slot, first + i, v->data.imm);
		if (!(mask >> (first + i) % RX_WORD_PKTS & 1))
			continue;
		to = rx_place(slot, first + i);
		if (to && v->data.length && v->payload)
			memcpy(to, v->payload, v->data.length);
		p->bytes += v->data.length;
	}
	if (mask)
		(void)rx_commit(slot, first / RX_WORD_PKTS, mask);
	for (uint32_t i = 0; i < count; i++)
		seen(p, &run[i]);
}

static void admit(struct pass *p, struct rx_slot *slot, const struct verified *run, uint32_t first,
		  uint32_t count)
{
	int verdict = rx_admit(slot, p->rxw, first, count, run[count - 1].data.length);

	if (verdict == RX_OK) {
		place(p, slot, run, first, count);
	} else if (count > 1) {
		/* One bad packet does not take its neighbours along. */
		for (uint32_t i = 0; i < count; i++)
			admit(p, slot, &run[i], first + i, 1);
	} else if (verdict == RX_IMM_ONLY) {
		/* It has no bit, but was sent, and has come once. */
		if (rx_imm_add(slot, first, run->data.imm))
			p->received++;
		else
			p->duplicate++;
	} else {
		p->range++;
	}
}

/* Does b follow a, a full packet, in the message and, in rocev2, in the sender's region? */
static bool follows(const struct pass *p, const struct wire_data *a, const struct wire_data *b,
		    uint32_t payload)
{
	if (b->message != a->message)
		return false;
	if (!p->rocev2)
		return b->offset == a->offset + payload;
	return b->packet == a->packet + 1 && b->rkey == a->rkey && b->va == a->va + payload;
}

/* How many of pkt[0 .. n) continue each other in one message: all full but the last. */
static uint32_t run_length(const struct pass *p, const struct verified *pkt, uint32_t n,
			   uint32_t payload)
{
	uint32_t count = 1;

	while (count < n && pkt[count - 1].data.length == payload &&
	       follows(p, &pkt[count - 1].data, &pkt[count].data, payload))
		count++;
	return count;
}

/* Inside the slot: the key is that of the message that is bound. */
static bool key_fits(const struct pass *p, const struct rx_slot *slot, const struct wire_data *data)
{
	const struct fabric_key *key = key_of(p->agreed, data->message);

	return data->rkey == key->rkey &&
	       data->va == key->va + (uint64_t)data->packet * slot->payload;
}

/* The index of a run's first packet. 0, or -errno: counted. */
static int run_index(struct pass *p, const struct rx_slot *slot, const struct wire_data *data,
		     uint32_t *first)
{
	if (!p->rocev2) {
		if (rx_packet_index(slot, p->rxw, data->offset, first) == RX_OK)
			return 0;
		p->range++;
		return -ERANGE;
	}
	*first = data->packet;
	if (key_fits(p, slot, data))
		return 0;
	p->wrong_key++;
	return -EACCES;
}

/* Places a run's beginning; returns how many packets were dealt with. */
static uint32_t place_run(struct pass *p, const struct verified *run, uint32_t n)
{
	struct rx_slot *slot;
	uint32_t first, count, part;

	if (!p->table || rx_enter(p->table, p->rxw, run->data.message, &slot) != RX_OK) {
		p->late++;
		p->late_message = run->data.message;
		if (!p->rocev2)
			seen(p, run);
		return 1;
	}
	if (run_index(p, slot, &run->data, &first))
		return 1;
	count = run_length(p, run, n, slot->payload);
	for (uint32_t done = 0; done < count; done += part) {
		part = rx_run_fit(first + done, count - done);
		admit(p, slot, &run[done], first + done, part);
	}
	return count;
}

static void count_up(_Atomic uint64_t *counter, uint64_t n)
{
	if (n)
		atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/*
 * False, and nothing changes, where a packet that was sent later has come already. The time
 * (newest_ns may be NULL) goes first: who reads the PSN, then the time, gets an age that may be too
 * small, which makes a round trip look longer, but never one that is too large.
 */
static bool newest_advance(_Atomic uint64_t *newest, uint32_t psn, _Atomic uint64_t *newest_ns,
			   uint64_t at_ns)
{
	uint64_t old = atomic_load_explicit(newest, memory_order_relaxed);

	do {
		if ((old & DELIVER_PSN_VALID) && !seq24_before((uint32_t)old, psn))
			return false;
		if (newest_ns)
			atomic_store_explicit(newest_ns, at_ns, memory_order_relaxed);
		/* Pairs with deliver_channel_facts: what it counts has been committed. */
	} while (!atomic_compare_exchange_weak_explicit(
		newest, &old, DELIVER_PSN_VALID | psn, memory_order_release, memory_order_relaxed));
	return true;
}

/* The packet that came last, whatever the order: a worker that was put aside may be wrong. */
static void newest_packet_set(struct deliver_channel *c, const struct pass *p)
{
	atomic_store_explicit(&c->newest_ns, p->newest_ns, memory_order_relaxed);
	/* Pairs with deliver_channel_facts, as newest_advance. */
	atomic_store_explicit(&c->newest,
			      DELIVER_PACKET_VALID | (uint64_t)p->newest_message << 32 |
				      p->newest_packet,
			      memory_order_release);
}

static void count_pass(const struct pass *p, struct deliver_channel *c)
{
	struct deliver_worker *w = p->w;

	count_up(&c->received_pkts, p->received);
	count_up(&c->duplicate_pkts, p->duplicate);
	count_up(&c->late_pkts, p->late);
	count_up(&c->bad_pkts, p->malformed + p->protection + p->wrong_key + p->range);
	count_up(&c->ce_pkts, p->ce);
	if (p->newest_valid && p->rocev2)
		newest_packet_set(c, p);
	else if (p->newest_valid &&
		 !newest_advance(&c->newest, p->newest_psn, &c->newest_ns, p->newest_ns))
		count_up(&c->reordered_pkts, p->received);
	deliver_count(w, SDR_CTR_rx_pkts, p->received);
	deliver_count(w, SDR_CTR_rx_bytes, p->bytes);
	if (p->received != p->n || p->ce || p->malformed || p->protection || p->range) {
		deliver_count(w, SDR_CTR_rx_duplicate, p->duplicate);
		deliver_count(w, SDR_CTR_rx_late, p->late);
		deliver_count(w, SDR_CTR_rx_malformed, p->malformed);
		deliver_count(w, SDR_CTR_rx_protection, p->protection + p->wrong_key);
		deliver_count(w, SDR_CTR_rx_range, p->range);
		deliver_count(w, SDR_CTR_rx_ce, p->ce);
	}
}

static void pass_init(struct pass *p, struct deliver_worker *w, struct deliver_qp *qp)
{
	/* The packets' array stays uninitialised: it is large, and n says what is valid. */
	memset((uint8_t *)p + offsetof(struct pass, n), 0, sizeof(*p) - offsetof(struct pass, n));
	p->w = w;
	p->table = table_of(qp);
	SDR_ASSERT(!p->table || w->index < p->table->nworkers);
	p->rxw = p->table ? &p->table->workers[w->index] : NULL;
	p->rocev2 = qp->mode == WIRE_ROCEV2;
	p->qpn = qp->qpn;
}

/*
 * The rest, for rocev2. Nothing is bound, so all is late, without an agreement and for QPs of
 * generations that it leaves unused: cut to the table's keys they would look like others.
 */
static void pass_init_rocev2(struct pass *p, struct deliver_qp *qp, uint32_t channel,
			     const struct deliver_flow *flow, const struct deliver_pkt *pkt)
{
	uint32_t generation;
	int which;

	p->qpn = get_be24(pkt->bytes + 5); /* deliver_peek looked at the length */
	which = deliver_data_qp(qp, p->qpn);
	SDR_ASSERT(flow && which >= 0 && (uint32_t)which % FABRIC_MAX_CHANNELS == channel);
	generation = (uint32_t)which / FABRIC_MAX_CHANNELS;
	p->agreed = agreed_of(qp);
	p->flow = flow;
	p->ipid = &qp->channel[channel].ipid;
	p->split = fabric_imm_split(p->agreed ? p->agreed->messages : 1);
	p->first_message = p->agreed ? generation * p->agreed->messages : 0;
	if (!p->agreed || generation >= p->agreed->generations)
		p->table = NULL;
}

unsigned int deliver_data(struct deliver_worker *w, struct deliver_qp *qp, uint32_t channel,
			  const struct deliver_flow *flow, const struct deliver_pkt *pkt,
			  unsigned int n, struct deliver_facts *facts)
{
	struct pass p;
	unsigned int used;

	SDR_ASSERT(n > 0 && channel < FABRIC_MAX_CHANNELS);
	pass_init(&p, w, qp);
	if (p.rocev2)
		pass_init_rocev2(&p, qp, channel, flow, pkt);
	used = verify_train(&p, qp, pkt, n);
	for (uint32_t i = 0; i < p.n;)
		i += place_run(&p, &p.pkt[i], p.n - i);
	if (p.rxw)
		rx_leave(p.rxw);
	count_pass(&p, &qp->channel[channel]);
	facts->committed += p.received;
	facts->late += p.late;
	if (p.late)
		facts->late_message = p.late_message;
	return used;
}

static int ctrl_open_sdr(const struct deliver_qp *qp, const struct deliver_pkt *pkt,
			 struct deliver_ctrl *out)
{
	if (out->len > FABRIC_CTRL_MAX)
		return -EBADMSG;
	return protect_open(&qp->key, pkt->bytes, pkt->len) ? -EACCES : 0;
}

/* The prefix says on which channel; a NIC compares the Q_Key before anybody looks. */
static int ctrl_open_rocev2(struct deliver_qp *qp, const struct deliver_flow *flow,
			    const struct deliver_pkt *pkt, uint32_t qkey, struct deliver_ctrl *out)
{
	uint32_t prefix;

	if (qkey != WIRE_ROCEV2_QKEY || out->len < WIRE_ROCEV2_CTRL_PREFIX_BYTES ||
	    out->len > WIRE_ROCEV2_CTRL_PREFIX_BYTES + FABRIC_ROCEV2_CTRL_MAX)
		return -EBADMSG;
	prefix = get_be32(out->body);
	if ((prefix & 0xffffff) != 0 || prefix >> 24 >= FABRIC_MAX_CHANNELS)
		return -EBADMSG;
	out->channel = prefix >> 24;
	out->body += WIRE_ROCEV2_CTRL_PREFIX_BYTES;
	out->len -= WIRE_ROCEV2_CTRL_PREFIX_BYTES;
	return icrc_open(flow, &qp->ctrl_ipid, 0, pkt) ? -EACCES : 0;
}

int deliver_ctrl(struct deliver_worker *w, struct deliver_qp *qp, uint32_t channel,
		 const struct deliver_flow *flow, const struct deliver_pkt *pkt,
		 struct deliver_ctrl *out)
{
	struct wire_ctrl_header header;
	size_t len = 0;
	int err = wire_ctrl_get(pkt->bytes, pkt->len, &header, &out->body, &len);

	SDR_ASSERT(channel < FABRIC_MAX_CHANNELS);
	out->len = (uint32_t)len;
	out->channel = channel;
	if (!err)
		err = qp->mode == WIRE_ROCEV2 ? ctrl_open_rocev2(qp, flow, pkt, header.qkey, out)
					      : ctrl_open_sdr(qp, pkt, out);
	if (err) {
		deliver_count(w, err == -EACCES ? SDR_CTR_rx_protection : SDR_CTR_rx_malformed, 1);
		count_up(&qp->channel[channel].bad_pkts, 1);
		return err;
	}
	out->psn = header.psn;
	out->src_qpn = header.src_qpn;
	deliver_count(w, SDR_CTR_rx_ctrl, 1);
	if (qp->mode == WIRE_SDR &&
	    !newest_advance(&qp->channel[channel].newest_ctrl, header.psn, NULL, 0))
		count_up(&qp->channel[channel].reordered_pkts, 1);
	return 0;
}

static uint64_t read_count(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void deliver_channel_facts(const struct deliver_qp *qp, uint32_t channel, uint64_t now_ns,
			   struct fabric_channel_facts *out)
{
	const struct deliver_channel *c = &qp->channel[channel];
	/* Pairs with newest_advance. The counts are read after it: never fewer than it says. */
	uint64_t newest = atomic_load_explicit(&c->newest, memory_order_acquire);
	uint64_t at_ns = read_count(&c->newest_ns);

	out->received_pkts = read_count(&c->received_pkts);
	out->duplicate_pkts = read_count(&c->duplicate_pkts);
	out->late_pkts = read_count(&c->late_pkts);
	out->bad_pkts = read_count(&c->bad_pkts);
	out->ce_pkts = read_count(&c->ce_pkts);
	out->reordered_pkts = read_count(&c->reordered_pkts);
	out->psn_valid = (newest & DELIVER_PSN_VALID) != 0;
	out->newest_psn = (uint32_t)newest & WIRE_PSN_MASK;
	out->packet_valid = (newest & DELIVER_PACKET_VALID) != 0;
	if (out->packet_valid) {
		out->psn_valid = false;
		out->newest_psn = 0;
		out->newest_message = (uint32_t)(newest >> 32) & ~(UINT32_C(1) << 31);
		out->newest_packet = (uint32_t)newest;
	}
	out->newest_age_ns = out->psn_valid || out->packet_valid ? u64_sub_floor(now_ns, at_ns) : 0;
}

void deliver_counters_add(const struct deliver_worker *w, uint64_t sum[SDR_CTR_COUNT])
{
	for (int i = 0; i < SDR_CTR_COUNT; i++)
		sum[i] += read_count(&w->counter[i]);
}
