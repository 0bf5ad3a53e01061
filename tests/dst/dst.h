/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dst: the whole library in simulated worlds, one world to a seed. What its files share:
 *
 *   main.c       flags, worker processes, the sites' verdict
 *   options.c    what a seed switches on, and with which values
 *   world.c      hosts, links, contexts; the loop that moves the time
 *   faults.c     what is done to hosts and links while the loads run
 *   conns.c      the load on reliable connections, and their life
 *   conns_ops.c  ... its writes and receives: posting, completions
 *   codes.c      ... its schemes with erasure codes
 *   raw.c        the load on the SDK itself
 *   check.c      what must hold: memory, liveness, the layers' own checks
 *   seams.c      allocations counted and failed, randomness seeded
 *   report.c     sites, the trace's hash, what a failure prints
 *
 * Everything here follows from the seed: no clock, no real randomness, no addresses in the
 * trace. It deliberately knows nothing of how a layer does its work; what is true of its
 * insides the layers' own checks say.
 */
#ifndef TESTS_DST_DST_H
#define TESTS_DST_DST_H

#include "base/rng.h"
#include "base/units.h"
#include "fabric/sim/sim.h"
#include <sdr/conn.h>
#include <sdr/sim.h>
#include <stdbool.h>
#include <stdio.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

#define DST_HOSTS_MAX 12u
#define DST_CONNS_MAX 24u
#define DST_OPS_MAX 120u
#define DST_RAW_MAX 4u
#define DST_MSGS_MAX 32u
#define DST_CANARY 64u
#define DST_FILL 0xa5

/* ---- features: each seed has some of them (swarm testing) ---- */

/* clang-format off */
#define DST_FEATURES(X) \
	X(LOSS) X(BURST) X(REORDER) X(DUPLICATE) X(CORRUPT) X(JITTER) X(RATE) X(QUEUE) X(FLAP) \
	X(PATHS) X(ASYMMETRIC) X(LONG) X(NAT) X(CUT) X(LINK_CHANGE) X(RDMA) X(ODD_NIC) X(SOCKBUF) \
	X(TARGETED) X(CANCEL) X(DEADLINE) X(TOO_LONG) X(CLOSE) X(DESTROY) X(CRASH) X(PAUSE) \
	X(SLOW_RECV) X(SELDOM) X(NOMEM) X(REPLAY) X(FIXED_RATE) X(RATE_CHANGE) X(TEST_OPS) \
	X(CHANNELS) X(RAW) X(SHORT_DEAD) X(BIG) X(MANY) X(FEW_COMPLETIONS) X(RAW_PAYLOAD) \
	X(RAW_RESET) X(LOSSY_CONNECT) X(LAZY_POLL) X(BREAKER) X(NO_PAYLOAD) \
	X(CODES) X(SCHEME_CHANGE) X(NO_DECODE) X(PARITY_MEMORY)
/* clang-format on */

enum dst_feature {
#define DST_FEATURE_ENUM(name) F_##name,
	DST_FEATURES(DST_FEATURE_ENUM)
#undef DST_FEATURE_ENUM
		F_COUNT
};

/* ---- sites: what must have happened to somebody in enough seeds ---- */

#define DST_SITES(X)                                                              \
	X(link_lost, "packets lost on links")                                     \
	X(link_queue, "packets that found a queue full")                          \
	X(link_duplicated, "packets that links doubled")                          \
	X(link_reordered, "packets that overtook others")                         \
	X(link_corrupted, "packets that links damaged")                           \
	X(link_flap, "links given a route that flaps")                            \
	X(link_cut, "links cut for a while")                                      \
	X(link_change, "links changed while in use")                              \
	X(link_asymmetric, "pairs of hosts with a link of its own each way")      \
	X(paths, "pairs of hosts with several paths")                             \
	X(path_cut, "one of several paths cut")                                   \
	X(targeted, "packets lost or late for what they carry")                   \
	X(nat, "hosts behind a NAT")                                              \
	X(nat_rebind, "NATs that forgot their mappings")                          \
	X(host_pause, "hosts that stood still for 10 s")                          \
	X(host_seldom, "hosts that make progress seldom")                         \
	X(host_slow, "receivers that post seldom")                                \
	X(host_crash, "hosts that vanished without a word")                       \
	X(host_restart, "hosts that came back at the same address")               \
	X(replay, "old packets that arrived again")                               \
	X(nomem_post, "posts without memory")                                     \
	X(nomem_setup, "openings and connects without memory")                    \
	X(nomem_progress, "allocations refused during progress")                  \
	X(device_udp, "hosts on sockets")                                         \
	X(device_roce, "hosts on RoCEv2 sockets")                                 \
	X(device_nic, "hosts on RDMA NICs")                                       \
	X(device_odd, "RDMA NICs with few receives or lasting keys")              \
	X(nic_starved, "packets that found no receive in a NIC")                  \
	X(conn_connected, "connections made")                                     \
	X(conn_failed, "connections that could not be made")                      \
	X(conn_close_one, "connections closed by one end")                        \
	X(conn_close_both, "connections closed by both ends at once")             \
	X(conn_close_busy, "connections closed in mid-work")                      \
	X(conn_closed, "ends that heard of the close")                            \
	X(conn_destroy, "connections destroyed without a goodbye")                \
	X(conn_stalled, "connections that stalled")                               \
	X(conn_recovered, "... and recovered")                                    \
	X(conn_dead, "connections given up: silence")                             \
	X(conn_reset, "connections that the peer reset")                          \
	X(conn_breaker, "connections whose breaker opened")                       \
	X(conn_rate, "rates changed while sending")                               \
	X(write_ok, "writes that arrived")                                        \
	X(write_empty, "writes of no bytes")                                      \
	X(write_canceled, "writes cancelled")                                     \
	X(write_deadline, "writes whose deadline passed")                         \
	X(write_early, "writes that the receiver ended early")                    \
	X(write_too_long, "writes longer than their receives")                    \
	X(write_closed, "writes that a close ended")                              \
	X(write_dead, "writes that died with the connection")                     \
	X(recv_ok, "receives filled")                                             \
	X(recv_imm, "receives with an immediate")                                 \
	X(recv_canceled, "receives cancelled")                                    \
	X(recv_deadline, "receives whose deadline passed")                        \
	X(recv_aborted, "receives whose sender gave up")                          \
	X(recv_closed, "receives that a close ended")                             \
	X(recv_dead, "receives that died with the connection")                    \
	X(post_again, "posts put off")                                            \
	X(op_tested, "operations told by sdr_op_test()")                          \
	X(op_late_cancel, "cancels that came too late")                           \
	X(orphan_completion, "completions taken after their connection was gone") \
	X(tx_resent, "packets sent again")                                        \
	X(tx_spurious, "packets sent again needlessly")                           \
	X(tx_probe, "probes after silence")                                       \
	X(raw_done, "messages of the SDK that arrived whole")                     \
	X(raw_early, "... completed early")                                       \
	X(raw_give_up, "... given up by the receiver")                            \
	X(raw_cancel, "... cancelled by the sender")                              \
	X(raw_aborted, "... that the receiver saw aborted")                       \
	X(raw_too_long, "... longer than their receives")                         \
	X(raw_released, "... whose handle was released at once")                  \
	X(raw_payload, "payloads changed")                                        \
	X(raw_reset, "QPs reset")                                                 \
	X(raw_ctrl, "control messages taken")                                     \
	X(raw_fill, "packets filled in by software")                              \
	X(raw_wrap, "QPs whose numbers wrap")                                     \
	X(ctr_tx_again, "sends put off by a full socket")                         \
	X(ctr_rx_duplicate, "data packets whose bit was set")                     \
	X(ctr_rx_late, "data packets of finished messages")                       \
	X(ctr_rx_malformed, "malformed packets")                                  \
	X(ctr_rx_protection, "packets that failed the protection check")          \
	X(ctr_rx_unknown_qp, "packets for QPs that are gone")                     \
	X(ctr_ctrl_replayed, "control datagrams seen twice")                      \
	X(ctr_path_changes, "channels that moved")                                \
	X(no_payload, "worlds whose packets carry no payload")                    \
	X(code_writes, "writes with a code")                                      \
	X(code_no_room, "writes that found no memory for parity")                 \
	X(code_decoded, "blocks that were decoded")                               \
	X(code_recovered, "lost packets that parity made good")                   \
	X(code_failed, "blocks that parity was not enough for")                   \
	X(code_repaired, "packets of fresh parity for them")                      \
	X(code_resent, "connections that sent their packets again")               \
	X(code_silent, "... that did after nothing was heard of a code")          \
	X(code_copies, "copies of late resends")                                  \
	X(code_auto, "times that auto chose a scheme")                            \
	X(code_write_lost, "WRITEs lost or late for what they are")               \
	X(code_parity_lost, "parity packets lost or late for what they are")      \
	X(scheme_change, "schemes changed between writes")                        \
	X(scheme_refused, "... to a code that the connection can't have")

enum dst_site {
#define DST_SITE_ENUM(name, text) SITE_##name,
	DST_SITES(DST_SITE_ENUM)
#undef DST_SITE_ENUM
		SITE_COUNT
};

/* ---- a world ---- */

struct dst_world;
struct dst_conn;

struct dst_host {
	int id;
	bool listen, rdma, nic, nat;
	bool has_net, has_raw;
	struct sdr_sim_device device;
	uint32_t sockbuf;
	uint32_t max_completions;
	struct sdr_ctx *ctx; /* NULL while it is crashed */
	struct sdr_net *net; /* NULL: a host of raw QPs only */
	struct sdr_mr *mr;
	struct sdr_ctx *raw; /* a second context for raw QPs, or the only one */
	struct sdr_mr *raw_mr;
	uint64_t paused_until_ns;
	uint64_t seldom_ns;  /* makes progress no more often; 0: always */
	uint64_t next_ns;    /* seldom_ns: not before */
	uint64_t restart_ns; /* crashed: comes back then */
	double recv_chance;  /* that a turn posts receives */
	uint32_t incarnation;
	uint32_t ports; /* the simulator's count before its contexts were opened */
};

struct dst_item {
	struct dst_conn *c;
	int end; /* that posted it */
	bool is_recv;
	unsigned int dir, number;
	uint64_t length;
	uint32_t imm;
	bool has_imm, use_mr, test;
	uint8_t *mem;  /* receive: canary, length bytes, canary */
	uint8_t *buf;  /* a write's bytes, until they are free again */
	uint64_t seed; /* a write's contents */
	bool posted, done, cancelled, deadline, orphaned;
	int status;
	uint64_t got;
	uint32_t got_imm;
	uint64_t sum;
	struct sdr_op *op;
};

struct dst_dir {
	struct dst_item *w, *r;
	unsigned int n, wposted, rposted;
};

struct dst_end {
	struct dst_conn *c;
	int index;
	uint32_t host;
	struct sdr_conn *conn; /* NULL: destroyed, or its host crashed */
	struct sdr_conn_attr attr;
	bool up, over; /* over: CLOSED, DEAD or FAILED was told */
	bool closing;
	int status;
	uint64_t stalled_ns;
	char text[128];
};

/* A connection between two hosts, or what is left of it. */
struct dst_conn {
	struct dst_world *w;
	unsigned int id;
	struct dst_end end[2];
	struct dst_dir dir[2]; /* 0: from end 0 */
	uint64_t begun_ns;
	bool disturbed;	    /* closed, destroyed, crashed: operations may end with errors */
	bool may_die;	    /* it need not survive this world */
	bool may_break;	    /* fixed rate over a bad path */
	bool nomem;	    /* an allocation failed while it was used */
	uint64_t doomed_ns; /* from then on one end is alone: it has to notice */
	uint64_t close_ns;  /* when the load closes it; UINT64_MAX: when all is done */
	unsigned int close_how;
	bool asked;
};

struct dst_raw;

struct dst_world {
	uint64_t seed;
	struct rng rng;
	bool on[F_COUNT];
	bool verbose;
	struct sdr_sim *api;
	struct sim *sim;
	struct dst_host host[DST_HOSTS_MAX];
	uint32_t nhosts;
	struct sdr_sim_link link[DST_HOSTS_MAX][DST_HOSTS_MAX];
	struct dst_conn conn[DST_CONNS_MAX];
	uint32_t nconns, first_conns;
	struct dst_raw *raw[DST_RAW_MAX];
	uint32_t nraw;
	uint64_t turn_ns, turn_max_ns, faults_end_ns, limit_ns;
	bool calm;
	uint64_t steps;
	uint32_t check_every; /* steps between looks at all invariants */
	uint64_t checks;
	uint64_t longest_ns; /* the longest round trip of its links */
	uint64_t trace;
	uint64_t memory_limit;
	struct dst_faults *faults;
};

/* options.c */
void dst_options_draw(struct dst_world *w);
void dst_link_draw(struct dst_world *w, struct sdr_sim_link *l);
void dst_device_draw(struct dst_world *w, struct dst_host *h);
void dst_attr_draw(struct dst_world *w, const struct dst_host *h, uint64_t link_bps,
		   struct sdr_conn_attr *a);
uint64_t dst_size_draw(struct dst_world *w, uint64_t payload, uint64_t chunk);
uint64_t dst_below(struct dst_world *w, uint64_t n);
bool dst_chance(struct dst_world *w, double p);
const char *dst_feature_name(unsigned int f);

/* world.c */
enum dst_payload {
	DST_PAYLOAD_DRAWN, /* as the seed says */
	DST_PAYLOAD_ON,	   /* these two: all happens alike; old packets do not come again, and
			    * no memory is refused, as those depend on what is in flight */
	DST_PAYLOAD_OFF,
};

void dst_run_seed(uint64_t seed, bool verbose, enum dst_payload payload, uint64_t *trace);
uint64_t dst_now(const struct dst_world *w);
/* 0, or -ENOMEM where memory was refused. */
int dst_host_open(struct dst_world *w, struct dst_host *h);
void dst_host_close(struct dst_world *w, struct dst_host *h);
bool dst_host_awake(const struct dst_world *w, const struct dst_host *h);
void dst_link_apply(struct dst_world *w, uint32_t from, uint32_t to, const struct sdr_sim_link *l);

/* faults.c */
void dst_faults_init(struct dst_world *w);
void dst_faults_turn(struct dst_world *w);
void dst_faults_stop(struct dst_world *w);
void dst_faults_fini(struct dst_world *w);

/* conns.c */
void dst_conns_init(struct dst_world *w);
bool dst_conn_begin(struct dst_world *w, uint32_t a, uint32_t b);
void dst_conns_turn(struct dst_world *w);
void dst_conns_take(struct dst_world *w, struct dst_host *h);
bool dst_conns_left(const struct dst_world *w);
void dst_conns_host_gone(struct dst_world *w, struct dst_host *h);
void dst_conns_host_back(struct dst_world *w, struct dst_host *h);
/* The host was refused memory: what may follow from that is excused. */
void dst_conns_nomem(struct dst_world *w, const struct dst_host *h);
void dst_conn_destroy(struct dst_end *e);
void dst_conns_check(struct dst_world *w);
void dst_conns_dump(const struct dst_world *w);
void dst_conns_fini(struct dst_world *w);

/* conns_ops.c */
void dst_items_make(struct dst_conn *c, unsigned int dir, uint64_t payload, uint64_t chunk);
void dst_items_free(struct dst_conn *c);
void dst_items_stir(struct dst_conn *c, unsigned int dir);
void dst_items_test(struct dst_conn *c);
void dst_items_orphan(struct dst_end *e);
void dst_on_completion(struct dst_world *w, struct dst_host *h, const struct sdr_completion *done);
bool dst_items_left(const struct dst_conn *c);
void dst_items_check(const struct dst_conn *c);

/* codes.c */
void dst_codes_draw(struct dst_world *w, struct sdr_conn_attr *a);
void dst_codes_turn(struct dst_conn *c);
void dst_codes_count(const struct sdr_conn_info *info);
void dst_codes_ended(struct dst_conn *c);

/* raw.c */
void dst_raw_init(struct dst_world *w);
void dst_raw_turn(struct dst_world *w);
bool dst_raw_left(const struct dst_world *w);
void dst_raw_host_gone(struct dst_world *w, struct dst_host *h);
void dst_raw_check(struct dst_world *w);
void dst_raw_dump(const struct dst_world *w);
void dst_raw_fini(struct dst_world *w);

/* check.c */
void dst_check_layers(struct dst_world *w);
void dst_check_memory(struct dst_world *w);
void dst_count_world(struct dst_world *w);
void dst_count_ctx(struct dst_world *w, const struct sdr_ctx *ctx);
void dst_count_conn(const struct sdr_conn *conn);
uint64_t dst_checksum(const uint8_t *p, uint64_t n);
void dst_fill(uint8_t *p, uint64_t n, uint64_t seed);
/* Nobody but us may touch it any more; with AddressSanitizer who does is caught in the act. */
void dst_poison(void *p, size_t n);
void dst_unpoison(void *p, size_t n);

/* seams.c: everything that the library allocates comes by here. */
void *dst_alloc(size_t n); /* the test's own, zeroed: never counted, never refused */
void dst_free(void *p);
void dst_seams_reset(uint64_t seed);
void dst_nomem_arm(uint32_t after, uint32_t times); /* the allocation after so many fails */
bool dst_nomem_disarm(void);			    /* whether one failed */
uint64_t dst_live_bytes(void);
uint64_t dst_live_blocks(void);
uint64_t dst_peak_bytes(void);

/* report.c */
extern uint64_t *dst_sites; /* SITE_COUNT, shared by the workers */
void dst_site(enum dst_site site, uint64_t n);
const char *dst_site_name(unsigned int site);
const char *dst_site_text(unsigned int site);
void dst_trace(struct dst_world *w, uint64_t v);
void dst_note(struct dst_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dst_features_print(const struct dst_world *w); /* if it is verbose */
/* Prints what failed, what is open and how to replay it; ends the process. */
void dst_fail(struct dst_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
extern const char *dst_program;

#define DST_CHECK(w, cond, ...)                     \
	do {                                        \
		if (!(cond))                        \
			dst_fail((w), __VA_ARGS__); \
	} while (0)

#endif
