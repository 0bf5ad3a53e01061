/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding RDMA devices: what there is, which port and GID to take, and the sentences that say
 * why not. Used to open a fabric, to list devices, and by whoever examines a host.
 *
 * It deliberately knows nothing of fabrics.
 */
#ifndef SDR_FABRIC_VERBS_FIND_H
#define SDR_FABRIC_VERBS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define VERBS_NAME_MAX 64u
#define VERBS_MAX_GIDS 64u /* of one port that are looked at */
#define VERBS_GID_TEXT 64u

enum verbs_gid_type { VERBS_GID_IB, VERBS_GID_ROCE_V1, VERBS_GID_ROCE_V2 };

struct verbs_gid {
	uint32_t index;
	enum verbs_gid_type type;
	uint8_t raw[16];
	uint32_t ifindex; /* of its network device; 0 where not known */
};

/* One port of one device. */
struct verbs_port {
	char device[VERBS_NAME_MAX];
	uint32_t port;
	bool has_uc;	   /* queue pairs of type UC can be made */
	int uc_err;	   /* else: the -errno of trying, or of opening the device */
	bool active;	   /* else: see state */
	const char *state; /* "ACTIVE", "DOWN", ... */
	bool ethernet;	   /* RoCE; else InfiniBand, which is not supported */
	uint32_t mtu;	   /* active_mtu in bytes */
	uint32_t max_mtu;
	uint32_t ngids;
	struct verbs_gid gid[VERBS_MAX_GIDS];
};

/*
 * All ports of all devices, into *out (free it with verbs_list_free). Returns how many, 0 where
 * there is no device, or -errno.
 */
int verbs_fabric_list(struct verbs_port **out);
void verbs_list_free(struct verbs_port *list);

/* What to look for; zeros and NULL: anything. */
struct verbs_want {
	const char *device;
	uint32_t port;
	bool gid_index_set;
	uint32_t gid_index;
	const char *bind_addr;
};

/*
 * The port and GID to use, from a list; pure. 0, *port and *gid; or -errno as
 * verbs_fabric_open() and the sentence in why.
 */
int verbs_choose(const struct verbs_port *list, size_t n, const struct verbs_want *want,
		 const struct verbs_port **port, const struct verbs_gid **gid, char *why,
		 size_t why_len);

/*
 * The GID of a port: RoCEv2 only; with an address, the one that carries it (0.0.0.0 or ::: any of
 * that family); without, IPv4-mapped
 * first, then a global IPv6, a link-local one only where there is nothing else. NULL: none, and
 * why has the candidates.
 */
const struct verbs_gid *verbs_gid_choose(const struct verbs_port *port,
					 const struct verbs_want *want, char *why, size_t why_len);

void verbs_gid_text(const uint8_t raw[16], char buf[VERBS_GID_TEXT]);
/* ::ffff:a.b.c.d becomes an IPv4 address; a link-local one gets its interface. */
void verbs_gid_to_addr(const struct verbs_gid *gid, struct sockaddr_storage *out);
/* IPv4 is mapped; false where the family is neither. */
bool verbs_gid_from_addr(const struct sockaddr *sa, uint8_t raw[16]);
bool verbs_gid_is_link_local(const uint8_t raw[16]);

/* What to do where memory could not be locked: names the limit as it is now. */
void verbs_memlock_text(char *buf, size_t len);

#endif
