/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs that the files of fabric/verbs share. All of it is the caller's thread's, but
 * wakefd and `signalled`, which verbs_wake() touches from any.
 *
 * A fabric QP is `channels` x `generations` UC queue pairs (struct verbs_dqp, "data queue
 * pair") and one UD. A completion finds its way back by its work request's id (below), which
 * names the fabric QP by index, the data queue pair, and a serial number: what comes from
 * before a queue pair was reset or destroyed has another serial and is dropped.
 *
 * Invariants:
 *  1. A completion queue's `used` is the sum of its QPs' `cq_share`, at most `room`; a QP's
 *     share is enough for all that it can have posted. So no completion queue overflows.
 *  2. A run of work requests ends with a signalled one. A data queue pair's runs are
 *     completed in order; run_tail .. run_head are under way.
 *  3. tx_runs[key] is the number of runs under way that read memory of that message.
 *  4. A slot is bound in the rx table if and only if slot[].bound.
 */
#ifndef SDR_FABRIC_VERBS_VERBS_INT_H
#define SDR_FABRIC_VERBS_VERBS_INT_H

#include "fabric/verbs/find.h"
#include "fabric/verbs/verbs.h"
#include "base/bits.h"
#include "sdr/counters.h"
#include "wire/ctrl.h"
#include "wire/imm.h"
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VERBS_REFILL_MAX 64u	/* receives posted by one call */
#define VERBS_SHALLOW 16u	/* receives on a queue pair whose generation is not in use */
#define VERBS_POLL_BATCH 64	/* completions taken by one call */
#define VERBS_POLL_BUDGET 1024u /* completions of one queue in one poll */
#define VERBS_CTRL_RX 64u	/* control datagrams that may wait, a QP */
#define VERBS_CTRL_TX 32u
#define VERBS_GRH_BYTES 40u /* before each UD message received */
#define VERBS_CTRL_MSG_BYTES (WIRE_ROCEV2_CTRL_PREFIX_BYTES + FABRIC_ROCEV2_CTRL_MAX)
#define VERBS_CTRL_BUF_BYTES 1088u /* GRH, prefix and body, in whole cache lines */
#define VERBS_BOUNCE_RUNS 4096u
#define VERBS_NO_KEY UINT32_MAX
#define VERBS_ASYNC_LOOK_NS UINT64_C(50000000)
#define VERBS_FLUSH_NS UINT64_C(200000000)  /* after which a queue pair is reset unflushed */
#define VERBS_AGAIN_NS UINT64_C(1000000000) /* until one that did not come back is tried again */

/* What a work request was for; part of its id. */
enum verbs_wr_kind { VERBS_WR_RECV, VERBS_WR_SEND, VERBS_WR_CTRL_RECV, VERBS_WR_CTRL_SEND };

/*
 *	 63 62 61      48 47     42 41        24 23         0
 *	+-----+----------+---------+------------+------------+
 *	|kind |  serial  | data qp |  QP index  |  run, buf  |
 *	+-----+----------+---------+------------+------------+
 */
#define VERBS_SERIAL_MASK 0x3fffu
#define VERBS_RUN_MASK 0xffffffu

static inline uint64_t verbs_wr_id(enum verbs_wr_kind kind, uint32_t serial, uint32_t dq,
				   uint32_t index, uint32_t run)
{
	return (uint64_t)kind << 62 | (uint64_t)(serial & VERBS_SERIAL_MASK) << 48 |
	       (uint64_t)(dq & 0x3f) << 42 | (uint64_t)(index & 0x3ffff) << 24 |
	       (run & VERBS_RUN_MASK);
}

struct verbs_wr {
	enum verbs_wr_kind kind;
	uint32_t serial, dq, index, run;
};

static inline struct verbs_wr verbs_wr_parse(uint64_t id)
{
	return (struct verbs_wr){.kind = (enum verbs_wr_kind)(id >> 62),
				 .serial = (uint32_t)(id >> 48) & VERBS_SERIAL_MASK,
				 .dq = (uint32_t)(id >> 42) & 0x3f,
				 .index = (uint32_t)(id >> 24) & 0x3ffff,
				 .run = (uint32_t)id & VERBS_RUN_MASK};
}

/* How many receives to post now: none while little is missing, so that they go in batches. */
static inline uint32_t verbs_refill(uint32_t posted, uint32_t target)
{
	uint32_t batch = (uint32_t)u64_min(VERBS_REFILL_MAX, target / 4 + 1);
	uint32_t missing = target > posted ? target - posted : 0;

	return missing >= batch ? missing : 0;
}

/*
 * The depth of a receive queue, from what is wished for: all that a QP posts must fit a
 * completion queue of at most max_cqe. 0: not even VERBS_MIN_RQ_DEPTH fits.
 */
static inline uint32_t verbs_rq_fit(uint32_t wish, uint32_t sq_depth, uint32_t queue_pairs,
				    uint32_t max_cqe)
{
	uint64_t fixed = (uint64_t)queue_pairs * sq_depth + VERBS_CTRL_RX + VERBS_CTRL_TX;
	uint64_t fits = max_cqe > fixed ? (max_cqe - fixed) / queue_pairs : 0;

	return fits < VERBS_MIN_RQ_DEPTH ? 0 : (uint32_t)u64_min(wish, fits);
}

struct verbs_cq {
	struct ibv_cq *cq;
	uint32_t room, used;
	bool armed;
	struct verbs_cq *next;
};

struct verbs_run {
	uint32_t wrs;
	uint32_t key;	 /* tx_runs[]'s; VERBS_NO_KEY: the bytes were copied */
	uint32_t bounce; /* entry of the bounce ring + 1, 0: none */
};

struct verbs_dqp {
	struct ibv_qp *qp;
	struct verbs_qp *owner;
	uint32_t number; /* in owner->dqp[] */
	uint32_t serial;
	uint32_t generation, channel;
	bool up;       /* connected */
	bool dead;     /* an error: to be flushed, reset and connected again */
	bool flushing; /* dead, and told to flush: at flush_ns */
	uint64_t flush_ns;
	bool fencing; /* a fence waits for its reset */
	uint32_t rq_posted;
	uint32_t sq_used; /* work requests under way */
	struct verbs_run *run;
	uint32_t run_head, run_tail; /* free running; modulo sq_depth they index run[] */
};

/* A message slot. */
struct verbs_slot {
	bool bound;
	bool stuck;	   /* fenced, but the device does not let go of mr: see fence_done */
	uint32_t key;	   /* which message, by its low bits */
	struct ibv_mr *mr; /* keys.c: of the receive's range; NULL: zero length */
};

struct verbs_chan {
	uint32_t psn; /* of the next data packet */
	struct fabric_channel_facts facts;
	uint64_t newest_ns;
};

struct verbs_ctrl_in {
	uint32_t buf, channel, len;
	uint64_t at_ns;
};

enum verbs_pend { VERBS_PEND_READY = 1, VERBS_PEND_LATE = 2 };

struct verbs_mlx5_slot;

struct verbs_qp {
	struct fabric_qp base;
	void *cookie;
	struct rx_table *table;
	uint32_t index;	 /* in f->qps[] */
	uint32_t serial; /* of the UD queue pair */
	uint64_t token;
	uint32_t start_psn;
	uint32_t channels, generations; /* as created */
	uint32_t rq_depth;
	struct verbs_cq *cq;
	uint32_t cq_share;

	bool connected;
	struct fabric_peer peer;
	uint8_t peer_gid[16];
	const struct wire_imm_split *split;
	uint32_t payload_shift;
	uint32_t key_mask;
	struct verbs_slot *slot;	   /* peer.messages of them */
	uint32_t *tx_runs;		   /* key_mask + 1 of them */
	struct verbs_mlx5_slot *mlx5_slot; /* mlx5.c: key_mask + 1 of them */
	uint32_t bound[FABRIC_MAX_GENERATIONS];

	struct ibv_qp *ud;
	struct ibv_ah *ah;
	bool ud_dead, ud_flushing; /* as a data queue pair's */
	uint64_t ud_flush_ns;
	uint64_t ctrl_posted; /* mask of receive buffers that the device has */
	uint8_t *ctrl_mem;    /* VERBS_CTRL_RX buffers, then VERBS_CTRL_TX */
	struct ibv_mr *ctrl_mr;
	uint32_t ctrl_sent, ctrl_done; /* free running */
	struct verbs_ctrl_in ctrl_in[VERBS_CTRL_RX];
	uint32_t ctrl_in_head, ctrl_in_tail;

	uint32_t pend; /* enum verbs_pend */
	uint32_t late_channel, late_message;
	bool in_todo;
	struct verbs_qp *todo_next;

	struct verbs_chan chan[FABRIC_MAX_CHANNELS];
	struct verbs_dqp dqp[FABRIC_DATA_QPS]; /* generation * channels + channel */
};

/* Memory that sends are copied to where theirs is not registered: a ring, freed in order. */
struct verbs_bounce_run {
	uint64_t end; /* free running */
	bool done;
};

struct verbs_bounce {
	uint8_t *mem;
	struct ibv_mr *mr;
	uint64_t bytes, head, tail; /* head and tail run freely */
	struct verbs_bounce_run run[VERBS_BOUNCE_RUNS];
	uint32_t run_head, run_tail;
};

struct verbs_mr {
	struct ibv_mr *mr;
	struct fabric_mr_attr attr;
};

struct verbs_mlx5;
struct verbs_fabric;

/* A strategy of keys. All slots filled. */
struct verbs_keys_ops {
	const char *name;
	uint64_t late_ns;					       /* see fabric_caps */
	struct ibv_context *(*device_open)(struct ibv_device *device); /* NULL: see errno */
	int (*open)(struct verbs_fabric *f);
	void (*close)(struct verbs_fabric *f);
	int (*qp_connect)(struct verbs_qp *qp);
	void (*qp_destroy)(struct verbs_qp *qp); /* after its queue pairs are gone */
	/* Makes b's memory writable under *key. slot is the message's. */
	int (*bind)(struct verbs_qp *qp, struct verbs_slot *slot, const struct fabric_bind *b,
		    struct fabric_key *key);
	/*
	 * When it returns 0, nothing is written through the key any more. Else: -errno, and
	 * only resetting the queue pairs makes sure.
	 */
	int (*unbind)(struct verbs_qp *qp, struct verbs_slot *slot);
};

struct verbs_fabric {
	struct fabric base;
	struct verbs_fabric_attr attr; /* strings: NULL */
	char device[VERBS_NAME_MAX];
	uint32_t port;
	struct verbs_gid gid;
	uint32_t payload;

	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct verbs_cq *cqs;
	uint32_t max_cqe;
	const struct verbs_keys_ops *keys;
	struct verbs_mlx5 *mlx5;
	struct verbs_bounce bounce;

	struct verbs_qp **qps; /* attr.max_qps of them */
	uint32_t *free_index;  /* a queue, so that an index rests as long as it can */
	uint32_t free_head, free_count;
	uint32_t serial;
	uint32_t flow_label; /* of channel 0 */

	int epfd, wakefd;
	atomic_bool signalled; /* wakefd may be readable, or the device has told something */
	bool fd_used;
	uint64_t async_look_ns;
	bool port_down, fork_unsafe, lock_failed;
	bool blocked;	   /* somebody was not taken */
	bool writable;	   /* FABRIC_EV_WRITABLE is due */
	bool dead_any;	   /* some queue pair is on its way back */
	uint64_t again_ns; /* not 0: some did not come back, they try again then */
	bool more;	   /* the last look left completions in a queue */
	struct verbs_qp *todo, **todo_end;

	uint64_t counter[SDR_CTR_COUNT];
	/* For one call each; too large for a stack. */
	struct ibv_send_wr send_wr[FABRIC_RUN_MAX];
	struct ibv_sge send_sge[FABRIC_RUN_MAX];
	struct ibv_recv_wr recv_wr[VERBS_REFILL_MAX];
	struct ibv_wc wc[VERBS_POLL_BATCH];
};

static inline struct verbs_fabric *verbs_fabric_of(const struct fabric *f)
{
	return (struct verbs_fabric *)(uintptr_t)f; /* base is the first member */
}

static inline struct verbs_qp *verbs_qp_of(const struct fabric_qp *qp)
{
	return (struct verbs_qp *)(uintptr_t)qp;
}

static inline struct verbs_fabric *verbs_owner(const struct verbs_qp *qp)
{
	return verbs_fabric_of(qp->base.fabric);
}

static inline struct verbs_dqp *verbs_dqp_at(struct verbs_qp *qp, uint32_t generation,
					     uint32_t channel)
{
	return &qp->dqp[generation * qp->channels + channel];
}

/* libibverbs gives errno values of either sign, or sets errno. */
static inline int verbs_err(int rc)
{
	return rc < 0 ? rc : -rc;
}

/* verbs.c */
uint64_t verbs_now_ns(void);
uint32_t verbs_serial(struct verbs_fabric *f);
/* Page-aligned memory of its own pages: fork() may take them from the child. NULL: none. */
void *verbs_pages(size_t bytes);
void verbs_pages_free(void *mem, size_t bytes);

/* qp.c */
int verbs_qp_create(struct fabric *f, const struct fabric_qp_attr *attr, struct fabric_qp **out);
/* The same with fewer generations, for the self-test. */
int verbs_qp_make(struct verbs_fabric *f, const struct fabric_qp_attr *attr, uint32_t generations,
		  struct fabric_qp **out);
void verbs_qp_destroy(struct fabric_qp *qp);
void verbs_qp_local(const struct fabric_qp *qp, struct fabric_local *out);
int verbs_qp_connect(struct fabric_qp *qp, const struct fabric_peer *peer);
int verbs_bind(struct fabric_qp *qp, uint32_t message, const struct fabric_bind *b,
	       struct fabric_key *key);
void verbs_fence_begin(struct fabric_qp *qp, uint32_t message);
int verbs_fence_done(struct fabric_qp *qp, uint32_t message);
/* Takes queue pairs that died further towards life; what they had posted is lost. */
void verbs_revive(struct verbs_fabric *f);
void verbs_cqs_free(struct verbs_fabric *f);

/* tx.c */
int verbs_post(struct fabric *f, struct fabric_write *w, unsigned int n);
int verbs_ctrl(struct fabric_qp *qp, uint32_t channel, uint32_t path, const void *data, size_t len);
bool verbs_tx_busy(struct fabric_qp *qp, uint32_t message);
/* Runs up to this one are over. */
void verbs_tx_retire(struct verbs_dqp *dq, uint32_t run);
/* All are: the queue pair was reset or destroyed. */
void verbs_tx_retire_all(struct verbs_dqp *dq);
int verbs_tx_init(struct verbs_fabric *f);
void verbs_tx_fini(struct verbs_fabric *f);

/* rx.c */
/* Takes completions of one queue, at most `budget`; returns how many there were. */
uint32_t verbs_poll_cq(struct verbs_fabric *f, struct verbs_cq *cq, uint32_t budget);
/* Receives: as many as the generation's use asks for. 0 or -errno. */
int verbs_refill_dqp(struct verbs_dqp *dq);
int verbs_ctrl_repost(struct verbs_qp *qp, uint32_t buf);

/* keys.c, mlx5.c */
extern const struct verbs_keys_ops verbs_keys_rereg;
#ifdef SDR_HAVE_MLX5DV
extern const struct verbs_keys_ops verbs_keys_mlx5;
#endif
int verbs_mr_reg(struct fabric *f, const struct fabric_mr_attr *attr, void **mr);
void verbs_mr_dereg(struct fabric *f, void *mr);

/* events.c */
void verbs_todo(struct verbs_fabric *f, struct verbs_qp *qp);
void verbs_forget(struct verbs_fabric *f, struct verbs_qp *qp);
int verbs_poll(struct fabric *f, struct fabric_event *ev, unsigned int max);
int verbs_wait(struct fabric *f, uint64_t deadline_ns);
int verbs_fd(struct fabric *f);
void verbs_wake(struct fabric *f);
int verbs_events_init(struct verbs_fabric *f);
/* True once FABRIC_EV_WRITABLE is due, if anybody waits for it. */
static inline void verbs_room(struct verbs_fabric *f)
{
	if (f->blocked) {
		f->blocked = false;
		f->writable = true;
	}
}

/* probe.c: 0, or -errno and why. */
int verbs_probe(struct verbs_fabric *f, char *why, size_t why_len);

#endif
