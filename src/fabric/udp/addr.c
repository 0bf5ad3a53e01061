/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses in one form, so that an IPv4 peer is the same whether an IPv4 or a
 * dual-stack socket heard it. Knows nothing of channels.
 */
#include "fabric/udp/udp_int.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void udp_addr_from(struct udp_addr *out, const struct sockaddr *sa)
{
	*out = (struct udp_addr){0};
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in sin;

		memcpy(&sin, sa, sizeof(sin));
		memcpy(out->ip, mapped_prefix, sizeof(mapped_prefix));
		memcpy(out->ip + 12, &sin.sin_addr, 4);
		out->port = ntohs(sin.sin_port);
		out->set = true;
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 sin6;

		memcpy(&sin6, sa, sizeof(sin6));
		memcpy(out->ip, &sin6.sin6_addr, 16);
		out->port = ntohs(sin6.sin6_port);
		if (IN6_IS_ADDR_LINKLOCAL(&sin6.sin6_addr))
			out->scope = sin6.sin6_scope_id;
		out->set = true;
	}
}

int udp_addr_parse(struct udp_addr *out, const char *text)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *ai;

	if (getaddrinfo(text, NULL, &hints, &ai) != 0)
		return -EINVAL;
	udp_addr_from(out, ai->ai_addr);
	freeaddrinfo(ai);
	return out->set ? 0 : -EINVAL;
}

bool udp_addr_is_v4(const struct udp_addr *addr)
{
	return memcmp(addr->ip, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

bool udp_addr_is_any(const struct udp_addr *addr)
{
	static const uint8_t zeros[16];

	return !addr->set || memcmp(addr->ip, zeros, 16) == 0 ||
	       (udp_addr_is_v4(addr) && memcmp(addr->ip + 12, zeros, 4) == 0);
}

socklen_t udp_addr_to(const struct udp_addr *addr, int family, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (family == AF_INET) {
		struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(addr->port)};

		memcpy(&sin.sin_addr, addr->ip + 12, 4);
		memcpy(out, &sin, sizeof(sin));
		return sizeof(sin);
	}
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
				    .sin6_port = htons(addr->port),
				    .sin6_scope_id = addr->scope};

	memcpy(&sin6.sin6_addr, addr->ip, 16);
	memcpy(out, &sin6, sizeof(sin6));
	return sizeof(sin6);
}

bool udp_addr_equal(const struct udp_addr *a, const struct udp_addr *b)
{
	return a->set == b->set && a->port == b->port && a->scope == b->scope &&
	       memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

bool udp_addr_same_ip(const struct udp_addr *a, const struct udp_addr *b)
{
	return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

uint64_t udp_addr_hash(const struct udp_addr *addr)
{
	uint64_t h = get_be64(addr->ip) * UINT64_C(0x9e3779b97f4a7c15);

	h ^= h >> 29;
	h = (h ^ get_be64(addr->ip + 8)) * UINT64_C(0xbf58476d1ce4e5b9);
	h ^= h >> 32;
	h = (h ^ (uint64_t)addr->scope << 16 ^ addr->port) * UINT64_C(0x94d049bb133111eb);
	h ^= h >> 31;
	return h | 1;
}

void udp_addr_text(const struct udp_addr *addr, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (!addr->set) {
		snprintf(buf, len, "(no address yet)");
	} else if (udp_addr_is_v4(addr)) {
		inet_ntop(AF_INET, addr->ip + 12, ip, sizeof(ip));
		snprintf(buf, len, "%s:%u", ip, addr->port);
	} else {
		inet_ntop(AF_INET6, addr->ip, ip, sizeof(ip));
		snprintf(buf, len, "[%s]:%u", ip, addr->port);
	}
}
