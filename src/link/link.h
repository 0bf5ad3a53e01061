/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link in virtual time: one direction of one path, and the only place where faults
 * live. The owner offers a packet's size and is told the packet's fate; it keeps the
 * packets and the event heap itself. Used by fabric/sim and by the delay line of
 * `sdr wan`.
 *
 * Pure: no I/O, no clock (now is an argument), no allocation, all randomness from the
 * seed. It deliberately knows nothing of what is in a packet.
 *
 * A packet's way: cut -> MTU -> policer -> queue (overflow drops it, a long queue marks it)
 * -> serialisation at rate_bps -> blackout, outage, drop list, random loss -> delay, flap,
 * jitter, reordering, duplication, corruption. A packet lost behind the queue has used the
 * link's time, one lost in the queue has used the policer's tokens.
 *
 * Times that do not fit 64 bits end at UINT64_MAX: such a packet never arrives.
 *
 * Beside it: paths.h (several links by 5-tuple hash), nat.h (NAT rebinding), g1050.h (the
 * eight ITU-T G.1050 profiles).
 */
#ifndef SDR_LINK_LINK_H
#define SDR_LINK_LINK_H

#include "base/rng.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Gilbert-Elliott loss (RFC 6534's and the netem manual's letters: p, r, 1-h, 1-k): two
 * states, a step after each packet (and see burst_slot_ns, burst_idle_ns). All zero: no loss. p_gb
 * = p_bg = 0 with loss_good set: i.i.d. loss.
 */
struct link_ge {
	double p_gb;	  /* good -> bad */
	double p_bg;	  /* bad -> good */
	double loss_bad;  /* 1 - h */
	double loss_good; /* 1 - k */
};

/* Packets that would leave the queue in [from_ns, to_ns) are lost. */
struct link_blackout {
	uint64_t from_ns, to_ns;
};

/*
 * A token bucket without a queue: what does not find enough tokens is lost (Flach et al.,
 * SIGCOMM 2016). The bucket is full at first, and again where its values are changed.
 */
struct link_policer {
	uint64_t rate_bps;    /* 0: none */
	uint64_t burst_bytes; /* the bucket's depth; a packet larger than this never passes */
};

/*
 * Something that comes again: it lasts `for_ns`, and begins at first_ns, first_ns + every_ns,
 * ... (absolute times, as now_ns is). every_ns 0: never. 0 < for_ns < every_ns.
 */
struct link_periodic {
	uint64_t first_ns, every_ns, for_ns;
};

/* All zero: infinitely fast, no delay, no faults. Lists are borrowed, not copied. */
struct link_attr {
	bool cut;	    /* nothing passes */
	uint32_t mtu_bytes; /* larger packets are lost; 0: any. Whether the sender is told
			     * (ICMP) or not (a black hole) is up to the owner */
	struct link_policer policer;
	uint64_t rate_bps;	/* 0: infinite */
	uint64_t delay_ns;	/* propagation */
	uint64_t jitter_ns;	/* uniform in [0, jitter_ns] on top */
	bool jitter_reorders;	/* false: jitter never lets a packet overtake another */
	uint64_t queue_bytes;	/* 0: unlimited; counts what is not serialised yet, the packet
				 * that comes included: one larger than this never passes */
	uint64_t queue_ns;	/* the same in time at rate_bps; the tighter one counts */
	uint64_t ecn_bytes;	/* mark where the queue, packet included, is longer; 0: never */
	uint64_t ecn_ns;	/* the same in time; the tighter one counts */
	uint64_t burst_idle_ns; /* the state of loss is drawn anew after so long without a packet:
				 * a burst on a real line passes, whoever sends; 0: never */
	/* Bursts that last in time: the loss process steps once in so much time, also while
	 * nobody sends, and once a packet where packets come faster. With the time that a full
	 * packet takes (rounded up), a line that is never idle loses as with 0: a step a packet. */
	uint64_t burst_slot_ns;
	struct link_ge loss;   /* see link_ge_iid, link_ge_mean */
	double reorder_p;      /* a packet is held back by ... */
	uint64_t reorder_ns;   /* ... this much, out of its order; 0: may overtake by its jitter */
	double duplicate_p;    /* a second copy ... */
	uint64_t duplicate_ns; /* ... this much after the first */
	double corrupt_p;      /* one bit of the (first) copy is flipped */
	const uint64_t *drop;  /* indices of packets to lose, ascending; 0 is the first packet */
	size_t n_drop;	       /* ... offered after link_init or link_attr_set */
	const struct link_blackout *blackout; /* ascending, disjoint */
	size_t n_blackout;
	struct link_periodic outage; /* packets that would leave the queue in it are lost */
	struct link_periodic flap;   /* packets that leave the queue in it take another route, */
	uint64_t flap_delay_ns;	     /* ... longer by this; a change of route can reorder, as
				      * order is kept on each route by itself */
};

enum link_loss {
	LINK_LOST_NOT,
	LINK_LOST_QUEUE,
	LINK_LOST_RANDOM,
	LINK_LOST_LIST,
	LINK_LOST_BLACKOUT, /* blackout or outage */
	LINK_LOST_POLICER,
	LINK_LOST_MTU,
	LINK_LOST_CUT,
	LINK_LOST_REASONS
};

struct link_fate {
	uint32_t copies;	/* 0 .. 2 */
	uint64_t deliver_ns[2]; /* of each copy, absolute */
	enum link_loss lost;
	bool ce;
	bool corrupt;	      /* flip corrupt_bit of copy 0 */
	uint64_t corrupt_bit; /* 0 .. 8*bytes - 1; bit b is bit b%8 of byte b/8 */
};

struct link_counters {
	uint64_t offered_pkts, offered_bytes;
	uint64_t delivered_pkts;	       /* at least one copy will arrive */
	uint64_t lost_pkts[LINK_LOST_REASONS]; /* by reason; [LINK_LOST_NOT] stays 0 */
	uint64_t duplicated_pkts;
	uint64_t reordered_pkts; /* arrive after a packet that was offered later, as far as
				  * known at offer: counted at the one that overtakes */
	uint64_t marked_pkts;
	uint64_t corrupted_pkts;
};

/*
 * Invariants: (1) busy_frac < rate_bps where rate_bps > 0, else 0; (2) delivered + sum of
 * lost == offered; (3) now never goes back: an earlier now counts as the last one; (4)
 * old_busy_ns <= busy_ns; (5) the policer's bucket lacks no more than its burst; (6) what follows
 * from attr is up to date; (7) stepped_ns <= depart_ns.
 */
struct link {
	struct link_attr attr;
	struct rng rng;
	uint64_t now_ns;
	uint64_t busy_ns; /* the last bit leaves at busy_ns + busy_frac / rate_bps */
	uint64_t busy_frac;
	uint64_t old_busy_ns;  /* what was queued when the rate changed leaves until then, */
	uint64_t old_rate_bps; /* ... at this rate */
	uint64_t policer_ns;   /* when it was last asked; then its bucket lacked this: */
	unsigned __int128 missing_bps_ns;
	uint64_t in_order_ns;	 /* latest delivery of a packet that kept its order */
	uint64_t other_order_ns; /* the same of the route not taken now */
	uint64_t latest_ns;	 /* latest delivery of any */
	uint64_t index;		 /* of the next packet, for the drop list */
	size_t drop_next, blackout_next;
	uint64_t outage_at_ns, flap_at_ns; /* begin of the interval last looked at */
	uint64_t depart_ns;		   /* of the last packet that came to the loss process, */
	uint64_t stepped_ns;		   /* ... which has stepped for the time until then */
	bool bad;			   /* Gilbert-Elliott state */
	bool flapped;			   /* the last delivered packet took the longer route */

	/* What follows from attr: */
	bool gated;			/* any of cut, MTU, policer; */
	bool limited;			/* ... of queue and ECN limits; */
	bool scheduled;			/* ... of drop list, blackouts, outage */
	unsigned __int128 queue_bps_ns; /* the tighter limit; all ones: none. A byte is */
	unsigned __int128 ecn_bps_ns;	/* ... 8 * 10^9 of these */

	struct link_counters counters;
};

/*
 * -EINVAL: values that contradict each other or mean nothing:
 *	a probability outside [0, 1], NaN among them;
 *	a drop list that does not ascend, blackouts that end before they begin, overlap or do
 *	not ascend, a list with a length but without a place;
 *	an outage or flap with every_ns > 0 whose for_ns is 0 or not below every_ns, or with
 *	every_ns 0 (never) and a for_ns;
 *	a policer with a rate and a burst of 0.
 * -ERANGE: a rate, a size or a time of 2^62 or more (blackouts, packet numbers: any).
 */
int link_attr_check(const struct link_attr *attr);
/* Errors as link_attr_check. */
int link_init(struct link *l, const struct link_attr *attr, uint64_t seed);
/*
 * New attributes from now_ns on; on an error the old ones stay. What is queued keeps its
 * fate: the rate is a new one for later packets, which wait behind it. Counters and random
 * state go on. The drop list counts from here; outages and flaps keep their absolute times.
 * A new delay_ns or flap_delay_ns is a change of route: later packets may overtake. A
 * Gilbert-Elliott process with new values begins anew, in its stationary state.
 */
int link_attr_set(struct link *l, uint64_t now_ns, const struct link_attr *attr);
/* Offers a packet of `bytes` (with all its headers) at now_ns. Returns fate->copies. */
int link_offer(struct link *l, uint64_t now_ns, uint32_t bytes, struct link_fate *fate);
/* The same; `drop`: this one is lost, as if it were on the drop list. */
int link_offer_drop(struct link *l, uint64_t now_ns, uint32_t bytes, bool drop,
		    struct link_fate *fate);
/* Bytes not serialised yet at now_ns, rounded up. */
uint64_t link_queued_bytes(const struct link *l, uint64_t now_ns);
void link_check(const struct link *l);

/* Each packet lost with probability p. */
struct link_ge link_ge_iid(double p);
/*
 * Everything in bursts is lost: mean loss ratio in [0, 1), mean burst of at least 1
 * packet. -ERANGE where no such process exists (the good state would have to be shorter
 * than a packet).
 */
int link_ge_mean(double mean_loss, double mean_burst_pkts, struct link_ge *out);
/* Its long-run loss ratio. */
double link_ge_ratio(const struct link_ge *ge);

#endif
