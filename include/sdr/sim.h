/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/sim.h>: contexts in virtual time. The same SDK and reliability code runs over
 * simulated links, single-threaded, seeded: a seed replays a run to the packet.
 *
 * Drive it so: call sdr_progress() (or sdr_net_progress()) of every context, then
 * sdr_sim_step() to move the clock to the next thing that happens. sdr_sim_step() takes
 * the earliest deadline of the application's own; those of SDK contexts it knows.
 */
#ifndef SDR_SIM_H
#define SDR_SIM_H

#include <sdr/sdr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sdr_sim;

struct sdr_sim_link {
	size_t size;
	uint64_t rate_bps;    /* 0: no limit */
	uint64_t delay_ns;    /* one way */
	uint64_t jitter_ns;   /* uniform on top; reorders */
	uint64_t queue_bytes; /* 0: no limit */
	double loss;	      /* mean packet loss, 0 .. 1 */
	double burst_pkts;    /* mean length of a loss burst; below 1: independent losses */
	double reorder;	      /* share of packets held back by reorder_ns */
	uint64_t reorder_ns;
	double duplicate;      /* share of packets that arrive twice */
	double corrupt;	       /* share of packets with a flipped bit */
	const uint64_t *drops; /* exact packets to drop (0 = first), ascending; copied */
	size_t ndrops;
};

/* Makes an empty world; the seed decides all that is random in it. 0 or -ENOMEM. */
SDR_API int sdr_sim_create(uint64_t seed, struct sdr_sim **out);
/* Closes its contexts too. NULL is allowed. */
SDR_API void sdr_sim_destroy(struct sdr_sim *sim);
/* Adds a host; returns its number. */
SDR_API int sdr_sim_host(struct sdr_sim *sim);
/* The link from one host to another, one direction, on one channel or SDR_CHANNEL_ANY. */
SDR_API int sdr_sim_link_set(struct sdr_sim *sim, int from, int to, uint32_t channel,
			     const struct sdr_sim_link *link);
struct sdr_sim_link_info {
	size_t size;
	uint64_t offered_pkts;	  /* data, control and copies of both, since the link was set */
	uint64_t delivered_pkts;  /* of them, those that reach the other end */
	uint64_t lost_queue_pkts; /* that found the queue full */
	uint64_t lost_pkts;	  /* for any other reason */
	uint64_t queued_bytes;	  /* not serialised yet, now */
};

/* What a link has done so far. 0, or -ENOENT where none was set. */
SDR_API int sdr_sim_link_query(const struct sdr_sim *sim, int from, int to, uint32_t channel,
			       struct sdr_sim_link_info *info);
/*
 * Opens a context on a host; `attr` as for sdr_ctx_create(). Of it count listen,
 * max_payload_bytes and sockbuf_bytes: while a link's queue is longer than that, sends
 * get -EAGAIN, as from a full socket; 0: never.
 */
SDR_API int sdr_sim_ctx_create(struct sdr_sim *sim, int host, const struct sdr_ctx_attr *attr,
			       struct sdr_ctx **out);
/* The world's virtual clock, ns from 0. */
SDR_API uint64_t sdr_sim_now_ns(const struct sdr_sim *sim);
/*
 * Moves the clock to the next delivery, context timer or limit_ns, whichever is first.
 * Returns 1 if something is due, 0 if limit_ns was reached with nothing to do.
 */
SDR_API int sdr_sim_step(struct sdr_sim *sim, uint64_t limit_ns);

#ifdef __cplusplus
}
#endif
#endif
