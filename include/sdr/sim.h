/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/sim.h>: contexts in virtual time. The same SDK and reliability code runs over
 * simulated links, single-threaded, seeded: a seed replays a run to the packet.
 *
 * Drive it so: call sdr_progress() (or sdr_net_progress()) of every context, then
 * sdr_sim_step() to move the clock to the next thing that happens. sdr_sim_step() takes
 * the earliest deadline of the application's own; those of contexts and nets it knows.
 * In a world of many contexts let sdr_sim_due() say which have something to do.
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
	/* A route that flaps: from flap_first_ns on (virtual time), once every flap_every_ns, it
	 * is longer by flap_delay_ns for flap_for_ns. flap_every_ns 0: never; else longer than
	 * flap_for_ns, which is not 0. A change of route can reorder. */
	uint64_t flap_first_ns, flap_every_ns, flap_for_ns, flap_delay_ns;
	int cut; /* not 0: nothing passes */
	/* Bursts that last in time, where burst_pkts is above 1: their process steps once in so
	 * much time, also while nobody sends, so that what is sent later can escape one; and once a
	 * packet where packets come faster. To be the time that a full packet takes. 0: once a
	 * packet, so a burst waits for the next packets however late they come. */
	uint64_t burst_slot_ns;
};

/* Makes an empty world; the seed decides all that is random in it. 0 or -ENOMEM. */
SDR_API int sdr_sim_create(uint64_t seed, struct sdr_sim **out);
/* Closes its contexts too. NULL is allowed. */
SDR_API void sdr_sim_destroy(struct sdr_sim *sim);
/*
 * From now on packets have lengths but carry no payload: the buffers of sends and receives are
 * neither read nor written, so any address that is not NULL will do, and memory grows only with
 * what is in flight. Headers, trailers (they cover the header) and control datagrams are real, and
 * every decision is taken by the same code: a seed gives the same completions, times and
 * counters with payload and without, on every kind of device. A corrupted packet dies. Before the
 * world's first context: 0, or -EBUSY.
 */
SDR_API int sdr_sim_payload_off(struct sdr_sim *sim);
/* Adds a host; returns its number. */
SDR_API int sdr_sim_host(struct sdr_sim *sim);
/*
 * The link from one host to another, one direction, on one channel or SDR_CHANNEL_ANY. A second
 * call changes it from now on; packets in flight keep their fates. 0, -EINVAL (no such host or
 * channel, values that contradict each other), -ERANGE (a value of 2^62 or more, a burst that no
 * such loss can have), -ENOMEM.
 */
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
 * A packet to lose, named by what it carries: `attempt` 0 is the first time that a QP sends this
 * packet of this message, 1 the second ... Each QP's sends are messages 0, 1, 2 ... in the order
 * in which they were posted, as are a connection's writes; packets count from 0 in each message.
 */
struct sdr_sim_drop {
	uint32_t message, packet, attempt;
};

/*
 * Data packets to lose from one host to another, on all channels and paths, on top of the links'
 * own losses; they take their time on the link and count as its lost_pkts. Copied, in any order.
 * Of several QPs between the two each counts its own attempts. A second call replaces the list and
 * counts attempts anew; n 0: none. 0, -EINVAL (no such host, NULL with an n), -ENOMEM (the old
 * list stays).
 */
SDR_API int sdr_sim_drops_set(struct sdr_sim *sim, int from, int to,
			      const struct sdr_sim_drop *drops, size_t n);
struct sdr_sim_drops_info {
	size_t size;
	uint64_t entries;   /* of the list, each counted once */
	uint64_t hit;	    /* of them, those that lost a packet */
	uint64_t lost_pkts; /* so many: on two QPs an entry can hit twice */
};

/* What a list has done since it was set. 0, or -ENOENT: none is set. */
SDR_API int sdr_sim_drops_query(const struct sdr_sim *sim, int from, int to,
				struct sdr_sim_drops_info *info);

#define SDR_SIM_MAX_PATHS 16u

/*
 * `n` paths from one host to another, one direction, each a link of its own, as behind routers
 * with several next hops: a hash over protocol, addresses and ports, those that a NAT gives,
 * decides; so a channel keeps to one path until its address changes. `links` is an array, each
 * element of the same `size`, read during the call. Channels with a link of their own use that.
 * 0 .. SDR_SIM_MAX_PATHS; 0: the pair has no paths any more, and the link of SDR_CHANNEL_ANY is
 * used again. A second call changes them from now on; a path that is cut stays in the hash, and
 * loses what comes its way. Errors as sdr_sim_link_set(), and -EINVAL: too many paths, elements
 * of different sizes. On -ENOMEM some may have changed.
 */
SDR_API int sdr_sim_paths_set(struct sdr_sim *sim, int from, int to, uint32_t n,
			      const struct sdr_sim_link *links);
/* What path number `path`, 0 and up, has done so far. 0, or -ENOENT where there was none. */
SDR_API int sdr_sim_path_query(const struct sdr_sim *sim, int from, int to, uint32_t path,
			       struct sdr_sim_link_info *info);

/*
 * Puts a NAT in front of a host, a new one where there is one already: what the host sends
 * comes from ports that the NAT chooses, and what is sent to a port that it does not know is
 * lost. So only the end that connects (SDR_ROLE_ACTIVE) can be behind one. A mapping that was
 * unused for timeout_ns is forgotten (0: never); all are forgotten every every_ns (0: never).
 * Connections that the host has already see it as a rebinding. 0, -EINVAL (no such host),
 * -ENOMEM.
 */
SDR_API int sdr_sim_nat_set(struct sdr_sim *sim, int host, uint64_t timeout_ns, uint64_t every_ns);
/* The NAT forgets its mappings now, as when it reboots. 0, or -ENOENT: the host has none. */
SDR_API int sdr_sim_nat_rebind(struct sdr_sim *sim, int host);
struct sdr_sim_nat_info {
	size_t size;
	uint64_t rebinds;   /* by sdr_sim_nat_rebind() and every_ns, since it was set */
	uint64_t lost_pkts; /* that came to a port that it does not know */
};

/* What a host's NAT has done so far. 0, or -ENOENT: the host has none. */
SDR_API int sdr_sim_nat_query(const struct sdr_sim *sim, int host, struct sdr_sim_nat_info *info);
/*
 * What the devices of a host are, beyond sockets: to test what RDMA devices ask of an
 * application and of its peers.
 */
struct sdr_sim_device {
	size_t size;
	/*
	 * What the other fields add to: NULL or "udp": nothing of it (zero_copy_ns may be set);
	 * "roce": packets are RoCEv2 to the letter (SDR_CAP_ROCEV2), software receives them;
	 * "nic": so does an RDMA NIC: no SDR_CAP_NO_REWRITE, SDR_CAP_SILENT_LATE, a zero_copy_ns
	 * of 5 us and a recv_depth of 4096.
	 */
	const char *like;
	uint64_t zero_copy_ns; /* SDR_CAP_ZERO_COPY: a send with an mr is read, and leaves, so long
				* after it was handed to the device */
	uint32_t recv_depth;   /* "nic": packets that a transport QP takes between two calls of
				* sdr_progress(); more are lost */
	uint64_t late_ns;      /* "nic": keys outlive their receive, so a packet may come so much
				* later and pass; sdr_recv_post() waits that long (-EAGAIN) before
				* it uses the slot again */
	uint64_t coalesce_ns;  /* interrupts are held back: sdr_sim_step() stops for what arrives
				* here so long after the first of it, and sdr_progress() finds
				* all of it, each with the time at which it came. 0: it stops at
				* each packet, which costs twice the CPU time at 400 Gbit/s */
};
/*
 * Contexts that are opened on this host from now on have such a device; NULL: "udp" again. RDMA
 * devices take payloads of 1024, 2048 or 4096 bytes, are not to be put behind a NAT, and a host
 * has one context at a time on them. Both ends of a QP must be of the same kind, "udp" or not.
 * 0, -EINVAL (no such host or name, a field that needs another `like`), -ENOMEM.
 */
SDR_API int sdr_sim_device_set(struct sdr_sim *sim, int host, const struct sdr_sim_device *device);
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
 * Moves the clock to the next time at which a context has something to take, or its deadline
 * passes, or to limit_ns, whichever is first. Returns 1 if something is due, 0 if limit_ns was
 * reached with nothing to do. It stops once for each: a context that then gets no sdr_progress()
 * holds the clock no more, as a host that is asleep.
 */
SDR_API int sdr_sim_step(struct sdr_sim *sim, uint64_t limit_ns);
/*
 * A context with something to do now: packets to take, a deadline of its own or of its net that
 * has passed, calls of its QPs that left work. NULL: no other. Each is named once until its
 * sdr_progress(). The order is that of the seed.
 */
SDR_API struct sdr_ctx *sdr_sim_due(struct sdr_sim *sim);

#ifdef __cplusplus
}
#endif
#endif
