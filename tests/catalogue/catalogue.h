/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue: named scenarios, what each injects, and how long it may take. The table is in
 * table.c, the scenarios in a file for each family, the runner in catalogue.c.
 *
 * A scenario runs with `seeds` seeds. The mean of the virtual times has to stay within
 * `ceiling_ms`, the longest within `worst_ms`. Ceilings are set some 15 to 30 % above what was
 * measured when they were set, and never below physics: a protocol that became slower fails.
 */
#ifndef TESTS_CATALOGUE_CATALOGUE_H
#define TESTS_CATALOGUE_CATALOGUE_H

#include "lab.h"

enum family { LOSS, CODES, PATH, G1050, SATELLITE, NAT, PEER, HOSTILE, REAL, FAMILIES };

struct scenario {
	const char *name;
	enum family family;
	void (*run)(struct lab *l); /* NULL: see `elsewhere` or `needs` */
	double arg[2];
	unsigned int seeds;	       /* 0: 1 */
	double ceiling_ms, worst_ms;   /* worst_ms 0: there is one seed. Both 0: nothing to time */
	const char *injected, *remark; /* remark: NULL where there is none */
	const char *elsewhere;	       /* "CTest's name:case": there, and not here */
	const char *needs;	       /* what this release does not have */
};

extern const struct scenario catalogue[];
extern const unsigned int catalogue_n;
const struct scenario *catalogue_find(const char *name);
/* The mask of a name "loss_mask_<hex>", or 0. */
uint64_t catalogue_mask(const char *name);

/* loss.c */
void handshake_loss(struct lab *l), handshake_corrupt(struct lab *l);
void xfer_loss(struct lab *l), xfer_corrupt(struct lab *l), xfer_burst(struct lab *l);
void interop_loss(struct lab *l), interop_corrupt(struct lab *l);
void nth_packet_drop(struct lab *l), nth_answer_drop(struct lab *l),
	nth_attempt_drop(struct lab *l);
void loss_mask(struct lab *l), loss_masks(struct lab *l), loss_mask_one_way(struct lab *l);
void heavy_loss(struct lab *l), heavy_loss_inter(struct lab *l);
void ack_loss(struct lab *l), short_losses(struct lab *l);

/* path.c */
void interop_transfer(struct lab *l), blackhole(struct lab *l), one_outage(struct lab *l);
void ack_blackhole(struct lab *l), wifi(struct lab *l), suspension(struct lab *l);
void reorder_packets(struct lab *l), reorder_time(struct lab *l), jitter(struct lab *l);
void duplicates(struct lab *l), late_duplicates(struct lab *l), late_over_slots(struct lab *l);
void mtu_small(struct lab *l), mtu_falls(struct lab *l);
void asym_channels(struct lab *l), asym_delay(struct lab *l), asym_rate(struct lab *l);
void ecn_all(struct lab *l), ecn_bleached(struct lab *l);
void policer(struct lab *l), bufferbloat(struct lab *l), shallow_queue(struct lab *l);
void g1050(struct lab *l), channel_breaks(struct lab *l), channels_all_break(struct lab *l);
void two_flows(struct lab *l), both_ways(struct lab *l);

/* satellite.c */
void long_rtt(struct lab *l), satellite(struct lab *l), satellite_up(struct lab *l);
void satellite_jitter(struct lab *l), deep_space(struct lab *l), deep_space_chain(struct lab *l);
void high_latency(struct lab *l);

/* nat.c */
void rebind_port(struct lab *l), nat_once(struct lab *l), nat_idle(struct lab *l);
void nat_handshake(struct lab *l);

/* peer.c */
void recv_paused(struct lab *l), recv_slow(struct lab *l), recv_late(struct lab *l);
void app_limited(struct lab *l), chained(struct lab *l), keep_alive(struct lab *l);
void peer_crash(struct lab *l), peer_restart(struct lab *l), connection_drop(struct lab *l);
void many_clients(struct lab *l), many_connections(struct lab *l), immediate_close(struct lab *l);
void unmapped(struct lab *l);

/* hostile.c */
void replay_data(struct lab *l), replay_ctrl(struct lab *l), stale_control(struct lab *l);
void answers_dropped(struct lab *l), half_open(struct lab *l), garbage(struct lab *l);
void fuzzed(struct lab *l);

/* liar.c */
void optimistic_ack(struct lab *l), optimistic_hole(struct lab *l);
void bitmap_lie(struct lab *l), oversize_offset(struct lab *l), amplification(struct lab *l);

/* codes.c */
void drop_all_parity(struct lab *l), drop_too_many(struct lab *l), burst_of_block(struct lab *l);
void last_chunk_lost(struct lab *l), regime_switches(struct lab *l), parity_corrupt(struct lab *l);
void write_unsaid(struct lab *l), code_not_offered(struct lab *l), no_parity_room(struct lab *l);

/* liar_codes.c */
void deficit_lie(struct lab *l), write_lie(struct lab *l), parity_lie(struct lab *l);

/* clock.c: over sockets of this host, in real time */
void clock_step(struct lab *l);

#endif
