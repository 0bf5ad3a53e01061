/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake over TCP, and what is left of it afterwards: a connection whose end says
 * that the peer's process is gone. handshake.c has what both ends share, hs_client.c and
 * hs_server.c the rest.
 *
 * A frame, in both directions; the header never changes in any version:
 *
 *	 0       4      5     6       8
 *	+-------+------+-----+-------+----------------
 *	| magic | kind |  0  |  len  | len bytes
 *	+-------+------+-----+-------+----------------
 *	HELLO       TLVs { type 1, 0 1, len 2, value }: 1 = the QP's info; others are skipped
 *	ERROR       { code 4, text }: why the server will not have us
 *	CLOSE, CLOSE_ECHO   empty: as the control messages of the same name
 *
 *	client: HELLO ->            server: reads HELLO, connects its QP, answers HELLO or ERROR
 *	client: connects its QP; both stay and watch for CLOSE and the end
 *
 * A stranger that talks something else is hung up on without a word. Nothing here blocks.
 */
#ifndef SDR_CONN_HS_H
#define SDR_CONN_HS_H

#include "conn/internal.h"

#define FRAME_MAGIC 0x53445221u /* "SDR!" */
#define FRAME_HDR_BYTES 8u
#define FRAME_BODY_MAX (SDR_MAX_INFO_BYTES + 256u)
#define TLV_INFO 1u

enum frame_kind { FRAME_HELLO = 1, FRAME_ERROR = 2, FRAME_CLOSE = 3, FRAME_CLOSE_ECHO = 4 };

/*
 *	RESOLVE  the name's addresses came         -> DIAL
 *	DIAL     TCP connected; else next address  -> HELLO
 *	HELLO    the peer's HELLO came             -> WATCH
 */
enum hs_state { HS_RESOLVE, HS_DIAL, HS_HELLO, HS_WATCH };

struct hs {
	struct hs *next, *prev; /* the net's half-open ones */
	struct sdr_net *net;
	struct sdr_conn *conn; /* NULL: accepted and silent so far */
	struct resolve *resolve;
	enum hs_state state;
	int fd;
	bool listed;
	uint64_t deadline_ns;
	uint64_t dial_ns, rtt_ns; /* client: when SYN left, and how long until it was answered */
	struct resolve_addrs addrs;
	uint32_t addr_at;
	int last_error; /* of the addresses that were tried */
	uint32_t in_len, out_len;
	uint8_t in[FRAME_HDR_BYTES + FRAME_BODY_MAX];
	uint8_t out[2 * (FRAME_HDR_BYTES + FRAME_BODY_MAX)];
};

/* handshake.c */
struct hs *hs_new(struct sdr_net *net, struct sdr_conn *conn);
/* Hangs up. Memory goes at hs_reap(): events of the same round may still name it. */
void hs_end(struct hs *hs);
void hs_unlist(struct hs *hs);
int hs_watch_fd(struct hs *hs, int fd, uint32_t events, int op);
void hs_options(int fd);
int frame_send(struct hs *hs, enum frame_kind kind, const void *body, size_t len);
/* What the route of the TCP connection carries bounds the QP's payload: before HELLO. */
void hs_payload_limit(const struct hs *hs, struct sdr_conn *conn);
int hello_send(struct hs *hs);
/* The QP info in a HELLO's body, or NULL. */
const uint8_t *hello_info(const uint8_t *body, size_t len, size_t *info_len);
/* Why a QP would not connect; `here`: written at the client's end, where it is read. */
void connect_error_text(int err, const uint8_t *info, size_t len, bool here, char *out, size_t cap);

/* hs_client.c */
void client_fail(struct hs *hs, int status, const char *text);
void client_resolved(struct hs *hs, uint64_t now);
void client_dial_next(struct hs *hs, uint64_t now);
void client_dialled(struct hs *hs, uint64_t now);
void client_on_hello(struct hs *hs, const uint8_t *body, size_t len);
void client_on_error(struct hs *hs, const uint8_t *body, size_t len);

/* hs_server.c */
void hs_accept_again(struct sdr_net *net, uint64_t now);
void server_on_hello(struct hs *hs, const uint8_t *body, size_t len);

#endif
